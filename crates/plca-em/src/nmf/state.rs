//! Fitted parameters, and what they say of data.

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm, Explained, Factored, Fit, FitError, Model, Parameters, Settings, State, Transform,
    blocks::{Axes, Axis, Blocks, Exposure},
    explain::{
        Alone, Outcome, begin, certify, each, empty, gaps, one_by_one, possible, share, uncertified,
    },
    units::components_in_unit,
};
use plca_tensor::{Cp, Data, Factor, Real, exponent, normalise_columns};

use super::counts::image;
use super::{Nmf, specs};
use crate::PlcaState;
use crate::explained::written;
use crate::product::conflict;

/// The fitted parameters of [`Nmf`]: two non-negative matrices whose product approximates the data.
///
/// ```math
/// V \approx W H
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NmfState<T: Real>(Parameters<T>);

plca_fit::serialised!(NmfState);

impl<T: Real> NmfState<T> {
    /// The state of `W`, `I x K`, and `H`, `K x J`.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`], [`FitError::Setting`] without components.
    pub fn new(w: DMatrix<T>, h: DMatrix<T>) -> Result<Self, FitError> {
        FitError::if_zero("components", w.ncols())?;
        let specs = specs([w.nrows(), h.ncols()], w.ncols());
        Ok(Self(Parameters::new(&specs, vec![w, h])?))
    }

    /// The first factor, `W`: an `I x K` matrix, `>= 0`. `W` and `H` together have the units of the data.
    pub fn w(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// The second factor, `H`: a `K x J` matrix, `>= 0`. `W` and `H` together have the units of the data.
    pub fn h(&self) -> &DMatrix<T> {
        self.0.at(1)
    }

    /// Transforms new data as [`Nmf::transform`] does, with a model without priors.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        Nmf::new(self.w().ncols()).transform(self, data, how)
    }

    /// The PLCA of which the product is a multiple.
    ///
    /// ```math
    /// W H = v \, P, \qquad P[i,j] = \sum_z P(z) \, P(i \mid z) \, P(j \mid z), \qquad v = \sum_{i,j} (W H)_{ij}
    /// ```
    ///
    /// Components without mass get uniform factors.
    ///
    /// # Errors
    ///
    /// [`FitError::Sum`] for a product without mass.
    pub fn to_plca(&self) -> Result<PlcaState<T>, FitError> {
        let (weights, factors) = image(self.w(), self.h());
        PlcaState::new(weights, factors)
    }

    /// The product `W H` of mass `v` that a PLCA of a matrix stands for, the columns of `W` summing to `d`.
    ///
    /// ```math
    /// W[i,z] = d_z \, P(i \mid z), \qquad H[z,j] = \frac{v}{d_z} \, P(z) \, P(j \mid z)
    /// ```
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for a PLCA of another order, [`FitError::Shape`] for another number of sums than components, [`FitError::Empty`] where
    /// a component with weight is to sum to 0, [`FitError::Value`].
    pub fn from_plca(plca: &PlcaState<T>, d: &[T], v: T) -> Result<Self, FitError> {
        let [first, second] = plca.factors() else {
            let order = plca.factors().len();
            return conflict(format!("NMF is for matrices, the PLCA has order {order}"));
        };
        let weights = plca.weights();
        if d.len() != weights.len() {
            return Err(FitError::Shape {
                block: "d".into(),
                got: (d.len(), 1),
                expected: (weights.len(), 1),
            });
        }
        let (mut w, mut h) = (first.clone(), second.transpose());
        for (z, (&d, &weight)) in d.iter().zip(weights).enumerate() {
            if d <= T::zero() && weight > T::zero() {
                let block = "w".into();
                return Err(FitError::Empty { block, column: z });
            }
            w.column_mut(z).iter_mut().for_each(|x| *x *= d);
            // [SI eq. 97] [SPEC 3] H = v D⁻¹ diag(P(z)) F_2ᵀ
            let scale = match weight > T::zero() {
                true => v * weight / d,
                false => T::zero(),
            };
            h.row_mut(z).iter_mut().for_each(|x| *x *= scale);
        }
        Self::new(w, h)
    }
}

impl Nmf {
    /// Transforms new data along one mode: the other factor of the state is kept, and the new one has the prior of this model. Each observation is explained
    /// alone, until it is at its own end: its rates are bit-identical in any batch, in any storage and for any number of threads.
    ///
    /// With a prior there is no bound on what the objective can gain: no gaps, and the objective alone ends the run.
    ///
    /// ```
    /// use plca_em::nalgebra::{self, dmatrix};
    /// use plca_em::{Nmf, NmfState, Transform};
    /// use plca_em::priors::Penalty;
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let learnt = NmfState::new(dmatrix![1.0; 3.0], dmatrix![1.0])?;
    /// let new = DenseTensor::new(vec![2, 2], vec![1.0, 4.0, 4.0, 6.0], Order::RowMajor)?;
    /// let nmf = Nmf::new(1).prior("h", Penalty::new(1.0, 0.0)?);
    /// let explained = nmf.transform(&learnt, &new, &Transform::default())?;
    /// assert!((explained.fit.state().h() - dmatrix![1.0, 2.0]).amax() < 1e-9);    // 5 / (4 + 1), 10 / (4 + 1)
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::DataShape`], [`FitError::Impossible`], and those of [`on`](Model::on) and of a run.
    pub fn transform<T: Real>(
        &self,
        learnt: &NmfState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<NmfState<T>>, FitError> {
        self.check()?;
        let along = how.mode(2)?;
        match self.evenly(learnt, data, how, along)? {
            Some(explained) => Ok(explained),
            None => self.as_they_are(learnt, data, how, along),
        }
    }

    /// The same by components in the sizes that they have.
    fn as_they_are<T: Real>(
        &self,
        learnt: &NmfState<T>,
        data: &dyn Data<T>,
        how: &Transform,
        along: usize,
    ) -> Result<Explained<NmfState<T>>, FitError> {
        let both = [Factor::Columns(learnt.w()), Factor::Rows(learnt.h())];
        let mut kept = both.map(Some);
        kept[along] = None;
        let (part, dropped) = possible(data, &kept, how.impossible)?;
        let data = part.as_ref().map_or(data, |part| part);
        let k = learnt.w().ncols();
        let (fixed, found) = match along {
            0 => ("h", "w"),
            _ => ("w", "h"),
        };
        let mut config = Nmf::new(k).freeze(fixed);
        let prior = self.blocks.prior_of(found);
        if let Some(prior) = prior {
            config = config.prior(found, prior.clone());
        }
        let algorithm = config.bind(data)?;
        let empty = empty(data, along)?;
        if prior.is_none()
            && data.is_complete()
            && let Some((fit, gap)) = alone(&*algorithm, learnt, data, along, how)?
        {
            return Ok(Explained::new(fit, gap, dropped, empty));
        }
        let spec = &algorithm.blocks()[along];
        let size = match along {
            0 => (1, k),
            _ => (k, 1),
        };
        // A prior of every entry of the block is one of these data alone.
        if spec
            .prior
            .as_ref()
            .is_some_and(|prior| prior.rules().check(size).is_err())
        {
            let found = config.together(learnt, data, along, how)?;
            return Ok(Explained::new(found.fit, found.gap, dropped, empty));
        }
        let nothing = DMatrix::from_element(size.0, size.1, T::one());
        let found = each(data, along, how, |_, observation, how| {
            if observation.total() > 0.0 {
                let found = config.together(learnt, observation, along, how)?;
                let found = Alone::of(&found, |state| state.0.at(along).clone());
                return Ok(Some((found.own.clone(), Some(found))));
            }
            // Without counts a rate is 0, or what its prior says.
            let mut one = spec.clone();
            one.shape = size;
            let share = share(observation, &both, along)?;
            let exposure = Exposure::PerComponent(share.iter().copied().collect());
            let counts = DMatrix::zeros(size.0, size.1);
            let (block, _) = one.m_step(counts, &nothing, Some(exposure), 1)?;
            Ok(Some((block, None)))
        })?;
        // Where nothing was seen it means nothing.
        let blocks = found.iter().map(|one| match one {
            Some((block, _)) => block,
            None => &nothing,
        });
        let blocks: Vec<_> = blocks.collect();
        let write = |j: usize, block: &mut DMatrix<T>| {
            for (y, one) in blocks.iter().enumerate().filter(|_| j == along) {
                match along {
                    0 => block.set_row(y, &one.row(0)),
                    _ => block.set_column(y, &one.column(0)),
                }
            }
        };
        let kept = |j: usize| (j != along).then(|| learnt.0.at(j));
        let runs = || {
            found
                .iter()
                .map(|one| one.as_ref().and_then(|(_, run)| run.as_ref()))
        };
        let ended = Outcome::of(runs().flatten());
        let gaps = runs().map(|run| match run {
            Some(run) => run.gap,
            None => prior.is_none().then_some(0.0),
        });
        Ok(Explained::new(
            written(&*algorithm, kept, &ended, write)?,
            gaps.flatten().collect(),
            dropped,
            empty,
        ))
    }

    /// The same by components of about the same size where those of the learnt factor are far apart: an even start would be one of the largest alone.
    /// `None` where they are not, or where a prior says in which unit they are.
    fn evenly<T: Real>(
        &self,
        learnt: &NmfState<T>,
        data: &dyn Data<T>,
        how: &Transform,
        along: usize,
    ) -> Result<Option<Explained<NmfState<T>>>, FitError> {
        let (k, kept) = (learnt.w().ncols(), 1 - along);
        let sizes = match kept {
            0 => learnt.w().column_iter().map(|w| w.max()).collect(),
            _ => largest(learnt.h().as_slice(), k),
        };
        let exponents = sizes.iter().filter(|&&x| x > T::zero());
        let exponents: Vec<i32> = exponents.map(|x| exponent(x.to_f64())).collect();
        let ends = exponents.iter().min().zip(exponents.iter().max());
        let prior = self.blocks.prior_of(if along == 0 { "w" } else { "h" });
        if prior.is_some() || ends.is_none_or(|(least, most)| most - least <= APART) {
            return Ok(None);
        }
        // As far as the rates that belong to them stay numbers.
        let least = ROOM - T::MAX_EXPONENT;
        let exponents = sizes.iter().map(|size| -exponent(size.to_f64()).max(least));
        let exponents: Vec<i32> = exponents.collect();
        let scaled = |j: usize, block: &DMatrix<T>| {
            components_in_unit(block, [Axis::Columns, Axis::Rows][j], |z| exponents[z])
        };
        let [w, h] = [learnt.w(), learnt.h()];
        let even = match kept {
            0 => NmfState::new(scaled(0, w), h.clone())?,
            _ => NmfState::new(w.clone(), scaled(1, h))?,
        };
        let mut explained = self.as_they_are(&even, data, how, along)?;
        explained.fit = explained.fit.change(|at| {
            at.change(|j, block| {
                *block = match j == along {
                    true => scaled(j, block),
                    false => learnt.0.at(j).clone(),
                }
            });
        })?;
        Ok(Some(explained))
    }

    /// The same of data as they are, by a model whose other factor is frozen.
    fn together<T: Real>(
        &self,
        learnt: &NmfState<T>,
        data: &dyn Data<T>,
        along: usize,
        how: &Transform,
    ) -> Result<Explained<NmfState<T>>, FitError> {
        let algorithm = self.bind(data)?;
        let prior = algorithm.blocks()[along].prior.is_some();
        if !prior && let Some((fit, gap)) = alone(&*algorithm, learnt, data, along, how)? {
            return Ok(Explained::new(fit, gap, 0.0, Vec::new()));
        }
        let (n, k) = (data.shape()[along], learnt.w().ncols());
        let both = [Factor::Columns(learnt.w()), Factor::Rows(learnt.h())];
        let (totals, share) = (data.marginal(along)?, share(data, &both, along)?);
        // Every observation starts with a model of its own mass: from there on the gap is certified.
        let uniform = |y: usize| {
            let unit = share.row(y).sum();
            match unit > T::zero() {
                true => T::lit(totals[y]) / unit,
                false => T::one(),
            }
        };
        let free = DMatrix::from_fn(k, n, |_, y| uniform(y));
        let blocks = match along {
            0 => vec![free.transpose(), learnt.h().clone()],
            _ => vec![learnt.w().clone(), free],
        };
        let start = begin(&*algorithm, blocks)?;
        let (fit, gap) = match prior {
            true => (uncertified(algorithm, start, how)?, Vec::new()),
            false => certify::<NmfState<T>>(algorithm, start, how, |at| match along {
                1 => gaps(data, [at.at(0), at.at(1)], along, &totals),
                _ => {
                    let [fixed, free] = [at.at(1).transpose(), at.at(0).transpose()];
                    gaps(data, [&fixed, &free], along, &totals)
                }
            })?,
        };
        Ok(Explained::new(fit, gap, 0.0, Vec::new()))
    }
}

/// By how many powers of two the largest entries of learnt components may be apart.
const APART: i32 = 10;
/// Powers of two that this leaves free for the rates of the largest counts.
const ROOM: i32 = 32;

/// Explained observations and their gaps.
type Gapped<T> = (Fit<NmfState<T>>, Vec<f64>);

/// The observations explained one by one; `None` for solvers that move all of them at once.
fn alone<T: Real>(
    algorithm: &dyn Algorithm<T>,
    learnt: &NmfState<T>,
    data: &dyn Data<T>,
    along: usize,
    how: &Transform,
) -> Result<Option<Gapped<T>>, FitError> {
    let mut fixed = match along {
        0 => learnt.h().transpose(),
        _ => learnt.w().clone(),
    };
    // In units in which every component has the mass 1.
    let sums = normalise_columns(&mut fixed);
    let mut factors = [Some(Factor::Columns(&fixed)); 2];
    factors[along] = None;
    let Some(solved) = one_by_one(data, &factors, along, how)? else {
        return Ok(None);
    };
    let kept = |j: usize| (j != along).then(|| learnt.0.at(j));
    let write = |j: usize, block: &mut DMatrix<T>| {
        if j == along {
            let rates = solved.in_unit(0);
            let rate = |z: usize, y: usize| match sums[z] > T::zero() {
                // [SPEC 3] W = F_1 D in the units of the learnt factor
                true => rates[(z, y)] / sums[z],
                false => T::zero(),
            };
            let (k, n) = rates.shape();
            *block = match along {
                0 => DMatrix::from_fn(n, k, |y, z| rate(z, y)),
                _ => DMatrix::from_fn(k, n, rate),
            };
        }
    };
    let fit = written(algorithm, kept, &solved.ended, write)?;
    Ok(Some((fit, solved.gap)))
}

/// The largest number at each of `n` places, over and over.
fn largest<T: Real>(entries: &[T], n: usize) -> Vec<T> {
    // Several maxima at once, which the processor finds side by side.
    let lanes = n * (16usize.div_ceil(n.max(1)));
    let mut found = vec![T::zero(); lanes];
    for entries in entries.chunks(lanes.max(1)) {
        for (found, &x) in found.iter_mut().zip(entries) {
            if x > *found {
                *found = x;
            }
        }
    }
    let of = |z: usize| {
        found[z..]
            .iter()
            .step_by(n)
            .copied()
            .fold(T::zero(), T::max)
    };
    (0..n).map(of).collect()
}

impl<T: Real> Factored for NmfState<T> {
    fn product(at: &Parameters<T>) -> (Option<&[T]>, Vec<Factor<'_, T>>) {
        let factors = vec![Factor::Columns(at.at(0)), Factor::Rows(at.at(1))];
        (None, factors)
    }

    fn scale(&self, _: usize) -> f64 {
        1.0
    }

    /// Where components have their scales in different factors, with both factors of each of about the same size: an E-step takes entries for 0 that are
    /// far below others of their row, whatever the other factor makes of them.
    fn with_model_at<O>(at: &Parameters<T>, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        let (weights, factors) = Self::product(at);
        let ends = at
            .at(0)
            .column_iter()
            .map(|column| largest(column.as_slice(), 1)[0]);
        let ends = ends.zip(largest(at.at(1).as_slice(), at.at(0).ncols()));
        let exponents = ends.map(|(w, h)| {
            let is_alive = w > T::zero() && h > T::zero();
            is_alive.then(|| exponent(h.to_f64()) - exponent(w.to_f64()))
        });
        let exponents: Vec<Option<i32>> = exponents.collect();
        let alive = || exponents.iter().flatten();
        let apart = (alive().max().zip(alive().min())).map_or(0, |(most, least)| most - least);
        // A third of the digits by which such entries are below the others.
        if apart <= -exponent(T::TINY.to_f64()) / 6 {
            let factors = &factors;
            return f(&Cp { weights, factors });
        }
        let half = |z: usize| exponents[z].unwrap_or(0) / 2;
        let w = components_in_unit(at.at(0), Axis::Columns, half);
        let h = components_in_unit(at.at(1), Axis::Rows, |z| -half(z));
        let factors = &[Factor::Columns(&w), Factor::Rows(&h)];
        f(&Cp { weights, factors })
    }
}

impl<T: Real> State for NmfState<T> {
    type Scalar = T;
    const NAME: &'static str = "nmf-kl";
    const BLOCKS: Blocks = &[("w", Axes::factor(0)), ("h", Axes::coefficients(1))];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let ((rows, k), (_, columns)) = (parameters.shape(0), parameters.shape(1));
        parameters.check(&specs([rows, columns], k))?;
        FitError::if_zero("components", k)?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
