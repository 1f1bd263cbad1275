//! Fits of data that are cut into shards, on one machine or on many.
//!
//! The data are cut along one mode, the samples: documents, cells, columns, frames. What belongs to a sample (a mixture, activations) stays
//! with its shard, what belongs to features is copied everywhere, and an iteration sends statistics of the size of the features up and a model of
//! that size down. The number of shards belongs to the data, not to the workers, and sums follow one fixed tree over shards: any engine, any
//! number of workers and any order of arrival give a bit-identical result.
//!
//! * [`Sharded`]: a model whose data can be cut. [`Survey`], [`Shared`], [`Local`], [`Stats`]: what engines move, with the feature `serde` as
//!   bytes of one [version](Stats).
//! * [`Partial`]: the tree.
//! * [`InProcess`]: the engine of one process, for a [`Run`](crate::Run). [`Shards`]: where its shards come from.
//! * [`Elsewhere`]: a run whose shards another [`Engine`] holds, [`started`]: its start.
//!
//! ```
//! use plca_em::{Init, Plsa, PlsaState, Stop};
//! use plca_fit::{Run, State, shards::InProcess};
//! use plca_tensor::{Data, DenseTensor, Order};
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//! // Two shards of two documents each.
//! let shard = |v| DenseTensor::new(vec![2, 2], v, Order::RowMajor).map(|v| Box::new(v) as Box<dyn Data<f64>>);
//! let shards = vec![shard(vec![3.0, 0.0, 1.0, 4.0])?, shard(vec![2.0, 1.0, 1.0, 5.0])?];
//! let model = Plsa::new(2);
//! let run = Run::<PlsaState<f64>>::new(Box::new(InProcess::new(&model, &shards)?));
//! let fit = run.stop(Stop::default()).run(Init::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
//! assert_eq!(fit.state().mixture().shape(), (2, 4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod elsewhere;
mod in_process;
mod partial;
mod sharded;
mod squared;
mod states;
mod version;

pub use elsewhere::{Elsewhere, Engine, started};
pub use in_process::{InProcess, OnShards, Shards, Visit};
pub use partial::{Merge, Node, Partial, PartialError};
pub use sharded::{ACROSS, Apart, Divided, GlobalModel, Imputes, InTurn, Shard, Sharded};
pub use states::{Local, PassRequest, Seed, ShardId, Shared, Stats, Survey};
use version::Version;
