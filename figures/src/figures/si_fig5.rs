//! SI, figure 5: short spectral patterns of speech.

use plca_dist::random::{below, uniform};
use plca_em::{Anneal, Shifted};
use plca_media::{Stft, read_sound};

use super::grid::{Grid, Runs, matches, noise, runs, worst};
use super::support::rng;
use crate::Result;
use crate::plot::{Axis, Panel};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "si_fig5",
    source: "[SI] figure 5",
    title: "Patterns of eight frames that speech is made of",
    criterion: "Generated: the best of five starts finds all six patterns (cosine > 0.9) at D/v < 1e-3. Speech: as measured.",
    data: &[TIMIT, SPEECH[0], SPEECH[1], SPEECH[2]],
    run,
    control: Some(control),
};

const SHAPE: [usize; 2] = [40, 200];
const KERNEL: [usize; 2] = [40, 8];
const PATTERNS: usize = 6;
const EVENTS: usize = 33;
const SEEDS: u64 = 5;
const SPEECH: [&str; 3] = [
    "speech/1688-142285-0000.flac",
    "speech/1688-142285-0001.flac",
    "speech/1688-142285-0002.flac",
];
/// The paper's own speech, which is not free.
const TIMIT: &str = "timit/speech_male.wav";
/// 513 frequencies.
const FRAME: usize = 1024;
const FRAMES: usize = 938;

/// Smooth random patterns: noise seen through a Gaussian of two frequencies and one frame, its contrast raised.
fn patterns(rng: &mut rand_chacha::ChaCha8Rng) -> Vec<Grid> {
    let one = |_| {
        let noise = Grid::from_fn(&KERNEL, |_| uniform(rng));
        let smooth = Grid::from_fn(&KERNEL, |i| {
            let (mut sum, mut weights) = (0.0, 0.0);
            for f in 0..KERNEL[0] {
                for t in 0..KERNEL[1] {
                    let (x, y) = (f as f64 - i[0] as f64, t as f64 - i[1] as f64);
                    let weight = (-0.125 * x * x - 0.5 * y * y).exp();
                    sum += weight * noise.get(&[f, t]);
                    weights += weight;
                }
            }
            sum / weights
        });
        let low = smooth.values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = smooth.values.iter().copied().fold(0.0, f64::max);
        smooth.map(|x| ((x - low) / (high - low)).powi(3))
    };
    (0..PATTERNS).map(one).collect()
}

fn draw(
    context: &Context,
    name: &str,
    input: &Grid,
    runs: &Runs,
    order: &[usize],
    columns: usize,
) -> Result<Vec<String>> {
    let state = runs.best();
    let frames = state.impulses().nrows();
    let axis = |label: &str, n: usize| Axis::linear(label, 0.0, n as f64);
    let density = |title: &str, grid: &Grid| {
        let (f, t) = (grid.shape[0], grid.shape[1]);
        // Square roots, so that quiet frequencies show.
        let rows = grid.map(f64::sqrt).thinned(130, 240).rows_up();
        Panel::density(title, &rows, &axis("frame", t), &axis("frequency", f))
    };
    let mut panels = vec![
        density("input", input),
        density("reconstruction", runs.model()),
    ];
    let impulses = Grid::from_fn(&[order.len(), frames], |i| {
        state.weights()[order[i[0]]] * state.impulses()[(i[1], order[i[0]])]
    });
    let rows = impulses.thinned(order.len(), 240).rows_up();
    panels.push(Panel::density(
        "impulses",
        &rows,
        &axis("frame", frames),
        &axis("component", order.len()),
    ));
    let kernel = [input.shape[0], 8];
    for (n, &z) in order.iter().enumerate() {
        let title = format!("kernel {}, P(z) = {:.2}", n + 1, state.weights()[z]);
        panels.push(density(
            &title,
            &Grid::of_block(state.kernels(), z, &kernel),
        ));
    }
    context.picture(name, columns, (360.0, 290.0), panels)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let mut rng = rng(context.seed, 29);
    let truth = patterns(&mut rng);
    let mut input = Grid::zeros(&SHAPE);
    for n in 0..EVENTS {
        let at = below((SHAPE[1] - KERNEL[1] + 1) as u64, &mut rng) as usize;
        input.stamp(&truth[n % PATTERNS], &[0, at], 0.5 + uniform(&mut rng));
    }
    let mut entries = measure(context, &truth, &input)?;
    entries.extend(speech(context)?);
    Ok(entries)
}

/// Noise in place of the patterns.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let truth = patterns(&mut rng(context.seed, 29));
    measure(context, &truth, &noise(&SHAPE, context.seed))
}

fn measure(context: &Context, truth: &[Grid], input: &Grid) -> Result<Vec<Entry>> {
    let config = Shifted::new(PATTERNS, KERNEL.to_vec()).anneal(Anneal {
        alpha0: 0.8,
        over: 100.0,
    });
    let seeds = context.starts(SEEDS);
    let runs = runs(&config, &input.tensor()?, seeds, 200)?;
    let found = matches(truth, runs.best().kernels(), &[0, KERNEL[1] - 1]);
    let order: Vec<usize> = found.iter().map(|m| m.component).collect();
    let files = draw(context, FIGURE.name, input, &runs, &order, 3)?;
    let data = Data::generated("40 x 200, six patterns of eight frames, 33 events");
    let cosine = worst(&found);
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    Ok(vec![
        row("best of five starts: smallest kernel cosine", cosine).above(0.9),
        row("best of five starts: D/v", runs.divergence()).below(1e-3),
    ])
}

/// The user's copy of the paper's speech, or sentences of another speaker, one after another.
fn sound(context: &Context) -> Result<Option<(Vec<f64>, Data)>> {
    let files: &[&str] = match context.path(TIMIT)? {
        Some(_) => &[TIMIT],
        None => &SPEECH,
    };
    let (mut samples, mut first) = (Vec::new(), None);
    for file in files {
        let (Some(path), Some((_, data))) = (context.path(file)?, context.file(file)?) else {
            return Ok(None);
        };
        samples.extend(read_sound(&path)?.mixed());
        first.get_or_insert(data);
    }
    Ok(first.map(|data| (samples, data)))
}

/// Half a minute of speech: 513 x 938 magnitudes, twenty kernels of eight frames.
fn speech(context: &Context) -> Result<Option<Entry>> {
    let Some((sound, data)) = sound(context)? else {
        return Ok(None);
    };
    let spectrum = Stft::new(FRAME, FRAME / 2)?.forward(&sound)?;
    let (bins, all, values) = (spectrum.bins(), spectrum.frames(), spectrum.magnitudes());
    // The first frame holds half a frame of silence before the sound.
    let input = Grid::from_fn(&[bins, FRAMES.min(all - 1)], |i| {
        values[i[0] * all + i[1] + 1]
    });
    let config = Shifted::new(20, vec![bins, 8]).anneal(Anneal {
        alpha0: 0.8,
        over: 50.0,
    });
    let iterations = context.size(150, 60);
    let runs = runs(&config, &input.tensor()?, context.starts(1), iterations)?;
    let mut order: Vec<usize> = (0..20).collect();
    let weights = runs.best().weights();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    let files = draw(context, "si_fig5_speech", &input, &runs, &order[..9], 3)?;
    let d = runs.divergence();
    let what = format!("speech, K = 20, {iterations} iterations: D/v");
    Ok(Some(Entry::number(&what, d, &data, &files)))
}
