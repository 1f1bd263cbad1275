//! Arrays that stand for larger ones.

use plca_io::Array;

/// The values of an array broadcast to a shape, in C order: dimensions are aligned at their end, those of size 1 repeated; what is wrong
/// with one that does not.
pub(super) fn broadcast(array: &Array<f64>, shape: &[usize]) -> Result<Vec<f64>, String> {
    let unfit = || format!("shape {:?} does not broadcast to {shape:?}", array.shape);
    let missing = shape.len().checked_sub(array.shape.len());
    let missing = missing.ok_or_else(unfit)?;
    let mut strides = vec![0; shape.len()];
    let mut stride = 1;
    for d in (missing..shape.len()).rev() {
        let size = array.shape[d - missing];
        if size != shape[d] && size != 1 {
            return Err(unfit());
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
    Ok((0..cells).map(value).collect())
}
