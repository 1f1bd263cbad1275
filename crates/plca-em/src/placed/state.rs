//! What fitted states of placed kernels say of data, the same wherever the kernels may lie.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use nalgebra::{DMatrix, DVector};
use plca_fit::{
    Explained, FitError, Parameters, State, Transform, blocks::SCALE, em::Em, explain::reached,
};
use plca_tensor::{Data, DataError, DenseTensor, Order, Part, Real};

use super::{Placed, Placing, parts, position, specs};
use crate::Likelihood;
use crate::explained::explained;
use crate::product::conflict;
use crate::shifted::evaluate::{Parts, Wanted};

/// Where kernels may lie on data of one shape.
pub(crate) trait Placement: Debug {
    /// Shape of the data.
    fn shape(&self) -> &[usize];

    /// Cells of a kernel, and places of an impulse.
    fn sizes(&self) -> [usize; 2];

    /// Whether a kernel can leave the data.
    fn leaves(&self) -> bool;

    /// `P` of all cells, in row-major order.
    fn cells<T: Real>(&self, at: Parts<'_, T>) -> Vec<T>;

    /// `P` of one cell.
    fn cell<T: Real>(&self, at: Parts<'_, T>, index: &[usize]) -> f64;

    /// `Σ P` over the data.
    fn inside<T: Real>(&self, at: Parts<'_, T>) -> f64;
}

/// What follows from the facts of the parameters of a state.
#[derive(Debug)]
pub(crate) struct Frame<P> {
    pub(crate) place: P,
    pub(crate) likelihood: Likelihood,
    /// What `P` is multiplied by, once that was asked for.
    scale: OnceLock<f64>,
}

impl<P: Placement> Frame<P> {
    /// Checks the parameters of a state.
    pub(crate) fn new<T: Real>(place: P, at: &Parameters<T>) -> Result<Arc<Self>, FitError> {
        let k = at.matrices().first().map_or(0, |w| w.nrows());
        at.check(&specs(place.sizes(), k))?;
        let likelihood = likelihood(at)?;
        at.check_scale(1)?;
        Ok(Arc::new(Self {
            place,
            likelihood,
            scale: OnceLock::new(),
        }))
    }

    /// What `P` is multiplied by in the scale of the data: under the conditional likelihood the window has their sum.
    fn scale<T: Real>(&self, at: &Parameters<T>) -> f64 {
        let conditional = self.likelihood == Likelihood::Conditional;
        *self.scale.get_or_init(|| match at.fact(SCALE) {
            Some(&[scale]) => scale,
            _ if self.place.leaves() && conditional => match self.place.inside(parts(at)) {
                inside if inside > 0.0 => at.mass() / inside,
                // All of the model lies outside: every cell is 0.
                _ => at.mass(),
            },
            _ => at.mass(),
        })
    }

    pub(crate) fn cell<T: Real>(&self, at: &Parameters<T>, index: &[usize]) -> f64 {
        self.scale(at) * self.place.cell(parts(at), index)
    }

    /// All cells, or what a component gives to them, in the scale of the data.
    pub(crate) fn cells<T: Real>(
        &self,
        at: &Parameters<T>,
        component: Option<usize>,
    ) -> Result<DenseTensor<T>, FitError> {
        let shape = self.place.shape().to_vec();
        check_room::<T>(&shape)?;
        let parts = parts(at);
        let parts = component.map_or(parts, |z| parts.component(z));
        let scale = T::lit(self.scale(at));
        let mut cells = self.place.cells(parts);
        cells.iter_mut().for_each(|p| *p *= scale);
        Ok(DenseTensor::new(shape, cells, Order::RowMajor)?)
    }
}

/// Makes `$state(parameters, frame)` a state. It has a function `place`, which reads from parameters where its kernels may lie.
macro_rules! placed_state {
    ($state:ident, $name:literal, kernels: $kernels:literal, impulses: $impulses:literal) => {
        impl<T: Real> PartialEq for $state<T> {
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }

        plca_fit::serialised!($state);

        impl<T: Real> $state<T> {
            /// The weights of the components, `P(z)`: `K` probabilities that sum to 1.
            pub fn weights(&self) -> &[T] {
                self.0.at(0).as_slice()
            }

            #[doc = $kernels]
            pub fn kernels(&self) -> &DMatrix<T> {
                self.0.at(1)
            }

            #[doc = $impulses]
            pub fn impulses(&self) -> &DMatrix<T> {
                self.0.at(2)
            }

            /// The likelihood that was maximised.
            pub fn likelihood(&self) -> Likelihood {
                self.1.likelihood
            }
        }

        impl<T: Real> Reconstruct for $state<T> {
            fn shape(&self) -> Vec<usize> {
                self.1.place.shape().to_vec()
            }

            fn components(&self) -> usize {
                self.weights().len()
            }

            fn cell(&self, index: &[usize]) -> f64 {
                self.1.cell(&self.0, index)
            }

            /// Under the conditional likelihood scaled so that the observed cells have the sum of the data.
            fn cells(&self, component: Option<usize>) -> Result<DenseTensor<T>, FitError> {
                self.check_component(component)?;
                self.1.cells(&self.0, component)
            }
        }

        impl<T: Real> State for $state<T> {
            type Scalar = T;
            const NAME: &'static str = $name;
            const BLOCKS: Blocks = &[
                ("weights", plca_fit::blocks::Axes::WEIGHTS),
                ("kernels", crate::placed::KERNELS),
                ("impulses", crate::placed::IMPULSES),
            ];

            fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
                let place = Self::place(&parameters)?;
                let frame = Frame::new(place, &parameters)?;
                Ok(Self(parameters, frame))
            }

            fn parameters(&self) -> &Parameters<T> {
                &self.0
            }
        }
    };
}

pub(crate) use placed_state;

/// Parameters of these blocks and facts.
pub(crate) fn parameters<T: Real>(
    sizes: [usize; 2],
    weights: &DVector<T>,
    blocks: [DMatrix<T>; 2],
    facts: Vec<(&'static str, Vec<f64>)>,
) -> Result<Parameters<T>, FitError> {
    let [kernels, impulses] = blocks;
    let column = DMatrix::from_column_slice(weights.len(), 1, weights.as_slice());
    let specs = specs(sizes, weights.len());
    let at = Parameters::new(&specs, vec![column, kernels, impulses])?;
    let facts = facts.into_iter();
    Ok(facts.fold(at, |at, (name, numbers)| at.with_fact(name, numbers)))
}

/// Refuses a mode to explain along.
pub(crate) fn refuse_along(how: &Transform) -> Result<(), FitError> {
    match how.along {
        None => Ok(()),
        _ => conflict("kernels lie along all modes of the data: there is none to explain along"),
    }
}

/// The part of the data that kernels reach from some place, `None` for all of them, and the sum of the rest.
pub(crate) fn possible<'a, T: Real>(
    place: &impl Placement,
    kernels: &DMatrix<T>,
    data: &'a dyn Data<T>,
    how: &Transform,
) -> Result<(Option<Part<'a, T>>, f64), FitError> {
    let k = kernels.ncols();
    let everywhere = place.cells(Parts {
        weights: &vec![T::one(); k],
        kernels: kernels.as_slice(),
        impulses: &vec![T::one(); place.sizes()[1] * k],
        window: None,
    });
    let is_reached = |index: &[usize]| everywhere[position(index, place.shape())] > T::zero();
    reached(data, is_reached, how.impossible)
}

/// Explains data by learnt kernels, which keep their bits: only `P(z)` and the impulses move, from everywhere the same. `shares` says of the kernels of
/// the start how much of a copy falls on observed cells, place by component.
pub(crate) fn explain<'a, S, E>(
    bound: Placed<'a, S::Scalar, E>,
    kernels: &DMatrix<S::Scalar>,
    how: &Transform,
    dropped: f64,
    shares: impl FnOnce(&DMatrix<S::Scalar>) -> Result<DMatrix<f64>, FitError>,
) -> Result<Explained<S>, FitError>
where
    S: State,
    E: Placing<S::Scalar> + Clone + 'a,
{
    let shares = shares(&bound.specs[1].given(kernels.clone())?)?;
    let mut given = bound.clone();
    // Copies of which little was observed have small counts.
    if shares.iter().any(|&share| share > 0.0 && share < 1e-6)
        && let Some(unmixed) = bound.evaluator.unmixed(bound.data)?
    {
        given.evaluator = unmixed;
    }
    let gap = |at: &Parameters<S::Scalar>| Ok(vec![gap_of(&given, at, &shares)]);
    // [SPEC 5.4] only P(z) and the impulses move
    let learnt = |j: usize| (j == 1).then_some(kernels);
    explained(Box::new(Em(bound)), learnt, how, dropped, Vec::new(), gap)
}

/// `max (g - 1)` over components and places, where with `a = P(z) H(h | z)`, of which `w[x]` falls on the cell `x`,
///
/// ```math
/// g = \frac{S}{v} \cdot \frac{\sum_\text{obs} w Q}{\sum_\text{obs} w},
/// \qquad S = \sum_\text{obs} P
/// ```
///
/// and without mass that could be hidden `g = Σ w Q / v`.
fn gap_of<T: Real, E: Placing<T>>(
    bound: &Placed<'_, T, E>,
    at: &Parameters<T>,
    shares: &DMatrix<f64>,
) -> f64 {
    let wanted = Wanted {
        blocks: [false, true],
        ln_lik: false,
        // Copies of which little was observed have next to nothing but what is imputed.
        imputed: false,
    };
    let e = bound.evaluator.expect(parts(at), wanted);
    if e.measured.lost {
        return f64::INFINITY;
    }
    let (total, seen) = (bound.data.total(), e.measured.seen);
    let mut worst: f64 = 0.0;
    for z in 0..shares.ncols() {
        for h in 0..shares.nrows() {
            let now = at.at(0)[z].to_f64() * at.at(2)[(h, z)].to_f64();
            let share = shares[(h, z)];
            if now <= 0.0 || share <= 0.0 {
                continue;
            }
            let ratio = e.blocks[1][z * shares.nrows() + h].to_f64() / e.scale / now / total;
            let g = match bound.conditional {
                true => ratio * (seen / share),
                false => ratio,
            };
            // [SPEC 1.5] L* - L <= v (max g - 1)
            worst = worst.max(g - 1.0);
        }
    }
    worst
}

/// The numbers of all cells of data of a shape that a state is to fill.
///
/// # Errors
///
/// [`DataError::TooLarge`] for more cells than memory holds.
fn check_room<T: Real>(shape: &[usize]) -> Result<(), DataError> {
    let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
    let reserved = cells.map(|cells| Vec::<T>::new().try_reserve_exact(cells));
    match reserved {
        Some(Ok(())) => Ok(()),
        _ => Err(DataError::TooLarge {
            shape: shape.to_vec(),
        }),
    }
}

const LIKELIHOOD: &str = "likelihood";

pub(crate) fn likelihood_fact(likelihood: Likelihood) -> (&'static str, Vec<f64>) {
    let literal = likelihood == Likelihood::Literal;
    (LIKELIHOOD, vec![f64::from(u8::from(literal))])
}

/// The likelihood that parameters remember.
fn likelihood<T: Real>(at: &Parameters<T>) -> Result<Likelihood, FitError> {
    match at.whole(LIKELIHOOD)?[..] {
        [0] => Ok(Likelihood::Conditional),
        [1] => Ok(Likelihood::Literal),
        _ => Err(FitError::Fact {
            name: LIKELIHOOD,
            got: format!("{:?}", at.fact(LIKELIHOOD).unwrap_or_default()),
            expected: "0, conditional, or 1, literal".into(),
        }),
    }
}
