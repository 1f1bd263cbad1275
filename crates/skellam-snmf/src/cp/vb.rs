//! Skellam factorization of tensors by variational Bayes.

use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_fit::FileLayout::{self, Matrix, Sides, Vector};
use plca_fit::{
    Axis, BlockSpec, Blocks, Constraint, Counts, Em, Expectation, FitError, Frozen, Parameters,
    Reconstruct, State, Wanted,
};
use plca_priors::Components;
use plca_tensor::{Data, Real, SignedWanted};
use rand::Rng;

use super::counts::{drawn, modes};
use super::others::Others;
use super::slabs::Slabs;
use super::unfold::Folding;
use super::{SignedCp, SignedCpState, cp_setters};
use crate::posterior::{check_held, least_shape};
use crate::prior::{Parts, check_shape};
use crate::rule::Split;
use crate::sides::{split, stack};
use crate::signed::{bayesian, law_setters};
use crate::vb::shapes;
use crate::{Entries, Factors, Posterior, Prior, Replicates};

/// Factorization of a tensor of either sign by variational Bayes: the model of [`SignedCp`], of which a distribution over its factors is fitted instead of one
/// value of them.
///
/// ```math
/// \begin{aligned}
/// & q(T[\cdot,k,\pm]) = \mathrm{Dirichlet}(\hat\alpha_k), \qquad q(B_j[\cdot,k]) = \mathrm{Dirichlet}(\hat\beta_{jk}),
///   \qquad q(w_k) = \mathrm{Gamma}(\hat s, \text{rate } \hat b) \\
/// & \text{maximise} \quad L_\mathrm{fit}(V; \tilde L^+, \tilde L^-) + \sum_k \tilde w_k \left( \sum_{f,s} \tilde T \right) \prod_j \sum_i \tilde B_j
///   - \sum \frac{\hat s}{\hat b} - \mathrm{KL}(q \,\Vert\, p)
/// \end{aligned}
/// ```
///
/// The tilde is the geometric mean, `e^E[ln x]`. The blocks are `atoms_shape`, `weights_shape`, `weights_rate` and `factor_j_shape`, laid out as the blocks of
/// [`SignedCp`]; a factor that carries the scale has a shape and a rate for every entry, `factor_j_shape` and `factor_j_rate`, and there are no weights. The
/// objective is a lower bound of the log-evidence (ELBO), divided by the number of replicates; no iteration lowers it.
///
/// Cost of an iteration: that of [`SignedCp`], and `e^ψ` of every shape. `[EXT 6]`
///
/// ```
/// use plca_fit::Model;
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// use skellam_snmf::SignedCpVb;
/// let values = vec![2.0, 4.0, 1.0, 2.0, -4.0, -8.0, -2.0, -4.0];       // rank one in every mode
/// let v = DenseTensor::<f64>::new(vec![2, 2, 2], values, Order::RowMajor)?;
/// let fit = SignedCpVb::builder(1).build()?.fit(&v, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!(fit.trace().windows(2).all(|w| w[1].objective >= w[0].objective - 1e-9));
/// assert!(fit.state().means()?.factor(2)[1] > 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SignedCpVb<T: Real>(pub(super) SignedCp<T>);

/// The settings of [`SignedCpVb`], not yet checked.
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct SignedCpVbBuilder<T: Real>(SignedCp<T>);

law_setters!(SignedCpVbBuilder);
plca_fit::freeze_setters!(SignedCpVbBuilder);
cp_setters!(SignedCpVbBuilder, "all shapes 1, all rates 0.001");

const ATOMS: &str = "atoms_shape";

impl<T: Real> SignedCpVb<T> {
    /// Starts the settings of a model with this number of components.
    pub fn builder(components: usize) -> SignedCpVbBuilder<T> {
        let model = SignedCp::builder(components);
        SignedCpVbBuilder(model.gamma(Entries::All(1.0), Entries::All(1e-3)).0)
    }

    fn on_data(&self, data: &dyn Data<T>) -> Result<Em<CpBound<T>>, FitError> {
        self.on_cells(Slabs::new(data, self.0.signed_mode, self.0.components)?)
    }

    pub(super) fn on_cells(&self, cells: Slabs<T>) -> Result<Em<CpBound<T>>, FitError> {
        let cp = &self.0;
        cells.folding.check_scale(cp.scale_mode)?;
        let form = Form::new(&cells.folding, cp.scale_mode);
        let mut specs = specs(&cells.folding, cp.components, form);
        cp.settings.apply(&mut specs)?;
        form.check_frozen(&specs)?;
        let laws = form.priors(cp, &specs)?;
        cells.check(cp.replicates, cp.real_data)?;
        let (size, largest) = cells.sizes();
        Ok(Em(CpBound {
            cells,
            split: Split::new(cp.replicates, largest),
            size,
            form,
            specs,
            laws,
        }))
    }
}

impl<T: Real> SignedCpVbBuilder<T> {
    /// Sets the priors of the atoms and of what carries the scale (default: all shapes 1, all rates 0.001), such as those that a
    /// [`Learner`](crate::Learner) has learnt from [`SignedCpVbState::posterior`]: they are laid out as that posterior. The last ones set count, be it so, by
    /// [`dirichlet`](Self::dirichlet) or by [`gamma`](Self::gamma).
    ///
    /// ```
    /// use plca_fit::Model;
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// use skellam_snmf::{Hyperparameters, Learner, Rate, Sharing, SignedCpVb};
    /// let start = |shape| Hyperparameters { alpha: vec![1.0], shape, rate: vec![0.1] };
    /// let mut main = Learner::new(Sharing::all(2, 1), start(vec![1.0]), Rate::Average)?;
    /// let nothing = Hyperparameters { alpha: vec![1.0], shape: vec![], rate: vec![] };
    /// let mut second = Learner::new(Sharing::factor(2, 1), nothing, Rate::Average)?;
    /// let mut rng = ChaCha8Rng::seed_from_u64(0);
    /// for values in [vec![9.0, 20.0, -4.0, -9.0], vec![6.0, 8.0, -5.0, -2.0]] {
    ///     let data = DenseTensor::<f64>::new(vec![2, 2], values, Order::RowMajor)?;
    ///     let model = SignedCpVb::builder(1).priors(main.prior()?).dirichlet("factor_1", second.prior()?.plus);
    ///     let fit = model.build()?.fit(&data, &mut rng)?;
    ///     main.learn(&fit.state().posterior())?;
    ///     second.learn(&fit.state().factor_posterior(1).ok_or("no such factor")?)?;
    /// }
    /// assert_eq!((main.seen(), second.seen()), (2, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn priors(mut self, priors: Prior) -> Self {
        self.0.priors.dirichlet.remove("atoms");
        self.0.priors.gamma = None;
        self.0.priors.parts = Parts::of(priors);
        self
    }
}

bayesian!(SignedCpVb, SignedCpVbBuilder, SignedCpVbState, |state| {
    state.folding.shape().to_vec()
});

/// Which block has the gamma shapes; that of their rates follows.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Form {
    scale: Option<usize>,
    gamma: usize,
}

impl Form {
    fn new(folding: &Folding, scale: Option<usize>) -> Self {
        let before = |scale| folding.others().filter(|&(j, _)| j < scale).count();
        let gamma = 1 + scale.map_or(0, before);
        Self { scale, gamma }
    }

    fn is_rate(self, block: usize) -> bool {
        block == self.gamma + 1
    }

    /// Activations as a matrix with a row for every component.
    fn turned<T: Real>(self, block: &DMatrix<T>) -> DMatrix<T> {
        match self.scale {
            Some(_) => block.transpose(),
            None => block.clone(),
        }
    }

    fn turned_entries(self, entries: &Entries) -> Entries {
        match (self.scale, entries) {
            (Some(_), Entries::Each(each)) => Entries::Each(each.transpose()),
            _ => entries.clone(),
        }
    }

    /// Blocks as posteriors: of atoms and what carries the scale, and of the columns of every other factor.
    fn posteriors<T: Real>(self, blocks: &[DMatrix<T>]) -> [Vec<Posterior<T>>; 2] {
        let others = blocks.iter().enumerate().skip(1);
        let others = others.filter(|&(j, _)| j != self.gamma && !self.is_rate(j));
        let others = others.map(|(_, shapes)| one_sided(shapes));
        [vec![self.main(blocks)], others.collect()]
    }

    /// That of atoms and what carries the scale.
    fn main<T: Real>(self, blocks: &[DMatrix<T>]) -> Posterior<T> {
        let [plus, minus] = split(&blocks[0]);
        Posterior {
            plus,
            minus,
            shape: self.turned(&blocks[self.gamma]),
            rate: self.turned(&blocks[self.gamma + 1]),
        }
    }

    /// The blocks of [`SignedCp`] of such factors.
    fn blocks<T: Real>(self, main: Factors<T>, others: Vec<DMatrix<T>>) -> Vec<DMatrix<T>> {
        let mut blocks = vec![stack(&main.plus, &main.minus)];
        blocks.extend(others);
        blocks.insert(self.gamma, self.turned(&main.activations));
        blocks
    }

    /// Refuses to freeze a part of a law.
    fn check_frozen<T: Real>(self, specs: &[BlockSpec<T>]) -> Result<(), FitError> {
        let [shape, rate] = [0, 1].map(|i| &specs[self.gamma + i]);
        let parted = specs.iter().enumerate().find(|&(j, spec)| {
            j != self.gamma && !self.is_rate(j) && matches!(spec.frozen, Frozen::Entries(_))
        });
        let what = match (parted, shape.frozen == rate.frozen) {
            (Some((_, spec)), _) => format!(
                "the entries of a column of `{}` have a joint distribution: freeze all of the block, or whole components",
                spec.name
            ),
            (None, false) => format!("`{}` and `{}` are frozen together", shape.name, rate.name),
            (None, true) => return Ok(()),
        };
        Err(FitError::Conflict { what })
    }

    /// The priors of a model on blocks.
    fn priors<T: Real>(self, cp: &SignedCp<T>, specs: &[BlockSpec<T>]) -> Result<Laws, FitError> {
        let name = |spec: &BlockSpec<T>| spec.name.trim_end_matches("_shape").to_string();
        let of_dirichlet = (0..specs.len()).filter(|&j| j != self.gamma && !self.is_rate(j));
        let of_dirichlet: Vec<usize> = of_dirichlet.collect();
        let known: Vec<String> = of_dirichlet.iter().map(|&j| name(&specs[j])).collect();
        if let Some(other) = cp
            .priors
            .dirichlet
            .keys()
            .find(|name| !known.contains(name))
        {
            return Err(FitError::UnknownBlock {
                name: other.clone(),
                expected: known,
            });
        }
        let (rows, k) = (specs[0].shape.0 / 2, cp.components);
        let parts = &cp.priors.parts;
        let (shape, rate) = match (&parts.activations, &cp.priors.gamma) {
            (Some([a, b]), _) => (self.turned_entries(a), self.turned_entries(b)),
            (None, Some(both)) => both.clone(),
            (None, None) => (Entries::All(1.0), Entries::All(1e-3)),
        };
        let mut shapes = vec![Entries::All(1.0); specs.len()];
        for (&j, name) in of_dirichlet.iter().zip(&known) {
            if let Some(entries) = cp.priors.dirichlet.get(name) {
                shapes[j] = entries.clone();
            }
        }
        if let Some(atoms) = parts.block((rows, k), |f, side| side * rows + f)? {
            shapes[0] = atoms;
        }
        shapes[self.gamma] = shape;
        shapes[self.gamma + 1] = rate;
        for (spec, entries) in specs.iter().zip(&shapes) {
            check_shape(&spec.name, entries, spec.shape, k)?;
        }
        let side = |first: usize| match &shapes[0] {
            Entries::Each(each) => Entries::Each(each.rows(first, rows).into_owned()),
            other => other.clone(),
        };
        let main = Prior {
            plus: side(0),
            minus: side(rows),
            shape: self.turned_entries(&shapes[self.gamma]),
            rate: self.turned_entries(&shapes[self.gamma + 1]),
        };
        main.check_proper()?;
        let of_factor = |&j: &usize| Prior {
            plus: shapes[j].clone(),
            ..Prior::flat()
        };
        let others = of_dirichlet[1..].iter().map(of_factor);
        let priors: Vec<Prior> = std::iter::once(main).chain(others).collect();
        for prior in &priors {
            prior.check()?;
            prior.check_least(least_shape::<T>())?;
        }
        Ok(Laws { shapes, priors })
    }
}

/// The posterior of a factor, whose columns are Dirichlet.
fn one_sided<T: Real>(shapes: &DMatrix<T>) -> Posterior<T> {
    let k = shapes.ncols();
    Posterior {
        plus: shapes.clone(),
        minus: DMatrix::zeros(0, k),
        shape: DMatrix::zeros(k, 0),
        rate: DMatrix::zeros(k, 0),
    }
}

/// Priors in the layout of the blocks, and in that of posteriors.
#[derive(Debug)]
struct Laws {
    shapes: Vec<Entries>,
    priors: Vec<Prior>,
}

/// The blocks of tensors of this shape.
fn specs<T: Real>(folding: &Folding, k: usize, form: Form) -> Vec<BlockSpec<T>> {
    let positive =
        |name: String, shape, axis| BlockSpec::values(name, shape, axis, Constraint::Positive);
    let gamma = |name: &str, shape, axis| {
        let rate = BlockSpec {
            follows: true,
            ..positive(format!("{name}_rate"), shape, axis)
        };
        [positive(format!("{name}_shape"), shape, axis), rate]
    };
    let mut specs = vec![positive(
        ATOMS.into(),
        (2 * folding.rows(), k),
        Axis::Columns,
    )];
    if form.scale.is_none() {
        specs.extend(gamma("weights", (k, 1), Axis::Rows));
    }
    for (j, n) in folding.others() {
        match Some(j) == form.scale {
            true => specs.extend(gamma(&format!("factor_{j}"), (n, k), Axis::Columns)),
            false => specs.push(positive(format!("factor_{j}_shape"), (n, k), Axis::Columns)),
        }
    }
    specs
}

/// Variational Bayes on data: what is expected of a block is its new posterior.
#[derive(Debug)]
pub(super) struct CpBound<T: Real> {
    cells: Slabs<T>,
    split: Split,
    /// The sum of the absolute values.
    size: f64,
    form: Form,
    specs: Vec<BlockSpec<T>>,
    laws: Laws,
}

/// New blocks as far as they are wanted, and the likelihood term.
type Updated<T> = (Vec<Option<DMatrix<T>>>, f64);

impl<T: Real> CpBound<T> {
    fn axis(&self, block: usize) -> Components {
        let spec = &self.specs[block];
        match spec.components {
            Axis::Rows => Components::Rows(spec.shape.0),
            Axis::Columns | Axis::None => Components::Columns(spec.shape.0),
        }
    }

    /// The posterior after an E-step at these factors, as far as it is wanted, and the likelihood term. The logarithms of the factors are asked for
    /// where the numbers do not do.
    fn update(
        &self,
        factors: &[DMatrix<T>],
        logs: impl Fn() -> Result<Vec<DMatrix<f64>>, FitError>,
        wanted: &[bool],
        value: bool,
    ) -> Result<Updated<T>, FitError> {
        let pass = SignedWanted {
            left: wanted[0],
            right: wanted[1..].contains(&true),
            value,
        };
        let [plus, minus] = split(&factors[0]);
        let others = self.cells.others(Others::new(factors, self.form.scale));
        let names = [ATOMS, &*self.specs[self.form.gamma].name];
        let atoms = (&factors[0], [&plus, &minus]);
        let logs = || {
            let logs = logs()?;
            let atoms = split(&logs[0]).map(|side| side.transpose());
            Ok((atoms, Others::of_logs(&logs, self.form.scale)))
        };
        let passed = (self.cells).pass(self.split, atoms, &others, pass, names, Some(&logs))?;
        let shares = passed.shares.map(|shares| {
            let weights = self.form.scale.is_none().then(|| shares.weights());
            weights
                .into_iter()
                .chain(shares.factors())
                .collect::<Vec<_>>()
        });
        let places = (1..self.specs.len()).filter(|&j| !self.form.is_rate(j));
        let counts = places.zip(shares.into_iter().flatten());
        let atoms = passed.atoms.map(|counts| (0, counts));
        let mut new = vec![None; self.specs.len()];
        for (j, mut counts) in atoms.into_iter().chain(counts) {
            if wanted[j] {
                // [EXT 6] ah <- al + (p,q)~, be^_j <- be_j + C_j~, sh <- a + n~
                let axis = self.axis(j);
                shapes(&mut counts, &self.laws.shapes[j], axis, &self.specs[j].name)?;
                new[j] = Some(counts);
            }
        }
        let rate = self.form.gamma + 1;
        new[rate] = wanted[rate].then(|| {
            let (rows, columns) = self.specs[rate].shape;
            let mut rates = DMatrix::zeros(rows, columns);
            let each = &self.laws.shapes[rate];
            // [EXT 6] bh <- b + 1
            each.for_each(rates.as_mut_slice(), self.axis(rate), |x, b| {
                *x = T::lit(b + 1.0)
            });
            rates
        });
        Ok((new, passed.value))
    }
}

impl<T: Real> CpBound<T> {
    /// The posterior under even counts of the free blocks; the others are as they were learnt.
    pub(super) fn even(
        &self,
        learnt: &[DMatrix<T>],
        is_free: impl Fn(&str) -> bool,
    ) -> Vec<DMatrix<T>> {
        let blocks = self.specs.iter().enumerate().map(|(j, spec)| {
            let (rows, columns) = spec.shape;
            if !is_free(&spec.name) {
                return learnt[j].clone();
            }
            // Of shapes, counts that sum to the data; of rates, what observes once more.
            let count = match self.form.is_rate(j) {
                true => 1.0,
                false => self.size / (rows * columns) as f64,
            };
            let mut block = DMatrix::zeros(rows, columns);
            let each = &self.laws.shapes[j];
            each.for_each(block.as_mut_slice(), self.axis(j), |x, a| {
                *x = T::lit(a + count);
            });
            block
        });
        blocks.collect()
    }
}

impl<T: Real> Expectation<T> for CpBound<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let [main, others] = self.form.posteriors(at.matrices());
        let means = others.iter().map(|q| Ok(q.geometric()?.plus));
        let means = means.collect::<Result<Vec<_>, FitError>>()?;
        let factors = self.form.blocks(main[0].geometric()?, means);
        let logs = || {
            let columns = |q: &Posterior<T>| Ok(q.ln_geometric()?.atoms[0].transpose());
            let others = others
                .iter()
                .map(columns)
                .collect::<Result<_, FitError>>()?;
            let logs = main[0].ln_geometric()?;
            let [plus, minus] = logs.atoms.map(|side| side.transpose());
            let main = Factors {
                plus,
                minus,
                activations: logs.activations,
            };
            Ok(self.form.blocks(main, others))
        };
        let (blocks, fit) = self.update(&factors, logs, wanted.blocks, wanted.value)?;
        let mut value = None;
        if wanted.value {
            let sum = |(j, factor): (usize, &DMatrix<T>), z: usize| -> f64 {
                match self.form.scale.is_none() && j == 1 {
                    true => factor[z].to_f64(),
                    false => factor.column(z).iter().map(|x| x.to_f64()).sum(),
                }
            };
            let product = |z| {
                factors
                    .iter()
                    .enumerate()
                    .map(|f| sum(f, z))
                    .product::<f64>()
            };
            // [EXT 6] Σ_k w~ (Σ tt) Π_j (Σ B_j~): hidden cells included
            let mut bound = fit + (0..self.specs[0].shape.1).map(product).sum::<f64>();
            for (q, prior) in main.iter().chain(&others).zip(&self.laws.priors) {
                bound += q.bound_terms(prior)?;
            }
            value = Some(bound);
        }
        Ok(Counts { blocks, value })
    }

    /// Under a posterior everything has some probability, if its shapes can be held.
    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        check_held(at)?;
        Ok(None)
    }

    /// The update from factors as EM draws them.
    fn draw(&self, rng: &mut dyn Rng) -> Result<Vec<DMatrix<T>>, FitError> {
        let specs = super::specs(&self.cells.folding, self.specs[0].shape.1, self.form.scale);
        let factors = drawn(&self.cells, self.size, &specs, self.form.scale, rng);
        let all = vec![true; self.specs.len()];
        let logs = || Ok(factors.iter().map(|m| m.map(|x| x.to_f64().ln())).collect());
        let (new, _) = self.update(&factors, logs, &all, false)?;
        Ok(new.into_iter().flatten().collect())
    }

    /// The sum of the absolute values.
    fn unit(&self) -> f64 {
        self.size
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        super::counts::facts(&self.cells.folding, self.form.scale)
    }
}

/// The fitted posterior of [`SignedCpVb`]: Dirichlet laws of the atoms and of the columns of factors, gamma laws of what carries the scale.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedCpVbState<T: Real> {
    parameters: Parameters<T>,
    folding: Folding,
    form: Form,
}

plca_fit::serialised!(SignedCpVbState);

impl<T: Real> SignedCpVbState<T> {
    /// The Dirichlet shapes of the atoms, `2F x K`: those of `T⁺` above those of `T⁻`.
    pub fn atoms_shape(&self) -> &DMatrix<T> {
        self.parameters.at(0)
    }

    /// The mode that is signed, counted from 0.
    pub fn signed_mode(&self) -> usize {
        self.folding.mode()
    }

    /// The mode whose factor carries the scale, counted from 0; `None` where weights do.
    pub fn scale_mode(&self) -> Option<usize> {
        self.form.scale
    }

    /// A copy of the posterior of the atoms and of what carries the scale: what their hyperparameters are learnt from. `[SKELLAM 8]`
    ///
    /// The activations are the weights, `K x 1`, or the factor that carries the scale, turned: a row for every component.
    pub fn posterior(&self) -> Posterior<T> {
        self.form.main(self.parameters.matrices())
    }

    /// A copy of the posterior of the factor of another mode, counted from 0, for a [`Sharing::factor`](crate::Sharing::factor): `plus` has its Dirichlet shapes, a row for
    /// every index, the rest is empty. `None` for the signed mode, that of the scale, and modes that the data do not have.
    pub fn factor_posterior(&self, mode: usize) -> Option<Posterior<T>> {
        let shapes = self.parameters.blocks();
        let name = format!("factor_{mode}_shape");
        let (_, shapes) = shapes.into_iter().find(|(found, _)| *found == name)?;
        (self.form.scale != Some(mode)).then(|| one_sided(shapes))
    }

    /// The posterior means.
    ///
    /// # Errors
    ///
    /// [`FitError::Value`] for a mean beyond the scalar.
    pub fn means(&self) -> Result<SignedCpState<T>, FitError> {
        let [main, others] = self.form.posteriors(self.parameters.matrices());
        let others = others.iter().map(|q| q.means().plus).collect();
        let blocks = self.form.blocks(main[0].means(), others);
        let names = super::specs::<T>(&self.folding, self.atoms_shape().ncols(), self.form.scale);
        let names = names.into_iter().map(|spec| spec.name.into_owned());
        let means = Parameters::named(names.zip(blocks).collect(), 1.0);
        let facts = super::counts::facts(&self.folding, self.form.scale);
        let with = |at: Parameters<T>, (name, numbers): (&'static str, Vec<f64>)| {
            at.with_fact(name, numbers)
        };
        SignedCpState::wrap(facts.into_iter().fold(means, with))
    }
}

impl<T: Real> State for SignedCpVbState<T> {
    type Scalar = T;
    const NAME: &'static str = "skellam-cp-vb";
    const BLOCKS: Blocks = &[
        (ATOMS, Sides),
        ("weights_shape", Vector),
        ("weights_rate", Vector),
        ("factor_", Matrix),
    ];

    fn block_names(order: usize) -> Vec<String> {
        let of_mode = |j| ["shape", "rate"].map(|of| format!("factor_{j}_{of}"));
        let gamma = ["weights_shape", "weights_rate"];
        let all = [ATOMS].into_iter().chain(gamma).map(String::from);
        all.chain((0..order).flat_map(of_mode)).collect()
    }

    fn derived(at: &Parameters<f64>) -> Vec<(Cow<'static, str>, FileLayout, DMatrix<f64>)> {
        let means = SignedCpVbState::wrap(at.clone()).and_then(|state| state.means());
        let Ok(means) = means else {
            return Vec::new();
        };
        let blocks = means.parameters().blocks();
        let blocks = blocks.map(|(name, block)| {
            let layout = SignedCpState::<f64>::layout(name);
            (name.to_string().into(), layout, block.clone())
        });
        blocks.collect()
    }

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let parameters = parameters.without_mass();
        let (mode, scale) = modes(&parameters)?;
        let names: Vec<_> = parameters
            .blocks()
            .map(|(name, _)| name.to_string())
            .collect();
        let sizes = names
            .iter()
            .zip(parameters.matrices())
            .filter(|(name, _)| name.starts_with("factor_") && name.ends_with("_shape"));
        let mut shape: Vec<usize> = sizes.map(|(_, block)| block.nrows()).collect();
        let (rows, k) = parameters.shape(0);
        shape.insert(mode.min(shape.len()), rows / 2);
        let folding = Folding::new(shape, mode)?;
        folding.check_scale(scale)?;
        let form = Form::new(&folding, scale);
        parameters.check(&specs(&folding, k, form))?;
        Ok(Self {
            parameters,
            folding,
            form,
        })
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.parameters
    }
}
