//! From a sound to a spectrogram, a model, and one sound per component.

use plca_dist::random::uniform;
use plca_media::{Sound, read_sound, write_wav};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::Folder;

/// Two tones in turn, in two channels.
fn tones(folder: &Folder) -> Sound {
    let tone = |n: usize| {
        let (low, high) = ((0.06 * n as f64).sin(), (0.7 * n as f64).sin());
        if (n / 1500).is_multiple_of(2) {
            0.4 * low
        } else {
            0.3 * high
        }
    };
    let left: Vec<f64> = (0..9000).map(tone).collect();
    let right = left.iter().map(|x| 0.5 * x).collect();
    let sound = Sound {
        rate: 8000,
        channels: vec![left, right],
    };
    write_wav(folder.path("s.wav"), &sound).unwrap();
    read_sound(folder.path("s.wav")).unwrap()
}

#[test]
fn components_add_up_to_the_sound() {
    let folder = Folder::new();
    let sound = tones(&folder);
    folder.ok("spectrogram s.wav --frame 256 --output v.npy");
    assert_eq!(
        folder.dense("v.npy").shape,
        [129, (9000usize + 192).div_ceil(64)]
    );
    for (n, options) in ["plca", "plsa", "nmf-kl", "siplca --kernel 129x3"]
        .iter()
        .enumerate()
    {
        let (model, extra) = options.split_once(' ').unwrap_or((options, ""));
        folder.ok(&format!(
            "fit {model} v.npy --rank 2 {extra} --max-iter 60 --output m.npz --quiet"
        ));
        folder.ok(&format!("separate m.npz s.wav --output parts_{n}"));
        let parts: Vec<Sound> = (0..2)
            .map(|z| read_sound(folder.path(&format!("parts_{n}/component_{z}.wav"))).unwrap())
            .collect();
        for c in 0..2 {
            let sum = parts[0].channels[c].iter().zip(&parts[1].channels[c]);
            for ((a, b), x) in sum.zip(&sound.channels[c]) {
                assert!(
                    (a + b - x).abs() < 1e-6,
                    "{model}: {a} + {b} instead of {x}"
                );
            }
        }
        if n == 0 {
            // Each component has one of the tones: in its half of the sound it is nearly all there is.
            let energy = |s: &Sound, at: usize| -> f64 {
                s.channels[0][at + 300..at + 1200]
                    .iter()
                    .map(|x| x * x)
                    .sum()
            };
            let share =
                |at: usize| energy(&parts[0], at) / (energy(&parts[0], at) + energy(&parts[1], at));
            let (first, second) = (share(0), share(1500));
            assert!((first - second).abs() > 0.98, "{first} {second}");
        }
    }
    // Again, over what is there.
    folder.ok("separate m.npz s.wav --output parts_0");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let folder = Folder::new();
    tones(&folder);
    folder.ok("spectrogram s.wav --frame 256 --hop 100 --output v.npy");
    folder.ok("fit plca v.npy --rank 2 --max-iter 3 --output m.npz --quiet");
    folder.refuses("1 | separate m.npz s.wav --output parts | s.wav | --hop");
    folder.ok("separate m.npz s.wav --hop 100 --output parts");
    std::fs::remove_dir_all(folder.path("parts")).unwrap();
    folder.refuses(
        "
            2 | separate m.npz s.wav --hop 0 --output parts | hop
            2 | spectrogram s.wav --frame 255 --output w.npy | frame
            1 | spectrogram s.mp3 --output w.npy | s.mp3
            1 | spectrogram no.wav --output w.npy | no.wav
            1 | spectrogram s.wav --output w.csv | w.csv
        ",
    );
    folder.text("t.wav", "not a sound");
    folder.refuses(
        "
            1 | separate m.npz t.wav --output parts | t.wav
            1 | separate m.npz s.wav --hop 100 --output s.wav | s.wav
        ",
    );
    folder.npy("c.npy", &[3, 3, 3], &[1.0; 27]);
    folder.ok("fit plca c.npy --rank 2 --max-iter 3 --output c.npz --quiet");
    folder.refuses("1 | separate c.npz s.wav --output parts | c.npz | [3, 3, 3]");
}

/// Spectra that fit the recordings of sources as closely as they can separate others worse than broader ones.
#[test]
fn spectra_of_sources_are_broader_than_their_recordings() {
    let folder = Folder::new();
    // Two noises, each behind its own resonances, which change from note to note.
    let mut draw = ChaCha8Rng::seed_from_u64(5);
    let mut source = |resonances: [f64; 4]| -> Vec<f64> {
        let mut played = Vec::new();
        for note in 0..24 {
            let (radius, angle) = (0.97, resonances[(note * 7 + note / 4) % 4]);
            let (mut one, mut two) = (0.0, 0.0);
            for n in 0..1600 {
                let noise = uniform(&mut draw) - 0.5;
                let x = noise + 2.0 * radius * f64::cos(angle) * one - radius * radius * two;
                (two, one) = (one, x);
                played.push(0.01 * x * f64::exp(-f64::from(n) / 700.0));
            }
        }
        played
    };
    let sources = [source([0.3, 0.55, 0.9, 1.6]), source([0.4, 0.7, 1.2, 2.0])];
    let write = |name: &str, samples: Vec<f64>| {
        let channels = vec![samples];
        let sound = Sound {
            rate: 8000,
            channels,
        };
        write_wav(folder.path(name), &sound).unwrap();
    };
    let half = sources[0].len() / 2;
    let mixture = sources[0][half..].iter().zip(&sources[1][half..]);
    write("mix.wav", mixture.map(|(a, b)| a + b).collect());
    for (name, source) in ["one", "two"].into_iter().zip(&sources) {
        write(&format!("{name}.wav"), source[..half].to_vec());
        folder.ok(&format!(
            "spectrogram {name}.wav --frame 256 --output {name}_S.npz"
        ));
        folder.ok(&format!(
            "fit nmf-kl {name}_S.npz --rank 12 --output {name}.npz --quiet"
        ));
    }
    // Signal to distortion, in decibels.
    let ratio = |options: &str| -> f64 {
        folder.ok(&format!(
            "separate one.npz two.npz mix.wav --output parts --quiet{options}"
        ));
        let of = |(name, source): (&str, &Vec<f64>)| {
            let found = read_sound(folder.path(&format!("parts/{name}.wav"))).unwrap();
            let pairs = source[half..].iter().zip(&found.channels[0]);
            let (power, error) = pairs.fold((0.0, 0.0), |(power, error), (a, b)| {
                (power + a * a, error + (a - b).powi(2))
            });
            10.0 * f64::log10(power / error)
        };
        ["one", "two"]
            .into_iter()
            .zip(&sources)
            .map(of)
            .sum::<f64>()
            / 2.0
    };
    let (default, sharp) = (ratio(""), ratio(" --temper 1"));
    assert!(
        default > sharp + 0.1,
        "{default} dB, {sharp} with the spectra as they are"
    );
    for wrong in ["0", "1.1", "nan", "-1"] {
        let line = format!("separate one.npz two.npz mix.wav --output no --temper {wrong}");
        folder.fails(2, &line, &["--temper"]);
    }
}

/// Two sources, each learnt alone, share a mixture of another length; one model alone explains a sound that it was not fitted to if asked.
#[test]
fn trained_sources_share_their_mixture() {
    let folder = Folder::new();
    let tone = |name: &str, frequency: f64, samples: usize| -> Vec<f64> {
        let wave = (0..samples).map(|n| 0.3 * (frequency * n as f64).sin());
        let channels = vec![wave.collect::<Vec<f64>>()];
        let sound = Sound {
            rate: 8000,
            channels,
        };
        write_wav(folder.path(name), &sound).unwrap();
        sound.channels[0].clone()
    };
    tone("low.wav", 0.06, 6000);
    tone("high.wav", 0.7, 6000);
    let (low, high) = (tone("a.wav", 0.06, 9000), tone("b.wav", 0.7, 9000));
    let mixture = low.iter().zip(&high).map(|(a, b)| a + b).collect();
    let mixture = Sound {
        rate: 8000,
        channels: vec![mixture],
    };
    write_wav(folder.path("mix.wav"), &mixture).unwrap();
    for (source, model) in [("low", "plca"), ("high", "nmf-kl")] {
        folder.ok(&format!(
            "spectrogram {source}.wav --frame 256 --output v.npy"
        ));
        folder.ok(&format!(
            "fit {model} v.npy --rank 2 --max-iter 30 --output {source}.npz --quiet"
        ));
    }
    folder.ok("separate low.npz high.npz mix.wav --output parts");
    let part = |name: &str| read_sound(folder.path(name)).unwrap().channels[0].clone();
    let near = |a: &[f64], b: &[f64]| {
        let inside = a.iter().zip(b).skip(300).take(8400);
        let (error, power) = inside.fold((0.0, 0.0), |(e, p), (a, b)| {
            (e + (a - b).powi(2), p + b * b)
        });
        error / power
    };
    assert!(near(&part("parts/low.wav"), &low) < 0.01);
    assert!(near(&part("parts/high.wav"), &high) < 0.01);
    assert!(near(&part("parts/high.wav"), &low) > 0.5);
    // The high tone in the low one's spectra: the components share it, and say nothing of its own spectrum.
    folder.refuses("1 | separate low.npz mix.wav --output alone | mix.wav | --explain");
    folder.ok("separate low.npz mix.wav --explain --output alone");
    let sum: Vec<f64> = (part("alone/component_0.wav").iter())
        .zip(&part("alone/component_1.wav"))
        .map(|(a, b)| a + b)
        .collect();
    assert!(near(&sum, &mixture.channels[0]) < 1e-9);
    // Spectrograms in .npz say of which sound they are.
    folder.ok("spectrogram low.wav --frame 256 --hop 100 --output w.npz");
    folder.ok("fit nmf-kl w.npz --rank 2 --max-iter 30 --output known.npz --quiet");
    folder.ok("spectrogram low.wav --frame 256 --hop 100 --output w.npy");
    folder.ok("fit nmf-kl w.npy --rank 2 --max-iter 30 --output plain.npz --quiet");
    let (known, plain) = (folder.model("known.npz"), folder.model("plain.npz"));
    assert_eq!(known.arrays, plain.arrays);
    let sound = serde_json::json!({ "rate": 8000, "frame": 256, "hop": 100 });
    assert_eq!(known.metadata["sound"], sound);
    assert!(plain.metadata["sound"].is_null());
    folder.ok("separate known.npz low.wav --output of_low");
    folder.refuses("1 | separate plain.npz low.wav --output of_plain | --hop");
    let fast = Sound {
        rate: 11025,
        ..mixture.clone()
    };
    write_wav(folder.path("fast.wav"), &fast).unwrap();
    folder.refuses("1 | separate high.npz known.npz fast.wav --output of_fast | fast.wav | 11025 | 8000 | known.npz");
    // One source is known, and what is besides is learnt.
    let explained =
        |line: &str| -> serde_json::Value { serde_json::from_str(&folder.ok(line)).unwrap() };
    let two = explained("separate low.npz mix.wav --others 2 --output rest --json");
    let one = explained("separate low.npz mix.wav --others 1 --seed 0 --output one --json");
    let other = explained("separate low.npz mix.wav --others 2 --seed 7 --output seven --json");
    let likelihood = |of: &serde_json::Value| of["log_likelihood"].as_f64().unwrap();
    assert!(likelihood(&two) > likelihood(&one));
    assert_ne!(likelihood(&two), likelihood(&other));
    assert_eq!(
        folder.ok("separate low.npz mix.wav --others 1 --output one --quiet"),
        ""
    );
    // Frequencies are named in Hz, frames by the second of their middles.
    folder.ok("export known.npz --array w --output known.csv");
    let frequencies = std::fs::read_to_string(folder.path("known.csv")).unwrap();
    assert!(
        frequencies.lines().nth(2).unwrap().starts_with("31.25,"),
        "{frequencies}"
    );
    folder.ok("export known.npz --array h --output known.csv");
    let frames = std::fs::read_to_string(folder.path("known.csv")).unwrap();
    assert!(
        frames.contains("-0.0035") && frames.contains("0.009"),
        "{frames}"
    );
    assert!(near(&part("rest/low.wav"), &low) < 0.01);
    assert!(near(&part("rest/others.wav"), &high) < 0.01);
    assert!(near(&part("rest/others.wav"), &low) > 0.5);
    folder.refuses("2 | separate mix.wav low.npz high.npz --output no | mix.wav | last");
    // Another sound of the same length is noticed.
    folder.ok("spectrogram a.wav --frame 256 --output v.npy");
    folder.ok("fit plca v.npy --rank 2 --max-iter 3 --output a.npz --quiet");
    let told = |line: &str| String::from_utf8(folder.run(line).stderr).unwrap();
    assert!(told("separate a.npz b.wav --output other").contains("--explain"));
    assert!(!told("separate a.npz a.wav --output own").contains("--explain"));
    let mut power = folder.dense("v.npy");
    power.values.iter_mut().for_each(|x| *x *= *x);
    folder.npy("p.npy", &power.shape, &power.values);
    folder.ok("fit plca p.npy --rank 2 --max-iter 3 --output p.npz --quiet");
    assert!(!told("separate p.npz a.wav --output own").contains("--explain"));
    folder.ok("fit siplca v.npy --rank 1 --kernel 129x2 --max-iter 2 --output s.npz --quiet");
    folder.refuses("1 | separate s.npz low.npz mix.wav --output no | s.npz | spectra | --explain");
    // Kernels of some frequencies are shifted by equal steps in Hz.
    let along = "kernels of 2 x 129 are shifted along the 129 frequencies";
    assert!(!told("separate s.npz a.wav --output own").contains("are shifted along"));
    folder.ok("fit siplca v.npy --rank 1 --kernel 2x129 --max-iter 2 --output t.npz --quiet");
    assert!(told("separate t.npz a.wav --output own").contains(along));
    folder.ok("spectrogram a.wav --frame 256 --output v.npz");
    assert!(
        told("fit siplca v.npz --rank 1 --kernel 2x129 --max-iter 2 --output t.npz")
            .contains(along)
    );
    assert!(
        !told("fit siplca v.npz --rank 1 --kernel 129x2 --max-iter 2 --output t.npz")
            .contains("shifted along")
    );
    let printed = folder.ok("spectrogram mix.wav --frame 256 --output u.npy");
    assert!(
        printed.starts_with("8000 Hz, 129 frequencies x "),
        "{printed}"
    );
    let opposite = vec![low.clone(), low.iter().map(|x| -x).collect()];
    let sound = Sound {
        rate: 8000,
        channels: opposite,
    };
    write_wav(folder.path("opposite.wav"), &sound).unwrap();
    assert!(told("spectrogram opposite.wav --output u.npy").contains("cancel"));
    assert!(!told("spectrogram mix.wav --output u.npy").contains("cancel"));
    folder.refuses("1 | separate low.npz opposite.wav --output no | opposite.wav | cancel");
    // Nearly, and channels that have nothing in common, or nothing in one of them.
    for (factor, cancels) in [
        (-0.9, true),
        (-0.99, true),
        (-0.45, true),
        (0.0, false),
        (-0.3, false),
        (1.0, false),
    ] {
        let channels = vec![low.clone(), low.iter().map(|x| x * factor).collect()];
        write_wav(
            folder.path("near.wav"),
            &Sound {
                rate: 8000,
                channels,
            },
        )
        .unwrap();
        for line in [
            "spectrogram near.wav --output u.npy",
            "separate low.npz near.wav --output near",
        ] {
            assert_eq!(told(line).contains("cancel"), cancels, "{line}, {factor}");
        }
    }
    folder.ok("spectrogram a.wav --frame 128 --output w.npy");
    folder.ok("fit plca w.npy --rank 2 --max-iter 3 --output w.npz --quiet");
    folder.refuses(
        "
            1 | separate low.npz w.npz mix.wav --output no | w.npz | --frame
            1 | separate low.npz low.npz mix.wav --output no | low.npz | two models
        ",
    );
}

/// Patterns that were learnt in one sound are found in another one, of another length and in another order. They share a tone, so that their spectra alone do not tell
/// them apart.
#[test]
fn patterns_are_found_in_another_sound() {
    let folder = Folder::new();
    let sum = |parts: &[&[f64]]| -> Vec<f64> {
        let all = |t: usize| parts.iter().map(|part| part[t]).sum();
        (0..parts[0].len()).map(all).collect()
    };
    let pattern = |tones: [f64; 2], from: usize, n: usize| -> Vec<f64> {
        let place = |t: usize| (t.checked_sub(from)? / 800 < 2).then(|| (t - from) / 800);
        let value = |t: usize| place(t).map_or(0.0, |at| (t as f64 * tones[at]).sin());
        (0..n).map(value).collect()
    };
    let rising = |from, n| pattern([0.06, 0.5], from, n);
    let highest = |from, n| pattern([0.5, 1.2], from, n);
    let written = |name: &str, samples: Vec<f64>| {
        write_wav(folder.path(name), &Sound::mono(8000, samples)).unwrap();
    };
    let n = 12000;
    let learnt = [
        (rising(800, n), highest(4000, n)),
        (rising(6400, n), highest(8800, n)),
    ];
    let learnt = learnt.each_ref().map(|(a, b)| sum(&[a, b]));
    written("a.wav", sum(&[&learnt[0], &learnt[1]]));
    let sources = [highest(1000, 9000), rising(5200, 9000)];
    written("b.wav", sum(&[&sources[0], &sources[1]]));
    folder.ok("spectrogram a.wav --frame 256 --output a.npy");
    folder.ok(
        "fit siplca a.npy --rank 2 --kernel 129x30 --prior impulses=entropic:.2r --seed 1 --restarts 3 --max-iter 300 --output s.npz --quiet",
    );
    folder.refuses("1 | separate s.npz b.wav --output no | b.wav | --explain");
    folder.ok("separate s.npz b.wav --explain --output parts");
    let part = |z: usize| read_sound(folder.path(&format!("parts/component_{z}.wav"))).unwrap();
    let parts = [part(0), part(1)].map(|sound| sound.channels[0].clone());
    for source in sources {
        let power: f64 = source.iter().map(|x| x * x).sum();
        let error = |part: &Vec<f64>| -> f64 {
            let pairs = part.iter().zip(&source);
            pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / power
        };
        let errors = parts.each_ref().map(error);
        assert!(
            errors[0].min(errors[1]) < 0.01 && errors[0].max(errors[1]) > 1.5,
            "{errors:?}"
        );
    }
}

#[test]
fn spectrograms_that_cannot_be_compared_are_refused() {
    let folder = Folder::new();
    let sound = tones(&folder);
    let faster = Sound {
        rate: 16000,
        ..sound
    };
    write_wav(folder.path("faster.wav"), &faster).unwrap();
    for (sound, options, output) in [
        ("s.wav", "--frame 256", "s.npz"),
        ("faster.wav", "--frame 256", "faster.npz"),
        ("s.wav", "--frame 256 --hop 32", "dense.npz"),
        ("s.wav", "--frame 128", "short.npz"),
    ] {
        folder.ok(&format!("spectrogram {sound} {options} --output {output}"));
    }
    folder.ok("fit nmf-kl s.npz --rank 2 --max-iter 60 --output m.npz --quiet");
    folder.ok("fit siplca s.npz --rank 2 --kernel 129x3 --max-iter 60 --output k.npz --quiet");
    let rate = "faster.npz: has 16000 samples a second, the sound of m.npz has 8000";
    folder.fails(1, "transform m.npz faster.npz --output o.npz", &[rate]);
    let fit = "fit nmf-kl faster.npz --init m.npz --freeze w --output o.npz";
    folder.refuses(&format!("
        1 | {fit} | {rate}
        1 | transform m.npz short.npz --output o.npz | short.npz: has frames of 128 samples, the sound of m.npz has 256 | --frame 256
    "));
    // Kernels are of frames, spectra are not.
    let hop =
        "has a frame every 32 samples, the sound of k.npz has one every 64: expected --hop 64";
    folder.ok("transform m.npz dense.npz --output o.npz --quiet");
    folder.refuses(&format!(
        "
            1 | transform k.npz dense.npz --output p.npz | dense.npz | {hop}
            1 | separate k.npz s.wav --explain --hop 32 --output parts | s.wav | {hop}
        "
    ));
}

#[test]
fn places_of_a_sound_are_seconds() {
    let folder = Folder::new();
    tones(&folder);
    folder.ok("spectrogram s.wav --frame 256 --output s.npz");
    folder.ok("fit nmf-kl s.npz --rank 2 --max-iter 60 --output m.npz --quiet");
    folder.ok("transform m.npz s.npz --output a.npz --quiet");
    // The middle of frame t is at second ((t + 1) 64 - 128) / 8000.
    for model in ["m.npz", "a.npz"] {
        folder.ok(&format!("export {model} --array h --output h.csv"));
        let text = std::fs::read_to_string(folder.path("h.csv")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("name,component_0"), "{}", lines[0]);
        assert!(lines[1].starts_with("-0.008,"), "{}", lines[1]);
        assert!(lines[12].starts_with("0.08,"), "{}", lines[12]);
    }
    for (domain, begin) in [("valid", "-0.008"), ("valid,full", "-0.024")] {
        folder.ok(&format!(
            "fit siplca s.npz --rank 2 --kernel 129x3 --support {domain} --max-iter 20 --output k.npz --quiet"
        ));
        folder.ok("export k.npz --array impulses --output i.csv");
        let text = std::fs::read_to_string(folder.path("i.csv")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("index_0,index_1,name_1,"),
            "{}",
            lines[0]
        );
        assert!(
            lines[1].starts_with(&format!("0,0,{begin},")),
            "{domain}: {}",
            lines[1]
        );
    }
    folder.ok("export k.npz --array kernels --output k.csv");
    let text = std::fs::read_to_string(folder.path("k.csv")).unwrap();
    // Row 1 is at 8000 / 256 Hz, column 2 begins two frames later.
    let line = text.lines().nth(6).unwrap();
    assert!(line.starts_with("1,2,31.25,0.016,"), "{line}");
    let shown = folder.ok("inspect k.npz --array impulses --top 1");
    let place = shown.split_whitespace().nth(1).unwrap();
    let second: f64 = place.strip_prefix("0,").unwrap().parse().unwrap();
    assert!(second.fract() != 0.0, "{shown}");
}

#[test]
fn a_start_that_is_zero_where_the_sound_is_not_says_so() {
    let folder = Folder::new();
    folder.text("v.csv", "1,2,3\n4,5,6\n");
    folder.arrays("t.npz", &[("w", &[2, 1], &[1.0, 0.0])]);
    folder.refuses("1 | fit nmf-kl v.csv --init t.npz --freeze w --output o.npz | v.csv: entry [1, 0] is 4, but the start in t.npz gives it the probability 0: add a small number");
}
