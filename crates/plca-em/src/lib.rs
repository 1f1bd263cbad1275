//! plca-em
