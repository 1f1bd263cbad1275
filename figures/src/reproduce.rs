//! `reproduce-figures`: runs the figures, writes pictures, tables, `report.json` and a gallery.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use crate::figures::FIGURES;
use crate::plot::{Panel, draw};
use crate::{Result, files, gallery};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this figure.
    #[arg(long)]
    figure: Option<String>,
    /// Seed of every random draw; the report records it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fewer iterations and smaller generated data; the criteria stay. Minutes instead of an hour.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// As many runs of as many iterations as the papers have: a day.
    #[arg(long)]
    full: bool,
    /// Folder with the public data sets; without it, generated data.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where pictures and report go.
    #[arg(long, default_value = "target/figures")]
    out: PathBuf,
}

impl Args {
    fn size(&self) -> Size {
        match (self.quick, self.full) {
            (true, _) => Size::Quick,
            (_, true) => Size::Full,
            _ => Size::Usual,
        }
    }
}

/// One figure of a paper, and how to recompute it.
pub(crate) struct Figure {
    /// Name on the command line and of the files.
    pub(crate) name: &'static str,
    /// Paper and figure.
    pub(crate) source: &'static str,
    /// What it shows.
    pub(crate) title: &'static str,
    /// What must hold, in words.
    pub(crate) criterion: &'static str,
    /// Computes it.
    pub(crate) run: fn(&Context) -> Result<Vec<Entry>>,
}

/// How much a figure computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// For continuous integration.
    Quick,
    /// What ends within an hour for all figures together.
    Usual,
    /// The papers' own numbers of runs and iterations.
    Full,
}

/// What a figure is given.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) seed: u64,
    pub(crate) size: Size,
    pub(crate) data: Option<PathBuf>,
    out: PathBuf,
}

/// Which data an entry was measured on.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Data {
    pub(crate) name: String,
    /// Of the file, where there is one.
    pub(crate) sha256: Option<String>,
    pub(crate) real: bool,
}

impl Data {
    pub(crate) fn generated(name: &str) -> Self {
        Self {
            name: name.into(),
            sha256: None,
            real: false,
        }
    }
}

/// A number, or words where one number does not tell.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Measured {
    Number(f64),
    Text(String),
}

/// One criterion, measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) figure: String,
    pub(crate) source: String,
    pub(crate) criterion: String,
    pub(crate) measured: Measured,
    pub(crate) pass: bool,
    pub(crate) seed: u64,
    pub(crate) data: Data,
    pub(crate) seconds: f64,
    pub(crate) files: Vec<String>,
}

impl Context {
    /// The smaller of two sizes under `--quick`.
    pub(crate) fn size(&self, full: usize, quick: usize) -> usize {
        self.sizes([quick, full, full])
    }

    /// One of the sizes under `--quick`, without an option and under `--full`.
    pub(crate) fn sizes(&self, sizes: [usize; 3]) -> usize {
        sizes[self.size as usize]
    }

    /// What a data file holds, unpacked if its name ends in `.gz`, and which file it was; `None` without `--data` or where
    /// it is not there.
    pub(crate) fn file(&self, path: &str) -> Result<Option<(Vec<u8>, Data)>> {
        let Some(folder) = &self.data else {
            return Ok(None);
        };
        let full = folder.join(path);
        if !full.exists() {
            return Ok(None);
        }
        let bytes =
            std::fs::read(&full).map_err(|e| format!("cannot read {}: {e}", full.display()))?;
        let data = Data {
            name: path.into(),
            sha256: Some(files::sha256(&bytes)),
            real: true,
        };
        if full.extension().is_none_or(|e| e != "gz") {
            return Ok(Some((bytes, data)));
        }
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_slice())
            .read_to_end(&mut unpacked)
            .map_err(|e| format!("{path}: {e}"))?;
        Ok(Some((unpacked, data)))
    }

    /// The same of a file of text.
    pub(crate) fn text(&self, path: &str) -> Result<Option<(String, Data)>> {
        let Some((bytes, data)) = self.file(path)? else {
            return Ok(None);
        };
        let text = String::from_utf8(bytes).map_err(|e| format!("{path}: {e}"))?;
        Ok(Some((text, data)))
    }

    /// Where a data file is.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.data.as_deref().unwrap_or(Path::new("")).join(path)
    }

    /// Draws panels and writes `name.svg`, `name.png` and `name.csv`; returns these names.
    pub(crate) fn picture(
        &self,
        name: &str,
        columns: usize,
        size: (f64, f64),
        panels: Vec<Panel>,
    ) -> Result<Vec<String>> {
        let drawing = draw(columns, size, panels)?;
        let mut written = Vec::new();
        for (ending, bytes) in [
            ("png", drawing.png.as_slice()),
            ("svg", drawing.svg.as_bytes()),
            ("csv", drawing.csv.as_slice()),
        ] {
            let file = format!("{name}.{ending}");
            files::write_atomic(&self.out.join(&file), bytes)?;
            written.push(file);
        }
        Ok(written)
    }

    /// An entry; figure, source, time and files are filled in by the caller of the figure.
    pub(crate) fn entry(
        &self,
        criterion: &str,
        measured: Measured,
        pass: bool,
        data: &Data,
        files: &[String],
    ) -> Entry {
        Entry {
            figure: String::new(),
            source: String::new(),
            criterion: criterion.into(),
            measured,
            pass,
            seed: self.seed,
            data: data.clone(),
            seconds: 0.0,
            files: files.to_vec(),
        }
    }

    /// An entry that passes below a limit. Not-a-number does not pass.
    pub(crate) fn below(
        &self,
        criterion: &str,
        measured: f64,
        limit: f64,
        data: &Data,
        files: &[String],
    ) -> Entry {
        let pass = measured < limit;
        self.entry(criterion, Measured::Number(measured), pass, data, files)
    }
}

#[derive(Serialize)]
struct Report<'a> {
    figures: &'a [Entry],
}

fn chosen(name: Option<&str>) -> Result<Vec<&'static Figure>> {
    let Some(name) = name else {
        return Ok(FIGURES.to_vec());
    };
    match FIGURES.iter().find(|f| f.name == name) {
        Some(figure) => Ok(vec![*figure]),
        None => {
            let names: Vec<_> = FIGURES.iter().map(|f| f.name).collect();
            Err(format!("no figure `{name}`; there are: {}", names.join(", ")).into())
        }
    }
}

/// Runs the command; `false` if a criterion fails.
pub(crate) fn run(args: &Args) -> Result<bool> {
    if let Some(folder) = args.data.as_ref().filter(|d| !d.is_dir()) {
        return Err(format!("--data {}: no such folder", folder.display()).into());
    }
    let context = Context {
        seed: args.seed,
        size: args.size(),
        data: args.data.clone(),
        out: args.out.clone(),
    };
    let mut entries = Vec::new();
    for figure in chosen(args.figure.as_deref())? {
        let start = Instant::now();
        let mut new = (figure.run)(&context).map_err(|e| format!("figure {}: {e}", figure.name))?;
        for entry in &mut new {
            entry.figure = figure.name.into();
            entry.source = figure.source.into();
            entry.seconds = start.elapsed().as_secs_f64();
            let verdict = if entry.pass { "pass" } else { "FAIL" };
            println!(
                "{verdict}  {:<16} {}: {}",
                figure.name,
                entry.criterion,
                gallery::text(&entry.measured)
            );
        }
        entries.extend(new);
    }
    let report = serde_json::to_string_pretty(&Report { figures: &entries })?;
    files::write_atomic(&args.out.join("report.json"), (report + "\n").as_bytes())?;
    let page = gallery::page(&entries, args.size());
    files::write_atomic(&args.out.join("index.html"), page.as_bytes())?;
    println!("gallery: {}", args.out.join("index.html").display());
    Ok(entries.iter().all(|e| e.pass))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_an_unknown_one_lists_them() {
        let mut names: Vec<_> = FIGURES.iter().map(|f| f.name).collect();
        let message = chosen(Some("no_such")).err().unwrap().to_string();
        assert!(names.iter().all(|n| message.contains(n)));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIGURES.len());
    }

    #[test]
    fn not_a_number_fails_its_criterion() {
        let context = Context {
            seed: 0,
            size: Size::Quick,
            data: None,
            out: PathBuf::new(),
        };
        let data = Data::generated("none");
        assert!(!context.below("c", f64::NAN, 1.0, &data, &[]).pass);
        assert!(context.below("c", 0.5, 1.0, &data, &[]).pass);
    }
}
