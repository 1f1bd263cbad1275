//! What a model says of itself besides its arithmetic.

use std::any::Any;
use std::fmt::Debug;
use std::path::Path;

use plca_fit::blocks::{FileLayout, Index};
use plca_fit::setting::{Freeze, Named, SettingSpec, SettingValue};
use plca_fit::shards::Sharded;
use plca_fit::{FitError, Model, Parameters, Reconstruct, Settings, State, Transform};
use plca_io::ModelFile;
use plca_priors::PriorSpec;
use plca_tensor::Data;

use crate::options::wrong;
use crate::{
    Answer, Approximation, Explainer, Law, Learner, Options, PriorBlock, RunError, Saved, Scalar,
    Score, Stream, Typed,
};

/// What data a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Numbers that are not negative, of any order.
    Counts,
    /// Numbers of any order, of which a warning says where they are negative.
    Numbers,
    /// Numbers of any sign and order.
    Signed,
    /// A matrix of any sign, of which a dense copy is made.
    SignedMatrix,
}

/// The extents of the components of a block.
pub(crate) type Extents = Vec<(&'static str, Vec<usize>)>;

/// A model with what is said of it once, for all front ends.
pub(crate) trait Kind: Settings + Freeze + Clone + Debug + 'static {
    /// Its state.
    type State<T: Scalar>: State<Scalar = T> + Reconstruct;
    /// The model itself.
    type Model<T: Scalar>: Model<T, State = Self::State<T>>;

    /// One line for the help.
    const ABOUT: &'static str;
    /// What data it takes.
    const TAKES: Takes = Takes::Counts;
    /// The settings of runs that not every model has: those that it has, with a space between them.
    const RUNS: &'static str;
    /// The blocks that take priors, by the names of their means, `factor_*` for that of every mode.
    const LAWS: &'static [(&'static str, Law)] = &[];
    /// The blocks that a start may give, where these are not all.
    const FREE: Option<&'static [&'static str]> = None;
    /// Whether it is for matrices alone.
    const MATRIX: bool = false;
    /// What settings are where they are not given, where files say it.
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[];
    /// Names of the objective, without and with a prior that has a density.
    const OBJECTIVE: [&'static str; 2] = ["log_likelihood", "log_posterior"];
    /// The block of its kernels, if its components are kernels that are moved over the data.
    const KERNELS: Option<&'static str> = None;
    /// The block whose columns many fits may agree on.
    const SPECTRA: Option<&'static str> = None;
    /// Whether its blocks take penalties that are no priors.
    const PENALTIES: bool = false;
    /// Whether `fast` may fit it.
    const SEPARATES: bool = false;

    /// What its settings are called.
    fn specs() -> Vec<SettingSpec>;

    /// The model of these settings, for data of this shape.
    fn build(components: usize, options: &Options, shape: &[usize]) -> Result<Self, RunError>;

    /// The same with a prior on a block.
    fn with_prior(self, block: &str, prior: PriorSpec) -> Self {
        let _ = (block, prior);
        self
    }

    /// The laws of its blocks, where they depend on its settings.
    fn laws(&self, order: usize) -> Vec<(String, Law)> {
        let named = Self::LAWS.iter().flat_map(|&(name, law)| {
            let modes = if name.contains('*') { order } else { 1 };
            (0..modes).map(move |j| (name.replace('*', &j.to_string()), law))
        });
        named.collect()
    }

    /// Extents of blocks whose columns are arrays.
    fn extents(&self, shape: &[usize]) -> Result<Extents, FitError> {
        let _ = shape;
        Ok(Vec::new())
    }

    /// New data under what was learnt, its observations all together or, with `each`, as batches of one.
    fn explain<T: Scalar>(
        &self,
        learnt: &Self::State<T>,
        data: &dyn Data<T>,
        how: &Transform,
        each: bool,
    ) -> Result<Answer<T>, FitError> {
        let _ = (learnt, data, how, each);
        Err(FitError::Conflict {
            what: format!("{} has no transform", <Self::State<f64> as State>::NAME),
        })
    }

    /// The number of free parameters, of models whose likelihood may choose the number of components.
    fn free_parameters(&self, shape: &[usize]) -> Result<Option<usize>, FitError> {
        let _ = shape;
        Ok(None)
    }

    /// The score of a fit of this bound, of models whose bound of the evidence may choose the number of components.
    fn evidence(
        &self,
        learnt: &Self::State<f64>,
        bound: f64,
        data: &dyn Data<f64>,
    ) -> Result<Option<Score>, FitError> {
        let _ = (learnt, bound, data);
        Ok(None)
    }

    /// How a state in a file explains new data, whose observations lie along the dimension that is asked for.
    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let _ = asked;
        let name = <Self::State<f64> as State>::NAME;
        Err(file.failure(format!("holds the model `{name}`, which has no transform")))
    }

    /// What a state in a file says of its data.
    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError>;

    /// The model for data of a scalar.
    fn typed<T: Scalar>(&self) -> &Self::Model<T>;

    /// The same by value.
    fn into_typed<T: Scalar>(self) -> Self::Model<T>;

    /// The same as one of shards.
    fn sharded<T: Scalar>(&self) -> Option<&dyn Sharded<T>> {
        None
    }

    /// The same as one of streams.
    fn streamed<T: Scalar>(&self, how: &Stream) -> Option<Box<dyn Learner<T>>> {
        let _ = how;
        None
    }
}

/// A model by its settings alone.
pub(crate) fn named<M: Named>(mut model: M, options: &Options) -> Result<M, RunError> {
    for (name, value) in options.iter() {
        let known = model.set(name, value).map_err(|what| wrong(name, what))?;
        // Models with one treatment of missing cells have nothing to set.
        debug_assert!(
            known || name == MISSING,
            "{name} is listed and has no field"
        );
    }
    Ok(model)
}

/// With the only treatment of missing cells that a model has, for command lines of all models.
pub(crate) fn with_imputation(mut specs: Vec<SettingSpec>) -> Vec<SettingSpec> {
    specs.extend(
        <plca_em::Plca as Named>::specs()
            .into_iter()
            .filter(|spec| spec.name == MISSING)
            .map(|spec| {
                let choices: &[_] = &[("imputation", "")];
                SettingSpec { choices, ..spec }
            }),
    );
    specs
}
const MISSING: &str = "missing_method";

/// A model as its file says that it took its data, under its priors as far as they hold for new data, and with what of its settings follows from what it has
/// learnt.
pub(crate) fn of_file<K: Kind>(
    said: &Saved,
    (components, shape): (usize, &[usize]),
    learnt: &[(&str, SettingValue)],
) -> Result<K, RunError> {
    let settings = said.settings();
    let mut specs = K::specs();
    let has_m = specs.iter().any(|spec| spec.name == "m");
    specs.retain(|spec| ["m", "real_data"].contains(&spec.name));
    let mut options = Options::of_json(settings, &specs);
    if has_m && !options.has("m") {
        // Files of Python say nothing where it is the limit.
        options.set("m", SettingValue::Text("inf".into()));
    }
    for (name, value) in learnt {
        options.set(name, value.clone());
    }
    let said_wrong = |e| of_settings(said, e);
    let blocks = prior_blocks::<K>(components, &options, shape).map_err(said_wrong)?;
    let mut model = K::build(components, &options, shape).map_err(said_wrong)?;
    let texts = settings["prior"].as_array().into_iter().flatten();
    for text in texts.filter_map(serde_json::Value::as_str) {
        let (name, law) = text.split_once('=').unwrap_or((text, ""));
        let block = blocks.iter().find(|block| block.is_called(name));
        let block = block.ok_or_else(|| said.failure(format!("`{name}` takes no prior")))?;
        let prior = block.read(law).map_err(|e| said.failure(e))?;
        model = model.with_prior(&block.name, prior);
    }
    model.check()?;
    Ok(model)
}

/// What is wrong with the settings in a file, which no option of a command can mend.
pub(crate) fn of_settings(file: &Saved, e: RunError) -> RunError {
    match e {
        RunError::Setting { name, value, what } => {
            let space = if value.is_empty() { "" } else { " " };
            file.failure(format!("settings.{name}{space}{value}: {what}"))
        }
        e => e,
    }
}

/// The blocks of a model that may have priors, for data of this shape.
pub(crate) fn prior_blocks<K: Kind>(
    components: usize,
    options: &Options,
    shape: &[usize],
) -> Result<Vec<PriorBlock>, RunError> {
    let model = K::build(components, options, shape)?;
    let extents = model.extents(shape)?;
    let given = options.get::<usize>("given")?;
    let signed = options.get::<usize>("signed_mode")?;
    let block = |(name, law): (String, Law)| {
        let axes = <K::State<f64> as State>::axes(&name).ok_or_else(|| no_block(&name))?;
        // Labels are those of samples in the last mode.
        let axes = match (given, signed) {
            (Some(0), _) => axes.of_modes(|mode| 1 - mode),
            (_, Some(signed)) if axes.layout() == FileLayout::Sides => axes.of_modes(|_| signed),
            _ => axes,
        };
        let cells = extents.iter().find(|(block, _)| *block == name);
        let cells = cells.map(|(_, extents)| extents.clone());
        let count = |index| match index {
            Index::Component => components,
            Index::Mode(mode) => shape.get(mode).copied().unwrap_or(0),
            Index::Sides(mode) => shape.get(mode).map_or(0, |n| 2 * n),
            Index::One => 1,
            _ => cells.iter().flatten().product(),
        };
        Ok(PriorBlock {
            size: (count(axes.0), count(axes.1)),
            layout: axes.layout(),
            extents: cells.clone().unwrap_or_default(),
            name,
            law,
        })
    };
    model.laws(shape.len()).into_iter().map(block).collect()
}

fn no_block(name: &str) -> FitError {
    FitError::UnknownBlock {
        name: name.to_string(),
        expected: Vec::new(),
    }
}

/// What a model does not do.
pub(crate) fn unable<K: Kind>(what: &str) -> RunError {
    RunError::Unable {
        model: <K::State<f64> as State>::NAME,
        what: what.to_string(),
    }
}

/// A model of any kind and of both scalars.
pub trait AnyModel: Typed<f64> + Typed<f32> + Debug + Send + Sync {
    /// The number of components, `K`.
    fn components(&self) -> usize;

    /// The model as one of any type, for whoever knows which it is.
    fn any(&self) -> &dyn Any;

    /// The number of free parameters that its likelihood is weighed against.
    ///
    /// # Errors
    ///
    /// [`RunError::Unable`] for a model whose likelihood chooses no number of components.
    fn free_parameters(&self, shape: &[usize]) -> Result<usize, RunError>;

    /// The score of a fit of this bound of the evidence.
    ///
    /// # Errors
    ///
    /// [`RunError::Unable`] for a model without such a bound.
    fn evidence(
        &self,
        learnt: Parameters<f64>,
        bound: f64,
        data: &dyn Data<f64>,
    ) -> Result<Score, RunError>;
}

impl<K: Kind> AnyModel for K {
    fn components(&self) -> usize {
        Settings::components(self)
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn free_parameters(&self, shape: &[usize]) -> Result<usize, RunError> {
        let found = Kind::free_parameters(self, shape)?;
        found.ok_or_else(|| unable::<K>("has no likelihood to choose components by"))
    }

    fn evidence(
        &self,
        learnt: Parameters<f64>,
        bound: f64,
        data: &dyn Data<f64>,
    ) -> Result<Score, RunError> {
        let learnt = K::State::<f64>::wrap(learnt)?;
        let score = Kind::evidence(self, &learnt, bound, data)?;
        score.ok_or_else(|| unable::<K>("has no bound of its evidence to choose components by"))
    }
}

impl<T: Scalar, K: Kind> Typed<T> for K {
    fn model(&self) -> &dyn plca_fit::AnyModel<T> {
        self.typed::<T>()
    }

    fn sharded(&self) -> Option<&dyn Sharded<T>> {
        Kind::sharded(self)
    }

    fn streamed(&self, how: &Stream) -> Option<Box<dyn Learner<T>>> {
        Kind::streamed(self, how)
    }

    fn explain(
        &self,
        learnt: ModelFile,
        data: &dyn Data<T>,
        how: &Transform,
        each: bool,
    ) -> Result<Answer<T>, RunError> {
        let learnt: K::State<T> = learnt.state(Path::new("the model"))?;
        Ok(Kind::explain(self, &learnt, data, how, each)?)
    }
}
