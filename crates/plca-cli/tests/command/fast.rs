//! `--solver`.

use crate::Folder;

/// Counts with a hidden cell, and a tensor of order 3.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.text("d.csv", "3,1,4,1,7\n1,5,9,2,1\n2,6,5,3,2\n8,1,0,0,3\n");
    folder.text("s.mtx", "%%MatrixMarket matrix coordinate real general\n4 3 6\n1 1 3\n2 2 5\n3 3 1\n4 1 2\n1 2 1\n4 3 2\n");
    let mask: Vec<f64> = (0..20).map(|i| f64::from(u8::from(i != 7))).collect();
    folder.npy("mask.npy", &[4, 5], &mask);
    let cells: Vec<f64> = (0..24).map(|i| f64::from((i * 7) % 5)).collect();
    folder.npy("t.npy", &[2, 3, 4], &cells);
    folder
}

const FITS: [&str; 9] = [
    "plca d.csv --rank 2",
    "plca s.mtx --rank 2",
    "plca t.npy --rank 2",
    "plca d.csv --rank 3 --mask mask.npy",
    "plca d.csv --rank 2 --prior factor_0=dirichlet:1.5 --prior weights=dirichlet:2",
    "plsa d.csv --rank 2",
    "plsa d.csv --rank 2 --given 0 --mask mask.npy",
    "plsa d.csv --rank 2 --prior basis=dirichlet:1.1 --prior mixture=dirichlet:1.2",
    "nmf-kl s.mtx --rank 2",
];

/// No worse than EM after as many iterations, in both precisions; the model goes through the other commands.
#[test]
fn fast_fits_what_em_fits() {
    let folder = folder();
    for fit in FITS {
        for precision in ["f64", "f32"] {
            let run = |solver: &str| {
                let line = format!(
                    "fit {fit} --solver {solver} --precision {precision} --max-iter 30 --tol 1e-300 --output {solver}.npz"
                );
                folder.json(&line)["objective"].as_f64().unwrap()
            };
            let (fast, em) = (run("fast"), run("em"));
            let better = if fit.starts_with("nmf") {
                em - fast
            } else {
                fast - em
            };
            assert!(better > -1e-4 * em.abs(), "{fit} {precision}: {fast} {em}");
            assert_eq!(run("auto"), fast, "{fit}");
        }
        folder.ok("reconstruct fast.npz --output p.npy");
    }
    folder.ok("fit plca d.csv --rank 2 --solver fast --output fast.npz --quiet");
    folder.ok("transform fast.npz d.csv --output new.npz --quiet");
}

#[test]
fn resumed_runs_restarts_and_threads_write_the_same_bytes() {
    let folder = folder();
    for fit in FITS {
        for precision in ["f64", "f32"] {
            let line = format!(
                "fit {fit} --solver fast --precision {precision} --restarts 2 --max-iter 12 --tol 0 --quiet"
            );
            folder.resumes(&line, 7);
        }
    }
    folder.refuses("1 | fit nmf-kl s.mtx --rank 2 --solver em --restarts 2 --max-iter 12 --tol 0 --precision f32 --output x.npz --resume c.npz | c.npz | solver");
}

#[test]
fn what_is_given_and_fixed_stays() {
    let folder = folder();
    folder.arrays(
        "init.npz",
        &[("w", &[4, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 1.0])],
    );
    folder.ok("fit nmf-kl d.csv --init init.npz --freeze w --solver fast --output o.npz --quiet");
    let w = &folder.model("o.npz").arrays["w"].values;
    assert_eq!(w, &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 1.0]);
}

/// What does not separate names the way out; `auto` takes it.
#[test]
fn what_only_em_can_do() {
    let folder = folder();
    folder.arrays("init.npz", &[("weights", &[2], &[0.25, 0.75])]);
    #[rustfmt::skip]
    let cases = [
        ("plca d.csv --rank 2 --temper 0.9", "--temper"),
        ("plca d.csv --rank 2 --temper 1,0.9", "--temper"),
        ("plca d.csv --rank 2 --accelerate squarem", "--accelerate"),
        ("plca d.csv --rank 2 --missing-method imputation", "--missing-method"),
        ("nmf-kl d.csv --rank 2 --update sequential", "--update"),
        ("plca d.csv --rank 2 --prior factor_0=entropic:2", "factor_0"),
        ("plca d.csv --rank 2 --prior factor_1=dirichlet:0.5", "factor_1"),
        ("plca d.csv --rank 2 --prior factor_0=cross-entropy:groups=0/1,between=.1,within=0", "factor_0"),
        ("plca d.csv --init init.npz --freeze weights", "weights"),
        ("siplca d.csv --rank 2 --kernel 4x2", "siplca"),
    ];
    for (fit, part) in cases {
        folder.refuses(&format!(
            "2 | fit {fit} --solver fast --output o.npz | {part} | em"
        ));
        folder.ok(&format!(
            "fit {fit} --solver auto --max-iter 5 --output auto.npz --quiet"
        ));
        folder.ok(&format!(
            "fit {fit} --solver em --max-iter 5 --output em.npz --quiet"
        ));
        let arrays = |name: &str| folder.model(name).arrays;
        assert_eq!(arrays("auto.npz"), arrays("em.npz"), "{fit}");
    }
}

/// Without `--solver` it is `fast` where that is exact, and EM where iterations are counted or the data stay in a file.
#[test]
fn what_is_done_by_default() {
    let folder = folder();
    for (fit, solver) in [
        ("plca d.csv", "fast"),
        ("plsa d.csv", "fast"),
        ("nmf-kl s.mtx", "fast"),
        ("plca d.csv --prior factor_1=dirichlet:1.5", "fast"),
        ("plca d.csv --prior factor_0=entropic:2", "em"),
        ("plca d.csv --tol 0", "em"),
        ("plsa s.mtx --out-of-core s.store", "em"),
        ("plca d.csv --accelerate squarem", "em"),
        ("skellam d.csv", "em"),
    ] {
        let arrays = |name: &str, options: &str| {
            folder.ok(&format!(
                "fit {fit} --rank 2 --max-iter 7 {options} --output {name} --quiet"
            ));
            folder.model(name).arrays
        };
        let named = arrays("named.npz", &format!("--solver {solver}"));
        assert_eq!(arrays("default.npz", ""), named, "{fit}");
    }
}

/// What `auto` came to is part of a run: one of EM is not gone on with by another solver.
#[test]
fn a_run_is_gone_on_with_by_its_solver() {
    let folder = folder();
    let fit = "fit plsa s.mtx --rank 2 --max-iter 6 --tol 1e-300 --output o.npz --quiet";
    let checkpoint = "--checkpoint c.npz --checkpoint-every 2";
    folder.ok(&format!("{fit} {checkpoint} --out-of-core s.store"));
    folder.ok(&format!("{fit} --resume c.npz --out-of-core s.store"));
    folder.ok(&format!("{fit} --resume c.npz --solver em"));
    folder.fails(1, &format!("{fit} --resume c.npz"), &["c.npz", "solver"]);
    folder.ok(&format!("{fit} {checkpoint}"));
    folder.ok(&format!("{fit} --resume c.npz"));
    folder.refuses(&format!(
        "1 | {fit} --resume c.npz --out-of-core s.store | c.npz | solver"
    ));
}

/// New data are explained in fewer iterations, with the certificate of EM; `auto` is EM where nothing separates.
#[test]
fn new_data_by_either_solver() {
    let folder = folder();
    for model in ["plsa", "nmf-kl", "plca"] {
        folder.ok(&format!(
            "fit {model} d.csv --rank 2 --max-iter 20 --output m.npz --quiet"
        ));
        let run = |solver: &str| {
            let found = folder.json(&format!(
                "transform m.npz d.csv --solver {solver} --output {solver}.npz"
            ));
            let number = |name: &str| found[name].as_f64().unwrap();
            (number("iterations"), number("objective"))
        };
        let (fast, em) = (run("fast"), run("em"));
        assert!(fast.0 < em.0, "{model}: {fast:?} {em:?}");
        assert!((fast.1 - em.1).abs() < 1e-5 * em.1.abs(), "{model}");
        assert_eq!(run("auto"), fast, "{model}");
    }
    folder.ok("fit siplca d.csv --rank 1 --kernel 2x2 --max-iter 5 --output s.npz --quiet");
    folder.refuses(
        "2 | transform s.npz d.csv --solver fast --output o.npz | siplca has no --solver fast",
    );
    folder.ok("transform s.npz d.csv --solver auto --max-iter 5 --output o.npz --quiet");
}
