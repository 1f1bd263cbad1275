//! plca-tensor
