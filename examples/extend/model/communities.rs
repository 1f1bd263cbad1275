//! A model of your own: communities of a graph. Weights of edges between `n` nodes are a mixture of products in which both modes have one
//! distribution,
//!
//! ```text
//! P(x, y) = Σ_z P(z) P(x | z) P(y | z)
//! ```
//!
//! E-step: expected counts of both modes, `C_0` and `C_1`. M-step: `P(x | z) ∝ C_0 + C_1`, `P(z) ∝ Σ_x C_0`.

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm, Factored, FitError, Model, Parameters, Settings, State,
    blocks::{Axes, BlockSpec, Blocks},
    em::{Counts, Em, Expectation, Wanted},
};
use plca_tensor::{Data, Factor, Modes, Real, Request, check_counts};

plca_fit::settings! {
    /// Settings of the model. Its blocks are `weights`, `P(z)`, and `members`, `P(x | z)` in columns.
    pub struct Communities, priors "" {}
}

// It has no settings besides.
plca_fit::by_name!(Communities {});

impl Settings for Communities {
    fn components(&self) -> usize {
        self.components
    }

    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)
    }
}

fn specs<T: Real>(nodes: usize, k: usize) -> Vec<BlockSpec<T>> {
    vec![
        BlockSpec::simplex("weights", (k, 1), Axes::WEIGHTS),
        BlockSpec::simplex("members", (nodes, k), Axes::factor(0)),
    ]
}

/// The model on data.
#[derive(Debug)]
struct OnData<'a, T: Real> {
    data: &'a dyn Data<T>,
    specs: Vec<BlockSpec<T>>,
}

impl<T: Real> Expectation<T> for OnData<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let modes = match wanted.blocks {
            [false, false] => Modes::NONE,
            _ => Modes::all(2),
        };
        let request = Request::counts(modes).value(wanted.value);
        let mut e = CommunitiesState::with_model_at(at, |model| self.data.e_step(model, &request))?;
        let value = wanted.value.then(|| e.value());
        let weights = wanted.blocks[0].then(|| {
            let sums = e.counts(0).column_iter().map(|column| column.sum());
            DMatrix::from_iterator(at.at(0).len(), 1, sums)
        });
        let members = wanted.blocks[1].then(|| e.take(0) + e.take(1));
        Ok(Counts {
            blocks: vec![weights, members],
            value,
        })
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let mut first = None;
        CommunitiesState::with_model_at(at, |model| {
            self.data.visit(&mut |index, value| {
                if first.is_none() && model.cell(index) <= 0.0 {
                    first = Some((index.to_vec(), value));
                }
            })
        })?;
        Ok(first)
    }

    fn unit(&self) -> f64 {
        self.data.total()
    }

    fn mass(&self) -> f64 {
        self.data.total()
    }
}

impl<T: Real> Model<T> for Communities {
    type State = CommunitiesState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        check_counts(data)?;
        let &[nodes, others] = data.shape() else {
            return Err(wrong_shape(data.shape()));
        };
        if nodes != others || !data.is_complete() {
            return Err(wrong_shape(data.shape()));
        }
        let mut specs = specs(nodes, self.components);
        self.blocks.apply(&mut specs)?;
        Ok(Box::new(Em(OnData { data, specs })))
    }
}

fn wrong_shape(got: &[usize]) -> FitError {
    let expected = vec!["n".into(), "n, every cell observed".into()];
    FitError::DataShape {
        got: got.to_vec(),
        expected,
    }
}

/// Fitted communities.
#[derive(Clone, Debug, PartialEq)]
pub struct CommunitiesState<T: Real>(Parameters<T>);

impl<T: Real> State for CommunitiesState<T> {
    type Scalar = T;
    const NAME: &'static str = "communities";
    const BLOCKS: Blocks = &[("weights", Axes::WEIGHTS), ("members", Axes::factor(0))];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let (nodes, k) = parameters.shape(1);
        parameters.check(&specs(nodes, k))?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}

impl<T: Real> Factored for CommunitiesState<T> {
    fn product(at: &Parameters<T>) -> (Option<&[T]>, Vec<Factor<'_, T>>) {
        let members = Factor::Columns(at.at(1));
        (Some(at.at(0).as_slice()), vec![members, members])
    }
}

#[cfg(test)]
mod tests {
    use plca_fit::laws::{Claims, Rounding, check_model};
    use plca_fit::{Init, Solver};
    use plca_tensor::{DenseTensor, Order};
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;

    /// Two groups of four nodes with many edges inside and few between.
    fn graph() -> DenseTensor<f64> {
        let edge = |at: usize| match (at / 8 / 4, at % 8 / 4) {
            (a, b) if a == b => 9.0 + (at % 5) as f64,
            _ => 1.0,
        };
        DenseTensor::new(vec![8, 8], (0..64).map(edge).collect(), Order::RowMajor).unwrap()
    }

    #[test]
    fn it_obeys_the_laws() {
        let (graph, model) = (graph(), Communities::new(2));
        let start = model
            .init(&graph, Init::default(), &mut ChaCha8Rng::seed_from_u64(3))
            .unwrap();
        // Two components of three factors, columns of 8.
        let claims = Claims::new(Rounding::derived(f64::EPSILON, 2 + 3 + 8, graph.total()));
        let held = check_model(&model, &graph, &start, &claims).unwrap();
        // It does not separate into rows.
        assert!(held.contains(&Solver::Momentum) && !held.contains(&Solver::Fast));
    }

    #[test]
    fn groups_are_found() {
        let model = Communities::new(2);
        let fit = model
            .fit(&graph(), &mut ChaCha8Rng::seed_from_u64(0))
            .unwrap();
        let members = fit.state().parameters().at(1);
        for z in 0..2 {
            let first: f64 = members.column(z).rows(0, 4).sum();
            assert!(!(0.1..0.9).contains(&first), "{members}");
        }
    }

    #[test]
    fn other_data_are_refused() {
        let model = Communities::new(2);
        let flat = DenseTensor::new(vec![2, 3], vec![1.0; 6], Order::RowMajor).unwrap();
        assert!(matches!(model.bind(&flat), Err(FitError::DataShape { .. })));
        assert!(Communities::new(0).check().is_err());
    }
}
