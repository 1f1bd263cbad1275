//! Errors and what they come from: every part is said once.

use std::error::Error;
use std::path::Path;

use nalgebra::dmatrix;
use plca_em::{EmError, FitError, Online, Plsa, StreamError};
use plca_fit::Settings;
use plca_io::IoError;
use plca_media::MediaError;
use plca_tensor::{DataError, DenseTensor, Order, check_counts};

/// The parts of a chain, of which none may stand in another.
fn parts(error: &dyn Error) -> Vec<String> {
    let chain = std::iter::successors(Some(error), |&e| e.source());
    let parts: Vec<String> = chain.map(ToString::to_string).collect();
    for (at, part) in parts.iter().enumerate() {
        assert!(!part.is_empty(), "{parts:?}");
        let others = parts.iter().enumerate().filter(|(other, _)| *other != at);
        for (_, other) in others {
            assert!(!other.contains(part.as_str()), "{parts:?}");
        }
    }
    parts
}

#[test]
fn chains_say_every_part_once() {
    let zero = DenseTensor::new(vec![1, 1], vec![0.0], Order::RowMajor).unwrap();
    let zero = check_counts(&zero).unwrap_err();
    let prior = plca_priors::Dirichlet::symmetric(-1.0).unwrap_err();
    let of_block = FitError::Prior {
        block: "weights".into(),
        source: prior.clone(),
    };
    assert_eq!(parts(&of_block).len(), 2);
    let stream: StreamError<DataError> = StreamError::Batch {
        batch: 3,
        source: of_block,
    };
    assert_eq!(parts(&stream).len(), 3);
    let stop = plca_em::Stop::default().tol(-1.0).check().unwrap_err();
    let file = IoError::at(Path::new("v.npy"), "header", "is cut");
    let room = plca_io::room::<f64>(&[usize::MAX]).unwrap_err();
    let weights = pntf_l2::simplex_qp(&dmatrix![f64::NAN], &[1.0], None).unwrap_err();
    let param = Online::new(Plsa::new(1));
    let param = param
        .step(plca_em::StepSize::Constant(2.0))
        .check()
        .unwrap_err();
    let all: [&dyn Error; 12] = [
        &zero,
        &prior,
        &stop,
        &file,
        &room,
        &param,
        &EmError::from(zero.clone()),
        &FitError::from(stop),
        &MediaError::from(file.clone()),
        &MediaError::from(room.clone()),
        &FitError::from(zero.clone()),
        &weights,
    ];
    for error in all {
        parts(error);
    }
}
