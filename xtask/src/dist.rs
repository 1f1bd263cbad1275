//! `dist`: what a release of this machine's platform is made of: the command with its pages and completions, the wheel, what they are built from,
//! and checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::tidy::output;
use crate::{Result, root, target};

/// Writes the lists of components.
const CYCLONEDX: &str = "0.5.9";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder that is written, which must not be there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The command alone: needs no Python
    #[arg(long)]
    no_wheel: bool,
}

/// Runs a program whose words are for the terminal.
fn told(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .map_err(|e| format!("cannot run {command:?}: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}

/// The packages of the workspace.
fn packages(root: &Path, cargo: &str) -> Result<Vec<Value>> {
    let metadata = ["metadata", "--locked", "--no-deps", "--format-version", "1"];
    let mut metadata: Value = serde_json::from_slice(&output(root, cargo, &metadata)?)?;
    match metadata["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => Err("cargo lists no packages".into()),
    }
}

/// The version of the workspace.
fn version(root: &Path, cargo: &str) -> Result<String> {
    let packages = packages(root, cargo)?.into_iter();
    let mut command = packages.filter(|package| package["name"] == "plca-cli");
    let command = command.next().ok_or("no package plca-cli")?;
    Ok(command["version"]
        .as_str()
        .ok_or("plca-cli has no version")?
        .to_string())
}

/// The platform that is built for.
fn host(root: &Path) -> Result<String> {
    let told = String::from_utf8(output(root, "rustc", &["--version", "--verbose"])?)?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc names no host")?.to_string())
}

/// The list of what a package is built from, by CycloneDX.
fn components(root: &Path, cargo: &str, package: &str, to: &Path) -> Result<()> {
    let tools = target().join("tools");
    let tool = tools.join("bin").join("cargo-cyclonedx");
    let found = output(root, &tool.to_string_lossy(), &["cyclonedx", "--version"]);
    if !found.is_ok_and(|told| String::from_utf8_lossy(&told).trim().ends_with(CYCLONEDX)) {
        let name = format!("cargo-cyclonedx@{CYCLONEDX}");
        told(
            Command::new(cargo)
                .args(["install", "--debug", "--locked", "--quiet", "--root"])
                .arg(&tools)
                .arg(name),
        )?;
    }
    let manifest = root.join(package).join("Cargo.toml");
    told(
        Command::new(&tool)
            .args([
                "cyclonedx",
                "--quiet",
                "--format",
                "json",
                "--target",
                "all",
            ])
            .args(["--override-filename", "components", "--manifest-path"])
            .arg(&manifest),
    )?;
    let written = manifest.with_file_name("components.json");
    fs::copy(&written, to)?;
    // One beside the manifest of every package of the workspace.
    let manifests = packages(root, cargo)?.into_iter();
    let manifests =
        manifests.filter_map(|package| package["manifest_path"].as_str().map(PathBuf::from));
    for path in manifests
        .map(|manifest| manifest.with_file_name("components.json"))
        .chain([written])
    {
        if path.exists() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// An archive of files, each with its name and mode; the same bytes for the same files.
fn archive(path: &Path, folder: &str, files: &[(String, Vec<u8>, u32)]) -> Result<()> {
    let packed = GzEncoder::new(fs::File::create(path)?, Compression::best());
    let mut tar = tar::Builder::new(packed);
    for (name, content, mode) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(*mode);
        header.set_mtime(0);
        tar.append_data(&mut header, format!("{folder}/{name}"), &content[..])?;
    }
    tar.into_inner()?.finish()?;
    Ok(())
}

/// The command, its pages for `man` and what shells complete, and what a reader wants beside.
fn command_files(root: &Path, program: &Path) -> Result<Vec<(String, Vec<u8>, u32)>> {
    let program_name = format!("plca{}", std::env::consts::EXE_SUFFIX);
    let mut files = vec![(program_name, fs::read(program)?, 0o755)];
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"] {
        files.push((name.into(), fs::read(root.join(name))?, 0o644));
    }
    let readme = root.join("crates/plca-cli/README.md");
    files.push(("README.md".into(), fs::read(readme)?, 0o644));
    let plca = |arguments: &[&str]| output(root, &program.to_string_lossy(), arguments);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let made = plca(&["completions", shell])?;
        files.push((format!("completions/plca.{shell}"), made, 0o644));
    }
    let page = plca(&["man"])?;
    let text = String::from_utf8_lossy(&page).into_owned();
    files.push(("man/plca.1".into(), page, 0o644));
    // The page of the command names those of its subcommands.
    let mut names: Vec<&str> = text
        .split("plca\\-")
        .skip(1)
        .filter_map(|rest| rest.split("(1)").next())
        .filter(|name| *name != "help")
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Err("the page of the command names no subcommand".into());
    }
    for name in names {
        let page = plca(&["man", name])?;
        files.push((format!("man/plca-{name}.1"), page, 0o644));
    }
    Ok(files)
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let root = root();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let out = args.out.clone().unwrap_or_else(|| target().join("dist"));
    fs::create_dir_all(out.parent().unwrap_or(Path::new(".")))?;
    fs::create_dir(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let (version, host) = (version(&root, &cargo)?, host(&root)?);

    told(Command::new(&cargo).current_dir(&root).args([
        "build",
        "--locked",
        "--quiet",
        "--release",
        "--package",
        "plca-cli",
    ]))?;
    let name = format!("plca{}", std::env::consts::EXE_SUFFIX);
    let files = command_files(&root, &target().join("release").join(name))?;
    let folder = format!("plca-{version}-{host}");
    archive(&out.join(format!("{folder}.tar.gz")), &folder, &files)?;
    let list = out.join(format!("{folder}.cdx.json"));
    components(&root, &cargo, "crates/plca-cli", &list)?;

    if !args.no_wheel {
        let python = if cfg!(windows) { "python" } else { "python3" };
        told(
            Command::new(python)
                .current_dir(&root)
                .args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"])
                .arg(fs::canonicalize(&out)?)
                .arg("./python"),
        )?;
        let list = out.join(format!("plcakit-{version}.cdx.json"));
        components(&root, &cargo, "python", &list)?;
    }

    let mut names = Vec::new();
    for entry in fs::read_dir(&out)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut sums = String::new();
    for name in names {
        let content = fs::read(out.join(&name))?;
        let sum = Sha256::digest(&content);
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{:>10}  {name}", content.len());
        sums.push_str(&format!("{sum}  {name}\n"));
    }
    // As `sha256sum --check` reads them.
    fs::write(out.join("SHA256SUMS"), sums)?;
    println!("{}", out.display());
    Ok(true)
}
