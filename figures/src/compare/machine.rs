//! What a comparison was measured on: the machine and what it can do at best.

use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use nalgebra::DMatrix;
use serde_json::{Value, json};

use crate::Result;

/// Rows and columns of the products whose rate is the limit.
const SIDE: usize = 1500;
/// What two threads do at once to see whether there are two cores.
const BURST: usize = 700;

/// Instruction sets that a comparison can be held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, clap::ValueEnum)]
pub(crate) enum Isa {
    Avx2,
    Avx512,
}

impl Isa {
    /// As `PLCA_INSTRUCTION_SET` calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The widest of the machine; `None` on machines of another kind.
    fn widest() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                return Some(Self::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                return Some(Self::Avx2);
            }
        }
        None
    }
}

/// The machine of a comparison.
#[derive(Debug)]
pub(super) struct Machine {
    name: String,
    cores: usize,
    /// What our kernels run on.
    pub(super) isa: Option<Isa>,
    /// Multiplications and additions in a second on one thread, by a square product in `f64` and in `f32`; `None` where the library's
    /// product would run on a wider instruction set than our kernels.
    pub(super) product: Option<[f64; 2]>,
    /// Work of two threads at once over that of one in the same time: 2 where there are two cores.
    pub(super) two_threads: f64,
}

impl Machine {
    /// Measures the machine, with our kernels held to `isa` if it is given.
    ///
    /// # Errors
    ///
    /// An instruction set that the machine has not.
    pub(super) fn measure(isa: Option<Isa>) -> Result<Self> {
        let widest = Isa::widest();
        if let Some(wanted) = isa
            && widest.is_none_or(|widest| widest < wanted)
        {
            return Err(format!("this machine has no {}", wanted.name()).into());
        }
        let isa = isa.or(widest);
        Ok(Self {
            name: name(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            isa,
            product: (isa == widest).then(|| [rate::<f64>(SIDE), rate::<f32>(SIDE)]),
            two_threads: burst(),
        })
    }

    /// The line above the table.
    pub(super) fn line(&self) -> String {
        let isa = self.isa.map_or("other instructions", Isa::name);
        let product = self.product.map_or_else(
            || "of products not known".into(),
            |[double, single]| {
                format!(
                    "{:.1} GFLOP/s f64, {:.1} f32 in square products",
                    double / 1e9,
                    single / 1e9
                )
            },
        );
        format!(
            "{}, {} cores, {isa}; {product}; two threads at once do {:.2} times the work of one",
            self.name, self.cores, self.two_threads
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.name, "cores": self.cores, "isa": self.isa.map(Isa::name),
            "product_flops": self.product, "two_threads": self.two_threads,
        })
    }
}

fn name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|l| l.strip_prefix("model name"));
    let model = model.and_then(|rest| rest.split_once(':'));
    model.map_or_else(
        || std::env::consts::ARCH.to_string(),
        |(_, name)| name.trim().to_string(),
    )
}

/// Seconds of one square product.
fn product<T: nalgebra::RealField + Copy>(side: usize) -> Duration {
    let a = DMatrix::<T>::from_element(side, side, nalgebra::convert(0.5));
    let b = a.clone();
    let mut c = a.clone();
    let start = Instant::now();
    c.gemm(T::one(), &a, &b, T::zero());
    let took = start.elapsed();
    std::hint::black_box(c);
    took
}

/// The best of some products.
fn rate<T: nalgebra::RealField + Copy>(side: usize) -> f64 {
    let least = (0..5).map(|_| product::<T>(side)).min().unwrap_or_default();
    2.0 * (side as f64).powi(3) / least.as_secs_f64()
}

/// Twice the seconds of a product alone over those of two at once, the median of some.
fn burst() -> f64 {
    let mut ratios: Vec<f64> = (0..7)
        .map(|_| {
            let alone = product::<f64>(BURST);
            let barrier = Barrier::new(2);
            let both = || {
                barrier.wait();
                product::<f64>(BURST)
            };
            let slower = thread::scope(|scope| {
                let other = scope.spawn(both);
                let own = both();
                other.join().map_or(own, |other| other.max(own))
            });
            2.0 * alone.as_secs_f64() / slower.as_secs_f64()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_instruction_set_than_the_machines_is_refused() {
        match Isa::widest() {
            Some(Isa::Avx512) => {}
            Some(Isa::Avx2) => assert!(Machine::measure(Some(Isa::Avx512)).is_err()),
            None => assert!(Machine::measure(Some(Isa::Avx2)).is_err()),
        }
    }
}
