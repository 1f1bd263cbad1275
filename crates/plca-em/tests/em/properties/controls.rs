//! Wrong methods, and the property that catches each: a test that cannot fail shows nothing.

use nalgebra::{DMatrix, DVector};
use plca_fit::laws::{Law, check_threads};
use plca_tensor::strategies::{Start, Table};
use plca_tensor::{Cp, Data, Factor, Modes, Order, Request, normalise_columns, simplex_error};

use super::conditions::{
    agree, components_are_alike, modes_are_alike, power_of_two_is_carried, rises, rows_are_alike,
    stays_on_the_simplex,
};
use super::methods::{Block, Step};

/// What is wrong with the M-step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// `F ∝ C^1.2`.
    Sharpened,
    /// `F = C / v`.
    WrongDivisor,
    /// Counts of the first component are 1 % too large.
    FirstComponent,
    /// Counts of the first index of every mode are 1 % too large.
    FirstIndex,
    /// Modes one after the other, each seeing the new factors of those before.
    ModesInTurn,
    /// 1e-6 is added to every count, in no unit.
    Floor,
    /// The number of threads is added in.
    Threads,
}

fn step(data: &dyn Data<f64>, start: &mut Start<f64>, fault: Fault) -> f64 {
    let order = start.factors.len();
    let mut value = 0.0;
    let mut new = start.clone();
    let passes = if fault == Fault::ModesInTurn {
        order
    } else {
        1
    };
    for pass in 0..passes {
        let source = if passes == 1 {
            start.clone()
        } else {
            new.clone()
        };
        let factors: Vec<_> = source.factors.iter().map(Factor::Columns).collect();
        let model = Cp {
            weights: Some(source.weights.as_slice()),
            factors: &factors,
        };
        let modes: Modes = (0..order).filter(|&j| passes == 1 || j == pass).collect();
        let request = Request::counts(modes).value(true);
        let mut e = data.e_step(&model, &request).unwrap();
        if pass == 0 {
            value = e.value();
        }
        for j in (0..order).filter(|&j| modes.contains(j)) {
            let mut counts = e.take(j);
            match fault {
                Fault::Sharpened => counts.apply(|c| *c = c.powf(1.2)),
                Fault::FirstComponent => counts.column_mut(0).scale_mut(1.01),
                Fault::FirstIndex => counts.row_mut(0).scale_mut(1.01),
                Fault::Floor => counts.add_scalar_mut(1e-6),
                Fault::Threads => {
                    counts[(0, 0)] *= 1.0 + 1e-15 * rayon::current_num_threads() as f64;
                }
                Fault::None | Fault::WrongDivisor | Fault::ModesInTurn => {}
            }
            if fault == Fault::WrongDivisor {
                counts /= data.total();
                new.factors[j] = counts;
                continue;
            }
            let n = DVector::from_vec(normalise_columns(&mut counts));
            new.factors[j] = counts;
            new.weights = &n / n.sum();
        }
    }
    *start = new;
    value
}

fn method(fault: Fault) -> impl Fn(&dyn Data<f64>, &Start<f64>, usize) -> Vec<Step<f64>> + Sync {
    move |data, start, n| {
        let mut state = start.clone();
        (0..=n)
            .map(|_| {
                let weights =
                    DMatrix::from_column_slice(state.weights.len(), 1, state.weights.as_slice());
                let blocks = std::iter::once(Block::new(None, weights.transpose())).chain(
                    (state.factors.iter().enumerate()).map(|(j, f)| Block::new(Some(j), f.clone())),
                );
                let blocks = blocks.collect();
                let simplex = (state.factors.iter().map(simplex_error))
                    .fold(simplex_error(&weights), f64::max);
                let value = step(data, &mut state, fault);
                Step {
                    value,
                    blocks,
                    simplex,
                    seen: 1.0,
                }
            })
            .collect()
    }
}

fn problem() -> (Table<f64>, Start<f64>) {
    let values = vec![4.0, 0.0, 1.0, 2.0, 0.5, 3.0, 0.0, 1.5, 6.0, 1.0, 0.25, 2.0];
    let column = |m: DMatrix<f64>| {
        let mut m = m;
        normalise_columns(&mut m);
        m
    };
    let table = Table {
        shape: vec![3, 4],
        observed: vec![true; values.len()],
        values,
    };
    let start = Start {
        weights: DVector::from_vec(vec![0.3, 0.7]),
        factors: vec![
            column(DMatrix::from_row_slice(
                3,
                2,
                &[1.0, 2.0, 3.0, 1.0, 2.0, 2.0],
            )),
            column(DMatrix::from_row_slice(
                4,
                2,
                &[2.0, 1.0, 1.0, 3.0, 1.0, 1.0, 4.0, 2.0],
            )),
        ],
    };
    (table, start)
}

/// Every condition on one method: which of them break, and how.
fn broken(fault: Fault) -> Vec<(&'static str, String)> {
    let (table, start) = problem();
    let method = method(fault);
    let dense =
        |t: &Table<f64>| -> Box<dyn Data<f64>> { Box::new(t.dense(Order::RowMajor).unwrap()) };
    let data = dense(&table);
    let p = (&table, &start);
    #[rustfmt::skip]
    let results = [
        ("rises", rises(&method, &*data, &start, 40)),
        ("simplex", stays_on_the_simplex(&method(&*data, &start, 5))),
        ("components", components_are_alike(&method, &*data, &start, &[1, 0])),
        ("rows", rows_are_alike(&method, &dense, p, (0, &[1, 2, 0]))),
        ("modes", modes_are_alike(&method, &dense, p, &[1, 0])),
        ("scale", power_of_two_is_carried(&method, &dense, p, 2f64.powi(-40))),
        ("threads", check_threads(|| method(&*data, &start, 3)).map_err(Into::into)),
    ];
    results
        .into_iter()
        .filter_map(|(name, r)| Some((name, r.err()?.to_string())))
        .collect()
}

#[test]
fn the_right_method_breaks_nothing() {
    assert_eq!(broken(Fault::None), []);
}

#[test]
fn every_fault_is_caught() {
    for (fault, condition, how) in [
        (Fault::Sharpened, "rises", "law `Monotone`"),
        (Fault::WrongDivisor, "simplex", "off by"),
        (Fault::FirstComponent, "components", "law `Permutation`"),
        (Fault::FirstIndex, "rows", "law `Permutation`"),
        (Fault::ModesInTurn, "modes", "law `Permutation`"),
        (Fault::Floor, "scale", "law `Scale`"),
        (Fault::Threads, "threads", "law `Threads`"),
    ] {
        let broken = broken(fault);
        let caught = |(name, found): &(_, String)| *name == condition && found.contains(how);
        assert!(
            broken.iter().any(caught),
            "{fault:?} breaks only {broken:?}"
        );
    }
}

/// Hidden cells taken for zeros: another answer than that of the mask.
// [SPEC 4]
#[test]
fn zero_filling_is_not_a_mask() {
    let (mut table, start) = problem();
    table.observed[4] = false;
    let method = method(Fault::None);
    let masked = super::setups::Setup::from(super::setups::Kind::Plca).method();
    let mut zeros = table.clone();
    zeros.values[4] = 0.0;
    let (filled, hidden) = (
        zeros.dense(Order::RowMajor).unwrap(),
        table.masked(Order::RowMajor).unwrap(),
    );
    let (a, b) = (method(&filled, &start, 3), masked(&hidden, &start, 3));
    assert!(agree(Law::Same, &a, &b, hidden.total()).is_err());
}
