//! The figures, one file and one line here for each.

mod ce_drums;
mod grid;
mod hs_faces;
mod hs_methods;
mod hs_words;
mod sk_clustering;
mod sk_fit;
mod sk_known;
mod sk_online;
mod sk_uci;
mod support;

use crate::reproduce::Figure;

/// Files of figures, in the order of the report.
macro_rules! figures {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// Every figure.
        pub(crate) const FIGURES: &[&Figure] = &[$(&$file::FIGURE,)*];
    };
}

figures! {
    si_fig1,
    si_fig2,
    si_fig3,
    si_fig4,
    si_fig5,
    si_fig6,
    si_fig7,
    si_deconvolution,
    si_sizes,
    si_appendix_d,
    lv_fig1_2,
    lv_fig3,
    lv_fig4,
    lv_fig5,
    lv_fig6,
    ce_fig3_1,
    ce_fig3_2,
    ce_fig4_3,
    plsa_topics,
    plsa_online,
    hs_fig1,
    hs_fig2,
    hs_fig3,
    hs_fig4_5,
    hs_propositions,
    sk_fig1,
    sk_fig2,
    sk_fig3,
    sk_table_3,
    sk_tables_4_5,
    sk_inpainting,
    sk_elbo,
    sk_acceleration,
    ext_signed_tensors,
    ext_signed_kernels,
    ext_neighbours,
    ext_turned_shapes,
    ext_frozen,
    ext_evidence,
    ext_sparsity,
}
