//! Fitted states as model files.

use std::collections::BTreeMap;
use std::path::Path;

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters, State,
    blocks::{FileLayout, SCALE},
};
use plca_tensor::Real;
use serde_json::{Value, json};

use crate::{Array, IoError, ModelFile, read_model, write_model};

/// Longer facts are arrays.
const MOST_NUMBERS: usize = 64;
/// Before the names of facts that are arrays.
const FACT: &str = "fact.";
/// After the name of a block, in that of a prior for each of its entries.
const PRIOR: &str = ".dirichlet";
/// How far single precision may have moved the sum of a distribution.
const SINGLE: f64 = 1e-3;

impl ModelFile {
    /// The blocks of a state as arrays, and what it remembers as metadata. Scalars are widened to `f64`, which changes none.
    pub fn of<S: State>(state: &S) -> Self {
        Self::of_parameters::<S>(&state.parameters().widened())
    }

    /// The same of the parameters of a state.
    pub fn of_parameters<S: State>(at: &Parameters<f64>) -> Self {
        let derived = S::derived(at);
        let derived = derived.iter().map(|(name, block)| (&**name, block));
        let arrays = at.blocks().chain(derived);
        let arrays = arrays.map(|(name, block)| (name, S::layout(name), block));
        let arrays = arrays.filter(|&(_, layout, _)| layout != FileLayout::Absent);
        let mut file = Self {
            arrays: arrays.map(|block| array_of(at, block)).collect(),
            metadata: json!({
                "model": S::NAME,
                "blocks": at.blocks().map(|(name, _)| name).collect::<Vec<_>>(),
                "iteration": at.iteration(),
                "power": at.power(),
                "facts": {},
                "data": { "total": at.mass() },
            }),
        };
        for (name, block) in at.blocks() {
            if S::layout(name) == FileLayout::Absent {
                file.metadata["facts"][name] = json!(block.as_slice());
            }
        }
        for (name, numbers) in at.facts() {
            let array = || Array::new(vec![numbers.len()], numbers.to_vec());
            match (name, numbers) {
                (SCALE, &[scale]) => file.metadata[SCALE] = json!(scale),
                (SCALE, _) => drop(file.arrays.insert(SCALE.into(), array())),
                (_, few) if few.len() <= MOST_NUMBERS => {
                    file.metadata["facts"][name] = json!(few);
                }
                _ => drop(file.arrays.insert(format!("{FACT}{name}"), array())),
            }
        }
        file
    }

    /// Whether this is the name of an array that is not a block: what a state remembers, or a prior of a block entry by entry, such as
    /// `basis.dirichlet`. Such arrays are in double precision in every file.
    ///
    /// ```
    /// use plca_io::ModelFile;
    /// assert!(ModelFile::is_fact("basis.dirichlet") && !ModelFile::is_fact("basis"));
    /// ```
    pub fn is_fact(name: &str) -> bool {
        name == SCALE || name.starts_with(FACT) || name.ends_with(PRIOR)
    }

    /// The state in this file, which `path` names in errors.
    ///
    /// # Errors
    ///
    /// [`IoError`] for the file of another model, for arrays that are missing or have a wrong shape, and for values that no state has.
    pub fn state<S: State>(mut self, path: &Path) -> Result<S, IoError> {
        let named = self.metadata["model"].as_str().unwrap_or_default();
        if named != S::NAME {
            let what = format!("holds the model `{named}`, expected `{}`", S::NAME);
            return Err(IoError::new(path, what));
        }
        let facts = self.facts(path)?;
        let mut blocks = Vec::new();
        for name in self.block_names::<S>(path)? {
            if S::layout(&name) == FileLayout::Absent {
                let known = facts.iter().find(|(fact, _)| *fact == name);
                let values = known.map_or(&[1.0][..], |(_, values)| values);
                let values = values.iter().map(|&x| S::Scalar::lit(x));
                let block = DMatrix::from_iterator(values.len(), 1, values);
                blocks.push((name, block));
                continue;
            }
            let Some(array) = self.arrays.remove(&name) else {
                return Err(IoError::new(path, format!("has no `{name}`")));
            };
            let block = block_of::<S>(&name, &array).map_err(|what| IoError::new(path, what))?;
            let extents = S::layout(&name).extents();
            let known = facts.iter().find(|(fact, _)| Some(&**fact) == extents);
            let got = array.shape.get(1..).unwrap_or_default();
            if let Some((_, known)) = known
                && !got.iter().map(|&n| n as f64).eq(known.iter().copied())
            {
                let what = format!("`{name}` has components of {got:?}, expected {known:?}");
                return Err(IoError::new(path, what));
            }
            blocks.push((name, block.map(S::Scalar::lit)));
        }
        let all = &self.metadata;
        let number = |value: &Value, name: &str, default: f64| match value {
            // Files of earlier versions do not have it.
            Value::Null => Ok(default),
            value => value.as_f64().ok_or_else(|| {
                IoError::new(path, format!("`{name}` is {value}, expected a number"))
            }),
        };
        let mass = number(&all["data"]["total"], "data.total", 1.0)?;
        let iteration = number(&all["iteration"], "iteration", 0.0)?;
        let power = number(&all["power"], "power", 1.0)?;
        let mut at = Parameters::named(blocks, mass)
            .at_iteration(iteration as usize)
            .at_power(power);
        for (name, numbers) in facts {
            if S::layout(&name) != FileLayout::Absent {
                at = at.with_fact(name, numbers);
            }
        }
        wrapped(at).map_err(|e| match &e {
            FitError::Blocks { got, expected } => {
                match expected.iter().find(|name| !got.contains(name)) {
                    Some(name) => IoError::new(path, format!("has no `{name}`")),
                    None => IoError::new(path, e),
                }
            }
            _ => IoError::new(path, e),
        })
    }

    /// The blocks in their order. For files of earlier versions it is inferred from the shape of the data, or from the number of factors.
    fn block_names<S: State>(&self, path: &Path) -> Result<Vec<String>, IoError> {
        if let Some(names) = self.metadata["blocks"].as_array() {
            let names = names.iter().map(|name| name.as_str().map(str::to_string));
            let names = names.collect::<Option<_>>();
            return names.ok_or_else(|| IoError::new(path, "has blocks without names"));
        }
        let order = self.metadata["data"]["shape"].as_array();
        let order = order.map_or_else(|| factors(&self.arrays), Vec::len);
        if order == 0 && S::block_names(0) != S::block_names(1) {
            return Err(IoError::new(path, "does not say the shape of its data"));
        }
        Ok(S::block_names(order))
    }

    /// What a state remembers. For files of earlier versions it is inferred from the settings of their fit.
    fn facts(&self, path: &Path) -> Result<Vec<(String, Vec<f64>)>, IoError> {
        let numbers = |name: &str, value: &Value| -> Result<Vec<f64>, IoError> {
            let numbers = match value {
                Value::Array(list) => list.iter().map(Value::as_f64).collect(),
                one => one.as_f64().map(|x| vec![x]),
            };
            numbers.ok_or_else(|| {
                IoError::new(path, format!("fact `{name}` is {value}, expected numbers"))
            })
        };
        let mut facts = Vec::new();
        let arrays = self.arrays.iter();
        for (name, array) in arrays {
            let fact = match name.strip_prefix(FACT) {
                Some(fact) => fact,
                None if name == SCALE => SCALE,
                None => continue,
            };
            facts.push((fact.to_string(), array.values.clone()));
        }
        let all = &self.metadata;
        if !all[SCALE].is_null() {
            facts.push((SCALE.to_string(), numbers(SCALE, &all[SCALE])?));
        }
        for (name, value) in all["facts"].as_object().into_iter().flatten() {
            facts.push((name.clone(), numbers(name, value)?));
        }
        if all["facts"].is_null() {
            facts.extend(self.told_by_settings());
        }
        Ok(facts)
    }
}

impl ModelFile {
    fn told_by_settings(&self) -> Vec<(String, Vec<f64>)> {
        let settings = &self.metadata["settings"];
        let given = settings["given"].as_f64().unwrap_or(1.0);
        let mut facts = vec![("given".to_string(), vec![given])];
        let extents = |name: &str| Some(self.arrays.get(name)?.shape.get(1..)?.to_vec());
        let shape = self.metadata["data"]["shape"].as_array();
        let shape = shape.and_then(|all| all.iter().map(Value::as_u64).collect::<Option<Vec<_>>>());
        let shape = shape.map(|all| all.into_iter().map(|n| n as usize).collect::<Vec<_>>());
        if let (Some(shape), Some(kernel), Some(places)) =
            (shape, extents("kernels"), extents("impulses"))
        {
            // An impulse's extent tells the support: 0, valid, 1, same, 2, full.
            let supports = shape.iter().zip(&kernel).zip(&places);
            let supports = supports.map(|((&i, &k), &m)| match m {
                m if m + k == i + 1 => 0,
                m if m == i => 1,
                _ => 2,
            });
            let literal = settings["likelihood"] == "literal";
            let lists = [
                ("supports", supports.collect()),
                ("likelihood", vec![usize::from(literal)]),
                ("shape", shape),
                ("kernel", kernel),
                ("places", places),
            ];
            let numbers = |list: Vec<usize>| list.into_iter().map(|n| n as f64).collect();
            facts.extend(lists.map(|(name, list)| (name.to_string(), numbers(list))));
        }
        facts
    }
}

/// A block as an array.
fn array_of(
    at: &Parameters<f64>,
    (name, layout, block): (&str, FileLayout, &DMatrix<f64>),
) -> (String, Array<f64>) {
    let extents: Vec<usize> = match layout.extents().and_then(|fact| at.fact(fact)) {
        Some(extents) => extents.iter().map(|&n| n as usize).collect(),
        None => vec![block.nrows()],
    };
    let shape = layout.shape(block.shape(), &extents);
    (name.to_string(), Array::new(shape, layout.values(block)))
}

/// The block that an array of this name holds, or what is wrong with it.
///
/// # Errors
///
/// One line that names the block, its shape and what was expected.
pub fn block_of<S: State>(name: &str, array: &Array<f64>) -> Result<DMatrix<f64>, String> {
    let layout = S::layout(name);
    let shape = &array.shape;
    // An empty array may still claim a huge size in another dimension.
    if array.values.is_empty() {
        return Err(format!("`{name}` is empty, of shape {shape:?}"));
    }
    let block = layout.block(shape, &array.values);
    block.ok_or_else(|| {
        let expected = layout.expected();
        format!("`{name}` has shape {shape:?}, {expected} is needed")
    })
}

/// How many factors there are.
fn factors(arrays: &BTreeMap<String, Array<f64>>) -> usize {
    let named = |j: &usize| arrays.contains_key(&format!("factor_{j}"));
    (0..).take_while(named).count()
}

/// The state of parameters. Distributions that were written in single precision are normalised again.
fn wrapped<S: State>(mut at: Parameters<S::Scalar>) -> Result<S, FitError> {
    let count = at.matrices().len();
    for _ in 0..count {
        let refused = match S::wrap(at.clone()) {
            Err(FitError::Sum { block, sum, .. }) if (sum - 1.0).abs() <= SINGLE => block,
            other => return other,
        };
        let names: Vec<String> = at.blocks().map(|(name, _)| name.to_string()).collect();
        at.change(|j, block| {
            if names[j] == refused {
                for mut column in block.column_iter_mut() {
                    let sum: f64 = column.iter().map(|x| x.to_f64()).sum();
                    column /= S::Scalar::lit(sum);
                }
            }
        });
    }
    S::wrap(at)
}

/// Writes a state to `.npz` or `.safetensors`, in its own precision. The command transforms, reconstructs, inspects and exports it; `plca refit` and `plca report` need the
/// metadata of a fit by the command. Names of rows or columns go into the metadata of [`ModelFile::of`], `names` by the number of the dimension, before [`write_model`].
///
/// # Errors
///
/// [`IoError`] naming the file; nothing is left or changed by a failure.
///
/// # Examples
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// use plca_em::PlcaState;
/// use plca_fit::State;
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("m.npz");
/// let state = PlcaState::new(dvector![0.25, 0.75], vec![dmatrix![0.5, 0.0; 0.5, 1.0]])?;
/// plca_io::save(&path, &state)?;
/// assert_eq!(plca_io::load::<PlcaState<f64>>(&path)?.parameters(), state.parameters());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn save<S: State>(path: impl AsRef<Path>, state: &S) -> Result<(), IoError> {
    let single = size_of::<S::Scalar>() == 4;
    write_model(path.as_ref(), &ModelFile::of(state), single)
}

/// Reads the state of a model from its file.
///
/// # Errors
///
/// As [`ModelFile::state`], and those of [`read_model`].
pub fn load<S: State>(path: impl AsRef<Path>) -> Result<S, IoError> {
    let path = path.as_ref();
    read_model(path)?.state(path)
}
