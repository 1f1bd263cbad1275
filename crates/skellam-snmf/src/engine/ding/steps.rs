//! The updates.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::engine::{Algorithm, BlockSpec, FitError, Frozen, Parameters, Sense, Stepped};
use plca_tensor::{CompensatedSum, Real};
use rand::Rng;

use crate::SnmfError;
use crate::ding::{left, multiplied, squared_error};

/// Semi-NMF in squared error on data.
#[derive(Debug)]
pub(super) struct DingSteps<T: Real> {
    pub(super) data: DMatrix<T>,
    specs: Vec<BlockSpec<T>>,
    /// `Σ V²`.
    squares: f64,
}

impl<T: Real> DingSteps<T> {
    pub(super) fn new(data: DMatrix<T>, specs: Vec<BlockSpec<T>>) -> Self {
        let squares = data.iter().map(|v| v.to_f64() * v.to_f64());
        Self {
            squares: squares.collect::<CompensatedSum>().value(),
            data,
            specs,
        }
    }

    fn is_free(&self, block: usize) -> bool {
        self.specs[block].frozen != Frozen::Whole
    }

    /// The best basis for activations.
    fn basis(&self, h: &DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        left(&self.data, h).map_err(|error| {
            let block = match error {
                SnmfError::NotFinite { block: "h" } => "activations",
                _ => "basis",
            };
            FitError::NotFinite {
                what: format!("`{block}`"),
                value: f64::NAN,
            }
        })
    }
}

impl<T: Real> Algorithm<T> for DingSteps<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        let value = match measure {
            true => Some(self.objective(at)?),
            false => None,
        };
        let (mut w, mut h) = (at.at(0).clone(), at.at(1).clone());
        if self.is_free(1) {
            h = multiplied(&self.data, &w, &h);
            self.specs[1].keep_frozen(at.at(1), &mut h);
        }
        if self.is_free(0) {
            w = self.basis(&h)?;
        }
        if let Some(bad) = h.iter().find(|x| !x.is_finite()) {
            return Err(FitError::NotFinite {
                what: "`activations`".into(),
                value: bad.to_f64(),
            });
        }
        at.change(|j, block| block.copy_from(if j == 0 { &w } else { &h }));
        at.count();
        Ok(Stepped {
            value,
            restored: Vec::new(),
        })
    }

    /// `‖V - W H‖²`.
    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Ok(squared_error(&self.data, at.at(0), at.at(1)))
    }

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    /// `Σ V²`.
    fn unit(&self) -> f64 {
        self.squares
    }

    /// No step from any basis makes the error larger.
    fn extrapolates(&self, _: &Parameters<T>) -> Result<(), FitError> {
        Ok(())
    }

    /// The basis is left to [`complete`](Self::complete).
    fn draw(&self, rng: &mut dyn Rng) -> Result<Vec<DMatrix<T>>, FitError> {
        let [basis, activations] = [self.specs[0].shape, self.specs[1].shape];
        let draw = |_, _| T::lit(random::uniform(rng));
        Ok(vec![
            DMatrix::zeros(basis.0, basis.1),
            DMatrix::from_fn(activations.0, activations.1, draw),
        ])
    }

    fn complete(&self, blocks: &mut [DMatrix<T>], given: &[bool]) -> Result<(), FitError> {
        if !given[0] {
            blocks[0] = self.basis(&blocks[1])?;
        }
        Ok(())
    }
}
