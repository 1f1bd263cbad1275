//! The objective that a fit reports is its definition, computed of its arrays.

use plca::fit::laws::check_definition;
use plca::tensor::Real;
use proptest::prelude::*;

use super::models::*;
use super::problem::{Problem, problems};
use super::table::{Subject, data_of, few, fitted, holds, in_one_thread, relative, stop};

fn defined<M: Subject>(problem: &Problem) -> Result<(), TestCaseError> {
    fn of<M: Subject, T: Real>(problem: &Problem) -> Result<(), TestCaseError> {
        let (data, cells) = data_of::<T>(problem, M::unit(problem))?;
        let fit = fitted::<M, T, _>(problem, &*data, |run| {
            let run = run.stop(stop(problem)).restarts(problem.starts);
            run.run(M::init::<T>(problem), &mut plca::seed(problem.seed))
        })?;
        holds(check_definition(&fit, relative::<T>(), |at| {
            M::define(problem, &cells, at)
        }))
    }
    in_one_thread(|| match problem.single {
        true => of::<M, f32>(problem),
        false => of::<M, f64>(problem),
    })
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn plca(problem in problems(Plcas::kind())) {
        defined::<Plcas>(&problem)?;
    }

    #[test]
    fn plsa(problem in problems(Plsas::kind())) {
        defined::<Plsas>(&problem)?;
    }

    #[test]
    fn nmf_kl(problem in problems(Nmfs::kind())) {
        defined::<Nmfs>(&problem)?;
    }

    #[test]
    fn siplca(problem in problems(Siplcas::kind())) {
        defined::<Siplcas>(&problem)?;
    }

    #[test]
    fn tiplca(problem in problems(Tiplcas::kind())) {
        defined::<Tiplcas>(&problem)?;
    }

    #[test]
    fn plca_vb(problem in problems(PlcaVbs::kind())) {
        defined::<PlcaVbs>(&problem)?;
    }

    #[test]
    fn plsa_vb(problem in problems(PlsaVbs::kind())) {
        defined::<PlsaVbs>(&problem)?;
    }

    #[test]
    fn pntf(problem in problems(Pntfs::kind())) {
        defined::<Pntfs>(&problem)?;
    }

    #[test]
    fn ntf_l2(problem in problems(Ntfs::kind())) {
        defined::<Ntfs>(&problem)?;
    }

    #[test]
    fn skellam(problem in problems(Snmfs::kind())) {
        defined::<Snmfs>(&problem)?;
    }

    #[test]
    fn skellam_vb(problem in problems(SnmfVbs::kind())) {
        defined::<SnmfVbs>(&problem)?;
    }

    #[test]
    fn skellam_cp(problem in problems(Cps::kind())) {
        defined::<Cps>(&problem)?;
    }

    #[test]
    fn skellam_cp_vb(problem in problems(CpVbs::kind())) {
        defined::<CpVbs>(&problem)?;
    }

    #[test]
    fn siskellam(problem in problems(Shifts::kind())) {
        defined::<Shifts>(&problem)?;
    }

    #[test]
    fn siskellam_vb(problem in problems(ShiftVbs::kind())) {
        defined::<ShiftVbs>(&problem)?;
    }

    #[test]
    fn snmf_ding(problem in problems(Dings::kind())) {
        defined::<Dings>(&problem)?;
    }

    #[test]
    fn kmeans(problem in problems(KMeanss::kind())) {
        defined::<KMeanss>(&problem)?;
    }
}
