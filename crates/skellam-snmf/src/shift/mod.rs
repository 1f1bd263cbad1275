//! Shift-invariant semi-NMF of data of either sign, of any order, under the Skellam law.
//!
//! ```math
//! V[x] \sim \mathrm{Sk}(L^+[x], L^-[x]),
//! \qquad L^\pm[x] = \sum_k \sum_t \theta^\pm[k,t] \, \lambda[k, x - t + o]
//! ```
//!
//! `[EXT 5]`

mod engine;
mod faint;
mod state;
mod vb;
mod window;

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{
    Algorithm, Anneal, Explained, FitError, Impossible, Model, Parameters, Progress, Settings,
    Transform,
    blocks::{Axes, BlockSpec, Constraint, Draw, Exposure, Frozen, Index, Prior as BlockPrior},
    em::{Counts, Em, Expectation, Renewed, Wanted},
    setting::BlockSettings,
};
use plca_priors::{Gamma, PriorError, PriorSpec};
use plca_tensor::arrange::Signed;
use plca_tensor::{Data, DataError, DenseTensor, Mask, Order, Real};
use rand::Rng;

use crate::bounds::{self, Bounds};
use crate::check::{check_numbers, not_finite};
use crate::cp::Shapes;
use crate::rule::Split;
use crate::signed::{explained, scale_by};
use crate::{Entries, Replicates};
use engine::Engine;
use window::Window;

pub use state::ShiftedSnmfState;
pub use vb::{ShiftedSnmfVb, ShiftedSnmfVbState};
pub use window::Reach;

plca_fit::settings! {
    /// Shift-invariant factorization of data of either sign and any order under the Skellam law: every component is an atom of two sides, placed all over the
    /// data.
    ///
    /// ```math
    /// \begin{aligned}
    /// & V[x] \sim \mathrm{Sk}(L^+[x], L^-[x]), \qquad L^s[x] = \sum_k \sum_t \theta[k,t,s] \, \lambda[k, x - t + o], \qquad \sum_{t,s} \theta[k,t,s] = 1 \\
    /// & \text{maximise} \quad L_\mathrm{fit}(V; L^+, L^-) + \ln p(\theta) + \ln p(\lambda)
    /// \end{aligned}
    /// ```
    ///
    /// `Lfit` is the likelihood of [`Replicates`] over the observed cells, and the priors are Dirichlet laws of the atoms, gamma laws of the activations,
    /// with one number or one for each entry of the block, flat unless they are set; their constants are in the objective. Kernels have the extents `kernel`
    /// along the dimensions of the data. The blocks are `atoms`, a column of taps for every component, both sides of a tap one after the other, of sum 1; and
    /// `activations`, a column of places for every component, in the units of the data. What lies outside of the data is latent, as hidden cells are, so that
    /// no iteration lowers the objective whatever the [`Reach`]. With whole-data kernels along one dimension and kernels of one cell along the other it is
    /// [`Snmf`](crate::Snmf).
    ///
    /// Cost of an iteration: six sums of products of `K` atoms, taps and places, twice those of the non-negative model, and by the same arithmetic: loops,
    /// products of matrices or Fourier transforms, whichever should be fastest. `[EXT 5]`
    ///
    /// ```
    /// use skellam_snmf::{Model, Reconstruct};
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::ShiftedSnmf;
    /// let wavelet = vec![0.0, 2.0, -3.0, 0.0, 0.0, 4.0, -6.0, 0.0];
    /// let v = DenseTensor::<f64>::new(vec![8], wavelet, Order::RowMajor)?;
    /// let model = ShiftedSnmf::new(1, vec![2]);
    /// let fit = model.fit(&v, &mut skellam_snmf::seed(0))?;
    /// assert!(fit.trace().windows(2).all(|w| w[1].objective >= w[0].objective - 1e-9));
    /// assert_eq!(fit.state().shape(), [8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct ShiftedSnmf(kernel: Vec<usize>), priors "" {
        /// Where kernels may lie, for all dimensions or for each (default: inside the data).
        pub reach: Vec<Reach> = Vec::new();
        /// The number `M` of replicated draws (default: [`Auto`](Replicates::Auto), for real data with noise).
        pub replicates: Replicates = Replicates::default();
        /// Whether data of which `M V` is not whole are accepted with finite `M` too (default: no): factorials become gamma functions. No effect in the limit.
        pub real_data: bool = false;
        /// The power, which grows to 1, that the atoms are raised to, both sides of one jointly (default: none). `[EXT 5]` `[SPEC 5.3]`
        ///
        /// ```math
        /// \theta[k,t,s] \gets \frac{\theta[k,t,s]^a}{\sum_{t,s} \theta[k,t,s]^a}
        /// ```
        ///
        /// Flat atoms at first, sharp ones later. While the power is not 1 the objective may fall.
        ///
        /// ```
        /// use skellam_snmf::{Anneal, Model};
        /// use skellam_snmf::tensor::{DenseTensor, Order};
        /// use skellam_snmf::ShiftedSnmf;
        /// let wavelet = vec![0.0, 2.0, -3.0, 0.0, 0.0, 4.0, -6.0, 0.0];
        /// let v = DenseTensor::<f64>::new(vec![8], wavelet, Order::RowMajor)?;
        /// let model = ShiftedSnmf::new(1, vec![2]).anneal(Anneal { alpha0: 0.7, over: 20.0 });
        /// let fit = model.fit(&v, &mut skellam_snmf::seed(0))?;
        /// assert!(fit.iterations() > 20);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub anneal: Option<Anneal> = None, some Anneal;
    }
}

impl ShiftedSnmf {
    /// The extents of the places of kernels on data of a shape.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for data of another order and for kernels without a place, [`FitError::Data`] for 2^31 cells, taps or places and more.
    pub fn places(&self, shape: &[usize]) -> Result<Vec<usize>, FitError> {
        Ok(Window::new(shape, &self.kernel, &self.reach)?.places)
    }

    /// Data as kernels meet them.
    fn placed<T: Real>(&self, data: &dyn Data<T>) -> Result<Placed<T>, FitError> {
        let window = Window::new(data.shape(), &self.kernel, &self.reach)?;
        Placed::new(window, dense(data)?, self.replicates, self.real_data)
    }

    fn on_placed<T: Real>(&self, placed: Placed<T>) -> Result<Em<ShiftCounts<T>>, FitError> {
        let mut specs = specs(&placed.window, self.components);
        let mean = if placed.size > 0.0 { placed.size } else { 1.0 };
        specs[1].draw = Draw::Around(mean / specs[1].shape.0 as f64 / self.components as f64);
        self.blocks.apply_frozen(&mut specs)?;
        let (shapes, [shape, rate]) = laws(&self.blocks, "", 0.0)?;
        let shapes = Shapes::new(shapes).map_err(refused_prior("atoms"))?;
        let flat = [&shape, &rate] == [&Entries::All(1.0), &Entries::All(0.0)];
        let gamma = Gamma::of(shape, rate).map_err(refused_prior("activations"))?;
        specs[0].prior = Some(BlockPrior::Simplex(Arc::new(shapes)));
        specs[1].prior = Some(BlockPrior::Rate(Arc::new(gamma)));
        specs.iter().try_for_each(BlockSpec::check)?;
        let (size, observed) = (placed.size, placed.observed);
        let noise = self.replicates.noise(size, observed);
        let split = placed.split.with_noise(noise);
        let free = flat && specs[1].frozen != Frozen::Whole;
        let bounds = match noise > 0.0 && free {
            true => {
                let all = placed.cells.len();
                Bounds::All(Bounds::of(&[size], &[observed], all, Replicates::BOUND)[0])
            }
            false => Bounds::None,
        };
        let placed = Placed { split, ..placed };
        Ok(Em(ShiftCounts {
            noise,
            bounds,
            engine: Engine::new(placed, self.components)?,
            specs,
            anneal: self.anneal,
        }))
    }

    /// What of the data some atom reaches, and the sum of the absolute values of the rest.
    fn possible<T: Real>(
        &self,
        placed: Placed<T>,
        atoms: &DMatrix<T>,
        impossible: Impossible,
    ) -> Result<(Placed<T>, f64), FitError> {
        if self.replicates.is_noisy() {
            return Ok((placed, 0.0));
        }
        let everywhere = vec![T::one(); placed.window.spots() * atoms.ncols()];
        let blocks = [atoms.as_slice(), &everywhere];
        let lost = placed.unsupported(&placed.window.rates(blocks, None));
        let Some(&first) = lost.first() else {
            return Ok((placed, 0.0));
        };
        let (window, mut cells) = (placed.window, placed.cells);
        if impossible == Impossible::Refuse {
            let index = unravelled(first, &window.shape);
            let value = cells[first].to_f64();
            return Err(FitError::Impossible { index, value });
        }
        let mut dropped = 0.0;
        for at in lost {
            dropped += cells[at].to_f64().abs();
            cells[at] = T::lit(f64::NAN);
        }
        let placed = Placed::new(window, cells, self.replicates, self.real_data)?;
        Ok((placed, dropped))
    }

    /// Finds the activations of new data of the same order under the learnt atoms. Data that no atom reaches are refused, or hidden and counted by their absolute values.
    ///
    /// # Errors
    ///
    /// [`FitError::Impossible`]; [`FitError::Conflict`] for a mode to explain along, which there is not; those of [`Model::bind`] and of a run.
    pub fn transform<T: Real>(
        &self,
        learnt: &ShiftedSnmfState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<ShiftedSnmfState<T>>, FitError> {
        self.check()?;
        if how.along.is_some() {
            return Err(FitError::Conflict {
                what: "shifted models transform the data as a whole: expected no `along`".into(),
            });
        }
        let (window, mut config) = (learnt.window(), self.clone());
        config.components = learnt.atoms().ncols();
        (config.kernel, config.reach) = (window.kernel.clone(), window.reach.clone());
        config.blocks = self.blocks.unfrozen();
        config.blocks.freeze("atoms".into(), Frozen::Whole);
        let placed = config.placed(data)?;
        let (placed, dropped) = config.possible(placed, learnt.atoms(), how.impossible)?;
        let em = config.on_placed(placed)?;
        let (places, k) = em.0.specs[1].shape;
        let size = em.0.engine.placed.size;
        let each = if size > 0.0 { size } else { 1.0 } / (places * k) as f64;
        let even = DMatrix::from_element(places, k, T::lit(each));
        let start = vec![learnt.atoms().clone(), even];
        explained(em, start, how, Vec::new(), dropped)
    }
}

plca_fit::by_name!(ShiftedSnmf {
    kernel: KERNEL_EXTENTS;
    reach: DOMAIN;
    anneal: ["anneal", "ALPHA0,T", "Model", "Power of the kernels, from ALPHA0 in (0, 1] to 1 in T iterations"];
    replicates: crate::replicates::M;
    real_data: crate::replicates::REAL_DATA;
});

/// Of both shifted models.
pub(crate) const KERNEL_EXTENTS: [&str; 4] = [
    "kernel",
    "k0xk1x…",
    "Model",
    "Extent of the kernels along each dimension [default: as in --init]\n\nA kernel as large as the data along a dimension is not shifted along it.",
];
pub(crate) const DOMAIN: [&str; 4] = [
    "domain",
    "WHERE",
    "Model",
    "Where kernels may lie: one value, or one per dimension [default: valid]",
];

plca_fit::choices!(Reach {
    "valid" = Reach::Valid: "Kernels lie inside the data";
    "same" = Reach::Same: "Kernels may extend beyond the far border";
    "full" = Reach::Full: "Kernels may extend beyond both borders";
});

impl Settings for ShiftedSnmf {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components or replicates, for a power outside `(0, 1]` and for one that lasts no time.
    fn check(&self) -> Result<(), FitError> {
        check_numbers(self.components, self.replicates)?;
        match self.anneal {
            Some(anneal) => anneal.check_flat("anneal"),
            None => Ok(()),
        }
    }
}

impl<T: Real> Model<T> for ShiftedSnmf {
    type State = ShiftedSnmfState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        Ok(Box::new(self.on_placed(self.placed(data)?)?))
    }
}

/// The shapes of the atoms, and shapes and rates of the activations, whose blocks have this at the end of their names; rates that are not said are this.
fn laws(
    blocks: &BlockSettings,
    suffix: &str,
    rate: f64,
) -> Result<(Entries, [Entries; 2]), FitError> {
    let prior = |block: &str| blocks.prior_of(&format!("{block}{suffix}"));
    let shapes = prior("atoms").map(PriorSpec::shapes).transpose();
    let shapes = shapes.map_err(refused_prior("atoms"))?;
    let gamma = prior("activations").map(PriorSpec::gamma).transpose();
    let gamma = gamma.map_err(refused_prior("activations"))?;
    let usual = [Entries::All(1.0), Entries::All(rate)];
    let gamma = gamma.map_or(usual, |(shape, rate)| [shape.clone(), rate.clone()]);
    Ok((shapes.cloned().unwrap_or(Entries::All(1.0)), gamma))
}

/// All cells in row-major order; hidden ones are NaN.
fn dense<T: Real>(data: &dyn Data<T>) -> Result<Vec<T>, FitError> {
    let shape = data.shape();
    let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
    let too_large = || DataError::TooLarge {
        shape: shape.to_vec(),
    };
    let cells = cells.ok_or_else(too_large)?;
    let (nan, zero) = (T::lit(f64::NAN), T::zero());
    let (listed, others) = match data.summary().mask {
        Mask::Observed => (zero, nan),
        _ => (nan, zero),
    };
    let mut values = Vec::new();
    values.try_reserve_exact(cells).map_err(|_| too_large())?;
    values.resize(cells, others);
    let at = |index: &[usize]| index.iter().zip(shape).fold(0, |at, (&i, n)| at * n + i);
    data.visit_mask(&mut |index| values[at(index)] = listed)?;
    data.visit(&mut |index, value| values[at(index)] = T::lit(value))?;
    Ok(values)
}

/// A prior of a block that is refused.
fn refused_prior(block: &str) -> impl Fn(PriorError) -> FitError {
    let block = block.to_string();
    move |source| FitError::Prior {
        block: block.clone(),
        source,
    }
}

/// An error of the cells one after the other, as one of the data.
fn refused(error: FitError, shape: &[usize]) -> FitError {
    match error {
        FitError::Entry {
            index,
            value,
            expected,
        } => FitError::Entry {
            index: unravelled(index.last().copied().unwrap_or(0), shape),
            value,
            expected,
        },
        other => other,
    }
}

fn unravelled(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (i, n) in index.iter_mut().zip(shape).rev() {
        (*i, at) = (at % n, at / n);
    }
    index
}

/// The axes of atoms and of activations.
const AXES: [Axes; 2] = [
    Axes(Index::SignedKernel, Index::Component),
    Axes(Index::Places, Index::Component),
];

/// The blocks of kernels on data.
fn specs<T: Real>(window: &Window, k: usize) -> Vec<BlockSpec<T>> {
    let rates = Constraint::NonNegative;
    vec![
        BlockSpec::simplex("atoms", (2 * window.taps(), k), AXES[0]),
        BlockSpec::values("activations", (window.spots(), k), AXES[1], rates),
    ]
}

/// What a state remembers.
fn facts(window: &Window) -> Vec<(&'static str, Vec<f64>)> {
    let numbers = |whole: &[usize]| whole.iter().map(|&n| n as f64).collect::<Vec<_>>();
    vec![
        (SHAPE, numbers(&window.shape)),
        (KERNEL, numbers(&window.kernel)),
        (ATOM, numbers(&[&window.kernel[..], &[2]].concat())),
        (PLACES, numbers(&window.places)),
        (SUPPORTS, window.supports()),
    ]
}

const SHAPE: &str = "shape";
const KERNEL: &str = "kernel";
const ATOM: &str = "atom";
const PLACES: &str = "places";
const SUPPORTS: &str = "supports";

/// Data as kernels meet them.
#[derive(Debug)]
struct Placed<T> {
    window: Window,
    /// All cells in row-major order; hidden ones are NaN.
    cells: Vec<T>,
    split: Split,
    /// The sum of the absolute values.
    size: f64,
    observed: usize,
}

impl<T: Real> Placed<T> {
    /// # Errors
    ///
    /// [`FitError::Entry`] with the first cell that the law cannot have drawn.
    fn new(
        window: Window,
        cells: Vec<T>,
        replicates: Replicates,
        real: bool,
    ) -> Result<Self, FitError> {
        let row = DenseTensor::masked(vec![1, cells.len()], cells.clone(), Order::RowMajor)?;
        let row = Signed::from_dense(row)?;
        let checked = replicates.check_data(&row, real);
        checked.map_err(|error| refused(error, &window.shape))?;
        let mut size = 0.0;
        row.for_each(&mut |_, _, v| size += v.abs());
        Ok(Self {
            window,
            cells,
            split: Split::of(replicates, &row),
            size,
            observed: row.observed(),
        })
    }

    /// The cells that have a value of a sign to which the rates give probability 0.
    fn unsupported(&self, [plus, minus]: &[Vec<T>; 2]) -> Vec<usize> {
        let zero = T::zero();
        let cells = self.cells.iter().zip(plus.iter().zip(minus)).enumerate();
        let lost =
            cells.filter(|(_, (v, (p, q)))| **v > zero && **p <= zero || **v < zero && **q <= zero);
        lost.map(|(at, _)| at).collect()
    }
}

/// Counts of a block, which rounding alone takes below 0.
fn clipped<T: Real>(mut counts: Vec<T>, name: &str) -> Result<Vec<T>, FitError> {
    for count in &mut counts {
        if !count.is_finite() {
            return Err(not_finite(name, count.to_f64()));
        }
        if *count < T::zero() {
            *count = T::zero();
        }
    }
    Ok(counts)
}

/// Shifted atoms on data.
#[derive(Debug)]
struct ShiftCounts<T: Real> {
    engine: Engine<T>,
    specs: Vec<BlockSpec<T>>,
    anneal: Option<Anneal>,
    /// The rate of noise.
    noise: f64,
    /// Of the activations.
    bounds: Bounds,
}

impl<T: Real> ShiftCounts<T> {
    /// The law of the data, and the activations for data of about 1.
    fn scaled(&self, at: &Parameters<T>) -> (Split, DMatrix<T>) {
        let split = self.engine.placed.split;
        let activations = self.bounds.held(at.at(1), &self.specs[1]);
        (split, scale_by(&activations, split.scale()))
    }
}

impl<T: Real> Expectation<T> for ShiftCounts<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let (split, activations) = self.scaled(at);
        let both = [at.at(0).as_slice(), activations.as_slice()];
        let blocks = [wanted.blocks[0], wanted.blocks[1]];
        let unit = T::lit(self.count_unit() / wanted.count_unit);
        let (counts, value) =
            (self.engine).expect(split.of_scaled_rates(), both, blocks, wanted.value, None)?;
        let mut blocks = vec![None, None];
        for (j, (counts, spec)) in counts.into_iter().zip(&self.specs).enumerate() {
            if wanted.blocks[j] {
                let counts = clipped(counts, &spec.name)?;
                let counts = DMatrix::from_vec(spec.shape.0, spec.shape.1, counts);
                let mut counts = counts * unit;
                if j == 1 {
                    self.bounds.hold_in(wanted.count_unit, &mut counts, spec);
                }
                blocks[j] = Some(counts);
            }
        }
        Ok(Counts { blocks, value })
    }

    /// All else sums to 1, and what is not observed is counted: an activation is exposed to 1.
    fn exposure(&self, block: usize, _: Renewed<'_, T>) -> Option<Exposure<T>> {
        let components = self.specs[0].shape.1;
        (block == 1).then(|| Exposure::PerComponent(vec![T::one(); components]))
    }

    /// [EXT 5] both sides of an atom are one column: they are raised jointly.
    fn anneal(&self, block: usize) -> Option<Anneal> {
        self.anneal.filter(|_| block == 0)
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let placed = &self.engine.placed;
        if placed.split.is_noisy() {
            return Ok(None);
        }
        let (_, activations) = self.scaled(at);
        let both = [at.at(0).as_slice(), activations.as_slice()];
        let rates = placed.window.rates(both, None);
        let lost = placed.unsupported(&rates);
        Ok(lost.first().map(|&at| {
            let index = unravelled(at, &placed.window.shape);
            (index, placed.cells[at].to_f64())
        }))
    }

    fn draw(&self, rng: &mut dyn Rng, _: &mut Progress<'_>) -> Result<Vec<DMatrix<T>>, FitError> {
        let (taps, k) = self.specs[0].shape;
        let mut atoms = DMatrix::from_fn(taps, k, |_, _| T::lit(random::exponential(rng)));
        plca_tensor::normalise_columns(&mut atoms);
        Ok(vec![atoms, self.specs[1].drawn(rng)])
    }

    fn count_unit(&self) -> f64 {
        1.0 / self.engine.placed.split.scale()
    }

    fn rate_unit(&self, _: usize) -> Option<f64> {
        let placed = &self.engine.placed;
        Some(placed.split.replicates.rate_unit(placed.size))
    }

    /// The sum of the absolute values, 1 of data that are all 0.
    fn unit(&self) -> f64 {
        if self.engine.placed.size > 0.0 {
            self.engine.placed.size
        } else {
            1.0
        }
    }

    /// A start beyond the bound is brought within it, so that what is written is what was measured.
    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        _: &[bool],
        _: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        self.bounds.hold(&mut blocks[1], &self.specs[1]);
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        let mut all = facts(&self.engine.placed.window);
        all.extend(bounds::facts(self.noise, &self.bounds, Replicates::BOUND));
        all
    }
}
