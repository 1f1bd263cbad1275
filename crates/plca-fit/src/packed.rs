//! Matrices between processes: in binary formats the two sizes and the bytes of the values, which are copied and not read one by one. In formats that
//! people read they are as `nalgebra` writes them.

use std::marker::PhantomData;

use nalgebra::DMatrix;
use plca_tensor::Real;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Values as bytes, little-endian.
struct Bytes(Vec<u8>);

impl Bytes {
    fn of<T: Real>(values: &[T]) -> Self {
        let mut bytes = vec![0; size_of_val(values)];
        let each = bytes.chunks_exact_mut(size_of::<T>());
        for (to, x) in each.zip(values) {
            match size_of::<T>() {
                4 => to.copy_from_slice(&(x.to_f64() as f32).to_le_bytes()),
                _ => to.copy_from_slice(&x.to_f64().to_le_bytes()),
            }
        }
        Self(bytes)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

struct Values<T>(Vec<T>);

impl<'de, T: Real> Deserialize<'de> for Values<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfBytes<T>(PhantomData<T>);

        impl<T: Real> Visitor<'_> for OfBytes<T> {
            type Value = Values<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "the bytes of numbers of {} bytes each", size_of::<T>())
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Values<T>, E> {
                let each = bytes.chunks_exact(size_of::<T>());
                if !each.remainder().is_empty() {
                    return Err(E::invalid_length(bytes.len(), &self));
                }
                let number = |bytes: &[u8]| match bytes {
                    &[a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
                    _ => f64::from_le_bytes(bytes.try_into().unwrap_or_default()),
                };
                Ok(Values(each.map(|bytes| T::lit(number(bytes))).collect()))
            }
        }

        deserializer.deserialize_bytes(OfBytes(PhantomData))
    }
}

struct Written<'a, T>(&'a DMatrix<T>);

impl<T: Real + Serialize> Serialize for Written<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        matrix::serialize(self.0, serializer)
    }
}

struct Read<T>(DMatrix<T>);

impl<'de, T: Real + Deserialize<'de>> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        matrix::deserialize(deserializer).map(Self)
    }
}

/// One matrix, for `#[serde(with)]`.
pub(crate) mod matrix {
    use super::*;

    pub(crate) fn serialize<T, S>(matrix: &DMatrix<T>, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Real + Serialize,
        S: Serializer,
    {
        if serializer.is_human_readable() {
            return matrix.serialize(serializer);
        }
        let (rows, columns) = matrix.shape();
        (rows, columns, Bytes::of(matrix.as_slice())).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<DMatrix<T>, D::Error>
    where
        T: Real + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        if deserializer.is_human_readable() {
            return plca_tensor::checked::matrix(deserializer);
        }
        let (rows, columns, Values(values)) = Deserialize::deserialize(deserializer)?;
        if usize::checked_mul(rows, columns) == Some(values.len()) {
            return Ok(DMatrix::from_vec(rows, columns, values));
        }
        Err(D::Error::custom(format!(
            "a matrix of {rows} x {columns} has {} values",
            values.len()
        )))
    }
}

/// A list of them.
pub(crate) mod matrices {
    use super::*;

    pub(crate) fn serialize<T, S>(all: &[DMatrix<T>], serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Real + Serialize,
        S: Serializer,
    {
        serializer.collect_seq(all.iter().map(Written))
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<DMatrix<T>>, D::Error>
    where
        T: Real + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let all = Vec::<Read<T>>::deserialize(deserializer)?;
        Ok(all.into_iter().map(|Read(matrix)| matrix).collect())
    }
}
