//! A part of data answers like data with its values and the same hidden cells.

use nalgebra::dmatrix;
use plca_tensor::{
    CellLikelihood, Cp, Data, DenseTensor, Factor, Modes, Order, Part, Request, Rule, SparseTensor,
};

/// Squared error: zeros count, hidden cells do not.
#[derive(Debug)]
struct Squared;

impl CellLikelihood<f64> for Squared {
    fn ratios(&self, v: &[f64], q: &mut [f64]) {
        q.copy_from_slice(v);
    }

    fn value(&self, v: &[f64], p: &[f64]) -> f64 {
        v.iter().zip(p).map(|(v, p)| (v - p).powi(2)).sum()
    }

    fn zero_is_inert(&self) -> bool {
        false
    }
}

#[test]
fn a_part_hides_what_is_hidden_under_every_rule() {
    let values = |dropped: f64| vec![3.0, f64::NAN, 0.0, dropped, 2.0, f64::NAN];
    let dense = |dropped| DenseTensor::masked(vec![3, 2], values(dropped), Order::RowMajor);
    let (whole, expected) = (dense(5.0).unwrap(), dense(0.0).unwrap());
    let entries = |kept: fn(f64) -> bool| {
        let cells = values(5.0).into_iter().enumerate();
        let cells: Vec<_> = cells.filter(|&(_, x)| kept(x)).collect();
        plca_tensor::Coordinates {
            shape: vec![3, 2],
            indices: cells
                .iter()
                .flat_map(|(at, _)| [(at / 2) as u32, (at % 2) as u32])
                .collect(),
            values: cells.into_iter().map(|(_, x)| x).collect(),
        }
    };
    let stored = SparseTensor::stored_only(entries(|x| !x.is_nan())).unwrap();
    let listed = SparseTensor::all_but(entries(|x| x > 0.0), entries(f64::is_nan)).unwrap();
    let (a, b) = (
        dmatrix![0.5, 1.0; 0.25, 0.0; 0.25, 3.0],
        dmatrix![0.25, 0.5; 0.75, 0.5],
    );
    let model = Cp {
        weights: Some(&[0.5, 0.5]),
        factors: &[Factor::Columns(&a), Factor::Columns(&b)],
    };
    let all = Request::counts(Modes::all(2)).value(true);
    let rules = [
        Rule::Poisson,
        Rule::Exposure,
        Rule::Gradient,
        Rule::Cell(&Squared),
    ];
    for whole in [&whole as &dyn Data<f64>, &stored, &listed] {
        let part = Part::of(whole, |_, x| if x == 5.0 { 0.0 } else { x }).unwrap();
        for rule in rules {
            let [got, expected] = [&part as &dyn Data<f64>, &expected]
                .map(|data| data.e_step(&model, &all.rule(rule)).unwrap());
            for mode in 0..2 {
                let error = (got.counts(mode) - expected.counts(mode)).amax();
                assert!(error < 1e-13, "{whole:?}, {rule:?}: {error}");
            }
            let error = (got.value() - expected.value()).abs();
            assert!(error < 1e-13, "{whole:?}, {rule:?}: {error}");
        }
    }
}
