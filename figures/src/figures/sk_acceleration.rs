//! What acceleration is worth, which the Skellam paper calls drastic and does not measure.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

use plca_fit::{
    Algorithm, FitError, Init, Iteration, Model, Parameters, Run, Solver, Status, Stop,
    blocks::BlockSpec, em::Stepped,
};
use plca_tensor::DenseTensor;
use skellam_snmf::{Entries, Prior, Snmf, SnmfVb};

use super::sk_uci::{FILES, samples};
use super::support::rng;
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::report::Entry;
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "sk_acceleration",
    source: "[SKELLAM] section 9",
    title: "Objective against passes over the data: plain, and squared, parabolic and linear extrapolation",
    criterion: "From the same start, plain EM and plain variational Bayes run for 3000 passes over the waveform data (a trial of an \
                extrapolation counts as a pass): how many accelerated passes reach what they end with, as measured. No run by SQUAREM \
                ends below its plain one; momentum may pass by a plateau where plain steps go on.",
    data: &FILES,
    run,
    control: Some(control),
};

const SOLVERS: [(&str, Solver); 4] = [
    ("plain", Solver::Em),
    ("SQUAREM", Solver::Squarem),
    ("parabolic", Solver::Parabolic),
    ("momentum", Solver::Momentum),
];

/// Counts passes over the data.
#[derive(Debug)]
struct Counted<'a> {
    inner: Box<dyn Algorithm<f64> + 'a>,
    passes: Rc<Cell<usize>>,
}

impl Counted<'_> {
    fn count(&self) {
        self.passes.set(self.passes.get() + 1);
    }
}

impl Algorithm<f64> for Counted<'_> {
    fn blocks(&self) -> &[BlockSpec<f64>] {
        self.inner.blocks()
    }

    fn step(
        &self,
        at: &mut Parameters<f64>,
        measure: bool,
    ) -> std::result::Result<Stepped, FitError> {
        self.count();
        self.inner.step(at, measure)
    }

    fn objective(&self, at: &Parameters<f64>) -> std::result::Result<f64, FitError> {
        self.count();
        self.inner.objective(at)
    }

    fn unit(&self) -> f64 {
        self.inner.unit()
    }

    fn extrapolates(&self, at: &Parameters<f64>) -> std::result::Result<(), FitError> {
        self.inner.extrapolates(at)
    }
}

/// `(passes, objective)` before every iteration until the passes are used up.
fn follow<M: Model<f64>>(
    model: &M,
    data: &DenseTensor<f64>,
    start: &M::State,
    solver: Solver,
    most: usize,
) -> Result<Vec<(f64, f64)>> {
    let passes = Rc::new(Cell::new(0));
    let counted = Counted {
        inner: model.bind(data)?,
        passes: passes.clone(),
    };
    let (mut before, mut course) = (0, Vec::new());
    let watch = |iteration: &Iteration<'_, f64>| {
        let measured = iteration.measured.into_iter();
        course.extend(measured.map(|point| (before as f64, point.objective)));
        before = passes.get();
        match before >= most {
            true => ControlFlow::Break(Status::Interrupted),
            false => ControlFlow::Continue(()),
        }
    };
    let stop = Stop::default().max_iter(most).tol(None).check_every(1);
    let run = Run::<M::State>::new(Box::new(counted)).solver(solver);
    let run = run.stop(stop).observe(watch);
    // Nothing is drawn: every block is given.
    run.run(start, &mut rng(0, 0)).map(drop)?;
    Ok(course)
}

/// The courses from one start.
fn courses<M: Model<f64>>(
    model: &M,
    data: &DenseTensor<f64>,
    start: &M::State,
    most: usize,
) -> Result<Vec<Vec<(f64, f64)>>> {
    let each = SOLVERS.iter();
    each.map(|&(_, solver)| follow(model, data, start, solver, most))
        .collect()
}

/// Passes until an objective is reached.
fn reached(course: &[(f64, f64)], objective: f64) -> f64 {
    let first = course.iter().find(|p| p.1 >= objective);
    first.map_or(f64::INFINITY, |p| p.0)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, false)
}

/// Plain and accelerated runs exchanged.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, true)
}

fn measure(context: &Context, exchanged: bool) -> Result<Vec<Entry>> {
    let sets = samples(context)?;
    let set = sets
        .iter()
        .find(|s| s.name == "Wave")
        .ok_or("no waveform data")?;
    let data = DenseTensor::try_from(set.values.clone())?;
    let most = context.size(3000, 600);
    let priors = Prior {
        rate: Entries::All(1e-3),
        ..Prior::flat()
    };
    let mut draws = rng(context.seed, 120);
    let snmf = Snmf::new(3)
        .replicates(skellam_snmf::Replicates::Limit)
        .priors(priors.clone());
    let start = snmf.init(&data, Init::default(), &mut draws)?;
    let em = courses(&snmf, &data, &start, most)?;
    let vb = SnmfVb::new(3).priors(priors);
    let bayes = courses(&vb, &data, &vb.at_means(&data, &start)?, most)?;

    let mut panels = Vec::new();
    let mut entries = Vec::new();
    for (title, all) in [("EM", &em), ("variational Bayes", &bayes)] {
        let best = all
            .iter()
            .flatten()
            .map(|p| p.1)
            .fold(f64::NEG_INFINITY, f64::max);
        let series: Vec<Series> = (SOLVERS.iter().zip(all).enumerate())
            .map(|(at, ((name, _), course))| {
                let gap = course
                    .iter()
                    .map(|&(n, o)| (n, (best - o).max(1e-9 * best.abs())));
                Series::new(name, at, gap.collect())
            })
            .collect();
        let gaps = || series.iter().flat_map(|s| &s.points).map(|p| p.1);
        let (low, high) = (
            gaps().fold(f64::INFINITY, f64::min),
            gaps().fold(0.0, f64::max),
        );
        panels.push(Panel::lines(
            title,
            &series,
            &Axis::linear("passes over the data", 0.0, most as f64),
            &Axis::log("distance to the best objective", low, high),
        ));
    }
    let files = context.picture(FIGURE.name, 2, (600.0, 400.0), panels)?;
    for (title, all) in [("EM", &em), ("variational Bayes", &bayes)] {
        let end = |course: &[(f64, f64)]| course.last().map_or(f64::NAN, |p| p.1);
        let plain = end(&all[0]);
        for ((name, solver), course) in SOLVERS.iter().zip(all).skip(1) {
            let what = format!("{title}, {name}: passes to what {most} plain ones reach");
            let passes = Entry::number(&what, reached(course, plain), &set.data, &files);
            entries.push(passes);
            if *solver == Solver::Squarem {
                let what = format!("{title}, {name}: gain over the end of the plain run, relative");
                let gain = (end(course) - plain) / plain.abs();
                let gain = if exchanged { -gain } else { gain };
                entries.push(Entry::number(&what, gain, &set.data, &files).at_least(-1e-12));
            }
        }
    }
    Ok(entries)
}
