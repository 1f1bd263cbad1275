//! The variational posterior and its expectations.

use nalgebra::DMatrix;
use plca_dist::{digamma, exp_digamma_slice, gamma_shape_kl_slice, ln_gamma};
use plca_fit::{FitError, Parameters};
use plca_priors::Components;
use plca_tensor::{CompensatedSum, Real};

use crate::check::{check_shapes, check_values, not_finite};
use crate::faint::Logs;
use crate::{Factors, Prior};

/// The blocks of a model that posteriors are made of.
const ATOMS: &str = "atoms_shape";
const SHAPE: &str = "activations_shape";

/// Least shape that can be fitted, and a sentence about it: `ψ(x) ≈ -1/x` times a datum is a number, and so is `x` itself.
pub(crate) fn least_shape<T: Real>() -> (f64, &'static str) {
    if T::MAX_EXPONENT < 1000 {
        (
            1e-19,
            "a finite number >= 1e-19, the least in single precision",
        )
    } else {
        (1e-150, "a finite number >= 1e-150")
    }
}

/// Refuses shapes of a start that are too small to be fitted.
pub(crate) fn check_held<T: Real>(at: &Parameters<T>) -> Result<(), FitError> {
    let (least, expected) = least_shape::<T>();
    // As the scalar has it: the prior may be as small.
    let least = T::lit(least);
    let mut shapes = at.blocks().filter(|(name, _)| name.ends_with("_shape"));
    shapes.try_for_each(|(name, block)| check_values(name, block, expected, |x| x >= least))
}

/// A variational posterior: a distribution of the atoms and one of the activations. `[SKELLAM eq. 41]`, `[SKELLAM eq. 42]`
///
/// ```math
/// q(T[\cdot,k,\pm]) = \mathrm{Dirichlet}(\hat\alpha), \qquad q(H[k,n]) = \mathrm{Gamma}(\hat s, \text{rate } \hat b)
/// ```
///
/// All entries are positive; `1 / b̂` has the units of the data, shapes have none.
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::Posterior;
/// let q = Posterior { plus: dmatrix![2.0; 1.0], minus: dmatrix![0.5; 0.5], shape: dmatrix![6.0], rate: dmatrix![2.0] };
/// let (mean, variance) = (q.shape[0] / q.rate[0], q.shape[0] / f64::powi(q.rate[0], 2));
/// assert_eq!((mean, variance), (q.means().activations[0], 1.5));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(deserialize = "T: serde::Deserialize<'de>"))
)]
pub struct Posterior<T: Real> {
    /// The Dirichlet shapes `α̂` of the positive side, `F x K`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::checked::matrix"))]
    pub plus: DMatrix<T>,
    /// The Dirichlet shapes `α̂` of the negative side, `F x K`; without rows for a factor of one side.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::checked::matrix"))]
    pub minus: DMatrix<T>,
    /// The gamma shapes `ŝ`, `K x N`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::checked::matrix"))]
    pub shape: DMatrix<T>,
    /// The gamma rates `b̂`, `K x N`, in 1 over the units of the data.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::checked::matrix"))]
    pub rate: DMatrix<T>,
}

impl<T: Real> Posterior<T> {
    /// The posterior means of atoms and activations. `[SKELLAM 6]`
    ///
    /// ```math
    /// E[T] = \frac{\hat\alpha}{\sum \hat\alpha}, \qquad E[H] = \frac{\hat s}{\hat b}
    /// ```
    ///
    /// The sum runs over an atom's rows and both sides.
    ///
    /// # Panics
    ///
    /// If `ŝ` and `b̂` have different shapes.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::Posterior;
    /// let q = Posterior { plus: dmatrix![2.0; 1.0], minus: dmatrix![0.5; 0.5], shape: dmatrix![6.0], rate: dmatrix![2.0] };
    /// let means = q.means();
    /// assert_eq!((means.plus, means.minus), (dmatrix![0.5; 0.25], dmatrix![0.125; 0.125]));
    /// assert_eq!(means.activations, dmatrix![3.0]);
    /// ```
    pub fn means(&self) -> Factors<T> {
        let (mut plus, mut minus) = (self.plus.clone(), self.minus.clone());
        let totals = self.totals();
        for side in [&mut plus, &mut minus] {
            for (mut column, &total) in side.column_iter_mut().zip(&totals) {
                column /= T::lit(total);
            }
        }
        Factors {
            plus,
            minus,
            activations: self.shape.component_div(&self.rate),
        }
    }

    /// `Â_k`: sum of the shapes of an atom.
    pub(crate) fn totals(&self) -> Vec<f64> {
        let columns = self.plus.column_iter().zip(self.minus.column_iter());
        let total = |x: &T| x.to_f64();
        columns
            .map(|(p, m)| p.iter().chain(m.iter()).map(total).sum())
            .collect()
    }

    /// Geometric means `e^E[ln T]` and `e^E[ln H]`: the factors that the E-step sees.
    pub(crate) fn geometric(&self) -> Result<Factors<T>, FitError> {
        let [plus, minus] = self.geometric_atoms()?;
        Ok(Factors {
            plus,
            minus,
            activations: self.geometric_activations()?,
        })
    }

    /// `e^E[ln H]`.
    pub(crate) fn geometric_activations(&self) -> Result<DMatrix<T>, FitError> {
        // [SKELLAM 6] e^ψ(ŝ) / b̂
        let rates = self.rate.as_slice();
        exp_psi_of(&self.shape, SHAPE, |at, x| x / rates[at].to_f64())
    }

    /// `e^E[ln T]` of both sides.
    pub(crate) fn geometric_atoms(&self) -> Result<[DMatrix<T>; 2], FitError> {
        let totals = self.totals();
        let mut over = vec![0.0; totals.len()];
        exp_digamma_slice(&totals, &mut over).map_err(|_| not_finite(ATOMS, f64::NAN))?;
        let rows = self.plus.nrows();
        let side = |shapes: &DMatrix<T>| {
            // [SKELLAM 6] e^(ψ(α̂) - ψ(Σ α̂))
            let mut out = exp_psi_of(shapes, ATOMS, |at, x| x / over[at / rows])?;
            // The quotient of two numbers that are none.
            for k in (0..over.len()).filter(|&k| over[k] < 1e-290) {
                let psi = special(digamma, totals[k], ATOMS)?;
                for (x, shape) in out.column_mut(k).iter_mut().zip(shapes.column(k).iter()) {
                    *x = normal((special(digamma, shape.to_f64(), ATOMS)? - psi).exp());
                }
            }
            Ok::<_, FitError>(out)
        };
        Ok([side(&self.plus)?, side(&self.minus)?])
    }

    /// `E[ln T]` and `E[ln H]`. `[SKELLAM eq. 47]`, `[SKELLAM eq. 50]`
    pub(crate) fn ln_geometric(&self) -> Result<Logs, FitError> {
        let psi = |x: f64| special(digamma, x, ATOMS);
        let totals = (self.totals().into_iter().map(psi)).collect::<Result<Vec<_>, _>>()?;
        let side = |shapes: &DMatrix<T>| {
            let mut ln = shapes.transpose().map(|x| x.to_f64());
            for column in ln.as_mut_slice().chunks_exact_mut(totals.len().max(1)) {
                for (x, total) in column.iter_mut().zip(&totals) {
                    *x = psi(*x)? - total;
                }
            }
            Ok::<_, FitError>(ln)
        };
        let atoms = [side(&self.plus)?, side(&self.minus)?];
        let mut activations = self.shape.map(|x| x.to_f64());
        for (x, b) in activations.iter_mut().zip(&self.rate) {
            *x = special(digamma, *x, SHAPE)? - b.to_f64().ln();
        }
        Ok(Logs { atoms, activations })
    }

    /// The Kullback-Leibler divergence of the posterior from a prior, in nats: what the bound pays for leaving the prior. `[SKELLAM 7]`
    ///
    /// ```math
    /// \sum_{k,n} \mathrm{KL}(q(H[k,n]) \,\Vert\, p(H[k,n])) + \sum_k \mathrm{KL}(q(T[\cdot,k,\pm]) \,\Vert\, p(T[\cdot,k,\pm]))
    /// ```
    ///
    /// # Errors
    ///
    /// [`FitError::NotFinite`] for shapes or rates that no posterior has; a prior of another shape.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Entries, Posterior, Prior};
    /// let q = Posterior { plus: dmatrix![1.0], minus: dmatrix![1.0], shape: dmatrix![1.0], rate: dmatrix![2.0] };
    /// let prior = |b| Prior { rate: Entries::All(b), ..Prior::flat() };
    /// assert!(q.divergence(&prior(2.0))?.abs() < 1e-12);
    /// assert!((q.divergence(&prior(1.0))? - (2f64.ln() - 0.5)).abs() < 1e-12);               // of two exponentials
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn divergence(&self, prior: &Prior) -> Result<f64, FitError> {
        self.check_pairs()?;
        let (k, n) = self.shape.shape();
        prior.check_shape((self.plus.nrows(), n), k)?;
        let gamma = self.gamma_terms(prior, |s, b, rate| s * (b - rate) / rate)?;
        let dirichlet = self.dirichlet_terms(prior)?;
        Ok(gamma + dirichlet)
    }

    /// Whether the blocks that belong together have one shape, and one number of components; a factor of one side has no rows of the other.
    pub(crate) fn check_pairs(&self) -> Result<(), FitError> {
        let (rows, k) = self.plus.shape();
        let components = (k, self.shape.ncols());
        let of_minus = if self.minus.nrows() == 0 { 0 } else { rows };
        check_shapes([
            ("minus", self.minus.shape(), (of_minus, k)),
            ("rate", self.rate.shape(), self.shape.shape()),
            ("shape", self.shape.shape(), components),
        ])
    }

    /// The part of the bound that is not the likelihood: `-Σ ŝ/b̂ - KL`. The mean and the last term of the divergence are
    /// taken together: where `b̂ = b + 1` they cancel.
    pub(crate) fn bound_terms(&self, prior: &Prior) -> Result<f64, FitError> {
        Ok(self.activations_terms(prior)? - self.dirichlet_terms(prior)?)
    }

    /// The terms of the activations.
    pub(crate) fn activations_terms(&self, prior: &Prior) -> Result<f64, FitError> {
        Ok(-self.gamma_terms(prior, |s, b, rate| s * ((b - rate) + 1.0) / rate)?)
    }

    /// Divergence of the activations with `last(ŝ, b, b̂)` for its last term.
    fn gamma_terms(
        &self,
        prior: &Prior,
        last: impl Fn(f64, f64, f64) -> f64,
    ) -> Result<f64, FitError> {
        const BATCH: usize = 256;
        let axis = Components::Rows(self.shape.nrows());
        let mut sum = CompensatedSum::default();
        let (mut shapes, mut priors, mut kl) = ([0.0; BATCH], [0.0; BATCH], [0.0; BATCH]);
        // One rate for all is the common case.
        let (mut rates, mut ln) = ((f64::NAN, f64::NAN), 0.0);
        let chunks = (self.shape.as_slice().chunks(BATCH)).zip(self.rate.as_slice().chunks(BATCH));
        for (chunk, (s, r)) in chunks.enumerate() {
            let n = s.len();
            for i in 0..n {
                shapes[i] = s[i].to_f64();
                priors[i] = prior.shape.get(chunk * BATCH + i, axis);
            }
            let kl = &mut kl[..n];
            gamma_shape_kl_slice(&shapes[..n], &priors[..n], kl)
                .map_err(|_| not_finite(SHAPE, f64::NAN))?;
            for i in 0..n {
                let (rate, b) = (r[i].to_f64(), prior.rate.get(chunk * BATCH + i, axis));
                if (rate, b) != rates {
                    (rates, ln) = ((rate, b), (rate / b).ln());
                }
                // [SKELLAM 7] KLG
                sum += kl[i] + priors[i] * ln + last(shapes[i], b, rate);
            }
        }
        Ok(sum.value())
    }

    /// Divergence of the atoms.
    pub(crate) fn dirichlet_terms(&self, prior: &Prior) -> Result<f64, FitError> {
        let mut sum = CompensatedSum::default();
        let rows = self.plus.nrows();
        for (k, total) in self.totals().into_iter().enumerate() {
            let psi_total = special(digamma, total, ATOMS)?;
            let mut prior_total = 0.0;
            for (shapes, alphas) in [(&self.plus, &prior.plus), (&self.minus, &prior.minus)] {
                for (f, shape) in shapes.column(k).iter().enumerate() {
                    let (shape, alpha) = (
                        shape.to_f64(),
                        alphas.get(k * rows + f, Components::Columns(rows)),
                    );
                    prior_total += alpha;
                    // [SKELLAM 7] KLD
                    sum += special(ln_gamma, alpha, ATOMS)? - special(ln_gamma, shape, ATOMS)?
                        + (shape - alpha) * (special(digamma, shape, ATOMS)? - psi_total);
                }
            }
            sum += special(ln_gamma, total, ATOMS)? - special(ln_gamma, prior_total, ATOMS)?;
        }
        Ok(sum.value())
    }
}

/// In the scalar; subnormal numbers, a hundred times as slow, are taken as 0.
#[inline]
fn normal<T: Real>(x: f64) -> T {
    T::lit(if x < T::TINY.to_f64() { 0.0 } else { x })
}

/// A special function of a shape.
pub(crate) fn special<E>(
    f: impl Fn(f64) -> Result<f64, E>,
    x: f64,
    block: &str,
) -> Result<f64, FitError> {
    f(x).map_err(|_| not_finite(block, x))
}

/// `finish` of every position and its `e^ψ`.
fn exp_psi_of<T: Real>(
    shapes: &DMatrix<T>,
    block: &str,
    finish: impl Fn(usize, f64) -> f64,
) -> Result<DMatrix<T>, FitError> {
    const BATCH: usize = 256;
    let mut out = Vec::with_capacity(shapes.len());
    let (mut from, mut to) = ([0.0; BATCH], [0.0; BATCH]);
    for part in shapes.as_slice().chunks(BATCH) {
        let (from, to) = (&mut from[..part.len()], &mut to[..part.len()]);
        from.iter_mut().zip(part).for_each(|(f, x)| *f = x.to_f64());
        exp_digamma_slice(from, to).map_err(|_| not_finite(block, f64::NAN))?;
        let first = out.len();
        out.extend((to.iter().enumerate()).map(|(i, &x)| normal::<T>(finish(first + i, x))));
    }
    let (rows, columns) = shapes.shape();
    Ok(DMatrix::from_vec(rows, columns, out))
}
