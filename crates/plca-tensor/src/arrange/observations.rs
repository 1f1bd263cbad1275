//! Data cut into their observations.

use super::visit;
use crate::{Coordinates, Data, DataError, DenseTensor, Mask, Order, Real, SparseTensor};

/// Cells from which on an observation is not written out, whatever is known of it.
const LARGEST: usize = 1 << 26;
/// An observation is written out where more than one in this number of its cells counts.
const RARE: usize = 4;

/// The observations along a mode, each as data of its own. What an observation looks like follows from its own cells alone: not from those beside it, from
/// their order, or from the storage.
///
/// Memory: a copy of the cells that are not 0, and of what the mask lists.
///
/// ```
/// use plca_tensor::{Data, DenseTensor, Order, arrange::Observations};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![3.0, 1.0, 0.0, 4.0], Order::RowMajor)?;
/// let columns = Observations::new(&v, 1)?;
/// assert_eq!((columns.at(1)?.shape(), columns.at(1)?.total()), (&[2, 1][..], 5.0));
/// assert_eq!(columns.cells(0), (&[0][..], &[3.0][..]));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
#[derive(Debug)]
pub struct Observations<T> {
    /// That of one observation.
    shape: Vec<usize>,
    along: usize,
    mask: Mask,
    filled: Lists<T>,
    masked: Lists<()>,
}

/// A list for every observation, of cells by their indices in the other modes, in the order of these.
#[derive(Debug)]
struct Lists<V> {
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<V>,
}

impl<V: Copy + Default> Lists<V> {
    /// Of `size` observations, from two visits of the same cells.
    fn new<E>(
        (along, order, size): (usize, usize, usize),
        mut visit: impl FnMut(&mut dyn FnMut(&[usize], V)) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut starts = vec![0; size + 1];
        visit(&mut |index, _| starts[index[along] + 1] += 1)?;
        for y in 0..size {
            starts[y + 1] += starts[y];
        }
        let (others, all) = (order - 1, starts[size]);
        let mut lists = Self {
            indices: vec![0; others * all],
            values: vec![V::default(); all],
            starts,
        };
        let mut next = lists.starts.clone();
        visit(&mut |index, value| {
            let at = next[index[along]];
            next[index[along]] += 1;
            lists.values[at] = value;
            let other = index.iter().enumerate().filter(|&(mode, _)| mode != along);
            let places = lists.indices[others * at..].iter_mut();
            places
                .zip(other)
                .for_each(|(place, (_, &i))| *place = i as u32);
        })?;
        (0..size).for_each(|y| lists.sort(y, others));
        Ok(lists)
    }

    /// Storages visit cells in any order.
    fn sort(&mut self, y: usize, others: usize) {
        let own = self.starts[y]..self.starts[y + 1];
        let indices = &mut self.indices[others * own.start..others * own.end];
        let values = &mut self.values[own];
        let index = |at: usize| &indices[others * at..][..others];
        if (1..values.len()).all(|at| index(at - 1) < index(at)) {
            return;
        }
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by_key(|&at| index(at));
        let sorted: Vec<u32> = order.iter().flat_map(|&at| index(at)).copied().collect();
        let of_order: Vec<V> = order.iter().map(|&at| values[at]).collect();
        indices.copy_from_slice(&sorted);
        values.copy_from_slice(&of_order);
    }

    fn of(&self, y: usize, others: usize) -> (&[u32], &[V]) {
        let own = self.starts[y]..self.starts[y + 1];
        (
            &self.indices[others * own.start..others * own.end],
            &self.values[own],
        )
    }
}

impl<T: Real> Observations<T> {
    /// Cuts data along a mode.
    ///
    /// # Errors
    ///
    /// As [`Data::visit`]; [`DataError::NotFinite`] for a sum of entries that is beyond the scalar.
    ///
    /// # Panics
    ///
    /// If the data have no such mode.
    pub fn new(data: &dyn Data<T>, along: usize) -> Result<Self, DataError> {
        let (mut shape, mask) = (data.shape().to_vec(), data.summary().mask);
        let size = (along, shape.len(), shape[along]);
        shape[along] = 1;
        Ok(Self {
            filled: Lists::new(size, |each| visit(data, each))?,
            masked: Lists::new(size, |each| data.visit_mask(&mut |index| each(index, ())))?,
            shape,
            along,
            mask,
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.filled.starts.len() - 1
    }

    fn others(&self) -> usize {
        self.shape.len() - 1
    }

    /// The cells of an observation that are not 0, in row-major order: their indices in the other modes, one after the other, and their values.
    ///
    /// # Panics
    ///
    /// If there is no such observation.
    pub fn cells(&self, observation: usize) -> (&[u32], &[T]) {
        self.filled.of(observation, self.others())
    }

    /// How many cells an observation has; the largest number where it is larger.
    fn size(&self) -> usize {
        let sizes = self.shape.iter();
        sizes.fold(1usize, |all, &n| all.saturating_mul(n))
    }

    /// How many cells of an observation were observed.
    fn seen(&self, observation: usize) -> usize {
        let (_, listed) = self.masked.of(observation, self.others());
        match self.mask {
            Mask::Observed => listed.len(),
            Mask::Complete | Mask::Hidden => self.size() - listed.len(),
        }
    }

    /// Whether anything of an observation was observed, zeros included.
    ///
    /// # Panics
    ///
    /// If there is no such observation.
    pub fn is_seen(&self, observation: usize) -> bool {
        self.seen(observation) > 0
    }

    /// An observation as data, of size 1 along the mode.
    ///
    /// # Errors
    ///
    /// Those of the storage that is made.
    ///
    /// # Panics
    ///
    /// If there is no such observation.
    pub fn at(&self, observation: usize) -> Result<Box<dyn Data<T>>, DataError> {
        let (indices, values) = self.cells(observation);
        let (size, seen) = (self.size(), self.seen(observation));
        let counting = if seen == size { values.len() } else { seen };
        if size <= LARGEST && RARE * counting > size {
            return self.written_out(observation);
        }
        let filled = self.coordinates(indices, values.to_vec());
        let (listed, marks) = self.masked.of(observation, self.others());
        let marked = self.coordinates(listed, vec![T::zero(); marks.len()]);
        Ok(Box::new(match self.mask {
            _ if seen == size => SparseTensor::new(filled)?,
            Mask::Hidden if size > LARGEST => SparseTensor::all_but(filled, marked)?,
            Mask::Complete | Mask::Hidden => {
                SparseTensor::stored_only(self.seen_of_hidden(observation))?
            }
            Mask::Observed => {
                let mut seen = marked;
                // A zero that was observed; others have their value beside it.
                seen.indices.extend(filled.indices);
                seen.values.extend(filled.values);
                SparseTensor::stored_only(seen)?
            }
        }))
    }

    fn coordinates(&self, indices: &[u32], values: Vec<T>) -> Coordinates<T> {
        let mut full = Vec::with_capacity(self.shape.len() * values.len());
        let others = self.others();
        for at in 0..values.len() {
            let index = &indices[others * at..][..others];
            full.extend_from_slice(&index[..self.along]);
            full.push(0);
            full.extend_from_slice(&index[self.along..]);
        }
        Coordinates {
            shape: self.shape.clone(),
            indices: full,
            values,
        }
    }

    /// Where a cell lies among all of an observation, the last mode fastest.
    fn place(&self, index: &[u32]) -> usize {
        let sizes = self.shape.iter().enumerate();
        let sizes = sizes.filter(|&(mode, _)| mode != self.along);
        let pairs = index.iter().zip(sizes);
        pairs.fold(0, |at, (&i, (_, &n))| at * n + i as usize)
    }

    /// All cells, NaN where one is hidden.
    fn all(&self, observation: usize) -> Vec<T> {
        let others = self.others();
        let places = |indices: &[u32], count: usize| -> Vec<usize> {
            let index = |at: usize| self.place(&indices[others * at..][..others]);
            (0..count).map(index).collect()
        };
        let (listed, marks) = self.masked.of(observation, others);
        let (mut all, marked) = match self.mask {
            Mask::Observed => (vec![T::lit(f64::NAN); self.size()], T::zero()),
            _ => (vec![T::zero(); self.size()], T::lit(f64::NAN)),
        };
        for place in places(listed, marks.len()) {
            all[place] = marked;
        }
        let (indices, values) = self.cells(observation);
        for (place, &value) in places(indices, values.len()).into_iter().zip(values) {
            all[place] = value;
        }
        all
    }

    fn written_out(&self, observation: usize) -> Result<Box<dyn Data<T>>, DataError> {
        let all = self.all(observation);
        let dense = DenseTensor::masked(self.shape.clone(), all, Order::RowMajor)?;
        Ok(Box::new(dense))
    }

    /// The observed cells, zeros included, of an observation most of which is hidden.
    fn seen_of_hidden(&self, observation: usize) -> Coordinates<T> {
        let mut seen = Coordinates::empty(&self.shape);
        let mut index = vec![0; self.shape.len()];
        for value in self.all(observation) {
            if !value.to_f64().is_nan() {
                seen.push(&index, value);
            }
            for (i, &n) in index.iter_mut().zip(&self.shape).rev() {
                *i += 1;
                if *i < n {
                    break;
                }
                *i = 0;
            }
        }
        seen
    }
}
