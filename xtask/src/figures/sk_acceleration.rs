//! What acceleration is worth, which the Skellam paper calls drastic and does not measure.

use std::cell::Cell;

use plca_fit::{Accelerate, Algorithm, Carried, Momentum, Parabolic, Plain, Squarem};
use skellam_snmf::{Entries, Prior, Signed, Snmf, SnmfError, SnmfInit, SnmfVb, VbInit};

use super::sk_uci::samples;
use super::support::rng;
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::reproduce::{Context, Entry, Figure, Measured};

pub(crate) const FIGURE: Figure = Figure {
    name: "sk_acceleration",
    source: "[SKELLAM] section 9",
    title: "Objective against passes over the data: plain, and squared, parabolic and linear extrapolation",
    criterion: "From the same start, plain EM and plain variational Bayes run for 3000 passes over the waveform data (a trial of an \
                extrapolation counts as a pass): how many accelerated passes reach what they end with, as measured. No run by SQUAREM \
                ends below its plain one; momentum may pass by a plateau where plain steps go on.",
    run,
};

const NAMES: [&str; 4] = ["plain", "SQUAREM", "parabolic", "momentum"];

/// Counts passes over the data.
struct Counted<A> {
    inner: A,
    passes: Cell<usize>,
}

impl<A: Algorithm> Algorithm for Counted<A> {
    type State = A::State;
    type Error = A::Error;

    fn step(
        &self,
        state: &mut A::State,
        measure: bool,
    ) -> std::result::Result<Option<f64>, A::Error> {
        self.passes.set(self.passes.get() + 1);
        self.inner.step(state, measure)
    }

    fn objective(&self, state: &A::State) -> std::result::Result<f64, A::Error> {
        self.passes.set(self.passes.get() + 1);
        self.inner.objective(state)
    }
}

impl<A: Accelerate> Accelerate for Counted<A> {
    fn pack(&self, state: &A::State) -> Vec<f64> {
        self.inner.pack(state)
    }

    fn unpack(&self, template: &A::State, flat: &[f64], fallback: &[f64]) -> A::State {
        self.inner.unpack(template, flat, fallback)
    }
}

/// `(passes, objective)` after every iteration until the passes are used up.
fn follow<A: Algorithm>(
    algorithm: &A,
    passes: &dyn Fn() -> usize,
    mut state: A::State,
    most: usize,
) -> std::result::Result<Vec<(f64, f64)>, A::Error> {
    let mut course = Vec::new();
    loop {
        let before = passes();
        if before >= most {
            return Ok(course);
        }
        if let Some(objective) = algorithm.step(&mut state, true)? {
            course.push((before as f64, objective));
        }
    }
}

/// The courses from one start.
fn courses<A: Accelerate<Error = SnmfError>>(
    bind: impl Fn() -> std::result::Result<A, SnmfError>,
    start: &A::State,
    most: usize,
) -> Result<Vec<Vec<(f64, f64)>>> {
    let counted = || -> Result<Counted<A>> {
        Ok(Counted {
            inner: bind()?,
            passes: Cell::new(0),
        })
    };
    let (plain, squarem) = (Plain(counted()?), Plain(Squarem(counted()?)));
    let (parabolic, momentum) = (Parabolic(counted()?), Momentum(counted()?));
    let start = || Carried::new(start.clone());
    Ok(vec![
        follow(&plain, &|| plain.0.passes.get(), start(), most)?,
        follow(&squarem, &|| squarem.0.0.passes.get(), start(), most)?,
        follow(&parabolic, &|| parabolic.0.passes.get(), start(), most)?,
        follow(&momentum, &|| momentum.0.passes.get(), start(), most)?,
    ])
}

/// Passes until an objective is reached.
fn reached(course: &[(f64, f64)], objective: f64) -> f64 {
    let first = course.iter().find(|p| p.1 >= objective);
    first.map_or(f64::INFINITY, |p| p.0)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let sets = samples(context)?;
    let set = sets
        .iter()
        .find(|s| s.name == "Wave")
        .ok_or("no waveform data")?;
    let data = Signed::from_matrix(set.values.clone())?;
    let most = context.size(3000, 600);
    let prior = Prior {
        rate: Entries::All(1e-3),
        ..Prior::flat()
    };
    let mut draws = rng(context.seed, 120);
    let snmf = Snmf::builder(3).prior(prior.clone()).build()?;
    let start = snmf.init(&data, &SnmfInit::default(), &mut draws)?;
    let em = courses(|| snmf.on(&data), &start, most)?;
    let vb = SnmfVb::builder(3).prior(prior).build()?;
    let bound = vb.on(&data)?;
    let means = VbInit::Means(start).state(&bound, &mut draws)?;
    let bayes = courses(|| vb.on(&data), &means, most)?;

    let mut panels = Vec::new();
    let mut entries = Vec::new();
    for (title, all) in [("EM", &em), ("variational Bayes", &bayes)] {
        let best = all
            .iter()
            .flatten()
            .map(|p| p.1)
            .fold(f64::NEG_INFINITY, f64::max);
        let series: Vec<Series> = (NAMES.iter().zip(all).enumerate())
            .map(|(at, (name, course))| {
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
        for (name, course) in NAMES.iter().zip(all).skip(1) {
            let judged = *name == "SQUAREM";
            let what = format!(
                "{title}, {name}: passes to what {most} plain ones reach{}",
                if judged {
                    "; ends no lower"
                } else {
                    ", as measured"
                }
            );
            let pass = !judged || end(course) >= plain - 1e-12 * plain.abs();
            let passes = Measured::Number(reached(course, plain));
            entries.push(context.entry(&what, passes, pass, &set.data, &files));
        }
    }
    Ok(entries)
}
