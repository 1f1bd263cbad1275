//! Sounds that were compressed with loss, by encoders of others.
#![cfg(feature = "compressed-sound")]

use std::f64::consts::TAU;
use std::path::{Path, PathBuf};

use plca_media::read_sound;
use proptest::prelude::*;

const ENDINGS: [&str; 4] = ["mp3", "ogg", "m4a", "aac"];

fn stored(ending: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    folder.join(format!("tones.{ending}"))
}

/// The share of a signal's power that a tone has, whatever its phase.
fn share(signal: &[f64], rate: u32, frequency: f64) -> f64 {
    let angle = |n: usize| TAU * frequency * n as f64 / f64::from(rate);
    let along = |of: fn(f64) -> f64| -> f64 {
        let products = signal.iter().enumerate().map(|(n, x)| x * of(angle(n)));
        products.sum()
    };
    let power: f64 = signal.iter().map(|x| x * x).sum();
    2.0 * (along(f64::cos).powi(2) + along(f64::sin).powi(2)) / (power * signal.len() as f64)
}

#[test]
fn every_channel_has_its_tone() {
    for ending in ENDINGS {
        let sound = read_sound(stored(ending)).unwrap();
        assert_eq!((sound.rate, sound.channels.len()), (22050, 2), "{ending}");
        let length = sound.channels[0].len();
        // A quarter of a second, and what encoders add at both ends.
        assert!((5512..9000).contains(&length), "{ending}: {length}");
        for (channel, frequency) in sound.channels.iter().zip([440.0, 660.0]) {
            let middle = &channel[2000..5000];
            let own = share(middle, sound.rate, frequency);
            let other = share(middle, sound.rate, 1100.0 - frequency);
            assert!(own > 0.98 && other < 0.01, "{ending}: {own} {other}");
        }
        let loudest = |c: usize| {
            sound.channels[c][2000..5000]
                .iter()
                .fold(0f64, |a, x| a.max(x.abs()))
        };
        assert!(
            (loudest(0) - 0.5).abs() < 0.03 && (loudest(1) - 0.25).abs() < 0.03,
            "{ending}"
        );
    }
}

#[test]
fn what_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ENDINGS {
        for bytes in [&b""[..], b"RIFF", &[0xff; 300]] {
            let path = folder.path().join(format!("a.{ending}"));
            std::fs::write(&path, bytes).unwrap();
            let error = read_sound(&path).unwrap_err().to_string();
            assert!(
                error.contains(&format!("a.{ending}: ")) && !error.contains('\n'),
                "{error}"
            );
        }
    }
    let path = folder.path().join("a.xyz");
    std::fs::write(&path, b"").unwrap();
    let error = read_sound(&path).unwrap_err().to_string();
    assert!(error.contains("not one of .wav, .flac, .mp3"), "{error}");
}

proptest! {
    /// A good file with some bytes overwritten and its end cut off is read or refused.
    #[test]
    fn damaged_files_do_no_harm(changes in prop::collection::vec((0usize..4000, any::<u8>()), 1..8), keep in 0usize..4000, which in 0usize..4) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("a.{}", ENDINGS[which]));
        let mut bytes = std::fs::read(stored(ENDINGS[which])).unwrap();
        for (at, byte) in changes {
            if let Some(b) = bytes.get_mut(at) { *b = byte; }
        }
        bytes.truncate(bytes.len().min(keep + bytes.len() / 2));
        std::fs::write(&path, &bytes).unwrap();
        if let Err(error) = read_sound(&path) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
