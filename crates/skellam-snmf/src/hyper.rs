//! Hyperparameters learnt from posteriors.
//!
//! ```text
//! e_d = mean_t Σ_(k,n)∈d E[ln H],    m_e = mean_t Σ_(k,n)∈e E[H],    c_d = mean_t Σ_(f,k,s)∈d E[ln T]
//! ```
//!
//! are all that the bound knows of the data as a function of the hyperparameters. Each step below raises it.

use nalgebra::DMatrix;
use plca_dist::{digamma, inverse_digamma};
use plca_tensor::{CompensatedSum, Real};

use crate::posterior::special;
use crate::{Entries, Posterior, Prior, SnmfError, SnmfState};

/// Shapes and rates that would grow without end stop here: all that is shared has become constant.
const LARGEST: f64 = 1e12;

/// Which hyperparameter every entry uses: indices from 0; several entries may share one. The maps `φ`, `d`, `e` of
/// `[SKELLAM eq. 15]` and `[SKELLAM eq. 16]`.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Entries, Hyperparameters, Sharing};
/// let rows = dmatrix![0; 1];                                          // an α for each row, both sides alike
/// let sharing = Sharing { plus: rows.clone(), minus: rows, ..Sharing::all(2, 1, 3) };
/// let hyper = Hyperparameters { alpha: vec![2.0, 0.5], shape: vec![1.0], rate: vec![0.1] };
/// assert_eq!(hyper.prior(&sharing)?.minus, Entries::Each(dmatrix![2.0; 0.5]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sharing {
    /// Of `T⁺`, `F x K`, among the `α`.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub plus: DMatrix<usize>,
    /// Of `T⁻`, `F x K`, among the `α`.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub minus: DMatrix<usize>,
    /// Of `H`, `K x N`, among the shapes `a`.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub shape: DMatrix<usize>,
    /// Of `H`, `K x N`, among the rates `b`.
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "plca_tensor::checked::matrix")
    )]
    pub rate: DMatrix<usize>,
}

impl Sharing {
    /// An `α` for every entry of the atoms (row by row of `F x K x 2`), a shape and a rate for every component.
    /// `f` rows, `k` components, `n` columns.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::Sharing;
    /// let sharing = Sharing::by_component(2, 2, 3);
    /// assert_eq!((sharing.plus, sharing.minus), (dmatrix![0, 2; 4, 6], dmatrix![1, 3; 5, 7]));
    /// assert_eq!(sharing.rate, dmatrix![0, 0, 0; 1, 1, 1]);
    /// ```
    pub fn by_component(f: usize, k: usize, n: usize) -> Self {
        let alpha = |s| DMatrix::from_fn(f, k, |f, z| 2 * (f * k + z) + s);
        Self {
            plus: alpha(0),
            minus: alpha(1),
            shape: DMatrix::from_fn(k, n, |z, _| z),
            rate: DMatrix::from_fn(k, n, |z, _| z),
        }
    }

    /// One `α`, one shape and one rate for all. `f` rows, `k` components, `n` columns.
    ///
    /// ```
    /// use skellam_snmf::Sharing;
    /// let sharing = Sharing::all(2, 1, 3);
    /// assert_eq!((sharing.plus.shape(), sharing.shape.shape()), ((2, 1), (1, 3)));
    /// assert!(sharing.plus.iter().chain(&sharing.rate).all(|&d| d == 0));
    /// ```
    pub fn all(f: usize, k: usize, n: usize) -> Self {
        Self {
            plus: DMatrix::zeros(f, k),
            minus: DMatrix::zeros(f, k),
            shape: DMatrix::zeros(k, n),
            rate: DMatrix::zeros(k, n),
        }
    }

    /// Every index with the number of its group, and that of its atom.
    fn atoms(&self) -> impl Iterator<Item = (usize, usize)> {
        let sides = [&self.plus, &self.minus].into_iter();
        sides.flat_map(|m| (m.iter().enumerate()).map(|(at, &d)| (d, at / m.nrows())))
    }

    fn check_shape(&self, (f, k, n): (usize, usize, usize)) -> Result<(), SnmfError> {
        for (block, got, expected) in [
            ("map of alpha+", self.plus.shape(), (f, k)),
            ("map of alpha-", self.minus.shape(), (f, k)),
            ("map of a", self.shape.shape(), (k, n)),
            ("map of b", self.rate.shape(), (k, n)),
        ] {
            if got != expected {
                return Err(SnmfError::Shape {
                    block,
                    got,
                    expected,
                });
            }
        }
        Ok(())
    }
}

/// Values of the hyperparameters that a [`Sharing`] refers to.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Entries, Hyperparameters, Sharing};
/// let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0, 3.0], rate: vec![0.5] };
/// let sharing = Sharing { shape: dmatrix![0, 0; 1, 1], ..Sharing::all(4, 2, 2) };
/// assert_eq!(hyper.prior(&sharing)?.shape, Entries::Each(dmatrix![2.0, 2.0; 3.0, 3.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hyperparameters {
    /// Dirichlet shapes `α`.
    pub alpha: Vec<f64>,
    /// Gamma shapes `a`.
    pub shape: Vec<f64>,
    /// Gamma rates `b`, in 1 over the units of the data.
    pub rate: Vec<f64>,
}

/// What hyperparameters are learnt from: sums over each group of entries, of means or logarithms, averaged over data sets.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Hyperparameters, Sharing, SnmfState, Statistics};
/// let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
/// let factors = SnmfState { plus: dmatrix![0.5], minus: dmatrix![0.5], activations: dmatrix![2.0, 4.0] };
/// let s = Statistics::of_known(&factors, &Sharing::all(1, 1, 2), &hyper)?;
/// assert_eq!(s.activations, [6.0]);                                   // a sum over the group, not a mean
/// assert!((s.ln_activations[0] - 8f64.ln()).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Statistics {
    /// `e = Σ E[ln H]`, one for every shape. `[SKELLAM eq. 47]`
    pub ln_activations: Vec<f64>,
    /// `m = Σ E[H]`, one for every rate, in the units of the data. `[SKELLAM eq. 48]`
    pub activations: Vec<f64>,
    /// `c = Σ E[ln T]`, one for every `α`. `[SKELLAM eq. 50]`
    pub ln_atoms: Vec<f64>,
}

/// `out[group] += x`.
fn add(
    out: &mut [CompensatedSum],
    groups: impl Iterator<Item = usize>,
    x: impl Iterator<Item = f64>,
) {
    groups.zip(x).for_each(|(d, x)| out[d] += x);
}

/// Values of accumulated sums.
fn values(sums: Vec<CompensatedSum>) -> Vec<f64> {
    sums.into_iter().map(CompensatedSum::value).collect()
}

impl Hyperparameters {
    /// Refuses values that no prior has, and maps that point past them.
    ///
    /// # Errors
    ///
    /// [`SnmfError::Value`] naming the first: a value that is not positive and finite, or an index that has none.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Hyperparameters, Sharing, SnmfError};
    /// let sharing = Sharing::by_component(1, 2, 3);
    /// let hyper = Hyperparameters { alpha: vec![1.0; 4], shape: vec![1.0], rate: vec![0.1; 2] };
    /// let error = hyper.check(&sharing).unwrap_err();                     // one shape for two components
    /// assert!(matches!(error, SnmfError::Value { block: "map of a", row: 1, column: 0, value: 1.0, .. }));
    /// ```
    pub fn check(&self, sharing: &Sharing) -> Result<(), SnmfError> {
        for (block, values) in [
            ("alpha", &self.alpha),
            ("a", &self.shape),
            ("b", &self.rate),
        ] {
            let bad = values.iter().position(|&x| !(x.is_finite() && x > 0.0));
            if let Some(row) = bad {
                return Err(SnmfError::Value {
                    block,
                    row,
                    column: 0,
                    value: values[row],
                    range: "a finite number > 0",
                });
            }
        }
        for (block, map, len) in [
            ("map of alpha+", &sharing.plus, self.alpha.len()),
            ("map of alpha-", &sharing.minus, self.alpha.len()),
            ("map of a", &sharing.shape, self.shape.len()),
            ("map of b", &sharing.rate, self.rate.len()),
        ] {
            if let Some(at) = map.iter().position(|&d| d >= len) {
                return Err(SnmfError::Value {
                    block,
                    row: at % map.nrows(),
                    column: at / map.nrows(),
                    value: map[at] as f64,
                    range: "the index of a hyperparameter",
                });
            }
        }
        Ok(())
    }

    /// The prior of these values.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Entries, Hyperparameters, Sharing};
    /// let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let prior = hyper.prior(&Sharing::all(1, 1, 2))?;
    /// assert_eq!((prior.shape, prior.rate), (Entries::Each(dmatrix![2.0, 2.0]), Entries::Each(dmatrix![0.5, 0.5])));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prior(&self, sharing: &Sharing) -> Result<Prior, SnmfError> {
        self.check(sharing)?;
        let block = |map: &DMatrix<usize>, values: &[f64]| Entries::Each(map.map(|d| values[d]));
        Ok(Prior {
            plus: block(&sharing.plus, &self.alpha),
            minus: block(&sharing.minus, &self.alpha),
            shape: block(&sharing.shape, &self.shape),
            rate: block(&sharing.rate, &self.rate),
        })
    }

    /// One iteration: all shapes, then all rates. With the posteriors of the statistics held fixed, the bound does not fall.
    /// Groups without entries keep their value; values that would grow without end stop at 1e12.
    ///
    /// ```text
    /// α_d <- ψ⁻¹((c_d + Σ_(f,k,s)∈d ψ(Σ α)) / |d|)
    /// a_d <- ψ⁻¹((e_d + Σ_(k,n)∈d ln b) / |d|),        b_e <- Σ_(k,n)∈e a / m_e
    /// ```
    ///
    /// `[SKELLAM eq. 49]`, `[SKELLAM eq. 45]`, `[SKELLAM eq. 46]`
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check); [`SnmfError::Shape`] for statistics of other sizes, [`SnmfError::NotFinite`] for those that
    /// are no numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Hyperparameters, Sharing, SnmfState, Statistics};
    /// let mut hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let factors = SnmfState { plus: dmatrix![0.5], minus: dmatrix![0.5], activations: dmatrix![2.0, 4.0] };
    /// let sharing = Sharing::all(1, 1, 2);
    /// hyper.improve(&sharing, &Statistics::of_known(&factors, &sharing, &hyper)?)?;
    /// assert!((hyper.shape[0] / hyper.rate[0] - 3.0).abs() < 1e-12);      // a / b is the mean activation
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn improve(&mut self, sharing: &Sharing, s: &Statistics) -> Result<(), SnmfError> {
        self.check(sharing)?;
        s.check(self)?;
        let mut totals = vec![0.0; sharing.plus.ncols()];
        sharing
            .atoms()
            .for_each(|(d, k)| totals[k] += self.alpha[d]);
        let psi = totals.iter().map(|&a| special(digamma, a, "alpha"));
        let psi = psi.collect::<Result<Vec<_>, _>>()?;
        let sums = |n| vec![CompensatedSum::default(); n];
        let (mut alpha, mut count) = (sums(self.alpha.len()), vec![0.0; self.alpha.len()]);
        for (d, k) in sharing.atoms() {
            alpha[d] += psi[k];
            count[d] += 1.0;
        }
        for (d, x) in values(alpha)
            .into_iter()
            .enumerate()
            .filter(|&(d, _)| count[d] > 0.0)
        {
            // [SKELLAM eq. 49]
            self.alpha[d] = shape_of((s.ln_atoms[d] + x) / count[d])?;
        }
        let (mut shape, mut count) = (sums(self.shape.len()), vec![0.0; self.shape.len()]);
        let ln_rate: Vec<f64> = self.rate.iter().map(|b| b.ln()).collect();
        for (&d, &e) in sharing.shape.iter().zip(&sharing.rate) {
            shape[d] += ln_rate[e];
            count[d] += 1.0;
        }
        for (d, x) in values(shape)
            .into_iter()
            .enumerate()
            .filter(|&(d, _)| count[d] > 0.0)
        {
            // [SKELLAM eq. 45]
            self.shape[d] = shape_of((s.ln_activations[d] + x) / count[d])?;
        }
        let mut rate = sums(self.rate.len());
        for (&d, &e) in sharing.shape.iter().zip(&sharing.rate) {
            rate[e] += self.shape[d];
        }
        for (e, x) in values(rate)
            .into_iter()
            .enumerate()
            .filter(|&(_, x)| x > 0.0)
        {
            // [SKELLAM eq. 46]
            self.rate[e] = (x / s.activations[e]).clamp(f64::MIN_POSITIVE, LARGEST);
        }
        Ok(())
    }
}

/// `ψ⁻¹`, within the shapes that are used.
fn shape_of(y: f64) -> Result<f64, SnmfError> {
    if y == f64::INFINITY {
        return Ok(LARGEST);
    }
    Ok(special(inverse_digamma, y, "statistics")?.clamp(f64::MIN_POSITIVE, LARGEST))
}

impl Statistics {
    /// Those of one posterior; of `sizes` only the number of the values counts.
    ///
    /// ```text
    /// E[ln H] = ψ(ŝ) - ln b̂,      E[H] = ŝ / b̂,      E[ln T] = ψ(α̂) - ψ(Σ α̂)
    /// ```
    ///
    /// `[SKELLAM eq. 47]`, `[SKELLAM eq. 48]`, `[SKELLAM eq. 50]`
    ///
    /// # Errors
    ///
    /// [`SnmfError`] for maps of another shape, blocks that do not belong together, or shapes that no posterior has.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Hyperparameters, Posterior, Sharing, Statistics};
    /// let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let q = Posterior { plus: dmatrix![1.0], minus: dmatrix![1.0], shape: dmatrix![3.0], rate: dmatrix![2.0] };
    /// let s = Statistics::of(&q, &Sharing::all(1, 1, 1), &hyper)?;
    /// assert_eq!(s.activations, [1.5]);
    /// assert!((s.ln_atoms[0] + 2.0).abs() < 1e-12);                       // twice ψ(1) - ψ(2) = -1
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of<T: Real>(
        posterior: &Posterior<T>,
        sharing: &Sharing,
        sizes: &Hyperparameters,
    ) -> Result<Self, SnmfError> {
        posterior.check_pairs()?;
        let psi = |x: f64| special(digamma, x, "statistics");
        let totals = posterior.totals();
        let totals = totals
            .iter()
            .map(|&a| psi(a))
            .collect::<Result<Vec<_>, _>>()?;
        let side = |m: &DMatrix<T>| -> Result<DMatrix<f64>, SnmfError> {
            let mut out = m.map(|x| x.to_f64());
            for (k, mut column) in out.column_iter_mut().enumerate() {
                for x in column.iter_mut() {
                    *x = psi(*x)? - totals[k];
                }
            }
            Ok(out)
        };
        let mut ln_h = posterior.shape.map(|x| x.to_f64());
        for (x, b) in ln_h.iter_mut().zip(&posterior.rate) {
            *x = psi(*x)? - b.to_f64().ln();
        }
        let h = posterior
            .shape
            .zip_map(&posterior.rate, |s, b| s.to_f64() / b.to_f64());
        Self::sum(
            (&side(&posterior.plus)?, &side(&posterior.minus)?),
            (&ln_h, &h),
            sharing,
            sizes,
        )
    }

    /// Those of known factors: what a posterior without any doubt would give.
    ///
    /// # Errors
    ///
    /// [`SnmfError`] for maps of another shape; [`SnmfError::NotFinite`] for factors with zeros.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use skellam_snmf::{Hyperparameters, Sharing, SnmfError, SnmfState, Statistics};
    /// let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let sharing = Sharing::all(1, 1, 1);
    /// let known = |plus, minus| SnmfState { plus: dmatrix![plus], minus: dmatrix![minus], activations: dmatrix![1.0] };
    /// let s = Statistics::of_known(&known(0.5, 0.5), &sharing, &hyper)?;
    /// assert!((s.ln_atoms[0] + 4f64.ln()).abs() < 1e-12 && s.ln_activations[0] == 0.0);
    /// let zero = Statistics::of_known(&known(1.0, 0.0), &sharing, &hyper);
    /// assert_eq!(zero, Err(SnmfError::NotFinite { block: "statistics" }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_known<T: Real>(
        factors: &SnmfState<T>,
        sharing: &Sharing,
        sizes: &Hyperparameters,
    ) -> Result<Self, SnmfError> {
        if factors.minus.shape() != factors.plus.shape() {
            return Err(SnmfError::Shape {
                block: "minus",
                got: factors.minus.shape(),
                expected: factors.plus.shape(),
            });
        }
        let ln = |m: &DMatrix<T>| m.map(|x| x.to_f64().ln());
        let h = factors.activations.map(|x| x.to_f64());
        let (plus, minus) = (ln(&factors.plus), ln(&factors.minus));
        let s = Self::sum(
            (&plus, &minus),
            (&ln(&factors.activations), &h),
            sharing,
            sizes,
        )?;
        s.check(sizes)?;
        Ok(s)
    }

    /// Those of the prior itself: where online learning starts.
    ///
    /// # Errors
    ///
    /// As [`Hyperparameters::check`].
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Hyperparameters, Sharing, Statistics};
    /// let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let s = Statistics::of_prior(&Sharing::all(1, 1, 3), &hyper)?;
    /// assert_eq!(s.activations, [12.0]);                                  // three times a / b
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_prior(sharing: &Sharing, hyper: &Hyperparameters) -> Result<Self, SnmfError> {
        hyper.check(sharing)?;
        let block = |map: &DMatrix<usize>, values: &[f64]| map.map(|d| values[d]);
        // [SKELLAM 8] with b̂ = b, not b + 1
        let posterior = Posterior {
            plus: block(&sharing.plus, &hyper.alpha),
            minus: block(&sharing.minus, &hyper.alpha),
            shape: block(&sharing.shape, &hyper.shape),
            rate: block(&sharing.rate, &hyper.rate),
        };
        Self::of(&posterior, sharing, hyper)
    }

    /// `ln T±`, then `ln H` and `H`, over the groups.
    fn sum(
        (plus, minus): (&DMatrix<f64>, &DMatrix<f64>),
        (ln_h, h): (&DMatrix<f64>, &DMatrix<f64>),
        sharing: &Sharing,
        sizes: &Hyperparameters,
    ) -> Result<Self, SnmfError> {
        sharing.check_shape((plus.nrows(), plus.ncols(), h.ncols()))?;
        sizes.check(sharing)?;
        let zeros = |n| vec![CompensatedSum::default(); n];
        let mut c = zeros(sizes.alpha.len());
        // [SKELLAM eq. 50]
        add(&mut c, sharing.plus.iter().copied(), plus.iter().copied());
        add(&mut c, sharing.minus.iter().copied(), minus.iter().copied());
        let (mut e, mut m) = (zeros(sizes.shape.len()), zeros(sizes.rate.len()));
        // [SKELLAM eq. 47]
        add(&mut e, sharing.shape.iter().copied(), ln_h.iter().copied());
        // [SKELLAM eq. 48]
        add(&mut m, sharing.rate.iter().copied(), h.iter().copied());
        Ok(Self {
            ln_activations: values(e),
            activations: values(m),
            ln_atoms: values(c),
        })
    }

    /// `self <- (1 - r) self + r new`; with `r = 1/t` for the `t`-th data set, the mean of all. `[SKELLAM eq. 51]`
    ///
    /// ```
    /// use skellam_snmf::{Hyperparameters, Sharing, Statistics};
    /// let of = |a| {
    ///     let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![a], rate: vec![0.5] };
    ///     Statistics::of_prior(&Sharing::all(1, 1, 1), &hyper)
    /// };
    /// let mut mean = of(1.0)?;                                            // a / b = 2
    /// mean.blend(&of(3.0)?, 0.25);                                        // a / b = 6
    /// assert_eq!(mean.activations, [3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn blend(&mut self, new: &Self, r: f64) {
        for (old, new) in [
            (&mut self.ln_activations, &new.ln_activations),
            (&mut self.activations, &new.activations),
            (&mut self.ln_atoms, &new.ln_atoms),
        ] {
            // [SKELLAM eq. 51]
            (old.iter_mut().zip(new)).for_each(|(old, &new)| *old = (1.0 - r) * *old + r * new);
        }
    }

    /// Refuses statistics of other sizes and with values that are no numbers.
    fn check(&self, sizes: &Hyperparameters) -> Result<(), SnmfError> {
        for (got, expected) in [
            (self.ln_activations.len(), sizes.shape.len()),
            (self.activations.len(), sizes.rate.len()),
            (self.ln_atoms.len(), sizes.alpha.len()),
        ] {
            if got != expected {
                return Err(SnmfError::Shape {
                    block: "statistics",
                    got: (got, 1),
                    expected: (expected, 1),
                });
            }
        }
        let all = self
            .ln_activations
            .iter()
            .chain(&self.activations)
            .chain(&self.ln_atoms);
        if all.into_iter().any(|x| !x.is_finite()) {
            return Err(SnmfError::NotFinite {
                block: "statistics",
            });
        }
        Ok(())
    }
}
