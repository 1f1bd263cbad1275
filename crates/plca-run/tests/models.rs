//! Every model by its name, of both scalars.

use plca_fit::{Init, Stop, blocks::Frozen, setting::SettingValue};
use plca_priors::PriorSpec;
use plca_run::{
    Family, ModelEntry, Options, Request, RunError, Scalar, Takes, families, family, kernel_of,
    model, models,
};
use plca_tensor::{DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

const SHAPE: [usize; 2] = [6, 5];

fn data<T: Scalar>() -> DenseTensor<T> {
    let values = (0..30).map(|i| T::lit(f64::from(1 + i * i % 7)));
    DenseTensor::new(SHAPE.to_vec(), values.collect(), Order::RowMajor).unwrap()
}

/// What is needed to make a model.
fn request(entry: &ModelEntry) -> Request {
    let mut options = Options::default();
    if entry.kernels.is_some() {
        options.set("kernel", kernel_of(&[2, 2]));
    }
    Request {
        components: 2,
        options,
        ..Request::default()
    }
}

fn fitted<T: Scalar>(entry: &ModelEntry, request: &Request) -> f64 {
    let model = entry.build(request, &SHAPE).unwrap();
    assert_eq!(model.components(), 2);
    let data = data::<T>();
    let run = T::of(&*model).model().on(&data).unwrap();
    let run = run.stop(Stop::default().max_iter(3).tol(None));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    run.run(Init::default(), &mut rng).unwrap().objective()
}

#[test]
fn every_model_is_made_by_its_name_and_fits() {
    for entry in models() {
        assert_eq!(model(entry.name).map(|found| found.name), Some(entry.name));
        let request = request(entry);
        let (double, single) = (
            fitted::<f64>(entry, &request),
            fitted::<f32>(entry, &request),
        );
        let apart = (double - single).abs() / double.abs().max(1.0);
        assert!(apart < 1e-2, "{}: {double} {single}", entry.name);
    }
}

/// Words of a command line for a setting, other than its default.
fn words(name: &str) -> Option<&'static str> {
    Some(match name {
        "temper" => "0.9",
        "temper_prior" | "real_data" | "mirror" | "no_normalise" => "",
        "missing_method" => "imputation",
        "given" => "0",
        "update" | "kernel" => return None,
        "m" => "3",
        "floor" => "0.25",
        "signed_mode" => "1",
        "scale_mode" => "0",
        "domain" => "full",
        "likelihood" => "literal",
        "anneal" => "0.7,5",
        "impulse_power" => "1.5",
        "rotations" => "4",
        "angles" => "30.5",
        "scales" => "1.25",
        "positions" => "full",
        "sparsity" => "factor_0=0.125",
        "seeding" => "random",
        other => panic!("{other}: say its words here"),
    })
}

/// Each setting by name changes the model, and the file that has it makes the same model again.
#[test]
fn settings_by_name_are_those_of_files() {
    for entry in models() {
        let (specs, plain) = (entry.specs(), request(entry));
        let made = |options: &Options| {
            let request = Request {
                options: options.clone(),
                ..plain.clone()
            };
            entry
                .build(&request, &SHAPE)
                .map(|model| format!("{model:?}"))
        };
        let usual = made(&plain.options).unwrap();
        for spec in &specs {
            let Some(words) = words(spec.name) else {
                continue;
            };
            let mut options = plain.options.clone();
            let value = match spec.flag {
                true => SettingValue::Flag(true),
                false => (spec.words)(words).unwrap(),
            };
            options.add(spec, value);
            let what = format!("{} {}", entry.name, spec.name);
            let changed = made(&options).unwrap_or_else(|e| panic!("{what}: {e}"));
            // The only treatment of missing cells, of models that have one.
            let only = spec.name == "missing_method";
            assert!(only || changed != usual, "{what}");
            let json = serde_json::Value::Object(options.to_json(&specs));
            assert_eq!(Options::of_json(&json, &specs), options, "{what}: {json}");
        }
    }
}

#[test]
fn what_a_model_does_not_have_is_refused() {
    for entry in models() {
        let mut other = request(entry);
        other.options.set("colour", SettingValue::Number(1.0));
        let refused = entry.build(&other, &SHAPE).unwrap_err();
        assert!(
            matches!(&refused, RunError::Unknown { name, .. } if name == "colour"),
            "{refused}"
        );
        let mut none = request(entry);
        none.components = 0;
        assert!(entry.build(&none, &SHAPE).is_err(), "{}", entry.name);
        for spec in entry.specs().iter().filter(|spec| !spec.choices.is_empty()) {
            let mut wrong = request(entry);
            wrong
                .options
                .set(spec.name, SettingValue::Text("no such word".into()));
            let refused = entry.build(&wrong, &SHAPE).unwrap_err().to_string();
            assert!(
                refused.contains(spec.name) && refused.contains("no such word"),
                "{refused}"
            );
        }
    }
}

/// Blocks with priors are blocks of the model, in the shape that they have.
#[test]
fn blocks_with_priors_have_their_shapes() {
    for entry in models() {
        let plain = request(entry);
        let blocks = entry.prior_blocks(2, &plain.options, &SHAPE).unwrap();
        let model = entry.build(&plain, &SHAPE).unwrap();
        let data = data::<f64>();
        let bound = f64::of(&*model).model().bind(&data).unwrap();
        for block in blocks {
            let found = bound
                .blocks()
                .iter()
                .find(|spec| block.is_called(&spec.name));
            let found = found.unwrap_or_else(|| panic!("{} {}", entry.name, block.name));
            assert_eq!(found.shape, block.size, "{} {}", entry.name, block.name);
            let text = match block.law {
                plca_run::Law::Gamma(_) => "gamma:2,0.5",
                plca_run::Law::Rates => "rate:0.1",
                _ => "dirichlet:2",
            };
            let prior: PriorSpec = block.read(text).unwrap();
            let mut with = plain.clone();
            with.priors = vec![(block.name.clone(), prior)];
            let model = entry.build(&with, &SHAPE).unwrap();
            assert!(
                f64::of(&*model).model().bind(&data).is_ok(),
                "{} {}",
                entry.name,
                block.name
            );
        }
    }
}

#[test]
fn frozen_blocks_are_those_of_a_start() {
    for entry in models().iter().filter(|entry| entry.has("fix")) {
        let block = entry.free_blocks(2).swap_remove(0);
        let mut frozen = request(entry);
        frozen.frozen = vec![(block.clone(), Frozen::Whole)];
        let model = entry.build(&frozen, &SHAPE).unwrap();
        let data = data::<f64>();
        // Nothing gives it.
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let run = f64::of(&*model).model().on(&data).unwrap();
        let refused = run.run(Init::default(), &mut rng).unwrap_err().to_string();
        assert!(refused.contains(&block), "{}: {refused}", entry.name);
    }
}

#[test]
fn models_of_matrices_and_signs_say_so() {
    let by = |name: &str| model(name).unwrap();
    assert!(by("plsa").matrix && !by("plca").matrix);
    assert_eq!(by("skellam").takes, Takes::SignedMatrix);
    assert_eq!(by("plca-vb").objective(true), "elbo");
    assert!(by("nmf-kl").has("transpose") && !by("plca").has("transpose"));
}

/// Every model is chosen by a name and at most one switch, and says which.
#[test]
fn names_and_switches_choose_every_model() {
    for entry in models() {
        let called = entry.called();
        let words: Vec<&str> = called.split(' ').collect();
        let chosen = match words[..] {
            [name] => family(name).map(Family::usual),
            [name, switch, word] => {
                let family = family(name).unwrap();
                assert_eq!(switch.strip_prefix("--"), family.switch);
                family.model(word)
            }
            _ => None,
        };
        assert_eq!(chosen.map(|other| other.name), Some(entry.name), "{called}");
    }
    let names =
        "nmf plca plsa lda siplca tiplca skellam skellam-cp siskellam pntf snmf-ding kmeans";
    for name in names.split(' ') {
        assert!(
            families().iter().any(|family| family.name == name),
            "{name}"
        );
    }
    assert!(family("nmf-kl").is_none());
    let lda = family("lda").unwrap();
    assert_eq!(lda.usual().called(), "plsa --method vb");
    assert!(lda.shapes_by_rank && !family("plsa").unwrap().shapes_by_rank);
}
