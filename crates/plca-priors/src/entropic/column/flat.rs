//! Columns that a negative strength makes flat: every entry lies on the branch `W_0`.

use plca_dist::lambert_w0_exp;

use super::{Group, SERIES, each_alone, groups, root};

/// Groups on the branch `W_0` of a positive argument, `W` followed as `s` moves.
pub(super) struct Flat<'a> {
    groups: &'a [Group],
    ln_w: Vec<f64>,
    big_w: Vec<f64>,
    s: f64,
    /// How many entries have no count.
    zeros: f64,
}

impl<'a> Flat<'a> {
    pub(super) fn new(groups: &'a [Group], ln_w_max: f64, zeros: f64, s: f64) -> Self {
        let ln_w: Vec<f64> = groups.iter().map(|g| ln_w_max - g.gap).collect();
        let big_w = ln_w.iter().map(|l| big_w(l + s)).collect();
        Self {
            groups,
            ln_w,
            big_w,
            s,
            zeros,
        }
    }

    /// `ln Σ θ` and its slope. [SPEC 6] θ = w / W_0(w e^s), e^-s without counts; dθ/ds = -θ / (1 + W_0)
    pub(super) fn ln_sum(&mut self, s: f64) -> (f64, f64) {
        let moved = s - self.s;
        let none = self.zeros * (-s).exp();
        let (mut sum, mut slope) = (none, -none);
        for ((w, l), group) in self.big_w.iter_mut().zip(&self.ln_w).zip(self.groups) {
            *w = follow_up(*w, moved, l + s).unwrap_or_else(|| big_w(l + s));
            let theta = group.size * group.w / *w;
            sum += theta;
            slope -= theta / (1.0 + *w);
        }
        self.s = s;
        (sum.ln(), slope / sum)
    }
}

/// `W + ln W = l` from the `W` of an `l` that was less by `moved`, by the series or Halley's method; `None` where they lead nowhere.
#[inline]
pub(super) fn follow_up(w: f64, moved: f64, l: f64) -> Option<f64> {
    if moved == 0.0 {
        return Some(w);
    }
    // The series up to W' = W/(1 + W) and W'' = W/(1 + W)³.
    let step = moved * w / (1.0 + w) * (1.0 + 0.5 * moved / ((1.0 + w) * (1.0 + w)));
    let mut next = w + step;
    if step.abs() <= SERIES * w {
        return Some(next);
    }
    for _ in 0..6 {
        let (u, f) = (1.0 + next, next + next.ln() - l);
        // Halley's step with f' = u/W and f'' = -1/W², cleared of its fractions.
        let step = f * next * u / (u * u + 0.5 * f);
        next -= step;
        // Never where the series led out of the domain.
        if step.abs() <= 1e-5 * next {
            return Some(next);
        }
    }
    None
}

/// `W` with `W + ln W = l`.
pub(super) fn big_w(l: f64) -> f64 {
    lambert_w0_exp(l).unwrap_or(1.0)
}

pub(super) fn flat(counts: &[f64], beta: f64, theta: &mut [f64]) {
    let n = counts.len() as f64;
    let largest = counts.iter().fold(0.0, |a: f64, &b| a.max(b));
    let ln_w_max = (largest / beta).ln();
    // Where c/|β| or its W_0 underflows, the entry is e^-s as without a count.
    let counted = |c: f64| c / beta > f64::MIN_POSITIVE;
    let rough = groups(counts, beta, largest, counted);
    let each = each_alone(counts, beta, largest, counted);
    let zeros = n - each.len() as f64;
    // Every θ is at least e^-s, and the largest at least 1/n. ln Σθ is convex and falls: from the left Newton's method cannot overshoot.
    let (lo, hi) = (n.ln(), n.ln() + n * largest / beta);
    let mut roughly = Flat::new(&rough, ln_w_max, zeros, lo);
    let near = root(lo, hi, lo, false, |s| roughly.ln_sum(s));
    let mut exactly = Flat::new(&each, ln_w_max, zeros, near);
    let s = root(lo, hi, near, false, |s| exactly.ln_sum(s));
    exactly.ln_sum(s);
    let mut entries = each.iter().zip(&exactly.big_w);
    for (t, &c) in theta.iter_mut().zip(counts) {
        let w = if counted(c) { entries.next() } else { None };
        *t = w.map_or_else(|| (-s).exp(), |(g, w)| g.w / w);
    }
}
