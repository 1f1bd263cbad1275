//! Starts of variational Bayes.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_tensor::Real;
use rand::Rng;

use crate::faint::Logs;
use crate::init::{check_block, check_factor, check_support};
use crate::posterior::least_shape;
use crate::prior::Axis;
use crate::{Entries, ParamError, Posterior, SnmfError, SnmfInit, SnmfState, vbem::SnmfVbEm};

/// Where a fit of variational Bayes starts.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Signed, SnmfVb, Stop, VbInit};
/// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// # let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let (old, new) = (dmatrix![3.0, 6.0; -1.0, -2.0], dmatrix![9.0; -3.0]);
/// let vb = SnmfVb::builder(1).build()?;
/// let fit = vb.fit(&Signed::from_matrix(old)?, &VbInit::Random, &Stop::default(), &mut rng)?;
/// let warm = VbInit::Atoms { plus: fit.state.plus.clone(), minus: fit.state.minus.clone() };
/// let start = warm.state(&vb.on(&Signed::from_matrix(new)?)?, &mut rng)?;
/// assert_eq!((start.plus, start.shape), (fit.state.plus, dmatrix![1.0]));                 // the prior's a
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub enum VbInit<T: Real> {
    /// The update from random factors, those that [`SnmfInit`] draws.
    #[default]
    Random,
    /// The update from these factors, taken for the geometric means; they need not be normalised.
    Means(SnmfState<T>),
    /// The prior itself, `α̂ = α`, `ŝ = a`, `b̂ = b + 1`, every shape raised by up to `jitter`: components that start alike
    /// under like priors stay alike for ever.
    Prior {
        /// Largest amount added.
        jitter: f64,
    },
    /// A posterior of the atoms, such as an earlier fit's, and the prior of the activations.
    Atoms {
        /// `α̂` of the positive side, `F x K`.
        plus: DMatrix<T>,
        /// `α̂` of the negative side, `F x K`.
        minus: DMatrix<T>,
    },
    /// A whole posterior, such as a checkpoint's.
    Posterior(Posterior<T>),
}

/// A block of the prior.
fn expand<T: Real>(
    entries: &Entries,
    (rows, columns): (usize, usize),
    axis: Axis,
    add: f64,
) -> DMatrix<T> {
    let mut block = DMatrix::zeros(rows, columns);
    entries.for_each(block.as_mut_slice(), axis, |x, c| *x = T::lit(c + add));
    block
}

impl<T: Real> VbInit<T> {
    /// The state that this start gives.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: a block of the wrong shape or with values outside its range; a frozen block that is not given; a datum
    /// that factors given as means make impossible.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Entries, Prior, Signed, SnmfVb, VbInit};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![2.0, -4.0])?;
    /// let prior = Prior { shape: Entries::All(3.0), rate: Entries::All(0.5), ..Prior::flat() };
    /// let vb = SnmfVb::builder(1).prior(prior).build()?;
    /// let start = VbInit::Prior { jitter: 0.0 }.state(&vb.on(&v)?, &mut rng)?;
    /// assert_eq!((start.shape, start.rate), (dmatrix![3.0, 3.0], dmatrix![1.5, 1.5]));        // a and b + 1
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn state<R: Rng + ?Sized>(
        &self,
        bound: &SnmfVbEm<'_, T>,
        rng: &mut R,
    ) -> Result<Posterior<T>, SnmfError> {
        let (data, k) = (bound.data, bound.config.components);
        let prior = &bound.config.prior;
        let (f, n) = data.shape();
        let given = matches!(self, Self::Atoms { .. } | Self::Posterior(_));
        if bound.config.freeze_atoms && !given {
            return Err(SnmfError::FixedWithoutValue { block: "atoms" });
        }
        if bound.config.freeze_activations && !matches!(self, Self::Posterior(_)) {
            return Err(SnmfError::FixedWithoutValue { block: "shape" });
        }
        let (atoms, activations) = (Axis::Columns(f), Axis::Rows(k));
        let mut jitter = |entries: &Entries, shape: (usize, usize), axis: Axis, most: f64| {
            let mut block: DMatrix<T> = expand(entries, shape, axis, 0.0);
            for x in block.iter_mut() {
                *x = T::lit(x.to_f64() + most * random::uniform(rng));
            }
            block
        };
        Ok(match self {
            Self::Random => {
                let start = SnmfInit::default().state(data, k, rng)?;
                bound.update(&start, || Ok(Logs::of(&start)), false)?.0
            }
            Self::Means(means) => {
                check_factor("plus", &means.plus, (f, k))?;
                check_factor("minus", &means.minus, (f, k))?;
                check_factor("activations", &means.activations, (k, n))?;
                check_support(data, means)?;
                bound.update(means, || Ok(Logs::of(means)), false)?.0
            }
            &Self::Prior { jitter: most } => {
                if !(most.is_finite() && most >= 0.0) {
                    return Err(SnmfError::from(ParamError::Number {
                        name: "jitter",
                        value: most,
                        range: "a finite number >= 0",
                    }));
                }
                Posterior {
                    plus: jitter(&prior.plus, (f, k), atoms, most),
                    minus: jitter(&prior.minus, (f, k), atoms, most),
                    shape: jitter(&prior.shape, (k, n), activations, most),
                    rate: expand(&prior.rate, (k, n), activations, 1.0),
                }
            }
            Self::Atoms { plus, minus } => {
                let shape = jitter(&prior.shape, (k, n), activations, 0.0);
                let rate = expand(&prior.rate, (k, n), activations, 1.0);
                checked(plus, minus, shape, rate, (f, k, n))?
            }
            Self::Posterior(p) => {
                let (shape, rate) = (p.shape.clone(), p.rate.clone());
                checked(&p.plus, &p.minus, shape, rate, (f, k, n))?
            }
        })
    }
}

/// A posterior whose shapes and rates can be held.
fn checked<T: Real>(
    plus: &DMatrix<T>,
    minus: &DMatrix<T>,
    shape: DMatrix<T>,
    rate: DMatrix<T>,
    (f, k, n): (usize, usize, usize),
) -> Result<Posterior<T>, SnmfError> {
    let (least, range) = least_shape::<T>();
    let enough = |block, m: &DMatrix<T>, expected| {
        let ok = |x: T| x.is_finite() && x.to_f64() >= least;
        check_block(block, m, expected, range, ok)
    };
    enough("plus", plus, (f, k))?;
    enough("minus", minus, (f, k))?;
    enough("shape", &shape, (k, n))?;
    let positive = |x: T| x.is_finite() && x > T::zero();
    check_block("rate", &rate, (k, n), "a finite number > 0", positive)?;
    Ok(Posterior {
        plus: plus.clone(),
        minus: minus.clone(),
        shape,
        rate,
    })
}
