//! The models on the engine of [`plca_fit::engine`].

mod cp;
mod ding;
mod kmeans;
mod refusal;
mod signed;
mod snmf;
mod vb;

pub use cp::{SignedCp, SignedCpBuilder, SignedCpState};
pub use ding::{Ding, DingBuilder, DingState};
pub use kmeans::{KMeans, KMeansBuilder, KMeansState, Seeding};
pub use snmf::{Snmf, SnmfBuilder, SnmfState};
pub use vb::{Candidate, SnmfVb, SnmfVbBuilder, SnmfVbState, select_components};
