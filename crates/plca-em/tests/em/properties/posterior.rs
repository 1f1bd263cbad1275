//! The posterior of a cell, and events drawn from a model.

use plca_em::{EmError, posterior, sample_counts};
use plca_tensor::strategies::{Start, Table, problems};
use plca_tensor::{Cp, Factor, Real, normalise_columns};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::conditions::Precision;
use super::statistics::{blocks, expect};
use super::storages::{complete, masked};

fn with_model<T: Real, O>(start: &Start<T>, weighted: bool, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
    let factors: Vec<_> = start.factors.iter().map(Factor::Columns).collect();
    let weights = weighted.then_some(start.weights.as_slice());
    f(&Cp {
        weights,
        factors: &factors,
    })
}

/// `P(z) Π_j P(x_j | z)` of every component.
fn joint<T: Real>(start: &Start<T>, weighted: bool, index: &[usize]) -> Vec<f64> {
    let of = |z: usize| {
        let factors = start.factors.iter().zip(index);
        let product: f64 = factors.map(|(f, &i)| f[(i, z)].to_f64()).product();
        let weight = if weighted {
            start.weights[z].to_f64()
        } else {
            1.0
        };
        weight * product
    };
    (0..start.weights.len()).map(of).collect()
}

/// Problems whose models have zeros: cells that no component reaches, components without any mass.
fn with_zeros<T: Real>() -> impl Strategy<Value = (Table<T>, Start<T>)> {
    problems::<T>(1..=4, 1..=5, 1..=4).prop_flat_map(|(table, start)| {
        let entries = start.weights.len() + start.factors.iter().map(|f| f.len()).sum::<usize>();
        let zero = prop::collection::vec(prop::bool::weighted(0.3), entries);
        (Just(table), Just(start), zero).prop_map(|(table, mut start, zero)| {
            let factors = start.factors.iter_mut().flat_map(|f| f.iter_mut());
            for (x, _) in (start.weights.iter_mut().chain(factors).zip(zero)).filter(|p| p.1) {
                *x = T::zero();
            }
            for factor in &mut start.factors {
                normalise_columns(factor);
            }
            (table, start)
        })
    })
}

/// Cell by cell the quotient of the formula, which sums to 1; none where the model has nothing.
fn is_the_formula<T: Real>(
    (table, start): &(Table<T>, Start<T>),
    weighted: bool,
) -> Result<(), TestCaseError> {
    for at in 0..table.values.len() {
        let index = table.index(at);
        let want = joint(start, weighted, &index);
        let total: f64 = want.iter().sum();
        let got = with_model(start, weighted, |model| posterior(model, &index));
        let Some(got) = got else {
            prop_assert!(total <= 0.0, "{index:?}: {want:?}");
            continue;
        };
        prop_assert!((got.iter().sum::<f64>() - 1.0).abs() <= 1e-15 * got.len() as f64);
        for (g, w) in got.iter().zip(&want) {
            prop_assert!(
                (g - w / total).abs() <= 1e-14,
                "{index:?}: {got:?} {want:?}"
            );
        }
    }
    Ok(())
}

/// The counts of an E-step are sums of posteriors: `C_j[i,z] = Σ_{x: x_j = i} V[x] P(z | x)`.
fn counts_are_its_sums<T: Precision>(
    (table, start): &(Table<T>, Start<T>),
) -> Result<(), TestCaseError> {
    let hidden = |all: bool| move |at: &usize| all || table.observed[*at];
    for (storages, all) in [(complete(table), true), (masked(table), false)] {
        let mut want: Vec<_> = start.factors.iter().map(|f| f.map(|_| 0.0)).collect();
        for at in (0..table.values.len()).filter(hidden(all)) {
            let index = table.index(at);
            let share = with_model(start, true, |model| posterior(model, &index)).unwrap();
            for (counts, &i) in want.iter_mut().zip(&index) {
                for (z, share) in share.iter().enumerate() {
                    counts[(i, z)] += table.values[at].to_f64() * share;
                }
            }
        }
        for (name, data) in storages {
            let got = expect(&*data, start);
            for (got, want) in blocks(&got).zip(&want) {
                let allowed = T::SAME * data.total();
                let mut pairs = got.iter().zip(want);
                let close = pairs.all(|(g, w)| (g.to_f64() - w).abs() <= allowed);
                prop_assert!(close, "{name}: {got} {want}");
            }
        }
    }
    Ok(())
}

/// As many events as asked for, one each, all where the model can be.
fn draws_are_possible<T: Real>(
    (table, start): &(Table<T>, Start<T>),
    weighted: bool,
    seed: u64,
) -> Result<(), TestCaseError> {
    const DRAWS: usize = 200;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let drawn = with_model(start, weighted, |model| {
        (sample_counts(model, DRAWS, &mut rng), model.mass())
    });
    let events = match drawn {
        (Err(error), mass) => {
            prop_assert_eq!((error, mass), (EmError::NoMass, 0.0));
            return Ok(());
        }
        (Ok(events), _) => events,
    };
    prop_assert_eq!(&events.shape, &table.shape);
    prop_assert_eq!(events.values, vec![T::one(); DRAWS]);
    prop_assert_eq!(events.indices.len(), DRAWS * table.shape.len());
    for event in events.indices.chunks_exact(table.shape.len()) {
        let index: Vec<usize> = event.iter().map(|&i| i as usize).collect();
        prop_assert!(index.iter().zip(&table.shape).all(|(i, n)| i < n));
        let p: f64 = joint(start, weighted, &index).iter().sum();
        prop_assert!(p > 0.0, "{index:?} was drawn");
    }
    Ok(())
}

proptest! {
    /// `P(z | x) = P(z) Π_j P(x_j | z) / P(x)`.
    // [SI eq. 2] [LV eq. 12] [SPEC 1.1]
    #[test]
    fn posteriors_are_the_formula_f64(p in with_zeros::<f64>(), weighted: bool) {
        is_the_formula(&p, weighted)?;
    }

    /// As for `f64`.
    // [SI eq. 2] [LV eq. 12] [SPEC 1.1]
    #[test]
    fn posteriors_are_the_formula_f32(p in with_zeros::<f32>(), weighted: bool) {
        is_the_formula(&p, weighted)?;
    }

    // [SI eq. 2] [LV eq. 12] [SPEC 1.1]
    #[test]
    fn counts_are_sums_of_posteriors_f64(p in problems::<f64>(1..=4, 1..=5, 1..=4)) {
        counts_are_its_sums(&p)?;
    }

    /// As for `f64`.
    // [SI eq. 2] [LV eq. 12] [SPEC 1.1]
    #[test]
    fn counts_are_sums_of_posteriors_f32(p in problems::<f32>(1..=4, 1..=5, 1..=4)) {
        counts_are_its_sums(&p)?;
    }

    #[test]
    fn draws_are_possible_f64(p in with_zeros::<f64>(), weighted: bool, seed: u64) {
        draws_are_possible(&p, weighted, seed)?;
    }

    #[test]
    fn draws_are_possible_f32(p in with_zeros::<f32>(), weighted: bool, seed: u64) {
        draws_are_possible(&p, weighted, seed)?;
    }
}

/// Standard deviations by which the χ² of draws from one model exceeds its mean under another.
fn excess(drawn: &Start<f64>, judged: &Start<f64>) -> f64 {
    const DRAWS: usize = 100_000;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let events = with_model(drawn, true, |model| sample_counts(model, DRAWS, &mut rng)).unwrap();
    let shape = &events.shape;
    let mut counts = vec![0.0; shape.iter().product()];
    for event in events.indices.chunks_exact(shape.len()) {
        let at = (event.iter().zip(shape)).fold(0, |at, (&i, n)| at * n + i as usize);
        counts[at] += 1.0;
    }
    let table = Table {
        shape: shape.clone(),
        observed: vec![true; counts.len()],
        values: counts,
    };
    let n = DRAWS as f64;
    let terms = table.values.iter().enumerate().map(|(at, count)| {
        let p: f64 = joint(judged, true, &table.index(at)).iter().sum();
        (count - n * p).powi(2) / (n * p)
    });
    let free = table.values.len() as f64 - 1.0;
    (terms.sum::<f64>() - free) / (2.0 * free).sqrt()
}

/// Frequencies are the model's, and not those of a model with other weights.
#[test]
fn frequencies_are_probabilities() {
    let factor = |rows: usize, salt: usize| {
        let mut f =
            nalgebra::DMatrix::from_fn(rows, 2, |i, z| 1.0 + ((i * 5 + z * salt) % 4) as f64);
        normalise_columns(&mut f);
        f
    };
    let model = Start {
        weights: nalgebra::DVector::from_vec(vec![0.2, 0.8]),
        factors: vec![factor(3, 1), factor(4, 2), factor(2, 3)],
    };
    let mut other = model.clone();
    other.weights.swap_rows(0, 1);
    assert!(excess(&model, &model) < 6.0);
    assert!(excess(&model, &other) > 100.0);
}
