//! Starts that are drawn.

use nalgebra::DMatrix;
use plca_em::Nmf;
use plca_fit::{Init, Model};
use plca_tensor::{DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// Entries of both factors of an NMF are uniform between half and one and a half times `√(mean / K)`, so that `W H` has the mean of
/// the data.
#[test]
fn starts_of_nmf_have_the_mean_of_the_data() {
    let v = DMatrix::from_fn(40, 30, |i, j| ((i + 3 * j) % 7) as f64);
    let data = DenseTensor::new(vec![40, 30], v.as_slice().to_vec(), Order::ColumnMajor).unwrap();
    let nmf = Nmf::builder(5).build().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let start = nmf.init(&data, Init::default(), &mut rng).unwrap();
    let scale = (v.mean() / 5.0).sqrt();
    for block in [start.w(), start.h()] {
        let over = block / scale;
        assert!(over.iter().all(|x| (0.5..1.5).contains(x)), "{over}");
        // Of 150 and more uniform draws on an interval of length 1.
        assert!((over.mean() - 1.0).abs() < 5.0 / (12.0 * over.len() as f64).sqrt());
        assert!(over.min() < 0.6 && over.max() > 1.4, "{over}");
    }
    let mean = (start.w() * start.h()).mean();
    assert!((mean / v.mean() - 1.0).abs() < 0.2, "{mean}");
}
