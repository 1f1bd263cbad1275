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
    let origin = &report["origin"];
    assert_eq!(
        (&origin["run"], &origin["seed"]),
        (&"quick".into(), &1.into())
    );
    assert!(origin["version"].is_string() && origin["threads"].is_number());
    let figures = report["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 1);
    assert_eq!(figures[0]["figure"], "si_appendix_d");
    let rows = figures[0]["rows"].as_array().unwrap();
    assert_eq!(report["counts"]["passed"], rows.len());
    for row in rows {
        assert_eq!(row["verdict"], "pass");
        assert!(row["value"].is_number() && row["limit"].is_number());
        assert!(row["relation"].is_string() && row["data"]["name"].is_string());
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
fn controls_fail_every_criterion() {
    let folder = tempfile::tempdir().unwrap();
    // What a run says, the names of its files, and the verdicts of its report.
    let run = |more: &[&str]| {
        let out = folder.path().join(more.len().to_string());
        let line = [
            "reproduce-figures",
            "--quick",
            "--figure",
            "si_appendix_d,sk_fig3",
            "--out",
            out.to_str().unwrap(),
        ];
        let done = figures(&[&line[..], more].concat());
        let said = String::from_utf8(done.stdout).unwrap();
        assert!(done.status.success(), "{said}");
        let files = std::fs::read_dir(&out).unwrap();
        let mut files: Vec<_> = files.map(|f| f.unwrap().file_name()).collect();
        files.sort();
        let report = std::fs::read_to_string(out.join("report.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let rows = report["figures"].as_array().unwrap().iter();
        let rows = rows.flat_map(|figure| figure["rows"].as_array().unwrap());
        let rows = rows.map(|row| [row["criterion"].clone(), row["verdict"].clone()]);
        let rows: Vec<_> = rows.collect();
        (said, (files, report["counts"].clone(), rows))
    };
    let (said, left) = run(&["--controls"]);
    assert!(said.contains("[2/2] sk_fig3") && said.matches("fail  ").count() >= 5);
    // The report is that of the figures alone, and nothing is drawn of what is wrong.
    let (said, alone) = run(&[]);
    assert!(!said.contains("control "));
    assert_eq!(left, alone);
}

#[test]
fn the_list_names_figures_and_their_data() {
    let done = figures(&["reproduce-figures", "--list"]);
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success());
    assert!(said.lines().any(|l| l.starts_with("si_fig1 ")));
    assert!(said.contains("reads segmentation/segmentation.test"));
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
