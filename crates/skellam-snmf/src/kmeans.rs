//! k-means: the baseline for clusters.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{Algorithm, Direction, StopReason};
use plca_tensor::{CompensatedSum, Real};
use rand::Rng;

use crate::init::check_block;
use crate::{ParamError, SnmfError};

/// How the first centres are chosen: always different samples.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Seeding, kmeans};
/// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// # let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let v = dmatrix![0.0, 2.0, 10.0];
/// for seeding in [Seeding::PlusPlus, Seeding::Random] {
///     assert_eq!(kmeans(&v, 3, seeding, 0, &mut rng)?.inertia, 0.0);  // every sample is a centre
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seeding {
    /// Samples, each with probability proportional to its squared distance from the centres so far (k-means++).
    #[default]
    PlusPlus,
    /// Different samples, all equally likely.
    Random,
}

/// Clusters of samples: what [`kmeans`] gives.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Seeding, kmeans};
/// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// # let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let c = kmeans(&dmatrix![0.0, 2.0, 10.0, 12.0], 2, Seeding::PlusPlus, 100, &mut rng)?;
/// assert_eq!((c.centres[c.labels[0]], c.centres[c.labels[3]]), (1.0, 11.0));
/// assert_eq!(c.inertia, 4.0);                                         // four times 1²
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters<T: Real> {
    /// Centres, `F x K`: means of their samples once no label changes.
    pub centres: DMatrix<T>,
    /// The cluster of each of the `N` samples, from 0.
    pub labels: Vec<usize>,
    /// Sum of squared distances to the centres, in squared units of the data.
    pub inertia: f64,
    /// Rounds of assignment and averaging.
    pub iterations: usize,
}

/// Squared distance of a sample and a centre.
fn distance<T: Real>(data: &DMatrix<T>, n: usize, centres: &DMatrix<T>, k: usize) -> f64 {
    let (sample, centre) = (data.column(n), centres.column(k));
    let terms = sample.iter().zip(centre.iter());
    terms.map(|(&x, &c)| (x - c).to_f64().powi(2)).sum()
}

/// Clusters the columns of `data` around `k` centres by Lloyd's iteration, until no label changes or after `max_iter` rounds.
/// A cluster that loses its last sample keeps its centre.
///
/// # Errors
///
/// [`SnmfError`]: no clusters, more than there are samples, a value that is no finite number.
///
/// # Examples
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Seeding, kmeans};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = dmatrix![0.0, 0.1, 9.0, 9.1];
/// let c = kmeans(&v, 2, Seeding::PlusPlus, 100, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!(c.labels[0] == c.labels[1] && c.labels[1] != c.labels[2] && c.labels[2] == c.labels[3]);
/// # Ok::<(), skellam_snmf::SnmfError>(())
/// ```
pub fn kmeans<T: Real, R: Rng + ?Sized>(
    data: &DMatrix<T>,
    k: usize,
    seeding: Seeding,
    max_iter: usize,
    rng: &mut R,
) -> Result<Clusters<T>, SnmfError> {
    let steps = KMeans::new(k)?.on(data)?;
    let mut state = steps.seed(seeding, rng);
    let mut iterations = 0;
    while !state.settled && iterations < max_iter {
        steps.step(&mut state, false)?;
        iterations += 1;
    }
    let inertia = steps.objective(&state)?;
    Ok(Clusters {
        centres: state.centres,
        labels: state.labels,
        inertia,
        iterations,
    })
}

/// k-means as an algorithm whose iterations can be watched, saved and continued; [`kmeans`] is all of it in one call.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{KMeans, Seeding, Stop, StopReason, run};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = dmatrix![0.0, 0.1, 9.0, 9.1];
/// let steps = KMeans::new(2)?.on(&v)?;
/// let start = steps.seed(Seeding::PlusPlus, &mut ChaCha8Rng::seed_from_u64(0));
/// let outcome = run(&steps, start, &Stop::default(), ())?;
/// assert_eq!(outcome.reason, StopReason::Converged);
/// # Ok::<(), skellam_snmf::SnmfError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KMeans {
    clusters: usize,
}

/// Centres and the nearest of them to every sample.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Algorithm, KMeans};
/// let v = dmatrix![0.0, 2.0, 10.0, 12.0];
/// let steps = KMeans::new(2)?.on(&v)?;
/// let mut state = steps.start(dmatrix![0.0, 3.0])?;
/// assert_eq!((&state.labels[..], state.settled), (&[0, 1, 1, 1][..], false));
/// steps.step(&mut state, false)?;                                     // the second centre moves to 8
/// assert_eq!((&state.labels[..], state.settled), (&[0, 0, 1, 1][..], false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KMeansState<T: Real> {
    /// Centres, `F x K`.
    pub centres: DMatrix<T>,
    /// The cluster of each of the `N` samples, from 0.
    pub labels: Vec<usize>,
    /// Whether the last round changed no label.
    pub settled: bool,
}

impl KMeans {
    /// With `k` clusters.
    ///
    /// # Errors
    ///
    /// [`ParamError::NoComponents`].
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{KMeans, ParamError};
    /// assert_eq!(KMeans::new(0), Err(ParamError::NoComponents));
    /// ```
    pub fn new(k: usize) -> Result<Self, ParamError> {
        if k == 0 {
            return Err(ParamError::NoComponents);
        }
        Ok(Self { clusters: k })
    }

    /// Binds the method to the columns of a complete matrix, `F x N`: `N` samples.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: more clusters than samples, a value that is no finite number.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{KMeans, SnmfError};
    /// let v = dmatrix![0.0, 2.0];
    /// let error = KMeans::new(3)?.on(&v).unwrap_err();
    /// assert_eq!(error, SnmfError::Clusters { clusters: 3, samples: 2 });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a, T: Real>(&self, data: &'a DMatrix<T>) -> Result<KMeansSteps<'a, T>, SnmfError> {
        if self.clusters > data.ncols() {
            return Err(SnmfError::Clusters {
                clusters: self.clusters,
                samples: data.ncols(),
            });
        }
        let ok = |x: T| x.is_finite();
        check_block("data", data, data.shape(), "a finite number", ok)?;
        Ok(KMeansSteps {
            data,
            clusters: self.clusters,
        })
    }
}

/// [`KMeans`] bound to data: a step averages and assigns, and its objective, the sum of squared distances, never grows.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Algorithm, KMeans};
/// let v = dmatrix![0.0, 2.0, 10.0, 12.0];
/// let steps = KMeans::new(2)?.on(&v)?;
/// let mut state = steps.start(dmatrix![0.0, 10.0])?;
/// assert_eq!(steps.objective(&state)?, 8.0);                          // 2² + 2²
/// steps.step(&mut state, false)?;
/// assert_eq!((&state.centres, steps.objective(&state)?), (&dmatrix![1.0, 11.0], 4.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct KMeansSteps<'a, T> {
    data: &'a DMatrix<T>,
    clusters: usize,
}

impl<T: Real> KMeansSteps<'_, T> {
    /// A start from samples.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{KMeans, Seeding};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = dmatrix![0.0, 2.0, 10.0, 12.0];
    /// let start = KMeans::new(2)?.on(&v)?.seed(Seeding::Random, &mut rng);
    /// assert!(start.centres.iter().all(|c| v.iter().any(|x| x == c)));
    /// assert_ne!(start.centres[0], start.centres[1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn seed<R: Rng + ?Sized>(&self, seeding: Seeding, rng: &mut R) -> KMeansState<T> {
        let seeds = seeds(self.data, self.clusters, seeding, rng);
        self.around(self.data.select_columns(&seeds))
    }

    /// A start from given centres, `F x K`. Of equally near ones a sample takes the first.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: a wrong shape, a value that is no finite number.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::KMeans;
    /// let v = dmatrix![0.0, 2.0, 10.0, 12.0];
    /// let steps = KMeans::new(2)?.on(&v)?;
    /// assert_eq!(steps.start(dmatrix![0.0, 10.0])?.labels, [0, 0, 1, 1]);
    /// assert!(steps.start(dmatrix![f64::NAN, 10.0]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(&self, centres: DMatrix<T>) -> Result<KMeansState<T>, SnmfError> {
        let shape = (self.data.nrows(), self.clusters);
        let ok = |x: T| x.is_finite();
        check_block("centres", &centres, shape, "a finite number", ok)?;
        Ok(self.around(centres))
    }

    fn around(&self, centres: DMatrix<T>) -> KMeansState<T> {
        KMeansState {
            labels: self.nearest(&centres),
            centres,
            settled: false,
        }
    }

    /// The nearest centre of every sample, of equal ones the first.
    fn nearest(&self, centres: &DMatrix<T>) -> Vec<usize> {
        let nearest = |n: usize| {
            let all = (0..self.clusters).map(|k| (k, distance(self.data, n, centres, k)));
            all.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(k, _)| k)
        };
        (0..self.data.ncols()).map(nearest).collect()
    }
}

impl<T: Real> Algorithm for KMeansSteps<'_, T> {
    type State = KMeansState<T>;
    type Error = SnmfError;

    fn step(&self, state: &mut KMeansState<T>, measure: bool) -> Result<Option<f64>, SnmfError> {
        let before = match measure {
            true => Some(self.objective(state)?),
            false => None,
        };
        let mut sums = DMatrix::zeros(self.data.nrows(), self.clusters);
        let mut counts = vec![0usize; self.clusters];
        for (sample, &k) in self.data.column_iter().zip(&state.labels) {
            let mut column = sums.column_mut(k);
            column += sample;
            counts[k] += 1;
        }
        for (k, &count) in counts.iter().enumerate().filter(|&(_, &c)| c > 0) {
            let mean = sums.column(k) / T::lit(count as f64);
            state.centres.set_column(k, &mean);
        }
        let labels = self.nearest(&state.centres);
        state.settled = labels == state.labels;
        state.labels = labels;
        Ok(before)
    }

    /// Sum of squared distances to the centres.
    fn objective(&self, state: &KMeansState<T>) -> Result<f64, SnmfError> {
        let each = state.labels.iter().enumerate();
        let each = each.map(|(n, &k)| distance(self.data, n, &state.centres, k));
        Ok(each.collect::<CompensatedSum>().value())
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }

    fn finished(&self, state: &KMeansState<T>) -> Option<StopReason> {
        state.settled.then_some(StopReason::Converged)
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
