//! `plca refit`: the fit of a model file once more, as it was or with other options.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Id};
use plca_fit::Solver;
use plca_run::ModelEntry;
use serde_json::{Map, Value, json};

use crate::args::{FitArgs, RefitArgs};
use crate::failure::Failure;
use crate::help;
use crate::saved;
use crate::solver;

/// Options that say where a run writes and how fast it is, not what it finds.
const OF_A_RUN: &[&str] = &[
    "output",
    "trace",
    "checkpoint",
    "checkpoint_every",
    "resume",
    "out_of_core",
    "threads",
    "json",
    "quiet",
];

/// What a command line of `fit` asks for, as a model file keeps it: files of data, and options with their values. Null where a name is not
/// UTF-8, which JSON could not give back.
pub(crate) fn request(args: &FitArgs, matches: &ArgMatches) -> Value {
    let mut data = Vec::new();
    let mut options = Map::new();
    for arg in fit().get_arguments() {
        let id = arg.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) || OF_A_RUN.contains(&id) {
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten();
        let values: Option<Vec<&str>> = values.map(|value| value.to_str()).collect();
        let Some(values) = values else {
            return Value::Null;
        };
        match (id, arg.get_long()) {
            ("data" | "blocks", _) => data.extend(values),
            // The model file names the model that they choose.
            ("method" | "loss", _) | (_, None) => {}
            // Files keep the names that options have had first.
            (id, Some(_)) => {
                let values = match arg.get_action().takes_values() {
                    true => values,
                    false => Vec::new(),
                };
                options.insert(id.replace('_', "-"), json!(values));
            }
        }
    }
    if solver::of_the_store(args) {
        // A run in memory would have the choice.
        options.insert("solver".to_string(), json!([Solver::Em.name()]));
    }
    json!({ "data": data, "options": options })
}

/// Files that a fit reads beside its data: their checksums are in the settings.
const FILES: &[&str] = &["freeze_entries", "init", "mask", "priors"];

/// Options of which one says along which dimension the samples lie.
const SAMPLES: [&str; 3] = ["samples", "given", "transpose"];

/// What a fit read that was not what the model file of this path was fitted to, as warnings.
pub(crate) fn changed(path: &Path, then: &Value, now: &Value, request: &Value) -> Vec<String> {
    let (path, mut warnings) = (path.display(), Vec::new());
    if then["data"]["sha256"] != now["data"]["sha256"] {
        // As they were named: a stream is read from another file.
        let data = request["data"].as_array().into_iter().flatten();
        let data: Vec<&str> = data.filter_map(Value::as_str).collect();
        let data = match data.is_empty() {
            true => "the data".to_string(),
            false => data.join(", "),
        };
        warnings.push(format!("{data}: not the data of {path}"));
    }
    let (then, now) = (&then["settings"], &now["settings"]);
    // What is asked for only now, or no more, is no change of a file.
    let both = |name: &str| !then[name].is_null() && !now[name].is_null();
    let other = FILES
        .iter()
        .filter(|&&name| both(name) && then[name] != now[name]);
    warnings.extend(other.map(|name| {
        let option = if *name == "freeze_entries" {
            "freeze"
        } else {
            name
        };
        format!("--{option}: not the file that {path} was fitted with")
    }));
    warnings
}

fn fit() -> clap::Command {
    let command = help::command();
    let fit = command.find_subcommand("fit");
    fit.cloned().unwrap_or_default()
}

/// The command line of the fit of a model file, with what stands on the command line of `refit` in place of what stands there.
pub(crate) fn line(args: &RefitArgs) -> Result<Vec<OsString>, Failure> {
    let file = saved::read(&args.model)?;
    let unknown = || {
        let what = "does not say how it was fitted: expected a model file that `plca fit` wrote, from files with names in UTF-8";
        Failure::of(&args.model, what)
    };
    let request = &file.metadata["request"];
    let model = file.metadata["model"].as_str().ok_or_else(unknown)?;
    let options = request["options"].as_object().ok_or_else(unknown)?;
    let fit = fit();
    let (given, mut without) = split(&args.fit);
    without.extend(args.without.iter().cloned());
    for name in &mut without {
        let arg = fit.get_arguments().find(|arg| arg.get_long() == Some(name));
        let id = arg.map(|arg| arg.get_id().as_str().replace('_', "-"));
        *name = id
            .filter(|id| options.contains_key(id))
            .unwrap_or(name.clone());
    }
    if let Some(name) = without.iter().find(|&name| !options.contains_key(name)) {
        let (model, kept) = (args.model.display(), options.keys());
        let kept: Vec<&str> = kept.map(String::as_str).collect();
        let what = format!(
            "--without {name}: {model} was fitted with {}",
            kept.join(", ")
        );
        return Err(Failure::usage(what));
    }
    let mut named = named(fit.clone(), model, &given);
    if SAMPLES.iter().any(|&id| named.contains(id)) {
        named.extend(SAMPLES.map(str::to_string));
    }
    // What chooses another model is an option of the name that both have.
    let switched = ["method", "loss"].iter().any(|&id| named.contains(id));
    let family = plca_run::model(model)
        .filter(|_| switched)
        .map(ModelEntry::called);
    let family = family
        .as_deref()
        .and_then(|called| called.split(' ').next());
    let model = family.unwrap_or(model);
    let mut line: Vec<OsString> = vec!["plca".into(), "fit".into(), model.into()];
    for (name, values) in options {
        // A file from elsewhere asks for nothing but what a fit finds.
        let known = |arg: &&Arg| {
            let id = arg.get_id().as_str();
            id.replace('_', "-") == *name && !OF_A_RUN.contains(&id)
        };
        let Some(arg) = fit.get_arguments().find(known) else {
            let what = format!("was fitted with --{name}, which this command does not have");
            return Err(Failure::of(&args.model, what));
        };
        if named.contains(arg.get_id().as_str()) || without.contains(name) {
            continue;
        }
        let values = values.as_array().into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let option = |value: &str| OsString::from(format!("--{name}={value}"));
        match arg.get_value_delimiter() {
            _ if values.is_empty() => line.push(format!("--{name}").into()),
            Some(between) => line.push(option(&values.join(&between.to_string()))),
            None => line.extend(values.into_iter().map(option)),
        }
    }
    let closed = given.iter().any(|word| word == "--");
    line.extend(given);
    if !named.contains("data") {
        if !closed {
            // Names of data may begin like options.
            line.push("--".into());
        }
        let kept = request["data"].as_array().into_iter().flatten();
        line.extend(kept.filter_map(Value::as_str).map(OsString::from));
    }
    Ok(line)
}

/// The words of a fit, and the names of options behind `--without`.
fn split(words: &[OsString]) -> (Vec<OsString>, Vec<String>) {
    let (mut given, mut names) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let name = match text.strip_prefix("--without") {
            Some("") => words.next().map(|name| name.to_string_lossy()),
            Some(rest) => rest.strip_prefix('=').map(Cow::from),
            None => None,
        };
        match name {
            Some(name) => names.extend(name.split(',').map(str::to_string)),
            None => given.push(word.clone()),
        }
    }
    (given, names)
}

/// Which arguments of a fit are among these words.
fn named(fit: clap::Command, model: &str, given: &[OsString]) -> BTreeSet<String> {
    let mut line: Vec<OsString> = vec!["fit".into(), model.into()];
    line.extend(given.iter().cloned());
    // What is missing is in the model file; what is wrong is said of the whole line.
    let Ok(matches) = fit.ignore_errors(true).try_get_matches_from(line) else {
        return BTreeSet::new();
    };
    let ids = matches.ids().map(Id::as_str);
    let ids = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    ids.map(str::to_string).collect()
}
