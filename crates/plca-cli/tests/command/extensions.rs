//! Reference vectors of what goes beyond the papers, through files.

use plca_io::ModelFile;
use serde_json::Value;

use crate::Folder;
use crate::golden::{array, cases, put};

/// Arrays by name; flags are 0 and 1.
fn leave<'a>(folder: &Folder, file: &str, arrays: impl IntoIterator<Item = (String, &'a Value)>) {
    let arrays = arrays.into_iter().map(|(name, v)| {
        let values = v["data"].as_array().unwrap().iter();
        let values: Vec<f64> = values
            .map(|x| x.as_f64().unwrap_or_else(|| f64::from(u8::from(x == true))))
            .collect();
        let shape = v["shape"].as_array().unwrap().iter();
        let shape: Vec<usize> = shape.map(|n| n.as_u64().unwrap() as usize).collect();
        (name, shape, values)
    });
    let arrays: Vec<_> = arrays.collect();
    let arrays: Vec<_> = (arrays.iter())
        .map(|(n, s, v)| (n.as_str(), &s[..], &v[..]))
        .collect();
    folder.arrays(file, &arrays);
}

/// The blocks of a point or a start, by our names.
fn blocks<'a>(v: &'a Value, ours: &dyn Fn(&str) -> String) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for (name, value) in v.as_object().unwrap() {
        match value.as_array() {
            Some(factors) => {
                let factors = factors.iter().enumerate();
                found.extend(factors.map(|(j, f)| (format!("factor_{j}"), f)));
            }
            None if value["data"].is_array() => found.push((ours(name), value)),
            None => {}
        }
    }
    found
}

fn near(what: &str, got: f64, want: f64, tol: f64) {
    let far = (got - want).abs();
    assert!(far <= tol * want.abs().max(1.0), "{what}: {got} {want}");
}

fn same(file: &ModelFile, want: &[(String, &Value)], tol: f64, what: &str) {
    for (name, block) in want {
        let (shape, values) = array(block);
        let got = &file.arrays[name];
        assert_eq!(got.shape, shape, "{what} {name}");
        for (got, want) in got.values.iter().zip(values) {
            near(&format!("{what}, {name}"), *got, want, tol);
        }
    }
}

/// Every point of a trajectory: a fit of so many iterations from `init.npz`.
pub(crate) fn trajectory(
    folder: &Folder,
    line: &str,
    case: &Value,
    objective: &str,
    ours: &dyn Fn(&str) -> String,
    tol: f64,
) {
    put(folder, "v.npy", &case["V"]);
    leave(folder, "init.npz", blocks(&case["init"], ours));
    for point in case["trajectory"].as_array().unwrap() {
        let n = point["iter"].as_u64().unwrap();
        let what = format!("{} after {n}", case["name"]);
        let summary = folder.json(&format!(
            "fit {line} --init init.npz --output out.npz --tol 0 --max-iter {n} --quiet"
        ));
        assert_eq!(summary["iterations"], n);
        let got = summary["objective"].as_f64().unwrap();
        near(&what, got, point[objective].as_f64().unwrap(), tol);
        same(&folder.model("out.npz"), &blocks(point, ours), tol, &what);
    }
}

#[test]
fn what_cannot_be_frozen_is_named() {
    let folder = Folder::with_counts();
    let basis = [0.5, 0.25, 0.3, 0.5, 0.2, 0.25];
    folder.arrays("init.npz", &[("basis", &[3, 2], &basis)]);
    folder.arrays(
        "flags.npz",
        &[("basis", &[3, 2], &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0])],
    );
    folder.arrays("mixture.npz", &[("mixture", &[2, 4], &[1.0; 8])]);
    folder.arrays("other.npz", &[("basis", &[2, 2], &[1.0; 4])]);
    folder.arrays("w.npz", &[("w", &[2, 2], &[1.0; 4])]);
    let fit = "fit plsa d.csv --init init.npz --output p.npz";
    folder.refuses(&format!(
        "
            2 | {fit} --freeze basis:x | --freeze basis:x | `x`
            2 | {fit} --freeze basis,basis:1 | --freeze basis:1 | named twice
            2 | {fit} --freeze mixture:1 | --freeze mixture:1 | no initial value
            2 | {fit} --freeze w:1 | --freeze w:1 | basis, mixture
            1 | {fit} --freeze mixture.npz | mixture.npz | no initial value
            1 | {fit} --freeze other.npz | other.npz | [2, 2]
            1 | {fit} --freeze w.npz | w.npz | basis, mixture
            1 | {fit} --freeze basis:1 --freeze flags.npz | flags.npz | `basis` | --freeze
        "
    ));
    folder.ok(&format!("{fit} --freeze basis:1 --max-iter 30"));
    let kept = |z: usize| {
        let got = &folder.model("p.npz").arrays["basis"].values;
        (0..3).all(|i| got[2 * i + z] == basis[2 * i + z])
    };
    assert!(kept(1) && !kept(0));
    folder.ok(&format!("{fit} --freeze flags.npz --max-iter 30"));
    assert_eq!(folder.model("p.npz").arrays["basis"].values[0], 0.5);
}

// [EXT 3]
#[test]
fn posteriors_explain_new_documents_and_choose_their_number() {
    let folder = Folder::with_counts();
    let prior = "--prior basis=dirichlet:0.5 --prior mixture=dirichlet:0.5";
    folder.ok(&format!(
        "fit plsa-vb d.csv --rank 2 {prior} --output p.npz"
    ));
    let summary = folder.json("transform p.npz d.csv --output new.npz --quiet");
    assert!(summary["perplexity"].as_f64().unwrap() < 3.5, "{summary}");
    let new = folder.model("new.npz");
    assert_eq!(new.arrays["mixture_shape"].shape, [2, 4]);
    assert_eq!(new.arrays["mixture"].shape, [2, 4]);
    assert!(!new.arrays.contains_key("basis_shape"));
    folder.ok("fit plca-vb d.csv --rank 2 --output q.npz");
    folder.ok("transform q.npz d.csv --output new.npz --quiet");
    let names: Vec<_> = folder.model("new.npz").arrays.into_keys().collect();
    assert_eq!(
        names,
        [
            "dropped",
            "factor_1",
            "factor_1_shape",
            "weights",
            "weights_shape"
        ]
    );
    folder.ok("reconstruct q.npz --output approx.npy");
    let total: f64 = folder.dense("approx.npy").values.iter().sum();
    near("mass", total, 42.0, 1e-12);
    for model in ["plca-vb", "plsa-vb"] {
        let table = folder.json(&format!("select {model} d.csv --ranks 1..2 --quiet"));
        assert!(table.to_string().contains("elbo"), "{table}");
    }
    folder.refuses(
        "
        2 | fit plsa-vb d.csv --rank 2 --prior w=dirichlet:1 --output p.npz | `w` | basis, mixture
        2 | fit plsa-vb d.csv --rank 2 --prior basis=dirichlet:0 --output p.npz | prior shape | 0
    ",
    );
}

// [EXT 7]
#[test]
fn neighbours_match_the_reference() {
    let text = include_str!("../../../testdata/golden/neighbours.json");
    let ours = |name: &str| name.to_string();
    let mut checked = 0;
    for case in cases(text).iter().filter(|case| case["kind"] == "samples") {
        let folder = Folder::new();
        let exact = if case["exact"] == true { ",exact" } else { "" };
        let prior = format!("neighbours:{}r{exact}", case["alpha_rel"]);
        let line = format!("plsa v.npy --prior mixture={prior}");
        trajectory(&folder, &line, case, "loglik_conditional", &ours, 1e-9);
        checked += 1;
    }
    assert_eq!(checked, 3);
    let folder = Folder::with_counts();
    let lag = [0.0, -1.0, 0.0, 0.0];
    folder.arrays(
        "lags.npz",
        &[
            ("factor_1.lag_1", &[2, 2], &lag),
            ("factor_1.lag_m2", &[2, 2], &lag),
        ],
    );
    folder.arrays(
        "bad.npz",
        &[("factor_1.lag_0", &[2, 2], &[1.0, 0.0, 0.0, 0.0])],
    );
    folder.arrays("name.npz", &[("factor_1.lag_x", &[2, 2], &lag)]);
    folder.arrays("weights.npz", &[("weights.lag_1", &[2, 2], &lag)]);
    folder.arrays(
        "groups.npz",
        &[
            ("factor_1.lag_1", &[2, 2], &[-0.25, 0.5, 0.5, -0.25]),
            ("factor_1.lag_m2", &[2, 2], &[-0.5, 1.0, 1.0, -0.5]),
        ],
    );
    let fit = "fit plca d.csv --rank 2 --output p.npz --max-iter 20 --priors";
    folder.ok(&format!("{fit} lags.npz"));
    folder.ok(&format!("{fit} groups.npz"));
    // The same as text.
    let groups = "factor_1=lagged:groups=0/1,between=1,within=.5,lags=1:.5/-2:1";
    folder.ok(&format!(
        "fit plca d.csv --rank 2 --output text.npz --max-iter 20 --prior {groups}"
    ));
    let of = |file| folder.model(file).arrays["factor_1"].values.clone();
    assert_eq!(of("text.npz"), of("p.npz"));
    folder.ok("fit plca d.csv --rank 2 --output plain.npz --max-iter 20");
    assert_ne!(of("text.npz"), of("plain.npz"));
    folder.refuses(&format!(
        "
            1 | {fit} bad.npz | bad.npz | `factor_1` | 1
            1 | {fit} name.npz | name.npz | lag_x
            1 | {fit} weights.npz | weights.npz | weights.lag_1
        "
    ));
}

// [EXT 6]
#[test]
fn signed_tensors_match_the_reference() {
    let text = include_str!("../../../testdata/golden/skellam_cp.json");
    let mut checked = 0;
    for case in &cases(text) {
        let folder = Folder::new();
        let is_vb = case["algorithm"] == "vb";
        leave(
            &folder,
            "mask.npz",
            [("mask".to_string(), &case["observed"])],
        );
        let mask = folder.model("mask.npz").arrays["mask"].clone();
        folder.npy("mask.npy", &mask.shape, &mask.values);
        let scaled = match case["scale_mode"].as_u64() {
            Some(mode) => format!("factor_{mode}"),
            None => "weights".into(),
        };
        let priors = case["prior"].as_object().unwrap().iter();
        let priors = priors.map(|(name, v)| match name.strip_prefix("gamma_") {
            Some(kind) => (format!("{scaled}.gamma_{kind}"), v),
            None => (format!("{name}.dirichlet"), v),
        });
        leave(&folder, "priors.npz", priors);
        let mut line = format!(
            "{} v.npy --mask mask.npy --replicates {} --signed-mode {} --priors priors.npz",
            if is_vb { "skellam-cp-vb" } else { "skellam-cp" },
            case["M"].as_str().unwrap(),
            case["signed_mode"],
        );
        if let Some(mode) = case["scale_mode"].as_u64() {
            line += &format!(" --scale-mode {mode}");
        }
        let ours = |name: &str| match name.strip_prefix("gamma_") {
            Some(kind) => format!("{scaled}_{kind}"),
            None => name.to_string(),
        };
        let objective = if is_vb { "elbo" } else { "objective" };
        trajectory(&folder, &line, case, objective, &ours, 1e-10);
        folder.ok("reconstruct out.npz --output approx.npy");
        assert_eq!(folder.dense("approx.npy").shape, mask.shape);
        folder.ok("transform out.npz v.npy --mask mask.npy --output new.npz --quiet --max-iter 3");
        checked += 1;
    }
    assert_eq!(checked, 6);
    let folder = Folder::new();
    folder.npy("v.npy", &[2, 2], &[1.0, -2.0, 3.0, 4.0]);
    let fit = "fit skellam-cp v.npy --rank 1 --output p.npz";
    folder.refuses(&format!(
        "
            2 | {fit} --signed-mode 2 | --signed-mode 2
            1 | {fit} --signed-mode 1 --scale-mode 1 | mode 1 is signed
            2 | {fit} --prior weights=dirichlet:1 | weights | gamma
        "
    ));
    folder.ok(&format!("{fit} --signed-mode 1"));
    folder.ok("transform p.npz v.npy --output new.npz --quiet");
    let names: Vec<_> = folder.model("new.npz").arrays.into_keys().collect();
    assert_eq!(names, ["dropped", "factor_0", "weights"]);
}

/// New data under learnt posteriors: those that were fitted have their own factor along every dimension that is not signed. [EXT 6]
#[test]
fn posteriors_of_tensors_explain_new_data() {
    let folder = Folder::new();
    let sides = [[9.0, -4.0, 0.0], [0.0, 3.0, -8.0]];
    let factors = [[[1.0, 3.0], [2.0, 0.5]], [[4.0, 1.0], [1.0, 5.0]]];
    let cells = (0..12).map(|at| {
        let (f, i, j) = (at / 4, at / 2 % 2, at % 2);
        (0..2)
            .map(|z| sides[z][f] * factors[0][z][i] * factors[1][z][j])
            .sum::<f64>()
    });
    let cells: Vec<f64> = cells.collect();
    folder.npy("v.npy", &[3, 2, 2], &cells);
    let fit = "fit skellam-cp-vb v.npy --rank 2 --accelerate squarem --tol 1e-13 --max-iter 20000 --quiet";
    folder.ok(&format!("{fit} --output p.npz"));
    let learnt = folder.model("p.npz");
    for along in [1, 2] {
        folder.ok(&format!(
            "transform p.npz v.npy --along {along} --solver squarem --tol 0 --max-iter 2000 --output new.npz --quiet"
        ));
        let new = folder.model("new.npz").arrays;
        let free = format!("factor_{along}");
        let names: Vec<&str> = new.keys().map(String::as_str).collect();
        let shape = format!("{free}_shape");
        let want = [
            "dropped",
            &free,
            &shape,
            "weights",
            "weights_rate",
            "weights_shape",
        ];
        assert_eq!(names, want);
        for name in [&*free, &*shape, "weights", "weights_shape"] {
            let (got, want) = (&new[name].values, &learnt.arrays[name].values);
            for (got, want) in got.iter().zip(want) {
                near(name, *got, *want, 1e-3);
            }
        }
    }
    folder.refuses("2 | transform p.npz v.npy --along 0 --output n.npz | --along 0");
    folder.ok(&format!("{fit} --scale-mode 1 --output s.npz"));
    folder.refuses("2 | transform s.npz v.npy --along 2 --output n.npz | --along 2 | dimension 1");
    folder.ok("transform s.npz v.npy --output n.npz --quiet");
    let names: Vec<_> = folder.model("n.npz").arrays.into_keys().collect();
    assert_eq!(
        names,
        ["dropped", "factor_1", "factor_1_rate", "factor_1_shape"]
    );
}

/// Kernels of two sides are annealed as the library does it; while their power moves nothing is extrapolated. [EXT 5]
#[test]
fn signed_kernels_are_annealed() {
    let folder = Folder::new();
    let cells: Vec<f64> = (0..20)
        .map(|i| f64::from((i * i * 7 + i) % 11) - 5.0)
        .collect();
    folder.npy("v.npy", &[4, 5], &cells);
    let fit = "fit siskellam v.npy --rank 2 --kernel 2x2 --quiet";
    folder.ok(&format!("{fit} --max-iter 1 --tol 0 --output plain.npz"));
    folder.ok(&format!(
        "{fit} --max-iter 1 --tol 0 --anneal 0.5,3 --output flat.npz"
    ));
    let [plain, flat] = ["plain.npz", "flat.npz"].map(|file| folder.model(file).arrays);
    assert_eq!(flat["activations"].values, plain["activations"].values);
    for (got, want) in (flat["atoms"].values.chunks(8)).zip(plain["atoms"].values.chunks(8)) {
        let sum: f64 = want.iter().map(|x| x.sqrt()).sum();
        for (got, want) in got.iter().zip(want) {
            near("atoms", *got, want.sqrt() / sum, 1e-14);
        }
    }
    folder.ok(&format!(
        "{fit} --anneal 0.5,3 --max-iter 50 --output m.npz"
    ));
    folder.refuses(&format!(
        "
            2 | {fit} --output x.npz --anneal 1.5,3 | --anneal 1.5 | (0, 1]
            2 | {fit} --output x.npz --anneal 0.5,0 | --anneal 0 | iterations
            2 | {fit} --output x.npz --anneal 0.5,3 --accelerate squarem | --accelerate | --anneal
        "
    ));
    let vb = "fit siskellam-vb v.npy --rank 2 --kernel 2x2 --output x.npz --anneal 0.5,3";
    folder.fails(2, vb, &["--anneal"]);
}

// [EXT 2]
#[test]
fn transformed_kernels_go_through_the_other_commands() {
    let folder = Folder::with_counts();
    folder.ok("fit tiplca d.csv --rank 2 --kernel 2x2 --angles 0,90 --max-iter 3 --output out.npz --quiet");
    folder.ok("transform out.npz d.csv --output new.npz --quiet --max-iter 5");
    assert!(folder.model("new.npz").arrays.contains_key("impulses"));
    folder.ok("reconstruct out.npz --output approx.npy");
    let fit = "fit tiplca d.csv --rank 1 --output p.npz --kernel";
    folder.ok(&format!("{fit} 2x2 --rotations 4 --mirror --max-iter 3"));
    assert_eq!(folder.model("p.npz").arrays["kernels"].shape, [1, 2, 2]);
    folder.fails(2, &format!("{fit} 2x2 --scales 0"), &["scale", "0"]);
    folder.fails(1, &format!("{fit} 2x2 --scales 9"), &["d.csv", "[2, 2]"]);
}

// [EXT 5]
#[test]
fn shifted_signed_kernels_match_the_reference() {
    let text = include_str!("../../../testdata/golden/skellam_shift.json");
    let ours = |name: &str| name.to_string();
    let mut checked = 0;
    for case in &cases(text) {
        let folder = Folder::new();
        let is_vb = case["algorithm"] == "vb";
        leave(
            &folder,
            "mask.npz",
            [("mask".to_string(), &case["observed"])],
        );
        let mask = folder.model("mask.npz").arrays["mask"].clone();
        folder.npy("mask.npy", &mask.shape, &mask.values);
        let priors = [
            ("atoms.dirichlet", "alpha"),
            ("activations.gamma_shape", "a"),
            ("activations.gamma_rate", "b"),
        ];
        let priors = priors.map(|(name, field)| (name.to_string(), &case[field]));
        leave(&folder, "priors.npz", priors);
        let sizes = |name: &str| {
            let sizes = case[name].as_array().unwrap().iter();
            sizes.map(|n| n.as_u64().unwrap()).collect::<Vec<_>>()
        };
        let (kernel, places) = (sizes("kernel_shape"), sizes("activation_shape"));
        let domains = mask.shape.iter().zip(kernel.iter().zip(&places));
        let domains = domains.map(|(&n, (&k, &m))| match m as i64 - n as i64 {
            0 if k > 1 => "same",
            more if more > 0 => "full",
            _ => "valid",
        });
        let kernel: Vec<_> = kernel.iter().map(u64::to_string).collect();
        let line = format!(
            "{} v.npy --mask mask.npy --replicates {} --kernel {} --support {} --priors priors.npz",
            if is_vb { "siskellam-vb" } else { "siskellam" },
            case["M"].as_str().unwrap(),
            kernel.join("x"),
            domains.collect::<Vec<_>>().join(","),
        );
        let objective = if is_vb { "elbo" } else { "objective" };
        trajectory(&folder, &line, case, objective, &ours, 1e-10);
        folder.ok("transform out.npz v.npy --output new.npz --quiet --max-iter 3");
        checked += 1;
    }
    assert_eq!(checked, 5);
}

#[test]
fn flags_of_frozen_entries_are_0_or_1() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --output start.npz --quiet");
    let factor = folder.model("start.npz").arrays["factor_0"].clone();
    for wrong in [2.0, 0.5, f64::NAN] {
        let mut flags = vec![0.0; factor.values.len()];
        flags[3] = wrong;
        folder.arrays("flags.npz", &[("factor_0", &factor.shape, &flags)]);
        folder.refuses("1 | fit plca d.csv --init start.npz --freeze flags.npz --output o.npz | flags.npz | factor_0 | [1, 1] | expected 1 where an entry is frozen");
    }
}

/// The means beside the shapes follow from them; components are where the model has them.
#[test]
fn posteriors_start_fits_and_are_inspected() {
    let folder = Folder::with_counts();
    for (model, shapes) in [
        ("plca-vb", "factor_0_shape"),
        ("plsa-vb", "mixture_shape"),
        ("skellam-vb", "atoms_shape"),
    ] {
        folder.ok(&format!(
            "fit {model} d.csv --rank 2 --output o.npz --quiet"
        ));
        folder.ok(&format!(
            "fit {model} d.csv --init o.npz --output p.npz --quiet"
        ));
        let said = folder.ok(&format!("inspect o.npz --array {shapes} --top 1"));
        assert_eq!(said.lines().count(), 2, "{model}: {said}");
    }
}

#[test]
fn transformed_kernels_beyond_reason_are_refused() {
    let folder = Folder::with_counts();
    folder.refuses("
        1 | fit tiplca d.csv --rank 1 --kernel 2x2 --angles 10 --scales 500 --output o.npz | do not fit into data
        1 | fit tiplca d.csv --rank 1 --kernel 2x2 --angles 10 --scales 1e300 --output o.npz | do not fit into data
        1 | fit tiplca d.csv --rank 1 --kernel 2x2 --angles 10 --scales 1e9 --positions full --output o.npz | do not fit into data
    ");
}
