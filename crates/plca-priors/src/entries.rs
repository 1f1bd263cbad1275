//! Hyperparameters of the entries of a block.

use nalgebra::DMatrix;

use crate::PriorError;
use crate::simplex_prior::{domain, fitting};

/// Hyperparameters of a block: one for all entries, one for each component, or one each.
///
/// ```
/// use plca_priors::{Entries, Gamma, PriorRules};
/// let by_row = Gamma::of(Entries::PerComponent(vec![1.0, 2.0]), Entries::All(0.5))?;
/// assert!(by_row.check((2, 7)).is_ok() && by_row.check((3, 7)).is_err());
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Entries {
    /// The same everywhere.
    All(f64),
    /// One for each of the `K` components; for [`Gamma`](crate::Gamma) one for each row.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Components {
    /// Each is a column, of a block with this number of rows.
    Columns(usize),
    /// Each is a row, of a block with this number of rows.
    Rows(usize),
}

impl Components {
    /// The component of the entry at this position in column-major order.
    ///
    /// ```
    /// use plca_priors::Components;
    /// assert_eq!((Components::Columns(2).component(5), Components::Rows(2).component(5)), (2, 1));
    /// ```
    #[inline]
    pub fn component(self, at: usize) -> usize {
        match self {
            Self::Columns(rows) => at / rows,
            Self::Rows(k) => at % k,
        }
    }
}

impl Entries {
    /// The hyperparameter of the entry at this position in column-major order.
    #[inline]
    pub fn get(&self, at: usize, components: Components) -> f64 {
        match self {
            Self::All(x) => *x,
            Self::PerComponent(each) => each[components.component(at)],
            Self::Each(m) => m[at],
        }
    }

    /// Every hyperparameter that is held.
    pub fn as_slice(&self) -> &[f64] {
        match self {
            Self::All(x) => std::slice::from_ref(x),
            Self::PerComponent(each) => each,
            Self::Each(m) => m.as_slice(),
        }
    }

    /// `f` of every hyperparameter.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        match self {
            Self::All(x) => Self::All(f(*x)),
            Self::PerComponent(each) => Self::PerComponent(each.iter().map(|&x| f(x)).collect()),
            Self::Each(m) => Self::Each(m.map(f)),
        }
    }

    /// Calls `f` with every value of a block and its hyperparameter.
    ///
    /// ```
    /// use plca_priors::{Components, Entries};
    /// let mut block = [1.0, 1.0, 1.0, 1.0];
    /// Entries::PerComponent(vec![2.0, 3.0]).for_each(&mut block, Components::Columns(2), |x, a| *x *= a);
    /// assert_eq!(block, [2.0, 2.0, 3.0, 3.0]);
    /// ```
    #[inline(always)]
    pub fn for_each<T>(
        &self,
        values: &mut [T],
        components: Components,
        mut f: impl FnMut(&mut T, f64),
    ) {
        match (self, components) {
            (&Self::All(c), _) => values.iter_mut().for_each(|x| f(x, c)),
            (Self::PerComponent(each), Components::Columns(rows)) => {
                for (column, &c) in values.chunks_mut(rows.max(1)).zip(each) {
                    column.iter_mut().for_each(|x| f(x, c));
                }
            }
            (Self::PerComponent(each), Components::Rows(k)) => {
                for column in values.chunks_mut(k.max(1)) {
                    column.iter_mut().zip(each).for_each(|(x, &c)| f(x, c));
                }
            }
            (Self::Each(m), _) => values.iter_mut().zip(m).for_each(|(x, &c)| f(x, c)),
        }
    }

    /// Refuses the first hyperparameter that is not finite or not within the domain of `name`.
    pub(crate) fn within(
        self,
        name: &'static str,
        within: fn(f64) -> bool,
    ) -> Result<Self, PriorError> {
        let mut each = self.as_slice().iter();
        each.try_for_each(|&x| domain(name, x, x.is_finite() && within(x)))?;
        Ok(self)
    }

    /// Refuses a block of another shape, whose components are rows.
    pub(crate) fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        match self {
            Self::All(_) => Ok(()),
            Self::PerComponent(each) => {
                fitting(each.len() == shape.0, (each.len(), 1), (shape.0, 1))
            }
            Self::Each(m) => fitting(m.shape() == shape, m.shape(), shape),
        }
    }
}
