//! Matrices whose columns are distributions of their own.
//!
//! ```math
//! \min \; \lVert \bar G - U V \rVert^2,
//! \qquad \text{columns of } \bar G \text{, } U \text{ and } V \text{ on simplices}
//! ```
//!
//! where `Ḡ` is the data with every column divided by its sum: each column counts alike, whatever its mass. One iteration improves the columns
//! of `U` in order, then puts every column of `V` at its optimum. `[PNTF 1]` `[HS eq. 4]`
//!
//! With `M = Ḡ Vᵀ` and `Γ = V Vᵀ` the objective is
//!
//! ```math
//! \begin{aligned}
//! \lVert \bar G - U V \rVert^2
//!   &= \lVert \bar G \rVert^2 - 2 \sum M \circ U + \sum (U^\top U) \circ \Gamma \\
//!   &= \Gamma_{tt} \lVert u_t - b_t / \Gamma_{tt} \rVert^2 + \text{what is free of } u_t,
//!   & b_t &= M[:,t] - \sum_{j \ne t} \Gamma_{jt} u_j \\
//!   &= \sum_i 2 \left( \tfrac{1}{2} v_i^\top H v_i - f_i^\top v_i \right) + \lVert \bar G \rVert^2,
//!   & H &= U^\top U, \quad f_i = U^\top \bar g_i
//! \end{aligned}
//! ```
//!
//! So the best column of `U` is `b_t / Γ_tt` projected onto the simplex, and every column of `V` is a small quadratic programme of its own, all
//! with the same `H`. Each block ends at its optimum under the others, and the objective never rises. Neither line needs `Ḡ - U V`.

use nalgebra::{DMatrix, DVectorView};
use plca_fit::{
    Algorithm, Explained, Factored, FitError, Model, Parameters, Sense, Settings, State, Transform,
    blocks::{Axes, BlockSpec, Blocks, Constraint, Frozen},
    em::Stepped,
};
use plca_tensor::arrange::Products;
use plca_tensor::parallel::map_in_order;
use plca_tensor::{CompensatedSum, Data, Factor, Real};

use crate::blocks::{cancels, check_complete, extrapolated, finite, given, kept, put, weigh};
use crate::exact::{self, TOTALS, check_totals};
use crate::mixture::explain_columns;
use crate::projection::Projector;
use crate::sweep::{check_grams, contracted, descend_on_simplex, gram, widen};

plca_fit::settings! {
    /// Factorization of a matrix whose columns are distributions of their own: every column is a mixture of the same few, fitted by least
    /// squares.
    ///
    /// ```math
    /// \text{minimise} \quad \lVert \bar G - U V \rVert^2, \qquad \text{columns of } U \text{ and } V \text{ on simplices}
    /// ```
    ///
    /// `Ḡ` is the data with every column divided by its sum, `I x J`. The blocks are `u`, `U` as an `I x K` matrix, and `v`, `V` as a `K x J`
    /// matrix.
    ///
    /// [`ColumnNmf::new`] and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use pntf_l2::tensor::{DenseTensor, Order};
    /// use pntf_l2::{ColumnNmf, Model};
    /// let g = DenseTensor::<f64>::new(vec![2, 3], vec![4.0, 0.0, 1.0, 0.0, 6.0, 1.0], Order::RowMajor)?;
    /// let fit = ColumnNmf::new(2).fit(&g, &mut pntf_l2::seed(0))?;
    /// assert!(fit.objective() < 1e-12 && (fit.state().v().column(2).sum() - 1.0).abs() < 1e-15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct ColumnNmf {}
}

impl Settings for ColumnNmf {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)
    }
}

impl<T: Real> Model<T> for ColumnNmf {
    type State = ColumnNmfState<T>;

    /// # Errors
    ///
    /// [`FitError::Conflict`] for data that are not a matrix and for hidden cells, [`FitError::Total`] for a column that does not sum to a positive
    /// number, [`FitError::NotFinite`] where squares overflow beside it; those of [`Settings::check`] and [`Products::new`].
    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        let data = Products::new(data)?;
        let &[rows, columns] = data.shape() else {
            let order = data.shape().len();
            return Err(FitError::Conflict {
                what: format!(
                    "the column-normalised factorization is for matrices, the data have order {order}"
                ),
            });
        };
        check_complete(&data, "the column-normalised factorization")?;
        let mut totals = vec![0.0; columns];
        data.for_each(&mut |index, x| totals[index[1]] += x);
        if let Some(column) = totals.iter().position(|&t| t <= 0.0) {
            let total = totals[column] / data.scale();
            let column = Some(column);
            return Err(FitError::Total { column, total });
        }
        for (column, total) in totals.iter().enumerate() {
            finite(&format!("the sum of column {column}"), total / data.scale())?;
        }
        // Quotients first: of a column that is small beside the others the squares would underflow.
        let mut norm = 0.0;
        data.for_each(&mut |index, x| norm += (x / totals[index[1]]).powi(2));
        let what = "the sum of the squares of the columns over their sums";
        let norm = finite(what, norm)?;
        let mut specs = specs([rows, columns], self.components);
        self.blocks.apply(&mut specs)?;
        check_grams(self.components, 2)?;
        Ok(Box::new(Sweep {
            data,
            totals,
            norm,
            kept: kept(&specs)?,
            specs,
        }))
    }
}

/// The blocks of a matrix of this shape.
pub(crate) fn specs<T: Real>([rows, columns]: [usize; 2], k: usize) -> Vec<BlockSpec<T>> {
    vec![
        BlockSpec::simplex("u", (rows, k), Axes::factor(0)),
        BlockSpec::simplex("v", (k, columns), Axes::coefficients(1)),
    ]
}

/// [`ColumnNmf`] bound to data.
#[derive(Debug)]
struct Sweep<'a, T: Real> {
    data: Products<'a, T>,
    /// Sums of the columns as held.
    totals: Vec<f64>,
    /// `‖Ḡ‖²`.
    norm: f64,
    specs: Vec<BlockSpec<T>>,
    /// Flags of the frozen components of every block.
    kept: Vec<Vec<bool>>,
}

impl<T: Real> Sweep<'_, T> {
    /// `Ḡ Vᵀ` and `V Vᵀ`.
    fn by_rows(&self, at: &Parameters<T>) -> (DMatrix<f64>, DMatrix<f64>) {
        let (u, v) = (at.at(0), at.at(1));
        let vt = widen(v).transpose();
        let mut divided = vt.clone();
        for (mut row, t) in divided.row_iter_mut().zip(&self.totals) {
            row /= *t;
        }
        let factors = [DMatrix::zeros(u.nrows(), u.ncols()), divided.map(T::lit)];
        (self.data.mttkrp(&factors, 0), gram(&vt))
    }

    /// `‖Ḡ - U V‖²` from what [`by_rows`](Self::by_rows) returned, or cell by cell where too much cancels.
    fn squared_error(
        &self,
        at: &Parameters<T>,
        u: &DMatrix<f64>,
        m: &DMatrix<f64>,
        gamma: &DMatrix<f64>,
    ) -> f64 {
        let linear: f64 = contracted(m, u).iter().sum();
        // [PNTF 5]
        let value = self.norm - 2.0 * linear + gram(u).component_mul(gamma).sum();
        if !cancels::<T>(value, self.norm) {
            return value;
        }
        self.explicit(u, &widen(at.at(1)))
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

    /// Every column of `V` at its optimum.
    fn weigh(&self, at: &mut Parameters<T>) -> Result<(), FitError> {
        let u = widen(at.at(0));
        let h = gram(&u);
        let factors = [
            at.at(0).clone(),
            DMatrix::zeros(self.totals.len(), u.ncols()),
        ];
        let f = self.data.mttkrp(&factors, 1);
        let mut v = widen(at.at(1));
        // [HS eq. 4] [PNTF 1] every column of V is a weight problem with H = Uᵀ U, f = Uᵀ g
        let solved = map_in_order((0..self.totals.len()).collect(), |i| {
            let f: Vec<f64> = f.row(i).iter().map(|f| f / self.totals[i]).collect();
            weigh(&h, &f, v.column(i).as_slice(), &self.kept[1], 0.0)
        });
        for (i, weights) in solved.into_iter().enumerate() {
            v.column_mut(i).copy_from_slice(&weights?);
        }
        put(at, 1, &v);
        Ok(())
    }
}

impl<T: Real> Algorithm<T> for Sweep<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        let frozen = |block: usize| self.specs[block].frozen == Frozen::Whole;
        // A step that fails leaves the parameters as they were.
        let mut next = at.clone();
        let mut value = None;
        if measure || !frozen(0) {
            // 1. What the data and `V` say of `U`, and with it the objective.
            let (m, gamma) = self.by_rows(at);
            let mut u = widen(at.at(0));
            value = measure.then(|| self.squared_error(at, &u, &m, &gamma));
            // 2. The columns of `U`, one after the other.
            if !frozen(0) {
                // A component that no column uses has no curvature: it is left alone.
                let used: Vec<f64> = (0..gamma.ncols())
                    .map(|t| f64::from(gamma[(t, t)] > 0.0))
                    .collect();
                let (kept, mut projector) = (&self.kept[0], Projector::default());
                descend_on_simplex(
                    &mut u,
                    &m,
                    &gamma,
                    &used,
                    kept,
                    (false, 0.0),
                    &mut projector,
                );
                put(&mut next, 0, &u);
            }
        }
        // 3. All columns of `V`, each by itself.
        if !frozen(1) {
            self.weigh(&mut next)?;
        }
        next.count();
        *at = next;
        Ok(Stepped::of(value))
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let (m, gamma) = self.by_rows(at);
        Ok(self.squared_error(at, &widen(at.at(0)), &m, &gamma))
    }

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    /// `‖Ḡ‖²`.
    fn unit(&self) -> f64 {
        self.norm
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        let scale = self.data.scale();
        vec![(TOTALS, self.totals.iter().map(|t| t / scale).collect())]
    }

    fn extrapolates(&self, _: &Parameters<T>) -> Result<(), FitError> {
        Ok(())
    }

    fn extrapolated(&self, base: &Parameters<T>, flat: &[f64], last: &[f64]) -> Parameters<T> {
        extrapolated(&self.specs, &mut Projector::default(), base, flat, last)
    }

    /// [PNTF 1] a column that is not a distribution is projected onto the simplex.
    fn given(&self, block: usize, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        given(&self.specs[block], value, Constraint::Free)
    }
}

/// The fitted parameters of [`ColumnNmf`]: distributions, and the mixture of them that every column of the data is.
///
/// ```math
/// \bar g_j \approx U v_j
/// ```
///
/// `ḡ_j` is column `j` of the data divided by its sum, `v_j` column `j` of `V`.
///
/// ```
/// use pntf_l2::nalgebra::{self, dmatrix};
/// use pntf_l2::{ColumnNmfState, Reconstruct};
/// let state = ColumnNmfState::new(dmatrix![1.0, 0.5; 0.0, 0.5], dmatrix![0.5; 0.5])?;
/// assert_eq!(state.cell(&[0, 0]), 0.75);
/// # Ok::<(), pntf_l2::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnNmfState<T: Real>(Parameters<T>);

plca_fit::serialised!(ColumnNmfState);

impl<T: Real> ColumnNmfState<T> {
    /// The state of `U`, `I x K`, and `V`, `K x J`, for columns that sum to 1.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`].
    pub fn new(u: DMatrix<T>, v: DMatrix<T>) -> Result<Self, FitError> {
        let specs = specs([u.nrows(), v.ncols()], u.ncols());
        Ok(Self(Parameters::new(&specs, vec![u, v])?))
    }

    /// The distributions, `U`: an `I x K` matrix, `>= 0`, every column of which sums to 1.
    pub fn u(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// The mixtures, `V`: a `K x J` matrix, `>= 0`, every column of which sums to 1.
    pub fn v(&self) -> &DMatrix<T> {
        self.0.at(1)
    }

    /// The sum of every column of the data, `J` numbers in their units; 1 of a state that was not fitted.
    pub fn totals(&self) -> Vec<f64> {
        let ones = || vec![1.0; self.v().ncols()];
        self.0.fact(TOTALS).map_or_else(ones, <[f64]>::to_vec)
    }

    /// The squared error of every column that [`transform`](Self::transform) explained, divided by its sum, exact up to rounding of the
    /// sum of its squares; `None` of a state that comes from elsewhere.
    pub fn squared_errors(&self) -> Option<&[f64]> {
        self.0.fact(exact::ERRORS)
    }

    /// Finds the coefficients of new columns under the learnt `U`.
    ///
    /// Every column is divided by its sum and gets the mixture with the least squared error: a convex problem, solved to rounding in one
    /// iteration, after which the run has settled. So of the [stop rule](Transform::stop) the tolerances play no part, and neither does
    /// [`impossible`](Transform::impossible). A gap is how far the squared error of a column is at most above the least. Columns that do
    /// not sum to a positive number are [`empty`](Explained::empty): their mixtures are uniform.
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`], [`FitError::Conflict`] for another mode than 1, for hidden cells and for a solver that extrapolates,
    /// [`FitError::NotFinite`] for columns whose sum is so small beside their values that squares overflow.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        explain_columns(self.u(), data, how)
    }
}

impl<T: Real> Factored for ColumnNmfState<T> {
    fn product(at: &Parameters<T>) -> (Option<&[T]>, Vec<Factor<'_, T>>) {
        let factors = vec![Factor::Columns(at.at(0)), Factor::Rows(at.at(1))];
        (None, factors)
    }

    fn scaled_mode(&self) -> Option<usize> {
        Some(1)
    }

    fn scale(&self, column: usize) -> f64 {
        self.0.fact(TOTALS).map_or(1.0, |totals| totals[column])
    }
}

impl<T: Real> State for ColumnNmfState<T> {
    type Scalar = T;
    const NAME: &'static str = "column-nmf";
    const BLOCKS: Blocks = &[("u", Axes::factor(0)), ("v", Axes::coefficients(1))];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let ((rows, k), (_, columns)) = (parameters.shape(0), parameters.shape(1));
        parameters.check(&specs([rows, columns], k))?;
        check_totals(&parameters, columns)?;
        exact::check_errors(&parameters, [columns])?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
