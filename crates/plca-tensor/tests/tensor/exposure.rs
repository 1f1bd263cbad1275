//! Masses of a model within the observed cells.

use nalgebra::dmatrix;

use plca_tensor::{Coordinates, Factor, MaskedSparse, MaskedTensor, Model, Observed, Order, Real};

/// Nearly all of the mass of row 0 and of column 0 is hidden.
fn shares<T: Real>(heavy: f64) -> [Vec<Vec<f64>>; 2] {
    let (shape, cells) = (vec![2, 2, 3], 12);
    let mut seen = vec![true; cells];
    seen[0] = false;
    seen[7] = false;
    let values: Vec<T> = (1..=cells).map(|x| T::lit(x as f64)).collect();
    let index = |at: usize| [at / 6, at / 3 % 2, at % 3].map(|i| i as u32);
    let list = |keep: bool| Coordinates {
        shape: shape.clone(),
        indices: (0..cells)
            .filter(|&i| seen[i] == keep)
            .flat_map(index)
            .collect(),
        values: (0..cells)
            .filter(|&i| seen[i] == keep)
            .map(|i| values[i])
            .collect(),
    };
    let sparse = MaskedSparse::all_but(list(true), list(false)).unwrap();
    let dense = MaskedTensor::with_mask(shape.clone(), values.clone(), Order::RowMajor, &seen);
    let of = |x: f64| T::lit(x);
    let factors = [
        dmatrix![of(heavy), of(0.3); of(0.7), of(0.1)],
        dmatrix![of(heavy), of(0.1); of(0.3), of(0.9)],
        dmatrix![of(heavy), of(0.1); of(0.2), of(0.6); of(0.9), of(0.7)],
    ];
    let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
    let model = Model {
        weights: Some(&[of(0.25), of(0.75)]),
        factors: &factors,
    };
    let modes = [true; 3];
    [&sparse as &dyn Observed<T>, &dense.unwrap()].map(|data| {
        let found = data.exposure(&model, &modes);
        let found = found.into_iter().flatten();
        found
            .map(|x| x.iter().map(|x| x.to_f64()).collect())
            .collect()
    })
}

#[test]
fn what_is_left_of_a_hidden_mass_keeps_its_digits() {
    let agree = |[got, want]: [Vec<Vec<f64>>; 2], tolerance: f64| {
        for (got, want) in got.concat().into_iter().zip(want.concat()) {
            assert!((got - want).abs() <= tolerance * want, "{got} {want}");
        }
    };
    for heavy in [1.0, 1e3, 1e6, 1e12] {
        agree(shares::<f64>(heavy), 1e-14);
    }
    for heavy in [1.0, 1e3, 1e6] {
        agree(shares::<f32>(heavy), 1e-5);
    }
}
