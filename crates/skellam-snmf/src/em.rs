//! Expectation-maximisation.

use nalgebra::DMatrix;
use plca_fit::{Accelerate, Algorithm, Outcome, Stop};
use plca_tensor::arrange::Signed;
use plca_tensor::{Real, SignedWanted};
use rand::Rng;

use crate::init::check_factor;
use crate::prior::Axis;
use crate::rule::Split;
use crate::sides::{split, stack};
use crate::state::normalise_atoms;
use crate::{Entries, ParamError, Prior, Replicates, SnmfError, SnmfInit, SnmfState};

/// Maximum a posteriori by EM, a checked configuration; see [`Snmf::builder`].
///
/// ```text
/// maximise  Lfit(V; T, H) + ln p(T, H)
/// ```
///
/// with the likelihood of [`Replicates`] and the density of [`Prior`] `[SKELLAM eq. 26]`. Each iteration updates both factors
/// from the same ratios; while no shape of the prior is below 1 the objective never falls.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Signed, Snmf, SnmfInit, Stop};
/// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// # let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let v = Signed::from_matrix(dmatrix![2.0, 4.0, -3.0; -1.0, -2.0, 5.0])?;
/// let fit = Snmf::builder(2).build()?.fit(&v, &SnmfInit::default(), &Stop::default(), &mut rng)?;
/// assert!(fit.trace.windows(2).all(|w| w[1].objective >= w[0].objective - 1e-9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// ```
/// use skellam_snmf::{ParamError, Snmf};
/// let builder = Snmf::builder(0).floor(-1.0);                         // nothing is checked yet
/// assert_eq!(builder.build(), Err(ParamError::NoComponents));
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct SnmfBuilder(Snmf);

impl SnmfBuilder {
    /// Number `M` of replicated draws (default: the limit, for real data).
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Replicates, Signed, Snmf};
    /// let v = Signed::from_matrix(dmatrix![0.5])?;
    /// let taken = |m| Ok::<_, Box<dyn std::error::Error>>(Snmf::builder(1).replicates(m).build()?.on(&v).is_ok());
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
    /// use skellam_snmf::{Replicates, Signed, Snmf};
    /// let v = Signed::from_matrix(dmatrix![0.5])?;
    /// let counts = Snmf::builder(1).replicates(Replicates::One);
    /// assert!(counts.clone().build()?.on(&v).is_err());
    /// assert!(counts.real_data().build()?.on(&v).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn real_data(mut self) -> Self {
        self.0.real_data = true;
        self
    }

    /// Prior (default: flat). Blocks of one hyperparameter each must have the shapes of the factors.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Entries, Prior, Signed, Snmf, SnmfInit, Stop};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![4.0])?;
    /// let prior = Prior { shape: Entries::All(3.0), rate: Entries::All(1.0), ..Prior::flat() };
    /// let init = SnmfInit { atoms: Some((dmatrix![1.0], dmatrix![0.0])), activations: None };
    /// let fit = Snmf::builder(1).prior(prior).build()?.fit(&v, &init, &Stop::default(), &mut rng)?;
    /// assert!(f64::abs(fit.state.activations[0] - 3.0) < 1e-12);          // (4 + 3 - 1) / (1 + 1)
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prior(mut self, prior: Prior) -> Self {
        self.0.prior = prior;
        self
    }

    /// Least value of every factor before atoms are normalised (default 0). Matters where a shape of the prior is below 1:
    /// there the objective has no maximum, and may fall.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Entries, Prior, Signed, Snmf, SnmfInit, Stop};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![0.25])?;
    /// let prior = Prior { shape: Entries::All(0.5), ..Prior::flat() };
    /// let init = SnmfInit { atoms: Some((dmatrix![1.0], dmatrix![0.0])), activations: None };
    /// let snmf = Snmf::builder(1).prior(prior).floor(1e-20).freeze_atoms().build()?;
    /// let fit = snmf.fit(&v, &init, &Stop::default(), &mut rng)?;
    /// assert_eq!(fit.state.activations, dmatrix![1e-20]);                 // 0.25 + 0.5 - 1 < 0
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn floor(mut self, floor: f64) -> Self {
        self.0.floor = floor;
        self
    }

    /// Keeps the atoms as they were given: what remains are the activations of new data.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Signed, Snmf, SnmfInit, Stop};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![3.0, 6.0; -3.0, -6.0])?;
    /// let init = SnmfInit { atoms: Some((dmatrix![0.5; 0.0], dmatrix![0.0; 0.5])), activations: None };
    /// let fit = Snmf::builder(1).freeze_atoms().build()?.fit(&v, &init, &Stop::default(), &mut rng)?;
    /// assert_eq!(fit.state.atoms(), dmatrix![0.5; -0.5]);
    /// assert!((fit.state.activations - dmatrix![6.0, 12.0]).amax() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_atoms(mut self) -> Self {
        self.0.freeze_atoms = true;
        self
    }

    /// Keeps the activations as they were given.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Signed, Snmf, SnmfInit, Stop};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![3.0, 6.0; -3.0, -6.0])?;
    /// let init = SnmfInit { atoms: None, activations: Some(dmatrix![6.0, 12.0]) };
    /// let fit = Snmf::builder(1).freeze_activations().build()?.fit(&v, &init, &Stop::default(), &mut rng)?;
    /// assert_eq!(fit.state.activations, dmatrix![6.0, 12.0]);
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
    /// [`ParamError`]: no components, no replicates, a floor or a prior outside its range.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{ParamError, Replicates, Snmf};
    /// let none = Snmf::builder(1).replicates(Replicates::Finite(0));
    /// assert_eq!(none.build(), Err(ParamError::NoReplicates));
    /// ```
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
    /// assert_ne!(counts, Snmf::builder(3).build()?);                 // the default is for real data
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

    /// Binds the configuration to data, `F x N`, for [`run`](crate::run) and the accelerations. Cost: one pass over them.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: data that are not whole or too large, a prior of another shape.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Entries, Prior, Signed, Snmf, SnmfError};
    /// let v = Signed::from_matrix(dmatrix![2.0, 4.0; -1.0, -2.0])?;
    /// let prior = Prior { shape: Entries::Each(dmatrix![1.0, 1.0, 2.0]), ..Prior::flat() };
    /// let error = Snmf::builder(1).prior(prior).build()?.on(&v).unwrap_err();
    /// assert_eq!(error, SnmfError::Shape { block: "shape", got: (1, 3), expected: (1, 2) });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a, T: Real>(&'a self, data: &'a Signed<T>) -> Result<SnmfEm<'a, T>, SnmfError> {
        self.prior.check_shape(data.shape(), self.components)?;
        self.replicates.check_data(data, self.real_data)?;
        Ok(SnmfEm {
            config: self,
            data,
            split: Split::of(self.replicates, data),
        })
    }

    /// A start: what `init` gives, the rest drawn.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: a block of the wrong shape or with negative or non-finite values, an empty atom, a frozen block that
    /// is not given, or a datum that the start gives probability 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Signed, Snmf, SnmfError, SnmfInit};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![2.0, 4.0; -1.0, -2.0])?;
    /// let snmf = Snmf::builder(1).build()?;
    /// let state = snmf.init(&v, &SnmfInit::default(), &mut rng)?;
    /// assert!(f64::abs(state.plus.sum() + state.minus.sum() - 1.0) < 1e-12);
    /// let no_minus = SnmfInit { atoms: Some((dmatrix![0.5; 0.5], dmatrix![0.0; 0.0])), activations: None };
    /// assert!(matches!(snmf.init(&v, &no_minus, &mut rng), Err(SnmfError::Support { side: "minus", row: 1, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<T: Real, R: Rng + ?Sized>(
        &self,
        data: &Signed<T>,
        init: &SnmfInit<T>,
        rng: &mut R,
    ) -> Result<SnmfState<T>, SnmfError> {
        if self.freeze_atoms && init.atoms.is_none() {
            return Err(SnmfError::FixedWithoutValue { block: "atoms" });
        }
        if self.freeze_activations && init.activations.is_none() {
            return Err(SnmfError::FixedWithoutValue {
                block: "activations",
            });
        }
        init.state(data, self.components, rng)
    }

    /// Fits the model: [`init`](Self::init), then iterations until `stop` says so.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on) and [`init`](Self::init); a stop rule that means nothing; factors that leave the numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Signed, Snmf, SnmfInit, Stop};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![2.0, 4.0; -1.0, f64::NAN])?;    // one cell is hidden
    /// let stop = Stop { tol: 1e-9, ..Stop::default() };
    /// let fit = Snmf::builder(1).build()?.fit(&v, &SnmfInit::default(), &stop, &mut rng)?;
    /// assert!((fit.state.reconstruct()[(1, 1)] + 2.0).abs() < 1e-2);      // rank one: -1 · 4 / 2
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<T: Real, R: Rng + ?Sized>(
        &self,
        data: &Signed<T>,
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

/// [`Snmf`] bound to data: one step is one pass over them, `O(F N K)`.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Carried, Momentum, Signed, Snmf, SnmfInit, Stop, run};
/// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// # let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let v = Signed::from_matrix(dmatrix![2.0, 4.0, -3.0; -1.0, -2.0, 5.0])?;
/// let snmf = Snmf::builder(2).build()?;
/// let start = snmf.init(&v, &SnmfInit::default(), &mut rng)?;
/// let stop = Stop { max_iter: 20, tol: 0.0, ..Stop::default() };
/// let plain = run(&snmf.on(&v)?, start.clone(), &stop, ())?;
/// let fast = run(&Momentum(snmf.on(&v)?), Carried::new(start), &stop, ())?;
/// assert!(fast.objective > plain.objective);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SnmfEm<'a, T> {
    config: &'a Snmf,
    data: &'a Signed<T>,
    split: Split,
}

impl<T: Real> SnmfEm<'_, T> {
    /// `Lfit` in nats, without the prior: the log-likelihood over `M` `[SKELLAM eq. 27]`, or minus the divergence in the limit
    /// `[SKELLAM eq. 30]`. Hidden cells add nothing. One pass over the data.
    ///
    /// # Panics
    ///
    /// If the factors have another shape than the data need.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Replicates, Signed, Snmf, SnmfState};
    /// let v = Signed::from_matrix(dmatrix![4.0])?;
    /// let state = SnmfState { plus: dmatrix![1.0], minus: dmatrix![0.0], activations: dmatrix![1.0] };
    /// let (limit, counts) = (Snmf::builder(1), Snmf::builder(1).replicates(Replicates::One));
    /// let divergence = 4.0 * 4f64.ln() - 3.0;                             // D(4 | 1, 0) = 4 ln 4 + 1 - 4
    /// assert!((limit.build()?.on(&v)?.log_fit(&state) + divergence).abs() < 1e-12);
    /// assert!((counts.build()?.on(&v)?.log_fit(&state) + 1.0 + 24f64.ln()).abs() < 1e-12);    // e⁻¹ / 4!
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn log_fit(&self, state: &SnmfState<T>) -> f64 {
        let wanted = SignedWanted {
            left: false,
            right: false,
            value: true,
        };
        self.data.pass(&state.model(), &self.split, wanted).value
    }

    /// Refuses factors of other sizes than the data's, and values that are no rates.
    fn check(&self, state: &SnmfState<T>) -> Result<(), SnmfError> {
        let ((f, n), k) = (self.data.shape(), self.config.components);
        check_factor("plus", &state.plus, (f, k))?;
        check_factor("minus", &state.minus, (f, k))?;
        check_factor("activations", &state.activations, (k, n))
    }
}

/// `x <- max(floor, x s + c - 1)`; whether all are finite.
fn multiply<T: Real>(
    x: &mut DMatrix<T>,
    s: &DMatrix<T>,
    floor: T,
    c: &Entries,
    axis: Axis,
) -> bool {
    x.component_mul_assign(s);
    let mut finite = true;
    c.for_each(x.as_mut_slice(), axis, |x, c| {
        let new = *x + T::lit(c - 1.0);
        finite &= new.is_finite();
        *x = if new > floor { new } else { floor };
    });
    finite
}

impl<T: Real> Algorithm for SnmfEm<'_, T> {
    type State = SnmfState<T>;
    type Error = SnmfError;

    fn step(&self, state: &mut SnmfState<T>, measure: bool) -> Result<Option<f64>, SnmfError> {
        self.check(state)?;
        let config = self.config;
        let wanted = SignedWanted {
            left: !config.freeze_atoms,
            right: !config.freeze_activations,
            value: measure,
        };
        let sums = self.data.pass(&state.model(), &self.split, wanted);
        let before = measure.then(|| sums.value + config.prior.ln_density(state));
        let floor = T::lit(config.floor);
        // A step that fails leaves the state as it was.
        let mut next = state.clone();
        if wanted.left {
            // [SKELLAM 5] T± <- norm(T± ∘ G± Hᵀ + α± - 1), both sides together
            let axis = Axis::Columns(next.plus.nrows());
            let finite = multiply(&mut next.plus, &sums.plus, floor, &config.prior.plus, axis)
                & multiply(
                    &mut next.minus,
                    &sums.minus,
                    floor,
                    &config.prior.minus,
                    axis,
                );
            if !finite {
                return Err(SnmfError::NotFinite { block: "atoms" });
            }
            if normalise_atoms(&mut next.plus, &mut next.minus).is_some() {
                // An atom that nothing is left of keeps its value.
                for k in 0..next.plus.ncols() {
                    let [plus, minus] = [&next.plus, &next.minus].map(|m| m.column(k).amax());
                    if plus.max(minus) <= T::zero() {
                        next.plus.set_column(k, &state.plus.column(k));
                        next.minus.set_column(k, &state.minus.column(k));
                    }
                }
            }
        }
        if wanted.right {
            // [SKELLAM 5] H <- (H ∘ (T⁺ᵀ G⁺ + T⁻ᵀ G⁻) + a - 1) / (1 + b)
            let h = &mut next.activations;
            let axis = Axis::Rows(h.nrows());
            if !multiply(h, &sums.right, floor, &config.prior.shape, axis) {
                return Err(SnmfError::NotFinite {
                    block: "activations",
                });
            }
            match &config.prior.rate {
                Entries::All(0.0) => {}
                rate => rate.for_each(h.as_mut_slice(), axis, |x, b| *x /= T::lit(1.0 + b)),
            }
        }
        *state = next;
        Ok(before)
    }

    /// `Lfit + ln p(T, H)`.
    fn objective(&self, state: &SnmfState<T>) -> Result<f64, SnmfError> {
        self.check(state)?;
        // [SKELLAM eq. 26]
        Ok(self.log_fit(state) + self.config.prior.ln_density(state))
    }
}

/// Atoms, both sides of each together, and activations as one list of numbers.
pub(crate) fn pack<T: Real>(blocks: [&DMatrix<T>; 3]) -> Vec<f64> {
    let [plus, minus, activations] = blocks;
    let atoms = stack(plus, minus);
    let values = atoms.iter().chain(activations);
    values.map(|x| x.to_f64()).collect()
}

/// Fills blocks from a list of numbers and the one to fall back on; those that are frozen stay.
pub(crate) fn unpack<T: Real>(
    blocks: [&mut DMatrix<T>; 3],
    [freeze_atoms, freeze_activations]: [bool; 2],
    flat: &[f64],
    fallback: &[f64],
    choose: impl Fn(f64, f64) -> f64,
) {
    let [plus, minus, activations] = blocks;
    let mut atoms = stack(plus, minus);
    let (own, rest) = flat.split_at(atoms.len());
    let (own_fallback, rest_fallback) = fallback.split_at(atoms.len());
    let fill = |block: &mut DMatrix<T>, flat: &[f64], fallback: &[f64]| {
        let pairs = flat.iter().zip(fallback);
        let cells = block.as_mut_slice().iter_mut().zip(pairs);
        cells.for_each(|(x, (&new, &old))| *x = T::lit(choose(new, old)));
    };
    if !freeze_atoms {
        fill(&mut atoms, own, own_fallback);
        [*plus, *minus] = split(&atoms);
    }
    if !freeze_activations {
        fill(activations, rest, rest_fallback);
    }
}

impl<T: Real> Accelerate for SnmfEm<'_, T> {
    fn pack(&self, state: &SnmfState<T>) -> Vec<f64> {
        pack([&state.plus, &state.minus, &state.activations])
    }

    fn unpack(&self, template: &SnmfState<T>, flat: &[f64], fallback: &[f64]) -> SnmfState<T> {
        let mut state = template.clone();
        let frozen = [self.config.freeze_atoms, self.config.freeze_activations];
        let blocks = [&mut state.plus, &mut state.minus, &mut state.activations];
        unpack(blocks, frozen, flat, fallback, |new, old| {
            if new > 0.0 { new } else { 0.1 * old }
        });
        if !self.config.freeze_atoms {
            normalise_atoms(&mut state.plus, &mut state.minus);
        }
        state
    }
}
