//! Random numbers that belong to a place and not to a time: every draw comes from a key, which is made from whole numbers.
//!
//! ```math
//! \begin{aligned}
//! \text{key}(w_1, w_2, \dots): \quad & h \gets 0, \quad h \gets \text{mix}\bigl((h \oplus w_i) + G\bigr) \text{ for every word} \\
//! \text{generator of a key } k: \quad & s \gets k, \quad s \gets s + G, \text{ of which } \text{mix}(s) \text{ is the next number}
//! \end{aligned}
//! ```
//!
//! Arithmetic is modulo `2^64`, and `G = 0x9E3779B97F4A7C15`. So the fold of a cell, the start of a rank and the draws of a replicate are the same whatever the
//! threads, the order of the work, and the number of folds, ranks and replicates beside them. By convention the first word is the seed of the user and
//! the second one the [`Purpose`].
//!
//! ```
//! use plca_dist::key::{Key, Purpose};
//! let folds = Key::of(&[7, Purpose::Folds.word()]);
//! // The fold of cell (2, 3), one of 5.
//! assert!(folds.and(2).and(3).pick(5) < 5);
//! ```

use std::convert::Infallible;

use rand::TryRng;

/// Golden ratio times `2^64`, an odd number.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A bijection of the 64-bit words of which every bit depends on all: the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
///
/// ```
/// assert_eq!(plca_dist::key::mix(0), 0);
/// assert_ne!(plca_dist::key::mix(1), plca_dist::key::mix(2));
/// ```
pub fn mix(mut z: u64) -> u64 {
    z ^= z >> 30;
    z = z.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^= z >> 27;
    z = z.wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What random numbers are for: the second word of a key, so that draws for different purposes have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// Folds of cells.
    Folds,
    /// Groups of rows.
    Rows,
    /// Groups of columns.
    Columns,
    /// Data drawn again.
    Resampling,
    /// Starts of fits.
    Starts,
    /// Counts divided among folds.
    Thinning,
    /// Samples drawn again.
    Samples,
}

impl Purpose {
    /// Its word.
    ///
    /// ```
    /// assert_eq!(plca_dist::key::Purpose::Folds.word(), 1);
    /// ```
    pub fn word(self) -> u64 {
        match self {
            Self::Folds => 1,
            Self::Rows => 2,
            Self::Columns => 3,
            Self::Resampling => 4,
            Self::Starts => 5,
            Self::Thinning => 6,
            Self::Samples => 7,
        }
    }
}

/// A key: what random numbers are drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(u64);

impl Key {
    /// The key of some words.
    ///
    /// ```
    /// use plca_dist::key::Key;
    /// assert_eq!(Key::of(&[1, 2, 3]), Key::of(&[1]).and(2).and(3));
    /// assert_eq!(Key::of(&[0]).word(), 16_294_208_416_658_607_535);
    /// ```
    pub fn of(words: &[u64]) -> Self {
        words.iter().fold(Self(0), |key, &word| key.and(word))
    }

    /// The key of the same words and one more.
    #[must_use]
    pub fn and(self, word: u64) -> Self {
        Self(mix((self.0 ^ word).wrapping_add(GOLDEN)))
    }

    /// The key as a number, uniform on the 64-bit words.
    pub fn word(self) -> u64 {
        self.0
    }

    /// A number below `n` (0 where `n` is 0), the same for every call: `floor(h n / 2^64)` of the key `h`.
    ///
    /// ```
    /// assert_eq!(plca_dist::key::Key::of(&[0]).pick(10), 8);
    /// ```
    pub fn pick(self, n: u64) -> u64 {
        ((u128::from(self.0) * u128::from(n)) >> 64) as u64
    }

    /// A generator of random numbers that begins at this key.
    ///
    /// ```
    /// use plca_dist::{key::Key, random};
    /// let u = random::uniform(&mut Key::of(&[0]).generator());
    /// assert!((u - 0.6524484863740322).abs() < 1e-15);
    /// ```
    pub fn generator(self) -> Generator {
        Generator(self.0)
    }

    /// The numbers `0..n` in an order that belongs to this key: by the keys that they make with it.
    ///
    /// ```
    /// let order = plca_dist::key::Key::of(&[7100, 2, 0]).permutation(5);
    /// assert_eq!(order, [4, 3, 1, 2, 0]);
    /// ```
    pub fn permutation(self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&i| (self.and(i as u64), i));
        order
    }

    /// The group of each of the numbers `0..n`: [`permutation`](Self::permutation) cut into `groups` runs of which the first `n mod groups` are one
    /// longer. Without a group all are in group 0.
    ///
    /// ```
    /// let group = plca_dist::key::Key::of(&[7100, 2, 0]).groups(7, 3);
    /// assert_eq!(group, [2, 0, 1, 0, 0, 1, 2]);
    /// ```
    pub fn groups(self, n: usize, groups: usize) -> Vec<usize> {
        let groups = groups.max(1);
        let (size, longer) = (n / groups, n % groups);
        let mut group = vec![0; n];
        for (place, i) in self.permutation(n).into_iter().enumerate() {
            let of_longer = longer * (size + 1);
            group[i] = match place < of_longer {
                true => place / (size + 1),
                // Behind the longer runs there are places only where runs are not empty.
                false => longer + (place - of_longer) / size.max(1),
            };
        }
        group
    }
}

/// The generator of a key, for draws of any number: SplitMix64.
///
/// ```
/// use plca_dist::{draw_poisson, key::Key};
/// let draw = |replicate| draw_poisson(3.5, &mut Key::of(&[7, 4, replicate]).generator());
/// assert_eq!(draw(2)?, draw(2)?);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator(u64);

impl TryRng for Generator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| (word >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(GOLDEN);
        Ok(mix(self.0))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for part in bytes.chunks_mut(8) {
            let word = self.try_next_u64()?.to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
        Ok(())
    }
}
