//! `kmeans`: clusters of the columns, the baseline.

use plca_fit::AnyModel;
use plca_io::Element;
use skellam_snmf::{KMeans, KMeansState, Seeding};

use super::options::refuse;
use super::snmf_ding::refuse_all;
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Cells};
use crate::args::{self, FitArgs};
use crate::failure::Failure;
use crate::saved::Saved;

/// The model `kmeans`.
pub(crate) struct Clustering;

impl ModelKind for Clustering {
    of_state!(KMeansState<f64>, boxed);

    fn about(&self) -> &'static str {
        "Clusters of the columns of a matrix of either sign"
    }

    /// Labels follow from the centres.
    fn free_blocks(&self, _: usize) -> Vec<String> {
        vec!["centres".into()]
    }

    fn component_axis(&self, _: &str) -> usize {
        1
    }

    fn takes(&self) -> Takes {
        Takes::SignedMatrix
    }

    fn objective(&self, _: bool) -> &'static str {
        "squared_error"
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Box::new(Cells(file.state::<KMeansState<f64>>()?)))
    }
}

/// The model of the command line.
fn boxed<T: Element>(
    args: &FitArgs,
    rank: usize,
    _: &[usize],
) -> Result<Box<dyn AnyModel<T>>, Failure> {
    refuse_all(args, "kmeans")?;
    refuse(args.signed.m.is_some(), "--m", "kmeans")?;
    refuse(args.signed.real_data, "--real-data", "kmeans")?;
    refuse(args.floor.is_some(), "--floor", "kmeans")?;
    let seeding = match args.seeding {
        Some(args::Seeding::Random) => Seeding::Random,
        Some(args::Seeding::PlusPlus) | None => Seeding::PlusPlus,
    };
    Ok(Box::new(KMeans::builder(rank).seeding(seeding).build()?))
}
