//! Solvers: ways from parameters to better ones. Each is one file and one line of [`solvers!`].

mod em;
pub(crate) mod momentum;
pub(crate) mod parabolic;
pub(crate) mod squarem;

use plca_tensor::Real;

use super::{Algorithm, FitError, Parameters, Stepped};

/// What a solver remembers from one iteration to the next: earlier points, one block after the other, and numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    points: Vec<Vec<f64>>,
    numbers: Vec<f64>,
}

/// `None` for an error that rejects the point.
fn unless_rejected<O>(tried: Result<O, FitError>) -> Result<Option<O>, FitError> {
    match tried {
        Ok(reached) => Ok(Some(reached)),
        Err(error) if error.rejects_point() => Ok(None),
        Err(error) => Err(error),
    }
}

macro_rules! solvers {
    ($($(#[$default:meta])* $variant:ident = $name:literal, $about:literal, $step:path;)*) => {
        /// How iterations are made.
        ///
        /// ```
        /// use plca_fit::engine::Solver;
        /// assert_eq!("squarem".parse(), Ok(Solver::Squarem));
        /// assert_eq!(Solver::default().to_string(), "em");
        /// assert!(Solver::ALL.iter().all(|solver| !solver.about().is_empty()));
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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

            /// What it does, in a line.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }

            /// One iteration; with `measure`, also the objective of the parameters before it, where that is known.
            ///
            /// # Errors
            ///
            /// Those of the algorithm; `at` is then that of an earlier step.
            pub fn step<T: Real>(
                self,
                algorithm: &dyn Algorithm<T>,
                at: &mut Parameters<T>,
                memory: &mut Memory,
                measure: bool,
            ) -> Result<Stepped, FitError> {
                match self { $(Self::$variant => $step(algorithm, at, memory, measure),)* }
            }
        }
    };
}

solvers! {
    #[default]
    Em = "em", "Plain iterations of the model.", em::step;
    Squarem = "squarem", "Two steps, a squared extrapolation, a step (Varadhan & Roland 2008).", squarem::step;
    Parabolic = "parabolic", "A search along a parabola through three points, two steps (Berlinet & Roland 2009).", parabolic::step;
    Momentum = "momentum", "Steps carried on in their direction, kept if the objective is not worse (Ang & Gillis 2019).", momentum::step;
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
