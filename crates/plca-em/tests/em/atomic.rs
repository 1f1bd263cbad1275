//! A step whose prior fails changes nothing, whichever block it is on.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::{IndexMaps, Plca, Plsa, PriorError, Shifted, SimplexPrior, Transformed};
use plca_fit::laws::check_failure;
use plca_fit::{Cooling, FitError, Init, Iteration, Model, Solver, State, seed};
use plca_priors::{Dirichlet, PriorRules, Step};
use plca_tensor::{DenseTensor, Order};

use super::support::{Prior, exactly};

/// A prior that fails, after writing into the block if it is told to.
#[derive(Debug)]
struct Fails(bool);

impl PriorRules for Fails {}

impl SimplexPrior<f64> for Fails {
    fn update(
        &self,
        _: &DMatrix<f64>,
        theta: &mut DMatrix<f64>,
        _: &Step<'_>,
    ) -> Result<(), PriorError> {
        if self.0 {
            theta.fill(0.25);
        }
        Err(PriorError::Overflow { column: 1 })
    }

    fn ln_density(&self, _: &DMatrix<f64>, _: &Step<'_>) -> f64 {
        0.0
    }
}

fn data() -> DenseTensor<f64> {
    let values = vec![3., 1., 4., 1., 5., 9., 2., 6., 5., 3., 5., 8.];
    DenseTensor::new(vec![3, 4], values, Order::RowMajor).unwrap()
}

/// For every block: a prior that fails there, and on the others none or one that does not.
fn for_every_block(blocks: usize, check: impl Fn(Vec<Option<Prior<f64>>>)) {
    let good: Prior<f64> = Arc::new(Dirichlet::symmetric(2.0).unwrap());
    for at in 0..blocks {
        for (writes, others) in [(false, None), (true, None), (false, Some(good.clone()))] {
            let mut priors = vec![others; blocks];
            priors[at] = Some(Arc::new(Fails(writes)));
            check(priors);
        }
    }
}

fn failed(error: FitError) {
    assert!(matches!(error, FitError::Prior { .. }), "{error}");
}

/// Under each solver that takes it; a run tells no observer of a step that failed.
fn fails<M: Model<f64>>(model: &M) {
    let data = data();
    let algorithm = model.bind(&data).unwrap();
    let start = model.init(&data, Init::default(), &mut seed(3)).unwrap();
    let start = start.parameters();
    for solver in [
        Solver::Em,
        Solver::Squarem,
        Solver::Parabolic,
        Solver::Momentum,
    ] {
        check_failure(&*algorithm, solver, start).unwrap();
        failed(algorithm.step(&mut start.clone(), true).unwrap_err());
        let run = model.on(&data).unwrap().solver(solver).stop(exactly(3));
        let run = run.observe(|_: &Iteration<'_, f64>| panic!("it failed"));
        failed(run.run(Init::default(), &mut seed(3)).unwrap_err());
    }
}

/// Cooled too.
fn fails_cooled<M: Model<f64>>(model: &M) {
    fails(model);
    let data = data();
    let run = model.on(&data).unwrap().stop(exactly(3));
    let run = run.cool(Cooling::default(), &data, &data);
    failed(run.run(Init::default(), &mut seed(3)).unwrap_err());
}

#[test]
fn of_plca() {
    for_every_block(3, |priors| {
        let mut model = Plca::new(2);
        for (prior, block) in priors.into_iter().zip(["weights", "factor_0", "factor_1"]) {
            if let Some(prior) = prior {
                model = model.prior(block, prior);
            }
        }
        fails_cooled(&model);
    });
}

#[test]
fn of_plsa() {
    for_every_block(2, |priors| {
        let mut model = Plsa::new(2);
        for (prior, block) in priors.into_iter().zip(["basis", "mixture"]) {
            if let Some(prior) = prior {
                model = model.prior(block, prior);
            }
        }
        fails_cooled(&model);
    });
}

#[test]
fn of_shifted_and_transformed() {
    for_every_block(3, |priors| {
        let mut shifted = Shifted::new(2, vec![2, 2]);
        let corners = (0..6).map(|at| at / 3 * 4 + at % 3);
        let table: Vec<i64> = corners.flat_map(|c| [c, c + 1, c + 4, c + 5]).collect();
        let mut transformed = Transformed::new(2, IndexMaps::new(12, 4, &table).unwrap());
        for (prior, block) in priors.into_iter().zip(["weights", "kernels", "impulses"]) {
            if let Some(prior) = prior {
                shifted = shifted.prior(block, prior.clone());
                transformed = transformed.prior(block, prior);
            }
        }
        fails(&shifted);
        fails(&transformed);
    });
}
