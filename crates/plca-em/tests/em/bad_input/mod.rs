//! What the specification demands of bad and awkward input, row by row, for every model and storage.

mod awkward;
mod data;
mod models;
mod scales;
mod settings;
mod starts;
