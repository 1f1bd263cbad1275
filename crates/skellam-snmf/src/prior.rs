//! Dirichlet priors on the atoms, gamma priors on the activations.

use nalgebra::DMatrix;
use plca_fit::FitError;

use crate::check::{check_shapes, check_values};

/// The hyperparameters of a block: one for all entries, one for each component, or one each.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Entries, Prior};
/// let prior = Prior { shape: Entries::Each(dmatrix![2.0, -1.0]), ..Prior::flat() };
/// let error = prior.check().unwrap_err();
/// assert_eq!(error.to_string(), "`prior shape` has -1 in row 0, column 1, expected a finite number > 0");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Entries {
    /// The same everywhere.
    All(f64),
    /// One for each of the `K` components.
    PerComponent(Vec<f64>),
    /// One for every entry of the block, which it must have the shape of.
    Each(
        #[cfg_attr(
            feature = "serde",
            serde(deserialize_with = "plca_tensor::checked::matrix")
        )]
        DMatrix<f64>,
    ),
}

/// Where the components of a block lie.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Axis {
    /// Each is a column of so many rows: atoms.
    Columns(usize),
    /// Each is one of so many rows: activations.
    Rows(usize),
}

impl Axis {
    /// That of the entry at this position in column-major order.
    #[inline]
    pub(crate) fn component(self, at: usize) -> usize {
        match self {
            Self::Columns(rows) => at / rows,
            Self::Rows(k) => at % k,
        }
    }
}

impl Entries {
    /// That of the entry at this position in column-major order.
    #[inline]
    pub(crate) fn get(&self, at: usize, axis: Axis) -> f64 {
        match self {
            Self::All(x) => *x,
            Self::PerComponent(each) => each[axis.component(at)],
            Self::Each(m) => m[at],
        }
    }

    /// Every hyperparameter that is held.
    pub(crate) fn values(&self) -> &[f64] {
        match self {
            Self::All(x) => std::slice::from_ref(x),
            Self::PerComponent(each) => each,
            Self::Each(m) => m.as_slice(),
        }
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        match self {
            Self::All(x) => Self::All(f(*x)),
            Self::PerComponent(each) => Self::PerComponent(each.iter().map(|&x| f(x)).collect()),
            Self::Each(m) => Self::Each(m.map(f)),
        }
    }

    /// Calls `f` with every value and its hyperparameter.
    #[inline(always)]
    pub(crate) fn for_each<T>(&self, values: &mut [T], axis: Axis, mut f: impl FnMut(&mut T, f64)) {
        match (self, axis) {
            (&Self::All(c), _) => values.iter_mut().for_each(|x| f(x, c)),
            (Self::PerComponent(each), Axis::Columns(rows)) => {
                for (column, &c) in values.chunks_mut(rows.max(1)).zip(each) {
                    column.iter_mut().for_each(|x| f(x, c));
                }
            }
            (Self::PerComponent(each), Axis::Rows(k)) => {
                for column in values.chunks_mut(k.max(1)) {
                    column.iter_mut().zip(each).for_each(|(x, &c)| f(x, c));
                }
            }
            (Self::Each(m), _) => values.iter_mut().zip(m).for_each(|(x, &c)| f(x, c)),
        }
    }

    fn check(
        &self,
        name: &str,
        expected: &'static str,
        ok: impl Fn(f64) -> bool,
    ) -> Result<(), FitError> {
        let block = format!("prior {name}");
        let refuse = |row, column, value| FitError::Range {
            block: block.clone(),
            row,
            column,
            value,
            expected,
        };
        match self {
            Self::All(x) if ok(*x) => Ok(()),
            Self::All(x) => Err(refuse(0, 0, *x)),
            Self::PerComponent(each) => match each.iter().position(|&x| !ok(x)) {
                // Atoms are columns, activations rows.
                Some(k) if matches!(name, "plus" | "minus") => Err(refuse(0, k, each[k])),
                Some(k) => Err(refuse(k, 0, each[k])),
                None => Ok(()),
            },
            Self::Each(m) => check_values(&block, m, expected, ok),
        }
    }

    /// Refuses a block of another shape, of `k` components.
    fn check_shape(&self, name: &str, expected: (usize, usize), k: usize) -> Result<(), FitError> {
        let (got, expected) = match self {
            Self::All(_) => return Ok(()),
            Self::PerComponent(each) => ((each.len(), 1), (k, 1)),
            Self::Each(m) => (m.shape(), expected),
        };
        check_shapes([(&*format!("prior {name}"), got, expected)])
    }
}

/// Priors of a Skellam factorization: Dirichlet on the atoms, gamma on the activations. `[SKELLAM eq. 15]`, `[SKELLAM eq. 16]`
///
/// ```math
/// T[\cdot,k,\pm] \sim \mathrm{Dirichlet}(\alpha), \qquad H[k,n] \sim \mathrm{Gamma}(\text{shape } a, \text{rate } b)
/// ```
///
/// `a / b` is the mean of an activation, in the units of the data; shapes have no unit.
///
/// ```
/// use skellam_snmf::{Entries, Prior};
/// let sparse = Prior { shape: Entries::All(0.5), rate: Entries::All(0.01), ..Prior::flat() };
/// assert!(sparse.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Prior {
    /// The shapes `α` of the positive side, `F x K`.
    pub plus: Entries,
    /// The shapes `α` of the negative side, `F x K`.
    pub minus: Entries,
    /// The shapes `a`, `K x N`.
    pub shape: Entries,
    /// The rates `b`, `K x N`, in 1 over the units of the data; 0 is improper and for EM alone.
    pub rate: Entries,
}

impl Default for Prior {
    fn default() -> Self {
        Self::flat()
    }
}

impl Prior {
    /// The prior of maximum likelihood: `α = 1`, `a = 1`, `b = 0`. Its density is constant, `Γ(2F)` for every atom.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_fit::{Model, State};
    /// use plca_tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Prior, Snmf, SnmfState};
    /// let v = DenseTensor::new(vec![2, 1], vec![4.0, -1.0], Order::RowMajor)?;
    /// let state = SnmfState::new(&dmatrix![0.5; 0.1], &dmatrix![0.1; 0.3], dmatrix![6.0])?;
    /// let snmf = Snmf::builder(1).priors(Prior::flat()).build()?;
    /// let (em, at) = (snmf.bind(&v)?, state.parameters());
    /// assert!((em.objective(at)? - em.likelihood(at)? - 6f64.ln()).abs() < 1e-12);           // Γ(4) = 6
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flat() -> Self {
        Self {
            plus: Entries::All(1.0),
            minus: Entries::All(1.0),
            shape: Entries::All(1.0),
            rate: Entries::All(0.0),
        }
    }

    /// This prior to a power in `(0, 1]`, up to its constant.
    ///
    /// ```math
    /// \alpha \to 1 + p (\alpha - 1), \qquad a \to 1 + p (a - 1), \qquad b \to p b
    /// ```
    ///
    /// Some last iterations under it let the data speak before hyperparameters are learnt from the posterior.
    ///
    /// ```
    /// use skellam_snmf::{Entries, Prior};
    /// let prior = Prior { shape: Entries::All(5.0), rate: Entries::All(0.5), ..Prior::flat() };
    /// let weak = prior.weakened(0.25);
    /// assert_eq!((weak.shape, weak.rate), (Entries::All(2.0), Entries::All(0.125)));
    /// ```
    pub fn weakened(&self, power: f64) -> Self {
        let shape = |e: &Entries| e.map(|x| 1.0 + power * (x - 1.0));
        Self {
            plus: shape(&self.plus),
            minus: shape(&self.minus),
            shape: shape(&self.shape),
            rate: self.rate.map(|b| power * b),
        }
    }

    /// Refuses values that no prior has.
    ///
    /// # Errors
    ///
    /// [`FitError::Range`]: a shape that is not positive, a rate that is negative, either not finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Entries, Prior};
    /// let prior = |b| Prior { rate: Entries::All(b), ..Prior::flat() };
    /// assert!(prior(0.0).check().is_ok() && prior(-1.0).check().is_err() && prior(f64::NAN).check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), FitError> {
        const POSITIVE: &str = "a finite number > 0";
        let positive = |x: f64| x.is_finite() && x > 0.0;
        self.plus.check("plus", POSITIVE, positive)?;
        self.minus.check("minus", POSITIVE, positive)?;
        self.shape.check("shape", POSITIVE, positive)?;
        let rate = |x: f64| x.is_finite() && x >= 0.0;
        self.rate.check("rate", "a finite number >= 0", rate)
    }

    /// Refuses rates of 0, under which no bound exists.
    pub(crate) fn check_proper(&self) -> Result<(), FitError> {
        let positive = |x: f64| x > 0.0;
        self.rate.check("rate", "a finite number > 0", positive)
    }

    /// Refuses shapes that variational Bayes cannot hold.
    pub(crate) fn check_least(&self, (least, range): (f64, &'static str)) -> Result<(), FitError> {
        let enough = |x: f64| x >= least;
        self.plus.check("plus", range, enough)?;
        self.minus.check("minus", range, enough)?;
        self.shape.check("shape", range, enough)
    }

    /// Refuses blocks of another shape than the data and `k` components need.
    pub(crate) fn check_shape(&self, (f, n): (usize, usize), k: usize) -> Result<(), FitError> {
        self.plus.check_shape("plus", (f, k), k)?;
        self.minus.check_shape("minus", (f, k), k)?;
        self.shape.check_shape("shape", (k, n), k)?;
        self.rate.check_shape("rate", (k, n), k)
    }
}
