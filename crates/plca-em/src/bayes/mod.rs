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

use plca_fit::{
    FitError,
    blocks::{Axis, BlockSpec, Frozen},
    setting::BlockSettings,
};
use plca_priors::{Entries, PriorSpec};
use plca_tensor::Real;

pub use self::plca::{PlcaVb, PlcaVbState};
pub use self::plsa::{PlsaVb, PlsaVbState};

/// Refuses priors that are no Dirichlet laws.
fn check_priors(settings: &BlockSettings) -> Result<(), FitError> {
    for (name, prior) in settings.priors() {
        for &value in shapes(name, prior)?.as_slice() {
            let good = value > 0.0 && value.is_finite();
            FitError::unless(good, "prior shape", value, "a finite number > 0")?;
        }
    }
    Ok(())
}

fn shapes<'a>(block: &str, prior: &'a PriorSpec) -> Result<&'a Entries, FitError> {
    prior.shapes().map_err(|source| FitError::Prior {
        block: block.to_string(),
        source,
    })
}

/// The shapes of the prior of a block, 1 where it has none.
fn prior_of<T: Real>(settings: &BlockSettings, spec: &BlockSpec<T>) -> Result<Entries, FitError> {
    let prior = match settings.prior_of(&spec.name) {
        Some(prior) => shapes(&spec.name, prior)?.clone(),
        None => return Ok(Entries::All(1.0)),
    };
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

/// Those of all blocks.
fn priors_of<T: Real>(
    settings: &BlockSettings,
    specs: &[BlockSpec<T>],
) -> Result<Vec<Entries>, FitError> {
    specs.iter().map(|spec| prior_of(settings, spec)).collect()
}

fn components<T: Real>(spec: &BlockSpec<T>) -> usize {
    match spec.axes.components() {
        Axis::Columns => spec.shape.1,
        Axis::Rows | Axis::None => spec.shape.0,
    }
}

/// Writes what is frozen into the blocks: all of them, or whole columns, since the entries of a column have one law.
fn freeze<T: Real>(settings: &BlockSettings, specs: &mut [BlockSpec<T>]) -> Result<(), FitError> {
    settings.apply_frozen(specs)?;
    let parts = |spec: &&BlockSpec<T>| match spec.frozen {
        Frozen::No | Frozen::Whole => false,
        Frozen::Components(_) => spec.axes.components() != Axis::Columns,
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
