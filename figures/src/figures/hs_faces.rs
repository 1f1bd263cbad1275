//! Images of parts, generated or of faces, for figures 2 and 3 of HS.

use std::path::Path;

use plca_dist::random::{below, uniform};
use plca_tensor::{DenseTensor, Order};
use rand_chacha::ChaCha8Rng;

use crate::Result;
use crate::report::Data;
use crate::reproduce::Context;

/// Images of equal size, each column after column.
pub(super) struct Images {
    pub(super) side: usize,
    pub(super) pixels: Vec<Vec<f64>>,
}

/// Rows and columns of the seven parts, half open: brow, eyes, cheeks, nose, mouth.
const PARTS: [[usize; 4]; 7] = [
    [1, 4, 4, 15],
    [5, 8, 3, 8],
    [5, 8, 11, 16],
    [9, 13, 2, 6],
    [9, 13, 13, 17],
    [8, 13, 8, 11],
    [14, 16, 5, 14],
];
const SIDE: usize = 19;
const NOISE: f64 = 0.25;

/// Where parts lie.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Each at home, or with probability 0.2 a pixel beside.
    Face,
    /// Each displaced by up to two pixels along either axis.
    Displaced,
}

fn displacement(place: Place, rng: &mut ChaCha8Rng) -> [isize; 2] {
    match place {
        Place::Displaced => [0, 0].map(|_| below(5, rng) as isize - 2),
        Place::Face if uniform(rng) < 0.2 => {
            [[0, 1], [1, 0], [0, -1], [-1, 0]][below(4, rng) as usize]
        }
        Place::Face => [0, 0],
    }
}

/// `n` images of the parts, each of its own strength in `[0.2, 1.4]`, on noise.
pub(super) fn generate(n: usize, place: Place, rng: &mut ChaCha8Rng) -> Images {
    let image = |rng: &mut ChaCha8Rng| {
        let mut pixels: Vec<f64> = (0..SIDE * SIDE).map(|_| NOISE * uniform(rng)).collect();
        for [top, bottom, left, right] in PARTS {
            let strength = 0.2 + 1.2 * uniform(rng);
            let [down, across] = displacement(place, rng);
            for i in top..bottom {
                for j in left..right {
                    let inside = |x: usize, by| x.checked_add_signed(by).filter(|&x| x < SIDE);
                    if let (Some(i), Some(j)) = (inside(i, down), inside(j, across)) {
                        pixels[i + SIDE * j] += strength;
                    }
                }
            }
        }
        pixels
    };
    Images {
        side: SIDE,
        pixels: (0..n).map(|_| image(rng)).collect(),
    }
}

impl Images {
    /// Height x width x images.
    pub(super) fn tensor(&self) -> Result<DenseTensor<f64>> {
        let shape = vec![self.side, self.side, self.pixels.len()];
        let values = self.pixels.concat();
        Ok(DenseTensor::new(shape, values, Order::ColumnMajor)?)
    }

    pub(super) fn choose(&self, which: &[usize]) -> Self {
        Self {
            side: self.side,
            pixels: which.iter().map(|&i| self.pixels[i].clone()).collect(),
        }
    }
}

/// The free faces.
pub(super) const FREE: &str = "lfw_subset/lfw_subset.npy";
/// The paper's own, which are not: folders of faces and of others.
pub(super) const OWN: [&str; 2] = ["cbcl/train/face", "cbcl/train/non-face"];
/// As many of either as are taken.
const TAKEN: usize = 429;

/// The images of a folder, in the order of their names.
fn folder(path: &Path) -> Result<Images> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|e| e == "pgm"));
    files.sort();
    let pixels = files.iter().take(TAKEN).map(|file| {
        let image = pgm(&std::fs::read(file)?);
        let image = image.ok_or_else(|| format!("{}: not 19 x 19 pixels", file.display()))?;
        Ok(image)
    });
    Ok(Images {
        side: SIDE,
        pixels: pixels.collect::<Result<_>>()?,
    })
}

/// A binary grey picture of 19 x 19 pixels, column after column.
fn pgm(bytes: &[u8]) -> Option<Vec<f64>> {
    let (head, rows) = bytes.split_at_checked(bytes.len().checked_sub(SIDE * SIDE)?)?;
    let head = std::str::from_utf8(head).ok()?;
    // Lines of comment may stand between the numbers.
    let lines = head
        .lines()
        .map(|l| l.split('#').next().unwrap_or_default());
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    let pixel = |p: usize| f64::from(rows[(p % SIDE) * SIDE + p / SIDE]) / 255.0;
    (words == ["P5", "19", "19", "255"]).then(|| (0..SIDE * SIDE).map(pixel).collect())
}

/// The user's copy of the paper's faces, if there is one.
fn own(context: &Context) -> Result<Option<(Images, Images, Data)>> {
    let [Some(faces), Some(others)] = [context.path(OWN[0])?, context.path(OWN[1])?] else {
        return Ok(None);
    };
    let (faces, others) = (folder(&faces)?, folder(&others)?);
    let name = format!("cbcl, {} and {}", faces.pixels.len(), others.pixels.len());
    let all: Vec<f64> = faces
        .pixels
        .iter()
        .chain(&others.pixels)
        .flatten()
        .copied()
        .collect();
    Ok(Some((faces, others, Data::of_pixels(&name, &all))))
}

/// Faces and other pictures: the user's copy of the paper's, 19 x 19, or 100 faces and 100 pieces of background, 25 x 25; `None` without the
/// data.
pub(super) fn read(context: &Context) -> Result<Option<(Images, Images, Data)>> {
    if let Some(own) = own(context)? {
        return Ok(Some(own));
    }
    let Some((npy, data)) = context.file(FREE)? else {
        return Ok(None);
    };
    let (n, side) = (200, 25);
    let header = npy
        .get(8..10)
        .map_or(0, |b| 10 + usize::from(u16::from_le_bytes([b[0], b[1]])));
    let body = npy.get(header..).unwrap_or_default();
    if body.len() != 8 * n * side * side {
        return Err(format!("{FREE}: not {n} images of {side} x {side} doubles").into());
    }
    let (values, _) = body.as_chunks::<8>();
    let image = |at: usize| -> Vec<f64> {
        let rows = &values[at * side * side..][..side * side];
        // Stored row after row.
        let pixel = |p: usize| f64::from_le_bytes(rows[(p % side) * side + p / side]);
        (0..side * side).map(pixel).collect()
    };
    let half = |from: usize| Images {
        side,
        pixels: (from..from + n / 2).map(image).collect(),
    };
    Ok(Some((half(0), half(n / 2), data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_read_row_by_row_and_others_refused() {
        let mut file = b"P5\n# made by hand\n19 19\n255\n".to_vec();
        file.extend((0..361).map(|i| (i % 256) as u8));
        let pixels = pgm(&file).unwrap();
        // Second row, first column.
        assert_eq!(pixels[1], 19.0 / 255.0);
        assert_eq!(pixels[SIDE], 1.0 / 255.0);
        assert!(pgm(&file[..380]).is_none() && pgm(b"P5").is_none());
    }
}
