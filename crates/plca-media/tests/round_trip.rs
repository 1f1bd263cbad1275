//! What is written is read back; what is taken apart adds up.

use std::f64::consts::TAU;
use std::path::Path;

use plca_media::{
    ConstantQ, Image, MediaError, Pitches, SoftMasks, Sound, Stft, read_image, read_sound,
    write_image, write_wav,
};
use proptest::prelude::*;

#[test]
fn flac_samples_are_the_reference() {
    let sound = read_sound(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/testdata/tone.flac"
    )))
    .unwrap();
    assert_eq!(
        (sound.rate, sound.channels.len(), sound.channels[0].len()),
        (8000, 2, 192)
    );
    for (n, x) in sound.channels[0].iter().enumerate() {
        let expected = (8000.0 * (0.2 * n as f64).sin()).round() / 32768.0;
        assert_eq!((*x, sound.channels[1][n]), (expected, -expected));
    }
}

#[test]
fn images_survive_to_the_precision_of_their_format() {
    let folder = tempfile::tempdir().unwrap();
    for channels in [1, 3] {
        let values = (0..24 * channels)
            .map(|i| f64::from(i as u8) * 3.0 / 255.0)
            .collect();
        let image = Image {
            height: 4,
            width: 6,
            channels,
            values,
        };
        for name in ["a.png", "a.tif", "a.tiff"] {
            let path = folder.path().join(name);
            write_image(&path, &image).unwrap();
            let back = read_image(&path).unwrap();
            assert_eq!((back.height, back.width, back.channels), (4, 6, channels));
            let mut both = image.values.iter().zip(&back.values);
            assert!(both.all(|(a, b)| (a - b).abs() < 1e-9));
        }
        let flat = Image {
            values: vec![0.4; 24 * channels],
            ..image
        };
        let path = folder.path().join("a.jpg");
        write_image(&path, &flat).unwrap();
        let back = read_image(&path).unwrap();
        assert!(
            back.values.iter().all(|x| (x - 0.4).abs() < 0.01),
            "{:?}",
            back.values
        );
    }
}

/// A picture with the left half white, of a camera that was turned: its metadata say that the first row is at the right.
#[test]
fn pictures_are_turned_as_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jpg");
    let values = (0..16 * 32).map(|i| f64::from(i % 32 < 16)).collect();
    let (height, width, channels) = (16, 32, 1);
    let image = Image {
        height,
        width,
        channels,
        values,
    };
    write_image(&path, &image).unwrap();
    let plain = std::fs::read(&path).unwrap();
    for (orientation, white) in [(1, [0, 0]), (2, [0, 31]), (6, [0, 0]), (8, [31, 0])] {
        // EXIF: one entry, 0x112 of type 3 (a number of 16 bits), little endian.
        let mut segment = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
        segment.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
        let length = (segment.len() as u16 + 2).to_be_bytes();
        let marked = [&plain[..2], &[0xff, 0xe1], &length, &segment, &plain[2..]].concat();
        std::fs::write(&path, marked).unwrap();
        let turned = read_image(&path).unwrap();
        let stands = orientation > 4;
        let expected = if stands {
            (width, height)
        } else {
            (height, width)
        };
        assert_eq!((turned.height, turned.width), expected, "{orientation}");
        let [y, x] = white;
        let dark = [turned.height - 1 - y, turned.width - 1 - x];
        let at = |[y, x]: [usize; 2]| turned.values[y * turned.width + x];
        assert!(at(white) > 0.9 && at(dark) < 0.1, "{orientation}");
    }
}

/// A harmonic tone: every partial has its amplitude at its bin, and the bins beside are lower.
#[test]
fn partials_lie_at_log_spaced_bins() {
    let (rate, pitches) = (
        8000,
        Pitches {
            lowest: 55.0,
            per_octave: 24,
            bins: 120,
        },
    );
    let amplitudes = [0.5, 0.3, 0.2, 0.1];
    let sound: Vec<f64> = (0..12000)
        .map(|n| {
            let partial = |h: usize| {
                amplitudes[h - 1] * (TAU * 110.0 * h as f64 * f64::from(n) / f64::from(rate)).sin()
            };
            (1..=4).map(partial).sum()
        })
        .collect();
    let (frames, x) = ConstantQ::new(rate, pitches, 300)
        .unwrap()
        .magnitudes(&sound)
        .unwrap();
    let at = |bin: usize| x[bin * frames + frames / 2];
    for (h, amplitude) in (1..=4usize).zip(amplitudes) {
        let exact = 24.0 * (2.0 * h as f64).log2();
        let bin = exact.round() as usize;
        assert!(
            at(bin) > at(bin - 1) && at(bin) > at(bin + 1),
            "partial {h}"
        );
        if exact.fract() == 0.0 {
            assert!(
                (at(bin) - amplitude).abs() < 1e-3,
                "partial {h}: {}",
                at(bin)
            );
        }
    }
}

#[test]
fn settings_outside_their_domain_are_refused() {
    assert!(
        Stft::new(255, 64).is_err() && Stft::new(256, 129).is_err() && Stft::new(0, 1).is_err()
    );
    let good = Pitches {
        lowest: 55.0,
        per_octave: 12,
        bins: 24,
    };
    #[rustfmt::skip]
    let cases = [
        (0, good, 100),
        (8000, good, 0),
        (8000, Pitches { lowest: f64::NAN,..good }, 100),
        (8000, Pitches { lowest: -1.0,..good }, 100),
        (8000, Pitches { lowest: 1e-9,..good }, 100),
        (8000, Pitches { bins: 0, ..good }, 100),
        (8000, Pitches { bins: 100, ..good }, 100),
        (8000, Pitches { per_octave: 0,..good }, 100),
    ];
    for (rate, pitches, hop) in cases {
        assert!(
            ConstantQ::new(rate, pitches, hop).is_err(),
            "{rate} {pitches:?} {hop}"
        );
    }
    let stft = Stft::new(8, 4).unwrap();
    let spectrum = stft.forward(&[1.0; 20]).unwrap();
    assert!(stft.inverse(&spectrum, 20).is_ok() && stft.inverse(&spectrum, 21).is_err());
    assert!(Stft::new(16, 4).unwrap().inverse(&spectrum, 8).is_err());
    let cells = spectrum.magnitudes().len();
    let masks = |components: usize, magnitudes: Vec<f64>| {
        let of = |_| -> Result<_, MediaError> { Ok(magnitudes.clone()) };
        SoftMasks::new(components, cells, of)
    };
    assert!(masks(0, vec![1.0; cells]).is_err());
    assert!(masks(1, vec![1.0; cells - 1]).is_err());
    assert!(masks(1, vec![-1.0; cells]).is_err());
    assert!(masks(1, vec![f64::NAN; cells]).is_err());
    let masks = masks(1, vec![1.0; cells]).unwrap();
    assert!(masks.part(&stft, &[1.0; 20], &vec![1.0; cells]).is_ok());
    assert!(masks.part(&stft, &[1.0; 40], &vec![1.0; cells]).is_err());
    assert!(masks.part(&stft, &[1.0; 20], &[1.0]).is_err());
}

/// Frames too many for any memory, from a short sound.
#[test]
fn spectra_that_cannot_be_held_are_refused() {
    let stft = Stft::new(1 << 20, 1).unwrap();
    let error = stft.forward(&[1.0; 1000]).unwrap_err();
    assert!(matches!(error, MediaError::Room(_)), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("524289 x 1049575") && said.contains("the limit is"),
        "{said}"
    );
}

fn samples(longest: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1.0f64..1.0, 1..longest)
}

proptest! {
    /// `inverse(forward(x)) = x`.
    #[test]
    fn the_inverse_undoes_the_transform(sound in samples(300), half in 1usize..40, hop in 1usize..40) {
        let stft = Stft::new(2 * half, hop.min(half)).unwrap();
        let back = stft.inverse(&stft.forward(&sound).unwrap(), sound.len()).unwrap();
        prop_assert!(sound.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-10));
    }

    /// `Σ_z x_z = x`, also after the files were written and read.
    #[test]
    fn parts_add_up_to_the_whole(sound in samples(400), seed in 0u32..1000, k in 1usize..5) {
        let stft = Stft::new(64, 16).unwrap();
        let spectrum = stft.forward(&sound).unwrap();
        let cells = spectrum.magnitudes().len();
        // Many cells where no component has anything, and magnitudes of all sizes.
        let share = |z: usize, cell: usize| match (z as u32 * 7919 + cell as u32 * 104_729 + seed) % 11 {
            0..5 => 0.0,
            n => 10f64.powi(60 * (n as i32 - 8)),
        };
        let magnitudes: Vec<Vec<f64>> = (0..k).map(|z| (0..cells).map(|c| share(z, c)).collect()).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part.wav");
        let mut sum = vec![0.0; sound.len()];
        let of = |z: usize| -> Result<_, MediaError> { Ok(magnitudes[z].clone()) };
        let masks = SoftMasks::new(k, cells, of).unwrap();
        for magnitudes in &magnitudes {
            let part = masks.part(&stft, &sound, magnitudes).unwrap();
            write_wav(&path, &Sound::mono(8000, part)).unwrap();
            let read = read_sound(&path).unwrap();
            sum.iter_mut().zip(&read.channels[0]).for_each(|(s, x)| *s += x);
        }
        prop_assert!(sound.iter().zip(&sum).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    /// Averaging areas keeps the mean.
    #[test]
    fn resizing_keeps_the_mean(height in 1usize..9, width in 1usize..9, to in (1usize..12, 1usize..12), channels in prop::sample::select(vec![1usize, 3])) {
        let values: Vec<f64> = (0..height * width * channels).map(|i| (i * 37 % 101) as f64 / 101.0).collect();
        let image = Image { height, width, channels, values };
        let other = image.resized(to.0, to.1);
        let mean = |i: &Image| i.values.iter().sum::<f64>() / i.values.len() as f64;
        prop_assert!((mean(&image) - mean(&other)).abs() < 1e-12);
    }
}
