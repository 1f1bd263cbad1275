//! The objective that a fit reports is its definition, computed of its arrays.

use plca::fit::laws::check_definition;
use plca::prelude::*;
use proptest::prelude::*;

use super::models::*;
use super::problem::{Problem, problems};
use super::table::{Subject, data_of, few, fitted, holds, pending, relative, stop};

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
    match problem.single {
        true => of::<M, f32>(problem),
        false => of::<M, f64>(problem),
    }
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn plca(problem in problems(Plcas::kind())) {
        pending!("definition::plca");
        defined::<Plcas>(&problem)?;
    }

    #[test]
    fn plsa(problem in problems(Plsas::kind())) {
        pending!("definition::plsa");
        defined::<Plsas>(&problem)?;
    }

    #[test]
    fn nmf_kl(problem in problems(Nmfs::kind())) {
        pending!("definition::nmf_kl");
        defined::<Nmfs>(&problem)?;
    }

    #[test]
    fn siplca(problem in problems(Siplcas::kind())) {
        pending!("definition::siplca");
        defined::<Siplcas>(&problem)?;
    }

    #[test]
    fn tiplca(problem in problems(Tiplcas::kind())) {
        pending!("definition::tiplca");
        defined::<Tiplcas>(&problem)?;
    }

    #[test]
    fn plca_vb(problem in problems(PlcaVbs::kind())) {
        pending!("definition::plca_vb");
        defined::<PlcaVbs>(&problem)?;
    }

    #[test]
    fn plsa_vb(problem in problems(PlsaVbs::kind())) {
        pending!("definition::plsa_vb");
        defined::<PlsaVbs>(&problem)?;
    }

    #[test]
    fn pntf(problem in problems(Pntfs::kind())) {
        pending!("definition::pntf");
        defined::<Pntfs>(&problem)?;
    }

    #[test]
    fn ntf_l2(problem in problems(Ntfs::kind())) {
        pending!("definition::ntf_l2");
        defined::<Ntfs>(&problem)?;
    }

    #[test]
    fn skellam(problem in problems(Snmfs::kind())) {
        pending!("definition::skellam");
        defined::<Snmfs>(&problem)?;
    }

    #[test]
    fn skellam_vb(problem in problems(SnmfVbs::kind())) {
        pending!("definition::skellam_vb");
        defined::<SnmfVbs>(&problem)?;
    }

    #[test]
    fn skellam_cp(problem in problems(Cps::kind())) {
        pending!("definition::skellam_cp");
        defined::<Cps>(&problem)?;
    }

    #[test]
    fn skellam_cp_vb(problem in problems(CpVbs::kind())) {
        pending!("definition::skellam_cp_vb");
        defined::<CpVbs>(&problem)?;
    }

    #[test]
    fn siskellam(problem in problems(Shifts::kind())) {
        pending!("definition::siskellam");
        defined::<Shifts>(&problem)?;
    }

    #[test]
    fn siskellam_vb(problem in problems(ShiftVbs::kind())) {
        pending!("definition::siskellam_vb");
        defined::<ShiftVbs>(&problem)?;
    }

    #[test]
    fn snmf_ding(problem in problems(Dings::kind())) {
        pending!("definition::snmf_ding");
        defined::<Dings>(&problem)?;
    }

    #[test]
    fn kmeans(problem in problems(KMeanss::kind())) {
        pending!("definition::kmeans");
        defined::<KMeanss>(&problem)?;
    }
}
