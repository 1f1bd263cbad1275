//! States that are written down and read again: equal, and never larger than what was read.

use nalgebra::{DVector, dmatrix};
use plca_fit::{Init, Model};
use plca_tensor::strategies::written;
use plca_tensor::{DenseTensor, Order};
use pntf_l2::{ColumnNmfState, MixtureState, NtfState, Pntf, PntfState};

use crate::support::after;

#[test]
fn no_matrix_claims_more_than_it_holds() {
    let matrix = || dmatrix![0.5, 0.25; 0.5, 0.75];
    let pntf = PntfState::new(DVector::from_element(2, 0.5), vec![matrix(), matrix()]).unwrap();
    written![
        (pntf.clone(), 4),
        (NtfState::new(vec![matrix(); 3]).unwrap(), 3),
        (ColumnNmfState::new(matrix(), matrix()).unwrap(), 2),
        (MixtureState::new(1, matrix(), vec![matrix()]).unwrap(), 2),
    ];
    let data = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.5, 2.0], Order::RowMajor).unwrap();
    let fit = after(&Pntf::new(2), &data, &pntf, 2);
    written![(fit.checkpoint().clone(), 4)];
}

/// What is no state of the model is refused where it is read.
#[test]
fn what_is_read_is_checked() {
    let data = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.5, 2.0], Order::RowMajor).unwrap();
    let ntf = NtfState::new(vec![dmatrix![1.0; 0.0], dmatrix![2.0; 1.0]]).unwrap();
    let saved = serde_json::to_string(&ntf).unwrap();
    assert!(serde_json::from_str::<ColumnNmfState<f64>>(&saved).is_err());
    let pntf = Pntf::new(1);
    let pntf = pntf
        .init(&data, Init::default(), &mut crate::support::rng(0))
        .unwrap();
    let saved = serde_json::to_string(&pntf).unwrap();
    let broken = saved.replace("factor_1", "factor_2");
    let error = serde_json::from_str::<PntfState<f64>>(&broken).unwrap_err();
    assert!(error.to_string().contains("factor_1"), "{error}");
}
