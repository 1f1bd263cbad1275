//! `same`: two builds of the command make the same fits, bit for bit.
//!
//! Every script below is a few command lines in a folder of its own, which both programs run on the same generated data. Equal must be: the status of every
//! line, what it prints except times, and every file that it leaves: all bits of arrays, and metadata except the request, whose words may be called otherwise.
//! Lines that read what earlier ones wrote are also run by the new program on files of the old one: models, checkpoints, shards.
//! Keys of `settings` that the new program writes no more are listed, and so are those that it writes besides. A line that either program refuses compares nothing, and
//! counts as a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plca_io::{Array, ModelFile, read_model, sha256_file, write_npy};
use serde_json::Value;

use crate::Result;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program of before.
    old: PathBuf,
    /// The program of now.
    new: PathBuf,
    /// Only scripts with this in their name.
    #[arg(long)]
    only: Option<String>,
}

/// A model, the data that it takes, options of its own, and the solvers that it has.
struct Row(
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const ALL: &[&str] = &["squarem", "parabolic", "momentum", "fast", "auto"];
const EXTRAPOLATED: &[&str] = &["squarem", "parabolic", "momentum", "auto"];

#[rustfmt::skip]
const MODELS: &[Row] = &[
    Row("nmf-kl", "counts.npy -k 3", &["", "--prior w=gamma:2,1 --prior h=rate:0.1,0.2", "--update sequential"], ALL),
    Row("ntf-l2", "counts.npy -k 3", &["", "--update hals"], &[]),
    Row("plca", "cube.tns -k 3", &["", "--prior factor_0=dirichlet:1.5", "--prior factor_1=entropic:0.05 --solver em", "--temper 0.8"], ALL),
    Row("plsa", "counts.npy -k 3", &["--given 1", "--given 0", "--prior basis=dirichlet:1.5"], ALL),
    Row("plca-vb", "cube.tns -k 3", &["--prior weights=dirichlet:1 --prior factor_0=dirichlet:0.5"], EXTRAPOLATED),
    Row("plsa-vb", "counts.npy -k 3 --prior basis=dirichlet:0.3 --prior mixture=dirichlet:0.2", &["--given 1", "--given 0"], EXTRAPOLATED),
    Row("siplca", "picture.npy -k 2 --kernel 3x4", &["", "--domain same,full", "--likelihood literal", "--anneal 0.5,5", "--impulse-power 1.5"], EXTRAPOLATED),
    Row("tiplca", "picture.npy -k 2 --kernel 3x3", &["--rotations 4", "--scales 1,2 --mirror", "--positions full"], EXTRAPOLATED),
    Row("skellam", "signed.npy -k 3", &["", "--m inf", "--m 1 --prior activations=gamma:2,1", "--floor 0.01 --m inf"], EXTRAPOLATED),
    Row("skellam-vb", "signed.npy -k 3", &["--prior atoms=dirichlet:0.5 --prior activations=gamma:0.5,0.5"], EXTRAPOLATED),
    Row("skellam-cp", "signed-cube.npy -k 2", &["", "--signed-mode 1", "--scale-mode 1 --m inf"], EXTRAPOLATED),
    Row("skellam-cp-vb", "signed-cube.npy -k 2", &["--prior weights=gamma:0.5,0.5"], EXTRAPOLATED),
    Row("siskellam", "signed-picture.npy -k 2 --kernel 3x4", &["", "--domain same", "--anneal 0.5,5"], EXTRAPOLATED),
    Row("siskellam-vb", "signed-picture.npy -k 2 --kernel 3x4", &["--prior activations=gamma:0.5,0.5"], EXTRAPOLATED),
    Row("pntf", "cube.tns -k 3", &["", "--no-normalise", "--sparsity factor_0=0.001"], EXTRAPOLATED),
    Row("kmeans", "counts.npy -k 3", &[""], &[]),
    Row("snmf-ding", "signed.npy -k 3", &[""], &[]),
];

const RUN: &str = "--max-iter 12 --tol 0 --seed 3 --json --quiet";

/// A name, and the lines of a script.
type Script = (String, Vec<String>);

fn scripts() -> Vec<Script> {
    let mut all: Vec<Script> = Vec::new();
    let mut add = |name: String, lines: &[String]| all.push((name, lines.to_vec()));
    for &Row(model, data, settings, solvers) in MODELS {
        let file = data.split(' ').next().unwrap_or_default();
        let fit =
            |more: &str, output: &str| format!("fit {model} {data} {more} {RUN} --output {output}");
        let first = |more: &str, output: &str| fit(&format!("{} {more}", settings[0]), output);
        for (n, more) in settings.iter().enumerate() {
            let single = format!("{more} --precision f32");
            add(
                format!("{model} {n}"),
                &[fit(more, "a.npz"), fit(&single, "b.npz")],
            );
        }
        for solver in solvers {
            add(
                format!("{model} {solver}"),
                &[first(&format!("--solver {solver}"), "a.npz")],
            );
        }
        let mut life = vec![
            first("--restarts 3", "a.npz"),
            first("--init a.npz", "b.npz"),
            format!("refit a.npz {file} --output f.npz --json --quiet"),
            "inspect a.npz".into(),
            "reconstruct a.npz --output g.npy".into(),
        ];
        let shifts = data.contains("--kernel");
        if !["kmeans", "snmf-ding"].contains(&model) {
            life.push(first(
                "--checkpoint c.npz --checkpoint-every 5 --trace t.jsonl",
                "d.npz",
            ));
            life.push(first("--resume c.npz", "e.npz"));
            life.push(format!(
                "transform a.npz {file} --max-iter 12 --tol 0 --json --quiet --output h.npz"
            ));
            if !shifts {
                life.push(format!("transform a.npz {file} --max-iter 12 --tol 0 --json --quiet --each --output i.npz"));
            }
        }
        add(format!("{model} life"), &life);
    }
    for model in ["plca", "plsa", "nmf-kl", "siplca"] {
        let fit = MODELS.iter().find(|row| row.0 == model);
        let data = fit.map_or("", |row| row.1);
        let line = format!("fit {model} {data} {RUN} --output a.npz");
        add(
            format!("sample {model}"),
            &[
                line,
                "sample a.npz --draws 50 --seed 5 --output b.npy".into(),
            ],
        );
    }
    for model in ["nmf-kl", "plsa", "plca"] {
        for criterion in ["bic", "held-out", "cv"] {
            let line = format!(
                "select {model} counts.npy --ranks 1..3 --criterion {criterion} --restarts 2 --max-iter 12 --seed 3 --json --quiet"
            );
            add(format!("select {model} {criterion}"), &[line]);
        }
    }
    for (model, data) in [
        ("plca-vb", "counts.npy"),
        ("plsa-vb", "counts.npy"),
        ("skellam-vb", "signed.npy"),
    ] {
        let line = format!(
            "select {model} {data} --ranks 1..3 --restarts 2 --max-iter 12 --seed 3 --json --quiet"
        );
        add(format!("select {model}"), &[line]);
    }
    for model in ["nmf-kl", "plsa"] {
        let line = format!(
            "consensus {model} counts.npy --ranks 2,3 --runs 6 --max-iter 20 --seed 3 --json --quiet --output a.npz"
        );
        add(format!("consensus {model}"), &[line]);
    }
    for model in ["plsa", "plsa-vb", "nmf-kl", "plca", "skellam"] {
        let data = if model == "skellam" {
            "signed.npy"
        } else {
            "counts.npy"
        };
        let signed = if model == "skellam" { "--signed" } else { "" };
        let shard = format!("shard {data} {signed} --shards 3 --output s");
        add(
            format!("shards {model}"),
            &[shard, format!("fit {model} s -k 3 {RUN} --output a.npz")],
        );
    }
    for model in ["plsa", "plsa-vb", "plca"] {
        let online = format!(
            "fit {model} batches --online 0.7,10 --passes 3 -k 3 --seed 3 --json --quiet --output a.npz"
        );
        add(format!("online {model}"), &[online]);
    }
    for hidden in ["--missing nan", "--mask mask.npy"] {
        let data = if hidden.contains("nan") {
            "holes.npy"
        } else {
            "counts.npy"
        };
        for model in ["nmf-kl", "plca", "plsa", "pntf", "skellam"] {
            add(
                format!("{model} {hidden}"),
                &[format!(
                    "fit {model} {data} {hidden} -k 3 {RUN} --output a.npz"
                )],
            );
        }
    }
    for model in ["nmf-kl", "skellam"] {
        add(
            format!("{model} --transpose"),
            &[format!(
                "fit {model} counts.npy --transpose -k 3 {RUN} --output a.npz"
            )],
        );
    }
    add(
        "plca --out-of-core".into(),
        &[format!(
            "fit plca sparse.mtx --out-of-core o.store -k 3 {RUN} --output a.npz"
        )],
    );
    add(
        "plca --threads".into(),
        &[format!(
            "fit plca cube.tns --threads 2 -k 3 {RUN} --output a.safetensors"
        )],
    );
    all
}

/// Numbers in [0, 1) that are always the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn array(&mut self, shape: &[usize], cell: impl Fn(f64) -> f64) -> Array<f64> {
        let values = (0..shape.iter().product()).map(|_| cell(self.next()));
        Array::new(shape.to_vec(), values.collect())
    }
}

/// Writes the data of all scripts.
fn data(folder: &Path) -> Result<()> {
    let mut numbers = Numbers(1);
    let count = |x: f64| (12.0 * x * x).floor();
    let difference = |x: f64| (10.0 * (x - 0.5)).round();
    let hole = |x: f64| if x < 0.1 { f64::NAN } else { count(x) };
    for (name, shape, cell) in [
        ("counts", &[9usize, 7][..], &count as &dyn Fn(f64) -> f64),
        ("holes", &[9, 7], &hole),
        ("mask", &[9, 7], &|x: f64| f64::from(u8::from(x > 0.15))),
        ("picture", &[12, 10], &count),
        ("signed", &[9, 7], &difference),
        ("signed-picture", &[12, 10], &difference),
        ("signed-cube", &[5, 4, 6], &difference),
    ] {
        write_npy(
            &folder.join(name).with_extension("npy"),
            &numbers.array(shape, cell),
        )?;
    }
    let mut text = String::new();
    for at in 0..120 {
        let x = count(numbers.next());
        if x > 0.0 {
            text.push_str(&format!(
                "{} {} {} {x}\n",
                at % 6 + 1,
                at / 6 % 5 + 1,
                at / 30 + 1
            ));
        }
    }
    std::fs::write(folder.join("cube.tns"), text)?;
    let cells: Vec<String> = (0..30)
        .map(|at| format!("{} {} {}\n", at % 6 + 1, at / 6 + 1, at % 4 + 1))
        .collect();
    let head = "%%MatrixMarket matrix coordinate integer general\n6 5 30\n";
    std::fs::write(
        folder.join("sparse.mtx"),
        head.to_string() + &cells.concat(),
    )?;
    let batches = folder.join("batches");
    std::fs::create_dir(&batches)?;
    for name in ["a.npy", "b.npy"] {
        write_npy(&batches.join(name), &numbers.array(&[9, 5], count))?;
    }
    Ok(())
}

/// What a script left: of every line its status and what it printed, and the files.
struct Left {
    lines: Vec<(Option<i32>, String)>,
    files: BTreeMap<String, PathBuf>,
}

/// Whether a line reads what one before it has written.
fn reads(line: &str) -> bool {
    let uses = [
        "refit ",
        "inspect ",
        "reconstruct ",
        "transform ",
        "sample ",
    ];
    let given = [" --init ", " --resume ", " s -k "];
    uses.iter().any(|word| line.starts_with(word)) || given.iter().any(|word| line.contains(word))
}

fn play<'a>(program: impl Fn(&str) -> &'a Path, lines: &[String], folder: &Path) -> Result<Left> {
    data(folder)?;
    let mut left = Left {
        lines: Vec::new(),
        files: BTreeMap::new(),
    };
    for line in lines {
        let mut command = Command::new(program(line));
        command
            .args(line.split_whitespace())
            .current_dir(folder)
            .stdin(Stdio::null());
        let out = command.output()?;
        let text = [out.stdout, out.stderr].concat();
        let text = String::from_utf8_lossy(&text).replace(&folder.display().to_string(), "FOLDER");
        left.lines.push((out.status.code(), text));
    }
    walk(folder, folder, &mut left.files)?;
    Ok(left)
}

fn walk(root: &Path, folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => walk(root, &path, files)?,
            false => drop(files.insert(path.strip_prefix(root)?.display().to_string(), path)),
        }
    }
    Ok(())
}

/// Keys whose values are times, or words of a command line.
const OTHER: [&str; 3] = ["seconds", "request", "version"];

/// The differences of two values, by their paths; keys of settings that are on one side alone are none, and are noted.
fn differ(path: &str, old: &Value, new: &Value, noted: &mut Noted, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys
                .into_iter()
                .filter(|key| !OTHER.contains(&key.as_str()))
            {
                let inner = format!("{path}.{key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => differ(&inner, a, b, noted, found),
                    (Some(_), None) if path.ends_with("settings") => {
                        noted.gone.extend([key.clone()])
                    }
                    (None, Some(_)) if path.ends_with("settings") => {
                        noted.come.extend([key.clone()])
                    }
                    (a, _) => found.push(format!(
                        "{inner} is only in the {} file",
                        if a.is_some() { "old" } else { "new" }
                    )),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}[{at}]"), a, b, noted, found);
            }
        }
        // A checkpoint is a text of JSON; its sum is of that text.
        (Value::String(a), Value::String(b)) if path.ends_with(".state") => {
            differ(path, &printed(a), &printed(b), noted, found);
        }
        // Files whose settings have other keys have another sum; they are compared themselves.
        (Value::String(a), Value::String(b)) if noted.is_same_file(a, b) => {}
        _ if path == ".sha256" => {}
        _ if old == new => {}
        _ => found.push(format!("{path}: {old} is now {new}")),
    }
}

/// Keys of settings that are no more, and new ones.
#[derive(Default)]
struct Noted {
    gone: BTreeSet<String>,
    come: BTreeSet<String>,
    /// The names of files by their sums, of either program.
    sums: [BTreeMap<String, String>; 2],
}

impl Noted {
    fn is_same_file(&self, old: &str, new: &str) -> bool {
        let [a, b] = &self.sums;
        a.get(old).is_some_and(|name| b.get(new) == Some(name))
    }
}

/// A line of JSON, or lines of text, as a value; JSON behind a word has it as its key.
fn printed(text: &str) -> Value {
    let value = |line: &str| -> Option<Value> {
        if let Ok(value) = serde_json::from_str(line) {
            return Some(value);
        }
        let (word, json) = line.split_once(" {")?;
        let inner: Value = serde_json::from_str(&format!("{{{json}")).ok()?;
        Some(serde_json::json!({ word.trim(): inner }))
    };
    let lines = text.lines();
    lines
        .map(|line| value(line).unwrap_or_else(|| Value::from(line)))
        .collect()
}

fn models(old: &ModelFile, new: &ModelFile, noted: &mut Noted, found: &mut Vec<String>) {
    let names: BTreeSet<&String> = old.arrays.keys().chain(new.arrays.keys()).collect();
    for name in names {
        let bits = |file: &ModelFile| {
            let array = file.arrays.get(name)?;
            Some((
                array.shape.clone(),
                array.values.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            ))
        };
        if bits(old) != bits(new) {
            found.push(format!("the array {name} differs"));
        }
    }
    differ("", &old.metadata, &new.metadata, noted, found);
}

fn compare(old: &Left, new: &Left, lines: &[String], noted: &mut Noted) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let sums = |left: &Left| -> Result<_> {
        let sum = |(name, path): (&String, &PathBuf)| Ok((sha256_file(path)?, name.clone()));
        left.files.iter().map(sum).collect()
    };
    noted.sums = [sums(old)?, sums(new)?];
    for ((line, a), b) in lines.iter().zip(&old.lines).zip(&new.lines) {
        let mut here = Vec::new();
        differ("printed", &printed(&a.1), &printed(&b.1), noted, &mut here);
        if a.0 != b.0 {
            here.push(format!("status {:?} is now {:?}", a.0, b.0));
        }
        found.extend(here.into_iter().map(|what| format!("{line}: {what}")));
    }
    let names: BTreeSet<&String> = old.files.keys().chain(new.files.keys()).collect();
    for name in names {
        let (Some(a), Some(b)) = (old.files.get(name), new.files.get(name)) else {
            found.push(format!("{name} is only of one program"));
            continue;
        };
        let mut here = Vec::new();
        match (read_model(a), read_model(b)) {
            (Ok(a), Ok(b)) => models(&a, &b, noted, &mut here),
            _ if name.ends_with(".jsonl") || name.ends_with(".json") => {
                let [a, b] =
                    [a, b].map(|path| std::fs::read_to_string(path).map(|text| printed(&text)));
                differ("", &a?, &b?, noted, &mut here);
            }
            _ if std::fs::read(a)? != std::fs::read(b)? => here.push("the bytes differ".into()),
            _ => {}
        }
        found.extend(here.into_iter().map(|what| format!("{name}: {what}")));
    }
    Ok(found)
}

/// A fit that is killed after its first checkpoint, and goes on: the same file as without.
fn killed(program: &Path, folder: &Path) -> Result<Left> {
    data(folder)?;
    let fit = "fit plca picture.npy -k 4 --max-iter 200000 --tol 0 --seed 3 --quiet --checkpoint c.npz --checkpoint-every 200 --output a.npz";
    let mut run = Command::new(program)
        .args(fit.split(' '))
        .current_dir(folder)
        .stdin(Stdio::null())
        .spawn()?;
    while !folder.join("c.npz").exists() && run.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    run.kill()?;
    run.wait()?;
    let checkpoint = read_model(folder.join("c.npz"))?;
    let state = checkpoint.metadata["state"].as_str().unwrap_or_default();
    let state: Value = serde_json::from_str(state)?;
    let done = state["checkpoint"]["progress"]["iteration"].as_u64();
    let done = done.ok_or("a checkpoint without its iteration")?;
    let end = done + 50;
    for line in [
        format!(
            "fit plca picture.npy -k 4 --max-iter {end} --tol 0 --seed 3 --quiet --resume c.npz --output a.npz"
        ),
        format!(
            "fit plca picture.npy -k 4 --max-iter {end} --tol 0 --seed 3 --quiet --output b.npz"
        ),
    ] {
        let out = Command::new(program)
            .args(line.split(' '))
            .current_dir(folder)
            .stdin(Stdio::null())
            .status()?;
        if !out.success() {
            return Err(format!("{line} failed").into());
        }
    }
    let names = [("resumed", "a.npz"), ("whole", "b.npz")];
    let files = names.map(|(what, name)| (what.to_string(), folder.join(name)));
    Ok(Left {
        lines: Vec::new(),
        files: files.into(),
    })
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let programs = [args.old.canonicalize()?, args.new.canonicalize()?];
    let (mut noted, mut lines, mut read, mut differences) = (Noted::default(), 0, 0, 0);
    let mut refused = Vec::new();
    for (name, script) in scripts() {
        if args.only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let folders = [
            tempfile::tempdir()?,
            tempfile::tempdir()?,
            tempfile::tempdir()?,
        ];
        let [before, now] = &programs;
        let old = play(|_| before, &script, folders[0].path())?;
        let new = play(|_| now, &script, folders[1].path())?;
        let mut found = compare(&old, &new, &script, &mut noted)?;
        let many = script.iter().filter(|line| reads(line)).count();
        if many > 0 {
            // Files that the old program wrote, read by the new one.
            let by = |line: &str| -> &Path { if reads(line) { now } else { before } };
            let mixed = play(by, &script, folders[2].path())?;
            found.extend(compare(&old, &mixed, &script, &mut noted)?);
        }
        lines += script.len();
        read += many;
        differences += found.len();
        for what in found {
            println!("{name}: {what}");
        }
        let failed = old
            .lines
            .iter()
            .zip(&script)
            .filter(|((status, _), _)| *status != Some(0));
        refused.extend(failed.map(|((_, text), line)| format!("{line}: {}", text.trim())));
    }
    if args.only.is_none() {
        for program in &programs {
            let folder = tempfile::tempdir()?;
            let left = killed(program, folder.path())?;
            let [resumed, whole] = ["resumed", "whole"].map(|name| read_model(&left.files[name]));
            let mut found = Vec::new();
            let (resumed, whole) = (resumed?, whole?);
            for (name, array) in &whole.arrays {
                if resumed.arrays.get(name) != Some(array) {
                    found.push(format!("resume after a kill: the array {name} differs"));
                }
            }
            differences += found.len();
            found
                .iter()
                .for_each(|what| println!("{}: {what}", program.display()));
        }
    }
    println!(
        "{lines} lines, {read} of them also on files of the old program, {differences} differences"
    );
    // A line that is refused compares nothing.
    refused.iter().for_each(|line| println!("refused: {line}"));
    for (what, keys) in [("no longer written", &noted.gone), ("new", &noted.come)] {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        println!(
            "settings {what}: {}",
            if keys.is_empty() {
                "none".into()
            } else {
                keys.join(", ")
            }
        );
    }
    Ok(differences == 0 && refused.is_empty())
}
