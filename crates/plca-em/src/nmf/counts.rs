//! Expected counts of KL-NMF, its conditions of optimality, and how it separates.

use nalgebra::{DMatrix, DVector};
use plca_fit::{
    Factored, FitError, Parameters, Progress, Sense, Start,
    blocks::{BlockSpec, Draw, Exposure, Frozen},
    em::{Counts, Expectation, Renewed, Wanted},
    nndsvd::nndsvd,
    separable::{Plan, Product, Separable, refuse, transpose_to},
};
use plca_tensor::arrange::Products;
use plca_tensor::{Cp, Data, Expected, Factor, Modes, Real, Request, Rule, normalise_columns};
use rand::Rng;

use super::{Nmf, NmfState};
use crate::blocks::{is_free, largest, residual};
use crate::expectation::{completed, with_hidden};
use crate::product::{count_unit, unsupported};

pub(super) fn plan<T: Real>(model: &Nmf, specs: &[BlockSpec<T>]) -> Result<Plan, FitError> {
    for spec in specs {
        let some = spec.is_partly_frozen();
        refuse(some, &format!("frozen components of `{}`", spec.name))?;
        refuse(
            spec.prior.is_some(),
            &format!("the prior on `{}`", spec.name),
        )?;
    }
    let free: Vec<usize> = (0..2).filter(|&j| specs[j].frozen == Frozen::No).collect();
    refuse(free.is_empty(), "a model without a free block")?;
    Ok(Plan {
        components: model.components,
        free,
        pseudo: vec![None, None],
        weights: None,
        given: None,
    })
}

/// KL-NMF on data.
#[derive(Debug)]
pub(super) struct NmfCounts<'a, T: Real> {
    pub(super) data: &'a dyn Data<T>,
    /// Whether every cell was observed: here, and in all other shards of the data.
    pub(super) complete: bool,
    /// `Σ V ln (V / u)`, `u` the unit of the data.
    pub(super) self_information: f64,
    pub(super) specs: Vec<BlockSpec<T>>,
    /// How it separates, or what is in the way.
    pub(super) plan: Result<Plan, FitError>,
}

impl<T: Real> NmfCounts<'_, T> {
    /// The divergence from `Σ V ln (Y / u)` and `Σ Y`.
    pub(super) fn divergence(&self, ln_lik: f64, mass: f64) -> f64 {
        // [SPEC 0] [SPEC 4] D = Σ_obs V ln(V/Y) - V + Y, both logarithms in the unit of the data
        match self.self_information - ln_lik - self.data.total() + mass {
            // Below 0 it is rounding.
            d if d < 0.0 => 0.0,
            d => d,
        }
    }

    /// The model's mass in the observed cells.
    fn seen_mass(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        NmfState::with_model_at(at, |cp| {
            if self.data.is_complete() {
                return Ok(cp.mass());
            }
            let exposure = Request::counts(Modes::NONE)
                .value(true)
                .rule(Rule::Exposure);
            let unit = self.count_unit();
            in_unit(cp, unit, |cp| {
                Ok(self.data.e_step(cp, &exposure)?.value() * unit)
            })
        })
    }

    /// Expected counts in this unit, with hidden cells imputed; the model's mass in the observed cells, if any is hidden.
    fn counts(
        &self,
        at: &Parameters<T>,
        modes: Modes,
        value: bool,
        unit: f64,
    ) -> Result<(Expected<T>, Option<f64>), FitError> {
        let wanted = Request::counts(modes).value(value).unit(self.data.unit());
        let wanted = wanted.count_unit(unit);
        NmfState::with_model_at(at, |cp| {
            let e = self.data.e_step(cp, &wanted)?;
            let ln_lik = value.then(|| e.value());
            if self.data.is_complete() || modes.is_empty() {
                return Ok((e, None));
            }
            let exposure = Request::counts(modes.with(0))
                .value(true)
                .rule(Rule::Exposure);
            in_unit(cp, unit, |cp| {
                let seen = self.data.e_step(cp, &exposure)?;
                let mass = seen.value() * unit;
                let s = match self.specs.iter().any(|spec| spec.prior.is_some()) {
                    // A prior has a scale: the model is taken at its own, not at that of the data.
                    true => T::one(),
                    // [SPEC 4] s = v_obs / Σ_obs P
                    false => T::lit(self.data.total() / mass),
                };
                Ok((with_hidden(e, &seen, cp, s, ln_lik), Some(mass)))
            })
        })
    }
}

/// Calls `f` with the model divided by a unit.
pub(super) fn in_unit<T: Real, O>(cp: &Cp<'_, T>, unit: f64, f: impl FnOnce(&Cp<'_, T>) -> O) -> O {
    let weights = vec![T::lit(1.0 / unit); cp.components()];
    f(&Cp {
        weights: Some(&weights),
        factors: cp.factors,
    })
}

impl<T: Real> Expectation<T> for NmfCounts<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let modes: Modes = (0..2).filter(|&j| wanted.blocks[j]).collect();
        let (mut e, mass) = self.counts(at, modes, wanted.value, wanted.count_unit)?;
        let value = match (wanted.value, mass) {
            (false, _) => None,
            (true, Some(mass)) => Some(self.divergence(e.value(), mass)),
            (true, None) => Some(self.divergence(e.value(), self.seen_mass(at)?)),
        };
        let blocks = [0, 1].map(|j| modes.contains(j).then(|| e.take(j)));
        let blocks = blocks.into();
        Ok(Counts { blocks, value })
    }

    fn exposure(&self, block: usize, renewed: Renewed<'_, T>) -> Option<Exposure<T>> {
        Some(Exposure::PerComponent(match block {
            // [SI eq. 80] [SPEC 3] W' = (W ∘ Q Hᵀ) diag(H' 1)⁻¹, the new H'
            0 => Factor::Rows(renewed.at(1)).component_sums(),
            // [SI eq. 79] [SPEC 3] H' = diag(1ᵀW)⁻¹ (H ∘ Wᵀ Q)
            _ => Factor::Columns(renewed.at(0)).component_sums(),
        }))
    }

    fn fill(
        &self,
        start: Start,
        blocks: &mut [Option<DMatrix<T>>],
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        let Start::Nndsvd(fill) = start else {
            return Err(FitError::NoStart { start });
        };
        let k = self.specs[0].shape.1;
        let observed = self.data.observed()?;
        let factors = nndsvd(&Products::new(self.data)?, observed, k, fill, rng, progress)?;
        for (block, factor) in blocks.iter_mut().zip(factors) {
            block.get_or_insert(factor);
        }
        Ok(())
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        Ok(NmfState::with_model_at(at, |cp| {
            unsupported(self.data, cp)
        })?)
    }

    /// That of PLCA at the state's image, in which a weight is the share of a component in the mass of the completed data. `[SPEC 3]`
    fn residual(&self, at: &Parameters<T>) -> Option<Result<f64, FitError>> {
        let (weights, factors) = image(at.at(0), at.at(1));
        let columns: Vec<_> = factors.iter().map(Factor::Columns).collect();
        let cp = Cp {
            weights: Some(weights.as_slice()),
            factors: &columns,
        };
        let free = (0..2).filter(|&j| is_free(&self.specs[j])).collect();
        let e = match completed(self.data, &cp, free, false, self.count_unit()) {
            Ok(e) => e,
            Err(error) => return Some(Err(error.into())),
        };
        let mass = NmfState::with_model_at(at, |cp| cp.mass());
        let mut worst: f64 = 0.0;
        for (mode, factor) in factors.iter().enumerate() {
            let Some(counts) = e.get(mode) else { continue };
            // [SPEC 3] W H = v P where it is the model of the data: P(z) is the mass of a component beside that of the completed data
            let total: f64 = counts.iter().map(|c| c.to_f64()).sum();
            let mass = mass / self.count_unit();
            let weights = weights.map(|w| T::lit(w.to_f64() * mass / total));
            let residual = residual(counts, factor, weights.as_slice(), [true; 2]);
            worst = largest(worst, residual);
        }
        Some(Ok(worst))
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        self.plan.as_ref().map_err(FitError::clone)?;
        Ok(self)
    }

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    fn rate_unit(&self, block: usize) -> Option<f64> {
        match self.specs[block].draw {
            Draw::Around(level) => Some(rate_unit(level, self.specs[block].shape)),
            _ => None,
        }
    }

    fn unit(&self) -> f64 {
        self.data.total()
    }

    fn count_unit(&self) -> f64 {
        count_unit(self.data)
    }
}

/// What a factor sums to where it begins: of data in another unit, a power of two, both factors begin with the same digits in it.
pub(super) fn rate_unit(level: f64, (rows, columns): (usize, usize)) -> f64 {
    level * rows as f64 * columns as f64
}

impl<T: Real> Separable<T> for NmfCounts<'_, T> {
    fn data(&self) -> &dyn Data<T> {
        self.data
    }

    fn self_information(&self) -> Result<f64, FitError> {
        Ok(self.self_information)
    }

    fn plan(&self) -> &Plan {
        self.plan.as_ref().expect("`separable` has shown it")
    }

    fn product(&self, at: &Parameters<T>) -> Product<T> {
        let k = at.at(0).ncols();
        Product::new(vec![at.at(0).transpose(), at.at(1).clone()], vec![1.0; k])
    }

    fn write(&self, product: &Product<T>, at: &mut Parameters<T>) {
        let total = self.data.total();
        if self.specs[1].frozen == Frozen::Whole {
            // What the rows of H sum to stays with them.
            let n = scaled(product, total, &Factor::Rows(at.at(1)).component_sums());
            return at.change(|j, block| {
                if j == 0 {
                    transpose_to(product.factor(0), &n, block);
                }
            });
        }
        // [SI eq. 97] [SPEC 3] W = F_1 D, H = v D⁻¹ diag(P(z)) F_2ᵀ
        let sums: Vec<T> = Factor::Columns(at.at(0)).component_sums();
        let d: Vec<f64> = sums.iter().map(|d| d.to_f64()).collect();
        let n = scaled(product, total, &sums);
        at.change(|j, block| match j {
            0 if self.specs[0].frozen == Frozen::No => {
                transpose_to(product.factor(0), &d, block);
            }
            1 => product.weigh(1, &n, block),
            _ => {}
        });
    }

    fn value(&self, ln_lik: f64) -> f64 {
        let total = self.data.total();
        self.divergence(ln_lik + total * (total / self.data.unit()).ln(), total)
    }
}

/// `v n / d`, 0 where a component has no mass.
fn scaled<T: Real>(product: &Product<T>, total: f64, sums: &[T]) -> Vec<f64> {
    let pairs = product.scale().iter().zip(sums);
    let scaled = pairs.map(|(n, d)| match *d > T::zero() {
        true => total * n / d.to_f64(),
        false => 0.0,
    });
    scaled.collect()
}

/// The weights and factors of the PLCA that a product stands for.
pub(super) fn image<T: Real>(w: &DMatrix<T>, h: &DMatrix<T>) -> (DVector<T>, Vec<DMatrix<T>>) {
    let mut factors = vec![w.clone(), h.transpose()];
    // [SPEC 3] F_1 = W D⁻¹, P(z) = D H 1 / c, F_2 = (diag(H 1)⁻¹ H)ᵀ
    let sums: Vec<Vec<T>> = factors.iter_mut().map(normalise_columns).collect();
    let mut weights = DVector::from_fn(w.ncols(), |z, _| sums[0][z] * sums[1][z]);
    for (factor, sums) in factors.iter_mut().zip(&sums) {
        let uniform = T::one() / T::lit(factor.nrows() as f64);
        for z in (0..sums.len()).filter(|&z| sums[z] <= T::zero()) {
            factor.column_mut(z).fill(uniform);
        }
    }
    let total = weights.sum();
    if total > T::zero() {
        weights /= total;
    }
    (weights, factors)
}
