//! Variational Bayes.

use plca_fit::{Accelerate, Algorithm, Outcome, Stop};
use plca_tensor::arrange::Signed;
use plca_tensor::{Real, SignedWanted};
use rand::Rng;

use crate::bayes::Bayes;
use crate::em::{pack, unpack};
use crate::faint::Logs;
use crate::init::check_shapes;
use crate::posterior::least_shape;
use crate::rule::Split;
use crate::{Entries, ParamError, Posterior, Prior, Replicates, SnmfError, SnmfState, VbInit};

/// Variational Bayes, a checked configuration; see [`SnmfVb::builder`].
///
/// ```text
/// maximise  ELBO / M      over  q(T) = Π Dirichlet(α̂),  q(H) = Π Gamma(ŝ, rate b̂)
/// ```
///
/// `[SKELLAM 6]`, `[SKELLAM 7]`. No iteration lowers the bound.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Signed, SnmfVb, Stop, VbInit};
/// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// # let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let v = Signed::from_matrix(dmatrix![2.0, 4.0, -3.0; -1.0, -2.0, 5.0])?;
/// let fit = SnmfVb::builder(2).build()?.fit(&v, &VbInit::Random, &Stop::default(), &mut rng)?;
/// assert!(fit.trace.windows(2).all(|w| w[1].objective >= w[0].objective - 1e-9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SnmfVb {
    pub(crate) components: usize,
    pub(crate) replicates: Replicates,
    real_data: bool,
    pub(crate) prior: Prior,
    pub(crate) freeze_atoms: bool,
    pub(crate) freeze_activations: bool,
}

/// Settings of [`SnmfVb`], not yet checked.
///
/// ```
/// use skellam_snmf::{ParamError, Prior, SnmfVb};
/// let builder = SnmfVb::builder(0).prior(Prior::flat());              // nothing is checked yet
/// assert_eq!(builder.build(), Err(ParamError::NoComponents));
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct SnmfVbBuilder(SnmfVb);

impl SnmfVbBuilder {
    /// Number `M` of replicated draws (default: the limit, for real data).
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Replicates, Signed, SnmfVb};
    /// let v = Signed::from_matrix(dmatrix![0.5])?;
    /// let taken = |m| Ok::<_, Box<dyn std::error::Error>>(SnmfVb::builder(1).replicates(m).build()?.on(&v).is_ok());
    /// assert!(taken(Replicates::Limit)? && taken(Replicates::Finite(2))?);                    // M V = 1 is whole
    /// assert!(!taken(Replicates::One)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replicates(mut self, replicates: Replicates) -> Self {
        self.0.replicates = replicates;
        self
    }

    /// Accepts data of which `M V` is not whole with finite `M` too: factorials become gamma functions. No effect in
    /// the limit.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Replicates, Signed, SnmfVb};
    /// let v = Signed::from_matrix(dmatrix![0.5])?;
    /// let counts = SnmfVb::builder(1).replicates(Replicates::One);
    /// assert!(counts.clone().build()?.on(&v).is_err());
    /// assert!(counts.real_data().build()?.on(&v).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn real_data(mut self) -> Self {
        self.0.real_data = true;
        self
    }

    /// Prior (default: shapes 1, rates 0.001). Every rate must be positive. Shapes from 1e-150 up can be fitted, from 1e-19 in `f32`;
    /// [`on`](SnmfVb::on) refuses smaller ones.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Entries, Prior, Signed, SnmfVb, Stop, VbInit};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![2.0, -4.0])?;
    /// let prior = Prior { rate: Entries::All(0.5), ..Prior::flat() };
    /// let fit = SnmfVb::builder(1).prior(prior).build()?.fit(&v, &VbInit::Random, &Stop::default(), &mut rng)?;
    /// assert_eq!(fit.state.rate, dmatrix![1.5, 1.5]);                     // b + 1
    /// assert!(fit.state.shape.iter().all(|&s| s > 1.0));                  // a + counts
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prior(mut self, prior: Prior) -> Self {
        self.0.prior = prior;
        self
    }

    /// Keeps the posterior of the atoms as it was given: what remains are the activations of new data.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Signed, SnmfVb, Stop, VbInit};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![3.0, 6.0; -3.0, -6.0])?;
    /// let (plus, minus) = (dmatrix![40.0; 1.0], dmatrix![1.0; 40.0]);     // learnt from other data
    /// let start = VbInit::Atoms { plus: plus.clone(), minus: minus.clone() };
    /// let fit = SnmfVb::builder(1).freeze_atoms().build()?.fit(&v, &start, &Stop::default(), &mut rng)?;
    /// assert_eq!((fit.state.plus, fit.state.minus), (plus, minus));
    /// assert!(fit.state.shape[1] > fit.state.shape[0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_atoms(mut self) -> Self {
        self.0.freeze_atoms = true;
        self
    }

    /// Keeps the posterior of the activations as it was given.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Posterior, Signed, SnmfVb, Stop, VbInit};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![3.0, 6.0; -3.0, -6.0])?;
    /// let (shape, rate) = (dmatrix![60.0, 120.0], dmatrix![10.0, 10.0]);
    /// let ones = dmatrix![1.0; 1.0];
    /// let start = Posterior { plus: ones.clone(), minus: ones, shape: shape.clone(), rate };
    /// let vb = SnmfVb::builder(1).freeze_activations().build()?;
    /// let fit = vb.fit(&v, &VbInit::Posterior(start), &Stop::default(), &mut rng)?;
    /// assert_eq!(fit.state.shape, shape);
    /// assert!(fit.state.plus[0] > fit.state.minus[0] && fit.state.plus[1] < fit.state.minus[1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_activations(mut self) -> Self {
        self.0.freeze_activations = true;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: no components, no replicates, a prior outside its range or with a rate of 0, which has no bound.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{ParamError, Prior, SnmfVb};
    /// let improper = SnmfVb::builder(1).prior(Prior::flat());
    /// assert!(matches!(improper.build(), Err(ParamError::Prior { name: "rate", value: 0.0, .. })));
    /// ```
    pub fn build(self) -> Result<SnmfVb, ParamError> {
        let vb = self.0;
        if vb.components == 0 {
            return Err(ParamError::NoComponents);
        }
        vb.replicates.check()?;
        vb.prior.check()?;
        vb.prior.check_proper()?;
        Ok(vb)
    }
}

impl SnmfVb {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Signed, SnmfVb, Stop, VbInit};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = Signed::from_matrix(dmatrix![2.0, 4.0; -1.0, -2.0])?;
    /// let vb = SnmfVb::builder(1).build()?;
    /// let fit = vb.fit(&v, &VbInit::Random, &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!(fit.state.means().reconstruct()[(0, 1)] > 1.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(components: usize) -> SnmfVbBuilder {
        SnmfVbBuilder(Self {
            components,
            replicates: Replicates::default(),
            real_data: false,
            prior: Prior {
                rate: Entries::All(1e-3),
                ..Prior::flat()
            },
            freeze_atoms: false,
            freeze_activations: false,
        })
    }

    /// Binds the configuration to data, `F x N`, for [`run`](crate::run) and the accelerations. Cost: one pass over them.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: data that are not whole or too large, a prior of another shape or with shapes below 1e-150 (`f32`: 1e-19).
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Signed, SnmfError, SnmfVb};
    /// let vb = SnmfVb::builder(1).build()?;
    /// assert!(vb.on(&Signed::from_matrix(dmatrix![1e100, -1e-100])?).is_ok());
    /// let error = vb.on(&Signed::from_matrix(dmatrix![1.0, -1e200])?).unwrap_err();
    /// assert!(matches!(error, SnmfError::TooLarge { row: 0, column: 1, value: -1e200, .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a, T: Real>(&'a self, data: &'a Signed<T>) -> Result<SnmfVbEm<'a, T>, SnmfError> {
        self.prior.check_shape(data.shape(), self.components)?;
        self.prior.check_least(least_shape::<T>())?;
        self.replicates.check_data(data, self.real_data)?;
        Ok(SnmfVbEm {
            config: self,
            data,
            split: Split::of(self.replicates, data),
        })
    }

    /// Fits the model: a start, then iterations until `stop` says so.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on) and [`VbInit::state`]; a stop rule that means nothing; shapes that leave the numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Algorithm, Signed, SnmfVb, Stop, VbInit};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![2.0, 4.0, -3.0; -1.0, -2.0, 5.0])?;
    /// let vb = SnmfVb::builder(1).build()?;
    /// let fit = vb.fit(&v, &VbInit::Random, &Stop::default(), &mut rng)?;
    /// assert_eq!(fit.objective, vb.on(&v)?.objective(&fit.state)?);       // ELBO / M
    /// assert_eq!(fit.state.means().activations.shape(), (1, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<T: Real, R: Rng + ?Sized>(
        &self,
        data: &Signed<T>,
        init: &VbInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<Posterior<T>>, SnmfError> {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = init.state(&algorithm, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}

/// [`SnmfVb`] bound to data: one step is one pass over them, `O(F N K)`, and `O((F + N) K)` special functions.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Algorithm, Signed, SnmfVb, VbInit};
/// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// # let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let v = Signed::from_matrix(dmatrix![2.0, 4.0, -3.0; -1.0, -2.0, 5.0])?;
/// let vb = SnmfVb::builder(2).build()?;
/// let bound = vb.on(&v)?;
/// let mut state = VbInit::Random.state(&bound, &mut rng)?;
/// let before = bound.step(&mut state, true)?;                         // of the state it was given
/// assert!(Some(bound.objective(&state)?) > before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SnmfVbEm<'a, T> {
    pub(crate) config: &'a SnmfVb,
    pub(crate) data: &'a Signed<T>,
    split: Split,
}

impl<T: Real> SnmfVbEm<'_, T> {
    /// `Lfit` of factors, such as the posterior means, in nats: the log-likelihood over `M` `[SKELLAM eq. 27]`, or minus the
    /// divergence in the limit `[SKELLAM eq. 30]`. Hidden cells add nothing. One pass over the data.
    ///
    /// # Panics
    ///
    /// If the factors have another shape than the data need.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Signed, SnmfState, SnmfVb};
    /// let v = Signed::from_matrix(dmatrix![3.0, f64::NAN])?;
    /// let means = SnmfState { plus: dmatrix![0.75], minus: dmatrix![0.25], activations: dmatrix![6.0, 1.0] };
    /// assert!(SnmfVb::builder(1).build()?.on(&v)?.log_fit(&means).abs() < 1e-12);            // D(3 | 4.5, 1.5) = 0
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn log_fit(&self, factors: &SnmfState<T>) -> f64 {
        let wanted = SignedWanted {
            left: false,
            right: false,
            value: true,
        };
        self.data.pass(&factors.model(), &self.split, wanted).value
    }

    /// Refuses a posterior of other sizes than the data's.
    fn check(&self, state: &Posterior<T>) -> Result<(), SnmfError> {
        state.check_pairs()?;
        let ((f, n), k) = (self.data.shape(), self.config.components);
        check_shapes([
            ("plus", state.plus.shape(), (f, k)),
            ("shape", state.shape.shape(), (k, n)),
        ])
    }

    /// The updates under this prior.
    fn bayes(&self) -> Bayes<'_, T> {
        Bayes {
            prior: &self.config.prior,
            replicates: self.config.replicates,
            data: self.data,
            split: self.split,
        }
    }

    /// One update from geometric means: the posterior of atoms and activations, and the likelihood term if measured.
    pub(crate) fn update(
        &self,
        means: &SnmfState<T>,
        logs: impl FnOnce() -> Result<Logs, SnmfError>,
        measure: bool,
    ) -> Result<(Posterior<T>, f64), SnmfError> {
        let wanted = SignedWanted {
            left: !self.config.freeze_atoms,
            right: !self.config.freeze_activations,
            value: measure,
        };
        self.bayes().update(means, logs, wanted)
    }
}

impl<T: Real> Algorithm for SnmfVbEm<'_, T> {
    type State = Posterior<T>;
    type Error = SnmfError;

    fn step(&self, state: &mut Posterior<T>, measure: bool) -> Result<Option<f64>, SnmfError> {
        self.check(state)?;
        let means = state.geometric()?;
        let (mut next, fit) = self.update(&means, || state.ln_geometric(), measure)?;
        let before = match measure {
            true => Some(self.bayes().bound(state, &means, fit)?),
            false => None,
        };
        if self.config.freeze_atoms {
            std::mem::swap(&mut next.plus, &mut state.plus);
            std::mem::swap(&mut next.minus, &mut state.minus);
        }
        if self.config.freeze_activations {
            std::mem::swap(&mut next.shape, &mut state.shape);
            std::mem::swap(&mut next.rate, &mut state.rate);
        }
        *state = next;
        Ok(before)
    }

    /// The normalised evidence lower bound, `ELBO / M`.
    fn objective(&self, state: &Posterior<T>) -> Result<f64, SnmfError> {
        self.check(state)?;
        let means = state.geometric()?;
        let wanted = SignedWanted {
            left: false,
            right: false,
            value: true,
        };
        let fit = self.bayes().fit(&means, || state.ln_geometric(), wanted)?;
        self.bayes().bound(state, &means, fit)
    }
}

impl<T: Real> Accelerate for SnmfVbEm<'_, T> {
    fn pack(&self, state: &Posterior<T>) -> Vec<f64> {
        pack([&state.plus, &state.minus, &state.shape])
    }

    fn unpack(&self, template: &Posterior<T>, flat: &[f64], fallback: &[f64]) -> Posterior<T> {
        /// Extrapolated shapes go no lower, unless the last one was lower already.
        const CLIP: f64 = 0.02;
        let mut state = template.clone();
        let frozen = [self.config.freeze_atoms, self.config.freeze_activations];
        let blocks = [&mut state.plus, &mut state.minus, &mut state.shape];
        // [SKELLAM 9]
        unpack(blocks, frozen, flat, fallback, |new, old| {
            new.max(CLIP.min(old))
        });
        state
    }
}
