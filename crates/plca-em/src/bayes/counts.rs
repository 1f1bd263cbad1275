//! Expected counts and the bound.

use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters, Progress,
    blocks::{Axis, BlockSpec},
    em::{Counts, Expectation, Wanted},
};
use plca_priors::Entries;
use plca_tensor::{Cp, Data, Expected, Factor, Modes, Real, Request, check_counts};
use rand::Rng;

pub(super) use super::dirichlet::components;
use super::dirichlet::{divergence, geometric, means, refuse_probabilities};
use super::shards::{across, divergence_of_rows};
use crate::Given;
use crate::plsa::with_model;
use crate::product::{conflict, unsupported};

/// Posteriors of the blocks that were wanted, and `Σ V ln P`.
type Updated<T> = (Vec<Option<DMatrix<T>>>, Option<f64>);

/// Geometric means of every block.
type Means<'a, T> = Vec<Cow<'a, DMatrix<T>>>;

/// Iterations of EM that a random start makes. From drawn distributions alone the bound ends far lower: on 2000 newspaper articles with 20 topics by 4 %.
pub(super) const START: usize = 50;

/// What is a distribution.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// All cells together: weights, then a factor for every mode.
    Joint,
    /// The explained mode for every index of the given one: a basis and a mixture.
    Given(Given),
}

/// Variational Bayes on data: what is expected of a block is its new posterior.
#[derive(Debug)]
pub(super) struct VbCounts<'a, T: Real> {
    pub(super) data: &'a dyn Data<T>,
    pub(super) specs: Vec<BlockSpec<T>>,
    pub(super) priors: Vec<Entries>,
    pub(super) form: Form,
    pub(super) facts: Vec<(&'static str, Vec<f64>)>,
    /// Whether the data are a part of all, a batch or a shard: of the blocks that all parts share the counts alone are expected, and their divergence is not
    /// counted.
    pub(super) is_part: bool,
    /// Whether to use posterior means instead of geometric means, which makes the step one of EM.
    pub(super) by_means: bool,
    /// The means that are taken of blocks that stay as they are; none of the others.
    pub(super) fixed: Vec<Option<DMatrix<T>>>,
}

/// Refuses data that are not counts, or not complete: a zero says that there is no event.
pub(super) fn check<T: Real>(data: &dyn Data<T>) -> Result<(), FitError> {
    check_counts(data)?;
    match data.is_complete() {
        true => Ok(()),
        false => conflict("variational Bayes needs complete data, some cells are hidden"),
    }
}

impl<'a, T: Real> VbCounts<'a, T> {
    /// All of the data, or, as [`is_part`](Self::is_part) says, some of them.
    pub(super) fn new(
        data: &'a dyn Data<T>,
        (specs, priors): (Vec<BlockSpec<T>>, Vec<Entries>),
        form: Form,
    ) -> Self {
        Self {
            fixed: vec![None; specs.len()],
            data,
            specs,
            priors,
            form,
            facts: Vec::new(),
            is_part: false,
            by_means: false,
        }
    }

    /// The same of a part of all data.
    pub(super) fn of_part(mut self) -> Self {
        self.is_part = true;
        self
    }

    /// Keeps the posterior of a block as it is.
    pub(super) fn fix(&mut self, block: usize, shapes: &DMatrix<T>) -> Result<(), FitError> {
        self.fixed[block] = Some(self.mean(&self.specs[block].name, shapes)?);
        Ok(())
    }

    /// The means of the columns of a block that are taken.
    fn mean(&self, name: &str, shapes: &DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        match self.by_means {
            true => Ok(means(shapes)),
            false => geometric(name, shapes),
        }
    }

    /// Whether a block is one that all parts of the data share.
    fn is_shared(&self, block: usize) -> bool {
        match self.form {
            Form::Joint => block + 1 < self.specs.len(),
            Form::Given(_) => block == 0,
        }
    }

    /// The mode of a block; `None` for weights.
    fn mode(&self, block: usize) -> Option<usize> {
        match (self.form, block) {
            (Form::Joint, 0) => None,
            (Form::Joint, block) => Some(block - 1),
            (Form::Given(given), 0) => Some(given.explained()),
            (Form::Given(given), _) => Some(given.mode()),
        }
    }

    /// Calls `f` with the model of these blocks.
    fn with_model<O>(&self, blocks: &Means<'_, T>, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        match self.form {
            Form::Joint => {
                let factors = blocks[1..].iter().map(|f| Factor::Columns(f));
                let factors: Vec<_> = factors.collect();
                f(&Cp {
                    weights: Some(blocks[0].as_slice()),
                    factors: &factors,
                })
            }
            Form::Given(given) => with_model(given, &blocks[0], &blocks[1], f),
        }
    }

    /// The posteriors that an E-step at these blocks leads to, as far as they are wanted, and `Σ V ln P`.
    pub(super) fn update(
        &self,
        blocks: &Means<'_, T>,
        wanted: &[bool],
        value: bool,
    ) -> Result<Updated<T>, FitError> {
        let modes = (0..wanted.len()).filter(|&j| wanted[j]);
        let mut modes: Modes = modes.filter_map(|j| self.mode(j)).collect();
        if modes.is_empty() && wanted.contains(&true) {
            modes = Modes::one(0);
        }
        let request = Request::counts(modes).value(value);
        let mut e = self.with_model(blocks, |cp| self.data.e_step(cp, &request))?;
        let value = value.then(|| e.value());
        let counts = self.weights(&e, wanted);
        let mut new = vec![None; wanted.len()];
        for j in (0..wanted.len()).filter(|&j| wanted[j]) {
            new[j] = match self.mode(j) {
                Some(mode) => Some(e.take(mode)),
                None => counts.clone(),
            };
        }
        for (j, (new, spec)) in new.iter_mut().zip(&self.specs).enumerate() {
            if let Some(counts) = new
                && !(self.is_part && self.is_shared(j))
            {
                // [EXT 3] a <- a0 + n, A_j <- A0_j + C_j
                add(&self.priors[j], spec, counts);
            }
        }
        Ok((new, value))
    }

    /// Counts of the weights, which those of any mode sum to.
    fn weights(&self, e: &Expected<T>, wanted: &[bool]) -> Option<DMatrix<T>> {
        let modes = 0..self.data.shape().len();
        let some = modes.filter(|_| wanted[0] && self.mode(0).is_none());
        let counts = some.filter_map(|mode| e.get(mode)).next()?;
        let n = Factor::Columns(counts).component_sums();
        Some(DMatrix::from_vec(n.len(), 1, n))
    }

    /// A block that knows nothing: every component has the same share of the counts of an index.
    pub(super) fn even_block(&self, block: usize) -> Result<DMatrix<T>, FitError> {
        let spec = &self.specs[block];
        let (rows, columns) = spec.shape;
        let sums = match self.mode(block) {
            Some(mode) => self.data.marginal(mode)?,
            None => vec![self.data.total(); rows],
        };
        let (k, by_column) = match (spec.axes.components(), self.mode(block)) {
            (Axis::Rows, Some(_)) => (rows, true),
            (Axis::Rows | Axis::None, None) => (rows, false),
            _ => (columns, false),
        };
        // [EXT 3] alpha + N_d / K
        let mut even = DMatrix::from_fn(rows, columns, |i, y| {
            T::lit(sums[if by_column { y } else { i }] / k as f64)
        });
        add(&self.priors[block], spec, &mut even);
        Ok(even)
    }

    fn geometric(&self, at: &Parameters<T>) -> Result<Means<'_, T>, FitError> {
        let blocks = at.blocks().zip(&self.fixed).enumerate();
        let means = blocks.map(|(j, ((name, shapes), fixed))| {
            if let Some(means) = fixed {
                return Ok(Cow::Borrowed(means));
            }
            let mut means = self.mean(name, shapes)?;
            if self.is_of_rows(j) {
                across(at, shapes, &mut means);
            }
            Ok(Cow::Owned(means))
        });
        means.collect()
    }

    /// Whether the columns of a block run across all parts of the data.
    pub(super) fn is_of_rows(&self, block: usize) -> bool {
        self.is_part && !self.is_shared(block) && matches!(self.form, Form::Joint)
    }

    fn divergence(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let blocks = (0..self.specs.len()).filter(|&j| !(self.is_part && self.is_shared(j)));
        let terms = blocks.map(|j| {
            let divergence = match self.is_of_rows(j) {
                true => divergence_of_rows,
                false => divergence,
            };
            divergence(&self.specs[j], at.at(j), &self.priors[j])
        });
        terms.sum()
    }
}

/// Adds the shapes of a prior to counts.
pub(super) fn add<T: Real>(prior: &Entries, spec: &BlockSpec<T>, counts: &mut DMatrix<T>) {
    prior.for_each(counts.as_mut_slice(), components(spec), |x, a0| {
        *x += T::lit(a0);
    });
}

impl<T: Real> Expectation<T> for VbCounts<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let means = self.geometric(at)?;
        let (blocks, ln_lik) = self.update(&means, wanted.blocks, wanted.value)?;
        // [EXT 3] Σ V ln P~ - Σ KL(Dir(shape) || Dir(prior))
        let bound = |ln_lik: f64| Ok::<_, FitError>(ln_lik - self.divergence(at)?);
        Ok(Counts {
            blocks,
            value: ln_lik.map(bound).transpose()?,
        })
    }

    /// Where a positive cell has no geometric mean, all of its components underflow.
    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let means = self.geometric(at)?;
        Ok(self.with_model(&means, |cp| unsupported(self.data, cp))?)
    }

    /// Updates from the means of the posteriors, which is EM: the first one from distributions as EM draws them.
    fn draw(
        &self,
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<DMatrix<T>>, FitError> {
        let mut blocks: Vec<_> = self.specs.iter().map(|spec| spec.drawn(rng)).collect();
        for pass in 0..START {
            progress.step(pass, START)?;
            let at = blocks.iter().map(|block| match pass {
                0 => Cow::Borrowed(block),
                _ => Cow::Owned(means(block)),
            });
            let (new, _) = self.update(&at.collect(), &vec![true; blocks.len()], false)?;
            blocks = new.into_iter().flatten().collect();
        }
        Ok(blocks)
    }

    /// Shapes of a posterior are not below those of its prior.
    fn given(&self, block: usize, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        let spec = &self.specs[block];
        let value = spec.given(value)?;
        refuse_probabilities(spec, &value, &self.priors[block])?;
        Ok(value)
    }

    fn even(&self) -> Result<Option<Vec<DMatrix<T>>>, FitError> {
        let all = (0..self.specs.len()).map(|j| self.even_block(j));
        all.collect::<Result<_, _>>().map(Some)
    }

    fn unit(&self) -> f64 {
        self.data.total()
    }

    fn mass(&self) -> f64 {
        self.data.total()
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        self.facts.clone()
    }
}
