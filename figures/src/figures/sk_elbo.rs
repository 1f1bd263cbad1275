//! The evidence bound against the number of components, which the Skellam paper leaves open.

use nalgebra::DMatrix;
use plca_dist::{draw_poisson, random::uniform};
use plca_fit::Stop;
use plca_tensor::DenseTensor;
use rayon::prelude::*;
use skellam_snmf::{Entries, Prior, Replicates, SnmfVb, select_components};

use super::support::{dirichlet, gamma, rng};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure, Size};

pub(crate) const FIGURE: Figure = Figure {
    name: "sk_elbo",
    source: "[SKELLAM] section 7",
    title: "Evidence bound of variational Bayes against the number of components",
    criterion: "On counts 15 x 120 drawn with 2, 3, 4 and 5 components the bound, with ln K! for the order of the components, is largest \
                at the true number in at least nine of ten data sets. The same data read as real numbers (M without end), as measured.",
    data: &[],
    run,
    control: Some(control),
};

const F: usize = 15;
const N: usize = 120;
/// Mean activation.
const SIZE: f64 = 300.0;
const TRUE: [usize; 4] = [2, 3, 4, 5];
/// Change of the objective per iteration that ends a fit, in nats per count.
const TOL: f64 = 1e-10;
const FORMS: [(&str, Replicates); 2] = [("M = 1", Replicates::One), ("limit", Replicates::Limit)];

/// Counts of `k` components: atoms of random signs with about a third of the rows, gamma activations.
fn counts(k: usize, seed: u64, set: u64) -> Result<DenseTensor<f64>> {
    let mut draws = rng(seed, 2000 + 16 * set + k as u64);
    let atoms = dirichlet(F, k, 0.3, &mut draws);
    let signs = DMatrix::from_fn(F, k, |_, _| uniform(&mut draws) < 0.5);
    let h = DMatrix::from_fn(k, N, |_, _| SIZE * gamma(1.0, &mut draws));
    let side = |positive: bool| atoms.zip_map(&signs, |a, s| if s == positive { a } else { 0.0 });
    let (plus, minus) = (side(true) * &h, side(false) * &h);
    let mut v = DMatrix::zeros(F, N);
    for ((v, &p), &q) in v.iter_mut().zip(&plus).zip(&minus) {
        *v = draw_poisson(p, &mut draws)? as f64 - draw_poisson(q, &mut draws)? as f64;
    }
    Ok(DenseTensor::try_from(v)?)
}

/// Scores of `1..=most` components, in that order.
fn scores(
    data: &DenseTensor<f64>,
    replicates: Replicates,
    most: usize,
    context: &Context,
    set: u64,
) -> Result<Vec<f64>> {
    let prior = Prior {
        plus: Entries::All(0.3),
        minus: Entries::All(0.3),
        shape: Entries::All(1.0),
        rate: Entries::All(1.0 / SIZE),
    };
    let configure = |k| SnmfVb::new(k).replicates(replicates).priors(prior.clone());
    let stop = Stop::default()
        .max_iter(context.sizes([300, 600, 2000]))
        .tol(TOL);
    let starts = context.sizes([2, 4, 8]) as u32;
    let mut draws = rng(context.seed, 3000 + set);
    let mut ranked = select_components(data, 1..=most, configure, starts, &stop, &mut draws)?;
    ranked.sort_by_key(|c| c.components);
    Ok(ranked.iter().map(|c| c.score).collect())
}

fn best(scores: &[f64]) -> usize {
    let largest = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    largest.map_or(0, |at| at + 1)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, 0)
}

/// A component more taken for the truth.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, 1)
}

fn measure(context: &Context, more: usize) -> Result<Vec<Entry>> {
    let sets = context.sizes([2, 4, 10]) as u64;
    let most = context.size(8, 6);
    let truths: &[usize] = if context.size == Size::Quick {
        &TRUE[1..2]
    } else {
        &TRUE
    };
    let jobs: Vec<(usize, usize, u64)> = (0..FORMS.len())
        .flat_map(|form| truths.iter().map(move |&k| (form, k)))
        .flat_map(|(form, k)| (0..sets).map(move |set| (form, k, set)))
        .collect();
    let one = |&(form, k, set): &(usize, usize, u64)| {
        let data = counts(k, context.seed, set)?;
        scores(&data, FORMS[form].1, most, context, set)
    };
    let found: Vec<Vec<f64>> = jobs.par_iter().map(one).collect::<Result<_>>()?;
    let mut panels = Vec::new();
    let mut results = Vec::new();
    for (form, (name, _)) in FORMS.iter().enumerate() {
        for &truth in truths {
            let mine: Vec<&Vec<f64>> = (jobs.iter().zip(&found))
                .filter(|((f, k, _), _)| (*f, *k) == (form, truth))
                .map(|(_, s)| s)
                .collect();
            let right = mine.iter().filter(|s| best(s) == truth + more).count();
            results.push((form, right, mine.len()));
            // What the best number loses, so that data sets share an axis.
            let curves: Vec<Series> = (mine.iter())
                .map(|s| {
                    let top = s.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
                    let points = s
                        .iter()
                        .enumerate()
                        .map(|(i, x)| ((i + 1) as f64, (top - x + 1.0).log10()));
                    Series::new("", form, points.collect())
                })
                .collect();
            let high = curves
                .iter()
                .flat_map(|s| &s.points)
                .map(|p| p.1)
                .fold(0.0, f64::max);
            let mut curves = curves;
            curves.push(
                Series::new(
                    "true number",
                    4,
                    vec![(truth as f64, 0.0), (truth as f64, 1.1 * high)],
                )
                .dashed(),
            );
            let panel = Panel::lines(
                &format!("{name}, {truth} components"),
                &curves,
                &Axis::linear("components fitted", 1.0, most as f64),
                &Axis::linear("log10(1 + loss of the bound)", 0.0, 1.1 * high),
            );
            panels.push(panel.legend(LegendPosition::InsideTopRight));
        }
    }
    let files = context.picture(FIGURE.name, truths.len(), (430.0, 360.0), panels)?;
    let data = Data::generated(&format!(
        "{} data sets of counts, {F} x {N}",
        sets as usize * truths.len()
    ));
    let mut entries = Vec::new();
    for (form, (name, _)) in FORMS.iter().enumerate() {
        let mine = results.iter().filter(|r| r.0 == form);
        let (right, all) = mine.fold((0, 0), |(r, n), x| (r + x.1, n + x.2));
        let what = format!("{name}: share of data sets whose bound is largest at the true number");
        let row = Entry::number(&what, right as f64 / all as f64, &data, &files);
        let row = row.detail(format!("{right} of {all}"));
        entries.push(if form == 0 { row.at_least(0.9) } else { row });
    }
    Ok(entries)
}
