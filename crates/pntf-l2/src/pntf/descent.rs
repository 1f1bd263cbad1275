//! One sweep of block coordinate descent.

use nalgebra::{DMatrix, DVector};
use plca_fit::{Accelerate, Algorithm, Direction};
use plca_tensor::Real;
use plca_tensor::arrange::{Memo, Products};

use super::{Pntf, PntfState};
use crate::PntfError;
use crate::init::{check_shape, check_shapes};
use crate::projection::Projector;
use crate::qp::gram_qp;
use crate::sweep::{contracted, descend_on_simplex, gram, hadamard, residual_products, widen};

/// [`Pntf`] bound to data: one sweep of block coordinate descent, its objective `‖G - s P‖²` over the observed cells, with `G` the
/// data times [`data_scale`](Self::data_scale), and its residual `[PNTF 5]`.
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Algorithm, Pntf, PntfState};
/// let g = DenseTensor::new(vec![2, 2], vec![1.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
/// let flat = PntfState { weights: dvector![1.0], factors: vec![dmatrix![0.5; 0.5]; 2], mass: 1.0 };
/// let pntf = Pntf::builder(1).build()?;
/// let sweep = pntf.on(&g)?;
/// assert_eq!(sweep.objective(&flat)?, 0.25);                          // four cells, each wrong by 1/4
/// assert!(sweep.residual(&flat)?.is_some_and(|r| r < 1e-15));         // by symmetry nothing moves
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PntfSweep<'a, T: Real> {
    pub(super) config: &'a Pntf,
    pub(super) data: Products<'a, T>,
    /// Multiplies the data as held.
    pub(super) scale: f64,
}

impl<T: Real> PntfSweep<'_, T> {
    /// What the data as given were multiplied by: `1 / Σ G` unless normalisation was switched off.
    ///
    /// ```
    /// use plca_tensor::{DenseTensor, Order};
    /// let g = DenseTensor::new(vec![2, 2], vec![4.0, 0.0, 0.0, 4.0], Order::RowMajor)?;
    /// assert_eq!(pntf_l2::Pntf::builder(1).build()?.on(&g)?.data_scale(), 0.125);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn data_scale(&self) -> f64 {
        self.scale * self.data.scale()
    }

    /// Refuses blocks that do not go with the data.
    fn check(&self, state: &PntfState<T>) -> Result<(), PntfError> {
        let k = self.config.components;
        check_shape("weights", state.weights.shape(), (k, 1))?;
        check_shapes(state.factors.iter(), self.data.shape(), k)
    }

    /// Products of complete data with the factors of a state.
    fn memo(&self, state: &PntfState<T>) -> Option<Memo<'_, T>> {
        let complete = self.data.is_complete();
        complete.then(|| self.data.memo(&state.factors))
    }

    /// The data, hidden cells filled with the model, contracted with all modes but one.
    fn contract(
        &self,
        state: &PntfState<T>,
        mode: usize,
        memo: &mut Option<Memo<'_, T>>,
    ) -> DMatrix<f64> {
        match memo {
            Some(memo) => memo.product(mode) * self.scale,
            None => self.enumerate(state, mode).0,
        }
    }

    /// The completed product and the squared error, cell by cell.
    fn enumerate(&self, state: &PntfState<T>, mode: usize) -> (DMatrix<f64>, f64) {
        let weights: Vec<T> = state.scaled_weights().into_iter().map(T::lit).collect();
        self.data
            .completed_mttkrp(self.scale, &weights, &state.factors, mode)
    }

    /// `‖G - s P‖²` from quantities at hand, `H` the product of all Grams and `f` the contracted data; `None` where too much
    /// cancels.
    fn combine(&self, h: &DMatrix<f64>, f: &[f64], w: &[f64]) -> Option<f64> {
        let w = DVector::from_column_slice(w);
        let norm = self.data.squared_norm() * self.scale * self.scale;
        let linear: f64 = f.iter().zip(w.iter()).map(|(f, w)| f * w).sum();
        // [PNTF 5] ‖G‖² - 2 f·l + lᵀ H l
        let value = norm - 2.0 * linear + (h * &w).dot(&w);
        (value > 4.5e5 * T::EPSILON.to_f64() * norm).then_some(value)
    }

    fn weigh(
        &self,
        state: &mut PntfState<T>,
        h: &DMatrix<f64>,
        f: &[f64],
    ) -> Result<(), PntfError> {
        let s = state.mass;
        if !self.config.freeze_weights {
            let start: Vec<f64> = state.weights.iter().map(|w| w.to_f64()).collect();
            let linear: Vec<f64> = f.iter().map(|f| s * f).collect();
            let qp = gram_qp(&(h * (s * s)), &linear, Some(&start))?;
            for (w, new) in state.weights.iter_mut().zip(qp.weights) {
                *w = T::lit(new);
            }
        }
        Ok(())
    }

    /// Fits the mass to the observed cells; returns the squared error before.
    ///
    /// With `A = Σ_obs (G - s P) P` and `E` the squared error, `Σ_obs P² = (‖G‖² - 2 s A - E) / s²`.
    fn refit_mass(&self, state: &mut PntfState<T>) -> f64 {
        let (m, squared_error) = self.enumerate(state, 0);
        let f = contracted(&m, &widen(&state.factors[0]));
        let l = state.weights.map(|w| w.to_f64());
        let s = state.mass;
        let norm = self.data.squared_norm() * self.scale * self.scale;
        let linear: f64 = f.iter().zip(l.iter()).map(|(f, l)| f * l).sum();
        let slope = linear - s * (hadamard(&state.grams(), None) * &l).dot(&l);
        let squares = (norm - 2.0 * s * slope - squared_error) / (s * s);
        let best = s + slope / squares;
        if squares > 0.0 && best.is_finite() && best > 0.0 {
            state.mass = best;
        }
        squared_error
    }

    /// One sweep; if it fails the state is of no use.
    fn sweep(&self, state: &mut PntfState<T>, measure: bool) -> Result<Option<f64>, PntfError> {
        let mut projector = Projector::new(self.config.projection);
        let mut memo = self.memo(state);
        let mut grams = state.grams();
        let mut value = None;
        if !self.data.is_complete() {
            let before = self.refit_mass(state);
            value = measure.then_some(before);
        }
        let mut last = Vec::new();
        let modes: Vec<usize> = (0..state.factors.len())
            .filter(|m| !self.config.frozen.contains(m))
            .collect();
        // With all factors frozen the weights still need the data contracted once.
        let visited: &[usize] = if modes.is_empty() { &[0] } else { &modes };
        for (nth, &mode) in visited.iter().enumerate() {
            let m = self.contract(state, mode, &mut memo);
            let gamma = hadamard(&grams, Some(mode));
            let mut u = widen(&state.factors[mode]);
            if measure && nth == 0 && value.is_none() {
                let h = gamma.component_mul(&grams[mode]);
                let cheap = self.combine(&h, &contracted(&m, &u), &state.scaled_weights());
                value = Some(cheap.unwrap_or_else(|| self.explicit(state)));
            }
            if !modes.is_empty() {
                let w = state.scaled_weights();
                let revive = self.config.revive;
                descend_on_simplex(&mut u, &m, &gamma, &w, &[], revive, &mut projector);
                state.factors[mode] = u.map(T::lit);
                if let Some(memo) = memo.as_mut().filter(|_| nth + 1 < visited.len()) {
                    memo.set(mode, &state.factors[mode]);
                }
                // The rest of the sweep sees what is kept.
                u.apply(|x| *x = T::lit(*x).to_f64());
                grams[mode] = gram(&u);
            }
            last = contracted(&m, &u);
        }
        self.weigh(state, &hadamard(&grams, None), &last)?;
        Ok(value)
    }

    fn explicit(&self, state: &PntfState<T>) -> f64 {
        // The smallest mode costs least.
        let shape = self.data.shape();
        let mode = (0..shape.len()).min_by_key(|&m| shape[m]).unwrap_or(0);
        self.enumerate(state, mode).1
    }
}

impl<T: Real> Algorithm for PntfSweep<'_, T> {
    type State = PntfState<T>;
    type Error = PntfError;

    fn step(&self, state: &mut PntfState<T>, measure: bool) -> Result<Option<f64>, PntfError> {
        self.check(state)?;
        // A step that fails leaves the state as it was.
        let mut next = state.clone();
        let value = self.sweep(&mut next, measure)?;
        *state = next;
        Ok(value)
    }

    fn objective(&self, state: &PntfState<T>) -> Result<f64, PntfError> {
        self.check(state)?;
        if !self.data.is_complete() {
            return Ok(self.explicit(state));
        }
        let m = self.data.mttkrp(&state.factors, 0) * self.scale;
        let f = contracted(&m, &widen(&state.factors[0]));
        let h = hadamard(&state.grams(), None);
        let cheap = self.combine(&h, &f, &state.scaled_weights());
        Ok(cheap.unwrap_or_else(|| self.explicit(state)))
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }

    /// Largest change that a projected gradient step makes to an entry of a free block: 0 exactly at a stationary point. Every
    /// column has its own step, `1 / (s λ)² Γ`, the inverse of its curvature; that of the weights is `1 / s² tr H`, with `H` the product
    /// of all Grams. Gradients are those of half the objective.
    fn residual(&self, state: &PntfState<T>) -> Result<Option<f64>, PntfError> {
        self.check(state)?;
        let mut projector = Projector::new(self.config.projection);
        let mut memo = self.memo(state);
        let grams = state.grams();
        let w = state.scaled_weights();
        let mut worst: f64 = 0.0;
        let mut f = Vec::new();
        for mode in 0..state.factors.len() {
            let free = !self.config.frozen.contains(&mode);
            if !free && mode > 0 {
                continue;
            }
            let m = self.contract(state, mode, &mut memo);
            let u = widen(&state.factors[mode]);
            if mode == 0 {
                f = contracted(&m, &u);
            }
            if !free {
                continue;
            }
            let gamma = hadamard(&grams, Some(mode));
            let n = residual_products(&m, &u, &gamma, &w);
            for t in (0..w.len()).filter(|&t| w[t] > 0.0) {
                // [PNTF 5] u against its own projection of u - grad/L, L = λ² Γ
                let rho = w[t] * gamma[(t, t)];
                let mut b: Vec<f64> = n
                    .column(t)
                    .iter()
                    .zip(u.column(t).iter())
                    .map(|(n, u)| n + rho * u)
                    .collect();
                projector.project(&mut b, rho);
                for (b, u) in b.iter().zip(u.column(t).iter()) {
                    worst = worst.max((b - u).abs());
                }
            }
        }
        if !self.config.freeze_weights {
            let h = hadamard(&grams, None);
            let l = state.weights.map(|w| w.to_f64());
            let slope = &h * &l * state.mass - DVector::from_vec(f);
            let step = 1.0 / (h.trace() * state.mass);
            let mut moved: Vec<f64> = (l.iter().zip(slope.iter()))
                .map(|(l, g)| l - step * g)
                .collect();
            projector.project(&mut moved, 1.0);
            for (new, old) in moved.iter().zip(l.iter()) {
                worst = worst.max((new - old).abs());
            }
        }
        Ok(Some(worst))
    }
}

impl<T: Real> Accelerate for PntfSweep<'_, T> {
    /// `(λ, U_1, U_2, …, s)`.
    fn pack(&self, state: &PntfState<T>) -> Vec<f64> {
        let factors = state.factors.iter().flat_map(|f| f.iter());
        let all = state.weights.iter().chain(factors).map(|x| x.to_f64());
        all.chain([state.mass]).collect()
    }

    /// The extrapolated parameters, every block projected onto its simplex.
    fn unpack(&self, template: &PntfState<T>, flat: &[f64], fallback: &[f64]) -> PntfState<T> {
        let mut state = template.clone();
        let mut projector = Projector::new(self.config.projection);
        let (weights, mut rest) = flat.split_at(state.weights.len());
        if !self.config.freeze_weights && weights.iter().all(|x| x.is_finite()) {
            let mut weights = weights.to_vec();
            projector.project(&mut weights, 1.0);
            state
                .weights
                .iter_mut()
                .zip(weights)
                .for_each(|(w, x)| *w = T::lit(x));
        }
        for (mode, factor) in state.factors.iter_mut().enumerate() {
            let (values, after) = rest.split_at(factor.len());
            rest = after;
            if self.config.frozen.contains(&mode) {
                continue;
            }
            let rows = factor.nrows();
            for (column, values) in factor
                .as_mut_slice()
                .chunks_exact_mut(rows)
                .zip(values.chunks_exact(rows))
            {
                if values.iter().all(|x| x.is_finite()) {
                    let mut values = values.to_vec();
                    projector.project(&mut values, 1.0);
                    column
                        .iter_mut()
                        .zip(values)
                        .for_each(|(c, x)| *c = T::lit(x));
                }
            }
        }
        let (Some(&mass), Some(&old)) = (rest.first(), fallback.last()) else {
            return state;
        };
        state.mass = if mass > 0.0 && mass.is_finite() {
            mass
        } else {
            old
        };
        state
    }
}
