//! Processes that fit one model together, and what they tell each other.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::RunError;

/// Processes that fit one model together, each a rank from 0.
///
/// One thread of a process at a time calls these, not always the same one. What cannot be done ends the process, and so all of them.
pub trait Transport: Debug + Send + Sync {
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

/// Why a rank failed: sent to all the others, which end with it.
pub trait Fault: Clone + Debug + From<RunError> + Serialize + DeserializeOwned {}

impl<F: Clone + Debug + From<RunError> + Serialize + DeserializeOwned> Fault for F {}

/// All ranks, as one of them sees them.
#[derive(Debug)]
pub struct World {
    ranks: Box<dyn Transport>,
    /// Whether they have talked.
    met: AtomicBool,
}

impl World {
    /// The ranks of a transport.
    pub fn new(ranks: impl Transport + 'static) -> Self {
        Self {
            ranks: Box::new(ranks),
            met: AtomicBool::new(false),
        }
    }

    /// How they reach each other.
    pub fn ranks(&self) -> &dyn Transport {
        &*self.ranks
    }

    /// Whether this rank writes and speaks.
    pub fn leads(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// The shards of a rank, of this number of them all.
    pub fn range(&self, rank: usize, shards: usize) -> std::ops::Range<usize> {
        let ranks = self.ranks.count();
        shards * rank / ranks..shards * (rank + 1) / ranks
    }

    /// The outcome of a run. Before they have talked, the failure of one rank becomes that of all, which would wait for it.
    ///
    /// # Errors
    ///
    /// The failure of any rank.
    pub fn outcome<F: Fault>(&self, outcome: Result<(), F>) -> Result<(), F> {
        match self.met.load(Ordering::Relaxed) {
            true => outcome,
            false => self.agreed(outcome),
        }
    }

    /// What this rank has, once no rank has failed.
    ///
    /// # Errors
    ///
    /// The failure of any rank.
    pub fn agreed<S, F: Fault>(&self, own: Result<S, F>) -> Result<S, F> {
        let told = own.as_ref().map(|_| ()).map_err(F::clone);
        self.all(told, |(), ()| Ok(()))?;
        own
    }

    /// What all ranks have, joined along a binary tree, the left one of lower ranks; the failure of the lowest rank that has one. It has the same
    /// bits on all of them.
    ///
    /// # Errors
    ///
    /// The failure of any rank.
    pub fn all<S: Serialize + DeserializeOwned, F: Fault>(
        &self,
        own: Result<S, F>,
        join: impl Fn(S, S) -> Result<S, F>,
    ) -> Result<S, F> {
        self.met.store(true, Ordering::Relaxed);
        let (rank, count) = (self.ranks.rank(), self.ranks.count());
        if count == 1 {
            return own;
        }
        // What cannot be encoded is sent as nothing, which no rank can decode: they all fail.
        let message = |sum: &Result<S, F>| encode(sum).unwrap_or_default();
        let received = |bytes: &[u8]| Ok(decode::<Result<S, F>>(bytes)?).flatten();
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

pub(crate) fn encode(what: &impl Serialize) -> Result<Vec<u8>, RunError> {
    let length = postcard::experimental::serialized_size(what);
    let bytes = length.and_then(|n| postcard::to_extend(what, Vec::with_capacity(n)));
    bytes.map_err(|e| RunError::Ranks(format!("a message of shards: {e}")))
}

pub(crate) fn decode<S: DeserializeOwned>(bytes: &[u8]) -> Result<S, RunError> {
    match postcard::take_from_bytes(bytes) {
        Ok((what, [])) => Ok(what),
        // A rank that has ended sooner than others sends another kind of message.
        _ => Err(RunError::Ranks(
            "the ranks are not in step: expected one program, the same options and one kind of processor for all"
                .into(),
        )),
    }
}
