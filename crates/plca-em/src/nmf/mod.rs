//! Non-negative matrix factorization under the generalised Kullback-Leibler divergence, `V ~ W H`.

mod builder;
mod em;
mod sequential;
mod simultaneous;
mod state;

use nalgebra::DMatrix;
use plca_fit::{Outcome, Stop};
use plca_tensor::{Data, Modes, Real};
use rand::Rng;

use crate::init::{check_block, check_support};
use crate::{EmError, Missing};

pub use builder::NmfBuilder;
pub use em::NmfEm;
pub use state::{NmfInit, NmfState};

/// The order in which `W` and `H` are updated.
///
/// ```
/// use plca_em::{before::Nmf, Update};
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
///
/// ```
/// use plca_em::{before::Nmf, NmfInit, Stop};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![1.0, 2.0, 2.0, 4.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let fit = Nmf::builder(1).build()?.fit(&v, &NmfInit::default(), &Stop::default(), &mut rng)?;
/// assert!(fit.objective.abs() < 1e-9);                                // a matrix of rank 1
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Nmf {
    pub(crate) components: usize,
    update: Option<Update>,
    missing: Option<Missing>,
    pub(crate) freeze_w: bool,
    pub(crate) freeze_h: bool,
}

impl Nmf {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// use plca_em::{before::Nmf, Update};
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
    /// use plca_em::{before::Nmf, Algorithm, NmfInit};
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
    pub fn on<'a, T: Real>(&'a self, data: &'a dyn Data<T>) -> Result<NmfEm<'a, T>, EmError> {
        sizes(data.shape())?;
        NmfEm::new(self, data)
    }

    /// A start; see [`Plca::init`](crate::before::Plca::init).
    ///
    /// # Errors
    ///
    /// [`EmError`] as there.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{before::Nmf, NmfInit};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// let state = Nmf::builder(3).build()?.init::<f64, _>(&v, &NmfInit::default(), &mut rng)?;
    /// assert_eq!((state.w.shape(), state.h.shape()), ((2, 3), (3, 2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<T, R>(
        &self,
        data: &dyn Data<T>,
        init: &NmfInit<T>,
        rng: &mut R,
    ) -> Result<NmfState<T>, EmError>
    where
        T: Real,
        R: Rng + ?Sized,
    {
        let (shape, k) = (sizes(data.shape())?, self.components);
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
    /// use plca_em::{before::Nmf, NmfInit, Stop};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::new(vec![2, 2], vec![2.0, 4.0, 1.0, 2.0], Order::RowMajor)?;
    /// let fit = Nmf::builder(1).build()?.fit(&v, &NmfInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!(fit.objective.abs() < 1e-12);                   // rank 1: an exact fit
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<T, R>(
        &self,
        data: &dyn Data<T>,
        init: &NmfInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<NmfState<T>>, EmError>
    where
        T: Real,
        R: Rng + ?Sized,
    {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = self.init(data, init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }

    /// The modes whose factors are learnt.
    fn free(&self) -> Modes {
        let free = [!self.freeze_w, !self.freeze_h].into_iter().enumerate();
        free.filter(|&(_, free)| free)
            .map(|(mode, _)| mode)
            .collect()
    }

    /// How hidden cells are treated: as asked for, or by the form of the update.
    fn missing(&self) -> Missing {
        self.missing.unwrap_or(match self.update {
            Some(Update::Simultaneous) => Missing::Imputation,
            _ => Missing::Multiplicative,
        })
    }
}

/// The two sizes of a matrix.
fn sizes(shape: &[usize]) -> Result<[usize; 2], EmError> {
    shape.try_into().map_err(|_| EmError::Order {
        expected: 2,
        got: shape.len(),
    })
}
