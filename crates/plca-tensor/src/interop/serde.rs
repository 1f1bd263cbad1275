//! Tensors as shape, values and memory order, or as coordinates; what is read is checked as by the constructors.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Coordinates, DenseTensor, Order, Real, SparseTensor};

#[derive(Serialize, Deserialize)]
#[serde(rename = "DenseTensor", deny_unknown_fields)]
struct Dense<T> {
    shape: Vec<usize>,
    values: Vec<T>,
    order: Order,
}

impl<T: Real + Serialize> Serialize for DenseTensor<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (shape, values, order) = self.clone().into_parts();
        Dense {
            shape,
            values,
            order,
        }
        .serialize(serializer)
    }
}

impl<'de, T: Real + Deserialize<'de>> Deserialize<'de> for DenseTensor<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Dense::deserialize(deserializer)?;
        Self::new(raw.shape, raw.values, raw.order).map_err(D::Error::custom)
    }
}

impl<T: Real + Serialize> Serialize for SparseTensor<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_coordinates().serialize(serializer)
    }
}

impl<'de, T: Real + Deserialize<'de>> Deserialize<'de> for SparseTensor<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Coordinates::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
