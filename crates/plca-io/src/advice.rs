//! How a table that was refused can be read.

use std::io::Read;

use crate::allowance::Allowance;
use crate::data::{accept, extension, is_table, open_unpacked, usual_delimiter};
use crate::error::Fault;
use crate::text::{self, Accept, Record, for_each_record};
use crate::{Header, IoError, Labels, ReadOptions, Table};

/// Text that is looked at.
const LOOKED_AT: u64 = 1 << 18;

/// The cells of a line that nothing else separates.
const OWN: u8 = 0x1f;

/// What makes a table readable that was refused.
///
/// ```
/// use plca_io::{Header, ReadOptions, advice, read_data_with};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.csv");
/// std::fs::write(&path, "1:00;2:00\n1,5;2\n3;4,25\n")?;
/// let options = ReadOptions::default();
/// let refused = read_data_with::<f64>(&path, &options).unwrap_err();
/// let found = advice(&refused, &options).unwrap();
/// assert_eq!((found.table.delimiter, found.decimal_comma), (Some(b';'), true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Advice {
    /// The options to read it by.
    pub table: Table,
    /// The first line has to go.
    pub without_first_line: bool,
    /// A column has to go, which has this number, from 1.
    pub without_column: Option<usize>,
    /// Numbers have a comma where a decimal point is needed.
    pub decimal_comma: bool,
}

/// How a `.csv` or `.tsv` file can be read that was refused with these options, by trying: with as few changes as possible. `None` if no change helps, and for other files.
///
/// Where a file is longer than 256 KiB its begin is tried.
pub fn advice(refused: &IoError, options: &ReadOptions) -> Option<Advice> {
    let path = refused.path();
    let (extension, _) = extension(path);
    // What names no column is no matter of a table, and a number that is not accepted is one however the table is read.
    let line = refused.place().strip_prefix("line ")?;
    let (line, _) = line.split_once(": column ")?;
    if !is_table(path) || refused.word().is_none() {
        return None;
    }
    let mut text = Vec::new();
    let allowance = Allowance::shared(path, None).ok()?;
    let reader = open_unpacked(path, &allowance).ok()?;
    reader.take(LOOKED_AT).read_to_end(&mut text).ok()?;
    if text.len() as u64 == LOOKED_AT {
        text.truncate(text.iter().rposition(|byte| b"\r\n".contains(byte))? + 1);
    }
    let mut trial = Trial {
        alone: false,
        text: &text,
        usual: usual_delimiter(&extension),
        word: refused.word().unwrap_or_default(),
        first: line == "1",
        own: options
            .table
            .delimiter
            .unwrap_or(usual_delimiter(&extension)),
        accept: accept(options).within(&allowance),
    };
    trial.alone = trial.is_alone().unwrap_or_default();
    let mut found: Option<(u32, Advice)> = None;
    for (cost, advice) in candidates(&options.table, trial.usual, trial.alone) {
        let dearest = found.as_ref().map_or(u32::MAX, |found| found.0);
        if cost >= dearest {
            break;
        }
        match trial.read(&advice) {
            Ok(()) => found = Some((cost, advice)),
            Err(fault) => {
                let column = fault.place.rsplit_once("column ").map(|found| found.1);
                let without = Advice {
                    without_column: column.and_then(|column| column.parse().ok()),
                    ..advice
                };
                let first = without.table.labels != Labels::None;
                let some = without
                    .without_column
                    .is_some_and(|at| at > usize::from(first));
                if some && cost + 4 < dearest && trial.read(&without).is_ok() {
                    found = Some((cost + 4, without));
                }
            }
        }
    }
    Some(found?.1)
}

/// What may help, and how much it asks for: what a person has said is changed last.
fn candidates(said: &Table, usual: u8, alone: bool) -> Vec<(u32, Advice)> {
    let delimiters = [b'\t', b';', b'|', b' ', b','].map(Some);
    let own = said.delimiter.unwrap_or(usual);
    let delimiters = delimiters.into_iter().filter(|&other| other != Some(own));
    let delimiters: Vec<_> = std::iter::once(said.delimiter).chain(delimiters).collect();
    let mut all = Vec::new();
    for &delimiter in &delimiters {
        for labels in [Labels::None, Labels::FirstColumn, Labels::Entries] {
            // Every line has a value then, which no other reading keeps.
            if said.labels == Labels::Entries && labels != said.labels && !alone {
                continue;
            }
            for header in [Header::Auto, Header::Yes, Header::No] {
                let table = Table {
                    header,
                    delimiter,
                    labels,
                };
                let changes = [
                    (header != said.header, said.header != Header::Auto),
                    (delimiter != said.delimiter, said.delimiter.is_some()),
                    (labels != said.labels, said.labels != Labels::None),
                ];
                let costs =
                    changes.map(|(changed, said)| u32::from(changed) * (1 + u32::from(said)));
                let cost: u32 = costs.iter().sum::<u32>()
                    + u32::from(labels == Labels::Entries && costs[2] > 0);
                for without_first_line in [false, true] {
                    for decimal_comma in [false, true] {
                        let more = 2 * u32::from(without_first_line) + u32::from(decimal_comma);
                        if decimal_comma && delimiter.unwrap_or(usual) == b',' {
                            continue;
                        }
                        let advice = Advice {
                            table: table.clone(),
                            without_first_line,
                            without_column: None,
                            decimal_comma,
                        };
                        all.push((cost + more, advice));
                    }
                }
            }
        }
    }
    all.sort_by_key(|&(cost, _)| cost);
    all
}

/// Whether a word is a number, perhaps with a comma in place of the decimal point.
fn is_number(word: &str) -> bool {
    word.replace(',', ".").parse::<f64>().is_ok()
}

/// A table that is read again and again.
struct Trial<'a> {
    text: &'a [u8],
    usual: u8,
    /// What was refused.
    word: &'a str,
    /// The delimiter by which it was.
    own: u8,
    /// Whether it was all of a line.
    alone: bool,
    /// Whether the first line was refused.
    first: bool,
    accept: Accept<'a>,
}

impl Trial<'_> {
    fn read(&self, advice: &Advice) -> Result<(), Fault> {
        let delimiter = advice.table.delimiter.unwrap_or(self.usual);
        // A blank separates what is a line of one cell, not what is a cell among others.
        if delimiter == b' ' && delimiter != self.own && !self.alone {
            return Err(Fault::new("a cell has several words"));
        }
        let mut text = self.text;
        if advice.without_first_line {
            let (mut line, mut size) = (0, 0);
            for_each_record(
                &mut text,
                &advice.table,
                self.usual,
                self.accept.allowance,
                |record: &Record, _| {
                    line += 1;
                    let cells: Vec<&str> = record.cells().filter_map(Result::ok).collect();
                    if line == 1 && cells.iter().any(|cell| is_number(cell)) {
                        return Err(Fault::new("the first line holds numbers"));
                    }
                    // A title has other cells than the table, a header as many.
                    if line == 2 && cells.len() == size && !self.first {
                        return Err(Fault::new("the first line names the columns"));
                    }
                    size = cells.len();
                    Ok(line < 2)
                },
            )?;
            text = self.text;
            let end = text.iter().position(|byte| b"\r\n".contains(byte));
            text = end.map_or(&[][..], |end| &text[end + 1..]);
            text = text.strip_prefix(b"\n").unwrap_or(text);
        }
        self.doubt(text, advice)?;
        self.named(text, advice)?;
        let (changed, mut table) = (self.changed(text, advice)?, advice.table.clone());
        if changed.is_some() {
            table.delimiter = Some(OWN);
        }
        let mut reader = changed.as_deref().unwrap_or(text);
        if table.labels != Labels::Entries {
            let read = text::read_table::<f64>(&mut reader, &table, self.usual, self.accept)?;
            let columns = read.shape[1];
            let absent = |column| {
                let cells = read.values.iter().skip(column).step_by(columns);
                cells.clone().all(|x| x.is_nan())
            };
            // As between two blanks.
            return match (0..columns).any(absent) {
                true => Err(Fault::new("a column holds no number")),
                false => Ok(()),
            };
        }
        let mut reader_of_names = reader;
        let (entries, _) = text::read_entries::<f64>(&mut reader, &table, self.usual, self.accept)?;
        // Numbers before the last are no names.
        let (mut lines, count) = (0, entries.values.len());
        for_each_record(
            &mut reader_of_names,
            &table,
            self.usual,
            self.accept.allowance,
            |record: &Record, _| {
                lines += 1;
                let cells = record.cells().collect::<Result<Vec<_>, _>>()?;
                let names = cells.split_last().map_or(&[][..], |(_, names)| names);
                let number = names.iter().any(|name| name.parse::<f64>().is_ok());
                match number && (lines > 1 || count == 1) {
                    true => Err(Fault::new("holds several numbers")),
                    false => Ok(true),
                }
            },
        )
    }

    /// Refuses to take for data, or for names without a header, a column of numbers whose first cell is the only word of its line: a header of numbers, and the name of a column of names.
    fn named(&self, mut text: &[u8], advice: &Advice) -> Result<(), Fault> {
        let Table { header, labels, .. } = &advice.table;
        let whole = (Header::Yes, Labels::FirstColumn);
        if *labels == Labels::Entries || (*header, *labels) == whole {
            return Ok(());
        }
        let (mut line, mut corner) = (0, false);
        for_each_record(
            &mut text,
            &advice.table,
            self.usual,
            self.accept.allowance,
            |record: &Record, _| {
                line += 1;
                let cells = record.cells().collect::<Result<Vec<_>, _>>()?;
                let Some((first, others)) = cells.split_first() else {
                    return Ok(line < 2);
                };
                if line == 1 {
                    corner = !is_number(first) && !first.is_empty() && others.len() > 1;
                    corner &= others.iter().all(|cell| is_number(cell));
                }
                match corner && line == 2 && is_number(first) {
                    true => Err(Fault::new("the first column is named as names are")),
                    false => Ok(corner && line < 2),
                }
            },
        )
    }

    /// Whether a line has a single cell, which is the one that was refused.
    fn is_alone(&self) -> Result<bool, Fault> {
        let (mut text, mut alone) = (self.text, false);
        let table = Table {
            delimiter: Some(self.own),
            ..Table::default()
        };
        for_each_record(
            &mut text,
            &table,
            self.usual,
            self.accept.allowance,
            |record: &Record, _| {
                let cells = record.cells().collect::<Result<Vec<_>, _>>()?;
                alone |= cells == [self.word];
                Ok(!alone)
            },
        )?;
        Ok(alone)
    }

    /// Refuses cells that hold several numbers, and to leave out a column that holds numbers.
    fn doubt(&self, mut text: &[u8], advice: &Advice) -> Result<(), Fault> {
        let (mut numbers, mut words) = (0, 0);
        for_each_record(
            &mut text,
            &advice.table,
            self.usual,
            self.accept.allowance,
            |record: &Record, _| {
                for (at, cell) in record.cells().enumerate() {
                    let cell = cell?;
                    let several = |separator| {
                        cell.contains(separator) && cell.split(separator).all(is_number)
                    };
                    if [';', '\t', '|'].into_iter().any(several) {
                        return Err(Fault::new("a cell holds several numbers"));
                    }
                    if advice.without_column == Some(at + 1) {
                        numbers += usize::from(is_number(cell));
                        words += usize::from(!is_number(cell));
                    }
                }
                Ok(true)
            },
        )?;
        match words <= numbers && advice.without_column.is_some() {
            true => Err(Fault::new("the column holds numbers")),
            false => Ok(()),
        }
    }

    /// The text with its cells changed, where they are.
    fn changed(&self, mut text: &[u8], advice: &Advice) -> Result<Option<Vec<u8>>, Fault> {
        if advice.without_column.is_none() && !advice.decimal_comma {
            return Ok(None);
        }
        let mut changed = Vec::new();
        for_each_record(
            &mut text,
            &advice.table,
            self.usual,
            self.accept.allowance,
            |record: &Record, _| {
                let cells = record.cells().enumerate();
                let kept = cells.filter(|&(at, _)| advice.without_column != Some(at + 1));
                for (at, cell) in kept.map(|(_, cell)| cell).enumerate() {
                    if at > 0 {
                        changed.push(OWN);
                    }
                    let cell = cell?.replace('"', "\"\"");
                    let point = cell.replace(',', ".");
                    let is_number = advice.decimal_comma && point.parse::<f64>().is_ok();
                    let cell = if is_number { point } else { cell };
                    changed.extend(format!("\"{cell}\"").bytes());
                }
                changed.push(b'\n');
                Ok(true)
            },
        )?;
        Ok(Some(changed))
    }
}
