//! Plain loop over stored entries, until the arranged kernel replaces it.
use super::aligned::Aligned;
use super::{Accumulate, Rule, Sums, panel::Panel};
use crate::{CompensatedSum, Coordinates, Real};
#[derive(Clone, Debug)]
pub(crate) struct Fibres<T>(Vec<usize>, Vec<(Vec<u32>, T)>);
impl<T: Real> Fibres<T> {
    pub(crate) fn new(c: Coordinates<T>, keep_zeros: bool) -> Self {
        let mut map = std::collections::BTreeMap::new();
        for (i, &v) in c.indices.chunks(c.shape.len()).zip(&c.values) {
            *map.entry(i.to_vec()).or_insert(T::zero()) += v;
        }
        Self(
            c.shape,
            map.into_iter()
                .filter(|e| keep_zeros || e.1 > T::zero())
                .collect(),
        )
    }
    pub(crate) fn stored(&self) -> usize {
        self.1.len()
    }
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&[usize], T)) {
        for (i, v) in &self.1 {
            visit(&i.iter().map(|&i| i as usize).collect::<Vec<_>>(), *v);
        }
    }
}
impl<T: Real> Accumulate<T> for Fibres<T> {
    fn accumulate(&self, panels: &[Panel<T>], rule: Rule, wanted: &[bool], log: bool) -> Sums<T> {
        let mut modes: Vec<Aligned<T>> = panels
            .iter()
            .zip(wanted)
            .map(|(p, &w)| Aligned::zeros(if w { p.values.len() } else { 0 }))
            .collect();
        let mut ln_lik = CompensatedSum::default();
        for (index, v) in &self.1 {
            let row = |m: usize| panels[m].row(index[m] as usize);
            let product = |z: usize, skip: usize| {
                (0..panels.len())
                    .filter(|&m| m != skip)
                    .fold(T::one(), |p, m| p * row(m)[z])
            };
            let p: T = (0..panels[0].k).map(|z| product(z, usize::MAX)).sum();
            let q = match rule {
                Rule::Unit => T::one(),
                Rule::Ratio => *v / if p > T::TINY { p } else { T::TINY },
            };
            if log && *v > T::zero() {
                ln_lik += v.to_f64() * p.to_f64().ln();
            }
            for m in (0..panels.len()).filter(|&m| wanted[m]) {
                for z in 0..panels[0].k {
                    modes[m][index[m] as usize * panels[0].stride + z] += q * product(z, m);
                }
            }
        }
        Sums {
            modes,
            ln_lik: ln_lik.value(),
        }
    }
}
