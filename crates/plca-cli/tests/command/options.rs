//! What every option does.

use crate::Folder;

#[test]
fn trace_has_a_line_per_check_and_the_final_objective() {
    let folder = Folder::with_counts();
    let s =
        folder.json("fit plca d.csv --rank 2 --output o.npz --max-iter 25 --tol 0 --trace t.jsonl");
    let text = String::from_utf8(folder.bytes("t.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["iteration"], &last["objective"]),
        (&25.into(), &s["objective"])
    );
    for pair in lines.windows(2) {
        assert!(
            pair[0]["iteration"].as_u64() < pair[1]["iteration"].as_u64(),
            "{text}"
        );
        let (a, b) = (
            pair[0]["objective"].as_f64().unwrap(),
            pair[1]["objective"].as_f64().unwrap(),
        );
        assert!(b >= a - 1e-12 * (1.0 + a.abs()), "{text}");
    }
}

#[test]
fn restarts_are_never_worse_than_the_first_start() {
    let folder = Folder::with_counts();
    let line = "fit plca d.csv --rank 3 --output o.npz --max-iter 15 --tol 0";
    let one = folder.json(line)["objective"].as_f64().unwrap();
    let best = folder.json(&format!("{line} --restarts 8"))["objective"]
        .as_f64()
        .unwrap();
    assert!(best >= one, "{best} {one}");
}

#[test]
fn transform_keeps_what_was_learned_and_reports_gap_and_dropped_mass() {
    let folder = Folder::with_counts();
    folder.text("new.csv", "1,2\n3,4\n5,6\n");
    folder.text("none.csv", "0,0,0,0\n1,5,9,2\n2,6,5,3\n");
    for (model, block) in [("plca", "factor_1"), ("plsa", "mixture"), ("nmf-kl", "h")] {
        folder.ok(&format!(
            "fit {model} d.csv --rank 2 --output o.npz --quiet"
        ));
        let before = folder.bytes("o.npz");
        folder.ok("transform o.npz new.csv --output n.npz --tol 0 --max-iter 4000 --quiet");
        assert_eq!(before, folder.bytes("o.npz"));
        let new = folder.model("n.npz").arrays;
        assert!(new.contains_key(block), "{model}");
        assert!(
            new["gap"].values.iter().all(|&g| (0.0..1e-3).contains(&g)),
            "{model} {:?}",
            new["gap"]
        );
        assert_eq!(new["dropped"].values, [0.0]);
        let s = folder.json("transform o.npz new.csv --output n.npz --tol 1e-3 --max-iter 100000");
        let gap = folder.model("n.npz").arrays["gap"].values.clone();
        assert!(
            gap.iter().all(|g| (0.0..=1e-3).contains(g)),
            "{model} {gap:?}"
        );
        assert!(s["iterations"].as_u64() < Some(100_000), "{s}");
        assert!(s["objective"].is_f64() && s["seconds"].is_f64(), "{s}");
        // Row 0 is reached by no component of a model that never saw it.
        folder.ok(&format!(
            "fit {model} none.csv --rank 2 --output o.npz --quiet"
        ));
        folder.ok("transform o.npz new.csv --output n.npz --quiet");
        assert_eq!(
            folder.model("n.npz").arrays["dropped"].values,
            [3.0],
            "{model}"
        );
    }
}

#[test]
fn priors_broadcast() {
    let folder = Folder::with_counts();
    folder.arrays(
        "p.npz",
        &[
            ("factor_0.dirichlet", &[1, 1], &[2.5]),
            ("weights.dirichlet", &[2], &[2.5, 2.5]),
        ],
    );
    folder.arrays(
        "q.npz",
        &[
            ("factor_0.dirichlet", &[3, 2], &[2.5; 6]),
            ("weights.dirichlet", &[], &[2.5]),
        ],
    );
    let line = "fit plca d.csv --rank 2 --max-iter 9 --quiet";
    folder.ok(&format!("{line} --priors p.npz --output a.npz"));
    folder.ok(&format!("{line} --priors q.npz --output b.npz"));
    let s = folder.json(&format!(
        "{line} --prior factor_0=dirichlet:2.5 --prior weights=dirichlet:2.5 --output c.npz"
    ));
    assert!(s["log_likelihood"].is_f64());
    let arrays = |name| folder.model(name).arrays;
    assert_eq!(arrays("a.npz"), arrays("b.npz"));
    assert_eq!(arrays("a.npz"), arrays("c.npz"));
    assert_eq!(
        folder.model("c.npz").metadata["objective_name"],
        "log_posterior"
    );
    folder.ok(&format!("{line} --output d.npz"));
    assert_ne!(arrays("a.npz"), arrays("d.npz"));
}

#[test]
fn unstored_cells_are_hidden_and_full_masks_change_nothing() {
    let folder = Folder::with_counts();
    folder.text("d.tns", "1 1 3\n1 2 1\n2 2 5\n2 3 9\n3 1 2\n3 3 5\n");
    folder.text("d.nan.csv", "3,1,nan\nnan,5,9\n2,nan,5\n");
    folder.npy("ones.npy", &[3, 4], &[1.0; 12]);
    for model in ["plca", "nmf-kl"] {
        let a = folder.json(&format!(
            "fit {model} d.tns --missing unstored --rank 2 --output a.npz --tol 0 --max-iter 20"
        ));
        let b = folder.json(&format!(
            "fit {model} d.nan.csv --missing nan --rank 2 --output b.npz --tol 0 --max-iter 20"
        ));
        let (a, b) = (
            a["objective"].as_f64().unwrap(),
            b["objective"].as_f64().unwrap(),
        );
        assert!((a - b).abs() <= 1e-9 * (1.0 + b.abs()), "{model} {a} {b}");
        folder.ok(&format!(
            "fit {model} d.csv --mask ones.npy --missing nan --rank 2 --output c.npz --quiet"
        ));
    }
}

#[test]
fn draws_are_of_either_kind_of_file() {
    let folder = Folder::with_counts();
    for name in ["o.npz", "o.safetensors"] {
        folder.ok(&format!("fit plca d.csv --rank 2 --output {name} --quiet"));
        folder.ok(&format!("sample {name} --draws 50 --output s.npy"));
        let s = folder.dense("s.npy");
        assert_eq!((s.shape, s.values.iter().sum::<f64>()), (vec![3, 4], 50.0));
    }
    let table = folder.json("select plca d.csv --ranks 1..3 --criterion bic");
    assert_eq!(table["table"].as_array().unwrap().len(), 3);
}

/// `ln p = β Σ θ ln θ` stands in the objective; columns are sparser under a positive weight, flatter under a negative one.
#[test]
fn entropic_priors_change_the_entropy_and_stand_in_the_objective() {
    let folder = Folder::with_counts();
    let negative_entropy = |name: &str, block: &str| -> f64 {
        let values = folder.model(name).arrays[block].values.clone();
        let positive = values.into_iter().filter(|&x| x > 0.0);
        positive.map(|x| x * x.ln()).sum()
    };
    for (model, block) in [("plca", "factor_0"), ("plsa", "basis")] {
        let line = format!("fit {model} d.csv --rank 2 --tol 0 --max-iter 200");
        let mut found = Vec::new();
        for beta in ["-8", "0", "8"] {
            let s = folder.json(&format!(
                "{line} --prior {block}=entropic:{beta} --output o.npz"
            ));
            let x = negative_entropy("o.npz", block);
            let number = |name: &str| s[name].as_f64().unwrap();
            let want = number("log_likelihood") + beta.parse::<f64>().unwrap() * x;
            assert!((number("objective") - want).abs() <= 1e-9 * want.abs());
            found.push(x);
        }
        assert!(found[0] < found[1] && found[1] < found[2], "{found:?}");
        let name = "--prior nothing=entropic:1";
        folder.fails(2, &format!("{line} {name} --output p.npz"), &["nothing"]);
        // A weight relative to the counts is that weight where the counts are known: one component has all of them.
        let one = format!("fit {model} d.csv --rank 1 --max-iter 1 --tol 0 --quiet");
        folder.ok(&format!(
            "{one} --prior {block}=entropic:.5r --output a.npz"
        ));
        folder.ok(&format!("{one} --prior {block}=entropic:21 --output b.npz"));
        let (a, b) = (folder.model("a.npz").arrays, folder.model("b.npz").arrays);
        for (a, b) in a[block].values.iter().zip(&b[block].values) {
            assert!((a - b).abs() <= 1e-12, "{a} {b}");
        }
    }
}

/// The likelihoods of the three models differ on the way, and agree at the optimum, which is one for one component.
#[test]
fn one_table_scores_the_three_models_with_hidden_cells() {
    let folder = Folder::new();
    let rows = [
        [3., f64::NAN, 4., 1.],
        [1., 5., 9., 2.],
        [f64::NAN, 6., f64::NAN, 3.],
    ];
    let text = rows
        .map(|row| row.map(|x| x.to_string()).join(","))
        .join("\n");
    folder.text("d.csv", &text);
    let how = "d.csv --missing nan --max-iter 3000 --tol 0";
    let number = |s: &serde_json::Value, name: &str| s[name].as_f64().unwrap();
    let fit = |model: &str| {
        let line = format!("fit {model} {how} --rank 1 --output o.npz");
        number(&folder.json(&line), "objective")
    };
    let seen = || rows.as_flattened().iter().filter(|x| !x.is_nan());
    let total: f64 = seen().sum();
    let columns = (0..4).map(|j| {
        rows.iter()
            .map(|r| r[j])
            .filter(|x| !x.is_nan())
            .sum::<f64>()
    });
    let of_columns: f64 = columns.map(|v| v * (v / total).ln()).sum();
    let of_data: f64 = seen().map(|x| x * x.ln()).sum();
    let found = [
        ("plca", fit("plca")),
        ("plsa", fit("plsa") + of_columns),
        ("nmf-kl", of_data - total * total.ln() - fit("nmf-kl")),
    ];
    for (model, want) in found {
        let table = folder.json(&format!("select {model} {how} --ranks 1 --criterion bic"));
        let got = number(&table["table"][0], "log_likelihood");
        assert!(
            (got - want).abs() <= 1e-9 * want.abs(),
            "{model}: {got} {want}"
        );
    }
}

#[test]
fn cross_entropy_priors_keep_groups_apart() {
    let folder = Folder::with_counts();
    // How much the two components of a block have in common.
    let common = |block: &str| -> f64 {
        let values = folder.model("o.npz").arrays[block].values.clone();
        values
            .chunks_exact(2)
            .map(|pair| pair[0].min(pair[1]))
            .sum()
    };
    for (model, block) in [("plca", "factor_1"), ("plsa", "basis")] {
        let line = format!("fit {model} d.csv --rank 2 --tol 0 --max-iter 30 --quiet");
        let under = |spec: &str| {
            folder.ok(&format!(
                "{line} --prior {block}=cross-entropy:{spec} --output o.npz"
            ));
            common(block)
        };
        folder.ok(&format!("{line} --output o.npz"));
        let plain = common(block);
        assert_eq!(under("groups=0/1,between=0,within=3"), plain);
        let apart = under("groups=0/1,between=4.2,within=0");
        let alike = under("groups=7/7,between=0,within=4.2");
        assert!(apart < plain && plain < alike, "{apart} {plain} {alike}");
        // 42 counts, 2 components.
        let relative = under("groups=0/1,between=.2r,within=0");
        assert!((relative - apart).abs() < 1e-12, "{relative} {apart}");
        under("groups=0/1,between=1r,within=0r,floor=1e-3");
        let block = folder.model("o.npz").arrays[block].values.clone();
        assert!(block.iter().all(|&x| x > 9e-4), "{block:?}");
        under("groups=0/1,between=.2r,within=0,decrease=10,floor=1e-9");
    }
}

#[test]
fn bad_cross_entropy_priors_are_refused() {
    let folder = Folder::with_counts();
    let weights = "between=1,within=1";
    for (spec, part) in [
        ("groups=0/1", "between"),
        ("groups=0/1,between=1", "within"),
        (weights, "groups"),
        ("groups=0/1/1,between=1,within=1", "3 components"),
        ("groups=0/x,between=1,within=1", "`x`"),
        ("groups=0/1,between=-1,within=1", "-1"),
        ("groups=0/1,between=1,within=nan", "NaN"),
        ("groups=0/1,between=1r,within=1", "units"),
        ("groups=0/1,between=1,between=1,within=1", "twice"),
        ("groups=0/1,between=1,within=1,decrease=0", "0"),
        ("groups=0/1,between=1,within=1,floor=-1", "-1"),
        ("groups=0/1,between=1,within=1,beyond=1", "beyond"),
        ("0/1", "NAME=VALUE"),
    ] {
        let line = format!("fit plca d.csv --rank 2 --prior factor_0=cross-entropy:{spec}");
        folder.fails(2, &format!("{line} --output o.npz"), &["--prior", part]);
    }
}

/// What is asked for holds whether or not a cell happens to be hidden; what is not asked for goes by the model.
#[test]
fn treatment_of_missing_cells_has_the_documented_default() {
    let folder = Folder::with_counts();
    folder.npy("ones.npy", &[3, 4], &[1.0; 12]);
    let mut mask = [1.0; 12];
    mask[5] = 0.0;
    folder.npy("mask.npy", &[3, 4], &mask);
    let fit = |model: &str, extra: &str| {
        folder.ok(&format!(
            "fit {model} d.csv --rank 2 --tol 0 --max-iter 5 --quiet --output o.npz {extra}"
        ));
        folder.model("o.npz").arrays
    };
    let multiplicative = "--missing-method multiplicative";
    for (model, method, other) in [
        ("plca", "imputation", "multiplicative"),
        ("nmf-kl", "multiplicative", "imputation"),
    ] {
        let [default, same, another] = [
            "".to_string(),
            format!("--missing-method {method}"),
            format!("--missing-method {other}"),
        ]
        .map(|asked| fit(model, &format!("--mask mask.npy {asked}")));
        assert!(default == same && default != another, "{model}");
    }
    assert_eq!(fit("nmf-kl", ""), fit("nmf-kl", "--mask ones.npy"));
    assert_eq!(
        fit("nmf-kl", "--update sequential"),
        fit("nmf-kl", &format!("--mask ones.npy {multiplicative}"))
    );
}

/// Penalties and gamma laws on the factors of nmf-kl: as texts and as arrays, in both forms of the update.
#[test]
fn rates_have_priors() {
    let folder = Folder::with_counts();
    let fit = |line: &str| {
        let settings = "--rank 2 --seed 3 --tol 0 --max-iter 30 --output o.npz";
        let summary = folder.json(&format!("fit nmf-kl d.csv {settings} {line}"));
        (summary, folder.model("o.npz"))
    };
    let (plain, _) = fit("");
    assert!(plain.get("kl_divergence").is_none());
    let (summary, penalised) = fit("--prior w=rate:.5,.2 --prior h=rate:.1");
    let [objective, divergence] =
        ["objective", "kl_divergence"].map(|name| summary[name].as_f64().unwrap());
    let [w, h] = ["w", "h"].map(|name| &penalised.arrays[name].values);
    let penalty: f64 = w.iter().map(|x| 0.5 * x + 0.1 * x * x).sum::<f64>()
        + h.iter().map(|x| 0.1 * x).sum::<f64>();
    assert!((objective - divergence - penalty).abs() < 1e-9 * objective);
    assert_eq!(penalised.metadata["objective_name"], "penalised_divergence");
    // The linear penalty is the gamma law of shape 1.
    let n = h.len() / 2;
    folder.arrays("p.npz", &[("h.gamma_rate", &[2, n], &vec![0.1; 2 * n])]);
    let (_, text) = fit("--prior h=gamma:1,.1");
    let (_, array) = fit("--priors p.npz");
    let (_, linear) = fit("--prior h=rate:.1");
    assert_eq!(text.arrays, array.arrays);
    assert_eq!(text.arrays, linear.arrays);
    // With a lag another way.
    let (_, lagged) = fit("--prior w=rate:.5,.2,lagged --prior h=rate:.1");
    assert_ne!(lagged.arrays, penalised.arrays);
    folder.refuses("
        2 | fit nmf-kl d.csv --rank 2 --prior w=rate:1 --solver fast --output x.npz | --solver fast | the prior on `w`
        2 | fit nmf-kl d.csv --rank 2 --prior w=rate:-1 --output x.npz | w=rate:-1 | linear | -1
    ");
}

#[test]
fn a_time_limit_ends_a_fit_of_any_model_and_changes_nothing_else() {
    let folder = Folder::with_counts();
    for entry in plca_run::models() {
        let name = entry.name;
        let kernel = if entry.kernels.is_some() {
            "--kernel 2x2"
        } else {
            ""
        };
        let line = format!("fit {name} d.csv --rank 2 {kernel} --max-iter 40 --restarts 2 --quiet");
        folder.ok(&format!("{line} --output a.npz"));
        folder.ok(&format!("{line} --output b.npz --time-limit 1e6"));
        assert_eq!(folder.model("a.npz").arrays, folder.model("b.npz").arrays);
        let line = format!("fit {name} d.csv --rank 2 {kernel} --tol 0 --max-iter 1000000000");
        let run = folder.run(&format!("{line} --output c.npz --time-limit 1e-9 --json"));
        let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        // Some models have nothing left to do before they are cut.
        if summary["stop_reason"] != "settled" {
            assert_eq!(summary["stop_reason"], "time_limit", "{name}: {summary}");
            let told = String::from_utf8_lossy(&run.stderr);
            assert!(
                told.contains("--time-limit ended the run"),
                "{name}: {told}"
            );
        }
    }
    for wrong in ["0", "-1", "x", "inf", "nan"] {
        let line = format!("fit plca d.csv --rank 2 --output o.npz --time-limit {wrong}");
        folder.fails(2, &line, &["--time-limit"]);
    }
    let line = "fit plca d.csv --rank 2 --output o.npz --online 0.7,1 --time-limit 1";
    folder.fails(2, line, &["--time-limit"]);
}
