//! Counts held out, to judge what was learned from the others.

use plca_dist::thin;
use plca_tensor::{Observed, Real};
use rand::Rng;

use crate::init::check_read;
use crate::{EmError, ParamError, Part};

/// A data set of counts in two parts that add up to it.
///
/// ```
/// use plca_em::{HeldOut, hold_out};
/// use plca_tensor::{DenseTensor, Observed, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::<f64>::new(vec![2, 2], vec![30.0, 10.0, 0.0, 60.0], Order::RowMajor)?;
/// let HeldOut { train, held } = hold_out(&v, 0.2, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert_eq!((train.shape(), train.total() + held.total()), (&[2, 2][..], 100.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HeldOut<'a, T, X: ?Sized> {
    /// What a model is fitted to.
    pub train: Part<'a, T, X>,
    /// What it is judged by.
    pub held: Part<'a, T, X>,
}

/// Holds out every single count with probability `share`, independently: binomial thinning of the cells.
///
/// A model of the counts is a model of either part. The cells of both parts are those of `data`; hidden cells stay hidden.
/// Of every index that has counts one at least stays in the training part, where a model can learn that it exists.
/// Cost: one draw per cell.
///
/// # Errors
///
/// [`EmError`]: a share outside `(0, 1)`, a value that is no whole number or above 2^53, data of which nothing can be held out.
///
/// # Examples
///
/// ```
/// use plca_em::hold_out;
/// use plca_tensor::{DenseTensor, Observed, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = DenseTensor::new(vec![2, 2], vec![30.0, 10.0, 0.0, 60.0], Order::RowMajor)?;
/// let parts = hold_out(&v, 0.2, &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert_eq!(parts.train.total() + parts.held.total(), 100.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn hold_out<'a, T, X, R>(
    data: &'a X,
    share: f64,
    rng: &mut R,
) -> Result<HeldOut<'a, T, X>, EmError>
where
    T: Real,
    X: Observed<T> + ?Sized,
    R: Rng + ?Sized,
{
    if !(share > 0.0 && share < 1.0) {
        return Err(ParamError::Share(share).into());
    }
    let mut left: Vec<Vec<f64>> = data.shape().iter().map(|&n| vec![0.0; n]).collect();
    let (mut drawn, mut fraction) = (Vec::new(), None);
    data.for_each(&mut |index, value| {
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
    });
    check_read(data)?;
    if let Some((index, value)) = fraction {
        return Err(EmError::NotCounts { index, value });
    }
    let mut cell = 0;
    data.for_each(&mut |index, _| {
        if drawn[cell] > 0.0 && left.iter().zip(index).any(|(left, &i)| left[i] == 0.0) {
            drawn[cell] -= 1.0;
            for (left, &i) in left.iter_mut().zip(index) {
                left[i] += 1.0;
            }
        }
        cell += 1;
    });
    if drawn.iter().all(|&n| n == 0.0) {
        return Err(EmError::NothingHeldOut);
    }
    let mut cells = drawn.iter();
    let train = Part::of(data, |_, value| value - cells.next().unwrap_or(&0.0))?;
    let mut cells = drawn.iter();
    let held = Part::of(data, |_, _| *cells.next().unwrap_or(&0.0))?;
    Ok(HeldOut { train, held })
}

/// Perplexity of counts: `exp(-L / v)`, the number of equally likely cells that would surprise as much.
///
/// ```
/// assert!((plca_em::perplexity(-4.0 * 8f64.ln(), 4.0) - 8.0).abs() < 1e-12);
/// ```
pub fn perplexity(ln_lik: f64, total: f64) -> f64 {
    (-ln_lik / total).exp()
}

#[cfg(test)]
mod tests {
    use plca_tensor::{DenseTensor, Order};
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
}
