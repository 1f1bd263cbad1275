//! The postings as the figures read them: text, from the MATLAB 5 file that is published.

use std::path::Path;

use crate::{Result, files};

/// What is published.
pub(super) const MAT: &str = "20news_w100.mat";
pub(super) const TEXT: &str = "20news_w100.txt";
pub(super) const WORDS: &str = "wordlist.txt";
const TEXT_SHA256: &str = "b00553157cbc7118e69375cf3b0dca76f2b78ce801171610eabf5f68b0f798cc";
const WORDS_SHA256: &str = "8878e61c2d5eaa9d05a34fff309a4c1f3d7c4654f1d94e4e11e04ea63e5043d0";

const CHARACTERS: u32 = 4;
const SPARSE: u32 = 5;

/// Parts of a MATLAB 5 file: type and bytes, one after the other, each padded to eight bytes.
fn elements(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let kind = whole(bytes)?;
        // Up to four bytes may share the tag's eight, with their number above the type.
        let (first, length): (usize, usize) = match kind >> 16 {
            0 => (8, whole(bytes.get(4..)?)? as usize),
            small => (4, small as usize),
        };
        out.push(bytes.get(first..first.checked_add(length)?)?);
        let next = (first + length).next_multiple_of(8);
        bytes = bytes.get(next..).unwrap_or(&[]);
    }
    Some(out)
}

fn whole(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|b| u32::from_le_bytes(*b))
}

fn wholes(bytes: &[u8]) -> Vec<usize> {
    let (words, _) = bytes.as_chunks::<4>();
    words
        .iter()
        .map(|w| u32::from_le_bytes(*w) as usize)
        .collect()
}

/// Parts of the variable `name`, after its flags, size and name.
fn variable<'a>(variables: &[&'a [u8]], name: &str) -> Option<Vec<&'a [u8]>> {
    let mut parts = (variables.iter())
        .filter_map(|v| elements(v))
        .find(|parts| parts.get(2) == Some(&name.as_bytes()))?;
    Some(parts.split_off(3))
}

/// One line of each posting: its group and the words in it, from 0; and the words.
fn text(mat: &[u8]) -> Option<(String, String)> {
    let variables = elements(mat.get(128..)?)?;
    let documents = (variables.iter().filter_map(|v| elements(v)))
        .find(|parts| parts.get(2) == Some(&&b"documents"[..]))?;
    if whole(documents[0])? & 0xff != SPARSE {
        return None;
    }
    let (rows, ends) = (wholes(documents.get(3)?), wholes(documents.get(4)?));
    let groups = *variable(&variables, "newsgroups")?.first()?;
    let mut text = String::from("label word_index...\n");
    for (group, run) in groups.iter().zip(ends.windows(2)) {
        text.push_str(&group.to_string());
        for row in rows.get(run[0]..run[1])? {
            text.push_str(&format!(" {row}"));
        }
        text.push('\n');
    }
    let mut words = String::new();
    for word in variable(&variables, "wordlist")? {
        let parts = elements(word)?;
        if whole(parts.first()?)? & 0xff != CHARACTERS {
            return None;
        }
        // Characters take one byte or two.
        let letters = parts.get(3)?.iter().filter(|&&b| b != 0);
        words.extend(letters.map(|&b| char::from(b)));
        words.push('\n');
    }
    Some((text, words))
}

/// Whether both derived files are there and right.
pub(super) fn present(folder: &Path) -> bool {
    [(TEXT, TEXT_SHA256), (WORDS, WORDS_SHA256)]
        .into_iter()
        .all(|(name, want)| {
            super::content(&folder.join(name)).is_some_and(|bytes| files::sha256(&bytes) == want)
        })
}

/// Writes both derived files beside the published one.
pub(super) fn derive(folder: &Path) -> Result<()> {
    let mat = std::fs::read(folder.join(MAT))?;
    let (text, words) = text(&mat).ok_or("20news_w100.mat has another layout than expected")?;
    for (what, bytes, want) in [(TEXT, &text, TEXT_SHA256), (WORDS, &words, WORDS_SHA256)] {
        let got = files::sha256(bytes.as_bytes());
        if got != want {
            return Err(format!("{what} from {MAT}: sha256 is {got}, expected {want}").into());
        }
    }
    files::write_atomic(&folder.join(TEXT), text.as_bytes())?;
    files::write_atomic(&folder.join(WORDS), words.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut out = [kind.to_le_bytes(), (body.len() as u32).to_le_bytes()].concat();
        out.extend(body);
        out.resize(out.len().next_multiple_of(8), 0);
        out
    }

    fn array(class: u32, size: [u32; 2], name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
        let pair = |a: u32, b: u32| [a.to_le_bytes(), b.to_le_bytes()].concat();
        let head = [
            element(6, &pair(class, 0)),
            element(5, &pair(size[0], size[1])),
            element(1, name.as_bytes()),
        ];
        element(14, &[head.concat(), parts.concat()].concat())
    }

    fn numbers(values: &[u32]) -> Vec<u8> {
        element(
            5,
            &values
                .iter()
                .flat_map(|x| x.to_le_bytes())
                .collect::<Vec<_>>(),
        )
    }

    /// Three postings of three words.
    fn small() -> Vec<u8> {
        let word = |w: &str| {
            array(
                CHARACTERS,
                [1, w.len() as u32],
                "",
                &[element(1, w.as_bytes())],
            )
        };
        let mut file = vec![b' '; 128];
        let sparse = [
            numbers(&[0, 2, 1]),
            numbers(&[0, 2, 2, 3]),
            element(2, &[1; 3]),
        ];
        file.extend(array(SPARSE, [3, 3], "documents", &sparse));
        file.extend(array(
            1,
            [1, 3],
            "wordlist",
            &[word("aids"), word("baseball"), word("bible")],
        ));
        // Type 2, three bytes, in the tag itself.
        let groups = vec![2, 0, 3, 0, 1, 4, 2, 0];
        file.extend(array(6, [1, 3], "newsgroups", &[groups]));
        file
    }

    #[test]
    fn postings_become_lines() {
        let (text, words) = text(&small()).unwrap();
        assert_eq!(text, "label word_index...\n1 0 2\n4\n2 1\n");
        assert_eq!(words, "aids\nbaseball\nbible\n");
    }

    #[test]
    fn files_that_end_too_early_are_refused_and_other_postings_too() {
        let file = small();
        let folder = tempfile::tempdir().unwrap();
        for length in (0..file.len()).step_by(5) {
            let _ = text(&file[..length]);
        }
        assert_eq!(text(&file[..130]), None);
        std::fs::write(folder.path().join(MAT), &file).unwrap();
        let error = derive(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("expected") && error.contains(TEXT_SHA256),
            "{error}"
        );
        assert!(!present(folder.path()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
