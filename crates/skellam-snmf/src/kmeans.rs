//! k-means: the baseline for clusters.
//!
//! ```math
//! \min \sum_n | v_n - c_{l(n)} |^2
//! ```
//!
//! One iteration moves every centre to the mean of its samples, then every sample to its nearest centre. The sum falls until no sample moves.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{
    Algorithm, Explained, FitError, Model, Parameters, Progress, Reconstruct, Sense, Settings,
    State, Transform,
    blocks::{Axes, BlockSpec, Blocks, Constraint, Frozen},
    em::Stepped,
    explain::check_shape,
    separable::Separable,
    units::in_unit,
};
use plca_tensor::{CompensatedSum, Data, DenseTensor, Factor, Order, Real};
use rand::Rng;

use crate::ding::Scaled;
use crate::signed::{along_columns, explained};

/// The choice of the first centres: always different samples.
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::Model;
/// use skellam_snmf::tensor::DenseTensor;
/// use skellam_snmf::{KMeans, Seeding};
/// let v = DenseTensor::try_from(dmatrix![0.0, 2.0, 10.0])?;
/// for seeding in [Seeding::PlusPlus, Seeding::Random] {
///     let fit = KMeans::new(3).seeding(seeding).fit(&v, &mut skellam_snmf::seed(0))?;
///     assert_eq!(fit.objective(), 0.0);                               // every sample is a centre
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seeding {
    /// Samples, each with probability proportional to its squared distance from the centres so far (k-means++).
    #[default]
    PlusPlus,
    /// Different samples, all equally likely.
    Random,
}

plca_fit::settings! {
    /// Clustering of the columns of a matrix by k-means, a cluster for every component: a baseline.
    ///
    /// ```math
    /// \text{minimise} \quad \sum_n \lVert v_n - c_{l(n)} \rVert^2
    /// ```
    ///
    /// `v_n` is column `n` of the data, `F x N`; `c_k` is centre `k`, and `l(n)` the cluster of the column. The blocks are `centres`, `F x k`,
    /// in the units of the data, and `labels`, the cluster of every column, counted from 0, as a column of `N`; they follow from the centres.
    ///
    /// [`KMeans::new`] and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use skellam_snmf::Model;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::KMeans;
    /// let v = DenseTensor::new(vec![1, 4], vec![0.0, 9.0, 1.0, 11.0], Order::RowMajor)?;
    /// let fit = KMeans::new(2).fit(&v, &mut skellam_snmf::seed(0))?;
    /// assert_eq!(fit.objective(), 2.5);                                       // means 0.5 and 10
    /// assert_eq!(fit.state().label(0), fit.state().label(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct KMeans {
        /// The choice of the first centres (default: [`Seeding::PlusPlus`]).
        pub seeding: Seeding = Seeding::default();
    }
}

impl KMeans {
    fn steps<T: Real>(&self, data: &dyn Data<T>) -> Result<KMeansSteps<T>, FitError> {
        let data = Scaled::new(data)?;
        let samples = data.values.ncols();
        if self.components > samples {
            return Err(FitError::Conflict {
                what: format!(
                    "{} clusters for {samples} samples, expected at most one for each sample",
                    self.components
                ),
            });
        }
        let mut specs = specs(data.values.shape(), self.components);
        self.blocks.apply(&mut specs)?;
        Ok(KMeansSteps {
            squares: data.squares()?,
            data,
            seeding: self.seeding,
            specs,
        })
    }
}

plca_fit::by_name!(KMeans {
    seeding: ["seeding", "HOW", "Start", "How the first centres are chosen [default: plus-plus]"];
});

plca_fit::choices!(Seeding {
    "plus-plus" = Seeding::PlusPlus: "Samples, preferably those far from the centres chosen before (k-means++)";
    "random" = Seeding::Random: "Samples, each with the same probability";
});

impl Settings for KMeans {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without clusters.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("clusters", self.components)
    }
}

impl<T: Real> Model<T> for KMeans {
    type State = KMeansState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        Ok(Box::new(self.steps(data)?))
    }
}

/// The blocks of a matrix of this shape.
fn specs<T: Real>((f, n): (usize, usize), k: usize) -> Vec<BlockSpec<T>> {
    vec![
        BlockSpec::values("centres", (f, k), Axes::factor(0), Constraint::Free),
        BlockSpec::values("labels", (n, 1), Axes::numbers(1), Constraint::NonNegative),
    ]
}

/// The fact of parameters that no iteration changes.
const SETTLED: &str = "settled";

/// k-means on data, which it divides by a power of two, and the centres with them: distances are those of numbers near 1.
#[derive(Debug)]
struct KMeansSteps<T: Real> {
    data: Scaled<T>,
    /// The squares of the data.
    squares: f64,
    seeding: Seeding,
    specs: Vec<BlockSpec<T>>,
}

/// Squares below this may have lost digits.
const SMALL: f64 = 1e-280;

fn label<T: Real>(labels: &DMatrix<T>, n: usize) -> usize {
    labels[n].to_f64() as usize
}

/// Squared distance of a sample and a centre.
fn distance<T: Real>(data: &DMatrix<T>, n: usize, centres: &DMatrix<T>, k: usize) -> f64 {
    let (sample, centre) = (data.column(n), centres.column(k));
    let terms = sample.iter().zip(centre.iter());
    terms.map(|(&x, &c)| (x - c).to_f64().powi(2)).sum()
}

/// The distance itself, a number where its square is none.
fn far<T: Real>(data: &DMatrix<T>, n: usize, centres: &DMatrix<T>, k: usize) -> f64 {
    length((0..data.nrows()).map(|i| data[(i, n)].to_f64() - centres[(i, k)].to_f64()))
}

/// The length of a vector, a number where its square is none.
fn length(entries: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = entries.clone().fold(0.0, |most: f64, x| most.max(x.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    largest * entries.map(|x| (x / largest).powi(2)).sum::<f64>().sqrt()
}

impl<T: Real> KMeansSteps<T> {
    /// Centres in the unit of the data at work.
    fn at_work(&self, centres: &DMatrix<T>) -> DMatrix<T> {
        in_unit(centres, -self.data.exponent)
    }

    /// The nearest centre of every sample, the first of several.
    fn nearest(&self, centres: &DMatrix<T>) -> DMatrix<T> {
        let (data, centres) = (&self.data.values, &self.at_work(centres));
        let norm = |block: &DMatrix<T>, j: usize| {
            let column = block.column(j);
            length(column.iter().map(|x| x.to_f64()))
        };
        let norms: Vec<f64> = (0..centres.ncols()).map(|k| norm(centres, k)).collect();
        let rounding = 4.0 * T::EPSILON.to_f64();
        let nearest = |n: usize| {
            let mut all: Vec<f64> = (0..centres.ncols())
                .map(|k| distance(data, n, centres, k))
                .collect();
            // The unit of the data may be far from that of this sample.
            match all.iter().any(|d| !(SMALL..f64::INFINITY).contains(d)) {
                true => {
                    all = (0..all.len()).map(|k| far(data, n, centres, k)).collect();
                }
                false => all.iter_mut().for_each(|d| *d = d.sqrt()),
            }
            let least = all.iter().copied().min_by(f64::total_cmp);
            let least = least.unwrap_or(0.0);
            let own = norm(data, n);
            // Of centres that are equally near, but for rounding, the first: in another unit it is the same.
            let near = |&(k, d): &(usize, &f64)| *d - least <= rounding * (own + norms[k]);
            all.iter().enumerate().find(near).map_or(0, |(k, _)| k)
        };
        let labels = (0..data.ncols()).map(|n| T::lit(nearest(n) as f64));
        DMatrix::from_iterator(data.ncols(), 1, labels)
    }

    /// Every centre as the mean of its samples; one without samples stays.
    fn means(&self, at: &Parameters<T>) -> DMatrix<T> {
        let (mut centres, labels) = (at.at(0).clone(), at.at(1));
        let mut sums = DMatrix::zeros(centres.nrows(), centres.ncols());
        let mut counts = vec![0usize; centres.ncols()];
        for (n, sample) in self.data.values.column_iter().enumerate() {
            let k = label(labels, n);
            let mut column = sums.column_mut(k);
            column += sample;
            counts[k] += 1;
        }
        for (k, &count) in counts.iter().enumerate().filter(|&(_, &c)| c > 0) {
            sums.column_mut(k).unscale_mut(T::lit(count as f64));
        }
        let means = in_unit(&sums, self.data.exponent);
        for k in (0..counts.len()).filter(|&k| counts[k] > 0) {
            centres.set_column(k, &means.column(k));
        }
        self.specs[0].keep_frozen(at.at(0), &mut centres);
        centres
    }
}

impl<T: Real> Algorithm<T> for KMeansSteps<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        let value = measure.then(|| self.objective(at)).transpose()?;
        let centres = match self.specs[0].frozen {
            Frozen::Whole => at.at(0).clone(),
            _ => self.means(at),
        };
        let labels = self.nearest(&centres);
        if labels == *at.at(1) {
            *at = at.clone().with_fact(SETTLED, vec![1.0]);
        }
        let new = [centres, labels];
        at.change(|j, block| block.copy_from(&new[j]));
        at.count();
        Ok(Stepped::of(value))
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let (data, centres) = (&self.data.values, &self.at_work(at.at(0)));
        let each = 0..data.ncols();
        let each = each.map(|n| distance(data, n, centres, label(at.at(1), n)));
        let sum = each.collect::<CompensatedSum>().value();
        Ok(self.data.square(sum))
    }

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    /// The squares of the data.
    fn unit(&self) -> f64 {
        self.squares
    }

    fn settled(&self, at: &Parameters<T>) -> bool {
        at.fact(SETTLED).is_some()
    }

    fn extrapolates(&self, _: &Parameters<T>) -> Result<(), FitError> {
        Err(FitError::Conflict {
            what: "labels cannot be extrapolated: expected the solver `em`".into(),
        })
    }

    fn residual(&self, _: &Parameters<T>) -> Result<f64, FitError> {
        Err(FitError::NoResidual {
            why: "labels have no gradient".into(),
        })
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        Err(FitError::NotSeparable {
            what: "k-means".into(),
        })
    }

    fn draw(&self, rng: &mut dyn Rng, _: &mut Progress<'_>) -> Result<Vec<DMatrix<T>>, FitError> {
        let data = &self.data.values;
        let seeds = seeds(data, self.specs[0].shape.1, self.seeding, rng);
        let centres = in_unit(&data.select_columns(&seeds), self.data.exponent);
        let labels = self.nearest(&centres);
        Ok(vec![centres, labels])
    }

    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        given: &[bool],
        _: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        if given[0] && blocks[0].shape() == self.specs[0].shape {
            blocks[1] = self.nearest(&blocks[0]);
        }
        Ok(())
    }
}

/// The fitted parameters of [`KMeans`]: the centres of the clusters, and the cluster of every sample.
///
/// ```math
/// c_k = \mathrm{mean} \lbrace v_n : l(n) = k \rbrace, \qquad l(n) = \mathrm{argmin}_k \lVert v_n - c_k \rVert^2
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KMeansState<T: Real>(Parameters<T>);

plca_fit::serialised!(KMeansState);

impl<T: Real> KMeansState<T> {
    /// The centres: an `F x k` matrix in the units of the data, a column for each cluster.
    pub fn centres(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// The cluster of a sample, counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no such sample.
    pub fn label(&self, sample: usize) -> usize {
        label(self.0.at(1), sample)
    }

    /// The cluster of every sample, counted from 0.
    pub fn labels(&self) -> Vec<usize> {
        (0..self.0.at(1).len()).map(|n| self.label(n)).collect()
    }

    /// Gives every column of new data the label of its nearest centre. The centres stay.
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`], [`FitError::Entry`] for a hidden cell, and those of a run.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        along_columns(how)?;
        check_shape(data.shape(), &[Some(Factor::Columns(self.centres())), None])?;
        let data = Scaled::new(data)?;
        let mut specs = specs(data.values.shape(), self.centres().ncols());
        specs[0].frozen = Frozen::Whole;
        let steps = KMeansSteps {
            squares: data.squares()?,
            data,
            seeding: Seeding::default(),
            specs,
        };
        let labels = steps.nearest(self.centres());
        let start = vec![self.centres().clone(), labels];
        explained(steps, start, how, Vec::new(), 0.0)
    }
}

/// Every column as the centre of its cluster.
impl<T: Real> Reconstruct for KMeansState<T> {
    fn shape(&self) -> Vec<usize> {
        vec![self.centres().nrows(), self.0.at(1).len()]
    }

    fn components(&self) -> usize {
        self.centres().ncols()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        self.centres()[(index[0], self.label(index[1]))].to_f64()
    }

    fn cells(&self, component: Option<usize>) -> Result<DenseTensor<T>, FitError> {
        self.check_component(component)?;
        let labels = self.labels();
        let value = |i: usize, z: usize| match component.is_none_or(|only| only == z) {
            true => self.centres()[(i, z)],
            false => T::zero(),
        };
        let rows = (0..self.centres().nrows()).flat_map(|i| labels.iter().map(move |&z| (i, z)));
        let values = rows.map(|(i, z)| value(i, z)).collect();
        Ok(DenseTensor::new(self.shape(), values, Order::RowMajor)?)
    }
}

impl<T: Real> State for KMeansState<T> {
    type Scalar = T;
    const NAME: &'static str = "kmeans";
    const BLOCKS: Blocks = &[("centres", Axes::factor(0)), ("labels", Axes::numbers(1))];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let parameters = parameters.without_mass();
        let ((rows, k), (samples, _)) = (parameters.shape(0), parameters.shape(1));
        parameters.check(&specs((rows, samples), k))?;
        let labels = parameters.at(1).iter().map(|x| x.to_f64());
        let bad = |x: &f64| x.fract() != 0.0 || *x >= k as f64;
        if let Some((row, value)) = { labels }.enumerate().find(|(_, x)| bad(x)) {
            return Err(FitError::Range {
                block: "labels".into(),
                row,
                column: 0,
                value,
                expected: "a cluster that has a centre",
            });
        }
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}

/// The samples that become the first centres.
fn seeds<T: Real, R: Rng + ?Sized>(
    data: &DMatrix<T>,
    k: usize,
    seeding: Seeding,
    rng: &mut R,
) -> Vec<usize> {
    let n = data.ncols();
    let mut chosen: Vec<usize> = Vec::with_capacity(k);
    let mut nearest = vec![f64::INFINITY; n];
    while chosen.len() < k {
        let total: f64 = nearest.iter().sum();
        let next = if seeding == Seeding::PlusPlus && total.is_finite() && total > 0.0 {
            let mut left = total * random::uniform(rng);
            let at = nearest.iter().position(|&d| {
                left -= d;
                left <= 0.0
            });
            // What rounding may leave belongs to the last sample that is no centre.
            at.or_else(|| nearest.iter().rposition(|&d| d > 0.0))
        } else {
            None
        };
        let next = next.unwrap_or_else(|| {
            // Among the samples that are not chosen yet, in their order.
            let skip = random::below((n - chosen.len()) as u64, rng) as usize;
            let free = (0..n).filter(|at| !chosen.contains(at)).nth(skip);
            free.unwrap_or(0)
        });
        chosen.push(next);
        for (at, d) in nearest.iter_mut().enumerate() {
            *d = d.min(distance(data, at, data, next));
        }
    }
    chosen
}
