//! Dirichlet priors on the atoms, gamma priors on the activations.

use nalgebra::DMatrix;
use plca_fit::{FitError, setting::BlockSettings};
use plca_priors::{Components, Entries, PriorSpec};

use crate::check::{check_shapes, check_values};

/// Refuses the first hyperparameter of a block for which `ok` does not hold.
fn check(
    name: &str,
    entries: &Entries,
    expected: &'static str,
    ok: impl Fn(f64) -> bool,
) -> Result<(), FitError> {
    let matrix = match entries {
        Entries::All(x) => &DMatrix::from_element(1, 1, *x),
        // Atoms are columns, activations rows.
        Entries::PerComponent(each) if matches!(name, "plus" | "minus") => {
            &DMatrix::from_row_slice(1, each.len(), each)
        }
        Entries::PerComponent(each) => &DMatrix::from_column_slice(each.len(), 1, each),
        Entries::Each(matrix) => matrix,
    };
    check_values(&format!("prior {name}"), matrix, expected, ok)
}

/// Refuses a block of another shape, of `k` components.
pub(crate) fn check_shape(
    name: &str,
    entries: &Entries,
    expected: (usize, usize),
    k: usize,
) -> Result<(), FitError> {
    let (got, expected) = match entries {
        Entries::All(_) => return Ok(()),
        Entries::PerComponent(each) => ((each.len(), 1), (k, 1)),
        Entries::Each(m) => (m.shape(), expected),
    };
    check_shapes([(&*format!("prior {name}"), got, expected)])
}

/// Priors of a Skellam factorization: Dirichlet on the atoms, gamma on the activations. `[SKELLAM eq. 15]`, `[SKELLAM eq. 16]`
///
/// ```math
/// T[\cdot,k,\pm] \sim \mathrm{Dirichlet}(\alpha), \qquad H[k,n] \sim \mathrm{Gamma}(\text{shape } a, \text{rate } b)
/// ```
///
/// `a / b` is the mean of an activation, in the units of the data; shapes have no unit.
///
/// ```
/// use skellam_snmf::{Entries, Prior};
/// let sparse = Prior { shape: Entries::All(0.5), rate: Entries::All(0.01), ..Prior::flat() };
/// assert!(sparse.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Prior {
    /// The shapes `α` of the positive side, `F x K`.
    pub plus: Entries,
    /// The shapes `α` of the negative side, `F x K`.
    pub minus: Entries,
    /// The shapes `a`, `K x N`.
    pub shape: Entries,
    /// The rates `b`, `K x N`, in 1 over the units of the data; 0 is improper and for EM alone.
    pub rate: Entries,
}

/// The parts of a [`Prior`], as the model of a tensor or of shifted atoms is told them: they get the layout of its blocks when it meets data. A part that is set otherwise
/// is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// Those of `T⁺` and `T⁻`.
    pub(crate) atoms: Option<[Entries; 2]>,
    /// Shapes and rates.
    pub(crate) activations: Option<[Entries; 2]>,
}

impl Parts {
    pub(crate) fn of(prior: Prior) -> Self {
        Self {
            atoms: Some([prior.plus, prior.minus]),
            activations: Some([prior.shape, prior.rate]),
        }
    }

    /// The shapes of a block of `2F x K`, which has an entry of `T⁺` (0) or `T⁻` (1) in this row.
    pub(crate) fn block(
        &self,
        (f, k): (usize, usize),
        row: impl Fn(usize, usize) -> usize,
    ) -> Result<Option<Entries>, FitError> {
        let Some(sides) = &self.atoms else {
            return Ok(None);
        };
        for (name, side) in ["plus", "minus"].into_iter().zip(sides) {
            check_shape(name, side, (f, k), k)?;
        }
        if sides[0] == sides[1] && !matches!(sides[0], Entries::Each(_)) {
            return Ok(Some(sides[0].clone()));
        }
        let mut both = DMatrix::zeros(2 * f, k);
        for (s, side) in sides.iter().enumerate() {
            for at in 0..f * k {
                both[(row(at % f, s), at / f)] = side.get(at, Components::Columns(f));
            }
        }
        Ok(Some(Entries::Each(both)))
    }
}

impl Default for Prior {
    fn default() -> Self {
        Self::flat()
    }
}

impl Prior {
    /// This prior with what is said of atoms and activations, by the names of their blocks with or without `_shape`; whether any of it is a law. Other priors than
    /// laws are left out.
    pub(crate) fn with(mut self, blocks: &BlockSettings) -> (Self, bool) {
        let mut any = false;
        for (block, prior) in blocks.priors() {
            match (block.trim_end_matches("_shape"), prior) {
                ("atoms", PriorSpec::Dirichlet(shapes)) => {
                    // Plus stands above minus.
                    [self.plus, self.minus] = match shapes {
                        Entries::Each(both) => {
                            let half = both.nrows() / 2;
                            let side = |first, rows| Entries::Each(both.rows(first, rows).into());
                            [side(0, half), side(half, both.nrows() - half)]
                        }
                        other => [other.clone(), other.clone()],
                    };
                }
                ("activations", PriorSpec::Gamma(shape, rate)) => {
                    (self.shape, self.rate) = (shape.clone(), rate.clone());
                }
                _ => continue,
            }
            any = true;
        }
        (self, any)
    }

    /// The same for one column of the data alone.
    pub(crate) fn of_column(self, y: usize) -> Self {
        let of = |entries| match entries {
            Entries::Each(all) if y < all.ncols() => Entries::Each(all.columns(y, 1).into_owned()),
            other => other,
        };
        Self {
            shape: of(self.shape),
            rate: of(self.rate),
            ..self
        }
    }

    /// The prior of maximum likelihood: `α = 1`, `a = 1`, `b = 0`. Its density is constant, `Γ(2F)` for every atom.
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Model, State};
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Prior, Snmf, SnmfState};
    /// let v = DenseTensor::new(vec![2, 1], vec![4.0, -1.0], Order::RowMajor)?;
    /// let state = SnmfState::new(&dmatrix![0.5; 0.1], &dmatrix![0.1; 0.3], dmatrix![6.0])?;
    /// let snmf = Snmf::new(1).priors(Prior::flat());
    /// let (em, at) = (snmf.bind(&v)?, state.parameters());
    /// assert!((em.objective(at)? + em.constant() - em.likelihood(at)? - 6f64.ln()).abs() < 1e-12);      // Γ(4) = 6
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flat() -> Self {
        Self {
            plus: Entries::All(1.0),
            minus: Entries::All(1.0),
            shape: Entries::All(1.0),
            rate: Entries::All(0.0),
        }
    }

    /// This prior to a power in `(0, 1]`, up to its constant.
    ///
    /// ```math
    /// \alpha \to 1 + p (\alpha - 1), \qquad a \to 1 + p (a - 1), \qquad b \to p b
    /// ```
    ///
    /// Some last iterations under it let the data speak before hyperparameters are learnt from the posterior.
    ///
    /// ```
    /// use skellam_snmf::{Entries, Prior};
    /// let prior = Prior { shape: Entries::All(5.0), rate: Entries::All(0.5), ..Prior::flat() };
    /// let weak = prior.weakened(0.25);
    /// assert_eq!((weak.shape, weak.rate), (Entries::All(2.0), Entries::All(0.125)));
    /// ```
    pub fn weakened(&self, power: f64) -> Self {
        let shape = |e: &Entries| e.map(|x| 1.0 + power * (x - 1.0));
        Self {
            plus: shape(&self.plus),
            minus: shape(&self.minus),
            shape: shape(&self.shape),
            rate: self.rate.map(|b| power * b),
        }
    }

    /// Refuses values that no prior has.
    ///
    /// # Errors
    ///
    /// [`FitError::Range`]: a shape that is not positive, a rate that is negative, either not finite.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::{Entries, Prior};
    /// let prior = |b| Prior { rate: Entries::All(b), ..Prior::flat() };
    /// assert!(prior(0.0).check().is_ok() && prior(f64::NAN).check().is_err());
    /// let error = prior(-1.0).check().unwrap_err();
    /// assert_eq!(error.to_string(), "`prior rate` has -1 in row 0, column 0, expected a finite number >= 0");
    /// ```
    pub fn check(&self) -> Result<(), FitError> {
        const POSITIVE: &str = "a finite number > 0";
        self.check_each_shape(POSITIVE, |x| x.is_finite() && x > 0.0)?;
        let rate = |x: f64| x.is_finite() && x >= 0.0;
        check("rate", &self.rate, "a finite number >= 0", rate)
    }

    /// Refuses rates of 0, under which no bound exists.
    pub(crate) fn check_proper(&self) -> Result<(), FitError> {
        check("rate", &self.rate, "a finite number > 0", |x| x > 0.0)
    }

    /// Refuses shapes that variational Bayes cannot hold.
    pub(crate) fn check_least(&self, (least, range): (f64, &'static str)) -> Result<(), FitError> {
        self.check_each_shape(range, |x| x >= least)
    }

    fn check_each_shape(
        &self,
        expected: &'static str,
        ok: impl Fn(f64) -> bool,
    ) -> Result<(), FitError> {
        check("plus", &self.plus, expected, &ok)?;
        check("minus", &self.minus, expected, &ok)?;
        check("shape", &self.shape, expected, &ok)
    }

    /// Refuses blocks of another shape than the data and `k` components need.
    pub(crate) fn check_shape(&self, (f, n): (usize, usize), k: usize) -> Result<(), FitError> {
        check_shape("plus", &self.plus, (f, k), k)?;
        check_shape("minus", &self.minus, (f, k), k)?;
        check_shape("shape", &self.shape, (k, n), k)?;
        check_shape("rate", &self.rate, (k, n), k)
    }
}
