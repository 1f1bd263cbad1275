//! `kmeans`: clusters of the columns, the baseline.

use std::marker::PhantomData;
use std::path::Path;

use nalgebra::DMatrix;
use plca_fit::{Carried, Direction, Observer, Outcome, Progress, Stop};
use plca_io::{Array, Element};
use rand_chacha::ChaCha8Rng;
use skellam_snmf::{KMeans, KMeansState, Seeding};

use super::accelerated::plainly;
use super::options::refuse;
use super::snmf_ding::refuse_all;
use super::{CommandModel, ModelKind};
use crate::approximation::Approximation;
use crate::args::{self, Acceleration, FitArgs, Precision};
use crate::before;
use crate::blocks::{Arrays, lacking, matrix, take_matrix};
use crate::failure::Failure;
use crate::saved::Saved;
use crate::signed::{Complete, load_complete};

/// The model `kmeans`.
pub(crate) struct Clustering;

impl ModelKind for Clustering {
    fn name(&self) -> &'static str {
        "kmeans"
    }

    fn about(&self) -> &'static str {
        "Clusters of the columns of a matrix of either sign"
    }

    fn blocks(&self, _: usize) -> Vec<String> {
        ["centres", "labels"].map(String::from).to_vec()
    }

    /// Labels follow from the centres.
    fn free_blocks(&self, _: usize) -> Vec<String> {
        vec!["centres".into()]
    }

    fn component_axis(&self, _: &str) -> usize {
        1
    }

    fn fit(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => fit::<f64>(args),
            Precision::F32 => fit::<f32>(args),
        }
    }

    /// Every column as the centre of its cluster.
    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let centres = file.real_matrix("centres")?;
        let labels = file.vector("labels")?;
        let inside = |x: f64| x.fract() == 0.0 && (x as usize) < centres.ncols();
        if let Some(at) = labels.iter().position(|&x| !inside(x)) {
            let what = format!(
                "`labels` is {} at [{at}], no cluster of {}",
                labels[at],
                centres.ncols()
            );
            return Err(file.failure(what));
        }
        let labels: Vec<usize> = labels.iter().map(|&x| x as usize).collect();
        Ok(Box::new(Nearest { centres, labels }))
    }
}

/// Every column as its centre, which has no law.
struct Nearest {
    centres: DMatrix<f64>,
    labels: Vec<usize>,
}

impl Approximation for Nearest {
    fn shape(&self) -> Vec<usize> {
        vec![self.centres.nrows(), self.labels.len()]
    }

    fn evaluate(&self, into: &mut Array<f64>) -> Result<(), Failure> {
        let rows = into.values.chunks_exact_mut(self.labels.len().max(1));
        for (row, out) in self.centres.row_iter().zip(rows) {
            for (x, &label) in out.iter_mut().zip(&self.labels) {
                *x = row[label];
            }
        }
        Ok(())
    }
}

fn fit<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let data = load_complete::<T>(&args.data, &args.hidden, "kmeans")?;
    before::fit(args, &data, |rank| KMeansCommand::<T>::new(args, rank))
}

struct KMeansCommand<T> {
    config: KMeans,
    seeding: Seeding,
    scalar: PhantomData<T>,
}

impl<T> KMeansCommand<T> {
    fn new(args: &FitArgs, k: usize) -> Result<Self, Failure> {
        refuse_all(args, "kmeans")?;
        refuse(args.signed.m.is_some(), "--m", "kmeans")?;
        refuse(args.signed.real_data, "--real-data", "kmeans")?;
        refuse(args.floor.is_some(), "--floor", "kmeans")?;
        Ok(Self {
            config: KMeans::new(k)?,
            seeding: match args.seeding {
                Some(args::Seeding::Random) => Seeding::Random,
                Some(args::Seeding::PlusPlus) | None => Seeding::PlusPlus,
            },
            scalar: PhantomData,
        })
    }
}

impl<T: Element> CommandModel for KMeansCommand<T> {
    type Data = Complete<T>;
    type State = KMeansState<T>;
    const OBJECTIVE: &'static str = "squared_error";

    fn start(
        &self,
        data: &Self::Data,
        mut given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<KMeansState<T>, Failure> {
        let steps = self.config.on(&data.values)?;
        Ok(match take_matrix(path, &mut given, "centres")? {
            Some(centres) => steps.start(centres)?,
            None => steps.seed(self.seeding, rng),
        })
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<KMeansState<T>, Failure> {
        let none = |name: &str| lacking(path, name);
        let centres = take_matrix(path, &mut arrays, "centres")?.ok_or_else(|| none("centres"))?;
        let labels = arrays.remove("labels").ok_or_else(|| none("labels"))?;
        let labels: Vec<usize> = labels.values.iter().map(|&x| x as usize).collect();
        if labels.iter().any(|&k| k >= centres.ncols()) {
            return Err(Failure::of(
                path,
                "`labels` names a cluster that has no centre",
            ));
        }
        Ok(KMeansState {
            centres,
            labels,
            settled: false,
        })
    }

    fn arrays(&self, _: &Self::Data, state: &KMeansState<T>) -> Arrays {
        let labels: Vec<f64> = state.labels.iter().map(|&k| k as f64).collect();
        [
            ("centres".to_string(), matrix(&state.centres)),
            ("labels".to_string(), Array::new(vec![labels.len()], labels)),
        ]
        .into()
    }

    fn iterate(
        &self,
        data: &Self::Data,
        _: Acceleration,
        from: (Carried<Self::State>, Progress),
        stop: &Stop,
        observer: impl Observer<Carried<Self::State>>,
    ) -> Result<Outcome<Carried<Self::State>>, Failure> {
        let steps = self.config.on(&data.values)?;
        plainly(steps, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }
}
