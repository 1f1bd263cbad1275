//! The four sets of the clustering experiment: samples with known classes.

use nalgebra::DMatrix;
use plca_dist::random::{below, uniform};

use super::support::{normal, rng};
use crate::Result;
use crate::report::Data;
use crate::reproduce::Context;

/// Samples and their classes.
pub(super) struct Samples {
    pub(super) name: &'static str,
    /// `F x N`: a sample is a column.
    pub(super) values: DMatrix<f64>,
    pub(super) classes: Vec<usize>,
    pub(super) data: Data,
}

impl Samples {
    /// Number of classes.
    pub(super) fn k(&self) -> usize {
        self.classes.iter().max().map_or(0, |&c| c + 1)
    }
}

pub(super) const WAVE: &str = "waveform/waveform.data";
/// All of them.
pub(super) const FILES: [&str; 5] = [
    "ionosphere/ionosphere.data",
    WAVE,
    "segmentation/segmentation.data",
    "segmentation/segmentation.test",
    "shuttle/shuttle.tst",
];

/// Where a set is found, and how its lines look.
struct Source {
    name: &'static str,
    files: &'static [&'static str],
    attributes: usize,
    class_first: bool,
}

const SOURCES: [Source; 4] = [
    Source {
        name: "Ionosphere",
        files: &[FILES[0]],
        attributes: 34,
        class_first: false,
    },
    Source {
        name: "Wave",
        files: &[WAVE],
        attributes: 21,
        class_first: false,
    },
    Source {
        name: "Image",
        files: &[FILES[2], FILES[3]],
        attributes: 19,
        class_first: true,
    },
    Source {
        name: "Shuttle",
        files: &[FILES[4]],
        attributes: 9,
        class_first: false,
    },
];

/// Attributes one sample after another, and the names of the classes.
type Lines = (Vec<f64>, Vec<String>);

/// Whether a line is of a header: some copies have one that the publisher's file has not. No attribute of a sample is a word, and those of
/// the waveform data are not a list of whole numbers.
fn is_header(source: &Source, fields: &[&str]) -> bool {
    let class = if source.class_first {
        0
    } else {
        fields.len().saturating_sub(1)
    };
    let attributes = fields.iter().enumerate().filter(|(at, _)| *at != class);
    let mut attributes = attributes.map(|(_, field)| *field);
    let counted = (1..=source.attributes).map(|n| n.to_string());
    fields.len() < 2
        || attributes.clone().eq(counted)
        || attributes.all(|field| field.parse::<f64>().is_err())
}

/// Samples line by line, below the header if there is one.
fn parse(source: &Source, file: &str, text: &str, into: &mut Lines) -> Result<()> {
    let mut header = true;
    for (at, line) in text.lines().enumerate() {
        let mut fields: Vec<&str> = line
            .split([',', '\t', ' '])
            .filter(|f| !f.is_empty())
            .collect();
        header &= is_header(source, &fields);
        if header || fields.is_empty() {
            continue;
        }
        if fields.len() != source.attributes + 1 {
            let (got, wanted) = (fields.len(), source.attributes + 1);
            return Err(format!("{file}, line {}: {got} fields, not {wanted}", at + 1).into());
        }
        let class = fields.remove(if source.class_first {
            0
        } else {
            source.attributes
        });
        for field in fields {
            let value: f64 = (field.parse())
                .map_err(|_| format!("{file}, line {}: `{field}` is not a number", at + 1))?;
            into.0.push(value);
        }
        into.1.push(class.to_owned());
    }
    Ok(())
}

/// Numbers the classes as they come.
fn number(names: &[String]) -> Vec<usize> {
    let mut seen: Vec<&String> = Vec::new();
    let mut numbers = Vec::with_capacity(names.len());
    for name in names {
        let known = seen.iter().position(|s| *s == name);
        numbers.push(known.unwrap_or_else(|| {
            seen.push(name);
            seen.len() - 1
        }));
    }
    numbers
}

fn read(context: &Context, source: &Source) -> Result<Option<Samples>> {
    let mut lines = Lines::default();
    let mut data = None;
    for file in source.files {
        let Some((text, found)) = context.text(file)? else {
            return Ok(None);
        };
        parse(source, file, &text, &mut lines)?;
        data.get_or_insert(found);
    }
    let (values, names) = lines;
    let found = data.filter(|_| !names.is_empty());
    Ok(found.map(|data| Samples {
        name: source.name,
        values: DMatrix::from_vec(source.attributes, names.len(), values),
        classes: number(&names),
        data,
    }))
}

/// The waveform data by their formula: a random mixture of two of three triangles, and unit noise.
fn waveform(context: &Context) -> Samples {
    let n = context.size(5000, 1500);
    let mut draws = rng(context.seed, 50);
    // Base waves peak at 7, 15 and 11.
    let triangle = |peak: f64, i: usize| (6.0 - (i as f64 + 1.0 - peak).abs()).max(0.0);
    let pairs = [(7.0, 15.0), (7.0, 11.0), (15.0, 11.0)];
    let mut values = DMatrix::zeros(21, n);
    let mut classes = Vec::with_capacity(n);
    for mut sample in values.column_iter_mut() {
        let class = below(3, &mut draws) as usize;
        let (u, (a, b)) = (uniform(&mut draws), pairs[class]);
        for (i, x) in sample.iter_mut().enumerate() {
            *x = u * triangle(a, i) + (1.0 - u) * triangle(b, i) + normal(&mut draws);
        }
        classes.push(class);
    }
    Samples {
        name: "Wave",
        values,
        classes,
        data: Data::generated(&format!("waveform data by their formula, {n} samples")),
    }
}

/// The sets that are there; the waveform data always are.
pub(super) fn samples(context: &Context) -> Result<Vec<Samples>> {
    let mut all = Vec::new();
    for source in &SOURCES {
        match read(context, source)? {
            Some(samples) => all.push(samples),
            None if source.name == "Wave" => all.push(waveform(context)),
            None => {}
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source {
            attributes: 2,
            class_first: true,
            ..SOURCES[2]
        }
    }

    #[test]
    fn lines_of_either_kind_are_read_and_wrong_ones_named() {
        let source = source();
        let mut lines = Lines::default();
        let text = "B,1,-2.5\n\nA 3 4\nB\t5\t6\n";
        parse(&source, "f", text, &mut lines).unwrap();
        assert_eq!(lines.0, [1.0, -2.5, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(number(&lines.1), [0, 1, 0]);
        let error = parse(&source, "f", "B,3,2\nA,1\n", &mut lines).unwrap_err();
        assert_eq!(error.to_string(), "f, line 2: 2 fields, not 3");
        assert!(parse(&source, "f", "A,1,x\n", &mut lines).is_err());
        // A header stands above the samples alone.
        assert!(parse(&source, "f", "A,3,2\nA,x,y\n", &mut lines).is_err());
    }

    #[test]
    fn headers_are_passed_by() {
        for header in [
            "",
            "names\n",
            ";;; made by hand\n\nCLASS,X,Y\n\n",
            "class,1,2\n",
        ] {
            let mut lines = Lines::default();
            let text = format!("{header}B,1,2.5\nA,1,2\n");
            parse(&source(), "f", &text, &mut lines).unwrap();
            assert_eq!(lines.0, [1.0, 2.5, 1.0, 2.0], "{header}");
        }
    }
}
