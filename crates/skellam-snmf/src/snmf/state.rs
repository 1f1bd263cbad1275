//! Fitted parameters.

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters, Reconstruct, State,
    blocks::{Axes, Blocks},
};
use plca_tensor::{DenseTensor, Real};

use super::specs;
use crate::Factors;
use crate::check::check_shapes;
use crate::sides::{sides, split, stack, views};
use crate::signed::{cell, product};

/// The fitted parameters of [`Snmf`](super::Snmf): signed atoms and their activations.
///
/// ```math
/// V \sim \mathrm{Sk}(T^+ H, T^- H), \qquad \sum_f (T^+[f,k] + T^-[f,k]) = 1, \qquad E[V] = (T^+ - T^-) H
/// ```
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::{Reconstruct, SnmfState};
/// let state = SnmfState::new(&dmatrix![0.5; 0.0], &dmatrix![0.0; 0.5], dmatrix![4.0, 8.0])?;
/// assert_eq!(state.signed_atoms(), dmatrix![0.5; -0.5]);
/// assert_eq!(state.cell(&[1, 1]), -4.0);
/// assert!(SnmfState::new(&dmatrix![0.5; 0.0], &dmatrix![0.0; 0.4], dmatrix![4.0, 8.0]).is_err());
/// # Ok::<(), skellam_snmf::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SnmfState<T: Real>(Parameters<T>);

plca_fit::serialised!(SnmfState);
sides!(SnmfState);

impl<T: Real> SnmfState<T> {
    /// The state of `T⁺` and `T⁻`, both `F x K`, and `H`, `K x N`.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`] for an atom whose two sides do not sum to 1.
    pub fn new(
        plus: &DMatrix<T>,
        minus: &DMatrix<T>,
        activations: DMatrix<T>,
    ) -> Result<Self, FitError> {
        check_shapes([("minus", minus.shape(), plus.shape())])?;
        let specs = specs((plus.nrows(), activations.ncols()), plus.ncols());
        let blocks = vec![stack(plus, minus), activations];
        Ok(Self(Parameters::new(&specs, blocks)?))
    }

    /// Both sides of the atoms, `T⁺` above `T⁻`: a `2F x K` matrix, `>= 0`, every column of which sums to 1.
    pub fn atoms(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// A copy of the atoms and activations as plain matrices: what hyperparameters are learnt from where factors are known.
    pub fn to_factors(&self) -> Factors<T> {
        let [plus, minus] = split(self.atoms());
        Factors {
            plus,
            minus,
            activations: self.activations().clone(),
        }
    }

    /// The activations, `H`: a `K x N` matrix, `>= 0`, in the units of the data.
    pub fn activations(&self) -> &DMatrix<T> {
        self.0.at(1)
    }
}

/// Its cells are the expected data, `L⁺ - L⁻`. `[SKELLAM eq. 3]`
impl<T: Real> Reconstruct for SnmfState<T> {
    fn shape(&self) -> Vec<usize> {
        vec![self.atoms().nrows() / 2, self.activations().ncols()]
    }

    fn components(&self) -> usize {
        self.atoms().ncols()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        let row = views(self.atoms()).map(|side| side.row(index[0]).into_owned());
        cell(row, self.activations().column(index[1]))
    }

    fn cells(&self, component: Option<usize>) -> Result<DenseTensor<T>, FitError> {
        self.check_component(component)?;
        product(&self.signed_atoms(), self.activations(), component)
    }
}

impl<T: Real> State for SnmfState<T> {
    type Scalar = T;
    const NAME: &'static str = "skellam";
    const BLOCKS: Blocks = &[
        ("atoms", Axes::sides(0)),
        ("activations", Axes::coefficients(1)),
    ];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let parameters = parameters.without_mass();
        let ((rows, k), (_, columns)) = (parameters.shape(0), parameters.shape(1));
        // An odd number of rows has no two sides.
        parameters.check(&specs((rows / 2, columns), k))?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
