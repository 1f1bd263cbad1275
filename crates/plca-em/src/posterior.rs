//! What a fitted model says of a cell, and data drawn from it.

use plca_dist::random::Categorical;
use plca_tensor::{Coordinates, Cp, Real};
use rand::Rng;

use crate::EmError;

/// The probability of each component given a cell, `P(z | x)`: `K` numbers that sum to 1, or `None` where the model gives the cell no
/// probability.
///
/// ```math
/// P(z \mid x) = \frac{P(z) \prod_j F_j[x_j, z]}{\sum_{z'} P(z') \prod_j F_j[x_j, z']}
/// ```
///
/// `F_j` is the factor of mode `j`, `I_j x K`. The posteriors of other cells are never computed or stored.
///
/// # Panics
///
/// If `index` has not one entry for every mode, or one that is not below the size of its mode.
///
/// # Examples
///
/// ```
/// use plca_em::nalgebra::{self, dmatrix};
/// use plca_em::tensor::{Factor, Cp};
/// let (w, h) = (dmatrix![1.0, 0.5; 0.0, 0.5], dmatrix![0.5, 0.5; 0.5, 0.5]);
/// let model = Cp { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&w), Factor::Columns(&h)] };
/// assert_eq!(plca_em::posterior(&model, &[1, 0]), Some(vec![0.0, 1.0]));
/// ```
pub fn posterior<T: Real>(model: &Cp<'_, T>, index: &[usize]) -> Option<Vec<f64>> {
    let joint: Vec<f64> = (0..model.components())
        .map(|z| model.joint(index, z))
        .collect();
    let total: f64 = joint.iter().sum();
    // [SI eq. 2] [LV eq. 12] [SPEC 1.1] R[x,z] = P(z) Π_j P(x_j | z) / P[x]
    (total > 0.0).then(|| joint.iter().map(|p| p / total).collect())
}

/// Draws `draws` events from a model: first `z`, then every `x_j` given `z`.
///
/// ```math
/// P(z) \propto w_z \prod_j \sum_i F_j[i, z], \qquad P(x_j = i \mid z) \propto F_j[i, z]
/// ```
///
/// `w` are the weights, `K` numbers, and `F_j` is the factor of mode `j`, `I_j x K`. Every event is an entry with value 1, so that
/// duplicates add up to counts. Cost `O(K Σ I_j + N draws)` for `N` modes.
///
/// # Errors
///
/// [`EmError::NoMass`] if the model has no mass.
///
/// # Examples
///
/// ```
/// use plca_em::nalgebra::{self, dmatrix};
/// use plca_em::tensor::{Cp, Data, Factor, SparseTensor};
/// let (w, h) = (dmatrix![1.0, 0.0; 0.0, 1.0], dmatrix![0.5, 0.0; 0.5, 1.0]);
/// let model = Cp { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&w), Factor::Columns(&h)] };
/// let events = plca_em::sample_counts(&model, 1000, &mut plca_em::seed(0))?;
/// assert_eq!(SparseTensor::new(events)?.total(), 1000.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sample_counts<T: Real, R: Rng + ?Sized>(
    model: &Cp<'_, T>,
    draws: usize,
    rng: &mut R,
) -> Result<Coordinates<T>, EmError> {
    let sums: Vec<Vec<T>> = model.factors.iter().map(|f| f.component_sums()).collect();
    let weight = |z: usize| {
        let w = model.weights.map_or(1.0, |w| w[z].to_f64());
        sums.iter().fold(w, |p, s| p * s[z].to_f64())
    };
    let weights: Vec<f64> = (0..model.components()).map(weight).collect();
    let components = Categorical::new(&weights).map_err(|_| EmError::NoMass)?;
    let tables: Vec<Option<Vec<Categorical>>> = (0..model.components())
        .map(|z| {
            let tables = model.factors.iter().map(|f| {
                let column: Vec<f64> = (0..f.rows()).map(|i| f.get(i, z).to_f64()).collect();
                Categorical::new(&column).ok()
            });
            tables.collect()
        })
        .collect();
    let mut indices = Vec::with_capacity(draws * model.factors.len());
    for _ in 0..draws {
        // A component without mass is never drawn.
        if let Some(tables) = &tables[components.sample(rng)] {
            indices.extend(tables.iter().map(|t| t.sample(rng) as u32));
        }
    }
    let shape = model.factors.iter().map(|f| f.rows()).collect();
    let values = vec![T::one(); indices.len() / model.factors.len()];
    Ok(Coordinates {
        shape,
        indices,
        values,
    })
}
