//! CE, figure 3.1: the drums, and what plain PLCA makes of them.

use super::ce_drums::{DRUMS, LOOP, Spectrogram, density, fit, generate, read};
use crate::Result;
use crate::report::Entry;
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "ce_fig3_1",
    source: "[CE] figure 3.1",
    title: "The spectrogram of the drums, and six components without a prior",
    criterion: "Shown beside the figures that follow; the divergence is as measured.",
    data: &[LOOP],
    run,
    control: None,
};

fn show(context: &Context, name: &str, drums: &Spectrogram) -> Result<Entry> {
    let (state, d) = fit(&drums.tensor()?, DRUMS, None, 200, context.seed)?;
    let panels = vec![
        drums.panel("drums (square root of magnitude)"),
        density("P(f | z)", state.factor(0), "component", "frequency"),
        density(
            "P(t | z)",
            &state.factor(1).transpose(),
            "frame",
            "component",
        ),
    ];
    let files = context.picture(name, 3, (420.0, 330.0), panels)?;
    let what = "D/v of six components";
    Ok(Entry::number(what, d, &drums.data, &files))
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let mut entries = vec![show(context, FIGURE.name, &generate(context))?];
    if let Some(drums) = read(context)? {
        entries.push(show(context, "ce_fig3_1_loop", &drums)?);
    }
    Ok(entries)
}
