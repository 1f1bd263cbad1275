//! A run that was interrupted, saved and resumed is the run that was not.

use std::fmt::Debug;

use plca_em::{
    Accelerate, Algorithm, NmfInit, PlcaInit, PlsaInit, Squarem, Stop,
    before::{Nmf, Plca, Plsa},
};
use plca_fit::laws::check_resumed;
use plca_tensor::strategies::tables;
use plca_tensor::{Order, Real};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde::{Serialize, de::DeserializeOwned};

/// From the JSON of what a checkpoint keeps after `cut` iterations.
fn resumes<A>(algorithm: &A, start: &A::State, stop: &Stop, cut: usize) -> Result<(), TestCaseError>
where
    A: Algorithm,
    A::State: Serialize + DeserializeOwned + PartialEq + Debug,
{
    check_resumed(algorithm, start, stop, cut, |saved| {
        serde_json::from_str(&serde_json::to_string(saved).unwrap()).unwrap()
    })?;
    Ok(())
}

fn both<A: Accelerate>(
    algorithm: A,
    start: &A::State,
    stop: &Stop,
    cut: usize,
) -> Result<(), TestCaseError>
where
    A::State: Serialize + DeserializeOwned + PartialEq + Debug,
{
    resumes(&algorithm, start, stop, cut)?;
    resumes(&Squarem(algorithm), start, stop, cut)
}

fn every_model<T: Real + Serialize + DeserializeOwned>(
    table: &plca_tensor::strategies::Table<T>,
    stop: &Stop,
    cut: usize,
) -> Result<(), TestCaseError> {
    let data = table.masked(Order::RowMajor).unwrap();
    let rng = || ChaCha8Rng::seed_from_u64(5);
    let plca = Plca::<T>::builder(2).build().unwrap();
    let start = plca.init(&data, &PlcaInit::default(), &mut rng()).unwrap();
    both(plca.on(&data).unwrap(), &start, stop, cut)?;
    let plsa = Plsa::<T>::builder(2).build().unwrap();
    let start = plsa.init(&data, &PlsaInit::default(), &mut rng()).unwrap();
    both(plsa.on(&data).unwrap(), &start, stop, cut)?;
    let nmf = Nmf::builder(2).build().unwrap();
    let start = nmf.init(&data, &NmfInit::default(), &mut rng()).unwrap();
    both(nmf.on(&data).unwrap(), &start, stop, cut)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Same bits, same trace, same end, wherever the cut and whatever ends the run.
    #[test]
    fn resumed_is_uninterrupted_f64(
        table in tables::<f64>(2..=2, 2..=5), check_every in 1..5usize, cut in 1..20usize,
        tol in prop_oneof![Just(0.0), Just(1e-3)],
    ) {
        every_model(&table, &Stop { max_iter: 20, tol, check_every, ..Stop::default() }, cut)?;
    }

    /// As for `f64`.
    #[test]
    fn resumed_is_uninterrupted_f32(table in tables::<f32>(2..=2, 2..=5), cut in 1..20usize) {
        every_model(&table, &Stop { max_iter: 20, tol: 0.0, check_every: 3, ..Stop::default() }, cut)?;
    }
}
