//! New observations, alone and together.

use std::fmt::{Debug, Display};

use super::{Law, Violation};

/// Checks the transform of new observations against [`Law::Neighbours`]: what is said of an observation is the same, bit for bit, alone and in any
/// batch.
///
/// `explain` is told which of the observations are in the batch, by their numbers, and returns one result for each, in their order. All of them
/// together and the given batches are compared with every observation alone. Compare floating-point numbers by their bits.
///
/// # Errors
///
/// The [`Violation`], with the observation and the batch; [`Law::Accepts`] where a batch is refused.
///
/// # Examples
///
/// ```
/// use std::convert::Infallible;
/// use plca_fit::laws::{Law, check_neighbours};
/// let loudness = [1.0f64, 4.0, 5.0];
/// let shares = |batch: &[usize]| {
///     let total: f64 = batch.iter().map(|&n| loudness[n]).sum();
///     Ok::<_, Infallible>(batch.iter().map(|&n| (loudness[n] / total).to_bits()).collect::<Vec<_>>())
/// };
/// let logs = |batch: &[usize]| Ok::<_, Infallible>(batch.iter().map(|&n| loudness[n].ln().to_bits()).collect::<Vec<_>>());
/// assert!(check_neighbours(3, &[vec![2, 0]], logs).is_ok());
/// assert_eq!(check_neighbours(3, &[], shares).unwrap_err().law, Law::Neighbours);      // of what they are together
/// ```
pub fn check_neighbours<R: PartialEq + Debug, E: Display>(
    observations: usize,
    batches: &[Vec<usize>],
    explain: impl Fn(&[usize]) -> Result<Vec<R>, E>,
) -> Result<(), Violation> {
    let explained = |batch: &[usize]| {
        let refused = |e: E| Violation::new(Law::Accepts, format!("{batch:?} are refused: {e}"));
        let results = explain(batch).map_err(refused)?;
        match results.len() == batch.len() {
            true => Ok(results),
            false => {
                let details = format!("{} results for {batch:?}", results.len());
                Err(Violation::new(Law::Neighbours, details))
            }
        }
    };
    let all: Vec<usize> = (0..observations).collect();
    let alone = all.iter().map(|&n| explained(&[n]));
    let alone = alone.collect::<Result<Vec<_>, _>>()?;
    for batch in std::iter::once(&all).chain(batches) {
        for (&n, result) in batch.iter().zip(explained(batch)?) {
            let Some([own]) = alone.get(n).map(Vec::as_slice) else {
                let details = format!("{batch:?} names {n}, there are {observations} observations");
                return Err(Violation::new(Law::Neighbours, details));
            };
            if result != *own {
                let details = format!("observation {n} is {result:?} in {batch:?}, {own:?} alone");
                return Err(Violation::new(Law::Neighbours, details));
            }
        }
    }
    Ok(())
}
