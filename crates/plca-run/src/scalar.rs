//! The scalars of fits.

use plca_fit::shards::Sharded;
use plca_io::Element;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::AnyModel;

/// A scalar of fits: the only place where the two are told apart.
pub trait Scalar: Element + Serialize + DeserializeOwned {
    /// The model of data of this scalar.
    fn of(model: &dyn AnyModel) -> &dyn plca_fit::AnyModel<Self>;

    /// The same as one of shards, if it is one.
    fn sharded(model: &dyn AnyModel) -> Option<&dyn Sharded<Self>>;
}

impl Scalar for f64 {
    fn of(model: &dyn AnyModel) -> &dyn plca_fit::AnyModel<Self> {
        model.double()
    }

    fn sharded(model: &dyn AnyModel) -> Option<&dyn Sharded<Self>> {
        model.sharded_double()
    }
}

impl Scalar for f32 {
    fn of(model: &dyn AnyModel) -> &dyn plca_fit::AnyModel<Self> {
        model.single()
    }

    fn sharded(model: &dyn AnyModel) -> Option<&dyn Sharded<Self>> {
        model.sharded_single()
    }
}
