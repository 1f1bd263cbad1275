//! Settings that no data could make valid, at every entry of every model.

use std::any::type_name;

use plca_em::{
    AnyModel, IndexMaps, Init, Model, Nmf, Online, OnlineState, Plca, PlcaVb, Plsa, PlsaVb,
    Settings, Shifted, StreamError, Streamed, Transform, Transformed,
};
use plca_fit::FitError;
use plca_fit::shards::{InProcess, OnShards, PassRequest, Seed, ShardId, Sharded};
use plca_tensor::{DenseTensor, Order, cut};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

const SEED: Seed = Seed { seed: 2, stream: 0 };

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(2)
}

fn data() -> DenseTensor<f64> {
    let values = (0..12).map(|n| f64::from(n * 5 % 7 + 1)).collect();
    DenseTensor::new(vec![3, 4], values, Order::RowMajor).unwrap()
}

/// What an entry says of a model without components.
fn refused<M, O>(entry: &str, _: &M, result: Result<O, FitError>) {
    let model = type_name::<M>();
    match result {
        Err(FitError::Setting {
            name: "components",
            value: 0.0,
            ..
        }) => {}
        Err(error) => panic!("{entry} of {model}: {error}"),
        Ok(_) => panic!("{entry} takes {model}"),
    }
}

fn on_data<M: Model<f64>>(none: &M) {
    let (data, any) = (data(), none as &dyn AnyModel<f64>);
    refused("check", none, none.check());
    refused("bind", none, none.bind(&data));
    refused("on", none, none.on(&data));
    refused("init", none, none.init(&data, Init::default(), &mut rng()));
    refused("fit", none, none.fit(&data, &mut rng()));
    refused("bind of any", none, any.bind(&data));
    refused("on of any", none, any.on(&data));
}

/// With states of a model with components, which are told from those of this one wherever they are looked at.
fn on_shards<M: Sharded<f64> + Model<f64>>(none: &M, some: &M) {
    let data = data();
    let shards = cut(&data, none.along(2), &[1, 4]).unwrap();
    refused("in process", none, InProcess::new(none, &shards));
    let on_shards = OnShards::new(none, &shards);
    refused("on shards", none, on_shards.on(&data));
    let model = none;
    let [none, some]: [&dyn Sharded<f64>; 2] = [none, some];
    let (survey, ask) = (some.survey(&data, 0).unwrap(), PassRequest::step(true));
    refused("whole", model, none.whole(&survey));
    refused("begin", model, none.begin(&survey, SEED));
    let mut shared = some.begin(&survey, SEED).unwrap();
    let place = ShardId {
        shard: 0,
        shards: 1,
        first: 0,
    };
    let local = none.begin_local(&data, place, &shared, SEED);
    refused("begin_local", model, local);
    let mut local = some.begin_local(&data, place, &shared, SEED).unwrap();
    let stats = none.e_step(&data, &mut local, &shared, ask);
    refused("e_step", model, stats);
    let stats = some.e_step(&data, &mut local, &shared, ask).unwrap();
    refused("objective", model, none.objective(&shared, &stats));
    refused("m_step", model, none.m_step(&mut shared, stats.clone()));
    some.m_step(&mut shared, stats).unwrap();
    refused("scale", model, none.scale(&data, &local, &shared));
    refused("gather", model, none.gather(&shared, &[local]));
}

fn in_batches<M: Streamed<f64> + Clone>(none: &M, some: &M) {
    let (batch, model) = (data(), none);
    let [none, some] = [none, some].map(|model| Online::new(model.clone()));
    let mut state: OnlineState<f64> = some.init(&[3], &mut rng()).unwrap();
    let (weights, factors) = (state.weights.clone(), state.factors.clone());
    let own = some.partial_fit(&mut state, &batch).unwrap().state;
    refused("check", model, none.check());
    refused("init", model, none.init(&[3], &mut rng()));
    refused("start", model, none.start(weights, factors));
    let before = state.clone();
    let learnt = none.partial_fit(&mut state, &batch);
    refused("partial_fit", model, learnt);
    let learnt = none.partial_fit_from(&mut state, &batch, &own);
    refused("partial_fit_from", model, learnt);
    for batches in [vec![], vec![Ok::<_, ()>(batch)]] {
        match none.fit_stream(&mut state, batches) {
            Err(StreamError::Batch { batch: 1, source }) => {
                refused::<_, ()>("fit_stream", model, Err(source));
            }
            other => panic!("fit_stream: {other:?}"),
        }
    }
    assert_eq!(state, before);
}

/// None panics either.
#[test]
fn no_entry_takes_a_model_without_components() {
    let maps = IndexMaps::new(12, 2, &[0, 1, 1, 2]).unwrap();
    let (plca, plsa, nmf) = (Plca::new, Plsa::new, Nmf::new);
    let (plca_vb, plsa_vb) = (PlcaVb::new, PlsaVb::new);
    let shifted = Shifted::new(0, vec![2, 2]);
    on_data(&plca(0));
    on_data(&plsa(0));
    on_data(&nmf(0));
    on_data(&plca_vb(0));
    on_data(&plsa_vb(0));
    on_data(&shifted);
    on_data(&Transformed::new(0, maps));
    on_shards(&plca(0), &plca(2));
    on_shards(&plsa(0), &plsa(2));
    on_shards(&nmf(0), &nmf(2));
    on_shards(&plca_vb(0), &plca_vb(2));
    on_shards(&plsa_vb(0), &plsa_vb(2));
    in_batches(&plca(0), &plca(2));
    in_batches(&plsa(0), &plsa(2));
    in_batches(&nmf(0), &nmf(2));
    in_batches(&plsa_vb(0), &plsa_vb(2));

    refused("geometry", &shifted, shifted.geometry(&[3, 4]));
    let (data, how) = (data(), Transform::default());
    let learnt = nmf(2).fit(&data, &mut rng()).unwrap().into_state();
    let found = nmf(0).transform(&learnt, &data, &how);
    refused("transform", &nmf(0), found);
    let learnt = plsa_vb(2).fit(&data, &mut rng()).unwrap().into_state();
    let found = plsa_vb(0).transform(&learnt, &data, &how);
    refused("transform", &plsa_vb(0), found);
    let learnt = plca_vb(2).fit(&data, &mut rng()).unwrap().into_state();
    let found = plca_vb(0).transform(&learnt, &data, &how);
    refused("transform", &plca_vb(0), found);
    let found = plca_vb(0).transform_each(&learnt, &data, &how);
    refused("transform_each", &plca_vb(0), found);
}
