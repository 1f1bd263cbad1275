//! Fitted parameters, and what they say of data.

use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_fit::{
    Explained, FitError, Model, Parameters, Reconstruct, SCALE, State, Transform, begin, certify,
    dense, empty, gaps, one_component, possible,
};
use plca_tensor::{Cp, Data, DenseTensor, Factor, Real};

use super::{Plsa, specs, with_model};
use crate::Given;
use crate::product::check_components;

/// The fitted parameters of [`Plsa`]: a distribution over the explained index for every given one.
///
/// ```math
/// P(x \mid y) = \sum_z P(x \mid z) \, P(z \mid y)
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PlsaState<T: Real>(Parameters<T>);

plca_fit::serialised!(PlsaState);

impl<T: Real> PlsaState<T> {
    /// The state of a basis `P(x | z)`, `I x K`, mixtures `P(z | y)`, `K x J`, and the shares `P(y)` of the data.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`], [`FitError::Setting`] without components.
    pub fn new(
        given: Given,
        basis: DMatrix<T>,
        mixture: DMatrix<T>,
        marginal: Vec<T>,
    ) -> Result<Self, FitError> {
        check_components(basis.ncols())?;
        let specs = specs([basis.nrows(), mixture.ncols()], basis.ncols());
        let marginal = DMatrix::from_vec(marginal.len(), 1, marginal);
        let parameters = Parameters::new(&specs, vec![basis, mixture, marginal])?;
        let given = vec![given.mode() as f64];
        Ok(Self(parameters.with_fact("given", given)))
    }

    /// The mode that is given.
    pub fn given(&self) -> Given {
        match self.0.fact("given") {
            Some([0.0]) => Given::Rows,
            _ => Given::Columns,
        }
    }

    /// The distributions of the components, `P(x | z)`: an `I x K` matrix of probabilities, every column of which sums to 1.
    pub fn basis(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// The mixture of every given index, `P(z | y)`: a `K x J` matrix of probabilities, every column of which sums to 1.
    pub fn mixture(&self) -> &DMatrix<T> {
        self.0.at(1)
    }

    /// The share of every given index in the sum of the data, `P(y)`: `J` probabilities that sum to 1.
    pub fn marginal(&self) -> &[T] {
        self.0.at(2).as_slice()
    }

    /// Explains new observations by the learnt basis.
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`], [`FitError::Impossible`], [`FitError::Conflict`] for another mode than the given one, and those of a run.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        let (given, k) = (self.given(), self.basis().ncols());
        let along = given.mode();
        if how.along.is_some_and(|mode| mode != along) {
            return Err(FitError::Conflict {
                what: format!("the observations of this PLSA lie along mode {along}"),
            });
        }
        let mut learnt = [None, None];
        learnt[given.explained()] = Some(Factor::Columns(self.basis()));
        let (part, dropped) = possible(data, &learnt, how.impossible)?;
        let data = part.as_ref().map_or(data, |part| part);
        let config = Plsa::builder(k).given(given).freeze("basis").build()?;
        let algorithm = config.bind(data)?;
        let specs = algorithm.blocks();
        let [mixture, marginal] = [specs[1].even(), specs[2].even()];
        let totals = data.marginal(along)?;
        let start = begin(&*algorithm, vec![self.basis().clone(), mixture, marginal])?;
        let gap = |at: &Parameters<T>| gaps(data, [at.at(0), at.at(1)], along, &totals);
        let (fit, gap) = certify::<Self>(algorithm, start, how, gap)?;
        let keep = |j: usize, block: &mut DMatrix<T>| {
            if j == 0 {
                block.copy_from(self.basis());
            }
        };
        Ok(Explained {
            fit: fit.change(|at| at.change(keep))?,
            gap,
            dropped,
            empty: empty(data, along)?,
        })
    }

    /// Calls `f` with `P(x | y)` as a model for the kernels.
    pub fn with_model<O>(&self, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        with_model(self.given(), self.basis(), self.mixture(), f)
    }
}

impl<T: Real> PlsaState<T> {
    /// What the distribution of a given index is multiplied by to approximate the data: their sum, more where cells were hidden.
    fn scale(&self, y: usize) -> f64 {
        match self.0.fact(SCALE) {
            Some(scales) if scales.len() == self.marginal().len() => scales[y],
            _ => self.0.mass() * self.marginal()[y].to_f64(),
        }
    }

    /// Calls `f` with the approximation of the data as a model for the kernels.
    pub fn with_scaled<O>(&self, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        let mut scaled = self.mixture().clone();
        for (y, mut column) in scaled.column_iter_mut().enumerate() {
            column *= T::lit(self.scale(y));
        }
        with_model(self.given(), self.basis(), &scaled, f)
    }
}

impl<T: Real> Reconstruct for PlsaState<T> {
    fn shape(&self) -> Vec<usize> {
        let mut shape = vec![self.basis().nrows(), self.mixture().ncols()];
        if self.given() == Given::Rows {
            shape.reverse();
        }
        shape
    }

    fn components(&self) -> usize {
        self.basis().ncols()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        self.scale(index[self.given().mode()]) * self.with_model(|cp| cp.cell(index))
    }

    fn reconstruct(&self) -> Result<DenseTensor<T>, FitError> {
        self.with_scaled(|cp| dense(cp, 1.0))
    }

    fn component(&self, z: usize) -> Result<DenseTensor<T>, FitError> {
        self.with_scaled(|cp| one_component(cp, z, 1.0))
    }
}

impl<T: Real> State for PlsaState<T> {
    type Scalar = T;
    const NAME: &'static str = "plsa";

    fn block_names(_: usize) -> Vec<Cow<'static, str>> {
        ["basis", "mixture", "marginal"].map(Cow::from).into()
    }

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let shapes: Vec<_> = parameters.blocks().map(|(_, b)| b.shape()).collect();
        let (sizes, k) = match shapes[..] {
            [(explained, k), (_, given), _] => ([explained, given], k),
            _ => ([0, 0], 0),
        };
        parameters.check(&specs(sizes, k))?;
        parameters.check_scale(parameters.at(2).len())?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
