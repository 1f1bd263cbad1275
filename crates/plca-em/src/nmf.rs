//! Non-negative matrix factorization under the generalised Kullback-Leibler divergence, `V ~ W H`.

use std::marker::PhantomData;

use nalgebra::DMatrix;
use plca_fit::{Accelerate, Algorithm, Direction, Outcome, Stop};
use plca_tensor::{Factor, Model, Observed, Real, Wanted, divide_columns, divide_rows};
use rand::Rng;

use crate::expectation::add_hidden;
use crate::init::{check_block, check_support};
use crate::{EmError, Missing, ParamError, PlcaState};

/// The order in which `W` and `H` are updated.
///
/// ```
/// use plca_em::{Nmf, Update};
/// let nmf = Nmf::builder(4).update(Update::Sequential).build()?;
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Update {
    /// Both from one ratio, `W` divided by the row sums of the new `H`: this is PLCA.
    #[default]
    Simultaneous,
    /// `W` first, then `H` from a fresh ratio: what most packages do. Another trajectory, the same fixed points.
    Sequential,
}

/// A checked configuration; see [`Nmf::builder`].
#[derive(Clone, Debug)]
pub struct Nmf {
    components: usize,
    update: Option<Update>,
    missing: Option<Missing>,
    freeze_w: bool,
    freeze_h: bool,
}

/// Settings of [`Nmf`], not yet checked.
///
/// ```
/// let nmf = plca_em::Nmf::builder(4).freeze_w().build()?;
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct NmfBuilder(Nmf);

impl NmfBuilder {
    /// Form of the update (default: simultaneous on complete data; with hidden cells it follows the treatment of these).
    ///
    /// ```
    /// use plca_em::{Nmf, Update};
    /// let as_most_packages_do = Nmf::builder(4).update(Update::Sequential).build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn update(mut self, update: Update) -> Self {
        self.0.update = Some(update);
        self
    }

    /// Treatment of hidden cells (default: multiplicative, or imputation where the simultaneous form was asked for).
    ///
    /// ```
    /// use plca_em::{Missing, Nmf, Update};
    /// assert!(Nmf::builder(4).missing(Missing::Imputation).build().is_ok());
    /// assert!(Nmf::builder(4).update(Update::Simultaneous).missing(Missing::Multiplicative).build().is_err());
    /// assert!(Nmf::builder(4).update(Update::Sequential).missing(Missing::Imputation).build().is_err());
    /// ```
    pub fn missing(mut self, missing: Missing) -> Self {
        self.0.missing = Some(missing);
        self
    }

    /// Keeps `W` as it was given.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_em::{Algorithm, Nmf, NmfInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let nmf = Nmf::builder(1).freeze_w().build()?;
    /// let init = NmfInit { w: Some(dmatrix![1.0; 2.0]), h: None };
    /// let mut state = nmf.init(&v, &init, &mut rng)?;
    /// nmf.on(&v)?.step(&mut state, false)?;
    /// assert_eq!(state.w, dmatrix![1.0; 2.0]);
    /// // Dividing by the column sum of W: H holds the masses of the columns.
    /// assert!((state.h[(0, 0)] * 3.0 - 3.0f64).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_w(mut self) -> Self {
        self.0.freeze_w = true;
        self
    }

    /// Keeps `H` as it was given.
    ///
    /// ```
    /// let nmf = plca_em::Nmf::builder(4).freeze_h().build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn freeze_h(mut self) -> Self {
        self.0.freeze_h = true;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: no components; simultaneous updates with the multiplicative treatment of hidden cells, which is
    /// sequential by nature; sequential updates with imputation, which is simultaneous by nature.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Nmf, ParamError};
    /// assert_eq!(Nmf::builder(0).build().unwrap_err(), ParamError::NoComponents);
    /// ```
    pub fn build(self) -> Result<Nmf, ParamError> {
        if self.0.components == 0 {
            return Err(ParamError::NoComponents);
        }
        if self.0.update == Some(Update::Simultaneous)
            && self.0.missing == Some(Missing::Multiplicative)
        {
            return Err(ParamError::Conflict(
                "masked multiplicative updates have the sequential form only",
            ));
        }
        if self.0.update == Some(Update::Sequential) && self.0.missing == Some(Missing::Imputation)
        {
            return Err(ParamError::Conflict(
                "imputation of hidden cells has the simultaneous form only",
            ));
        }
        Ok(self.0)
    }
}

/// The parameters.
///
/// ```
/// use nalgebra::dmatrix;
/// let state = plca_em::NmfState { w: dmatrix![1.0; 2.0], h: dmatrix![3.0, 4.0] };
/// assert_eq!(&state.w * &state.h, dmatrix![3.0, 4.0; 6.0, 8.0]);
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
pub struct NmfState<T: Real> {
    /// `W`, `I_0 x K`, in the units of the data together with `H`; never renormalised.
    pub w: DMatrix<T>,
    /// `H`, `K x I_1`.
    pub h: DMatrix<T>,
}

/// Blocks that a start gives; the others are drawn.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_em::{Nmf, NmfInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let init = NmfInit { w: Some(dmatrix![1.0; 2.0]), h: None };
/// assert_eq!(Nmf::builder(1).build()?.init(&v, &init, &mut rng)?.w, dmatrix![1.0; 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NmfInit<T: Real> {
    /// `W`; default: uniform on (0.5, 1.5), scaled so that `W H` has the mass of the data.
    pub w: Option<DMatrix<T>>,
    /// `H`; default as for `W`.
    pub h: Option<DMatrix<T>>,
}

impl<T: Real> Default for NmfInit<T> {
    fn default() -> Self {
        Self { w: None, h: None }
    }
}

impl<T: Real> NmfState<T> {
    fn with_model<O>(&self, f: impl FnOnce(&Model<'_, T>) -> O) -> O {
        f(&Model {
            weights: None,
            factors: &[Factor::Columns(&self.w), Factor::Rows(&self.h)],
        })
    }

    /// The PLCA model of the same product: `F_1 = W D⁻¹`, `P(z) ∝ D H 1`, `F_2 = (diag(H 1)⁻¹ H)ᵀ`.
    /// A component of mass 0 gets weight 0 and uniform factors.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// let plca = plca_em::NmfState { w: dmatrix![1.0; 3.0], h: dmatrix![2.0, 2.0] }.to_plca();
    /// assert_eq!((&plca.factors[0], &plca.factors[1]), (&dmatrix![0.25; 0.75], &dmatrix![0.5; 0.5]));
    /// assert_eq!(plca.weights.as_slice(), [1.0]);
    /// ```
    pub fn to_plca(&self) -> PlcaState<T> {
        let k = self.w.ncols();
        let mut factors = vec![self.w.clone(), self.h.transpose()];
        let sums: Vec<Vec<T>> = factors
            .iter_mut()
            .map(plca_tensor::normalise_columns)
            .collect();
        let mut weights = nalgebra::DVector::from_fn(k, |z, _| sums[0][z] * sums[1][z]);
        for (factor, sums) in factors.iter_mut().zip(&sums) {
            let uniform = T::one() / T::lit(factor.nrows() as f64);
            for z in (0..k).filter(|&z| sums[z] <= T::zero()) {
                factor.column_mut(z).fill(uniform);
            }
        }
        let total = weights.sum();
        if total > T::zero() {
            weights /= total;
        }
        PlcaState {
            weights,
            factors,
            power: 1.0,
            iteration: 0,
        }
    }

    /// The product form of a PLCA model: `W = F_1 D`, `H = v D⁻¹ diag(P(z)) F_2ᵀ`, so that `W H = v P`.
    ///
    /// # Panics
    ///
    /// If the model's order is not 2.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_em::NmfState;
    /// let nmf = NmfState { w: dmatrix![1.0; 3.0], h: dmatrix![2.0, 2.0] };
    /// // d: column sums of W; v: the mass of the product.
    /// assert_eq!(NmfState::from_plca(&nmf.to_plca(), &[4.0], 16.0), nmf);
    /// ```
    pub fn from_plca(plca: &PlcaState<T>, d: &[T], v: T) -> Self {
        assert_eq!(plca.factors.len(), 2, "a matrix model");
        let mut w = plca.factors[0].clone();
        let mut h = plca.factors[1].transpose();
        for (z, &d) in d.iter().enumerate() {
            w.column_mut(z).iter_mut().for_each(|x| *x *= d);
            let scale = v * plca.weights[z] / d;
            h.row_mut(z).iter_mut().for_each(|x| *x *= scale);
        }
        Self { w, h }
    }
}

impl Nmf {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// use plca_em::{Nmf, Update};
    /// let nmf = Nmf::builder(4).update(Update::Sequential).build()?;
    /// # Ok::<(), plca_em::ParamError>(())
    /// ```
    pub fn builder(components: usize) -> NmfBuilder {
        NmfBuilder(Self {
            components,
            update: None,
            missing: None,
            freeze_w: false,
            freeze_h: false,
        })
    }

    /// Binds the configuration to a matrix. Cost: one pass over the data for `Σ V ln V`.
    ///
    /// # Errors
    ///
    /// [`EmError::Order`] if the data are not a matrix.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Algorithm, Nmf, NmfInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let nmf = Nmf::builder(1).build()?;
    /// let mut state = nmf.init(&v, &NmfInit::default(), &mut rng)?;
    /// let em = nmf.on(&v)?;
    /// let before: f64 = em.objective(&state)?;
    /// em.step(&mut state, false)?;
    /// assert!(em.objective(&state)? <= before);                       // a divergence falls
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a, T: Real, X: Observed<T> + ?Sized>(
        &'a self,
        data: &'a X,
    ) -> Result<NmfEm<'a, T, X>, EmError> {
        let shape = data.shape();
        if shape.len() != 2 {
            return Err(EmError::Order {
                expected: 2,
                got: shape.len(),
            });
        }
        Ok(NmfEm {
            config: self,
            data,
            self_information: data.self_information(),
            scalar: PhantomData,
        })
    }

    /// A start; see [`Plca::init`](crate::Plca::init).
    ///
    /// # Errors
    ///
    /// [`EmError`] as there.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Nmf, NmfInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let state = Nmf::builder(3).build()?.init::<f64, _, _>(&v, &NmfInit::default(), &mut rng)?;
    /// assert_eq!((state.w.shape(), state.h.shape()), ((2, 3), (3, 2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<T, X, R>(
        &self,
        data: &X,
        init: &NmfInit<T>,
        rng: &mut R,
    ) -> Result<NmfState<T>, EmError>
    where
        T: Real,
        X: Observed<T> + ?Sized,
        R: Rng + ?Sized,
    {
        let (shape, k) = (data.shape(), self.components);
        if shape.len() != 2 {
            return Err(EmError::Order {
                expected: 2,
                got: shape.len(),
            });
        }
        // E[W H] over all cells is K; both factors take half of the scale.
        let cells = shape[0] as f64 * shape[1] as f64;
        let scale = (data.total() / cells / k as f64).sqrt();
        let mut block = |name: &str, value: &Option<DMatrix<T>>, frozen: bool, (rows, columns)| {
            let drawn = DMatrix::from_fn(rows, columns, |_, _| {
                T::lit(scale * (0.5 + plca_dist::random::uniform(rng)))
            });
            match value {
                Some(m) => check_block(name, m, (rows, columns)).map(|()| m.clone()),
                None if frozen => Err(EmError::FixedWithoutValue { block: name.into() }),
                None => Ok(drawn),
            }
        };
        let w = block("w", &init.w, self.freeze_w, (shape[0], k))?;
        let h = block("h", &init.h, self.freeze_h, (k, shape[1]))?;
        let state = NmfState { w, h };
        state.with_model(|model| check_support(data, model))?;
        Ok(state)
    }

    /// Draws a start and iterates until `stop` says so.
    ///
    /// # Errors
    ///
    /// As [`init`](Self::init) and [`on`](Self::on).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Nmf, NmfInit, Stop};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![2.0, 4.0, 1.0, 2.0], Order::RowMajor)?;
    /// let fit = Nmf::builder(1).build()?.fit(&v, &NmfInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!(fit.objective.abs() < 1e-12);                   // rank 1: an exact fit
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<T, X, R>(
        &self,
        data: &X,
        init: &NmfInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<NmfState<T>>, EmError>
    where
        T: Real,
        X: Observed<T> + ?Sized,
        R: Rng + ?Sized,
    {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = self.init(data, init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }

    /// How hidden cells are treated: as asked for, or by the form of the update.
    fn missing(&self) -> Missing {
        self.missing.unwrap_or(match self.update {
            Some(Update::Simultaneous) => Missing::Imputation,
            _ => Missing::Multiplicative,
        })
    }
}

/// [`Nmf`] bound to data.
///
/// ```
/// use plca_em::{Algorithm, Direction, Nmf, NmfInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let nmf = Nmf::builder(1).build()?;
/// let mut state = nmf.init(&v, &NmfInit::default(), &mut rng)?;
/// let em = nmf.on(&v)?;
/// assert_eq!(em.direction(), Direction::Minimise);
/// em.step(&mut state, false)?;
/// // The product has the mass of the data after every step.
/// assert!(((&state.w * &state.h).sum() - 6.0f64).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NmfEm<'a, T, X: ?Sized> {
    config: &'a Nmf,
    data: &'a X,
    self_information: f64,
    scalar: PhantomData<T>,
}

impl<T: Real, X: Observed<T> + ?Sized> NmfEm<'_, T, X> {
    /// `Σ_obs V ln(V/Y) - V + Y`.
    fn divergence(&self, ln_lik: f64, mass: f64) -> f64 {
        self.self_information - ln_lik - self.data.total() + mass
    }

    /// Mass of `W H` over the observed cells.
    fn seen_mass(&self, state: &NmfState<T>) -> f64 {
        if self.data.is_complete() {
            return state.with_model(|m| m.mass());
        }
        let seen = state.with_model(|m| self.data.exposure(m, &[true, false]));
        seen[0]
            .as_ref()
            .map_or(0.0, |x| x.iter().map(|x| x.to_f64()).sum())
    }

    fn simultaneous(&self, state: &mut NmfState<T>, measure: bool) -> Option<f64> {
        let modes = [!self.config.freeze_w, !self.config.freeze_h];
        let mut e = state.with_model(|m| {
            self.data.expect(
                m,
                Wanted {
                    modes: &modes,
                    ln_lik: measure,
                },
            )
        });
        let mut value = measure.then(|| state.with_model(|m| self.divergence(e.ln_lik, m.mass())));
        if !self.data.is_complete() {
            let seen = state.with_model(|m| self.data.exposure(m, &[true, modes[1]]));
            let mass = seen[0]
                .as_ref()
                .map_or(0.0, |x| x.iter().map(|x| x.to_f64()).sum());
            value = measure.then(|| self.divergence(e.ln_lik, mass));
            let s = T::lit(self.data.total() / mass);
            for (mode, counts) in e.counts.iter_mut().enumerate() {
                if let (Some(counts), Some(seen)) = (counts, &seen[mode]) {
                    state.with_model(|m| add_hidden(counts, seen, m, mode, s));
                }
            }
        }
        let [w, h] = &mut e.counts[..] else {
            return value;
        };
        if let Some(mut h) = h.take() {
            // [SI eq. 79] H' = diag(1ᵀW)⁻¹ (H ∘ Wᵀ Q)
            let d: Vec<T> = Factor::Columns(&state.w).component_sums();
            divide_rows(&mut h, &d);
            state.h = h;
        }
        if let Some(mut w) = w.take() {
            // [SI eq. 80] W' = (W ∘ Q Hᵀ) diag(H' 1)⁻¹, the new H'
            let d: Vec<T> = Factor::Rows(&state.h).component_sums();
            divide_columns(&mut w, &d);
            state.w = w;
        }
        value
    }

    fn sequential(&self, state: &mut NmfState<T>, measure: bool) -> Option<f64> {
        let mut value = None;
        for mode in 0..2 {
            let frozen = if mode == 0 {
                self.config.freeze_w
            } else {
                self.config.freeze_h
            };
            let measured = measure && mode == 0;
            if frozen && !measured {
                continue;
            }
            let modes = [mode == 0, mode == 1];
            let mut e = state.with_model(|m| {
                self.data.expect(
                    m,
                    Wanted {
                        modes: &modes,
                        ln_lik: measured,
                    },
                )
            });
            let seen = if self.data.is_complete() {
                None
            } else {
                state.with_model(|m| self.data.exposure(m, &modes))[mode].take()
            };
            if measured {
                let mass = match &seen {
                    Some(x) => x.iter().map(|x| x.to_f64()).sum(),
                    None => state.with_model(|m| m.mass()),
                };
                value = Some(self.divergence(e.ln_lik, mass));
            }
            let Some(mut counts) = e.counts[mode].take().filter(|_| !frozen) else {
                continue;
            };
            let factor = if mode == 0 { &state.w } else { &state.h };
            match seen {
                // [SPEC 4] F <- F ∘ C / X; a wholly hidden row or column keeps its value
                Some(seen) => counts.zip_zip_apply(factor, &seen, |c, f, x| {
                    *c = if x > T::zero() { f * (*c / x) } else { f }
                }),
                None => {
                    let partner = if mode == 0 {
                        Factor::Rows(&state.h)
                    } else {
                        Factor::Columns(&state.w)
                    };
                    let d: Vec<T> = partner.component_sums();
                    if mode == 0 {
                        divide_columns(&mut counts, &d);
                    } else {
                        divide_rows(&mut counts, &d);
                    }
                }
            }
            if mode == 0 {
                state.w = counts
            } else {
                state.h = counts
            }
        }
        value
    }
}

impl<T: Real, X: Observed<T> + ?Sized> Algorithm for NmfEm<'_, T, X> {
    type State = NmfState<T>;
    type Error = EmError;

    fn step(&self, state: &mut NmfState<T>, measure: bool) -> Result<Option<f64>, EmError> {
        let simultaneous = if self.data.is_complete() {
            self.config.update.unwrap_or_default() == Update::Simultaneous
        } else {
            self.config.missing() == Missing::Imputation
        };
        Ok(if simultaneous {
            self.simultaneous(state, measure)
        } else {
            self.sequential(state, measure)
        })
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }

    fn objective(&self, state: &NmfState<T>) -> Result<f64, EmError> {
        let e = state.with_model(|m| {
            self.data.expect(
                m,
                Wanted {
                    modes: &[false, false],
                    ln_lik: true,
                },
            )
        });
        Ok(self.divergence(e.ln_lik, self.seen_mass(state)))
    }
}

impl<T: Real, X: Observed<T> + ?Sized> Accelerate for NmfEm<'_, T, X> {
    fn pack(&self, state: &NmfState<T>) -> Vec<f64> {
        state.w.iter().chain(&state.h).map(|x| x.to_f64()).collect()
    }

    fn unpack(&self, template: &NmfState<T>, flat: &[f64], fallback: &[f64]) -> NmfState<T> {
        let mut state = template.clone();
        let first = state.w.len();
        let value = |at: usize| {
            T::lit(if flat[at] > 0.0 {
                flat[at]
            } else {
                0.1 * fallback[at]
            })
        };
        if !self.config.freeze_w {
            state
                .w
                .iter_mut()
                .enumerate()
                .for_each(|(i, x)| *x = value(i));
        }
        if !self.config.freeze_h {
            state
                .h
                .iter_mut()
                .enumerate()
                .for_each(|(i, x)| *x = value(first + i));
        }
        state
    }
}
