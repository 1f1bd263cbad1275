//! The models that separate.

use plca_tensor::{Data, Factor, Real};

use super::product::{each, for_each_row, transpose_to};
use super::separable::{pseudo_counts, refuse};
use super::{Plan, Product, Separable};
use crate::blocks::following;
use crate::{
    EmError, NmfEm, PlcaEm, PlsaEm,
    before::{NmfState, PlcaState, PlsaState},
};

impl<T: Real> Separable<T> for PlcaEm<'_, T> {
    fn data(&self) -> &dyn Data<T> {
        self.data
    }

    fn plan(&self) -> Result<Plan, EmError> {
        let config = self.config;
        let (shape, k) = (self.data.shape(), config.components());
        refuse(config.temper != 1.0, "tempering")?;
        refuse(config.freeze_weights, "a frozen block of weights")?;
        let free: Vec<usize> = (0..shape.len())
            .filter(|j| !config.frozen.contains(j))
            .collect();
        refuse(free.is_empty(), "a model of free weights alone")?;
        let weights = pseudo_counts("weights", config.weights_prior.as_ref(), (k, 1))?;
        let mut pseudo = vec![None; shape.len()];
        for &j in &free {
            let block = (shape[j], k);
            let counts = pseudo_counts(&format!("factor_{j}"), config.factor_prior(j), block)?;
            pseudo[j] = counts.map(|c| c.transpose());
        }
        Ok(Plan {
            components: k,
            free,
            pseudo,
            weights: weights.map(|w| w.as_slice().to_vec()),
            given: None,
        })
    }

    fn check_state(&self, state: &PlcaState<T>) -> Result<(), EmError> {
        self.check(state)?;
        refuse(state.power != 1.0, "tempering")
    }

    fn product(&self, state: &PlcaState<T>) -> Product<T> {
        let weights = state.weights.iter().map(|w| w.to_f64()).collect();
        Product::new(
            state.factors.iter().map(|f| f.transpose()).collect(),
            weights,
        )
    }

    fn write(&self, _: &Plan, product: &Product<T>, state: &mut PlcaState<T>) {
        // [SPEC 3] P(z) <- n / Σ n
        let total: f64 = product.scale.iter().sum();
        let weights = state.weights.iter_mut().zip(&product.scale);
        weights.for_each(|(w, n)| *w = T::lit(n / total));
        let ones = vec![1.0; product.scale.len()];
        for (j, factor) in state.factors.iter_mut().enumerate() {
            if !self.config.frozen.contains(&j) {
                transpose_to(&product.factors[j], &ones, factor);
            }
        }
        state.iteration = following(state.iteration);
    }

    fn reached(&self, ln_lik: f64, state: &PlcaState<T>) -> f64 {
        ln_lik + self.ln_prior(state)
    }
}

impl<T: Real> Separable<T> for PlsaEm<'_, T> {
    fn data(&self) -> &dyn Data<T> {
        self.data
    }

    fn plan(&self) -> Result<Plan, EmError> {
        let config = self.config;
        let (shape, k) = (self.data.shape(), config.components);
        let (given, explained) = (config.given.mode(), config.given.explained());
        refuse(config.temper != 1.0, "tempering")?;
        refuse(config.freeze_mixture, "a frozen block `mixture`")?;
        let free = if config.freeze_basis {
            vec![given]
        } else {
            vec![explained, given]
        };
        let mut pseudo = vec![None, None];
        let basis = pseudo_counts("basis", config.basis_prior.as_ref(), (shape[explained], k))?;
        if !config.freeze_basis {
            pseudo[explained] = basis.map(|c| c.transpose());
        }
        pseudo[given] = pseudo_counts("mixture", config.mixture_prior.as_ref(), (k, shape[given]))?;
        Ok(Plan {
            components: k,
            free,
            pseudo,
            weights: None,
            given: Some(given),
        })
    }

    fn check_state(&self, state: &PlsaState<T>) -> Result<(), EmError> {
        self.check(state)?;
        refuse(state.power != 1.0, "tempering")
    }

    fn product(&self, state: &PlsaState<T>) -> Product<T> {
        let mut blocks = vec![state.basis.transpose(), state.mixture.clone()];
        if self.config.given.mode() == 0 {
            blocks.reverse();
        }
        Product::new(blocks, vec![1.0; self.config.components])
    }

    fn write(&self, plan: &Plan, product: &Product<T>, state: &mut PlsaState<T>) {
        let given = self.config.given;
        if !self.config.freeze_basis {
            let ones = vec![1.0; product.scale.len()];
            transpose_to(&product.factors[given.explained()], &ones, &mut state.basis);
        }
        let pseudo = plan.pseudo[given.mode()].as_ref();
        let factor = &product.factors[given.mode()];
        for_each_row(&mut state.mixture, |y, mixture| {
            let column = factor.column(y);
            let shares = column.iter().zip(&product.scale);
            let shares = shares.map(|(f, n)| f.to_f64() * n);
            let total: f64 = shares.clone().sum();
            // [SPEC 2] a column without data keeps its mixture, or has its prior's
            if total > 0.0 {
                let entries = mixture.iter_mut().zip(shares);
                entries.for_each(|(m, x)| *m = T::lit(x / total));
            } else if let Some(counts) = pseudo.map(|c| c.column(y)) {
                let all = counts.sum();
                if all > 0.0 {
                    let entries = mixture.iter_mut().zip(counts.iter());
                    entries.for_each(|(m, c)| *m = T::lit(c / all));
                }
            }
        });
        state.iteration = following(state.iteration);
    }

    fn reached(&self, ln_lik: f64, state: &PlsaState<T>) -> f64 {
        ln_lik + self.ln_prior(state)
    }
}

impl<T: Real> Separable<T> for NmfEm<'_, T> {
    fn data(&self) -> &dyn Data<T> {
        self.data
    }

    fn self_information(&self) -> Result<f64, EmError> {
        Ok(self.self_information)
    }

    fn plan(&self) -> Result<Plan, EmError> {
        let frozen = [self.config.freeze_w, self.config.freeze_h];
        let free: Vec<usize> = (0..2).filter(|&j| !frozen[j]).collect();
        refuse(free.is_empty(), "a model without a free block")?;
        let k = self.config.components;
        Ok(Plan {
            components: k,
            free,
            pseudo: vec![None, None],
            weights: None,
            given: None,
        })
    }

    fn check_state(&self, state: &NmfState<T>) -> Result<(), EmError> {
        self.check(state)
    }

    fn product(&self, state: &NmfState<T>) -> Product<T> {
        let k = state.w.ncols();
        Product::new(vec![state.w.transpose(), state.h.clone()], vec![1.0; k])
    }

    fn write(&self, _: &Plan, product: &Product<T>, state: &mut NmfState<T>) {
        let total = self.data.total();
        if self.config.freeze_h {
            // What the rows of H sum to stays with them.
            let sums: Vec<T> = Factor::Rows(&state.h).component_sums();
            let n = scaled(product, total, &sums);
            return transpose_to(&product.factors[0], &n, &mut state.w);
        }
        // [SI eq. 97] [SPEC 3] W = F_1 D, H = v D⁻¹ diag(P(z)) F_2ᵀ
        let sums: Vec<T> = Factor::Columns(&state.w).component_sums();
        if !self.config.freeze_w {
            let d: Vec<f64> = sums.iter().map(|d| d.to_f64()).collect();
            transpose_to(&product.factors[0], &d, &mut state.w);
        }
        let n = scaled(product, total, &sums);
        each(&mut state.h, [&product.factors[1]], &n, |_, [h], n| h * n);
    }

    fn reached(&self, ln_lik: f64, _: &NmfState<T>) -> f64 {
        let total = self.data.total();
        self.divergence(ln_lik + total * total.ln(), total)
    }
}

/// `v n / d`, 0 where a component has no mass.
fn scaled<T: Real>(product: &Product<T>, total: f64, sums: &[T]) -> Vec<f64> {
    let pairs = product.scale.iter().zip(sums);
    pairs
        .map(|(n, d)| {
            if *d > T::zero() {
                total * n / d.to_f64()
            } else {
                0.0
            }
        })
        .collect()
}
