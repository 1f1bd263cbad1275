//! Picture files.

use std::io::{BufReader, Cursor, Write};
use std::path::Path;

use image::{DynamicImage, GrayImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};
use plca_io::write_atomically;

use crate::MediaError;
use crate::error::ending;

/// A picture: rows from top to bottom, in each the pixels from left to right, in each grey or red, green and blue in `[0, 1]`.
///
/// ```
/// let (height, width) = (1, 2);
/// let image = plca_media::Image { height, width, channels: 3, values: vec![1.0, 0.0, 0.0, 0.0, 0.0, 1.0] };
/// let (y, x) = (0, 1);
/// assert_eq!(image.values[(y * width + x) * 3..][..3], [0.0, 0.0, 1.0]);      // red, then blue
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Numbers per pixel: 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// `height x width x channels` numbers, row-major.
    pub values: Vec<f64>,
}

impl Image {
    /// A part of the picture: `height x width` pixels, the first of them in row `top` and column `left`.
    ///
    /// # Panics
    ///
    /// If it is not all within the picture.
    ///
    /// # Examples
    ///
    /// ```
    /// let image = plca_media::Image { height: 2, width: 3, channels: 1, values: vec![0.0, 0.1, 0.2, 0.3, 0.4, 0.5] };
    /// assert_eq!(image.cropped(0, 1, 2, 2).values, [0.1, 0.2, 0.4, 0.5]);
    /// ```
    pub fn cropped(&self, top: usize, left: usize, height: usize, width: usize) -> Self {
        assert!(
            top + height <= self.height && left + width <= self.width,
            "within the picture"
        );
        let row = |y: usize| {
            let first = (y * self.width + left) * self.channels;
            &self.values[first..first + width * self.channels]
        };
        Self {
            height,
            width,
            channels: self.channels,
            values: (top..top + height).flat_map(row).copied().collect(),
        }
    }

    /// The picture in another size: every new pixel is the mean over the area it covers.
    ///
    /// ```
    /// let image = plca_media::Image { height: 1, width: 3, channels: 1, values: vec![0.0, 0.6, 0.9] };
    /// let half = image.resized(1, 2);
    /// assert!((half.values[0] - 0.2).abs() < 1e-12 && (half.values[1] - 0.8).abs() < 1e-12);
    /// ```
    ///
    /// # Panics
    ///
    /// If the new height or width is 0.
    pub fn resized(&self, height: usize, width: usize) -> Self {
        assert!(height > 0 && width > 0, "a size");
        let (rows, columns) = (shares(self.height, height), shares(self.width, width));
        let mut values = Vec::with_capacity(height * width * self.channels);
        for row in &rows {
            for column in &columns {
                for channel in 0..self.channels {
                    let mut sum = 0.0;
                    for &(y, a) in row {
                        for &(x, b) in column {
                            sum +=
                                a * b * self.values[(y * self.width + x) * self.channels + channel];
                        }
                    }
                    values.push(sum);
                }
            }
        }
        Self {
            height,
            width,
            channels: self.channels,
            values,
        }
    }
}

/// For each of `to` equal parts of `from` cells, the cells and their shares of it.
fn shares(from: usize, to: usize) -> Vec<Vec<(usize, f64)>> {
    let step = from as f64 / to as f64;
    let part = |i: usize| {
        let (low, high) = (i as f64 * step, (i + 1) as f64 * step);
        let cells = low as usize..(high.ceil() as usize).min(from);
        let share = |c: usize| (high.min(c as f64 + 1.0) - low.max(c as f64)).max(0.0) / step;
        cells.map(|c| (c, share(c))).collect()
    };
    (0..to).map(part).collect()
}

/// Bytes of the decoded values: with all that decoding holds besides, less than 1 GiB.
const MAX_BYTES: u64 = 1 << 29;

/// Decoded bytes that a file of any length may claim, and those that it may for each of its own. Both formats end near 1000 to 1
/// where all pixels are alike.
const CLAIMED: [u64; 2] = [1 << 22, 2048];

/// Reads a `.png`, `.jpg`, `.jpeg`, `.tif` or `.tiff`: grey, or red, green and blue, full intensity as 1. An alpha channel is discarded. The
/// picture is turned as its EXIF orientation says.
///
/// # Errors
///
/// [`MediaError`]: another ending, a file that cannot be opened or decoded, more than 2^26 numbers, which take half a GiB, or more
/// than both 4 MiB of decoded bytes and 2048 times the file's own.
///
/// # Examples
///
/// ```
/// use plca_media::{Image, read_image, write_image};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("black-and-white.png");
/// let image = Image { height: 1, width: 2, channels: 1, values: vec![0.0, 1.0] };
/// write_image(&path, &image)?;
/// assert_eq!(read_image(&path)?, image);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_image(path: impl AsRef<Path>) -> Result<Image, MediaError> {
    image_of(path.as_ref())
}

fn image_of(path: &Path) -> Result<Image, MediaError> {
    let format = format(path)?;
    let fault = |e| MediaError::file(path, e);
    let file = plca_io::open_file(path)?;
    let metadata = file.metadata().map_err(|e| MediaError::file(path, e))?;
    let bytes = metadata.len();
    let mut reader = ImageReader::new(BufReader::new(file));
    reader.set_format(format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);
    let mut decoder = plca_io::guarded(|| reader.into_decoder()).map_err(fault)?;
    // As a camera that was turned says.
    let orientation = plca_io::guarded(|| decoder.orientation()).map_err(fault)?;
    let (width, height) = decoder.dimensions();
    let channels = if decoder.color_type().has_color() {
        3
    } else {
        1
    };
    // Two sizes of 32 bits cannot overflow here.
    let numbers = u64::from(width) * u64::from(height);
    if numbers > MAX_BYTES / (8 * channels) {
        let what = format!("{width} x {height} pixels are more than 2^26 numbers");
        return Err(MediaError::file(path, what));
    }
    let [any, each] = CLAIMED;
    let claimed = decoder.total_bytes();
    if claimed > bytes.saturating_mul(each).max(any) {
        let what = format!("{claimed} bytes of pixels are claimed by a file of {bytes} bytes");
        return Err(MediaError::file(path, what));
    }
    let mut image = plca_io::guarded(|| DynamicImage::from_decoder(decoder)).map_err(fault)?;
    image.apply_orientation(orientation);
    let (height, width) = (image.height() as usize, image.width() as usize);
    let (channels, values) = if image.color().has_color() {
        (3, image.into_rgb16().into_raw())
    } else {
        (1, image.into_luma16().into_raw())
    };
    Ok(Image {
        height,
        width,
        channels,
        values: values.iter().map(|&x| f64::from(x) / 65535.0).collect(),
    })
}

fn format(path: &Path) -> Result<ImageFormat, MediaError> {
    match &*ending(path) {
        "png" => Ok(ImageFormat::Png),
        "jpg" | "jpeg" => Ok(ImageFormat::Jpeg),
        "tif" | "tiff" => Ok(ImageFormat::Tiff),
        other => {
            let what = format!("`.{other}` is not one of .png, .jpg, .jpeg, .tif, .tiff");
            Err(MediaError::file(path, what))
        }
    }
}

/// Writes a picture with 8 bits per number, by its ending as for [`read_image`]. Values are clamped to `[0, 1]`.
///
/// # Errors
///
/// [`MediaError::File`]: another ending, another number of values or channels than the sizes say, a size that the format cannot
/// hold; [`MediaError::Io`] on a full disk. Nothing is left behind then.
///
/// # Examples
///
/// ```
/// use plca_media::{Image, read_image, write_image};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("grey.png");
/// write_image(&path, &Image { height: 1, width: 2, channels: 1, values: vec![0.5, 1.7] })?;
/// assert_eq!(read_image(&path)?.values, [128.0 / 255.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_image(path: impl AsRef<Path>, image: &Image) -> Result<(), MediaError> {
    write_picture(path.as_ref(), image)
}

fn write_picture(path: &Path, image: &Image) -> Result<(), MediaError> {
    let format = format(path)?;
    let bytes: Vec<u8> = (image.values.iter())
        .map(|x| (255.0 * x.clamp(0.0, 1.0)).round() as u8)
        .collect();
    let fault = |what: &str| MediaError::file(path, what);
    let size = |n: usize| u32::try_from(n).map_err(|e| MediaError::file(path, e));
    let (width, height) = (size(image.width)?, size(image.height)?);
    let picture = match image.channels {
        1 => GrayImage::from_raw(width, height, bytes).map(DynamicImage::from),
        3 => RgbImage::from_raw(width, height, bytes).map(DynamicImage::from),
        n => return Err(fault(&format!("{n} numbers per pixel are not 1 or 3"))),
    };
    let picture = picture.ok_or_else(|| fault("other sizes than values"))?;
    if width == 0 || height == 0 {
        return Err(fault("no pixels"));
    }
    let mut encoded = Cursor::new(Vec::new());
    picture
        .write_to(&mut encoded, format)
        .map_err(|e| MediaError::file(path, e))?;
    Ok(write_atomically(path, |file| {
        file.write_all(encoded.get_ref())
    })?)
}
