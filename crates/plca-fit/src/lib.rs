//! One engine for every model: named blocks of parameters, and runs that iterate them.
//!
//! * [`Model`]: settings. [`on`](Model::on) binds it to data and gives a [`Run`], whose [`Solver`], [`Stop`] rule and [`Observer`]s can be set; a run
//!   returns a [`Fit`] of a [`State`].
//! * [`Parameters`]: the blocks of any model by name. [`BlockSpec`] says what a block must satisfy, which prior it has and which part of it is frozen.
//! * [`Expectation`]: the expected counts, which your own model computes; [`Em`] does the rest. [`Algorithm`]: for iterations other than EM.
//! * [`Factored`]: the weights and factors, which your own state returns; it then approximates data ([`Reconstruct`]).
//! * [`shards`]: fits of data that are cut along their samples, on one machine or on many, bit-identical.
//! * [`consensus`]: the components of many fits, and what they have in common.
//! * [`Transform`]: new data under learnt blocks. [`Checkpoint`]: the state of a run, which continues it with bit-identical results.
//!
//! The root has what the user of a model meets; modules have what the author of one needs: [`blocks`], [`em`], [`explain`], [`separable`], [`setting`],
//! [`solver`], [`units`].
//!
//! ```
//! use plca_em::Plca;
//! use plca_fit::{Init, Model, Solver, Status, Stop};
//! use plca_tensor::{DenseTensor, Order};
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//! let v = DenseTensor::<f64>::new(vec![2, 3], vec![4.0, 0.0, 1.0, 0.0, 6.0, 1.0], Order::RowMajor)?;
//! let model = Plca::new(2);
//! let run = model.on(&v)?.solver(Solver::Squarem).stop(Stop::default().tol(1e-9));
//! let fit = run.run(Init::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
//! assert_eq!(fit.status(), &Status::Converged);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When not to use this crate
//!
//! It has no model and no data: see `plca-em`, `skellam-snmf`, `pntf-l2` and `plca-tensor`. It is not a general optimiser either.

mod algorithm;
mod anneal;
mod axes;
mod block;
pub mod consensus;
mod cool;
mod each;
pub mod em;
mod error;
pub mod far;
mod fit;
mod init;
mod interrupt;
#[cfg(feature = "laws")]
pub mod laws;
mod layout;
mod model;
pub mod nndsvd;
#[cfg(feature = "serde")]
mod packed;
mod parameters;
mod prior;
mod progress;
mod reconstruct;
mod run;
pub mod separable;
pub mod setting;
mod settings;
pub mod shards;
#[doc(hidden)]
pub mod shared;
pub mod solver;
mod stop;
mod transform;
pub mod units;

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

pub use algorithm::{Algorithm, Sense};
pub use anneal::Anneal;
pub use cool::Cooling;
pub use error::FitError;
pub use fit::{Checkpoint, Event, Fit, TracePoint};
pub use init::{Init, Start};
pub use interrupt::Interrupt;
pub use model::{AnyModel, Model, State};
pub use parameters::Parameters;
pub use progress::Progress;
pub use reconstruct::{Factored, Reconstruct, WeightedFactors};
pub use run::{Iteration, Observer, Run};
pub use settings::Settings;
pub use solver::Solver;
pub use stop::{Deadline, Need, Status, Stop, StopError};
pub use transform::{Explained, Impossible, Transform};

/// The random numbers of a seed: the same in every version and on every machine.
///
/// ```
/// use plca_em::{Model, Plca, seed, tensor::{DenseTensor, Order}};
/// let v = DenseTensor::new(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0], Order::RowMajor)?;
/// let model = Plca::new(1);
/// assert_eq!(model.fit(&v, &mut seed(0))?.objective(), model.fit(&v, &mut seed(0))?.objective());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn seed(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// The blocks of a model's parameters: what their axes count, what they must satisfy, their priors and what is frozen.
pub mod blocks {
    pub use crate::axes::{Axes, Axis, Blocks, Index};
    #[doc(hidden)]
    pub use crate::block::check_room;
    pub use crate::block::{BlockSpec, Constraint, Draw, Exposure, Frozen};
    pub use crate::layout::FileLayout;
    pub use crate::parameters::SCALE;
    #[doc(hidden)]
    pub use crate::parameters::no_mode;
    pub use crate::prior::Prior;
}

/// For models that transform new data: which cells and observations are possible, one run for each observation, bounds on the gap.
pub mod explain {
    pub use crate::each::{Alone, Each, Outcome, each, explain_each};
    pub use crate::init::{begin, explain_given};
    pub use crate::transform::{
        Solved, bounded, certify, check_shape, empty, gap, gaps, improve, one_by_one, possible,
        reached, share, uncertified,
    };
}

// Files of this crate import from its root.
#[allow(unused_imports)]
use {
    blocks::*, consensus::*, em::*, explain::*, far::*, nndsvd::*, separable::*, setting::*,
    solver::*, units::*,
};
