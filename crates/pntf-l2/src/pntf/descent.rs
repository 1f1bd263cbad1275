//! One sweep of block coordinate descent.
//!
//! With `w = s λ`, `Γ` the Hadamard product of the other modes' Grams and `M` the data contracted with the other modes' factors, the objective
//! in column `u_t` of a mode, in the weights and in the mass is
//!
//! ```math
//! \begin{aligned}
//! \lVert G - s P \rVert^2
//!   &= w_t^2 \Gamma_{tt} \lVert u_t - b_t / (w_t \Gamma_{tt}) \rVert^2 + \dots,
//!   & b_t &= M[:,t] - \sum_{j \ne t} w_j \Gamma_{jt} u_j \\
//!   &= 2 \left( \tfrac{1}{2} \lambda^\top s^2 H \lambda - s f^\top \lambda \right) + \lVert G \rVert^2,
//!   & H &= \Gamma \circ U^\top U, \quad f_t = u_t \cdot M[:,t] \\
//!   &= s^2 \lVert P \rVert^2 - 2 s \, G \cdot P + \lVert G \rVert^2
//! \end{aligned}
//! ```
//!
//! So the best column is a projection onto the simplex, the best weights are a quadratic programme, the best mass, over the observed cells alone, a
//! quotient. Each is put in its
//! place with the newest others, and the objective never rises. Sparsity takes `2 μ` off the curvature of a column and of the weights; where
//! nothing is left of it, the best is a vertex. Hidden cells are filled with the model, which leaves the objective where it is
//! and bounds it from above elsewhere: what lowers the bound lowers the objective.

use nalgebra::{DMatrix, DVector};
use plca_fit::{
    Algorithm, FitError, Parameters, Progress, Sense, Start,
    blocks::{BlockSpec, Constraint, Frozen},
    em::Stepped,
};
use plca_tensor::Real;
use plca_tensor::arrange::{Memo, Products};
use rand::Rng;

use super::{Pntf, Sparsity, factors, mass};
use crate::blocks::{cancels, extrapolated, given, is_kept, project, put, weigh};
use crate::deflation::deflate;
use crate::projection::Projector;
use crate::sweep::{
    contracted, descend_on_simplex, gram, grams, hadamard, residual_products, widen,
};

/// [`Pntf`] bound to data.
#[derive(Debug)]
pub(super) struct Descent<'a, T: Real> {
    pub(super) model: &'a Pntf,
    pub(super) data: Products<'a, T>,
    /// Multiplies the data as held.
    pub(super) scale: f64,
    /// `‖G‖²`.
    pub(super) norm: f64,
    /// What `G` was divided by.
    pub(super) mass: f64,
    pub(super) specs: Vec<BlockSpec<T>>,
    /// Flags of the frozen components of every block.
    pub(super) kept: Vec<Vec<bool>>,
    pub(super) sparsity: Sparsity,
}

/// `s λ_z`: what multiplies component `z`.
fn scaled_weights<T: Real>(at: &Parameters<T>) -> Vec<f64> {
    let mass = mass(at);
    at.at(0).iter().map(|w| w.to_f64() * mass).collect()
}

impl<T: Real> Descent<'_, T> {
    fn order(&self) -> usize {
        self.data.shape().len()
    }

    fn is_frozen(&self, block: usize) -> bool {
        self.specs[block].frozen == Frozen::Whole
    }

    /// Products of complete data with the factors.
    fn memo(&self, at: &Parameters<T>) -> Option<Memo<'_, T>> {
        let complete = self.data.is_complete();
        complete.then(|| self.data.memo(factors(at)))
    }

    /// The data, hidden cells filled with the model, contracted with all modes but one.
    fn contract(
        &self,
        at: &Parameters<T>,
        mode: usize,
        memo: &mut Option<Memo<'_, T>>,
    ) -> DMatrix<f64> {
        match memo {
            Some(memo) => memo.product(mode) * self.scale,
            None => self.enumerate(at, mode).0,
        }
    }

    /// The completed product and the squared error, cell by cell.
    fn enumerate(&self, at: &Parameters<T>, mode: usize) -> (DMatrix<f64>, f64) {
        let weights: Vec<T> = scaled_weights(at).into_iter().map(T::lit).collect();
        self.data
            .completed_mttkrp(self.scale, &weights, factors(at), mode)
    }

    /// The squared error, cell by cell.
    fn explicit(&self, at: &Parameters<T>) -> f64 {
        // The smallest mode costs least.
        let shape = self.data.shape();
        let mode = (0..shape.len()).min_by_key(|&m| shape[m]).unwrap_or(0);
        self.enumerate(at, mode).1
    }

    /// `‖G - s P‖²` from quantities at hand, `H` the product of all Grams and `f` the contracted data; cell by cell where too much cancels.
    fn squared_error(&self, at: &Parameters<T>, h: &DMatrix<f64>, f: &[f64]) -> f64 {
        let w = DVector::from_vec(scaled_weights(at));
        let linear: f64 = f.iter().zip(w.iter()).map(|(f, w)| f * w).sum();
        // [PNTF 5] ‖G‖² - 2 f·l + lᵀ H l
        let value = self.norm - 2.0 * linear + (h * &w).dot(&w);
        match cancels::<T>(value, self.norm) {
            true => self.explicit(at),
            false => value,
        }
    }

    /// Fits the mass to the observed cells; returns the squared error before.
    ///
    /// With `A = Σ_obs (G - s P) P` and `E` the squared error, `Σ_obs (s P)² = ‖G‖² - 2 s A - E`.
    fn refit_mass(&self, at: &mut Parameters<T>) -> f64 {
        let (m, squared_error) = self.enumerate(at, 0);
        let f = contracted(&m, &widen(&factors(at)[0]));
        let l = at.at(0).column(0).map(|w| w.to_f64());
        let s = mass(at);
        let linear: f64 = f.iter().zip(l.iter()).map(|(f, l)| f * l).sum();
        let mut slope = linear - s * (hadamard(&grams(factors(at)), None) * &l).dot(&l);
        let mut squares = self.norm - 2.0 * s * slope - squared_error;
        // Both are differences of sums over all cells, hidden ones included.
        if cancels::<T>(squares, self.norm.max(s * linear.abs())) {
            // The squared error of data without mass.
            let weights: Vec<T> = scaled_weights(at).into_iter().map(T::lit).collect();
            squares = self.data.completed_mttkrp(0.0, &weights, factors(at), 0).1;
            slope = (self.norm - squared_error - squares) / (2.0 * s);
        }
        let best = s + slope / (squares / (s * s));
        if squares > 0.0 && best.is_finite() && best > 0.0 {
            put(at, self.order() + 1, &DMatrix::from_element(1, 1, best));
        }
        squared_error
    }

    /// The weights at their optimum.
    fn weigh(&self, at: &mut Parameters<T>, h: &DMatrix<f64>, f: &[f64]) -> Result<(), FitError> {
        if self.is_frozen(0) {
            return Ok(());
        }
        let s = mass(at);
        let old: Vec<f64> = at.at(0).iter().map(|w| w.to_f64()).collect();
        let rewards = self.sparsity.of_components(factors(at));
        // [EXT 8] f_t + Σ_r μ_r |u_r^t|²
        let linear = f.iter().zip(rewards).map(|(f, reward)| s * f + reward);
        let linear: Vec<f64> = linear.collect();
        let mu = self.sparsity.weights;
        let weights = weigh(&(h * (s * s)), &linear, &old, &self.kept[0], mu)?;
        put(at, 0, &DMatrix::from_vec(weights.len(), 1, weights));
        Ok(())
    }

    /// What sparsity takes off the squared error.
    fn reward(&self, at: &Parameters<T>) -> f64 {
        if !self.sparsity.is_some() {
            return 0.0;
        }
        let rewards = self.sparsity.of_components(factors(at));
        let weights = at.at(0).iter().map(|w| w.to_f64());
        let both = weights.zip(rewards);
        // [EXT 8] 2 Σ_r μ_r Σ_t λ_t |u_r^t|² + 2 μ_w |λ|²
        2.0 * both
            .map(|(w, reward)| w * (reward + self.sparsity.weights * w))
            .sum::<f64>()
    }

    /// One sweep; if it fails the parameters are of no use.
    fn sweep(&self, at: &mut Parameters<T>, measure: bool) -> Result<Option<f64>, FitError> {
        let reward = if measure { self.reward(at) } else { 0.0 };
        let mut projector = Projector::new(self.model.projection);
        let mut memo = self.memo(at);
        let mut grams = grams(factors(at));
        let mut value = None;
        // 1. The mass, where cells are hidden.
        if !self.data.is_complete() {
            if !self.is_frozen(self.order() + 1) {
                let before = self.refit_mass(at);
                value = measure.then_some(before);
            } else if measure {
                value = Some(self.explicit(at));
            }
        }
        // 2. Mode after mode, in each its columns one after the other.
        let mut last = Vec::new();
        let free = |m: &usize| !self.is_frozen(m + 1);
        let modes: Vec<usize> = (0..self.order()).filter(free).collect();
        // With all factors frozen the weights still need the data contracted once.
        let visited: &[usize] = if modes.is_empty() { &[0] } else { &modes };
        for (nth, &mode) in visited.iter().enumerate() {
            let m = self.contract(at, mode, &mut memo);
            let gamma = hadamard(&grams, Some(mode));
            let mut u = widen(&factors(at)[mode]);
            if measure && nth == 0 && value.is_none() {
                let h = gamma.component_mul(&grams[mode]);
                value = Some(self.squared_error(at, &h, &contracted(&m, &u)));
            }
            if !modes.is_empty() {
                let (w, kept) = (scaled_weights(at), &self.kept[mode + 1]);
                // The objective of a column is divided by `2 s λ`.
                let how = (
                    self.model.revive,
                    2.0 * self.sparsity.modes[mode] / mass(at),
                );
                descend_on_simplex(&mut u, &m, &gamma, &w, kept, how, &mut projector);
                put(at, mode + 1, &u);
                if let Some(memo) = memo.as_mut().filter(|_| nth + 1 < visited.len()) {
                    memo.set(mode, &factors(at)[mode]);
                }
                // The rest of the sweep sees what is kept.
                u.apply(|x| *x = T::lit(*x).to_f64());
                grams[mode] = gram(&u);
            }
            last = contracted(&m, &u);
        }
        // 3. The weights.
        self.weigh(at, &hadamard(&grams, None), &last)?;
        Ok(value.map(|value| value - reward))
    }

    /// Largest change that a projected gradient step makes to the weights.
    fn weights_residual(
        &self,
        at: &Parameters<T>,
        h: &DMatrix<f64>,
        f: Vec<f64>,
        projector: &mut Projector,
    ) -> f64 {
        let l = at.at(0).column(0).map(|w| w.to_f64());
        let rewards = self.sparsity.of_components(factors(at)).into_iter();
        let rewards = rewards.zip(l.iter());
        let rewards = rewards.map(|(r, l)| (r + 2.0 * self.sparsity.weights * l) / mass(at));
        let f = f.iter().zip(rewards).map(|(f, reward)| f + reward);
        let slope = h * &l * mass(at) - DVector::from_vec(f.collect());
        let step = 1.0 / (h.trace() * mass(at));
        let mut moved: Vec<f64> = (l.iter().zip(slope.iter()))
            .map(|(l, g)| l - step * g)
            .collect();
        project(projector, &mut moved, |z| l[z], &self.kept[0]);
        let moves = moved.iter().zip(l.iter());
        moves.fold(0.0, |worst: f64, (new, old)| worst.max((new - old).abs()))
    }
}

impl<T: Real> Algorithm<T> for Descent<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        // A step that fails leaves the parameters as they were.
        let mut next = at.clone();
        let value = self.sweep(&mut next, measure)?;
        next.count();
        *at = next;
        Ok(Stepped::of(value))
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Ok(self.likelihood(at)? - self.reward(at))
    }

    /// The squared error.
    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        if !self.data.is_complete() {
            return Ok(self.explicit(at));
        }
        let m = self.data.mttkrp(factors(at), 0) * self.scale;
        let f = contracted(&m, &widen(&factors(at)[0]));
        Ok(self.squared_error(at, &hadamard(&grams(factors(at)), None), &f))
    }

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    /// `‖G‖²`.
    fn unit(&self) -> f64 {
        self.norm
    }

    fn mass(&self) -> f64 {
        self.mass
    }

    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        Ok(Some(vec![self.mass * mass(at)]))
    }

    fn extrapolates(&self, _: &Parameters<T>) -> Result<(), FitError> {
        Ok(())
    }

    fn extrapolated(&self, base: &Parameters<T>, flat: &[f64], last: &[f64]) -> Parameters<T> {
        let mut projector = Projector::new(self.model.projection);
        extrapolated(&self.specs, &mut projector, base, flat, last)
    }

    /// [PNTF 1] a column that is not a distribution is projected onto the simplex.
    fn given(&self, block: usize, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        let spec = &self.specs[block];
        match block {
            0 => given(spec, value, spec.constraint),
            _ if block <= self.order() => given(spec, value, Constraint::Free),
            _ => spec.given(value),
        }
    }

    fn fill(
        &self,
        start: Start,
        blocks: &mut [Option<DMatrix<T>>],
        _: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        if start != Start::Deflation {
            return Err(FitError::NoStart { start });
        }
        let is_free: Vec<bool> = blocks.iter().map(Option::is_none).collect();
        let even = |(block, spec): (&mut Option<DMatrix<T>>, &BlockSpec<T>)| {
            block.take().unwrap_or_else(|| spec.even())
        };
        let mut filled: Vec<_> = blocks.iter_mut().zip(&self.specs).map(even).collect();
        let ([weights], rest) = filled.split_at_mut(1) else {
            return Err(FitError::NoStart { start });
        };
        let weights = is_free[0].then(|| weights.as_mut_slice());
        let factors = &mut rest[..self.order()];
        let k = self.model.components;
        deflate(&self.data, factors, &is_free[1..], k, weights, progress)?;
        blocks
            .iter_mut()
            .zip(filled)
            .for_each(|(b, f)| *b = Some(f));
        Ok(())
    }

    /// A model without mass gains none.
    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        let value = mass(at);
        match value > 0.0 {
            true => Ok(()),
            false => Err(FitError::Setting {
                name: "mass",
                value,
                expected: "a number > 0",
            }),
        }
    }

    /// Largest change that a projected gradient step makes to an entry of what is free: 0 exactly at a stationary point. Every column has
    /// its own step, `1 / (s λ)² Γ`, the inverse of its curvature; that of the weights is `1 / s² tr H`, with `H` the product of all Grams.
    /// Gradients are those of half the objective.
    fn residual(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let mut projector = Projector::new(self.model.projection);
        let mut memo = self.memo(at);
        let grams = grams(factors(at));
        let w = scaled_weights(at);
        let mut worst: f64 = 0.0;
        let mut f = Vec::new();
        for mode in 0..self.order() {
            let free = !self.is_frozen(mode + 1);
            if !free && mode > 0 {
                continue;
            }
            let m = self.contract(at, mode, &mut memo);
            let u = widen(&factors(at)[mode]);
            if mode == 0 {
                f = contracted(&m, &u);
            }
            if !free {
                continue;
            }
            let gamma = hadamard(&grams, Some(mode));
            let n = residual_products(&m, &u, &gamma, &w);
            let moving = |&t: &usize| w[t] > 0.0 && !is_kept(&self.kept[mode + 1], t);
            for t in (0..w.len()).filter(moving) {
                // [PNTF 5] u against its own projection of u - grad/L, L = λ² Γ
                let rho = w[t] * gamma[(t, t)];
                let pull = rho + 2.0 * self.sparsity.modes[mode] / mass(at);
                let mut b: Vec<f64> = n
                    .column(t)
                    .iter()
                    .zip(u.column(t).iter())
                    .map(|(n, u)| n + pull * u)
                    .collect();
                projector.project(&mut b, rho);
                for (b, u) in b.iter().zip(u.column(t).iter()) {
                    worst = worst.max((b - u).abs());
                }
            }
        }
        if !self.is_frozen(0) {
            let h = hadamard(&grams, None);
            worst = worst.max(self.weights_residual(at, &h, f, &mut projector));
        }
        Ok(worst)
    }
}
