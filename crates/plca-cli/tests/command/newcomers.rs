//! What `examples/README.md` tells a newcomer to type leads to the results that it promises.

use std::path::Path;

use crate::Folder;

/// The shell blocks of a section, run one command after the other; what they print.
fn follow(folder: &Folder, section: &str) -> String {
    let page = include_str!("../../../../examples/README.md");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut parts = page.split("\n## ");
    let part = parts.find(|part| part.starts_with(section)).unwrap();
    let commands = part.lines().filter_map(|line| line.strip_prefix("plca "));
    let commands: Vec<&str> = commands.collect();
    assert!((1..=6).contains(&commands.len()), "{section}: {commands:?}");
    let place = format!("{}/", examples.display());
    let said = commands
        .iter()
        .map(|line| folder.ok(&line.replace("examples/", &place)));
    said.collect()
}

#[test]
fn text_gives_topics() {
    let folder = Folder::new();
    let said = follow(&folder, "Text");
    for (first, words) in [
        ("violin", ["concert", "melody"]),
        ("bread", ["oven", "flour"]),
        ("ship", ["harbour", "sail"]),
        ("soil", ["seed", "rose"]),
    ] {
        let topic = said
            .lines()
            .find(|line| line.split_whitespace().nth(1) == Some(first));
        assert!(
            words.iter().all(|word| topic.unwrap().contains(word)),
            "{said}"
        );
    }
    assert_eq!(
        folder.model("mixtures.npz").arrays["mixture"].shape,
        [4, 120]
    );
}

#[test]
fn sound_gives_notes() {
    let folder = Folder::new();
    follow(&folder, "Sound");
    let model = folder.model("notes.npz");
    let w = &model.arrays["w"];
    let strongest = |z: usize| {
        let bins = (0..w.shape[0]).map(|f| (w.values[f * 3 + z], f));
        bins.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap().1
    };
    // Half a bin is 3.9 Hz.
    let mut pitches: Vec<f64> = (0..3)
        .map(|z| strongest(z) as f64 * 8000.0 / 1024.0)
        .collect();
    pitches.sort_by(f64::total_cmp);
    for (pitch, note) in pitches.iter().zip([261.6, 329.6, 392.0]) {
        assert!((pitch - note).abs() < 7.9, "{pitches:?}");
    }
    let whole = plca_media::read_sound(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/notes.wav"),
    )
    .unwrap();
    let parts = (0..3).map(|z| {
        plca_media::read_sound(folder.path(&format!("parts/component_{z}.wav")))
            .unwrap()
            .mixed()
    });
    let parts: Vec<Vec<f64>> = parts.collect();
    for (n, x) in whole.mixed().iter().enumerate() {
        assert!(
            (x - parts.iter().map(|part| part[n]).sum::<f64>()).abs() < 1e-6,
            "{n}"
        );
    }
}

#[test]
fn spectra_give_shares() {
    let folder = Folder::new();
    let said = follow(&folder, "Spectra");
    // Where the spectra were made to be highest.
    for peak in ["9", "15", "53"] {
        let highest = |line: &str| line.split_whitespace().nth(1) == Some(peak);
        assert!(said.lines().any(highest), "{peak}: {said}");
    }
    let weights = folder.model("spectra.npz").arrays["weights"].values.clone();
    assert!(
        weights.iter().all(|w| (0.25..0.4).contains(w)),
        "{weights:?}"
    );
}

#[test]
fn signed_data_are_filled() {
    let folder = Folder::new();
    follow(&folder, "Signed");
    let filled = plca_io::read_data::<f64>(folder.path("filled.npy"), None).unwrap();
    let plca_io::DataFile::Dense(filled) = filled else {
        panic!("dense")
    };
    assert_eq!(filled.shape, [24, 80]);
    let signed = include_str!("../../../../examples/data/signed.csv");
    let given = signed.lines().flat_map(|line| line.split(','));
    let mut seen = (0, 0.0, 0.0);
    for (cell, y) in given.zip(&filled.values) {
        assert!(y.is_finite());
        if let Ok(x) = cell.parse::<f64>() {
            seen = (seen.0 + 1, seen.1 + (x - y).powi(2), seen.2 + x * x);
        }
    }
    // The noise is 0.05, the data's spread 1.8.
    assert!(seen.0 > 1400 && seen.1 < 0.002 * seen.2, "{seen:?}");
}

#[test]
fn an_image_gives_its_shapes() {
    let folder = Folder::new();
    follow(&folder, "An image");
    let mut cells: Vec<usize> = folder.model("shapes.npz").arrays["kernels"]
        .values
        .chunks(25)
        .map(|k| k.iter().filter(|x| **x > 0.02).count())
        .collect();
    cells.sort_unstable();
    assert_eq!(cells, [9, 16]);
}
