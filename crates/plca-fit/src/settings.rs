//! What builders are told of blocks, by their names.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use plca_priors::PriorSpec;
use plca_tensor::Real;

use super::block::{check_blocks, check_known};
use super::{BlockSpec, FitError, Frozen};

/// Priors and frozen blocks of a model, before its data say which blocks there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings<T: Real> {
    priors: BTreeMap<String, PriorSpec>,
    frozen: BTreeMap<String, Frozen>,
    scalar: PhantomData<T>,
}

impl<T: Real> Settings<T> {
    /// Sets the prior of a block; a later one replaces an earlier one.
    pub fn prior(&mut self, block: String, prior: impl Into<PriorSpec>) {
        self.priors.insert(block, prior.into());
    }

    /// The same settings with no prior on a block.
    pub fn without_prior(&mut self, block: &str) {
        self.priors.remove(block);
    }

    /// Sets which part of a block is frozen; a later setting replaces an earlier one.
    pub fn freeze(&mut self, block: String, frozen: Frozen) {
        self.frozen.insert(block, frozen);
    }

    /// The priors alone.
    #[must_use]
    pub fn unfrozen(&self) -> Self {
        Self {
            priors: self.priors.clone(),
            frozen: BTreeMap::new(),
            scalar: PhantomData,
        }
    }

    /// The same with these priors alone.
    #[must_use]
    pub fn with_priors_that(mut self, keep: impl Fn(&str, &PriorSpec) -> bool) -> Self {
        self.priors.retain(|block, prior| keep(block, prior));
        self
    }

    /// Whether any block has a prior.
    pub fn has_priors(&self) -> bool {
        !self.priors.is_empty()
    }

    /// All priors, by the names of their blocks.
    pub fn priors(&self) -> impl Iterator<Item = (&str, &PriorSpec)> {
        self.priors
            .iter()
            .map(|(name, prior)| (name.as_str(), prior))
    }

    /// The prior of a block.
    pub fn prior_of(&self, block: &str) -> Option<&PriorSpec> {
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
    /// [`BlockSpec::set_prior`] and [`BlockSpec::check`].
    pub fn apply(&self, specs: &mut [BlockSpec<T>]) -> Result<(), FitError> {
        self.write(specs, true)
    }

    /// Writes into the blocks what is frozen. The model reads the priors itself.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply).
    pub fn apply_frozen(&self, specs: &mut [BlockSpec<T>]) -> Result<(), FitError> {
        self.write(specs, false)
    }

    /// Refuses names that no block has.
    ///
    /// # Errors
    ///
    /// [`FitError::UnknownBlock`].
    pub fn check_known(&self, specs: &[BlockSpec<T>]) -> Result<(), FitError> {
        check_known(specs, self.priors.keys().chain(self.frozen.keys()))
    }

    fn write(&self, specs: &mut [BlockSpec<T>], priors: bool) -> Result<(), FitError> {
        check_blocks(specs)?;
        self.check_known(specs)?;
        for spec in specs {
            if let (true, Some(prior)) = (priors, self.priors.get(&*spec.name)) {
                spec.set_prior(prior)?;
            }
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
            /// Puts a prior on a block; a later prior replaces an earlier one. A block that the model does not have, and a prior that does not fit it, are
            /// refused when it meets its data.
            pub fn prior(
                mut self,
                block: impl Into<String>,
                prior: impl Into<::plca_priors::PriorSpec>,
            ) -> Self {
                self.0.settings.prior(block.into(), prior);
                self
            }
        }
    };
}

/// Those of a model of posteriors, whose blocks are named with or without `_shape`.
#[doc(hidden)]
#[macro_export]
macro_rules! posterior_setters {
    ($builder:ident) => {
        $crate::freeze_setters!($builder);

        impl<T: ::plca_tensor::Real> $builder<T> {
            /// Puts a prior on a block, which is named with or without `_shape`; a later prior replaces an earlier one. A block that the model does not have, and a
            /// prior that does not fit it, are refused, at the latest when it meets its data.
            pub fn prior(
                mut self,
                block: impl Into<String>,
                prior: impl Into<::plca_priors::PriorSpec>,
            ) -> Self {
                let mut block = block.into();
                if !block.ends_with("_shape") {
                    block.push_str("_shape");
                }
                self.0.settings.prior(block, prior);
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
