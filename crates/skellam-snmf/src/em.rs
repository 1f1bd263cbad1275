//! Expectation-maximisation.

use std::marker::PhantomData;

use nalgebra::DMatrix;
use plca_fit::{Accelerate, Algorithm, Outcome, Stop};
use plca_tensor::{Real, Signed, SignedWanted};
use rand::Rng;

use crate::rule::Split;
use crate::state::normalise_atoms;
use crate::{Entries, ParamError, Prior, Replicates, SnmfError, SnmfInit, SnmfState};

/// A checked configuration; see [`Snmf::builder`].
#[derive(Clone, Debug, PartialEq)]
pub struct Snmf {
    pub(crate) components: usize,
    pub(crate) replicates: Replicates,
    pub(crate) real_data: bool,
    prior: Prior,
    floor: f64,
    freeze_atoms: bool,
    freeze_activations: bool,
}

/// Settings of [`Snmf`], not yet checked.
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct SnmfBuilder(Snmf);

impl SnmfBuilder {
    /// Number `M` of replicated draws (default: the limit, for real data).
    pub fn replicates(mut self, replicates: Replicates) -> Self {
        self.0.replicates = replicates;
        self
    }

    /// Accepts data of which `M V` is not whole with finite `M` too: factorials become gamma functions.
    pub fn real_data(mut self) -> Self {
        self.0.real_data = true;
        self
    }

    /// Prior (default: flat).
    pub fn prior(mut self, prior: Prior) -> Self {
        self.0.prior = prior;
        self
    }

    /// Least value of every factor before atoms are normalised (default 0). Matters where a shape of the prior is below 1:
    /// there the objective has no maximum, and may fall.
    pub fn floor(mut self, floor: f64) -> Self {
        self.0.floor = floor;
        self
    }

    /// Keeps the atoms as they were given: what remains are the activations of new data.
    pub fn freeze_atoms(mut self) -> Self {
        self.0.freeze_atoms = true;
        self
    }

    /// Keeps the activations as they were given.
    pub fn freeze_activations(mut self) -> Self {
        self.0.freeze_activations = true;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: no components, no replicates, a floor or a prior outside its range.
    pub fn build(self) -> Result<Snmf, ParamError> {
        let snmf = self.0;
        if snmf.components == 0 {
            return Err(ParamError::NoComponents);
        }
        snmf.replicates.check()?;
        if !(snmf.floor.is_finite() && snmf.floor >= 0.0) {
            return Err(ParamError::Floor(snmf.floor));
        }
        snmf.prior.check()?;
        Ok(snmf)
    }
}

impl Snmf {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// use skellam_snmf::{Replicates, Snmf};
    /// let counts = Snmf::builder(3).replicates(Replicates::One).build()?;
    /// # Ok::<(), skellam_snmf::ParamError>(())
    /// ```
    pub fn builder(components: usize) -> SnmfBuilder {
        SnmfBuilder(Self {
            components,
            replicates: Replicates::default(),
            real_data: false,
            prior: Prior::flat(),
            floor: 0.0,
            freeze_atoms: false,
            freeze_activations: false,
        })
    }

    /// Binds the configuration to data. Cost: one pass over them.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: data that are not whole or too large, a prior of another shape.
    pub fn on<'a, T: Real, X: Signed<T>>(
        &'a self,
        data: &'a X,
    ) -> Result<SnmfEm<'a, T, X>, SnmfError> {
        self.prior.check_shape(data.shape(), self.components)?;
        self.replicates.check_data(data, self.real_data)?;
        Ok(SnmfEm {
            config: self,
            data,
            split: Split::of(self.replicates, data),
            scalar: PhantomData,
        })
    }

    /// A start: what `init` gives, the rest drawn.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: a block of the wrong shape or with negative or non-finite values, an empty atom, a frozen block that
    /// is not given, or a datum that the start gives probability 0.
    pub fn init<T: Real, X: Signed<T>, R: Rng + ?Sized>(
        &self,
        data: &X,
        init: &SnmfInit<T>,
        rng: &mut R,
    ) -> Result<SnmfState<T>, SnmfError> {
        if self.freeze_atoms && init.atoms.is_none() {
            return Err(SnmfError::FixedWithoutValue { block: "T" });
        }
        if self.freeze_activations && init.activations.is_none() {
            return Err(SnmfError::FixedWithoutValue { block: "H" });
        }
        init.state(data, self.components, rng)
    }

    /// Fits the model: [`init`](Self::init), then iterations until `stop` says so.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on) and [`init`](Self::init); a stop rule that means nothing; factors that leave the numbers.
    pub fn fit<T: Real, X: Signed<T>, R: Rng + ?Sized>(
        &self,
        data: &X,
        init: &SnmfInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<SnmfState<T>>, SnmfError> {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = self.init(data, init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}

/// [`Snmf`] bound to data.
#[derive(Debug)]
pub struct SnmfEm<'a, T, X> {
    config: &'a Snmf,
    data: &'a X,
    split: Split,
    scalar: PhantomData<T>,
}

impl<T: Real, X: Signed<T>> SnmfEm<'_, T, X> {
    /// `Lfit`: the log-likelihood over `M`, or minus the divergence in the limit, without the prior.
    pub fn log_fit(&self, state: &SnmfState<T>) -> f64 {
        let wanted = SignedWanted {
            left: false,
            right: false,
            value: true,
        };
        self.data.pass(&state.model(), &self.split, wanted).value
    }
}

/// `x <- max(floor, x s + c - 1)`; whether all are finite.
fn multiply<T: Real>(x: &mut DMatrix<T>, s: &DMatrix<T>, floor: T, c: &Entries) -> bool {
    x.component_mul_assign(s);
    let mut finite = true;
    c.for_each(x.as_mut_slice(), |x, c| {
        let new = *x + T::lit(c - 1.0);
        finite &= new.is_finite();
        *x = if new > floor { new } else { floor };
    });
    finite
}

impl<T: Real, X: Signed<T>> Algorithm for SnmfEm<'_, T, X> {
    type State = SnmfState<T>;
    type Error = SnmfError;

    fn step(&self, state: &mut SnmfState<T>, measure: bool) -> Result<Option<f64>, SnmfError> {
        let config = self.config;
        let wanted = SignedWanted {
            left: !config.freeze_atoms,
            right: !config.freeze_activations,
            value: measure,
        };
        let sums = self.data.pass(&state.model(), &self.split, wanted);
        let before = measure.then(|| sums.value + config.prior.ln_density(state));
        let floor = T::lit(config.floor);
        if wanted.left {
            let previous = (state.plus.clone(), state.minus.clone());
            // [SKELLAM 5] T± <- norm(T± ∘ G± Hᵀ + α± - 1), both sides together
            let finite = multiply(&mut state.plus, &sums.plus, floor, &config.prior.plus)
                & multiply(&mut state.minus, &sums.minus, floor, &config.prior.minus);
            if !finite {
                return Err(SnmfError::NotFinite { block: "T" });
            }
            if normalise_atoms(&mut state.plus, &mut state.minus).is_some() {
                // An atom that nothing is left of keeps its value.
                for k in 0..state.plus.ncols() {
                    if state
                        .plus
                        .column(k)
                        .amax()
                        .max(state.minus.column(k).amax())
                        <= T::zero()
                    {
                        state.plus.set_column(k, &previous.0.column(k));
                        state.minus.set_column(k, &previous.1.column(k));
                    }
                }
            }
        }
        if wanted.right {
            // [SKELLAM 5] H <- (H ∘ (T⁺ᵀ G⁺ + T⁻ᵀ G⁻) + a - 1) / (1 + b)
            let h = &mut state.activations;
            if !multiply(h, &sums.right, floor, &config.prior.shape) {
                return Err(SnmfError::NotFinite { block: "H" });
            }
            match &config.prior.rate {
                Entries::All(0.0) => {}
                rate => rate.for_each(h.as_mut_slice(), |x, b| *x /= T::lit(1.0 + b)),
            }
        }
        Ok(before)
    }

    /// `Lfit + ln p(T, H)`.
    fn objective(&self, state: &SnmfState<T>) -> Result<f64, SnmfError> {
        // [SKELLAM eq. 26]
        Ok(self.log_fit(state) + self.config.prior.ln_density(state))
    }
}

impl<T: Real, X: Signed<T>> Accelerate for SnmfEm<'_, T, X> {
    fn pack(&self, state: &SnmfState<T>) -> Vec<f64> {
        let blocks = state
            .plus
            .iter()
            .chain(&state.minus)
            .chain(&state.activations);
        blocks.map(|x| x.to_f64()).collect()
    }

    fn unpack(&self, template: &SnmfState<T>, flat: &[f64], fallback: &[f64]) -> SnmfState<T> {
        let mut state = template.clone();
        let mut values = flat
            .iter()
            .zip(fallback)
            .map(|(&new, &old)| T::lit(if new > 0.0 { new } else { 0.1 * old }));
        for (block, frozen) in [
            (&mut state.plus, self.config.freeze_atoms),
            (&mut state.minus, self.config.freeze_atoms),
            (&mut state.activations, self.config.freeze_activations),
        ] {
            for (x, new) in block.iter_mut().zip(&mut values) {
                *x = if frozen { *x } else { new };
            }
        }
        if !self.config.freeze_atoms {
            normalise_atoms(&mut state.plus, &mut state.minus);
        }
        state
    }
}
