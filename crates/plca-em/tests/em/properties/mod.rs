//! What must hold for every model on every storage, in both precisions.

mod conditions;
mod controls;
mod equivariance;
mod methods;
mod monotone;
mod resume;
mod stationary;
mod statistics;
mod storages;
mod tempered;
