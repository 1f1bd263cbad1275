//! Dirichlet priors of atoms and factors, gamma priors of what carries the scale.

use std::collections::BTreeMap;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_fit::{BlockSpec, Constraint, FitError, Prior};
use plca_priors::{Components, Dirichlet, Gamma, PriorError, PriorRules, SimplexPrior, Step};
use plca_tensor::Real;

use crate::Entries;
use crate::prior::Parts;
use crate::snmf::normalisers;

/// Priors by the names of their blocks; those that are not named are flat.
#[derive(Clone, Debug, Default)]
pub(super) struct CpPriors {
    pub(super) dirichlet: BTreeMap<String, Entries>,
    pub(super) gamma: Option<(Entries, Entries)>,
    /// Those of variational Bayes that are laid out as posteriors.
    pub(super) parts: Parts,
    /// Flat priors are in the objective too.
    pub(super) constants: bool,
}

impl CpPriors {
    pub(super) fn any(&self) -> bool {
        self.constants || self.gamma.is_some() || !self.dirichlet.is_empty()
    }

    /// Writes them into the blocks.
    pub(super) fn apply<T: Real>(&self, specs: &mut [BlockSpec<T>]) -> Result<(), FitError> {
        if !self.any() {
            return Ok(());
        }
        let takes = |spec: &BlockSpec<T>| spec.constraint == Constraint::Simplex;
        let known = |name: &String| specs.iter().any(|s| takes(s) && s.name == **name);
        if let Some(name) = self.dirichlet.keys().find(|name| !known(name)) {
            let expected = specs.iter().filter(|s| takes(s));
            return Err(FitError::UnknownBlock {
                name: name.clone(),
                expected: expected.map(|s| s.name.to_string()).collect(),
            });
        }
        for spec in specs {
            let refused = |source| FitError::Prior {
                block: spec.name.to_string(),
                source,
            };
            spec.prior = Some(if takes(spec) {
                let shapes = self.dirichlet.get(&*spec.name).cloned();
                let prior = Shapes::new(shapes.unwrap_or(Entries::All(1.0)));
                Prior::Simplex(Arc::new(prior.map_err(refused)?))
            } else {
                let flat = (Entries::All(1.0), Entries::All(0.0));
                let (shape, rate) = self.gamma.clone().unwrap_or(flat);
                Prior::Rate(Arc::new(Gamma::of(shape, rate).map_err(refused)?))
            });
            spec.check()?;
        }
        Ok(())
    }
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
