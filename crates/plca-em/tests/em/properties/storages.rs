//! One table in every storage.

use plca_tensor::strategies::Table;
use plca_tensor::{Data, Order, Real};

/// Data from a table: one of the storages.
pub(crate) type Storage<T> = dyn Fn(&Table<T>) -> Box<dyn Data<T>>;

/// The data in every storage that can hold them completely, with their names.
pub(crate) fn complete<T: Real>(table: &Table<T>) -> Vec<(&'static str, Box<dyn Data<T>>)> {
    let whole = table.clone().unmasked();
    vec![
        (
            "dense, row-major",
            Box::new(table.dense(Order::RowMajor).unwrap()),
        ),
        (
            "dense, column-major",
            Box::new(table.dense(Order::ColumnMajor).unwrap()),
        ),
        ("sparse", Box::new(table.sparse().unwrap())),
        (
            "masked, all seen",
            Box::new(whole.masked(Order::RowMajor).unwrap()),
        ),
        ("all but none", Box::new(whole.all_but().unwrap())),
        ("all stored", Box::new(whole.stored_only().unwrap())),
    ]
}

/// The observed part of the data in every masked storage.
pub(crate) fn masked<T: Real>(table: &Table<T>) -> Vec<(&'static str, Box<dyn Data<T>>)> {
    vec![
        (
            "masked, row-major",
            Box::new(table.masked(Order::RowMajor).unwrap()),
        ),
        (
            "masked, column-major",
            Box::new(table.masked(Order::ColumnMajor).unwrap()),
        ),
        ("all but hidden", Box::new(table.all_but().unwrap())),
        ("stored only", Box::new(table.stored_only().unwrap())),
    ]
}
