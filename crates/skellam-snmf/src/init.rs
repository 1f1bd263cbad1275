//! Starts: given, drawn, checked.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_tensor::Real;
use plca_tensor::arrange::Signed;
use rand::Rng;

use crate::{SnmfError, SnmfState, state::normalise_atoms};

/// Blocks that a start gives; the others are drawn. The default draws all.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Signed, Snmf, SnmfInit};
/// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// # let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let v = Signed::from_matrix(dmatrix![2.0, 4.0; -1.0, -2.0])?;
/// let init = SnmfInit { atoms: Some((dmatrix![2.0; 0.0], dmatrix![0.0; 2.0])), activations: None };
/// let state = Snmf::builder(1).build()?.init(&v, &init, &mut rng)?;
/// assert_eq!((state.plus, state.minus), (dmatrix![0.5; 0.0], dmatrix![0.0; 0.5]));
/// assert!(state.activations.iter().all(|&h| 2.25 < h && h < 6.75));    // mean |V| = 2.25, 2 rows
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SnmfInit<T: Real> {
    /// `T⁺` and `T⁻`, both `F x K`, of any positive sum, normalised together; default: uniform on the simplex.
    pub atoms: Option<(DMatrix<T>, DMatrix<T>)>,
    /// `H`, `K x N`, in the units of the data; default: uniform on (0.5, 1.5) times `F/K` mean absolute values of the data.
    pub activations: Option<DMatrix<T>>,
}

impl<T: Real> Default for SnmfInit<T> {
    fn default() -> Self {
        Self {
            atoms: None,
            activations: None,
        }
    }
}

/// Makes room for a matrix that is about to be built.
pub(crate) fn reserve<T>(
    values: &mut Vec<T>,
    what: &'static str,
    (rows, columns): (usize, usize),
) -> Result<(), SnmfError> {
    let room = rows.checked_mul(columns);
    match room.map(|n| values.try_reserve_exact(n)) {
        Some(Ok(())) => Ok(()),
        _ => Err(SnmfError::Memory {
            what,
            rows,
            columns,
        }),
    }
}

/// Refuses a block of the wrong shape, or with a value for which `ok` does not hold.
pub(crate) fn check_block<T: Real>(
    block: &'static str,
    m: &DMatrix<T>,
    expected: (usize, usize),
    range: &'static str,
    ok: impl Fn(T) -> bool,
) -> Result<(), SnmfError> {
    if m.shape() != expected {
        return Err(SnmfError::Shape {
            block,
            got: m.shape(),
            expected,
        });
    }
    for row in 0..m.nrows() {
        for column in 0..m.ncols() {
            let value = m[(row, column)];
            if !ok(value) {
                return Err(SnmfError::Value {
                    block,
                    row,
                    column,
                    value: value.to_f64(),
                    range,
                });
            }
        }
    }
    Ok(())
}

/// The same for factors.
pub(crate) fn check_factor<T: Real>(
    block: &'static str,
    m: &DMatrix<T>,
    expected: (usize, usize),
) -> Result<(), SnmfError> {
    let ok = |x: T| x.is_finite() && x >= T::zero();
    check_block(block, m, expected, "a finite number >= 0", ok)
}

/// Refuses the first block whose shape is not the expected one: its name, its shape, and that.
pub(crate) fn check_shapes(
    blocks: impl IntoIterator<Item = (&'static str, (usize, usize), (usize, usize))>,
) -> Result<(), SnmfError> {
    let mut wrong = blocks
        .into_iter()
        .filter(|(_, got, expected)| got != expected);
    match wrong.next() {
        Some((block, got, expected)) => Err(SnmfError::Shape {
            block,
            got,
            expected,
        }),
        None => Ok(()),
    }
}

impl<T: Real> SnmfInit<T> {
    /// The state for data with `k` components.
    pub(crate) fn state<R: Rng + ?Sized>(
        &self,
        data: &Signed<T>,
        k: usize,
        rng: &mut R,
    ) -> Result<SnmfState<T>, SnmfError> {
        let (f, n) = data.shape();
        let mut draw = |rows, columns| {
            DMatrix::from_fn(rows, columns, |_, _| T::lit(random::exponential(rng)))
        };
        let (mut plus, mut minus) = match &self.atoms {
            Some((plus, minus)) => {
                check_factor("plus", plus, (f, k))?;
                check_factor("minus", minus, (f, k))?;
                (plus.clone(), minus.clone())
            }
            None => (draw(f, k), draw(f, k)),
        };
        if let Some(component) = normalise_atoms(&mut plus, &mut minus) {
            return Err(SnmfError::ZeroAtom { component });
        }
        let activations = match &self.activations {
            Some(h) => {
                check_factor("activations", h, (k, n))?;
                h.clone()
            }
            None => {
                let mut size = 0.0;
                data.for_each(&mut |_, _, v| size += v.abs());
                let mean = if size > 0.0 {
                    size / data.observed() as f64
                } else {
                    1.0
                };
                let scale = mean * f as f64 / k as f64;
                DMatrix::from_fn(k, n, |_, _| T::lit(scale * (0.5 + random::uniform(rng))))
            }
        };
        let state = SnmfState {
            plus,
            minus,
            activations,
        };
        check_support(data, &state)?;
        Ok(state)
    }
}

/// An observed cell whose own rate is 0.
pub(crate) struct Lost {
    /// `plus` or `minus`.
    pub(crate) side: &'static str,
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) value: f64,
}

/// Refuses a start that gives probability 0 to something observed.
pub(crate) fn check_support<T: Real>(
    data: &Signed<T>,
    state: &SnmfState<T>,
) -> Result<(), SnmfError> {
    match unsupported(data, [&state.plus, &state.minus], &state.activations) {
        None => Ok(()),
        Some(lost) => Err(SnmfError::Support {
            side: lost.side,
            row: lost.row,
            column: lost.column,
            value: lost.value,
        }),
    }
}

/// The first observed cell, in row-major order, to which the factors give probability 0.
pub(crate) fn unsupported<T: Real>(
    data: &Signed<T>,
    [plus, minus]: [&DMatrix<T>; 2],
    activations: &DMatrix<T>,
) -> Option<Lost> {
    let positive = |m: &DMatrix<T>| m.iter().all(|&x| x > T::zero());
    if [plus, minus, activations].into_iter().all(positive) {
        return None;
    }
    let mut first: Option<Lost> = None;
    data.for_each(&mut |row, column, value| {
        let known = first.as_ref();
        if known.is_some_and(|lost| (lost.row, lost.column) < (row, column)) {
            return;
        }
        if !reached([plus, minus], activations, (row, column), value) {
            let side = if value > 0.0 { "plus" } else { "minus" };
            first = Some(Lost {
                side,
                row,
                column,
                value,
            });
        }
    });
    first
}

/// Whether a value has a rate of its own sign; 0 needs none.
pub(crate) fn reached<T: Real>(
    [plus, minus]: [&DMatrix<T>; 2],
    activations: &DMatrix<T>,
    (row, column): (usize, usize),
    value: f64,
) -> bool {
    let atoms = if value > 0.0 { plus } else { minus };
    value == 0.0
        || (0..atoms.ncols())
            .any(|z| atoms[(row, z)] > T::zero() && activations[(z, column)] > T::zero())
}
