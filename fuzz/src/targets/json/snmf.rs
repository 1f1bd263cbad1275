//! Models of signed data.

use nalgebra::dmatrix;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{
    CpState, Ding, DingState, Entries, Hyperparameters, Learner, Posterior, Prior, Rate,
    Replicates, Sharing, Signed, SignedCp, Snmf, SnmfState, SnmfVb, Statistics,
};

use super::{ASSERTS, Kind, go_on, one_line, read, run, seeds, text, whole};
use crate::Target;

pub(in crate::targets) const TARGET: Target = Target {
    name: "json_snmf",
    asserts: ASSERTS,
    seeds: || seeds(KINDS),
    run: |input| run(KINDS, input),
};

fn data() -> Signed<f64> {
    Signed::from_matrix(dmatrix![2.0, 4.0; -1.0, -2.0]).expect("good data")
}

fn state() -> SnmfState<f64> {
    SnmfState {
        plus: dmatrix![0.5; 0.125],
        minus: dmatrix![0.125; 0.25],
        activations: dmatrix![4.0, 8.0],
    }
}

fn posterior() -> Posterior<f64> {
    Posterior {
        plus: dmatrix![2.0; 1.0],
        minus: dmatrix![0.5; 0.5],
        shape: dmatrix![6.0, 3.0],
        rate: dmatrix![2.0, 1.0],
    }
}

fn prior() -> Prior {
    Prior {
        plus: Entries::Each(dmatrix![1.0; 2.0]),
        minus: Entries::All(0.5),
        shape: Entries::All(2.0),
        rate: Entries::All(0.5),
    }
}

fn hyper() -> Hyperparameters {
    Hyperparameters {
        alpha: vec![1.0],
        shape: vec![2.0],
        rate: vec![0.5],
    }
}

fn sharing() -> Sharing {
    Sharing::all(2, 1)
}

/// What `result` holds; its error is one line.
fn good<X, E: std::fmt::Display>(result: Result<X, E>) -> Option<X> {
    result.map_err(|e| one_line(&e)).ok()
}

const KINDS: &[Kind] = &[
    Kind {
        seed: || text(&(Replicates::One, state())),
        run: |input| {
            let (replicates, mut state) = read::<(Replicates, SnmfState<f64>)>(input)?;
            [&state.plus, &state.minus, &state.activations]
                .into_iter()
                .for_each(whole);
            let data = data();
            let builder = Snmf::builder(state.plus.ncols()).replicates(replicates);
            if let Some(snmf) = good(builder.build()) {
                go_on(&good(snmf.on(&data))?, &mut state);
            }
            Some(())
        },
    },
    Kind {
        seed: || text(&(prior(), posterior())),
        run: |input| {
            let (prior, mut state) = read::<(Prior, Posterior<f64>)>(input)?;
            [&state.plus, &state.minus, &state.shape, &state.rate]
                .into_iter()
                .for_each(whole);
            let data = data();
            good(state.divergence(&prior));
            let k = state.plus.ncols();
            if let Some(snmf) = good(Snmf::builder(k).prior(prior.weakened(0.5)).build()) {
                good(snmf.on::<f64>(&data).map(drop));
            }
            if let Some(vb) = good(SnmfVb::builder(k).prior(prior).build()) {
                go_on(&good(vb.on(&data))?, &mut state);
            }
            Some(())
        },
    },
    Kind {
        seed: || {
            let statistics = Statistics::of_prior(&sharing(), &hyper(), 2).expect("good values");
            text(&(sharing(), hyper(), statistics))
        },
        run: |input| {
            let (sharing, mut hyper, statistics) =
                read::<(Sharing, Hyperparameters, Statistics)>(input)?;
            good(hyper.check(&sharing));
            good(hyper.prior(&sharing));
            good(Statistics::of(&posterior(), &sharing));
            good(Statistics::of_known(&state(), &sharing));
            good(Statistics::of_prior(&sharing, &hyper, 2));
            good(hyper.improve(&sharing, &statistics));
            Some(())
        },
    },
    Kind {
        seed: || {
            let learner = Learner::new(sharing(), hyper(), Rate::AtLeast(0.25));
            let mut learner = learner.expect("good values").iterations(5);
            learner.learn_known(&state()).expect("good factors");
            text(&learner)
        },
        run: |input| {
            let mut learner = read::<Learner>(input)?.iterations(5);
            good(learner.prior());
            good(learner.learn_known(&state()));
            good(learner.learn(&posterior()));
            Some(())
        },
    },
    Kind {
        seed: || {
            let (data, cp) = (
                data(),
                SignedCp::new(1, Replicates::One).expect("a good model"),
            );
            let em = cp.on(&data, &[2]).expect("good data");
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            let state: CpState<f64> = em.random(&mut rng).expect("a start");
            text(&(Replicates::One, state))
        },
        run: |input| {
            let (replicates, mut state) = read::<(Replicates, CpState<f64>)>(input)?;
            [&state.plus, &state.minus]
                .into_iter()
                .chain(&state.factors)
                .for_each(whole);
            let (cp, data) = (good(SignedCp::new(state.plus.ncols(), replicates))?, data());
            go_on(&good(cp.on(&data, &[2]))?, &mut state);
            Some(())
        },
    },
    Kind {
        seed: || {
            text(&DingState {
                w: dmatrix![2.0; -1.0],
                h: dmatrix![1.0, 2.0],
            })
        },
        run: |input| {
            let mut state = read::<DingState<f64>>(input)?;
            [&state.w, &state.h].into_iter().for_each(whole);
            let (ding, data) = (
                good(Ding::new(state.w.ncols()))?,
                dmatrix![2.0, 4.0; -1.0, -2.0],
            );
            go_on(&good(ding.on(&data))?, &mut state);
            Some(())
        },
    },
];
