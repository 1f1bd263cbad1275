//! Which cells are hidden.

use plca_tensor::{Coordinates, Data, DenseTensor, Mask, Order, SparseTensor};

#[test]
fn every_storage_tells_which_cells_are_hidden() {
    let (shape, hidden) = (vec![3, 9, 10], |i: usize| i % 7 == 2);
    let values: Vec<f64> = (0..270).map(|i| (i % 5) as f64).collect();
    let seen: Vec<bool> = (0..270).map(|i| !hidden(i)).collect();
    let dense =
        DenseTensor::with_mask(shape.clone(), values.clone(), Order::RowMajor, &seen).unwrap();
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
        SparseTensor::all_but(list(&|i| values[i] > 0.0 && !hidden(i)), list(&hidden)).unwrap();
    let stored = SparseTensor::stored_only(list(&|i| !hidden(i))).unwrap();
    let storages: [&dyn Data<f64>; 3] = [&dense, &all_but, &stored];
    for data in storages {
        let mut cells = std::collections::BTreeSet::new();
        data.visit_mask(&mut |index| {
            cells.insert(index.iter().zip(&shape).fold(0, |p, (i, n)| p * n + i));
        })
        .unwrap();
        let listed = data.summary().mask == Mask::Hidden;
        let want = (0..270).filter(|&i| hidden(i) == listed);
        assert_eq!(cells, want.collect());
    }
}
