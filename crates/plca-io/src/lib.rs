//! Readers and writers of files for the `plca` command and the figures; no other crate reads or writes files.
//!
//! | read | by |
//! |---|---|
//! | `.npy`, `.npz` and `.mat` (MATLAB 5 to 7) with one array or a named one, `.npz` from `scipy.sparse.save_npz`, `.mtx`, `.tns`, `.csv`, `.tsv`, `.svmlight`, `.libsvm`, `.ldac`, `docword.*.txt` (text also `.gz`), with the feature `parquet` `.parquet` | [`read_data`], [`read_data_with`] |
//! | masks | [`read_mask`] |
//! | model files and initial values, `.npz` or `.safetensors` | [`read_model`], [`read_metadata`], [`write_model`], [`pending_model`] |
//! | fitted states | [`save`], [`load`] |
//! | one array | [`write_npy`] |
//! | sparse matrices larger than memory | [`Store`], [`StoreWriter`] |
//! | folders of shards | [`write_shards`], [`ShardFolder`], [`ShardPart`] |
//! | checksums of what is read | [`Sealed`], [`sha256_file`] |
//! | checkpoints | [`read_checkpoint`], [`write_checkpoint`] |
//! | decoders of others | [`guarded`] |
//! | any other output | [`write_atomically`], [`Pending`] |
//! | where an output goes, whether it can be written | [`end_of_links`], [`can_write`] |
//! | whether an array can be made | [`room`] |
//!
//! Readers do not trust files: a size that a file claims is compared with the length of the file before memory is allocated,
//! and every error is one line with the file, the place in it and the value. Writers write beside the target and rename.
//!
//! # Examples
//!
//! ```
//! use plca_io::{Array, DataFile, ModelFile, read_data, read_model, write_model, write_npy};
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! write_npy(&folder.join("v.npy"), &Array::new(vec![2, 2], vec![1.0, 0.0, 2.0, 5.0]))?;
//! let DataFile::Dense(v) = read_data::<f64>(&folder.join("v.npy"), None)? else { panic!("dense") };
//! assert_eq!(v.shape, [2, 2]);
//!
//! let mut model = ModelFile { metadata: serde_json::json!({ "model": "nmf-kl" }), ..Default::default() };
//! model.arrays.insert("w".into(), Array::new(vec![2, 1], vec![1.0, 7.0]));
//! write_model(&folder.join("model.npz"), &model, false)?;
//! assert_eq!(read_model(&folder.join("model.npz"))?, model);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod advice;
mod allowance;
mod atomic;
mod data;
mod entries;
mod error;
mod latch;
mod lists;
#[cfg(feature = "parquet")]
mod long;
mod mat;
mod model;
mod names;
mod npy;
mod room;
mod runs;
mod sealed;
mod shards;
mod state;
mod store;
mod text;
mod zipped;

pub use advice::{Advice, advice};
pub use atomic::{Pending, can_write, end_of_links, write_atomically};
pub use data::{
    Array, DataFile, Element, Header, Labels, Mask, ReadOptions, Table, first_index, is_table,
    lists_samples, open_file, read_data, read_data_with, read_mask, sha256_file, tells_sizes,
};
pub use error::{IoError, guarded, is_guarded};
pub use model::{
    ModelFile, checksum, pending_model, read_checkpoint, read_metadata, read_model,
    read_model_with, write_checkpoint, write_model, write_npy,
};
pub use names::{read_list, read_names};
pub use room::{NoRoom, room};
pub use sealed::Sealed;
pub use shards::{MANIFEST, ShardEntry, ShardFolder, ShardManifest, ShardPart, write_shards};
pub use state::{block_of, load, save};
pub use store::{Store, StoreWriter};
pub use text::is_absent;
