//! Shift-invariant semi-NMF under the Skellam law, by variational Bayes.

use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{
    Explained, FitError, Parameters, Progress, Reconstruct, Settings, State, Transform,
    blocks::{BlockSpec, Blocks, Constraint, Frozen},
    em::{Counts, Em, Expectation, Wanted},
};
use plca_priors::{Components, PriorSpec};
use plca_tensor::{Data, Real};
use rand::Rng;

use super::engine::LnBlocks;
use super::state::window_of;
use super::window::{Reach, Window};
use super::{AXES, Engine, Placed, ShiftedSnmfState, clipped, dense, facts, laws};
use crate::faint::Logs;
use crate::posterior::{check_held, least_shape};
use crate::prior::{Parts, check_shape};
use crate::signed::{bayesian, explained_by_bound};
use crate::vb::{NAMES, check_frozen};
use crate::{Entries, Posterior, Prior, Replicates};

/// Posteriors of the blocks that were wanted, and the value.
type Updated<T> = (Vec<Option<DMatrix<T>>>, Option<f64>);

plca_fit::settings! {
    /// Shift-invariant factorization of data of either sign by variational Bayes: the model of [`ShiftedSnmf`](crate::ShiftedSnmf), of which a distribution
    /// over its factors is fitted instead of one value of them.
    ///
    /// ```math
    /// \begin{aligned}
    /// & q(\theta[k,\cdot]) = \mathrm{Dirichlet}(\hat\alpha_k), \qquad q(\lambda[k,h]) = \mathrm{Gamma}(\hat s, \text{rate } \hat b) \\
    /// & \text{maximise} \quad L_\mathrm{fit}(V; \tilde L^+, \tilde L^-) + \sum_k \left( \sum_{t,s} \tilde\theta \right) \left( \sum_h \tilde\lambda \right)
    ///   - \sum \frac{\hat s}{\hat b} - \mathrm{KL}(q \,\Vert\, p)
    /// \end{aligned}
    /// ```
    ///
    /// The tilde is the geometric mean, `e^E[ln x]`. Kernels have the extents `kernel` along the dimensions of the data. The blocks are `atoms_shape`,
    /// `activations_shape` and `activations_rate`, laid out as the blocks of [`ShiftedSnmf`](crate::ShiftedSnmf). The objective is a lower bound of the
    /// log-evidence (ELBO), divided by the number of replicates; no iteration lowers it. `[EXT 5]`
    ///
    /// ```
    /// use skellam_snmf::Model;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::ShiftedSnmfVb;
    /// let v = DenseTensor::<f64>::new(vec![6], vec![2.0, -3.0, 0.0, 4.0, -6.0, 0.0], Order::RowMajor)?;
    /// let fit = ShiftedSnmfVb::new(1, vec![2]).fit(&v, &mut skellam_snmf::seed(0))?;
    /// assert!(fit.trace().windows(2).all(|w| w[1].objective >= w[0].objective - 1e-9));
    /// assert!((fit.state().means()?.atoms().sum() - 1.0).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct ShiftedSnmfVb(kernel: Vec<usize>) {
        /// Where kernels may lie, for all dimensions or for each (default: inside the data).
        pub reach: Vec<Reach> = Vec::new();
        /// The number `M` of replicated draws (default: [`Auto`](Replicates::Auto), for real data with noise).
        pub replicates: Replicates = Replicates::default();
        /// Whether data of which `M V` is not whole are accepted with finite `M` too (default: no): factorials become gamma functions. No effect in the limit.
        pub real_data: bool = false;
        // Priors that are laid out as posteriors.
        parts: Parts = Parts::default(), own;
    }
}

impl ShiftedSnmfVb {
    /// Sets the priors of atoms and activations (default: all shapes 1, all rates 0.001), such as those that a [`Learner`](crate::Learner) has learnt from
    /// [`ShiftedSnmfVbState::posterior`]: they are laid out as that posterior. What is set last counts, by this method or [`prior`](Self::prior).
    ///
    /// ```
    /// use skellam_snmf::Model;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Hyperparameters, Learner, Rate, Sharing, ShiftedSnmfVb};
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![1.0], rate: vec![0.1] };
    /// let mut learner = Learner::new(Sharing::all(2, 1), start, Rate::Average)?;      // two taps, one component
    /// let mut rng = skellam_snmf::seed(0);
    /// for values in [vec![2.0, -3.0, 0.0, 4.0, -6.0, 0.0], vec![0.0, 6.0, -9.0, 0.0]] {
    ///     let data = DenseTensor::<f64>::new(vec![values.len()], values, Order::RowMajor)?;
    ///     let model = ShiftedSnmfVb::new(1, vec![2]).priors(learner.prior()?);
    ///     learner.learn(&model.fit(&data, &mut rng)?.state().posterior())?;
    /// }
    /// assert_eq!((learner.seen(), learner.statistics().columns), (2, 4.0));               // of 5 and of 3 places
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn priors(mut self, priors: Prior) -> Self {
        self.parts = Parts::of(priors);
        self.blocks = self.blocks.with_priors_that(|_, _| false);
        self
    }

    /// Puts a prior on a block, which is named with or without `_shape`; a later one replaces an earlier one (default: Dirichlet laws of shape 1, gamma laws
    /// of 1 and 0.001): Dirichlet laws on `atoms`, gamma laws on `activations`, with one number or one for each entry of the block.
    pub fn prior(mut self, block: impl Into<String>, prior: impl Into<PriorSpec>) -> Self {
        let block = block.into();
        match block.trim_end_matches("_shape") {
            "atoms" => self.parts.atoms = None,
            "activations" => self.parts.activations = None,
            _ => {}
        }
        self.blocks.prior_of_posterior(block, prior);
        self
    }

    /// The extents of the places of kernels on data of a shape.
    ///
    /// # Errors
    ///
    /// As of [`ShiftedSnmf::places`](crate::ShiftedSnmf::places).
    pub fn places(&self, shape: &[usize]) -> Result<Vec<usize>, FitError> {
        Ok(Window::new(shape, &self.kernel, &self.reach)?.places)
    }

    fn on_data<T: Real>(&self, data: &dyn Data<T>) -> Result<Em<ShiftBound<T>>, FitError> {
        let window = Window::new(data.shape(), &self.kernel, &self.reach)?;
        let placed = Placed::new(window, dense(data)?, self.replicates, self.real_data)?;
        let k = self.components;
        let mut specs = specs(&placed.window, k);
        self.blocks.apply_frozen(&mut specs)?;
        check_frozen([0, 1, 2].map(|j: usize| &specs[j].frozen))?;
        let of_sides = (placed.window.taps(), k);
        let both = self.parts.block(of_sides, |t, side| 2 * t + side)?;
        let (shapes, gamma) = laws(&self.blocks, "_shape", 1e-3)?;
        let atoms = both.unwrap_or(shapes);
        let turned = |entries: &Entries| match entries {
            Entries::Each(each) => Entries::Each(each.transpose()),
            other => other.clone(),
        };
        let [shape, rate] = match &self.parts.activations {
            Some(both) => both.each_ref().map(turned),
            None => gamma,
        };
        let laws = [atoms, shape, rate];
        for (spec, entries) in specs.iter().zip(&laws) {
            check_shape(&spec.name, entries, spec.shape, k)?;
        }
        let side = |s: usize| match &laws[0] {
            Entries::Each(each) => {
                let (rows, k) = each.shape();
                let of_tap = |t, z| each[(2 * t + s, z)];
                Entries::Each(DMatrix::from_fn(rows / 2, k, of_tap))
            }
            other => other.clone(),
        };
        let prior = Prior {
            plus: side(0),
            minus: side(1),
            shape: turned(&laws[1]),
            rate: turned(&laws[2]),
        };
        prior.check()?;
        prior.check_proper()?;
        prior.check_least(least_shape::<T>())?;
        Ok(Em(ShiftBound {
            engine: Engine::new(placed, k)?,
            specs,
            prior,
            laws,
        }))
    }

    /// Finds the activations of new data of the same order under the learnt posterior of the atoms.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for a mode to explain along, which there is not; those of [`bind`](plca_fit::Model::bind) and of a run.
    pub fn transform<T: Real>(
        &self,
        learnt: &ShiftedSnmfVbState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<ShiftedSnmfVbState<T>>, FitError> {
        self.check()?;
        if how.along.is_some() {
            return Err(FitError::Conflict {
                what: "shifted models transform the data as a whole: expected no `along`".into(),
            });
        }
        let mut config = self.clone();
        config.components = learnt.atoms_shape().ncols();
        config.kernel = learnt.window.kernel.clone();
        config.reach = learnt.window.reach.clone();
        config.blocks = self.blocks.unfrozen();
        config.blocks.freeze(NAMES[0].into(), Frozen::Whole);
        let em = config.on_data(data)?;
        let atoms = learnt.atoms_shape().clone();
        let start = vec![atoms, em.0.even_shapes(1), em.0.rates()];
        explained_by_bound(&em, start, how, Vec::new())
    }
}

plca_fit::by_name!(ShiftedSnmfVb {
    kernel: super::KERNEL_EXTENTS;
    reach: super::DOMAIN;
    replicates: crate::replicates::M;
    real_data: crate::replicates::REAL_DATA;
});

bayesian!(ShiftedSnmfVb, ShiftedSnmfVbState, |state| state
    .window
    .shape
    .clone());

fn specs<T: Real>(window: &Window, k: usize) -> Vec<BlockSpec<T>> {
    let positive =
        |j: usize, shape| BlockSpec::values(NAMES[j], shape, AXES[j.min(1)], Constraint::Positive);
    vec![
        positive(0, (2 * window.taps(), k)),
        positive(1, (window.spots(), k)),
        BlockSpec {
            follows: true,
            ..positive(2, (window.spots(), k))
        },
    ]
}

/// The posterior that blocks stand for.
fn posterior<T: Real>(blocks: &[DMatrix<T>]) -> Posterior<T> {
    let (rows, k) = blocks[0].shape();
    let side = |s: usize| DMatrix::from_fn(rows / 2, k, |t, z| blocks[0][(2 * t + s, z)]);
    Posterior {
        plus: side(0),
        minus: side(1),
        shape: blocks[1].transpose(),
        rate: blocks[2].transpose(),
    }
}

/// Both sides of atoms as a block, plus and minus of a tap one after the other.
fn interleaved<T: Real>(plus: &DMatrix<T>, minus: &DMatrix<T>) -> DMatrix<T> {
    let (taps, k) = plus.shape();
    DMatrix::from_fn(2 * taps, k, |i, z| {
        let side = if i % 2 == 0 { plus } else { minus };
        side[(i / 2, z)]
    })
}

/// Variational Bayes on data: what is expected of a block is its new posterior.
#[derive(Debug)]
struct ShiftBound<T: Real> {
    engine: Engine<T>,
    specs: Vec<BlockSpec<T>>,
    prior: Prior,
    /// The same in the layout of the blocks.
    laws: [Entries; 3],
}

impl<T: Real> ShiftBound<T> {
    /// Shapes of a block from its counts, column after column.
    fn shapes_of(&self, block: usize, mut counts: Vec<T>) -> DMatrix<T> {
        let (rows, k) = self.specs[block].shape;
        // [EXT 5] [SKELLAM 6] α̂ <- α + counts, ŝ <- a + counts
        let law = &self.laws[block];
        law.for_each(&mut counts, Components::Columns(rows), |x, a| {
            *x += T::lit(a);
        });
        DMatrix::from_vec(rows, k, counts)
    }

    /// Shapes of a block from counts that are all alike and sum to the data.
    fn even_shapes(&self, block: usize) -> DMatrix<T> {
        let (rows, k) = self.specs[block].shape;
        let even = self.engine.placed.size.max(f64::MIN_POSITIVE) / (rows * k) as f64;
        self.shapes_of(block, vec![T::lit(even); rows * k])
    }

    /// `b̂ = b + 1`.
    fn rates(&self) -> DMatrix<T> {
        let (places, k) = self.specs[2].shape;
        let mut rates = DMatrix::from_element(places, k, T::one());
        let components = Components::Columns(places);
        // [EXT 5] [SKELLAM 6] b̂ <- b + 1
        self.laws[2].for_each(rates.as_mut_slice(), components, |x, b| {
            *x = T::lit(b + 1.0);
        });
        rates
    }

    /// The posterior after an E-step at these factors, as far as it is wanted, and the likelihood term. The logarithms of the factors are asked for
    /// where the numbers do not do.
    fn update(
        &self,
        [atoms, activations]: [&DMatrix<T>; 2],
        logs: LnBlocks<'_>,
        wanted: &[bool],
        value: bool,
    ) -> Result<Updated<T>, FitError> {
        let both = [atoms.as_slice(), activations.as_slice()];
        let blocks = [wanted[0], wanted[1]];
        let found =
            self.engine
                .expect(self.engine.placed.split, both, blocks, value, Some(logs))?;
        let ([of_atoms, of_activations], value) = found;
        let mut new = vec![None, None, None];
        if wanted[0] {
            new[0] = Some(self.shapes_of(0, clipped(of_atoms, NAMES[0])?));
        }
        if wanted[1] {
            let counts = clipped(of_activations, NAMES[1])?;
            new[1] = Some(self.shapes_of(1, counts));
            new[2] = wanted[2].then(|| self.rates());
        }
        Ok((new, value))
    }
}

impl<T: Real> Expectation<T> for ShiftBound<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let q = posterior(at.matrices());
        let means = q.geometric()?;
        let atoms = interleaved(&means.plus, &means.minus);
        let activations = means.activations.transpose();
        let logs = || {
            let Logs { atoms, activations } = q.ln_geometric()?;
            let [plus, minus] = atoms.map(|side| side.transpose());
            Ok([interleaved(&plus, &minus), activations.transpose()])
        };
        let factors = [&atoms, &activations];
        let (blocks, fit) = self.update(factors, &logs, wanted.blocks, wanted.value)?;
        let value = match fit {
            None => None,
            Some(fit) => {
                let columns = atoms.column_iter().zip(activations.column_iter());
                // [EXT 5] [SKELLAM 7] Σ_k (Σ tt) (Σ tl): what falls outside is counted
                let mass = columns.map(|(t, l)| {
                    let sum = |x: f64, y: &T| x + y.to_f64();
                    t.iter().fold(0.0, sum) * l.iter().fold(0.0, sum)
                });
                Some(fit + mass.sum::<f64>() + q.bound_terms(&self.prior)?)
            }
        };
        Ok(Counts { blocks, value })
    }

    /// Under a posterior everything has some probability, if its shapes can be held.
    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        check_held(at)?;
        Ok(None)
    }

    fn even(&self) -> Result<Option<Vec<DMatrix<T>>>, FitError> {
        Ok(Some(vec![
            self.even_shapes(0),
            self.even_shapes(1),
            self.rates(),
        ]))
    }

    /// The update from factors as EM draws them.
    fn draw(&self, rng: &mut dyn Rng, _: &mut Progress<'_>) -> Result<Vec<DMatrix<T>>, FitError> {
        let ((rows, k), (places, _)) = (self.specs[0].shape, self.specs[1].shape);
        let mut atoms = DMatrix::from_fn(rows, k, |_, _| T::lit(random::exponential(rng)));
        plca_tensor::normalise_columns(&mut atoms);
        let size = if self.engine.placed.size > 0.0 {
            self.engine.placed.size
        } else {
            1.0
        };
        let mean = size / (places * k) as f64;
        let activations = DMatrix::from_fn(places, k, |_, _| {
            T::lit(mean * (0.5 + random::uniform(rng)))
        });
        let factors = [&atoms, &activations];
        let logs = || Ok(factors.map(|m| m.map(|x| x.to_f64().ln())));
        let (new, _) = self.update(factors, &logs, &[true; 3], false)?;
        Ok(new.into_iter().flatten().collect())
    }

    /// The sum of the absolute values, 1 of data that are all 0.
    fn unit(&self) -> f64 {
        if self.engine.placed.size > 0.0 {
            self.engine.placed.size
        } else {
            1.0
        }
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        facts(&self.engine.placed.window)
    }
}

/// The fitted posterior of [`ShiftedSnmfVb`]: Dirichlet laws of the atoms, gamma laws of the activations.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftedSnmfVbState<T: Real> {
    parameters: Parameters<T>,
    window: Window,
}

plca_fit::serialised!(ShiftedSnmfVbState);

impl<T: Real> ShiftedSnmfVbState<T> {
    /// The Dirichlet shapes of the atoms, `2 T x K`; plus and minus of a tap stand one after the other.
    pub fn atoms_shape(&self) -> &DMatrix<T> {
        self.parameters.at(0)
    }

    /// The gamma shapes of the activations: a column of places for every component.
    pub fn activations_shape(&self) -> &DMatrix<T> {
        self.parameters.at(1)
    }

    /// The gamma rates of the activations, in 1 over the units of the data.
    pub fn activations_rate(&self) -> &DMatrix<T> {
        self.parameters.at(2)
    }

    /// A copy as a posterior of taps, `T x K`, and places, a row for every component: what hyperparameters are learnt from. `[SKELLAM 8]`
    pub fn posterior(&self) -> Posterior<T> {
        posterior(self.parameters.matrices())
    }

    /// The extents of a kernel.
    pub fn kernel_shape(&self) -> &[usize] {
        &self.window.kernel
    }

    /// The extents of the places.
    pub fn places(&self) -> &[usize] {
        &self.window.places
    }

    /// The posterior means of atoms and activations.
    ///
    /// # Errors
    ///
    /// [`FitError::Value`] for a mean beyond the scalar.
    pub fn means(&self) -> Result<ShiftedSnmfState<T>, FitError> {
        let means = posterior(self.parameters.matrices()).means();
        ShiftedSnmfState::new(
            &self.window.shape,
            &self.window.kernel,
            &self.window.reach,
            interleaved(&means.plus, &means.minus),
            means.activations.transpose(),
        )
    }
}

impl<T: Real> State for ShiftedSnmfVbState<T> {
    type Scalar = T;
    const NAME: &'static str = "siskellam-vb";
    const BLOCKS: Blocks = &[
        (NAMES[0], AXES[0]),
        (NAMES[1], AXES[1]),
        (NAMES[2], AXES[1]),
    ];

    fn derived(at: &Parameters<f64>) -> Vec<(Cow<'static, str>, DMatrix<f64>)> {
        let means = posterior(at.matrices()).means();
        vec![
            ("atoms".into(), interleaved(&means.plus, &means.minus)),
            ("activations".into(), means.activations.transpose()),
        ]
    }

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let parameters = parameters.without_mass();
        let window = window_of(&parameters)?;
        parameters.check(&specs(&window, parameters.shape(0).1))?;
        Ok(Self { parameters, window })
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.parameters
    }
}
