//! Planted mistakes, and the law that catches each: a law that cannot be broken shows nothing.

use plca::em::{Algorithm, Sense};
use plca::fit::Progress;
use plca::fit::blocks::BlockSpec;
use plca::fit::em::Stepped;
use plca::fit::laws::{
    Law, Terms, Units, check_definition, check_neighbours, check_per_unit, check_starts,
    check_units,
};
use plca::nalgebra::DMatrix;
use plca::prelude::*;
use plca::{
    em::NmfState,
    fit::{Parameters, Run},
};
use rand_chacha::rand_core::Rng;

use super::units::comes_and_goes;

/// A mistake in an algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    /// A constant in the objective that no page knows.
    Constant(f64),
    /// A number of no unit is added to every entry.
    Guard(f64),
    /// Of several starts the worst is taken for the best.
    Sense,
}

/// An algorithm with a mistake.
#[derive(Debug)]
struct Planted<'a> {
    right: Box<dyn Algorithm<f64> + 'a>,
    mistake: Mistake,
}

impl Algorithm<f64> for Planted<'_> {
    fn blocks(&self) -> &[BlockSpec<f64>] {
        self.right.blocks()
    }

    fn step(&self, at: &mut Parameters<f64>, measure: bool) -> Result<Stepped, FitError> {
        let stepped = self.right.step(at, measure)?;
        if let Mistake::Guard(guard) = self.mistake {
            at.change(|_, block| block.add_scalar_mut(guard));
        }
        Ok(stepped)
    }

    fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> {
        let value = self.right.objective(at)?;
        Ok(match self.mistake {
            Mistake::Constant(constant) => value + constant,
            _ => value,
        })
    }

    fn sense(&self) -> Sense {
        match (self.right.sense(), self.mistake) {
            (Sense::Minimise, Mistake::Sense) => Sense::Maximise,
            (sense, _) => sense,
        }
    }

    fn unit(&self) -> f64 {
        self.right.unit()
    }

    fn extrapolates(&self, at: &Parameters<f64>) -> Result<(), FitError> {
        self.right.extrapolates(at)
    }

    fn draw(
        &self,
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<DMatrix<f64>>, FitError> {
        self.right.draw(rng, progress)
    }
}

const CELLS: [f64; 12] = [3.0, 0.0, 1.0, 7.0, 2.0, 2.0, 0.0, 5.0, 1.0, 4.0, 0.5, 0.0];

fn data(unit: f64) -> DenseTensor<f64> {
    let values = CELLS.iter().map(|v| v * unit).collect();
    DenseTensor::new(vec![3, 4], values, Order::RowMajor).unwrap()
}

/// `nmf-kl` of data in a unit, by plain iterations with a mistake.
fn fit(unit: f64, mistake: Mistake, starts: u32, rng: &mut dyn Rng) -> Fit<NmfState<f64>> {
    let (model, data) = (Nmf::new(2), data(unit));
    let right = model.bind(&data).unwrap();
    let run = Run::<NmfState<f64>>::new(Box::new(Planted { right, mistake }));
    let stop = Stop::default().tol(None).max_iter(5);
    let run = run.solver(Solver::Em).stop(stop).restarts(starts);
    run.run(Init::default(), rng).unwrap()
}

fn law<T>(checked: Result<T, plca::fit::laws::Violation>) -> Option<Law> {
    checked.err().map(|violation| violation.law)
}

#[test]
fn a_constant_that_no_page_knows() {
    let divergence = |at: &Parameters<f64>| -> Terms {
        let y = at.at(0) * at.at(1);
        let cells = CELLS.iter().enumerate();
        let terms = cells.flat_map(|(x, &v)| {
            let y = y[(x / 4, x % 4)];
            [if v > 0.0 { v * (v / y).ln() } else { 0.0 }, -v, y]
        });
        terms.collect()
    };
    let told = |mistake| {
        let fit = fit(1.0, mistake, 1, &mut plca::seed(0));
        law(check_definition(&fit, 1e-10, divergence))
    };
    assert_eq!(told(Mistake::None), None);
    assert_eq!(told(Mistake::Constant(1e-7)), Some(Law::Definition));
    // And a state that is not the one that was measured.
    let moved = fit(1.0, Mistake::None, 1, &mut plca::seed(0));
    let moved = moved.change(|at| at.change(|_, block| block[0] *= 1.0 + 1e-6));
    let checked = check_definition(&moved.unwrap(), 1e-10, divergence);
    assert_eq!(law(checked), Some(Law::Definition));
}

/// A finite objective is never that of a definition of minus infinity.
#[test]
fn a_definition_without_bound() {
    let one = fit(1.0, Mistake::None, 1, &mut plca::seed(0));
    let impossible = |_: &Parameters<f64>| [f64::NEG_INFINITY, 1.0].into_iter().collect();
    let checked = check_definition(&one, 1e-10, impossible);
    assert_eq!(law(checked), Some(Law::Definition));
}

/// A fit whose blocks were changed goes on from there.
#[test]
fn a_changed_fit_is_iterated_again() {
    let (model, data) = (Nmf::new(2), data(1.0));
    let ended = model.fit(&data, &mut plca::seed(0)).unwrap();
    let moved = ended.change(|at| at.change(|_, block| block[0] *= 2.0));
    let moved = moved.unwrap();
    let on = model.on(&data).unwrap().resume(moved.checkpoint().clone());
    assert!(on.unwrap().iterations() > moved.iterations());
}

#[test]
fn a_guard_that_has_no_unit() {
    let s = 2f64.powi(-60);
    let units = Units {
        block: Box::new(move |_| s.sqrt()),
        objective: s,
        size: 25.5,
        apart: 1e-9,
    };
    let fits = |mistake| [1.0, s].map(|unit| fit(unit, mistake, 1, &mut plca::seed(0)));
    let bits = |mistake| {
        let [here, there] = fits(mistake);
        law(check_units(&here, &there, &units))
    };
    let value = |mistake| {
        let [here, there] = fits(mistake);
        law(check_per_unit(&here, &there, &units))
    };
    assert_eq!((bits(Mistake::None), value(Mistake::None)), (None, None));
    let caught = Some(Law::Scale);
    for mistake in [Mistake::Guard(1e-8), Mistake::Constant(1e-20)] {
        assert_eq!((bits(mistake), value(mistake)), (caught, caught));
    }
    // Bits see what the objective does not.
    assert_eq!(bits(Mistake::Guard(1e-22)), caught);
    assert_eq!(value(Mistake::Guard(1e-22)), None);
}

/// What grows with the unit is no branch point, however near the units are.
#[test]
fn a_guard_that_has_no_unit_is_no_branch() {
    let differs = |mistake, s: f64| {
        let [here, there] = [1.0, s].map(|unit| fit(unit, mistake, 1, &mut plca::seed(0)));
        let units = Units {
            block: Box::new(move |_| s.sqrt()),
            objective: s,
            size: 25.5,
            apart: 1e-10,
        };
        check_per_unit(&here, &there, &units).is_err()
    };
    assert!(!differs(Mistake::None, 2.0));
    for mistake in [
        Mistake::Guard(1e-4),
        Mistake::Guard(1e-8),
        Mistake::Constant(1e-8),
    ] {
        assert!(differs(mistake, 2.0), "{mistake:?}");
        let is_branch = comes_and_goes(|s| Ok::<_, ()>(differs(mistake, s)));
        assert_eq!(is_branch, Ok(false), "{mistake:?}");
    }
    // In every other unit.
    let mut nth = 0;
    let every_other = |_| {
        nth += 1;
        Ok::<_, ()>(nth % 2 == 0)
    };
    assert_eq!(comes_and_goes(every_other), Ok(true));
}

#[test]
fn a_transform_that_normalises_over_the_batch() {
    let batch = |of: &[usize]| {
        let values = (0..3).flat_map(|i| of.iter().map(move |j| CELLS[i * 4 + j]));
        DenseTensor::new(vec![3, of.len()], values.collect(), Order::RowMajor).unwrap()
    };
    let how = Transform::default();
    let fit = Plsa::new(2).fit(&data(1.0), &mut plca::seed(0)).unwrap();
    let plsa = |of: &[usize]| -> Result<Vec<Vec<u64>>, FitError> {
        let new = fit.state().transform(&batch(of), &how)?;
        let columns = new.fit.state().mixture().clone();
        Ok(columns
            .column_iter()
            .map(|c| c.iter().map(|x| x.to_bits()).collect())
            .collect())
    };
    assert_eq!(
        law(check_neighbours(4, &[vec![3, 0], vec![1, 1, 2]], plsa)),
        None
    );
    // By definition `P(y | z)` is a distribution over the observations that are there.
    let fit = Plca::new(2).fit(&data(1.0), &mut plca::seed(0)).unwrap();
    let plca = |of: &[usize]| -> Result<Vec<Vec<u64>>, FitError> {
        let new = fit.state().transform(&batch(of), &how)?;
        let rows = new.fit.state().factor(1).clone();
        Ok(rows
            .row_iter()
            .map(|r| r.iter().map(|x| x.to_bits()).collect())
            .collect())
    };
    assert_eq!(law(check_neighbours(4, &[], plca)), Some(Law::Neighbours));
    let checked = check_neighbours(4, &[vec![7]], |of| Ok::<_, FitError>(vec![0; of.len()]));
    assert_eq!(law(checked), Some(Law::Neighbours));
}

#[test]
fn a_best_start_by_another_value() {
    let mut rng = plca::seed(3);
    let single: Vec<_> = (0..6)
        .map(|_| fit(1.0, Mistake::None, 1, &mut rng))
        .collect();
    let kept = |mistake, starts| {
        let best = fit(1.0, mistake, starts, &mut plca::seed(3));
        law(check_starts(
            Sense::Minimise,
            &single[..starts as usize],
            &best,
        ))
    };
    for starts in 1..=6 {
        assert_eq!(kept(Mistake::None, starts), None);
    }
    assert_eq!(kept(Mistake::Sense, 6), Some(Law::Starts));
}
