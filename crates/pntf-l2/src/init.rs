//! Starting values: given and checked, or drawn, or read off the data.

use nalgebra::{DMatrix, DVector};
use plca_dist::random;
use plca_tensor::arrange::Products;
use plca_tensor::{Real, normalise_columns};
use rand::Rng;

use crate::projection::Projector;
use crate::qp::gram_qp;
use crate::sweep::{gram, hadamard, widen};
use crate::{Pntf, PntfError, PntfInit, PntfState, Projection, QpError};

/// Where blocks come from that the caller does not give.
///
/// ```
/// use plca_tensor::{DenseTensor, Order};
/// use pntf_l2::{Pntf, PntfInit, Start};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let g = DenseTensor::new(vec![2, 2], vec![4.0, 0.0, 0.0, 1.0], Order::RowMajor)?;
/// let pntf = Pntf::builder(2).start(Start::Deflation).build()?;
/// let from_seed = |seed| pntf.init(&g, &PntfInit::default(), &mut ChaCha8Rng::seed_from_u64(seed));
/// assert_eq!(from_seed(1)?, from_seed(2)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Start {
    /// Columns drawn uniformly from the simplex, weights `1/K`.
    #[default]
    Random,
    /// Component after component, the non-negative rank-one term found by alternating steps on what the earlier ones left
    /// over; then the best weights. For matrices close to NNDSVD, for any order defined alike. Draws nothing. Hidden cells count as 0
    /// here, so that little of the start lies where much is hidden; the sweeps fill them with the model.
    Deflation,
}

/// Alternations for one component.
const ALTERNATIONS: usize = 6;
/// Share of uniform that is mixed into a deflated column, so that no entry starts at 0.
const UNIFORM: f64 = 0.05;

pub(crate) fn start<T: Real, R: Rng + ?Sized>(
    config: &Pntf,
    data: &Products<'_, T>,
    init: &PntfInit<T>,
    rng: &mut R,
) -> Result<PntfState<T>, PntfError> {
    let (shape, k) = (data.shape(), config.components);
    if init.factors.len() > shape.len() {
        return Err(PntfError::Factors {
            expected: shape.len(),
            got: init.factors.len(),
        });
    }
    let given = |j: usize| init.factors.get(j).and_then(Option::as_ref);
    for j in 0..shape.len() {
        if given(j).is_none() && config.frozen.contains(&j) {
            let block = format!("factor_{j}");
            return Err(PntfError::FixedWithoutValue { block });
        }
    }
    let weights = match &init.weights {
        Some(w) => given_weights(w, k)?,
        None if config.freeze_weights => {
            let block = "weights".into();
            return Err(PntfError::FixedWithoutValue { block });
        }
        None => DVector::from_element(k, T::lit(1.0 / k as f64)),
    };
    let mut factors = Vec::with_capacity(shape.len());
    for (j, &rows) in shape.iter().enumerate() {
        // Drawn even where one is given, so that the other blocks do not depend on it.
        let drawn = if config.start == Start::Random {
            random_columns(rows, k, rng)
        } else {
            DMatrix::from_element(rows, k, T::lit(1.0 / rows as f64))
        };
        factors.push(match given(j) {
            Some(f) => given_factor(&format!("factor_{j}"), f, (rows, k))?,
            None => drawn,
        });
    }
    let mut state = PntfState {
        weights,
        factors,
        mass: 1.0,
    };
    if config.start == Start::Deflation {
        let free: Vec<bool> = (0..shape.len()).map(|j| given(j).is_none()).collect();
        let weights = state.weights.as_mut_slice();
        deflate(
            data,
            &mut state.factors,
            &free,
            k,
            init.weights.is_none().then_some(weights),
        )?;
    }
    Ok(state)
}

/// Columns drawn uniformly from the simplex.
pub(crate) fn random_columns<T: Real, R: Rng + ?Sized>(
    rows: usize,
    columns: usize,
    rng: &mut R,
) -> DMatrix<T> {
    let mut m = DMatrix::from_fn(rows, columns, |_, _| T::lit(random::exponential(rng)));
    normalise_columns(&mut m);
    m
}

/// Refuses factors that do not go with data of this shape and `k` components.
pub(crate) fn check_shapes<'a, T: Real>(
    factors: impl ExactSizeIterator<Item = &'a DMatrix<T>>,
    shape: &[usize],
    k: usize,
) -> Result<(), PntfError> {
    if factors.len() != shape.len() {
        return Err(PntfError::Factors {
            expected: shape.len(),
            got: factors.len(),
        });
    }
    for (j, (factor, &rows)) in factors.zip(shape).enumerate() {
        check_shape(&format!("factor_{j}"), factor.shape(), (rows, k))?;
    }
    Ok(())
}

pub(crate) fn check_shape(
    block: &str,
    got: (usize, usize),
    expected: (usize, usize),
) -> Result<(), PntfError> {
    (got == expected)
        .then_some(())
        .ok_or_else(|| PntfError::Shape {
            block: block.into(),
            got,
            expected,
        })
}

/// Refuses a block of the wrong shape or with values that are not finite.
pub(crate) fn check_block<T: Real>(
    block: &str,
    m: &DMatrix<T>,
    expected: (usize, usize),
    negative: bool,
) -> Result<(), PntfError> {
    check_shape(block, m.shape(), expected)?;
    match first_unusable(m, negative) {
        Some((row, column, value)) => Err(PntfError::Value {
            block: block.into(),
            row,
            column,
            value,
        }),
        None => Ok(()),
    }
}

/// Row, column and value of the first entry, rows before columns, that is not finite, or negative where that is no use.
pub(crate) fn first_unusable<T: Real>(
    m: &DMatrix<T>,
    negative: bool,
) -> Option<(usize, usize, f64)> {
    let places = (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| (i, j)));
    let mut entries = places.map(|(i, j)| (i, j, m[(i, j)].to_f64()));
    entries.find(|&(_, _, x)| !x.is_finite() || (x < 0.0 && !negative))
}

fn given_weights<T: Real>(w: &DVector<T>, k: usize) -> Result<DVector<T>, PntfError> {
    let column = DMatrix::from_column_slice(w.len(), 1, w.as_slice());
    check_block("weights", &column, (k, 1), false)?;
    Ok(DVector::from_column_slice(
        on_simplex(column, &mut Projector::default()).as_slice(),
    ))
}

/// Checks a factor and puts its columns on the simplex.
pub(crate) fn given_factor<T: Real>(
    block: &str,
    m: &DMatrix<T>,
    expected: (usize, usize),
) -> Result<DMatrix<T>, PntfError> {
    check_block(block, m, expected, true)?;
    Ok(on_simplex(
        m.clone(),
        &mut Projector::new(Projection::default()),
    ))
}

/// [PNTF 1] a column that is no distribution is projected, one of zeros becomes uniform; distributions are not touched.
pub(crate) fn on_simplex<T: Real>(mut m: DMatrix<T>, projector: &mut Projector) -> DMatrix<T> {
    let rows = m.nrows();
    let close = 4.0 * T::EPSILON.to_f64() * rows as f64;
    for column in m.as_mut_slice().chunks_exact_mut(rows.max(1)) {
        let mut values: Vec<f64> = column.iter().map(|x| x.to_f64()).collect();
        let sum: f64 = values.iter().sum();
        if (sum - 1.0).abs() <= close && values.iter().all(|&x| x >= 0.0) {
            continue;
        }
        projector.project(&mut values, 1.0);
        column
            .iter_mut()
            .zip(values)
            .for_each(|(c, x)| *c = T::lit(x));
    }
    m
}

/// Rank-one terms of what is left over, one after the other, in the `free` ones of the `outcome`; and the best weights, if these are free.
pub(crate) fn deflate<T: Real>(
    data: &Products<'_, T>,
    outcome: &mut [DMatrix<T>],
    free: &[bool],
    k: usize,
    weights: Option<&mut [T]>,
) -> Result<(), QpError> {
    let n = outcome.len();
    let scale = 1.0 / data.total();
    let contract = |factors: &[DMatrix<T>], mode| data.mttkrp(factors, mode) * scale;
    let mut factors: Vec<DMatrix<f64>> = outcome.iter().map(widen).collect();
    // Strengths of the earlier components, unconstrained.
    let mut strengths: Vec<f64> = Vec::with_capacity(k);
    for t in 0..k {
        let mut strength = 0.0;
        for round in 0..ALTERNATIONS {
            for mode in 0..n {
                if !free[mode] && (round, mode) != (0, 0) {
                    continue;
                }
                let one: Vec<DMatrix<T>> = factors
                    .iter()
                    .map(|f| f.columns(t, 1).map(T::lit).into_owned())
                    .collect();
                let mut b = contract(&one, mode);
                let mut own = 1.0;
                for (_, f) in factors.iter().enumerate().filter(|&(m, _)| m != mode) {
                    own *= f.column(t).norm_squared();
                }
                for (j, s) in strengths.iter().enumerate() {
                    let overlap: f64 = (0..n)
                        .filter(|&m| m != mode)
                        .map(|m| factors[m].column(j).dot(&factors[m].column(t)))
                        .product();
                    b.column_mut(0)
                        .axpy(-s * overlap, &factors[mode].column(j), 1.0);
                }
                b.apply(|x| *x = x.max(0.0));
                let sum = b.sum();
                if sum <= 0.0 {
                    // Nothing positive is left in this direction.
                    break;
                }
                strength = sum / own;
                if free[mode] {
                    factors[mode].set_column(t, &(b.column(0) / sum));
                }
            }
        }
        strengths.push(strength);
    }
    for (j, factor) in factors.into_iter().enumerate() {
        if free[j] {
            let uniform = 1.0 / factor.nrows() as f64;
            outcome[j] = factor.map(|x| T::lit((1.0 - UNIFORM) * x + UNIFORM * uniform));
        }
    }
    if let Some(weights) = weights {
        let wide: Vec<DMatrix<f64>> = outcome.iter().map(widen).collect();
        let grams: Vec<_> = wide.iter().map(gram).collect();
        let m = contract(outcome, 0);
        let f = crate::sweep::contracted(&m, &wide[0]);
        let qp = gram_qp(&hadamard(&grams, None), &f, None)?;
        // No component starts dead.
        let uniform = 1.0 / k as f64;
        for (w, l) in weights.iter_mut().zip(qp.weights) {
            *w = T::lit((1.0 - UNIFORM) * l + UNIFORM * uniform);
        }
    }
    Ok(())
}
