//! Plain mutations, the same for the same words: what `cargo test` feeds to the targets.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{MAX_INPUT, Target};

/// Bytes at which formats turn: ends of ranges, digits, separators.
const TELLING: &[u8] = b"\0\x01\x7f\x80\xfe\xff0123456789-+.,:;eE()[]{}\"' \n\r\t#%";

/// A number below `n > 0`.
fn below(rng: &mut ChaCha8Rng, n: usize) -> usize {
    (rng.next_u64() % n as u64) as usize
}

/// A range of places of `bytes`, perhaps empty.
fn piece(rng: &mut ChaCha8Rng, bytes: &[u8]) -> std::ops::Range<usize> {
    let [a, b] = [0; 2].map(|_| below(rng, bytes.len() + 1));
    a.min(b)..a.max(b)
}

/// Changes an input in one place; `other` is a stock to take from.
fn change(rng: &mut ChaCha8Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = below(rng, bytes.len().max(1));
    let telling = TELLING[below(rng, TELLING.len())];
    match (below(rng, 16), bytes.get_mut(at)) {
        (0..5, Some(byte)) => *byte = telling,
        (5..8, Some(byte)) => *byte ^= 1 << below(rng, 8),
        (8, Some(byte)) => *byte = rng.next_u32() as u8,
        (9, Some(_)) => {
            bytes.remove(at);
        }
        (10, _) => bytes.truncate(at),
        (11, _) => drop(bytes.drain(piece(rng, bytes))),
        (12, _) => {
            let copy = bytes[piece(rng, bytes)].to_vec();
            bytes.splice(at..at, copy);
        }
        (13, _) => drop(bytes.splice(piece(rng, bytes), other[piece(rng, other)].to_vec())),
        _ => bytes.insert(at, telling),
    }
}

/// Inputs for a target, `count` of them, made from its seeds.
pub fn inputs(target: &Target, count: usize) -> impl Iterator<Item = Vec<u8>> {
    let seeds = target.seeds();
    let mut rng = ChaCha8Rng::seed_from_u64(count as u64);
    (0..count).map(move |_| {
        let [seed, other] = [0; 2].map(|_| below(&mut rng, seeds.len()));
        let mut input = seeds[seed].clone();
        // One place more often than several: more of the inputs stay what their format takes.
        let most = 1 + below(&mut rng, 4);
        for _ in 0..=below(&mut rng, most) {
            change(&mut rng, &mut input, &seeds[other]);
        }
        input.truncate(MAX_INPUT);
        input
    })
}
