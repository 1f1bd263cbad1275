//! The version of what engines move as bytes.

/// The version of serialised states and statistics of shards. Any other is refused when it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version;

#[cfg(feature = "serde")]
const NUMBER: u32 = 5;

#[cfg(feature = "serde")]
impl serde::Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(NUMBER)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Version {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        match u32::deserialize(deserializer)? {
            NUMBER => Ok(Self),
            other => Err(D::Error::custom(format!(
                "version {other} of shards, this program reads {NUMBER}"
            ))),
        }
    }
}
