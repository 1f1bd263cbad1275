//! Models made of a command line or of the settings in a file.

use plca_fit::{FitError, setting::SettingValue};
use plca_run::{AnyModel, Options, Request, RunError, kernel_of};

use super::options::{need_matrix, temper};
use super::priors::priors;
use super::{Kind, Takes};
use crate::args::FitArgs;
use crate::failure::{Failure, chain};
use crate::given;
use crate::limits::parameters;

/// The model that a command line of `fit` asks for.
pub(crate) fn of_line(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<Box<dyn AnyModel>, Failure> {
    let entry = args.model;
    if entry.matrix {
        need_matrix(&args.data, &args.called, shape)?;
    }
    let mut options = args.options.clone();
    if let (true, (power, _)) = (entry.has("temper"), temper(args)?) {
        options.set("temper", SettingValue::Number(power));
    }
    if let Some(block) = entry.kernels {
        let kernel = kernel(args, shape, block)?;
        reasonable(rank, &kernel, shape)?;
        options.set("kernel", kernel_of(&kernel));
        check_powers(args)?;
    }
    let mut request = Request {
        components: rank,
        options,
        ..Request::default()
    };
    // Settings are the command line's fault, what follows that of the data, of files or of priors.
    let plain = entry.build(&request, shape).map_err(|e| match e {
        RunError::Shape(e) => Failure::by(&args.data, e),
        RunError::Fit(FitError::Setting {
            name,
            value,
            expected,
        }) if args.options.has(name) => {
            let option = name.replace('_', "-");
            Failure::usage(format!("--{option} {value}: expected {expected}"))
        }
        e => e.into(),
    })?;
    let about = |e| match e {
        RunError::Fit(e) | RunError::Shape(e) => Failure::by(&args.data, e),
        e => e.into(),
    };
    let extents = entry
        .extents(rank, &request.options, shape)
        .map_err(about)?;
    let each: Vec<_> = extents
        .iter()
        .map(|(name, all)| (*name, &all[..]))
        .collect();
    given::stacks(args, shape.len(), rank, &each)?;
    let file = args.priors.as_deref();
    if args.has_priors() {
        let blocks = entry.prior_blocks(rank, &request.options, shape);
        let blocks = blocks.map_err(about)?;
        request.priors = priors(&args.prior, file, &blocks)?;
    }
    request.frozen = given::frozen(args, shape)?.into_iter().collect();
    if request.priors.is_empty() && request.frozen.is_empty() {
        return Ok(plain);
    }
    entry.build(&request, shape).map_err(|e| match (e, file) {
        // Priors come from a file where there is one.
        (RunError::Fit(e), Some(path)) if !matches!(e, FitError::Conflict { .. }) => {
            Failure::by(path, e)
        }
        (RunError::Fit(e), _) => Failure::usage(chain(&e)),
        (e, _) => e.into(),
    })
}

/// The model of a request, whose settings are the command line's fault.
pub(crate) fn made(
    kind: Kind,
    request: &Request,
    shape: &[usize],
) -> Result<Box<dyn AnyModel>, Failure> {
    kind.build(request, shape).map_err(|e| match e {
        RunError::Fit(e) => Failure::usage(chain(&e)),
        e => e.into(),
    })
}

/// Refuses kernels that could not be held.
pub(crate) fn reasonable(rank: usize, kernel: &[usize], shape: &[usize]) -> Result<(), Failure> {
    let sizes = shape.iter().zip(kernel);
    let cells = sizes.fold(rank, |n, (i, k)| n.saturating_mul(i.saturating_add(*k)));
    parameters(cells, || {
        format!("{rank} kernels of {kernel:?} are too many for data of shape {shape:?}")
    })
}

/// Refuses a kernel of another order than the data.
pub(crate) fn check_order(kernel: &[usize], shape: &[usize]) -> Result<(), Failure> {
    if kernel.len() == shape.len() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--kernel: {} extents {kernel:?} for data of shape {shape:?}; expected {}, one for each dimension",
        kernel.len(),
        shape.len()
    )))
}

/// Refuses powers of blocks beside a solver that extrapolates.
fn check_powers(args: &FitArgs) -> Result<(), Failure> {
    let powers = ["anneal", "impulse_power"];
    let known: Vec<_> = powers
        .iter()
        .filter(|name| args.model.has(name))
        .map(|name| format!("--{}", name.replace('_', "-")))
        .collect();
    match args.extrapolated() {
        Some(option) if powers.iter().any(|name| args.options.has(name)) => {
            let powers = known.join(" or ");
            Err(Failure::usage(format!(
                "{option} cannot be combined with {powers}"
            )))
        }
        _ => Ok(()),
    }
}

/// Extents of the kernels, from `--kernel` or from the block of the kernels in `--init`.
fn kernel(args: &FitArgs, shape: &[usize], block: &str) -> Result<Vec<usize>, Failure> {
    let signed = args.model.takes != Takes::Counts;
    let kernel = match args.options.get::<Vec<usize>>("kernel")? {
        Some(kernel) => kernel,
        None => {
            let (given, _) = given::blocks(args, shape.len())?;
            let array = given.get(block).map(|array| &array.shape[..]);
            match (array, signed) {
                (Some([_, extents @ .., 2]), true) => extents.to_vec(),
                (Some([_, extents @ ..]), false) => extents.to_vec(),
                _ => {
                    let what = if signed { "atoms" } else { "kernels" };
                    return Err(Failure::usage(format!(
                        "--kernel is needed where --init gives no {what}"
                    )));
                }
            }
        }
    };
    check_order(&kernel, shape)?;
    if !signed && kernel.iter().zip(shape).any(|(k, n)| k > n) {
        let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
        let least: Vec<_> = kernel.iter().map(|k| format!("at least {k}")).collect();
        let what = format!(
            "the data are {}, expected {}, the extents of --kernel",
            sizes.join(" x "),
            least.join(" x ")
        );
        return Err(Failure::of(&args.data, what));
    }
    Ok(kernel)
}

/// The model of a name of which a command needs the settings alone.
pub(crate) fn of_options(options: &Options, components: usize) -> Request {
    Request {
        components,
        options: options.clone(),
        ..Request::default()
    }
}

/// Priors of a command line, for data of this shape.
pub(crate) fn with_priors(
    kind: Kind,
    mut request: Request,
    texts: &[String],
    shape: &[usize],
) -> Result<Request, Failure> {
    if !texts.is_empty() {
        let blocks = kind.prior_blocks(request.components, &request.options, shape)?;
        request.priors = priors(texts, None, &blocks)?;
    }
    Ok(request)
}
