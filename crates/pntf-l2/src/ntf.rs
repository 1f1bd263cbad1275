//! Unconstrained baselines: non-negative factorization under squared error, nothing but non-negativity asked for.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{Algorithm, Direction, Outcome, Stop};
use plca_tensor::arrange::Products;
use plca_tensor::{Cp, Data, Factor, Real};
use rand::Rng;

use crate::init::{check_block, check_shapes};
use crate::sweep::{contracted, descend, gram, hadamard, widen};
use crate::{ParamError, PntfError};

/// How a factor is updated `[PNTF 5]`.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Algorithm, Ntf, NtfState, NtfUpdate};
/// let g = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
/// let ntf = Ntf::builder(1).update(NtfUpdate::Multiplicative).build()?;
/// let mut state = NtfState { factors: vec![dmatrix![0.0; 1.0], dmatrix![1.0]] };
/// ntf.on(&g)?.step(&mut state, false)?;
/// assert_eq!(state.factors[0], dmatrix![0.0; 1.0]);                   // the 0 stays
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum NtfUpdate {
    /// Multiplicative updates of Lee and Seung; entries that are 0 stay 0.
    #[default]
    Multiplicative,
    /// Column after column to its optimum (hierarchical alternating least squares): fewer iterations.
    Hals,
}

/// A checked configuration of `min ‖G - P‖²` with `P[x] = Σ_z Π_j U_j[x_j, z]` and `U_j >= 0`; see [`Ntf::builder`].
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Algorithm, Ntf, NtfState};
/// let g = DenseTensor::new(vec![2, 2], vec![2.0, 4.0, 1.0, 2.0], Order::RowMajor)?;
/// let state = NtfState { factors: vec![dmatrix![2.0; 1.0], dmatrix![1.0; 1.0]] };
/// assert_eq!(Ntf::builder(1).build()?.on(&g)?.objective(&state)?, 5.0);       // (4 - 2)² + (2 - 1)²
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ntf {
    components: usize,
    update: NtfUpdate,
    frozen: Vec<usize>,
}

/// Settings of [`Ntf`], not yet checked.
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::Ntf;
/// let g = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
/// let ntf = Ntf::builder(1).freeze_factor(5).build()?;                // known to be wrong once there are data
/// assert_eq!(ntf.on(&g).unwrap_err().to_string(), "mode 5 does not exist, the data have order 2");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct NtfBuilder(Ntf);

impl NtfBuilder {
    /// Form of the update (default: multiplicative).
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Algorithm, Ntf, NtfState, NtfUpdate};
    /// let g = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
    /// let ntf = Ntf::builder(1).update(NtfUpdate::Hals).build()?;
    /// let mut state = NtfState { factors: vec![dmatrix![0.0; 1.0], dmatrix![1.0]] };
    /// ntf.on(&g)?.step(&mut state, false)?;
    /// assert_eq!(state.factors[0], dmatrix![3.0; 1.0]);                   // a multiplicative step keeps the 0
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update(mut self, update: NtfUpdate) -> Self {
        self.0.update = update;
        self
    }

    /// Keeps the factor of mode `j` as it was given.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Algorithm, Ntf, NtfState, NtfUpdate};
    /// let g = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
    /// let ntf = Ntf::builder(1).update(NtfUpdate::Hals).freeze_factor(0).build()?;
    /// let mut state = NtfState { factors: vec![dmatrix![2.0; 0.0], dmatrix![1.0]] };
    /// ntf.on(&g)?.step(&mut state, false)?;
    /// assert_eq!(state.factors, [dmatrix![2.0; 0.0], dmatrix![1.5]]);     // least squares in the other mode
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_factor(mut self, j: usize) -> Self {
        self.0.frozen.push(j);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError::NoComponents`] if `K` is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use pntf_l2::{Ntf, ParamError};
    /// assert_eq!(Ntf::builder(0).build().unwrap_err(), ParamError::NoComponents);
    /// ```
    pub fn build(self) -> Result<Ntf, ParamError> {
        if self.0.components == 0 {
            return Err(ParamError::NoComponents);
        }
        Ok(self.0)
    }
}

/// The factors, in the units of the data together; never renormalised.
///
/// ```
/// use nalgebra::dmatrix;
/// let state = pntf_l2::NtfState { factors: vec![dmatrix![2.0; 1.0], dmatrix![3.0; 0.5]] };
/// assert_eq!(state.with_model(|p| p.cell(&[0, 1])), 1.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
pub struct NtfState<T: Real> {
    /// `U_j`, `I_j x K`.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrices")
    )]
    pub factors: Vec<DMatrix<T>>,
}

impl<T: Real> NtfState<T> {
    /// Lends the factors as a model, `P[x] = Σ_z Π_j U_j[x_j, z]`, and returns what `f` makes of it.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// let state = pntf_l2::NtfState { factors: vec![dmatrix![2.0, 1.0], dmatrix![3.0, 4.0]] };
    /// assert_eq!(state.with_model(|p| p.cell(&[0, 0])), 10.0);            // 2·3 + 1·4
    /// ```
    pub fn with_model<O>(&self, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        let factors: Vec<_> = self.factors.iter().map(Factor::Columns).collect();
        f(&Cp {
            weights: None,
            factors: &factors,
        })
    }
}

impl Ntf {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// use pntf_l2::{Ntf, NtfUpdate};
    /// assert!(Ntf::builder(4).update(NtfUpdate::Hals).build().is_ok() && Ntf::builder(0).build().is_err());
    /// ```
    pub fn builder(components: usize) -> NtfBuilder {
        NtfBuilder(Self {
            components,
            update: NtfUpdate::default(),
            frozen: Vec::new(),
        })
    }

    /// Binds the configuration to data.
    ///
    /// # Errors
    ///
    /// [`PntfError`]: negative data with multiplicative updates, hidden cells, data whose squares overflow, a frozen mode that does not exist.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Ntf, NtfUpdate, PntfError};
    /// let g = DenseTensor::new(vec![2, 1], vec![3.0, -1.0], Order::RowMajor)?;
    /// assert_eq!(Ntf::builder(1).build()?.on(&g).unwrap_err(), PntfError::Negative);
    /// assert!(Ntf::builder(1).update(NtfUpdate::Hals).build()?.on(&g).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a, T: Real>(&'a self, data: &'a dyn Data<T>) -> Result<NtfSweep<'a, T>, PntfError> {
        let data = Products::new(data)?;
        if self.update == NtfUpdate::Multiplicative && data.has_negative() {
            return Err(PntfError::Negative);
        }
        if !data.is_complete() {
            return Err(PntfError::Incomplete("the unconstrained factorization"));
        }
        let scale = 1.0 / data.scale();
        let norm = data.squared_norm() * scale * scale;
        if !norm.is_finite() {
            return Err(PntfError::Overflow);
        }
        let order = data.shape().len();
        if let Some(&mode) = self.frozen.iter().find(|&&m| m >= order) {
            return Err(PntfError::Mode { mode, order });
        }
        Ok(NtfSweep {
            config: self,
            data,
            scale,
            norm,
        })
    }

    /// A start: the given factors (`init[j]`), the others uniform on (0.5, 1.5), scaled so that the model has the mass of the data.
    ///
    /// # Errors
    ///
    /// [`PntfError`]: a given factor of the wrong shape or with values that are not finite and `>= 0`, a frozen one not given; as
    /// [`on`](Self::on).
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::Ntf;
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let g = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
    /// let state = Ntf::builder(1).build()?.init(&g, &[Some(dmatrix![2.0; 0.0])], &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert_eq!(state.factors[0], dmatrix![2.0; 0.0]);
    /// assert!(state.factors[1].min() > 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<T: Real, R: Rng + ?Sized>(
        &self,
        data: &dyn Data<T>,
        init: &[Option<DMatrix<T>>],
        rng: &mut R,
    ) -> Result<NtfState<T>, PntfError> {
        self.start(&self.on(data)?.data, init, rng)
    }

    fn start<T: Real, R: Rng + ?Sized>(
        &self,
        data: &Products<'_, T>,
        init: &[Option<DMatrix<T>>],
        rng: &mut R,
    ) -> Result<NtfState<T>, PntfError> {
        let (shape, k) = (data.shape(), self.components);
        if init.len() > shape.len() {
            return Err(PntfError::Factors {
                expected: shape.len(),
                got: init.len(),
            });
        }
        let cells: f64 = shape.iter().map(|&n| n as f64).product();
        let mean = (data.total() / data.scale() / cells).abs();
        let level = (mean / k as f64).powf(1.0 / shape.len() as f64);
        let mut factors = Vec::with_capacity(shape.len());
        for (j, &rows) in shape.iter().enumerate() {
            let drawn =
                DMatrix::from_fn(rows, k, |_, _| T::lit(level * (0.5 + random::uniform(rng))));
            let block = format!("factor_{j}");
            factors.push(match init.get(j).and_then(Option::as_ref) {
                Some(f) => {
                    check_block(&block, f, (rows, k), false)?;
                    f.clone()
                }
                None if self.frozen.contains(&j) => {
                    return Err(PntfError::FixedWithoutValue { block });
                }
                None => drawn,
            });
        }
        Ok(NtfState { factors })
    }

    /// Draws a start and sweeps until `stop` says so. One iteration updates the modes in order, each from the newest others.
    ///
    /// # Errors
    ///
    /// As [`init`](Self::init).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Ntf, NtfUpdate, Stop};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let g = DenseTensor::new(vec![2, 2], vec![2.0, 4.0, 1.0, 2.0], Order::RowMajor)?;
    /// let ntf = Ntf::builder(1).update(NtfUpdate::Hals).build()?;
    /// let fit = ntf.fit(&g, &[], &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!(fit.objective < 1e-12);                                     // rank 1: an exact fit
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<T: Real, R: Rng + ?Sized>(
        &self,
        data: &dyn Data<T>,
        init: &[Option<DMatrix<T>>],
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<NtfState<T>>, PntfError> {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = self.start(&algorithm.data, init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}

/// [`Ntf`] bound to data: one sweep over the modes and its objective `‖G - P‖²`, in the units of the data squared.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Algorithm, Ntf, NtfState};
/// let g = DenseTensor::new(vec![2, 2], vec![2.0, 4.0, 1.0, 2.0], Order::RowMajor)?;
/// let ntf = Ntf::builder(1).build()?;
/// let mut state = NtfState { factors: vec![dmatrix![2.0; 1.0], dmatrix![1.0; 1.0]] };
/// let sweep = ntf.on(&g)?;
/// assert_eq!(sweep.step(&mut state, true)?, Some(5.0));               // the objective before the step
/// assert!(sweep.objective(&state)? < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NtfSweep<'a, T: Real> {
    config: &'a Ntf,
    data: Products<'a, T>,
    /// Undoes the scale in which the data are held.
    scale: f64,
    norm: f64,
}

impl<T: Real> NtfSweep<'_, T> {
    /// Refuses factors that do not go with the data.
    fn check(&self, state: &NtfState<T>) -> Result<(), PntfError> {
        let (shape, k) = (self.data.shape(), self.config.components);
        check_shapes(state.factors.iter(), shape, k)
    }

    /// `‖G - P‖²` from the product of all Grams and the contracted data, or cell by cell where too much cancels.
    fn squared_error(&self, state: &NtfState<T>, h: &DMatrix<f64>, f: &[f64]) -> f64 {
        let value = self.norm - 2.0 * f.iter().sum::<f64>() + h.sum();
        if value > 4.5e5 * T::EPSILON.to_f64() * self.norm {
            return value;
        }
        let ones = vec![T::one(); self.config.components];
        self.data
            .completed_mttkrp(self.scale, &ones, &state.factors, 0)
            .1
    }
}

impl<T: Real> Algorithm for NtfSweep<'_, T> {
    type State = NtfState<T>;
    type Error = PntfError;

    fn step(&self, state: &mut NtfState<T>, measure: bool) -> Result<Option<f64>, PntfError> {
        self.check(state)?;
        let mut memo = self.data.memo(&state.factors);
        let mut grams: Vec<DMatrix<f64>> = state.factors.iter().map(|f| gram(&widen(f))).collect();
        let ones = vec![1.0; self.config.components];
        let mut value = None;
        for mode in 0..state.factors.len() {
            let frozen = self.config.frozen.contains(&mode);
            if frozen && !(measure && mode == 0) {
                continue;
            }
            let m = memo.product(mode) * self.scale;
            let gamma = hadamard(&grams, Some(mode));
            let mut u = widen(&state.factors[mode]);
            if measure && mode == 0 {
                let h = gamma.component_mul(&grams[mode]);
                value = Some(self.squared_error(state, &h, &contracted(&m, &u)));
            }
            if frozen {
                continue;
            }
            match self.config.update {
                NtfUpdate::Multiplicative => {
                    let below = &u * &gamma;
                    // [PNTF 5] U <- U ∘ M / (U Γ), 0/0 = 0
                    u.zip_zip_apply(&m, &below, |u, m, b| {
                        *u = if b > 0.0 { *u * m / b } else { 0.0 }
                    });
                }
                NtfUpdate::Hals => descend(&mut u, &m, &gamma, &ones, |_, b, rho| {
                    if rho > 0.0 {
                        b.iter_mut().for_each(|b| *b = (*b / rho).max(0.0));
                    }
                    rho > 0.0
                }),
            }
            state.factors[mode] = u.map(T::lit);
            if mode + 1 < state.factors.len() {
                memo.set(mode, &state.factors[mode]);
            }
            grams[mode] = gram(&widen(&state.factors[mode]));
        }
        Ok(value)
    }

    fn objective(&self, state: &NtfState<T>) -> Result<f64, PntfError> {
        self.check(state)?;
        let grams: Vec<DMatrix<f64>> = state.factors.iter().map(|f| gram(&widen(f))).collect();
        let m = self.data.mttkrp(&state.factors, 0) * self.scale;
        let f = contracted(&m, &widen(&state.factors[0]));
        Ok(self.squared_error(state, &hadamard(&grams, None), &f))
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }
}
