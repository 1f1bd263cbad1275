//! The components in the arrays of a model file.

use std::path::Path;

use plca_io::{Array, ModelFile};

use crate::failure::Failure;
use crate::models::options::has;
use crate::models::{Kind, known};
use crate::named::dimension;
use crate::saved;

/// A model file that a fit wrote.
pub(crate) struct Fit {
    pub(crate) kind: Kind,
    pub(crate) file: ModelFile,
    /// The number of its components.
    pub(crate) rank: usize,
}

impl Fit {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let file = saved::read(path)?;
        let empty = |array: &Array<f64>| array.shape.contains(&0);
        if let Some((name, array)) = file.arrays.iter().find(|(_, array)| empty(array)) {
            let what = format!("`{name}` is empty, of shape {:?}", array.shape);
            return Err(Failure::of(path, what));
        }
        let kind = known(&file.metadata);
        let rank = file.metadata["settings"]["rank"].as_u64();
        let rank = rank.and_then(|rank| usize::try_from(rank).ok());
        match (kind, rank.filter(|&rank| rank > 0)) {
            (Some(kind), Some(rank)) => Ok(Self { kind, file, rank }),
            _ => {
                let what = "holds no fit: expected a model file that `plca fit` wrote";
                Err(Failure::of(path, what))
            }
        }
    }

    /// The order of its data.
    pub(crate) fn order(&self) -> usize {
        let shape = self.file.metadata["data"]["shape"].as_array();
        shape.map_or(2, Vec::len)
    }

    /// Of several blocks that a list of names fits, the one whose entries it names: that of the rows of the data, or the columns of the basis.
    pub(crate) fn named(&self, names: usize) -> Option<String> {
        let fits = |name: &&String| {
            let Some(components) = self.components(name) else {
                return false;
            };
            let mut extents = components.extents();
            if components.signed {
                extents.pop();
            }
            // Kernels are smaller than the data.
            extents == [names] && !has(self.kind, "--kernel")
        };
        let fitting: Vec<&String> = self.file.arrays.keys().filter(fits).collect();
        let first =
            |chosen: &dyn Fn(&str) -> bool| fitting.iter().find(|name| chosen(name)).copied();
        let basis = |name: &str| name.starts_with("basis");
        let found = first(&basis).or_else(|| first(&|name| self.is_of_rows(name)));
        Some(found.or(fitting.first().copied())?.clone())
    }

    /// Whether the components of a block have an entry for each row of the data, dimension 0.
    fn is_of_rows(&self, block: &str) -> bool {
        dimension(self.kind, &self.file.metadata["settings"], block) == Some(0)
    }

    /// The components of an array, if it has any.
    pub(crate) fn components(&self, block: &str) -> Option<Components<'_>> {
        let array = self.file.arrays.get(block)?;
        let axis = axis_of(Some(self.kind), block, array)?;
        // Of data of either sign alone; plus and minus are the last dimension.
        let signed = has(self.kind, "--replicates")
            && block.strip_suffix("_shape").unwrap_or(block) == "atoms"
            && array.shape.last() == Some(&2);
        let components = Components {
            array,
            axis,
            signed,
        };
        (array.shape.get(axis) == Some(&self.rank)).then_some(components)
    }
}

/// The axis of components of an array of a model file; none where it has one number for each observation.
pub(crate) fn axis_of(kind: Option<Kind>, name: &str, array: &Array<f64>) -> Option<usize> {
    // Arrays of a consensus begin with their rank.
    let block = name.rsplit('.').next().unwrap_or(name);
    let by_component = block.starts_with("weights") || ["share", "order"].contains(&block);
    match block {
        _ if array.shape.len() == 1 => by_component.then_some(0),
        "consensus_spectra" => Some(0),
        _ => match kind.and_then(|kind| kind.axes(block)) {
            Some(axes) => axes.components_in_file(),
            // Of explained data, and kernels of other programs.
            None => Some(usize::from(block != "mixture" && array.shape.len() < 3)),
        },
    }
}

/// An array cut along its axis of components.
pub(crate) struct Components<'a> {
    pub(crate) array: &'a Array<f64>,
    pub(crate) axis: usize,
    /// Every entry is a pair, plus and minus.
    pub(crate) signed: bool,
}

impl Components<'_> {
    /// The extents of one component.
    pub(crate) fn extents(&self) -> Vec<usize> {
        let mut extents = self.array.shape.clone();
        extents.remove(self.axis);
        extents
    }

    /// One component, in row-major order.
    pub(crate) fn get(&self, z: usize) -> Vec<f64> {
        let shape = &self.array.shape;
        let step = |j: usize| -> usize {
            match self.array.fortran {
                true => shape[..j].iter().product(),
                false => shape[j + 1..].iter().product(),
            }
        };
        let mut places = vec![z * step(self.axis)];
        for j in (0..shape.len()).filter(|&j| j != self.axis) {
            let along = |at: usize| (0..shape[j]).map(move |i| at + i * step(j));
            places = places.into_iter().flat_map(along).collect();
        }
        places.into_iter().map(|at| self.array.values[at]).collect()
    }
}
