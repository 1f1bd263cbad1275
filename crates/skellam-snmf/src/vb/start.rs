//! Starts.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{
    Algorithm, FitError, Parameters, Progress, Settings, State,
    blocks::BlockSpec,
    em::{Em, Expectation, Stepped},
    explain::{begin, explain_given},
};
use plca_priors::Components;
use plca_tensor::arrange::Signed;
use plca_tensor::{Data, Real};
use rand::Rng;

use super::counts::{VbCounts, blocks, rates};
use super::{SnmfVb, SnmfVbState};
use crate::SnmfState;
use crate::check::check_shapes;
use crate::posterior::check_held;
use crate::sides::stack;
use crate::signed::unsupported;
use crate::{Entries, Prior};

/// Variational Bayes on data, with its starts.
#[derive(Debug)]
pub(super) struct Started<T: Real>(pub(super) Em<VbCounts<T>>);

/// A block of the prior, every entry raised by up to `most`.
fn expanded<T: Real>(
    entries: &Entries,
    (rows, columns): (usize, usize),
    components: Components,
    most: f64,
    mut draw: impl FnMut() -> f64,
) -> DMatrix<T> {
    let mut block = DMatrix::zeros(rows, columns);
    entries.for_each(block.as_mut_slice(), components, |x, c| {
        let c = T::lit(c);
        *x = if most > 0.0 {
            T::lit(c.to_f64() + most * draw())
        } else {
            c
        };
    });
    block
}

/// The prior of activations of this shape, `ŝ = a` and `b̂ = b + 1`, shapes raised by up to `most`.
fn activations<T: Real>(
    prior: &Prior,
    shape: (usize, usize),
    most: f64,
    draw: impl FnMut() -> f64,
) -> [DMatrix<T>; 2] {
    let rows = Components::Rows(shape.0);
    let shapes = expanded(&prior.shape, shape, rows, most, draw);
    [shapes, rates(prior, shape)]
}

/// The prior itself, shapes raised by up to `most`.
pub(super) fn at_prior<T: Real>(
    prior: &Prior,
    specs: &[BlockSpec<T>],
    most: f64,
    mut draw: impl FnMut() -> f64,
) -> Vec<DMatrix<T>> {
    let (rows, k) = specs[0].shape;
    let shape = (rows / 2, k);
    let columns = Components::Columns(rows / 2);
    let mut side = |entries| expanded(entries, shape, columns, most, &mut draw);
    let (plus, minus) = (side(&prior.plus), side(&prior.minus));
    let [shape, rate] = activations(prior, specs[1].shape, most, draw);
    vec![stack(&plus, &minus), shape, rate]
}

impl<T: Real> Algorithm<T> for Started<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.0.0.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        self.0.step(at, measure)
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.0.objective(at)
    }

    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Ok(self.0.0.ln_lik(at))
    }

    fn unit(&self) -> f64 {
        self.0.0.unit()
    }

    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError> {
        self.0.extrapolates(at)
    }

    fn draw(
        &self,
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<DMatrix<T>>, FitError> {
        self.0.0.draw(rng, progress)
    }

    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        given: &[bool],
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        let VbCounts { prior, specs, .. } = &self.0.0;
        explain_given(
            self,
            blocks,
            given,
            at_prior(prior, specs, 0.0, || 0.0),
            progress,
        )
    }

    /// Refuses shapes too small to be fitted.
    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        check_held(at)
    }

    fn residual(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Algorithm::residual(&self.0, at)
    }
}

impl SnmfVb {
    /// The prior itself as a start, `α̂ = α`, `ŝ = a`, `b̂ = b + 1`, every shape raised by up to `jitter`: components that start alike under like
    /// priors stay alike for ever.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] for a jitter that is negative or not finite, and those of [`on`](plca_fit::Model::on).
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Entries, Prior, SnmfVb};
    /// # let mut rng = skellam_snmf::seed(0);
    /// let v = DenseTensor::new(vec![1, 2], vec![2.0, -4.0], Order::RowMajor)?;
    /// let priors = Prior { shape: Entries::All(3.0), rate: Entries::All(0.5), ..Prior::flat() };
    /// let start = SnmfVb::new(1).priors(priors).at_prior(&v, 0.0, &mut rng)?;
    /// assert_eq!(start.activations_shape(), &dmatrix![3.0, 3.0]);
    /// assert_eq!(start.activations_rate(), &dmatrix![1.5, 1.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at_prior<T: Real>(
        &self,
        data: &dyn Data<T>,
        jitter: f64,
        rng: &mut dyn Rng,
    ) -> Result<SnmfVbState<T>, FitError> {
        self.check()?;
        if !(jitter.is_finite() && jitter >= 0.0) {
            return Err(FitError::Setting {
                name: "jitter",
                value: jitter,
                expected: "a finite number >= 0",
            });
        }
        let bound = self.on_cells(Signed::new(data)?)?;
        let VbCounts { prior, specs, .. } = &bound.0.0;
        let blocks = at_prior(prior, specs, jitter, || random::uniform(rng));
        SnmfVbState::wrap(begin(&bound, blocks)?)
    }

    /// The update from the factors of a state as a start: they are taken for the geometric means.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`] for another number of components or columns, [`FitError::Support`] for a datum that the factors make impossible,
    /// [`FitError::NotFinite`], and those of [`on`](plca_fit::Model::on).
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::Model;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Snmf, SnmfVb};
    /// # let mut rng = skellam_snmf::seed(0);
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![2.0, 4.0, -1.0, -2.0], Order::RowMajor)?;
    /// let point = Snmf::new(1).fit(&v, &mut rng)?;
    /// let vb = SnmfVb::new(1);
    /// let start = vb.at_means(&v, point.state())?;
    /// let fit = vb.on(&v)?.run(&start, &mut rng)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at_means<T: Real>(
        &self,
        data: &dyn Data<T>,
        means: &SnmfState<T>,
    ) -> Result<SnmfVbState<T>, FitError> {
        self.check()?;
        let bound = self.on_cells(Signed::new(data)?)?;
        let counts = &bound.0.0;
        let [atoms, activations] = [0, 1].map(|j| counts.specs[j].shape);
        check_shapes([
            ("atoms", means.atoms().shape(), atoms),
            ("activations", means.activations().shape(), activations),
        ])?;
        let factors = means.to_factors();
        let sides = [&factors.plus, &factors.minus];
        let lost = unsupported(&counts.data.cells, sides, &factors.activations);
        if let Some((at, value)) = lost {
            let index = at.to_vec();
            return Err(FitError::Support { index, value });
        }
        SnmfVbState::wrap(begin(&bound, blocks(counts.updated(&factors)?))?)
    }
}
