//! Interruptions: a run ends at once or between two iterations, never within a write.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use plca_fit::{Iteration, Observer, Status};
use plca_tensor::Real;

use crate::failure::{CANCELLED, Failure};

// Both in one order for all threads: of an interruption and the end of a stage, one sees the other.
static REQUESTED: AtomicBool = AtomicBool::new(false);
static STAGE: AtomicU8 = AtomicU8::new(ANYWHERE);

/// Files that end with the process.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

const INTERRUPTED: &str = "interrupted";

/// Nothing would be lost: the process ends.
const ANYWHERE: u8 = 0;
/// The first interruption is noted and looked at after the iteration, a second one ends the process.
const ITERATING: u8 = 1;
/// Half a file would be left: interruptions are noted only.
const WRITING: u8 = 2;
/// The process is ending, which may take a while: nothing is written any more.
const ENDING: u8 = 3;

/// Removes a file where an interruption ends the process.
pub(crate) fn temporary(path: &Path) {
    let mut all = TEMPORARY.lock().unwrap_or_else(|e| e.into_inner());
    all.push(path.to_path_buf());
}

/// Takes interruptions into the command's own hands.
pub(crate) fn handle() -> Result<(), Failure> {
    let handler = || {
        let again = REQUESTED.swap(true, Ordering::SeqCst);
        end_in(|stage| stage == ANYWHERE || stage == ITERATING && again);
    };
    ctrlc::set_handler(handler).map_err(Failure::new)?;
    limits().map_err(Failure::new)
}

/// Ends the process if it may end in the stage where it is, and is not ending already.
fn end_in(may: impl Fn(u8) -> bool) {
    let end = |stage| may(stage).then_some(ENDING);
    let ending = STAGE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, end);
    if ending.is_ok() {
        // In one piece; whoever listens no more is not told.
        let line = format!("error: {INTERRUPTED}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        for path in TEMPORARY.lock().unwrap_or_else(|e| e.into_inner()).iter() {
            let _ = std::fs::remove_file(path);
        }
        exit(CANCELLED.into());
    }
}

/// What the system ends a process for becomes a failure like any other: a file beyond the limit on their size is an error of the write, and
/// memory that is refused where nobody asked before, of which the runtime says one line, ends the run with status 1.
#[cfg(unix)]
fn limits() -> std::io::Result<()> {
    use signal_hook::{consts, flag};
    use std::sync::Arc;
    flag::register(consts::SIGXFSZ, Arc::default())?;
    let always = Arc::new(AtomicBool::new(true));
    flag::register_conditional_shutdown(consts::SIGABRT, 1, always).map(drop)
}

#[cfg(not(unix))]
fn limits() -> std::io::Result<()> {
    Ok(())
}

/// Goes on to a stage, unless the process is ending; the stage before.
fn enter(stage: u8) -> u8 {
    match STAGE.swap(stage, Ordering::SeqCst) {
        ENDING => loop {
            std::thread::park();
        },
        before => before,
    }
}

/// From here on the run asks by itself whether it shall end.
pub(crate) fn iterating() {
    enter(ITERATING);
}

/// Does not let an interruption end `write`.
pub(crate) fn writing<O>(write: impl FnOnce() -> O) -> O {
    let before = enter(WRITING);
    let written = write();
    STAGE.swap(before, Ordering::SeqCst);
    written
}

/// The same for a trial that leaves nothing: an interruption meanwhile ends the process after it, unless the run asks by itself.
pub(crate) fn trying<O>(attempt: impl FnOnce() -> O) -> O {
    let tried = writing(attempt);
    if requested() {
        end_in(|stage| stage == ANYWHERE);
    }
    tried
}

/// The run has its outcome: an interruption that was told ends the process, a later one changes nothing.
pub(crate) fn over() {
    enter(WRITING);
}

/// What an interrupted run that leaves nothing ends with.
pub(crate) fn failure() -> Failure {
    Failure::interrupted(INTERRUPTED)
}

/// What a run ends with that was interrupted after so much.
pub(crate) fn after(done: &str, checkpoint: Option<&Path>) -> Failure {
    let kept = match checkpoint {
        Some(path) => format!("{} continues it", path.display()),
        None => "nothing was written".to_string(),
    };
    Failure::interrupted(format!("{INTERRUPTED} after {done}; {kept}"))
}

/// Whether the run shall end.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// The answer of whoever is asked whether work shall go on.
pub(crate) fn going() -> ControlFlow<Status> {
    match requested() {
        true => ControlFlow::Break(Status::Interrupted),
        false => ControlFlow::Continue(()),
    }
}

/// Ends a run, or its start, that shall end.
pub(crate) struct Requested;

impl<T: Real> Observer<T> for Requested {
    fn on_iteration(&mut self, _: &Iteration<'_, T>) -> ControlFlow<Status> {
        going()
    }

    fn on_start(&mut self, _: usize, _: usize) -> ControlFlow<Status> {
        going()
    }
}
