//! plca-dist
