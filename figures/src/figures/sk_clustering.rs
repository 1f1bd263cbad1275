//! Clusters of samples by each method of the paper's table V, judged by the known classes.

use nalgebra::DMatrix;
use pathfinding::prelude::{Matrix, kuhn_munkres};
use plca_dist::random::uniform;
use plca_fit::{Init, Model, Solver};
use plca_tensor::{Data, DenseTensor};
use rand_chacha::ChaCha8Rng;
use skellam_snmf::{Ding, Entries, KMeans, Prior, Seeding, Snmf, SnmfState, SnmfVb};

use super::sk_fit;
use crate::Result;

/// The methods that have random starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    KMeans,
    Ding,
    Em,
    Vb,
}

pub(super) const METHODS: [Method; 4] = [Method::KMeans, Method::Ding, Method::Em, Method::Vb];

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::KMeans => "k-means",
            Self::Ding => "Ding 2010",
            Self::Em => "Sk-inf",
            Self::Vb => "Sk-inf-VB",
        }
    }
}

/// Share of the samples on the diagonal of the confusion matrix, clusters in the order that makes it largest.
pub(super) fn accuracy(classes: &[usize], labels: &[usize], k: usize) -> Result<f64> {
    let mut confusion = Matrix::new(k, k, 0i64);
    for (&class, &label) in classes.iter().zip(labels) {
        confusion[(class, label)] += 1;
    }
    let (right, _) = kuhn_munkres(&confusion);
    Ok(right as f64 / classes.len() as f64)
}

/// The component with the largest activation of every sample; of equal ones the first.
fn largest(activations: &DMatrix<f64>) -> Vec<usize> {
    let columns = activations.column_iter();
    let first =
        columns.map(|c| (1..c.len()).fold(0, |best, k| if c[k] > c[best] { k } else { best }));
    first.collect()
}

/// One set, ready for every method.
pub(super) struct Problem {
    values: DenseTensor<f64>,
    k: usize,
    max_iter: usize,
}

impl Problem {
    pub(super) fn new(values: &DMatrix<f64>, k: usize, max_iter: usize) -> Result<Self> {
        Ok(Self {
            values: DenseTensor::try_from(values.clone())?,
            k,
            max_iter,
        })
    }

    /// Atoms uniform on (0, 1), normalised; activations 1.
    fn start(&self, rng: &mut ChaCha8Rng) -> Result<SnmfState<f64>> {
        let [f, n] = [0, 1].map(|mode| self.values.shape()[mode]);
        let mut both = DMatrix::from_fn(2 * f, self.k, |_, _| uniform(rng));
        plca_tensor::normalise_columns(&mut both);
        let [plus, minus] = [0, f].map(|row| both.rows(row, f).into_owned());
        let activations = DMatrix::from_element(self.k, n, 1.0);
        Ok(SnmfState::new(&plus, &minus, activations)?)
    }

    /// Clusters found from one random start, those of Skellam models by accelerated fits.
    pub(super) fn labels(
        &self,
        method: Method,
        solver: Solver,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<usize>> {
        let priors = Prior {
            rate: Entries::All(1e-3),
            ..Prior::flat()
        };
        match method {
            Method::KMeans => {
                let model = KMeans::new(self.k).seeding(Seeding::Random);
                Ok(model.fit(&self.values, rng)?.state().labels())
            }
            Method::Ding => {
                let ding = Ding::new(self.k);
                // As many passes as an accelerated iteration has.
                let stop = sk_fit::at_most(5 * self.max_iter);
                let run = ding.on(&self.values)?.solver(Solver::Em).stop(stop);
                let fit = run.observe(sk_fit::paper()).run(Init::default(), rng)?;
                Ok(largest(fit.state().activations()))
            }
            Method::Em => {
                let snmf = Snmf::new(self.k)
                    .replicates(skellam_snmf::Replicates::Limit)
                    .priors(priors);
                let start = self.start(rng)?;
                let how = (solver, self.max_iter);
                let fit = sk_fit::fit(&snmf, &self.values, &start, how, rng)?;
                Ok(largest(fit.state().activations()))
            }
            Method::Vb => {
                let vb = SnmfVb::new(self.k).priors(priors);
                let start = vb.at_means(&self.values, &self.start(rng)?)?;
                let how = (solver, self.max_iter);
                let fit = sk_fit::fit(&vb, &self.values, &start, how, rng)?;
                // All rates are alike: the largest shape is the largest geometric mean.
                Ok(largest(fit.state().activations_shape()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_does_not_depend_on_the_names_of_clusters() {
        let classes = [0, 0, 0, 1, 1, 2];
        assert_eq!(accuracy(&classes, &[2, 2, 2, 0, 0, 1], 3).unwrap(), 1.0);
        let mixed = accuracy(&classes, &[2, 2, 1, 0, 2, 1], 3).unwrap();
        assert!((mixed - 4.0 / 6.0).abs() < 1e-15);
        assert_eq!(accuracy(&classes, &[0; 6], 3).unwrap(), 0.5);
    }

    #[test]
    fn of_equal_activations_the_first_wins() {
        let h = DMatrix::from_row_slice(2, 3, &[1.0, 0.0, 2.0, 1.0, 3.0, 1.0]);
        assert_eq!(largest(&h), [0, 1, 0]);
    }
}
