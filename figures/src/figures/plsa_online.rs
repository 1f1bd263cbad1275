//! PLSA learnt from blocks of documents, beside batch EM.

use std::ops::ControlFlow;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_dist::random::Categorical;
use plca_em::{Online, Plsa, StepSize, perplexity};
use plca_fit::{Init, Iteration, Model, Solver, Status, Stop};
use plca_priors::Dirichlet;
use plca_tensor::{Coordinates, SparseTensor};

use super::support::{dirichlet, largest, mixtures, rng, smallest};
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure, Size};

pub(crate) const FIGURE: Figure = Figure {
    name: "plsa_online",
    source: "specification, section 13 (stepwise EM)",
    title: "Perplexity of held-out words against passes over the documents: blocks of documents, and batch EM",
    criterion: "Learnt from blocks of 64 documents, steps (t + 1)^-0.6, the words of new documents are predicted after 5 passes within 15 per cent of \
                what batch EM comes to after 200, the best of three starts of either. The worst start, which may stay at a local optimum that batch EM \
                leaves, and blocks of 256 as measured.",
    data: &[FILE],
    run,
    control: Some(control),
};

const FILE: &str = "ap_corpus/ap.dat";
const STARTS: u64 = 3;
/// Passes of batch EM at the end.
const PASSES: usize = 200;
/// Passes over blocks that are judged, and at the end.
const JUDGED: usize = 5;
const BLOCK_PASSES: usize = 20;
const BLOCKS: [usize; 2] = [64, 256];
/// After these passes perplexity is measured, and after fewer under `--quick`.
const MEASURED: [usize; 13] = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, PASSES];
const QUICK: [usize; 4] = [1, JUDGED, 20, PASSES];
/// Every tenth document is new.
const NEW: usize = 10;
/// Shape of the Dirichlet priors: no word is impossible.
const SHAPE: f64 = 1.05;

/// Words of every document, one after the other.
struct Corpus {
    documents: Vec<Vec<u32>>,
    vocabulary: usize,
    topics: usize,
}

fn read(context: &Context) -> Result<Option<(Corpus, Data)>> {
    let Some((text, data)) = context.text(FILE)? else {
        return Ok(None);
    };
    let mut documents = Vec::new();
    for (line, fields) in text.lines().enumerate() {
        let mut words = Vec::new();
        for field in fields.split_whitespace().skip(1) {
            let pair = field.split_once(':');
            let pair =
                pair.and_then(|(w, c)| Some((w.parse::<u32>().ok()?, c.parse::<usize>().ok()?)));
            let (word, count) = pair.ok_or_else(|| {
                format!("{FILE}, line {}: `{field}` is not a word:count", line + 1)
            })?;
            words.extend(std::iter::repeat_n(word, count));
        }
        documents.push(words);
    }
    let last = documents.iter().flatten().max();
    let vocabulary = last.map_or(0, |&w| w as usize + 1);
    let corpus = Corpus {
        documents,
        vocabulary,
        topics: 20,
    };
    Ok(Some((corpus, data)))
}

fn generate(context: &Context) -> Result<Corpus> {
    let mut rng = rng(context.seed, 71);
    let (vocabulary, topics, length) = (1000, 10, 100);
    let of_topics = dirichlet(vocabulary, topics, 0.05, &mut rng);
    let mixtures = dirichlet(topics, context.size(2000, 1000), 0.1, &mut rng);
    let document = |mixture: nalgebra::DVectorView<'_, f64>| {
        let words = Categorical::new((&of_topics * mixture).as_slice())?;
        Ok((0..length).map(|_| words.sample(&mut rng) as u32).collect())
    };
    let documents = mixtures.column_iter().map(document);
    Ok(Corpus {
        documents: documents.collect::<Result<_>>()?,
        vocabulary,
        topics,
    })
}

impl Corpus {
    /// Counts of the words in these documents, a column for each.
    fn counts(&self, documents: &[Vec<u32>]) -> Result<SparseTensor<f64>> {
        let documents = documents.iter().enumerate();
        let indices: Vec<u32> = documents
            .clone()
            .flat_map(|(d, words)| words.iter().flat_map(move |&w| [w, d as u32]))
            .collect();
        Ok(SparseTensor::new(Coordinates {
            shape: vec![self.vocabulary, documents.len()],
            values: vec![1.0; indices.len() / 2],
            indices,
        })?)
    }
}

/// New documents: the words that their mixtures are found from, and those that are predicted.
struct New {
    known: SparseTensor<f64>,
    predicted: Vec<Vec<u32>>,
    measured: &'static [usize],
}

impl New {
    fn perplexity(&self, basis: &DMatrix<f64>) -> Result<f64> {
        let mixtures = mixtures(basis, &self.known)?;
        let (mut ln_lik, mut words) = (0.0, 0.0);
        for (document, mixture) in self.predicted.iter().zip(mixtures.column_iter()) {
            for &word in document {
                // A word that no topic has costs much, but not everything.
                let p = basis.row(word as usize).transpose().dot(&mixture);
                ln_lik += p.max(1e-12).ln();
                words += 1.0;
            }
        }
        Ok(perplexity(ln_lik, words))
    }
}

fn model(topics: usize) -> Result<Plsa> {
    let prior = Arc::new(Dirichlet::symmetric(SHAPE)?);
    let plsa = Plsa::new(topics).prior("basis", prior.clone());
    Ok(plsa.prior("mixture", prior))
}

/// Perplexities of batch EM after some passes.
fn batch(corpus: &Corpus, train: &[Vec<u32>], new: &New, seed: u64) -> Result<Vec<(f64, f64)>> {
    let (data, plsa) = (corpus.counts(train)?, model(corpus.topics)?);
    let (mut curve, mut failed) = (Vec::new(), None);
    let note = |it: &Iteration<'_, f64>| {
        let pass = it.done();
        if new.measured.contains(&pass) {
            match new.perplexity(it.parameters().at(0)) {
                Ok(perplexity) => curve.push((pass as f64, perplexity)),
                Err(e) => failed = Some(e),
            }
        }
        match failed {
            Some(_) => ControlFlow::Break(Status::Interrupted),
            None => ControlFlow::Continue(()),
        }
    };
    let run = plsa.on(&data)?.solver(Solver::Em).observe(note);
    let stop = Stop::default().max_iter(PASSES).tol(None);
    let _ = run.stop(stop).run(Init::default(), &mut rng(seed, 72))?;
    match failed {
        Some(e) => Err(e),
        None => Ok(curve),
    }
}

/// Perplexities after passes over batches of this number of documents.
fn online(
    corpus: &Corpus,
    train: &[Vec<u32>],
    new: &New,
    (size, passes): (usize, usize),
    seed: u64,
) -> Result<Vec<(f64, f64)>> {
    let words = train.iter().map(Vec::len).sum::<usize>() as f64;
    let learner = Online::new(model(corpus.topics)?)
        .step(StepSize::Power {
            kappa: 0.6,
            t0: 1.0,
        })
        .total(words);
    let mut state = learner.init(&[corpus.vocabulary], &mut rng(seed, 72))?;
    let mut curve = Vec::new();
    for pass in 1..=passes {
        let blocks = train.chunks(size).map(|block| corpus.counts(block));
        learner
            .fit_stream(&mut state, blocks)
            .map_err(|e| e.to_string())?;
        if new.measured.contains(&pass) {
            curve.push((pass as f64, new.perplexity(&state.factors[0])?));
        }
    }
    Ok(curve)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, false)
}

/// Blocks of documents whose words are moved on by a part of the vocabulary.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, true)
}

fn measure(context: &Context, wrong: bool) -> Result<Vec<Entry>> {
    let (corpus, data) = match read(context)? {
        Some(found) => found,
        None => (
            generate(context)?,
            Data::generated("documents drawn from ten topics"),
        ),
    };
    let (mut train, mut known, mut predicted) = (Vec::new(), Vec::new(), Vec::new());
    for (d, words) in corpus.documents.iter().enumerate() {
        if d % NEW == NEW - 1 {
            known.push(words.iter().step_by(2).copied().collect());
            predicted.push(words.iter().skip(1).step_by(2).copied().collect());
        } else {
            train.push(words.clone());
        }
    }
    let known = corpus.counts(&known)?;
    let new = New {
        known,
        predicted,
        measured: match context.size {
            Size::Quick => &QUICK,
            _ => &MEASURED,
        },
    };

    let mut streamed = train.clone();
    if wrong {
        let (by, of) = (corpus.vocabulary as u32 / 3, corpus.vocabulary as u32);
        let words = streamed.iter_mut().flatten();
        words.for_each(|word| *word = (*word + by) % of);
    }

    let mut series = Vec::new();
    let mut draw = |name: &str, colour: usize, start: u64, curve: &[(f64, f64)]| {
        let name = if start == 0 { name } else { "" };
        series.push(Series::new(name, colour, curve.to_vec()));
    };
    // After the passes that are judged, for every start.
    let mut whole = Vec::new();
    let mut blocks: [Vec<f64>; 2] = Default::default();
    for start in 0..STARTS {
        let seed = context.start(start);
        let curve = batch(&corpus, &train, &new, seed)?;
        draw("batch EM", 1, start, &curve);
        whole.extend(curve.last().map(|p| p.1));
        for (at, &size) in BLOCKS.iter().enumerate() {
            let passes = context.size(BLOCK_PASSES, JUDGED);
            let curve = online(&corpus, &streamed, &new, (size, passes), seed)?;
            draw(&format!("blocks of {size}"), 2 * at, start, &curve);
            let judged = curve.iter().find(|&&(pass, _)| pass == JUDGED as f64);
            blocks[at].extend(judged.map(|&(_, perplexity)| perplexity));
        }
    }
    let points = || series.iter().flat_map(|s| &s.points).map(|p| p.1);
    let (low, high) = (points().fold(f64::INFINITY, f64::min), largest(points()));
    let panel = Panel::lines(
        "new documents",
        &series,
        &Axis::log("passes", 1.0, PASSES as f64),
        &Axis::linear("perplexity", 0.95 * low, 1.05 * high),
    );
    let files = context.picture(FIGURE.name, 1, (700.0, 420.0), vec![panel])?;

    let end = smallest(whole.iter().copied());
    let [best, worst] = [
        smallest(blocks[0].iter().copied()),
        largest(blocks[0].iter().copied()),
    ];
    let row = |what: &str, ratio: f64| Entry::number(what, ratio, &data, &files);
    Ok(vec![
        row(
            "perplexity by blocks of 64 after 5 passes over that by batch EM after 200, the best start of each",
            best / end,
        )
        .at_most(1.15),
        row("the worst start of the former", worst / end),
        row(
            "blocks of 256 after 5 passes, the best start",
            smallest(blocks[1].iter().copied()) / end,
        ),
    ])
}
