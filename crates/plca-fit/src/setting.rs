//! Settings by name, as command lines, files and other languages give them.

use std::collections::BTreeMap;

use super::Anneal;

pub use super::settings::{BlockSettings, Freeze};

/// A value that has no type yet.
///
/// ```
/// use plca_fit::setting::{Setting, SettingValue};
/// let words = <Vec<usize> as Setting>::words("3x8")?;
/// assert_eq!(words, SettingValue::List(vec![SettingValue::Number(3.0), SettingValue::Number(8.0)]));
/// assert_eq!(Vec::<usize>::of(&words)?, [3, 8]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// On or off.
    Flag(bool),
    /// A number, whole or not.
    Number(f64),
    /// A word.
    Text(String),
    /// Several values.
    List(Vec<SettingValue>),
}

impl SettingValue {
    /// A flag that is called `no_…` says the opposite.
    #[must_use]
    pub fn under(&self, name: &str) -> Self {
        match self {
            Self::Flag(flag) if name.starts_with("no_") => Self::Flag(!flag),
            other => other.clone(),
        }
    }

    /// The items of a list, or the value alone.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            one => std::slice::from_ref(one),
        }
    }

    /// What it is, for messages.
    fn kind(&self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Number(x) => x.to_string(),
            Self::Text(text) => format!("`{text}`"),
            Self::List(_) => "a list".into(),
        }
    }
}

/// A type of settings.
pub trait Setting: Sized {
    /// The words that it may be, each with what it means; none where any other words do.
    const CHOICES: &'static [(&'static str, &'static str)] = &[];
    /// Whether it stands on a command line without a value.
    const FLAG: bool = false;
    /// Whether its numbers are whole, which files write without a point.
    const WHOLE: bool = false;
    /// Whether it is a list whose items a command line separates by commas, or names one after the other.
    const LIST: bool = false;

    /// The setting.
    ///
    /// # Errors
    ///
    /// What is wrong with the value, and what was expected.
    fn of(value: &SettingValue) -> Result<Self, String>;

    /// The value that the words of a command line stand for; of a [list](Self::LIST), those of an item. Default: a text that must be one of the
    /// [choices](Self::CHOICES), if there are any.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of).
    fn words(words: &str) -> Result<SettingValue, String> {
        let value = SettingValue::Text(words.into());
        Self::of(&value).map(|_| value)
    }
}

/// What is known of a setting by name.
#[derive(Clone, Copy, Debug)]
pub struct SettingSpec {
    /// Its name in files.
    pub name: &'static str,
    /// What stands behind it on a command line, such as `B`; nothing for a flag.
    pub value: &'static str,
    /// The group of the help that it stands in.
    pub group: &'static str,
    /// What it does: a line, and behind an empty line what else there is to say.
    pub about: &'static str,
    /// [`Setting::CHOICES`].
    pub choices: &'static [(&'static str, &'static str)],
    /// [`Setting::FLAG`].
    pub flag: bool,
    /// [`Setting::WHOLE`].
    pub whole: bool,
    /// [`Setting::LIST`].
    pub list: bool,
    /// [`Setting::words`].
    pub words: fn(&str) -> Result<SettingValue, String>,
}

impl SettingSpec {
    /// The setting of this type; `of` says which field of a model it is.
    pub fn new<M, S: Setting>(
        of: fn(&M) -> &S,
        [name, value, group, about]: [&'static str; 4],
    ) -> Self {
        let _ = of;
        Self {
            name,
            value,
            group,
            about,
            choices: S::CHOICES,
            flag: S::FLAG,
            whole: S::WHOLE,
            list: S::LIST,
            words: S::words,
        }
    }

    /// What it is called everywhere but in files, with `_` between words.
    pub fn option(&self) -> &'static str {
        option_of(self.name).unwrap_or(self.name)
    }
}

/// What a setting is called where files have an older name for it.
pub fn option_of(name: &str) -> Option<&'static str> {
    match name {
        "domain" => Some("support"),
        "m" => Some("replicates"),
        _ => None,
    }
}

/// Settings of a model that can be set by their names.
pub trait Named: Sized {
    /// What they are.
    fn specs() -> Vec<SettingSpec>;

    /// Sets one of them; false for a name that none has.
    ///
    /// # Errors
    ///
    /// As [`Setting::of`].
    fn set(&mut self, name: &str, value: &SettingValue) -> Result<bool, String>;
}

/// The settings of a model by name: every field with name in files, value on a command line, group and text of the help.
#[doc(hidden)]
#[macro_export]
macro_rules! by_name {
    ($model:ident { $($field:ident: $spec:expr;)* }) => {
        impl $crate::setting::Named for $model {
            fn specs() -> Vec<$crate::setting::SettingSpec> {
                vec![$($crate::setting::SettingSpec::new(|model: &Self| &model.$field, $spec)),*]
            }

            #[allow(unused_variables, reason = "some models have none")]
            fn set(&mut self, name: &str, value: &$crate::setting::SettingValue) -> Result<bool, String> {
                $(if name == $spec[0] {
                    self.$field = $crate::setting::Setting::of(&value.under(name))?;
                    return Ok(true);
                })*
                Ok(false)
            }
        }
    };
}

/// A setting that is one of some words.
pub trait Choice: Setting {}

/// One for all dimensions, or one for each.
impl<S: Choice> Setting for Vec<S> {
    const CHOICES: &'static [(&'static str, &'static str)] = S::CHOICES;
    const LIST: bool = true;

    fn of(value: &SettingValue) -> Result<Self, String> {
        value.items().iter().map(S::of).collect()
    }

    fn words(words: &str) -> Result<SettingValue, String> {
        S::words(words)
    }
}

/// The words for the cases of an enum, each with what it means.
#[doc(hidden)]
#[macro_export]
macro_rules! choices {
    ($type:ty { $($word:literal = $case:path: $about:literal;)* }) => {
        impl $crate::setting::Choice for $type {}

        impl $crate::setting::Setting for $type {
            const CHOICES: &'static [(&'static str, &'static str)] = &[$(($word, $about)),*];

            fn of(value: &$crate::setting::SettingValue) -> Result<Self, String> {
                match value {
                    $($crate::setting::SettingValue::Text(text) if text == $word => Ok($case),)*
                    other => Err($crate::setting::no_choice(other, Self::CHOICES)),
                }
            }
        }
    };
}

/// Why a value is none of the choices.
#[doc(hidden)]
pub fn no_choice(value: &SettingValue, choices: &[(&str, &str)]) -> String {
    let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    format!("{} is not one of {}", value.kind(), words.join(", "))
}

impl Setting for bool {
    const FLAG: bool = true;

    fn of(value: &SettingValue) -> Result<Self, String> {
        match value {
            SettingValue::Flag(flag) => Ok(*flag),
            other => Err(format!("{} is neither true nor false", other.kind())),
        }
    }

    fn words(words: &str) -> Result<SettingValue, String> {
        let flag = words.parse().map(SettingValue::Flag);
        flag.map_err(|_| format!("`{words}` is neither true nor false"))
    }
}

impl Setting for f64 {
    fn of(value: &SettingValue) -> Result<Self, String> {
        match value {
            SettingValue::Number(x) => Ok(*x),
            other => Err(format!("{} is not a number", other.kind())),
        }
    }

    fn words(words: &str) -> Result<SettingValue, String> {
        let number = words.parse().map(SettingValue::Number);
        number.map_err(|_| format!("`{words}` is not a number"))
    }
}

impl Setting for String {
    fn of(value: &SettingValue) -> Result<Self, String> {
        match value {
            SettingValue::Text(text) => Ok(text.clone()),
            other => Err(format!("{} is no text", other.kind())),
        }
    }
}

/// Whole numbers from here on have no neighbours in a double.
const WHOLE: f64 = 9e15;

impl Setting for usize {
    const WHOLE: bool = true;

    fn of(value: &SettingValue) -> Result<Self, String> {
        match value {
            SettingValue::Number(x) if *x >= 0.0 && x.fract() == 0.0 && *x < WHOLE => {
                Ok(*x as usize)
            }
            other => Err(format!("{} is not a whole number >= 0", other.kind())),
        }
    }

    fn words(words: &str) -> Result<SettingValue, String> {
        let number = words.parse::<u64>().ok();
        let number = number.filter(|&n| (n as f64) < WHOLE);
        let number = number.map(|n| SettingValue::Number(n as f64));
        number.ok_or_else(|| "a whole number >= 0 is needed".to_string())
    }
}

/// Extents, such as `3x8`.
impl Setting for Vec<usize> {
    const WHOLE: bool = true;

    fn of(value: &SettingValue) -> Result<Self, String> {
        value.items().iter().map(usize::of).collect()
    }

    fn words(words: &str) -> Result<SettingValue, String> {
        let size = |n: &str| {
            let size = usize::words(n);
            size.map_err(|_| format!("`{n}` is not a whole number; sizes are written as in 3x8"))
        };
        let sizes = words.split('x').map(size).collect::<Result<_, _>>();
        sizes.map(SettingValue::List)
    }
}

impl Setting for Vec<f64> {
    const LIST: bool = true;

    fn of(value: &SettingValue) -> Result<Self, String> {
        value.items().iter().map(f64::of).collect()
    }

    fn words(words: &str) -> Result<SettingValue, String> {
        f64::words(words)
    }
}

/// Weights by block: `BLOCK=MU`, each block once.
impl Setting for BTreeMap<String, f64> {
    const LIST: bool = true;

    fn of(value: &SettingValue) -> Result<Self, String> {
        let mut all = Self::new();
        for item in value.items() {
            let SettingValue::Text(text) = item else {
                return Err(format!("{} is no text: BLOCK=MU is needed", item.kind()));
            };
            let (block, x) = text
                .split_once('=')
                .ok_or_else(|| format!("`{text}`: BLOCK=MU is needed"))?;
            let x: f64 = x
                .parse()
                .map_err(|_| format!("`{text}`: `{x}` is not a number"))?;
            if all.insert(block.to_string(), x).is_some() {
                return Err(format!("`{text}`: `{block}` has one already"));
            }
        }
        Ok(all)
    }

    // Whether the model has it at all is the first question.
    fn words(words: &str) -> Result<SettingValue, String> {
        Ok(SettingValue::Text(words.into()))
    }
}

/// A first power and the iterations until it is 1: `ALPHA0,T`; alone, a power that stays.
impl Setting for Anneal {
    fn of(value: &SettingValue) -> Result<Self, String> {
        match value.items() {
            [alpha0] => Ok(Self::constant(f64::of(alpha0)?)),
            [alpha0, over] => Ok(Self {
                alpha0: f64::of(alpha0)?,
                over: f64::of(over)?,
            }),
            items => Err(format!(
                "{} numbers, expected a power, or a power and the iterations until it is 1",
                items.len()
            )),
        }
    }

    fn words(words: &str) -> Result<SettingValue, String> {
        let numbers = words.split(',').map(f64::words);
        let anneal = Self::of(&SettingValue::List(numbers.collect::<Result<_, _>>()?))?;
        let both = [anneal.alpha0, anneal.over].map(SettingValue::Number);
        Ok(SettingValue::List(both.to_vec()))
    }
}

impl<S: Setting> Setting for Option<S> {
    const CHOICES: &'static [(&'static str, &'static str)] = S::CHOICES;
    const FLAG: bool = S::FLAG;
    const WHOLE: bool = S::WHOLE;
    const LIST: bool = S::LIST;

    fn of(value: &SettingValue) -> Result<Self, String> {
        S::of(value).map(Some)
    }

    fn words(words: &str) -> Result<SettingValue, String> {
        S::words(words)
    }
}
