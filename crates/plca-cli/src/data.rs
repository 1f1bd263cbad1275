//! Data files as observed tensors.

use std::collections::HashSet;
use std::path::Path;

use plca_io::{
    Advice, Array, DataFile, Element, IoError, MANIFEST, Mask, ReadOptions, Sealed, is_absent,
};
use plca_tensor::{Coordinates, Data, DataError, DenseTensor, Order, SparseTensor, check_counts};

use crate::args::FitArgs;
use crate::failure::Failure;
use crate::limits;
use crate::models::options::{has, need_matrix};
use crate::models::{Kind, Takes};
use crate::named::{LISTED, is_time, quoted};
use crate::precision;
use crate::reading::{DataArgs, MissingCells};
use crate::spectrogram::is_sound;
use crate::table::Labels;

/// Data of any storage.
pub(crate) type Loaded<T> = Box<dyn Data<T>>;

/// The data's checksum, taken before they are read.
pub(crate) fn sealed(args: &FitArgs) -> Result<&Sealed, Failure> {
    if let Some(sealed) = args.sealed.get() {
        return Ok(sealed);
    }
    let sealed = match args.data.is_dir() {
        true if !args.data.join(MANIFEST).exists() => {
            let what = format!(
                "is a folder without {MANIFEST}; expected a file, or a folder that plca shard wrote"
            );
            return Err(Failure::of(&args.data, what));
        }
        true => Sealed::of(&args.data.join(MANIFEST))?,
        false => Sealed::of(&args.data)?,
    };
    Ok(args.sealed.get_or_init(|| sealed))
}

/// Reads data for a model and hides what is missing.
pub(crate) fn load_for<T: Element>(
    model: Kind,
    path: &Path,
    args: &DataArgs,
) -> Result<Loaded<T>, Failure> {
    observed(model, path, args, read_for(model, path, args)?)
}

/// Reads data for a model.
pub(crate) fn read_for<T: Element>(
    model: Kind,
    path: &Path,
    args: &DataArgs,
) -> Result<DataFile<T>, Failure> {
    let takes = model.takes;
    let options = ReadOptions {
        // What a mask may hide is refused later where it does not.
        allow_negative: takes != Takes::Counts || args.mask.is_some(),
        allow_infinite: args.mask.is_some(),
        ..args.reading()
    };
    let file = plca_io::read_data_with::<T>(path, &options).map_err(|e| hinted(e, args))?;
    let file = args.turned(file);
    args.check_samples(path, shape_of(&file))?;
    if args.transpose {
        need_matrix(path, &args.turned_by(), shape_of(&file))?;
    }
    if takes == Takes::SignedMatrix {
        need_matrix(path, model.name, shape_of(&file))?;
    }
    Ok(file)
}

fn shape_of<T>(file: &DataFile<T>) -> &[usize] {
    match file {
        DataFile::Dense(Array { shape, .. }) | DataFile::Sparse(Coordinates { shape, .. }) => shape,
    }
}

/// What is observed of a file of data for a model.
pub(crate) fn observed<T: Element>(
    model: Kind,
    path: &Path,
    args: &DataArgs,
    file: DataFile<T>,
) -> Result<Loaded<T>, Failure> {
    let takes = model.takes;
    let data = tensor(model.name, path, args, file)?;
    precision::check_size(path, args, &*data)?;
    match takes {
        Takes::Counts => {
            check_counts(&*data).map_err(|e| {
                let negative = matches!(e, DataError::Negative { .. });
                let refused = precision::refused::<T>(path, args, e);
                match negative {
                    true => refused.and("small negative noise may be set to 0, or fitted by pntf; data of either sign by skellam"),
                    false => refused,
                }
            })?;
        }
        Takes::SignedMatrix if data.dense().is_none() => room_for_zeros(path, &*data)?,
        Takes::SignedMatrix | Takes::Numbers | Takes::Signed => {}
    }
    Ok(data)
}

/// What is wrong with a file; of a sound where its spectrogram was expected, and of a table with words where numbers were expected also what may help.
fn hinted(e: IoError, args: &DataArgs) -> Failure {
    let first = || plca_io::first_index(e.path(), limits::unpack());
    if args.first_index == Some(1) && first().is_ok_and(|i| i == Some(0)) {
        return Failure::from(e).and("--first-index says where those of this file do");
    }
    if is_sound(e.path()) {
        return Failure::from(e).and("plca spectrogram makes data of a sound");
    }
    let ending = e.path().extension().unwrap_or_default();
    let pictures = ["png", "jpg", "jpeg", "tif", "tiff", "pgm", "bmp", "gif"];
    if pictures
        .iter()
        .any(|picture| ending.eq_ignore_ascii_case(picture))
    {
        return Failure::from(e).and("a picture is saved as an array first, such as .npy");
    }
    let entries = args.table.labels == Some(Labels::Entries);
    if entries
        && e.word()
            .is_some_and(|word| word.is_empty() || is_absent(word))
    {
        return Failure::from(e).and("leave the line of a missing value out");
    }
    let word = e.word().unwrap_or_default();
    let thousands = in_thousands(word);
    let is_number = |cell: &str| cell.parse::<f64>().is_ok();
    // Names of programs have no numbers between them.
    let colons = word.contains("::") && word.split("::").any(is_number);
    let advice = plca_io::advice(&e, &args.reading());
    // Numbers are no names.
    let keeps = |advice: &Advice| advice.decimal_comma || advice.table.delimiter == Some(b',');
    let advice = advice.filter(|advice| !colons && (!thousands || keeps(advice)));
    let failure = match advice.and_then(|advice| args.table.advised(&advice)) {
        Some(said) => Failure::from(e).and(said),
        None => e.into(),
    };
    match (thousands, colons) {
        (true, _) => failure.and("where the comma separates thousands, without it"),
        (_, true) => failure.and("a single character separates cells: replace `::` by a tab"),
        _ => failure,
    }
}

/// Whether a word may be a number with commas between its thousands.
fn in_thousands(word: &str) -> bool {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let mut parts = whole.trim_start_matches('-').split(',');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let first = parts
        .next()
        .is_some_and(|part| (1..=3).contains(&part.len()) && digits(part));
    let mut groups = parts.peekable();
    first
        && groups.peek().is_some()
        && groups.all(|part| part.len() == 3 && digits(part))
        && digits(fraction)
}

/// A dense matrix of more cells is not made from a sparse file.
const MOST_CELLS: usize = 1 << 31;

/// Refuses a sparse matrix whose zeros cannot be held.
fn room_for_zeros<T: Element>(path: &Path, data: &dyn Data<T>) -> Result<(), Failure> {
    if data.summary().mask == plca_tensor::Mask::Observed {
        return Ok(());
    }
    let (rows, columns) = (data.shape()[0], data.shape()[1]);
    if rows.checked_mul(columns).is_none_or(|n| n > MOST_CELLS) {
        let what = format!(
            "{rows} x {columns} cells do not fit into memory: cells that are not stored count as zeros unless --missing unstored is given"
        );
        return Err(Failure::of(path, what));
    }
    let room = plca_io::room::<T>(&[rows, columns]);
    room.map(drop).map_err(|e| Failure::by(path, e))
}

/// Share of the data above which what is negative is hardly noise.
const NOISE: f64 = 0.1;

/// What a person should know of the data of a model.
pub(crate) fn warnings<T: Element>(model: Kind, data: &dyn Data<T>) -> Vec<String> {
    let mut warnings =
        plca_tensor::unobserved(data).map_or_else(|_| Vec::new(), unobserved_warnings);
    let summary = data.summary();
    // Data that cannot be read are told by what reads them.
    let by_counts = model.name.ends_with("-vb") && model.takes == Takes::Counts;
    if by_counts && let Ok(Some(sum)) = plca_em::shares(data) {
        // Of the sum as many digits as it has in common.
        let sum: f64 = format!("{sum:.2e}").parse().unwrap_or(sum);
        warnings.push(format!(
            "the data look like shares: they have fractions, and all indices of one dimension sum to {sum}, which a model by variational Bayes takes for numbers of counts beside the priors: give counts, or multiply every sample by its number of counts"
        ));
    }
    if is_time(summary.absolute / summary.nnz as f64)
        && summary.integers
        && data.shape().len() > 2
        && data.dense().is_none()
    {
        warnings.push("the values look like times: the last number of an entry is its value, and those before it are indices or names".into());
    }
    // Models that take no negative values have refused them.
    if model.takes == Takes::Numbers && summary.negative.is_some() {
        let share = (summary.absolute - summary.total) / 2.0 / summary.absolute;
        warnings.push(match share > NOISE {
            false => "some values are negative: they are taken for noise about what is >= 0".into(),
            true => format!(
                "{:.0} % of the data, by absolute values, are negative, too much for noise about what is >= 0: skellam is for data of either sign",
                100.0 * share
            ),
        });
    }
    warnings
}

/// A warning where samples are rows in the file, and the model takes columns for samples since nobody said otherwise.
pub(crate) fn transposed(
    model: Kind,
    path: &Path,
    given: Option<usize>,
    args: &DataArgs,
) -> Option<String> {
    let said = match has(model, "--given") {
        true => given.is_some(),
        false => args.transpose || args.samples.is_some() || !has(model, "--transpose"),
    };
    (!said && plca_io::lists_samples(path)).then(|| {
        format!(
            "{}: the rows of this format are the samples, such as documents, which the model expects as columns: --samples 0 takes the rows",
            path.display()
        )
    })
}

/// Calls `visit` with the multi-index and the value of every cell, in memory order.
fn for_each_cell<T: Copy>(array: &Array<T>, mut visit: impl FnMut(&[usize], T)) {
    let shape = &array.shape;
    let mut index = vec![0; shape.len()];
    for &value in &array.values {
        visit(&index, value);
        let mut advance = |m: usize| {
            index[m] = (index[m] + 1) % shape[m];
            index[m] == 0
        };
        if array.fortran {
            (0..shape.len()).all(&mut advance);
        } else {
            (0..shape.len()).rev().all(&mut advance);
        }
    }
}

/// Where a cell lies in the memory of an array.
fn place<T>(
    array: &Array<T>,
    index: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator,
) -> usize {
    let modes = index.zip(&array.shape);
    let step = |at: usize, (i, n): (usize, &usize)| at * n + i;
    match array.fortran {
        true => modes.rfold(0, step),
        false => modes.fold(0, step),
    }
}

/// False where a mask hides a cell, in the memory order of the array.
fn seen<T>(mask: Mask, array: &Array<T>) -> Vec<bool> {
    let mut seen = vec![true; array.values.len()];
    match mask {
        Mask::Dense(mask) if mask.fortran == array.fortran || mask.shape.len() < 2 => {
            seen = mask.values.iter().map(|&m| m != 0.0).collect();
        }
        Mask::Dense(mask) => for_each_cell(&mask, |index, value| {
            seen[place(array, index.iter().copied())] = value != 0.0;
        }),
        Mask::Hidden(cells) => {
            for cell in cells.indices.chunks_exact(cells.shape.len()) {
                seen[place(array, cell.iter().map(|&i| i as usize))] = false;
            }
        }
    }
    seen
}

/// Numbers that the arrangement of sparse data needs for every index of a mode.
const WORDS_PER_INDEX: usize = 16;

/// Dense or sparse data, with what is hidden of them.
fn tensor<T: Element>(
    model: &str,
    path: &Path,
    args: &DataArgs,
    file: DataFile<T>,
) -> Result<Loaded<T>, Failure> {
    let tensor: Result<Loaded<T>, DataError> = match file {
        DataFile::Dense(mut array) => {
            let masked = hide(model, path, args, &mut array)?;
            let order = match array.fortran {
                true => Order::ColumnMajor,
                false => Order::RowMajor,
            };
            let dense = match masked {
                true => DenseTensor::masked(array.shape, array.values, order),
                false => DenseTensor::new(array.shape, array.values, order),
            };
            dense.map(|dense| Box::new(dense) as Loaded<T>)
        }
        DataFile::Sparse(entries) => {
            let sparse = hide_sparse(path, args, entries)?;
            sparse.map(|sparse| Box::new(sparse) as Loaded<T>)
        }
    };
    tensor.map_err(|e| precision::refused::<T>(path, args, e))
}

/// Turns the hidden cells of an array into NaN; whether any cell could be hidden.
fn hide<T: Element>(
    model: &str,
    path: &Path,
    args: &DataArgs,
    array: &mut Array<T>,
) -> Result<bool, Failure> {
    if args.missing == Some(MissingCells::Unstored) {
        let what = "--missing unstored needs sparse data, these are dense";
        return Err(Failure::of(path, what));
    }
    let seen = match &args.mask {
        None => None,
        Some(mask) => Some(seen(args.read_mask(mask, &array.shape)?, array)),
    };
    let is_seen = |at: usize| seen.as_ref().is_none_or(|seen| seen[at]);
    let nan_is_hidden = args.missing == Some(MissingCells::Nan);
    // A NaN that was observed is an error unless NaN was said to mean missing.
    let mut values = array.values.iter().enumerate();
    if !nan_is_hidden && let Some((at, _)) = values.find(|&(at, x)| x.is_nan() && is_seen(at)) {
        return Err(nan_failure(model, path, args, array, at));
    }
    for (_, value) in (array.values.iter_mut().enumerate()).filter(|(at, _)| !is_seen(*at)) {
        *value = T::lit(f64::NAN);
    }
    Ok(seen.is_some() || nan_is_hidden)
}

/// Refuses shapes whose indices alone could not be held.
fn indexable(path: &Path, shape: &[usize]) -> Result<(), Failure> {
    let indices = shape.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
    let room = plca_io::room::<f64>(&[WORDS_PER_INDEX, indices]);
    let refused = |e| Failure::of(path, format!("data of shape {shape:?}: {e}"));
    room.map(drop).map_err(refused)
}

/// Sparse data with what is hidden of them.
fn hide_sparse<T: Element>(
    path: &Path,
    args: &DataArgs,
    entries: Coordinates<T>,
) -> Result<Result<SparseTensor<T>, DataError>, Failure> {
    if args.missing == Some(MissingCells::Nan) {
        let what = "--missing nan needs a dense array, these are sparse";
        return Err(Failure::of(path, what));
    }
    indexable(path, &entries.shape)?;
    let hidden = match &args.mask {
        None => None,
        Some(mask) => Some(match args.read_mask(mask, &entries.shape)? {
            Mask::Hidden(cells) => cells.indices,
            Mask::Dense(mask) => hidden_cells(&mask),
        }),
    };
    Ok(match (hidden, args.missing) {
        (None, None) => SparseTensor::new(entries),
        (None, Some(_)) => SparseTensor::stored_only(entries),
        // Hidden by either: what is stored and not in the list was observed.
        (Some(hidden), Some(_)) => SparseTensor::stored_only(without(entries, &hidden)),
        (Some(indices), None) => {
            let (shape, values) = (entries.shape.clone(), Vec::new());
            let hidden = Coordinates {
                shape,
                indices,
                values,
            };
            SparseTensor::all_but(entries, hidden)
        }
    })
}

/// Indices, or how many they are and the first of them.
pub(crate) fn listed(indices: &[usize]) -> String {
    match indices.get(..LISTED) {
        Some(first) if indices.len() > LISTED => {
            format!("{} indices, the first {first:?}", indices.len())
        }
        _ => format!("{indices:?}"),
    }
}

/// A warning of observations whose values follow from no data, where there are any.
pub(crate) fn without_data(
    observations: &[usize],
    along: usize,
    names: &[Option<Vec<String>>],
) -> Option<String> {
    let names = names.get(along).and_then(Option::as_ref);
    let own = |&at: &usize| Some(names?.get(at)?.as_str());
    let own: Option<Vec<&str>> = observations.iter().map(own).collect();
    (!observations.is_empty()).then(|| {
        format!(
            "observations {} along dimension {along} have nothing above 0 that is observed: the values written for them have no meaning",
            own.map_or_else(|| listed(observations), |own| quoted(&own))
        )
    })
}

/// Warnings of indices of which nothing was observed, dimension by dimension.
pub(crate) fn unobserved_warnings(hidden: Vec<Vec<usize>>) -> Vec<String> {
    let hidden = hidden.into_iter().enumerate();
    hidden
        .filter(|(_, indices)| !indices.is_empty())
        .map(|(j, indices)| {
            let at = listed(&indices);
            format!("no observed cell in dimension {j} at {at}: the values written there are not identified")
        })
        .collect()
}

/// Models that need complete data.
const COMPLETE: [&str; 5] = ["ntf-l2", "kmeans", "snmf-ding", "plca-vb", "plsa-vb"];

fn nan_failure<T: Element>(
    model: &str,
    path: &Path,
    args: &DataArgs,
    array: &Array<T>,
    at: usize,
) -> Failure {
    let index = array.index(at);
    let what = format!("entry {index:?} is NaN, as an empty cell or `NA` is");
    let remedy = match COMPLETE.contains(&model) {
        true => format!(
            "{model} needs complete data; nmf-kl, plca, pntf and skellam take hidden cells, with --missing nan"
        ),
        false => "--missing nan hides NaN, which are then not known".into(),
    };
    let what = format!("{what}: write 0 if that is its value; {remedy}");
    let failure = Failure::of(path, what);
    // Where there are names of rows and of columns, the cell that belongs to neither is empty.
    match at == 0 && args.table.labels.is_none() && plca_io::is_table(path) {
        true => {
            failure.and("if the first line and the first column are names, --labels first-column")
        }
        false => failure,
    }
}

/// Indices of the cells that a mask hides.
fn hidden_cells(mask: &Array<f32>) -> Vec<u32> {
    let mut indices = Vec::new();
    for_each_cell(mask, |index, value| {
        if value == 0.0 {
            indices.extend(index.iter().map(|&i| i as u32));
        }
    });
    indices
}

/// Entries that are not among the hidden cells.
fn without<T: Element>(entries: Coordinates<T>, hidden: &[u32]) -> Coordinates<T> {
    let order = entries.shape.len();
    let hidden: HashSet<&[u32]> = hidden.chunks_exact(order).collect();
    let mut kept = Coordinates {
        shape: entries.shape,
        indices: Vec::new(),
        values: Vec::new(),
    };
    for (index, &x) in entries.indices.chunks_exact(order).zip(&entries.values) {
        if !hidden.contains(index) {
            kept.indices.extend(index);
            kept.values.push(x);
        }
    }
    kept
}
