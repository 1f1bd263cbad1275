//! Semi-non-negative factorization in squared error: the baseline.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{Algorithm, Direction, Outcome, Stop};
use plca_tensor::{CompensatedSum, Real};
use rand::Rng;

use crate::init::{check_block, check_factor};
use crate::{ParamError, SnmfError};

/// `min ‖V - W H‖²` with `H ≥ 0` and `W` of any sign, by the multiplicative updates of Ding, Li, Jordan (2010).
///
/// ```text
/// H <- H √(((WᵀV)⁺ + (WᵀW)⁻ H) / ((WᵀV)⁻ + (WᵀW)⁺ H)),      W = V Hᵀ (H Hᵀ)⁻¹
/// ```
///
/// `[SKELLAM 12]`. The error never grows; where it gets stuck depends on the start.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Ding, Stop};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = dmatrix![2.0, 4.0; -1.0, -2.0];
/// let fit = Ding::new(1)?.fit(&v, &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!((fit.state.w * fit.state.h - v).amax() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Ding {
    components: usize,
}

/// The factors; `W H` is the expected data.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::Ding;
/// let state = Ding::new(1)?.on(&dmatrix![2.0, 4.0; -1.0, -2.0])?.start(dmatrix![1.0, 2.0])?;
/// assert!((&state.w * &state.h - dmatrix![2.0, 4.0; -1.0, -2.0]).amax() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
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
pub struct DingState<T: Real> {
    /// `W`, `F x K`, of any sign; a function of `H`: `V Hᵀ (H Hᵀ)⁻¹`.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub w: DMatrix<T>,
    /// `H`, `K x N`.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub h: DMatrix<T>,
}

impl Ding {
    /// With `components` components.
    ///
    /// # Errors
    ///
    /// [`ParamError::NoComponents`].
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Ding, ParamError};
    /// assert_eq!(Ding::new(0), Err(ParamError::NoComponents));
    /// ```
    pub fn new(components: usize) -> Result<Self, ParamError> {
        if components == 0 {
            return Err(ParamError::NoComponents);
        }
        Ok(Self { components })
    }

    /// Binds the method to a complete matrix, `F x N`.
    ///
    /// # Errors
    ///
    /// [`SnmfError::Value`] for the first value that is no finite number, [`SnmfError::Shape`] for an empty matrix.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Ding, SnmfError};
    /// let hidden = dmatrix![1.0, f64::NAN];
    /// assert!(matches!(Ding::new(1)?.on(&hidden), Err(SnmfError::Value { row: 0, column: 1, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a, T: Real>(&self, data: &'a DMatrix<T>) -> Result<DingSteps<'a, T>, SnmfError> {
        if data.is_empty() {
            return Err(SnmfError::Shape {
                block: "data",
                got: data.shape(),
                expected: (1, 1),
            });
        }
        let ok = |x: T| x.is_finite();
        check_block("data", data, data.shape(), "a finite number", ok)?;
        Ok(DingSteps {
            data,
            components: self.components,
        })
    }

    /// Fits from `H` uniform on (0, 1).
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on); a stop rule that means nothing; factors that leave the numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Ding, Stop};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = dmatrix![2.0, 4.0, -3.0; -1.0, -2.0, 5.0];
    /// let fit = Ding::new(1)?.fit(&v, &Stop::default(), &mut rng)?;
    /// let error: f64 = (&v - &fit.state.w * &fit.state.h).norm_squared();
    /// assert!((fit.objective - error).abs() < 1e-9);
    /// assert!(fit.objective <= v.norm_squared());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<T: Real, R: Rng + ?Sized>(
        &self,
        data: &DMatrix<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<DingState<T>>, SnmfError> {
        stop.check()?;
        let steps = self.on(data)?;
        let state = steps.random(rng)?;
        plca_fit::run(&steps, state, stop, ())
    }
}

/// [`Ding`] bound to data; its objective `‖V - W H‖²` falls.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Algorithm, Ding};
/// let v = dmatrix![2.0, 4.0, -3.0; -1.0, -2.0, 5.0];
/// let steps = Ding::new(1)?.on(&v)?;
/// let mut state = steps.start(dmatrix![1.0, 1.0, 1.0])?;
/// let before = steps.objective(&state)?;
/// steps.step(&mut state, false)?;
/// assert!(steps.objective(&state)? < before && state.h.iter().all(|&h| h >= 0.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DingSteps<'a, T> {
    data: &'a DMatrix<T>,
    components: usize,
}

impl<T: Real> DingSteps<'_, T> {
    /// A start from `H` uniform on (0, 1).
    ///
    /// # Errors
    ///
    /// None that data of this method give.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::Ding;
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = dmatrix![2.0, 4.0, -3.0; -1.0, -2.0, 5.0];
    /// let start = Ding::new(2)?.on(&v)?.random(&mut rng)?;
    /// assert!(start.h.iter().all(|&h| 0.0 < h && h < 1.0));
    /// assert!(((&v - &start.w * &start.h) * start.h.transpose()).amax() < 1e-9);             // W is optimal
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn random<R: Rng + ?Sized>(&self, rng: &mut R) -> Result<DingState<T>, SnmfError> {
        let shape = (self.components, self.data.ncols());
        let draw = |_, _| T::lit(random::uniform(rng));
        self.start(DMatrix::from_fn(shape.0, shape.1, draw))
    }

    /// The state of given activations, `K x N`, with the best `W` for them.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: a wrong shape, negative or non-finite values.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::Ding;
    /// let start = Ding::new(1)?.on(&dmatrix![2.0, 4.0; -1.0, -2.0])?.start(dmatrix![1.0, 2.0])?;
    /// assert!((start.w - dmatrix![2.0; -1.0]).amax() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(&self, h: DMatrix<T>) -> Result<DingState<T>, SnmfError> {
        check_factor("h", &h, (self.components, self.data.ncols()))?;
        let w = left(self.data, &h)?;
        Ok(DingState { w, h })
    }

    /// Refuses factors of other sizes than the data's.
    fn check(&self, state: &DingState<T>) -> Result<(), SnmfError> {
        let ((f, n), k) = (self.data.shape(), self.components);
        let ok = |x: T| x.is_finite();
        check_block("w", &state.w, (f, k), "a finite number", ok)?;
        check_factor("h", &state.h, (k, n))
    }
}

/// `V Hᵀ (H Hᵀ)⁻¹ = V H⁺`, the pseudo-inverse where components depend on each other. From `Hᵀ = Q R` it is
/// `V Q (Rᵀ)⁺`: `H Hᵀ` would square the condition of `H`, and half of the digits would be lost.
pub(crate) fn left<T: Real>(data: &DMatrix<T>, h: &DMatrix<T>) -> Result<DMatrix<T>, SnmfError> {
    let cutoff = h.amax() * T::lit(h.len() as f64) * T::EPSILON;
    if !cutoff.is_finite() {
        return Err(SnmfError::NotFinite { block: "h" });
    }
    let (q, r) = h.transpose().qr().unpack();
    let inverse = r.transpose().pseudo_inverse(cutoff);
    let w = inverse.map(|inverse| data * q * inverse);
    match w {
        Ok(w) if w.iter().all(|x| x.is_finite()) => Ok(w),
        _ => Err(SnmfError::NotFinite { block: "w" }),
    }
}

/// The next activations under `W`.
pub(crate) fn multiplied<T: Real>(
    data: &DMatrix<T>,
    w: &DMatrix<T>,
    old: &DMatrix<T>,
) -> DMatrix<T> {
    let positive = |m: &DMatrix<T>| m.map(|x| if x > T::zero() { x } else { T::zero() });
    let data = w.transpose() * data;
    let gram = w.transpose() * w;
    // [SKELLAM 12] H <- H √(((WᵀV)⁺ + (WᵀW)⁻ H) / ((WᵀV)⁻ + (WᵀW)⁺ H))
    let up = positive(&data) + positive(&-&gram) * old;
    let down = positive(&-&data) + positive(&gram) * old;
    let mut h = old.clone();
    for ((h, &up), &down) in h.iter_mut().zip(&up).zip(&down) {
        // Roots first: where h has vanished the quotient may be no number.
        *h = if down > T::zero() {
            *h * (up.sqrt() / down.sqrt())
        } else {
            T::zero()
        };
    }
    h
}

/// `‖V - W H‖²`.
pub(crate) fn squared_error<T: Real>(data: &DMatrix<T>, w: &DMatrix<T>, h: &DMatrix<T>) -> f64 {
    let mut sum = CompensatedSum::default();
    for (v, h) in data.column_iter().zip(h.column_iter()) {
        sum += (v - w * h).norm_squared().to_f64();
    }
    sum.value()
}

impl<T: Real> Algorithm for DingSteps<'_, T> {
    type State = DingState<T>;
    type Error = SnmfError;

    fn step(&self, state: &mut DingState<T>, measure: bool) -> Result<Option<f64>, SnmfError> {
        self.check(state)?;
        let before = match measure {
            true => Some(self.objective(state)?),
            false => None,
        };
        let h = multiplied(self.data, &state.w, &state.h);
        let w = left(self.data, &h)?;
        *state = DingState { w, h };
        Ok(before)
    }

    /// `‖V - W H‖²`.
    fn objective(&self, state: &DingState<T>) -> Result<f64, SnmfError> {
        self.check(state)?;
        Ok(squared_error(self.data, &state.w, &state.h))
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }
}
