//! CE, figure 3.1: the drums, and what plain PLCA makes of them.

use super::ce_drums::{DRUMS, Spectrogram, density, fit, generate, read};
use crate::Result;
use crate::reproduce::{Context, Entry, Figure, Measured};

pub(crate) const FIGURE: Figure = Figure {
    name: "ce_fig3_1",
    source: "[CE] figure 3.1",
    title: "The spectrogram of the drums, and six components without a prior",
    criterion: "Shown beside the figures that follow; the divergence is as measured.",
    run,
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
    let what = "D/v of six components, as measured";
    Ok(context.entry(
        what,
        Measured::Number(d),
        d.is_finite(),
        &drums.data,
        &files,
    ))
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let mut entries = vec![show(context, FIGURE.name, &generate(context))?];
    if let Some(drums) = read(context)? {
        let real = show(context, "ce_fig3_1_loop", &drums)?;
        // The gallery shows the pictures of the first entry.
        entries[0].files.extend(real.files.iter().cloned());
        entries.push(real);
    }
    Ok(entries)
}
