//! Interruptions: a run ends at once or between two iterations, never within a write.

use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::failure::Failure;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static STAGE: AtomicU8 = AtomicU8::new(ANYWHERE);

/// Nothing would be lost: the process ends.
const ANYWHERE: u8 = 0;
/// The first interruption is noted and looked at after the iteration, a second one ends the process.
const ITERATING: u8 = 1;
/// Half a file would be left: interruptions are noted only.
const WRITING: u8 = 2;

/// Takes interruptions into the command's own hands.
#[expect(clippy::print_stderr, reason = "the one line of an interrupted run")]
pub(crate) fn handle() -> Result<(), Failure> {
    let handler = || {
        let again = REQUESTED.swap(true, Ordering::Relaxed);
        match STAGE.load(Ordering::Relaxed) {
            WRITING => {}
            ITERATING if !again => {}
            _ => {
                eprintln!("error: interrupted");
                exit(1);
            }
        }
    };
    ctrlc::set_handler(handler).map_err(Failure::new)
}

/// From here on the run asks by itself whether it shall end.
pub(crate) fn iterating() {
    STAGE.store(ITERATING, Ordering::Relaxed);
}

/// Does not let an interruption end `write`.
pub(crate) fn writing<O>(write: impl FnOnce() -> O) -> O {
    let before = STAGE.swap(WRITING, Ordering::Relaxed);
    let written = write();
    STAGE.store(before, Ordering::Relaxed);
    written
}

/// Whether the run shall end.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
