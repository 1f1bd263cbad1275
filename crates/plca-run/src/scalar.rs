//! The scalars of fits.

use plca_fit::Transform;
use plca_fit::shards::Sharded;
use plca_io::{Element, ModelFile};
use plca_tensor::Data;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Answer, AnyModel, Learner, ModelEntry, RunError, Stream};

/// A model for data of one scalar.
pub trait Typed<T: Scalar> {
    /// What fits it.
    fn model(&self) -> &dyn plca_fit::AnyModel<T>;

    /// The same as one of shards, if it is one.
    fn sharded(&self) -> Option<&dyn Sharded<T>>;

    /// The same as one of streams, if it is one.
    fn streamed(&self, how: &Stream) -> Option<Box<dyn Learner<T>>>;

    /// New data under the blocks of a file, its observations all together or, with `each`, as batches of one where that is something else.
    ///
    /// # Errors
    ///
    /// [`RunError`] for a file of another model, and those of the model.
    fn explain(
        &self,
        learnt: ModelFile,
        data: &dyn Data<T>,
        how: &Transform,
        each: bool,
    ) -> Result<Answer<T>, RunError>;
}

/// The shape of an array and its cells in row-major order.
pub type Cells<T> = (Vec<usize>, Vec<T>);

/// A scalar of fits: the only place where the two are told apart.
pub trait Scalar: Element + Serialize + DeserializeOwned {
    /// The model for data of this scalar.
    fn of(model: &dyn AnyModel) -> &dyn Typed<Self>;

    /// What the blocks of a file say of the data in this scalar, or what one component adds.
    ///
    /// # Errors
    ///
    /// [`RunError`] for a file of another model, a component that there is not, and arrays that no memory holds.
    fn cells(
        entry: &ModelEntry,
        file: ModelFile,
        component: Option<usize>,
    ) -> Result<Cells<Self>, RunError>;
}

impl Scalar for f64 {
    fn of(model: &dyn AnyModel) -> &dyn Typed<Self> {
        model
    }

    fn cells(
        entry: &ModelEntry,
        file: ModelFile,
        component: Option<usize>,
    ) -> Result<Cells<Self>, RunError> {
        (entry.cells.0)(file, component)
    }
}

impl Scalar for f32 {
    fn of(model: &dyn AnyModel) -> &dyn Typed<Self> {
        model
    }

    fn cells(
        entry: &ModelEntry,
        file: ModelFile,
        component: Option<usize>,
    ) -> Result<Cells<Self>, RunError> {
        (entry.cells.1)(file, component)
    }
}
