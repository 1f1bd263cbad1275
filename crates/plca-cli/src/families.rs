//! The model that a command line names: a name, and the switches that choose one of its models.

use clap::{Arg, ArgMatches, Command};
use plca_fit::setting::SettingValue;
use plca_io::ModelFile;
use plca_run::{Family, Law, ModelEntry, families, family};
use serde_json::json;

use crate::args::{Command as Commands, FitArgs};
use crate::failure::Failure;
use crate::given;
use crate::models::Kind;
use crate::settings;

/// The switches of all models, and what they say.
const SWITCHES: &[(&str, &str, &str)] = &[
    (
        "method",
        "HOW",
        "em, or vb: variational Bayes, with other options [default: em]",
    ),
    (
        "loss",
        "LOSS",
        "kl, or l2: squared error, of any order, with other options [default: kl]",
    ),
];

/// A command with the switches as its options.
pub(crate) fn command(command: Command) -> Command {
    command.args(SWITCHES.iter().map(|(name, value, help)| {
        Arg::new(*name)
            .long(*name)
            .value_name(*value)
            .help(*help)
            .requires("model")
            .help_heading("Model")
    }))
}

/// Writes into a command which model it is for, and the settings of that; whether it has Dirichlet shapes 1/K where no prior says otherwise.
pub(crate) fn choose(
    command: &mut Commands,
    name: &str,
    matches: &ArgMatches,
) -> Result<bool, Failure> {
    let (hidden, options) = match command {
        Commands::Fit(a) => (&mut a.hidden, Some(&mut a.options)),
        Commands::Select(a) => (&mut a.hidden, Some(&mut a.options)),
        Commands::Learn(a) => (&mut a.hidden, Some(&mut a.options)),
        Commands::Consensus(a) => (&mut a.hidden, None),
        _ => return Ok(false),
    };
    let Some(chosen) = Chosen::of(matches)? else {
        return Ok(false);
    };
    let model = chosen.model;
    let samples = hidden.place_samples(model)?;
    if let Some(options) = options {
        *options = settings::given(name, matches);
        if let Some(d) = samples {
            options.set("given", SettingValue::Number(d as f64));
        }
    }
    let by_rank = chosen.family.is_some_and(|family| family.shapes_by_rank);
    match command {
        Commands::Fit(a) => {
            (a.model, a.called) = (model, chosen.called);
            given::split(a)?;
        }
        Commands::Select(a) => {
            (a.model, a.called, a.shapes_by_rank) = (model, chosen.called, by_rank);
        }
        Commands::Learn(a) => a.model = model,
        Commands::Consensus(a) => {
            (a.model, a.called) = (Some(model), chosen.called);
            a.given = a.given.or(samples.map(|d| d as u8));
        }
        _ => {}
    }
    Ok(by_rank)
}

/// What a command line calls a model, and which it is.
pub(crate) struct Chosen {
    pub(crate) model: Kind,
    /// As it was typed.
    pub(crate) called: String,
    family: Option<&'static Family>,
}

impl Chosen {
    /// The model of a word.
    fn named(word: &str) -> Option<Self> {
        let family = family(word);
        let usual = family.map(Family::usual);
        Some(Self {
            model: usual.or_else(|| plca_run::model(word))?,
            called: word.to_string(),
            family,
        })
    }

    /// The model that a line names, if it does.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Option<Self>, Failure> {
        let word = matches.get_raw("model").and_then(|mut words| words.next());
        let named = word.and_then(|word| Self::named(word.to_str()?));
        let Some(mut chosen) = named else {
            return Ok(None);
        };
        for (switch, ..) in SWITCHES {
            if let Some(value) = matches.get_one::<String>(switch) {
                chosen.switch(switch, value)?;
            }
        }
        Ok(Some(chosen))
    }

    /// The model whose help these words ask for.
    pub(crate) fn asked(words: &[&str]) -> Option<Self> {
        let mut chosen = words.iter().find_map(|word| Self::named(word))?;
        for (at, word) in words.iter().enumerate() {
            let name = word.trim_start_matches('-');
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (name, words.get(at + 1).copied()),
            };
            if SWITCHES.iter().any(|(switch, ..)| *switch == name) {
                chosen.switch(name, value?).ok()?;
            }
        }
        Some(chosen)
    }

    fn switch(&mut self, switch: &str, value: &str) -> Result<(), Failure> {
        let has = |family: &&Family| family.switch == Some(switch);
        let called = &self.called;
        let Some(family) = self.family.filter(has) else {
            let others = families().iter().filter(has).map(|family| family.name);
            let others = others.collect::<Vec<_>>().join(", ");
            return Err(Failure::usage(format!(
                "{called} has no option --{switch}; expected a model that has it: {others}"
            )));
        };
        self.model = family.model(value).ok_or_else(|| {
            let words = family.models.iter().map(|(word, _)| *word);
            let words = words.collect::<Vec<_>>().join(" or ");
            Failure::usage(format!("--{switch} {value}: {called} has {words}"))
        })?;
        self.called = format!("{called} --{switch} {value}");
        Ok(())
    }

    /// Whether the name has this switch.
    pub(crate) fn has_switch(&self, switch: &str) -> bool {
        let has = |family: &Family| family.switch == Some(switch) && family.models.len() > 1;
        self.family.is_some_and(has)
    }

    /// One line for the help.
    pub(crate) fn about(&self) -> &'static str {
        match self.family {
            Some(family) if family.models.len() == 1 => family.about,
            _ => self.model.about,
        }
    }
}

/// Dirichlet priors of shape 1/K of the blocks that have none, as `--prior` says them.
pub(crate) fn priors_by_rank<'a>(
    model: &'a ModelEntry,
    rank: usize,
    given: &'a [String],
) -> impl Iterator<Item = String> + 'a {
    let blocks = model.laws().iter();
    let blocks = blocks.filter(|(_, law)| *law == Law::Dirichlet);
    let is_of = |block: &str, prior: &String| {
        let name = prior.split(['=', '.']).next().unwrap_or_default();
        name.strip_suffix("_shape").unwrap_or(name) == block
    };
    let free = blocks.filter(move |(block, _)| !given.iter().any(|prior| is_of(block, prior)));
    free.map(move |(block, _)| format!("{block}=dirichlet:{}", 1.0 / rank as f64))
}

/// Writes the priors of shape 1/K into a command line of `fit`, and into what its model file says that it asked for.
pub(crate) fn complete(args: &mut FitArgs) -> Result<(), Failure> {
    let implied = match (args.rank, &args.init) {
        (None, Some(_)) => given::blocks(args, 2)?.1,
        (rank, _) => rank,
    };
    // Without one the line is refused.
    let Some(rank) = implied.filter(|&rank| rank > 0) else {
        return Ok(());
    };
    let mut taken = args.prior.clone();
    if let Some(path) = &args.priors {
        let ModelFile { arrays, .. } = crate::saved::arrays(path)?;
        taken.extend(arrays.into_keys());
    }
    let more: Vec<String> = priors_by_rank(args.model, rank, &taken).collect();
    args.prior.extend(more);
    if args.request["options"].is_object() {
        args.request["options"]["prior"] = json!(args.prior);
    }
    Ok(())
}
