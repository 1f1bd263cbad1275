//! `reproduce-figures`: runs the figures, writes pictures, tables, `report.json` and a gallery.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;

use crate::figures::FIGURES;
use crate::plot::{Panel, draw};
use crate::report::{Counts, Data, Entry, Origin, Outcome, Report, Verdict};
use crate::{Result, fetch_data, files, gallery, known};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these figures: several names, or the option several times.
    #[arg(long = "figure", value_name = "NAME", value_delimiter = ',', num_args = 1..)]
    figures: Vec<String>,
    /// Name the figures, and the files that they read below the folder of data.
    #[arg(long)]
    list: bool,
    /// Seed of every random draw; no start of one seed is a start of another.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fewer iterations, starts and data sets, smaller generated data. Minutes instead of an hour.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// As many runs of as many iterations as the papers have: a day.
    #[arg(long)]
    full: bool,
    /// Folder with the public data sets, as `fetch-data` lays it out; without it, generated data.
    #[arg(long)]
    data: Option<PathBuf>,
    /// After each figure feed it what it must not hold on: wrong data, wrong models, shuffled labels. Every criterion must fail.
    #[arg(long)]
    controls: bool,
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

/// Computes the rows of a figure.
type Compute = fn(&Context) -> Result<Vec<Entry>>;

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
    /// Files that it reads below the folder of data, without `.gz`.
    pub(crate) data: &'static [&'static str],
    /// Computes it.
    pub(crate) run: Compute,
    /// The same on wrong data, by a wrong model or with shuffled labels: for every criterion of `run` a row that must fail.
    pub(crate) control: Option<Compute>,
}

/// How much a figure computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Size {
    /// For continuous integration.
    Quick,
    /// What ends within an hour for all figures together.
    Usual,
    /// The papers' own numbers of runs and iterations.
    Full,
}

impl Size {
    /// As the report says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Usual => "usual",
            Self::Full => "full",
        }
    }
}

/// What a figure is given.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) seed: u64,
    pub(crate) size: Size,
    data: Option<PathBuf>,
    /// `None` where nothing is drawn.
    out: Option<PathBuf>,
    /// What the figure says that it reads.
    reads: &'static [&'static str],
    not_found: Mutex<BTreeSet<&'static str>>,
}

impl Context {
    fn new(args: &Args, figure: &Figure, draws: bool) -> Self {
        Self {
            seed: args.seed,
            size: args.size(),
            data: args.data.clone(),
            out: draws.then(|| args.out.clone()),
            reads: figure.data,
            not_found: Mutex::default(),
        }
    }

    /// The smaller of two sizes under `--quick`.
    pub(crate) fn size(&self, full: usize, quick: usize) -> usize {
        self.sizes([quick, full, full])
    }

    /// One of the sizes under `--quick`, without an option and under `--full`.
    pub(crate) fn sizes(&self, sizes: [usize; 3]) -> usize {
        sizes[self.size as usize]
    }

    /// The seeds of this number of starts. Those of two seeds of the command are far apart.
    pub(crate) fn starts(&self, number: u64) -> Range<u64> {
        const APART: u64 = 1 << 32;
        let first = self.seed.wrapping_sub(1).wrapping_mul(APART) + 1;
        first..first + number
    }

    /// The seed of one start.
    pub(crate) fn start(&self, nth: u64) -> u64 {
        self.starts(nth + 1).end - 1
    }

    /// Where a file of data is, packed or not; `None` without `--data`, or where it is not there.
    pub(crate) fn path(&self, path: &str) -> Result<Option<PathBuf>> {
        let declared = self.reads.iter().find(|&&declared| declared == path);
        let declared =
            declared.ok_or_else(|| format!("{path}: not in the figure's list of data"))?;
        let Some(folder) = &self.data else {
            return Ok(None);
        };
        let found = [path.to_owned(), format!("{path}.gz")].map(|name| folder.join(name));
        let found = found.into_iter().find(|path| path.exists());
        // Nobody is asked for what not everybody may have.
        if found.is_none() && !fetch_data::is_own(declared) {
            let mut not_found = self
                .not_found
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            not_found.insert(declared);
        }
        Ok(found)
    }

    /// What a file of data holds, unpacked, and which file it was; `None` as for [`Self::path`].
    pub(crate) fn file(&self, path: &str) -> Result<Option<(Vec<u8>, Data)>> {
        let Some(full) = self.path(path)? else {
            return Ok(None);
        };
        let mut bytes =
            std::fs::read(&full).map_err(|e| format!("cannot read {}: {e}", full.display()))?;
        if full.extension().is_some_and(|e| e == "gz") {
            let packed = std::mem::take(&mut bytes);
            flate2::read::GzDecoder::new(packed.as_slice())
                .read_to_end(&mut bytes)
                .map_err(|e| format!("{}: {e}", full.display()))?;
        }
        let data = Data {
            name: path.into(),
            sha256: Some(files::sha256(&bytes)),
            real: true,
        };
        Ok(Some((bytes, data)))
    }

    /// The same of a file of text.
    pub(crate) fn text(&self, path: &str) -> Result<Option<(String, Data)>> {
        let Some((bytes, data)) = self.file(path)? else {
            return Ok(None);
        };
        let text = String::from_utf8(bytes).map_err(|e| format!("{path}: {e}"))?;
        Ok(Some((text, data)))
    }

    /// Draws panels and writes `name.svg`, `name.png` and `name.csv`; returns these names. Of controls nothing is drawn.
    pub(crate) fn picture(
        &self,
        name: &str,
        columns: usize,
        size: (f64, f64),
        panels: Vec<Panel>,
    ) -> Result<Vec<String>> {
        let Some(out) = &self.out else {
            return Ok(Vec::new());
        };
        let drawing = draw(columns, size, panels)?;
        let mut written = Vec::new();
        for (ending, bytes) in [
            ("png", drawing.png.as_slice()),
            ("svg", drawing.svg.as_bytes()),
            ("csv", drawing.csv.as_slice()),
        ] {
            let file = format!("{name}.{ending}");
            files::write_atomic(&out.join(&file), bytes)?;
            written.push(file);
        }
        Ok(written)
    }
}

fn chosen(names: &[String]) -> Result<Vec<&'static Figure>> {
    if let Some(name) = names.iter().find(|n| FIGURES.iter().all(|f| f.name != **n)) {
        let known: Vec<_> = FIGURES.iter().map(|f| f.name).collect();
        return Err(format!("no figure `{name}`; there are: {}", known.join(", ")).into());
    }
    let chosen = |f: &&&Figure| names.is_empty() || names.iter().any(|n| *n == f.name);
    Ok(FIGURES.iter().filter(chosen).copied().collect())
}

/// The rows of a figure, those of an error if it comes to no end: other figures go on.
fn rows(compute: impl FnOnce() -> Result<Vec<Entry>>) -> Vec<Entry> {
    let panicked = |panic: Box<dyn std::any::Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
        format!("panic: {}", text.unwrap_or_default())
    };
    let rows = match catch_unwind(AssertUnwindSafe(compute)) {
        Ok(rows) => rows.map_err(|error| error.to_string()),
        Err(panic) => Err(panicked(panic)),
    };
    let mut rows = rows.unwrap_or_else(|message| vec![Entry::error(message)]);
    // A row is known by its words, in the list of known failures and beside its control.
    let mut seen = BTreeSet::new();
    let twice = rows
        .iter()
        .find(|row| !seen.insert((row.criterion.clone(), row.data.real)))
        .map(|row| Entry::error(format!("two rows \"{}\"", row.criterion)));
    rows.extend(twice);
    rows
}

fn outcome(figure: &'static Figure, context: Context) -> Outcome {
    let start = Instant::now();
    let rows = rows(|| (figure.run)(&context));
    let not_found = context.not_found.into_inner();
    let not_found = not_found.unwrap_or_else(PoisonError::into_inner);
    Outcome {
        figure: figure.name,
        source: figure.source,
        title: figure.title,
        criterion: figure.criterion,
        seconds: start.elapsed().as_secs_f64(),
        not_found: not_found.into_iter().map(str::to_owned).collect(),
        rows,
    }
}

fn print(outcome: &Outcome) {
    for file in &outcome.not_found {
        println!("          not found: {file}: generated data instead, or nothing");
    }
    for row in &outcome.rows {
        let limit = row.condition.map(|c| format!(" (must be {})", c.text()));
        println!(
            "{:<8}  {}: {}{}",
            row.verdict.name(),
            row.criterion,
            row.measured(),
            limit.unwrap_or_default()
        );
    }
}

fn list() {
    for figure in FIGURES {
        println!("{:<17} {}: {}", figure.name, figure.source, figure.title);
        for file in figure.data {
            println!("{:<17}   reads {file}", "");
        }
    }
}

/// What the controls of a figure leave to be desired: criteria that no wrong input fails.
fn held(rows: &[Entry], controls: &[Entry]) -> Vec<String> {
    let judged = rows.iter().filter(|row| row.condition.is_some());
    // What is no number is no wrong input, but a control that went wrong.
    let fails = |row: &&Entry| {
        let of = |c: &&Entry| c.criterion == row.criterion && c.data.real == row.data.real;
        let mut mine = controls.iter().filter(of).peekable();
        mine.peek().is_some()
            && mine.all(|c| c.verdict == Verdict::Fail && c.value.is_none_or(f64::is_finite))
    };
    let held = judged.filter(|row| !fails(row));
    held.map(|row| row.criterion.clone()).collect()
}

/// Runs a figure as it must not hold, and prints it; `false` if a criterion holds all the same, or an error came in between.
fn control(figure: &Figure, context: &Context, rows: &[Entry]) -> bool {
    // Without a control no criterion may be there.
    let wrong = figure
        .control
        .map_or_else(Vec::new, |run| self::rows(|| run(context)));
    for row in wrong.iter().filter(|row| row.condition.is_some()) {
        println!(
            "control   {:<8}  {}: {}",
            row.verdict.name(),
            row.criterion,
            row.measured()
        );
    }
    let ended = |row: &&Entry| row.condition.is_none() && row.verdict == Verdict::Fail;
    let errors: Vec<_> = rows.iter().chain(&wrong).filter(ended).collect();
    for error in &errors {
        println!("error     {}", error.measured());
    }
    let held = held(rows, &wrong);
    for criterion in &held {
        println!("HOLDS     {criterion}: no control fails it");
    }
    errors.is_empty() && held.is_empty()
}

/// Runs the command; `false` if a row fails that is not known to, one that is does not, or a criterion holds on its control.
pub(crate) fn run(args: &Args) -> Result<bool> {
    if args.list {
        list();
        return Ok(true);
    }
    if let Some(folder) = args.data.as_ref().filter(|d| !d.is_dir()) {
        return Err(format!("--data {}: no such folder", folder.display()).into());
    }
    let figures = chosen(&args.figures)?;
    let real = args.data.is_some();
    let origin = Origin::here(args.size(), args.seed, real);
    println!("{}", origin.text());
    let mut outcomes = Vec::new();
    let mut controlled = true;
    for (n, figure) in figures.iter().enumerate() {
        println!(
            "[{}/{}] {}: {}",
            n + 1,
            figures.len(),
            figure.name,
            figure.title
        );
        let outcome = outcome(figure, Context::new(args, figure, true));
        print(&outcome);
        println!("          {:.1} s", outcome.seconds);
        if args.controls {
            controlled &= control(figure, &Context::new(args, figure, false), &outcome.rows);
        }
        outcomes.push(outcome);
    }
    let report = Report {
        origin,
        counts: Counts::of(outcomes.iter().flat_map(|outcome| &outcome.rows)),
        figures: outcomes,
    };
    write(&report, &args.out)?;
    println!("{}", report.counts.text());
    let surprises = known::surprises(&known::list()?, args.size(), real, &report.figures);
    for line in &surprises {
        eprintln!("{line}");
    }
    Ok(controlled && surprises.is_empty())
}

fn write(report: &Report, out: &Path) -> Result<()> {
    let json = serde_json::to_string_pretty(report)?;
    files::write_atomic(&out.join("report.json"), (json + "\n").as_bytes())?;
    let page = gallery::page(report);
    files::write_atomic(&out.join("index.html"), page.as_bytes())?;
    println!("gallery: {}", out.join("index.html").display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn context(seed: u64, data: Option<&Path>) -> Context {
        Context {
            seed,
            size: Size::Quick,
            data: data.map(Path::to_owned),
            out: None,
            reads: &["set/a.txt", "set/b.txt"],
            not_found: Mutex::default(),
        }
    }

    #[test]
    fn names_are_unique_and_an_unknown_one_lists_them() {
        let mut names: Vec<_> = FIGURES.iter().map(|f| f.name).collect();
        let message = chosen(&["no_such".into()]).err().unwrap().to_string();
        assert!(names.iter().all(|n| message.contains(n)));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIGURES.len());
        let two = chosen(&["si_fig2".into(), "si_fig1".into()]).unwrap();
        // In the order of the report.
        assert_eq!([two[0].name, two[1].name], ["si_fig1", "si_fig2"]);
    }

    #[test]
    fn seeds_share_no_start() {
        let mut seen = HashSet::new();
        for seed in [0, 1, 2, 3, 1 << 20, u64::MAX >> 40] {
            assert!(
                context(seed, None).starts(1000).all(|s| seen.insert(s)),
                "{seed}"
            );
        }
        assert_eq!(context(1, None).starts(3), 1..4);
        assert_eq!(
            context(7, None).start(2),
            context(7, None).starts(3).end - 1
        );
    }

    #[test]
    fn files_are_read_packed_or_not_and_missing_ones_remembered() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("set")).unwrap();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, b"words").unwrap();
        let packed = packed.finish().unwrap();
        std::fs::write(folder.path().join("set/a.txt.gz"), packed).unwrap();
        let context = context(1, Some(folder.path()));
        let (text, from_packed) = context.text("set/a.txt").unwrap().unwrap();
        std::fs::write(folder.path().join("set/a.txt"), "words").unwrap();
        let (_, plain) = context.text("set/a.txt").unwrap().unwrap();
        assert_eq!(text, "words");
        assert_eq!(from_packed, plain);
        assert!(context.text("set/b.txt").unwrap().is_none());
        assert!(context.text("set/c.txt").is_err(), "it was not declared");
        let not_found = context.not_found.into_inner().unwrap();
        assert_eq!(not_found, BTreeSet::from(["set/b.txt"]));
    }

    #[test]
    fn errors_and_panics_are_rows_that_fail() {
        for rows in [
            rows(|| Err("broken".into())),
            rows(|| panic!("broken")),
            rows(|| panic!("{}", "broken")),
        ] {
            assert_eq!(rows.len(), 1);
            assert_eq!(rows[0].verdict, Verdict::Fail);
            assert!(rows[0].measured().ends_with("broken"));
        }
    }

    #[test]
    fn two_rows_of_one_name_are_an_error() {
        let row = |what: &str| Entry::number(what, 0.0, &Data::generated("none"), &[]);
        assert_eq!(rows(|| Ok(vec![row("a"), row("b")])).len(), 2);
        let twice = rows(|| Ok(vec![row("a"), row("a")]));
        assert_eq!(twice[2].verdict, Verdict::Fail);
    }

    #[test]
    fn a_control_must_fail_every_criterion() {
        let row = |what: &str, value: f64| {
            Entry::number(what, value, &Data::generated("none"), &[]).below(1.0)
        };
        let reported = Entry::number("c", 0.0, &Data::generated("none"), &[]);
        let rows = [row("a", 0.0), row("b", 0.0), reported];
        assert!(held(&rows, &[row("a", 2.0), row("b", 2.0)]).is_empty());
        assert_eq!(held(&rows, &[row("a", 2.0), row("b", 0.0)]), ["b"]);
        assert_eq!(held(&rows, &[row("a", 2.0)]), ["b"]);
    }
}
