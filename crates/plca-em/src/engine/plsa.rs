//! Asymmetric PLSA: every given index `y` is a mixture of the components' distributions over the explained mode.
//!
//! ```text
//! P(x | y) = Σ_z P(x | z) P(z | y)
//! ```
//!
//! The likelihood `Σ V[x,y] ln P(x | y)` rises in every iteration of expectation-maximisation:
//!
//! ```text
//! E-step:  C[x,y,z] = V[x,y] P(z | x,y),      P(z | x,y) = P(x | z) P(z | y) / P(x | y)
//! M-step:  P(x | z) ∝ Σ_y C[x,y,z],           P(z | y) ∝ Σ_x C[x,y,z]
//! ```
//!
//! Hidden cells are replaced by what the model expects of them, of every `y` in the scale of what was observed of it. `[LV eq. 10]`
//! `[SPEC 2]`

use nalgebra::DMatrix;
use plca_fit::engine::{
    Algorithm, Axis, BlockSpec, Counts, Draw, Em, Expectation, Explained, FitError, Frozen, Model,
    Parameters, Plan, Product, Reconstruct, Separable, Settings, State, Transform, Wanted, begin,
    certify, dense, empty, gaps, one_component, possible, pseudo_counts, refuse, transpose_to,
};
use plca_tensor::parallel::for_each_part;
use plca_tensor::{
    Cp, Data, DenseTensor, Expected, Factor, Modes, Real, Request, Rule, check_counts,
};

use super::product::{check_components, check_power, power, unsupported};
use crate::Given;
use crate::expectation::add_hidden;

/// Settings of PLSA, checked; see [`Plsa::builder`]. Its blocks are `basis`, `P(x | z)` as columns of length `I`, `mixture`, `P(z | y)` as
/// columns of length `K`, and `marginal`, `P(y)`, which comes from the data.
///
/// ```
/// use plca_em::engine::Plsa;
/// use plca_fit::engine::Model;
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let fit = Plsa::builder(2).build()?.fit(&v, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert_eq!(fit.state().marginal(), [0.5, 0.5]);                     // both columns sum to 3
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plsa<T: Real> {
    components: usize,
    given: Given,
    settings: Settings<T>,
    temper: f64,
}

/// Settings of [`Plsa`], not yet checked.
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct PlsaBuilder<T: Real>(Plsa<T>);

plca_fit::block_setters!(PlsaBuilder);

impl<T: Real> Plsa<T> {
    /// Starts the settings of a model of so many components.
    pub fn builder(components: usize) -> PlsaBuilder<T> {
        PlsaBuilder(Self {
            components,
            given: Given::default(),
            settings: Settings::default(),
            temper: 1.0,
        })
    }

    /// Which mode is given.
    pub fn given(&self) -> Given {
        self.given
    }
}

impl<T: Real> PlsaBuilder<T> {
    /// Sets the mode that is given (default: the columns).
    pub fn given(mut self, given: Given) -> Self {
        self.0.given = given;
        self
    }

    /// Raises both blocks to a power in `(0, 1]` in the E-step (default 1: tempered EM, which flattens the posteriors).
    pub fn temper(mut self, power: f64) -> Self {
        self.0.temper = power;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] without components or for a tempering power outside `(0, 1]`.
    pub fn build(self) -> Result<Plsa<T>, FitError> {
        check_components(self.0.components)?;
        check_power(self.0.temper)?;
        Ok(self.0)
    }
}

impl<T: Real> Model for Plsa<T> {
    type Scalar = T;
    type State = PlsaState<T>;
    const NAME: &'static str = "plsa";

    fn components(&self) -> usize {
        self.components
    }

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        check_counts(data)?;
        let &[_, _] = data.shape() else {
            let order = data.shape().len();
            return Err(FitError::Conflict {
                what: format!("PLSA is for matrices, the data have order {order}"),
            });
        };
        let marginal = data.marginal(self.given.mode())?;
        let sizes = [self.given.explained(), self.given.mode()].map(|mode| data.shape()[mode]);
        let mut specs = specs(sizes, self.components);
        let total: f64 = marginal.iter().sum();
        // [SPEC 2] P(x2) = colsum(V) / v
        specs[2].draw = Draw::Data(marginal.iter().map(|m| m / total).collect());
        self.settings.apply(&mut specs[..2])?;
        let plan = plan(self, &specs);
        Ok(Box::new(Em(PlsaCounts {
            model: self,
            data,
            marginal,
            specs,
            plan,
        })))
    }
}

/// The blocks of PLSA for so many explained and given indices.
fn specs<T: Real>([explained, given]: [usize; 2], k: usize) -> Vec<BlockSpec<T>> {
    let mut marginal = BlockSpec::simplex("marginal", (given, 1), Axis::None);
    marginal.frozen = Frozen::Whole;
    vec![
        BlockSpec::simplex("basis", (explained, k), Axis::Columns),
        BlockSpec::simplex("mixture", (k, given), Axis::Rows),
        marginal,
    ]
}

fn plan<T: Real>(model: &Plsa<T>, specs: &[BlockSpec<T>]) -> Result<Plan, FitError> {
    let (explained, given) = (model.given.explained(), model.given.mode());
    let whole = |j: usize| specs[j].frozen == Frozen::Whole;
    refuse(model.temper != 1.0, "tempering")?;
    refuse(whole(1), "a frozen block `mixture`")?;
    let mut pseudo = vec![None, None];
    let mut free = vec![given];
    if !whole(0) {
        free.insert(0, explained);
        pseudo[explained] = pseudo_counts(&specs[0])?.map(|c| c.transpose());
    }
    pseudo[given] = pseudo_counts(&specs[1])?;
    Ok(Plan {
        components: model.components,
        free,
        pseudo,
        weights: None,
        given: Some(given),
    })
}

fn with_model<T: Real, O>(
    given: Given,
    basis: &DMatrix<T>,
    mixture: &DMatrix<T>,
    f: impl FnOnce(&Cp<'_, T>) -> O,
) -> O {
    let mut factors = [Factor::Columns(basis), Factor::Rows(mixture)];
    if given == Given::Rows {
        factors.reverse();
    }
    f(&Cp {
        weights: None,
        factors: &factors,
    })
}

/// PLSA on data.
#[derive(Debug)]
struct PlsaCounts<'a, T: Real> {
    model: &'a Plsa<T>,
    data: &'a dyn Data<T>,
    /// Sums of the data over the explained mode.
    marginal: Vec<f64>,
    specs: Vec<BlockSpec<T>>,
    /// How it separates, or what is in the way.
    plan: Result<Plan, FitError>,
}

impl<T: Real> PlsaCounts<'_, T> {
    /// Expected counts of the modes, with hidden cells imputed.
    fn counts(
        &self,
        basis: &DMatrix<T>,
        mixture: &DMatrix<T>,
        modes: Modes,
        value: bool,
    ) -> Result<Expected<T>, FitError> {
        let request = Request::counts(modes).value(value);
        let given = self.model.given;
        let e = with_model(given, basis, mixture, |cp| self.data.e_step(cp, &request))?;
        match self.data.is_complete() {
            true => Ok(e),
            false => self.impute(e, basis, mixture, modes, value),
        }
    }

    fn impute(
        &self,
        mut e: Expected<T>,
        basis: &DMatrix<T>,
        mixture: &DMatrix<T>,
        modes: Modes,
        value: bool,
    ) -> Result<Expected<T>, FitError> {
        let given = self.model.given;
        let exposure = |mode| Request::counts(Modes::one(mode)).rule(Rule::Exposure);
        let mut seen = with_model(given, basis, mixture, |cp| {
            self.data.e_step(cp, &exposure(given.mode()))
        })?;
        let mut seen = seen.take(given.mode());
        // [SPEC 4] one scale v_obs(y) / Σ_obs P(x | y) for every y
        let mass = |column: nalgebra::DVectorView<'_, T>| column.iter().map(|x| x.to_f64()).sum();
        let masses: Vec<f64> = seen.column_iter().map(mass).collect();
        let value = value.then(|| {
            let logs = self.marginal.iter().zip(&masses);
            let logs = logs.filter(|&(&v, _)| v > 0.0).map(|(v, m)| v * m.ln());
            e.value() - logs.sum::<f64>()
        });
        let mut scaled = mixture.clone();
        for (y, (&v, &mass)) in self.marginal.iter().zip(&masses).enumerate() {
            let s = T::lit(if mass > 0.0 { v / mass } else { 0.0 });
            scaled.column_mut(y).iter_mut().for_each(|x| *x *= s);
            seen.column_mut(y).iter_mut().for_each(|x| *x *= s);
        }
        let mut counts = vec![None, None];
        with_model(given, basis, &scaled, |cp| {
            if modes.contains(given.mode()) {
                let mut own = e.take(given.mode());
                add_hidden(&mut own, &seen, cp, given.mode(), T::one());
                counts[given.mode()] = Some(own);
            }
            let explained = given.explained();
            if modes.contains(explained) {
                let seen = self.data.e_step(cp, &exposure(explained))?;
                let mut own = e.take(explained);
                add_hidden(&mut own, seen.counts(explained), cp, explained, T::one());
                counts[explained] = Some(own);
            }
            Ok::<_, FitError>(())
        })?;
        Ok(Expected::new(counts, value))
    }
}

impl<T: Real> Expectation<T> for PlsaCounts<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let order = [self.model.given.explained(), self.model.given.mode()];
        let modes: Modes = (0..2)
            .filter(|&j| wanted.blocks[j])
            .map(|j| order[j])
            .collect();
        let (basis, mixture) = (at.at(0), at.at(1));
        let (mut e, value) = if at.power() == 1.0 || modes.is_empty() {
            let e = self.counts(basis, mixture, modes, wanted.value)?;
            let value = wanted.value.then(|| e.value());
            (e, value)
        } else {
            // [HOFMANN alg. TEM] [SPEC 1.4] both factors of the asymmetric model
            let b = T::lit(at.power());
            let e = self.counts(&power(basis, b), &power(mixture, b), modes, false)?;
            let untempered = || self.counts(basis, mixture, Modes::NONE, true);
            let value = wanted.value.then(untempered).transpose()?;
            (e, value.map(|e| e.value()))
        };
        // [LV eq. 10] [SPEC 2] W <- W ∘ (Q Gᵀ), G <- G ∘ (Wᵀ Q), columns normalised
        let counts = order.map(|mode| modes.contains(mode).then(|| e.take(mode)));
        Ok(Counts {
            blocks: counts.into_iter().chain([None]).collect(),
            value,
        })
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let (basis, mixture) = (at.at(0), at.at(1));
        let first = |cp: &Cp<'_, T>| unsupported(self.data, cp);
        Ok(with_model(self.model.given, basis, mixture, first)?)
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

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        vec![("given", vec![self.model.given.mode() as f64])]
    }

    fn tempers(&self) -> bool {
        true
    }

    fn power(&self) -> f64 {
        self.model.temper
    }
}

impl<T: Real> Separable<T> for PlsaCounts<'_, T> {
    fn data(&self) -> &dyn Data<T> {
        self.data
    }

    fn plan(&self) -> &Plan {
        self.plan.as_ref().expect("`separable` has shown it")
    }

    fn product(&self, at: &Parameters<T>) -> Product<T> {
        let mut blocks = vec![at.at(0).transpose(), at.at(1).clone()];
        if self.model.given == Given::Rows {
            blocks.reverse();
        }
        Product::new(blocks, vec![1.0; self.model.components])
    }

    fn write(&self, product: &Product<T>, at: &mut Parameters<T>) {
        let (given, k) = (self.model.given, self.model.components);
        let pseudo = Separable::plan(self).pseudo[given.mode()].as_ref();
        at.change(|j, block| match j {
            0 if self.specs[0].frozen != Frozen::Whole => {
                transpose_to(product.factor(given.explained()), &vec![1.0; k], block);
            }
            1 => mix(product.factor(given.mode()), product.scale(), pseudo, block),
            _ => {}
        });
    }
}

/// Columns of shares `P(z | y)` that one thread takes at a time.
const PART_COLUMNS: usize = 512;

/// Writes the mixtures that a factor of the given mode stands for.
fn mix<T: Real>(
    factor: &DMatrix<T>,
    scale: &[f64],
    pseudo: Option<&DMatrix<f64>>,
    mixture: &mut DMatrix<T>,
) {
    let k = scale.len();
    for_each_part(mixture.as_mut_slice(), PART_COLUMNS * k, |part, columns| {
        for (at, mixture) in columns.chunks_exact_mut(k).enumerate() {
            let y = part * PART_COLUMNS + at;
            let column = factor.column(y);
            let shares = column.iter().zip(scale);
            let shares = shares.map(|(f, n)| f.to_f64() * n);
            let total: f64 = shares.clone().sum();
            // [SPEC 2] a column without data keeps its mixture, or has its prior's
            if total > 0.0 {
                let entries = mixture.iter_mut().zip(shares);
                entries.for_each(|(m, x)| *m = T::lit(x / total));
            } else if let Some(counts) = pseudo.map(|c| c.column(y)) {
                let all = counts.sum();
                if all > 0.0 {
                    let entries = mixture.iter_mut().zip(counts.iter());
                    entries.for_each(|(m, c)| *m = T::lit(c / all));
                }
            }
        }
    });
}

/// Fitted parameters of [`Plsa`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlsaState<T: Real>(Parameters<T>);

plca_fit::serialised!(PlsaState);

impl<T: Real> PlsaState<T> {
    /// The state of a basis `P(x | z)`, `I x K`, mixtures `P(z | y)`, `K x J`, and the shares `P(y)` of the data.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`].
    pub fn new(
        given: Given,
        basis: DMatrix<T>,
        mixture: DMatrix<T>,
        marginal: Vec<T>,
    ) -> Result<Self, FitError> {
        let specs = specs([basis.nrows(), mixture.ncols()], basis.ncols());
        let marginal = DMatrix::from_vec(marginal.len(), 1, marginal);
        let parameters = Parameters::new(&specs, vec![basis, mixture, marginal])?;
        let given = vec![given.mode() as f64];
        Ok(Self(parameters.with_fact("given", given)))
    }

    /// Which mode is given.
    pub fn given(&self) -> Given {
        match self.0.fact("given") {
            Some([0.0]) => Given::Rows,
            _ => Given::Columns,
        }
    }

    /// `P(x | z)`, `I x K`.
    pub fn basis(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// `P(z | y)`, `K x J`.
    pub fn mixture(&self) -> &DMatrix<T> {
        self.0.at(1)
    }

    /// `P(y)`.
    pub fn marginal(&self) -> &[T] {
        self.0.at(2).as_slice()
    }

    /// Explains new observations by the learnt basis.
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`], [`FitError::Impossible`], [`FitError::Conflict`] for another mode than the given one, and those of a run.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        let (given, k) = (self.given(), self.basis().ncols());
        let along = given.mode();
        if how.along.is_some_and(|mode| mode != along) {
            return Err(FitError::Conflict {
                what: format!("the observations of this PLSA lie along mode {along}"),
            });
        }
        let mut learnt = [None, None];
        learnt[given.explained()] = Some(Factor::Columns(self.basis()));
        let (part, dropped) = possible(data, &learnt, how.impossible)?;
        let data = part.as_ref().map_or(data, |part| part);
        let config = Plsa::builder(k).given(given).freeze("basis").build()?;
        let algorithm = config.bind(data)?;
        let specs = algorithm.blocks();
        let [mixture, marginal] = [specs[1].even(), specs[2].even()];
        let totals = data.marginal(along)?;
        let start = begin(&*algorithm, vec![self.basis().clone(), mixture, marginal])?;
        let gap = |at: &Parameters<T>| gaps(data, [at.at(0), at.at(1)], along, &totals);
        let (fit, gap) = certify::<Self>(algorithm, start, how, gap)?;
        let keep = |j: usize, block: &mut DMatrix<T>| {
            if j == 0 {
                block.copy_from(self.basis());
            }
        };
        Ok(Explained {
            fit: fit.change(|at| at.change(keep))?,
            gap,
            dropped,
            empty: empty(data, along)?,
        })
    }

    /// Calls `f` with `P(x | y)` as a model for the kernels.
    pub fn with_model<O>(&self, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        with_model(self.given(), self.basis(), self.mixture(), f)
    }
}

impl<T: Real> PlsaState<T> {
    /// Calls `f` with `P(x | y) P(y)` as a model for the kernels.
    fn with_joint<O>(&self, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        let mut joint = self.mixture().clone();
        for (mut column, &share) in joint.column_iter_mut().zip(self.marginal()) {
            column *= share;
        }
        with_model(self.given(), self.basis(), &joint, f)
    }
}

impl<T: Real> Reconstruct for PlsaState<T> {
    fn shape(&self) -> Vec<usize> {
        let mut shape = vec![self.basis().nrows(), self.mixture().ncols()];
        if self.given() == Given::Rows {
            shape.reverse();
        }
        shape
    }

    fn components(&self) -> usize {
        self.basis().ncols()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        let share = self.marginal()[index[self.given().mode()]];
        self.0.mass() * share.to_f64() * self.with_model(|cp| cp.cell(index))
    }

    fn reconstruct(&self) -> Result<DenseTensor<T>, FitError> {
        self.with_joint(|cp| dense(cp, self.0.mass()))
    }

    fn component(&self, z: usize) -> Result<DenseTensor<T>, FitError> {
        self.with_joint(|cp| one_component(cp, z, self.0.mass()))
    }
}

impl<T: Real> State for PlsaState<T> {
    type Scalar = T;

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let shapes: Vec<_> = parameters.blocks().map(|(_, b)| b.shape()).collect();
        let (sizes, k) = match shapes[..] {
            [(explained, k), (_, given), _] => ([explained, given], k),
            _ => ([0, 0], 0),
        };
        parameters.check(&specs(sizes, k))?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
