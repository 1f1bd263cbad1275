//! Shifted and transformed models: known iterates, and what their states are and say.

mod explained;
mod iterates;
mod states;

use plca_em::{IndexMaps, MapEntry, Shifted, Transformed};
use plca_fit::{Fit, Init, Model, Solver};
use plca_tensor::{Data, Real};

use crate::shifted::support::{complete, masked, rng};
use crate::support::exactly;

const SHAPE: [usize; 2] = [6, 7];

fn values(cells: usize) -> Vec<f64> {
    (0..cells)
        .map(|i| ((i * i * 7 + 3 * i) % 11) as f64)
        .collect()
}

/// The same data in every storage, complete and with hidden cells.
fn storages<T: Real>(shape: &[usize]) -> Vec<(&'static str, Box<dyn Data<T>>)> {
    let values = values(shape.iter().product());
    let mut all = complete::<T>(shape, &values);
    all.extend(masked::<T>(shape, &values, |i| i % 9 == 4));
    all
}

/// Shifts of two cells by fractions of a cell over eight; some leave the data.
fn maps() -> IndexMaps {
    let cell = |x: isize| usize::try_from(x).ok().filter(|&x| x < 8);
    let mut entries = Vec::new();
    for (map, place) in (-1..8isize).enumerate() {
        for from in 0..2 {
            let share = if map % 2 == 0 { 0.75 } else { 0.4 };
            for (step, weight) in [(0, share), (1, 1.0 - share)] {
                entries.push(MapEntry {
                    map,
                    from,
                    to: cell(place + from as isize + step),
                    weight,
                });
            }
        }
    }
    IndexMaps::from_entries(8, 2, entries).unwrap()
}

/// Two cells as they are and turned round, all inside eight.
fn turns() -> IndexMaps {
    let table: Vec<i64> = (0..7).flat_map(|x| [x, x + 1, x + 1, x]).collect();
    IndexMaps::new(8, 2, &table).unwrap()
}

fn shifted() -> Shifted {
    Shifted::new(2, vec![3, 2])
}

fn transformed() -> Transformed {
    Transformed::new(2, maps())
}

fn fitted<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    init: Init<T>,
    solver: Solver,
    n: usize,
) -> Fit<M::State> {
    let run = model.on(data).unwrap().solver(solver).stop(exactly(n));
    run.run(init, &mut rng(3)).unwrap()
}

fn near(now: &[f64], before: &[f64], what: &str) {
    assert_eq!(now.len(), before.len(), "{what}");
    let pairs = now.iter().zip(before);
    let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst <= 1e-11, "{what}: {worst}");
}
