//! What the command does with a model: one file per model, and its line in `models!`.

mod bayes;
mod broadcast;
pub(crate) mod options;
pub(crate) mod priors;
mod siplca_select;
mod skellam_learn;

use std::fmt;

use nalgebra::DMatrix;
use plca_fit::{Axes, Parameters};
use plca_io::{Array, Element, ModelFile};
use plca_priors::Priors;
use plca_tensor::Data;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::approximation::Approximation;
use crate::args::{ConsensusArgs, FitArgs, LearnArgs, SelectArgs, TransformArgs};
use crate::consensus::Candidate;
use crate::failure::Failure;
use crate::saved::Saved;
use crate::select::{Table, Validated};
use crate::transform::Found;

/// A model of the command is one file and one line here: the file, and what it calls its kind of model.
macro_rules! models {
    ($($file:ident::$kind:ident),* $(,)?) => {
        $(pub(crate) mod $file;)*

        /// Every model that the command knows.
        pub(crate) static MODELS: &[Kind] = &[$(&$file::$kind),*];
    };
}

models! {
    plca::Symmetric,
    plsa::Asymmetric,
    plca_vb::SymmetricVb,
    plsa_vb::AsymmetricVb,
    nmf_kl::Unnormalised,
    skellam::SkellamEm,
    skellam_vb::SkellamVb,
    skellam_cp::SkellamCp,
    skellam_cp_vb::SkellamCpVb,
    siskellam::ShiftedSkellam,
    siskellam_vb::ShiftedSkellamVb,
    snmf_ding::DingSemiNmf,
    kmeans::Clustering,
    siplca::ShiftInvariant,
    tiplca::TransformInvariant,
    pntf::OnSimplex,
    ntf::LeeSeung,
}

/// Names of the models that have a table of scores.
pub(crate) const SCORED: &[&str] = &[
    "plca",
    "plsa",
    "nmf-kl",
    "siplca",
    "plca-vb",
    "plsa-vb",
    "skellam-vb",
];

/// A model by its name.
pub(crate) type Kind = &'static dyn ModelKind;

/// The model that the metadata of a file name.
pub(crate) fn known(metadata: &Value) -> Option<Kind> {
    let name = metadata["model"].as_str()?;
    MODELS.iter().find(|model| model.name() == name).copied()
}

/// What the command does with a model.
pub(crate) trait ModelKind: Send + Sync {
    /// Its name on the command line and in files.
    fn name(&self) -> &'static str;
    /// One line for the help.
    fn about(&self) -> &'static str;
    /// Names of its blocks for data of this order.
    fn blocks(&self, order: usize) -> Vec<String>;
    /// The blocks that `--init` and `--fix` may name.
    fn free_blocks(&self, order: usize) -> Vec<String> {
        self.blocks(order)
    }
    /// What the axes of a block count, where the samples are the last mode.
    fn axes(&self, block: &str) -> Option<Axes>;
    /// The axis of its array that counts the components.
    fn component_axis(&self, block: &str) -> Option<usize> {
        self.axes(block)?.components_in_file()
    }
    /// Its parameters as a file.
    fn file(&self, at: &Parameters<f64>) -> ModelFile;
    /// The block that an array holds, or what is wrong with it.
    fn block(&self, name: &str, array: &Array<f64>) -> Result<DMatrix<f64>, String>;
    /// The options of `fit` and `select` that not every model has: those that it has, with a space between them.
    fn options(&self) -> &'static str;
    /// The forms of its `--prior`, for the help.
    fn priors(&self) -> String {
        priors::forms(Priors::<f64>::ALL)
    }
    /// What data it takes.
    fn takes(&self) -> Takes {
        Takes::Counts
    }
    /// Name of the objective in the metadata, `posterior` where a prior has a density.
    fn objective(&self, posterior: bool) -> &'static str {
        match posterior {
            true => "log_posterior",
            false => "log_likelihood",
        }
    }
    /// Whether its components are kernels that are moved over the data.
    fn shifts(&self) -> bool {
        false
    }
    /// Whether `--solver fast` may fit it.
    fn separates(&self) -> bool {
        false
    }
    /// `plca fit`.
    fn fit(&self, args: &FitArgs) -> Result<(), Failure>;
    /// `plca fit --online`.
    fn online(&self, args: &FitArgs) -> Result<(), Failure> {
        let _ = args;
        options::refuse(true, "--online", self.name())
    }
    /// `plca fit` of shards.
    fn shards(&self, args: &FitArgs) -> Result<(), Failure> {
        let _ = args;
        let name = self.name();
        Err(Failure::usage(format!("{name} cannot be fitted to shards")))
    }
    /// `plca select`.
    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        let _ = args;
        let name = self.name();
        Err(Failure::usage(format!(
            "{name} has no table of scores; expected one of {}; plca consensus compares numbers of components by what many fits agree on",
            SCORED.join(", ")
        )))
    }
    /// Whether `plca select` knows the criterion `cv` of it, which is then the usual one.
    fn cross_validates(&self) -> bool {
        false
    }
    /// `plca select --criterion cv`.
    fn cross_validate(&self, args: &SelectArgs) -> Result<Validated, Failure> {
        let _ = args;
        let name = self.name();
        Err(Failure::usage(format!(
            "{name} has no criterion cv, which is for the models plca, plsa and nmf-kl"
        )))
    }
    /// The model with this number of components of `plca consensus`.
    fn consensus(&self, args: &ConsensusArgs, rank: usize) -> Result<Candidate, Failure> {
        let _ = (args, rank);
        let name = self.name();
        Err(Failure::usage(format!(
            "{name} has no consensus; expected one of plca, plsa, nmf-kl, pntf, ntf-l2"
        )))
    }
    /// `plca learn`.
    fn learn(&self, args: &LearnArgs) -> Result<(), Failure> {
        let _ = args;
        let name = self.name();
        Err(Failure::usage(format!(
            "{name} has no hyperparameters to learn; expected skellam-vb"
        )))
    }
    /// `plca transform`.
    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let _ = args;
        let name = self.name();
        Err(file.failure(format!("holds the model `{name}`, which has no transform")))
    }
    /// The model of these new data of which only what is learnt is kept, where its components are shifted kernels.
    fn explained(
        &self,
        file: Saved,
        data: &dyn Data<f64>,
    ) -> Result<(Box<dyn Approximation>, Value), Failure> {
        let _ = data;
        Err(file.failure("holds shifted kernels; expected a model whose components are spectra, such as plca or nmf-kl"))
    }
    /// The model, for `plca reconstruct` and `sample`.
    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure>;
}

impl fmt::Debug for dyn ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What data a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Numbers that are not negative, of any order.
    Counts,
    /// Numbers of any order, of which a warning says where they are negative.
    Numbers,
    /// Numbers of any sign and order.
    Signed,
    /// A matrix of any sign, of which a dense copy is made.
    SignedMatrix,
}

/// What follows from the state of a model, and from the function that makes the model from the command line: for this number of components and data of
/// this shape.
macro_rules! of_state {
    ($state:ty, $make:ident) => {
        fn fit(&self, args: &crate::args::FitArgs) -> Result<(), crate::failure::Failure> {
            match args.precision {
                crate::args::Precision::F64 => crate::fit::fit::<f64, _>(args, $make),
                crate::args::Precision::F32 => crate::fit::fit::<f32, _>(args, $make),
            }
        }

        fn name(&self) -> &'static str {
            <$state as plca_fit::State>::NAME
        }

        fn blocks(&self, order: usize) -> Vec<String> {
            let mut names = <$state as plca_fit::State>::block_names(order);
            let layout = <$state as plca_fit::State>::layout;
            names.retain(|name| layout(name) != plca_fit::FileLayout::Absent);
            names
        }

        fn axes(&self, block: &str) -> Option<plca_fit::Axes> {
            <$state as plca_fit::State>::axes(block)
        }

        fn file(&self, at: &plca_fit::Parameters<f64>) -> plca_io::ModelFile {
            plca_io::ModelFile::of_parameters::<$state>(at)
        }

        fn block(
            &self,
            name: &str,
            array: &plca_io::Array<f64>,
        ) -> Result<nalgebra::DMatrix<f64>, String> {
            plca_io::block_of::<$state>(name, array)
        }
    };
}
use of_state;

/// A scalar of fits.
pub(crate) trait Scalar: Element + Serialize + DeserializeOwned {}

impl Scalar for f64 {}
impl Scalar for f32 {}
