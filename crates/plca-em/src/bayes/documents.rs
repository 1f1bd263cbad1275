//! New documents under learnt topics, one after the other: the posterior of a mixture from the document's own words.
//!
//! ```math
//! \gamma \gets \alpha + \tilde\theta \circ \sum_x \frac{v_x}{p_x} \tilde\lambda[x,\cdot], \qquad
//! p_x = \sum_z \tilde\lambda[x,z] \, \tilde\theta_z, \qquad \tilde\theta = e^{\psi(\gamma) - \psi(\sum \gamma)}
//! ```
//!
//! All is in double precision, and nothing is computed of words that no document has but the sums of the topics.

use nalgebra::DMatrix;
use plca_dist::{digamma, exp_digamma, exp_digamma_slice, gamma_shape_kl_slice};
use plca_fit::{Deadline, FitError, Interrupt, Status, Stop};
use plca_tensor::Real;
use plca_tensor::parallel::wide;

use super::dirichlet::{FAINT, lost, sums};

/// Numbers that are added up side by side; rows are padded to whole lanes.
const LANES: usize = 8;
/// What the changes of the bound may still add up to when a document ends, in changes that are small enough.
const TAIL: f64 = 100.0;

/// The geometric means of the words that documents have.
#[derive(Debug)]
pub(super) struct Words {
    k: usize,
    stride: usize,
    /// Where a word is in the table; `u32::MAX` of one that no document has.
    places: Vec<u32>,
    /// A row for every word, padded with zeros.
    table: Vec<f64>,
}

impl Words {
    /// Of topics `I x K` and words, each named once or more.
    pub(super) fn new<'a, T: Real>(
        name: &str,
        shapes: &DMatrix<T>,
        words: impl Iterator<Item = &'a u32>,
    ) -> Result<Self, FitError> {
        let (rows, k) = shapes.shape();
        let mut places = vec![u32::MAX; rows];
        let mut listed = Vec::new();
        for &word in words {
            let place = &mut places[word as usize];
            if *place == u32::MAX {
                *place = listed.len() as u32;
                listed.push(word as usize);
            }
        }
        let all = sums(shapes);
        let bad = |x: f64| lost(name, x);
        if let Some(&x) = shapes.iter().find(|x| !(**x > T::zero() && x.is_finite())) {
            return Err(bad(x.to_f64()));
        }
        let mut over = vec![0.0; k];
        exp_digamma_slice(&all, &mut over).map_err(|_| bad(f64::INFINITY))?;
        let stride = k.next_multiple_of(LANES);
        let mut table = vec![0.0; stride * listed.len()];
        let mut shape = vec![0.0; k];
        for (row, &word) in table.chunks_exact_mut(stride).zip(&listed) {
            for (a, x) in shape.iter_mut().zip(shapes.row(word).iter()) {
                *a = x.to_f64();
            }
            means(&shape, &all, &over, &mut row[..k]).map_err(|()| bad(f64::NAN))?;
        }
        Ok(Self {
            k,
            stride,
            places,
            table,
        })
    }

    /// The rows of a document's words.
    fn rows(&self, words: &[u32]) -> Vec<f64> {
        let row = |&word: &u32| {
            &self.table[self.places[word as usize] as usize * self.stride..][..self.stride]
        };
        words.iter().flat_map(row).copied().collect()
    }

    /// The same as a matrix of their means, `n x K`.
    pub(super) fn means_of<T: Real>(&self, words: &[u32]) -> DMatrix<T> {
        let rows = self.rows(words);
        DMatrix::from_fn(words.len(), self.k, |x, z| {
            T::lit(rows[x * self.stride + z])
        })
    }
}

/// `e^(ψ(a) - ψ(Σ))` of shapes in columns with these sums, of which `over` is `e^ψ`.
fn means(a: &[f64], all: &[f64], over: &[f64], into: &mut [f64]) -> Result<(), ()> {
    exp_digamma_slice(a, into).map_err(drop)?;
    for (z, x) in into.iter_mut().enumerate() {
        // [EXT 3] x~ = exp(ψ(a) - ψ(Σ a))
        *x = match over[z] < FAINT {
            false => *x / over[z],
            // The quotient of two numbers that are none.
            true => (digamma(a[z]).map_err(drop)? - digamma(all[z]).map_err(drop)?).exp(),
        };
    }
    Ok(())
}

/// The same of one column, not a number where the shapes overflowed.
fn means_of(a: &[f64], into: &mut [f64]) {
    let all: f64 = a.iter().sum();
    let over = exp_digamma(all).unwrap_or(f64::NAN);
    let psi = |x: f64| digamma(x).unwrap_or(f64::NAN);
    if exp_digamma_slice(a, into).is_err() {
        into.fill(f64::NAN);
    } else if over < FAINT {
        let of = psi(all);
        into.iter_mut()
            .zip(a)
            .for_each(|(x, &a)| *x = (psi(a) - of).exp());
    } else {
        // [EXT 3] x~ = exp(ψ(a) - ψ(Σ a))
        into.iter_mut().for_each(|x| *x /= over);
    }
}

/// The posterior of a document's mixture, and how it was found.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// Shapes, `γ`.
    pub(super) shapes: Vec<f64>,
    /// `Σ v ln p - KL`.
    pub(super) bound: f64,
    pub(super) iterations: usize,
    pub(super) status: Status,
}

/// When documents are at their ends.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub(super) stop: &'a Stop,
    pub(super) interrupt: Option<&'a Interrupt>,
    pub(super) limit: Deadline,
}

/// A document at work.
struct Work<'a> {
    counts: &'a [f64],
    rows: Vec<f64>,
    stride: usize,
    prior: &'a [f64],
    /// `θ~`, padded.
    mixture: Vec<f64>,
    /// `p` of every word.
    model: Vec<f64>,
    /// `Σ v/p λ~`, padded.
    sums: Vec<f64>,
}

impl Words {
    /// The posterior of the mixture of words with these counts under a prior, by plain iterations from even counts; the place of a word that no topic reaches
    /// is an error.
    pub(super) fn explain(
        &self,
        (words, counts): (&[u32], &[f64]),
        prior: &[f64],
        ends: Ends<'_>,
    ) -> Result<Document, usize> {
        let total: f64 = counts.iter().sum();
        if total <= 0.0 {
            return Ok(Document {
                shapes: prior.to_vec(),
                bound: 0.0,
                iterations: 0,
                status: Status::Settled,
            });
        }
        let mut work = Work {
            rows: self.rows(words),
            stride: self.stride,
            model: vec![0.0; words.len()],
            mixture: vec![0.0; self.stride],
            sums: vec![0.0; self.stride],
            counts,
            prior,
        };
        let stop = ends.stop;
        // [EXT 3] alpha + N_d / K
        let even = prior.iter().map(|a| a + total / prior.len() as f64);
        let mut shapes: Vec<f64> = even.collect();
        let (mut checked, mut last, mut small) = (None, f64::INFINITY, 0);
        let (mut iterations, mut status) = (0, Status::MaxIterations);
        while iterations < stop.max_iter {
            work.pass(&shapes)?;
            let mut is_end = false;
            if iterations.is_multiple_of(stop.check_every.max(1))
                && let Some(tol) = stop.tol
            {
                let bound = work.bound(&shapes);
                if let Some(before) = checked {
                    let change = f64::abs(bound - before);
                    let limit = tol * total * stop.check_every as f64;
                    // Changes that shrink by the same part at every check add up to this.
                    let rest = match change < last {
                        true => change / (1.0 - change / last),
                        false => f64::INFINITY,
                    };
                    let is_small = change <= limit && (rest <= TAIL * limit || change == 0.0);
                    small = if is_small { small + 1 } else { 0 };
                    is_end = small >= stop.patience.max(1);
                    last = change;
                }
                checked = Some(bound);
            }
            work.renew(&mut shapes);
            iterations += 1;
            if is_end {
                status = Status::Converged;
                break;
            }
            if ends.interrupt.is_some_and(Interrupt::is_raised) {
                status = Status::Interrupted;
                break;
            }
            if ends.limit.is_past() {
                status = Status::TimeLimit;
                break;
            }
        }
        work.pass(&shapes)?;
        Ok(Document {
            bound: work.bound(&shapes),
            shapes,
            iterations,
            status,
        })
    }
}

impl Work<'_> {
    /// The mixture's geometric means, the model of every word, and the sums of the words' shares; the place of a word without a model is an error.
    fn pass(&mut self, shapes: &[f64]) -> Result<(), usize> {
        let k = shapes.len();
        means_of(shapes, &mut self.mixture[..k]);
        let Self {
            counts,
            rows,
            stride,
            mixture,
            model,
            sums,
            ..
        } = self;
        sums.fill(0.0);
        wide(|| add(rows, *stride, counts, mixture, model, sums));
        match self.model.iter().position(|&p| p.is_nan() || p <= 0.0) {
            Some(place) => Err(place),
            None => Ok(()),
        }
    }

    /// `γ <- α + θ~ Σ v/p λ~`.
    fn renew(&self, shapes: &mut [f64]) {
        let terms = self.prior.iter().zip(&self.mixture).zip(&self.sums);
        for (shape, ((a, mixture), sum)) in shapes.iter_mut().zip(terms) {
            // [EXT 3] gam <- alpha + G~ * (W~^T (V/P~))
            *shape = a + mixture * sum;
        }
    }

    /// `Σ v ln p - KL(Dir(γ) || Dir(α))` after a pass.
    fn bound(&self, shapes: &[f64]) -> f64 {
        let terms = self.counts.iter().zip(&self.model);
        let ln_lik: f64 = terms.map(|(v, p)| v * p.ln()).sum();
        let with_sum = |x: &[f64]| {
            let all = x.iter().sum();
            x.iter().copied().chain([all]).collect::<Vec<f64>>()
        };
        let mut kl = vec![0.0; shapes.len() + 1];
        if gamma_shape_kl_slice(&with_sum(shapes), &with_sum(self.prior), &mut kl).is_err() {
            return f64::NAN;
        }
        let (of_sum, each) = kl.split_last().unwrap_or((&0.0, &[]));
        // [EXT 3] KL of Dirichlet laws: those of gamma laws of the entries, less that of the sums
        ln_lik - (each.iter().sum::<f64>() - of_sum)
    }
}

/// `p` of every row, and the sum of the rows times `v / p`.
#[inline(always)]
fn add(
    rows: &[f64],
    stride: usize,
    counts: &[f64],
    mixture: &[f64],
    model: &mut [f64],
    sums: &mut [f64],
) {
    let mixture = mixture.as_chunks::<LANES>().0;
    let sums = sums.as_chunks_mut::<LANES>().0;
    let words = rows.chunks_exact(stride).zip(counts).zip(model);
    for ((row, v), p) in words {
        let row = row.as_chunks::<LANES>().0;
        let mut parts = [0.0; LANES];
        for (x, m) in row.iter().zip(mixture) {
            for lane in 0..LANES {
                parts[lane] += x[lane] * m[lane];
            }
        }
        *p = parts.iter().sum();
        let ratio = v / *p;
        for (sum, x) in sums.iter_mut().zip(row) {
            for lane in 0..LANES {
                sum[lane] += ratio * x[lane];
            }
        }
    }
}
