//! PLCA, PLSA, KL-NMF, shift- and transformation-invariant PLCA by expectation-maximisation.
//!
//! | model | type | parameters |
//! |---|---|---|
//! | symmetric PLCA of any order | [`Plca`] | `P(z)`, `P(x_j given z)` |
//! | PLSA, either direction | [`Plsa`] | `P(x given z)`, `P(z given y)` |
//! | shift-invariant PLCA of any order | [`Shifted`] | `P(z)`, kernels, impulses |
//! | PLCA invariant to a set of transformations | [`Transformed`] | `P(z)`, kernels, weights of the maps |
//! | PLCA and PLSA by variational Bayes | [`PlcaVb`], [`PlsaVb`] | Dirichlet posteriors of them |
//! | KL-NMF, simultaneous (EM) or sequential | [`Nmf`] | `W`, `H` |
//!
//! All models take dense, sparse and masked data in `f32` or `f64` through [`plca_tensor::Data`], and all use
//! the engine of [`plca_fit`]. Results are bit-identical for any number of threads.
//!
//! What signatures use is here too: [`tensor`] for data, [`priors`], [`nalgebra`] and [`seed`] for random numbers.
//!
//! ```
//! use plca_em::priors::Dirichlet;
//! use plca_em::tensor::{DenseTensor, Order};
//! use plca_em::{Model, Plca, seed};
//!
//! // Two blocks: two components explain them exactly.
//! let v = DenseTensor::new(vec![4, 4], vec![
//!     4.0, 4.0, 0.0, 0.0,
//!     4.0, 4.0, 0.0, 0.0,
//!     0.0, 0.0, 1.0, 1.0,
//!     0.0, 0.0, 1.0, 1.0,
//! ], Order::RowMajor)?;
//! let plca = Plca::new(2).prior("factor_1", Dirichlet::symmetric(1.5)?);
//! let fit = plca.fit(&v, &mut seed(1))?;
//! let mut weights = fit.state().weights().to_vec();
//! weights.sort_by(f64::total_cmp);
//! assert!((weights[0] - 0.2).abs() < 1e-6 && (weights[1] - 0.8).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Solvers
//!
//! By default a run uses coordinate descent if the model separates into rows, and plain iterations otherwise. Set another solver, stop rule or
//! start before the run:
//!
//! ```
//! use plca_em::{Init, Model, Plca, Solver, Stop};
//! use plca_em::tensor::{DenseTensor, Order};
//!
//! let v = DenseTensor::new(vec![3, 3], vec![5.0, 1.0, 2.0, 1.0, 4.0, 3.0, 2.0, 2.0, 9.0], Order::RowMajor)?;
//! let plca = Plca::new(2);
//! let fit = |solver| {
//!     let run = plca.on(&v)?.solver(solver).stop(Stop::default().tol(1e-10));
//!     run.run(Init::default(), &mut plca_em::seed(1))
//! };
//! assert!(fit(Solver::Squarem)?.iterations() < fit(Solver::Em)?.iterations());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When not to use this crate
//!
//! For squared error or Gaussian noise; for signed data; when a point estimate of the factors is not what you want.

mod bayes;
mod blocks;
mod counted;
mod error;
mod expectation;
mod explained;
mod held_out;
mod interpolated;
mod nmf;
mod online;
mod order;
mod placed;
mod plca;
mod plsa;
mod posterior;
mod product;
mod select;
mod sequential;
mod shifted;
mod transformed;
mod validation;

pub use nalgebra;
pub use plca_priors as priors;
pub use plca_tensor as tensor;

pub use bayes::{PlcaVb, PlcaVbState, PlsaVb, PlsaVbState};
pub use counted::{NotCounts, not_counts, shares};
pub use error::EmError;
pub use held_out::{HeldCells, HeldOut, hold_out, hold_out_cells, perplexity};
pub use interpolated::{Judged, held_out_divergence, held_out_perplexity};
pub use nmf::{Nmf, NmfState, Update};
#[doc(hidden)]
pub use online::{After, BatchStep, Explanation};
pub use online::{Batch, Local, Online, OnlineState, Pass, StepSize, StreamError, Streamed};
pub use order::{ModelOrder, effective_parameters, nominal_parameters, shifted_parameters};
pub use plca::{Missing, Plca, PlcaState};
pub use plca_fit::{
    Algorithm, Anneal, AnyModel, Checkpoint, Cooling, Event, Explained, Factored, Fit, FitError,
    Impossible, Init, Interrupt, Iteration, Model, Need, Observer, Parameters, Reconstruct, Run,
    Sense, Settings, Solver, Start, State, Status, Stop, StopError, TracePoint, Transform, seed,
};
pub use plca_priors::{Entries, PriorError, SimplexPrior};
pub use plsa::{Given, Plsa, PlsaState};
pub use posterior::{posterior, sample_counts};
pub use select::{Criterion, Selection};
#[doc(hidden)]
pub use shifted::{ANNEAL, IMPULSE_POWER, KERNEL_EXTENTS, LIKELIHOOD};
pub use shifted::{Evaluation, Geometry, Likelihood, Shifted, ShiftedState, Support};
pub use transformed::{
    IndexMaps, MapEntry, Positions, Transformation, Transformed, TransformedState,
};

pub use validation::{
    CrossValidation, FitFold, Folds, OfFold, RankRow, RankRule, RankScores, RankTable, Speckled,
    best_rank,
};

/// A shared prior of distributions.
pub type Prior<T> = std::sync::Arc<dyn SimplexPrior<T>>;

plca_fit::share!(Nmf, Plca, PlcaVb, Plsa, PlsaVb, Shifted, Transformed);
