//! `--out-of-core`: sparse data that stay in a file.

use plca_fit::{FitError, Solver};
use plca_io::{Element, Store, StoreWriter};
use plca_tensor::{DataError, OutOfCore};

use crate::args::FitArgs;
use crate::data::{Loaded, load_for, sealed};
use crate::failure::Failure;
use crate::interrupt;
use crate::models::options::{first_given, schedule};
use crate::outputs::{folder_of, warn, writable};

/// Extensions of files that are dense whatever is in them.
const DENSE: &[&str] = &[".npy"];

/// Refuses, before any work, what needs the data in memory.
pub(crate) fn check(args: &FitArgs) -> Result<(), Failure> {
    let Some(store) = &args.out_of_core else {
        return Ok(());
    };
    let needs_memory = [
        ("--online", args.stream.online.is_some()),
        ("--mask", args.hidden.mask.is_some()),
        ("--missing", args.hidden.missing.is_some()),
        ("--solver fast", args.solver == Solver::Fast),
    ];
    if let Some(option) = first_given(&needs_memory) {
        let what =
            format!("{option} cannot be combined with --out-of-core: it needs the data in memory");
        return Err(Failure::usage(what));
    }
    if schedule(args)?.is_some() {
        return Err(Failure::usage(
            "the schedule of --temper cannot be combined with --out-of-core: it needs the data in memory",
        ));
    }
    let name = args.data.to_string_lossy().to_lowercase();
    if args.hidden.transpose {
        return Err(Failure::usage(format!(
            "{} cannot be combined with --out-of-core: the store is of the data as they are in the file",
            args.hidden.turned_by()
        )));
    }
    if plca_io::is_table(&args.data) {
        return Err(Failure::usage(format!(
            "{}: --out-of-core cannot be used with a table, which is read whole: expected .mtx, .tns, docword.*.txt, .npz or .mat",
            args.data.display()
        )));
    }
    if DENSE.iter().any(|extension| name.ends_with(extension)) {
        return Err(Failure::usage(format!(
            "{}: --out-of-core is for sparse data, but these data are dense",
            args.data.display()
        )));
    }
    writable(store, &[])?;
    if store.exists() && !Store::<f64>::is_one(store)? {
        return Err(Failure::of(
            store,
            "exists and is not a store of sparse data: it is not overwritten",
        ));
    }
    Ok(())
}

/// The data of a fit, in memory or in their store.
pub(crate) fn load<T: Element>(args: &FitArgs) -> Result<Loaded<T>, Failure> {
    let Some(path) = &args.out_of_core else {
        return load_for(args.model, &args.data, &args.hidden);
    };
    let options = args.hidden.reading();
    let sha256 = sealed(args)?.sha256()?;
    if path.exists() {
        let reused = Store::<T>::open(path).and_then(|store| {
            store.made_from(&args.data, sha256, &options)?;
            Ok(OutOfCore::new(store))
        });
        let why = match reused {
            Ok(Ok(data)) => return Ok(Box::new(data)),
            Ok(Err(e @ DataError::Source { .. })) => e.to_string(),
            // The data are at fault, whatever holds them.
            Ok(Err(e)) => return Err(Failure::by(&args.data, e)),
            Err(e) => e.to_string(),
        };
        // No property of the model: the metadata are those of a run in memory.
        warn(args.quiet, &[format!("{why}; the store is made again")]);
    }
    let sorted = StoreWriter::<T>::read(&args.data, &options, folder_of(path))?;
    let written = interrupt::writing(|| sorted.write_while(path, || !interrupt::requested()));
    written.map_err(|e| match interrupt::requested() {
        true => interrupt::failure(),
        false => e.into(),
    })?;
    match OutOfCore::new(Store::<T>::open(path)?) {
        Ok(data) => Ok(Box::new(data)),
        Err(e @ DataError::Source { .. }) => Err(FitError::from(e).into()),
        Err(e) => Err(Failure::by(&args.data, e)),
    }
}
