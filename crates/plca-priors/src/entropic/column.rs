//! The entropic M-step of one column.
//!
//! With `β > 0` everything is written in the gap `g = s_max - s >= 0` between `s` and the largest `s` at which the largest count
//! is on a real branch, because the difference of rounded numbers would lose half the digits where the branches meet. The
//! unknown is `x = √(2g)`, in which both branches are smooth there.

use plca_dist::{lambert_wm1_gap, ln_lambert_w0_exp, ln_neg_lambert_w0_gap};

/// More entries than this are grouped by size for all that need not be exact.
const GROUPS: usize = 64;

/// Points at which a change of sign is looked for. [SPEC 6]
const GRID: i32 = 160;

/// Counts of about one size.
#[derive(Clone, Copy)]
struct Group {
    /// `c/|β|`.
    w: f64,
    /// `ln w_max - ln w`.
    gap: f64,
    /// How many.
    size: f64,
}

/// Leaves in `theta` a maximiser of `Σ c ln θ + β Σ θ ln θ` over the simplex. `total = Σ c`.
pub(super) fn maximise(counts: &[f64], total: f64, beta: f64, theta: &mut [f64]) {
    if total <= 0.0 {
        if beta < 0.0 {
            theta.fill(1.0 / theta.len() as f64);
        }
        return;
    }
    // A prior that weighs nothing beside the counts, and no prior.
    if !(total / beta.abs()).is_finite() {
        theta
            .iter_mut()
            .zip(counts)
            .for_each(|(t, c)| *t = c / total);
    } else if beta > 0.0 {
        sparse(counts, beta, theta);
    } else {
        flat(counts, -beta, theta);
    }
    let sum: f64 = theta.iter().sum();
    theta.iter_mut().for_each(|t| *t /= sum);
}

/// The positive counts as groups, exact if they are few.
fn groups(counts: &[f64], beta: f64, largest: f64) -> Vec<Group> {
    let positive = || counts.iter().filter(|&&c| c > 0.0);
    let gap = |c: f64| (largest / c).ln();
    let smallest = positive().fold(largest, |a, &b| a.min(b));
    if positive().count() <= GROUPS {
        let one = |&c: &f64| Group {
            w: c / beta,
            gap: gap(c),
            size: 1.0,
        };
        return positive().map(one).collect();
    }
    let per_gap = (GROUPS - 1) as f64 / gap(smallest).max(f64::MIN_POSITIVE);
    let mut sums = [(0.0, 0.0); GROUPS];
    for &c in positive() {
        let (sum, size) = &mut sums[((gap(c) * per_gap) as usize).min(GROUPS - 1)];
        *sum += c;
        *size += 1.0;
    }
    let used = sums.iter().filter(|(_, size)| *size > 0.0);
    used.map(|&(sum, size)| Group {
        w: sum / size / beta,
        gap: gap(sum / size),
        size,
    })
    .collect()
}

/// Newton's method for `f = 0` within a bracket, by bisection where it would leave it. `f` gives value and slope.
fn root(
    mut lo: f64,
    mut hi: f64,
    start: f64,
    rising: bool,
    mut f: impl FnMut(f64) -> (f64, f64),
) -> f64 {
    let mut x = start.clamp(lo, hi);
    for _ in 0..200 {
        let (value, slope) = f(x);
        if value == 0.0 {
            return x;
        }
        if (value > 0.0) == rising {
            hi = x;
        } else {
            lo = x;
        }
        let newton = x - value / slope;
        let next = if newton > lo && newton < hi {
            newton
        } else {
            0.5 * (lo + hi)
        };
        if (next - x).abs() <= 2.0 * f64::EPSILON * x.abs() {
            return next;
        }
        x = next;
    }
    x
}

/// `θ` on the branch `W_-1` and `dθ/dx`. [SPEC 6] θ = -w / W_-1(-w e^s)
#[inline]
fn lower(w: f64, gap: f64, x: f64) -> (f64, f64) {
    let p = -1.0 - lambert_wm1_gap(0.5 * x * x + gap).unwrap_or(-1.0);
    let theta = w / (1.0 + p);
    (theta, if p > 0.0 { -theta * x / p } else { -theta })
}

/// `θ` on the branch `W_0` and `dθ/dx`, for the largest count. [SPEC 6] θ = -w / W_0(-w e^s)
fn upper(w: f64, x: f64) -> (f64, f64) {
    let q = ln_neg_lambert_w0_gap(0.5 * x * x).unwrap_or(0.0);
    let theta = w * (-q).exp();
    (
        theta,
        if q < 0.0 {
            -theta * x / q.exp_m1()
        } else {
            theta
        },
    )
}

/// Which branch the largest count lies on.
#[derive(Clone, Copy, PartialEq)]
enum Largest {
    Lower,
    Upper,
}

/// `Σ θ - 1` and its slope.
fn excess(groups: impl Iterator<Item = Group>, w_max: f64, largest: Largest, x: f64) -> (f64, f64) {
    let mut total = (-1.0, 0.0);
    for Group { w, gap, size } in groups {
        let (theta, slope) = lower(w, gap, x);
        total = (total.0 + size * theta, total.1 + size * slope);
    }
    if largest == Largest::Upper {
        // It stands among the groups as if it were on the lower branch.
        let (low, high) = (lower(w_max, 0.0, x), upper(w_max, x));
        total = (total.0 - low.0 + high.0, total.1 - low.1 + high.1);
    }
    total
}

/// `J/β = Σ (w + θ) ln θ`.
fn value(groups: impl Iterator<Item = Group>, w_max: f64, largest: Largest, x: f64) -> f64 {
    let term = |w: f64, theta: f64| {
        if theta > 0.0 {
            (w + theta) * theta.ln()
        } else {
            0.0
        }
    };
    let all: f64 = groups
        .map(|g| g.size * term(g.w, lower(g.w, g.gap, x).0))
        .sum();
    match largest {
        Largest::Lower => all,
        Largest::Upper => {
            all - term(w_max, lower(w_max, 0.0, x).0) + term(w_max, upper(w_max, x).0)
        }
    }
}

fn sparse(counts: &[f64], beta: f64, theta: &mut [f64]) {
    let (mut top, mut largest) = (0, 0.0);
    for (i, &c) in counts.iter().enumerate() {
        if c > largest {
            (top, largest) = (i, c);
        }
    }
    let w_max = largest / beta;
    let total: f64 = counts.iter().sum::<f64>() / beta;
    let rough = groups(counts, beta, largest);
    let few = rough.iter().all(|g| g.size == 1.0);
    // Every entry as a group of its own; the logarithms once.
    let each: Vec<Group> = if few {
        rough.clone()
    } else {
        let positive = counts.iter().filter(|&&c| c > 0.0);
        positive
            .map(|&c| Group {
                w: c / beta,
                gap: (largest / c).ln(),
                size: 1.0,
            })
            .collect()
    };
    let roughly = |branch, x| excess(rough.iter().copied(), w_max, branch, x);
    let exactly = |branch, x| excess(each.iter().copied(), w_max, branch, x);

    // [SPEC 6] candidate A: all on W_-1. W_-1 <= -1 - g bounds g by Σw - 1.
    let mut best = None;
    if exactly(Largest::Lower, 0.0).0 >= 0.0 {
        let end = (2.0 * (total - 1.0).max(0.0)).sqrt();
        let near = root(0.0, end, end, false, |x| roughly(Largest::Lower, x));
        let x = if few {
            near
        } else {
            root(0.0, end, near, false, |x| exactly(Largest::Lower, x))
        };
        best = Some((Largest::Lower, x));
    }
    // [SPEC 6] candidates B: the largest on W_0, up to θ = 1
    let g_end = w_max - 1.0 - w_max.ln();
    if w_max < 1.0 && g_end > 0.0 {
        let end = (2.0 * g_end).sqrt();
        let at = |k: i32| end * 10f64.powf(6.0 * f64::from(k - GRID) / f64::from(GRID));
        let mut left = (0.0, roughly(Largest::Upper, 0.0).0);
        for k in 0..=GRID {
            let right = (at(k), roughly(Largest::Upper, at(k)).0);
            if (left.1 < 0.0) != (right.1 < 0.0) {
                let rising = right.1 >= 0.0;
                let near = root(left.0, right.0, 0.5 * (left.0 + right.0), rising, |x| {
                    roughly(Largest::Upper, x)
                });
                let candidate = if few {
                    Some(near)
                } else {
                    promising(&rough, w_max, best, near, total)
                        .then(|| {
                            refine(left.0, right.0, near, rising, end, |x| {
                                exactly(Largest::Upper, x)
                            })
                        })
                        .flatten()
                };
                if let Some(x) = candidate {
                    let of = |(branch, x)| value(each.iter().copied(), w_max, branch, x);
                    if best.is_none_or(|old| of((Largest::Upper, x)) > of(old)) {
                        best = Some((Largest::Upper, x));
                    }
                }
            }
            left = right;
        }
        // The sum is below 1 at one end and above it at the other: without candidate A there is a root.
        best = best.or_else(|| {
            Some((
                Largest::Upper,
                root(0.0, end, 0.5 * end, true, |x| exactly(Largest::Upper, x)),
            ))
        });
    }
    let (branch, x) = best.unwrap_or((Largest::Lower, 0.0));
    let mut entries = each.iter();
    for (t, &c) in theta.iter_mut().zip(counts) {
        *t = if c > 0.0 {
            entries.next().map_or(0.0, |g| lower(g.w, g.gap, x).0)
        } else {
            0.0
        };
    }
    if branch == Largest::Upper {
        theta[top] = upper(w_max, x).0;
    }
}

/// Whether a root of the grouped sum may be better than the best so far; grouping changes `J` far less than the margin.
fn promising(
    rough: &[Group],
    w_max: f64,
    best: Option<(Largest, f64)>,
    x: f64,
    total: f64,
) -> bool {
    let of = |branch, x| value(rough.iter().copied(), w_max, branch, x);
    best.is_none_or(|(branch, old)| of(Largest::Upper, x) > of(branch, old) - 0.01 * (1.0 + total))
}

/// The exact root near that of the grouped sum, from a bracket that is widened until it holds one.
fn refine(
    mut lo: f64,
    mut hi: f64,
    near: f64,
    rising: bool,
    end: f64,
    mut f: impl FnMut(f64) -> (f64, f64),
) -> Option<f64> {
    for _ in 0..8 {
        if (f(lo).0 < 0.0) == rising && (f(hi).0 >= 0.0) == rising {
            return Some(root(lo, hi, near, rising, f));
        }
        (lo, hi) = (lo * 0.8, (hi * 1.25).min(end));
    }
    None
}

fn flat(counts: &[f64], beta: f64, theta: &mut [f64]) {
    let n = counts.len() as f64;
    let largest = counts.iter().fold(0.0, |a: f64, &b| a.max(b));
    let rough = groups(counts, beta, largest);
    let zeros = n - rough.iter().map(|g| g.size).sum::<f64>();
    // [SPEC 6] θ = w / W_0(w e^s), e^-s without counts; dθ/ds = -θ / (1 + W_0)
    let entry = |ln_w: f64, s: f64| {
        let q = ln_lambert_w0_exp(ln_w + s).unwrap_or(0.0);
        let theta = (ln_w - q).exp();
        (theta, -theta / (1.0 + q.exp()))
    };
    let ln_sum = |sum: (f64, f64)| (sum.0.ln(), sum.1 / sum.0);
    let roughly = |s: f64| {
        let none = zeros * (-s).exp();
        ln_sum(rough.iter().fold((none, -none), |sum, g| {
            let (theta, slope) = entry(g.w.ln(), s);
            (sum.0 + g.size * theta, sum.1 + g.size * slope)
        }))
    };
    let ln_w: Vec<f64> = counts.iter().map(|&c| (c / beta).ln()).collect();
    let one = |l: f64, s: f64| {
        if l == f64::NEG_INFINITY {
            ((-s).exp(), -(-s).exp())
        } else {
            entry(l, s)
        }
    };
    let exactly = |s: f64| {
        ln_sum(ln_w.iter().fold((0.0, 0.0), |sum, &l| {
            let (theta, slope) = one(l, s);
            (sum.0 + theta, sum.1 + slope)
        }))
    };
    // Every θ is at least e^-s, and the largest at least 1/n. ln Σθ is convex and falls: from the left Newton's method cannot overshoot.
    let (lo, hi) = (n.ln(), n.ln() + n * largest / beta);
    let near = root(lo, hi, lo, false, roughly);
    let s = root(lo, hi, near, false, exactly);
    theta
        .iter_mut()
        .zip(&ln_w)
        .for_each(|(t, &l)| *t = one(l, s).0);
}
