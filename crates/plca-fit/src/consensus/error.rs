//! Why fits have no consensus.

/// The reason why components of several fits were refused, or have no consensus.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConsensusError {
    /// Fits without components.
    #[error("`components` is 0, expected at least 1")]
    Components,
    /// An entry that is negative or not finite.
    #[error("spectrum {spectrum} has {value} in row {row}, expected a finite number >= 0")]
    Value {
        /// The component, counted from 0 over all fits.
        spectrum: usize,
        /// Row of its first such entry.
        row: usize,
        /// The entry.
        value: f64,
    },
    /// A component without mass, which has no direction.
    #[error("spectrum {spectrum} is all zeros")]
    Zero {
        /// The component, counted from 0 over all fits.
        spectrum: usize,
    },
    /// Too few components, or too many neighbours, for a local density.
    #[error(
        "a neighbourhood of {neighbourhood} gives {neighbours} neighbours among {spectra} spectra, {components} of each fit: expected at least 1 and fewer than all other spectra: take more fits or another neighbourhood"
    )]
    Neighbours {
        /// How many neighbours there would be.
        neighbours: f64,
        /// The neighbourhood.
        neighbourhood: f64,
        /// Components of all fits.
        spectra: usize,
        /// Components of one fit.
        components: usize,
    },
    /// Fewer components than the consensus is to have.
    #[error(
        "{kept} spectra are kept, expected at least {components}: raise the threshold of the local density"
    )]
    Kept {
        /// How many were kept.
        kept: usize,
        /// How many there are to be.
        components: usize,
    },
    /// A cluster whose components have no entry in common.
    #[error(
        "the medians of cluster {cluster}, with {members} members, are all 0: lower the threshold of the local density or the rank"
    )]
    Median {
        /// The cluster.
        cluster: usize,
        /// How many members it has.
        members: usize,
    },
}
