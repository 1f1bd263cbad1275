//! Keys, and what is drawn from them, against the reference vectors.

use plca_dist::key::Key;
use plca_dist::random::{below, uniform};
use rand_chacha::rand_core::Rng;
use serde_json::Value;

fn whole(value: &Value) -> u64 {
    let text = value.as_str().map(str::to_string);
    text.unwrap_or_else(|| value.to_string()).parse().unwrap()
}

fn list(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(whole).collect()
}

#[test]
fn keys_match_the_reference() {
    let text = include_str!("../../../testdata/golden/selection/keys.json");
    let file: Value = serde_json::from_str(text).unwrap();
    let mut checked = [0, 0];
    for case in file["cases"].as_array().unwrap() {
        match case["kind"].as_str().unwrap() {
            "key" => {
                let key = Key::of(&list(&case["words"]));
                assert_eq!(key.word(), whole(&case["key"]), "{case}");
                for (n, value) in case["pick"].as_object().unwrap() {
                    assert_eq!(key.pick(n.parse().unwrap()), whole(value), "{case}");
                }
                let mut generator = key.generator();
                for word in list(&case["sequence"]) {
                    assert_eq!(generator.next_u64(), word, "{case}");
                }
                let mut generator = key.generator();
                for value in case["uniform"].as_array().unwrap() {
                    assert_eq!(Some(uniform(&mut generator)), value.as_f64(), "{case}");
                }
                let mut generator = key.generator();
                let (n, values) = (list(&case["below"]["n"]), list(&case["below"]["value"]));
                for (n, value) in n.into_iter().zip(values) {
                    assert_eq!(below(n, &mut generator), value, "{case}");
                }
                checked[0] += 1;
            }
            "groups" => {
                let words = [&case["seed"], &case["purpose"], &case["repeat"]].map(whole);
                let n = whole(&case["n"]) as usize;
                let whole =
                    |list: Vec<usize>| list.into_iter().map(|i| i as u64).collect::<Vec<_>>();
                let order = Key::of(&words).permutation(n);
                assert_eq!(whole(order), list(&case["permutation"]), "{case}");
                let groups = case["groups"].as_u64().unwrap() as usize;
                let group = Key::of(&words).groups(n, groups);
                assert_eq!(whole(group), list(&case["group_of"]), "{case}");
                checked[1] += 1;
            }
            other => panic!("unknown kind {other}"),
        }
    }
    assert!(checked[0] >= 8 && checked[1] >= 4, "{checked:?}");
}

/// Bytes are those of the words, and no group is more than one larger than another, also where there are more groups than places.
#[test]
fn generators_and_groups_keep_their_laws() {
    let key = Key::of(&[3, 1, 4]);
    let mut bytes = [0; 11];
    key.generator().fill_bytes(&mut bytes);
    let mut words = key.generator();
    let (first, second) = (
        words.next_u64().to_le_bytes(),
        words.next_u64().to_le_bytes(),
    );
    assert_eq!(bytes[..8], first);
    assert_eq!(bytes[8..], second[..3]);
    assert_eq!(
        u64::from(key.generator().next_u32()),
        key.generator().next_u64() >> 32
    );
    for n in 0..20 {
        for groups in 1..25 {
            let mut sizes = vec![0; groups];
            key.groups(n, groups)
                .into_iter()
                .for_each(|g| sizes[g] += 1);
            let longer = n % groups;
            assert!(sizes[..longer].iter().all(|&size| size == n / groups + 1));
            assert!(sizes[longer..].iter().all(|&size| size == n / groups));
        }
    }
}
