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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_survive_and_bad_ones_are_refused() {
        let v =
            DenseTensor::new(vec![2, 2], vec![0.1, 0.0, 3e-310, 2.0], Order::ColumnMajor).unwrap();
        let text = serde_json::to_string(&v).unwrap();
        assert_eq!(serde_json::from_str::<DenseTensor<f64>>(&text).unwrap(), v);
        let bad = text.replace("0.1", "-0.1");
        let error = serde_json::from_str::<DenseTensor<f64>>(&bad)
            .unwrap_err()
            .to_string();
        assert!(error.contains("entry [0, 0] is -0.1"), "{error}");

        let entries = Coordinates {
            shape: vec![2, 3],
            indices: vec![1, 2, 0, 0],
            values: vec![5.0, 0.5],
        };
        let v = SparseTensor::new(entries).unwrap();
        let text = serde_json::to_string(&v).unwrap();
        let back: SparseTensor<f64> = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        let bad = text.replace("[2,3]", "[1,1]");
        assert!(serde_json::from_str::<SparseTensor<f64>>(&bad).is_err());
    }
}
