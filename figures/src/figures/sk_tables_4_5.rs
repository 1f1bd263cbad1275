//! Skellam paper, tables IV and V: clusters of four public sets.

use plca_dist::random::below;
use plca_fit::Solver;
use rayon::prelude::*;

use super::sk_clustering::{METHODS, Method, Problem, accuracy};
use super::sk_fit::{MOMENTUM, PARABOLIC};
use super::sk_uci::{FILES, Samples, samples};
use super::support::{Runs, mean_sd, rng};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Ranges};
use crate::report::{Condition, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "sk_tables_4_5",
    source: "[SKELLAM] tables IV and V",
    title: "Clustering by the largest activation: accuracy in per cent, mean and standard deviation over random starts",
    criterion: "The paper's protocol: unscaled attributes, as many components as classes, atoms uniform on (0, 1), accelerated EM. Mean \
                accuracies of Sk-inf and Sk-inf-VB do not differ from the paper's (Welch's test, 5 % for all together, the paper's number of starts, which \
                it does not say, taken for ten), and stand to the largest class, k-means and Ding 2010 as the paper's do, by the 95 % interval, where the \
                paper's means and deviations let so many starts tell; where fits lose accuracy as they converge, Sk-inf of the \
                ionosphere and Sk-inf-VB of the wave data, those are judged that the paper's own acceleration and stop rule end, and the others shown. Which spread is smaller, as measured.",
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
const TABLE_5: &str = "[SKELLAM] table V, as its notebook has it";
/// Starts of the paper, which says no number; its copy of the experiment has one, its deviations are of more.
const STARTS: f64 = 10.0;
/// The probability that none of the tests of two methods on four sets against the paper fails by chance is 95 % at least.
const LEVEL: f64 = 1.0 - 0.05 / 8.0;
/// The paper's numbers have one digit behind the point.
const ROUNDING: f64 = 0.05;

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

/// Mean and deviation in the paper.
fn theirs((mean, deviation): (f64, f64)) -> Runs {
    Runs {
        mean,
        deviation,
        number: STARTS,
    }
}

/// What is known of one set after all starts.
struct Found<'a> {
    set: &'a Samples,
    paper: &'a Paper,
    by_method: Vec<Vec<f64>>,
    /// Those of one method by the paper's acceleration, where convergence takes accuracy away.
    as_paper: Option<(Method, Vec<f64>)>,
}

impl Found<'_> {
    fn panel(&self) -> Panel {
        let by_paper = self.as_paper.as_ref();
        let all = self.by_method.iter().chain(by_paper.map(|p| &p.1));
        let all = all.map(|x| Some(mean_sd(x)));
        let ours: Vec<_> = [Some((share_of_largest(self.set), 0.0))]
            .into_iter()
            .chain(all)
            .collect();
        let again = by_paper.map(|p| self.paper.rows[p.0 as usize]);
        let rows = self.paper.rows.into_iter();
        let theirs = rows.chain(again).map(Some);
        let theirs: Vec<_> = [Some((self.paper.dummy, 0.0))]
            .into_iter()
            .chain(theirs)
            .collect();
        let names: Vec<&str> = ["dummy"]
            .into_iter()
            .chain(METHODS.map(Method::name))
            .chain(by_paper.map(|p| match p.0 {
                Method::Vb => "VB, P-EM",
                _ => "Sk-inf, P-EM",
            }))
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

    fn entries(&self, files: &[String]) -> Result<Vec<Entry>> {
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
            let (ours, paper) = (Runs::of(found), theirs((mean, sd)));
            let room = ours.half_against(&paper, LEVEL)? + ROUNDING;
            let row = row(
                &format!("accuracy of {}, per cent", method.name()),
                ours.mean,
            );
            let row = row.paper_mean((mean, sd), TABLE_5).detail(format!(
                "standard deviation {:.1} over {} starts",
                ours.deviation,
                found.len()
            ));
            entries.push(match is_judged(*method) {
                true => row.within(mean - room, mean + room),
                false => row,
            });
        }
        for method in [Method::Em, Method::Vb] {
            let found = &by_method[method as usize];
            entries.extend(self.compared(method, method.name(), found, true, files)?);
        }
        if let Some((method, found)) = as_paper {
            let what = format!("{} as the paper accelerates and stops it", method.name());
            let printed = paper.rows[*method as usize];
            let ours = Runs::of(found);
            let row = row(&format!("accuracy of {what}, per cent"), ours.mean);
            let row = row.paper_mean(printed, TABLE_5);
            let row = row.detail(format!("standard deviation {:.1}", ours.deviation));
            entries.push(row);
            entries.extend(self.compared(*method, &what, found, false, files)?);
        }
        let spread = |m: Method| mean_sd(&by_method[m as usize]).1;
        let (em, vb) = (spread(Method::Em), spread(Method::Vb));
        let what = "standard deviation of Sk-inf-VB less that of Sk-inf";
        entries.push(row(what, vb - em).detail(format!("{vb:.2} against {em:.2}")));
        Ok(entries)
    }

    /// The end, nearer to the other sign than the paper's, of the 95 % interval of a method's mean less that of each baseline. Judged if a
    /// difference such as the paper's, of starts that spread as its do, is twice as large as half of the interval of this number of starts.
    fn compared(
        &self,
        method: Method,
        name: &str,
        found: &[f64],
        judged: bool,
        files: &[String],
    ) -> Result<Vec<Entry>> {
        let paper = theirs(self.paper.rows[method as usize]);
        let baseline = |m: Method| {
            let (ours, paper) = (&self.by_method[m as usize], self.paper.rows[m as usize]);
            (m.name(), Runs::of(ours), theirs(paper))
        };
        let largest = |share: f64| Runs {
            mean: share,
            deviation: 0.0,
            number: found.len() as f64,
        };
        let dummy = (share_of_largest(self.set), self.paper.dummy);
        let baselines = [
            ("the largest class", largest(dummy.0), largest(dummy.1)),
            baseline(Method::KMeans),
            baseline(Method::Ding),
        ];
        let ours = Runs::of(found);
        let as_many = |runs: Runs| Runs {
            number: ours.number,
            ..runs
        };
        let row = |(what, of_baseline, of_paper): (&str, Runs, Runs)| -> Result<Entry> {
            let half = ours.half_against(&of_baseline, 0.95)?;
            let (less, theirs) = (ours.mean - of_baseline.mean, paper.mean - of_paper.mean);
            let expected = as_many(paper).half_against(&as_many(of_paper), 0.95)?;
            let what = format!("{}: {name} less {what}, per cent", self.paper.name);
            let end = less - half * theirs.signum();
            let row = Entry::number(&what, end, &self.set.data, files).paper(theirs, TABLE_5);
            let row = row.detail(format!("{less:.1} ± {half:.1}"));
            let seen = judged && theirs.abs() > 2.0 * (expected + ROUNDING);
            Ok(match (seen, theirs > 0.0) {
                (true, true) => row.above(0.0),
                (true, false) => row.below(0.0),
                (false, _) => row,
            })
        };
        baselines.into_iter().map(row).collect()
    }
}

/// Whether the accuracy of a method is held to the paper's: the baselines are only shown.
fn is_judged(method: Method) -> bool {
    matches!(method, Method::Em | Method::Vb)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, false)
}

/// Sets of other sizes, and clusters by chance in place of those of the Skellam models; for what these must be below, the true classes.
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

/// Accuracies in per cent of classes guessed by chance: not the best order of clusters, which is above the largest class.
fn by_chance(set: &Samples, seeds: &[u64]) -> Vec<f64> {
    let one = |&seed: &u64| {
        let mut draws = rng(seed, 501);
        let is_right = |&&class: &&usize| class as u64 == below(set.k() as u64, &mut draws);
        let right = set.classes.iter().filter(is_right).count();
        100.0 * right as f64 / set.classes.len() as f64
    };
    seeds.iter().map(one).collect()
}

fn measure(context: &Context, wrong: bool) -> Result<Vec<Entry>> {
    let seeds: Vec<u64> = context.starts(context.sizes([8, 16, 100]) as u64).collect();
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
            Method::Em | Method::Vb if wrong => Ok(by_chance(set, &seeds)),
            _ => of(method, by),
        };
        let by_method = METHODS.iter().map(|&m| of(m, MOMENTUM));
        let by_method = by_method.collect::<Result<_>>()?;
        let as_paper = match set.name {
            "Ionosphere" => Some(Method::Em),
            "Wave" => Some(Method::Vb),
            _ => None,
        };
        let as_paper = as_paper.map(|m| of(m, PARABOLIC).map(|found| (m, found)));
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
    let mut entries = Vec::new();
    for one in &found {
        entries.extend(one.entries(&files)?);
    }
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
            let rows = one.entries(&files)?;
            entries.extend(rows.into_iter().filter(is_of_table_4));
        }
        // Clusters by chance are below what the models must be below: there all are right.
        let is_below = |e: &Entry| matches!(e.condition, Some(Condition::Below(_)));
        entries.retain(|e| !is_below(e));
        for one in &mut found {
            for method in [Method::Em, Method::Vb] {
                one.by_method[method as usize].fill(100.0);
            }
            if let Some((_, found)) = &mut one.as_paper {
                found.fill(100.0);
            }
            entries.extend(one.entries(&files)?.into_iter().filter(is_below));
        }
    }
    Ok(entries)
}
