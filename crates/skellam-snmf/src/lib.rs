//! Factorization of data of either sign as `V ~ (T⁺ - T⁻) H`, all factors non-negative, under the Skellam distribution.
//!
//! ```math
//! V[f,n] \sim \mathrm{Sk}(L^+[f,n], L^-[f,n]),
//! \qquad L^\pm = T^\pm H,
//! \qquad \sum_f (T^+[f,k] + T^-[f,k]) = 1
//! ```
//!
//! Data of whole numbers are differences of counts ([`Replicates::One`]). For an infinite number of replicates the
//! likelihood tends to a divergence that is defined for real data ([`Replicates::Limit`]); on non-negative data without a
//! negative side that is the Kullback-Leibler divergence of NMF.
//!
//! | method | type | parameters |
//! |---|---|---|
//! | EM: maximum a posteriori | [`Snmf`] | `T⁺`, `T⁻`, `H` |
//! | variational Bayes | [`SnmfVb`] | Dirichlet and gamma posteriors of them |
//! | tensors with a signed mode, EM | [`SignedCp`] | `T⁺`, `T⁻`, weights, factors of the other modes |
//! | the same, variational Bayes | [`SignedCpVb`] | Dirichlet and gamma posteriors of them |
//! | shift-invariant, any order, EM | [`ShiftedSnmf`] | atoms of two sides, and their places |
//! | baselines: squared error, k-means | [`Ding`], [`KMeans`] | `W` of any sign and `H`; centres |
//! | learning the prior, in batch or online | [`Hyperparameters`], [`Learner`] | shapes and rates of the prior |
//!
//! What signatures use is here too: [`tensor`] for data, [`priors`], [`nalgebra`] and [`seed`] for random numbers.
//!
//! ```
//! use skellam_snmf::nalgebra::{self, dmatrix};
//! use skellam_snmf::priors::Gamma;
//! use skellam_snmf::tensor::DenseTensor;
//! use skellam_snmf::{Init, Model, Snmf, Solver, Stop, seed};
//!
//! let v = DenseTensor::try_from(dmatrix![2.0, 4.0; -1.0, -2.0])?;         // rank one
//! let snmf = Snmf::new(1).prior("activations", Gamma::new(1.0, 1e-6)?);
//! let run = snmf.on(&v)?.solver(Solver::Squarem).stop(Stop::default().tol(1e-12));
//! let fit = run.run(Init::default(), &mut seed(0))?;
//! let product = fit.state().signed_atoms() * fit.state().activations();
//! assert!((product - dmatrix![2.0, 4.0; -1.0, -2.0]).amax() < 1e-3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When not to use this crate
//!
//! For non-negative data: `plca-em` is the same model with half the work. For factors that may be negative on both sides.

mod bounds;
mod check;
mod cp;
mod ding;
mod factors;
mod faint;
mod hyper;
mod kmeans;
mod learner;
mod posterior;
mod prior;
mod replicates;
mod rule;
mod shards;
mod shift;
mod sides;
mod signed;
mod snmf;
mod vb;

pub use nalgebra;
pub use plca_priors as priors;
pub use plca_tensor as tensor;

pub use cp::{SignedCp, SignedCpState, SignedCpVb, SignedCpVbState};
pub use ding::{Ding, DingState};
pub use factors::Factors;
pub use hyper::{Groups, Hyperparameters, Sharing, Statistics};
pub use kmeans::{KMeans, KMeansState, Seeding};
pub use learner::{Learner, Rate};
pub use plca_fit::{
    Anneal, Checkpoint, Event, Explained, Fit, FitError, Impossible, Init, Interrupt, Iteration,
    Model, Need, Observer, Parameters, Reconstruct, Run, Settings, Solver, Start, State, Status,
    Stop, StopError, TracePoint, Transform, seed,
};
pub use plca_priors::Entries;
pub use plca_tensor::DataError;
#[cfg(feature = "serde")]
use plca_tensor::checked;
pub use posterior::Posterior;
pub use prior::Prior;
pub use replicates::Replicates;
pub use shift::{Reach, ShiftedSnmf, ShiftedSnmfState, ShiftedSnmfVb, ShiftedSnmfVbState};
pub use snmf::{Snmf, SnmfState};
pub use vb::{Candidate, SnmfVb, SnmfVbState, select_components};

plca_fit::share!(
    Ding,
    KMeans,
    ShiftedSnmf,
    ShiftedSnmfVb,
    SignedCp,
    SignedCpVb,
    Snmf,
    SnmfVb
);
