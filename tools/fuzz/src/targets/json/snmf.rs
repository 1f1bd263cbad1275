//! Models of signed data.

use nalgebra::{dmatrix, dvector};
use plca_fit::{Checkpoint, Explained, FitError, Impossible, Model, Settings, State, Transform};
use plca_tensor::{DenseTensor, Order};
use skellam_snmf::{
    Ding, DingState, Entries, Factors, Hyperparameters, Learner, Posterior, Prior, Rate,
    Replicates, Sharing, SignedCp, SignedCpState, Snmf, SnmfState, SnmfVb, SnmfVbState, Statistics,
};

use super::{ASSERTS, Kind, one_line, read, resume, run, seeds, text, whole};
use crate::Target;

pub(in crate::targets) const TARGET: Target = Target {
    name: "json_snmf",
    asserts: ASSERTS,
    seeds: || seeds(KINDS),
    run: |input| run(KINDS, input),
};

fn data() -> DenseTensor<f64> {
    DenseTensor::new(vec![2, 2], vec![2.0, 4.0, -1.0, -2.0], Order::RowMajor).expect("good data")
}

fn factors() -> Factors<f64> {
    Factors {
        plus: dmatrix![0.5; 0.125],
        minus: dmatrix![0.125; 0.25],
        activations: dmatrix![4.0, 8.0],
    }
}

fn state() -> SnmfState<f64> {
    let Factors {
        plus,
        minus,
        activations,
    } = factors();
    SnmfState::new(&plus, &minus, activations).expect("a good state")
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

/// How data are explained, in few iterations.
fn how() -> Transform {
    let how = Transform::default().impossible(Impossible::Drop);
    let stop = how.stop.clone().max_iter(20);
    how.stop(stop)
}

/// A state that was read explains data and is a start.
fn use_state<M: Model<f64>>(
    model: Result<M, FitError>,
    state: &M::State,
    explained: impl FnOnce(&M) -> Result<Explained<M::State>, FitError>,
) -> Option<()> {
    state.parameters().matrices().iter().for_each(whole);
    let model = good(model)?;
    good(explained(&model));
    resume(
        Ok(model),
        &data(),
        &Checkpoint::new(state.parameters().clone()),
    )
}

const KINDS: &[Kind] = &[
    Kind {
        seed: || text(&(Replicates::One, state())),
        run: |input| {
            let (replicates, state) = read::<(Replicates, SnmfState<f64>)>(input)?;
            let snmf = Snmf::new(state.atoms().ncols()).replicates(replicates);
            use_state(snmf.checked(), &state, |snmf| {
                snmf.transform(&state, &data(), &how())
            })
        },
    },
    Kind {
        seed: || text(&(prior(), posterior())),
        run: |input| {
            let (prior, posterior) = read::<(Prior, Posterior<f64>)>(input)?;
            let Posterior {
                plus,
                minus,
                shape,
                rate,
            } = &posterior;
            [plus, minus, shape, rate].into_iter().for_each(whole);
            good(posterior.divergence(&prior));
            let k = plus.ncols();
            if let Some(snmf) = good(Snmf::new(k).priors(prior.weakened(0.5)).checked()) {
                good(snmf.on(&data()).map(drop));
            }
            let state = good(SnmfVbState::new(posterior))?;
            use_state(SnmfVb::new(k).priors(prior).checked(), &state, |vb| {
                vb.transform(&state, &data(), &how())
            })
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
            good(Statistics::of_known(&factors(), &sharing));
            good(Statistics::of_prior(&sharing, &hyper, 2));
            good(hyper.improve(&sharing, &statistics));
            Some(())
        },
    },
    Kind {
        seed: || {
            let learner = Learner::new(sharing(), hyper(), Rate::AtLeast(0.25));
            let mut learner = learner.expect("good values").iterations(5);
            learner.learn_known(&factors()).expect("good factors");
            text(&learner)
        },
        run: |input| {
            let mut learner = read::<Learner>(input)?.iterations(5);
            good(learner.prior());
            good(learner.learn_known(&factors()));
            good(learner.learn(&posterior()));
            Some(())
        },
    },
    Kind {
        seed: || {
            let Factors { plus, minus, .. } = factors();
            let factor = dmatrix![0.25; 0.75];
            let state = SignedCpState::new(&plus, &minus, &dvector![12.0], vec![factor], 0);
            text(&(Replicates::One, state.expect("a good state")))
        },
        run: |input| {
            let (replicates, state) = read::<(Replicates, SignedCpState<f64>)>(input)?;
            let cp = SignedCp::new(state.atoms().ncols()).replicates(replicates);
            let cp = cp.signed_mode(state.signed_mode());
            use_state(cp.checked(), &state, |cp| {
                cp.transform(&state, &data(), &how())
            })
        },
    },
    Kind {
        seed: || {
            let state = DingState::new(dmatrix![2.0; -1.0], dmatrix![1.0, 2.0]);
            text(&state.expect("a good state"))
        },
        run: |input| {
            let state = read::<DingState<f64>>(input)?;
            use_state(Ding::new(state.basis().ncols()).checked(), &state, |_| {
                state.transform(&data(), &how())
            })
        },
    },
];
