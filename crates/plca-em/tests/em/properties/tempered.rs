//! Tempered EM: at a fixed power `b` it is `L_b` that rises, not `L`.

use nalgebra::DMatrix;
use plca_em::{Given, Plca, PlcaState, Plsa, PlsaState};
use plca_fit::Sense;
use plca_fit::laws::{Rounding, never_worse};
use plca_fit::{FitError, Init, Model, State};
use plca_tensor::strategies::{Start, Table, problems};
use plca_tensor::{Cp, Data, Factor, Modes, Real, Request};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::conditions::Precision;
use super::methods::mixture;
use super::storages::{complete, masked};

/// `L_b = Σ V ln Σ_z w_z Π_j F_j^b` [SPEC 1.4].
fn tempered<T: Real>(
    data: &dyn Data<T>,
    weights: Option<&[T]>,
    factors: &[(&DMatrix<T>, bool)],
    b: f64,
) -> f64 {
    let powers: Vec<_> = (factors.iter())
        .map(|(f, _)| f.map(|x| x.powf(T::lit(b))))
        .collect();
    let factors: Vec<_> = (powers.iter().zip(factors))
        .map(|(f, &(_, rows))| {
            if rows {
                Factor::Rows(f)
            } else {
                Factor::Columns(f)
            }
        })
        .collect();
    let model = Cp {
        weights,
        factors: &factors,
    };
    let value = Request::counts(Modes::NONE).value(true);
    data.e_step(&model, &value).unwrap().value()
}

/// Runs `n` iterations; `see` is shown every state and its likelihood.
fn watch<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    init: Init<T>,
    n: usize,
    mut see: impl FnMut(&M::State, f64),
) -> Result<(), FitError> {
    let em = model.bind(data)?;
    let mut at = init.parameters(&*em, &mut ChaCha8Rng::seed_from_u64(0))?;
    for left in (0..=n).rev() {
        see(&M::State::wrap(at.clone())?, em.objective(&at)?);
        if left > 0 {
            em.step(&mut at, false)?;
        }
    }
    Ok(())
}

/// [`watch`] over a configuration from a start.
fn plca<T: Real>(
    data: &dyn Data<T>,
    start: &Start<T>,
    settings: impl FnOnce(Plca) -> Plca,
    n: usize,
    see: impl FnMut(&PlcaState<T>, f64),
) -> Result<(), FitError> {
    let plca = settings(Plca::new(start.weights.len()));
    let state = PlcaState::new(start.weights.clone(), start.factors.clone())?;
    watch(&plca, data, Init::from(&state), n, see)
}

/// As [`plca`].
fn plsa<T: Real>(
    data: &dyn Data<T>,
    start: &Start<T>,
    settings: impl FnOnce(Plsa) -> Plsa,
    n: usize,
    see: impl FnMut(&PlsaState<T>, f64),
) -> Result<(), FitError> {
    let plsa = settings(Plsa::new(start.weights.len()).given(Given::Columns));
    let init = Init::default().block("basis", start.factors[0].clone());
    let init = init.block("mixture", mixture(start, 1));
    watch(&plsa, data, init, n, see)
}

/// `L` and `L_b` of the states after 0, …, 25 iterations.
fn of_plca<T: Real>(
    data: &dyn Data<T>,
    start: &Start<T>,
    b: f64,
    prior_too: bool,
) -> Vec<(f64, f64)> {
    let mut run = Vec::new();
    let settings = |c: Plca| c.temper(b).temper_prior(prior_too);
    plca(data, start, settings, 25, |state, plain| {
        let power = |w: T| if prior_too { w.powf(T::lit(b)) } else { w };
        let weights: Vec<T> = state.weights().iter().map(|&w| power(w)).collect();
        let factors: Vec<_> = state.factors().iter().map(|f| (f, false)).collect();
        run.push((plain, tempered(data, Some(&weights), &factors, b)));
    })
    .unwrap();
    run
}

/// As [`of_plca`].
fn of_plsa<T: Real>(data: &dyn Data<T>, start: &Start<T>, b: f64) -> Vec<(f64, f64)> {
    let mut run = Vec::new();
    plsa(
        data,
        start,
        |c| c.temper(b),
        25,
        |state, plain| {
            let factors = [(state.basis(), false), (state.mixture(), true)];
            run.push((plain, tempered(data, None, &factors, b)));
        },
    )
    .unwrap();
    run
}

fn fall(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.windows(2).map(|w| w[0] - w[1]).fold(0.0, f64::max)
}

fn rises<T: Precision>(
    (table, start): &(Table<T>, Start<T>),
    b: f64,
    prior_too: bool,
) -> Result<(), TestCaseError> {
    for (name, data) in complete(table) {
        let mut runs = vec![of_plca(&*data, start, b, prior_too)];
        if table.shape.len() == 2 {
            runs.push(of_plsa(&*data, start, b));
        }
        for run in runs {
            let rounding = Rounding {
                relative: 0.0,
                absolute: T::FALL * (1.0 + run[0].1.abs() + data.total()),
            };
            let values: Vec<_> = run.iter().map(|r| (r.1, rounding)).collect();
            never_worse(Sense::Maximise, &values)
                .map_err(|e| TestCaseError::fail(format!("{name}: {e}")))?;
        }
    }
    Ok(())
}

/// The states of PLCA after 0, …, 5 iterations.
fn states<T: Real>(
    data: &dyn Data<T>,
    start: &Start<T>,
    settings: impl FnOnce(Plca) -> Plca,
) -> Vec<PlcaState<T>> {
    let mut all = Vec::new();
    plca(data, start, settings, 5, |state, _| all.push(state.clone())).unwrap();
    all
}

/// As [`states`].
fn states_of_plsa<T: Real>(
    data: &dyn Data<T>,
    start: &Start<T>,
    settings: impl FnOnce(Plsa) -> Plsa,
) -> Vec<PlsaState<T>> {
    let mut all = Vec::new();
    plsa(data, start, settings, 5, |state, _| all.push(state.clone())).unwrap();
    all
}

fn one_is_plain<T: Real>((table, start): &(Table<T>, Start<T>)) -> Result<(), TestCaseError> {
    for (name, data) in complete(table).into_iter().chain(masked(table)) {
        let plain = states(&*data, start, |c| c);
        for prior_too in [false, true] {
            let got = states(&*data, start, |c| c.temper(1.0).temper_prior(prior_too));
            prop_assert_eq!(&got, &plain, "{}", name);
        }
        if table.shape.len() == 2 {
            let plain = states_of_plsa(&*data, start, |c| c);
            let got = states_of_plsa(&*data, start, |c| c.temper(1.0));
            prop_assert_eq!(got, plain, "{}", name);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// `L_b(θ_{n+1}) >= L_b(θ_n)` on complete data.
    // [HOFMANN alg. TEM] [SPEC 1.4]
    #[test]
    fn tempered_likelihood_never_falls_f64(
        p in problems::<f64>(1..=4, 1..=5, 1..=4), b in 0.2..1.0f64, prior_too: bool,
    ) {
        rises(&p, b, prior_too)?;
    }

    /// As for `f64`.
    // [SPEC 1.4]
    #[test]
    fn tempered_likelihood_never_falls_f32(
        p in problems::<f32>(1..=4, 1..=5, 1..=4), b in 0.2..1.0f64, prior_too: bool,
    ) {
        rises(&p, b, prior_too)?;
    }

    /// `b = 1` is plain EM bit for bit, in every storage.
    // [SPEC 1.4]
    #[test]
    fn power_one_is_plain_f64(p in problems::<f64>(1..=4, 1..=5, 1..=4)) {
        one_is_plain(&p)?;
    }

    /// As for `f64`.
    // [SPEC 1.4]
    #[test]
    fn power_one_is_plain_f32(p in problems::<f32>(1..=4, 1..=5, 1..=4)) {
        one_is_plain(&p)?;
    }
}

fn fixed() -> (plca_tensor::DenseTensor<f64>, Start<f64>) {
    let data = plca_tensor::DenseTensor::new(
        vec![3, 3],
        vec![9.0, 1.0, 0.5, 1.0, 8.0, 2.0, 0.5, 2.0, 7.0],
        plca_tensor::Order::RowMajor,
    );
    let f = DMatrix::from_row_slice(3, 2, &[0.9, 0.04, 0.06, 0.5, 0.04, 0.46]);
    let start = Start {
        weights: nalgebra::DVector::from_vec(vec![0.4, 0.6]),
        factors: vec![f.clone(), f],
    };
    (data.unwrap(), start)
}

/// The control: from the optimum of `L`, tempering lowers `L` while `L_b` rises.
// [SPEC 1.4]
#[test]
fn plain_likelihood_falls() {
    let (data, start) = fixed();
    let run = of_plca(&data, &start, 0.5, false);
    assert!(fall(run.iter().map(|r| r.0)) > 1e-3);
    assert!(fall(run.iter().map(|r| r.1)) <= 1e-12 * (1.0 + run[0].1.abs()));
}

/// The control: a power of 0.9 is another step, and so is `P(z)` under it.
// [SPEC 1.4]
#[test]
fn power_below_one_is_not_plain() {
    let (data, start) = fixed();
    let after = |settings: fn(Plca) -> Plca| {
        let state = states(&data, &start, settings).swap_remove(1);
        (state.factor(0).clone(), state.parameters().at(0).clone())
    };
    let plain = after(|c| c);
    let factors_only = after(|c| c.temper(0.9));
    let both = after(|c| c.temper(0.9).temper_prior(true));
    for (a, b) in [
        (&plain, &factors_only),
        (&plain, &both),
        (&factors_only, &both),
    ] {
        assert!((&a.0 - &b.0).amax() > 1e-6 && (&a.1 - &b.1).amax() > 1e-6);
    }
    let of_plsa = |settings: fn(Plsa) -> Plsa| {
        states_of_plsa(&data, &start, settings)
            .swap_remove(1)
            .basis()
            .clone()
    };
    assert!((of_plsa(|c| c) - of_plsa(|c| c.temper(0.9))).amax() > 1e-6);
}
