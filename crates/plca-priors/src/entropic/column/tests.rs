//! The sums behind a column, and the steps that follow them.

use super::flat::{Flat, big_w, follow_up};
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
