//! `soak`: every property of the workspace, again and again, on problems that no run has seen.
//!
//! Properties are the functions in `proptest!` blocks, wherever they are; the programs that hold them are those of
//! `cargo test`. A run is one property in one process with a seed of its own and a number of cases, which proptest takes from
//! `PROPTEST_RNG_SEED` and `PROPTEST_CASES`. The property that has had the least time is next, until the time is over.
//!
//! With a tally the cases of earlier calls count: `soak --package plca --only four_laws --hours 0 --cases 30000 --tally crates/testdata/soak.json` goes on
//! where it was stopped, until every property has had as many. What was counted for other sources does not count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::tidy::output;
use crate::{Result, root};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how long; every property runs once, however little it is.
    #[arg(long, default_value_t = 0.5, value_name = "H")]
    hours: f64,
    /// What all seeds follow from; by default the clock.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Cases that every property gets at least, however long they take.
    #[arg(long, default_value_t = 0, value_name = "N")]
    cases: u64,
    /// Only properties with this in their name, such as `plca-em properties::monotone`, or in that of their program, such as `four_laws`; may be given
    /// again for others.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Builds this package alone, and runs no property of others; may be given again.
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
    /// Keeps in this file what every property has had, and goes on from there while the committed sources stay the same.
    #[arg(long, value_name = "FILE")]
    tally: Option<PathBuf>,
}

/// Cases of the first run of a property.
const FIRST: f64 = 16.0;
/// How many times as many cases the next run may have.
const GROWTH: f64 = 4.0;
/// No run is meant to take longer: new seeds reach further than many cases of one.
const LONGEST: Duration = Duration::from_secs(120);
/// A run that takes longer does not end.
const HANGS: Duration = Duration::from_secs(1800);
/// A property that failed this often is known to be wrong.
const ENOUGH: usize = 5;
/// How a property says of a case that rounding alone decided it. Of the cases of a law, at most one in this many may be decided so.
const BRANCH: &str = "branch point";
const BRANCHES_IN: u64 = 10_000;

/// A property and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Property {
    package: String,
    folder: PathBuf,
    program: PathBuf,
    /// Its path in the program.
    test: String,
}

impl Property {
    fn name(&self) -> String {
        format!("{} {}", self.package, self.test)
    }

    /// What it can be asked for by: that, and its program without the folder.
    fn told(&self) -> String {
        let program = self.program.file_name().unwrap_or_default();
        format!("{} {}", self.name(), program.to_string_lossy())
    }
}

/// Names of the functions in `proptest!` blocks; a block ends at a brace as far from the margin as its beginning.
fn declared(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut block: Option<&str> = None;
    for line in source.lines() {
        let code = line.trim_start();
        let margin = &line[..line.len() - code.len()];
        match block {
            None if code == "proptest! {" => block = Some(margin),
            Some(outer) if code == "}" && margin == outer => block = None,
            Some(outer) if margin.len() == outer.len() + 4 => {
                let name = code.strip_prefix("fn ").and_then(|c| c.split_once('('));
                names.extend(name.map(|n| n.0));
            }
            _ => {}
        }
    }
    names
}

/// The module that a file is, below the file of its program.
fn module(path: &Path) -> String {
    let path = path.with_extension("");
    let parts: Vec<_> = path.iter().filter_map(|p| p.to_str()).collect();
    let own = parts.iter().filter(|p| !["mod", "main", "lib"].contains(p));
    own.copied().collect::<Vec<_>>().join("::")
}

/// Every property of these packages, or of the workspace.
///
/// # Errors
///
/// One that no program of `cargo test` runs is an error.
fn properties(packages: &[String]) -> Result<Vec<Property>> {
    let root = root();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut arguments = vec!["test", "--locked", "--no-run", "--message-format=json"];
    match packages.is_empty() {
        true => arguments.push("--workspace"),
        false => arguments.extend(packages.iter().flat_map(|name| ["--package", name])),
    }
    let built = String::from_utf8(output(&root, &cargo, &arguments)?)?;
    let tracked = String::from_utf8(output(&root, "git", &["ls-files", "-z", "*.rs"])?)?;
    let mut wanted = Vec::new();
    let among = |path: &str| {
        let mut folders = Path::new(path).iter();
        packages.is_empty() || folders.any(|folder| packages.iter().any(|p| folder == p.as_str()))
    };
    for path in (tracked.split('\0')).filter(|p| !p.is_empty() && among(p)) {
        let path = root.join(path);
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        wanted.extend(
            declared(&source)
                .into_iter()
                .map(|n| (path.clone(), n.to_string())),
        );
    }
    let mut all = Vec::new();
    for line in built.lines() {
        let artifact: Value = serde_json::from_str(line)?;
        let text = |v: &Value| v.as_str().map(PathBuf::from);
        let Some(program) = text(&artifact["executable"]) else {
            continue;
        };
        if artifact["profile"]["test"] != true {
            continue;
        }
        let (Some(main), Some(manifest)) = (
            text(&artifact["target"]["src_path"]),
            text(&artifact["manifest_path"]),
        ) else {
            continue;
        };
        let folder = manifest.parent().map(PathBuf::from).unwrap_or_default();
        let above = main.parent().unwrap_or(&main);
        let alone = !["main", "lib"]
            .map(Some)
            .contains(&main.file_stem().and_then(|s| s.to_str()));
        let list = output(
            &folder,
            &program.to_string_lossy(),
            &["--list", "--format", "terse"],
        )?;
        let list = String::from_utf8(list)?;
        let tests: Vec<_> = list
            .lines()
            .filter_map(|l| l.strip_suffix(": test"))
            .collect();
        wanted.retain(|(path, name)| {
            let inside = if alone {
                *path == main
            } else {
                path.starts_with(above)
            };
            let Ok(below) = path.strip_prefix(above) else {
                return true;
            };
            let module = if alone { String::new() } else { module(below) };
            let found = tests
                .iter()
                .find(|t| inside && t.starts_with(&module) && t.rsplit("::").next() == Some(name));
            all.extend(found.map(|test| {
                Property {
                    package: folder
                        .file_name()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned(),
                    folder: folder.clone(),
                    program: program.clone(),
                    test: test.to_string(),
                }
            }));
            found.is_none()
        });
    }
    match wanted.first() {
        Some((path, name)) => {
            Err(format!("{}: no test program runs {name}", path.display()).into())
        }
        None => Ok(all),
    }
}

/// A seed of a property: the names decide, so that `--only` changes none.
fn seed(of: u64, name: &str) -> u64 {
    // FNV-1a, then the finaliser of SplitMix64.
    let hash = |h: u64, byte: u8| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let x = name.bytes().fold(of ^ 0xcbf2_9ce4_8422_2325, hash);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What a run said.
enum Ending {
    /// At this number of cases that rounding alone decided.
    Held(u64),
    /// What it printed.
    Failed(String),
    Hung,
}

/// Whether SIGHUP, SIGINT or SIGTERM ended it.
#[cfg(unix)]
fn interrupted(status: ExitStatus) -> bool {
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    matches!(signal, Some(1 | 2 | 15))
}

#[cfg(not(unix))]
fn interrupted(_: ExitStatus) -> bool {
    false
}

fn run_once(property: &Property, seed: u64, cases: u32) -> Result<Ending> {
    let mut printed = tempfile::NamedTempFile::new()?;
    let rejects = |n: u64| (n + 64 * u64::from(cases)).min(u32::MAX.into()).to_string();
    let mut child = Command::new(&property.program)
        .args(["--exact", &property.test, "--nocapture"])
        .current_dir(&property.folder)
        .env("PROPTEST_CASES", cases.to_string())
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
        // What is passed over grows with what is seen.
        .env("PROPTEST_MAX_GLOBAL_REJECTS", rejects(1024))
        .env("PROPTEST_MAX_LOCAL_REJECTS", rejects(65_536))
        .env("PROPTEST_MAX_SHRINK_TIME", "60000")
        .stdout(printed.reopen()?)
        .stderr(printed.reopen()?)
        .spawn()?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > HANGS {
            child.kill()?;
            child.wait()?;
            return Ok(Ending::Hung);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut text = Vec::new();
    std::io::Read::read_to_end(printed.as_file_mut(), &mut text)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if interrupted(status) {
        return Err(format!("{} was interrupted; it does not count", property.name()).into());
    }
    if status.success() {
        let branches = text.lines().filter(|line| line.starts_with(BRANCH));
        return Ok(Ending::Held(branches.count() as u64));
    }
    Ok(Ending::Failed(text))
}

/// The part of `text` before the first of `ends` that is in no bracket.
fn outside(text: &str, end: impl Fn(&str) -> bool) -> (&str, &str) {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ if depth == 0 && end(&text[at..]) => return text.split_at(at),
            _ => {}
        }
    }
    (text, "")
}

/// The smallest problem that a property failed on, as statements: lists as `vec!`, a matrix as the list of its columns.
fn as_code(printed: &str) -> Option<String> {
    let (why, rest) = printed.split_once("minimal failing input: ")?;
    let (input, counts) = rest.split_once("\n\tsuccesses: ")?;
    let mut code = String::new();
    for line in why
        .split_once("Test failed: ")
        .map_or("", |w| w.1)
        .trim()
        .lines()
    {
        let _ = writeln!(code, "// {line}");
    }
    let mut left: &str = &input.split_whitespace().collect::<Vec<_>>().join(" ");
    while !left.is_empty() {
        let (pattern, value) = outside(left, |rest| rest.starts_with(" = "));
        let next = |rest: &str| rest.starts_with(", ");
        let (value, rest) = outside(value.trim_start_matches(" = "), next);
        let value = value.replace('[', "vec![").replace("NaN", "f64::NAN");
        let _ = writeln!(code, "let {pattern} = {value};");
        left = rest.trim_start_matches(", ");
    }
    let before = counts.split_whitespace().next().unwrap_or_default();
    let _ = writeln!(code, "// after {before} cases that held");
    Some(code)
}

/// What is known of a property.
#[derive(Clone, Debug, Default)]
struct Tally {
    busy: bool,
    runs: u64,
    cases: u64,
    failures: usize,
    branches: u64,
    /// The seed of its first run.
    seed: u64,
    taken: Duration,
    last: u32,
}

impl Tally {
    /// What a line of the file of tallies says of a property with these sources.
    fn kept(counted: &Value, sources: &str) -> Option<Self> {
        let number = |key: &str| counted[key].as_u64();
        let same = counted["sources"] == *sources;
        Some(Self {
            runs: number("runs").filter(|&runs| same && runs > 0)?,
            cases: number("cases")?,
            failures: number("failures")? as usize,
            branches: number("branches")?,
            seed: number("seed")?,
            last: FIRST as u32,
            ..Self::default()
        })
    }

    fn line(&self, sources: &str) -> Value {
        serde_json::json!({
            "cases": self.cases,
            "failures": self.failures,
            "branches": self.branches,
            "runs": self.runs,
            "seed": self.seed,
            "sources": sources,
        })
    }

    /// Cases of the next run, if there is time for one or there have been fewer than `least`.
    fn next(&self, left: Duration, least: u64) -> Option<u32> {
        if self.runs == 0 {
            return Some(FIRST as u32);
        }
        let each = self.taken.as_secs_f64() / self.cases.max(1) as f64;
        let within = |time: Duration| time.min(LONGEST).as_secs_f64() / each.max(1e-9);
        let missing = least.saturating_sub(self.cases) as f64;
        let most = within(left).max(within(LONGEST).min(missing));
        let cases = most.min(GROWTH * f64::from(self.last)) as u32;
        (cases > 0 && self.failures < ENOUGH).then_some(cases)
    }
}

/// Cases and branch points of every law: of the properties in one module, which try it on one model each.
fn by_law<'a>(all: impl Iterator<Item = (&'a Property, &'a Tally)>) -> BTreeMap<String, [u64; 2]> {
    let mut laws = BTreeMap::new();
    for (property, tally) in all {
        let name = property.name();
        let law = name.rsplit_once("::").map_or(&*name, |(law, _)| law);
        let [cases, branches] = laws.entry(law.to_string()).or_insert([0, 0]);
        *cases += tally.cases;
        *branches += tally.branches;
    }
    laws
}

/// Whether so few are branch points as may be; one always may.
fn rare(cases: u64, branches: u64) -> bool {
    branches <= (cases / BRANCHES_IN).max(1)
}

/// The next run: the property that has had the least time, and its cases.
fn choose(tallies: &mut [Tally], left: Duration, least: u64) -> Option<(usize, u32)> {
    let free = tallies.iter().enumerate().filter(|(_, t)| !t.busy);
    let (at, cases) = (free.filter_map(|(at, t)| Some((at, t.next(left, least)?))))
        .min_by_key(|&(at, _)| (tallies[at].runs > 0, tallies[at].taken))?;
    tallies[at].busy = true;
    Some((at, cases))
}

/// A file of tallies, by the names of properties.
struct Kept {
    path: PathBuf,
    lines: serde_json::Map<String, Value>,
    /// What the sources of every property are known by.
    sources: Vec<String>,
}

impl Kept {
    fn open(path: &Path, all: &[Property]) -> Result<Self> {
        let lines = match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text)?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => serde_json::Map::new(),
            Err(e) => return Err(format!("{}: {e}", path.display()).into()),
        };
        let mut known: Vec<(&Path, String)> = Vec::new();
        let mut sources = Vec::new();
        for property in all {
            if known.iter().all(|(folder, _)| *folder != property.folder) {
                known.push((&property.folder, sources_of(&property.folder)?));
            }
            let own = known.iter().find(|(folder, _)| *folder == property.folder);
            sources.extend(own.map(|(_, sources)| sources.clone()));
        }
        Ok(Self {
            path: path.into(),
            lines,
            sources,
        })
    }

    /// Writes the file, a line for every property.
    fn write(&mut self, all: &[Property], tallies: &[Tally]) -> Result<()> {
        for ((property, tally), sources) in all.iter().zip(tallies).zip(&self.sources) {
            if tally.runs > 0 {
                self.lines.insert(property.name(), tally.line(sources));
            }
        }
        let line = |(name, counted)| format!("{}: {counted}", Value::from(name));
        let lines: Vec<_> = (self.lines.clone().into_iter().map(line)).collect();
        let folder = self.path.parent().filter(|p| *p != Path::new(""));
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        std::io::Write::write_all(
            &mut file,
            format!("{{\n{}\n}}\n", lines.join(",\n")).as_bytes(),
        )?;
        file.persist(&self.path)?;
        Ok(())
    }
}

/// The committed sources that a package's tests depend on: its own, those of the libraries, and what is locked.
fn paths_of(folder: &Path) -> Vec<String> {
    let own = folder.to_string_lossy();
    let mut paths = vec!["--", "Cargo.lock", "Cargo.toml"];
    match ["plca-cli", "plca-io", "plca-media", "plca-run"]
        .iter()
        .any(|name| folder.ends_with(name))
    {
        true => paths.push("crates"),
        // A pattern must match whole files. No law reads one.
        false => paths.extend([
            "crates/*/src/*",
            "crates/*/Cargo.toml",
            ":(exclude)crates/plca-cli",
            ":(exclude)crates/plca-io",
            ":(exclude)crates/plca-media",
            ":(exclude)crates/plca-run",
            &*own,
        ]),
    }
    paths.into_iter().map(String::from).collect()
}

/// What they are known by.
fn sources_of(folder: &Path) -> Result<String> {
    let paths = paths_of(folder);
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let git = |arguments: &[&str]| output(&root(), "git", &[arguments, &paths].concat());
    let changed = String::from_utf8(git(&["status", "--porcelain"])?)?;
    if let Some(first) = changed.lines().next() {
        return Err(format!("{first}: a tally is of what is committed").into());
    }
    let listed = git(&["ls-files", "-s"])?;
    let hash = <sha2::Sha256 as sha2::Digest>::digest(listed);
    Ok(hash[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Runs the command; `false` if a property failed.
pub(crate) fn run(args: &Args) -> Result<bool> {
    if !(args.hours.is_finite() && (0.0..=1e4).contains(&args.hours)) {
        return Err(format!("--hours {}: expected 0 to 10000", args.hours).into());
    }
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH);
    let drawn = || clock().map_or(0, |t| t.as_secs());
    let first = args.seed.unwrap_or_else(drawn);
    let mut all = properties(&args.package)?;
    let wanted = |name: &str| args.only.iter().any(|o| name.contains(o.as_str()));
    all.retain(|p| args.only.is_empty() || wanted(&p.told()));
    all.sort_by_key(Property::name);
    if all.is_empty() {
        return Err(format!("no property has {:?} in its name", args.only).into());
    }
    println!("{} properties, --seed {first}", all.len());
    let end = Instant::now() + Duration::from_secs_f64(args.hours * 3600.0);
    let kept = args.tally.as_deref().map(|path| Kept::open(path, &all));
    let kept = kept.transpose()?;
    let tally = |(at, property): (usize, &Property)| {
        let earlier = kept
            .as_ref()
            .and_then(|kept| Tally::kept(kept.lines.get(&property.name())?, &kept.sources[at]));
        earlier.unwrap_or_else(|| Tally {
            seed: seed(first, &property.name()),
            ..Tally::default()
        })
    };
    let tallies = Mutex::new(all.iter().enumerate().map(tally).collect::<Vec<_>>());
    let kept = Mutex::new(kept);
    let locked = || tallies.lock().unwrap_or_else(|e| e.into_inner());
    // An error of one worker ends the others after what they are at.
    let over = AtomicBool::new(false);
    let work = || -> Result<()> {
        while !over.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(Instant::now());
            let Some((at, cases)) = choose(&mut locked(), left, args.cases) else {
                return Ok(());
            };
            let property = &all[at];
            let seed = {
                let tally = &locked()[at];
                tally.seed.wrapping_add(tally.runs)
            };
            let begun = Instant::now();
            let ending = run_once(property, seed, cases);
            let ending = ending.inspect_err(|_| over.store(true, Ordering::Relaxed))?;
            let mut tallies = locked();
            let tally = &mut tallies[at];
            tally.busy = false;
            tally.runs += 1;
            tally.cases += u64::from(cases);
            tally.last = cases;
            tally.taken += begun.elapsed();
            let why = match ending {
                Ending::Held(branches) => {
                    tally.branches += branches;
                    None
                }
                Ending::Hung => Some(format!("// no end within {} s\n", HANGS.as_secs())),
                Ending::Failed(printed) => Some(as_code(&printed).unwrap_or(printed)),
            };
            tally.failures += usize::from(why.is_some());
            if let Some(kept) = &mut *kept.lock().unwrap_or_else(|e| e.into_inner()) {
                kept.write(&all, &tallies)?;
            }
            let Some(why) = why else { continue };
            println!(
                "\n// {}\n// PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases} cargo test -p {} {} -- --exact\n{why}",
                property.name(),
                property.package,
                property.test,
            );
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let done =
            |w: std::thread::ScopedJoinHandle<'_, _>| w.join().map_err(|_| "a worker panicked")?;
        all.into_iter().try_for_each(done)
    })?;
    let tallies = locked();
    println!(
        "\n{:>10} {:>8} {:>8}  {:>20} {:>5}  property",
        "cases", "failures", "seconds", "first seed", "seeds"
    );
    for (property, t) in all.iter().zip(tallies.iter()) {
        let name = property.name();
        let (seconds, seed) = (t.taken.as_secs_f64(), t.seed);
        println!(
            "{:>10} {:>8} {seconds:>8.1}  {seed:>20} {:>5}  {name}",
            t.cases, t.failures, t.runs
        );
    }
    let (cases, failures) =
        (tallies.iter()).fold((0, 0), |(c, f), t| (c + t.cases, f + t.failures));
    println!("{cases:>10} {failures:>8}");
    let mut few = true;
    for (law, [cases, branches]) in by_law(all.iter().zip(tallies.iter())) {
        if branches > 0 {
            println!("{branches} of {cases} of {law}: decided by rounding alone");
            few &= rare(cases, branches);
        }
    }
    if !few {
        println!("at most one in {BRANCHES_IN} may be");
    }
    Ok(failures == 0 && few)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use proptest::prelude::*;

    use super::*;

    static COUNTED: AtomicU32 = AtomicU32::new(0);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3))]

        /// Says how many cases it has had.
        #[test]
        fn counted(x in 0..1000u32) {
            let n = COUNTED.fetch_add(1, Ordering::Relaxed) + 1;
            println!("{n}: {x}");
        }
    }

    fn this(test: &str) -> Property {
        Property {
            package: "xtask".into(),
            folder: root(),
            program: std::env::current_exe().unwrap(),
            test: format!("soak::tests::{test}"),
        }
    }

    /// What the whole command rests on: cases and seed of the environment hold for properties with numbers of their own.
    #[test]
    fn the_environment_decides_on_cases_and_seed() {
        let run = |seed: &str| {
            let program = Command::new(this("").program)
                .args(["--exact", &this("counted").test, "--nocapture"])
                .env("PROPTEST_CASES", "7")
                .env("PROPTEST_RNG_SEED", seed)
                .output()
                .unwrap();
            let text = String::from_utf8(program.stdout).unwrap();
            let drawn = text.lines().filter(|l| l.contains(": "));
            drawn
                .filter(|l| l.starts_with(|c: char| c.is_ascii_digit()))
                .map(String::from)
                .collect::<Vec<_>>()
        };
        let (one, two) = (run("1"), run("2"));
        assert_eq!((one.len(), &one), (7, &run("1")));
        assert_ne!(one, two);
    }

    #[test]
    fn what_holds_is_said_to_hold() {
        assert!(matches!(
            run_once(&this("counted"), 5, 4).unwrap(),
            Ending::Held(0)
        ));
    }

    /// A run that somebody ended is neither a failure nor done; one that crashes has failed.
    #[cfg(unix)]
    #[test]
    fn an_interrupted_run_does_not_count() {
        let ended = |signal: i32| std::os::unix::process::ExitStatusExt::from_raw(signal);
        for signal in [1, 2, 15] {
            assert!(interrupted(ended(signal)), "{signal}");
        }
        // Aborted, killed for memory, a fault of memory, and an exit with 1.
        for status in [6, 9, 11, 1 << 8] {
            assert!(!interrupted(ended(status)), "{status}");
        }
    }

    #[test]
    fn failures_become_code() {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let lists = prop::collection::vec(0..9u8, 1..4);
        let error = (runner.run(&(lists, any::<bool>()), |(list, _)| {
            let low = list.iter().all(|&x| x < 5);
            low.then_some(()).ok_or(TestCaseError::fail("too many"))
        }))
        .unwrap_err();
        let proptest::test_runner::TestError::Fail(reason, (list, flag)) = error else {
            panic!()
        };
        assert_eq!((&list, flag), (&vec![5], false));
        // As the macro prints it.
        let printed = format!(
            "thread panicked:\nTest failed: {reason}.\nminimal failing input: list = {list:#?}, (a, b) = ({flag:#?}, 1.5)\n\tsuccesses: 3\n\tlocal rejects: 0\n"
        );
        assert_eq!(
            as_code(&printed).unwrap(),
            "// too many.\nlet list = vec![ 5, ];\nlet (a, b) = (false, 1.5);\n// after 3 cases that held\n"
        );
        assert_eq!(as_code("error: something else"), None);
    }

    #[test]
    fn a_tally_is_of_all_sources_of_the_libraries() {
        let listed = |folder: &str| {
            let paths = paths_of(&root().join(folder));
            let mut arguments = vec!["ls-files"];
            arguments.extend(paths.iter().map(String::as_str));
            String::from_utf8(output(&root(), "git", &arguments).unwrap()).unwrap()
        };
        let own = listed("crates/plca");
        for file in [
            "crates/plca-fit/src/run.rs",
            "crates/skellam-snmf/src/vb/counts.rs",
            "crates/plca-tensor/Cargo.toml",
            "crates/plca/tests/four_laws/found.rs",
        ] {
            assert!(own.lines().any(|line| line == file), "{file}");
        }
        for file in [
            "crates/plca-cli/",
            "crates/plca-io/",
            "crates/plca-media/",
            "crates/plca-run/",
        ] {
            assert!(!own.contains(file), "{file}");
        }
        assert!(listed("crates/plca-cli").contains("crates/plca-cli/src/"));
    }

    /// A program is known by its own name, not by the folders that it lies in.
    #[test]
    fn programs_are_told() {
        let one = Property {
            program: "/somewhere/deps/four_laws-0123".into(),
            ..this("counted")
        };
        assert!(one.told().contains("xtask soak::tests::counted four_laws"));
        assert!(!one.told().contains("somewhere"));
    }

    #[test]
    fn declarations_are_found() {
        let source = "proptest! {\n    #![proptest_config(x)]\n\n    #[test]\n    fn one(a in 0..1) {\n        fn inner() {}\n    }\n}\nfn other() {}\n/// proptest! {\nmod m {\n    proptest! {\n        fn two((a, b) in c()) {}\n    }\n}\n";
        assert_eq!(declared(source), ["one", "two"]);
        assert_eq!(module(Path::new("properties/mod.rs")), "properties");
        assert_eq!(module(Path::new("main.rs")), "");
        assert_eq!(module(Path::new("a/b.rs")), "a::b");
    }

    /// Branch points count by law: those of `units` of any model together.
    #[test]
    fn few_branch_points_may_be() {
        let of = |test: &str, cases, branches| {
            let tally = Tally {
                cases,
                branches,
                ..Tally::default()
            };
            (this(test), tally)
        };
        let all = [
            of("units::one", 20_000, 3),
            of("units::two", 20_000, 0),
            of("starts::one", 29_999, 3),
        ];
        let laws = by_law(all.iter().map(|(property, tally)| (property, tally)));
        let found: Vec<_> = laws.values().map(|&[c, b]| (c, b, rare(c, b))).collect();
        assert_eq!(found, [(29_999, 3, false), (40_000, 3, true)]);
        assert!(rare(16, 1) && !rare(16, 2));
    }

    /// What a file says counts for the same sources, to the number.
    #[test]
    fn tallies_are_kept() {
        let known = Tally {
            runs: 3,
            cases: 84,
            failures: 1,
            branches: 2,
            seed: u64::MAX - 5,
            ..Tally::default()
        };
        let line = known.line("abc").to_string();
        let line: Value = serde_json::from_str(&line).unwrap();
        let again = Tally::kept(&line, "abc").unwrap();
        assert_eq!(again.line("abc"), line);
        assert_eq!(
            (
                again.next(Duration::ZERO, 84),
                again.next(Duration::ZERO, 100)
            ),
            (None, Some(16))
        );
        assert!(Tally::kept(&line, "abd").is_none());
    }

    /// Whoever had least is next, new ones before all; nothing begins for which there is no time.
    #[test]
    fn time_is_shared() {
        let known = |cases, seconds| Tally {
            runs: 1,
            cases,
            last: 16,
            taken: Duration::from_secs(seconds),
            ..Tally::default()
        };
        let mut all = [known(16, 4), known(16, 2), Tally::default()];
        let left = Duration::from_secs(60);
        assert_eq!(choose(&mut all, left, 0), Some((2, 16)));
        assert_eq!(choose(&mut all, left, 0), Some((1, 64)));
        assert_eq!(choose(&mut all, Duration::from_secs(1), 0), Some((0, 4)));
        assert_eq!(choose(&mut all, left, 0), None);
        assert_eq!(known(16, 4).next(Duration::ZERO, 0), None);
        assert_eq!(known(16, 4).next(Duration::ZERO, 16), None);
        assert_eq!(known(16, 4).next(Duration::ZERO, 40), Some(24));
        assert_eq!(known(16, 4).next(Duration::ZERO, 1000), Some(64));
        let tired = Tally {
            failures: ENOUGH,
            ..known(16, 1)
        };
        assert_eq!(tired.next(left, 1000), None);
        assert_ne!(seed(1, "a b"), seed(1, "a c"));
        assert_ne!(seed(1, "a b"), seed(2, "a b"));
    }
}
