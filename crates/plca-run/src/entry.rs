//! The table of models.

use std::path::Path;

use nalgebra::DMatrix;
use plca_fit::blocks::{Axes, FileLayout, Frozen};
use plca_fit::setting::{Freeze, SettingSpec, SettingValue};
use plca_fit::{Parameters, Reconstruct as _};
use plca_io::{Array, ModelFile, block_of};
use plca_priors::PriorSpec;
use plca_tensor::Order;

use crate::kind::{Extents, Kind, prior_blocks};
use crate::options::{wrong, wrong_value};
use crate::select::{Validate, validate};
use crate::{
    AnyModel, Approximation, Cells, Explainer, Law, Options, PriorBlock, RunError, Saved, Scalar,
    Takes,
};

/// What is asked of a model.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The number of components, `K`.
    pub components: usize,
    /// Its settings.
    pub options: Options,
    /// What is frozen, by block.
    pub frozen: Vec<(String, Frozen)>,
    /// Priors, by block.
    pub priors: Vec<(String, PriorSpec)>,
}

/// What makes a model of a request for data of a shape.
type Build = fn(&Request, &[usize]) -> Result<Box<dyn AnyModel>, RunError>;
/// What a file says of the data, or what one component adds.
type CellsOf<T> = fn(ModelFile, Option<usize>) -> Result<Cells<T>, RunError>;
/// What follows from a number of components, settings and the shape of data.
type Of<O> = fn(usize, &Options, &[usize]) -> Result<O, RunError>;

/// What is said of a model, and how it is made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ModelEntry {
    /// Its name on command lines and in files.
    pub name: &'static str,
    /// One line for the help.
    pub about: &'static str,
    /// What data it takes.
    pub takes: Takes,
    runs: &'static str,
    /// Whether it is for matrices alone.
    pub matrix: bool,
    /// The block of its kernels, if its components are kernels that are moved over the data.
    pub kernels: Option<&'static str>,
    /// The block whose columns many fits may agree on.
    pub spectra: Option<&'static str>,
    /// Whether its blocks take penalties that are no priors.
    pub penalties: bool,
    /// Whether the solver `fast` may fit it.
    pub separates: bool,
    defaults: &'static [(&'static str, &'static str)],
    objective: [&'static str; 2],
    free: Option<&'static [&'static str]>,
    specs: fn() -> Vec<SettingSpec>,
    build: Build,
    laws: &'static [(&'static str, Law)],
    prior_blocks: Of<Vec<PriorBlock>>,
    extents: Of<Extents>,
    explainer: fn(Saved, Option<usize>) -> Result<Explainer, RunError>,
    approximation: fn(Saved) -> Result<Box<dyn Approximation>, RunError>,
    blocks: fn(usize) -> Vec<String>,
    axes: fn(&str) -> Option<Axes>,
    file: fn(&Parameters<f64>) -> ModelFile,
    block: fn(&str, &Array<f64>) -> Result<DMatrix<f64>, String>,
    pub(crate) cells: (CellsOf<f64>, CellsOf<f32>),
    pub(crate) validate: Validate,
}

impl ModelEntry {
    pub(crate) const fn of<K: Kind>() -> Self {
        Self {
            name: <K::State<f64> as plca_fit::State>::NAME,
            about: K::ABOUT,
            takes: K::TAKES,
            runs: K::RUNS,
            matrix: K::MATRIX,
            kernels: K::KERNELS,
            spectra: K::SPECTRA,
            penalties: K::PENALTIES,
            separates: K::SEPARATES,
            defaults: K::DEFAULTS,
            objective: K::OBJECTIVE,
            free: K::FREE,
            specs: K::specs,
            build: build::<K>,
            laws: K::LAWS,
            prior_blocks: prior_blocks::<K>,
            extents: extents::<K>,
            explainer: K::explainer,
            approximation: K::approximation,
            blocks: <K::State<f64> as plca_fit::State>::block_names,
            axes: <K::State<f64> as plca_fit::State>::axes,
            file: ModelFile::of_parameters::<K::State<f64>>,
            block: block_of::<K::State<f64>>,
            cells: (cells::<K, f64>, cells::<K, f32>),
            validate: validate::<K>,
        }
    }

    /// What its settings are called.
    pub fn specs(&self) -> Vec<SettingSpec> {
        (self.specs)()
    }

    /// Whether it has a setting of this name, of its own or of its runs.
    pub fn has(&self, name: &str) -> bool {
        self.runs.split(' ').any(|other| other == name)
            || self
                .specs()
                .iter()
                .any(|spec| spec.name == name || spec.option() == name)
    }

    /// What a setting is in files where it is not given.
    pub fn default_of(&self, name: &str) -> Option<&'static str> {
        let mut all = self.defaults.iter();
        all.find(|(other, _)| *other == name)
            .map(|(_, value)| *value)
    }

    /// The model for data of this shape.
    ///
    /// # Errors
    ///
    /// [`RunError`] for settings that are refused.
    pub fn build(&self, request: &Request, shape: &[usize]) -> Result<Box<dyn AnyModel>, RunError> {
        (self.build)(request, shape)
    }

    /// What priors its blocks may have, by the names of their means, `factor_*` for that of every mode.
    pub fn laws(&self) -> &'static [(&'static str, Law)] {
        self.laws
    }

    /// The blocks that may have priors, for data of this shape.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn prior_blocks(
        &self,
        components: usize,
        options: &Options,
        shape: &[usize],
    ) -> Result<Vec<PriorBlock>, RunError> {
        (self.prior_blocks)(components, options, shape)
    }

    /// Extents of the blocks whose columns are arrays, for data of this shape.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn extents(
        &self,
        components: usize,
        options: &Options,
        shape: &[usize],
    ) -> Result<Vec<(&'static str, Vec<usize>)>, RunError> {
        (self.extents)(components, options, shape)
    }

    /// How a state in a file explains new data, whose observations lie along the dimension that is asked for.
    ///
    /// # Errors
    ///
    /// [`RunError`] for a file that is none of this model, a dimension that cannot be, and a model without a transform.
    pub fn explainer(&self, file: Saved, along: Option<usize>) -> Result<Explainer, RunError> {
        (self.explainer)(file, along)
    }

    /// What a state in a file says of its data.
    ///
    /// # Errors
    ///
    /// [`RunError`] for a file that is none of this model.
    pub fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        (self.approximation)(file)
    }

    /// Names of its blocks in files, for data of this order.
    pub fn blocks(&self, order: usize) -> Vec<String> {
        let mut names = (self.blocks)(order);
        let layout = |name: &String| self.axes(name).map_or(FileLayout::Matrix, Axes::layout);
        names.retain(|name| layout(name) != FileLayout::Absent);
        names
    }

    /// The blocks that a start may give.
    pub fn free_blocks(&self, order: usize) -> Vec<String> {
        match self.free {
            Some(free) => free.iter().map(ToString::to_string).collect(),
            None => self.blocks(order),
        }
    }

    /// What the axes of a block count, where the samples are the last mode.
    pub fn axes(&self, block: &str) -> Option<Axes> {
        (self.axes)(block)
    }

    /// What other parameters of the same model say of its data, such as those of a later iteration.
    ///
    /// # Errors
    ///
    /// As [`approximation`](Self::approximation).
    pub fn approximation_of(
        &self,
        said: &Saved,
        at: &Parameters<f64>,
    ) -> Result<Box<dyn Approximation>, RunError> {
        self.approximation(said.with(self.file(at)))
    }

    /// The axis of its array in files that counts the components.
    pub fn component_axis(&self, block: &str) -> Option<usize> {
        self.axes(block)?.components_in_file()
    }

    /// Whether its components are kernels of data that are not negative.
    pub fn shifts(&self) -> bool {
        self.kernels.is_some() && self.takes == Takes::Counts
    }

    /// Its parameters as a file.
    pub fn file(&self, at: &Parameters<f64>) -> ModelFile {
        (self.file)(at)
    }

    /// The block that an array holds.
    ///
    /// # Errors
    ///
    /// What is wrong with the array.
    pub fn block(&self, name: &str, array: &Array<f64>) -> Result<DMatrix<f64>, String> {
        (self.block)(name, array)
    }

    /// Name of the objective; `posterior` where a prior has a density.
    pub fn objective(&self, posterior: bool) -> &'static str {
        self.objective[usize::from(posterior)]
    }
}

fn build<K: Kind>(request: &Request, shape: &[usize]) -> Result<Box<dyn AnyModel>, RunError> {
    let specs = K::specs();
    for (name, value) in request.options.iter() {
        let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
            let (model, name) = (<K::State<f64> as plca_fit::State>::NAME, name.to_string());
            return Err(RunError::Unknown { model, name });
        };
        let is = |item: &SettingValue| {
            let known = |&(word, _): &(&str, _)| *item == SettingValue::Text(word.into());
            spec.choices.is_empty() || spec.choices.iter().any(known)
        };
        if let Some(other) = value.items().iter().find(|item| !is(item)) {
            let words: Vec<&str> = spec.choices.iter().map(|(word, _)| *word).collect();
            let model = <K::State<f64> as plca_fit::State>::NAME;
            let what = format!("{model} has {}", words.join(", "));
            return Err(match other {
                SettingValue::Text(word) => wrong_value(name, word.clone(), what),
                _ => wrong(name, what),
            });
        }
    }
    let model = K::build(request.components, &request.options, shape)?;
    let priors = request.priors.iter();
    let model = priors.fold(model, |model, (block, prior)| {
        model.with_prior(block, prior.clone())
    });
    let frozen = request.frozen.iter();
    let model = frozen.fold(model, |model, (block, what)| {
        Freeze::frozen(model, block, what.clone())
    });
    model.check()?;
    Ok(Box::new(model))
}

fn extents<K: Kind>(
    components: usize,
    options: &Options,
    shape: &[usize],
) -> Result<Extents, RunError> {
    let model = K::build(components, options, shape)?;
    model.check()?;
    Ok(model.extents(shape)?)
}

fn cells<K: Kind, T: Scalar>(
    file: ModelFile,
    component: Option<usize>,
) -> Result<Cells<T>, RunError> {
    let state: K::State<T> = file.state(Path::new("the model"))?;
    plca_io::room::<T>(&state.shape())?;
    let (shape, values, order) = state.cells(component)?.into_parts();
    debug_assert_eq!(order, Order::RowMajor);
    Ok((shape, values))
}
