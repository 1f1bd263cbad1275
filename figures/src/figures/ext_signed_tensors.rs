//! Skellam factorization of a signed array with three modes.

use nalgebra::{DMatrix, DVectorView};
use plca_dist::{draw_poisson, random::below};
use plca_fit::{Init, Model, Reconstruct, Solver, Stop};
use plca_priors::Gamma;
use plca_tensor::{DenseTensor, Order};
use rayon::prelude::*;
use skellam_snmf::{Entries, Prior, Replicates, SignedCp, SignedCpState, SignedCpVb, Snmf, SnmfVb};

use super::grid::Grid;
use super::support::{best_matching, cosine, gamma, rng, smallest};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "ext_signed_tensors",
    source: "[EXT 6]",
    title: "Signed counts of sensors, times and trials: three planted components, half of the cells hidden",
    criterion: "By EM and by variational Bayes all factors of all components are found (cosine > 0.9), wherever the signed mode stands. The mean of \
                hidden cells is predicted with less than half the error of predicting 0, and with less than 0.7 of the error of the \
                matrix model of sensors x (times and trials). The evidence bound is largest at three components.",
    data: &[],
    run,
    control: Some(control),
};

/// Sensors, whose factor is signed, times and trials.
const SHAPE: [usize; 3] = [12, 20, 15];
const K: usize = 3;
/// Sum of the rates of a component.
const SIZE: f64 = 3600.0;
const MOST: usize = 5;
const NAMES: [&str; 3] = ["sensor", "time", "trial"];

/// Factors of the three modes, the first one signed with absolute values that sum to 1, the second one a distribution.
type Factors = [DMatrix<f64>; 3];

fn planted(seed: u64) -> Factors {
    let [sensors, times, trials] = SHAPE;
    let at = |i: usize, n: usize| (i as f64 + 0.5) / n as f64;
    let mut draws = rng(seed, 2100);
    let wave = |i, k: usize| (std::f64::consts::PI * (k + 1) as f64 * at(i, sensors)).cos();
    let bump = |i, k: usize| (-0.5 * ((at(i, times) - 0.2 - 0.3 * k as f64) / 0.1).powi(2)).exp();
    let mut factors = [
        DMatrix::from_fn(sensors, K, wave),
        DMatrix::from_fn(times, K, bump),
        DMatrix::from_fn(trials, K, |_, _| gamma(1.0, &mut draws)),
    ];
    for (mode, factor) in factors.iter_mut().enumerate() {
        for mut column in factor.column_iter_mut() {
            let sum: f64 = column.iter().map(|x| x.abs()).sum();
            column *= if mode == 2 { SIZE } else { 1.0 } / sum;
        }
    }
    factors
}

/// Means of the cells, and counts of which half are hidden: NaN.
struct Cells {
    truth: Grid,
    seen: Grid,
}

impl Cells {
    fn new(factors: &Factors, seed: u64) -> Result<Self> {
        let [a, b, c] = factors;
        let term = |i: &[usize], k: usize| a[(i[0], k)] * b[(i[1], k)] * c[(i[2], k)];
        Self::of_terms(term, seed)
    }

    /// The product of times and trials replaced by numbers of their own for every pair.
    fn unrelated(factors: &Factors, seed: u64) -> Result<Self> {
        let mut draws = rng(seed, 2101);
        let columns = SHAPE[1] * SHAPE[2];
        let activations = DMatrix::from_fn(columns, K, |_, _| {
            SIZE / columns as f64 * gamma(1.0, &mut draws)
        });
        let term = |i: &[usize], k: usize| {
            factors[0][(i[0], k)] * activations[(i[1] * SHAPE[2] + i[2], k)]
        };
        Self::of_terms(term, seed)
    }

    fn of_terms(term: impl Fn(&[usize], usize) -> f64, seed: u64) -> Result<Self> {
        let mut draws = rng(seed, 2102);
        let side = |sign: f64| {
            Grid::from_fn(&SHAPE, |i| {
                (0..K).map(|k| (sign * term(i, k)).max(0.0)).sum()
            })
        };
        let (plus, minus) = (side(1.0), side(-1.0));
        let mut seen = Grid::zeros(&SHAPE);
        for ((v, &p), &q) in seen.values.iter_mut().zip(&plus.values).zip(&minus.values) {
            *v = draw_poisson(p, &mut draws)? as f64 - draw_poisson(q, &mut draws)? as f64;
            if below(2, &mut draws) == 0 {
                *v = f64::NAN;
            }
        }
        let truth = Grid::from_fn(&SHAPE, |i| plus.get(i) - minus.get(i));
        Ok(Self { truth, seen })
    }

    /// What is seen of all cells in disorder, the hidden ones where they are.
    fn shuffled(mut self, seed: u64) -> Self {
        let mut draws = rng(seed, 2103);
        let mut values: Vec<f64> = self
            .seen
            .values
            .iter()
            .copied()
            .filter(|x| !x.is_nan())
            .collect();
        for i in (1..values.len()).rev() {
            values.swap(i, below(i as u64 + 1, &mut draws) as usize);
        }
        let cells = self.seen.values.iter_mut().filter(|x| !x.is_nan());
        cells.zip(values).for_each(|(cell, x)| *cell = x);
        self
    }

    /// The counts with sensors as this mode, the two others in their order.
    fn placed(&self, mode: usize) -> Result<DenseTensor<f64>> {
        let mut shape = vec![SHAPE[1], SHAPE[2]];
        shape.insert(mode, SHAPE[0]);
        let turned = Grid::from_fn(&shape, |i| {
            let mut rest = i.to_vec();
            let sensor = rest.remove(mode);
            self.seen.get(&[sensor, rest[0], rest[1]])
        });
        Ok(DenseTensor::masked(shape, turned.values, Order::RowMajor)?)
    }

    /// The counts as a matrix of sensors by times and trials.
    fn unfolded(&self) -> Result<DenseTensor<f64>> {
        let shape = vec![SHAPE[0], SHAPE[1] * SHAPE[2]];
        Ok(DenseTensor::masked(
            shape,
            self.seen.values.clone(),
            Order::RowMajor,
        )?)
    }

    /// Root mean square of what a model says of the hidden cells less their means.
    fn error(&self, model: &[f64]) -> f64 {
        let cells = self.seen.values.iter().zip(&self.truth.values).zip(model);
        let hidden = cells.filter(|((v, _), _)| v.is_nan());
        let squares: Vec<f64> = hidden.map(|((_, t), m)| (t - m).powi(2)).collect();
        (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
    }
}

fn stop(context: &Context) -> Stop {
    Stop::default().max_iter(context.size(600, 200)).tol(1e-9)
}

/// The best of some starts, and its objective.
fn best<M: Model<f64>>(
    context: &Context,
    model: &M,
    data: &DenseTensor<f64>,
) -> Result<(M::State, f64)> {
    let mut best: Option<(M::State, f64)> = None;
    for start in context.starts(context.size(4, 2) as u64) {
        let run = model.on(data)?.solver(Solver::Em).stop(stop(context));
        let fit = run.run(Init::default(), &mut rng(start, 0))?;
        let objective = fit.objective();
        if best.as_ref().is_none_or(|b| objective > b.1) {
            best = Some((fit.into_state(), objective));
        }
    }
    Ok(best.ok_or("no starts")?)
}

fn em(
    context: &Context,
    data: &DenseTensor<f64>,
    mode: usize,
    k: usize,
) -> Result<SignedCpState<f64>> {
    let cp = SignedCp::new(k)
        .signed_mode(mode)
        .replicates(Replicates::One);
    Ok(best(context, &cp, data)?.0)
}

/// Posterior means and the evidence bound.
fn vb(
    context: &Context,
    data: &DenseTensor<f64>,
    mode: usize,
    k: usize,
) -> Result<(SignedCpState<f64>, f64)> {
    let cp = SignedCpVb::new(k)
        .signed_mode(mode)
        .replicates(Replicates::One)
        .prior("weights", Gamma::new(1.0, 1.0 / SIZE)?);
    let (state, bound) = best(context, &cp, data)?;
    Ok((state.means()?, bound))
}

/// The matrix model by EM and by variational Bayes: what they say of all cells.
fn matrix(context: &Context, data: &DenseTensor<f64>, k: usize) -> Result<[Vec<f64>; 2]> {
    let snmf = Snmf::new(k).replicates(Replicates::One);
    let (em, _) = best(context, &snmf, data)?;
    let priors = Prior {
        rate: Entries::All((SHAPE[1] * SHAPE[2]) as f64 / SIZE),
        ..Prior::flat()
    };
    let snmf = SnmfVb::new(k).replicates(Replicates::One).priors(priors);
    let (vb, _) = best(context, &snmf, data)?;
    Ok([
        em.cells(None)?.into_parts().1,
        vb.means()?.cells(None)?.into_parts().1,
    ])
}

/// The factors in the order of [`SHAPE`].
fn factors(state: &SignedCpState<f64>) -> Factors {
    let weights = DMatrix::from_diagonal(&nalgebra::DVector::from_column_slice(state.weights()));
    let others = state.factors();
    [
        state.signed_atoms(),
        others[0].clone(),
        &others[1] * weights,
    ]
}

/// The component that stands for each planted one, and the smallest cosine of all factors.
fn matched(truth: &Factors, found: &Factors) -> (Vec<usize>, f64) {
    let one = |m: usize, t: usize, z: usize| {
        let column = |f: &Factors| f[m].column(z).into_owned();
        cosine(
            DVectorView::from(&truth[m].column(t)),
            column(found).as_view(),
        )
    };
    let product = |t, z| (0..3).map(|m| one(m, t, z).max(0.0)).product::<f64>();
    let order = best_matching(K, |t, z| -product(t, z));
    let all = order
        .iter()
        .enumerate()
        .flat_map(|(t, &z)| (0..3).map(move |m| (m, t, z)));
    let worst = smallest(all.map(|(m, t, z)| one(m, t, z)));
    (order, worst)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let factors = planted(context.seed);
    let cells = Cells::new(&factors, context.seed)?;
    measure(context, &factors, &cells)
}

/// The cells in disorder; for the matrix model, data of its own kind.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let factors = planted(context.seed);
    let cells = Cells::new(&factors, context.seed)?.shuffled(context.seed);
    let mut entries = measure(context, &factors, &cells)?;
    entries.retain(|entry| entry.criterion != MATRIX);
    let cells = Cells::unrelated(&factors, context.seed)?;
    let of_matrix = measure(context, &factors, &cells)?.into_iter();
    entries.extend(of_matrix.filter(|entry| entry.criterion == MATRIX));
    Ok(entries)
}

const MATRIX: &str = "hidden cells: error of variational Bayes over that of the matrix model";

fn measure(context: &Context, truth: &Factors, cells: &Cells) -> Result<Vec<Entry>> {
    let places: Vec<(f64, f64)> = (0..3usize)
        .into_par_iter()
        .map(|mode| -> Result<_> {
            let data = cells.placed(mode)?;
            let em = matched(truth, &factors(&em(context, &data, mode, K)?)).1;
            Ok((
                em,
                matched(truth, &factors(&vb(context, &data, mode, K)?.0)).1,
            ))
        })
        .collect::<Result<_>>()?;
    let data = cells.placed(0)?;
    let values = |s: &SignedCpState<f64>| -> Result<Vec<f64>> { Ok(s.cells(None)?.into_parts().1) };
    // Error by EM and by variational Bayes, and the bound with ln K! for the order of the components.
    let curves: Vec<[f64; 3]> = (1..=MOST)
        .into_par_iter()
        .map(|k| -> Result<_> {
            let (means, bound) = vb(context, &data, 0, k)?;
            let orders: f64 = (1..=k).map(|i| (i as f64).ln()).sum();
            let of_em = values(&em(context, &data, 0, k)?)?;
            Ok([
                cells.error(&of_em),
                cells.error(&values(&means)?),
                bound + orders,
            ])
        })
        .collect::<Result<_>>()?;
    let bounds: Vec<f64> = curves.iter().map(|c| c[2]).collect();
    let top = bounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let number = bounds.iter().position(|&b| b == top).map_or(0, |at| at + 1);
    let of_matrix = matrix(context, &cells.unfolded()?, K)?.map(|m| cells.error(&m));
    let zero = cells.error(&vec![0.0; cells.truth.values.len()]);
    let [of_em, of_vb, _] = curves[K - 1];

    let state = em(context, &data, 0, K)?;
    let files = draw(
        context,
        truth,
        cells,
        &state,
        &[zero, of_matrix[0], of_matrix[1], of_em, of_vb],
        &curves,
    )?;
    let text = "12 x 20 x 15 signed counts of three components, half of them hidden";
    let data = Data::generated(text);
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    let all = |of: fn(&(f64, f64)) -> f64| {
        let each: Vec<String> = places.iter().map(|p| format!("{:.3}", of(p))).collect();
        (smallest(places.iter().map(of)), each.join(", "))
    };
    let ((em, em_all), (vb, vb_all)) = (all(|p| p.0), all(|p| p.1));
    let where_ = "signed mode first, second, third";
    Ok(vec![
        row("EM: smallest cosine of a factor with the planted one", em)
            .above(0.9)
            .detail(format!("{where_}: {em_all}")),
        row(
            "variational Bayes: smallest cosine of a factor with the planted one",
            vb,
        )
        .above(0.9)
        .detail(format!("{where_}: {vb_all}")),
        row(
            "hidden cells: error of EM over that of predicting 0",
            of_em / zero,
        )
        .below(0.5),
        row(
            "hidden cells: error of variational Bayes over that of predicting 0",
            of_vb / zero,
        )
        .below(0.5),
        row(MATRIX, of_vb / of_matrix[0].min(of_matrix[1]))
            .below(0.7)
            .detail(format!(
                "errors {of_vb:.3}; matrix model by EM {:.3}, by variational Bayes {:.3}",
                of_matrix[0], of_matrix[1]
            )),
        row(
            "number of components with the largest evidence bound",
            number as f64,
        )
        .within(K as f64, K as f64),
    ])
}

fn draw(
    context: &Context,
    truth: &Factors,
    cells: &Cells,
    state: &SignedCpState<f64>,
    errors: &[f64; 5],
    curves: &[[f64; 3]],
) -> Result<Vec<String>> {
    let found = factors(state);
    let (order, _) = matched(truth, &found);
    let mut panels = Vec::new();
    for mode in 0..3 {
        let line = |f: &DMatrix<f64>, z: usize| -> Vec<(f64, f64)> {
            let norm = f.column(z).norm();
            let column = f.column(z);
            let points = column.iter().enumerate();
            points.map(|(i, x)| (i as f64, x / norm)).collect()
        };
        let mut series = Vec::new();
        for (t, &z) in order.iter().enumerate() {
            let name = if mode == 0 {
                format!("component {}", t + 1)
            } else {
                String::new()
            };
            series.push(Series::new(&name, t, line(&found[mode], z)));
        }
        for t in 0..K {
            let name = if mode == 0 && t == 2 {
                "dashed: planted"
            } else {
                ""
            };
            series.push(Series::new(name, t, line(&truth[mode], t)).dashed());
        }
        let all = || series.iter().flat_map(|s| &s.points).map(|p| p.1);
        let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
        // Room for the legend.
        let high = if mode == 0 { 2.8 * high } else { 1.1 * high };
        let title = [
            "signed factor over sensors",
            "factor over time",
            "factor over trials",
        ][mode];
        panels.push(Panel::lines(
            &format!("{title}, by EM"),
            &series,
            &Axis::linear(NAMES[mode], 0.0, (SHAPE[mode] - 1) as f64),
            &Axis::linear("entry / norm", 1.1 * low, high),
        ));
    }
    // The trial with the largest cell.
    let largest = |r: usize| {
        let cell = |(i, j)| cells.truth.get(&[i, j, r]).abs();
        let all = (0..SHAPE[0]).flat_map(|i| (0..SHAPE[1]).map(move |j| (i, j)));
        all.map(cell).fold(0.0, f64::max)
    };
    let trial = (0..SHAPE[2]).max_by(|&a, &b| largest(a).total_cmp(&largest(b)));
    let trial = trial.unwrap_or(0);
    let high = largest(trial);
    let slice = |title: String, value: &dyn Fn(&[usize]) -> f64| {
        let row = |i| (0..SHAPE[1]).map(|j| value(&[i, j, trial])).collect();
        let rows: Vec<Vec<f64>> = (0..SHAPE[0]).map(row).collect();
        let (x, y) = (Axis::bare("time", SHAPE[1]), Axis::bare("sensor", SHAPE[0]));
        Panel::signed(&title, &rows, high, &x, &y).without_numbers()
    };
    panels.push(slice(
        format!("trial {trial}, means: orange +, blue -"),
        &|i| cells.truth.get(i),
    ));
    panels.push(slice(
        "seen: counts, half of the cells hidden".into(),
        &|i| {
            let v = cells.seen.get(i);
            if v.is_nan() { 0.0 } else { v }
        },
    ));
    panels.push(slice("the same trial, restored by EM".into(), &|i| {
        state.cell(i)
    }));
    let names = ["zero", "matrix EM", "matrix VB", "tensor EM", "tensor VB"];
    let bars: Vec<(String, f64)> = names
        .iter()
        .map(|n| (*n).into())
        .zip(errors.iter().copied())
        .collect();
    panels.push(Panel::bars(
        "error of the hidden cells",
        &bars,
        "rms error, counts",
        0,
    ));
    let curve = |name: &str, colour: usize, at: usize| {
        let points = curves
            .iter()
            .enumerate()
            .map(|(i, c)| ((i + 1) as f64, c[at]));
        Series::new(name, colour, points.collect())
    };
    let both = [curve("EM", 0, 0), curve("variational Bayes", 1, 1)];
    let y = Axis::from_zero(
        "rms error, counts",
        curves.iter().flat_map(|c| [c[0], c[1]]),
    );
    let components = || Axis::linear("components fitted", 1.0, MOST as f64);
    panels.push(Panel::lines(
        "hidden cells against components",
        &both,
        &components(),
        &y,
    ));
    let top = curves
        .iter()
        .map(|c| c[2])
        .fold(f64::NEG_INFINITY, f64::max);
    let loss = curves
        .iter()
        .enumerate()
        .map(|(i, c)| ((i + 1) as f64, (1.0 + top - c[2]).log10()));
    let loss: Vec<(f64, f64)> = loss.collect();
    let y = Axis::from_zero(
        "log10(1 + loss of the bound, nats)",
        loss.iter().map(|p| p.1),
    );
    let panel = Panel::lines(
        "bound: loss against the best number",
        &[Series::new("", 0, loss)],
        &components(),
        &y,
    );
    panels.push(panel.legend(LegendPosition::InsideTopRight));
    context.picture(FIGURE.name, 3, (430.0, 340.0), panels)
}
