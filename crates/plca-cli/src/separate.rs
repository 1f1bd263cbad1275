//! `plca separate`: one sound per component of a model of a spectrogram, or per source that was learnt alone.

use std::io::Write;
use std::path::{Path, PathBuf};

use nalgebra::{DMatrix, DVector};
use plca_em::{Plca, PlcaState};
use plca_fit::{Fit, FitError, Impossible, Init, Model, Solver, State, Stop, Transform};
use plca_io::Pending;
use plca_media::{SoftMasks, Sound, Stft, encode_wav, read_sound};
use plca_tensor::{DenseTensor, Order};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Value, json};

use crate::args::SeparateArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::limits::reasonable;
use crate::models::Kind;
use crate::outputs::{report, warn, writable};
use crate::saved::{self, Saved};
use crate::spectrogram::{Recorded, cancelled, comparable, hop, is_sound, recorded};
use plca_run::{Answer, Approximation};

/// Relative difference of two sums of data that are the same.
const SAME: f64 = 1e-6;

/// Iterations of tempered EM; from twice as many the spectra hardly differ.
const TEMPERED: usize = 40;

/// What is divided among the parts: the magnitudes of each in the cells of the spectrogram.
struct Parts {
    /// What an explanation says of itself.
    summary: Value,
    names: Vec<String>,
    magnitudes: Box<dyn Fn(usize) -> Result<Vec<f64>, Failure>>,
}

pub(crate) fn run(args: &SeparateArgs) -> Result<(), Failure> {
    let output = args.output.as_path();
    if !(args.temper > 0.0 && args.temper <= 1.0) {
        let what = format!("--temper {}: expected a power in (0, 1]", args.temper);
        return Err(Failure::usage(what));
    }
    let explains = args.explain || args.models.len() > 1 || args.others > 0;
    let first = match args.models.len() {
        1 if args.others == 0 => component(0),
        _ => source(&args.models[0]),
    };
    if output.is_dir() {
        writable(&place(output, &first), &[])?;
    } else if output.exists() {
        return Err(Failure::of(output, "is not a folder"));
    } else {
        writable(output, &[])?;
    }
    if let Some(sound) = args.models.iter().find(|path| is_sound(path)) {
        return Err(Failure::usage(format!(
            "{}: a sound where a model is expected: the sound is the last of the files",
            sound.display()
        )));
    }
    let models = args.models.iter();
    let models = models.map(|path| SpectrogramModel::read(path, args.quiet));
    let mut models = models.collect::<Result<Vec<_>, _>>()?;
    let bins = models[0].bins;
    if let Some(other) = models.iter().find(|other| other.bins != bins) {
        let what = format!(
            "has {} frequencies, but {} has {bins}: expected models of spectrograms with the same --frame",
            other.bins,
            models[0].path.display()
        );
        return Err(Failure::of(&other.path, what));
    }
    let frame = 2 * (bins - 1);
    let known = models.iter().find_map(|model| model.sound);
    let hop = hop(args.hop.or(known.map(|sound| sound.hop)), frame);
    let stft = Stft::new(frame, hop)?;
    let sound = read_sound(&args.sound)?;
    let own = Recorded {
        rate: sound.rate,
        frame,
        hop,
    };
    for model in &models {
        let learnt = (model.path.as_path(), model.sound);
        comparable((&args.sound, Some(own)), learnt, !model.spectra)?;
    }
    let samples = sound.channels.first().map_or(0, Vec::len);
    let frames = stft.frames(samples);
    let mixed = sound.mixed();
    if let Some(why) = cancelled(&sound, &mixed) {
        if mixed.iter().all(|&x| x == 0.0) {
            return Err(Failure::of(&args.sound, why));
        }
        warn(args.quiet, &[format!("{}: {why}", args.sound.display())]);
    }
    let spectrum = stft.forward(&mixed);
    let spectrum = spectrum.map_err(|e| Failure::from(e).about(&args.sound))?;
    let parts = match explains {
        true if models.len() == 1 && args.others == 0 && !models[0].spectra => {
            let (kind, file) = saved::model(&models[0].path)?;
            let shape = vec![bins, frames];
            let data = DenseTensor::new(shape, spectrum.magnitudes(), Order::RowMajor);
            let data = data.map_err(|e| Failure::by(&args.sound, e))?;
            let (model, summary) =
                explained(kind, file, &data).map_err(|e| e.about(&args.sound))?;
            Parts {
                summary,
                names: (0..models[0].components).map(component).collect(),
                magnitudes: Box::new(move |z| Ok(model.component(z)?)),
            }
        }
        true => sources(args, &models, spectrum.magnitudes(), frames)?,
        false => {
            let model = models.swap_remove(0);
            if model.frames != frames {
                let what = format!(
                    "{samples} samples give {frames} frames of {frame} samples every {hop}, but {} has {} frames: expected the sound and the --hop of its spectrogram by plca spectrogram, or --explain for another sound",
                    model.path.display(),
                    model.frames
                );
                return Err(Failure::of(&args.sound, what));
            }
            let magnitudes = spectrum.magnitudes();
            let power: f64 = magnitudes.iter().map(|x| x * x).sum();
            let sums = [magnitudes.iter().sum(), power];
            let other = |&sum: &f64| sums.iter().all(|x: &f64| (sum - x).abs() > SAME * x.abs());
            if let Some(sum) = model.total.filter(other) {
                let what = format!(
                    "{}: was fitted to data with the sum {sum}, the magnitudes of {} have {}: if it is a model of another sound, its activations belong to that one, and --explain finds those of this",
                    model.path.display(),
                    args.sound.display(),
                    sums[0]
                );
                warn(args.quiet, &[what]);
            }
            Parts {
                summary: Value::Null,
                names: (0..model.components).map(component).collect(),
                magnitudes: Box::new(move |z| Ok(model.model.component(z)?)),
            }
        }
    };
    let Parts {
        summary,
        names,
        magnitudes,
    } = parts;
    let masks = SoftMasks::new(names.len(), bins * frames, &magnitudes);
    let masks = masks.map_err(|e: Failure| e.about(&args.models[0]))?;
    let part = |z: usize| -> Result<Sound, Failure> {
        let magnitudes = magnitudes(z)?;
        let channels = sound.channels.iter();
        let channels = channels.map(|channel| masks.part(&stft, channel, &magnitudes));
        Ok(Sound {
            rate: sound.rate,
            channels: channels.collect::<Result<_, _>>()?,
        })
    };
    // Also while files are filled: an interruption would leave them behind.
    interrupt::writing(|| {
        let made = !output.exists();
        if made {
            std::fs::create_dir(output).map_err(|e| Failure::by(output, e))?;
        }
        leave(output, &names, part).inspect_err(|_| {
            if made {
                // Nothing is in it.
                let _ = std::fs::remove_dir(output);
            }
        })
    })?;
    let stale = (names.len()..).map(component);
    let stale: Vec<String> = stale
        .take_while(|name| place(output, name).exists())
        .collect();
    if let (Some(first), Some(last), 1) = (stale.first(), stale.last(), args.models.len()) {
        let which = match first == last {
            true => format!("{first}.wav comes"),
            false => format!("{first}.wav to {last}.wav come"),
        };
        warn(
            args.quiet,
            &[format!("{}: {which} from another run", output.display())],
        );
    }
    match summary.is_null() {
        true => Ok(()),
        false => report(args.json, args.quiet, &summary, output),
    }
}

/// A model of a spectrogram, as it was read.
struct SpectrogramModel {
    path: PathBuf,
    model: Box<dyn Approximation>,
    bins: usize,
    frames: usize,
    components: usize,
    /// Whether each component is one spectrum, louder and softer.
    spectra: bool,
    /// The sum of the data that it was fitted to.
    total: Option<f64>,
    /// What is known of the sound that it was fitted to.
    sound: Option<Recorded>,
}

impl SpectrogramModel {
    fn read(path: &Path, quiet: bool) -> Result<Self, Failure> {
        let (kind, file) = saved::model(path)?;
        let total = file.metadata["data"]["total"].as_f64();
        let sound = recorded(&file.metadata);
        warn(quiet, along_frequency(&file.metadata).as_slice());
        let model = kind.approximation(file)?;
        let shape = model.shape();
        let bad = |what: String| Failure::of(path, what);
        let (bins, frames) = match shape[..] {
            [bins, frames] if bins > 1 => (bins, frames),
            _ => {
                let what = format!(
                    "is a model of data of shape {shape:?}; expected a model of a file that plca spectrogram wrote"
                );
                return Err(bad(what));
            }
        };
        let components = model.components();
        if components == 0 {
            let name = kind.name;
            return Err(bad(format!(
                "holds the model `{name}`, whose components are not parts of a sound; expected another model, such as nmf-kl"
            )));
        }
        Ok(Self {
            path: path.to_path_buf(),
            model,
            bins,
            frames,
            components,
            spectra: !kind.shifts(),
            total,
            sound,
        })
    }

    /// The spectrum of every component, a column each, made broader by tempered EM unless the power is 1.
    ///
    /// Spectra that fit one recording as closely as they can explain another one of the same source worse. Tempered EM is the remedy of PLSA for that: the model is
    /// learnt again from its own approximation, from a start half-way between its components and their mean.
    fn spectra(&self, power: f64) -> Result<DMatrix<f64>, Failure> {
        if !self.spectra {
            let what = "holds shifted kernels; expected a model whose components are spectra, such as plca or nmf-kl, or this one alone with --explain";
            return Err(Failure::of(&self.path, what));
        }
        let (bins, frames, k) = (self.bins, self.frames, self.components);
        let mut whole = plca_io::room(&[bins, frames]).map_err(Failure::new)?;
        whole.resize(bins * frames, 0.0);
        let (mut w, mut h) = (DMatrix::zeros(bins, k), DMatrix::zeros(frames, k));
        let mut weights = DVector::<f64>::zeros(k);
        for z in 0..k {
            let cells = self.model.component(z)?;
            for (i, row) in cells.chunks_exact(frames).enumerate() {
                w[(i, z)] = row.iter().sum();
                h.column_mut(z)
                    .iter_mut()
                    .zip(row)
                    .for_each(|(sum, x)| *sum += x);
            }
            for factor in [&mut w, &mut h] {
                let mut part = factor.column_mut(z);
                let sum: f64 = part.sum();
                // A component of weight 0 explains nothing.
                match sum > 0.0 {
                    true => part /= sum,
                    false => part.fill(1.0 / part.len() as f64),
                }
            }
            weights[z] = cells.iter().sum();
            whole.iter_mut().zip(cells).for_each(|(x, cell)| *x += cell);
        }
        if power == 1.0 {
            return Ok(w);
        }
        let about = |e: FitError| Failure::by(&self.path, e);
        let mass: f64 = weights.sum();
        if !(mass > 0.0 && mass.is_finite()) {
            return Ok(w);
        }
        weights /= mass;
        let half = |factor: DMatrix<f64>| {
            let mean = &factor * &weights;
            let columns = factor.column_iter().map(|column| 0.5 * (column + &mean));
            DMatrix::from_columns(&columns.collect::<Vec<_>>())
        };
        let start = PlcaState::new(weights.clone(), vec![half(w), half(h)]).map_err(about)?;
        let data = DenseTensor::new(vec![bins, frames], whole, Order::RowMajor);
        let data = data.map_err(|e| about(e.into()))?;
        // [SPEC 1.4]
        let plca = Plca::new(k).temper(power);
        let run = plca.on(&data).map_err(about)?.solver(Solver::Em);
        let run = run.stop(Stop::default().tol(None).max_iter(TEMPERED));
        // Nothing is drawn: the start says all.
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let fit = run.run(&start, &mut rng).map_err(about)?;
        let state = fit.into_state();
        Ok(state.factor(0).clone())
    }
}

/// Explains a spectrogram by the spectra of all models: the parts are those of the models, or the components of a single one, and what is learnt besides.
fn sources(
    args: &SeparateArgs,
    models: &[SpectrogramModel],
    magnitudes: Vec<f64>,
    frames: usize,
) -> Result<Parts, Failure> {
    let bins = models[0].bins;
    let mut of = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut spectra: Vec<DVector<f64>> = Vec::new();
    for (number, model) in models.iter().enumerate() {
        // What is told apart are sources, each learnt alone; otherwise the components as they are.
        let power = match models.len() {
            1 if args.others == 0 => 1.0,
            _ => args.temper,
        };
        let own = model.spectra(power)?;
        spectra.extend(own.column_iter().map(DVector::from));
        match models.len() {
            1 if args.others == 0 => {
                of.extend(0..model.components);
                names.extend((0..model.components).map(component));
            }
            _ => {
                of.extend(vec![number; model.components]);
                let name = source(&model.path);
                if names.contains(&name) {
                    let what = format!("two models are called {name}: each names a sound");
                    return Err(Failure::of(&model.path, what));
                }
                names.push(name);
            }
        }
    }
    let known = spectra.len();
    let about = |e: FitError| Failure::by(&args.sound, e);
    let data = DenseTensor::new(vec![bins, frames], magnitudes, Order::RowMajor);
    let data = data.map_err(|e| about(e.into()))?;
    let w = DMatrix::from_columns(&spectra);
    let fit = match args.others {
        0 => {
            let even = DVector::from_element(known, 1.0 / known as f64);
            let learnt = PlcaState::new(even, vec![w, DMatrix::from_element(1, known, 1.0)]);
            let how = Transform::default().along(1).impossible(Impossible::Drop);
            let explained = learnt.map_err(about)?.transform(&data, &how);
            explained.map_err(about)?.fit
        }
        others => {
            if names.iter().any(|name| name == OTHERS) {
                let what = format!("a model and what is learnt besides are both called {OTHERS}");
                return Err(Failure::usage(what));
            }
            of.extend(vec![names.len(); others]);
            names.push(OTHERS.into());
            let all = known.saturating_add(others);
            reasonable("--others", all, &[bins, frames])?;
            let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
            let free = Plca::new(all);
            let start = free.init(&data, Init::default(), &mut rng);
            let start = start.map_err(about)?;
            let plca = Plca::new(all).freeze_components("factor_0", 0..known);
            let mut start = start.factor(0).clone();
            start.columns_mut(0, known).copy_from(&w);
            let init = Init::default().block("factor_0", start);
            let run = plca.on(&data).and_then(|run| run.run(init, &mut rng));
            run.map_err(about)?
        }
    };
    let (summary, state) = (summary_of(&fit), fit.into_state());
    let k = state.weights().len();
    let weights: Vec<f64> = state.weights().to_vec();
    let (w, h) = (state.factor(0).clone(), state.factor(1).clone());
    Ok(Parts {
        summary,
        names,
        magnitudes: Box::new(move |part| {
            let mut cells = plca_io::room(&[bins, frames]).map_err(Failure::new)?;
            cells.resize(bins * frames, 0.0);
            for z in (0..k).filter(|&z| of[z] == part) {
                let (w, h) = (w.column(z), h.column(z));
                for (row, &w) in cells.chunks_exact_mut(frames).zip(&w) {
                    let pairs = row.iter_mut().zip(&h);
                    pairs.for_each(|(cell, &h)| *cell += weights[z] * w * h);
                }
            }
            Ok(cells)
        }),
    })
}

/// The model of a sound of which only the kernels are kept.
fn explained(
    kind: Kind,
    file: Saved,
    data: &DenseTensor<f64>,
) -> Result<(Box<dyn Approximation>, Value), Failure> {
    let said = file.said();
    if !(kind.shifts() && kind.has("domain")) {
        return Err(file.failure("holds shifted kernels; expected a model whose components are spectra, such as plca or nmf-kl").into());
    }
    let explainer = kind.explainer(file, None)?;
    let how = Transform::default().impossible(Impossible::Drop);
    let Answer::Together(found) = explainer.explain(data, how, false)? else {
        return Err(Failure::new("the sound was explained in parts"));
    };
    let summary = summary_of(&found.fit);
    let model = kind.approximation_of(&said, found.fit.state())?;
    Ok((model, summary))
}

/// What the explanation of a sound says of itself.
pub(crate) fn summary_of<S: State>(fit: &Fit<S>) -> Value {
    json!({
        "iterations": fit.iterations(),
        "stop_reason": fit.status().to_string(),
        "log_likelihood": fit.objective(),
    })
}

/// A warning of kernels that do not have all frequencies of a spectrogram, whose steps are equal in Hz.
pub(crate) fn along_frequency(metadata: &Value) -> Option<String> {
    let bins = metadata["data"]["shape"][0].as_u64()?;
    let extents = metadata["settings"]["kernel"].as_array()?;
    let [Some(rows), Some(columns)] = [extents.first()?, extents.get(1)?].map(Value::as_u64) else {
        return None;
    };
    (rows != bins).then(|| {
        format!(
            "kernels of {rows} x {columns} are shifted along the {bins} frequencies, which are equal steps in Hz and not in pitch: for patterns in time a kernel has all of them, --kernel {bins}xFRAMES"
        )
    })
}

/// What is learnt from the sound itself.
const OTHERS: &str = "others";

/// The name of a component.
fn component(z: usize) -> String {
    format!("component_{z}")
}

/// The name of a source: that of its model.
fn source(model: &Path) -> String {
    let name = model.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The file of a part.
fn place(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.wav"))
}

/// Writes all sounds, and only then gives any its name.
fn leave(
    folder: &Path,
    names: &[String],
    part: impl Fn(usize) -> Result<Sound, Failure>,
) -> Result<(), Failure> {
    let paths: Vec<PathBuf> = names.iter().map(|name| place(folder, name)).collect();
    let pending = paths.iter().map(|path| Pending::new(path));
    let mut pending = pending.collect::<Result<Vec<_>, _>>()?;
    for (z, (path, file)) in paths.iter().zip(&mut pending).enumerate() {
        if interrupt::requested() {
            return Err(interrupt::failure());
        }
        let bytes = encode_wav(path, &part(z)?)?;
        file.write(|w| w.write_all(&bytes))?;
    }
    Ok(pending.into_iter().try_for_each(Pending::keep)?)
}
