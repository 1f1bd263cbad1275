//! Options that say how a table of numbers is read.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use plca_io::{Advice, Header, Table};

use crate::failure::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeaderLine {
    /// The first line is a header if none of its cells is a number.
    Auto,
    /// The first line is a header.
    Yes,
    /// The first line is data.
    No,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Labels {
    /// The first cell of every line is the name of its row.
    FirstColumn,
    /// Every line is an entry of sparse data: the names of its indices, then its value.
    Entries,
    /// A file of names, one on each line, for the dimension that has as many indices.
    Names(PathBuf),
}

/// How .csv and .tsv files are read.
#[derive(Clone, Debug, Args)]
pub(crate) struct TableArgs {
    /// .csv, .tsv: line 1 names the columns: auto, yes or no [default: auto]
    ///
    /// The option without a value means yes.
    #[arg(long, value_name = "WHEN", num_args = 0..=1, default_missing_value = "yes", help_heading = "Data")]
    pub(crate) header: Option<HeaderLine>,
    /// .csv, .tsv: separator of cells [default: a comma or a tab]
    ///
    /// One ASCII character, or `tab`. The default is what a first line such as `sep=;` says, or a comma for .csv and a tab for .tsv.
    #[arg(long, value_name = "C", value_parser = delimiter, allow_hyphen_values = true, help_heading = "Data")]
    pub(crate) delimiter: Option<u8>,
    /// .csv, .tsv: first-column or entries; of any format a FILE of names
    ///
    /// With first-column the first cell of every line names its row. With entries every line is an entry of sparse data, such as
    /// word,document,count. A file, also .gz, has a name on each line, up to a tab, for the dimension that has as many indices, such as the words of a Matrix Market file.
    #[arg(long, value_name = "WHICH", value_parser = labels, help_heading = "Data")]
    pub(crate) labels: Option<Labels>,
}

impl TableArgs {
    /// Refuses files of which each would number its names anew.
    pub(crate) fn of_several_files(&self, what: &str) -> Result<(), Failure> {
        match self.labels {
            Some(Labels::Entries) => Err(Failure::usage(format!(
                "--labels entries cannot be combined with {what}: every file would have indices of its own; expected a format whose indices are the same in all, such as .mtx"
            ))),
            _ => Ok(()),
        }
    }

    /// The same for a reader.
    pub(crate) fn reading(&self) -> Table {
        Table {
            header: match self.header {
                None | Some(HeaderLine::Auto) => Header::Auto,
                Some(HeaderLine::Yes) => Header::Yes,
                Some(HeaderLine::No) => Header::No,
            },
            delimiter: self.delimiter,
            labels: match self.labels {
                None | Some(Labels::Names(_)) => plca_io::Labels::None,
                Some(Labels::FirstColumn) => plca_io::Labels::FirstColumn,
                Some(Labels::Entries) => plca_io::Labels::Entries,
            },
        }
    }

    /// What reads a table that these options do not.
    pub(crate) fn advised(&self, advice: &Advice) -> Option<String> {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        if advice.without_first_line {
            without.push("line 1".to_string());
        }
        if let Some(column) = advice.without_column {
            without.push(format!("column {column}"));
        }
        let Table {
            header,
            delimiter,
            labels,
        } = &advice.table;
        if let Some(byte) = delimiter.filter(|_| *delimiter != self.delimiter) {
            with.push(match byte {
                b'\t' => "--delimiter tab".to_string(),
                byte => format!("--delimiter '{}'", char::from(byte)),
            });
        }
        match labels {
            _ if *labels == self.reading().labels => {}
            plca_io::Labels::FirstColumn => {
                with.push("--labels first-column (names of rows)".into());
            }
            plca_io::Labels::Entries => {
                with.push("--labels entries (names, then a value, in every line)".into());
            }
            _ => with.push("no --labels".into()),
        }
        match header {
            _ if *header == self.reading().header => {}
            Header::Yes => with.push("--header yes".into()),
            Header::No => with.push("--header no".into()),
            _ => with.push("no --header".into()),
        }
        if advice.decimal_comma {
            with.push("a decimal point in place of the comma in numbers".into());
        }
        let parts = [("without", without), ("with", with)];
        let parts = parts.iter().filter(|(_, what)| !what.is_empty());
        let parts: Vec<String> = parts
            .map(|(how, what)| format!("{how} {}", what.join(" and ")))
            .collect();
        (!parts.is_empty()).then(|| format!("it can be read {}", parts.join(" and ")))
    }

    /// What [`Self::labels`] is called in settings.
    pub(crate) fn labels(&self) -> Option<String> {
        Some(match self.labels.as_ref()? {
            Labels::FirstColumn => "first-column".into(),
            Labels::Entries => "entries".into(),
            Labels::Names(path) => path.display().to_string(),
        })
    }
}

fn labels(s: &str) -> Result<Labels, String> {
    match s {
        "first-column" => Ok(Labels::FirstColumn),
        "entries" => Ok(Labels::Entries),
        path if Path::new(path).is_file() => Ok(Labels::Names(path.into())),
        _ => Err("expected first-column, entries, or a file of names".into()),
    }
}

fn delimiter(s: &str) -> Result<u8, String> {
    match s.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        &[byte] if byte.is_ascii() => Ok(byte),
        _ => Err("expected one ASCII character, or `tab`".into()),
    }
}
