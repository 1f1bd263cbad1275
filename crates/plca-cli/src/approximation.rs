//! What a fitted model says of its data: `plca reconstruct` and `sample`.

use std::path::Path;

use plca_io::Array;
use plca_run::{Approximation, Draws};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::args::{ReconstructArgs, SampleArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::outputs::writable;
use crate::saved;

/// A model that was read, and an array of zeros of its shape.
struct Read {
    model: Box<dyn Approximation>,
    array: Array<f64>,
    /// It is of the transpose of the file of data.
    turned: bool,
}

/// The model of a file, refused where its array could not be held.
fn read(path: &Path) -> Result<Read, Failure> {
    let (kind, file) = saved::model(path)?;
    let turned = file.metadata["settings"]["transpose"] == true;
    let model = kind.approximation(file)?;
    let shape = model.shape();
    let mut values = plca_io::room(&shape).map_err(|e| Failure::by(path, e))?;
    values.resize(shape.iter().product(), 0.0);
    let array = Array::new(shape, values);
    Ok(Read {
        model,
        array,
        turned,
    })
}

/// Writes an array as the file of data has its dimensions.
fn write(path: &Path, array: Array<f64>, turned: bool) -> Result<(), Failure> {
    let array = if turned { array.transposed() } else { array };
    Ok(interrupt::writing(|| plca_io::write_npy(path, &array))?)
}

pub(crate) fn reconstruct(args: &ReconstructArgs) -> Result<(), Failure> {
    writable(&args.output, &["npy"])?;
    let Read {
        model,
        mut array,
        turned,
    } = read(&args.model)?;
    array.values = model
        .cells()
        .map_err(|e| Failure::from(e).about(&args.model))?;
    write(&args.output, array, turned)
}

pub(crate) fn sample(args: &SampleArgs) -> Result<(), Failure> {
    writable(&args.output, &["npy"])?;
    let Read {
        model,
        mut array,
        turned,
    } = read(&args.model)?;
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let drawn = model.sample(Draws {
        number: args.draws,
        rng: &mut rng,
        into: &mut array,
    });
    drawn.map_err(|e| Failure::from(e).about(&args.model))?;
    write(&args.output, array, turned)
}
