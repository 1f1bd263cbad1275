//! HS, figure 3: leading and further components as features of a classifier.

use nalgebra::DMatrix;
use plca_dist::random::below;

use super::hs_faces::{FREE, Images, OWN, Place, generate, read};
use super::hs_methods::{Components, METHODS, Sample, factorize, roc, svm_scores};
use super::support::{mean_sd, rng, smallest};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "hs_fig3",
    source: "[HS] figure 3",
    title: "Telling faces from non-faces by five components",
    criterion: "On generated images (19 x 19 x 150, K = 20; 300 images of either class to learn from, 300 to judge) every mean area under the \
                curve is above 0.9, and for every method the five leading components classify better than the next five. Which method classifies best and \
                loses most from leading to further components differs from draw to draw by more than the methods differ: shown as \
                measured, as are the areas on faces. That pNTF's leading components classify best could not be reproduced.",
    data: &[OWN[0], OWN[1], FREE],
    run,
    control: Some(control),
};

const SWEEPS: usize = 150;
const COMPONENTS: usize = 20;
/// Positive images that components are learned from, as for figure 2.
const FACTORIZED: usize = 150;
/// Generated images of either class, to learn from and to judge.
const IMAGES: usize = 300;
/// Of the classifier.
const COST: f64 = 10.0;
const GAMMA: f64 = 0.2;
/// Points of an averaged curve.
const GRID: usize = 100;

/// Inner products of images with the slices of five components.
fn features(fit: &Components, first: usize, images: &[&Images]) -> DMatrix<f64> {
    let pixels: Vec<&Vec<f64>> = images.iter().flat_map(|i| &i.pixels).collect();
    let filters: Vec<DMatrix<f64>> = (first..first + 5)
        .map(|j| fit.factors[0].column(j) * fit.factors[1].column(j).transpose())
        .collect();
    DMatrix::from_fn(pixels.len(), 5, |i, j| {
        pixels[i]
            .iter()
            .zip(filters[j].iter())
            .map(|(x, w)| x * w)
            .sum()
    })
}

/// Curves and areas of the methods by the leading five components, then by the next five.
#[derive(Default)]
struct Repeats {
    curves: [[Vec<f64>; 4]; 2],
    areas: [[Vec<f64>; 4]; 2],
}

impl Repeats {
    /// One split: components of positive training images, a classifier of both classes.
    /// Labels that are to be `wrong` are random.
    fn add(
        &mut self,
        train: [&Images; 2],
        test: [&Images; 2],
        seed: u64,
        wrong: bool,
    ) -> Result<()> {
        let some: Vec<usize> = (0..train[0].pixels.len().min(FACTORIZED)).collect();
        let data = train[0].choose(&some).tensor()?;
        let fits = factorize(&data, COMPONENTS, SWEEPS, 1, seed)?;
        let classes = |images: [&Images; 2]| -> Vec<bool> {
            let n = images[0].pixels.len() + images[1].pixels.len();
            (0..n).map(|i| i < images[0].pixels.len()).collect()
        };
        for (group, first) in [0, 5].into_iter().enumerate() {
            for (method, fit) in fits.iter().enumerate() {
                let sample = |images: [&Images; 2]| Sample {
                    features: features(fit, first, &images),
                    positive: classes(images),
                };
                let mut known = sample(train);
                if wrong {
                    let mut draws = rng(seed, 501);
                    let labels = known.positive.iter_mut();
                    labels.for_each(|label| *label = below(2, &mut draws) == 0);
                }
                let scores = svm_scores(&known, &sample(test), COST, GAMMA)?;
                let (curve, area) = roc(&scores, &classes(test));
                self.areas[group][method].push(area);
                let mean = &mut self.curves[group][method];
                mean.resize(GRID + 1, 0.0);
                for (at, mean) in mean.iter_mut().enumerate() {
                    let rate = at as f64 / GRID as f64;
                    let reached = curve.iter().filter(|p| p.0 <= rate).map(|p| p.1);
                    *mean += reached.fold(0.0, f64::max);
                }
            }
        }
        Ok(())
    }

    fn panel(&self, group: usize, title: &str) -> Panel {
        let series: Vec<_> = METHODS
            .iter()
            .enumerate()
            .map(|(method, name)| {
                let n = self.areas[group][method].len() as f64;
                let (mean, _) = mean_sd(&self.areas[group][method]);
                let curve = &self.curves[group][method];
                let points = (0..=GRID).map(|at| (at as f64 / GRID as f64, curve[at] / n));
                Series::new(&format!("{name}, area {mean:.3}"), method, points.collect())
            })
            .collect();
        let x = Axis::linear("false positive rate", 0.0, 1.0);
        let y = Axis::linear("true positive rate", 0.0, 1.02);
        Panel::lines(title, &series, &x, &y).legend(LegendPosition::InsideBottomRight)
    }

    fn panels(&self, what: &str) -> [Panel; 2] {
        ["1 to 5", "6 to 10"].map(|which| {
            let group = usize::from(which != "1 to 5");
            self.panel(group, &format!("{what}, components {which}"))
        })
    }

    fn mean(&self, group: usize) -> [f64; 4] {
        [0, 1, 2, 3].map(|method| mean_sd(&self.areas[group][method]).0)
    }

    /// By how much the area falls from the leading to the next components, repeat after repeat.
    fn drops(&self) -> [Vec<f64>; 4] {
        [0, 1, 2, 3].map(|method| {
            let pairs = self.areas[0][method].iter().zip(&self.areas[1][method]);
            pairs.map(|(leading, further)| leading - further).collect()
        })
    }
}

/// Mean and standard deviation for each method.
fn listed(values: &[Vec<f64>; 4]) -> String {
    let each = METHODS.iter().zip(values).map(|(name, values)| {
        let (mean, deviation) = mean_sd(values);
        format!("{name} {mean:.3} ({deviation:.3})")
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Fresh images for every repeat.
fn generated(context: &Context, wrong: bool) -> Result<Repeats> {
    let mut repeats = Repeats::default();
    for nth in 0..context.size(20, 8) as u64 {
        let mut draws = rng(context.seed, 50 + nth);
        let mut images = |place| generate(IMAGES, place, &mut draws);
        let train = [images(Place::Face), images(Place::Displaced)];
        let test = [images(Place::Face), images(Place::Displaced)];
        repeats.add(train.each_ref(), test.each_ref(), context.start(nth), wrong)?;
    }
    Ok(repeats)
}

/// Halves of the two sets, again and again.
fn real(context: &Context, faces: &Images, others: &Images) -> Result<Repeats> {
    let mut repeats = Repeats::default();
    for nth in 0..context.size(20, 5) as u64 {
        let mut draws = rng(context.seed, 180 + nth);
        let mut halves = |images: &Images| {
            let mut order: Vec<usize> = (0..images.pixels.len()).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, below(i as u64 + 1, &mut draws) as usize);
            }
            let (train, test) = order.split_at(order.len() / 2);
            (images.choose(train), images.choose(test))
        };
        let ((a, c), (b, d)) = (halves(faces), halves(others));
        repeats.add([&a, &b], [&c, &d], context.start(nth), false)?;
    }
    Ok(repeats)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let parts = generated(context, false)?;
    let mut panels = Vec::from(parts.panels("Generated parts"));
    let faces = match read(context)? {
        Some((faces, others, data)) => {
            let repeats = real(context, &faces, &others)?;
            panels.extend(repeats.panels("Faces"));
            Some((repeats, data))
        }
        None => None,
    };
    let files = context.picture(FIGURE.name, 2, (560.0, 460.0), panels)?;
    let mut entries = rows(&parts, &files);
    if let Some((repeats, data)) = faces {
        for (group, which) in ["1 to 5", "6 to 10"].into_iter().enumerate() {
            let what = format!("faces, repeated halves: area by components {which}");
            let words = listed(&repeats.areas[group]);
            entries.push(Entry::words(&what, words, &data, &files));
        }
    }
    Ok(entries)
}

/// A classifier that learns from shuffled labels; leading components taken for further ones.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut entries = rows(&generated(context, true)?, &[]);
    entries.pop();
    let mut parts = generated(context, false)?;
    parts.areas.swap(0, 1);
    entries.extend(rows(&parts, &[]).pop());
    Ok(entries)
}

fn rows(parts: &Repeats, files: &[String]) -> Vec<Entry> {
    let data = Data::generated("images of seven parts, at home or displaced by up to 2 pixels");
    let drops = parts.drops();
    let row = |what: &str, value: f64, of: &[Vec<f64>; 4]| {
        Entry::number(what, value, &data, files).detail(listed(of))
    };
    vec![
        row(
            "smallest mean area by components 1 to 5",
            smallest(parts.mean(0)),
            &parts.areas[0],
        )
        .above(0.9),
        row(
            "smallest mean area by components 6 to 10",
            smallest(parts.mean(1)),
            &parts.areas[1],
        )
        .above(0.9),
        row(
            "smallest mean drop of the area from components 1 to 5 to 6 to 10",
            smallest(drops.iter().map(|d| mean_sd(d).0)),
            &drops,
        )
        .above(0.0),
    ]
}
