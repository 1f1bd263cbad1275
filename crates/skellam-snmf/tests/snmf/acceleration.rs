//! What extrapolation leaves in the domain.

use nalgebra::dmatrix;
use plca_fit::Accelerate;
use skellam_snmf::{Posterior, SignedMatrix, SnmfVb};

/// A shape is extrapolated no lower than 0.02, or than the last one where that was lower; rates and frozen blocks are not
/// extrapolated.
/// [SKELLAM 9]
#[test]
fn extrapolated_shapes_are_clipped() {
    let data = SignedMatrix::new(&dmatrix![2.0, -1.0]).unwrap();
    let config = SnmfVb::builder(1).build().unwrap();
    let vb = config.on(&data).unwrap();
    let last = Posterior {
        plus: dmatrix![0.5],
        minus: dmatrix![0.01],
        shape: dmatrix![3.0, 0.004],
        rate: dmatrix![2.0, 5.0],
    };
    let flat = vb.pack(&last);
    assert_eq!(flat, [0.5, 0.01, 3.0, 0.004]);
    assert_eq!(vb.unpack(&last, &flat, &flat), last);
    let clipped = Posterior {
        plus: dmatrix![0.02],
        shape: dmatrix![7.0, 0.004],
        ..last.clone()
    };
    assert_eq!(vb.unpack(&last, &[-4.0, 0.0, 7.0, -1.0], &flat), clipped);
    let raised = [0.015, 0.015, 0.03, 0.4];
    let found = vb.unpack(&last, &raised, &flat);
    assert_eq!(vb.pack(&found), [0.02, 0.015, 0.03, 0.4]);
    let atoms = SnmfVb::builder(1).freeze_atoms().build().unwrap();
    let found = atoms.on(&data).unwrap().unpack(&last, &raised, &flat);
    assert_eq!(vb.pack(&found), [0.5, 0.01, 0.03, 0.4]);
    let activations = SnmfVb::builder(1).freeze_activations().build().unwrap();
    let found = activations.on(&data).unwrap().unpack(&last, &raised, &flat);
    assert_eq!(vb.pack(&found), [0.02, 0.015, 3.0, 0.004]);
}
