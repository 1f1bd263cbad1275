//! The programs of `examples` run, and say what they should. Cargo builds them before it runs tests.

use std::process::Command;

#[test]
fn examples_run() {
    let folder = tempfile::tempdir().unwrap();
    let programs = std::env::current_exe().unwrap();
    let programs = programs.ancestors().nth(2).unwrap().join("examples");
    for (name, says, leaves) in [
        ("text", "ship sail harbour", "topics.npz"),
        ("sound", "strongest at 391 Hz", "component_2.wav"),
        ("spectra", "35 % of all, highest at 53", "spectra.npz"),
        ("signed", "0.7  1.1  1.3  1.2  0.9  0.4", "signed.npz"),
    ] {
        let run = Command::new(programs.join(name))
            .arg(folder.path())
            .output();
        let run = run.unwrap();
        let said = String::from_utf8(run.stdout).unwrap();
        assert!(
            run.status.success() && said.contains(says),
            "{name}: {said}"
        );
        assert!(folder.path().join(leaves).exists(), "{name}");
    }
}
