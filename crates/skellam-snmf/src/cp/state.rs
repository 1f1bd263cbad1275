//! Fitted parameters.

use nalgebra::{DMatrix, DVector};
use plca_fit::{
    FitError, Parameters, Reconstruct, State,
    blocks::{Axes, Blocks, no_mode},
};
use plca_tensor::{DenseTensor, Order, Real};

use super::counts::{SIGNED_MODE, modes};
use super::others::Others;
use super::slabs::width;
use super::specs;
use super::unfold::Folding;
use crate::check::check_shapes;
use crate::sides::{sides, stack, views};
use crate::signed::rows_of;

/// The fitted parameters of [`SignedCp`](super::SignedCp): signed atoms of one mode, weights, and a factor for every other mode.
///
/// ```math
/// E[V[f,i,j,\dots]] = \sum_k w_k \left( T^+[f,k] - T^-[f,k] \right) B[i,k] \, C[j,k] \cdots
/// ```
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix, dvector};
/// use skellam_snmf::{Reconstruct, SignedCpState};
/// let sides = (dmatrix![0.5; 0.0], dmatrix![0.0; 0.5]);
/// let factors = vec![dmatrix![0.25; 0.75], dmatrix![0.5; 0.5]];
/// let state = SignedCpState::new(&sides.0, &sides.1, &dvector![8.0], factors, 1)?;
/// assert_eq!((state.shape(), state.factor(2)), (vec![2, 2, 2], &dmatrix![0.5; 0.5]));
/// assert_eq!(state.cell(&[1, 1, 0]), -1.5);                           // -8 · 0.75 · 0.5 · 0.5
/// # Ok::<(), skellam_snmf::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SignedCpState<T: Real> {
    parameters: Parameters<T>,
    folding: Folding,
    scale: Option<usize>,
}

plca_fit::serialised!(SignedCpState);
sides!(SignedCpState);

impl<T: Real> SignedCpState<T> {
    /// The state of `T⁺` and `T⁻`, both `F x K`, weights `w`, one factor for every other mode, its size `x K`, and the signed mode, counted from 0.
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::Conflict`] without another mode, [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`].
    pub fn new(
        plus: &DMatrix<T>,
        minus: &DMatrix<T>,
        weights: &DVector<T>,
        factors: Vec<DMatrix<T>>,
        signed_mode: usize,
    ) -> Result<Self, FitError> {
        check_shapes([("minus", minus.shape(), plus.shape())])?;
        let folding = folding(plus.nrows(), &factors, signed_mode)?;
        let weights = DMatrix::from_column_slice(weights.len(), 1, weights.as_slice());
        let mut blocks = vec![stack(plus, minus), weights];
        blocks.extend(factors);
        let parameters = Parameters::new(&specs(&folding, plus.ncols(), None), blocks)?;
        let parameters = parameters.with_fact(SIGNED_MODE, vec![signed_mode as f64]);
        Ok(Self {
            parameters,
            folding,
            scale: None,
        })
    }

    /// The mode whose factor carries the scale, counted from 0; `None` where weights do.
    pub fn scale_mode(&self) -> Option<usize> {
        self.scale
    }

    /// The mode that is signed, counted from 0.
    pub fn signed_mode(&self) -> usize {
        self.folding.mode()
    }

    /// Both sides of the signed mode, `T⁺` above `T⁻`: a `2F x K` matrix, `>= 0`, every column of which sums to 1.
    pub fn atoms(&self) -> &DMatrix<T> {
        self.parameters.at(0)
    }

    /// The weights of the components, `w`: `K` numbers `>= 0`, in the units of the data.
    pub fn weights(&self) -> &[T] {
        match self.scale {
            None => self.parameters.at(1).as_slice(),
            Some(_) => &[],
        }
    }

    /// The factor of a mode, counted from 0, which is not the signed one: a matrix of its size `x K`, `>= 0`, every column of which sums to
    /// 1.
    ///
    /// # Panics
    ///
    /// If there is no such mode, or if it is the signed one.
    pub fn factor(&self, mode: usize) -> &DMatrix<T> {
        let place = self.folding.others().position(|(j, _)| j == mode);
        match place {
            Some(place) => &self.factors()[place],
            None if mode == self.signed_mode() => {
                panic!("mode {mode} is the signed one: its factor is `atoms`")
            }
            None => no_mode(mode, self.factors().len() + 1),
        }
    }

    /// The factors of all modes but the signed one, in their order, each its size `x K` with columns that sum to 1.
    pub fn factors(&self) -> &[DMatrix<T>] {
        let first = if self.scale.is_none() { 2 } else { 1 };
        &self.parameters.matrices()[first..]
    }
}

/// The folding of data that factors of these sizes belong to.
fn folding<T: Real>(rows: usize, factors: &[DMatrix<T>], mode: usize) -> Result<Folding, FitError> {
    let mut shape: Vec<usize> = factors.iter().map(|f| f.nrows()).collect();
    shape.insert(mode.min(shape.len()), rows);
    Folding::new(shape, mode)
}

impl<T: Real> Reconstruct for SignedCpState<T> {
    fn shape(&self) -> Vec<usize> {
        self.folding.shape().to_vec()
    }

    fn components(&self) -> usize {
        self.atoms().ncols()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        let row = index[self.folding.mode()];
        let [plus, minus] = views(self.atoms()).map(|side| side.row(row).into_owned());
        let term = |z: usize| {
            let weight = self.weights().get(z).map_or(1.0, |w| w.to_f64());
            let own = (plus[z] - minus[z]).to_f64() * weight;
            let others = self.folding.others().zip(self.factors());
            others.fold(own, |x, ((j, _), f)| x * f[(index[j], z)].to_f64())
        };
        (0..self.components()).map(term).sum()
    }

    fn cells(&self, component: Option<usize>) -> Result<DenseTensor<T>, FitError> {
        self.check_component(component)?;
        let others = Others::new(self.parameters.matrices(), self.scale);
        let atoms = self.signed_atoms();
        let [width, columns] = width(&self.folding, 0, self.components())?;
        let mut matrix = vec![T::zero(); self.folding.rows() * columns];
        for first in (0..columns).step_by(width) {
            let n = width.min(columns - first);
            let rows = rows_of(&atoms, &others.columns(first, n), component);
            for (to, row) in matrix.chunks_mut(columns).zip(rows.chunks(n)) {
                to[first..][..n].copy_from_slice(row);
            }
        }
        let values = self.folding.folded(matrix);
        Ok(DenseTensor::new(self.shape(), values, Order::RowMajor)?)
    }
}

impl<T: Real> State for SignedCpState<T> {
    type Scalar = T;
    const NAME: &'static str = "skellam-cp";
    const BLOCKS: Blocks = &[
        ("atoms", Axes::sides(0)),
        ("weights", Axes::WEIGHTS),
        ("factor_*", Axes::factor(0)),
    ];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let parameters = parameters.without_mass();
        let (mode, scale) = modes(&parameters)?;
        let matrices = parameters.matrices();
        let (rows, k) = matrices.first().map_or((0, 0), |atoms| atoms.shape());
        let first = if scale.is_none() { 2 } else { 1 };
        let factors = matrices.get(first..).unwrap_or_default();
        let folding = folding(rows / 2, factors, mode)?;
        folding.check_scale(scale)?;
        parameters.check(&specs(&folding, k, scale))?;
        Ok(Self {
            parameters,
            folding,
            scale,
        })
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.parameters
    }
}
