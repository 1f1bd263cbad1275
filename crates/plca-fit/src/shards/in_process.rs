//! All shards in one process.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_tensor::{Data, Real};
use rand::Rng;

use super::elsewhere::started;
use super::sharded::{checked, divides, gathered, settles, sums};
use super::squared::squared;
use super::states::{Pending, Statistic, Task};
use super::{
    Elsewhere, Engine, GlobalModel, Local, Partial, PassRequest, ShardId, Sharded, Shared, Stats,
    Survey, Version,
};
use crate::em::extrapolates;
use crate::{
    Algorithm, Axis, BlockSpec, Draw, FitError, Frozen, Model, Parameters, Progress, Sense,
    Settings, Stepped, explain_given,
};

/// A source of shards: memory, or files that are read one by one.
pub trait Shards<T: Real>: Debug + Send + Sync {
    /// How many there are.
    fn count(&self) -> u32;

    /// Reads a shard and hands it to `each`, once.
    ///
    /// # Errors
    ///
    /// A shard that cannot be read, and those of `each`.
    fn read(&self, shard: u32, each: &mut Visit<'_, T>) -> Result<(), FitError>;
}

/// A function that is called with a shard.
pub type Visit<'a, T> = dyn FnMut(&dyn Data<T>) -> Result<(), FitError> + 'a;

impl<T: Real> Shards<T> for Vec<Box<dyn Data<T>>> {
    fn count(&self) -> u32 {
        u32::try_from(self.len()).unwrap_or(u32::MAX)
    }

    fn read(&self, shard: u32, each: &mut Visit<'_, T>) -> Result<(), FitError> {
        each(&*self[shard as usize])
    }
}

/// A model on shards that one process goes through, one after the other: an [`Algorithm`] for a [`Run`](crate::Run), whose results are bit-identical to
/// those of any other engine over the same shards.
///
/// Every iteration reads every shard once; where a model renews its own blocks in turn, twice.
#[derive(Debug)]
pub struct InProcess<'a, T: Real> {
    model: &'a dyn Sharded<T>,
    shards: &'a dyn Shards<T>,
    survey: Survey,
    whole: GlobalModel<T>,
    places: Vec<ShardId>,
    /// What the model read off every shard.
    known: Vec<Vec<f64>>,
}

impl<'a, T: Real> InProcess<'a, T> {
    /// Reads every shard once, to collect what a fit needs in advance.
    ///
    /// # Errors
    ///
    /// [`FitError`]: a shard that cannot be read or that does not fit the others, settings that need all data at once.
    pub fn new(model: &'a dyn Sharded<T>, shards: &'a dyn Shards<T>) -> Result<Self, FitError> {
        let count = shards.count();
        let (mut sum, mut first) = (Partial::empty(count), 0);
        let (mut places, mut known) = (Vec::new(), Vec::new());
        for shard in 0..count {
            places.push(ShardId {
                shard,
                shards: count,
                first,
            });
            let mut survey = None;
            shards.read(shard, &mut |data| {
                let found = model.survey(data, first)?;
                known.push(model.read_off(data)?);
                first += found.shape[found.along];
                survey = Some(found);
                Ok(())
            })?;
            if let Some(survey) = survey {
                sum = sum.join(Partial::leaf(shard, count, survey)?)?;
            }
        }
        let survey = sum.root()?;
        let mut whole = checked(model, &survey)?;
        let of_data = |spec: &BlockSpec<T>| matches!(spec.draw, Draw::Data(_));
        let parts = match whole.blocks.iter().any(of_data) {
            true => &places[..],
            false => &[],
        };
        let mut data = vec![Vec::new(); whole.blocks.len()];
        for (place, known) in parts.iter().zip(&known) {
            shards.read(place.shard, &mut |shard| {
                let bound = model.bind_shard(shard, known, &survey)?;
                for (data, spec) in data.iter_mut().zip(bound.blocks()) {
                    if let Draw::Data(values) = &spec.draw {
                        data.extend_from_slice(values);
                    }
                }
                Ok(())
            })?;
        }
        for (spec, values) in whole.blocks.iter_mut().zip(data) {
            if !values.is_empty() {
                spec.draw = Draw::Data(values);
            }
        }
        Ok(Self {
            model,
            shards,
            survey,
            whole,
            places,
            known,
        })
    }

    /// The facts about all data.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    fn lies(&self, block: usize) -> Axis {
        self.model.sample_axis(&self.whole.blocks, block)
    }

    /// The sums of columns that run across the shards and do not sum to 1, as the shards would send them.
    fn sums(&self, at: &Parameters<T>) -> Result<Vec<Vec<f64>>, FitError> {
        let count = self.whole.blocks.len();
        let specs = self.whole.blocks.iter().enumerate();
        let summed =
            |&(j, spec): &(usize, &BlockSpec<T>)| self.lies(j) == Axis::Rows && !divides(spec);
        let mut all = vec![Vec::new(); count];
        for (j, _) in specs.filter(summed) {
            let mut sum = Partial::empty(self.shards.count());
            for &place in &self.places {
                let mut stats = Stats::none(count);
                let rows = at.at(j).rows(place.first, self.samples(place));
                stats.terms[j] = sums(&rows.into_owned());
                sum = sum.join(Partial::leaf(place.shard, place.shards, stats)?)?;
            }
            if let Statistic::Sums(sums) = sum.root()?.terms.swap_remove(j) {
                all[j] = sums;
            }
        }
        Ok(all)
    }

    /// The shared part of parameters.
    fn shared(&self, at: &Parameters<T>) -> Result<Shared<T>, FitError> {
        let blocks = at.blocks().enumerate();
        let shared = blocks.filter(|&(j, _)| self.lies(j) == Axis::None);
        let shared = shared.map(|(_, (name, block))| (name.to_string(), block.clone()));
        let parameters = Parameters::named(shared.collect(), 1.0);
        Ok(Shared {
            version: Version,
            survey: self.survey.clone(),
            parameters: parameters
                .with(at.power(), self.whole.mass)
                .at_iteration(at.iteration()),
            sums: self.sums(at)?,
            scale: 1.0,
            task: Task::Iterate,
            back: false,
        })
    }

    /// How many samples a shard has.
    fn samples(&self, place: ShardId) -> usize {
        let next = self.places.get(place.shard as usize + 1);
        let end = next.map_or(self.survey.shape[self.survey.along], |next| next.first);
        end - place.first
    }

    /// The part of parameters that belongs to a shard.
    fn local(&self, at: &Parameters<T>, place: ShardId) -> Local<T> {
        let samples = self.samples(place);
        let blocks = at.matrices().iter().enumerate();
        let blocks = blocks.filter_map(|(j, block)| match self.lies(j) {
            Axis::Rows => Some(block.rows(place.first, samples).into_owned()),
            Axis::Columns => Some(block.columns(place.first, samples).into_owned()),
            Axis::None => None,
        });
        Local {
            version: Version,
            place,
            known: self.known[place.shard as usize].clone(),
            blocks: blocks.collect(),
            pending: Pending::Nothing,
            points: Vec::new(),
        }
    }

    /// The statistics of a shard.
    fn leaf(
        &self,
        local: &mut Local<T>,
        shared: &Shared<T>,
        ask: PassRequest,
    ) -> Result<Partial<Stats>, FitError> {
        let ShardId { shard, shards, .. } = local.place;
        let mut leaf = Partial::empty(shards);
        self.shards.read(shard, &mut |data| {
            let stats = self.model.e_step(data, local, shared, ask)?;
            leaf = Partial::leaf(shard, shards, stats)?;
            Ok(())
        })?;
        Ok(leaf)
    }

    /// All blocks, of which those of the samples may not be finished.
    fn gathered(
        &self,
        shared: &Shared<T>,
        mut locals: Vec<Local<T>>,
    ) -> Result<Vec<DMatrix<T>>, FitError> {
        for local in &mut locals {
            if local.pending != Pending::Nothing || shared.back {
                let shard = local.place.shard;
                (self.shards).read(shard, &mut |data| self.model.finish(data, local, shared))?;
            }
        }
        gathered(self.model, &self.whole.blocks, shared, &locals)
    }

    /// What these shards answer as an engine at these parameters, of which the shared ones are handed on.
    fn asked<O>(
        &self,
        at: &Parameters<T>,
        of: impl FnOnce(&dyn Algorithm<T>, &Parameters<T>) -> Result<O, FitError>,
    ) -> Result<O, FitError> {
        let (held, shared) = (self.held(at), RefCell::new(self.shared(at)?));
        let all = self.driven(&held, &shared);
        of(&all, &shared.borrow().parameters)
    }

    fn driven<'e>(&'e self, held: &'e Held<'e, T>, at: &'e RefCell<Shared<T>>) -> Elsewhere<'e, T> {
        Elsewhere::of(self.model, held, Cow::Borrowed(&self.whole), at)
    }

    fn iterated(
        &self,
        at: &mut Parameters<T>,
        task: Task,
        measure: bool,
    ) -> Result<Stepped, FitError> {
        let (held, shared) = (self.held(at), RefCell::new(self.shared(at)?));
        let stepped = self.driven(&held, &shared).iterate(task, measure)?;
        let locals = held.locals();
        self.advance(at, &shared.into_inner(), locals)?;
        Ok(stepped)
    }

    fn held<'h>(&'h self, at: &'h Parameters<T>) -> Held<'h, T> {
        Held {
            of: self,
            at,
            locals: RefCell::default(),
        }
    }

    /// Puts all blocks but frozen ones in place of the old ones, and counts the iterations.
    fn advance(
        &self,
        at: &mut Parameters<T>,
        shared: &Shared<T>,
        locals: Vec<Local<T>>,
    ) -> Result<(), FitError> {
        let blocks = self.gathered(shared, locals)?;
        let free = self.whole.blocks.iter().zip(blocks);
        let free = free.map(|(spec, block)| (spec.frozen != Frozen::Whole).then_some(block));
        at.advance(free.collect());
        while at.iteration() < shared.parameters.iteration() {
            at.count();
        }
        Ok(())
    }
}

/// All shards as an engine, from parameters on.
#[derive(Debug)]
struct Held<'a, T: Real> {
    of: &'a InProcess<'a, T>,
    at: &'a Parameters<T>,
    /// What belongs to the samples of the shards, where a pass has changed it.
    locals: RefCell<BTreeMap<u32, Local<T>>>,
}

impl<T: Real> Held<'_, T> {
    fn locals(&self) -> Vec<Local<T>> {
        self.locals.take().into_values().collect()
    }
}

impl<T: Real> Engine<T> for Held<'_, T> {
    fn pass(&self, shared: &Shared<T>, ask: PassRequest) -> Result<Stats, FitError> {
        let mut locals = self.locals.borrow_mut();
        let mut sum = Partial::empty(self.of.shards.count());
        for &place in &self.of.places {
            let held = locals.remove(&place.shard);
            // What an earlier pass has changed stays, even where this one changes nothing.
            let keep = ask.counts || held.is_some();
            let mut local = held.unwrap_or_else(|| self.of.local(self.at, place));
            sum = sum.join(self.of.leaf(&mut local, shared, ask)?)?;
            if keep {
                locals.insert(place.shard, local);
            }
        }
        Ok(sum.root()?)
    }
}

/// Passes that make a start, each told before it begins.
#[derive(Debug)]
struct Telling<'h, 'p, 't, T: Real> {
    held: &'h Held<'h, T>,
    progress: RefCell<&'p mut Progress<'t>>,
    done: Cell<usize>,
    of: usize,
}

impl<T: Real> Engine<T> for Telling<'_, '_, '_, T> {
    fn pass(&self, shared: &Shared<T>, ask: PassRequest) -> Result<Stats, FitError> {
        let done = self.done.replace(self.done.get() + 1);
        self.progress.borrow_mut().step(done, self.of)?;
        self.held.pass(shared, ask)
    }
}

impl<T: Real> Algorithm<T> for InProcess<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.whole.blocks
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        self.iterated(at, Task::Iterate, measure)
    }

    fn by_samples(&self) -> Result<bool, FitError> {
        settles(self.model, &self.whole)
    }

    fn step_by_samples(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        self.iterated(at, Task::Settle, measure)
    }

    fn squared(&self, at: &mut Parameters<T>, measure: bool) -> Option<Result<Stepped, FitError>> {
        let attempt = |at: &mut Parameters<T>| {
            let (held, start) = (self.held(at), self.shared(at)?);
            let (shared, stepped) = squared(self.model, &self.whole, &held, start, measure)?;
            let locals = held.locals();
            self.advance(at, &shared, locals)?;
            Ok(stepped)
        };
        Some(attempt(at))
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.asked(at, |all, at| all.objective(at))
    }

    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.asked(at, |all, at| all.likelihood(at))
    }

    fn draw(
        &self,
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<DMatrix<T>>, FitError> {
        let specs = &self.whole.blocks;
        let drawn: Vec<_> = specs.iter().map(|spec| spec.drawn(rng)).collect();
        if self.model.start_passes() == 0 {
            return Ok(drawn);
        }
        let names = specs.iter().map(|spec| spec.name.to_string());
        let at = Parameters::named(names.zip(drawn).collect(), 1.0);
        let at = at.with(self.whole.power, self.whole.mass);
        let mut shared = self.shared(&at)?.to(Task::Start(0));
        let held = self.held(&at);
        let telling = Telling {
            held: &held,
            progress: RefCell::new(progress),
            done: Cell::new(0),
            of: self.model.start_passes() as usize,
        };
        started(self.model, &telling, &mut shared)?;
        self.gathered(&shared, held.locals())
    }

    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        given: &[bool],
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        match self.model.even(&self.survey)? {
            Some(even) => explain_given(self, blocks, given, even, progress),
            None => Ok(()),
        }
    }

    fn given(&self, block: usize, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        self.model.given(&self.whole.blocks[block], value)
    }

    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        self.asked(at, |all, at| all.check_start(at))
    }

    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        if self.survey.complete {
            return Ok(None);
        }
        if self.whole.conditional {
            return self.asked(at, |all, at| all.scale(at));
        }
        let shared = self.shared(at)?;
        let mut all = Vec::new();
        for &place in &self.places {
            let local = self.local(at, place);
            self.shards.read(place.shard, &mut |data| {
                all.extend(self.model.scale(data, &local, &shared)?.unwrap_or_default());
                Ok(())
            })?;
        }
        Ok((!all.is_empty()).then_some(all))
    }

    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError> {
        extrapolates(&self.whole.blocks, at)
    }

    fn tempers(&self) -> bool {
        self.whole.power != 1.0
    }

    fn sense(&self) -> Sense {
        self.whole.sense
    }

    fn unit(&self) -> f64 {
        self.survey.absolute
    }

    fn mass(&self) -> f64 {
        self.whole.mass
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        let known: Vec<&[f64]> = self.known.iter().map(Vec::as_slice).collect();
        let facts = self.whole.facts.iter().cloned();
        facts.chain(self.model.remembered(&known)).collect()
    }

    fn power(&self) -> f64 {
        self.whole.power
    }
}

/// A model of shards in one process that ignores the data it is given, so that code for any model can run it.
#[derive(Debug)]
pub struct OnShards<'a, T: Real> {
    model: &'a dyn Sharded<T>,
    shards: &'a dyn Shards<T>,
}

impl<'a, T: Real> OnShards<'a, T> {
    /// The model of these shards.
    pub fn new(model: &'a dyn Sharded<T>, shards: &'a dyn Shards<T>) -> Self {
        Self { model, shards }
    }
}

impl<T: Real> Settings for OnShards<'_, T> {
    fn components(&self) -> usize {
        self.model.components()
    }

    fn check(&self) -> Result<(), FitError> {
        self.model.check()
    }
}

impl<T: Real> Model<T> for OnShards<'_, T> {
    type State = Parameters<T>;

    fn bind<'a>(&'a self, _: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        let bound = InProcess::new(self.model, self.shards)?;
        Ok(Box::new(bound))
    }

    /// A run that knows no model: cooling would bind this one to other data, which it does not read.
    fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<crate::Run<'a, Parameters<T>>, FitError> {
        Ok(crate::Run::new(self.bind(data)?))
    }
}
