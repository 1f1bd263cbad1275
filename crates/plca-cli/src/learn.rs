//! `plca learn skellam-vb`: hyperparameters learnt from one data set after the other.

use plca_priors::PriorSpec;
use std::collections::BTreeMap;
use std::path::Path;

use plca_fit::{Fit, FitError, Init, Model, Status};
use plca_io::{Array, ModelFile};
use plca_tensor::Data;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::json;
use skellam_snmf::{Entries, Hyperparameters, Learner, Prior, Sharing, SnmfVb, SnmfVbState};

use crate::models::made::{made, of_options, with_priors};

use crate::args::LearnArgs;
use crate::data::{load_for, warnings};
use crate::failure::Failure;
use crate::fitted::unfinished;
use crate::interrupt;
use crate::limits::reasonable;
use crate::outputs::{distinct, report, warn, writable};

/// The rate of the activations without other word.
const RATE: f64 = 1e-3;

/// What the file of a learner calls it in its metadata.
const LEARNER: &str = "learner";
/// Steps of the hyperparameters for each data set: those of a new learner.
const ITERATIONS: usize = 100;

pub(crate) fn learn(args: &LearnArgs) -> Result<(), Failure> {
    if args.model.name != "skellam-vb" {
        let name = args.model.called();
        return Err(Failure::usage(format!(
            "{name} has no hyperparameters to learn; expected skellam --method vb"
        )));
    }
    let inputs = args.data.iter().map(|data| ("DATA", Some(data)));
    let inputs: Vec<_> = inputs.collect();
    distinct(&inputs, &[("--output", Some(&args.output))])?;
    writable(&args.output, &["npz"])?;
    args.hidden.table.of_several_files("several data sets")?;
    args.ends.stop().check().map_err(Failure::usage)?;
    if args.rank == 0 {
        return Err(Failure::usage("--rank 0: at least one component is needed"));
    }
    let mut learner = args.from.as_deref().map(kept).transpose()?;
    let (mut told, mut cut, mut bounds) = (Vec::new(), false, Vec::new());
    for path in &args.data {
        let data = load_for::<f64>(args.model, path, &args.hidden)?;
        reasonable("--rank", args.rank, data.shape())?;
        told.extend(warnings(args.model, &*data));
        let learner = match &mut learner {
            Some(learner) => learner,
            none => none.insert(begun(args, data.shape()[0])?),
        };
        let about = |e: FitError| Failure::by(path, e);
        let request = of_options(&args.options, args.rank);
        let model = made(args.model, &request, data.shape())?;
        let Some(model) = model.any().downcast_ref::<SnmfVb>() else {
            return Err(Failure::new("the model is of another type"));
        };
        let fit = fitted(args, model, learner, &*data).map_err(about)?;
        cut |= *fit.status() == Status::MaxIterations;
        bounds.push(fit.objective());
        learner.learn(&fit.state().posterior()).map_err(about)?;
        // After every data set: what was learnt so far outlives an interruption.
        let file = written(learner).map_err(about)?;
        interrupt::writing(|| plca_io::write_model(&args.output, &file, false))?;
    }
    let seen = learner.map_or(0, |learner| learner.seen());
    told.extend(unfinished(cut, args.ends.max_iter, args.ends.tol));
    warn(args.quiet, &told);
    report(
        args.json,
        args.quiet,
        &json!({ "data_sets": seen, "elbo": bounds }),
        &args.output,
    )
}

/// A learner that has seen nothing, with the priors of the command line.
fn begun(args: &LearnArgs, rows: usize) -> Result<Learner, Failure> {
    let mut start = Prior {
        rate: Entries::All(RATE),
        ..Prior::flat()
    };
    let request = of_options(&args.options, args.rank);
    let request = with_priors(args.model, request, &args.prior, &[rows, 1])?;
    for (_, prior) in request.priors {
        match prior {
            PriorSpec::Dirichlet(shapes) => start.plus = shapes,
            PriorSpec::Gamma(shape, rate) => (start.shape, start.rate) = (shape, rate),
            _ => {}
        }
    }
    let one = |entries: &Entries| entries.as_slice().first().copied().unwrap_or(1.0);
    let (sharing, [alpha, each]) = match args.shared {
        true => (Sharing::all(rows, args.rank), [1, 1]),
        false => (
            Sharing::by_component(rows, args.rank),
            [2 * rows * args.rank, args.rank],
        ),
    };
    let start = Hyperparameters {
        alpha: vec![one(&start.plus); alpha],
        shape: vec![one(&start.shape); each],
        rate: vec![one(&start.rate); each],
    };
    Learner::new(sharing, start, args.learning_rate).map_err(Failure::usage)
}

/// The learner of a file.
fn kept(path: &Path) -> Result<Learner, Failure> {
    let mut file = crate::saved::arrays(path)?;
    let learner = file.metadata.get_mut(LEARNER).map(serde_json::Value::take);
    let learner = learner.ok_or_else(|| {
        Failure::of(
            path,
            "holds no learner; expected a file that plca learn wrote",
        )
    })?;
    let learner: Result<Learner, _> = serde_json::from_value(learner);
    let learner = learner.map_err(|e| Failure::of(path, format!("`{LEARNER}`: {e}")))?;
    // Not as many as a file says.
    Ok(learner.iterations(ITERATIONS))
}

/// The posterior of a data set under the prior as learnt so far. It starts there, so that components keep their places; at random where nothing was learnt.
fn fitted(
    args: &LearnArgs,
    model: &SnmfVb,
    learner: &Learner,
    data: &dyn Data<f64>,
) -> Result<Fit<SnmfVbState<f64>>, FitError> {
    let model = model.clone().priors(learner.prior()?);
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    rng.set_stream(learner.seen());
    let run = model.on(data)?.stop(args.ends.stop());
    match learner.seen() {
        0 => run.run(Init::default(), &mut rng),
        _ => {
            let start = model.at_prior(data, 0.0, &mut rng)?;
            run.run(&start, &mut rng)
        }
    }
}

/// A learner, and its prior as `--priors` reads it.
fn written(learner: &Learner) -> Result<ModelFile, FitError> {
    let prior = learner.prior()?;
    let arrays = [
        ("atoms.dirichlet", sides(&prior)),
        ("activations.gamma_shape", activations(&prior.shape)),
        ("activations.gamma_rate", activations(&prior.rate)),
    ];
    let arrays: BTreeMap<_, _> = arrays
        .into_iter()
        .map(|(name, array)| (name.to_string(), array))
        .collect();
    Ok(ModelFile {
        arrays,
        metadata: json!({ LEARNER: learner }),
    })
}

/// Shapes of atoms, `F x K x 2`, or `1 x 1 x 2` for all.
fn sides(prior: &Prior) -> Array<f64> {
    let each = |entries: &Entries| match entries {
        Entries::Each(each) => (each.shape(), each.transpose().as_slice().to_vec()),
        all => ((1, 1), all.as_slice()[..1].to_vec()),
    };
    let ((shape, plus), (_, minus)) = (each(&prior.plus), each(&prior.minus));
    let values = plus.into_iter().zip(minus).flat_map(|(p, m)| [p, m]);
    Array::new(vec![shape.0, shape.1, 2], values.collect())
}

/// Shapes or rates of activations, `K x 1`, or `1 x 1` for all.
fn activations(entries: &Entries) -> Array<f64> {
    let values = entries.as_slice().to_vec();
    Array::new(vec![values.len(), 1], values)
}
