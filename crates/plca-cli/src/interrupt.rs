//! An interrupted run ends between two iterations; nothing is left half written.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From here on the first interruption is only noted; a second one ends the process at once.
pub(crate) fn note() -> Result<(), Failure> {
    let handler = || {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
    };
    ctrlc::set_handler(handler).map_err(Failure::new)
}

/// Whether the run shall end.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
