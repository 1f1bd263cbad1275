//! Skellam paper, tables IV and V: clusters of four public sets.

use plca_dist::random::below;
use plca_fit::Solver;
use rayon::prelude::*;

use super::sk_clustering::{METHODS, Method, Problem, accuracy};
use super::sk_fit::{MOMENTUM, PARABOLIC};
use super::sk_uci::{FILES, Samples, samples};
use super::support::{mean_sd, rng};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Ranges};
use crate::report::Entry;
use crate::reproduce::{Context, Figure, Size};

pub(crate) const FIGURE: Figure = Figure {
    name: "sk_tables_4_5",
    source: "[SKELLAM] tables IV and V",
    title: "Clustering by the largest activation: accuracy in per cent, mean and standard deviation over random starts",
    criterion: "The paper's protocol: unscaled attributes, as many components as classes, atoms uniform on (0, 1), accelerated EM. Mean \
                accuracies of Sk-inf and Sk-inf-VB within two of the paper's standard deviations of its means (1.5 points where that \
                is more), and not significantly below those of Ding 2010; on the wave data, where variational fits lose accuracy as they converge, \
                the difference is judged of those that the paper's own acceleration and stop rule end, and shown of the others. The other rows, and which spread is smaller, as measured.",
    data: &FILES,
    run,
    control: Some(control),
};

/// A set as the paper gives it: table IV, then table V as mean and standard deviation of dummy, k-means, Ding 2010, Sk-inf and
/// Sk-inf-VB.
struct Paper {
    name: &'static str,
    /// Samples, attributes, classes.
    shape: [usize; 3],
    dummy: f64,
    rows: [(f64, f64); 4],
}

const TABLE_4: &str = "[SKELLAM] table IV";

const PAPER: [Paper; 4] = [
    Paper {
        name: "Ionosphere",
        shape: [351, 34, 2],
        dummy: 64.1,
        rows: [(70.8, 1.6), (58.7, 4.8), (70.6, 0.6), (70.7, 0.0)],
    },
    Paper {
        name: "Wave",
        shape: [5000, 21, 3],
        dummy: 33.9,
        rows: [(50.2, 0.0), (61.9, 10.1), (64.5, 10.8), (64.1, 10.2)],
    },
    Paper {
        name: "Image",
        shape: [2310, 19, 7],
        dummy: 14.3,
        rows: [(52.2, 5.0), (46.9, 5.0), (48.2, 5.6), (50.7, 3.0)],
    },
    Paper {
        name: "Shuttle",
        shape: [14500, 9, 7],
        dummy: 79.2,
        rows: [(60.8, 9.9), (30.0, 5.1), (53.1, 12.4), (36.8, 7.4)],
    },
];

/// Accuracies in per cent of every start of a method, in the order of the starts.
fn accuracies(
    set: &Samples,
    problem: &Problem,
    (method, solver): (Method, Solver),
    seeds: &[u64],
) -> Result<Vec<f64>> {
    let one = |&seed: &u64| -> Result<f64> {
        let mut draws = rng(seed, 60 + method as u64);
        let labels = problem.labels(method, solver, &mut draws)?;
        Ok(100.0 * accuracy(&set.classes, &labels, set.k())?)
    };
    seeds.par_iter().map(one).collect()
}

fn share_of_largest(set: &Samples) -> f64 {
    let count = |k| set.classes.iter().filter(|&&c| c == k).count();
    let most = (0..set.k()).map(count).max().unwrap_or(0);
    100.0 * most as f64 / set.classes.len() as f64
}

/// Mean difference and half of its 95 % interval.
fn difference(a: &[f64], b: &[f64]) -> (f64, f64) {
    let ((ma, sa), (mb, sb)) = (mean_sd(a), mean_sd(b));
    let variance = sa * sa / a.len() as f64 + sb * sb / b.len() as f64;
    (ma - mb, 1.96 * variance.sqrt())
}

/// What is known of one set after all starts.
struct Found<'a> {
    set: &'a Samples,
    paper: &'a Paper,
    by_method: Vec<Vec<f64>>,
    /// Those of Sk-inf-VB by the paper's acceleration, where convergence takes accuracy away.
    as_paper: Option<Vec<f64>>,
}

impl Found<'_> {
    fn panel(&self) -> Panel {
        let all = self.by_method.iter().chain(&self.as_paper);
        let all = all.map(|x| Some(mean_sd(x)));
        let ours: Vec<_> = [Some((share_of_largest(self.set), 0.0))]
            .into_iter()
            .chain(all)
            .collect();
        let [.., vb] = self.paper.rows;
        let rows = self.paper.rows.into_iter();
        let theirs = rows.chain(self.as_paper.is_some().then_some(vb)).map(Some);
        let theirs: Vec<_> = [Some((self.paper.dummy, 0.0))]
            .into_iter()
            .chain(theirs)
            .collect();
        let names: Vec<&str> = ["dummy"]
            .into_iter()
            .chain(METHODS.map(Method::name))
            .chain(self.as_paper.is_some().then_some("VB, P-EM"))
            .collect();
        let series = [
            Ranges {
                name: "paper".into(),
                colour: 1,
                values: theirs,
            },
            Ranges {
                name: "here".into(),
                colour: 0,
                values: ours,
            },
        ];
        let title = format!("{}: {} samples", self.paper.name, self.set.classes.len());
        let y = Axis::linear("accuracy, per cent", 0.0, 100.0);
        Panel::ranges(&title, &names, &series, &y).legend(LegendPosition::InsideBottomRight)
    }

    fn entries(&self, context: &Context, files: &[String]) -> Vec<Entry> {
        let Self {
            set,
            paper,
            by_method,
            as_paper,
        } = self;
        let name = paper.name;
        let mut entries = Vec::new();
        let row = |what: &str, value: f64| {
            Entry::number(&format!("{name}: {what}"), value, &set.data, files)
        };
        let shape = [set.classes.len(), set.values.nrows(), set.k()];
        if set.data.real {
            let names = ["samples", "attributes", "classes"];
            for ((what, value), theirs) in names.into_iter().zip(shape).zip(paper.shape) {
                let theirs = theirs as f64;
                let row = row(what, value as f64).within(theirs, theirs);
                entries.push(row.paper(theirs, TABLE_4));
            }
            let (low, high) = (paper.dummy - 0.06, paper.dummy + 0.06);
            let row = row("largest class, per cent", share_of_largest(set));
            entries.push(row.within(low, high).paper(paper.dummy, TABLE_4));
        }
        for ((method, found), (mean, sd)) in METHODS.iter().zip(by_method).zip(paper.rows) {
            let (ours, spread) = mean_sd(found);
            let judged = matches!(method, Method::Em | Method::Vb);
            // The mean of few starts is known to two standard errors.
            let unsure = match context.size {
                Size::Full => 0.0,
                _ => 2.0 * spread / (found.len() as f64).sqrt(),
            };
            let room = (2.0 * sd).max(1.5) + unsure;
            let row = row(&format!("accuracy of {}, per cent", method.name()), ours);
            let row = row
                .paper_mean((mean, sd), "[SKELLAM] table V")
                .detail(format!(
                    "standard deviation {spread:.1} over {} starts",
                    found.len()
                ));
            entries.push(match judged {
                true => row.within(mean - room, mean + room),
                false => row,
            });
        }
        let ding = &by_method[Method::Ding as usize];
        // The upper end of the interval.
        let compared = |what: &str, found: &[f64]| {
            let (d, half) = difference(found, ding);
            let what = format!("{what} less Ding 2010, upper end of the 95 % interval");
            row(&what, d + half).detail(format!("{d:.1} ± {half:.1}"))
        };
        for method in [Method::Em, Method::Vb] {
            let row = compared(method.name(), &by_method[method as usize]);
            entries.push(match (method, as_paper) {
                (Method::Vb, Some(_)) => row,
                _ => row.at_least(0.0),
            });
        }
        if let Some(found) = as_paper {
            let row = compared("Sk-inf-VB as the paper accelerates and stops it", found);
            entries.push(row.at_least(0.0));
        }
        let spread = |m: Method| mean_sd(&by_method[m as usize]).1;
        let (em, vb) = (spread(Method::Em), spread(Method::Vb));
        let what = "standard deviation of Sk-inf-VB less that of Sk-inf";
        entries.push(row(what, vb - em).detail(format!("{vb:.2} against {em:.2}")));
        entries
    }
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, false)
}

/// Sets of other sizes, and clusters by chance in place of those of the Skellam models.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, true)
}

/// The set without its last attribute and an eighth of its samples, its first two classes taken for one.
fn spoilt(set: &Samples) -> Samples {
    let (f, n) = (set.values.nrows() - 1, set.classes.len() * 7 / 8);
    let merged = set.classes.iter().map(|class| class.saturating_sub(1));
    Samples {
        name: set.name,
        values: set.values.view((0, 0), (f, n)).into_owned(),
        classes: merged.take(n).collect(),
        data: set.data.clone(),
    }
}

/// Accuracies in per cent of clusters by chance.
fn by_chance(set: &Samples, seeds: &[u64]) -> Result<Vec<f64>> {
    let one = |&seed: &u64| -> Result<f64> {
        let mut draws = rng(seed, 501);
        let label = |_: &usize| below(set.k() as u64, &mut draws) as usize;
        let labels: Vec<usize> = set.classes.iter().map(label).collect();
        Ok(100.0 * accuracy(&set.classes, &labels, set.k())?)
    };
    seeds.iter().map(one).collect()
}

fn measure(context: &Context, wrong: bool) -> Result<Vec<Entry>> {
    let seeds: Vec<u64> = context.starts(context.sizes([4, 10, 100]) as u64).collect();
    let max_iter = context.size(1000, 60);
    let mut sets = samples(context)?;
    // The two large sets take minutes.
    sets.truncate(context.size(sets.len(), 2));
    let mut found = Vec::new();
    for set in &sets {
        let Some(paper) = PAPER.iter().find(|p| p.name == set.name) else {
            continue;
        };
        let problem = Problem::new(&set.values, set.k(), max_iter)?;
        let of = |method, by| accuracies(set, &problem, (method, by), &seeds);
        let of = |method, by| match method {
            Method::Em | Method::Vb if wrong => by_chance(set, &seeds),
            _ => of(method, by),
        };
        let by_method = METHODS.iter().map(|&m| of(m, MOMENTUM));
        let by_method = by_method.collect::<Result<_>>()?;
        let as_paper = (set.name == "Wave").then(|| of(Method::Vb, PARABOLIC));
        found.push(Found {
            set,
            paper,
            by_method,
            as_paper: as_paper.transpose()?,
        });
    }
    let columns = found.len().min(2);
    let panels = found.iter().map(Found::panel).collect();
    let files = context.picture(FIGURE.name, columns, (620.0, 380.0), panels)?;
    let mut entries: Vec<Entry> = (found.iter())
        .flat_map(|f| f.entries(context, &files))
        .collect();
    if wrong {
        // Of spoilt sets the rows of table IV alone.
        for one in &found {
            let spoilt = spoilt(one.set);
            let one = Found {
                set: &spoilt,
                by_method: one.by_method.clone(),
                as_paper: one.as_paper.clone(),
                ..*one
            };
            let is_of_table_4 =
                |e: &Entry| e.reference.as_ref().is_some_and(|r| r.place == TABLE_4);
            entries.retain(|e| !is_of_table_4(e) || !e.criterion.starts_with(one.paper.name));
            let rows = one.entries(context, &files);
            entries.extend(rows.into_iter().filter(is_of_table_4));
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_difference_shrinks_with_the_starts() {
        let few = difference(&[1.0, 3.0], &[0.0, 0.0]);
        let many = difference(&[1.0, 3.0].repeat(50), &[0.0; 100]);
        assert_eq!((few.0, many.0), (2.0, 2.0));
        assert!(many.1 > 0.0 && many.1 < few.1 / 5.0);
    }
}
