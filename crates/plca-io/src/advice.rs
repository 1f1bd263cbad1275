//! How a table that was refused can be read.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read;
use std::rc::Rc;

use crate::allowance::Allowance;
use crate::data::{accept, extension, is_table, open_unpacked, usual_delimiter};
use crate::error::Fault;
use crate::text::{self, Accept, for_each_record};
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
        cuts: RefCell::default(),
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
    for (cost, advice) in candidates(&options.table, &trial) {
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
fn candidates(said: &Table, trial: &Trial<'_>) -> Vec<(u32, Advice)> {
    let (usual, alone) = (trial.usual, trial.alone);
    // Of `;`, `|` and `,` that the text does not have one is enough: by each of them every line is a single cell.
    let mut absent = false;
    let delimiters = [b'\t', b';', b'|', b' ', b','].into_iter().filter(|other| {
        let first = match trial.text.contains(other) || [b'\t', b' '].contains(other) {
            true => true,
            false => *other != trial.own && !std::mem::replace(&mut absent, true),
        };
        *other != trial.own && first
    });
    let delimiters: Vec<_> = std::iter::once(said.delimiter)
        .chain(delimiters.map(Some))
        .collect();
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
    match word.contains(',') {
        true => word.replace(',', ".").parse::<f64>().is_ok(),
        false => word.parse::<f64>().is_ok(),
    }
}

/// The cells of a text.
struct Cut {
    cells: String,
    /// Where every cell ends.
    ends: Vec<u32>,
    /// The number of cells up to the end of every line.
    lines: Vec<u32>,
}

impl Cut {
    /// The cells of every line.
    fn lines(&self) -> impl Iterator<Item = impl ExactSizeIterator<Item = &str>> {
        let begins = std::iter::once(&0).chain(&self.lines);
        begins.zip(&self.lines).map(|(&begin, &end)| {
            (begin as usize..end as usize).map(|at| {
                let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
                &self.cells[begin as usize..self.ends[at] as usize]
            })
        })
    }
}

/// What separates cells, and whether the first line has gone.
type Way = (Option<u8>, bool);

/// A table that is read again and again.
struct Trial<'a> {
    text: &'a [u8],
    /// Its cells by every way to cut it that was tried; none where it cannot be cut so.
    cuts: RefCell<HashMap<Way, Option<Rc<Cut>>>>,
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
        let mut table = advice.table.clone();
        let delimiter = table.delimiter.unwrap_or(self.usual);
        // A blank separates what is a line of one cell, not what is a cell among others.
        if delimiter == b' ' && delimiter != self.own && !self.alone {
            return Err(Fault::new("a cell has several words"));
        }
        let way = (table.delimiter, advice.without_first_line);
        let cut = self.cuts.borrow().get(&way).cloned();
        let cut = cut.unwrap_or_else(|| {
            let cut = self.cut(way).ok().map(Rc::new);
            self.cuts.borrow_mut().insert(way, cut.clone());
            cut
        });
        let cut = cut.ok_or_else(|| Fault::new("cannot be cut into cells"))?;
        doubt(&cut, advice)?;
        let changed = changed(&cut, advice);
        if changed.is_some() {
            table.delimiter = Some(OWN);
        }
        let mut reader = match &changed {
            Some(changed) => changed.as_bytes(),
            None => self.text(way),
        };
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
        let (entries, _) = text::read_entries::<f64>(&mut reader, &table, self.usual, self.accept)?;
        // Numbers before the last are no names.
        let (mut lines, count) = (0, entries.values.len());
        let (text, delimiter) = match &changed {
            Some(changed) => (changed.as_bytes(), Some(OWN)),
            None => (self.text(way), way.0),
        };
        self.for_each(text, delimiter, |cells| {
            lines += 1;
            let names = cells.split_last().map_or(&[][..], |(_, names)| names);
            let number = names.iter().any(|name| name.parse::<f64>().is_ok());
            match number && (lines > 1 || count == 1) {
                true => Err(Fault::new("holds several numbers")),
                false => Ok(true),
            }
        })
    }

    /// The text that is read.
    fn text(&self, (_, without_first_line): Way) -> &[u8] {
        if !without_first_line {
            return self.text;
        }
        let end = self.text.iter().position(|byte| b"\r\n".contains(byte));
        let text = end.map_or(&[][..], |end| &self.text[end + 1..]);
        text.strip_prefix(b"\n").unwrap_or(text)
    }

    /// Calls `visit` with the cells of every record.
    fn for_each(
        &self,
        mut text: &[u8],
        delimiter: Option<u8>,
        mut visit: impl FnMut(&[&str]) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let table = Table {
            delimiter,
            ..Table::default()
        };
        let allowance = self.accept.allowance;
        for_each_record(&mut text, &table, self.usual, allowance, |record, _| {
            visit(&record.cells().collect::<Result<Vec<_>, _>>()?)
        })
    }

    /// The cells. Refused are a first line that is no title but has to go, and a cell that holds several numbers.
    fn cut(&self, way: Way) -> Result<Cut, Fault> {
        if way.1 {
            let mut size = None;
            self.for_each(self.text, way.0, |cells| {
                if size.is_none() && cells.iter().any(|cell| is_number(cell)) {
                    return Err(Fault::new("the first line holds numbers"));
                }
                // A title has other cells than the table, a header as many.
                if size == Some(cells.len()) && !self.first {
                    return Err(Fault::new("the first line names the columns"));
                }
                let more = size.is_none();
                size = Some(cells.len());
                Ok(more)
            })?;
        }
        let mut cut = Cut {
            cells: String::new(),
            ends: Vec::new(),
            lines: Vec::new(),
        };
        self.for_each(self.text(way), way.0, |cells| {
            for cell in cells {
                let several =
                    |separator| cell.contains(separator) && cell.split(separator).all(is_number);
                if [';', '\t', '|'].into_iter().any(several) {
                    return Err(Fault::new("a cell holds several numbers"));
                }
                cut.cells.push_str(cell);
                cut.ends.push(cut.cells.len() as u32);
            }
            cut.lines.push(cut.ends.len() as u32);
            Ok(true)
        })?;
        Ok(cut)
    }

    /// Whether a line has a single cell, which is the one that was refused.
    fn is_alone(&self) -> Result<bool, Fault> {
        let mut alone = false;
        self.for_each(self.text, Some(self.own), |cells| {
            alone |= cells == [self.word];
            Ok(!alone)
        })?;
        Ok(alone)
    }
}

/// The cells of a line that are left.
fn kept<'a>(
    cells: impl Iterator<Item = &'a str>,
    advice: &Advice,
) -> impl Iterator<Item = &'a str> {
    let cells = cells.enumerate();
    cells.filter_map(|(at, cell)| (advice.without_column != Some(at + 1)).then_some(cell))
}

/// Refuses to leave out a column that holds numbers. Also where the first line has one word, at its begin, and numbers behind it: then it is a header whose columns are named by numbers, and the first column
/// holds names, so that it is refused to take that column for data.
fn doubt(cut: &Cut, advice: &Advice) -> Result<(), Fault> {
    if let Some(column) = advice.without_column {
        let cells = cut.lines().filter_map(|mut cells| cells.nth(column - 1));
        let numbers = cells.map(|cell| if is_number(cell) { 1 } else { -1 });
        if numbers.sum::<i64>() >= 0 {
            return Err(Fault::new("the column holds numbers"));
        }
    }
    let Table { header, labels, .. } = &advice.table;
    let whole = (Header::Yes, Labels::FirstColumn);
    if *labels == Labels::Entries || (*header, *labels) == whole {
        return Ok(());
    }
    let mut lines = cut.lines();
    let (Some(mut names), Some(mut numbers)) = (lines.next(), lines.next()) else {
        return Ok(());
    };
    let corner = names.len() > 2
        && names
            .next()
            .is_some_and(|first| !is_number(first) && !first.is_empty())
        && names.all(is_number);
    match corner && numbers.next().is_some_and(is_number) {
        true => Err(Fault::new("the first column is named as names are")),
        false => Ok(()),
    }
}

/// The text with its cells changed, where they are.
fn changed(cut: &Cut, advice: &Advice) -> Option<String> {
    if advice.without_column.is_none() && !advice.decimal_comma {
        return None;
    }
    let mut changed = String::with_capacity(cut.cells.len() + 3 * cut.ends.len());
    for cells in cut.lines() {
        for (at, cell) in kept(cells, advice).enumerate() {
            if at > 0 {
                changed.push(char::from(OWN));
            }
            changed.push('"');
            if advice.decimal_comma && is_number(cell) {
                changed.extend(cell.chars().map(|c| if c == ',' { '.' } else { c }));
            } else {
                cell.split('"').enumerate().for_each(|(at, part)| {
                    changed.push_str(if at > 0 { "\"\"" } else { "" });
                    changed.push_str(part);
                });
            }
            changed.push('"');
        }
        changed.push('\n');
    }
    Some(changed)
}
