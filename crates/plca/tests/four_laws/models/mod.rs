//! All models: settings made of a problem, and objectives by their definition, by loops over all cells.

mod bayes;
mod divergence;
mod shifted;
mod signed;
mod squared;

use plca::fit::laws::Terms;
use plca::nalgebra::DMatrix;
use plca::priors::PriorSpec;
use plca::tensor::strategies::Table;
use plca::{fit::Parameters, tensor::Real};

use super::problem::Problem;

pub(crate) use bayes::{PlcaVbs, PlsaVbs};
pub(crate) use divergence::{Nmfs, Plcas, Plsas};
pub(crate) use shifted::{Siplcas, Tiplcas};
pub(crate) use signed::{CpVbs, Cps, ShiftVbs, Shifts, SnmfVbs, Snmfs};
pub(crate) use squared::{Dings, KMeanss, Ntfs, Pntfs};

/// The observed cells with their indices.
fn observed(cells: &Table<f64>) -> impl Iterator<Item = (Vec<usize>, f64)> + '_ {
    let seen = (0..cells.values.len()).filter(|&at| cells.observed[at]);
    seen.map(|at| (cells.index(at), cells.values[at]))
}

fn hides(cells: &Table<f64>) -> bool {
    cells.observed.contains(&false)
}

/// `Σ_z w_z Π_j F_j[x_j, z]`, of factors whose rows are indices.
fn product(weights: Option<&DMatrix<f64>>, factors: &[&DMatrix<f64>], index: &[usize]) -> f64 {
    let term = |z: usize| {
        let weight = weights.map_or(1.0, |w| w[z]);
        let entries = factors.iter().zip(index).map(|(f, &i)| f[(i, z)]);
        entries.fold(weight, |x, entry| x * entry)
    };
    (0..factors[0].ncols()).map(term).sum()
}

/// The root of a unit; that of a power of two whose exponent it divides is one too.
fn root(unit: f64, n: i32) -> f64 {
    let exponent = unit.log2();
    match exponent.fract() == 0.0 && exponent as i32 % n == 0 {
        true => 2f64.powi(exponent as i32 / n),
        false => unit.powf(1.0 / f64::from(n)),
    }
}

/// `Σ V ln P`, and where mass is lost or hidden `- v ln Σ P`.
fn likelihood(cells: &Table<f64>, conditional: bool, p: impl Fn(&[usize]) -> f64) -> Terms {
    let mut terms = Terms::default();
    let (mut total, mut seen) = (Terms::default(), Terms::default());
    for (index, v) in observed(cells) {
        let p = p(&index);
        if v > 0.0 {
            // A probability is known to a rounding of itself, which is one of the logarithm.
            terms.add_of(v * p.ln(), v * p.ln().abs().max(1.0));
        }
        total.add(v);
        seen.add(p);
    }
    if conditional {
        terms.add(-total.sum() * seen.sum().ln());
    }
    terms
}

/// A prior of the columns of a block, and what it adds to the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SimplexLaw {
    Dirichlet(f64),
    Entropic(f64),
    LogisticNormal(f64),
}

impl SimplexLaw {
    fn add_to(self, terms: &mut Terms, block: &DMatrix<f64>) {
        match self {
            // [SPEC 7] Σ (α - 1) ln θ, without what is clipped
            Self::Dirichlet(alpha) => {
                let positive = block.iter().filter(|&&x| x > 0.0 || alpha > 1.0);
                terms.extend(positive.map(|x| (alpha - 1.0) * x.ln()));
            }
            // [SPEC 6] β Σ θ ln θ
            Self::Entropic(beta) => {
                let positive = block.iter().filter(|&&x| x > 0.0);
                // `θ` near 1 is known to its last digit, of which the term is a part.
                positive.for_each(|x| {
                    terms.add_of(beta * x * x.ln(), beta.abs() * x * x.ln().abs().max(1.0));
                });
            }
            // [SPEC 7] about the mean of equal entries, at the best constant in η = ln θ + a
            Self::LogisticNormal(variance) => {
                for column in block.column_iter() {
                    let n = column.len() as f64;
                    let d: Vec<f64> = column.iter().map(|x| x.ln() + n.ln()).collect();
                    let mean = d.iter().sum::<f64>() / n;
                    let size: f64 = column.iter().map(|x| x.ln().powi(2)).sum();
                    let spread: f64 = d.iter().map(|d| (d - mean).powi(2)).sum();
                    terms.add_of(-0.5 * spread / variance, size / variance);
                }
            }
        }
    }
}

impl SimplexLaw {
    /// The law of a problem, and the block that has it; in most problems none.
    fn of<'a>(problem: &Problem, blocks: &[&'a str]) -> Option<(&'a str, Self)> {
        let laws = [
            Self::Dirichlet(1.5),
            Self::Entropic(2.0),
            Self::Entropic(-1.0),
            Self::Entropic(10.0),
            Self::Dirichlet(0.5),
            Self::LogisticNormal(1.0),
        ];
        let some = problem.choice(0, 3) == 1;
        let block = blocks[problem.choice(1, blocks.len())];
        some.then_some((block, laws[problem.choice(2, laws.len())]))
    }

    /// As a setting.
    fn spec(self) -> PriorSpec {
        let text = match self {
            Self::Dirichlet(alpha) => format!("dirichlet:{alpha}"),
            Self::Entropic(beta) => format!("entropic:{beta}"),
            Self::LogisticNormal(variance) => format!("logistic-normal:{variance}"),
        };
        text.parse().expect("a name of the table")
    }
}

/// The unit of data beside the prior of a problem, which has none. Small counts let it empty entries, of which an E-step multiplies two.
fn unit(problem: &Problem, blocks: &[&str]) -> f64 {
    let beside = SimplexLaw::of(problem, blocks).is_some();
    problem.power_of_ten(if beside { [70.0, 8.0] } else { [240.0, 28.0] })
}

/// Whether the prior of a problem has a maximum. With pseudo-counts below 0 it has none: entries are clipped, and leave the density.
fn bounded(problem: &Problem, blocks: &[&str]) -> bool {
    let law = SimplexLaw::of(problem, blocks);
    !law.is_some_and(|(_, law)| matches!(law, SimplexLaw::Dirichlet(alpha) if alpha < 1.0))
}

/// Adds the density of the prior of a problem to a likelihood.
fn with_prior(mut terms: Terms, problem: &Problem, blocks: &[&str], at: &Parameters<f64>) -> Terms {
    if let Some((name, law)) = SimplexLaw::of(problem, blocks) {
        law.add_to(&mut terms, block(at, name));
    }
    terms
}

/// A block by its name.
fn block<'a>(at: &'a Parameters<f64>, name: &str) -> &'a DMatrix<f64> {
    at.block(name).expect("the model has this block")
}

/// The blocks `factor_0`, `factor_1`, … of a tensor of an order, with an ending.
fn factors<'a>(at: &'a Parameters<f64>, order: usize, ending: &str) -> Vec<&'a DMatrix<f64>> {
    (0..order)
        .map(|j| block(at, &format!("factor_{j}{ending}")))
        .collect()
}

/// The bits of numbers.
fn bits<T: Real>(values: impl IntoIterator<Item = T>) -> Vec<u64> {
    values.into_iter().map(|x| x.to_f64().to_bits()).collect()
}

/// What is said of every observation: a column of a block, and its own of a list, if there is one.
fn by_columns<T: Real>(block: &DMatrix<T>, each: &[f64]) -> Vec<Vec<u64>> {
    let columns = block.column_iter().enumerate();
    let columns = columns.map(|(n, column)| {
        let mut own = bits(column.iter().copied());
        own.extend(each.get(n).map(|x| x.to_bits()));
        own
    });
    columns.collect()
}
