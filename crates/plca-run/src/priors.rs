//! Blocks that may have priors, and how priors are read.

use plca_fit::blocks::FileLayout;
use plca_io::Array;
use plca_priors::{Entries, PriorError, PriorSpec, Priors, RatePriors};

/// What priors a block may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// All on distributions.
    Simplex,
    /// All on rates.
    Rates,
    /// A Dirichlet law.
    Dirichlet,
    /// A gamma law, of which the rate is this unless it is said.
    Gamma(f64),
}

/// A block that may have a prior.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PriorBlock {
    /// Its name; of a posterior, that of its means.
    pub name: String,
    /// Rows and columns.
    pub size: (usize, usize),
    /// How it lies in files.
    pub layout: FileLayout,
    /// Of a component in a file.
    pub extents: Vec<usize>,
    /// What priors it may have.
    pub law: Law,
}

impl PriorBlock {
    /// The shape of its array in files.
    pub fn shape(&self) -> Vec<usize> {
        self.layout.shape(self.size, &self.extents)
    }

    /// Whether a name is that of this block; a posterior is named with or without `_shape`.
    pub fn is_called(&self, name: &str) -> bool {
        let of_posterior = matches!(self.law, Law::Dirichlet | Law::Gamma(_));
        self.name == name || of_posterior && name.strip_suffix("_shape") == Some(&*self.name)
    }

    /// The prior of a text.
    ///
    /// # Errors
    ///
    /// [`PriorError`] for a text that is no prior that the block may have.
    pub fn read(&self, text: &str) -> Result<PriorSpec, PriorError> {
        match self.law {
            Law::Simplex => drop(Priors::<f64>::parse(text, self.size)?),
            Law::Rates => drop(RatePriors::<f64>::parse(text, self.size)?),
            Law::Dirichlet | Law::Gamma(_) => {}
        }
        let prior: PriorSpec = text.parse()?;
        match self.law {
            Law::Dirichlet => drop(prior.shapes()?),
            Law::Gamma(_) => drop(prior.gamma()?),
            _ => {}
        }
        Ok(prior)
    }

    /// An entry each, from an array that broadcasts to the shape of the block.
    ///
    /// # Errors
    ///
    /// What is wrong with the array.
    pub fn each(&self, array: &Array<f64>) -> Result<Entries, String> {
        let shape = self.shape();
        let values = broadcast(array, &shape)?;
        let block = self.layout.block(&shape, &values);
        Ok(Entries::Each(block.ok_or("has no entry")?))
    }
}

/// The values of an array broadcast to a shape, in C order: dimensions are aligned at their end, those of size 1 repeated; what is wrong
/// with one that does not.
///
/// # Errors
///
/// What is wrong with the array.
pub fn broadcast(array: &Array<f64>, shape: &[usize]) -> Result<Vec<f64>, String> {
    let unfit = || format!("shape {:?} does not broadcast to {shape:?}", array.shape);
    let missing = shape.len().checked_sub(array.shape.len());
    let missing = missing.ok_or_else(unfit)?;
    let mut strides = vec![0; shape.len()];
    let mut stride = 1;
    for d in (missing..shape.len()).rev() {
        let size = array.shape[d - missing];
        if size != shape[d] && size != 1 {
            return Err(unfit());
        }
        strides[d] = if size == 1 { 0 } else { stride };
        stride *= size;
    }
    let value = |cell: usize| {
        let mut rest = cell;
        let step = |d: usize| {
            let index = rest % shape[d];
            rest /= shape[d];
            strides[d] * index
        };
        array.values[(0..shape.len()).rev().map(step).sum::<usize>()]
    };
    let cells: usize = shape.iter().product();
    Ok((0..cells).map(value).collect())
}
