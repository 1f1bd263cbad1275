//! Where the command writes, and what it says.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use plca_io::ModelFile;
use serde_json::{Value, json};

use crate::failure::{Failure, printable};
use crate::interrupt;

/// Extensions of model files.
pub(crate) const MODEL_FILES: &[&str] = &["npz", "safetensors"];

/// Refuses, before any work, a file that could not be written at its end: it is tried.
pub(crate) fn writable(path: &Path, extensions: &[&str]) -> Result<(), Failure> {
    let extension = path.extension().unwrap_or_default();
    let known = extensions.iter().any(|x| extension.eq_ignore_ascii_case(x));
    if !known && !extensions.is_empty() {
        let known = extensions.join(" or .");
        let table = extension.eq_ignore_ascii_case("csv") || extension.eq_ignore_ascii_case("tsv");
        let hint = match extensions == MODEL_FILES && table {
            true => "; plca export makes a table of one of its arrays",
            false => "",
        };
        let what = format!("unknown extension; this command writes .{known}{hint}");
        return Err(Failure::of(path, what));
    }
    match folder_of(path) {
        folder if !folder.exists() => Err(Failure::of(path, "its folder does not exist")),
        folder if !folder.is_dir() => {
            let what = format!("{} is not a folder", folder.display());
            Err(Failure::of(path, what))
        }
        // An interruption within would leave the trial behind.
        _ => Ok(interrupt::trying(|| plca_io::can_write(path))?),
    }
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let named = path.parent().filter(|p| !p.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}

/// Whether two paths name one file, there or yet to be written, also where a link leads to it.
fn same_file(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let end = plca_io::end_of_links(path).ok()?;
        let written = folder_of(&end).canonicalize().ok().zip(end.file_name());
        end.canonicalize()
            .ok()
            .or(written.map(|(folder, name)| folder.join(name)))
    };
    place(a).is_some_and(|a| place(b) == Some(a))
}

/// A file by the part that it plays.
pub(crate) type Role<'a> = (&'static str, Option<&'a PathBuf>);

/// Refuses outputs that would overwrite each other or what the run reads.
pub(crate) fn distinct(inputs: &[Role<'_>], outputs: &[Role<'_>]) -> Result<(), Failure> {
    let given = |files: &[Role<'_>]| -> Vec<_> {
        let files = files.iter();
        files
            .filter_map(|(n, p)| p.map(|p| (*n, p.clone())))
            .collect()
    };
    let mut seen = given(inputs);
    for (name, path) in given(outputs) {
        if let Some((other, _)) = seen.iter().find(|(_, p)| same_file(p, &path)) {
            let path = path.display();
            return Err(Failure::usage(format!(
                "{name} {path}: the same file as {other}"
            )));
        }
        seen.push((name, path));
    }
    Ok(())
}

/// Why standard error could not be written: the run goes on, and does not end well.
static UNHEARD: OnceLock<Failure> = OnceLock::new();

/// A line on standard error.
pub(crate) fn cry(line: &str) {
    if let Err(e) = writeln!(std::io::stderr().lock(), "{line}") {
        UNHEARD.get_or_init(|| Failure::by(Path::new("standard error"), e));
    }
}

/// Why a line of [`cry`] could not be written.
pub(crate) fn unheard() -> Option<&'static Failure> {
    UNHEARD.get()
}

/// Warnings for a person; with `--quiet` they are in the metadata alone.
pub(crate) fn warn(quiet: bool, warnings: &[String]) {
    for warning in warnings.iter().filter(|_| !quiet) {
        cry(&format!("warning: {}", printable(warning)));
    }
}

fn out(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Writes to standard output. That nobody reads on is not a failure; a full disk is.
pub(crate) fn say(text: &str) -> std::io::Result<()> {
    match out(text) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        said => said,
    }
}

/// As [`say`]; a failure names standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    say(text).map_err(|e| Failure::by(Path::new("standard output"), e))
}

/// What is said of a file or folder once it is there, where it stays whatever becomes of the text.
pub(crate) fn tell(text: &str, written: &Path) -> Result<(), Failure> {
    out(text).map_err(|e| {
        let failure = Failure::by(Path::new("standard output"), e);
        failure.and(format_args!("{} is written", written.display()))
    })
}

/// The summary of what is written, for a program or for a person.
pub(crate) fn report(
    as_json: bool,
    quiet: bool,
    summary: &Value,
    written: &Path,
) -> Result<(), Failure> {
    let mut text = String::new();
    if as_json {
        text = format!("{summary}\n");
    } else if !quiet && let Value::Object(summary) = summary {
        for (name, value) in summary {
            let value = value.as_str().map_or(value.to_string(), str::to_string);
            text.push_str(&format!("{name:>16}  {value}\n"));
        }
    }
    tell(&text, written)
}

/// What a run leaves: a model file, perhaps a trace, a summary, and warnings.
pub(crate) struct Leaving<'a> {
    pub(crate) output: &'a Path,
    /// Summary and warnings become part of its metadata.
    pub(crate) model: ModelFile,
    /// Scalars of the model file are `f32`.
    pub(crate) single: bool,
    pub(crate) trace: Option<&'a Trace<'a>>,
    pub(crate) summary: Value,
    pub(crate) warnings: Vec<String>,
    pub(crate) started: Instant,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// Standard output is the model's: no summary.
    pub(crate) piped: bool,
}

impl Leaving<'_> {
    /// Leaves every file, or none where one of them cannot be written; then says so.
    pub(crate) fn leave(mut self) -> Result<(), Failure> {
        merge(&mut self.model.metadata, self.summary.clone());
        if !self.warnings.is_empty() {
            self.model.metadata["warnings"] = json!(self.warnings);
        }
        // Wall time is no property of the model: equal runs write equal files.
        for name in ["shape", "objective_name"] {
            let place = if name == "shape" {
                &self.model.metadata["data"]
            } else {
                &self.model.metadata
            };
            if !place[name].is_null() {
                self.summary[name] = place[name].clone();
            }
        }
        self.summary["seconds"] = json!(self.started.elapsed().as_secs_f64());
        interrupt::writing(|| self.write())?;
        warn(self.quiet, &self.warnings);
        report(
            self.json,
            self.quiet || self.piped,
            &self.summary,
            self.output,
        )
    }

    fn write(&self) -> Result<(), Failure> {
        let model = plca_io::pending_model(self.output, &self.model, self.single)?;
        // The model has its name once everything is on the disk: none is without its trace.
        self.trace.map_or(Ok(()), Trace::saved)?;
        Ok(model.keep()?)
    }
}

/// Adds the members of one object to another.
pub(crate) fn merge(all: &mut Value, extra: Value) {
    if let (Value::Object(all), Value::Object(extra)) = (all, extra) {
        all.extend(extra);
    }
}

/// A new file, or what takes lines at its end: another writer of the same terminal, pipe or log keeps its own.
fn created(path: &Path) -> std::io::Result<File> {
    let file = File::options().create(true).append(true).open(path)?;
    // `/dev/stderr` leads to a name of this process, and that to what is open.
    let (mut at, mut links) = (path.to_path_buf(), 0);
    let open = |at: &Path| at.starts_with("/dev/fd") || at.starts_with("/proc");
    while !open(&at) && links < 40 {
        let Ok(next) = at.read_link() else { break };
        at = at.with_file_name(next);
        links += 1;
    }
    if !open(&at) && file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// The trace of a run: a line is in its file as soon as it is known, and stays there where the run fails.
#[derive(Debug)]
pub(crate) struct Trace<'a> {
    path: Option<&'a Path>,
    /// Begun with the first line: what fails before leaves what was there.
    file: Option<File>,
    pub(crate) started: Instant,
}

impl<'a> Trace<'a> {
    pub(crate) fn new(path: Option<&'a Path>, started: Instant) -> Self {
        Self {
            path,
            file: None,
            started,
        }
    }

    pub(crate) fn line(
        &mut self,
        start: u64,
        (iteration, objective): (usize, f64),
    ) -> Result<(), Failure> {
        let Some(path) = self.path else {
            return Ok(());
        };
        let seconds = self.started.elapsed().as_secs_f64();
        let line = json!({ "start": start, "iteration": iteration, "objective": objective, "seconds": seconds });
        let mut write = || -> std::io::Result<()> {
            let mut file = match self.file.take() {
                Some(file) => file,
                None => created(path)?,
            };
            // In one piece, and without a buffer.
            file.write_all(format!("{line}\n").as_bytes())?;
            self.file = Some(file);
            Ok(())
        };
        write().map_err(|e| Failure::by(path, e))
    }

    /// Waits until the lines are on the disk; pipes and devices have none.
    fn saved(&self) -> Result<(), Failure> {
        let (Some(path), Some(file)) = (self.path, &self.file) else {
            return Ok(());
        };
        let saved = file.metadata().and_then(|found| match found.is_file() {
            true => file.sync_all(),
            false => Ok(()),
        });
        saved.map_err(|e| Failure::by(path, e))
    }
}
