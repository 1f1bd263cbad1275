//! Text with one sample a line, each a list of indices and values: svmlight and lda-c; and the bag of words of the UCI repository.

use std::io::BufRead;

use plca_tensor::Coordinates;

use crate::data::Element;
use crate::error::Fault;
use crate::text::{Accept, for_each_line, index, value};

/// What the first word of a line is, and where the indices begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum List {
    /// A label, which is left out. Indices from 1 or from 0: programs write either.
    Svmlight,
    /// The number of pairs. Indices from 0.
    LdaC,
}

/// A line without its comment, and the word before its pairs; a sample of svmlight may have no label.
fn parts(line: &str, list: List) -> (Option<&str>, impl Iterator<Item = &str>) {
    let line = line.split('#').next().unwrap_or_default();
    let mut words = line.split_ascii_whitespace().peekable();
    let labelled = |word: &&str| list == List::LdaC || !word.contains(':');
    (words.next_if(labelled), words)
}

/// Where the features begin, by a comment that scikit-learn writes.
fn said(line: &str) -> Option<u32> {
    let said = line.strip_prefix("# Column indices are ")?;
    let based = [("zero-based", 0), ("one-based", 1)];
    Some(based.iter().find(|(word, _)| said.starts_with(word))?.1)
}

/// The first index of an svmlight file: 0 if it has a 0, otherwise what a comment says, otherwise 1.
pub(crate) fn first_index(reader: &mut impl BufRead) -> Result<u32, Fault> {
    let mut first = None;
    for_each_line(reader, |_, line| {
        let (_, pairs) = parts(line, List::Svmlight);
        let mut indices = pairs.filter_map(|word| word.split_once(':')?.0.parse::<u32>().ok());
        if indices.any(|i| i == 0) {
            first = Some(0);
        }
        first = first.or(said(line));
        Ok(())
    })?;
    Ok(first.unwrap_or(1))
}

/// The matrix of all lines, samples in rows. `shape` says how many features there are; otherwise the largest index does. Features begin at `first`.
pub(crate) fn read<T: Element>(
    reader: &mut impl BufRead,
    list: List,
    shape: Option<&[usize]>,
    first: Option<u32>,
    accept: Accept<'_>,
) -> Result<Coordinates<T>, Fault> {
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    let first_index = match list {
        List::LdaC => Some(0),
        List::Svmlight => first,
    };
    let mut told = None;
    // An empty line, and whether samples have no label.
    let (mut empty, mut bare) = (None, false);
    let (mut rows, mut most, mut least) = (0u32, 0u32, 1u32);
    for_each_line(reader, |number, line| {
        told = told.or(said(line));
        let (first, pairs) = parts(line, list);
        let mut pairs = pairs.peekable();
        if first.is_none() && pairs.peek().is_none() {
            empty = empty.or(Some(number).filter(|_| line.trim().is_empty()));
            return Ok(());
        }
        bare |= first.is_none();
        let before = values.len();
        for word in pairs {
            let pair = word.split_once(':');
            let (i, x) = pair.ok_or_else(|| Fault::new(format!("`{word}` is no index:value")))?;
            if (list, i) == (List::Svmlight, "qid") {
                continue;
            }
            let what = || Fault::new(format!("index `{i}` is not a whole number below 2^32 - 1"));
            let i = i.parse().ok().filter(|&i| i < u32::MAX);
            let i: u32 = i.ok_or_else(what)?;
            if let Some(first) = first_index.filter(|&first| i < first) {
                return Err(Fault::new(format!(
                    "index {i} is below {first}, where the features begin"
                )));
            }
            (least, most) = (least.min(i), most.max(i));
            accept.allowance.take(size_of::<[u32; 2]>())?;
            indices.extend([rows, i]);
            values.push(value(x, accept.nan_sparse, accept)?);
        }
        let pairs = values.len() - before;
        if let Some(first) = first.filter(|first| list == List::LdaC && first.parse() != Ok(pairs))
        {
            return Err(Fault::new(format!(
                "`{first}` announces other than {pairs} pairs"
            )));
        }
        rows = rows
            .checked_add(1)
            .ok_or_else(|| Fault::new("too many lines"))?;
        Ok(())
    })?;
    if values.is_empty() {
        return Err(Fault::new("holds no entry"));
    }
    if let Some(number) = empty.filter(|_| bare) {
        let what = "is empty: among samples without labels it may be one without features, which needs a label";
        return Err(Fault::at(format!("line {number}"), what));
    }
    let begin = first_index.unwrap_or(least.min(told.unwrap_or(1)));
    let features = indices.iter_mut().skip(1).step_by(2);
    features.for_each(|i| *i -= begin);
    most -= begin;
    let found = vec![rows as usize, most as usize + 1];
    let shape = match shape {
        // Features that no sample has.
        Some(&[rows, features]) if [0, found[0]].contains(&rows) && features > found[1] => {
            vec![found[0], features]
        }
        _ => found,
    };
    Ok(Coordinates {
        shape,
        indices,
        values,
    })
}

/// Three lines with the numbers of documents, words and entries, then lines with a document, a word and a count, from 1. Calls `visit` with
/// every entry; returns the shape.
pub(crate) fn visit_docword<T: Element>(
    reader: &mut impl BufRead,
    accept: Accept<'_>,
    mut visit: impl FnMut([u32; 2], T) -> Result<(), Fault>,
) -> Result<Vec<usize>, Fault> {
    let (mut sizes, mut entries) = (Vec::new(), 0);
    for_each_line(reader, |_, line| {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else {
            return Ok(());
        };
        if sizes.len() < 3 {
            let size = first.parse().ok().filter(|&n| n <= u32::MAX as usize);
            let size = size.filter(|_| words.next().is_none()).ok_or_else(|| {
                let names = ["documents", "words", "entries"];
                Fault::new(format!("`{line}` is no number of {}", names[sizes.len()]))
            })?;
            sizes.push(size);
            return Ok(());
        }
        let [Some(word), Some(count), None] = [words.next(), words.next(), words.next()] else {
            return Err(Fault::new("needs a document, a word and a count"));
        };
        if entries == sizes[2] {
            let stored = sizes[2];
            return Err(Fault::new(format!(
                "more than the {stored} entries announced"
            )));
        }
        entries += 1;
        let at = [index(first, 0, sizes[0])?, index(word, 1, sizes[1])?];
        visit(at, value(count, accept.nan_sparse, accept)?)
    })?;
    match sizes[..] {
        [documents, words, stored] if stored == entries => Ok(vec![documents, words]),
        [_, _, stored] => Err(Fault::new(format!(
            "{entries} entries where {stored} are announced"
        ))),
        _ => Err(Fault::new("the file ends before the sizes")),
    }
}
