//! Names of models for people: a name, and a switch that chooses one of its models.

use std::sync::LazyLock;

use crate::{ModelEntry, model, models};

/// Models under one name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// One line for the help.
    pub about: &'static str,
    /// What chooses one of its models, such as `method`; nothing where it has one alone.
    pub switch: Option<&'static str>,
    /// The words of the switch and the models that they choose, of which the first is the usual one.
    pub models: Vec<(&'static str, &'static ModelEntry)>,
    /// Whether Dirichlet shapes are 1/K where no prior says otherwise.
    pub shapes_by_rank: bool,
}

/// A name, one line for the help, a switch, and its words with the models in files.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

#[rustfmt::skip]
const SWITCHED: &[Row] = &[
    ("nmf", "Non-negative factorization by divergence (a matrix) or squared error (any order)", "loss", &[("kl", "nmf-kl"), ("l2", "ntf-l2")]),
    ("plca", "Symmetric PLCA of any order", "method", &[("em", "plca"), ("vb", "plca-vb")]),
    ("plsa", "Asymmetric PLSA of a matrix", "method", &[("em", "plsa"), ("vb", "plsa-vb")]),
    (LDA, "Latent Dirichlet allocation: plsa --method vb with Dirichlet shapes 1/K", "method", &[("vb", "plsa-vb")]),
    ("skellam", "Skellam semi-NMF of a matrix of either sign", "method", &[("em", "skellam"), ("vb", "skellam-vb")]),
    ("skellam-cp", "Skellam factorization of a tensor of either sign with one signed mode", "method", &[("em", "skellam-cp"), ("vb", "skellam-cp-vb")]),
    ("siskellam", "Shift-invariant Skellam semi-NMF of data of either sign and any order", "method", &[("em", "siskellam"), ("vb", "siskellam-vb")]),
];

const LDA: &str = "lda";

static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let mut all: Vec<Family> = Vec::new();
    for &(name, about, switch, words) in SWITCHED {
        let models = words.iter();
        let models = models.filter_map(|&(word, name)| Some((word, model(name)?)));
        all.push(Family {
            name,
            about,
            switch: Some(switch),
            models: models.collect(),
            shapes_by_rank: name == LDA,
        });
    }
    for entry in models() {
        if !all.iter().any(|family| family.has(entry)) {
            all.push(Family {
                name: entry.name,
                about: entry.about,
                switch: None,
                models: vec![("", entry)],
                shapes_by_rank: false,
            });
        }
    }
    all
});

/// Every name of models.
pub fn families() -> &'static [Family] {
    &FAMILIES
}

/// The models of a name.
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}

impl Family {
    /// The model without a switch.
    pub fn usual(&self) -> &'static ModelEntry {
        self.models[0].1
    }

    /// The model that a word of its switch chooses.
    pub fn model(&self, word: &str) -> Option<&'static ModelEntry> {
        let mut all = self.models.iter();
        all.find(|(other, _)| *other == word)
            .map(|(_, entry)| *entry)
    }

    /// Whether a model is one of its models.
    pub fn has(&self, entry: &ModelEntry) -> bool {
        self.models.iter().any(|(_, own)| own.name == entry.name)
    }
}

impl ModelEntry {
    /// What chooses it on a command line, such as `nmf --loss l2`.
    pub fn called(&self) -> String {
        let family = FAMILIES.iter().find(|family| family.has(self));
        let words = family.and_then(|family| {
            let at = family
                .models
                .iter()
                .position(|(_, own)| own.name == self.name)?;
            let word = family.models[at].0;
            Some(match family.switch.filter(|_| at > 0) {
                Some(switch) => format!("{} --{switch} {word}", family.name),
                None => family.name.to_string(),
            })
        });
        words.unwrap_or_else(|| self.name.to_string())
    }
}
