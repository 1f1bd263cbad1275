//! Arrays that stand for larger ones.

use plca_io::Array;

/// The values of an array broadcast to a shape, in C order: dimensions are aligned at their end, those of size 1 repeated.
pub(super) fn broadcast(array: &Array<f64>, shape: &[usize]) -> Option<Vec<f64>> {
    let missing = shape.len().checked_sub(array.shape.len())?;
    let mut strides = vec![0; shape.len()];
    let mut stride = 1;
    for d in (missing..shape.len()).rev() {
        let size = array.shape[d - missing];
        if size != shape[d] && size != 1 {
            return None;
        }
        strides[d] = if size == 1 { 0 } else { stride };
        stride *= size;
    }
    let value = |cell: usize| {
        let mut rest = cell;
        let step = |d: usize| {
            let index = rest % shape[d];
            rest /= shape[d];
            strides[d] * index
        };
        array.values[(0..shape.len()).rev().map(step).sum::<usize>()]
    };
    let cells: usize = shape.iter().product();
    Some((0..cells).map(value).collect())
}
