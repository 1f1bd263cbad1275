//! The parameters of a model: named blocks.

use std::borrow::Cow;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;

use super::block::names;
use super::{BlockSpec, Constraint, FitError};

/// Named blocks of parameters, and how many iterations made them.
///
/// They are checked when they are made; every step leaves them valid.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
pub struct Parameters<T: Real> {
    names: Arc<[Cow<'static, str>]>,
    #[cfg_attr(feature = "serde", serde(with = "crate::packed::matrices"))]
    blocks: Vec<DMatrix<T>>,
    iteration: usize,
    power: f64,
    mass: f64,
    /// In the order of their names. Shared, for they can be as long as the data have cells.
    facts: Vec<(Cow<'static, str>, Arc<[f64]>)>,
}

/// The fact that holds what a model must be multiplied by to approximate data of which something is hidden; see [`Algorithm::scale`].
///
/// [`Algorithm::scale`]: super::Algorithm::scale
pub const SCALE: &str = "scale";

impl<T: Real> Parameters<T> {
    /// Blocks of these specifications, in their order.
    ///
    /// # Errors
    ///
    /// [`FitError::Count`] for another number of blocks, [`FitError::Shape`] for another shape, [`FitError::Value`] for the first value in row-major
    /// order that is negative or not finite, [`FitError::Sum`] for a column that does not sum to 1 to half of the scalar's digits.
    pub fn new(specs: &[BlockSpec<T>], blocks: Vec<DMatrix<T>>) -> Result<Self, FitError> {
        let at = Self {
            names: specs.iter().map(|spec| spec.name.clone()).collect(),
            blocks,
            iteration: 0,
            power: 1.0,
            mass: 1.0,
            facts: Vec::new(),
        };
        at.check(specs)?;
        Ok(at)
    }

    /// Refuses parameters of other blocks.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn check(&self, specs: &[BlockSpec<T>]) -> Result<(), FitError> {
        if !self.names.iter().eq(specs.iter().map(|spec| &spec.name)) {
            return Err(FitError::Blocks {
                got: self.names.iter().map(|name| name.to_string()).collect(),
                expected: names(specs),
            });
        }
        if self.blocks.len() != specs.len() {
            return Err(FitError::Count {
                got: self.blocks.len(),
                expected: names(specs),
            });
        }
        let good = self.power > 0.0 && self.power <= 1.0;
        FitError::unless(good, "power", self.power, "a power in (0, 1]")?;
        let good = self.mass >= 0.0 && self.mass.is_finite();
        FitError::unless(good, "mass", self.mass, "a finite number >= 0")?;
        let mut pairs = specs.iter().zip(&self.blocks);
        pairs.try_for_each(|(spec, block)| check(spec, block))
    }

    /// The first value that is no finite number, and the name of its block.
    pub(super) fn not_finite(&self) -> Option<(&str, T)> {
        let first = |(name, block): (_, &DMatrix<T>)| {
            let bad = block.iter().find(|x| !x.is_finite())?;
            Some((name, *bad))
        };
        self.blocks().find_map(first)
    }

    /// A block by its name.
    pub fn block(&self, name: &str) -> Option<&DMatrix<T>> {
        let at = self.names.iter().position(|other| other == name)?;
        Some(&self.blocks[at])
    }

    /// The blocks with their names, in the model's order.
    pub fn blocks(&self) -> impl Iterator<Item = (&str, &DMatrix<T>)> {
        self.names.iter().map(|name| &**name).zip(&self.blocks)
    }

    /// All blocks, in the model's order.
    pub fn matrices(&self) -> &[DMatrix<T>] {
        &self.blocks
    }

    /// A block by its place.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    pub fn at(&self, block: usize) -> &DMatrix<T> {
        &self.blocks[block]
    }

    /// Rows and columns of a block by its place, 0 of both if there is no such block.
    pub fn shape(&self, block: usize) -> (usize, usize) {
        self.blocks.get(block).map_or((0, 0), DMatrix::shape)
    }

    /// The tempering power of the next iteration, 1 if it is not tempered.
    pub fn power(&self) -> f64 {
        self.power
    }

    /// The sum of the data that they were fitted to: what the cells of a model of distributions are multiplied by.
    pub fn mass(&self) -> f64 {
        self.mass
    }

    /// Numbers that belong to a state besides its blocks, such as which mode is given.
    pub fn fact(&self, name: &str) -> Option<&[f64]> {
        let mut facts = self.facts.iter();
        let fact = facts.find(|(other, _)| other == name)?;
        Some(&fact.1)
    }

    /// Refuses a scale, if there is one, that does not have this number of finite entries `>= 0`.
    ///
    /// # Errors
    ///
    /// [`FitError::Fact`].
    pub fn check_scale(&self, count: usize) -> Result<(), FitError> {
        let Some(scale) = self.fact(SCALE) else {
            return Ok(());
        };
        let got = match scale.iter().find(|x| !(x.is_finite() && **x >= 0.0)) {
            Some(bad) => bad.to_string(),
            None if scale.len() != count => format!("a list of {}", scale.len()),
            None => return Ok(()),
        };
        Err(FitError::Fact {
            name: SCALE,
            got,
            expected: format!("{count} finite numbers >= 0"),
        })
    }

    /// All facts, in the order of their names.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &[f64])> {
        self.facts
            .iter()
            .map(|(name, numbers)| (&**name, &**numbers))
    }

    /// A fact that is made of whole numbers, such as a shape.
    ///
    /// # Errors
    ///
    /// [`FitError::Fact`] where it is missing, or with the first number that is not whole, negative or beyond 2^53.
    pub fn whole(&self, name: &'static str) -> Result<Vec<usize>, FitError> {
        let refuse = |got: String| FitError::Fact {
            name,
            got,
            expected: "whole numbers from 0 to 2^53".into(),
        };
        let numbers = self.fact(name).ok_or_else(|| refuse("missing".into()))?;
        let bad = |x: &&f64| !(**x >= 0.0 && **x <= (1u64 << 53) as f64 && x.fract() == 0.0);
        match numbers.iter().find(bad) {
            Some(x) => Err(refuse(x.to_string())),
            None => Ok(numbers.iter().map(|&x| x as usize).collect()),
        }
    }

    /// The same parameters with a fact more, in place of one of its name.
    #[must_use]
    pub fn with_fact(mut self, name: impl Into<Cow<'static, str>>, numbers: Vec<f64>) -> Self {
        let name = name.into();
        match self.facts.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = numbers.into(),
            None => {
                let at = self.facts.partition_point(|(other, _)| *other < name);
                self.facts.insert(at, (name, numbers.into()));
            }
        }
        self
    }

    /// The same without a fact.
    pub(super) fn without_fact(mut self, name: &str) -> Self {
        self.facts.retain(|(other, _)| other != name);
        self
    }

    /// The same parameters after this number of iterations.
    #[must_use]
    pub fn at_iteration(mut self, iteration: usize) -> Self {
        self.iteration = iteration;
        self
    }

    /// The same parameters with another tempering power of the next iteration.
    #[must_use]
    pub fn at_power(mut self, power: f64) -> Self {
        self.power = power;
        self
    }

    pub(super) fn with(mut self, power: f64, mass: f64) -> Self {
        (self.power, self.mass) = (power, mass);
        self
    }

    /// The same parameters, of a model to which the sum of the data says nothing: that of signed data may have either sign.
    #[must_use]
    pub fn without_mass(mut self) -> Self {
        self.mass = 1.0;
        self
    }

    /// Iterations done.
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// All values, one block after the other, each by columns.
    pub(super) fn flat(&self) -> Vec<f64> {
        let values = self.blocks.iter().flat_map(|block| block.as_slice());
        values.map(|x| x.to_f64()).collect()
    }

    /// Changes blocks where they stand, each by its place. Its caller keeps what the blocks must satisfy.
    pub fn change(&mut self, mut f: impl FnMut(usize, &mut DMatrix<T>)) {
        for (j, block) in self.blocks.iter_mut().enumerate() {
            f(j, block);
        }
    }

    /// Blocks by their names, as a file has them; the state of a model checks them. `mass` is the sum of the data, for models of
    /// distributions.
    pub fn named(blocks: Vec<(String, DMatrix<T>)>, mass: f64) -> Self {
        let (names, blocks): (Vec<_>, _) = blocks.into_iter().unzip();
        Self {
            names: names.into_iter().map(Cow::from).collect(),
            blocks,
            iteration: 0,
            power: 1.0,
            mass,
            facts: Vec::new(),
        }
    }

    /// The same parameters in double precision.
    pub fn widened(&self) -> Parameters<f64> {
        Parameters {
            names: self.names.clone(),
            blocks: self.blocks.iter().map(|b| b.map(|x| x.to_f64())).collect(),
            iteration: self.iteration,
            power: self.power,
            mass: self.mass,
            facts: self.facts.clone(),
        }
    }

    /// Takes blocks and facts out, by name.
    pub(super) fn take_arrays(&mut self) -> Vec<(String, DMatrix<f64>)> {
        let mut arrays = Vec::new();
        for (name, block) in self.names.iter().zip(std::mem::take(&mut self.blocks)) {
            arrays.push((format!("block.{name}"), block.map(|x| x.to_f64())));
        }
        for (name, numbers) in &mut self.facts {
            let column = DMatrix::from_column_slice(numbers.len(), 1, numbers);
            arrays.push((format!("fact.{name}"), column));
            *numbers = Arc::new([]);
        }
        arrays
    }

    /// The inverse of [`take_arrays`](Self::take_arrays).
    pub(super) fn put_arrays(
        &mut self,
        find: &mut impl FnMut(&str) -> Result<DMatrix<f64>, FitError>,
    ) -> Result<(), FitError> {
        let names = self.names.iter();
        let blocks = names.map(|name| Ok(find(&format!("block.{name}"))?.map(T::lit)));
        self.blocks = blocks.collect::<Result<_, FitError>>()?;
        for (name, numbers) in &mut self.facts {
            *numbers = find(&format!("fact.{name}"))?.as_slice().into();
        }
        Ok(())
    }

    /// Whether these are parameters of blocks of these names and shapes.
    pub(super) fn fits(&self, specs: &[BlockSpec<T>]) -> bool {
        let known = specs.iter().map(|spec| (&*spec.name, spec.shape));
        known.eq(self.blocks().map(|(name, block)| (name, block.shape())))
    }

    /// The iteration that comes next, counted from 1. A full counter stays.
    pub(super) fn next(&self) -> usize {
        self.iteration.saturating_add(1)
    }

    /// Counts an iteration.
    pub fn count(&mut self) {
        self.iteration = self.next();
    }

    /// Replaces blocks by new ones, each at the place of its own, and counts an iteration; `None` keeps a block. Shapes and values are those of
    /// the iteration: [`check`](Self::check) looks at them.
    pub fn advance(&mut self, new: Vec<Option<DMatrix<T>>>) {
        for (block, new) in self.blocks.iter_mut().zip(new) {
            if let Some(new) = new {
                *block = new;
            }
        }
        self.count();
    }
}

/// A state was asked for the factor of a mode that it does not have.
///
/// # Panics
///
/// Always.
#[doc(hidden)]
#[track_caller]
pub fn no_mode(mode: usize, modes: usize) -> ! {
    panic!("there is no mode {mode}, the model has {modes}, counted from 0")
}

fn check<T: Real>(spec: &BlockSpec<T>, block: &DMatrix<T>) -> Result<(), FitError> {
    spec.check_values(block)?;
    if spec.constraint != Constraint::Simplex {
        return Ok(());
    }
    let sums = block
        .column_iter()
        .map(|c| c.iter().map(|x| x.to_f64()).sum::<f64>());
    let allowed = T::EPSILON.to_f64().sqrt();
    match sums
        .enumerate()
        .find(|(_, sum)| (sum - 1.0).abs() > allowed)
    {
        Some((column, sum)) => Err(FitError::Sum {
            block: spec.name.to_string(),
            column,
            sum,
        }),
        None => Ok(()),
    }
}
