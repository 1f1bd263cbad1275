//! Priors on the blocks of a probabilistic factorization.
//!
//! A block is a matrix whose columns are distributions. A [`SimplexPrior`] turns the expected counts of the E-step into
//! the block that maximises the expected log-posterior: the M-step. The trait is object-safe, so models hold
//! `Arc<dyn SimplexPrior<T>>` and users add priors of their own. A [`RatePrior`] does the same for a block of rates.
//!
//! ```
//! use nalgebra::dmatrix;
//! use plca_priors::{Dirichlet, SimplexPrior, Step};
//! let prior = Dirichlet::symmetric(1.5)?;
//! let mut theta = dmatrix![0.5; 0.5];
//! prior.update(&dmatrix![3.0; 0.0], &mut theta, &Step::at(1))?;
//! assert_eq!(theta, dmatrix![3.5 / 4.0; 0.5 / 4.0]);
//! # Ok::<(), plca_priors::PriorError>(())
//! ```

extern crate self as plca_priors;

mod columns;
mod entries;
#[cfg(feature = "laws")]
pub mod laws;
mod rate_prior;
mod schedule;
mod simplex_prior;
mod spec;
mod table;

pub use entries::{Components, Entries};
pub use rate_prior::RatePrior;
pub use schedule::{Schedule, Scheduled, Weighted};
pub use simplex_prior::{PriorError, PriorRules, SimplexPrior, Step, check_counts};
pub use spec::{Own, PriorSpec};
pub use table::{PriorEntry, Priors, RatePriors};

/// A prior is one file and one line here. What a line names is public; `parse` of the file makes the prior from text.
macro_rules! table {
    ($table:ident of $prior:ident, $title:literal: $($file:ident::{$($item:ident),*} = $name:literal, $form:literal, $about:literal;)*) => {
        $(mod $file; pub use $file::{$($item),*};)*

        impl<T: plca_tensor::Real> $table<T> {
            #[doc = $title]
            pub const ALL: &'static [PriorEntry<dyn $prior<T>>] = &[$(PriorEntry {
                name: $name,
                form: $form,
                about: $about,
                parse: $file::parse,
            }),*];
        }
    };
}

macro_rules! priors {
    ($($line:tt)*) => { table! { Priors of SimplexPrior, "All priors on blocks of distributions.": $($line)* } };
}

/// The same of priors on rates.
macro_rules! rate_priors {
    ($($line:tt)*) => { table! { RatePriors of RatePrior, "All priors on blocks of rates.": $($line)* } };
}

priors! {
    dirichlet::{Dirichlet} = "dirichlet", "A", "Pseudo-counts A - 1 for every entry.";
    entropic::{Entropic} = "entropic", "BETA[r]", "Sparse columns for BETA > 0, flat ones for BETA < 0.";
    cross_entropy::{CrossEntropy, CrossEntropyOrder, CrossEntropyStep, pair_divergences} = "cross-entropy",
        "groups=0/0/1/1,between=A[r],within=B[r][,decrease=T][,floor=E]",
        "Makes columns of different groups differ and columns of one group alike; with decrease the prior fades within T iterations.";
    neighbours::{Neighbours} = "neighbours", "A[r][,exact]",
        "Makes neighbouring columns alike (A < 0) or different (A > 0); with r, A is a multiple of the counts of a column.";
    lagged::{Lagged} = "lagged", "groups=0/1,…,lags=1:W/2:W",
        "As cross-entropy, against the columns of 1, 2, ... samples before.";
    logistic_normal::{LogisticNormal} = "logistic-normal", "VARIANCE",
        "The logarithms of the entries are normal, with the logarithms of equal entries as means.";
    flat::{Flat} = "flat", "", "No preference.";
}

rate_priors! {
    gamma::{Gamma} = "gamma", "SHAPE,RATE", "Gamma distribution of every entry.";
    penalty::{Penalty} = "rate", "L1[,L2[,lagged]]",
        "Penalty of L1 times the sum and L2/2 times the sum of squares; with lagged the slope of the squares is taken at the old values.";
}
