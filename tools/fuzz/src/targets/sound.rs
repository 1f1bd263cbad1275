//! Sounds.

use plca_media::{Sound, read_sound, write_wav};

use super::one_line;
use crate::{Target, scratch};

const SOUND: &str = "errors are one line; channels have one length and finite samples, and are written and read again";
pub(super) const WAV: Target = Target {
    name: "wav",
    asserts: SOUND,
    seeds: wav_seeds,
    run: |input| sound("input.wav", input),
};

pub(super) const FLAC: Target = Target {
    name: "flac",
    asserts: SOUND,
    seeds: || vec![include_bytes!("../../../../crates/plca-media/testdata/tone.flac").to_vec()],
    run: |input| sound("input.flac", input),
};

/// A canonical header of 44 bytes and the samples.
fn wav(format: u16, channels: u16, bits: u16, data: &[u8]) -> Vec<u8> {
    let size = |n: usize| (n as u32).to_le_bytes();
    let block = channels * bits / 8;
    let mut bytes = b"RIFF".to_vec();
    bytes.extend(size(36 + data.len()));
    bytes.extend(b"WAVEfmt ");
    bytes.extend(size(16));
    bytes.extend([format, channels].map(u16::to_le_bytes).concat());
    bytes.extend(
        [8000, 8000 * u32::from(block)]
            .map(u32::to_le_bytes)
            .concat(),
    );
    bytes.extend([block, bits].map(u16::to_le_bytes).concat());
    bytes.extend(b"data");
    bytes.extend(size(data.len()));
    bytes.extend(data);
    bytes
}

fn wav_seeds() -> Vec<Vec<u8>> {
    let stereo = Sound {
        rate: 8000,
        channels: vec![vec![0.5, -0.25, 3.0], vec![0.0; 3]],
    };
    vec![
        wav(1, 1, 8, &[128, 0, 255]),
        wav(1, 2, 16, &[0, 64, 0, 128, 1, 0, 0, 0]),
        wav(1, 1, 24, &[1, 2, 3, 4, 5, 6]),
        scratch::written("seed.wav", |path| {
            write_wav(path, &stereo).expect("a sound is written");
        }),
    ]
}

fn sound(name: &str, input: &[u8]) -> bool {
    let sound = match read_sound(scratch::file(name, input)) {
        Ok(sound) => sound,
        Err(e) => {
            one_line(&e);
            return e.to_string().contains("sample");
        }
    };
    let samples = sound.channels[0].len();
    for channel in &sound.channels {
        assert!(channel.len() == samples && channel.iter().all(|x| x.is_finite()));
    }
    let path = scratch::path("again.wav");
    // A rate may be beyond what the format holds.
    if write_wav(&path, &sound).is_ok() {
        let again = read_sound(&path).expect("what was written");
        assert_eq!(
            (again.rate, again.channels.len()),
            (sound.rate, sound.channels.len())
        );
    }
    true
}
