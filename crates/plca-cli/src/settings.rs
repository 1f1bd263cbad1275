//! Settings of models on the command line: options of `fit`, `select` and `learn` that the models themselves say.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use plca_fit::setting::{Setting, SettingSpec, SettingValue};
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

/// A setting as the options of all models have it.
struct Shared {
    spec: SettingSpec,
    /// The words that any model knows.
    words: Vec<(&'static str, &'static str)>,
    /// One line, with the default of each model that has its own.
    help: String,
}

/// The settings of all models, each once.
fn all() -> Vec<Shared> {
    let mut all: Vec<Shared> = Vec::new();
    for model in models() {
        for spec in model.specs() {
            let of_model = spec.choices;
            match all.iter_mut().find(|known| known.spec.name == spec.name) {
                Some(known) => {
                    known.other_default(&model.called(), spec.about);
                    let words = of_model.iter();
                    let new = |(word, _): &&(_, _)| known.words.iter().all(|(w, _)| w != word);
                    let new: Vec<_> = words.filter(new).copied().collect();
                    known.words.extend(new);
                }
                None => {
                    let is_temper = spec.name == TEMPER.name;
                    let spec = if is_temper { TEMPER } else { spec };
                    let help = spec.about.split("\n\n").next().unwrap_or_default();
                    all.push(Shared {
                        spec,
                        words: of_model.to_vec(),
                        help: help.to_string(),
                    });
                }
            }
        }
    }
    all
}

const DEFAULT: &str = " [default: ";

impl Shared {
    /// Adds the default of one more model, where it differs from that of the first. What stands before it is of the first model up to a colon.
    fn other_default(&mut self, model: &str, about: &str) {
        let default = |about: &str| {
            let (_, default) = about.split_once(DEFAULT)?;
            Some(default.split(']').next()?.to_string())
        };
        let Some(other) = default(about) else {
            return;
        };
        match self.help.split_once(DEFAULT) {
            Some((what, first)) if default(self.spec.about).as_ref() != Some(&other) => {
                let what = what.split(':').next().unwrap_or(what);
                let first = first.trim_end_matches(']');
                self.help = format!("{what}{DEFAULT}{first}; {model}: {other}]");
            }
            _ => {}
        }
    }
}

/// Settings of `select`, with their help where it is not that of `fit`; of kernels it has several.
const OF_SELECT: &[(&str, &str)] = &[
    ("m", ""),
    ("real_data", ""),
    ("given", ""),
    ("domain", ""),
    ("likelihood", ""),
    ("anneal", ""),
    ("impulse_power", ""),
    ("update", "cv: form of the update, as for fit"),
    (
        "missing_method",
        "cv: how EM treats missing cells, as for fit",
    ),
];
const OF_LEARN: &[&str] = &["m", "real_data"];

fn of_command(name: &str, setting: &str) -> bool {
    match name {
        "fit" => true,
        "select" => OF_SELECT.iter().any(|(own, _)| *own == setting),
        "learn" => OF_LEARN.contains(&setting),
        _ => false,
    }
}

/// A command with the settings of models as its options, which stand first in their groups.
pub(crate) fn command(command: Command) -> Command {
    let name = command.get_name().to_string();
    let mut others = OWN..;
    let command = command.mut_args(|arg| arg.display_order(others.next().unwrap_or(OWN)));
    let own = all().into_iter();
    let own = own.filter(|shared| of_command(&name, shared.spec.name));
    command.args(own.enumerate().map(|(at, shared)| {
        let of_select = OF_SELECT.iter().find(|(own, _)| *own == shared.spec.name);
        let arg = arg(&shared).display_order(1 + at);
        match (&*name, of_select) {
            ("select", Some((_, help))) if !help.is_empty() => arg.help(*help).long_help(None),
            _ => arg,
        }
    }))
}

/// There are fewer settings of models.
const OWN: usize = 100;

fn arg(Shared { spec, words, help }: &Shared) -> Arg {
    let arg = Arg::new(spec.name)
        .long(spec.option().replace('_', "-"))
        .alias(spec.name.replace('_', "-"))
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
    let arg = match spec.name {
        "rotations" => arg.conflicts_with("angles"),
        // It is called --samples, as that of other models.
        "given" => arg.conflicts_with("samples").hide(true),
        _ => arg,
    };
    if !words.is_empty() {
        let words = words.iter();
        let words = words.map(|&(word, about)| match about {
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
    for Shared { spec, .. } in all() {
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
