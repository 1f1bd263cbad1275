//! What states say of the data.

use plca_em::{Given, Nmf, Plca, Plsa};
use plca_fit::{FitError, Init, Model, Reconstruct, Solver};
use plca_tensor::{Data, DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::support::exactly;

fn fitted<M: Model<f64>>(model: &M, data: &dyn Data<f64>) -> M::State {
    let run = model.on(data).unwrap().solver(Solver::Em).stop(exactly(30));
    let fit = run.run(Init::default(), &mut ChaCha8Rng::seed_from_u64(3));
    fit.unwrap().into_state()
}

/// A reconstruction has the cells of its state, and is the sum of its components; both are in the scale of the data.
#[test]
fn reconstructions_are_sums_of_components() {
    fn check<S: Reconstruct<Scalar = f64>>(state: &S, data: &dyn Data<f64>) {
        assert_eq!(state.shape(), data.shape());
        let whole = &state.reconstruct().unwrap().into_parts().1[..];
        let parts = (0..state.components()).map(|z| state.component(z).unwrap().into_parts().1);
        let mut sums = vec![0.0; whole.len()];
        for part in parts {
            sums.iter_mut().zip(&part).for_each(|(s, x)| *s += x);
        }
        let off = |(a, b): (&f64, &f64)| (a - b).abs();
        assert!(whole.iter().zip(&sums).map(off).all(|x| x <= 1e-11));
        let total: f64 = sums.iter().sum();
        assert!((total - data.total()).abs() < 1e-6 * total, "{total}");
        let mut at = 0;
        let ones = vec![1.0; sums.len()];
        let ones = DenseTensor::new(state.shape(), ones, Order::RowMajor).unwrap();
        ones.visit(&mut |index, _| {
            assert!((state.cell(index) - whole[at]).abs() < 1e-11 * total);
            at += 1;
        })
        .unwrap();
        assert_eq!(at, sums.len());
        let none = state.components();
        for refused in [state.component(none), state.cells(Some(none))] {
            let error = refused.unwrap_err();
            assert!(matches!(error, FitError::NoComponent { .. }), "{error}");
        }
    }
    for shape in [vec![7, 90], vec![4, 3, 5]] {
        let cells: usize = shape.iter().product();
        let values = (0..cells).map(|i| ((i * i * 7 + 3 * i) % 11) as f64);
        let data = DenseTensor::new(shape.clone(), values.collect(), Order::RowMajor).unwrap();
        let plca = Plca::new(3);
        check(&fitted(&plca, &data), &data);
        if shape.len() > 2 {
            continue;
        }
        for given in [Given::Rows, Given::Columns] {
            let plsa = Plsa::new(3).given(given);
            check(&fitted(&plsa, &data), &data);
        }
        let nmf = Nmf::new(3);
        check(&fitted(&nmf, &data), &data);
    }
}
