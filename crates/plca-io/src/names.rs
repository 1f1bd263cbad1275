//! What rows and columns are called.

use std::path::Path;

use crate::data::{delimiter, extension, open_unpacked};
use crate::{IoError, ReadOptions, text};

/// The names of the indices of every dimension, `None` where a file has none: from the first line of a `.csv` or `.tsv` file if it names the columns, and from the
/// first column if [`Table::labels`](crate::Table::labels) says that it names the rows. Other files have no names; then there is no entry.
///
/// ```
/// use plca_io::{ReadOptions, Table, read_names};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.csv");
/// std::fs::write(&path, "gene,one,two\nabc,1,2\nxyz,3,4\n")?;
/// let table = Table { labels: true, ..Table::default() };
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
        text::read_names(&mut reader, &options.table, delimiter)
    };
    attempt().map(Vec::from).map_err(|e| e.of(path))
}
