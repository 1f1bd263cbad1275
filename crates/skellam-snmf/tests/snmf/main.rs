//! One program for all tests.
#![allow(missing_docs, unreachable_pub, reason = "modules of one program")]

mod acceleration;
mod baselines;
mod edges;
mod extensions;
mod given;
mod golden;
mod hyper;
mod instruction_sets;
mod iterates;
mod learning;
mod models;
mod neighbours;
mod noise;
mod properties;
mod rates;
mod selection;
mod settings;
mod shards;
mod squares;
mod support;
mod tiny;
mod units;
mod written;
