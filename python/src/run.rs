//! What is done with a model: fit it, explain new data, reconstruct.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use plca::em::{Batch, Criterion, CrossValidation, NotCounts, OnlineState, Selection, not_counts};
use plca::fit::far::far_hidden_cell;
use plca::fit::nndsvd::Fill;
use plca::fit::{Init, Parameters, Solver, Status, Stop, Transform};
use plca::io::{Array, ModelFile, room};
use plca::tensor::parallel::apart;
use plca::tensor::{Data, Real, unobserved};
use plca_run::{Answer, AnyModel, Draws, ModelEntry, Saved, Scored, Sizes, Stream, Validated};

use crate::data::{Scalar, View};
use crate::error::{Refused, wrong};
use crate::options::Options;
use crate::starts::{Fitted, Starts};
use crate::supervise::Control;

/// Arrays by name, in C order.
pub(crate) type Arrays = BTreeMap<String, Array<f64>>;

/// What says when a run ends, by name.
pub(crate) fn stop(options: &Options, default: Stop) -> Result<Stop, Refused> {
    let known = [
        "max_iter",
        "tol",
        "residual_tol",
        "check_every",
        "time_limit",
    ];
    options.only(&known, "this stop rule")?;
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
    if let Some(seconds) = options.number("time_limit")? {
        let limit = Duration::try_from_secs_f64(seconds);
        let refused = |_| Refused::Value(format!("`time_limit` is {seconds}, expected seconds"));
        stop.time_limit = Some(limit.map_err(refused)?);
    }
    stop.check().map_err(|e| Refused::Value(e.to_string()))?;
    Ok(stop)
}

/// The solver of a name.
pub(crate) fn solver(name: &str) -> Result<Solver, Refused> {
    Ok(name.parse()?)
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
pub(crate) fn reasonable(k: usize, shape: &[usize]) -> Result<(), Refused> {
    let indices = shape.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
    let room = room::<f64>(&[COPIES, k, indices]);
    room.map(drop).map_err(|e| {
        Refused::Memory(format!(
            "`n_components` is {k}, too many for X of shape {shape:?}: {e}"
        ))
    })
}

/// How a run is made.
pub(crate) struct Plan<T: Scalar> {
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
}

impl<T: Scalar> Plan<T> {
    fn model(&self, entry: &ModelEntry, shape: &[usize]) -> Result<Box<dyn AnyModel>, Refused> {
        reasonable(self.components, shape)?;
        self.options.model(entry, self.components, shape)
    }
}

/// A fit from one or several starts.
pub(crate) fn fit<T: Scalar>(
    entry: &ModelEntry,
    data: View<'_, T>,
    plan: Plan<T>,
    control: &Control,
) -> Result<Fitted, Refused> {
    let data = data.tensor()?;
    let model = plan.model(entry, data.shape())?;
    let mut init = plan.init;
    for (name, array) in &plan.start {
        let block = entry.block(name, array).map_err(Refused::Value)?;
        init = init.block(name.as_str(), block.map(T::lit));
    }
    let starts = Starts {
        init,
        seed: plan.seed,
        count: plan.starts,
        solver: plan.solver,
        stop: plan.stop,
        likelihood: plan.likelihood,
        control,
    };
    let mut fitted = starts.best(entry, T::of(&*model).model(), &*data)?;
    fitted.far = far_hidden_cell(&*data, || {
        let cells = T::cells(entry, fitted.file.clone(), None)?.1;
        Ok::<_, Refused>(cells.into_iter().map(Real::to_f64).collect())
    })?;
    if !data.is_complete() {
        fitted.unobserved = unobserved(&*data)?;
    }
    Ok(fitted)
}

/// What a sweep found.
pub(crate) struct Swept {
    /// The block of every start, its columns one after the other: a row for each.
    pub(crate) columns: Vec<f64>,
    /// Entries of a column.
    pub(crate) size: usize,
    pub(crate) objectives: Vec<f64>,
    pub(crate) iterations: Vec<u64>,
}

/// Fits from several starts that share nothing, of which one block is kept.
pub(crate) fn sweep<T: Scalar>(
    entry: &ModelEntry,
    data: View<'_, T>,
    (plan, block): (Plan<T>, &str),
    control: &Control,
) -> Result<Swept, Refused> {
    let data = data.tensor()?;
    let model = plan.model(entry, data.shape())?;
    let one = |start: usize| -> Result<_, Refused> {
        // Each of thousands would still make an iteration.
        if control.interrupt().is_raised() {
            return wrong("interrupted");
        }
        // Start r is that of the command: stream r of the seed.
        let mut rng = plca::seed(plan.seed);
        rng.set_stream(start as u64);
        let run = T::of(&*model).model().on(&*data)?;
        let run = run.solver(plan.solver).stop(plan.stop.clone());
        let run = run.observe(control.interrupt());
        let fit = run.run(plan.init.clone(), &mut rng)?;
        let (objective, iterations) = (fit.objective(), fit.iterations() as u64);
        if !objective.is_finite() {
            return wrong(format!(
                "X: the objective of start {start} became {objective}"
            ));
        }
        let state = fit.into_state().widened();
        match state.block(block) {
            Some(block) => Ok((block.clone(), objective, iterations)),
            None => wrong(format!("the model has no block '{block}'")),
        }
    };
    let found = apart(plan.starts as usize, one).into_iter();
    let found = found.collect::<Result<Vec<_>, _>>()?;
    let columns = found.iter().flat_map(|(block, ..)| block.iter().copied());
    Ok(Swept {
        columns: columns.collect(),
        size: found.first().map_or(0, |(block, ..)| block.nrows()),
        objectives: found.iter().map(|(_, objective, _)| *objective).collect(),
        iterations: found.iter().map(|(.., iterations)| *iterations).collect(),
    })
}

/// What the new data are explained by.
pub(crate) struct Explanation {
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

/// What new data under the blocks of a fit are; with `each`, every observation as a batch of one.
pub(crate) fn explain<T: Scalar>(
    entry: &ModelEntry,
    learnt: ModelFile,
    data: View<'_, T>,
    (options, components): (&Options, usize),
    (how, each): (&Transform, bool),
) -> Result<Explanation, Refused> {
    let data = data.tensor()?;
    let model = options.model(entry, components, data.shape())?;
    let answer = T::of(&*model).explain(learnt, &*data, how, each)?;
    let (total, observed) = (data.total(), observed(&*data)?);
    Ok(match answer {
        Answer::Each(each) => {
            let rows = each.blocks.into_iter();
            let rows = rows.map(|(name, rows)| {
                let shape = vec![rows.nrows(), rows.ncols()];
                (name, Array::new(shape, rows.transpose().data.into()))
            });
            Explanation {
                arrays: rows.collect(),
                gap: each.gap,
                dropped: each.dropped,
                empty: each.empty,
                objective: each.objective,
                iterations: each.ended.iterations,
                status: each.ended.status,
                total,
                observed,
            }
        }
        Answer::Together(explained) => {
            let fit = &explained.fit;
            Explanation {
                // Of the state of any model: names and values of blocks are those of files.
                arrays: entry.file(&fit.state().widened()).arrays,
                objective: fit.objective(),
                iterations: fit.iterations(),
                status: fit.status().clone(),
                gap: explained.gap,
                dropped: explained.dropped,
                empty: explained.empty,
                total,
                observed,
            }
        }
    })
}

/// What was drawn from the law of a fit.
pub(crate) enum Drawn {
    /// Events, of which every index is listed.
    Events(Vec<u32>),
    /// A number for every cell, in C order.
    Cells(Vec<f64>),
}

/// Draws from the law of a fit: events, or the sum of arrays; one array by default.
pub(crate) fn sample(
    entry: &ModelEntry,
    mut learnt: ModelFile,
    options: &Options,
    (draws, seed): (Option<u64>, u64),
) -> Result<(Vec<usize>, Drawn), Refused> {
    learnt.metadata["settings"] = options.in_file(entry)?;
    let fitted = entry.approximation(Saved::new(Path::new("the model"), learnt))?;
    let (shape, rng) = (fitted.shape(), &mut plca::seed(seed));
    if let Some(events) = fitted.events(draws, rng)? {
        return Ok((shape, Drawn::Events(events)));
    }
    let mut cells = room::<f64>(&shape)?;
    cells.resize(shape.iter().product(), 0.0);
    let mut into = Array::new(shape, cells);
    let number = draws.unwrap_or(1);
    fitted.sample(Draws {
        number,
        rng,
        into: &mut into,
    })?;
    Ok((into.shape, Drawn::Cells(into.values)))
}

/// What is known after a batch, and what it taught.
pub(crate) type BatchResult<T> = (OnlineState<T>, Batch<Parameters<T>>);

/// Learns from one more batch; `known` is `None` at the start of a stream.
pub(crate) fn learn<T: Scalar>(
    entry: &ModelEntry,
    data: View<'_, T>,
    (options, components, seed): (&Options, usize, u64),
    known: Option<OnlineState<T>>,
    how: &Stream,
) -> Result<BatchResult<T>, Refused> {
    let data = data.tensor()?;
    reasonable(components, data.shape())?;
    let model = options.model(entry, components, data.shape())?;
    let Some(learner) = T::of(&*model).streamed(how) else {
        let name = entry.name;
        return wrong(format!("the model {name} does not learn batch by batch"));
    };
    let mut known = match known {
        Some(known) => known,
        None => {
            let mut sizes = data.shape().to_vec();
            sizes.remove(learner.along(sizes.len()));
            learner.init(&sizes, &mut plca::seed(seed))?
        }
    };
    let batch = learner.learn(&mut known, &*data)?;
    Ok((known, batch))
}

/// Random numbers of what is held out, as of the command, and how much that is.
const HELD_OUT_STREAM: u64 = u64::MAX;
const SHARE: f64 = 0.1;

/// Fits with several numbers of components, to be compared.
pub(crate) struct Choice {
    pub(crate) components: Vec<usize>,
    /// Of each number of components.
    pub(crate) options: Vec<Options>,
    pub(crate) seed: u64,
    pub(crate) starts: u32,
    pub(crate) solver: Solver,
    pub(crate) stop: Stop,
}

/// The scores, and whether the data are counts.
pub(crate) struct Table {
    pub(crate) rows: Vec<Scored>,
    pub(crate) counts: bool,
    /// Why whole numbers are hardly counts.
    pub(crate) doubt: Option<NotCounts>,
}

impl Table {
    fn of(rows: Vec<Scored>, data: &dyn Data<f64>) -> Result<Self, Refused> {
        Ok(Self {
            rows,
            counts: data.summary().integers,
            doubt: not_counts(data)?,
        })
    }
}

impl Choice {
    fn models(
        &self,
        entry: &ModelEntry,
        shape: &[usize],
    ) -> Result<Vec<Box<dyn AnyModel>>, Refused> {
        let model = |(&k, options): (&usize, &Options)| {
            reasonable(k, shape)?;
            options.model(entry, k, shape)
        };
        let all = self.components.iter().zip(&self.options);
        all.map(model).collect()
    }

    fn sizes<'a>(
        &self,
        models: &'a [Box<dyn AnyModel>],
        interrupted: &'a (dyn Fn() -> bool + Sync),
    ) -> Sizes<'a> {
        Sizes {
            models,
            solver: self.solver,
            stop: self.stop.clone(),
            restarts: self.starts,
            seed: self.seed,
            interrupted,
        }
    }

    /// Scores by likelihoods.
    pub(crate) fn by_likelihood(
        self,
        entry: &ModelEntry,
        data: View<'_, f64>,
        criterion: Criterion,
        control: &Control,
    ) -> Result<Table, Refused> {
        let data = data.tensor()?;
        let mut rng = plca::seed(self.seed);
        rng.set_stream(HELD_OUT_STREAM);
        let selection = Selection::new(&*data, criterion, SHARE, rng);
        let selection = selection.map_err(|e| Refused::Value(format!("X: {e}")))?;
        let models = self.models(entry, data.shape())?;
        let stop = control.interrupt();
        let interrupted = || stop.is_raised();
        let rows = self
            .sizes(&models, &interrupted)
            .by_likelihood(entry, &selection)?;
        Table::of(rows, &*data)
    }

    /// Scores by bounds of the evidence.
    pub(crate) fn by_bound(
        self,
        entry: &ModelEntry,
        data: View<'_, f64>,
        control: &Control,
    ) -> Result<Table, Refused> {
        let data = data.tensor()?;
        let models = self.models(entry, data.shape())?;
        let stop = control.interrupt();
        let interrupted = || stop.is_raised();
        let rows = self.sizes(&models, &interrupted).by_bound(&*data)?;
        Table::of(rows, &*data)
    }

    /// Cross-validated scores, and whether the data are counts.
    pub(crate) fn cross_validated(
        self,
        entry: &ModelEntry,
        data: View<'_, f64>,
        folds: &CrossValidation,
        control: &Control,
    ) -> Result<(Validated, bool), Refused> {
        let data = data.tensor()?;
        let models = self.models(entry, data.shape())?;
        let stop = control.interrupt();
        let interrupted = || stop.is_raised();
        let sizes = self.sizes(&models, &interrupted);
        let found = sizes.cross_validated(entry, (&*data, folds), &BTreeMap::new())?;
        Ok((found, data.summary().integers))
    }
}
