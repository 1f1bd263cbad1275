//! Why the command ends without an output.

use std::fmt;
use std::path::Path;

/// A failure, as one line.
#[derive(Debug)]
pub(crate) struct Failure {
    line: String,
    status: u8,
    /// The line says where: a file, or the command line.
    placed: bool,
}

impl Failure {
    /// Something about the data or the run: exit status 1.
    pub(crate) fn new(what: impl fmt::Display) -> Self {
        Self {
            line: what.to_string(),
            status: 1,
            placed: false,
        }
    }

    /// Something about one file: exit status 1.
    pub(crate) fn of(path: &Path, what: impl fmt::Display) -> Self {
        Self {
            line: format!("{}: {what}", path.display()),
            status: 1,
            placed: true,
        }
    }

    /// The same, about this file unless it says another place.
    pub(crate) fn about(self, path: &Path) -> Self {
        if self.placed {
            self
        } else {
            Self::of(path, self.line)
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
        Self {
            line: what.to_string(),
            status: 2,
            placed: true,
        }
    }

    pub(crate) fn status(&self) -> u8 {
        self.status
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line.replace('\n', " "))
    }
}

impl From<plca_io::IoError> for Failure {
    fn from(e: plca_io::IoError) -> Self {
        // It names its file.
        Self {
            placed: true,
            ..Self::new(e)
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
                ..Self::new(e)
            },
            E::Setting { .. } => Self::usage(e),
            _ => Self::new(e),
        }
    }
}

impl From<plca_em::EmError> for Failure {
    fn from(e: plca_em::EmError) -> Self {
        use plca_tensor::TensorError;
        // What a source says names its file.
        let placed = matches!(e, plca_em::EmError::Tensor(TensorError::Source { .. }));
        Self {
            placed,
            ..Self::new(e)
        }
    }
}

impl From<plca_em::ParamError> for Failure {
    // Settings come from the command line.
    fn from(e: plca_em::ParamError) -> Self {
        Self::usage(e)
    }
}

impl From<skellam_snmf::SnmfError> for Failure {
    fn from(e: skellam_snmf::SnmfError) -> Self {
        Self::new(e)
    }
}

impl From<skellam_snmf::ParamError> for Failure {
    // Settings come from the command line.
    fn from(e: skellam_snmf::ParamError) -> Self {
        Self::usage(e)
    }
}

impl From<pntf_l2::PntfError> for Failure {
    fn from(e: pntf_l2::PntfError) -> Self {
        Self::new(e)
    }
}

impl From<pntf_l2::ParamError> for Failure {
    // Settings come from the command line.
    fn from(e: pntf_l2::ParamError) -> Self {
        Self::usage(e)
    }
}

impl From<plca_priors::PriorError> for Failure {
    fn from(e: plca_priors::PriorError) -> Self {
        Self::new(e)
    }
}
