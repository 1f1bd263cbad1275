//! Plain mutations, the same for the same words: what `cargo test` feeds to the targets, and what campaigns do besides their own.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use crate::{MAX_INPUT, Target};

/// Bytes at which formats turn: ends of ranges, digits, separators.
const TELLING: &[u8] = b"\0\x01\x7f\x80\xfe\xff0123456789-+.,:;eE()[]{}\"' \n\r\t#%";

/// Numbers at which programs turn.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616",
    "0.5",
    "1e308",
    "1e309",
    "-1e-320",
    "5e-324",
];

/// A number below `n > 0`.
fn below(rng: &mut ChaCha8Rng, n: usize) -> usize {
    (rng.next_u64() % n as u64) as usize
}

/// A range of places of `bytes`, perhaps empty.
fn piece(rng: &mut ChaCha8Rng, bytes: &[u8]) -> std::ops::Range<usize> {
    let [a, b] = [0; 2].map(|_| below(rng, bytes.len() + 1));
    a.min(b)..a.max(b)
}

/// Gives a number of a text the value of another one, or one at which programs turn: syntax survives. Spaces keep the length where the
/// new number is shorter. Whether there was a number.
fn change_number(rng: &mut ChaCha8Rng, bytes: &mut Vec<u8>) -> bool {
    let part = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
    let mut numbers = Vec::new();
    let mut at = 0;
    for run in bytes.chunk_by(|a, b| part(a) == part(b)) {
        if part(&run[0]) && run.iter().any(u8::is_ascii_digit) {
            numbers.push(at..at + run.len());
        }
        at += run.len();
    }
    if numbers.is_empty() {
        return false;
    }
    let [place, other] = [0; 2].map(|_| numbers[below(rng, numbers.len())].clone());
    let mut new = if below(rng, 4) == 0 {
        bytes[other].to_vec()
    } else {
        NUMBERS[below(rng, NUMBERS.len())].as_bytes().to_vec()
    };
    new.resize(new.len().max(place.len()), b' ');
    bytes.splice(place, new);
    true
}

/// The input with a number changed, if it has one and the result is no longer than `max` bytes.
pub(crate) fn number(seed: u32, input: &[u8], max: usize) -> Option<Vec<u8>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed.into());
    let mut bytes = input.to_vec();
    let changed = change_number(&mut rng, &mut bytes);
    (changed && bytes.len() <= max).then_some(bytes)
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
        (13, _) => drop(change_number(rng, bytes)),
        (14, _) => drop(bytes.splice(piece(rng, bytes), other[piece(rng, other)].to_vec())),
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
