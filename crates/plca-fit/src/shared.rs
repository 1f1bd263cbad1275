//! Code of models that debug builds compile once.

use plca_tensor::{Data, Real};
use rand::Rng;

use super::{Fit, FitError, Init, Model};

/// What a run of a model needs.
pub type Uses<T, M> =
    fn(&M, &dyn Data<T>, &mut dyn Rng) -> Result<Fit<<M as Model<T>>::State>, FitError>;

/// A run and its continuation.
///
/// # Errors
///
/// Those of a run.
pub fn uses<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    rng: &mut dyn Rng,
) -> Result<Fit<M::State>, FitError> {
    let fit = model.on(data)?.run(Init::default(), rng)?;
    let fit = model.on(data)?.run(fit.state(), rng)?;
    model.on(data)?.resume(fit.checkpoint().clone())
}

/// Compiles runs of models for both scalars in the crate that defines them, in debug builds for which `.cargo/config.toml` sets `PLCA_SHARE`. The
/// tests of all crates link to them, where each would compile them again. rustc shares such code where `opt-level` is 0 or 1.
#[doc(hidden)]
#[macro_export]
macro_rules! share {
    ($($model:ident),* $(,)?) => {$(
        #[cfg(debug_assertions)]
        const _: () = {
            type Both = ($crate::shared::Uses<f32, $model>, $crate::shared::Uses<f64, $model>);
            #[used]
            static USES: Option<Both> = match option_env!("PLCA_SHARE") {
                Some(_) => Some(($crate::shared::uses, $crate::shared::uses)),
                None => None,
            };
        };
    )*};
}
