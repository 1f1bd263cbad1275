//! The settings that the builders of shifted and of transformed models share.

/// Setters of the blocks, for a builder whose checked value has `settings`. `$imports` and `$start` begin the examples.
macro_rules! block_setters {
    ($builder:ident, $imports:literal, $start:literal) => {
        impl<T: Real> $builder<T> {
            /// What is maximised where mass of the model can lie outside the data (default: the likelihood given the data's
            /// window).
            ///
            /// ```
            #[doc = concat!("use plca_em::{Likelihood, ", $imports, "};")]
            #[doc = concat!("let model = ", $start, ".likelihood(Likelihood::Literal).build()?;")]
            /// # Ok::<(), plca_em::ParamError>(())
            /// ```
            pub fn likelihood(mut self, likelihood: Likelihood) -> Self {
                self.0.likelihood = likelihood;
                self
            }

            /// Raises the kernels to a power that grows to 1 (default: no). `[SPEC 5.3]`
            ///
            /// ```
            #[doc = concat!("use plca_em::{Anneal, ParamError, ", $imports, "};")]
            #[doc = concat!("let model = ", $start, ".anneal(Anneal { alpha0: 0.7, over: 50.0 }).build()?;")]
            #[doc = concat!("let refused = ", $start, ".anneal(Anneal { alpha0: 1.5, over: 50.0 }).build();")]
            /// assert!(matches!(refused, Err(ParamError::AnnealPower { value: 1.5, .. })));
            /// # Ok::<(), ParamError>(())
            /// ```
            pub fn anneal(mut self, anneal: Anneal) -> Self {
                self.0.settings.anneal = Some(anneal);
                self
            }

            /// Raises the impulses to a power above 1 (default: no). `[SPEC 5.3]`
            ///
            /// ```
            #[doc = concat!("use plca_em::{Anneal, ", $imports, "};")]
            #[doc = concat!("let model = ", $start, ".impulse_power(Anneal { alpha0: 1.2, over: 50.0 }).build()?;")]
            /// # Ok::<(), plca_em::ParamError>(())
            /// ```
            pub fn impulse_power(mut self, power: Anneal) -> Self {
                self.0.settings.impulse_power = Some(power);
                self
            }

            /// Keeps `P(z)` as it was given.
            ///
            /// ```
            #[doc = concat!("use plca_em::{", $imports, "};")]
            #[doc = concat!("let model = ", $start, ".freeze_weights().build()?;")]
            /// # Ok::<(), plca_em::ParamError>(())
            /// ```
            pub fn freeze_weights(mut self) -> Self {
                self.0.settings.frozen[0] = true;
                self
            }

            /// Keeps the kernels as they were given: positive deconvolution. `[SPEC 5.4]`
            ///
            /// ```
            #[doc = concat!("use plca_em::{", $imports, "};")]
            #[doc = concat!("let model = ", $start, ".freeze_kernels().build()?;")]
            /// # Ok::<(), plca_em::ParamError>(())
            /// ```
            pub fn freeze_kernels(mut self) -> Self {
                self.0.settings.frozen[1] = true;
                self
            }

            /// Keeps the impulses as they were given.
            ///
            /// ```
            #[doc = concat!("use plca_em::{", $imports, "};")]
            #[doc = concat!("let model = ", $start, ".freeze_impulses().build()?;")]
            /// # Ok::<(), plca_em::ParamError>(())
            /// ```
            pub fn freeze_impulses(mut self) -> Self {
                self.0.settings.frozen[2] = true;
                self
            }

            /// A prior on `P(z)` (a single column).
            ///
            /// ```
            #[doc = concat!("use plca_em::{", $imports, "};")]
            /// use plca_priors::Dirichlet;
            /// let prior = std::sync::Arc::new(Dirichlet::symmetric(0.5)?);
            #[doc = concat!("let model = ", $start, ".weights_prior(prior).build()?;")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn weights_prior(mut self, prior: Prior<T>) -> Self {
                self.0.settings.priors[0] = Some(prior);
                self
            }

            /// A prior on the kernels, a column for each component.
            ///
            /// ```
            #[doc = concat!("use plca_em::{", $imports, "};")]
            /// use plca_priors::Entropic;
            /// let sparse = std::sync::Arc::new(Entropic::new(2.0)?);
            #[doc = concat!("let model = ", $start, ".kernels_prior(sparse).build()?;")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn kernels_prior(mut self, prior: Prior<T>) -> Self {
                self.0.settings.priors[1] = Some(prior);
                self
            }

            /// A prior on the impulses, a column for each component.
            ///
            /// ```
            #[doc = concat!("use plca_em::{", $imports, "};")]
            /// use plca_priors::Entropic;
            /// let sparse = std::sync::Arc::new(Entropic::new(2.0)?);
            #[doc = concat!("let model = ", $start, ".impulses_prior(sparse).build()?;")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn impulses_prior(mut self, prior: Prior<T>) -> Self {
                self.0.settings.priors[2] = Some(prior);
                self
            }
        }
    };
}

pub(crate) use block_setters;
