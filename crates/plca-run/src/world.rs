//! Processes that run one command together, and what they tell each other.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Processes that fit one model together, each a rank from 0.
///
/// One thread of a process at a time calls these, not always the same one. What cannot be done ends the process, and so all of them.
pub trait Ranks: Debug + Send + Sync {
    /// The number of this process.
    fn rank(&self) -> usize;
    /// How many processes there are.
    fn count(&self) -> usize;
    /// Sends a message to another rank, which waits for it by [`receive`](Self::receive); messages come in the order in which they were sent.
    fn send(&self, to: usize, message: &[u8]);
    /// The next message from another rank.
    fn receive(&self, from: usize) -> Vec<u8>;
    /// The message that rank 0 calls this with, on all ranks; those of others are ignored.
    fn broadcast(&self, message: Vec<u8>) -> Vec<u8>;
}

/// All ranks, as one of them sees them.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) ranks: Box<dyn Ranks>,
    /// Whether they have talked.
    met: AtomicBool,
}

impl World {
    pub(crate) fn new(ranks: impl Ranks + 'static) -> Self {
        Self {
            ranks: Box::new(ranks),
            met: AtomicBool::new(false),
        }
    }

    /// Whether this rank writes and speaks.
    pub(crate) fn leads(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// The outcome of a run. Before they have talked, the failure of one rank becomes that of all, which would wait for it.
    pub(crate) fn told(&self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        match self.met.load(Ordering::Relaxed) {
            true => outcome,
            false => self.agreed(outcome),
        }
    }

    /// What this rank has, once no rank has failed.
    pub(crate) fn agreed<S>(&self, own: Result<S, Failure>) -> Result<S, Failure> {
        let told = own.as_ref().map(|_| ()).map_err(Failure::clone);
        self.all(told, |(), ()| Ok(()))?;
        own
    }

    /// What all ranks have, joined along a binary tree, the left one of lower ranks; the failure of the lowest rank that has one. It has the same
    /// bits on all of them.
    pub(crate) fn all<S: Serialize + DeserializeOwned>(
        &self,
        own: Result<S, Failure>,
        join: impl Fn(S, S) -> Result<S, Failure>,
    ) -> Result<S, Failure> {
        self.met.store(true, Ordering::Relaxed);
        let (rank, count) = (self.ranks.rank(), self.ranks.count());
        // What cannot be encoded is sent as nothing, which no rank can decode: they all fail.
        let message = |sum: &Result<S, Failure>| encode(sum).unwrap_or_default();
        let received = |bytes: &[u8]| decode::<Result<S, Failure>>(bytes).flatten();
        let (mut sum, mut step) = (own, 1);
        // Sums of shards are of no fixed length, which reductions of MPI need.
        while step < count && rank & step == 0 {
            if rank + step < count {
                let right = received(&self.ranks.receive(rank + step));
                sum = sum.and_then(|left| join(left, right?));
            }
            step *= 2;
        }
        if step < count {
            self.ranks.send(rank - step, &message(&sum));
        }
        let root = match rank {
            0 => message(&sum),
            _ => Vec::new(),
        };
        received(&self.ranks.broadcast(root))
    }
}

pub(crate) fn encode(what: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let length = postcard::experimental::serialized_size(what);
    let bytes = length.and_then(|n| postcard::to_extend(what, Vec::with_capacity(n)));
    bytes.map_err(|e| Failure::new(format_args!("a message of shards: {e}")))
}

pub(crate) fn decode<S: DeserializeOwned>(bytes: &[u8]) -> Result<S, Failure> {
    match postcard::take_from_bytes(bytes) {
        Ok((what, [])) => Ok(what),
        // A rank that has ended sooner than others sends another kind of message.
        _ => Err(Failure::new(
            "the ranks are not in step: expected one program, the same options and one kind of processor for all",
        )),
    }
}
