//! Options that say how a table of numbers is read.

use clap::{Args, ValueEnum};
use plca_io::{Header, ReadOptions, Table};

use crate::args::DataArgs;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeaderLine {
    /// The first line is a header if none of its cells is a number.
    Auto,
    /// The first line is a header.
    Yes,
    /// The first line is data.
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Labels {
    /// The first cell of every line is a label and is not read as data.
    FirstColumn,
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
    /// One ASCII character, or `tab`. The default is a comma for .csv and a tab for .tsv.
    #[arg(long, value_name = "C", value_parser = delimiter, allow_hyphen_values = true, help_heading = "Data")]
    pub(crate) delimiter: Option<u8>,
    /// .csv, .tsv: which cells are labels
    #[arg(long, value_name = "WHICH", help_heading = "Data")]
    pub(crate) labels: Option<Labels>,
}

fn delimiter(s: &str) -> Result<u8, String> {
    match s.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        &[byte] if byte.is_ascii() => Ok(byte),
        _ => Err("expected one ASCII character, or `tab`".into()),
    }
}

impl DataArgs {
    /// What is read, NaN included: they are refused by their index where they are not hidden.
    pub(crate) fn reading(&self) -> ReadOptions {
        ReadOptions {
            shape: self.shape.as_ref().map(|s| s.0.clone()),
            array: self.array.clone(),
            allow_nan: true,
            table: Table {
                header: match self.table.header {
                    None | Some(HeaderLine::Auto) => Header::Auto,
                    Some(HeaderLine::Yes) => Header::Yes,
                    Some(HeaderLine::No) => Header::No,
                },
                delimiter: self.table.delimiter,
                labels: self.table.labels.is_some(),
            },
            ..ReadOptions::default()
        }
    }
}
