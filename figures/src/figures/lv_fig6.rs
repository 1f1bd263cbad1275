//! LV, figure 6: the asymmetric model finds the corners of a triangle around the data.

use nalgebra::{DMatrix, Matrix3};
use plca_em::{Plsa, PlsaState};
use plca_fit::{Init, Model, Solver, Stop};
use plca_tensor::{Data as _, DenseTensor, Order};

use super::support::{best_matching, cosine, dirichlet, rng, smallest};
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "lv_fig6",
    source: "[LV] figure 6",
    title: "Components as the corners of a triangle around the data",
    criterion: "Three components explain 400 mixtures of three corners (D/v < 1e-5), enclose them (barycentric coordinates \
                >= -0.01) and lie at the corners (cosine > 0.98); two components cannot (D/v > 0.02).",
    data: &[],
    run,
    control: Some(control),
};

const DATA: usize = 400;
const STARTS: u32 = 5;

/// Corner of the plotted triangle for each of the three coordinates.
const TRIANGLE: [(f64, f64); 3] = [(0.0, 0.0), (1.0, 0.0), (0.5, 0.866_025_403_784_438_6)];

fn place(p: impl Iterator<Item = f64>) -> (f64, f64) {
    p.zip(TRIANGLE)
        .fold((0.0, 0.0), |s, (p, t)| (s.0 + p * t.0, s.1 + p * t.1))
}

fn fit(
    context: &Context,
    v: &DenseTensor<f64>,
    k: usize,
    max_iter: usize,
) -> Result<(PlsaState<f64>, f64)> {
    let plsa = Plsa::new(k);
    // Every triangle around the data explains them; those that EM finds are close to the corners.
    let run = plsa.on(v)?.restarts(STARTS).solver(Solver::Em);
    let run = run.stop(Stop::default().max_iter(max_iter).tol(None));
    let best = run.run(Init::default(), &mut rng(context.seed, 0))?;
    // Columns of the data sum to 1: the divergence of the conditional model, per datum.
    let d = (v.self_information()? - best.objective()) / v.total();
    Ok((best.into_state(), d))
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, false)
}

/// Components learnt from data that are drawn together, and the numbers of components exchanged.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, true)
}

fn measure(context: &Context, wrong: bool) -> Result<Vec<Entry>> {
    // Columns are the corners of the data, well inside the simplex.
    let corners = DMatrix::from_row_slice(
        3,
        3,
        &[
            0.75, 0.10, 0.15, //
            0.15, 0.80, 0.15, //
            0.10, 0.10, 0.70,
        ],
    );
    let data = &corners * dirichlet(3, DATA, 0.6, &mut rng(context.seed, 1));
    let tensor = |data: &DMatrix<f64>| {
        let values = data.as_slice().to_vec();
        DenseTensor::new(vec![3, DATA], values, Order::ColumnMajor)
    };
    let v = tensor(&data)?;
    let iterations = context.size(3000, 1500);
    let (mut three, mut d3) = fit(context, &v, 3, iterations)?;
    let (_, mut d2) = fit(context, &v, 2, iterations)?;
    if wrong {
        let together = data.map(|p| 0.3 * p + 0.7 / 3.0);
        three = fit(context, &tensor(&together)?, 3, iterations)?.0;
        std::mem::swap(&mut d3, &mut d2);
    }

    let learned = three.basis();
    let order = best_matching(3, |t, z| -cosine(corners.column(t), learned.column(z)));
    let matched = order.iter().enumerate();
    let worst_cosine =
        smallest(matched.map(|(t, &z)| cosine(corners.column(t), learned.column(z))));
    let inverse = Matrix3::from_iterator(learned.iter().copied())
        .try_inverse()
        .ok_or("the learned corners lie on a line")?;
    let weights = data.column_iter();
    let lowest = smallest(weights.flat_map(|c| (inverse * c).iter().copied().collect::<Vec<_>>()));

    let closed = |columns: &DMatrix<f64>, order: &[usize]| -> Vec<(f64, f64)> {
        let around = order.iter().chain(order.first());
        around
            .map(|&z| place(columns.column(z).iter().copied()))
            .collect()
    };
    let identity = DMatrix::identity(3, 3);
    let series = [
        Series::new("simplex", 4, closed(&identity, &[0, 1, 2])).dashed(),
        Series::new(
            "data",
            5,
            data.column_iter()
                .map(|c| place(c.iter().copied()))
                .collect(),
        ),
        Series::new("learned corners", 1, closed(learned, &order)).dashed(),
        Series::new("true corners", 2, closed(&corners, &[0, 1, 2])),
    ];
    let panel = Panel::scatter(
        "400 distributions over three outcomes",
        &series,
        &Axis::linear("", -0.05, 1.05),
        &Axis::linear("", -0.05, 0.95),
    )
    .without_numbers();
    let files = context.picture(FIGURE.name, 1, (720.0, 640.0), vec![panel])?;
    let name =
        Data::generated("400 Dirichlet(0.6) mixtures of three distributions over three outcomes");
    let row = |what: &str, value: f64| Entry::number(what, value, &name, &files);
    Ok(vec![
        row("three components: D/v", d3).below(1e-5),
        row("smallest barycentric coordinate of a datum", lowest).at_least(-0.01),
        row(
            "smallest cosine of a learned and a true corner",
            worst_cosine,
        )
        .above(0.98),
        row("two components: D/v", d2).above(0.02),
    ])
}
