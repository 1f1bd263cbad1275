//! Files for readers that take a path: one folder for every thread.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

thread_local! {
    static FOLDER: TempDir = folder().expect("a temporary folder");
}

/// A folder in memory, where there is such a file system and no other place is asked for: writers wait until a disk has it all.
fn folder() -> std::io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() && std::env::var_os("TMPDIR").is_none() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    }
}

/// The path of a scratch file, which may be there or not.
pub(crate) fn path(name: &str) -> PathBuf {
    FOLDER.with(|folder| folder.path().join(name))
}

/// A scratch file with this content; a former one of the name is gone.
pub(crate) fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = path(name);
    std::fs::write(&path, content).expect("a scratch file is written");
    path
}

/// What `write` writes into the scratch file of this name.
pub(crate) fn written(name: &str, write: impl FnOnce(&Path)) -> Vec<u8> {
    let path = path(name);
    write(&path);
    std::fs::read(path).expect("a scratch file is read")
}
