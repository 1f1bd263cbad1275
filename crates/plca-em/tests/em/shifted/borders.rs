//! Patterns that a record cuts off.

use nalgebra::DMatrix;
use plca_em::{Likelihood, Shifted, Support};
use plca_fit::{Init, Model, Stop};

use super::support::{dense, rng};

/// An event on the last sample of a record cut short: given the window its mass is found, the literal likelihood explains
/// it away (its optimum is known: 17.5 of 82.5 instead of 35 of 100).
// [SPEC 5.2]
#[test]
fn events_at_the_border_need_the_conditional_likelihood() {
    let (kernel, events) = ([0.5, 0.3, 0.2], [(2, 40.0), (9, 25.0), (19, 35.0)]);
    let mut values = vec![0.0; 20];
    for (at, height) in events {
        for (t, k) in kernel.iter().enumerate().filter(|(t, _)| at + t < 20) {
            values[at + t] += height * k;
        }
    }
    let data = dense::<f64>(&[20], &values);
    let fit = |likelihood| {
        let shifted = Shifted::new(1, vec![3])
            .support(Support::Same)
            .likelihood(likelihood)
            .freeze("kernels");
        let run = shifted.on(&data).unwrap();
        let run = run.stop(Stop::default().max_iter(3000).tol(None));
        let start = Init::default().block("kernels", DMatrix::from_column_slice(3, 1, &kernel));
        let state = run.run(start, &mut rng(1)).unwrap().into_state();
        (state.impulses()[19], state.window_mass())
    };
    let (found, mass) = fit(Likelihood::Conditional);
    assert!((found - 0.35).abs() < 1e-3, "{found}");
    assert!((mass - 0.825).abs() < 1e-3, "{mass}");
    let (lost, _) = fit(Likelihood::Literal);
    assert!((lost - 17.5 / 82.5).abs() < 1e-3, "{lost}");
}
