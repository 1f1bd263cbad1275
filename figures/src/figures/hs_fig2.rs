//! HS, figure 2: parts of images by four methods.

use nalgebra::DMatrix;

use super::hs_faces::{FREE, Images, OWN, Place, generate, read};
use super::hs_methods::{Components, METHODS, factorize};
use super::support::{largest, matrix_rows, rng, smallest};
use crate::Result;
use crate::plot::{Axis, Panel};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "hs_fig2",
    source: "[HS] figure 2",
    title: "Leading components of a cube of images, and what they add up to",
    criterion: "On generated images of seven parts (19 x 19 x 150, K = 20, 150 sweeps, the same starts for all) pNTF has, in the mean of eight \
                starts, the smallest relative squared error, the largest leading weight and the most exact zeros. Faces are shown as measured.",
    data: &[OWN[0], OWN[1], FREE],
    run,
    control: Some(control),
};

const SWEEPS: usize = 150;
const STARTS: u64 = 8;

/// Four leading components, then sums of the first 4, 8, 12, 16; a row for each method.
fn panels(fits: &[Components; 4]) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (name, fit) in METHODS.iter().zip(fits) {
        let picture = |j: usize| -> DMatrix<f64> {
            fit.factors[0].column(j) * fit.factors[1].column(j).transpose()
        };
        let axis = Axis::bare("", fit.factors[0].nrows());
        let show = |title: &str, m: &DMatrix<f64>| {
            Panel::density(title, &matrix_rows(m), &axis, &axis).picture()
        };
        panels.extend((0..4).map(|j| show(&format!("{name}, {}", j + 1), &picture(j))));
        panels.extend([4, 8, 12, 16].map(|q| {
            let zero = DMatrix::zeros(fit.factors[0].nrows(), fit.factors[1].nrows());
            let sum = (0..q).fold(zero, |sum, j| sum + picture(j) * fit.weights[j]);
            show(&format!("first {q}"), &sum)
        }));
    }
    panels
}

/// Error, leading weight and share of zeros of each method.
struct Figures {
    errors: [f64; 4],
    leading: [f64; 4],
    zeros: [f64; 4],
    files: Vec<String>,
}

/// Means over starts; the first one is drawn.
fn measure(context: &Context, name: &str, images: &Images, k: usize) -> Result<Figures> {
    let data = images.tensor()?;
    let mut means = [[0.0; 4]; 3];
    let mut drawn = None;
    for start in 0..STARTS {
        let fits = factorize(&data, k, SWEEPS, 1, context.start(start))?;
        for (method, fit) in fits.iter().enumerate() {
            let found = [fit.relative_error(&data)?, fit.weights[0], fit.zeros()];
            for (mean, x) in means.iter_mut().zip(found) {
                mean[method] += x / STARTS as f64;
            }
        }
        drawn.get_or_insert(fits);
    }
    let panels = drawn.iter().flat_map(panels).collect();
    let files = context.picture(name, 8, (210.0, 230.0), panels)?;
    let [errors, leading, zeros] = means;
    Ok(Figures {
        errors,
        leading,
        zeros,
        files,
    })
}

fn text(values: &[f64; 4]) -> String {
    let each: Vec<_> = METHODS
        .iter()
        .zip(values)
        .map(|(m, v)| format!("{m} {v:.4}"))
        .collect();
    each.join(", ")
}

/// Rows of generated images, the methods moved on by this number.
fn generated(context: &Context, moved: usize) -> Result<Vec<Entry>> {
    let images = generate(150, Place::Face, &mut rng(context.seed, 40));
    let mut found = measure(context, FIGURE.name, &images, 20)?;
    let data = Data::generated("150 images of seven parts, jitter 0.2, noise 0.25");
    for values in [&mut found.errors, &mut found.leading, &mut found.zeros] {
        values.rotate_left(moved);
    }
    let least = |values: &[f64; 4]| smallest(values[1..].iter().copied());
    let most = |values: &[f64; 4]| largest(values[1..].iter().copied());
    let row = |what: &str, value: f64, values: &[f64; 4]| {
        Entry::number(what, value, &data, &found.files).detail(text(values))
    };
    let Figures {
        errors,
        leading,
        zeros,
        ..
    } = &found;
    Ok(vec![
        row(
            "relative squared error: pNTF less the smallest of the others",
            errors[0] - least(errors),
            errors,
        )
        .below(0.0),
        row(
            "leading weight: pNTF less the largest of the others",
            leading[0] - most(leading),
            leading,
        )
        .above(0.0),
        row(
            "share of exact zeros: pNTF less the largest of the others",
            zeros[0] - most(zeros),
            zeros,
        )
        .above(0.0),
    ])
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let mut entries = generated(context, 0)?;
    if let Some((images, _, data)) = read(context)? {
        let faces = measure(context, "hs_fig2_faces", &images, 50)?;
        for (what, values) in [
            ("faces, K = 50: relative squared error", faces.errors),
            ("faces, K = 50: leading weight", faces.leading),
            ("faces, K = 50: share of exact zeros", faces.zeros),
        ] {
            entries.push(Entry::words(what, text(&values), &data, &faces.files));
        }
    }
    Ok(entries)
}

/// Another method taken for pNTF.
fn control(context: &Context) -> Result<Vec<Entry>> {
    generated(context, 1)
}
