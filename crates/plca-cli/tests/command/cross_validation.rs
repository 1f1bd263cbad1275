//! `select --criterion cv` through files, and what `select` does without a criterion.

use plca_dist::key::Key;
use plca_dist::random::{exponential, uniform};
use serde_json::{Value, json};

use crate::Folder;
use crate::golden::{array, cases, put};

fn folds(kind: &str) -> Vec<Value> {
    let cases = cases(include_str!(
        "../../../testdata/golden/selection/folds.json"
    ));
    let cases: Vec<Value> = cases.into_iter().filter(|c| c["kind"] == kind).collect();
    assert!(!cases.is_empty());
    cases
}

/// The starts of all ranks in one file, with the blocks of a model.
fn starts(folder: &Folder, case: &Value, blocks: [&str; 2], turned: bool) {
    let mut arrays = Vec::new();
    for (rank, start) in case["starts"].as_object().unwrap() {
        for (own, block) in ["w", "h"].into_iter().zip(blocks) {
            let from = match (turned, own) {
                (false, own) => own,
                (true, "w") => "h",
                (true, _) => "w",
            };
            let (mut shape, mut values) = array(&start[from]);
            if turned {
                let [rows, columns] = shape[..] else {
                    panic!("a matrix");
                };
                values = (0..rows * columns)
                    .map(|at| values[at % rows * columns + at / rows])
                    .collect();
                shape.reverse();
            }
            arrays.push((format!("k{rank}.{block}"), shape, values));
        }
    }
    let arrays: Vec<_> = arrays
        .iter()
        .map(|(name, shape, values)| (name.as_str(), &shape[..], &values[..]))
        .collect();
    folder.arrays("starts.npz", &arrays);
}

fn close(got: &Value, want: f64, what: &str) {
    let got = got.as_f64().unwrap();
    let error = (got - want).abs() / want.abs().max(1.0);
    assert!(error <= 1e-9, "{what}: {got} {want}");
}

fn list(v: &Value) -> Vec<f64> {
    let list = v["data"].as_array().or(v.as_array()).unwrap().iter();
    list.map(|x| x.as_f64().unwrap()).collect()
}

/// Every number of a table of the reference.
fn check(table: &Value, case: &Value, what: &str) {
    assert_eq!(table["criterion"], "cv", "{what}");
    let rows = table["table"].as_array().unwrap();
    let ranks: Vec<&Value> = rows.iter().map(|row| &row["rank"]).collect();
    assert_eq!(json!(ranks), case["ranks"], "{what}");
    let mut scores = list(&case["scores"]).into_iter();
    for (at, row) in rows.iter().enumerate() {
        let repeats = row["scores"].as_array().unwrap().iter();
        for score in repeats.flat_map(|folds| folds.as_array().unwrap()) {
            close(score, scores.next().unwrap(), what);
        }
        for (name, of) in [
            ("score", "mean"),
            ("se", "se"),
            ("difference", "difference"),
            ("difference_se", "difference_se"),
        ] {
            close(&row[name], list(&case[of])[at], what);
        }
        assert!(
            row["start_sd"].is_null() && row["seconds"].is_number(),
            "{what}"
        );
    }
    assert_eq!(scores.next(), None, "{what}");
    for name in ["best", "one_se", "paired"] {
        assert_eq!(table[name], case[name], "{what}: {name}");
    }
    assert!(table["warnings"].is_array(), "{what}");
}

// [SEL 2]
#[test]
fn tables_match_the_reference() {
    for case in folds("speckled") {
        let folder = Folder::new();
        put(&folder, "v.npy", &case["v"]);
        let mask = match case.get("observed") {
            Some(observed) => {
                put(&folder, "mask.npy", observed);
                "--mask mask.npy"
            }
            None => "",
        };
        let zeros = match case["zeros"].as_bool().unwrap() {
            true => "",
            false => "--zeros stored",
        };
        let ranks: Vec<String> = list(&case["ranks"]).iter().map(f64::to_string).collect();
        let how = format!(
            "--ranks {}..{} --criterion cv --seed {} --folds {} --repeats {} --smooth {} {mask} {zeros} --init starts.npz --tol 0 --max-iter {}",
            ranks[0],
            ranks[ranks.len() - 1],
            case["seed"],
            case["folds"],
            case["repeats"],
            case["smoothing"],
            case["iterations"],
        );
        starts(&folder, &case, ["w", "h"], false);
        for options in [
            "--update sequential",
            "--update sequential --threads 1",
            "--threads 3 --restarts 5",
            "--solver em --missing-method multiplicative",
            "--rule one-se",
        ] {
            let table = folder.json(&format!("select nmf-kl v.npy {how} {options}"));
            check(&table, &case, options);
            let rule = if options.contains("one-se") {
                "one_se"
            } else {
                "best"
            };
            assert_eq!(table["proposed"], table[rule]);
            assert_eq!(table["rule"], rule.replace('_', "-"));
        }
        let sizes = array(&case["v"]).0;
        if mask.is_empty() {
            // Other storages of the same cells, with zeros stored and not.
            let (shape, values) = array(&case["v"]);
            let row = |row: &[f64]| row.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
            let rows = values.chunks_exact(shape[1]).map(|r| row(r) + "\n");
            folder.text("v.csv", &rows.collect::<String>());
            let cells = |zeros: bool| -> String {
                let cells = values
                    .iter()
                    .enumerate()
                    .filter(|(_, x)| zeros || **x > 0.0);
                cells
                    .map(|(at, x)| format!("{} {} {x}\n", at / shape[1] + 1, at % shape[1] + 1))
                    .collect()
            };
            folder.text("v.tns", &cells(false));
            folder.text("zeros.tns", &cells(true));
            let shape = format!("--shape {}x{}", sizes[0], sizes[1]);
            for data in [
                "v.csv".into(),
                format!("v.tns {shape}"),
                format!("zeros.tns {shape}"),
            ] {
                let table = folder.json(&format!("select nmf-kl {data} {how}"));
                check(&table, &case, &data);
            }
        }
        // PLCA from the same starts goes the same way, up to the scale that it takes from the data.
        if case.get("observed").is_none() && case["zeros"] == true {
            let normalised = plca_starts(&folder, &case);
            let table = folder.json(&format!(
                "select plca v.npy {} --missing-method multiplicative",
                how.replace("starts.npz", normalised)
            ));
            check(&table, &case, "plca");
        }
    }
}

/// Starts of PLCA that are those of the case: columns that sum to 1, and their weights.
fn plca_starts(folder: &Folder, case: &Value) -> &'static str {
    let mut arrays: Vec<(String, Vec<usize>, Vec<f64>)> = Vec::new();
    for (rank, start) in case["starts"].as_object().unwrap() {
        let k: usize = rank.parse().unwrap();
        let (w_shape, mut w) = array(&start["w"]);
        let (h_shape, h) = array(&start["h"]);
        let mut second = vec![0.0; h.len()];
        let mut weights = vec![0.0; k];
        for z in 0..k {
            let of_w: f64 = (0..w_shape[0]).map(|i| w[i * k + z]).sum();
            let of_h: f64 = h[z * h_shape[1]..(z + 1) * h_shape[1]].iter().sum();
            (0..w_shape[0]).for_each(|i| w[i * k + z] /= of_w);
            (0..h_shape[1]).for_each(|j| second[j * k + z] = h[z * h_shape[1] + j] / of_h);
            weights[z] = of_w * of_h;
        }
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        arrays.push((format!("k{rank}.weights"), vec![k], weights));
        arrays.push((format!("k{rank}.factor_0"), w_shape, w));
        arrays.push((format!("k{rank}.factor_1"), vec![h_shape[1], k], second));
    }
    let arrays: Vec<_> = arrays
        .iter()
        .map(|(name, shape, values)| (name.as_str(), &shape[..], &values[..]))
        .collect();
    folder.arrays("plca.npz", &arrays);
    "plca.npz"
}

/// Three groups of species at the sites of a survey, from few counts to many.
fn survey(folder: &Folder) {
    let profile = |z: usize, i: usize| {
        let level = (i * 31 + z * 17) % 13;
        if i % 3 == z { 4.0 + level as f64 } else { 0.02 }
    };
    let mut counts = Vec::new();
    for site in 0..40usize {
        let depth = [60.0, 400.0, 3000.0, 9000.0][site % 4];
        let share = |z: usize| [0.75, 0.2, 0.05][(site / 4 + z) % 3];
        let cell = |i: usize| (0..3).map(|z| share(z) * profile(z, i)).sum::<f64>();
        let sum: f64 = (0..36).map(cell).sum();
        let noise =
            |i: usize| 0.8 + 0.4 * ((site * site * 7 + i * i * 5 + site * i) % 11) as f64 / 10.0;
        counts.push(
            (0..36)
                .map(|i| (depth * noise(i) * cell(i) / sum).round())
                .collect::<Vec<_>>(),
        );
    }
    let table = |name: &str, of: &dyn Fn(&[f64], f64) -> String| {
        let row = |row: &Vec<f64>| {
            let total: f64 = row.iter().sum();
            row.iter()
                .map(|&x| of(&[x], total))
                .collect::<Vec<_>>()
                .join(",")
                + "\n"
        };
        folder.text(name, &counts.iter().map(row).collect::<String>());
    };
    table("counts.csv", &|x, _| x[0].to_string());
    table("cpm.csv", &|x, total| format!("{:.2}", 1e6 * x[0] / total));
    table("rounded.csv", &|x, total| {
        (1e6 * x[0] / total).round().to_string()
    });
}

fn warned(table: &Value, part: &str) -> bool {
    let warnings = table["warnings"].as_array().unwrap();
    warnings.iter().any(|w| w.as_str().unwrap().contains(part))
}

/// Ranks of which one cell decides the score, and ranks that no data of this shape have.
#[test]
fn scores_that_a_few_cells_decide_are_told() {
    let folder = Folder::new();
    survey(&folder);
    let torn = |ranks: &str| {
        let line = format!("select plsa counts.csv --ranks {ranks} --restarts 1 --smooth 1e-12");
        let table = folder.json(&line);
        ["decide the score of these ranks", "10 times the largest"].map(|part| warned(&table, part))
    };
    assert_eq!(torn("10..12"), [true; 2]);
    assert_eq!(torn("1..3"), [false; 2]);
    let line = "select plsa counts.csv --ranks 37..38";
    folder.fails(2, line, &["--ranks", "at most 36"]);
}

/// A hidden cell beside which all is 0 but in its own row and column may be as large as it likes: a fit that makes it so says it.
#[test]
fn runaway_predictions_are_told() {
    let folder = Folder::new();
    folder.text("corner.csv", "nan,1,3\n1,0,0\n2,0,0\n");
    let line = "fit plca corner.csv --missing nan --rank 1 --output m.npz --solver";
    let told = folder.told(&format!("{line} fast"));
    assert!(told.contains("the hidden cell [0, 0]"), "{told}");
    assert!(
        !folder
            .told(&format!("{line} em --max-iter 5"))
            .contains("hidden cell [")
    );
    folder.text("zeros.csv", "nan,0,0\n0,0,0\n0,0,0\n");
    let told =
        folder.told("fit skellam zeros.csv --missing nan --rank 1 --output z.npz --max-iter 20");
    assert!(!told.contains("hidden cell ["), "{told}");
    folder.text("plain.csv", "1,2,3\n2,4,7\n3,6,9\n5,9,15\n");
    assert!(!warned(
        &folder.json("select plca plain.csv --ranks 1..2"),
        "10 times the largest"
    ));
}

#[test]
fn without_a_criterion_the_unit_does_not_matter() {
    let folder = Folder::new();
    survey(&folder);
    for data in ["counts.csv", "cpm.csv", "rounded.csv"] {
        for model in ["plsa --given 0", "plca", "nmf-kl"] {
            let line = format!("select {model} {data} --ranks 1..5 --restarts 2");
            let table = folder.json(&line);
            let found = [&table["criterion"], &table["rule"], &table["best"]];
            assert_eq!(
                found,
                [&json!("cv"), &json!("best"), &json!(3)],
                "{line}: {table}"
            );
            assert_eq!(warned(&table, "not counts"), data == "cpm.csv");
        }
    }
    // Held-out counts of what are none.
    for criterion in ["held-out", "bic", "aic"] {
        let line =
            |data| format!("select plca {data} --ranks 1..2 --restarts 1 --criterion {criterion}");
        assert!(!warned(&folder.json(&line("counts.csv")), "cv"));
        assert!(
            warned(&folder.json(&line("rounded.csv")), "--criterion cv"),
            "{criterion}"
        );
    }
}

/// Whole stars from 1 to 5 for two fifths of a product of rank 3 that is cut off at both ends: four or five components predict them.
#[test]
fn ratings_are_no_counts() {
    for seed in 0..2 {
        let folder = Folder::new();
        let mut rng = Key::of(&[seed]).generator();
        let mut drawn = |n: usize| (0..n).map(|_| exponential(&mut rng)).collect::<Vec<_>>();
        let (users, items) = (drawn(80 * 3), drawn(50 * 3));
        let mean = |u: usize, i: usize| {
            (0..3)
                .map(|z| users[3 * u + z] * items[3 * i + z])
                .sum::<f64>()
        };
        let mut sorted: Vec<f64> = (0..4000).map(|at| mean(at / 50, at % 50)).collect();
        sorted.sort_by(f64::total_cmp);
        let mut text = String::from("user,item,rating\n");
        for (user, item) in (0..80).flat_map(|u| (0..50).map(move |i| (u, i))) {
            if uniform(&mut rng) < 0.4 {
                let rating = (3.0 * mean(user, item) / sorted[2000])
                    .round()
                    .clamp(1.0, 5.0);
                text.push_str(&format!("u{user},i{item},{rating}\n"));
            }
        }
        folder.text("ratings.csv", &text);
        let line = "select nmf-kl ratings.csv --labels entries --missing unstored --ranks 1..5";
        let table = folder.json(line);
        let best = table["best"].as_u64().unwrap();
        assert!(
            table["criterion"] == "cv" && (4..=5).contains(&best),
            "{table}"
        );
        let table = folder.json(&format!("{line} --criterion held-out"));
        assert!(
            warned(&table, "--criterion cv") && warned(&table, "ratings"),
            "{table}"
        );
        let out = folder.run(&format!("{line} --criterion held-out"));
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(err.lines().count(), 1, "{err}");
    }
}

/// Scores that differ by rounding are equal, under every criterion.
#[test]
fn of_equal_scores_the_smallest_rank_wins() {
    let folder = Folder::new();
    // Of rank one: any more components change nothing.
    let values: Vec<f64> = (0..30)
        .map(|at| f64::from((at / 6 + 1) * (at % 6 + 2)))
        .collect();
    folder.npy("v.npy", &[5, 6], &values);
    let table = folder.json("select plsa v.npy --ranks 4,3,2 --criterion held-out --tol 1e-12");
    let scores = table["table"].as_array().unwrap().iter();
    let scores: Vec<f64> = scores.map(|row| row["score"].as_f64().unwrap()).collect();
    let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let ties = |score: &&f64| **score - least <= 1e-9 * least;
    let ranks = [4, 3, 2].into_iter().zip(&scores);
    let tied = ranks.filter(|(_, score)| ties(score)).map(|(rank, _)| rank);
    assert_eq!(table["best"], tied.min().unwrap(), "{table}");
}

#[test]
fn a_table_has_a_picture_and_says_how_it_was_made() {
    let folder = Folder::new();
    survey(&folder);
    let out = folder
        .run("select plsa counts.csv --ranks 2..41 --folds 3 --restarts 1 --max-iter 20 --quiet");
    assert_eq!(out.status.code(), Some(0));
    let text = String::from_utf8(out.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // The head, 40 ranks, those of them that a matrix of 36 columns has as a picture, and two sentences.
    assert_eq!(lines.len(), 1 + 40 + 35 + 2, "{text}");
    assert!(lines[0].split_whitespace().nth(1) == Some("cv"), "{text}");
    assert_eq!(text.matches("<-").count(), 1, "{text}");
    let picture = &lines[41..76];
    assert!(
        picture.iter().all(|line| line.matches('o').count() == 1),
        "{text}"
    );
    assert!(
        picture.iter().all(|line| line.chars().count() <= 6 + 48),
        "{text}"
    );
    assert!(picture.iter().any(|line| line.contains('|')), "{text}");
    assert!(
        lines[76].starts_with("criterion cv: cells in 3 folds") && lines[76].ends_with("rule best")
    );
    assert!(lines[77].contains("without --criterion"), "{text}");
    let table =
        folder.json("select plsa counts.csv --ranks 2..41 --folds 3 --restarts 1 --max-iter 20");
    let last = &table["table"][39];
    assert_eq!(last["rank"], 41);
    for name in [
        "score",
        "se",
        "difference",
        "difference_se",
        "start_sd",
        "seconds",
        "scores",
    ] {
        assert!(last[name].is_null(), "{name}: {last}");
    }
    assert!(
        warned(&table, "37, 38, 39, 40, 41") && warned(&table, "--max-iter 20"),
        "{table}"
    );
    let explicit = folder.ok(
        "select plca counts.csv --criterion cv --ranks 2..4 --repeats 2 --zeros stored --quiet",
    );
    assert!(
        explicit.contains("criterion cv: cells above 0 in 5 folds, 2 times"),
        "{explicit}"
    );
    assert!(!explicit.contains("without --criterion"));
}

/// The largest and the smallest rank that was tried are doubted.
#[test]
fn proposals_at_an_end_are_warned_about() {
    let folder = Folder::new();
    survey(&folder);
    for (ranks, part) in [
        ("1..2", Some("largest that was tried")),
        ("4..6", Some("smallest that was tried")),
        ("2..4", None),
    ] {
        let table = folder.json(&format!(
            "select nmf-kl counts.csv --ranks {ranks} --restarts 1"
        ));
        assert_eq!(warned(&table, "that was tried"), part.is_some(), "{table}");
        assert!(part.is_none_or(|part| warned(&table, part)), "{table}");
    }
}

#[test]
fn turned_data_and_starts_that_lack_are_told() {
    let folder = Folder::new();
    let case = &folds("speckled")[0];
    put(&folder, "v.npy", &case["v"]);
    starts(&folder, case, ["w", "h"], true);
    // Folds are those of the file, whatever way round the model takes it; only the order of the updates is another.
    let how = "--criterion cv --ranks 1..4 --folds 4 --seed 7100 --repeats 2";
    let own = folder.json(&format!("select nmf-kl v.npy {how}"));
    let turned = folder.json(&format!("select nmf-kl v.npy {how} --transpose"));
    let one = |table: &Value| table["table"][0]["scores"].clone();
    for (own, turned) in list(&json!(one(&own)[0]))
        .iter()
        .zip(list(&one(&turned)[0]))
    {
        assert!((own / turned - 1.0).abs() < 1e-6, "{own} {turned}");
    }
    let start = "--criterion cv --folds 4 --tol 0 --max-iter 0 --init starts.npz";
    folder.refuses(&format!(
        "
            1 | select nmf-kl v.npy {start} --ranks 2..9 | starts.npz | k5.w | rank 5
            1 | select plsa v.npy {start} --ranks 2..3 | starts.npz | k2.basis
            1 | select nmf-kl v.npy {start} --ranks 2..3 | starts.npz | rank 3 | `w`
        "
    ));
    let table = folder.json(&format!(
        "select nmf-kl v.npy {start} --transpose --ranks 2..3"
    ));
    assert!(table["table"][0]["score"].as_f64().unwrap() > 0.0);
}

#[test]
fn options_of_cross_validation_that_make_no_sense_are_refused() {
    let folder = Folder::with_counts();
    folder.refuses(
        "
        2 | select nmf-kl d.csv --ranks 1..2 --folds 1 | --folds 1 | at least 2
        2 | select nmf-kl d.csv --ranks 1..2 --folds x | --folds
        2 | select nmf-kl d.csv --ranks 1..2 --repeats 0 | --repeats 0
        2 | select nmf-kl d.csv --ranks 1..2 --restarts 0 | --restarts 0
        2 | select nmf-kl d.csv --ranks 1..2 --smooth 0 | --smooth 0 | between 0 and 1
        2 | select nmf-kl d.csv --ranks 1..2 --smooth 1 | --smooth 1
        2 | select nmf-kl d.csv --ranks 1..2 --smooth nan | --smooth NaN
        2 | select nmf-kl d.csv --ranks 1..2 --rule worst | worst | one-se
        2 | select nmf-kl d.csv --ranks 1..2 --solver fast --update sequential | --update | fast
        2 | select nmf-kl d.csv --ranks 1..2 --update hals | --update hals | sequential
        2 | select nmf-kl d.csv --ranks 1..2 --criterion bic --folds 3 | --folds | --criterion cv
        2 | select nmf-kl d.csv --ranks 1..2 --criterion held-out --update sequential | --update
        2 | select nmf-kl d.csv --ranks 1..2 --prior w=rate:1,1 | --prior
        1 | select nmf-kl d.csv --ranks 1..2 --folds 13 | d.csv | 13 folds | 12 positive cells
        2 | select plsa d.csv --ranks 1..2 --missing-method multiplicative | --missing-method
        2 | select plca d.csv --ranks 1..2 --update sequential | --update
        2 | select siplca d.csv --kernel 1x2 --ranks 1 --criterion cv | siplca | cv | plsa and nmf
        2 | select plsa-vb d.csv --ranks 1 --criterion cv | plsa-vb
    ",
    );
    folder.text(
        "wide.tns",
        "1 1 1 1 3\n2 2 1 1 4\n9 9 1 2 5\n3 1 3 1 3\n4 1 2 1 2\n",
    );
    let wide = "wide.tns --shape 100000x100000x100000x100000 --ranks 1";
    folder.refuses(&format!(
        "1 | select plca {wide} | wide.tns | 100000 x 100000 | --zeros stored"
    ));
    folder.ok(&format!(
        "select plca {wide} --zeros stored --restarts 1 --folds 2 --max-iter 20 --quiet"
    ));
    folder.text("signed.csv", "1,-2\n3,4\n");
    folder.refuses("1 | select plca signed.csv --ranks 1 --folds 2 | signed.csv | -2");
}

/// To a model by variational Bayes a sample of shares is one count.
#[test]
fn shares_are_few_counts_to_variational_bayes() {
    let folder = Folder::new();
    survey(&folder);
    let text = String::from_utf8(folder.bytes("cpm.csv")).unwrap();
    let share = |x: &str| format!("{:.6}", x.parse::<f64>().unwrap() / 1e6);
    let row = |line: &str| line.split(',').map(share).collect::<Vec<_>>().join(",") + "\n";
    folder.text("shares.csv", &text.lines().map(row).collect::<String>());
    for (data, sum) in [
        ("shares.csv", Some("sum to 1, ")),
        ("cpm.csv", Some("sum to 1000000, ")),
        ("counts.csv", None),
        ("rounded.csv", None),
    ] {
        for fit in ["plsa-vb", "plsa-vb --given 0", "plca-vb"] {
            let out = folder.run(&format!(
                "fit {fit} --rank 2 --max-iter 3 --tol 0 --output o.npz {data}"
            ));
            let err = String::from_utf8(out.stderr).unwrap();
            let told = err
                .lines()
                .filter(|line| line.contains("look like shares"))
                .count();
            assert_eq!(told, usize::from(sum.is_some()), "{fit} {data}: {err}");
            assert!(
                sum.is_none_or(|sum| err.contains(sum)),
                "{fit} {data}: {err}"
            );
        }
    }
    // By the likelihood alone the unit of a sample does not matter.
    folder.ok("fit plsa shares.csv --given 0 --rank 2 --output o.npz");
}
