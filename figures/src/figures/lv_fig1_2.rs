//! LV, figures 1 and 2: the matrices of the symmetric and of the asymmetric model.

use nalgebra::{DMatrix, DVector};
use plca_dist::random::exponential;
use plca_em::{Plca, Plsa};
use plca_fit::{Fit, Init, Model, Stop};
use plca_tensor::{Data as _, DenseTensor, Order, normalise_columns};

use super::support::{
    best_matching, cosine, divergence, gaussian, largest, matrix_rows, rng, smallest,
};
use crate::Result;
use crate::plot::{Axis, Panel};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "lv_fig1_2",
    source: "[LV] figures 1 and 2",
    title: "Latent variable models as matrix products",
    criterion: "The matrices of both products are those that the data were made of: V = v W S G with S = diag P(z), and \
                V ~ W G S with S = diag P(x2). The best of five starts has D/v < 1e-3, all cosines are above 0.98 and priors \
                within 0.05; with a component less D/v stays above 0.02.",
    data: &[],
    run,
    control: Some(control),
};

const M: usize = 24;
const N: usize = 30;
const K: usize = 3;
const STARTS: u32 = 5;

/// What the data are made of: three spectra and their activities, which overlap, but each with a row and a column of its own, so
/// that no other product is the same.
struct Truth {
    /// `P(x1 | z)`.
    spectra: DMatrix<f64>,
    /// `v P(z, x2)`.
    activity: DMatrix<f64>,
}

impl Truth {
    fn new() -> Self {
        let bump = |i: usize, at: f64, width: f64| {
            let near = (i as f64 - at).abs() < 3.0 * width;
            if near {
                gaussian(i as f64, at, width * width)
            } else {
                0.0
            }
        };
        let mut spectra = DMatrix::from_fn(M, K, |i, z| {
            let shared = [[7.5, 7.5], [7.5, 16.5], [16.5, 16.5]][z];
            let overtones = bump(i, shared[0], 1.2) + bump(i, shared[1], 1.2);
            bump(i, 3.0 + 9.0 * z as f64, 1.2) + 0.2 * overtones
        });
        normalise_columns(&mut spectra);
        let activity = DMatrix::from_fn(K, N, |z, j| match z {
            0 => 3.0 * bump(j, 5.0, 2.0) + bump(j, 17.0, 1.0),
            1 => 2.4 * bump(j, 14.0, 2.0),
            _ => 1.8 * bump(j, 24.0, 2.0) + 0.5 * bump(j, 9.5, 0.8),
        });
        Self { spectra, activity }
    }

    /// `P(z)`.
    fn weights(&self) -> DVector<f64> {
        self.activity.column_sum() / self.activity.sum()
    }

    /// `P(z | x2)`.
    fn mixture(&self) -> DMatrix<f64> {
        let mut mixture = self.activity.clone();
        normalise_columns(&mut mixture);
        mixture
    }

    /// Which component of a fit is which.
    fn matching(&self, basis: &DMatrix<f64>) -> Vec<usize> {
        best_matching(K, |t, z| -cosine(self.spectra.column(t), basis.column(z)))
    }
}

fn fit<M: Model<f64>>(
    context: &Context,
    model: &M,
    data: &DenseTensor<f64>,
) -> Result<Fit<M::State>> {
    let run = model.on(data)?.restarts(STARTS);
    let run = run.stop(Stop::default().max_iter(2000).tol(1e-12));
    Ok(run.run(Init::default(), &mut rng(context.seed, 0))?)
}

/// `D/v` of data against a product of mass 1, cell by cell.
fn product_divergence(data: &DenseTensor<f64>, product: &DMatrix<f64>) -> f64 {
    let mut ln_lik = 0.0;
    let term = &mut |index: &[usize], v: f64| ln_lik += v * product[(index[0], index[1])].ln();
    data.visit(term).expect("data in memory");
    divergence(data, ln_lik)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let truth = Truth::new();
    measure(context, &truth.spectra * &truth.activity)
}

/// Noise in place of the product; for the weights, a product of other weights; for the component less, a product that has one less.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut draws = rng(context.seed, 500);
    let noise = DMatrix::from_fn(M, N, |_, _| exponential(&mut draws));
    let mut rows = measure(context, noise)?;
    rows.pop();
    let truth = Truth::new();
    let mut louder = truth.activity.clone();
    louder.row_mut(K - 1).scale_mut(10.0);
    rows[2] = measure(context, &truth.spectra * louder)?.swap_remove(2);
    let less = truth.spectra.columns(0, K - 1) * truth.activity.rows(0, K - 1);
    rows.extend(measure(context, less)?.pop());
    Ok(rows)
}

fn measure(context: &Context, v: DMatrix<f64>) -> Result<Vec<Entry>> {
    let truth = Truth::new();
    let data = DenseTensor::new(vec![M, N], v.as_slice().to_vec(), Order::ColumnMajor)?;

    let joint = fit(context, &Plca::new(K), &data)?.into_state();
    let (w, g) = (joint.factor(0), joint.factor(1).transpose());
    let s = DMatrix::from_diagonal(&DVector::from_column_slice(joint.weights()));
    let p = w * &s * &g;
    let order = truth.matching(w);
    let weights = truth.weights();
    let priors = largest((0..K).map(|t| (joint.weights()[order[t]] - weights[t]).abs()));
    let rows = truth.activity.transpose();
    let cosines = order.iter().enumerate().flat_map(|(t, &z)| {
        let of_row = cosine(rows.column(t), joint.factor(1).column(z));
        [cosine(truth.spectra.column(t), w.column(z)), of_row]
    });
    let alike = smallest(cosines);

    let conditional = fit(context, &Plsa::new(K), &data)?.into_state();
    let (basis, mixture) = (conditional.basis(), conditional.mixture());
    let scale = DMatrix::from_diagonal(&DVector::from_column_slice(conditional.marginal()));
    let product = basis * mixture * &scale;
    let order = truth.matching(basis);
    let known = truth.mixture();
    let spectra = order.iter().enumerate();
    let spectra = smallest(spectra.map(|(t, &z)| cosine(truth.spectra.column(t), basis.column(z))));
    let of_row = |(t, &z): (usize, &usize)| (mixture.row(z) - known.row(t)).amax();
    let mixtures = largest(order.iter().enumerate().map(of_row));

    let too_few = fit(context, &Plca::new(K - 1), &data)?;
    let too_few = divergence(&data, too_few.objective());

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
    let made_of = Data::generated("24 x 30 product of known spectra and activities, rank 3");
    let row = |what: &str, x: f64| Entry::number(what, x, &made_of, &files);
    Ok(vec![
        row("W S G: D/v of V", product_divergence(&data, &p)).below(1e-3),
        row(
            "W S G: smallest cosine with a known column of W or row of G",
            alike,
        )
        .above(0.98),
        row("W S G: largest error of P(z)", priors).below(0.05),
        row("W G S: D/v of V", product_divergence(&data, &product)).below(1e-3),
        row("W G S: smallest cosine with a known column of W", spectra).above(0.98),
        row("W G S: largest error of P(z | x2)", mixtures).below(0.05),
        row("two components: D/v", too_few).above(0.02),
    ])
}
