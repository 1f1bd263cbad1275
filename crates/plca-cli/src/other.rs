//! `plca reconstruct`, `inspect`, `sample`, `select`.
