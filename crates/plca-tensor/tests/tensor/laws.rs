//! The laws of storages hold for every storage, and each catches the error that it is for.

use plca_tensor::laws::{Law, check};
use plca_tensor::strategies::KeptBlocks;
use plca_tensor::{
    Coordinates, Cp, Data, DataError, DenseTensor, Expected, Mask, Order, OutOfCore, Part, Request,
    SparseTensor, Summary,
};

const SHAPE: [usize; 2] = [3, 4];

fn values() -> Vec<f64> {
    (0..12).map(|i| f64::from(i * 5 % 7)).collect()
}

fn dense() -> DenseTensor<f64> {
    DenseTensor::new(SHAPE.to_vec(), values(), Order::RowMajor).unwrap()
}

#[test]
fn every_storage_obeys() {
    let mut hidden = values();
    hidden[5] = f64::NAN;
    let masked = DenseTensor::masked(SHAPE.to_vec(), hidden, Order::ColumnMajor).unwrap();
    let signed = values().iter().map(|v| v - 3.0).collect();
    let signed = DenseTensor::new(SHAPE.to_vec(), signed, Order::RowMajor).unwrap();
    let entries = Coordinates {
        shape: vec![3, 4],
        indices: vec![0, 1, 2, 3, 0, 1, 1, 2],
        values: vec![1.5, 2.0, 0.5, 4.0],
    };
    let gone = Coordinates {
        values: vec![1.0],
        indices: vec![1, 2],
        ..entries.clone()
    };
    let sparse = SparseTensor::new(entries.clone()).unwrap();
    let blocks = KeptBlocks::cut(&entries, 2).unwrap();
    let all: [&dyn Data<f64>; 8] = [
        &dense(),
        &masked,
        &signed,
        &sparse,
        &SparseTensor::stored_only(entries.clone()).unwrap(),
        &SparseTensor::all_but(entries, gone).unwrap(),
        &Part::of(&sparse, |index, x| x * index[1] as f64).unwrap(),
        &OutOfCore::new(blocks).unwrap(),
    ];
    for data in all {
        assert_eq!(check(data), Ok(()), "{data:?}");
    }
    let single = values().iter().map(|&v| v as f32 / 3.0).collect();
    let single = DenseTensor::new(SHAPE.to_vec(), single, Order::RowMajor).unwrap();
    check::<f32>(&single).unwrap();
}

/// What every storage knows of values of either sign, wherever the first negative one stands; the sums are exact.
#[test]
fn sums_of_either_sign_are_known() {
    let large = 2f64.powi(52);
    for (values, absolute, integers) in [
        (vec![-3.0, 1.0, 0.0, 2.0], 6.0, true),
        (vec![1.0, -0.0, -3.0, 2.0], 6.0, true),
        (vec![1.0, 0.5, 2.0, -3.0], 6.5, false),
        (vec![-1.5, -2.5, -0.0, -3.0], 7.0, false),
        (vec![1.0, 0.0, -large, 2.0], large + 3.0, true),
        (vec![large - 0.5, 0.0, -0.5, 0.0], large, false),
    ] {
        let total: f64 = values.iter().sum();
        let mut beside_hidden = values.clone();
        beside_hidden.insert(1, f64::NAN);
        let masked = DenseTensor::masked(vec![5], beside_hidden, Order::RowMajor);
        let mut all: Vec<Box<dyn Data<f64>>> = vec![Box::new(masked.unwrap())];
        for shape in [vec![4], vec![2, 2], vec![1, 2, 2]] {
            for order in [Order::RowMajor, Order::ColumnMajor] {
                let dense = DenseTensor::new(shape.clone(), values.clone(), order);
                all.push(Box::new(dense.unwrap()));
            }
            let mut entries = Coordinates::empty(&shape);
            for (at, &x) in values.iter().enumerate() {
                let index = match shape.len() {
                    1 => vec![at],
                    2 => vec![at / 2, at % 2],
                    _ => vec![0, at / 2, at % 2],
                };
                entries.push(&index, x);
            }
            all.push(Box::new(SparseTensor::new(entries.clone()).unwrap()));
            all.push(Box::new(SparseTensor::stored_only(entries).unwrap()));
        }
        for data in all {
            let known = data.summary();
            let sums = (known.total, known.absolute, known.integers);
            assert_eq!(sums, (total, absolute, integers), "{data:?}");
        }
    }
}

/// A storage with one error.
#[derive(Debug)]
struct Wrong {
    data: DenseTensor<f64>,
    summary: Summary,
    law: Law,
}

impl Data<f64> for Wrong {
    fn shape(&self) -> &[usize] {
        self.data.shape()
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        if self.law == Law::Visits {
            each(&[0, 1], 5.0);
        }
        self.data.visit(each)
    }

    fn visit_mask(&self, each: &mut dyn FnMut(&[usize])) -> Result<(), DataError> {
        if self.law == Law::Mask {
            each(&[0, 1]);
        }
        Ok(())
    }

    fn marginal(&self, mode: usize) -> Result<Vec<f64>, DataError> {
        let mut sums = self.data.marginal(mode)?;
        if self.law == Law::Marginals && mode == 1 {
            sums.swap(0, 1);
        }
        Ok(sums)
    }

    fn e_step(
        &self,
        model: &Cp<'_, f64>,
        request: &Request<'_, f64>,
    ) -> Result<Expected<f64>, DataError> {
        let mut e = self.data.e_step(model, request)?;
        if self.law == Law::EStep && model.components() == 2 {
            let counts = (0..2).map(|mode| Some(e.get(mode)? * (1.0 + 1e-9)));
            e = Expected::new(counts.collect(), Some(e.value()));
        }
        Ok(e)
    }
}

#[test]
fn every_error_is_caught() {
    for law in [
        Law::Visits,
        Law::Mask,
        Law::Summary,
        Law::Marginals,
        Law::EStep,
    ] {
        let mut summary = dense().summary().clone();
        match law {
            Law::Summary => summary.total += 1.0,
            Law::Mask => summary.mask = Mask::Hidden,
            _ => {}
        }
        let wrong = Wrong {
            data: dense(),
            summary,
            law,
        };
        assert_eq!(check(&wrong).unwrap_err().law, law);
    }
}
