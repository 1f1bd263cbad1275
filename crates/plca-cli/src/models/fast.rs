//! Any model that separates, by the solver of `--solver`.

use std::marker::PhantomData;
use std::path::Path;

use nalgebra::DMatrix;
use plca_em::{EmError, Fast, FastState, Outcome, Progress, Separable};
use plca_fit::{Carried, Direction, Observer, Stop};
use plca_io::{Array, Element};
use plca_tensor::Data;
use rand_chacha::ChaCha8Rng;

use super::CommandModel;
use super::accelerated::plainly;
use crate::args::{Acceleration, FitArgs, Solver};
use crate::blocks::{Arrays, matrix, take_matrix};
use crate::data::Dataset;
use crate::failure::Failure;
use crate::{fit, given};

/// A model whose algorithm may be replaced by coordinate descent.
pub(crate) trait Separates<T: Element>: CommandModel<Data = dyn Data<T>> {
    /// The model bound to data.
    type Algorithm<'a>: Separable<T, State = Self::State>
    where
        Self: 'a;
    /// Binds it.
    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Self::Algorithm<'a>, Failure>;
}

/// Before the names of the solver's own blocks in a checkpoint, and of its numbers.
const BLOCK: &str = "fast.block_";
const NUMBERS: &str = "fast.numbers";

struct FastCommand<T, M> {
    model: M,
    scalar: PhantomData<T>,
}

/// Fits a model by the solver asked for; `em` fits it otherwise.
pub(crate) fn fit<T: Element, M: Separates<T>>(
    args: &FitArgs,
    data: &(dyn Data<T> + 'static),
    make: impl Fn(usize) -> Result<M, Failure>,
    em: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    match solver(args) {
        Solver::Em => return em(),
        Solver::Fast => {
            if let Some(option) = of_em(args) {
                return Err(Failure::usage(format!(
                    "{option} does not go with --solver fast: use --solver em"
                )));
            }
        }
        Solver::Auto => {}
    }
    let (_, implied) = given::blocks(args, data.sizes().len())?;
    let model = make(given::rank(args, implied, data.sizes())?)?;
    let separable = Fast::check(&model.bind(data)?);
    match (separable, args.solver) {
        (Ok(()), _) => fit::fit(args, data, |rank| {
            Ok(FastCommand {
                model: make(rank)?,
                scalar: PhantomData,
            })
        }),
        (Err(EmError::NotSeparable { .. }), Solver::Auto) => em(),
        (Err(e @ EmError::NotSeparable { .. }), _) => {
            Err(Failure::usage(format!("--solver fast: {e}")))
        }
        (Err(e), _) => Err(e.into()),
    }
}

/// The solver asked for: `auto` leaves the choice to the model only where no option says that it is EM.
pub(crate) fn solver(args: &FitArgs) -> Solver {
    let em = of_em(args).is_some()
        || args.tol() == 0.0
        || args.out_of_core.is_some()
        || !args.model.separates();
    match args.solver {
        Solver::Auto if em => Solver::Em,
        named => named,
    }
}

/// The first option that says how EM is to work.
fn of_em(args: &FitArgs) -> Option<&'static str> {
    let options = [
        (args.temper.is_some(), "--temper"),
        (args.accelerate != Acceleration::None, "--accelerate"),
        (args.update.is_some(), "--update"),
        (args.missing_method.is_some(), "--missing-method"),
    ];
    options
        .into_iter()
        .find(|(given, _)| *given)
        .map(|(_, name)| name)
}

impl<T: Element, M: Separates<T>> CommandModel for FastCommand<T, M> {
    type Data = dyn Data<T>;
    type State = FastState<T, M::State>;
    const OBJECTIVE: &'static str = M::OBJECTIVE;

    fn start(
        &self,
        data: &Self::Data,
        given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self::State, Failure> {
        Ok(FastState::new(self.model.start(data, given, path, rng)?))
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<Self::State, Failure> {
        let numbers = arrays.remove(NUMBERS).map_or(Vec::new(), |a| a.values);
        let mut blocks: Vec<DMatrix<T>> = Vec::new();
        while let Some(block) = take_matrix(path, &mut arrays, &format!("{BLOCK}{}", blocks.len()))?
        {
            blocks.push(block);
        }
        let model = self.model.restore(arrays, path)?;
        FastState::from_parts(model, blocks, &numbers).ok_or_else(|| {
            Failure::of(
                path,
                format!("`{NUMBERS}` and `{BLOCK}…` do not belong together"),
            )
        })
    }

    fn arrays(&self, data: &Self::Data, state: &Self::State) -> Arrays {
        self.model.arrays(data, state.model())
    }

    fn saved(&self, data: &Self::Data, state: &Self::State) -> Arrays {
        // A start that ended is not gone on with.
        let ended = state.end().map(|end| (end, Vec::new(), Vec::new()));
        let (model, blocks, numbers) = ended.unwrap_or_else(|| state.to_parts());
        let mut arrays = self.model.saved(data, model);
        if !numbers.is_empty() {
            arrays.insert(NUMBERS.into(), Array::new(vec![numbers.len()], numbers));
        }
        let blocks = blocks.iter().enumerate();
        arrays.extend(blocks.map(|(j, block)| (format!("{BLOCK}{j}"), matrix(block))));
        arrays
    }

    fn restored(&self, state: &Self::State) -> Vec<String> {
        self.model.restored(state.model())
    }

    fn iterate(
        &self,
        data: &Self::Data,
        _: Acceleration,
        from: (Carried<Self::State>, Progress),
        stop: &Stop,
        observer: impl Observer<Carried<Self::State>>,
    ) -> Result<Outcome<Carried<Self::State>>, Failure> {
        let algorithm = Fast::new(self.model.bind(data)?)?;
        plainly(algorithm, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        self.model.direction()
    }

    fn scale(&self, data: &Self::Data, state: &Self::State) -> Result<Option<Array<f64>>, Failure> {
        self.model.scale(data, state.model())
    }

    fn ln_lik(&self, data: &Self::Data, state: &Self::State) -> Result<Option<f64>, Failure> {
        self.model.ln_lik(data, state.model())
    }
}
