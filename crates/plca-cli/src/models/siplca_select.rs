//! `plca select siplca`: numbers of components, and extents of kernels.

use plca_em::{Direction, Shifted, ShiftedInit, Stop, shifted_parameters};
use plca_tensor::Data;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::json;

use super::siplca::{check_order, placed, reasonable};
use crate::args::SelectArgs;
use crate::failure::Failure;
use crate::select::{self, Candidate, Fitted, Table, ranks};

/// Scores of every kernel with every number of components.
pub(super) fn scores<'a>(args: &'a SelectArgs) -> Result<Table, Failure> {
    let ranks = ranks(&args.ranks)?;
    if args.kernel.is_empty() {
        return Err(Failure::usage("--kernel is needed"));
    }
    select::table(args, |data| {
        let shape = data.shape();
        let candidate = |(kernel, rank): (&[usize], usize)| -> Result<Candidate<'a>, Failure> {
            check_order(kernel, shape)?;
            reasonable(rank, kernel, shape)?;
            let shifted = placed(Shifted::builder(rank, kernel.to_vec()), &args.places).build()?;
            let geometry = shifted.geometry(shape);
            let geometry = geometry.map_err(|e| Failure::by(&args.data, e))?;
            let cells = [geometry.kernel_cells(), geometry.impulse_cells()];
            let all = shape.iter().fold(1usize, |all, &n| all.saturating_mul(n));
            Ok(Candidate {
                size: json!({ "rank": rank, "kernel": kernel }),
                // [SPEC 9] never more than the cells less one
                parameters: shifted_parameters(cells, rank, false).min(all - 1),
                fit: Box::new(move |data| fit(args, &shifted, data)),
            })
        };
        let kernels = args.kernel.iter().map(|k| k.0.as_slice());
        let sizes = kernels.flat_map(|kernel| ranks.iter().map(move |&rank| (kernel, rank)));
        sizes.map(candidate).collect()
    })
}

/// The best fit.
fn fit(args: &SelectArgs, shifted: &Shifted<f64>, data: &dyn Data<f64>) -> Result<Fitted, Failure> {
    let em = shifted.on(data)?;
    let stop = Stop {
        max_iter: args.max_iter,
        tol: args.tol,
        ..Stop::default()
    };
    let best = plca_em::best_of(args.restarts, Direction::Maximise, |start| {
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(start);
        let start = em.init(&ShiftedInit::default(), &mut rng)?;
        plca_em::run(&em, start, &stop, ())
    })?
    .state;
    let (values, shape) = (em.reconstruct(&best)?, data.shape().to_vec());
    let total = data.total();
    Ok(Fitted {
        ln_lik: em.ln_lik(&best)?,
        density: Box::new(move |index| {
            let at = (index.iter().zip(&shape)).fold(0, |at, (i, n)| at * n + i);
            values[at] / total
        }),
    })
}
