//! Factorization of data of either sign as `V ~ (T⁺ - T⁻) H`, all factors non-negative, under the Skellam law.
//!
//! ```text
//! V[f,n] ~ Sk(L⁺[f,n], L⁻[f,n]),      L± = T± H,      Σ_f T⁺[f,k] + T⁻[f,k] = 1
//! ```
//!
//! Data of whole numbers are differences of counts ([`Replicates::One`]). As counts are replicated without end the
//! likelihood tends to a divergence that is defined for real data ([`Replicates::Limit`]); on non-negative data without a
//! negative side that is the Kullback-Leibler divergence of NMF.
//!
//! | method | type | parameters |
//! |---|---|---|
//! | EM: maximum a posteriori | [`Snmf`] | `T⁺`, `T⁻`, `H` |
//! | variational Bayes | [`SnmfVb`] | Dirichlet and gamma posteriors of them |
//! | tensors with a signed first mode, EM | [`SignedCp`] | `T⁺`, `T⁻`, weights, factors of the other modes |
//! | baselines: squared error, k-means | [`Ding`], [`KMeans`](engine::KMeans) | `W` of any sign and `H`; centres |
//! | learning the prior, in batch or online | [`Hyperparameters`], [`Learner`] | shapes and rates of the prior |
//!
//! ```
//! use nalgebra::dmatrix;
//! use skellam_snmf::{Signed, Snmf, SnmfInit, Stop};
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//!
//! let v = Signed::from_matrix(dmatrix![2.0, 4.0; -1.0, -2.0])?;          // rank one
//! let snmf = Snmf::builder(1).build()?;
//! let fit = snmf.fit(&v, &SnmfInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
//! assert!((fit.state.reconstruct() - dmatrix![2.0, 4.0; -1.0, -2.0]).amax() < 1e-3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When not to use this crate
//!
//! For non-negative data: `plca-em` is the same model with half the work. For factors that may be negative on both sides.

mod bayes;
mod cp;
mod ding;
mod em;
pub mod engine;
mod error;
mod faint;
mod hyper;
mod init;
mod learner;
mod posterior;
mod prior;
mod replicates;
mod rule;
mod select;
mod sides;
mod state;
mod vb_init;
mod vbem;

pub use cp::{CpEm, CpState, SignedCp};
pub use ding::{Ding, DingState, DingSteps};
pub use em::{Snmf, SnmfBuilder, SnmfEm};
pub use error::{ParamError, SnmfError};
pub use hyper::{Groups, Hyperparameters, Sharing, Statistics};
pub use init::SnmfInit;
pub use learner::{Learner, Rate};
pub use plca_fit::{
    Accelerate, Algorithm, Carried, Momentum, Need, Outcome, Parabolic, Progress, Squarem, Stop,
    StopError, StopReason, TracePoint, best_of, run, run_from,
};
pub use plca_tensor::DataError;
pub use plca_tensor::arrange::Signed;
pub use posterior::Posterior;
pub use prior::{Entries, Prior};
pub use replicates::Replicates;
pub use select::{Candidate, select_components};
pub use state::SnmfState;
pub use vb_init::VbInit;
pub use vbem::{SnmfVb, SnmfVbBuilder, SnmfVbEm};
