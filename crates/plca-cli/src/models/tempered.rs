//! Any model with a tempering power, on the schedule of `--temper B,ETA`.

use std::path::Path;

use plca_em::{CooledEm, CooledState, Cooling, Outcome, Progress, Tempered, hold_out};
use plca_fit::{Accelerate, Carried, Direction, Observer, Stop};
use plca_io::{Array, Element};
use plca_tensor::Data;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use super::CommandModel;
use super::accelerated::plainly;
use super::options::schedule;
use crate::args::{Acceleration, FitArgs};
use crate::blocks::Arrays;
use crate::failure::Failure;
use crate::fit::{self, HELD_OUT_STREAM};

/// A model whose algorithm can be bound to parts of the data.
pub(crate) trait Bind<T: Element>: CommandModel<Data = dyn Data<T>> {
    /// The model bound to data.
    type Em<'a>: Tempered<State = Self::State> + Accelerate<State = Self::State>
    where
        Self: 'a;
    /// Binds it.
    fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Self::Em<'a>, Failure>;
    /// The power of the next step.
    fn power(state: &mut Self::State) -> &mut f64;
}

/// Before the names of the blocks of the best state in a checkpoint.
const BEST: &str = "held_out.";
/// Where a checkpoint keeps the schedule: perplexity, improved, ended, present power, best power.
const PLACE: &str = "schedule";

struct TemperedCommand<'d, T, M> {
    model: M,
    schedule: Cooling,
    train: &'d dyn Data<T>,
    held: &'d dyn Data<T>,
}

/// Fits a model that can be tempered as the command line says.
pub(crate) fn fit<T: Element, M: Bind<T>>(
    args: &FitArgs,
    data: &(dyn Data<T> + 'static),
    make: impl FnOnce(usize) -> Result<M, Failure>,
) -> Result<(), Failure> {
    let Some(schedule) = schedule(args)? else {
        return fit::fit(args, data, make);
    };
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    rng.set_stream(HELD_OUT_STREAM);
    let parts = hold_out(data, schedule.share, &mut rng);
    let parts = parts.map_err(|e| Failure::by(&args.data, e))?;
    fit::fit(args, data, |rank| {
        Ok(TemperedCommand {
            model: make(rank)?,
            schedule,
            train: &parts.train,
            held: &parts.held,
        })
    })
}

impl<T: Element, M: Bind<T>> TemperedCommand<'_, T, M> {
    fn bind<'a>(
        &'a self,
        data: &'a dyn Data<T>,
    ) -> Result<CooledEm<M::Em<'a>, M::Em<'a>>, Failure> {
        let on = |part: &'a dyn Data<T>| self.model.on(part);
        Ok(CooledEm::new(
            on(data)?,
            on(self.train)?,
            on(self.held)?,
            self.schedule,
        )?)
    }
}

impl<T: Element, M: Bind<T>> CommandModel for TemperedCommand<'_, T, M> {
    type Data = dyn Data<T>;
    type State = CooledState<M::State>;
    const OBJECTIVE: &'static str = M::OBJECTIVE;

    fn start(
        &self,
        data: &Self::Data,
        given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self::State, Failure> {
        let state = self.model.start(data, given, path, rng)?;
        Ok(self.bind(data)?.start(state)?)
    }

    fn restore(&self, arrays: Arrays, path: &Path) -> Result<Self::State, Failure> {
        let (mut current, mut best) = (Arrays::new(), Arrays::new());
        let mut place = Vec::new();
        for (name, array) in arrays {
            if name == PLACE {
                place = array.values;
            } else if let Some(name) = name.strip_prefix(BEST) {
                best.insert(name.into(), array);
            } else {
                current.insert(name, array);
            }
        }
        let &[perplexity, improved, ended, power, best_power] = &place[..] else {
            return Err(Failure::of(
                path,
                format!("has no `{PLACE}` of five numbers"),
            ));
        };
        let mut state = CooledState {
            best: self.model.restore(best, path)?,
            current: self.model.restore(current, path)?,
            perplexity,
            improved: improved != 0.0,
            ended: ended != 0.0,
        };
        *M::power(&mut state.current) = power;
        *M::power(&mut state.best) = best_power;
        Ok(state)
    }

    fn arrays(&self, data: &Self::Data, state: &Self::State) -> Arrays {
        self.model.arrays(data, &state.best)
    }

    fn saved(&self, data: &Self::Data, state: &Self::State) -> Arrays {
        let mut arrays = self.model.saved(data, &state.current);
        let best = self.model.saved(data, &state.best).into_iter();
        arrays.extend(best.map(|(name, block)| (format!("{BEST}{name}"), block)));
        let flag = |yes: bool| f64::from(u8::from(yes));
        let power = |state: &M::State| *M::power(&mut state.clone());
        let place = vec![
            state.perplexity,
            flag(state.improved),
            flag(state.ended),
            power(&state.current),
            power(&state.best),
        ];
        arrays.insert(PLACE.into(), Array::new(vec![place.len()], place));
        arrays
    }

    fn restored(&self, state: &Self::State) -> Vec<String> {
        self.model.restored(&state.current)
    }

    fn iterate(
        &self,
        data: &Self::Data,
        _: Acceleration,
        from: (Carried<Self::State>, Progress),
        stop: &Stop,
        observer: impl Observer<Carried<Self::State>>,
    ) -> Result<Outcome<Carried<Self::State>>, Failure> {
        // The schedule has the tolerance.
        let stop = Stop {
            tol: 0.0,
            residual_tol: None,
            ..*stop
        };
        let algorithm = self.bind(data)?;
        plainly(algorithm, from, &stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Maximise
    }

    fn score(&self, outcome: &Outcome<Self::State>) -> f64 {
        -outcome.state.perplexity
    }

    fn remarks(&self, state: &Self::State) -> Value {
        json!({
            "held_out_perplexity": state.perplexity,
            "power": *M::power(&mut state.best.clone()),
        })
    }

    fn scale(&self, data: &Self::Data, state: &Self::State) -> Result<Option<Array<f64>>, Failure> {
        self.model.scale(data, &state.best)
    }

    fn ln_lik(&self, data: &Self::Data, state: &Self::State) -> Result<Option<f64>, Failure> {
        self.model.ln_lik(data, &state.best)
    }
}
