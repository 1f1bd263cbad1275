//! What must hold for every model on every storage, in both precisions.

mod conditions;
mod methods;
mod monotone;
