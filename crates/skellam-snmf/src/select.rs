//! How many components: the evidence bound as criterion.

use plca_fit::{Direction, Outcome, Stop, best_of};
use plca_tensor::Real;
use plca_tensor::arrange::Signed;
use rand::Rng;

use crate::{Posterior, SnmfError, SnmfVb, VbInit};

/// The best fit with some number of components.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Replicates, Signed, SnmfVb, Stop, select_components};
/// # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// # let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let v = Signed::from_matrix(dmatrix![2.0, 4.0, 0.0; -1.0, -2.0, 3.0])?;
/// let counts = |k| SnmfVb::builder(k).replicates(Replicates::One).build();
/// let best = select_components(&v, [2], counts, 1, &Stop::default(), &mut rng)?.remove(0);
/// assert!((best.score - best.outcome.objective - 2f64.ln()).abs() < 1e-9);                // two modes
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Candidate<T: Real> {
    /// `K`.
    pub components: usize,
    /// `(ELBO + ln K!) / M`: with exchangeable components the posterior has `K!` equal modes, of which a fit sees one.
    pub score: f64,
    /// The fit; its objective is `ELBO / M`.
    pub outcome: Outcome<Posterior<T>>,
}

/// Fits of several numbers of components, best first: `configure` gives the configuration for each, and the best of
/// `starts` random starts counts.
///
/// The bound pays for every component by its divergence from the prior, so it need not grow with their number. The prior
/// matters: the same for all, and proper.
///
/// # Errors
///
/// As [`SnmfVb::fit`], and those of `configure`; [`SnmfError::NoStarts`] for 0 starts.
///
/// ```
/// use nalgebra::dmatrix;
/// use skellam_snmf::{Signed, SnmfVb, Stop, select_components};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let v = Signed::from_matrix(dmatrix![20.0, 40.0, 10.0; -10.0, -20.0, -5.0; 30.0, 60.0, 15.0])?;   // rank one
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let ranked = select_components(&v, 1..=3, |k| SnmfVb::builder(k).build(), 3, &Stop::default(), &mut rng)?;
/// assert_eq!(ranked[0].components, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn select_components<T: Real, R: Rng + ?Sized>(
    data: &Signed<T>,
    components: impl IntoIterator<Item = usize>,
    configure: impl Fn(usize) -> Result<SnmfVb, crate::ParamError>,
    starts: u64,
    stop: &Stop,
    rng: &mut R,
) -> Result<Vec<Candidate<T>>, SnmfError> {
    if starts == 0 {
        return Err(SnmfError::NoStarts);
    }
    let mut candidates = Vec::new();
    for k in components {
        let config = configure(k)?;
        let outcome = best_of(starts, Direction::Maximise, |_| {
            config.fit(data, &VbInit::Random, stop, rng)
        })?;
        let ln_factorial: f64 = (1..=config.components).map(|i| (i as f64).ln()).sum();
        candidates.push(Candidate {
            components: config.components,
            // The limit has no room for a choice among finitely many modes.
            score: outcome.objective + ln_factorial / config.replicates.number(),
            outcome,
        });
    }
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(candidates)
}
