//! What many fits of one model agree on: their components, those that lie apart left out, in clusters.

mod clusters;
mod error;

use nalgebra::DMatrix;
use plca_tensor::parallel::{for_each_part, wide};
use rand::Rng;

use clusters::Clusters;
pub use error::ConsensusError;

/// The components of several fits of one model, each of length 1, and the distances between them.
///
/// ```math
/// l_i = \frac{s_i}{\lVert s_i \rVert_2}, \qquad d_{ij} = \lVert l_i - l_j \rVert_2
/// ```
///
/// `s_i` are the components, columns of one factor, of all fits one after the other: `n = R K` of them where `R` fits have `K` components
/// each. Distances cost `n² I / 2` products for components of `I` entries, and `n²` numbers of memory.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_fit::consensus::Spectra;
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// // Four fits of two components in any order and scale; the last fit found other ones.
/// let columns = dmatrix![
///     3.0, 0.1, 0.0, 2.0, 1.0, 0.0, 1.0, 0.9;
///     0.1, 2.0, 1.0, 0.1, 0.0, 4.0, 1.0, 1.1];
/// let spectra = Spectra::new(columns, 2)?;
/// let density = spectra.local_density(0.5)?;
/// let kept: Vec<bool> = density.iter().map(|&d| d < 0.3).collect();
/// assert_eq!(kept, [true, true, true, true, true, true, false, false]);
/// let consensus = spectra.consensus(&kept, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert_eq!(consensus.labels, [0, 1, 1, 0, 0, 1]);
/// assert!(consensus.silhouette.is_some_and(|s| s > 0.9));
/// assert!(consensus.spectra[(0, 0)] > 0.9 && consensus.spectra[(1, 1)] > 0.9);
/// # Ok::<(), plca_fit::consensus::ConsensusError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Spectra {
    /// A column of length 1 for each.
    units: DMatrix<f64>,
    distances: DMatrix<f64>,
    components: usize,
}

/// The consensus of several fits: one cluster of their components for each component of the consensus.
///
/// ```math
/// c_k \propto \mathrm{median} \lbrace l_i : i \in C_k \rbrace, \qquad
/// \text{inertia} = \sum_k \sum_{i \in C_k} \lVert l_i - \bar{l}_k \rVert^2
/// ```
///
/// `C_k` is cluster `k`, with the mean `l̄_k` of its members; the medians are those of every coordinate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Consensus {
    /// The cluster of every component that was kept. Clusters are numbered by their first member.
    pub labels: Vec<usize>,
    /// The sum of the squared distances from the means of the clusters.
    pub inertia: f64,
    /// The stability: the mean silhouette, between -1 and 1; `None` of a single cluster, which has none.
    pub silhouette: Option<f64>,
    /// The consensus, `I x K`: in every column the medians of a cluster, divided by their sum.
    pub spectra: DMatrix<f64>,
}

/// The number of neighbours that enter the local density.
///
/// ```math
/// b = \lfloor \rho \, n / K \rfloor
/// ```
///
/// `ρ` is the neighbourhood, `n` the number of components of all fits and `K` of one.
///
/// ```
/// assert_eq!(plca_fit::consensus::neighbours(30, 3, 0.3)?, 3);
/// assert!(plca_fit::consensus::neighbours(9, 3, 0.3).is_err());                  // three fits are too few
/// # Ok::<(), plca_fit::consensus::ConsensusError>(())
/// ```
///
/// # Errors
///
/// [`ConsensusError::Neighbours`] for none or all of them.
pub fn neighbours(
    spectra: usize,
    components: usize,
    neighbourhood: f64,
) -> Result<usize, ConsensusError> {
    // In this order: the product of the golden values is rounded so.
    let neighbours = (neighbourhood * spectra as f64 / components as f64).floor();
    if neighbours >= 1.0 && neighbours + 1.0 < spectra as f64 {
        return Ok(neighbours as usize);
    }
    Err(ConsensusError::Neighbours {
        neighbours,
        neighbourhood,
        spectra,
        components,
    })
}

impl Spectra {
    /// The components of fits with this number of components each, from the columns of an `I x n` matrix, fit after fit.
    ///
    /// # Errors
    ///
    /// [`ConsensusError::Components`] without components, [`ConsensusError::Value`], [`ConsensusError::Zero`].
    pub fn new(columns: DMatrix<f64>, components: usize) -> Result<Self, ConsensusError> {
        if components == 0 {
            return Err(ConsensusError::Components);
        }
        let mut units = columns;
        for (spectrum, mut column) in units.column_iter_mut().enumerate() {
            let is_bad = |x: &f64| !(x.is_finite() && *x >= 0.0);
            if let Some(row) = column.iter().position(is_bad) {
                let value = column[row];
                return Err(ConsensusError::Value {
                    spectrum,
                    row,
                    value,
                });
            }
            let largest = column.iter().copied().fold(0.0, f64::max);
            if largest == 0.0 {
                return Err(ConsensusError::Zero { spectrum });
            }
            // No square overflows, and not all of them vanish.
            column /= largest;
            let length = column.norm();
            column /= length;
        }
        let n = units.ncols();
        let mut distances = DMatrix::zeros(n, n);
        for_each_part(distances.as_mut_slice(), n, |j, column| {
            let of = units.column(j);
            for (i, to) in column.iter_mut().enumerate().take(j) {
                *to = distance(of.as_slice(), units.column(i).as_slice());
            }
        });
        distances.fill_lower_triangle_with_upper_triangle();
        Ok(Self {
            units,
            distances,
            components,
        })
    }

    /// The number of components of all fits, `n`.
    pub fn count(&self) -> usize {
        self.units.ncols()
    }

    /// The Euclidean distances between the components, `n x n`.
    pub fn distances(&self) -> &DMatrix<f64> {
        &self.distances
    }

    /// The mean distance of every component from its neighbours; it is small for components that other fits have found too.
    ///
    /// ```math
    /// \text{density}_i = \frac{1}{b} \sum_{j \in N_i} d_{ij}
    /// ```
    ///
    /// `N_i` are the `b + 1` components next to `i`, itself included, with `b` of [`neighbours`].
    ///
    /// # Errors
    ///
    /// Those of [`neighbours`].
    pub fn local_density(&self, neighbourhood: f64) -> Result<Vec<f64>, ConsensusError> {
        let count = neighbours(self.count(), self.components, neighbourhood)?;
        let density = |column: &[f64]| {
            let mut nearest = column.to_vec();
            nearest.sort_unstable_by(f64::total_cmp);
            nearest[..=count].iter().sum::<f64>() / count as f64
        };
        let columns = self.distances.as_slice().chunks_exact(self.count());
        Ok(columns.map(density).collect())
    }

    /// The consensus of the components that are kept, by k-means from 20 starts of k-means++.
    ///
    /// A start costs `n²` per iteration, whatever the length of the components.
    ///
    /// # Errors
    ///
    /// [`ConsensusError::Kept`] where fewer are kept than the consensus is to have, [`ConsensusError::Median`] for a cluster whose medians are
    /// all 0.
    ///
    /// # Panics
    ///
    /// If there is not one flag for every component.
    pub fn consensus(&self, kept: &[bool], rng: &mut dyn Rng) -> Result<Consensus, ConsensusError> {
        assert_eq!(kept.len(), self.count(), "a flag for every component");
        let members: Vec<usize> = (0..kept.len()).filter(|&i| kept[i]).collect();
        if members.len() < self.components {
            return Err(ConsensusError::Kept {
                kept: members.len(),
                components: self.components,
            });
        }
        let n = members.len();
        let distances = DMatrix::from_fn(n, n, |a, b| self.distances[(members[a], members[b])]);
        let clusters = Clusters::best(&distances, self.components, rng);
        let mut spectra = DMatrix::zeros(self.units.nrows(), self.components);
        for (cluster, mut spectrum) in spectra.column_iter_mut().enumerate() {
            let of = (members.iter().zip(&clusters.labels)).filter(|&(_, &l)| l == cluster);
            let of: Vec<usize> = of.map(|(&i, _)| i).collect();
            for (row, to) in spectrum.iter_mut().enumerate() {
                *to = median(of.iter().map(|&i| self.units[(row, i)]).collect());
            }
            let sum = spectrum.sum();
            if sum == 0.0 {
                return Err(ConsensusError::Median {
                    cluster,
                    members: of.len(),
                });
            }
            spectrum /= sum;
        }
        Ok(Consensus {
            silhouette: clusters.silhouette(&distances),
            inertia: clusters.inertia,
            labels: clusters.labels,
            spectra,
        })
    }
}

/// The Euclidean distance, from the differences themselves: those of near components keep their digits.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    wide(|| {
        let mut sums = [0.0; LANES];
        let (a, b) = (a.chunks(LANES), b.chunks(LANES));
        for (a, b) in a.zip(b) {
            for (sum, (x, y)) in sums.iter_mut().zip(a.iter().zip(b)) {
                *sum += (x - y) * (x - y);
            }
        }
        sums.iter().sum::<f64>().sqrt()
    })
}

/// The middle value, or the mean of the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        1 => values[half],
        _ => (values[half - 1] + values[half]) / 2.0,
    }
}

/// How much of the data every component explains, from usages `K x N`, and the components in decreasing order of it.
///
/// ```math
/// \text{share}_k = \sum_n \frac{U_{kn}}{\sum_j U_{jn}}
/// ```
///
/// Samples without usage are left out. Equal shares stay in their order.
///
/// ```
/// use nalgebra::dmatrix;
/// let (share, order) = plca_fit::consensus::usage_order(&dmatrix![1.0, 0.0, 0.0; 3.0, 2.0, 0.0]);
/// assert_eq!((share, order), (vec![0.25, 1.75], vec![1, 0]));
/// ```
pub fn usage_order(usage: &DMatrix<f64>) -> (Vec<f64>, Vec<usize>) {
    let mut share = vec![0.0; usage.nrows()];
    for sample in usage.column_iter() {
        let sum = sample.sum();
        if sum > 0.0 {
            (share.iter_mut().zip(&sample)).for_each(|(share, u)| *share += u / sum);
        }
    }
    let mut order: Vec<usize> = (0..share.len()).collect();
    order.sort_by(|&a, &b| share[b].total_cmp(&share[a]));
    (share, order)
}
