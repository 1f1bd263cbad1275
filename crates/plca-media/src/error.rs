//! Errors that name the file or the setting, and the value.

use std::path::{Path, PathBuf};

/// Why a file or a setting was refused.
///
/// ```
/// use plca_media::Stft;
/// assert_eq!(Stft::new(256, 0).unwrap_err().to_string(), "`hop` = 0 is not in 1..=128");
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// A file that cannot be read, decoded or written.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, on one line.
        what: String,
    },
    /// A file that could not be written.
    #[error(transparent)]
    Io(#[from] plca_io::IoError),
    /// A setting outside its domain.
    #[error("`{name}` = {value} is not {domain}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// The offending value.
        value: f64,
        /// What would do.
        domain: String,
    },
    /// A spectrum that is too large to be made.
    #[error(transparent)]
    Room(#[from] plca_io::NoRoom),
    /// Shares of another number of cells than the spectrum has.
    #[error("component {component} has {got} cells, the spectrum has {expected}")]
    Cells {
        /// Which component.
        component: usize,
        /// Cells it has.
        got: usize,
        /// Cells of the spectrum.
        expected: usize,
    },
    /// A share that is negative or not finite.
    #[error("component {component} is {value} at cell {cell}, not a finite number >= 0")]
    Share {
        /// Which component.
        component: usize,
        /// Which cell of the spectrum.
        cell: usize,
        /// The value.
        value: f64,
    },
}

impl MediaError {
    pub(crate) fn file(path: &Path, what: impl std::fmt::Display) -> Self {
        // Decoders' messages may have several lines.
        let what = what.to_string();
        let line = what.chars().map(|c| if c.is_control() { ' ' } else { c });
        Self::File {
            path: path.into(),
            what: line.take(1000).collect(),
        }
    }

    pub(crate) fn setting(name: &'static str, value: f64, domain: impl Into<String>) -> Self {
        Self::Setting {
            name,
            value,
            domain: domain.into(),
        }
    }
}

/// The ending of a file's name, in small letters; empty where there is none.
pub(crate) fn ending(path: &Path) -> String {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    ending.to_ascii_lowercase()
}
