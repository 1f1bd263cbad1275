//! Two sounds separated by kernels that were learnt on each alone and are frozen on the mixture.

use nalgebra::DMatrix;
use plca_dist::random::{below, uniform};
use plca_em::{Anneal, Init, Model, Reconstruct, Shifted, ShiftedState, Solver, Stop};
use plca_media::{SoftMasks, Stft, read_sound};
use plca_tensor::DenseTensor;

use super::grid::Grid;
use super::support::{normal, rng, smallest};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Ranges};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "ext_frozen",
    source: "[EXT 1], [EXT 9]",
    title: "Two sounds separated by kernels learnt on each alone and frozen on their mixture",
    criterion: "Generated chirps and plucked notes, new ones in the mixture: both are separated to more than 8 dB of signal over distortion, and more than 6 dB better than \
                the mixture itself. Speech and piano: as measured.",
    data: &[PIANO, SPEECH[0], SPEECH[1]],
    run,
    control: Some(control),
};

const PIANO: &str = "piano/pistachio_ragtime_0-12s_mono.wav";
const SPEECH: [&str; 2] = [
    "speech/1688-142285-0000.flac",
    "speech/1688-142285-0001.flac",
];
/// Samples per second.
const RATE: usize = 8000;
/// Frames of a kernel.
const FRAMES: usize = 8;
const ITERATIONS: usize = 60;

/// Plucked notes: eight partials of one of five pitches, decaying.
fn notes(seed: u64, stream: u64, samples: usize) -> Vec<f64> {
    let mut draws = rng(seed, stream);
    let mut sound = vec![0.0; samples];
    let step = RATE / 5;
    for first in (0..samples).step_by(step) {
        let pitch = [220.0, 247.0, 294.0, 330.0, 392.0][below(5, &mut draws) as usize];
        let loud = 0.3 + 0.7 * uniform(&mut draws);
        for (i, x) in sound[first..].iter_mut().take(2 * step).enumerate() {
            let t = i as f64 / RATE as f64;
            let partial = |h: usize| {
                let h = h as f64;
                (std::f64::consts::TAU * h * pitch * t).sin() * (-(4.0 + h) * t).exp() / h
            };
            *x += loud * (1..=8).map(partial).sum::<f64>();
        }
    }
    sound
}

/// Chirps that rise or fall by an octave in a tenth of a second, with two overtones, and bursts of noise.
fn chirps(seed: u64, stream: u64, samples: usize) -> Vec<f64> {
    let mut draws = rng(seed, stream);
    let mut sound = vec![0.0; samples];
    let step = RATE * 3 / 20;
    for first in (0..samples).step_by(step) {
        let kind = below(3, &mut draws);
        let loud = 0.5 + 0.7 * uniform(&mut draws);
        let length = RATE / 8;
        let mut phase = 0.0;
        for (i, x) in sound[first..].iter_mut().take(length).enumerate() {
            let share = i as f64 / length as f64;
            let window = (std::f64::consts::PI * share).sin();
            let pitch = match kind {
                0 => 500.0 * 2f64.powf(share),
                _ => 1000.0 * 2f64.powf(-share),
            };
            phase += std::f64::consts::TAU * pitch / RATE as f64;
            let tone = phase.sin() + 0.5 * (2.0 * phase).sin() + 0.3 * (3.0 * phase).sin();
            let noise = 0.7 * normal(&mut draws);
            *x += loud * window * if kind == 2 { noise } else { tone };
        }
    }
    sound
}

/// Signal over distortion in decibels.
fn sdr(truth: &[f64], found: &[f64]) -> f64 {
    let signal: f64 = truth.iter().map(|x| x * x).sum();
    let distortion: f64 = truth.iter().zip(found).map(|(x, y)| (x - y).powi(2)).sum();
    10.0 * (signal / distortion).log10()
}

/// Magnitudes, frequencies by frames.
fn magnitudes(stft: &Stft, sound: &[f64]) -> Result<Grid> {
    let spectrum = stft.forward(sound)?;
    Ok(Grid {
        shape: vec![spectrum.bins(), spectrum.frames()],
        values: spectrum.magnitudes(),
    })
}

fn fitted(
    config: &Shifted,
    v: &DenseTensor<f64>,
    start: Init<f64>,
    seed: u64,
) -> Result<ShiftedState<f64>> {
    let stop = Stop::default().max_iter(ITERATIONS).tol(None);
    let run = config.on(v)?.solver(Solver::Em).stop(stop);
    Ok(run.run(start, &mut rng(seed, 0))?.into_state())
}

/// Kernels of a sound, all its frequencies by some frames.
fn learnt(stft: &Stft, sound: &[f64], kernels: usize, seed: u64) -> Result<DMatrix<f64>> {
    let grid = magnitudes(stft, sound)?;
    let config = Shifted::new(kernels, vec![grid.shape[0], FRAMES]).anneal(Anneal {
        alpha0: 0.8,
        over: 30.0,
    });
    Ok(fitted(&config, &grid.tensor()?, Init::default(), seed)?
        .kernels()
        .clone())
}

/// A mixture with its two parts, as they are and as they were found.
struct Separated {
    mixture: Vec<f64>,
    parts: [Vec<f64>; 2],
    found: [Vec<f64>; 2],
}

/// Divides the sum of two sounds by kernels of each.
fn separated(
    stft: &Stft,
    parts: [Vec<f64>; 2],
    kernels: [&DMatrix<f64>; 2],
    seed: u64,
) -> Result<Separated> {
    let mixture: Vec<f64> = parts[0].iter().zip(&parts[1]).map(|(a, b)| a + b).collect();
    let grid = magnitudes(stft, &mixture)?;
    let first = kernels[0].ncols();
    let k = first + kernels[1].ncols();
    let both = DMatrix::from_fn(kernels[0].nrows(), k, |i, z| match z.checked_sub(first) {
        None => kernels[0][(i, z)],
        Some(z) => kernels[1][(i, z)],
    });
    // [EXT 1] the kernels stay, places and weights are learnt
    let config = Shifted::new(k, vec![grid.shape[0], FRAMES]).freeze("kernels");
    let start = Init::default().block("kernels", both);
    let state = fitted(&config, &grid.tensor()?, start, seed)?;
    let part = |s: usize| -> Result<Vec<f64>> {
        let mut sum = vec![0.0; grid.values.len()];
        for z in if s == 0 { 0..first } else { first..k } {
            let cells = state.cells(Some(z))?.into_parts().1;
            sum.iter_mut().zip(cells).for_each(|(x, y)| *x += y);
        }
        Ok(sum)
    };
    let shares = [part(0)?, part(1)?];
    // [EXT 9] masks P_s / (P_1 + P_2)
    let masks = SoftMasks::new(2, grid.values.len(), |s| -> Result<Vec<f64>> {
        Ok(shares[s].clone())
    })?;
    let found = [
        masks.part(stft, &mixture, &shares[0])?,
        masks.part(stft, &mixture, &shares[1])?,
    ];
    Ok(Separated {
        mixture,
        parts,
        found,
    })
}

/// What masks of the true magnitudes reach.
fn of_truth(stft: &Stft, of: &Separated) -> Result<[f64; 2]> {
    let [a, b] = [&of.parts[0], &of.parts[1]].map(|p| magnitudes(stft, p));
    let shares = [a?.values, b?.values];
    let masks = SoftMasks::new(2, shares[0].len(), |s| -> Result<Vec<f64>> {
        Ok(shares[s].clone())
    })?;
    let one = |s: usize| -> Result<f64> {
        Ok(sdr(
            &of.parts[s],
            &masks.part(stft, &of.mixture, &shares[s])?,
        ))
    };
    Ok([one(0)?, one(1)?])
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let mut entries = generated(context, false)?;
    entries.extend(real(context)?);
    Ok(entries)
}

/// The kernels of one sound taken for those of the other.
fn control(context: &Context) -> Result<Vec<Entry>> {
    generated(context, true)
}

fn generated(context: &Context, exchanged: bool) -> Result<Vec<Entry>> {
    let stft = Stft::new(512, 128)?;
    let samples = 4 * RATE;
    let seed = context.start(0);
    let of = |stream| {
        [
            notes(context.seed, stream, samples),
            chirps(context.seed, stream + 1, samples),
        ]
    };
    let [a, b] = of(2180);
    let kernels = [learnt(&stft, &a, 8, seed)?, learnt(&stft, &b, 8, seed)?];
    let order = if exchanged { [1, 0] } else { [0, 1] };
    let chosen = order.map(|s| &kernels[s]);
    let separated = separated(&stft, of(2182), chosen, seed)?;
    let names = ["notes", "chirps"];
    let files = draw(context, FIGURE.name, &stft, &separated, names, &kernels)?;
    let data =
        Data::generated("four seconds of plucked notes and chirps, and four others to learn from");
    let (rows, gain) = rows(&stft, &separated, names, [&data, &data], &files)?;
    let least = smallest(rows.iter().filter_map(|r| r.value));
    let mut entries = vec![
        Entry::number(
            "smaller signal over distortion of both sounds, dB",
            least,
            &data,
            &files,
        )
        .above(8.0),
        Entry::number(
            "smaller gain over the mixture itself, dB",
            gain,
            &data,
            &files,
        )
        .above(6.0),
    ];
    entries.extend(rows);
    Ok(entries)
}

/// A row for either sound, and the smaller gain.
fn rows(
    stft: &Stft,
    of: &Separated,
    names: [&str; 2],
    data: [&Data; 2],
    files: &[String],
) -> Result<(Vec<Entry>, f64)> {
    let best = of_truth(stft, of)?;
    let (mut rows, mut gains) = (Vec::new(), Vec::new());
    for (s, name) in names.iter().enumerate() {
        let value = sdr(&of.parts[s], &of.found[s]);
        let before = sdr(&of.parts[s], &of.mixture);
        gains.push(value - before);
        let row = Entry::number(
            &format!("{name}: signal over distortion, dB"),
            value,
            data[s],
            files,
        );
        rows.push(row.detail(format!(
            "the mixture itself {before:.1}; masks of the true magnitudes {:.1}",
            best[s]
        )));
    }
    Ok((rows, smallest(gains)))
}

fn draw(
    context: &Context,
    name: &str,
    stft: &Stft,
    of: &Separated,
    names: [&str; 2],
    kernels: &[DMatrix<f64>; 2],
) -> Result<Vec<String>> {
    let frequency = RATE as f64 / 2000.0;
    let axis = |seconds: f64| {
        (
            Axis::linear("seconds", 0.0, seconds),
            Axis::linear("kHz", 0.0, frequency),
        )
    };
    let picture = |title: &str, sound: &[f64]| -> Result<Panel> {
        let shown = magnitudes(stft, sound)?
            .map(|x| x.powf(0.4))
            .thinned(130, 240);
        let (x, y) = axis(sound.len() as f64 / RATE as f64);
        Ok(Panel::density(title, &shown.rows_up(), &x, &y))
    };
    // Kernels side by side, a gap of one frame between.
    let bins = stft.frame() / 2 + 1;
    let sheet = |title: &str, kernels: &DMatrix<f64>| {
        let width = kernels.ncols() * (FRAMES + 1) - 1;
        let value = |i: &[usize]| {
            let (z, t) = (i[1] / (FRAMES + 1), i[1] % (FRAMES + 1));
            if t == FRAMES {
                return 0.25;
            }
            (kernels[(i[0] * FRAMES + t, z)] / kernels.column(z).max()).powf(0.4)
        };
        let sheet = Grid::from_fn(&[bins, width], value).thinned(130, 280);
        let x = Axis::bare(
            &format!("{} kernels of eight frames", kernels.ncols()),
            width,
        );
        let y = Axis::bare("frequency", bins);
        Panel::density(title, &sheet.rows_up(), &x, &y).without_numbers()
    };
    let mut panels = Vec::new();
    for (s, name) in names.iter().enumerate() {
        let value = sdr(&of.parts[s], &of.found[s]);
        panels.push(picture(&format!("{name} alone"), &of.parts[s])?);
        panels.push(picture(
            &format!("{name}, separated: {value:.1} dB"),
            &of.found[s],
        )?);
        panels.push(sheet(&format!("kernels of {name}, frozen"), &kernels[s]));
    }
    panels.push(picture("the mixture", &of.mixture)?);
    let best = of_truth(stft, of)?;
    let ranges = |(s, name): (usize, &&str)| {
        let values = [
            sdr(&of.parts[s], &of.mixture),
            sdr(&of.parts[s], &of.found[s]),
            best[s],
        ];
        Ranges {
            name: (*name).into(),
            colour: s,
            values: values.iter().map(|&v| Some((v, 0.0))).collect(),
        }
    };
    let both: Vec<Ranges> = names.iter().enumerate().map(ranges).collect();
    let all = || both.iter().flat_map(|r| &r.values).flatten().map(|v| v.0);
    let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
    let y = Axis::linear("signal over distortion, dB", 1.2 * low - 1.0, 1.2 * high);
    let panel = Panel::ranges(
        "quality of the separation",
        &["mixture", "separated", "true masks"],
        &both,
        &y,
    );
    panels.push(panel.legend(LegendPosition::InsideTopLeft));
    context.picture(name, 3, (430.0, 320.0), panels)
}

/// A sound at this rate: every sample the mean of those that it stands for.
fn at_rate(context: &Context, file: &str) -> Result<Option<(Vec<f64>, Data)>> {
    let (Some(path), Some((_, data))) = (context.path(file)?, context.file(file)?) else {
        return Ok(None);
    };
    let sound = read_sound(&path)?;
    let samples = sound.mixed();
    let step = f64::from(sound.rate) / RATE as f64;
    let number = (samples.len() as f64 / step) as usize;
    let mean = |i: usize| {
        let range = (i as f64 * step) as usize..((i + 1) as f64 * step) as usize;
        let width = range.len() as f64;
        samples[range].iter().sum::<f64>() / width
    };
    let mut sound: Vec<f64> = (0..number).map(mean).collect();
    let power = sound.iter().map(|x| x * x).sum::<f64>() / number as f64;
    sound.iter_mut().for_each(|x| *x /= power.sqrt());
    Ok(Some((sound, data)))
}

/// Speech and piano: learnt from the first seconds of each, or another recording, and separated in others.
fn real(context: &Context) -> Result<Vec<Entry>> {
    let sounds = [
        at_rate(context, PIANO)?,
        at_rate(context, SPEECH[0])?,
        at_rate(context, SPEECH[1])?,
    ];
    let [
        Some((piano, data)),
        Some((speech, _)),
        Some((other, of_speech)),
    ] = sounds
    else {
        return Ok(Vec::new());
    };
    let seconds = context.size(5, 4);
    let stft = Stft::new(512, 128)?;
    let half = seconds * RATE;
    let seed = context.start(0);
    let number = context.size(30, 16);
    let kernels = [
        learnt(&stft, &piano[..half], number, seed)?,
        learnt(&stft, &speech[..half], number, seed)?,
    ];
    let parts = [piano[half..2 * half].to_vec(), other[..half].to_vec()];
    let separated = separated(&stft, parts, [&kernels[0], &kernels[1]], seed)?;
    let names = ["piano", "speech"];
    let files = draw(
        context,
        "ext_frozen_speech",
        &stft,
        &separated,
        names,
        &kernels,
    )?;
    Ok(rows(&stft, &separated, names, [&data, &of_speech], &files)?.0)
}
