//! The search for the support, face after face.

use nalgebra::DMatrix;

use super::face;

/// What `l` is confined to besides `l ≥ 0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// `Σ l = 1`.
    Simplex,
    /// Nothing.
    Orthant,
}

/// `min ½ lᵀ H l - fᵀ l`, the largest number near 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem<'a> {
    h: &'a DMatrix<f64>,
    f: &'a [f64],
    domain: Domain,
    tol: f64,
}

impl<'a> Problem<'a> {
    pub(super) fn new(h: &'a DMatrix<f64>, f: &'a [f64], domain: Domain) -> Self {
        Self {
            h,
            f,
            domain,
            tol: 4.0 * f64::EPSILON * (f.len() as f64).sqrt().max(2.0),
        }
    }

    /// `g = H l - f`.
    pub(super) fn gradient(&self, l: &[f64]) -> Vec<f64> {
        let mut g: Vec<f64> = self.f.iter().map(|f| -f).collect();
        for (j, &l) in l.iter().enumerate().filter(|(_, l)| **l != 0.0) {
            for (g, h) in g.iter_mut().zip(self.h.column(j).iter()) {
                *g += h * l;
            }
        }
        g
    }

    /// Moves `l` to a minimiser; returns the number of faces solved.
    pub(super) fn solve(&self, l: &mut [f64]) -> usize {
        let k = l.len();
        let mut support: Vec<usize> = (0..k).filter(|&i| l[i] > 0.0).collect();
        let mut faces = 0;
        // Every face is solved at most once in exact arithmetic; rounding must not make this loop for ever.
        for _ in 0..(3 * k + 50) {
            faces += self.solve_face(l, &mut support);
            let g = self.gradient(l);
            let nu = match self.domain {
                Domain::Simplex => g.iter().zip(l.iter()).map(|(g, l)| g * l).sum(),
                Domain::Orthant => 0.0,
            };
            let outside = (0..k).filter(|i| !support.contains(i));
            let Some(enters) = outside.min_by(|&a, &b| g[a].total_cmp(&g[b])) else {
                break;
            };
            // [PNTF 4] the index of smallest g_i - ν enters if that is below -tol
            if g[enters] - nu >= -self.tol {
                break;
            }
            let at = support.partition_point(|&i| i < enters);
            support.insert(at, enters);
        }
        faces
    }

    /// Minimises over the face of `support`, dropping coordinates that reach 0; returns the number of systems solved.
    fn solve_face(&self, l: &mut [f64], support: &mut Vec<usize>) -> usize {
        let mut solved = 0;
        let (mut refined, mut slope) = (0, f64::INFINITY);
        // A single coordinate on the simplex cannot move.
        let fewest = usize::from(self.domain == Domain::Simplex);
        while support.len() > fewest {
            let g = self.gradient(l);
            let g: Vec<f64> = support.iter().map(|&i| g[i]).collect();
            let Some(step) = face::direction(self.h, support, &g, self.domain, self.tol) else {
                break;
            };
            // Two more full steps remove the rounding errors of the first. Where the face is all but singular they shrink slowly.
            if refined >= 3 && step.slope > 0.5 * slope {
                break;
            }
            slope = step.slope;
            solved += 1;
            let (mut alpha, mut first) = (if step.unbounded { f64::INFINITY } else { 1.0 }, None);
            for (at, (&i, &d)) in support.iter().zip(&step.direction).enumerate() {
                if d < 0.0 && l[i] / -d < alpha {
                    (alpha, first) = (l[i] / -d, Some(at));
                }
            }
            if !alpha.is_finite() {
                break;
            }
            for (&i, &d) in support.iter().zip(&step.direction) {
                l[i] = (l[i] + alpha * d).max(0.0);
            }
            if let Some(at) = first {
                l[support.remove(at)] = 0.0;
                refined = 0;
            }
            if self.domain == Domain::Simplex {
                let sum: f64 = l.iter().sum();
                l.iter_mut().for_each(|x| *x /= sum);
            }
            if first.is_none() {
                refined += 1;
            }
        }
        support.retain(|&i| l[i] > 0.0);
        solved
    }
}
