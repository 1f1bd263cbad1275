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
    let (mut index, mut at) = (vec![0; shape.len()], 0);
    let cells = shape.iter().product();
    let mut values = Vec::with_capacity(cells);
    while values.len() < cells {
        values.push(array.values[at]);
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < shape[d] {
                break;
            }
            at -= strides[d] * index[d];
            index[d] = 0;
        }
    }
    Some(values)
}
