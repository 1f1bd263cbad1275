//! The head of a WAVE file. Programs write it in many ways: with chunks of any size before the samples, with lengths that are unknown, with valid bits on top of
//! wider containers, as RF64. The decoder gets the plain form of it.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};

use crate::sound::too_long;

/// Where the samples lie, and what they are.
struct SampleLocation {
    format: Format,
    begin: u64,
    bytes: u64,
}

/// What a `fmt ` chunk says.
#[derive(Clone, Copy)]
struct Format {
    tag: u16,
    channels: u16,
    rate: u32,
    /// Bytes of a sample of one channel.
    width: u16,
}

const INTEGERS: u16 = 1;
const FLOATS: u16 = 3;
const A_LAW: u16 = 6;
const MU_LAW: u16 = 7;
const EXTENSIBLE: u16 = 0xfffe;

/// What comes behind the tag in the type of an extensible format.
const OF_TAG: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];

/// How the tags of other formats are known.
const OTHERS: [(u16, &str); 13] = [
    (0x0002, "Microsoft ADPCM"),
    (0x0011, "IMA ADPCM"),
    (0x0031, "GSM 6.10"),
    (0x0038, "NMS ADPCM"),
    (0x0040, "G.721 ADPCM"),
    (0x0045, "G.726 ADPCM"),
    (0x0050, "MPEG"),
    (0x0055, "MP3"),
    (0x00ff, "AAC"),
    (0x0161, "Windows Media"),
    (0x0162, "Windows Media"),
    (0x674f, "Ogg Vorbis"),
    (0xf1ac, "FLAC"),
];

const READ: &str = "expected integers of 8 to 32 bits, floats of 32 or 64 bits, A-law or µ-law";

/// A WAVE file in its plain form, from its begin.
pub(crate) fn plain(mut file: File) -> Result<impl Read, String> {
    let SampleLocation {
        format,
        begin,
        bytes,
    } = found(&mut file)?;
    file.seek(SeekFrom::Start(begin))
        .map_err(|e| e.to_string())?;
    let block = format.channels * format.width;
    // Within the limit of samples they have less than 4 GiB.
    let size = bytes as u32;
    let mut told = Vec::with_capacity(18);
    for word in [
        format.tag,
        format.channels,
        format.rate as u16,
        (format.rate >> 16) as u16,
    ] {
        told.extend(word.to_le_bytes());
    }
    told.extend(format.rate.wrapping_mul(block.into()).to_le_bytes());
    told.extend(block.to_le_bytes());
    told.extend((8 * format.width).to_le_bytes());
    if format.tag != INTEGERS {
        // Nothing more is told.
        told.extend([0; 2]);
    }
    let mut head = Vec::with_capacity(46);
    head.extend(b"RIFF");
    head.extend((20 + told.len() as u32 + size).to_le_bytes());
    head.extend(b"WAVEfmt ");
    head.extend((told.len() as u32).to_le_bytes());
    head.extend(told);
    head.extend(b"data");
    head.extend(size.to_le_bytes());
    Ok(Cursor::new(head).chain(file.take(bytes)))
}

fn found(file: &mut File) -> Result<SampleLocation, String> {
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => "ends within its head".to_string(),
        _ => e.to_string(),
    };
    let length = file.metadata().map_err(failed)?.len();
    let mut head = [0; 12];
    file.read_exact(&mut head).map_err(failed)?;
    let wide = match &head[..4] {
        b"RIFF" => false,
        b"RF64" | b"BW64" => true,
        b"RIFX" => return Err("is RIFX, a WAVE file of other byte order: it is not read".into()),
        b"FORM" => return Err("is an AIFF file: save it as WAVE first".into()),
        b"OggS" => return Err("is an Ogg file: it needs the ending .ogg".into()),
        b"fLaC" => return Err("is a FLAC file: it needs the ending .flac".into()),
        _ => return Err("is no WAVE file: it does not begin with RIFF or RF64".into()),
    };
    if &head[8..] != b"WAVE" {
        let what = String::from_utf8_lossy(&head[8..]);
        return Err(format!("is no WAVE file: it holds `{what}`"));
    }
    // What the head says of the whole, where it says so.
    let [.., a, b, c, d] = head[..8] else {
        unreachable!("eight bytes")
    };
    let told = 8 + u64::from(u32::from_le_bytes([a, b, c, d]));
    let (mut at, mut format, mut of_wide, mut empty) = (12u64, None, None, false);
    loop {
        let Some((id, size)) = chunk(file, at, length)? else {
            return Err(match empty {
                true => "holds no samples".into(),
                false => "has no chunk `data`".into(),
            });
        };
        let begin = at + 8;
        match &id {
            b"ds64" => {
                let mut sizes = [0; 16];
                file.read_exact(&mut sizes).map_err(failed)?;
                let [.., a, b, c, d, e, f, g, h] = sizes;
                of_wide = Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
            }
            b"fmt " => {
                let mut told = Vec::new();
                let part = file.take(u64::from(size).min(64));
                { part }.read_to_end(&mut told).map_err(failed)?;
                format = Some(of(&told)?);
            }
            b"data" => {
                let format = format.ok_or("has no chunk `fmt ` before its samples")?;
                let there = length - begin;
                let bytes = match of_wide {
                    Some(bytes) if wide && size == u32::MAX => bytes,
                    _ => size.into(),
                };
                // An empty one may stand before that of the samples.
                let next = named(file, begin, length)?;
                let follows =
                    |(id, size): ([u8; 4], u32)| &id == b"data" || fits(size, begin, length);
                if bytes == 0 && next.is_some_and(follows) {
                    (at, empty) = (begin, true);
                    continue;
                }
                let bytes = checked(format, bytes, there)?;
                // What lies behind the end that the head tells is no part of it.
                let is_told = !wide && told >= begin + bytes;
                let end = if is_told { length.min(told) } else { length };
                let mut next = behind(file, begin + bytes, end)?;
                while let Some((id, size)) = named(file, next, end)? {
                    if &id == b"data" && size > 0 {
                        return Err("has two chunks `data`: files with one are read".into());
                    }
                    next = behind(file, next + 8 + u64::from(size), end)?;
                }
                return Ok(SampleLocation {
                    format,
                    begin,
                    bytes,
                });
            }
            _ => {}
        }
        at = behind(file, begin + u64::from(size), length)?;
    }
}

/// Whether the data of a chunk of this size at a place end before this length.
fn fits(size: u32, at: u64, length: u64) -> bool {
    at + 8 + u64::from(size) <= length
}

/// Where the chunk begins that follows one with this end.
fn behind(file: &mut File, end: u64, length: u64) -> Result<u64, String> {
    let even = end + end % 2;
    // Some programs leave out the byte that makes a size even.
    Ok(
        match even > end && !is_name(file, even, length)? && is_name(file, end, length)? {
            true => end,
            false => even,
        },
    )
}

/// The name and the size of the chunk at a place.
fn chunk(file: &mut File, at: u64, length: u64) -> Result<Option<([u8; 4], u32)>, String> {
    if at.checked_add(8).is_none_or(|end| end > length) {
        return Ok(None);
    }
    let mut bytes = [0; 8];
    file.seek(SeekFrom::Start(at))
        .and_then(|_| file.read_exact(&mut bytes))
        .map_err(|e| e.to_string())?;
    let [a, b, c, d, e, f, g, h] = bytes;
    Ok(Some(([a, b, c, d], u32::from_le_bytes([e, f, g, h]))))
}

/// The chunk at a place, if one may begin there.
fn named(file: &mut File, at: u64, length: u64) -> Result<Option<([u8; 4], u32)>, String> {
    let is_name = |id: &[u8; 4]| id.iter().all(|byte| (b' '..=b'~').contains(byte));
    Ok(chunk(file, at, length)?.filter(|(id, _)| is_name(id)))
}

fn is_name(file: &mut File, at: u64, length: u64) -> Result<bool, String> {
    Ok(named(file, at, length)?.is_some())
}

fn of(told: &[u8]) -> Result<Format, String> {
    let word = |at: usize| -> Option<u16> {
        Some(u16::from_le_bytes([*told.get(at)?, *told.get(at + 1)?]))
    };
    let all = || Some((word(0)?, word(2)?, word(4)?, word(6)?, word(12)?, word(14)?));
    let (mut tag, channels, low, high, block, bits) =
        all().ok_or("has a chunk `fmt ` of too few bytes")?;
    if tag == EXTENSIBLE {
        let own = word(24).ok_or("has a chunk `fmt ` of too few bytes")?;
        if told.get(26..40) != Some(&OF_TAG) {
            return Err(format!("holds samples of an unknown type: {READ}"));
        }
        tag = own;
    }
    if channels == 0 {
        return Err("has 0 channels".into());
    }
    let needed = bits.div_ceil(8);
    let width = match block {
        // Valid bits are on top of their container.
        block if block % channels == 0 && block / channels >= needed => block / channels,
        0 => needed,
        _ if tag == INTEGERS || tag == FLOATS => {
            return Err(format!(
                "says {block} bytes for one sample of all channels, but {channels} channels of {bits} bits need {}",
                u32::from(channels) * u32::from(needed)
            ));
        }
        _ => needed,
    };
    let is_read = match tag {
        INTEGERS => (1..=4).contains(&width),
        FLOATS => [4, 8].contains(&width),
        A_LAW | MU_LAW => width == 1,
        _ => false,
    };
    if !is_read {
        let name = OTHERS.iter().find(|(other, _)| *other == tag);
        let what = match (tag, name) {
            (INTEGERS, _) => format!("integers of {bits} bits"),
            (FLOATS, _) => format!("floats of {bits} bits"),
            (_, Some((_, name))) => format!("samples packed by {name}"),
            (tag, None) => format!("samples of the format 0x{tag:04x}"),
        };
        return Err(format!("holds {what}: {READ}"));
    }
    if u32::from(channels) * u32::from(width) > u32::from(u16::MAX) {
        return Err(format!("has {channels} channels"));
    }
    Ok(Format {
        tag,
        channels,
        rate: u32::from(low) | u32::from(high) << 16,
        width,
    })
}

/// The bytes of the samples, if the file has them all and they are not too many.
fn checked(format: Format, bytes: u64, there: u64) -> Result<u64, String> {
    let block = u64::from(format.channels * format.width);
    // Who writes into a pipe cannot go back to put it in.
    let pipes = [0x7fff_0000..=0x8000_0000, 0xffff_0000..=u64::from(u32::MAX)];
    let unknown = bytes == 0 && there > 0
        || bytes > there && pipes.iter().any(|sizes| sizes.contains(&bytes));
    if unknown {
        return Err("its head lacks the length of the samples: if it was written to a pipe, it must be written to a file".into());
    }
    if bytes > there {
        return Err(format!(
            "ends after {there} of the {bytes} bytes of its samples"
        ));
    }
    if !bytes.is_multiple_of(block) {
        return Err(format!("ends within sample {}", bytes / block));
    }
    too_long(
        bytes / u64::from(format.width),
        format.channels.into(),
        format.rate,
    )?;
    Ok(bytes)
}
