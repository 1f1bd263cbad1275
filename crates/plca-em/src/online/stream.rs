//! A pass over batches that come from somewhere.

use plca_fit::{FitError, Settings};
use plca_tensor::{Data, Real};

use super::{Online, OnlineState, Streamed};

/// The reason why a pass ended before its source did. What was learnt before is kept, and the rest of the batches may follow in another
/// call.
///
/// ```
/// use plca_em::{Online, Plsa, StreamError};
/// use plca_em::tensor::{DenseTensor, Order};
/// let learner = Online::new(Plsa::new(2));
/// let mut state = learner.init(&[2], &mut plca_em::seed(0))?;
/// let batch = DenseTensor::new(vec![2, 1], vec![3.0, 1.0], Order::RowMajor)?;
/// let failed = learner.fit_stream(&mut state, [Ok(batch), Err("the tape is torn")]);
/// assert_eq!(failed.unwrap_err(), StreamError::Source("the tape is torn"));
/// assert_eq!(state.batches, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError<E> {
    /// The source failed, in its own words.
    #[error("{0}")]
    Source(E),
    /// A batch was refused.
    #[error("batch {batch} of the stream")]
    Batch {
        /// Its number among all batches of the stream, from 0.
        batch: u64,
        /// Why.
        source: FitError,
    },
}

/// A summary of a pass over batches.
///
/// ```
/// use plca_em::{Online, Plsa, perplexity};
/// use plca_em::tensor::{DenseTensor, Order};
/// let learner = Online::new(Plsa::new(1));
/// let mut state = learner.init(&[2], &mut plca_em::seed(0))?;
/// let batches = || [[3.0, 1.0], [1.0, 3.0]].map(|v| DenseTensor::new(vec![2, 1], v.to_vec(), Order::RowMajor));
/// let pass = learner.fit_stream(&mut state, batches())?;
/// assert_eq!((pass.batches, pass.mass), (2, 8.0));
/// assert!(perplexity(pass.ln_lik, pass.mass) >= 2.0);                 // as good as nothing can be known
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Pass {
    /// Batches learnt.
    pub batches: u64,
    /// Their sum, hidden cells imputed.
    pub mass: f64,
    /// Sum of their [`ln_lik`](super::Batch::ln_lik): each under the factors that it met.
    pub ln_lik: f64,
}

impl<M> Online<M> {
    /// Learns from all batches of a source, in its order, holding one at a time; then the pass has ended.
    ///
    /// # Errors
    ///
    /// [`StreamError`]: settings that are refused, before a batch is read; the first error of the source or of [`partial_fit`](Self::partial_fit).
    /// The state is that after the last good batch and the pass goes on: another call with the rest of the batches is as if nothing had happened.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_em::{Online, Plca};
    /// use plca_em::tensor::{DenseTensor, Order};
    /// let learner = Online::new(Plca::new(2));
    /// let mut state = learner.init(&[2], &mut plca_em::seed(0))?;
    /// // Frames as they would come from a file.
    /// let frames = (1..5).map(|t| DenseTensor::new(vec![2, 1], vec![f64::from(t), 1.0], Order::RowMajor));
    /// learner.fit_stream(&mut state, frames)?;
    /// assert_eq!((state.batches, state.total), (4, 14.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit_stream<T, X, E, I>(
        &self,
        state: &mut OnlineState<T>,
        batches: I,
    ) -> Result<Pass, StreamError<E>>
    where
        T: Real,
        M: Streamed<T>,
        X: Data<T>,
        I: IntoIterator<Item = Result<X, E>>,
    {
        let refused = |batch, source| StreamError::Batch { batch, source };
        self.check()
            .map_err(|source| refused(state.batches, source))?;
        let mut pass = Pass::default();
        for batch in batches {
            let batch = batch.map_err(StreamError::Source)?;
            let number = state.batches;
            let learnt = self.partial_fit(state, &batch);
            let learnt = learnt.map_err(|source| refused(number, source))?;
            pass.batches += 1;
            pass.mass += learnt.mass;
            pass.ln_lik += learnt.ln_lik;
        }
        state.end_pass();
        Ok(pass)
    }
}
