//! What builders are told of blocks, by their names.

use std::sync::Arc;

use plca_priors::{RatePrior, SimplexPrior};
use plca_tensor::Real;

use super::{BlockSpec, FitError, Frozen, Prior};

/// Priors and frozen blocks of a model, before its data say which blocks there are.
#[derive(Clone, Debug)]
pub struct Settings<T: Real> {
    priors: Vec<(String, Prior<T>)>,
    frozen: Vec<(String, Frozen)>,
}

impl<T: Real> Default for Settings<T> {
    fn default() -> Self {
        Self {
            priors: Vec::new(),
            frozen: Vec::new(),
        }
    }
}

impl<T: Real> Settings<T> {
    /// Sets the prior of a block; the last one counts.
    pub fn prior(&mut self, block: String, prior: Arc<dyn SimplexPrior<T>>) {
        self.priors.push((block, Prior::Simplex(prior)));
    }

    /// Sets the prior of a block of rates; the last one counts.
    pub fn rate_prior(&mut self, block: String, prior: Arc<dyn RatePrior<T>>) {
        self.priors.push((block, Prior::Rate(prior)));
    }

    /// Sets what of a block is frozen; the last setting counts.
    pub fn freeze(&mut self, block: String, frozen: Frozen) {
        self.frozen.push((block, frozen));
    }

    /// Whether any block has a prior.
    pub fn has_priors(&self) -> bool {
        !self.priors.is_empty()
    }

    /// Whether this block has a prior.
    pub fn has_prior(&self, block: &str) -> bool {
        self.priors.iter().any(|(name, _)| name == block)
    }

    /// The part of a block that is frozen.
    pub fn frozen(&self, block: &str) -> &Frozen {
        let mut settings = self.frozen.iter().rev();
        let set = settings.find(|(name, _)| name == block);
        set.map_or(&Frozen::No, |(_, frozen)| frozen)
    }

    /// Writes them into the blocks of a model.
    ///
    /// # Errors
    ///
    /// [`FitError::UnknownBlock`] for a name that no block has; those of [`BlockSpec::check`].
    pub fn apply(&self, specs: &mut [BlockSpec<T>]) -> Result<(), FitError> {
        let priors = self.priors.iter().map(|(name, _)| name);
        let mut named = priors.chain(self.frozen.iter().map(|(name, _)| name));
        if let Some(name) = named.find(|name| !specs.iter().any(|spec| spec.name == **name)) {
            return Err(FitError::UnknownBlock {
                name: name.clone(),
                expected: specs.iter().map(|spec| spec.name.to_string()).collect(),
            });
        }
        for spec in specs {
            let mut priors = self.priors.iter().rev();
            let prior = priors.find(|(name, _)| spec.name == **name);
            spec.prior = prior.map(|(_, prior)| prior.clone());
            spec.frozen = self.frozen(&spec.name).clone();
            spec.check()?;
        }
        Ok(())
    }
}

/// The setters of a builder `$builder(model)` whose model has `settings`.
#[doc(hidden)]
#[macro_export]
macro_rules! block_setters {
    ($builder:ident) => {
        $crate::freeze_setters!($builder);

        impl<T: ::plca_tensor::Real> $builder<T> {
            /// Puts a prior on the columns of a block; the last one set counts. A block that the model does not have is refused when it
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
        }
    };
}

/// The setter of a builder `$builder(model)` whose model has `settings` and heeds priors on rates.
#[doc(hidden)]
#[macro_export]
macro_rules! rate_setters {
    ($builder:ident) => {
        impl<T: ::plca_tensor::Real> $builder<T> {
            /// Puts a prior on the values of a block of rates; the last one set counts. A block that the model does not have is refused when it
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
