//! What is done with a model: fit it, explain new data, reconstruct.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use plca::em::{
    Criterion, CrossValidation, NotCounts, OfFold, OnlineState, RankTable, Selection, not_counts,
};
use plca::fit::{
    Fill, Fit, FitError, Impossible, Init, Interrupt, Model, Reconstruct, Run, Solver, Status,
    Stop, Transform, far_hidden_cell,
};
use plca::io::{Array, ModelFile, block_of, room};
use plca::tensor::parallel::apart;
use plca::tensor::{Data, Order, Real, unobserved};

use crate::data::{Scalar, View};
use crate::error::{Refused, wrong};
use crate::models::{Bound, Drawn, Job, Kind, Learnt, Lesson, Row, build, made};
use crate::options::Options;
use crate::starts::{Fitted, Starts};
use crate::supervise::Control;

/// Arrays by name, in C order.
pub(crate) type Arrays = BTreeMap<String, Array<f64>>;

/// What says when a run ends, by name.
pub(crate) fn stop(options: &Options, default: Stop) -> Result<Stop, Refused> {
    let known = ["max_iter", "tol", "residual_tol", "check_every"];
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

impl<T: Scalar> Job<T> for Fitting<'_, T> {
    type Output = Fitted;

    fn run<K: Kind>(self) -> Result<Fitted, Refused> {
        let data = self.data.tensor()?;
        reasonable(self.components, data.shape())?;
        let model = made::<K>(&self.options, self.components, data.shape())?;
        let mut init = self.init;
        for (name, array) in &self.start {
            let block = block_of::<K::State<T>>(name, array).map_err(Refused::Value)?;
            init = init.block(name.as_str(), block.map(T::lit));
        }
        let starts = Starts {
            init,
            seed: self.seed,
            count: self.starts,
            solver: self.solver,
            stop: self.stop,
            likelihood: self.likelihood,
            control: self.control,
        };
        let mut fitted = starts.best::<K::State<T>>(T::of(&*model), &*data)?;
        fitted.far = far_hidden_cell(&*data, || {
            let state = state::<K, T>(fitted.file.clone())?;
            let cells = state.reconstruct()?.into_parts().1;
            Ok::<_, Refused>(cells.into_iter().map(Real::to_f64).collect())
        })?;
        if !data.is_complete() {
            fitted.unobserved = unobserved(&*data)?;
        }
        Ok(fitted)
    }
}

/// Fits from several starts that share nothing, of which one block is kept.
pub(crate) struct Sweeping<'a, T: Scalar> {
    pub(crate) data: View<'a, T>,
    pub(crate) components: usize,
    pub(crate) options: Options,
    pub(crate) block: String,
    pub(crate) init: Init<T>,
    pub(crate) seed: u64,
    pub(crate) starts: u32,
    pub(crate) solver: Solver,
    pub(crate) stop: Stop,
    pub(crate) control: &'a Control,
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

impl<T: Scalar> Job<T> for Sweeping<'_, T> {
    type Output = Swept;

    fn run<K: Kind>(self) -> Result<Swept, Refused> {
        let data = self.data.tensor()?;
        reasonable(self.components, data.shape())?;
        let model = made::<K>(&self.options, self.components, data.shape())?;
        let one = |start: usize| -> Result<_, Refused> {
            // Each of thousands would still make an iteration.
            if self.control.interrupt().is_raised() {
                return wrong("interrupted");
            }
            // Start r is that of the command: stream r of the seed.
            let mut rng = plca::seed(self.seed);
            rng.set_stream(start as u64);
            let run = T::of(&*model).on(&*data)?;
            let run = run.solver(self.solver).stop(self.stop.clone());
            let run = run.observe(self.control.interrupt());
            let fit = run.run(self.init.clone(), &mut rng)?;
            let (objective, iterations) = (fit.objective(), fit.iterations() as u64);
            if !objective.is_finite() {
                return wrong(format!(
                    "X: the objective of start {start} became {objective}"
                ));
            }
            let state = fit.into_state().widened();
            match state.block(&self.block) {
                Some(block) => Ok((block.clone(), objective, iterations)),
                None => wrong(format!("the model has no block '{}'", self.block)),
            }
        };
        let found = apart(self.starts as usize, one).into_iter();
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let columns = found.iter().flat_map(|(block, ..)| block.iter().copied());
        Ok(Swept {
            columns: columns.collect(),
            size: found.first().map_or(0, |(block, ..)| block.nrows()),
            objectives: found.iter().map(|(_, objective, _)| *objective).collect(),
            iterations: found.iter().map(|(.., iterations)| *iterations).collect(),
        })
    }
}

/// New data under a learnt state.
pub(crate) struct Explaining<'a, T> {
    pub(crate) data: View<'a, T>,
    pub(crate) learnt: ModelFile,
    pub(crate) options: Options,
    pub(crate) along: usize,
    /// Whether every observation is a batch of one.
    pub(crate) each: bool,
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

    fn run<K: Kind>(self) -> Result<Found, Refused> {
        let data = self.data.tensor()?;
        let state = state::<K, T>(self.learnt)?;
        let how = Transform::default().impossible(Impossible::Drop);
        let how = how.solver(self.solver).stop(self.stop);
        let how = how.interrupt(self.interrupt);
        if self.each
            && let Some(each) = K::explain_each(&self.options, &state, &*data, self.along, &how)?
        {
            let rows = each.blocks.into_iter();
            let rows = rows.map(|(name, rows)| {
                let shape = vec![rows.nrows(), rows.ncols()];
                (name, Array::new(shape, rows.transpose().data.into()))
            });
            return Ok(Found {
                arrays: rows.collect(),
                gap: each.gap,
                dropped: each.dropped,
                empty: each.empty,
                objective: each.objective,
                iterations: each.ended.iterations,
                status: each.ended.status,
                total: data.total(),
                observed: observed(&*data)?,
            });
        }
        let explained = K::explain(&self.options, &state, &*data, self.along, how)?;
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

    fn run<K: Kind>(self) -> Result<(Vec<usize>, Drawn), Refused> {
        let state = state::<K, f64>(self.learnt)?;
        let drawn = K::sample(&self.options, &state, self.draws, self.seed)?;
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
    pub(crate) total: Option<f64>,
    pub(crate) drawn: bool,
    pub(crate) interrupt: Interrupt,
}

impl<T: Scalar> Job<T> for Learning<'_, T> {
    type Output = Learnt<T>;

    fn run<K: Kind>(self) -> Result<Learnt<T>, Refused> {
        let data = self.data.tensor()?;
        reasonable(self.components, data.shape())?;
        let lesson = Lesson {
            components: self.components,
            seed: self.seed,
            known: self.known,
            total: self.total,
            drawn: self.drawn,
            data: &*data,
            interrupt: self.interrupt,
        };
        K::learn::<T>(&self.options, lesson)
    }
}

/// Random numbers of what is held out, as of the command, and how much that is.
const HELD_OUT_STREAM: u64 = u64::MAX;
const SHARE: f64 = 0.1;

/// Fits with several numbers of components, to be compared.
pub(crate) struct Choosing<'a> {
    pub(crate) data: View<'a, f64>,
    pub(crate) components: Vec<usize>,
    /// Of each number of components.
    pub(crate) options: Vec<Options>,
    pub(crate) seed: u64,
    pub(crate) starts: u32,
    pub(crate) solver: Solver,
    pub(crate) stop: Stop,
    pub(crate) control: &'a Control,
}

impl Choosing<'_> {
    /// The model of a kind with this number of components, for data of a shape.
    fn model<K: Kind>(&self, k: usize, shape: &[usize]) -> Result<K::Model<f64>, Refused> {
        let at = self.components.iter().position(|&other| other == k);
        build::<K, f64>(&self.options[at.unwrap_or(0)], k, shape)
    }
}

/// The scores, and whether the data are counts.
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    pub(crate) counts: bool,
    /// Why whole numbers are hardly counts.
    pub(crate) doubt: Option<NotCounts>,
}

/// Scores by likelihoods.
pub(crate) struct Likely<'a>(pub(crate) Choosing<'a>, pub(crate) Criterion);

impl Job<f64> for Likely<'_> {
    type Output = Table;

    fn run<K: Kind>(self) -> Result<Table, Refused> {
        let Self(choosing, criterion) = self;
        let data = choosing.data.tensor()?;
        let mut rng = plca::seed(choosing.seed);
        rng.set_stream(HELD_OUT_STREAM);
        let selection = Selection::new(&*data, criterion, SHARE, rng);
        let selection = selection.map_err(|e| Refused::Value(format!("X: {e}")))?;
        let starts = Starts {
            init: Init::default(),
            seed: choosing.seed,
            count: choosing.starts,
            solver: choosing.solver,
            stop: choosing.stop.clone(),
            likelihood: false,
            control: choosing.control,
        };
        let row = |&k: &usize| {
            reasonable(k, data.shape())?;
            let model = choosing.model::<K>(k, data.shape())?;
            let Some(parameters) = K::parameters(&model, data.shape())? else {
                let name = K::NAME;
                return wrong(format!(
                    "the model {name} has no likelihood to choose components by"
                ));
            };
            let train = selection.train();
            let fitted = starts.best::<K::State<f64>>(&model, train)?;
            if choosing.control.interrupt().is_raised() {
                return Err(FitError::Interrupted.into());
            }
            let (ln_lik, total) = (fitted.outcome.objective, train.total());
            let state = state::<K, f64>(fitted.file)?;
            let density = |index: &[usize]| state.cell(index) / total;
            Ok(Row {
                score: selection.score(ln_lik, parameters, &density)?,
                ln_lik,
                parameters,
            })
        };
        let rows = choosing.components.iter().map(row);
        Ok(Table {
            rows: rows.collect::<Result<_, _>>()?,
            counts: data.summary().integers,
            doubt: not_counts(&*data)?,
        })
    }
}

/// Cross-validated scores.
pub(crate) struct Validating<'a>(pub(crate) Choosing<'a>, pub(crate) CrossValidation);

/// Cross-validated scores, the seconds that the fits of every number of components took, and whether the data are counts.
pub(crate) struct Validated {
    pub(crate) table: RankTable,
    pub(crate) seconds: BTreeMap<usize, f64>,
    pub(crate) counts: bool,
}

impl Job<f64> for Validating<'_> {
    type Output = Validated;

    fn run<K: Kind>(self) -> Result<Validated, Refused> {
        let Self(choosing, settings) = self;
        let data = choosing.data.tensor()?;
        let shape = data.shape();
        let make = |k: usize| {
            reasonable(k, shape)?;
            choosing.model::<K>(k, shape)
        };
        let seconds = Mutex::new(BTreeMap::new());
        let interrupt = choosing.control.interrupt();
        let fit = |fold: OfFold, run: Run<'_, K::State<f64>>| -> Result<Fit<_>, Refused> {
            let begun = Instant::now();
            let run = run.solver(choosing.solver).stop(choosing.stop.clone());
            let run = run.observe(interrupt.clone());
            let fit = run.run(Init::default(), &mut fold.draws())?;
            if interrupt.is_raised() {
                return Err(FitError::Interrupted.into());
            }
            let mut seconds = seconds.lock().unwrap_or_else(PoisonError::into_inner);
            *seconds.entry(fold.rank).or_insert(0.0) += begun.elapsed().as_secs_f64();
            Ok(fit)
        };
        // Ranks that are not fitted are looked at too.
        for &k in &choosing.components {
            make(k)?;
        }
        let table = settings.run(&*data, &choosing.components, &make, &fit)?;
        Ok(Validated {
            table,
            seconds: seconds.into_inner().unwrap_or_else(PoisonError::into_inner),
            counts: data.summary().integers,
        })
    }
}

/// Scores by bounds of the evidence.
pub(crate) struct Evident<'a>(pub(crate) Choosing<'a>);

impl Job<f64> for Evident<'_> {
    type Output = Table;

    fn run<K: Kind>(self) -> Result<Table, Refused> {
        let Self(choosing) = self;
        let data = choosing.data.tensor()?;
        // As of the command: one start after the other, of all numbers of components, from one stream.
        let mut rng = plca::seed(choosing.seed);
        let mut rows = Vec::new();
        for &k in &choosing.components {
            reasonable(k, data.shape())?;
            let model = choosing.model::<K>(k, data.shape())?;
            let run = Model::on(&model, &*data)?;
            let run = run.solver(choosing.solver).stop(choosing.stop.clone());
            let run = run.restarts(choosing.starts);
            let run = run.observe(choosing.control.interrupt());
            let fit = run.run(Init::default(), &mut rng)?;
            if choosing.control.interrupt().is_raised() {
                return Err(FitError::Interrupted.into());
            }
            rows.push(K::evidence(Bound {
                model: &model,
                state: fit.state(),
                objective: fit.objective(),
                data: &*data,
            })?);
        }
        Ok(Table {
            rows,
            counts: data.summary().integers,
            doubt: not_counts(&*data)?,
        })
    }
}
