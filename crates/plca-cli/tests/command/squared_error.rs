//! Models under squared error, and what the other commands make of them.

use crate::Folder;

// [EXT 8]
#[test]
fn bad_sparsity_is_refused() {
    let folder = Folder::with_counts();
    let fit = "fit pntf d.csv --rank 2 --output p.npz";
    folder.refuses(&format!(
        "
        2 | {fit} --sparsity factor_0 | sparsity | BLOCK=MU is needed
        2 | {fit} --sparsity w=1 | sparsity | no block `w`
        2 | {fit} --sparsity factor_0=x | sparsity | `x` is not a number
        2 | {fit} --sparsity factor_0=-1 | sparsity | -1
        2 | {fit} --sparsity weights=1 --sparsity weights=2 | sparsity | `weights` has one already
        2 | fit ntf-l2 d.csv --rank 2 --sparsity factor_0=1 --output p.npz | ntf-l2 | --sparsity
    "
    ));
}

/// `‖V / Σ V - P‖²`, or that of the data as they are.
#[test]
fn the_objective_is_that_of_the_data_as_fitted() {
    let folder = Folder::with_counts();
    let shares = [3., 1., 4., 1., 1., 5., 9., 2., 2., 6., 5., 3.].map(|x: f64| x / 42.0);
    folder.npy("shares.npy", &[3, 4], &shares);
    let fit = |line: &str| {
        let line = format!("fit pntf {line} --rank 2 --tol 0 --max-iter 30 --output o.npz");
        let objective = folder.json(&line)["objective"].as_f64().unwrap();
        folder.ok("reconstruct o.npz --output r.npy");
        (objective, folder.dense("r.npy").values)
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-12, "{a} {b}");
    let (objective, found) = fit("d.csv");
    let squares = found
        .iter()
        .zip(shares)
        .map(|(y, x)| (y / 42.0 - x).powi(2));
    close(objective, squares.sum());
    let (as_they_are, same) = fit("shares.npy --no-normalise");
    close(as_they_are, objective);
    for (a, b) in found.iter().zip(same) {
        close(a / 42.0, b);
    }
    // Without division the model, of mass 1, is far from data of mass 42.
    assert!(fit("d.csv --no-normalise").0 > 100.0);
    for model in ["plca", "nmf-kl", "ntf-l2"] {
        let line = format!("fit {model} d.csv --rank 2 --no-normalise --output p.npz");
        folder.fails(2, &line, &[model, "--no-normalise"]);
    }
}

/// `mixture` is `(K, columns)`, every column on the simplex, and finds the weights of an exact mixture.
#[test]
fn transform_mixes_the_learned_components() {
    let folder = Folder::with_counts();
    folder.ok("fit pntf d.csv --rank 2 --output m.npz --quiet");
    let learned = folder.model("m.npz").arrays["factor_0"].values.clone();
    let shares = [0.25, 0.75];
    let column = |weights: [f64; 2]| -> Vec<f64> {
        let rows = learned.chunks(2);
        rows.map(|u| 8.0 * (u[0] * weights[0] + u[1] * weights[1]))
            .collect()
    };
    let (a, b) = (column(shares), column([1.0, 0.0]));
    let rows: Vec<f64> = (0..3).flat_map(|i| [a[i], b[i], 0.0]).collect();
    folder.npy("new.npy", &[3, 3], &rows);
    let before = folder.bytes("m.npz");
    folder.json("transform m.npz new.npy --output n.npz --quiet");
    assert!(before == folder.bytes("m.npz"));
    let file = folder.model("n.npz");
    let (mixture, gap) = (&file.arrays["mixture"], &file.arrays["gap"]);
    assert_eq!(
        (&mixture.shape[..], &gap.shape[..]),
        (&[2, 3][..], &[3][..])
    );
    let want = [shares[0], 1.0, 0.5, shares[1], 0.0, 0.5];
    for (got, want) in mixture.values.iter().zip(want) {
        assert!((got - want).abs() <= 1e-9, "{:?}", mixture.values);
    }
    assert!(gap.values.iter().all(|g| (0.0..1e-12).contains(g)));
    assert_eq!(file.arrays["dropped"].values, [0.0]);
    let warning = file.metadata["warnings"][0].as_str().unwrap();
    assert!(warning.contains("[2]"), "{warning}");
    folder.npy("tall.npy", &[4, 2], &[1.0; 8]);
    folder.refuses("1 | transform m.npz tall.npy --output x.npz | tall.npy | 3 x any");
    folder.npy("hidden.npy", &[3, 1], &[1.0, f64::NAN, 2.0]);
    folder.refuses(
        "1 | transform m.npz hidden.npy --missing nan --output x.npz | hidden.npy | complete",
    );
    folder.ok("sample m.npz --draws 50 --output s.npy");
    assert_eq!(folder.dense("s.npy").values.iter().sum::<f64>(), 50.0);
}

/// `factor_D` is `(n, K)` and what exact sums of components are made of, in the units of the data, along any dimension.
#[test]
fn transform_adds_up_learned_components() {
    let folder = Folder::new();
    // Independent components, one of them small.
    let learned = [
        [3.0, 0.0, 1.0, 2.0, 0.5, 0.0, 0.0, 0.25],
        [1e-3, 2e-3, 2e-3, 1e-3, 0.0, 0.0, 3e-3, 1e-3],
    ];
    folder.npy("v.npy", &[4, 4], &[1.0; 16]);
    folder.arrays(
        "i.npz",
        &[
            ("factor_0", &[4, 2], &learned[0]),
            ("factor_1", &[4, 2], &learned[1]),
        ],
    );
    folder.ok("fit ntf-l2 v.npy --rank 2 --init i.npz --max-iter 0 --output m.npz --quiet");
    let coefficients = [0.5, 40.0, 0.0, 7.0, 3.0, 0.0];
    for (along, other) in [(1, 0), (0, 1)] {
        let cell = |i: usize, n: usize| -> f64 {
            let u = &learned[other][2 * i..];
            u[0] * coefficients[2 * n] + u[1] * coefficients[2 * n + 1]
        };
        let (shape, new): ([usize; 2], Vec<f64>) = match along {
            1 => ([4, 3], (0..12).map(|at| cell(at / 3, at % 3)).collect()),
            _ => ([3, 4], (0..12).map(|at| cell(at % 4, at / 4)).collect()),
        };
        folder.npy("new.npy", &shape, &new);
        let before = folder.bytes("m.npz");
        let line = format!("transform m.npz new.npy --along {along} --output n.npz --quiet");
        let summary = folder.json(&line);
        assert!(before == folder.bytes("m.npz"));
        let file = folder.model("n.npz");
        let names: Vec<&str> = file.arrays.keys().map(String::as_str).collect();
        let block = format!("factor_{along}");
        assert_eq!(names, ["dropped", &block, "gap"]);
        let found = &file.arrays[&block];
        assert_eq!(found.shape, [3, 2]);
        for (got, want) in found.values.iter().zip(coefficients) {
            assert!((got - want).abs() <= 1e-12 * 40.0, "{:?}", found.values);
        }
        let norm: f64 = new.iter().map(|x| x * x).sum();
        assert!(summary["objective"].as_f64().unwrap() <= 1e-14 * norm);
        let gaps = &file.arrays["gap"];
        assert_eq!(gaps.shape, [3]);
        assert!(gaps.values.iter().all(|g| (0.0..1e-14 * norm).contains(g)));
    }
    // What the components cannot reach stays as the error, and a negative value is warned of.
    folder.npy("signed.npy", &[4, 1], &[-2.0, 0.0, 0.0, 0.0]);
    let summary = folder.json("transform m.npz signed.npy --output n.npz --quiet");
    assert_eq!(summary["objective"], 4.0);
    let file = folder.model("n.npz");
    assert_eq!(file.arrays["factor_1"].values, [0.0, 0.0]);
    let warning = file.metadata["warnings"][0].as_str().unwrap();
    assert!(warning.contains("negative"), "{warning}");
    folder.npy("tall.npy", &[5, 1], &[1.0; 5]);
    folder.refuses("1 | transform m.npz tall.npy --output x.npz | tall.npy | 4 x any");
    folder.npy("hidden.npy", &[4, 1], &[1.0, f64::NAN, 2.0, 3.0]);
    folder.refuses(
        "1 | transform m.npz hidden.npy --missing nan --output x.npz | hidden.npy | complete",
    );
    folder.npy("huge.npy", &[4, 1], &[1e308, 0.0, 0.0, 1.0]);
    folder.refuses(
        "
            1 | transform m.npz huge.npy --output x.npz | huge.npy | sum of the squares
            2 | transform m.npz v.npy --along 2 --output x.npz | --along 2
        ",
    );
}

#[test]
fn what_they_do_not_take_is_refused() {
    let folder = Folder::with_counts();
    for model in ["pntf", "ntf-l2"] {
        for option in [
            "--prior factor_0=dirichlet:2",
            "--temper .9",
            "--given 0",
            "--missing-method imputation",
            "--replicates 1",
            "--kernel 2x2",
        ] {
            let line = format!("fit {model} d.csv --rank 2 {option} --output o.npz");
            let name = option.split(' ').next().unwrap();
            folder.fails(2, &line, &[model, name]);
        }
        folder.npy("nan.npy", &[1, 2], &[1.0, f64::NAN]);
        folder.fails(
            1,
            &format!("fit {model} nan.npy --rank 1 --output o.npz"),
            &["nan.npy", "[0, 1]", "--missing nan"],
        );
    }
    let fit = "--rank 1 --output o.npz";
    folder.refuses(&format!(
        "2 | fit ntf-l2 d.csv --accelerate squarem {fit} | --accelerate"
    ));
    folder.npy("hole.npy", &[2, 2], &[1.0, f64::NAN, 2.0, 3.0]);
    folder.refuses(&format!(
        "1 | fit ntf-l2 hole.npy --missing nan {fit} | hole.npy | complete"
    ));
    folder.text("signed.csv", "3,-1\n2,5\n");
    folder.refuses(&format!(
        "1 | fit ntf-l2 signed.csv {fit} | signed.csv | [0, 1] is -1"
    ));
    let out = folder.run(&format!("fit pntf signed.csv {fit}"));
    let err = String::from_utf8(out.stderr).unwrap();
    assert!(
        err.starts_with("warning: ") && err.contains("negative"),
        "{err}"
    );
    folder.text("zero.csv", "1,-1\n2,-2\n");
    folder.refuses(&format!(
        "1 | fit pntf zero.csv {fit} --quiet | zero.csv | 0"
    ));
}

/// Low rank and a little noise, a sample in each row: materials have spectra of other sums.
fn mixtures(folder: &Folder) {
    let spectra = [
        [9., 5., 1., 0., 1.],
        [0., 1., 3., 1., 0.],
        [1., 0., 0., 4., 7.],
    ];
    let amount = |i: usize, z: usize| ((i * (z + 2) + z) % 5) as f64;
    let cell = |i: usize, j: usize| -> f64 {
        let clean: f64 = (0..3).map(|z| amount(i, z) * spectra[z][j]).sum();
        clean + 1e-4 * ((i * 7 + j * 3) % 11) as f64
    };
    let row = |i: usize| {
        (0..5)
            .map(|j| cell(i, j).to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    folder.text("v.csv", &(0..12).map(|i| row(i) + "\n").collect::<String>());
    let row = |j: usize| spectra.map(|s| s[j].to_string()).join(",");
    folder.text(
        "library.csv",
        &(0..5).map(|j| row(j) + "\n").collect::<String>(),
    );
}

#[test]
fn a_table_is_the_block_that_is_kept() {
    let folder = Folder::new();
    mixtures(&folder);
    folder.ok("fit ntf-l2 v.csv --init library.csv --freeze factor_1 --update hals --tol 1e-14 --output m.npz --quiet");
    let file = folder.model("m.npz");
    // In the units of the library: the amounts.
    let found = &file.arrays["factor_0"];
    for (at, x) in found.values.iter().enumerate() {
        let (i, z) = (at / 3, at % 3);
        let amount = ((i * (z + 2) + z) % 5) as f64;
        assert!((x - amount).abs() < 1e-2, "[{i}, {z}]: {x} {amount}");
    }
    folder.arrays(
        "library.npz",
        &[("factor_1", &[5, 3], &file.arrays["factor_1"].values)],
    );
    folder.npy("library.npy", &[5, 3], &file.arrays["factor_1"].values);
    for library in ["library.npz", "library.npy"] {
        folder.ok(&format!(
            "fit ntf-l2 v.csv --init {library} --freeze factor_1 --update hals --tol 1e-14 --output o.npz --quiet"
        ));
        assert_eq!(folder.model("o.npz").arrays, file.arrays);
    }
    folder.ok("fit pntf v.csv --init library.csv --freeze factor_1:0/2 --output o.npz --quiet");
    folder.refuses("
        1 | fit pntf v.csv --init library.csv --output o.npz | library.csv: is one array: --freeze BLOCK must name the block that it is, and no other
        2 | fit pntf v.csv --rank 4 --init library.csv --freeze factor_1 --output o.npz | --rank 4 disagrees with 3 | --freeze BLOCK:0/1 that names the known ones
        2 | fit pntf v.csv --init library.csv --freeze factor_1:0,2 --output o.npz | --freeze 2 | components are divided by /
    ");
}

#[test]
fn column_by_column_updates_end_lower() {
    let folder = Folder::new();
    mixtures(&folder);
    let fit = |options: &str| {
        let fit = folder.json(&format!(
            "fit ntf-l2 v.csv --rank 3 {options} --output o.npz"
        ));
        let number = |name: &str| fit[name].as_f64().unwrap();
        (number("objective"), number("iterations"))
    };
    let (usual, hals) = (
        fit("--max-iter 50 --tol 0"),
        fit("--max-iter 50 --tol 0 --update hals"),
    );
    assert!(hals.0 < usual.0, "{hals:?} {usual:?}");
    assert_eq!(fit("--update multiplicative"), fit(""));
    folder.refuses("
        2 | fit ntf-l2 v.csv --update sequential --rank 2 --output o.npz | ntf-l2 has multiplicative, hals
        2 | fit nmf-kl v.csv --update hals --rank 2 --output o.npz | nmf-kl has simultaneous, sequential
    ");
}

#[test]
fn data_that_are_not_noise_below_zero_are_told_of_signed_models() {
    let folder = Folder::new();
    let fit = "fit pntf v.csv --rank 1 --output o.npz";
    folder.text("v.csv", "5,-4\n-3,6\n");
    assert!(
        folder
            .told(fit)
            .contains("39 % of the data, by absolute values, are negative"),
        "{}",
        folder.told(fit)
    );
    folder.text("v.csv", "5,-0.1\n3,6\n");
    assert!(
        folder.told(fit).contains("are taken for noise"),
        "{}",
        folder.told(fit)
    );
    folder.text("v.csv", "5,-7\n-3,1\n");
    folder.fails(
        1,
        fit,
        &["v.csv: the data sum to -4, expected a positive number; data of either sign are for skellam"],
    );
}

#[test]
fn samples_with_gaps_are_explained_by_a_fit() {
    let folder = Folder::new();
    mixtures(&folder);
    folder.ok("fit pntf v.csv --rank 3 --output m.npz --quiet");
    folder.text("new.csv", "9,,1,4,8\n18,11,5,1,2\n");
    folder.refuses("1 | transform m.npz new.csv --missing nan --along 0 --output o.npz | needs complete data, some cells are hidden: a fit by pNTF whose other factors are frozen takes these; plca fit pntf with --init MODEL and --freeze factor_D");
    folder
        .ok("fit pntf new.csv --missing nan --init m.npz --freeze factor_1 --output o.npz --quiet");
}

#[test]
fn numbers_of_the_metadata_are_no_arrays() {
    let folder = Folder::new();
    mixtures(&folder);
    folder.ok("fit pntf v.csv --rank 3 --output m.npz --quiet");
    folder.refuses("1 | inspect m.npz --array scale | --array scale: is a number | of the metadata that plca inspect prints");
    folder.text("e.csv", "0,5;1\n2;0,25\n");
    folder.refuses("1 | fit pntf e.csv --rank 1 --output o.npz | --delimiter ';' and a decimal point in place of the comma");
}

#[test]
fn negative_noise_beside_known_spectra() {
    let folder = Folder::new();
    folder.text("library.csv", "nm,A,B\n420,0,2\n410,1,1\n400,3,0\n");
    folder.text("v.csv", "id,400,410,420\na,3,1,-0.1\nb,6,4,4\n");
    let fit = "fit ntf-l2 v.csv --labels first-column --header yes --init library.csv --freeze factor_1 --output o.npz";
    folder.refuses(&format!(
        "1 | {fit} | entry [0, 2] is -0.1 | --update hals takes negative noise"
    ));
    folder.text("turned.csv", "material,400,410,420\nA,3,1,0\nB,0,1,2\n");
    folder.fails(
        1,
        &format!("{fit} --update hals").replace("library.csv", "turned.csv"),
        &["turned.csv: `factor_1` has `400` as a column: expected the table the other way round"],
    );
    folder.run(&format!("{fit} --update hals --tol 1e-14"));
    // Wavelengths are matched by their names.
    let found = folder.model("o.npz").arrays["factor_0"].values.clone();
    for (x, expected) in found.iter().zip([1.0, 0.0, 2.0, 2.0]) {
        assert!((x - expected).abs() < 0.02, "{found:?}");
    }
}

/// A library of more wavelengths than the data, at either end or between.
#[test]
fn spectra_beyond_the_data_are_left_out() {
    let folder = Folder::new();
    let library = [
        (390, 4, 9),
        (400, 3, 0),
        (405, 7, 7),
        (410, 1, 1),
        (420, 0, 2),
        (430, 5, 5),
    ];
    let text = |keep: &dyn Fn(i32) -> bool| {
        let kept = library.iter().filter(|(nm, ..)| keep(*nm));
        kept.fold("nm,A,B\n".to_string(), |text, (nm, a, b)| {
            format!("{text}{nm},{a},{b}\n")
        })
    };
    folder.text("all.csv", &text(&|_| true));
    folder.text("own.csv", &text(&|nm| [400, 410, 420].contains(&nm)));
    folder.text("v.csv", "id,400,410,420\na,3,1,0\nb,6,4,4\n");
    let fit = |library: &str| {
        let said = folder.told(&format!(
            "fit ntf-l2 v.csv --labels first-column --header yes --init {library} --freeze factor_1 --update hals --output o.npz"
        ));
        (folder.model("o.npz").arrays, said)
    };
    let (own, (all, said)) = (fit("own.csv"), fit("all.csv"));
    assert_eq!(own.0, all);
    assert!(
        said.contains("3 of the 6 entries of `factor_1` in --init are left out, such as `390`"),
        "{said}"
    );
    assert!(!own.1.contains("left out"), "{}", own.1);
}

/// What `plca export` writes has the names of the entries in front.
#[test]
fn an_axis_is_no_component() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{},{}\n", 400 + 10 * i, i % 3 + 1, (i * 5) % 4);
    let library = (0..9)
        .map(row)
        .fold("nm,A,B\n".to_string(), |text, row| text + &row);
    folder.text("library.csv", &library);
    let cells = (0..9).map(|i| (i % 3 + 1 + (i * 5) % 4).to_string());
    let cells = cells.collect::<Vec<_>>().join(",");
    folder.text("v.csv", &format!("{cells}\n{cells}\n"));
    folder.refuses("1 | fit ntf-l2 v.csv --init library.csv --freeze factor_1 --output o.npz | library.csv: its first column grows from row to row as an axis does: --labels first-column");
}
