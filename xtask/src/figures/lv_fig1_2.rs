//! LV, figures 1 and 2: the matrices of the symmetric and of the asymmetric model.

use nalgebra::{DMatrix, DVector};
use plca_em::{Algorithm as _, Plca, PlcaInit, Plsa, PlsaInit, Stop};
use plca_tensor::{DenseTensor, Observed as _, Order};

use super::support::{divergence, gaussian, largest, matrix_rows, rng};
use crate::Result;
use crate::plot::{Axis, Panel};
use crate::reproduce::{Context, Data, Entry, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "lv_fig1_2",
    source: "[LV] figures 1 and 2",
    title: "Latent variable models as matrix products",
    criterion: "The symmetric model is the product P = W S G with S = diag P(z); the asymmetric one gives V ~ W G S with \
                S = diag P(x2), which keeps the column sums of V.",
    run,
};

const M: usize = 24;
const N: usize = 30;
const K: usize = 3;

fn run(context: &Context) -> Result<Vec<Entry>> {
    let bump = |i: usize, at: f64, width: f64| gaussian(i as f64, at, width * width);
    let spectra = DMatrix::from_fn(M, K, |i, z| {
        bump(i, 4.0 + 7.0 * z as f64, 1.2) + 0.4 * bump(i, 10.0 + 5.0 * z as f64, 1.5)
    });
    let activity = DMatrix::from_fn(K, N, |z, j| {
        let z = z as f64;
        (3.0 - 0.6 * z) * (bump(j, 5.0 + 6.0 * z, 2.5) + bump(j, 22.0 - 4.0 * z, 2.0))
    });
    let v = &spectra * &activity;
    let data = DenseTensor::new(vec![M, N], v.as_slice().to_vec(), Order::ColumnMajor)?;
    let stop = Stop {
        max_iter: context.size(2000, 500),
        tol: 0.0,
        ..Stop::default()
    };

    let plca = Plca::builder(K).build()?;
    let joint = plca.fit(
        &data,
        &PlcaInit::default(),
        &stop,
        &mut rng(context.seed, 0),
    )?;
    let (w, g) = (&joint.state.factors[0], joint.state.factors[1].transpose());
    let s = DMatrix::from_diagonal(&joint.state.weights);
    let p = w * &s * &g;
    let by_cell = DMatrix::from_fn(M, N, |i, j| joint.state.with_model(|m| m.cell(&[i, j])));
    let symmetric = (&p - by_cell).amax() / p.amax();

    let plsa = Plsa::builder(K).build()?;
    let mut conditional = plsa.fit(
        &data,
        &PlsaInit::default(),
        &stop,
        &mut rng(context.seed, 1),
    )?;
    let bound = plsa.on(&data)?;
    bound.step(&mut conditional.state, false)?;
    let (basis, mixture) = (&conditional.state.basis, &conditional.state.mixture);
    let scale = DMatrix::from_diagonal(&DVector::from_vec(bound.marginal()));
    let product = basis * mixture * &scale;
    let sums = data.marginal(1);
    let off = |j: usize| (product.column(j).sum() * data.total() / sums[j] - 1.0).abs();
    let columns = largest((0..N).map(off));
    // The joint log-likelihood of W G S, cell by cell.
    let ln_lik: f64 = v.iter().zip(&product).map(|(v, p)| v * p.ln()).sum();
    let fit = divergence(&data, ln_lik);

    let panel = |title: &str, m: &DMatrix<f64>, x: &str, y: &str| {
        Panel::density(
            title,
            &matrix_rows(m),
            &Axis::bare(x, m.ncols()),
            &Axis::bare(y, m.nrows()),
        )
        .without_numbers()
    };
    let panels = vec![
        panel("P  =", &p, "x2", "x1"),
        panel("W  ·", w, "z", "x1"),
        panel("S  ·", &s, "z", "z"),
        panel("G", &g, "x2", "z"),
        panel("V  ≈", &v, "x2", "x1"),
        panel("W  ·", basis, "z", "x1"),
        panel("G  ·", mixture, "x2", "z"),
        panel("S", &scale, "x2", "x2"),
    ];
    let files = context.picture(FIGURE.name, 4, (300.0, 290.0), panels)?;
    let data = Data::generated("24 x 30 product of smooth spectra and activities, rank 3");
    Ok(vec![
        context.below(
            "max |P - W S G| / max P < 1e-14",
            symmetric,
            1e-14,
            &data,
            &files,
        ),
        context.below(
            "W G S: largest relative error of a column sum < 1e-12",
            columns,
            1e-12,
            &data,
            &files,
        ),
        context.below("D/v of V against W G S < 1e-3", fit, 1e-3, &data, &files),
    ])
}
