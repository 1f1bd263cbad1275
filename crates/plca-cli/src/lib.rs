//! plca-cli
