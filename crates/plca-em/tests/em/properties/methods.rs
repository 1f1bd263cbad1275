//! All models behind one signature, so that a property is written once and can be shown to fail.

use nalgebra::{DMatrix, DVector};
use plca_em::{Missing, Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState, Update};
use plca_fit::laws::{Claims, Renewal, Violation, check};
use plca_fit::{Algorithm, Model, Parameters, Sense, Solver, State, solver::Memory};
use plca_priors::{Dirichlet, Entropic, LogisticNormal, PriorSpec};
use plca_tensor::strategies::Start;
use plca_tensor::{Cp, Data, Factor, Modes, Real, Request, Rule, normalise_columns, simplex_error};
use proptest::prelude::*;

use super::conditions::{Precision, rounding};
use super::setups::{Choice, Kind, Setup};

/// A block as an `I x K` matrix, whatever its layout in the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block<T: Real> {
    /// The data's mode; `None` for `P(z)`.
    pub(crate) mode: Option<usize>,
    pub(crate) values: DMatrix<T>,
    /// Whether it takes the scale of the data.
    pub(crate) scales: bool,
}

impl<T: Real> Block<T> {
    pub(crate) fn new(mode: Option<usize>, values: DMatrix<T>) -> Self {
        Self {
            mode,
            values,
            scales: false,
        }
    }
}

/// A state on the way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step<T: Real> {
    /// The objective, larger is better.
    pub(crate) value: f64,
    pub(crate) blocks: Vec<Block<T>>,
    /// How far the columns are from distributions; 0 where the model has none.
    pub(crate) simplex: f64,
    /// The smallest share of its mass that a conditional distribution has within the observed cells: where that is found by
    /// subtraction, rounding errors of 1 matter relative to it.
    pub(crate) seen: f64,
}

impl<T: Real> Step<T> {
    /// The state as a start; a mode without a block, which the model does not renew, is that of `first`.
    pub(crate) fn start(&self, first: &Start<T>) -> Start<T> {
        let of_mode = |j: Option<usize>| self.blocks.iter().find(|b| b.mode == j);
        let mut weights = of_mode(None).map_or_else(
            || DVector::from_element(first.weights.len(), T::one()),
            |block| DVector::from_column_slice(block.values.as_slice()),
        );
        let factors = first.factors.iter().enumerate().map(|(j, old)| {
            let mut factor = of_mode(Some(j)).map_or_else(|| old.clone(), |b| b.values.clone());
            for (z, mut column) in factor.column_iter_mut().enumerate() {
                // In double precision, so that small entries are not lost.
                let sum: f64 = column.iter().map(|x| x.to_f64()).sum();
                weights[z] = T::lit(weights[z].to_f64() * sum);
                match sum > 0.0 {
                    true => column.apply(|x| *x = T::lit(x.to_f64() / sum)),
                    false => column.copy_from(&old.column(z)),
                }
            }
            factor
        });
        let factors = factors.collect();
        let total: f64 = weights.iter().map(|w| w.to_f64()).sum();
        weights.apply(|w| *w = T::lit(w.to_f64() / total));
        Start { weights, factors }
    }
}

/// States after 0, 1, …, n iterations.
pub(crate) type Method<T> = dyn Fn(&dyn Data<T>, &Start<T>, usize) -> Vec<Step<T>> + Sync;

/// What is shown of parameters: their blocks, and how far they are from what they must be.
type Shown<T> = (Vec<Block<T>>, f64);
type Show<'a, T> = &'a dyn Fn(&Parameters<T>) -> Shown<T>;

/// A model on data, and its solver.
type Solved<'a, T> = (&'a dyn Algorithm<T>, Solver);

/// What is done with a model, its start and what is shown of that.
trait Visit<T: Real> {
    type Out;
    fn visit(self, method: Solved<'_, T>, start: &Parameters<T>, show: Show<'_, T>) -> Self::Out;
}

/// The states after 0, 1, …, this many iterations.
struct Follow(usize);

impl<T: Real> Visit<T> for Follow {
    type Out = Vec<Step<T>>;

    fn visit(
        self,
        (algorithm, solver): Solved<'_, T>,
        start: &Parameters<T>,
        show: Show<'_, T>,
    ) -> Vec<Step<T>> {
        let sign = match algorithm.sense() {
            Sense::Maximise => 1.0,
            Sense::Minimise => -1.0,
        };
        let mut steps = solver.on(algorithm, Memory::default()).unwrap();
        let mut at = start.clone();
        (0..=self.0)
            .map(|i| {
                if i > 0 {
                    steps.step(&mut at, false).unwrap();
                }
                let (blocks, simplex) = show(&at);
                let value = sign * algorithm.objective(&at).unwrap();
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

/// The laws of every method.
struct Obey(Claims);

impl<T: Real> Visit<T> for Obey {
    type Out = Result<(), Violation>;

    fn visit(
        self,
        (algorithm, solver): Solved<'_, T>,
        start: &Parameters<T>,
        _: Show<'_, T>,
    ) -> Result<(), Violation> {
        check(algorithm, solver, start, &self.0)
    }
}

/// `P(z | y) ∝ P(z) P(y | z)`, `K x I`.
pub(crate) fn mixture<T: Real>(start: &Start<T>, mode: usize) -> DMatrix<T> {
    let mut m = DMatrix::from_fn(start.weights.len(), start.factors[mode].nrows(), |z, y| {
        start.weights[z] * start.factors[mode][(y, z)]
    });
    normalise_columns(&mut m);
    m
}

/// The share of its mass that the model has within the observed cells; with a mode given, the least of its conditional
/// distributions of which anything was observed.
pub(crate) fn seen<T: Real>(data: &dyn Data<T>, blocks: &[Block<T>], given: Option<usize>) -> f64 {
    if data.is_complete() {
        return 1.0;
    }
    let mut factors: Vec<_> = blocks.iter().filter(|b| b.mode.is_some()).collect();
    factors.sort_by_key(|b| b.mode);
    let factors: Vec<_> = (factors.iter())
        .map(|b| Factor::Columns(&b.values))
        .collect();
    let weights = blocks.iter().find(|b| b.mode.is_none());
    let model = Cp {
        weights: weights.map(|b| b.values.as_slice()),
        factors: &factors,
    };
    let mode = given.unwrap_or(0);
    let exposure = Request::counts(Modes::one(mode)).rule(Rule::Exposure);
    let seen = data.e_step(&model, &exposure).unwrap();
    let rows = seen.counts(mode).row_iter();
    let rows = rows.map(|row| row.iter().map(|x| x.to_f64()).sum::<f64>());
    match given {
        None => rows.sum::<f64>() / model.mass(),
        Some(mode) => (data.marginal(mode).unwrap().iter().zip(rows))
            .filter(|(v, _)| **v > 0.0)
            .fold(1.0, |least, (_, seen)| seen.min(least)),
    }
}

pub(crate) fn show_plca<T: Real>(at: &Parameters<T>) -> Shown<T> {
    let factors = at.matrices()[1..].iter().enumerate();
    let blocks = std::iter::once(Block::new(None, at.at(0).transpose()))
        .chain(factors.map(|(j, f)| Block::new(Some(j), f.clone())));
    let errors = at.matrices().iter().map(simplex_error);
    (blocks.collect(), errors.fold(0.0, f64::max))
}

impl Setup {
    /// Visits a model under the solver of these settings.
    fn solve<T: Real, M: Model<T>, V: Visit<T>>(
        &self,
        model: &M,
        data: &dyn Data<T>,
        start: &M::State,
        show: Show<'_, T>,
        visit: V,
    ) -> V::Out {
        let solver = match (self.fast, self.squarem) {
            (true, _) => Solver::Fast,
            (_, true) => Solver::Squarem,
            (false, false) => Solver::Em,
        };
        let algorithm = model.bind(data).unwrap();
        visit.visit((&*algorithm, solver), start.parameters(), show)
    }

    /// The prior of a block whose columns have `rows` entries.
    fn prior(&self, rows: usize) -> Option<PriorSpec> {
        Some(match self.prior? {
            Choice::Dirichlet(alpha) => Dirichlet::symmetric(alpha).unwrap().into(),
            Choice::Entropic(beta) => Entropic::new(beta).unwrap().into(),
            Choice::LogisticNormal(variance) => {
                let variance = DVector::from_element(rows, variance);
                LogisticNormal::independent(DVector::zeros(rows), &variance)
                    .unwrap()
                    .into()
            }
        })
    }

    /// States from `start`.
    pub(crate) fn run<T: Real>(
        &self,
        data: &dyn Data<T>,
        start: &Start<T>,
        n: usize,
    ) -> Vec<Step<T>> {
        let mut steps = self.on(data, start, Follow(n));
        let given = match self.kind {
            Kind::Plca | Kind::Nmf(_) => None,
            Kind::Plsa(given) => Some(given.mode()),
        };
        for step in &mut steps {
            step.seen = seen(data, &step.blocks, given);
        }
        steps
    }

    /// The first steps succeed, measure what they were given and change nothing by it, and the residual is none or a number.
    pub(crate) fn obeys<T: Precision>(
        &self,
        data: &dyn Data<T>,
        start: &Start<T>,
    ) -> Result<(), TestCaseError> {
        let iterations = 2;
        let steps = self.run(data, start, iterations);
        let seen = steps.iter().fold(1.0, |least: f64, s| s.seen.min(least));
        let renewal = match self.kind {
            // Entries below 1e-154 of their row's largest count as 0, and cells that they alone explain are lost with the others renewed.
            _ if self.wide => Renewal::Otherwise,
            Kind::Nmf(Update::Sequential) => Renewal::FirstToLast,
            Kind::Nmf(_) => Renewal::Together,
            // Its weights change with every factor.
            _ if self.multiplicative && !data.is_complete() => Renewal::Together,
            Kind::Plca | Kind::Plsa(_) => Renewal::Apart,
        };
        let claims = Claims {
            iterations,
            renewal,
            // A hidden cell of NMF is imputed at the scale of the data.
            counts: !self.wide && (data.is_complete() || !matches!(self.kind, Kind::Nmf(_))),
            settles: 0,
            ..Claims::new(rounding::<T>(data.total(), seen))
        };
        Ok(self.on(data, start, Obey(claims))?)
    }

    fn on<T: Real, V: Visit<T>>(&self, data: &dyn Data<T>, start: &Start<T>, visit: V) -> V::Out {
        let k = start.weights.len();
        match self.kind {
            Kind::Plca => {
                let mut plca = Plca::new(k);
                if let Some(prior) = self.prior(k) {
                    plca = plca.prior("weights", prior);
                }
                for (j, factor) in start.factors.iter().enumerate() {
                    if let Some(prior) = self.prior(factor.nrows()) {
                        plca = plca.prior(format!("factor_{j}"), prior);
                    }
                }
                if self.freeze_first {
                    plca = plca.freeze("factor_0");
                }
                if self.freeze_weights {
                    plca = plca.freeze("weights");
                }
                if self.multiplicative {
                    plca = plca.missing(Missing::Multiplicative);
                }
                let state = PlcaState::new(start.weights.clone(), start.factors.clone());
                self.solve(&plca, data, &state.unwrap(), &show_plca, visit)
            }
            Kind::Plsa(given) => {
                let mut plsa = Plsa::new(k).given(given);
                let rows = start.factors[given.explained()].nrows();
                if let (Some(basis), Some(mixture)) = (self.prior(rows), self.prior(k)) {
                    plsa = plsa.prior("basis", basis).prior("mixture", mixture);
                }
                if self.freeze_first {
                    plsa = plsa.freeze("basis");
                }
                let basis = start.factors[given.explained()].clone();
                let mixture = mixture(start, given.mode());
                let shares = data.marginal(given.mode()).unwrap();
                let shares = shares.iter().map(|v| T::lit(v / data.total()));
                let state = PlsaState::new(given, basis, mixture, shares.collect());
                let show = move |at: &Parameters<T>| {
                    let blocks = vec![
                        Block::new(Some(given.explained()), at.at(0).clone()),
                        Block::new(Some(given.mode()), at.at(1).transpose()),
                    ];
                    (blocks, simplex_error(at.at(0)).max(simplex_error(at.at(1))))
                };
                self.solve(&plsa, data, &state.unwrap(), &show, visit)
            }
            Kind::Nmf(update) => {
                let mut nmf = Nmf::new(k);
                // On masked data the treatment of hidden cells decides on the form.
                nmf = if data.is_complete() {
                    nmf.update(update)
                } else if update == Update::Simultaneous {
                    nmf.missing(Missing::Imputation)
                } else {
                    nmf.missing(Missing::Multiplicative)
                };
                if self.freeze_first {
                    nmf = nmf.freeze("w");
                }
                let mut h = start.factors[1].transpose();
                for (z, mut row) in h.row_iter_mut().enumerate() {
                    row *= start.weights[z];
                    row *= T::lit(data.total());
                }
                let state = NmfState::new(start.factors[0].clone(), h).unwrap();
                let show = |at: &Parameters<T>| {
                    let blocks = vec![
                        Block::new(Some(0), at.at(0).clone()),
                        Block {
                            scales: true,
                            ..Block::new(Some(1), at.at(1).transpose())
                        },
                    ];
                    let all = at.matrices().iter().flatten();
                    let lowest = all.fold(0.0, |a: f64, x| a.min(x.to_f64()));
                    (blocks, -lowest)
                };
                self.solve(&nmf, data, &state, &show, visit)
            }
        }
    }

    /// This setup as a [`Method`].
    pub(crate) fn method<T: Real>(
        self,
    ) -> impl Fn(&dyn Data<T>, &Start<T>, usize) -> Vec<Step<T>> + Sync {
        move |data, start, n| self.run(data, start, n)
    }
}
