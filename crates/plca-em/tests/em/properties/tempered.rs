//! Tempered EM: at a fixed power `b` it is `L_b` that rises, not `L`.

use plca_em::{Algorithm, Given, Plca, PlcaState, Plsa, PlsaState};
use plca_tensor::strategies::{Start, problems};
use plca_tensor::{Factor, Model, Observed, Wanted};
use proptest::prelude::*;

use super::methods::mixture;
use super::storages::complete;

type Matrix = nalgebra::DMatrix<f64>;

/// `L_b = Σ V ln Σ_z w_z Π_j F_j^b` [SPEC 1.4].
fn tempered(
    data: &dyn Observed<f64>,
    weights: Option<&[f64]>,
    factors: &[(&Matrix, bool)],
    b: f64,
) -> f64 {
    let powers: Vec<_> = factors.iter().map(|(f, _)| f.map(|x| x.powf(b))).collect();
    let factors: Vec<_> = (powers.iter().zip(factors))
        .map(|(f, &(_, rows))| {
            if rows {
                Factor::Rows(f)
            } else {
                Factor::Columns(f)
            }
        })
        .collect();
    let model = Model {
        weights,
        factors: &factors,
    };
    let modes = vec![false; factors.len()];
    data.expect(
        &model,
        Wanted {
            modes: &modes,
            ln_lik: true,
        },
    )
    .ln_lik
}

/// `L` and `L_b` of the states after 0, …, 25 iterations.
fn plca(data: &dyn Observed<f64>, start: &Start<f64>, b: f64, prior_too: bool) -> Vec<(f64, f64)> {
    let plca = Plca::<f64>::builder(start.weights.len())
        .temper(b)
        .temper_prior(prior_too);
    let plca = plca.build().unwrap();
    let em = plca.on(data).unwrap();
    let mut state = PlcaState {
        weights: start.weights.clone(),
        factors: start.factors.clone(),
        power: b,
        iteration: 0,
    };
    let step = |_| {
        let weights = state.weights.map(|w| if prior_too { w.powf(b) } else { w });
        let factors: Vec<_> = state.factors.iter().map(|f| (f, false)).collect();
        let of_b = tempered(data, Some(weights.as_slice()), &factors, b);
        let plain = em.objective(&state).unwrap();
        em.step(&mut state, false).unwrap();
        (plain, of_b)
    };
    (0..=25).map(step).collect()
}

fn plsa(data: &dyn Observed<f64>, start: &Start<f64>, b: f64) -> Vec<(f64, f64)> {
    let plsa = Plsa::<f64>::builder(start.weights.len())
        .given(Given::Columns)
        .temper(b);
    let plsa = plsa.build().unwrap();
    let em = plsa.on(data).unwrap();
    let mut state = PlsaState {
        basis: start.factors[0].clone(),
        mixture: mixture(start, 1),
        power: b,
        iteration: 0,
    };
    let step = |_| {
        let of_b = tempered(
            data,
            None,
            &[(&state.basis, false), (&state.mixture, true)],
            b,
        );
        let plain = em.objective(&state).unwrap();
        em.step(&mut state, false).unwrap();
        (plain, of_b)
    };
    (0..=25).map(step).collect()
}

fn fall(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.windows(2).map(|w| w[0] - w[1]).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// `L_b(θ_{n+1}) >= L_b(θ_n)` on complete data.
    // [SPEC 1.4]
    #[test]
    fn tempered_likelihood_never_falls(
        (table, start) in problems::<f64>(1..=4, 1..=5, 1..=4), b in 0.2..1.0f64, prior_too: bool,
    ) {
        for (name, data) in complete(&table).into_iter().take(3) {
            let mut runs = vec![plca(&*data, &start, b, prior_too)];
            if table.shape.len() == 2 {
                runs.push(plsa(&*data, &start, b));
            }
            for run in runs {
                let allowed = 1e-12 * (1.0 + run[0].1.abs() + data.total());
                let fell = fall(run.iter().map(|r| r.1));
                prop_assert!(fell <= allowed, "{name}: fell by {fell}");
            }
        }
    }

    /// `b = 1` is plain EM bit for bit.
    // [SPEC 1.4]
    #[test]
    fn power_one_is_plain((table, start) in problems::<f64>(2..=2, 1..=5, 1..=4)) {
        let data = table.sparse().unwrap();
        let mut states = [true, false].map(|builds| {
            let plain = Plca::<f64>::builder(start.weights.len());
            let config = if builds { plain.temper(1.0).temper_prior(true) } else { plain };
            let config = config.build().unwrap();
            let mut state = PlcaState {
                weights: start.weights.clone(),
                factors: start.factors.clone(),
                power: 1.0,
                iteration: 0,
            };
            config.on(&data).unwrap().step(&mut state, true).unwrap();
            state
        });
        let [a, b] = &mut states;
        prop_assert_eq!(a, b);
    }
}

/// The control: from the optimum of `L`, tempering lowers `L` while `L_b` rises.
// [SPEC 1.4]
#[test]
fn plain_likelihood_falls() {
    let data = plca_tensor::DenseTensor::new(
        vec![3, 3],
        vec![9.0, 1.0, 0.5, 1.0, 8.0, 2.0, 0.5, 2.0, 7.0],
        plca_tensor::Order::RowMajor,
    )
    .unwrap();
    let f = Matrix::from_row_slice(3, 2, &[0.9, 0.04, 0.06, 0.5, 0.04, 0.46]);
    let start = Start {
        weights: nalgebra::DVector::from_vec(vec![0.4, 0.6]),
        factors: vec![f.clone(), f],
    };
    let run = plca(&data, &start, 0.5, false);
    assert!(fall(run.iter().map(|r| r.0)) > 1e-3);
    assert!(fall(run.iter().map(|r| r.1)) <= 1e-12 * (1.0 + run[0].1.abs()));
}
