//! What a fit of data of either sign says of how it took them.

use plca_io::ModelFile;
use serde_json::{Value, json};
use skellam_snmf::Replicates;

use crate::args::FitArgs;

/// Rates that sum to more than this many times the data have run away.
const AWAY: f64 = 10.0;

/// Writes into a model of data of this sum of absolute values, over all cells, and into its summary, how they were taken: the number of replicates, the bound, and what both rates sum
/// to in parts of the data. A warning where they have run away.
pub(crate) fn describe(
    args: &FitArgs,
    absolute: f64,
    model: &mut ModelFile,
    summary: &mut Value,
) -> Option<String> {
    let scaled = args.options.get::<usize>("scale_mode").ok().flatten();
    let scaled = scaled.map(|mode| format!("factor_{mode}"));
    let names = scaled.iter().map(String::as_str);
    let mut names = names.chain(["activations", "weights"]);
    let rates = names.find_map(|name| model.arrays.get(name))?;
    let sum: f64 = rates.values.iter().sum();
    let cancellation = if absolute > 0.0 { sum / absolute } else { 0.0 };
    let m: Option<Replicates> = args.options.get("m").ok().flatten();
    let m = m.unwrap_or_default();
    let metadata = &mut model.metadata;
    metadata["m"] = json!(m.number().to_string());
    metadata["bound"] = metadata["facts"]["bound"][0].clone();
    metadata["cancellation"] = json!(cancellation);
    summary["cancellation"] = json!(cancellation);
    let unbounded = m.is_real() && metadata["bound"].is_null();
    (unbounded && cancellation > AWAY).then(|| {
        let remedy = match m {
            _ if args.model.name.ends_with("-vb") => {
                "the priors do not bound them: they have the unit of the data, give one of the activations with --prior BLOCK=gamma:SHAPE,RATE"
            }
            Replicates::Limit => "--replicates auto bounds them",
            _ => "a prior of them has taken the bound away: leave it out, or raise its rate",
        };
        format!(
            "both rates together sum to {cancellation:.0} times the data: without a bound the objective improves as they grow, whatever is reconstructed; {remedy}"
        )
    })
}
