//! `pntf`, `ntf-l2`, `snmf-ding`, `kmeans`.

use plca::fit::laws::Terms;
use plca::l2::NtfUpdate;
use plca::prelude::*;
use plca::tensor::strategies::Table;
use plca::{
    fit::Parameters,
    priors::Penalty,
    skellam::{Ding, KMeans},
    tensor::Real,
};

use super::{block, by_columns, factors, observed, product, root};
use crate::problem::{Kind, Problem};
use crate::table::{Explains, Measured, StateOf, Subject};

/// `Σ (V - Y)²`.
fn squared_error(cells: &Table<f64>, scale: f64, y: impl Fn(&[usize]) -> f64) -> Terms {
    let mut terms = Terms::default();
    for (index, v) in observed(cells) {
        let (v, y) = (v * scale, y(&index));
        terms.add_of((v - y).powi(2), v * v + y * y);
    }
    terms
}

/// The largest powers of ten whose squares are numbers of the objective.
const SQUARES: [f64; 2] = [140.0, 28.0];

pub(crate) struct Pntfs;

/// The sparsity of a block.
fn sparsity(problem: &Problem) -> Option<(&'static str, f64)> {
    let block = ["factor_0", "weights"][problem.choice(1, 2)];
    (problem.choice(0, 3) == 1).then_some((block, [0.01, 0.1, 1.0][problem.choice(2, 3)]))
}

/// Whether data are divided by their sum.
fn normalises(problem: &Problem) -> bool {
    problem.choice(3, 4) != 1
}

impl Subject for Pntfs {
    type Model<T: Real> = Pntf;

    fn kind() -> Kind {
        Kind::counts(1..=4)
    }

    fn unit(problem: &Problem) -> f64 {
        match normalises(problem) {
            true => problem.power_of_ten([240.0, 28.0]),
            false => problem.power_of_ten([6.0, 3.0]),
        }
    }

    fn model<T: Real>(problem: &Problem) -> Result<Pntf, FitError> {
        let model = Pntf::new(problem.components).normalise(normalises(problem));
        let model = model.revive(problem.choice(4, 2) == 1);
        match sparsity(problem) {
            Some((block, mu)) => model.sparsity(block, mu).checked(),
            None => model.checked(),
        }
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let total: f64 = observed(cells).map(|(_, v)| v).sum();
        let scale = if normalises(problem) {
            1.0 / total
        } else {
            1.0
        };
        let (weights, mass) = (block(at, "weights"), block(at, "mass")[0]);
        let factors = factors(at, cells.shape.len(), "");
        let mut terms = squared_error(cells, scale, |index| {
            mass * product(Some(weights), &factors, index)
        });
        // [EXT 8]
        match sparsity(problem) {
            Some(("weights", mu)) => terms.add(-2.0 * mu * weights.norm_squared()),
            Some((_, mu)) => {
                for (z, column) in factors[0].column_iter().enumerate() {
                    terms.add(-2.0 * mu * weights[z] * column.norm_squared());
                }
            }
            None => {}
        }
        terms
    }
}

pub(crate) struct Ntfs;

/// The penalty of a block: of its entries and their squares.
fn penalty(problem: &Problem) -> Option<(f64, f64)> {
    let penalties = [(0.5, 0.0), (0.0, 0.3), (0.2, 1.0)];
    (problem.choice(0, 3) == 1).then_some(penalties[problem.choice(2, 3)])
}

impl Subject for Ntfs {
    type Model<T: Real> = Ntf;

    fn kind() -> Kind {
        Kind::counts(1..=4).complete()
    }

    // A penalty of one factor alone is least where the others are without bound, the sooner the smaller the data are beside it.
    fn unit(problem: &Problem) -> f64 {
        match penalty(problem) {
            Some(_) => problem.power_of_ten([6.0, 3.0]),
            None => problem.power_of_ten(SQUARES),
        }
    }

    fn model<T: Real>(problem: &Problem) -> Result<Ntf, FitError> {
        let update = [NtfUpdate::Multiplicative, NtfUpdate::Hals][problem.choice(3, 2)];
        let model = Ntf::new(problem.components).update(update);
        match penalty(problem) {
            Some((linear, quadratic)) => model
                .prior("factor_0", Penalty::new(linear, quadratic).unwrap())
                .checked(),
            None => model.checked(),
        }
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let factors = factors(at, cells.shape.len(), "");
        let mut terms = squared_error(cells, 1.0, |index| product(None, &factors, index));
        if let Some((linear, quadratic)) = penalty(problem) {
            terms.extend(
                factors[0]
                    .iter()
                    .map(|u| linear * u + 0.5 * quadratic * u * u),
            );
        }
        terms
    }
}

pub(crate) struct Dings;

impl Subject for Dings {
    type Model<T: Real> = Ding;

    fn kind() -> Kind {
        Kind::signed(2..=2).complete()
    }

    fn unit(problem: &Problem) -> f64 {
        problem.power_of_ten(SQUARES)
    }

    fn model<T: Real>(problem: &Problem) -> Result<Ding, FitError> {
        Ding::new(problem.components).checked()
    }

    fn define(_: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let activations = block(at, "activations").transpose();
        let factors = [block(at, "basis"), &activations];
        // Of a basis of either sign: what cancels in a cell is what its size is made of.
        let sizes = factors.map(|f| f.abs());
        let sizes = [&sizes[0], &sizes[1]];
        let mut terms = Terms::default();
        for (index, v) in observed(cells) {
            let (y, size) = (
                product(None, &factors, &index),
                product(None, &sizes, &index),
            );
            terms.add_of((v - y).powi(2), v * v + size * size);
        }
        terms
    }
}

pub(crate) struct KMeanss;

impl Subject for KMeanss {
    type Model<T: Real> = KMeans;

    fn kind() -> Kind {
        Kind::signed(2..=2).complete()
    }

    fn unit(problem: &Problem) -> f64 {
        problem.power_of_ten(SQUARES)
    }

    fn model<T: Real>(problem: &Problem) -> Result<KMeans, FitError> {
        let clusters = problem.components.min(problem.table.shape[1]);
        KMeans::new(clusters).checked()
    }

    fn define(_: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let (centres, labels) = (block(at, "centres"), block(at, "labels"));
        squared_error(cells, 1.0, |index| {
            centres[(index[0], labels[index[1]] as usize)]
        })
    }
}

impl Measured for Pntfs {
    const POWER: i32 = 0;

    // Under sparsity, and where empty components are drawn anew, rounding decides between equal components.
    fn plain(problem: &Problem) -> Problem {
        problem.without(&[0, 3, 4])
    }

    fn block(_: &Problem, name: &str, s: f64) -> f64 {
        if name == "scale" { s } else { 1.0 }
    }
}

impl Measured for Ntfs {
    const POWER: i32 = 2;

    fn block(problem: &Problem, _: &str, s: f64) -> f64 {
        root(s, Self::root(problem))
    }

    fn root(problem: &Problem) -> i32 {
        problem.table.shape.len() as i32
    }

    fn most(_: &Problem) -> [f64; 2] {
        SQUARES
    }
}

impl Measured for Dings {
    const POWER: i32 = 2;

    fn block(_: &Problem, name: &str, s: f64) -> f64 {
        if name == "basis" { s } else { 1.0 }
    }

    fn most(_: &Problem) -> [f64; 2] {
        SQUARES
    }
}

impl Measured for KMeanss {
    const POWER: i32 = 2;

    fn block(_: &Problem, name: &str, s: f64) -> f64 {
        if name == "centres" { s } else { 1.0 }
    }

    fn most(_: &Problem) -> [f64; 2] {
        SQUARES
    }
}

impl Explains for Pntfs {
    fn explained() -> Kind {
        Self::kind().complete()
    }

    fn along(problem: &Problem) -> usize {
        problem.choice(5, problem.table.shape.len())
    }

    fn explain<T: Real>(
        problem: &Problem,
        learnt: &StateOf<Self, T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Vec<Vec<u64>>, FitError> {
        let how = how.clone().along(Self::along(problem));
        let explained = learnt.transform(data, &how)?;
        Ok(by_columns(explained.fit.state().mixture(), &explained.gap))
    }
}

impl Explains for Ntfs {
    fn along(problem: &Problem) -> usize {
        problem.choice(5, problem.table.shape.len())
    }

    fn explain<T: Real>(
        problem: &Problem,
        learnt: &StateOf<Self, T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Vec<Vec<u64>>, FitError> {
        let along = Self::along(problem);
        let model = Self::model::<T>(problem)?;
        let explained = model.transform(learnt, data, &how.clone().along(along))?;
        let new = explained.fit.state().factor(along).transpose();
        Ok(by_columns(&new, &explained.gap))
    }
}
