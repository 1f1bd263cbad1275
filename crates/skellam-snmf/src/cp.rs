//! Tensors of either sign: a sum of rank-one terms whose first factor has two sides.

use nalgebra::{DMatrix, DVector};
use plca_dist::random;
use plca_fit::{Accelerate, Algorithm, Outcome, Stop};
use plca_tensor::arrange::Signed;
use plca_tensor::{Real, SignedModel, SignedWanted};
use rand::Rng;

use crate::init::{check_factor, check_support};
use crate::rule::Split;
use crate::sides::{split, stack};
use crate::state::normalise_atoms;
use crate::{ParamError, Replicates, SnmfError, SnmfInit, SnmfState};

/// `V[f,i,j,…] ~ Σ_k w_k (T⁺[f,k] - T⁻[f,k]) B[i,k] C[j,k] …` by maximum likelihood.
///
/// The data are the tensor unfolded along its signed mode: row `f`, and a column for every index of the other modes, the
/// last of these running fastest. With one other mode this is [`Snmf`](crate::Snmf) with a flat prior. The EM of `[SKELLAM 5]`,
/// in which the counts of the activations are shared out over their factors.
///
/// ```
/// use nalgebra::DMatrix;
/// use skellam_snmf::{Replicates, SignedCp, Signed, Stop};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DMatrix::from_fn(2, 3 * 2, |f, at| (at / 2 + 1) as f64 * (at % 2 + 1) as f64 * [1.0, -2.0][f]);
/// let cp = SignedCp::new(1, Replicates::Limit)?;
/// let fit = cp.fit(&Signed::from_matrix(v.clone())?, &[3, 2], &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!((fit.state.reconstruct() - v).amax() < 1e-2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SignedCp {
    components: usize,
    replicates: Replicates,
}

/// The factors: two sides of the signed mode, weights, and one factor for every other mode.
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// use skellam_snmf::CpState;
/// let state = CpState {
///     plus: dmatrix![0.5; 0.0],
///     minus: dmatrix![0.0; 0.5],
///     weights: dvector![8.0],
///     factors: vec![dmatrix![0.25; 0.75], dmatrix![0.5; 0.5]],
/// };
/// assert_eq!(state.reconstruct().abs().sum(), state.weights.sum());   // all that is normalised
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
pub struct CpState<T: Real> {
    /// `T⁺`, `F x K`.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub plus: DMatrix<T>,
    /// `T⁻`, `F x K`; column `k` of both sides together sums to 1.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub minus: DMatrix<T>,
    /// `w`, `K`, in the units of the data.
    pub weights: DVector<T>,
    /// `B`, `C`, …: one factor for every other mode, its size x `K`, columns sum to 1.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrices")
    )]
    pub factors: Vec<DMatrix<T>>,
}

impl<T: Real> CpState<T> {
    /// `w_k B[i,k] C[j,k] …` as activations, `K` x (product of the other modes), the last mode running fastest.
    ///
    /// # Panics
    ///
    /// If a factor has fewer columns than there are weights.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use skellam_snmf::CpState;
    /// # let state = CpState {
    /// #     plus: dmatrix![0.5; 0.0],
    /// #     minus: dmatrix![0.0; 0.5],
    /// #     weights: dvector![8.0],
    /// #     factors: vec![dmatrix![0.25; 0.75], dmatrix![0.5; 0.5]],
    /// # };
    /// assert_eq!(state.activations(), dmatrix![1.0, 1.0, 3.0, 3.0]);      // 8 · (0.25, 0.75) ⊗ (0.5, 0.5)
    /// ```
    pub fn activations(&self) -> DMatrix<T> {
        let factors: Vec<_> = self.factors.iter().collect();
        activations(self.weights.as_slice(), &factors)
    }

    /// `(T⁺ - T⁻)` times the [`activations`](Self::activations): the expected data, unfolded like these.
    ///
    /// # Panics
    ///
    /// If the factors do not fit together.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use skellam_snmf::CpState;
    /// # let state = CpState {
    /// #     plus: dmatrix![0.5; 0.0],
    /// #     minus: dmatrix![0.0; 0.5],
    /// #     weights: dvector![8.0],
    /// #     factors: vec![dmatrix![0.25; 0.75], dmatrix![0.5; 0.5]],
    /// # };
    /// assert_eq!(state.reconstruct(), dmatrix![0.5, 0.5, 1.5, 1.5; -0.5, -0.5, -1.5, -1.5]);
    /// ```
    pub fn reconstruct(&self) -> DMatrix<T> {
        (&self.plus - &self.minus) * self.activations()
    }

    /// The same as a matrix model.
    fn unfolded(&self) -> SnmfState<T> {
        SnmfState {
            plus: self.plus.clone(),
            minus: self.minus.clone(),
            activations: self.activations(),
        }
    }
}

/// `w_k B[i,k] C[j,k] …`, `K` x (product of the modes), the last mode running fastest.
pub(crate) fn activations<T: Real>(weights: &[T], factors: &[&DMatrix<T>]) -> DMatrix<T> {
    let k = weights.len();
    let mut out = DMatrix::from_column_slice(k, 1, weights);
    for factor in factors {
        let n = factor.nrows();
        out = DMatrix::from_fn(k, out.ncols() * n, |z, at| {
            out[(z, at / n)] * factor[(at % n, z)]
        });
    }
    out
}

impl SignedCp {
    /// With `components` components.
    ///
    /// # Errors
    ///
    /// [`ParamError`] for none, or for no replicates.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{ParamError, Replicates, SignedCp};
    /// assert_eq!(SignedCp::new(0, Replicates::One), Err(ParamError::NoComponents));
    /// assert_eq!(SignedCp::new(1, Replicates::Finite(0)), Err(ParamError::NoReplicates));
    /// ```
    pub fn new(components: usize, replicates: Replicates) -> Result<Self, ParamError> {
        if components == 0 {
            return Err(ParamError::NoComponents);
        }
        replicates.check()?;
        Ok(Self {
            components,
            replicates,
        })
    }

    /// Binds the model to data unfolded along their signed mode; `shape` holds the sizes of the other modes.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: data that are not whole or too large, a shape that has not one index for every column.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::DMatrix;
    /// use skellam_snmf::{Replicates, SignedCp, Signed, SnmfError};
    /// let v = Signed::from_matrix(DMatrix::from_element(2, 3 * 2, -1.0))?;
    /// let cp = SignedCp::new(1, Replicates::One)?;
    /// assert!(cp.on(&v, &[3, 2]).is_ok() && cp.on(&v, &[6]).is_ok());
    /// let error = cp.on(&v, &[4, 2]).unwrap_err();
    /// assert_eq!(error, SnmfError::Shape { block: "unfolded data", got: (2, 6), expected: (2, 8) });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a, T: Real>(
        &'a self,
        data: &'a Signed<T>,
        shape: &'a [usize],
    ) -> Result<CpEm<'a, T>, SnmfError> {
        let (f, n) = data.shape();
        let product = shape.iter().try_fold(1usize, |p, &n| p.checked_mul(n));
        if product != Some(n) || shape.is_empty() {
            return Err(SnmfError::Shape {
                block: "unfolded data",
                got: (f, n),
                expected: (f, product.unwrap_or(usize::MAX)),
            });
        }
        self.replicates.check_data(data, false)?;
        Ok(CpEm {
            config: self,
            data,
            shape,
            split: Split::of(self.replicates, data),
        })
    }

    /// Fits from a random start.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on); a stop rule that means nothing; factors that leave the numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Replicates, SignedCp, Signed, Stop};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = dmatrix![2.0, 4.0, 1.0, 2.0; -4.0, -8.0, -2.0, -4.0];       // rank one in every mode
    /// let stop = Stop { tol: 1e-9, ..Stop::default() };
    /// let fit = SignedCp::new(1, Replicates::Limit)?.fit(&Signed::from_matrix(v)?, &[2, 2], &stop, &mut rng)?;
    /// assert!((&fit.state.factors[1] - dmatrix![1.0 / 3.0; 2.0 / 3.0]).amax() < 1e-2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<T: Real, R: Rng + ?Sized>(
        &self,
        data: &Signed<T>,
        shape: &[usize],
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<CpState<T>>, SnmfError> {
        stop.check()?;
        let algorithm = self.on(data, shape)?;
        let state = algorithm.random(rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}

/// [`SignedCp`] bound to data: one step is one pass over them. Its objective is the log-likelihood over `M` `[SKELLAM eq. 27]`,
/// or minus the divergence `[SKELLAM eq. 30]`.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Algorithm, Replicates, SignedCp, Signed};
/// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// # let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let v = Signed::from_matrix(dmatrix![2.0, 4.0, 1.0, 2.0; -4.0, -8.0, -2.0, 3.0])?;
/// let cp = SignedCp::new(1, Replicates::Limit)?;
/// let em = cp.on(&v, &[2, 2])?;
/// let mut state = em.random(&mut rng)?;
/// let before = em.step(&mut state, true)?;                            // of the state it was given
/// assert!(Some(em.objective(&state)?) > before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CpEm<'a, T> {
    config: &'a SignedCp,
    data: &'a Signed<T>,
    shape: &'a [usize],
    split: Split,
}

impl<T: Real> CpEm<'_, T> {
    /// A random start: factors uniform on the simplex, weights that explain the mean absolute value of the data.
    ///
    /// # Errors
    ///
    /// None that data of this model give.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Replicates, SignedCp, Signed};
    /// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// # let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let v = Signed::from_matrix(dmatrix![2.0, 4.0, 1.0, 2.0; -4.0, -8.0, -2.0, 3.0])?;
    /// let cp = SignedCp::new(1, Replicates::Limit)?;
    /// let start = cp.on(&v, &[2, 2])?.random(&mut rng)?;
    /// assert!(start.factors.iter().all(|f| f.shape() == (2, 1) && f64::abs(f.sum() - 1.0) < 1e-12));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn random<R: Rng + ?Sized>(&self, rng: &mut R) -> Result<CpState<T>, SnmfError> {
        let k = self.config.components;
        let start = SnmfInit::default().state(self.data, k, rng)?;
        let mut factors = Vec::new();
        for &n in self.shape {
            let mut factor = DMatrix::from_fn(n, k, |_, _| T::lit(random::exponential(rng)));
            plca_tensor::normalise_columns(&mut factor);
            factors.push(factor);
        }
        Ok(CpState {
            weights: start.activations.column_sum(),
            plus: start.plus,
            minus: start.minus,
            factors,
        })
    }

    /// Checks a start and normalises its factors; the weights stay as they are.
    ///
    /// # Errors
    ///
    /// [`SnmfError`]: a block of the wrong shape or with negative or non-finite values, an empty atom, a datum that the
    /// start gives probability 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::{dmatrix, dvector};
    /// use skellam_snmf::{CpState, Replicates, SignedCp, Signed};
    /// let v = Signed::from_matrix(dmatrix![2.0, 4.0, 1.0, 2.0; -4.0, -8.0, -2.0, 3.0])?;
    /// let cp = SignedCp::new(1, Replicates::Limit)?;
    /// let factors = vec![dmatrix![1.0; 3.0], dmatrix![2.0; 2.0]];
    /// let ones = dmatrix![1.0; 1.0];
    /// let given = CpState { plus: ones.clone(), minus: ones, weights: dvector![20.0], factors };
    /// let start = cp.on(&v, &[2, 2])?.start(given)?;
    /// assert_eq!((start.plus, start.weights), (dmatrix![0.25; 0.25], dvector![20.0]));
    /// assert_eq!(start.factors, [dmatrix![0.25; 0.75], dmatrix![0.5; 0.5]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(&self, mut state: CpState<T>) -> Result<CpState<T>, SnmfError> {
        self.check(&state)?;
        for factor in &mut state.factors {
            let sums = plca_tensor::normalise_columns(factor);
            if let Some(component) = sums.iter().position(|&s| s <= T::zero()) {
                return Err(SnmfError::ZeroAtom { component });
            }
        }
        if let Some(component) = normalise_atoms(&mut state.plus, &mut state.minus) {
            return Err(SnmfError::ZeroAtom { component });
        }
        check_support(self.data, &state.unfolded())?;
        Ok(state)
    }

    /// Refuses blocks of other sizes than the data's, and values that are no rates.
    fn check(&self, state: &CpState<T>) -> Result<(), SnmfError> {
        let (f, k) = (self.data.shape().0, self.config.components);
        check_factor("plus", &state.plus, (f, k))?;
        check_factor("minus", &state.minus, (f, k))?;
        let weights = DMatrix::from_column_slice(state.weights.len(), 1, state.weights.as_slice());
        check_factor("weights", &weights, (k, 1))?;
        if state.factors.len() != self.shape.len() {
            return Err(SnmfError::Shape {
                block: "list of factors",
                got: (state.factors.len(), 1),
                expected: (self.shape.len(), 1),
            });
        }
        let mut factors = state.factors.iter().zip(self.shape);
        factors.try_for_each(|(factor, &n)| check_factor("factor", factor, (n, k)))
    }
}

impl<T: Real> Algorithm for CpEm<'_, T> {
    type State = CpState<T>;
    type Error = SnmfError;

    fn step(&self, state: &mut CpState<T>, measure: bool) -> Result<Option<f64>, SnmfError> {
        self.check(state)?;
        let mut counts = state.activations();
        let wanted = SignedWanted {
            left: true,
            right: true,
            value: measure,
        };
        let model = SignedModel {
            plus: &state.plus,
            minus: &state.minus,
            right: &counts,
        };
        let sums = self.data.pass(&model, &self.split, wanted);
        counts.component_mul_assign(&sums.right);
        let finite = |m: &DMatrix<T>| m.iter().all(|x| x.is_finite());
        if !(finite(&counts) && finite(&sums.plus) && finite(&sums.minus)) {
            return Err(SnmfError::NotFinite { block: "weights" });
        }
        // [SKELLAM 5] with the activations' counts shared out over their factors
        let weights: DVector<T> = counts.column_sum();
        let alive: Vec<bool> = weights.iter().map(|&w| w > T::zero()).collect();
        let shared = shared_out(&counts, self.shape);
        for (factor, mut new) in state.factors.iter_mut().zip(shared) {
            plca_tensor::normalise_columns(&mut new);
            // A component that is gone keeps its factors.
            for z in (0..alive.len()).filter(|&z| alive[z]) {
                factor.set_column(z, &new.column(z));
            }
        }
        let (mut plus, mut minus) = (
            state.plus.component_mul(&sums.plus),
            state.minus.component_mul(&sums.minus),
        );
        normalise_atoms(&mut plus, &mut minus);
        for z in (0..alive.len()).filter(|&z| alive[z]) {
            state.plus.set_column(z, &plus.column(z));
            state.minus.set_column(z, &minus.column(z));
        }
        state.weights = weights;
        Ok(measure.then_some(sums.value))
    }

    /// The log-likelihood over `M`, or minus the divergence in the limit.
    fn objective(&self, state: &CpState<T>) -> Result<f64, SnmfError> {
        self.check(state)?;
        let wanted = SignedWanted {
            left: false,
            right: false,
            value: true,
        };
        let unfolded = state.unfolded();
        Ok(self.data.pass(&unfolded.model(), &self.split, wanted).value)
    }
}

/// Counts `K x N` of activations as those of their factors, `I x K` each, in the order of the modes, of which the last runs fastest.
pub(crate) fn shared_out<T: Real>(counts: &DMatrix<T>, shape: &[usize]) -> Vec<DMatrix<T>> {
    let mut inner = 1;
    let factors = shape.iter().rev().map(|&n| {
        let mut sums = DMatrix::zeros(n, counts.nrows());
        for (at, column) in counts.column_iter().enumerate() {
            let mut row = sums.row_mut(at / inner % n);
            row.iter_mut()
                .zip(column.iter())
                .for_each(|(x, &c)| *x += c);
        }
        inner *= n;
        sums
    });
    let mut factors: Vec<_> = factors.collect();
    factors.reverse();
    factors
}

impl<T: Real> Accelerate for CpEm<'_, T> {
    fn pack(&self, state: &CpState<T>) -> Vec<f64> {
        let atoms = stack(&state.plus, &state.minus);
        let factors = state.factors.iter().flat_map(|f| f.iter());
        let values = atoms.iter().chain(&state.weights).chain(factors);
        values.map(|x| x.to_f64()).collect()
    }

    fn unpack(&self, template: &CpState<T>, flat: &[f64], fallback: &[f64]) -> CpState<T> {
        let mut state = template.clone();
        let values = flat.iter().zip(fallback);
        let values = values.map(|(&new, &old)| T::lit(if new > 0.0 { new } else { 0.1 * old }));
        let mut atoms = stack(&state.plus, &state.minus);
        let blocks = atoms.iter_mut().chain(state.weights.iter_mut());
        let blocks = blocks.chain(state.factors.iter_mut().flat_map(|f| f.iter_mut()));
        blocks.zip(values).for_each(|(x, new)| *x = new);
        [state.plus, state.minus] = split(&atoms);
        normalise_atoms(&mut state.plus, &mut state.minus);
        for factor in &mut state.factors {
            plca_tensor::normalise_columns(factor);
        }
        state
    }
}
