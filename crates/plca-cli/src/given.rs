//! What `--init`, `--fix` and `--rank` say together.

use plca_io::ModelFile;

use crate::args::{FitArgs, Precision};
use crate::blocks::Arrays;
use crate::failure::Failure;
use crate::limits::reasonable;
use crate::precision::check_single;

/// Checks the blocks named in `--init` and `--fix`; the initial values, and the rank that they imply.
pub(crate) fn blocks(args: &FitArgs, order: usize) -> Result<(Arrays, Option<usize>), Failure> {
    let names = args.model.blocks(order);
    let mut given = match &args.init {
        Some(path) => plca_io::read_model(path)?.arrays,
        None => Arrays::new(),
    };
    let known = |n: &&String| names.contains(n) || ModelFile::is_fact(n);
    let unknown = given.keys().find(|n| !known(n));
    if let (Some(name), Some(path)) = (unknown, &args.init) {
        let names = names.join(", ");
        let what = format!("`{name}` is no block of this model; there are {names}");
        return Err(Failure::of(path, what));
    }
    let free = args.model.free_blocks(order);
    if let Some(name) = args.fix.iter().find(|n| !free.contains(n)) {
        let free = free.join(", ");
        return Err(Failure::usage(format!(
            "--fix {name}: no block that can be fixed; there are {free}"
        )));
    }
    if let Some(name) = args.fix.iter().find(|n| !given.contains_key(*n)) {
        return Err(Failure::usage(format!(
            "--fix {name}: no initial value is given for it"
        )));
    }
    // The others always come from the data or the fit.
    given.retain(|name, _| free.contains(name));
    if let (Precision::F32, Some(path)) = (args.precision, &args.init) {
        check_single(path, &given)?;
    }
    let rank = given.iter().find_map(|(name, array)| {
        let axis = args.model.component_axis(name);
        array.shape.get(axis).copied()
    });
    Ok((given, rank))
}

/// The number of components, from `--rank` and `--init`.
pub(crate) fn rank(
    args: &FitArgs,
    implied: Option<usize>,
    shape: &[usize],
) -> Result<usize, Failure> {
    let rank = match (args.rank, implied) {
        (Some(0), _) => return Err(Failure::usage("--rank 0: at least one component is needed")),
        (Some(a), Some(b)) if a != b => {
            return Err(Failure::usage(format!(
                "--rank {a} disagrees with {b} components in --init"
            )));
        }
        (Some(k), _) | (None, Some(k)) => k,
        (None, None) => {
            return Err(Failure::usage(
                "--rank is needed where --init gives no block",
            ));
        }
    };
    reasonable("--rank", rank, shape)?;
    Ok(rank)
}
