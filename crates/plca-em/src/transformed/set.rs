//! Sets of transformations of two dimensions, and the index maps that place them on data.

use plca_fit::FitError;

use super::maps::IndexMaps;
use super::set_model::Set;

/// Weights below this are left out.
const FAINT: f64 = 1e-12;
/// Sizes up to this much above a whole number are that number.
const SLACK: f64 = 1e-9;

/// A mirror, then a scale, then a rotation of the first two dimensions of a kernel. `[EXT 2]`
///
/// ```math
/// A = s \begin{pmatrix} \cos a & -\sin a \\ \sin a & \cos a \end{pmatrix} \begin{pmatrix} 1 & 0 \\ 0 & \pm 1 \end{pmatrix}
/// ```
///
/// `A` acts on rows, which run downwards, and columns; positive angles turn as `numpy.rot90` does.
///
/// ```
/// use plca_em::Transformation;
/// assert_eq!(Transformation::new(90.0, 1.0, false)?.matrix(), [[0.0, -1.0], [1.0, 0.0]]);
/// assert!(Transformation::new(0.0, 0.0, false).is_err());
/// # Ok::<(), plca_em::FitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transformation {
    pub(super) matrix: [[f64; 2]; 2],
    pub(super) scale: f64,
}

/// Where the box of a transformed kernel may lie on the data. `[EXT 2]`
///
/// ```
/// use plca_em::{IndexMaps, Positions, Transformation};
/// let as_it_is = [Transformation::new(0.0, 1.0, false)?];
/// let maps = |positions| IndexMaps::placed(&as_it_is, &[3, 3], &[5, 5], positions);
/// assert_eq!(maps(Positions::Valid)?.maps(), 3 * 3);
/// assert_eq!(maps(Positions::Full)?.maps(), 7 * 7);
/// assert_eq!(maps(Positions::Centred)?.maps(), 5 * 5);
/// # Ok::<(), plca_em::FitError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Positions {
    /// Inside the data.
    #[default]
    Valid,
    /// So that it meets the data.
    Full,
    /// With its centre in the data.
    Centred,
}

plca_fit::choices!(Positions {
    "valid" = Positions::Valid: "Inside the data";
    "full" = Positions::Full: "With at least one cell inside the data";
    "centred" = Positions::Centred: "With its centre in the data";
});

impl Transformation {
    /// The transformation by an angle in degrees, a scale and, first, a mirror of the columns.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] for an angle that is not finite, and a scale that is not positive and finite.
    pub fn new(degrees: f64, scale: f64, mirror: bool) -> Result<Self, FitError> {
        FitError::unless(degrees.is_finite(), "angle", degrees, "a finite number")?;
        let good = scale > 0.0 && scale.is_finite();
        FitError::unless(good, "scale", scale, "a finite number > 0")?;
        // Quarter turns are exact.
        let (sin, cos) = match degrees.rem_euclid(360.0) {
            0.0 => (0.0, 1.0),
            90.0 => (1.0, 0.0),
            180.0 => (0.0, -1.0),
            270.0 => (-1.0, 0.0),
            _ => degrees.to_radians().sin_cos(),
        };
        let side = if mirror { -1.0 } else { 1.0 };
        // [EXT 2] A = s R(angle) diag(1, ±1)
        let matrix = [
            [scale * cos, scale * -sin * side],
            [scale * sin, scale * cos * side],
        ];
        // No negative zeros.
        let matrix = matrix.map(|row| row.map(|x| x + 0.0));
        Ok(Self { matrix, scale })
    }

    /// All products of rotations, in degrees, scales and, if there is a `mirror`, both sides; the last factor runs fastest. Of equal ones the
    /// first is kept.
    ///
    /// ```
    /// use plca_em::Transformation;
    /// let turns: Vec<f64> = (0..4).map(|i| 90.0 * f64::from(i)).collect();
    /// assert_eq!(Transformation::product(&turns, &[1.0], true)?.len(), 8);
    /// assert_eq!(Transformation::product(&[0.0, 360.0], &[1.0, 2.0], false)?.len(), 2);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn product(degrees: &[f64], scales: &[f64], mirror: bool) -> Result<Vec<Self>, FitError> {
        let mut all: Vec<Self> = Vec::new();
        let sides: &[bool] = if mirror { &[false, true] } else { &[false] };
        for &angle in degrees {
            for &scale in scales {
                for &side in sides {
                    let new = Self::new(angle, scale, side)?;
                    let near = |(a, b): (&[f64; 2], &[f64; 2])| {
                        a.iter().zip(b).all(|(a, b)| (a - b).abs() <= FAINT)
                    };
                    let same = |old: &Self| old.matrix.iter().zip(&new.matrix).all(near);
                    if !all.iter().any(same) {
                        all.push(new);
                    }
                }
            }
        }
        Ok(all)
    }

    /// The matrix `A`, by rows.
    pub fn matrix(&self) -> [[f64; 2]; 2] {
        self.matrix
    }

    /// Where a kernel's cells go within the box that holds it transformed: the extents of the box, and for every share of a cell the cell, the cell of
    /// the box, and the weight, in this order. Cells are numbered in row-major order; the weights of a cell sum to 1.
    ///
    /// A cell is a unit square of points, each shared linearly by the cells around the place where it lands. `[EXT 2]`
    ///
    /// ```
    /// use plca_em::Transformation;
    /// let (extents, entries) = Transformation::new(90.0, 1.0, false)?.shares([1, 2]);
    /// assert_eq!(extents, [2, 1]);
    /// assert_eq!(entries, [(0, 1, 1.0), (1, 0, 1.0)]);                    // counter-clockwise
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn shares(&self, kernel: [usize; 2]) -> ([usize; 2], Vec<(usize, usize, f64)>) {
        let a = self.matrix;
        let (r, extents) = self.reach(kernel);
        let (r, extents) = (r as usize, extents.map(|n| n as usize));
        let deltas: Vec<f64> = (0..r).map(|i| (i as f64 + 0.5) / r as f64 - 0.5).collect();
        let centre = kernel.map(|k| (k as f64 - 1.0) / 2.0);
        let middle = extents.map(|n| (n as f64 - 1.0) / 2.0);
        let mut entries = Vec::new();
        for from in 0..kernel[0] * kernel[1] {
            let u = [from / kernel[1], from % kernel[1]];
            let mut landed = vec![0.0; extents[0] * extents[1]];
            for &down in &deltas {
                for &right in &deltas {
                    let at = [
                        u[0] as f64 - centre[0] + down,
                        u[1] as f64 - centre[1] + right,
                    ];
                    let shared = [0, 1].map(|d| {
                        let y = a[d][0] * at[0] + a[d][1] * at[1];
                        linear(middle[d] + y, extents[d])
                    });
                    for (row, w) in &shared[0] {
                        for (column, v) in &shared[1] {
                            landed[row * extents[1] + column] += w * v;
                        }
                    }
                }
            }
            let points = (r * r) as f64;
            let kept = landed.iter().map(|w| w / points).enumerate();
            let kept = kept.filter(|(_, w)| *w >= FAINT);
            let sum: f64 = kept.clone().map(|(_, w)| w).sum();
            entries.extend(kept.map(|(to, w)| (from, to, w / sum)));
        }
        (extents, entries)
    }
}

/// Points of a transformed kernel, and cells that they may be shared by: what takes longer is refused.
const MOST: f64 = 1e8;

impl Transformation {
    /// The points along a side of a cell, and the extents of the box that holds a kernel transformed, however large they are.
    fn reach(&self, kernel: [usize; 2]) -> (f64, [f64; 2]) {
        let a = self.matrix;
        let unit = a.iter().flatten().all(|&x| x == 0.0 || x.abs() == 1.0);
        let whole = unit
            && a.iter()
                .all(|row| row.iter().filter(|x| **x != 0.0).count() == 1);
        // [EXT 2] r x r points a cell
        let r = match whole {
            true => 1.0,
            false => 4.0 * (self.scale - SLACK).ceil().max(1.0),
        };
        let centre = kernel.map(|k| (k as f64 - 1.0) / 2.0);
        let reach = |d: usize, by: [f64; 2]| a[d][0].abs() * by[0] + a[d][1].abs() * by[1];
        let far = 0.5 - 0.5 / r;
        let extents = [0, 1].map(|d: usize| {
            let (own, other) = (a[d][d].abs(), a[d][1 - d].abs());
            let like = if other > own + FAINT { 1 - d } else { d };
            let p = if kernel[like] % 2 == 1 { 0.0 } else { 0.5 };
            let n = (reach(d, centre) + reach(d, [far; 2]) + 1.0 - p - SLACK).ceil() - 1.0;
            // [EXT 2] 2 (p + n) + 1
            2.0 * (p + n.max(0.0)) + 1.0
        });
        (r, extents)
    }

    /// Whether the shares of a kernel can be found in reasonable time and memory.
    fn is_small(&self, kernel: [usize; 2]) -> bool {
        let (r, extents) = self.reach(kernel);
        let cells = kernel[0] as f64 * kernel[1] as f64;
        cells * (r * r).max(extents[0] * extents[1]) <= MOST
    }
}

/// The cells next to a place, with their shares of it.
fn linear(place: f64, size: usize) -> Vec<(usize, f64)> {
    let first = place.floor();
    let shares = [first, first + 1.0].map(|x| (x, (1.0 - (x - place).abs()).max(0.0)));
    let inside = |&(x, w): &(f64, f64)| w >= FAINT && x >= 0.0 && x < size as f64;
    let kept: Vec<_> = shares.into_iter().filter(inside).collect();
    let sum: f64 = kept.iter().map(|(_, w)| w).sum();
    kept.into_iter()
        .map(|(x, w)| (x as usize, w / sum))
        .collect()
}

impl Positions {
    /// The places of the first cell of a box along a dimension.
    pub(super) fn of(self, size: usize, extent: usize) -> std::ops::Range<isize> {
        let (size, extent) = (size as isize, extent as isize);
        // [EXT 2] valid 0..I - box, full -(box - 1)..I - 1, centred -⌊box/2⌋..I - 1 - ⌊box/2⌋
        match self {
            Self::Valid => 0..size - extent + 1,
            Self::Full => 1 - extent..size,
            Self::Centred => -(extent / 2)..size - extent / 2,
        }
    }
}

impl IndexMaps {
    /// The maps that place transformed kernels on data: transformation after transformation, for each the positions of the first cell of its box, in row-major
    /// order. The first two dimensions are transformed; along the others, such as colours, kernel and data have the same extent. `[EXT 2]`
    ///
    /// ```
    /// use plca_em::{IndexMaps, Positions, Transformation};
    /// let turns = Transformation::product(&[0.0, 90.0, 180.0, 270.0], &[1.0], false)?;
    /// let maps = IndexMaps::placed(&turns, &[2, 3], &[6, 7], Positions::Valid)?;
    /// assert_eq!((maps.maps(), maps.kernel_cells()), (98, 6));
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for data or kernels of fewer than two dimensions or of different ones, extents that differ along the others, a box without a position,
    /// and more maps or cells than 32 bits can number.
    pub fn placed(
        transformations: &[Transformation],
        kernel: &[usize],
        shape: &[usize],
        positions: Positions,
    ) -> Result<Self, FitError> {
        let refuse = |what: String| Err(FitError::Conflict { what });
        let (&[k0, k1, ref rest @ ..], &[n0, n1, ref others @ ..]) = (kernel, shape) else {
            return refuse(format!(
                "kernels of {kernel:?} on data of {shape:?}: expected at least two dimensions, which are transformed"
            ));
        };
        if rest != others || kernel.contains(&0) {
            return refuse(format!(
                "kernels of {kernel:?} on data of {shape:?}: expected the extents of the data in all but the first two dimensions, which are transformed"
            ));
        }
        let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let cells = cells.filter(|&n| n < u32::MAX as usize);
        let Some(cells) = cells else {
            return refuse(format!(
                "data of {shape:?} have more cells than 32 bits can number"
            ));
        };
        for transformation in transformations {
            let (_, extents) = transformation.reach([k0, k1]);
            let fits =
                positions != Positions::Valid || extents[0] <= n0 as f64 && extents[1] <= n1 as f64;
            if !fits || !transformation.is_small([k0, k1]) {
                return refuse(format!(
                    "a kernel of {kernel:?} has the extents {extents:?} under {:?}, which do not fit into data of {shape:?}",
                    transformation.matrix
                ));
            }
        }
        let set = Set::new(transformations, kernel, shape, positions);
        let maps = set.maps().unwrap_or(usize::MAX);
        let maps = Self::without_table(cells, kernel.to_vec(), maps)?;
        Ok(maps.of_set(set))
    }
}
