//! Every target on its seeds, on every input that once failed and on some thousand mutations.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use plca_fuzz::{MAX_MEMORY, TARGETS, Target, mutate};

/// Mutations of every target's seeds.
const MUTATIONS: usize = 1500;

/// Inputs that once failed, in files.
fn regressions(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let Ok(files) = folder.join(target).read_dir() else {
        return Vec::new();
    };
    let read = |file: std::io::Result<std::fs::DirEntry>| std::fs::read(file?.path());
    files.map(|file| read(file).unwrap()).collect()
}

/// Runs an input and says which it was if it fails.
fn reached(target: &Target, input: &[u8]) -> bool {
    let run = catch_unwind(AssertUnwindSafe(|| target.run(input)));
    let (name, text) = (target.name, input.escape_ascii());
    run.unwrap_or_else(|_| panic!("{name} fails on b\"{text}\""))
        .reached
}

#[test]
fn nothing_fails_on_any_input() {
    for target in TARGETS {
        let name = target.name;
        for seed in target.seeds() {
            assert!(reached(target, &seed), "{name}: a seed is no good input");
        }
        for input in regressions(name) {
            reached(target, &input);
        }
        let inputs = mutate::inputs(target, MUTATIONS);
        let past = inputs.filter(|input| reached(target, input)).count();
        assert!(
            10 * past >= MUTATIONS,
            "{name}: {past} of {MUTATIONS} come past the header"
        );
    }
}

#[test]
fn folders_of_regressions_are_those_of_targets() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    for entry in folder.read_dir().into_iter().flatten() {
        let name = entry.unwrap().file_name();
        let known = TARGETS.iter().any(|t| name == t.name);
        assert!(known, "{name:?} is the folder of no target");
    }
}

#[test]
#[should_panic(expected = "bytes of memory for an input of 0")]
fn too_much_memory_is_seen() {
    let greedy = Target {
        name: "greedy",
        asserts: "nothing",
        seeds: Vec::new,
        run: |_| std::hint::black_box(Vec::<u8>::with_capacity(MAX_MEMORY as usize + 1)).is_empty(),
    };
    greedy.run(&[]);
}
