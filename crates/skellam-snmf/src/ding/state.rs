//! Fitted parameters, and what they say of data.

use nalgebra::DMatrix;
use plca_fit::{
    Explained, FitError, Parameters, Reconstruct, State, Transform,
    blocks::{Axes, Blocks, Frozen},
    explain::check_shape,
};
use plca_tensor::{Data, DenseTensor, Factor, Real};

use super::steps::DingSteps;
use super::{Scaled, specs};
use crate::signed::{along_columns, explained, product};

/// The fitted parameters of [`Ding`](super::Ding): a basis of any sign and non-negative activations.
///
/// ```math
/// V \approx W H
/// ```
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::{DingState, Reconstruct};
/// let state = DingState::new(dmatrix![2.0; -1.0], dmatrix![1.0, 2.0])?;
/// assert_eq!(state.cell(&[1, 1]), -2.0);
/// assert!(DingState::new(dmatrix![2.0; -1.0], dmatrix![1.0, -2.0]).is_err());
/// # Ok::<(), skellam_snmf::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DingState<T: Real>(Parameters<T>);

plca_fit::serialised!(DingState);

impl<T: Real> DingState<T> {
    /// The state of `W`, `F x K`, and `H`, `K x N`.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Range`] for a value of `W` that is not finite, [`FitError::Value`] for one of `H` that is negative or not
    /// finite.
    pub fn new(basis: DMatrix<T>, activations: DMatrix<T>) -> Result<Self, FitError> {
        let specs = specs((basis.nrows(), activations.ncols()), basis.ncols());
        Ok(Self(Parameters::new(&specs, vec![basis, activations])?))
    }

    /// The basis, `W`: an `F x K` matrix of any sign. `W` and `H` together have the units of the data.
    pub fn basis(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// The activations, `H`: a `K x N` matrix, `>= 0`. `W` and `H` together have the units of the data.
    pub fn activations(&self) -> &DMatrix<T> {
        self.0.at(1)
    }

    /// Finds the activations of new columns under the basis, from equal values. An activation that vanishes on the way stays 0, even where it would
    /// make the error smaller; there is no bound on what the objective can gain.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for another mode than the columns, [`FitError::DataShape`], [`FitError::Entry`] for a hidden cell, and those of a run.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::Transform;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::DingState;
    /// let learnt = DingState::new(dmatrix![2.0; -1.0], dmatrix![1.0])?;
    /// let new = DenseTensor::new(vec![2, 2], vec![6.0, 1.0, -3.0, -0.5], Order::RowMajor)?;
    /// let explained = learnt.transform(&new, &Transform::default())?;
    /// assert!((explained.fit.state().activations() - dmatrix![3.0, 0.5]).amax() < 1e-5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        along_columns(how)?;
        let learnt = Factor::Columns(self.basis());
        check_shape(data.shape(), &[Some(learnt), None])?;
        let data = Scaled::new(data)?;
        let (k, n) = (self.components(), data.values.ncols());
        let columns = data.values.column_iter().enumerate();
        let empty = columns.filter(|(_, v)| v.iter().all(|&x| x == T::zero()));
        let empty = empty.map(|(j, _)| j).collect();
        let mut specs = specs(data.values.shape(), k);
        specs[0].frozen = Frozen::Whole;
        let steps = DingSteps::new(data, specs)?;
        // A column of the size of the data's.
        let each = T::lit(steps.level(self.basis()) / (n as f64).sqrt());
        let each = match each > T::zero() && each.is_finite() {
            true => each,
            false => T::one(),
        };
        let activations = DMatrix::from_element(k, n, each);
        let start = vec![self.basis().clone(), activations];
        explained(steps, start, how, empty, 0.0)
    }
}

impl<T: Real> Reconstruct for DingState<T> {
    fn shape(&self) -> Vec<usize> {
        vec![self.basis().nrows(), self.activations().ncols()]
    }

    fn components(&self) -> usize {
        self.basis().ncols()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        let (w, h) = (
            self.basis().row(index[0]),
            self.activations().column(index[1]),
        );
        let terms = w.iter().zip(h.iter());
        terms.map(|(w, h)| w.to_f64() * h.to_f64()).sum()
    }

    fn cells(&self, component: Option<usize>) -> Result<DenseTensor<T>, FitError> {
        self.check_component(component)?;
        product(self.basis(), self.activations(), component)
    }
}

impl<T: Real> State for DingState<T> {
    type Scalar = T;
    const NAME: &'static str = "snmf-ding";
    const BLOCKS: Blocks = &[
        ("basis", Axes::factor(0)),
        ("activations", Axes::coefficients(1)),
    ];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let parameters = parameters.without_mass();
        let ((rows, k), (_, columns)) = (parameters.shape(0), parameters.shape(1));
        parameters.check(&specs((rows, columns), k))?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
