//! EM and multiplicative updates for KL-NMF, bound to data.

use plca_fit::{Accelerate, Algorithm, Direction};
use plca_tensor::{Data, Modes, Real, Request, Rule, check_counts};

use super::{Nmf, NmfState, Update};
use crate::blocks::{Extrapolated, Free, largest, pack, residual};
use crate::expectation::completed;
use crate::{EmError, Missing};

/// [`Nmf`] bound to data.
///
/// ```
/// use plca_em::{before::Nmf, Algorithm, Direction, NmfInit};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![3.0, 1.0, 0.0, 2.0], Order::RowMajor)?;
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let nmf = Nmf::builder(1).build()?;
/// let mut state = nmf.init(&v, &NmfInit::default(), &mut rng)?;
/// let em = nmf.on(&v)?;
/// assert_eq!(em.direction(), Direction::Minimise);
/// em.step(&mut state, false)?;
/// // The product has the mass of the data after every step.
/// assert!(((&state.w * &state.h).sum() - 6.0f64).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NmfEm<'a, T: Real> {
    pub(crate) config: &'a Nmf,
    pub(crate) data: &'a dyn Data<T>,
    pub(crate) self_information: f64,
}

impl<'a, T: Real> NmfEm<'a, T> {
    pub(super) fn new(config: &'a Nmf, data: &'a dyn Data<T>) -> Result<Self, EmError> {
        check_counts(data)?;
        Ok(Self {
            config,
            data,
            self_information: data.self_information()?,
        })
    }

    /// `Σ_obs V ln(V/Y) - V + Y`.
    pub(crate) fn divergence(&self, ln_lik: f64, mass: f64) -> f64 {
        // [SPEC 0] [SPEC 4] D = Σ_obs V ln(V/Y) - V + Y
        self.self_information - ln_lik - self.data.total() + mass
    }

    /// Mass of `W H` over the observed cells.
    fn seen_mass(&self, state: &NmfState<T>) -> Result<f64, EmError> {
        if self.data.is_complete() {
            return Ok(state.with_model(|m| m.mass()));
        }
        let exposure = Request::counts(Modes::NONE)
            .value(true)
            .rule(Rule::Exposure);
        Ok(state
            .with_model(|m| self.data.e_step(m, &exposure))?
            .value())
    }

    pub(crate) fn check(&self, state: &NmfState<T>) -> Result<(), EmError> {
        state.check_blocks(self.data.shape(), self.config.components)
    }
}

impl<T: Real> Algorithm for NmfEm<'_, T> {
    type State = NmfState<T>;
    type Error = EmError;

    fn step(&self, state: &mut NmfState<T>, measure: bool) -> Result<Option<f64>, EmError> {
        self.check(state)?;
        let simultaneous = if self.data.is_complete() {
            self.config.update.unwrap_or_default() == Update::Simultaneous
        } else {
            self.config.missing() == Missing::Imputation
        };
        if simultaneous {
            self.simultaneous(state, measure)
        } else {
            self.sequential(state, measure)
        }
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }

    fn objective(&self, state: &NmfState<T>) -> Result<f64, EmError> {
        self.check(state)?;
        let wanted = Request::counts(Modes::NONE).value(true);
        let e = state.with_model(|m| self.data.e_step(m, &wanted))?;
        Ok(self.divergence(e.value(), self.seen_mass(state)?))
    }

    /// That of PLCA at the [image](NmfState::to_plca) of the state, with the mass of `W H` beside that of the data in its weights: a
    /// probability, 0 exactly where `W ∘ (Q Hᵀ) = W diag(H 1)` and `H ∘ (Wᵀ Q) = diag(1ᵀ W) H`, `Q = V / (W H)`. It does not depend on how
    /// a scale is shared between `W` and `H`. One pass. `[SPEC 1.1]` `[SPEC 3]`
    fn residual(&self, state: &NmfState<T>) -> Result<Option<f64>, EmError> {
        self.check(state)?;
        let image = state.to_plca()?;
        let free = self.config.free();
        let e = image.with_model(|model| completed(self.data, model, free, false))?;
        let mass = state.with_model(|model| model.mass());
        let mut worst: f64 = 0.0;
        for (mode, factor) in image.factors.iter().enumerate() {
            let Some(counts) = e.get(mode) else { continue };
            // [SPEC 3] W H = v P where it is the model of the data: P(z) is the mass of a component beside that of the completed data
            let total: f64 = counts.iter().map(|c| c.to_f64()).sum();
            let weights = image.weights.map(|w| T::lit(w.to_f64() * mass / total));
            let free = Free {
                weights: true,
                block: true,
            };
            worst = largest(worst, residual(counts, factor, &weights, free));
        }
        Ok(Some(worst))
    }
}

impl<T: Real> Accelerate for NmfEm<'_, T> {
    fn pack(&self, state: &NmfState<T>) -> Vec<f64> {
        pack([state.w.as_slice(), state.h.as_slice()])
    }

    fn unpack(&self, template: &NmfState<T>, flat: &[f64], fallback: &[f64]) -> NmfState<T> {
        let mut state = template.clone();
        let mut values = Extrapolated::new(flat, fallback);
        values.take(state.w.as_mut_slice(), self.config.freeze_w);
        values.take(state.h.as_mut_slice(), self.config.freeze_h);
        state
    }
}
