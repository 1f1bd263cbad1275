//! A right algorithm, of which nothing but steps and objective is known, and its step spoiled.

use nalgebra::dmatrix;
use plca_em::{Init, Model, Plca};
use plca_fit::laws::{Law, Violation, check, check_resumed};
use plca_fit::{Algorithm, FitError, Parameters, Solver, State, blocks::BlockSpec, em::Stepped};
use plca_tensor::DenseTensor;

use super::{Found, Spoil, claims, found, is, rng};

/// Steps and objective of another algorithm, spoiled.
#[derive(Debug)]
struct Steps<'a>(Box<dyn Algorithm<f64> + 'a>, Spoil);

impl Algorithm<f64> for Steps<'_> {
    fn blocks(&self) -> &[BlockSpec<f64>] {
        self.0.blocks()
    }

    fn step(&self, at: &mut Parameters<f64>, measure: bool) -> Result<Stepped, FitError> {
        let old = at.clone();
        let stepped = self.0.step(at, measure)?;
        at.change(|j, block| self.1(j, old.at(j), block));
        Ok(stepped)
    }

    fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> {
        self.0.objective(at)
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }

    fn extrapolates(&self, at: &Parameters<f64>) -> Result<(), FitError> {
        self.0.extrapolates(at)
    }
}

#[test]
fn a_spoiled_step_is_found_in_its_block() {
    let data = dmatrix![5.0, 1.0, 2.0; 1.0, 4.0, 3.0; 2.0, 2.0, 9.0];
    let data = DenseTensor::<f64>::try_from(data).unwrap();
    let model = Plca::new(2);
    let start = model.init(&data, Init::default(), &mut rng(3)).unwrap();
    let start = start.parameters();
    let claims = claims(&data, 2, 0.0);
    #[rustfmt::skip]
    let cases: [(&str, Spoil, Option<Found>); 9] = [
        ("right", |_, _, _| (), None),
        ("grows", |j, _, x| { if j == 1 { *x *= 1.5 } }, is(Law::Valid, "factor_0")),
        ("columns sum to 7", |j, _, x| { if j == 1 { *x *= 7.0 } }, is(Law::Valid, "factor_0")),
        ("weights are even for ever", |j, _, x| { if j == 0 { x.fill(0.5) } }, is(Law::Stuck, "weights")),
        ("a factor stays", |j, old, x| { if j == 1 { x.copy_from(old) } }, is(Law::Stuck, "factor_0")),
        ("a column of a factor stays", |j, old, x| { if j == 2 { x.set_column(1, &old.column(1)) } }, is(Law::Stuck, "factor_1")),
        ("everything stays", |_, old, x| x.copy_from(old), is(Law::Stuck, "weights")),
        (
            "an entry sinks below 0",
            |j, _, x| {
                if j == 1 {
                    x.row_mut(0).add_scalar_mut(-2e-13);
                    x.row_mut(1).add_scalar_mut(2e-13);
                }
            },
            is(Law::Valid, "factor_0"),
        ),
        (
            "a factor goes too far",
            |j, old, x| {
                if j == 2 {
                    let far = 3.0 * &*x - 2.0 * old;
                    if far.min() > 0.0 {
                        x.copy_from(&far);
                    }
                }
            },
            is(Law::Block, "factor_1"),
        ),
    ];
    for (name, spoil, expected) in cases {
        let steps = Steps(model.bind(&data).unwrap(), spoil);
        let broken = check(&steps, Solver::Em, start, &claims).err();
        let shown = broken.as_ref().map(Violation::to_string);
        assert_eq!(broken.map(found), expected, "{name}: {shown:?}");
        check_resumed(&steps, Solver::Em, start, [2, 5], |saved| saved).unwrap();
    }
    // Numbers of the entry, not all parameters.
    let stays = Steps(model.bind(&data).unwrap(), |_, old, x| x.copy_from(old));
    let broken = check(&stays, Solver::Em, start, &claims).unwrap_err();
    assert!(
        broken.to_string().len() < 300 && broken.entry.is_some(),
        "{broken}"
    );
    // Under every solver: nothing changes although there is a slope.
    for solver in [Solver::Squarem, Solver::Parabolic, Solver::Momentum] {
        let broken = check(&stays, solver, start, &claims).unwrap_err();
        assert_eq!(broken.law, Law::Stuck, "{solver}: {broken}");
    }
}
