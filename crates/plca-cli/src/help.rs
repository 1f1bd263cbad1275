//! The help: the options of one model, or all options with the models that take them.

use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, Command, CommandFactory};
use plca_run::Family;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::families::{self, Chosen};
use crate::models::options::{has, takes};
use crate::models::priors::of_laws;
use crate::models::{Kind, SCORED, Takes};
use crate::settings;

/// Columns of the help of a model.
const WIDTH: usize = 100;

/// The command line as it is parsed. Options that only some models take say which.
pub(crate) fn command() -> Command {
    let mut command = arguments();
    let scored = |family: &&Family| family.models.iter().any(|m| SCORED.contains(&m.1.name));
    let all: Vec<&Family> = plca_run::families().iter().collect();
    let scored: Vec<&Family> = all.iter().copied().filter(scored).collect();
    for (name, models) in [("fit", &all), ("select", &scored)] {
        command =
            command.mut_subcommand(name, |command| command.mut_args(|arg| told_of(arg, models)));
    }
    command
}

/// The command line with the settings of all models.
fn arguments() -> Command {
    let of_models = ["fit", "select", "learn", "consensus"].into_iter();
    of_models.fold(Arguments::command(), |command, name| {
        let with_all = |command| families::command(settings::command(command));
        command.mut_subcommand(name, with_all)
    })
}

/// An option whose help names the models that take it, unless all models of the command do.
fn told_of(arg: Arg, known: &[&Family]) -> Arg {
    let Some(option) = option(&arg) else {
        return arg;
    };
    let takes = |family: &&Family| match family.switch {
        Some(switch) if *arg.get_id() == switch => true,
        _ => family.models.iter().any(|(_, model)| has(model, &option)),
    };
    let (taking, others): (Vec<&Family>, Vec<&Family>) = known.iter().copied().partition(takes);
    if taking.is_empty() || others.is_empty() {
        return arg;
    }
    let (shorter, word) = match taking.len() <= others.len() {
        true => (taking, "Models"),
        false => (others, "Not for"),
    };
    let names: Vec<_> = shorter.iter().map(|model| model.name).collect();
    let text = arg.get_long_help().or(arg.get_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    // Those of select name the models that it has a table for.
    if known.iter().any(|family| text.starts_with(family.name)) {
        return arg;
    }
    let end = if text.ends_with('.') { "" } else { "." };
    let names = names.join(", ");
    arg.long_help(format!("{text}{end} {word}: {names}"))
}

/// The name of an option as it is typed.
fn option(arg: &Arg) -> Option<String> {
    arg.get_long().map(|name| format!("--{name}"))
}

/// The model whose help a command line asks for: `plca fit MODEL --help`.
pub(crate) fn asked(line: &[OsString]) -> Option<Chosen> {
    let line = line.get(1..)?;
    let (name, line) = line.split_first()?;
    let help = |word: &OsString| word == "--help" || word == "-h";
    if name != "fit" || !line.iter().any(help) {
        return None;
    }
    let words: Vec<&str> = line.iter().filter_map(|word| word.to_str()).collect();
    Chosen::asked(&words)
}

/// What `plca fit MODEL --help` prints.
pub(crate) fn of_model(chosen: &Chosen) -> String {
    let (model, name) = (chosen.model, &chosen.called);
    let mut command = arguments();
    let fit = command.find_subcommand_mut("fit").map(std::mem::take);
    let fit = fit.unwrap_or_default();
    let example = format!("  {}\n", example(model, name));
    let mut fit = fit
        .disable_help_flag(true)
        .term_width(WIDTH)
        .about(format!("{name}: {}", chosen.about()))
        .override_usage(format!(
            "plca fit {name} [OPTIONS] --output FILE DATA{}",
            if has(model, "--online") { " [BATCH]..." } else { "" }
        ))
        .after_help(format!(
            "Example:\n{example}More on every option: plca fit --help. Arrays of the model file: {}",
            model.blocks(2).join(", ")
        ))
        .mut_args(|arg| of(chosen, arg));
    let text = fit.render_help().to_string();
    // Groups follow each other without a gap, so that a page holds them.
    let mut lines = text.lines().peekable();
    let mut page = String::new();
    while let Some(line) = lines.next() {
        let begins = |next: &&str| next.ends_with(':') || next.starts_with("Usage:");
        let next_is_group = lines.peek().is_some_and(begins);
        if !(line.is_empty() && next_is_group) {
            page.push_str(line.trim_end());
            page.push('\n');
        }
    }
    page
}

/// An argument of `fit` on the page of one model.
fn of(chosen: &Chosen, arg: Arg) -> Arg {
    let model = chosen.model;
    let foreign = option(&arg).is_some_and(|option| !takes(model, &option));
    let id = arg.get_id().as_str().to_string();
    match &*id {
        "model" => arg.hide(true),
        "blocks" | "passes" | "local" => arg.hide(!has(model, "--online")),
        "method" | "loss" => arg.hide(!chosen.has_switch(&id)),
        _ if foreign => arg.hide(true),
        // Their lines name the values.
        "header" | "likelihood" | "missing_method" | "positions" => arg.hide_possible_values(true),
        "prior" => arg.help(format!(
            "Prior on every column of a block, repeatable: {}",
            of_laws(model.laws())
        )),
        "solver" => arg
            .help(format!("One of {}", solvers(model)))
            .hide_possible_values(true),
        "update" => match model.takes {
            Takes::Counts => {
                arg.help("Form of the update: simultaneous or sequential [default: simultaneous]")
            }
            _ => arg.help("Form of the update: multiplicative or hals [default: multiplicative]"),
        }
        .hide_possible_values(true),
        _ => arg,
    }
}

/// The names of the solvers of a model.
fn solvers(model: Kind) -> String {
    use plca_fit::Solver;
    let all = Solver::ALL.iter().filter(|solver| match solver {
        Solver::Em | Solver::Auto => true,
        Solver::Fast => model.separates,
        _ => has(model, "--accelerate"),
    });
    let names: Vec<&str> = all.map(|solver| solver.name()).collect();
    names.join(", ")
}

/// A command line that fits the model.
fn example(model: Kind, name: &str) -> String {
    let data = match model.takes {
        Takes::Counts => "counts.csv",
        Takes::Numbers | Takes::Signed | Takes::SignedMatrix => "numbers.csv",
    };
    let kernel = match has(model, "--kernel") {
        true => " --kernel 3x3",
        false => "",
    };
    format!("plca fit {name} {data} --rank 5{kernel} --output model.npz")
}

/// The names of the commands.
pub(crate) fn commands() -> String {
    let command = Arguments::command();
    let names = command.get_subcommands().map(Command::get_name);
    names.collect::<Vec<_>>().join(", ")
}

/// Whether a command has this name.
pub(crate) fn is_command(name: &str) -> bool {
    Arguments::command().find_subcommand(name).is_some()
}

/// Completions of the command line for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "plca", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The manual page of the command, or of one of its commands.
pub(crate) fn manual(name: Option<&str>) -> Result<String, Failure> {
    let mut command = command();
    command.build();
    let page = match name {
        None => &command,
        Some(name) => command.find_subcommand(name).ok_or_else(|| {
            let names = commands();
            Failure::usage(format!(
                "man {name}: unknown command; expected one of {names}"
            ))
        })?,
    };
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(page.clone()).render(&mut text);
    rendered.map_err(Failure::new)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What is wrong with a command line and what would be right, without the usage below it.
pub(crate) fn refused(line: &[OsString], mut e: clap::Error) -> Failure {
    // It is in `help`, and would be told from what was typed by its words alone.
    e.remove(ContextKind::Usage);
    let text = e.render().to_string();
    let text = text.trim_start_matches("error: ");
    let text = text
        .rsplit_once("\n\nFor more information")
        .map_or(text, |(text, _)| text);
    let mut said = String::new();
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        match part.strip_prefix("tip: ") {
            Some(tip) => said.push_str(&format!("; {tip}")),
            None if said.is_empty() => said.push_str(part),
            None => said.push_str(&format!(" {part}")),
        }
    }
    if e.kind() == ErrorKind::InvalidSubcommand {
        said.push_str(&format!("; expected one of {}", commands()));
    }
    if e.kind() == ErrorKind::InvalidUtf8 {
        let wrong = line.iter().filter(|word| word.to_str().is_none());
        let wrong: Vec<_> = wrong.map(|word| word.to_string_lossy()).collect();
        said.push_str(&format!(": '{}'", wrong.join("', '")));
    }
    let command = line.get(1).and_then(|word| word.to_str());
    match command.filter(|name| is_command(name)) {
        Some(name) => Failure::usage(format!("{said}; see plca {name} --help")),
        None => Failure::usage(format!("{said}; see plca --help")),
    }
}
