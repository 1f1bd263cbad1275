//! plca-priors
