//! The loop on a toy: stop rules, trace, observers, resumption, monotone guards.

mod accelerate;
mod laws;
mod observe;
mod resume;
mod stop;
mod toy;
