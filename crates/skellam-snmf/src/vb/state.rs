//! Fitted posteriors.

use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters, Reconstruct, State,
    blocks::{Axes, Blocks},
};
use plca_tensor::{DenseTensor, Real};

use super::{NAMES, specs};
use crate::Posterior;
use crate::SnmfState;
use crate::check::check_shapes;
use crate::sides::{split, views};
use crate::signed::{cell, product};

/// A fitted posterior of [`SnmfVb`](super::SnmfVb): a distribution of the atoms and one of the activations.
///
/// ```math
/// q(T[\cdot,k,\pm]) = \mathrm{Dirichlet}(\hat\alpha), \qquad q(H[k,n]) = \mathrm{Gamma}(\hat s, \text{rate } \hat b)
/// ```
///
/// What it says of data are its means.
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::{Posterior, Reconstruct, SnmfVbState};
/// let q = Posterior { plus: dmatrix![3.0], minus: dmatrix![1.0], shape: dmatrix![6.0], rate: dmatrix![2.0] };
/// let state = SnmfVbState::new(q.clone())?;
/// assert_eq!(state.cell(&[0, 0]), 1.5);                               // (3/4 - 1/4) 6/2
/// assert_eq!(state.posterior(), q);
/// # Ok::<(), skellam_snmf::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SnmfVbState<T: Real>(Parameters<T>);

plca_fit::serialised!(SnmfVbState);

/// The posterior that parameters stand for.
pub(super) fn posterior<T: Real>(at: &Parameters<T>) -> Posterior<T> {
    let [plus, minus] = split(at.at(0));
    Posterior {
        plus,
        minus,
        shape: at.at(1).clone(),
        rate: at.at(2).clone(),
    }
}

impl<T: Real> SnmfVbState<T> {
    /// The state of a posterior.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Range`] for a value that is not positive and finite.
    pub fn new(q: Posterior<T>) -> Result<Self, FitError> {
        check_shapes([("minus", q.minus.shape(), q.plus.shape())])?;
        let specs = specs((q.plus.nrows(), q.shape.ncols()), q.plus.ncols());
        let blocks = super::counts::blocks(q);
        Ok(Self(Parameters::new(&specs, blocks)?))
    }

    /// The Dirichlet shapes `α̂` of both sides of the atoms, those of `T⁺` above those of `T⁻`: a `2F x K` matrix of positive numbers
    /// without unit.
    pub fn atoms_shape(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// The gamma shapes `ŝ` of the activations: a `K x N` matrix of positive numbers without unit.
    pub fn activations_shape(&self) -> &DMatrix<T> {
        self.0.at(1)
    }

    /// The gamma rates `b̂` of the activations: a `K x N` matrix of positive numbers, in 1 over the units of the data.
    pub fn activations_rate(&self) -> &DMatrix<T> {
        self.0.at(2)
    }

    /// A copy as a posterior: what hyperparameters are learnt from.
    ///
    /// ```
    /// use skellam_snmf::Model;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Hyperparameters, Learner, Rate, Sharing, SnmfVb};
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![1.0], rate: vec![0.1] };
    /// let mut learner = Learner::new(Sharing::all(2, 1), start, Rate::Average)?;
    /// let mut rng = skellam_snmf::seed(0);
    /// for values in [vec![9.0, 20.0, -4.0, -9.0], vec![6.0, 8.0, -5.0, -2.0]] {
    ///     let data = DenseTensor::<f64>::new(vec![2, 2], values, Order::RowMajor)?;
    ///     let fit = SnmfVb::new(1).priors(learner.prior()?).fit(&data, &mut rng)?;
    ///     learner.learn(&fit.state().posterior())?;
    /// }
    /// assert_eq!(learner.seen(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn posterior(&self) -> Posterior<T> {
        posterior(&self.0)
    }

    /// The posterior means of atoms and activations. `[SKELLAM 6]`
    ///
    /// ```math
    /// E[T] = \frac{\hat\alpha}{\sum \hat\alpha}, \qquad E[H] = \frac{\hat s}{\hat b}
    /// ```
    ///
    /// The sum runs over both sides of an atom.
    ///
    /// # Errors
    ///
    /// [`FitError::Value`] for a mean beyond the scalar.
    pub fn means(&self) -> Result<SnmfState<T>, FitError> {
        let means = self.posterior().means();
        SnmfState::new(&means.plus, &means.minus, means.activations)
    }
}

impl<T: Real> Reconstruct for SnmfVbState<T> {
    fn shape(&self) -> Vec<usize> {
        vec![
            self.atoms_shape().nrows() / 2,
            self.activations_shape().ncols(),
        ]
    }

    fn components(&self) -> usize {
        self.atoms_shape().ncols()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        let (row, column) = (index[0], index[1]);
        let mut sides = views(self.atoms_shape()).map(|side| side.row(row).into_owned());
        for (z, total) in self.posterior().totals().into_iter().enumerate() {
            sides.iter_mut().for_each(|side| side[z] /= T::lit(total));
        }
        let (shape, rate) = (self.activations_shape(), self.activations_rate());
        let means = shape.column(column).component_div(&rate.column(column));
        cell(sides, means.as_view())
    }

    fn cells(&self, component: Option<usize>) -> Result<DenseTensor<T>, FitError> {
        self.check_component(component)?;
        let means = self.posterior().means();
        product(&means.signed_atoms(), &means.activations, component)
    }
}

impl<T: Real> State for SnmfVbState<T> {
    type Scalar = T;
    const NAME: &'static str = "skellam-vb";
    const BLOCKS: Blocks = &[
        (NAMES[0], Axes::sides(0)),
        (NAMES[1], Axes::coefficients(1)),
        (NAMES[2], Axes::coefficients(1)),
    ];

    fn derived(at: &Parameters<f64>) -> Vec<(Cow<'static, str>, DMatrix<f64>)> {
        let means = SnmfVbState::wrap(at.clone()).and_then(|state| state.means());
        let blocks = means.map(|means| {
            let [atoms, activations] = [means.atoms(), means.activations()].map(DMatrix::clone);
            vec![("atoms".into(), atoms), ("activations".into(), activations)]
        });
        blocks.unwrap_or_default()
    }

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let parameters = parameters.without_mass();
        let ((rows, k), (_, columns)) = (parameters.shape(0), parameters.shape(1));
        parameters.check(&specs((rows / 2, columns), k))?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
