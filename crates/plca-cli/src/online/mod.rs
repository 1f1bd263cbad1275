//! `plca fit --online`: a model learnt from files, one after the other.

mod place;
mod unobserved;

use std::path::{Path, PathBuf};
use std::time::Instant;

use plca_em::{OnlineState, StepSize};
use plca_fit::{FitError, Solver};
use plca_io::{Array, Element, MANIFEST, ModelFile, Sealed, ShardManifest, ShardPart};
use plca_run::{Learner, Stream};
use plca_tensor::normalise_columns;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::FitArgs;
use crate::blocks::{Arrays, matrix, take, vector};
use crate::checkpoint::settings;
use crate::data::{Loaded, load_for};
use crate::failure::Failure;
use crate::fitted::{leave, metadata};
use crate::models::Scalar;
use crate::models::made::of_line;
use crate::models::options::{first_given, refuse, temper};
use crate::outputs::{Trace, folder_of, merge};
use crate::reading::DataArgs;
use crate::restored::Restored;
use crate::shards::{check as check_shards, cut_elsewhere};
use crate::{given, interrupt, named};

use place::{Of, StreamProgress};
use unobserved::Unobserved;

/// What a file has besides the blocks that all batches share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtraBlock {
    /// The weights of the components.
    Weights,
    /// The shares of the streamed indices.
    Marginal,
    /// The means of the posteriors whose shapes the blocks are.
    Means,
}

impl ExtraBlock {
    /// What is reported of a stream: every batch under the factors that it met.
    fn objective(self) -> &'static str {
        match self {
            Self::Weights | Self::Marginal => "streamed_log_likelihood",
            Self::Means => "streamed_elbo",
        }
    }
}

/// `plca fit --online`.
pub(crate) fn run<T: Scalar>(args: &FitArgs) -> Result<(), Failure> {
    match args.model.name {
        "plca" => fit::<T>(args, |j| format!("factor_{j}"), ExtraBlock::Weights),
        "plsa" => fit::<T>(args, |_| "basis".into(), ExtraBlock::Marginal),
        "plsa-vb" => fit::<T>(args, |_| "basis_shape".into(), ExtraBlock::Means),
        _ => refuse(true, "--online", &args.called),
    }
}

/// Learns a model of which `name` gives the names of the factors that all blocks share.
fn fit<T: Scalar>(
    args: &FitArgs,
    name: impl Fn(usize) -> String,
    beside: ExtraBlock,
) -> Result<(), Failure> {
    let started = Instant::now();
    args.hidden.table.of_several_files("--online")?;
    let files = blocks(args)?;
    let first = files[0].load::<T>(args)?;
    let shape = first.shape().to_vec();
    let (mut given, implied) = given::blocks(args, shape.len())?;
    let rank = given::rank(args, implied, &shape)?;
    let model = of_line(args, rank, &shape)?;
    let how = Stream {
        step: args.stream.online.unwrap_or_default(),
        local: args.stream.local.unwrap_or_default(),
        drawn: args.init.is_none(),
        ..Stream::default()
    };
    let Some(learner) = T::of(&*model).streamed(&how) else {
        return refuse(true, "--online", &args.called);
    };
    let along = learner.along(shape.len());
    if let Some(cut) = files[0].cut.filter(|&cut| cut != along) {
        return Err(cut_elsewhere(&args.data, cut, along));
    }
    let settings = stream_settings(args, rank)?;
    let learner = match beside {
        ExtraBlock::Means => {
            // [EXT 3] D: where it grows with the first pass, the first batches count for little beside the start.
            let mut documents = shape[along];
            for file in &files[1..] {
                let batch = file.load::<T>(args)?;
                documents += batch.shape().get(along).copied().unwrap_or(0);
            }
            let total = Some(documents as f64);
            T::of(&*model).streamed(&Stream { total, ..how })
        }
        _ => None,
    }
    .unwrap_or(learner);
    learner.check()?;
    let called = files[0].names(&shape, along)?;
    let warnings = given::arrange(args, &settings, &called, &mut given)?;
    let run = Run {
        args,
        checksum: Sealed::sha256_of_all(files.iter().map(|file| &file.sealed))?,
        files,
        names: (0..shape.len() - 1).map(name).collect(),
        called,
        warnings,
        shape,
        along,
        beside,
        settings,
        started,
    };
    run.run(&*learner, first, given)
}

/// Options that have no meaning block by block.
const OF_ALL_DATA: &[&str] = &[
    "--shards",
    "--mask",
    "--max-iter",
    "--tol",
    "--check-every",
    "--time-limit",
    "--kkt-tol",
    "--missing-method",
];

/// Refuses what has no meaning block by block.
pub(crate) fn check(args: &FitArgs, given: &[String]) -> Result<(), Failure> {
    let values = [
        ("--restarts", args.restarts != 1),
        ("--solver fast", args.solver == Solver::Fast),
        ("--temper B,ETA", temper(args)?.1.is_some()),
    ];
    let mut given = given.iter().map(String::as_str);
    let option = given.find(|option| OF_ALL_DATA.contains(option));
    let option = option.or(first_given(&values)).or(args.extrapolated());
    option.map_or(Ok(()), |option| {
        refuse(true, option, &format!("{} --online", args.called))
    })
}

/// The blocks in their order: the shards of a folder that `plca shard` made, or files.
fn blocks(args: &FitArgs) -> Result<Vec<Block>, Failure> {
    if args.blocks.is_empty() && args.data.join(MANIFEST).is_file() {
        check_shards(args)?;
        let manifest = ShardManifest::read(&args.data)?;
        let shards = manifest.shards.iter().zip(0..);
        let blocks = shards.map(|(shard, number)| {
            let path = args.data.join(&shard.file);
            let cut = Some(manifest.along);
            Ok(Block {
                cut,
                shard: number,
                ..Block::new(path, args.hidden.clone())?
            })
        });
        return blocks.collect();
    }
    let paths = files(args)?;
    let mut reading = args.hidden.clone();
    reading.first_index = reading.first_index_of(&paths[0])?;
    (paths.into_iter())
        .map(|path| Block::new(path, reading.clone()))
        .collect()
}

/// The files of the blocks in their order.
fn files(args: &FitArgs) -> Result<Vec<PathBuf>, Failure> {
    let folder = &args.data;
    if !folder.is_dir() {
        let rest = args.blocks.iter().cloned();
        return Ok(std::iter::once(folder.clone()).chain(rest).collect());
    }
    if !args.blocks.is_empty() {
        let what = "a folder of batches must be the only data: name either the folder or the files";
        return Err(Failure::usage(what));
    }
    let inside = |path: &Path| {
        let parent = folder_of(path).canonicalize().ok();
        parent.is_some() && parent == folder.canonicalize().ok()
    };
    let others = [
        Some(&args.output),
        args.checkpoint.as_ref(),
        args.trace.as_ref(),
        args.init.as_ref(),
        args.priors.as_ref(),
        args.resume.as_ref(),
    ];
    if let Some(path) = others.into_iter().flatten().find(|path| inside(path)) {
        let path = path.display();
        let what = format!("{path}: in the folder of the data, where it would be read as a batch");
        return Err(Failure::usage(what));
    }
    let entries = std::fs::read_dir(folder).map_err(|e| Failure::by(folder, e))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| Failure::by(folder, e))?.path();
        let hidden = path
            .file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if path.is_file() && !hidden {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Failure::of(folder, "no file in this folder"));
    }
    Ok(files)
}

/// What changes the numbers of a stream.
fn stream_settings(args: &FitArgs, rank: usize) -> Result<Value, Failure> {
    let local = args.stream.local.unwrap_or_default();
    let step = match args.stream.online.unwrap_or_default() {
        StepSize::Power { kappa, t0 } => format!("{kappa},{t0}"),
        StepSize::Constant(rho) => format!("constant:{rho}"),
        StepSize::Average => "average".to_string(),
    };
    let mut all = settings(args, rank)?;
    merge(
        &mut all,
        json!({ "online": step, "local": format!("{},{}", local.max_iter, local.tol) }),
    );
    Ok(all)
}

/// The file of a block, whose checksum is taken before it is first read.
struct Block {
    path: PathBuf,
    sealed: Sealed,
    /// How it is read.
    reading: DataArgs,
    /// Of a shard, the dimension along which the data were cut.
    cut: Option<usize>,
    /// Its number in the folder.
    shard: u32,
}

impl Block {
    fn new(path: PathBuf, reading: DataArgs) -> Result<Self, Failure> {
        let sealed = Sealed::of(&path)?;
        Ok(Self {
            path,
            sealed,
            reading,
            cut: None,
            shard: 0,
        })
    }

    /// What the indices are called that all batches share, of data of this shape.
    fn names(&self, shape: &[usize], along: usize) -> Result<Vec<Option<Vec<String>>>, Failure> {
        if self.cut.is_some() {
            return Ok(vec![None; shape.len()]);
        }
        let mut names = named::read(&self.path, &self.reading, shape, along)?;
        if let Some(names) = names.get_mut(along) {
            *names = None;
        }
        Ok(names)
    }

    /// Reads the block, which is to be the same in every pass.
    fn load<T: Element>(&self, args: &FitArgs) -> Result<Loaded<T>, Failure> {
        if self.cut.is_some() {
            let shard = ShardPart::open(folder_of(&self.path), self.shard)?;
            return shard.into_data().map_err(|e| Failure::by(&self.path, e));
        }
        let block = load_for(args.model, &self.path, &self.reading)?;
        self.sealed.sha256()?;
        Ok(block)
    }
}

/// One call of `plca fit --online`.
struct Run<'a> {
    args: &'a FitArgs,
    files: Vec<Block>,
    checksum: String,
    /// Of the first block.
    shape: Vec<usize>,
    along: usize,
    /// Of the factors that the blocks share.
    names: Vec<String>,
    /// What the indices that the batches share are called.
    called: Vec<Option<Vec<String>>>,
    /// Warnings of what was given.
    warnings: Vec<String>,
    beside: ExtraBlock,
    settings: Value,
    started: Instant,
}

impl Run<'_> {
    fn run<T: Element>(
        &self,
        learner: &dyn Learner<T>,
        first: Loaded<T>,
        given: Arrays,
    ) -> Result<(), Failure> {
        let args = self.args;
        let mut place = match &args.resume {
            Some(path) => StreamProgress::read(path, &self.of())?,
            None => self.begin(learner, given)?,
        };
        let passes = args.stream.passes.unwrap_or(1);
        if place.passes > passes || (place.passes == passes && place.blocks > 0) {
            let (done, blocks) = (place.passes, place.blocks);
            let what = match blocks {
                0 => format!("{done} passes are done already; --passes asks for {passes} in total"),
                _ => format!(
                    "{done} passes and {blocks} batches of the next one are done already; --passes asks for {passes} in total"
                ),
            };
            return Err(Failure::of(
                args.resume.as_ref().unwrap_or(&args.data),
                what,
            ));
        }
        let mut trace = Trace::new(args.trace.as_deref(), self.started);
        let mut first = Some(first);
        interrupt::iterating();
        while place.passes < passes {
            while let Some(file) = self.files.get(place.blocks) {
                let path = &file.path;
                let read = first.take().filter(|_| place.blocks == 0);
                let block = match read {
                    Some(block) => block,
                    None => file.load(args)?,
                };
                let learnt = learner.learn(&mut place.state, &*block);
                let learnt = learnt.map_err(|e| self.refused_block(file, e))?;
                if place.passes == 0 {
                    self.check_names(file, block.shape())?;
                    let hidden =
                        plca_tensor::unobserved(&*block).map_err(|e| refused(path, e.into()))?;
                    let before = place.sums.len();
                    place.unobserved.note(hidden, self.along, before);
                    let sums = block.marginal(self.along);
                    let sums = sums.map_err(|e| refused(path, e.into()))?;
                    place.sums.extend(sums);
                }
                place.restored.note(learnt.restored);
                drop(block);
                place.blocks += 1;
                place.ln_lik[0] += learnt.ln_lik;
                if !learnt.ln_lik.is_finite() {
                    let what = format!("the objective became {}", learnt.ln_lik);
                    return Err(Failure::of(path, what));
                }
                let interrupted = interrupt::requested();
                if let (Some(path), Some(every)) = (&args.checkpoint, args.checkpoint_every)
                    && (interrupted || place.state.batches.is_multiple_of(every))
                {
                    let file = place.file(self.shared(&place.state), &self.of());
                    interrupt::writing(|| plca_io::write_checkpoint(path, &file))?;
                }
                if interrupted {
                    let done = format!("{} blocks", place.state.batches);
                    return Err(interrupt::after(&done, args.checkpoint.as_deref()));
                }
            }
            place.state.end_pass();
            place.passes += 1;
            place.blocks = 0;
            place.ln_lik = [0.0, place.ln_lik[0]];
            let blocks = place.state.batches as usize;
            trace.line(0, (blocks, place.ln_lik[1]))?;
        }
        self.leave(&place, &trace)
    }

    /// Refuses a batch in which the shared indices are called otherwise than in the first.
    fn check_names(&self, file: &Block, shape: &[usize]) -> Result<(), Failure> {
        let names = file.names(shape, self.along)?;
        for (d, (first, here)) in self.called.iter().zip(&names).enumerate() {
            let none = Vec::new();
            let (first, here) = (
                first.as_ref().unwrap_or(&none),
                here.as_ref().unwrap_or(&none),
            );
            if let Some(at) =
                (0..first.len().max(here.len())).find(|&i| first.get(i) != here.get(i))
            {
                let name = |names: &[String]| match names.get(at) {
                    Some(name) => named::quoted(&[name]),
                    None => "no name".into(),
                };
                let what = format!(
                    "has {} at index {at} of dimension {d}, where the first batch has {}: expected the same names in the same order in all batches",
                    name(here),
                    name(first)
                );
                return Err(Failure::of(&file.path, what));
            }
        }
        Ok(())
    }

    /// A block that was refused; of a list of features, whose largest one may differ from file to file, with the option that says how many there are.
    fn refused_block(&self, file: &Block, e: FitError) -> Failure {
        let differs = matches!(e, FitError::DataShape { .. });
        let failure = refused(&file.path, e);
        if !differs || !plca_io::lists_samples(&file.path) || plca_io::tells_sizes(&file.path) {
            return failure;
        }
        let features = |file: &Block| Some(*file.load::<f64>(self.args).ok()?.shape().last()?);
        match self.files.iter().map(features).max() {
            Some(Some(most)) => failure.and(format_args!(
                "--shape 0x{most} says how many there are in all files"
            )),
            _ => failure,
        }
    }

    /// The start: the blocks given, and the others drawn from the seed.
    fn begin<T: Element>(
        &self,
        learner: &dyn Learner<T>,
        mut given: Arrays,
    ) -> Result<StreamProgress<T>, Failure> {
        let mut sizes = self.shape.clone();
        sizes.remove(self.along);
        let mut rng = ChaCha8Rng::seed_from_u64(self.args.seed);
        let path = self.args.init.as_deref().unwrap_or(&self.args.data);
        let failure = |e: FitError| Failure::by(path, e);
        let drawn = learner.init(&sizes, &mut rng).map_err(failure)?;
        let weights = take::<T>(path, &mut given, "weights")?;
        let weights = weights.map_or(drawn.weights, |w| w.column(0).into_owned());
        let mut factors = Vec::new();
        for (drawn, name) in drawn.factors.into_iter().zip(&self.names) {
            let factor = match take(path, &mut given, name)? {
                Some(factor) if factor.shape() != drawn.shape() => {
                    let (block, got) = (name.clone(), factor.shape());
                    let expected = drawn.shape();
                    return Err(failure(FitError::Shape {
                        block,
                        got,
                        expected,
                    }));
                }
                Some(factor) => factor,
                None => drawn,
            };
            factors.push(factor);
        }
        Ok(StreamProgress {
            state: learner.start(weights, factors).map_err(failure)?,
            passes: 0,
            blocks: 0,
            ln_lik: [0.0; 2],
            sums: Vec::new(),
            unobserved: Unobserved::default(),
            restored: Restored::default(),
        })
    }

    /// What its places on disk belong to.
    fn of(&self) -> Of<'_> {
        Of {
            model: self.args.model,
            settings: &self.settings,
            checksum: &self.checksum,
            names: &self.names,
            order: self.shape.len(),
        }
    }

    /// The blocks of the state that a model file has.
    fn shared<T: Element>(&self, state: &OnlineState<T>) -> Arrays {
        let factors = state.factors.iter().map(matrix);
        self.names.iter().cloned().zip(factors).collect()
    }

    /// Writes the model and says what it is.
    fn leave<T: Element>(
        &self,
        place: &StreamProgress<T>,
        trace: &Trace<'_>,
    ) -> Result<(), Failure> {
        let (args, state) = (self.args, &place.state);
        let mut arrays = self.shared(state);
        let total: f64 = place.sums.iter().sum();
        match self.beside {
            ExtraBlock::Marginal => {
                // [SPEC 2] P(x2) = colsum(V)/v
                let shares = place.sums.iter().map(|s| s / total).collect();
                let shares = Array::new(vec![place.sums.len()], shares);
                arrays.insert("marginal".into(), shares);
            }
            ExtraBlock::Weights => {
                arrays.insert("weights".into(), vector(&state.weights));
            }
            ExtraBlock::Means => {
                for (name, factor) in self.names.iter().zip(&state.factors) {
                    let mut means = factor.clone();
                    normalise_columns(&mut means);
                    let name = name.trim_end_matches("_shape");
                    arrays.insert(name.into(), matrix(&means));
                }
            }
        }
        let mut shape = self.shape.clone();
        shape[self.along] = place.sums.len();
        let mut settings = self.settings.clone();
        settings["passes"] = json!(place.passes);
        let data = json!({
            "shape": shape, "sha256": self.checksum, "total": total, "blocks": self.files.len(),
        });
        let summary = json!({
            "model": args.model.name,
            "iterations": state.batches,
            "stop_reason": "passes",
            "objective": place.ln_lik[1],
        });
        let mut warnings = self.warnings.clone();
        warnings.extend(place.unobserved.warnings());
        warnings.extend(place.restored.warnings());
        let first = &self.files[0];
        let names = named::read(&first.path, &first.reading, &self.shape, self.along)?;
        warnings.extend(named::doubtful(&first.path, &names, &args.hidden)?);
        warnings.extend(named::repeated(&self.called));
        let mut metadata = metadata(args, settings, data, self.beside.objective());
        if let Some(first) = first.reading.first_index {
            metadata["data"]["first_index"] = json!(first);
        }
        let (names, left_out) = named::kept(self.called.clone());
        warnings.extend(left_out);
        if !names.is_null() {
            metadata["names"] = names;
        }
        let model = ModelFile { arrays, metadata };
        leave(args, model, summary, warnings, trace)
    }
}

/// Why a block was refused: settings come from the command line, all else from the file.
fn refused(path: &Path, e: FitError) -> Failure {
    match e {
        FitError::Setting { .. } | FitError::Conflict { .. } => Failure::usage(e),
        e => Failure::by(path, e),
    }
}
