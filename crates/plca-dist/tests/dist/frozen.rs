//! Draws written down: the same words of a generator give them in every version.

use plca_dist::random::{Categorical, below, exponential, uniform};
use plca_dist::{Diffnomial, draw_poisson, thin};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(7)
}

/// Four draws, and the word that comes next: no draw takes another number of words than it did.
fn four<O>(draw: impl Fn(&mut ChaCha8Rng) -> O) -> ([O; 4], u64) {
    let mut rng = rng();
    let draws = std::array::from_fn(|_| draw(&mut rng));
    (draws, rng.next_u64())
}

/// The fifth word.
const FIFTH: u64 = 11_091_271_176_959_810_440;

#[test]
fn exact_draws_are_frozen() {
    let bits = [
        4_594_853_223_840_476_068,
        4_595_220_474_943_196_564,
        4_604_518_774_960_858_259,
        4_604_721_123_211_421_639,
    ];
    assert_eq!(four(|r| uniform(r).to_bits()), (bits, FIFTH));
    assert_eq!(four(|r| below(1000, r)), ([157, 167, 704, 726], FIFTH));
    // Half of the words belong to no number and are passed over.
    let draws = [
        1_455_412_108_784_804_317,
        5_545_635_588_479_905_220,
        766_088_916_913_282_125,
        7_833_316_323_856_188_735,
    ];
    let next = 6_723_176_373_152_622_797;
    assert_eq!(four(|r| below((1 << 63) + 1, r)), (draws, next));
    let law = Categorical::new(&[1.0, 0.0, 3.0, 0.5, 2.0, 3.5]).unwrap();
    assert_eq!(four(|r| law.sample(r)), ([0, 2, 5, 2], next));
}

/// To 1e-15, as the last bit of a logarithm is the platform's.
#[test]
fn exponential_draws_are_frozen() {
    let want = [
        1.846_451_604_585_882,
        1.783_854_618_416_203_6,
        0.350_584_772_400_611_75,
        0.319_184_715_241_602_4,
    ];
    let (got, next) = four(exponential);
    assert_eq!(next, FIFTH);
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= 1e-15 * want, "{got} {want}");
    }
}

/// By inversion, four words for four draws, and by rejection.
#[test]
fn counts_are_frozen() {
    let poisson = |rate| four(|r| draw_poisson(rate, r).unwrap());
    assert_eq!(poisson(3.5), ([2, 2, 4, 5], FIFTH));
    let after = 2_680_340_668_918_215_741;
    assert_eq!(
        poisson(1e6),
        ([999_579, 1_000_190, 1_002_055, 998_792], after)
    );
    let thinned = |n, keep| four(|r| thin(n, keep, r).unwrap());
    assert_eq!(thinned(20, 0.3), ([4, 4, 7, 7], FIFTH));
    let kept = [700_193, 699_913, 699_058, 700_554];
    assert_eq!(thinned(1_000_000, 0.7), (kept, after));

    // The sum of many draws by rejection, and the word after them: no decision on the way is another.
    let mut r = rng();
    let total: u64 = (0..10_000)
        .map(|_| draw_poisson(40.0, &mut r).unwrap())
        .sum();
    assert_eq!((total, r.next_u64()), (400_594, 4_931_328_994_328_681_294));

    let mut r = rng();
    let kept = [5, 40, 0, 100_000].map(|n| thin(n, 0.3, &mut r).unwrap());
    assert_eq!(kept, [0, 11, 0, 29_845]);
    assert_eq!(r.next_u64(), 1_397_692_197_528_535_196);

    let law = Diffnomial::replicated(-4, 2, &[1.0, 20.0], &[3.0, 0.5]).unwrap();
    let (mut plus, mut minus, mut r) = ([0; 4], [0; 4], rng());
    law.sample_into(&mut plus, &mut minus, &mut r).unwrap();
    assert_eq!((plus, minus), ([0, 6, 0, 8], [10, 1, 3, 4]));
    assert_eq!(r.next_u64(), 3_693_732_001_767_012_456);
}
