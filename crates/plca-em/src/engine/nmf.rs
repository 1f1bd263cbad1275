//! Non-negative matrix factorization under the generalised Kullback-Leibler divergence.
//!
//! ```text
//! V ~ W H,     D = Σ V ln(V / WH) - V + WH
//! ```
//!
//! `D` falls in every iteration, simultaneous or sequential:
//!
//! ```text
//! H <- H ∘ (Wᵀ Q) / (Wᵀ 1),     W <- W ∘ (Q Hᵀ) / (1 Hᵀ),     Q = V / WH
//! ```
//!
//! The simultaneous form takes both from one ratio `Q`, in one pass over the data; the divisors are sums of the partner, of the new `H` for
//! `W`. The sequential form takes `W` first and `H` from a fresh ratio. With hidden cells the sequential form divides by sums over the observed
//! cells, and the simultaneous one replaces hidden cells by what the model expects of them. `[SPEC 3]` `[SPEC 4]`

use nalgebra::{DMatrix, DVector};
use plca_fit::engine::{
    Algorithm, Axis, BlockSpec, Constraint, Counts, Draw, Em, Expectation, Explained, Exposure,
    FitError, Frozen, Model, Parameters, Plan, Product, Reconstruct, Renewed, Sense, Separable,
    Settings, State, Stepped, Transform, Wanted, begin, certify, dense, empty, gaps, one_component,
    possible, refuse, share, transpose_to,
};
use plca_tensor::{
    Cp, Data, DenseTensor, Expected, Factor, Modes, Real, Request, Rule, check_counts,
    normalise_columns,
};

use super::PlcaState;
use super::product::{check_components, check_measured, unsupported};
use crate::Update;
use crate::blocks::{Free, largest, residual};
use crate::expectation::{completed, with_hidden};
use crate::plca::Missing;

/// Settings of KL-NMF, checked; see [`Nmf::builder`]. Its blocks are `w`, `I x K`, and `h`, `K x J`, in the scale of the data.
///
/// ```
/// use plca_em::engine::Nmf;
/// use plca_fit::engine::Model;
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let fit = Nmf::builder(2).build()?.fit(&v, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!(fit.objective() < 1e-3);                                    // two components are enough
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Nmf<T: Real> {
    components: usize,
    settings: Settings<T>,
    update: Option<Update>,
    missing: Option<Missing>,
}

/// Settings of [`Nmf`], not yet checked.
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct NmfBuilder<T: Real>(Nmf<T>);

plca_fit::block_setters!(NmfBuilder);

impl<T: Real> Nmf<T> {
    /// Starts the settings of a model of so many components.
    pub fn builder(components: usize) -> NmfBuilder<T> {
        NmfBuilder(Self {
            components,
            settings: Settings::default(),
            update: None,
            missing: None,
        })
    }

    /// Whether one iteration takes both factors from one ratio.
    fn is_simultaneous(&self, complete: bool) -> bool {
        let missing = self.missing.unwrap_or(match self.update {
            Some(Update::Simultaneous) => Missing::Imputation,
            _ => Missing::Multiplicative,
        });
        match complete {
            true => self.update.unwrap_or_default() == Update::Simultaneous,
            false => missing == Missing::Imputation,
        }
    }
}

impl<T: Real> NmfBuilder<T> {
    /// Sets the form of the updates (default: simultaneous on complete data, sequential where cells are hidden).
    pub fn update(mut self, update: Update) -> Self {
        self.0.update = Some(update);
        self
    }

    /// Sets how hidden cells are treated (default: multiplicative, or imputation with simultaneous updates).
    pub fn missing(mut self, missing: Missing) -> Self {
        self.0.missing = Some(missing);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] without components, [`FitError::Conflict`] for updates and a treatment of hidden cells that do not go together.
    pub fn build(self) -> Result<Nmf<T>, FitError> {
        let mut nmf = self.0;
        check_components(nmf.components)?;
        let what = match (nmf.update, nmf.missing) {
            (Some(Update::Simultaneous), Some(Missing::Multiplicative)) => {
                "masked multiplicative updates have the sequential form only"
            }
            (Some(Update::Sequential), Some(Missing::Imputation)) => {
                "imputation of hidden cells has the simultaneous form only"
            }
            (_, missing) => {
                // On complete data too: whether a cell is hidden should not change the form of the updates.
                if missing == Some(Missing::Multiplicative) {
                    nmf.update = Some(Update::Sequential);
                }
                return Ok(nmf);
            }
        };
        Err(FitError::Conflict { what: what.into() })
    }
}

impl<T: Real> Model for Nmf<T> {
    type Scalar = T;
    type State = NmfState<T>;
    const NAME: &'static str = "nmf-kl";

    fn components(&self) -> usize {
        self.components
    }

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        check_counts(data)?;
        let &[rows, columns] = data.shape() else {
            let order = data.shape().len();
            return Err(FitError::Conflict {
                what: format!("NMF is for matrices, the data have order {order}"),
            });
        };
        // E[W H] over all cells is K; both factors take half of the scale.
        let cells = rows as f64 * columns as f64;
        let scale = (data.total() / cells / self.components as f64).sqrt();
        let mut specs = specs([rows, columns], self.components);
        for spec in &mut specs {
            spec.draw = Draw::Around(scale);
        }
        self.settings.apply(&mut specs)?;
        let counts = NmfCounts {
            data,
            self_information: data.self_information()?,
            plan: plan(self, &specs),
            specs,
        };
        Ok(match self.is_simultaneous(data.is_complete()) {
            true => Box::new(Em(counts)),
            false => Box::new(Sequential(Em(counts))),
        })
    }
}

/// The blocks of a matrix of this shape.
fn specs<T: Real>([rows, columns]: [usize; 2], k: usize) -> Vec<BlockSpec<T>> {
    let rates = |name, shape, components| BlockSpec {
        constraint: Constraint::NonNegative,
        ..BlockSpec::simplex(name, shape, components)
    };
    vec![
        rates("w", (rows, k), Axis::Columns),
        rates("h", (k, columns), Axis::Rows),
    ]
}

fn plan<T: Real>(model: &Nmf<T>, specs: &[BlockSpec<T>]) -> Result<Plan, FitError> {
    for spec in specs {
        let some = matches!(spec.frozen, Frozen::Components(_));
        refuse(some, &format!("frozen components of `{}`", spec.name))?;
        refuse(
            spec.prior.is_some(),
            &format!("the prior on `{}`", spec.name),
        )?;
    }
    let free: Vec<usize> = (0..2).filter(|&j| specs[j].frozen == Frozen::No).collect();
    refuse(free.is_empty(), "a model without a free block")?;
    Ok(Plan {
        components: model.components,
        free,
        pseudo: vec![None, None],
        weights: None,
        given: None,
    })
}

fn with_model<T: Real, O>(at: &Parameters<T>, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
    f(&Cp {
        weights: None,
        factors: &[Factor::Columns(at.at(0)), Factor::Rows(at.at(1))],
    })
}

/// KL-NMF on data.
#[derive(Debug)]
struct NmfCounts<'a, T: Real> {
    data: &'a dyn Data<T>,
    /// `Σ V ln V`.
    self_information: f64,
    specs: Vec<BlockSpec<T>>,
    /// How it separates, or what is in the way.
    plan: Result<Plan, FitError>,
}

impl<T: Real> NmfCounts<'_, T> {
    fn divergence(&self, ln_lik: f64, mass: f64) -> f64 {
        // [SPEC 0] [SPEC 4] D = Σ_obs V ln(V/Y) - V + Y
        self.self_information - ln_lik - self.data.total() + mass
    }

    /// The model's mass in the observed cells.
    fn seen_mass(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        with_model(at, |cp| {
            if self.data.is_complete() {
                return Ok(cp.mass());
            }
            let exposure = Request::counts(Modes::NONE)
                .value(true)
                .rule(Rule::Exposure);
            Ok(self.data.e_step(cp, &exposure)?.value())
        })
    }

    fn free(&self) -> Modes {
        (0..2)
            .filter(|&j| self.specs[j].frozen != Frozen::Whole)
            .collect()
    }

    /// Expected counts, with hidden cells imputed; the model's mass in the observed cells, if any is hidden.
    fn counts(
        &self,
        at: &Parameters<T>,
        modes: Modes,
        value: bool,
    ) -> Result<(Expected<T>, Option<f64>), FitError> {
        let wanted = Request::counts(modes).value(value);
        with_model(at, |cp| {
            let e = self.data.e_step(cp, &wanted)?;
            let ln_lik = value.then(|| e.value());
            if self.data.is_complete() || modes.is_empty() {
                return Ok((e, None));
            }
            let exposure = Request::counts(modes.with(0))
                .value(true)
                .rule(Rule::Exposure);
            let seen = self.data.e_step(cp, &exposure)?;
            // [SPEC 4] s = v_obs / Σ_obs P
            let s = T::lit(self.data.total() / seen.value());
            let mass = seen.value();
            Ok((with_hidden(e, &seen, cp, s, ln_lik), Some(mass)))
        })
    }
}

impl<T: Real> Expectation<T> for NmfCounts<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let modes: Modes = (0..2).filter(|&j| wanted.blocks[j]).collect();
        let (mut e, mass) = self.counts(at, modes, wanted.value)?;
        let value = match (wanted.value, mass) {
            (false, _) => None,
            (true, Some(mass)) => Some(self.divergence(e.value(), mass)),
            (true, None) => Some(self.divergence(e.value(), self.seen_mass(at)?)),
        };
        let blocks = (0..2)
            .map(|j| modes.contains(j).then(|| e.take(j)))
            .collect();
        Ok(Counts { blocks, value })
    }

    fn exposure(&self, block: usize, renewed: Renewed<'_, T>) -> Option<Exposure<T>> {
        Some(Exposure::PerComponent(match block {
            // [SI eq. 80] [SPEC 3] W' = (W ∘ Q Hᵀ) diag(H' 1)⁻¹, the new H'
            0 => Factor::Rows(renewed.at(1)).component_sums(),
            // [SI eq. 79] [SPEC 3] H' = diag(1ᵀW)⁻¹ (H ∘ Wᵀ Q)
            _ => Factor::Columns(renewed.at(0)).component_sums(),
        }))
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        Ok(with_model(at, |cp| unsupported(self.data, cp))?)
    }

    /// That of PLCA at the state's image, in which a weight is the share of a component in the mass of the completed data. `[SPEC 3]`
    fn residual(&self, at: &Parameters<T>) -> Option<Result<f64, FitError>> {
        let (weights, factors) = image(at.at(0), at.at(1));
        let columns: Vec<_> = factors.iter().map(Factor::Columns).collect();
        let cp = Cp {
            weights: Some(weights.as_slice()),
            factors: &columns,
        };
        let e = match completed(self.data, &cp, self.free(), false) {
            Ok(e) => e,
            Err(error) => return Some(Err(error.into())),
        };
        let mass = with_model(at, |cp| cp.mass());
        let mut worst: f64 = 0.0;
        for (mode, factor) in factors.iter().enumerate() {
            let Some(counts) = e.get(mode) else { continue };
            // [SPEC 3] W H = v P where it is the model of the data: P(z) is the mass of a component beside that of the completed data
            let total: f64 = counts.iter().map(|c| c.to_f64()).sum();
            let weights = weights.map(|w| T::lit(w.to_f64() * mass / total));
            let free = Free {
                weights: true,
                block: true,
            };
            worst = largest(worst, residual(counts, factor, &weights, free));
        }
        Some(Ok(worst))
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        match &self.plan {
            Ok(_) => Ok(self),
            Err(error) => Err(error.clone()),
        }
    }

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    fn unit(&self) -> f64 {
        self.data.total()
    }
}

impl<T: Real> Separable<T> for NmfCounts<'_, T> {
    fn data(&self) -> &dyn Data<T> {
        self.data
    }

    fn self_information(&self) -> Result<f64, FitError> {
        Ok(self.self_information)
    }

    fn plan(&self) -> &Plan {
        self.plan.as_ref().expect("`separable` has shown it")
    }

    fn product(&self, at: &Parameters<T>) -> Product<T> {
        let k = at.at(0).ncols();
        Product::new(vec![at.at(0).transpose(), at.at(1).clone()], vec![1.0; k])
    }

    fn write(&self, product: &Product<T>, at: &mut Parameters<T>) {
        let total = self.data.total();
        if self.specs[1].frozen == Frozen::Whole {
            // What the rows of H sum to stays with them.
            let n = scaled(product, total, &Factor::Rows(at.at(1)).component_sums());
            return at.change(|j, block| {
                if j == 0 {
                    transpose_to(product.factor(0), &n, block);
                }
            });
        }
        // [SI eq. 97] [SPEC 3] W = F_1 D, H = v D⁻¹ diag(P(z)) F_2ᵀ
        let sums: Vec<T> = Factor::Columns(at.at(0)).component_sums();
        let d: Vec<f64> = sums.iter().map(|d| d.to_f64()).collect();
        let n = scaled(product, total, &sums);
        at.change(|j, block| match j {
            0 if self.specs[0].frozen == Frozen::No => {
                transpose_to(product.factor(0), &d, block);
            }
            1 => product.weigh(1, &n, block),
            _ => {}
        });
    }

    fn value(&self, ln_lik: f64) -> f64 {
        let total = self.data.total();
        self.divergence(ln_lik + total * total.ln(), total)
    }
}

/// `v n / d`, 0 where a component has no mass.
fn scaled<T: Real>(product: &Product<T>, total: f64, sums: &[T]) -> Vec<f64> {
    let pairs = product.scale().iter().zip(sums);
    let scaled = pairs.map(|(n, d)| match *d > T::zero() {
        true => total * n / d.to_f64(),
        false => 0.0,
    });
    scaled.collect()
}

/// The sequential form: `W`, then `H` from a fresh ratio.
#[derive(Debug)]
struct Sequential<'a, T: Real>(Em<NmfCounts<'a, T>>);

impl<T: Real> Sequential<'_, T> {
    /// Renews one factor; with `measure`, the divergence before that.
    fn sweep(
        &self,
        at: &mut Parameters<T>,
        mode: usize,
        measure: bool,
    ) -> Result<Option<f64>, FitError> {
        let NmfCounts { data, specs, .. } = &self.0.0;
        let free = specs[mode].frozen != Frozen::Whole;
        if !free && !measure {
            return Ok(None);
        }
        let wanted = Request::counts(Modes::one(mode)).value(measure);
        let mut e = with_model(at, |cp| {
            let e = data.e_step(cp, &wanted)?;
            check_measured(measure.then(|| e.value()), *data, cp)?;
            Ok::<_, FitError>(e)
        })?;
        let exposure = wanted.value(true).rule(Rule::Exposure);
        let mut seen = match data.is_complete() {
            true => None,
            false => Some(with_model(at, |cp| data.e_step(cp, &exposure))?),
        };
        let value = measure.then(|| {
            let seen = seen.as_ref().map(|seen| seen.value());
            let mass = seen.unwrap_or_else(|| with_model(at, |cp| cp.mass()));
            self.0.0.divergence(e.value(), mass)
        });
        if free {
            let exposure = match &mut seen {
                // [SPEC 4] F <- F ∘ C / X; a wholly hidden row or column keeps its value
                Some(seen) => Exposure::PerEntry(seen.take(mode)),
                // [LS eq. 5] [LV eq. 1] [SPEC 3] from a fresh ratio, divided by the current sums of the partner
                None => Exposure::PerComponent(match mode {
                    0 => Factor::Rows(at.at(1)).component_sums(),
                    _ => Factor::Columns(at.at(0)).component_sums(),
                }),
            };
            let new = specs[mode].divided(e.take(mode), at.at(mode), exposure);
            at.change(|j, block| {
                if j == mode {
                    block.copy_from(&new);
                }
            });
        }
        Ok(value)
    }
}

impl<T: Real> Algorithm<T> for Sequential<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.0.0.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        // Half an iteration is none.
        let mut new = at.clone();
        let value = self.sweep(&mut new, 0, measure)?;
        self.sweep(&mut new, 1, false)?;
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

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    fn unit(&self) -> f64 {
        self.0.0.unit()
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

/// The weights and factors of the PLCA that a product stands for.
fn image<T: Real>(w: &DMatrix<T>, h: &DMatrix<T>) -> (DVector<T>, Vec<DMatrix<T>>) {
    let mut factors = vec![w.clone(), h.transpose()];
    // [SPEC 3] F_1 = W D⁻¹, P(z) = D H 1 / c, F_2 = (diag(H 1)⁻¹ H)ᵀ
    let sums: Vec<Vec<T>> = factors.iter_mut().map(normalise_columns).collect();
    let mut weights = DVector::from_fn(w.ncols(), |z, _| sums[0][z] * sums[1][z]);
    for (factor, sums) in factors.iter_mut().zip(&sums) {
        let uniform = T::one() / T::lit(factor.nrows() as f64);
        for z in (0..sums.len()).filter(|&z| sums[z] <= T::zero()) {
            factor.column_mut(z).fill(uniform);
        }
    }
    let total = weights.sum();
    if total > T::zero() {
        weights /= total;
    }
    (weights, factors)
}

/// Fitted parameters of [`Nmf`].
#[derive(Clone, Debug, PartialEq)]
pub struct NmfState<T: Real>(Parameters<T>);

plca_fit::serialised!(NmfState);

impl<T: Real> NmfState<T> {
    /// The state of `W`, `I x K`, and `H`, `K x J`.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`].
    pub fn new(w: DMatrix<T>, h: DMatrix<T>) -> Result<Self, FitError> {
        let specs = specs([w.nrows(), h.ncols()], w.ncols());
        Ok(Self(Parameters::new(&specs, vec![w, h])?))
    }

    /// `W`, `I x K`.
    pub fn w(&self) -> &DMatrix<T> {
        self.0.at(0)
    }

    /// `H`, `K x J`.
    pub fn h(&self) -> &DMatrix<T> {
        self.0.at(1)
    }

    /// Calls `f` with the state as a model for the kernels.
    pub fn with_model<O>(&self, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
        with_model(&self.0, f)
    }

    /// Explains new data along one mode: the factor of the other is kept.
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::DataShape`], [`FitError::Impossible`], and those of a run.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        let along = how.mode(2)?;
        let both = [Factor::Columns(self.w()), Factor::Rows(self.h())];
        let mut learnt = both.map(Some);
        learnt[along] = None;
        let (part, dropped) = possible(data, &learnt, how.impossible)?;
        let data = part.as_ref().map_or(data, |part| part);
        let (n, k) = (data.shape()[along], self.w().ncols());
        let ones = DMatrix::from_element(k, n, T::one());
        let mut factors = both;
        factors[along] = Factor::Rows(&ones);
        let (totals, share) = (data.marginal(along)?, share(data, &factors, along)?);
        // Every observation starts with a model of its own mass: from there on the gap is certified.
        let uniform = |y: usize| {
            let unit = share.row(y).sum();
            match unit > T::zero() {
                true => T::lit(totals[y]) / unit,
                false => T::one(),
            }
        };
        let (name, blocks) = match along {
            0 => (
                "h",
                vec![DMatrix::from_fn(n, k, |y, _| uniform(y)), self.h().clone()],
            ),
            _ => (
                "w",
                vec![self.w().clone(), DMatrix::from_fn(k, n, |_, y| uniform(y))],
            ),
        };
        let config = Nmf::builder(k).freeze(name).build()?;
        let algorithm = config.bind(data)?;
        let start = begin(&*algorithm, blocks)?;
        let (fit, gap) = certify::<Self>(algorithm, start, how, |at| match along {
            1 => gaps(data, [at.at(0), at.at(1)], along, &totals),
            _ => {
                let [fixed, free] = [at.at(1).transpose(), at.at(0).transpose()];
                gaps(data, [&fixed, &free], along, &totals)
            }
        })?;
        Ok(Explained {
            fit,
            gap,
            dropped,
            empty: empty(data, along)?,
        })
    }

    /// The PLCA whose distribution the product has, up to its mass. Components without mass get uniform factors.
    ///
    /// # Errors
    ///
    /// [`FitError::Sum`] for a product without mass.
    pub fn to_plca(&self) -> Result<PlcaState<T>, FitError> {
        let (weights, factors) = image(self.w(), self.h());
        PlcaState::new(weights, factors)
    }

    /// The product of mass `v` that a PLCA of a matrix stands for, the columns of `W` summing to `d`.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for a PLCA of another order, [`FitError::Shape`] for another number of sums than components, [`FitError::Empty`] where
    /// a component with weight is to sum to 0, [`FitError::Value`].
    pub fn from_plca(plca: &PlcaState<T>, d: &[T], v: T) -> Result<Self, FitError> {
        let factors: Vec<_> = plca.factors().collect();
        let &[first, second] = &factors[..] else {
            return Err(FitError::Conflict {
                what: format!("NMF is for matrices, the PLCA has order {}", factors.len()),
            });
        };
        let weights = plca.weights();
        if d.len() != weights.len() {
            return Err(FitError::Shape {
                block: "d".into(),
                got: (d.len(), 1),
                expected: (weights.len(), 1),
            });
        }
        let (mut w, mut h) = (first.clone(), second.transpose());
        for (z, (&d, &weight)) in d.iter().zip(weights).enumerate() {
            if d <= T::zero() && weight > T::zero() {
                let block = "w".into();
                return Err(FitError::Empty { block, column: z });
            }
            w.column_mut(z).iter_mut().for_each(|x| *x *= d);
            // [SI eq. 97] [SPEC 3] H = v D⁻¹ diag(P(z)) F_2ᵀ
            let scale = match weight > T::zero() {
                true => v * weight / d,
                false => T::zero(),
            };
            h.row_mut(z).iter_mut().for_each(|x| *x *= scale);
        }
        Self::new(w, h)
    }
}

impl<T: Real> Reconstruct for NmfState<T> {
    fn shape(&self) -> Vec<usize> {
        vec![self.w().nrows(), self.h().ncols()]
    }

    fn components(&self) -> usize {
        self.w().ncols()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        self.with_model(|cp| cp.cell(index))
    }

    fn reconstruct(&self) -> Result<DenseTensor<T>, FitError> {
        self.with_model(|cp| dense(cp, 1.0))
    }

    fn component(&self, z: usize) -> Result<DenseTensor<T>, FitError> {
        self.with_model(|cp| one_component(cp, z, 1.0))
    }
}

impl<T: Real> State for NmfState<T> {
    type Scalar = T;

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let shapes: Vec<_> = parameters.blocks().map(|(_, b)| b.shape()).collect();
        let (sizes, k) = match shapes[..] {
            [(rows, k), (_, columns)] => ([rows, columns], k),
            _ => ([0, 0], 0),
        };
        parameters.check(&specs(sizes, k))?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
