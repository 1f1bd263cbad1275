//! Data of either sign: `skellam` and `skellam-vb`.

use plca::fit::shards::Sharded;
use plca::fit::{Explained, Model, Parameters, Reconstruct, Settings, State, Transform};
use plca::priors::Entries;
use plca::skellam::{Prior as SkellamPrior, Replicates, Snmf, SnmfState, SnmfVb, SnmfVbState};
use plca::tensor::Data;

use super::{Asked, Bound, Drawn, Kind, Layout, dirichlet, matrix};
use crate::data::Scalar;
use crate::error::{Refused, wrong};
use crate::options::{Options, Setting};
use crate::run::Row;

/// Draws of which a datum is the mean: a whole number or infinity; nothing where that follows from the data.
pub(super) fn replicates(options: &mut Options) -> Result<Replicates, Refused> {
    Ok(match options.number("replicates")? {
        None => Replicates::Auto,
        Some(m) if m == f64::INFINITY => Replicates::Limit,
        Some(1.0) => Replicates::One,
        Some(m) if m > 1.0 && m.fract() == 0.0 && m <= f64::from(u32::MAX) => {
            Replicates::Finite(m as u32)
        }
        Some(m) => {
            return wrong(format!(
                "`replicates` is {m}, expected a whole number >= 1 or infinity"
            ));
        }
    })
}

/// The sum of this number of matrices of a Skellam model; one by default.
fn matrices(
    options: &mut Options,
    state: &SnmfState<f64>,
    draws: Option<u64>,
    seed: u64,
) -> Result<Drawn, Refused> {
    let replicates = replicates(options)?;
    let drawn = state.sample(draws.unwrap_or(1), replicates, &mut plca::seed(seed))?;
    Ok(Drawn::Cells(drawn))
}

/// Shape and rate of a gamma prior: `gamma:SHAPE,RATE`.
pub(super) fn gamma(setting: &Setting) -> Result<[Entries; 2], String> {
    let refused = || "expected 'gamma:SHAPE,RATE'".to_string();
    let Setting::Text(text) = setting else {
        return Err(refused());
    };
    let both = text.strip_prefix("gamma:").and_then(|s| s.split_once(','));
    let (shape, rate) = both.ok_or_else(refused)?;
    let number = |text: &str| text.parse().map(Entries::All).map_err(|_| refused());
    Ok([number(shape)?, number(rate)?])
}

/// Priors of a Skellam model: `atoms` as `dirichlet:A`, `activations` as `gamma:SHAPE,RATE`.
fn skellam_prior(options: &mut Options, mut prior: SkellamPrior) -> Result<SkellamPrior, Refused> {
    for (name, setting) in options.named("prior")? {
        let refused = |what: String| Refused::Value(format!("`prior` of '{name}': {what}"));
        match (name.as_str(), &setting) {
            ("atoms", Setting::Text(_)) => {
                let alpha = dirichlet(&setting, (0, 0), Layout::Rows).map_err(refused)?;
                (prior.plus, prior.minus) = (alpha.clone(), alpha);
            }
            ("activations", _) => [prior.shape, prior.rate] = gamma(&setting).map_err(refused)?,
            _ => {
                return Err(refused(
                    "expected 'dirichlet:A' of 'atoms' or 'gamma:SHAPE,RATE' of 'activations'"
                        .into(),
                ));
            }
        }
    }
    Ok(prior)
}

pub(crate) struct Skellam;

impl Kind for Skellam {
    type State<T: Scalar> = SnmfState<T>;
    type Model<T: Scalar> = Snmf;

    fn build<T: Scalar>(Asked { options, k, shape }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        matrix("skellam", shape)?;
        let mut model = Snmf::new(k).replicates(replicates(options)?);
        if options.flag("real_data")? {
            model = model.real_data(true);
        }
        if let Some(floor) = options.number("floor")? {
            model = model.floor(floor);
        }
        model = model.priors(skellam_prior(options, SkellamPrior::flat())?);
        with_frozen!(model, options);
        Ok(model.checked()?)
    }

    shards!();
    explains_by_model!();

    fn sample(
        options: &mut Options,
        state: &Self::State<f64>,
        draws: Option<u64>,
        seed: u64,
    ) -> Result<Drawn, Refused> {
        matrices(options, state, draws, seed)
    }
}

pub(crate) struct SkellamVb;

impl Kind for SkellamVb {
    type State<T: Scalar> = SnmfVbState<T>;
    type Model<T: Scalar> = SnmfVb;

    fn build<T: Scalar>(Asked { options, k, shape }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        matrix("skellam-vb", shape)?;
        let mut model = SnmfVb::new(k).replicates(replicates(options)?);
        if options.flag("real_data")? {
            model = model.real_data(true);
        }
        let vague = SkellamPrior {
            rate: Entries::All(1e-3),
            ..SkellamPrior::flat()
        };
        model = model.priors(skellam_prior(options, vague)?);
        with_frozen!(model, options);
        Ok(model.checked()?)
    }

    shards!();
    explains_by_model!();

    fn evidence(found: Bound<'_, Self>) -> Result<Row, Refused> {
        let (k, shape) = (found.k, found.data.shape());
        let asked = Asked {
            options: found.options,
            k,
            shape,
        };
        let means = Skellam::build::<f64>(asked)?;
        let at = found.state.means()?;
        let run = Model::on(&means, found.data)?;
        Ok(Row {
            score: -found.model.score(found.objective),
            ln_lik: run.algorithm().likelihood(at.parameters())?,
            parameters: k * (2 * shape[0] - 1 + shape[1]),
        })
    }

    fn sample(
        options: &mut Options,
        state: &Self::State<f64>,
        draws: Option<u64>,
        seed: u64,
    ) -> Result<Drawn, Refused> {
        matrices(options, &state.means()?, draws, seed)
    }
}
