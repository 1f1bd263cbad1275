//! Non-negative factorization of any order under squared error, nothing but non-negativity asked for: the baseline.
//!
//! ```math
//! \min \; \lVert G - P \rVert^2,
//! \qquad P[x] = \sum_z \prod_j U_j[x_j, z],
//! \qquad U_j \ge 0
//! ```
//!
//! One iteration updates the modes in order, each from the newest others. `[PNTF 5]`

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm, Explained, Factored, Fit, FitError, Model, Parameters, Progress, Sense, Settings,
    Start, State, Transform,
    blocks::{Axes, Axis, BlockSpec, Blocks, Constraint, Draw, Frozen, no_mode},
    em::Stepped,
    explain::{Outcome, begin, check_shape, each, uncertified},
    nndsvd::nndsvd,
    units::{components_in_unit, in_unit, levels, squares_in_unit},
};
use plca_priors::{Penalty, PriorSpec};
use plca_tensor::arrange::Products;
use plca_tensor::{CompensatedSum, Data, Factor, Real, exponent, times_power_of_two};
use rand::Rng;

use crate::blocks::{cancels, check_complete, check_signs, finite, is_kept, kept};
use crate::exact::{self, explain_sums};
use crate::sweep::{check_grams, contracted, descend, gram, grams, hadamard, widen};

/// The way in which a factor is updated. `[PNTF 5]`
///
/// ```math
/// \begin{aligned}
/// & \text{multiplicative:} & U_j &\gets U_j \circ M / (U_j \Gamma) \\
/// & \text{column by column:} & u_t &\gets \max \left( 0, \left( M[:,t] - \sum_{k \ne t} \Gamma_{kt} u_k \right) / \, \Gamma_{tt} \right)
/// \end{aligned}
/// ```
///
/// For mode `j`, `M` (`I_j x K`) is the data contracted with the factors of the other modes, `Γ` (`K x K`) the product, entry by entry, of
/// their Grams `UᵀU`, and `u_t` column `t` of `U_j`.
///
/// ```
/// use pntf_l2::nalgebra::{self, dmatrix};
/// use pntf_l2::tensor::{DenseTensor, Order};
/// use pntf_l2::{Model, Ntf, NtfState, NtfUpdate, Stop};
/// let g = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
/// let start = NtfState::new(vec![dmatrix![0.0; 1.0], dmatrix![1.0]])?;
/// let first = |update| -> Result<_, Box<dyn std::error::Error>> {
///     let ntf = Ntf::new(1).update(update);
///     let run = ntf.on(&g)?.stop(Stop::default().max_iter(1));
///     Ok(run.run(&start, &mut pntf_l2::seed(0))?.state().factor(0).clone())
/// };
/// assert_eq!(first(NtfUpdate::Multiplicative)?, dmatrix![0.0; 1.0]);  // the 0 stays
/// assert_eq!(first(NtfUpdate::Hals)?, dmatrix![3.0; 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum NtfUpdate {
    /// Multiplicative updates of Lee and Seung; entries that are 0 stay 0.
    #[default]
    Multiplicative,
    /// Column after column to its optimum (hierarchical alternating least squares): fewer iterations.
    Hals,
}

plca_fit::settings! {
    /// Non-negative factorization of data of any order under squared error, with nothing but non-negativity asked for: a baseline.
    ///
    /// ```math
    /// P[x] = \sum_z \prod_j U_j[x_j, z], \qquad \text{minimise} \quad \lVert G - P \rVert^2, \qquad U_j \ge 0
    /// ```
    ///
    /// `G` is the data as they are; `x` runs over all cells, `z` over the `K` components. The blocks are `factor_0`, `factor_1`, …, `U_j` as an
    /// `I_j x K` matrix for every mode. All together they have the units of the data; they are never normalised.
    /// A [`Penalty`] as the prior of a block, both of whose weights are `>= 0`, is added to the objective:
    ///
    /// ```math
    /// \lVert G - P \rVert^2 + \sum \left( \lambda u + \tfrac{\mu}{2} u^2 \right)
    /// ```
    ///
    /// Multiplicative updates have `(λ + μ U_j) / 2` in the divisor, those column by column subtract `λ / 2` from the numerator and add `μ / 2` to the
    /// divisor. Neither raises the objective. In units in which the squared error is halved, so are both weights.
    ///
    /// [`Ntf::new`] and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use pntf_l2::tensor::{DenseTensor, Order};
    /// use pntf_l2::{Model, Ntf, NtfUpdate};
    /// let g = DenseTensor::<f64>::new(vec![2, 2], vec![2.0, 4.0, 1.0, 2.0], Order::RowMajor)?;
    /// let ntf = Ntf::new(1).update(NtfUpdate::Hals);
    /// let fit = ntf.fit(&g, &mut pntf_l2::seed(0))?;
    /// assert!(fit.objective() < 1e-12);                                   // rank 1: an exact fit
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Ntf, priors "" {
        /// The form of the update (default: multiplicative).
        pub update: NtfUpdate = NtfUpdate::default();
    }
}

plca_fit::by_name!(Ntf {
    update: ["update", "FORM", "Solver", "Form of the update: multiplicative or hals [default: multiplicative]"];
});

plca_fit::choices!(NtfUpdate {
    "multiplicative" = NtfUpdate::Multiplicative: "Of ntf-l2: the updates of Lee and Seung";
    "hals" = NtfUpdate::Hals: "Of ntf-l2: column after column to its optimum, in fewer iterations";
});

/// The penalty that a prior of a block is, if it is any.
fn penalty(block: &str, prior: &PriorSpec) -> Result<Option<Penalty>, FitError> {
    let penalty = prior.penalty().map_err(|source| FitError::Prior {
        block: block.to_string(),
        source,
    })?;
    if penalty.is_lagged() {
        let what = format!("the penalty of `{block}` cannot be lagged under squared error");
        return Err(FitError::Conflict { what });
    }
    let is_some = penalty.linear() > 0.0 || penalty.quadratic() > 0.0;
    Ok(is_some.then_some(penalty))
}

impl Ntf {
    /// The penalty on every block.
    fn penalties<T: Real>(&self, specs: &[BlockSpec<T>]) -> Result<Vec<Option<Penalty>>, FitError> {
        self.blocks.check_known(specs)?;
        let of = |spec: &BlockSpec<T>| match self.blocks.prior_of(&spec.name) {
            Some(prior) => penalty(&spec.name, prior),
            None => Ok(None),
        };
        specs.iter().map(of).collect()
    }

    /// Transforms the slices of new data along one mode, the observations, under the other factors of the components, under the penalty of this model on the
    /// factor of the mode.
    ///
    /// Without such a penalty this is [`NtfState::transform`], with its certificates. With one, columns are improved one by one until the objective
    /// changes no more ([`NtfUpdate::Hals`]), and there are no gaps.
    ///
    /// ```
    /// use pntf_l2::nalgebra::{self, dmatrix};
    /// use pntf_l2::tensor::{DenseTensor, Order};
    /// use pntf_l2::priors::Penalty;
    /// use pntf_l2::{Ntf, NtfState, Transform};
    /// let learnt = NtfState::new(vec![dmatrix![1.0], dmatrix![2.0; 0.0]])?;
    /// let new = DenseTensor::new(vec![2, 2], vec![5.0, 1.0, 3.0, 1.0], Order::RowMajor)?;
    /// let ntf = Ntf::new(1).prior("factor_0", Penalty::new(4.0, 2.0)?);
    /// let explained = ntf.transform(&learnt, &new, &Transform::default().along(0))?;
    /// let found = explained.fit.state().factor(0);
    /// assert!((found - dmatrix![1.6; 0.8]).amax() < 1e-9);                // (2 g - 4 / 2) / (4 + 2 / 2)
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FitError::UnknownBlock`] for a penalty on a block that there is not, those of [`NtfState::transform`], and those of a run.
    pub fn transform<T: Real>(
        &self,
        learnt: &NtfState<T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<NtfState<T>>, FitError> {
        self.check()?;
        let mut blocks = learnt.factors().to_vec();
        let (mode, k) = (how.mode(blocks.len())?, learnt.factor(0).ncols());
        let penalties = self.penalties(&specs::<T>(data.shape(), k))?;
        let Some(penalty) = penalties.get(mode).copied().flatten() else {
            return learnt.transform(data, how);
        };
        let kept = blocks.iter().enumerate();
        let kept = kept.map(|(j, f)| (j != mode).then_some(Factor::Columns(f)));
        check_shape(data.shape(), &kept.collect::<Vec<_>>())?;
        let mut ntf = Self::new(k).update(NtfUpdate::Hals);
        ntf.blocks.prior(format!("factor_{mode}"), penalty);
        for j in (0..blocks.len()).filter(|&j| j != mode) {
            ntf.blocks.freeze(format!("factor_{j}"), Frozen::Whole);
        }
        blocks[mode] = DMatrix::zeros(1, k);
        let found = each(data, mode, how, |_, one, how| {
            // Nothing is explained by nothing.
            if one.summary().absolute == 0.0 {
                return Ok(None);
            }
            let algorithm = ntf.bind(one)?;
            let start = begin(&*algorithm, blocks.clone())?;
            let fit: Fit<NtfState<T>> = uncertified(algorithm, start, how)?;
            let ended = (fit.iterations(), fit.status().clone());
            Ok(Some((
                fit.into_state().factor(mode).row(0).into_owned(),
                ended,
            )))
        })?;
        blocks[mode] = DMatrix::zeros(data.shape()[mode], k);
        let mut ended = Outcome::default();
        for (y, (row, (iterations, status))) in found
            .iter()
            .enumerate()
            .filter_map(|(y, one)| Some((y, one.as_ref()?)))
        {
            blocks[mode].set_row(y, row);
            ended.and(*iterations, status);
        }
        let algorithm = ntf.bind(data)?;
        let at = begin(&*algorithm, blocks)?;
        Ok(Explained::new(
            ended.fit(&*algorithm, at)?,
            Vec::new(),
            0.0,
            Vec::new(),
        ))
    }
}

impl Settings for Ntf {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components, and those of a prior that is no penalty.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)?;
        for (block, prior) in self.blocks.priors() {
            penalty(block, prior)?;
        }
        Ok(())
    }
}

impl<T: Real> Model<T> for Ntf {
    type State = NtfState<T>;

    /// # Errors
    ///
    /// [`DataError::Negative`](plca_tensor::DataError) under multiplicative updates, [`FitError::Conflict`] for hidden cells,
    /// [`FitError::Beyond`] for data whose squares leave the range of numbers; those of [`Settings::check`] and [`Products::new`].
    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        let products = Products::new(data)?;
        if self.update == NtfUpdate::Multiplicative {
            check_signs(data)?;
        }
        check_complete(&products, "the unconstrained factorization")?;
        // The data in a unit in which their squares sum to about 1.
        let unit = match products.squared_norm() {
            squares if squares > 0.0 => exponent(squares.sqrt()),
            _ => 0,
        };
        let scale = times_power_of_two(1.0, -unit);
        let norm = products.squared_norm() * scale * scale;
        let unit = unit - exponent(products.scale());
        squares_in_unit("the sum of the squares of the data", norm, unit)?;
        let (shape, k) = (products.shape(), self.components);
        // The model has the mass of the data where its entries are their mean, to which all modes contribute alike.
        let cells: f64 = shape.iter().map(|&n| n as f64).product();
        let mean = (products.total() / products.scale() / cells).abs();
        let levels = levels(mean / k as f64, shape.len());
        let mut specs = specs(shape, k);
        for (spec, level) in specs.iter_mut().zip(levels) {
            spec.draw = Draw::Around(level);
        }
        self.blocks.apply_frozen(&mut specs)?;
        check_grams(self.components, products.shape().len())?;
        Ok(Box::new(Sweep {
            penalties: self.penalties(&specs)?,
            model: self,
            data: products,
            scale,
            unit,
            norm,
            kept: kept(&specs)?,
            specs,
        }))
    }
}

/// The blocks of data of this shape.
pub(crate) fn specs<T: Real>(shape: &[usize], k: usize) -> Vec<BlockSpec<T>> {
    let factor = |(j, &n)| BlockSpec {
        constraint: Constraint::NonNegative,
        ..BlockSpec::simplex(format!("factor_{j}"), (n, k), Axes::factor(j))
    };
    shape.iter().enumerate().map(factor).collect()
}

/// [`Ntf`] bound to data.
///
/// It works on data divided by a power of two that brings their norm near 1, of which every factor has its share: squares neither overflow nor underflow,
/// and no bit depends on the unit of the data.
#[derive(Debug)]
struct Sweep<'a, T: Real> {
    model: &'a Ntf,
    data: Products<'a, T>,
    /// Takes the data as they are held to this unit.
    scale: f64,
    /// The exponent of that power of two.
    unit: i32,
    /// `‖G‖²` in this unit.
    norm: f64,
    specs: Vec<BlockSpec<T>>,
    penalties: Vec<Option<Penalty>>,
    /// Flags of the frozen components of every block.
    kept: Vec<Vec<bool>>,
}

impl<T: Real> Sweep<'_, T> {
    /// The exponent of a factor's share of the unit of work.
    fn share(&self, mode: usize) -> i32 {
        let modes = self.specs.len() as i32;
        self.unit.div_euclid(modes) + i32::from((mode as i32) < self.unit.rem_euclid(modes))
    }

    /// The factors in the unit of work.
    fn factors(&self, at: &Parameters<T>) -> Vec<DMatrix<T>> {
        let factors = at.matrices().iter().enumerate();
        let factors = factors.map(|(mode, factor)| in_unit(factor, -self.share(mode)));
        factors.collect()
    }

    /// The factors in the unit of work, and the powers of two by which the parts of every component were brought to a like size: products of single precision
    /// leave the range of numbers where one part is huge and another tiny. Under a penalty, which depends on the sizes, they stay as they are.
    fn balanced(&self, at: &Parameters<T>) -> (Vec<DMatrix<T>>, Powers) {
        let penalised = self.penalties.iter().any(|penalty| penalty.is_some());
        let powers = if penalised { None } else { even(at.matrices()) };
        let Some(all) = &powers else {
            return (self.factors(at), None);
        };
        let factors = at.matrices().iter().enumerate().map(|(j, factor)| {
            components_in_unit(factor, Axis::Columns, |t| all[t][j] - self.share(j))
        });
        (factors.collect(), powers)
    }

    /// A square of the unit of work in the unit of the data.
    fn square(&self, value: f64) -> f64 {
        times_power_of_two(value, 2 * self.unit)
    }

    /// `‖G - P‖²` from the product of all Grams and the contracted data, or cell by cell where too much cancels.
    fn squared_error(&self, factors: &[DMatrix<T>], h: &DMatrix<f64>, f: &[f64]) -> f64 {
        let value = self.norm - 2.0 * f.iter().sum::<f64>() + h.sum();
        if !cancels::<T>(value, self.norm) {
            return self.square(value);
        }
        let ones = vec![T::one(); self.model.components];
        let (_, value) = self.data.completed_mttkrp(self.scale, &ones, factors, 0);
        self.square(value)
    }

    /// What the penalties add to the objective.
    fn penalty(&self, at: &Parameters<T>) -> f64 {
        let blocks = self.penalties.iter().zip(at.matrices());
        let some = blocks.filter_map(|(penalty, u)| Some((penalty.as_ref()?, u)));
        let sums = some.map(|(penalty, u)| {
            let terms = u.iter().map(|u| {
                let u = u.to_f64();
                (penalty.linear() + 0.5 * penalty.quadratic() * u) * u
            });
            terms.collect::<CompensatedSum>().value()
        });
        sums.sum()
    }

    /// The factor of a mode from the data and the Grams, both contracted with all others. Of a component that is empty, whatever this factor is, it is 0.
    fn renew(
        &self,
        mode: usize,
        u: &mut DMatrix<f64>,
        m: &DMatrix<f64>,
        gamma: &DMatrix<f64>,
        is_empty: impl Fn(usize) -> bool,
    ) {
        let kept = &self.kept[mode];
        // Of half the objective.
        let both = self.penalties[mode].map(|p| (p.linear(), p.quadratic()));
        let (linear, quadratic) = both.unwrap_or_default();
        // In squares of the unit of work, of which the factor has a share.
        let by = |times: i32| times_power_of_two(0.5, times * self.share(mode) - 2 * self.unit);
        let (linear, quadratic) = (by(1) * linear, by(2) * quadratic);
        match self.model.update {
            NtfUpdate::Multiplicative => {
                let old = (!kept.is_empty()).then(|| u.clone());
                let below = &*u * gamma;
                // [PNTF 5] U <- U ∘ M / (U Γ), 0/0 = 0; first the ratio of what may both be small
                u.zip_zip_apply(m, &below, |u, m, b| {
                    let b = b + linear + quadratic * *u;
                    *u = match b > 0.0 {
                        true if b.is_infinite() => f64::NAN,
                        true => *u / b * m,
                        false => 0.0,
                    }
                });
                // What an E-step takes for 0 is 0: it could grow again in one unit, and has left the range of numbers in another. Components are compared
                // by what they add to the model, since their scales may lie in any of their factors.
                let share = T::TINY.sqrt().to_f64();
                let norms: Vec<f64> = gamma.diagonal().iter().map(|g| g.sqrt()).collect();
                for mut row in u.row_iter_mut() {
                    let size = |(&u, &norm): (&f64, &f64)| u * norm;
                    let most = row.iter().zip(&norms).map(size).fold(0.0, f64::max);
                    for (u, norm) in row.iter_mut().zip(&norms) {
                        if *u * norm < share * most {
                            *u = 0.0;
                        }
                    }
                }
                let Some(old) = old else { return };
                for t in (0..u.ncols()).filter(|&t| is_kept(kept, t)) {
                    u.set_column(t, &old.column(t));
                }
            }
            // `NtfUpdate::Hals`, and none besides.
            _ => {
                let ones = vec![1.0; self.model.components];
                // What rounding leaves of a difference is 0: as an entry it would keep a component alive that is empty in another unit.
                let relative = 8.0 * T::EPSILON.to_f64();
                let rounding = (&*u * gamma).zip_map(m, |u, m| relative * (u + m.abs()));
                descend(u, m, gamma, &ones, |t, b, rho| {
                    let rho = rho + quadratic;
                    if is_kept(kept, t) || rho <= 0.0 && !is_empty(t) {
                        return false;
                    }
                    for (b, rounding) in b.iter_mut().zip(&rounding.column(t)) {
                        let left = *b - linear;
                        *b = match rho > 0.0 && left > *rounding {
                            true => left / rho,
                            false => 0.0,
                        };
                    }
                    true
                });
            }
        }
    }
}

/// By how many powers of two the parts of a component may be apart.
const APART: i32 = 40;

/// For every component, powers of two of its parts.
type Powers = Option<Vec<Vec<i32>>>;

/// The powers of two that give the parts of every component that are far apart a like size; their sum is 0. `None` where there is none.
fn even<T: Real>(blocks: &[DMatrix<T>]) -> Powers {
    let even = |t: usize| {
        let sizes = blocks.iter().map(|block| block.column(t).amax().to_f64());
        let exponents: Vec<i32> = sizes.clone().map(exponent).collect();
        let (least, most) = (exponents.iter().min(), exponents.iter().max());
        let apart = most.zip(least).map_or(0, |(most, least)| most - least);
        if apart <= APART || sizes.clone().any(|size| size == 0.0) {
            return vec![0; exponents.len()];
        }
        let (all, n) = (exponents.iter().sum::<i32>(), exponents.len() as i32);
        let (share, rest) = (all.div_euclid(n), all.rem_euclid(n));
        let shares = (0..n).map(|j| share + i32::from(j < rest));
        shares.zip(exponents).map(|(share, e)| share - e).collect()
    };
    let powers: Vec<Vec<i32>> = (0..blocks[0].ncols()).map(even).collect();
    powers
        .iter()
        .flatten()
        .any(|&power| power != 0)
        .then_some(powers)
}

/// The exponent of the largest entry of a column up to which its squared norm is a number.
const SQUARES: i32 = 480;
/// By how many powers of two a component is below the data where it does not count.
const NEGLIGIBLE: i32 = 100;

impl<T: Real> Algorithm<T> for Sweep<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        // A step that fails leaves the parameters as they were.
        let mut next = vec![None; self.specs.len()];
        let (factors, powers) = self.balanced(at);
        let mut memo = self.data.memo(&factors);
        let mut grams = grams(&factors);
        let mut value = None;
        for mode in 0..self.specs.len() {
            let frozen = self.specs[mode].frozen == Frozen::Whole;
            if frozen && !(measure && mode == 0) {
                continue;
            }
            let m = memo.product(mode) * self.scale;
            let gamma = hadamard(&grams, Some(mode));
            let mut u = widen(&factors[mode]);
            if measure && mode == 0 {
                let h = gamma.component_mul(&grams[mode]);
                let error = self.squared_error(&factors, &h, &contracted(&m, &u));
                value = Some(error + self.penalty(at));
            }
            if frozen {
                continue;
            }
            let is_empty =
                |t| (0..grams.len()).any(|j| is_kept(&self.kept[j], t) && grams[j][(t, t)] == 0.0);
            self.renew(mode, &mut u, &m, &gamma, is_empty);
            let new = u.map(T::lit);
            let share = self.share(mode);
            let mut own = match &powers {
                None => in_unit(&new, share),
                Some(all) => components_in_unit(&new, Axis::Columns, |t| share - all[t][mode]),
            };
            // What is frozen keeps entries too that were too small in the unit of work.
            for t in (0..own.ncols()).filter(|&t| is_kept(&self.kept[mode], t)) {
                own.set_column(t, &at.at(mode).column(t));
            }
            // Factors whose products overflow lead nowhere.
            if let Some(bad) = own.iter().find(|x| !x.is_finite()) {
                finite(
                    &format!("an entry of the next `factor_{mode}`"),
                    bad.to_f64(),
                )?;
            }
            if mode + 1 < self.specs.len() {
                memo.set(mode, &new);
            }
            grams[mode] = gram(&widen(&new));
            next[mode] = Some(own);
        }
        at.advance(next);
        Ok(Stepped::of(value))
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Ok(self.likelihood(at)? + self.penalty(at))
    }

    /// The squared error without the penalties.
    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let (factors, _) = self.balanced(at);
        let m = self.data.mttkrp(&factors, 0) * self.scale;
        let f = contracted(&m, &widen(&factors[0]));
        Ok(self.squared_error(&factors, &hadamard(&grams(&factors), None), &f))
    }

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    /// `‖G‖²`.
    fn unit(&self) -> f64 {
        self.square(self.norm)
    }

    fn extrapolates(&self, _: &Parameters<T>) -> Result<(), FitError> {
        Ok(())
    }

    /// Components whose scales are far apart in their factors get the same in all, where no factor is frozen or penalised: squares would leave the range
    /// of numbers.
    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        _: &[bool],
        _: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        let is_bound = |(spec, penalty): (&BlockSpec<T>, &Option<Penalty>)| {
            spec.frozen != Frozen::No || penalty.is_some()
        };
        if self.specs.iter().zip(&self.penalties).any(is_bound) {
            return Ok(());
        }
        let Some(powers) = even(blocks) else {
            return Ok(());
        };
        for (j, block) in blocks.iter_mut().enumerate() {
            *block = components_in_unit(block, Axis::Columns, |t| powers[t][j]);
        }
        Ok(())
    }

    /// Refuses factors whose squares leave the range of numbers.
    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        let factors = self.factors(at);
        for t in 0..self.model.components {
            let sizes = factors.iter().map(|f| f.column(t).amax().to_f64());
            // A component without a part is none.
            if sizes.clone().any(|size| size == 0.0) {
                continue;
            }
            let exponents: Vec<i32> = sizes.map(exponent).collect();
            let is_some = exponents.iter().sum::<i32>() > -NEGLIGIBLE;
            let is_out = |&e: &i32| e > SQUARES || e < -SQUARES && is_some;
            if let Some(mode) = exponents.iter().position(is_out) {
                return Err(FitError::Beyond {
                    what: format!("the squared norm of component {t} of `factor_{mode}`"),
                    decimal: (f64::from(2 * exponents[mode]) * std::f64::consts::LOG10_2).floor(),
                });
            }
        }
        Ok(())
    }

    fn fill(
        &self,
        start: Start,
        blocks: &mut [Option<DMatrix<T>>],
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        let Start::Nndsvd(fill) = start else {
            return Err(FitError::NoStart { start });
        };
        let cells = self.data.shape().iter().map(|&n| n as f64).product();
        let [w, h] = nndsvd(
            &self.data,
            cells,
            self.model.components,
            fill,
            rng,
            progress,
        )?;
        for (block, factor) in blocks.iter_mut().zip([w, h.transpose()]) {
            block.get_or_insert(factor);
        }
        Ok(())
    }
}

/// The fitted parameters of [`Ntf`]: one non-negative factor for every mode.
///
/// ```math
/// G[x] \approx \sum_z \prod_j U_j[x_j, z]
/// ```
///
/// ```
/// use pntf_l2::nalgebra::{self, dmatrix};
/// use pntf_l2::{Factored, NtfState};
/// let state = NtfState::new(vec![dmatrix![2.0; 1.0], dmatrix![3.0; 0.5]])?;
/// assert_eq!(state.with_model(|p| p.cell(&[0, 1])), 1.0);
/// # Ok::<(), pntf_l2::FitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NtfState<T: Real>(Parameters<T>);

plca_fit::serialised!(NtfState);

impl<T: Real> NtfState<T> {
    /// The state of one factor `U_j`, `I_j x K`, for every mode.
    ///
    /// # Errors
    ///
    /// [`FitError::Count`] for none, [`FitError::Shape`], [`FitError::Value`].
    pub fn new(factors: Vec<DMatrix<T>>) -> Result<Self, FitError> {
        let shape: Vec<usize> = factors.iter().map(|f| f.nrows()).collect();
        let k = factors.first().map_or(0, |f| f.ncols());
        Self::wrap(Parameters::new(&specs(&shape, k), factors)?)
    }

    /// The factor of a mode, `U_j`: an `I_j x K` matrix, `>= 0`. The product of the factors of all modes has the units of the data.
    ///
    /// # Panics
    ///
    /// If there is no such mode.
    pub fn factor(&self, mode: usize) -> &DMatrix<T> {
        let factors = self.factors();
        factors
            .get(mode)
            .unwrap_or_else(|| no_mode(mode, factors.len()))
    }

    /// The factors of all modes, each `I_j x K`, in the order of the modes.
    pub fn factors(&self) -> &[DMatrix<T>] {
        self.0.matrices()
    }

    /// The squared error of every observation that [`transform`](Self::transform) explained, in the units of the data squared, exact up to
    /// rounding of the sum of its squares; `None` of a state that comes from elsewhere.
    pub fn squared_errors(&self) -> Option<&[f64]> {
        self.0.fact(exact::ERRORS)
    }

    /// Transforms the slices of new data along one mode, the observations, under the other factors of the components.
    ///
    /// Every slice gets the coefficients `>= 0` with the least squared error, a row of the mode's factor: a convex problem, solved to rounding in
    /// one iteration, after which the run has settled. So of the [stop rule](Transform::stop) the tolerances play no part, and neither does
    /// [`impossible`](Transform::impossible). The learnt factor of the mode plays no part, and components that are 0 get 0. A gap is how far
    /// the squared error of an observation is at most above the least.
    ///
    /// ```
    /// use pntf_l2::nalgebra::{self, dmatrix};
    /// use pntf_l2::tensor::{DenseTensor, Order};
    /// use pntf_l2::{NtfState, Transform};
    /// let learnt = NtfState::new(vec![dmatrix![2.0, 0.0; 0.0, 1.0], dmatrix![1.0, 1.0]])?;
    /// let new = DenseTensor::new(vec![2, 2], vec![4.0, 3.0, 1.0, -1.0], Order::RowMajor)?;
    /// let explained = learnt.transform(&new, &Transform::default())?;
    /// let state = explained.fit.state();
    /// assert_eq!(state.factor(1), &dmatrix![2.0, 1.0; 1.5, 0.0]);         // -1 is out of reach
    /// assert_eq!(state.squared_errors(), Some(&[0.0, 1.0][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FitError::Mode`], [`FitError::DataShape`], [`FitError::Conflict`] for hidden cells and for a solver that extrapolates,
    /// [`FitError::Beyond`] for data whose squares leave the range of numbers, [`FitError::NotFinite`] where what explains them does.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        explain_sums(self.factors(), data, how)
    }
}

impl<T: Real> Factored for NtfState<T> {
    fn product(at: &Parameters<T>) -> (Option<&[T]>, Vec<Factor<'_, T>>) {
        let factors = at.matrices().iter().map(Factor::Columns);
        (None, factors.collect())
    }

    fn scale(&self, _: usize) -> f64 {
        1.0
    }
}

impl<T: Real> State for NtfState<T> {
    type Scalar = T;
    const NAME: &'static str = "ntf-l2";
    const BLOCKS: Blocks = &[("factor_*", Axes::factor(0))];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let parameters = parameters.without_mass();
        let factors = parameters.matrices();
        let shape: Vec<usize> = factors.iter().map(|f| f.nrows()).collect();
        let k = factors.first().map_or(0, |f| f.ncols());
        parameters.check(&specs(&shape, k))?;
        FitError::if_no_factor(shape.len())?;
        let observations = shape.iter().copied();
        exact::check_errors(&parameters, observations)?;
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
