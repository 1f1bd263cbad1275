//! The model of independent dimensions of data of which cells are hidden.

use nalgebra::DMatrix;
use plca_fit::FitError;
use plca_tensor::{Cp, Data, Factor, Modes, Request, Rule};

/// Largest change of an entry, relative to itself, with which the iterations have converged.
const SETTLED: f64 = 1e-15;
/// Changes below this may be rounding that does not fall any more.
const ROUNDING: f64 = 1e-13;
/// Iterations without a smaller change after which what is left is rounding.
const PATIENCE: usize = 20;
/// Iterations at most: where few cells join the rest of the data convergence is slow.
const MOST: usize = 10_000;

/// The product of one factor for every mode that explains the observed cells best: their maximum-likelihood model of rank one.
///
/// ```math
/// q[x] = \prod_j f_j[x_j], \qquad
/// \sum_{x \text{ observed}, \, x_j = i} q[x] = \sum_{x \text{ observed}, \, x_j = i} V[x] \quad \text{for all } j, i
/// ```
///
/// Of complete data it is the product of the marginals, `r c / v` of a matrix. With hidden cells the factors are found one after the other from the
/// equations of their modes, to a relative change of 1e-15.
///
/// Where observed zeros surround a hidden cell the likelihood may have no maximum: it rises as `q` of the hidden cell grows without end.
#[derive(Clone, Debug)]
pub(super) struct Independent {
    factors: Vec<Vec<f64>>,
    /// Whether the iterations came to an end of their own.
    pub(super) settled: bool,
}

impl Independent {
    pub(super) fn of(data: &dyn Data<f64>) -> Result<Self, FitError> {
        let order = data.shape().len();
        let sums = (0..order).map(|mode| data.marginal(mode));
        let sums = sums.collect::<Result<Vec<_>, _>>()?;
        // Factors but the last sum to 1: no product of sums can leave the range of numbers.
        let mut factors: Vec<DMatrix<f64>> = sums.iter().map(|sums| column(shares(sums))).collect();
        factors[order - 1] = column(sums[order - 1].clone());
        let (mut least, mut idle, mut settled) = (f64::INFINITY, 0, false);
        for _ in 0..MOST {
            let mut change = 0.0f64;
            for mode in 0..order {
                let seen = exposure(data, &factors, mode)?;
                let old = &factors[mode];
                let new = (0..seen.len()).map(|i| match seen[i] > 0.0 {
                    // [SEL 2] f <- f C / X with the counts C, which are the marginal, and the mass X of the observed cells
                    true => old[i] * (sums[mode][i] / seen[i]),
                    false => old[i],
                });
                let mut new: Vec<f64> = new.collect();
                if mode + 1 < order {
                    new = shares(&new);
                }
                for (&new, &old) in new.iter().zip(old.iter()).filter(|(new, _)| **new > 0.0) {
                    change = change.max((new - old).abs() / new);
                }
                factors[mode] = column(new);
            }
            idle = if change < least { 0 } else { idle + 1 };
            least = least.min(change);
            settled = change <= SETTLED || least <= ROUNDING && idle >= PATIENCE;
            if settled {
                break;
            }
        }
        let factors = factors.iter().map(|factor| factor.as_slice().to_vec());
        Ok(Self {
            factors: factors.collect(),
            settled,
        })
    }

    pub(super) fn cell(&self, index: &[usize]) -> f64 {
        let factors = self.factors.iter().zip(index);
        factors.map(|(factor, &i)| factor[i]).product()
    }
}

fn column(values: Vec<f64>) -> DMatrix<f64> {
    DMatrix::from_vec(values.len(), 1, values)
}

fn shares(values: &[f64]) -> Vec<f64> {
    let total: f64 = values.iter().sum();
    match total > 0.0 {
        true => values.iter().map(|x| x / total).collect(),
        false => values.to_vec(),
    }
}

/// The mass of the model in the observed cells of every index of a mode.
fn exposure(
    data: &dyn Data<f64>,
    factors: &[DMatrix<f64>],
    mode: usize,
) -> Result<Vec<f64>, FitError> {
    let columns: Vec<_> = factors.iter().map(Factor::Columns).collect();
    let model = Cp {
        weights: None,
        factors: &columns,
    };
    let request = Request::counts(Modes::one(mode)).rule(Rule::Exposure);
    Ok(data
        .e_step(&model, &request)?
        .counts(mode)
        .as_slice()
        .to_vec())
}
