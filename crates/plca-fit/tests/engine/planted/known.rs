//! Counts above a known background, `V ~ Poisson(W H + b B)`, and mistakes of its E-step, its value, its exposures and its M-step.

use std::sync::atomic::{AtomicUsize, Ordering};

use nalgebra::DMatrix;
use plca_dist::random::uniform;
use plca_fit::laws::{Claims, blocks};
use plca_fit::laws::{Law, Rounding, check_model, check_moved};
use plca_fit::{
    Algorithm, FitError, Model, Parameters, Settings, State,
    blocks::{Axes, BlockSpec, Blocks, Constraint, Exposure},
    em::{Counts, Em, Expectation, Renewed, Wanted},
};
use plca_tensor::Data;

use super::{Spoiled, claims, counts, dense, distributions, first, found, is, rng};

/// Places of the blocks.
const B: usize = 0;
const W: usize = 1;
const H: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    /// The E-step divides by the rate without the background.
    NoBackground,
    /// The value is `Σ V ln P`.
    NoMass,
    /// The value grows with the iterations.
    LaterValue,
    /// Counts of `h` are those of the component before.
    NextComponent,
    /// Counts of `h` are half of what they are.
    Half,
    /// Half of the counts of `h` are `h` itself.
    Damped,
    /// Counts of `b` keep it as it is.
    KeepsB,
    /// Counts of `w` keep it as it is.
    KeepsW,
    /// The exposure of `b` is 1.
    ExposureOfB,
    /// The exposure of `h` is too large.
    ExposureOfH,
    /// Columns of `w` sum to 1.01.
    Sums,
    /// A little is added to every entry of `w`.
    Smooths,
    /// Every E-step is another.
    Hidden,
    /// Nothing is unsupported.
    NothingUnsupported,
}

#[derive(Clone, Debug)]
struct Known {
    background: DMatrix<f64>,
    components: usize,
    mistake: Mistake,
}

#[derive(Debug)]
struct OnData<'a> {
    model: &'a Known,
    data: &'a dyn Data<f64>,
    specs: Vec<BlockSpec<f64>>,
    calls: AtomicUsize,
}

fn specs((rows, columns): (usize, usize), k: usize) -> Vec<BlockSpec<f64>> {
    let rates = |name, shape, axis| BlockSpec::values(name, shape, axis, Constraint::NonNegative);
    vec![
        rates("b", (1, 1), Axes::SINGLE),
        BlockSpec::simplex("w", (rows, k), Axes::factor(0)),
        rates("h", (k, columns), Axes::coefficients(1)),
    ]
}

impl OnData<'_> {
    fn rate(&self, at: &Parameters<f64>, i: usize, j: usize) -> f64 {
        at.at(W).row(i).transpose().dot(&at.at(H).column(j))
            + at.at(B)[0] * self.model.background[(i, j)]
    }
}

impl Expectation<f64> for OnData<'_> {
    fn blocks(&self) -> &[BlockSpec<f64>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<f64>, wanted: &Wanted<'_>) -> Result<Counts<f64>, FitError> {
        let Known {
            background,
            components,
            mistake,
        } = self.model;
        let (b, w, h) = (at.at(B)[0], at.at(W), at.at(H));
        let mut value = -(b * background.sum()) - (w * h).sum();
        if *mistake == Mistake::NoMass {
            value = 0.0;
        }
        let mut of_b = 0.0;
        let (mut of_w, mut of_h) = (w * 0.0, h * 0.0);
        self.data.visit(&mut |index, v| {
            let (i, j) = (index[0], index[1]);
            let rate = self.rate(at, i, j);
            value += v * rate.ln();
            let mut q = v / rate;
            match mistake {
                Mistake::NoBackground => q = v / (rate - b * background[(i, j)]),
                Mistake::Hidden => {
                    q *= 1.0 + 1e-9 * self.calls.fetch_add(1, Ordering::Relaxed) as f64;
                }
                _ => {}
            }
            of_b += q * b * background[(i, j)];
            for z in 0..*components {
                let count = q * w[(i, z)] * h[(z, j)];
                of_w[(i, z)] += count;
                match mistake {
                    Mistake::NextComponent => of_h[((z + 1) % components, j)] += count,
                    Mistake::Half => of_h[(z, j)] += 0.5 * count,
                    _ => of_h[(z, j)] += count,
                }
            }
        })?;
        match mistake {
            Mistake::KeepsB => of_b = b * background.sum(),
            Mistake::KeepsW => of_w = w.clone(),
            Mistake::Damped => of_h = (of_h + h) * 0.5,
            Mistake::LaterValue => value *= 1.0 + 1e-3 * at.iteration() as f64,
            _ => {}
        }
        let counts = [DMatrix::from_element(1, 1, of_b), of_w, of_h];
        let blocks = counts.into_iter().zip(wanted.blocks);
        Ok(Counts {
            blocks: blocks.map(|(c, wanted)| wanted.then_some(c)).collect(),
            value: wanted.value.then_some(value),
        })
    }

    fn exposure(&self, block: usize, _: Renewed<'_, f64>) -> Option<Exposure<f64>> {
        let Known {
            background,
            components,
            mistake,
        } = self.model;
        let each = match (block, mistake) {
            (B, Mistake::ExposureOfB) => vec![1.0],
            (B, _) => vec![background.sum()],
            (H, Mistake::ExposureOfH) => vec![1.2; *components],
            (H, _) => vec![1.0; *components],
            _ => return None,
        };
        Some(Exposure::PerComponent(each))
    }

    fn unsupported(&self, at: &Parameters<f64>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let mut first: Option<(Vec<usize>, f64)> = None;
        if self.model.mistake == Mistake::NothingUnsupported {
            return Ok(None);
        }
        self.data.visit(&mut |index, value| {
            let earlier = first
                .as_ref()
                .is_none_or(|(other, _)| index < other.as_slice());
            if earlier && self.rate(at, index[0], index[1]) <= 0.0 {
                first = Some((index.to_vec(), value));
            }
        })?;
        Ok(first)
    }

    fn unit(&self) -> f64 {
        self.data.total()
    }
}

impl Settings for Known {
    fn components(&self) -> usize {
        self.components
    }

    fn check(&self) -> Result<(), FitError> {
        FitError::if_zero("components", self.components)
    }
}

impl Model<f64> for Known {
    type State = KnownState;

    fn bind<'a>(
        &'a self,
        data: &'a dyn Data<f64>,
    ) -> Result<Box<dyn Algorithm<f64> + 'a>, FitError> {
        let em = Em(OnData {
            model: self,
            data,
            specs: specs(self.background.shape(), self.components),
            calls: AtomicUsize::new(0),
        });
        Ok(match self.mistake {
            Mistake::Sums => Box::new(Spoiled(em, |j, _, block| {
                if j == W {
                    *block *= 1.01;
                }
            })),
            Mistake::Smooths => Box::new(Spoiled(em, |j, _, block| {
                if j == W {
                    block.add_scalar_mut(1e-4);
                    *block /= block.column(0).sum();
                }
            })),
            _ => Box::new(em),
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
struct KnownState(Parameters<f64>);

impl State for KnownState {
    type Scalar = f64;
    const NAME: &'static str = "known";
    const BLOCKS: Blocks = &[
        ("b", Axes::SINGLE),
        ("w", Axes::factor(0)),
        ("h", Axes::coefficients(1)),
    ];

    fn wrap(parameters: Parameters<f64>) -> Result<Self, FitError> {
        Ok(Self(parameters))
    }

    fn parameters(&self) -> &Parameters<f64> {
        &self.0
    }
}

/// A model, data and a start.
fn problem(seed: u64, mistake: Mistake) -> (Known, plca_tensor::DenseTensor<f64>, KnownState) {
    let mut rng = rng(seed);
    let (rows, columns) = (2 + seed as usize % 4, 2 + seed as usize % 3);
    let components = 1 + seed as usize % 3;
    let data = dense(rows, columns, counts(rows, columns, &mut rng));
    let background = DMatrix::from_fn(rows, columns, |i, j| 1.0 + ((2 * i + 3 * j) % 5) as f64);
    let w = distributions(rows, components, &mut rng);
    let h = DMatrix::from_fn(components, columns, |_, _| 8.0 * (0.5 + uniform(&mut rng)));
    let blocks = vec![DMatrix::from_element(1, 1, 0.3), w, h];
    let start = Parameters::new(&specs((rows, columns), components), blocks).unwrap();
    let model = Known {
        background,
        components,
        mistake,
    };
    (model, data, KnownState(start))
}

#[test]
fn each_mistake_is_found_in_its_block() {
    use Mistake::*;
    let mut others = Vec::new();
    for (mistake, expected) in [
        (None, Option::None),
        (NoBackground, is(Law::Expectation, "h")),
        (NoMass, is(Law::Value, "h")),
        (LaterValue, is(Law::Value, "")),
        (NextComponent, is(Law::Expectation, "h")),
        (Half, is(Law::Expectation, "h")),
        (Damped, is(Law::Expectation, "h")),
        (KeepsB, is(Law::Expectation, "b")),
        (KeepsW, is(Law::Expectation, "w")),
        (ExposureOfB, is(Law::Exposure, "b")),
        (ExposureOfH, is(Law::Exposure, "h")),
        (Sums, is(Law::Valid, "w")),
        (Smooths, is(Law::Stuck, "w")),
        (Hidden, is(Law::Expectation, "b")),
        (NothingUnsupported, is(Law::Unsupported, "")),
    ] {
        let broken = first(|seed| {
            let (model, data, start) = problem(seed, mistake);
            let claims = claims(&data, model.components, model.background.sum());
            check_model(&model, &data, &start, &claims).map(drop)
        });
        let shown = broken.as_ref().map(ToString::to_string);
        if broken.map(found) != expected {
            others.push(format!("{mistake:?}: {shown:?}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

/// The log-likelihood of rates: data in another unit have another constant too.
#[test]
fn a_log_likelihood_of_rates_has_a_scale() {
    for seed in 0..12 {
        let (model, data, start) = problem(seed, Mistake::None);
        let mut values = vec![0.0; data.shape().iter().product()];
        let columns = data.shape()[1];
        data.visit(&mut |index, v| values[index[0] * columns + index[1]] = 4.0 * v)
            .unwrap();
        let larger = dense(data.shape()[0], columns, values);
        let (here, there) = (model.bind(&data).unwrap(), model.bind(&larger).unwrap());
        let map = |at: &Parameters<f64>| {
            let mut at = at.clone();
            at.change(|j, block| {
                if j != W {
                    *block *= 4.0;
                }
            });
            at
        };
        let claims = Claims {
            rounding: Rounding::derived(f64::EPSILON, 12, 8.0 * data.total()),
            ..claims(&data, model.components, model.background.sum())
        };
        let scaled = |objective: &dyn Fn(f64) -> f64| {
            let both = [&*here, &*there];
            check_moved(
                Law::Scale,
                both,
                start.parameters(),
                map,
                blocks,
                objective,
                &claims,
            )
        };
        scaled(&|value| 4.0 * value + 4.0 * 4f64.ln() * data.total()).unwrap();
        assert_eq!(scaled(&|value| 4.0 * value).unwrap_err().law, Law::Scale);
    }
}
