//! Coordinate descent with guarded extrapolation.

use plca_em::*;
use plca_tensor::strategies::*;
use plca_tensor::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

#[test]
fn thin() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (m, n, k) = (40, 30, 4);
    let plca0 = Plca::<f64>::builder(6).build().unwrap();
    let dummy = DenseTensor::new(vec![m, n], vec![1.0; m * n], Order::RowMajor).unwrap();
    let truth = plca0.init(&dummy, &PlcaInit::default(), &mut rng).unwrap();
    let c = truth
        .with_model(|x| sample_counts(x, 3000, &mut rng))
        .unwrap();
    let sparse = SparseTensor::<f64>::new(c).unwrap();
    let plca = Plca::<f64>::builder(k).build().unwrap();
    let start = plca.init(&sparse, &PlcaInit::default(), &mut rng).unwrap();
    let stop = Stop {
        max_iter: 200,
        tol: 0.0,
        check_every: 1,
        ..Stop::default()
    };
    let em = run(&plca.on(&sparse).unwrap(), start.clone(), &stop, ()).unwrap();
    let fast = Fast::new(plca.on(&sparse).unwrap()).unwrap();
    let f = run(&fast, FastState::new(start), &stop, ()).unwrap();
    for i in [0, 1, 2, 3, 4, 5, 10, 20, 50, 100, 200] {
        println!("{i} {} {}", em.trace[i].objective, f.trace[i].objective);
    }
    println!(
        "{:?} {:?}",
        fast.residual(&f.state),
        plca.on(&sparse).unwrap().residual(&em.state)
    );
    println!("{:?}", f.state.model().weights);
    panic!();
}
