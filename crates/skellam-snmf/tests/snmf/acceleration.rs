//! What extrapolation leaves in the domain.

use nalgebra::{dmatrix, dvector};
use plca_fit::{Algorithm, Model, Parameters, State};
use plca_tensor::{DenseTensor, Order};
use skellam_snmf::{Posterior, SignedCp, SignedCpState, Snmf, SnmfState, SnmfVb, SnmfVbState};

use crate::support::tensor;

fn flat(at: &Parameters<f64>) -> Vec<f64> {
    let values = at.matrices().iter().flat_map(|block| block.iter());
    values.copied().collect()
}

/// Where extrapolated values lead from parameters that are the last ones too.
fn extrapolated(
    algorithm: &dyn Algorithm<f64>,
    last: &Parameters<f64>,
    values: &[f64],
) -> Vec<f64> {
    flat(&algorithm.extrapolated(last, values, &flat(last)))
}

fn near(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() < 1e-15, "{got} is not {want}");
    }
}

/// Entries that extrapolation takes to 0 or below are a tenth of the last ones, and sums are 1 again; what is above stays.
#[test]
fn entries_that_leave_the_domain_are_a_tenth_of_the_last() {
    let half = dmatrix![0.5];
    let last = SnmfState::new(&half, &half, dmatrix![3.0, 4.0]).unwrap();
    let (config, data) = (
        Snmf::new(1).replicates(skellam_snmf::Replicates::Limit),
        tensor(&dmatrix![2.0, -1.0]),
    );
    let em = config.bind(&data).unwrap();
    let found = extrapolated(&*em, last.parameters(), &[0.4, 0.0, -2.0, 9.0]);
    // 0.4 and a tenth of 0.5, over their sum.
    near(&found, &[0.4 / 0.45, 0.05 / 0.45, 0.3, 9.0]);

    let factors = vec![dmatrix![0.25; 0.75]];
    let last = SignedCpState::new(&half, &half, &dvector![4.0], factors, 0).unwrap();
    let config = SignedCp::new(1).replicates(skellam_snmf::Replicates::Limit);
    let em = config.bind(&data).unwrap();
    let found = extrapolated(&*em, last.parameters(), &[0.4, 0.0, -2.0, 0.0, 0.1]);
    near(&found, &[0.4 / 0.45, 0.05 / 0.45, 0.4, 0.2, 0.8]);
}

/// A shape is extrapolated no lower than 0.02, or than the last one where that was lower; rates and frozen blocks are not
/// extrapolated.
/// [SKELLAM 9]
#[test]
fn extrapolated_shapes_are_clipped() {
    let last = Posterior {
        plus: dmatrix![0.5],
        minus: dmatrix![0.01],
        shape: dmatrix![3.0, 0.004],
        rate: dmatrix![2.0, 5.0],
    };
    let last = SnmfVbState::new(last).unwrap();
    let last = last.parameters();
    assert_eq!(flat(last), [0.5, 0.01, 3.0, 0.004, 2.0, 5.0]);
    let data = DenseTensor::new(vec![1, 2], vec![2.0, -1.0], Order::RowMajor).unwrap();
    let found = |frozen: &[&'static str], values: [f64; 4]| {
        let config = frozen
            .iter()
            .fold(SnmfVb::new(1), |vb, &name| vb.freeze(name));
        let vb = config.bind(&data).unwrap();
        let values = [&values[..], &[7.0, 0.5]].concat();
        let found = extrapolated(&*vb, last, &values);
        assert_eq!(found[4..], [2.0, 5.0]);
        found[..4].to_vec()
    };
    assert_eq!(found(&[], [0.5, 0.01, 3.0, 0.004]), flat(last)[..4]);
    assert_eq!(found(&[], [-4.0, 0.0, 7.0, -1.0]), [0.02, 0.01, 7.0, 0.004]);
    let raised = [0.015, 0.015, 0.03, 0.4];
    assert_eq!(found(&[], raised), [0.02, 0.015, 0.03, 0.4]);
    let atoms = found(&["atoms_shape"], raised);
    assert_eq!(atoms, [0.5, 0.01, 0.03, 0.4]);
    let activations = found(&["activations_shape", "activations_rate"], raised);
    assert_eq!(activations, [0.02, 0.015, 3.0, 0.004]);
}
