//! Maps from the cells of a kernel to those of the data.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use plca_fit::FitError;
use plca_tensor::DataError;

use super::set_model::Set;

/// One cell of a kernel under one map: the share `a(s,u)` of cell `u` goes to cell `T_s(u)` of the data.
///
/// ```
/// use plca_em::{IndexMaps, MapEntry};
/// // A kernel's only cell, spread over two cells of the data.
/// let half = |to| MapEntry { map: 0, from: 0, to: Some(to), weight: 0.5 };
/// let maps = IndexMaps::from_entries(3, 1, vec![half(1), half(2)])?;
/// assert_eq!((maps.maps(), maps.kernel_cells()), (1, 1));
/// # Ok::<(), plca_em::FitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapEntry {
    /// Which map, `s`.
    pub map: usize,
    /// Which cell of the kernel, `u`.
    pub from: usize,
    /// Which cell of the data in row-major order; `None` outside of them.
    pub to: Option<usize>,
    /// The share of the kernel's cell that goes there, `a`.
    pub weight: f64,
}

/// A set of maps from the cells of a kernel to those of the data. `[SPEC 5.7]`
///
/// Maps that interpolate have several entries for one cell of the kernel.
///
/// ```
/// use plca_em::IndexMaps;
/// // Two cells, as they are and turned round, on data of three cells; one of the four maps leaves them.
/// let maps = IndexMaps::new(3, 2, &[0, 1,  1, 0,  1, 2,  2, -1])?;
/// assert_eq!((maps.maps(), maps.kernel_cells()), (4, 2));
/// # Ok::<(), plca_em::FitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndexMaps {
    pub(super) cells: usize,
    pub(super) kernel: usize,
    /// Extents of a kernel, whose product is the number of its cells.
    kernel_shape: Vec<usize>,
    pub(super) maps: usize,
    /// What the maps were made of, if they are shifts of transformed kernels. They then need a table only on data of another shape.
    set: Option<Arc<Set>>,
    /// Clones share it.
    table: Arc<OnceLock<Table>>,
}

/// All entries of maps.
#[derive(Debug)]
pub(super) struct Table {
    /// By map, then by cell of the kernel; a cell of `cells` is outside.
    by_map: Vec<Entry>,
    map_bounds: Vec<usize>,
    /// By cell of the data; those outside are not listed. There are no bounds: files may claim far more cells than they have entries.
    by_cell: Vec<Entry>,
}

/// [`MapEntry`] in little room; `to` is the number of cells where it is outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) map: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) weight: f64,
}

fn refused(why: &str) -> FitError {
    let what = format!("index maps: {why}");
    FitError::Conflict { what }
}

impl IndexMaps {
    /// The maps of a table with `kernel` numbers for every map: the cell of the data, or -1 outside. `cells` is the number of cells of the
    /// data.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`]: a table that is empty or no multiple of `kernel`, a cell that the data do not have.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::IndexMaps;
    /// // Two cells shifted to three places, the last of which is partly outside.
    /// let shifts = IndexMaps::new(3, 2, &[0, 1,  1, 2,  2, -1])?;
    /// assert_eq!(shifts.maps(), 3);
    /// assert!(IndexMaps::new(3, 2, &[0, 1,  1, 3]).is_err());
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn new(cells: usize, kernel: usize, table: &[i64]) -> Result<Self, FitError> {
        if kernel == 0 || !table.len().is_multiple_of(kernel) {
            return Err(refused("the table is not a multiple of the kernel's cells"));
        }
        let entries = table.iter().enumerate().map(|(at, &to)| MapEntry {
            map: at / kernel,
            from: at % kernel,
            // Too large a number is refused below.
            to: (to >= 0).then_some(to as usize),
            weight: 1.0,
        });
        if table.iter().any(|&to| to < -1) {
            return Err(refused("a cell below -1"));
        }
        Self::from_entries(cells, kernel, entries.collect())
    }

    /// The maps of a list of entries in any order, for maps that interpolate.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`]: no entries, a cell that kernel or data do not have, a weight that is negative or not finite;
    /// [`FitError::Data`] for more maps than memory holds.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{IndexMaps, MapEntry};
    /// // Half a cell to the right: what leaves the data has no cell.
    /// let halves = [(0, Some(0)), (0, Some(1)), (1, Some(1)), (1, None)];
    /// let entry = |(from, to)| MapEntry { map: 0, from, to, weight: 0.5 };
    /// let maps = IndexMaps::from_entries(2, 2, halves.map(entry).to_vec())?;
    /// assert_eq!((maps.maps(), maps.cells()), (1, 2));
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn from_entries(
        cells: usize,
        kernel: usize,
        mut entries: Vec<MapEntry>,
    ) -> Result<Self, FitError> {
        let counts = entries.iter().map(|e| e.map.saturating_add(1));
        let maps = Self::without_table(cells, vec![kernel], counts.max().unwrap_or(0))?;
        for entry in &entries {
            if entry.from >= kernel || entry.to.is_some_and(|to| to >= cells) {
                return Err(refused("a cell outside the kernel or the data"));
            }
            if !(entry.weight.is_finite() && entry.weight >= 0.0) {
                return Err(refused("a weight that is not a finite number >= 0"));
            }
        }
        entries.sort_by_key(|e| (e.map, e.from, e.to));
        let table = Table::new(&entries, cells, maps.maps)?;
        Ok(Self {
            table: Arc::new(OnceLock::from(table)),
            ..maps
        })
    }

    /// Maps whose entries are not known yet.
    pub(super) fn without_table(
        cells: usize,
        kernel_shape: Vec<usize>,
        maps: usize,
    ) -> Result<Self, FitError> {
        let kernel = kernel_shape.iter().product();
        if maps == 0 {
            return Err(refused("no maps"));
        }
        if cells.max(kernel).max(maps) >= u32::MAX as usize {
            return Err(refused("more cells or maps than 32 bits can number"));
        }
        Ok(Self {
            cells,
            kernel,
            kernel_shape,
            maps,
            set: None,
            table: Arc::default(),
        })
    }

    /// The number of maps, which are the rows of a block of impulses.
    ///
    /// ```
    /// let maps = plca_em::IndexMaps::new(4, 2, &[0, 1,  1, 2,  2, 3])?;
    /// assert_eq!(maps.maps(), 3);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn maps(&self) -> usize {
        self.maps
    }

    /// The number of cells of a kernel, which are the rows of a block of kernels.
    ///
    /// ```
    /// let maps = plca_em::IndexMaps::new(4, 2, &[0, 1,  1, 2,  2, 3])?;
    /// assert_eq!(maps.kernel_cells(), 2);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn kernel_cells(&self) -> usize {
        self.kernel
    }

    /// The extents of a kernel: those that it was made for, or the number of its cells.
    ///
    /// ```
    /// use plca_em::{IndexMaps, Positions, Transformation};
    /// let as_it_is = [Transformation::new(0.0, 1.0, false)?];
    /// let maps = IndexMaps::placed(&as_it_is, &[2, 3], &[4, 4], Positions::Valid)?;
    /// assert_eq!(maps.kernel_shape(), [2, 3]);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn kernel_shape(&self) -> &[usize] {
        &self.kernel_shape
    }

    /// The same maps of kernels of these extents, which have as many cells.
    pub(super) fn with_kernel_shape(self, kernel_shape: Vec<usize>) -> Self {
        Self {
            kernel_shape,
            ..self
        }
    }

    /// The same maps, which are those of a set.
    pub(super) fn of_set(self, set: Set) -> Self {
        Self {
            set: Some(Arc::new(set)),
            ..self
        }
    }

    /// The set that places kernels on data of this shape as the maps do.
    pub(super) fn set_on(&self, shape: &[usize]) -> Option<&Set> {
        self.set().filter(|set| set.shape() == shape)
    }

    /// What the maps were made of.
    pub(super) fn set(&self) -> Option<&Set> {
        self.set.as_deref()
    }

    /// The number of cells of the data.
    ///
    /// ```
    /// let maps = plca_em::IndexMaps::new(4, 2, &[0, 1,  1, 2,  2, 3])?;
    /// assert_eq!(maps.cells(), 4);
    /// # Ok::<(), plca_em::FitError>(())
    /// ```
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// All entries, map after map.
    pub(crate) fn entries(&self) -> Box<dyn Iterator<Item = MapEntry> + '_> {
        match self.set() {
            Some(set) => Box::new((0..self.maps).flat_map(|map| set.entries(map))),
            None => Box::new(self.table().by_map.iter().map(|e| MapEntry {
                map: e.map as usize,
                from: e.from as usize,
                to: Some(e.to as usize).filter(|&to| to < self.cells),
                weight: e.weight,
            })),
        }
    }

    /// Whether a kernel can leave the data.
    pub(crate) fn any_outside(&self) -> bool {
        match self.set() {
            Some(set) => set.any_outside(),
            None => self.table().by_cell.len() < self.table().by_map.len(),
        }
    }

    /// Makes the table of maps that have none yet.
    ///
    /// # Errors
    ///
    /// [`FitError::Data`] for more entries than memory holds.
    pub(super) fn tabulate(&self) -> Result<&Table, FitError> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let count = self.entries().count();
        let mut entries = Vec::new();
        if entries.try_reserve_exact(count).is_err() {
            return Err(DataError::TooLarge { shape: vec![count] }.into());
        }
        entries.extend(self.entries());
        let table = Table::new(&entries, self.cells, self.maps)?;
        Ok(self.table.get_or_init(|| table))
    }

    /// Of maps that were not made of a set, or are [tabulated](Self::tabulate); otherwise without entries.
    fn table(&self) -> &Table {
        static NONE: Table = Table {
            by_map: Vec::new(),
            map_bounds: Vec::new(),
            by_cell: Vec::new(),
        };
        self.table.get().unwrap_or(&NONE)
    }

    pub(super) fn of_map(&self, s: usize) -> &[Entry] {
        let table = self.table();
        let bounds = table.map_bounds.get(s).zip(table.map_bounds.get(s + 1));
        bounds.map_or(&[], |(&first, &last)| &table.by_map[first..last])
    }

    /// Entries of a range of cells of the data, those of one cell after those of another.
    pub(super) fn of_cells(&self, cells: Range<usize>) -> impl Iterator<Item = &[Entry]> {
        let by_cell = &self.table().by_cell;
        let bound = |cell| by_cell.partition_point(|e| (e.to as usize) < cell);
        let entries = &by_cell[bound(cells.start)..bound(cells.end)];
        entries.chunk_by(|a, b| a.to == b.to)
    }
}

impl Table {
    /// The table of entries that are sorted by map and cell of the kernel.
    fn new(entries: &[MapEntry], cells: usize, maps: usize) -> Result<Self, FitError> {
        let number = |e: &MapEntry| Entry {
            map: e.map as u32,
            from: e.from as u32,
            to: e.to.unwrap_or(cells) as u32,
            weight: e.weight,
        };
        let by_map: Vec<Entry> = entries.iter().map(number).collect();
        let inside = by_map.iter().filter(|e| (e.to as usize) < cells);
        let mut by_cell: Vec<Entry> = inside.copied().collect();
        by_cell.sort_by_key(|e| e.to);
        let mut map_bounds = Vec::new();
        if map_bounds.try_reserve_exact(maps + 1).is_err() {
            return Err(DataError::TooLarge { shape: vec![maps] }.into());
        }
        let bound = |map| by_map.partition_point(|e| (e.map as usize) < map);
        map_bounds.extend((0..=maps).map(bound));
        Ok(Self {
            by_map,
            map_bounds,
            by_cell,
        })
    }
}
