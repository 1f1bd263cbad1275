//! PLCA that is invariant to a given finite set of transformations.
//!
//! ```math
//! P(x) = \sum_z P(z) \sum_s H(s \mid z) \sum_{u : T_s(u) = x} a(s,u) \, K(u \mid z)
//! ```
//!
//! A kernel `K` is placed on the data by maps `T_s` of its cells: rotations, scales, flips, shifts, in any combination. Iterations are those of
//! expectation-maximisation, with `Q = V / P`:
//!
//! ```math
//! \begin{aligned}
//! K(u \mid z) &\propto K(u \mid z) \sum_s H(s \mid z) \, q(s,u) \\
//! H(s \mid z) &\propto H(s \mid z) \sum_u K(u \mid z) \, q(s,u) \\
//! q(s,u) &= a(s,u) \, Q[T_s(u)]
//! \end{aligned}
//! ```
//!
//! `[SPEC 5.7]`

mod evaluator;
mod maps;
mod set;
mod set_model;
mod state;

use plca_fit::{Algorithm, Anneal, FitError, Model, Settings, em::Em};
use plca_tensor::{Data, Real, check_counts};

use self::evaluator::Evaluator;
use crate::Likelihood;
use crate::placed::{
    Placed, check_powers, even_where_convex, is_conditional, likelihood_fact, numbers, specs,
};

pub use maps::{IndexMaps, MapEntry};
pub use set::{Positions, Transformation};
pub use state::TransformedState;

plca_fit::settings! {
    /// PLCA that is invariant to a given finite set of transformations: every component is a kernel, placed on the data by maps of its cells.
    ///
    /// ```math
    /// \begin{aligned}
    /// P(x) &= \sum_z P(z) \sum_s H(s \mid z) \sum_{u : T_s(u) = x} a(s,u) \, K(u \mid z) \\
    /// & \text{maximise} \quad \sum_x V[x] \ln P(x) - v \ln \sum_x P(x), \qquad v = \sum_x V[x]
    /// \end{aligned}
    /// ```
    ///
    /// `V` is the data, non-negative; `x` runs over its observed cells, `u` over the cells of a kernel, and map `s` takes the share `a(s,u)` of
    /// cell `u` to cell `T_s(u)`. The second term of the objective is 0 where no map leaves complete data, and is left out under
    /// [`Likelihood::Literal`]; the log-density of the priors is added. The blocks are `weights`, `P(z)` as a column of `K` numbers, `kernels`,
    /// a column of the kernel's cells for each component, and `impulses`, a column of the maps; all columns sum to 1.
    ///
    /// [`Transformed::new`](Self::new) and its setters make it, [`Model::fit`] fits it.
    ///
    /// ```
    /// use plca_em::{IndexMaps, Model, Transformed};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// // The pattern 1 3 as it is, and turned round.
    /// let v = DenseTensor::<f64>::new(vec![4], vec![1.0, 3.0, 6.0, 2.0], Order::RowMajor)?;
    /// let maps = IndexMaps::new(4, 2, &[0, 1,  1, 0,  1, 2,  2, 1,  2, 3,  3, 2])?;
    /// let fit = Transformed::new(1, maps).fit(&v, &mut plca_em::seed(0))?;
    /// assert_eq!((fit.state().kernels().shape(), fit.state().impulses().shape()), ((2, 1), (6, 1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Transformed(maps: IndexMaps), priors "" {
        /// The likelihood of models whose mass can lie outside the data (default: the likelihood given the data's window).
        pub likelihood: Likelihood = Likelihood::default();
        /// A power that the kernels are raised to, which grows to 1 (default: none). `[SPEC 5.3]`
        pub anneal: Option<Anneal> = None, some Anneal;
        /// A power of at least 1 that the impulses are raised to (default: none). `[SPEC 5.3]`
        pub impulse_power: Option<Anneal> = None, some Anneal;
    }
}

impl Transformed {
    fn on_data<'a, T: Real>(
        &self,
        data: &'a dyn Data<T>,
    ) -> Result<Placed<'a, T, Evaluator<T>>, FitError> {
        self.check()?;
        check_counts(data)?;
        let (maps, shape) = (&self.maps, data.shape());
        check_cells(maps, shape)?;
        let conditional = is_conditional(self.likelihood, maps.any_outside(), data)?;
        let mut specs = specs([maps.kernel_cells(), maps.maps()], self.components);
        self.blocks.apply(&mut specs)?;
        even_where_convex(&mut specs);
        let facts = facts(maps, shape, self.likelihood);
        Ok(Placed {
            data,
            evaluator: Evaluator::new(self.maps.clone(), self.likelihood, self.components, data)?,
            conditional,
            specs,
            powers: [self.anneal, self.impulse_power],
            facts,
        })
    }
}

impl Settings for Transformed {
    fn components(&self) -> usize {
        self.components
    }

    /// # Errors
    ///
    /// [`FitError::Setting`] without components, for a power out of range or one that lasts no time.
    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)?;
        check_powers(self.anneal, self.impulse_power)
    }
}

impl<T: Real> Model<T> for Transformed {
    type State = TransformedState<T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Box<dyn Algorithm<T> + 'a>, FitError> {
        Ok(Box::new(Em(self.on_data(data)?)))
    }
}

/// Refuses data of another number of cells than the maps lead to.
fn check_cells(maps: &IndexMaps, shape: &[usize]) -> Result<(), FitError> {
    let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
    if cells == Some(maps.cells()) {
        // A set knows data of its own shape without a table.
        return match maps.set_on(shape) {
            Some(_) => Ok(()),
            None => maps.tabulate().map(drop),
        };
    }
    Err(FitError::DataShape {
        got: shape.to_vec(),
        expected: vec![format!("{} cells", maps.cells())],
    })
}

const SHAPE: &str = "shape";
const KERNEL: &str = "kernel";
const MAPS: &str = "maps";
const SET: &str = "set";

/// What a state remembers: the shape of the data, the extents of a kernel, the maps, and the likelihood. Of maps that were made of a set, the numbers of the set; of
/// others four numbers for every entry, of which the cell of the data is -1 outside.
fn facts(
    maps: &IndexMaps,
    shape: &[usize],
    likelihood: Likelihood,
) -> Vec<(&'static str, Vec<f64>)> {
    let entry = |e: MapEntry| {
        let to = e.to.map_or(-1.0, |to| to as f64);
        [e.map as f64, e.from as f64, to, e.weight]
    };
    let made = match maps.set_on(shape) {
        Some(set) => (SET, set.numbers()),
        None => (MAPS, maps.entries().flat_map(entry).collect()),
    };
    vec![
        (SHAPE, numbers(shape)),
        (KERNEL, numbers(maps.kernel_shape())),
        made,
        likelihood_fact(likelihood),
    ]
}
