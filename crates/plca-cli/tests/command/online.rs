//! `plca fit --online`: blocks from a folder or a list of files.

use crate::Folder;

/// Counts of 12 words in 8 documents of two kinds, another for every `seed`.
fn block(seed: usize) -> String {
    let cell = |word: usize, document: usize| {
        let noise = (word * 7 + document * 5 + seed * 3 + word * document) % 4;
        if word % 2 == document % 2 {
            3 + noise
        } else {
            noise / 3
        }
    };
    let row = |word| {
        let cells = (0..8).map(|document| cell(word, document).to_string());
        cells.collect::<Vec<_>>().join(",")
    };
    (0..12).map(|word| row(word) + "\n").collect()
}

/// A folder with the blocks `b/1.csv` to `b/5.csv`, and all of them side by side in `all.csv`.
fn folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("b")).unwrap();
    let blocks: Vec<String> = (1..=5).map(block).collect();
    for (n, text) in blocks.iter().enumerate() {
        folder.text(&format!("b/{}.csv", n + 1), text);
    }
    let lines = |text: &String| text.lines().map(String::from).collect::<Vec<_>>();
    let all: Vec<_> = blocks.iter().map(lines).collect();
    let row = |n: usize| {
        all.iter()
            .map(|b| b[n].clone())
            .collect::<Vec<_>>()
            .join(",")
    };
    folder.text(
        "all.csv",
        &(0..12).map(|n| row(n) + "\n").collect::<String>(),
    );
    // What is hidden is no block, nor is a folder.
    folder.text("b/.listing", "nothing");
    std::fs::create_dir(folder.path("b/more")).unwrap();
    folder
}

/// The shards of a folder are batches, in their order, and a fit of all shards goes on from what was learnt.
#[test]
fn shards_are_batches() {
    let folder = folder();
    let all = std::fs::read_to_string(folder.path("all.csv")).unwrap();
    let rows: Vec<Vec<&str>> = all.lines().map(|l| l.split(',').collect()).collect();
    let entries = rows.iter().enumerate().flat_map(|(i, row)| {
        let row = row.iter().enumerate().filter(|(_, v)| **v != "0");
        row.map(move |(j, v)| format!("{} {} {v}\n", i + 1, j + 1))
    });
    folder.text("all.tns", &entries.collect::<String>());
    for (data, shards) in [("all.csv", "dense"), ("all.tns", "sparse")] {
        folder.ok(&format!("shard {data} --shards 3 --output {shards}"));
        let manifest = std::fs::read_to_string(folder.path(&format!("{shards}/manifest.json")));
        let manifest: serde_json::Value = serde_json::from_str(&manifest.unwrap()).unwrap();
        let mut first = 0;
        let files = manifest["shards"].as_array().unwrap().iter().map(|shard| {
            let end = first + shard["samples"].as_u64().unwrap() as usize;
            let file = format!("{shards}-{end}.csv");
            let cut = rows.iter().map(|row| row[first..end].join(",") + "\n");
            folder.text(&file, &cut.collect::<String>());
            first = end;
            file
        });
        let files = files.collect::<Vec<_>>().join(" ");
        let line = "--rank 2 --online 0.7,1 --passes 2 --quiet --output";
        folder.ok(&format!("fit plsa {shards} {line} shards.npz"));
        folder.ok(&format!("fit plsa {files} {line} files.npz"));
        let [a, b] = ["shards.npz", "files.npz"].map(|file| folder.model(file).arrays);
        for (name, block) in &a {
            let far = block.values.iter().zip(&b[name].values);
            let far = far.fold(0.0, |far: f64, (a, b)| far.max((a - b).abs()));
            let allowed = if shards == "dense" { 0.0 } else { 1e-12 };
            assert!(far <= allowed, "{shards} {name} {far}");
        }
        let fit = format!("fit plsa {shards} --rank 2 --tol 0 --max-iter 2 --output o.npz");
        let [ahead, drawn] = [" --init shards.npz", ""]
            .map(|start| folder.json(&format!("{fit}{start}"))["objective"].as_f64());
        assert!(ahead > drawn, "{ahead:?} {drawn:?}");
    }
    folder.ok("shard all.csv --samples 0 --shards 2 --output rows");
    folder.fails(
        1,
        "fit plsa rows --rank 2 --online 0.7,1 --output o.npz",
        &["was cut along dimension 0"],
    );
}

#[test]
fn folders_and_lists_are_the_same_stream() {
    let folder = folder();
    let line = "--rank 2 --online 0.7,1 --passes 3 --quiet --output";
    let s = folder.json(&format!("fit plsa b {line} a.npz"));
    assert_eq!(
        (&s["iterations"], &s["stop_reason"]),
        (&15.into(), &"passes".into())
    );
    folder.ok(&format!(
        "fit plsa b/1.csv b/2.csv b/3.csv b/4.csv b/5.csv {line} b.npz --threads 3"
    ));
    assert_eq!(folder.found("a.npz"), folder.found("b.npz"));
    folder.ok(&format!(
        "fit plsa b/2.csv b/1.csv b/3.csv b/4.csv b/5.csv {line} c.npz"
    ));
    assert_ne!(folder.found("a.npz"), folder.found("c.npz"));
    let file = folder.model("a.npz");
    let names: Vec<_> = file.arrays.keys().map(String::as_str).collect();
    assert_eq!(names, ["basis", "marginal"]);
    assert_eq!(file.arrays["marginal"].shape, [40]);
    assert_eq!(file.metadata["data"]["shape"], serde_json::json!([12, 40]));
    assert_eq!(file.metadata["objective_name"], "streamed_log_likelihood");
    assert_eq!(file.metadata["settings"]["online"], "0.7,1");
}

/// The mixtures are found by `transform`, and what was learnt online is nearly what a batch learns; one block of weight 1 is not.
#[test]
fn mixtures_follow_and_explain() {
    let folder = folder();
    for (model, extra) in [("plsa", ""), ("plca", ""), ("plsa", "--precision f32")] {
        let s = folder.json(&format!(
            "fit {model} all.csv --rank 2 --tol 1e-10 --output batch.npz"
        ));
        let batch = s["objective"].as_f64().unwrap();
        let of = |online: &str| {
            folder.ok(&format!(
                "fit {model} b --rank 2 {online} {extra} --quiet --output o.npz"
            ));
            let s = folder.json("transform o.npz all.csv --output t.npz");
            s["objective"].as_f64().unwrap()
        };
        let online = of("--online 0.7,1 --passes 20");
        assert!(
            online < batch + 1e-4 * batch.abs() && online > batch - 2e-3 * batch.abs(),
            "{model}: {online} {batch}"
        );
        let start = of("--online constant:0.01 --local 1");
        assert!(
            start < online - 1e-2 * batch.abs(),
            "{model}: {start} {online}"
        );
    }
    folder.refuses("1 | reconstruct o.npz --output r.npy | o.npz | `mixture`");
}

/// Latent Dirichlet allocation: shapes of the topics and their means, from which new documents are explained; the bound of one batch of all documents, in
/// which mixtures are at their optimum, rises with the passes towards that of a fit of all data.
#[test]
fn topics_by_variational_bayes() {
    let folder = folder();
    let priors = "--prior basis=dirichlet:0.1 --prior mixture=dirichlet:0.5";
    folder.ok(&format!(
        "fit plsa-vb all.csv --rank 2 {priors} --tol 1e-10 --quiet --output batch.npz"
    ));
    let bound = |model: &str| {
        let s = folder.json(&format!("transform {model} all.csv --output t.npz"));
        assert!(s["perplexity"].as_f64().unwrap() > 1.0);
        s["objective"].as_f64().unwrap()
    };
    let batch = bound("batch.npz");
    for extra in ["", "--precision f32", "--given 0"] {
        let line = format!("fit plsa-vb b --rank 2 {priors} {extra} --quiet --output o.npz");
        let s = folder.json(&format!("{line} --online 0.7,1 --passes 20"));
        assert_eq!(s["iterations"], 100);
        let file = folder.model("o.npz");
        let names: Vec<_> = file.arrays.keys().map(String::as_str).collect();
        assert_eq!(names, ["basis", "basis_shape"]);
        assert_eq!(file.metadata["objective_name"], "streamed_elbo");
        let (means, shapes) = (&file.arrays["basis"], &file.arrays["basis_shape"]);
        assert_eq!(means.shape, shapes.shape);
        let sum: f64 = means.values.iter().sum();
        assert!((sum - 2.0).abs() < 1e-6);
        // All counts of a pass and the prior.
        let counts =
            0.1 * shapes.values.len() as f64 + file.metadata["data"]["total"].as_f64().unwrap();
        let sum: f64 = shapes.values.iter().sum();
        assert!((sum - counts).abs() < 0.05 * counts, "{sum} {counts}");
        if extra != "--given 0" {
            let online = bound("o.npz");
            assert!(
                (online - batch).abs() < 3e-3 * batch.abs(),
                "{online} {batch}"
            );
        }
    }
    folder.ok(&format!("fit plsa-vb b --init batch.npz {priors} --freeze basis_shape:1 --online average --quiet --output f.npz"));
    let (kept, start) = (folder.model("f.npz"), folder.model("batch.npz"));
    let column = |file: &plca_io::ModelFile, z: usize| {
        let values = &file.arrays["basis_shape"].values;
        values
            .iter()
            .skip(z)
            .step_by(2)
            .copied()
            .collect::<Vec<_>>()
    };
    assert_eq!(column(&kept, 1), column(&start, 1));
    assert_ne!(column(&kept, 0), column(&start, 0));
    folder.refuses("1 | reconstruct o.npz --output r.npy | o.npz | `mixture_shape`");
}

#[test]
fn streams_go_on_where_they_were() {
    let folder = folder();
    for options in [
        "--online 0.6,2 --precision f32",
        "--online average",
        "--online 0.6,2 --given 0",
        "--online 0.6,2 --prior mixture=dirichlet:1.5 --prior basis=dirichlet:1.1",
        "--online average --given 0 --precision f32 --priors p.npz",
    ] {
        folder.arrays("p.npz", &[("basis.dirichlet", &[8, 1], &[1.2; 8])]);
        let line = format!("fit plsa b --rank 3 {options} --passes 3 --quiet");
        folder.resumes(&line, 4);
    }
    for model in ["plsa-vb", "plsa", "plca"] {
        for every in [1, 4, 5, 7] {
            let line = format!("fit {model} b --rank 3 --online 0.6,2 --passes 3 --quiet");
            folder.resumes(&line, every);
        }
    }
    // To more passes, but under the same settings and from the same data.
    folder.ok(
        "fit plca b --rank 3 --online 0.6,2 --passes 4 --quiet --output more.npz --resume c.npz",
    );
    folder.ok("fit plca b --rank 3 --online 0.6,2 --passes 4 --quiet --output whole.npz");
    assert!(folder.bytes("more.npz") == folder.bytes("whole.npz"));
    let fails = |line: &str, part: &str| {
        let line = format!("fit plca b --rank 3 {line} --output x.npz --resume c.npz");
        folder.fails(1, &line, &["c.npz", part]);
    };
    fails("--online 0.7,2 --passes 3", "online");
    fails("--online 0.6,2 --passes 3 --local 7", "local");
    let done =
        "2 passes and 4 batches of the next one are done already; --passes asks for 1 in total";
    fails("--online 0.6,2", done);
    folder.text("b/5.csv", &block(6));
    fails("--online 0.6,2 --passes 3", "other data");
}

/// Every pass reads the blocks again: they are to be those of the first one.
#[cfg(unix)]
#[test]
fn blocks_that_change_between_passes_are_refused() {
    let folder = folder();
    let line = "fit plsa b/1.csv b/2.csv --rank 2 --online 0.6,1 --passes 1000000000 --quiet --output o.npz";
    let mut run = folder.start(&format!("{line} --checkpoint c --checkpoint-every 2"));
    let passes = || {
        let checkpoint = plca_io::read_checkpoint(&folder.path("c"));
        checkpoint.map_or(0.0, |c| c.arrays["place"].values[4])
    };
    let ends = |run: &mut std::process::Child| run.try_wait().unwrap().is_some();
    while passes() < 1.0 {
        assert!(!ends(&mut run));
        std::thread::yield_now();
    }
    folder.text("new.csv", &block(7));
    std::fs::rename(folder.path("new.csv"), folder.path("b/2.csv")).unwrap();
    let changed = passes();
    while !ends(&mut run) {
        if passes() > changed + 3.0 {
            run.kill().unwrap();
        }
    }
    let out = run.wait_with_output().unwrap();
    let err = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert_eq!(err, "error: b/2.csv: was changed while it was read\n");
    assert!(!folder.path("o.npz").exists());
}

/// The same lines in the same order, but the blocks end elsewhere.
#[test]
fn streams_know_where_they_were_cut() {
    let folder = folder();
    let line = "fit plsa b --rank 3 --given 0 --online 0.6,2 --passes 2 --quiet --output o.npz";
    folder.ok(&format!("{line} --checkpoint c.npz --checkpoint-every 4"));
    folder.ok(&format!("{line} --resume c.npz"));
    let text = |n: usize| String::from_utf8(folder.bytes(&format!("b/{n}.csv"))).unwrap();
    let (first, second) = (text(1), text(2));
    let (last, rest) = second.split_once('\n').unwrap();
    folder.text("b/1.csv", &format!("{first}{last}\n"));
    folder.text("b/2.csv", rest);
    assert_eq!(text(1) + &text(2), first + &second);
    folder.refuses(&format!("1 | {line} --resume c.npz | c.npz | other data"));
}

/// Every block has the shape that is given, whatever indices it stores.
#[test]
fn lists_of_cells_need_a_shape() {
    let folder = Folder::new();
    folder.text("1.tns", "1 1 3\n4 2 2\n");
    folder.text("2.tns", "2 1 5\n3 3 1\n");
    let head = "%%MatrixMarket matrix coordinate integer general\n5 3 2\n";
    folder.text("1.mtx", &format!("{head}1 1 3\n4 2 2\n"));
    folder.text("2.mtx", &format!("{head}2 1 5\n3 3 1\n"));
    let line = "--rank 2 --online 0.7,1 --quiet --output";
    folder.ok(&format!("fit plsa 1.tns 2.tns --shape 5x3 {line} t.npz"));
    folder.ok(&format!("fit plsa 1.mtx 2.mtx --shape 5x3 {line} m.npz"));
    let (tns, mtx) = (folder.model("t.npz"), folder.model("m.npz"));
    assert_eq!(tns.arrays, mtx.arrays);
    assert_eq!(tns.metadata["data"]["shape"], serde_json::json!([5, 6]));
    let marginal = [3.0, 2.0, 0.0, 5.0, 0.0, 1.0].map(|n| n / 11.0);
    assert_eq!(tns.arrays["marginal"].values, marginal);
    folder.refuses(&format!(
        "
            1 | fit plsa 1.tns 2.tns  {line} x.npz | 2.tns | 3 x 3
            1 | fit plsa 1.tns 2.tns --shape 3x3 {line} x.npz | 1.tns | 3
            1 | fit plsa 1.mtx 2.mtx --shape 5x4 {line} x.npz | 1.mtx | [5, 3]
        "
    ));
}

/// What a fit says of its data and its priors, a stream says once, and in its file too.
#[test]
fn warnings_of_all_blocks() {
    let folder = Folder::new();
    // Row 1 is hidden in both blocks, row 2 in one; so are the second and the fifth column.
    folder.text("1.csv", "1,nan,2\nnan,nan,nan\nnan,nan,nan\n1,nan,3\n");
    folder.text("2.csv", "2,nan\nnan,nan\n3,nan\n2,nan\n");
    let line = "fit plsa 1.csv 2.csv --rank 1 --online 0.7,1 --passes 2 --missing nan";
    let out = folder.run(&format!("{line} --output o.npz"));
    let err = String::from_utf8(out.stderr).unwrap();
    let warning = |j: usize, at: &str| {
        format!(
            "no observed cell in dimension {j} at {at}: the values written there are not identified"
        )
    };
    let expected = [warning(0, "[1]"), warning(1, "[1, 4]")];
    assert_eq!(
        err,
        format!("warning: {}\nwarning: {}\n", expected[0], expected[1])
    );
    assert_eq!(
        folder.model("o.npz").metadata["warnings"],
        serde_json::json!(expected)
    );
    for every in 1..=3 {
        folder.resumes(&format!("{line} --quiet"), every);
    }
    // Half a count, of which the prior takes nine tenths.
    folder.text("3.csv", "4\n0.5\n");
    for (model, block) in [("plca", "factor_0"), ("plsa", "basis")] {
        let line = format!(
            "fit {model} 3.csv 3.csv --rank 1 --online average --passes 3 --prior {block}=dirichlet:.1"
        );
        let out = folder.run(&format!("{line} --output o.npz"));
        let err = String::from_utf8(out.stderr).unwrap();
        let start = format!("warning: the prior of `{block}` set entries to 0");
        assert!(err.starts_with(&start) && err.lines().count() == 1, "{err}");
        folder.resumes(&format!("{line} --quiet"), 4);
        let warnings = &folder.model("o.npz").metadata["warnings"];
        assert_eq!(warnings.as_array().unwrap().len(), 1);
    }
}

/// Starts, priors, rows as documents, order 3, and cells that are hidden.
#[test]
fn options_of_streams() {
    let folder = folder();
    folder.ok("fit plsa b --rank 2 --online average --output a.npz --quiet");
    folder.ok("fit plsa b --init a.npz --online 0.9,20 --prior basis=dirichlet:1.2 --output b.npz --quiet --trace t.jsonl --passes 2");
    let basis = &folder.model("b.npz").arrays["basis"];
    assert!(basis.values.iter().all(|&w| w > 0.0));
    let trace = String::from_utf8(folder.bytes("t.jsonl")).unwrap();
    assert_eq!(trace.lines().count(), 2);
    folder.ok("fit plsa b --rank 2 --given 0 --online 0.7,1 --output g.npz --quiet");
    let file = folder.model("g.npz");
    assert_eq!(file.arrays["basis"].shape, [8, 2]);
    assert_eq!(file.metadata["data"]["shape"], serde_json::json!([60, 8]));
    folder.ok("transform g.npz b/1.csv --output t.npz");
    let cells: Vec<f64> = (0..24).map(|i| f64::from(i * i % 7)).collect();
    folder.npy("p.npy", &[2, 3, 4], &cells);
    folder.npy("q.npy", &[2, 3, 2], &cells[3..15]);
    folder.ok("fit plca p.npy q.npy --rank 2 --online 0.7,1 --output o.npz --quiet");
    let file = folder.model("o.npz");
    let names: Vec<_> = file.arrays.keys().map(String::as_str).collect();
    assert_eq!(names, ["factor_0", "factor_1", "weights"]);
    assert_eq!(file.metadata["data"]["shape"], serde_json::json!([2, 3, 6]));
    folder.ok("transform o.npz p.npy --output t.npz");
    folder.refuses("1 | transform o.npz p.npy --along 0 --output x.npz | o.npz | `factor_2`");
    folder.text("n.csv", "1,nan,2\n3,1,4\n");
    folder
        .ok("fit plsa n.csv n.csv --rank 1 --online average --missing nan --output n.npz --quiet");
    folder.refuses("1 | fit plsa n.csv --rank 1 --online average --output x.npz | n.csv | [0, 1]");
}

/// Every refusal, with the file or the option that is at fault.
#[test]
fn what_no_stream_can_be() {
    let folder = folder();
    let usage = |line: &str, parts: &[&str]| {
        folder.fails(2, &format!("fit {line} --rank 2 --output x.npz"), parts);
    };
    for model in [
        "nmf-kl",
        "siplca",
        "skellam",
        "skellam-vb",
        "snmf-ding",
        "kmeans",
        "pntf",
        "ntf-l2",
    ] {
        usage(&format!("{model} b --online 0.7,1"), &[model, "--online"]);
    }
    usage("plsa b/1.csv b/2.csv", &["--online"]);
    usage("plsa b b/2.csv --online 0.7,1", &["folder"]);
    for law in [
        "0.5,1",
        "1.1,1",
        "nan,1",
        "0.7,-1",
        "0.7,inf",
        "constant:0",
        "constant:1.1",
    ] {
        usage(&format!("plsa b --online {law}"), &["expected"]);
    }
    for law in ["0.7", "fast", "constant:x", "0.7,x"] {
        usage(&format!("plsa b --online {law}"), &["--online"]);
    }
    for local in ["0", "x", "5,-1", "5,nan"] {
        let line = format!("plsa b --online 0.7,1 --local {local}");
        usage(&line, &["--local", local.split(',').next_back().unwrap()]);
    }
    usage("plsa b --passes 3", &["--online"]);
    usage("plsa b --online 0.7,1 --passes 0", &["--passes"]);
    for option in [
        "--mask b/1.csv",
        "--restarts 2",
        "--solver fast",
        "--accelerate squarem",
        "--temper 1,0.9",
        "--kkt-tol 1e-3",
        "--shards 2",
        "--missing-method imputation",
        "--update sequential",
        "--max-iter 9",
        "--tol 1e-6",
        "--check-every 10",
    ] {
        let name = option.split(' ').next().unwrap();
        usage(&format!("plsa b --online 0.7,1 {option}"), &[name]);
    }
    usage("plca-vb b --online 0.7,1", &["plca-vb", "--online"]);
    usage(
        "plca b --online 0.7,1 --prior weights=dirichlet:1.1",
        &["P(z)"],
    );
    usage(
        "plca b --online 0.7,1 --prior factor_1=dirichlet:1.1",
        &["streamed"],
    );
    folder.refuses("
        2 | fit plsa b --rank 2 --online 0.7,1 --output b/x.npz | b/x.npz | folder of the data
        2 | fit plsa b --rank 2 --online 0.7,1 --checkpoint b/x.npz --checkpoint-every 1 --output x.npz | b/x.npz | folder of the data
        2 | fit plsa b --rank 2 --online 0.7,1 --trace b/x.npz --output x.npz | b/x.npz | folder of the data
        2 | fit plsa b --rank 2 --online 0.7,1 --init b/x.npz --output x.npz | b/x.npz | folder of the data
        2 | fit plsa b --rank 2 --online 0.7,1 --priors b/x.npz --output x.npz | b/x.npz | folder of the data
        2 | fit plsa b --rank 2 --online 0.7,1 --resume b/x.npz --output x.npz | b/x.npz | folder of the data
    ");
    let fails = |line: &str, parts: &[&str]| {
        folder.fails(
            1,
            &format!("fit {line} --rank 2 --online 0.7,1 --output x.npz"),
            parts,
        );
    };
    folder.text("tall.csv", "1,2\n3,4\n");
    fails("plsa b/1.csv tall.csv", &["tall.csv", "2 x 2", "12 x any"]);
    folder.text("none.csv", "0,0\n0,0\n");
    fails(
        "plsa tall.csv none.csv",
        &["none.csv", "no observed entry is positive"],
    );
    folder.text("minus.csv", "1,2\n3,-4\n");
    fails("plsa tall.csv minus.csv", &["minus.csv", "line 2", "-4"]);
    fails("plsa tall.csv gone.csv", &["gone.csv"]);
    std::fs::create_dir(folder.path("empty")).unwrap();
    fails("plsa empty", &["empty", "no file"]);
    folder.text("b/6.txt", "what is this");
    fails("plsa b", &["6.txt"]);
}

#[test]
fn names_of_batches_are_kept_and_compared() {
    let folder = Folder::new();
    folder.text("1.csv", "id,sea,ship,wind\na,5,1,0\nb,0,3,4\n");
    folder.text("2.csv", "id,sea,ship,wind\nc,2,1,1\nd,1,0,7\n");
    folder.text("turned.csv", "id,wind,ship,sea\nc,1,1,2\nd,7,0,1\n");
    folder.text("none.csv", "c,2,1,1\nd,1,0,7\n");
    let fit = |batches: &str| {
        format!(
            "fit plsa {batches} --given 0 --rank 2 --online 0.6,1 --labels first-column --output o.npz"
        )
    };
    folder.ok(&fit("1.csv 2.csv"));
    let names = serde_json::json!({ "1": ["sea", "ship", "wind"] });
    assert_eq!(folder.model("o.npz").metadata["names"], names);
    folder.text("new.csv", "id,wind,ship,sea\ne,0,1,9\n");
    folder.text("same.csv", "id,sea,ship,wind\ne,9,1,0\n");
    for (data, output) in [("new.csv", "n.npz"), ("same.csv", "s.npz")] {
        folder.ok(&format!(
            "transform o.npz {data} --labels first-column --output {output}"
        ));
    }
    assert_eq!(folder.model("n.npz").arrays, folder.model("s.npz").arrays);
    folder.fails(
        1,
        &fit("1.csv turned.csv"),
        &["turned.csv: has `wind` at index 0 of dimension 1, where the first batch has `sea`"],
    );
    folder.fails(1, &fit("1.csv none.csv"), &["has no name at index 0"]);
}

#[test]
fn features_of_all_batches_begin_where_those_of_the_first_do() {
    let folder = Folder::new();
    folder.text("1.svmlight", "1 0:5 1:1\n1 2:4 1:2\n");
    folder.text("2.svmlight", "1 1:3 2:1\n");
    let fit =
        |rest: &str| format!("fit plsa {rest} --given 0 --rank 2 --online 0.6,1 --output o.npz");
    folder.ok(&fit("1.svmlight 2.svmlight"));
    let found = folder.model("o.npz");
    folder.text("one.svmlight", "1 1:5 2:1\n1 3:4 2:2\n");
    folder.text("next.svmlight", "1 2:3 3:1\n");
    folder.ok(&fit("one.svmlight next.svmlight"));
    assert_eq!(found.arrays, folder.model("o.npz").arrays);
    assert_eq!(found.metadata["data"]["first_index"], 0);
    folder.fails(
        1,
        &fit("2.svmlight 1.svmlight"),
        &["1.svmlight: line 1: index 0 is below 1", "--first-index"],
    );
    folder.ok(&fit("2.svmlight 1.svmlight --first-index 0"));
}

/// The largest feature differs from file to file: the message has the option with which the command works.
#[test]
fn the_number_of_features_is_said_for_all_files() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("l")).unwrap();
    for (name, text) in [
        ("a.ldac", "2 0:1 3:2\n1 1:4\n2 2:1 3:1\n"),
        ("b.ldac", "2 0:1 4:2\n1 1:4\n"),
        ("c.ldac", "2 0:1 6:2\n1 1:4\n"),
    ] {
        folder.text(&format!("l/{name}"), text);
    }
    let line = "fit plsa l --given 0 --online 0.7,10 -k 2 --output o.npz";
    folder.fails(1, line, &["b.ldac", "--shape 0x7"]);
    folder.ok(&format!("{line} --shape 0x7"));
    // Those that say themselves how many there are cannot be told otherwise.
    std::fs::create_dir(folder.path("w")).unwrap();
    folder.text("w/docword.a.txt", "2\n3\n2\n1 1 2\n2 3 1\n");
    folder.text("w/docword.b.txt", "2\n4\n2\n1 1 2\n2 4 1\n");
    let line = "fit plsa w --given 0 --online 0.7,10 -k 2 --output o.npz";
    let err = folder.run(line).stderr;
    let err = String::from_utf8(err).unwrap();
    assert!(
        err.contains("docword.b.txt") && !err.contains("--shape"),
        "{err}"
    );
}
