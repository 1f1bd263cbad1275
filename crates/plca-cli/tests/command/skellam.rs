//! The models of signed data: what they take, what they refuse, and that runs are alike.

use crate::Folder;

/// A folder with whole numbers of either sign in `d.csv`.
fn signed() -> Folder {
    let folder = Folder::new();
    folder.text("d.csv", "3,-1,4,1,-5\n-9,2,-6,5,3\n5,-8,9,-7,9\n");
    folder
}

fn blocks(folder: &Folder, file: &str, name: &str) -> Vec<f64> {
    folder.model(file).arrays[name].values.clone()
}

/// `Σ_fs atoms = 1`, and the approximation is `(T⁺ - T⁻) H`.
#[test]
fn the_approximation_is_the_product_of_signed_atoms_and_activations() {
    let folder = signed();
    folder.ok("fit skellam d.csv --rank 2 --output o.npz --quiet");
    let (atoms, h) = (
        blocks(&folder, "o.npz", "atoms"),
        blocks(&folder, "o.npz", "activations"),
    );
    for k in 0..2 {
        let sum: f64 = (0..3)
            .map(|f| atoms[4 * f + 2 * k] + atoms[4 * f + 2 * k + 1])
            .sum();
        assert!((sum - 1.0).abs() < 1e-14, "{sum}");
    }
    folder.ok("reconstruct o.npz --output v.npy");
    let v = folder.dense("v.npy").values;
    for f in 0..3 {
        for n in 0..5 {
            let cell = |k: usize| (atoms[4 * f + 2 * k] - atoms[4 * f + 2 * k + 1]) * h[5 * k + n];
            assert!((v[5 * f + n] - cell(0) - cell(1)).abs() < 1e-12);
        }
    }
}

#[test]
fn hidden_cells_are_never_read_however_they_are_hidden() {
    let folder = Folder::new();
    folder.npy("a.npy", &[2, 3], &[1.0, f64::NAN, -3.0, 4.0, 5.0, -6.0]);
    folder.npy("b.npy", &[2, 3], &[1.0, 1e300, -3.0, 4.0, 5.0, -6.0]);
    folder.npy("seen.npy", &[2, 3], &[1.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
    folder.text("c.tns", "1 1 1\n1 3 -3\n2 1 4\n2 2 5\n2 3 -6\n");
    folder.text("twice.tns", "1 1 3\n1 1 -2\n1 3 -3\n2 1 4\n2 2 5\n2 3 -6\n");
    for model in [
        "skellam --replicates 1",
        "skellam",
        "skellam-vb --replicates 1",
        "skellam-vb",
    ] {
        let mut found = Vec::new();
        for data in [
            "a.npy --missing nan",
            "b.npy --mask seen.npy",
            "c.tns --missing unstored",
            "twice.tns --missing unstored",
        ] {
            folder.ok(&format!(
                "fit {model} {data} --rank 1 --tol 0 --max-iter 20 --output o.npz --quiet"
            ));
            found.push(blocks(&folder, "o.npz", "atoms"));
        }
        assert_eq!(found[0], found[1], "{model}");
        // Lists of cells are added up in another order.
        for other in &found[2..] {
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12;
            assert!(found[0].iter().zip(other).all(near), "{model}");
        }
    }
    // Without a word unstored cells are zeros.
    folder.npy("z.npy", &[2, 3], &[1.0, 0.0, -3.0, 4.0, 5.0, -6.0]);
    for data in ["z.npy", "c.tns"] {
        folder.ok(&format!(
            "fit skellam {data} --rank 1 --tol 0 --max-iter 5 --output {data}.npz --quiet"
        ));
    }
    assert_eq!(
        blocks(&folder, "z.npy.npz", "atoms"),
        blocks(&folder, "c.tns.npz", "atoms")
    );
    folder.refuses(
        "
            1 | fit snmf-ding a.npy --missing nan --rank 1 --output o.npz --quiet | a.npy | cell
            1 | fit kmeans a.npy --missing nan --rank 1 --output o.npz --quiet | a.npy | cell
        ",
    );
}

#[test]
fn bad_data_and_starts_are_refused_by_place_and_value() {
    let folder = signed();
    folder.npy("nan.npy", &[1, 2], &[1.0, f64::NAN]);
    folder.npy("inf.npy", &[1, 2], &[1.0, f64::INFINITY]);
    folder.npy("half.npy", &[1, 2], &[1.0, -0.5]);
    folder.npy("huge.npy", &[1, 2], &[1.0, -1e200]);
    folder.npy("cube.npy", &[1, 1, 2], &[1.0, -1.0]);
    for model in ["skellam", "skellam-vb"] {
        let fit = |data: &str| format!("1 | fit {model} {data} --rank 1 --output o.npz --quiet");
        folder.refuses(&format!(
            "
            {} | nan.npy | [0, 1] | --missing nan
            {} | inf.npy | inf
            {} | huge.npy | [0, 1] | 1e150
            {} | cube.npy | matrix | [1, 1, 2]
            {} | half.npy | [0, 1] | -0.5 | whole
            ",
            fit("nan.npy"),
            fit("inf.npy"),
            fit("huge.npy --replicates 1"),
            fit("cube.npy"),
            fit("half.npy --replicates 1")
        ));
        folder.ok(&format!(
            "fit {model} half.npy --replicates 2 --rank 1 --output o.npz --quiet"
        ));
        folder.ok(&format!(
            "fit {model} half.npy --replicates 1 --real-data --rank 1 --output o.npz --quiet"
        ));
        std::fs::remove_file(folder.path("o.npz")).unwrap();
    }
    let start = |atoms: &[f64], h: &[f64]| {
        let atoms: (&str, &[usize], &[f64]) = ("atoms", &[3, 1, 2], atoms);
        folder.arrays("init.npz", &[atoms, ("activations", &[1, 5], h)]);
    };
    let line = "fit skellam d.csv --init init.npz --output o.npz --quiet";
    start(&[1.0, 1.0, 1.0, 1.0, 1.0, 0.0], &[1.0; 5]);
    let limit = &format!("{line} --replicates inf");
    folder.fails(1, limit, &["init.npz", "[2, 1]", "-8"]);
    // Noise explains what the start does not.
    folder.ok(line);
    std::fs::remove_file(folder.path("o.npz")).unwrap();
    start(&[1.0, 1.0, 1.0, -1.0, 1.0, 1.0], &[1.0; 5]);
    folder.fails(1, line, &["init.npz", "`atoms`", "-1"]);
    start(&[0.0; 6], &[1.0; 5]);
    folder.fails(1, line, &["init.npz", "`atoms`"]);
    start(&[1.0; 6], &[1.0, 1.0, f64::NAN, 1.0, 1.0]);
    folder.fails(1, line, &["init.npz", "`activations`", "NaN"]);
    folder.arrays("init.npz", &[("activations", &[1, 4], &[1.0; 4])]);
    folder.fails(1, line, &["init.npz", "`activations`", "1x4", "1x5"]);
    folder.arrays("init.npz", &[("atoms", &[3, 2], &[1.0; 6])]);
    folder.fails(1, line, &["init.npz", "`atoms`", "F x K x 2"]);
    folder.arrays("init.npz", &[("weights", &[2], &[1.0; 2])]);
    folder.fails(1, line, &["init.npz", "`weights`", "atoms, activations"]);
    folder.arrays("init.npz", &[("activations_shape", &[2, 5], &[0.0; 10])]);
    let vb = "fit skellam-vb d.csv --init init.npz --output o.npz --quiet";
    folder.fails(1, vb, &["init.npz", "`activations_shape`", "0"]);
}

#[test]
fn bad_settings_are_refused() {
    let folder = signed();
    // Models of non-negative data refuse the others first.
    folder.text("p.csv", "1,2\n3,4\n");
    folder.refuses("
        2 | fit skellam d.csv --rank 2 --replicates 0 --output o.npz --quiet | --replicates | `0`
        2 | fit skellam d.csv --rank 2 --replicates 1.5 --output o.npz --quiet | --replicates | 1.5
        2 | fit skellam d.csv --rank 2 --replicates many --output o.npz --quiet | --replicates | many
        2 | fit skellam d.csv --rank 0 --output o.npz --quiet | --rank 0 | one component
        2 | fit skellam d.csv --output o.npz --quiet | --rank | --init
        2 | fit skellam d.csv --rank 2 --floor nan --output o.npz --quiet | --floor | NaN
        2 | fit skellam d.csv --rank 2 --given 0 --output o.npz --quiet | skellam | --given
        2 | fit skellam d.csv --rank 2 --temper 0.5 --output o.npz --quiet | skellam | --temper
        2 | fit skellam d.csv --rank 2 --kkt-tol 1e-3 --output o.npz --quiet | skellam | --kkt-tol
        2 | fit skellam d.csv --rank 2 --seeding random --output o.npz --quiet | skellam | --seeding
        2 | fit skellam d.csv --rank 2 --freeze atoms --output o.npz --quiet | --freeze atoms | initial
        2 | fit skellam d.csv --rank 2 --prior atoms=dirichlet:0 --output o.npz --quiet | prior | 0
        2 | fit skellam d.csv --rank 2 --prior atoms=dirichlet:-1 --output o.npz --quiet | prior | -1
        2 | fit skellam d.csv --rank 2 --prior activations=gamma:1,-1 --output o.npz --quiet | prior | -1
        2 | fit skellam d.csv --rank 2 --prior activations=gamma:0,1 --output o.npz --quiet | prior | 0
        2 | fit skellam d.csv --rank 2 --prior activations=gamma:1 --output o.npz --quiet | --prior | SHAPE,RATE
        2 | fit skellam d.csv --rank 2 --prior atoms=entropic:1 --output o.npz --quiet | --prior | entropic
        2 | fit skellam d.csv --rank 2 --prior atoms=dirichlet:1 --prior atoms=dirichlet:2 --output o.npz --quiet | atoms | already
        2 | fit skellam d.csv --rank 2 --prior w=dirichlet:1 --output o.npz --quiet | --prior | `w`
        2 | fit skellam-vb d.csv --rank 2 --prior activations=gamma:1,0 --output o.npz --quiet | prior | 0
        2 | fit skellam-vb d.csv --rank 2 --floor 0.1 --output o.npz --quiet | skellam-vb | --floor
        2 | fit snmf-ding d.csv --rank 2 --replicates 1 --output o.npz --quiet | snmf-ding | --replicates
        2 | fit snmf-ding d.csv --rank 2 --accelerate squarem --output o.npz --quiet | snmf-ding | --accelerate
        2 | fit kmeans d.csv --rank 2 --prior atoms=dirichlet:1 --output o.npz --quiet | kmeans | --prior
        2 | fit kmeans d.csv --rank 2 --real-data --output o.npz --quiet | kmeans | --real-data
        2 | fit plca p.csv --rank 2 --replicates 1 --output o.npz --quiet | plca | --replicates
        2 | fit nmf-kl p.csv --rank 2 --floor 1 --output o.npz --quiet | nmf-kl | --floor
        1 | fit kmeans d.csv --rank 6 --output o.npz --quiet | d.csv | samples
    ");
    folder.ok("fit skellam d.csv --rank 2 --prior activations=gamma:1,0 --output o.npz --quiet");
}

#[test]
fn fixed_atoms_stay_bit_for_bit_and_transform_explains_by_them() {
    let folder = signed();
    folder.text("new.csv", "1,-2\n-3,4\n5,-6\n");
    for (model, atoms, found) in [
        ("skellam --replicates 1", "atoms", "activations"),
        // New columns have a noise of their own by default.
        ("skellam --replicates inf", "atoms", "activations"),
        (
            "skellam-vb --replicates 1",
            "atoms_shape",
            "activations_shape",
        ),
        ("skellam-vb", "atoms_shape", "activations_shape"),
    ] {
        folder.ok(&format!(
            "fit {model} d.csv --rank 2 --output o.npz --quiet"
        ));
        let old = folder.model("o.npz").arrays[atoms].clone();
        folder.arrays("init.npz", &[(atoms, &old.shape, &old.values)]);
        let exact = "--tol 1e-13 --max-iter 100000 --quiet";
        folder.ok(&format!(
            "fit {model} new.csv --init init.npz --freeze {atoms} --accelerate squarem --output fixed.npz {exact}"
        ));
        let fixed = folder.model("fixed.npz");
        assert_eq!(fixed.arrays[atoms], old, "{model}");
        let summary = folder.json(&format!("transform o.npz new.csv --output n.npz {exact}"));
        let new = folder.model("n.npz");
        assert!(!new.arrays.contains_key(atoms), "{model}");
        // The objective is concave in the activations.
        let (a, b) = (&summary["objective"], &fixed.metadata["objective"]);
        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
        assert!((a - b).abs() <= 1e-6 * b.abs(), "{model}: {a} {b}");
        assert_eq!(new.arrays[found].shape, [2, 2], "{model}");
    }
    folder.text("wide.csv", "1,-2\n-3,4\n");
    folder.refuses(
        "
            1 | transform o.npz wide.csv --output n.npz --quiet | wide.csv | 2 x 2 | 3
            2 | transform o.npz new.csv --along 0 --output n.npz --quiet | --along 0
        ",
    );
    folder.ok("fit kmeans d.csv --rank 2 --output k.npz --quiet");
    // The samples of a fit of k-means lie where the fit has put them.
    folder.ok("transform k.npz d.csv --output n.npz --quiet");
    let [fit, again] = ["k.npz", "n.npz"].map(|file| folder.model(file).arrays["labels"].clone());
    assert_eq!(fit.values, again.values);
    folder.refuses("2 | transform k.npz d.csv --along 0 --output n.npz --quiet | --along 0");
}

/// Columns that two atoms made: the bound does not ask for a third.
#[test]
fn the_bound_selects_the_number_of_components() {
    let folder = Folder::new();
    let rows: Vec<String> = (0..6)
        .map(|f| {
            let cell = |n: usize| {
                let size = if n % 2 == f / 3 { 40 * (n + 1) } else { 0 };
                if f % 2 == 0 {
                    size as i64
                } else {
                    -(size as i64)
                }
            };
            let cells: Vec<String> = (0..12).map(|n| cell(n).to_string()).collect();
            cells.join(",")
        })
        .collect();
    folder.text("d.csv", &rows.join("\n"));
    let line = "select skellam-vb d.csv --replicates 1 --prior activations=gamma:1,0.001 --prior atoms=dirichlet:0.3 --ranks 1..4";
    let table = folder.json(&format!("{line} --criterion elbo --restarts 4 --quiet"));
    assert_eq!(
        (table["best"].as_u64(), table["criterion"].as_str()),
        (Some(2), Some("elbo"))
    );
    assert_eq!(table["table"].as_array().unwrap().len(), 4);
    folder.refuses(&format!(
        "
            2 | {line} --criterion bic | --criterion elbo
            2 | select skellam d.csv --ranks 1..2 | skellam | scores
            2 | select plca d.csv --ranks 1..2 --replicates 1 | plca | --replicates
        "
    ));
}

/// Means of draws tend to the approximation; real data have no law.
#[test]
fn draws_have_the_mean_of_the_model() {
    let folder = signed();
    folder.ok("fit skellam d.csv --replicates 1 --rank 2 --output o.npz --quiet");
    folder.ok("reconstruct o.npz --output v.npy");
    folder.ok("sample o.npz --draws 1000000 --output s.npy");
    let (mean, drawn) = (folder.dense("v.npy"), folder.dense("s.npy"));
    for (m, s) in mean.values.iter().zip(&drawn.values) {
        assert_eq!(s.fract(), 0.0);
        // Rates are below 1000: six standard errors.
        assert!(
            (s / 1e6 - m).abs() < 6.0 * (1000f64 / 1e6).sqrt(),
            "{s} {m}"
        );
    }
    folder.ok("fit skellam d.csv --rank 2 --output o.npz --quiet");
    folder.refuses("2 | sample o.npz --draws 1 --output s2.npy | no distribution");
    folder.ok("fit snmf-ding d.csv --rank 2 --output o.npz --quiet");
    folder.refuses("1 | sample o.npz --draws 1 --output s2.npy | o.npz | distribution");
}

#[test]
fn accelerated_runs_reach_at_least_as_far() {
    let folder = signed();
    for model in ["skellam --replicates 1", "skellam-vb"] {
        let objective = |options: &str| {
            let line =
                format!("fit {model} d.csv --rank 2 --tol 0 --max-iter 40 --output o.npz --quiet");
            let summary = folder.json(&format!("{line} {options}"));
            summary["objective"].as_f64().unwrap()
        };
        let plain = objective("");
        for fast in ["squarem", "parabolic", "momentum"] {
            let reached = objective(&format!("--accelerate {fast}"));
            assert!(
                reached > plain - 1e-9 * plain.abs(),
                "{model} {fast}: {reached} {plain}"
            );
        }
    }
}

#[test]
fn priors_broadcast_from_their_end_and_set_their_block_alone() {
    let folder = Folder::with_counts();
    let row = [1.0, 2.0, 3.0, 1.5];
    folder.arrays("row.npz", &[("activations.gamma_shape", &[4], &row)]);
    folder.arrays(
        "column.npz",
        &[("activations.gamma_shape", &[2, 1], &[2.0, 3.0])],
    );
    let all = [row, row].concat();
    folder.arrays("all.npz", &[("activations.gamma_shape", &[2, 4], &all)]);
    folder.arrays("long.npz", &[("activations.gamma_shape", &[5], &[1.0; 5])]);
    let line = "fit skellam d.csv --rank 2 --max-iter 3 --tol 0 --quiet --output o.npz";
    let fit = |priors: &str| {
        folder.ok(&format!("{line} --priors {priors}"));
        folder.model("o.npz").arrays
    };
    assert_eq!(fit("row.npz"), fit("all.npz"));
    assert_ne!(fit("column.npz"), fit("all.npz"));
    folder.refuses(&format!(
        "
            1 | {line} --priors long.npz | long.npz | gamma_shape
            2 | {line} --prior x | x
            2 | {line} --prior w=gamma:1,1 | w=gamma:1,1
            2 | {line} --prior atoms=gamma:1,1 | atoms=gamma:1,1
            2 | {line} --prior atoms=dirichlet | atoms=dirichlet
            2 | {line} --prior activations=gamma:1 | activations=gamma:1
            2 | {line} --prior atoms=dirichlet:x | atoms=dirichlet:x
        "
    ));
}

/// The sum of signed data may be negative: models of them are read again all the same.
#[test]
fn models_of_data_with_a_negative_sum_come_back() {
    let folder = Folder::new();
    folder.text("d.csv", "1,-20,3\n-4,6,0\n");
    for model in ["skellam", "skellam-vb", "snmf-ding"] {
        folder.ok(&format!(
            "fit {model} d.csv --rank 1 --output o.npz --quiet"
        ));
        folder.ok("reconstruct o.npz --output r.npy");
        if model != "snmf-ding" {
            folder.ok("transform o.npz d.csv --output n.npz --quiet");
        }
    }
}

/// One pattern in a bump of time and noise, `8 x 60`.
fn noisy() -> Vec<f64> {
    let mut state = 12345u64;
    let mut uniform = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let pattern: Vec<f64> = (0..8).map(|_| normal()).collect();
    let bump = |t: usize| (std::f64::consts::PI * t as f64 / 60.0).sin().powi(4);
    let mut v = Vec::new();
    for own in pattern {
        v.extend((0..60).map(|t| 10.0 * own * bump(t) + normal()));
    }
    v
}

/// How real data were taken is in the file, and what the rates sum to also in the summary; without a bound a warning tells where they ran away.
#[test]
fn bounds_and_rates_that_run_away() {
    let folder = Folder::new();
    folder.npy("v.npy", &[8, 60], &noisy());
    for (model, more) in [
        ("skellam", ""),
        ("skellam-cp", ""),
        ("siskellam", "--kernel 8x1"),
    ] {
        let fit = |m: &str| {
            let line = format!(
                "fit {model} v.npy --rank 3 {more} {m} --accelerate momentum --tol 1e-9 --max-iter 600 --seed 1 --output o.npz --quiet"
            );
            let summary = folder.json(&line);
            let file = folder.model("o.npz").metadata;
            let warned = file["warnings"].to_string().contains("both rates");
            (summary, file, warned)
        };
        let (summary, file, warned) = fit("");
        let rates = summary["cancellation"].as_f64().unwrap();
        assert!(rates <= 6.0 + 1e-9 && !warned, "{model} {rates}");
        assert_eq!((&file["m"], &file["bound"]), (&"inf".into(), &6.0.into()));
        assert_eq!(file["settings"]["m"], "auto");
        assert_eq!(file["cancellation"], summary["cancellation"]);
        let (summary, file, warned) = fit("--replicates inf");
        let rates = summary["cancellation"].as_f64().unwrap();
        assert!(rates > 10.0 && warned, "{model} {rates}");
        assert_eq!((&file["m"], file["bound"].is_null()), (&"inf".into(), true));
        assert_eq!(file["settings"]["m"], "inf");
        let (_, file, warned) = fit("--replicates 1 --real-data");
        assert_eq!((&file["m"], file["bound"].is_null()), (&"1".into(), true));
        assert!(!warned);
    }
    // Priors have a unit: in that of the data they bound the rates, in another they do not.
    let small: Vec<f64> = noisy().iter().map(|x| 1e-9 * x).collect();
    folder.npy("small.npy", &[8, 60], &small);
    let warned = |data: &str, prior: &str| {
        let line = format!("fit skellam-vb {data} --rank 3 {prior} --seed 1 --output o.npz");
        let summary = folder.json(&format!("{line} --quiet"));
        let rates = summary["cancellation"].as_f64().unwrap();
        let warnings = folder.model("o.npz").metadata["warnings"].to_string();
        assert_eq!(
            warnings.contains("the priors do not bound them"),
            rates > 10.0
        );
        rates > 10.0
    };
    assert!(warned("small.npy", ""));
    assert!(!warned("small.npy", "--prior activations=gamma:1,1e9"));
    assert!(!warned("v.npy", "--prior activations=gamma:1,1"));
}

/// New data in small units are explained as well as the same in other units, and files without a word about the noise are of the limit.
#[test]
fn new_data_in_small_units() {
    let folder = Folder::new();
    let v = noisy();
    folder.npy("v.npy", &[8, 60], &v);
    folder.npy(
        "small.npy",
        &[8, 60],
        &v.iter().map(|x| x * 2f64.powi(-45)).collect::<Vec<_>>(),
    );
    folder.ok("fit skellam v.npy --rank 2 --seed 1 --output o.npz --quiet");
    let explained = |data: &str| {
        folder.ok(&format!("transform o.npz {data} --output t.npz --quiet"));
        blocks(&folder, "t.npz", "activations")
    };
    let small = explained("small.npy");
    let one: Vec<f64> = explained("v.npy")
        .iter()
        .map(|h| h * 2f64.powi(-45))
        .collect();
    assert_eq!(one, small);
    let fitted = |data: &str| {
        folder.ok(&format!(
            "fit skellam {data} --rank 2 --seed 1 --output s.npz --quiet"
        ));
        blocks(&folder, "s.npz", "atoms")
    };
    assert_eq!(fitted("v.npy"), fitted("small.npy"));
}

/// Of several starts the same is the best in every unit: the constant of the objective does not hide what they differ by.
#[test]
fn the_best_start_has_no_unit() {
    let folder = Folder::new();
    let small: Vec<f64> = noisy().iter().map(|v| v * 2f64.powi(-80)).collect();
    folder.npy("v.npy", &[8, 60], &noisy());
    folder.npy("small.npy", &[8, 60], &small);
    let atoms = |data: &str, more: &str| {
        folder.json(&format!(
            "fit skellam {data} --rank 4 --max-iter 20 --seed 3 --output o.npz --quiet {more}"
        ));
        folder.model("o.npz").arrays["atoms"].values.clone()
    };
    assert_eq!(
        atoms("v.npy", "--restarts 6"),
        atoms("small.npy", "--restarts 6")
    );
    // The first start is not the best.
    assert_ne!(atoms("v.npy", "--restarts 6"), atoms("v.npy", ""));
}
