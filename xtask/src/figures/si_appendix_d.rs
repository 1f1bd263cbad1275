//! SI, appendix D: PLCA of a matrix is NMF with the Kullback-Leibler divergence.

use nalgebra::DMatrix;
use plca_dist::random::exponential;
use plca_em::{
    Algorithm as _, NmfInit, Update,
    before::{Nmf, NmfState, Plca},
};
use plca_tensor::{Data as _, DenseTensor, Order};

use super::support::{largest, rng};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Series};
use crate::reproduce::{Context, Data, Entry, Figure, Measured};

pub(crate) const FIGURE: Figure = Figure {
    name: "si_appendix_d",
    source: "[SI] appendix D",
    title: "PLCA and KL-NMF make the same steps",
    criterion: "From matched starts v P(n) and the product W(n) H(n) of the simultaneous updates agree at every iteration; \
                the sequential updates of common packages, as a control, do not.",
    run,
};

/// `max |A - B| / max A`.
fn difference(a: &DMatrix<f64>, b: &DMatrix<f64>) -> f64 {
    (a - b).amax() / a.amax()
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let (m, n, k) = (30, 40, 5);
    let iterations = context.size(200, 50);
    let mut draws = rng(context.seed, 1);
    let mut positive = |r, c| DMatrix::from_fn(r, c, |_, _| exponential(&mut draws) + 1e-3);
    let (v, w, h) = (positive(m, n), positive(m, k), positive(k, n));
    let v = DenseTensor::new(vec![m, n], v.as_slice().to_vec(), Order::ColumnMajor)?;
    let total = v.total();

    let start = NmfState { w, h };
    let mut plca_state = start.to_plca()?;
    let plca = Plca::builder(k).build()?;
    let plca = plca.on(&v)?;
    let mut others = Vec::new();
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::builder(k).update(update).build()?;
        let init = NmfInit {
            w: Some(start.w.clone()),
            h: Some(start.h.clone()),
        };
        let state = nmf.init(&v, &init, &mut rng(0, 0))?;
        others.push((nmf, state));
    }
    let mut curves = vec![Vec::new(), Vec::new()];
    for step in 1..=iterations {
        plca.step(&mut plca_state, false)?;
        let product = &plca_state.factors[0]
            * DMatrix::from_diagonal(&plca_state.weights)
            * plca_state.factors[1].transpose()
            * total;
        for ((nmf, state), curve) in others.iter_mut().zip(&mut curves) {
            nmf.on(&v)?.step(state, false)?;
            curve.push((step as f64, difference(&product, &(&state.w * &state.h))));
        }
    }
    let [same, other] = [0, 1].map(|c: usize| largest(curves[c].iter().map(|p| p.1)));
    let shown = |c: &[(f64, f64)]| c.iter().map(|p| (p.0, p.1.max(1e-17))).collect();
    let series = [
        Series::new("sequential updates (control)", 1, shown(&curves[1])),
        Series::new("simultaneous updates", 0, shown(&curves[0])),
    ];
    let panel = Panel::lines(
        "max |v P - W H| / max (v P)",
        &series,
        &Axis::linear("iteration", 0.0, iterations as f64),
        &Axis::log("relative difference", 1e-17, 5.0),
    )
    .legend(LegendPosition::OutsideBottomCenter);
    let files = context.picture(FIGURE.name, 1, (820.0, 440.0), vec![panel])?;
    let data = Data::generated("30 x 40 matrix of exponential draws");
    Ok(vec![
        context.below(
            "simultaneous NMF: largest relative difference < 1e-11",
            same,
            1e-11,
            &data,
            &files,
        ),
        context.entry(
            "sequential NMF (control): largest relative difference > 1e-3",
            Measured::Number(other),
            other > 1e-3,
            &data,
            &files,
        ),
    ])
}
