//! The posteriors of tensors that a pass gives, and their bound.

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters, Progress,
    blocks::{Axis, BlockSpec},
    em::{Counts, Expectation, Wanted},
};
use plca_priors::Components;
use plca_tensor::{Real, SignedWanted};
use rand::Rng;

use super::counts::drawn;
use super::form::{ATOMS, Form, Laws};
use super::others::Others;
use super::slabs::Slabs;
use crate::posterior::check_held;
use crate::rule::Split;
use crate::sides::split;
use crate::vb::shapes;
use crate::{Factors, Posterior};

/// Variational Bayes on data: what is expected of a block is its new posterior.
#[derive(Debug)]
pub(super) struct CpBound<T: Real> {
    pub(super) cells: Slabs<T>,
    pub(super) split: Split,
    /// The sum of the absolute values.
    pub(super) size: f64,
    pub(super) form: Form,
    pub(super) specs: Vec<BlockSpec<T>>,
    pub(super) laws: Laws,
}

/// New blocks as far as they are wanted, and the likelihood term.
type Updated<T> = (Vec<Option<DMatrix<T>>>, f64);

impl<T: Real> CpBound<T> {
    fn axis(&self, block: usize) -> Components {
        let spec = &self.specs[block];
        match spec.axes.components() {
            Axis::Rows => Components::Rows(spec.shape.0),
            Axis::Columns | Axis::None => Components::Columns(spec.shape.0),
        }
    }

    /// The posterior after an E-step at these factors, as far as it is wanted, and the likelihood term. The logarithms of the factors are asked for
    /// where the numbers do not do.
    fn update(
        &self,
        factors: &[DMatrix<T>],
        logs: impl Fn() -> Result<Vec<DMatrix<f64>>, FitError>,
        wanted: &[bool],
        value: bool,
    ) -> Result<Updated<T>, FitError> {
        let pass = SignedWanted {
            left: wanted[0],
            right: wanted[1..].contains(&true),
            value,
        };
        let [plus, minus] = split(&factors[0]);
        let others = self.cells.others(Others::new(factors, self.form.scale));
        let names = [ATOMS, &*self.specs[self.form.gamma].name];
        let atoms = (&factors[0], [&plus, &minus]);
        let logs = || {
            let logs = logs()?;
            let atoms = split(&logs[0]).map(|side| side.transpose());
            Ok((atoms, Others::of_logs(&logs, self.form.scale)))
        };
        let passed = (self.cells).pass(self.split, atoms, &others, pass, names, Some(&logs))?;
        let shares = passed.shares.map(|shares| {
            let weights = self.form.scale.is_none().then(|| shares.weights());
            weights
                .into_iter()
                .chain(shares.factors())
                .collect::<Vec<_>>()
        });
        let places = (1..self.specs.len()).filter(|&j| !self.form.is_rate(j));
        let counts = places.zip(shares.into_iter().flatten());
        let atoms = passed.atoms.map(|counts| (0, counts));
        let mut new = vec![None; self.specs.len()];
        for (j, mut counts) in atoms.into_iter().chain(counts) {
            if wanted[j] {
                // [EXT 6] ah <- al + (p,q)~, be^_j <- be_j + C_j~, sh <- a + n~
                let axis = self.axis(j);
                shapes(&mut counts, &self.laws.shapes[j], axis, &self.specs[j].name)?;
                new[j] = Some(counts);
            }
        }
        let rate = self.form.gamma + 1;
        new[rate] = wanted[rate].then(|| {
            let (rows, columns) = self.specs[rate].shape;
            let mut rates = DMatrix::zeros(rows, columns);
            let each = &self.laws.shapes[rate];
            // [EXT 6] bh <- b + 1
            each.for_each(rates.as_mut_slice(), self.axis(rate), |x, b| {
                *x = T::lit(b + 1.0)
            });
            rates
        });
        Ok((new, passed.value))
    }

    /// The posterior under even counts of the free blocks; the others are as they were learnt.
    pub(super) fn even_but(
        &self,
        learnt: &[DMatrix<T>],
        is_free: impl Fn(&str) -> bool,
    ) -> Vec<DMatrix<T>> {
        let blocks = self.specs.iter().enumerate().map(|(j, spec)| {
            let (rows, columns) = spec.shape;
            if !is_free(&spec.name) {
                return learnt[j].clone();
            }
            // Of shapes, counts that sum to the data; of rates, what observes once more.
            let count = match self.form.is_rate(j) {
                true => 1.0,
                false => self.size / (rows * columns) as f64,
            };
            let mut block = DMatrix::zeros(rows, columns);
            let each = &self.laws.shapes[j];
            each.for_each(block.as_mut_slice(), self.axis(j), |x, a| {
                *x = T::lit(a + count);
            });
            block
        });
        blocks.collect()
    }
}

impl<T: Real> Expectation<T> for CpBound<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let [main, others] = self.form.posteriors(at.matrices());
        let means = others.iter().map(|q| Ok(q.geometric()?.plus));
        let means = means.collect::<Result<Vec<_>, FitError>>()?;
        let factors = self.form.blocks(main[0].geometric()?, means);
        let logs = || {
            let columns = |q: &Posterior<T>| Ok(q.ln_geometric()?.atoms[0].transpose());
            let others = others
                .iter()
                .map(columns)
                .collect::<Result<_, FitError>>()?;
            let logs = main[0].ln_geometric()?;
            let [plus, minus] = logs.atoms.map(|side| side.transpose());
            let main = Factors {
                plus,
                minus,
                activations: logs.activations,
            };
            Ok(self.form.blocks(main, others))
        };
        let (blocks, fit) = self.update(&factors, logs, wanted.blocks, wanted.value)?;
        let mut value = None;
        if wanted.value {
            let sum = |(j, factor): (usize, &DMatrix<T>), z: usize| -> f64 {
                match self.form.scale.is_none() && j == 1 {
                    true => factor[z].to_f64(),
                    false => factor.column(z).iter().map(|x| x.to_f64()).sum(),
                }
            };
            let product = |z| {
                factors
                    .iter()
                    .enumerate()
                    .map(|f| sum(f, z))
                    .product::<f64>()
            };
            // [EXT 6] Σ_k w~ (Σ tt) Π_j (Σ B_j~): hidden cells included
            let mut bound = fit + (0..self.specs[0].shape.1).map(product).sum::<f64>();
            for (q, prior) in main.iter().chain(&others).zip(&self.laws.priors) {
                bound += q.bound_terms(prior)?;
            }
            value = Some(bound);
        }
        Ok(Counts { blocks, value })
    }

    /// Under a posterior everything has some probability, if its shapes can be held.
    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        check_held(at)?;
        Ok(None)
    }

    fn even(&self) -> Result<Option<Vec<DMatrix<T>>>, FitError> {
        Ok(Some(self.even_but(&[], |_| true)))
    }

    /// The update from factors as EM draws them.
    fn draw(&self, rng: &mut dyn Rng, _: &mut Progress<'_>) -> Result<Vec<DMatrix<T>>, FitError> {
        let specs = super::specs(&self.cells.folding, self.specs[0].shape.1, self.form.scale);
        let factors = drawn(&self.cells, self.size, &specs, self.form.scale, rng);
        let all = vec![true; self.specs.len()];
        let logs = || Ok(factors.iter().map(|m| m.map(|x| x.to_f64().ln())).collect());
        let (new, _) = self.update(&factors, logs, &all, false)?;
        Ok(new.into_iter().flatten().collect())
    }

    /// The sum of the absolute values, 1 of data that are all 0.
    fn unit(&self) -> f64 {
        if self.size > 0.0 { self.size } else { 1.0 }
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        super::counts::facts(&self.cells.folding, self.form.scale)
    }
}
