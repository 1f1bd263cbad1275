//! `siplca`: kernels shifted along any dimensions, any order.

use std::path::Path;

use nalgebra::DMatrix;
use plca_dist::random::Categorical;
use plca_em::{
    EmError, FoldIn, Geometry, Likelihood, Outcome, Progress, Shifted, ShiftedBuilder, ShiftedInit,
    ShiftedState, Solver, Support,
};
use plca_fit::{Carried, Direction, Observer, Stop};
use plca_io::{Array, Element};
use plca_tensor::{Data, DenseTensor, Order};
use rand_chacha::ChaCha8Rng;

use super::accelerated::accelerated;
use super::options::refuse;
use super::priors::{Block, emptying, priors};
use super::{CommandModel, ModelKind, siplca_select};
use crate::approximation::Approximation;
use crate::args::{
    self, Acceleration, FitArgs, MissingMethod, PlaceArgs, Precision, SelectArgs, TransformArgs,
};
use crate::before;
use crate::blocks::{
    Arrays, ITERATION, count, keep_fixed, lacking, number, take_count, take_vector, vector,
};
use crate::data::{Loaded, load};
use crate::failure::Failure;
use crate::given;
use crate::limits::parameters;
use crate::saved::Saved;
use crate::select::Table;
use crate::transform::{Found, along, fold_in};

/// The model `siplca`.
pub(crate) struct ShiftInvariant;

impl ModelKind for ShiftInvariant {
    fn name(&self) -> &'static str {
        "siplca"
    }

    fn about(&self) -> &'static str {
        "Shift-invariant PLCA of any order"
    }

    fn blocks(&self, _: usize) -> Vec<String> {
        ["weights", "kernels", "impulses"]
            .map(String::from)
            .to_vec()
    }

    fn component_axis(&self, _: &str) -> usize {
        0
    }

    fn shifts(&self) -> bool {
        true
    }

    fn fit(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => fit::<f64>(args),
            Precision::F32 => fit::<f32>(args),
        }
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        siplca_select::scores(args)
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let model = Learned::take(&mut file)?;
        let order = model.shape.len();
        let along = along(args, order - 1, |d| d < order)?;
        let config = model.config.build()?;
        let others = model.places.iter().enumerate().filter(|&(d, _)| d != along);
        let each = others.fold(model.state.weights.len(), |n, (_, &m)| n.saturating_mul(m));
        let mut found = fold_in(
            args,
            along,
            each,
            |data, how| {
                let got = data.shape();
                let differs = |d: usize| d != along && got[d] != model.shape[d];
                if got.len() != order || (0..order).any(differs) {
                    let mut expected: Vec<_> = model.shape.iter().map(usize::to_string).collect();
                    expected[along] = "any".into();
                    return Err(EmError::Data {
                        got: got.to_vec(),
                        expected: expected.join(" x "),
                    });
                }
                // What shifts does not separate: `auto` is EM.
                let how = FoldIn {
                    solver: Solver::Em,
                    ..*how
                };
                config.fold_in(data, &model.state.kernels, &how)
            },
            |state| {
                let mut places = model.places.clone();
                places[along] = 1;
                places[along] = state.impulses.nrows() / places.iter().product::<usize>();
                [
                    ("weights".to_string(), vector(&state.weights)),
                    ("impulses".to_string(), array(&state.impulses, &places)),
                ]
                .into()
            },
        )?;
        // There is one gap for all observations.
        if let Some(gap) = found.arrays.get_mut("gap") {
            gap.shape.clear();
        }
        Ok(found)
    }

    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        // There is a scale in the file where cells were hidden or outside of the data.
        let scale = file.metadata["scale"].as_f64().unwrap_or(file.total());
        let model = Learned::take(&mut file)?;
        // The model itself, not a window of it.
        let config = model.config.likelihood(Likelihood::Literal).build()?;
        Ok(Box::new(Convolution {
            shape: model.shape,
            config,
            state: model.state,
            scale,
        }))
    }
}

/// A block of a column for every component as an array `(K, extents…)`.
fn array<T: Element>(block: &DMatrix<T>, extents: &[usize]) -> Array<f64> {
    let shape = [&[block.ncols()], extents].concat();
    Array::new(shape, block.iter().map(|x| x.to_f64()).collect())
}

/// A block from an array `(K, extents…)`.
fn block<T: Element>(
    path: &Path,
    name: &str,
    array: Array<f64>,
    extents: &[usize],
) -> Result<DMatrix<T>, Failure> {
    match array.shape.split_first() {
        Some((&components, rest)) if rest == extents => {
            let cells = extents.iter().product();
            let values = array.values.into_iter().map(T::lit);
            Ok(DMatrix::from_iterator(cells, components, values))
        }
        _ => {
            let what = format!(
                "`{name}` has shape {:?}, K x {extents:?} is needed",
                array.shape
            );
            Err(Failure::of(path, what))
        }
    }
}

fn support(domain: args::Domain) -> Support {
    match domain {
        args::Domain::Valid => Support::Valid,
        args::Domain::Same => Support::Same,
        args::Domain::Full => Support::Full,
    }
}

fn fit<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let data: Loaded<T> = load(&args.data, &args.hidden)?;
    before::fit(args, &*data, |rank| {
        ShiftedCommand::new(args, rank, data.shape())
    })
}

struct ShiftedCommand<T: Element> {
    config: Shifted<T>,
    /// Shapes on the data that are fitted.
    geometry: Geometry,
    /// Hidden cells, or places outside the data, are part of the model.
    literal: bool,
    priors: bool,
    /// Blocks whose priors may empty them.
    emptying: Vec<String>,
    fix: Vec<String>,
}

/// Refuses kernels that could not be held.
pub(super) fn reasonable(rank: usize, kernel: &[usize], shape: &[usize]) -> Result<(), Failure> {
    let sizes = shape.iter().zip(kernel);
    let cells = sizes.fold(rank, |n, (i, k)| n.saturating_mul(i.saturating_add(*k)));
    parameters(cells, || {
        format!("{rank} kernels of {kernel:?} are too many for data of shape {shape:?}")
    })
}

/// Refuses a kernel of another order than the data.
pub(super) fn check_order(kernel: &[usize], shape: &[usize]) -> Result<(), Failure> {
    if kernel.len() == shape.len() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "a kernel of {} extents {kernel:?} does not fit data of shape {shape:?}",
        kernel.len()
    )))
}

/// Where and how the kernels are shifted.
pub(super) fn placed<T: Element>(
    mut builder: ShiftedBuilder<T>,
    places: &PlaceArgs,
) -> ShiftedBuilder<T> {
    if is_literal(places) {
        builder = builder.likelihood(Likelihood::Literal);
    }
    if !places.domain.is_empty() {
        builder = builder.supports(places.domain.iter().copied().map(support).collect());
    }
    if let Some(anneal) = places.anneal {
        builder = builder.anneal(anneal);
    }
    if let Some(power) = places.impulse_power {
        builder = builder.impulse_power(power);
    }
    builder
}

fn is_literal(places: &PlaceArgs) -> bool {
    places.likelihood == Some(args::Likelihood::Literal)
}

impl<T: Element> ShiftedCommand<T> {
    /// From the command line, for data of this shape.
    fn new(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Self, Failure> {
        refuse(args.given.is_some(), "--given", "siplca")?;
        refuse(args.update.is_some(), "--update", "siplca")?;
        let tempered = args.temper.is_some() || args.temper_prior;
        refuse(tempered, "--temper", "siplca")?;
        let multiplicative = args.missing_method == Some(MissingMethod::Multiplicative);
        refuse(multiplicative, "--missing-method multiplicative", "siplca")?;
        let shifts = &args.shifts;
        let powers = shifts.places.anneal.is_some() || shifts.places.impulse_power.is_some();
        if args.accelerate != Acceleration::None && powers {
            return Err(Failure::usage(
                "--accelerate goes with neither --anneal nor --impulse-power",
            ));
        }
        let kernel = kernel(args, shape)?;
        reasonable(rank, &kernel, shape)?;
        let mut builder = placed(Shifted::builder(rank, kernel), &shifts.places);
        for name in &args.fix {
            builder = match name.as_str() {
                "weights" => builder.freeze_weights(),
                "kernels" => builder.freeze_kernels(),
                _ => builder.freeze_impulses(),
            };
        }
        let geometry = builder.clone().build()?.geometry(shape);
        let geometry = geometry.map_err(|e| Failure::by(&args.data, e))?;
        let blocks = [
            Block::vector("weights", rank),
            Block::stack("kernels", geometry.kernel_shape(), rank),
            Block::stack("impulses", geometry.impulse_shape(), rank),
        ];
        let priors = priors(args, &blocks)?;
        let (any, emptying) = (!priors.is_empty(), emptying(&priors));
        for (name, prior) in priors {
            builder = with_prior(builder, &name, prior);
        }
        Ok(Self {
            config: builder.build()?,
            geometry,
            literal: is_literal(&shifts.places),
            priors: any,
            emptying,
            fix: args.fix.clone(),
        })
    }

    fn extents(&self, name: &str) -> &[usize] {
        if name == "kernels" {
            self.geometry.kernel_shape()
        } else {
            self.geometry.impulse_shape()
        }
    }

    fn take(
        &self,
        path: &Path,
        arrays: &mut Arrays,
        name: &str,
    ) -> Result<Option<DMatrix<T>>, Failure> {
        let array = arrays.remove(name);
        let array = array.map(|array| block(path, name, array, self.extents(name)));
        array.transpose()
    }
}

fn with_prior<T: Element>(
    builder: ShiftedBuilder<T>,
    name: &str,
    prior: plca_em::Prior<T>,
) -> ShiftedBuilder<T> {
    match name {
        "weights" => builder.weights_prior(prior),
        "kernels" => builder.kernels_prior(prior),
        _ => builder.impulses_prior(prior),
    }
}

/// Extents of the kernels, from `--kernel` or from the kernels in `--init`.
fn kernel(args: &FitArgs, shape: &[usize]) -> Result<Vec<usize>, Failure> {
    let kernel = match &args.shifts.kernel {
        Some(sizes) => sizes.0.clone(),
        None => {
            let (given, _) = given::blocks(args, shape.len())?;
            let given = given.get("kernels").map(|array| array.shape.iter().skip(1));
            let need = "--kernel is needed where --init gives no kernels";
            given
                .ok_or_else(|| Failure::usage(need))?
                .copied()
                .collect()
        }
    };
    check_order(&kernel, shape)?;
    Ok(kernel)
}

impl<T: Element> CommandModel for ShiftedCommand<T> {
    type Data = dyn Data<T>;
    type State = ShiftedState<T>;
    const OBJECTIVE: &'static str = "log_likelihood";

    fn start(
        &self,
        data: &Self::Data,
        mut given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<ShiftedState<T>, Failure> {
        let init = ShiftedInit {
            weights: take_vector(path, &mut given, "weights")?,
            kernels: self.take(path, &mut given, "kernels")?,
            impulses: self.take(path, &mut given, "impulses")?,
        };
        let mut state = self.config.init(data, &init, rng)?;
        for name in &self.fix {
            match (name.as_str(), &init.weights, &init.kernels, &init.impulses) {
                ("weights", Some(given), ..) => {
                    let mut weights = as_column(&state.weights);
                    keep_fixed(&mut weights, &as_column(given));
                    state.weights = weights.column(0).into_owned();
                }
                ("kernels", _, Some(given), _) => keep_fixed(&mut state.kernels, given),
                ("impulses", .., Some(given)) => keep_fixed(&mut state.impulses, given),
                _ => {}
            }
        }
        Ok(state)
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<ShiftedState<T>, Failure> {
        let lacks = |name: &str| lacking(path, name);
        let weights = take_vector(path, &mut arrays, "weights")?;
        let kernels = self.take(path, &mut arrays, "kernels")?;
        let impulses = self.take(path, &mut arrays, "impulses")?;
        Ok(ShiftedState {
            weights: weights.ok_or_else(|| lacks("weights"))?,
            kernels: kernels.ok_or_else(|| lacks("kernels"))?,
            impulses: impulses.ok_or_else(|| lacks("impulses"))?,
            iteration: take_count(path, &mut arrays, ITERATION)?,
        })
    }

    fn arrays(&self, _: &Self::Data, state: &ShiftedState<T>) -> Arrays {
        [
            ("weights".to_string(), vector(&state.weights)),
            (
                "kernels".to_string(),
                array(&state.kernels, self.geometry.kernel_shape()),
            ),
            (
                "impulses".to_string(),
                array(&state.impulses, self.geometry.impulse_shape()),
            ),
        ]
        .into()
    }

    fn restored(&self, state: &ShiftedState<T>) -> Vec<String> {
        let restored = |name: &&String| match name.as_str() {
            "weights" => plca_em::restored(&as_column(&state.weights)),
            "kernels" => plca_em::restored(&state.kernels),
            _ => plca_em::restored(&state.impulses),
        };
        self.emptying.iter().filter(restored).cloned().collect()
    }

    fn saved(&self, data: &Self::Data, state: &Self::State) -> Arrays {
        let mut arrays = self.arrays(data, state);
        arrays.insert(ITERATION.into(), count(state.iteration));
        arrays
    }

    fn iterate(
        &self,
        data: &Self::Data,
        acceleration: Acceleration,
        from: (Carried<Self::State>, Progress),
        stop: &Stop,
        observer: impl Observer<Carried<Self::State>>,
    ) -> Result<Outcome<Carried<Self::State>>, Failure> {
        accelerated(self.config.on(data)?, acceleration, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Maximise
    }

    fn scale(
        &self,
        data: &Self::Data,
        state: &ShiftedState<T>,
    ) -> Result<Option<Array<f64>>, Failure> {
        let em = self.config.on(data)?;
        let window = em.window_mass(state);
        if data.is_complete() && (self.literal || window == 1.0) {
            return Ok(None);
        }
        // [SPEC 4] [SPEC 5.2] s P, s = v_obs / Σ_obs P
        let approximation: f64 = em.reconstruct(state)?.iter().map(|x| x.to_f64()).sum();
        Ok(Some(number(approximation / window)))
    }

    fn ln_lik(&self, data: &Self::Data, state: &ShiftedState<T>) -> Result<Option<f64>, Failure> {
        Ok(if self.priors {
            Some(self.config.on(data)?.ln_lik(state)?)
        } else {
            None
        })
    }
}

/// A fitted model as read from its file.
struct Learned {
    /// Shape of the data it was fitted to.
    shape: Vec<usize>,
    /// Extents of its impulses.
    places: Vec<usize>,
    config: ShiftedBuilder<f64>,
    state: ShiftedState<f64>,
}

impl Learned {
    fn take(file: &mut Saved) -> Result<Self, Failure> {
        let shape = file.shape()?;
        let weights = file.vector("weights")?;
        let [kernels, impulses] = [file.array("kernels")?, file.array("impulses")?];
        let order = shape.len() + 1;
        if kernels.shape.len() != order || impulses.shape.len() != order {
            let what = format!(
                "blocks of order {}, the data have {}",
                kernels.shape.len(),
                order - 1
            );
            return Err(file.failure(what));
        }
        file.agree([weights.len(), kernels.shape[0], impulses.shape[0]])?;
        // An impulse's extent tells the support.
        let support = |d: usize| {
            let (i, k, m) = (shape[d], kernels.shape[d + 1], impulses.shape[d + 1]);
            match m {
                _ if k > i => None,
                m if m == i - k + 1 => Some(Support::Valid),
                m if m == i => Some(Support::Same),
                m if m == i + k - 1 => Some(Support::Full),
                _ => None,
            }
        };
        let supports: Option<Vec<Support>> = (0..shape.len()).map(support).collect();
        let supports = supports.ok_or_else(|| {
            let (k, m) = (&kernels.shape[1..], &impulses.shape[1..]);
            file.failure(format!(
                "kernels of {k:?} and impulses of {m:?} for data of shape {shape:?}"
            ))
        })?;
        let mut config =
            Shifted::builder(weights.len(), kernels.shape[1..].to_vec()).supports(supports);
        if file.metadata["settings"]["likelihood"] == "literal" {
            config = config.likelihood(Likelihood::Literal);
        }
        let places = impulses.shape[1..].to_vec();
        let columns = |array: Array<f64>| {
            let k = weights.len();
            DMatrix::from_iterator(array.values.len() / k, k, array.values)
        };
        Ok(Self {
            state: ShiftedState {
                kernels: columns(kernels),
                impulses: columns(impulses),
                weights,
                iteration: 0,
            },
            shape,
            places,
            config,
        })
    }
}

/// `scale P(x)`
struct Convolution {
    shape: Vec<usize>,
    config: Shifted<f64>,
    state: ShiftedState<f64>,
    scale: f64,
}

impl Convolution {
    fn room(&self) -> Result<Vec<f64>, Failure> {
        Ok(plca_io::room(&self.shape)?)
    }

    /// `P(x)` of every cell under a state.
    fn density(&self, state: &ShiftedState<f64>) -> Result<Vec<f64>, Failure> {
        // The model is evaluated for data; which ones does not matter but for their mass.
        let mut ones = self.room()?;
        let cells = self.shape.iter().product();
        ones.resize(cells, 1.0);
        // What it is evaluated into.
        drop(self.room()?);
        let ones = DenseTensor::new(self.shape.clone(), ones, Order::RowMajor);
        let ones = ones.map_err(EmError::from)?;
        let mut values = self.config.on(&ones)?.reconstruct(state)?;
        values.iter_mut().for_each(|x| *x /= cells as f64);
        Ok(values)
    }
}

impl Approximation for Convolution {
    fn shape(&self) -> Vec<usize> {
        self.shape.clone()
    }

    fn evaluate(&self, into: &mut Array<f64>) -> Result<(), Failure> {
        let density = self.density(&self.state)?.into_iter();
        into.values
            .iter_mut()
            .zip(density)
            .for_each(|(x, p)| *x = self.scale * p);
        Ok(())
    }

    fn components(&self) -> usize {
        self.state.weights.len()
    }

    fn component(&self, z: usize) -> Result<Vec<f64>, Failure> {
        let mut alone = self.state.clone();
        (0..alone.weights.len())
            .filter(|&k| k != z)
            .for_each(|k| alone.weights[k] = 0.0);
        self.density(&alone)
    }

    fn sample(
        &self,
        draws: u64,
        rng: &mut ChaCha8Rng,
        into: &mut Array<f64>,
    ) -> Result<(), Failure> {
        // What falls outside of the data is not seen: events are drawn among those that do not.
        let cells = Categorical::new(&self.density(&self.state)?).map_err(Failure::new)?;
        for _ in 0..draws {
            into.values[cells.sample(rng)] += 1.0;
        }
        Ok(())
    }
}

fn as_column<T: Element>(v: &nalgebra::DVector<T>) -> DMatrix<T> {
    DMatrix::from_column_slice(v.len(), 1, v.as_slice())
}
