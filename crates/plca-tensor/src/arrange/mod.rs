//! Data in the order that a kernel wants which no storage has: copied once, when a model meets its data, or borrowed.
//!
//! Each is made of any [`Data`]: [`Rows`] for coordinate descent, [`Signed`] for two rates a cell, [`Products`] for squared
//! error, [`Observations`] for one observation at a time.

use crate::{Data, DataError, Real};

mod observations;
mod products;
mod rows;
mod signed;

pub use crate::kernel::solve::{Ending, RowEnd, Until};
pub use observations::Observations;
pub use products::{Memo, Products};
pub use rows::{RowTerms, Rows};
pub use signed::{Signed, SignedModel, SignedSums, SignedWanted, SplitRule};

/// Visits the observed cells that are not 0; refuses sums of entries that are beyond the scalar.
fn visit<T: Real>(data: &dyn Data<T>, each: &mut dyn FnMut(&[usize], T)) -> Result<(), DataError> {
    let mut beyond = None;
    data.visit(&mut |index, x| {
        let x = T::lit(x);
        if x.is_finite() {
            each(index, x);
        } else if beyond.is_none() {
            let (index, value) = (index.to_vec(), x.to_f64());
            beyond = Some(DataError::NotFinite { index, value });
        }
    })?;
    beyond.map_or(Ok(()), Err)
}
