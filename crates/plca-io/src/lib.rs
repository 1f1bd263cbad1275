//! plca-io
