//! How much of each copy of a kernel was observed.

use nalgebra::DMatrix;
use plca_tensor::shift::advance;
use plca_tensor::{Data, DataError, Mask, Real};

use super::geometry::Geometry;
use crate::placed::position;

/// `e`: how much of a copy at each place falls on observed cells, place by component.
pub(crate) fn shares<T: Real>(
    g: &Geometry,
    data: &dyn Data<T>,
    kernels: &DMatrix<T>,
) -> Result<DMatrix<f64>, DataError> {
    let (places, k) = (g.impulse_cells(), kernels.ncols());
    if data.is_complete() && g.is_valid() {
        return Ok(DMatrix::from_element(places, k, 1.0));
    }
    let shape = g.data_shape();
    let mut listed = vec![false; shape.iter().product()];
    data.visit_mask(&mut |index| listed[position(index, shape)] = true)?;
    let seen = data.summary().mask == Mask::Observed;
    let mut shares = DMatrix::zeros(places, k);
    let (mut h, mut x) = (vec![0usize; shape.len()], vec![0usize; shape.len()]);
    for place in 0..places {
        let mut t = vec![0; shape.len()];
        for tap in 0..g.kernel_cells() {
            let inside = (0..t.len()).all(|d| {
                // x = h + t - o
                let cell = (h[d] + t[d]).checked_sub(g.offset()[d]);
                x[d] = cell.unwrap_or(shape[d]);
                x[d] < shape[d]
            });
            if inside && listed[position(&x, shape)] == seen {
                for z in 0..k {
                    shares[(place, z)] += kernels[(tap, z)].to_f64();
                }
            }
            advance(&mut t, g.kernel_shape());
        }
        advance(&mut h, g.impulse_shape());
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use nalgebra::dmatrix;
    use plca_tensor::{DenseTensor, Order};

    use super::*;
    use crate::Support;

    /// Against the definition, from the observed cells: a copy at `h` has `K[x - h + o]` at `x`.
    #[test]
    fn shares_are_what_falls_on_observed_cells() {
        let size = [3, 4];
        let hidden = [(0, 0), (1, 2), (2, 3)];
        let values = (0..12).map(|at| match hidden.contains(&(at / 4, at % 4)) {
            true => f64::NAN,
            false => 1.0,
        });
        let data = DenseTensor::masked(size.to_vec(), values.collect(), Order::RowMajor).unwrap();
        let kernels = dmatrix![0.5, 0.1; 0.25, 0.2; 0.125, 0.3; 0.125, 0.4];
        for supports in [[Support::Valid; 2], [Support::Full; 2], [Support::Same; 2]] {
            let g = Geometry::new(&size, &[2, 2], &supports).unwrap();
            let shares = shares(&g, &data, &kernels).unwrap();
            let places = g.impulse_shape();
            assert_eq!(shares.shape(), (places[0] * places[1], 2));
            for place in 0..shares.nrows() {
                let h = [place / places[1], place % places[1]];
                for z in 0..2 {
                    let mut share = 0.0;
                    for at in (0..12).filter(|at| !hidden.contains(&(at / 4, at % 4))) {
                        let t = [at / 4 + g.offset()[0], at % 4 + g.offset()[1]];
                        let t = [0, 1].map(|d| t[d].checked_sub(h[d]).filter(|&t| t < 2));
                        if let [Some(a), Some(b)] = t {
                            share += kernels[(2 * a + b, z)];
                        }
                    }
                    assert!(
                        (shares[(place, z)] - share).abs() < 1e-15,
                        "{supports:?} {h:?}"
                    );
                }
            }
        }
    }
}
