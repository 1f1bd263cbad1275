//! `plca`, `plsa`, `nmf-kl`.

use plca::em::{Missing, Update};
use plca::fit::laws::Terms;
use plca::prelude::*;
use plca::priors::PriorSpec;
use plca::tensor::strategies::Table;
use plca::{em::Given, fit::Parameters, tensor::Real};

use super::{
    SimplexLaw, block, bounded, by_columns, factors, hides, likelihood, observed, product, root,
    unit, with_prior,
};
use crate::problem::{Kind, Problem};
use crate::special::{ln_gamma, times_ln};
use crate::table::{Explains, Measured, StateOf, Subject};

pub(crate) struct Plcas;

const PLCA_BLOCKS: &[&str] = &["weights", "factor_0"];

/// Whether steps are tempered: they raise another objective.
fn tempers(problem: &Problem, blocks: &[&str]) -> bool {
    problem.choice(4, 8) == 1 && SimplexLaw::of(problem, blocks).is_none()
}

impl Subject for Plcas {
    type Model<T: Real> = Plca;

    fn kind() -> Kind {
        Kind::counts(1..=4)
    }

    fn unit(problem: &Problem) -> f64 {
        unit(problem, PLCA_BLOCKS)
    }

    fn model<T: Real>(problem: &Problem) -> Result<Plca, FitError> {
        let (k, shape) = (problem.components, &problem.table.shape);
        let mut plca = Plca::new(k);
        if let Some((name, law)) = SimplexLaw::of(problem, PLCA_BLOCKS) {
            return plca.prior(name, law.spec()).checked();
        }
        if shape.len() == 2 && problem.choice(3, 4) == 1 {
            plca = plca.missing(Missing::Multiplicative);
        } else if tempers(problem, PLCA_BLOCKS) {
            plca = plca.temper(0.9);
        }
        plca.checked()
    }

    fn monotone(problem: &Problem) -> bool {
        bounded(problem, PLCA_BLOCKS) && !tempers(problem, PLCA_BLOCKS)
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let factors = factors(at, cells.shape.len(), "");
        let p = |index: &[usize]| product(Some(block(at, "weights")), &factors, index);
        let terms = likelihood(cells, hides(cells), p);
        with_prior(terms, problem, PLCA_BLOCKS, at)
    }
}

pub(crate) struct Plsas;

const PLSA_BLOCKS: &[&str] = &["basis", "mixture"];

pub(crate) fn given(problem: &Problem) -> Given {
    match problem.choice(3, 3) {
        1 => Given::Rows,
        _ => Given::Columns,
    }
}

impl Subject for Plsas {
    type Model<T: Real> = Plsa;

    fn kind() -> Kind {
        Kind::counts(2..=2)
    }

    fn unit(problem: &Problem) -> f64 {
        unit(problem, PLSA_BLOCKS)
    }

    fn model<T: Real>(problem: &Problem) -> Result<Plsa, FitError> {
        let mut plsa = Plsa::new(problem.components).given(given(problem));
        if let Some((name, law)) = SimplexLaw::of(problem, PLSA_BLOCKS) {
            return plsa.prior(name, law.spec()).checked();
        }
        if tempers(problem, PLSA_BLOCKS) {
            plsa = plsa.temper(0.9);
        }
        plsa.checked()
    }

    fn monotone(problem: &Problem) -> bool {
        bounded(problem, PLSA_BLOCKS) && !tempers(problem, PLSA_BLOCKS)
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let given = given(problem);
        let (basis, mixture) = (block(at, "basis"), block(at, "mixture"));
        let p = |index: &[usize]| -> f64 {
            let (x, y) = (index[given.explained()], index[given.mode()]);
            (0..basis.ncols())
                .map(|z| basis[(x, z)] * mixture[(z, y)])
                .sum()
        };
        let mut terms = likelihood(cells, false, p);
        if hides(cells) {
            for y in 0..cells.shape[given.mode()] {
                let own = observed(cells).filter(|(index, _)| index[given.mode()] == y);
                let (v, seen) = own.fold((0.0, 0.0), |(v, s), (i, x)| (v + x, s + p(&i)));
                terms.add(-times_ln(v, f64::ln(seen)));
            }
        }
        with_prior(terms, problem, PLSA_BLOCKS, at)
    }
}

pub(crate) struct Nmfs;

/// The prior of a block of rates: a gamma law or a penalty, of two numbers.
fn rates(problem: &Problem) -> Option<(&'static str, bool, f64, f64)> {
    let laws = [
        (true, 1.5, 0.5),
        (true, 1.0, 2.0),
        (false, 0.5, 0.0),
        (false, 0.1, 0.2),
    ];
    let (is_gamma, a, b) = laws[problem.choice(2, laws.len())];
    let name = ["w", "h"][problem.choice(1, 2)];
    (problem.choice(0, 3) == 1).then_some((name, is_gamma, a, b))
}

impl Subject for Nmfs {
    type Model<T: Real> = Nmf;

    fn kind() -> Kind {
        Kind::counts(2..=2)
    }

    // Both factors of small data under a prior of one are as small as the data: their product must be a number.
    fn unit(problem: &Problem) -> f64 {
        match rates(problem) {
            Some(_) => problem.power_of_ten([60.0, 6.0]),
            None => problem.power_of_ten([240.0, 28.0]),
        }
    }

    fn model<T: Real>(problem: &Problem) -> Result<Nmf, FitError> {
        let mut nmf = Nmf::new(problem.components);
        if let Some((name, is_gamma, a, b)) = rates(problem) {
            let kind = if is_gamma { "gamma" } else { "rate" };
            let prior = format!("{kind}:{a},{b}").parse::<PriorSpec>();
            let block = name.to_string();
            let prior = prior.map_err(|source| FitError::Prior { block, source })?;
            nmf = nmf.prior(name, prior);
        }
        match problem.choice(3, 3) {
            1 => nmf.update(Update::Sequential).checked(),
            2 => nmf.update(Update::Simultaneous).checked(),
            _ => nmf.checked(),
        }
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let (w, h) = (block(at, "w"), block(at, "h").transpose());
        let mut terms = Terms::default();
        for (index, v) in observed(cells) {
            let y = product(None, &[w, &h], &index);
            terms.add(times_ln(v, (v / y).ln()));
            terms.extend([-v, y]);
        }
        if let Some((name, is_gamma, a, b)) = rates(problem) {
            for &x in block(at, name) {
                match is_gamma {
                    true => {
                        terms.extend([-times_ln(a - 1.0, x.ln()), b * x, -a * b.ln(), ln_gamma(a)])
                    }
                    false => terms.extend([a * x, 0.5 * b * x * x]),
                }
            }
        }
        terms
    }
}

impl Measured for Plcas {
    const POWER: i32 = 1;

    fn block(_: &Problem, name: &str, s: f64) -> f64 {
        if name == "scale" { s } else { 1.0 }
    }
}

impl Measured for Plsas {
    const POWER: i32 = 1;

    fn block(_: &Problem, name: &str, s: f64) -> f64 {
        if name == "scale" { s } else { 1.0 }
    }
}

impl Measured for Nmfs {
    const POWER: i32 = 1;

    fn block(_: &Problem, _: &str, s: f64) -> f64 {
        root(s, 2)
    }

    fn root(_: &Problem) -> i32 {
        2
    }

    // What stands in hidden cells is free, and may be far more than the data.
    fn most(_: &Problem) -> [f64; 2] {
        [250.0, 20.0]
    }
}

impl Explains for Plsas {
    fn along(problem: &Problem) -> usize {
        given(problem).mode()
    }

    fn explain<T: Real>(
        _: &Problem,
        learnt: &StateOf<Self, T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Vec<Vec<u64>>, FitError> {
        let explained = learnt.transform(data, how)?;
        Ok(by_columns(explained.fit.state().mixture(), &explained.gap))
    }
}

impl Explains for Nmfs {
    fn along(problem: &Problem) -> usize {
        problem.choice(4, 2)
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
        let state = explained.fit.state();
        let new = if along == 0 {
            state.w().transpose()
        } else {
            state.h().clone()
        };
        Ok(by_columns(&new, &explained.gap))
    }
}
