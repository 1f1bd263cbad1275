//! Sets of words in documents, generated or of newsgroup postings, for figures 4 and 5 of HS.

use nalgebra::DMatrix;
use plca_dist::random::{Categorical, below, exponential, uniform};
use plca_tensor::{Coordinates, SparseTensor};
use rand_chacha::ChaCha8Rng;

use crate::Result;
use crate::report::Data;
use crate::reproduce::Context;

pub(super) const TOPICS: usize = 4;
pub(super) const WORDS: usize = 100;
pub(super) const FILE: &str = "20news_w100/20news_w100.txt";
pub(super) const LIST: &str = "20news_w100/wordlist.txt";

/// Documents as sets of words, each of one group.
pub(super) struct Corpus {
    pub(super) documents: Vec<Vec<u32>>,
    pub(super) groups: Vec<usize>,
}

impl Corpus {
    /// Words x documents.
    pub(super) fn tensor(&self) -> Result<SparseTensor<f64>> {
        let indices: Vec<u32> = (0..)
            .zip(&self.documents)
            .flat_map(|(d, words)| words.iter().flat_map(move |&w| [w, d]))
            .collect();
        let values = vec![1.0; indices.len() / 2];
        let shape = vec![WORDS, self.documents.len()];
        Ok(SparseTensor::new(Coordinates {
            shape,
            indices,
            values,
        })?)
    }

    pub(super) fn choose(&self, which: &[usize]) -> Self {
        Self {
            documents: which.iter().map(|&d| self.documents[d].clone()).collect(),
            groups: which.iter().map(|&d| self.groups[d]).collect(),
        }
    }
}

/// The newsgroup postings and their words; `None` without the data.
pub(super) fn read(context: &Context) -> Result<Option<(Corpus, Vec<String>, Data)>> {
    let Some((text, data)) = context.text(FILE)? else {
        return Ok(None);
    };
    let Some((list, _)) = context.text(LIST)? else {
        return Ok(None);
    };
    let mut corpus = Corpus {
        documents: Vec::new(),
        groups: Vec::new(),
    };
    for (line, fields) in text.lines().enumerate().skip(1) {
        let numbers: Vec<usize> = (fields.split_whitespace().map(str::parse))
            .collect::<std::result::Result<_, _>>()
            .map_err(|e| format!("{FILE}, line {}: {e}", line + 1))?;
        let (group, words) = match numbers.split_first() {
            Some((&group, words)) if (1..=TOPICS).contains(&group) => (group - 1, words),
            _ => return Err(format!("{FILE}, line {}: no group", line + 1).into()),
        };
        if let Some(word) = words.iter().find(|&&w| w >= WORDS) {
            return Err(format!("{FILE}, line {}: {word} is not a word index", line + 1).into());
        }
        corpus
            .documents
            .push(words.iter().map(|&w| w as u32).collect());
        corpus.groups.push(group);
    }
    let trim = |w: &str| w.trim_matches(['\'', '"']).to_owned();
    let vocabulary = list.split_whitespace().map(trim).collect();
    Ok(Some((corpus, vocabulary, data)))
}

/// Topics with 25 words of their own and 8 % of their mass shared by all words.
pub(super) fn topics(rng: &mut ChaCha8Rng) -> DMatrix<f64> {
    let own = WORDS / TOPICS;
    let mut topics = DMatrix::from_fn(WORDS, TOPICS, |w, t| {
        let draw = exponential(rng);
        if w / own == t { draw } else { 0.0 }
    });
    for mut column in topics.column_iter_mut() {
        let sum = column.sum();
        column.apply(|x| *x = 0.92 * *x / sum + 0.08 / WORDS as f64);
    }
    topics
}

/// Documents of about five words: one topic each, every tenth word from anywhere.
pub(super) fn generate(n: usize, topics: &DMatrix<f64>, rng: &mut ChaCha8Rng) -> Result<Corpus> {
    let words: Vec<Categorical> = (topics.column_iter())
        .map(|column| Categorical::new(column.clone_owned().as_slice()))
        .collect::<std::result::Result<_, _>>()?;
    let groups: Vec<usize> = (0..n).map(|d| d * TOPICS / n).collect();
    let mut document = |&topic: &usize| {
        let mut set: Vec<u32> = (0..6)
            .map(|_| match uniform(rng) < 0.1 {
                true => below(WORDS as u64, rng) as u32,
                false => words[topic].sample(rng) as u32,
            })
            .collect();
        set.sort_unstable();
        set.dedup();
        set
    };
    let documents = groups.iter().map(&mut document).collect();
    Ok(Corpus { documents, groups })
}
