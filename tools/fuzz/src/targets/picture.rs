//! Pictures.

use std::io::Cursor;

use image::{ImageFormat, ImageReader};
use plca_media::{Image, read_image, write_image};

use super::one_line;
use crate::{Target, scratch};

const ASSERTS: &str =
    "errors are one line; there is a number in [0, 1] for every pixel and channel";

pub(super) const PNG: Target = Target {
    name: "png",
    asserts: ASSERTS,
    seeds: || pictures("seed.png"),
    run: |input| picture("input.png", ImageFormat::Png, input),
};

pub(super) const JPEG: Target = Target {
    name: "jpeg",
    asserts: ASSERTS,
    seeds: || pictures("seed.jpg"),
    run: |input| picture("input.jpg", ImageFormat::Jpeg, input),
};

fn pictures(name: &str) -> Vec<Vec<u8>> {
    let picture = |channels: usize| {
        let values = (0..6 * 9 * channels)
            .map(|i| (i % 17) as f64 / 16.0)
            .collect();
        let image = Image {
            height: 6,
            width: 9,
            channels,
            values,
        };
        scratch::written(name, |path| {
            write_image(path, &image).expect("a picture is written");
        })
    };
    vec![picture(1), picture(3)]
}

/// Bytes that are read: more of them may claim more pixels than [`MAX_MEMORY`](crate::MAX_MEMORY) holds.
const MAX_INPUT: usize = 2048;

fn picture(name: &str, format: ImageFormat, input: &[u8]) -> bool {
    let input = &input[..input.len().min(MAX_INPUT)];
    let header = ImageReader::with_format(Cursor::new(input), format).into_dimensions();
    match read_image(scratch::file(name, input)) {
        Ok(image) => {
            let Image {
                height,
                width,
                channels,
                values,
            } = image;
            assert_eq!(values.len(), height * width * channels);
            assert!(values.iter().all(|x| (0.0..=1.0).contains(x)));
            true
        }
        Err(e) => {
            one_line(&e);
            header.is_ok()
        }
    }
}
