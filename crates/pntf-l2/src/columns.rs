//! Matrices whose columns are distributions of their own.
//!
//! ```text
//! min ‖Ḡ - U V‖²,     columns of Ḡ, U and V on simplices
//! ```
//!
//! where `Ḡ` is the data with every column divided by its sum: each column counts alike, whatever its mass.

use nalgebra::{DMatrix, DVectorView};
use plca_fit::{Algorithm, Direction, Outcome, Stop};
use plca_tensor::arrange::Products;
use plca_tensor::{CompensatedSum, Data, Real};
use rand::Rng;

use crate::init::{check_shape, given_factor, random_columns};
use crate::projection::Projector;
use crate::qp::gram_qp;
use crate::sweep::{contracted, descend_on_simplex, gram, widen};
use crate::{ParamError, PntfError};
use plca_tensor::parallel::map_in_order;

/// A checked configuration of `min ‖Ḡ - U V‖²`, `Ḡ` the data with every column divided by its sum `[PNTF 1]`; see
/// [`ColumnNmf::builder`].
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Algorithm, ColumnNmf, ColumnNmfState};
/// let g = DenseTensor::new(vec![2, 2], vec![4.0, 0.0, 0.0, 1.0], Order::RowMajor)?;      // Ḡ = 1
/// let state = ColumnNmfState { u: dmatrix![1.0, 0.0; 0.0, 1.0], v: dmatrix![0.5, 0.0; 0.5, 1.0] };
/// assert_eq!(ColumnNmf::builder(2).build()?.on(&g)?.objective(&state)?, 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ColumnNmf {
    components: usize,
    freeze_u: bool,
    freeze_v: bool,
}

/// Settings of [`ColumnNmf`], not yet checked.
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{ColumnNmf, ColumnNmfInit};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let g = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
/// let nmf = ColumnNmf::builder(2).freeze_v().build()?;
/// let error = nmf.init(&g, &ColumnNmfInit::default(), &mut ChaCha8Rng::seed_from_u64(0)).unwrap_err();
/// assert_eq!(error.to_string(), "`v` is to stay fixed but no initial value was given");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct ColumnNmfBuilder(ColumnNmf);

impl ColumnNmfBuilder {
    /// Keeps `U` as it was given.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Algorithm, ColumnNmf, ColumnNmfState};
    /// let g = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
    /// let nmf = ColumnNmf::builder(2).freeze_u().build()?;
    /// let mut state = ColumnNmfState { u: dmatrix![1.0, 0.0; 0.0, 1.0], v: dmatrix![0.5; 0.5] };
    /// nmf.on(&g)?.step(&mut state, false)?;
    /// assert_eq!(state.u, dmatrix![1.0, 0.0; 0.0, 1.0]);
    /// assert!((state.v[0] - 0.75f64).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_u(mut self) -> Self {
        self.0.freeze_u = true;
        self
    }

    /// Keeps `V` as it was given.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{Algorithm, ColumnNmf, ColumnNmfState};
    /// let g = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 1.0, 1.0], Order::RowMajor)?;
    /// let nmf = ColumnNmf::builder(2).freeze_v().build()?;
    /// let mut state = ColumnNmfState { u: dmatrix![0.5, 0.5; 0.5, 0.5], v: dmatrix![1.0, 0.0; 0.0, 1.0] };
    /// nmf.on(&g)?.step(&mut state, false)?;
    /// assert_eq!(state.v, dmatrix![1.0, 0.0; 0.0, 1.0]);
    /// assert!((state.u[0] - 0.75f64).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn freeze_v(mut self) -> Self {
        self.0.freeze_v = true;
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
    /// use pntf_l2::{ColumnNmf, ParamError};
    /// assert_eq!(ColumnNmf::builder(0).build().unwrap_err(), ParamError::NoComponents);
    /// ```
    pub fn build(self) -> Result<ColumnNmf, ParamError> {
        if self.0.components == 0 {
            return Err(ParamError::NoComponents);
        }
        Ok(self.0)
    }
}

/// The parameters: column `i` of `Ḡ` is modelled as `U V[:,i]`.
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{ColumnNmf, ColumnNmfInit};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let g = DenseTensor::new(vec![3, 4], vec![1.0; 12], Order::RowMajor)?;
/// let nmf = ColumnNmf::builder(2).build()?;
/// let state = nmf.init(&g, &ColumnNmfInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert_eq!((state.u.shape(), state.v.shape()), ((3, 2), (2, 4)));
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
pub struct ColumnNmfState<T: Real> {
    /// `U`, `I_0 x K`, every column on the simplex.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub u: DMatrix<T>,
    /// `V`, `K x I_1`, every column on the simplex.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub v: DMatrix<T>,
}

/// Blocks that a start gives; the others are drawn uniformly from the simplex.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{ColumnNmf, ColumnNmfInit};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let g = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
/// let given = ColumnNmfInit { u: Some(dmatrix![3.0; 1.0]), v: None };
/// let state = ColumnNmf::builder(1).build()?.init(&g, &given, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert_eq!(state.u, dmatrix![1.0; 0.0]);                            // the nearest point, not (3, 1)/4
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ColumnNmfInit<T: Real> {
    /// `U`; columns that are no distributions are projected.
    pub u: Option<DMatrix<T>>,
    /// `V`, likewise.
    pub v: Option<DMatrix<T>>,
}

impl<T: Real> Default for ColumnNmfInit<T> {
    fn default() -> Self {
        Self { u: None, v: None }
    }
}

impl ColumnNmf {
    /// Starts a configuration with `components` components (`K`).
    ///
    /// ```
    /// use pntf_l2::ColumnNmf;
    /// assert!(ColumnNmf::builder(3).build().is_ok() && ColumnNmf::builder(0).build().is_err());
    /// ```
    pub fn builder(components: usize) -> ColumnNmfBuilder {
        ColumnNmfBuilder(Self {
            components,
            freeze_u: false,
            freeze_v: false,
        })
    }

    /// Binds the configuration to a matrix. Cost: one pass over the data.
    ///
    /// # Errors
    ///
    /// [`PntfError`]: not a matrix, hidden cells, a column that does not sum to a positive number.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::ColumnNmf;
    /// let g = DenseTensor::new(vec![2, 2], vec![1.0, 0.0, 2.0, 0.0], Order::RowMajor)?;
    /// let nmf = ColumnNmf::builder(1).build()?;
    /// assert_eq!(nmf.on(&g).unwrap_err().to_string(), "column 1 sums to 0, not to a positive number");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on<'a, T: Real>(
        &'a self,
        data: &'a dyn Data<T>,
    ) -> Result<ColumnNmfSweep<'a, T>, PntfError> {
        let data = Products::new(data)?;
        let shape = data.shape();
        if shape.len() != 2 {
            return Err(PntfError::Order {
                expected: 2,
                got: shape.len(),
            });
        }
        if !data.is_complete() {
            return Err(PntfError::Incomplete("the column-normalised factorization"));
        }
        let (mut totals, mut squares) = (vec![0.0; shape[1]], vec![0.0; shape[1]]);
        data.for_each(&mut |index, x| {
            totals[index[1]] += x;
            squares[index[1]] += x * x;
        });
        if let Some(column) = totals.iter().position(|&t| t <= 0.0) {
            let total = totals[column] / data.scale();
            return Err(PntfError::ColumnTotal { column, total });
        }
        let norm = squares.iter().zip(&totals).map(|(s, t)| s / (t * t)).sum();
        Ok(ColumnNmfSweep {
            config: self,
            data,
            totals,
            norm,
        })
    }

    /// A start: what `init` gives, checked and every column projected onto the simplex; the rest drawn.
    ///
    /// # Errors
    ///
    /// [`PntfError`]: a given block of the wrong shape or with values that are not finite, a frozen block that was not given; as
    /// [`on`](Self::on).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{ColumnNmf, ColumnNmfInit};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let g = DenseTensor::new(vec![3, 4], vec![1.0; 12], Order::RowMajor)?;
    /// let nmf = ColumnNmf::builder(2).build()?;
    /// let state = nmf.init(&g, &ColumnNmfInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!(state.u.column_iter().chain(state.v.column_iter()).all(|c| (c.sum() - 1.0f64).abs() < 1e-14));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn init<T: Real, R: Rng + ?Sized>(
        &self,
        data: &dyn Data<T>,
        init: &ColumnNmfInit<T>,
        rng: &mut R,
    ) -> Result<ColumnNmfState<T>, PntfError> {
        self.start(&self.on(data)?.data, init, rng)
    }

    fn start<T: Real, R: Rng + ?Sized>(
        &self,
        data: &Products<'_, T>,
        init: &ColumnNmfInit<T>,
        rng: &mut R,
    ) -> Result<ColumnNmfState<T>, PntfError> {
        let (shape, k) = (data.shape(), self.components);
        let mut block =
            |name: &str, given: &Option<DMatrix<T>>, frozen: bool, size: (usize, usize)| {
                let drawn = random_columns(size.0, size.1, rng);
                match given {
                    Some(m) => given_factor(name, m, size),
                    None if frozen => Err(PntfError::FixedWithoutValue { block: name.into() }),
                    None => Ok(drawn),
                }
            };
        let u = block("u", &init.u, self.freeze_u, (shape[0], k))?;
        let v = block("v", &init.v, self.freeze_v, (k, shape[1]))?;
        Ok(ColumnNmfState { u, v })
    }

    /// Draws a start and sweeps until `stop` says so: the columns of `U` in order, then every column of `V` to its optimum.
    ///
    /// # Errors
    ///
    /// As [`init`](Self::init) and [`on`](Self::on).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// use pntf_l2::{ColumnNmf, ColumnNmfInit, Stop};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let g = DenseTensor::new(vec![2, 3], vec![4.0, 0.0, 1.0, 0.0, 6.0, 1.0], Order::RowMajor)?;
    /// let fit = ColumnNmf::builder(2).build()?.fit(&g, &ColumnNmfInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!(fit.objective < 1e-12 && (fit.state.v.column(2).sum() - 1.0f64).abs() < 1e-15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit<T: Real, R: Rng + ?Sized>(
        &self,
        data: &dyn Data<T>,
        init: &ColumnNmfInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<ColumnNmfState<T>>, PntfError> {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = self.start(&algorithm.data, init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}

/// [`ColumnNmf`] bound to data: one sweep and its objective `‖Ḡ - U V‖²`. A sweep improves the columns of `U` in order, then puts
/// every column of `V` at its optimum `[HS eq. 4]`.
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Algorithm, ColumnNmf, ColumnNmfInit};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let g = DenseTensor::new(vec![2, 3], vec![4.0, 0.0, 1.0, 0.0, 6.0, 1.0], Order::RowMajor)?;
/// let nmf = ColumnNmf::builder(2).build()?;
/// let mut state = nmf.init(&g, &ColumnNmfInit::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// let sweep = nmf.on(&g)?;
/// let before = sweep.step(&mut state, true)?.expect("asked for");
/// assert!(sweep.objective(&state)? <= before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ColumnNmfSweep<'a, T: Real> {
    config: &'a ColumnNmf,
    data: Products<'a, T>,
    totals: Vec<f64>,
    /// `‖Ḡ‖²`.
    norm: f64,
}

impl<T: Real> ColumnNmfSweep<'_, T> {
    /// Refuses factors that do not go with the data.
    fn check(&self, state: &ColumnNmfState<T>) -> Result<(), PntfError> {
        let (shape, k) = (self.data.shape(), self.config.components);
        check_shape("u", state.u.shape(), (shape[0], k))?;
        check_shape("v", state.v.shape(), (k, shape[1]))
    }

    /// `Ḡ Vᵀ` and `V Vᵀ`.
    fn by_rows(&self, state: &ColumnNmfState<T>) -> (DMatrix<f64>, DMatrix<f64>) {
        let vt = widen(&state.v).transpose();
        let mut divided = vt.clone();
        for (mut row, t) in divided.row_iter_mut().zip(&self.totals) {
            row /= *t;
        }
        let factors = [
            DMatrix::zeros(state.u.nrows(), state.u.ncols()),
            divided.map(T::lit),
        ];
        (self.data.mttkrp(&factors, 0), gram(&vt))
    }

    /// `‖Ḡ - U V‖²` from what [`by_rows`](Self::by_rows) returned, or cell by cell where too much cancels.
    fn squared_error(
        &self,
        state: &ColumnNmfState<T>,
        u: &DMatrix<f64>,
        m: &DMatrix<f64>,
        gamma: &DMatrix<f64>,
    ) -> f64 {
        let linear: f64 = contracted(m, u).iter().sum();
        // [PNTF 5]
        let value = self.norm - 2.0 * linear + gram(u).component_mul(gamma).sum();
        if value > 4.5e5 * T::EPSILON.to_f64() * self.norm {
            return value;
        }
        self.explicit(u, &widen(&state.v))
    }

    /// `‖Ḡ - U V‖²`, over the cells where either side is not 0.
    fn explicit(&self, u: &DMatrix<f64>, v: &DMatrix<f64>) -> f64 {
        let mut columns = vec![Vec::new(); self.totals.len()];
        (self.data).for_each(&mut |index, x| columns[index[1]].push((index[0], x)));
        let nonzero = |c: DVectorView<'_, f64>| -> Vec<(usize, f64)> {
            let entries = c.iter().copied().enumerate();
            entries.filter(|&(_, x)| x != 0.0).collect()
        };
        let atoms: Vec<_> = u.column_iter().map(nonzero).collect();
        let (mut residual, mut met) = (vec![0.0; u.nrows()], Vec::new());
        let mut sum = CompensatedSum::default();
        for ((cells, total), weights) in columns.iter().zip(&self.totals).zip(v.column_iter()) {
            for &(i, x) in cells {
                residual[i] -= x / total;
                met.push(i);
            }
            for (z, w) in nonzero(weights) {
                for &(i, x) in &atoms[z] {
                    residual[i] += w * x;
                    met.push(i);
                }
            }
            // A row that was met twice is 0 the second time.
            for i in met.drain(..) {
                sum += residual[i] * residual[i];
                residual[i] = 0.0;
            }
        }
        sum.value()
    }
}

impl<T: Real> Algorithm for ColumnNmfSweep<'_, T> {
    type State = ColumnNmfState<T>;
    type Error = PntfError;

    fn step(&self, state: &mut ColumnNmfState<T>, measure: bool) -> Result<Option<f64>, PntfError> {
        self.check(state)?;
        // A step that fails leaves the state as it was.
        let mut next = state.clone();
        let mut value = None;
        if measure || !self.config.freeze_u {
            let (m, gamma) = self.by_rows(state);
            let mut u = widen(&state.u);
            value = measure.then(|| self.squared_error(state, &u, &m, &gamma));
            if !self.config.freeze_u {
                // A component that no column uses has no curvature: it is left alone.
                let used: Vec<f64> = (0..gamma.ncols())
                    .map(|t| f64::from(gamma[(t, t)] > 0.0))
                    .collect();
                let mut projector = Projector::default();
                descend_on_simplex(&mut u, &m, &gamma, &used, &[], false, &mut projector);
                next.u = u.map(T::lit);
            }
        }
        if self.config.freeze_v {
            *state = next;
            return Ok(value);
        }
        let u = widen(&next.u);
        let h = gram(&u);
        let factors = [next.u.clone(), DMatrix::zeros(self.totals.len(), u.ncols())];
        let f = self.data.mttkrp(&factors, 1);
        let v = widen(&next.v);
        // [HS eq. 4] [PNTF 1] every column of V is a weight problem with H = Uᵀ U, f = Uᵀ g
        let solved = map_in_order((0..self.totals.len()).collect(), |i| {
            let f: Vec<f64> = f.row(i).iter().map(|f| f / self.totals[i]).collect();
            gram_qp(&h, &f, Some(v.column(i).as_slice()))
        });
        for (i, qp) in solved.into_iter().enumerate() {
            for (v, new) in next.v.column_mut(i).iter_mut().zip(qp?.weights) {
                *v = T::lit(new);
            }
        }
        *state = next;
        Ok(value)
    }

    fn objective(&self, state: &ColumnNmfState<T>) -> Result<f64, PntfError> {
        self.check(state)?;
        let (m, gamma) = self.by_rows(state);
        Ok(self.squared_error(state, &widen(&state.u), &m, &gamma))
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }
}
