//! Fitted parameters.

use nalgebra::DMatrix;
use plca_fit::{FitError, Parameters, Reconstruct, State, blocks::Blocks};
use plca_tensor::{DenseTensor, Order, Real};

use super::window::{Reach, Window};
use super::{AXES, KERNEL, SHAPE, SUPPORTS, facts, specs};

/// The fitted parameters of [`ShiftedSnmf`](super::ShiftedSnmf): atoms of two sides, and where they are.
///
/// ```math
/// E[V[x]] = \sum_k \sum_t \left( \theta^+[k,t] - \theta^-[k,t] \right) \lambda[k, x - t + o]
/// ```
///
/// ```
/// use skellam_snmf::nalgebra::{self, dmatrix};
/// use skellam_snmf::{Reach, Reconstruct, ShiftedSnmfState};
/// let atom = dmatrix![0.75; 0.0; 0.0; 0.25];                          // plus and minus of the first tap, then of the second
/// let state = ShiftedSnmfState::new(&[4], &[2], &[Reach::Valid], atom, dmatrix![4.0; 0.0; 8.0])?;
/// assert_eq!(state.cells(None)?.into_parts().1, [3.0, -1.0, 6.0, -2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftedSnmfState<T: Real> {
    parameters: Parameters<T>,
    window: Window,
}

plca_fit::serialised!(ShiftedSnmfState);

impl<T: Real> ShiftedSnmfState<T> {
    /// The state of atoms, `2 T x K` with both sides of a tap one after the other, and activations, a column of places for every component, on data of this
    /// shape.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for kernels without a place, [`FitError::Data`] for 2^31 cells, taps or places and more, [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`].
    pub fn new(
        shape: &[usize],
        kernel: &[usize],
        reach: &[Reach],
        atoms: DMatrix<T>,
        activations: DMatrix<T>,
    ) -> Result<Self, FitError> {
        let window = Window::new(shape, kernel, reach)?;
        let specs = specs(&window, atoms.ncols());
        let parameters = Parameters::new(&specs, vec![atoms, activations])?;
        let parameters = facts(&window)
            .into_iter()
            .fold(parameters, |at, (name, numbers)| {
                at.with_fact(name, numbers)
            });
        Ok(Self { parameters, window })
    }

    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    /// The atoms: a `2 T x K` matrix, `>= 0`, every column of which sums to 1; plus and minus of a tap stand one after the other.
    pub fn atoms(&self) -> &DMatrix<T> {
        self.parameters.at(0)
    }

    /// The activations, in the units of the data: a column of places for every component.
    pub fn activations(&self) -> &DMatrix<T> {
        self.parameters.at(1)
    }

    /// The extents of a kernel.
    pub fn kernel_shape(&self) -> &[usize] {
        &self.window.kernel
    }

    /// The extents of the places.
    pub fn places(&self) -> &[usize] {
        &self.window.places
    }

    fn signed(&self, component: Option<usize>) -> Vec<T> {
        let blocks = [self.atoms().as_slice(), self.activations().as_slice()];
        let [plus, minus] = self.window.rates(blocks, component);
        plus.into_iter().zip(minus).map(|(p, m)| p - m).collect()
    }
}

impl<T: Real> Reconstruct for ShiftedSnmfState<T> {
    fn shape(&self) -> Vec<usize> {
        self.window.shape.clone()
    }

    fn components(&self) -> usize {
        self.atoms().ncols()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        let sizes = self.window.shape.iter();
        let at = index.iter().zip(sizes).fold(0, |at, (&i, n)| at * n + i);
        self.signed(None)[at].to_f64()
    }

    fn cells(&self, component: Option<usize>) -> Result<DenseTensor<T>, FitError> {
        self.check_component(component)?;
        let values = self.signed(component);
        Ok(DenseTensor::new(self.shape(), values, Order::RowMajor)?)
    }
}

impl<T: Real> State for ShiftedSnmfState<T> {
    type Scalar = T;
    const NAME: &'static str = "siskellam";
    const BLOCKS: Blocks = &[("atoms", AXES[0]), ("activations", AXES[1])];

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let parameters = parameters.without_mass();
        let window = window_of(&parameters)?;
        parameters.check(&specs(&window, parameters.shape(0).1))?;
        Ok(Self { parameters, window })
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.parameters
    }
}

/// The window that parameters remember.
pub(super) fn window_of<T: Real>(parameters: &Parameters<T>) -> Result<Window, FitError> {
    let (shape, kernel) = (parameters.whole(SHAPE)?, parameters.whole(KERNEL)?);
    let supports = parameters.whole(SUPPORTS)?;
    let reach = supports.iter().map(|&number| match number {
        0 => Ok(Reach::Valid),
        1 => Ok(Reach::Same),
        2 => Ok(Reach::Full),
        _ => Err(FitError::Fact {
            name: SUPPORTS,
            got: number.to_string(),
            expected: "0, 1 or 2".into(),
        }),
    });
    Window::new(&shape, &kernel, &reach.collect::<Result<Vec<_>, _>>()?)
}
