//! Errors that name the file, the place and the value.

use std::cell::Cell;
use std::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::allowance::Needs;

/// Longest line that is shown, in characters.
const MAX_MESSAGE: usize = 4096;

/// Why a file was refused: one line, `path: place: what`.
///
/// ```
/// # use std::path::Path;
/// let error = plca_io::IoError::at(Path::new("v.tns"), "line 2", "`two\nlines` is not a number");
/// assert_eq!(error.to_string(), "v.tns: line 2: `two lines` is not a number");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct IoError {
    path: PathBuf,
    fault: Fault,
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = format!("{}: ", self.path.display());
        if !self.place().is_empty() {
            line.push_str(&format!("{}: ", self.place()));
        }
        line.push_str(&self.fault.what);
        // Library messages and words of hostile files may have several lines or be long; a user's line is one.
        for c in line.chars().take(MAX_MESSAGE) {
            f.write_char(if c.is_control() { ' ' } else { c })?;
        }
        Ok(())
    }
}

impl IoError {
    /// An error about the file as a whole.
    ///
    /// ```
    /// # use std::path::Path;
    /// let error = plca_io::IoError::new(Path::new("v.npy"), "is empty");
    /// assert_eq!((error.to_string().as_str(), error.place()), ("v.npy: is empty", ""));
    /// ```
    pub fn new(path: &Path, what: impl fmt::Display) -> Self {
        Fault::new(what).of(path)
    }

    /// What the system says of a file.
    pub(crate) fn system(path: &Path, e: std::io::Error) -> Self {
        Fault::from(e).of(path)
    }

    /// The file that was refused.
    ///
    /// ```
    /// # use std::path::Path;
    /// let error = plca_io::read_data::<f64>(Path::new("v.xyz"), None).unwrap_err();
    /// assert_eq!(error.path(), Path::new("v.xyz"));
    /// ```
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Line, member or entry in the file; empty where the whole file is meant.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("v.tns");
    /// std::fs::write(&path, "1 1 3\n2 0 0.5\n")?;
    /// assert_eq!(plca_io::read_data::<f64>(&path, None).unwrap_err().place(), "line 2");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn place(&self) -> &str {
        &self.fault.place
    }

    /// The word that is not the number which was expected, if that is the matter.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("v.csv");
    /// std::fs::write(&path, "1,2\nseven,4\n")?;
    /// assert_eq!(plca_io::read_data::<f64>(&path, None).unwrap_err().word(), Some("seven"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn word(&self) -> Option<&str> {
        self.fault.word.as_deref()
    }

    /// Bytes of memory, about, that a packed file needs and may not take without [`ReadOptions::unpack_limit`](crate::ReadOptions), if that is the matter.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("v.csv");
    /// std::fs::write(&path, "1,x\n")?;
    /// assert_eq!(plca_io::read_data::<f64>(&path, None).unwrap_err().needs(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn needs(&self) -> Option<u64> {
        self.fault.needs
    }

    /// What the system said, such as `NotFound`, `PermissionDenied` or `StorageFull`; `InvalidData` where the contents are the matter.
    ///
    /// ```
    /// use std::io::ErrorKind;
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("v.csv");
    /// assert_eq!(plca_io::read_data::<f64>(&path, None).unwrap_err().kind(), ErrorKind::NotFound);
    /// std::fs::write(&path, "one,2\n")?;
    /// assert_eq!(plca_io::read_data::<f64>(&path, None).unwrap_err().kind(), ErrorKind::InvalidData);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kind(&self) -> std::io::ErrorKind {
        self.fault.kind
    }

    /// An error at a place in the file.
    ///
    /// ```
    /// # use std::path::Path;
    /// let error = plca_io::IoError::at(Path::new("v.npy"), "entry [0, 1]", "-1 is negative");
    /// assert_eq!(error.to_string(), "v.npy: entry [0, 1]: -1 is negative");
    /// ```
    pub fn at(path: &Path, place: impl fmt::Display, what: impl fmt::Display) -> Self {
        Fault::at(place, what).of(path)
    }
}

/// A failure inside a format, before the file is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Line, member or entry; empty where the whole file is meant.
    pub(crate) place: String,
    pub(crate) what: String,
    /// What stands where a number was expected.
    pub(crate) word: Option<String>,
    /// Bytes of memory without which it cannot be read.
    needs: Option<u64>,
    kind: std::io::ErrorKind,
}

impl Fault {
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self::at("", what)
    }

    pub(crate) fn at(place: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self {
            place: place.to_string(),
            what: what.to_string(),
            word: None,
            needs: None,
            kind: std::io::ErrorKind::InvalidData,
        }
    }

    /// A word that is not a number.
    pub(crate) fn no_number(word: &str) -> Self {
        Self::new(format!("`{word}` is not a number")).with(word)
    }

    /// The same about this word.
    pub(crate) fn with(self, word: &str) -> Self {
        Self {
            word: Some(word.into()),
            ..self
        }
    }

    pub(crate) fn within(mut self, place: impl fmt::Display) -> Self {
        self.place = if self.place.is_empty() {
            place.to_string()
        } else {
            format!("{place}: {}", self.place)
        };
        self
    }

    pub(crate) fn of(self, path: &Path) -> IoError {
        IoError {
            path: path.into(),
            fault: self,
        }
    }
}

impl From<Needs> for Fault {
    fn from(needs: Needs) -> Self {
        Self {
            needs: Some(needs.bytes),
            ..Self::new(needs)
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(e: std::io::Error) -> Self {
        if let Some(needs) = e.get_ref().and_then(|inner| inner.downcast_ref::<Needs>()) {
            return (*needs).into();
        }
        let what = match e.kind() {
            std::io::ErrorKind::UnexpectedEof => "the file ends too early".to_string(),
            _ => e.to_string(),
        };
        Self {
            kind: e.kind(),
            ..Self::new(what)
        }
    }
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is within [`guarded`], where a panic becomes an error of a file.
#[doc(hidden)]
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// What a decoder of somebody else gives; its panic, as of one in builds that check for overflow, is an error like another.
///
/// # Errors
///
/// What the decoder says, or with what it panicked.
///
/// # Examples
///
/// ```
/// let error = plca_io::guarded(|| -> Result<u8, String> { panic!("a length of {}", 7) });
/// assert_eq!(error, Err("the decoder failed: a length of 7".into()));
/// ```
pub fn guarded<O, E: ToString>(decode: impl FnOnce() -> Result<O, E>) -> Result<O, String> {
    let before = GUARDED.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(before);
    match decoded {
        Ok(decoded) => decoded.map_err(|e| e.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("it panicked");
            Err(format!("the decoder failed: {text}"))
        }
    }
}
