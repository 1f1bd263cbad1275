//! PLSA of word counts: topics, and what tempered EM does for words not seen.

use std::ops::ControlFlow;

use nalgebra::DMatrix;
use plca_dist::random::{Categorical, below, uniform};
use plca_em::{Plca, PlcaState, Plsa};
use plca_fit::{Init, Iteration, Model, Parameters, Solver, Stop};
use plca_tensor::{Coordinates, SparseTensor};
use rand_chacha::ChaCha8Rng;

use super::support::{best_matching, cosine, dirichlet, divergence, rng, smallest};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "plsa_topics",
    source: "[SI] section 2 and tempered EM (Hofmann)",
    title: "Topics of word counts, and the perplexity of held-out words",
    criterion: "On the 20-newsgroups words the best of ten starts has D/S between 1.99 and 2.05; on generated documents it \
                finds the topics. Tempered EM predicts held-out words no worse than plain EM stopped at its best iteration.",
    data: &[FILE, WORDS],
    run,
    control: Some(control),
};

const TOPICS: usize = 4;
const STARTS: u32 = 10;
const FILE: &str = "20news_w100/20news_w100.txt";
const WORDS: &str = "20news_w100/wordlist.txt";
/// One held-out word in five; half of those choose the temperature, the other half judge.
const HELD_OUT: u64 = 5;
/// Tempering power from stage to stage.
const COOLING: f64 = 0.9;
/// Stages, down to a power of 0.39.
const STAGES: i32 = 9;

/// Events `(word, document)`.
struct Words {
    events: Vec<(u32, u32)>,
    documents: usize,
    vocabulary: Vec<String>,
    /// The generating topics, where they are known.
    truth: Option<DMatrix<f64>>,
}

fn read(context: &Context) -> Result<Option<(Words, Data)>> {
    let Some((text, data)) = context.text(FILE)? else {
        return Ok(None);
    };
    let Some((list, _)) = context.text(WORDS)? else {
        return Ok(None);
    };
    let vocabulary: Vec<String> = list
        .split_whitespace()
        .map(|w| w.trim_matches(['\'', '"']).to_owned())
        .collect();
    let mut events = Vec::new();
    let mut documents = 0;
    for (line, fields) in text.lines().enumerate().skip(1) {
        // The first field is the group of the posting.
        for field in fields.split_whitespace().skip(1) {
            let word: u32 = field
                .parse()
                .ok()
                .filter(|&w| (w as usize) < vocabulary.len())
                .ok_or_else(|| {
                    format!("{FILE}, line {}: `{field}` is not a word index", line + 1)
                })?;
            events.push((word, documents as u32));
        }
        documents += 1;
    }
    let words = Words {
        events,
        documents,
        vocabulary,
        truth: None,
    };
    Ok(Some((words, data)))
}

fn generate(context: &Context) -> Result<Words> {
    let mut rng = rng(context.seed, 7);
    let (vocabulary, documents, length) = (100, context.size(2000, 1200), 12);
    let topics = dirichlet(vocabulary, TOPICS, 0.15, &mut rng);
    let mixtures = dirichlet(TOPICS, documents, 0.1, &mut rng);
    let expected = &topics * &mixtures;
    let mut events = Vec::new();
    for (d, column) in expected.column_iter().enumerate() {
        let words = Categorical::new(column.clone_owned().as_slice())?;
        events.extend((0..length).map(|_| (words.sample(&mut rng) as u32, d as u32)));
    }
    Ok(Words {
        events,
        documents,
        vocabulary: (0..vocabulary).map(|w| format!("w{w}")).collect(),
        truth: Some(topics),
    })
}

impl Words {
    fn tensor<'a>(
        &self,
        events: impl Iterator<Item = &'a (u32, u32)>,
    ) -> Result<SparseTensor<f64>> {
        let indices: Vec<u32> = events.flat_map(|&(w, d)| [w, d]).collect();
        let values = vec![1.0; indices.len() / 2];
        let shape = vec![self.vocabulary.len(), self.documents];
        Ok(SparseTensor::new(Coordinates {
            shape,
            indices,
            values,
        })?)
    }
}

/// `exp(-Σ ln P(w | d) / n)`.
fn perplexity(at: &Parameters<f64>, events: &[(u32, u32)]) -> f64 {
    let (basis, mixture) = (at.at(0), at.at(1));
    let sum: f64 = events
        .iter()
        .map(|&(w, d)| {
            let p = (basis.row(w as usize).transpose()).dot(&mixture.column(d as usize));
            // A floor, so that a word ruled out costs much but not everything.
            p.max(1e-12).ln()
        })
        .sum();
    (-sum / events.len() as f64).exp()
}

/// Perplexities after every iteration of one way to run EM.
struct Curve {
    power: f64,
    fitted: Vec<(f64, f64)>,
    test: Vec<(f64, f64)>,
    /// The lowest perplexity of the validation words.
    validation: f64,
    /// Test perplexity of the state that the validation words chose.
    chosen: f64,
}

struct Split {
    train: Vec<(u32, u32)>,
    validation: Vec<(u32, u32)>,
    test: Vec<(u32, u32)>,
}

fn split(events: &[(u32, u32)], rng: &mut ChaCha8Rng) -> Split {
    let mut parts = Split {
        train: Vec::new(),
        validation: Vec::new(),
        test: Vec::new(),
    };
    for &event in events {
        let part = if below(HELD_OUT, rng) > 0 {
            &mut parts.train
        } else if uniform(rng) < 0.5 {
            &mut parts.validation
        } else {
            &mut parts.test
        };
        part.push(event);
    }
    parts
}

/// EM at a fixed tempering power, and the iteration that the validation words would stop it at.
fn follow(words: &Words, parts: &Split, seed: u64, iterations: usize, power: f64) -> Result<Curve> {
    let train = words.tensor(parts.train.iter())?;
    // [SPEC 1.4]
    let plsa = Plsa::new(TOPICS).temper(power);
    let mut curve = Curve {
        power,
        fitted: Vec::new(),
        test: Vec::new(),
        validation: f64::INFINITY,
        chosen: f64::INFINITY,
    };
    let note = |it: &Iteration<'_, f64>| {
        let (at, i) = (it.parameters(), it.done() as f64);
        let [fitted, now, test] =
            [&parts.train, &parts.validation, &parts.test].map(|part| perplexity(at, part));
        curve.fitted.push((i, fitted));
        curve.test.push((i, test));
        if now < curve.validation {
            (curve.validation, curve.chosen) = (now, test);
        }
        ControlFlow::Continue(())
    };
    let run = plsa.on(&train)?.solver(Solver::Em).observe(note);
    let run = run.stop(Stop::default().max_iter(iterations).tol(None));
    let _ = run.run(Init::default(), &mut rng(seed, 0))?;
    Ok(curve)
}

/// Lowers the power stage by stage, each from the same start; the validation words choose the stage.
fn tempered(words: &Words, parts: &Split, seed: u64, iterations: usize) -> Result<Curve> {
    let mut best = follow(words, parts, seed, iterations, COOLING)?;
    for stage in 2..=STAGES {
        let power = COOLING.powi(stage);
        let next = follow(words, parts, seed, iterations, power)?;
        if next.validation < best.validation {
            best = next;
        }
    }
    Ok(best)
}

fn topic_panels(words: &Words, state: &PlcaState<f64>) -> Vec<Panel> {
    let mut order: Vec<usize> = (0..TOPICS).collect();
    order.sort_by(|&a, &b| state.weights()[b].total_cmp(&state.weights()[a]));
    order
        .iter()
        .enumerate()
        .map(|(n, &z)| {
            let column = state.factor(0).column(z);
            let mut ranked: Vec<usize> = (0..words.vocabulary.len()).collect();
            ranked.sort_by(|&a, &b| column[b].total_cmp(&column[a]));
            let bars: Vec<_> = ranked
                .iter()
                .take(8)
                .map(|&w| (words.vocabulary[w].clone(), column[w]))
                .collect();
            let title = format!("topic {}, P(z) = {:.2}", n + 1, state.weights()[z]);
            Panel::bars(&title, &bars, "P(word | z)", n)
        })
        .collect()
}

fn curves_panel(title: &str, plain: &[(f64, f64)], tempered: &[(f64, f64)], power: f64) -> Panel {
    let all = || plain.iter().chain(tempered).map(|p| p.1);
    let (low, high) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(0.0, f64::max),
    );
    let name = format!("tempered, power {power:.2}");
    let series = [
        Series::new("plain EM", 1, plain.to_vec()),
        Series::new(&name, 0, tempered.to_vec()),
    ];
    let x = Axis::linear("iteration", 0.0, plain.len() as f64);
    let wide = high > 20.0 * low;
    let corner = if wide {
        LegendPosition::InsideTopLeft
    } else {
        LegendPosition::InsideTopRight
    };
    let y = if wide {
        Axis::log("perplexity", low, 10.0 * high)
    } else {
        Axis::linear(
            "perplexity",
            low - 0.06 * (high - low),
            high + 0.06 * (high - low),
        )
    };
    Panel::lines(title, &series, &x, &y).legend(corner)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, false)
}

/// Words dealt out to the documents at random, and the two ways to run EM exchanged.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, true)
}

fn measure(context: &Context, wrong: bool) -> Result<Vec<Entry>> {
    let (mut words, data) = match read(context)? {
        Some(found) => found,
        None => (
            generate(context)?,
            Data::generated("documents drawn from four topics"),
        ),
    };
    if wrong {
        let mut draws = rng(context.seed, 501);
        for i in (1..words.events.len()).rev() {
            let j = below(i as u64 + 1, &mut draws) as usize;
            (words.events[i].0, words.events[j].0) = (words.events[j].0, words.events[i].0);
        }
    }
    let all = words.tensor(words.events.iter())?;
    let plca = Plca::new(TOPICS);
    // The criterion is what EM comes to: coordinate descent goes on to lower divergences.
    let run = plca.on(&all)?.restarts(STARTS).solver(Solver::Em);
    let run = run.stop(Stop::default().max_iter(context.size(500, 200)).tol(None));
    let best = run.run(Init::default(), &mut rng(context.seed, 0))?;

    let parts = split(&words.events, &mut rng(context.seed, 9));
    let iterations = context.size(120, 60);
    let plain = follow(&words, &parts, context.seed, iterations, 1.0)?;
    let tempered = tempered(&words, &parts, context.seed, iterations)?;
    let oracle = plain.test.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);

    let mut panels = topic_panels(&words, best.state());
    panels.push(curves_panel(
        "fitted words",
        &plain.fitted,
        &tempered.fitted,
        tempered.power,
    ));
    panels.push(curves_panel(
        "held-out words",
        &plain.test,
        &tempered.test,
        tempered.power,
    ));
    let files = context.picture(FIGURE.name, 2, (560.0, 330.0), panels)?;

    let quality = match &words.truth {
        None => {
            let d = divergence(&all, best.objective());
            Entry::number("best of ten starts: D/S", d, &data, &files).within(1.99, 2.05)
        }
        Some(truth) => {
            let found = best.state().factor(0);
            let order = best_matching(TOPICS, |t, z| -cosine(truth.column(t), found.column(z)));
            let matched = order.iter().enumerate();
            let worst = smallest(matched.map(|(t, &z)| cosine(truth.column(t), found.column(z))));
            let what = "best of ten starts: smallest cosine with a generating topic";
            Entry::number(what, worst, &data, &files).above(0.9)
        }
    };
    let [mine, lowest] = match wrong {
        true => [oracle, tempered.chosen],
        false => [tempered.chosen, oracle],
    };
    let what = "perplexity of held-out words: tempered EM, stopped by other words, less the lowest of plain EM";
    let held_out = Entry::number(what, mine - lowest, &data, &files).at_most(0.0);
    let detail = format!(
        "{mine:.3} (power {:.2}) against {lowest:.3}",
        tempered.power
    );
    Ok(vec![quality, held_out.detail(detail)])
}
