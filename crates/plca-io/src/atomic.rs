//! Whole files or none.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::IoError;

/// Writes a file beside its target, flushes it to disk and renames it: a failure leaves nothing behind and changes nothing.
///
/// A symbolic link keeps pointing at its file, which is replaced; a device (such as `/dev/null`) is written to directly.
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
    replace(path, write).map_err(|e| IoError::new(path, e))
}

fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let fill = |file: &mut File| {
        let mut buffered = BufWriter::with_capacity(1 << 16, file);
        write(&mut buffered)?;
        buffered.flush()
    };
    let target = match path.metadata() {
        Ok(found) if found.is_dir() => {
            return Err(std::io::Error::other("is a folder"));
        }
        // Renaming over a device would replace it.
        Ok(found) if !found.is_file() => return fill(&mut File::options().write(true).open(path)?),
        Ok(_) => path.canonicalize()?,
        Err(_) => path.to_path_buf(),
    };
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    let ordinary = {
        // Temporary files are private; an output is an ordinary file, within the user's umask.
        use std::os::unix::fs::PermissionsExt;
        std::fs::Permissions::from_mode(0o666)
    };
    #[cfg(unix)]
    builder.permissions(ordinary);
    let mut file = builder.prefix(".plca-").tempfile_in(folder)?;
    fill(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|e| e.error)?;
    // The new name is safe once the folder is; not every file system can say so.
    #[cfg(unix)]
    let _ = File::open(folder).and_then(|f| f.sync_all());
    Ok(())
}
