//! Settings of a model by their names.

use std::collections::BTreeMap;

use plca_fit::setting::{Setting, SettingSpec, SettingValue};
use serde_json::{Map, Value};

use crate::RunError;

/// Settings by name, as a command line, a file or another language gives them; those that are not there have their defaults.
///
/// ```
/// use plca_run::{Options, model};
/// let specs = model("siplca").ok_or("no such model")?.specs();
/// let options = Options::default().words(&specs, "kernel", "3x8")?;
/// assert_eq!(options.get::<Vec<usize>>("kernel")?, Some(vec![3, 8]));
/// assert!(Options::default().words(&specs, "anneal", "fast").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options(BTreeMap<String, SettingValue>);

impl Options {
    /// Sets the value that these words of a command line say. Where the setting is a list, they are one more item.
    ///
    /// # Errors
    ///
    /// [`RunError::Setting`]; [`RunError::Unknown`] for a name that is not among these.
    pub fn words(
        mut self,
        specs: &[SettingSpec],
        name: &str,
        words: &str,
    ) -> Result<Self, RunError> {
        let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
            let (model, name) = ("this model", name.to_string());
            return Err(RunError::Unknown { model, name });
        };
        let value = (spec.words)(words).map_err(|what| wrong(name, what))?;
        self.add(spec, value);
        Ok(self)
    }

    /// Sets a value. Where the setting is a list, the value is appended to it.
    pub fn add(&mut self, spec: &SettingSpec, value: SettingValue) {
        match self.0.get_mut(spec.name) {
            Some(SettingValue::List(items)) if spec.list => items.push(value),
            _ if spec.list => self.set(spec.name, SettingValue::List(vec![value])),
            _ => self.set(spec.name, value),
        }
    }

    /// Sets a value.
    pub fn set(&mut self, name: &str, value: SettingValue) {
        self.0.insert(name.to_string(), value);
    }

    /// Whether there is a setting of this name; a flag that is off is none.
    pub fn has(&self, name: &str) -> bool {
        let off = SettingValue::Flag(false);
        self.0.get(name).is_some_and(|value| *value != off)
    }

    /// A setting as one of this type.
    ///
    /// # Errors
    ///
    /// [`RunError::Setting`].
    pub fn get<S: Setting>(&self, name: &str) -> Result<Option<S>, RunError> {
        let value = self.0.get(name).map(S::of).transpose();
        value.map_err(|what| wrong(name, what))
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SettingValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The settings of these names that a file says; `null` is none.
    pub fn of_json(settings: &Value, specs: &[SettingSpec]) -> Self {
        let named = specs.iter().map(|spec| (spec.name, &settings[spec.name]));
        let values = named.filter_map(|(name, json)| Some((name.to_string(), of_json(json)?)));
        Self(values.filter(|(_, value)| !is_nothing(value)).collect())
    }

    /// As they stand in a file: all that the model has, `null`, `false` or an empty list where they are not given.
    pub fn to_json(&self, specs: &[SettingSpec]) -> Map<String, Value> {
        let value = |spec: &SettingSpec| match (self.0.get(spec.name), spec.flag, spec.list) {
            (Some(value), ..) => to_json(value, spec.whole),
            (None, true, _) => Value::Bool(false),
            (None, _, true) => Value::Array(Vec::new()),
            (None, ..) => Value::Null,
        };
        let all = specs
            .iter()
            .map(|spec| (spec.name.to_string(), value(spec)));
        all.collect()
    }
}

/// Extents of kernels as a setting.
pub fn kernel_of(extents: &[usize]) -> SettingValue {
    let extents = extents.iter().map(|&n| SettingValue::Number(n as f64));
    SettingValue::List(extents.collect())
}

/// A setting of a name that is refused.
pub(crate) fn wrong(name: &str, what: impl Into<String>) -> RunError {
    wrong_value(name, String::new(), what)
}

/// The same with what it was given.
pub(crate) fn wrong_value(name: &str, value: String, what: impl Into<String>) -> RunError {
    RunError::Setting {
        name: name.to_string(),
        value,
        what: what.into(),
    }
}

fn is_nothing(value: &SettingValue) -> bool {
    match value {
        SettingValue::Flag(flag) => !flag,
        SettingValue::List(items) => items.is_empty(),
        _ => false,
    }
}

fn of_json(json: &Value) -> Option<SettingValue> {
    Some(match json {
        Value::Null | Value::Object(_) => return None,
        Value::Bool(flag) => SettingValue::Flag(*flag),
        Value::Number(x) => SettingValue::Number(x.as_f64()?),
        Value::String(text) => SettingValue::Text(text.clone()),
        Value::Array(items) => {
            // A number without end has no other form.
            let item = |item: &Value| match item {
                Value::Null => Some(SettingValue::Number(f64::INFINITY)),
                item => of_json(item),
            };
            SettingValue::List(items.iter().map(item).collect::<Option<_>>()?)
        }
    })
}

fn to_json(value: &SettingValue, whole: bool) -> Value {
    match value {
        SettingValue::Flag(flag) => Value::Bool(*flag),
        // What is none of these is left as it is, for whoever reads it to refuse.
        SettingValue::Number(x) if whole && *x == (*x as u64) as f64 => Value::from(*x as u64),
        SettingValue::Number(x) => Value::from(*x),
        SettingValue::Text(text) => Value::String(text.clone()),
        SettingValue::List(items) => {
            Value::Array(items.iter().map(|x| to_json(x, whole)).collect())
        }
    }
}
