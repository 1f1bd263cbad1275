//! Several starts.

use super::{Law, Violation};
use crate::{Fit, Sense, State};

/// Checks a run from several starts against [`Law::Starts`]: it is bit for bit the best of the runs from each of them, the first of those that are
/// equally good. The starts of a run are drawn one after the other, so single runs with one generator draw the same.
///
/// Fits are compared by [`Fit::compared`], the objective without its constant. That a start is not made worse is [`never_worse`](super::never_worse) of its objective and that of the fit.
///
/// # Errors
///
/// The [`Violation`], with the numbers of both starts.
///
/// # Examples
///
/// ```
/// use plca_em::{Init, Model, Plsa, Sense, Stop};
/// use plca_fit::FitError;
/// use plca_fit::laws::{Law, check_starts};
/// use plca_tensor::{DenseTensor, Order};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
///
/// let v = DenseTensor::<f64>::new(vec![2, 3], vec![3.0, 1.0, 0.0, 2.0, 4.0, 1.0], Order::RowMajor)?;
/// let plsa = Plsa::new(2);
/// let run = |starts| plsa.on(&v).map(|run| run.stop(Stop::default().max_iter(3)).restarts(starts));
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// let single = [(); 4].map(|()| run(1)?.run(Init::default(), &mut rng));
/// let single = single.into_iter().collect::<Result<Vec<_>, FitError>>()?;
/// let best = run(4)?.run(Init::default(), &mut ChaCha8Rng::seed_from_u64(0))?;
/// assert!(check_starts(Sense::Maximise, &single, &best).is_ok());
/// // Keeping the worst start breaks the law.
/// assert_eq!(check_starts(Sense::Minimise, &single, &best).unwrap_err().law, Law::Starts);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_starts<S: State>(
    sense: Sense,
    single: &[Fit<S>],
    best: &Fit<S>,
) -> Result<(), Violation> {
    let broken = |details: String| Err(Violation::new(Law::Starts, details));
    let mut first: Option<usize> = None;
    for (start, fit) in single.iter().enumerate() {
        let better = |&of: &usize| {
            let old = single[of].compared();
            let new = fit.compared();
            !new.is_nan() && (old.is_nan() || !sense.not_worse(old, new))
        };
        if first.as_ref().is_none_or(better) {
            first = Some(start);
        }
    }
    let Some(start) = first else {
        return broken("there is no start".into());
    };
    let expected = &single[start];
    let same = |fit: &Fit<S>| {
        let [a, b] = [fit, best].map(|fit| (fit.compared().to_bits(), fit.iterations()));
        a == b && fit.state().parameters() == best.state().parameters()
    };
    if same(expected) {
        return Ok(());
    }
    let (told, value) = (best.compared(), expected.compared());
    broken(match single.iter().position(same) {
        Some(other) => format!("start {other} of value {told} is kept, start {start} has {value}"),
        None => format!(
            "what is kept, of value {told}, is none of the starts; start {start} is the best and has {value}"
        ),
    })
}
