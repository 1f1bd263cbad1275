//! Held-out data under a model that is mixed with a simple one, so that nothing is impossible.

use plca_dist::deviance;
use rand::Rng;

/// A value that was held out, and what is expected of it.
///
/// ```
/// use plca_em::Judged;
/// let cell = Judged { value: 3.0, model: 0.0, base: 0.25 };            // seen, where the model has nothing
/// assert!(cell.base > 0.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The value that was held out.
    pub value: f64,
    /// The value that the model expects; of counts, the probability of the cell.
    pub model: f64,
    /// The value that a simple model expects, such as one of independent dimensions: positive wherever `value` is.
    pub base: f64,
}

impl Judged {
    fn mixed(&self, share: f64) -> f64 {
        share * self.model + (1.0 - share) * self.base
    }
}

/// The perplexity of held-out counts under a mixture of a model and a simpler one.
///
/// ```math
/// \exp \left( - \frac{1}{v} \sum V \ln \left( \lambda \, \text{model} + (1 - \lambda) \, \text{base} \right) \right)
/// ```
///
/// `V` are the values of the cells, of sum `v`.
///
/// The counts are cut in two halves at random; `λ` of either half is what explains the other one best (deleted interpolation). So nothing
/// is fitted to what it is judged by, and a model that gives probability 0 to something that was seen has a finite perplexity: at most
/// about that of `base`.
///
/// ```
/// use plca_em::{Judged, held_out_perplexity};
/// let cell = |value, model| Judged { value, model, base: 0.25 };
/// let rng = || plca_em::seed(0);
/// // The counts are where the model says; where it says nothing; one of a hundred is.
/// let right = held_out_perplexity(&[cell(500.0, 0.5), cell(500.0, 0.5)], &mut rng());
/// let wrong = held_out_perplexity(&[cell(500.0, 0.0), cell(500.0, 0.0)], &mut rng());
/// let mixed = held_out_perplexity(&[cell(990.0, 0.5), cell(10.0, 0.0)], &mut rng());
/// assert!(right < 2.01 && (3.99..4.1).contains(&wrong) && right < mixed && mixed < wrong);
/// ```
pub fn held_out_perplexity<R: Rng + ?Sized>(cells: &[Judged], rng: &mut R) -> f64 {
    let surprise = crossed(cells, false, |value| {
        let first = plca_dist::thin(value as u64, 0.5, rng).map_or(0.0, |n| n as f64);
        [Some(first), Some(value - first)]
    });
    surprise.exp()
}

/// The divergence of held-out cells from a mixture of a model and a simpler one, in nats per unit of the data.
///
/// ```math
/// \frac{1}{v} \sum \left( V \ln \frac{V}{Y} - V + Y \right), \qquad Y = \lambda \, \text{model} + (1 - \lambda) \, \text{base}
/// ```
///
/// `V` are the values of the cells, of sum `v`.
///
/// As [`held_out_perplexity`], but the cells themselves are cut in two halves: a cell in which alone the model is wrong is foreseen by no
/// other, and counts in full. Data and expectations in another unit have the same score.
///
/// ```
/// use plca_em::{Judged, held_out_divergence};
/// let cells = |model: f64| (0..100).map(|n| Judged { value: f64::from(n % 3), model: f64::from(n % 3) * model, base: 1.0 }).collect::<Vec<_>>();
/// let mut rng = plca_em::seed(0);
/// assert!(held_out_divergence(&cells(1.0), &mut rng) < 0.1);
/// let none = held_out_divergence(&cells(0.0), &mut rng);
/// assert!(none.is_finite() && none > 0.4);
/// ```
pub fn held_out_divergence<R: Rng + ?Sized>(cells: &[Judged], rng: &mut R) -> f64 {
    crossed(cells, true, |value| match rng.next_u64() & 1 == 0 {
        true => [Some(value), None],
        false => [None, Some(value)],
    })
}

/// Loss of two halves of the cells, each under the share that the other one asks for, over the sum of the values. The loss is
/// `-Σ V ln Y`, or the whole divergence.
fn crossed(cells: &[Judged], whole: bool, mut halves: impl FnMut(f64) -> [Option<f64>; 2]) -> f64 {
    let mut parts = [Vec::new(), Vec::new()];
    for cell in cells {
        for (part, value) in parts.iter_mut().zip(halves(cell.value)) {
            part.extend(value.map(|value| Judged { value, ..*cell }));
        }
    }
    let shares = parts.each_ref().map(|part| share(part, whole));
    let loss = |part: &[Judged], share: f64| -> f64 {
        let of = |cell: &Judged| {
            let (v, y) = (cell.value, cell.mixed(share));
            match whole {
                true => deviance(v, y),
                false if v > 0.0 => -v * y.ln(),
                false => 0.0,
            }
        };
        part.iter().map(of).sum()
    };
    let total: f64 = cells.iter().map(|c| c.value).sum();
    (loss(&parts[0], shares[1]) + loss(&parts[1], shares[0])) / total
}

/// The share of the model at which the loss is least, a convex problem in one number. Never quite 1: as if half an observation more
/// had been seen where the model has nothing.
fn share(cells: &[Judged], whole: bool) -> f64 {
    let seen: f64 = match whole {
        true => cells.len() as f64,
        false => cells.iter().map(|c| c.value).sum(),
    };
    // Falls as the share grows.
    let slope = |share: f64| -> f64 {
        let of = |cell: &Judged| {
            let (difference, y) = (cell.model - cell.base, cell.mixed(share));
            let pull = if cell.value > 0.0 {
                cell.value / y * difference
            } else {
                0.0
            };
            if whole { pull - difference } else { pull }
        };
        cells.iter().map(of).sum()
    };
    let (mut low, mut high) = (0.0, 1.0 - 0.5 / (seen + 1.0));
    if slope(high) >= 0.0 {
        return high;
    }
    // As many halvings as there are digits.
    for _ in 0..53 {
        let middle = 0.5 * (low + high);
        if slope(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;

    /// Whatever the model says, scores are finite and hardly worse than those of the simple one; a right model's are its own.
    #[test]
    fn no_model_is_much_worse_than_the_simple_one() {
        let base = |n: usize| (n % 5 + 1) as f64 / 300.0;
        let value = |n: usize| ((n * 7) % 11) as f64;
        let total: f64 = (0..100).map(value).sum();
        let models: [fn(usize) -> f64; 4] = [
            |_| 0.0,
            |n| if n % 10 == 0 { 0.1 } else { 0.0 },
            |n| if n % 2 == 0 { 1e-300 } else { 0.02 },
            |_| f64::MIN_POSITIVE,
        ];
        let cells = |model: &dyn Fn(usize) -> f64, unit: f64| -> Vec<Judged> {
            let cell = |n| Judged {
                value: value(n),
                model: unit * model(n),
                base: unit * base(n),
            };
            (0..100).map(cell).collect()
        };
        let rng = || ChaCha8Rng::seed_from_u64(5);
        let simple = [
            held_out_perplexity(&cells(&base, 1.0), &mut rng()),
            held_out_divergence(&cells(&base, total), &mut rng()),
        ];
        for model in models {
            let scores = [
                held_out_perplexity(&cells(&model, 1.0), &mut rng()),
                held_out_divergence(&cells(&model, total), &mut rng()),
            ];
            for (score, simple) in scores.into_iter().zip(simple) {
                assert!(
                    score.is_finite() && score < 1.1 * simple,
                    "{score} {simple}"
                );
            }
        }
        let truth = |n: usize| value(n) / total;
        let right = held_out_perplexity(&cells(&truth, 1.0), &mut rng());
        let ln_lik: f64 = (0..100).map(|n| value(n) * truth(n).max(1e-300).ln()).sum();
        assert!(
            (right / (-ln_lik / total).exp() - 1.0).abs() < 2e-3,
            "{right}"
        );
    }
}
