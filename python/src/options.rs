//! Settings by name, as Python gives them, and what they ask of a model.

use std::collections::BTreeMap;

use plca::fit::{
    blocks::Frozen,
    setting::{Setting as SettingOf, SettingValue},
};
use plca::io::Array;
use plca::priors::{Penalty, PriorSpec};
use plca_run::{AnyModel, Law, ModelEntry, PriorBlock, Request, RunError, Takes};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use serde_json::Value;

use crate::data::array_of;
use crate::error::{Refused, bad, wrong};

/// A value of a setting.
#[derive(Debug)]
pub(crate) enum Setting {
    Value(SettingValue),
    Named(Named),
    Array(Array<f64>),
}

/// Settings of blocks.
pub(crate) type Named = BTreeMap<String, Setting>;

impl Setting {
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(named) = value.cast::<PyDict>() {
            return Ok(Self::Named(Options::of(named)?.0));
        }
        if let Some(value) = value_of(value)? {
            return Ok(Self::Value(value));
        }
        match array_of(value) {
            Ok(array) => Ok(Self::Array(array)),
            Err(_) => bad(format!("{value} is not a value of a setting")),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Value(SettingValue::Flag(_)) => "a flag",
            Self::Value(SettingValue::Number(_)) => "a number",
            Self::Value(SettingValue::Text(_)) => "a text",
            Self::Value(SettingValue::List(_)) => "a list",
            Self::Named(_) => "a dict",
            Self::Array(_) => "an array",
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Value(SettingValue::Number(x)) => Some(*x),
            _ => None,
        }
    }

    /// The numbers of a list.
    pub(crate) fn list<N>(&self) -> Option<Vec<N>>
    where
        Vec<N>: SettingOf,
    {
        match self {
            Self::Value(list @ SettingValue::List(_)) => Vec::of(list).ok(),
            _ => None,
        }
    }
}

/// A value without names and arrays.
fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Option<SettingValue>> {
    // A flag is a whole number to Python: it goes first.
    Ok(if value.is_instance_of::<PyBool>() {
        Some(SettingValue::Flag(value.extract()?))
    } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        Some(SettingValue::Number(value.extract()?))
    } else if value.is_instance_of::<PyString>() {
        Some(SettingValue::Text(value.extract()?))
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| value_of(&item?));
        let items: Option<_> = items.collect::<PyResult<_>>()?;
        items.map(SettingValue::List)
    } else {
        None
    })
}

/// Settings whose keyword in Python is not their name in files.
const KEYWORDS: [(&str, &str); 2] = [("domain", "support"), ("m", "replicates")];

/// The keyword of a setting.
pub(crate) fn keyword(name: &str) -> &str {
    let renamed = KEYWORDS.iter().find(|(other, _)| *other == name);
    renamed.map_or(name, |(_, keyword)| keyword)
}

/// Settings by keyword.
#[derive(Debug)]
pub(crate) struct Options(Named);

impl Options {
    /// `None` is as if the setting were not there.
    pub(crate) fn of(dict: &Bound<'_, PyDict>) -> PyResult<Self> {
        let given = dict.iter().filter(|(_, value)| !value.is_none());
        let pairs = given.map(|(name, value)| Ok((name.extract()?, Setting::of(&value)?)));
        Ok(Self(pairs.collect::<PyResult<_>>()?))
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, Refused> {
        let Some(setting) = self.0.get(name) else {
            return Ok(None);
        };
        match setting.number() {
            Some(x) => Ok(Some(x)),
            None => wrong(format!("`{name}` is {}, expected a number", setting.kind())),
        }
    }

    pub(crate) fn count(&self, name: &str) -> Result<Option<usize>, Refused> {
        match self.number(name)? {
            Some(x) if !(x >= 0.0 && x.fract() == 0.0) => {
                wrong(format!("`{name}` is {x}, expected a whole number >= 0"))
            }
            x => Ok(x.map(|x| x as usize)),
        }
    }

    /// Refuses settings that are not among these.
    pub(crate) fn only(&self, known: &[&str], whose: &str) -> Result<(), Refused> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => no_setting(whose, name),
            None => Ok(()),
        }
    }

    /// The model that they ask for, with this number of components and for data of this shape.
    pub(crate) fn model(
        &self,
        entry: &ModelEntry,
        components: usize,
        shape: &[usize],
    ) -> Result<Box<dyn AnyModel>, Refused> {
        Ok(entry.build(&self.request(entry, components, shape)?, shape)?)
    }

    /// The same where they are settings of the model alone, as its file says them.
    pub(crate) fn in_file(&self, entry: &ModelEntry) -> Result<Value, Refused> {
        let (specs, mut options) = (entry.specs(), plca_run::Options::default());
        for (name, setting) in &self.0 {
            match specs.iter().find(|spec| keyword(spec.name) == name) {
                Some(spec) => options.set(spec.name, value(name, setting)?),
                None => return no_setting(&format!("the model {}", entry.name), name),
            }
        }
        Ok(Value::Object(options.to_json(&specs)))
    }

    /// What they ask of a model.
    fn request(
        &self,
        entry: &ModelEntry,
        components: usize,
        shape: &[usize],
    ) -> Result<Request, Refused> {
        if (entry.matrix || entry.takes == Takes::SignedMatrix) && shape.len() != 2 {
            let model = entry.name;
            return wrong(format!("X of shape {shape:?}: {model} needs a matrix"));
        }
        let mut request = Request {
            components,
            ..Request::default()
        };
        let (specs, mut priors) = (entry.specs(), None);
        for (name, setting) in &self.0 {
            match name.as_str() {
                "freeze" => request.frozen = frozen(entry, named(name, setting)?)?,
                "penalty" => penalise(entry, &mut request, named(name, setting)?)?,
                "prior" if !entry.laws().is_empty() => priors = Some(named(name, setting)?),
                _ => match specs.iter().find(|spec| keyword(spec.name) == name) {
                    Some(spec) => request.options.set(spec.name, value(name, setting)?),
                    None => return no_setting(&format!("the model {}", entry.name), name),
                },
            }
        }
        if entry.kernels.is_some() {
            let Some(kernel) = request.options.get::<Vec<usize>>("kernel")? else {
                return wrong("`kernel` is None, expected an extent for every dimension of X");
            };
            if kernel.len() != shape.len() {
                let order = shape.len();
                return wrong(format!(
                    "`kernel` is {kernel:?}, expected {order} extents for X of shape {shape:?}"
                ));
            }
        }
        // What they may be depends on the other settings.
        if let Some(priors) = priors.filter(|priors| !priors.is_empty()) {
            let blocks = entry.prior_blocks(components, &request.options, shape)?;
            for (name, setting) in priors {
                request.priors.push(prior(&blocks, name, setting)?);
            }
        }
        Ok(request)
    }
}

fn no_setting<O>(whose: &str, name: &str) -> Result<O, Refused> {
    wrong(format!("{whose} has no setting `{name}`"))
}

/// Settings of blocks under a keyword.
fn named<'a>(name: &str, setting: &'a Setting) -> Result<&'a Named, Refused> {
    match setting {
        Setting::Named(named) => Ok(named),
        other => wrong(format!("`{name}` is {}, expected a dict", other.kind())),
    }
}

/// The value of a setting that a keyword gives.
fn value(name: &str, setting: &Setting) -> Result<SettingValue, Refused> {
    let Setting::Value(value) = setting else {
        let kind = setting.kind();
        return wrong(format!("`{name}` is {kind}, which is none of its values"));
    };
    if name != "given" {
        return Ok(value.clone());
    }
    // Files have the number of the dimension.
    match value {
        SettingValue::Text(mode) if mode == "rows" => Ok(SettingValue::Number(0.0)),
        SettingValue::Text(mode) if mode == "columns" => Ok(SettingValue::Number(1.0)),
        SettingValue::Text(mode) => wrong(format!(
            "`given` is '{mode}', expected one of rows, columns"
        )),
        _ => wrong(format!("`given` is {}, expected a text", setting.kind())),
    }
}

/// The model of a name.
pub(crate) fn entry(name: &str) -> Result<&'static ModelEntry, Refused> {
    plca_run::model(name).ok_or_else(|| {
        let known = plca_run::models().iter().map(|entry| entry.name);
        let known = known.collect::<Vec<_>>().join(", ");
        Refused::Value(format!(
            "no model is called '{name}', expected one of {known}"
        ))
    })
}

/// Penalties that are not priors in Python: the weights of quadratic sparsity of a model that has it, or a linear and a quadratic weight.
fn penalise(entry: &ModelEntry, request: &mut Request, penalties: &Named) -> Result<(), Refused> {
    let mut sparsity = Vec::new();
    for (name, weights) in penalties {
        let refused = |what: String| Refused::Value(format!("`penalty` of '{name}': {what}"));
        match (weights.number(), weights.list().as_deref()) {
            // All digits that there are.
            (Some(mu), _) if entry.has("sparsity") => {
                sparsity.push(SettingValue::Text(format!("{name}={mu}")));
            }
            (_, Some(&[linear, quadratic])) if entry.penalties => {
                let penalty = Penalty::new(linear, quadratic);
                let penalty = penalty.map_err(|e| refused(e.to_string()))?;
                request.priors.push((name.clone(), penalty.into()));
            }
            _ if entry.has("sparsity") => return Err(refused("expected a number".into())),
            _ if entry.penalties => return Err(refused("expected two numbers".into())),
            _ => return no_setting(&format!("the model {}", entry.name), "penalty"),
        }
    }
    if !sparsity.is_empty() {
        request
            .options
            .set("sparsity", SettingValue::List(sparsity));
    }
    Ok(())
}

/// What is frozen, by block.
fn frozen(entry: &ModelEntry, blocks: &Named) -> Result<Vec<(String, Frozen)>, Refused> {
    let frozen = |(name, setting): (&String, &Setting)| {
        let what = match (setting.list(), setting) {
            (Some(components), _) => Frozen::Components(components),
            (_, Setting::Value(SettingValue::Flag(true))) => Frozen::Whole,
            (_, Setting::Array(flags)) => {
                let flags = entry.block(name, flags).map_err(Refused::Value)?;
                Frozen::Entries(flags.map(|flag| flag != 0.0))
            }
            (_, other) => {
                return wrong(format!(
                    "`freeze` of `{name}` is {}, expected True, a list of components or flags of entries",
                    other.kind()
                ));
            }
        };
        Ok((name.clone(), what))
    };
    blocks.iter().map(frozen).collect()
}

/// The prior of a block: a text, or an array of Dirichlet shapes with as many numbers as the block has entries.
fn prior(
    blocks: &[PriorBlock],
    name: &str,
    setting: &Setting,
) -> Result<(String, PriorSpec), Refused> {
    let Some(block) = blocks.iter().find(|block| block.name == name) else {
        let known: Vec<&str> = blocks.iter().map(|block| block.name.as_str()).collect();
        let known = known.join(", ");
        return wrong(format!(
            "`prior`: no block '{name}' takes one, expected {known}"
        ));
    };
    let refused = |what: String| Refused::Value(format!("`prior` of '{name}': {what}"));
    let prior = match (setting, block.law) {
        (Setting::Value(SettingValue::Text(text)), _) => {
            block.read(text).map_err(|e| refused(e.to_string()))?
        }
        (Setting::Array(array), Law::Simplex | Law::Dirichlet) => {
            let (given, shape) = (&array.shape, block.shape());
            if array.values.len() != shape.iter().product::<usize>() {
                return Err(refused(format!(
                    "an array of shape {given:?}, expected {shape:?}"
                )));
            }
            let array = Array::new(shape, array.values.clone());
            let prior = PriorSpec::Dirichlet(block.each(&array).map_err(refused)?);
            if block.law == Law::Simplex {
                let checked = prior.simplex::<f64>(block.size);
                checked.map_err(|e| refused(e.to_string()))?;
            }
            prior
        }
        (_, Law::Simplex | Law::Dirichlet) => {
            return Err(refused("expected a text or an array".into()));
        }
        _ => return Err(refused("expected a text".into())),
    };
    Ok((name.to_string(), prior))
}

impl From<RunError> for Refused {
    fn from(e: RunError) -> Self {
        match e {
            RunError::Fit(e) | RunError::Shape(e) => e.into(),
            RunError::Fold { source, .. } => source.into(),
            RunError::Parts(e) => e.into(),
            RunError::Room(e) => e.into(),
            RunError::Io(e) => e.into(),
            RunError::Ranks(what) => Self::Rank(what),
            RunError::Setting { name, value, what } => {
                let is = if value.is_empty() { "" } else { " is " };
                Self::Value(format!("`{}`{is}{value}: {what}", keyword(&name)))
            }
            e => Self::Value(e.to_string()),
        }
    }
}
