//! Symmetric PLCA of any order: the components are the latent classes `z`, given which the modes are independent.
//!
//! ```text
//! P(x) = Σ_z P(z) Π_j P(x_j | z)
//! ```
//!
//! Its likelihood `Σ_x V[x] ln P(x)` rises in every iteration of expectation-maximisation:
//!
//! ```text
//! E-step:  C_j[i,z] = Σ_{x: x_j = i} V[x] P(z | x),     P(z | x) = P(z) Π_j P(x_j | z) / P(x)
//! M-step:  P(z) = n_z / Σ n,   P(x_j = i | z) = C_j[i,z] / n_z,     n_z = Σ_i C_j[i,z]
//! ```
//!
//! One pass over the data gives the counts `C_j` of all modes. A prior changes the M-step of its block; hidden cells are replaced by what
//! the model expects of them. `[LV eq. 11-14]`

use nalgebra::{DMatrix, DVector};
use plca_fit::engine::{
    Algorithm, Axis, BlockSpec, Counts, Draw, Em, Expectation, Explained, FitError, Frozen, Model,
    Parameters, Plan, Product, Reconstruct, Separable, Settings, State, Stepped, Transform, Wanted,
    begin, certify, dense, empty, gap, one_component, possible, pseudo_counts, refuse, share,
    transpose_to,
};
use plca_tensor::{
    Cp, Data, DenseTensor, Factor, Modes, Real, Request, Rule, check_counts, normalise_columns,
};

use super::product::{check_components, check_measured, check_power, power, unsupported};
use crate::blocks::{Free, largest, residual};
use crate::expectation::completed;
use crate::plca::Missing;

/// Settings of PLCA, checked; see [`Plca::builder`]. Its blocks are `weights`, `P(z)` as a column of `K`, and `factor_0`, `factor_1`, …,
/// `P(x_j | z)` as an `I_j x K` matrix for every mode.
///
/// ```
/// use plca_em::engine::Plca;
/// use plca_fit::engine::Model;
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let fit = Plca::builder(1).build()?.fit(&v, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!((fit.state().factor(1)[(0, 0)] - 0.5).abs() < 1e-12);       // one component: the marginals
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plca<T: Real> {
    components: usize,
    settings: Settings<T>,
    temper: f64,
    temper_prior: bool,
    missing: Missing,
}

/// Settings of [`Plca`], not yet checked.
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct PlcaBuilder<T: Real>(Plca<T>);

plca_fit::block_setters!(PlcaBuilder);

impl<T: Real> Plca<T> {
    /// Starts the settings of a model of so many components.
    pub fn builder(components: usize) -> PlcaBuilder<T> {
        PlcaBuilder(Self {
            components,
            settings: Settings::default(),
            temper: 1.0,
            temper_prior: false,
            missing: Missing::default(),
        })
    }

    /// Whether blocks can be renewed one after the other, each at its optimum with the others fixed.
    fn is_sequential(&self) -> bool {
        let whole = |name: &str| *self.settings.frozen(name) == Frozen::Whole;
        let free = |name: &str| *self.settings.frozen(name) == Frozen::No;
        let one = free("factor_0") && whole("factor_1") || whole("factor_0") && free("factor_1");
        let blocks = one || free("factor_0") && free("factor_1");
        !self.settings.has_priors() && self.temper == 1.0 && free("weights") && blocks
    }
}

impl<T: Real> PlcaBuilder<T> {
    /// Raises the factors to a power in `(0, 1]` in the E-step (default 1: tempered EM, which flattens the posteriors).
    pub fn temper(mut self, power: f64) -> Self {
        self.0.temper = power;
        self
    }

    /// Raises `P(z)` to the tempering power too (default: no, as in the original tempered EM).
    pub fn temper_prior(mut self, yes: bool) -> Self {
        self.0.temper_prior = yes;
        self
    }

    /// Sets how hidden cells are treated (default: imputation).
    pub fn missing(mut self, missing: Missing) -> Self {
        self.0.missing = missing;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] without components or for a tempering power outside `(0, 1]`, [`FitError::Conflict`] for multiplicative updates
    /// together with priors, tempering, frozen weights or components, or both factors frozen.
    pub fn build(self) -> Result<Plca<T>, FitError> {
        let plca = self.0;
        check_components(plca.components)?;
        check_power(plca.temper)?;
        if plca.missing == Missing::Multiplicative && !plca.is_sequential() {
            return Err(FitError::Conflict {
                what: "multiplicative treatment of missing cells goes with neither priors, tempering, frozen weights or components nor both factors frozen"
                    .into(),
            });
        }
        Ok(plca)
    }
}

impl<T: Real> Model for Plca<T> {
    type Scalar = T;
    type State = PlcaState<T>;
    const NAME: &'static str = "plca";

    fn components(&self) -> usize {
        self.components
    }

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        check_counts(data)?;
        let counts = PlcaCounts::new(self, data)?;
        if self.missing == Missing::Imputation || data.is_complete() {
            return Ok(Box::new(Em(counts)));
        }
        match data.shape().len() {
            2 => Ok(Box::new(Multiplicative(Em(counts)))),
            order => Err(FitError::Conflict {
                what: format!(
                    "multiplicative updates are for matrices, the data have order {order}"
                ),
            }),
        }
    }
}

/// The blocks of PLCA: `K x 1` weights and `I_j x K` factors.
fn specs<T: Real>(shape: &[usize], k: usize) -> Vec<BlockSpec<T>> {
    let mut weights = BlockSpec::simplex("weights", (k, 1), Axis::Rows);
    weights.draw = Draw::Even;
    let factor = |(j, &n)| BlockSpec::simplex(format!("factor_{j}"), (n, k), Axis::Columns);
    let factors = shape.iter().enumerate().map(factor);
    std::iter::once(weights).chain(factors).collect()
}

fn with_model<T: Real, O>(at: &Parameters<T>, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
    let factors: Vec<_> = at
        .blocks()
        .skip(1)
        .map(|(_, f)| Factor::Columns(f))
        .collect();
    f(&Cp {
        weights: Some(at.at(0).as_slice()),
        factors: &factors,
    })
}

/// PLCA on data.
#[derive(Debug)]
struct PlcaCounts<'a, T: Real> {
    model: &'a Plca<T>,
    data: &'a dyn Data<T>,
    specs: Vec<BlockSpec<T>>,
    /// How it separates, or what is in the way.
    plan: Result<Plan, FitError>,
}

impl<'a, T: Real> PlcaCounts<'a, T> {
    fn new(model: &'a Plca<T>, data: &'a dyn Data<T>) -> Result<Self, FitError> {
        let mut specs = specs(data.shape(), model.components);
        model.settings.apply(&mut specs)?;
        let plan = plan(model, &specs);
        Ok(Self {
            model,
            data,
            specs,
            plan,
        })
    }

    fn is_free(&self, block: usize) -> bool {
        self.specs[block].frozen != Frozen::Whole
    }

    /// The modes whose counts these blocks need: those of the factors, or any for the weights.
    fn modes(wanted: &[bool]) -> Modes {
        let modes: Modes = (1..wanted.len())
            .filter(|&j| wanted[j])
            .map(|j| j - 1)
            .collect();
        match modes.is_empty() && wanted[0] {
            true => Modes::one(0),
            false => modes,
        }
    }

    fn counts(
        &self,
        at: &Parameters<T>,
        modes: Modes,
        value: bool,
    ) -> Result<plca_tensor::Expected<T>, FitError> {
        if at.power() == 1.0 || modes.is_empty() {
            return Ok(with_model(at, |model| {
                completed(self.data, model, modes, value)
            })?);
        }
        // [SPEC 1.4] the ordinary step on (P(z)^s, F^b); neither is normalised and that does not matter
        let b = T::lit(at.power());
        let weights = match self.model.temper_prior {
            true => power(at.at(0), b),
            false => at.at(0).clone(),
        };
        let factors: Vec<_> = at.blocks().skip(1).map(|(_, f)| power(f, b)).collect();
        let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
        let tempered = Cp {
            weights: Some(weights.as_slice()),
            factors: &factors,
        };
        Ok(completed(self.data, &tempered, modes, false)?)
    }

    fn ln_lik(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let e = with_model(at, |model| completed(self.data, model, Modes::NONE, true))?;
        Ok(e.value())
    }
}

impl<T: Real> Expectation<T> for PlcaCounts<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let modes = Self::modes(wanted.blocks);
        let mut e = self.counts(at, modes, wanted.value)?;
        let value = match wanted.value {
            true if at.power() == 1.0 || modes.is_empty() => Some(e.value()),
            true => Some(self.ln_lik(at)?),
            false => None,
        };
        let factors = 1..wanted.blocks.len();
        let mut blocks = vec![None; wanted.blocks.len()];
        if let (true, Some(counts)) = (wanted.blocks[0], factors.clone().find_map(|j| e.get(j - 1)))
        {
            // [SI eq. 3] [SI eq. 39] [LV eq. 13] [SPEC 1.1] [SPEC 1.2] P(z) <- n / Σ n
            let n = Factor::Columns(counts).component_sums();
            blocks[0] = Some(DMatrix::from_vec(n.len(), 1, n));
        }
        for j in factors.filter(|&j| wanted.blocks[j]) {
            blocks[j] = Some(e.take(j - 1));
        }
        Ok(Counts { blocks, value })
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        Ok(with_model(at, |model| unsupported(self.data, model))?)
    }

    /// The largest of these over the free blocks and live components; 0 exactly at a stationary point of the likelihood, or of
    /// `L_b` where steps are tempered. A probability.
    ///
    /// ```text
    /// |n / v - P(z)|,   |F_j (g_j - 1)| = |C_j / (v P(z)) - F_j|,   |C_j / n - F_j| where the weights are frozen
    /// g_j[i,z] = (1/v) Σ_{x: x_j = i} Q[x] Π_{m≠j} F_m[x_m,z],   Q = V / P,   C_j = v P(z) F_j g_j,   n = Σ_i C_j
    /// ```
    ///
    /// `g_j = 1` where `F_j > 0` is what they measure; that `g_j <= 1` where `F_j = 0` they do not see: EM keeps zeros. Hidden
    /// cells are imputed, with `v` the mass of the completed data. With frozen components it is the largest change that an iteration
    /// makes. `[SPEC 1.1]`
    fn residual(&self, at: &Parameters<T>) -> Option<Result<f64, FitError>> {
        if self
            .specs
            .iter()
            .any(|s| matches!(s.frozen, Frozen::Components(_)))
        {
            return None;
        }
        let wanted: Vec<bool> = (0..self.specs.len()).map(|j| self.is_free(j)).collect();
        let counts = match self.counts(at, Self::modes(&wanted), false) {
            Ok(counts) => counts,
            Err(error) => return Some(Err(error)),
        };
        let weights = DVector::from_column_slice(at.at(0).as_slice());
        let of_block = |j: usize| {
            let free = Free {
                weights: self.is_free(0),
                block: self.is_free(j),
            };
            Some(residual(counts.get(j - 1)?, at.at(j), &weights, free))
        };
        let blocks = (1..self.specs.len()).filter_map(of_block);
        Some(Ok(blocks.fold(0.0, largest)))
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        match &self.plan {
            Ok(_) => Ok(self),
            Err(error) => Err(error.clone()),
        }
    }

    fn unit(&self) -> f64 {
        self.data.total()
    }

    fn mass(&self) -> f64 {
        self.data.total()
    }

    fn tempers(&self) -> bool {
        true
    }

    fn power(&self) -> f64 {
        self.model.temper
    }
}

fn plan<T: Real>(model: &Plca<T>, specs: &[BlockSpec<T>]) -> Result<Plan, FitError> {
    let whole = |j: usize| specs[j].frozen == Frozen::Whole;
    refuse(model.temper != 1.0, "tempering")?;
    refuse(whole(0), "a frozen block of weights")?;
    let weights = pseudo_counts(&specs[0])?;
    let free: Vec<usize> = (1..specs.len())
        .filter(|&j| !whole(j))
        .map(|j| j - 1)
        .collect();
    refuse(free.is_empty(), "a model of free weights alone")?;
    let mut pseudo = vec![None; specs.len() - 1];
    for &mode in &free {
        let counts = pseudo_counts(&specs[mode + 1])?;
        pseudo[mode] = counts.map(|c| c.transpose());
    }
    Ok(Plan {
        components: model.components,
        free,
        pseudo,
        weights: weights.map(|w| w.as_slice().to_vec()),
        given: None,
    })
}

impl<T: Real> Separable<T> for PlcaCounts<'_, T> {
    fn data(&self) -> &dyn Data<T> {
        self.data
    }

    fn plan(&self) -> &Plan {
        self.plan.as_ref().expect("`separable` has shown it")
    }

    fn product(&self, at: &Parameters<T>) -> Product<T> {
        let weights = at.at(0).iter().map(|w| w.to_f64()).collect();
        Product::new(
            at.blocks().skip(1).map(|(_, f)| f.transpose()).collect(),
            weights,
        )
    }

    fn write(&self, product: &Product<T>, at: &mut Parameters<T>) {
        // [SPEC 3] P(z) <- n / Σ n
        let total: f64 = product.scale().iter().sum();
        let ones = vec![1.0; product.scale().len()];
        at.change(|j, block| {
            if j == 0 {
                let weights = block.iter_mut().zip(product.scale());
                weights.for_each(|(w, n)| *w = T::lit(n / total));
            } else if self.is_free(j) {
                transpose_to(product.factor(j - 1), &ones, block);
            }
        });
    }
}

/// Masked multiplicative updates of a matrix: on `W = F_1`, `H = diag(P(z)) F_2ᵀ`, one after the other, mapped back.
#[derive(Debug)]
struct Multiplicative<'a, T: Real>(Em<PlcaCounts<'a, T>>);

impl<T: Real> Algorithm<T> for Multiplicative<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.0.0.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        let model = &self.0.0;
        let mut new = at.clone();
        let mut value = None;
        for mode in 0..2 {
            let measured = measure && mode == 0;
            let wanted = Request::counts(Modes::one(mode));
            let exposure = wanted.value(true).rule(Rule::Exposure);
            let (e, seen) = with_model(&new, |cp| {
                let e = model.data.e_step(cp, &wanted.value(measured))?;
                check_measured(measured.then(|| e.value()), model.data, cp)?;
                Ok::<_, FitError>((e, model.data.e_step(cp, &exposure)?))
            })?;
            let total = model.data.total();
            if measured {
                value = Some(e.value() - total * seen.value().ln());
            }
            if !model.is_free(mode + 1) {
                continue;
            }
            // [SPEC 4] F <- F ∘ C / (s X), s = v_obs / Σ_obs P: the model keeps its scale, and so do rows that were not seen
            let s = T::lit(total / seen.value());
            let mut factor = new.at(mode + 1).clone();
            for ((f, &c), &x) in factor.iter_mut().zip(e.counts(mode)).zip(seen.counts(mode)) {
                if x > T::zero() {
                    *f *= c / s / x;
                }
            }
            let sums = normalise_columns(&mut factor);
            new.change(|j, block| {
                if j == 0 {
                    block.iter_mut().zip(&sums).for_each(|(w, &s)| *w *= s);
                    let total = block.sum();
                    *block /= total;
                } else if j == mode + 1 {
                    // A component that is left no counts keeps its factors; its weight is 0.
                    for (z, _) in sums.iter().enumerate().filter(|&(_, &s)| s > T::zero()) {
                        block.set_column(z, &factor.column(z));
                    }
                }
            });
        }
        new.count();
        *at = new;
        Ok(Stepped {
            value,
            restored: Vec::new(),
        })
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.0.objective(at)
    }

    fn unit(&self) -> f64 {
        self.0.0.unit()
    }

    fn mass(&self) -> f64 {
        self.0.0.mass()
    }

    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError> {
        self.0.extrapolates(at)
    }

    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        self.0.check_start(at)
    }

    fn residual(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Algorithm::residual(&self.0, at)
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        self.0.0.separable()
    }
}

/// Fitted parameters of [`Plca`].
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// use plca_em::engine::PlcaState;
/// let state = PlcaState::new(dvector![0.5, 0.5], vec![dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![1.0, 1.0]])?;
/// assert_eq!(state.factor(0)[(0, 1)], 1.0);
/// assert!(PlcaState::new(dvector![0.5, 0.4], vec![dmatrix![1.0, 1.0]]).is_err());
/// # Ok::<(), plca_fit::engine::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PlcaState<T: Real>(Parameters<T>);

plca_fit::serialised!(PlcaState);

impl<T: Real> PlcaState<T> {
    /// The state of weights `P(z)` and one factor `P(x_j | z)`, `I_j x K`, for every mode.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`].
    pub fn new(weights: DVector<T>, factors: Vec<DMatrix<T>>) -> Result<Self, FitError> {
        let shape: Vec<usize> = factors.iter().map(|f| f.nrows()).collect();
        let specs = specs(&shape, weights.len());
        let weights = DMatrix::from_column_slice(weights.len(), 1, weights.as_slice());
        let blocks = std::iter::once(weights).chain(factors);
        Ok(Self(Parameters::new(&specs, blocks.collect())?))
    }

    /// `P(z)`.
    pub fn weights(&self) -> &[T] {
        self.0.at(0).as_slice()
    }

    /// `P(x_j | z)` of a mode, `I_j x K`.
    ///
    /// # Panics
    ///
    /// If there is no such mode.
    pub fn factor(&self, mode: usize) -> &DMatrix<T> {
        self.0.at(mode + 1)
    }

    /// The factors of all modes.
    pub fn factors(&self) -> impl Iterator<Item = &DMatrix<T>> {
        self.0.blocks().skip(1).map(|(_, factor)| factor)
    }

    /// Explains new data along one mode: the factors of the others are kept, and the weights are those of the new data.
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::DataShape`], [`FitError::Impossible`], and those of a run.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        let along = how.mode(self.factors().count())?;
        let learnt = self.factors().enumerate();
        let learnt = learnt.map(|(j, f)| (j != along).then_some(Factor::Columns(f)));
        let (part, dropped) = possible(data, &learnt.collect::<Vec<_>>(), how.impossible)?;
        let data = part.as_ref().map_or(data, |part| part);
        let mut config = Plca::builder(self.weights().len());
        for j in (0..data.shape().len()).filter(|&j| j != along) {
            config = config.freeze(format!("factor_{j}"));
        }
        let config = config.build()?;
        let algorithm = config.bind(data)?;
        let is_learnt = |j: usize| j > 0 && j - 1 != along;
        let blocks = algorithm.blocks().iter().enumerate();
        let blocks = blocks.map(|(j, spec)| match is_learnt(j) {
            true => self.0.at(j).clone(),
            false => spec.even(),
        });
        let start = begin(&*algorithm, blocks.collect())?;
        let gap = |at: &Parameters<T>| gap_of(data, at, along);
        let (fit, gap) = certify::<Self>(algorithm, start, how, gap)?;
        let keep = |j: usize, block: &mut DMatrix<T>| {
            if is_learnt(j) {
                block.copy_from(self.0.at(j));
            }
        };
        Ok(Explained {
            fit: fit.change(|at| at.change(keep))?,
            gap,
            dropped,
            empty: empty(data, along)?,
        })
    }

    /// Calls `f` with the state as a model for the kernels.
    pub fn with_model<O>(&self, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        with_model(&self.0, f)
    }
}

impl<T: Real> Reconstruct for PlcaState<T> {
    fn shape(&self) -> Vec<usize> {
        self.factors().map(|f| f.nrows()).collect()
    }

    fn components(&self) -> usize {
        self.weights().len()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        self.0.mass() * self.with_model(|cp| cp.cell(index))
    }

    fn reconstruct(&self) -> Result<DenseTensor<T>, FitError> {
        self.with_model(|cp| dense(cp, self.0.mass()))
    }

    fn component(&self, z: usize) -> Result<DenseTensor<T>, FitError> {
        self.with_model(|cp| one_component(cp, z, self.0.mass()))
    }
}

/// The free parameters of PLCA along a mode are the products `P(z) P(x_along | z)`.
fn gap_of<T: Real>(
    data: &dyn Data<T>,
    at: &Parameters<T>,
    along: usize,
) -> Result<Vec<f64>, FitError> {
    let mut free = at.at(along + 1).clone();
    for (mut column, &weight) in free.column_iter_mut().zip(at.at(0).iter()) {
        column *= weight;
    }
    let factors = at.blocks().skip(1).map(|(_, f)| Factor::Columns(f));
    let mut factors: Vec<_> = factors.collect();
    factors[along] = Factor::Columns(&free);
    let model = Cp {
        weights: None,
        factors: &factors,
    };
    let gradient = Request::counts(Modes::one(along)).rule(Rule::Gradient);
    let gradient = data.e_step(&model, &gradient)?.take(along);
    let share = share(data, &factors, along)?;
    let parameters = gradient.iter().zip(&share).zip(&free);
    let parameters = parameters.map(|((&g, &s), &x)| (g, s, x));
    Ok(vec![gap(parameters, data.total())])
}

impl<T: Real> State for PlcaState<T> {
    type Scalar = T;

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let mut blocks = parameters.blocks();
        let k = blocks.next().map_or(0, |(_, weights)| weights.nrows());
        let shape: Vec<usize> = blocks.map(|(_, factor)| factor.nrows()).collect();
        parameters.check(&specs(&shape, k))?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
