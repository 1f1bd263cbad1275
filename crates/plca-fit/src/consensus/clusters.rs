//! k-means and silhouettes from distances alone: no coordinate is read.
//!
//! ```math
//! \lVert x_i - \bar{x}_C \rVert^2 = \frac{1}{|C|} \sum_{j \in C} d_{ij}^2 - \frac{1}{2 |C|^2} \sum_{j,k \in C} d_{jk}^2
//! ```

use nalgebra::DMatrix;
use plca_dist::random;
use plca_tensor::parallel::map_in_order;
use rand::Rng;

/// Starts of k-means; the best end counts.
const STARTS: usize = 20;

/// Clusters, numbered by their first member.
#[derive(Debug)]
pub(super) struct Clusters {
    pub(super) labels: Vec<usize>,
    /// Sum of the squared distances from the means.
    pub(super) inertia: f64,
    count: usize,
}

impl Clusters {
    /// The best of several starts; there are at least as many points as clusters.
    pub(super) fn best(distances: &DMatrix<f64>, count: usize, rng: &mut dyn Rng) -> Self {
        let squares = distances.map(|d| d * d);
        let starts = (0..STARTS).map(|_| seeds(&squares, count, rng)).collect();
        let ends = map_in_order(starts, |seeds: Vec<usize>| settled(&squares, &seeds));
        let best = ends.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let (labels, inertia) = best.expect("at least one start");
        Self {
            labels: numbered(labels, count),
            inertia,
            count,
        }
    }

    /// The mean silhouette.
    ///
    /// ```math
    /// s_i = \frac{b_i - a_i}{\max(a_i, b_i)}
    /// ```
    ///
    /// `a_i` is the mean distance from the other members of the own cluster, `b_i` the least mean distance from those of another one. A point
    /// that is alone in its cluster has 0.
    pub(super) fn silhouette(&self, distances: &DMatrix<f64>) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        let sizes = sizes(&self.labels, self.count);
        let of = |i: usize| {
            let own = self.labels[i];
            if sizes[own] == 1 {
                return 0.0;
            }
            let sums = sums(distances, &self.labels, self.count, i);
            let a = sums[own] / (sizes[own] - 1) as f64;
            let others = (0..self.count).filter(|&k| k != own);
            let b = others.map(|k| sums[k] / sizes[k] as f64);
            let b = b.fold(f64::INFINITY, f64::min);
            match a.max(b) {
                0.0 => 0.0,
                most => (b - a) / most,
            }
        };
        let n = self.labels.len();
        Some((0..n).map(of).sum::<f64>() / n as f64)
    }
}

fn sizes(labels: &[usize], count: usize) -> Vec<usize> {
    let mut sizes = vec![0; count];
    labels.iter().for_each(|&k| sizes[k] += 1);
    sizes
}

/// The sum of what stands between one point and the members of every cluster.
fn sums(between: &DMatrix<f64>, labels: &[usize], count: usize, i: usize) -> Vec<f64> {
    let mut sums = vec![0.0; count];
    let column = between.column(i);
    (labels.iter().zip(&column)).for_each(|(&k, d)| sums[k] += d);
    sums
}

/// The first of the least values.
fn least(values: impl Iterator<Item = f64>) -> usize {
    let all = values.enumerate();
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(k, _)| k)
}

/// Points as first centres, each with probability proportional to its squared distance from those before (k-means++); always different ones.
fn seeds(squares: &DMatrix<f64>, count: usize, rng: &mut dyn Rng) -> Vec<usize> {
    let n = squares.nrows();
    let mut nearest = vec![f64::INFINITY; n];
    let mut chosen: Vec<usize> = Vec::with_capacity(count);
    while chosen.len() < count {
        let total: f64 = nearest.iter().sum();
        let drawn = if total.is_finite() && total > 0.0 {
            let mut left = total * random::uniform(rng);
            let at = nearest.iter().position(|&d| {
                left -= d;
                d > 0.0 && left <= 0.0
            });
            // What rounding may leave belongs to the last point that is no centre.
            at.or_else(|| nearest.iter().rposition(|&d| d > 0.0))
        } else {
            let skip = random::below((n - chosen.len()) as u64, rng) as usize;
            (0..n).filter(|at| !chosen.contains(at)).nth(skip)
        };
        let next = drawn.expect("fewer centres than points");
        chosen.push(next);
        for (d, to) in nearest.iter_mut().zip(&squares.column(next)) {
            *d = d.min(*to);
        }
        // Points may lie on each other.
        nearest[next] = 0.0;
    }
    chosen
}

/// Labels and inertia after moving points to the nearest mean as long as that helps.
fn settled(squares: &DMatrix<f64>, seeds: &[usize]) -> (Vec<usize>, f64) {
    let (n, count) = (squares.nrows(), seeds.len());
    let nearest = |i: usize| least(seeds.iter().map(|&seed| squares[(i, seed)]));
    let mut labels: Vec<usize> = (0..n).map(nearest).collect();
    for (k, &seed) in seeds.iter().enumerate() {
        // Of seeds on the same place too, every cluster has its own.
        labels[seed] = k;
    }
    let mut means = Means::of(squares, &labels, count);
    loop {
        let mut next: Vec<usize> = (0..n).map(|i| least(means.squares(i))).collect();
        refill(&mut next, &means);
        let moved = Means::of(squares, &next, count);
        // Rounding alone could go round in circles.
        if next == labels || moved.inertia >= means.inertia {
            return (labels, means.inertia);
        }
        (labels, means) = (next, moved);
    }
}

/// Gives every cluster without members the point that is farthest from the mean that it is nearest to.
fn refill(labels: &mut [usize], means: &Means) {
    let mut sizes = sizes(labels, means.sizes.len());
    while let Some(empty) = sizes.iter().position(|&size| size == 0) {
        let far = |i: usize| means.squares(i).nth(labels[i]).unwrap_or(0.0);
        let movable = (0..labels.len()).filter(|&i| sizes[labels[i]] > 1);
        let farthest = movable.max_by(|&a, &b| far(a).total_cmp(&far(b)));
        let farthest = farthest.expect("more points than other clusters");
        sizes[labels[farthest]] -= 1;
        sizes[empty] += 1;
        labels[farthest] = empty;
    }
}

/// Where the means of clusters lie.
struct Means {
    sizes: Vec<usize>,
    /// For every point the sum of its squared distances from the members of every cluster.
    sums: Vec<Vec<f64>>,
    /// For every cluster the sum of the squared distances between its members, each pair twice.
    within: Vec<f64>,
    inertia: f64,
}

impl Means {
    fn of(squares: &DMatrix<f64>, labels: &[usize], count: usize) -> Self {
        let sizes = sizes(labels, count);
        let sums: Vec<_> = (0..labels.len())
            .map(|i| sums(squares, labels, count, i))
            .collect();
        let mut within = vec![0.0; count];
        for (&k, sums) in labels.iter().zip(&sums) {
            within[k] += sums[k];
        }
        let halves = within.iter().zip(&sizes);
        let inertia = halves.map(|(w, &size)| w / (2 * size) as f64).sum();
        Self {
            sizes,
            sums,
            within,
            inertia,
        }
    }

    /// The squared distance of a point from every mean.
    fn squares(&self, i: usize) -> impl Iterator<Item = f64> {
        (0..self.sizes.len()).map(move |k| {
            let size = self.sizes[k] as f64;
            self.sums[i][k] / size - self.within[k] / (2.0 * size * size)
        })
    }
}

/// The same clusters, numbered by their first member.
fn numbered(labels: Vec<usize>, count: usize) -> Vec<usize> {
    let mut numbers = vec![None; count];
    let mut next = 0;
    let number = |k: usize| {
        *numbers[k].get_or_insert_with(|| {
            next += 1;
            next - 1
        })
    };
    labels.into_iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    fn of(points: &[f64], count: usize) -> Clusters {
        let n = points.len();
        let distances = DMatrix::from_fn(n, n, |i, j| (points[i] - points[j]).abs());
        Clusters::best(&distances, count, &mut ChaCha8Rng::seed_from_u64(0))
    }

    /// Against all partitions of few points.
    #[test]
    fn the_best_start_is_the_best_partition() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for n in 3..8usize {
            let points: Vec<f64> = (0..n).map(|_| random::uniform(&mut rng)).collect();
            for count in 1..=n.min(3) {
                let inertia = |code: usize| -> f64 {
                    let label = |i: usize| code / count.pow(i as u32) % count;
                    let of = |k| (0..n).filter(move |&i| label(i) == k).map(|i| points[i]);
                    let clusters = (0..count).map(|k| {
                        let mean = of(k).sum::<f64>() / of(k).count().max(1) as f64;
                        of(k).map(|x| (x - mean).powi(2)).sum::<f64>()
                    });
                    clusters.sum()
                };
                let all = (0..count.pow(n as u32)).map(inertia);
                let best = all.fold(f64::INFINITY, f64::min);
                let found = of(&points, count).inertia;
                assert!(
                    (found - best).abs() < 1e-14,
                    "{points:?} {count}: {found} {best}"
                );
            }
        }
    }

    /// Points on each other leave no cluster empty.
    #[test]
    fn every_cluster_has_members() {
        for points in [[1.0; 5], [0.0, 0.0, 0.0, 0.0, 1.0]] {
            for count in 1..=5 {
                let found = of(&points, count);
                assert!(sizes(&found.labels, count).iter().all(|&size| size > 0));
            }
        }
    }

    #[test]
    fn silhouettes_are_their_formula() {
        let found = of(&[0.0, 1.0, 5.0, 6.0, 20.0], 3);
        assert_eq!(found.labels, [0, 0, 1, 1, 2]);
        let n = found.labels.len();
        let points = [0.0f64, 1.0, 5.0, 6.0, 20.0];
        let distances = DMatrix::from_fn(n, n, |i, j| (points[i] - points[j]).abs());
        let expected = (4.5 / 5.5 + 3.5 / 4.5 + 3.5 / 4.5 + 4.5 / 5.5) / 5.0;
        assert!((found.silhouette(&distances).unwrap() - expected).abs() < 1e-15);
        assert_eq!(of(&points, 1).silhouette(&distances), None);
    }
}
