//! Four laws over the models that they hold for, all solvers and both scalars: the objective is its definition, another unit of the data is another unit
//! of the model (models whose equations have units), neighbours do not matter to a transform (models that explain every observation alone), and the best of
//! several starts is kept.
//!
//! A property draws a whole problem: scalar, data and how they are stored, solver, settings and priors. A few cases by default; `cargo xtask
//! soak --only four_laws` makes as many as there is time for.

mod controls;
mod definition;
mod found;
mod models;
mod neighbours;
mod problem;
mod special;
mod starts;
mod table;
mod units;
