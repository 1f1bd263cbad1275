//! What Skellam models of shards share: the data are cut along their columns.

use plca_fit::FitError;
use plca_fit::shards::Survey;
use plca_tensor::arrange::Signed;
use plca_tensor::{Data, Real};

use crate::rule::Split;
use crate::signed::SignedData;
use crate::{Entries, Prior, Replicates};

/// What is known of a shard whose first column is this one of all data.
///
/// # Errors
///
/// [`FitError::Entry`] with the first cell of the shard that the law cannot have drawn.
pub(crate) fn survey<T: Real>(
    shard: &dyn Data<T>,
    first: usize,
    replicates: Replicates,
    real_data: bool,
) -> Result<Survey, FitError> {
    let cells = Signed::new(shard)?;
    replicates
        .check_data(&cells, real_data)
        .map_err(|e| match e {
            FitError::Entry {
                mut index,
                value,
                expected,
            } => {
                index[1] += first;
                FitError::Entry {
                    index,
                    value,
                    expected,
                }
            }
            e => e,
        })?;
    let mut survey = Survey::of(shard, 1);
    survey.observed = cells.observed() as u64;
    cells.for_each(&mut |_, _, v| survey.largest = survey.largest.max(v.abs()));
    Ok(survey)
}

/// Rows and columns of all data.
///
/// # Errors
///
/// [`FitError::Conflict`] for data that are no matrix, and for priors that differ from column to column.
pub(crate) fn shape(
    survey: &Survey,
    prior: Option<&Prior>,
    block: &str,
) -> Result<(usize, usize), FitError> {
    let &[rows, columns] = &survey.shape[..] else {
        let what = format!("data of shape {:?}, expected a matrix", survey.shape);
        return Err(FitError::Conflict { what });
    };
    let mut each = prior.into_iter().flat_map(|p| [&p.shape, &p.rate]);
    match each.any(|e| matches!(e, Entries::Each(_))) {
        true => Err(FitError::Conflict {
            what: format!(
                "`{block}` belongs to the samples of shards: its prior must be the same for all entries or for all entries of a component"
            ),
        }),
        false => Ok((rows, columns)),
    }
}

/// A shard under the law of all data: that of the largest value of all shards.
pub(crate) fn part<T: Real>(
    cells: Signed<T>,
    replicates: Replicates,
    survey: &Survey,
) -> SignedData<T> {
    SignedData {
        cells,
        split: Split::new::<T>(replicates, survey.largest),
        size: survey.absolute,
        noise: 0.0,
    }
}
