//! Arrays for shifted models: patterns placed on a grid, alignment with what was learned, runs from several starts.

use std::ops::Range;

use nalgebra::DMatrix;
use plca_dist::random::{exponential, uniform};
use plca_em::{Fit, Init, Model, Reconstruct, Shifted, ShiftedState, Solver, State, Stop};
use plca_tensor::{Data as _, DenseTensor, Order};
use rand_chacha::ChaCha8Rng;

use super::support::{best_matching, divergence, rng};
use crate::Result;
use crate::plot::{Axis, Panel};

/// Values on a grid of any order, row-major.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f64>,
}

impl Grid {
    pub(super) fn from_fn(shape: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Self {
        let mut values = Vec::with_capacity(shape.iter().product());
        let mut index = vec![0; shape.len()];
        for _ in 0..shape.iter().product() {
            values.push(f(&index));
            for d in (0..shape.len()).rev() {
                index[d] += 1;
                if index[d] < shape[d] {
                    break;
                }
                index[d] = 0;
            }
        }
        Self {
            shape: shape.to_vec(),
            values,
        }
    }

    pub(super) fn zeros(shape: &[usize]) -> Self {
        Self::from_fn(shape, |_| 0.0)
    }

    /// A drawing: `#` is 1, anything else 0.
    pub(super) fn drawing(lines: &[&str]) -> Self {
        let columns = lines.first().map_or(0, |l| l.len());
        Self::from_fn(&[lines.len(), columns], |i| {
            f64::from(u8::from(lines[i[0]].as_bytes()[i[1]] == b'#'))
        })
    }

    /// Component `z` of a block of kernels or impulses.
    pub(super) fn of_block(block: &DMatrix<f64>, z: usize, shape: &[usize]) -> Self {
        Self {
            shape: shape.to_vec(),
            values: block.column(z).iter().copied().collect(),
        }
    }

    fn position(&self, index: &[usize]) -> usize {
        index
            .iter()
            .zip(&self.shape)
            .fold(0, |at, (i, n)| at * n + i)
    }

    pub(super) fn get(&self, index: &[usize]) -> f64 {
        self.values[self.position(index)]
    }

    /// Adds `weight` times a pattern whose first cell comes to lie at `at`.
    pub(super) fn stamp(&mut self, pattern: &Self, at: &[usize], weight: f64) {
        let shape = self.shape.clone();
        let values = &mut self.values;
        Self::from_fn(&pattern.shape, |t| {
            let cell = (t.iter().zip(at).zip(&shape)).fold(0, |p, ((t, a), n)| p * n + t + a);
            values[cell] += weight * pattern.get(t);
            0.0
        });
    }

    /// The same values moved; what leaves the grid is lost, zeros come in.
    pub(super) fn moved(&self, by: &[isize]) -> Self {
        let mut from = vec![0; by.len()];
        Self::from_fn(&self.shape, |to| {
            for d in 0..by.len() {
                match to[d].checked_add_signed(-by[d]) {
                    Some(i) if i < self.shape[d] => from[d] = i,
                    _ => return 0.0,
                }
            }
            self.get(&from)
        })
    }

    /// Moved by the opposite of the shift of its partner.
    pub(super) fn moved_back(&self, by: &[isize]) -> Self {
        let back: Vec<isize> = by.iter().map(|s| -s).collect();
        self.moved(&back)
    }

    pub(super) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            shape: self.shape.clone(),
            values: self.values.iter().map(|&x| f(x)).collect(),
        }
    }

    /// At most this number of rows and columns: each takes the largest value of those it stands for, so that single points stay.
    pub(super) fn thinned(&self, rows: usize, columns: usize) -> Self {
        let step = [
            self.shape[0].div_ceil(rows),
            self.shape[1].div_ceil(columns),
        ];
        let shape = [
            self.shape[0].div_ceil(step[0]),
            self.shape[1].div_ceil(step[1]),
        ];
        let mut thin = Self::zeros(&shape);
        Self::from_fn(&self.shape, |i| {
            let at = (i[0] / step[0]) * shape[1] + i[1] / step[1];
            thin.values[at] = thin.values[at].max(self.get(i));
            0.0
        });
        thin
    }

    /// Dot product with a grid of the same shape over the product of the norms.
    pub(super) fn cosine(&self, other: &Self) -> f64 {
        let dot = |a: &Self, b: &Self| -> f64 {
            a.values.iter().zip(&b.values).map(|(a, b)| a * b).sum()
        };
        dot(self, other) / (dot(self, self) * dot(other, other)).sqrt()
    }

    /// Three-point average along the first two dimensions.
    pub(super) fn blurred(&self) -> Self {
        let n = self.shape.len();
        let step = |d: usize, s: isize| -> Vec<isize> {
            (0..n).map(|e| if e == d { s } else { 0 }).collect()
        };
        (0..n.min(2)).fold(self.clone(), |now, d| {
            let (a, b) = (now.moved(&step(d, 1)), now.moved(&step(d, -1)));
            let mix = |((x, a), b): ((&f64, &f64), &f64)| 0.5 * x + 0.25 * (a + b);
            let values = now.values.iter().zip(&a.values).zip(&b.values);
            Self {
                shape: now.shape.clone(),
                values: values.map(mix).collect(),
            }
        })
    }

    pub(super) fn sum(&self) -> f64 {
        self.values.iter().sum()
    }

    /// Entropy of the normalised values, in nats.
    pub(super) fn entropy(&self) -> f64 {
        let sum = self.sum();
        let p = self.values.iter().map(|x| x / sum);
        -p.filter(|&p| p > 0.0).map(|p| p * p.ln()).sum::<f64>()
    }

    pub(super) fn tensor(&self) -> Result<DenseTensor<f64>> {
        let values = self.values.clone();
        Ok(DenseTensor::new(
            self.shape.clone(),
            values,
            Order::RowMajor,
        )?)
    }

    /// Rows of a picture of the first two dimensions, the others summed; `values[0]` at the bottom.
    pub(super) fn rows_up(&self) -> Vec<Vec<f64>> {
        let columns = self.shape.get(1).copied().unwrap_or(1);
        let depth: usize = self.shape.iter().skip(2).product();
        let row = |r: &[f64]| -> Vec<f64> { r.chunks(depth).map(|c| c.iter().sum()).collect() };
        self.values.chunks(columns * depth).map(row).collect()
    }

    /// The same with the first row at the top, as images are.
    pub(super) fn rows_down(&self) -> Vec<Vec<f64>> {
        let mut rows = self.rows_up();
        rows.reverse();
        rows
    }

    /// An image in the papers' inverse grey map, without numbers along its axes.
    pub(super) fn image(&self, title: &str) -> Panel {
        let rows = self.rows_down();
        let (x, y) = (Axis::bare("", rows[0].len()), Axis::bare("", rows.len()));
        Panel::density(title, &rows, &x, &y).picture()
    }

    /// A picture whose third dimension is red, green and blue.
    pub(super) fn colours(&self, title: &str, inverse: bool) -> Panel {
        let pixel = |p: &[f64]| [p[0], p[1], p[2]];
        let row = |r: &[f64]| r.chunks(3).map(pixel).collect();
        let mut rows: Vec<Vec<[f64; 3]>> = self.values.chunks(3 * self.shape[1]).map(row).collect();
        rows.reverse();
        Panel::colours(title, &rows, inverse)
    }
}

/// The largest cosine of `truth` and a copy of `found` moved by at most `reach` cells along each dimension, and that shift. What is
/// moved out of the grid counts as lost.
pub(super) fn aligned(truth: &Grid, found: &Grid, reach: &[usize]) -> (f64, Vec<isize>) {
    let norm = |g: &Grid| g.values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let norms = norm(truth) * norm(found);
    let sizes: Vec<usize> = reach.iter().map(|r| 2 * r + 1).collect();
    let mut best = (f64::NEG_INFINITY, vec![0; reach.len()]);
    Grid::from_fn(&sizes, |i| {
        let by: Vec<isize> = i
            .iter()
            .zip(reach)
            .map(|(&i, &r)| i as isize - r as isize)
            .collect();
        let moved = found.moved(&by);
        let dot: f64 = truth
            .values
            .iter()
            .zip(&moved.values)
            .map(|(a, b)| a * b)
            .sum();
        if dot / norms > best.0 {
            best = (dot / norms, by);
        }
        0.0
    });
    best
}

/// A learned component that stands for a true one.
pub(super) struct Match {
    pub(super) component: usize,
    pub(super) cosine: f64,
}

/// For every true kernel the learned one, such that the cosines are largest together.
pub(super) fn matches(truth: &[Grid], kernels: &DMatrix<f64>, reach: &[usize]) -> Vec<Match> {
    let found = |t: usize, z: usize| {
        let kernel = Grid::of_block(kernels, z, &truth[t].shape);
        aligned(&truth[t], &kernel, reach)
    };
    let k = truth.len();
    let mut all: Vec<Vec<_>> = (0..k)
        .map(|t| (0..k).map(|z| found(t, z)).collect())
        .collect();
    let order = best_matching(k, |t, z| -all[t][z].0);
    order
        .into_iter()
        .enumerate()
        .map(|(t, component)| {
            let (cosine, _) = all[t].swap_remove(component);
            Match { component, cosine }
        })
        .collect()
}

/// Exponential draws in every cell: what no kernel explains, for controls.
pub(super) fn noise(shape: &[usize], seed: u64) -> Grid {
    let mut rng = rng(seed, 500);
    Grid::from_fn(shape, |_| exponential(&mut rng))
}

/// The smallest cosine of a matching.
pub(super) fn worst(matches: &[Match]) -> f64 {
    matches.iter().map(|m| m.cosine).fold(1.0, f64::min)
}

/// Runs of one configuration, and their divergences `D/v` of data and model.
pub(super) struct Runs {
    pub(super) all: Vec<Fit<ShiftedState<f64>>>,
    pub(super) divergences: Vec<f64>,
    /// What each state says the data are.
    pub(super) models: Vec<Grid>,
    pub(super) best: usize,
}

impl Runs {
    /// The state with the smallest divergence.
    pub(super) fn best(&self) -> &ShiftedState<f64> {
        self.all[self.best].state()
    }

    pub(super) fn divergence(&self) -> f64 {
        self.divergences[self.best]
    }

    /// The reconstruction by the best state.
    pub(super) fn model(&self) -> &Grid {
        &self.models[self.best]
    }
}

/// A run of exactly `iterations` iterations from each seed.
pub(super) fn runs(
    config: &Shifted,
    v: &DenseTensor<f64>,
    seeds: Range<u64>,
    iterations: usize,
) -> Result<Runs> {
    let stop = Stop::default().max_iter(iterations).tol(None);
    let em = config.bind(v)?;
    let (mut all, mut divergences, mut models) = (Vec::new(), Vec::new(), Vec::new());
    for seed in seeds {
        let run = config.on(v)?.solver(Solver::Em).stop(stop.clone());
        let fit = run.run(Init::default(), &mut rng(seed, 0))?;
        // Priors are in the objective, not in the divergence.
        let ln_lik = em.likelihood(fit.state().parameters())?;
        divergences.push(divergence(v, ln_lik));
        models.push(Grid {
            shape: v.shape().to_vec(),
            values: fit.state().reconstruct()?.into_parts().1,
        });
        all.push(fit);
    }
    let best = (0..all.len())
        .min_by(|&a, &b| divergences[a].total_cmp(&divergences[b]))
        .ok_or("no seeds")?;
    Ok(Runs {
        all,
        divergences,
        models,
        best,
    })
}

/// `n` places in a box such that any two are at least `apart` cells apart along one dimension.
pub(super) fn places(
    n: usize,
    first: &[usize],
    sizes: &[usize],
    apart: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<usize>> {
    'again: loop {
        let mut chosen: Vec<Vec<usize>> = Vec::new();
        for _ in 0..200 * n {
            let at: Vec<usize> = (first.iter().zip(sizes))
                .map(|(&f, &s)| f + (uniform(rng) * s as f64) as usize)
                .collect();
            let near = |other: &Vec<usize>| {
                let mut gaps = other.iter().zip(&at).map(|(a, b)| a.abs_diff(*b));
                gaps.all(|gap| gap < apart)
            };
            if !chosen.iter().any(near) {
                chosen.push(at);
                if chosen.len() == n {
                    return chosen;
                }
            }
        }
        continue 'again;
    }
}

/// A standard normal number (Box and Muller's method).
pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (2.0 * exponential(rng)).sqrt();
    radius * (std::f64::consts::TAU * uniform(rng)).cos()
}

/// A Poisson count of a moderate mean: exponential waiting times that fit in.
pub(super) fn poisson(mean: f64, rng: &mut ChaCha8Rng) -> f64 {
    let (mut count, mut time) = (0.0, exponential(rng));
    while time < mean {
        count += 1.0;
        time += exponential(rng);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_finds_the_shift_and_counts_what_is_lost() {
        let truth = Grid::drawing(&["##..", "#...", "...."]);
        let found = Grid::drawing(&["....", "..##", "..#."]);
        let (cosine, shift) = aligned(&truth, &found, &[2, 3]);
        assert!((cosine - 1.0).abs() < 1e-12);
        assert_eq!(shift, [-1, -2]);
        let (cosine, _) = aligned(&truth, &found, &[0, 3]);
        assert!(cosine < 0.7);
    }

    #[test]
    fn stamps_add_up_at_their_places() {
        let mut grid = Grid::zeros(&[3, 4]);
        let pattern = Grid::drawing(&["#.", "##"]);
        grid.stamp(&pattern, &[1, 2], 2.0);
        grid.stamp(&pattern, &[1, 1], 1.0);
        assert_eq!(grid.rows_up()[1], [0.0, 1.0, 2.0, 0.0]);
        assert_eq!(grid.rows_up()[2], [0.0, 1.0, 3.0, 2.0]);
        assert!((Grid::drawing(&["##", "##"]).entropy() - 4f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn poisson_counts_have_their_mean_and_variance() {
        let mut rng = rng(3, 1);
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| poisson(3.5, &mut rng)).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        // Five standard errors: sqrt(3.5 / n) and about sqrt(28 / n).
        assert!((mean - 3.5).abs() < 5.0 * 0.0059, "{mean}");
        assert!((variance - 3.5).abs() < 5.0 * 0.0168, "{variance}");
    }
}
