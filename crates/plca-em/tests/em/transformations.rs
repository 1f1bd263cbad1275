//! Sets of transformations as index maps.

use nalgebra::DMatrix;
use plca_em::{IndexMaps, Likelihood, Positions, Transformation, Transformed};
use plca_fit::{Init, Model};
use plca_tensor::{DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;

use crate::support::{cases, floats, whole};

fn of_kind(kind: &str) -> Vec<Value> {
    let mut all = cases(include_str!("../../../testdata/golden/index_maps.json"));
    all.retain(|case| case["kind"] == kind);
    all
}

fn transformation(v: &Value) -> Transformation {
    let number = |name: &str| v[name].as_f64().unwrap();
    let mirror = v["mirror_columns"] == true;
    Transformation::new(number("angle_degrees"), number("scale"), mirror).unwrap()
}

// [EXT 2]
#[test]
fn maps_match_the_reference() {
    let cases = of_kind("map");
    assert!(cases.len() >= 30);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let kernel = whole(&case["kernel"]);
        let (extents, entries) = transformation(&case).shares([kernel[0], kernel[1]]);
        assert_eq!(extents.to_vec(), whole(&case["box"]), "{name}");
        let from: Vec<usize> = entries.iter().map(|e| e.0).collect();
        let to: Vec<usize> = entries.iter().map(|e| e.1).collect();
        assert_eq!(
            (from, to),
            (whole(&case["from"]), whole(&case["to"])),
            "{name}"
        );
        for (got, want) in entries.iter().zip(floats(&case["weight"])) {
            assert!((got.2 - want).abs() <= 1e-12, "{name}: {got:?} {want}");
        }
    }
}

// [EXT 2] [LV eq. 17]
#[test]
fn trajectories_match_the_reference() {
    let cases = of_kind("trajectory");
    assert_eq!(cases.len(), 3);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let all = case["transformations"].as_array().unwrap().iter();
        let all: Vec<_> = all.map(transformation).collect();
        let positions = match case["support"].as_str().unwrap() {
            "full" => Positions::Full,
            "centred" => Positions::Centred,
            _ => Positions::Valid,
        };
        let shape = whole(&case["V"]["shape"]);
        let maps = IndexMaps::placed(&all, &whole(&case["kernel"]), &shape, positions).unwrap();
        assert_eq!(maps.maps() as u64, case["maps"].as_u64().unwrap(), "{name}");
        let likelihood = match case["likelihood"].as_str().unwrap() {
            "literal" => Likelihood::Literal,
            _ => Likelihood::Conditional,
        };
        let k = case["K"].as_u64().unwrap() as usize;
        let model = Transformed::new(k, maps).likelihood(likelihood);
        let data = DenseTensor::new(shape, floats(&case["V"]["data"]), Order::RowMajor).unwrap();
        let algorithm = model.bind(&data).unwrap();
        let block = |v: &Value| {
            let values = floats(&v["data"]);
            DMatrix::from_vec(values.len() / k, k, values)
        };
        let weights = |v: &Value| DMatrix::from_vec(k, 1, floats(&v["data"]));
        let init = Init::default()
            .block("weights", weights(&case["init"]["pz"]))
            .block("kernels", block(&case["init"]["kernels"]))
            .block("impulses", block(&case["init"]["impulses"]));
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut at = init.parameters(&*algorithm, &mut rng).unwrap();
        let mut done = 0;
        for point in case["trajectory"].as_array().unwrap() {
            while done < point["iter"].as_u64().unwrap() {
                algorithm.step(&mut at, false).unwrap();
                done += 1;
            }
            let near = |what: &str, got: f64, want: f64| {
                let far = (got - want).abs();
                assert!(
                    far <= 1e-11 * want.abs().max(1.0),
                    "{name} {done} {what}: {got} {want}"
                );
            };
            near(
                "loglik",
                algorithm.objective(&at).unwrap(),
                point["loglik"].as_f64().unwrap(),
            );
            let same = |what: &str, got: &DMatrix<f64>, want: DMatrix<f64>| {
                got.iter()
                    .zip(&want)
                    .for_each(|(got, want)| near(what, *got, *want));
            };
            same("weights", at.at(0), weights(&point["pz"]));
            same("kernels", at.at(1), block(&point["kernels"]));
            if point["impulses"].is_object() {
                same("impulses", at.at(2), block(&point["impulses"]));
            }
        }
    }
}

/// Colours are carried along, and what has no place is refused.
#[test]
fn other_dimensions_are_carried_along() {
    let turn = [Transformation::new(90.0, 1.0, false).unwrap()];
    let flat = IndexMaps::placed(&turn, &[2, 3], &[4, 5], Positions::Full).unwrap();
    let colours = IndexMaps::placed(&turn, &[2, 3, 3], &[4, 5, 3], Positions::Full).unwrap();
    assert_eq!(
        (flat.maps(), flat.cells()),
        (colours.maps(), colours.cells() / 3)
    );
    assert_eq!(colours.kernel_shape(), [2, 3, 3]);
    for (kernel, shape) in [
        (&[2, 3, 2][..], &[4, 5, 3][..]),
        (&[2], &[4]),
        (&[6, 2], &[4, 5]),
    ] {
        assert!(IndexMaps::placed(&turn, kernel, shape, Positions::Valid).is_err());
    }
}

/// A table is read where the data have another shape than the maps: the same cells without one give the same steps, with boxes of several sizes at every
/// border.
#[test]
fn no_table_is_needed() {
    let turns = Transformation::product(&[0.0, 45.0], &[1.0], false).unwrap();
    let shape = vec![40, 36];
    let cells: usize = shape.iter().product();
    let values: Vec<f64> = (0..cells).map(|i| (i * 37 % 101) as f64).collect();
    for positions in [Positions::Valid, Positions::Centred, Positions::Full] {
        let maps = IndexMaps::placed(&turns, &[9, 7], &shape, positions).unwrap();
        let model = Transformed::new(2, maps);
        let by = |shape: Vec<usize>| {
            let data = DenseTensor::new(shape, values.clone(), Order::RowMajor).unwrap();
            let algorithm = model.bind(&data).unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(5);
            let mut at = Init::default().parameters(&*algorithm, &mut rng).unwrap();
            for _ in 0..3 {
                algorithm.step(&mut at, false).unwrap();
            }
            let objective = algorithm.objective(&at).unwrap();
            (at.matrices().to_vec(), objective)
        };
        let (without, table) = (by(shape.clone()), by(vec![cells]));
        assert!(
            (without.1 - table.1).abs() <= 1e-12 * table.1.abs(),
            "{positions:?}"
        );
        for (a, b) in without.0.iter().zip(&table.0) {
            let scale = b.amax();
            let worst = (a - b).amax();
            assert!(worst <= 1e-11 * scale, "{positions:?}: {worst} of {scale}");
        }
    }
}
