//! One program for all tests.
#![allow(missing_docs, unreachable_pub, reason = "modules of one program")]

mod controls;
mod explained;
mod golden;
mod instruction_sets;
mod models;
mod neighbours;
mod nndsvd;
mod penalties;
mod projection;
mod qp;
mod sparsity;
mod support;
mod units;
mod written;
