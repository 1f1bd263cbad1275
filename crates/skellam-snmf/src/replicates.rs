//! How many draws a datum averages.

use plca_fit::{
    FitError,
    setting::{Setting, SettingValue},
};
use plca_tensor::Real;
use plca_tensor::arrange::Signed;

/// The number `M` of replicated draws of which a datum is the mean.
///
/// ```math
/// M V \sim \mathrm{Sk}(M L^+, M L^-)
/// ```
///
/// `V` is the data, and `L⁺` and `L⁻` are the two rates of a cell. `[SKELLAM eq. 22]`
///
/// It decides what is maximised, and which data are taken:
///
/// ```math
/// \begin{aligned}
/// & M \text{ finite:}
///   & L_\mathrm{fit} &= \frac{1}{M} \sum \ln \mathrm{Sk}(M V; M L^+, M L^-)
///   & & M V \text{ whole} \\
/// & M = \infty \text{:}
///   & L_\mathrm{fit} &= - \sum D(V \mid L^+, L^-)
///   & & V \text{ real}
/// \end{aligned}
/// ```
///
/// `[SKELLAM eq. 27]`, `[SKELLAM eq. 30]`
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::{Model, State};
/// use skellam_snmf::tensor::{DenseTensor, Order};
/// use skellam_snmf::{Replicates, Snmf, SnmfState};
/// let v = DenseTensor::new(vec![1, 2], vec![4.0, -2.0], Order::RowMajor)?;
/// let state = SnmfState::new(&dmatrix![0.5], &dmatrix![0.5], dmatrix![6.0, 3.0])?;
/// let fit = |m| Snmf::new(1).replicates(m).bind(&v)?.objective(state.parameters());
/// let (many, limit) = (fit(Replicates::Finite(10_000))?, fit(Replicates::Limit)?);
/// assert!(many < limit && limit - many < 2e-3);                       // ln(2πMw) / 2M for each cell
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Replicates {
    /// `M = 1`: differences of counts.
    One,
    /// Finite `M`: means of `M` differences of counts.
    Finite(u32),
    /// `M` without end: real data, judged by the divergence `D(V | L⁺, L⁻)`. It tends to 0 as both rates grow, whatever is reconstructed: for data without noise.
    Limit,
    /// Real data with noise (default): the limit between rates to each of which the mean of `|V|` is added, and with activations of a column, or weights, that
    /// sum to at most [`BOUND`](Self::BOUND) times what the data sum to. So the reconstruction is near that of least squares. Both follow from the data and
    /// scale with them. Variational Bayes, whose priors are to bound the rates, uses [`Limit`](Self::Limit). Activations or weights with a prior have the noise but no bound.
    /// `[SKELLAM 13]`
    #[default]
    Auto,
}

/// Of all models of signed data.
pub(crate) const M: [&str; 4] = [
    "m",
    "M",
    "Model",
    "Draws averaged in each cell: auto, inf or a number, 1 for differences of counts [default: auto]\n\nEach cell is modelled as the mean of this many draws: 1 for differences of counts, or any larger number. auto is for real data with noise: the limit of many draws between rates that have noise added, with a bound on what the rates sum to; noise and bound are multiples of the mean absolute value of the data. inf is the limit without either, for data without noise: elsewhere its objective improves as the rates grow, whatever is reconstructed. Of variational Bayes, auto is inf: priors with the unit of the data bound the rates.",
];
pub(crate) const REAL_DATA: [&str; 4] = [
    "real_data",
    "",
    "Model",
    "Accepts data that are not whole numbers with --replicates 1 or M",
];

/// `auto`, `inf`, `1` or another whole number.
impl Setting for Replicates {
    fn of(value: &SettingValue) -> Result<Self, String> {
        let word = match value {
            SettingValue::Text(word) => word.clone(),
            SettingValue::Number(m) => m.to_string(),
            _ => String::new(),
        };
        match &*word {
            "auto" => Ok(Self::Auto),
            "inf" => Ok(Self::Limit),
            "1" => Ok(Self::One),
            _ => match word.parse::<u32>() {
                Ok(m) if m > 1 => Ok(Self::Finite(m)),
                _ => Err(format!(
                    "`{word}` is neither a whole number >= 1 nor inf or auto"
                )),
            },
        }
    }
}

impl Replicates {
    /// The noise rate of [`Auto`](Self::Auto), in means of `|V|` over the observed cells.
    pub const NOISE: f64 = 1.0;
    /// What activations sum to at most under [`Auto`](Self::Auto), in sums of `|V|`.
    pub const BOUND: f64 = 6.0;

    /// Whether the data are real, so that the number is infinite.
    pub fn is_real(self) -> bool {
        matches!(self, Self::Limit | Self::Auto)
    }

    /// Whether noise explains what no atom does.
    pub(crate) fn is_noisy(self) -> bool {
        self == Self::Auto
    }

    /// What rates are measured in for data of this sum of absolute values: counts have a unit of their own.
    pub(crate) fn rate_unit(self, size: f64) -> f64 {
        if self.is_real() && size > 0.0 {
            size
        } else {
            1.0
        }
    }

    /// The noise rate for data of this sum of absolute values and this number of observed cells; 0 unless [`Auto`](Self::Auto).
    pub(crate) fn noise(self, size: f64, observed: usize) -> f64 {
        match self {
            // [SKELLAM 13] r = g mean |V|
            Self::Auto if size > 0.0 => Self::NOISE * (size / observed as f64),
            _ => 0.0,
        }
    }

    /// The number `M`, infinite in the limit.
    ///
    /// ```
    /// use skellam_snmf::Replicates;
    /// assert_eq!((Replicates::One.number(), Replicates::Finite(3).number()), (1.0, 3.0));
    /// assert_eq!(1.0 / Replicates::Limit.number(), 0.0);
    /// ```
    pub fn number(self) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Finite(m) => f64::from(m),
            Self::Limit | Self::Auto => f64::INFINITY,
        }
    }

    /// Refuses data beyond the domain, and, for counts, unless `real` is allowed, those of which `M V` is not whole.
    pub(crate) fn check_data<T: Real>(self, data: &Signed<T>, real: bool) -> Result<(), FitError> {
        if self.is_real() {
            return check_sum(data);
        }
        /// Far below the ends of the exponent, so that no product of a rate and a multiplier leaves it.
        const LARGEST: f64 = 1e150;
        let largest = LARGEST.min(2f64.powi(T::MAX_EXPONENT / 2));
        let m = self.number();
        let (mut first, mut error) = ((usize::MAX, usize::MAX), None);
        data.for_each(&mut |row, column, value| {
            if (row, column) >= first {
                return;
            }
            let counts = m * value;
            // M V is rounded once where V was rounded before.
            let whole = (counts - counts.round()).abs() <= 4.0 * T::EPSILON.to_f64() * counts.abs();
            let expected = if value.abs() > largest {
                format!("at most {largest:e} in size")
            } else if !real && !whole {
                "a whole number, because the number of replicates is finite".into()
            } else {
                return;
            };
            first = (row, column);
            error = Some(FitError::Entry {
                index: vec![row, column],
                value,
                expected,
            });
        });
        error.map_or(Ok(()), Err)
    }
}

/// Refuses real data whose absolute values have no sum: activations are such sums.
fn check_sum<T: Real>(data: &Signed<T>) -> Result<(), FitError> {
    let most = 2.0 * 2f64.powi(T::MAX_EXPONENT - 1) * (1.0 - T::EPSILON.to_f64());
    let (mut sum, mut largest) = (0.0, (vec![0, 0], 0.0f64));
    data.for_each(&mut |row, column, value| {
        sum += value.abs();
        if value.abs() > largest.1.abs() {
            largest = (vec![row, column], value);
        }
    });
    let (index, value) = largest;
    match sum <= most {
        true => Ok(()),
        false => Err(FitError::Entry {
            index,
            value,
            expected: format!("values whose sizes sum to at most {most:.1e}: scale the data"),
        }),
    }
}
