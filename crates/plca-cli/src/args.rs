//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Id, Parser, Subcommand, ValueEnum};

use plca_io::Sealed;
use serde_json::Value;
use skellam_snmf::Replicates;

use crate::models::{Kind, MODELS};
use crate::ranks::World;
use crate::solver;
use crate::table::TableArgs;
use plca_em::{Local, StepSize};
use plca_fit::{Anneal, Solver};
use plca_priors::{PriorEntry, Priors, RatePriors};

/// Probabilistic latent-variable factorization of files.
#[derive(Debug, Parser)]
#[command(name = "plca", version, about, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Estimate parameters.
    ///
    /// The output holds one array per block of the model, and metadata. docs/FILES.md of the source has the names, shapes and
    /// orientation of every model's arrays, the definition of every objective, and the formats of data.
    Fit(Box<FitArgs>),
    /// Explain new data, learned factors fixed.
    Transform(TransformArgs),
    /// The model's approximation of its data.
    Reconstruct(ReconstructArgs),
    /// What is in a model file.
    Inspect(InspectArgs),
    /// Counts drawn from the fitted model.
    Sample(SampleArgs),
    /// Table of scores per number of components.
    ///
    /// For plsa and nmf-kl the log_likelihood is the joint one of the equivalent plca, not what fit reports: there plsa has the
    /// conditional likelihood, and nmf-kl the divergence.
    Select(SelectArgs),
    /// Cuts data into shards along their samples, which `fit` takes as a folder
    Shard(ShardArgs),
    /// What many fits of one model agree on, for several numbers of components.
    ///
    /// Per rank the components of all restarts, spectra, are compared: those without near neighbours are left out, the others clustered, and the
    /// medians of a cluster are a component of the consensus. A rank is stable where the clusters are apart (silhouette), and good where
    /// their usages leave little of the data (squared error). docs/FILES.md of the source has the arrays that are written.
    Consensus(ConsensusArgs),
    /// Fit once more as a model file says, with other options where they are given.
    ///
    /// A model file keeps the options of its fit. The same data and options give the same arrays, to the bit.
    Refit(RefitArgs),
    /// Two fits of one model, component by component.
    ///
    /// Components are matched so that the sum of their cosines is largest; a cosine is the mean over the blocks of the model.
    Compare(CompareArgs),
    /// A fit as one page of HTML: configuration, weights, trace and components.
    Report(ReportArgs),
    /// Magnitudes of a sound, frequencies x frames.
    Spectrogram(SpectrogramArgs),
    /// One sound per component of a model of a spectrogram.
    Separate(SeparateArgs),
    /// Completions of the command line for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// The manual page of the command, or of one of its commands, for `man`.
    Man {
        /// fit, transform, …
        command: Option<String>,
    },
}

/// The options that stand on the command line.
pub(crate) fn given(matches: &ArgMatches) -> Vec<String> {
    let Some((_, matches)) = matches.subcommand() else {
        return Vec::new();
    };
    let ids = matches.ids().map(Id::as_str);
    let given = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    given
        .map(|id| format!("--{}", id.replace('_', "-")))
        .collect()
}

/// Groups of options in the help.
const DATA: &str = "Data";
const MODEL: &str = "Model";
const START: &str = "Start";
const PRIORS: &str = "Priors";
const SOLVER: &str = "Solver";
const STOPPING: &str = "Stopping";
const OUTPUT: &str = "Output";

/// One of [`MODELS`] by its name.
fn models() -> impl TypedValueParser<Value = Kind> {
    let names = MODELS.iter();
    let names = names.map(|m| PossibleValue::new(m.name()).help(m.about()));
    PossibleValuesParser::new(names).try_map(|name| {
        let mut known = MODELS.iter().copied();
        known.find(|m| m.name() == name).ok_or("unknown model")
    })
}

/// What `--prior` may be.
fn priors_help() -> String {
    fn list<P: ?Sized>(all: &[PriorEntry<P>]) -> String {
        let all = all.iter();
        let all = all.map(|entry| format!("{}:{} ({})", entry.name, entry.form, entry.about));
        all.collect::<Vec<_>>().join("; ")
    }
    format!(
        "Prior on every column of a block. An r behind a weight: in multiples of the counts of a component. One of {}; for w and h of nmf-kl {}; for the activations of skellam and skellam-vb gamma:SHAPE,RATE",
        list(Priors::<f64>::ALL),
        list(RatePriors::<f64>::ALL),
    )
}

/// A solver by its name.
fn solvers() -> impl TypedValueParser<Value = Solver> {
    let names = Solver::ALL.iter();
    let names = names.map(|solver| PossibleValue::new(solver.name()).help(solver.about()));
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// A solver that extrapolates EM; `none` is EM itself.
fn accelerations() -> impl TypedValueParser<Value = Solver> {
    let all = Solver::ALL.iter().copied();
    let names = all.filter(|solver| solver::extrapolates(*solver));
    let names = names.map(|solver| PossibleValue::new(solver.name()).help(solver.about()));
    let none = PossibleValue::new("none");
    PossibleValuesParser::new(std::iter::once(none).chain(names)).try_map(|name| match &*name {
        "none" => Ok(Solver::Em),
        name => name.parse(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    F64,
    F32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Update {
    Simultaneous,
    Sequential,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MissingCells {
    /// NaN cells of a dense array are hidden.
    Nan,
    /// Cells of a sparse array that are not stored are hidden.
    Unstored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MissingMethod {
    Multiplicative,
    Imputation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Domain {
    /// Kernels lie inside the data.
    Valid,
    /// Kernels may run off the far border.
    Same,
    /// Kernels may run off both borders.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Likelihood {
    /// The data are a window of a longer record.
    Conditional,
    /// There is nothing outside the data.
    Literal,
}

/// How k-means chooses its first centres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Seeding {
    /// Samples far from the centres so far (k-means++).
    PlusPlus,
    /// Samples, all equally likely.
    Random,
}

/// `1`, `inf` or another whole number.
pub(crate) fn replicates(s: &str) -> Result<Replicates, String> {
    match s {
        "inf" => Ok(Replicates::Limit),
        "1" => Ok(Replicates::One),
        _ => match s.parse::<u32>() {
            Ok(m) if m > 1 => Ok(Replicates::Finite(m)),
            _ => Err(format!("`{s}` is not a whole number >= 1, nor inf")),
        },
    }
}

/// How the models of signed data take them.
#[derive(Debug, Args)]
pub(crate) struct SignedArgs {
    /// Draws whose mean is a datum, 1 for differences of counts [default: inf]
    ///
    /// A datum is the mean of so many draws: 1 for differences of counts, inf for real data, or any number between.
    #[arg(long, value_name = "1|M|inf", value_parser = replicates, help_heading = MODEL)]
    pub(crate) m: Option<Replicates>,
    /// Takes data that are no whole numbers for --m 1 or --m M too.
    #[arg(long, help_heading = MODEL)]
    pub(crate) real_data: bool,
}

/// A number that must be finite and not negative.
fn tolerance(s: &str) -> Result<f64, String> {
    let x = number(s)?;
    if x.is_finite() && x >= 0.0 {
        Ok(x)
    } else {
        Err(format!("{s} is not a finite number >= 0"))
    }
}

/// Sizes like `3x8`.
fn sizes(s: &str) -> Result<Sizes, String> {
    let size = |n: &str| {
        n.parse::<usize>()
            .map_err(|_| format!("`{n}` is not a whole number"))
    };
    s.split('x').map(size).collect::<Result<_, _>>().map(Sizes)
}

/// A power and how long it lasts: `ALPHA0,T`.
fn anneal(s: &str) -> Result<Anneal, String> {
    let (alpha0, over) = s.split_once(',').ok_or("ALPHA0,T is needed")?;
    Ok(Anneal {
        alpha0: number(alpha0)?,
        over: number(over)?,
    })
}

/// A power that stays, or one that lasts: `A` or `A,T`.
fn power(s: &str) -> Result<Anneal, String> {
    if s.contains(',') {
        anneal(s)
    } else {
        number(s).map(Anneal::constant)
    }
}

fn number(s: &str) -> Result<f64, String> {
    s.parse().map_err(|_| format!("`{s}` is not a number"))
}

/// A number of things.
fn whole<N: FromStr>(s: &str) -> Result<N, String> {
    s.parse()
        .map_err(|_| "a whole number >= 0 is needed".to_string())
}

/// Things of which there is one at least.
fn at_least_one(s: &str) -> Result<u64, String> {
    let number = s.parse().ok().filter(|&n| n > 0);
    number.ok_or_else(|| "a whole number >= 1 is needed".to_string())
}

/// A step-size law: `KAPPA,T0`, `average` or `constant:RHO`.
fn step_size(s: &str) -> Result<StepSize, String> {
    if s == "average" {
        return Ok(StepSize::Average);
    }
    if let Some(rho) = s.strip_prefix("constant:") {
        return number(rho).map(StepSize::Constant);
    }
    let needed = "KAPPA,T0, average or constant:RHO is needed";
    let (kappa, t0) = s.split_once(',').ok_or(needed)?;
    Ok(StepSize::Power {
        kappa: number(kappa)?,
        t0: number(t0)?,
    })
}

/// Iterations for a block and when they may end: `N` or `N,TOL`.
fn local(s: &str) -> Result<Local, String> {
    let (n, tol) = match s.split_once(',') {
        Some((n, tol)) => (n, tolerance(tol)?),
        None => (s, Local::default().tol),
    };
    match n.parse() {
        Ok(max_iter) if max_iter > 0 => Ok(Local { max_iter, tol }),
        _ => Err(format!("`{n}` is not a whole number >= 1")),
    }
}

/// Data that come in blocks.
#[derive(Debug, Args)]
pub(crate) struct OnlineArgs {
    /// Learns from one block after the other; or average, constant:RHO
    ///
    /// Blocks need not fit into memory together. DATA is a folder, whose files are the blocks in the order of their names, or the
    /// first of several files. Blocks follow each other along the last dimension, plsa: along the one that is given. The t-th block
    /// weighs (t + T0)^-KAPPA against all before it, KAPPA in (0.5, 1]; average: by its share of all counts so far; constant:RHO:
    /// always RHO in (0, 1].
    #[arg(long, value_name = "KAPPA,T0", value_parser = step_size, allow_hyphen_values = true, help_heading = DATA)]
    pub(crate) online: Option<StepSize>,
    /// --online: passes over all blocks [default: 1]
    #[arg(long, value_name = "N", requires = "online", allow_negative_numbers = true, value_parser = at_least_one, help_heading = DATA)]
    pub(crate) passes: Option<u64>,
    /// --online: E-steps for a block at most [default: 50,1e-3]
    ///
    /// Fewer once a share of TOL of its counts changes its component.
    #[arg(long, value_name = "N[,TOL]", requires = "online", value_parser = local, allow_hyphen_values = true, help_heading = DATA)]
    pub(crate) local: Option<Local>,
}

/// Sizes of the modes of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Sizes(pub(crate) Vec<usize>);

/// Data and what of them is hidden.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// Array of the data's shape, 0 = hidden; or a file of the hidden cells
    ///
    /// A dense array (.npy, .npz, .csv, .tsv), or a coordinate file (.mtx, .tns) whose stored cells are the hidden ones.
    #[arg(long, value_name = "FILE", help_heading = DATA)]
    pub(crate) mask: Option<PathBuf>,
    /// Which cells count as missing
    #[arg(long, value_name = "WHICH", help_heading = DATA)]
    pub(crate) missing: Option<MissingCells>,
    /// Size of each dimension of a .tns file [default: the largest index]
    ///
    /// With --online: of every block.
    #[arg(long, value_name = "I0xI1x…", value_parser = sizes, help_heading = DATA)]
    pub(crate) shape: Option<Sizes>,
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

/// Kernels, and where and how they are shifted.
#[derive(Debug, Args)]
pub(crate) struct ShiftArgs {
    /// Extent of the kernels along each dimension [default: as in --init]
    ///
    /// The extent of the data means no shift along a dimension.
    #[arg(long, value_name = "k0xk1x…", value_parser = sizes, help_heading = MODEL)]
    pub(crate) kernel: Option<Sizes>,
    #[command(flatten)]
    pub(crate) places: PlaceArgs,
}

/// Where the box of a transformed kernel may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BoxPositions {
    /// Inside the data.
    Valid,
    /// So that it meets the data.
    Full,
    /// With its centre in the data.
    Centred,
}

/// How kernels are transformed: all products of rotations, scales and mirrors.
#[derive(Debug, Args)]
pub(crate) struct TurnArgs {
    /// Rotations by 360 i/N degrees [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "angles", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..), help_heading = MODEL)]
    pub(crate) rotations: Option<u16>,
    /// Rotations by these angles in degrees, in place of --rotations
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', allow_hyphen_values = true, value_parser = number, help_heading = MODEL)]
    pub(crate) angles: Vec<f64>,
    /// Sizes, in multiples of the kernel's own [default: 1]
    #[arg(long, value_name = "S,T,…", value_delimiter = ',', allow_hyphen_values = true, help_heading = MODEL)]
    pub(crate) scales: Vec<f64>,
    /// Mirrored kernels too
    #[arg(long, help_heading = MODEL)]
    pub(crate) mirror: bool,
    /// Where transformed kernels may lie [default: valid]
    #[arg(long, value_name = "WHERE", help_heading = MODEL)]
    pub(crate) positions: Option<BoxPositions>,
}

/// Where and how kernels are shifted.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Where kernels may lie, in all dimensions or in each [default: valid]
    #[arg(long, value_name = "WHERE", value_delimiter = ',', help_heading = MODEL)]
    pub(crate) domain: Vec<Domain>,
    /// What is outside the data [default: conditional]
    ///
    /// What is maximised where kernels may run off the data.
    #[arg(long, value_name = "WHICH", help_heading = MODEL)]
    pub(crate) likelihood: Option<Likelihood>,
    /// Power of the kernels, from ALPHA0 in (0, 1] to 1 in T iterations
    #[arg(long, value_name = "ALPHA0,T", value_parser = anneal, allow_hyphen_values = true, help_heading = MODEL)]
    pub(crate) anneal: Option<Anneal>,
    /// Power A >= 1 of the impulses; with T it falls to 1 in T iterations
    #[arg(long, value_name = "A[,T]", value_parser = power, allow_hyphen_values = true, help_heading = MODEL)]
    pub(crate) impulse_power: Option<Anneal>,
}

#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// The model; `plca fit MODEL --help` has what it takes, on one page
    #[arg(value_parser = models())]
    pub(crate) model: Kind,
    /// .npy .npz .mtx .tns .csv .tsv (the last four also .gz), or a folder of shards
    pub(crate) data: PathBuf,
    /// More files of data, for --online
    #[arg(value_name = "BLOCK")]
    pub(crate) blocks: Vec<PathBuf>,
    /// Number of components K, at least 1 [default: as in --init]
    #[arg(long, short = 'k', value_name = "K", help_heading = MODEL, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) rank: Option<usize>,
    #[command(flatten)]
    pub(crate) shifts: ShiftArgs,
    #[command(flatten)]
    pub(crate) turns: TurnArgs,
    /// The dimension that is given [default: 1]
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = clap::value_parser!(u8).range(0..=1), help_heading = MODEL)]
    pub(crate) given: Option<u8>,
    #[command(flatten)]
    pub(crate) signed: SignedArgs,
    /// The dimension whose factor is signed [default: 0]
    #[arg(long, value_name = "D", help_heading = MODEL, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) signed_mode: Option<usize>,
    /// The dimension whose factor has the scale [default: none, weights do]
    #[arg(long, value_name = "R", help_heading = MODEL, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) scale_mode: Option<usize>,
    /// Takes the data as they are, not divided by their sum
    #[arg(long, help_heading = MODEL)]
    pub(crate) no_normalise: bool,
    #[command(flatten)]
    pub(crate) hidden: DataArgs,
    /// Sparse data larger than memory are sorted into this file
    ///
    /// It is read in every iteration and is used again by runs on the same data; the results are those of --solver em in memory, to
    /// the bit. Needs data of which nothing is hidden.
    #[arg(long, value_name = "FILE", help_heading = DATA)]
    pub(crate) out_of_core: Option<PathBuf>,
    /// Cuts the data into N shards of samples, added up in one order
    ///
    /// Along the last dimension, plsa: along the one that is given. The results are those of any number of machines on the same
    /// shards. A folder that `plca shard` made is cut already.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..), help_heading = DATA)]
    pub(crate) shards: Option<u32>,
    #[command(flatten)]
    pub(crate) stream: OnlineArgs,
    /// ChaCha seed of everything drawn
    #[arg(long, value_name = "S", default_value_t = 0, help_heading = START, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    /// Best of this many starts
    #[arg(long, value_name = "R", default_value_t = 1, help_heading = START, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) restarts: u64,
    /// The first centres [default: plus-plus]
    #[arg(long, value_name = "HOW", help_heading = START)]
    pub(crate) seeding: Option<Seeding>,
    /// Initial parameters, any blocks of the model
    #[arg(long, value_name = "FILE", help_heading = START)]
    pub(crate) init: Option<PathBuf>,
    /// Blocks, or components of one, that stay as they are in --init
    #[arg(long, value_name = "NAME[:Z/Z…]", value_delimiter = ',', help_heading = START)]
    pub(crate) fix: Vec<String>,
    /// Arrays of flags named as the blocks: 1 stays as it is in --init
    ///
    /// Flags have the shapes of the blocks. The other entries of a column that is a distribution share what is left of 1.
    #[arg(long, value_name = "FILE", requires = "init", help_heading = START)]
    pub(crate) freeze_entries: Option<PathBuf>,
    /// Prior on every column of a block, repeatable
    #[arg(long, value_name = "BLOCK=SPEC", long_help = priors_help(), help_heading = PRIORS)]
    pub(crate) prior: Vec<String>,
    /// Priors per entry: arrays named BLOCK.dirichlet and the like
    ///
    /// For rates (activations of skellam, w and h of nmf-kl) BLOCK.gamma_shape and BLOCK.gamma_rate.
    #[arg(long, value_name = "FILE", help_heading = PRIORS)]
    pub(crate) priors: Option<PathBuf>,
    /// Weight MU >= 0 of the squares of a block's columns: sparse columns
    #[arg(long, value_name = "BLOCK=MU", help_heading = PRIORS)]
    pub(crate) sparsity: Vec<String>,
    /// Least value of every factor, for priors with shapes below 1 [default: 0]
    #[arg(long, value_name = "X", value_parser = tolerance, allow_negative_numbers = true, help_heading = PRIORS)]
    pub(crate) floor: Option<f64>,
    /// How iterations are made
    ///
    /// auto is em where another option asks for it, as --tol 0 does.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = solvers(), help_heading = SOLVER)]
    pub(crate) solver: Solver,
    /// The same as --solver, for the solvers that extrapolate EM
    #[arg(long, value_name = "HOW", default_value = "none", value_parser = accelerations(), help_heading = SOLVER)]
    pub(crate) accelerate: Solver,
    /// Form of the update [default: simultaneous]
    #[arg(long, value_name = "FORM", help_heading = SOLVER)]
    pub(crate) update: Option<Update>,
    /// Tempered EM with power B in (0, 1], times ETA in (0, 1) as it cools
    ///
    /// Without ETA the power is B throughout. With ETA a tenth of the counts is held out: a power is kept as long as
    /// every iteration lowers their perplexity by more than --tol times its value, then it is multiplied by ETA, until
    /// that no longer helps (--tol 0: until the end).
    #[arg(long, value_name = "B[,ETA]", help_heading = SOLVER)]
    pub(crate) temper: Option<String>,
    /// Raises P(z) to the tempering power too
    #[arg(long, help_heading = SOLVER)]
    pub(crate) temper_prior: bool,
    /// Missing cells [default: imputation; nmf-kl: multiplicative]
    ///
    /// How they are treated.
    #[arg(long, value_name = "HOW", help_heading = SOLVER)]
    pub(crate) missing_method: Option<MissingMethod>,
    /// Scalars of the fit
    #[arg(long, value_name = "TYPE", default_value = "f64", help_heading = SOLVER)]
    pub(crate) precision: Precision,
    /// Threads [default: all]; results do not depend on their number
    #[arg(long, value_name = "N", help_heading = SOLVER, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) threads: Option<usize>,
    /// Iterations at most
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = STOPPING, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) max_iter: usize,
    /// Change of the objective per iteration and count; 0: none
    ///
    /// Stops when the objective changes by at most T per iteration from one check to the next, relative to the sum of the data (nats
    /// per count; of squares for squared errors); 0 runs exactly --max-iter iterations.
    #[arg(long, value_name = "T", default_value = "1e-7", value_parser = tolerance, allow_negative_numbers = true, help_heading = STOPPING)]
    pub(crate) tol: f64,
    /// Also stops at this residual of the optimality conditions, T >= 0
    ///
    /// Not with --tol 0.
    #[arg(long, value_name = "T", value_parser = tolerance, allow_negative_numbers = true, help_heading = STOPPING)]
    pub(crate) kkt_tol: Option<f64>,
    /// Iterations between checks of the objective
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = STOPPING, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) check_every: usize,
    /// Model file to write: .npz or .safetensors
    #[arg(long, short, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: PathBuf,
    /// Checkpoint to write during the run
    #[arg(long, value_name = "FILE", requires = "checkpoint_every", help_heading = OUTPUT)]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Iterations between checkpoints
    #[arg(long, value_name = "N", requires = "checkpoint", allow_negative_numbers = true, value_parser = at_least_one, help_heading = OUTPUT)]
    pub(crate) checkpoint_every: Option<u64>,
    /// Continues from a checkpoint: bit-identical to a run in one piece
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) resume: Option<PathBuf>,
    /// A JSON line per checked iteration, written as it goes
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) trace: Option<PathBuf>,
    /// The summary as one JSON line on standard output
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Errors only: no progress bar, summary or warnings
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// No option: the output goes to standard output, which has no summary.
    #[arg(skip)]
    pub(crate) piped: bool,
    /// No option: the checksum of the data, once it was taken.
    #[arg(skip)]
    pub(crate) sealed: OnceLock<Sealed>,
    /// No option: what the command line asks for, as the model file keeps it.
    #[arg(skip)]
    pub(crate) request: Value,
    /// No option: the model file whose fit is made once more.
    #[arg(skip)]
    pub(crate) again: Option<PathBuf>,
    /// No option: the processes that hold the shards together, where there are several.
    #[arg(skip)]
    pub(crate) world: Option<Arc<World>>,
}

#[derive(Debug, Args)]
pub(crate) struct RefitArgs {
    /// The fitted model.
    pub(crate) model: PathBuf,
    /// Leaves out options of the fit, by their names without dashes: --without prior,seed.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) without: Vec<String>,
    /// Perhaps files of data in place of those of the fit, then --output FILE and any options of fit, in place of those of the fit.
    #[arg(
        value_name = "DATA | OPTION",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    pub(crate) fit: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// A fitted model.
    pub(crate) a: PathBuf,
    /// Another fit of the same model to data of the same shape; numbers of components may differ.
    pub(crate) b: PathBuf,
    /// As one JSON line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The fitted model.
    pub(crate) model: PathBuf,
    /// Page to write: .html.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// Names of the rows of the data, a line each, such as the words of a corpus: components are shown by their largest entries.
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// How many entries of every component have their names shown.
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) top: usize,
    /// The trace that fit --trace wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TransformArgs {
    /// The fitted model.
    pub(crate) model: PathBuf,
    /// New data, of the training data's shape but for the dimension of the observations.
    pub(crate) data: PathBuf,
    /// File to write: .npz or .safetensors.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) hidden: DataArgs,
    /// Dimension of the observations [default: the last; plsa: the one that was given].
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) along: Option<usize>,
    /// Iterations at most.
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) max_iter: usize,
    /// Stops when the certified gap of every observation is at most T, or the objective changes no more; 0 runs exactly
    /// --max-iter iterations.
    #[arg(long, value_name = "T", default_value = "1e-6", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) tol: f64,
    /// How iterations are made.
    #[arg(long, default_value = "auto", value_parser = solvers())]
    pub(crate) solver: Solver,
    /// Threads [default: all].
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) threads: Option<usize>,
    /// The summary as one JSON line on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// No option: the output goes to standard output, which has no summary.
    #[arg(skip)]
    pub(crate) piped: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReconstructArgs {
    /// The fitted model.
    pub(crate) model: PathBuf,
    /// Array to write: .npy.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The fitted model.
    pub(crate) model: PathBuf,
    /// One array instead: of every component the largest entries, such as the words of every topic.
    #[arg(long, value_name = "NAME")]
    pub(crate) array: Option<String>,
    /// How many entries of every component.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "array", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) top: usize,
    /// Names of the entries, a line each, such as the words of a corpus.
    #[arg(long, value_name = "FILE", requires = "array")]
    pub(crate) labels: Option<PathBuf>,
    /// As one JSON line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// The fitted model.
    pub(crate) model: PathBuf,
    /// Number of events; skellam, skellam-vb: of whole matrices, which are summed.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) draws: u64,
    /// ChaCha seed.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    /// Array of counts to write: .npy.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Criterion {
    /// Bayesian information criterion; needs counts.
    Bic,
    /// Akaike's information criterion.
    Aic,
    /// Evidence lower bound, of Bayesian models only.
    Elbo,
    /// Perplexity of a tenth of the counts, which are held out; of other data, divergence of a tenth of the cells.
    HeldOut,
}

#[derive(Debug, Args)]
pub(crate) struct SelectArgs {
    /// The model.
    #[arg(value_parser = models())]
    pub(crate) model: Kind,
    /// The data.
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) hidden: DataArgs,
    #[command(flatten)]
    pub(crate) signed: SignedArgs,
    /// skellam-vb: as for fit.
    #[arg(long, value_name = "BLOCK=SPEC")]
    pub(crate) prior: Vec<String>,
    /// Numbers of components: A..B (both included) or a list A,B,C.
    #[arg(long, value_name = "A..B")]
    pub(crate) ranks: String,
    /// siplca: extents of the kernels along each dimension; several are tried with every number of components.
    #[arg(long, value_name = "k0xk1x…,…", value_delimiter = ',', value_parser = sizes)]
    pub(crate) kernel: Vec<Sizes>,
    #[command(flatten)]
    pub(crate) places: PlaceArgs,
    /// The score; smaller is better [default: bic; skellam-vb: elbo].
    #[arg(long)]
    pub(crate) criterion: Option<Criterion>,
    /// Iterations at most.
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) max_iter: usize,
    /// As for fit.
    #[arg(long, value_name = "T", default_value = "1e-7", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) tol: f64,
    /// ChaCha seed.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    /// Best of this many starts for each number.
    #[arg(long, value_name = "R", default_value_t = 3, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) restarts: u64,
    /// Threads [default: all].
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) threads: Option<usize>,
    /// As one JSON line.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar.
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShardArgs {
    /// The data, of which nothing is hidden.
    pub(crate) data: PathBuf,
    /// Folder to write, which is made or empty: manifest.json and a file for every shard.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// Number of shards, of about equal entries; fewer where fewer samples have any.
    #[arg(long, value_name = "N", default_value_t = 64, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) shards: u32,
    /// Dimension of the samples [default: the last].
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) along: Option<usize>,
    /// Scalars of the shards, and of the fits of them.
    #[arg(long, default_value = "f64")]
    pub(crate) precision: Precision,
    /// Size of each mode, for .tns files whose largest indices do not say it.
    #[arg(long, value_name = "I0xI1x…", value_parser = sizes)]
    pub(crate) shape: Option<Sizes>,
    /// Values may be negative, as skellam and skellam-vb take them; shards are then dense files.
    #[arg(long)]
    pub(crate) signed: bool,
    /// The summary as one JSON line on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConsensusArgs {
    /// The model: plca, plsa, nmf-kl, pntf or ntf-l2.
    #[arg(value_parser = models(), required_unless_present = "from", conflicts_with = "from")]
    pub(crate) model: Option<Kind>,
    /// The data, a matrix without hidden cells. Samples are its columns; plsa: along the dimension that is given.
    #[arg(required_unless_present = "from")]
    pub(crate) data: Option<PathBuf>,
    /// File to write: .npz or .safetensors.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) hidden: DataArgs,
    /// Numbers of components: A..B (both included) or a list A,B,C.
    #[arg(
        long,
        value_name = "A..B",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    pub(crate) ranks: Option<String>,
    /// Fits of every rank, from start 0, 1, … of the seed: those of plca fit --restarts.
    #[arg(long, value_name = "R", default_value_t = 100, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) restarts: u64,
    /// Fits made elsewhere, in place of MODEL and DATA: an .npz with the arrays spectra, a row for each component of each fit, and X, a row
    /// for each sample.
    #[arg(long, value_name = "SPECTRA.npz", requires = "rank")]
    pub(crate) from: Option<PathBuf>,
    /// --from: number of components K of every fit.
    #[arg(long, short = 'k', requires = "from", conflicts_with = "model", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) rank: Option<usize>,
    /// Spectra are kept whose local density, the mean distance from their neighbours, is below D.
    #[arg(
        long,
        value_name = "D",
        default_value_t = 0.5,
        allow_negative_numbers = true
    )]
    pub(crate) threshold: f64,
    /// Neighbours of a spectrum, as a share of the number of restarts.
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.3,
        allow_negative_numbers = true
    )]
    pub(crate) neighbourhood: f64,
    /// Folder that finished fits are kept in, and taken from by a later call with the same settings.
    #[arg(long, value_name = "FOLDER", conflicts_with = "from")]
    pub(crate) runs: Option<PathBuf>,
    /// plsa: the dimension that is given.
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) given: Option<u8>,
    /// As for fit.
    #[arg(long, default_value = "auto", value_parser = solvers())]
    pub(crate) solver: Solver,
    /// Iterations of a fit at most.
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) max_iter: usize,
    /// As for fit.
    #[arg(long, value_name = "T", default_value = "1e-7", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) tol: f64,
    /// ChaCha seed.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    /// Threads [default: all]; every fit has one as long as there are as many fits. Results do not depend on their number.
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) threads: Option<usize>,
    /// The summary as one JSON line: a list over ranks, with --from one object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Neither progress bar nor table.
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SpectrogramArgs {
    /// The sound: .wav or .flac. Several channels are averaged.
    pub(crate) sound: PathBuf,
    /// Array to write: .npy, frame/2 + 1 frequencies x frames.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// Samples per frame, an even number.
    #[arg(long, value_name = "N", default_value_t = 1024, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) frame: usize,
    /// Samples from frame to frame, at most half a frame [default: a quarter of a frame].
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) hop: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct SeparateArgs {
    /// The fitted model of the sound's spectrogram.
    pub(crate) model: PathBuf,
    /// The sound whose spectrogram it is a model of.
    pub(crate) sound: PathBuf,
    /// Folder for component_0.wav, component_1.wav, …; they add up to the sound.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// As for the spectrogram.
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) hop: Option<usize>,
}
