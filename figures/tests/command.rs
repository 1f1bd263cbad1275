//! The program as it is run: a figure, its files and its report.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn figures(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_plca-figures");
    Command::new(program).args(arguments).output().unwrap()
}

fn reproduce(figure: &str, out: &Path) -> Output {
    let out = out.to_str().unwrap();
    figures(&[
        "reproduce-figures",
        "--quick",
        "--figure",
        figure,
        "--out",
        out,
    ])
}

#[test]
fn a_figure_leaves_pictures_numbers_and_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("figures");
    let done = reproduce("si_appendix_d", &out);
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let report = std::fs::read_to_string(out.join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let entries = report["figures"].as_array().unwrap();
    assert!(!entries.is_empty());
    for entry in entries {
        assert_eq!(
            (&entry["figure"], &entry["pass"]),
            (&"si_appendix_d".into(), &true.into())
        );
        assert!(entry["measured"].is_number() && entry["seed"].is_number());
    }
    let page = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("si_appendix_d"));
    for (extension, start) in [("png", &b"\x89PNG"[..]), ("svg", b"<"), ("csv", b"")] {
        let files = std::fs::read_dir(&out).unwrap().map(|f| f.unwrap().path());
        let mut files = files.filter(|f| f.extension().is_some_and(|e| e == extension));
        let first = files.next().unwrap_or_else(|| panic!("no .{extension}"));
        assert!(std::fs::read(first).unwrap().starts_with(start));
    }
}

#[test]
fn an_unknown_figure_is_an_error_that_lists_the_known() {
    let folder = tempfile::tempdir().unwrap();
    let done = reproduce("nothing", folder.path());
    let message = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        message.contains("no figure `nothing`") && message.contains("si_fig1"),
        "{message}"
    );
}
