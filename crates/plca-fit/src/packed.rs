//! Matrices between processes: in binary formats the two sizes and the values as raw bytes, little-endian. In formats that people read they are as
//! `nalgebra` writes them.

use std::any::Any;
use std::borrow::Cow;
use std::marker::PhantomData;

use bytemuck::NoUninit;
use nalgebra::DMatrix;
use plca_tensor::Real;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The bytes of values, little-endian: those in memory, on most machines.
fn bytes<const N: usize, X: NoUninit>(values: &[X], of: fn(X) -> [u8; N]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytemuck::cast_slice(values));
    }
    values.iter().flat_map(|&x| of(x)).collect()
}

struct Bytes<'a, T>(&'a DMatrix<T>);

impl<T: Real> Serialize for Bytes<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let matrix: &dyn Any = self.0;
        let bytes = match (matrix.downcast_ref(), matrix.downcast_ref()) {
            (Some(x), _) => bytes(DMatrix::as_slice(x), f64::to_le_bytes),
            (_, Some(x)) => bytes(DMatrix::as_slice(x), f32::to_le_bytes),
            _ => unreachable!("one of the two scalars"),
        };
        serializer.serialize_bytes(&bytes)
    }
}

/// Numbers of `N` bytes each.
fn numbers<const N: usize, T>(bytes: &[u8], of: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|&x| of(x)).collect()
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
                if !bytes.len().is_multiple_of(size_of::<T>()) {
                    return Err(E::invalid_length(bytes.len(), &self));
                }
                Ok(Values(match size_of::<T>() {
                    4 => numbers(bytes, |x| T::lit(f32::from_le_bytes(x).into())),
                    _ => numbers(bytes, |x| T::lit(f64::from_le_bytes(x))),
                }))
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
        (rows, columns, Bytes(matrix)).serialize(serializer)
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
