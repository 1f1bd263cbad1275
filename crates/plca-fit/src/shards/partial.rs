//! Sums over shards in one fixed order.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Version;

/// Statistics of shards that are added up.
pub trait Merge {
    /// Adds those of the shards that follow: `self + right`.
    fn merge(&mut self, right: &Self);
}

/// A node of the binary tree over shards: `(l, i)` covers the shards `i 2^l .. (i + 1) 2^l`, as far as there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Node {
    /// Its height: 0 for one shard.
    pub level: u32,
    /// Its place among the nodes of its level.
    pub place: u32,
}

impl Node {
    /// The shards that the node covers; `shards` is the number of all.
    pub fn shards(self, shards: u32) -> Range<u32> {
        // From level 32 on a node holds all shards that there can be; what is read from bytes may name any level.
        let level = self.level.min(32);
        let end = |place: u128| (place << level).min(shards.into()) as u32;
        end(self.place.into())..end(u128::from(self.place) + 1)
    }

    fn sibling(self) -> Self {
        let place = self.place ^ 1;
        Self { place, ..self }
    }

    fn parent(self) -> Self {
        Self {
            level: self.level + 1,
            place: self.place / 2,
        }
    }
}

/// The reason why statistics of shards cannot be joined, or are not a sum over all shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartialError {
    /// A shard that is in both.
    #[error("shard {shard} is counted twice")]
    Overlap {
        /// The first such shard.
        shard: u32,
    },
    /// A shard that is not among them.
    #[error("shard {shard} of {shards} is missing")]
    Missing {
        /// The first such shard.
        shard: u32,
        /// How many there are.
        shards: u32,
    },
    /// Statistics of data that were cut into another number of shards.
    #[error("statistics of {got} shards, expected {expected}")]
    Count {
        /// How many shards they say there are.
        got: u32,
        /// How many there are.
        expected: u32,
    },
    /// A shard, or a node of the tree over them, that does not exist.
    #[error("there is no node {place} at level {level} over {shards} shards")]
    Node {
        /// The height in the tree, 0 for a shard.
        level: u32,
        /// The place at this height.
        place: u32,
        /// How many shards there are.
        shards: u32,
    },
}

/// The statistics of some of the shards, added up as far as a fixed binary tree over all of them allows.
///
/// [`join`](Self::join) only ever adds the left and the right part of one node of the tree. So it is associative and commutative, with bit-identical results, although
/// the addition of floating-point numbers is not: whoever holds which shards, and whichever are joined first, the [root](Self::root) is bit-identical.
/// A contiguous range of shards needs at most `2 log2 S` open nodes.
///
/// ```
/// use plca_fit::shards::{Merge, Partial, PartialError};
/// #[derive(Clone, Debug, PartialEq)]
/// struct Sum(f64);
/// impl Merge for Sum {
///     fn merge(&mut self, right: &Self) { self.0 += right.0; }
/// }
/// let leaf = |shard: u32| Partial::leaf(shard, 3, Sum([1.0, 1e-16, 1e-16][shard as usize]));
/// let one = leaf(0)?.join(leaf(1)?)?.join(leaf(2)?)?.root()?;
/// let other = leaf(2)?.join(leaf(0)?)?.join(leaf(1)?)?.root()?;
/// assert_eq!(one, other);
/// assert_eq!(leaf(1)?.join(leaf(1)?).unwrap_err(), PartialError::Overlap { shard: 1 });
/// assert_eq!(leaf(0)?.join(leaf(2)?)?.root().unwrap_err(), PartialError::Missing { shard: 1, shards: 3 });
/// # Ok::<(), PartialError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        try_from = "Open<S>",
        bound(
            serialize = "S: serde::Serialize",
            deserialize = "S: Merge + serde::Deserialize<'de>"
        )
    )
)]
pub struct Partial<S> {
    version: Version,
    shards: u32,
    #[cfg_attr(feature = "serde", serde(serialize_with = "as_list"))]
    nodes: BTreeMap<Node, S>,
}

impl<S: Merge> Partial<S> {
    /// The statistics of one shard; `shards` is the number of all.
    ///
    /// # Errors
    ///
    /// [`PartialError::Node`] if there is no such shard.
    pub fn leaf(shard: u32, shards: u32, stats: S) -> Result<Self, PartialError> {
        let mut partial = Self::empty(shards);
        let (level, place) = (0, shard);
        partial.insert(Node { level, place }, stats)?;
        Ok(partial)
    }

    /// The statistics of no shard; `shards` is the number of all.
    pub fn empty(shards: u32) -> Self {
        Self {
            version: Version,
            shards,
            nodes: BTreeMap::new(),
        }
    }

    /// The statistics of the shards of both.
    ///
    /// # Errors
    ///
    /// [`PartialError::Overlap`], [`PartialError::Count`].
    pub fn join(mut self, other: Self) -> Result<Self, PartialError> {
        if other.shards != self.shards {
            return Err(PartialError::Count {
                got: other.shards,
                expected: self.shards,
            });
        }
        for (node, stats) in other.nodes {
            self.insert(node, stats)?;
        }
        Ok(self)
    }

    /// The sum over all shards.
    ///
    /// # Errors
    ///
    /// [`PartialError::Missing`].
    pub fn root(mut self) -> Result<S, PartialError> {
        let covered = self.nodes.keys().map(|node| node.shards(self.shards));
        let mut covered: Vec<_> = covered.collect();
        covered.sort_by_key(|range| range.start);
        let mut ends = std::iter::once(0).chain(covered.iter().map(|range| range.end));
        let mut starts = covered.iter().map(|range| range.start);
        let missing = ends.find(|&end| starts.next() != Some(end) && end < self.shards);
        match (missing, self.nodes.pop_first()) {
            (None, Some((_, stats))) => Ok(stats),
            (shard, _) => Err(PartialError::Missing {
                shard: shard.unwrap_or(0),
                shards: self.shards,
            }),
        }
    }

    /// The nodes that have not been joined yet.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        self.nodes.keys().copied()
    }

    /// Takes a node in: siblings become their parent, until none is left.
    fn insert(&mut self, mut node: Node, mut stats: S) -> Result<(), PartialError> {
        let shards = self.shards;
        let top = shards.next_power_of_two().trailing_zeros();
        let range = node.shards(shards);
        if node.level > top || range.is_empty() {
            let Node { level, place } = node;
            return Err(PartialError::Node {
                level,
                place,
                shards,
            });
        }
        let both = self.nodes.keys().map(|other| {
            let other = other.shards(shards);
            other.start.max(range.start)..other.end.min(range.end)
        });
        if let Some(twice) = both.filter(|both| !both.is_empty()).map(|r| r.start).min() {
            return Err(PartialError::Overlap { shard: twice });
        }
        while node.level < top {
            let sibling = node.sibling();
            if !sibling.shards(shards).is_empty() {
                let Some(other) = self.nodes.remove(&sibling) else {
                    break;
                };
                stats = match node < sibling {
                    true => added(stats, &other),
                    false => added(other, &stats),
                };
            }
            node = node.parent();
        }
        self.nodes.insert(node, stats);
        Ok(())
    }
}

fn added<S: Merge>(mut left: S, right: &S) -> S {
    left.merge(right);
    left
}

/// A [`Partial`] as it is written: not every list of nodes is one.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct Open<S> {
    #[serde(rename = "version")]
    _version: Version,
    shards: u32,
    nodes: Vec<(Node, S)>,
}

#[cfg(feature = "serde")]
fn as_list<S: serde::Serialize, Z: serde::Serializer>(
    nodes: &BTreeMap<Node, S>,
    serializer: Z,
) -> Result<Z::Ok, Z::Error> {
    serializer.collect_seq(nodes)
}

#[cfg(feature = "serde")]
impl<S: Merge> TryFrom<Open<S>> for Partial<S> {
    type Error = PartialError;

    fn try_from(open: Open<S>) -> Result<Self, PartialError> {
        let mut partial = Self::empty(open.shards);
        for (node, stats) in open.nodes {
            partial.insert(node, stats)?;
        }
        Ok(partial)
    }
}
