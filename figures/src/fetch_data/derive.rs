//! What figures read, made of archives: counts of words, a sheet of handwriting, a passage of music.

use std::io::{Cursor, Read as _};
use std::path::Path;

use flate2::read::GzDecoder;
use lewton::inside_ogg::OggStreamReader;
use plca_media::{Image, Sound, read_image, read_sound, write_image, write_wav};

use crate::{Result, files};

const COUNTS: &str = "ap.dat";
const COUNTS_SHA256: &str = "c9b946b6cdb2c6e876198ae227afb573df023db84fb53a9d2b31c0d59224fea1";

/// The counts of the archive of lda-c.
pub(super) fn counts(folder: &Path) -> Result<()> {
    let mut archive = Vec::new();
    GzDecoder::new(&std::fs::read(folder.join("ap.tgz"))?[..]).read_to_end(&mut archive)?;
    let counts = member(&archive, "ap/ap.dat").ok_or("ap.tgz: no ap/ap.dat")?;
    let got = files::sha256(counts);
    if got != COUNTS_SHA256 {
        return Err(format!("{COUNTS}: sha256 is {got}, expected {COUNTS_SHA256}").into());
    }
    files::write_atomic(&folder.join(COUNTS), counts)
}

/// Whether they are there and right.
pub(super) fn counts_present(folder: &Path) -> bool {
    super::content(&folder.join(COUNTS)).is_some_and(|b| files::sha256(&b) == COUNTS_SHA256)
}

/// A file of a tape archive: a block of 512 bytes with its name and, in octal digits, its size, then its bytes in whole blocks.
fn member<'a>(archive: &'a [u8], name: &str) -> Option<&'a [u8]> {
    const BLOCK: usize = 512;
    let mut rest = archive;
    loop {
        let (head, body) = rest.split_at_checked(BLOCK)?;
        let text = |from: usize, to: usize| {
            let text = std::str::from_utf8(&head[from..to]).ok()?;
            Some(text.trim_end_matches('\0').trim())
        };
        let size = usize::from_str_radix(text(124, 136)?, 8).ok()?;
        if text(0, 100)? == name {
            return body.get(..size);
        }
        rest = body.get(size.next_multiple_of(BLOCK)..)?;
    }
}

pub(super) const CHARACTERS: &str = "images_background_small1.zip";
pub(super) const SHEET: &str = "greek_composite_81x113.png";
pub(super) const PLACES: &str = "greek_composite_81x113.csv";
const SIZE: [usize; 2] = [81, 113];
/// Side of the square that a letter is drawn in.
const LETTER: usize = 15;
/// The characters of the Greek alphabet that are written: alpha, gamma, upsilon.
const GREEK: [usize; 3] = [1, 3, 20];
/// Upper left corner of every letter: the three characters by the first writer, then by the second, of six.
const CORNERS: [[usize; 2]; 18] = [
    [35, 50],
    [31, 7],
    [35, 96],
    [48, 35],
    [64, 68],
    [15, 83],
    [66, 53],
    [3, 19],
    [45, 77],
    [54, 7],
    [6, 48],
    [50, 51],
    [62, 94],
    [12, 67],
    [18, 23],
    [66, 25],
    [33, 34],
    [29, 67],
];

/// The sheet of handwriting: strokes of six writers, each letter on 15 x 15 pixels, at places drawn once. The same as the one that the stated
/// results were measured on, except for a grey level of 255 in 13 of its 9153 pixels.
pub(super) fn sheet(folder: &Path) -> Result<()> {
    let archive = std::fs::read(folder.join(CHARACTERS))?;
    let mut archive = zip::ZipArchive::new(Cursor::new(archive))?;
    let names = archive.file_names().map(|name| Ok(name?.into_owned()));
    let names: Vec<String> = names.collect::<Result<_>>()?;
    let unpacked = tempfile::tempdir()?;
    let mut sheet = Image {
        height: SIZE[0],
        width: SIZE[1],
        channels: 1,
        values: vec![0.0; SIZE[0] * SIZE[1]],
    };
    let mut table = String::from("class,greek_character,drawer,row,col\n");
    for (n, [row, column]) in CORNERS.into_iter().enumerate() {
        let (class, writer) = (n % 3, n / 3 + 1);
        let (start, end) = (
            format!("Greek/character{:02}/", GREEK[class]),
            format!("_{writer:02}.png"),
        );
        let name = names
            .iter()
            .find(|n| n.contains(&start) && n.ends_with(&end));
        let name = name.ok_or_else(|| format!("{CHARACTERS}: no {start}*{end}"))?;
        let mut drawing = Vec::new();
        archive.by_name(name)?.read_to_end(&mut drawing)?;
        // Pictures are read by their path.
        let path = unpacked.path().join("drawing.png");
        std::fs::write(&path, drawing)?;
        let letter = letter(&read_image(&path)?).ok_or_else(|| format!("{name}: no ink"))?;
        for (i, line) in letter.iter().enumerate() {
            let at = (row + i) * SIZE[1] + column;
            for (pixel, &level) in sheet.values[at..at + LETTER].iter_mut().zip(line) {
                *pixel = level as f64 / 255.0;
            }
        }
        table += &format!("{class},{},{writer},{row},{column}\n", GREEK[class]);
    }
    write_image(folder.join(SHEET), &sheet)?;
    files::write_atomic(&folder.join(PLACES), table.as_bytes())
}

/// Grey levels of a drawing: its ink in the middle of a square, averaged over areas, the most of it 255.
fn letter(drawing: &Image) -> Option<[[u64; LETTER]; LETTER]> {
    let ink = |i: usize, j: usize| drawing.values[i * drawing.width + j] < 0.5;
    let (height, width) = (drawing.height, drawing.width);
    let rows: Vec<usize> = (0..height)
        .filter(|&i| (0..width).any(|j| ink(i, j)))
        .collect();
    let columns: Vec<usize> = (0..width)
        .filter(|&j| (0..height).any(|i| ink(i, j)))
        .collect();
    let (top, left) = (*rows.first()?, *columns.first()?);
    let (tall, wide) = (rows.last()? + 1 - top, columns.last()? + 1 - left);
    let side = tall.max(wide);
    let (above, before) = ((side - tall) / 2, (side - wide) / 2);
    // Overlaps in fifteenths of a pixel of the drawing: sums are exact.
    let overlap = |cell: usize, pixel: usize| {
        let end = ((cell + 1) * side).min((pixel + 1) * LETTER);
        end.saturating_sub((cell * side).max(pixel * LETTER)) as u64
    };
    let mut sums = [[0; LETTER]; LETTER];
    for (i, line) in sums.iter_mut().enumerate() {
        for (j, sum) in line.iter_mut().enumerate() {
            for y in (0..tall).filter(|y| overlap(i, y + above) > 0) {
                for x in (0..wide).filter(|x| overlap(j, x + before) > 0) {
                    let area = overlap(i, y + above) * overlap(j, x + before);
                    *sum += if ink(top + y, left + x) { area } else { 0 };
                }
            }
        }
    }
    let most = *sums.iter().flatten().max()?;
    // The nearest level, of two the lower one.
    Some(sums.map(|line| line.map(|sum| (510 * sum + most - 1) / (2 * most))))
}

/// Whether both are there and can be read.
pub(super) fn sheet_present(folder: &Path) -> bool {
    let size = |image: Image| [image.height, image.width] == SIZE;
    read_image(folder.join(SHEET)).is_ok_and(size) && folder.join(PLACES).exists()
}

pub(super) const RAGTIME: &str = "pistachio_ragtime.hq.ogg";
pub(super) const PASSAGE: &str = "pistachio_ragtime_0-12s_mono.wav";
const SECONDS: usize = 12;

/// The first seconds of the music, the mean of its channels, to 16 bits. Decoders of Vorbis may differ by the last of these.
pub(super) fn passage(folder: &Path) -> Result<()> {
    let music = std::fs::read(folder.join(RAGTIME))?;
    let mut music = OggStreamReader::new(Cursor::new(music))?;
    let rate = music.ident_hdr.audio_sample_rate;
    let mut samples: Vec<f64> = Vec::new();
    while let Some(packet) = music.read_dec_packet_generic::<Vec<Vec<f32>>>()? {
        let [left, right] = &packet[..] else {
            return Err(format!("{RAGTIME}: {} channels, not 2", packet.len()).into());
        };
        let means = left
            .iter()
            .zip(right)
            .map(|(l, r)| f64::from((l + r) * 0.5));
        samples.extend(means.map(|x| (32767.0 * x).round() / 32768.0));
    }
    samples.truncate(SECONDS * rate as usize);
    Ok(write_wav(
        folder.join(PASSAGE),
        &Sound::mono(rate, samples),
    )?)
}

/// Whether it is there and long enough.
pub(super) fn passage_present(folder: &Path) -> bool {
    let long = |sound: Sound| sound.channels[0].len() == SECONDS * sound.rate as usize;
    read_sound(folder.join(PASSAGE)).is_ok_and(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_an_archive_are_found() {
        let mut archive = Vec::new();
        for (name, body) in [("ap", &b""[..]), ("ap/ap.dat", b"1 0:2\n"), ("z", b"last")] {
            let mut block = vec![0; 512];
            block[..name.len()].copy_from_slice(name.as_bytes());
            let size = format!("{:011o}", body.len());
            block[124..135].copy_from_slice(size.as_bytes());
            archive.extend(block);
            archive.extend(body);
            archive.resize(archive.len().next_multiple_of(512), 0);
        }
        assert_eq!(member(&archive, "ap/ap.dat"), Some(&b"1 0:2\n"[..]));
        assert_eq!(member(&archive, "z"), Some(&b"last"[..]));
        assert_eq!(member(&archive, "none"), None);
        assert_eq!(member(&archive[..1100], "z"), None);
    }

    #[test]
    fn a_letter_fills_its_square() {
        // A bar of 30 x 10 pixels of ink (0) on paper (1), anywhere.
        let values = (0..50 * 40).map(|p| {
            let (i, j) = (p / 40, p % 40);
            f64::from(u8::from(!((5..35).contains(&i) && (20..30).contains(&j))))
        });
        let drawing = Image {
            height: 50,
            width: 40,
            channels: 1,
            values: values.collect(),
        };
        let letter = letter(&drawing).unwrap();
        for line in letter {
            assert_eq!(
                line,
                [0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0]
            );
        }
        let blank = Image {
            values: vec![1.0; 2000],
            ..drawing
        };
        assert!(super::letter(&blank).is_none());
    }

    #[test]
    fn letters_do_not_overlap() {
        for (n, a) in CORNERS.iter().enumerate() {
            assert!(a[0] + LETTER <= SIZE[0] && a[1] + LETTER <= SIZE[1]);
            let apart = |b: &[usize; 2]| (0..2).any(|d| a[d].abs_diff(b[d]) >= LETTER);
            assert!(CORNERS[..n].iter().all(apart), "{a:?}");
        }
    }
}
