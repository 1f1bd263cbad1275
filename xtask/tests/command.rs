//! The program as it is run. Continuous integration calls what this test has built.

use std::process::Command;

fn equation(name: &str) -> (bool, String) {
    let program = env!("CARGO_BIN_EXE_xtask");
    let done = Command::new(program).args(["equations", name]).output();
    let done = done.unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    (done.status.success(), text)
}

#[test]
fn an_equation_has_its_file_line_and_test_once() {
    let (good, text) = equation("LV 17");
    assert!(good && text.starts_with("[LV eq. 17]"), "{text}");
    let place = |line: &str| line.contains(".rs:") && line.starts_with("  crates/");
    let (tests, others): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("  test: "));
    assert!(others.iter().any(|line| place(line)), "{text}");
    assert!(!tests.is_empty(), "{text}");
    let once: std::collections::BTreeSet<_> = tests.iter().collect();
    assert_eq!(once.len(), tests.len(), "{text}");
}

#[test]
fn an_equation_that_the_paper_does_not_have_is_an_error() {
    let (good, text) = equation("LV 20");
    assert!(!good && text.is_empty(), "{text}");
}
