//! Dirichlet priors of atoms and factors, gamma priors of what carries the scale.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_fit::{
    FitError,
    blocks::{BlockSpec, Constraint, Prior},
    setting::BlockSettings,
};
use plca_priors::{
    Components, Dirichlet, Gamma, PriorError, PriorRules, PriorSpec, SimplexPrior, Step,
};
use plca_tensor::Real;

use super::is_law;
use crate::Entries;
use crate::snmf::normalisers;

/// Puts laws on all blocks that have no prior of another kind, flat ones where none is asked for.
pub(super) fn apply<T: Real>(
    blocks: &BlockSettings,
    specs: &mut [BlockSpec<T>],
) -> Result<(), FitError> {
    for spec in specs {
        let refused = |source| FitError::Prior {
            block: spec.name.to_string(),
            source,
        };
        let prior = blocks.prior_of(&spec.name);
        if !prior.is_none_or(is_law) {
            continue;
        }
        spec.prior = Some(if spec.constraint == Constraint::Simplex {
            let shapes = prior.map(PriorSpec::shapes).transpose().map_err(refused)?;
            let shapes = Shapes::new(shapes.cloned().unwrap_or(Entries::All(1.0)));
            Prior::Simplex(Arc::new(shapes.map_err(refused)?))
        } else {
            let flat = (&Entries::All(1.0), &Entries::All(0.0));
            let gamma = prior.map(PriorSpec::gamma).transpose().map_err(refused)?;
            let (shape, rate) = gamma.unwrap_or(flat);
            let gamma = Gamma::of(shape.clone(), rate.clone()).map_err(refused)?;
            Prior::Rate(Arc::new(gamma))
        });
        spec.check()?;
    }
    Ok(())
}

/// A Dirichlet prior whose objective has its constant.
#[derive(Debug)]
pub(crate) struct Shapes {
    prior: Dirichlet,
    shapes: Entries,
}

impl Shapes {
    pub(crate) fn new(shapes: Entries) -> Result<Self, PriorError> {
        let prior = match &shapes {
            Entries::Each(each) => Dirichlet::per_entry(each.clone())?,
            Entries::All(shape) => Dirichlet::symmetric(*shape)?,
            Entries::PerComponent(_) => {
                return Err(PriorError::Domain {
                    name: "shapes by component",
                    value: f64::NAN,
                });
            }
        };
        Ok(Self { prior, shapes })
    }
}

impl PriorRules for Shapes {
    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        self.prior.check(shape)
    }

    fn pseudo_counts(&self, shape: (usize, usize)) -> Option<DMatrix<f64>> {
        self.prior.pseudo_counts(shape)
    }

    /// `ln Γ(Σ α) - Σ ln Γ(α)` of every column.
    fn ln_constant(&self, (rows, columns): (usize, usize)) -> f64 {
        normalisers(rows, columns, |at| {
            self.shapes.get(at, Components::Columns(rows))
        })
    }

    fn may_empty(&self) -> bool {
        self.prior.may_empty()
    }

    fn shares_columns(&self) -> bool {
        true
    }
}

impl<T: Real> SimplexPrior<T> for Shapes {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        self.prior.update(counts, theta, step)
    }

    fn ln_density(&self, theta: &DMatrix<T>, step: &Step<'_>) -> f64 {
        self.prior.ln_density(theta, step)
    }
}
