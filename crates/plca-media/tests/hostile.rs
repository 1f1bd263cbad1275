//! Files that lie, are cut short or are noise: an error of one line with the file's name, never a panic or a large allocation.

use std::path::PathBuf;

use plca_media::{MediaError, Sound, read_image, read_sound, write_image, write_wav};
use proptest::prelude::*;

/// A folder that is removed at the end, and a file in it.
fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn message(error: &MediaError, name: &str) -> String {
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    let (_, after) = line.split_once(name).unwrap();
    after[2..].to_string()
}

fn sound_error(name: &str, bytes: &[u8]) -> String {
    let (_folder, path) = file(name, bytes);
    message(&read_sound(&path).unwrap_err(), name)
}

/// A canonical header of 44 bytes and the samples.
fn wav(format: u16, channels: u16, rate: u32, bits: u16, claimed: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((36u32.wrapping_add(claimed)).to_le_bytes());
    bytes.extend(b"WAVEfmt ");
    bytes.extend(16u32.to_le_bytes());
    bytes.extend(format.to_le_bytes());
    bytes.extend(channels.to_le_bytes());
    bytes.extend(rate.to_le_bytes());
    let block = channels.wrapping_mul(bits / 8);
    bytes.extend(rate.wrapping_mul(block.into()).to_le_bytes());
    bytes.extend(block.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes.extend(b"data");
    bytes.extend(claimed.to_le_bytes());
    bytes.extend(data);
    bytes
}

/// RF64 of one channel of 16 bits, whose length is in `ds64`.
fn wide(claimed: u64) -> Vec<u8> {
    let mut bytes = b"RF64\xff\xff\xff\xffWAVEds64\x1c\0\0\0".to_vec();
    for size in [claimed + 72, claimed, claimed / 2] {
        bytes.extend(size.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes.extend(&wav(1, 1, 8000, 16, u32::MAX, &[0; 8])[12..]);
    bytes
}

#[test]
fn a_good_header_is_read() {
    let data: Vec<u8> = [16384i16, -32768, 0, 8192]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let (_folder, path) = file("a.wav", &wav(1, 2, 8000, 16, 8, &data));
    let sound = read_sound(&path).unwrap();
    assert_eq!(
        (sound.rate, sound.channels),
        (8000, vec![vec![0.5, 0.0], vec![-1.0, 0.25]])
    );
}

#[test]
fn sounds_that_lie() {
    let cut = sound_error("a.wav", &wav(1, 1, 8000, 16, 4_000_000_000, &[0; 8]));
    assert_eq!(cut, "ends after 8 of the 4000000000 bytes of its samples");
    for (channels, bits) in [(1, 8), (1, 16), (1, 24), (2, 24), (6, 32)] {
        for size in [u32::MAX, 0xffff_ffdb, 0x7fff_ffff, 0x7fff_f000, 0] {
            let piped = sound_error("a.wav", &wav(1, channels, 8000, bits, size, &[0; 48]));
            assert!(piped.contains("written to a pipe"), "{piped}");
        }
    }
    let within = sound_error("a.wav", &wav(1, 2, 8000, 16, 6, &[0; 6]));
    assert_eq!(within, "ends within sample 1");
    let long = sound_error("a.wav", &wide(1 << 40));
    assert!(long.starts_with("ends after 8 of"), "{long}");
    let empty = sound_error("a.wav", &wav(1, 1, 8000, 16, 0, &[]));
    assert_eq!(empty, "holds no samples");
    let still = sound_error("a.wav", &wav(1, 1, 0, 16, 4, &[0; 4]));
    assert_eq!(still, "2 samples in 1 channels at 0 Hz are not a sound");
    let nan = sound_error(
        "a.wav",
        &wav(3, 1, 8000, 32, 8, &[0, 0, 0, 0, 0, 0, 0xc0, 0x7f]),
    );
    assert_eq!(nan, "sample 1 of channel 0 is NaN");
    for bytes in [
        wav(1, 0, 8000, 16, 4, &[0; 4]),
        wav(1, 1, 8000, 0, 4, &[0; 4]),
        wav(2, 1, 8000, 4, 8, &[0; 8]),
        b"RIFF".to_vec(),
        Vec::new(),
    ] {
        assert!(!sound_error("a.wav", &bytes).is_empty());
        assert!(!sound_error("a.flac", &bytes).is_empty());
    }
    let opus = sound_error("a.opus", &[]);
    assert!(
        opus.starts_with("`.opus` is not one of .wav, .flac"),
        "{opus}"
    );
    assert!(read_sound("no/such.wav").is_err());
}

/// More than is read is refused before it is read.
#[test]
fn long_sounds_are_refused_at_once() {
    let samples = (1 << 28) + 2;
    let (_folder, path) = file("a.wav", &wav(1, 2, 44_100, 8, samples, &[]));
    let sparse = std::fs::File::options().write(true).open(&path).unwrap();
    sparse.set_len(44 + u64::from(samples)).unwrap();
    let why = message(&read_sound(&path).unwrap_err(), "a.wav");
    assert!(why.starts_with("lasts 51 minutes"), "{why}");
    assert!(
        why.contains("268435458 samples") && why.contains("at most 268435456"),
        "{why}"
    );
}

#[test]
fn a_flac_that_claims_much_is_refused_for_what_it_holds() {
    // A stream header with 2^36 - 1 samples and no frame.
    let mut bytes = b"fLaC".to_vec();
    bytes.extend([0x80, 0, 0, 34]);
    bytes.extend([16, 0, 16, 0, 0, 0, 0, 0, 0, 0]);
    // 44100 Hz, one channel, 16 bits.
    bytes.extend([0x0a, 0xc4, 0x40, 0xff, 0xff, 0xff, 0xff, 0xff]);
    bytes.extend([0; 16]);
    assert_eq!(sound_error("a.flac", &bytes), "the file ends too early");
}

/// A chunk of a PNG, without its checksum being right.
fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = (data.len() as u32).to_be_bytes().to_vec();
    bytes.extend(name);
    bytes.extend(data);
    bytes.extend([0; 4]);
    bytes
}

#[test]
fn pictures_that_lie() {
    let mut vast = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = 2_000_000_000u32.to_be_bytes().to_vec();
    header.extend(2_000_000_000u32.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    vast.extend(chunk(b"IHDR", &header));
    for (name, bytes) in [
        ("a.png", &vast[..]),
        ("a.png", b"\x89PNG\r\n\x1a\n"),
        ("a.png", b""),
        ("a.jpg", b"\xff\xd8\xff"),
        ("a.jpeg", &vast[..]),
        ("a.gif", b"GIF89a"),
    ] {
        let (_folder, path) = file(name, bytes);
        assert!(!message(&read_image(&path).unwrap_err(), name).is_empty());
    }
}

/// The checksum of a chunk's name and data.
fn checksum(bytes: &[u8]) -> u32 {
    let shifted = |c: u32| (c >> 1) ^ if c & 1 == 1 { 0xedb8_8320 } else { 0 };
    let byte = |c: u32, b: &u8| (0..8).fold(c ^ u32::from(*b), |c, _| shifted(c));
    !bytes.iter().fold(!0, byte)
}

/// Each is a file of zeros that has its header right.
#[test]
fn pictures_that_claim_more_than_memory_or_their_bytes_can_hold() {
    let beyond_memory = |sizes: &str| Some(format!("{sizes} pixels are more than 2^26 numbers"));
    let beyond_bytes = |pixels: usize, length: usize| {
        let what = format!("{pixels} bytes of pixels are claimed by a file of {length} bytes");
        Some(what)
    };
    for (width, height, colour, length, refused) in [
        (1 << 15, 1 << 15, 0, 53, beyond_memory("32768 x 32768")),
        (1 << 13, (1 << 13) + 1, 0, 53, beyond_memory("8192 x 8193")),
        (1 << 13, 1 << 13, 2, 53, beyond_memory("8192 x 8192")),
        (1 << 13, 1 << 13, 0, 53, beyond_bytes(1 << 26, 53)),
        (1 << 11, (1 << 11) + 1, 0, 53, beyond_bytes(4_196_352, 53)),
        (1 << 11, 1 << 11, 0, 53, None),
        (1 << 12, 1 << 11, 0, 4095, beyond_bytes(1 << 23, 4095)),
        (1 << 12, 1 << 11, 0, 4096, None),
    ] {
        let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
        let sizes = [width, height].map(u32::to_be_bytes).concat();
        for (name, data) in [
            (b"IHDR", [&sizes[..], &[8, colour, 0, 0, 0]].concat()),
            // With what stands around it there are 45 bytes before.
            (b"IDAT", vec![0; length - 45]),
        ] {
            let mut chunk = chunk(name, &data);
            let end = chunk.len() - 4;
            let sum = checksum(&chunk[4..end]);
            chunk[end..].copy_from_slice(&sum.to_be_bytes());
            picture.extend(chunk);
        }
        assert_eq!(picture.len(), length);
        let (_folder, path) = file("a.png", &picture);
        let error = message(&read_image(&path).unwrap_err(), "a.png");
        // Where the size is none to refuse, its few bytes are.
        let of_size = error.contains("pixels");
        assert_eq!(of_size.then_some(&error), refused.as_ref(), "{error}");
    }
}

#[test]
fn pictures_of_one_colour_are_read_however_few_bytes_they_take() {
    let folder = tempfile::tempdir().unwrap();
    let (height, width, channels) = (2000, 3000, 1);
    for name in ["a.png", "a.jpg"] {
        let path = folder.path().join(name);
        let flat = plca_media::Image {
            height,
            width,
            channels,
            values: vec![1.0; height * width],
        };
        write_image(&path, &flat).unwrap();
        let back = read_image(&path).unwrap();
        assert!(back.values.iter().all(|x| *x > 0.99), "{name}");
    }
}

#[test]
fn rates_beyond_the_format_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fast.wav");
    for (rate, channels, holds) in [
        (1 << 30, 1, false),
        ((1 << 30) - 1, 1, true),
        (1 << 29, 2, false),
        (1 << 16, 1, true),
    ] {
        let channels = vec![vec![0.5]; channels];
        assert_eq!(
            write_wav(&path, &Sound { rate, channels }).is_ok(),
            holds,
            "{rate}"
        );
    }
}

#[test]
fn nothing_is_left_by_what_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    let uneven = Sound {
        rate: 8000,
        channels: vec![vec![0.0], vec![]],
    };
    assert!(write_wav(&path, &uneven).is_err());
    let image = plca_media::Image {
        height: 2,
        width: 2,
        channels: 1,
        values: vec![0.0; 3],
    };
    assert!(write_image(folder.path().join("a.png"), &image).is_err());
    assert!(write_image(folder.path().join("a.tiff"), &image).is_err());
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    assert!(
        write_wav(
            folder.path().join("no/a.wav"),
            &Sound::mono(8000, vec![0.0])
        )
        .is_err()
    );
}

proptest! {
    /// A good file with some bytes overwritten and its end cut off is read or refused.
    #[test]
    fn damaged_files_do_no_harm(changes in prop::collection::vec((0usize..400, any::<u8>()), 1..8),
                                keep in 0usize..400, which in 0usize..5) {
        let names = ["a.wav", "a.flac", "a.png", "a.jpg", "a.tif"];
        let (folder, path) = file(names[which], &[]);
        let image = plca_media::Image { height: 4, width: 5, channels: 3, values: (0..60).map(|i| f64::from(i) / 60.0).collect() };
        let mut bytes = match which {
            0 => { write_wav(&path, &Sound::mono(8000, vec![0.25; 60])).unwrap(); std::fs::read(&path).unwrap() }
            1 => include_bytes!("../testdata/tone.flac").to_vec(),
            _ => { write_image(&path, &image).unwrap(); std::fs::read(&path).unwrap() }
        };
        for (at, byte) in changes {
            if let Some(b) = bytes.get_mut(at) { *b = byte; }
        }
        bytes.truncate(bytes.len().min(keep + bytes.len() / 2));
        std::fs::write(&path, &bytes).unwrap();
        let failure = if which < 2 { read_sound(&path).err() } else { read_image(&path).err() };
        if let Some(failure) = failure { message(&failure, names[which]); }
        drop(folder);
    }
}

/// A damaged part of a FLAC file is never passed over: the decoder itself goes on at the next frame that is whole.
#[test]
fn damaged_flac_is_refused() {
    let whole = include_bytes!("../testdata/frames.flac");
    let (_folder, path) = file("a.flac", whole);
    let right = read_sound(&path).unwrap();
    assert_eq!(right.channels[0].len(), 960);
    let mut refused = 0;
    for at in (0..whole.len()).step_by(whole.len() / 97 + 1) {
        for bit in [0, 3, 7] {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1 << bit;
            let (_folder, path) = file("a.flac", &bytes);
            match read_sound(&path) {
                // Such as a comment.
                Ok(sound) => assert_eq!(sound.channels, right.channels, "byte {at}, bit {bit}"),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 200, "{refused}");
    // The decoder goes on at the next frame.
    let mut bytes = whole.to_vec();
    bytes[42 + 1000] ^= 1;
    let why = sound_error("a.flac", &bytes);
    assert!(why.contains("768 of its 960 samples"), "{why}");
    // The samples are whole, and others than those that were written.
    let mut bytes = whole.to_vec();
    bytes[30] ^= 1;
    let why = sound_error("a.flac", &bytes);
    assert!(why.contains("other samples"), "{why}");
    // What taggers put behind the last frame is no part of it.
    let tag = [b"TAG".to_vec(), vec![0; 125]].concat();
    let ape = |flags: u8| {
        let mut end = b"APETAGEX\xd0\x07\0\0".to_vec();
        end.extend(40u32.to_le_bytes());
        end.extend([0, 0, 0, 0, 0, 0, 0, flags]);
        end.extend([0; 8]);
        end
    };
    let item = vec![7; 8];
    for tags in [
        tag.clone(),
        [item.clone(), ape(0)].concat(),
        [ape(0xa0), item, ape(0x80), tag].concat(),
    ] {
        let (_folder, path) = file("a.flac", &[whole.to_vec(), tags].concat());
        assert_eq!(read_sound(&path).unwrap(), right);
    }
}
