//! The blocks of tensors by variational Bayes: their layout, that of the posteriors that they stand for, and their priors.

use nalgebra::DMatrix;
use plca_fit::{
    FitError,
    blocks::{Axes, BlockSpec, Constraint, Frozen},
};
use plca_tensor::Real;

use super::SignedCpVb;
use super::unfold::Folding;
use crate::posterior::least_shape;
use crate::prior::check_shape;
use crate::sides::{split, stack};
use crate::{Entries, Factors, Posterior, Prior};

/// The block of the atoms.
pub(super) const ATOMS: &str = "atoms_shape";

/// Which block has the gamma shapes; that of their rates follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Form {
    pub(super) scale: Option<usize>,
    pub(super) gamma: usize,
}

impl Form {
    pub(super) fn new(folding: &Folding, scale: Option<usize>) -> Self {
        let before = |scale| folding.others().filter(|&(j, _)| j < scale).count();
        let gamma = 1 + scale.map_or(0, before);
        Self { scale, gamma }
    }

    pub(super) fn is_rate(self, block: usize) -> bool {
        block == self.gamma + 1
    }

    /// Activations as a matrix with a row for every component.
    fn turned<T: Real>(self, block: &DMatrix<T>) -> DMatrix<T> {
        match self.scale {
            Some(_) => block.transpose(),
            None => block.clone(),
        }
    }

    fn turned_entries(self, entries: &Entries) -> Entries {
        match (self.scale, entries) {
            (Some(_), Entries::Each(each)) => Entries::Each(each.transpose()),
            _ => entries.clone(),
        }
    }

    /// Blocks as posteriors: of atoms and what carries the scale, and of the columns of every other factor.
    pub(super) fn posteriors<T: Real>(self, blocks: &[DMatrix<T>]) -> [Vec<Posterior<T>>; 2] {
        let others = blocks.iter().enumerate().skip(1);
        let others = others.filter(|&(j, _)| j != self.gamma && !self.is_rate(j));
        let others = others.map(|(_, shapes)| one_sided(shapes));
        [vec![self.main(blocks)], others.collect()]
    }

    /// That of atoms and what carries the scale.
    pub(super) fn main<T: Real>(self, blocks: &[DMatrix<T>]) -> Posterior<T> {
        let [plus, minus] = split(&blocks[0]);
        Posterior {
            plus,
            minus,
            shape: self.turned(&blocks[self.gamma]),
            rate: self.turned(&blocks[self.gamma + 1]),
        }
    }

    /// The blocks of [`SignedCp`](super::SignedCp) of such factors.
    pub(super) fn blocks<T: Real>(
        self,
        main: Factors<T>,
        others: Vec<DMatrix<T>>,
    ) -> Vec<DMatrix<T>> {
        let mut blocks = vec![stack(&main.plus, &main.minus)];
        blocks.extend(others);
        blocks.insert(self.gamma, self.turned(&main.activations));
        blocks
    }

    /// Refuses to freeze a part of a law.
    pub(super) fn check_frozen<T: Real>(self, specs: &[BlockSpec<T>]) -> Result<(), FitError> {
        let [shape, rate] = [0, 1].map(|i| &specs[self.gamma + i]);
        let parted = specs.iter().enumerate().find(|&(j, spec)| {
            j != self.gamma && !self.is_rate(j) && matches!(spec.frozen, Frozen::Entries(_))
        });
        let what = match (parted, shape.frozen == rate.frozen) {
            (Some((_, spec)), _) => format!(
                "the entries of a column of `{}` have a joint distribution: freeze all of the block, or whole components",
                spec.name
            ),
            (None, false) => format!("`{}` and `{}` are frozen together", shape.name, rate.name),
            (None, true) => return Ok(()),
        };
        Err(FitError::Conflict { what })
    }

    /// The priors of a model on blocks.
    pub(super) fn priors<T: Real>(
        self,
        vb: &SignedCpVb,
        specs: &[BlockSpec<T>],
    ) -> Result<Laws, FitError> {
        let of_dirichlet = (0..specs.len()).filter(|&j| j != self.gamma && !self.is_rate(j));
        let of_dirichlet: Vec<usize> = of_dirichlet.collect();
        let refused = |block: &str| {
            let block = block.trim_end_matches("_shape").to_string();
            move |source| FitError::Prior { block, source }
        };
        let prior = |j: usize| vb.blocks.prior_of(&specs[j].name);
        let (rows, k) = (specs[0].shape.0 / 2, vb.components);
        let parts = &vb.parts;
        let (shape, rate) = match (&parts.activations, prior(self.gamma)) {
            (Some([a, b]), _) => (self.turned_entries(a), self.turned_entries(b)),
            (None, Some(prior)) => {
                let both = prior.gamma().map_err(refused(&specs[self.gamma].name))?;
                (both.0.clone(), both.1.clone())
            }
            (None, None) => (Entries::All(1.0), Entries::All(1e-3)),
        };
        let mut shapes = vec![Entries::All(1.0); specs.len()];
        for &j in &of_dirichlet {
            if let Some(prior) = prior(j) {
                shapes[j] = prior.shapes().map_err(refused(&specs[j].name))?.clone();
            }
        }
        if let Some(atoms) = parts.block((rows, k), |f, side| side * rows + f)? {
            shapes[0] = atoms;
        }
        shapes[self.gamma] = shape;
        shapes[self.gamma + 1] = rate;
        for (spec, entries) in specs.iter().zip(&shapes) {
            check_shape(&spec.name, entries, spec.shape, k)?;
        }
        let side = |first: usize| match &shapes[0] {
            Entries::Each(each) => Entries::Each(each.rows(first, rows).into_owned()),
            other => other.clone(),
        };
        let main = Prior {
            plus: side(0),
            minus: side(rows),
            shape: self.turned_entries(&shapes[self.gamma]),
            rate: self.turned_entries(&shapes[self.gamma + 1]),
        };
        main.check_proper()?;
        let of_factor = |&j: &usize| Prior {
            plus: shapes[j].clone(),
            ..Prior::flat()
        };
        let others = of_dirichlet[1..].iter().map(of_factor);
        let priors: Vec<Prior> = std::iter::once(main).chain(others).collect();
        for prior in &priors {
            prior.check()?;
            prior.check_least(least_shape::<T>())?;
        }
        Ok(Laws { shapes, priors })
    }
}

/// The posterior of a factor, whose columns are Dirichlet.
pub(super) fn one_sided<T: Real>(shapes: &DMatrix<T>) -> Posterior<T> {
    let k = shapes.ncols();
    Posterior {
        plus: shapes.clone(),
        minus: DMatrix::zeros(0, k),
        shape: DMatrix::zeros(k, 0),
        rate: DMatrix::zeros(k, 0),
    }
}

/// Priors in the layout of the blocks, and in that of posteriors.
#[derive(Debug)]
pub(super) struct Laws {
    pub(super) shapes: Vec<Entries>,
    pub(super) priors: Vec<Prior>,
}

/// The blocks of tensors of this shape.
pub(super) fn specs<T: Real>(folding: &Folding, k: usize, form: Form) -> Vec<BlockSpec<T>> {
    let positive =
        |name: String, shape, axes| BlockSpec::values(name, shape, axes, Constraint::Positive);
    let gamma = |name: &str, shape, axes| {
        let rate = BlockSpec {
            follows: true,
            ..positive(format!("{name}_rate"), shape, axes)
        };
        [positive(format!("{name}_shape"), shape, axes), rate]
    };
    let mut specs = vec![positive(
        ATOMS.into(),
        (2 * folding.rows(), k),
        Axes::sides(folding.mode()),
    )];
    if form.scale.is_none() {
        specs.extend(gamma("weights", (k, 1), Axes::WEIGHTS));
    }
    for (j, n) in folding.others() {
        match Some(j) == form.scale {
            true => specs.extend(gamma(&format!("factor_{j}"), (n, k), Axes::factor(j))),
            false => specs.push(positive(
                format!("factor_{j}_shape"),
                (n, k),
                Axes::factor(j),
            )),
        }
    }
    specs
}
