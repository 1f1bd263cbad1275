//! Hidden cells filled in by semi-non-negative factors: ratings, and a made-up field.

use nalgebra::DMatrix;
use plca_dist::random::uniform;
use plca_fit::{Init, Model, Reconstruct, Solver, Stop};
use plca_tensor::{Coordinates, SparseTensor};
use rayon::prelude::*;
use skellam_snmf::{Entries, Prior, Snmf, SnmfState, SnmfVb};

use super::support::{normal, rng, rows};
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "sk_inpainting",
    source: "[SKELLAM] sections 3 and 5 (hidden cells)",
    title: "Hidden cells predicted by EM and by variational Bayes",
    criterion: "Of a field of three signed waves, 40 x 60 with noise, half of the cells hidden, variational Bayes restores hidden cells \
                with an error below a fifth of their root mean square. Ratings less the mean of their user, one in five hidden: it \
                predicts them better than that mean. Components and the weight of the prior are chosen by one half of the hidden \
                cells, the other half judges. EM and the mean of user and film as measured.",
    data: &[FILE],
    run,
    control: Some(control),
};

/// Change of the objective per iteration that ends a fit, in nats per count.
const TOL: f64 = 1e-9;
const FILE: &str = "movielens_small/ratings.csv";

/// Row, column, value.
type Cell = (usize, usize, f64);

/// Hidden cells told to nobody, split in two; the rest is fitted.
struct Split {
    shape: (usize, usize),
    fitted: Vec<Cell>,
    choosing: Vec<Cell>,
    judging: Vec<Cell>,
}

impl Split {
    fn new(shape: (usize, usize), cells: Vec<Cell>, hidden: f64, seed: u64) -> Self {
        let mut draws = rng(seed, 110);
        let mut split = Self {
            shape,
            fitted: Vec::new(),
            choosing: Vec::new(),
            judging: Vec::new(),
        };
        for cell in cells {
            let u = uniform(&mut draws);
            let part = match u {
                u if u >= hidden => &mut split.fitted,
                u if u >= 0.5 * hidden => &mut split.choosing,
                _ => &mut split.judging,
            };
            part.push(cell);
        }
        split
    }
}

fn rmse(cells: &[Cell], predict: impl Fn(usize, usize) -> f64) -> f64 {
    let squares = cells.iter().map(|&(i, j, v)| (v - predict(i, j)).powi(2));
    (squares.sum::<f64>() / cells.len() as f64).sqrt()
}

/// How many counts a unit of the data is worth to variational Bayes: in the limit the prior weighs against the size of the data.
const SCALES: [f64; 4] = [1.0, 4.0, 16.0, 64.0];

/// Fits the cells that are fitted: by variational Bayes at a scale, or by EM.
fn fit(
    split: &Split,
    k: usize,
    scale: Option<f64>,
    stop: &Stop,
    seed: u64,
) -> Result<SnmfState<f64>> {
    let mut draws = rng(seed, 111);
    let s = scale.unwrap_or(1.0);
    let cells = Coordinates {
        shape: vec![split.shape.0, split.shape.1],
        indices: (split.fitted.iter())
            .flat_map(|&(i, j, _)| [i as u32, j as u32])
            .collect(),
        values: split.fitted.iter().map(|&(_, _, v)| s * v).collect(),
    };
    let data = SparseTensor::stored_only(cells)?;
    if scale.is_none() {
        let snmf = Snmf::new(k).replicates(skellam_snmf::Replicates::Limit);
        let run = snmf.on(&data)?.solver(Solver::Em).stop(stop.clone());
        return Ok(run.run(Init::default(), &mut draws)?.into_state());
    }
    // Rates of the size of the data: a prior in the units of what it explains.
    let size: f64 = split.fitted.iter().map(|c| s * c.2.abs()).sum();
    let each = size / split.fitted.len() as f64 * split.shape.0 as f64 / k as f64;
    let priors = Prior {
        rate: Entries::All(1.0 / each),
        ..Prior::flat()
    };
    let vb = SnmfVb::new(k).priors(priors);
    let run = vb.on(&data)?.solver(Solver::Em).stop(stop.clone());
    let means = run.run(Init::default(), &mut draws)?.state().means()?;
    let [plus, minus] = [means.plus(), means.minus()].map(|side| side.into_owned());
    Ok(SnmfState::new(&plus, &minus, means.activations() / s)?)
}

/// Errors on the cells that choose and on those that judge, for every number of components: EM, then variational Bayes at the
/// scale that the choosing cells prefer.
fn curves(split: &Split, numbers: &[usize], stop: &Stop, seed: u64) -> Result<[Vec<[f64; 2]>; 2]> {
    let score = |k: usize, scale: Option<f64>| -> Result<[f64; 2]> {
        let state = fit(split, k, scale, stop, seed)?;
        Ok([&split.choosing, &split.judging].map(|c| rmse(c, |i, j| state.cell(&[i, j]))))
    };
    let em = numbers.par_iter().map(|&k| score(k, None));
    let vb = numbers.par_iter().map(|&k| -> Result<[f64; 2]> {
        let each = SCALES
            .iter()
            .map(|&s| score(k, Some(s)))
            .collect::<Result<Vec<_>>>()?;
        let best = each.into_iter().min_by(|a, b| a[0].total_cmp(&b[0]));
        Ok(best.unwrap_or([f64::NAN; 2]))
    });
    Ok([em.collect::<Result<_>>()?, vb.collect::<Result<_>>()?])
}

/// The state of variational Bayes that the choosing cells prefer.
fn preferred(
    split: &Split,
    numbers: &[usize],
    stop: &Stop,
    seed: u64,
) -> Result<(usize, SnmfState<f64>)> {
    let mut best: Option<(f64, usize, SnmfState<f64>)> = None;
    for &k in numbers {
        for scale in SCALES {
            let state = fit(split, k, Some(scale), stop, seed)?;
            let error = rmse(&split.choosing, |i, j| state.cell(&[i, j]));
            if best.as_ref().is_none_or(|b| error < b.0) {
                best = Some((error, k, state));
            }
        }
    }
    let (_, k, state) = best.ok_or("no numbers of components")?;
    Ok((k, state))
}

/// Judged error of the number with the least error on the other cells.
fn chosen(numbers: &[usize], curve: &[[f64; 2]]) -> (usize, f64) {
    let best = (0..curve.len()).min_by(|&a, &b| curve[a][0].total_cmp(&curve[b][0]));
    best.map_or((0, f64::NAN), |at| (numbers[at], curve[at][1]))
}

/// Three signed waves of positive strength, and noise.
fn field(context: &Context) -> (DMatrix<f64>, DMatrix<f64>) {
    let (f, n) = (40, 60);
    let wave = |k: usize, i: usize| ((k + 1) as f64 * 3.1 * (i as f64 + 0.5) / f as f64).cos();
    let atoms = DMatrix::from_fn(f, 3, |i, k| wave(k, i));
    let bump = |k: usize, j: usize| {
        let at = (j as f64 / n as f64 - 0.2 - 0.3 * k as f64) / 0.18;
        (-0.5 * at * at).exp() + 0.1
    };
    let truth = atoms * DMatrix::from_fn(3, n, bump);
    let mut draws = rng(context.seed, 112);
    let seen = truth.map(|x| x + 0.1 * normal(&mut draws));
    (truth, seen)
}

/// Users and films, ratings, the file.
type Ratings = ((usize, usize), Vec<Cell>, Data);

/// Ratings, films in the order of their first rating; `None` without the data.
fn ratings(context: &Context) -> Result<Option<Ratings>> {
    let Some((text, data)) = context.text(FILE)? else {
        return Ok(None);
    };
    let mut films: std::collections::HashMap<u32, usize> = std::collections::HashMap::new();
    let mut cells = Vec::new();
    let mut users = 0;
    for (at, line) in text.lines().enumerate().skip(1) {
        let wrong = || format!("{FILE}, line {}: `{line}` is not a rating", at + 1);
        let fields: Vec<&str> = line.split(',').collect();
        let [user, film, rating, ..] = fields[..] else {
            return Err(wrong().into());
        };
        let user: usize = user.parse().map_err(|_| wrong())?;
        let film: u32 = film.parse().map_err(|_| wrong())?;
        let rating: f64 = rating.parse().map_err(|_| wrong())?;
        let number = films.len();
        let film = *films.entry(film).or_insert(number);
        let user = user.checked_sub(1).ok_or_else(wrong)?;
        users = users.max(user + 1);
        cells.push((user, film, rating));
    }
    Ok(Some(((users, films.len()), cells, data)))
}

/// Takes the fitted mean of its user from every rating, and gives the shrunk mean of every film over what is left.
fn centre(split: &mut Split) -> Vec<f64> {
    // Ratings enough that their mean counts for as much as the prior.
    const WEIGHT: f64 = 5.0;
    let (users, films) = split.shape;
    let all = split.fitted.iter().map(|c| c.2).sum::<f64>() / split.fitted.len() as f64;
    let mut sums = vec![(0.0, 0.0); users];
    for &(u, _, v) in &split.fitted {
        sums[u].0 += v;
        sums[u].1 += 1.0;
    }
    let means: Vec<f64> = sums
        .iter()
        .map(|&(s, n)| (s + WEIGHT * all) / (n + WEIGHT))
        .collect();
    for part in [&mut split.fitted, &mut split.choosing, &mut split.judging] {
        part.iter_mut().for_each(|c| c.2 -= means[c.0]);
    }
    let mut sums = vec![(0.0, 0.0); films];
    for &(_, f, v) in &split.fitted {
        sums[f].0 += v;
        sums[f].1 += 1.0;
    }
    sums.iter().map(|&(s, n)| s / (n + WEIGHT)).collect()
}

fn curve_panel(
    title: &str,
    numbers: &[usize],
    curves: &[Vec<[f64; 2]>; 2],
    lines: &[(&str, f64)],
) -> Panel {
    let mut series = Vec::new();
    for (at, (name, curve)) in ["EM", "variational Bayes"].iter().zip(curves).enumerate() {
        let points = numbers
            .iter()
            .zip(curve)
            .map(|(&k, e)| ((k as f64).log2(), e[1]));
        series.push(Series::new(name, at, points.collect()));
    }
    let last = (numbers[numbers.len() - 1] as f64).log2();
    for (at, (name, y)) in lines.iter().enumerate() {
        series.push(Series::new(name, at + 2, vec![(0.0, *y), (last, *y)]).dashed());
    }
    // A curve that leaves the picture need not flatten the others.
    let most = lines.iter().map(|l| 1.2 * l.1).fold(0.0, f64::max);
    for s in &mut series {
        s.points.retain(|p| p.1 <= most);
    }
    let all = || series.iter().flat_map(|s| &s.points).map(|p| p.1);
    let (least, most) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(0.0, f64::max),
    );
    // Room for the legend above.
    let (low, high) = (least - 0.1 * (most - least), most + 0.8 * (most - least));
    Panel::lines(
        title,
        &series,
        &Axis::linear("log2 of the components", 0.0, last),
        &Axis::linear("error of hidden cells", low, high),
    )
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, false)
}

/// Hidden cells of the field judged by their mirror images; the two predictions of ratings exchanged.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, true)
}

fn measure(context: &Context, wrong: bool) -> Result<Vec<Entry>> {
    let stop = Stop::default().max_iter(1000).tol(TOL);
    let (truth, seen) = field(context);
    let (f, n) = truth.shape();
    let cells = (0..n)
        .flat_map(|j| (0..f).map(move |i| (i, j)))
        .map(|(i, j)| (i, j, seen[(i, j)]));
    let split = Split::new((f, n), cells.collect(), 0.5, context.seed);
    let mut observed = DMatrix::from_element(f, n, false);
    split
        .fitted
        .iter()
        .for_each(|c| observed[(c.0, c.1)] = true);
    let numbers: &[usize] = &[1, 2, 3, 4, 8, 16];
    let (k, restored) = preferred(&split, &numbers[1..4], &stop, context.seed)?;
    let hidden: Vec<Cell> = (split.judging.iter())
        .map(|&(i, j, _)| (i, j, truth[(if wrong { f - 1 - i } else { i }, j)]))
        .collect();
    let (error, spread) = (
        rmse(&hidden, |i, j| restored.cell(&[i, j])),
        rmse(&hidden, |_, _| 0.0),
    );

    let low = truth.min();
    let picture = |title: &str, value: &dyn Fn(usize, usize) -> f64| {
        let shown = rows(f, n, |i, j| (value(f - 1 - i, j) - low).max(0.0));
        Panel::density(title, &shown, &Axis::bare("", n), &Axis::bare("", f)).without_numbers()
    };
    let mut panels = vec![
        picture("field", &|i, j| truth[(i, j)]),
        picture("seen: half of it, noisy", &|i, j| {
            if observed[(i, j)] { seen[(i, j)] } else { low }
        }),
        picture(&format!("restored, K = {k}"), &|i, j| {
            restored.cell(&[i, j])
        }),
    ];
    let made_up = curves(&split, numbers, &stop, context.seed)?;
    panels.push(curve_panel(
        "field: error against components",
        numbers,
        &made_up,
        &[("predicting 0", rmse(&split.judging, |_, _| 0.0))],
    ));

    let mut real = None;
    if let Some((shape, cells, data)) = ratings(context)? {
        let mut split = Split::new(shape, cells, 0.2, context.seed);
        let films = centre(&mut split);
        let most = context.size(stop.max_iter, 60);
        let stop = stop.max_iter(most);
        let found = curves(&split, numbers, &stop, context.seed)?;
        let user = rmse(&split.judging, |_, _| 0.0);
        let film = rmse(&split.judging, |_, j| films[j]);
        panels.push(curve_panel(
            "ratings: error against components",
            numbers,
            &found,
            &[("mean of the user", user), ("mean of user and film", film)],
        ));
        real = Some((found, user, film, data));
    }
    let files = context.picture(FIGURE.name, 2, (560.0, 380.0), panels)?;
    let data = Data::generated("three signed waves, 40 x 60, noise 0.1, half hidden");
    let what = "field: error of the hidden cells over their root mean square";
    let mut entries = vec![Entry::number(what, error / spread, &data, &files).below(0.2)];
    if let Some((found, user, film, data)) = real {
        let [(em_k, em), (vb_k, vb)] = [chosen(numbers, &found[0]), chosen(numbers, &found[1])];
        let less = if wrong { user - vb } else { vb - user };
        let what = "ratings: error of variational Bayes less that of the mean of the user";
        let row = Entry::number(what, less, &data, &files).below(0.0);
        entries.push(row.detail(format!("{vb:.4} (K = {vb_k}) against {user:.4}")));
        let row = Entry::number("ratings: error of EM", em, &data, &files);
        entries.push(row.detail(format!("K = {em_k}; mean of user and film {film:.4}")));
    }
    Ok(entries)
}
