//! What the engine knows of a block of parameters.

use std::borrow::Cow;

use nalgebra::{DMatrix, DVectorView};
use plca_dist::random::{exponential, uniform};
use plca_priors::{PriorSpec, Step};
use plca_tensor::{Real, exponent, normalise_columns, times_power_of_two};
use rand::Rng;

use super::{Axes, Axis, FitError, Prior};

/// The condition that the values of a block must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Constraint {
    /// Non-negative columns that sum to 1.
    Simplex,
    /// Non-negative values.
    NonNegative,
    /// Positive values, such as the shapes of a posterior. An extrapolated value goes no lower than 0.02, or than the last one where that was lower.
    Positive,
    /// Any finite values.
    Free,
}

impl Constraint {
    /// Whether a value satisfies it.
    fn allows<T: Real>(self, x: T) -> bool {
        let inside = match self {
            Self::Simplex | Self::NonNegative => x >= T::zero(),
            Self::Positive => x > T::zero(),
            Self::Free => true,
        };
        inside && x.is_finite()
    }

    /// An extrapolated value, brought back to where it may be; `last` is that of the last iteration.
    pub(super) fn bring_back(self, new: f64, last: f64) -> f64 {
        match self {
            // [SPEC 10] an entry that left the orthant becomes a tenth of its last EM value
            Self::Simplex | Self::NonNegative if new > 0.0 => new,
            Self::Simplex | Self::NonNegative => 0.1 * last,
            // [SKELLAM 9]
            Self::Positive => new.max(last.min(0.02)),
            Self::Free => new,
        }
    }
}

/// The part of a block that keeps its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Frozen {
    /// Nothing.
    #[default]
    No,
    /// All of it.
    Whole,
    /// These components.
    Components(Vec<usize>),
    /// The entries whose flag in a matrix of the block's shape is set. In a column that is a distribution the others share what they leave.
    Entries(DMatrix<bool>),
}

/// The source of the values of a block at a start that does not give it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Draw {
    /// Columns drawn uniformly from the simplex.
    Simplex,
    /// The same, of which all of the upper half of the rows is drawn first: the sides of signed atoms.
    Sides,
    /// `1 / rows` everywhere, without a random number.
    Even,
    /// Numbers drawn uniformly between half of this and 1.5 times this.
    Around(f64),
    /// These values column after column, which come from the data, whatever a start gives.
    Data(Vec<f64>),
}

/// A block of parameters: its name, shape, constraint, prior, and which part of it is frozen.
#[derive(Clone, Debug)]
pub struct BlockSpec<T: Real> {
    /// The name, by which builders, files and errors speak of it.
    pub name: Cow<'static, str>,
    /// Rows and columns.
    pub shape: (usize, usize),
    /// What its rows and its columns count.
    pub axes: Axes,
    /// The condition that its values must satisfy.
    pub constraint: Constraint,
    /// A prior on it.
    pub prior: Option<Prior<T>>,
    /// The part of it that is frozen.
    pub frozen: Frozen,
    /// The source of its values at a start that does not give them.
    pub draw: Draw,
    /// Whether every iteration sets it, whatever it was: no solver extrapolates it.
    pub follows: bool,
}

/// The divisor of the counts of a block of rates.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Exposure<T: Real> {
    /// One number for every component; of blocks without components ([`Axis::None`]) for every column.
    PerComponent(Vec<T>),
    /// What every old entry gave to the observed cells, the exposure times that entry, as an E-step under [`Rule::Exposure`](plca_tensor::Rule) counts it.
    PerEntry(#[cfg_attr(feature = "serde", serde(with = "crate::packed::matrix"))] DMatrix<T>),
}

/// What [`BlockSpec::restore`] adds to every entry.
const TRACE: f64 = 1e-12;

impl<T: Real> BlockSpec<T> {
    /// A free simplex block without a prior.
    pub fn simplex(name: impl Into<Cow<'static, str>>, shape: (usize, usize), axes: Axes) -> Self {
        Self {
            name: name.into(),
            shape,
            axes,
            constraint: Constraint::Simplex,
            prior: None,
            frozen: Frozen::No,
            draw: Draw::Simplex,
            follows: false,
        }
    }

    /// A free block of other values without a prior.
    pub fn values(
        name: impl Into<Cow<'static, str>>,
        shape: (usize, usize),
        axes: Axes,
        constraint: Constraint,
    ) -> Self {
        Self {
            constraint,
            ..Self::simplex(name, shape, axes)
        }
    }

    /// Drawn values. The numbers that a generator gives are taken column after column.
    pub fn drawn(&self, rng: &mut dyn Rng) -> DMatrix<T> {
        let (rows, columns) = self.shape;
        match &self.draw {
            Draw::Simplex => {
                let mut m = DMatrix::from_fn(rows, columns, |_, _| T::lit(exponential(rng)));
                normalise_columns(&mut m);
                m
            }
            Draw::Sides => {
                let mut m = DMatrix::zeros(rows, columns);
                let half = rows / 2;
                for (first, height) in [(0, half), (half, rows - half)] {
                    let mut side = m.rows_mut(first, height);
                    side.iter_mut().for_each(|x| *x = T::lit(exponential(rng)));
                }
                normalise_columns(&mut m);
                m
            }
            Draw::Even => self.even(),
            Draw::Around(x) => {
                DMatrix::from_fn(rows, columns, |_, _| T::lit(x * (0.5 + uniform(rng))))
            }
            Draw::Data(values) => self.of_data(values),
        }
    }

    fn of_data(&self, values: &[f64]) -> DMatrix<T> {
        let (rows, columns) = self.shape;
        DMatrix::from_iterator(rows, columns, values.iter().map(|&x| T::lit(x)))
    }

    /// The block whose every entry is `1 / rows`.
    pub fn even(&self) -> DMatrix<T> {
        let (rows, columns) = self.shape;
        DMatrix::from_element(rows, columns, T::one() / T::lit(rows as f64))
    }

    /// The block for given values; the block of the data, if it comes from them. Columns of a simplex block are normalised; those that sum to 1 already keep their bits.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`], [`FitError::Value`], [`FitError::Empty`] for a column of zeros.
    pub fn given(&self, given: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        if let Draw::Data(values) = &self.draw {
            return Ok(self.of_data(values));
        }
        self.check_values(&given)?;
        if self.constraint != Constraint::Simplex {
            return Ok(given);
        }
        let mut block = given.clone();
        for mut column in block.column_iter_mut() {
            // Large entries first: a column of 1e308s must not sum to infinity.
            let largest = column.amax();
            if largest > T::zero() {
                column /= largest;
            }
        }
        let sums = normalise_columns(&mut block);
        if let Some(column) = sums.iter().position(|&s| s <= T::zero()) {
            return Err(FitError::Empty {
                block: self.name.to_string(),
                column,
            });
        }
        let rounding = T::lit(4.0 * given.nrows() as f64) * T::EPSILON;
        let shared = self.shared();
        for (z, given) in given.column_iter().enumerate() {
            if (given.sum() - T::one()).abs() <= rounding {
                block.set_column(z, &given);
            } else if let Some(frozen) = of_column(&shared, z, given.nrows())
                && frozen.contains(&true)
                && frozen.contains(&false)
            {
                self.fill_up(z, &given, frozen, &mut block)?;
            }
        }
        Ok(block)
    }

    /// Puts a given column into its block: frozen entries as they are, the others scaled to what is left.
    fn fill_up(
        &self,
        z: usize,
        given: &DVectorView<'_, T>,
        frozen: &[bool],
        block: &mut DMatrix<T>,
    ) -> Result<(), FitError> {
        // Large entries first, as above.
        let largest = given.amax().to_f64();
        let sum = |of: bool, unit: f64| {
            let entries = given.iter().zip(frozen);
            let entries = entries.filter(|(_, frozen)| **frozen == of);
            entries.map(|(x, _)| x.to_f64() / unit).sum::<f64>()
        };
        let (kept, free) = (sum(true, 1.0), sum(false, largest));
        if kept > 1.0 + f64::max(1e-12, 4.0 * frozen.len() as f64 * T::EPSILON.to_f64()) {
            let name = &self.name;
            let what = format!(
                "frozen entries of column {z} of `{name}` sum to {kept}: expected at most 1"
            );
            return Err(FitError::Conflict { what });
        }
        let left = (1.0 - kept).max(0.0);
        if free <= 0.0 && left > 1e-12 {
            return Err(FitError::Empty {
                block: self.name.to_string(),
                column: z,
            });
        }
        for ((x, &given), &frozen) in block.column_mut(z).iter_mut().zip(given).zip(frozen) {
            // [EXT 1] free entries share m = 1 - Σ of the frozen ones
            *x = match frozen {
                true => given,
                false if left > 0.0 && free > 0.0 => {
                    T::lit(given.to_f64() / largest * (left / free))
                }
                false => T::zero(),
            };
        }
        Ok(())
    }

    /// Refuses another shape, and the first value in row-major order that its constraint does not allow.
    pub fn check_values(&self, block: &DMatrix<T>) -> Result<(), FitError> {
        if block.shape() != self.shape {
            return Err(FitError::Shape {
                block: self.name.to_string(),
                got: block.shape(),
                expected: self.shape,
            });
        }
        let mut places = (0..block.nrows()).flat_map(|i| (0..block.ncols()).map(move |j| (i, j)));
        let place = places.find(|&place| !self.constraint.allows(block[place]));
        let expected = match self.constraint {
            Constraint::Simplex | Constraint::NonNegative => None,
            Constraint::Positive => Some("a finite number > 0"),
            Constraint::Free => Some("a finite number"),
        };
        match (place, expected) {
            (Some(place), Some(expected)) => Err(FitError::Range {
                block: self.name.to_string(),
                row: place.0,
                column: place.1,
                value: block[place].to_f64(),
                expected,
            }),
            (Some(place), None) => Err(FitError::Value {
                block: self.name.to_string(),
                row: place.0,
                column: place.1,
                value: block[place].to_f64(),
            }),
            (None, _) => Ok(()),
        }
    }

    /// Puts a prior on the block.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for one of other values than the block has, [`FitError::Prior`] for one that does not fit it.
    pub fn set_prior(&mut self, prior: &PriorSpec) -> Result<(), FitError> {
        let (constraint, of) = match prior.is_of_rates() {
            false => (Constraint::Simplex, "distributions"),
            true => (Constraint::NonNegative, "rates"),
        };
        if self.constraint != constraint {
            let what = format!("a prior of {of} cannot be used on `{}`", self.name);
            return Err(FitError::Conflict { what });
        }
        let prior = match constraint {
            Constraint::Simplex => prior.simplex(self.shape).map(Prior::Simplex),
            _ => prior.rate(self.shape).map(Prior::Rate),
        };
        self.prior = Some(prior.map_err(|source| self.refused(source))?);
        Ok(())
    }

    /// Refuses a prior made for another shape, and frozen components that the block does not have or whose column a prior shares.
    ///
    /// # Errors
    ///
    /// [`FitError::Prior`], [`FitError::Component`], [`FitError::FrozenUnderPrior`].
    pub fn check(&self) -> Result<(), FitError> {
        if let Some(prior) = &self.prior {
            let (constraint, of) = match prior {
                Prior::Simplex(_) => (Constraint::Simplex, "distributions"),
                Prior::Rate(_) => (Constraint::NonNegative, "rates"),
            };
            if self.constraint != constraint {
                let what = format!("a prior of {of} cannot be used on `{}`", self.name);
                return Err(FitError::Conflict { what });
            }
            let checked = prior.rules().check(self.shape);
            checked.map_err(|source| self.refused(source))?;
        }
        match &self.frozen {
            Frozen::No | Frozen::Whole => {}
            Frozen::Components(components) => {
                let count = self.component_count();
                if let Some(&component) = components.iter().find(|&&z| z >= count) {
                    return Err(FitError::Component {
                        block: self.name.to_string(),
                        component,
                        components: count,
                    });
                }
            }
            Frozen::Entries(flags) if flags.shape() != self.shape => {
                return Err(FitError::Shape {
                    block: format!("frozen entries of {}", self.name),
                    got: flags.shape(),
                    expected: self.shape,
                });
            }
            Frozen::Entries(_) => {}
        }
        let refuses = |prior: &Prior<T>| !prior.rules().shares_columns();
        if self.prior.as_ref().is_some_and(refuses) && !self.shared().is_empty() {
            return Err(FitError::FrozenUnderPrior {
                block: self.name.to_string(),
            });
        }
        Ok(())
    }

    /// A flag for each entry, column after column: whether it is frozen. Empty unless a column that is a distribution has frozen entries beside
    /// free ones.
    fn shared(&self) -> Vec<bool> {
        let (rows, columns) = self.shape;
        if self.constraint != Constraint::Simplex {
            return Vec::new();
        }
        match &self.frozen {
            Frozen::Components(_) if self.axes.components() == Axis::Rows => {
                self.frozen_components().repeat(columns)
            }
            Frozen::Entries(flags) => {
                let mixed = |column: &[bool]| column.contains(&true) && column.contains(&false);
                let some = flags.as_slice().chunks_exact(rows.max(1)).any(mixed);
                if some {
                    flags.as_slice().to_vec()
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        }
    }

    fn component_count(&self) -> usize {
        match self.axes.components() {
            Axis::Rows => self.shape.0,
            Axis::Columns => self.shape.1,
            Axis::None => 0,
        }
    }

    /// A flag for each component: whether it is frozen, with all of its entries. Empty if nothing is frozen.
    pub fn frozen_components(&self) -> Vec<bool> {
        let count = self.component_count();
        match &self.frozen {
            Frozen::No => Vec::new(),
            Frozen::Whole => vec![true; count],
            Frozen::Components(components) => (0..count).map(|z| components.contains(&z)).collect(),
            Frozen::Entries(flags) => match self.axes.components() {
                Axis::Rows => flags.row_iter().map(|row| row.iter().all(|&x| x)).collect(),
                Axis::Columns => {
                    let columns = flags.column_iter();
                    columns.map(|column| column.iter().all(|&x| x)).collect()
                }
                Axis::None => Vec::new(),
            },
        }
    }

    /// Whether some of it is frozen, and not all.
    pub fn is_partly_frozen(&self) -> bool {
        matches!(self.frozen, Frozen::Components(_) | Frozen::Entries(_))
    }

    fn refused(&self, source: plca_priors::PriorError) -> FitError {
        FitError::Prior {
            block: self.name.to_string(),
            source,
        }
    }

    /// Makes the M-step of a block from its counts and its old values; and says whether the prior set an entry to 0 that was positive, so
    /// that a cell of the data may have lost its support.
    ///
    /// ```math
    /// \theta = \mathrm{argmax} \sum_i c_i \ln \theta_i + \ln p(\theta),
    /// \qquad \text{without a prior} \quad \theta_i = \frac{c_i}{\sum_k c_k}
    /// ```
    ///
    /// `c` are the counts of a column. A column without counts keeps its values, and so does what is frozen, bit for bit.
    ///
    /// # Errors
    ///
    /// [`FitError::Prior`].
    pub fn m_step(
        &self,
        counts: DMatrix<T>,
        old: &DMatrix<T>,
        exposure: Option<Exposure<T>>,
        iteration: usize,
    ) -> Result<(DMatrix<T>, bool), FitError> {
        self.m_step_in(counts, 1.0, old, exposure, iteration)
    }

    /// The same from counts in a unit, a power of two, in which an exposure of every entry is too.
    ///
    /// # Errors
    ///
    /// As [`m_step`](Self::m_step).
    pub fn m_step_in(
        &self,
        mut counts: DMatrix<T>,
        unit: f64,
        old: &DMatrix<T>,
        exposure: Option<Exposure<T>>,
        iteration: usize,
    ) -> Result<(DMatrix<T>, bool), FitError> {
        let shared = self.shared();
        if let Some(prior) = &self.prior {
            // Priors need plain counts, so the unit is multiplied back; a flat prior does not.
            let mut exposure = exposure;
            if unit != 1.0 && !self.is_flat(prior) {
                counts *= T::lit(unit);
                if let Some(Exposure::PerEntry(x)) = &mut exposure {
                    *x *= T::lit(unit);
                }
            }
            let mut new = old.clone();
            let columns = match self.axes.components() {
                Axis::Columns => self.frozen_components(),
                Axis::Rows | Axis::None => Vec::new(),
            };
            let step = Step::at(iteration).frozen(&columns).entries(&shared);
            let updated = match prior {
                Prior::Simplex(prior) => prior.update(&counts, &mut new, &step),
                Prior::Rate(prior) => {
                    let exposure = self.per_entry(exposure, old);
                    prior.update(&counts, &exposure, &mut new, &step)
                }
            };
            updated.map_err(|source| self.refused(source))?;
            self.keep(old, &mut new);
            let emptied = |(before, after): (&T, &T)| *before > T::zero() && *after <= T::zero();
            let lost = prior.rules().may_empty() && old.iter().zip(&new).any(emptied);
            return Ok((new, lost));
        }
        match (self.constraint, exposure) {
            (Constraint::Simplex, _) if !shared.is_empty() => share_out(&mut counts, old, &shared),
            (Constraint::Simplex, _) => {
                // [SI eq. 4] [SI eq. 15] [SI eq. 40] [LV eq. 14] [SPEC 1.1] [SPEC 2] [SPEC 5.1] F <- C / n
                let sums = normalise_columns(&mut counts);
                for (z, _) in sums.iter().enumerate().filter(|&(_, &s)| s <= T::zero()) {
                    counts.set_column(z, &old.column(z));
                }
            }
            (Constraint::NonNegative, Some(exposure)) => {
                return Ok((self.divided_in(counts, unit, old, exposure), false));
            }
            (Constraint::NonNegative, None) | (Constraint::Positive | Constraint::Free, _) => {
                if unit != 1.0 {
                    counts *= T::lit(unit);
                }
            }
        }
        self.keep(old, &mut counts);
        Ok((counts, false))
    }

    /// Whether a prior of distributions leaves the counts as they are.
    fn is_flat(&self, prior: &Prior<T>) -> bool {
        let added = || prior.rules().pseudo_counts(self.shape);
        let nothing = |added: DMatrix<f64>| added.iter().all(|&x| x == 0.0);
        self.constraint == Constraint::Simplex && added().is_some_and(nothing)
    }

    /// What the counts of each entry are divided by: 0 where nothing is known of it.
    fn per_entry(&self, exposure: Option<Exposure<T>>, old: &DMatrix<T>) -> DMatrix<T> {
        let (rows, columns) = self.shape;
        match exposure {
            None => DMatrix::zeros(rows, columns),
            Some(Exposure::PerEntry(given)) => given.zip_map(old, |x, old| match old > T::zero() {
                true => x / old,
                false => T::zero(),
            }),
            Some(Exposure::PerComponent(each)) => match self.axes.components() {
                Axis::Rows => DMatrix::from_vec(rows, columns, each.repeat(columns)),
                Axis::Columns | Axis::None => DMatrix::from_fn(rows, columns, |_, j| each[j]),
            },
        }
    }

    /// Makes rates of counts.
    ///
    /// ```math
    /// F \gets C / x \quad \text{or} \quad F \gets F \circ C / X
    /// ```
    ///
    /// `C` are the counts of the block `F`, `x` is one exposure for every component, and `X` counts what the old entries gave. What has no
    /// exposure keeps its value, and so do frozen components.
    pub fn divided(
        &self,
        counts: DMatrix<T>,
        old: &DMatrix<T>,
        exposure: Exposure<T>,
    ) -> DMatrix<T> {
        self.divided_in(counts, 1.0, old, exposure)
    }

    /// The same from counts in a unit, a power of two, in which an exposure of every entry is too.
    fn divided_in(
        &self,
        mut counts: DMatrix<T>,
        unit: f64,
        old: &DMatrix<T>,
        exposure: Exposure<T>,
    ) -> DMatrix<T> {
        match exposure {
            Exposure::PerEntry(exposure) => {
                counts.zip_zip_apply(old, &exposure, |c, old, x| {
                    *c = if x > T::zero() { old * (*c / x) } else { old };
                });
            }
            Exposure::PerComponent(exposure) => {
                let rows = counts.nrows();
                // A half of the unit each: neither counts of small entries nor the exposure leave the range of numbers on the way.
                let half = exponent(unit) / 2;
                let up = T::lit(times_power_of_two(1.0, half));
                let down = T::lit(times_power_of_two(1.0, half - exponent(unit)));
                let both = counts.as_mut_slice().iter_mut().zip(old.as_slice());
                for (at, (c, &old)) in both.enumerate() {
                    let x = match self.axes.components() {
                        Axis::Rows => exposure[at % rows],
                        Axis::Columns | Axis::None => exposure[at / rows],
                    };
                    let x = x * down;
                    *c = if x > T::zero() { *c * up / x } else { old };
                }
            }
        }
        self.keep(old, &mut counts);
        counts
    }

    /// Gives a block extrapolated values, each with that of the last iteration: one that left the orthant becomes a tenth of the last, columns on
    /// the simplex are normalised, and what is frozen, or follows from the rest, keeps its values.
    pub(super) fn extrapolate(
        &self,
        block: &mut DMatrix<T>,
        values: impl Iterator<Item = (f64, f64)>,
    ) {
        if self.frozen == Frozen::Whole || self.follows {
            return values.for_each(drop);
        }
        let old = block.clone();
        for (x, (new, last)) in block.iter_mut().zip(values) {
            *x = T::lit(self.constraint.bring_back(new, last));
        }
        if self.constraint == Constraint::Simplex {
            normalise_columns(block);
        }
        self.keep_frozen(&old, block);
    }

    /// Restores the frozen entries. In columns of distributions with frozen entries the others are scaled so that the columns sum to 1.
    pub fn keep_frozen(&self, old: &DMatrix<T>, new: &mut DMatrix<T>) {
        let shared = self.shared();
        if !shared.is_empty() {
            share_out(new, old, &shared);
        }
        self.keep(old, new);
    }

    /// Puts what is frozen back.
    fn keep(&self, old: &DMatrix<T>, new: &mut DMatrix<T>) {
        if let Frozen::Entries(flags) = &self.frozen {
            let entries = new.iter_mut().zip(old).zip(flags);
            for ((new, &old), _) in entries.filter(|(_, frozen)| **frozen) {
                *new = old;
            }
            return;
        }
        let frozen = self.frozen_components();
        for (z, _) in frozen.iter().enumerate().filter(|(_, frozen)| **frozen) {
            match self.axes.components() {
                Axis::Columns => new.set_column(z, &old.column(z)),
                Axis::Rows => new.set_row(z, &old.row(z)),
                Axis::None => {}
            }
        }
    }

    /// Whether its entries are rates, which have a unit: not shares, shapes, or numbers that belong to no component.
    pub(super) fn has_unit(&self) -> bool {
        !matches!(self.constraint, Constraint::Simplex | Constraint::Positive)
            && self.axes.components() != Axis::None
    }

    /// Whether all entries are so small that neither the next step nor what belongs to them in another block leaves the range of numbers: below
    /// `2^(MAX_EXPONENT / 2)` times the unit if they have one, otherwise below `2^(MAX_EXPONENT - 2)`.
    pub(super) fn within_range(&self, block: &DMatrix<T>, unit: Option<f64>) -> bool {
        let end = T::MAX_EXPONENT - 2;
        let most = match unit {
            Some(unit) if self.has_unit() => end.min(exponent(unit) + T::MAX_EXPONENT / 2),
            _ => end,
        };
        let most = T::lit(times_power_of_two(1.0, most));
        block.iter().all(|x| x.abs() <= most)
    }

    /// Whether a value of the block tells components apart: of several entries each, they do not all have the same.
    pub fn tells_apart(&self, block: &DMatrix<T>) -> bool {
        let (rows, columns) = block.shape();
        match self.axes.components() {
            Axis::Columns => rows > 1 && (1..columns).any(|z| block.column(z) != block.column(0)),
            Axis::Rows => columns > 1 && (1..rows).any(|z| block.row(z) != block.row(0)),
            Axis::None => false,
        }
    }

    /// Adds a small value to every entry: `q <- (q + 1e-12) / (1 + 1e-12 I)`, except for frozen components. Rates get 1e-12 times the largest of them.
    pub fn restore(&self, block: &mut DMatrix<T>) {
        let old = block.clone();
        let (trace, sum) = match self.constraint {
            Constraint::Simplex => (TRACE, TRACE * block.nrows() as f64),
            _ => match block.max().to_f64() {
                largest if largest > 0.0 => (TRACE * largest, 0.0),
                _ => (TRACE, 0.0),
            },
        };
        for q in block.iter_mut() {
            // [SPEC 8] q <- (q + 1e-12) / (1 + 1e-12 I)
            *q = T::lit((q.to_f64() + trace) / (1.0 + sum));
        }
        self.keep_frozen(&old, block);
    }
}

/// The flags of a column, if there are any.
fn of_column(flags: &[bool], z: usize, rows: usize) -> Option<&[bool]> {
    flags
        .get(z * rows..(z + 1) * rows)
        .filter(|flags| !flags.is_empty())
}

/// Columns of counts whose frozen entries keep their shares: the others have what is left, as their counts say.
fn share_out<T: Real>(counts: &mut DMatrix<T>, old: &DMatrix<T>, frozen: &[bool]) {
    let columns = counts.column_iter_mut().zip(old.column_iter());
    let columns = columns.zip(frozen.chunks_exact(old.nrows()));
    for ((mut column, old), frozen) in columns {
        let free = |z: &usize| !frozen[*z];
        let rows = 0..old.len();
        let kept: T = rows.clone().filter(|z| !free(z)).map(|z| old[z]).sum();
        let sum: T = rows.clone().filter(free).map(|z| column[z]).sum();
        for z in rows.filter(free) {
            column[z] = if kept >= T::one() {
                T::zero()
            } else if sum > T::zero() {
                // [EXT 1] θ_f <- m φ, φ = c_f / Σ c_f
                column[z] / sum * (T::one() - kept)
            } else {
                old[z]
            };
        }
    }
}

/// The names of blocks, in their order.
pub(super) fn names<T: Real>(specs: &[BlockSpec<T>]) -> Vec<String> {
    specs.iter().map(|spec| spec.name.to_string()).collect()
}

/// The numbers of all blocks, twice: an iteration has old and new ones.
fn numbers<T: Real>(specs: &[BlockSpec<T>]) -> (usize, Option<usize>) {
    let all = specs.iter().try_fold(0usize, |all, spec| {
        all.checked_add(spec.shape.0.checked_mul(spec.shape.1)?)
    });
    let components = specs.iter().map(BlockSpec::component_count).max();
    (
        components.unwrap_or(0),
        all.and_then(|all| all.checked_mul(2)),
    )
}

/// Refuses blocks that no machine could hold. Those of samples may be shared out among many, so what this one has does not count.
pub(super) fn check_blocks<T: Real>(specs: &[BlockSpec<T>]) -> Result<(), FitError> {
    /// Bytes that a process can address.
    const ADDRESSABLE: u128 = 1 << 47;
    let (components, all) = numbers(specs);
    let bytes = |n: usize| n as u128 * size_of::<T>() as u128;
    if all.is_some_and(|n| bytes(n) < ADDRESSABLE) {
        return Ok(());
    }
    Err(no_room(components))
}

/// Refuses blocks for which there is no memory here.
pub(super) fn check_memory<T: Real>(specs: &[BlockSpec<T>]) -> Result<(), FitError> {
    let (components, all) = numbers(specs);
    check_room::<T>(components, all)
}

fn no_room(components: usize) -> FitError {
    FitError::Setting {
        name: "components",
        value: components as f64,
        expected: "so few that memory holds the model",
    }
}

/// Refuses a number of components whose numbers no memory holds; `None` for more than can be counted.
///
/// # Errors
///
/// [`FitError::Setting`].
#[doc(hidden)]
pub fn check_room<T: Real>(components: usize, numbers: Option<usize>) -> Result<(), FitError> {
    // More than `isize::MAX` bytes are no capacity, and of less an allocator knows.
    if numbers.is_some_and(|n| Vec::<T>::new().try_reserve_exact(n).is_ok()) {
        return Ok(());
    }
    Err(no_room(components))
}

/// Refuses a name that no block has.
pub(super) fn check_known<'a, T: Real>(
    specs: &[BlockSpec<T>],
    mut named: impl Iterator<Item = &'a String>,
) -> Result<(), FitError> {
    match named.find(|name| !specs.iter().any(|spec| spec.name == **name)) {
        Some(name) => Err(FitError::UnknownBlock {
            name: name.clone(),
            expected: names(specs),
        }),
        None => Ok(()),
    }
}
