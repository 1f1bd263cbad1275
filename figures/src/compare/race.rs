//! Who reaches what, when: every comparison by time, from several starts.

use std::path::Path;

use super::files::Files;
use super::measure::{Ours, Theirs};
use crate::Result;
use crate::files::write_atomic;
use crate::plot::{Axis, Panel, Series, draw};

/// Nearer to the best is drawn as this.
const LEAST: f64 = 1e-4;

/// Our course from one start, and a run of every peer from the same.
#[derive(Debug)]
pub(super) struct Race {
    /// Seconds and objectives, as the peers measure them.
    ours: Vec<(f64, f64)>,
    /// In the order of the peers.
    theirs: Vec<Option<Theirs>>,
}

/// What a race says of one peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    /// Our objective over the peer's last one when the peer's time was over; infinite before our first one.
    pub(super) score: f64,
    /// The peer's seconds over ours until that objective; 0 where ours never came there.
    pub(super) sooner: f64,
}

impl Race {
    pub(super) fn new(course: &Ours, files: &Files, theirs: Vec<Option<Theirs>>) -> Self {
        let marks = course.marks.iter();
        let marks = marks.map(|&(seconds, objective)| (seconds, files.as_peers_do(objective)));
        Self {
            ours: marks.collect(),
            theirs,
        }
    }

    /// Of the peer at this place of the list; `None` if it could not run.
    pub(super) fn verdict(&self, peer: usize) -> Option<Verdict> {
        let theirs = self.theirs.get(peer)?.as_ref()?;
        let goal = theirs.objective?;
        let within = (self.ours.iter()).rfind(|(at, _)| *at <= theirs.seconds);
        let reached = self.ours.iter().find(|(_, objective)| *objective <= goal);
        Some(Verdict {
            score: within.map_or(f64::INFINITY, |(_, objective)| objective / goal),
            sooner: reached.map_or(0.0, |(at, _)| theirs.seconds / at),
        })
    }

    /// The lines of all runs, how far each is above the best objective of any.
    fn lines(&self, solver: &str, peers: &[&str]) -> Vec<Series> {
        let mut lines = vec![Series::new(
            &format!("plca, {solver}"),
            0,
            self.ours.clone(),
        )];
        for (at, (name, run)) in peers.iter().zip(&self.theirs).enumerate() {
            if let Some(run) = run {
                lines.push(Series::new(name, at + 1, run.marks.clone()));
            }
        }
        let points = lines.iter().flat_map(|s| &s.points);
        let best = points.map(|p| p.1).fold(f64::INFINITY, f64::min);
        for line in &mut lines {
            // A logarithm has no place for the start.
            line.points.retain(|p| p.0 > 0.0);
            let points = line.points.iter_mut();
            points.for_each(|p| p.1 = (p.1 / best - 1.0).max(LEAST));
        }
        lines
    }
}

/// One workload, a line for every run of every start. Both sides have the data in memory; ours counts what it makes of them before
/// the first iteration too.
pub(super) fn panel(workload: &str, solver: &str, peers: &[&str], races: &[Race]) -> Panel {
    let mut lines = Vec::new();
    for (at, race) in races.iter().enumerate() {
        for mut line in race.lines(solver, peers) {
            if at > 0 {
                line.name.clear();
            }
            lines.push(line);
        }
    }
    let of = |get: fn(&(f64, f64)) -> f64| {
        let all = lines.iter().flat_map(|s| &s.points).map(get);
        all.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), x| {
            (low.min(x), high.max(x))
        })
    };
    let ((first, last), (_, high)) = (of(|p| p.0), of(|p| p.1));
    Panel::lines(
        workload,
        &lines,
        &Axis::log("seconds", first, last),
        &Axis::log("objective above the best, relative", LEAST, high),
    )
}

/// Writes `race.png`, `race.svg` and `race.csv`.
pub(super) fn picture(panels: Vec<Panel>, out: &Path) -> Result<()> {
    let drawing = draw(panels.len().min(2), (600.0, 400.0), panels)?;
    for (ending, bytes) in [
        ("png", drawing.png.as_slice()),
        ("svg", drawing.svg.as_bytes()),
        ("csv", drawing.csv.as_slice()),
    ] {
        write_atomic(&out.join(format!("race.{ending}")), bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race(ours: &[(f64, f64)], theirs: (f64, f64)) -> Race {
        let theirs = Theirs {
            per_iteration: 1.0,
            seconds: theirs.0,
            objective: Some(theirs.1),
            marks: vec![(0.0, 9.0), theirs],
        };
        Race {
            ours: ours.to_vec(),
            theirs: vec![Some(theirs), None],
        }
    }

    #[test]
    fn a_verdict_is_by_the_peers_last_objective() {
        let won = race(&[(1.0, 5.0), (2.0, 3.0), (12.0, 1.0)], (10.0, 4.0));
        let verdict = won.verdict(0).unwrap();
        assert_eq!((verdict.score, verdict.sooner), (0.75, 5.0));
        assert_eq!(won.verdict(1), None);
        let lost = race(&[(1.0, 8.0), (9.0, 6.0)], (10.0, 4.0));
        let verdict = lost.verdict(0).unwrap();
        assert_eq!((verdict.score, verdict.sooner), (1.5, 0.0));
        let late = race(&[(20.0, 1.0)], (10.0, 4.0)).verdict(0).unwrap();
        assert_eq!((late.score, late.sooner), (f64::INFINITY, 0.5));
    }
}
