//! SI, figure 7: handwriting, three letters where they were written.

use plca_em::{Anneal, Shifted};

use super::grid::{Grid, Runs, matches, noise, places, poisson, runs, worst};
use super::support::{permutations, rng};
use crate::Result;
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "si_fig7",
    source: "[SI] figure 7",
    title: "Three letters of a handwritten sheet, and where they stand",
    criterion: "Generated: the best of sixteen starts finds the letters (cosine > 0.9) and their shares (within 0.05). Handwriting: of as many of \
                the strongest local maxima of each impulse as there are letters, at least 15 of 18 are at true positions within one pixel, up to one shift per \
                kernel, where every letter is of one hand, as in the paper, and where each of its six copies is another writer's.",
    data: &[SHEET, TRUTH],
    run,
    control: Some(control),
};

const SHAPE: [usize; 2] = [81, 113];
const KERNEL: [usize; 2] = [15, 15];
const ROOM: [usize; 2] = [67, 99];
const COPIES: usize = 6;
const SHARES: [f64; 3] = [0.45, 0.33, 0.22];
/// Counts of the generated sheet: about 70 in an inked pixel.
const COUNTS: f64 = 1.5e5;
const SEEDS: u64 = 16;
const SHEET: &str = "omniglot_small1/greek_composite_81x113.png";
const TRUTH: &str = "omniglot_small1/greek_composite_81x113.csv";

/// Letters like alpha, gamma and upsilon.
fn letters() -> [Grid; 3] {
    let alpha = [
        "...............",
        "...............",
        "....####....##.",
        "..###..###.##..",
        ".###....##.##..",
        ".##......###...",
        ".##......##....",
        ".##......##....",
        ".##......##....",
        ".##.....###....",
        ".###...####.#..",
        "..#######.###..",
        "...####....##..",
        "...............",
        "...............",
    ];
    let gamma = [
        "...............",
        ".##.........##.",
        "..##.......##..",
        "...##......##..",
        "...###....##...",
        "....##...##....",
        ".....##..##....",
        ".....##.##.....",
        "......###......",
        "......##.......",
        ".....###.......",
        ".....#.##......",
        ".....#..#......",
        ".....####......",
        "...............",
    ];
    let upsilon = [
        "...............",
        "...............",
        "...............",
        ".####......##..",
        "....##......##.",
        "....##......##.",
        "....##......##.",
        "....##......##.",
        "....##......##.",
        "....##.....##..",
        ".....##...##...",
        "......#####....",
        "...............",
        "...............",
        "...............",
    ];
    [alpha, gamma, upsilon].map(|lines| Grid::drawing(&lines).blurred())
}

fn generate(context: &Context, truth: &[Grid; 3]) -> Grid {
    let mut rng = rng(context.seed, 26);
    let mut rate = Grid::zeros(&SHAPE);
    for (n, at) in places(3 * COPIES, &[0, 0], &ROOM, 12, &mut rng)
        .iter()
        .enumerate()
    {
        let letter = &truth[n % 3];
        let share = SHARES[n % 3] / COPIES as f64;
        rate.stamp(letter, at, COUNTS * share / letter.sum());
    }
    Grid::from_fn(&SHAPE, |i| poisson(rate.get(i), &mut rng))
}

fn fit(context: &Context, input: &Grid) -> Result<Runs> {
    let config = Shifted::new(3, KERNEL.to_vec()).anneal(Anneal {
        alpha0: 0.7,
        over: 70.0,
    });
    runs(&config, &input.tensor()?, context.starts(SEEDS), 120)
}

/// Input, reconstruction, kernels with their priors, impulses; `order[t]` is the component shown as letter `t`.
fn draw(
    context: &Context,
    name: &str,
    input: &Grid,
    runs: &Runs,
    order: &[usize],
) -> Result<Vec<String>> {
    let state = runs.best();
    let mut panels = vec![input.image("input")];
    for (t, &z) in order.iter().enumerate() {
        let kernel = Grid::of_block(state.kernels(), z, &KERNEL);
        panels.push(kernel.image(&format!(
            "kernel {}, P(z) = {:.2}",
            t + 1,
            state.weights()[z]
        )));
    }
    panels.push(runs.model().image("reconstruction"));
    for (t, &z) in order.iter().enumerate() {
        let impulse = Grid::of_block(state.impulses(), z, &ROOM);
        panels.push(impulse.image(&format!("impulse {}", t + 1)));
    }
    context.picture(name, 4, (380.0, 310.0), panels)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let input = generate(context, &letters());
    let mut entries = measure(context, &input)?;
    entries.extend(handwriting(context, false)?);
    Ok(entries)
}

/// Noise in place of the letters; the handwriting with its positions turned over.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut entries = measure(context, &noise(&SHAPE, context.seed))?;
    entries.extend(handwriting(context, true)?);
    Ok(entries)
}

fn measure(context: &Context, input: &Grid) -> Result<Vec<Entry>> {
    let truth = letters();
    let runs = fit(context, input)?;
    let found = matches(&truth, runs.best().kernels(), &[14, 14]);
    let order: Vec<usize> = found.iter().map(|m| m.component).collect();
    let files = draw(context, FIGURE.name, input, &runs, &order)?;
    let mut sorted: Vec<f64> = runs.best().weights().to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let off = sorted
        .iter()
        .zip(SHARES)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);

    let data = Data::generated("81 x 113, three letters, six copies each, Poisson noise");
    let cosine = worst(&found);
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    Ok(vec![
        row("best of sixteen starts: smallest kernel cosine", cosine).above(0.9),
        row(
            "largest distance of the sorted priors from 0.45, 0.33, 0.22",
            off,
        )
        .below(0.05),
    ])
}

/// The sheet of real letters, as six writers drew them, and every letter as the first one did: how many of their positions the impulses
/// show.
fn handwriting(context: &Context, over: bool) -> Result<Vec<Entry>> {
    let (Some(path), Some((table, _))) = (context.path(SHEET)?, context.file(TRUTH)?) else {
        return Ok(Vec::new());
    };
    let image = plca_media::read_image(&path)?;
    let data = Data::of_pixels(SHEET, &image.values);
    let input = Grid {
        shape: vec![image.height, image.width],
        values: image.values,
    };
    let mut positions = vec![Vec::new(); 3];
    for (line, record) in csv::Reader::from_reader(table.as_slice())
        .records()
        .enumerate()
    {
        let record = record?;
        let field = |n: usize| -> Result<usize> {
            let value = record.get(n).and_then(|f| f.trim().parse().ok());
            Ok(value.ok_or_else(|| format!("{TRUTH}, line {}: field {}", line + 2, n + 1))?)
        };
        let class = positions.get_mut(field(0)?).ok_or("a fourth letter")?;
        class.push([field(3)?, field(4)?]);
    }
    let mut one_hand = Grid::zeros(&input.shape);
    for class in &positions {
        let [top, left] = class[0];
        let letter = Grid::from_fn(&KERNEL, |i| input.get(&[top + i[0], left + i[1]]));
        for at in class {
            one_hand.stamp(&letter, at, 1.0);
        }
    }
    let turned = positions.iter().map(|class| {
        let turn = |&[row, column]: &[usize; 2]| match over {
            true => [ROOM[0] - 1 - row, ROOM[1] - 1 - column],
            false => [row, column],
        };
        class.iter().map(turn).collect()
    });
    let turned: Vec<Vec<[usize; 2]>> = turned.collect();
    let one = sheet(context, "one hand", &one_hand, &turned, &data)?;
    let six = sheet(context, "six hands", &input, &turned, &data)?;
    Ok(vec![one.at_least(15.0), six.at_least(15.0)])
}

/// Of one sheet, how many of the strongest local maxima, as many as there are letters, are at true positions.
fn sheet(
    context: &Context,
    name: &str,
    input: &Grid,
    positions: &[Vec<[usize; 2]>],
    data: &Data,
) -> Result<Entry> {
    let runs = fit(context, input)?;
    let state = runs.best();
    let peaks: Vec<_> = (0..3)
        .map(|z| peaks(&Grid::of_block(state.impulses(), z, &ROOM)))
        .collect();
    // How many of the first maxima, the strongest, hit.
    let hits = |most: usize| -> Vec<Vec<usize>> {
        let of = |class: &[[usize; 2]], peaks: &[[usize; 2]]| {
            hits(class, &peaks[..peaks.len().min(most)])
        };
        let classes = positions.iter();
        classes
            .map(|class| peaks.iter().map(|p| of(class, p)).collect())
            .collect()
    };
    let (strongest, all) = (hits(COPIES), hits(usize::MAX));
    let total = |hits: &[Vec<usize>], order: &[usize]| -> usize {
        order.iter().enumerate().map(|(t, &z)| hits[t][z]).sum()
    };
    let orders = permutations(3).into_iter();
    let order = orders.max_by_key(|order| total(&strongest, order));
    let order = order.unwrap_or_default();
    let file = format!("si_fig7_{}", name.replace(' ', "_"));
    let files = draw(context, &file, input, &runs, &order)?;
    let text = format!(
        "of 18; {} among all {} local maxima, D/v {:.4}",
        total(&all, &order),
        peaks.iter().map(Vec::len).sum::<usize>(),
        runs.divergence()
    );
    let what =
        format!("handwriting, {name}: true positions among as many of the strongest local maxima");
    let number = total(&strongest, &order) as f64;
    Ok(Entry::number(&what, number, data, &files).detail(text))
}

/// Local maxima of at least a tenth of the largest value, the strongest first.
fn peaks(impulse: &Grid) -> Vec<[usize; 2]> {
    let largest = impulse.values.iter().copied().fold(0.0, f64::max);
    let mut found = Vec::new();
    Grid::from_fn(&impulse.shape, |i| {
        let here = impulse.get(i);
        let around = (i[0].saturating_sub(1)..(i[0] + 2).min(impulse.shape[0])).flat_map(|y| {
            (i[1].saturating_sub(1)..(i[1] + 2).min(impulse.shape[1])).map(move |x| [y, x])
        });
        if here >= 0.1 * largest && around.into_iter().all(|at| impulse.get(&at) <= here) {
            found.push((here, [i[0], i[1]]));
        }
        0.0
    });
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, at)| at).collect()
}

/// How many positions have a peak within one pixel, all moved by one shift of at most half a kernel.
fn hits(positions: &[[usize; 2]], peaks: &[[usize; 2]]) -> usize {
    let shifts = (-7..=7).flat_map(|dy| (-7..=7).map(move |dx| [dy, dx]));
    let count = |shift: [isize; 2]| {
        let off =
            |p: &[usize; 2], q: &[usize; 2], d: usize| q[d] as isize - p[d] as isize - shift[d];
        let near = |p: &&[usize; 2]| {
            peaks
                .iter()
                .any(|q| (0..2).all(|d| off(p, q, d).abs() <= 1))
        };
        positions.iter().filter(near).count()
    };
    shifts.map(count).max().unwrap_or(0)
}
