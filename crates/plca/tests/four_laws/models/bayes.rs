//! `plca-vb`, `plsa-vb`.

use plca::fit::laws::Terms;
use plca::nalgebra::DMatrix;
use plca::prelude::*;
use plca::tensor::strategies::Table;
use plca::{
    em::{Given, PlcaVb, PlsaVb},
    fit::Parameters,
    priors::Entries,
    tensor::Real,
};

use super::divergence::given;
use super::{block, by_columns, factors, observed};
use crate::problem::{Kind, Problem};
use crate::special::{digamma, ln_gamma, ln_sum_exp};
use crate::table::{Explains, StateOf, Subject};

/// `E[ln θ]` under Dirichlet laws of the columns.
pub(super) fn mean_ln(shapes: &DMatrix<f64>) -> DMatrix<f64> {
    let mut ln = shapes.map(digamma);
    for (mut column, of) in ln.column_iter_mut().zip(shapes.column_iter()) {
        column.add_scalar_mut(-digamma(of.sum()));
    }
    ln
}

/// Subtracts the divergence of Dirichlet laws of the columns from one of equal shapes. `[SKELLAM 7]`
pub(super) fn subtract_dirichlet(terms: &mut Terms, shapes: &DMatrix<f64>, prior: f64) {
    let ln = mean_ln(shapes);
    for (column, ln) in shapes.column_iter().zip(ln.column_iter()) {
        let n = column.len() as f64;
        // `ln Γ` is known to an error of 1, where it is 0 too.
        let mut add = |x: f64| terms.add_of(x, x.abs().max(1.0));
        [-ln_gamma(column.sum()), ln_gamma(n * prior)]
            .into_iter()
            .for_each(&mut add);
        for (&shape, ln) in column.iter().zip(ln.iter()) {
            let all = [ln_gamma(shape), -ln_gamma(prior), (prior - shape) * ln];
            all.into_iter().for_each(&mut add);
        }
    }
}

/// `Σ V ln P̃` of the logarithms of the factors.
fn bound(cells: &Table<f64>, weights: Option<&DMatrix<f64>>, ln: &[DMatrix<f64>]) -> Terms {
    let mut terms = Terms::default();
    for (index, v) in observed(cells).filter(|(_, v)| *v > 0.0) {
        let term = |z: usize| {
            let factors = ln.iter().zip(&index).map(|(f, &i)| f[(i, z)]);
            weights.map_or(0.0, |w| w[z]) + factors.sum::<f64>()
        };
        let ln_p = ln_sum_exp(&(0..ln[0].ncols()).map(term).collect::<Vec<_>>());
        terms.add_of(v * ln_p, v * ln_p.abs().max(1.0));
    }
    terms
}

/// The shape of the prior of the block `which`.
fn shape(problem: &Problem, which: usize) -> f64 {
    // `e^ψ` of smaller shapes is below what counts as 0 in single precision.
    let small = if problem.single { 0.1 } else { 0.01 };
    [1.0, 0.1, 2.0, small][problem.choice(which, 4)]
}

pub(crate) struct PlcaVbs;

impl Subject for PlcaVbs {
    type Model<T: Real> = PlcaVb;

    fn kind() -> Kind {
        Kind::counts(1..=4).complete()
    }

    fn model<T: Real>(problem: &Problem) -> Result<PlcaVb, FitError> {
        let weights = Entries::All(shape(problem, 0));
        let mut model = PlcaVb::new(problem.components).prior("weights_shape", weights);
        for j in 0..problem.table.shape.len() {
            let entries = Entries::All(shape(problem, 1));
            model = model.prior(format!("factor_{j}_shape"), entries);
        }
        model.checked()
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let weights = block(at, "weights_shape");
        let factors = factors(at, cells.shape.len(), "_shape");
        let ln: Vec<_> = factors.iter().map(|f| mean_ln(f)).collect();
        let mut terms = bound(cells, Some(&mean_ln(weights)), &ln);
        subtract_dirichlet(&mut terms, weights, shape(problem, 0));
        for factor in factors {
            subtract_dirichlet(&mut terms, factor, shape(problem, 1));
        }
        terms
    }
}

pub(crate) struct PlsaVbs;

impl Subject for PlsaVbs {
    type Model<T: Real> = PlsaVb;

    fn kind() -> Kind {
        Kind::counts(2..=2).complete()
    }

    fn model<T: Real>(problem: &Problem) -> Result<PlsaVb, FitError> {
        PlsaVb::new(problem.components)
            .given(given(problem))
            .prior("basis_shape", Entries::All(shape(problem, 0)))
            .prior("mixture_shape", Entries::All(shape(problem, 1)))
            .checked()
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let (basis, mixture) = (block(at, "basis_shape"), block(at, "mixture_shape"));
        let mut ln = [mean_ln(basis), mean_ln(mixture).transpose()];
        if given(problem) == Given::Rows {
            ln.reverse();
        }
        let mut terms = bound(cells, None, &ln);
        subtract_dirichlet(&mut terms, basis, shape(problem, 0));
        subtract_dirichlet(&mut terms, mixture, shape(problem, 1));
        terms
    }
}

impl Explains for PlsaVbs {
    fn along(problem: &Problem) -> usize {
        given(problem).mode()
    }

    fn explain<T: Real>(
        problem: &Problem,
        learnt: &StateOf<Self, T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Vec<Vec<u64>>, FitError> {
        let explained = Self::model::<T>(problem)?.transform(learnt, data, how)?;
        Ok(by_columns(
            explained.fit.state().mixture_shape(),
            &explained.gap,
        ))
    }
}
