//! Files in and out of the `plca` command and the figures; no other crate touches a file.
//!
//! | read | by |
//! |---|---|
//! | `.npy`, `.npz` with one array or from `scipy.sparse.save_npz`, `.mtx`, `.tns`, `.csv` (the last three also `.gz`) | [`read_data`] |
//! | masks | [`read_mask`] |
//! | model files, `.npz` or `.safetensors` | [`read_model`], [`write_model`] |
//!
//! Readers trust nothing: no size that a file claims is allocated before the bytes are there, and every error names the
//! file, the place in it and the value. Writers write beside the target and rename.

mod atomic;
mod data;
mod error;
mod model;
mod npy;
mod text;
mod zipped;

pub use atomic::write_atomically;
pub use data::{Array, DataFile, Element, Mask, read_data, read_mask, sha256_file};
pub use error::IoError;
pub use model::{ModelFile, read_model, write_model, write_npy};
