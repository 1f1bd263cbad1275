//! One round over the free modes.

use nalgebra::DMatrix;
use plca_tensor::parallel::for_each_part;
use plca_tensor::{Cp, Factor, Modes, Real, Request, RowTerms, Rule};

use super::product::{PART_ROWS, for_each_row, sums};
use super::{Fast, PASSES, Product};
use crate::FitError;

/// Where a sweep ended.
#[derive(Debug)]
pub(super) struct Swept<T: Real> {
    pub(super) product: Product<T>,
    /// The product with its last factor extrapolated too.
    pub(super) ahead: Product<T>,
    /// `Σ V ln P - v ln Σ P` over the observed cells, of every given index on its own where there is one.
    pub(super) ln_lik: f64,
}

impl<T: Real> Fast<'_, T> {
    /// Improves the free factors in turn from `ahead`, each carried on by `beta` times its way from `from`.
    pub(super) fn sweep(
        &self,
        from: &Product<T>,
        ahead: Product<T>,
        beta: f64,
    ) -> Result<Swept<T>, FitError> {
        let mut at = ahead;
        let mut ln_lik = 0.0;
        let last = self.model.plan().free.len() - 1;
        let mut product = None;
        for (turn, &mode) in self.model.plan().free.iter().enumerate() {
            let linear = self.linear(&at, mode)?;
            let mut block = at.weighted(mode);
            let floored = floored(&linear);
            let bounded = floored.as_ref().unwrap_or(&linear);
            let (with_priors, pseudo) = self.terms(&at, mode, bounded, &block);
            let terms = RowTerms {
                linear: with_priors.as_ref().unwrap_or(bounded),
                pseudo: pseudo.as_ref(),
            };
            let log = turn == last;
            let logs = self
                .rows
                .improve(mode, &at.rows(), terms, &mut block, PASSES, log);
            if log {
                ln_lik = logs - self.stretch(mode, &linear, &mut block);
            }
            // The rows of a given mode are scaled one by one: no entry ties them to the others.
            let keep_unseen = |at: &Product<T>, block: &mut DMatrix<T>| {
                if self.model.plan().given != Some(mode) {
                    at.keep_unseen(mode, terms.linear, block);
                }
            };
            keep_unseen(&at, &mut block);
            if beta <= 0.0 {
                at.set(mode, block);
                continue;
            }
            let mut carried = from.carried_on(mode, &block, &linear, beta);
            keep_unseen(&at, &mut carried);
            if log {
                let mut kept = at.clone();
                kept.set(mode, block);
                product = Some(kept);
            }
            at.set(mode, carried);
        }
        Ok(Swept {
            product: product.unwrap_or_else(|| at.clone()),
            ahead: at,
            ln_lik,
        })
    }

    /// Gives a product the scale at which its likelihood is best.
    pub(super) fn settle(&self, product: &mut Product<T>) -> Result<(), FitError> {
        let mode = self.model.plan().given.unwrap_or(self.model.plan().free[0]);
        let linear = self.linear(product, mode)?;
        let mut block = product.weighted(mode);
        self.stretch(mode, &linear, &mut block);
        product.set(mode, block);
        Ok(())
    }

    /// Brings a block to its best scale, every row on its own where they are given; `Σ v ln m` of the masses `m` before it.
    fn stretch(&self, mode: usize, linear: &DMatrix<T>, block: &mut DMatrix<T>) -> f64 {
        let total = self.model.data().total();
        let masses = masses(linear, block);
        if self.model.plan().given != Some(mode) {
            let mass: f64 = masses.iter().sum();
            if mass > 0.0 && mass != 1.0 {
                scale_rows(block, |_| 1.0 / mass);
            }
            return total * mass.ln();
        }
        let totals = self.rows.totals(mode);
        // An index without data has no weight in the others' problems.
        scale_rows(block, |i| {
            if masses[i] > 0.0 {
                totals[i] / total / masses[i]
            } else {
                0.0
            }
        });
        let seen = masses.iter().zip(totals).filter(|(_, v)| **v > 0.0);
        seen.map(|(mass, v)| v * mass.ln()).sum()
    }

    /// `Σ Π_{m≠j} F_m` over the observed cells of every row: `K x 1` where all are.
    fn linear(&self, at: &Product<T>, mode: usize) -> Result<DMatrix<T>, FitError> {
        let k = at.scale.len();
        let mut factors = at.rows();
        let data = self.model.data();
        if data.is_complete() {
            let mut product = DMatrix::from_element(k, 1, 1.0f64);
            for (_, factor) in at.factors.iter().enumerate().filter(|&(m, _)| m != mode) {
                product
                    .iter_mut()
                    .zip(sums(factor))
                    .for_each(|(p, s)| *p *= s);
            }
            return Ok(product.map(T::lit));
        }
        let ones = DMatrix::from_element(k, at.factors[mode].ncols(), T::one());
        factors[mode] = Factor::Rows(&ones);
        let model = Cp {
            weights: None,
            factors: &factors,
        };
        let exposure = Request::counts(Modes::one(mode)).rule(Rule::Exposure);
        Ok(data.e_step(&model, &exposure)?.take(mode))
    }

    /// What the priors make of a mode's problems: the logarithms that do not separate are replaced by bounds that touch them at the
    /// present block, tangents from above and Jensen's inequality from below.
    fn terms(
        &self,
        at: &Product<T>,
        mode: usize,
        linear: &DMatrix<T>,
        block: &DMatrix<T>,
    ) -> (Option<DMatrix<T>>, Option<DMatrix<f64>>) {
        let plan = self.model.plan();
        let own = plan.pseudo[mode].as_ref();
        let total = self.model.data().total();
        let size = block.ncols();
        if plan.given == Some(mode) {
            let Some(own) = own else { return (None, None) };
            // [SPEC 10.1] s <- s + (Σ_z c) / h_y for the tangent of -(Σ_z c) ln h_y
            let slope = |i: usize| {
                let mass: f64 = block.column(i).iter().map(|w| w.to_f64()).sum();
                if mass > 0.0 {
                    own.column(i).sum() / total / mass
                } else {
                    0.0
                }
            };
            let slopes: Vec<f64> = (0..size).map(slope).collect();
            let linear = spread(linear, size);
            let with = DMatrix::from_fn(linear.nrows(), size, |z, i| {
                T::lit(linear[(z, i)].to_f64() + slopes[i])
            });
            return (Some(with), Some(own.clone()));
        }
        let mixtures = plan
            .given
            .and_then(|given| Some((given, plan.pseudo[given].as_ref()?)));
        if own.is_none() && plan.weights.is_none() && mixtures.is_none() {
            return (None, None);
        }
        let k = at.scale.len();
        let mut slopes = vec![0.0; k];
        // Of ln n_z there are those of its weight less those of its column.
        let mut logs = vec![0.0; k];
        if let Some(weights) = &plan.weights {
            let mass: f64 = at.scale.iter().sum();
            let all: f64 = weights.iter().sum();
            slopes.iter_mut().for_each(|s| *s += all / total / mass);
            logs.iter_mut().zip(weights).for_each(|(l, w)| *l += w);
        }
        if let Some((given, counts)) = mixtures {
            for (f, c) in at.factors[given].column_iter().zip(counts.column_iter()) {
                let mass: f64 = f.iter().zip(&at.scale).map(|(f, n)| f.to_f64() * n).sum();
                if mass > 0.0 {
                    let by = c.sum() / total / mass;
                    slopes
                        .iter_mut()
                        .zip(f.iter())
                        .for_each(|(s, f)| *s += by * f.to_f64());
                }
            }
            logs.iter_mut().zip(sums(counts)).for_each(|(l, c)| *l += c);
        }
        if let Some(own) = own {
            logs.iter_mut().zip(sums(own)).for_each(|(l, c)| *l -= c);
        }
        // [SPEC 10.1] s <- s + c / n for the tangent of -c ln n
        for ((slope, &log), &n) in slopes.iter_mut().zip(&logs).zip(&at.scale) {
            if log < 0.0 && n > 0.0 {
                *slope -= log / total / n;
            }
        }
        // [SPEC 10.1] c ln n >= Σ_i c (w_i / n) ln w_i + a constant
        let pseudo = DMatrix::from_fn(k, size, |z, i| {
            let shared = if logs[z] > 0.0 && at.scale[z] > 0.0 {
                logs[z] * block[(z, i)].to_f64() / at.scale[z]
            } else {
                0.0
            };
            own.map_or(0.0, |own| own[(z, i)]) + shared
        });
        let columns = linear.ncols();
        let with = DMatrix::from_fn(k, columns, |z, i| {
            T::lit(linear[(z, i)].to_f64() + slopes[z])
        });
        (Some(with), Some(pseudo))
    }
}

/// Linear terms that differ from row to row, those that are all but 0 raised: an entry grows as its term shrinks, beyond what a number
/// can hold. Factors sum to 1, and terms are of their size.
pub(crate) fn floored<T: Real>(linear: &DMatrix<T>) -> Option<DMatrix<T>> {
    let least = T::lit(T::TINY.to_f64().sqrt());
    let faint = |s: &T| *s > T::zero() && *s < least;
    (linear.iter().any(faint)).then(|| linear.map(|s| if faint(&s) { least } else { s }))
}

/// One column for every row of the mode.
fn spread<T: Real>(linear: &DMatrix<T>, size: usize) -> DMatrix<T> {
    DMatrix::from_fn(linear.nrows(), size, |z, i| {
        linear[(z, if linear.ncols() == 1 { 0 } else { i })]
    })
}

/// `Σ_k s_k w_k` of every row.
fn masses<T: Real>(linear: &DMatrix<T>, block: &DMatrix<T>) -> Vec<f64> {
    let shared = linear.ncols() == 1;
    let mut masses = vec![0.0; block.ncols()];
    for_each_part(&mut masses, PART_ROWS, |part, masses| {
        for (i, mass) in (part * PART_ROWS..).zip(masses) {
            let s = linear.column(if shared { 0 } else { i });
            let w = block.column(i);
            let products = w.iter().zip(s.iter()).map(|(w, s)| w.to_f64() * s.to_f64());
            *mass = products.sum();
        }
    });
    masses
}

/// Multiplies every row by its number.
fn scale_rows<T: Real>(block: &mut DMatrix<T>, by: impl Fn(usize) -> f64 + Sync + Send) {
    for_each_row(block, |i, row| {
        let by = by(i);
        row.iter_mut().for_each(|w| *w = T::lit(w.to_f64() * by));
    });
}
