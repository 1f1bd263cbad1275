//! `plca shard`, and `plca fit` of what it makes.

use std::path::Path;

use plca_fit::shards::{OnShards, Sharded, Shards};
use plca_io::{ReadOptions, ShardFolder, ShardManifest, write_shards};
use plca_tensor::{Data, cut, entries_along, even_ends};
use serde_json::{Value, json};

use crate::args::{FitArgs, Precision, ShardArgs};
use crate::blocks::Arrays;
use crate::checkpoint::settings;
use crate::data::{load_for, sealed};
use crate::failure::Failure;
use crate::given::start;
use crate::interrupt;
use crate::limits;
use crate::models::Scalar;
use crate::models::made::of_line;
use crate::models::options::{first_given, schedule};
use crate::outputs::report;
use crate::run::fit_on;
use plca_run::AnyModel;

/// `plca shard`.
pub(crate) fn run(args: &ShardArgs) -> Result<(), Failure> {
    let manifest = match args.precision {
        Precision::F64 => written::<f64>(args)?,
        Precision::F32 => written::<f32>(args)?,
    };
    let entries = manifest.shards.iter().map(|shard| shard.entries);
    let (sum, largest) = (entries.clone().sum::<u64>(), entries.max().unwrap_or(0));
    let shards = manifest.shards.len();
    let summary = json!({
        "shape": manifest.shape,
        "along": manifest.along,
        "shards": shards,
        "entries": sum,
        // Workers wait for the largest.
        "largest_to_mean": largest as f64 * shards as f64 / sum as f64,
    });
    report(args.json, false, &summary, &args.output)
}

fn written<T: Scalar>(args: &ShardArgs) -> Result<ShardManifest, Failure> {
    let options = ReadOptions {
        shape: args.shape.as_ref().map(|shape| shape.0.clone()),
        array: args.array.clone(),
        allow_negative: args.signed,
        unpack_limit: limits::unpack(),
        ..ReadOptions::default()
    };
    let written = interrupt::writing(|| {
        let proceed = || !interrupt::requested();
        write_shards::<T>(
            &args.data,
            &options,
            args.along,
            args.shards,
            &args.output,
            proceed,
        )
    });
    written.map_err(|e| match interrupt::requested() {
        true => interrupt::failure(),
        // Names, or a header of them.
        false if plca_io::is_table(&args.data) && e.word().is_some() => Failure::from(e)
            .and("shards keep no names: expected a table of numbers alone, or another format"),
        false => e.into(),
    })
}

/// Whether a fit is one of shards.
pub(crate) fn asked(args: &FitArgs) -> bool {
    args.shards.is_some() || args.data.is_dir()
}

/// Refuses what needs the data in one piece.
pub(crate) fn check(args: &FitArgs) -> Result<(), Failure> {
    let folder = args.data.is_dir();
    let in_one_piece = [
        ("--out-of-core", args.out_of_core.is_some()),
        ("--kkt-tol", args.kkt_tol.is_some()),
        ("--temper B,ETA", schedule(args)?.is_some()),
        ("--mask", folder && args.hidden.mask.is_some()),
        ("--missing", folder && args.hidden.missing.is_some()),
        ("--shape", folder && args.hidden.shape.is_some()),
        ("--array", folder && args.hidden.array.is_some()),
        ("--samples 0", folder && args.hidden.transpose),
        ("several files of data", !args.blocks.is_empty()),
    ];
    match first_given(&in_one_piece) {
        Some(option) => Err(Failure::usage(format!(
            "{option} cannot be used with shards"
        ))),
        None => Ok(()),
    }
}

/// Fits a model to shards: those of a folder, or those that the data are cut into.
pub(crate) fn fit<T: Scalar>(args: &FitArgs) -> Result<(), Failure> {
    // Before anything is read.
    sealed(args)?;
    if !args.data.is_dir() {
        let data = load_for::<T>(args.model, &args.data, &args.hidden)?;
        let (given, rank) = start(args, data.shape())?;
        let model = of_line(args, rank, data.shape())?;
        let model = sharded::<T>(args, &*model)?;
        let along = model.along(data.shape().len());
        let attempt = || {
            let ends = even_ends(&entries_along(&*data, along)?, args.shards.unwrap_or(1));
            cut(&*data, along, &ends)
        };
        let shards = attempt().map_err(|e| Failure::by(&args.data, e))?;
        return on(args, &*data, model, &shards, given, rank);
    }
    let folder = ShardFolder::<T>::open(&args.data)?;
    let (model, given, rank) = of_folder::<T>(args, folder.manifest())?;
    on(args, &folder, sharded(args, &*model)?, &folder, given, rank)
}

/// The same model as one of shards.
pub(crate) fn sharded<'a, T: Scalar>(
    args: &FitArgs,
    model: &'a dyn AnyModel,
) -> Result<&'a dyn Sharded<T>, Failure> {
    let name = &args.called;
    let sharded = T::of(model).sharded();
    sharded.ok_or_else(|| Failure::usage(format!("{name} cannot be fitted to shards")))
}

/// The model of the data in a folder, the blocks that are given and the number of components.
pub(crate) fn of_folder<T: Scalar>(
    args: &FitArgs,
    manifest: &ShardManifest,
) -> Result<(Box<dyn AnyModel>, Arrays, usize), Failure> {
    let (given, rank) = start(args, &manifest.shape)?;
    let model = of_line(args, rank, &manifest.shape)?;
    let (count, along) = (manifest.shards.len(), manifest.along);
    let wanted = sharded::<T>(args, &*model)?.along(manifest.shape.len());
    let what = match args.shards {
        Some(asked) if asked as usize != count => {
            format!("has {count} shards, --shards {asked} asks for others")
        }
        _ if wanted != along => return Err(cut_elsewhere(&args.data, along, wanted)),
        _ => return Ok((model, given, rank)),
    };
    Err(Failure::of(&args.data, what))
}

/// Refuses a folder of shards whose samples are others than those of the model.
pub(crate) fn cut_elsewhere(folder: &Path, along: usize, wanted: usize) -> Failure {
    let what = format!(
        "was cut along dimension {along}, but the samples of this model lie along dimension {wanted}"
    );
    Failure::of(folder, what)
}

/// What changes the numbers of a fit of this number of shards.
pub(crate) fn settings_of(args: &FitArgs, rank: usize, shards: u32) -> Result<Value, Failure> {
    let mut settings = settings(args, rank)?;
    settings["shards"] = json!(shards);
    Ok(settings)
}

/// Fits a model to shards of data.
fn on<T: Scalar>(
    args: &FitArgs,
    data: &dyn Data<T>,
    model: &dyn Sharded<T>,
    shards: &dyn Shards<T>,
    given: Arrays,
    rank: usize,
) -> Result<(), Failure> {
    let settings = settings_of(args, rank, shards.count())?;
    let model = OnShards::new(model, shards);
    fit_on(args, data, &model, given, None, settings)
}
