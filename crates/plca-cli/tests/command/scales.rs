//! Data of any scale, and what single precision cannot hold.

use std::fmt::Write;

use crate::Folder;

const COUNTS: [f64; 12] = [3., 1., 4., 1., 1., 5., 9., 2., 2., 6., 5., 3.];

/// The counts times `scale`, as `NAME.npy`, `NAME.csv` and `NAME.tns`.
fn write(folder: &Folder, name: &str, scale: f64) {
    let values = COUNTS.map(|x| x * scale);
    folder.npy(&format!("{name}.npy"), &[3, 4], &values);
    let (mut csv, mut tns) = (String::new(), String::new());
    for (i, row) in values.chunks(4).enumerate() {
        let words: Vec<String> = row.iter().map(|x| format!("{x:e}")).collect();
        writeln!(csv, "{}", words.join(",")).unwrap();
        for (j, x) in words.iter().enumerate() {
            writeln!(tns, "{} {} {x}", i + 1, j + 1).unwrap();
        }
    }
    folder.text(&format!("{name}.csv"), &csv);
    folder.text(&format!("{name}.tns"), &tns);
}

fn close(got: f64, want: f64, what: &str) {
    assert!(
        (got - want).abs() <= 1e-9 * (1e-3 + want.abs()),
        "{what}: {got:e} {want:e}"
    );
}

/// Times the scale of the data: objectives and reconstructions. About half of it in each of `w` and `h`. Nothing of it elsewhere.
#[test]
fn factors_do_not_depend_on_the_scale_of_the_data() {
    let folder = Folder::new();
    let mut mask = [1.0; 12];
    mask[6] = 0.0;
    folder.npy("mask.npy", &[3, 4], &mask);
    write(&folder, "one", 1.0);
    write(&folder, "tiny", 1e-310);
    write(&folder, "huge", 1e300);
    for model in ["plca", "plsa", "nmf-kl", "siplca --kernel 3x2"] {
        for kind in ["npy", "csv", "tns", "npy --mask mask.npy"] {
            let fit = |data: &str| {
                let line = format!("fit {model} {data}.{kind} --rank 2 --tol 0 --max-iter 40");
                let summary = folder.json(&format!("{line} --output o.npz"));
                folder.ok("reconstruct o.npz --output r.npy");
                let objective = summary["objective"].as_f64().unwrap();
                let arrays = folder.model("o.npz").arrays;
                (arrays, objective, folder.dense("r.npy").values)
            };
            let want = fit("one");
            for (data, scale) in [("tiny", 1e-310f64), ("huge", 1e300)] {
                let what = format!("{model} {data}.{kind}");
                let got = fit(data);
                let largest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
                let mut of_rates = 1.0;
                for (name, block) in &want.0 {
                    let unit = match &name[..] {
                        // What the model is multiplied by for every index.
                        "scale" => scale,
                        "w" | "h" => largest(&got.0[name].values) / largest(&block.values),
                        _ => 1.0,
                    };
                    if let "w" | "h" = &name[..] {
                        let half = unit / scale.sqrt();
                        assert!((0.7..1.5).contains(&half), "{what} {name}: {half}");
                        of_rates *= half;
                    }
                    for (got, want) in got.0[name].values.iter().zip(&block.values) {
                        close(got / unit, *want, &format!("{what} {name}"));
                    }
                }
                close(of_rates, 1.0, &format!("{what}, w and h"));
                close(got.1 / scale, want.1, &what);
                for (got, want) in got.2.iter().zip(&want.2) {
                    close(got / scale, *want, &format!("{what}, reconstructed"));
                }
            }
        }
    }
}

#[test]
fn values_beyond_single_precision_are_named_as_they_stand_in_the_file() {
    let folder = Folder::new();
    let values = [1.0, 2.0, 3.0, 4.0, 1e300, 6.0];
    folder.npy("d.npy", &[2, 3], &values);
    folder.text("d.csv", "1,2,3\n4,1e300,6\n");
    folder.text("d.tns", "1 1 1\n2 2 1e300\n");
    folder.text(
        "d.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 1\n2 2 1e300\n",
    );
    // Either fits, their sum does not.
    folder.text("twice.tns", "1 1 1\n2 2 3e38\n2 2 3e38\n");
    folder.npy("seen.npy", &[2, 3], &[0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let single = "--precision f32 --rank 1 --output o.npz --quiet";
    let models = [
        "plca",
        "plsa",
        "nmf-kl",
        "siplca --kernel 2x1",
        "skellam",
        "skellam-vb",
        "pntf",
        "ntf-l2",
    ];
    for model in models {
        for (data, place, value) in [
            ("d.npy", "[1, 1]", "1e300"),
            ("d.csv", "line 2: column 2", "1e300"),
            ("d.tns", "line 2", "1e300"),
            ("d.mtx", "line 4", "1e300"),
            ("d.npy --mask seen.npy", "[1, 1]", "1e300"),
            ("d.csv --mask seen.npy", "[1, 1]", "1e300"),
        ] {
            if data.contains("mask") && model == "ntf-l2" {
                continue;
            }
            let line = format!("fit {model} {data} {single}");
            let file = data.split(' ').next().unwrap();
            folder.fails(1, &line, &[file, place, value, "beyond f32"]);
            let err = String::from_utf8(folder.run(&line).stderr).unwrap();
            assert!(!err.contains("inf"), "{err}");
        }
    }
    folder.refuses(&format!(
        "
            1 | fit skellam twice.tns {single} | [1, 1] is 6e38
            1 | fit plca twice.tns {single} | twice.tns | e38
        "
    ));
    // What was infinite in the file stays so.
    folder.npy("inf.npy", &[1, 2], &[1.0, f64::INFINITY]);
    folder.fails(1, &format!("fit plca inf.npy {single}"), &["[0, 1]", "inf"]);
    folder.npy("tiny.npy", &[1, 2], &[0.0, 1e-310]);
    folder.refuses(&format!(
        "1 | fit plca tiny.npy {single} | tiny.npy | [0, 1] | 1e-310 | below f32"
    ));
    folder.npy("signed.npy", &[2, 2], &[1e-310, -1e-50, 1e-50, 2e-50]);
    folder.refuses(&format!(
        "
        1 | fit skellam signed.npy {single} | signed.npy | [0, 0] | 1e-310 | below f32
        1 | fit skellam-cp signed.npy {single} | signed.npy | [0, 0] | 1e-310 | below f32
        1 | fit snmf-ding signed.npy {single} | signed.npy | [0, 0] | 1e-310 | below f32
        1 | fit kmeans signed.npy {single} | signed.npy | [0, 0] | 1e-310 | below f32
        1 | fit ntf-l2 --update hals signed.npy {single} | signed.npy | [0, 0] | 1e-310 | below f32
    "
    ));
    // What is hidden does not count.
    folder.npy("hidden.npy", &[2, 2], &[0.0, 0.0, 0.0, 1e-50]);
    folder.npy("mask.npy", &[2, 2], &[1.0, 1.0, 1.0, 0.0]);
    folder.ok(&format!("fit skellam hidden.npy --mask mask.npy {single}"));
    folder.text("p.csv", "1,2\n3,4\n");
    folder.arrays("i.npz", &[("w", &[2, 1], &[1.0, 1e300])]);
    folder.fails(
        1,
        &format!("fit nmf-kl p.csv --init i.npz {single}"),
        &["i.npz", "`w`", "[1, 0]", "1e300", "beyond f32"],
    );
    folder.ok("fit nmf-kl p.csv --init i.npz --rank 1 --output o.npz --quiet");
}

/// New data whose sum is not known have the scale that a fit of them has.
#[test]
fn new_data_with_hidden_cells_have_a_scale() {
    let folder = Folder::new();
    folder.text("v.csv", "4,1,2\n3,,5\n1,2,2\n6,1,1\n");
    // With kernels of 3x1 what the hidden cell has would not follow from the others.
    let hidden = "--missing nan --tol 1e-12 --max-iter 20000";
    for model in ["plca", "plsa", "siplca --kernel 2x2"] {
        folder.ok(&format!(
            "fit {model} v.csv {hidden} --rank 2 --output m.npz --quiet"
        ));
        folder.ok(&format!(
            "transform m.npz v.csv {hidden} --output t.npz --quiet"
        ));
        let (fit, new) = (folder.model("m.npz"), folder.model("t.npz"));
        let scale = |file: &plca_io::ModelFile| match file.arrays.get("scale") {
            Some(array) => array.values.clone(),
            None => vec![file.metadata["scale"].as_f64().unwrap()],
        };
        let (of_fit, of_new) = (scale(&fit), scale(&new));
        assert_eq!(of_fit.len(), of_new.len());
        for (a, b) in of_fit.iter().zip(&of_new) {
            assert!((a - b).abs() < 1e-6 * a, "{model}: {a} {b}");
        }
        // The sum of what was seen is another number.
        assert!((of_fit.iter().sum::<f64>() - 28.0).abs() > 0.1, "{model}");
    }
    folder.text("whole.csv", "4,1,2\n3,1,5\n1,2,2\n6,1,1\n");
    folder.ok("transform m.npz whole.csv --output t.npz --quiet");
    assert!(folder.model("t.npz").metadata["scale"].is_null());
}

/// Data times a power of two, by the default solver: as many iterations, the same trace and the same model in the other unit, bit for bit.
#[test]
fn powers_of_two_change_no_bit() {
    let folder = Folder::new();
    write(&folder, "one", 1.0);
    for (precision, exponents) in [("f64", [-600, -41, 1, 333]), ("f32", [-12, -1, 1, 60])] {
        for model in ["plca", "plsa", "nmf-kl", "pntf", "siplca --kernel 3x2"] {
            let fit = |data: &str| {
                let line = format!("fit {model} {data}.npy --rank 2 --precision {precision}");
                let summary = folder.json(&format!("{line} --output o.npz"));
                folder.ok("reconstruct o.npz --output r.npy");
                let number = |name: &str| summary[name].as_f64().unwrap();
                let cells = folder.dense("r.npy").values;
                (number("objective"), number("iterations"), cells)
            };
            let one = fit("one");
            for e in exponents {
                let unit = 2f64.powi(e);
                write(&folder, "other", unit);
                let other = fit("other");
                let what = format!("{model} {precision} 2^{e}");
                let objective = if model == "pntf" { one.0 } else { one.0 * unit };
                assert_eq!((other.0, other.1), (objective, one.1), "{what}");
                let cells: Vec<f64> = one.2.iter().map(|x| x * unit).collect();
                assert_eq!(other.2, cells, "{what}");
            }
        }
    }
}

/// Squares that leave the range of numbers are an error with the remedy, never a perfect fit; and every run ends.
#[test]
fn squares_beyond_the_range_of_numbers() {
    let folder = Folder::new();
    for scale in [1e-200, 1e-160, 1e160, 1e300] {
        write(&folder, "d", scale);
        for model in ["ntf-l2", "ntf-l2 --update hals", "snmf-ding", "kmeans"] {
            let line = format!("fit {model} d.npy --rank 2 --output o.npz");
            folder.fails(1, &line, &["sum of the squares", "scale the data"]);
        }
    }
    // Those of single precision are numbers in double precision.
    for model in ["ntf-l2", "ntf-l2 --update hals", "snmf-ding", "kmeans"] {
        let objective = |scale: f64| {
            write(&folder, "d", scale);
            let line = format!("fit {model} d.npy --rank 2 --precision f32 --tol 0 --max-iter 20");
            let summary = folder.json(&format!("{line} --output o.npz"));
            summary["objective"].as_f64().unwrap() / scale / scale
        };
        let one = objective(1.0);
        for scale in [1e-30, 1e-22, 1e18, 1e20, 1e30] {
            let got = objective(scale);
            assert!(
                (got - one).abs() <= 1e-4 * one && one > 0.0,
                "{model} {scale:e}: {got} {one}"
            );
        }
    }
}

/// The divergence of data that are met exactly is 0, or above it by rounding.
#[test]
fn divergences_are_not_below_0() {
    let folder = Folder::new();
    folder.npy("equal.npy", &[6, 7], &[3.0; 42]);
    for precision in ["f32", "f64"] {
        for solver in ["em", "fast", "momentum"] {
            let line = format!(
                "fit nmf-kl equal.npy --rank 3 --output o.npz --precision {precision} --solver {solver}"
            );
            let told = folder.json(&line)["objective"].as_f64().unwrap();
            assert!((0.0..1e-3).contains(&told), "{line}: {told:e}");
        }
    }
}
