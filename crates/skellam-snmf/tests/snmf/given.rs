//! Starts of variational Bayes that give some blocks: the others explain them.

use nalgebra::DMatrix;
use plca_fit::seed as rng;
use plca_fit::{Algorithm, Init, Model, State, explain::begin};
use plca_tensor::{Data, DenseTensor, Order};
use skellam_snmf::{ShiftedSnmfVb, SignedCpVb, SnmfVb};

const K: usize = 3;

fn data(shape: &[usize]) -> DenseTensor<f64> {
    let cells: usize = shape.iter().product();
    let values = (0..cells).map(|i| ((i * i * 7 + i * 3) % 23) as f64 - 9.0);
    DenseTensor::new(shape.to_vec(), values.collect(), Order::RowMajor).unwrap()
}

/// Under the default priors: shapes of 1 and as many counts as the data have, or `few`; rates of 0.001 and 1.
fn even(algorithm: &dyn Algorithm<f64>, few: bool) -> Vec<DMatrix<f64>> {
    let specs = algorithm.blocks().iter();
    let even = specs.map(|spec| {
        let (rows, columns) = spec.shape;
        let count = algorithm.unit() / (rows * columns) as f64;
        let value = match spec.name.ends_with("_rate") {
            true => 1.001,
            false if few => 1.0,
            false => 1.0 + count,
        };
        DMatrix::from_element(rows, columns, value)
    });
    even.collect()
}

/// Of every block of a fit, given alone: no seed changes what the others begin with, and they are no worse than even ones.
fn explained<M: Model<f64>>(model: &M, data: &dyn Data<f64>, few: bool) {
    let fit = model.fit(data, &mut rng(1)).unwrap();
    let algorithm = model.bind(data).unwrap();
    let specs = algorithm.blocks();
    let even = even(&*algorithm, few);
    for j in (0..specs.len()).filter(|&j| !specs[j].follows) {
        let block = fit.state().parameters().at(j);
        // Weights are a number each, and tell no component from another.
        let tells = block.len() > K;
        let init = Init::default().block(&*specs[j].name, block.clone());
        let starts = [1, 2].map(|seed| init.parameters(&*algorithm, &mut rng(seed)).unwrap());
        let name = &specs[j].name;
        assert_eq!(starts[0].at(j), block, "{name}");
        assert_eq!(
            starts[0].matrices() == starts[1].matrices(),
            tells,
            "{name}"
        );
        if !tells {
            continue;
        }
        let mut known = even.clone();
        known[j].clone_from(block);
        let known = algorithm
            .objective(&begin(&*algorithm, known).unwrap())
            .unwrap();
        let found = algorithm.objective(&starts[0]).unwrap();
        assert!(found > known, "{name}: {found} {known}");
        // Components come apart.
        let others = (0..specs.len()).filter(|&i| i != j && !specs[i].follows);
        for i in others.filter(|&i| starts[0].at(i).len() > K) {
            assert!(specs[i].tells_apart(starts[0].at(i)), "{}", specs[i].name);
        }
    }
}

#[test]
fn what_is_given_explains_the_rest() {
    explained(&SnmfVb::new(K), &data(&[11, 20]), true);
    let cp = |k| SignedCpVb::new(k);
    explained(&cp(K), &data(&[6, 5, 8]), false);
    let scaled = cp(K).scale_mode(Some(2));
    explained(&scaled, &data(&[6, 5, 8]), false);
    let shifted = ShiftedSnmfVb::new(K, vec![4]);
    explained(&shifted, &data(&[40]), false);
}
