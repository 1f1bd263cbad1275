//! The models: what is done with each besides fitting it.

use nalgebra::DMatrix;
use plca::dist::draw_poisson;
use plca::em::{
    Nmf, NmfState, Online, OnlineState, Plca, PlcaState, PlcaVb, PlcaVbState, Plsa, PlsaState,
    PlsaVb, PlsaVbState, Shifted, ShiftedState, Streamed, Transformed, TransformedState,
    effective_parameters, nominal_parameters, sample_counts, shifted_parameters,
};
use plca::fit::{
    Explained, Factored, FitError, Interrupt, Model, Parameters, Reconstruct, State, Transform,
    explain::Each, setting::SettingValue,
};
use plca::io::{ModelFile, room};
use plca::l2::{Ntf, NtfState, Pntf, PntfState};
use plca::priors::{Penalty, PriorSpec};
use plca::skellam::{
    Replicates, ShiftedSnmf, ShiftedSnmfState, ShiftedSnmfVb, ShiftedSnmfVbState, SignedCp,
    SignedCpState, SignedCpVb, SignedCpVbState, Snmf, SnmfState, SnmfVb, SnmfVbState,
};
use plca::tensor::Data;
use plca_run::{AnyModel, Request};

use crate::data::Scalar;
use crate::error::{Refused, wrong};
use crate::options::{Named, Options, Setting};

/// The score of a number of components, smaller is better, and what it follows from.
pub(crate) struct Row {
    pub(crate) score: f64,
    pub(crate) ln_lik: f64,
    pub(crate) parameters: usize,
}

/// What is known of a model.
pub(crate) trait Kind: Sized {
    /// Its state.
    type State<T: Scalar>: State<Scalar = T> + Reconstruct;

    /// The model itself.
    type Model<T: Scalar>: Model<T, State = Self::State<T>> + Clone + 'static;

    /// Its name.
    const NAME: &'static str = <Self::State<f64> as State>::NAME;

    /// Asks for penalties on blocks that are not priors in Python; default: it has none.
    fn penalise(request: &mut Request, penalties: &Named) -> Result<(), Refused> {
        let _ = (request, penalties);
        let name = Self::NAME;
        wrong(format!("the model {name} has no setting `penalty`"))
    }

    /// New data under a state, along this mode where the model leaves a choice.
    fn explain<T: Scalar>(
        options: &Options,
        state: &Self::State<T>,
        data: &dyn Data<T>,
        along: usize,
        how: Transform,
    ) -> Result<Explained<Parameters<T>>, Refused>;

    /// The same of every observation as a batch of one, of models that normalise over a batch; default: the model explains each alone anyway.
    fn explain_each<T: Scalar>(
        options: &Options,
        state: &Self::State<T>,
        data: &dyn Data<T>,
        along: usize,
        how: &Transform,
    ) -> Result<Option<Each>, Refused> {
        let _ = (options, state, data, along, how);
        Ok(None)
    }

    /// How many parameters it has, for models whose likelihood chooses the number of components; default: it has none.
    fn parameters(model: &Self::Model<f64>, shape: &[usize]) -> Result<Option<usize>, Refused> {
        let _ = (model, shape);
        Ok(None)
    }

    /// The score of a fit by the bound of its evidence, smaller is better; default: it has none.
    fn evidence(found: Bound<'_, Self>) -> Result<Row, Refused> {
        let _ = found;
        let name = Self::NAME;
        wrong(format!(
            "the model {name} has no bound of its evidence to choose components by"
        ))
    }

    /// Draws from the law of a state; default: it has none.
    fn sample(
        options: &Options,
        state: &Self::State<f64>,
        draws: Option<u64>,
        seed: u64,
    ) -> Result<Drawn, Refused> {
        let _ = (options, state, draws, seed);
        let name = Self::NAME;
        wrong(format!("the model {name} has no law to draw from"))
    }

    /// Learns from one more batch; default: no model of streams.
    fn learn<T: Scalar>(options: &Options, lesson: Lesson<'_, T>) -> Result<Learnt<T>, Refused> {
        let _ = (options, lesson);
        let name = Self::NAME;
        wrong(format!("the model {name} does not learn batch by batch"))
    }
}

/// The model that is asked for, with this number of components and for data of this shape.
pub(crate) fn made<K: Kind>(
    options: &Options,
    k: usize,
    shape: &[usize],
) -> Result<Box<dyn AnyModel>, Refused> {
    let Some(entry) = plca_run::model(K::NAME) else {
        return wrong(format!("no model is called '{}'", K::NAME));
    };
    let request = options.request(entry, K::penalise, k, shape)?;
    Ok(entry.build(&request, shape)?)
}

/// The same as the model that it is.
pub(crate) fn build<K: Kind, T: Scalar>(
    options: &Options,
    k: usize,
    shape: &[usize],
) -> Result<K::Model<T>, Refused> {
    match made::<K>(options, k, shape)?.any().downcast_ref() {
        Some(model) => Ok(K::Model::<T>::clone(model)),
        None => wrong(format!("the model {} is another one", K::NAME)),
    }
}

/// A fit whose objective is a bound of the evidence.
pub(crate) struct Bound<'a, K: Kind> {
    pub(crate) model: &'a K::Model<f64>,
    pub(crate) state: &'a K::State<f64>,
    pub(crate) objective: f64,
    pub(crate) data: &'a dyn Data<f64>,
}

/// What was drawn from the law of a state.
pub(crate) enum Drawn {
    /// Events, of which every index is listed.
    Events(Vec<u32>),
    /// A number for every cell.
    Cells(DMatrix<f64>),
}

/// Events of a model of sums of products: this number, or a Poisson number with the sum of the model as its mean.
fn events<S: Factored<Scalar = f64>>(
    state: &S,
    draws: Option<u64>,
    seed: u64,
) -> Result<Drawn, Refused> {
    let rng = &mut plca::seed(seed);
    let refused = |e: &dyn std::fmt::Display| Refused::Value(format!("`n`: {e}"));
    state.with_scaled(|cp, scale| {
        let draws = match draws {
            Some(draws) => draws,
            None => draw_poisson(scale * cp.mass(), rng).map_err(|e| refused(&e))?,
        };
        let draws = usize::try_from(draws).unwrap_or(usize::MAX);
        room::<u32>(&[draws, cp.factors.len()])
            .map_err(|e| Refused::Memory(format!("`n` is {draws}: {e}")))?;
        let events = sample_counts(cp, draws, rng).map_err(|e| refused(&e))?;
        Ok(Drawn::Events(events.indices))
    })
}

/// The sum of this number of matrices of a Skellam model; one by default.
fn matrices(
    state: &SnmfState<f64>,
    replicates: Replicates,
    draws: Option<u64>,
    seed: u64,
) -> Result<Drawn, Refused> {
    let drawn = state.sample(draws.unwrap_or(1), replicates, &mut plca::seed(seed))?;
    Ok(Drawn::Cells(drawn))
}

/// A batch, and what the ones before have taught.
pub(crate) struct Lesson<'a, T: Scalar> {
    pub(crate) components: usize,
    pub(crate) seed: u64,
    pub(crate) known: Option<OnlineState<T>>,
    /// The amount of all data, where it is known.
    pub(crate) total: Option<f64>,
    /// Whether the stream began with a random start.
    pub(crate) drawn: bool,
    pub(crate) data: &'a dyn Data<T>,
    pub(crate) interrupt: Interrupt,
}

/// What is known after a batch, and the state of the batch itself.
pub(crate) struct Learnt<T: Scalar> {
    pub(crate) known: OnlineState<T>,
    pub(crate) batch: ModelFile,
    pub(crate) ln_lik: f64,
    pub(crate) iterations: usize,
    pub(crate) restored: Vec<String>,
}

/// Learns from a batch.
fn learn<T: Scalar, M: Streamed<T>>(model: M, lesson: Lesson<'_, T>) -> Result<Learnt<T>, Refused> {
    let along = model.streamed(lesson.data.shape().len());
    let mut learner = Online::new(model).interrupt(lesson.interrupt);
    learner = learner.drawn(lesson.drawn);
    if let Some(total) = lesson.total {
        learner = learner.total(total);
    }
    let mut known = match lesson.known {
        Some(known) => known,
        None => {
            let mut sizes = lesson.data.shape().to_vec();
            sizes.remove(along);
            learner.init(&sizes, &mut plca::seed(lesson.seed))?
        }
    };
    let batch = learner.partial_fit(&mut known, lesson.data)?;
    Ok(Learnt {
        known,
        batch: ModelFile::of(&batch.state),
        ln_lik: batch.ln_lik,
        iterations: batch.iterations,
        restored: batch.restored,
    })
}

/// [EXT 3] ELBO + ln K!, of which smaller negatives are better.
fn row(
    k: usize,
    shape: &[usize],
    objective: f64,
    ln_lik: Result<f64, FitError>,
) -> Result<Row, Refused> {
    let labels: f64 = (1..=k).map(|k| (k as f64).ln()).sum();
    Ok(Row {
        score: -(objective + labels),
        ln_lik: ln_lik?,
        parameters: nominal_parameters(shape, k),
    })
}

/// Something to do with a model, whichever it is.
pub(crate) trait Job<T: Scalar> {
    type Output;
    fn run<K: Kind>(self) -> Result<Self::Output, Refused>;
}

macro_rules! models {
    ($($kind:ident),* $(,)?) => {
        /// Does something with the model of a name.
        pub(crate) fn with<T: Scalar, J: Job<T>>(name: &str, job: J) -> Result<J::Output, Refused> {
            $(if name == <$kind as Kind>::NAME {
                return job.run::<$kind>();
            })*
            let known = [$(<$kind as Kind>::NAME),*].join(", ");
            wrong(format!("no model is called '{name}', expected one of {known}"))
        }
    };
}

models! {
    Nmf,
    Plsa,
    Plca,
    Shifted,
    Snmf,
    SnmfVb,
    Pntf,
    Ntf,
    PlcaVb,
    PlsaVb,
    Transformed,
    ShiftedSnmf,
    ShiftedSnmfVb,
    SignedCp,
    SignedCpVb,
}

/// The types of a model.
macro_rules! types {
    ($state:ident) => {
        type State<T: Scalar> = $state<T>;
        type Model<T: Scalar> = Self;
    };
}

/// Of models that explain new data along any of their modes.
fn along(how: Transform, mode: usize) -> Transform {
    how.along(mode)
}

/// Of those that know how new data lie.
fn whole(how: Transform, _: usize) -> Transform {
    how
}

/// States that explain new data; models have a say in nothing.
macro_rules! explains {
    ($lie:ident) => {
        fn explain<T: Scalar>(
            options: &Options,
            state: &Self::State<T>,
            data: &dyn Data<T>,
            mode: usize,
            how: Transform,
        ) -> Result<Explained<Parameters<T>>, Refused> {
            options.none(Self::NAME)?;
            Ok(state.transform(data, &$lie(how, mode))?.untyped())
        }
    };
}

/// Models that explain new data by their own settings, too.
macro_rules! explains_by_model {
    ($lie:ident) => {
        fn explain<T: Scalar>(
            options: &Options,
            state: &Self::State<T>,
            data: &dyn Data<T>,
            mode: usize,
            how: Transform,
        ) -> Result<Explained<Parameters<T>>, Refused> {
            let model = build::<Self, T>(options, state.components(), data.shape())?;
            let how = $lie(how, mode);
            Ok(model.transform(state, data, &how)?.untyped())
        }
    };
}

/// The same of every observation as a batch of one.
macro_rules! explains_each_by_model {
    () => {
        fn explain_each<T: Scalar>(
            options: &Options,
            state: &Self::State<T>,
            data: &dyn Data<T>,
            mode: usize,
            how: &Transform,
        ) -> Result<Option<Each>, Refused> {
            let model = build::<Self, T>(options, state.components(), data.shape())?;
            let how = how.clone().along(mode);
            Ok(Some(model.transform_each(state, data, &how)?))
        }
    };
}

/// Models that learn batch by batch.
macro_rules! learns {
    () => {
        fn learn<T: Scalar>(
            options: &Options,
            lesson: Lesson<'_, T>,
        ) -> Result<Learnt<T>, Refused> {
            let model = build::<Self, T>(options, lesson.components, lesson.data.shape())?;
            learn(model, lesson)
        }
    };
}

/// Models whose law, that of their means where they are posteriors, is one of events.
macro_rules! samples_events {
    ($($means:ident)?) => {
        fn sample(
            options: &Options,
            state: &Self::State<f64>,
            draws: Option<u64>,
            seed: u64,
        ) -> Result<Drawn, Refused> {
            options.none(Self::NAME)?;
            $(let state = &state.$means()?;)?
            events(state, draws, seed)
        }
    };
}

impl Kind for Nmf {
    types!(NmfState);
    learns!();
    explains_by_model!(along);
    samples_events!();
}

impl Kind for Plsa {
    types!(PlsaState);
    learns!();
    explains!(whole);
    samples_events!();
}

impl Kind for Plca {
    types!(PlcaState);
    learns!();
    explains!(along);
    samples_events!();

    fn parameters(model: &Self, shape: &[usize]) -> Result<Option<usize>, Refused> {
        Ok(Some(effective_parameters(shape, model.components)))
    }

    fn explain_each<T: Scalar>(
        options: &Options,
        state: &Self::State<T>,
        data: &dyn Data<T>,
        mode: usize,
        how: &Transform,
    ) -> Result<Option<Each>, Refused> {
        options.none(Self::NAME)?;
        Ok(Some(state.transform_each(data, &how.clone().along(mode))?))
    }
}

impl Kind for PlcaVb {
    types!(PlcaVbState);
    explains_by_model!(along);
    explains_each_by_model!();
    samples_events!(means);

    fn evidence(found: Bound<'_, Self>) -> Result<Row, Refused> {
        let (k, means) = (found.model.components, found.state.means()?);
        let ln_lik = Plca::new(k)
            .bind(found.data)?
            .likelihood(means.parameters());
        row(k, found.data.shape(), found.objective, ln_lik)
    }
}

impl Kind for PlsaVb {
    types!(PlsaVbState);
    learns!();
    explains_by_model!(along);
    samples_events!(means);

    fn evidence(found: Bound<'_, Self>) -> Result<Row, Refused> {
        let (k, means) = (found.model.components, found.state.means()?);
        let plsa = Plsa::new(k).given(found.state.given());
        let ln_lik = plsa.bind(found.data)?.likelihood(means.parameters());
        row(k, found.data.shape(), found.objective, ln_lik)
    }
}

impl Kind for Shifted {
    types!(ShiftedState);
    explains!(whole);

    fn parameters(model: &Self, shape: &[usize]) -> Result<Option<usize>, Refused> {
        let geometry = model.geometry(shape)?;
        let cells = [geometry.kernel_cells(), geometry.impulse_cells()];
        let all = shape.iter().fold(1usize, |all, &n| all.saturating_mul(n));
        // Never more than the cells less one.
        let parameters = shifted_parameters(cells, model.components, false);
        Ok(Some(parameters.min(all - 1)))
    }
}

impl Kind for Transformed {
    types!(TransformedState);
    explains!(whole);
}

impl Kind for Pntf {
    types!(PntfState);
    explains!(along);

    fn penalise(request: &mut Request, penalties: &Named) -> Result<(), Refused> {
        let weight = |(name, mu): (&String, &Setting)| match mu.number() {
            // All digits that there are.
            Some(mu) => Ok(SettingValue::Text(format!("{name}={mu}"))),
            None => wrong(format!("`sparsity` of '{name}': expected a number")),
        };
        let weights = penalties.iter().map(weight).collect::<Result<_, _>>()?;
        request.options.set("sparsity", SettingValue::List(weights));
        Ok(())
    }
}

impl Kind for Ntf {
    types!(NtfState);
    explains_by_model!(along);

    fn penalise(request: &mut Request, penalties: &Named) -> Result<(), Refused> {
        for (name, weights) in penalties {
            let refused = |what: String| Refused::Value(format!("`penalty` of '{name}': {what}"));
            let Some(&[linear, quadratic]) = weights.list().as_deref() else {
                return Err(refused("expected two numbers".into()));
            };
            let penalty = Penalty::new(linear, quadratic).map_err(|e| refused(e.to_string()))?;
            request
                .priors
                .push((name.clone(), PriorSpec::from(penalty)));
        }
        Ok(())
    }
}

impl Kind for Snmf {
    types!(SnmfState);
    explains_by_model!(along);

    fn sample(
        options: &Options,
        state: &Self::State<f64>,
        draws: Option<u64>,
        seed: u64,
    ) -> Result<Drawn, Refused> {
        let model = build::<Self, f64>(options, state.components(), &state.shape())?;
        matrices(state, model.replicates, draws, seed)
    }
}

impl Kind for SnmfVb {
    types!(SnmfVbState);
    explains_by_model!(along);

    fn evidence(found: Bound<'_, Self>) -> Result<Row, Refused> {
        let (model, shape) = (found.model, found.data.shape());
        let k = model.components;
        let snmf = Snmf::new(k)
            .replicates(model.replicates)
            .real_data(model.real_data);
        let means = found.state.means()?;
        Ok(Row {
            score: -model.score(found.objective),
            ln_lik: snmf.bind(found.data)?.likelihood(means.parameters())?,
            parameters: k * (2 * shape[0] - 1 + shape[1]),
        })
    }

    fn sample(
        options: &Options,
        state: &Self::State<f64>,
        draws: Option<u64>,
        seed: u64,
    ) -> Result<Drawn, Refused> {
        let model = build::<Self, f64>(options, state.components(), &state.shape())?;
        matrices(&state.means()?, model.replicates, draws, seed)
    }
}

impl Kind for ShiftedSnmf {
    types!(ShiftedSnmfState);
    explains_by_model!(whole);
}

impl Kind for ShiftedSnmfVb {
    types!(ShiftedSnmfVbState);
    explains_by_model!(whole);
}

impl Kind for SignedCp {
    types!(SignedCpState);
    explains_by_model!(along);
    explains_each_by_model!();
}

impl Kind for SignedCpVb {
    types!(SignedCpVbState);
    explains_by_model!(along);
    explains_each_by_model!();
}
