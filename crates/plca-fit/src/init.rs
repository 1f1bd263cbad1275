//! Starts of runs.

use std::collections::BTreeMap;

use nalgebra::DMatrix;
use plca_tensor::Real;
use rand::Rng;

use super::block::{check_known, check_memory};
use super::{
    Algorithm, BlockSpec, Draw, Fill, FitError, Frozen, Parameters, Progress, SCALE, State,
};

/// The source of the blocks that a start does not give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Start {
    /// They are drawn, as [`BlockSpec::draw`](super::BlockSpec::draw) says.
    #[default]
    Drawn,
    /// Component after component from what the earlier ones leave over of the data. Draws nothing.
    Deflation,
    /// From the leading singular vectors of a matrix, with their zeros filled or not.
    Nndsvd(Fill),
}

impl Start {
    /// The name on the command line and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drawn => "drawing",
            Self::Deflation => "deflation",
            Self::Nndsvd(Fill::Zero) => "nndsvd",
            Self::Nndsvd(Fill::Mean) => "nndsvda",
            Self::Nndsvd(Fill::Random) => "nndsvdar",
        }
    }
}

/// The start of a run: blocks that are given, the others drawn or read off the data.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_fit::Init;
/// let start = Init::default().block("weights", dmatrix![0.5; 0.5]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Init<T: Real> {
    given: BTreeMap<String, DMatrix<T>>,
    start: Start,
}

impl<T: Real> Init<T> {
    /// A start by [`Start::Deflation`].
    ///
    /// ```
    /// use plca_fit::{Init, Start};
    /// assert_eq!(Init::<f64>::deflation().start(), Start::Deflation);
    /// ```
    pub fn deflation() -> Self {
        Self {
            start: Start::Deflation,
            ..Self::default()
        }
    }

    /// A start by [`Start::Nndsvd`], non-negative double singular value decomposition: the two factors of a matrix from the parts of one sign of its
    /// leading singular vectors.
    ///
    /// ```math
    /// V \approx \sum_z \sigma_z u_z v_z^\top,
    /// \qquad W_z = \sqrt{\sigma_z m_z} \, \frac{u_z^\pm}{\lVert u_z^\pm \rVert},
    /// \quad H_z = \sqrt{\sigma_z m_z} \, \frac{v_z^\pm}{\lVert v_z^\pm \rVert},
    /// \quad m_z = \lVert u_z^\pm \rVert \, \lVert v_z^\pm \rVert
    /// ```
    ///
    /// `u⁺` are the positive entries of a vector, `u⁻` the negative ones, negated; of the two signs the one with the larger `m` is taken, of the first pair
    /// the absolute values. `fill` says what becomes of the entries that are 0: under a divergence that cells must be explained for, zeros may be
    /// refused ([`FitError::Support`]), and multiplicative updates never move them. Hidden cells count as the mean of the observed ones. (Boutsidis and
    /// Gallopoulos 2008.)
    ///
    /// The vectors are found in a random subspace, whose few directions are all that is drawn, besides what [`Fill::Random`] is; where they are
    /// well apart, the start is the same for every seed, except for rounding. Data are copied as by
    /// [`Products`](plca_tensor::arrange::Products): sparse ones once for every mode.
    ///
    /// ```
    /// use plca_em::{Model, Nmf};
    /// use plca_fit::{nndsvd::Fill, Init};
    /// use plca_tensor::{DenseTensor, Order};
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 3.0, 4.0, 4.0], Order::RowMajor)?;
    /// let start = Nmf::new(1).init(&v, Init::nndsvd(Fill::Mean), &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert!(((start.w() * start.h())[(1, 0)] - 4.0).abs() < 1e-12);     // of rank one
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn nndsvd(fill: Fill) -> Self {
        Self {
            start: Start::Nndsvd(fill),
            ..Self::default()
        }
    }

    /// The source of the blocks that are not given.
    pub fn start(&self) -> Start {
        self.start
    }

    /// Gives a block by its name; a later block replaces an earlier one of the same name.
    #[must_use]
    pub fn block(mut self, name: impl Into<String>, value: DMatrix<T>) -> Self {
        self.given.insert(name.into(), value);
        self
    }

    /// The parameters that a run of this algorithm starts from. Nobody hears of the steps of a start that takes long: see
    /// [`parameters_with`](Self::parameters_with).
    ///
    /// # Errors
    ///
    /// [`FitError::UnknownBlock`], [`FitError::NotGiven`], [`FitError::Shape`], [`FitError::Value`], [`FitError::Empty`], and those of
    /// [`Algorithm::fill`] and [`Algorithm::check_start`].
    pub fn parameters(
        &self,
        algorithm: &dyn Algorithm<T>,
        rng: &mut dyn Rng,
    ) -> Result<Parameters<T>, FitError> {
        self.parameters_with(algorithm, rng, &mut Progress::silent())
    }

    /// As [`parameters`](Self::parameters), and tells of its steps.
    ///
    /// # Errors
    ///
    /// As there, and [`FitError::Interrupted`] where the listener ends the work.
    pub fn parameters_with(
        &self,
        algorithm: &dyn Algorithm<T>,
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<Parameters<T>, FitError> {
        progress.step(0, 1)?;
        let specs = algorithm.blocks();
        check_memory(specs)?;
        check_known(specs, self.given.keys())?;
        let is_data = |spec: &BlockSpec<T>| matches!(spec.draw, Draw::Data(_));
        let missing = |spec: &&BlockSpec<T>| {
            let given = self.given.contains_key(&*spec.name);
            spec.frozen != Frozen::No && !given && !is_data(spec)
        };
        if let Some(spec) = specs.iter().find(missing) {
            let block = spec.name.to_string();
            return Err(FitError::NotGiven { block });
        }
        if self.start != Start::Drawn {
            let given = specs.iter().enumerate().map(|(j, spec)| {
                let given = self.given.get(&*spec.name).cloned();
                given.map(|value| algorithm.given(j, value)).transpose()
            });
            let mut blocks = given.collect::<Result<Vec<_>, _>>()?;
            algorithm.fill(self.start, &mut blocks, rng, progress)?;
            // What a model does not fill has a value of its own.
            let blocks = blocks.into_iter().zip(specs);
            let blocks = blocks.map(|(block, spec)| block.unwrap_or_else(|| spec.even()));
            return begin(algorithm, blocks.collect());
        }
        // Random numbers are drawn for given blocks too, so that what is given changes no other block.
        let mut blocks = algorithm.draw(rng, progress)?;
        let mut known = vec![false; specs.len()];
        for (j, (block, spec)) in blocks.iter_mut().zip(specs).enumerate() {
            let given = self.given.get(&*spec.name);
            known[j] = given.is_some();
            if let Some(value) = given.filter(|_| !is_data(spec)) {
                // The model says what it takes: some project what is no distribution.
                algorithm.given(j, value.clone())?;
                block.clone_from(value);
            }
        }
        algorithm.complete(&mut blocks, &known, progress)?;
        begin(algorithm, blocks)
    }
}

/// Parameters with what the model must be multiplied by to approximate the data, where that is not their sum alone.
pub(super) fn scaled<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: Parameters<T>,
) -> Result<Parameters<T>, FitError> {
    Ok(match algorithm.scale(&at)? {
        // A model without mass in the observed cells has no scale.
        Some(scale) if scale.iter().all(|x| x.is_finite()) => at.with_fact(SCALE, scale),
        _ => at.without_fact(SCALE),
    })
}

/// The parameters made from given blocks, in the order of the algorithm.
///
/// # Errors
///
/// [`FitError::Shape`], [`FitError::Value`], [`FitError::Empty`], and those of [`Algorithm::check_start`].
pub fn begin<T: Real>(
    algorithm: &dyn Algorithm<T>,
    blocks: Vec<DMatrix<T>>,
) -> Result<Parameters<T>, FitError> {
    let specs = algorithm.blocks();
    let blocks = (0..specs.len()).zip(blocks);
    let blocks = blocks.map(|(j, block)| algorithm.given(j, block));
    let at = Parameters::new(specs, blocks.collect::<Result<_, _>>()?)?;
    let at = at.with(algorithm.power(), algorithm.mass());
    let facts = algorithm.facts().into_iter();
    let at = facts.fold(at, |at, (name, numbers)| at.with_fact(name, numbers));
    algorithm.check_start(&at)?;
    Ok(at)
}

/// Iterations in which blocks that are not given explain those that are.
const EXPLAINED: usize = 50;

/// Starts the blocks that are not given from those that are: they begin `even`, and are improved while those that are given stay. Drawn blocks would lead to a worse optimum, and pull given blocks that are not frozen there, too. Where what is given tells no component from another nothing is changed.
///
/// # Errors
///
/// Those of [`begin`] and of [`Algorithm::step`], and [`FitError::Interrupted`] where the listener ends the work.
pub fn explain_given<T: Real>(
    algorithm: &dyn Algorithm<T>,
    blocks: &mut [DMatrix<T>],
    given: &[bool],
    even: Vec<DMatrix<T>>,
    progress: &mut Progress<'_>,
) -> Result<(), FitError> {
    let specs = algorithm.blocks();
    let tells = |j: usize| given[j] && !specs[j].follows && specs[j].tells_apart(&blocks[j]);
    if given.iter().all(|&given| given) || !(0..specs.len()).any(tells) {
        return Ok(());
    }
    let free = |j: &usize| !given[*j];
    for (j, even) in even.into_iter().enumerate().filter(|(j, _)| free(j)) {
        blocks[j] = even;
    }
    let mut at = begin(algorithm, blocks.to_vec())?;
    let kept = at.matrices().to_vec();
    for done in 0..EXPLAINED {
        progress.step(done, EXPLAINED)?;
        algorithm.step(&mut at, false)?;
        at.change(|j, block| {
            if given[j] {
                block.clone_from(&kept[j]);
            }
        });
    }
    for j in (0..specs.len()).filter(free) {
        blocks[j].clone_from(at.at(j));
    }
    Ok(())
}

/// A warm start: all blocks of a state.
impl<S: State> From<&S> for Init<S::Scalar> {
    fn from(state: &S) -> Self {
        let blocks = state.parameters().blocks();
        Self {
            given: blocks.map(|(name, b)| (name.into(), b.clone())).collect(),
            start: Start::default(),
        }
    }
}
