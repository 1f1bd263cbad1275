//! The cells of data that take part in sums over a list.

use plca_tensor::shift::Folded;
use plca_tensor::{Data, DataError, Mask, Real};

/// A listed cell: channel and lane, position and value; NaN where hidden.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<T> {
    pub(super) lines: [u32; 2],
    pub(super) position: usize,
    pub(super) value: T,
}

/// Entries by channel or by lane.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) entries: Vec<u32>,
    pub(super) bounds: Vec<usize>,
}

impl Lines {
    /// By channel (side 0) or by lane (side 1), with their number.
    pub(super) fn new<T>(entries: &[Entry<T>], side: usize, lines: usize) -> Self {
        let mut all: Vec<u32> = (0..entries.len() as u32).collect();
        let of = |at: &u32| entries[*at as usize].lines[side];
        all.sort_by_key(of);
        let bounds = (0..=lines).map(|n| all.partition_point(|at| (of(at) as usize) < n));
        Self {
            bounds: bounds.collect(),
            entries: all,
        }
    }
}

/// Number of cells that a list of these data has.
pub(super) fn listed<T: Real>(data: &dyn Data<T>) -> Result<usize, DataError> {
    let (positive, mut mask) = (data.summary().nnz as usize, 0);
    data.visit_mask(&mut |_| mask += 1)?;
    Ok(match data.summary().mask {
        Mask::Complete | Mask::Hidden => positive + mask,
        Mask::Observed => mask,
    })
}

/// The list of the data, values times `scale`, in the order of channels, lanes and positions; and whether all other cells are
/// hidden.
pub(super) fn entries<T: Real>(
    folded: &Folded,
    data: &dyn Data<T>,
    scale: f64,
) -> Result<(Vec<Entry<T>>, bool), DataError> {
    let entry = |index: &[usize], value| {
        let [channel, lane, position] = folded.cell(index);
        Entry {
            lines: [channel as u32, lane as u32],
            position,
            value,
        }
    };
    let mut entries = Vec::new();
    data.visit(&mut |index, value| entries.push(entry(index, T::lit(value * scale))))?;
    let mut others_hidden = false;
    if !data.is_complete() {
        let mut mask = Vec::new();
        data.visit_mask(&mut |index| mask.push(entry(index, T::zero())))?;
        others_hidden = data.summary().mask == Mask::Observed;
        if !others_hidden {
            mask.iter_mut().for_each(|e| e.value = T::lit(f64::NAN));
        }
        entries.extend(mask);
    }
    // An observed cell that is positive comes twice, with its value first.
    let key = |e: &Entry<T>| (e.lines, e.position);
    entries.sort_by_key(key);
    entries.dedup_by_key(|e| key(e));
    Ok((entries, others_hidden))
}
