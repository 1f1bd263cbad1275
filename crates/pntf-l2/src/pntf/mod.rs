//! Non-negative factorization of any order on the simplex, under squared error.
//!
//! ```math
//! \min \; \lVert G - s P \rVert^2,
//! \qquad P[x] = \sum_z \lambda_z \prod_j U_j[x_j, z],
//! \qquad \lambda \text{ and all columns of } U_j \text{ on simplices}
//! ```
//!
//! `G` is the data divided by their sum. The mass `s` is 1 on complete data. Where cells are hidden it is fitted to the observed ones, because
//! `P` sums to 1 over all of them. One iteration is one sweep: the mass, then mode after mode, in each component after component, then the
//! weights. `[PNTF 1]` `[PNTF 5]`

mod descent;

use std::collections::BTreeMap;

use nalgebra::{DMatrix, DVector};
use plca_fit::{
    Algorithm, Explained, Factored, FitError, Model, Parameters, Settings, State, Transform,
    blocks::{Axes, BlockSpec, Blocks, Constraint, Draw, Frozen, SCALE, no_mode},
};
use plca_tensor::arrange::Products;
use plca_tensor::{Data, Factor, Real};

use crate::Projection;
use crate::blocks::{finite, kept};
use crate::mixture::{self, MixtureState};
use crate::sweep::check_grams;
use descent::Descent;

plca_fit::settings! {
    /// Factorization of data of any order into weights and factors on the simplex, under squared error: a mixture of products of distributions,
    /// as PLCA is, fitted by least squares.
    ///
    /// ```math
    /// \begin{aligned}
    /// P[x] &= \sum_z \lambda_z \prod_j U_j[x_j, z], \qquad \lambda \text{ and all columns of } U_j \text{ on simplices} \\
    /// & \text{minimise} \quad \lVert G - s P \rVert^2 = \sum_x \left( G[x] - s P[x] \right)^2
    /// \end{aligned}
    /// ```
    ///
    /// `G` is the data divided by their sum; `x` runs over the observed cells, `z` over the `K` components. The blocks are `weights`, `λ` as a
    /// column of `K`; `factor_0`, `factor_1`, …, `U_j` as an `I_j x K` matrix for every mode; and `mass`, `s` as a single number, which is 1 on
    /// complete data.
    ///
    /// [`Pntf::new`] and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use pntf_l2::tensor::{DenseTensor, Order};
    /// use pntf_l2::{Init, Model, Pntf};
    /// let g = DenseTensor::<f64>::new(vec![2, 2], vec![4.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
    /// let pntf = Pntf::new(2);
    /// let fit = pntf.on(&g)?.run(Init::deflation(), &mut pntf_l2::seed(0))?;
    /// assert!(fit.objective() < 1e-12);
    /// assert!((fit.state().weights()[0] - 0.8).abs() < 1e-6);             // the larger block comes first
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The two tests that the paper stops by, of the change of the objective and of the residual, are a rule of [`Stop`](crate::Stop):
    ///
    /// ```
    /// use pntf_l2::tensor::{DenseTensor, Order};
    /// use pntf_l2::{Init, Model, Need, Pntf, Status, Stop};
    /// let g = DenseTensor::<f64>::new(vec![2, 3], vec![4.0, 1.0, 0.0, 2.0, 1.0, 3.0], Order::RowMajor)?;
    /// // [HS section 5] [PNTF 5]
    /// let both = Stop::default().tol(1e-8).residual_tol(1e-6).need(Need::All).check_every(1);
    /// let pntf = Pntf::new(1).revive(true);
    /// let fit = pntf.on(&g)?.stop(both).run(Init::default(), &mut pntf_l2::seed(0))?;
    /// assert_eq!(fit.status(), &Status::Converged);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Pntf {
        /// How vectors are projected onto the simplex (default: by a rising bound and a sweep).
        pub projection: Projection = Projection::default();
        /// Whether components of weight 0 are put where the residual is largest, and the weights decide (default: they stay as they are).
        pub revive: bool = false;
        /// Whether the data are divided by their sum (default: yes). Without, the model still sums to 1.
        pub normalise: bool = true;
        sparsity: BTreeMap<String, f64> = BTreeMap::new(), own;
    }
}

plca_fit::by_name!(Pntf {
    normalise: ["no_normalise", "", "Model", "Does not divide the data by their sum"];
    sparsity: ["sparsity", "BLOCK=MU", "Priors", "Weight MU >= 0 of the squares of a block's columns: sparse columns"];
});

/// The weights of quadratic sparsity.
#[derive(Clone, Debug)]
struct Sparsity {
    /// `μ_r` of every mode.
    modes: Vec<f64>,
    /// `μ_w`.
    weights: f64,
}

impl Sparsity {
    fn is_some(&self) -> bool {
        self.weights > 0.0 || self.modes.iter().any(|&mu| mu > 0.0)
    }

    /// `Σ_r μ_r |u_r^t|²` of every component `t`.
    fn of_components<T: Real>(&self, factors: &[DMatrix<T>]) -> Vec<f64> {
        let mut sums = vec![0.0; factors.first().map_or(0, |f| f.ncols())];
        for (factor, &mu) in factors.iter().zip(&self.modes).filter(|(_, mu)| **mu > 0.0) {
            for (sum, column) in sums.iter_mut().zip(factor.column_iter()) {
                let squares = column.iter().map(|u| u.to_f64() * u.to_f64());
                *sum += mu * squares.sum::<f64>();
            }
        }
        sums
    }
}

impl Pntf {
    /// Rewards sparse columns of a block (default: none does), a factor or `weights`; a later weight replaces an earlier one. A block that the model does not
    /// have is refused when it meets its data.
    ///
    /// ```math
    /// \begin{aligned}
    /// F &= \lVert G - s P \rVert^2 - 2 \sum_r \mu_r \sum_t \lambda_t \lVert u_r^t \rVert^2 - 2 \mu_w \lVert \lambda \rVert^2 \\
    /// \frac{F}{2 s \lambda_t} &= \frac{\rho - 2 \mu_r / s}{2} \lVert u_r^t \rVert^2 - b_t \cdot u_r^t + \dots
    /// \end{aligned}
    /// ```
    ///
    /// `u_r^t` is column `t` of the factor of mode `r`, and `ρ` its curvature without sparsity. A column is projected as before, on a simplex of
    /// radius `ρ - 2 μ_r / s`; where that is not positive it becomes a vertex, a single entry. Weights likewise: a quadratic programme where it is convex, a
    /// vertex where it is concave, a step that does not raise `F` between. A light component is worth as little to the reward as to the model, so that it does not become
    /// a vertex for its lightness alone. `F` never rises; it may be negative. It is the objective of a fit, and its likelihood the squared error. `[EXT 8]`
    ///
    /// ```
    /// use pntf_l2::tensor::{DenseTensor, Order};
    /// use pntf_l2::{Model, Pntf};
    /// let g = DenseTensor::<f64>::new(vec![3, 2], vec![4.0, 4.0, 2.0, 3.0, 1.0, 1.0], Order::RowMajor)?;
    /// let fit = |mu| {
    ///     let pntf = Pntf::new(1).sparsity("factor_0", mu);
    ///     pntf.fit(&g, &mut pntf_l2::seed(0))
    /// };
    /// assert!(fit(0.0)?.state().factor(0)[2] > 0.1 && fit(0.1)?.state().factor(0)[2] == 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sparsity(mut self, block: impl Into<String>, mu: f64) -> Self {
        self.sparsity.insert(block.into(), mu);
        self
    }

    /// The sparsity of blocks of such names.
    fn sparsity_of<T: Real>(&self, specs: &[BlockSpec<T>]) -> Result<Sparsity, FitError> {
        let sparse = &specs[..specs.len() - 1];
        let known = |name: &String| sparse.iter().any(|spec| spec.name == **name);
        if let Some(name) = self.sparsity.keys().find(|name| !known(name)) {
            return Err(FitError::UnknownBlock {
                name: name.clone(),
                expected: sparse.iter().map(|spec| spec.name.to_string()).collect(),
            });
        }
        let of = |spec: &BlockSpec<T>| self.sparsity.get(&*spec.name).copied().unwrap_or(0.0);
        Ok(Sparsity {
            modes: sparse[1..].iter().map(of).collect(),
            weights: of(&sparse[0]),
        })
    }
}

impl Settings for Pntf {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components and for a sparsity that is negative or not finite.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)?;
        for &mu in self.sparsity.values() {
            let good = mu.is_finite() && mu >= 0.0;
            FitError::unless(good, "sparsity", mu, "a finite number >= 0")?;
        }
        Ok(())
    }
}

/// Negative cells are accepted, see [`Summary::negative`](plca_tensor::Summary::negative).
impl<T: Real> Model<T> for Pntf {
    type State = PntfState<T>;

    /// # Errors
    ///
    /// [`FitError::Total`] for data that do not sum to a positive number, [`FitError::NotFinite`] for data whose sum, or whose squares beside
    /// it, overflow; those of [`Settings::check`] and [`Products::new`].
    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        let data = Products::new(data)?;
        let total = data.total() / data.scale();
        if total <= 0.0 {
            let column = None;
            return Err(FitError::Total { column, total });
        }
        let mut specs = specs(data.shape(), self.components);
        self.blocks.apply(&mut specs)?;
        check_grams(self.components, data.shape().len())?;
        let sparsity = self.sparsity_of(&specs)?;
        let [scale, mass] = match self.normalise {
            true => [1.0 / data.total(), finite("the sum of the data", total)?],
            false => [1.0 / data.scale(), 1.0],
        };
        let squares = data.squared_norm() * scale * scale;
        let norm = finite("the sum of the squares of the data over their sum", squares)?;
        if let (true, Some(spec)) = (data.is_complete(), specs.last_mut()) {
            // Nothing is hidden that the model could have mass in.
            spec.draw = Draw::Data(vec![1.0]);
            spec.frozen = Frozen::Whole;
        }
        Ok(Box::new(Descent {
            model: self,
            data,
            scale,
            norm,
            mass,
            kept: kept(&specs)?,
            specs,
            sparsity,
        }))
    }
}

/// The blocks of data of this shape.
fn specs<T: Real>(shape: &[usize], k: usize) -> Vec<BlockSpec<T>> {
    let mut weights = BlockSpec::simplex("weights", (k, 1), Axes::WEIGHTS);
    let mut mass = BlockSpec::simplex("mass", (1, 1), Axes::SINGLE);
    weights.draw = Draw::Even;
    mass.draw = Draw::Even;
    mass.constraint = Constraint::NonNegative;
    let factor = |(j, &n)| BlockSpec::simplex(format!("factor_{j}"), (n, k), Axes::factor(j));
    let factors = shape.iter().enumerate().map(factor);
    std::iter::once(weights)
        .chain(factors)
        .chain([mass])
        .collect()
}

/// The factors of parameters: neither the weights before them nor the mass behind them.
fn factors<T: Real>(at: &Parameters<T>) -> &[DMatrix<T>] {
    let blocks = at.matrices();
    &blocks[1..blocks.len() - 1]
}

/// `s`.
fn mass<T: Real>(at: &Parameters<T>) -> f64 {
    at.at(at.matrices().len() - 1)[0].to_f64()
}

/// The fitted parameters of [`Pntf`]: weights, one factor for every mode, and the mass.
///
/// ```math
/// G[x] \approx s \sum_z \lambda_z \prod_j U_j[x_j, z]
/// ```
///
/// ```
/// use pntf_l2::nalgebra::{self, dmatrix, dvector};
/// use pntf_l2::{Factored, PntfState};
/// let factors = vec![dmatrix![1.0, 0.5; 0.0, 0.5], dmatrix![0.5, 0.0; 0.5, 1.0]];
/// let state = PntfState::new(dvector![0.75, 0.25], factors)?;
/// assert_eq!(state.with_model(|p| p.cell(&[0, 1])), 0.5);             // 3/4 · 1 · 1/2 + 1/4 · 1/2 · 1
/// # Ok::<(), pntf_l2::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PntfState<T: Real>(Parameters<T>);

plca_fit::serialised!(PntfState);

impl<T: Real> PntfState<T> {
    /// The state of weights `λ` and one factor `U_j`, `I_j x K`, for every mode; of mass 1.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`], [`FitError::Count`] without factors.
    pub fn new(weights: DVector<T>, factors: Vec<DMatrix<T>>) -> Result<Self, FitError> {
        FitError::if_no_factor(factors.len())?;
        let shape: Vec<usize> = factors.iter().map(|f| f.nrows()).collect();
        let specs = specs(&shape, weights.len());
        let weights = DMatrix::from_column_slice(weights.len(), 1, weights.as_slice());
        let one = DMatrix::from_element(1, 1, T::one());
        let blocks = std::iter::once(weights).chain(factors).chain([one]);
        Ok(Self(Parameters::new(&specs, blocks.collect())?))
    }

    /// The weights of the components, `λ`: `K` numbers `>= 0` that sum to 1.
    pub fn weights(&self) -> &[T] {
        self.0.at(0).as_slice()
    }

    /// The factor of a mode, `U_j`: an `I_j x K` matrix, `>= 0`, every column of which sums to 1.
    ///
    /// # Panics
    ///
    /// If there is no such mode.
    pub fn factor(&self, mode: usize) -> &DMatrix<T> {
        let factors = self.factors();
        factors
            .get(mode)
            .unwrap_or_else(|| no_mode(mode, factors.len()))
    }

    /// The factors of all modes, each `I_j x K` with columns that sum to 1, in the order of the modes.
    pub fn factors(&self) -> &[DMatrix<T>] {
        factors(&self.0)
    }

    /// The mass, `s`: what the model must be multiplied by to fit the observed cells divided by their sum. 1 on complete data, at least
    /// about 1 where cells are hidden, because the model's mass covers them too.
    pub fn mass(&self) -> f64 {
        mass(&self.0)
    }

    /// Transforms the slices of new data along one mode, the observations, under the other factors of the components.
    ///
    /// Every slice is divided by its sum and gets the weights on the simplex with the least squared error: a convex problem, solved to rounding
    /// in one iteration, after which the run has settled. So of the [stop rule](Transform::stop) the tolerances play no part, and
    /// neither does [`impossible`](Transform::impossible): squared error can explain everything, more or less well. The learnt weights and the
    /// factor of the mode play no part. A gap is how far the squared error of an observation, divided by its sum, is at most above the least.
    ///
    /// ```
    /// use pntf_l2::nalgebra::{self, dmatrix, dvector};
    /// use pntf_l2::tensor::{DenseTensor, Order};
    /// use pntf_l2::{PntfState, Transform};
    /// let topics = dmatrix![0.5, 0.0; 0.5, 0.0; 0.0, 1.0];
    /// let learnt = PntfState::new(dvector![0.5, 0.5], vec![topics, dmatrix![1.0, 1.0]])?;
    /// let new = DenseTensor::new(vec![3, 1], vec![3.0, 3.0, 2.0], Order::RowMajor)?;
    /// let explained = learnt.transform(&new, &Transform::default())?;
    /// assert!((explained.fit.state().mixture()[(0, 0)] - 0.75f64).abs() < 1e-15 && explained.gap[0] < 1e-15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::DataShape`], [`FitError::Conflict`] for hidden cells and for a solver that extrapolates,
    /// [`FitError::NotFinite`] for slices whose sum is so small beside their values that squares overflow.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<MixtureState<T>>, FitError> {
        mixture::explain(self.factors(), data, how)
    }
}

impl<T: Real> Factored for PntfState<T> {
    fn product(at: &Parameters<T>) -> (Option<&[T]>, Vec<Factor<'_, T>>) {
        let factors = factors(at).iter().map(Factor::Columns);
        (Some(at.at(0).as_slice()), factors.collect())
    }

    fn scale(&self, _: usize) -> f64 {
        match self.0.fact(SCALE) {
            Some(&[scale]) => scale,
            _ => self.0.mass() * self.mass(),
        }
    }
}

impl<T: Real> State for PntfState<T> {
    type Scalar = T;
    const NAME: &'static str = "pntf";
    const BLOCKS: Blocks = &[
        ("weights", Axes::WEIGHTS),
        ("factor_*", Axes::factor(0)),
        ("mass", Axes::SINGLE),
    ];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let blocks = parameters.matrices();
        let k = blocks.first().map_or(0, |weights| weights.nrows());
        let end = blocks.len().saturating_sub(1).max(1);
        let factors = blocks.get(1..end).unwrap_or(&[]);
        let shape: Vec<usize> = factors.iter().map(|f| f.nrows()).collect();
        parameters.check(&specs(&shape, k))?;
        FitError::if_no_factor(shape.len())?;
        parameters.check_scale(1)?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
