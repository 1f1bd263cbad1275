//! SI: positive deconvolution, a model whose kernel is known.

use nalgebra::DMatrix;
use plca_em::{Fit, Init, Model, Reconstruct, Shifted, ShiftedState, Solver, Stop, TracePoint};
use plca_tensor::DenseTensor;

use super::grid::{Grid, poisson};
use super::support::{largest, rng};
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "si_deconvolution",
    source: "[SI] section 5, positive deconvolution",
    title: "Six spikes behind a known blur",
    criterion: "After 5000 iterations the mass within one sample of each spike is 0.9 to 1.1 of the truth, and the likelihood falls in none of them.",
    data: &[],
    run,
    control: Some(control),
};

const PLACES: usize = 120;
const TAPS: usize = 15;
const COUNTS: f64 = 1e5;
const ITERATIONS: usize = 5000;
/// `(place, share)`.
const SPIKES: [(usize, f64); 6] = [
    (12, 0.22),
    (31, 0.10),
    (45, 0.18),
    (61, 0.14),
    (83, 0.26),
    (104, 0.10),
];

/// Mass within one sample of each spike, relative to its share.
fn recovered(state: &ShiftedState<f64>) -> Vec<f64> {
    let mass = |at: usize| state.impulses().view((at - 1, 0), (3, 1)).sum();
    SPIKES.iter().map(|&(at, share)| mass(at) / share).collect()
}

/// The impulses after this number of iterations from everywhere the same.
fn deconvolved(
    v: &DenseTensor<f64>,
    kernel: &Grid,
    iterations: usize,
) -> Result<Fit<ShiftedState<f64>>> {
    // [SPEC 5.4]
    let config = Shifted::new(1, vec![TAPS]).freeze("kernels");
    let start = Init::default()
        .block(
            "kernels",
            DMatrix::from_column_slice(TAPS, 1, &kernel.values),
        )
        .block("impulses", DMatrix::from_element(PLACES, 1, 1.0));
    let run = config.on(v)?.solver(Solver::Em);
    // Every iteration is looked at: between two looks a fall and a rise would be no fall.
    let stop = Stop::default()
        .max_iter(iterations)
        .tol(None)
        .check_every(1);
    let run = run.stop(stop);
    Ok(run.run(start, &mut rng(0, 0))?)
}

/// The largest fall from one point of a trace to the next, relative to the objective.
fn largest_fall(trace: &[TracePoint]) -> f64 {
    let falls = trace
        .windows(2)
        .map(|w| (w[0].objective - w[1].objective) / w[0].objective.abs());
    falls.fold(0.0, f64::max)
}

/// The blur: how far from the middle its centre is, and how wide it is.
fn blur(centre: f64, width: f64) -> Grid {
    Grid::from_fn(&[TAPS], |i| {
        (-0.5 * ((i[0] as f64 - 7.0 - centre) / width).powi(2)).exp()
    })
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, &blur(0.0, 2.5), |trace| trace.to_vec())
}

/// A model of another blur; its trace read backwards.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, &blur(3.0, 1.5), |trace| {
        trace.iter().rev().copied().collect()
    })
}

fn measure(
    context: &Context,
    known: &Grid,
    order: fn(&[TracePoint]) -> Vec<TracePoint>,
) -> Result<Vec<Entry>> {
    let blur = blur(0.0, 2.5);
    let mut rate = Grid::zeros(&[PLACES + TAPS - 1]);
    for (at, share) in SPIKES {
        rate.stamp(&blur, &[at], share * COUNTS / blur.sum());
    }
    let mut rng = rng(context.seed, 22);
    let input = Grid::from_fn(&rate.shape, |i| poisson(rate.get(i), &mut rng));
    let v = input.tensor()?;
    let early = deconvolved(&v, known, 50)?;
    let plain = deconvolved(&v, known, ITERATIONS)?;
    let ratios = recovered(plain.state());
    let off = largest(ratios.iter().map(|r| (r - 1.0).abs()));

    let line = |values: &[f64]| {
        (values.iter().enumerate())
            .map(|(i, &x)| (i as f64, x))
            .collect()
    };
    let x = || Axis::linear("x", 0.0, rate.shape[0] as f64);
    let counts = Axis::from_zero("counts", input.values.iter().copied());
    let model = plain.state().reconstruct()?.into_parts().1;
    let truth: Vec<(f64, f64)> = SPIKES.iter().map(|s| (s.0 as f64, s.1)).collect();
    let impulse = |state: &ShiftedState<f64>| line(state.impulses().as_slice());
    let stems = truth
        .iter()
        .flat_map(|&(x, y)| [(x, 0.0), (x, y), (x, 0.0)])
        .collect();
    let panels = vec![
        Panel::lines(
            "data and model",
            &[
                Series::new("counts", 5, line(&input.values)),
                Series::new("model", 1, line(&model)).dashed(),
            ],
            &x(),
            &counts,
        ),
        Panel::lines(
            "known kernel",
            &[Series::new("", 0, line(&known.values))],
            &Axis::linear("x", 0.0, 14.0),
            &Axis::linear("", 0.0, 1.1),
        ),
        Panel::lines(
            "impulse P(x)",
            &[
                Series::new("50 iterations", 4, impulse(early.state())),
                Series::new("5000", 1, impulse(plain.state())),
                Series::new("true spikes", 0, stems).dashed(),
            ],
            &x(),
            &Axis::linear("probability", 0.0, 0.5),
        )
        .legend(LegendPosition::InsideTopLeft),
    ];
    let files = context.picture(FIGURE.name, 3, (480.0, 340.0), panels)?;
    let data = Data::generated("six spikes blurred by 15 taps, 1e5 counts");
    let list: Vec<_> = ratios.iter().map(|r| format!("{r:.3}")).collect();
    let fall = largest_fall(&order(plain.trace()));
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    Ok(vec![
        row(
            "largest distance from 1 of the mass within one sample of a spike over the truth",
            off,
        )
        .at_most(0.1)
        .detail(list.join(" ")),
        row(
            "largest relative fall of the likelihood in an iteration",
            fall,
        )
        .below(1e-12)
        .detail(format!("{} iterations looked at", plain.trace().len() - 1)),
    ])
}
