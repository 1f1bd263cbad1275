//! Matrix Market, FROSTT and tables of numbers.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::BufRead;
use std::ops::Deref;
use std::rc::Rc;

use plca_tensor::Coordinates;

use crate::allowance::Allowance;
use crate::data::{Array, Element, Header, Labels, Table, check_order};
use crate::error::Fault;

/// Longest line that is read.
const MAX_LINE: usize = 1 << 25;

/// Which values besides finite non-negative ones pass through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kinds {
    pub(crate) nan_dense: bool,
    pub(crate) nan_sparse: bool,
    pub(crate) negative: bool,
    pub(crate) infinite: bool,
}

/// Reads up to the next end of a line, which is `\n`, `\r\n` or `\r`; whether anything was left.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, Fault> {
    line.clear();
    let mut ended = None;
    while ended != Some(b'\n') {
        let buffer = reader.fill_buf()?;
        if ended == Some(b'\r') {
            // It may be the first half of an end.
            if buffer.first() == Some(&b'\n') {
                reader.consume(1);
            }
            break;
        }
        if buffer.is_empty() {
            return Ok(!line.is_empty());
        }
        let end = buffer.iter().position(|byte| b"\r\n".contains(byte));
        let found = &buffer[..end.unwrap_or(buffer.len())];
        if line.len() + found.len() > MAX_LINE {
            return Err(Fault::new("is too long"));
        }
        line.extend(found);
        ended = end.map(|at| buffer[at]);
        let read = found.len() + usize::from(ended.is_some());
        reader.consume(read);
    }
    Ok(true)
}

/// The same, and what memory they may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accept<'a> {
    pub(crate) allowance: &'a Rc<Allowance>,
    pub(crate) kinds: Kinds,
}

impl Kinds {
    pub(crate) fn within(self, allowance: &Rc<Allowance>) -> Accept<'_> {
        Accept {
            allowance,
            kinds: self,
        }
    }
}

impl Deref for Accept<'_> {
    type Target = Kinds;

    fn deref(&self) -> &Kinds {
        &self.kinds
    }
}

/// Calls `visit` with the number (from 1) and the text of every line, without its end.
pub(crate) fn for_each_line(
    reader: &mut impl BufRead,
    mut visit: impl FnMut(usize, &str) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut line = Vec::new();
    for number in 1.. {
        let place = || format!("line {number}");
        if !read_line(reader, &mut line).map_err(|e| e.within(place()))? {
            break;
        }
        let text = std::str::from_utf8(&line).map_err(|_| match &line[..] {
            [0x1f, 0x8b, ..] if number == 1 => {
                Fault::new("is packed by gzip: its name must end in .gz, as in .csv.gz")
            }
            [b'P', b'K', 3 | 5, ..] if number == 1 => {
                Fault::new("is a zip archive: the name of one of arrays ends in .npz")
            }
            _ => Fault::at(
                place(),
                "is not text in UTF-8: save the file in that encoding",
            ),
        })?;
        // Some spreadsheets write a byte order mark.
        let text = if number == 1 {
            text.trim_start_matches('\u{feff}')
        } else {
            text
        };
        visit(number, text).map_err(|e| e.within(place()))?;
    }
    Ok(())
}

/// A number of the kinds that are accepted.
pub(crate) fn value<T: Element>(word: &str, nan: bool, accept: Accept<'_>) -> Result<T, Fault> {
    accept.allowance.take(size_of::<T>())?;
    let x: f64 = word.parse().map_err(|_| Fault::no_number(word))?;
    if x.is_nan() && !nan {
        return Err(Fault::new(format!("value {word} is not a number")));
    }
    if x < 0.0 && !accept.negative {
        return Err(Fault::new(format!(
            "value {word} is negative; numbers >= 0 are needed"
        )));
    }
    let narrow = T::lit(x);
    if x.is_nan() || narrow.is_finite() || accept.infinite {
        Ok(narrow)
    } else if x.is_finite() {
        Err(Fault::new(format!(
            "value {word} is beyond f32, whose largest number is {:?}",
            f32::MAX
        )))
    } else {
        Err(Fault::new(format!("value {word} is not finite")))
    }
}

/// A 1-based index within `size`, as 0-based.
pub(crate) fn index(word: &str, mode: usize, size: usize) -> Result<u32, Fault> {
    let i: u64 = word.parse().map_err(|_| {
        Fault::new(format!(
            "index `{word}` in mode {mode} is not a whole number"
        ))
    })?;
    if i == 0 {
        return Err(Fault::new(format!("index 0 in mode {mode} is below 1")));
    }
    if i > size as u64 || i > u64::from(u32::MAX) {
        return Err(Fault::new(format!(
            "index {i} in mode {mode} is above {}",
            size.min(u32::MAX as usize)
        )));
    }
    Ok((i - 1) as u32)
}

/// FROSTT: 1-based indices, then a value; `#` starts a comment. Calls `visit` with every entry; returns the shape.
pub(crate) fn visit_frostt<T: Element>(
    reader: &mut impl BufRead,
    shape: Option<&[usize]>,
    accept: Accept<'_>,
    mut visit: impl FnMut(&[u32], T) -> Result<(), Fault>,
) -> Result<Vec<usize>, Fault> {
    // 0 until the first entry says.
    let mut order = shape.map_or(0, <[usize]>::len);
    let mut largest: Vec<usize> = vec![0; order];
    let (mut place, mut empty) = (Vec::new(), true);
    for_each_line(reader, |_, line| {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            return Ok(());
        }
        let words = line.split_ascii_whitespace().count();
        if order == 0 {
            if words < 2 {
                return Err(Fault::new(
                    "needs at least one index and a value, with blanks between them",
                ));
            }
            check_order(words - 1)?;
            order = words - 1;
            largest = vec![0; order];
        }
        if words != order + 1 {
            return Err(Fault::new(format!(
                "has {words} numbers, the tensor needs {order} indices and a value"
            )));
        }
        place.clear();
        for (mode, word) in line.split_ascii_whitespace().enumerate() {
            if mode == order {
                empty = false;
                visit(&place, value(word, accept.nan_sparse, accept)?)?;
            } else {
                let i = index(word, mode, shape.map_or(usize::MAX, |s| s[mode]))?;
                largest[mode] = largest[mode].max(i as usize + 1);
                place.push(i);
            }
        }
        Ok(())
    })?;
    if empty {
        return Err(Fault::new("holds no entry"));
    }
    Ok(shape.map_or(largest, <[usize]>::to_vec))
}

/// What the first lines of a Matrix Market file say.
#[derive(Debug)]
pub(crate) struct Announced {
    /// Entries are listed with their indices.
    pub(crate) coordinate: bool,
    /// They have no values, which are 1.
    pattern: bool,
    /// The values are whole.
    whole: bool,
    symmetric: bool,
    pub(crate) shape: [usize; 2],
}

impl Announced {
    /// The dense matrix of these values.
    pub(crate) fn array<T: Element>(self, mut values: Vec<T>) -> Array<T> {
        if self.symmetric {
            let size = self.shape[0];
            let mut square = vec![T::zero(); size * size];
            let places = (0..size).flat_map(|column| (column..size).map(move |row| (row, column)));
            for ((row, column), x) in places.zip(values) {
                square[column * size + row] = x;
                square[row * size + column] = x;
            }
            values = square;
        }
        Array {
            shape: self.shape.to_vec(),
            values,
            fortran: true,
        }
    }
}

/// Matrix Market: coordinate or array; real, integer or pattern; general or symmetric.
///
/// Calls `visit` with every value in the order of the file, and its index where that is listed.
pub(crate) fn visit_matrix_market<T: Element>(
    reader: &mut impl BufRead,
    accept: Accept<'_>,
    mut visit: impl FnMut(Option<[u32; 2]>, T) -> Result<(), Fault>,
) -> Result<Announced, Fault> {
    let mut banner: Option<Announced> = None;
    let mut announced: Option<usize> = None;
    let mut entries = 0usize;
    for_each_line(reader, |number, line| {
        let Some(banner) = &mut banner else {
            let lower = line.to_ascii_lowercase();
            let words: Vec<&str> = lower.split_ascii_whitespace().collect();
            let ["%%matrixmarket", "matrix", format, field, symmetry] = words[..] else {
                return Err(Fault::new("not a Matrix Market banner"));
            };
            if !["coordinate", "array"].contains(&format) {
                return Err(Fault::new(format!(
                    "format `{format}` is neither coordinate nor array"
                )));
            }
            let numbers = ["real", "integer", "unsigned-integer", "double", "pattern"];
            if !numbers.contains(&field) {
                return Err(Fault::new(format!("field `{field}` is not a real number")));
            }
            if !["general", "symmetric"].contains(&symmetry) {
                return Err(Fault::new(format!(
                    "symmetry `{symmetry}` is not supported, expected general or symmetric"
                )));
            }
            if format == "array" && field == "pattern" {
                return Err(Fault::new("the array format has no field `pattern`"));
            }
            banner = Some(Announced {
                coordinate: format == "coordinate",
                pattern: field == "pattern",
                whole: field.ends_with("integer"),
                symmetric: symmetry == "symmetric",
                shape: [0, 0],
            });
            debug_assert_eq!(number, 1);
            return Ok(());
        };
        let line = line.trim();
        if line.is_empty() || line.starts_with('%') {
            return Ok(());
        }
        let mut words = line.split_ascii_whitespace();
        let Some(stored) = announced else {
            let sizes: Vec<usize> = words
                .map(|w| {
                    w.parse()
                        .map_err(|_| Fault::new(format!("size `{w}` is not a whole number")))
                })
                .collect::<Result<_, _>>()?;
            let (rows, columns, stored) = match (&sizes[..], banner.coordinate) {
                (&[r, k, n], true) => (r, k, n),
                (&[r, k], false) => {
                    let cells = match banner.symmetric {
                        true => r.checked_add(1).and_then(|next| r.checked_mul(next)),
                        false => r.checked_mul(k),
                    };
                    let cells = cells.map(|n| if banner.symmetric { n / 2 } else { n });
                    let large = || Fault::new(format!("{r} x {k} is too large"));
                    (r, k, cells.ok_or_else(large)?)
                }
                _ => {
                    return Err(Fault::new(format!(
                        "{} sizes, expected {}",
                        sizes.len(),
                        2 + usize::from(banner.coordinate)
                    )));
                }
            };
            if banner.symmetric && rows != columns {
                return Err(Fault::new(format!(
                    "a symmetric matrix of {rows} x {columns}"
                )));
            }
            for (mode, n) in [rows, columns].into_iter().enumerate() {
                if n > u32::MAX as usize {
                    return Err(Fault::new(format!(
                        "size {n} in mode {mode} is above {}",
                        u32::MAX
                    )));
                }
            }
            banner.shape = [rows, columns];
            announced = Some(stored);
            return Ok(());
        };
        if entries == stored {
            return Err(Fault::new(format!(
                "more than the {stored} entries that the header announces"
            )));
        }
        entries += 1;
        let needed = match (banner.coordinate, banner.pattern) {
            (false, _) => 1,
            (true, true) => 2,
            (true, false) => 3,
        };
        let miscounted = || {
            Fault::new(format!(
                "{} numbers, expected {needed}",
                line.split_ascii_whitespace().count()
            ))
        };
        let mut word = || words.next().ok_or_else(miscounted);
        let number = |word: &str, nan: bool| -> Result<T, Fault> {
            let x: T = value(word, nan, accept)?;
            match banner.whole && x.is_finite() && x.to_f64().fract() != 0.0 {
                true => Err(Fault::new(format!(
                    "value {word} is not whole, but line 1 says `integer`: numbers with fractions are `real`"
                ))),
                false => Ok(x),
            }
        };
        if banner.coordinate {
            let [rows, columns] = banner.shape;
            let (i, j) = (index(word()?, 0, rows)?, index(word()?, 1, columns)?);
            let x = if banner.pattern {
                T::one()
            } else {
                number(word()?, accept.nan_sparse)?
            };
            visit(Some([i, j]), x)?;
            if banner.symmetric && i != j {
                visit(Some([j, i]), x)?;
            }
        } else {
            visit(None, number(word()?, accept.nan_dense)?)?;
        }
        if words.next().is_some() {
            return Err(miscounted());
        }
        Ok(())
    })?;
    let (Some(banner), Some(stored)) = (banner, announced) else {
        return Err(Fault::new("the file ends before the sizes"));
    };
    if entries != stored {
        return Err(Fault::new(format!(
            "{entries} entries, but the header announces {stored}"
        )));
    }
    Ok(banner)
}

thread_local! {
    /// Parsers that are free. To make the transition tables of one takes longer than to parse a short text, which is read in many ways for advice.
    static PARSERS: RefCell<Vec<Parser>> = const { RefCell::new(Vec::new()) };
}

/// A parser of cells.
struct Parser {
    delimiter: u8,
    reader: csv_core::Reader,
}

impl Parser {
    fn new(delimiter: u8) -> Self {
        let free = PARSERS.with_borrow_mut(|free| {
            let at = free.iter().position(|p| p.delimiter == delimiter)?;
            Some(free.swap_remove(at))
        });
        free.unwrap_or_else(|| Self {
            delimiter,
            reader: csv_core::ReaderBuilder::new()
                .delimiter(delimiter)
                .terminator(csv_core::Terminator::Any(b'\n'))
                .build(),
        })
    }
}

/// A record of cells, which may be quoted and then, but between tabs, go over several lines.
pub(crate) struct Record {
    /// Between tabs a quote is text unless it begins and ends a cell: programs do not quote there.
    parser: Option<Parser>,
    /// The text of all cells, one after the other.
    text: Vec<u8>,
    written: usize,
    /// Where every cell ends: below twice [`MAX_LINE`].
    ends: Vec<u32>,
}

impl Record {
    fn new(delimiter: u8) -> Self {
        Self {
            parser: (delimiter != b'\t').then(|| Parser::new(delimiter)),
            text: Vec::new(),
            written: 0,
            ends: Vec::new(),
        }
    }

    /// Takes its first line, or the next one; whether the record ends with it.
    fn take(&mut self, line: &str, first: bool) -> bool {
        if first {
            self.ends.clear();
            self.written = 0;
        }
        let Some(parser) = &mut self.parser else {
            self.text.clear();
            for cell in line.split('\t') {
                self.text.extend(unquoted(cell).as_bytes());
                self.ends.push(self.text.len() as u32);
            }
            self.written = self.text.len();
            return true;
        };
        if first {
            parser.reader.reset();
        }
        // A line of a quoted cell keeps its end.
        self.text.resize(self.written + line.len() + 1, 0);
        let (mut input, mut ended) = (line.as_bytes(), false);
        loop {
            if input.is_empty() && !ended {
                (input, ended) = (b"\n", true);
            }
            let out = &mut self.text[self.written..];
            let (result, read, wrote) = parser.reader.read_field(input, out);
            input = &input[read..];
            self.written += wrote;
            match result {
                csv_core::ReadFieldResult::Field { record_end } => {
                    self.ends.push(self.written as u32);
                    if record_end {
                        return true;
                    }
                }
                _ if ended => return false,
                _ => (),
            }
        }
    }

    /// Whether this first line names the columns of a table.
    fn is_header(&self, table: &Table) -> Result<bool, Fault> {
        let (mut numbers, mut words, mut corner) = (0, 0, true);
        // Of one column the name may be `Na`.
        let single = self.ends.len() == 1;
        let labels = match table.labels {
            Labels::Entries => self.ends.len().saturating_sub(1),
            _ => table.first_columns(),
        };
        for (at, cell) in self.cells().enumerate() {
            let cell = cell?;
            if at < labels {
                corner &= cell.is_empty();
                continue;
            }
            let is_number = cell.parse::<f64>().is_ok();
            numbers += usize::from(is_number);
            words += usize::from(!is_number && !cell.is_empty() && (single || !is_absent(cell)));
        }
        Ok(match table.header {
            Header::Yes => true,
            Header::No => false,
            Header::Auto if table.labels == Labels::FirstColumn => corner || words > numbers,
            Header::Auto => numbers == 0 && words > 0,
        })
    }

    /// Whether a cell has a line with as many cells, of which the last is a number.
    fn swallows(&self, delimiter: u8) -> bool {
        let cells = self.cells().filter_map(Result::ok);
        let mut lines = cells.flat_map(|cell| cell.split('\n').skip(1));
        let delimiter = char::from(delimiter);
        let like = |line: &str| {
            let last = line.rsplit(delimiter).next().unwrap_or_default();
            line.matches(delimiter).count() + 1 == self.ends.len()
                && last.trim().parse::<f64>().is_ok()
        };
        self.ends.len() > 1 && lines.any(like)
    }

    /// The cells.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Result<&str, Fault>> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| {
            let cell = std::str::from_utf8(&self.text[start as usize..end as usize]);
            let cell = cell
                .map_err(|_| Fault::new("is not text in UTF-8: save the file in that encoding"))?;
            let own = cell.trim();
            // Quotes behind a blank are none to the parser.
            let inner = own
                .strip_prefix('"')
                .and_then(|inner| inner.strip_suffix('"'));
            Ok(inner
                .filter(|_| cell.starts_with(char::is_whitespace))
                .unwrap_or(own))
        })
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(parser) = self.parser.take() {
            // A thread that ends has no place for it.
            let _ = PARSERS.try_with(|free| free.borrow_mut().push(parser));
        }
    }
}

/// The text of a cell in quotes, in which a quote is doubled; any other cell as it is.
fn unquoted(cell: &str) -> Cow<'_, str> {
    let quoted = cell
        .trim()
        .strip_prefix('"')
        .and_then(|cell| cell.strip_suffix('"'));
    match quoted.map(|inner| (inner, inner.replace("\"\"", ""))) {
        Some((inner, single)) if !single.contains('"') => inner.replace("\"\"", "\"").into(),
        _ => cell.into(),
    }
}

/// Whether a cell is a word that other programs write for a missing value.
#[doc(hidden)]
pub fn is_absent(cell: &str) -> bool {
    ["na", "n/a", "null", "none", "-"].contains(&&*cell.to_lowercase())
}

impl Table {
    /// Cells of every line before its numbers.
    fn first_columns(&self) -> usize {
        usize::from(self.labels == Labels::FirstColumn)
    }
}

/// What separates cells, by a first line that spreadsheets write of it.
fn separator(line: &str) -> Option<u8> {
    let line = line.trim_matches('"');
    match line
        .strip_prefix("sep=")
        .or(line.strip_prefix("SEP="))?
        .as_bytes()
    {
        &[byte] => Some(byte),
        _ => None,
    }
}

fn check_delimiter(delimiter: u8) -> Result<(), Fault> {
    if delimiter.is_ascii() && !b"\"\r\n".contains(&delimiter) {
        return Ok(());
    }
    let what = format!("{:?} cannot separate cells", char::from(delimiter));
    Err(Fault::new(what))
}

/// Calls `visit` with every record, and with the number of the last empty line before it, until `visit` says `false`. Without another word of the table or of
/// its first line `usual` separates cells.
pub(crate) fn for_each_record(
    reader: &mut impl BufRead,
    table: &Table,
    usual: u8,
    allowance: &Allowance,
    mut visit: impl FnMut(&Record, Option<usize>) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let mut delimiter = table.delimiter.unwrap_or(usual);
    check_delimiter(delimiter)?;
    let mut record = Record::new(delimiter);
    let (mut gap, mut more) = (None, true);
    // Where a record began that has not ended.
    let mut begun = None;
    for_each_line(reader, |number, line| {
        if !more {
            return Ok(());
        }
        if let (1, Some(own)) = (number, separator(line)) {
            if table.delimiter.is_none() {
                check_delimiter(own)?;
                delimiter = own;
                record = Record::new(own);
            }
            return Ok(());
        }
        let blank = |c: char| c.is_whitespace() && c != char::from(delimiter);
        if begun.is_none() && line.chars().all(blank) {
            gap = Some(number);
            return Ok(());
        }
        // Its text, and where every cell ends.
        allowance.spare((1 + size_of::<u32>()) * (record.written + line.len()))?;
        let before = record.written + record.ends.len();
        if begun.is_some() && before + line.len() > MAX_LINE {
            return Err(Fault::new("is too long"));
        }
        if !record.take(line, begun.is_none()) {
            begun = begun.or(Some(number));
            return Ok(());
        }
        if let Some(begin) = begun.take()
            && record.swallows(delimiter)
        {
            let what = format!(
                "the quote of line {begin} is closed here, and there are lines of the table between: a quote that is text is doubled, or stands in a cell between tabs"
            );
            return Err(Fault::new(what));
        }
        more = visit(&record, gap)?;
        Ok(())
    })?;
    match begun {
        Some(number) => Err(Fault::at(format!("line {number}"), "a quote is not closed")),
        None => Ok(()),
    }
}

/// What the rows and the columns of a table are called, where it says so.
pub(crate) fn read_names(
    reader: &mut impl BufRead,
    table: &Table,
    usual: u8,
    allowance: &Allowance,
) -> Result<[Option<Vec<String>>; 2], Fault> {
    let labels = table.first_columns();
    let (mut header, mut columns, mut rows) = (None, 0, Vec::new());
    for_each_record(reader, table, usual, allowance, |record, _| {
        if columns == 0 && header.is_none() && record.is_header(table)? {
            let names: Result<Vec<_>, _> = record.cells().map(|c| c.map(str::to_string)).collect();
            header = Some(names?);
            return Ok(true);
        }
        columns = record.ends.len().saturating_sub(labels);
        if labels > 0 {
            let name = record.cells().next().transpose()?.unwrap_or_default();
            allowance.take(size_of_name(name))?;
            rows.push(name.to_string());
        }
        // Without labels the first line of numbers is the last that is looked at.
        Ok(labels > 0)
    })?;
    let header = header.map(|mut names: Vec<String>| {
        // That of the column of labels.
        names.drain(..names.len().saturating_sub(columns).min(labels));
        names
    });
    Ok([
        (labels > 0).then_some(rows),
        header.filter(|names| names.len() == columns),
    ])
}

/// Memory for a name in a list.
pub(crate) fn size_of_name(name: &str) -> usize {
    size_of::<String>() + name.len().next_multiple_of(16)
}

/// Names of a dimension, numbered as they come.
#[derive(Default)]
struct Names(HashMap<String, u32>);

impl Names {
    fn number(&mut self, name: &str, allowance: &Allowance) -> Result<u32, Fault> {
        if let Some(&number) = self.0.get(name) {
            return Ok(number);
        }
        // Once here, and once in their order.
        allowance.take(2 * size_of_name(name))?;
        let next = u32::try_from(self.0.len()).ok().filter(|&n| n < u32::MAX);
        let next = next.ok_or_else(|| Fault::new("more names than a dimension has indices"))?;
        self.0.insert(name.to_string(), next);
        Ok(next)
    }

    /// The names in order, and the place of every number in it.
    fn sorted(self) -> (Vec<String>, Vec<u32>) {
        let mut names: Vec<(String, u32)> = self.0.into_iter().collect();
        names.sort();
        let whole = |name: &str| name.parse::<i64>().ok();
        if names.iter().all(|(name, _)| whole(name).is_some()) {
            names.sort_by_key(|(name, _)| whole(name));
        }
        let mut places = vec![0; names.len()];
        for (place, &(_, number)) in names.iter().enumerate() {
            places[number as usize] = place as u32;
        }
        (names.into_iter().map(|(name, _)| name).collect(), places)
    }
}

/// Sparse data of one entry a line: what its indices are called, then its value. Also the names of every dimension in the order of the indices.
pub(crate) fn read_entries<T: Element>(
    reader: &mut impl BufRead,
    table: &Table,
    usual: u8,
    accept: Accept<'_>,
) -> Result<(Coordinates<T>, Vec<Vec<String>>), Fault> {
    let mut names: Vec<Names> = Vec::new();
    let (mut header, mut indices, mut values) = (false, Vec::new(), Vec::new());
    for_each_record(reader, table, usual, accept.allowance, |record, _| {
        let cells = record.ends.len();
        if names.is_empty() {
            if cells < 2 {
                let cell = record.cells().next().transpose()?.unwrap_or_default();
                let few = Fault::new("needs at least one name and a value").with(cell);
                return Err(few.within("column 1"));
            }
            check_order(cells - 1)?;
            if !header && record.is_header(table)? {
                header = true;
                // Programs that number the rows write no name above the numbers.
                if cells > 2 && record.cells().next().transpose()? == Some("") {
                    let what = "has no name, as above numbers of rows: leave this column out, in R by row.names = FALSE, in pandas by index=False";
                    return Err(Fault::at("column 1", what));
                }
                return Ok(true);
            }
            names.resize_with(cells - 1, Names::default);
        }
        accept.allowance.take(size_of::<u32>() * names.len())?;
        if cells != names.len() + 1 {
            let what = format!(
                "has {cells} cells, the lines before have {}",
                names.len() + 1
            );
            return Err(Fault::new(what));
        }
        for (at, cell) in record.cells().enumerate() {
            let read = cell.and_then(|cell| match names.get_mut(at) {
                Some(_) if cell.is_empty() => Err(Fault::new("has no name")),
                Some(names) => names
                    .number(cell, accept.allowance)
                    .map(|i| indices.push(i)),
                None => value(cell, accept.nan_sparse, accept).map(|x| values.push(x)),
            });
            read.map_err(|e| e.within(format!("column {}", at + 1)))?;
        }
        Ok(true)
    })?;
    if values.is_empty() {
        return Err(Fault::new("holds no entry"));
    }
    let (names, places): (Vec<_>, Vec<_>) = names.into_iter().map(Names::sorted).unzip();
    for entry in indices.chunks_exact_mut(places.len()) {
        for (i, places) in entry.iter_mut().zip(&places) {
            *i = places[*i as usize];
        }
    }
    let shape = names.iter().map(Vec::len).collect();
    let entries = Coordinates {
        shape,
        indices,
        values,
    };
    Ok((entries, names))
}

/// Numbers in cells, which may be quoted. Empty ones are NaN, and so is `NA`.
pub(crate) fn read_table<T: Element>(
    reader: &mut impl BufRead,
    table: &Table,
    usual: u8,
    accept: Accept<'_>,
) -> Result<Array<T>, Fault> {
    let labels = table.first_columns();
    let mut values: Vec<T> = Vec::new();
    let (mut rows, mut columns) = (0, 0);
    let mut header = None;
    for_each_record(reader, table, usual, accept.allowance, |record, gap| {
        let count = record.ends.len();
        // In one column an empty line may be a missing value; nobody can tell.
        if let (Some(gap), true, 1) = (gap, rows > 0, columns + labels) {
            return Err(Fault::new(format!(
                "follows the empty line {gap} in a single column, write nan for a missing value"
            )));
        }
        if rows == 0 && header.is_none() && record.is_header(table)? {
            header = Some(count);
            return Ok(true);
        }
        for (at, cell) in record.cells().enumerate().skip(labels) {
            let cell = cell?;
            if cell.is_empty() && !accept.nan_dense {
                let empty = Fault::new("the cell is empty: `allow_nan` reads it as NaN");
                return Err(empty.within(format!("column {}", at + 1)));
            }
            let absent = cell.is_empty() || accept.nan_dense && is_absent(cell);
            let word = if absent { "nan" } else { cell };
            let x = value(word, accept.nan_dense, accept);
            values.push(x.map_err(|e| e.within(format!("column {}", at + 1)))?);
        }
        if count <= labels {
            let label = record.cells().next().transpose()?.unwrap_or_default();
            let alone = Fault::new("has a label and no number").with(label);
            return Err(alone.within("column 1"));
        }
        if rows == 0 {
            columns = match header {
                // Some programs give the column of the labels no name.
                Some(names) if names + labels != count => names - labels,
                _ => count - labels,
            };
        }
        if count - labels != columns {
            return Err(Fault::new(format!(
                "has {count} cells, the lines before have {}",
                columns + labels
            )));
        }
        rows += 1;
        Ok(true)
    })?;
    if rows == 0 {
        return Err(Fault::new("holds no numbers"));
    }
    Ok(Array {
        shape: vec![rows, columns],
        values,
        fortran: false,
    })
}
