//! What a fitted model says of its data: `plca reconstruct` and `sample`.

use std::path::Path;

use plca_fit::{Factored, Reconstruct};
use plca_io::Array;
use plca_tensor::Cp;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::args::{ReconstructArgs, SampleArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::outputs::writable;
use crate::saved::Saved;

/// What a model says of its data.
pub(crate) trait Approximation {
    /// Their shape.
    fn shape(&self) -> Vec<usize>;
    /// Every cell, in row-major order.
    fn cells(&self) -> Result<Vec<f64>, Failure>;
    /// Draws from its law.
    fn sample(&self, draws: Draws<'_>) -> Result<(), Failure>;
    /// Number of components that can be told apart; 0 if they are not sums of non-negative arrays.
    fn components(&self) -> usize;
    /// What one component adds, in any unit that is the same for all.
    fn component(&self, z: usize) -> Result<Vec<f64>, Failure>;
}

/// Draws that were asked for.
pub(crate) struct Draws<'a> {
    pub(crate) number: u64,
    pub(crate) rng: &'a mut ChaCha8Rng,
    /// Zeros, in the shape of the model, to which they are added.
    pub(crate) into: &'a mut Array<f64>,
}

impl Draws<'_> {
    /// Draws this number of events of a sum of products of factors.
    pub(crate) fn of(self, model: &Cp<'_, f64>) -> Result<(), Failure> {
        let Self { number, rng, into } = self;
        let mut left = number;
        while left > 0 {
            let draws = left.min(BATCH);
            left -= draws;
            let events = plca_em::sample_counts(model, draws as usize, rng);
            let events = events.map_err(Failure::new)?;
            for index in events.indices.chunks_exact(into.shape.len()) {
                let place = index.iter().zip(&into.shape);
                into.values[place.fold(0, |at, (&i, &n)| at * n + i as usize)] += 1.0;
            }
        }
        Ok(())
    }
}

/// A fitted state and its law.
pub(crate) struct Fitted<S> {
    state: S,
    /// Whether its components are non-negative and add up to it.
    additive: bool,
    law: Box<Law<S>>,
}

type Law<S> = dyn Fn(&S, Draws<'_>) -> Result<(), Failure>;

impl<S: Reconstruct<Scalar = f64>> Fitted<S> {
    /// A state whose components are not told apart.
    pub(crate) fn new(
        state: S,
        law: impl Fn(&S, Draws<'_>) -> Result<(), Failure> + 'static,
    ) -> Box<Self> {
        Box::new(Self {
            state,
            additive: false,
            law: Box::new(law),
        })
    }

    /// A state without a law to draw from.
    pub(crate) fn lawless(state: S) -> Box<Self> {
        Self::new(state, |_, _| {
            Err(Failure::new(
                "the model has no distribution to sample from: expected a fit of counts, such as one of plca",
            ))
        })
    }

    /// A state that is the sum of its components.
    pub(crate) fn sum(
        state: S,
        law: impl Fn(&S, Draws<'_>) -> Result<(), Failure> + 'static,
    ) -> Box<Self> {
        let mut fitted = Self::new(state, law);
        fitted.additive = true;
        fitted
    }
}

impl<S: Factored<Scalar = f64>> Fitted<S> {
    /// A state whose law is a distribution of events.
    pub(crate) fn factored(state: S) -> Box<Self> {
        Self::sum(state, |state, draws| {
            state.with_scaled(|cp, _| draws.of(cp))
        })
    }
}

impl<S: Reconstruct<Scalar = f64>> Approximation for Fitted<S> {
    fn shape(&self) -> Vec<usize> {
        self.state.shape()
    }

    fn cells(&self) -> Result<Vec<f64>, Failure> {
        Ok(self.state.reconstruct()?.into_parts().1)
    }

    fn sample(&self, draws: Draws<'_>) -> Result<(), Failure> {
        (self.law)(&self.state, draws)
    }

    fn components(&self) -> usize {
        match self.additive {
            true => self.state.components(),
            false => 0,
        }
    }

    fn component(&self, z: usize) -> Result<Vec<f64>, Failure> {
        Ok(self.state.component(z)?.into_parts().1)
    }
}

/// Events held in memory together.
const BATCH: u64 = 1 << 20;

/// A model that was read, and an array of zeros of its shape.
struct Read {
    model: Box<dyn Approximation>,
    array: Array<f64>,
    /// It is of the transpose of the file of data.
    turned: bool,
}

/// The model of a file, refused where its array could not be held.
fn read(path: &Path) -> Result<Read, Failure> {
    let (kind, file) = Saved::read(path)?;
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
    array.values = model.cells().map_err(|e| e.about(&args.model))?;
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
    drawn.map_err(|e| e.about(&args.model))?;
    write(&args.output, array, turned)
}
