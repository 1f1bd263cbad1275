//! One file for every target, or for targets of one kind.

mod checkpoint;
mod json;
mod mat;
mod members;
mod model_npz;
mod npy;
mod npz;
mod pairs;
mod picture;
mod safetensors;
mod scipy;
mod sound;
mod store;
mod table;
mod tensor;
mod text;

use std::fmt::Display;

use crate::Target;

/// All targets.
pub const TARGETS: &[Target] = &[
    npy::TARGET,
    npz::TARGET,
    model_npz::TARGET,
    scipy::TARGET,
    mat::TARGET,
    text::MTX,
    text::GZ,
    text::TNS,
    text::CSV,
    text::SVMLIGHT,
    text::LDAC,
    text::DOCWORD,
    table::TARGET,
    table::LIST,
    safetensors::TARGET,
    sound::WAV,
    sound::FLAC,
    store::TARGET,
    checkpoint::TARGET,
    json::TENSOR,
    json::EM,
    json::SNMF,
    json::L2,
    pairs::ESTEP,
    pairs::FAST,
    pairs::BLOCKS,
    picture::PNG,
    picture::JPEG,
];

/// Refuses an error that is not one line of text.
fn one_line(error: &impl Display) {
    let line = error.to_string();
    assert!(
        !line.is_empty() && !line.contains(char::is_control),
        "not one line: {line:?}"
    );
}
