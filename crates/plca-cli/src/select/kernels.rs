//! `plca select siplca`: numbers of components, and extents of kernels.

use plca_em::{Shifted, shifted_parameters};
use plca_fit::Solver;
use serde_json::json;

use plca_run::kernel_of;

use crate::args::SelectArgs;
use crate::failure::Failure;
use crate::limits::ranks;
use crate::models::made::{check_order, of_options, reasonable, typed};
use crate::select::table::{Candidate, Table, fitted, table};

/// Scores of every kernel with every number of components.
pub(super) fn scores<'a>(args: &'a SelectArgs) -> Result<Table, Failure> {
    let ranks = ranks(&args.ranks)?;
    if args.kernel.is_empty() {
        return Err(Failure::usage("--kernel is needed"));
    }
    table(args, |data| {
        let shape = data.shape();
        let candidate = |(kernel, rank): (&[usize], usize)| -> Result<Candidate<'a>, Failure> {
            check_order(kernel, shape)?;
            reasonable(rank, kernel, shape)?;
            let mut request = of_options(&args.options, rank);
            request.options.set("kernel", kernel_of(kernel));
            let shifted: Shifted = typed(args.model, &request, shape)?;
            let geometry = shifted.geometry(shape);
            let geometry = geometry.map_err(|e| Failure::by(&args.data, e))?;
            let cells = [geometry.kernel_cells(), geometry.impulse_cells()];
            let all = shape.iter().fold(1usize, |all, &n| all.saturating_mul(n));
            Ok(Candidate {
                size: json!({ "rank": rank, "kernel": kernel }),
                // [SPEC 9] never more than the cells less one
                parameters: shifted_parameters(cells, rank, false).min(all - 1),
                fit: Box::new(move |data| fitted(args, &shifted, Solver::Em, data)),
            })
        };
        let kernels = args.kernel.iter().map(|k| k.0.as_slice());
        let sizes = kernels.flat_map(|kernel| ranks.iter().map(move |&rank| (kernel, rank)));
        sizes.map(candidate).collect()
    })
}
