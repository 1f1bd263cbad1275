//! The instruction set that loops and kernels run on, chosen at run time: the widest of the machine.
//!
//! Nothing in a loop is left to the compiler to contract: `a * b + c` is one rounding where `mul_add` says so and nowhere else, so the
//! bits of this crate do not depend on the machine.

use pulp::{Simd, WithSimd};

pub use crate::logarithm::ln_in_place;

/// Enough independent chains to hide the latency of a multiplication.
pub(crate) const LANES: usize = 32;

/// At most `L` numbers in as many lanes; the lanes that are left hold 1.
#[inline(always)]
pub(crate) fn lanes<const L: usize>(from: &[f64]) -> [f64; L] {
    let mut lanes = [1.0; L];
    lanes[..from.len()].copy_from_slice(from);
    lanes
}

/// The instruction set in use: the widest of the machine.
#[cfg(not(feature = "instruction-sets"))]
#[inline]
pub fn instruction_set() -> pulp::Arch {
    pulp::Arch::new()
}

#[cfg(feature = "instruction-sets")]
pub use choice::{instruction_set, instruction_sets, on_instruction_set, tests_on_the_others};

/// Runs plain loops, compiled for the instruction set in use as far as they are inlined.
#[inline]
pub fn wide<O>(loops: impl FnOnce() -> O) -> O {
    struct Loops<F>(F);
    impl<O, F: FnOnce() -> O> WithSimd for Loops<F> {
        type Output = O;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> O {
            (self.0)()
        }
    }
    instruction_set().dispatch(Loops(loops))
}

/// For tests: every instruction set of the machine can be the one in use.
#[cfg(feature = "instruction-sets")]
mod choice {
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::sync::{Mutex, OnceLock, PoisonError};

    use pulp::Arch;

    /// The variable that names the instruction set of a whole process.
    const VARIABLE: &str = "PLCA_INSTRUCTION_SET";

    /// In place of an index: as the variable says.
    const NONE: u8 = u8::MAX;

    static CHOSEN: AtomicU8 = AtomicU8::new(NONE);

    /// The names of the machine's instruction sets, the widest last: `scalar`, then `avx2` and `avx512`, or `native`.
    pub fn instruction_sets() -> &'static [(&'static str, Arch)] {
        static SETS: OnceLock<Vec<(&'static str, Arch)>> = OnceLock::new();
        SETS.get_or_init(|| {
            let mut sets = vec![("scalar", Arch::Scalar)];
            #[cfg(target_arch = "x86_64")]
            {
                sets.extend(pulp::x86::V3::try_new().map(|simd| ("avx2", Arch::V3(simd))));
                sets.extend(pulp::x86::V4::try_new().map(|simd| ("avx512", Arch::V4(simd))));
            }
            #[cfg(not(target_arch = "x86_64"))]
            sets.push(("native", Arch::new()));
            sets
        })
    }

    /// The instruction set in use: that of [`on_instruction_set`], else that of the variable `PLCA_INSTRUCTION_SET`, else the widest.
    ///
    /// # Panics
    ///
    /// If the variable names none of the machine's: a test that asks for an instruction set must not pass on another.
    pub fn instruction_set() -> Arch {
        static DEFAULT: OnceLock<Arch> = OnceLock::new();
        let sets = instruction_sets();
        match sets.get(usize::from(CHOSEN.load(Ordering::Relaxed))) {
            Some((_, chosen)) => *chosen,
            None => *DEFAULT.get_or_init(|| match std::env::var(VARIABLE) {
                Ok(name) => {
                    let named = sets.iter().find(|set| set.0 == name);
                    named
                        .unwrap_or_else(|| panic!("{VARIABLE}={name}: this machine has {sets:?}"))
                        .1
                }
                Err(_) => Arch::new(),
            }),
        }
    }

    /// Runs the calling test program again, once for each instruction set but the one in use, with these arguments: parts of names of tests, or `--skip=NAME`.
    /// Does nothing where the variable is set: then one set is asked for.
    ///
    /// # Panics
    ///
    /// If a test fails, with what the program printed, or if no test ran.
    pub fn tests_on_the_others(arguments: &[&str]) {
        if std::env::var_os(VARIABLE).is_some() {
            return;
        }
        let program = std::env::current_exe().expect("the path of this program");
        for (name, _) in instruction_sets().iter().rev().skip(1) {
            let run = std::process::Command::new(&program)
                .args(arguments)
                .env(VARIABLE, name)
                .output()
                .expect("the test program runs again");
            let text = String::from_utf8_lossy(&run.stdout);
            assert!(
                run.status.success() && !text.contains(" 0 passed"),
                "on {name}: {text}{}",
                String::from_utf8_lossy(&run.stderr)
            );
        }
    }

    /// Runs `f` while all threads of the process use the set of this index; one call at a time.
    pub fn on_instruction_set<O>(index: usize, f: impl FnOnce() -> O) -> O {
        static ONE: Mutex<()> = Mutex::new(());
        struct Reset;
        impl Drop for Reset {
            fn drop(&mut self) {
                CHOSEN.store(NONE, Ordering::Relaxed);
            }
        }
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let _reset = Reset;
        CHOSEN.store(index as u8, Ordering::Relaxed);
        f()
    }
}
