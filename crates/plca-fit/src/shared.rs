//! Code of models that debug builds compile once.

use plca_tensor::Data;
use rand::Rng;

use super::{Fit, FitError, Init, Model};

/// What a run of a model needs.
pub type Uses<M> = fn(
    &M,
    &dyn Data<<M as Model>::Scalar>,
    &mut dyn Rng,
) -> Result<Fit<<M as Model>::State>, FitError>;

/// A run and its continuation.
///
/// # Errors
///
/// Those of a run.
pub fn uses<M: Model>(
    model: &M,
    data: &dyn Data<M::Scalar>,
    rng: &mut dyn Rng,
) -> Result<Fit<M::State>, FitError> {
    let fit = model.on(data)?.run(Init::default(), rng)?;
    let fit = model.on(data)?.run(fit.state(), rng)?;
    model.on(data)?.resume(fit.checkpoint().clone())
}

/// Compiles runs of models for both scalars in the crate that defines them. Debug builds of other crates link to them, where each test would
/// compile them again; optimised builds share no code, and leave this out.
#[doc(hidden)]
#[macro_export]
macro_rules! share {
    ($($model:ident),* $(,)?) => {$(
        #[cfg(debug_assertions)]
        const _: () = {
            #[used]
            static USES: ($crate::Uses<$model<f32>>, $crate::Uses<$model<f64>>) =
                ($crate::uses, $crate::uses);
        };
    )*};
}
