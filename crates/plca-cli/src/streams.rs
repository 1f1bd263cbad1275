//! `-`: standard input in place of a file that is read, standard output in place of one that is written.

use std::io::{Read, Seek, Write, copy, stdin, stdout};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::args::{Arguments, Command};
use crate::failure::Failure;
use crate::interrupt;

/// Files that stand for streams as long as the command runs.
#[derive(Default)]
pub(crate) struct Streams {
    read: Option<NamedTempFile>,
    written: Option<NamedTempFile>,
}

impl Streams {
    /// Puts files in place of every `-`.
    pub(crate) fn of(arguments: &mut Arguments) -> Result<Self, Failure> {
        let mut streams = Self::default();
        let (mut inputs, mut output) = (Vec::new(), None);
        match &mut arguments.command {
            Command::Fit(a) => {
                inputs.push(&mut a.data);
                output = Some((&mut a.output, "npz", Some((a.json, &mut a.piped))));
            }
            Command::Transform(a) => {
                inputs.extend([&mut a.model, &mut a.data]);
                output = Some((&mut a.output, "npz", Some((a.json, &mut a.piped))));
            }
            Command::Reconstruct(a) => {
                inputs.push(&mut a.model);
                output = Some((&mut a.output, "npy", None));
            }
            Command::Sample(a) => {
                inputs.push(&mut a.model);
                output = Some((&mut a.output, "npy", None));
            }
            Command::Spectrogram(a) => {
                output = Some((&mut a.output, "npy", Some((false, &mut a.piped))));
            }
            Command::Report(a) => {
                inputs.push(&mut a.model);
                output = Some((&mut a.output, "html", None));
            }
            Command::Inspect(a) => inputs.push(&mut a.model),
            Command::Export(a) => {
                inputs.push(&mut a.model);
                output = Some((&mut a.output, "csv", None));
            }
            Command::Compare(a) => inputs.extend([&mut a.a, &mut a.b]),
            Command::Select(a) => inputs.push(&mut a.data),
            _ => {}
        }
        let mut inputs = inputs.into_iter().filter(|path| is_stream(path));
        if let Some(input) = inputs.next() {
            let file = spooled()?;
            *input = file.path().to_path_buf();
            streams.read = Some(file);
        }
        if inputs.next().is_some() {
            return Err(Failure::usage(
                "- can stand for standard input only once: name a file",
            ));
        }
        if let Some((path, extension, summary)) = output.filter(|(path, ..)| is_stream(path)) {
            if let Some((json, piped)) = summary {
                if json {
                    return Err(Failure::usage(
                        "--output - cannot be combined with --json: both are standard output",
                    ));
                }
                *piped = true;
            }
            let file = temporary(extension).map_err(Failure::new)?;
            *path = file.path().to_path_buf();
            streams.written = Some(file);
        }
        Ok(streams)
    }

    /// Writes what was written to standard output.
    pub(crate) fn pass_on(&self) -> Result<(), Failure> {
        let Some(file) = &self.written else {
            return Ok(());
        };
        let mut out = stdout().lock();
        let passed = std::fs::File::open(file.path())
            .and_then(|mut file| copy(&mut file, &mut out))
            .and_then(|_| out.flush());
        match passed {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            Err(e) => Err(Failure::by(Path::new("standard output"), e)),
            Ok(()) => Ok(()),
        }
    }

    /// The names that a person knows in place of those of the files.
    pub(crate) fn named(&self, failure: Failure) -> Failure {
        let named = |failure: Failure, file: &Option<NamedTempFile>, name| match file {
            Some(file) => failure.renamed(file.path(), name),
            None => failure,
        };
        let failure = named(failure, &self.read, "standard input");
        named(failure, &self.written, "standard output")
    }
}

fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

fn temporary(extension: &str) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    let file = builder
        .prefix("plca-")
        .suffix(&format!(".{extension}"))
        .tempfile()?;
    interrupt::temporary(file.path());
    Ok(file)
}

/// Standard input as a file, whose extension follows from its first bytes.
fn spooled() -> Result<NamedTempFile, Failure> {
    let place = Path::new("standard input");
    let failed = |e| Failure::by(place, e);
    let mut input = stdin().lock();
    let mut start = Vec::new();
    (&mut input)
        .take(LOOKED_AT)
        .read_to_end(&mut start)
        .map_err(failed)?;
    if start.is_empty() {
        return Err(Failure::of(place, "is empty: data or a model are needed"));
    }
    let mut file = temporary(extension(&start)).map_err(failed)?;
    copy(&mut start.as_slice().chain(input), &mut file).map_err(failed)?;
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// Bytes by which a format is told.
const LOOKED_AT: u64 = 64;

/// The extension for the first bytes of a file; that of a table of numbers if the bytes are unknown.
fn extension(start: &[u8]) -> &'static str {
    match start {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => "npy",
        [b'P', b'K', ..] => "npz",
        [b'P', b'A', b'R', b'1', ..] => "parquet",
        [b'M', b'A', b'T', b'L', b'A', b'B', ..] => "mat",
        [b'%', b'%', ..] => "mtx",
        // The length of a header, which is JSON.
        [_, _, _, _, _, _, _, _, b'{', ..] => "safetensors",
        _ if start.contains(&b'\t') => "tsv",
        _ => "csv",
    }
}
