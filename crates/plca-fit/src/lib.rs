//! plca-fit
