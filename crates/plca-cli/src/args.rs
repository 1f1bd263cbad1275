//! The command line.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Id, Parser, Subcommand, ValueEnum};

use plca_io::Sealed;
use skellam_snmf::Replicates;

use crate::models::{Kind, MODELS};
use crate::solver;
use crate::table::TableArgs;
use plca_em::{Local, StepSize};
use plca_fit::{Anneal, Solver};
use plca_priors::{PriorEntry, Priors, RatePriors};

/// Probabilistic latent-variable factorization of files.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
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
    /// What many fits of one model agree on, for several numbers of components.
    ///
    /// Per rank the components of all restarts, spectra, are compared: those without near neighbours are left out, the others clustered, and the
    /// medians of a cluster are a component of the consensus. A rank is stable where the clusters are apart (silhouette), and good where
    /// their usages leave little of the data (squared error). docs/FILES.md of the source has the arrays that are written.
    Consensus(ConsensusArgs),
    /// Magnitudes of a sound, frequencies x frames.
    Spectrogram(SpectrogramArgs),
    /// One sound per component of a model of a spectrogram.
    Separate(SeparateArgs),
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
    /// skellam, skellam-vb: draws of which a datum is the mean: 1 for differences of counts, inf for real data, or any number
    /// between [default: inf].
    #[arg(long, value_name = "1|M|inf", value_parser = replicates)]
    pub(crate) m: Option<Replicates>,
    /// skellam, skellam-vb: takes data that are no whole numbers for --m 1 or --m M too.
    #[arg(long)]
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
    /// plca, plsa: learns from one block of the data after the other, which need not fit into memory together. DATA is a folder, whose files
    /// are the blocks in the order of their names, or the first of several files. Blocks follow each other along the last dimension,
    /// plsa: along the one that is given. The t-th block weighs (t + T0)^-KAPPA against all before it, KAPPA in (0.5, 1]; average:
    /// by its share of all counts so far; constant:RHO: always RHO in (0, 1].
    #[arg(long, value_name = "KAPPA,T0", value_parser = step_size, allow_hyphen_values = true)]
    pub(crate) online: Option<StepSize>,
    /// --online: passes over all blocks [default: 1].
    #[arg(long, value_name = "N", requires = "online", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) passes: Option<u64>,
    /// --online: E-steps for a block at most, fewer once a share of TOL of its counts changes its component [default: 50,1e-3].
    #[arg(long, value_name = "N[,TOL]", requires = "online", value_parser = local, allow_hyphen_values = true)]
    pub(crate) local: Option<Local>,
}

/// Sizes of the modes of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Sizes(pub(crate) Vec<usize>);

/// Data and what of them is hidden.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// Mask: a dense array of the data's shape (0 = hidden), or a coordinate file of the hidden cells.
    #[arg(long, value_name = "FILE")]
    pub(crate) mask: Option<PathBuf>,
    /// Which cells count as missing.
    #[arg(long)]
    pub(crate) missing: Option<MissingCells>,
    /// Size of each mode, for .tns files whose largest indices do not say it; --online: of every block.
    #[arg(long, value_name = "I0xI1x…", value_parser = sizes)]
    pub(crate) shape: Option<Sizes>,
    #[command(flatten)]
    pub(crate) table: TableArgs,
}

/// Kernels, and where and how they are shifted.
#[derive(Debug, Args)]
pub(crate) struct ShiftArgs {
    /// siplca: extent of the kernels along each dimension; that of the data, for no shift along it [default: as in --init].
    #[arg(long, value_name = "k0xk1x…", value_parser = sizes)]
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
    /// tiplca: rotations by 360 i/N degrees [default: 1].
    #[arg(long, value_name = "N", conflicts_with = "angles", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rotations: Option<u16>,
    /// tiplca: rotations by these angles, in degrees.
    #[arg(
        long,
        value_name = "A,B,…",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) angles: Vec<f64>,
    /// tiplca: sizes, in multiples of the kernel's own [default: 1].
    #[arg(
        long,
        value_name = "S,T,…",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) scales: Vec<f64>,
    /// tiplca: mirrored kernels too.
    #[arg(long)]
    pub(crate) mirror: bool,
    /// tiplca: where transformed kernels may lie [default: valid].
    #[arg(long)]
    pub(crate) positions: Option<BoxPositions>,
}

/// Where and how kernels are shifted.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// siplca: where kernels may lie, for all dimensions or for each [default: valid].
    #[arg(long, value_delimiter = ',')]
    pub(crate) domain: Vec<Domain>,
    /// siplca: what is maximised where kernels may run off the data [default: conditional].
    #[arg(long)]
    pub(crate) likelihood: Option<Likelihood>,
    /// siplca: raises the kernels to a power that grows from ALPHA0 in (0, 1] to 1 within T iterations.
    #[arg(long, value_name = "ALPHA0,T", value_parser = anneal, allow_hyphen_values = true)]
    pub(crate) anneal: Option<Anneal>,
    /// siplca: raises the impulses to a power A >= 1, which falls to 1 within T iterations if T is given.
    #[arg(long, value_name = "A[,T]", value_parser = power, allow_hyphen_values = true)]
    pub(crate) impulse_power: Option<Anneal>,
}

#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// The model.
    #[arg(value_parser = models())]
    pub(crate) model: Kind,
    /// The data: .npy .npz .mtx .tns .csv .tsv (the last four also .gz).
    pub(crate) data: PathBuf,
    /// More files of data, for --online.
    #[arg(value_name = "BLOCK")]
    pub(crate) blocks: Vec<PathBuf>,
    /// Model file to write: .npz or .safetensors.
    #[arg(long, short)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) hidden: DataArgs,
    /// plca, plsa, nmf-kl: sparse data larger than memory. They are sorted into this file, which is read in every iteration and is used
    /// again by runs on the same data; the results are those of --solver em in memory, to the bit. Needs data of which nothing is hidden.
    #[arg(long, value_name = "FILE")]
    pub(crate) out_of_core: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) stream: OnlineArgs,
    /// Number of components K.
    #[arg(long, short = 'k')]
    pub(crate) rank: Option<usize>,
    /// Iterations at most.
    #[arg(long, default_value_t = 1000)]
    pub(crate) max_iter: usize,
    /// Stops when the objective changes by at most T per iteration from one check to the next, relative to the sum of the data (nats
    /// per count; of squares for squared errors); 0 runs exactly --max-iter iterations.
    #[arg(long, value_name = "T", default_value = "1e-7", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) tol: f64,
    /// Also stops when the residual of the optimality conditions is at most this; not with --tol 0.
    #[arg(long, value_name = "T", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) kkt_tol: Option<f64>,
    /// Iterations between checks of the objective.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) check_every: usize,
    /// ChaCha seed of everything drawn.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Best of this many starts.
    #[arg(long, value_name = "R", default_value_t = 1)]
    pub(crate) restarts: u64,
    /// Initial parameters, any blocks of the model.
    #[arg(long, value_name = "FILE")]
    pub(crate) init: Option<PathBuf>,
    /// Blocks that stay as they are in --init; with components behind the name only these of them.
    #[arg(long, value_name = "NAME[:Z/Z…]", value_delimiter = ',')]
    pub(crate) fix: Vec<String>,
    /// Entries that stay as they are in --init: arrays of flags named as the blocks, in their shapes. The others of a column that is a
    /// distribution share what is left of 1.
    #[arg(long, value_name = "FILE", requires = "init")]
    pub(crate) freeze_entries: Option<PathBuf>,
    #[arg(long, value_name = "BLOCK=SPEC", help = priors_help())]
    pub(crate) prior: Vec<String>,
    /// Priors per entry: arrays named BLOCK.dirichlet; of rates (skellam, nmf-kl) BLOCK.gamma_shape and BLOCK.gamma_rate.
    #[arg(long, value_name = "FILE")]
    pub(crate) priors: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shifts: ShiftArgs,
    #[command(flatten)]
    pub(crate) turns: TurnArgs,
    /// plsa: the dimension that is given.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) given: Option<u8>,
    /// nmf-kl: form of the update [default: simultaneous].
    #[arg(long)]
    pub(crate) update: Option<Update>,
    #[command(flatten)]
    pub(crate) signed: SignedArgs,
    /// skellam-cp, skellam-cp-vb: the dimension whose factor is signed [default: 0].
    #[arg(long, value_name = "D")]
    pub(crate) signed_mode: Option<usize>,
    /// skellam-cp, skellam-cp-vb: the dimension whose factor carries the scale [default: none, weights do].
    #[arg(long, value_name = "R")]
    pub(crate) scale_mode: Option<usize>,
    /// skellam: least value of every factor, for priors with shapes below 1 [default: 0].
    #[arg(long, value_name = "X", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) floor: Option<f64>,
    /// pntf: rewards the squares of a block's columns with weight MU >= 0, so that they become sparse.
    #[arg(long, value_name = "BLOCK=MU")]
    pub(crate) sparsity: Vec<String>,
    /// pntf: takes the data as they are, not divided by their sum.
    #[arg(long)]
    pub(crate) no_normalise: bool,
    /// kmeans: the first centres [default: plus-plus].
    #[arg(long)]
    pub(crate) seeding: Option<Seeding>,
    /// plca, plsa: tempered EM with power B in (0, 1], throughout if there is no ETA. With ETA in (0, 1) a tenth of the counts is held out: a power is kept as long as
    /// every iteration lowers their perplexity by more than --tol times its value, then it is multiplied by ETA, until
    /// that no longer helps (--tol 0: until the end).
    #[arg(long, value_name = "B[,ETA]")]
    pub(crate) temper: Option<String>,
    /// plca: raises P(z) to the tempering power too.
    #[arg(long)]
    pub(crate) temper_prior: bool,
    /// How missing cells are treated [default: imputation; nmf-kl: multiplicative].
    #[arg(long)]
    pub(crate) missing_method: Option<MissingMethod>,
    /// How iterations are made; auto is em where another option asks for it, as --tol 0 does.
    #[arg(long, default_value = "auto", value_parser = solvers())]
    pub(crate) solver: Solver,
    /// The same as --solver, for the solvers that extrapolate EM.
    #[arg(long, default_value = "none", value_parser = accelerations())]
    pub(crate) accelerate: Solver,
    /// Scalars of the fit.
    #[arg(long, default_value = "f64")]
    pub(crate) precision: Precision,
    /// Threads [default: all]; results do not depend on their number.
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// Checkpoint to write during the run.
    #[arg(long, value_name = "FILE", requires = "checkpoint_every")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Iterations between checkpoints.
    #[arg(long, value_name = "N", requires = "checkpoint", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) checkpoint_every: Option<u64>,
    /// Continue from a checkpoint: bit-identical to a run without the interruption.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// File of a JSON line per checked iteration: iteration, objective, seconds.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The summary as one JSON line on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// No option: the checksum of the data, once it was taken.
    #[arg(skip)]
    pub(crate) sealed: OnceLock<Sealed>,
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
    #[arg(long, value_name = "D")]
    pub(crate) along: Option<usize>,
    /// Iterations at most.
    #[arg(long, default_value_t = 1000)]
    pub(crate) max_iter: usize,
    /// Stops when the certified gap of every observation is at most T, or the objective changes no more; 0 runs exactly
    /// --max-iter iterations.
    #[arg(long, value_name = "T", default_value = "1e-6", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) tol: f64,
    /// How iterations are made.
    #[arg(long, default_value = "auto", value_parser = solvers())]
    pub(crate) solver: Solver,
    /// Threads [default: all].
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// The summary as one JSON line on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar.
    #[arg(long)]
    pub(crate) quiet: bool,
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
    #[arg(long, value_name = "N", default_value_t = 10, requires = "array")]
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
    #[arg(long, value_name = "N")]
    pub(crate) draws: u64,
    /// ChaCha seed.
    #[arg(long, default_value_t = 0)]
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
    #[arg(long, default_value_t = 1000)]
    pub(crate) max_iter: usize,
    /// As for fit.
    #[arg(long, value_name = "T", default_value = "1e-7", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) tol: f64,
    /// ChaCha seed.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Best of this many starts for each number.
    #[arg(long, value_name = "R", default_value_t = 3)]
    pub(crate) restarts: u64,
    /// Threads [default: all].
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// As one JSON line.
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar.
    #[arg(long)]
    pub(crate) quiet: bool,
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
    #[arg(long, value_name = "R", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) restarts: u64,
    /// Fits made elsewhere, in place of MODEL and DATA: an .npz with the arrays spectra, a row for each component of each fit, and X, a row
    /// for each sample.
    #[arg(long, value_name = "SPECTRA.npz", requires = "rank")]
    pub(crate) from: Option<PathBuf>,
    /// --from: number of components K of every fit.
    #[arg(long, short = 'k', requires = "from", conflicts_with = "model")]
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
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) given: Option<u8>,
    /// As for fit.
    #[arg(long, default_value = "auto", value_parser = solvers())]
    pub(crate) solver: Solver,
    /// Iterations of a fit at most.
    #[arg(long, default_value_t = 1000)]
    pub(crate) max_iter: usize,
    /// As for fit.
    #[arg(long, value_name = "T", default_value = "1e-7", value_parser = tolerance, allow_negative_numbers = true)]
    pub(crate) tol: f64,
    /// ChaCha seed.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Threads [default: all]; every fit has one as long as there are as many fits. Results do not depend on their number.
    #[arg(long)]
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
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) frame: usize,
    /// Samples from frame to frame, at most half a frame [default: a quarter of a frame].
    #[arg(long, value_name = "R")]
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
    #[arg(long, value_name = "R")]
    pub(crate) hop: Option<usize>,
}
