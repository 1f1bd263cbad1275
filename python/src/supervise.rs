//! Work on a pool of threads, while the thread that called waits without the interpreter's lock, looks for signals and answers callbacks.
//!
//! The thread that works never asks for the lock: beside a busy thread of Python every such question waits its turn.

use std::ops::ControlFlow;
use std::process;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plca::fit::{Interrupt, Iteration, Status};
use plca::tensor::Real;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// How often the waiting thread looks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// More threads than any kernel has work for. Results do not depend on their number.
const MOST_THREADS: usize = 256;

/// What the work tells the thread that waits.
enum Event {
    /// Start, iteration and objective, to be answered.
    Report(u32, usize, f64),
    /// Start, steps done and steps of all, to be answered.
    Start(u32, usize, usize),
    /// The work is over, or panicked.
    Done,
}

/// How the work hears of the thread that waits.
#[derive(Debug)]
pub(crate) struct Control {
    stop: Interrupt,
    /// What the callback has raised.
    raised: Mutex<Option<String>>,
    /// `None` where nobody wants reports.
    reports: Option<Mutex<(Sender<Event>, Receiver<bool>)>>,
}

impl Control {
    /// What is raised when the work is to stop.
    pub(crate) fn interrupt(&self) -> Interrupt {
        self.stop.clone()
    }

    /// What the callback has raised, in words.
    pub(crate) fn raised(&self) -> Option<String> {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised.take()
    }

    /// Ends the work for what the callback has raised.
    fn fail(&self, e: &PyErr) {
        let raised = self.raised.lock();
        *raised.unwrap_or_else(PoisonError::into_inner) = Some(e.to_string());
        self.stop.raise();
    }

    /// After an iteration of a start: reports a measured objective, and says whether the run is to end.
    pub(crate) fn after<T: Real>(
        &self,
        start: u32,
        iteration: &Iteration<'_, T>,
    ) -> ControlFlow<Status> {
        match iteration.measured {
            Some(point) => self.ask(Event::Report(start, point.iteration, point.objective)),
            None => self.going(),
        }
    }

    /// Before a step of a start that takes several: reports it, and says whether the work is to end.
    pub(crate) fn before(&self, start: u32, done: usize, of: usize) -> ControlFlow<Status> {
        match of > 1 {
            true => self.ask(Event::Start(start, done, of)),
            false => self.going(),
        }
    }

    /// Reports, and waits for the answer.
    fn ask(&self, event: Event) -> ControlFlow<Status> {
        if let Some(reports) = &self.reports {
            let channels = reports.lock().unwrap_or_else(PoisonError::into_inner);
            let answer = channels.0.send(event).ok().and(channels.1.recv().ok());
            if answer == Some(true) {
                return ControlFlow::Break(Status::Custom("callback".into()));
            }
        }
        self.going()
    }

    fn going(&self) -> ControlFlow<Status> {
        match self.stop.is_raised() {
            true => ControlFlow::Break(Status::Interrupted),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Says that the work is over when it is dropped: after a panic too.
struct Ending(Sender<Event>);

impl Drop for Ending {
    fn drop(&mut self) {
        // Nobody listens only where the waiting thread is gone.
        let _ = self.0.send(Event::Done);
    }
}

/// A pool by process, for it has no threads in a forked child, and number of threads.
type Pool = ((u32, usize), Arc<ThreadPool>);
/// The one that was asked for last.
static POOL: Mutex<Option<Pool>> = Mutex::new(None);

/// A pool of this many threads. The one before ends with the work that it has.
fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let threads = threads.clamp(1, MOST_THREADS);
    let key = (process::id(), threads);
    let mut last = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, pool)) = last.as_ref().filter(|(of, _)| *of == key) {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = Arc::new(pool.map_err(|e| PyRuntimeError::new_err(e.to_string()))?);
    if let Some(((process, _), old)) = last.replace((key, Arc::clone(&pool)))
        && process != key.0
    {
        // Its threads are of the parent: nobody would answer.
        std::mem::forget(old);
    }
    Ok(pool)
}

/// Runs `work` on this number of threads; what it returns, and what a signal or the callback raised meanwhile.
///
/// `watch(start, iteration, objective)` is called for every measured objective, `watch.starting(start, done, of)` before every step of a start that takes
/// several; both end the run by answering something true.
pub(crate) fn supervise<O: Send>(
    py: Python<'_>,
    threads: usize,
    watch: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Control) -> O + Send,
) -> PyResult<(O, Option<PyErr>)> {
    let pool = pool(threads)?;
    let (events, inbox) = channel();
    let (answers, answered) = channel();
    let reports = watch.map(|_| Mutex::new((events.clone(), answered)));
    let control = Control {
        stop: Interrupt::default(),
        raised: Mutex::default(),
        reports,
    };
    // A receiver is not shared between threads, a mutex around it is: the lock is given away with a reference to it.
    let inbox = Mutex::new(inbox);
    let result = Mutex::new(None);
    let mut failure: Option<PyErr> = None;
    pool.in_place_scope(|scope| {
        let (control, result) = (&control, &result);
        scope.spawn(move |_| {
            let _ending = Ending(events);
            let output = work(control);
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
        });
        loop {
            let event = py.detach(|| {
                let inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
                inbox.recv_timeout(LOOK)
            });
            match event {
                Ok(Event::Done) => break,
                Ok(event) => {
                    let asked = watch.filter(|_| failure.is_none());
                    let answer = asked.map(|watch| {
                        let answer = match event {
                            Event::Start(start, done, of) => {
                                watch.call_method1("starting", (start, done, of))
                            }
                            Event::Report(start, iteration, objective) => {
                                watch.call1((start, iteration, objective))
                            }
                            Event::Done => return Ok(false),
                        };
                        answer?.is_truthy()
                    });
                    let answer = match answer {
                        Some(Ok(answer)) => answer,
                        Some(Err(e)) => {
                            // Before the answer, after which the work looks at it.
                            control.fail(&e);
                            failure = Some(e);
                            false
                        }
                        None => false,
                    };
                    // The work waits for it.
                    let _ = answers.send(answer);
                }
                Err(_) => {}
            }
            if failure.is_none() {
                failure = py.check_signals().err();
            }
            if failure.is_some() {
                control.stop.raise();
            }
        }
    });
    let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
    let output =
        result.ok_or_else(|| PyRuntimeError::new_err("the work ended without a result"))?;
    Ok((output, failure))
}
