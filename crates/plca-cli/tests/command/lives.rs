//! What holds for a fit of every model: it repeats and is resumed to the last bit, keeps what is frozen, in either precision and in either kind of file.

use plca_run::{ModelEntry, models};

use crate::Folder;

/// What each model is fitted with, the arrays of its file and its objective.
#[rustfmt::skip]
pub(crate) const MODELS: [(&str, &str, &str, &str); 17] = [
    ("plca", "", "factor_0 factor_1 weights", "log_likelihood"),
    ("plsa", "", "basis marginal mixture", "log_likelihood"),
    ("plca-vb", "", "factor_0 factor_0_shape factor_1 factor_1_shape weights weights_shape", "elbo"),
    ("plsa-vb", "", "basis basis_shape mixture mixture_shape", "elbo"),
    ("nmf-kl", "", "h w", "kl_divergence"),
    ("skellam", "", "activations atoms", "log_posterior"),
    ("skellam-vb", "", "activations activations_rate activations_shape atoms atoms_shape", "elbo"),
    ("skellam-cp", "--signed-mode 0", "atoms factor_1 weights", "log_posterior"),
    ("skellam-cp-vb", "--signed-mode 0", "atoms atoms_shape factor_1 factor_1_shape weights weights_rate weights_shape", "elbo"),
    ("siskellam", "--kernel 2x2", "activations atoms", "log_posterior"),
    ("siskellam-vb", "--kernel 2x2", "activations activations_rate activations_shape atoms atoms_shape", "elbo"),
    ("snmf-ding", "", "activations basis", "squared_error"),
    ("kmeans", "", "centres labels", "squared_error"),
    ("siplca", "--kernel 2x2", "impulses kernels weights", "log_likelihood"),
    ("tiplca", "--kernel 2x2", "impulses kernels weights", "log_likelihood"),
    ("pntf", "", "factor_0 factor_1 weights", "squared_error"),
    ("ntf-l2", "", "factor_0 factor_1", "squared_error"),
];

/// Runs a test for every model, with how a fit of it begins.
fn each(test: impl Fn(&Folder, &ModelEntry, &str)) {
    assert_eq!(models().len(), MODELS.len());
    for (name, extra, ..) in MODELS {
        let folder = Folder::with_counts();
        let mut mask = [1.0; 12];
        mask[5] = 0.0;
        folder.npy("mask.npy", &[3, 4], &mask);
        let entry = plca_run::model(name).unwrap();
        test(
            &folder,
            entry,
            &format!("fit {name} d.csv --rank 2 {extra} --quiet"),
        );
    }
}

#[test]
fn resumed_runs_write_the_same_bytes() {
    each(|folder, entry, fit| {
        let mut ways = vec!["", "--restarts 3", "--precision f32 --restarts 2"];
        #[rustfmt::skip]
        let all: [(&str, &[&str]); 4] = [
            ("accelerate", &["--accelerate squarem", "--accelerate parabolic", "--accelerate momentum --restarts 2"]),
            ("anneal", &["--anneal 0.7,9"]),
            ("impulse_power", &["--impulse-power 1.1"]),
            ("temper", &["--temper 0.9"]),
        ];
        for (option, words) in all {
            if entry.has(option) {
                ways.extend(words);
            }
        }
        if entry.separates {
            ways.extend([
                "--solver fast --restarts 2",
                "--solver fast --precision f32",
            ]);
        }
        if !["snmf-ding", "kmeans", "ntf-l2", "plca-vb", "plsa-vb"].contains(&entry.name) {
            ways.push("--mask mask.npy");
        }
        // It ends by itself soon.
        let every = if entry.name == "kmeans" { 1 } else { 14 };
        for way in ways {
            folder.resumes(&format!("{fit} --tol 0 --max-iter 20 {way}"), every);
        }
        folder.ok(&format!(
            "{fit} --tol 0 --max-iter 20 --output o.npz --checkpoint c.npz --checkpoint-every 1"
        ));
        if entry.has("anneal") {
            folder.refuses(&format!(
                "1 | {fit} --tol 0 --max-iter 20 --anneal 0.8,9 --output x.npz --resume c.npz | c.npz | anneal"
            ));
        }
        folder.refuses(&format!(
            "
            1 | {fit} --tol 1 --max-iter 20 --output x.npz --resume c.npz | c.npz | tol
            1 | {fit} --tol 0 --max-iter 20 --seed 4 --output x.npz --resume c.npz | c.npz | seed = 0
            1 | {fit} --tol 0 --max-iter 20 --precision f32 --output x.npz --resume c.npz | c.npz | precision
            "
        ));
    });
}

#[test]
fn threads_and_repetition_give_the_same_bytes() {
    each(|folder, entry, fit| {
        let bytes = |words: &str| {
            folder.ok(&format!("{fit} --output o.npz {words}"));
            folder.bytes("o.npz")
        };
        let one = bytes("--max-iter 9 --seed 5 --restarts 3 --threads 1");
        for _ in 0..2 {
            assert!(
                one == bytes("--max-iter 9 --seed 5 --restarts 3 --threads 2"),
                "{}",
                entry.name
            );
        }
        let start = |seed: usize| {
            bytes(&format!("--seed {seed} --tol 0 --max-iter 0"));
            folder.model("o.npz").arrays
        };
        assert_ne!(start(6), start(7), "{}", entry.name);
    });
}

#[test]
fn frozen_blocks_stay_bit_for_bit() {
    each(|folder, entry, fit| {
        if !entry.has("freeze") {
            return;
        }
        folder.ok(&format!("{fit} --max-iter 3 --output a.npz"));
        let a = folder.model("a.npz").arrays;
        let mut blocks = entry.free_blocks(2);
        blocks.retain(|block| a.contains_key(block));
        assert!(blocks.len() >= 2, "{}", entry.name);
        for block in blocks.iter().filter(|block| !block.ends_with("_rate")) {
            // Rates are frozen with their shapes.
            let rate = block.replace("_shape", "_rate");
            let frozen = match rate != *block && blocks.contains(&rate) {
                true => format!("{block},{rate}"),
                false => block.clone(),
            };
            folder.ok(&format!(
                "{fit} --init a.npz --freeze {frozen} --output b.npz --max-iter 9 --tol 0"
            ));
            let b = folder.model("b.npz").arrays;
            assert_eq!(a[block], b[block], "{} {block}", entry.name);
            assert_ne!(a, b, "{} {block}: the other blocks moved", entry.name);
        }
    });
}

#[test]
fn single_precision_agrees_with_double() {
    each(|folder, entry, fit| {
        folder.ok(&format!("{fit} --max-iter 0 --output i.npz"));
        let objective = |precision: &str| {
            let line = format!("{fit} --init i.npz --tol 0 --max-iter 10 --output o.npz");
            let told = folder.json(&format!("{line} --precision {precision}"));
            told["objective"].as_f64().unwrap()
        };
        let (a, b) = (objective("f64"), objective("f32"));
        assert!(
            (a - b).abs() <= 1e-4 * (1.0 + a.abs()),
            "{} {a} {b}",
            entry.name
        );
    });
}

#[test]
fn files_of_both_kinds_go_through_the_other_commands() {
    each(|folder, entry, fit| {
        let (_, _, names, objective) = MODELS
            .iter()
            .find(|(name, ..)| *name == entry.name)
            .unwrap();
        for precision in ["f64", "f32"] {
            for name in ["o.npz", "o.safetensors"] {
                let fit =
                    format!("{fit} --precision {precision} --output {name} --tol 0 --max-iter 7");
                let told = folder.json(&fit);
                let file = folder.model(name);
                let found: Vec<&str> = file.arrays.keys().map(String::as_str).collect();
                assert_eq!(&found.join(" "), names, "{}", entry.name);
                assert_eq!(
                    file.metadata["objective_name"], *objective,
                    "{}",
                    entry.name
                );
                assert_eq!(file.metadata["objective"], told["objective"]);
                assert_eq!(
                    (&told["model"], &file.metadata["seed"]),
                    (&entry.name.into(), &0.into())
                );
                // It ends by itself before.
                if entry.name != "kmeans" {
                    assert_eq!(told["iterations"], 7);
                    assert_eq!(told["stop_reason"], "max_iterations");
                }
                assert!(told["seconds"].is_f64(), "{told}");
                folder.ok(&format!("reconstruct {name} --output v.npy"));
                assert_eq!(folder.dense("v.npy").shape, [3, 4]);
                assert!(folder.json(&format!("inspect {name}"))["arrays"].is_object());
            }
            let (a, b) = (folder.found("o.npz"), folder.found("o.safetensors"));
            assert_eq!((a.arrays, a.metadata), (b.arrays, b.metadata));
        }
    });
}
