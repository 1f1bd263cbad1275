//! Drums for the figures of CE: a generated spectrogram, or that of a drum loop.

use nalgebra::DMatrix;
use plca_dist::random::{exponential, uniform};
use plca_em::{Plca, PlcaState, Prior};
use plca_fit::{Init, Model, Solver, State, Stop};
use plca_media::{Stft, read_sound};
use plca_tensor::{DenseTensor, Order};

use super::grid::Grid;
use super::support::{divergence, rng};
use crate::Result;
use crate::plot::{Axis, Panel};
use crate::report::Data;
use crate::reproduce::Context;

/// Frequencies of the generated spectrogram.
const FREQUENCIES: usize = 60;
/// Frames of the generated spectrogram.
const FRAMES: usize = 160;
/// Instruments of the generated spectrogram.
pub(super) const DRUMS: usize = 6;

/// Magnitudes, frequencies x frames, and which they are.
pub(super) struct Spectrogram {
    pub(super) magnitudes: DMatrix<f64>,
    pub(super) data: Data,
}

/// Six spectra with periodic decaying envelopes, every cell multiplied by a number uniform in 1 to 1.2.
pub(super) fn generate(context: &Context) -> Spectrogram {
    let mut rng = rng(context.seed, 25);
    // Centre and width of the main band, share of a broad second one; period, first hit, decay.
    let drums = [
        ([6.0, 2.5, 0.1], [32.0, 0.0, 5.0]),
        ([14.0, 3.0, 0.2], [32.0, 16.0, 6.0]),
        ([24.0, 3.5, 0.15], [40.0, 8.0, 7.0]),
        ([34.0, 3.0, 0.2], [20.0, 5.0, 4.0]),
        ([44.0, 4.0, 0.1], [8.0, 2.0, 2.0]),
        ([53.0, 4.0, 0.1], [16.0, 12.0, 8.0]),
    ];
    let mut spectra = DMatrix::zeros(FREQUENCIES, DRUMS);
    let mut envelopes = DMatrix::zeros(DRUMS, FRAMES);
    for (z, ([centre, width, broad], [period, first, decay])) in drums.into_iter().enumerate() {
        for f in 0..FREQUENCIES {
            let distance = f as f64 - centre;
            let band = (-0.5 * (distance / width).powi(2)).exp();
            spectra[(f, z)] = band + broad * (-0.5 * (distance / 12.0).powi(2)).exp();
        }
        let loudness = 0.6 + 0.8 * uniform(&mut rng);
        for t in 0..FRAMES {
            let since = t as f64 - first;
            let decaying = |since: f64| (-(since % period) / decay).exp();
            envelopes[(z, t)] = if since >= 0.0 {
                loudness * decaying(since)
            } else {
                0.0
            };
        }
    }
    let mut magnitudes = spectra * envelopes;
    for x in magnitudes.iter_mut() {
        *x *= 1.0 + 0.2 * uniform(&mut rng);
    }
    Spectrogram {
        magnitudes,
        data: Data::generated("60 x 160 spectrogram of six drums, noise of up to 20 %"),
    }
}

/// Noise of the same size: what no drum plays, for controls.
pub(super) fn noise(context: &Context) -> Spectrogram {
    let mut rng = rng(context.seed, 500);
    Spectrogram {
        magnitudes: DMatrix::from_fn(FREQUENCIES, FRAMES, |_, _| exponential(&mut rng)),
        data: Data::generated("60 x 160 exponential draws"),
    }
}

/// The drum loop's file.
pub(super) const LOOP: &str = "drums/loop_compus.flac";

/// The spectrogram of the drum loop, the mean of its channels: frames of 1024 samples, every 512.
pub(super) fn read(context: &Context) -> Result<Option<Spectrogram>> {
    let (Some(path), Some((_, data))) = (context.path(LOOP)?, context.file(LOOP)?) else {
        return Ok(None);
    };
    let sound = read_sound(&path)?.mixed();
    let spectrum = Stft::new(1024, 512)?.forward(&sound)?;
    let shape = (spectrum.bins(), spectrum.frames());
    Ok(Some(Spectrogram {
        magnitudes: DMatrix::from_row_iterator(shape.0, shape.1, spectrum.magnitudes()),
        data,
    }))
}

impl Spectrogram {
    pub(super) fn tensor(&self) -> Result<DenseTensor<f64>> {
        let (rows, columns) = self.magnitudes.shape();
        let values = self.magnitudes.as_slice().to_vec();
        Ok(DenseTensor::new(
            vec![rows, columns],
            values,
            Order::ColumnMajor,
        )?)
    }

    /// Low frequencies at the bottom; square roots, so that quiet parts show.
    pub(super) fn panel(&self, title: &str) -> Panel {
        density(title, &self.magnitudes, "frame", "frequency")
    }
}

/// A matrix with row 0 at the bottom, its square roots, so that quiet frequencies show.
pub(super) fn density(title: &str, m: &DMatrix<f64>, x: &str, y: &str) -> Panel {
    let whole = Grid::from_fn(&[m.nrows(), m.ncols()], |i| m[(i[0], i[1])].sqrt());
    let rows = whole.thinned(130, 240).rows_up();
    let (x, y) = (Axis::bare(x, m.ncols()), Axis::bare(y, m.nrows()));
    Panel::density(title, &rows, &x, &y)
}

/// A fit of exactly `iterations` iterations with a prior on the time factor; and its `D/v`.
pub(super) fn fit(
    v: &DenseTensor<f64>,
    components: usize,
    prior: Option<Prior<f64>>,
    iterations: usize,
    seed: u64,
) -> Result<(PlcaState<f64>, f64)> {
    let mut plca = Plca::new(components);
    if let Some(prior) = prior {
        plca = plca.prior("factor_1", prior);
    }
    let run = plca.on(v)?.solver(Solver::Em);
    let run = run.stop(Stop::default().max_iter(iterations).tol(None));
    let state = run.run(Init::default(), &mut rng(seed, 0))?.into_state();
    let ln_lik = plca.bind(v)?.likelihood(state.parameters())?;
    Ok((state, divergence(v, ln_lik)))
}
