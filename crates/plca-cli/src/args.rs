//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Id, Parser, Subcommand, ValueEnum};

use plca_io::Sealed;
use plca_run::ranks::World;
use plca_run::{Family, Options, families, family};
use serde_json::Value;
use skellam_snmf::Rate;

use crate::models::Kind;
use crate::reading::{DataArgs, Sizes, dimension, sizes};
use plca_em::{Local, StepSize};
use plca_fit::{Solver, Stop};
use plca_priors::{PriorEntry, Priors, RatePriors};

/// Probabilistic latent-variable factorization of files.
#[derive(Debug, Parser)]
#[command(name = "plca", version, about, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Memory that .npz, .mat, .parquet and .gz files may take [default: 64 MiB plus 50 times the size of the file]
    ///
    /// Bytes, or KiB, MiB or GiB with K, M or G. A file that needs more is refused with the number.
    #[arg(long, value_name = "SIZE", value_parser = bytes, global = true)]
    pub(crate) unpack_limit: Option<u64>,
}

fn bytes(s: &str) -> Result<u64, String> {
    let (digits, unit) = match s.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => s.split_at(at),
        None => (s, ""),
    };
    let shift = match unit
        .to_ascii_uppercase()
        .trim_end_matches('B')
        .trim_end_matches('I')
    {
        "" => Some(0),
        "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        _ => None,
    };
    let number: Option<u64> = digits.parse().ok();
    let size = shift
        .zip(number)
        .and_then(|(shift, number)| number.checked_mul(1 << shift));
    size.ok_or_else(|| {
        "expected a number of bytes, such as 200000000, or one of KiB, MiB or GiB, such as 200M"
            .into()
    })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Estimate parameters.
    ///
    /// The output holds one array per block of the model, and metadata. docs/FILES.md of the source has the names, shapes and
    /// orientation of every model's arrays, the definition of every objective, and the formats of data.
    Fit(Box<FitArgs>),
    /// Activations, mixtures or factors of new data, with the learned factors fixed.
    Transform(TransformArgs),
    /// The approximation of the training data by the model.
    Reconstruct(ReconstructArgs),
    /// The contents of a model file.
    Inspect(InspectArgs),
    /// An array of a model file as a table: a line for every entry, a column for every component.
    Export(ExportArgs),
    /// Counts drawn from the fitted model.
    Sample(SampleArgs),
    /// Table of scores, one row for each number of components.
    ///
    /// For plsa and nmf-kl log_likelihood is the joint log-likelihood of the equivalent plca model. fit reports other values: the
    /// conditional log-likelihood for plsa, the divergence for nmf-kl.
    Select(SelectArgs),
    /// A folder of shards, into which data are cut along their samples, for `fit`
    Shard(ShardArgs),
    /// What many fits of one model agree on, for several numbers of components.
    ///
    /// For every rank (number of components) the components of all restarts, called spectra, are compared. Spectra without near neighbours
    /// are left out, the others are clustered, and the median of each cluster is a component of the consensus. A rank is stable if its
    /// clusters are well separated (silhouette), and good if the squared error of its approximation is small. docs/FILES.md of the source
    /// lists the arrays in the file.
    Consensus(ConsensusArgs),
    /// Priors learnt from one data set after the other, for `fit --priors`.
    ///
    /// Every data set is fitted by variational Bayes under the prior as learnt so far, and the prior is moved to where it explains the posteriors of
    /// all. The file holds the prior, and the learner with its statistics, with which --from goes on.
    Learn(LearnArgs),
    /// Repeat the fit that a model file records, with changed options if any are given.
    ///
    /// A model file records the options of its fit. The same data and options give bit-identical arrays.
    Refit(RefitArgs),
    /// Comparison of two fits of one model, component by component.
    ///
    /// Components are matched so that the sum of their cosines is largest; a cosine is the mean over the blocks of the model.
    Compare(CompareArgs),
    /// One page of HTML about a fit: configuration, weights, trace and components.
    Report(ReportArgs),
    /// Magnitude spectrogram of a sound, frequencies x frames.
    Spectrogram(SpectrogramArgs),
    /// One sound for each component of a model of a spectrogram, or for each of several trained sources.
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

/// The options that the command line gives.
pub(crate) fn given(command: &clap::Command, matches: &ArgMatches) -> Vec<String> {
    let Some((name, matches)) = matches.subcommand() else {
        return Vec::new();
    };
    let all = command.find_subcommand(name).into_iter();
    let all: Vec<&Arg> = all.flat_map(clap::Command::get_arguments).collect();
    let ids = matches.ids().map(Id::as_str);
    let given = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    // What is of every command is not among them.
    let named = given.filter_map(|id| all.iter().find(|arg| arg.get_id() == id)?.get_long());
    named.map(|name| format!("--{name}")).collect()
}

/// Groups of options in the help.
const DATA: &str = "Data";
const MODEL: &str = "Model";
const START: &str = "Start";
const PRIORS: &str = "Priors";
const SOLVER: &str = "Solver";
const STOPPING: &str = "Stopping";
const OUTPUT: &str = "Output";

/// A model by its name, or by that in files.
fn models() -> impl TypedValueParser<Value = Kind> {
    let names = families().iter();
    let names = names.map(|family| PossibleValue::new(family.name).help(family.about));
    let in_files = crate::models::models().iter();
    let in_files = in_files.filter(|entry| family(entry.name).is_none());
    let in_files = in_files.map(|entry| PossibleValue::new(entry.name).hide(true));
    PossibleValuesParser::new(names.chain(in_files)).try_map(|name| {
        let usual = family(&name).map(Family::usual);
        usual
            .or_else(|| plca_run::model(&name))
            .ok_or("unknown model")
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
        "Prior on every column of a block. An r after a weight makes it relative: a multiple of the counts of the component. One of {}; for w and h of nmf {}; for the activations of skellam gamma:SHAPE,RATE",
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

/// Whether a solver extrapolates the iterations of EM.
fn extrapolates(solver: Solver) -> bool {
    !matches!(solver, Solver::Em | Solver::Fast | Solver::Auto)
}

/// A solver that extrapolates EM; `none` is EM itself.
fn accelerations() -> impl TypedValueParser<Value = Solver> {
    let all = Solver::ALL.iter().copied();
    let names = all.filter(|solver| extrapolates(*solver));
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

/// A number that must be finite and not negative.
fn tolerance(s: &str) -> Result<f64, String> {
    let x = number(s)?;
    if x.is_finite() && x >= 0.0 {
        Ok(x)
    } else {
        Err(format!("{s} is not a finite number >= 0"))
    }
}

/// A time above 0.
fn seconds(s: &str) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(number(s)?);
    let time = time.ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| format!("{s} is not a number of seconds above 0"))
}

fn number(s: &str) -> Result<f64, String> {
    s.parse().map_err(|_| format!("`{s}` is not a number"))
}

/// A whole number, which may be 0.
fn whole<N: FromStr>(s: &str) -> Result<N, String> {
    s.parse()
        .map_err(|_| "a whole number >= 0 is needed".to_string())
}

/// A whole number of at least 1.
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

/// Most iterations for a batch and a tolerance that ends them: `N` or `N,TOL`.
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

/// Data that come in batches.
#[derive(Debug, Args)]
pub(crate) struct OnlineArgs {
    /// Learns from one batch after the other; or average, constant:RHO
    ///
    /// Only one batch is in memory at a time. DATA is a folder, whose files are the batches in the order of their names, or the
    /// first of several files. Batches follow each other along the last dimension (plsa, lda: along --samples). The t-th batch
    /// has the step size (t + T0)^-KAPPA, KAPPA in (0.5, 1]; with average its share of all counts so far (lda: of all documents); with
    /// constant:RHO always RHO in (0, 1].
    #[arg(long, value_name = "KAPPA,T0", value_parser = step_size, allow_hyphen_values = true, help_heading = DATA)]
    pub(crate) online: Option<StepSize>,
    /// --online: passes over all batches [default: 1]
    #[arg(long, value_name = "N", requires = "online", allow_negative_numbers = true, value_parser = at_least_one, help_heading = DATA)]
    pub(crate) passes: Option<u64>,
    /// --online: most E-steps for a batch [default: 50,1e-3]
    ///
    /// Stops earlier when an E-step moves at most the share TOL of the counts of the batch to other components.
    #[arg(long, value_name = "N[,TOL]", requires = "online", value_parser = local, allow_hyphen_values = true, help_heading = DATA)]
    pub(crate) local: Option<Local>,
}

#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// The model; `plca fit MODEL --help` lists its options on one page
    #[arg(value_parser = models())]
    pub(crate) model: Kind,
    /// .npy .npz .mat .mtx .tns .csv .tsv .svmlight .ldac docword.*.txt, or a folder of shards
    ///
    /// Text may be compressed: .gz behind the name. A build with the feature parquet also reads .parquet.
    pub(crate) data: PathBuf,
    /// More files of data, for --online
    #[arg(value_name = "BATCH")]
    pub(crate) blocks: Vec<PathBuf>,
    /// Number of components K, at least 1 [default: as in --init]
    #[arg(long, short = 'k', value_name = "K", help_heading = MODEL, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) rank: Option<usize>,
    #[command(flatten)]
    pub(crate) hidden: DataArgs,
    /// File for sparse data larger than memory, which are sorted into it
    ///
    /// Every iteration reads the file, and later runs on the same data use it again. The results are bit-identical with those of
    /// --solver em in memory. The data must not have hidden cells.
    #[arg(long, value_name = "FILE", help_heading = DATA)]
    pub(crate) out_of_core: Option<PathBuf>,
    /// Cuts the data into N shards of samples
    ///
    /// Shards are cut along the last dimension (plsa, lda: along --samples), and their sums are added in one fixed order, so that
    /// any number of machines with the same shards gives bit-identical results. A folder that `plca shard` made is already cut.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..), help_heading = DATA)]
    pub(crate) shards: Option<u32>,
    #[command(flatten)]
    pub(crate) stream: OnlineArgs,
    /// Seed of all random numbers (ChaCha)
    #[arg(long, value_name = "S", default_value_t = 0, help_heading = START, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    /// Number of starts, of which the best is kept
    #[arg(long, value_name = "R", default_value_t = 1, help_heading = START, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) restarts: u64,
    /// File of initial parameters: any blocks of the model
    ///
    /// Also a table, .csv, .tsv or .npy, of the one block that --freeze names, or a file of plca consensus.
    #[arg(long, value_name = "FILE", help_heading = START)]
    pub(crate) init: Option<PathBuf>,
    /// Blocks, components or entries that keep their values from --init
    ///
    /// What ends with .npz or .safetensors is a file of arrays of flags that are named like the blocks and have their shapes: 1 keeps the entry. If a
    /// column is a distribution, its other entries sum to 1 minus the kept ones.
    #[arg(long = "freeze", alias = "fix", value_name = "NAME[:Z/Z…]|FILE", value_delimiter = ',', help_heading = START)]
    pub(crate) fix: Vec<String>,
    /// The file of flags of --freeze.
    #[arg(long, value_name = "FILE", requires = "init", hide = true)]
    pub(crate) freeze_entries: Option<PathBuf>,
    /// Prior on every column of a block, repeatable
    #[arg(long, value_name = "BLOCK=SPEC", long_help = priors_help(), help_heading = PRIORS)]
    pub(crate) prior: Vec<String>,
    /// Priors for single entries: arrays such as BLOCK.dirichlet
    ///
    /// For rates (activations of skellam, w and h of nmf) the arrays are BLOCK.gamma_shape and BLOCK.gamma_rate.
    #[arg(long, value_name = "FILE", help_heading = PRIORS)]
    pub(crate) priors: Option<PathBuf>,
    /// Algorithm of the iterations
    ///
    /// auto chooses em if another option needs it, as --tol 0 does.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = solvers(), help_heading = SOLVER)]
    pub(crate) solver: Solver,
    /// The same as --solver, for those that extrapolate EM
    #[arg(long, value_name = "HOW", default_value = "none", value_parser = accelerations(), hide = true)]
    pub(crate) accelerate: Solver,
    /// Precision of the fit
    #[arg(long, value_name = "TYPE", default_value = "f64", help_heading = SOLVER)]
    pub(crate) precision: Precision,
    /// Threads [default: all]; results do not depend on their number
    #[arg(long, value_name = "N", help_heading = SOLVER, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) threads: Option<usize>,
    /// Largest number of iterations
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = STOPPING, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) max_iter: usize,
    /// Stops at this change per iteration and count; 0: never
    ///
    /// Stops when the objective changes by at most T per iteration from one check to the next, divided by the sum of the data (nats
    /// per count) or, for squared errors, by their sum of squares. 0 runs exactly --max-iter iterations, by em where --solver is auto; in Python tol=0 keeps the solver that
    /// auto chooses.
    #[arg(long, value_name = "T", default_value = "1e-7", value_parser = tolerance, allow_negative_numbers = true, help_heading = STOPPING)]
    pub(crate) tol: f64,
    /// Also stops at this residual of the optimality conditions, T >= 0
    ///
    /// Cannot be used with --tol 0.
    #[arg(long, value_name = "T", value_parser = tolerance, allow_negative_numbers = true, help_heading = STOPPING)]
    pub(crate) kkt_tol: Option<f64>,
    /// Iterations between checks of the objective
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = STOPPING, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) check_every: usize,
    /// Seconds that the fit may take, all its starts together
    ///
    /// Then the best of what there is is kept, after a warning. The result depends on the machine: the summary has the number of iterations, which --max-iter repeats.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true, help_heading = STOPPING)]
    pub(crate) time_limit: Option<Duration>,
    /// Model file to write: .npz or .safetensors
    #[arg(long, short, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: PathBuf,
    /// Checkpoint to write during the run
    #[arg(long, value_name = "FILE", requires = "checkpoint_every", help_heading = OUTPUT)]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Iterations between checkpoints
    #[arg(long, value_name = "N", requires = "checkpoint", allow_negative_numbers = true, value_parser = at_least_one, help_heading = OUTPUT)]
    pub(crate) checkpoint_every: Option<u64>,
    /// Continues from a checkpoint; bit-identical with an uninterrupted run
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) resume: Option<PathBuf>,
    /// File for one JSON line per check, written during the run
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) trace: Option<PathBuf>,
    /// Prints the summary as one JSON line on standard output
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Prints errors only: no progress bar, summary or warnings
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// Not an option: the output goes to standard output, which has no summary.
    #[arg(skip)]
    pub(crate) piped: bool,
    /// Not an option: the checksum of the data, once it was taken.
    #[arg(skip)]
    pub(crate) sealed: OnceLock<Sealed>,
    /// Not an option: what the line calls the model.
    #[arg(skip)]
    pub(crate) called: String,
    /// Not an option: the settings of the model.
    #[arg(skip)]
    pub(crate) options: Options,
    /// Not an option: what the command line asks for, in the form in which the model file records it.
    #[arg(skip)]
    pub(crate) request: Value,
    /// Not an option: the model file whose fit is made once more.
    #[arg(skip)]
    pub(crate) again: Option<PathBuf>,
    /// Not an option: the processes that hold the shards together, where there are several.
    #[arg(skip)]
    pub(crate) world: Option<Arc<World>>,
}

impl FitArgs {
    /// The option that asks for extrapolation, if there is one.
    pub(crate) fn extrapolated(&self) -> Option<&'static str> {
        match (self.accelerate, extrapolates(self.solver)) {
            (Solver::Em, false) => None,
            (Solver::Em, true) => Some("--solver"),
            _ => Some("--accelerate"),
        }
    }

    pub(crate) fn has_priors(&self) -> bool {
        !self.prior.is_empty() || self.priors.is_some()
    }
}

#[derive(Debug, Args)]
pub(crate) struct RefitArgs {
    /// The fitted model.
    pub(crate) model: PathBuf,
    /// Options of the recorded fit to leave out, by name without dashes: --without prior,seed.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) without: Vec<String>,
    /// Optionally other files of data; then --output FILE and any options of fit, which replace those of the recorded fit.
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
    /// Prints one JSON line.
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
    /// File with the names of the rows of the data, one per line, such as the words of a corpus. Components are then shown by the names of their largest entries.
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// Number of entries shown by name for every component.
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) top: usize,
    /// The file that fit --trace wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TransformArgs {
    /// The fitted model.
    pub(crate) model: PathBuf,
    /// New data. All dimensions but that of the observations have the size of the training data, or names that are found there.
    pub(crate) data: PathBuf,
    /// File to write: .npz or .safetensors.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) hidden: DataArgs,
    /// Dimension of the observations in the fit.
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = whole::<usize>, conflicts_with = "samples", hide = true)]
    pub(crate) along: Option<usize>,
    /// Largest number of iterations.
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) max_iter: usize,
    /// Stops when the certified gap of every observation is at most T or the objective no longer changes; 0 runs exactly
    /// --max-iter iterations.
    #[arg(long, value_name = "T", default_value = "1e-6", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) tol: f64,
    /// Algorithm of the iterations. By variational Bayes auto is em, and other solvers end at a bound that is at least as good as that of em.
    #[arg(long, default_value = "auto", value_parser = solvers())]
    pub(crate) solver: Solver,
    /// Explains every observation alone, as a batch of one: plca and skellam-cp then write weights of every observation, which do
    /// not depend on the others of the file. plsa, lda, nmf, pntf and skellam do so anyway; shifted models explain one recording.
    #[arg(long)]
    pub(crate) each: bool,
    /// Threads [default: all].
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) threads: Option<usize>,
    /// Prints the summary as one JSON line on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Not an option: the output goes to standard output, which has no summary.
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
    /// Prints the largest entries of every component of this array, such as the words of every topic.
    #[arg(long, value_name = "NAME")]
    pub(crate) array: Option<String>,
    /// Number of entries printed for every component.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "array", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) top: usize,
    /// File with the names of the entries, one per line, such as the words of a corpus [default: those of the data, if they had any].
    #[arg(long, value_name = "FILE", requires = "array")]
    pub(crate) labels: Option<PathBuf>,
    /// Prints one JSON line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The fitted model.
    pub(crate) model: PathBuf,
    /// The array, such as mixture; see plca inspect.
    #[arg(long, value_name = "NAME")]
    pub(crate) array: String,
    /// File to write: .csv, .tsv; or .npy, the array as it is.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// File with the names of the entries, one per line [default: those of the data, if they had any].
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// The fitted model.
    pub(crate) model: PathBuf,
    /// Number of events; for skellam the number of matrices drawn and summed.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) draws: u64,
    /// Seed of all random numbers (ChaCha).
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
    /// Evidence lower bound; only for Bayesian models.
    Elbo,
    /// Perplexity of a held-out tenth of the counts, each a pair of a row and a column; for data that are not whole numbers, divergence of a held-out tenth of the cells.
    HeldOut,
    /// Cross-validation: mean deviance of cells that are held out fold by fold. Data need not be counts; plca, plsa and nmf.
    Cv,
}

/// What chooses from cross-validated scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rule {
    /// The smallest score.
    Best,
    /// The smallest rank within one standard error of the best.
    OneSe,
    /// The smallest rank whose differences from the best, fold by fold, are on average within their own standard error.
    Paired,
}

/// Which zeros are in folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Zeros {
    /// Only cells above 0 are in folds; all zeros are trained on.
    Stored,
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
    /// Models by variational Bayes: priors, as for fit.
    #[arg(long, value_name = "BLOCK=SPEC")]
    pub(crate) prior: Vec<String>,
    /// Numbers of components: A..B (both included) or a list A,B,C.
    #[arg(long, value_name = "A..B")]
    pub(crate) ranks: String,
    /// siplca: extents of the kernels along each dimension. Of several, each is tried with every number of components.
    #[arg(long, value_name = "k0xk1x…,…", value_delimiter = ',', value_parser = sizes)]
    pub(crate) kernel: Vec<Sizes>,
    /// Not an option: what the line calls the model.
    #[arg(skip)]
    pub(crate) called: String,
    /// Not an option: whether Dirichlet shapes are 1/K where no prior says otherwise.
    #[arg(skip)]
    pub(crate) shapes_by_rank: bool,
    /// Not an option: the other settings of the model.
    #[arg(skip)]
    pub(crate) options: Options,
    /// The score; smaller is better [default: cv of plca, plsa and nmf; bic of siplca; models by variational Bayes: elbo].
    #[arg(long)]
    pub(crate) criterion: Option<Criterion>,
    #[command(flatten)]
    pub(crate) validation: ValidationArgs,
    #[command(flatten)]
    pub(crate) ends: StopArgs,
    /// Seed of all random numbers (ChaCha).
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    /// Number of starts for each number of components, of which the best is kept: that with the best objective on the data of its fit.
    #[arg(long, value_name = "R", default_value_t = 3, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) restarts: u64,
    /// Threads [default: all]. Fits of cv run side by side. Results do not depend on the number of threads.
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) threads: Option<usize>,
    /// Prints one JSON line.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar, and no warnings.
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Options of `--criterion cv`.
#[derive(Debug, Args)]
pub(crate) struct ValidationArgs {
    /// cv: number of folds of the cells.
    #[arg(long, value_name = "F", default_value_t = 5, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) folds: usize,
    /// cv: how often the cells are divided into folds anew. Costs as many fits, and brings no new data.
    #[arg(long, value_name = "R", default_value_t = 1, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) repeats: usize,
    /// cv: what chooses the number of components.
    #[arg(long, default_value = "best")]
    pub(crate) rule: Rule,
    /// cv: which zeros are in folds [default: all that were observed].
    #[arg(long, value_name = "WHICH")]
    pub(crate) zeros: Option<Zeros>,
    /// cv: share of the model of independent dimensions in every prediction, so that none is 0.
    #[arg(
        long,
        value_name = "E",
        default_value_t = 0.01,
        allow_negative_numbers = true
    )]
    pub(crate) smooth: f64,
    /// cv: the start of every fold, for every number of components K the blocks of the model as kK.BLOCK (k3.w, k3.h); --restarts then has no effect.
    #[arg(long, value_name = "STARTS.npz")]
    pub(crate) init: Option<PathBuf>,
    /// cv: algorithm of the iterations, as for fit.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = solvers())]
    pub(crate) solver: Solver,
}

/// When each of several fits ends.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Largest number of iterations of a fit.
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) max_iter: usize,
    /// Stops at this change of the objective per iteration and count, as fit does; 0: never.
    #[arg(long, value_name = "T", default_value = "1e-7", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) tol: f64,
}

impl StopArgs {
    pub(crate) fn stop(&self) -> Stop {
        let mut stop = Stop::default().max_iter(self.max_iter);
        stop.tol = Some(self.tol).filter(|&tol| tol > 0.0);
        stop
    }
}

#[derive(Debug, Args)]
pub(crate) struct LearnArgs {
    /// The model: skellam, with --method vb.
    #[arg(value_parser = models())]
    pub(crate) model: Kind,
    /// The data sets, in the order in which they are learnt from.
    #[arg(required = true)]
    pub(crate) data: Vec<PathBuf>,
    /// File to write after every data set (.npz): atoms.dirichlet, activations.gamma_shape, activations.gamma_rate.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// Number of components.
    #[arg(long, short = 'k', value_name = "K", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) rank: usize,
    /// Goes on with the learner of this file, which may be the one to write.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) hidden: DataArgs,
    /// Not an option: the settings of the model.
    #[arg(skip)]
    pub(crate) options: Options,
    /// Priors to start from, as for fit.
    #[arg(long, value_name = "BLOCK=SPEC", conflicts_with = "from")]
    pub(crate) prior: Vec<String>,
    /// One shape for all atoms, and one shape and one rate for all activations [default: one for every entry of the atoms, one for every component].
    #[arg(long, conflicts_with = "from")]
    pub(crate) shared: bool,
    /// Weight of a data set against all before: average, constant:R, or at-least:R.
    ///
    /// average: 1/t for the t-th. constant:R: R for all, earlier ones are forgotten. at-least:R: 1/t until that falls to R.
    #[arg(long, value_name = "RATE", default_value = "average", value_parser = learning_rate, conflicts_with = "from")]
    pub(crate) learning_rate: Rate,
    #[command(flatten)]
    pub(crate) ends: StopArgs,
    /// Seed of all random numbers (ChaCha).
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    /// Threads [default: all].
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) threads: Option<usize>,
    /// Prints one JSON line.
    #[arg(long)]
    pub(crate) json: bool,
    /// No summary and no warnings.
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// `average`, `constant:R` or `at-least:R`.
fn learning_rate(s: &str) -> Result<Rate, String> {
    let number = |s: &str| {
        let r = number(s)?;
        match r > 0.0 && r <= 1.0 {
            true => Ok(r),
            false => Err(format!("{s} is not a number in (0, 1]")),
        }
    };
    match s.split_once(':') {
        None if s == "average" => Ok(Rate::Average),
        Some(("constant", r)) => Ok(Rate::Constant(number(r)?)),
        Some(("at-least", r)) => Ok(Rate::AtLeast(number(r)?)),
        _ => Err("expected average, constant:R or at-least:R".into()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct ShardArgs {
    /// The data, without hidden cells.
    pub(crate) data: PathBuf,
    /// Folder to write, new or empty: it gets manifest.json and one file for each shard.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// Number of shards, which have about the same number of entries each; fewer shards are written if fewer samples have entries.
    #[arg(long, value_name = "N", default_value_t = 64, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) shards: u32,
    /// Dimension of the samples; rows is 0 and columns is 1 [default: the last].
    #[arg(long = "samples", alias = "along", value_name = "D", allow_negative_numbers = true, value_parser = dimension)]
    pub(crate) along: Option<usize>,
    /// Floating-point type of the shards and of their fits.
    #[arg(long, default_value = "f64")]
    pub(crate) precision: Precision,
    /// Size of each dimension of a .tns file [default: the largest index].
    #[arg(long, value_name = "I0xI1x…", value_parser = sizes)]
    pub(crate) shape: Option<Sizes>,
    /// .npz, .mat: the array to read, where there are several.
    #[arg(long, value_name = "NAME")]
    pub(crate) array: Option<String>,
    /// Accepts negative values, for skellam; shards are then dense files.
    #[arg(long)]
    pub(crate) signed: bool,
    /// Prints the summary as one JSON line on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConsensusArgs {
    /// Not an option: what the line calls the model.
    #[arg(skip)]
    pub(crate) called: String,
    /// The model: plca, plsa, nmf or pntf.
    #[arg(value_parser = models(), required_unless_present = "from", conflicts_with = "from")]
    pub(crate) model: Option<Kind>,
    /// The data, a matrix without hidden cells. Samples are its columns, or lie along --samples.
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
    /// Number of fits for every rank, from the same starts as those of plca fit --restarts.
    #[arg(long, value_name = "R", default_value_t = 100, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) restarts: u64,
    /// Fits made by another program, in place of MODEL and DATA: an .npz with the arrays spectra (one row for each component of each fit) and X
    /// (one row for each sample).
    #[arg(long, value_name = "SPECTRA.npz", requires = "rank")]
    pub(crate) from: Option<PathBuf>,
    /// --from: number of components K of every fit.
    #[arg(long, short = 'k', requires = "from", conflicts_with = "model", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) rank: Option<usize>,
    /// Keeps the spectra whose local density, the mean distance from their neighbours, is below D.
    #[arg(
        long,
        value_name = "D",
        default_value_t = 0.5,
        allow_negative_numbers = true
    )]
    pub(crate) threshold: f64,
    /// Number of neighbours of a spectrum, as a share of the number of restarts.
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.3,
        allow_negative_numbers = true
    )]
    pub(crate) neighbourhood: f64,
    /// Folder in which finished fits are saved. A later call with the same settings reads them from there.
    #[arg(long, value_name = "FOLDER", conflicts_with = "from")]
    pub(crate) runs: Option<PathBuf>,
    /// plsa: dimension of the given index y of P(z | y).
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u8).range(0..=1), conflicts_with = "samples", hide = true)]
    pub(crate) given: Option<u8>,
    /// Algorithm of the iterations, as for fit.
    #[arg(long, default_value = "auto", value_parser = solvers())]
    pub(crate) solver: Solver,
    #[command(flatten)]
    pub(crate) ends: StopArgs,
    /// Seed of all random numbers (ChaCha).
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    /// Threads [default: all]. Fits run side by side with one thread each while enough fits are left. Results do not depend on the number of threads.
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) threads: Option<usize>,
    /// Prints the summary as one JSON line: a list over ranks, or one object with --from.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar and no table.
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SpectrogramArgs {
    /// The sound: .wav or .flac. Several channels are averaged.
    pub(crate) sound: PathBuf,
    /// Array to write: .npy, frame/2 + 1 frequencies x frames; or .npz, which also keeps the sampling rate, the frame and the hop for `plca separate`.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// Samples per frame, an even number.
    #[arg(long, value_name = "N", default_value_t = 1024, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) frame: usize,
    /// Samples between the starts of two frames, at most half a frame [default: a quarter of a frame].
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) hop: Option<usize>,
    /// Not an option: the output goes to standard output, which has no summary.
    #[arg(skip)]
    pub(crate) piped: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SeparateArgs {
    /// The fitted model of the sound's spectrogram; or several, each of a source alone, at the sampling rate of the sound.
    #[arg(required = true, num_args = 1.., value_name = "MODEL")]
    pub(crate) models: Vec<PathBuf>,
    /// The sound whose spectrogram the model was fitted to; of several models, the mixture of their sources.
    pub(crate) sound: PathBuf,
    /// Folder for component_0.wav, component_1.wav, …, or for one file per source, named after its model; they add up to the sound.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    /// Explains the sound by the spectra of the model first: for a sound that it was not fitted to. Several models always do.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Also learns this many components from the sound, for what is in it besides the sources of the models. With too few the known sources take what is left, with many
    /// these explain the known sources as well: raise K until the log-likelihood stops rising sharply.
    ///
    /// They leave others.wav, and every model the sound of its source.
    #[arg(long, value_name = "K", default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) others: usize,
    /// Seed of the start of --others.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<u64>)]
    pub(crate) seed: u64,
    /// Power of the tempered EM that makes the spectra of sources broader, in (0, 1]; 1: as they are in the models. Spectra that fit one recording closely
    /// explain another one of the same source worse. Only for several models, or --others.
    #[arg(long, value_name = "B", default_value_t = 0.9, allow_negative_numbers = true, value_parser = number)]
    pub(crate) temper: f64,
    /// Samples between the starts of two frames, as for the spectrogram.
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = whole::<usize>)]
    pub(crate) hop: Option<usize>,
    /// No summary and no warnings.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The summary of the explanation as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
