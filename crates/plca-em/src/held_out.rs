//! Counts held out, to judge what was learned from the others.

use plca_dist::thin;
use plca_tensor::{Data, DataError, DenseTensor, Mask, Order, Part, Real};
use rand::Rng;

use crate::EmError;

/// A data set of counts in two parts that add up to it.
///
/// ```
/// use plca_em::{HeldOut, hold_out};
/// use plca_em::tensor::{DenseTensor, Data, Order};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![30.0, 10.0, 0.0, 60.0], Order::RowMajor)?;
/// let HeldOut { train, held } = hold_out(&v, 0.2, &mut plca_em::seed(0))?;
/// assert_eq!((train.shape(), train.total() + held.total()), (&[2, 2][..], 100.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HeldOut<'a, T: Real> {
    /// The part that a model is fitted to.
    pub train: Part<'a, T>,
    /// The part that it is judged by.
    pub held: Part<'a, T>,
}

/// Holds out every single count with probability `share`, independently: binomial thinning of the cells.
///
/// A model of the counts is a model of either part. The cells of both parts are those of `data`; hidden cells stay hidden.
/// Of every index that has counts one at least stays in the training part, where a model can learn that it exists.
/// Cost: one draw per cell.
///
/// # Errors
///
/// [`EmError`]: a share outside `(0, 1)`, a value that is not a whole number or above 2^53, data of which nothing can be held out.
///
/// # Examples
///
/// ```
/// use plca_em::hold_out;
/// use plca_em::tensor::{DenseTensor, Data, Order};
/// let v = DenseTensor::new(vec![2, 2], vec![30.0, 10.0, 0.0, 60.0], Order::RowMajor)?;
/// let parts = hold_out(&v, 0.2, &mut plca_em::seed(0))?;
/// assert_eq!(parts.train.total() + parts.held.total(), 100.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn hold_out<'a, T, R>(
    data: &'a dyn Data<T>,
    share: f64,
    rng: &mut R,
) -> Result<HeldOut<'a, T>, EmError>
where
    T: Real,
    R: Rng + ?Sized,
{
    if !(share > 0.0 && share < 1.0) {
        return Err(EmError::Share(share));
    }
    let mut left: Vec<Vec<f64>> = data.shape().iter().map(|&n| vec![0.0; n]).collect();
    let (mut drawn, mut fraction) = (Vec::new(), None);
    data.visit(&mut |index, value| {
        let thinned = match value.fract() == 0.0 && fraction.is_none() {
            true => thin(value as u64, share, rng).ok(),
            false => None,
        };
        let out = thinned.map_or(0.0, |n| n as f64);
        if thinned.is_none() {
            fraction.get_or_insert_with(|| (index.to_vec(), value));
        }
        drawn.push(out);
        for (left, &i) in left.iter_mut().zip(index) {
            left[i] += value - out;
        }
    })?;
    if let Some((index, value)) = fraction {
        return Err(EmError::NotCounts { index, value });
    }
    let mut cell = 0;
    data.visit(&mut |index, _| {
        if drawn[cell] > 0.0 && left.iter().zip(index).any(|(left, &i)| left[i] == 0.0) {
            drawn[cell] -= 1.0;
            for (left, &i) in left.iter_mut().zip(index) {
                left[i] += 1.0;
            }
        }
        cell += 1;
    })?;
    if drawn.iter().all(|&n| n == 0.0) {
        return Err(EmError::NothingHeldOut);
    }
    let mut cells = drawn.iter();
    let train = Part::of(data, |_, value| value - cells.next().unwrap_or(&0.0))?;
    let mut cells = drawn.iter();
    let held = Part::of(data, |_, _| *cells.next().unwrap_or(&0.0))?;
    Ok(HeldOut { train, held })
}

/// A data set of any non-negative values, some cells of which are hidden from a model.
///
/// ```
/// use plca_em::hold_out_cells;
/// use plca_em::tensor::{DenseTensor, Data, Order};
/// let v = DenseTensor::<f64>::new(vec![2, 3], vec![0.5, 1.5, 0.0, 2.5, 0.5, 3.0], Order::RowMajor)?;
/// let parts = hold_out_cells(&v, 0.4, &mut plca_em::seed(1))?;
/// let held: f64 = parts.held.iter().map(|(_, value)| value).sum();
/// assert_eq!((parts.train.is_complete(), parts.train.total() + held), (false, 8.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct HeldCells<T> {
    /// The data that a model is fitted to.
    pub train: DenseTensor<T>,
    /// The index and the value of the cells that are hidden there, zeros among them, in row-major order.
    pub held: Vec<(Vec<usize>, f64)>,
}

/// Hides every observed cell with probability `share`, independently: for data that are not counts.
///
/// Of every index that has positive cells one at least stays in the training part. Memory and cost: every cell of the shape.
///
/// # Errors
///
/// [`EmError`]: a share outside `(0, 1)`, a shape whose cells cannot be held, data of which no positive cell can be held out.
///
/// # Examples
///
/// See [`HeldCells`].
pub fn hold_out_cells<T, R>(
    data: &dyn Data<T>,
    share: f64,
    rng: &mut R,
) -> Result<HeldCells<T>, EmError>
where
    T: Real,
    R: Rng + ?Sized,
{
    if !(share > 0.0 && share < 1.0) {
        return Err(EmError::Share(share));
    }
    let shape = data.shape().to_vec();
    let large = || DataError::TooLarge {
        shape: data.shape().to_vec(),
    };
    let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
    let cells = cells.ok_or_else(large)?;
    let mut values: Vec<T> = Vec::new();
    values.try_reserve_exact(cells).map_err(|_| large())?;
    let place = |index: &[usize]| index.iter().zip(&shape).fold(0, |at, (&i, n)| at * n + i);
    let mut listed = vec![false; if data.is_complete() { 0 } else { cells }];
    data.visit_mask(&mut |index| listed[place(index)] = true)?;
    listed.resize(cells, false);
    let seen = |&listed: &bool| listed == (data.summary().mask == Mask::Observed);
    values.extend(listed.iter().map(|at| {
        if seen(at) {
            T::zero()
        } else {
            T::lit(f64::NAN)
        }
    }));
    // Positive cells of every index in the training part.
    let mut left: Vec<Vec<usize>> = shape.iter().map(|&n| vec![0; n]).collect();
    data.visit(&mut |index, value| {
        values[place(index)] = T::lit(value);
        for (left, &i) in left.iter_mut().zip(index) {
            left[i] += 1;
        }
    })?;
    let mut held = Vec::new();
    let mut index = vec![0; shape.len()];
    for (at, x) in values.iter_mut().enumerate() {
        let drawn = (rng.next_u64() >> 11) as f64 * (-53f64).exp2() < share;
        if !drawn || x.is_nan() {
            continue;
        }
        let mut rest = at;
        for (i, n) in index.iter_mut().zip(&shape).rev() {
            (*i, rest) = (rest % n, rest / n);
        }
        if *x > T::zero() {
            if left.iter().zip(&index).any(|(left, &i)| left[i] == 1) {
                continue;
            }
            for (left, &i) in left.iter_mut().zip(&index) {
                left[i] -= 1;
            }
        }
        held.push((index.clone(), x.to_f64()));
        *x = T::lit(f64::NAN);
    }
    if held.iter().all(|(_, value)| *value == 0.0) {
        return Err(EmError::NothingHeldOut);
    }
    let train = DenseTensor::masked(shape, values, Order::RowMajor)?;
    Ok(HeldCells { train, held })
}

/// The perplexity of counts: the number of equally likely cells that would surprise as much.
///
/// ```math
/// e^{-L / v}
/// ```
///
/// `L = ln_lik` is the log-likelihood in nats and `v = total` the sum of the counts.
///
/// ```
/// assert!((plca_em::perplexity(-4.0 * 8f64.ln(), 4.0) - 8.0).abs() < 1e-12);
/// ```
pub fn perplexity(ln_lik: f64, total: f64) -> f64 {
    (-ln_lik / total).exp()
}

#[cfg(test)]
mod tests {
    use plca_tensor::DenseTensor;
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;

    #[test]
    fn what_cannot_be_held_out_is_refused_with_its_place() {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let real = DenseTensor::new(vec![1, 2], vec![1.0, 0.5], Order::RowMajor).unwrap();
        let error = hold_out(&real, 0.5, &mut rng).unwrap_err();
        assert!(error.to_string().contains("[0, 1] is 0.5"), "{error}");
        let one = DenseTensor::new(vec![1, 1], vec![1.0], Order::RowMajor).unwrap();
        assert_eq!(
            hold_out(&one, 0.9, &mut rng).unwrap_err(),
            EmError::NothingHeldOut
        );
        for share in [0.0, 1.0, f64::NAN, -0.1] {
            assert!(hold_out(&one, share, &mut rng).is_err());
        }
    }

    /// Hidden and observed cells as before except for those held, which are in the list with their values; every index keeps something.
    #[test]
    fn held_cells_are_hidden_and_listed() {
        let values: Vec<f64> = (0..60).map(|n| f64::from(n % 7) * 0.3).collect();
        let mut masked = values.clone();
        (0..60).step_by(13).for_each(|at| masked[at] = f64::NAN);
        let complete = DenseTensor::new(vec![6, 10], values.clone(), Order::RowMajor).unwrap();
        let hidden = DenseTensor::masked(vec![6, 10], masked.clone(), Order::RowMajor).unwrap();
        let sparse = plca_tensor::SparseTensor::new(plca_tensor::Coordinates {
            shape: vec![6, 10],
            indices: (0..60).flat_map(|at| [at / 10, at % 10]).collect(),
            values: values.clone(),
        })
        .unwrap();
        let all: [(&dyn Data<f64>, &[f64]); 3] =
            [(&complete, &values), (&hidden, &masked), (&sparse, &values)];
        for (data, original) in all {
            let parts = hold_out_cells(data, 0.9, &mut ChaCha8Rng::seed_from_u64(3)).unwrap();
            let (_, train, _) = parts.train.clone().into_parts();
            let mut held = 0;
            for (at, (&x, &t)) in original.iter().zip(&train).enumerate() {
                let listed = parts.held.iter().find(|(i, _)| i[0] * 10 + i[1] == at);
                match listed {
                    Some((_, value)) => assert!(t.is_nan() && *value == x, "{at}"),
                    None => assert!(t == x || (t.is_nan() && x.is_nan()), "{at}: {t} {x}"),
                }
                held += usize::from(listed.is_some());
            }
            assert!((30..56).contains(&held), "{held}");
            for mode in 0..2 {
                let sums = parts.train.marginal(mode).unwrap();
                assert!(sums.iter().all(|&sum| sum > 0.0));
            }
        }
        let one = DenseTensor::new(vec![1, 1], vec![0.5], Order::RowMajor).unwrap();
        let none = hold_out_cells(&one, 0.9, &mut ChaCha8Rng::seed_from_u64(0)).unwrap_err();
        assert_eq!(none, EmError::NothingHeldOut);
    }
}
