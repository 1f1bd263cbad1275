//! What a fitted model says of its data: `plca reconstruct` and `sample`.

use std::path::Path;

use plca_fit::Reconstruct;
use plca_io::Array;
use plca_tensor::Cp;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::args::{ReconstructArgs, SampleArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::outputs::writable;
use crate::saved::Saved;

/// A model's approximation of its data.
pub(crate) trait Approximation {
    /// Its shape.
    fn shape(&self) -> Vec<usize>;
    /// Every cell, into an array of that shape.
    fn evaluate(&self, into: &mut Array<f64>) -> Result<(), Failure>;
    /// Adds the counts of so many events to an array of zeros of that shape.
    fn sample(&self, _: u64, _: &mut ChaCha8Rng, _: &mut Array<f64>) -> Result<(), Failure> {
        Err(Failure::new("the model has no law to draw from"))
    }
    /// Number of components that can be told apart; 0 if they are no sums of non-negative arrays.
    fn components(&self) -> usize {
        0
    }
    /// What one component adds, in any unit that is the same for all.
    fn component(&self, z: usize) -> Result<Vec<f64>, Failure> {
        Err(Failure::new(format!("component {z} is no part of a sum")))
    }
}

/// A fitted state without a law to draw from.
pub(crate) struct Cells<S>(pub(crate) S);

impl<S: Reconstruct<Scalar = f64>> Approximation for Cells<S> {
    fn shape(&self) -> Vec<usize> {
        self.0.shape()
    }

    fn evaluate(&self, into: &mut Array<f64>) -> Result<(), Failure> {
        into.values = self.0.reconstruct()?.into_parts().1;
        Ok(())
    }
}

/// A fitted state that is a sum of products of factors.
pub(crate) struct Products<S> {
    state: S,
    with_model: WithModel<S>,
}

/// Calls a function with a state as a sum of products.
type WithModel<S> = fn(&S, &mut dyn FnMut(&Cp<'_, f64>));

impl<S: Reconstruct<Scalar = f64>> Products<S> {
    pub(crate) fn of(file: Saved, with_model: WithModel<S>) -> Result<Self, Failure> {
        let state = file.state()?;
        Ok(Self { state, with_model })
    }
}

impl<S: Reconstruct<Scalar = f64>> Approximation for Products<S> {
    fn shape(&self) -> Vec<usize> {
        self.state.shape()
    }

    fn evaluate(&self, into: &mut Array<f64>) -> Result<(), Failure> {
        into.values = self.state.reconstruct()?.into_parts().1;
        Ok(())
    }

    fn components(&self) -> usize {
        self.state.components()
    }

    fn component(&self, z: usize) -> Result<Vec<f64>, Failure> {
        Ok(self.state.component(z)?.into_parts().1)
    }

    fn sample(
        &self,
        draws: u64,
        rng: &mut ChaCha8Rng,
        into: &mut Array<f64>,
    ) -> Result<(), Failure> {
        let mut drawn = Ok(());
        (self.with_model)(&self.state, &mut |model| {
            drawn = sample_into(model, draws, rng, into);
        });
        drawn
    }
}

/// Adds the counts of so many events to an array of zeros.
fn sample_into(
    model: &Cp<'_, f64>,
    draws: u64,
    rng: &mut ChaCha8Rng,
    into: &mut Array<f64>,
) -> Result<(), Failure> {
    let mut left = draws;
    while left > 0 {
        let draws = left.min(BATCH);
        left -= draws;
        let events = plca_em::sample_counts(model, draws as usize, rng)?;
        for index in events.indices.chunks_exact(into.shape.len()) {
            let place = index.iter().zip(&into.shape);
            into.values[place.fold(0, |at, (&i, &n)| at * n + i as usize)] += 1.0;
        }
    }
    Ok(())
}

/// Events held in memory together.
const BATCH: u64 = 1 << 20;

/// The model of a file, and an array of zeros of its shape, refused where it could not be held.
fn read(path: &Path) -> Result<(Box<dyn Approximation>, Array<f64>), Failure> {
    let (kind, file) = Saved::read(path)?;
    let model = kind.approximation(file)?;
    let shape = model.shape();
    let mut values = plca_io::room(&shape).map_err(|e| Failure::by(path, e))?;
    values.resize(shape.iter().product(), 0.0);
    Ok((model, Array::new(shape, values)))
}

fn write(path: &Path, array: &Array<f64>) -> Result<(), Failure> {
    Ok(interrupt::writing(|| plca_io::write_npy(path, array))?)
}

pub(crate) fn reconstruct(args: &ReconstructArgs) -> Result<(), Failure> {
    writable(&args.output, &["npy"])?;
    let (model, mut array) = read(&args.model)?;
    let evaluated = model.evaluate(&mut array);
    evaluated.map_err(|e| e.about(&args.model))?;
    write(&args.output, &array)
}

pub(crate) fn sample(args: &SampleArgs) -> Result<(), Failure> {
    writable(&args.output, &["npy"])?;
    let (model, mut array) = read(&args.model)?;
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let drawn = model.sample(args.draws, &mut rng, &mut array);
    drawn.map_err(|e| e.about(&args.model))?;
    write(&args.output, &array)
}
