//! What the axes of a block count. From this follows where its components and samples are, and how it lies in files.

use super::FileLayout;

/// What the indices of an axis of a block count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Index {
    /// The components.
    Component,
    /// The indices of this mode of the data, counted from 0.
    Mode(usize),
    /// The same twice: plus above minus.
    Sides(usize),
    /// The cells of a kernel, of all modes together.
    Kernel,
    /// The same with two numbers for every cell, plus and minus.
    SignedKernel,
    /// The places where a kernel may lie, of all modes together.
    Places,
    /// Nothing: there is one.
    One,
}

/// One of the two axes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// A row belongs to a component, as of weights and mixtures.
    Rows,
    /// A column belongs to a component, as of factors.
    Columns,
    /// Neither.
    None,
}

/// What the rows and what the columns of a block count.
///
/// ```
/// use plca_fit::blocks::{Axes, Axis, FileLayout, Index};
/// let mixture = Axes(Index::Component, Index::Mode(1));
/// assert_eq!((mixture.components(), mixture.samples(1)), (Axis::Rows, Axis::Columns));
/// assert_eq!((mixture.layout(), mixture.mode()), (FileLayout::Matrix, Some(1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes(pub Index, pub Index);

impl Axes {
    /// Weights of the components.
    pub const WEIGHTS: Self = Self(Index::Component, Index::One);
    /// A single number.
    pub const SINGLE: Self = Self(Index::One, Index::One);

    /// The factor of a mode: a column for every component.
    pub const fn factor(mode: usize) -> Self {
        Self(Index::Mode(mode), Index::Component)
    }

    /// The coefficients of a mode: a row for every component.
    pub const fn coefficients(mode: usize) -> Self {
        Self(Index::Component, Index::Mode(mode))
    }

    /// The factor of a mode with two sides: plus above minus.
    pub const fn sides(mode: usize) -> Self {
        Self(Index::Sides(mode), Index::Component)
    }

    /// A number for every index of a mode, whatever the components.
    pub const fn numbers(mode: usize) -> Self {
        Self(Index::Mode(mode), Index::One)
    }

    fn find(self, is: impl Fn(Index) -> bool) -> Axis {
        match [self.0, self.1].map(is) {
            [true, _] => Axis::Rows,
            [_, true] => Axis::Columns,
            _ => Axis::None,
        }
    }

    /// The axis that counts the components.
    pub fn components(self) -> Axis {
        self.find(|index| index == Index::Component)
    }

    /// The axis that counts the samples, if they lie along this mode of the data.
    pub fn samples(self, mode: usize) -> Axis {
        self.find(|index| index == Index::Mode(mode))
    }

    /// The mode of the data whose indices the entries of the block are.
    pub fn mode(self) -> Option<usize> {
        [self.0, self.1].into_iter().find_map(|index| match index {
            Index::Mode(mode) | Index::Sides(mode) => Some(mode),
            _ => None,
        })
    }

    /// How the block lies in files.
    pub fn layout(self) -> FileLayout {
        match (self.0, self.1) {
            (Index::One, Index::One) => FileLayout::Absent,
            (_, Index::One) => FileLayout::Vector,
            (Index::Sides(_), _) => FileLayout::Sides,
            (Index::Kernel, _) => FileLayout::Stack("kernel"),
            (Index::SignedKernel, _) => FileLayout::Stack("atom"),
            (Index::Places, _) => FileLayout::Stack("places"),
            _ => FileLayout::Matrix,
        }
    }

    /// The axis of its array in files that counts the components.
    pub fn components_in_file(self) -> Option<usize> {
        match (self.components(), self.layout()) {
            (Axis::None, _) | (_, FileLayout::Absent) => None,
            (_, FileLayout::Stack(_)) | (Axis::Rows, _) => Some(0),
            (Axis::Columns, _) => Some(1),
        }
    }

    /// The same of a block whose modes are others.
    #[must_use]
    pub fn of_modes(self, other: impl Fn(usize) -> usize) -> Self {
        let [rows, columns] = [self.0, self.1].map(|index| match index {
            Index::Mode(mode) => Index::Mode(other(mode)),
            Index::Sides(mode) => Index::Sides(other(mode)),
            same => same,
        });
        Self(rows, columns)
    }
}

/// Names of blocks, and what their axes count. A `*` in a name stands for the number of a mode, one block for each: `factor_*` for `factor_0`,
/// `factor_1` and so on, whose axes are those of mode 0 here.
pub type Blocks = &'static [(&'static str, Axes)];

/// The axes of a block of this name; those of the posterior `NAME_shape` are those of its means `NAME`.
pub(super) fn of_name(blocks: Blocks, name: &str) -> Option<Axes> {
    let found = |name: &str| {
        blocks.iter().find_map(|&(known, axes)| {
            let Some((before, after)) = known.split_once('*') else {
                return (known == name).then_some(axes);
            };
            let number = name.strip_prefix(before)?.strip_suffix(after)?;
            let number: usize = number.parse().ok()?;
            Some(axes.of_modes(|mode| mode + number))
        })
    };
    found(name).or_else(|| found(&format!("{name}_shape")))
}

/// The names of all blocks of data with this number of modes, mode by mode where there is one for each.
pub(super) fn names(blocks: Blocks, order: usize) -> Vec<String> {
    let each = |name: &str| name.contains('*');
    let groups = blocks.chunk_by(|(a, _), (b, _)| each(a) && each(b));
    let names = groups.flat_map(|group| {
        let modes = if each(group[0].0) { order } else { 1 };
        (0..modes).flat_map(move |j| {
            let named = group.iter();
            named.map(move |(name, _)| name.replace('*', &j.to_string()))
        })
    });
    names.collect()
}
