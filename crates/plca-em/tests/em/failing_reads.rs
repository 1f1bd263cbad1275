//! Data of any kind whose reads fail: whatever asked for them returns why, and nothing that was computed.

use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nalgebra::dmatrix;
use plca_em::{
    EmError, Evaluation, Given, IndexMaps, Likelihood, Missing, Nmf, NmfState, Online, Plca,
    PlcaState, Plsa, PlsaState, Shifted, Support, Transformed, Update, hold_out,
};
use plca_fit::{
    Checkpoint, Cooling, FitError, Impossible, Init, Model, Solver, State, Transform, seed,
};
use plca_priors::Dirichlet;
use plca_tensor::{
    Cp, Data, DataError, DenseTensor, Expected, Order, Part, Request, Rule, Summary, unobserved,
};

use super::support::{Prior, exactly};

/// Data that fail after so many reads: what was visited until then was half of it.
#[derive(Debug)]
struct Failing<'a> {
    whole: &'a dyn Data<f64>,
    left: AtomicUsize,
    failed: AtomicBool,
}

const GONE: DataError = DataError::NoMass;

impl<'a> Failing<'a> {
    fn after(reads: usize, whole: &'a dyn Data<f64>) -> Self {
        Self {
            whole,
            left: AtomicUsize::new(reads),
            failed: AtomicBool::new(false),
        }
    }

    fn read(&self) -> Result<(), DataError> {
        let left = |n: usize| n.checked_sub(1);
        let order = Ordering::Relaxed;
        match self.left.fetch_update(order, order, left) {
            Ok(_) => Ok(()),
            Err(_) => {
                self.failed.store(true, order);
                Err(GONE)
            }
        }
    }
}

impl Data<f64> for Failing<'_> {
    fn shape(&self) -> &[usize] {
        self.whole.shape()
    }

    fn summary(&self) -> &Summary {
        self.whole.summary()
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        let good = self.read();
        let all = self.summary().nnz;
        let mut left = if good.is_ok() { all } else { all / 2 };
        self.whole.visit(&mut |index, value| {
            if left > 0 {
                each(index, value);
            }
            left = left.saturating_sub(1);
        })?;
        good
    }

    fn visit_mask(&self, each: &mut dyn FnMut(&[usize])) -> Result<(), DataError> {
        self.read()?;
        self.whole.visit_mask(each)
    }

    fn e_step(
        &self,
        model: &Cp<'_, f64>,
        request: &Request<'_, f64>,
    ) -> Result<Expected<f64>, DataError> {
        // Of complete data no cell need be read for an exposure.
        if !(matches!(request.rule, Rule::Exposure) && self.is_complete()) {
            self.read()?;
        }
        self.whole.e_step(model, request)
    }
}

/// Calls `entry` with data that fail at their first read, their second and so on until it needs no more.
fn fails<E>(name: &str, entry: impl Fn(&dyn Data<f64>) -> Result<(), E>)
where
    E: From<DataError> + Debug + Display + PartialEq,
{
    let (shape, values) = (
        vec![4, 3],
        vec![3., 1., 4., 1., 5., 9., 2., 6., 5., 3., 5., 8.],
    );
    let complete = DenseTensor::new(shape.clone(), values.clone(), Order::RowMajor).unwrap();
    let mut hidden = values;
    [hidden[2], hidden[9]] = [f64::NAN; 2];
    let masked = DenseTensor::masked(shape, hidden, Order::RowMajor).unwrap();
    for whole in [&complete as &dyn Data<f64>, &masked] {
        entry(whole).unwrap_or_else(|e| panic!("{name}: {e}"));
        for reads in 0.. {
            let data = Failing::after(reads, whole);
            let result = entry(&data);
            if !data.failed.into_inner() {
                assert_eq!(result, Ok(()), "{name}, {reads} reads");
                break;
            }
            assert_eq!(result, Err(GONE.into()), "{name}, {reads} reads");
        }
    }
}

/// What a model of the engine does with data: its start, a step, its measures, and runs under every solver that takes it.
fn model_fails<M: Model<f64>>(name: &str, model: &M) {
    fails::<FitError>(name, |data| {
        model.init(data, Init::default(), &mut seed(5)).map(drop)
    });
    let whole = DenseTensor::new(vec![4, 3], vec![2.0; 12], Order::RowMajor).unwrap();
    let start = model.init(&whole, Init::default(), &mut seed(5)).unwrap();
    let at = start.parameters();
    for measure in [false, true] {
        fails::<FitError>(name, |data| {
            let mut at = at.clone();
            model.bind(data)?.step(&mut at, measure).map(drop)
        });
    }
    fails::<FitError>(name, |data| model.bind(data)?.objective(at).map(drop));
    fails::<FitError>(name, |data| match model.bind(data)?.residual(at) {
        Err(FitError::NoResidual { .. }) => Ok(()),
        residual => residual.map(drop),
    });
    for &solver in Solver::ALL {
        let run = |data: &dyn Data<f64>| {
            let stop = exactly(3).check_every(1);
            let run = model.on(data)?.solver(solver).stop(stop);
            run.resume(Checkpoint::new(at.clone())).map(drop)
        };
        if run(&whole).is_ok() {
            fails(&format!("{name}, {solver}"), run);
        }
    }
}

/// A prior after whose steps the support is looked at.
fn emptying() -> Prior<f64> {
    Arc::new(Dirichlet::symmetric(0.1).unwrap())
}

#[test]
fn of_plca() {
    let plain = || Plca::new(2);
    model_fails("plca", &plain());
    model_fails("plca, tempered", &plain().temper(0.7));
    let multiplicative = plain().missing(Missing::Multiplicative);
    model_fails("plca, multiplicative", &multiplicative);
    model_fails("plca, weights", &plain().prior("weights", emptying()));
    model_fails("plca, factor", &plain().prior("factor_1", emptying()));
    let config = plain();
    let zero = dmatrix![0.0, 1.0; 1.0, 1.0; 1.0, 1.0; 1.0, 1.0];
    let zero = Init::default().block("factor_0", zero);
    // What is 0 is looked for in the data.
    fails::<FitError>("plca, zeros", |data| {
        config.init(data, zero.clone(), &mut seed(5)).map(drop)
    });
}

#[test]
fn of_plsa() {
    let plain = || Plsa::new(2);
    model_fails("plsa", &plain());
    model_fails("plsa of rows", &plain().given(Given::Rows));
    model_fails("plsa, tempered", &plain().temper(0.7));
    model_fails("plsa, basis", &plain().prior("basis", emptying()));
    model_fails("plsa, mixture", &plain().prior("mixture", emptying()));
}

#[test]
fn of_nmf() {
    let plain = || Nmf::new(2);
    model_fails("nmf", &plain());
    model_fails("nmf, imputation", &plain().missing(Missing::Imputation));
    model_fails("nmf, sequential", &plain().update(Update::Sequential));
}

/// Models that copy the data, and look at these again where a cell has lost its support.
#[test]
fn of_shifted() {
    for evaluation in [
        Evaluation::Auto,
        Evaluation::Direct,
        Evaluation::Sparse,
        Evaluation::Matrix,
        Evaluation::Fft,
    ] {
        for support in [Support::Valid, Support::Full] {
            let config = Shifted::new(2, vec![2, 2])
                .support(support)
                .evaluation(evaluation);
            let name = format!("shifted, {support:?}, {evaluation:?}");
            model_fails(&name, &config);
        }
    }
    let config = Shifted::new(2, vec![2, 2]).prior("impulses", emptying());
    model_fails("shifted, prior", &config);
}

#[test]
fn of_transformed() {
    let table: Vec<i64> = (0..6)
        .map(|at| at / 2 * 3 + at % 2)
        .flat_map(|c| [c, c + 1, c + 3, c + 4])
        .collect();
    for likelihood in [Likelihood::Conditional, Likelihood::Literal] {
        let maps = IndexMaps::new(12, 4, &table).unwrap();
        let config = Transformed::new(2, maps).likelihood(likelihood);
        model_fails("transformed", &config);
    }
}

/// A cell without support is looked up in data that can no longer be read.
#[test]
fn where_the_support_was_lost() {
    fn lost<M: Model<f64>>(name: &str, model: &M) {
        let values = vec![3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0];
        let whole = DenseTensor::new(vec![4, 3], values, Order::RowMajor).unwrap();
        let start = model.init(&whole, Init::default(), &mut seed(5)).unwrap();
        let mut at = start.parameters().clone();
        at.change(|j, block| {
            if j == 2 {
                block.fill(0.0);
                block.row_mut(0).fill(1.0);
            }
        });
        let lost = Err(FitError::Support {
            index: vec![0, 2],
            value: 4.0,
        });
        for reads in 1..100 {
            let data = Failing::after(reads, &whole);
            let em = model.bind(&data);
            let result = em.and_then(|em| em.step(&mut at.clone(), true));
            let result = result.map(drop);
            assert!(
                result == lost || result == Err(GONE.into()),
                "{name}: {result:?}"
            );
            assert!(reads < 99 || result == lost, "{name}");
        }
    }
    lost("shifted", &Shifted::new(2, vec![2, 2]));
    let corners = [0, 1, 3, 4, 6, 7];
    let table: Vec<i64> = corners
        .iter()
        .flat_map(|c| [*c, c + 1, c + 3, c + 4])
        .collect();
    let transformed = Transformed::new(2, IndexMaps::new(12, 4, &table).unwrap());
    lost("transformed", &transformed);
}

#[test]
fn of_new_data() {
    let factor = |reach: f64| {
        let mut factor = dmatrix![1.0, 2.0; 3.0, 1.0; 1.0, 1.0; reach, reach];
        plca_tensor::normalise_columns(&mut factor);
        factor
    };
    for (solver, impossible, reach) in [
        (Solver::Em, Impossible::Refuse, 1.0),
        (Solver::Fast, Impossible::Refuse, 1.0),
        (Solver::Em, Impossible::Drop, 0.0),
        (Solver::Fast, Impossible::Drop, 0.0),
    ] {
        let stop = Transform::default().stop.max_iter(2);
        let how = Transform::default().solver(solver).stop(stop).along(1);
        let how = how.impossible(impossible);
        let name = format!("transform, {solver:?}, {impossible:?}");
        let even = dmatrix![0.5, 0.5; 0.5, 0.5];
        let plca = PlcaState::new(vec![0.5; 2].into(), vec![factor(reach), even.clone()]);
        let plca = plca.unwrap();
        fails::<FitError>(&name, |data| plca.transform(data, &how).map(drop));
        let plsa = PlsaState::new(Given::Columns, factor(reach), even.clone(), vec![0.5; 2]);
        let plsa = plsa.unwrap();
        fails::<FitError>(&name, |data| plsa.transform(data, &how).map(drop));
        let nmf = NmfState::new(factor(reach), even).unwrap();
        fails::<FitError>(&name, |data| nmf.transform(data, &how).map(drop));
    }
}

#[test]
fn of_what_looks_at_data_alone() {
    fails("hold_out", |data| {
        hold_out(data, 0.3, &mut seed(5)).map(drop)
    });
    fails("part", |data| Part::of(data, |_, x| x).map(drop));
    fails::<FitError>("part of a part", |data| {
        let part = Part::of(data, |_, x| x)?;
        let plca = Plca::new(2);
        let state = plca.init(&part, Init::default(), &mut seed(5))?;
        plca.bind(&part)?.objective(state.parameters()).map(drop)
    });
    fails("unobserved", |data| unobserved(data).map(drop));
    fn cooled<M: Model<f64>>(model: &M, data: &dyn Data<f64>) -> Result<(), FitError> {
        let parts = hold_out(data, 0.3, &mut seed(5));
        let parts = parts.map_err(|error| match error {
            EmError::Tensor(error) => FitError::Data(error),
            error => panic!("{error}"),
        })?;
        let run = model.on(data)?.stop(exactly(3));
        let run = run.cool(Cooling::default(), &parts.train, &parts.held);
        run.run(Init::default(), &mut seed(5)).map(drop)
    }
    fails("cooled plca", |data| cooled(&Plca::new(2), data));
    fails("cooled plsa", |data| cooled(&Plsa::new(2), data));
}

#[test]
fn of_streams() {
    fails::<FitError>("online plsa", |data| {
        let learner = Online::new(Plsa::new(2));
        let mut state = learner.init(&[4], &mut seed(5))?;
        learner.partial_fit(&mut state, data).map(drop)
    });
    fails::<FitError>("online plca", |data| {
        let plca = Plca::new(2).prior("factor_0", emptying());
        let learner = Online::new(plca);
        let mut state = learner.init(&[4], &mut seed(5))?;
        state.factors[0][(2, 0)] = 0.0;
        state.factors[0][(2, 1)] = 0.0;
        let sums = state.factors[0].row_sum();
        for (mut column, sum) in state.factors[0].column_iter_mut().zip(sums.iter()) {
            column /= *sum;
        }
        learner.partial_fit(&mut state, data).map(drop)
    });
}
