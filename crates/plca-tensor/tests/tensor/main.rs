//! One program for all tests: kernels are compiled into it once.
#![allow(missing_docs, unreachable_pub, reason = "modules of one program")]

mod compressed;
mod contracts;
mod e_step;
mod exposure;
mod factor;
mod instruction_sets;
mod laws;
mod lent;
mod masks;
mod mttkrp;
mod nalgebra;
mod nalgebra_sparse;
mod ndarray;
mod out_of_core;
mod part;
mod rows;
mod serde;
mod signed;
mod solve;
mod support;
mod threads;
