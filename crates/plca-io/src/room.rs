//! Arrays whose size follows from what somebody else wrote.

use std::fmt;

/// Bytes of one array at most.
const MOST: usize = 1 << 37;

/// An array that is too large to be made.
///
/// ```
/// let error = plca_io::room::<f64>(&[1 << 20, 1 << 20]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "an array of 1048576 x 1048576 numbers needs 8796093022208 bytes, the limit is 137438953472"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct NoRoom {
    /// Size of each mode.
    pub shape: Vec<usize>,
    /// Bytes of the array, if their number can be written at all.
    pub bytes: Option<usize>,
    /// Below the limit, and the system would not give the memory.
    pub refused: bool,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        write!(f, "an array of {} numbers needs ", sizes.join(" x "))?;
        match self.bytes {
            Some(bytes) => write!(f, "{bytes} bytes, ")?,
            None => write!(f, "more than 2^64 bytes, ")?,
        }
        match self.refused {
            true => write!(f, "which this system does not give"),
            false => write!(f, "the limit is {MOST}"),
        }
    }
}

/// An empty vector with room for an array of this shape; running out of memory later would end the process.
///
/// # Errors
///
/// [`NoRoom`]: more than 128 GiB, or more than the system gives.
///
/// # Examples
///
/// ```
/// let mut values = plca_io::room::<f64>(&[2, 3])?;
/// values.resize(6, 0.0);
/// assert!(plca_io::room::<f64>(&[usize::MAX, 3]).is_err());
/// # Ok::<(), plca_io::NoRoom>(())
/// ```
pub fn room<T>(shape: &[usize]) -> Result<Vec<T>, NoRoom> {
    let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
    let bytes = cells.and_then(|n| n.checked_mul(size_of::<T>()));
    let failure = |refused| NoRoom {
        shape: shape.to_vec(),
        bytes,
        refused,
    };
    let allowed = bytes.filter(|&n| n <= MOST).and(cells);
    let cells = allowed.ok_or_else(|| failure(false))?;
    let mut values = Vec::new();
    let room = values.try_reserve_exact(cells);
    room.map_err(|_| failure(true))?;
    Ok(values)
}
