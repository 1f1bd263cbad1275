//! A melody taken apart into its notes: `cargo run --release -p plca --features media --example sound -- FOLDER`, FOLDER for the model and the parts.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use std::error::Error;
use std::path::PathBuf;

use plca::media::{MediaError, SoftMasks, Sound, Stft, read_sound, write_wav};
use plca::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data"));
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));

    let sound = read_sound(data.join("notes.wav"))?;
    let (rate, samples) = (sound.rate, sound.mixed());
    let stft = Stft::new(1024, 256)?;
    let spectrum = stft.forward(&samples)?;
    let (bins, frames) = (spectrum.bins(), spectrum.frames());
    let v = DenseTensor::new(vec![bins, frames], spectrum.magnitudes(), Order::RowMajor)?;

    // The best of five starts, those of the command: stream 0 to 4 of the seed.
    let model = Nmf::new(3);
    let starts = (0..5).map(|start| {
        let mut rng = plca::seed(1);
        rng.set_stream(start);
        model.fit(&v, &mut rng)
    });
    let fits = starts.collect::<Result<Vec<_>, _>>()?;
    let best = fits
        .iter()
        .min_by(|a, b| a.objective().total_cmp(&b.objective()));
    let fit = best.ok_or("no start")?;
    plca::io::save(folder.join("notes.npz"), fit.state())?;

    // Every part has its share of every cell's magnitude, and the phases of the sound.
    let (w, h) = (fit.state().w(), fit.state().h());
    let part = |z: usize| -> Result<Vec<f64>, MediaError> {
        Ok(spectrum
            .cells()
            .map(|(f, t)| w[(f, z)] * h[(z, t)])
            .collect())
    };
    let masks = SoftMasks::new(3, bins * frames, part)?;
    for z in 0..3 {
        let samples = masks.part(&stft, &samples, &part(z)?)?;
        let (strongest, _) = w.column(z).argmax();
        let pitch = strongest as f64 * f64::from(rate) / 1024.0;
        println!("component {z}: strongest at {pitch:.0} Hz");
        write_wav(
            folder.join(format!("component_{z}.wav")),
            &Sound::mono(rate, samples),
        )?;
    }
    Ok(())
}
