//! `kmeans`: clusters of the columns, the baseline.

use skellam_snmf::{KMeans, KMeansState, Seeding};

use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{self, FitArgs};
use crate::failure::Failure;
use crate::saved::Saved;

/// The model `kmeans`.
pub(crate) struct Clustering;

impl ModelKind for Clustering {
    of_state!(KMeansState<f64>, model);

    fn about(&self) -> &'static str {
        "k-means clusters of the columns of a matrix of either sign"
    }

    fn options(&self) -> &'static str {
        "--transpose --seeding"
    }

    /// Labels follow from the centres.
    fn free_blocks(&self, _: usize) -> Vec<String> {
        vec!["centres".into()]
    }

    fn takes(&self) -> Takes {
        Takes::SignedMatrix
    }

    fn objective(&self, _: bool) -> &'static str {
        "squared_error"
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::lawless(file.state::<KMeansState<f64>>()?))
    }
}

fn model(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<KMeans, Failure> {
    if let Some(&samples) = shape.get(1)
        && rank > samples
    {
        let what = format!(
            "has {samples} columns, which are the samples: expected --rank of at most {samples}, not {rank}"
        );
        return Err(Failure::of(&args.data, what));
    }
    let seeding = match args.seeding {
        Some(args::Seeding::Random) => Seeding::Random,
        Some(args::Seeding::PlusPlus) | None => Seeding::PlusPlus,
    };
    Ok(KMeans::new(rank).seeding(seeding))
}
