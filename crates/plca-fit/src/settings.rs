//! Settings of models: plain values, of no scalar, that are checked where they meet data.

use std::collections::BTreeMap;
use std::fmt::Debug;

use plca_priors::PriorSpec;
use plca_tensor::Real;

use super::block::{check_blocks, check_known};
use super::{BlockSpec, FitError, Frozen};

/// What every model says of itself without data or a scalar.
pub trait Settings: Debug + Send + Sync {
    /// The number of components, `K`.
    fn components(&self) -> usize;

    /// Refuses settings that no data could make valid. Whatever takes data calls it first.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] for a number out of its range, [`FitError::Conflict`] for settings that exclude each other.
    fn check(&self) -> Result<(), FitError>;

    /// The same settings, once they are [checked](Self::check).
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    fn checked(self) -> Result<Self, FitError>
    where
        Self: Sized,
    {
        self.check()?;
        Ok(self)
    }
}

/// Priors and frozen blocks of a model, before its data say which blocks there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockSettings {
    priors: BTreeMap<String, PriorSpec>,
    frozen: BTreeMap<String, Frozen>,
}

impl BlockSettings {
    /// Sets the prior of a block; a later one replaces an earlier one.
    pub fn prior(&mut self, block: String, prior: impl Into<PriorSpec>) {
        self.priors.insert(block, prior.into());
    }

    /// The same for a block of a posterior, which is named with or without `_shape`.
    pub fn prior_of_posterior(&mut self, mut block: String, prior: impl Into<PriorSpec>) {
        if !block.ends_with("_shape") {
            block.push_str("_shape");
        }
        self.prior(block, prior);
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
    pub fn apply<T: Real>(&self, specs: &mut [BlockSpec<T>]) -> Result<(), FitError> {
        self.write(specs, true)
    }

    /// Writes into the blocks what is frozen. The model reads the priors itself.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply).
    pub fn apply_frozen<T: Real>(&self, specs: &mut [BlockSpec<T>]) -> Result<(), FitError> {
        self.write(specs, false)
    }

    /// Refuses names that no block has.
    ///
    /// # Errors
    ///
    /// [`FitError::UnknownBlock`].
    pub fn check_known<T: Real>(&self, specs: &[BlockSpec<T>]) -> Result<(), FitError> {
        check_known(specs, self.priors.keys().chain(self.frozen.keys()))
    }

    fn write<T: Real>(&self, specs: &mut [BlockSpec<T>], priors: bool) -> Result<(), FitError> {
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

/// A model of any kind whose blocks can be frozen.
pub trait Freeze: Sized {
    /// Sets which part of a block is frozen; a later setting replaces an earlier one.
    #[must_use]
    fn frozen(self, block: &str, what: Frozen) -> Self;
}

/// The settings of a model as a struct: `new`, and for every field a setter of its name. All have `components`, and `blocks` for what is frozen.
///
/// ```text
/// settings! {
///     /// What the model is.
///     pub struct Shifted(kernel: Vec<usize>), priors "" {
///         /// What the setting does.
///         pub evaluation: Evaluation = Evaluation::default();
///         /// One that may be absent: its setter takes an `Anneal`.
///         pub anneal: Option<Anneal> = None, some Anneal;
///         /// One whose setter is written by hand, if there is any.
///         parts: Parts = Parts::default(), own;
///     }
/// }
/// ```
///
/// Fields in parentheses have no default: `new` takes them. `priors`, and what the names of blocks end with, make a setter of priors.
#[doc(hidden)]
#[macro_export]
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub struct $model:ident $(($($given:ident: $given_type:ty),*))? $(, priors $suffix:tt)? {
            $($(#[$doc:meta])* $see:vis $field:ident: $type:ty = $default:expr $(, $how:ident $($inner:ty)?)?;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        #[must_use = "settings alone fit nothing"]
        #[non_exhaustive]
        pub struct $model {
            /// The number of components, `K`.
            pub components: usize,
            $($(#[doc = "As given to [`new`](Self::new)."] pub $given: $given_type,)*)?
            $(#[doc = concat!("What [`", stringify!($field), "`](Self::", stringify!($field), "()) sets.")] $see $field: $type,)*
            pub(crate) blocks: $crate::setting::BlockSettings,
        }

        impl $model {
            /// The model with this number of components and the defaults of all settings.
            pub fn new(components: usize $($(, $given: $given_type)*)?) -> Self {
                Self {
                    components,
                    $($($given,)*)?
                    $($field: $default,)*
                    blocks: $crate::setting::BlockSettings::default(),
                }
            }

            $($crate::settings! { @setter [$(#[$doc])*] $see $field [$type] $($how $($inner)?)? })*

            /// Freezes a block: it keeps the values that the start gives.
            pub fn freeze(self, block: impl Into<String>) -> Self {
                $crate::setting::Freeze::frozen(self, &block.into(), $crate::blocks::Frozen::Whole)
            }

            /// Freezes some components of a block, counted from 0: they keep the values that the start gives, and the others are learnt.
            pub fn freeze_components(
                self,
                block: impl Into<String>,
                components: impl IntoIterator<Item = usize>,
            ) -> Self {
                let components = components.into_iter().collect();
                $crate::setting::Freeze::frozen(self, &block.into(), $crate::blocks::Frozen::Components(components))
            }

            /// Freezes the entries of a block whose flag in a matrix of its shape is set: they keep the values that the start gives. In a column that
            /// is a distribution the others share what they leave of 1.
            pub fn freeze_entries(
                self,
                block: impl Into<String>,
                entries: ::nalgebra::DMatrix<bool>,
            ) -> Self {
                $crate::setting::Freeze::frozen(self, &block.into(), $crate::blocks::Frozen::Entries(entries))
            }
        }

        impl $crate::setting::Freeze for $model {
            fn frozen(mut self, block: &str, what: $crate::blocks::Frozen) -> Self {
                self.blocks.freeze(block.into(), what);
                self
            }
        }

        $($crate::settings! { @priors $model $suffix })?
    };
    (@setter [$($doc:tt)*] $see:vis $field:ident [$type:ty]) => {
        $($doc)*
        $see fn $field(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    };
    (@setter [$($doc:tt)*] $see:vis $field:ident [$type:ty] some $inner:ty) => {
        $($doc)*
        $see fn $field(mut self, $field: $inner) -> Self {
            self.$field = Some($field);
            self
        }
    };
    (@setter [$($doc:tt)*] $see:vis $field:ident [$type:ty] own) => {};
    (@priors $model:ident "") => {
        impl $model {
            /// Puts a prior on a block; a later prior replaces an earlier one. A block that the model does not have, and a prior that does not fit it, are
            /// refused when it meets its data.
            pub fn prior(
                mut self,
                block: impl Into<String>,
                prior: impl Into<::plca_priors::PriorSpec>,
            ) -> Self {
                self.blocks.prior(block.into(), prior.into());
                self
            }
        }
    };
    (@priors $model:ident "_shape") => {
        impl $model {
            /// Puts a prior on a block, which is named with or without `_shape`; a later prior replaces an earlier one. A block that the model does not have, and a
            /// prior that does not fit it, are refused, at the latest when it meets its data.
            pub fn prior(
                mut self,
                block: impl Into<String>,
                prior: impl Into<::plca_priors::PriorSpec>,
            ) -> Self {
                self.blocks.prior_of_posterior(block.into(), prior.into());
                self
            }
        }
    };
}
