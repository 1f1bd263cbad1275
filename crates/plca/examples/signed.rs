//! A signed matrix with missing cells, filled: `cargo run --release -p plca --features io --example signed -- FOLDER`, FOLDER for the model.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use std::error::Error;
use std::path::PathBuf;

use plca::io::{DataFile, read_data};
use plca::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data"));
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));

    // Variables x samples; empty cells are NaN.
    let DataFile::Dense(table) = read_data::<f64>(data.join("signed.csv"), None)? else {
        return Err("a table was expected".into());
    };
    let v = DenseTensor::masked(table.shape, table.values, Order::RowMajor)?;
    let model = Snmf::new(3);
    let run = model.on(&v)?.solver(Solver::Squarem);
    let fit = run.run(Init::default(), &mut plca::seed(1))?;
    plca::io::save(folder.join("signed.npz"), fit.state())?;

    let atoms = fit.state().signed_atoms();
    let first = atoms * fit.state().activations().column(0);
    println!(
        "the first sample, its missing cells filled: {:.1}",
        first.transpose()
    );
    Ok(())
}
