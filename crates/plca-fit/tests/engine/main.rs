//! The engine on PLCA: its steps, and its runs.

mod counts;
mod runs;
mod steps;
