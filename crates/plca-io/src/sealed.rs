//! Whether a file is the one whose checksum was taken.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::IoError;
use crate::data::{hexadecimal, sha256_file};

/// A file's checksum, and what tells whether the file was changed since it was taken: what is read in between is what the checksum
/// is of.
///
/// ```
/// use plca_io::{Sealed, sha256_file};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("v.csv");
/// std::fs::write(&path, "1,2\n")?;
/// let sealed = Sealed::of(&path)?;
/// assert_eq!(sealed.sha256()?, sha256_file(&path)?);
/// std::fs::write(&path, "1,2,3\n")?;
/// assert!(sealed.sha256().unwrap_err().to_string().ends_with("v.csv: was changed while it was read"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    path: PathBuf,
    sha256: String,
    stamp: Stamp,
}

/// What changes with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode, and when either the contents or the entry were changed, which nobody can set.
    #[cfg(unix)]
    entry: [i64; 4],
}

impl Stamp {
    fn of(path: &Path) -> Result<Self, IoError> {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        let found = path.metadata().map_err(|e| IoError::system(path, e))?;
        Ok(Self {
            length: found.len(),
            modified: found.modified().ok(),
            #[cfg(unix)]
            entry: [
                found.dev().cast_signed(),
                found.ino().cast_signed(),
                found.ctime(),
                found.ctime_nsec(),
            ],
        })
    }
}

impl Sealed {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`IoError`] if it cannot be read.
    pub fn of(path: &Path) -> Result<Self, IoError> {
        let stamp = Stamp::of(path)?;
        let sha256 = sha256_file(path)?;
        Ok(Self {
            path: path.into(),
            sha256,
            stamp,
        })
    }

    /// The hexadecimal SHA-256 of the file's bytes, if they are still the same.
    ///
    /// # Errors
    ///
    /// [`IoError`] if the file was changed or is gone.
    pub fn sha256(&self) -> Result<&str, IoError> {
        if Stamp::of(&self.path)? == self.stamp {
            return Ok(&self.sha256);
        }
        let what = "was changed while it was read";
        Err(IoError::new(&self.path, what))
    }

    /// The hexadecimal SHA-256 of some files in their order, which also says how many they are and where one ends and the next begins:
    /// that of a text with the [`sha256`](Self::sha256) of every file on a line of its own.
    ///
    /// # Errors
    ///
    /// [`IoError`] if one of them was changed or is gone.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_io::Sealed;
    /// # let folder = tempfile::tempdir()?;
    /// let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    /// let sum = |names: [&str; 2]| {
    ///     let files = names.map(|name| Sealed::of(&folder.path().join(name)));
    ///     Sealed::sha256_of_all(&files.into_iter().collect::<Result<Vec<_>, _>>()?)
    /// };
    /// (write("1", "ab")?, write("2", "c")?);
    /// // sha256sum 1 2 | cut -d ' ' -f 1 | sha256sum
    /// let expected = "79d06e9bece466a995552c571732d55b1093df8eef85c16ef8159fa4131f53d2";
    /// assert_eq!(sum(["1", "2"])?, expected);
    /// assert_ne!(sum(["2", "1"])?, expected);
    /// (write("1", "a")?, write("2", "bc")?);                              // the same bytes, cut elsewhere
    /// assert_ne!(sum(["1", "2"])?, expected);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sha256_of_all<'a>(files: impl IntoIterator<Item = &'a Self>) -> Result<String, IoError> {
        let mut hash = Sha256::new();
        for file in files {
            hash.update(file.sha256()?);
            hash.update("\n");
        }
        Ok(hexadecimal(hash))
    }
}
