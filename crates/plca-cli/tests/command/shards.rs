//! `plca shard`, and fits of shards: the bits of the same shards however they are held, the objective of one piece.

use plca_io::{MANIFEST, ModelFile, ShardManifest};
use serde_json::Value;

use crate::Folder;

/// A folder with the sparse matrix `d.tns` without duplicates, and the dense tensor `t.npy` of order 3.
fn folder() -> Folder {
    let folder = Folder::new();
    // Seven has no divisor with 60: every column has entries.
    let line = |n: usize| format!("{} {} {}\n", n / 60 + 1, n % 60 + 1, n % 5 + 1);
    let text: String = (0..40 * 60).step_by(7).map(line).collect();
    folder.text("d.tns", &text);
    let values: Vec<f64> = (0..4 * 5 * 30).map(|n| f64::from(n * n % 11)).collect();
    folder.npy("t.npy", &[4, 5, 30], &values);
    folder
}

fn arrays(folder: &Folder, name: &str) -> ModelFile {
    let metadata = Value::Null;
    ModelFile {
        metadata,
        ..folder.model(name)
    }
}

fn objective(summary: &str) -> f64 {
    serde_json::from_str::<Value>(summary).unwrap()["objective"]
        .as_f64()
        .unwrap()
}

#[test]
fn folders_and_files_of_shards_have_the_same_bits() {
    let folder = folder();
    folder.ok("shard d.tns -o d64 --shards 7 --json");
    folder.ok("shard d.tns -o d32 --shards 7 --precision f32");
    folder.ok("shard d.tns -o rows --shards 7 --along 0");
    folder.ok("shard t.npy -o t64 --shards 7");
    let values: Vec<f64> = (0..20 * 30).map(|n| f64::from(n * n % 11) - 4.0).collect();
    folder.npy("s.npy", &[20, 30], &values);
    folder.ok("shard s.npy -o s64 --shards 7 --signed");
    folder.ok("shard s.npy -o s32 --shards 7 --signed --precision f32");
    #[rustfmt::skip]
    let cases = [
        ("plsa --rank 3", "d.tns", "d64"),
        ("plsa --rank 3 --given 0 --restarts 2", "d.tns", "rows"),
        ("plsa --rank 3 --precision f32 --prior mixture=dirichlet:1.1", "d.tns", "d32"),
        ("plca --rank 3 --accelerate squarem", "d.tns", "d64"),
        ("plca --rank 3 --temper 0.9", "t.npy", "t64"),
        ("skellam-vb --rank 3 --accelerate squarem", "s.npy", "s64"),
        ("plsa-vb --rank 3 --prior basis=dirichlet:0.1", "d.tns", "d64"),
        ("plsa-vb --rank 3 --given 0 --restarts 2", "d.tns", "rows"),
        ("plsa-vb --rank 3 --precision f32", "d.tns", "d32"),
        ("plca-vb --rank 3 --prior weights=dirichlet:0.1", "t.npy", "t64"),
        ("plca-vb --rank 3 --accelerate squarem", "d.tns", "d64"),
        ("nmf-kl --rank 3", "d.tns", "d64"),
        ("plca --rank 3 --solver fast", "t.npy", "t64"),
        ("nmf-kl --rank 3 --update sequential", "d.tns", "d64"),
        ("skellam --rank 3", "s.npy", "s64"),
        ("skellam-vb --rank 3", "s.npy", "s64"),
        ("skellam-vb --rank 3 --precision f32 --prior activations=gamma:0.5,0.1", "s.npy", "s32"),
    ];
    for (model, data, shards) in cases {
        let (kind, options) = model.split_once(' ').unwrap();
        let line = |data: &str, rest: &str| {
            format!(
                "fit {kind} {data} {options} --max-iter 12 --tol 0 --check-every 3 --quiet --json {rest}"
            )
        };
        let whole = folder.ok(&line(data, "--output w.npz"));
        folder.ok(&line(
            shards,
            "--output a.npz --threads 1 --checkpoint-every 5 --checkpoint c.npz",
        ));
        let summary = folder.ok(&line(data, "--shards 7 --output b.npz --threads 2"));
        assert!(
            arrays(&folder, "a.npz") == arrays(&folder, "b.npz"),
            "{model}"
        );
        let settings = &folder.model("a.npz").metadata["settings"];
        assert_eq!(settings["shards"], 7);
        // From iteration 10 on.
        folder.ok(&line(shards, "--output r.npz --resume c.npz --threads 2"));
        assert!(folder.bytes("r.npz") == folder.bytes("a.npz"), "{model}");
        let (one, other) = (objective(&whole), objective(&summary));
        let tolerance = if model.contains("f32") { 1e-5 } else { 1e-12 };
        if !["squarem", "fast"]
            .iter()
            .any(|solver| model.contains(solver))
        {
            assert!(
                (one - other).abs() <= tolerance * one.abs(),
                "{model} {one} {other}"
            );
        }
    }
}

#[test]
fn manifests_say_what_is_in_the_folder() {
    let folder = folder();
    let summary: Value =
        serde_json::from_str(&folder.ok("shard d.tns -o d --shards 7 --json")).unwrap();
    let manifest = ShardManifest::read(&folder.path("d")).unwrap();
    assert_eq!(
        (&manifest.shape[..], manifest.along, &*manifest.scalar),
        (&[40, 60][..], 1, "f64")
    );
    assert_eq!(
        (summary["shards"].as_u64(), summary["entries"].as_u64()),
        (Some(7), Some(343))
    );
    let shards = &manifest.shards;
    assert_eq!(shards.iter().map(|shard| shard.samples).sum::<usize>(), 60);
    assert_eq!(shards.iter().map(|shard| shard.entries).sum::<u64>(), 343);
    assert_eq!(
        manifest.input,
        plca_io::sha256_file(&folder.path("d.tns")).unwrap()
    );
    // The same data are the same folder.
    folder.ok("shard d.tns -o e --shards 7");
    for shard in shards {
        assert_eq!(
            plca_io::sha256_file(&folder.path("e").join(&shard.file)).unwrap(),
            shard.sha256
        );
    }
}

#[test]
fn what_is_no_folder_of_these_shards_is_refused() {
    let folder = folder();
    folder.ok("shard d.tns -o d --shards 3");
    let fit = "fit plsa d --rank 2 --max-iter 2";
    let how = "--quiet --output o.npz";
    folder.refuses(&format!("
        1 | {fit} --shards 4 {how} | has 3 shards, --shards 4 asks for others
        1 | {fit} --given 0 {how} | was cut along dimension 1, but the samples of this model lie along dimension 0
        1 | {fit} --precision f32 {how} | the shards hold f64, f32 is needed
        2 | {fit} --solver fast --prior mixture=dirichlet:2 {how} | the prior on `mixture`, which belongs to the samples of shards
        1 | {fit} --prior basis=dirichlet:0.5 {how} | cannot be checked across shards
        2 | fit ntf-l2 d --rank 2 {how} | ntf-l2 cannot be fitted to shards
    "));
    folder.npy("s.npy", &[2, 3], &[1.0, -2.0, 3.0, 4.0, 0.0, 5.0]);
    let out = folder.run("shard s.npy -o s");
    let err = String::from_utf8(out.stderr).unwrap();
    assert!(
        out.status.code() == Some(1) && err.contains("[0, 1]"),
        "{err}"
    );
    folder.ok("shard s.npy -o s2 --shards 3 --signed");
    folder.refuses("1 | fit plsa s2 --rank 2 --quiet --output o.npz | [0, 1]");
    let out = folder.run("shard d.tns -o d --shards 3");
    assert!(
        String::from_utf8(out.stderr)
            .unwrap()
            .contains("is not empty")
    );

    let manifest = folder.path("d").join(MANIFEST);
    let text = std::fs::read_to_string(&manifest).unwrap();
    #[rustfmt::skip]
    let cases = [
        ("\"version\": 1", "\"version\": 9", "version 9 of shards, this program reads 1"),
        ("\"along\": 1", "\"along\": 2", "no dimension 2 in the shape [40, 60]"),
        ("shard-00001.store", "../d.tns", "is not a name of a file in the folder"),
        ("\"samples\": ", "\"samples\": 1", "the shards do not have 60 samples in total"),
        ("shard-00001.store", "shard-00002.store", "shard-00002.store: was changed"),
    ];
    for (from, to, what) in cases {
        assert!(text.contains(from));
        std::fs::write(&manifest, text.replace(from, to)).unwrap();
        folder.fails(1, &format!("{fit} {how}"), &[what]);
    }
    std::fs::write(&manifest, &text).unwrap();
    let shard = folder.path("d").join("shard-00002.store");
    let mut bytes = std::fs::read(&shard).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    folder.fails(
        1,
        &format!("{fit} {how}"),
        &["shard-00002.store: was changed: SHA-256"],
    );
    std::fs::remove_file(&shard).unwrap();
    folder.fails(1, &format!("{fit} {how}"), &["shard-00002.store"]);
}

#[test]
fn shards_that_are_not_made_leave_no_folder() {
    let folder = folder();
    for data in ["d.tns", "t.npy"] {
        folder.refuses(&format!(
            "
                1 | shard {data} -o new --along 5 | {data} | there is no dimension 5
                1 | shard {data} -o new/one --along 5 | {data} | there is no dimension 5
            "
        ));
        // A folder that was there stays.
        std::fs::create_dir_all(folder.path("there")).unwrap();
        folder.fails(1, &format!("shard {data} -o there --along 5"), &[data]);
        assert_eq!(std::fs::read_dir(folder.path("there")).unwrap().count(), 0);
    }
}
