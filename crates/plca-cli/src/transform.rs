//! `plca transform`.
