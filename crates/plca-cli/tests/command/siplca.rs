//! Shift-invariant models, and what the other commands make of them.

use serde_json::Value;

use crate::Folder;

fn joined(sizes: &[usize]) -> String {
    let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
    sizes.join("x")
}

/// `Σ_z P(z) Σ_t K(t|z) H(x - t + o|z)` of every cell.
fn convolution(folder: &Folder, name: &str, shape: &[usize], offset: &[usize]) -> Vec<f64> {
    let arrays = folder.model(name).arrays;
    let (weights, kernels, impulses) =
        (&arrays["weights"], &arrays["kernels"], &arrays["impulses"]);
    let index = |mut at: usize, shape: &[usize]| {
        let mut index = vec![0; shape.len()];
        for d in (0..shape.len()).rev() {
            index[d] = at % shape[d];
            at /= shape[d];
        }
        index
    };
    let mut out = vec![0.0; shape.iter().product()];
    let (k, m) = (&kernels.shape[1..], &impulses.shape[1..]);
    let (taps, places): (usize, usize) = (k.iter().product(), m.iter().product());
    for (z, weight) in weights.values.iter().enumerate() {
        for t in 0..taps {
            for h in 0..places {
                let (ti, hi) = (index(t, k), index(h, m));
                let x: Option<Vec<usize>> = (0..shape.len())
                    .map(|d| {
                        (hi[d] + ti[d])
                            .checked_sub(offset[d])
                            .filter(|&x| x < shape[d])
                    })
                    .collect();
                if let Some(x) = x {
                    let at = x.iter().zip(shape).fold(0, |at, (i, n)| at * n + i);
                    out[at] +=
                        weight * kernels.values[z * taps + t] * impulses.values[z * places + h];
                }
            }
        }
    }
    out
}

/// A picture with two patterns in it.
fn picture() -> (Folder, Vec<f64>) {
    let folder = Folder::new();
    let (rows, columns) = (6, 9);
    let mut values = vec![0.0; rows * columns];
    for (n, (y, x)) in [(0, 0), (3, 5), (2, 2), (1, 7), (4, 1)]
        .into_iter()
        .enumerate()
    {
        values[y * columns + x] += 3.0 + n as f64;
        values[(y + 1) * columns + x + 1] += 2.0;
        values[(y + n % 2) * columns + x + 1 - n % 2] += 1.0;
    }
    folder.npy("v.npy", &[rows, columns], &values);
    (folder, values)
}

#[test]
fn reconstruction_is_the_convolution_with_the_mass_of_the_data() {
    let (folder, values) = picture();
    let total: f64 = values.iter().sum();
    for (domain, offset) in [
        ("valid", [0, 0]),
        ("same", [0, 0]),
        ("full", [1, 2]),
        ("valid,full", [0, 2]),
    ] {
        for (likelihood, conditional) in [("conditional", true), ("literal", false)] {
            folder.ok(&format!(
                "fit siplca v.npy --rank 2 --kernel 2x3 --support {domain} --likelihood {likelihood} --max-iter 30 --output m.npz --quiet"
            ));
            folder.ok("reconstruct m.npz --output a.npy");
            let got = folder.dense("a.npy");
            assert_eq!(got.shape, [6, 9]);
            let p = convolution(&folder, "m.npz", &[6, 9], &offset);
            let scale = if conditional {
                total / p.iter().sum::<f64>()
            } else {
                total
            };
            for (got, p) in got.values.iter().zip(&p) {
                assert!(
                    (got - scale * p).abs() <= 1e-10 * total,
                    "{domain} {likelihood}: {got}"
                );
            }
        }
    }
}

#[test]
fn hidden_cells_do_not_count_and_are_filled_in() {
    let (folder, mut values) = picture();
    let mut mask = vec![1.0; values.len()];
    for at in [4, 13, 30] {
        mask[at] = 0.0;
        values[at] = 1e9;
    }
    folder.npy("h.npy", &[6, 9], &values);
    folder.npy("m.npy", &[6, 9], &mask);
    folder.ok(
        "fit siplca h.npy --mask m.npy --rank 2 --kernel 2x3 --max-iter 40 --output o.npz --quiet",
    );
    folder.ok("reconstruct o.npz --output a.npy");
    let a = folder.dense("a.npy").values;
    let seen = |x: &[f64]| -> f64 { x.iter().zip(&mask).map(|(x, m)| x * m).sum() };
    assert!((seen(&a) - seen(&values)).abs() < 1e-9);
    assert!(a.iter().all(|x| *x < 100.0));
}

#[test]
fn transform_explains_new_data_with_the_same_kernels() {
    let (folder, values) = picture();
    folder.ok("fit siplca v.npy --rank 2 --kernel 2x3 --max-iter 60 --output m.npz --quiet");
    // Longer along the observations.
    let wide: Vec<f64> = values
        .chunks(9)
        .flat_map(|row| row.iter().chain(row).copied())
        .collect();
    folder.npy("w.npy", &[6, 18], &wide);
    let summary = folder.json("transform m.npz w.npy --output t.npz --max-iter 5000");
    let found = folder.model("t.npz").arrays;
    assert_eq!(found["impulses"].shape, [2, 5, 16]);
    assert_eq!(found["gap"].shape, [0usize; 0]);
    assert!(found["gap"].values[0] < 1e-3, "{summary}");
    assert_eq!(found["dropped"].values, [0.0]);
    let other = "fit siplca w.npy --init";
    let mut model = folder.model("m.npz").arrays;
    model.remove("impulses");
    let parts: Vec<_> = model
        .iter()
        .map(|(n, a)| (n.as_str(), &a.shape[..], &a.values[..]))
        .collect();
    folder.arrays("init.npz", &parts);
    let line = format!("{other} init.npz --freeze kernels --max-iter 5000 --output f.npz --seed 3");
    let fitted = folder.json(&line)["objective"].as_f64().unwrap();
    let found = summary["objective"].as_f64().unwrap();
    assert!(
        (fitted - found).abs() <= 1e-4 * found.abs(),
        "{fitted} {found}"
    );
    folder.npy("tall.npy", &[7, 9], &[1.0; 63]);
    folder.refuses("1 | transform m.npz tall.npy --output x.npz | tall.npy | 6 x any");
}

#[test]
fn draws_follow_the_model() {
    let (folder, _) = picture();
    folder.ok(
        "fit siplca v.npy --rank 2 --kernel 2x3 --support full --max-iter 30 --output m.npz --quiet",
    );
    folder.ok("sample m.npz --draws 200000 --output s.npy");
    let drawn = folder.dense("s.npy").values;
    assert_eq!(drawn.iter().sum::<f64>(), 200_000.0);
    let p = convolution(&folder, "m.npz", &[6, 9], &[1, 2]);
    let mass: f64 = p.iter().sum();
    for (n, p) in drawn.iter().zip(&p) {
        let expected = 200_000.0 * p / mass;
        // Six standard deviations of a count.
        assert!(
            (n - expected).abs() <= 6.0 * expected.sqrt() + 1.0,
            "{n} {expected}"
        );
    }
}

/// Relative priors have no density: alone they leave the likelihood, beside another one its posterior.
#[test]
fn relative_priors_leave_the_likelihood() {
    let (folder, _) = picture();
    let fit = "fit siplca v.npy --rank 2 --kernel 2x3 --max-iter 9 --tol 0 --output o.npz";
    let groups = "cross-entropy:groups=0/1,within=0";
    #[rustfmt::skip]
    let cases = [
        ("--prior kernels=entropic:.1r".to_string(), false),
        (format!("--prior kernels={groups},between=.01r"), false),
        // A weight of 0 is 0 in any unit.
        ("--prior kernels=cross-entropy:groups=0/1,within=0r,between=.01".into(), true),
        (format!("--prior kernels={groups},between=.01"), true),
        ("--prior kernels=entropic:.1r --prior impulses=entropic:3".into(), true),
    ];
    for (priors, density) in cases {
        let summary = folder.json(&format!("{fit} {priors}"));
        let likelihood = summary["objective"] == summary["log_likelihood"];
        let name = folder.model("o.npz").metadata["objective_name"].clone();
        assert_eq!(likelihood, !density, "{priors}");
        assert_eq!(name == "log_likelihood", !density, "{priors}");
    }
}

#[test]
fn priors_of_every_block_stand_in_the_objective() {
    let (folder, _) = picture();
    let fit = "fit siplca v.npy --rank 2 --kernel 2x3 --max-iter 50 --tol 0 --output o.npz";
    let entropy = |block: &str| -> f64 {
        let array = &folder.model("o.npz").arrays[block];
        let terms = array.values.iter().filter(|p| **p > 0.0);
        -terms.map(|p| p * p.ln()).sum::<f64>()
    };
    folder.ok(&format!("{fit} --quiet"));
    for block in ["weights", "kernels", "impulses"] {
        folder.ok(&format!("{fit} --quiet --seed 1"));
        let plain = entropy(block);
        let summary = folder.json(&format!("{fit} --seed 1 --prior {block}=entropic:30"));
        assert!(entropy(block) < plain, "{block}");
        assert_eq!(
            folder.model("o.npz").metadata["objective_name"],
            "log_posterior"
        );
        // ln p = -30 H
        let prior =
            summary["objective"].as_f64().unwrap() - summary["log_likelihood"].as_f64().unwrap();
        assert!(
            (prior + 30.0 * entropy(block)).abs() < 1e-6,
            "{block}: {prior}"
        );
    }
    folder.ok(&format!(
        "{fit} --quiet --prior kernels=cross-entropy:groups=0/1,between=.1r,within=0 --prior impulses=dirichlet:0.9"
    ));
}

/// Arrays of priors have the shape of their block, `(K, extents…)`, or broadcast to it.
#[test]
fn priors_from_files_have_the_shape_of_their_block() {
    let (folder, _) = picture();
    let fit = "fit siplca v.npy --rank 2 --kernel 2x3 --max-iter 20 --tol 0 --output o.npz";
    let under = |option: &str| {
        folder.ok(&format!("{fit} --quiet {option}"));
        folder.model("o.npz").arrays
    };
    let same = under(
        "--prior weights=dirichlet:1.5 --prior kernels=dirichlet:1.5 --prior impulses=dirichlet:1.5",
    );
    for shapes in [
        [&[2][..], &[2, 2, 3], &[2, 5, 7]],
        [&[], &[1, 2, 1], &[7]],
        [&[1], &[2, 1, 3], &[5, 1]],
    ] {
        let blocks = ["weights", "kernels", "impulses"].map(|b| format!("{b}.dirichlet"));
        let values = shapes.map(|shape| vec![1.5; shape.iter().product()]);
        let arrays = [0, 1, 2].map(|b| (blocks[b].as_str(), shapes[b], &values[b][..]));
        folder.arrays("p.npz", &arrays);
        assert_eq!(under("--priors p.npz"), same, "{shapes:?}");
    }
    // Nearly all of one entry: the last of the first row of the second kernel.
    let mut alpha = [1.0; 12];
    alpha[8] = 1e9;
    folder.arrays("p.npz", &[("kernels.dirichlet", &[2, 2, 3], &alpha)]);
    assert!(under("--priors p.npz")["kernels"].values[8] > 0.999);
    folder.arrays("p.npz", &[("kernels.dirichlet", &[2, 3, 2], &alpha)]);
    folder.fails(
        1,
        &format!("{fit} --priors p.npz"),
        &["p.npz", "kernels.dirichlet", "[2, 3, 2]", "[2, 2, 3]"],
    );
}

/// `AIC = -2 L + 2 p` of the best of the starts, for every kernel with every number of components.
#[test]
fn select_scores_components_and_kernels() {
    let (folder, values) = picture();
    let how = "--max-iter 30 --tol 0 --restarts 2 --seed 4";
    let line = format!("select siplca v.npy --ranks 1,2 --kernel 2x3,6x1 {how}");
    let table = folder.json(&format!("{line} --criterion aic"));
    let rows = table["table"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    let number = |v: &Value| v.as_f64().unwrap();
    for (row, (kernel, places)) in rows
        .iter()
        .zip([([2, 3], 35); 2].into_iter().chain([([6, 1], 9); 2]))
    {
        let k = row["rank"].as_u64().unwrap();
        assert_eq!(row["kernel"], serde_json::json!(kernel));
        let parameters = (k - 1 + k * (6 - 1) + k * (places - 1)).min(53);
        assert_eq!(row["parameters"], parameters);
        let kernel = joined(&kernel);
        let fit = format!("fit siplca v.npy --rank {k} --kernel {kernel} {how} --output o.npz");
        let ln_lik = number(&folder.json(&fit)["objective"]);
        assert_eq!(number(&row["log_likelihood"]), ln_lik);
        let aic = 2.0 * parameters as f64 - 2.0 * ln_lik;
        assert!((number(&row["score"]) - aic).abs() <= 1e-9 * aic.abs());
    }
    let least = rows
        .iter()
        .map(|r| number(&r["score"]))
        .fold(f64::INFINITY, f64::min);
    let best = rows.iter().find(|r| number(&r["score"]) == least).unwrap();
    assert_eq!(
        (&table["best"], &table["best_kernel"]),
        (&best["rank"], &best["kernel"])
    );
    let bic = folder.json(&line);
    assert_eq!(bic["criterion"], "bic");
    let total: f64 = values.iter().sum();
    let p = number(&bic["table"][0]["parameters"]);
    let want = p * total.ln() - 2.0 * number(&bic["table"][0]["log_likelihood"]);
    assert!((number(&bic["table"][0]["score"]) - want).abs() <= 1e-9 * want.abs());
    for domain in ["valid", "same,full"] {
        let held = folder.json(&format!("{line} --criterion held-out --support {domain}"));
        for row in held["table"].as_array().unwrap() {
            assert!(number(&row["score"]) > 1.0, "{row}");
        }
    }
    assert_eq!(folder.ok(&line).lines().count(), 5);
    folder.refuses(
        "
            2 | select siplca v.npy --ranks 1,2 | --kernel | needed
            2 | select siplca v.npy --ranks 1 --kernel 2 | [2] | [6, 9]
            2 | select siplca v.npy --ranks 1 --kernel 2x3 --criterion elbo | siplca | elbo
            2 | select plca v.npy --ranks 1 --kernel 2x3 | plca | --kernel
            2 | select nmf-kl v.npy --ranks 1 --support full | nmf-kl | --support
        ",
    );
    let large = "select siplca v.npy --ranks 1 --kernel 7x3";
    folder.fails(1, large, &["v.npy", "6 x 9", "7"]);
}

#[test]
fn bad_shifts_are_refused() {
    let (folder, _) = picture();
    let fit = "fit siplca v.npy --output x.npz --rank 2";
    for (options, parts) in [
        ("", &["--kernel"][..]),
        ("--kernel 2", &["[6, 9]"]),
        ("--kernel 2x3x1", &["[6, 9]"]),
        ("--kernel 0x3", &["--kernel 0"]),
        ("--kernel 2xa", &["`a`"]),
        ("--kernel 2x3 --support same,valid,full", &["3", "2"]),
        ("--kernel 2x3 --support around", &["around"]),
        ("--kernel 2x3 --anneal 0,5", &["--anneal 0", "(0, 1]"]),
        ("--kernel 2x3 --anneal -1,5", &["--anneal -1"]),
        ("--kernel 2x3 --anneal NaN,5", &["NaN"]),
        ("--kernel 2x3 --anneal 0.5,0", &["--anneal 0", "iterations"]),
        ("--kernel 2x3 --anneal 0.5", &["ALPHA0,T"]),
        ("--kernel 2x3 --impulse-power 0.5", &["--impulse-power 0.5"]),
        (
            "--kernel 2x3 --anneal 0.5,5 --accelerate squarem",
            &["--accelerate"],
        ),
        ("--kernel 2x3 --temper 0.9", &["--temper"]),
        ("--kernel 2x3 --given 0", &["--given"]),
        ("--kernel 2x3 --prior kernel=dirichlet:2", &["kernels"]),
        ("--kernel 2x3 --prior kernels=entropic:NaN", &["NaN"]),
    ] {
        folder.fails(2, &format!("{fit} {options}"), parts);
    }
    folder.fails(1, &format!("{fit} --kernel 7x3"), &["v.npy", "6 x 9", "7"]);
    folder.arrays("i.npz", &[("kernels", &[2, 2, 2], &[1.0; 8])]);
    folder.refuses(&format!(
        "
            1 | {fit} --kernel 2x3 --init i.npz | i.npz | `kernels` is 4x2
            2 | fit plca v.npy --output x.npz --rank 2 --anneal 0.5,5 | --anneal
            2 | fit plsa v.npy --output x.npz --rank 2 --anneal 0.5,5 | --anneal
            2 | fit nmf-kl v.npy --output x.npz --rank 2 --anneal 0.5,5 | --anneal
        "
    ));
    // A model file that contradicts itself.
    folder.ok("fit siplca v.npy --rank 2 --kernel 2x3 --max-iter 2 --output m.npz --quiet");
    let mut file = folder.model("m.npz");
    file.arrays.get_mut("impulses").unwrap().shape = vec![2, 7, 5];
    plca_io::write_model(folder.path("m.npz"), &file, false).unwrap();
    folder.fails(1, "reconstruct m.npz --output a.npy", &["m.npz", "[7, 5]"]);
}

/// Kernels of one picture are looked for in another one of another size; without `--freeze` sizes must agree.
#[test]
fn kernels_are_kept_for_data_of_another_size() {
    let folder = Folder::new();
    folder.text("a.csv", "1,0,0,2,0\n0,1,0,0,2\n1,0,0,1,0\n0,1,0,0,1\n");
    folder.text("b.csv", "3,0,0\n0,3,0\n0,0,0\n0,1,0\n0,0,1\n");
    let fit = "--max-iter 30 --seed 1 --quiet --output";
    folder.ok(&format!(
        "fit siplca a.csv --rank 1 --kernel 2x2 {fit} a.npz"
    ));
    let again = "fit siplca b.csv --init a.npz";
    folder.fails(1, &format!("{again} {fit} b.npz"), &["impulses", "--init"]);
    let told = folder.run(&format!("{again} --freeze kernels --output b.npz"));
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(
        told.contains("not kept of --init, since they are of other data: `impulses`, `weights`"),
        "{told}"
    );
    let kernels = |file: &str| folder.model(file).arrays["kernels"].values.clone();
    assert_eq!(kernels("a.npz"), kernels("b.npz"));
    assert_eq!(folder.model("b.npz").arrays["impulses"].shape, [1, 4, 2]);
    // What is 0 in the impulses of other data of the same size would stay 0.
    folder.text("c.csv", "0,0,1,0,0\n0,0,0,1,0\n2,0,0,0,0\n0,2,0,1,0\n");
    folder.run("fit siplca c.csv --init a.npz --freeze kernels --tol 1e-12 --output d.npz");
    folder.arrays("k.npz", &[("kernels", &[1, 2, 2], &kernels("a.npz"))]);
    folder.ok("fit siplca c.csv --init k.npz --freeze kernels --tol 1e-12 --output e.npz");
    assert_eq!(folder.model("d.npz").arrays, folder.model("e.npz").arrays);
    // Of the same data they are a start.
    let told = folder.run("fit siplca a.csv --init a.npz --freeze kernels --output c.npz");
    assert!(!String::from_utf8(told.stderr).unwrap().contains("--init"));
}

/// Kernels and atoms of another shape are refused, not read in the order of their numbers.
#[test]
fn initial_kernels_have_the_shape_of_kernels() {
    let folder = Folder::new();
    let image: Vec<f64> = (0..56).map(|n| f64::from(n % 5 + 1)).collect();
    folder.npy("img.npy", &[7, 8], &image);
    for (model, block, signs) in [
        ("siplca", "kernels", &[][..]),
        ("tiplca", "kernels", &[]),
        ("siskellam", "atoms", &[2]),
    ] {
        let shape = |extents: &[usize]| [&[1], extents, signs].concat();
        let given = |extents: &[usize]| {
            let shape = shape(extents);
            let numbers: Vec<f64> = (1..=shape.iter().product::<usize>())
                .map(|n| n as f64)
                .collect();
            folder.arrays("k.npz", &[(block, &shape[..], &numbers[..])]);
        };
        let line = |kernel: &str| {
            format!(
                "fit {model} img.npy --kernel {kernel} --init k.npz --max-iter 2 --tol 0 --output o.npz --quiet"
            )
        };
        given(&[2, 3]);
        folder.ok(&line("2x3"));
        for other in [[3, 2], [6, 1]] {
            let (got, expected) = (shape(&[2, 3]), shape(&other));
            let what = format!("`{block}` has shape {got:?}, expected {expected:?}");
            folder.fails(
                1,
                &line(&format!("{}x{}", other[0], other[1])),
                &["k.npz", &what],
            );
        }
        given(&[6]);
        folder.fails(1, &line("2x3"), &["k.npz", "has shape"]);
    }
}
