//! Topics of a corpus: `cargo run --release -p plca --features io --example text -- FOLDER`, FOLDER for the model.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use std::error::Error;
use std::path::PathBuf;

use plca::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data"));
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));

    // Words x documents.
    let counts = plca::io::read_data::<f64>(data.join("corpus.mtx"), None)?.into_data()?;
    let fit = Plsa::new(4).fit(&*counts, &mut plca::seed(1))?;

    let words = std::fs::read_to_string(data.join("words.txt"))?;
    let words: Vec<&str> = words.lines().collect();
    for topic in fit.state().basis().column_iter() {
        let mut order: Vec<usize> = (0..words.len()).collect();
        order.sort_by(|&a, &b| topic[b].total_cmp(&topic[a]));
        let top: Vec<&str> = order.iter().take(8).map(|&i| words[i]).collect();
        println!("{}", top.join(" "));
    }
    plca::io::save(folder.join("topics.npz"), fit.state())?;

    // What every document is about: the topics stay, the mixtures are found.
    let explained = fit.state().transform(&*counts, &Transform::default())?;
    let mixture = explained.fit.state().mixture();
    println!("the first document: {:.2}", mixture.column(0).transpose());
    Ok(())
}
