//! Mixtures with gains of the columns of a matrix, of which cells are hidden: `V[i,j] ~ Poisson(g_j Σ_z F[i,z] M[z,j])`, columns of `F` and `M` on
//! the simplex, a Dirichlet prior on those of `M`. Hidden cells have the counts that the model expects. Mistakes of other kinds.

use std::sync::{Arc, Mutex};

use nalgebra::DMatrix;
use plca_dist::random::uniform;
use plca_fit::laws::{Law, check_model};
use plca_fit::{
    Algorithm, FitError, Model, Parameters, Settings, State,
    blocks::{Axes, BlockSpec, Blocks, Constraint, Exposure, Frozen, Prior},
    em::{Counts, Em, Expectation, Renewed, Wanted},
};
use plca_priors::Dirichlet;
use plca_tensor::{Data, DenseTensor};

use super::{Spoiled, claims, counts, dense, distributions, first, found, is, rng};

/// Places of the blocks.
const G: usize = 0;
const F: usize = 1;
const M: usize = 2;
const ALPHA: f64 = 1.5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    /// Counts of profiles take the gain of the next column.
    WrongIndex,
    /// Every datum counts one more: counts of other data, or the value of others.
    OneMore,
    /// The mixture of the row stands where that of the column should.
    Transposed,
    /// The counts have the prior already.
    PriorTwice,
    /// Hidden cells count nothing: they are taken for zeros, which the value does not do.
    NoImputation,
    /// Rows of profiles are normalised instead of columns.
    Rows,
    /// Counts are those of the last call but one.
    Stale,
    /// The mass of the model is added to the value.
    Sign,
    /// The last component has no counts of its profile.
    LastComponent,
    /// The value takes the mass of hidden cells too.
    AllCells,
    /// The mass of hidden cells is not in the exposure of gains, but their counts are.
    ExposureOfSeen,
    /// Frozen profiles move.
    Thaws,
    /// Gains go twice as far as they should.
    TooFar,
    /// Profiles never fall below a floor.
    Floor,
    /// The last cell without support is named.
    LastCell,
    /// Mixtures are updated in their first column alone.
    OneColumn,
    /// Counts of profiles are there only where those of gains are asked for.
    Gated,
    /// Counts of profiles take the mixture of the state before.
    Kept,
    /// Cells of the second column are never said to be without support.
    BlindColumn,
}

#[derive(Clone, Debug)]
struct Gains {
    components: usize,
    mistake: Mistake,
}

#[derive(Debug)]
struct OnData<'a> {
    mistake: Mistake,
    data: &'a dyn Data<f64>,
    hidden: Vec<[usize; 2]>,
    specs: Vec<BlockSpec<f64>>,
    last: Mutex<Option<Vec<DMatrix<f64>>>>,
    kept: Mutex<Option<DMatrix<f64>>>,
}

fn specs(rows: usize, columns: usize, k: usize) -> Vec<BlockSpec<f64>> {
    let gains = BlockSpec::values(
        "gains",
        (columns, 1),
        Axes::numbers(1),
        Constraint::NonNegative,
    );
    let mut mixture = BlockSpec::simplex("mixture", (k, columns), Axes::coefficients(1));
    mixture.prior = Some(Prior::Simplex(Arc::new(
        Dirichlet::symmetric(ALPHA).unwrap(),
    )));
    vec![
        gains,
        BlockSpec::simplex("profiles", (rows, k), Axes::factor(0)),
        mixture,
    ]
}

impl OnData<'_> {
    fn rate(&self, at: &Parameters<f64>, i: usize, j: usize) -> f64 {
        at.at(G)[j] * at.at(F).row(i).transpose().dot(&at.at(M).column(j))
    }
}

impl Expectation<f64> for OnData<'_> {
    fn blocks(&self) -> &[BlockSpec<f64>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<f64>, wanted: &Wanted<'_>) -> Result<Counts<f64>, FitError> {
        let (g, f, m) = (at.at(G), at.at(F), at.at(M));
        let mut counts = vec![g * 0.0, f * 0.0, m * 0.0];
        let (k, columns) = m.shape();
        let kept = self.kept.lock().unwrap().replace(m.clone());
        let kept = kept.filter(|_| self.mistake == Mistake::Kept);
        let mut count = |[i, j]: [usize; 2], q: f64| {
            for z in 0..k {
                let of = match self.mistake {
                    Mistake::Transposed => m[(z, i % columns)],
                    _ => m[(z, j)],
                };
                let c = q * g[j] * f[(i, z)] * of;
                counts[G][j] += c;
                if !(self.mistake == Mistake::LastComponent && z + 1 == k) {
                    counts[F][(i, z)] += match self.mistake {
                        Mistake::WrongIndex => c * g[(j + 1) % columns] / g[j],
                        Mistake::Kept => kept.as_ref().map_or(c, |m| c * m[(z, j)] / of),
                        _ => c,
                    };
                }
                counts[M][(z, j)] += c;
            }
        };
        // All of the mass, less that of hidden cells.
        let mut value = -g.sum();
        if self.mistake == Mistake::Sign {
            value = g.sum();
        }
        for &[i, j] in &self.hidden {
            if self.mistake != Mistake::AllCells {
                value += self.rate(at, i, j);
            }
            if self.mistake != Mistake::NoImputation {
                count([i, j], 1.0);
            }
        }
        self.data.visit(&mut |index, v| {
            let rate = self.rate(at, index[0], index[1]);
            value += v * rate.ln();
            let v = if self.mistake == Mistake::OneMore {
                v + 1.0
            } else {
                v
            };
            count([index[0], index[1]], v / rate);
        })?;
        if self.mistake == Mistake::PriorTwice {
            counts[M].add_scalar_mut(ALPHA - 1.0);
        }
        if self.mistake == Mistake::Stale && wanted.blocks.contains(&true) {
            let last = self.last.lock().unwrap().replace(counts.clone());
            counts = last.unwrap_or(counts);
        }
        let gated = self.mistake == Mistake::Gated && !wanted.blocks[G];
        let blocks = counts.into_iter().zip(wanted.blocks).enumerate();
        let blocks = blocks.map(|(j, (c, wanted))| (*wanted && !(gated && j == F)).then_some(c));
        Ok(Counts {
            blocks: blocks.collect(),
            value: wanted.value.then_some(value),
        })
    }

    fn exposure(&self, block: usize, _: Renewed<'_, f64>) -> Option<Exposure<f64>> {
        let each = match self.mistake {
            Mistake::ExposureOfSeen => 0.75,
            _ => 1.0,
        };
        // One number for all.
        (block == G).then(|| Exposure::PerComponent(vec![each]))
    }

    fn unsupported(&self, at: &Parameters<f64>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let mut lost = Vec::new();
        self.data.visit(&mut |index, value| {
            let seen = self.mistake != Mistake::BlindColumn || index[1] != 1;
            if seen && self.rate(at, index[0], index[1]) <= 0.0 {
                lost.push((index.to_vec(), value));
            }
        })?;
        lost.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(match self.mistake {
            Mistake::LastCell => lost.pop(),
            _ => lost.into_iter().next(),
        })
    }

    fn unit(&self) -> f64 {
        self.data.total()
    }
}

impl Settings for Gains {
    fn components(&self) -> usize {
        self.components
    }

    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)
    }
}

impl Model<f64> for Gains {
    type State = GainsState;

    fn bind<'a>(
        &'a self,
        data: &'a dyn Data<f64>,
    ) -> Result<Box<dyn Algorithm<f64> + 'a>, FitError> {
        let mut hidden = Vec::new();
        data.visit_mask(&mut |index| hidden.push([index[0], index[1]]))?;
        let mut specs = specs(data.shape()[0], data.shape()[1], self.components);
        if self.mistake == Mistake::Thaws {
            specs[F].frozen = Frozen::Whole;
        }
        let em = Em(OnData {
            mistake: self.mistake,
            data,
            hidden,
            specs,
            last: Mutex::new(None),
            kept: Mutex::new(None),
        });
        Ok(match self.mistake {
            Mistake::Rows => Box::new(Spoiled(em, |j, _, block| {
                if j == F {
                    for mut row in block.row_iter_mut() {
                        let sum = row.sum();
                        row /= sum;
                    }
                }
            })),
            Mistake::Thaws => Box::new(Spoiled(em, |j, _, block| {
                if j == F {
                    block.swap_rows(0, 1);
                }
            })),
            Mistake::TooFar => Box::new(Spoiled(em, |j, old, block| {
                if j == G {
                    block.zip_apply(old, |new, old| *new *= (*new / old).powi(2));
                }
            })),
            Mistake::Floor => Box::new(Spoiled(em, |j, _, block| {
                if j == F {
                    for mut column in block.column_iter_mut() {
                        column.apply(|x| *x = x.max(0.05));
                        let sum = column.sum();
                        column /= sum;
                    }
                }
            })),
            Mistake::OneColumn => Box::new(Spoiled(em, |j, old, block| {
                if j == M {
                    let first = block.column(0).into_owned();
                    block.copy_from(old);
                    block.set_column(0, &first);
                }
            })),
            _ => Box::new(em),
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
struct GainsState(Parameters<f64>);

impl State for GainsState {
    type Scalar = f64;
    const NAME: &'static str = "gains";
    const BLOCKS: Blocks = &[
        ("gains", Axes::numbers(1)),
        ("profiles", Axes::factor(0)),
        ("mixture", Axes::coefficients(1)),
    ];

    fn wrap(parameters: Parameters<f64>) -> Result<Self, FitError> {
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<f64> {
        &self.0
    }
}

/// A model, data of which two cells are hidden, and a start.
fn problem(seed: u64, mistake: Mistake) -> (Gains, DenseTensor<f64>, GainsState) {
    let mut rng = rng(100 + seed);
    let (rows, columns) = (3 + seed as usize % 3, 3 + seed as usize % 2);
    let components = 2 + seed as usize % 2;
    let mut values = counts(rows, columns, &mut rng);
    values[columns + 1] = f64::NAN;
    values[rows * columns - 1] = f64::NAN;
    let data = dense(rows, columns, values);
    let blocks = vec![
        DMatrix::from_fn(columns, 1, |_, _| 9.0 * (0.5 + uniform(&mut rng))),
        distributions(rows, components, &mut rng),
        distributions(components, columns, &mut rng),
    ];
    let start = Parameters::new(&specs(rows, columns, components), blocks).unwrap();
    let model = Gains {
        components,
        mistake,
    };
    (model, data, GainsState(start))
}

#[test]
fn each_mistake_is_found_in_its_block() {
    use Mistake::*;
    let mut others = Vec::new();
    for (mistake, expected) in [
        (None, Option::None),
        (WrongIndex, is(Law::Expectation, "profiles")),
        (OneMore, is(Law::Value, "gains")),
        (Transposed, is(Law::Expectation, "mixture")),
        (PriorTwice, is(Law::Expectation, "mixture")),
        (NoImputation, is(Law::Value, "gains")),
        (Rows, is(Law::Valid, "profiles")),
        (Stale, is(Law::Expectation, "profiles")),
        (Sign, is(Law::Value, "gains")),
        (LastComponent, is(Law::Expectation, "profiles")),
        (AllCells, is(Law::Value, "gains")),
        (ExposureOfSeen, is(Law::Exposure, "gains")),
        (Thaws, is(Law::Frozen, "profiles")),
        (TooFar, is(Law::Block, "gains")),
        (Floor, is(Law::Stuck, "profiles")),
        (LastCell, is(Law::Unsupported, "")),
        (OneColumn, is(Law::Stuck, "mixture")),
        (Gated, is(Law::Expectation, "profiles")),
        (Kept, is(Law::Expectation, "profiles")),
        (BlindColumn, is(Law::Unsupported, "")),
    ] {
        let broken = first(|seed| {
            let (model, data, start) = problem(seed, mistake);
            let claims = claims(&data, model.components, 20.0 + start.0.at(G).sum());
            check_model(&model, &data, &start, &claims).map(drop)
        });
        let shown = broken.as_ref().map(ToString::to_string);
        if broken.map(found) != expected {
            others.push(format!("{mistake:?}: {shown:?}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}
