//! What builders are told of blocks, by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use plca_priors::{RatePrior, SimplexPrior};
use plca_tensor::Real;

use super::block::{check_blocks, check_known};
use super::{BlockSpec, FitError, Frozen, Prior};

/// Priors and frozen blocks of a model, before its data say which blocks there are.
#[derive(Clone, Debug, Default)]
pub struct Settings<T: Real> {
    priors: BTreeMap<String, Prior<T>>,
    frozen: BTreeMap<String, Frozen>,
}

impl<T: Real> Settings<T> {
    /// Sets the prior of a block; a later one replaces an earlier one.
    pub fn prior(&mut self, block: String, prior: Arc<dyn SimplexPrior<T>>) {
        self.priors.insert(block, Prior::Simplex(prior));
    }

    /// Sets the prior of a block of rates; a later one replaces an earlier one.
    pub fn rate_prior(&mut self, block: String, prior: Arc<dyn RatePrior<T>>) {
        self.priors.insert(block, Prior::Rate(prior));
    }

    /// Sets which part of a block is frozen; a later setting replaces an earlier one.
    pub fn freeze(&mut self, block: String, frozen: Frozen) {
        self.frozen.insert(block, frozen);
    }

    /// Whether any block has a prior.
    pub fn has_priors(&self) -> bool {
        !self.priors.is_empty()
    }

    /// The prior of a block.
    pub fn prior_of(&self, block: &str) -> Option<&Prior<T>> {
        self.priors.get(block)
    }

    /// Whether this block has a prior.
    pub fn has_prior(&self, block: &str) -> bool {
        self.priors.contains_key(block)
    }

    /// The part of a block that is frozen.
    pub fn frozen(&self, block: &str) -> &Frozen {
        self.frozen.get(block).unwrap_or(&Frozen::No)
    }

    /// Writes them into the blocks of a model.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] for a number of components whose blocks no memory holds, [`FitError::UnknownBlock`] for a name that no block has; those of
    /// [`BlockSpec::check`].
    pub fn apply(&self, specs: &mut [BlockSpec<T>]) -> Result<(), FitError> {
        check_blocks(specs)?;
        check_known(specs, self.priors.keys().chain(self.frozen.keys()))?;
        for spec in specs {
            spec.prior = self.priors.get(&*spec.name).cloned();
            spec.frozen = self.frozen(&spec.name).clone();
            spec.check()?;
        }
        Ok(())
    }
}

/// A builder of any model whose blocks can be frozen.
pub trait Freeze: Sized {
    /// Sets which part of a block is frozen; a later setting replaces an earlier one.
    #[must_use]
    fn frozen(self, block: &str, what: Frozen) -> Self;
}

/// The setters of a builder `$builder(model)` whose model has `settings`.
#[doc(hidden)]
#[macro_export]
macro_rules! block_setters {
    ($builder:ident) => {
        $crate::freeze_setters!($builder);

        impl<T: ::plca_tensor::Real> $builder<T> {
            /// Puts a prior on the columns of a block; a later prior replaces an earlier one. A block that the model does not have is refused when it
            /// meets its data.
            pub fn prior(
                mut self,
                block: impl Into<String>,
                prior: impl ::plca_priors::SimplexPrior<T> + 'static,
            ) -> Self {
                let prior = ::std::sync::Arc::new(prior);
                self.0.settings.prior(block.into(), prior);
                self
            }
        }
    };
}

/// Those of a model without priors.
#[doc(hidden)]
#[macro_export]
macro_rules! freeze_setters {
    ($builder:ident) => {
        impl<T: ::plca_tensor::Real> $builder<T> {
            /// Freezes a block: it keeps the values that the start gives.
            pub fn freeze(mut self, block: impl Into<String>) -> Self {
                let frozen = $crate::Frozen::Whole;
                self.0.settings.freeze(block.into(), frozen);
                self
            }

            /// Freezes some components of a block, counted from 0: they keep the values that the start gives, and the others are learnt.
            pub fn freeze_components(
                mut self,
                block: impl Into<String>,
                components: impl IntoIterator<Item = usize>,
            ) -> Self {
                let components = components.into_iter().collect();
                let frozen = $crate::Frozen::Components(components);
                self.0.settings.freeze(block.into(), frozen);
                self
            }

            /// Freezes the entries of a block whose flag in a matrix of its shape is set: they keep the values that the start gives. In a column that
            /// is a distribution the others share what they leave of 1.
            pub fn freeze_entries(
                mut self,
                block: impl Into<String>,
                entries: ::nalgebra::DMatrix<bool>,
            ) -> Self {
                let frozen = $crate::Frozen::Entries(entries);
                self.0.settings.freeze(block.into(), frozen);
                self
            }
        }

        impl<T: ::plca_tensor::Real> $crate::Freeze for $builder<T> {
            fn frozen(mut self, block: &str, what: $crate::Frozen) -> Self {
                self.0.settings.freeze(block.into(), what);
                self
            }
        }
    };
}

/// The setter of a builder `$builder(model)` whose model has `settings` and heeds priors on rates.
#[doc(hidden)]
#[macro_export]
macro_rules! rate_setters {
    ($builder:ident) => {
        impl<T: ::plca_tensor::Real> $builder<T> {
            /// Puts a prior on the values of a block of rates; a later prior replaces an earlier one. A block that the model does not have is refused when it
            /// meets its data.
            pub fn rate_prior(
                mut self,
                block: impl Into<String>,
                prior: impl ::plca_priors::RatePrior<T> + 'static,
            ) -> Self {
                let prior = ::std::sync::Arc::new(prior);
                self.0.settings.rate_prior(block.into(), prior);
                self
            }
        }
    };
}
