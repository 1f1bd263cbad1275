//! Masses of a model within the observed cells.

use nalgebra::{DMatrix, dmatrix};

use plca_tensor::{
    Coordinates, Cp, Data, DenseTensor, Factor, Modes, Order, Real, Request, Rule, SparseTensor,
};

/// Nearly all of the mass of row 0 and of column 0 is hidden; of what is left of column 0, much beside one more hidden cell.
fn shares<T: Real>(heavy: f64) -> [Vec<Vec<f64>>; 2] {
    let (shape, cells) = (vec![2, 2, 3], 12);
    let mut seen = vec![true; cells];
    for hidden in [0, 1, 7] {
        seen[hidden] = false;
    }
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
    let sparse = SparseTensor::all_but(list(true), list(false)).unwrap();
    let dense = DenseTensor::with_mask(shape.clone(), values.clone(), Order::RowMajor, &seen);
    let of = |x: f64| T::lit(x);
    let factors = [
        dmatrix![of(heavy), of(0.3); of(0.7), of(0.1)],
        dmatrix![of(heavy), of(0.1); of(0.3), of(0.9)],
        dmatrix![of(heavy), of(0.1); of(0.5 * heavy), of(0.6); of(0.9), of(0.7)],
    ];
    let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
    let model = Cp {
        weights: Some(&[of(0.25), of(0.75)]),
        factors: &factors,
    };
    [&sparse as &dyn Data<T>, &dense.unwrap()].map(|data| exposures(data, &model))
}

/// Masses within the observed cells, mode by mode.
fn exposures<T: Real>(data: &dyn Data<T>, model: &Cp<'_, T>) -> Vec<Vec<f64>> {
    let order = model.factors.len();
    let request = Request::counts(Modes::all(order)).rule(Rule::Exposure);
    let found = data.e_step(model, &request).unwrap();
    let mode = |m| found.counts(m).iter().map(|x| x.to_f64()).collect();
    (0..order).map(mode).collect()
}

#[test]
fn what_is_left_of_a_hidden_mass_keeps_its_digits() {
    let agree = |[got, want]: [Vec<Vec<f64>>; 2], tolerance: f64| {
        for (got, want) in got.concat().into_iter().zip(want.concat()) {
            assert!((got - want).abs() <= tolerance * want, "{got} {want}");
        }
    };
    for heavy in [1.0, 1e3, 1e6, 1e12, 1e30, 1e90] {
        agree(shares::<f64>(heavy), 1e-14);
    }
    for heavy in [1.0, 1e3, 1e6, 1e12] {
        agree(shares::<f32>(heavy), 1e-5);
    }
}

/// Masses within the observed cells by every storage: order by order, for factors of these magnitudes and a weight.
fn of_many_modes<T: Real>(magnitudes: &[f64], weight: f64) -> Vec<(&'static str, Vec<Vec<f64>>)> {
    let order = magnitudes.len();
    let shape = vec![2; order];
    let cells = 1 << order;
    let index = |at: usize| (0..order).map(move |m| ((at >> (order - 1 - m)) & 1) as u32);
    let seen: Vec<bool> = (0..cells).map(|at| at % 7 != 3).collect();
    let list = |keep: &dyn Fn(usize) -> bool| Coordinates {
        shape: shape.clone(),
        indices: (0..cells).filter(|&at| keep(at)).flat_map(index).collect(),
        values: vec![T::one(); (0..cells).filter(|&at| keep(at)).count()],
    };
    let ones = vec![T::one(); cells];
    let dense = DenseTensor::with_mask(shape.clone(), ones, Order::RowMajor, &seen).unwrap();
    let all_but = SparseTensor::all_but(list(&|_| true), list(&|at| !seen[at])).unwrap();
    let stored = SparseTensor::stored_only(list(&|at| seen[at])).unwrap();
    let entry = |m: usize, i: usize, z: usize| 1.0 + ((m * 3 + i * 5 + z * 2) % 7) as f64;
    let factors: Vec<_> = (magnitudes.iter().enumerate())
        .map(|(m, by)| DMatrix::from_fn(2, 3, |i, z| T::lit(entry(m, i, z) * by)))
        .collect();
    let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
    let weights = [0.5, 1.0, 2.0].map(|w| T::lit(w * weight));
    let model = Cp {
        weights: Some(&weights),
        factors: &factors,
    };
    let storages: [(_, &dyn Data<T>); 3] = [
        ("dense", &dense),
        ("all but hidden", &all_but),
        ("stored only", &stored),
    ];
    storages
        .map(|(name, data)| (name, exposures(data, &model)))
        .to_vec()
}

/// With many modes the products of single precision leave its range, on the way or for good; their scale is kept apart.
#[test]
fn many_modes_neither_underflow_nor_overflow() {
    for order in 6..=9 {
        let half = order / 2;
        let mixed = |a: f64, b: f64| (0..order).map(move |m| if m < half { a } else { b });
        for (magnitudes, weight) in [
            (vec![1e-4; order], 1.0),
            (vec![1e3; order], 1.0),
            (vec![1e5; order], 1e-20),
            (vec![1e-5; order], 1e20),
            (mixed(1e-13, 1e13).collect(), 1.0),
            (mixed(1e13, 1e-13).collect(), 1.0),
        ] {
            let single = of_many_modes::<f32>(&magnitudes, weight);
            let double = of_many_modes::<f64>(&magnitudes, weight);
            for ((name, got), (_, want)) in single.into_iter().zip(double) {
                for (g, w) in got.concat().into_iter().zip(want.concat()) {
                    // An odd number of modes leaves one magnitude over.
                    assert!((1e-36..1e36).contains(&w), "the case is wrong: {w}");
                    assert!(
                        (g - w).abs() <= 1e-5 * w,
                        "{name}, {magnitudes:?}: {g} not {w}"
                    );
                }
            }
        }
    }
}

/// What is left of the first mode's indices, the last of which is wholly hidden, but for this cell; for factors of these magnitudes, component by component.
fn beside_a_hidden_slice<T: Real>(
    magnitudes: [[f64; 2]; 3],
    seen: Option<(usize, usize)>,
) -> DMatrix<T> {
    let shape = [2, 2, 3];
    let (mut entries, mut hidden) = (Coordinates::empty(&shape), Coordinates::empty(&shape));
    for (j, k) in (0..2).flat_map(|j| (0..3).map(move |k| (j, k))) {
        entries.push(&[0, j, k], T::one());
        match seen == Some((j, k)) {
            true => entries.push(&[1, j, k], T::one()),
            false => hidden.push(&[1, j, k], T::one()),
        }
    }
    let data = SparseTensor::all_but(entries, hidden).unwrap();
    let entry = |m: usize, i: usize, z: usize| 1.0 + ((m * 3 + i * 5 + z * 2) % 7) as f64;
    let of = |m: usize| {
        DMatrix::from_fn(shape[m], 2, |i, z| {
            T::lit(entry(m, i, z) * magnitudes[m][z])
        })
    };
    let factors = [0, 1, 2].map(of);
    let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
    let model = Cp {
        weights: None,
        factors: &factors,
    };
    let request = Request::counts(Modes::one(0)).rule(Rule::Exposure);
    let mut found = data.e_step(&model, &request).unwrap();
    found.take(0)
}

/// Nothing is left of a wholly hidden slice: not where products overflow or lose their digits on the way, nor where the pass leaves out
/// entries beside larger ones.
#[test]
fn nothing_is_left_of_a_hidden_slice() {
    fn check<T: Real>(magnitudes: [[f64; 2]; 3]) {
        let left = beside_a_hidden_slice::<T>(magnitudes, None);
        assert!(left.row(0).iter().all(|&x| x > T::zero()), "{left}");
        assert!(left.row(1).iter().all(|&x| x == T::zero()), "{left}");
    }
    let beside = |tiny: f64| [[1.0, tiny], [tiny, 1.0], [1.0, 1.0]];
    check::<f64>([[1.0; 2]; 3]);
    check::<f32>([[1.0; 2]; 3]);
    check::<f64>([[1e200; 2], [1e-160; 2], [1e-160; 2]]);
    check::<f64>([[1e-200; 2], [1e155; 2], [1e155; 2]]);
    check::<f64>(beside(1e-160));
    check::<f32>(beside(1e-24));
}

/// What is left where nearly all is hidden is a number also where the products of the other factors are none, or have few digits.
#[test]
fn what_is_left_is_a_number_where_products_are_none() {
    let left = |magnitudes| beside_a_hidden_slice::<f64>(magnitudes, Some((1, 0)));
    let one = left([[1.0; 2]; 3]);
    assert!(one.row(1).iter().all(|&x| x > 0.0));
    for [a, b] in [[1e-200, 1e155], [1e200, 1e-160], [1e200, 1e-145]] {
        let scaled = left([[a; 2], [b; 2], [b; 2]]);
        for (x, y) in one.iter().zip(&scaled) {
            assert!(
                (y / (a * b * b) / x - 1.0).abs() < 1e-12,
                "{a:e} {b:e}: {one} {scaled}"
            );
        }
    }
}

/// A power of two in one factor changes no bit of what is left, as long as the result is a normal number.
#[test]
fn what_is_left_has_no_unit() {
    fn left<T: Real>(heavy: f64, powers: [i32; 3]) -> Vec<f64> {
        let third = [1.0 / 3.0, heavy / 7.0].map(|x| T::lit(x).to_f64());
        let of = |power: i32| third.map(|x| x * 2f64.powi(power));
        let found = beside_a_hidden_slice::<T>(powers.map(of), Some((1, 0)));
        found.iter().map(|x| x.to_f64()).collect()
    }
    fn check<T: Real>(heavy: f64, powers: impl Iterator<Item = i32>) {
        let plain = left::<T>(heavy, [0; 3]);
        for power in powers {
            let halves = [power / 2, power - power / 2];
            for powers in [[0, 0, power], [0, power, 0], [0, halves[0], halves[1]]] {
                let got = left::<T>(heavy, powers);
                let want = plain.iter().map(|x| x * 2f64.powi(power));
                assert!(got.iter().copied().eq(want), "{heavy:e} 2^{powers:?}");
            }
        }
    }
    for heavy in [1.0, 1e3, 1e6, 1e9] {
        check::<f64>(heavy, (-1015..900).step_by(5));
        check::<f32>(heavy, -120..30);
    }
}
