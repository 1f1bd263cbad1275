//! The best of several starts is the best of the runs from each, and a start that is given is not made worse.

use plca::fit::laws::{Rounding, check_starts, never_worse};
use plca::prelude::*;
use plca::{fit::Run, tensor::Real};
use proptest::prelude::*;

use super::models::*;
use super::problem::{Problem, problems};
use super::table::{StateOf, Subject, data_of, few, fitted, holds, in_one_thread, relative, stop};

fn starts<M: Subject, T: Real>(problem: &Problem) -> Result<(), TestCaseError> {
    let (data, cells) = data_of::<T>(problem, M::unit(problem))?;
    type Ran<S> = Result<Fit<S>, FitError>;
    let several = |mut run: Run<'_, StateOf<M, T>>| -> Ran<_> {
        run = run.stop(stop(problem)).restarts(problem.starts);
        run.run(M::init::<T>(problem), &mut plca::seed(problem.seed))
    };
    let best = fitted::<M, T, _>(problem, &*data, several)?;
    // One generator for all of them.
    let mut rng = plca::seed(problem.seed);
    let mut single = Vec::new();
    for _ in 0..problem.starts {
        let before = rng.clone();
        let one = |run: Run<'_, StateOf<M, T>>| {
            let mut own = before.clone();
            let fit = run
                .stop(stop(problem))
                .run(M::init::<T>(problem), &mut own)?;
            Ok((fit, own))
        };
        let (fit, after) = fitted::<M, T, _>(problem, &*data, one)?;
        single.push(fit);
        rng = after;
    }
    let model = M::model::<T>(problem).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let sense = model.bind(&*data).map(|bound| bound.sense());
    let sense = sense.map_err(|e| TestCaseError::fail(e.to_string()))?;
    holds(check_starts(sense, &single, &best))?;
    // The last start, though the best may be another.
    let given = &single[single.len() - 1];
    let again = |run: Run<'_, StateOf<M, T>>| -> Ran<_> {
        let run = run.stop(stop(problem));
        run.run(given.state(), &mut plca::seed(problem.seed))
    };
    let again = fitted::<M, T, _>(problem, &*data, again)?;
    if !M::monotone(problem) {
        return Ok(());
    }
    let value = |fit: &Fit<StateOf<M, T>>| {
        let terms = M::define(problem, &cells, &fit.state().parameters().widened());
        let rounding = Rounding {
            relative: 0.0,
            absolute: relative::<T>() * terms.size(),
        };
        (terms.sum(), rounding)
    };
    let values = [value(given), value(&again)];
    holds(never_worse(sense, &values))
}

fn of<M: Subject>(problem: &Problem) -> Result<(), TestCaseError> {
    in_one_thread(|| match problem.single {
        true => starts::<M, f32>(problem),
        false => starts::<M, f64>(problem),
    })
}

proptest! {
    #![proptest_config(few(12))]

    #[test]
    fn plca(problem in problems(Plcas::kind())) {
        of::<Plcas>(&problem)?;
    }

    #[test]
    fn plsa(problem in problems(Plsas::kind())) {
        of::<Plsas>(&problem)?;
    }

    #[test]
    fn nmf_kl(problem in problems(Nmfs::kind())) {
        of::<Nmfs>(&problem)?;
    }

    #[test]
    fn siplca(problem in problems(Siplcas::kind())) {
        of::<Siplcas>(&problem)?;
    }

    #[test]
    fn tiplca(problem in problems(Tiplcas::kind())) {
        of::<Tiplcas>(&problem)?;
    }

    #[test]
    fn plca_vb(problem in problems(PlcaVbs::kind())) {
        of::<PlcaVbs>(&problem)?;
    }

    #[test]
    fn plsa_vb(problem in problems(PlsaVbs::kind())) {
        of::<PlsaVbs>(&problem)?;
    }

    #[test]
    fn pntf(problem in problems(Pntfs::kind())) {
        of::<Pntfs>(&problem)?;
    }

    #[test]
    fn ntf_l2(problem in problems(Ntfs::kind())) {
        of::<Ntfs>(&problem)?;
    }

    #[test]
    fn skellam(problem in problems(Snmfs::kind())) {
        of::<Snmfs>(&problem)?;
    }

    #[test]
    fn skellam_vb(problem in problems(SnmfVbs::kind())) {
        of::<SnmfVbs>(&problem)?;
    }

    #[test]
    fn skellam_cp(problem in problems(Cps::kind())) {
        of::<Cps>(&problem)?;
    }

    #[test]
    fn skellam_cp_vb(problem in problems(CpVbs::kind())) {
        of::<CpVbs>(&problem)?;
    }

    #[test]
    fn siskellam(problem in problems(Shifts::kind())) {
        of::<Shifts>(&problem)?;
    }

    #[test]
    fn siskellam_vb(problem in problems(ShiftVbs::kind())) {
        of::<ShiftVbs>(&problem)?;
    }

    #[test]
    fn snmf_ding(problem in problems(Dings::kind())) {
        of::<Dings>(&problem)?;
    }

    #[test]
    fn kmeans(problem in problems(KMeanss::kind())) {
        of::<KMeanss>(&problem)?;
    }
}
