//! Models as their users see them: settings, runs that fit them to data, and the states that result.

use std::borrow::Cow;
use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_tensor::{Data, Real};
use rand::Rng;

use super::axes::{self, Axes, Blocks};
use super::init::scaled;
use super::{Algorithm, FileLayout, Fit, FitError, Init, Parameters, Run, Settings};

/// The parameters of a model, which have been checked.
///
/// ```
/// use plca_em::{Plca, PlcaState};
/// use plca_fit::{Model, State};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![1.0, 2.0, 3.0, 6.0], Order::RowMajor)?;
/// let fit = Plca::new(1).fit(&v, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert_eq!(PlcaState::<f64>::block_names(2), ["weights", "factor_0", "factor_1"]);
/// assert_eq!(fit.state().parameters().at(1).shape(), (2, 1));         // `factor_0`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait State: Clone + Debug + Sized {
    /// The type of its numbers, `f32` or `f64`.
    type Scalar: Real;

    /// Makes a state of parameters, after checking them.
    ///
    /// # Errors
    ///
    /// [`FitError`] for blocks that this model does not have, or values that it does not allow.
    fn wrap(parameters: Parameters<Self::Scalar>) -> Result<Self, FitError>;

    /// The blocks, by name and in order.
    fn parameters(&self) -> &Parameters<Self::Scalar>;

    /// The name of the model on the command line and in files.
    const NAME: &'static str;

    /// Its blocks, in their order.
    const BLOCKS: Blocks;

    /// The names of its blocks, in their order, for data with `order` modes.
    fn block_names(order: usize) -> Vec<String> {
        axes::names(Self::BLOCKS, order)
    }

    /// What the axes of a block, or of a matrix of [`derived`](Self::derived), count.
    fn axes(block: &str) -> Option<Axes> {
        axes::of_name(Self::BLOCKS, block)
    }

    /// How it lies in files.
    fn layout(block: &str) -> FileLayout {
        Self::axes(block).map_or(FileLayout::Matrix, Axes::layout)
    }

    /// Posterior means, that are written to files beside the parameters but not read back: of a block `NAME_shape` as `NAME`. Default:
    /// none.
    fn derived(at: &Parameters<f64>) -> Vec<(Cow<'static, str>, DMatrix<f64>)> {
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

/// Parameters are a state of any model. Only that they are finite is checked.
impl<T: Real> State for Parameters<T> {
    type Scalar = T;
    const NAME: &'static str = "parameters";
    // Of other names all are matrices.
    const BLOCKS: Blocks = &[("weights", Axes::WEIGHTS), ("marginal", Axes::numbers(1))];

    fn wrap(parameters: Self) -> Result<Self, FitError> {
        match parameters.not_finite() {
            Some((name, bad)) => Err(FitError::NotFinite {
                what: format!("a value of `{name}`"),
                value: bad.to_f64(),
            }),
            None => Ok(parameters),
        }
    }

    fn parameters(&self) -> &Self {
        self
    }
}

/// A model of any kind as a trait object, whose state is plain [`Parameters`]. Every [`Model`] is one; [`on`](#method.on) and [`bind`](#method.bind) are
/// those of a model of one type.
pub trait AnyModel<T: Real>: Settings {
    /// [`Model::on`], with [`Parameters`] as the state.
    ///
    /// # Errors
    ///
    /// As [`Model::bind`].
    #[doc(hidden)]
    fn any_on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Run<'a, Parameters<T>>, FitError>;

    /// [`Model::bind`].
    ///
    /// # Errors
    ///
    /// As [`Model::bind`].
    #[doc(hidden)]
    fn any_bind<'a>(
        &'a self,
        data: &'a dyn Data<T>,
    ) -> Result<Box<dyn Algorithm<T> + 'a>, FitError>;
}

impl<T: Real, M: Model<T>> AnyModel<T> for M {
    fn any_on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Run<'a, Parameters<T>>, FitError> {
        Ok(self.on(data)?.untyped())
    }

    fn any_bind<'a>(
        &'a self,
        data: &'a dyn Data<T>,
    ) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.bind(data)
    }
}

// Not methods of the trait: there they would stand beside those of `Model` wherever both traits are in scope.
impl<T: Real> dyn AnyModel<T> + '_ {
    /// [`Model::on`], with [`Parameters`] as the state.
    ///
    /// # Errors
    ///
    /// As [`Model::bind`].
    pub fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Run<'a, Parameters<T>>, FitError> {
        self.any_on(data)
    }

    /// [`Model::bind`].
    ///
    /// # Errors
    ///
    /// As [`Model::bind`].
    pub fn bind<'a>(
        &'a self,
        data: &'a dyn Data<T>,
    ) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.any_bind(data)
    }
}

/// A model with its settings. It holds no data and no parameters: [`fit`](Self::fit) takes data and returns a [`Fit`] of its [`State`].
///
/// ```
/// use plca_em::Plca;
/// use plca_fit::{Init, Model, Stop};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![1.0, 2.0, 3.0, 6.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let model = Plca::new(1);
/// let with_defaults = model.fit(&v, &mut rng)?;
/// let with_choices = model.on(&v)?.stop(Stop::default().tol(1e-9)).restarts(3).run(Init::default(), &mut rng)?;
/// assert!((with_defaults.objective() - with_choices.objective()).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Model<T: Real>: Settings {
    /// The fitted parameters.
    type State: State<Scalar = T>;

    /// [Checks](Settings::check) the settings and the data and, if the kernel needs another layout, copies them into it. The result is for writers of solvers and tests; to fit,
    /// call [`on`](Self::on) or [`fit`](Self::fit).
    ///
    /// # Errors
    ///
    /// Those of [`Settings::check`]; [`FitError`] for data that the model does not take, or that its settings do not fit.
    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError>;

    /// A [`Run`] on data: choose its solver, stop rule, restarts and observers, then call [`Run::run`].
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Run<'a, Self::State>, FitError>
    where
        Self: Sized,
    {
        let mut run = Run::<Self::State>::new(self.bind(data)?);
        run.model = Some(self);
        Ok(run)
    }

    /// The state from which a run with this `init` would start. Nothing is fitted.
    ///
    /// # Errors
    ///
    /// As [`Init::parameters`].
    fn init(
        &self,
        data: &dyn Data<T>,
        init: impl Into<Init<T>>,
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

    /// Fits with the default solver and stop rule of [`Run`], from one random start.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on) and [`Run::run`].
    fn fit(&self, data: &dyn Data<T>, rng: &mut dyn Rng) -> Result<Fit<Self::State>, FitError>
    where
        Self: Sized,
    {
        self.on(data)?.run(Init::default(), rng)
    }
}
