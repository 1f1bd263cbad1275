//! `plca select siplca`: numbers of components, and extents of kernels.

use plca_fit::Solver;
use plca_run::kernel_of;
use serde_json::json;

use crate::args::SelectArgs;
use crate::failure::Failure;
use crate::limits::ranks;
use crate::models::made::{check_order, made, of_options, reasonable};
use crate::select::table::{Table, table};

/// Scores of every kernel with every number of components.
pub(super) fn scores(args: &SelectArgs) -> Result<Table, Failure> {
    let ranks = ranks(&args.ranks)?;
    if args.kernel.is_empty() {
        return Err(Failure::usage("--kernel is needed"));
    }
    table(args, (args.model, Solver::Em), |shape| {
        let model = |(kernel, rank): (&[usize], usize)| {
            check_order(kernel, shape)?;
            reasonable(rank, kernel, shape)?;
            let mut request = of_options(&args.options, rank);
            request.options.set("kernel", kernel_of(kernel));
            let label = json!({ "rank": rank, "kernel": kernel });
            Ok((made(args.model, &request, shape)?, label))
        };
        let kernels = args.kernel.iter().map(|k| k.0.as_slice());
        let sizes = kernels.flat_map(|kernel| ranks.iter().map(move |&rank| (kernel, rank)));
        let all = sizes.map(model).collect::<Result<Vec<_>, Failure>>()?;
        Ok(all.into_iter().unzip())
    })
}
