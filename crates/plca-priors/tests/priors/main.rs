//! One program for all tests of the priors.
#![allow(missing_docs, unreachable_pub, reason = "modules of one program")]

mod cross_entropy;
mod entropic;
mod gamma;
mod golden;
mod laws;
mod logistic_normal;
mod neighbours;
mod penalty;
mod spec;
mod steady;
mod table;
mod wrong_priors;
