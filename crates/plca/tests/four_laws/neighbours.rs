//! What a transform says of an observation does not depend on the others in the call.

use plca::fit::laws::check_neighbours;
use plca::prelude::*;
use plca::tensor::DataError;
use plca::{fit::Impossible, tensor::Real};
use proptest::prelude::*;

use super::models::*;
use super::problem::{Problem, problems, stored};
use super::table::{Explains, data_of, few, fitted, holds, in_one_thread, stop};

fn of<M: Explains, T: Real>(
    problem: &Problem,
    batches: &[Vec<usize>],
) -> Result<(), TestCaseError> {
    let (data, _) = data_of::<T>(problem, M::unit(problem))?;
    let fit = fitted::<M, T, _>(problem, &*data, |run| {
        let run = run.stop(stop(problem));
        run.run(Init::default(), &mut plca::seed(problem.seed))
    })?;
    let (table, along) = (problem.table::<T>(M::unit(problem)), M::along(problem));
    let n = table.shape[along];
    let sums: Vec<f64> = (0..n)
        .map(|of| {
            let own = (0..table.values.len()).filter(|&at| table.index(at)[along] == of);
            let seen = own.filter(|&at| table.observed[at]);
            seen.map(|at| table.values[at].to_f64().abs()).sum()
        })
        .collect();
    let how = Transform::default().impossible(Impossible::Drop);
    let how = how.stop(Stop::default().tol(1e-12).residual_tol(1e-6).max_iter(25));
    let explained = |of: &[usize]| -> Result<Vec<Vec<u64>>, FitError> {
        let part = table.select(along, of);
        M::explain(
            problem,
            fit.state(),
            &*stored(&part, problem.storage)?,
            &how,
        )
    };
    // Observations without a count that the model explains have nothing to be explained by alone.
    let nothing = |of: usize| {
        sums[of] <= 0.0 || matches!(explained(&[of]), Err(FitError::Data(DataError::NoMass)))
    };
    let whole: Vec<usize> = (0..n).filter(|&of| !nothing(of)).take(12).collect();
    let explain =
        |batch: &[usize]| explained(&batch.iter().map(|&at| whole[at]).collect::<Vec<_>>());
    if whole.is_empty() {
        return Ok(());
    }
    let batches = batches
        .iter()
        .map(|b| b.iter().map(|at| at % whole.len()).collect());
    let batches: Vec<Vec<usize>> = batches.collect();
    holds(check_neighbours(whole.len(), &batches, explain))
}

fn neighbours<M: Explains>(problem: &Problem, batches: &[Vec<usize>]) -> Result<(), TestCaseError> {
    in_one_thread(|| match problem.single {
        true => of::<M, f32>(problem, batches),
        false => of::<M, f64>(problem, batches),
    })
}

fn batches() -> impl Strategy<Value = Vec<Vec<usize>>> {
    prop::collection::vec(prop::collection::vec(0..64usize, 1..12), 1..4)
}

proptest! {
    #![proptest_config(few(12))]

    #[test]
    fn plsa(problem in problems(Plsas::explained()), batches in batches()) {
        neighbours::<Plsas>(&problem, &batches)?;
    }

    #[test]
    fn nmf_kl(problem in problems(Nmfs::explained()), batches in batches()) {
        neighbours::<Nmfs>(&problem, &batches)?;
    }

    #[test]
    fn plsa_vb(problem in problems(PlsaVbs::explained()), batches in batches()) {
        neighbours::<PlsaVbs>(&problem, &batches)?;
    }

    #[test]
    fn pntf(problem in problems(Pntfs::explained()), batches in batches()) {
        neighbours::<Pntfs>(&problem, &batches)?;
    }

    #[test]
    fn ntf_l2(problem in problems(Ntfs::explained()), batches in batches()) {
        neighbours::<Ntfs>(&problem, &batches)?;
    }

    #[test]
    fn skellam(problem in problems(Snmfs::explained()), batches in batches()) {
        neighbours::<Snmfs>(&problem, &batches)?;
    }

    #[test]
    fn skellam_vb(problem in problems(SnmfVbs::explained()), batches in batches()) {
        neighbours::<SnmfVbs>(&problem, &batches)?;
    }
}
