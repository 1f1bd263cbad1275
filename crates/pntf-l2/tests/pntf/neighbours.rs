//! What a transform says of an observation does not depend on the others: the bits are those of the observation alone.

use nalgebra::DMatrix;
use plca_fit::{State, Transform};
use plca_tensor::strategies::permutations;
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
use pntf_l2::{ColumnNmfState, NtfState, PntfState};
use proptest::prelude::*;

/// Observations along the second of two or three modes; sizes of the others; learnt factors.
#[derive(Clone, Debug)]
struct Problem {
    sizes: Vec<usize>,
    v: DMatrix<f64>,
    factors: Vec<DMatrix<f64>>,
}

prop_compose! {
    fn problem()(sizes in prop::collection::vec(1..=6usize, 1..=2), n in 1..=70usize, k in 1..=4usize)(
        v in prop::collection::vec(prop_oneof![1 => Just(0.0), 3 => 0.1..900.0f64], sizes.iter().product::<usize>() * n),
        factors in prop::collection::vec(prop_oneof![1 => Just(0.0), 4 => 0.1..1.0f64], 12 * k),
        sizes in Just(sizes), n in Just(n), k in Just(k),
    ) -> Problem {
        let cells = sizes.iter().product::<usize>();
        let mut at = factors.into_iter();
        let factors = sizes.iter().map(|&rows| {
            let mut factor = DMatrix::from_fn(rows, k, |_, _| at.next().unwrap());
            factor.row_mut(0).apply(|x| *x += 0.1);
            plca_tensor::normalise_columns(&mut factor);
            factor
        });
        Problem { factors: factors.collect(), v: DMatrix::from_column_slice(cells, n, &v), sizes }
    }
}

fn data<T: Real>(p: &Problem, order: &[usize], sparse: bool) -> Box<dyn Data<T>> {
    let mut shape = p.sizes.clone();
    shape.insert(1, order.len());
    let mut list = Coordinates::empty(&shape);
    for (at, &y) in order.iter().enumerate() {
        for (cell, &x) in p.v.column(y).iter().enumerate().filter(|(_, x)| **x > 0.0) {
            let last = p.sizes.get(1).copied().unwrap_or(1);
            let mut index = vec![cell / last, at];
            if p.sizes.len() > 1 {
                index.push(cell % last);
            }
            list.push(&index, T::lit(x));
        }
    }
    if sparse {
        return Box::new(SparseTensor::new(list).unwrap());
    }
    let mut values = vec![T::zero(); shape.iter().product()];
    for (index, &x) in list.indices.chunks_exact(shape.len()).zip(&list.values) {
        let at = index
            .iter()
            .zip(&shape)
            .fold(0, |at, (&i, &n)| at * n + i as usize);
        values[at] = x;
    }
    Box::new(DenseTensor::new(shape, values, Order::RowMajor).unwrap())
}

fn bits<T: Real>(values: impl IntoIterator<Item = T>) -> Vec<u64> {
    values.into_iter().map(|x| x.to_f64().to_bits()).collect()
}

/// What a model finds of every observation: coefficients, gap and error.
fn found<T: Real>(model: usize, p: &Problem, data: &dyn Data<T>) -> Vec<Vec<u64>> {
    let k = p.factors[0].ncols();
    let n = data.shape()[1];
    let mut factors: Vec<DMatrix<T>> = p.factors.iter().map(|f| f.map(T::lit)).collect();
    factors.insert(1, DMatrix::from_element(1, k, T::one()));
    let how = Transform::default();
    let joined = |block: &dyn Fn(usize) -> Vec<u64>, gap: &[f64], errors: Option<&[f64]>| {
        let own = |y: usize| {
            let mut own = block(y);
            own.push(gap[y].to_bits());
            own.extend(errors.map(|errors| errors[y].to_bits()));
            own
        };
        (0..n).map(own).collect()
    };
    match model {
        0 => {
            let even = nalgebra::DVector::from_element(k, T::one() / T::lit(k as f64));
            let learnt = PntfState::new(even, factors).unwrap();
            let e = learnt.transform(data, &how.along(1)).unwrap();
            let state = e.fit.state();
            joined(
                &|y| bits(state.mixture().column(y).iter().copied()),
                &e.gap,
                state.squared_errors(),
            )
        }
        1 => {
            let learnt = NtfState::new(factors).unwrap();
            let e = learnt.transform(data, &how.along(1)).unwrap();
            let state = e.fit.state();
            joined(
                &|y| bits(state.factor(1).row(y).iter().copied()),
                &e.gap,
                state.parameters().fact("squared_errors"),
            )
        }
        _ => {
            let learnt = ColumnNmfState::new(
                factors[0].clone(),
                DMatrix::from_element(k, 1, T::one() / T::lit(k as f64)),
            )
            .unwrap();
            let e = learnt.transform(data, &how).unwrap();
            let state = e.fit.state();
            joined(
                &|y| bits(state.v().column(y).iter().copied()),
                &e.gap,
                state.parameters().fact("squared_errors"),
            )
        }
    }
}

fn alone<T: Real>(p: &Problem, order: &[usize]) -> Result<(), TestCaseError> {
    let all: Vec<usize> = (0..p.v.ncols()).collect();
    for model in 0..if p.sizes.len() == 1 { 3 } else { 2 } {
        let whole = found::<T>(model, p, &*data(p, &all, false));
        for (sparse, order) in [
            (false, order),
            (true, order),
            (true, &order[..1]),
            (false, &order[..1]),
        ] {
            let some = found::<T>(model, p, &*data(p, order, sparse));
            for (at, &y) in order.iter().enumerate() {
                prop_assert_eq!(
                    &some[at],
                    &whole[y],
                    "model {} observation {} sparse {}",
                    model,
                    y,
                    sparse
                );
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    // [PNTF 4] [PNTF 8]
    #[test]
    fn observations_know_nothing_of_each_other(
        (p, order) in problem().prop_flat_map(|p| { let n = p.v.ncols(); (Just(p), permutations(n)) }),
    ) {
        alone::<f64>(&p, &order)?;
        alone::<f32>(&p, &order)?;
    }
}
