//! PLSA of word counts: topics, and what tempered EM does for words not seen.

use std::io::Read as _;
use std::ops::ControlFlow;

use nalgebra::DMatrix;
use plca_dist::random::Categorical;
use plca_em::{
    Algorithm as _, CooledEm, CooledState, Cooling, Plca, PlcaInit, PlcaState, Plsa, PlsaInit,
    PlsaState, Stop, Tempered, best_of, hold_out, perplexity,
};
use plca_fit::{Direction, Iteration};
use plca_tensor::{Coordinates, Observed, SparseTensor};

use super::support::{best_matching, cosine, dirichlet, divergence, rng, smallest};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Series};
use crate::reproduce::{Context, Data, Entry, Figure, Measured};

pub(crate) const FIGURE: Figure = Figure {
    name: "plsa_topics",
    source: "[SI] section 2 and tempered EM (Hofmann)",
    title: "Topics of word counts, and the perplexity of held-out words",
    criterion: "On the 20-newsgroups words the best of ten starts has D/S between 1.99 and 2.05; on generated documents it \
                finds the topics. Tempered EM predicts held-out words no worse than plain EM stopped at its best iteration.",
    run,
};

const TOPICS: usize = 4;
const STARTS: u64 = 10;
const FILE: &str = "20news_w100/20news_w100.txt.gz";
/// One word in ten judges; one in ten chooses the temperature.
const JUDGES: f64 = 0.1;
const CHOOSES: f64 = 0.1;

/// Counts of words (rows) in documents (columns).
struct Words {
    counts: SparseTensor<f64>,
    vocabulary: Vec<String>,
    /// The generating topics, where they are known.
    truth: Option<DMatrix<f64>>,
}

/// Counts of events `(word, document)`.
fn counts(events: &[[u32; 2]], words: usize, documents: usize) -> Result<SparseTensor<f64>> {
    Ok(SparseTensor::new(Coordinates {
        shape: vec![words, documents],
        indices: events.concat(),
        values: vec![1.0; events.len()],
    })?)
}

fn read(context: &Context) -> Result<Option<(Words, Data)>> {
    let Some((bytes, data)) = context.file(FILE)? else {
        return Ok(None);
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .map_err(|e| format!("{FILE}: {e}"))?;
    let Some((list, _)) = context.file("20news_w100/wordlist.txt")? else {
        return Err("20news_w100/wordlist.txt is missing beside the counts".into());
    };
    let vocabulary: Vec<String> = String::from_utf8(list)?
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
                .ok_or_else(|| format!("{FILE}, line {}: `{field}` is no word index", line + 1))?;
            events.push([word, documents as u32]);
        }
        documents += 1;
    }
    let words = Words {
        counts: counts(&events, vocabulary.len(), documents)?,
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
        events.extend((0..length).map(|_| [words.sample(&mut rng) as u32, d as u32]));
    }
    Ok(Words {
        counts: counts(&events, vocabulary, documents)?,
        vocabulary: (0..vocabulary).map(|w| format!("w{w}")).collect(),
        truth: Some(topics),
    })
}

/// Perplexities after every iteration of one way to run EM.
#[derive(Default)]
struct Curve {
    fitted: Vec<(f64, f64)>,
    test: Vec<(f64, f64)>,
}

/// Perplexity of words under a state.
fn score<E: Tempered<State = PlsaState<f64>>>(words: &E, state: &PlsaState<f64>) -> f64 {
    perplexity(words.ln_lik(state), words.total())
}

/// Plain and tempered EM of the same words from the same start, judged by words that neither saw.
struct Comparison {
    plain: Curve,
    tempered: Curve,
    /// Power and test perplexity of the tempered state that other words chose.
    power: f64,
    chosen: f64,
}

fn compare(words: &SparseTensor<f64>, seed: u64, iterations: usize) -> Result<Comparison> {
    let mut draws = rng(seed, 9);
    let judged = hold_out(words, JUDGES, &mut draws)?;
    let parts = hold_out(&judged.train, CHOOSES / (1.0 - JUDGES), &mut draws)?;
    let plsa = Plsa::builder(TOPICS).build()?;
    let (test, train) = (plsa.on(&judged.held)?, plsa.on(&parts.train)?);
    let start = plsa.init(&parts.train, &PlsaInit::default(), &mut rng(seed, 0))?;
    let watch = |curve: &mut Curve, iteration: usize, state: &PlsaState<f64>| {
        let x = iteration as f64;
        curve.fitted.push((x, score(&train, state)));
        curve.test.push((x, score(&test, state)));
    };

    let mut plain = Curve::default();
    let mut state = start.clone();
    for i in 1..=iterations {
        train.step(&mut state, false)?;
        watch(&mut plain, i, &state);
    }

    // [SPEC 1.4]
    let (rest, held) = (plsa.on(&judged.train)?, plsa.on(&parts.held)?);
    let cooled = CooledEm::new(rest, plsa.on(&parts.train)?, held, Cooling::default())?;
    let mut tempered = Curve::default();
    let stop = Stop {
        max_iter: 10 * iterations,
        tol: 0.0,
        ..Stop::default()
    };
    let start = cooled.start(start);
    let observer = |i: &Iteration<'_, CooledState<PlsaState<f64>>>| {
        watch(&mut tempered, i.iteration, &i.state.current);
        ControlFlow::Continue(())
    };
    let best = plca_em::run(&cooled, start, &stop, observer)?.state.best;
    Ok(Comparison {
        plain,
        tempered,
        power: best.power,
        chosen: score(&test, &best),
    })
}

fn topic_panels(words: &Words, state: &PlcaState<f64>) -> Vec<Panel> {
    let mut order: Vec<usize> = (0..TOPICS).collect();
    order.sort_by(|&a, &b| state.weights[b].total_cmp(&state.weights[a]));
    order
        .iter()
        .enumerate()
        .map(|(n, &z)| {
            let column = state.factors[0].column(z);
            let mut ranked: Vec<usize> = (0..words.vocabulary.len()).collect();
            ranked.sort_by(|&a, &b| column[b].total_cmp(&column[a]));
            let bars: Vec<_> = ranked
                .iter()
                .take(8)
                .map(|&w| (words.vocabulary[w].clone(), column[w]))
                .collect();
            let title = format!("topic {}, P(z) = {:.2}", n + 1, state.weights[z]);
            Panel::bars(&title, &bars, "P(word | z)", n)
        })
        .collect()
}

fn curves_panel(title: &str, plain: &[(f64, f64)], tempered: &[(f64, f64)], power: f64) -> Panel {
    // A word that a state rules out makes its perplexity infinite: nothing to draw.
    let finite = |curve: &[(f64, f64)]| -> Vec<(f64, f64)> {
        curve.iter().copied().filter(|p| p.1.is_finite()).collect()
    };
    let (plain, tempered) = (finite(plain), finite(tempered));
    let all = || plain.iter().chain(&tempered);
    let (low, high) = (
        all().map(|p| p.1).fold(f64::INFINITY, f64::min),
        all().map(|p| p.1).fold(0.0, f64::max),
    );
    let last = all().map(|p| p.0).fold(1.0, f64::max);
    let name = format!("tempered, power {power:.2}");
    let series = [
        Series::new("plain EM", 1, plain),
        Series::new(&name, 0, tempered),
    ];
    let x = Axis::linear("iteration", 0.0, last);
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
    let (words, data) = match read(context)? {
        Some(found) => found,
        None => (
            generate(context)?,
            Data::generated("documents drawn from four topics"),
        ),
    };
    let all = &words.counts;
    let stop = Stop {
        max_iter: context.size(500, 200),
        tol: 0.0,
        check_every: 100,
        ..Stop::default()
    };
    let plca = Plca::builder(TOPICS).build()?;
    let best = best_of(STARTS, Direction::Maximise, |s| {
        plca.fit(
            all,
            &PlcaInit::default(),
            &stop,
            &mut rng(context.seed + s, 0),
        )
    })?;

    let iterations = context.size(120, 60);
    let Comparison {
        plain,
        tempered,
        power,
        chosen,
    } = compare(all, context.seed, iterations)?;
    let oracle = plain.test.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);

    let mut panels = topic_panels(&words, &best.state);
    panels.push(curves_panel(
        "fitted words",
        &plain.fitted,
        &tempered.fitted,
        power,
    ));
    panels.push(curves_panel(
        "held-out words",
        &plain.test,
        &tempered.test,
        power,
    ));
    let files = context.picture(FIGURE.name, 2, (560.0, 330.0), panels)?;

    let quality = match &words.truth {
        None => {
            let d = divergence(all, best.objective);
            let pass = (1.99..=2.05).contains(&d);
            let what = "best of ten starts: D/S between 1.99 and 2.05";
            context.entry(what, Measured::Number(d), pass, &data, &files)
        }
        Some(truth) => {
            let found = &best.state.factors[0];
            let order = best_matching(TOPICS, |t, z| -cosine(truth.column(t), found.column(z)));
            let matched = order.iter().enumerate();
            let worst = smallest(matched.map(|(t, &z)| cosine(truth.column(t), found.column(z))));
            let what = "best of ten starts: smallest cosine with a generating topic > 0.9";
            context.entry(what, Measured::Number(worst), worst > 0.9, &data, &files)
        }
    };
    let text = format!("{chosen:.3} (power {power:.2}) against {oracle:.3}");
    let what =
        "held-out perplexity: tempered EM, stopped by other words, against the lowest of plain EM";
    let held_out = context.entry(what, Measured::Text(text), chosen <= oracle, &data, &files);
    Ok(vec![quality, held_out])
}
