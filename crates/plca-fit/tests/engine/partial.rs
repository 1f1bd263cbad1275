//! Sums over shards: one order, whoever adds.

use plca_dist::random::{below, uniform};
use plca_fit::shards::{Merge, Node, Partial, PartialError};
use rand::Rng;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

#[derive(Clone, Debug, PartialEq)]
struct Sum(f64);

impl Merge for Sum {
    fn merge(&mut self, right: &Self) {
        self.0 += right.0;
    }
}

/// The tree's sum by its definition.
fn by_definition(values: &[f64], level: u32, place: usize) -> Option<f64> {
    let first = place << level;
    if first >= values.len() {
        return None;
    }
    if level == 0 {
        return Some(values[first]);
    }
    let left = by_definition(values, level - 1, 2 * place)?;
    let right = by_definition(values, level - 1, 2 * place + 1);
    Some(right.map_or(left, |right| left + right))
}

/// Values of many magnitudes and both signs, whose sum depends on the order.
fn values(count: usize, rng: &mut dyn Rng) -> Vec<f64> {
    let value = |rng: &mut dyn Rng| (uniform(rng) - 0.5) * 10f64.powi(below(30, rng) as i32 - 15);
    (0..count).map(|_| value(rng)).collect()
}

/// Joins two of them at random, until one is left.
fn joined(mut all: Vec<Partial<Sum>>, rng: &mut dyn Rng) -> Partial<Sum> {
    while all.len() > 1 {
        let one = all.swap_remove(below(all.len() as u64, rng) as usize);
        let other = below(all.len() as u64, rng) as usize;
        let both = all.swap_remove(other).join(one).expect("no shard twice");
        all.push(both);
    }
    all.pop().expect("one is left")
}

#[test]
fn every_order_of_joins_has_the_bits_of_the_tree() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut differs = 0;
    for round in 0..1000 {
        let shards = round % 200 + 1;
        let values = values(shards, &mut rng);
        let expected = by_definition(&values, 8, 0).unwrap();
        let leaf = |(shard, &x): (usize, &f64)| {
            Partial::leaf(shard as u32, shards as u32, Sum(x)).expect("a shard")
        };
        let leaves: Vec<_> = values.iter().enumerate().map(leaf).collect();
        let root = joined(leaves, &mut rng).root().unwrap();
        assert_eq!(root.0.to_bits(), expected.to_bits(), "{shards} shards");
        let in_order: f64 = values.iter().sum();
        differs += usize::from(in_order.to_bits() != expected.to_bits());
    }
    // Otherwise the order would not matter, and nothing was tested.
    assert!(differs > 500, "{differs}");
}

#[test]
fn ranges_have_few_open_nodes() {
    for shards in 1..=200u32 {
        let bound = 2 * (32 - shards.leading_zeros());
        for (first, end) in [(0, shards / 2), (shards / 3, shards), (1, shards)] {
            let mut partial = Partial::empty(shards);
            for shard in first..end {
                let leaf = Partial::leaf(shard, shards, Sum(1.0)).unwrap();
                partial = partial.join(leaf).unwrap();
                assert!(partial.nodes().count() as u32 <= bound, "{shards}");
            }
            let covered: u32 = partial
                .nodes()
                .map(|node| node.shards(shards).len() as u32)
                .sum();
            assert_eq!(covered, end.saturating_sub(first));
        }
    }
}

#[test]
fn what_is_counted_twice_or_missing_is_refused() {
    for shards in 1..=200u32 {
        let leaf = |shard| Partial::leaf(shard, shards, Sum(1.0)).unwrap();
        let all = |skip: Option<u32>| {
            let rest = (0..shards).filter(|&shard| Some(shard) != skip);
            rest.fold(Partial::empty(shards), |sum, shard| {
                sum.join(leaf(shard)).unwrap()
            })
        };
        for shard in [0, shards / 2, shards - 1] {
            let missing = PartialError::Missing { shard, shards };
            assert_eq!(all(Some(shard)).root(), Err(missing));
            let overlap = PartialError::Overlap { shard };
            assert_eq!(all(None).join(leaf(shard)).unwrap_err(), overlap);
        }
        let beyond = PartialError::Node {
            level: 0,
            place: shards,
            shards,
        };
        assert_eq!(Partial::leaf(shards, shards, Sum(1.0)).unwrap_err(), beyond);
        let other = Partial::leaf(0, shards + 1, Sum(1.0)).unwrap();
        let count = PartialError::Count {
            got: shards + 1,
            expected: shards,
        };
        assert_eq!(all(None).join(other).unwrap_err(), count);
    }
    assert_eq!(Node { level: 2, place: 1 }.shards(7), 4..7);
}

/// Nodes that are read from bytes may be at any level.
#[test]
fn a_level_above_every_tree_is_no_overflow() {
    for level in [31, 32, 63, 64, u32::MAX] {
        assert_eq!(Node { level, place: 0 }.shards(7), 0..7);
        for place in [1, u32::MAX] {
            assert!(Node { level, place }.shards(7).is_empty());
        }
    }
}
