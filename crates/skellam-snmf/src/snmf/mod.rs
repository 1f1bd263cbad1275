//! Semi-NMF under the Skellam law, by expectation-maximisation.
//!
//! ```math
//! \begin{aligned}
//! V &\sim \mathrm{Sk}(T^+ H, T^- H) \\
//! T^\pm &\gets \mathrm{norm}(T^\pm \circ G^\pm H^\top) \\
//! H &\gets H \circ \left( (T^+)^\top G^+ + (T^-)^\top G^- \right)
//! \end{aligned}
//! ```
//!
//! `G±` is what the law makes of a datum and its two rates; where a cell is hidden it is 1. Both factors are taken from one pass over the data.
//! `[SKELLAM 5]`

mod counts;
mod prior;
mod sample;
mod shards;
mod state;
mod transform;

use plca_priors::PriorSpec;
use std::sync::Arc;

use plca_fit::{
    Algorithm, FitError, Model, Settings,
    blocks::{Axes, BlockSpec, Constraint, Draw, Frozen, Prior as BlockPrior},
    em::Em,
};
use plca_tensor::arrange::Signed;
use plca_tensor::{Data, Real};

use crate::bounds::Bounds;
use crate::check::check_numbers;
use crate::signed::{SignedData, atoms_spec, mean_activation};
use crate::{Entries, Prior, Replicates};
use counts::SnmfCounts;
pub(crate) use prior::normalisers;
use prior::{Sides, gamma};

pub use state::SnmfState;

plca_fit::settings! {
    /// Factorization of a matrix of either sign into signed atoms and non-negative activations, under the Skellam law, by maximum a posteriori.
    ///
    /// ```math
    /// \begin{aligned}
    /// & V \sim \mathrm{Sk}(T^+ H, T^- H), \qquad T^\pm, H \ge 0, \qquad \sum_f (T^+[f,k] + T^-[f,k]) = 1 \\
    /// & \text{maximise} \quad L_\mathrm{fit}(V; T, H) + \ln p(T, H)
    /// \end{aligned}
    /// ```
    ///
    /// `V` is the data, `F x N`; its expectation is `(T⁺ - T⁻) H`, and `Sk(p, q)` is the law of the difference of two Poisson counts with the
    /// rates `p` and `q`. `Lfit` is the likelihood of [`Replicates`], and is maximised alone without priors. The blocks are `atoms`, `T⁺` above
    /// `T⁻` (`2F x K`, columns sum to 1), and `activations`, `H` (`K x N`, in the units of the data). `[SKELLAM eq. 13]`, `[SKELLAM eq. 26]`
    ///
    /// [`Snmf::new`] and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use skellam_snmf::Model;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Replicates, Snmf};
    /// let v = DenseTensor::<f64>::new(vec![2, 2], vec![2.0, 4.0, -1.0, -2.0], Order::RowMajor)?;        // rank one, no noise
    /// let fit = Snmf::new(1).replicates(Replicates::Limit).fit(&v, &mut skellam_snmf::seed(0))?;
    /// let product = fit.state().signed_atoms() * fit.state().activations();
    /// assert!((product[(1, 1)] + 2.0).abs() < 1e-2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Snmf, priors "" {
        /// The number `M` of replicated draws (default: [`Auto`](Replicates::Auto), for real data with noise).
        pub replicates: Replicates = Replicates::default();
        /// Whether data of which `M V` is not whole are accepted with finite `M` too (default: no): factorials become gamma functions. No effect in the limit.
        pub real_data: bool = false;
        priors: Option<Prior> = None, own;
        /// The least value of counts and pseudo-counts together (default 0), before atoms are normalised and activations divided. Matters where a
        /// shape of [`priors`](Self::priors()) is below 1: there the objective has no maximum, and may fall. Without priors they are flat.
        pub floor: f64 = 0.0;
    }
}

impl Snmf {
    /// Puts Dirichlet priors on the atoms and gamma priors on the activations. The objective has their normalisers too, even those of
    /// [`Prior::flat`].
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Init, Model};
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Entries, Prior, Replicates, Snmf};
    /// # let mut rng = skellam_snmf::seed(0);
    /// let v = DenseTensor::new(vec![1, 1], vec![4.0], Order::RowMajor)?;
    /// let priors = Prior { shape: Entries::All(3.0), rate: Entries::All(1.0), ..Prior::flat() };
    /// let snmf = Snmf::new(1).replicates(Replicates::Limit).priors(priors).freeze("atoms");
    /// let start = Init::default().block("atoms", dmatrix![1.0; 0.0]);
    /// let fit = snmf.on(&v)?.run(start, &mut rng)?;
    /// assert!(f64::abs(fit.state().activations()[0] - 3.0) < 1e-12);      // (4 + 3 - 1) / (1 + 1)
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn priors(mut self, priors: Prior) -> Self {
        self.priors = Some(priors);
        for block in ["atoms", "activations"] {
            self.blocks.without_prior(block);
        }
        self
    }

    /// The blocks for data of this shape, with their priors.
    fn specs<T: Real>(&self, shape: (usize, usize)) -> Result<Vec<BlockSpec<T>>, FitError> {
        let mut specs = specs(shape, self.components);
        self.blocks.apply(&mut specs)?;
        let flat = (self.floor > 0.0).then(Prior::flat);
        let Some(priors) = self.laws().or(flat) else {
            return Ok(specs);
        };
        priors.check_shape(shape, self.components)?;
        let activations = gamma(&priors, self.floor);
        let activations = activations.map_err(|source| FitError::Prior {
            block: "activations".into(),
            source,
        })?;
        let atoms = Sides::new(priors, self.floor);
        if self.is_lawful("atoms") {
            specs[0].prior = Some(BlockPrior::Simplex(Arc::new(atoms)));
        }
        if self.is_lawful("activations") {
            specs[1].prior = Some(BlockPrior::Rate(Arc::new(activations)));
        }
        specs.iter().try_for_each(BlockSpec::check)?;
        Ok(specs)
    }

    /// Dirichlet laws of the atoms and gamma laws of the activations, where any are asked for.
    fn laws(&self) -> Option<Prior> {
        let (laws, any) = self.priors.clone().unwrap_or_default().with(&self.blocks);
        (any || self.priors.is_some()).then_some(laws)
    }

    /// Whether a block has no prior of another kind.
    fn is_lawful(&self, block: &str) -> bool {
        let prior = self.blocks.prior_of(block);
        prior.is_none_or(|prior| matches!(prior, PriorSpec::Dirichlet(_) | PriorSpec::Gamma(..)))
    }

    fn on_cells<T: Real>(&self, cells: Signed<T>) -> Result<Em<SnmfCounts<T>>, FitError> {
        let mut specs = self.specs(cells.shape())?;
        let data = SignedData::new(cells, self.replicates, self.real_data)?;
        let (size, observed) = (data.size, data.cells.observed());
        specs[1].draw = around(size, observed, &specs);
        let data = data.with_noise(size, observed);
        let bounds = self.bounds(&data, &specs);
        Ok(Em(SnmfCounts {
            data,
            specs,
            bounds,
        }))
    }

    /// Whether activations are to be bounded under noise: not where a prior is on them, or where all are given.
    fn is_bounded<T: Real>(&self, specs: &[BlockSpec<T>]) -> bool {
        if specs[1].frozen == Frozen::Whole {
            return false;
        }
        match self.laws().filter(|_| self.is_lawful("activations")) {
            Some(priors) => priors.shape == Entries::All(1.0) && priors.rate == Entries::All(0.0),
            None => self.floor > 0.0 || specs[1].prior.is_none(),
        }
    }

    fn bounds<T: Real>(&self, data: &SignedData<T>, specs: &[BlockSpec<T>]) -> Bounds {
        match self.is_bounded(specs) {
            true => data.bounds(),
            false => Bounds::None,
        }
    }
}

plca_fit::by_name!(Snmf {
    replicates: crate::replicates::M;
    real_data: crate::replicates::REAL_DATA;
    floor: ["floor", "X", "Priors", "Least value of every factor, for priors with shapes below 1 [default: 0]"];
});

impl Settings for Snmf {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components or replicates, and for a floor that is negative or not finite; [`FitError::Range`] for a
    /// hyperparameter outside its range; [`FitError::Conflict`] for a floor or priors on both blocks beside a prior on one of them.
    fn check(&self) -> Result<(), FitError> {
        check_numbers(self.components, self.replicates)?;
        let good = self.floor.is_finite() && self.floor >= 0.0;
        FitError::unless(good, "floor", self.floor, "a finite number >= 0")?;
        if let Some(priors) = self.laws() {
            priors.check()?;
        }
        let lawless = ["atoms", "activations"].map(|block| !self.is_lawful(block));
        if lawless.contains(&true) && (self.priors.is_some() || self.floor > 0.0) {
            return Err(FitError::Conflict {
                what: "`priors` and `floor` apply to both blocks: they cannot be combined with a prior on one"
                    .into(),
            });
        }
        Ok(())
    }
}

impl<T: Real> Model<T> for Snmf {
    type State = SnmfState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        self.check()?;
        Ok(Box::new(self.on_cells(Signed::new(data)?)?))
    }
}

/// How activations are drawn: between half of the one that explains the mean absolute value of the observed cells and 1.5 times it.
pub(crate) fn around<T: Real>(size: f64, observed: usize, specs: &[BlockSpec<T>]) -> Draw {
    let (rows, components) = (specs[0].shape.0 / 2, specs[0].shape.1);
    Draw::Around(mean_activation(size, observed, rows, components))
}

/// The blocks of a matrix of this shape.
fn specs<T: Real>((f, n): (usize, usize), k: usize) -> Vec<BlockSpec<T>> {
    vec![
        atoms_spec(f, k),
        BlockSpec::values(
            "activations",
            (k, n),
            Axes::coefficients(1),
            Constraint::NonNegative,
        ),
    ]
}
