//! Whole files or none.

use std::fs::{File, Permissions};
use std::io::{BufWriter, Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::IoError;

/// Name of a file that is being written: these around some letters.
const BEFORE: &str = ".plca-";
const BEHIND: &str = ".tmp";
const LETTERS: usize = 12;

/// Writes a file beside its target, flushes it to disk and renames it: a failure leaves nothing behind and changes nothing.
///
/// A file that is there keeps its permissions, and one that may not be written is not replaced. A symbolic link keeps pointing at its
/// file, which is replaced, or made if it is not there; a device or a pipe (such as `/dev/null` or `/dev/stderr`) is written to
/// directly. What a process leaves that is killed has the name `.plca-….tmp`, and is removed by [`can_write`] on any target in the same folder.
///
/// # Errors
///
/// [`IoError`] naming the target.
///
/// # Examples
///
/// ```
/// use std::io::Write;
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("trace.txt");
/// plca_io::write_atomically(&path, |w| writeln!(w, "1 -3.5"))?;
/// assert!(plca_io::write_atomically(&path, |_| Err(std::io::Error::other("full"))).is_err());
/// assert_eq!(std::fs::read_to_string(&path)?, "1 -3.5\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> std::io::Result<()>,
) -> Result<(), IoError> {
    let mut pending = Pending::new(path)?;
    pending.write(write)?;
    pending.keep()
}

/// Refuses a target that [`write_atomically`] could not write, by making a file beside it, which is removed at once.
///
/// Files that killed processes left in its folder are removed as well. Devices and pipes are not tried.
///
/// # Errors
///
/// [`IoError`] naming the target.
///
/// # Examples
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// assert!(plca_io::can_write(&folder.join("m.npz")).is_ok());
/// assert!(plca_io::can_write(folder).is_err());
/// assert_eq!(std::fs::read_dir(folder)?.count(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn can_write(path: &Path) -> Result<(), IoError> {
    match Target::of(path).map_err(|e| IoError::system(path, e))? {
        Target::Device => Ok(()),
        Target::File { place, .. } => {
            clear(folder(&place));
            Pending::new(path).map(drop)
        }
    }
}

/// Where a path leads.
enum Target {
    /// Renaming over a device would replace it.
    Device,
    File {
        place: PathBuf,
        /// Of the file that is there.
        permissions: Option<Permissions>,
    },
}

impl Target {
    fn of(path: &Path) -> std::io::Result<Self> {
        // Before links are followed: that of an open pipe leads to no path.
        if path.metadata().is_ok_and(|f| !f.is_file() && !f.is_dir()) {
            return Ok(Self::Device);
        }
        let place = end_of_links(path)?;
        let permissions = match place.metadata() {
            Ok(found) if found.is_dir() => return Err(Error::other("is a folder")),
            Ok(found) if found.permissions().readonly() => {
                return Err(Error::new(ErrorKind::PermissionDenied, "is read-only"));
            }
            Ok(found) => {
                // Renaming asks the folder alone.
                File::options().write(true).open(&place)?;
                Some(found.permissions())
            }
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            // A name that is too long, say.
            Err(e) => return Err(e),
        };
        Ok(Self::File { place, permissions })
    }
}

/// Where a file is.
fn folder(place: &Path) -> &Path {
    match place.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// A file beside its target, which it replaces by [`keep`](Self::keep); removed if that is never called.
///
/// Several files are written whole before any of them takes its name:
///
/// ```
/// use std::io::Write;
/// use plca_io::Pending;
/// # let folder = tempfile::tempdir()?;
/// let paths = ["a.txt", "b.txt"].map(|name| folder.path().join(name));
/// let mut pending = Vec::new();
/// for path in &paths {
///     let mut file = Pending::new(path)?;
///     file.write(|w| w.write_all(b"whole"))?;
///     pending.push(file);
/// }
/// assert!(!paths[0].exists() && !paths[1].exists());
/// pending.into_iter().try_for_each(Pending::keep)?;
/// assert!(paths[0].exists() && paths[1].exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Pending {
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    Device(File),
    File { file: NamedTempFile, place: PathBuf },
}

impl Pending {
    /// An empty file beside its target.
    ///
    /// # Errors
    ///
    /// [`IoError`] naming the target: a folder, no such folder, no right to write there.
    ///
    /// # Examples
    ///
    /// See [`Pending`].
    pub fn new(path: &Path) -> Result<Self, IoError> {
        let open = || -> std::io::Result<To> {
            Ok(match Target::of(path)? {
                Target::Device => To::Device(File::options().write(true).open(path)?),
                Target::File { place, permissions } => To::File {
                    file: beside(folder(&place), permissions)?,
                    place,
                },
            })
        };
        let to = open().map_err(|e| IoError::system(path, e))?;
        let path = path.to_path_buf();
        Ok(Self { path, to })
    }

    /// Writes and flushes to disk.
    ///
    /// # Errors
    ///
    /// [`IoError`] naming the target, with what `write` or the system says.
    ///
    /// # Examples
    ///
    /// See [`Pending`].
    pub fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<&mut File>) -> std::io::Result<()>,
    ) -> Result<(), IoError> {
        let fill = |file: &mut File| {
            let mut buffered = BufWriter::with_capacity(1 << 16, file);
            write(&mut buffered)?;
            buffered.flush()
        };
        let written = match &mut self.to {
            To::Device(file) => fill(file),
            To::File { file, .. } => {
                fill(file.as_file_mut()).and_then(|()| file.as_file().sync_all())
            }
        };
        written.map_err(|e| IoError::system(&self.path, e))
    }

    /// Gives the file the name of its target.
    ///
    /// # Errors
    ///
    /// [`IoError`] naming the target, which is as it was.
    ///
    /// # Examples
    ///
    /// See [`Pending`].
    pub fn keep(self) -> Result<(), IoError> {
        if let To::File { file, place } = self.to {
            let kept = file.persist(&place);
            kept.map_err(|e| IoError::system(&self.path, e.error))?;
            // The new name is safe once the folder is; not every file system can say so.
            #[cfg(unix)]
            let _ = File::open(folder(&place)).and_then(|f| f.sync_all());
        }
        Ok(())
    }
}

/// A file to be renamed, which its lock tells from one that a killed process left.
fn beside(folder: &Path, permissions: Option<Permissions>) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    let ordinary = {
        // Temporary files are private; an output is an ordinary file, within the user's umask.
        use std::os::unix::fs::PermissionsExt;
        Permissions::from_mode(0o666)
    };
    #[cfg(unix)]
    if permissions.is_none() {
        builder.permissions(ordinary);
    }
    builder.prefix(BEFORE).suffix(BEHIND).rand_bytes(LETTERS);
    loop {
        let file = builder.tempfile_in(folder)?;
        // Not every file system has locks: there nothing is ever cleared.
        let _ = file.as_file().lock();
        // Gone if another process has cleared the folder between these two lines.
        if file.path().exists() {
            if let Some(permissions) = permissions {
                file.as_file().set_permissions(permissions)?;
            }
            return Ok(file);
        }
    }
}

/// Links that are followed one after the other.
const MAX_LINKS: usize = 40;

/// Where a path leads, whether or not there is a file: what [`write_atomically`] writes.
///
/// # Errors
///
/// Links that lead to each other.
///
/// # Examples
///
/// ```
/// # use std::path::Path;
/// let none = Path::new("no/link");
/// assert_eq!(plca_io::end_of_links(none)?, none);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn end_of_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match target.read_link() {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(Error::other("too many symbolic links"))
}

/// Removes what killed processes left in a folder: files that are being written are locked. What cannot be removed stays.
fn clear(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let pending = entries.filter(|entry| {
        entry.file_name().to_str().is_some_and(is_pending)
            && entry.file_type().is_ok_and(|t| t.is_file())
    });
    for entry in pending {
        let path = entry.path();
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

fn is_pending(name: &str) -> bool {
    let letters = (name.strip_prefix(BEFORE)).and_then(|rest| rest.strip_suffix(BEHIND));
    letters.is_some_and(|l| l.len() == LETTERS && l.chars().all(|c| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A file that is being written stays, one that nobody holds goes, and so does no other name.
    #[test]
    fn only_what_nobody_writes_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, target) = (folder.path(), folder.path().join("m.npz"));
        let mut living = Pending::new(&target).unwrap();
        let dead = ".plca-0123456789aB.tmp";
        let others = [
            ".plca-.tmp",
            ".plca-0123456789a-.tmp",
            ".plca-notes",
            "m.npz",
        ];
        for name in others.iter().chain([&dead]) {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        can_write(&target).unwrap();
        let left = names(folder);
        assert!(!left.contains(&dead.to_string()), "{left:?}");
        assert_eq!(left.len(), others.len() + 1, "{left:?}");
        living.write(|w| w.write_all(b"new")).unwrap();
        living.keep().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder), others);
    }
}
