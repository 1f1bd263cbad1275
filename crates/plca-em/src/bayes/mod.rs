//! Variational Bayes of PLCA and PLSA under Dirichlet priors of all blocks. With two modes, one of them given, it is latent Dirichlet
//! allocation.
//!
//! ```math
//! q = \prod_\text{columns} \mathrm{Dirichlet}(a),
//! \qquad \tilde x = e^{\psi(a) - \psi(\sum a)},
//! \qquad a \gets a_0 + C(\tilde x)
//! ```
//!
//! `a` are the shapes of a column, `a_0` those of its prior, and `C` the counts that an E-step expects at the geometric means `x̃`, whose columns sum to
//! less than 1. So an iteration costs what one of EM does. All blocks move from the same counts, and no iteration lowers the bound. `[EXT 3]`

/// The reconstruction of a state by its means, of the shape that is given.
macro_rules! by_means {
    ($state:ident, |$this:ident| $shape:expr, $components:expr) => {
        impl<T: Real> plca_fit::Reconstruct for $state<T> {
            fn shape(&self) -> Vec<usize> {
                let $this = self;
                $shape
            }

            fn components(&self) -> usize {
                let $this = self;
                $components
            }

            fn cell(&self, index: &[usize]) -> f64 {
                self.means().map_or(f64::NAN, |means| means.cell(index))
            }

            fn cells(
                &self,
                component: Option<usize>,
            ) -> Result<plca_tensor::DenseTensor<T>, FitError> {
                self.means()?.cells(component)
            }
        }
    };
}

mod counts;
mod dirichlet;
mod documents;
mod plca;
mod plsa;
mod shards;
mod stream;

use std::collections::BTreeMap;

use plca_fit::{Axis, BlockSpec, FitError, Frozen, Settings};
use plca_priors::Entries;
use plca_tensor::Real;

pub use self::plca::{PlcaVb, PlcaVbBuilder, PlcaVbState};
pub use self::plsa::{PlsaVb, PlsaVbBuilder, PlsaVbState};

/// The shapes of priors by the names of their blocks; those that are not named are 1.
#[derive(Clone, Debug, Default)]
struct Priors(BTreeMap<String, Entries>);

impl Priors {
    /// Refuses shapes that no Dirichlet law has.
    fn check(&self) -> Result<(), FitError> {
        for &value in self.0.values().flat_map(Entries::as_slice) {
            let good = value > 0.0 && value.is_finite();
            FitError::unless(good, "prior shape", value, "a finite number > 0")?;
        }
        Ok(())
    }

    /// Those of every block.
    fn of<T: Real>(&self, specs: &[BlockSpec<T>]) -> Result<Vec<Entries>, FitError> {
        let known = |name: &String| specs.iter().any(|spec| spec.name == **name);
        if let Some(name) = self.0.keys().find(|name| !known(name)) {
            return Err(FitError::UnknownBlock {
                name: name.clone(),
                expected: specs.iter().map(|spec| spec.name.to_string()).collect(),
            });
        }
        specs.iter().map(|spec| self.of_block(spec)).collect()
    }

    /// That of a block.
    fn of_block<T: Real>(&self, spec: &BlockSpec<T>) -> Result<Entries, FitError> {
        let prior = self.0.get(&*spec.name).cloned();
        let prior = prior.unwrap_or(Entries::All(1.0));
        let (got, expected) = match &prior {
            Entries::All(_) => (spec.shape, spec.shape),
            Entries::PerComponent(each) => ((each.len(), 1), (components(spec), 1)),
            Entries::Each(each) => (each.shape(), spec.shape),
        };
        match got == expected {
            true => Ok(prior),
            false => Err(FitError::Shape {
                block: format!("prior of {}", spec.name),
                got,
                expected,
            }),
        }
    }
}

fn components<T: Real>(spec: &BlockSpec<T>) -> usize {
    match spec.components {
        Axis::Columns => spec.shape.1,
        Axis::Rows | Axis::None => spec.shape.0,
    }
}

/// Writes what is frozen into the blocks: all of them, or whole columns, since the entries of a column have one law.
fn freeze<T: Real>(settings: &Settings<T>, specs: &mut [BlockSpec<T>]) -> Result<(), FitError> {
    settings.apply(specs)?;
    let parts = |spec: &&BlockSpec<T>| match spec.frozen {
        Frozen::No | Frozen::Whole => false,
        Frozen::Components(_) => spec.components != Axis::Columns,
        _ => true,
    };
    match specs.iter().find(parts) {
        Some(spec) => Err(FitError::Conflict {
            what: format!(
                "the entries of a column of `{}` have a joint distribution: freeze all of the block, or whole columns",
                spec.name
            ),
        }),
        None => Ok(()),
    }
}
