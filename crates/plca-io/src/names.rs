//! What rows and columns are called.

use std::path::Path;

use crate::data::{Labels, accept, delimiter, extension, open_unpacked};
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
    let (extension, _) = extension(path);
    if !["csv", "tsv"].contains(&extension.as_str()) {
        return Ok(Vec::new());
    }
    let attempt = || {
        let mut reader = open_unpacked(path)?;
        let delimiter = delimiter(&extension, &options.table);
        match options.table.labels {
            Labels::Entries => {
                let accept = accept(options);
                let (_, names) =
                    text::read_entries::<f64>(&mut reader, &options.table, delimiter, accept)?;
                Ok(names.into_iter().map(Some).collect())
            }
            _ => text::read_names(&mut reader, &options.table, delimiter).map(Vec::from),
        }
    };
    attempt().map_err(|e: Fault| e.of(path))
}
