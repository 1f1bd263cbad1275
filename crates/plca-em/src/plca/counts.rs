//! Expected counts of PLCA, its conditions of optimality, and how it separates.

use nalgebra::DMatrix;
use plca_fit::shards::{Apart, Imputes};
use plca_fit::{
    Factored, FitError, Parameters,
    blocks::BlockSpec,
    em::{Counts, Expectation, Wanted},
    separable::{Plan, Product, Separable, pseudo_counts, refuse, transpose_to},
};
use plca_tensor::{Cp, Data, Expected, Factor, Modes, Real};

use super::{Plca, PlcaState};
use crate::blocks::{any_partly_frozen, is_free, largest, residual};
use crate::expectation::{apart, completed};
use crate::online::Streamed;
use crate::product::{count_unit, power, seen_mass, unsupported};

/// PLCA on data.
#[derive(Debug)]
pub(super) struct PlcaCounts<'a, T: Real> {
    model: &'a Plca,
    pub(super) data: &'a dyn Data<T>,
    pub(super) specs: Vec<BlockSpec<T>>,
    /// How it separates, or what is in the way.
    plan: Result<Plan, FitError>,
}

impl<'a, T: Real> PlcaCounts<'a, T> {
    pub(super) fn new(model: &'a Plca, data: &'a dyn Data<T>) -> Result<Self, FitError> {
        let specs = model.specs(data.shape())?;
        let plan = plan(model, &specs);
        Ok(Self {
            model,
            data,
            specs,
            plan,
        })
    }

    /// The modes whose counts these blocks need: those of the factors, or any for the weights.
    fn modes(wanted: &[bool]) -> Modes {
        let factors = 0..wanted.len() - 1;
        let modes: Modes = factors.filter(|&mode| wanted[mode + 1]).collect();
        match modes.is_empty() && wanted[0] {
            true => Modes::one(0),
            false => modes,
        }
    }

    /// The counts of blocks from those of modes.
    fn of_blocks(e: &mut Expected<T>, wanted: &[bool]) -> Vec<Option<DMatrix<T>>> {
        let factors = 1..wanted.len();
        let mut blocks = vec![None; wanted.len()];
        if let (true, Some(counts)) = (wanted[0], factors.clone().find_map(|j| e.get(j - 1))) {
            // [SI eq. 3] [SI eq. 39] [LV eq. 13] [SPEC 1.1] [SPEC 1.2] P(z) <- n / Σ n
            let n = Factor::Columns(counts).component_sums();
            blocks[0] = Some(DMatrix::from_vec(n.len(), 1, n));
        }
        for j in factors.filter(|&j| wanted[j]) {
            blocks[j] = Some(e.take(j - 1));
        }
        blocks
    }

    fn counts(
        &self,
        at: &Parameters<T>,
        modes: Modes,
        value: bool,
        unit: f64,
    ) -> Result<Expected<T>, FitError> {
        if at.power() == 1.0 || modes.is_empty() {
            return Ok(PlcaState::with_model_at(at, |model| {
                completed(self.data, model, modes, value, unit)
            })?);
        }
        // [SPEC 1.4] the ordinary step on (P(z)^s, F^b); neither is normalised and that does not matter
        let b = T::lit(at.power());
        let weights = match self.model.temper_prior {
            true => power(at.at(0), b),
            false => at.at(0).clone(),
        };
        let factors: Vec<_> = at.blocks().skip(1).map(|(_, f)| power(f, b)).collect();
        let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
        let tempered = Cp {
            weights: Some(weights.as_slice()),
            factors: &factors,
        };
        Ok(completed(self.data, &tempered, modes, false, unit)?)
    }
}

impl<T: Real> Imputes<T> for PlcaCounts<'_, T> {
    fn apart(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Apart<T>, FitError> {
        let modes = Self::modes(wanted.blocks);
        let (mut e, mut hidden, seen) = PlcaState::with_model_at(at, |model| {
            apart(self.data, model, modes, wanted.value.then_some(1.0))
        })?;
        let value = wanted.value.then(|| e.value());
        let blocks = Self::of_blocks(&mut e, wanted.blocks);
        Ok(Apart {
            observed: Counts { blocks, value },
            hidden: Self::of_blocks(&mut hidden, wanted.blocks),
            seen,
        })
    }
}

impl<T: Real> Expectation<T> for PlcaCounts<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let modes = Self::modes(wanted.blocks);
        let mut e = self.counts(at, modes, wanted.value, wanted.count_unit)?;
        let value = match wanted.value {
            true if at.power() == 1.0 || modes.is_empty() => Some(e.value()),
            true => Some(self.counts(at, Modes::NONE, true, 1.0)?.value()),
            false => None,
        };
        let blocks = Self::of_blocks(&mut e, wanted.blocks);
        Ok(Counts { blocks, value })
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        Ok(PlcaState::with_model_at(at, |model| {
            unsupported(self.data, model)
        })?)
    }

    /// The largest of these over the free blocks and live components; 0 exactly at a stationary point of the likelihood, or of
    /// `L_b` where steps are tempered. A probability.
    ///
    /// ```math
    /// \begin{aligned}
    /// & | n / v - P(z) |,
    ///   \qquad | F_j (g_j - 1) | = | C_j / (v P(z)) - F_j |,
    ///   \qquad | C_j / n - F_j | \text{ where the weights are frozen} \\
    /// & g_j[i,z] = \frac{1}{v} \sum_{x : x_j = i} Q[x] \prod_{m \ne j} F_m[x_m,z],
    ///   \qquad Q = \frac{V}{P},
    ///   \qquad C_j = v P(z) F_j g_j,
    ///   \qquad n = \sum_i C_j
    /// \end{aligned}
    /// ```
    ///
    /// `g_j = 1` where `F_j > 0` is what they measure; that `g_j <= 1` where `F_j = 0` they do not see: EM keeps zeros. Hidden
    /// cells are imputed, with `v` the mass of the completed data. With frozen components it is the largest change that an iteration
    /// makes. `[SPEC 1.1]`
    fn residual(&self, at: &Parameters<T>) -> Option<Result<f64, FitError>> {
        if any_partly_frozen(&self.specs) {
            return None;
        }
        let free: Vec<bool> = self.specs.iter().map(is_free).collect();
        let counts = match self.counts(at, Self::modes(&free), false, self.count_unit()) {
            Ok(counts) => counts,
            Err(error) => return Some(Err(error)),
        };
        let weights = at.at(0).as_slice();
        let of_block = |j: usize| {
            let counts = counts.get(j - 1)?;
            Some(residual(counts, at.at(j), weights, [free[0], free[j]]))
        };
        let blocks = (1..free.len()).filter_map(of_block);
        Some(Ok(blocks.fold(0.0, largest)))
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        self.plan.as_ref().map_err(FitError::clone)?;
        Ok(self)
    }

    fn unit(&self) -> f64 {
        self.data.total()
    }

    fn count_unit(&self) -> f64 {
        count_unit(self.data)
    }

    fn mass(&self) -> f64 {
        self.data.total()
    }

    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        if self.data.is_complete() {
            return Ok(None);
        }
        // [SPEC 4] s = v_obs / Σ_obs P
        let seen = PlcaState::with_model_at(at, |cp| seen_mass(self.data, cp, 0))?;
        Ok(Some(vec![self.data.total() / seen.iter().sum::<f64>()]))
    }

    fn tempers(&self) -> bool {
        true
    }

    fn power(&self) -> f64 {
        self.model.temper
    }
}

fn plan<T: Real>(model: &Plca, specs: &[BlockSpec<T>]) -> Result<Plan, FitError> {
    refuse(model.temper != 1.0, "tempering")?;
    refuse(!is_free(&specs[0]), "a frozen block of weights")?;
    let weights = pseudo_counts(&specs[0])?;
    let factors = 0..specs.len() - 1;
    let free: Vec<usize> = factors.filter(|&j| is_free(&specs[j + 1])).collect();
    refuse(free.is_empty(), "a model of free weights alone")?;
    let mut pseudo = vec![None; specs.len() - 1];
    for &mode in &free {
        let counts = pseudo_counts(&specs[mode + 1])?;
        pseudo[mode] = counts.map(|c| c.transpose());
    }
    Ok(Plan {
        components: model.components,
        free,
        pseudo,
        weights: weights.map(|w| w.as_slice().to_vec()),
        given: None,
    })
}

impl<T: Real> Separable<T> for PlcaCounts<'_, T> {
    fn data(&self) -> &dyn Data<T> {
        self.data
    }

    fn plan(&self) -> &Plan {
        self.plan.as_ref().expect("`separable` has shown it")
    }

    fn product(&self, at: &Parameters<T>) -> Product<T> {
        let weights = at.at(0).iter().map(|w| w.to_f64()).collect();
        let factors = at.matrices()[1..].iter().map(DMatrix::transpose);
        Product::new(factors.collect(), weights)
    }

    fn write(&self, product: &Product<T>, at: &mut Parameters<T>) {
        // [SPEC 3] P(z) <- n / Σ n
        let total: f64 = product.scale().iter().sum();
        let ones = vec![1.0; product.scale().len()];
        at.change(|j, block| {
            if j == 0 {
                let weights = block.iter_mut().zip(product.scale());
                weights.for_each(|(w, n)| *w = T::lit(n / total));
            } else if is_free(&self.specs[j]) {
                transpose_to(product.factor(j - 1), &ones, block);
            }
        });
    }
}
