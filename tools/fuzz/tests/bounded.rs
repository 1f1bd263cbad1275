//! Every target on its seeds, on every input that once failed and on some thousand mutations.

use std::io::{Cursor, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use plca_fuzz::{MAX_MEMORY, TARGETS, Target, mutate};
use plca_io::{DataFile, read_data};
use zip::write::{SimpleFileOptions, ZipWriter};

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

/// Runs a target on all inputs there are.
fn run_all(target: &Target) {
    let name = target.name;
    for seed in target.seeds() {
        assert!(reached(target, &seed), "{name}: a seed is not a good input");
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

#[test]
fn nothing_fails_on_any_input() {
    let fails = |target: &&Target| catch_unwind(|| run_all(target)).is_err();
    let failed: Vec<_> = TARGETS.iter().filter(fails).map(|t| t.name).collect();
    assert!(failed.is_empty(), "{failed:?}: see above");
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

/// A million zeros in a few kilobytes, in bounded memory.
#[test]
fn archives_of_a_thousand_to_one_are_read() {
    let cells = 1_000_000;
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({cells},), }}\n");
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend((header.len() as u16).to_le_bytes());
    npy.extend(header.as_bytes());
    npy.resize(npy.len() + 8 * cells, 0);
    let options = SimpleFileOptions::default().compression_level(Some(9));
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("a.npy", options).unwrap();
    zip.write_all(&npy).unwrap();
    let bytes = zip.finish().unwrap().into_inner();
    assert!(1000 * bytes.len() < npy.len(), "{} bytes", bytes.len());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.npz");
    std::fs::write(&path, bytes).unwrap();
    let memory = allocation_counter::measure(|| {
        let Ok(DataFile::Dense(array)) = read_data::<f64>(&path, None) else {
            panic!("not read");
        };
        assert_eq!(array.values.len(), cells);
    });
    assert!(memory.bytes_max <= MAX_MEMORY, "{memory:?}");
}
