//! PLCA that is invariant to a given finite set of transformations.
//!
//! ```text
//! P(x) = Σ_z P(z) Σ_s H(s | z) Σ_{u: T_s(u) = x} a(s,u) K(u | z)
//! ```
//!
//! A kernel `K` is placed on the data by maps `T_s` of its cells: rotations, scales, flips, shifts, in any combination. `[LV eq. 17]`

use plca_fit::{Accelerate, Algorithm, Outcome, Stop};
use plca_tensor::{Observed, Real};
use rand::Rng;

use crate::plca::Prior;
use crate::shifted::engine::{Cells, Counts, to_counts};
use crate::shifted::geometry::{Folded, Geometry};
use crate::shifted::parallel::for_each_part;
use crate::shifted::settings::{Settings, pack, restore};
use crate::{Anneal, EmError, Likelihood, ParamError, ShiftedInit, ShiftedState};

/// One cell of a kernel under one map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapEntry {
    /// Which map, `s`.
    pub map: usize,
    /// Which cell of the kernel, `u`.
    pub from: usize,
    /// Which cell of the data in row-major order; `None` outside of them.
    pub to: Option<usize>,
    /// How much of the kernel's cell goes there, `a`.
    pub weight: f64,
}

/// A set of maps from the cells of a kernel to those of the data. `[SPEC 5.7]`
///
/// Maps that interpolate have several entries for one cell of the kernel.
///
/// ```
/// use plca_em::IndexMaps;
/// // Two cells, as they are and turned round, on data of three cells; one of the four maps leaves them.
/// let maps = IndexMaps::new(3, 2, &[0, 1,  1, 0,  1, 2,  2, -1])?;
/// assert_eq!((maps.maps(), maps.kernel_cells()), (4, 2));
/// # Ok::<(), plca_em::ParamError>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndexMaps {
    cells: usize,
    kernel: usize,
    maps: usize,
    /// By map, then by cell of the kernel; a cell of `cells` is outside.
    by_map: Vec<Entry>,
    map_bounds: Vec<usize>,
    /// By cell of the data; those outside are not listed.
    by_cell: Vec<Entry>,
    cell_bounds: Vec<usize>,
    any_outside: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    map: u32,
    from: u32,
    to: u32,
    weight: f64,
}

impl IndexMaps {
    /// From a table with `kernel` numbers for every map: the cell of the data, or -1 outside. `cells` is the number of cells of the
    /// data.
    ///
    /// # Errors
    ///
    /// [`ParamError::Maps`]: a table that is empty or no multiple of `kernel`, a cell that the data do not have.
    pub fn new(cells: usize, kernel: usize, table: &[i64]) -> Result<Self, ParamError> {
        if kernel == 0 || !table.len().is_multiple_of(kernel) {
            return Err(ParamError::Maps(
                "the table is no multiple of the kernel's cells",
            ));
        }
        let entries = table.iter().enumerate().map(|(at, &to)| MapEntry {
            map: at / kernel,
            from: at % kernel,
            // Too large a number is refused below.
            to: (to >= 0).then_some(to as usize),
            weight: 1.0,
        });
        if table.iter().any(|&to| to < -1) {
            return Err(ParamError::Maps("a cell below -1"));
        }
        Self::from_entries(cells, kernel, entries.collect())
    }

    /// From entries in any order, for maps that interpolate.
    ///
    /// # Errors
    ///
    /// [`ParamError::Maps`]: no entries, a cell that kernel or data do not have, a weight that is negative or not finite.
    pub fn from_entries(
        cells: usize,
        kernel: usize,
        mut entries: Vec<MapEntry>,
    ) -> Result<Self, ParamError> {
        let maps = entries.iter().map(|e| e.map + 1).max().unwrap_or(0);
        if maps == 0 {
            return Err(ParamError::Maps("no maps"));
        }
        if [cells, kernel, maps]
            .iter()
            .any(|&n| n >= u32::MAX as usize)
        {
            return Err(ParamError::Maps(
                "more cells or maps than 32 bits can number",
            ));
        }
        for entry in &entries {
            if entry.from >= kernel || entry.to.is_some_and(|to| to >= cells) {
                return Err(ParamError::Maps("a cell outside the kernel or the data"));
            }
            if !(entry.weight.is_finite() && entry.weight >= 0.0) {
                return Err(ParamError::Maps("a weight that is no finite number >= 0"));
            }
        }
        entries.sort_by_key(|e| (e.map, e.from, e.to));
        let number = |e: &MapEntry| Entry {
            map: e.map as u32,
            from: e.from as u32,
            to: e.to.unwrap_or(cells) as u32,
            weight: e.weight,
        };
        let by_map: Vec<Entry> = entries.iter().map(number).collect();
        let inside = by_map.iter().filter(|e| (e.to as usize) < cells);
        let mut by_cell: Vec<Entry> = inside.copied().collect();
        by_cell.sort_by_key(|e| e.to);
        let bounds = |all: &[Entry], n: usize, key: fn(&Entry) -> u32| -> Vec<usize> {
            (0..=n)
                .map(|i| all.partition_point(|e| (key(e) as usize) < i))
                .collect()
        };
        Ok(Self {
            map_bounds: bounds(&by_map, maps, |e| e.map),
            cell_bounds: bounds(&by_cell, cells, |e| e.to),
            any_outside: by_cell.len() < by_map.len(),
            by_map,
            by_cell,
            cells,
            kernel,
            maps,
        })
    }

    /// Number of maps, the rows of a block of impulses.
    pub fn maps(&self) -> usize {
        self.maps
    }

    /// Number of cells of a kernel.
    pub fn kernel_cells(&self) -> usize {
        self.kernel
    }

    /// Number of cells of the data.
    pub fn cells(&self) -> usize {
        self.cells
    }

    fn of_map(&self, s: usize) -> &[Entry] {
        &self.by_map[self.map_bounds[s]..self.map_bounds[s + 1]]
    }

    fn of_cell(&self, x: usize) -> &[Entry] {
        &self.by_cell[self.cell_bounds[x]..self.cell_bounds[x + 1]]
    }
}

/// A checked configuration; see [`Transformed::builder`].
#[derive(Clone, Debug)]
pub struct Transformed<T: Real> {
    maps: IndexMaps,
    likelihood: Likelihood,
    settings: Settings<T>,
}

/// Settings of [`Transformed`], not yet checked.
#[derive(Clone, Debug)]
#[must_use = "call `.build()`"]
pub struct TransformedBuilder<T: Real>(Transformed<T>);

impl<T: Real> TransformedBuilder<T> {
    /// What is maximised where maps leave the data (default: the likelihood given that they were not left).
    pub fn likelihood(mut self, likelihood: Likelihood) -> Self {
        self.0.likelihood = likelihood;
        self
    }

    /// Raises the kernels to a power that grows to 1 (default: no).
    pub fn anneal(mut self, anneal: Anneal) -> Self {
        self.0.settings.anneal = Some(anneal);
        self
    }

    /// Raises the impulses to a power above 1 (default: no).
    pub fn impulse_power(mut self, power: Anneal) -> Self {
        self.0.settings.impulse_power = Some(power);
        self
    }

    /// Keeps `P(z)` as it was given.
    pub fn freeze_weights(mut self) -> Self {
        self.0.settings.frozen[0] = true;
        self
    }

    /// Keeps the kernels as they were given.
    pub fn freeze_kernels(mut self) -> Self {
        self.0.settings.frozen[1] = true;
        self
    }

    /// Keeps the impulses as they were given.
    pub fn freeze_impulses(mut self) -> Self {
        self.0.settings.frozen[2] = true;
        self
    }

    /// A prior on `P(z)` (a single column).
    pub fn weights_prior(mut self, prior: Prior<T>) -> Self {
        self.0.settings.priors[0] = Some(prior);
        self
    }

    /// A prior on the kernels, a column for each component.
    pub fn kernels_prior(mut self, prior: Prior<T>) -> Self {
        self.0.settings.priors[1] = Some(prior);
        self
    }

    /// A prior on the impulses, a column for each component.
    pub fn impulses_prior(mut self, prior: Prior<T>) -> Self {
        self.0.settings.priors[2] = Some(prior);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`ParamError`]: no components, a power out of range or that lasts no time.
    pub fn build(self) -> Result<Transformed<T>, ParamError> {
        self.0.settings.check()?;
        Ok(self.0)
    }
}

impl<T: Real> Transformed<T> {
    /// Starts a configuration with `components` kernels under `maps`. Its states have the cells of the kernels as rows of
    /// `kernels` and the maps as rows of `impulses`.
    ///
    /// ```
    /// use plca_em::{IndexMaps, ShiftedInit, Stop, Transformed};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// // The pattern 1 3 as it is, and turned round.
    /// let v = DenseTensor::new(vec![4], vec![1.0, 3.0, 6.0, 2.0], Order::RowMajor)?;
    /// let maps = IndexMaps::new(4, 2, &[0, 1,  1, 0,  1, 2,  2, 1,  2, 3,  3, 2])?;
    /// let fit = Transformed::builder(1, maps).build()?
    ///     .fit(&v, &ShiftedInit::default(), &Stop::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert_eq!((fit.state.kernels.shape(), fit.state.impulses.shape()), ((2, 1), (6, 1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(components: usize, maps: IndexMaps) -> TransformedBuilder<T> {
        TransformedBuilder(Self {
            maps,
            likelihood: Likelihood::default(),
            settings: Settings::new(components),
        })
    }

    /// Number of components `K`.
    pub fn components(&self) -> usize {
        self.settings.components
    }

    /// Binds the configuration to data, as an algorithm for [`plca_fit::run`]. Copies the data.
    ///
    /// # Errors
    ///
    /// [`EmError`]: data of another number of cells than the maps were made for, hidden cells together with a literal
    /// likelihood, a prior that does not fit its block.
    pub fn on<'a, X: Observed<T> + ?Sized>(
        &'a self,
        data: &'a X,
    ) -> Result<TransformedEm<'a, T, X>, EmError> {
        let shape = data.shape();
        let maps = &self.maps;
        if shape.iter().product::<usize>() != maps.cells {
            return Err(EmError::Cells {
                shape: shape.to_vec(),
                expected: maps.cells,
            });
        }
        let literal = self.likelihood == Likelihood::Literal;
        if literal && maps.any_outside && !data.is_complete() {
            return Err(EmError::LiteralWithHidden);
        }
        self.settings.check_priors([maps.kernel, maps.maps])?;
        // Every dimension indexes the kernel: the cells stay in row-major order.
        let geometry = Geometry::new(shape, shape, &[crate::Support::Valid])?;
        Ok(TransformedEm {
            config: self,
            data,
            cells: Cells::new(&Folded::new(&geometry), data),
        })
    }

    /// Runs EM on `data` from `init` until `stop`.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on) and [`TransformedEm::init`].
    pub fn fit<X, R>(
        &self,
        data: &X,
        init: &ShiftedInit<T>,
        stop: &Stop,
        rng: &mut R,
    ) -> Result<Outcome<ShiftedState<T>>, EmError>
    where
        X: Observed<T> + ?Sized,
        R: Rng + ?Sized,
    {
        stop.check()?;
        let algorithm = self.on(data)?;
        let state = algorithm.init(init, rng)?;
        plca_fit::run(&algorithm, state, stop, ())
    }
}

/// [`Transformed`] bound to data: one EM iteration, its objective and its KKT residual.
#[derive(Debug)]
pub struct TransformedEm<'a, T: Real, X: ?Sized> {
    config: &'a Transformed<T>,
    data: &'a X,
    cells: Cells<T>,
}

impl<T: Real, X: Observed<T> + ?Sized> TransformedEm<'_, T, X> {
    /// A start. Blocks that `init` does not give are drawn from `rng`.
    ///
    /// # Errors
    ///
    /// As [`ShiftedEm::init`](crate::ShiftedEm::init).
    pub fn init<R: Rng + ?Sized>(
        &self,
        init: &ShiftedInit<T>,
        rng: &mut R,
    ) -> Result<ShiftedState<T>, EmError> {
        let maps = &self.config.maps;
        let state = self
            .config
            .settings
            .init([maps.kernel, maps.maps], init, rng)?;
        self.first_unsupported(&state).map_or(Ok(state), Err)
    }

    /// `v P(x)` over the data, in row-major order; under the conditional likelihood scaled so that the observed cells have the
    /// mass of the data.
    pub fn reconstruct(&self, state: &ShiftedState<T>) -> Vec<T> {
        let mut scale = self.data.total();
        if self.conditional() {
            scale /= self.expect(state, [false; 2], false).seen;
        }
        let mut p = self.model(state);
        p.iter_mut().for_each(|p| *p *= T::lit(scale));
        p
    }

    /// Log-likelihood of the observed data, without priors.
    pub fn ln_lik(&self, state: &ShiftedState<T>) -> f64 {
        self.ln_lik_of(&self.expect(state, [false; 2], true))
    }

    fn conditional(&self) -> bool {
        let leaves = self.config.maps.any_outside;
        leaves && self.config.likelihood == Likelihood::Conditional || !self.data.is_complete()
    }

    fn ln_lik_of(&self, counts: &Counts<T>) -> f64 {
        if self.conditional() {
            // [SPEC 4] [SPEC 5.2] Σ V ln P - v ln Σ_obs P
            counts.ln_lik - self.data.total() * counts.seen.ln()
        } else {
            counts.ln_lik
        }
    }

    /// `P` of every cell of the data.
    fn model(&self, state: &ShiftedState<T>) -> Vec<T> {
        let maps = &self.config.maps;
        let mut p = vec![T::zero(); maps.cells];
        const PART: usize = 256;
        for_each_part(&mut p, PART, |part, p| {
            for (x, p) in (part * PART..).zip(p) {
                for (z, &w) in state.weights.iter().enumerate() {
                    let (kernel, impulse) = (state.kernels.column(z), state.impulses.column(z));
                    // [SPEC 5.7]
                    let terms = maps.of_cell(x).iter().map(|e| {
                        T::lit(e.weight) * kernel[e.from as usize] * impulse[e.map as usize]
                    });
                    *p += w * terms.sum::<T>();
                }
            }
        });
        p
    }

    fn expect(&self, state: &ShiftedState<T>, wanted: [bool; 2], ln_lik: bool) -> Counts<T> {
        let (maps, weights) = (&self.config.maps, state.weights.as_slice());
        let mut q = self.model(state);
        let mass = q.iter().map(|p| p.to_f64()).sum();
        let (ln_lik, seen, lost) = self.cells.ratios(&mut q, ln_lik, mass);
        // Beyond the data: imputed like a hidden cell, or nothing.
        q.push(match self.config.likelihood {
            Likelihood::Conditional => T::lit(self.data.total() * self.cells.scale / seen),
            Likelihood::Literal => T::zero(),
        });
        let ratio = |e: &Entry| T::lit(e.weight) * q[e.to as usize];
        let zeros =
            |wanted: bool, n: usize| vec![T::zero(); if wanted { n * weights.len() } else { 0 }];
        let mut kernels = zeros(wanted[0], maps.kernel);
        for_each_part(&mut kernels, maps.kernel, |z, sums| {
            for (s, &h) in state.impulses.column(z).iter().enumerate() {
                for e in maps.of_map(s) {
                    sums[e.from as usize] += h * ratio(e);
                }
            }
        });
        to_counts(
            &mut kernels,
            state.kernels.as_slice(),
            weights,
            self.cells.scale,
        );
        let mut impulses = zeros(wanted[1], maps.maps);
        const PART: usize = 64;
        for_each_part(&mut impulses, PART, |part, sums| {
            for (at, sum) in (part * PART..).zip(sums) {
                let kernel = state.kernels.column(at / maps.maps);
                let terms = maps.of_map(at % maps.maps).iter();
                *sum = terms.map(|e| kernel[e.from as usize] * ratio(e)).sum();
            }
        });
        to_counts(
            &mut impulses,
            state.impulses.as_slice(),
            weights,
            self.cells.scale,
        );
        Counts {
            kernels,
            impulses,
            ln_lik,
            seen,
            lost,
        }
    }

    /// The first cell, in row-major order, where something was observed that the model excludes.
    fn first_unsupported(&self, state: &ShiftedState<T>) -> Option<EmError> {
        let p = self.model(state);
        let shape = self.data.shape();
        let mut first: Option<(Vec<usize>, f64)> = None;
        self.data.for_each(&mut |index, value| {
            let earlier = first.as_ref().is_none_or(|(i, _)| index < i.as_slice());
            let at = index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i);
            if earlier && p[at] <= T::zero() {
                first = Some((index.to_vec(), value));
            }
        });
        first.map(|(index, value)| EmError::Support { index, value })
    }
}

impl<T: Real, X: Observed<T> + ?Sized> Algorithm for TransformedEm<'_, T, X> {
    type State = ShiftedState<T>;
    type Error = EmError;

    /// The objective is not measured while a power moves towards 1: such iterations are no EM, and must not end a run.
    fn step(&self, state: &mut ShiftedState<T>, measure: bool) -> Result<Option<f64>, EmError> {
        let settings = &self.config.settings;
        let measure = measure && !settings.annealing(state.iteration + 1);
        let counts = self.expect(state, settings.wanted(), measure);
        if counts.lost {
            return Err(self.first_unsupported(state).unwrap_or(EmError::NoMass));
        }
        let value = measure.then(|| self.ln_lik_of(&counts) + settings.ln_prior(state));
        let emptied = settings.maximise(state, counts.kernels, counts.impulses)?;
        if emptied.contains(&true) && self.expect(state, [false; 2], true).lost {
            restore(state, emptied);
        }
        Ok(value)
    }

    fn objective(&self, state: &ShiftedState<T>) -> Result<f64, EmError> {
        Ok(self.ln_lik(state) + self.config.settings.ln_prior(state))
    }

    /// `max |θ (g - 1)|` over the free blocks and live components; 0 exactly at a stationary point of the likelihood.
    fn residual(&self, state: &ShiftedState<T>) -> Result<Option<f64>, EmError> {
        Ok(self.config.settings.residual(state, |wanted| {
            let counts = self.expect(state, wanted, false);
            [counts.kernels, counts.impulses]
        }))
    }
}

impl<T: Real, X: Observed<T> + ?Sized> Accelerate for TransformedEm<'_, T, X> {
    fn pack(&self, state: &ShiftedState<T>) -> Vec<f64> {
        pack(state)
    }

    fn unpack(
        &self,
        template: &ShiftedState<T>,
        flat: &[f64],
        fallback: &[f64],
    ) -> ShiftedState<T> {
        self.config.settings.unpack(template, flat, fallback)
    }
}
