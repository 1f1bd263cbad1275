//! Models whose data can be cut into shards, and what every engine does with them.

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_dist::random::exponential;
use plca_priors::Step;
use plca_tensor::{Data, DataError, Factor, Real, check_counts, normalise_columns};

use super::squared::{extrapolated, measured};
use super::states::{Pending, Statistic, Task};
use super::{Local, PassRequest, Seed, ShardId, Shared, Stats, Survey, Version};
use crate::em::with_densities;
use crate::{
    Axis, BlockSpec, Constraint, Counts, Draw, Expectation, Exposure, FitError, Frozen, Parameters,
    Prior, Renewed, Sense, Settings, State, Wanted, refuse,
};

/// The fact that holds the sums over all shards of the columns of a block whose rows are samples, where they do not sum to 1.
pub const ACROSS: &str = "across";

/// Whether the shards divide a block, in which samples lie so, by the sums of its columns.
pub(super) fn divides<T: Real>(spec: &BlockSpec<T>) -> bool {
    spec.constraint == Constraint::Simplex
}

/// A model of all shards together.
#[derive(Clone, Debug)]
pub struct GlobalModel<T: Real> {
    /// The blocks for data of the shape of all shards.
    pub blocks: Vec<BlockSpec<T>>,
    /// Whether the objective is to rise or to fall.
    pub sense: Sense,
    /// The sum of the data, if the model is one of distributions; otherwise 1.
    pub mass: f64,
    /// The tempering power; 1, none.
    pub power: f64,
    /// Numbers that its parameters must remember besides their blocks.
    pub facts: Vec<(&'static str, Vec<f64>)>,
    /// Whether the objective is conditional on the observed cells, and shards leave it to the sum to say so: `Σ V ln P - v ln Σ P`.
    pub conditional: bool,
}

/// A model on a shard.
pub trait Shard<T: Real>: Expectation<T> {
    /// The same as a model whose own blocks are renewed after the shared ones, by a pass of their own. Default: all are renewed from one pass.
    fn in_turn(&self) -> Option<&dyn InTurn<T>> {
        None
    }

    /// The same as a model that imputes hidden cells in one scale for all shards. Default: it imputes none, or each in a scale of its sample.
    fn imputes(&self) -> Option<&dyn Imputes<T>> {
        None
    }

    /// What is expected of drawn blocks, where [`start_passes`](Sharded::start_passes) says that they are no start yet: in the first pass, 0, and of what
    /// the passes before made of them. Default: what is expected of any others.
    ///
    /// # Errors
    ///
    /// As [`Expectation::expect`].
    fn expect_drawn(
        &self,
        at: &Parameters<T>,
        pass: u32,
        wanted: &Wanted<'_>,
    ) -> Result<Counts<T>, FitError> {
        let _ = pass;
        self.expect(at, wanted)
    }

    /// Brings the shard's own blocks near their optimum under the shared ones. Default: as they are; see [`Sharded::settles`].
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn settle(&self, at: &mut Parameters<T>) -> Result<(), FitError> {
        let _ = at;
        Ok(())
    }

    /// The likelihood of the shard. Default, `None`: that of [`Expectation::expect`].
    fn likelihood(&self, at: &Parameters<T>) -> Option<f64> {
        let _ = at;
        None
    }
}

/// A model on a shard whose hidden cells are imputed in the scale of all data, which only the sum over shards tells.
pub trait Imputes<T: Real> {
    /// What an E-step counts of the observed cells, and the mass that the model has in the hidden ones.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn apart(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Apart<T>, FitError>;
}

/// An E-step over data with hidden cells, which are not yet imputed.
#[derive(Clone, Debug)]
pub struct Apart<T: Real> {
    /// Expected counts of the observed cells, and the objective as far as it is a sum over shards.
    pub observed: Counts<T>,
    /// The model's mass in the hidden cells, in the shape of the counts.
    pub hidden: Vec<Option<DMatrix<T>>>,
    /// The model's mass in the observed cells.
    pub seen: f64,
}

/// Counts of the shared blocks, and what each is divided by.
pub type Divided<T> = (Counts<T>, Vec<Option<Exposure<T>>>);

/// The statistics, the shard's own blocks and what is left to do with them.
type Passed<T> = (Stats, Vec<DMatrix<T>>, Pending<T>);

/// A model on a shard whose blocks are renewed one after the other.
pub trait InTurn<T: Real> {
    /// The counts of the shared blocks and what each is divided by, from a pass over the shard.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn count(&self, at: &Parameters<T>, value: bool) -> Result<Divided<T>, FitError>;

    /// Renews the shard's own blocks under the shared ones.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn renew(&self, at: &mut Parameters<T>) -> Result<(), FitError>;
}

/// A model whose data can be cut into shards of samples.
///
/// What belongs to a sample stays with its shard ([`Local`]), what belongs to features is copied everywhere ([`Shared`]). An iteration is
///
/// ```math
/// \begin{aligned}
/// s_i, \; \ell_i &= \text{e\_step}(\text{shard}_i, \ell_i, \theta), \qquad i = 0, \dots, S - 1 \\
/// \theta &= \text{m\_step}(\theta, \textstyle\sum_i s_i)
/// \end{aligned}
/// ```
///
/// where `ℓ` is local, `θ` is shared and the sum is that of [`Partial`](super::Partial). Engines move `ℓ`, `θ` and `s` as bytes and know no
/// model. A model writes the first five methods, and others where its default does not fit. What engines do is the same for all, a method of
/// `dyn Sharded<T>`.
pub trait Sharded<T: Real>: Settings {
    /// The mode that is cut, of data of this order.
    fn along(&self, order: usize) -> usize;

    /// The model of all data.
    ///
    /// # Errors
    ///
    /// [`FitError`] for settings that the data do not fit, or that need all data at once.
    fn whole(&self, survey: &Survey) -> Result<GlobalModel<T>, FitError>;

    /// Numbers that the model reads off a shard once, such as sums of its samples. Default: none.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn read_off(&self, shard: &dyn Data<T>) -> Result<Vec<f64>, FitError> {
        let _ = shard;
        Ok(Vec::new())
    }

    /// The model on a shard, of which `known` was read off.
    ///
    /// # Errors
    ///
    /// As [`whole`](Self::whole).
    fn bind_shard<'a>(
        &'a self,
        shard: &'a dyn Data<T>,
        known: &[f64],
        survey: &Survey,
    ) -> Result<Box<dyn Shard<T> + 'a>, FitError>;

    /// After how many passes over all shards drawn blocks are a start: each makes new ones of what it expects of those before. Default: 0, they are one.
    fn start_passes(&self) -> u32 {
        0
    }

    /// Whether a shard can [settle](Shard::settle) its own blocks without making the objective worse. Default: no.
    ///
    /// # Errors
    ///
    /// [`FitError::NotSeparable`] with what is in the way.
    fn settles(&self) -> Result<(), FitError> {
        refuse(true, "this model on shards")
    }

    /// Adds to the counts of a shared block, of all shards together, what the model knows besides the data. Default: nothing.
    ///
    /// # Errors
    ///
    /// [`FitError::NotFinite`] for sums that are not finite.
    fn add_prior(&self, block: usize, counts: &mut DMatrix<T>) -> Result<(), FitError> {
        let _ = (block, counts);
        Ok(())
    }

    /// What the objective has of the shared blocks alone, besides their priors. Default: nothing.
    ///
    /// # Errors
    ///
    /// [`FitError::NotFinite`].
    fn value_of_shared(&self, shared: &Parameters<T>) -> Result<f64, FitError> {
        let _ = shared;
        Ok(0.0)
    }

    /// What the objective has of the sums of columns that run across the shards. Default: nothing.
    ///
    /// # Errors
    ///
    /// [`FitError::NotFinite`].
    fn value_of_sums(&self, shared: &Shared<T>) -> Result<f64, FitError> {
        let _ = shared;
        Ok(0.0)
    }

    /// Facts about all data that its parameters must remember, from what was read off the shards, in their order. Default: none.
    fn remembered(&self, known: &[&[f64]]) -> Vec<(&'static str, Vec<f64>)> {
        let _ = known;
        Vec::new()
    }

    /// What the rates of a block are measured in, as [`Algorithm::rate_unit`](crate::Algorithm::rate_unit), which no shard can sum up. Default: 1, for models
    /// without rates.
    fn rate_unit(&self, survey: &Survey, block: usize) -> f64 {
        let _ = (survey, block);
        1.0
    }

    /// What a given value of a block of all data stands for, as [`Algorithm::given`](crate::Algorithm::given). Default: [`BlockSpec::given`].
    ///
    /// # Errors
    ///
    /// Those of [`BlockSpec::given`].
    fn given(&self, spec: &BlockSpec<T>, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        spec.given(value)
    }

    /// Blocks of all data that tell no component from another, as [`Expectation::even`]. Default: none.
    ///
    /// # Errors
    ///
    /// As [`whole`](Self::whole).
    fn even(&self, survey: &Survey) -> Result<Option<Vec<DMatrix<T>>>, FitError> {
        let _ = survey;
        Ok(None)
    }

    /// The facts about a shard; those of all data are the sums over shards.
    ///
    /// # Errors
    ///
    /// [`FitError::Data`] for negative data, the index that of all data. A shard may be without mass, as long as not all are.
    fn survey(&self, shard: &dyn Data<T>, first: usize) -> Result<Survey, FitError> {
        let along = self.along(shard.shape().len());
        match check_counts(shard) {
            // Whether all shards together have mass is seen by `Survey::check`.
            Ok(()) | Err(DataError::NoMass) => {}
            Err(DataError::Negative { mut index, value }) => {
                index[along] += first;
                return Err(DataError::Negative { index, value }.into());
            }
            Err(e) => return Err(e.into()),
        }
        Ok(Survey::of(shard, along))
    }
}

/// What engines do with every model.
impl<T: Real> dyn Sharded<T> + '_ {
    /// The axis of a block that counts samples; of one that all shards share, none.
    ///
    /// Where it is the rows, as of the factor of the mode that is cut, columns that are distributions run across the shards: they are divided by
    /// sums over all of them. Where they are none, as of the shapes of a posterior, the model of a shard has these sums as the fact [`ACROSS`].
    pub fn sample_axis(&self, blocks: &[BlockSpec<T>], block: usize) -> Axis {
        let modes = blocks.iter().filter_map(|spec| spec.axes.mode());
        let order = modes.max().map_or(0, |last| last + 1);
        blocks[block].axes.samples(self.along(order))
    }

    /// The shared parameters of a random start: those of a start on all data at once. The
    /// [`start_passes`](Sharded::start_passes) that make them a start are made by [`started`](super::started), or are the first ones.
    ///
    /// # Errors
    ///
    /// Those of [`Survey::check`] and [`whole`](Sharded::whole); [`FitError::Conflict`] for priors that need all shards at once,
    /// [`FitError::NotGiven`] for frozen blocks.
    pub fn begin(&self, survey: &Survey, seed: Seed) -> Result<Shared<T>, FitError> {
        let whole = checked(self, survey)?;
        let (specs, count) = (&whole.blocks, whole.blocks.len());
        let unset = |s: &&BlockSpec<T>| s.frozen != Frozen::No && !matches!(s.draw, Draw::Data(_));
        if let Some(spec) = specs.iter().find(unset) {
            let block = spec.name.to_string();
            return Err(FitError::NotGiven { block });
        }
        let (mut blocks, mut sums) = (Vec::new(), vec![Vec::new(); count]);
        for (j, spec) in specs.iter().enumerate() {
            let mut rng = seed.at(first_word(specs, j));
            match self.sample_axis(specs, j) {
                Axis::None => blocks.push((spec.name.to_string(), spec.drawn(&mut rng))),
                Axis::Rows if spec.draw == Draw::Simplex => {
                    // Column after column: what all shards draw of one is in memory at a time.
                    let column = |_| {
                        let x = |_, _| T::lit(exponential(&mut rng));
                        let mut column = DMatrix::from_fn(spec.shape.0, 1, x);
                        normalise_columns(&mut column)[0].to_f64()
                    };
                    sums[j] = (0..spec.shape.1).map(column).collect();
                }
                Axis::Rows | Axis::Columns => {}
            }
        }
        let parameters = Parameters::named(blocks, 1.0).with(whole.power, whole.mass);
        Ok(Shared {
            version: Version,
            survey: survey.clone(),
            parameters,
            sums,
            scale: 1.0,
            task: match self.start_passes() {
                0 => Task::Iterate,
                _ => Task::Start(0),
            },
            back: false,
        })
    }

    /// What belongs to the samples of a shard at the start that `shared` is of: the numbers that a start on all data at once draws for them.
    ///
    /// # Errors
    ///
    /// Those of [`bind_shard`](Sharded::bind_shard).
    pub fn begin_local(
        &self,
        shard: &dyn Data<T>,
        place: ShardId,
        shared: &Shared<T>,
        seed: Seed,
    ) -> Result<Local<T>, FitError> {
        let whole = self.whole(&shared.survey)?.blocks;
        let known = self.read_off(shard)?;
        let bound = self.bind_shard(shard, &known, &shared.survey)?;
        let specs = bound.blocks();
        let mut blocks = Vec::new();
        for (j, spec) in specs.iter().enumerate() {
            let first = first_word(&whole, j);
            let (rows, columns) = spec.shape;
            let word = |x: usize| first + 2 * x as u128;
            match self.sample_axis(specs, j) {
                Axis::None => {}
                Axis::Rows if spec.draw == Draw::Simplex => {
                    let mut drawn = DMatrix::zeros(rows, columns);
                    for (z, mut column) in drawn.column_iter_mut().enumerate() {
                        let mut rng = seed.at(word(z * whole[j].shape.0 + place.first));
                        column.apply(|x| *x = T::lit(exponential(&mut rng)));
                    }
                    let old = drawn.clone();
                    blocks.push(divided(spec, drawn, &old, &shared.sums[j]));
                }
                Axis::Rows => blocks.push(spec.drawn(&mut seed.at(first))),
                Axis::Columns => {
                    blocks.push(spec.drawn(&mut seed.at(word(rows * place.first))));
                }
            }
        }
        drop(bound);
        Ok(Local {
            version: Version,
            place,
            known,
            blocks,
            pending: Pending::Nothing,
            points: Vec::new(),
        })
    }

    /// A pass over a shard: completes its last iteration, counts under the parameters that result, and renews the blocks of its own that follow from the
    /// counts.
    ///
    /// # Errors
    ///
    /// Data that cannot be read, priors that refuse their counts; `local` is then as it was.
    pub fn e_step(
        &self,
        shard: &dyn Data<T>,
        local: &mut Local<T>,
        shared: &Shared<T>,
        ask: PassRequest,
    ) -> Result<Stats, FitError> {
        match shared.task {
            Task::Measure => {
                self.finish(shard, local, shared)?;
                let blocks = self.whole(&shared.survey)?.blocks;
                return measured(self, &blocks, local, &shared.survey);
            }
            Task::Extrapolate(a) => {
                return extrapolated(self, &self.whole(&shared.survey)?.blocks, local, a);
            }
            _ => {}
        }
        let bound = self.bind_shard(shard, &local.known, &shared.survey)?;
        let on = On {
            model: self,
            bound: &*bound,
        };
        // Also looks whether shared and local blocks belong to the shard.
        let mut at = on.finished(local, shared)?;
        if shared.task == Task::Settle && ask.counts {
            bound.settle(&mut at)?;
        }
        let notes = matches!(shared.task, Task::First | Task::Second);
        let noted = notes.then(|| on.own(&at));
        let (mut stats, blocks, pending) = match on.e_step(at, local.place, shared, ask) {
            Err(e) if shared.task == Task::Trial && e.rejects_point() => {
                return Ok(Stats {
                    refused: true,
                    ..Stats::none(bound.blocks().len())
                });
            }
            passed => passed?,
        };
        if shared.task == Task::Trial {
            let own =
                (bound.blocks().iter().enumerate()).filter(|&(j, _)| on.lies(j) != Axis::None);
            stats.refused = own.zip(&blocks).any(|((j, spec), block)| {
                !spec.within_range(block, Some(self.rate_unit(&shared.survey, j)))
            });
        }
        drop(bound);
        (local.blocks, local.pending) = (blocks, pending);
        if !matches!(shared.task, Task::Second | Task::Trial) {
            local.points.clear();
        }
        local.points.extend(noted.into_iter().flatten());
        Ok(stats)
    }

    /// Makes the shared parameters of the next iteration from the statistics of all shards; returns the objective before it, if it was
    /// measured.
    ///
    /// # Errors
    ///
    /// [`FitError::Support`], those of [`BlockSpec::m_step`], [`FitError::Conflict`] for statistics of another model; `shared` is then as it
    /// was.
    pub fn m_step(&self, shared: &mut Shared<T>, stats: Stats) -> Result<Option<f64>, FitError> {
        stats.check_support()?;
        let whole = self.whole(&shared.survey)?;
        let objective = objective(self, &whole, shared, &stats)?;
        // [SPEC 4] s = v_obs / Σ_obs P
        let scale = stats.seen.map_or(1.0, |seen| shared.survey.total / seen);
        let count = whole.blocks.len();
        if stats.terms.len() != count {
            let got = stats.terms.len();
            let what = format!("statistics of {got} blocks, the model has {count}");
            return Err(FitError::Conflict { what });
        }
        let iteration = shared.parameters.next();
        let (mut new, mut sums) = (Vec::new(), Vec::new());
        for (j, (spec, term)) in whole.blocks.iter().zip(stats.terms).enumerate() {
            let old = &shared.parameters;
            let of_sums = |sums: &[f64]| sums.len() == spec.shape.1;
            let of_counts = |counts: &DMatrix<f64>| counts.shape() == spec.shape;
            let is_shared = self.sample_axis(&whole.blocks, j) == Axis::None;
            let (block, sum) = match (is_shared, term.completed(scale)) {
                (_, Statistic::Nothing) => (None, shared.sums[j].clone()),
                (true, Statistic::Counts(counts)) if of_counts(&counts) => {
                    let (old, mut counts) = (old.at(new.len()), counts.map(T::lit));
                    self.add_prior(j, &mut counts)?;
                    let (block, _) = spec.m_step(counts, old, None, iteration)?;
                    (Some(block), Vec::new())
                }
                (true, Statistic::Rates(counts, exposure)) if of_counts(&counts) => {
                    let (old, exposure) = (old.at(new.len()), narrowed(exposure));
                    let counts = counts.map(T::lit);
                    let (block, _) = spec.m_step(counts, old, Some(exposure), iteration)?;
                    (Some(block), Vec::new())
                }
                (false, Statistic::Sums(sums)) if of_sums(&sums) => (None, sums),
                _ => {
                    let name = &spec.name;
                    return Err(FitError::Conflict {
                        what: format!(
                            "the statistics of `{name}` belong to another model or shape"
                        ),
                    });
                }
            };
            if is_shared {
                new.push(block);
            }
            sums.push(sum);
        }
        match shared.task {
            // No iteration.
            Task::Start(_) => shared.parameters.change(|block, old| {
                if let Some(new) = new[block].take() {
                    *old = new;
                }
            }),
            _ => shared.parameters.advance(new),
        }
        (shared.sums, shared.scale) = (sums, scale);
        shared.task = match shared.task {
            Task::Start(pass) if pass + 1 < self.start_passes() => Task::Start(pass + 1),
            _ => Task::Iterate,
        };
        shared.back = false;
        Ok(objective)
    }

    /// The objective from the statistics of all shards, if they have it.
    ///
    /// # Errors
    ///
    /// Those of [`whole`](Sharded::whole).
    pub fn objective(&self, shared: &Shared<T>, stats: &Stats) -> Result<Option<f64>, FitError> {
        objective(self, &self.whole(&shared.survey)?, shared, stats)
    }

    /// Completes the last iteration of a shard, which `e_step` otherwise does when the next one begins: what a checkpoint and
    /// the end of a run need.
    ///
    /// # Errors
    ///
    /// Data that cannot be read; `local` is then as it was.
    pub fn finish(
        &self,
        shard: &dyn Data<T>,
        local: &mut Local<T>,
        shared: &Shared<T>,
    ) -> Result<(), FitError> {
        if local.pending == Pending::Nothing && !shared.back {
            return Ok(());
        }
        let bound = self.bind_shard(shard, &local.known, &shared.survey)?;
        let on = On {
            model: self,
            bound: &*bound,
        };
        let at = on.finished(local, shared)?;
        let blocks = on.own(&at);
        drop(bound);
        (local.blocks, local.pending) = (blocks, Pending::Nothing);
        Ok(())
    }

    /// The parameters of all data, from the shared ones and from what belongs to the samples of all shards, in their order and
    /// finished by `finish`.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for shards that are missing, of another model or not finished; those of [`whole`](Sharded::whole);
    /// [`FitError::NotFinite`] where a value has left the range of numbers.
    pub fn gather(
        &self,
        shared: &Shared<T>,
        locals: &[Local<T>],
    ) -> Result<Parameters<T>, FitError> {
        let whole = self.whole(&shared.survey)?;
        let blocks = gathered(self, &whole.blocks, shared, locals)?;
        let names = whole.blocks.iter().map(|spec| spec.name.to_string());
        let parameters = Parameters::named(names.zip(blocks).collect(), 1.0)
            .with(shared.parameters.power(), whole.mass)
            .at_iteration(shared.parameters.iteration());
        let known: Vec<&[f64]> = locals.iter().map(|local| &local.known[..]).collect();
        let facts = whole.facts.into_iter().chain(self.remembered(&known));
        State::wrap(facts.fold(parameters, |at, (name, numbers)| {
            at.with_fact(name, numbers)
        }))
    }

    /// What the model of a shard must be multiplied by to approximate its data, as [`Algorithm::scale`](crate::Algorithm::scale) says.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    pub fn scale(
        &self,
        shard: &dyn Data<T>,
        local: &Local<T>,
        shared: &Shared<T>,
    ) -> Result<Option<Vec<f64>>, FitError> {
        let bound = self.bind_shard(shard, &local.known, &shared.survey)?;
        let on = On {
            model: self,
            bound: &*bound,
        };
        bound.scale(&on.finished(local, shared)?)
    }
}

/// All blocks, from the shared ones and those of the shards.
pub(super) fn gathered<T: Real>(
    model: &dyn Sharded<T>,
    specs: &[BlockSpec<T>],
    shared: &Shared<T>,
    locals: &[Local<T>],
) -> Result<Vec<DMatrix<T>>, FitError> {
    let mut common = shared.parameters.matrices().iter();
    let mut own = 0;
    let blocks = specs.iter().enumerate().map(|(j, spec)| {
        let foreign = || FitError::Conflict {
            what: format!(
                "`{}` must hold the finished parts of all shards in their order",
                spec.name
            ),
        };
        let lie = model.sample_axis(specs, j);
        if lie == Axis::None {
            let block = common.next().filter(|block| block.shape() == spec.shape);
            return Ok(block.ok_or_else(foreign)?.clone());
        };
        let mut block = DMatrix::zeros(spec.shape.0, spec.shape.1);
        let mut next = 0;
        for local in locals {
            let part = local.blocks.get(own).ok_or_else(foreign)?;
            let (samples, rest, all) = match lie {
                Axis::Rows => (part.nrows(), part.ncols() == spec.shape.1, spec.shape.0),
                _ => (part.ncols(), part.nrows() == spec.shape.0, spec.shape.1),
            };
            let follows = local.place.first == next && samples <= all - next;
            if !rest || !follows || local.pending != Pending::Nothing {
                return Err(foreign());
            }
            match lie {
                Axis::Rows => block.rows_mut(next, samples).copy_from(part),
                _ => block.columns_mut(next, samples).copy_from(part),
            }
            next += samples;
        }
        own += 1;
        let all = match lie {
            Axis::Rows => spec.shape.0,
            _ => spec.shape.1,
        };
        if next == all {
            Ok(block)
        } else {
            Err(foreign())
        }
    });
    blocks.collect()
}

/// The first word of ChaCha that a start on all data draws for a block: two for every number, block after block.
fn first_word<T: Real>(specs: &[BlockSpec<T>], block: usize) -> u128 {
    let words = |spec: &BlockSpec<T>| match spec.draw {
        Draw::Simplex | Draw::Sides | Draw::Around(_) => {
            2 * spec.shape.0 as u128 * spec.shape.1 as u128
        }
        Draw::Even | Draw::Data(_) => 0,
    };
    specs[..block].iter().map(words).sum()
}

/// The model of all data, without priors and frozen entries that no shard can know.
pub(super) fn checked<T: Real>(
    model: &dyn Sharded<T>,
    survey: &Survey,
) -> Result<GlobalModel<T>, FitError> {
    model.check()?;
    survey.check()?;
    let whole = model.whole(survey)?;
    for (j, spec) in whole.blocks.iter().enumerate() {
        let name = &spec.name;
        let lies = model.sample_axis(&whole.blocks, j);
        if let (Axis::Rows | Axis::Columns, Frozen::Entries(_)) = (lies, &spec.frozen) {
            let what = format!(
                "`{name}` belongs to the samples of shards: freeze all of it or whole components, not entries"
            );
            return Err(FitError::Conflict { what });
        }
        let Some(prior) = &spec.prior else { continue };
        let what = if prior.rules().may_empty() {
            format!(
                "the prior on `{name}` may set probabilities to 0 that the data need, which cannot be checked across shards"
            )
        } else if lies != Axis::None
            && matches!(prior, Prior::Simplex(_))
            && prior.rules().pseudo_counts(spec.shape).is_none()
        {
            format!(
                "`{name}` belongs to the samples of shards: its prior can only be a Dirichlet prior with shapes >= 1"
            )
        } else if lies == Axis::Rows {
            format!("the columns of `{name}` run across the shards: it cannot have a prior")
        } else {
            continue;
        };
        return Err(FitError::Conflict { what });
    }
    Ok(whole)
}

/// Whether shards can settle their own blocks.
pub(super) fn settles<T: Real>(
    model: &dyn Sharded<T>,
    whole: &GlobalModel<T>,
) -> Result<bool, FitError> {
    model.settles()?;
    refuse(whole.power != 1.0, "tempering")?;
    for (j, spec) in whole.blocks.iter().enumerate() {
        if model.sample_axis(&whole.blocks, j) != Axis::None && spec.frozen != Frozen::Whole {
            let name = &spec.name;
            refuse(
                spec.prior.is_some(),
                &format!("the prior on `{name}`, which belongs to the samples of shards,"),
            )?;
            refuse(
                spec.is_partly_frozen(),
                &format!("frozen components of `{name}`"),
            )?;
        }
    }
    Ok(true)
}

/// The objective without priors.
pub(super) fn likelihood<T: Real>(
    whole: &GlobalModel<T>,
    shared: &Shared<T>,
    stats: &Stats,
) -> Option<f64> {
    let value = stats.value?;
    Some(match stats.seen.filter(|_| whole.conditional) {
        // [SPEC 4] L_M = Σ_obs V ln P - v_obs ln Σ_obs P
        Some(seen) => value - shared.survey.total * seen.ln(),
        None => value,
    })
}

fn objective<T: Real>(
    model: &dyn Sharded<T>,
    whole: &GlobalModel<T>,
    shared: &Shared<T>,
    stats: &Stats,
) -> Result<Option<f64>, FitError> {
    let Some(value) = likelihood(whole, shared, stats) else {
        return Ok(None);
    };
    let value = value + model.value_of_shared(&shared.parameters)? + model.value_of_sums(shared)?;
    let value = match whole.sense {
        Sense::Maximise => value + stats.ln_density,
        Sense::Minimise => value - stats.ln_density,
    };
    let specs = whole.blocks.iter().enumerate();
    let specs = specs.filter(|&(j, _)| model.sample_axis(&whole.blocks, j) == Axis::None);
    let blocks = specs
        .map(|(_, spec)| spec)
        .zip(shared.parameters.matrices());
    let next = shared.parameters.next();
    Ok(Some(with_densities(value, whole.sense, blocks, next)))
}

fn narrowed<T: Real>(exposure: Exposure<f64>) -> Exposure<T> {
    match exposure {
        Exposure::PerComponent(x) => Exposure::PerComponent(x.into_iter().map(T::lit).collect()),
        Exposure::PerEntry(x) => Exposure::PerEntry(x.map(T::lit)),
    }
}

fn widened<T: Real>(exposure: Exposure<T>) -> Exposure<f64> {
    let wide = |x: T| x.to_f64();
    match exposure {
        Exposure::PerComponent(x) => Exposure::PerComponent(x.into_iter().map(wide).collect()),
        Exposure::PerEntry(x) => Exposure::PerEntry(x.map(wide)),
    }
}

/// Columns that run across the shards, from their counts and the sums over all shards.
fn divided<T: Real>(
    spec: &BlockSpec<T>,
    counts: DMatrix<T>,
    old: &DMatrix<T>,
    sums: &[f64],
) -> DMatrix<T> {
    let sums = sums.iter().map(|&x| T::lit(x)).collect();
    // [SPEC 1.1] F <- C / n
    spec.divided(counts, old, Exposure::PerComponent(sums))
}

/// New blocks, one or `None` for every block of the model, and what is left to do.
type Renewal<T> = (Vec<Option<DMatrix<T>>>, Pending<T>);

/// A model on a shard.
struct On<'a, T: Real> {
    model: &'a dyn Sharded<T>,
    bound: &'a (dyn Shard<T> + 'a),
}

impl<T: Real> On<'_, T> {
    fn lies(&self, block: usize) -> Axis {
        self.model.sample_axis(self.bound.blocks(), block)
    }

    /// Whether an iteration renews a block, and how samples lie in it.
    fn free(&self) -> impl Iterator<Item = (usize, Axis)> {
        let specs = self.bound.blocks().iter().enumerate();
        let free = specs.filter(|(_, spec)| spec.frozen != Frozen::Whole);
        free.map(|(j, _)| (j, self.lies(j)))
    }

    /// Those of the blocks that belong to the samples.
    fn own(&self, at: &Parameters<T>) -> Vec<DMatrix<T>> {
        let blocks = at.matrices().iter().enumerate();
        let own = blocks.filter(|&(j, _)| self.lies(j) != Axis::None);
        own.map(|(_, block)| block.clone()).collect()
    }

    /// The parameters of the shard after its last iteration.
    fn finished(&self, local: &Local<T>, shared: &Shared<T>) -> Result<Parameters<T>, FitError> {
        let own = match shared.back {
            true => &local.points,
            false => &local.blocks,
        };
        let mut own = own.iter();
        let mut common = shared.parameters.matrices().iter();
        let mut blocks = Vec::new();
        for (j, spec) in self.bound.blocks().iter().enumerate() {
            let block = match self.lies(j) {
                Axis::None => common.next(),
                _ => own.next(),
            };
            let block = block.filter(|block| block.shape() == spec.shape);
            let block = block.ok_or_else(|| FitError::Conflict {
                what: format!("`{}` belongs to another model or shard", spec.name),
            })?;
            blocks.push((spec.name.to_string(), block.clone()));
        }
        let parameters = &shared.parameters;
        let mut at = Parameters::named(blocks, 1.0)
            .with(parameters.power(), parameters.mass())
            .at_iteration(parameters.iteration());
        let specs = self.bound.blocks();
        let summed = |&j: &usize| self.lies(j) == Axis::Rows && !divides(&specs[j]);
        if let Some(j) = (0..specs.len()).find(summed) {
            at = at.with_fact(ACROSS, shared.sums[j].clone());
        }
        match &local.pending {
            _ if shared.back => {}
            Pending::Nothing => {}
            Pending::Counts(counts) => {
                let across = self.free().filter(|(_, lies)| *lies == Axis::Rows);
                let across: Vec<_> = across.map(|(j, _)| j).collect();
                self.complete(&mut at, &across, counts.iter().cloned(), shared);
            }
            Pending::Imputed(observed, hidden) => {
                let own = self.free().filter(|(_, lies)| *lies != Axis::None);
                let own: Vec<_> = own.map(|(j, _)| j).collect();
                let s = T::lit(shared.scale);
                let parts = observed.iter().zip(hidden);
                // [SPEC 4] the counts of M∘V + (1-M)∘s P
                let counts = parts.map(|(c, x)| c.zip_map(x, |c, x| c + s * x));
                self.complete(&mut at, &own, counts, shared);
            }
            Pending::Pass => {
                if let Some(model) = self.bound.in_turn() {
                    // The iteration that it completes is counted already.
                    let done = at.iteration();
                    at = at.at_iteration(done.saturating_sub(1));
                    model.renew(&mut at)?;
                    at = at.at_iteration(done);
                }
            }
        }
        Ok(at)
    }

    /// Gives blocks the values that were left to do, those whose columns run across the shards divided by sums over all of them.
    fn complete(
        &self,
        at: &mut Parameters<T>,
        blocks: &[usize],
        mut new: impl Iterator<Item = DMatrix<T>>,
        shared: &Shared<T>,
    ) {
        at.change(|j, block| {
            let Some(new) = blocks.contains(&j).then(|| new.next()).flatten() else {
                return;
            };
            *block = match self.lies(j) {
                Axis::Rows => divided(&self.rates(j), new, block, &shared.sums[j]),
                _ => new,
            };
        });
    }

    /// A block as one of rates: its columns are not distributions within a shard.
    fn rates(&self, block: usize) -> BlockSpec<T> {
        BlockSpec {
            constraint: Constraint::NonNegative,
            ..self.bound.blocks()[block].clone()
        }
    }

    /// The statistics, and the shard's own blocks with what is left to do.
    fn e_step(
        &self,
        mut at: Parameters<T>,
        place: ShardId,
        shared: &Shared<T>,
        ask: PassRequest,
    ) -> Result<Passed<T>, FitError> {
        let specs = self.bound.blocks();
        let mut stats = Stats::none(specs.len());
        let (mut new, mut pending) = (vec![None; specs.len()], Pending::Nothing);
        let mut wanted = vec![false; specs.len()];
        if ask.counts {
            self.free().for_each(|(j, _)| wanted[j] = true);
        }
        let wanted = Wanted {
            blocks: &wanted,
            value: ask.value,
            count_unit: 1.0,
        };
        if let Some(model) = self.bound.in_turn().filter(|_| ask.counts) {
            let (counts, exposures) = model.count(&at, ask.value)?;
            stats.value = counts.value;
            let each = counts.blocks.into_iter().zip(exposures);
            stats.terms = each.map(|(counts, x)| term(counts, x)).collect();
            pending = Pending::Pass;
        } else if let Some(model) = self.bound.imputes().filter(|_| ask.counts || ask.value) {
            let apart = model.apart(&at, &wanted)?;
            (stats.value, stats.seen) = (apart.observed.value, Some(apart.seen));
            if ask.counts {
                let (observed, terms) = self.linear(&at, apart.observed.blocks, true);
                let (hidden, others) = self.linear(&at, apart.hidden, false);
                let both = terms.into_iter().zip(others).map(|both| match both {
                    (Statistic::Nothing, _) => Statistic::Nothing,
                    (one, other) => Statistic::Imputed(Box::new([one, other])),
                });
                stats.terms = both.collect();
                pending = Pending::Imputed(observed, hidden);
            }
        } else if let (Task::Likelihood, Some(value)) = (shared.task, self.bound.likelihood(&at)) {
            stats.value = Some(value);
        } else if ask.counts || ask.value {
            let counts = match shared.task {
                Task::Start(pass) => self.bound.expect_drawn(&at, pass, &wanted)?,
                _ => self.bound.expect(&at, &wanted)?,
            };
            stats.value = counts.value;
            if ask.counts {
                (new, pending) = self.renewed(&at, counts.blocks, &mut stats.terms)?;
            }
        }
        if ask.support || stats.value.is_some_and(|value| !value.is_finite()) {
            let along = shared.survey.along;
            stats.unsupported = self.bound.unsupported(&at)?.map(|(mut index, value)| {
                index[along] += place.first;
                (index, value)
            });
        }
        if ask.value {
            let step = Step::at(at.next());
            for (j, spec) in specs.iter().enumerate() {
                if let (Axis::Rows | Axis::Columns, Some(prior)) = (self.lies(j), &spec.prior) {
                    stats.ln_density += prior.ln_density(at.at(j), &step);
                }
            }
        }
        at.advance(new);
        Ok((stats, self.own(&at), pending))
    }

    /// What the M-step of the shard's own blocks makes of one of two parts of their counts, and the statistics. What is exposed to nothing keeps
    /// its value in one of them.
    fn linear(
        &self,
        at: &Parameters<T>,
        mut counts: Vec<Option<DMatrix<T>>>,
        keeps: bool,
    ) -> (Vec<DMatrix<T>>, Vec<Statistic>) {
        let count = self.bound.blocks().len();
        let (mut new, mut terms) = (vec![None; count], vec![Statistic::Nothing; count]);
        let (own, common): (Vec<_>, Vec<_>) =
            self.free().partition(|(_, lies)| *lies != Axis::None);
        for (j, lies) in own.into_iter().rev() {
            let Some(counts) = counts[j].take() else {
                continue;
            };
            let exposure = self.bound.exposure(j, Renewed { old: at, new: &new });
            new[j] = Some(match (lies, exposure) {
                (Axis::Columns, Some(exposure)) => {
                    let nothing = DMatrix::zeros(counts.nrows(), counts.ncols());
                    let old = if keeps { at.at(j) } else { &nothing };
                    self.bound.blocks()[j].divided(counts, old, exposure)
                }
                _ => {
                    terms[j] = sums(&counts);
                    counts
                }
            });
        }
        for (j, _) in common {
            let exposure = self.bound.exposure(j, Renewed { old: at, new: &new });
            terms[j] = term(counts[j].take(), exposure);
        }
        (new.into_iter().flatten().collect(), terms)
    }

    /// The M-step of the shard's own blocks; the counts of the others become statistics.
    fn renewed(
        &self,
        at: &Parameters<T>,
        mut counts: Vec<Option<DMatrix<T>>>,
        terms: &mut [Statistic],
    ) -> Result<Renewal<T>, FitError> {
        let specs = self.bound.blocks();
        let mut new = vec![None; specs.len()];
        let (mut across, mut common) = (Vec::new(), Vec::new());
        let free: Vec<_> = self.free().collect();
        for (j, lies) in free.into_iter().rev() {
            let Some(counts) = counts[j].take() else {
                continue;
            };
            let exposure = self.bound.exposure(j, Renewed { old: at, new: &new });
            match lies {
                Axis::None => common.push((j, counts)),
                Axis::Columns => {
                    let (block, _) = specs[j].m_step(counts, at.at(j), exposure, at.next())?;
                    new[j] = Some(block);
                }
                Axis::Rows if divides(&specs[j]) => {
                    terms[j] = sums(&counts);
                    across.insert(0, counts);
                }
                Axis::Rows => {
                    let (block, _) = specs[j].m_step(counts, at.at(j), exposure, at.next())?;
                    terms[j] = sums(&block);
                    new[j] = Some(block);
                }
            }
        }
        for (j, counts) in common {
            let exposure = self.bound.exposure(j, Renewed { old: at, new: &new });
            terms[j] = term(Some(counts), exposure);
        }
        let pending = match across.is_empty() {
            true => Pending::Nothing,
            false => Pending::Counts(across),
        };
        Ok((new, pending))
    }
}

pub(super) fn sums<T: Real>(counts: &DMatrix<T>) -> Statistic {
    let sums: Vec<T> = Factor::Columns(counts).component_sums();
    Statistic::Sums(sums.iter().map(|x| x.to_f64()).collect())
}

fn term<T: Real>(counts: Option<DMatrix<T>>, exposure: Option<Exposure<T>>) -> Statistic {
    match (counts.map(|counts| counts.map(|x| x.to_f64())), exposure) {
        (None, _) => Statistic::Nothing,
        (Some(counts), None) => Statistic::Counts(counts),
        (Some(counts), Some(exposure)) => Statistic::Rates(counts, widened(exposure)),
    }
}
