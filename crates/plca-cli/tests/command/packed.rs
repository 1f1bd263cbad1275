//! Small packed files that would take gigabytes, and what a process may ask for.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::folder::Folder;

fn pack(folder: &Folder, name: &str, head: &str, line: &str, times: usize) {
    let file = std::fs::File::create(folder.path(name)).unwrap();
    let mut packed = GzEncoder::new(file, Compression::fast());
    packed.write_all(head.as_bytes()).unwrap();
    let many = line.repeat(1000);
    for _ in 0..times / 1000 {
        packed.write_all(many.as_bytes()).unwrap();
    }
    packed.finish().unwrap();
}

/// What needs more memory than 64 MiB and 50 times the file is refused with a number that is enough.
#[test]
fn packed_files_have_an_allowance() {
    let folder = Folder::with_counts();
    pack(&folder, "v.tns.gz", "", "1 1 1\n", 4_000_000);
    let head = "%%MatrixMarket matrix coordinate real general\n2 2 4000000\n";
    pack(&folder, "v.mtx.gz", head, "1 1 1\n", 4_000_000);
    pack(
        &folder,
        "v.csv.gz",
        "",
        &format!("{}1\n", "1,".repeat(99)),
        100_000,
    );
    pack(&folder, "e.csv.gz", "", "a,b,1\n", 4_000_000);
    pack(&folder, "v.svmlight.gz", "", "1 1:1\n", 4_000_000);
    pack(&folder, "v.ldac.gz", "", "1 0:1\n", 4_000_000);
    // In many parts, of which the last one is empty, as bgzip makes them.
    let mut parts = Vec::new();
    for lines in [vec![100_000; 40], vec![0]].concat() {
        pack(&folder, "part.gz", "", "1 1 1\n", lines);
        parts.extend(folder.bytes("part.gz"));
    }
    std::fs::write(folder.path("parts.tns.gz"), parts).unwrap();
    // All alike, and dense: a part is few bytes.
    pack(
        &folder,
        "part.gz",
        "",
        &format!("{}1\n", "1,".repeat(99)),
        25_000,
    );
    let parts = folder.bytes("part.gz").repeat(4);
    std::fs::write(folder.path("alike.csv.gz"), parts).unwrap();
    for (data, options) in [
        ("v.tns.gz", ""),
        ("parts.tns.gz", ""),
        ("alike.csv.gz", ""),
        ("v.mtx.gz", ""),
        ("v.csv.gz", ""),
        ("e.csv.gz", "--labels entries"),
        ("v.svmlight.gz", ""),
        ("v.ldac.gz", ""),
    ] {
        let line = format!(
            "fit plca {data} {options} --rank 1 --max-iter 1 --tol 0 --output o.npz --quiet"
        );
        let out = folder.run(&line);
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{data}: {err}");
        let (_, limit) = err.split_once("; --unpack-limit ").expect(&err);
        let (limit, _) = limit.split_once(" allows it").unwrap();
        let length = folder.bytes(data).len();
        assert!(
            err.contains(&format!("a packed file of {length} bytes")),
            "{err}"
        );
        folder.ok(&format!("{line} --unpack-limit {limit}"));
        folder.refuses(&format!(
            "1 | {line} --unpack-limit 1M | more than the 1048576"
        ));
    }
    pack(&folder, "names.txt.gz", "", "a\n", 2_000_000);
    folder.refuses("1 | fit plca d.csv --rank 1 --output o.npz --labels names.txt.gz | names.txt.gz | --unpack-limit");
    // Comments take no memory, but time.
    let comment = format!("#{}\n", " no more than a comment".repeat(5));
    pack(&folder, "c.tns.gz", "1 1 1\n", &comment, 4_000_000);
    folder.refuses("1 | fit plca c.tns.gz --rank 1 --output o.npz | --unpack-limit");
    let masked = "fit plca d.csv --mask c.tns.gz --rank 1 --max-iter 1 --tol 0 --output o.npz";
    folder.fails(1, masked, &["c.tns.gz", "--unpack-limit"]);
    folder.ok(&format!("{masked} --quiet --unpack-limit 1G"));
    for wrong in ["x", "1T", "-1", "1.5M", ""] {
        folder.fails(
            2,
            &format!("fit plca d.csv --rank 1 --output o.npz --unpack-limit={wrong}"),
            &["--unpack-limit"],
        );
    }
    for right in ["1000000", "64k", "1MiB", "2GB"] {
        folder.ok(&format!("fit plca d.csv --rank 1 --max-iter 1 --tol 0 --output o.npz --quiet --unpack-limit {right}"));
    }
}

/// No environment asks for more threads than the command line may.
#[cfg(target_os = "linux")]
#[test]
fn the_environment_asks_for_no_more_threads() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --max-iter 3 --tol 0 --output few.npz --quiet");
    let limited = "ulimit -u 100000 2>/dev/null; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("bash");
    let line = "fit plca d.csv --rank 2 --max-iter 3 --tol 0 --output many.npz --quiet";
    let out = command
        .args(["-c", limited, crate::folder::PROGRAM])
        .args(line.split_whitespace())
        .env("RAYON_NUM_THREADS", "1000000")
        .current_dir(folder.path("."))
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert_eq!(
        folder.model("few.npz").arrays,
        folder.model("many.npz").arrays
    );
}

/// Lists of names and traces that a path names are regular files.
#[cfg(unix)]
#[test]
fn names_and_traces_are_regular_files() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --output o.npz --quiet");
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    for path in ["pipe", "/dev/zero"] {
        for line in [
            "inspect o.npz --array factor_0 --labels PATH",
            "export o.npz --array factor_0 --output x.csv --labels PATH",
            "report o.npz --output r.html --labels PATH",
            "report o.npz --output r.html --trace PATH",
        ] {
            folder.fails(
                1,
                &line.replace("PATH", path),
                &[path, "not a regular file"],
            );
        }
        for line in [
            "fit plca d.csv --rank 2 --output p.npz --labels PATH",
            "transform o.npz d.csv --output p.npz --labels PATH",
        ] {
            folder.fails(2, &line.replace("PATH", path), &["--labels"]);
        }
    }
}
