//! Samples as shares of a few spectra: `cargo run --release -p plca --features io --example spectra -- FOLDER`, FOLDER for the model.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use std::error::Error;
use std::path::PathBuf;

use plca::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data"));
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));

    // Samples x wavelengths.
    let v = plca::io::read_data::<f64>(data.join("spectra.csv"), None)?.into_data()?;
    let fit = Pntf::new(3).fit(&*v, &mut plca::seed(1))?;

    let state = fit.state();
    for (z, weight) in state.weights().iter().enumerate() {
        let (peak, _) = state.factor(1).column(z).argmax();
        println!(
            "spectrum {z}: {:.0} % of all, highest at {peak}",
            100.0 * weight
        );
    }
    plca::io::save(folder.join("spectra.npz"), state)?;
    Ok(())
}
