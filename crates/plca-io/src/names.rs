//! What rows and columns are called.

use std::path::Path;

use crate::allowance::Allowance;
use crate::data::{Labels, accept, extension, is_table, open_unpacked, usual_delimiter};
use crate::error::Fault;
use crate::{IoError, ReadOptions, text};

/// The names of the indices of every dimension, `None` where a file has none: of a `.csv` or `.tsv` file from the first line if it names the columns, and from the
/// cells that are [`Labels`](crate::Labels). Other files have no names; then there is no entry.
///
/// ```
/// use plca_io::{Labels, ReadOptions, Table, read_names};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.csv");
/// std::fs::write(&path, "gene,one,two\nabc,1,2\nxyz,3,4\n")?;
/// let table = Table { labels: Labels::FirstColumn, ..Table::default() };
/// let names = read_names(&path, &ReadOptions { table, ..ReadOptions::default() })?;
/// assert_eq!(names[0].as_deref().unwrap(), ["abc", "xyz"]);
/// assert_eq!(names[1].as_deref().unwrap(), ["one", "two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`IoError`] for a file that cannot be read, and for cells that are not text.
pub fn read_names(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<Vec<Option<Vec<String>>>, IoError> {
    let path = path.as_ref();
    if !is_table(path) {
        return Ok(Vec::new());
    }
    let (extension, _) = extension(path);
    let attempt = || {
        let allowance = Allowance::shared(path, options.unpack_limit)?;
        let mut reader = open_unpacked(path, &allowance)?;
        let usual = usual_delimiter(&extension);
        match options.table.labels {
            Labels::Entries => {
                let accept = accept(options).within(&allowance);
                let (_, names) =
                    text::read_entries::<f64>(&mut reader, &options.table, usual, accept)?;
                Ok(names.into_iter().map(Some).collect())
            }
            _ => text::read_names(&mut reader, &options.table, usual, &allowance).map(Vec::from),
        }
    };
    attempt().map_err(|e: Fault| e.of(path))
}

/// A list of names, one on each line of a text file, which may be packed as `.gz`: what stands before a tab, where a line has one. Empty lines at the end name nothing. `unpack_limit` is
/// as in [`ReadOptions`].
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("features.tsv");
/// std::fs::write(&path, "ENSG1\tTP53\nENSG2\tMYC\n")?;
/// assert_eq!(plca_io::read_list(&path, None)?, ["ENSG1", "ENSG2"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`IoError`] for a file that cannot be read, and for lines that are not text.
pub fn read_list(
    path: impl AsRef<Path>,
    unpack_limit: Option<u64>,
) -> Result<Vec<String>, IoError> {
    let path = path.as_ref();
    let attempt = || {
        let allowance = Allowance::shared(path, unpack_limit)?;
        let (mut names, mut reader) = (Vec::new(), open_unpacked(path, &allowance)?);
        text::for_each_line(&mut reader, |_, line| {
            let name = line.split('\t').next().unwrap_or_default().trim();
            allowance.take(text::size_of_name(name))?;
            names.push(name.to_string());
            Ok(())
        })?;
        let empty = names.iter().rev().take_while(|name| name.is_empty());
        names.truncate(names.len() - empty.count());
        Ok(names)
    };
    attempt().map_err(|e: Fault| e.of(path))
}
