//! Every model obeys the laws of the kit: its E-step, value, exposures and steps, under every solver that takes it, in either precision, on
//! complete data and on data with hidden cells.

use plca::dist::random::{exponential, uniform};
use plca::em::{IndexMaps, Missing, Transformed, Update};
use plca::l2::NtfUpdate;
use plca::prelude::*;
use plca::priors::{Entropic, Schedule, Scheduled};
use plca::skellam::{Replicates, ShiftedSnmf, ShiftedSnmfVb, SignedCpVb};
use plca::tensor::strategies::Table;
use plca::{
    em::{PlcaVb, PlsaVb},
    l2::ColumnNmf,
    skellam::{Ding, KMeans, SnmfVb},
    tensor::Real,
};
use plca_fit::blocks::Frozen;
use plca_fit::laws::{Claims, Renewal, Rounding, check_model};

const SHAPE: [usize; 2] = [5, 4];
const COMPONENTS: usize = 2;

/// What kind of numbers the data are.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    /// Whole numbers, a third of them 0.
    Counts,
    /// The same of either sign.
    Signed,
}

/// A matrix of which nothing, or two cells are hidden.
fn table<T: Real>(numbers: Numbers, seed: u64) -> Table<T> {
    let mut rng = plca::seed(seed);
    let cells = SHAPE[0] * SHAPE[1];
    let mut values = Vec::new();
    for _ in 0..cells {
        let x = match uniform(&mut rng) {
            u if u < 0.33 => 0.0,
            _ => 1.0 + (4.0 * exponential(&mut rng)).floor(),
        };
        let sign = match numbers {
            Numbers::Signed if uniform(&mut rng) < 0.5 => -1.0,
            _ => 1.0,
        };
        values.push(T::lit(sign * x));
    }
    // Every row and column has a datum.
    for i in 0..SHAPE[0].max(SHAPE[1]) {
        let at = (i % SHAPE[0]) * SHAPE[1] + i % SHAPE[1];
        if values[at] == T::zero() {
            values[at] = T::one();
        }
    }
    let mut observed = vec![true; cells];
    observed[SHAPE[1] - 1] = false;
    observed[cells - 3] = false;
    Table {
        shape: SHAPE.to_vec(),
        values,
        observed,
    }
}

/// The data complete, and with hidden cells both ways.
fn storages<T: Real>(table: &Table<T>) -> Vec<(&'static str, Box<dyn Data<T>>)> {
    let whole = table.clone().unmasked();
    vec![
        ("dense", Box::new(whole.dense(Order::RowMajor).unwrap())),
        ("stored", Box::new(table.stored_only().unwrap())),
    ]
}

/// What is promised of a model, of which rounding is derived here.
#[derive(Clone, Copy)]
struct Promises {
    numbers: Numbers,
    renewal: Renewal,
    /// Of complete data, and of those with hidden cells.
    counts: [bool; 2],
    monotone: bool,
    /// What priors add to the size of the objective's terms.
    priors: f64,
}

const EM: Promises = Promises {
    numbers: Numbers::Counts,
    renewal: Renewal::Apart,
    counts: [true; 2],
    monotone: true,
    priors: 0.0,
};
const SIGNED: Promises = Promises {
    numbers: Numbers::Signed,
    ..EM
};

fn obeys<T: Real, M: Model<T>>(model: &M, promises: Promises)
where
    M::State: std::fmt::Debug,
{
    let mut broken = Vec::new();
    for seed in 0..2 {
        for (storage, data) in storages::<T>(&table(promises.numbers, seed)) {
            let algorithm = match model.bind(&*data) {
                Ok(algorithm) => algorithm,
                Err(error) => {
                    assert!(!data.is_complete(), "{storage}: {error}");
                    continue;
                }
            };
            // Frozen blocks are given.
            let mut rng = plca::seed(seed);
            let drawn = algorithm.blocks().iter();
            let drawn = drawn.filter(|spec| spec.frozen != Frozen::No);
            let init = drawn.fold(Init::default(), |init, spec| {
                init.block(spec.name.to_string(), spec.drawn(&mut rng))
            });
            let start = model.init(&*data, init, &mut rng).unwrap();
            let size = data.summary().absolute.max(algorithm.unit());
            let epsilon = T::EPSILON.to_f64();
            let depth = 4 * (COMPONENTS + 2 + SHAPE[0]);
            let claims = Claims {
                renewal: promises.renewal,
                counts: promises.counts[usize::from(!data.is_complete())],
                monotone: promises.monotone,
                ..Claims::new(Rounding::derived(
                    epsilon,
                    depth,
                    4.0 * size + promises.priors,
                ))
            };
            if let Err(violation) = check_model(model, &*data, &start, &claims) {
                broken.push(format!("{storage}, {seed}: {violation}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

macro_rules! table {
    ($($name:ident: $model:expr, $promises:expr;)*) => {
        $(
            #[test]
            fn $name() {
                fn of<T: Real>() {
                    obeys::<T, _>(&$model, $promises);
                }
                of::<f64>();
                of::<f32>();
            }
        )*
    };
}

/// A kernel of a column, which may be any column of the data.
fn maps() -> IndexMaps {
    let columns = 0..SHAPE[1];
    let table = columns.flat_map(|j| (0..SHAPE[0]).map(move |i| (i * SHAPE[1] + j) as i64));
    IndexMaps::new(SHAPE[0] * SHAPE[1], SHAPE[0], &table.collect::<Vec<_>>()).unwrap()
}

fn fading() -> Scheduled<Entropic> {
    let fading = Schedule::Decreasing { over: 9.0 };
    Scheduled::new(Entropic::new(0.5).unwrap(), fading).unwrap()
}

const TOGETHER: Renewal = Renewal::Together;

table! {
    plca: Plca::new(COMPONENTS), EM;
    plca_with_dirichlet: Plca::new(COMPONENTS).prior("factor_0", Dirichlet::symmetric(1.5).unwrap()), Promises { priors: 50.0, ..EM };
    plca_with_entropic: Plca::new(COMPONENTS).prior("factor_1", Entropic::new(2.0).unwrap()), Promises { priors: 50.0, ..EM };
    plca_with_fading: Plca::new(COMPONENTS).prior("factor_1", fading()), Promises { priors: 50.0, monotone: false, ..EM };
    plca_frozen: Plca::new(COMPONENTS).freeze("factor_0"), EM;
    plca_partly_frozen: Plca::new(COMPONENTS).freeze_components("weights", [1]).freeze_components("factor_1", [0]), EM;
    plca_tempered: Plca::new(COMPONENTS).temper(0.7), Promises { renewal: Renewal::Otherwise, monotone: false, ..EM };
    plca_multiplicative: Plca::new(COMPONENTS).missing(Missing::Multiplicative), Promises { renewal: TOGETHER, ..EM };
    plsa: Plsa::new(COMPONENTS), EM;
    nmf_simultaneous: Nmf::new(COMPONENTS).update(Update::Simultaneous), Promises { renewal: TOGETHER, counts: [true, false], ..EM };
    nmf_sequential: Nmf::new(COMPONENTS).update(Update::Sequential).missing(Missing::Multiplicative), Promises { renewal: Renewal::FirstToLast, counts: [true, false], ..EM };
    shifted: Shifted::new(COMPONENTS, vec![2, 2]), EM;
    transformed: Transformed::new(COMPONENTS, maps()), EM;
    plca_vb: PlcaVb::new(COMPONENTS), Promises { priors: 50.0, ..EM };
    plsa_vb: PlsaVb::new(COMPONENTS), Promises { priors: 50.0, ..EM };
    snmf: Snmf::new(COMPONENTS), SIGNED;
    snmf_one: Snmf::new(COMPONENTS).replicates(Replicates::One), SIGNED;
    snmf_three: Snmf::new(COMPONENTS).replicates(Replicates::Finite(3)), SIGNED;
    snmf_limit: Snmf::new(COMPONENTS).replicates(Replicates::Limit), SIGNED;
    snmf_vb: SnmfVb::new(COMPONENTS), Promises { priors: 50.0, ..SIGNED };
    signed_cp: SignedCp::new(COMPONENTS), SIGNED;
    signed_cp_scaled: SignedCp::new(COMPONENTS).scale_mode(Some(1)), SIGNED;
    signed_cp_vb: SignedCpVb::new(COMPONENTS), Promises { priors: 50.0, ..SIGNED };
    shifted_snmf: ShiftedSnmf::new(COMPONENTS, vec![2, 2]), SIGNED;
    shifted_snmf_vb: ShiftedSnmfVb::new(COMPONENTS, vec![2, 2]), Promises { priors: 50.0, ..SIGNED };
    ding: Ding::new(COMPONENTS), Promises { renewal: Renewal::LastToFirst, ..SIGNED };
    kmeans: KMeans::new(COMPONENTS), Promises { renewal: Renewal::FirstToLast, ..SIGNED };
    pntf: Pntf::new(COMPONENTS), Promises { renewal: TOGETHER, ..EM };
    ntf_hals: Ntf::new(COMPONENTS).update(NtfUpdate::Hals), Promises { renewal: Renewal::FirstToLast, ..EM };
    ntf_multiplicative: Ntf::new(COMPONENTS).update(NtfUpdate::Multiplicative), Promises { renewal: Renewal::FirstToLast, ..EM };
    column_nmf: ColumnNmf::new(COMPONENTS), Promises { renewal: Renewal::FirstToLast, ..EM };
}
