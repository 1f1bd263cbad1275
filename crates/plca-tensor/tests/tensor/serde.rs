//! Tensors through a text format.

use plca_tensor::{Coordinates, DenseTensor, Order, SparseTensor};

#[test]
fn tensors_survive_and_bad_ones_are_refused() {
    let v = DenseTensor::new(vec![2, 2], vec![0.1, 0.0, 3e-310, 2.0], Order::ColumnMajor).unwrap();
    let text = serde_json::to_string(&v).unwrap();
    assert_eq!(serde_json::from_str::<DenseTensor<f64>>(&text).unwrap(), v);
    let signed: DenseTensor<f64> = serde_json::from_str(&text.replace("0.1", "-0.1")).unwrap();
    assert_eq!(signed.get(&[0, 0]), -0.1);
    let bad = text.replace("[2,2]", "[2,3]");
    let error = serde_json::from_str::<DenseTensor<f64>>(&bad)
        .unwrap_err()
        .to_string();
    assert!(error.contains("needs 6 values"), "{error}");

    let entries = Coordinates {
        shape: vec![2, 3],
        indices: vec![1, 2, 0, 0],
        values: vec![5.0, 0.5],
    };
    let v = SparseTensor::new(entries).unwrap();
    let text = serde_json::to_string(&v).unwrap();
    let back: SparseTensor<f64> = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
    let bad = text.replace("[2,3]", "[1,1]");
    assert!(serde_json::from_str::<SparseTensor<f64>>(&bad).is_err());
}
