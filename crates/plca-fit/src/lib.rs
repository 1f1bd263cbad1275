//! One engine for every model: named blocks of parameters, and runs that iterate them.
//!
//! * [`Model`]: settings. [`on`](Model::on) binds it to data and gives a [`Run`], whose [`Solver`], [`Stop`] rule and [`Observer`]s can be set; a run
//!   returns a [`Fit`] of a [`State`].
//! * [`Parameters`]: the blocks of any model by name. [`BlockSpec`] says what a block must satisfy, which prior it has and which part of it is frozen.
//! * [`Expectation`]: the expected counts, which your own model computes; [`Em`] does the rest. [`Algorithm`]: for iterations other than EM.
//! * [`Factored`]: the weights and factors, which your own state returns; it then approximates data ([`Reconstruct`]).
//! * [`shards`]: fits of data that are cut along their samples, on one machine or on many, bit-identical.
//! * [`Spectra`]: the components of many fits, and their [`Consensus`].
//! * [`Transform`]: new data under learnt blocks. [`Checkpoint`]: the state of a run, which continues it with bit-identical results.
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
mod consensus;
mod cool;
mod each;
mod em;
mod error;
mod far;
mod fit;
mod init;
mod interrupt;
#[cfg(feature = "laws")]
pub mod laws;
mod layout;
mod model;
mod nndsvd;
#[cfg(feature = "serde")]
mod packed;
mod parameters;
mod prior;
mod progress;
mod reconstruct;
mod run;
mod separable;
mod setting;
mod settings;
pub mod shards;
mod shared;
pub(crate) mod solver;
mod stop;
mod transform;
mod units;

pub use algorithm::{Algorithm, Sense};
pub use anneal::Anneal;
pub use axes::{Axes, Axis, Blocks, Index};
#[doc(hidden)]
pub use block::check_room;
pub use block::{BlockSpec, Constraint, Draw, Exposure, Frozen};
pub use consensus::{Consensus, ConsensusError, Spectra, neighbours, usage_order};
pub use cool::Cooling;
pub use each::{Alone, Each, Ended, each, explain_each};
#[doc(hidden)]
pub use em::with_priors;
pub use em::{Counts, Em, Expectation, Renewed, Stepped, Wanted};
pub use error::FitError;
pub use far::{FarCell, far_hidden_cell};
pub use fit::{Checkpoint, Event, Fit, TracePoint};
pub use init::{Init, Start, begin, explain_given};
pub use interrupt::Interrupt;
pub use layout::FileLayout;
pub use model::{AnyModel, Model, State};
pub use nndsvd::Fill;
#[doc(hidden)]
pub use nndsvd::nndsvd;
#[doc(hidden)]
pub use parameters::no_mode;
pub use parameters::{Parameters, SCALE};
pub use prior::Prior;
pub use progress::Progress;
pub use reconstruct::{Factored, Reconstruct, WeightedFactors};
pub use run::{Iteration, Observer, Run};
pub use separable::{Plan, Separable, pseudo_counts, refuse};
#[doc(hidden)]
pub use setting::no_choice;
pub use setting::{Choice, Named, Setting, SettingSpec, SettingValue, option_of};
pub use settings::{BlockSettings, Freeze, Settings};
#[doc(hidden)]
pub use shared::{Uses, uses};
pub use solver::fast::{Product, transpose_to};
pub use solver::{Memory, Solver, Steps};
pub use stop::{Deadline, Need, Status, Stop, StopError};
pub use transform::{
    Explained, Impossible, Solved, Transform, bounded, certify, check_shape, empty, gap, gaps,
    improve, one_by_one, possible, reached, share, uncertified,
};
pub use units::{components_in_unit, in_unit, levels, squares_in_unit};
