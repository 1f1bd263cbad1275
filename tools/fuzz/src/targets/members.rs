//! Inputs that are lists of files with names: lengths and checksums of archives are then always right, whatever a mutation does.

use std::io::{Cursor, Write};

use plca_io::IoError;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::one_line;

/// Before every name, which a line break ends.
const MARK: &[u8] = b"\n=> ";

/// An input of these files.
pub(super) fn join(deflated: bool, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut input = vec![if deflated { b'd' } else { b's' }];
    for (name, content) in members {
        input.extend(MARK);
        input.extend(name.as_bytes());
        input.push(b'\n');
        input.extend(content);
    }
    input
}

/// The files of an input, and whether they are to be deflated.
pub(super) fn split(input: &[u8]) -> (bool, Vec<(String, &[u8])>) {
    let mut marks = Vec::new();
    let mut at = 0;
    while at + MARK.len() <= input.len() {
        if input[at..].starts_with(MARK) {
            marks.push(at);
            at += MARK.len();
        } else {
            at += 1;
        }
    }
    let ends = marks.iter().skip(1).copied().chain([input.len()]);
    let member = |(&at, end): (&usize, usize)| {
        let text = &input[at + MARK.len()..end];
        let cut = text.iter().position(|&b| b == b'\n').unwrap_or(text.len());
        let name = String::from_utf8_lossy(&text[..cut]).into_owned();
        (name, text.get(cut + 1..).unwrap_or_default())
    };
    let members = marks.iter().zip(ends).map(member).collect();
    (input.first() == Some(&b'd'), members)
}

/// The archive of an input's files; those that no archive can have are left out.
pub(super) fn archive(input: &[u8]) -> Vec<u8> {
    let (deflated, members) = split(input);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let method = if deflated {
        zip::CompressionMethod::Deflated
    } else {
        zip::CompressionMethod::Stored
    };
    let options = SimpleFileOptions::default()
        .compression_method(method)
        .last_modified_time(zip::DateTime::default());
    for (name, content) in members {
        if zip.start_file(name, options).is_ok() {
            zip.write_all(content).expect("written to memory");
        }
    }
    zip.finish().expect("written to memory").into_inner()
}

/// Whether an error is about what follows the header of an array.
pub(super) fn beyond_header(e: &IoError) -> bool {
    one_line(e);
    e.place().contains("entry") || e.to_string().contains("bytes after")
}
