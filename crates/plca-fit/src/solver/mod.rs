//! Solvers: ways from parameters to better ones. Each is one file and one line of `solvers!`.

use std::fmt::Debug;

use plca_tensor::Real;

use super::{Algorithm, FitError, Parameters, Status, Stepped};

/// The numbers that a solver remembers from one iteration to the next, and that a checkpoint can hold.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Memory {
    pub(super) points: Vec<Vec<f64>>,
    pub(super) numbers: Vec<f64>,
}

impl Memory {
    /// Whether it holds numbers alone, as every solver's does; of points finite ones.
    pub(super) fn is_finite(&self) -> bool {
        let mut points = self.points.iter().flatten();
        points.all(|x| x.is_finite()) && !self.numbers.iter().any(|x| x.is_nan())
    }
}

/// A solver at work on an algorithm.
pub trait Steps<T: Real>: Debug {
    /// One iteration; with `measure`, also the objective of the parameters before it, where that is known.
    ///
    /// # Errors
    ///
    /// Those of the algorithm; `at` is then that of an earlier step.
    fn step(&mut self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError>;

    /// The numbers that it needs besides the parameters to go on bit-identically.
    fn memory(&self) -> Memory;

    /// Why there is nothing left to do, if there is not.
    fn ended(&self) -> Option<Status> {
        None
    }

    /// Perplexity of held-out counts under the parameters of the run, where it is what the run is judged by. Default: none.
    fn held_out_perplexity(&self) -> Option<f64> {
        None
    }

    /// Better parameters to end a run with, where a last step finds them. Default: none.
    ///
    /// # Errors
    ///
    /// Those of the algorithm.
    fn finish(&self, at: &Parameters<T>) -> Result<Option<Parameters<T>>, FitError> {
        let _ = at;
        Ok(None)
    }
}

type BoxedSteps<'a, T> = Result<Box<dyn Steps<T> + 'a>, FitError>;
type Step<T> =
    fn(&dyn Algorithm<T>, &mut Parameters<T>, &mut Memory, bool) -> Result<Stepped, FitError>;

/// A solver that is a function of the algorithm, the parameters and its memory.
#[derive(Debug)]
struct Function<'a, T: Real> {
    algorithm: &'a dyn Algorithm<T>,
    memory: Memory,
    step: Step<T>,
}

impl<T: Real> Steps<T> for Function<'_, T> {
    fn step(&mut self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        (self.step)(self.algorithm, at, &mut self.memory, measure)
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }
}

fn function<'a, T: Real>(
    algorithm: &'a dyn Algorithm<T>,
    memory: Memory,
    step: Step<T>,
) -> BoxedSteps<'a, T> {
    Ok(Box::new(Function {
        algorithm,
        memory,
        step,
    }))
}

/// Whether the next step can be extrapolated. While a power still moves, plain steps are made in its place.
fn extrapolates<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &Parameters<T>,
) -> Result<bool, FitError> {
    match algorithm.extrapolates(at) {
        Ok(()) => Ok(true),
        Err(FitError::Annealing { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// `None` for an error that rejects the point.
pub(crate) fn unless_rejected<O>(tried: Result<O, FitError>) -> Result<Option<O>, FitError> {
    match tried {
        Ok(reached) => Ok(Some(reached)),
        Err(error) if error.rejects_point() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a point can be taken. A prior can drive factors apart until an entry leaves the range of numbers, while the objective stays finite.
fn within_range<T: Real>(algorithm: &dyn Algorithm<T>, at: &Parameters<T>) -> bool {
    let blocks = algorithm.blocks().iter().zip(at.matrices());
    let mut blocks = blocks.enumerate();
    blocks.all(|(j, (spec, block))| spec.within_range(block, algorithm.rate_unit(j)))
}

macro_rules! solvers {
    ($($(#[$default:meta])* $variant:ident = $name:literal, $about:literal, $file:ident;)*) => {
        $(pub(crate) mod $file;)*

        /// The way in which a run makes its iterations: plain steps of the model, or steps that are extrapolated.
        ///
        /// ```math
        /// \begin{aligned}
        /// & \text{em:} & x_{t+1} &= M(x_t) \\
        /// & \text{squarem:} & x_{t+1} &= M(x_t - 2 a r + a^2 u), \quad r = M(x_t) - x_t, \\
        /// & & & \quad u = M(M(x_t)) - 2 M(x_t) + x_t, \quad a = - |r| / |u| \\
        /// & \text{parabolic:} & x_{t+1} &= M(M(p)), \quad p = (1 - s)^2 x_{t-2} + 2 s (1 - s) \, x_{t-1} + s^2 x_t, \quad s > 1 \\
        /// & \text{momentum:} & x_{t+1} &= M(x_t + \beta (x_t - x_{t-1}))
        /// \end{aligned}
        /// ```
        ///
        /// `x` are the parameters, all blocks in one vector, and `M` one plain iteration of the model. An extrapolated point that makes the
        /// objective worse is not kept. `fast` is coordinate descent by [`Rows`](plca_tensor::arrange::Rows), extrapolated as in
        /// `momentum`.
        ///
        /// ```
        /// use plca_fit::Solver;
        /// assert_eq!("squarem".parse(), Ok(Solver::Squarem));
        /// assert_eq!(Solver::default().to_string(), "auto");
        /// assert!(Solver::ALL.iter().all(|solver| !solver.about().is_empty()));
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum Solver {
            $(#[doc = $about] $(#[$default])* $variant,)*
        }

        impl Solver {
            /// All solvers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name on the command line and in files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// A line that says what it does.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }

            /// Binds the solver to an algorithm, at the start of a run or with its memory from a run.
            ///
            /// # Errors
            ///
            /// [`FitError::NotSeparable`] from [`Fast`](Self::Fast), and [`FitError::Data`] for data that cannot be read.
            pub fn on<T: Real>(
                self,
                algorithm: &dyn Algorithm<T>,
                memory: Memory,
            ) -> Result<Box<dyn Steps<T> + '_>, FitError> {
                match self { $(Self::$variant => $file::bind(algorithm, memory),)* }
            }
        }
    };
}

solvers! {
    Em = "em", "Plain iterations of the model.", em;
    Squarem = "squarem", "Two steps, a squared extrapolation, a step (Varadhan & Roland 2008).", squarem;
    Parabolic = "parabolic", "A search along a parabola through three points, two steps (Berlinet & Roland 2009).", parabolic;
    Momentum = "momentum", "Steps extrapolated in their direction, kept if the objective is not worse (Ang & Gillis 2019).", momentum;
    Fast = "fast", "Coordinate descent with guarded extrapolation, for models that separate into rows (Ang & Gillis 2019).", fast;
    #[default]
    Auto = "auto", "Coordinate descent if the model separates into rows, otherwise plain iterations.", auto;
}

impl std::fmt::Display for Solver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Solver {
    type Err = FitError;

    fn from_str(name: &str) -> Result<Self, FitError> {
        let named = Self::ALL.iter().find(|solver| solver.name() == name);
        named.copied().ok_or_else(|| FitError::UnknownSolver {
            name: name.into(),
            expected: Self::ALL.iter().map(|solver| solver.name()).collect(),
        })
    }
}
