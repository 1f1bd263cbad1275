//! The sums as they are written, over dense cells.

use plca_tensor::{Data, DataError, Real};

use super::cells::Cells;
use super::{Counts, Engine, Parts, Wanted};
use plca_tensor::shift::{Folded, direct};

/// Plain loops with a contiguous inner axis.
#[derive(Debug)]
pub(crate) struct Direct<T> {
    folded: Folded,
    cells: Cells<T>,
}

impl<T: Real> Direct<T> {
    pub(crate) fn new(folded: &Folded, data: &dyn Data<T>) -> Result<Self, DataError> {
        Ok(Self {
            folded: folded.clone(),
            cells: Cells::new(folded, data)?,
        })
    }
}

impl<T: Real> Engine<T> for Direct<T> {
    fn expect(&self, model: &Parts<'_, T>, wanted: Wanted) -> Counts<T> {
        let f = &self.folded;
        let mut q = direct::model(f, &model.linear());
        let measured = (self.cells).ratios(&mut q, wanted, model.window_mass());
        let sums = |side| direct::sums(f, &model.linear(), &q, side);
        Counts::assemble(model, wanted, self.cells.scale, measured, sums)
    }
}
