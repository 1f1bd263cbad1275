//! `plca consensus`: golden values, sweeps of fits, and what is refused.

use plca_dist::random::{Categorical, exponential};
use plca_io::Array;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;

use crate::Folder;
use crate::folder::interrupt;
use crate::golden::{array, cases};

fn close(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        let error = (got - expected).abs() / expected.abs().max(1.0);
        assert!(error < 1e-8, "{what}, entry {at}: {got} {expected}");
    }
}

/// A sample and the spectra that explain it.
struct Sample<'a> {
    x: &'a [f64],
    spectra: &'a Array<f64>,
}

impl Sample<'_> {
    fn model(&self, usage: &[f64]) -> Vec<f64> {
        let rows = self.spectra.values.chunks(self.x.len());
        let mut model = vec![0.0; self.x.len()];
        for (u, row) in usage.iter().zip(rows) {
            model.iter_mut().zip(row).for_each(|(y, s)| *y += u * s);
        }
        model
    }

    fn divergence(&self, usage: &[f64]) -> f64 {
        let cells = self.x.iter().zip(self.model(usage));
        let cell = |(&x, y): (&f64, f64)| if x > 0.0 { x * (x / y).ln() - x + y } else { y };
        cells.map(cell).sum()
    }

    /// How far the next multiplicative step would go.
    fn residual(&self, usage: &[f64]) -> f64 {
        let model = self.model(usage);
        let rows = self.spectra.values.chunks(self.x.len());
        let step = |(u, row): (&f64, &[f64])| {
            let cells = row.iter().zip(self.x).zip(&model);
            let gain = cells.map(|((s, x), y)| if *x > 0.0 { s * x / y } else { 0.0 });
            u * (gain.sum::<f64>() / row.iter().sum::<f64>() - 1.0).abs()
        };
        usage.iter().zip(rows).map(step).fold(0.0, f64::max)
    }
}

#[test]
fn golden() {
    for case in cases(include_str!("../../../testdata/golden/consensus.json")) {
        let name = case["name"].as_str().unwrap();
        let folder = Folder::new();
        let arrays = ["spectra", "X"].map(|name| (name, array(&case[name])));
        let [spectra, x] = arrays.each_ref().map(|(n, (s, d))| (*n, &s[..], &d[..]));
        folder.arrays("spectra.npz", &[spectra, x]);
        let line = format!(
            "consensus --from spectra.npz --rank {} --threshold {} --neighbourhood {} --output o.npz",
            case["K"], case["threshold"], case["neighbourhood"]
        );
        let summary = folder.json(&line);
        assert_eq!(summary["rank"], case["K"], "{name}");
        let number = |of: &Value, what: &str| {
            let [got, expected] = [&summary, of].map(|v| v[what].as_f64().unwrap());
            close(&[got], &[expected], &format!("{name}: {what}"));
        };
        for what in ["inertia", "silhouette", "squared_error", "kl"] {
            number(&case, what);
        }
        for what in ["inertia", "silhouette", "squared_error"] {
            let [got, expected] = [&summary, &case].map(|v| v["selection"][what].as_f64().unwrap());
            close(&[got], &[expected], &format!("{name}: selection, {what}"));
        }
        let file = folder.model("o.npz");
        for (got, expected) in [
            ("local_density", "local_density"),
            ("labels", "labels"),
            ("consensus_spectra", "consensus_spectra"),
            ("usage", "usage_least_squares"),
            ("share", "share"),
        ] {
            let (shape, values) = array(&case[expected]);
            assert_eq!(file.arrays[got].shape, shape, "{name}: {got}");
            close(&file.arrays[got].values, &values, &format!("{name}: {got}"));
        }
        // Of 20000 multiplicative steps, which have not come to an end everywhere.
        let (shape, expected) = array(&case["usage_kl"]);
        let (usage, spectra) = (&file.arrays["usage_kl"], &file.arrays["consensus_spectra"]);
        assert_eq!(usage.shape, shape, "{name}: usage_kl");
        let samples = arrays[1].1.1.chunks(spectra.shape[1]);
        let both = usage.values.chunks(shape[1]).zip(expected.chunks(shape[1]));
        let mut settled = 0;
        for (n, (x, (got, expected))) in samples.zip(both).enumerate() {
            let ended = Sample { x, spectra };
            assert!(
                ended.divergence(got) <= ended.divergence(expected) + 1e-10,
                "{name}, {n}"
            );
            if ended.residual(expected) < 1e-10 {
                close(got, expected, &format!("{name}: usage_kl of {n}"));
                settled += 1;
            }
        }
        assert!(settled >= shape[0] - 1, "{name}: {settled}");
        let kept: Vec<bool> = serde_json::from_value(case["kept"]["data"].clone()).unwrap();
        let kept: Vec<f64> = kept.into_iter().map(|k| f64::from(u8::from(k))).collect();
        assert_eq!(file.arrays["kept"].values, kept, "{name}");
        let order: Vec<f64> = serde_json::from_value(case["order"].clone()).unwrap();
        assert_eq!(file.arrays["order"].values, order, "{name}");
        assert!(file.arrays["gap"].values.iter().all(|&gap| gap <= 1e-6));
    }
}

/// Counts of 25 words in 60 documents of four topics, words in rows.
fn topics(folder: &Folder, name: &str) {
    const TOPICS: usize = 4;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    // A few large shares and many small ones.
    let mut spread =
        |n: usize| -> Vec<f64> { (0..n).map(|_| exponential(&mut rng).powi(3)).collect() };
    let words: Vec<_> = (0..TOPICS)
        .map(|_| Categorical::new(&spread(25)).unwrap())
        .collect();
    let mixtures: Vec<_> = (0..60)
        .map(|_| Categorical::new(&spread(TOPICS)).unwrap())
        .collect();
    let mut counts = vec![0.0; 25 * 60];
    for (document, mixture) in mixtures.iter().enumerate() {
        for _ in 0..200 {
            let word = words[mixture.sample(&mut rng)].sample(&mut rng);
            counts[word * 60 + document] += 1.0;
        }
    }
    folder.npy(name, &[25, 60], &counts);
}

#[test]
fn the_true_number_of_topics_is_the_most_stable() {
    let folder = Folder::new();
    topics(&folder, "v.npy");
    for model in ["nmf-kl", "plsa"] {
        let rows = folder.json(&format!(
            "consensus {model} v.npy --ranks 2..6 --restarts 10 --output o.npz"
        ));
        let rows = rows.as_array().unwrap();
        let ranks: Vec<_> = rows
            .iter()
            .map(|row| row["rank"].as_u64().unwrap())
            .collect();
        assert_eq!(ranks, [2, 3, 4, 5, 6]);
        let of = |row: &Value| row["selection"]["silhouette"].as_f64().unwrap();
        let stable = rows.iter().max_by(|a, b| of(a).total_cmp(&of(b))).unwrap();
        assert_eq!(stable["rank"], 4, "{model}: {rows:?}");
        assert!(of(stable) > 0.95, "{model}: {rows:?}");
        let error = |row: &Value| row["squared_error"].as_f64().unwrap();
        assert!(
            rows[..3].is_sorted_by(|a, b| error(a) > error(b)),
            "{model}: {rows:?}"
        );
        let file = folder.model("o.npz");
        assert_eq!(file.arrays["k4.consensus_spectra"].shape, [4, 25]);
        assert_eq!(file.arrays["k4.usage"].shape, [60, 4]);
        assert_eq!(file.arrays["k6.objective"].shape, [10]);
        assert_eq!(file.metadata["table"][2], rows[2]);
    }
}

/// The given dimension of PLSA is that of the samples.
#[test]
fn samples_may_lie_in_rows() {
    let folder = Folder::with_counts();
    folder.text("t.csv", "3,1,2\n1,5,6\n4,9,5\n1,2,3\n");
    let line = "--ranks 2 --restarts 5 --solver em --max-iter 40 --threshold 2 --output";
    let columns = folder.json(&format!("consensus plsa d.csv {line} a.npz"));
    let rows = folder.json(&format!("consensus plsa t.csv --given 0 {line} b.npz"));
    let [a, b] = ["a.npz", "b.npz"].map(|name| folder.model(name).arrays);
    assert_eq!(a["k2.usage"].shape, [4, 2]);
    for name in ["k2.consensus_spectra", "k2.usage", "k2.usage_kl"] {
        close(&a[name].values, &b[name].values, name);
    }
    let of = |rows: &Value| rows[0]["kl"].as_f64().unwrap();
    close(&[of(&columns)], &[of(&rows)], "kl");
}

#[test]
fn runs_are_those_of_fit_and_are_taken_from_their_folder() {
    let folder = Folder::with_counts();
    for (model, block) in [
        ("plca", "factor_0"),
        ("plsa", "basis"),
        ("nmf-kl", "w"),
        ("pntf", "factor_0"),
        ("ntf-l2", "factor_0"),
    ] {
        let line = format!(
            "consensus {model} d.csv --ranks 1,2 --restarts 4 --threshold 2 --seed 3 --max-iter 50"
        );
        folder.ok(&format!("{line} --threads 1 --quiet --output a.npz"));
        let runs = format!("{line} --quiet --runs {model}");
        folder.ok(&format!("{runs} --threads 3 --output b.npz"));
        assert!(folder.bytes("a.npz") == folder.bytes("b.npz"), "{model}");
        // The first start is that of the same seed.
        folder.ok(&format!(
            "fit {model} d.csv --rank 2 --seed 3 --max-iter 50 --quiet --output fit.npz"
        ));
        let run = |name: &str| folder.path(&format!("{model}/{name}.npz"));
        let kept = plca_io::read_checkpoint(&run("k2-r0")).unwrap();
        let fit = folder.model("fit.npz");
        assert_eq!(kept.arrays[block], fit.arrays[block], "{model}");
        assert_eq!(kept.metadata["objective"], fit.metadata["objective"]);
        // Some of the runs are missing, and made again; the others are read.
        for lost in ["k1-r2", "k2-r0", "k2-r3"] {
            std::fs::remove_file(run(lost)).unwrap();
        }
        let stamp = |name: &str| run(name).metadata().unwrap().modified().unwrap();
        let before = stamp("k2-r1");
        folder.ok(&format!("{runs} --output c.npz"));
        assert!(folder.bytes("a.npz") == folder.bytes("c.npz"), "{model}");
        assert_eq!(stamp("k2-r1"), before);
        assert!(run("k2-r3").exists());
    }
}

#[test]
fn an_interrupted_sweep_goes_on_from_its_runs() {
    let folder = Folder::with_counts();
    let line = "consensus nmf-kl d.csv --ranks 2,3 --restarts 6 --threshold 2 --tol 0 --quiet";
    let long = format!("{line} --max-iter 20000");
    let mut run = folder.start(&format!("{long} --runs runs --threads 2 --output o.npz"));
    while !folder.path("runs/k2-r0.npz").exists() && run.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let heard = interrupt(&run);
    let out = run.wait_with_output().unwrap();
    // It may have ended by itself.
    if heard && out.status.code() == Some(130) {
        let err = String::from_utf8(out.stderr).unwrap();
        assert!(err.starts_with("error: interrupted after "), "{err}");
        assert!(err.contains("of 12 runs; runs continues it"), "{err}");
        assert!(!folder.path("o.npz").exists());
        assert!(!folder.path("runs/k3-r5.npz").exists());
    }
    folder.ok(&format!("{long} --runs runs --output resumed.npz"));
    folder.ok(&format!("{long} --output whole.npz"));
    assert!(folder.bytes("whole.npz") == folder.bytes("resumed.npz"));
}

#[test]
fn what_has_no_consensus_is_refused() {
    let folder = Folder::with_counts();
    folder.npy("cube.npy", &[2, 2, 2], &[1.0; 8]);
    folder.text("gaps.csv", "1,2\nnan,3\n");
    folder.arrays(
        "odd.npz",
        &[("spectra", &[4, 2], &[1.0; 8]), ("X", &[1, 3], &[1.0; 3])],
    );
    folder.arrays("alone.npz", &[("spectra", &[4, 2], &[1.0; 8])]);
    let zero = [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
    folder.arrays(
        "zero.npz",
        &[("spectra", &[4, 2], &zero), ("X", &[1, 2], &[1.0, 1.0])],
    );
    let d = "consensus nmf-kl d.csv --ranks 2";
    #[rustfmt::skip]
    let cases = [
        (2, &*format!("{d} --restarts 3"), "0 neighbours|6 spectra"),
        (2, &format!("{d} --threshold nan"), "--threshold NaN"),
        (1, &format!("{d} --threshold 1e-300"), "rank 2|0 spectra are kept"),
        (2, &format!("{d} --given 0"), "nmf-kl has no option --given"),
        (2, &format!("{d} --from zero.npz --rank 1"), "--from"),
        (2, &format!("{d} --rank 2"), "--rank"),
        (2, "consensus nmf-kl d.csv", "--ranks"),
        (2, "consensus --from zero.npz", "--rank"),
        (2, "consensus skellam d.csv --ranks 2", "skellam has no consensus"),
        (1, "consensus plca cube.npy --ranks 2", "cube.npy|a matrix"),
        (1, "consensus plca gaps.csv --missing nan --ranks 1", "gaps.csv|hidden"),
        (1, "consensus --from odd.npz --rank 1", "odd.npz|2 columns"),
        (1, "consensus --from alone.npz --rank 1", "alone.npz|`X`"),
        (1, "consensus --from zero.npz --rank 1", "zero.npz|spectrum 1"),
    ];
    for (status, line, parts) in cases {
        let parts: Vec<&str> = parts.split('|').collect();
        folder.fails(status, &format!("{line} --output o.npz"), &parts);
    }
    let over = "consensus --from zero.npz --rank 1 --output zero.npz";
    folder.fails(2, over, &["the same file"]);
    // Runs of other settings or data, and damaged ones.
    let runs = "--restarts 4 --threshold 2 --quiet --runs r --output";
    let line = format!("consensus nmf-kl d.csv --ranks 2 {runs}");
    folder.ok(&format!("{line} o.npz"));
    let other = ["r/k2-r", "seed = 0, not 1"];
    folder.fails(1, &format!("{line} n.npz --seed 1"), &other);
    folder.text("e.csv", "3,1,4,1\n1,5,9,2\n2,6,5,4\n");
    let line = format!("consensus nmf-kl e.csv --ranks 2 {runs} n.npz");
    folder.fails(1, &line, &["r/k2-r", "sha256"]);
    folder.text("r/k2-r1.npz", "not a run");
    let line = format!("consensus nmf-kl d.csv --ranks 2 {runs} n.npz");
    folder.fails(1, &line, &["r/k2-r1.npz"]);
}

/// What no component reaches is left out, and said.
#[test]
fn data_that_no_component_reaches_are_dropped() {
    let folder = Folder::new();
    let spectra = [1.0, 1.0, 0.0].repeat(4);
    folder.arrays(
        "s.npz",
        &[
            ("spectra", &[4, 3], &spectra),
            ("X", &[1, 3], &[2.0, 2.0, 3.0]),
        ],
    );
    let out = folder.run("consensus --from s.npz --rank 1 --output o.npz --json");
    let err = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{err}");
    assert!(
        err.starts_with("warning: rank 1: data with the sum 3 are left out"),
        "{err}"
    );
    let summary: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(summary["dropped"], 3.0);
    assert_eq!(summary["silhouette"], Value::Null);
    assert_eq!(summary["squared_error"], 9.0);
    let file = folder.model("o.npz");
    close(&file.arrays["usage"].values, &[4.0], "usage");
    close(&file.arrays["usage_kl"].values, &[4.0], "usage_kl");
}

#[test]
fn a_fit_may_keep_the_components_of_a_consensus() {
    let folder = Folder::new();
    folder.text("v.csv", "9,1,0,8,1\n8,0,1,9,2\n1,8,7,0,9\n0,7,9,1,8\n");
    folder.ok("consensus plsa v.csv --ranks 2..3 --restarts 6 --output c.npz --quiet");
    let spectra = folder.model("c.npz").arrays["k2.consensus_spectra"].clone();
    for (model, block) in [("plsa", "basis"), ("nmf-kl", "w"), ("pntf", "factor_0")] {
        folder.ok(&format!(
            "fit {model} v.csv --rank 2 --init c.npz --freeze {block} --output m.npz"
        ));
        let kept = &folder.model("m.npz").arrays[block];
        assert_eq!(kept.shape, [4, 2]);
        let cell = |array: &Array<f64>, index: [usize; 2]| {
            let at = (0..array.values.len()).find(|&at| array.index(at) == index);
            array.values[at.unwrap()]
        };
        for (i, z) in (0..4).flat_map(|i| [(i, 0), (i, 1)]) {
            let (x, expected) = (cell(kept, [i, z]), cell(&spectra, [z, i]));
            assert!((x - expected).abs() < 1e-15, "{model}: {x} {expected}");
        }
        folder.ok("transform m.npz v.csv --output t.npz");
    }
    folder.text("rows.csv", "9,8,1,0\n1,0,8,7\n0,1,7,9\n8,9,0,1\n1,2,9,8\n");
    folder.ok("fit plsa rows.csv --given 0 --rank 2 --init c.npz --freeze basis --output m.npz");
    folder.refuses("
        1 | fit plsa v.csv --rank 4 --init c.npz --output m.npz | c.npz: is a consensus for these numbers of components: 2, 3; expected one of them as --rank
        1 | fit skellam v.csv --rank 2 --init c.npz --output m.npz | c.npz: is a consensus, and skellam has none
        1 | transform c.npz v.csv --output m.npz | c.npz: is a consensus, not a fit: plca fit MODEL DATA --rank K --init FILE --freeze BLOCK
    ");
}

/// Blocks of a start follow the names of the data, whatever the order of these.
#[test]
fn components_are_kept_by_the_names_of_their_entries() {
    let folder = Folder::new();
    folder.text(
        "v.csv",
        "id,sea,ship,wind,rain\na,9,7,1,0\nb,1,0,8,7\nc,8,9,0,1\nd,0,1,7,9\n",
    );
    folder.text(
        "turned.csv",
        "id,rain,sea,wind,ship\na,0,9,1,7\nb,7,1,8,0\nc,1,8,0,9\nd,9,0,7,1\n",
    );
    folder.text(
        "other.csv",
        "id,rain,sea,wind,boat\na,0,9,1,7\nb,7,1,8,0\nc,1,8,0,9\nd,9,0,7,1\n",
    );
    let options = "--labels first-column --given 0";
    folder.ok(&format!("fit plsa v.csv {options} --rank 2 --output m.npz"));
    folder.ok(&format!(
        "consensus plsa v.csv {options} --ranks 2 --restarts 6 --output c.npz --quiet"
    ));
    folder.ok("export m.npz --array basis --output m.csv");
    for start in ["m.npz", "c.npz", "m.csv"] {
        let fit = |data: &str| {
            let line = format!(
                "fit plsa {data} {options} --rank 2 --init {start} --freeze basis --tol 1e-12"
            );
            let out = folder.run(&format!("{line} --output o.npz --json"));
            assert_eq!(out.status.code(), Some(0), "{start} {data}");
            serde_json::from_slice::<Value>(&out.stdout).unwrap()["objective"]
                .as_f64()
                .unwrap()
        };
        let usual = fit("v.csv");
        let before = folder.model("o.npz").arrays["basis"].values.clone();
        let turned = fit("turned.csv");
        assert!(
            (usual - turned).abs() < 1e-9 * usual.abs(),
            "{start}: {usual} {turned}"
        );
        let after = folder.model("o.npz").arrays["basis"].values.clone();
        // The row of a word.
        for (i, j) in [(0, 1), (1, 3), (2, 2), (3, 0)] {
            assert_eq!(before[2 * i..2 * i + 2], after[2 * j..2 * j + 2], "{start}");
        }
        folder.refuses(&format!("1 | fit plsa other.csv {options} --rank 2 --init {start} --freeze basis --output o.npz | {start} | `basis` has no entry `boat`: expected the names of the data, in any order"));
    }
}
