//! Starts from the leading singular vectors.

use nalgebra::DMatrix;
use plca_fit::{FitError, Init, Model, nndsvd::Fill};
use plca_tensor::{DenseTensor, Order};
use pntf_l2::{Ntf, NtfUpdate};

use crate::support::rng;

#[test]
fn matrices_start_near_their_optimum() {
    let v = DMatrix::from_fn(9, 7, |i, j| ((3 * i + 5 * j + i * j) % 11) as f64);
    let data = DenseTensor::new(vec![9, 7], v.as_slice().to_vec(), Order::ColumnMajor).unwrap();
    for update in [NtfUpdate::Multiplicative, NtfUpdate::Hals] {
        let ntf = Ntf::new(3).update(update);
        let start = ntf
            .init(&data, Init::nndsvd(Fill::Zero), &mut rng(0))
            .unwrap();
        assert_eq!(
            (start.factor(0).shape(), start.factor(1).shape()),
            ((9, 3), (7, 3))
        );
        // The best approximation of rank 1 is non-negative, and is the first component.
        let svd = v.clone().svd(true, true);
        let first = svd.u.unwrap().column(0) * svd.v_t.unwrap().row(0) * svd.singular_values[0];
        let [u, w] = [0, 1].map(|j| start.factor(j).column(0).into_owned());
        assert!((u * w.transpose() - first).amax() < 1e-9);
        let fit = ntf
            .on(&data)
            .unwrap()
            .run(Init::nndsvd(Fill::Mean), &mut rng(0))
            .unwrap();
        assert!(fit.objective() < v.norm_squared() * 0.1);
    }
    let cube = DenseTensor::new(vec![2, 2, 2], vec![1.0; 8], Order::RowMajor).unwrap();
    let ntf = Ntf::new(1);
    let refused = ntf
        .init(&cube, Init::nndsvd(Fill::Mean), &mut rng(0))
        .unwrap_err();
    assert!(
        matches!(&refused, FitError::Conflict { what } if what.contains("order 3")),
        "{refused}"
    );
}
