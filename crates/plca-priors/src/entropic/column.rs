//! The entropic M-step of one column.
//!
//! With `β > 0` everything is written in the gap `g = s_max - s >= 0` between `s` and the largest `s` at which the largest count
//! is on a real branch, because the difference of rounded numbers would lose half the digits where the branches meet. The
//! unknown is `x = √(2g)`, in which both branches are smooth there.

use plca_dist::{lambert_w0_exp, lambert_wm1_gap, ln_neg_lambert_w0_gap};

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
    // [LV eq. 18-21] [SPEC 6] θ = -w / W_-1(-w e^s) with 1 + p = -W_-1
    let theta = w / (1.0 + p);
    (theta, if p > 0.0 { -theta * x / p } else { -theta })
}

/// `θ` on the branch `W_0` and `dθ/dx`, for the largest count.
fn upper(w: f64, x: f64) -> (f64, f64) {
    let q = ln_neg_lambert_w0_gap(0.5 * x * x).unwrap_or(0.0);
    // [LV eq. 18-21] [SPEC 6] θ = -w / W_0(-w e^s) with q = ln -W_0
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
    let mut at = Lower {
        groups: rough.groups,
        p: rough.p.clone(),
        g: rough.g,
    };
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

/// Groups on the branch `W_0` of a positive argument, `W` followed as `s` moves.
struct Flat<'a> {
    groups: &'a [Group],
    ln_w: Vec<f64>,
    big_w: Vec<f64>,
    s: f64,
    /// How many entries have no count.
    zeros: f64,
}

impl<'a> Flat<'a> {
    fn new(groups: &'a [Group], ln_w_max: f64, zeros: f64, s: f64) -> Self {
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
    fn ln_sum(&mut self, s: f64) -> (f64, f64) {
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
fn follow_up(w: f64, moved: f64, l: f64) -> Option<f64> {
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
fn big_w(l: f64) -> f64 {
    lambert_w0_exp(l).unwrap_or(1.0)
}

fn flat(counts: &[f64], beta: f64, theta: &mut [f64]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts over twelve orders of magnitude, more than there are groups.
    fn many() -> Vec<f64> {
        (0..500)
            .map(|i| 10f64.powf(f64::from(i * 211 % 500) / 40.0 - 9.0))
            .collect()
    }

    fn largest(counts: &[f64]) -> f64 {
        counts.iter().fold(0.0, |a: f64, &b| a.max(b))
    }

    /// `f`'s slope is that of its values, by central differences.
    fn check_slope(mut f: impl FnMut(f64) -> (f64, f64), x: f64) {
        let h = 1e-5 * x;
        let measured = (f(x + h).0 - f(x - h).0) / (2.0 * h);
        let slope = f(x).1;
        let error = (slope - measured).abs();
        assert!(error <= 1e-6 * slope.abs(), "{slope}, measured {measured}");
    }

    #[test]
    fn groups_hold_all_counts_near_their_gap() {
        let (counts, beta) = (many(), 0.7);
        let largest = largest(&counts);
        let counted = |c: f64| c > 1e-8;
        let groups = groups(&counts, beta, largest, counted);
        let used: Vec<f64> = counts.iter().copied().filter(|&c| counted(c)).collect();
        assert!(groups.len() > GROUPS / 2 && groups.len() <= GROUPS);
        let size: f64 = groups.iter().map(|g| g.size).sum();
        assert_eq!(size, used.len() as f64);
        let (held, all) = (
            groups.iter().map(|g| g.size * g.w).sum::<f64>(),
            used.iter().sum::<f64>() / beta,
        );
        assert!((held - all).abs() <= 1e-12 * all, "{held} {all}");
        assert!(groups.is_sorted_by(|a, b| a.gap < b.gap));
        for group in &groups {
            let gap = (largest / (group.w * beta)).ln();
            assert!((group.gap - gap).abs() <= 1e-12 * gap.max(1.0));
        }
        // No entry is further from its group than the widest group is wide.
        let smallest = used.iter().fold(largest, |a, &b| a.min(b));
        let width = (largest / smallest).ln() / (GROUPS - 1) as f64;
        for c in &used {
            let gap = (largest / c).ln();
            let away = |g: &Group| (g.gap - gap).abs();
            let near = groups.iter().map(away).fold(f64::INFINITY, f64::min);
            assert!(near <= width, "{near} {width}");
        }
        // Few are kept one by one, in their own order.
        let few = super::groups(&counts[..GROUPS], beta, largest, |_| true);
        assert_eq!(few.len(), GROUPS);
        for (group, c) in few.iter().zip(&counts) {
            assert_eq!((group.w, group.size), (c / beta, 1.0));
            assert!((group.gap - (largest / c).ln()).abs() <= 1e-15 * group.gap);
        }
    }

    /// Values that were followed from elsewhere, or taken from a neighbour, are those found anew.
    #[test]
    fn the_lower_branch_is_followed() {
        let counts = many();
        let each = each_alone(&counts, 0.7, largest(&counts), |_| true);
        let rough = groups(&counts, 0.7, largest(&counts), |_| true);
        let agree = |a: &Lower<'_>, b: &Lower<'_>| {
            assert_eq!((a.groups.len(), a.g), (b.groups.len(), b.g));
            for (a, b) in a.p.iter().zip(&b.p) {
                assert!((a - b).abs() <= 4e-15 * (1.0 + b), "{a} {b}");
            }
        };
        let mut moving = Lower::new(&each, 0.3);
        for x in [0.3 + 1e-9, 0.31, 2.0, 1.9, 0.0, 5.0, 1e-4] {
            let anew = Lower::new(&each, x);
            moving.go_to(x);
            agree(&moving, &anew);
            agree(&each_near(&each, &Lower::new(&rough, 0.7), x), &anew);
            let near = Lower::near(&each, x, |group| {
                let gap = group.gap + 0.01;
                (gap, gap_to_p(0.5 * x * x + gap))
            });
            agree(&near, &anew);
            for (group, p) in each.iter().zip(&anew.p) {
                let gap = p - p.ln_1p();
                let expected = 0.5 * x * x + group.gap;
                assert!((gap - expected).abs() <= 1e-14 * (1.0 + expected));
            }
        }
    }

    /// From near, branches are followed to rounding; from far they are not, or come as near.
    #[test]
    fn branches_are_followed_without_the_function() {
        for p in [0.06, 0.3, 2.0, 40.0] {
            let gap = p - f64::ln_1p(p);
            for part in [1e-9, 1e-3, 0.1, -0.1, -0.2] {
                let to = p * (1.0 + part);
                let here = to - f64::ln_1p(to);
                let found = follow(p, here - gap, here);
                if to <= FOLLOWED {
                    assert_eq!(found, None);
                } else {
                    let (found, exact) = (found.unwrap(), gap_to_p(here));
                    assert!(
                        (found - exact).abs() <= 1e-14 * (1.0 + exact),
                        "{found} {exact}"
                    );
                }
            }
            assert_eq!(follow(p, 0.0, gap), Some(p));
        }
        assert_eq!(follow(0.04, 1e-3, 0.5), None);
        for w in [1e-8, 0.01, 0.5, 3.0, 1e5] {
            let l = w + f64::ln(w);
            for part in [1e-9, 1e-3, 0.1, -0.1, 0.6, -0.4] {
                let to = w * (1.0 + part);
                let there = to + to.ln();
                let (found, exact) = (follow_up(w, there - l, there).unwrap(), big_w(there));
                assert!(
                    (found - exact).abs() <= 4e-15 * exact,
                    "{w} {part}: {found} {exact}"
                );
            }
            assert_eq!(follow_up(w, 0.0, l), Some(w));
        }
        // The series leads below 0.
        assert_eq!(follow_up(1.0, -40.0, -39.0), None);
        // At the point where the branches meet, either slope is that of a limit.
        assert_eq!(
            (lower(0.3, 0.0, 0.0), upper(0.3, 0.0)),
            ((0.3, -0.3), (0.3, 0.3))
        );
    }

    #[test]
    fn slopes_are_those_of_the_sums() {
        // With few that are about as large as the largest, either branch counts.
        let counts = [0.3, 0.29, 0.02, 1e-3, 1e-7];
        let each = each_alone(&counts, 1.0, 0.3, |_| true);
        for x in [0.05, 0.4, 1.0] {
            for branch in [Largest::Lower, Largest::Upper] {
                let mut at = Lower::new(&each, x);
                check_slope(|x| at.excess(0.3, branch, x), x);
            }
            check_slope(|x| upper(0.3, x), x);
        }
        let counts = many();
        let largest = largest(&counts);
        let each = each_alone(&counts, 2.0, largest, |_| true);
        let ln_w_max = (largest / 2.0).ln();
        for s in [0.2, 3.0, 9.0] {
            let mut at = Flat::new(&each, ln_w_max, 3.0, 1.0);
            check_slope(|s| at.ln_sum(s), s);
            let mut anew = Flat::new(&each, ln_w_max, 3.0, s);
            let (followed, anew) = (at.ln_sum(s).0, anew.ln_sum(s).0);
            assert!((followed - anew).abs() <= 1e-14 * (1.0 + anew.abs()));
        }
    }

    /// The value of `J/β` on either branch, from its definition.
    #[test]
    fn the_value_is_that_of_the_entries() {
        let counts = [0.3, 0.29, 0.02, 1e-3];
        let each = each_alone(&counts, 1.0, 0.3, |_| true);
        for (branch, x) in [(Largest::Lower, 0.7), (Largest::Upper, 0.4)] {
            let mut at = Lower::new(&each, x);
            let got = at.value(0.3, branch, x);
            let mut theta: Vec<f64> = (counts.iter().zip(&at.p))
                .map(|(w, p)| w / (1.0 + p))
                .collect();
            if branch == Largest::Upper {
                theta[0] = upper(0.3, x).0;
            }
            let terms = counts.iter().zip(&theta);
            let expected: f64 = terms.map(|(w, t)| (w + t) * t.ln()).sum();
            assert!((got - expected).abs() <= 1e-14 * expected.abs());
            // θ solves w/θ + ln θ = const, the condition of a stationary point.
            let sides: Vec<f64> = (counts.iter().zip(&theta))
                .map(|(w, t)| w / t + t.ln())
                .collect();
            for side in &sides {
                assert!((side - sides[1]).abs() <= 1e-12, "{sides:?}");
            }
        }
    }

    /// Newton's method takes a few steps, and bisection rescues it where it would leave.
    #[test]
    fn roots_take_few_evaluations() {
        let count = |start: f64, rising: bool, f: &dyn Fn(f64) -> (f64, f64)| {
            let mut asked = 0;
            let x = root(0.0, 4.0, start, rising, |x| {
                asked += 1;
                f(x)
            });
            (x, asked)
        };
        let square = |x: f64| (x * x - 2.0, 2.0 * x);
        let (x, asked) = count(1.5, true, &square);
        assert!((x - 2f64.sqrt()).abs() <= 1e-15 && asked <= 6, "{asked}");
        let (x, asked) = count(1.5, false, &|x| (2.0 - x * x, -2.0 * x));
        assert!((x - 2f64.sqrt()).abs() <= 1e-15 && asked <= 6, "{asked}");
        // A start outside the bracket, and one from which Newton's method leaves it.
        let (x, asked) = count(9.0, true, &square);
        assert!((x - 2f64.sqrt()).abs() <= 1e-15 && asked <= 8, "{asked}");
        let (x, asked) = count(0.0, true, &square);
        assert!((x - 2f64.sqrt()).abs() <= 1e-15 && asked <= 9, "{asked}");
        // Without a slope that helps, bisection alone.
        let (x, asked) = count(1.5, true, &|x| (x - 1.0, 0.0));
        assert!((x - 1.0).abs() <= 1e-15 && asked > 40, "{asked}");
        assert_eq!(count(2.0, true, &|x| (x - 2.0, 1.0)), (2.0, 1));
    }

    /// A bracket beside the root is widened, on either side, up to the end and no further.
    #[test]
    fn brackets_are_widened() {
        let line = |at: f64| move |x: f64| (x - at, 1.0);
        for at in [0.5, 0.81, 1.05, 1.7, 4.0] {
            let found = refine(1.0, 1.1, 1.05, true, 10.0, line(at));
            assert!((found.unwrap() - at).abs() <= 1e-14, "{at}: {found:?}");
        }
        for at in [0.1, 8.0] {
            assert_eq!(refine(1.0, 1.1, 1.05, true, 10.0, line(at)), None);
        }
        assert_eq!(refine(1.0, 1.1, 1.05, true, 1.5, line(1.7)), None);
        let falling = refine(1.0, 1.1, 1.05, false, 10.0, |x| (0.7 - x, -1.0));
        assert!((falling.unwrap() - 0.7).abs() <= 1e-14);
    }
}
