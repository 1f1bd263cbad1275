//! `plca reconstruct`, `inspect`, `sample`, `select`.

use nalgebra::{DMatrix, DVector};
use plca_em::ModelOrder;
use plca_io::{Array, ModelFile};
use plca_tensor::{Factor, Model};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::{Criterion, InspectArgs, ModelName, ReconstructArgs, SampleArgs, SelectArgs};
use crate::blocks::{take_matrix, take_vector};
use crate::data::{Data, load};
use crate::failure::Failure;
use crate::fit::{model_name, on_threads, writable};

/// A model file as a sum of rank-one terms.
struct Product {
    weights: DVector<f64>,
    factors: Vec<DMatrix<f64>>,
    /// What the sum must be multiplied by to approximate the data.
    scale: f64,
}

impl Product {
    fn read(path: &std::path::Path) -> Result<Self, Failure> {
        let ModelFile {
            mut arrays,
            metadata,
        } = plca_io::read_model(path)?;
        let total = metadata["data"]["total"].as_f64().unwrap_or(1.0);
        let lacks = |name: &str| Failure::of(path, format!("has no `{name}`"));
        let ones = |k| DVector::from_element(k, 1.0);
        match metadata["model"].as_str().unwrap_or_default() {
            "plca" => {
                let order = metadata["data"]["shape"].as_array().map_or(0, Vec::len);
                let weights =
                    take_vector(path, &mut arrays, "weights")?.ok_or_else(|| lacks("weights"))?;
                let mut factors = Vec::new();
                for j in 0..order {
                    let name = format!("factor_{j}");
                    factors
                        .push(take_matrix(path, &mut arrays, &name)?.ok_or_else(|| lacks(&name))?);
                }
                Ok(Self {
                    weights,
                    factors,
                    scale: total,
                })
            }
            "plsa" => {
                let basis: DMatrix<f64> =
                    take_matrix(path, &mut arrays, "basis")?.ok_or_else(|| lacks("basis"))?;
                let mixture: DMatrix<f64> =
                    take_matrix(path, &mut arrays, "mixture")?.ok_or_else(|| lacks("mixture"))?;
                let marginal = take_vector::<f64>(path, &mut arrays, "marginal")?
                    .ok_or_else(|| lacks("marginal"))?;
                if marginal.len() != mixture.ncols() {
                    return Err(Failure::of(
                        path,
                        format!(
                            "`marginal` has {} entries, `mixture` {}",
                            marginal.len(),
                            mixture.ncols()
                        ),
                    ));
                }
                let given = DMatrix::from_fn(mixture.ncols(), mixture.nrows(), |y, z| {
                    mixture[(z, y)] * marginal[y]
                });
                let weights = ones(basis.ncols());
                let factors = if metadata["settings"]["given"] == 0 {
                    vec![given, basis]
                } else {
                    vec![basis, given]
                };
                Ok(Self {
                    weights,
                    factors,
                    scale: total,
                })
            }
            "nmf-kl" => {
                let w: DMatrix<f64> =
                    take_matrix(path, &mut arrays, "w")?.ok_or_else(|| lacks("w"))?;
                let h: DMatrix<f64> =
                    take_matrix(path, &mut arrays, "h")?.ok_or_else(|| lacks("h"))?;
                Ok(Self {
                    weights: ones(w.ncols()),
                    factors: vec![w, h.transpose()],
                    scale: 1.0,
                })
            }
            other => Err(Failure::of(
                path,
                format!("holds no model that can be reconstructed (`{other}`)"),
            )),
        }
        .and_then(|p| p.consistent(path))
    }

    fn consistent(self, path: &std::path::Path) -> Result<Self, Failure> {
        match self
            .factors
            .iter()
            .find(|f| f.ncols() != self.weights.len())
        {
            Some(f) => Err(Failure::of(
                path,
                format!(
                    "blocks of {} and {} components",
                    self.weights.len(),
                    f.ncols()
                ),
            )),
            None => Ok(self),
        }
    }

    fn with_model<O>(&self, f: impl FnOnce(&Model<'_, f64>) -> O) -> O {
        let factors: Vec<_> = self.factors.iter().map(Factor::Columns).collect();
        f(&Model {
            weights: Some(self.weights.as_slice()),
            factors: &factors,
        })
    }

    fn shape(&self) -> Vec<usize> {
        self.factors.iter().map(DMatrix::nrows).collect()
    }
}

/// An array of zeros of the model's shape, refused where it could not be held.
fn zeros(path: &std::path::Path, shape: &[usize]) -> Result<Vec<f64>, Failure> {
    let cells = shape
        .iter()
        .try_fold(1usize, |n, &m| n.checked_mul(m))
        .filter(|&n| n <= 1 << 34);
    let cells = cells.ok_or_else(|| {
        Failure::of(
            path,
            format!("an array of shape {shape:?} is too large to write"),
        )
    })?;
    Ok(vec![0.0; cells])
}

pub(crate) fn reconstruct(args: &ReconstructArgs) -> Result<(), Failure> {
    writable(&args.output, &["npy"])?;
    let product = Product::read(&args.model)?;
    let shape = product.shape();
    let mut values = zeros(&args.model, &shape)?;
    product.with_model(|model| {
        crate::data::for_each_cell(&shape, false, &mut values, |index, x| {
            *x = product.scale * model.cell(index)
        });
    });
    Ok(plca_io::write_npy(
        &args.output,
        &Array::new(shape, values),
    )?)
}

pub(crate) fn sample(args: &SampleArgs) -> Result<(), Failure> {
    writable(&args.output, &["npy"])?;
    let product = Product::read(&args.model)?;
    let shape = product.shape();
    let mut values = zeros(&args.model, &shape)?;
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let draws = usize::try_from(args.draws).map_err(Failure::usage)?;
    let events = product
        .with_model(|model| plca_em::sample_counts(model, draws, &mut rng))
        .map_err(|e| Failure::of(&args.model, e))?;
    for index in events.indices.chunks_exact(shape.len()) {
        values[index
            .iter()
            .zip(&shape)
            .fold(0, |at, (&i, &n)| at * n + i as usize)] += 1.0;
    }
    Ok(plca_io::write_npy(
        &args.output,
        &Array::new(shape, values),
    )?)
}

#[expect(clippy::print_stdout, reason = "the listing is the command's output")]
pub(crate) fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    let file = plca_io::read_model(&args.model)?;
    if args.json {
        let arrays: serde_json::Map<String, Value> = file
            .arrays
            .iter()
            .map(|(name, a)| (name.clone(), json!({ "shape": a.shape })))
            .collect();
        println!("{}", json!({ "arrays": arrays, "metadata": file.metadata }));
        return Ok(());
    }
    for (name, array) in &file.arrays {
        let (low, high) = array
            .values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| {
                (a.min(x), b.max(x))
            });
        println!(
            "{name:<12} {:<16} {low:.6} .. {high:.6}",
            format!("{:?}", array.shape)
        );
    }
    if let Value::Object(metadata) = &file.metadata {
        for (name, value) in metadata {
            println!("{name:<16} {value}");
        }
    }
    Ok(())
}

/// `2..12`, both ends included, or `2,4,8`.
fn ranks(spec: &str) -> Result<Vec<usize>, Failure> {
    let bad = || {
        Failure::usage(format!(
            "--ranks {spec}: A..B or A,B,C is needed, with A >= 1 and A <= B"
        ))
    };
    let number = |s: &str| {
        s.trim()
            .parse::<usize>()
            .ok()
            .filter(|&n| n > 0)
            .ok_or_else(bad)
    };
    let ranks: Vec<usize> = match spec.split_once("..") {
        Some((a, b)) => (number(a)?..=number(b.trim_start_matches('='))?).collect(),
        None => spec.split(',').map(number).collect::<Result<_, _>>()?,
    };
    if ranks.is_empty() {
        Err(bad())
    } else {
        Ok(ranks)
    }
}

pub(crate) fn select(args: &SelectArgs) -> Result<(), Failure> {
    on_threads(args.threads, || score(args))?
}

#[expect(clippy::print_stdout, reason = "the table is the command's output")]
fn score(args: &SelectArgs) -> Result<(), Failure> {
    if args.restarts == 0 {
        return Err(Failure::usage("--restarts 0: at least one start is needed"));
    }
    if args.criterion == Criterion::HeldOut {
        return Err(Failure::usage(
            "--criterion held-out is not available for this model",
        ));
    }
    let data: Data<f64> = load(&args.data, &args.hidden, None)?;
    let shape = data.shape().to_vec();
    if args.model != ModelName::Plca {
        crate::models::need_matrix(&args.data, model_name(args.model), &shape)?;
    }
    let stop = plca_em::Stop {
        max_iter: args.max_iter,
        tol: args.tol,
        ..Default::default()
    };
    let mut rows = Vec::new();
    for rank in ranks(&args.ranks)? {
        // The three models have one likelihood: PLSA and KL-NMF are other parameters of PLCA of order 2.
        let plca = plca_em::Plca::builder(rank).build()?;
        let best = plca_em::best_of(args.restarts, plca_fit::Direction::Maximise, |start| {
            let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
            rng.set_stream(start);
            plca.fit(&*data, &plca_em::PlcaInit::default(), &stop, &mut rng)
        })?;
        let order = ModelOrder::new(best.objective, &shape, rank, data.total());
        let score = if args.criterion == Criterion::Bic {
            order.bic
        } else {
            order.aic
        };
        rows.push(json!({
            "rank": rank, "score": score, "log_likelihood": best.objective, "parameters": order.parameters,
        }));
    }
    let best = rows.iter().min_by(|a, b| {
        a["score"]
            .as_f64()
            .unwrap_or(f64::NAN)
            .total_cmp(&b["score"].as_f64().unwrap_or(f64::NAN))
    });
    let best = best.map_or(Value::Null, |row| row["rank"].clone());
    let mut counts = true;
    data.for_each(&mut |_, x| counts &= x.fract() == 0.0);
    let criterion = if args.criterion == Criterion::Bic {
        "bic"
    } else {
        "aic"
    };
    let mut out = json!({ "model": model_name(args.model), "criterion": criterion, "best": best, "table": rows });
    if !counts && args.criterion == Criterion::Bic {
        out["warnings"] = json!([
            "the data are no counts: their sum, which BIC takes for a sample size, is arbitrary"
        ]);
    }
    if args.json {
        println!("{out}");
        return Ok(());
    }
    println!(
        "{:>5} {:>16} {:>18} {:>11}",
        "rank", criterion, "log_likelihood", "parameters"
    );
    for row in out["table"].as_array().into_iter().flatten() {
        let mark = if row["rank"] == out["best"] {
            " <- best"
        } else {
            ""
        };
        println!(
            "{:>5} {:>16.4} {:>18.4} {:>11}{mark}",
            row["rank"],
            row["score"].as_f64().unwrap_or(f64::NAN),
            row["log_likelihood"].as_f64().unwrap_or(f64::NAN),
            row["parameters"]
        );
    }
    Ok(())
}
