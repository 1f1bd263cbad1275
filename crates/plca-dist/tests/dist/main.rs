//! One program for all tests.
#![allow(missing_docs, unreachable_pub, reason = "modules of one program")]

mod bessel;
mod diffnomial;
mod digamma;
mod frozen;
mod gamma_shapes;
mod key;
mod lambert;
mod skellam_distribution;
mod skellam_functions;
mod support;
