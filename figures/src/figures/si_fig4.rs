//! SI, figure 4: one kernel in a constant-Q spectrogram, the harmonic series of a piano.

use plca_dist::random::uniform;
use plca_em::{Anneal, Shifted};
use plca_media::{ConstantQ, Pitches, read_sound};

use super::grid::{Grid, Runs, aligned, noise, runs};
use super::support::{largest, rng};
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "si_fig4",
    source: "[SI] figure 4",
    title: "Notes of a piano: one harmonic series, moved along log frequency",
    criterion: "Generated: kernel cosine > 0.95, and the loudest place of a frame is a sounding note in more than 80 % of the frames. Piano: the \
                first four harmonics of the kernel are local maxima within one bin of their log-spaced places, and what is not a harmonic is \
                below a quarter of the largest.",
    data: &[PIANO],
    run,
    control: Some(control),
};

const SHAPE: [usize; 2] = [100, 80];
const KERNEL: [usize; 2] = [60, 1];
const PER_OCTAVE: f64 = 18.0;
const NOTES: usize = 14;
const PIANO: &str = "piano/pistachio_ragtime_0-12s_mono.wav";
/// 6.5 octaves from A1 in steps of a third of a semitone.
const PITCHES: Pitches = Pitches {
    lowest: 55.0,
    per_octave: 36,
    bins: 234,
};
/// 317 frames of 12 s.
const HOP: usize = 1670;
const PIANO_KERNEL: usize = 180;

/// Eight partials at `18 log2 h` bins.
fn series() -> Grid {
    Grid::from_fn(&KERNEL, |i| {
        let partial = |h: usize| {
            let distance = i[0] as f64 - 2.0 - PER_OCTAVE * (h as f64).log2();
            0.8f64.powi(h as i32) * (-0.5 * (distance / 0.8).powi(2)).exp()
        };
        (1..=8).map(partial).sum()
    })
}

/// Decaying notes: the true impulse.
fn notes(context: &Context) -> Grid {
    let mut rng = rng(context.seed, 27);
    let mut impulse = Grid::zeros(&[SHAPE[0] - KERNEL[0] + 1, SHAPE[1]]);
    for n in 0..NOTES {
        let pitch = (uniform(&mut rng) * impulse.shape[0] as f64) as usize;
        let first = n * SHAPE[1] / NOTES;
        let loud = 0.5 + uniform(&mut rng);
        for t in first..SHAPE[1].min(first + 24) {
            impulse.values[pitch * SHAPE[1] + t] += loud * (-((t - first) as f64) / 6.0).exp();
        }
    }
    impulse
}

fn fit(input: &Grid, kernel: &[usize], seeds: std::ops::Range<u64>) -> Result<Runs> {
    let config = Shifted::new(1, kernel.to_vec()).anneal(Anneal {
        alpha0: 0.8,
        over: 50.0,
    });
    runs(&config, &input.tensor()?, seeds, 100)
}

fn draw(context: &Context, name: &str, input: &Grid, runs: &Runs) -> Result<Vec<String>> {
    let state = runs.best();
    let places = [state.impulses().nrows() / input.shape[1], input.shape[1]];
    let impulse = Grid::of_block(state.impulses(), 0, &places);
    let kernel: Vec<(f64, f64)> = (state.kernels().iter().enumerate())
        .map(|(i, &p)| (i as f64, p))
        .collect();
    let density = |title: &str, grid: &Grid, label: &str| {
        // Square roots, so that quiet partials show.
        let rows = grid.map(f64::sqrt).thinned(160, 240).rows_up();
        let (x, y) = (
            Axis::linear("frame", 0.0, grid.shape[1] as f64),
            Axis::linear(label, 0.0, grid.shape[0] as f64),
        );
        Panel::density(title, &rows, &x, &y)
    };
    let x = Axis::linear("bin (log frequency)", 0.0, kernel.len() as f64);
    let y = Axis::from_zero("probability", kernel.iter().map(|k| k.1));
    let panels = vec![
        density("input", input, "bin (log frequency)"),
        Panel::lines("kernel", &[Series::new("", 0, kernel)], &x, &y),
        density("impulse", &impulse, "shift in bins"),
        density("reconstruction", runs.model(), "bin (log frequency)"),
    ];
    context.picture(name, 2, (520.0, 360.0), panels)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let (truth, impulse) = (series(), notes(context));
    let mut input = Grid::zeros(&SHAPE);
    Grid::from_fn(&impulse.shape, |h| {
        input.stamp(&truth, h, impulse.get(h));
        0.0
    });
    let mut rng = rng(context.seed, 28);
    let loudest = input.values.iter().copied().fold(0.0, f64::max);
    input
        .values
        .iter_mut()
        .for_each(|x| *x += 0.02 * loudest * uniform(&mut rng));
    let real = piano(context, |bin| bin)?;
    measure(context, &input, real)
}

/// Noise in place of the notes; the piano with high for low, and, for what is not a harmonic, with its bins in disorder.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut real = piano(context, |bin| PITCHES.bins - 1 - bin)?;
    real.truncate(1);
    let disorder = piano(context, |bin| 89 * bin % PITCHES.bins)?;
    real.extend(disorder.into_iter().skip(1));
    measure(context, &noise(&SHAPE, context.seed), real)
}

fn measure(context: &Context, input: &Grid, real: Vec<Entry>) -> Result<Vec<Entry>> {
    let (truth, impulse) = (series(), notes(context));
    let runs = fit(input, &KERNEL, context.starts(5))?;
    let state = runs.best();
    let found = Grid::of_block(state.impulses(), 0, &impulse.shape);
    // Kernel and impulse are known up to opposite shifts: those of the impulse count.
    let (impulse_cosine, shift) = aligned(&impulse, &found, &[20, 0]);
    let kernel = Grid::of_block(state.kernels(), 0, &KERNEL).moved_back(&shift);
    let cosine = truth.cosine(&kernel);
    let right = sounding(&impulse, &found.moved(&shift));

    let files = draw(context, FIGURE.name, input, &runs)?;
    let data = Data::generated("100 x 80, fourteen notes of eight partials, 2 % noise");
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    let mut entries = vec![
        row("kernel cosine", cosine).above(0.95),
        row(
            "share of frames whose loudest place is a sounding note",
            right,
        )
        .above(0.8),
        row("impulse cosine", impulse_cosine),
    ];
    entries.extend(real);
    Ok(entries)
}

/// Share of the frames with a note in which the largest impulse is at one.
fn sounding(truth: &Grid, found: &Grid) -> f64 {
    let (pitches, frames) = (truth.shape[0], truth.shape[1]);
    let (mut active, mut right) = (0, 0);
    for t in 0..frames {
        let of = |g: &Grid, p: usize| g.values[p * frames + t];
        let loudest = (0..pitches).map(|p| of(truth, p)).fold(0.0, f64::max);
        if loudest > 0.0 {
            active += 1;
            let at = (0..pitches).max_by(|&a, &b| of(found, a).total_cmp(&of(found, b)));
            // A note that has faded to a twentieth of the loudest no longer counts as sounding.
            right += usize::from(at.is_some_and(|p| of(truth, p) > 0.05 * loudest));
        }
    }
    f64::from(right as u32) / f64::from(active.max(1) as u32)
}

/// The piano, its bins in some order: is the kernel a harmonic series?
fn piano(context: &Context, order: fn(usize) -> usize) -> Result<Vec<Entry>> {
    let (Some(path), Some((_, data))) = (context.path(PIANO)?, context.file(PIANO)?) else {
        return Ok(Vec::new());
    };
    let sound = read_sound(&path)?;
    let (frames, values) = ConstantQ::new(sound.rate, PITCHES, HOP)?.magnitudes(&sound.mixed())?;
    let bin = |bin: usize| &values[order(bin) * frames..][..frames];
    let input = Grid {
        shape: vec![PITCHES.bins, frames],
        values: (0..PITCHES.bins).flat_map(bin).copied().collect(),
    };
    let runs = fit(&input, &[PIANO_KERNEL, 1], context.starts(1))?;
    let files = draw(context, "si_fig4_piano", &input, &runs)?;
    let kernel: Vec<f64> = runs.best().kernels().iter().copied().collect();
    let loudest = kernel.iter().copied().fold(0.0, f64::max);
    let peak = |i: usize| {
        let beside = [i.wrapping_sub(1), i + 1];
        kernel[i] >= 0.05 * loudest
            && beside
                .iter()
                .all(|&j| kernel.get(j).is_none_or(|&x| x < kernel[i]))
    };
    // Of the places with room for four harmonics that at which they are the loudest together, by their product: a peak
    // an octave below or above lacks some. The loudest bin alone need not be the first harmonic.
    let bin = |first: usize, h: usize| first as f64 + PITCHES.per_octave as f64 * (h as f64).log2();
    let nearest = |at: f64| kernel[at.round() as usize];
    let loud = |&first: &usize| (1..=4).map(|h| nearest(bin(first, h))).product::<f64>();
    let room = kernel.len() - 2 * PITCHES.per_octave;
    let first = (0..room).max_by(|a, b| loud(a).total_cmp(&loud(b)));
    let first = first.unwrap_or(0);
    let peaks: Vec<usize> = (0..kernel.len()).filter(|&i| peak(i)).collect();
    let off = |h: usize| {
        let distances = peaks.iter().map(|&i| (i as f64 - bin(first, h)).abs());
        distances.fold(f64::INFINITY, f64::min)
    };
    let all: Vec<f64> = (1..=4).map(off).collect();
    let text: Vec<_> = all.iter().map(|d| format!("{d:.2}")).collect();
    let is_harmonic = |&&i: &&usize| (1..=8).any(|h| (i as f64 - bin(first, h)).abs() <= 1.0);
    let others = peaks.iter().filter(|i| !is_harmonic(i));
    let others = largest(others.map(|&i| kernel[i] / loudest));
    let what = "piano: largest distance, in bins, of the first four harmonics from a local maximum";
    let harmonics = Entry::number(what, largest(all.iter().copied()), &data, &files);
    let what = "piano: largest local maximum that is not a harmonic, over the largest of all";
    let others = Entry::number(what, others, &data, &files);
    Ok(vec![
        harmonics.at_most(1.0).detail(text.join(" ")),
        others
            .below(0.25)
            .detail(format!("first harmonic in bin {first}")),
    ])
}
