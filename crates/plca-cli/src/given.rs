//! What `--init`, `--freeze` and `--rank` say together.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use nalgebra::DMatrix;
use plca_fit::blocks::Frozen;
use plca_io::{Array, DataFile, ModelFile, ReadOptions};
use serde_json::{Value, json};

use crate::args::{FitArgs, Precision};
use crate::blocks::{Arrays, matrix};
use crate::data::sealed;
use crate::failure::Failure;
use crate::limits::{self, reasonable};
use crate::models::known;
use crate::models::options::{has, refuse};
use crate::named::{self, dimension};
use crate::precision::check_single;

/// Takes the file out of what `--freeze` names: the words that end as files of arrays do.
pub(crate) fn split(args: &mut FitArgs) -> Result<(), Failure> {
    let is_file = |word: &String| word.ends_with(".npz") || word.ends_with(".safetensors");
    let (files, names): (Vec<String>, Vec<String>) = args.fix.drain(..).partition(is_file);
    args.fix = names;
    for file in files {
        refuse(
            !has(args.model, "--freeze-entries"),
            "--freeze FILE",
            &args.called,
        )?;
        if let Some(other) = args.freeze_entries.replace(file.clone().into()) {
            let other = other.display();
            return Err(Failure::usage(format!(
                "--freeze {file}: {other} is named too: expected one file"
            )));
        }
    }
    Ok(())
}

/// The blocks that are given, and the number of components.
pub(crate) fn start(args: &FitArgs, shape: &[usize]) -> Result<(Arrays, usize), Failure> {
    let (mut given, implied) = blocks(args, shape.len())?;
    let rank = rank(args, implied, shape)?;
    let foreign = foreign(args, &given)?;
    given.retain(|name, _| !foreign.contains(name));
    Ok((given, rank))
}

/// Checks the blocks named in `--init` and `--freeze`; the initial values, and the rank that they imply.
pub(crate) fn blocks(args: &FitArgs, order: usize) -> Result<(Arrays, Option<usize>), Failure> {
    let free = args.model.free_blocks(order);
    let block = |fix: &str| fix.split(':').next().map(String::from).unwrap_or_default();
    for fix in &args.fix {
        let name = block(fix);
        if !free.contains(&name) {
            let free = free.join(", ");
            let form = match name.parse::<usize>() {
                Ok(_) => "; components are divided by /, as in w:0/1",
                Err(_) => "",
            };
            let what = format!("--freeze {fix}: unknown block; expected one of {free}{form}");
            return Err(Failure::usage(what));
        }
    }
    let names = args.model.blocks(order);
    let mut given = match &args.init {
        Some(path) => initial(args, path)?,
        None => Arrays::new(),
    };
    // Posterior means stand beside the shapes that they follow from.
    let mean = |n: &str| {
        names
            .iter()
            .any(|name| name.strip_suffix("_shape") == Some(n))
    };
    let known = |n: &&String| names.contains(n) || ModelFile::is_fact(n) || mean(n);
    let unknown = given.keys().find(|n| !known(n));
    if let (Some(name), Some(path)) = (unknown, &args.init) {
        let names = names.join(", ");
        let what = format!("unknown block `{name}`; expected one of {names}");
        return Err(Failure::of(path, what));
    }
    if let Some(fix) = args.fix.iter().find(|fix| !given.contains_key(&block(fix))) {
        return Err(Failure::usage(format!(
            "--freeze {fix}: it has no initial value: --init FILE must hold the block"
        )));
    }
    let alone = |n: &&String| mean(n) && !given.contains_key(&format!("{n}_shape"));
    if let (Some(name), Some(path)) = (given.keys().find(alone), &args.init) {
        let what = format!(
            "`{name}` is the mean of `{name}_shape` and starts nothing: give `{name}_shape`, the prior plus counts, such as 1 + 1000 times a probability"
        );
        return Err(Failure::of(path, what));
    }
    // The others always come from the data or the fit.
    given.retain(|name, _| free.contains(name));
    if let (true, Some(path)) = (given.is_empty(), &args.init) {
        let what = format!("no block starts a fit; expected one of {}", free.join(", "));
        return Err(Failure::of(path, what));
    }
    if let (Precision::F32, Some(path)) = (args.precision, &args.init) {
        check_single(path, &given)?;
    }
    let rank = given.iter().find_map(|(name, array)| {
        let axis = args.model.component_axis(name)?;
        array.shape.get(axis).copied()
    });
    Ok((given, rank))
}

/// Refuses initial values of kernels, atoms and what they are multiplied by that have as many numbers as they need in another shape, such as that of their transpose. What has other numbers
/// is refused, or left out, where the fit begins.
pub(crate) fn stacks(
    args: &FitArgs,
    order: usize,
    rank: usize,
    extents: &[(&str, &[usize])],
) -> Result<(), Failure> {
    let Some(path) = &args.init else {
        return Ok(());
    };
    let (given, _) = blocks(args, order)?;
    for (name, array) in &given {
        let of_block = |&&(block, _): &&(&str, &[usize])| name.split('_').next() == Some(block);
        let Some((_, extents)) = extents.iter().find(of_block) else {
            continue;
        };
        let expected = [&[rank], *extents].concat();
        let same = array.values.len() == expected.iter().product::<usize>();
        if same && array.shape != expected {
            let what = format!(
                "`{name}` has shape {:?}, expected {expected:?}",
                array.shape
            );
            return Err(Failure::of(path, what));
        }
    }
    Ok(())
}

/// Whether a file holds one array.
fn is_table(path: &Path) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".csv", ".tsv", ".npy"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

/// The metadata of a file of initial values.
pub(crate) fn metadata(path: &Path) -> Result<Value, Failure> {
    match is_table(path) {
        true => Ok(Value::Null),
        false => Ok(crate::saved::arrays(path)?.metadata),
    }
}

/// The only block that --freeze names, whose columns a table holds.
fn table(args: &FitArgs, path: &Path) -> Result<(String, Array<f64>), Failure> {
    let [fix] = &args.fix[..] else {
        let what = "is one array: --freeze BLOCK must name the block that it is, and no other";
        return Err(Failure::of(path, what));
    };
    let mut options = ReadOptions {
        unpack_limit: limits::unpack(),
        allow_nan: true,
        allow_negative: true,
        ..ReadOptions::default()
    };
    if plca_io::is_table(path) {
        options.table = args.hidden.table.reading();
    }
    let array = match plca_io::read_data_with::<f64>(path, &options)? {
        DataFile::Dense(array) => array,
        DataFile::Sparse(_) => return Err(Failure::of(path, "is no dense array")),
    };
    let array = match array.shape[..] {
        [rows, columns] if array.fortran => matrix(&DMatrix::from_vec(rows, columns, array.values)),
        _ => array,
    };
    if let [rows, _] = array.shape[..]
        && rows >= named::AXIS
        && args.hidden.table.labels.is_none()
        && path
            .extension()
            .is_none_or(|ending| !ending.eq_ignore_ascii_case("npy"))
    {
        let columns = array.values.len() / rows;
        let first: Vec<f64> = array.values.iter().step_by(columns).copied().collect();
        if let Some(run) = named::runs(&first) {
            let what = format!(
                "its first column {run}s from row to row as an axis does: --labels first-column takes it for names, of the data too; where the data have none, take it out of the table; a component that does so is read from .npy"
            );
            return Err(Failure::of(path, what));
        }
    }
    let block = fix.split(':').next().unwrap_or_default();
    Ok((block.to_string(), array))
}

/// The arrays of a file of initial values; a table holds that of `--freeze`. Of a consensus, its spectra for `--rank` as the block that has the components.
fn initial(args: &FitArgs, path: &Path) -> Result<Arrays, Failure> {
    if is_table(path) {
        return Ok(Arrays::from([table(args, path)?]));
    }
    let ModelFile { arrays, metadata } = crate::saved::arrays(path)?;
    if metadata["model"] != "consensus" {
        return Ok(arrays);
    }
    let features = match has(args.model, "--given") {
        true => 1 - args.options.get::<usize>("given")?.unwrap_or(1).min(1),
        false => 0,
    };
    let factor = format!("factor_{features}");
    let known = ["basis", "w", &factor];
    let blocks = args.model.free_blocks(2);
    let Some(block) = blocks.into_iter().find(|name| known.contains(&&**name)) else {
        let name = &args.called;
        return Err(Failure::of(
            path,
            format!("is a consensus, and {name} has none"),
        ));
    };
    let spectra = arrays
        .into_iter()
        .filter(|(name, _)| name.ends_with("consensus_spectra"));
    let columns = |(_, array): (String, Array<f64>)| match array.shape[..] {
        // Its rows are the columns of the block.
        [k, features] => Some(matrix(&DMatrix::from_vec(features, k, array.values))),
        _ => None,
    };
    let mut spectra: Vec<Array<f64>> = spectra.filter_map(columns).collect();
    let ranks = spectra.iter().filter_map(|array| array.shape.last());
    let ranks: Vec<String> = ranks.map(usize::to_string).collect();
    if let Some(rank) = args.rank {
        spectra.retain(|array| array.shape.last() == Some(&rank));
    }
    match <[_; 1]>::try_from(spectra) {
        Ok([array]) => Ok(Arrays::from([(block, array)])),
        Err(_) => {
            let ranks = ranks.join(", ");
            let what = format!(
                "is a consensus for these numbers of components: {ranks}; expected one of them as --rank"
            );
            Err(Failure::of(path, what))
        }
    }
}

/// What the components that `--freeze` keeps are called in `--init`, by the columns of a table or by another fit; nothing if none has a name.
pub(crate) fn called(args: &FitArgs) -> Result<Value, Failure> {
    let Some(path) = &args.init else {
        return Ok(Value::Null);
    };
    let mut names = match is_table(path) {
        true => {
            let columns = plca_io::read_names(path, &args.hidden.reading())?.pop();
            json!(columns.flatten())
        }
        // Metadata of others may be no object.
        false => metadata(path)?
            .get("components")
            .cloned()
            .unwrap_or_default(),
    };
    let whole = args.fix.iter().any(|fix| !fix.contains(':'));
    let kept: HashSet<usize> = (args.fix.iter())
        .filter_map(|fix| fix.split_once(':'))
        .flat_map(|(_, components)| components.split('/').filter_map(|z| z.parse().ok()))
        .collect();
    let Value::Array(all) = &mut names else {
        return Ok(Value::Null);
    };
    let others = all.iter_mut().enumerate();
    let others = others.filter(|(z, _)| !whole && !kept.contains(z));
    others.for_each(|(_, name)| *name = Value::Null);
    let any = all.iter().any(Value::is_string);
    Ok(if any { names } else { Value::Null })
}

/// Where `--freeze` keeps blocks of a fit of other data, the other blocks of that fit: what is 0 there would stay 0.
pub(crate) fn foreign(args: &FitArgs, given: &Arrays) -> Result<Vec<String>, Failure> {
    let Some(path) = args.init.as_ref().filter(|_| !args.fix.is_empty()) else {
        return Ok(Vec::new());
    };
    match metadata(path)?["data"]["sha256"].as_str() {
        Some(then) if then != sealed(args)?.sha256()? => {}
        _ => return Ok(Vec::new()),
    }
    let foreign = given.keys().filter(|name| !is_fixed(args, name));
    Ok(foreign.cloned().collect())
}

/// A warning of what a start does not take from `--init`.
pub(crate) fn left_out(args: &FitArgs, order: usize) -> Result<Option<String>, Failure> {
    let foreign = foreign(args, &blocks(args, order)?.0)?;
    Ok((!foreign.is_empty()).then(|| {
        format!(
            "not kept of --init, since they are of other data: {}, which begin at random; the blocks of --freeze are kept",
            named::quoted(&foreign)
        )
    }))
}

/// Whether `--freeze` names a block, or some of its components.
fn is_fixed(args: &FitArgs, block: &str) -> bool {
    args.fix
        .iter()
        .any(|fix| fix.split(':').next() == Some(block))
}

/// Brings the entries of initial blocks into the order of the data, where both say what they are called. Blocks that are kept must have the names of the data.
pub(crate) fn arrange(
    args: &FitArgs,
    settings: &Value,
    names: &[Option<Vec<String>>],
    given: &mut Arrays,
) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    let Some(path) = &args.init else {
        return Ok(warnings);
    };
    let learnt = metadata(path)?;
    let of_table = match is_table(path) {
        true => plca_io::read_names(path, &args.hidden.reading())?,
        false => Vec::new(),
    };
    let called = |block: &str| match (is_table(path), known(&learnt)) {
        (true, _) => of_table.first()?.clone(),
        (_, Some(kind)) => named::of(&learnt, dimension(kind, &learnt["settings"], block)?),
        (_, None) if learnt["model"] == "consensus" => {
            let samples = learnt["of"]["given"].as_u64().unwrap_or(1).min(1);
            named::of(&learnt, 1 - samples as usize)
        }
        _ => None,
    };
    for (block, array) in given.iter_mut() {
        let own = dimension(args.model, settings, block);
        let own = own.and_then(|d| names.get(d)?.as_ref());
        let axis = usize::from(args.model.component_axis(block) == Some(0));
        let (Some(own), Some(there)) = (own, called(block)) else {
            continue;
        };
        if *own == there || array.shape.get(axis) != Some(&there.len()) {
            continue;
        }
        match named::order(own, &there) {
            Ok(order) => {
                if args.freeze_entries.is_some() {
                    let what = format!(
                        "`{block}` has the names of the data in another order, which the file of --freeze does not follow"
                    );
                    return Err(Failure::of(path, what));
                }
                if let more @ 1.. = there.len() - order.len() {
                    let other = there.iter().position(|name| !own.contains(name));
                    let other = other.map(|at| named::quoted(&there[at..=at]));
                    warnings.push(format!(
                        "{more} of the {} entries of `{block}` in --init are left out, such as {}: the data do not have these names",
                        there.len(),
                        other.unwrap_or_default()
                    ));
                }
                *array = taken(array, axis, &order);
            }
            Err(other)
                if of_table
                    .get(1)
                    .and_then(Option::as_ref)
                    .is_some_and(|columns| columns.contains(&other)) =>
            {
                let what = format!(
                    "`{block}` has {} as a column: expected the table the other way round, a component in each column",
                    named::quoted(&[other])
                );
                return Err(Failure::of(path, what));
            }
            Err(other) if is_fixed(args, block) => {
                let what = format!(
                    "`{block}` has no entry {}: expected the names of the data, in any order; plca transform leaves out what a model does not have",
                    named::quoted(&[other])
                );
                return Err(Failure::of(path, what));
            }
            Err(_) => {}
        }
    }
    Ok(warnings)
}

/// An array with its entries along an axis in this order.
fn taken(array: &Array<f64>, axis: usize, order: &[usize]) -> Array<f64> {
    let inner: usize = array.shape[axis + 1..].iter().product();
    let size = array.shape[axis];
    let blocks = array.values.chunks_exact((size * inner).max(1));
    let values = blocks.flat_map(|block| {
        order
            .iter()
            .flat_map(move |&i| &block[i * inner..(i + 1) * inner])
    });
    let mut shape = array.shape.clone();
    shape[axis] = order.len();
    Array::new(shape, values.copied().collect())
}

/// The blocks that `--freeze` names, and the part of each.
pub(crate) fn frozen(args: &FitArgs, shape: &[usize]) -> Result<BTreeMap<String, Frozen>, Failure> {
    let mut named = BTreeMap::new();
    for fix in &args.fix {
        let bad = |what: String| Failure::usage(format!("--freeze {fix}: {what}"));
        let (name, frozen) = match fix.split_once(':') {
            None => (&**fix, Frozen::Whole),
            Some((name, components)) => {
                let number = |z: &str| {
                    let bad = |_| bad(format!("`{z}` is not the number of a component"));
                    z.parse::<usize>().map_err(bad)
                };
                let components = components.split('/').map(number);
                (
                    name,
                    Frozen::Components(components.collect::<Result<_, _>>()?),
                )
            }
        };
        if named.insert(name.to_string(), frozen).is_some() {
            return Err(bad(format!("`{name}` is named twice")));
        }
    }
    let Some(path) = &args.freeze_entries else {
        return Ok(named);
    };
    let (given, _) = blocks(args, shape.len())?;
    let free = args.model.free_blocks(shape.len());
    for (name, array) in crate::saved::arrays(path)?.arrays {
        let bad = |what: String| Failure::of(path, format!("`{name}`: {what}"));
        if !free.contains(&name) {
            let free = free.join(", ");
            return Err(bad(format!("unknown block; expected one of {free}")));
        }
        let Some(start) = given.get(&name) else {
            return Err(bad(
                "it has no initial value: --init FILE must hold the block".into(),
            ));
        };
        if array.shape != start.shape {
            let (got, expected) = (&array.shape, &start.shape);
            return Err(bad(format!(
                "flags have shape {got:?}, the block has {expected:?}"
            )));
        }
        if named.contains_key(&name) {
            return Err(bad("--freeze names it too".into()));
        }
        let other = array.values.iter().position(|&x| x != 0.0 && x != 1.0);
        if let Some(at) = other {
            let (value, index) = (array.values[at], array.index(at));
            return Err(bad(format!(
                "{value} at {index:?}: expected 1 where an entry is frozen and 0 elsewhere"
            )));
        }
        let flags = args.model.block(&name, &array).map_err(bad)?;
        named.insert(name, Frozen::Entries(flags.map(|flag| flag != 0.0)));
    }
    Ok(named)
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
                "--rank {a} disagrees with {b} components in --init: leave --rank out, or use --rank {b}; components to be learnt beside those need columns in --init too, random ones for instance, and --freeze BLOCK:0/1 that names the known ones, since --freeze BLOCK keeps all"
            )));
        }
        (Some(k), _) | (None, Some(k)) => k,
        (None, None) => {
            return Err(Failure::usage(
                "--rank K is required unless --init provides a block",
            ));
        }
    };
    reasonable("--rank", rank, shape)?;
    Ok(rank)
}
