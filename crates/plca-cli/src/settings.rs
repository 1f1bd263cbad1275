//! Settings of models on the command line: options of `fit`, `select` and `learn` that the models themselves say.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use plca_fit::{Setting, SettingSpec, SettingValue};
use plca_run::{Options, models};

/// The power of the model, and the schedule that lowers it.
const TEMPER: SettingSpec = SettingSpec {
    name: "temper",
    value: "B[,ETA]",
    group: "Solver",
    about: "Tempered EM: power B in (0, 1], lowered by the factor ETA in (0, 1)\n\nWithout ETA the power is always B. With ETA a tenth of the counts is held out. The power stays the same as long as every iteration lowers the perplexity of the held-out counts by more than --tol times its value; then the power is multiplied by ETA. The run ends when a lower power does not lower the perplexity either (--tol 0: when all iterations are done).",
    choices: &[],
    flag: false,
    whole: false,
    list: false,
    words: String::words,
};

/// The settings of all models, each once, with the words that any of them knows.
fn all() -> Vec<(SettingSpec, Vec<(&'static str, &'static str)>)> {
    let mut all: Vec<(SettingSpec, Vec<(&'static str, &'static str)>)> = Vec::new();
    for spec in models().iter().flat_map(|model| model.specs()) {
        let at = all.iter().position(|(other, _)| other.name == spec.name);
        let at = at.unwrap_or_else(|| {
            let spec = if spec.name == TEMPER.name {
                TEMPER
            } else {
                spec
            };
            all.push((spec, Vec::new()));
            all.len() - 1
        });
        let known = &mut all[at].1;
        for choice in spec.choices {
            if !known.iter().any(|(word, _)| *word == choice.0) {
                known.push(*choice);
            }
        }
    }
    all
}

/// Settings of `select` and `learn`; of kernels `select` has several.
const OF_SELECT: &[&str] = &[
    "m",
    "real_data",
    "given",
    "domain",
    "likelihood",
    "anneal",
    "impulse_power",
    "update",
    "missing_method",
];
const OF_LEARN: &[&str] = &["m", "real_data"];

fn of_command(name: &str, setting: &str) -> bool {
    match name {
        "fit" => true,
        "select" => OF_SELECT.contains(&setting),
        "learn" => OF_LEARN.contains(&setting),
        _ => false,
    }
}

/// A command with the settings of models as its options.
pub(crate) fn command(command: Command) -> Command {
    let name = command.get_name().to_string();
    let own = all().into_iter();
    let own = own.filter(|(spec, _)| of_command(&name, spec.name));
    command.args(own.map(|(spec, choices)| arg(&spec, choices)))
}

fn arg(spec: &SettingSpec, choices: Vec<(&'static str, &'static str)>) -> Arg {
    let help = spec.about.split("\n\n").next().unwrap_or_default();
    let arg = Arg::new(spec.name)
        .long(spec.name.replace('_', "-"))
        .help(help)
        .help_heading(spec.group);
    let arg = match spec.about.contains("\n\n") {
        true => arg.long_help(spec.about),
        false => arg,
    };
    if spec.flag {
        return arg.action(ArgAction::SetTrue);
    }
    let arg = arg.value_name(spec.value);
    let arg = match spec.list {
        true => arg.action(ArgAction::Append),
        false => arg,
    };
    // An item may have a comma of its own.
    let arg = match spec.list && !spec.value.contains('=') {
        true => arg.value_delimiter(','),
        false => arg,
    };
    if !choices.is_empty() {
        let words = choices.into_iter();
        let words = words.map(|(word, about)| match about {
            "" => PossibleValue::new(word),
            about => PossibleValue::new(word).help(about),
        });
        return arg.value_parser(PossibleValuesParser::new(words).map(SettingValue::Text));
    }
    let arg = match spec.value.contains(',') {
        true => arg.allow_hyphen_values(true),
        false => arg.allow_negative_numbers(true),
    };
    let spec = *spec;
    arg.value_parser(move |words: &str| {
        // Two numbers, where the second may not be left out.
        let both = spec.value.contains(',') && !spec.value.contains('[') && !spec.list;
        match both && !words.contains(',') {
            true => Err(format!("{} is needed", spec.value)),
            false => (spec.words)(words),
        }
    })
}

/// The settings that stand on a command line.
pub(crate) fn given(command: &str, matches: &ArgMatches) -> Options {
    let mut options = Options::default();
    for (spec, _) in all() {
        let typed = of_command(command, spec.name)
            && matches.value_source(spec.name) == Some(ValueSource::CommandLine);
        if !typed {
            continue;
        }
        if spec.flag {
            options.set(spec.name, SettingValue::Flag(true));
            continue;
        }
        let values = matches.get_many::<SettingValue>(spec.name);
        for value in values.into_iter().flatten() {
            options.add(&spec, value.clone());
        }
    }
    options
}
