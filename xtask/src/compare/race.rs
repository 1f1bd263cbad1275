//! Who reaches what, when: a picture of every comparison.

use std::path::Path;

use super::files::Files;
use super::measure::{Ours, Theirs};
use crate::Result;
use crate::files::write_atomic;
use crate::plot::{Axis, Panel, Series, draw};

/// Nearer to the best is drawn as this.
const LEAST: f64 = 1e-4;

/// How far one run of ours and the first of every peer are above the best objective of all, against their seconds.
///
/// Both have the data in memory; ours counts what it makes of them before the first iteration too.
pub(super) fn picture(
    workload: &str,
    solver: &str,
    ours: &Ours,
    files: &Files,
    peers: &[(&str, Vec<Result<Theirs>>)],
    out: &Path,
) -> Result<()> {
    let mine = ours.marks.iter();
    let mine = mine.map(|&(seconds, objective)| (seconds, files.as_peers_do(objective)));
    let mut series = vec![Series::new(&format!("plca, {solver}"), 0, mine.collect())];
    for (at, (name, runs)) in peers.iter().enumerate() {
        if let Some(Ok(run)) = runs.first() {
            series.push(Series::new(name, at + 1, run.marks.clone()));
        }
    }
    let points = || series.iter().flat_map(|s| &s.points);
    let last = points().map(|p| p.0).fold(0.0, f64::max);
    let best = points().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let high = points().map(|p| p.1).fold(0.0, f64::max);
    for one in &mut series {
        let points = one.points.iter_mut();
        points.for_each(|p| p.1 = (p.1 / best - 1.0).max(LEAST));
    }
    let panel = Panel::lines(
        workload,
        &series,
        &Axis::linear("seconds", 0.0, last),
        &Axis::log("objective above the best, relative", LEAST, high / best),
    );
    let drawing = draw(1, (600.0, 400.0), vec![panel])?;
    for (ending, bytes) in [
        ("png", drawing.png.as_slice()),
        ("svg", drawing.svg.as_bytes()),
        ("csv", drawing.csv.as_slice()),
    ] {
        write_atomic(&out.join(format!("{workload}.{ending}")), bytes)?;
    }
    Ok(())
}
