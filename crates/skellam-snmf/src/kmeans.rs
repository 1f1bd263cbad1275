//! k-means: the baseline for clusters.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_tensor::{CompensatedSum, Real};
use rand::Rng;

use crate::init::check_block;
use crate::{ParamError, SnmfError};

/// How the first centres are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seeding {
    /// Samples, each with probability proportional to its squared distance from the centres so far (k-means++).
    #[default]
    PlusPlus,
    /// Different samples, all equally likely.
    Random,
}

/// Clusters of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters<T: Real> {
    /// `F x K`.
    pub centres: DMatrix<T>,
    /// The cluster of each sample.
    pub labels: Vec<usize>,
    /// Sum of squared distances to the centres.
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
    let n = data.ncols();
    if k == 0 {
        return Err(ParamError::NoComponents.into());
    }
    if k > n {
        return Err(SnmfError::Shape {
            block: "samples",
            got: data.shape(),
            expected: (data.nrows(), k),
        });
    }
    let ok = |x: T| x.is_finite();
    check_block("data", data, data.shape(), "a finite number", ok)?;
    let mut centres = data.select_columns(&seeds(data, k, seeding, rng));
    let mut labels = vec![usize::MAX; n];
    let mut iterations = 0;
    loop {
        let mut changed = false;
        let mut inertia = CompensatedSum::default();
        for (at, label) in labels.iter_mut().enumerate() {
            let all = (0..k).map(|z| (z, distance(data, at, &centres, z)));
            // Of equal ones the first.
            let nearest = all.min_by(|a, b| a.1.total_cmp(&b.1));
            let (z, d) = nearest.unwrap_or((0, 0.0));
            changed |= *label != z;
            *label = z;
            inertia += d;
        }
        if !changed || iterations >= max_iter {
            return Ok(Clusters {
                centres,
                labels,
                inertia: inertia.value(),
                iterations,
            });
        }
        let mut sums = DMatrix::zeros(data.nrows(), k);
        let mut counts = vec![0usize; k];
        for (sample, &z) in data.column_iter().zip(&labels) {
            let mut column = sums.column_mut(z);
            column += sample;
            counts[z] += 1;
        }
        for (z, &count) in counts.iter().enumerate().filter(|&(_, &c)| c > 0) {
            centres.set_column(z, &(sums.column(z) / T::lit(count as f64)));
        }
        iterations += 1;
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
