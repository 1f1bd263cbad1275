//! Skellam factorization of tensors by variational Bayes.

use plca_priors::PriorSpec;
use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters, Reconstruct, State,
    blocks::{Axes, Blocks},
    em::Em,
};
use plca_tensor::{Data, Real};

use super::SignedCpState;
use super::bound::CpBound;
use super::counts::modes;
use super::form::{ATOMS, Form, one_sided, specs};
use super::slabs::Slabs;
use super::unfold::Folding;
use crate::prior::Parts;
use crate::rule::Split;
use crate::signed::bayesian;
use crate::{Posterior, Prior, Replicates};

plca_fit::settings! {
    /// Factorization of a tensor of either sign by variational Bayes: the model of [`SignedCp`](crate::SignedCp), of which a distribution over its factors is
    /// fitted instead of one value of them.
    ///
    /// ```math
    /// \begin{aligned}
    /// & q(T[\cdot,k,\pm]) = \mathrm{Dirichlet}(\hat\alpha_k), \qquad q(B_j[\cdot,k]) = \mathrm{Dirichlet}(\hat\beta_{jk}),
    ///   \qquad q(w_k) = \mathrm{Gamma}(\hat s, \text{rate } \hat b) \\
    /// & \text{maximise} \quad L_\mathrm{fit}(V; \tilde L^+, \tilde L^-) + \sum_k \tilde w_k \left( \sum_{f,s} \tilde T \right) \prod_j \sum_i \tilde B_j
    ///   - \sum \frac{\hat s}{\hat b} - \mathrm{KL}(q \,\Vert\, p)
    /// \end{aligned}
    /// ```
    ///
    /// The tilde is the geometric mean, `e^E[ln x]`. The blocks are `atoms_shape`, `weights_shape`, `weights_rate` and `factor_j_shape`, laid out as the
    /// blocks of [`SignedCp`](crate::SignedCp); a factor that carries the scale has a shape and a rate for every entry, `factor_j_shape` and `factor_j_rate`,
    /// and there are no weights. The objective is a lower bound of the log-evidence (ELBO), divided by the number of replicates; no iteration lowers it.
    ///
    /// Cost of an iteration: that of [`SignedCp`](crate::SignedCp), and `e^ψ` of every shape. `[EXT 6]`
    ///
    /// ```
    /// use skellam_snmf::Model;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::SignedCpVb;
    /// let values = vec![2.0, 4.0, 1.0, 2.0, -4.0, -8.0, -2.0, -4.0];       // rank one in every mode
    /// let v = DenseTensor::<f64>::new(vec![2, 2, 2], values, Order::RowMajor)?;
    /// let fit = SignedCpVb::new(1).fit(&v, &mut skellam_snmf::seed(0))?;
    /// assert!(fit.trace().windows(2).all(|w| w[1].objective >= w[0].objective - 1e-9));
    /// assert!(fit.state().means()?.factor(2)[1] > 0.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct SignedCpVb {
        /// The number `M` of replicated draws (default: [`Auto`](Replicates::Auto), for real data with noise).
        pub replicates: Replicates = Replicates::default();
        /// Whether data of which `M V` is not whole are accepted with finite `M` too (default: no): factorials become gamma functions. No effect in the limit.
        pub real_data: bool = false;
        /// The mode whose factor has two sides, counted from 0 (default: the first).
        pub signed_mode: usize = 0;
        /// The mode whose factor carries the scale (default: none, the weights do). With two modes that is the model of a matrix.
        pub scale_mode: Option<usize> = None;
        // Priors that are laid out as posteriors.
        pub(super) parts: Parts = Parts::default(), own;
    }
}

impl SignedCpVb {
    /// Sets the priors of the atoms and of what carries the scale (default: all shapes 1, all rates 0.001), such as those that a
    /// [`Learner`](crate::Learner) has learnt from [`SignedCpVbState::posterior`]: they are laid out as that posterior. What is set last counts, by this method
    /// or [`prior`](Self::prior).
    ///
    /// ```
    /// use skellam_snmf::Model;
    /// use skellam_snmf::tensor::{DenseTensor, Order};
    /// use skellam_snmf::{Hyperparameters, Learner, Rate, Sharing, SignedCpVb};
    /// let start = |shape| Hyperparameters { alpha: vec![1.0], shape, rate: vec![0.1] };
    /// let mut main = Learner::new(Sharing::all(2, 1), start(vec![1.0]), Rate::Average)?;
    /// let nothing = Hyperparameters { alpha: vec![1.0], shape: vec![], rate: vec![] };
    /// let mut second = Learner::new(Sharing::factor(2, 1), nothing, Rate::Average)?;
    /// let mut rng = skellam_snmf::seed(0);
    /// for values in [vec![9.0, 20.0, -4.0, -9.0], vec![6.0, 8.0, -5.0, -2.0]] {
    ///     let data = DenseTensor::<f64>::new(vec![2, 2], values, Order::RowMajor)?;
    ///     let model = SignedCpVb::new(1).priors(main.prior()?).prior("factor_1", second.prior()?.plus);
    ///     let fit = model.fit(&data, &mut rng)?;
    ///     main.learn(&fit.state().posterior())?;
    ///     second.learn(&fit.state().factor_posterior(1).ok_or("no such factor")?)?;
    /// }
    /// assert_eq!((main.seen(), second.seen()), (2, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn priors(mut self, priors: Prior) -> Self {
        let of_factors = |block: &str, prior: &PriorSpec| {
            block != ATOMS && !matches!(prior, PriorSpec::Gamma(..))
        };
        self.blocks = self.blocks.with_priors_that(of_factors);
        self.parts = Parts::of(priors);
        self
    }

    /// Puts a prior on a block, which is named with or without `_shape`; a later one replaces an earlier one (default: all shapes 1, all rates 0.001).
    /// Dirichlet laws are for `atoms`, of both sides as they stand in the block, and `factor_j`, gamma laws for `weights`, or the factor of the mode of the
    /// scale. `[EXT 6]`
    pub fn prior(mut self, block: impl Into<String>, prior: impl Into<PriorSpec>) -> Self {
        let (block, prior) = (block.into(), prior.into());
        if block.starts_with("atoms") {
            self.parts.atoms = None;
        } else if matches!(prior, PriorSpec::Gamma(..)) {
            self.parts.activations = None;
        }
        self.blocks.prior_of_posterior(block, prior);
        self
    }

    fn on_data<T: Real>(&self, data: &dyn Data<T>) -> Result<Em<CpBound<T>>, FitError> {
        self.on_cells(Slabs::new(data, self.signed_mode, self.components)?)
    }

    pub(super) fn on_cells<T: Real>(&self, cells: Slabs<T>) -> Result<Em<CpBound<T>>, FitError> {
        cells.folding.check_scale(self.scale_mode)?;
        let form = Form::new(&cells.folding, self.scale_mode);
        let mut specs = specs(&cells.folding, self.components, form);
        self.blocks.apply_frozen(&mut specs)?;
        form.check_frozen(&specs)?;
        let laws = form.priors(self, &specs)?;
        cells.check(self.replicates, self.real_data)?;
        let (size, largest) = cells.sizes();
        Ok(Em(CpBound {
            cells,
            split: Split::new::<T>(self.replicates, largest),
            size,
            form,
            specs,
            laws,
        }))
    }
}

plca_fit::by_name!(SignedCpVb {
    replicates: crate::replicates::M;
    real_data: crate::replicates::REAL_DATA;
    signed_mode: super::SIGNED_MODE;
    scale_mode: super::SCALE_MODE;
});

bayesian!(SignedCpVb, SignedCpVbState, |state| {
    state.folding.shape().to_vec()
});

/// The fitted posterior of [`SignedCpVb`]: Dirichlet laws of the atoms and of the columns of factors, gamma laws of what carries the scale.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedCpVbState<T: Real> {
    parameters: Parameters<T>,
    folding: Folding,
    form: Form,
}

plca_fit::serialised!(SignedCpVbState);

impl<T: Real> SignedCpVbState<T> {
    /// The Dirichlet shapes of the atoms, `2F x K`: those of `T⁺` above those of `T⁻`.
    pub fn atoms_shape(&self) -> &DMatrix<T> {
        self.parameters.at(0)
    }

    /// The mode that is signed, counted from 0.
    pub fn signed_mode(&self) -> usize {
        self.folding.mode()
    }

    /// The mode whose factor carries the scale, counted from 0; `None` where weights do.
    pub fn scale_mode(&self) -> Option<usize> {
        self.form.scale
    }

    /// A copy of the posterior of the atoms and of what carries the scale: what their hyperparameters are learnt from. `[SKELLAM 8]`
    ///
    /// The activations are the weights, `K x 1`, or the factor that carries the scale, turned: a row for every component.
    pub fn posterior(&self) -> Posterior<T> {
        self.form.main(self.parameters.matrices())
    }

    /// A copy of the posterior of the factor of another mode, counted from 0, for a [`Sharing::factor`](crate::Sharing::factor): `plus` has its Dirichlet shapes, a row for
    /// every index, the rest is empty. `None` for the signed mode, that of the scale, and modes that the data do not have.
    pub fn factor_posterior(&self, mode: usize) -> Option<Posterior<T>> {
        let shapes = self.parameters.blocks();
        let name = format!("factor_{mode}_shape");
        let (_, shapes) = shapes.into_iter().find(|(found, _)| *found == name)?;
        (self.form.scale != Some(mode)).then(|| one_sided(shapes))
    }

    /// The posterior means.
    ///
    /// # Errors
    ///
    /// [`FitError::Value`] for a mean beyond the scalar.
    pub fn means(&self) -> Result<SignedCpState<T>, FitError> {
        let [main, others] = self.form.posteriors(self.parameters.matrices());
        let others = others.iter().map(|q| q.means().plus).collect();
        let blocks = self.form.blocks(main[0].means(), others);
        let names = super::specs::<T>(&self.folding, self.atoms_shape().ncols(), self.form.scale);
        let names = names.into_iter().map(|spec| spec.name.into_owned());
        let means = Parameters::named(names.zip(blocks).collect(), 1.0);
        let facts = super::counts::facts(&self.folding, self.form.scale);
        let with = |at: Parameters<T>, (name, numbers): (&'static str, Vec<f64>)| {
            at.with_fact(name, numbers)
        };
        SignedCpState::wrap(facts.into_iter().fold(means, with))
    }
}

impl<T: Real> State for SignedCpVbState<T> {
    type Scalar = T;
    const NAME: &'static str = "skellam-cp-vb";
    const BLOCKS: Blocks = &[
        (ATOMS, Axes::sides(0)),
        ("weights_shape", Axes::WEIGHTS),
        ("weights_rate", Axes::WEIGHTS),
        ("factor_*_shape", Axes::factor(0)),
        ("factor_*_rate", Axes::factor(0)),
    ];

    fn derived(at: &Parameters<f64>) -> Vec<(Cow<'static, str>, DMatrix<f64>)> {
        let means = SignedCpVbState::wrap(at.clone()).and_then(|state| state.means());
        let Ok(means) = means else {
            return Vec::new();
        };
        let blocks = means.parameters().blocks();
        let blocks = blocks.map(|(name, block)| (name.to_string().into(), block.clone()));
        blocks.collect()
    }

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let parameters = parameters.without_mass();
        let (mode, scale) = modes(&parameters)?;
        let names: Vec<_> = parameters
            .blocks()
            .map(|(name, _)| name.to_string())
            .collect();
        let sizes = names
            .iter()
            .zip(parameters.matrices())
            .filter(|(name, _)| name.starts_with("factor_") && name.ends_with("_shape"));
        let mut shape: Vec<usize> = sizes.map(|(_, block)| block.nrows()).collect();
        let (rows, k) = parameters.shape(0);
        shape.insert(mode.min(shape.len()), rows / 2);
        let folding = Folding::new(shape, mode)?;
        folding.check_scale(scale)?;
        let form = Form::new(&folding, scale);
        parameters.check(&specs(&folding, k, form))?;
        Ok(Self {
            parameters,
            folding,
            form,
        })
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.parameters
    }
}
