//! The command killed at random moments, and what is to be found after that. `cargo xtask faults` runs the same.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Kinds of run.
pub(crate) const KINDS: [&str; 4] = ["checkpoints", "online", "store", "transform"];

/// What a target holds before the first run of a trial.
const OLD: &[u8] = b"what was there before";
/// Kills of one trial at most, before its run may end.
const MOST: usize = 3;

/// What happened in the trials of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Processes killed while they ran.
    pub(crate) kills: usize,
    /// Runs that had ended by themselves before the signal came.
    pub(crate) late: usize,
    /// Kills that left a file being written, which the next run removed.
    pub(crate) litter: usize,
    /// Runs that went on from a checkpoint: their traces are shorter than that of a whole run.
    pub(crate) resumed: usize,
    /// Kills after which the target was the new file.
    pub(crate) renamed: usize,
}

/// One kind of run in its folder.
struct Scene<'a> {
    program: &'a Path,
    folder: PathBuf,
    /// All that the run reads.
    inputs: Vec<String>,
    line: String,
    /// Files that are written: the old bytes, where there were any, and the new ones.
    targets: Vec<Target>,
    checkpoint: Option<&'static str>,
    /// Lines of the trace of a whole run, where there are checkpoints.
    traced: usize,
    /// How long it takes by itself.
    whole: Duration,
}

struct Target {
    name: &'static str,
    old: Vec<u8>,
    new: Vec<u8>,
}

/// A number in `[0, 1)`.
fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Counts in a matrix of this shape, as the lines of a coordinate file.
fn counts(rows: u64, columns: u64, entries: u64, seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut text = String::new();
    for n in 0..entries {
        // Every row and every column has something.
        let (i, j) = match n < rows.max(columns) {
            true => (n % rows, n % columns),
            false => (rng.next_u64() % rows, rng.next_u64() % columns),
        };
        text.push_str(&format!("{} {} {}\n", i + 1, j + 1, 1 + rng.next_u64() % 9));
    }
    text
}

impl<'a> Scene<'a> {
    /// Prepares the files of a kind, and runs it once without being disturbed.
    fn new(kind: &str, program: &'a Path, folder: PathBuf) -> Result<Self, String> {
        std::fs::create_dir_all(&folder).map_err(said)?;
        let mut scene = Self {
            program,
            folder,
            inputs: Vec::new(),
            line: String::new(),
            targets: Vec::new(),
            checkpoint: None,
            traced: 0,
            whole: Duration::ZERO,
        };
        let mut names = vec!["o.npz"];
        let input = |scene: &mut Self, name: &str, text: &str| {
            scene.inputs.push(name.into());
            std::fs::write(scene.folder.join(name), text).map_err(said)
        };
        match kind {
            "checkpoints" => {
                input(&mut scene, "d.tns", &counts(60, 40, 900, 1))?;
                scene.line = "fit plsa d.tns --rank 3 --tol 0 --max-iter 40 --restarts 2 --accelerate squarem --check-every 3 \
                              --checkpoint c --checkpoint-every 1 --threads 2"
                    .into();
                scene.checkpoint = Some("c");
            }
            "online" => {
                let mut blocks = Vec::new();
                for block in 0..6 {
                    let name = format!("b{block}.tns");
                    input(&mut scene, &name, &counts(60, 20, 300, 10 + block))?;
                    blocks.push(name);
                }
                let blocks = blocks.join(" ");
                scene.line = format!(
                    "fit plsa {blocks} --shape 60x20 --rank 3 --online 0.6,1 --passes 4 --prior basis=dirichlet:1.05 \
                     --checkpoint c --checkpoint-every 1 --threads 2"
                );
                scene.checkpoint = Some("c");
            }
            "store" => {
                input(&mut scene, "d.tns", &counts(300, 200, 20_000, 2))?;
                scene.line =
                    "fit plsa d.tns --rank 2 --max-iter 2 --out-of-core s.store --threads 2".into();
                names.push("s.store");
            }
            "transform" => {
                input(&mut scene, "d.tns", &counts(60, 40, 900, 3))?;
                input(&mut scene, "n.tns", &counts(60, 4000, 40_000, 4))?;
                scene.run("fit plsa d.tns --rank 3 --max-iter 20 --quiet --output m.npz")?;
                scene.inputs.push("m.npz".into());
                scene.line = "transform m.npz n.tns --max-iter 3 --threads 2".into();
            }
            _ => return Err(format!("no kind of run is called {kind}")),
        }
        scene.line.push_str(" --quiet --output o.npz");
        if scene.checkpoint.is_some() {
            scene.line.push_str(" --trace t");
        }
        // A store of other data is an old file that may be replaced; anything else is as good as OLD.
        let mut old = OLD.to_vec();
        if kind == "store" {
            scene.run(&scene.line.replace("--rank", "--shape 400x200 --rank"))?;
            old = scene.read("s.store")?;
        }
        let started = Instant::now();
        scene.run(&scene.line)?;
        scene.whole = started.elapsed();
        if scene.checkpoint.is_some() {
            scene.traced = scene.lines()?;
        }
        for name in names {
            let old = if name == "s.store" {
                old.clone()
            } else {
                OLD.to_vec()
            };
            let new = scene.read(name)?;
            scene.targets.push(Target { name, old, new });
        }
        Ok(scene)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.folder.join(name)).map_err(|e| format!("{name}: {e}"))
    }

    /// Lines of the trace.
    fn lines(&self) -> Result<usize, String> {
        Ok(self.read("t")?.iter().filter(|&&b| b == b'\n').count())
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(self.program);
        command.current_dir(&self.folder);
        command.args(line.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Runs a line that must succeed without a word.
    fn run(&self, line: &str) -> Result<(), String> {
        let out = self.command(line).output().map_err(said)?;
        let error = String::from_utf8_lossy(&out.stderr);
        match out.status.success() && error.is_empty() {
            true => Ok(()),
            false => Err(format!("{line}: {}: {error}", out.status)),
        }
    }

    /// Names of files being written that nobody writes.
    fn litter(&self) -> Result<BTreeSet<String>, String> {
        let mut litter = BTreeSet::new();
        for entry in std::fs::read_dir(&self.folder).map_err(said)? {
            let name = entry.map_err(said)?.file_name();
            let name = name.to_string_lossy().into_owned();
            let known = self.inputs.contains(&name)
                || self.targets.iter().any(|t| t.name == name)
                || self.checkpoint.is_some_and(|c| [c, "t"].contains(&&*name));
            if !known {
                litter.insert(name);
            }
        }
        Ok(litter)
    }

    /// What must hold whenever nothing runs; whether there is a checkpoint, and whether every target is new.
    fn check(&self) -> Result<(bool, bool), String> {
        let mut renamed = true;
        for target in &self.targets {
            let found = self.read(target.name)?;
            if found != target.new {
                renamed = false;
                if found != target.old {
                    let (name, bytes) = (target.name, found.len());
                    return Err(format!(
                        "{name} is neither the old file nor the new one: {bytes} bytes"
                    ));
                }
            }
        }
        let stray = |name: &String| !(name.starts_with(".plca-") && name.ends_with(".tmp"));
        if let Some(name) = self.litter()?.into_iter().find(stray) {
            return Err(format!("{name} was left"));
        }
        let checkpoint = self.checkpoint.map(|name| self.folder.join(name));
        let checkpoint = checkpoint.filter(|path| path.exists());
        if let Some(path) = &checkpoint {
            plca_io::read_checkpoint(path).map_err(|e| format!("a torn checkpoint: {e}"))?;
        }
        Ok((checkpoint.is_some(), renamed))
    }

    /// Kills a run once or a few times, and lets it end then.
    fn trial(&self, rng: &mut ChaCha8Rng, tally: &mut Tally) -> Result<(), String> {
        for target in &self.targets {
            std::fs::write(self.folder.join(target.name), &target.old).map_err(said)?;
        }
        if let Some(name) = self.checkpoint {
            let _ = std::fs::remove_file(self.folder.join(name));
        }
        let mut resume = "";
        for _ in 0..1 + rng.next_u64() as usize % MOST {
            let mut run = self.command(&format!("{}{resume}", self.line));
            let mut run = run.stderr(Stdio::null()).spawn().map_err(said)?;
            std::thread::sleep(self.whole.mul_f64(uniform(rng)));
            let ended = run.try_wait().map_err(said)?;
            run.kill().map_err(said)?;
            run.wait().map_err(said)?;
            let (checkpoint, renamed) = self.check()?;
            if let Some(status) = ended {
                tally.late += 1;
                if !(status.success() && renamed) {
                    return Err(format!("a run that nobody killed ended with {status}"));
                }
                break;
            }
            tally.kills += 1;
            tally.renamed += usize::from(renamed);
            tally.litter += usize::from(!self.litter()?.is_empty());
            resume = if checkpoint { " --resume c" } else { "" };
        }
        self.run(&format!("{}{resume}", self.line))?;
        tally.resumed += usize::from(!resume.is_empty() && self.lines()? < self.traced);
        let (_, renamed) = self.check()?;
        if !renamed {
            return Err("the run that ended has other bytes than one that nobody killed".into());
        }
        match self.litter()?.pop_first() {
            Some(name) => Err(format!("{name} was not removed by the next run")),
            None => Ok(()),
        }
    }
}

/// Kills so many runs of a kind, in a folder of its own.
pub(crate) fn run(
    kind: &str,
    program: &Path,
    folder: &Path,
    kills: usize,
    seed: u64,
) -> Result<Tally, String> {
    let scene = Scene::new(kind, program, folder.join(kind))?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(KINDS.iter().position(|k| *k == kind).unwrap_or(0) as u64);
    let mut tally = Tally::default();
    while tally.kills < kills {
        let done = scene.trial(&mut rng, &mut tally);
        done.map_err(|e| format!("{kind}, seed {seed}, after {} kills: {e}", tally.kills))?;
    }
    Ok(tally)
}

fn said(e: std::io::Error) -> String {
    e.to_string()
}
