#![doc = include_str!("../README.md")]
#![doc = "\n# Features\n\n`distributions`, `fft`, `l2`, `rayon` and `skellam` are on by default; `io`, `media`, `serde`, `ndarray`, `nalgebra-sparse`, or all with `full`, are not."]

pub use nalgebra;
pub use plca_dist as dist;
pub use plca_em as em;
pub use plca_fit as fit;
#[cfg(feature = "io")]
pub use plca_io as io;
#[cfg(feature = "media")]
pub use plca_media as media;
pub use plca_priors as priors;
pub use plca_tensor as tensor;
#[cfg(feature = "l2")]
pub use pntf_l2 as l2;
#[cfg(feature = "skellam")]
pub use skellam_snmf as skellam;

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// The random numbers of a seed: the same in every version and on every machine.
///
/// ```
/// use plca::prelude::*;
/// let v = DenseTensor::new(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0], Order::RowMajor)?;
/// let model = Plca::new(1);
/// assert_eq!(model.fit(&v, &mut plca::seed(0))?.objective(), model.fit(&v, &mut plca::seed(0))?.objective());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn seed(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// What most programs need: `use plca::prelude::*`.
pub mod prelude {
    pub use plca_em::{
        Criterion, Evaluation, Geometry, Given, Online, OnlineState, Selection, Support,
    };
    pub use plca_em::{
        Nmf, NmfState, Plca, PlcaState, PlcaVb, PlcaVbState, Plsa, PlsaState, PlsaVb, PlsaVbState,
        Shifted, ShiftedState, Transformed, TransformedState,
    };
    pub use plca_fit::{
        Anneal, Checkpoint, Cooling, Event, Explained, Factored, Fit, FitError, Impossible, Init,
        Interrupt, Iteration, Model, Observer, Parameters, Reconstruct, Run, Settings, Solver,
        State, Status, Stop, Transform,
    };
    pub use plca_priors::{
        CrossEntropy, Dirichlet, Entries, Entropic, Gamma, Lagged, LogisticNormal, Neighbours,
        Penalty, RatePrior, Schedule, Scheduled, SimplexPrior,
    };
    pub use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
    #[cfg(feature = "l2")]
    pub use pntf_l2::{ColumnNmf, ColumnNmfState, MixtureState, Ntf, NtfState, Pntf, PntfState};
    #[cfg(feature = "skellam")]
    pub use skellam_snmf::{
        Ding, DingState, KMeans, KMeansState, Replicates, ShiftedSnmf, ShiftedSnmfState,
        ShiftedSnmfVb, ShiftedSnmfVbState, SignedCp, SignedCpState, SignedCpVb, SignedCpVbState,
        Snmf, SnmfState, SnmfVb, SnmfVbState,
    };
}

/// The pages whose blocks of Rust are doctests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/CHOOSING.md")]
    struct Choosing;
    #[doc = include_str!("../../../docs/START.md")]
    struct Start;
    #[doc = include_str!("../../../docs/TESTING.md")]
    struct Testing;
    #[doc = include_str!("../../../docs/models/nmf-kl.md")]
    struct NmfKl;
    #[doc = include_str!("../../../docs/models/ntf-l2.md")]
    struct NtfL2;
    #[doc = include_str!("../../../docs/models/plca.md")]
    struct Plca;
    #[doc = include_str!("../../../docs/models/plsa.md")]
    struct Plsa;
    #[doc = include_str!("../../../docs/models/pntf.md")]
    struct Pntf;
    #[doc = include_str!("../../../docs/models/siplca.md")]
    struct Siplca;
    #[doc = include_str!("../../../docs/models/skellam.md")]
    struct Skellam;
    #[doc = include_str!("../../../docs/models/skellam-tensors.md")]
    struct SkellamTensors;
    #[doc = include_str!("../../../docs/models/skellam-vb.md")]
    struct SkellamVb;
    #[doc = include_str!("../../../docs/models/tiplca.md")]
    struct Tiplca;
    #[doc = include_str!("../../../docs/models/vb.md")]
    struct Vb;
}
