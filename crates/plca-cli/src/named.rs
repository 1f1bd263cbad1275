//! Names of the entries of blocks: those that a model file keeps of its data.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use plca_fit::blocks::Axes;
use plca_io::IoError;
use plca_tensor::{Data, Real};
use serde_json::{Value, json};

use crate::failure::{Failure, printable};
use crate::limits;
use crate::models::Kind;
use crate::models::options::has;
use crate::reading::DataArgs;
use crate::spectrogram::recorded;
use crate::table::Labels;

/// The dimension of the data whose indices the entries of a block are. Kernels are smaller than the data, impulses may be larger.
pub(crate) fn dimension(kind: Kind, settings: &Value, block: &str) -> Option<usize> {
    // Of explained data.
    let explained = ["mixture", "gap"].contains(&block);
    let explained = explained.then_some(Axes::coefficients(1));
    let mode = kind.axes(block).or(explained)?.mode()?;
    Some(match (&settings["given"], &settings["signed_mode"]) {
        (given, _) if given == 0 && has(kind, "--given") => 1 - mode,
        (_, signed) if block.starts_with("atoms") => signed.as_u64().unwrap_or(0) as usize,
        _ => mode,
    })
}

/// The dimension of the samples of a model of matrices, of which it has a block.
pub(crate) fn along(kind: Kind, settings: &Value) -> Option<usize> {
    let is_of_samples = |block: &String| {
        let axes = kind.axes(block);
        axes == Some(Axes::coefficients(1)) || axes == Some(Axes::numbers(1))
    };
    let block = kind.blocks(2).into_iter().find(is_of_samples)?;
    dimension(kind, settings, &block)
}

/// What a model file says that the indices of a dimension are called.
pub(crate) fn of(metadata: &Value, d: usize) -> Option<Vec<String>> {
    let own = &metadata["names"][d.to_string()];
    // Python keeps the names of features, which are columns.
    let names = match own.is_null() && d == 1 {
        true => &metadata["python"]["feature_names_in"],
        false => own,
    };
    let text = |name: &Value| name.as_str().unwrap_or_default().to_string();
    Some(names.as_array()?.iter().map(text).collect())
}

/// What a model file says that a component is called.
pub(crate) fn component(metadata: &Value, z: usize) -> Option<String> {
    Some(printable(metadata["components"][z].as_str()?))
}

/// Most names, or indices, that a sentence lists.
pub(crate) const LISTED: usize = 8;

/// Names in a sentence: the first of them, and how many more there are.
pub(crate) fn quoted(names: &[impl AsRef<str>]) -> String {
    let (first, others) = names.split_at(names.len().min(LISTED));
    let first: Vec<String> = (first.iter())
        .map(|name| format!("`{}`", printable(name.as_ref())))
        .collect();
    match others.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// What the indices of the dimensions are called: in the file of data, or in one of names, which are those of the dimension that has as many indices, of several one that is
/// not that of the observations.
pub(crate) fn read(
    path: &Path,
    args: &DataArgs,
    shape: &[usize],
    along: usize,
) -> Result<Vec<Option<Vec<String>>>, Failure> {
    let mut names = args.read_names(path)?;
    if let Some(Labels::Names(file)) = &args.table.labels {
        let given = labels(file)?;
        let mut fitting = (0..shape.len()).filter(|&d| shape[d] == given.len());
        let fits = fitting.clone().find(|&d| d != along).or(fitting.next());
        let Some(d) = fits else {
            let what = format!(
                "has {} lines, but no dimension of the data, of shape {shape:?}, has as many indices",
                given.len()
            );
            return Err(Failure::of(file, what));
        };
        names.resize(shape.len(), None);
        names[d] = Some(given);
    }
    Ok(names)
}

/// Warnings of names that occur more than once: new data cannot be matched by them.
pub(crate) fn repeated(names: &[Option<Vec<String>>]) -> Vec<String> {
    let named = names.iter().enumerate();
    let named = named.filter_map(|(d, names)| Some((d, twice(names.as_ref()?)?)));
    named
        .map(|(d, name)| {
            let name = quoted(&[name]);
            format!("the name {name} occurs more than once along dimension {d}: new data cannot be matched by these names")
        })
        .collect()
}

/// A warning where names of rows are numbers of which one occurs twice, as counts do.
fn counts(names: &[Option<Vec<String>>], args: &DataArgs) -> Option<String> {
    let rows = names.get(1 - args.columns())?.as_ref()?;
    let numbers = rows.iter().all(|name| name.parse::<f64>().is_ok());
    let wrong = args.table.labels == Some(Labels::FirstColumn) && numbers && twice(rows).is_some();
    wrong.then(|| {
        "the first column is taken for names of rows, and holds numbers of which some occur again: if they are data, leave --labels first-column out".into()
    })
}

/// The first name that occurs again.
pub(crate) fn twice(names: &[String]) -> Option<&String> {
    let mut seen = HashSet::new();
    names.iter().find(|name| !seen.insert(name.as_str()))
}

/// Names by which indices are matched: where all of both sides are different numbers, these, so that `400` is `400.0`; otherwise the names as they stand.
pub(crate) fn keys(own: &[String], known: &[String]) -> [Vec<String>; 2] {
    let number = |name: &String| name.parse().ok().filter(|x: &f64| x.is_finite());
    let numbers = [own, known].map(|names| {
        let numbers = names.iter().map(|name| Some(number(name)?.to_string()));
        let numbers: Option<Vec<String>> = numbers.collect();
        numbers.filter(|numbers| twice(numbers).is_none())
    });
    match numbers {
        [Some(own), Some(known)] => [own, known],
        _ => [own.to_vec(), known.to_vec()],
    }
}

/// Where each of the own names is among others, which are the same ones; the first own name that is not there, or not there alone.
pub(crate) fn order(own: &[String], others: &[String]) -> Result<Vec<usize>, String> {
    let [here, there] = keys(own, others);
    if let Some(name) = twice(&here).or(twice(&there)) {
        return Err(name.clone());
    }
    let places: HashMap<&String, usize> = there.iter().zip(0..).collect();
    let found = here.iter().zip(own);
    found
        .map(|(key, name)| places.get(key).copied().ok_or_else(|| name.clone()))
        .collect()
}

/// Whether names are numbers that grow, or that fall.
pub(crate) fn is_axis(names: &[String]) -> bool {
    let numbers: Vec<f64> = names.iter().map_while(|name| name.parse().ok()).collect();
    numbers.len() == names.len() && names.len() > 2 && runs(&numbers).is_some()
}

/// How numbers run that grow from one to the next, or that fall.
pub(crate) fn runs(numbers: &[f64]) -> Option<&'static str> {
    let all = |follows: fn(f64, f64) -> bool| numbers.windows(2).all(|x| follows(x[0], x[1]));
    match (all(|a, b| a < b), all(|a, b| a > b)) {
        (true, _) => Some("grow"),
        (_, true) => Some("fall"),
        _ => None,
    }
}

/// From how many on numbers of a first line or a first column that run are taken for those of an axis; of a line beside a column of names fewer are enough.
pub(crate) const AXIS: usize = 8;
const NAMED_AXIS: usize = 3;

/// Warnings where the first line or the first column of a table is taken for data and looks like names.
pub(crate) fn doubtful(
    path: &Path,
    names: &[Option<Vec<String>>],
    args: &DataArgs,
) -> Result<Vec<String>, IoError> {
    let mut warnings = Vec::from_iter(counts(names, args));
    if let Some(Labels::Names(file)) = &args.table.labels {
        let numbers = |names: &Vec<String>| {
            names.len() > 1 && names.iter().all(|name| name.parse::<i64>().is_ok())
        };
        warnings.extend(names.iter().flatten().find(|names| numbers(names)).map(|names| {
            format!(
                "the names of {} are numbers, {}: a name is what stands before the first tab of a line",
                file.display(),
                quoted(names)
            )
        }));
    }
    let labels = args.table.labels.as_ref();
    let first_column = labels == Some(&Labels::FirstColumn);
    // Of the file, whose columns may be rows of the data.
    let columns = names.get(args.columns());
    if let (Some(Some(columns)), false) = (columns, first_column)
        && let [first, others @ ..] = &columns[..]
        // Programs that number the rows write no name above the numbers.
        && first.is_empty()
        && !others.is_empty()
        && others.iter().all(|name| !name.is_empty())
    {
        warnings.push("the first column has no name and is taken for data: if it names or numbers the rows, --labels first-column".into());
    }
    if labels == Some(&Labels::Entries) {
        warnings.extend(last_cell(&args.first_line(path)?));
    } else if columns == Some(&None) && args.table.header.is_none() {
        let cells = args.first_line(path)?;
        // With the names of rows to its left, a line of names has nothing in its corner.
        if let (false, [corner, others @ ..]) = (first_column, &cells[..])
            && corner.is_empty()
            && let Some(how) = as_names(others, true)
        {
            warnings.push(format!(
                "line 1 is taken for data, but its first cell is empty, and its other numbers {how}: if the first column and the first line are names, --labels first-column"
            ));
        }
        warnings.extend(as_names(&cells, first_column).map(|how| {
            format!("line 1 is taken for data, but its numbers {how}: --header yes, or --header no")
        }));
    }
    Ok(warnings)
}

/// What the numbers of a first line have in common with names, beside a column of names or not.
fn as_names(cells: &[String], named: bool) -> Option<String> {
    let numbers: Vec<f64> = cells.iter().map_while(|cell| cell.parse().ok()).collect();
    if numbers.len() < cells.len() {
        return None;
    }
    let whole = cells.iter().all(|cell| cell.parse::<i64>().is_ok());
    let counts_on = |from: f64| {
        numbers
            .iter()
            .zip(0..)
            .all(|(&x, i)| x == from + f64::from(i))
    };
    let long = numbers.len() >= AXIS || named && numbers.len() >= NAMED_AXIS;
    let several = numbers.len() >= NAMED_AXIS;
    let steps = numbers.windows(2).map(|pair| pair[1] - pair[0]);
    let even = several && whole && steps.clone().all(|step| step == numbers[1] - numbers[0]);
    let counted = several && (counts_on(0.0) || counts_on(1.0)) || even;
    let years = several && whole && numbers.iter().all(|year| (1800.0..2100.0).contains(year));
    if years && twice(cells).is_none() {
        return Some(
            "are whole, all different, and look like years, as those of a header do".into(),
        );
    }
    if let Some(run) = runs(&numbers).filter(|_| long || counted) {
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        return Some(format!(
            "{run} from {first} to {last} as those of a header do"
        ));
    }
    (named && whole && numbers.len() > 1 && twice(cells).is_none())
        .then(|| "are whole and all different, as names are".into())
}

/// Whether a header says that its column names something, such as `userId`, `#OTU ID` or `Unnamed: 0`.
fn is_of_names(header: &str) -> bool {
    let lower = header.trim().to_lowercase();
    let known = [
        "index", "idx", "user", "item", "product", "doc", "document", "word", "gene", "sample",
        "key",
    ];
    let id = |end: &str| {
        header.trim().strip_suffix(end).is_some_and(|before| {
            let last = before.chars().next_back();
            last.is_none_or(|c| {
                !c.is_alphanumeric() || end == "Id" || end == "ID" && c.is_lowercase()
            })
        })
    };
    known.contains(&&*lower)
        || lower.starts_with("unnamed:")
        || ["id", "Id", "ID"].iter().any(|end| id(end))
}

/// Warnings where columns of a table without names of rows are taken for data, and seem to be names or entries.
pub(crate) fn columns_as_names<T: Real>(
    path: &Path,
    args: &DataArgs,
    names: &[Option<Vec<String>>],
    data: &dyn Data<T>,
) -> Result<Vec<String>, Failure> {
    let of_columns = args.columns();
    let (None, &[height, width], true) =
        (&args.table.labels, data.shape(), plca_io::is_table(path))
    else {
        return Ok(Vec::new());
    };
    let (rows, columns) = match of_columns {
        0 => (width, height),
        _ => (height, width),
    };
    // Cells that are not stored are 0.
    let (mut first, mut last) = (vec![0.0; rows], vec![0.0; rows]);
    let visited = data.visit(&mut |index, value| {
        let (row, column) = (index[1 - of_columns], index[of_columns]);
        if column == 0 {
            first[row] = value;
        }
        if column + 1 == columns {
            last[row] = value;
        }
    });
    visited.map_err(|e| Failure::by(path, e))?;
    let header = names
        .get(of_columns)
        .and_then(Option::as_deref)
        .unwrap_or_default();
    let of_names: Vec<bool> = header.iter().map(|name| is_of_names(name)).collect();
    // A line for every entry: names, a value, and perhaps a time.
    let times = rows >= NAMED_AXIS && last.iter().all(|x| is_time(*x));
    let entries = (3..=5).contains(&columns) && (times || of_names.get(..2) == Some(&[true; 2]));
    if entries {
        let time = match times {
            true => ", and without the last column, whose numbers look like times",
            false => "",
        };
        return Ok(vec![format!(
            "every column is taken for data, and they look like entries, names and then a value: if they are, --labels entries{time}"
        )]);
    }
    let even = first
        .windows(2)
        .all(|pair| pair[1] - pair[0] == first[1] - first[0]);
    let run = runs(&first).filter(|_| rows >= AXIS && (even || !header.is_empty()));
    let name = match header {
        [name, ..] => format!(", {},", quoted(&[name])),
        [] => String::new(),
    };
    if let Some(run) = run {
        return Ok(vec![format!(
            "the numbers of the first column{name} {run} from row to row as those of an axis do, and are taken for data: if they are none, --labels first-column"
        )]);
    }
    let mut seen = HashSet::new();
    let different = first
        .iter()
        .all(|x| x.fract() == 0.0 && seen.insert(x.to_bits()));
    let named = of_names.first() == Some(&true);
    Ok(Vec::from_iter((rows >= NAMED_AXIS && named && different).then(|| {
        format!("the first column{name} is taken for data, and its numbers are whole and all different, as names are: if they are names of rows, --labels first-column --header yes")
    })))
}

/// Warnings where names of a table may have been taken for data, or data for names.
pub(crate) fn doubts<T: Real>(
    path: &Path,
    args: &DataArgs,
    data: &dyn Data<T>,
) -> Result<Vec<String>, Failure> {
    let names = args.read_names(path)?;
    let mut doubts = doubtful(path, &names, args)?;
    doubts.extend(columns_as_names(path, args, &names, data)?);
    Ok(doubts)
}

/// Whether a number may be a time in seconds or milliseconds since 1970.
pub(crate) fn is_time(x: f64) -> bool {
    [1.0, 1e3]
        .iter()
        .any(|unit| (3e8..4e9).contains(&(x / unit)))
}

/// A warning where the last cell of every line is taken for its value and seems to be none; `header` names the cells, or is the first entry.
fn last_cell(header: &[String]) -> Option<String> {
    let (last, others) = header.split_last()?;
    let last = match last.parse::<f64>() {
        Ok(_) => String::new(),
        Err(_) => format!(", {}", quoted(&[last])),
    };
    (others.len() == 1).then(|| {
        format!("every line has one name and a value{last}: if both are names, of a pair that was seen once, a column of ones must follow")
    })
}

/// Text of names that a model file keeps.
const MOST_NAMES: usize = 1 << 25;

/// The names of every dimension as the metadata of a model keep them, nothing where none has names; also warnings of those that are too long.
pub(crate) fn kept(names: Vec<Option<Vec<String>>>) -> (Value, Vec<String>) {
    let (mut all, mut warnings, mut room) = (serde_json::Map::new(), Vec::new(), MOST_NAMES);
    for (d, names) in names.into_iter().enumerate() {
        let Some(names) = names else { continue };
        let count = names.len();
        let names = json!(names);
        let length = names.to_string().len();
        if length <= room {
            room -= length;
            all.insert(d.to_string(), names);
        } else {
            warnings.push(format!(
                "the {count} names along dimension {d} are not kept: the model file has room for {MOST_NAMES} bytes of names, these have {length}"
            ));
        }
    }
    match all.is_empty() {
        true => (Value::Null, warnings),
        false => (Value::Object(all), warnings),
    }
}

/// A frequency in Hz or a time in seconds, to a micro-unit.
fn micro(x: f64) -> String {
    ((x * 1e6).round() / 1e6).to_string()
}

/// What the frequencies, in Hz, and the frames, by the second of their middles, of the spectrogram of a sound are called.
fn of_sound(metadata: &Value, d: usize, entries: usize) -> Option<Vec<String>> {
    let sound = recorded(metadata)?;
    let name = |n| match d {
        0 => micro(sound.frequency(n)),
        _ => micro(sound.second(n as f64)),
    };
    (d < 2).then(|| (0..entries).map(name).collect())
}

/// The names of the indices of each dimension of a component of kernels or impulses of the spectrogram of a sound: frequencies in Hz where a kernel has all of them, seconds from the begin
/// of a kernel, and the seconds where it begins.
pub(crate) fn places(
    kind: Option<Kind>,
    metadata: &Value,
    block: &str,
    extents: &[usize],
) -> Vec<Option<Vec<String>>> {
    let none = vec![None; extents.len()];
    let shifts = kind.is_some_and(|kind| kind.shifts());
    let sizes = (&metadata["data"]["shape"][0], &metadata["data"]["shape"][1]);
    let (Some(sound), &[rows, columns], (Some(bins), Some(frames))) = (
        recorded(metadata).filter(|_| shifts),
        extents,
        (sizes.0.as_u64(), sizes.1.as_u64()),
    ) else {
        return none;
    };
    match block {
        "kernels" => {
            let whole = (rows as u64 == bins)
                .then(|| (0..rows).map(|n| micro(sound.frequency(n))).collect());
            let begin = sound.second(0.0);
            let seconds = (0..columns).map(|n| micro(sound.second(n as f64) - begin));
            vec![whole, Some(seconds.collect())]
        }
        "impulses" => {
            // Kernels that begin before the data.
            let before = (columns as u64).saturating_sub(frames) as f64;
            let seconds = (0..columns).map(|n| micro(sound.second(n as f64 - before)));
            vec![None, Some(seconds.collect())]
        }
        _ => none,
    }
}

/// The names of the entries of a block as the file has them, of which a component has this number: those of its dimension, or those of the only dimension of this size.
pub(crate) fn names(
    kind: Option<Kind>,
    metadata: &Value,
    block: &str,
    entries: usize,
) -> Option<Vec<String>> {
    let of = |d: usize| of(metadata, d).filter(|names| names.len() == entries);
    let place = match kind {
        Some(kind) => dimension(kind, &metadata["settings"], block)?,
        None if metadata["model"] == "consensus" => {
            let samples = metadata["of"]["given"].as_u64().unwrap_or(1).min(1) as usize;
            match block.rsplit('.').next() {
                Some("consensus_spectra") => 1 - samples,
                _ => samples,
            }
        }
        None => return None,
    };
    let mut others = (0..2).filter(|&d| d != place).filter_map(of);
    let of_sound = || of_sound(metadata, place, entries);
    of(place).or_else(of_sound).or_else(|| others.next())
}

/// Names as a terminal may show them.
pub(crate) fn printed(names: Vec<String>) -> Vec<String> {
    names.iter().map(|name| printable(name)).collect()
}

/// Names of the entries of a component, which has one dimension.
pub(crate) fn labels_of(path: &Path, sizes: &[usize]) -> Result<Vec<String>, Failure> {
    let labels = labels(path)?;
    match sizes {
        [n] if *n == labels.len() => Ok(labels),
        [n] => {
            let what = format!(
                "has {} lines; expected {n}, one for each entry of a component",
                labels.len()
            );
            Err(Failure::of(path, what))
        }
        _ => {
            let what = format!("labels name one dimension; a component has {}", sizes.len());
            Err(Failure::of(path, what))
        }
    }
}

/// Names, a line each.
pub(crate) fn labels(path: &Path) -> Result<Vec<String>, Failure> {
    Ok(plca_io::read_list(path, limits::unpack())?)
}
