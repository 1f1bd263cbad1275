//! Tensors through a text format.

use plca_tensor::{Coordinates, Data, DenseTensor, Mask, Order, SparseTensor};

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

type Index = Vec<usize>;

/// What `data` shows of itself: mask, values, and the cells that it lists.
fn shown(data: &dyn Data<f64>) -> (Mask, Vec<(Index, f64)>, Vec<Index>) {
    let (mut cells, mut listed) = (Vec::new(), Vec::new());
    let each = &mut |index: &[usize], value| cells.push((index.to_vec(), value));
    data.visit(each).unwrap();
    let each = &mut |index: &[usize]| listed.push(index.to_vec());
    data.visit_mask(each).unwrap();
    (data.summary().mask, cells, listed)
}

#[test]
fn hidden_cells_survive() {
    let v = vec![0.1, f64::NAN, 0.0, 2.0];
    let v = DenseTensor::masked(vec![2, 2], v, Order::ColumnMajor).unwrap();
    let text = serde_json::to_string(&v).unwrap();
    let back: DenseTensor<f64> = serde_json::from_str(&text).unwrap();
    assert_eq!(back, v);
    assert_eq!(shown(&back), shown(&v));
    let bad = text.replace(r#""hidden":[2]"#, r#""hidden":[4]"#);
    let error = serde_json::from_str::<DenseTensor<f64>>(&bad).unwrap_err();
    assert!(error.to_string().contains("hidden cell 4"), "{error}");
    // As it was written before tensors had a mask.
    let complete = text.replace(r#","hidden":[2]"#, "");
    let complete: DenseTensor<f64> = serde_json::from_str(&complete).unwrap();
    assert!(complete.is_complete());
    // As it was written when tensors kept the order that they were given in: positions are in that order, too.
    let columns =
        r#"{"shape":[2,2],"values":[0.1,0.0,0.0,2.0],"order":"ColumnMajor","hidden":[1]}"#;
    let columns: DenseTensor<f64> = serde_json::from_str(columns).unwrap();
    assert_eq!(columns, v);
    let no_order = text.replace(r#""order":"RowMajor","#, "");
    let error = serde_json::from_str::<DenseTensor<f64>>(&no_order).unwrap_err();
    assert!(error.to_string().contains("`order`"), "{error}");

    let entries = || Coordinates {
        shape: vec![2, 3],
        indices: vec![1, 2, 0, 0, 0, 2],
        values: vec![5.0, 0.5, 0.0],
    };
    let hidden = Coordinates {
        indices: vec![0, 1],
        values: Vec::new(),
        ..entries()
    };
    let masked = [
        SparseTensor::stored_only(entries()).unwrap(),
        SparseTensor::all_but(entries(), hidden).unwrap(),
    ];
    for v in masked {
        assert!(!v.is_complete());
        let text = serde_json::to_string(&v).unwrap();
        let back: SparseTensor<f64> = serde_json::from_str(&text).unwrap();
        assert_eq!(shown(&back), shown(&v), "{text}");
    }
    let bad = r#"{"shape":[2,3],"indices":[0,0],"values":[1.0],"observed":{"all_but":[0]}}"#;
    assert!(serde_json::from_str::<SparseTensor<f64>>(bad).is_err());
}

/// NaN marks hidden cells, and is not equal to itself.
#[test]
fn a_masked_tensor_equals_its_copy_alone() {
    let v = |values: [f64; 3]| DenseTensor::masked(vec![3], values.into(), Order::RowMajor);
    let nan = f64::NAN;
    let one = v([1.0, nan, 2.0]).unwrap();
    assert_eq!(one, one.clone());
    assert_ne!(one, v([1.0, 0.0, 2.0]).unwrap());
    assert_ne!(one, v([nan, 1.0, 2.0]).unwrap());
}
