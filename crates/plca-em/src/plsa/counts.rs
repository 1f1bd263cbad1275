//! Expected counts of PLSA, and how it separates.

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters,
    blocks::{BlockSpec, Draw},
    em::{Counts, Expectation, Wanted},
    separable::{Plan, Product, Separable, pseudo_counts, refuse, transpose_to},
};
use plca_tensor::parallel::for_each_part;
use plca_tensor::{Cp, Data, Expected, Modes, Real, Request, Rule, check_counts};

use super::{Plsa, with_model};
use crate::Given;
use crate::blocks::is_free;
use crate::expectation::add_hidden;
use crate::online::Streamed;
use crate::product::{conflict, count_unit, power, seen_mass, unsupported};

fn plan<T: Real>(model: &Plsa, specs: &[BlockSpec<T>]) -> Result<Plan, FitError> {
    let (explained, given) = (model.given.explained(), model.given.mode());
    refuse(model.temper != 1.0, "tempering")?;
    refuse(!is_free(&specs[1]), "a frozen block `mixture`")?;
    let mut pseudo = vec![None, None];
    let mut free = vec![given];
    if is_free(&specs[0]) {
        free.insert(0, explained);
        pseudo[explained] = pseudo_counts(&specs[0])?.map(|c| c.transpose());
    }
    pseudo[given] = pseudo_counts(&specs[1])?;
    Ok(Plan {
        components: model.components,
        free,
        pseudo,
        weights: None,
        given: Some(given),
    })
}

/// Refuses data that are not a matrix.
pub(crate) fn check_order(order: usize) -> Result<(), FitError> {
    match order {
        2 => Ok(()),
        _ => conflict(format!("PLSA is for matrices, the data have order {order}")),
    }
}

/// PLSA on data.
#[derive(Debug)]
pub(super) struct PlsaCounts<'a, T: Real> {
    pub(super) model: &'a Plsa,
    pub(super) data: &'a dyn Data<T>,
    /// Sums of the data over the explained mode.
    pub(super) marginal: Vec<f64>,
    /// Whether every cell was observed: here, and in all other shards of the data.
    complete: bool,
    pub(super) specs: Vec<BlockSpec<T>>,
    /// How it separates, or what is in the way.
    plan: Result<Plan, FitError>,
}

impl<'a, T: Real> PlsaCounts<'a, T> {
    pub(super) fn new(model: &'a Plsa, data: &'a dyn Data<T>) -> Result<Self, FitError> {
        check_counts(data)?;
        check_order(data.shape().len())?;
        let marginal = data.marginal(model.given.mode())?;
        let total = marginal.iter().sum();
        Self::of_part(model, data, marginal, total, data.is_complete())
    }

    /// On a part of data whose sum is `total`, `complete` if all of their cells were observed.
    pub(super) fn of_part(
        model: &'a Plsa,
        data: &'a dyn Data<T>,
        marginal: Vec<f64>,
        total: f64,
        complete: bool,
    ) -> Result<Self, FitError> {
        let mut specs = model.specs(data.shape())?;
        // [SPEC 2] P(x2) = colsum(V) / v
        specs[2].draw = Draw::Data(marginal.iter().map(|m| m / total).collect());
        let plan = plan(model, &specs);
        Ok(Self {
            model,
            data,
            marginal,
            complete,
            specs,
            plan,
        })
    }

    /// Expected counts of the modes in this unit, with hidden cells imputed.
    fn counts(
        &self,
        basis: &DMatrix<T>,
        mixture: &DMatrix<T>,
        modes: Modes,
        value: bool,
        unit: f64,
    ) -> Result<Expected<T>, FitError> {
        let request = Request::counts(modes).value(value).count_unit(unit);
        let given = self.model.given;
        let mut e = with_model(given, basis, mixture, |cp| self.data.e_step(cp, &request))?;
        if self.data.is_complete() {
            return Ok(e);
        }
        let exposure = |mode| Request::counts(Modes::one(mode)).rule(Rule::Exposure);
        let mut seen = with_model(given, basis, mixture, |cp| {
            self.data.e_step(cp, &exposure(given.mode()))
        })?;
        let mut seen = seen.take(given.mode());
        // [SPEC 4] one scale v_obs(y) / Σ_obs P(x | y) for every y
        let mass = |column: nalgebra::DVectorView<'_, T>| column.iter().map(|x| x.to_f64()).sum();
        let masses: Vec<f64> = seen.column_iter().map(mass).collect();
        let value = value.then(|| {
            let logs = self.marginal.iter().zip(&masses);
            let logs = logs.filter(|&(&v, _)| v > 0.0).map(|(v, m)| v * m.ln());
            e.value() - logs.sum::<f64>()
        });
        let mut scaled = mixture.clone();
        for (y, (&v, &mass)) in self.marginal.iter().zip(&masses).enumerate() {
            let s = T::lit(if mass > 0.0 { v / unit / mass } else { 0.0 });
            scaled.column_mut(y).iter_mut().for_each(|x| *x *= s);
            seen.column_mut(y).iter_mut().for_each(|x| *x *= s);
        }
        let mut counts = vec![None, None];
        with_model(given, basis, &scaled, |cp| {
            for mode in (0..2).filter(|&mode| modes.contains(mode)) {
                let mut own = e.take(mode);
                if mode == given.mode() {
                    add_hidden(&mut own, &seen, cp, mode, T::one());
                } else {
                    let seen = self.data.e_step(cp, &exposure(mode))?;
                    add_hidden(&mut own, seen.counts(mode), cp, mode, T::one());
                }
                counts[mode] = Some(own);
            }
            Ok::<_, FitError>(())
        })?;
        Ok(Expected::new(counts, value))
    }
}

impl<T: Real> Expectation<T> for PlsaCounts<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let order = [self.model.given.explained(), self.model.given.mode()];
        let blocks = (0..2).filter(|&j| wanted.blocks[j]);
        let modes: Modes = blocks.map(|j| order[j]).collect();
        let (basis, mixture, unit) = (at.at(0), at.at(1), wanted.count_unit);
        let (mut e, value) = if at.power() == 1.0 || modes.is_empty() {
            let e = self.counts(basis, mixture, modes, wanted.value, unit)?;
            let value = wanted.value.then(|| e.value());
            (e, value)
        } else {
            // [HOFMANN alg. TEM] [SPEC 1.4] both factors of the asymmetric model
            let b = T::lit(at.power());
            let e = self.counts(&power(basis, b), &power(mixture, b), modes, false, unit)?;
            let untempered = || self.counts(basis, mixture, Modes::NONE, true, unit);
            let value = wanted.value.then(untempered).transpose()?;
            (e, value.map(|e| e.value()))
        };
        // [LV eq. 10] [SPEC 2] W <- W ∘ (Q Gᵀ), G <- G ∘ (Wᵀ Q), columns normalised
        let counts = order.map(|mode| modes.contains(mode).then(|| e.take(mode)));
        Ok(Counts {
            blocks: counts.into_iter().chain([None]).collect(),
            value,
        })
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let (basis, mixture) = (at.at(0), at.at(1));
        let first = |cp: &Cp<'_, T>| unsupported(self.data, cp);
        Ok(with_model(self.model.given, basis, mixture, first)?)
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
        if self.complete {
            return Ok(None);
        }
        let given = self.model.given;
        let seen = with_model(given, at.at(0), at.at(1), |cp| {
            seen_mass(self.data, cp, given.mode())
        })?;
        // [SPEC 4] s = v_obs / Σ_obs P, for every given index; 0 where nothing of it was observed
        let scales = self.marginal.iter().zip(seen);
        let scales = scales.map(|(&v, mass)| if v > 0.0 { v / mass } else { 0.0 });
        Ok(Some(scales.collect()))
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        vec![("given", vec![self.model.given.mode() as f64])]
    }

    fn tempers(&self) -> bool {
        true
    }

    fn power(&self) -> f64 {
        self.model.temper
    }
}

impl<T: Real> Separable<T> for PlsaCounts<'_, T> {
    fn data(&self) -> &dyn Data<T> {
        self.data
    }

    fn plan(&self) -> &Plan {
        self.plan.as_ref().expect("`separable` has shown it")
    }

    fn product(&self, at: &Parameters<T>) -> Product<T> {
        let mut blocks = vec![at.at(0).transpose(), at.at(1).clone()];
        if self.model.given == Given::Rows {
            blocks.reverse();
        }
        Product::new(blocks, vec![1.0; self.model.components])
    }

    fn write(&self, product: &Product<T>, at: &mut Parameters<T>) {
        let (given, k) = (self.model.given, self.model.components);
        let pseudo = Separable::plan(self).pseudo[given.mode()].as_ref();
        at.change(|j, block| match j {
            0 if is_free(&self.specs[0]) => {
                transpose_to(product.factor(given.explained()), &vec![1.0; k], block);
            }
            1 => mix(product.factor(given.mode()), product.scale(), pseudo, block),
            _ => {}
        });
    }
}

/// Columns of shares `P(z | y)` that one thread takes at a time.
const PART_COLUMNS: usize = 512;

/// Writes the mixtures that a factor of the given mode stands for.
pub(super) fn mix<T: Real>(
    factor: &DMatrix<T>,
    scale: &[f64],
    pseudo: Option<&DMatrix<f64>>,
    mixture: &mut DMatrix<T>,
) {
    let k = scale.len();
    for_each_part(mixture.as_mut_slice(), PART_COLUMNS * k, |part, columns| {
        for (at, mixture) in columns.chunks_exact_mut(k).enumerate() {
            let y = part * PART_COLUMNS + at;
            let column = factor.column(y);
            let shares = column.iter().zip(scale);
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
        }
    });
}
