//! What a model says of itself besides its arithmetic.

use std::any::Any;
use std::fmt::Debug;

use plca_fit::shards::Sharded;
use plca_fit::{FitError, Freeze, Model, Named, Reconstruct, SettingSpec, Settings, State};
use plca_priors::PriorSpec;

use crate::options::wrong;
use crate::{Options, RunError, Scalar};

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

/// What priors a block may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// All on distributions.
    Simplex,
    /// All on rates.
    Rates,
    /// A Dirichlet law.
    Dirichlet,
    /// A gamma law, of which the rate is this unless it is said.
    Gamma(f64),
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
    /// The settings of runs that not every model has: those that it has.
    const RUNS: &'static [&'static str];
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

    /// The model for data of a scalar.
    fn typed<T: Scalar>(&self) -> &Self::Model<T>;

    /// The same as one of shards.
    fn sharded<T: Scalar>(&self) -> Option<&dyn Sharded<T>> {
        None
    }
}

/// A model by its settings alone.
pub(crate) fn named<M: Named>(mut model: M, options: &Options) -> Result<M, RunError> {
    for (name, value) in options.iter() {
        model.set(name, value).map_err(|what| wrong(name, what))?;
    }
    Ok(model)
}

/// A model of any kind and of both scalars.
pub trait AnyModel: Debug + Send + Sync {
    /// The number of components, `K`.
    fn components(&self) -> usize;
    /// The model as one of any type, for whoever knows which it is.
    fn any(&self) -> &dyn Any;
    #[doc(hidden)]
    fn double(&self) -> &dyn plca_fit::AnyModel<f64>;
    #[doc(hidden)]
    fn single(&self) -> &dyn plca_fit::AnyModel<f32>;
    #[doc(hidden)]
    fn sharded_double(&self) -> Option<&dyn Sharded<f64>>;
    #[doc(hidden)]
    fn sharded_single(&self) -> Option<&dyn Sharded<f32>>;
}

impl<K: Kind> AnyModel for K {
    fn components(&self) -> usize {
        Settings::components(self)
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn double(&self) -> &dyn plca_fit::AnyModel<f64> {
        self.typed::<f64>()
    }

    fn single(&self) -> &dyn plca_fit::AnyModel<f32> {
        self.typed::<f32>()
    }

    fn sharded_double(&self) -> Option<&dyn Sharded<f64>> {
        self.sharded()
    }

    fn sharded_single(&self) -> Option<&dyn Sharded<f32>> {
        self.sharded()
    }
}
