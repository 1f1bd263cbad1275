//! What must hold for every model on every storage, in both precisions.

mod conditions;
mod controls;
mod equivariance;
mod methods;
mod monotone;
mod posterior;
mod resume;
mod setups;
mod stationary;
mod statistics;
pub(crate) mod storages;
mod tempered;
mod wide;
