//! PLCA and PLSA by variational Bayes: `plca-vb` and `plsa-vb`.

use plca::em::{Given, Plca, PlcaVb, PlcaVbState, Plsa, PlsaVb, PlsaVbState, nominal_parameters};
use plca::fit::shards::Sharded;
use plca::fit::{
    Each, Explained, FitError, Model, Parameters, Reconstruct, Settings, State, Transform,
};
use plca::priors::Entries;
use plca::tensor::Data;

use super::{Asked, Bound, Drawn, Kind, Layout, Learnt, Lesson, dirichlet, events, learn, matrix};
use crate::data::Scalar;
use crate::error::{Refused, wrong};
use crate::options::Options;
use crate::run::Row;

/// After the names of blocks of shapes.
const SHAPE: &str = "_shape";

/// The shapes of priors by the names of their blocks, of those that there are.
fn priors(
    options: &mut Options,
    blocks: &[(String, (usize, usize), Layout)],
) -> Result<Vec<(String, Entries)>, Refused> {
    let named = options.named("prior")?.into_iter();
    let priors = named.map(|(name, setting)| {
        let Some(&(_, size, layout)) = blocks.iter().find(|(other, ..)| *other == name) else {
            let known: Vec<_> = blocks.iter().map(|(name, ..)| name.as_str()).collect();
            let known = known.join(", ");
            return wrong(format!(
                "`prior`: no block '{name}' takes one, expected {known}"
            ));
        };
        match dirichlet(&setting, size, layout) {
            Ok(shapes) => Ok((format!("{name}{SHAPE}"), shapes)),
            Err(what) => wrong(format!("`prior` of '{name}': {what}")),
        }
    });
    priors.collect()
}

/// [EXT 3] ELBO + ln K!, of which smaller negatives are better.
fn row(
    k: usize,
    shape: &[usize],
    objective: f64,
    ln_lik: Result<f64, FitError>,
) -> Result<Row, Refused> {
    let labels: f64 = (1..=k).map(|k| (k as f64).ln()).sum();
    Ok(Row {
        score: -(objective + labels),
        ln_lik: ln_lik?,
        parameters: nominal_parameters(shape, k),
    })
}

pub(crate) struct SymmetricVb;

impl Kind for SymmetricVb {
    type State<T: Scalar> = PlcaVbState<T>;
    type Model<T: Scalar> = PlcaVb;

    fn build<T: Scalar>(Asked { options, k, shape }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        let mut model = PlcaVb::new(k);
        with_frozen!(model, options);
        let factors = shape.iter().enumerate();
        let factors = factors.map(|(j, &n)| (format!("factor_{j}"), (n, k), Layout::Rows));
        let weights = ("weights".into(), (k, 1), Layout::Columns);
        let blocks: Vec<_> = factors.chain([weights]).collect();
        for (name, shapes) in priors(options, &blocks)? {
            model = model.prior(name, shapes);
        }
        Ok(model.checked()?)
    }

    shards!();
    explains_each_by_model!();

    fn evidence(found: Bound<'_, Self>) -> Result<Row, Refused> {
        let means = found.state.means()?;
        let plca = Plca::new(found.k);
        let ln_lik = plca.bind(found.data)?.likelihood(means.parameters());
        row(found.k, found.data.shape(), found.objective, ln_lik)
    }

    fn sample(
        _: &mut Options,
        state: &Self::State<f64>,
        draws: Option<u64>,
        seed: u64,
    ) -> Result<Drawn, Refused> {
        events(&state.means()?, draws, seed)
    }
}

pub(crate) struct AsymmetricVb;

impl Kind for AsymmetricVb {
    type State<T: Scalar> = PlsaVbState<T>;
    type Model<T: Scalar> = PlsaVb;

    fn build<T: Scalar>(Asked { options, k, shape }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        let shape = matrix("plsa-vb", shape)?;
        let given = [("rows", Given::Rows), ("columns", Given::Columns)];
        let given = options.choice("given", &given)?.unwrap_or_default();
        let mut model = PlsaVb::new(k).given(given);
        with_frozen!(model, options);
        let blocks = [
            ("basis".into(), (shape[given.explained()], k), Layout::Rows),
            ("mixture".into(), (k, shape[given.mode()]), Layout::Rows),
        ];
        for (name, shapes) in priors(options, &blocks)? {
            model = model.prior(name, shapes);
        }
        Ok(model.checked()?)
    }

    shards!();
    learns!();
    explains_by_model!();

    fn evidence(found: Bound<'_, Self>) -> Result<Row, Refused> {
        let means = found.state.means()?;
        let plsa = Plsa::new(found.k).given(found.state.given());
        let ln_lik = plsa.bind(found.data)?.likelihood(means.parameters());
        row(found.k, found.data.shape(), found.objective, ln_lik)
    }

    fn sample(
        _: &mut Options,
        state: &Self::State<f64>,
        draws: Option<u64>,
        seed: u64,
    ) -> Result<Drawn, Refused> {
        events(&state.means()?, draws, seed)
    }
}
