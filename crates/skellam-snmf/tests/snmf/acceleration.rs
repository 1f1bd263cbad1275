//! What extrapolation leaves in the domain.

use nalgebra::{dmatrix, dvector};
use plca_fit::Accelerate;
use skellam_snmf::{CpState, Posterior, Replicates, Signed, SignedCp, Snmf, SnmfState, SnmfVb};

/// Entries that extrapolation takes to 0 or below are a tenth of the last ones, and sums are 1 again; what is above stays.
#[test]
fn entries_that_leave_the_domain_are_a_tenth_of_the_last() {
    let data = Signed::from_matrix(dmatrix![2.0, -1.0]).unwrap();
    let last = SnmfState {
        plus: dmatrix![0.5],
        minus: dmatrix![0.5],
        activations: dmatrix![3.0, 4.0],
    };
    let config = Snmf::builder(1).build().unwrap();
    let em = config.on(&data).unwrap();
    let fallback = em.pack(&last);
    // 0.4 and a tenth of 0.5, over their sum.
    let found = em.unpack(&last, &[0.4, 0.0, -2.0, 9.0], &fallback);
    assert!((em.pack(&found)[0] - 0.4 / 0.45).abs() < 1e-15);
    assert!((em.pack(&found)[1] - 0.05 / 0.45).abs() < 1e-15);
    assert!((found.activations - dmatrix![0.3, 9.0]).amax() < 1e-15);

    let last = CpState {
        plus: last.plus,
        minus: last.minus,
        weights: dvector![4.0],
        factors: vec![dmatrix![0.25; 0.75]],
    };
    let config = SignedCp::new(1, Replicates::Limit).unwrap();
    let em = config.on(&data, &[2]).unwrap();
    let fallback = em.pack(&last);
    let found = em.unpack(&last, &[0.4, 0.0, -2.0, 0.0, 0.1], &fallback);
    let want = [0.4 / 0.45, 0.05 / 0.45, 0.4, 0.2, 0.8];
    for (got, want) in em.pack(&found).into_iter().zip(want) {
        assert!((got - want).abs() < 1e-15, "{got} is not {want}");
    }
}

/// A shape is extrapolated no lower than 0.02, or than the last one where that was lower; rates and frozen blocks are not
/// extrapolated.
/// [SKELLAM 9]
#[test]
fn extrapolated_shapes_are_clipped() {
    let data = Signed::from_matrix(dmatrix![2.0, -1.0]).unwrap();
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
