//! Which cells are hidden.

use nalgebra::DMatrix;
use plca_tensor::{
    Coordinates, Expected, Mask, MaskedSparse, MaskedTensor, Model, Observed, Order, Wanted,
};

/// The same cells with another way to find the hidden ones.
struct Plain(MaskedTensor<f64>);

impl Observed<f64> for Plain {
    fn shape(&self) -> &[usize] {
        self.0.shape()
    }
    fn total(&self) -> f64 {
        self.0.total()
    }
    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }
    fn for_each(&self, visit: &mut dyn FnMut(&[usize], f64)) {
        self.0.for_each(visit);
    }
    fn expect(&self, model: &Model<'_, f64>, wanted: Wanted<'_>) -> Expected<f64> {
        self.0.expect(model, wanted)
    }
    fn exposure(&self, model: &Model<'_, f64>, modes: &[bool]) -> Vec<Option<DMatrix<f64>>> {
        self.0.exposure(model, modes)
    }
    fn multiplier(&self, model: &Model<'_, f64>, mode: usize) -> DMatrix<f64> {
        self.0.multiplier(model, mode)
    }
}

#[test]
fn every_storage_tells_which_cells_are_hidden() {
    let (shape, hidden) = (vec![3, 9, 10], |i: usize| i % 7 == 2);
    let values: Vec<f64> = (0..270).map(|i| (i % 5) as f64).collect();
    let seen: Vec<bool> = (0..270).map(|i| !hidden(i)).collect();
    let dense =
        MaskedTensor::with_mask(shape.clone(), values.clone(), Order::RowMajor, &seen).unwrap();
    let list = |keep: &dyn Fn(usize) -> bool| Coordinates {
        shape: shape.clone(),
        indices: (0..270)
            .filter(|&i| keep(i))
            .flat_map(|i| [i / 90, i / 10 % 9, i % 10])
            .map(|i| i as u32)
            .collect(),
        values: (0..270).filter(|&i| keep(i)).map(|i| values[i]).collect(),
    };
    let all_but =
        MaskedSparse::all_but(list(&|i| values[i] > 0.0 && !hidden(i)), list(&hidden)).unwrap();
    let stored = MaskedSparse::stored_only(list(&|i| !hidden(i))).unwrap();
    let plain = Plain(dense.clone());
    let storages: [&dyn Observed<f64>; 4] = [&dense, &all_but, &stored, &plain];
    for data in storages {
        let mut cells = std::collections::BTreeSet::new();
        let which = data.visit_mask(&mut |index| {
            cells.insert(index.iter().zip(&shape).fold(0, |p, (i, n)| p * n + i));
        });
        let want = (0..270).filter(|&i| hidden(i) == (which == Mask::Hidden));
        assert_eq!(cells, want.collect());
    }
}
