//! A storage of your own: a picture of bytes, a quarter of the memory of `f32`.

use plca_tensor::{Data, DataError, Mask, Real, Summary};

/// Rows and columns of bytes, in units of 1/255.
#[derive(Clone, Debug)]
pub struct Bytes {
    shape: [usize; 2],
    bytes: Vec<u8>,
    summary: Summary,
}

impl Bytes {
    /// A picture of so many rows and columns, row by row.
    ///
    /// # Errors
    ///
    /// [`DataError::Length`] for another number of bytes.
    pub fn new(shape: [usize; 2], bytes: Vec<u8>) -> Result<Self, DataError> {
        let cells = shape[0] * shape[1];
        if bytes.len() != cells {
            let (shape, got) = (shape.to_vec(), bytes.len());
            return Err(DataError::Length {
                shape,
                expected: cells,
                got,
            });
        }
        let summary = Summary::of(Mask::Complete, |each| {
            visit(shape, &bytes, each);
            Ok(())
        })?;
        Ok(Self {
            shape,
            bytes,
            summary,
        })
    }
}

fn visit([_, columns]: [usize; 2], bytes: &[u8], each: &mut dyn FnMut(&[usize], f64)) {
    for (at, &byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte > 0) {
        each(&[at / columns, at % columns], f64::from(byte) / 255.0);
    }
}

/// The E-step is the provided one. A kernel of your own overrides [`Data::e_step`].
impl<T: Real> Data<T> for Bytes {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        visit(self.shape, &self.bytes, each);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plca_tensor::laws::check;

    use super::*;

    /// Of 0, 50, 100, …, modulo 256.
    const SUM: f64 = 1508.0;

    #[test]
    fn it_obeys_the_laws() {
        let bytes = (0..12).map(|i| (i * 50 % 256) as u8).collect();
        let picture = Bytes::new([3, 4], bytes).unwrap();
        let total: f64 = Data::<f64>::total(&picture);
        assert!((total - SUM / 255.0).abs() < 1e-12);
        check::<f64>(&picture).unwrap();
        check::<f32>(&picture).unwrap();
    }

    #[test]
    fn another_number_of_bytes_is_refused() {
        assert!(Bytes::new([3, 4], vec![1; 11]).is_err());
    }
}
