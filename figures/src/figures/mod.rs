//! The figures, one file and one line here for each.

mod ce_drums;
mod ce_fig3_1;
mod ce_fig3_2;
mod ce_fig4_3;
mod grid;
mod hs_faces;
mod hs_fig1;
mod hs_fig2;
mod hs_fig3;
mod hs_fig4_5;
mod hs_methods;
mod hs_propositions;
mod hs_words;
mod lv_fig1_2;
mod lv_fig3;
mod lv_fig4;
mod lv_fig5;
mod lv_fig6;
mod plsa_online;
mod plsa_topics;
mod si_appendix_d;
mod si_deconvolution;
mod si_fig1;
mod si_fig2;
mod si_fig3;
mod si_fig4;
mod si_fig5;
mod si_fig6;
mod si_fig7;
mod si_sizes;
mod sk_acceleration;
mod sk_clustering;
mod sk_elbo;
mod sk_fig1;
mod sk_fig2;
mod sk_fig3;
mod sk_fit;
mod sk_inpainting;
mod sk_known;
mod sk_online;
mod sk_table_3;
mod sk_tables_4_5;
mod sk_uci;
mod support;

use crate::reproduce::Figure;

/// Every figure, in the order of the report.
pub(crate) const FIGURES: &[&Figure] = &[
    &si_fig1::FIGURE,
    &si_fig2::FIGURE,
    &si_fig3::FIGURE,
    &si_fig4::FIGURE,
    &si_fig5::FIGURE,
    &si_fig6::FIGURE,
    &si_fig7::FIGURE,
    &si_deconvolution::FIGURE,
    &si_sizes::FIGURE,
    &si_appendix_d::FIGURE,
    &lv_fig1_2::FIGURE,
    &lv_fig3::FIGURE,
    &lv_fig4::FIGURE,
    &lv_fig5::FIGURE,
    &lv_fig6::FIGURE,
    &ce_fig3_1::FIGURE,
    &ce_fig3_2::FIGURE,
    &ce_fig4_3::FIGURE,
    &plsa_topics::FIGURE,
    &plsa_online::FIGURE,
    &hs_fig1::FIGURE,
    &hs_fig2::FIGURE,
    &hs_fig3::FIGURE,
    &hs_fig4_5::FIGURE,
    &hs_propositions::FIGURE,
    &sk_fig1::FIGURE,
    &sk_fig2::FIGURE,
    &sk_fig3::FIGURE,
    &sk_table_3::FIGURE,
    &sk_tables_4_5::FIGURE,
    &sk_inpainting::FIGURE,
    &sk_elbo::FIGURE,
    &sk_acceleration::FIGURE,
];
