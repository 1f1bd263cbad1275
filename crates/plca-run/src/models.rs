//! Every model: what is said of it besides its settings and its arithmetic.

use plca_em::{
    IndexMaps, Likelihood, Nmf, NmfState, Plca, PlcaState, PlcaVb, PlcaVbState, Plsa, PlsaState,
    PlsaVb, PlsaVbState, Positions, Shifted, ShiftedState, Transformation, Transformed,
    TransformedState,
};
use plca_fit::shards::Sharded;
use plca_fit::{Anneal, FitError, Named, SettingSpec};
use plca_priors::PriorSpec;
use pntf_l2::{Ntf, NtfState, Pntf, PntfState};
use skellam_snmf::{
    Ding, DingState, KMeans, KMeansState, Prior, ShiftedSnmf, ShiftedSnmfState, ShiftedSnmfVb,
    ShiftedSnmfVbState, SignedCp, SignedCpState, SignedCpVb, SignedCpVbState, Snmf, SnmfState,
    SnmfVb, SnmfVbState,
};

use crate::kind::{Extents, Kind, named};
use crate::options::wrong;
use crate::{Entry, Law, Options, RunError, Scalar, Takes};

/// Every model.
static MODELS: &[Entry] = &[
    Entry::of::<Plca>(),
    Entry::of::<Plsa>(),
    Entry::of::<PlcaVb>(),
    Entry::of::<PlsaVb>(),
    Entry::of::<Nmf>(),
    Entry::of::<Snmf>(),
    Entry::of::<SnmfVb>(),
    Entry::of::<SignedCp>(),
    Entry::of::<SignedCpVb>(),
    Entry::of::<ShiftedSnmf>(),
    Entry::of::<ShiftedSnmfVb>(),
    Entry::of::<Ding>(),
    Entry::of::<KMeans>(),
    Entry::of::<Shifted>(),
    Entry::of::<Transformed>(),
    Entry::of::<Pntf>(),
    Entry::of::<Ntf>(),
];

/// Every model.
pub fn models() -> &'static [Entry] {
    MODELS
}

/// The model of a name.
pub fn model(name: &str) -> Option<&'static Entry> {
    MODELS.iter().find(|entry| entry.name == name)
}

/// The types of a model.
macro_rules! types {
    ($state:ident) => {
        type State<T: Scalar> = $state<T>;
        type Model<T: Scalar> = Self;

        fn typed<T: Scalar>(&self) -> &Self {
            self
        }
    };
}

/// The settings of a model that has nothing but those of its struct.
macro_rules! by_name {
    ($components:ident => $new:expr) => {
        fn specs() -> Vec<SettingSpec> {
            <Self as Named>::specs()
        }

        fn build($components: usize, options: &Options, _: &[usize]) -> Result<Self, RunError> {
            named($new, options)
        }
    };
}

/// A model with priors.
macro_rules! priors {
    () => {
        fn with_prior(self, block: &str, prior: PriorSpec) -> Self {
            self.prior(block, prior)
        }
    };
}

/// A model of shards.
macro_rules! sharded {
    () => {
        fn sharded<T: Scalar>(&self) -> Option<&dyn Sharded<T>> {
            Some(self)
        }
    };
}

/// The settings of runs that all models with an E-step have.
const ACCELERATE: &str = "accelerate";

impl Kind for Plca {
    types!(PlcaState);
    by_name!(k => Plca::new(k));
    priors!();
    sharded!();
    const ABOUT: &'static str = "Symmetric PLCA of any order";
    const RUNS: &'static [&'static str] = &[
        "kkt_tol",
        "prior",
        "priors",
        "fix",
        "freeze_entries",
        ACCELERATE,
        "out_of_core",
        "shards",
        "stepwise",
        "online",
    ];
    const LAWS: &'static [(&'static str, Law)] =
        &[("factor_*", Law::Simplex), ("weights", Law::Simplex)];
    const SEPARATES: bool = true;
}

impl Kind for Plsa {
    types!(PlsaState);
    priors!();
    sharded!();
    const ABOUT: &'static str = "Asymmetric PLSA of a matrix";
    const RUNS: &'static [&'static str] = &[
        "kkt_tol",
        "prior",
        "priors",
        "fix",
        "freeze_entries",
        ACCELERATE,
        "out_of_core",
        "shards",
        "stepwise",
        "online",
    ];
    const LAWS: &'static [(&'static str, Law)] =
        &[("basis", Law::Simplex), ("mixture", Law::Simplex)];
    // The marginal and the scale always come from the data and the fit.
    const FREE: Option<&'static [&'static str]> = Some(&["basis", "mixture"]);
    const MATRIX: bool = true;
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("given", "1")];
    const SEPARATES: bool = true;

    fn specs() -> Vec<SettingSpec> {
        with_imputation(<Self as Named>::specs())
    }

    fn build(k: usize, options: &Options, _: &[usize]) -> Result<Self, RunError> {
        named(Self::new(k), options)
    }
}

/// With the only treatment of missing cells that a model has, for command lines of all models.
fn with_imputation(mut specs: Vec<SettingSpec>) -> Vec<SettingSpec> {
    specs.extend(
        <Plca as Named>::specs()
            .into_iter()
            .filter(|spec| spec.name == MISSING)
            .map(|spec| {
                let choices: &[_] = &[("imputation", "")];
                SettingSpec { choices, ..spec }
            }),
    );
    specs
}
const MISSING: &str = "missing_method";

impl Kind for PlcaVb {
    types!(PlcaVbState);
    by_name!(k => PlcaVb::new(k));
    priors!();
    sharded!();
    const ABOUT: &'static str = "Symmetric PLCA of any order, by variational Bayes";
    const RUNS: &'static [&'static str] = &["prior", "priors", "fix", ACCELERATE, "shards"];
    const LAWS: &'static [(&'static str, Law)] =
        &[("weights", Law::Dirichlet), ("factor_*", Law::Dirichlet)];
    const OBJECTIVE: [&'static str; 2] = ["elbo"; 2];
}

impl Kind for PlsaVb {
    types!(PlsaVbState);
    by_name!(k => PlsaVb::new(k));
    priors!();
    sharded!();
    const ABOUT: &'static str = "Asymmetric PLSA of a matrix, by variational Bayes (LDA)";
    const RUNS: &'static [&'static str] =
        &["prior", "priors", "fix", ACCELERATE, "shards", "online"];
    const LAWS: &'static [(&'static str, Law)] =
        &[("basis", Law::Dirichlet), ("mixture", Law::Dirichlet)];
    const MATRIX: bool = true;
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("given", "1")];
    const OBJECTIVE: [&'static str; 2] = ["elbo"; 2];
}

impl Kind for Nmf {
    types!(NmfState);
    by_name!(k => Nmf::new(k));
    priors!();
    sharded!();
    const ABOUT: &'static str = "KL-NMF of a matrix";
    const RUNS: &'static [&'static str] = &[
        "transpose",
        "kkt_tol",
        "prior",
        "priors",
        "fix",
        "freeze_entries",
        ACCELERATE,
        "out_of_core",
        "shards",
        "stepwise",
    ];
    const LAWS: &'static [(&'static str, Law)] = &[("w", Law::Rates), ("h", Law::Rates)];
    const MATRIX: bool = true;
    const OBJECTIVE: [&'static str; 2] = ["kl_divergence", "penalised_divergence"];
    const SEPARATES: bool = true;
}

impl Kind for Snmf {
    types!(SnmfState);
    // Its objective has the normalisers of its priors, of flat ones too.
    by_name!(k => Snmf::new(k).priors(Prior::flat()));
    priors!();
    sharded!();
    const ABOUT: &'static str = "Skellam semi-NMF of a matrix of either sign, by EM";
    const RUNS: &'static [&'static str] = &[
        "transpose",
        "prior",
        "priors",
        "fix",
        "freeze_entries",
        ACCELERATE,
        "shards",
    ];
    const TAKES: Takes = Takes::SignedMatrix;
    const LAWS: &'static [(&'static str, Law)] =
        &[("atoms", Law::Dirichlet), ("activations", Law::Gamma(0.0))];
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "auto")];
    const OBJECTIVE: [&'static str; 2] = ["log_posterior"; 2];
}

/// The rate of a gamma law by variational Bayes that is not said.
const RATE: f64 = 1e-3;

impl Kind for SnmfVb {
    types!(SnmfVbState);
    by_name!(k => SnmfVb::new(k));
    priors!();
    sharded!();
    const ABOUT: &'static str = "Skellam semi-NMF of a matrix of either sign, by variational Bayes";
    const RUNS: &'static [&'static str] = &[
        "transpose",
        "prior",
        "priors",
        "fix",
        "freeze_entries",
        ACCELERATE,
        "shards",
    ];
    const TAKES: Takes = Takes::SignedMatrix;
    const LAWS: &'static [(&'static str, Law)] =
        &[("atoms", Law::Dirichlet), ("activations", Law::Gamma(RATE))];
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "inf")];
    const OBJECTIVE: [&'static str; 2] = ["elbo"; 2];
}

/// Laws of a model of tensors: of the atoms, of what carries the scale, and of the other factors.
fn cp_laws(order: usize, signed: usize, scale: Option<usize>, rate: f64) -> Vec<(String, Law)> {
    let atoms = ("atoms".to_string(), Law::Dirichlet);
    let weights = scale
        .is_none()
        .then(|| ("weights".to_string(), Law::Gamma(rate)));
    let others = (0..order).filter(|&j| j != signed);
    let factors = others.map(|j| {
        let law = match Some(j) == scale {
            true => Law::Gamma(rate),
            false => Law::Dirichlet,
        };
        (format!("factor_{j}"), law)
    });
    [atoms].into_iter().chain(weights).chain(factors).collect()
}

/// Refuses modes that the data do not have.
fn check_modes(options: &Options, order: usize) -> Result<(), RunError> {
    for name in ["signed_mode", "scale_mode"] {
        if let Some(mode) = options.get::<usize>(name)?
            && mode >= order
        {
            let what = format!("{mode}: the data have {order} dimensions, counted from 0");
            return Err(wrong(name, what));
        }
    }
    Ok(())
}

impl Kind for SignedCp {
    types!(SignedCpState);
    priors!();
    const ABOUT: &'static str =
        "Skellam factorization of a tensor of either sign with one signed mode, by EM";
    const RUNS: &'static [&'static str] = &["prior", "priors", "fix", "freeze_entries", ACCELERATE];
    const TAKES: Takes = Takes::Signed;
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "auto")];
    const OBJECTIVE: [&'static str; 2] = ["log_posterior"; 2];

    fn specs() -> Vec<SettingSpec> {
        <Self as Named>::specs()
    }

    fn build(k: usize, options: &Options, shape: &[usize]) -> Result<Self, RunError> {
        check_modes(options, shape.len())?;
        named(Self::new(k).with_constants(true), options)
    }

    fn laws(&self, order: usize) -> Vec<(String, Law)> {
        cp_laws(order, self.signed_mode, self.scale_mode, 0.0)
    }
}

impl Kind for SignedCpVb {
    types!(SignedCpVbState);
    priors!();
    const ABOUT: &'static str = "Skellam factorization of a tensor of either sign with one signed mode, by variational Bayes";
    const RUNS: &'static [&'static str] = &["prior", "priors", "fix", ACCELERATE];
    const TAKES: Takes = Takes::Signed;
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "inf")];
    const OBJECTIVE: [&'static str; 2] = ["elbo"; 2];

    fn specs() -> Vec<SettingSpec> {
        <Self as Named>::specs()
    }

    fn build(k: usize, options: &Options, shape: &[usize]) -> Result<Self, RunError> {
        check_modes(options, shape.len())?;
        named(Self::new(k), options)
    }

    fn laws(&self, order: usize) -> Vec<(String, Law)> {
        cp_laws(order, self.signed_mode, self.scale_mode, RATE)
    }
}

/// Extents of atoms, what adds and what takes away, and of their places.
fn signed_extents(kernel: &[usize], places: Vec<usize>) -> Extents {
    vec![("atoms", [kernel, &[2]].concat()), ("activations", places)]
}

impl Kind for ShiftedSnmf {
    types!(ShiftedSnmfState);
    by_name!(k => ShiftedSnmf::new(k, Vec::new()));
    priors!();
    const ABOUT: &'static str =
        "Shift-invariant Skellam semi-NMF of data of either sign and any order, by EM";
    const RUNS: &'static [&'static str] = &["prior", "priors", "fix", "freeze_entries", ACCELERATE];
    const TAKES: Takes = Takes::Signed;
    const LAWS: &'static [(&'static str, Law)] =
        &[("atoms", Law::Dirichlet), ("activations", Law::Gamma(0.0))];
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "auto")];
    const OBJECTIVE: [&'static str; 2] = ["log_posterior"; 2];
    const KERNELS: Option<&'static str> = Some("atoms");

    fn extents(&self, shape: &[usize]) -> Result<Extents, FitError> {
        Ok(signed_extents(&self.kernel, self.places(shape)?))
    }
}

impl Kind for ShiftedSnmfVb {
    types!(ShiftedSnmfVbState);
    by_name!(k => ShiftedSnmfVb::new(k, Vec::new()));
    priors!();
    const ABOUT: &'static str = "Shift-invariant Skellam semi-NMF of data of either sign and any order, by variational Bayes";
    const RUNS: &'static [&'static str] = &["prior", "priors", "fix", ACCELERATE];
    const TAKES: Takes = Takes::Signed;
    const LAWS: &'static [(&'static str, Law)] =
        &[("atoms", Law::Dirichlet), ("activations", Law::Gamma(RATE))];
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "inf")];
    const OBJECTIVE: [&'static str; 2] = ["elbo"; 2];
    const KERNELS: Option<&'static str> = Some("atoms_shape");

    fn extents(&self, shape: &[usize]) -> Result<Extents, FitError> {
        Ok(signed_extents(&self.kernel, self.places(shape)?))
    }
}

impl Kind for Ding {
    types!(DingState);
    by_name!(k => Ding::new(k));
    const ABOUT: &'static str = "Semi-NMF of a matrix of either sign in squared error (Ding 2010)";
    const RUNS: &'static [&'static str] = &["transpose"];
    const TAKES: Takes = Takes::SignedMatrix;
    // The basis follows from the activations.
    const FREE: Option<&'static [&'static str]> = Some(&["activations"]);
    const OBJECTIVE: [&'static str; 2] = ["squared_error"; 2];
}

impl Kind for KMeans {
    types!(KMeansState);
    by_name!(k => KMeans::new(k));
    const ABOUT: &'static str = "k-means clusters of the columns of a matrix of either sign";
    const RUNS: &'static [&'static str] = &["transpose"];
    const TAKES: Takes = Takes::SignedMatrix;
    // Labels follow from the centres.
    const FREE: Option<&'static [&'static str]> = Some(&["centres"]);
    const OBJECTIVE: [&'static str; 2] = ["squared_error"; 2];
}

impl Kind for Shifted {
    types!(ShiftedState);
    priors!();
    const ABOUT: &'static str = "Shift-invariant PLCA of any order";
    const RUNS: &'static [&'static str] = &[
        "kkt_tol",
        "prior",
        "priors",
        "fix",
        "freeze_entries",
        ACCELERATE,
    ];
    const LAWS: &'static [(&'static str, Law)] = &[
        ("weights", Law::Simplex),
        ("kernels", Law::Simplex),
        ("impulses", Law::Simplex),
    ];
    const KERNELS: Option<&'static str> = Some("kernels");

    fn specs() -> Vec<SettingSpec> {
        with_imputation(<Self as Named>::specs())
    }

    fn build(k: usize, options: &Options, _: &[usize]) -> Result<Self, RunError> {
        named(Self::new(k, Vec::new()), options)
    }

    fn extents(&self, shape: &[usize]) -> Result<Extents, FitError> {
        let geometry = self.geometry(shape)?;
        Ok(vec![
            ("kernels", geometry.kernel_shape().to_vec()),
            ("impulses", geometry.impulse_shape().to_vec()),
        ])
    }
}

/// Settings of transformed kernels, from which their maps follow once the shape of the data is known.
#[derive(Debug, Default)]
struct Turned {
    kernel: Vec<usize>,
    rotations: Option<usize>,
    angles: Vec<f64>,
    scales: Vec<f64>,
    mirror: bool,
    positions: Positions,
    likelihood: Likelihood,
    anneal: Option<Anneal>,
    impulse_power: Option<Anneal>,
}

plca_fit::by_name!(Turned {
    kernel: plca_em::KERNEL_EXTENTS;
    rotations: ["rotations", "N", "Model", "Rotations by 360 i/N degrees [default: 1]"];
    angles: ["angles", "A,B,…", "Model", "Rotations by these angles in degrees, in place of --rotations"];
    scales: ["scales", "S,T,…", "Model", "Scales, as multiples of the size of the kernel [default: 1]"];
    mirror: ["mirror", "", "Model", "Also mirrors the kernels"];
    positions: ["positions", "WHERE", "Model", "Where kernels may lie: valid, full or centred [default: valid]"];
    likelihood: plca_em::LIKELIHOOD;
    anneal: plca_em::ANNEAL;
    impulse_power: plca_em::IMPULSE_POWER;
});

impl Turned {
    fn maps(&self, shape: &[usize]) -> Result<IndexMaps, RunError> {
        let angles = match (self.rotations, &self.angles[..]) {
            (Some(_), [_, ..]) => {
                return Err(wrong(
                    "angles",
                    "they stand in place of rotations: expected one of both",
                ));
            }
            (Some(n @ 1..=65535), _) => (0..n).map(|i| 360.0 * i as f64 / n as f64).collect(),
            (Some(n), _) => return Err(wrong("rotations", format!("{n} is not in 1..=65535"))),
            (None, []) => vec![0.0],
            (None, angles) => angles.to_vec(),
        };
        let scales: &[f64] = match &self.scales[..] {
            [] => &[1.0],
            scales => scales,
        };
        let all = Transformation::product(&angles, scales, self.mirror)?;
        Ok(IndexMaps::placed(
            &all,
            &self.kernel,
            shape,
            self.positions,
        )?)
    }
}

impl Kind for Transformed {
    types!(TransformedState);
    priors!();
    const ABOUT: &'static str = "PLCA invariant to rotations, scales, mirroring and shifts";
    const RUNS: &'static [&'static str] = &[
        "kkt_tol",
        "prior",
        "priors",
        "fix",
        "freeze_entries",
        ACCELERATE,
    ];
    const LAWS: &'static [(&'static str, Law)] = <Shifted as Kind>::LAWS;
    const KERNELS: Option<&'static str> = Some("kernels");

    fn specs() -> Vec<SettingSpec> {
        with_imputation(<Turned as Named>::specs())
    }

    fn build(k: usize, options: &Options, shape: &[usize]) -> Result<Self, RunError> {
        let turned = named(Turned::default(), options)?;
        let mut model = Self::new(k, turned.maps(shape)?).likelihood(turned.likelihood);
        (model.anneal, model.impulse_power) = (turned.anneal, turned.impulse_power);
        Ok(model)
    }

    fn extents(&self, _: &[usize]) -> Result<Extents, FitError> {
        Ok(vec![
            ("kernels", self.maps.kernel_shape().to_vec()),
            ("impulses", vec![self.maps.maps()]),
        ])
    }
}

impl Kind for Pntf {
    types!(PntfState);
    by_name!(k => Pntf::new(k));
    const ABOUT: &'static str =
        "Factorization of any order under squared error, weights and factors on the simplex";
    const RUNS: &'static [&'static str] = &["transpose", "fix", ACCELERATE];
    const TAKES: Takes = Takes::Numbers;
    const OBJECTIVE: [&'static str; 2] = ["squared_error", "penalised_squared_error"];
}

impl Kind for Ntf {
    types!(NtfState);
    by_name!(k => Ntf::new(k));
    priors!();
    const ABOUT: &'static str =
        "Non-negative factorization of any order under squared error (Lee and Seung)";
    const RUNS: &'static [&'static str] = &["transpose", "fix"];
    const TAKES: Takes = Takes::Numbers;
    const OBJECTIVE: [&'static str; 2] = ["squared_error"; 2];
}
