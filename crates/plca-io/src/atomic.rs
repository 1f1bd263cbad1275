//! Whole files or none.

use std::io::{BufWriter, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::IoError;

/// Writes a file beside its target, flushes it to disk and renames it: a failure leaves nothing behind and changes nothing.
///
/// # Errors
///
/// [`IoError`] naming the target.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut std::fs::File>) -> std::io::Result<()>,
) -> Result<(), IoError> {
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let attempt = || -> std::io::Result<()> {
        let mut file = NamedTempFile::new_in(folder)?;
        let mut buffered = BufWriter::with_capacity(1 << 16, file.as_file_mut());
        write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        #[cfg(unix)]
        {
            // Temporary files are private; an output is an ordinary file.
            use std::os::unix::fs::PermissionsExt;
            file.as_file()
                .set_permissions(std::fs::Permissions::from_mode(0o644))?;
        }
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    attempt().map_err(|e| IoError::new(path, e))
}
