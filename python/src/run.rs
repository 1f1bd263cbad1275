//! What is done with a model: fit it, explain new data, reconstruct.

use std::collections::BTreeMap;
use std::path::Path;

use plca::em::OnlineState;
use plca::fit::{
    AnyModel, Checkpoint, Event, Fill, Impossible, Init, Interrupt, Iteration, Reconstruct, Sense,
    Solver, State, Status, Stop, Transform,
};
use plca::io::{Array, ModelFile, block_of, room};
use plca::tensor::{Data, Order};

use crate::data::{Scalar, View};
use crate::error::{Refused, wrong};
use crate::models::{Asked, Drawn, Job, Kind, Learnt, Lesson};
use crate::options::Options;
use crate::supervise::Control;

/// Arrays by name, in C order.
pub(crate) type Arrays = BTreeMap<String, Array<f64>>;

/// What says when a run ends, by name.
pub(crate) fn stop(mut options: Options, default: Stop) -> Result<Stop, Refused> {
    let mut stop = default;
    if let Some(most) = options.count("max_iter")? {
        stop.max_iter = most;
    }
    if let Some(tol) = options.number("tol")? {
        // As of the command: 0 is no test.
        stop.tol = Some(tol).filter(|&tol| tol > 0.0);
    }
    if let Some(tol) = options.number("residual_tol")? {
        stop.residual_tol = Some(tol).filter(|&tol| tol > 0.0);
    }
    if let Some(every) = options.count("check_every")? {
        stop.check_every = every;
    }
    options.finish("of this stop rule")?;
    stop.check().map_err(|e| Refused::Value(e.to_string()))?;
    Ok(stop)
}

/// The solver of a name; `Auto` is plain where a fixed number of iterations is asked for, as of the command.
pub(crate) fn solver(name: &str, stop: &Stop) -> Result<Solver, Refused> {
    let solver: Solver = name.parse()?;
    Ok(match solver {
        Solver::Auto if stop.tol.is_none() => Solver::Em,
        named => named,
    })
}

/// The start of a name.
pub(crate) fn init<T: Scalar>(name: &str) -> Result<Init<T>, Refused> {
    Ok(match name {
        "random" => Init::default(),
        "deflation" => Init::deflation(),
        "nndsvd" => Init::nndsvd(Fill::Zero),
        "nndsvda" => Init::nndsvd(Fill::Mean),
        "nndsvdar" => Init::nndsvd(Fill::Random),
        _ => return wrong(format!("no start is called '{name}'")),
    })
}

/// Copies of the parameters that a run holds at least.
const COPIES: usize = 4;

/// Refuses parameters that could not be held: running out of memory later would end the process.
fn reasonable(k: usize, shape: &[usize]) -> Result<(), Refused> {
    let indices = shape.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
    let room = room::<f64>(&[COPIES, k, indices]);
    room.map(drop).map_err(|e| {
        Refused::Memory(format!(
            "`n_components` is {k}, too many for X of shape {shape:?}: {e}"
        ))
    })
}

/// A fit from one or several starts.
pub(crate) struct Fitting<'a, T: Scalar> {
    pub(crate) data: View<'a, T>,
    pub(crate) components: usize,
    pub(crate) options: Options,
    pub(crate) start: Arrays,
    pub(crate) init: Init<T>,
    pub(crate) seed: u64,
    pub(crate) starts: u32,
    pub(crate) solver: Solver,
    pub(crate) stop: Stop,
    /// Whether the objective without priors is asked for, too.
    pub(crate) likelihood: bool,
    pub(crate) control: &'a Control,
}

/// What a fit found.
pub(crate) struct Fitted {
    pub(crate) file: ModelFile,
    pub(crate) iterations: usize,
    pub(crate) status: Status,
    pub(crate) objective: f64,
    pub(crate) likelihood: Option<f64>,
    pub(crate) trace: Vec<(usize, f64)>,
    pub(crate) restored: Vec<String>,
    pub(crate) posterior: bool,
}

impl<T: Scalar> Job<T> for Fitting<'_, T> {
    type Output = Fitted;

    fn run<K: Kind>(mut self) -> Result<Fitted, Refused> {
        let data = self.data.tensor()?;
        let name = <K::State<T> as State>::NAME;
        reasonable(self.components, data.shape())?;
        let model = K::build::<T>(Asked {
            options: &mut self.options,
            k: self.components,
            shape: data.shape(),
        })?;
        self.options.finish(name)?;
        let mut init = self.init;
        for (name, array) in &self.start {
            let block = block_of::<K::State<T>>(name, array).map_err(Refused::Value)?;
            init = init.block(name.as_str(), block.map(T::lit));
        }
        let mut best: Option<Fitted> = None;
        for start in 0..self.starts.max(1) {
            let run = AnyModel::on(&model, &*data)?;
            let algorithm = run.algorithm();
            let maximised = algorithm.sense() == Sense::Maximise;
            let mut priors = algorithm.blocks().iter().flat_map(|block| &block.prior);
            let posterior = priors.any(|prior| prior.rules().has_density());
            // Start r is that of the command: stream r of the seed.
            let mut rng = plca::seed(self.seed);
            rng.set_stream(u64::from(start));
            let at = init.parameters(algorithm, &mut rng)?;
            let run = run.solver(self.solver).stop(self.stop.clone());
            let control = self.control;
            let run = run.observe(move |it: &Iteration<'_, T>| control.after(start, it));
            let fit = run.resume(Checkpoint::new(at))?;
            let (objective, iterations) = (fit.objective(), fit.iterations());
            if !objective.is_finite() {
                return wrong(format!(
                    "X: the objective became {objective} after {iterations} iterations"
                ));
            }
            let better = best.as_ref().is_none_or(|best| match maximised {
                true => objective > best.objective,
                false => objective < best.objective,
            });
            let status = fit.status().clone();
            let is_last = matches!(status, Status::Interrupted | Status::Custom(_));
            if better {
                let likelihood = match self.likelihood {
                    true => Some(model.bind_to(&*data)?.likelihood(fit.state())?),
                    false => None,
                };
                let trace = fit.trace().iter().map(|p| (p.iteration, p.objective));
                let events = fit.events().iter().filter_map(|event| match event {
                    Event::SupportRestored { block, .. } => Some(block.clone()),
                    _ => None,
                });
                best = Some(Fitted {
                    iterations,
                    status,
                    objective,
                    likelihood,
                    trace: trace.collect(),
                    restored: events.collect(),
                    posterior,
                    file: ModelFile::of_parameters::<K::State<T>>(&fit.state().widened()),
                });
            }
            if is_last {
                break;
            }
        }
        match best {
            Some(best) => Ok(best),
            None => wrong("X: no start came to an end"),
        }
    }
}

/// New data under a learnt state.
pub(crate) struct Explaining<'a, T> {
    pub(crate) data: View<'a, T>,
    pub(crate) learnt: ModelFile,
    pub(crate) options: Options,
    pub(crate) along: usize,
    pub(crate) solver: Solver,
    pub(crate) stop: Stop,
    pub(crate) interrupt: Interrupt,
}

/// What the new data are explained by.
pub(crate) struct Found {
    pub(crate) arrays: Arrays,
    pub(crate) gap: Vec<f64>,
    pub(crate) dropped: f64,
    pub(crate) empty: Vec<usize>,
    pub(crate) objective: f64,
    pub(crate) iterations: usize,
    pub(crate) status: Status,
    pub(crate) total: f64,
    pub(crate) observed: f64,
}

/// How many cells were observed.
fn observed<T: Scalar>(data: &dyn Data<T>) -> Result<f64, Refused> {
    let all: f64 = data.shape().iter().map(|&n| n as f64).product();
    let mut listed = 0.0;
    data.visit_mask(&mut |_| listed += 1.0)?;
    Ok(match data.summary().mask {
        plca::tensor::Mask::Complete => all,
        plca::tensor::Mask::Hidden => all - listed,
        plca::tensor::Mask::Observed => listed,
    })
}

impl<T: Scalar> Job<T> for Explaining<'_, T> {
    type Output = Found;

    fn run<K: Kind>(mut self) -> Result<Found, Refused> {
        let data = self.data.tensor()?;
        let state = state::<K, T>(self.learnt)?;
        let how = Transform::default().impossible(Impossible::Drop);
        let how = how.solver(self.solver).stop(self.stop);
        let how = how.interrupt(self.interrupt);
        let explained = K::explain(&mut self.options, &state, &*data, self.along, how)?;
        self.options.finish(<K::State<T> as State>::NAME)?;
        let fit = &explained.fit;
        // Of the state of any model: names and values of blocks are those of files.
        let at = fit.state().widened();
        Ok(Found {
            arrays: ModelFile::of_parameters::<K::State<T>>(&at).arrays,
            objective: fit.objective(),
            iterations: fit.iterations(),
            status: fit.status().clone(),
            gap: explained.gap,
            dropped: explained.dropped,
            empty: explained.empty,
            total: data.total(),
            observed: observed(&*data)?,
        })
    }
}

/// The state that arrays and metadata are.
fn state<K: Kind, T: Scalar>(file: ModelFile) -> Result<K::State<T>, Refused> {
    let state = file.state::<K::State<T>>(Path::new("the model"));
    state.map_err(|e| Refused::Value(e.to_string()))
}

/// The approximation of the data by a state, or by one component of it.
pub(crate) struct Reconstructing {
    pub(crate) learnt: ModelFile,
    pub(crate) component: Option<usize>,
}

impl<T: Scalar> Job<T> for Reconstructing {
    type Output = (Vec<usize>, Vec<T>);

    fn run<K: Kind>(self) -> Result<(Vec<usize>, Vec<T>), Refused> {
        let state = state::<K, T>(self.learnt)?;
        room::<T>(&state.shape())?;
        let tensor = match self.component {
            None => state.reconstruct()?,
            Some(z) => state.component(z)?,
        };
        let (shape, values, order) = tensor.into_parts();
        debug_assert_eq!(order, Order::RowMajor);
        Ok((shape, values))
    }
}

/// Data drawn from the law of a state.
pub(crate) struct Sampling {
    pub(crate) learnt: ModelFile,
    pub(crate) options: Options,
    pub(crate) draws: Option<u64>,
    pub(crate) seed: u64,
}

impl Job<f64> for Sampling {
    type Output = (Vec<usize>, Drawn);

    fn run<K: Kind>(mut self) -> Result<(Vec<usize>, Drawn), Refused> {
        let state = state::<K, f64>(self.learnt)?;
        let drawn = K::sample(&mut self.options, &state, self.draws, self.seed)?;
        self.options.finish(<K::State<f64> as State>::NAME)?;
        Ok((state.shape(), drawn))
    }
}

/// One more batch of a stream.
pub(crate) struct Learning<'a, T: Scalar> {
    pub(crate) data: View<'a, T>,
    pub(crate) options: Options,
    pub(crate) components: usize,
    pub(crate) seed: u64,
    pub(crate) known: Option<OnlineState<T>>,
}

impl<T: Scalar> Job<T> for Learning<'_, T> {
    type Output = Learnt<T>;

    fn run<K: Kind>(mut self) -> Result<Learnt<T>, Refused> {
        let data = self.data.tensor()?;
        reasonable(self.components, data.shape())?;
        let lesson = Lesson {
            components: self.components,
            seed: self.seed,
            known: self.known,
            data: &*data,
        };
        let learnt = K::learn::<T>(&mut self.options, lesson)?;
        self.options.finish(<K::State<T> as State>::NAME)?;
        Ok(learnt)
    }
}
