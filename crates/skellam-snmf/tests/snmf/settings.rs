//! Wrong settings are refused by all that takes them.

use plca_fit::shards::{InProcess, Seed, Sharded};
use plca_tensor::{Data, DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{
    Ding, FitError, Init, KMeans, Model, Replicates, ShiftedSnmf, ShiftedSnmfVb, SignedCp,
    SignedCpVb, Snmf, SnmfVb, Stop, Transform, select_components,
};

type Errors = Vec<Option<FitError>>;

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0)
}

fn data() -> DenseTensor<f64> {
    DenseTensor::new(vec![2, 2], vec![2.0, 4.0, -1.0, -2.0], Order::RowMajor).unwrap()
}

/// What a model learns from the data.
fn learnt<M: Model<f64>>(model: &M) -> M::State {
    model.fit(&data(), &mut rng()).unwrap().into_state()
}

/// What is asked of every model, and what was found of others, ends with the error of the check.
fn refused<M: Model<f64>>(wrong: &M, others: Errors) {
    let (data, error) = (data(), wrong.check().unwrap_err());
    let of_all = [
        wrong.bind(&data).err(),
        wrong.on(&data).err(),
        wrong.fit(&data, &mut rng()).err(),
        wrong.init(&data, Init::default(), &mut rng()).err(),
    ];
    for found in of_all.into_iter().chain(others) {
        assert_eq!(found.as_ref(), Some(&error), "{wrong:?}");
    }
}

fn on_shards(wrong: &dyn Sharded<f64>, good: &dyn Sharded<f64>) -> Errors {
    let (data, seed) = (data(), Seed { seed: 0, stream: 0 });
    let survey = good.survey(&data, 0).unwrap();
    let shards: Vec<Box<dyn Data<f64>>> = vec![Box::new(data.clone())];
    vec![
        wrong.survey(&data, 0).err(),
        wrong.begin(&survey, seed).err(),
        wrong.bind_shard(&data, &[], &survey).err(),
        InProcess::new(wrong, &shards).err(),
    ]
}

#[test]
fn wrong_settings_are_refused_everywhere() {
    let (data, how, none) = (data(), Transform::default(), Replicates::Finite(0));

    let good = Snmf::new(1);
    let state = learnt(&good);
    let floor = good.clone().floor(-1.0);
    for wrong in [Snmf::new(0), good.clone().replicates(none), floor] {
        let mut others = on_shards(&wrong, &good);
        others.push(wrong.transform(&state, &data, &how).err());
        refused(&wrong, others);
    }

    let good = SnmfVb::new(1);
    let (means, state) = (state, learnt(&good));
    let part = good.clone().freeze("activations_rate");
    for wrong in [SnmfVb::new(0), good.clone().replicates(none), part] {
        let (stop, configure) = (Stop::default(), |_| wrong.clone());
        let mut others = on_shards(&wrong, &good);
        others.extend([
            wrong.transform(&state, &data, &how).err(),
            wrong.at_prior(&data, 0.0, &mut rng()).err(),
            wrong.at_means(&data, &means).err(),
            select_components(&data, [1], configure, 1, &stop, &mut rng()).err(),
        ]);
        refused(&wrong, others);
    }

    let good = SignedCp::new(1);
    let state = learnt(&good);
    for wrong in [SignedCp::new(0), good.replicates(none)] {
        let one = wrong.transform(&state, &data, &how).err();
        let each = wrong.transform_each(&state, &data, &how).err();
        refused(&wrong, vec![one, each]);
    }

    let good = SignedCpVb::new(1);
    let state = learnt(&good);
    for wrong in [SignedCpVb::new(0), good.replicates(none)] {
        let one = wrong.transform(&state, &data, &how).err();
        let each = wrong.transform_each(&state, &data, &how).err();
        refused(&wrong, vec![one, each]);
    }

    let shifted = |k| ShiftedSnmf::new(k, vec![2, 1]);
    let state = learnt(&shifted(1));
    for wrong in [shifted(0), shifted(1).replicates(none)] {
        refused(&wrong, vec![wrong.transform(&state, &data, &how).err()]);
    }

    let shifted = |k| ShiftedSnmfVb::new(k, vec![2, 1]);
    let state = learnt(&shifted(1));
    for wrong in [shifted(0), shifted(1).replicates(none)] {
        refused(&wrong, vec![wrong.transform(&state, &data, &how).err()]);
    }

    for wrong in [Ding::new(0), Ding::new(2).freeze_components("basis", [1])] {
        refused(&wrong, Vec::new());
    }
    refused(&KMeans::new(0), Vec::new());
}
