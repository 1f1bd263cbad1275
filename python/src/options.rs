//! Settings of a model, by name, as Python gives them.

use std::collections::BTreeMap;

use plca::io::Array;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::data::array_of;
use crate::error::{Refused, bad, wrong};

/// A value of a setting.
#[derive(Clone, Debug)]
pub(crate) enum Setting {
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Setting>),
    Named(BTreeMap<String, Setting>),
    Array(Array<f64>),
}

impl Setting {
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        // A flag is a whole number to Python: it goes first.
        Ok(if value.is_instance_of::<PyBool>() {
            Self::Bool(value.extract()?)
        } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
            Self::Number(value.extract()?)
        } else if value.is_instance_of::<PyString>() {
            Self::Text(value.extract()?)
        } else if let Ok(named) = value.cast::<PyDict>() {
            Self::Named(Options::of(named)?.0)
        } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            let items = value.try_iter()?;
            Self::List(
                items
                    .map(|item| Self::of(&item?))
                    .collect::<PyResult<_>>()?,
            )
        } else if let Ok(array) = array_of(value) {
            Self::Array(array)
        } else {
            return bad(format!("{value} is not a value of a setting"));
        })
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a flag",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Named(_) => "a dict",
            Self::Array(_) => "an array",
        }
    }
}

/// What is frozen of a block.
pub(crate) enum Kept {
    Whole,
    Components(Vec<usize>),
    /// Where a number is not 0.
    Entries(Array<f64>),
}

/// Settings that are taken out one by one: what is left over at the end nobody knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options(BTreeMap<String, Setting>);

impl Options {
    /// `None` is as if the setting were not there.
    pub(crate) fn of(dict: &Bound<'_, PyDict>) -> PyResult<Self> {
        let given = dict.iter().filter(|(_, value)| !value.is_none());
        let pairs = given.map(|(name, value)| Ok((name.extract()?, Setting::of(&value)?)));
        Ok(Self(pairs.collect::<PyResult<_>>()?))
    }

    fn take<O>(
        &mut self,
        name: &str,
        expected: &str,
        of: impl FnOnce(&Setting) -> Option<O>,
    ) -> Result<Option<O>, Refused> {
        let Some(setting) = self.0.remove(name) else {
            return Ok(None);
        };
        match of(&setting) {
            Some(value) => Ok(Some(value)),
            None => wrong(format!(
                "`{name}` is {}, expected {expected}",
                setting.kind()
            )),
        }
    }

    pub(crate) fn number(&mut self, name: &str) -> Result<Option<f64>, Refused> {
        self.take(name, "a number", |s| match s {
            Setting::Number(x) => Some(*x),
            _ => None,
        })
    }

    pub(crate) fn count(&mut self, name: &str) -> Result<Option<usize>, Refused> {
        self.take(name, "a whole number >= 0", |s| match s {
            Setting::Number(x) if *x >= 0.0 && x.fract() == 0.0 => Some(*x as usize),
            _ => None,
        })
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Refused> {
        let flag = self.take(name, "True or False", |s| match s {
            Setting::Bool(x) => Some(*x),
            _ => None,
        })?;
        Ok(flag.unwrap_or(false))
    }

    /// One of some names, as what it stands for.
    pub(crate) fn choice<O: Copy>(
        &mut self,
        name: &str,
        known: &[(&str, O)],
    ) -> Result<Option<O>, Refused> {
        let text = self.take(name, "a text", |s| match s {
            Setting::Text(x) => Some(x.clone()),
            _ => None,
        })?;
        let Some(text) = text else { return Ok(None) };
        match known.iter().find(|(other, _)| *other == text) {
            Some(&(_, value)) => Ok(Some(value)),
            None => {
                let known: Vec<_> = known.iter().map(|(other, _)| *other).collect();
                wrong(format!(
                    "`{name}` is '{text}', expected one of {}",
                    known.join(", ")
                ))
            }
        }
    }

    pub(crate) fn counts(&mut self, name: &str) -> Result<Option<Vec<usize>>, Refused> {
        self.take(name, "a list of whole numbers", whole)
    }

    pub(crate) fn numbers(&mut self, name: &str) -> Result<Option<Vec<f64>>, Refused> {
        self.take(name, "a list of numbers", |s| match s {
            Setting::List(items) => {
                let number = |item: &Setting| match item {
                    Setting::Number(x) => Some(*x),
                    _ => None,
                };
                items.iter().map(number).collect()
            }
            _ => None,
        })
    }

    /// A list of names, each as what it stands for.
    pub(crate) fn choices<O: Copy>(
        &mut self,
        name: &str,
        known: &[(&str, O)],
    ) -> Result<Vec<O>, Refused> {
        let items = self.take(name, "a list of texts", |s| match s {
            Setting::List(items) => Some(items.clone()),
            _ => None,
        })?;
        let items = items.unwrap_or_default().into_iter();
        let choice = |item| {
            let mut one = Self([(name.to_string(), item)].into());
            let found = one.choice(name, known)?;
            found.ok_or_else(|| Refused::Value(format!("`{name}` has an empty item")))
        };
        items.map(choice).collect()
    }

    /// Settings under a name.
    pub(crate) fn named(&mut self, name: &str) -> Result<BTreeMap<String, Setting>, Refused> {
        let named = self.take(name, "a dict", |s| match s {
            Setting::Named(items) => Some(items.clone()),
            _ => None,
        })?;
        Ok(named.unwrap_or_default())
    }

    /// What is frozen, by block.
    pub(crate) fn frozen(&mut self) -> Result<Vec<(String, Kept)>, Refused> {
        let blocks = self.named("freeze")?.into_iter();
        let frozen = |(name, setting): (String, Setting)| {
            let kept = match (whole(&setting), setting) {
                (Some(components), _) => Kept::Components(components),
                (_, Setting::Bool(true)) => Kept::Whole,
                (_, Setting::Array(flags)) => Kept::Entries(flags),
                (_, other) => {
                    return wrong(format!(
                        "`freeze` of `{name}` is {}, expected True, a list of components or flags of entries",
                        other.kind()
                    ));
                }
            };
            Ok((name, kept))
        };
        blocks.map(frozen).collect()
    }

    /// Refuses settings that nobody took.
    pub(crate) fn finish(self, model: &str) -> Result<(), Refused> {
        match self.0.keys().next() {
            Some(name) => wrong(format!("the model {model} has no setting `{name}`")),
            None => Ok(()),
        }
    }
}

/// A list of whole numbers.
fn whole(setting: &Setting) -> Option<Vec<usize>> {
    let Setting::List(items) = setting else {
        return None;
    };
    let one = |item: &Setting| match item {
        Setting::Number(x) if *x >= 0.0 && x.fract() == 0.0 => Some(*x as usize),
        _ => None,
    };
    items.iter().map(one).collect()
}
