//! Cross-entropy of components in time: with others, and with themselves, some samples ago.

use nalgebra::DMatrix;
use plca_tensor::Real;

use crate::cross_entropy::normalised;
use crate::simplex_prior::{domain, fitting};
use crate::table::{Parsed, fading, groups, needed, number, refused, settings, weights};
use crate::{PriorError, PriorRules, SimplexPrior, Step, Weighted, check_counts, columns};

/// The cross-entropy prior of the columns of a block, which are distributions over time, at several lags: makes a component similar to what others, or it
/// itself, were some samples ago, or makes it differ.
///
/// ```math
/// S_i[t] = \sum_\text{lag} \sum_k A_\text{lag}[i,k] \, q_k[t - \text{lag}],
/// \qquad q_i \gets \frac{\max(n_i - S_i, \, 0)}{\text{sum of the numerators}}
/// ```
///
/// `q_i` is column `i` and `n_i` are its counts; weights are in counts, or [`relative`](Self::relative). What lies outside of the samples is left out. Columns are renewed in order, each with the newest values of the others. A
/// positive weight makes two components differ, a negative one makes them similar. With `A_-lag[k,i] = A_lag[i,k]` the prior is symmetric; with positive lags
/// alone component `i` follows component `k`. A column in which everything is clipped keeps its value.
///
/// The step is a heuristic and no lag but 0 has a density of its own: [`ln_density`](SimplexPrior::ln_density) is 0, and the likelihood of a fit may fall. Time of a
/// step: `O(T K^2)` for every lag of a block of `T x K`. `[EXT 7]`
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Lagged, SimplexPrior, Step};
/// // The second component follows the first by one sample.
/// let follows = Lagged::new(vec![(1, dmatrix![0.0, 0.0; -2.0, 0.0])])?;
/// let counts = dmatrix![4.0, 1.0; 0.0, 1.0];
/// let mut theta = dmatrix![0.5, 0.5; 0.5, 0.5];
/// follows.update(&counts, &mut theta, &Step::at(1))?;
/// assert_eq!(theta, dmatrix![1.0, 0.25; 0.0, 0.75]);                  // 1 and 1 + 2
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Lagged {
    lags: Vec<(isize, DMatrix<f64>)>,
    relative: bool,
}

impl Lagged {
    /// The prior of weights `A_lag`, in counts, for every lag.
    ///
    /// # Errors
    ///
    /// [`PriorError::Shape`] for a matrix that is not square, or not of the size of the first; [`PriorError::Domain`] for a weight that is not finite, and for one of a
    /// component with itself at lag 0.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::Lagged;
    /// assert!(Lagged::new(vec![(0, dmatrix![1.0])]).is_err() && Lagged::new(vec![(1, dmatrix![1.0])]).is_ok());
    /// ```
    pub fn new(lags: Vec<(isize, DMatrix<f64>)>) -> Result<Self, PriorError> {
        let k = lags.first().map_or(0, |(_, a)| a.ncols());
        for (lag, a) in &lags {
            fitting(a.shape() == (k, k), a.shape(), (k, k))?;
            for (at, &weight) in a.iter().enumerate() {
                let itself = *lag == 0 && at / k == at % k && weight != 0.0;
                domain("weights", weight, weight.is_finite() && !itself)?;
            }
        }
        Ok(Self {
            lags,
            relative: false,
        })
    }

    /// Makes the weights multiples of `v/K`, as [`CrossEntropy::relative`](crate::CrossEntropy::relative).
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{Lagged, SimplexPrior, Step};
    /// let follows = Lagged::new(vec![(1, dmatrix![0.0, 0.0; -0.5, 0.0])])?.relative();
    /// let mut theta = dmatrix![0.5, 0.5; 0.5, 0.5];
    /// follows.update(&dmatrix![4.0, 1.0; 0.0, 1.0], &mut theta, &Step::at(1))?;       // v/K = 3: a weight of -1.5
    /// assert_eq!(theta[(1, 1)], 2.5 / 3.5);
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    #[must_use]
    pub fn relative(mut self) -> Self {
        self.relative = true;
        self
    }

    /// The prior of groups of components, as [`CrossEntropy::groups`](crate::CrossEntropy::groups): at every lag, times its weight, columns of different groups
    /// differ by `between`, and those of one group, a column itself among them, are similar by `within`.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] unless the weights are finite, `between` and `within` not negative.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::Lagged;
    /// let [own, other] = [-0.5, 1.0];
    /// let groups = Lagged::groups(&[0, 1], 2.0, 1.0, &[(1, 0.5)])?;
    /// assert_eq!(groups, Lagged::new(vec![(1, dmatrix![own, other; other, own])])?);
    /// # Ok::<(), plca_priors::PriorError>(())
    /// ```
    pub fn groups(
        groups: &[usize],
        between: f64,
        within: f64,
        lags: &[(isize, f64)],
    ) -> Result<Self, PriorError> {
        for (name, weight) in [("between", between), ("within", within)] {
            domain(name, weight, weight.is_finite() && weight >= 0.0)?;
        }
        let k = groups.len();
        let lags = lags.iter().map(|&(lag, weight)| {
            // [EXT 7] A_lag = w_lag (alpha [different] - beta [same])
            let a = DMatrix::from_fn(k, k, |i, j| match groups[i] == groups[j] {
                _ if lag == 0 && i == j => 0.0,
                true => -weight * within,
                false => weight * between,
            });
            (lag, a)
        });
        Self::new(lags.collect())
    }
}

/// `groups=0/0/1/1,between=A,within=B,lags=1:W/2:W[,decrease=T]`.
pub(crate) fn parse<T: Real>(text: &str, _: (usize, usize)) -> Parsed<dyn SimplexPrior<T>> {
    let names = ["groups", "between", "within", "lags", "decrease"];
    let [of, between, within, lags, decrease] = settings(text, names)?;
    let groups = groups(needed(of, "groups", text)?)?;
    let ([between, within], relative) = weights([between, within], text)?;
    let lags = needed(lags, "lags", text)?.split('/').map(|lag| {
        let parts = lag
            .split_once(':')
            .and_then(|(l, w)| Some((l.parse().ok()?, number(w).ok()?)));
        parts.ok_or_else(|| refused(lag, "LAG:WEIGHT, such as 1:0.5"))
    });
    let lags: Vec<(isize, f64)> = lags.collect::<Result<_, _>>()?;
    let prior = Lagged::groups(&groups, between, within, &lags)?;
    fading(Lagged { relative, ..prior }, decrease)
}

impl PriorRules for Lagged {
    fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
        match self.lags.first().map(|(_, a)| a.ncols()) {
            Some(got) if got != shape.1 => Err(PriorError::Components {
                got,
                expected: shape.1,
            }),
            _ => Ok(()),
        }
    }

    fn has_density(&self) -> bool {
        false
    }

    fn may_empty(&self) -> bool {
        true
    }

    fn steady(&self, _iteration: usize) -> bool {
        self.lags.iter().all(|(_, a)| a.iter().all(|&a| a == 0.0))
    }
}

impl<T: Real> SimplexPrior<T> for Lagged {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        self.check(theta.shape())?;
        check_counts(counts, theta)?;
        let mut q = columns::double(theta);
        let (times, k) = q.shape();
        // [SPEC 8] v / K
        let unit = match self.relative {
            true => counts.iter().map(|n| n.to_f64()).sum::<f64>() / k as f64,
            false => 1.0,
        };
        for i in (0..k).filter(|&i| !step.is_frozen(i)) {
            let mut new: Vec<f64> = counts.column(i).iter().map(|n| n.to_f64()).collect();
            for (lag, a) in &self.lags {
                let shift = lag.unsigned_abs().min(times);
                // Samples t of one and t - lag of the other, as far as both are there.
                let (to, from) = if *lag >= 0 { (shift, 0) } else { (0, shift) };
                for other in (0..k).filter(|&other| a[(i, other)] != 0.0) {
                    let (weight, others) = (unit * a[(i, other)], q.column(other));
                    // [EXT 7] n_i - Σ A_lag[i,k] q_k[t - lag]
                    let pairs = new[to..].iter_mut().zip(others.iter().skip(from));
                    pairs.for_each(|(x, q)| *x -= weight * q);
                }
            }
            new.iter_mut().for_each(|x| *x = x.max(0.0));
            if let Some(new) = normalised(new) {
                q.column_mut(i).copy_from_slice(&new);
            }
        }
        theta.iter_mut().zip(&q).for_each(|(t, &q)| *t = T::lit(q));
        Ok(())
    }

    fn ln_density(&self, _: &DMatrix<T>, _: &Step<'_>) -> f64 {
        0.0
    }
}

impl Weighted for Lagged {
    fn weighted(&self, f: f64) -> Self {
        let lags = self.lags.iter().map(|(lag, a)| (*lag, a * f));
        Self {
            lags: lags.collect(),
            relative: self.relative,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [EXT 7]
    #[test]
    fn steps_match_the_reference() {
        let golden = include_str!("../../testdata/golden/neighbours.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let matrix = |v: &serde_json::Value| {
            let size = |i: usize| v["shape"][i].as_u64().unwrap() as usize;
            let data = v["data"].as_array().unwrap().iter();
            let data: Vec<f64> = data.map(|x| x.as_f64().unwrap()).collect();
            DMatrix::from_row_slice(size(0), size(1), &data)
        };
        let cases = golden["cases"].as_array().unwrap().iter();
        let mut checked = 0;
        for case in cases.filter(|case| case["kind"] == "lag_step") {
            let lags = case["lags"].as_array().unwrap().iter();
            let lags = lags.map(|l| (l["lag"].as_i64().unwrap() as isize, matrix(&l["A"])));
            let prior = Lagged::new(lags.collect()).unwrap();
            let mut q = matrix(&case["q"]);
            prior
                .update(&matrix(&case["counts"]), &mut q, &Step::at(1))
                .unwrap();
            for (got, want) in q.iter().zip(&matrix(&case["q_new"])) {
                assert!(
                    (got - want).abs() <= 1e-12,
                    "{}: {got} {want}",
                    case["name"]
                );
            }
            checked += 1;
        }
        assert_eq!(checked, 3);
    }
}
