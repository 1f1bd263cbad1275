//! The models, each an entry of one table: how it is made of its settings, and how it explains new data.

use nalgebra::DMatrix;
use plca::dist::draw_poisson;
use plca::em::{
    Given, Likelihood, Nmf, NmfState, Online, OnlineState, Plca, PlcaState, Plsa, PlsaState,
    Shifted, ShiftedState, Streamed, Support, Update, effective_parameters, sample_counts,
    shifted_parameters,
};
use plca::fit::shards::Sharded;
use plca::fit::{
    Anneal, AnyModel, Each, Explained, Factored, Interrupt, Model, Parameters, Reconstruct,
    Settings, State, Transform,
};
use plca::io::{ModelFile, room};
use plca::l2::{Ntf, NtfState, Pntf, PntfState};
use plca::priors::{Dirichlet, Entries, Penalty, PriorSpec, Priors, RatePriors};
use plca::tensor::Data;

use crate::data::Scalar;
use crate::error::{Refused, wrong};
use crate::options::{Options, Setting};
use crate::run::Row;

/// What a model is made of: its settings, the number of components, and the shape of the data.
pub(crate) struct Asked<'a> {
    pub(crate) options: &'a mut Options,
    pub(crate) k: usize,
    pub(crate) shape: &'a [usize],
}

/// What is known of a model.
pub(crate) trait Kind: Sized {
    /// Its state.
    type State<T: Scalar>: State<Scalar = T> + Reconstruct;

    /// The model itself.
    type Model<T: Scalar>: Model<T, State = Self::State<T>> + AnyModel<T> + 'static;

    /// The model that is asked for.
    fn build<T: Scalar>(asked: Asked<'_>) -> Result<Self::Model<T>, Refused>;

    /// New data under a state, along this mode where the model leaves a choice.
    fn explain<T: Scalar>(
        options: &mut Options,
        state: &Self::State<T>,
        data: &dyn Data<T>,
        along: usize,
        how: Transform,
    ) -> Result<Explained<Parameters<T>>, Refused>;

    /// The same of every observation as a batch of one, of models that normalise over a batch; default: the model explains each alone anyway.
    fn explain_each<T: Scalar>(
        options: &mut Options,
        state: &Self::State<T>,
        data: &dyn Data<T>,
        along: usize,
        how: &Transform,
    ) -> Result<Option<Each>, Refused> {
        let _ = (options, state, data, along, how);
        Ok(None)
    }

    /// The model as one of data in shards; default: it is none.
    fn sharded<T: Scalar>(model: &Self::Model<T>) -> Option<&dyn Sharded<T>> {
        let _ = model;
        None
    }

    /// How many parameters it has, for models whose likelihood chooses the number of components; default: it has none.
    fn parameters(
        model: &Self::Model<f64>,
        k: usize,
        shape: &[usize],
    ) -> Result<Option<usize>, Refused> {
        let _ = (model, k, shape);
        Ok(None)
    }

    /// The score of a fit by the bound of its evidence, smaller is better; default: it has none.
    fn evidence(found: Bound<'_, Self>) -> Result<Row, Refused> {
        let _ = found;
        let name = <Self::State<f64> as State>::NAME;
        wrong(format!(
            "the model {name} has no bound of its evidence to choose components by"
        ))
    }

    /// Draws from the law of a state; default: it has none.
    fn sample(
        options: &mut Options,
        state: &Self::State<f64>,
        draws: Option<u64>,
        seed: u64,
    ) -> Result<Drawn, Refused> {
        let _ = (options, state, draws, seed);
        let name = <Self::State<f64> as State>::NAME;
        wrong(format!("the model {name} has no law to draw from"))
    }

    /// Learns from one more batch; default: no model of streams.
    fn learn<T: Scalar>(
        options: &mut Options,
        lesson: Lesson<'_, T>,
    ) -> Result<Learnt<T>, Refused> {
        let _ = (options, lesson);
        let name = <Self::State<T> as State>::NAME;
        wrong(format!("the model {name} does not learn batch by batch"))
    }
}

/// A fit whose objective is a bound of the evidence.
pub(crate) struct Bound<'a, K: Kind> {
    pub(crate) model: &'a K::Model<f64>,
    pub(crate) state: &'a K::State<f64>,
    pub(crate) objective: f64,
    pub(crate) options: &'a mut Options,
    pub(crate) k: usize,
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

/// Models whose law is one of events.
macro_rules! samples_events {
    () => {
        fn sample(
            _: &mut Options,
            state: &Self::State<f64>,
            draws: Option<u64>,
            seed: u64,
        ) -> Result<Drawn, Refused> {
            events(state, draws, seed)
        }
    };
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

/// Something to do with a model, whichever it is.
pub(crate) trait Job<T: Scalar> {
    type Output;
    fn run<K: Kind>(self) -> Result<Self::Output, Refused>;
}

macro_rules! models {
    ($($kind:ident),* $(,)?) => {
        /// Does something with the model of a name.
        pub(crate) fn with<T: Scalar, J: Job<T>>(name: &str, job: J) -> Result<J::Output, Refused> {
            $(if name == <<$kind as Kind>::State<T> as State>::NAME {
                return job.run::<$kind>();
            })*
            let known = [$(<<$kind as Kind>::State<T> as State>::NAME),*].join(", ");
            wrong(format!("no model is called '{name}', expected one of {known}"))
        }
    };
}

models! {
    KlNmf,
    Asymmetric,
    Symmetric,
    ShiftInvariant,
    Skellam,
    SkellamVb,
    OnSimplex,
    LeeSeung,
    SymmetricVb,
    AsymmetricVb,
    TransformInvariant,
    ShiftedSkellam,
    ShiftedSkellamVb,
    SignedTensor,
    SignedTensorVb,
}

/// A model with what is frozen, and with the priors of its blocks.
macro_rules! with_frozen {
    ($model_:ident, $options:ident) => {
        for (name, kept) in $options.frozen()? {
            $model_ = match kept {
                $crate::options::Kept::Whole => $model_.freeze(name),
                $crate::options::Kept::Components(components) => {
                    $model_.freeze_components(name, components)
                }
                $crate::options::Kept::Entries(flags) => {
                    let flags = ::plca::io::block_of::<Self::State<T>>(&name, &flags)
                        .map_err($crate::error::Refused::Value)?;
                    $model_.freeze_entries(name, flags.map(|flag| flag != 0.0))
                }
            };
        }
    };
}

macro_rules! with_priors {
    ($model_:ident, $options:ident, $blocks:expr) => {
        let blocks: Vec<(String, (usize, usize), Layout)> = $blocks;
        for (name, setting) in $options.named("prior")? {
            let Some((_, size, layout)) = blocks.iter().find(|(other, ..)| *other == name) else {
                let known: Vec<_> = blocks.iter().map(|(name, ..)| name.as_str()).collect();
                let known = known.join(", ");
                return wrong(format!(
                    "`prior`: no block '{name}' takes one, expected {known}"
                ));
            };
            let refused = |e| Refused::Value(format!("`prior` of '{name}': {e}"));
            $model_ = match &setting {
                Setting::Text(text) => {
                    let known = Priors::<T>::parse(text, *size);
                    let prior = known.and_then(|_| text.parse::<PriorSpec>());
                    $model_.prior(name.as_str(), prior.map_err(|e| refused(e.to_string()))?)
                }
                Setting::Array(array) => {
                    let block = layout.block(array, *size).map_err(refused)?;
                    let prior = Dirichlet::per_entry(block);
                    let prior = prior.map_err(|e| refused(e.to_string()))?;
                    $model_.prior(name.as_str(), prior)
                }
                _ => return Err(refused("expected a text or an array".into())),
            };
        }
    };
}

/// A model with the priors of its blocks of rates, each a text.
macro_rules! with_rate_priors {
    ($model_:ident, $options:ident, $blocks:expr) => {
        let blocks: [(&str, (usize, usize)); 2] = $blocks;
        for (name, setting) in $options.named("prior")? {
            let refused = |e: String| Refused::Value(format!("`prior` of '{name}': {e}"));
            let Some(&(_, size)) = blocks.iter().find(|(other, _)| *other == name) else {
                let known = blocks.map(|(name, _)| name).join(", ");
                return Err(refused(format!("no such block, expected {known}")));
            };
            let Setting::Text(text) = &setting else {
                return Err(refused("expected a text".into()));
            };
            let known = RatePriors::<T>::parse(text, size);
            let prior = known.and_then(|_| text.parse::<PriorSpec>());
            $model_ = $model_.prior(name.as_str(), prior.map_err(|e| refused(e.to_string()))?);
        }
    };
}

/// How the array of a block lies in C order.
#[derive(Clone, Copy)]
enum Layout {
    /// Rows one after the other.
    Rows,
    /// Columns one after the other: vectors, and an array for each component.
    Columns,
}

impl Layout {
    fn block(
        self,
        array: &plca::io::Array<f64>,
        (rows, columns): (usize, usize),
    ) -> Result<DMatrix<f64>, String> {
        if array.values.len() != rows * columns {
            let shape = &array.shape;
            return Err(format!(
                "an array of shape {shape:?}, expected {rows} x {columns} numbers"
            ));
        }
        let values = &array.values;
        Ok(match self {
            Self::Rows => DMatrix::from_row_slice(rows, columns, values),
            Self::Columns => DMatrix::from_column_slice(rows, columns, values),
        })
    }
}

/// States that explain new data along any of their modes.
macro_rules! explains_along {
    () => {
        fn explain<T: Scalar>(
            _: &mut Options,
            state: &Self::State<T>,
            data: &dyn Data<T>,
            along: usize,
            how: Transform,
        ) -> Result<Explained<Parameters<T>>, Refused> {
            Ok(state.transform(data, &how.along(along))?.untyped())
        }
    };
}

/// States that know how new data lie.
macro_rules! explains {
    () => {
        fn explain<T: Scalar>(
            _: &mut Options,
            state: &Self::State<T>,
            data: &dyn Data<T>,
            _: usize,
            how: Transform,
        ) -> Result<Explained<Parameters<T>>, Refused> {
            Ok(state.transform(data, &how)?.untyped())
        }
    };
}

/// Models that explain new data by their own settings, too.
macro_rules! explains_by_model {
    () => {
        fn explain<T: Scalar>(
            options: &mut Options,
            state: &Self::State<T>,
            data: &dyn Data<T>,
            along: usize,
            how: Transform,
        ) -> Result<Explained<Parameters<T>>, Refused> {
            let (k, shape) = (state.components(), data.shape());
            let model = Self::build::<T>(Asked { options, k, shape })?;
            Ok(model.transform(state, data, &how.along(along))?.untyped())
        }
    };
}

/// The same, every observation as a batch of one, too.
macro_rules! explains_each_by_model {
    () => {
        explains_by_model!();

        fn explain_each<T: Scalar>(
            options: &mut Options,
            state: &Self::State<T>,
            data: &dyn Data<T>,
            along: usize,
            how: &Transform,
        ) -> Result<Option<Each>, Refused> {
            let (k, shape) = (state.components(), data.shape());
            let model = Self::build::<T>(Asked { options, k, shape })?;
            let how = how.clone().along(along);
            Ok(Some(model.transform_each(state, data, &how)?))
        }
    };
}

/// Models that learn batch by batch.
macro_rules! learns {
    () => {
        fn learn<T: Scalar>(
            options: &mut Options,
            lesson: Lesson<'_, T>,
        ) -> Result<Learnt<T>, Refused> {
            let (k, shape) = (lesson.components, lesson.data.shape());
            learn(Self::build::<T>(Asked { options, k, shape })?, lesson)
        }
    };
}

/// Models of data in shards.
macro_rules! shards {
    () => {
        fn sharded<T: Scalar>(model: &Self::Model<T>) -> Option<&dyn Sharded<T>> {
            Some(model)
        }
    };
}

/// The Dirichlet shapes that a setting says: `dirichlet:A`, or an array of one for each entry.
fn dirichlet(setting: &Setting, size: (usize, usize), layout: Layout) -> Result<Entries, String> {
    match setting {
        Setting::Text(text) => {
            let number = text.strip_prefix("dirichlet:").map(str::parse);
            match number {
                Some(Ok(shape)) => Ok(Entries::All(shape)),
                _ => Err(format!("'{text}', expected 'dirichlet:A'")),
            }
        }
        Setting::Array(array) => Ok(Entries::Each(layout.block(array, size)?)),
        _ => Err("expected a text or an array".into()),
    }
}

mod bayes;
mod shifted_signed;
mod signed_tensors;
mod skellam;
mod transformed;

use bayes::{AsymmetricVb, SymmetricVb};
use shifted_signed::{ShiftedSkellam, ShiftedSkellamVb};
use signed_tensors::{SignedTensor, SignedTensorVb};
use skellam::{Skellam, SkellamVb};
use transformed::TransformInvariant;

fn matrix(model: &str, shape: &[usize]) -> Result<[usize; 2], Refused> {
    let refused = |_| Refused::Value(format!("X of shape {shape:?}: {model} needs a matrix"));
    shape.try_into().map_err(refused)
}

pub(crate) struct KlNmf;

impl Kind for KlNmf {
    type State<T: Scalar> = NmfState<T>;
    type Model<T: Scalar> = Nmf;

    fn build<T: Scalar>(Asked { options, k, shape }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        let [rows, columns] = matrix("nmf-kl", shape)?;
        let mut model = Nmf::new(k);
        with_frozen!(model, options);
        with_rate_priors!(model, options, [("w", (rows, k)), ("h", (k, columns))]);
        let updates = [
            ("simultaneous", Update::Simultaneous),
            ("sequential", Update::Sequential),
        ];
        if let Some(update) = options.choice("update", &updates)? {
            model = model.update(update);
        }
        Ok(model.checked()?)
    }

    shards!();
    learns!();
    explains_by_model!();
    samples_events!();
}

pub(crate) struct Asymmetric;

impl Kind for Asymmetric {
    type State<T: Scalar> = PlsaState<T>;
    type Model<T: Scalar> = Plsa;

    fn build<T: Scalar>(Asked { options, k, shape }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        let shape = matrix("plsa", shape)?;
        let given = [("rows", Given::Rows), ("columns", Given::Columns)];
        let given = options.choice("given", &given)?.unwrap_or_default();
        let mut model = Plsa::new(k).given(given);
        with_frozen!(model, options);
        with_priors!(model, options, {
            let basis = (shape[given.explained()], k);
            let mixture = (k, shape[given.mode()]);
            vec![
                ("basis".into(), basis, Layout::Rows),
                ("mixture".into(), mixture, Layout::Rows),
            ]
        });
        if let Some(power) = options.number("temper")? {
            model = model.temper(power);
        }
        Ok(model.checked()?)
    }

    shards!();
    learns!();
    explains!();
    samples_events!();
}

pub(crate) struct Symmetric;

impl Kind for Symmetric {
    type State<T: Scalar> = PlcaState<T>;
    type Model<T: Scalar> = Plca;

    fn build<T: Scalar>(Asked { options, k, shape }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        let mut model = Plca::new(k);
        with_frozen!(model, options);
        with_priors!(model, options, {
            let factors = shape.iter().enumerate();
            let factors = factors.map(|(j, &n)| (format!("factor_{j}"), (n, k), Layout::Rows));
            let weights = ("weights".into(), (k, 1), Layout::Columns);
            factors.chain([weights]).collect()
        });
        if let Some(power) = options.number("temper")? {
            model = model.temper(power);
        }
        model = model.temper_prior(options.flag("temper_prior")?);
        Ok(model.checked()?)
    }

    fn parameters(_: &Plca, k: usize, shape: &[usize]) -> Result<Option<usize>, Refused> {
        Ok(Some(effective_parameters(shape, k)))
    }

    shards!();
    learns!();
    explains_along!();
    samples_events!();

    fn explain_each<T: Scalar>(
        _: &mut Options,
        state: &Self::State<T>,
        data: &dyn Data<T>,
        along: usize,
        how: &Transform,
    ) -> Result<Option<Each>, Refused> {
        Ok(Some(state.transform_each(data, &how.clone().along(along))?))
    }
}

/// The power of kernels: the first one, and the iterations until it is 1.
fn annealing(options: &mut Options) -> Result<Option<Anneal>, Refused> {
    let Some(both) = options.numbers("anneal")? else {
        return Ok(None);
    };
    let [alpha0, over] = both[..] else {
        let n = both.len();
        return wrong(format!("`anneal` has {n} numbers, expected 2"));
    };
    Ok(Some(Anneal { alpha0, over }))
}

pub(crate) struct ShiftInvariant;

impl Kind for ShiftInvariant {
    type State<T: Scalar> = ShiftedState<T>;
    type Model<T: Scalar> = Shifted;

    fn build<T: Scalar>(Asked { options, k, shape }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        let Some(kernel) = options.counts("kernel")? else {
            return wrong("`kernel` is None, expected an extent for every dimension of X");
        };
        if kernel.len() != shape.len() {
            return wrong(format!(
                "`kernel` is {kernel:?}, expected {} extents for X of shape {shape:?}",
                shape.len()
            ));
        }
        let mut model = Shifted::new(k, kernel);
        let supports = [
            ("valid", Support::Valid),
            ("same", Support::Same),
            ("full", Support::Full),
        ];
        let supports = options.choices("support", &supports)?;
        if !supports.is_empty() {
            model = model.supports(supports);
        }
        let likelihoods = [
            ("conditional", Likelihood::Conditional),
            ("literal", Likelihood::Literal),
        ];
        if let Some(likelihood) = options.choice("likelihood", &likelihoods)? {
            model = model.likelihood(likelihood);
        }
        if let Some(power) = options.number("impulse_power")? {
            model = model.impulse_power(Anneal::constant(power));
        }
        if let Some(power) = annealing(options)? {
            model = model.anneal(power);
        }
        with_frozen!(model, options);
        let geometry = model.clone().checked()?.geometry(shape)?;
        with_priors!(model, options, {
            let cells = |shape: &[usize]| (shape.iter().product(), k);
            let (kernel, impulse) = (geometry.kernel_shape(), geometry.impulse_shape());
            vec![
                ("weights".into(), (k, 1), Layout::Columns),
                ("kernels".into(), cells(kernel), Layout::Columns),
                ("impulses".into(), cells(impulse), Layout::Columns),
            ]
        });
        Ok(model.checked()?)
    }

    fn parameters(model: &Shifted, k: usize, shape: &[usize]) -> Result<Option<usize>, Refused> {
        let geometry = model.geometry(shape)?;
        let cells = [geometry.kernel_cells(), geometry.impulse_cells()];
        let all = shape.iter().fold(1usize, |all, &n| all.saturating_mul(n));
        // Never more than the cells less one.
        Ok(Some(shifted_parameters(cells, k, false).min(all - 1)))
    }

    explains!();
}

pub(crate) struct OnSimplex;

impl Kind for OnSimplex {
    type State<T: Scalar> = PntfState<T>;
    type Model<T: Scalar> = Pntf;

    fn build<T: Scalar>(Asked { options, k, .. }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        let mut model = Pntf::new(k);
        with_frozen!(model, options);
        for (name, mu) in options.named("penalty")? {
            let Setting::Number(mu) = mu else {
                return wrong(format!("`sparsity` of '{name}': expected a number"));
            };
            model = model.sparsity(name, mu);
        }
        Ok(model.checked()?)
    }

    explains_along!();
}

pub(crate) struct LeeSeung;

impl Kind for LeeSeung {
    type State<T: Scalar> = NtfState<T>;
    type Model<T: Scalar> = Ntf;

    fn build<T: Scalar>(Asked { options, k, .. }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        let mut model = Ntf::new(k);
        with_frozen!(model, options);
        for (name, weights) in options.named("penalty")? {
            let Setting::List(weights) = &weights else {
                return wrong(format!("`penalty` of '{name}': expected two numbers"));
            };
            let &[Setting::Number(linear), Setting::Number(quadratic)] = &weights[..] else {
                return wrong(format!("`penalty` of '{name}': expected two numbers"));
            };
            let penalty = Penalty::new(linear, quadratic);
            let penalty =
                penalty.map_err(|e| Refused::Value(format!("`penalty` of '{name}': {e}")))?;
            model = model.prior(name, penalty);
        }
        Ok(model.checked()?)
    }

    explains_by_model!();
}
