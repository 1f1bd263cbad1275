//! `plca inspect`: what is in a model file.

use serde_json::{Value, json};

use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::outputs::{print, printable};
use crate::saved;

pub(crate) fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    let file = saved::read(&args.model)?;
    if args.json {
        let arrays = file.arrays.iter();
        let arrays = arrays.map(|(name, a)| (name.clone(), json!({ "shape": a.shape })));
        let arrays: serde_json::Map<_, _> = arrays.collect();
        let all = json!({ "arrays": arrays, "metadata": file.metadata });
        return print(&format!("{}\n", printable(&all.to_string())));
    }
    let mut text = String::new();
    for (name, array) in &file.arrays {
        let low = array.values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = array
            .values
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let shape = format!("{:?}", array.shape);
        let name = printable(name);
        text.push_str(&format!("{name:<12} {shape:<16} {low:.6} .. {high:.6}\n"));
    }
    for (name, value) in file.metadata.as_object().into_iter().flatten() {
        let value = match value {
            Value::Array(values) if values.iter().all(Value::is_number) => {
                format!("{} numbers", values.len())
            }
            value => printable(&value.to_string()),
        };
        let name = printable(name);
        text.push_str(&format!("{name:<16} {value}\n"));
    }
    print(&text)
}
