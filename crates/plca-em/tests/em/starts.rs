//! Starts that are drawn.

use nalgebra::DMatrix;
use plca_em::Nmf;
use plca_fit::{Init, Model};
use plca_tensor::{DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// Entries of a factor of an NMF are uniform between half and one and a half times a level. The product of both levels is `mean / K`, so that `W H` has the mean
/// of the data; they are equal where they can be with the digits of `mean / K`, else that of `W` is twice that of `H`: of data in another unit, a power of
/// two, the start has the same digits.
#[test]
fn starts_of_nmf_have_the_mean_of_the_data() {
    let v = DMatrix::from_fn(40, 30, |i, j| ((i + 3 * j) % 7) as f64);
    let nmf = Nmf::builder(5).build().unwrap();
    let start = |v: &DMatrix<f64>| {
        let values = v.as_slice().to_vec();
        let data = DenseTensor::new(vec![40, 30], values, Order::ColumnMajor).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        nmf.init(&data, Init::default(), &mut rng).unwrap()
    };
    let one = start(&v);
    // `mean / K` is a number from 1 to 2 times 2^-1, 2^0, 2^1, 2^2: an even power has a root.
    for (unit, ratio, by) in [
        (1.0, 2.0, [1.0, 1.0]),
        (2.0, 1.0, [1.0, 2.0]),
        (4.0, 2.0, [2.0, 2.0]),
        (8.0, 1.0, [2.0, 4.0]),
    ] {
        let v = &v * unit;
        let start = start(&v);
        assert_eq!(
            [start.w(), start.h()],
            [&(one.w() * by[0]), &(one.h() * by[1])]
        );
        let level = (v.mean() / 5.0 * ratio).sqrt();
        for (block, level) in [(start.w(), level), (start.h(), level / ratio)] {
            let over = block / level;
            assert!(over.iter().all(|x| (0.5..1.5).contains(x)), "{over}");
            // Of 150 and more uniform draws on an interval of length 1.
            assert!((over.mean() - 1.0).abs() < 5.0 / (12.0 * over.len() as f64).sqrt());
            assert!(over.min() < 0.6 && over.max() > 1.4, "{over}");
        }
        let mean = (start.w() * start.h()).mean();
        assert!((mean / v.mean() - 1.0).abs() < 0.2, "{mean}");
    }
}
