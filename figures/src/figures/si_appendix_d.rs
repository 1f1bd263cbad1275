//! SI, appendix D: PLCA of a matrix is NMF with the Kullback-Leibler divergence.

use nalgebra::DMatrix;
use plca_dist::random::exponential;
use plca_em::{Nmf, NmfState, Plca, Update};
use plca_fit::{Model, Reconstruct, State};
use plca_tensor::{DenseTensor, Order};

use super::support::{largest, rng};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "si_appendix_d",
    source: "[SI] appendix D",
    title: "PLCA and KL-NMF make the same steps",
    criterion: "From matched starts v P(n) and the product W(n) H(n) of the simultaneous updates agree at every iteration; \
                the sequential updates of common packages, as a control, do not.",
    data: &[],
    run,
    control: Some(control),
};

/// What approximates the data after every iteration.
fn products<M>(model: &M, v: &DenseTensor<f64>, start: &M::State, n: usize) -> Result<Vec<Vec<f64>>>
where
    M: Model<f64, State: Reconstruct>,
{
    let em = model.bind(v)?;
    let mut at = model.init(v, start, &mut rng(0, 0))?.parameters().clone();
    let mut next = || {
        em.step(&mut at, false)?;
        let product = M::State::wrap(at.clone())?.reconstruct()?;
        Ok(product.into_parts().1.to_vec())
    };
    (0..n).map(|_| next()).collect()
}

/// `max |a - b| / max a`.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    largest(differences) / largest(a.iter().copied())
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, [Update::Simultaneous, Update::Sequential])
}

/// The two forms of the updates exchanged.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, [Update::Sequential, Update::Simultaneous])
}

fn measure(context: &Context, updates: [Update; 2]) -> Result<Vec<Entry>> {
    let (m, n, k) = (30, 40, 5);
    let iterations = context.size(200, 50);
    let mut draws = rng(context.seed, 1);
    let mut positive = |r, c| DMatrix::from_fn(r, c, |_, _| exponential(&mut draws) + 1e-3);
    let (v, w, h) = (positive(m, n), positive(m, k), positive(k, n));
    let v = DenseTensor::new(vec![m, n], v.as_slice().to_vec(), Order::ColumnMajor)?;

    let start = NmfState::new(w, h)?;
    let plca = Plca::new(k);
    let of_plca = products(&plca, &v, &start.to_plca()?, iterations)?;
    let mut curves = Vec::new();
    for update in updates {
        let nmf = Nmf::new(k).update(update);
        let of_nmf = products(&nmf, &v, &start, iterations)?;
        let pairs = of_plca.iter().zip(&of_nmf).enumerate();
        let points = pairs.map(|(n, (a, b))| (n as f64 + 1.0, difference(a, b)));
        curves.push(points.collect::<Vec<_>>());
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
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    Ok(vec![
        row("simultaneous NMF: largest relative difference", same).below(1e-11),
        row("sequential NMF: largest relative difference", other).above(1e-3),
    ])
}
