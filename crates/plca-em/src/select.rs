//! Fits of several sizes to one data set, and the score that chooses among them.

use nalgebra::DMatrix;
use plca_fit::{FitError, Init, Model, Reconstruct, Stop};
use plca_tensor::Data;
use rand::Rng;

use crate::{
    EmError, HeldCells, HeldOut, Judged, ModelOrder, Plca, PlcaState, held_out_divergence,
    held_out_perplexity, hold_out, hold_out_cells,
};

/// The score by which the number of components is chosen; smaller is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Criterion {
    /// [`ModelOrder::bic`]; needs counts.
    #[default]
    Bic,
    /// [`ModelOrder::aic`].
    Aic,
    /// Of counts the perplexity of some that are held out, [`held_out_perplexity`]; of other data the divergence of cells that are held
    /// out, [`held_out_divergence`].
    HeldOut,
}

/// What is held out, of counts or of other numbers.
#[derive(Debug)]
enum Held<'a> {
    Counts(Box<HeldOut<'a, f64>>),
    Cells(HeldCells<f64>),
}

/// The scores of fits of several sizes to one data set; all are computed on the same data.
///
/// ```
/// use plca_em::{Criterion, Model, Plca, Reconstruct, Selection, effective_parameters};
/// use plca_em::tensor::{Data, DenseTensor, Order};
/// // Two blocks, which are two components.
/// let cell = |n: usize| if (n / 6 < 3) == (n % 6 < 3) { 30.0 } else { 0.0 };
/// let v = DenseTensor::<f64>::new(vec![6, 6], (0..36).map(cell).collect(), Order::RowMajor)?;
/// let rng = || plca_em::seed(0);
/// for criterion in [Criterion::Bic, Criterion::Aic, Criterion::HeldOut] {
///     let selection = Selection::new(&v, criterion, 0.1, rng())?;
///     let train = selection.train();
///     let score = |k| -> Result<f64, Box<dyn std::error::Error>> {
///         let fit = Plca::new(k).fit(train, &mut rng())?;
///         let density = |index: &[usize]| fit.state().cell(index) / train.total();
///         Ok(selection.score(fit.objective(), effective_parameters(&[6, 6], k), &density)?)
///     };
///     assert!(score(2)? < score(1)?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Selection<'a, R> {
    data: &'a dyn Data<f64>,
    criterion: Criterion,
    held: Option<(Held<'a>, R)>,
}

impl<'a, R: Rng + Clone> Selection<'a, R> {
    /// Prepares the scores of fits. For [`Criterion::HeldOut`] every count, or every cell of data that are not counts, is held out with
    /// probability `share`; `rng` draws them, and how they are cut in halves.
    ///
    /// # Errors
    ///
    /// [`EmError`]: those of [`hold_out`] and [`hold_out_cells`].
    pub fn new(
        data: &'a dyn Data<f64>,
        criterion: Criterion,
        share: f64,
        mut rng: R,
    ) -> Result<Self, EmError> {
        let held = match (criterion, data.summary().integers) {
            (Criterion::HeldOut, true) => {
                Some(Held::Counts(Box::new(hold_out(data, share, &mut rng)?)))
            }
            (Criterion::HeldOut, false) => {
                Some(Held::Cells(hold_out_cells(data, share, &mut rng)?))
            }
            _ => None,
        };
        Ok(Self {
            data,
            criterion,
            held: held.map(|held| (held, rng)),
        })
    }

    /// The data that models are to be fitted to: all, or what is not held out.
    pub fn train(&self) -> &dyn Data<f64> {
        match &self.held {
            None => self.data,
            Some((Held::Counts(parts), _)) => &parts.train,
            Some((Held::Cells(HeldCells { train, .. }), _)) => train,
        }
    }

    /// The score of a fit to [`train`](Self::train), smaller is better: its log-likelihood in nats, the number of its parameters, and the probability that it
    /// gives to a cell among those that were observed. Of a model that minimises a divergence, such as `Nmf`, `-fit.objective()` stands for the log-likelihood, up to a constant of
    /// the data.
    ///
    /// What is held out is judged under a mixture of the fit with the model of independent dimensions: see [`held_out_perplexity`].
    ///
    /// # Errors
    ///
    /// [`FitError`] for data that cannot be read.
    pub fn score(
        &self,
        ln_lik: f64,
        parameters: usize,
        density: &dyn Fn(&[usize]) -> f64,
    ) -> Result<f64, FitError> {
        let Some((held, rng)) = &self.held else {
            let order = ModelOrder::with_parameters(ln_lik, parameters, self.data.total());
            return Ok(match self.criterion {
                Criterion::Aic => order.aic,
                _ => order.bic,
            });
        };
        let (train, mut rng) = (self.train(), rng.clone());
        let (base, total) = (independent(train, &mut rng.clone())?, train.total());
        let judged = |index: &[usize], value, unit: f64| Judged {
            value,
            model: unit * density(index),
            base: unit * (base.cell(index) / total),
        };
        Ok(match held {
            Held::Counts(parts) => {
                let mut cells = Vec::new();
                let held = &parts.held;
                held.visit(&mut |index, n| cells.push(judged(index, n, 1.0)))?;
                held_out_perplexity(&cells, &mut rng)
            }
            Held::Cells(parts) => {
                let held = parts.held.iter();
                let cells: Vec<_> = held.map(|(index, x)| judged(index, *x, total)).collect();
                held_out_divergence(&cells, &mut rng)
            }
        })
    }
}

/// The model of independent dimensions.
fn independent(data: &dyn Data<f64>, rng: &mut dyn Rng) -> Result<PlcaState<f64>, FitError> {
    // The weight of one component is 1, whatever is drawn.
    let mut init = Init::default();
    for j in 0..data.shape().len() {
        let sums = data.marginal(j)?;
        let factor = DMatrix::from_vec(sums.len(), 1, sums);
        init = init.block(format!("factor_{j}"), factor);
    }
    let one = Plca::new(1);
    let run = one.on(data)?.stop(Stop::default().max_iter(0));
    Ok(run.run(init, rng)?.into_state())
}
