//! Counts held out: the schedule of `--temper` and the criterion of `select`.

use crate::Folder;

/// Three blocks under noise, few counts for many parameters.
fn folder() -> Folder {
    let folder = Folder::new();
    let cell = |i: u32, j: u32| {
        let at = 15 * i + j;
        let noise = (at * at * 7 + at * 13) % 11 % 4;
        noise + if i % 3 == j % 3 { 3 } else { 0 }
    };
    let row = |i| {
        (0..15)
            .map(|j| cell(i, j).to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let text: String = (0..12).map(|i| row(i) + "\n").collect();
    folder.text("d.csv", &text);
    folder
}

#[test]
fn schedules_stop_by_held_out_counts() {
    let folder = folder();
    for model in ["plca", "plsa"] {
        let s = folder.json(&format!(
            "fit {model} d.csv --rank 6 --temper 1,0.9 --max-iter 3000 --output o.npz"
        ));
        assert_eq!(s["stop_reason"], "held_out", "{s}");
        let (power, perplexity) = (s["power"].as_f64(), s["held_out_perplexity"].as_f64());
        assert!(power.unwrap() < 1.0 && perplexity.unwrap() > 1.0, "{s}");
        let file = folder.model("o.npz");
        assert_eq!(file.metadata["power"], s["power"]);
        let names: Vec<_> = file.arrays.keys().map(String::as_str).collect();
        if model == "plca" {
            assert_eq!(names, ["factor_0", "factor_1", "weights"]);
        } else {
            assert_eq!(names, ["basis", "marginal", "mixture"]);
        }
        // What is reported is the untempered likelihood of the data as given, at the parameters written.
        folder.ok(&format!(
            "fit {model} d.csv --init o.npz --max-iter 0 --output p.npz --quiet"
        ));
        let (a, b) = (
            &s["objective"],
            &folder.model("p.npz").metadata["objective"],
        );
        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
        assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} {b}");
        let s = folder.json(&format!(
            "fit {model} d.csv --rank 6 --temper 1,0.9 --max-iter 250 --tol 0 --output o.npz"
        ));
        assert_eq!(
            (&s["iterations"], &s["stop_reason"]),
            (&250.into(), &"max_iterations".into())
        );
    }
}

#[test]
fn resumed_schedules_write_the_same_bytes() {
    let folder = folder();
    for extra in ["", "--restarts 3"] {
        let line = format!("fit plsa d.csv --rank 4 --temper 1,0.9 {extra} --quiet");
        folder.resumes(&line, 7);
    }
}

#[test]
fn schedules_that_mean_nothing_are_refused() {
    let folder = folder();
    folder.text("real.csv", "1,2\n3,0.5\n");
    folder.refuses("
        2 | fit plca d.csv --rank 2 --temper 1,0 --output o.npz | --temper
        2 | fit plca d.csv --rank 2 --temper 1,1 --output o.npz | --temper
        2 | fit plca d.csv --rank 2 --temper 1,nan --output o.npz | --temper
        2 | fit plca d.csv --rank 2 --temper 0,0.9 --output o.npz | --temper
        2 | fit plca d.csv --rank 2 --temper 1,0.9,3 --output o.npz | --temper
        2 | fit plca d.csv --rank 2 --temper 1, --output o.npz | --temper
        2 | fit plca d.csv --rank 2 --temper 2,0.9 --output o.npz | --temper
        2 | fit nmf-kl d.csv --rank 2 --temper 1,0.9 --output o.npz | nmf-kl | --temper
        2 | fit plca d.csv --rank 2 --temper 1,0.9 --accelerate squarem --output o.npz | --accelerate
        2 | fit plca d.csv --rank 2 --temper 0.9 --accelerate squarem --output o.npz | --accelerate | --temper
        2 | fit plsa d.csv --rank 2 --temper 0.9 --accelerate squarem --output o.npz | --accelerate | --temper
        1 | fit plca real.csv --rank 2 --temper 1,0.9 --output o.npz | real.csv | [1, 1] | 0.5
    ");
}

#[test]
fn held_out_counts_choose_the_number_of_blocks() {
    let folder = folder();
    // Counts drawn from three blocks over a floor.
    let block = |i: usize, z: usize| if i % 3 == z { 3.0 } else { 0.3 };
    let w: Vec<f64> = (0..36).map(|at| block(at / 3, at % 3)).collect();
    let h: Vec<f64> = (0..45).map(|at| block(at % 15, at / 15)).collect();
    folder.arrays("m.npz", &[("w", &[12, 3], &w), ("h", &[3, 15], &h)]);
    let mut truth = folder.model("m.npz");
    truth.metadata = serde_json::json!({ "model": "nmf-kl" });
    plca_io::write_model(folder.path("m.npz"), &truth, false).unwrap();
    folder.ok("sample m.npz --draws 4000 --output s.npy");
    for model in ["plca", "plsa", "nmf-kl"] {
        let s = folder.json(&format!(
            "select {model} s.npy --ranks 1,3,10 --criterion held-out"
        ));
        let found = (&s["criterion"], &s["best"]);
        assert_eq!(found, (&"held-out".into(), &3.into()), "{s}");
    }
    // Eight blocks of many counts need eight components.
    let row = |i: usize| {
        (0..8)
            .map(|j| if i == j { "900" } else { "0" })
            .collect::<Vec<_>>()
            .join(",")
    };
    folder.text(
        "blocks.csv",
        &(0..8).map(|i| row(i) + "\n").collect::<String>(),
    );
    let s = folder.json("select plca blocks.csv --ranks 1,4,8 --criterion held-out");
    assert_eq!(s["best"], 8, "{s}");
    folder.text("few.csv", "0.5\n");
    folder.refuses(
        "
            1 | select plca few.csv --ranks 1 --criterion held-out | few.csv | too few
            2 | select plca d.csv --ranks 1..2 --criterion elbo | elbo | held-out
            2 | select plca d.csv --ranks 1..99999999999 --criterion bic | 99999999999
        ",
    );
}

/// Documents of few words: EM sets to 0 what the held-out words need. Scores are finite, and better than that of no model at all.
#[test]
fn held_out_scores_of_sparse_counts_are_finite() {
    let folder = Folder::new();
    let word = |n: usize| (n * n * 31 + n * 7) % 97 + 1;
    let entries = (0..900).map(|n| format!("{} {} 1\n", word(n), n / 6 + 1));
    folder.text("w.tns", &entries.collect::<String>());
    for model in ["plca", "plsa", "nmf-kl", "siplca --kernel 97x1"] {
        let s = folder.json(&format!(
            "select {model} w.tns --ranks 1,2,12 --criterion held-out --restarts 1"
        ));
        let scores: Vec<f64> = s["table"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["score"].as_f64().unwrap())
            .collect();
        let uniform = 97.0 * 150.0;
        assert!(
            scores.iter().all(|&s| s > 1.0 && s < uniform),
            "{model}: {scores:?}"
        );
        assert!(
            s["best"].is_number() && s["warnings"] == serde_json::json!([]),
            "{s}"
        );
    }
}

/// Energies: cells are held out instead of counts, in any unit, also where some are hidden.
#[test]
fn held_out_cells_choose_the_number_of_blocks() {
    let folder = Folder::new();
    let block = |at: usize, of: usize| if at % 3 == of { 3.0 } else { 0.2 };
    let cell = |i: usize, j: usize| {
        let noise = 0.9 + 0.2 * ((i * 37 + j * 101 + i * j) % 17) as f64 / 17.0;
        (0..3).map(|z| block(i, z) * block(j, z)).sum::<f64>() * noise
    };
    let values: Vec<f64> = (0..480).map(|at| cell(at / 24, at % 24)).collect();
    let mut hidden = values.clone();
    (0..480).step_by(23).for_each(|at| hidden[at] = f64::NAN);
    let scaled: Vec<f64> = values.iter().map(|x| 1e-6 * x).collect();
    for (name, values) in [("v.npy", &values), ("h.npy", &hidden), ("s.npy", &scaled)] {
        folder.npy(name, &[20, 24], values);
    }
    let select = |line: &str| {
        let s = folder.json(&format!(
            "select {line} --ranks 1,3,12 --criterion held-out"
        ));
        assert_eq!(s["best"], 3, "{s}");
        assert!(
            s["warnings"][0].as_str().unwrap().contains("not counts"),
            "{s}"
        );
        s["table"][1]["score"].as_f64().unwrap()
    };
    let score = select("plca v.npy");
    assert!(score > 0.0 && score < 0.02, "{score}");
    assert!((select("nmf-kl s.npy") / score - 1.0).abs() < 1e-6);
    select("plsa h.npy --missing nan");
}

#[test]
fn bic_of_no_counts_is_warned_about() {
    let folder = folder();
    folder.text("real.csv", "1,2\n3,0.5\n");
    let out = folder.run("select plca real.csv --ranks 1..2 --criterion bic");
    let err = String::from_utf8(out.stderr).unwrap();
    assert!(
        out.status.success() && err.starts_with("warning: ") && err.contains("BIC"),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1, "{err}");
    let table = String::from_utf8(out.stdout).unwrap();
    assert!(
        table.contains("<- best") && table.lines().count() == 3,
        "{table}"
    );
    folder.ok("select plca real.csv --ranks 1..2 --criterion bic --quiet");
    let aic = folder
        .run("select plca real.csv --ranks 1..2 --criterion aic")
        .stderr;
    assert!(String::from_utf8(aic).unwrap().contains("unit of the data"));
    folder.ok("select plca d.csv --ranks 1..2 --criterion aic");
    folder.ok("select plca d.csv --ranks 1..2 --criterion bic");
    assert!(
        folder.json("select plca real.csv --ranks 1..2 --criterion bic")["warnings"][0].is_string()
    );
}

#[test]
fn small_scores_have_the_digits_to_tell_them_apart() {
    let folder = Folder::new();
    let cell =
        |i: usize, j: usize| ((i + 1) * (j + 2)) as f64 + 0.01 * ((i * 5 + j * 3) % 7) as f64;
    let row = |i: usize| {
        (0..12)
            .map(|j| cell(i, j).to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    folder.text("v.csv", &(0..15).map(|i| row(i) + "\n").collect::<String>());
    let out =
        folder.run("select nmf-kl v.csv --ranks 1..2 --criterion held-out --restarts 1 --quiet");
    let text = String::from_utf8(out.stdout).unwrap();
    let scores: Vec<&str> = text
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(scores.len(), 2, "{text}");
    for score in scores {
        let value: f64 = score.parse().unwrap();
        assert!(
            value < 0.1 && score.split('.').nth(1).unwrap().len() == 8,
            "{text}"
        );
    }
}
