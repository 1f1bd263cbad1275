//! One program for all tests: models are compiled into it once.
#![allow(missing_docs, unreachable_pub, reason = "modules of one program")]

mod alone;
mod atomic;
mod bad_input;
mod bayes;
mod certificates;
mod failing_reads;
mod fast;
mod fast_optima;
mod fold_in;
mod frozen;
mod golden;
mod instruction_sets;
mod measured;
mod neighbours;
mod nndsvd;
mod one_by_one;
mod online;
mod out_of_core;
mod penalties;
mod placed;
mod priors;
mod properties;
mod reconstruct;
mod settings;
mod shards;
mod shifted;
mod starts;
mod states;
mod support;
mod tempering;
mod transformations;
mod transformed;
mod validation;
mod written;
