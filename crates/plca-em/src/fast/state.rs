//! Where a run of the solver stands.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;

use super::Product;

/// A model, and what the next iteration needs besides: the factors in the solver's scale, those that extrapolation leads to, and how
/// far it goes. After a run also what its closing step of EM made of the model, which the next iteration forgets.
///
/// ```
/// use plca_em::{before::{Nmf, NmfState}, Algorithm, Fast, FastState, NmfInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let nmf = Nmf::builder(2).build()?;
/// let fast = Fast::new(nmf.on(&v)?)?;
/// let start = nmf.init(&v, &NmfInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// let mut state = FastState::new(start);
/// fast.step(&mut state, false)?;
/// // Saved and read again, it goes on with the same bits.
/// let saved = serde_json::to_string(&state)?;
/// let mut read: FastState<f64, NmfState<f64>> = serde_json::from_str(&saved)?;
/// fast.step(&mut state, false)?;
/// fast.step(&mut read, false)?;
/// assert_eq!(read.model(), state.model());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize, S: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>, S: serde::Deserialize<'de>"
    ))
)]
pub struct FastState<T: Real, S> {
    pub(super) model: S,
    /// `None` before the first iteration.
    pub(super) place: Option<Place<T>>,
    /// The model after the last step of a run, of EM, if that made it better.
    pub(super) end: Option<S>,
}

/// All but the model.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
pub(super) struct Place<T: Real> {
    /// The model as a product.
    pub(super) kept: Product<T>,
    /// Where the next iteration begins.
    pub(super) ahead: Product<T>,
    /// The objective of the model, and the best so far.
    pub(super) value: f64,
    pub(super) best: f64,
    /// How far factors are carried on, 0 until that begins, and its bound.
    pub(super) beta: f64,
    pub(super) beta_max: f64,
    /// Iterations done.
    pub(super) steps: usize,
}

impl<T: Real, S> FastState<T, S> {
    /// The start of a run.
    pub fn new(model: S) -> Self {
        Self {
            model,
            place: None,
            end: None,
        }
    }

    /// The parameters, an exact model; after a run, those after its closing step.
    pub fn model(&self) -> &S {
        self.end.as_ref().unwrap_or(&self.model)
    }

    /// The parameters after the closing step of a run, if one ended and that made them better.
    pub fn end(&self) -> Option<&S> {
        self.end.as_ref()
    }

    /// The parameters alone.
    pub fn into_model(self) -> S {
        self.end.unwrap_or(self.model)
    }

    /// What a checkpoint keeps: the model that the next iteration begins with, and matrices and numbers besides, none before the first.
    ///
    /// ```
    /// use plca_em::{before::Nmf, Algorithm, Fast, FastState, NmfInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let nmf = Nmf::builder(2).build()?;
    /// let mut state = FastState::new(nmf.init(&v, &NmfInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?);
    /// Fast::new(nmf.on(&v)?)?.step(&mut state, false)?;
    /// let (model, blocks, numbers) = state.to_parts();
    /// assert_eq!(FastState::from_parts(model.clone(), blocks, &numbers).as_ref(), Some(&state));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_parts(&self) -> (&S, Vec<DMatrix<T>>, Vec<f64>) {
        let Some(place) = &self.place else {
            return (&self.model, Vec::new(), Vec::new());
        };
        let blocks = [&place.kept, &place.ahead].map(|p| &p.factors);
        let numbers = [
            place.value,
            place.best,
            place.beta,
            place.beta_max,
            place.steps as f64,
        ];
        let scales = [&place.kept, &place.ahead].map(|p| p.scale.iter().copied());
        let numbers = numbers.into_iter().chain(scales.into_iter().flatten());
        let blocks = blocks.into_iter().flatten();
        let blocks = blocks.map(|block| DMatrix::clone(block)).collect();
        (&self.model, blocks, numbers.collect())
    }

    /// The state that [`to_parts`](Self::to_parts) took apart, without what a closing step made of it; `None` if these are not its parts.
    pub fn from_parts(model: S, mut blocks: Vec<DMatrix<T>>, numbers: &[f64]) -> Option<Self> {
        if blocks.is_empty() && numbers.is_empty() {
            return Some(Self::new(model));
        }
        let (&[value, best, beta, beta_max, steps], scales) = numbers.split_first_chunk()?;
        let (kept, ahead) = scales.split_at(scales.len() / 2);
        let later = blocks.split_off(blocks.len() / 2);
        let shapes = |blocks: &[DMatrix<T>]| blocks.iter().map(|b| b.shape()).collect::<Vec<_>>();
        let fits = shapes(&blocks) == shapes(&later)
            && blocks.iter().all(|b| b.nrows() == kept.len())
            && kept.len() == ahead.len();
        let product = |factors: Vec<DMatrix<T>>, scale: &[f64]| Product {
            factors: factors.into_iter().map(Arc::new).collect(),
            scale: scale.to_vec(),
        };
        fits.then(|| Self {
            model,
            place: Some(Place {
                kept: product(blocks, kept),
                ahead: product(later, ahead),
                value,
                best,
                beta,
                beta_max,
                steps: steps as usize,
            }),
            end: None,
        })
    }
}
