//! Kernels of two signs that are placed anywhere: `siskellam` and `siskellam-vb`.

use plca::fit::{Explained, Parameters, Settings, Transform};
use plca::priors::{Entries, PriorSpec};
use plca::skellam::{
    Reach, Reconstruct, ShiftedSnmf, ShiftedSnmfState, ShiftedSnmfVb, ShiftedSnmfVbState,
};
use plca::tensor::Data;

use super::skellam::{gamma, replicates};
use super::{Asked, Kind, Layout, annealing, dirichlet};
use crate::data::Scalar;
use crate::error::{Refused, wrong};
use crate::options::Options;

/// What a model is made of.
struct Given {
    kernel: Vec<usize>,
    reach: Vec<Reach>,
    shapes: Entries,
    gamma: [Entries; 2],
}

impl Given {
    /// Takes them out; `rate` is that of the activations without other word.
    fn of(options: &mut Options, k: usize, shape: &[usize], rate: f64) -> Result<Self, Refused> {
        let Some(kernel) = options.counts("kernel")? else {
            return wrong("`kernel` is None, expected an extent for every dimension of X");
        };
        if kernel.len() != shape.len() {
            return wrong(format!(
                "`kernel` is {kernel:?}, expected {} extents for X of shape {shape:?}",
                shape.len()
            ));
        }
        let reach = [
            ("valid", Reach::Valid),
            ("same", Reach::Same),
            ("full", Reach::Full),
        ];
        let taps: usize = kernel.iter().product();
        let mut settings = Self {
            reach: options.choices("support", &reach)?,
            kernel,
            shapes: Entries::All(1.0),
            gamma: [Entries::All(1.0), Entries::All(rate)],
        };
        for (name, setting) in options.named("prior")? {
            let refused = |what: String| Refused::Value(format!("`prior` of '{name}': {what}"));
            match name.as_str() {
                "atoms" => {
                    let size = (taps.saturating_mul(2), k);
                    let shapes = dirichlet(&setting, size, Layout::Columns);
                    settings.shapes = shapes.map_err(refused)?;
                }
                "activations" => settings.gamma = gamma(&setting).map_err(refused)?,
                _ => return Err(refused("no such block, expected atoms, activations".into())),
            }
        }
        Ok(settings)
    }
}

/// `build` of a model, with the rate of activations without other word, and what else its model is told.
macro_rules! builds {
    ($model:ident, $rate:expr, $more:expr) => {
        fn build<T: Scalar>(
            Asked { options, k, shape }: Asked<'_>,
        ) -> Result<Self::Model<T>, Refused> {
            let settings = Given::of(options, k, shape, $rate)?;
            let [a, b] = settings.gamma;
            let mut model = $model::new(k, settings.kernel);
            model = model.reach(settings.reach);
            model = model.replicates(replicates(options)?);
            model = model.prior("atoms", settings.shapes);
            model = model.prior("activations", PriorSpec::Gamma(a, b));
            if options.flag("real_data")? {
                model = model.real_data(true);
            }
            with_frozen!(model, options);
            Ok(Settings::checked($more(model, options)?)?)
        }

        fn explain<T: Scalar>(
            options: &mut Options,
            state: &Self::State<T>,
            data: &dyn Data<T>,
            _: usize,
            how: Transform,
        ) -> Result<Explained<Parameters<T>>, Refused> {
            let (k, shape) = (state.components(), data.shape());
            let model = Self::build::<T>(Asked { options, k, shape })?;
            Ok(model.transform(state, data, &how)?.untyped())
        }
    };
}

/// With the power of the kernels.
fn annealed(model: ShiftedSnmf, options: &mut Options) -> Result<ShiftedSnmf, Refused> {
    Ok(match annealing(options)? {
        Some(power) => model.anneal(power),
        None => model,
    })
}

pub(crate) struct ShiftedSkellam;

impl Kind for ShiftedSkellam {
    type State<T: Scalar> = ShiftedSnmfState<T>;
    type Model<T: Scalar> = ShiftedSnmf;

    builds!(ShiftedSnmf, 0.0, annealed);
}

pub(crate) struct ShiftedSkellamVb;

impl Kind for ShiftedSkellamVb {
    type State<T: Scalar> = ShiftedSnmfVbState<T>;
    type Model<T: Scalar> = ShiftedSnmfVb;

    builds!(ShiftedSnmfVb, 1e-3, |model, _| Ok::<_, Refused>(model));
}
