//! What a model is to its user: a state, and runs that fit it to data.

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_tensor::{Data, Real};
use rand::Rng;

use super::init::scaled;
use super::{Algorithm, FileLayout, Fit, FitError, Init, Parameters, Run};

/// Names of blocks, and how they lie in files. A name that ends in `_` is of a block for every mode: `factor_` of `factor_0`, `factor_1` and so on.
pub type Blocks = &'static [(&'static str, FileLayout)];

/// The fitted parameters of a model, which are valid.
pub trait State: Clone + Debug + Sized {
    /// The scalar.
    type Scalar: Real;

    /// Takes parameters as the state of this model.
    ///
    /// # Errors
    ///
    /// [`FitError`] for blocks that are not those of the model.
    fn wrap(parameters: Parameters<Self::Scalar>) -> Result<Self, FitError>;

    /// The blocks.
    fn parameters(&self) -> &Parameters<Self::Scalar>;

    /// The name of its model on the command line and in files.
    const NAME: &'static str;

    /// Its blocks, in their order.
    const BLOCKS: Blocks;

    /// The names of its blocks, in their order, for data of this order.
    fn block_names(order: usize) -> Vec<String> {
        let names = |&(name, _): &(&str, FileLayout)| match name.ends_with('_') {
            true => (0..order).map(|j| format!("{name}{j}")).collect(),
            false => vec![name.to_string()],
        };
        Self::BLOCKS.iter().flat_map(names).collect()
    }

    /// The way in which a block lies in files: that of [`BLOCKS`](Self::BLOCKS); of others `weights` and `marginal` as vectors, all else as matrices.
    fn layout(block: &str) -> FileLayout {
        let is_named = |(name, _): &&(&str, FileLayout)| {
            *name == block || name.ends_with('_') && block.starts_with(name)
        };
        let found = Self::BLOCKS.iter().find(is_named);
        match (found, block) {
            (Some(&(_, layout)), _) => layout,
            (None, "weights" | "marginal") => FileLayout::Vector,
            (None, _) => FileLayout::Matrix,
        }
    }

    /// What follows from the parameters and is written beside them, but not read, such as posterior means. Default: nothing.
    fn derived(at: &Parameters<f64>) -> Vec<(&'static str, FileLayout, DMatrix<f64>)> {
        let _ = at;
        Vec::new()
    }
}

/// Serialises a state `$state(parameters)` as its parameters, and checks them when they are read.
#[doc(hidden)]
#[macro_export]
macro_rules! serialised {
    ($state:ident) => {
        #[cfg(feature = "serde")]
        impl<T: Real + serde::Serialize> serde::Serialize for $state<T> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::State::parameters(self).serialize(serializer)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de, T: Real + serde::Deserialize<'de>> serde::Deserialize<'de> for $state<T> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let parameters = Parameters::deserialize(deserializer)?;
                Self::wrap(parameters).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// The state of any model, its blocks by name.
impl<T: Real> State for Parameters<T> {
    type Scalar = T;
    const NAME: &'static str = "parameters";
    const BLOCKS: Blocks = &[];

    fn wrap(parameters: Self) -> Result<Self, FitError> {
        Ok(parameters)
    }

    fn parameters(&self) -> &Self {
        self
    }
}

/// A model of any kind, its parameters by name: what a table of models holds.
pub trait AnyModel<T: Real>: Debug + Send + Sync {
    /// [`Model::components`].
    fn components(&self) -> usize;

    /// [`Model::on`], whose state is the parameters.
    ///
    /// # Errors
    ///
    /// As [`Model::bind`].
    fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Run<'a, Parameters<T>>, FitError>;

    /// [`Model::bind`].
    ///
    /// # Errors
    ///
    /// As [`Model::bind`].
    fn bind_to<'a>(&'a self, data: &'a dyn Data<T>)
    -> Result<Box<dyn Algorithm<T> + 'a>, FitError>;
}

impl<M: Model> AnyModel<M::Scalar> for M {
    fn components(&self) -> usize {
        Model::components(self)
    }

    fn on<'a>(
        &'a self,
        data: &'a dyn Data<M::Scalar>,
    ) -> Result<Run<'a, Parameters<M::Scalar>>, FitError> {
        Ok(Model::on(self, data)?.untyped())
    }

    fn bind_to<'a>(
        &'a self,
        data: &'a dyn Data<M::Scalar>,
    ) -> Result<Box<dyn Algorithm<M::Scalar> + 'a>, FitError> {
        self.bind(data)
    }
}

/// A model with its settings.
pub trait Model: Debug + Send + Sync {
    /// The scalar.
    type Scalar: Real;
    /// What is fitted.
    type State: State<Scalar = Self::Scalar>;

    /// How many components it has.
    fn components(&self) -> usize;

    /// Binds it to data: checks them, and arranges them where a kernel needs that.
    ///
    /// # Errors
    ///
    /// [`FitError`] for data or settings that do not go together.
    fn bind<'a>(
        &'a self,
        data: &'a dyn Data<Self::Scalar>,
    ) -> Result<Box<dyn Algorithm<Self::Scalar> + 'a>, FitError>;

    /// A run on data, whose solver, stop rule and observers can be chosen before it begins.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    fn on<'a>(&'a self, data: &'a dyn Data<Self::Scalar>) -> Result<Run<'a, Self::State>, FitError>
    where
        Self: Sized,
    {
        let mut run = Run::<Self::State>::new(self.bind(data)?);
        run.model = Some(self);
        Ok(run)
    }

    /// A start, without a run.
    ///
    /// # Errors
    ///
    /// As [`Init::parameters`].
    fn init(
        &self,
        data: &dyn Data<Self::Scalar>,
        init: impl Into<Init<Self::Scalar>>,
        rng: &mut dyn Rng,
    ) -> Result<Self::State, FitError>
    where
        Self: Sized,
    {
        let algorithm = self.bind(data)?;
        Self::State::wrap(scaled(
            &*algorithm,
            init.into().parameters(&*algorithm, rng)?,
        )?)
    }

    /// Fits with the defaults of [`Run`].
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on) and [`Run::run`].
    fn fit(
        &self,
        data: &dyn Data<Self::Scalar>,
        rng: &mut dyn Rng,
    ) -> Result<Fit<Self::State>, FitError>
    where
        Self: Sized,
    {
        self.on(data)?.run(Init::default(), rng)
    }
}
