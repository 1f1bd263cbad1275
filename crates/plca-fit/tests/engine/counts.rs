//! PLCA as a model of the engine.

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Init, Model, Parameters, Solver, State,
    blocks::{Axes, BlockSpec},
    em::{Counts, Expectation, Wanted},
};
use plca_tensor::{Cp, Data, DenseTensor, Factor, Modes, Order, Request};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// `P(x) = Σ_z P(z) Π_j P(x_j | z)` of complete data.
#[derive(Debug)]
pub(super) struct PlcaCounts<'a> {
    data: &'a dyn Data<f64>,
    pub(super) specs: Vec<BlockSpec<f64>>,
}

impl<'a> PlcaCounts<'a> {
    pub(super) fn new(data: &'a dyn Data<f64>, k: usize) -> Self {
        let weights = BlockSpec::simplex("weights", (k, 1), Axes::WEIGHTS);
        let factor = |(j, &n)| BlockSpec::simplex(format!("factor_{j}"), (n, k), Axes::factor(j));
        let factors = data.shape().iter().enumerate().map(factor);
        Self {
            data,
            specs: std::iter::once(weights).chain(factors).collect(),
        }
    }

    fn with_model<O>(at: &Parameters<f64>, f: impl FnOnce(&Cp<'_, f64>) -> O) -> O {
        let mut blocks = at.blocks().map(|(_, block)| block);
        let weights = blocks.next().unwrap().as_slice();
        let factors: Vec<_> = blocks.map(Factor::Columns).collect();
        f(&Cp {
            weights: Some(weights),
            factors: &factors,
        })
    }
}

impl Expectation<f64> for PlcaCounts<'_> {
    fn blocks(&self) -> &[BlockSpec<f64>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<f64>, wanted: &Wanted<'_>) -> Result<Counts<f64>, FitError> {
        let factors = 1..wanted.blocks.len();
        let mut modes: Modes = factors
            .clone()
            .filter(|&j| wanted.blocks[j])
            .map(|j| j - 1)
            .collect();
        if wanted.blocks[0] && modes.is_empty() {
            modes = Modes::one(0);
        }
        let request = Request::counts(modes).value(wanted.value);
        let mut e = Self::with_model(at, |model| self.data.e_step(model, &request))?;
        let value = wanted.value.then(|| e.value());
        let mut blocks = vec![None; wanted.blocks.len()];
        if wanted.blocks[0] {
            let counts = factors.clone().find_map(|j| e.get(j - 1)).unwrap();
            let n = Factor::Columns(counts).component_sums();
            blocks[0] = Some(DMatrix::from_vec(n.len(), 1, n));
        }
        for j in factors.filter(|&j| wanted.blocks[j]) {
            blocks[j] = Some(e.take(j - 1));
        }
        Ok(Counts { blocks, value })
    }

    fn unsupported(&self, at: &Parameters<f64>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let mut first = None;
        Self::with_model(at, |model| {
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
}

/// The solvers that take a model which does not say how it separates.
pub(super) fn solvers() -> impl Iterator<Item = Solver> {
    let all = Solver::ALL.iter().copied();
    all.filter(|&solver| solver != Solver::Fast)
}

pub(super) fn data() -> DenseTensor<f64> {
    scaled(1.0)
}

/// The same data in another unit.
pub(super) fn scaled(by: f64) -> DenseTensor<f64> {
    let values = (0..60)
        .map(|i| by * f64::from((i * i * 7 + 3 * i) % 11))
        .collect();
    DenseTensor::new(vec![5, 4, 3], values, Order::RowMajor).unwrap()
}

pub(super) fn start(data: &DenseTensor<f64>, k: usize) -> Parameters<f64> {
    let plca = plca_em::Plca::new(k);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let start = plca.init(data, Init::default(), &mut rng).unwrap();
    let blocks = start.parameters().matrices().to_vec();
    Parameters::new(&PlcaCounts::new(data, k).specs, blocks).unwrap()
}
