//! Why the command ends without an output.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The exit status of a run that somebody ended.
pub(crate) const CANCELLED: u8 = 130;

/// A text from a file without what a terminal obeys: `\u001b` in place of the character, as JSON has it.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // Also what turns the direction of writing, or has no width.
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c if c.is_control() => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

/// A failure, as one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    line: String,
    status: u8,
    /// The line says where: a file, or the command line.
    placed: bool,
    /// Data that are read again and again could not be read.
    unread: bool,
}

impl Failure {
    /// Something about the data or the run: exit status 1.
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self {
            line: what.to_string(),
            status: 1,
            placed: false,
            unread: false,
        }
    }

    /// Something about one file: exit status 1.
    pub(crate) fn of(path: &Path, what: impl fmt::Display) -> Self {
        Self {
            placed: true,
            ..Self::new(format_args!("{}: {what}", path.display()))
        }
    }

    /// An error about the data or the run, with what it comes from: exit status 1.
    fn of_error(e: &dyn Error) -> Self {
        Self::new(chain(e))
    }

    /// An error about one file, with what it comes from: exit status 1.
    pub(crate) fn by(path: &Path, e: impl Error) -> Self {
        Self::of(path, chain(&e))
    }

    /// The same, about this file unless it says another place.
    pub(crate) fn about(self, path: &Path) -> Self {
        if self.placed {
            self
        } else {
            Self {
                status: self.status,
                ..Self::of(path, self.line)
            }
        }
    }

    /// The same with something to add.
    pub(crate) fn and(self, what: impl fmt::Display) -> Self {
        Self {
            line: format!("{}; {what}", self.line),
            ..self
        }
    }

    /// A command line that makes no sense: exit status 2.
    pub(crate) fn usage(what: impl fmt::Display) -> Self {
        Self::new(what).with_status(2)
    }

    /// The same with where it was met, unless it says another place.
    pub(crate) fn within(self, place: &str) -> Self {
        match self.placed {
            true => self,
            false => Self {
                line: format!("{place}{}", self.line),
                ..self
            },
        }
    }

    /// A run that somebody ended: exit status 130.
    pub(crate) fn interrupted(what: impl fmt::Display) -> Self {
        Self::new(what).with_status(CANCELLED)
    }

    /// The same with another exit status, which says where to look.
    fn with_status(self, status: u8) -> Self {
        Self {
            status,
            placed: true,
            ..self
        }
    }

    /// The same with a name that a person knows in place of a path.
    pub(crate) fn renamed(self, path: &Path, name: &str) -> Self {
        Self {
            line: self.line.replace(&path.display().to_string(), name),
            ..self
        }
    }

    /// Whether data could not be read that had been read before.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread
    }

    pub(crate) fn status(&self) -> u8 {
        self.status
    }
}

/// An error and what it comes from, each part once: none says what the next one does.
pub(crate) fn chain(e: &dyn Error) -> String {
    let parts = std::iter::successors(Some(e), |&e| e.source());
    let parts: Vec<String> = parts.map(|e| e.to_string()).collect();
    parts.join(": ")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.line.replace('\n', " ")))
    }
}

impl From<plca_io::IoError> for Failure {
    fn from(e: plca_io::IoError) -> Self {
        // It names its file.
        let failure = Self {
            placed: true,
            ..Self::of_error(&e)
        };
        if let Some(needs) = e.needs() {
            let size = needs.div_ceil(1 << 20);
            return failure.and(format_args!("--unpack-limit {size}M allows it"));
        }
        let place = std::env::current_dir().unwrap_or_default();
        match e.path().symlink_metadata() {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound && e.path().is_relative() => {
                failure.and(format_args!("paths begin at {}", place.display()))
            }
            _ => failure,
        }
    }
}

impl From<plca_media::MediaError> for Failure {
    fn from(e: plca_media::MediaError) -> Self {
        use plca_media::MediaError as E;
        match e {
            // They name their files.
            E::File { .. } | E::Io(_) => Self {
                placed: true,
                ..Self::of_error(&e)
            },
            E::Setting { .. } => Self::usage(chain(&e)),
            _ => Self::of_error(&e),
        }
    }
}

impl From<plca_tensor::DataError> for Failure {
    fn from(e: plca_tensor::DataError) -> Self {
        plca_fit::FitError::from(e).into()
    }
}

impl From<plca_run::RunError> for Failure {
    fn from(e: plca_run::RunError) -> Self {
        use plca_run::RunError as E;
        match e {
            E::Setting { name, value, what } => {
                let option = plca_fit::setting::option_of(&name)
                    .unwrap_or(&name)
                    .replace('_', "-");
                let space = if value.is_empty() { "" } else { " " };
                Self::usage(format!("--{option}{space}{value}: {what}"))
            }
            E::Fit(e) | E::Shape(e) => e.into(),
            E::File { path, what } => Self::of(&path, what),
            E::Io(e) => e.into(),
            E::Draw(what) | E::Ranks(what) => Self::new(what),
            e => Self::usage(chain(&e)),
        }
    }
}

impl From<plca_fit::FitError> for Failure {
    fn from(e: plca_fit::FitError) -> Self {
        use plca_fit::FitError as E;
        use plca_tensor::DataError;
        match e {
            // Settings come from the command line.
            E::Setting { .. } | E::Conflict { .. } | E::UnknownBlock { .. } => {
                Self::usage(chain(&e))
            }
            // What a source says names its file.
            E::Data(DataError::Source { .. }) => Self {
                placed: true,
                unread: true,
                ..Self::of_error(&e)
            },
            _ => Self::of_error(&e),
        }
    }
}
