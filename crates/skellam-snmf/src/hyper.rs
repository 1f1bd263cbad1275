//! Hyperparameters learnt from posteriors.
//!
//! ```math
//! \begin{aligned}
//! e_d &= \mathrm{mean}_t \sum_{(k,n) \in d} E[\ln H] \\
//! m_e &= \mathrm{mean}_t \sum_{(k,n) \in e} E[H] \\
//! c_d &= \mathrm{mean}_t \sum_{(f,k,s) \in d} E[\ln T]
//! \end{aligned}
//! ```
//!
//! The evidence bound, as a function of the hyperparameters, depends on the data only through these sums. No step below lowers it.
//!
//! `t` runs over data sets, `s` over the sides `+` and `-`. `d` is a group of entries that share a shape or an `α`, `e` one that shares a
//! rate.

use nalgebra::DMatrix;
use plca_dist::{digamma, inverse_digamma};
use plca_fit::FitError;
use plca_priors::Components;
use plca_tensor::{CompensatedSum, DataError, Real};

use crate::check::{check_shapes, check_values, not_finite};
use crate::faint::Logs;
use crate::posterior::special;
use crate::{Entries, Factors, Posterior, Prior};

/// Shapes and rates that would grow without end stop here: all that is shared has become constant.
const LARGEST: f64 = 1e12;

/// Which hyperparameter each entry of a block uses: an index, counted from 0, into one of the vectors of [`Hyperparameters`].
///
/// [`All`](Self::All) and [`PerComponent`](Self::PerComponent) store no map. Activations then may have any number of columns.
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::{Entries, Groups, Hyperparameters, Sharing};
/// let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0, 3.0], rate: vec![0.5] };
/// let prior = |shape| hyper.prior(&Sharing { shape, ..Sharing::all(4, 2) }).map(|p| p.shape);
/// assert_eq!(prior(Groups::PerComponent)?, Entries::PerComponent(vec![2.0, 3.0]));
/// assert_eq!(prior(Groups::Each(dmatrix![0, 0, 1; 1, 1, 1]))?, Entries::Each(dmatrix![2.0, 2.0, 3.0; 3.0, 3.0, 3.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Groups {
    /// Every entry uses hyperparameter 0.
    All,
    /// The entries of component `k` use hyperparameter `k`.
    PerComponent,
    /// A matrix of indices, of the same shape as the block.
    Each(
        #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::checked::matrix"))]
        DMatrix<usize>,
    ),
    /// The block has no entries: the negative side and the activations of a factor that has neither, see [`Sharing::factor`].
    None,
}

impl Groups {
    /// That of the entry at this position in column-major order.
    #[inline]
    fn get(&self, at: usize, axis: Components) -> usize {
        match self {
            Self::All | Self::None => 0,
            Self::PerComponent => axis.component(at),
            Self::Each(map) => map[at],
        }
    }

    /// Number of groups for `k` components.
    fn len(&self, k: usize) -> usize {
        match self {
            Self::All => 1,
            Self::None => 0,
            Self::PerComponent => k,
            Self::Each(map) => map.iter().max().map_or(0, |d| d.saturating_add(1)),
        }
    }

    /// The values of a block; that of a block without entries is `none`.
    fn prior(&self, values: &[f64], k: usize, none: Entries) -> Entries {
        match self {
            Self::None => none,
            Self::All => Entries::All(values[0]),
            Self::PerComponent => Entries::PerComponent(values[..k].to_vec()),
            Self::Each(map) => Entries::Each(map.map(|d| values[d])),
        }
    }

    /// Columns of the map, if there is one.
    fn columns(&self) -> Option<usize> {
        match self {
            Self::Each(map) => Some(map.ncols()),
            Self::None => Some(0),
            Self::All | Self::PerComponent => None,
        }
    }

    /// How many of `rows` rows the block has.
    fn rows(&self, rows: usize) -> usize {
        match self {
            Self::None => 0,
            _ => rows,
        }
    }

    fn check_shape(&self, block: &str, expected: (usize, usize)) -> Result<(), FitError> {
        match self {
            Self::Each(map) => check_shapes([(block, map.shape(), expected)]),
            Self::None if expected.0 > 0 && expected.1 > 0 => {
                check_shapes([(block, (0, 0), expected)])
            }
            Self::All | Self::PerComponent | Self::None => Ok(()),
        }
    }
}

/// Which hyperparameter every entry of the factors uses; several entries may share one.
///
/// ```math
/// T[\cdot,k,\pm] \sim \mathrm{Dirichlet}(\alpha_{\varphi(f,k,\pm)}),
/// \qquad H[k,n] \sim \mathrm{Gamma}(a_{d(k,n)}, \text{rate } b_{e(k,n)})
/// ```
///
/// `φ` is the map of `plus` and `minus`, `d` that of `shape` and `e` that of `rate`. `[SKELLAM eq. 15]`, `[SKELLAM eq. 16]`
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::{Entries, Groups, Hyperparameters, Sharing};
/// let rows = Groups::Each(dmatrix![0; 1]);                            // an α for each row, both sides alike
/// let sharing = Sharing { plus: rows.clone(), minus: rows, ..Sharing::all(2, 1) };
/// let hyper = Hyperparameters { alpha: vec![2.0, 0.5], shape: vec![1.0], rate: vec![0.1] };
/// assert_eq!(hyper.prior(&sharing)?.minus, Entries::Each(dmatrix![2.0; 0.5]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sharing {
    /// The number of rows of the atoms, `F`.
    pub rows: usize,
    /// The number of components, `K`.
    pub components: usize,
    /// Which `α` each entry of `T⁺` uses, `F x K`.
    pub plus: Groups,
    /// Which `α` each entry of `T⁻` uses, `F x K`. It may be the same `α` as on the other side.
    pub minus: Groups,
    /// Which shape `a` each entry of `H` uses, `K x N`.
    pub shape: Groups,
    /// Which rate `b` each entry of `H` uses, `K x N`.
    pub rate: Groups,
}

impl Sharing {
    /// The sharing with an `α` for every entry of the atoms, and a shape and a rate for every component.
    ///
    /// For `f` rows, `k` components and any number of columns. The `α` are in row-major order of `F x K x 2`, `T⁺` before `T⁻`.
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Groups, Sharing};
    /// let sharing = Sharing::by_component(2, 2);
    /// assert_eq!(sharing.plus, Groups::Each(dmatrix![0, 2; 4, 6]));
    /// assert_eq!((sharing.minus, sharing.rate), (Groups::Each(dmatrix![1, 3; 5, 7]), Groups::PerComponent));
    /// ```
    pub fn by_component(f: usize, k: usize) -> Self {
        let alpha = |s| Groups::Each(DMatrix::from_fn(f, k, |f, z| 2 * (f * k + z) + s));
        Self {
            plus: alpha(0),
            minus: alpha(1),
            shape: Groups::PerComponent,
            rate: Groups::PerComponent,
            ..Self::all(f, k)
        }
    }

    /// The sharing with one `α`, one shape and one rate for all. `f` rows, `k` components, any number of columns.
    ///
    /// ```
    /// use skellam_snmf::{Groups, Sharing};
    /// let sharing = Sharing::all(2, 1);
    /// assert_eq!((sharing.rows, sharing.components), (2, 1));
    /// assert_eq!((sharing.plus, sharing.rate), (Groups::All, Groups::All));
    /// ```
    pub fn all(f: usize, k: usize) -> Self {
        Self {
            rows: f,
            components: k,
            plus: Groups::All,
            minus: Groups::All,
            shape: Groups::All,
            rate: Groups::All,
        }
    }

    /// The sharing of a factor of one side, without activations: one `α` for all entries of its `rows x k` shapes.
    ///
    /// The factors of [`SignedCpVb`](crate::SignedCpVb) beside its atoms are of this kind. There are no shapes and no rates.
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, DMatrix, dmatrix};
    /// use skellam_snmf::{Entries, Hyperparameters, Learner, Posterior, Rate, Sharing};
    /// let start = Hyperparameters { alpha: vec![1.0], shape: vec![], rate: vec![] };
    /// let mut learner = Learner::new(Sharing::factor(2, 1), start, Rate::Average)?;
    /// let none = DMatrix::zeros(1, 0);
    /// let factor = Posterior { plus: dmatrix![9.0; 7.0], minus: DMatrix::zeros(0, 1), shape: none.clone(), rate: none };
    /// learner.learn(&factor)?;
    /// let Entries::All(shape) = learner.prior()?.plus else { unreachable!() };
    /// assert!(shape > 3.0);                                               // the entries are nearly equal
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn factor(rows: usize, k: usize) -> Self {
        Self {
            minus: Groups::None,
            shape: Groups::None,
            rate: Groups::None,
            ..Self::all(rows, k)
        }
    }

    /// How many components are told apart by these groups, and how many there are of each: where all use the same, one stands for all,
    /// so that work and memory are proportional to the groups and not to `components`.
    fn distinct(&self, groups: [&Groups; 2]) -> (usize, f64) {
        let k = self.components;
        match groups {
            [Groups::All | Groups::None, Groups::All | Groups::None] => (k.min(1), k as f64),
            _ => (k, 1.0),
        }
    }

    /// [`distinct`](Self::distinct) atoms.
    fn distinct_atoms(&self) -> (usize, f64) {
        self.distinct([&self.plus, &self.minus])
    }

    /// Groups of each distinct atom: the number of the group, that of the atom, and how many of its entries are in it.
    fn atoms(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        [&self.plus, &self.minus].into_iter().flat_map(|groups| {
            let (n, each) = match groups {
                Groups::Each(_) => (self.rows, 1.0),
                Groups::None => (0, 0.0),
                Groups::All | Groups::PerComponent => (1, self.rows as f64),
            };
            let axis = Components::Columns(n);
            let atoms = self.distinct_atoms().0;
            (0..atoms * n).map(move |at| (groups.get(at, axis), axis.component(at), each))
        })
    }

    /// Groups of activations that have both their shape and their rate in common, and how many of them there are in `columns`
    /// columns.
    fn activations(&self, columns: f64) -> impl Iterator<Item = (usize, usize, f64)> {
        let axis = Components::Rows(self.components);
        let (n, each) = match self.columns() {
            Some(n) => (n, 1.0),
            None => (1, columns),
        };
        let (components, alike) = self.distinct([&self.shape, &self.rate]);
        let each = alike * each;
        (0..components * n).map(move |at| (self.shape.get(at, axis), self.rate.get(at, axis), each))
    }

    /// How many columns a data set must have, if not any number.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.shape.columns().or(self.rate.columns())
    }

    /// Number of `α`, of shapes and of rates.
    fn sizes(&self) -> [usize; 3] {
        let k = self.components;
        let alpha = self.plus.len(k).max(self.minus.len(k));
        [alpha, self.shape.len(k), self.rate.len(k)]
    }

    /// Refuses maps of another shape than these sizes, and sizes of 0: beside one of them the other may be any number.
    fn check_shape(&self, n: usize) -> Result<(), FitError> {
        let (f, k) = (self.rows, self.components);
        if f == 0 || k == 0 {
            let expected = (f.max(1), k.max(1));
            return check_shapes([("sharing", (f, k), expected)]);
        }
        let side = |groups: &Groups| (groups.rows(f), k);
        self.plus.check_shape("map of plus", side(&self.plus))?;
        self.minus.check_shape("map of minus", side(&self.minus))?;
        self.shape.check_shape("map of shape", (k, n))?;
        self.rate.check_shape("map of rate", (k, n))
    }
}

/// The values of the hyperparameters that a [`Sharing`] refers to.
///
/// ```math
/// T[\cdot,k,\pm] \sim \mathrm{Dirichlet}(\alpha), \qquad H[k,n] \sim \mathrm{Gamma}(a, \text{rate } b)
/// ```
///
/// ```
/// use skellam_snmf::{Entries, Groups, Hyperparameters, Sharing};
/// let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0, 3.0], rate: vec![0.5] };
/// let sharing = Sharing { shape: Groups::PerComponent, ..Sharing::all(4, 2) };
/// assert_eq!(hyper.prior(&sharing)?.shape, Entries::PerComponent(vec![2.0, 3.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hyperparameters {
    /// The Dirichlet shapes `α`, without unit.
    pub alpha: Vec<f64>,
    /// The gamma shapes `a`, without unit.
    pub shape: Vec<f64>,
    /// The gamma rates `b`, in 1 over the units of the data.
    pub rate: Vec<f64>,
}

/// The sums that hyperparameters are learnt from: for each group of entries that share a hyperparameter, of their expected values or
/// logarithms.
///
/// ```math
/// e_d = \mathrm{mean}_t \sum_{(k,n) \in d} E[\ln H], \qquad m_e = \mathrm{mean}_t \sum_{(k,n) \in e} E[H],
/// \qquad c_d = \mathrm{mean}_t \sum_{(f,k,s) \in d} E[\ln T]
/// ```
///
/// Means are over the data sets `t`, and expectations under the posterior of each. `s` runs over the sides `+` and `-`. `d` is a group of
/// entries that share a shape (in `e_d`) or an `α` (in `c_d`), `e` one that shares a rate. Their places in the vectors below are the
/// indices in [`Sharing`].
///
/// One data set makes [`of`](Self::of) or [`of_known`](Self::of_known); [`blend`](Self::blend) takes the mean of several;
/// [`Hyperparameters::improve`] learns from it. Each costs `O(F K + K N)` at most.
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::{Factors, Sharing, Statistics};
/// let factors = Factors { plus: dmatrix![0.5], minus: dmatrix![0.5], activations: dmatrix![2.0, 4.0] };
/// let s = Statistics::of_known(&factors, &Sharing::all(1, 1))?;
/// assert_eq!(s.activations, [6.0]);                                   // a sum over the group, not a mean
/// assert!((s.ln_activations[0] - 8f64.ln()).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Statistics {
    /// The sums `e = Σ E[ln H]`, one for every shape. `[SKELLAM eq. 47]`
    pub ln_activations: Vec<f64>,
    /// The sums `m = Σ E[H]`, one for every rate, in the units of the data. `[SKELLAM eq. 48]`
    pub activations: Vec<f64>,
    /// The sums `c = Σ E[ln T]`, one for every `α`. `[SKELLAM eq. 50]`
    pub ln_atoms: Vec<f64>,
    /// The number of columns `N` of a data set, averaged over the data sets.
    pub columns: f64,
}

/// `out[group] += x`.
fn add(out: &mut [CompensatedSum], groups: &Groups, axis: Components, x: &DMatrix<f64>) {
    (x.iter().enumerate()).for_each(|(at, &x)| out[groups.get(at, axis)] += x);
}

/// One sum for each group.
fn sums(groups: usize) -> Result<Vec<CompensatedSum>, FitError> {
    let mut sums = Vec::new();
    let room = sums.try_reserve_exact(groups);
    let shape = vec![groups];
    room.map_err(|_| DataError::TooLarge { shape })?;
    sums.resize(groups, CompensatedSum::default());
    Ok(sums)
}

/// Values of accumulated sums.
fn values(sums: Vec<CompensatedSum>) -> Vec<f64> {
    sums.into_iter().map(CompensatedSum::value).collect()
}

impl Hyperparameters {
    /// Checks that every value is positive and finite, and that there is one for every index in `sharing`.
    ///
    /// # Errors
    ///
    /// [`FitError::Range`] for the first value that is not positive and finite, [`FitError::Shape`] for a map whose shape is not that of
    /// its block, [`FitError::Conflict`] if there are too few values.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Hyperparameters, Sharing};
    /// let sharing = Sharing::by_component(1, 2);
    /// let hyper = Hyperparameters { alpha: vec![1.0; 4], shape: vec![1.0], rate: vec![0.1; 2] };
    /// let error = hyper.check(&sharing).unwrap_err();                     // one shape for two components
    /// assert_eq!(error.to_string(), "1 of `shape` given, the sharing refers to 2");
    /// ```
    pub fn check(&self, sharing: &Sharing) -> Result<(), FitError> {
        let named = [
            ("alpha", &self.alpha),
            ("shape", &self.shape),
            ("rate", &self.rate),
        ];
        for (block, values) in named {
            let bad = values.iter().position(|&x| !(x.is_finite() && x > 0.0));
            if let Some(row) = bad {
                return Err(FitError::Range {
                    block: block.into(),
                    row,
                    column: 0,
                    value: values[row],
                    expected: "a finite number > 0",
                });
            }
        }
        sharing.check_shape(sharing.columns().unwrap_or(0))?;
        for ((block, values), needed) in named.into_iter().zip(sharing.sizes()) {
            let got = values.len();
            if got < needed {
                return Err(FitError::Conflict {
                    what: format!("{got} of `{block}` given, the sharing refers to {needed}"),
                });
            }
        }
        Ok(())
    }

    /// The prior that gives every entry of the factors its hyperparameter.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Entries, Hyperparameters, Sharing};
    /// let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let prior = hyper.prior(&Sharing::all(1, 1))?;
    /// assert_eq!((prior.shape, prior.rate), (Entries::All(2.0), Entries::All(0.5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prior(&self, sharing: &Sharing) -> Result<Prior, FitError> {
        self.check(sharing)?;
        let block = |groups: &Groups, values, none| groups.prior(values, sharing.components, none);
        let none = Prior::flat();
        Ok(Prior {
            plus: block(&sharing.plus, &self.alpha, none.plus),
            minus: block(&sharing.minus, &self.alpha, none.minus),
            shape: block(&sharing.shape, &self.shape, none.shape),
            rate: block(&sharing.rate, &self.rate, none.rate),
        })
    }

    /// Makes one iteration: new shapes, then new rates. The evidence bound does not fall, with the posteriors of the statistics held fixed.
    /// Repeat it to converge.
    ///
    /// Groups without entries keep their value. No value exceeds 1e12, and no shape falls below 1e-12.
    ///
    /// ```math
    /// \begin{aligned}
    /// \alpha_d &\gets \psi^{-1} \left( \frac{c_d + \sum_{(f,k,s) \in d} \psi(\sum \alpha)}{|d|} \right) \\
    /// a_d &\gets \psi^{-1} \left( \frac{e_d + \sum_{(k,n) \in d} \ln b}{|d|} \right) \\
    /// b_e &\gets \frac{\sum_{(k,n) \in e} a}{m_e}
    /// \end{aligned}
    /// ```
    ///
    /// `[SKELLAM eq. 49]`, `[SKELLAM eq. 45]`, `[SKELLAM eq. 46]`
    ///
    /// `c_d`, `e_d` and `m_e` are the [`Statistics`], `|d|` the number of entries in a group, averaged over the data sets. `Σ α` is the sum
    /// over the atom that an entry belongs to. `a` on the last line is the new shape.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check); [`FitError::Shape`] if the statistics have other sizes than `sharing` needs, [`FitError::NotFinite`] if
    /// one of them is NaN or infinite.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Factors, Hyperparameters, Sharing, Statistics};
    /// let mut hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let factors = Factors { plus: dmatrix![0.5], minus: dmatrix![0.5], activations: dmatrix![2.0, 4.0] };
    /// let sharing = Sharing::all(1, 1);
    /// hyper.improve(&sharing, &Statistics::of_known(&factors, &sharing)?)?;
    /// assert!((hyper.shape[0] / hyper.rate[0] - 3.0).abs() < 1e-12);      // a / b is the mean activation
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn improve(&mut self, sharing: &Sharing, s: &Statistics) -> Result<(), FitError> {
        self.check(sharing)?;
        s.check(sharing)?;
        let (psi, alike) = (self.psi_totals(sharing)?, sharing.distinct_atoms().1);
        let terms = sharing.atoms();
        let terms = terms.map(|(d, k, entries)| (d, alike * entries, psi[k]));
        // [SKELLAM eq. 49]
        renew(&mut self.alpha, &s.ln_atoms, terms)?;
        let ln_rate: Vec<f64> = self.rate.iter().map(|b| b.ln()).collect();
        let terms = sharing.activations(s.columns);
        let terms = terms.map(|(d, e, entries)| (d, entries, ln_rate[e]));
        // [SKELLAM eq. 45]
        renew(&mut self.shape, &s.ln_activations, terms)?;
        let mut rate = sums(self.rate.len())?;
        for (d, e, entries) in sharing.activations(s.columns) {
            rate[e] += entries * self.shape[d];
        }
        let rates = values(rate).into_iter().enumerate();
        for (e, x) in rates.filter(|&(_, x)| x > 0.0) {
            // [SKELLAM eq. 46]
            self.rate[e] = (x / s.activations[e]).clamp(f64::MIN_POSITIVE, LARGEST);
        }
        Ok(())
    }

    /// `ψ(Σ α)` of each distinct atom.
    fn psi_totals(&self, sharing: &Sharing) -> Result<Vec<f64>, FitError> {
        let mut totals = vec![0.0; sharing.distinct_atoms().0];
        (sharing.atoms()).for_each(|(d, k, entries)| totals[k] += entries * self.alpha[d]);
        let psi = totals.iter().map(|&a| special(digamma, a, "alpha"));
        psi.collect()
    }
}

/// Puts shapes at `ψ⁻¹` of the mean of what the statistics and the other hyperparameters say, of which there is a term for some entries of
/// a group: its number, how many they are, and what is said of each. Groups without entries keep their shape.
fn renew(
    shapes: &mut [f64],
    statistics: &[f64],
    terms: impl Iterator<Item = (usize, f64, f64)>,
) -> Result<(), FitError> {
    let (mut sum, mut count) = (sums(shapes.len())?, vec![0.0; shapes.len()]);
    for (d, entries, each) in terms {
        sum[d] += entries * each;
        count[d] += entries;
    }
    let sums = values(sum).into_iter().enumerate();
    for (d, x) in sums.filter(|&(d, _)| count[d] > 0.0) {
        shapes[d] = shape_of((statistics[d] + x) / count[d])?;
    }
    Ok(())
}

/// `ψ⁻¹`, within the shapes that are used.
fn shape_of(y: f64) -> Result<f64, FitError> {
    if y == f64::INFINITY {
        return Ok(LARGEST);
    }
    Ok(special(inverse_digamma, y, "statistics")?.clamp(1.0 / LARGEST, LARGEST))
}

impl Statistics {
    /// The statistics of one posterior.
    ///
    /// ```math
    /// \begin{aligned}
    /// E[\ln H] &= \psi(\hat s) - \ln \hat b \\
    /// E[H] &= \hat s / \hat b \\
    /// E[\ln T] &= \psi(\hat\alpha) - \psi \left( \sum \hat\alpha \right)
    /// \end{aligned}
    /// ```
    ///
    /// `[SKELLAM eq. 47]`, `[SKELLAM eq. 48]`, `[SKELLAM eq. 50]`
    ///
    /// # Errors
    ///
    /// [`FitError`] for a posterior whose sizes are not those of `sharing`, for blocks whose sizes disagree, and for shapes or rates that
    /// are not positive and finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Posterior, Sharing, Statistics};
    /// let q = Posterior { plus: dmatrix![1.0], minus: dmatrix![1.0], shape: dmatrix![3.0], rate: dmatrix![2.0] };
    /// let s = Statistics::of(&q, &Sharing::all(1, 1))?;
    /// assert_eq!(s.activations, [1.5]);
    /// assert!((s.ln_atoms[0] + 2.0).abs() < 1e-12);                       // twice ψ(1) - ψ(2) = -1
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of<T: Real>(posterior: &Posterior<T>, sharing: &Sharing) -> Result<Self, FitError> {
        posterior.check_pairs()?;
        let h = posterior
            .shape
            .zip_map(&posterior.rate, |s, b| s.to_f64() / b.to_f64());
        Self::sum(&posterior.ln_geometric()?, &h, sharing)
    }

    /// The statistics of known factors: expectations are the values themselves.
    ///
    /// # Errors
    ///
    /// [`FitError::Shape`] for factors whose sizes are not those of `sharing`; [`FitError::Range`] for the first entry that is not positive
    /// and finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Factors, Sharing, Statistics};
    /// let sharing = Sharing::all(1, 1);
    /// let known = |plus, minus| Factors { plus: dmatrix![plus], minus: dmatrix![minus], activations: dmatrix![1.0] };
    /// let s = Statistics::of_known(&known(0.5, 0.5), &sharing)?;
    /// assert!((s.ln_atoms[0] + 4f64.ln()).abs() < 1e-12 && s.ln_activations[0] == 0.0);
    /// let zero = Statistics::of_known(&known(1.0, 0.0), &sharing).unwrap_err();
    /// assert_eq!(zero.to_string(), "`minus` has 0 in row 0, column 0, expected a finite number > 0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_known<T: Real>(factors: &Factors<T>, sharing: &Sharing) -> Result<Self, FitError> {
        let (f, k) = (sharing.rows, sharing.components);
        let n = factors.activations.ncols();
        for (block, m, shape) in [
            ("plus", &factors.plus, (sharing.plus.rows(f), k)),
            ("minus", &factors.minus, (sharing.minus.rows(f), k)),
            ("activations", &factors.activations, (k, n)),
        ] {
            check_shapes([(block, m.shape(), shape)])?;
            let ok = |x: T| x.is_finite() && x > T::zero();
            check_values(block, m, "a finite number > 0", ok)?;
        }
        let h = factors.activations.map(|x| x.to_f64());
        Self::sum(&Logs::of(factors), &h, sharing)
    }

    /// The statistics of the prior itself, for a data set of `columns` columns: where online learning starts.
    ///
    /// # Errors
    ///
    /// As [`Hyperparameters::check`]; [`FitError::Shape`] if a map of `sharing` has another number of columns.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Hyperparameters, Sharing, Statistics};
    /// let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![2.0], rate: vec![0.5] };
    /// let s = Statistics::of_prior(&Sharing::all(1, 1), &hyper, 3)?;
    /// assert_eq!(s.activations, [12.0]);                                  // three times a / b
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_prior(
        sharing: &Sharing,
        hyper: &Hyperparameters,
        columns: usize,
    ) -> Result<Self, FitError> {
        hyper.check(sharing)?;
        sharing.check_shape(columns)?;
        let columns = columns as f64;
        let [c, e, m] = sharing.sizes().map(sums);
        let (mut c, mut e, mut m) = (c?, e?, m?);
        let psi = |x: f64| special(digamma, x, "statistics");
        let (totals, alike) = (hyper.psi_totals(sharing)?, sharing.distinct_atoms().1);
        let own = (hyper.alpha.iter().map(|&a| psi(a))).collect::<Result<Vec<_>, _>>()?;
        for (d, k, entries) in sharing.atoms() {
            c[d] += alike * entries * (own[d] - totals[k]);
        }
        let own = (hyper.shape.iter().map(|&a| psi(a))).collect::<Result<Vec<_>, _>>()?;
        for (d, r, entries) in sharing.activations(columns) {
            // [SKELLAM 8] with b̂ = b, not b + 1
            e[d] += entries * (own[d] - hyper.rate[r].ln());
            m[r] += entries * (hyper.shape[d] / hyper.rate[r]);
        }
        Ok(Self {
            ln_activations: values(e),
            activations: values(m),
            ln_atoms: values(c),
            columns,
        })
    }

    /// `ln T±` and `ln H`, and `H`, over the groups.
    fn sum(ln: &Logs, h: &DMatrix<f64>, sharing: &Sharing) -> Result<Self, FitError> {
        let [plus, minus] = ln.atoms.each_ref().map(DMatrix::transpose);
        let (f, k, n) = (sharing.rows, sharing.components, h.ncols());
        check_shapes([
            ("plus", plus.shape(), (sharing.plus.rows(f), k)),
            ("minus", minus.shape(), (sharing.minus.rows(f), k)),
        ])?;
        sharing.check_shape(n)?;
        let [c, e, m] = sharing.sizes().map(sums);
        let (mut c, mut e, mut m) = (c?, e?, m?);
        // [SKELLAM eq. 50]
        add(&mut c, &sharing.plus, Components::Columns(f), &plus);
        add(&mut c, &sharing.minus, Components::Columns(f), &minus);
        // [SKELLAM eq. 47]
        add(&mut e, &sharing.shape, Components::Rows(k), &ln.activations);
        // [SKELLAM eq. 48]
        add(&mut m, &sharing.rate, Components::Rows(k), h);
        Ok(Self {
            ln_activations: values(e),
            activations: values(m),
            ln_atoms: values(c),
            columns: n as f64,
        })
    }

    /// Takes the weighted mean with the statistics of another data set. `[SKELLAM eq. 51]`
    ///
    /// ```math
    /// s \gets (1 - r) \, s + r \, s_\text{new}
    /// ```
    ///
    /// `r` is between 0 and 1: `1/t` for the `t`-th data set makes the plain mean of all, a constant `r` forgets old data sets. Both
    /// statistics are of the same [`Sharing`].
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] for another `r`, [`FitError::Shape`] for statistics of other sizes; nothing is changed then.
    ///
    /// ```
    /// use skellam_snmf::{Hyperparameters, Sharing, Statistics};
    /// let of = |a| {
    ///     let hyper = Hyperparameters { alpha: vec![1.0], shape: vec![a], rate: vec![0.5] };
    ///     Statistics::of_prior(&Sharing::all(1, 1), &hyper, 1)
    /// };
    /// let mut mean = of(1.0)?;                                            // a / b = 2
    /// mean.blend(&of(3.0)?, 0.25)?;                                       // a / b = 6
    /// assert_eq!(mean.activations, [3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn blend(&mut self, new: &Self, r: f64) -> Result<(), FitError> {
        let good = (0.0..=1.0).contains(&r);
        FitError::unless(good, "r", r, "a number in [0, 1]")?;
        new.check_sizes(self.sizes())?;
        for (old, new) in [
            (&mut self.ln_activations, &new.ln_activations),
            (&mut self.activations, &new.activations),
            (&mut self.ln_atoms, &new.ln_atoms),
        ] {
            // [SKELLAM eq. 51]
            (old.iter_mut().zip(new)).for_each(|(old, &new)| *old = (1.0 - r) * *old + r * new);
        }
        // Equal numbers stay what they are to the bit.
        self.columns += r * (new.columns - self.columns);
        Ok(())
    }

    /// How many shapes, rates and `α` there are sums for.
    fn sizes(&self) -> [usize; 3] {
        [&self.ln_activations, &self.activations, &self.ln_atoms].map(Vec::len)
    }

    fn check_sizes(&self, expected: [usize; 3]) -> Result<(), FitError> {
        let pairs = self.sizes().into_iter().zip(expected);
        check_shapes(pairs.map(|(got, expected)| ("statistics", (got, 1), (expected, 1))))
    }

    /// Refuses statistics of other sizes and with values that are not numbers.
    fn check(&self, sharing: &Sharing) -> Result<(), FitError> {
        let [alpha, shape, rate] = sharing.sizes();
        self.check_sizes([shape, rate, alpha])?;
        let all = self
            .ln_activations
            .iter()
            .chain(&self.activations)
            .chain(&self.ln_atoms)
            .chain([&self.columns]);
        match all.into_iter().find(|x| !x.is_finite()) {
            Some(&value) => Err(not_finite("statistics", value)),
            None => Ok(()),
        }
    }
}
