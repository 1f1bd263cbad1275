//! Skellam paper, figure 2: activations under fixed atoms, one draw against the limit.

use nalgebra::DMatrix;
use plca_dist::random::uniform;
use plca_fit::{Fit, Init, Model, Solver, Stop};
use plca_tensor::DenseTensor;
use skellam_snmf::{Replicates, Snmf, SnmfState};

use super::support::{dirichlet, gamma, normal, rng};
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "sk_fig2",
    source: "[SKELLAM] figure 2",
    title: "Activations of nearly exact data under their own atoms: Skellam law (M = 1) against its limit",
    criterion: "Data (T+ - T-) H of rank 3, 10 x 100, with noise of standard deviation 1e-4 and the atoms given, 1000 plain iterations from \
                activations 1: the squared error of the limit is below 1e-5, that of the Skellam law above 1e-2 (the paper: 9.0e-8 and 0.12).",
    data: &[],
    run,
    control: Some(control),
};

const K: usize = 3;
const F: usize = 10;
const N: usize = 100;
const ITERATIONS: usize = 1000;
const FORMS: [(&str, Replicates); 2] = [("M = 1", Replicates::One), ("limit", Replicates::Limit)];

/// Atoms of random signs, activations and data.
fn problem(seed: u64) -> Result<(SnmfState<f64>, DenseTensor<f64>)> {
    let mut draws = rng(seed, 80);
    let size = dirichlet(F, K, 0.9, &mut draws);
    let w = size.map(|x| if uniform(&mut draws) < 0.5 { -x } else { x });
    let activations = DMatrix::from_fn(K, N, |_, _| 2.0 * gamma(0.6, &mut draws));
    let data = &w * &activations;
    let data = data.map(|x| x + 1e-4 * normal(&mut draws));
    // [SKELLAM eq. 58]
    let (plus, minus) = (w.map(|x: f64| x.max(0.0)), w.map(|x: f64| (-x).max(0.0)));
    let truth = SnmfState::new(&plus, &minus, activations)?;
    Ok((truth, DenseTensor::try_from(data)?))
}

fn fit(
    truth: &SnmfState<f64>,
    data: &DenseTensor<f64>,
    replicates: Replicates,
) -> Result<Fit<SnmfState<f64>>> {
    let snmf = Snmf::new(K)
        .replicates(replicates)
        .real_data(true)
        .freeze("atoms");
    let start = Init::from(truth).block("activations", DMatrix::from_element(K, N, 1.0));
    let stop = Stop::default().max_iter(ITERATIONS).tol(None);
    let run = snmf.on(data)?.solver(Solver::Em).stop(stop.check_every(1));
    // Nothing is drawn: every block is given.
    Ok(run.run(start, &mut rng(0, 0))?)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, FORMS)
}

/// The law and its limit taken for one another.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let [one, limit] = FORMS.map(|form| form.1);
    measure(context, [(FORMS[0].0, limit), (FORMS[1].0, one)])
}

fn measure(context: &Context, forms: [(&str, Replicates); 2]) -> Result<Vec<Entry>> {
    let (truth, data) = problem(context.seed)?;
    let line = |h: &DMatrix<f64>| (1..).map(f64::from).zip(h.row(0).iter().copied()).collect();
    let mut shown = Vec::new();
    let mut changes = Vec::new();
    let mut errors = Vec::new();
    for (at, (name, replicates)) in forms.into_iter().enumerate() {
        let fit = fit(&truth, &data, replicates)?;
        shown.push(Series::new(name, at + 1, line(fit.state().activations())));
        let ratio = fit.trace().windows(2).map(|w| {
            let change = 1.0 - w[1].objective.abs() / w[0].objective.abs();
            (w[1].iteration as f64, change.abs().max(1e-16))
        });
        changes.push(Series::new(name, at + 1, ratio.collect()));
        let difference = fit.state().activations() - truth.activations();
        errors.push(difference.norm_squared() / (K * N) as f64);
    }
    shown.push(Series::new("truth", 0, line(truth.activations())).dashed());
    let high = truth.activations().row(0).max();
    let one = Panel::lines(
        "Activations of the first component",
        &shown,
        &Axis::linear("column", 1.0, N as f64),
        &Axis::linear("activation", 0.0, 1.3 * high),
    );
    let low = changes
        .iter()
        .flat_map(|s| &s.points)
        .map(|p| p.1)
        .fold(1.0, f64::min);
    let two = Panel::lines(
        "Change of the objective",
        &changes,
        &Axis::linear("iteration", 0.0, ITERATIONS as f64),
        &Axis::log("|1 - ratio of consecutive values|", low, 10.0),
    );
    let files = context.picture(FIGURE.name, 1, (980.0, 380.0), vec![one, two])?;
    let data = Data::generated("10 x 100 of rank 3, noise 1e-4");
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    Ok(vec![
        row("limit: mean squared error of the activations", errors[1])
            .below(1e-5)
            .paper(9.0e-8, "[SKELLAM] figure 2"),
        row("M = 1: mean squared error of the activations", errors[0])
            .above(1e-2)
            .paper(0.12, "[SKELLAM] figure 2"),
    ])
}
