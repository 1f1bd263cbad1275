//! The command has the numbers of the libraries, to the last bit. The tests of these hold their numbers to the references.

use plca_em::{
    Anneal, Given, IndexMaps, Likelihood, Missing, Nmf, Plca, PlcaVb, Plsa, PlsaVb, Positions,
    Shifted, Support, Transformation, Transformed, Update,
};
use plca_fit::{Model, Solver, State, Stop, seed};
use plca_io::{ModelFile, load};
use plca_priors::PriorSpec;
use plca_tensor::{Data, DenseTensor, Order};
use pntf_l2::{Ntf, NtfUpdate, Pntf};
use skellam_snmf::{
    Ding, KMeans, Prior, Reach, Replicates, ShiftedSnmf, ShiftedSnmfVb, SignedCp, SignedCpVb, Snmf,
    SnmfVb,
};

use crate::Folder;

const HIDDEN: usize = 9;

fn counts() -> Vec<f64> {
    (0..24).map(|i| f64::from(1 + i * i % 7)).collect()
}

/// Counts, counts of which one is hidden, and numbers of either sign, as matrices and as a tensor.
struct Both {
    folder: Folder,
    data: Vec<(&'static str, DenseTensor<f64>)>,
}

impl Both {
    fn new() -> Self {
        let folder = Folder::new();
        let counts = counts();
        let mut gaps = counts.clone();
        gaps[HIDDEN] = f64::NAN;
        let signed: Vec<f64> = (0..24)
            .map(|i| f64::from((i * i * 7 + i) % 11) - 5.0)
            .collect();
        let all: [(_, &[usize], _); 5] = [
            ("v.npy", &[4, 6], counts.clone()),
            ("gaps.npy", &[4, 6], gaps),
            ("signed.npy", &[4, 6], signed.clone()),
            ("cube.npy", &[2, 3, 4], counts),
            ("either.npy", &[2, 3, 4], signed),
        ];
        let data = all.map(|(name, shape, values)| {
            folder.npy(name, shape, &values);
            (
                name,
                DenseTensor::masked(shape.to_vec(), values, Order::RowMajor).unwrap(),
            )
        });
        let data = data.into();
        Self { folder, data }
    }

    /// A fit by the command and one by the library, from the start that the command draws.
    fn have<M: Model<f64>>(&self, words: &str, model: M) {
        let folder = &self.folder;
        let file = words.split(' ').nth(1).unwrap();
        let data: &dyn Data<f64> = &self.data.iter().find(|(name, _)| *name == file).unwrap().1;
        let (start, _) = words.split_once(" --freeze").unwrap_or((words, ""));
        folder.ok(&format!(
            "fit {start} --rank 2 --seed 3 --max-iter 0 --output start.npz --quiet"
        ));
        let start: M::State = load(folder.path("start.npz")).unwrap();
        let told = folder.json(&format!(
            "fit {words} --init start.npz --solver em --tol 0 --max-iter 7 --output o.npz --quiet"
        ));
        let stop = Stop::default().tol(None).max_iter(7);
        let run = model.on(data).unwrap().solver(Solver::Em).stop(stop);
        let fit = run.run(&start, &mut seed(0)).unwrap();
        let expected = ModelFile::of(fit.state());
        let found = folder.model("o.npz").arrays;
        for (name, array) in &expected.arrays {
            assert_eq!(&found[name], array, "{words}: {name}");
        }
        assert_eq!(told["objective"], fit.objective(), "{words}");
        assert_eq!(told["iterations"], fit.iterations(), "{words}");
        // Beside a prior or a penalty the objective without it.
        let plain = ["log_likelihood", "squared_error", "kl_divergence"];
        let plain = plain.iter().find_map(|name| told[name].as_f64());
        let bound = model.bind(data).unwrap();
        let without = || bound.likelihood(fit.state().parameters()).unwrap();
        let beside = words.contains("--prior") || words.contains("--sparsity");
        let expected = (beside && !words.contains("-vb")).then(without);
        assert_eq!(plain, expected, "{words}");
        assert_ne!(start.parameters(), fit.state().parameters(), "{words}");
    }
}

/// The command reports the constants of flat priors too.
fn flat() -> Snmf {
    Snmf::new(2).priors(Prior::flat())
}

fn prior(text: &str) -> PriorSpec {
    text.parse().unwrap()
}

#[test]
#[rustfmt::skip]
fn distributions_and_rates() {
    let both = Both::new();
    both.have("plca v.npy", Plca::new(2));
    both.have("plca cube.npy", Plca::new(2));
    both.have("plca v.npy --temper .7", Plca::new(2).temper(0.7));
    let tempered = Plca::new(2).temper(0.7).temper_prior(true);
    both.have("plca v.npy --temper .7 --temper-prior --prior factor_0=dirichlet:1.5", tempered.prior("factor_0", prior("dirichlet:1.5")));
    both.have("plca gaps.npy --missing nan", Plca::new(2));
    both.have("plca gaps.npy --missing nan --missing-method multiplicative", Plca::new(2).missing(Missing::Multiplicative));
    both.have("plca v.npy --freeze factor_1:1", Plca::new(2).freeze_components("factor_1", [1]));
    both.have("plca v.npy --prior weights=entropic:.3", Plca::new(2).prior("weights", prior("entropic:.3")));
    both.have("plsa v.npy --given 0", Plsa::new(2).given(Given::Rows));
    both.have("plsa v.npy --given 1 --temper .7", Plsa::new(2).given(Given::Columns).temper(0.7));
    both.have("plsa v.npy --freeze basis", Plsa::new(2).freeze("basis"));
    let smooth = "neighbours:-.3r,exact";
    both.have(&format!("plsa v.npy --prior mixture={smooth}"), Plsa::new(2).prior("mixture", prior(smooth)));
    both.have("nmf-kl v.npy --update simultaneous", Nmf::new(2).update(Update::Simultaneous));
    both.have("nmf-kl v.npy --update sequential", Nmf::new(2).update(Update::Sequential));
    for (word, missing) in [
        ("multiplicative", Missing::Multiplicative),
        ("imputation", Missing::Imputation),
    ] {
        let line = format!("nmf-kl gaps.npy --missing nan --missing-method {word}");
        both.have(&line, Nmf::new(2).missing(missing));
    }
    both.have("nmf-kl v.npy --freeze w:1,h:0", Nmf::new(2).freeze_components("w", [1]).freeze_components("h", [0]));
    both.have("nmf-kl v.npy --prior w=rate:.5,.2", Nmf::new(2).prior("w", prior("rate:.5,.2")));
    both.have("plca-vb cube.npy --prior factor_1=dirichlet:.5", PlcaVb::new(2).prior("factor_1", prior("dirichlet:.5")));
    both.have("plsa-vb v.npy --given 0 --prior basis=dirichlet:.5", PlsaVb::new(2).given(Given::Rows).prior("basis", prior("dirichlet:.5")));
}

#[test]
#[rustfmt::skip]
fn kernels() {
    let both = Both::new();
    let kernel = || Shifted::new(2, vec![2, 3]);
    both.have("siplca v.npy --kernel 2x3", kernel());
    let supports = vec![Support::Full, Support::Same];
    both.have("siplca v.npy --kernel 2x3 --support full,same", kernel().supports(supports));
    let literal = kernel().likelihood(Likelihood::Literal);
    both.have("siplca v.npy --kernel 2x3 --likelihood literal --anneal .7,5", literal.anneal(Anneal { alpha0: 0.7, over: 5.0 }));
    both.have("siplca gaps.npy --missing nan --kernel 2x3 --freeze kernels", kernel().freeze("kernels"));
    let turns = Transformation::product(&[0.0, 90.0], &[1.0], true).unwrap();
    let maps = |positions| IndexMaps::placed(&turns, &[2, 2], &[4, 6], positions).unwrap();
    both.have("tiplca v.npy --kernel 2x2 --angles 0,90 --mirror", Transformed::new(2, maps(Positions::Valid)));
    both.have(
        "tiplca v.npy --kernel 2x2 --angles 0,90 --mirror --positions full --likelihood literal",
        Transformed::new(2, maps(Positions::Full)).likelihood(Likelihood::Literal),
    );
}

#[test]
#[rustfmt::skip]
fn models_of_signed_data() {
    let both = Both::new();
    for (word, m) in [
        ("1", Replicates::One),
        ("4", Replicates::Finite(4)),
        ("inf", Replicates::Limit),
    ] {
        let with = |words: &str| format!("{words} --replicates {word}");
        both.have(&with("skellam signed.npy"), flat().replicates(m));
        both.have(&with("skellam-vb signed.npy"), SnmfVb::new(2).replicates(m));
        both.have(&with("skellam-cp either.npy"), SignedCp::new(2).with_constants(true).replicates(m));
        both.have(&with("skellam-cp-vb either.npy"), SignedCpVb::new(2).replicates(m));
        both.have(&with("siskellam signed.npy --kernel 2x3"), ShiftedSnmf::new(2, vec![2, 3]).replicates(m));
        both.have(&with("siskellam-vb signed.npy --kernel 2x3"), ShiftedSnmfVb::new(2, vec![2, 3]).replicates(m));
    }
    let gamma = "gamma:1.5,.1";
    both.have(&format!("skellam signed.npy --floor .25 --prior activations={gamma}"), flat().floor(0.25).prior("activations", prior(gamma)));
    both.have("skellam signed.npy --freeze atoms", flat().freeze("atoms"));
    let modes = SignedCp::new(2)
        .with_constants(true)
        .signed_mode(2)
        .scale_mode(Some(0));
    both.have("skellam-cp either.npy --signed-mode 2 --scale-mode 0", modes);
    let modes = SignedCpVb::new(2).signed_mode(1).scale_mode(Some(2));
    both.have("skellam-cp-vb either.npy --signed-mode 1 --scale-mode 2", modes);
    both.have(
        "siskellam signed.npy --kernel 2x3 --support full,same --anneal .5,3",
        ShiftedSnmf::new(2, vec![2, 3])
            .reach(vec![Reach::Full, Reach::Same])
            .anneal(Anneal {
                alpha0: 0.5,
                over: 3.0,
            }),
    );
    both.have("snmf-ding signed.npy", Ding::new(2));
    both.have("kmeans signed.npy", KMeans::new(2));
}

#[test]
#[rustfmt::skip]
fn squared_error() {
    let both = Both::new();
    both.have("pntf v.npy", Pntf::new(2));
    both.have("pntf cube.npy --no-normalise", Pntf::new(2).normalise(false));
    both.have("pntf gaps.npy --missing nan", Pntf::new(2));
    both.have("pntf v.npy --sparsity factor_0=.01 --sparsity weights=.02", Pntf::new(2).sparsity("factor_0", 0.01).sparsity("weights", 0.02));
    let name = &both.folder.model("o.npz").metadata["objective_name"];
    assert_eq!(name, "penalised_squared_error");
    both.have("ntf-l2 cube.npy", Ntf::new(2));
    both.have("ntf-l2 v.npy --update hals --freeze factor_1", Ntf::new(2).update(NtfUpdate::Hals).freeze("factor_1"));
}

/// However the hidden cell is said: as NaN, by a mask, or in a list of hidden cells; and however the others are listed.
#[test]
fn every_way_to_hide_a_cell() {
    let folder = Both::new().folder;
    let mut mask = vec![1.0; 24];
    mask[HIDDEN] = 0.0;
    folder.npy("mask.npy", &[4, 6], &mask);
    folder.text("hidden.tns", "2 4 1\n");
    let counts = counts();
    let cell = |at: usize| format!("{} {} {}\n", at / 6 + 1, at % 6 + 1, counts[at]);
    folder.text("v.tns", &(0..24).map(cell).collect::<String>());
    let ways = [
        "gaps.npy --missing nan",
        "gaps.npy --mask mask.npy",
        "v.npy --mask mask.npy",
        "v.npy --mask hidden.tns",
        "v.tns --mask hidden.tns",
    ];
    for model in [
        "plca",
        "plsa",
        "nmf-kl",
        "siplca --kernel 2x3",
        "skellam",
        "skellam-vb",
        "pntf",
    ] {
        folder.ok(&format!(
            "fit {model} v.npy --rank 2 --max-iter 0 --output start.npz --quiet"
        ));
        let found = ways.map(|data| {
            let line =
                format!("fit {model} {data} --init start.npz --tol 0 --max-iter 7 --output o.npz");
            folder.json(&line)["objective"].as_f64().unwrap()
        });
        assert!(found.iter().all(|x| x.is_finite()));
        for (way, objective) in ways.iter().zip(found) {
            assert!(
                (objective - found[0]).abs() <= 1e-11 * found[0].abs(),
                "{model} {way}: {objective} {}",
                found[0]
            );
        }
    }
}
