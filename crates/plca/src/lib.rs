#![doc = include_str!("../README.md")]
#![doc = "\n# Features\n\n`distributions`, `fft`, `l2`, `rayon` and `skellam` are on by default; `io`, `media`, `serde`, `ndarray`, `nalgebra-sparse`, or all with `full`, are not."]

pub use nalgebra;
pub use plca_dist as dist;
pub use plca_em as em;
pub use plca_fit as fit;
pub use plca_fit::seed;
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

/// What most programs need: `use plca::prelude::*`. Everything else has a path, such as `plca::em::PlsaVb` or `plca::priors::Entropic`.
pub mod prelude {
    pub use plca_em::{Nmf, Plca, Plsa, Shifted};
    pub use plca_fit::{
        Fit, FitError, Init, Iteration, Model, Reconstruct, Settings, Solver, State, Stop,
        Transform,
    };
    pub use plca_priors::Dirichlet;
    pub use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor};
    #[cfg(feature = "l2")]
    pub use pntf_l2::{Ntf, Pntf};
    #[cfg(feature = "skellam")]
    pub use skellam_snmf::{SignedCp, Snmf};
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
