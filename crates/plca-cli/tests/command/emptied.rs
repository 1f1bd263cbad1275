//! Priors that empty a block where the data are positive: the block gets a trace of everything back, and the run says so.

use crate::Folder;

/// A row with half a count, from which the prior takes nine tenths.
const CASES: [(&str, &str); 4] = [
    ("plca", "factor_0"),
    ("plsa", "basis"),
    ("siplca --kernel 2x1", "kernels"),
    ("plca --temper .9", "factor_0"),
];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.text("d.csv", "4\n0.5\n");
    folder
}

#[test]
fn blocks_that_were_restored_are_reported() {
    let folder = folder();
    for (model, block) in CASES {
        let fit = format!("fit {model} d.csv --rank 1 --tol 0 --max-iter 5 --output o.npz");
        let line = format!("{fit} --prior {block}=dirichlet:.1");
        let out = folder.run(&line);
        // Kernels of two cells of which one is emptied are points.
        let err = String::from_utf8(out.stderr).unwrap();
        let others = err
            .lines()
            .filter(|line| !line.starts_with("warning: kernels "));
        let err: String = others.map(|line| format!("{line}\n")).collect();
        assert_eq!((out.status.code(), err.lines().count()), (Some(0), 1));
        let start = format!("warning: the prior of `{block}` set entries to 0");
        assert!(err.starts_with(&start), "{err}");
        folder.ok(&format!("{line} --quiet"));
        let file = folder.model("o.npz");
        let warning = file.metadata["warnings"][0].as_str().unwrap();
        assert_eq!(format!("warning: {warning}\n"), err);
        let least = file.arrays[block].values[1];
        assert!(least > 0.0 && least < 1e-11, "{least}");
        // Nothing is said where nothing was lost.
        for harmless in ["dirichlet:.9", "entropic:1"] {
            folder.ok(&format!("{fit} --quiet --prior {block}={harmless}"));
            assert!(folder.model("o.npz").metadata["warnings"].is_null());
        }
    }
    // A floor that was asked for is none of this.
    folder.ok(
        "fit plca d.csv --rank 1 --output o.npz --quiet --prior factor_0=cross-entropy:groups=0,between=0,within=0,floor=1e-12",
    );
    assert!(folder.model("o.npz").metadata["warnings"].is_null());
}

#[test]
fn resumed_runs_report_the_same() {
    let folder = folder();
    for (model, block) in CASES {
        for starts in [1, 3] {
            let line = format!(
                "fit {model} d.csv --rank 1 --tol 0 --max-iter 9 --restarts {starts} --quiet --prior {block}=dirichlet:.1"
            );
            folder.resumes(&line, 4);
        }
    }
}
