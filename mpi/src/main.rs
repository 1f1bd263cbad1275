//! `plca-mpi`: `plca fit` of a folder of shards on the ranks of MPI.

use std::process::ExitCode;

use mpi::Threading;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Root, Source};
use plca_cli::Ranks;

/// Bytes at once: MPI counts them in 31 bits.
const CHUNK: usize = 1 << 30;

/// All ranks of MPI.
#[derive(Debug)]
struct World;

fn world() -> SimpleCommunicator {
    SimpleCommunicator::world()
}

impl Ranks for World {
    fn rank(&self) -> usize {
        world().rank() as usize
    }

    fn count(&self) -> usize {
        world().size() as usize
    }

    fn send(&self, to: usize, message: &[u8]) {
        let world = world();
        let to = world.process_at_rank(to as i32);
        to.send(&(message.len() as u64));
        message.chunks(CHUNK).for_each(|chunk| to.send(chunk));
    }

    fn receive(&self, from: usize) -> Vec<u8> {
        let world = world();
        let from = world.process_at_rank(from as i32);
        let (length, _) = from.receive::<u64>();
        let mut message = vec![0; length as usize];
        for chunk in message.chunks_mut(CHUNK) {
            from.receive_into(chunk);
        }
        message
    }

    fn broadcast(&self, mut message: Vec<u8>) -> Vec<u8> {
        let world = world();
        let root = world.process_at_rank(0);
        let mut length = message.len() as u64;
        root.broadcast_into(&mut length);
        message.resize(length as usize, 0);
        for chunk in message.chunks_mut(CHUNK) {
            root.broadcast_into(chunk);
        }
        message
    }
}

#[expect(
    clippy::print_stderr,
    reason = "what goes wrong before the command begins"
)]
fn main() -> ExitCode {
    // The work of a rank goes from thread to thread.
    let universe = match mpi::initialize_with_threading(Threading::Serialized) {
        Some((universe, threading)) if threading >= Threading::Serialized => universe,
        _ => {
            eprintln!("error: MPI does not start with calls from more than one thread");
            return ExitCode::FAILURE;
        }
    };
    // A rank that panics would leave the others waiting.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        world().abort(101);
    }));
    let status = plca_cli::on_ranks(World);
    drop(universe);
    status
}
