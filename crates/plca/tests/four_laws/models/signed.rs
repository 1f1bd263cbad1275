//! The Skellam models: `skellam`, `skellam-cp`, `siskellam`, and their `-vb`.

use plca::fit::laws::Terms;
use plca::nalgebra::DMatrix;
use plca::prelude::*;
use plca::skellam::Prior;
use plca::tensor::strategies::Table;
use plca::{
    fit::Parameters,
    priors::{Entries, Gamma},
    skellam::{Replicates, ShiftedSnmf, ShiftedSnmfVb, SignedCpVb, SnmfVb},
    tensor::Real,
};

use super::bayes::{mean_ln, subtract_dirichlet};
use super::shifted::{copies, kernel, scattered, spots, support};
use super::{block, by_columns, observed};
use crate::problem::{Kind, Problem};
use crate::special::{digamma, ln_gamma, ln_skellam, ln_sum_exp, minus_divergence, times_ln};
use crate::table::{Explains, Measured, StateOf, Subject};

fn replicates(problem: &Problem) -> Replicates {
    match problem.choice(0, 4) {
        1 => Replicates::One,
        2 => Replicates::Finite(3),
        3 => Replicates::Auto,
        _ => Replicates::Limit,
    }
}

/// Finite `M` counts: the unit is then 1. The product of rates of priors, which have no unit, and of those of the data must be a number.
fn unit(problem: &Problem, prior: bool) -> f64 {
    match replicates(problem) {
        Replicates::Limit | Replicates::Auto if prior => problem.power_of_ten([60.0, 8.0]),
        Replicates::Limit | Replicates::Auto => problem.power_of_ten([240.0, 28.0]),
        _ => 1.0,
    }
}

/// Without numbers beside the data: no priors, and as many replicates that real data are taken.
fn plain(problem: &Problem, priors: &[usize]) -> Problem {
    // Without a bound rates that a solver carries on leave the range of single precision.
    let runs_away = problem.single && problem.solver != Solver::Em;
    let auto = runs_away || problem.choice(0, 2) == 1;
    problem.without(priors).with(0, if auto { 3 } else { 0 })
}

/// The rate of noise on both sides: the mean of `|V|`. `[SKELLAM 13]`
fn noise(problem: &Problem, cells: &Table<f64>) -> f64 {
    let sizes: Vec<f64> = observed(cells).map(|(_, v)| v.abs()).collect();
    match replicates(problem) {
        Replicates::Auto => sizes.iter().sum::<f64>() / sizes.len() as f64,
        _ => 0.0,
    }
}

/// `L_fit` of the logarithms of both rates of every cell, noise added to the rates. `[SKELLAM eq. 27]`, `[SKELLAM eq. 30]`
fn fit(problem: &Problem, cells: &Table<f64>, ln: impl Fn(&[usize]) -> [f64; 2]) -> Terms {
    let noise = noise(problem, cells).ln();
    let noisy = |index: &[usize]| ln(index).map(|rate| ln_sum_exp(&[rate, noise]));
    without_noise(problem, cells, noisy)
}

/// The same of the rates as they are.
fn without_noise(
    problem: &Problem,
    cells: &Table<f64>,
    ln: impl Fn(&[usize]) -> [f64; 2],
) -> Terms {
    let mut terms = Terms::default();
    for (index, v) in observed(cells) {
        let [p, q] = ln(&index);
        let m = replicates(problem).number();
        let (term, size) = match m.is_finite() {
            true => {
                let (term, size) = ln_skellam(m * v, p + m.ln(), q + m.ln());
                (term / m, size / m)
            }
            false => minus_divergence(v, p, q),
        };
        terms.add_of(term, size);
    }
    terms
}

/// Shapes of atoms, shape and rate of activations; the rate of variational Bayes is positive.
#[derive(Clone, Copy)]
struct Law {
    atoms: f64,
    shape: f64,
    rate: f64,
}

impl Law {
    fn of(problem: &Problem, bayesian: bool) -> Self {
        let (shape, rate) = [(1.0, 0.0), (1.0, 0.1), (1.5, 0.5)][problem.choice(1, 3)];
        Self {
            atoms: [1.0, 1.5, 3.0][problem.choice(2, 3)],
            shape: if bayesian {
                [1.0, 0.1, 2.0][problem.choice(1, 3)]
            } else {
                shape
            },
            rate: if bayesian {
                [1e-3, 0.5, 2.0][problem.choice(2, 3)]
            } else {
                rate
            },
        }
    }

    fn prior(self) -> Prior {
        Prior {
            plus: Entries::All(self.atoms),
            minus: Entries::All(self.atoms),
            shape: Entries::All(self.shape),
            rate: Entries::All(self.rate),
        }
    }

    /// Adds the density of atoms and activations. `[SKELLAM eq. 26]`
    fn add_to(self, terms: &mut Terms, atoms: &DMatrix<f64>, activations: &DMatrix<f64>) {
        add_dirichlet(terms, atoms, self.atoms);
        let (a, b) = (self.shape, self.rate);
        for &x in activations {
            let ln_b = if b > 0.0 { b.ln() } else { 0.0 };
            terms.extend([times_ln(a - 1.0, x.ln()), -b * x, a * ln_b, -ln_gamma(a)]);
        }
    }

    /// Adds what the bound has besides the likelihood and the rates of all cells. `[SKELLAM 7]`
    fn add_bound(
        self,
        terms: &mut Terms,
        atoms: &DMatrix<f64>,
        shapes: &DMatrix<f64>,
        rates: &DMatrix<f64>,
    ) {
        subtract_dirichlet(terms, atoms, self.atoms);
        let (a, b) = (self.shape, self.rate);
        for (&s, &r) in shapes.iter().zip(rates.iter()) {
            terms.extend([
                -s / r,
                -(s - a) * digamma(s),
                ln_gamma(s),
                -ln_gamma(a),
                -a * r.ln(),
                a * b.ln(),
                -s * b / r,
                s,
            ]);
        }
    }
}

/// The log-density of columns under a Dirichlet law of equal shapes, its constant included.
fn add_dirichlet(terms: &mut Terms, block: &DMatrix<f64>, shape: f64) {
    for column in block.column_iter() {
        let n = column.len() as f64;
        terms.extend([ln_gamma(n * shape), -n * ln_gamma(shape)]);
        terms.extend(column.iter().map(|x| times_ln(shape - 1.0, x.ln())));
    }
}

/// `E[ln λ]` of gamma laws.
fn gamma_ln(shapes: &DMatrix<f64>, rates: &DMatrix<f64>) -> DMatrix<f64> {
    shapes.zip_map(rates, |s, r| digamma(s) - r.ln())
}

/// `ln Σ_z` of both sides.
fn both(k: usize, ln: impl Fn(usize, usize) -> f64) -> [f64; 2] {
    [0, 1].map(|side| ln_sum_exp(&(0..k).map(|z| ln(side, z)).collect::<Vec<_>>()))
}

/// `Σ_z exp(ln a_z + Σ ln Σ b_z)`: the rates of all cells of the geometric means, column after column.
fn add_rates(terms: &mut Terms, blocks: &[&DMatrix<f64>]) {
    for z in 0..blocks[0].ncols() {
        let sums = blocks
            .iter()
            .map(|b| ln_sum_exp(b.column(z).clone_owned().as_slice()));
        terms.add(sums.sum::<f64>().exp());
    }
}

pub(crate) struct Snmfs;

impl Subject for Snmfs {
    type Model<T: Real> = Snmf;

    fn kind() -> Kind {
        Kind::signed(2..=2)
    }

    fn unit(problem: &Problem) -> f64 {
        unit(problem, problem.choice(3, 4) == 2)
    }

    fn model<T: Real>(problem: &Problem) -> Result<Snmf, FitError> {
        let model = Snmf::new(problem.components);
        let model = model.replicates(replicates(problem)).real_data(true);
        match problem.choice(3, 4) {
            1 => model.checked(),
            2 => model.priors(Law::of(problem, false).prior()).checked(),
            // As the command does.
            _ => model.priors(Prior::flat()).checked(),
        }
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let (atoms, activations) = (block(at, "atoms"), block(at, "activations"));
        let rows = atoms.nrows() / 2;
        let mut terms = fit(problem, cells, |x| {
            both(atoms.ncols(), |side, z| {
                (atoms[(x[0] + side * rows, z)]).ln() + activations[(z, x[1])].ln()
            })
        });
        match problem.choice(3, 4) {
            1 => {}
            2 => Law::of(problem, false).add_to(&mut terms, atoms, activations),
            _ => add_dirichlet(&mut terms, atoms, 1.0),
        }
        terms
    }
}

pub(crate) struct SnmfVbs;

impl Subject for SnmfVbs {
    type Model<T: Real> = SnmfVb;

    fn kind() -> Kind {
        Kind::signed(2..=2)
    }

    fn unit(problem: &Problem) -> f64 {
        unit(problem, true)
    }

    fn model<T: Real>(problem: &Problem) -> Result<SnmfVb, FitError> {
        let model = SnmfVb::new(problem.components);
        let model = model.replicates(replicates(problem)).real_data(true);
        model.priors(Law::of(problem, true).prior()).checked()
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let names = ["atoms_shape", "activations_shape", "activations_rate"];
        let [shapes, s, r] = names.map(|name| block(at, name));
        let (atoms, activations) = (mean_ln(shapes), gamma_ln(s, r));
        let rows = atoms.nrows() / 2;
        let mut terms = without_noise(problem, cells, |x| {
            both(atoms.ncols(), |side, z| {
                atoms[(x[0] + side * rows, z)] + activations[(z, x[1])]
            })
        });
        add_rates(&mut terms, &[&atoms, &activations.transpose()]);
        Law::of(problem, true).add_bound(&mut terms, shapes, s, r);
        terms
    }
}

/// The signed mode of a tensor, and the one that carries the scale.
fn modes(problem: &Problem) -> (usize, Option<usize>) {
    let order = problem.table.shape.len();
    let signed = problem.choice(4, order);
    let scale = (signed + 1 + problem.choice(5, order - 1)) % order;
    (signed, (problem.choice(6, 3) == 1).then_some(scale))
}

/// The logarithms of both rates of a cell, of those of atoms, weights and the factors of the other modes.
fn cp_rates(
    signed: usize,
    atoms: &DMatrix<f64>,
    weights: Option<&DMatrix<f64>>,
    others: &[(usize, DMatrix<f64>)],
    index: &[usize],
) -> [f64; 2] {
    let rows = atoms.nrows() / 2;
    both(atoms.ncols(), |side, z| {
        let factors = others.iter().map(|(j, f)| f[(index[*j], z)]);
        let weight = weights.map_or(0.0, |w| w[z]);
        atoms[(index[signed] + side * rows, z)] + weight + factors.sum::<f64>()
    })
}

/// The block that carries the scale.
fn carrier(scale: Option<usize>) -> String {
    scale.map_or("weights".into(), |mode| format!("factor_{mode}"))
}

/// The modes that are not signed.
fn others(problem: &Problem) -> impl Iterator<Item = usize> + use<> {
    let (signed, _) = modes(problem);
    (0..problem.table.shape.len()).filter(move |&j| j != signed)
}

pub(crate) struct Cps;

impl Subject for Cps {
    type Model<T: Real> = SignedCp;

    fn kind() -> Kind {
        Kind::signed(2..=4)
    }

    fn unit(problem: &Problem) -> f64 {
        unit(problem, problem.choice(3, 4) == 2)
    }

    fn model<T: Real>(problem: &Problem) -> Result<SignedCp, FitError> {
        let ((signed, scale), law) = (modes(problem), Law::of(problem, false));
        let model = SignedCp::new(problem.components);
        let model = model.replicates(replicates(problem)).real_data(true);
        let mut model = model.signed_mode(signed).scale_mode(scale);
        match problem.choice(3, 4) {
            1 => return model.checked(),
            2 => {}
            _ => return model.with_constants(true).checked(),
        }
        model = model.prior(carrier(scale), Gamma::new(law.shape, law.rate).unwrap());
        for j in others(problem).filter(|&j| Some(j) != scale) {
            model = model.prior(format!("factor_{j}"), Entries::All(law.atoms));
        }
        model.prior("atoms", Entries::All(law.atoms)).checked()
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let (signed, scale) = modes(problem);
        let (atoms, weights) = (block(at, "atoms"), at.block("weights"));
        let factor = |j: usize| block(at, &format!("factor_{j}"));
        let ln: Vec<_> = others(problem)
            .map(|j| (j, factor(j).map(f64::ln)))
            .collect();
        let (ln_atoms, ln_weights) = (atoms.map(f64::ln), weights.map(|w| w.map(f64::ln)));
        let mut terms = fit(problem, cells, |x| {
            cp_rates(signed, &ln_atoms, ln_weights.as_ref(), &ln, x)
        });
        let flat = Law {
            atoms: 1.0,
            shape: 1.0,
            rate: 0.0,
        };
        let law = match problem.choice(3, 4) {
            1 => return terms,
            2 => Law::of(problem, false),
            _ => flat,
        };
        let carrier = weights.unwrap_or_else(|| factor(scale.expect("weights or a scale")));
        law.add_to(&mut terms, atoms, carrier);
        for j in others(problem).filter(|&j| Some(j) != scale) {
            add_dirichlet(&mut terms, factor(j), law.atoms);
        }
        terms
    }
}

pub(crate) struct CpVbs;

impl Subject for CpVbs {
    type Model<T: Real> = SignedCpVb;

    fn kind() -> Kind {
        Kind::signed(2..=4)
    }

    fn unit(problem: &Problem) -> f64 {
        unit(problem, true)
    }

    fn model<T: Real>(problem: &Problem) -> Result<SignedCpVb, FitError> {
        let ((signed, scale), law) = (modes(problem), Law::of(problem, true));
        let model = SignedCpVb::new(problem.components);
        let model = model.replicates(replicates(problem)).real_data(true);
        let model = model.signed_mode(signed).scale_mode(scale);
        let mut model = model.prior(carrier(scale), Gamma::new(law.shape, law.rate).unwrap());
        for j in others(problem).filter(|&j| Some(j) != scale) {
            model = model.prior(format!("factor_{j}"), Entries::All(law.atoms));
        }
        model.prior("atoms", Entries::All(law.atoms)).checked()
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let ((signed, scale), law) = (modes(problem), Law::of(problem, true));
        let shapes = block(at, "atoms_shape");
        let carrier = scale.map_or("weights".into(), |j| format!("factor_{j}"));
        let [s, r] = ["shape", "rate"].map(|end| block(at, &format!("{carrier}_{end}")));
        let ln_carrier = gamma_ln(s, r);
        let factor = |j: usize| block(at, &format!("factor_{j}_shape"));
        let of = |j: usize| match Some(j) == scale {
            true => ln_carrier.clone(),
            false => mean_ln(factor(j)),
        };
        let ln: Vec<_> = others(problem).map(|j| (j, of(j))).collect();
        let ln_atoms = mean_ln(shapes);
        let weights = scale.is_none().then_some(&ln_carrier);
        let mut terms = without_noise(problem, cells, |x| {
            cp_rates(signed, &ln_atoms, weights, &ln, x)
        });
        let row = weights.map(|w| w.transpose());
        let all = ln.iter().map(|(_, f)| f).chain(&row);
        add_rates(&mut terms, &all.chain([&ln_atoms]).collect::<Vec<_>>());
        law.add_bound(&mut terms, shapes, s, r);
        for j in others(problem).filter(|&j| Some(j) != scale) {
            subtract_dirichlet(&mut terms, factor(j), law.atoms);
        }
        terms
    }
}

fn reach(problem: &Problem) -> Vec<plca::skellam::Reach> {
    use plca::skellam::Reach::{Full, Same, Valid};
    vec![[Valid, Same, Full][support(problem)]]
}

/// The logarithms of both rates of every cell.
fn shifted_rates(
    problem: &Problem,
    cells: &Table<f64>,
    atoms: &DMatrix<f64>,
    activations: &DMatrix<f64>,
) -> Vec<[f64; 2]> {
    let mut terms = vec![[Vec::new(), Vec::new()]; cells.values.len()];
    for [x, t, h] in copies(&cells.shape, &kernel(problem), support(problem)) {
        for z in 0..atoms.ncols() {
            for side in 0..2 {
                terms[x][side].push(atoms[(2 * t + side, z)] + activations[(h, z)]);
            }
        }
    }
    let both = |sides: [Vec<f64>; 2]| sides.map(|terms| ln_sum_exp(&terms));
    terms.into_iter().map(both).collect()
}

fn cell(index: &[usize], cells: &Table<f64>) -> usize {
    index
        .iter()
        .zip(&cells.shape)
        .fold(0, |at, (&i, &n)| at * n + i)
}

pub(crate) struct Shifts;

impl Subject for Shifts {
    type Model<T: Real> = ShiftedSnmf;

    fn kind() -> Kind {
        Kind::signed(1..=3)
    }

    fn unit(problem: &Problem) -> f64 {
        unit(problem, problem.choice(7, 3) == 1)
    }

    fn model<T: Real>(problem: &Problem) -> Result<ShiftedSnmf, FitError> {
        let law = Law::of(problem, false);
        let model = ShiftedSnmf::new(problem.components, kernel(problem));
        let model = model.replicates(replicates(problem)).real_data(true);
        let model = model.reach(reach(problem));
        match problem.choice(7, 3) {
            1 => model
                .prior("atoms", Entries::All(law.atoms))
                .prior("activations", Gamma::new(law.shape, law.rate).unwrap())
                .checked(),
            _ => model.checked(),
        }
    }

    fn init<T: Real>(problem: &Problem) -> Init<T> {
        let [taps, places] = [kernel(problem), spots(problem)].map(|n| n.iter().product::<usize>());
        let unit = Self::unit(problem);
        scattered(
            problem,
            [("atoms", 2 * taps, 1.0), ("activations", places, unit)],
        )
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let (atoms, activations) = (block(at, "atoms"), block(at, "activations"));
        let ln = [atoms, activations].map(|b| b.map(f64::ln));
        let rates = shifted_rates(problem, cells, &ln[0], &ln[1]);
        let mut terms = fit(problem, cells, |index| rates[cell(index, cells)]);
        match problem.choice(7, 3) {
            1 => Law::of(problem, false).add_to(&mut terms, atoms, activations),
            _ => add_dirichlet(&mut terms, atoms, 1.0),
        }
        terms
    }
}

pub(crate) struct ShiftVbs;

impl Subject for ShiftVbs {
    type Model<T: Real> = ShiftedSnmfVb;

    fn kind() -> Kind {
        Kind::signed(1..=3)
    }

    fn unit(problem: &Problem) -> f64 {
        unit(problem, true)
    }

    fn model<T: Real>(problem: &Problem) -> Result<ShiftedSnmfVb, FitError> {
        let law = Law::of(problem, true);
        let model = ShiftedSnmfVb::new(problem.components, kernel(problem));
        let model = model.replicates(replicates(problem)).real_data(true);
        let model = model.reach(reach(problem));
        let model = model.prior("atoms", Entries::All(law.atoms));
        model
            .prior("activations", Gamma::new(law.shape, law.rate).unwrap())
            .checked()
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let names = ["atoms_shape", "activations_shape", "activations_rate"];
        let [shapes, s, r] = names.map(|name| block(at, name));
        let (atoms, activations) = (mean_ln(shapes), gamma_ln(s, r));
        let rates = shifted_rates(problem, cells, &atoms, &activations);
        let mut terms = without_noise(problem, cells, |index| rates[cell(index, cells)]);
        add_rates(&mut terms, &[&atoms, &activations]);
        Law::of(problem, true).add_bound(&mut terms, shapes, s, r);
        terms
    }
}

impl Measured for Snmfs {
    const POWER: i32 = 1;

    fn plain(problem: &Problem) -> Problem {
        plain(problem, &[1, 2, 3])
    }

    fn block(_: &Problem, name: &str, s: f64) -> f64 {
        if ["activations", "noise"].contains(&name) {
            s
        } else {
            1.0
        }
    }
}

impl Measured for Cps {
    const POWER: i32 = 1;

    fn plain(problem: &Problem) -> Problem {
        plain(problem, &[1, 2, 3])
    }

    fn block(problem: &Problem, name: &str, s: f64) -> f64 {
        let (_, scale) = modes(problem);
        let carrier = scale.map_or("weights".into(), |j| format!("factor_{j}"));
        if name == carrier || name == "noise" {
            s
        } else {
            1.0
        }
    }
}

impl Measured for Shifts {
    const POWER: i32 = 1;

    fn plain(problem: &Problem) -> Problem {
        plain(problem, &[1, 2, 7])
    }

    fn block(_: &Problem, name: &str, s: f64) -> f64 {
        if ["activations", "noise"].contains(&name) {
            s
        } else {
            1.0
        }
    }
}

impl Explains for Snmfs {
    fn along(_: &Problem) -> usize {
        1
    }

    fn explain<T: Real>(
        problem: &Problem,
        learnt: &StateOf<Self, T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Vec<Vec<u64>>, FitError> {
        let explained = Self::model::<T>(problem)?.transform(learnt, data, how)?;
        Ok(by_columns(
            explained.fit.state().activations(),
            &explained.gap,
        ))
    }
}

impl Explains for SnmfVbs {
    fn along(_: &Problem) -> usize {
        1
    }

    fn explain<T: Real>(
        problem: &Problem,
        learnt: &StateOf<Self, T>,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Vec<Vec<u64>>, FitError> {
        let explained = Self::model::<T>(problem)?.transform(learnt, data, how)?;
        let state = explained.fit.state();
        let shapes = by_columns(state.activations_shape(), &explained.gap);
        let rates = by_columns(state.activations_rate(), &[]);
        Ok(shapes
            .into_iter()
            .zip(rates)
            .map(|(s, r)| [s, r].concat())
            .collect())
    }
}
