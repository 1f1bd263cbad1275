//! The entropic M-step of one column.
//!
//! With `β > 0` everything is written in the gap `g = s_max - s >= 0` between `s` and the largest `s` at which the largest count
//! is on a real branch, because the difference of rounded numbers would lose half the digits where the branches meet. The
//! unknown is `x = √(2g)`, in which both branches are smooth there.

mod flat;
#[cfg(test)]
mod tests;

use plca_dist::{lambert_wm1_gap, ln_neg_lambert_w0_gap};

use flat::flat;

/// More entries than this are grouped by size for all that need not be exact.
const GROUPS: usize = 64;
/// Counts below `e^-40` of the largest are one group: together they decide nothing.
const RANGE: f64 = 40.0;

/// Points at which a change of sign is looked for. [SPEC 6]
const GRID: i32 = 160;

/// Counts of less than this share of the strength could become subnormal on the way.
const LEAST: f64 = 1e-250;

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
    // Beside the prior these counts are as good as none: what they decide is decided by larger ones in their proportions.
    let lifted: Vec<f64>;
    let mut counts = counts;
    if total / beta.abs() < LEAST {
        let lift = LEAST * beta.abs() / total;
        lifted = counts.iter().map(|c| c * lift).collect();
        counts = &lifted;
    }
    let total: f64 = counts.iter().sum();
    // A prior that weighs nothing beside the counts, and no prior.
    if !(total / beta.abs()).is_finite() {
        theta.copy_from_slice(counts);
    } else if beta > 0.0 {
        sparse(counts, beta, theta);
    } else {
        flat(counts, -beta, theta);
    }
    let sum: f64 = theta.iter().sum();
    theta.iter_mut().for_each(|t| *t /= sum);
}

/// The counted entries as groups in the order of their gaps where they are many, one by one where they are few.
fn groups(counts: &[f64], beta: f64, largest: f64, counted: impl Fn(f64) -> bool) -> Vec<Group> {
    let used = || counts.iter().copied().filter(|&c| counted(c));
    let (number, smallest) = used().fold((0, largest), |(n, a), c| (n + 1, a.min(c)));
    if number <= GROUPS {
        return each_alone(counts, beta, largest, counted);
    }
    let gap = |c: f64| (largest / c).ln();
    let per_gap = (GROUPS - 1) as f64 / gap(smallest).clamp(f64::MIN_POSITIVE, RANGE);
    let mut sums = [(0.0, 0.0); GROUPS];
    for c in used() {
        let group = (gap(c).min(RANGE) * per_gap) as usize;
        let (sum, size) = &mut sums[group.min(GROUPS - 1)];
        *sum += c;
        *size += 1.0;
    }
    let filled = sums.iter().filter(|(_, size)| *size > 0.0);
    filled
        .map(|&(sum, size)| Group {
            w: sum / size / beta,
            gap: gap(sum / size),
            size,
        })
        .collect()
}

/// Every counted entry as a group of its own, in the order of the entries.
fn each_alone(
    counts: &[f64],
    beta: f64,
    largest: f64,
    counted: impl Fn(f64) -> bool,
) -> Vec<Group> {
    let used = counts.iter().copied().filter(|&c| counted(c));
    used.map(|c| Group {
        w: c / beta,
        gap: (largest / c).ln(),
        size: 1.0,
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

/// Which branch the largest count lies on.
#[derive(Clone, Copy, PartialEq)]
enum Largest {
    Lower,
    Upper,
}

/// Groups on the branch `W_-1`. Where `x` moves a little, so does `p = -1 - W_-1`: it is followed instead of found anew.
#[derive(Clone)]
struct Lower<'a> {
    groups: &'a [Group],
    p: Vec<f64>,
    /// The gap that `p` belongs to.
    g: f64,
}

/// Below this `p` the branch bends too fast to be followed.
const FOLLOWED: f64 = 0.05;
/// A relative step whose third power is below rounding.
const SERIES: f64 = 1e-6;
/// What a sum over groups is within of the sum over their entries, which a group is too narrow to change by as much.
const SURE: f64 = 3.0;
/// A distance from the end of a bracket, relative to its size, that rounding does not make.
const HAIR: f64 = 1e-9;

impl<'a> Lower<'a> {
    fn new(groups: &'a [Group], x: f64) -> Self {
        let g = 0.5 * x * x;
        let p = groups.iter().map(|group| gap_to_p(g + group.gap)).collect();
        Self { groups, p, g }
    }

    /// From what is known of others at `x`: for each group, a gap near its own and the `p` there.
    fn near(groups: &'a [Group], x: f64, known: impl Fn(&Group) -> (f64, f64)) -> Self {
        let g = 0.5 * x * x;
        let p = |group: &Group| {
            let (gap, p) = known(group);
            let gap_here = g + group.gap;
            follow(p, group.gap - gap, gap_here).unwrap_or_else(|| gap_to_p(gap_here))
        };
        let p = groups.iter().map(p).collect();
        Self { groups, p, g }
    }

    fn go_to(&mut self, x: f64) {
        let g = 0.5 * x * x;
        let moved = g - self.g;
        for (p, group) in self.p.iter_mut().zip(self.groups) {
            let gap = g + group.gap;
            *p = follow(*p, moved, gap).unwrap_or_else(|| gap_to_p(gap));
        }
        self.g = g;
    }

    /// `Σ θ - 1` and its slope. [SPEC 6] θ = -w / W_-1(-w e^s)
    fn excess(&mut self, w_max: f64, largest: Largest, x: f64) -> (f64, f64) {
        self.go_to(x);
        let mut total = (-1.0, 0.0);
        for (group, &p) in self.groups.iter().zip(&self.p) {
            let (theta, slope) = lower(group.w, p, x);
            total = (total.0 + group.size * theta, total.1 + group.size * slope);
        }
        if largest == Largest::Upper {
            // It stands among the groups as if it were on the lower branch.
            let (low, high) = (lower(w_max, gap_to_p(self.g), x), upper(w_max, x));
            total = (total.0 - low.0 + high.0, total.1 - low.1 + high.1);
        }
        total
    }

    /// `J/β = Σ (w + θ) ln θ`.
    fn value(&mut self, w_max: f64, largest: Largest, x: f64) -> f64 {
        self.go_to(x);
        let term = |w: f64, theta: f64| {
            if theta > 0.0 {
                (w + theta) * theta.ln()
            } else {
                0.0
            }
        };
        let each = self.groups.iter().zip(&self.p);
        let all: f64 = each.map(|(g, p)| g.size * term(g.w, g.w / (1.0 + p))).sum();
        match largest {
            Largest::Lower => all,
            Largest::Upper => {
                let low = w_max / (1.0 + gap_to_p(self.g));
                all - term(w_max, low) + term(w_max, upper(w_max, x).0)
            }
        }
    }
}

fn gap_to_p(gap: f64) -> f64 {
    -1.0 - lambert_wm1_gap(gap).unwrap_or(-1.0)
}

/// `p - ln(1 + p) = gap` from the `p` of a gap that was less by `moved`: by the series, or Halley's method, cubic, to rounding.
/// `None` where they lead nowhere.
#[inline]
fn follow(p: f64, moved: f64, gap: f64) -> Option<f64> {
    if moved == 0.0 {
        return Some(p);
    }
    // The series up to p' = (1 + p)/p and p'' = -(1 + p)/p³.
    let step = moved * (1.0 + p) / p * (1.0 - 0.5 * moved / (p * p));
    let mut next = p + step;
    if !(p > FOLLOWED && next > FOLLOWED) {
        return None;
    }
    if step.abs() <= SERIES * p {
        return Some(next);
    }
    for _ in 0..6 {
        let (u, f) = (1.0 + next, next - next.ln_1p() - gap);
        // Halley's step with f' = p/u and f'' = 1/u², cleared of its fractions.
        let step = f * u * next / (next * next - 0.5 * f);
        next -= step;
        if step.abs() <= 1e-5 * next {
            return Some(next);
        }
    }
    None
}

/// `θ` and `dθ/dx` on the branch `W_-1`.
#[inline]
fn lower(w: f64, p: f64, x: f64) -> (f64, f64) {
    // [SPEC 6] θ = -w / W_-1(-w e^s) with 1 + p = -W_-1
    let theta = w / (1.0 + p);
    (theta, if p > 0.0 { -theta * x / p } else { -theta })
}

/// `θ` on the branch `W_0` and `dθ/dx`, for the largest count.
fn upper(w: f64, x: f64) -> (f64, f64) {
    let q = ln_neg_lambert_w0_gap(0.5 * x * x).unwrap_or(0.0);
    // [SPEC 6] θ = -w / W_0(-w e^s) with q = ln -W_0
    let theta = w * (-q).exp();
    let slope = if q < 0.0 {
        -theta * x / q.exp_m1()
    } else {
        theta
    };
    (theta, slope)
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
    let positive = |c: f64| c > 0.0;
    let rough = groups(counts, beta, largest, positive);
    let each = each_alone(counts, beta, largest, positive);
    let mut roughly = Lower::new(&rough, 0.0);

    // [SPEC 6] candidate A: all on W_-1. W_-1 <= -1 - g bounds g by Σw - 1.
    let mut best: Option<(Largest, f64, Lower<'_>)> = None;
    // Far from 1 the grouped sum tells on which side the sum of all is; nearer every entry must be asked.
    let rough_excess = roughly.excess(w_max, Largest::Lower, 0.0).0;
    let grouped = 1.0 + rough_excess;
    let whole = if !(1.0 / SURE..=SURE).contains(&grouped) {
        rough_excess
    } else {
        each_near(&each, &roughly, 0.0)
            .excess(w_max, Largest::Lower, 0.0)
            .0
    };
    if whole >= 0.0 {
        let end = (2.0 * (total - 1.0).max(0.0)).sqrt();
        let near = root(0.0, end, end, false, |x| {
            roughly.excess(w_max, Largest::Lower, x)
        });
        let mut exactly = each_near(&each, &roughly, near);
        let x = root(0.0, end, near, false, |x| {
            exactly.excess(w_max, Largest::Lower, x)
        });
        best = Some((Largest::Lower, x, exactly));
    }
    // [SPEC 6] candidates B: the largest on W_0, up to θ = 1
    let g_end = w_max - 1.0 - w_max.ln();
    if w_max < 1.0 && g_end > 0.0 {
        let end = (2.0 * g_end).sqrt();
        let at = |k: i32| end * 10f64.powf(6.0 * f64::from(k - GRID) / f64::from(GRID));
        let mut scan = Lower::new(&rough, 0.0);
        let mut left = (0.0, scan.excess(w_max, Largest::Upper, 0.0).0);
        for k in 0..=GRID {
            let right = (at(k), scan.excess(w_max, Largest::Upper, at(k)).0);
            if (left.1 < 0.0) != (right.1 < 0.0) {
                let rising = right.1 >= 0.0;
                let middle = 0.5 * (left.0 + right.0);
                let near = root(left.0, right.0, middle, rising, |x| {
                    roughly.excess(w_max, Largest::Upper, x)
                });
                // Grouping changes J far less than the margin.
                let hopeless = best.as_ref().is_some_and(|&(branch, x, _)| {
                    let old = Lower::new(&rough, x).value(w_max, branch, x);
                    roughly.value(w_max, Largest::Upper, near) < old - 0.01 * (1.0 + total)
                });
                let mut exactly = each_near(&each, &roughly, near);
                let found = if hopeless {
                    None
                } else {
                    refine(left.0, right.0, near, rising, end, |x| {
                        exactly.excess(w_max, Largest::Upper, x)
                    })
                };
                if let Some(x) = found {
                    let new = exactly.value(w_max, Largest::Upper, x);
                    if best
                        .as_mut()
                        .is_none_or(|(branch, x, old)| new > old.value(w_max, *branch, *x))
                    {
                        best = Some((Largest::Upper, x, exactly));
                    }
                }
            }
            left = right;
        }
        if best.is_none() {
            // The sum is below 1 at one end and above it at the other.
            let mut exactly = Lower::new(&each, 0.0);
            let x = root(0.0, end, 0.5 * end, true, |x| {
                exactly.excess(w_max, Largest::Upper, x)
            });
            best = Some((Largest::Upper, x, exactly));
        }
    }
    let (branch, x, mut found) =
        best.unwrap_or_else(|| (Largest::Lower, 0.0, Lower::new(&each, 0.0)));
    found.go_to(x);
    let mut entries = each.iter().zip(&found.p);
    for (t, &c) in theta.iter_mut().zip(counts) {
        *t = if c > 0.0 {
            entries.next().map_or(0.0, |(g, p)| g.w / (1.0 + p))
        } else {
            0.0
        };
    }
    if branch == Largest::Upper {
        theta[top] = upper(w_max, x).0;
    }
}

/// The entries at `x`, from the groups there.
fn each_near<'a>(each: &'a [Group], rough: &Lower<'_>, x: f64) -> Lower<'a> {
    let mut at = rough.clone();
    at.go_to(x);
    if each.len() == rough.groups.len() {
        return Lower {
            groups: each,
            p: at.p,
            g: at.g,
        };
    }
    // Groups are in the order of their gaps.
    Lower::near(each, x, |entry| {
        let k = rough.groups.partition_point(|g| g.gap < entry.gap);
        let k = k.min(rough.groups.len() - 1);
        (rough.groups[k].gap, at.p[k])
    })
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
    let x = root(lo, hi, near, rising, &mut f);
    // Where there is no root in between, an end is what is found; the ends themselves cost as much as the root.
    if (x - lo).min(hi - x) > HAIR * hi {
        return Some(x);
    }
    for _ in 0..8 {
        if (f(lo).0 < 0.0) == rising && (f(hi).0 >= 0.0) == rising {
            return Some(root(lo, hi, near, rising, f));
        }
        (lo, hi) = (lo * 0.8, (hi * 1.25).min(end));
    }
    None
}
