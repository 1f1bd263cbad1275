//! Heads of WAVE files as programs write them: what libsndfile reads is read, or refused by name.

use plca_media::{Sound, read_sound};

/// A chunk, with the byte that makes its size even.
fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = name.to_vec();
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes
}

fn whole(chunks: &[Vec<u8>]) -> Vec<u8> {
    let all = chunks.concat();
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((4 + all.len() as u32).to_le_bytes());
    bytes.extend(b"WAVE");
    bytes.extend(all);
    bytes
}

/// `fmt ` of 8000 samples a second.
fn format(tag: u16, channels: u16, block: u16, bits: u16) -> Vec<u8> {
    let mut told = tag.to_le_bytes().to_vec();
    told.extend(channels.to_le_bytes());
    told.extend(8000u32.to_le_bytes());
    told.extend((8000 * u32::from(block)).to_le_bytes());
    told.extend(block.to_le_bytes());
    told.extend(bits.to_le_bytes());
    told
}

fn extensible(tag: u16, channels: u16, block: u16, bits: u16, valid: u16) -> Vec<u8> {
    let mut told = format(0xfffe, channels, block, bits);
    told.extend(22u16.to_le_bytes());
    told.extend(valid.to_le_bytes());
    told.extend(0u32.to_le_bytes());
    told.extend(tag.to_le_bytes());
    told.extend([0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71]);
    told
}

fn read(bytes: &[u8]) -> Result<Sound, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.wav");
    std::fs::write(&path, bytes).unwrap();
    read_sound(&path).map_err(|e| e.to_string().split_once("s.wav: ").unwrap().1.into())
}

/// One sample of -1/2 and one of 1/4 in this many bytes, the lowest of which are 0.
fn integers(width: usize) -> Vec<u8> {
    let word = |x: i32| x.to_le_bytes()[4 - width..].to_vec();
    [word(-(1 << 30)), word(1 << 29)].concat()
}

const WANT: [f64; 2] = [-0.5, 0.25];

#[test]
fn valid_bits_are_on_top_of_their_container() {
    for (width, valid) in [
        (2, 12),
        (2, 16),
        (3, 20),
        (3, 24),
        (4, 16),
        (4, 20),
        (4, 24),
        (4, 32),
    ] {
        let block = width as u16;
        for told in [
            extensible(1, 1, block, 8 * block, valid),
            extensible(1, 1, block, valid, valid),
            format(1, 1, block, valid),
        ] {
            let bytes = whole(&[chunk(b"fmt ", &told), chunk(b"data", &integers(width))]);
            assert_eq!(
                read(&bytes).unwrap().channels,
                [WANT],
                "{valid} bits in {width} bytes"
            );
        }
    }
}

#[test]
fn every_kind_of_samples() {
    let doubles: Vec<u8> = WANT.iter().flat_map(|x| x.to_le_bytes()).collect();
    let singles: Vec<u8> = WANT
        .iter()
        .flat_map(|&x| (x as f32).to_le_bytes())
        .collect();
    #[rustfmt::skip]
    let cases = [
        (3, 8, doubles, WANT),
        (3, 4, singles, WANT),
        (1, 1, vec![64, 160], WANT),
        // By the tables of G.711.
        (6, 1, vec![0x2a, 0xda], [-32256.0 / 32768.0, 248.0 / 32768.0]),
        (7, 1, vec![0x0f, 0x8f], [-16_764.0 / 32768.0, 16_764.0 / 32768.0]),
    ];
    for (tag, width, data, want) in cases {
        for told in [
            format(tag, 1, width, 8 * width),
            extensible(tag, 1, width, 8 * width, 8 * width),
        ] {
            let bytes = whole(&[chunk(b"fmt ", &told), chunk(b"data", &data)]);
            assert_eq!(read(&bytes).unwrap().channels, [want], "{tag}, {width}");
        }
    }
}

/// Whatever stands before the samples, or behind them.
#[test]
fn chunks_of_any_size() {
    let (told, data) = (
        chunk(b"fmt ", &format(1, 1, 2, 16)),
        chunk(b"data", &integers(2)),
    );
    let odd = [1, 3, 17, 602].map(|size| {
        [
            chunk(b"LIST", &vec![7; size]),
            chunk(b"bext", &vec![0xff; size]),
        ]
        .concat()
    });
    for odd in odd {
        for chunks in [
            vec![odd.clone(), told.clone(), data.clone()],
            vec![told.clone(), odd.clone(), data.clone()],
            vec![told.clone(), data.clone(), odd.clone()],
        ] {
            assert_eq!(read(&whole(&chunks)).unwrap().channels, [WANT]);
        }
    }
    // Without the byte that makes a size even.
    let mut short = chunk(b"LIST", b"odd");
    short.pop();
    assert_eq!(
        read(&whole(&[told.clone(), short, data.clone()]))
            .unwrap()
            .channels,
        [WANT]
    );
    // A rate of bytes, a length of the whole and a `fmt ` of other programs.
    let mut wrong = format(1, 1, 2, 16);
    wrong[8..12].copy_from_slice(&1u32.to_le_bytes());
    wrong.extend([0; 24]);
    let mut bytes = whole(&[chunk(b"fmt ", &wrong), data.clone()]);
    bytes[4..8].copy_from_slice(&[0xff; 4]);
    assert_eq!(read(&bytes).unwrap().channels, [WANT]);
    // The length is in another chunk.
    let mut sizes = [100u64, 4, 2].map(u64::to_le_bytes).concat();
    sizes.extend([0; 4]);
    let mut bytes = whole(&[chunk(b"ds64", &sizes), told, data]);
    bytes[..8].copy_from_slice(b"RF64\xff\xff\xff\xff");
    let at = bytes.len() - 8;
    bytes[at..at + 4].copy_from_slice(&[0xff; 4]);
    assert_eq!(read(&bytes).unwrap().channels, [WANT]);
}

/// An empty chunk of samples may stand before the others; of two nobody knows which are meant.
#[test]
fn one_chunk_of_samples() {
    let told = chunk(b"fmt ", &format(1, 1, 2, 16));
    let (none, data) = (chunk(b"data", &[]), chunk(b"data", &integers(2)));
    let list = chunk(b"LIST", &[7; 5]);
    for chunks in [
        vec![told.clone(), none.clone(), data.clone()],
        vec![told.clone(), none.clone(), list.clone(), data.clone()],
        vec![told.clone(), data.clone(), list.clone(), none],
    ] {
        assert_eq!(read(&whole(&chunks)).unwrap().channels, [WANT]);
    }
    // Whatever stands behind the end that the head tells, and what is cut there, is no part of it.
    let one = whole(&[told.clone(), data.clone()]);
    let mut behind = one.clone();
    behind.extend(b"data\xff\xff\0\0");
    for bytes in [behind, [one, data.clone()].concat()] {
        assert_eq!(read(&bytes).unwrap().channels, [WANT]);
    }
    let why = read(&whole(&[told.clone(), chunk(b"data", &[]), list.clone()])).unwrap_err();
    assert_eq!(why, "holds no samples");
    // Written to a pipe, by samples that look like the name of a chunk.
    let mut pipe = whole(&[chunk(b"fmt ", &format(1, 1, 1, 8)), chunk(b"data", &[])]);
    pipe.extend([b'a'; 64]);
    assert!(read(&pipe).unwrap_err().contains("lacks the length"));
    for between in [vec![], vec![list]] {
        let chunks = [
            vec![told.clone(), data.clone()],
            between,
            vec![data.clone()],
        ];
        let both = whole(&chunks.concat());
        // Also where the second one is cut, and where the head does not know its length.
        let cut = both[..both.len() - 2].to_vec();
        let mut open = both.clone();
        open[4..8].fill(0);
        for bytes in [both, cut, open] {
            let why = read(&bytes).unwrap_err();
            assert!(why.contains("two chunks `data`"), "{why}");
        }
    }
    let mut cut = whole(&[told, chunk(b"data", &[]), data]);
    cut.truncate(cut.len() - 2);
    assert_eq!(
        read(&cut).unwrap_err(),
        "ends after 2 of the 4 bytes of its samples"
    );
}

#[test]
fn other_kinds_are_refused_by_name() {
    let of = |told: Vec<u8>| whole(&[chunk(b"fmt ", &told), chunk(b"data", &[0; 64])]);
    let mut unknown = extensible(1, 1, 2, 16, 16);
    unknown[30] = 9;
    for (bytes, name) in [
        (of(format(2, 1, 256, 4)), "Microsoft ADPCM"),
        (of(format(0x11, 1, 256, 4)), "IMA ADPCM"),
        (of(format(0x31, 1, 65, 0)), "GSM 6.10"),
        (of(format(0x55, 1, 1, 0)), "MP3"),
        (of(format(0x1234, 1, 2, 16)), "0x1234"),
        (of(format(1, 1, 5, 36)), "integers of 36 bits"),
        (of(format(3, 1, 2, 16)), "floats of 16 bits"),
        (of(format(1, 0, 2, 16)), "has 0 channels"),
        (
            of(format(1, 2, 3, 16)),
            "says 3 bytes for one sample of all channels, but 2 channels of 16 bits need 4",
        ),
        (of(format(1, 2, 2, 16)), "says 2 bytes"),
        (of(unknown), "unknown type"),
        (b"RIFX\0\0\0\x04WAVE".to_vec(), "RIFX"),
        (b"FORM\0\0\0\x04AIFF".to_vec(), "AIFF"),
        (b"OggS\0\0\0\0\0\0\0\0".to_vec(), ".ogg"),
        (b"RIFF\x04\0\0\0AVI ".to_vec(), "`AVI `"),
        (b"RIFF\x04\0\0\0WAVE".to_vec(), "no chunk `data`"),
        (whole(&[chunk(b"data", &[0; 8])]), "`fmt `"),
        (b"text of any kind".to_vec(), "no WAVE file"),
    ] {
        let why = read(&bytes).unwrap_err();
        assert!(why.contains(name), "{why}");
    }
}
