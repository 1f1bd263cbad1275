//! Fitted parameters, and what they say of data.

use nalgebra::DMatrix;
use plca_fit::{
    Explained, Factored, FitError, Model, Parameters, State, Transform,
    blocks::{Axes, Blocks, SCALE},
    explain::{Alone, Outcome, each, empty, gaps, one_by_one, possible},
};
use plca_tensor::{Data, Factor, Real};

use super::counts::mix;
use super::{Plsa, factors, specs};
use crate::Given;
use crate::explained::{explained, written};
use crate::product::conflict;

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
        FitError::if_zero("components", basis.ncols())?;
        let specs = specs(given, [basis.nrows(), mixture.ncols()], basis.ncols());
        let marginal = DMatrix::from_vec(marginal.len(), 1, marginal);
        let parameters = Parameters::new(&specs, vec![basis, mixture, marginal])?;
        let given = vec![given.mode() as f64];
        Ok(Self(parameters.with_fact("given", given)))
    }

    /// The mode that is given.
    pub fn given(&self) -> Given {
        given(&self.0)
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

    /// Finds the mixtures of new observations under the learnt basis. Each is explained alone, until its own gap is small enough: its mixture is bit-identical in any
    /// batch, in any storage and for any number of threads.
    ///
    /// The likelihood alone counts: a prior on `mixture` is not in the state. To keep it, fit the new data with
    /// `.prior("mixture", …).freeze("basis")` from `Init::default().block("basis", …)`.
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
            return conflict(format!(
                "the observations of this PLSA lie along mode {along}"
            ));
        }
        let mut factors = [None, None];
        factors[given.explained()] = Some(Factor::Columns(self.basis()));
        let (part, dropped) = possible(data, &factors, how.impossible)?;
        let data = part.as_ref().map_or(data, |part| part);
        let config = Plsa::new(k).given(given).freeze("basis");
        let learnt = |j: usize| (j == 0).then(|| self.basis());
        let algorithm = config.bind(data)?;
        let empty = empty(data, along)?;
        if data.is_complete()
            && let Some(solved) = one_by_one(data, &factors, along, how)?
        {
            let write = |j: usize, block: &mut DMatrix<T>| {
                if j == 1 {
                    mix(&solved.factor, &vec![1.0; k], None, block);
                }
            };
            return Ok(Explained::new(
                written(&*algorithm, learnt, &solved.ended, write)?,
                solved.gap,
                dropped,
                empty,
            ));
        }
        let found = each(data, along, how, |_, observation, how| {
            match observation.total() > 0.0 {
                true => {
                    let found = self.alone(&config, observation, &factors, how)?;
                    let own =
                        |state: &Self| (state.mixture().column(0).into_owned(), state.scale(0));
                    Ok(Some(Alone::of(&found, own)))
                }
                false => Ok(None),
            }
        })?;
        let write = |j: usize, block: &mut DMatrix<T>| {
            for (y, one) in found.iter().enumerate().filter(|_| j == 1) {
                if let Some(one) = one {
                    block.set_column(y, &one.own.0);
                }
            }
        };
        let ended = Outcome::of(found.iter().flatten());
        let fit = written(&*algorithm, learnt, &ended, write)?;
        // What an observation is multiplied by where cells are hidden is its own, too.
        let scales = found
            .iter()
            .map(|one| one.as_ref().map_or(0.0, |one| one.own.1));
        let scales = scales.collect();
        let of_each = |at: &mut Parameters<T>| {
            if at.fact(SCALE).is_some() {
                *at = at.clone().with_fact(SCALE, scales);
            }
        };
        let gaps = found.iter().map(|one| one.as_ref().and_then(|one| one.gap));
        Ok(Explained::new(
            fit.change(of_each)?,
            gaps.map(|gap| gap.unwrap_or(0.0)).collect(),
            dropped,
            empty,
        ))
    }

    /// The mixture of one observation.
    fn alone(
        &self,
        config: &Plsa,
        observation: &dyn Data<T>,
        factors: &[Option<Factor<'_, T>>],
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        let along = self.given().mode();
        let learnt = |j: usize| (j == 0).then(|| self.basis());
        let algorithm = config.bind(observation)?;
        if let Some(solved) = one_by_one(observation, factors, along, how)? {
            let write = |j: usize, block: &mut DMatrix<T>| {
                if j == 1 {
                    mix(
                        &solved.factor,
                        &vec![1.0; self.basis().ncols()],
                        None,
                        block,
                    );
                }
            };
            return Ok(Explained::new(
                written(&*algorithm, learnt, &solved.ended, write)?,
                solved.gap,
                0.0,
                Vec::new(),
            ));
        }
        let totals = observation.marginal(along)?;
        let gap = |at: &Parameters<T>| gaps(observation, [at.at(0), at.at(1)], along, &totals);
        explained(algorithm, learnt, how, 0.0, Vec::new(), gap)
    }
}

/// Which mode is given.
fn given<T: Real>(at: &Parameters<T>) -> Given {
    match at.fact("given") {
        Some([0.0]) => Given::Rows,
        _ => Given::Columns,
    }
}

/// The product is `P(x | y)`.
impl<T: Real> Factored for PlsaState<T> {
    fn product(at: &Parameters<T>) -> (Option<&[T]>, Vec<Factor<'_, T>>) {
        (None, factors(given(at), at.at(0), at.at(1)).to_vec())
    }

    fn scaled_mode(&self) -> Option<usize> {
        Some(self.given().mode())
    }

    /// The sum of the data of a given index, more where cells were hidden.
    fn scale(&self, y: usize) -> f64 {
        match self.0.fact(SCALE) {
            Some(scales) if scales.len() == self.marginal().len() => scales[y],
            _ => self.0.mass() * self.marginal()[y].to_f64(),
        }
    }
}

impl<T: Real> State for PlsaState<T> {
    type Scalar = T;
    const NAME: &'static str = "plsa";
    const BLOCKS: Blocks = &[
        ("basis", Axes::factor(0)),
        ("mixture", Axes::coefficients(1)),
        ("marginal", Axes::numbers(1)),
    ];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let ((explained, k), (_, n)) = (parameters.shape(0), parameters.shape(1));
        parameters.check(&specs(given(&parameters), [explained, n], k))?;
        parameters.check_scale(n)?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
