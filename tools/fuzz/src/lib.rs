//! Fuzz targets: every reader of bytes, and pairs of algorithms that must agree.
//!
//! One table, [`TARGETS`], serves the coverage-guided campaigns of `cargo xtask fuzz` and the bounded run of `cargo test`;
//! see the `README.md` of this folder.

pub mod campaign;
pub mod mutate;
mod scratch;
mod targets;

pub use targets::TARGETS;

/// Bytes of an input at most, of which [`MAX_MEMORY`] is promised.
pub const MAX_INPUT: usize = 1 << 16;
/// Bytes that a target may hold at a time.
pub const MAX_MEMORY: u64 = 64 << 20;

/// What is fed with bytes, and what must hold whatever they are. That nothing panics, hangs or takes more memory than
/// [`MAX_MEMORY`] goes for all.
///
/// ```
/// let target = plca_fuzz::target("npy").expect("in the table");
/// assert!(target.seeds().iter().all(|seed| target.run(seed).reached));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Unique; also that of the folder of its regressions.
    pub name: &'static str,
    /// What is asserted besides, in words.
    pub asserts: &'static str,
    /// Good inputs, made in code.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Runs one input: whether it came past the header, or was a problem to compare on.
    pub run: fn(&[u8]) -> bool,
}

/// What came of one input.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// It came past the header of its format, or was a problem to compare on.
    pub reached: bool,
    /// Bytes that the thread held at a time.
    pub memory: u64,
}

impl Target {
    /// Good inputs, made in code.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        (self.seeds)()
    }

    /// Runs one input.
    ///
    /// # Panics
    ///
    /// If something that is asserted does not hold; if an input of at most [`MAX_INPUT`] bytes takes more than [`MAX_MEMORY`].
    pub fn run(&self, input: &[u8]) -> Run {
        let mut reached = false;
        let memory = allocation_counter::measure(|| reached = (self.run)(input)).bytes_max;
        let (bytes, name) = (input.len(), self.name);
        assert!(
            memory <= MAX_MEMORY || bytes > MAX_INPUT,
            "{name} takes {memory} bytes of memory for an input of {bytes}"
        );
        Run { reached, memory }
    }
}

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}
