//! The engine on PLCA: its steps, and its runs; its solvers on a problem whose every iterate is known.

mod axes;
mod consensus;
mod counts;
mod laws;
mod layout;
mod partial;
mod planted;
mod runs;
mod solvers;
mod steps;
mod toy;
