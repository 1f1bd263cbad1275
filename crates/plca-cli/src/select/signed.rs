//! `plca select skellam-vb`: scores by the bound.

use plca_fit::{FitError, Model as _, State as _, Status};
use plca_tensor::Data;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::json;
use skellam_snmf::{Snmf, SnmfVb, select_components};

use crate::args::{Criterion, SelectArgs};
use crate::data::{self, load_for};
use crate::failure::Failure;
use crate::limits::{ranks, reasonable};
use crate::models::made::{of_options, typed, with_priors};
use crate::named;
use crate::select::table::Table;

/// Scores by the bound.
pub(super) fn select(args: &SelectArgs) -> Result<Table, Failure> {
    if args.criterion.is_some_and(|c| c != Criterion::Elbo) {
        return Err(Failure::usage(
            "skellam-vb has no such criterion; there is --criterion elbo",
        ));
    }
    let data = load_for::<f64>(args.model, &args.data, &args.hidden)?;
    let ranks = ranks(&args.ranks)?;
    for &rank in &ranks {
        reasonable("--ranks", rank, data.shape())?;
    }
    scores(args, &*data, &ranks)
}

fn scores(args: &SelectArgs, data: &dyn Data<f64>, ranks: &[usize]) -> Result<Table, Failure> {
    let [f, n] = [data.shape()[0], data.shape()[1]];
    // Refused here, where it is the command line's fault.
    let request = of_options(&args.options, 1);
    let request = with_priors(args.model, request, &args.prior, data.shape())?;
    let one: SnmfVb = typed(args.model, &request, data.shape())?;
    let configure = |components| {
        let mut model = one.clone();
        model.components = components;
        model
    };
    let about = |e| Failure::by(&args.data, e);
    let found = select_components(
        data,
        ranks.iter().copied(),
        configure,
        u32::try_from(args.restarts).unwrap_or(u32::MAX),
        &args.ends.stop(),
        &mut ChaCha8Rng::seed_from_u64(args.seed),
    );
    let mut found = found.map_err(about)?;
    found.sort_by_key(|c| c.components);
    let rows = found.iter().map(|c| {
        let means = c.fit.state().means()?;
        let likelihood = Snmf::new(c.components).replicates(one.replicates);
        let snmf = likelihood.real_data(one.real_data);
        let ln_lik = snmf.bind(data)?.likelihood(means.parameters())?;
        // Smaller is better.
        let score = -c.score;
        let parameters = c.components * (2 * f - 1 + n);
        Ok(json!({
            "rank": c.components, "score": score, "log_likelihood": ln_lik, "parameters": parameters,
            "elbo": c.fit.objective(),
        }))
    });
    Ok(Table {
        criterion: "elbo",
        sample_size: data.observed().map_err(|e| Failure::by(&args.data, e))?,
        rows: rows.collect::<Result<_, FitError>>().map_err(about)?,
        cut: found
            .iter()
            .any(|c| *c.fit.status() == Status::MaxIterations),
        warnings: [
            data::warnings(args.model, data),
            named::doubts(&args.data, &args.hidden, data)?,
        ]
        .concat(),
    })
}
