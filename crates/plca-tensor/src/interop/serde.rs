//! Tensors as shape, values and memory order, or as coordinates, with what is hidden; what is read is checked as by the constructors.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};

use crate::{Coordinates, Data, DenseTensor, Mask, Order, Real, SparseTensor};

#[derive(Serialize, Deserialize)]
#[serde(rename = "DenseTensor", deny_unknown_fields)]
struct Dense<T> {
    shape: Vec<usize>,
    /// 0 in hidden cells: not every format has a NaN.
    values: Vec<T>,
    order: Order,
    /// Positions in `values`, ascending.
    #[serde(default)]
    hidden: Vec<usize>,
}

impl<T: Real + Serialize> Serialize for DenseTensor<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (shape, mut values, order) = self.clone().into_parts();
        let mut hidden = Vec::with_capacity(self.hidden());
        for (at, x) in (values.iter_mut().enumerate()).filter(|(_, x)| x.is_nan()) {
            *x = T::zero();
            hidden.push(at);
        }
        Dense {
            shape,
            values,
            order,
            hidden,
        }
        .serialize(serializer)
    }
}

impl<'de, T: Real + Deserialize<'de>> Deserialize<'de> for DenseTensor<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Dense::deserialize(deserializer)?;
        let cells = raw.values.len();
        let mut observed = vec![true; cells];
        for at in raw.hidden {
            let Some(observed) = observed.get_mut(at) else {
                let why = format!("hidden cell {at} of a tensor with {cells} values");
                return Err(D::Error::custom(why));
            };
            *observed = false;
        }
        Self::with_mask(raw.shape, raw.values, raw.order, &observed).map_err(D::Error::custom)
    }
}

/// Which cells a sparse tensor observes.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Observed {
    #[default]
    All,
    Stored,
    /// All but these: indices entry after entry.
    AllBut(Vec<u32>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "SparseTensor", deny_unknown_fields)]
struct Sparse<T> {
    shape: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
    #[serde(default)]
    observed: Observed,
}

impl<T: Real + Serialize> Serialize for SparseTensor<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut listed = Vec::new();
        let list = &mut |index: &[usize]| listed.extend(index.iter().map(|&i| i as u32));
        let observed = match self.summary().mask {
            Mask::Complete => Observed::All,
            Mask::Observed => Observed::Stored,
            Mask::Hidden => {
                self.visit_mask(list).map_err(S::Error::custom)?;
                Observed::AllBut(listed)
            }
        };
        let entries = self.to_coordinates();
        Sparse {
            shape: entries.shape,
            indices: entries.indices,
            values: entries.values,
            observed,
        }
        .serialize(serializer)
    }
}

impl<'de, T: Real + Deserialize<'de>> Deserialize<'de> for SparseTensor<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Sparse::deserialize(deserializer)?;
        let entries = Coordinates {
            shape: raw.shape,
            indices: raw.indices,
            values: raw.values,
        };
        let checked = match raw.observed {
            Observed::All => Self::new(entries),
            Observed::Stored => Self::stored_only(entries),
            Observed::AllBut(indices) => {
                let hidden = Coordinates {
                    shape: entries.shape.clone(),
                    indices,
                    values: Vec::new(),
                };
                Self::all_but(entries, hidden)
            }
        };
        checked.map_err(D::Error::custom)
    }
}
