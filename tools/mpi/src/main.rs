//! `plca-mpi`: `plca fit` of a folder of shards on the ranks of MPI.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::request::{Request, Scope, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Root, Source};
use plca_cli::Transport;

/// Bytes at once: MPI counts them in 31 bits.
const CHUNK: usize = 1 << 30;
/// For how long a rank looks again at once: messages between ranks that keep pace take less.
const LOOK: Duration = Duration::from_micros(100);
/// After how long it looks again from then on.
const NAP: Duration = Duration::from_micros(50);

/// All ranks of MPI.
#[derive(Debug)]
struct World;

fn world() -> SimpleCommunicator {
    SimpleCommunicator::world()
}

impl Transport for World {
    fn rank(&self) -> usize {
        world().rank() as usize
    }

    fn count(&self) -> usize {
        world().size() as usize
    }

    fn send(&self, to: usize, message: &[u8]) {
        let world = world();
        let to = world.process_at_rank(to as i32);
        let length = message.len() as u64;
        // Complete when the other rank has it, and so is ready for the rest.
        scope(|scope| complete(to.immediate_synchronous_send(scope, &length)));
        message.chunks(CHUNK).for_each(|chunk| to.send(chunk));
    }

    fn receive(&self, from: usize) -> Vec<u8> {
        let world = world();
        let from = world.process_at_rank(from as i32);
        let mut length = 0u64;
        scope(|scope| complete(from.immediate_receive_into(scope, &mut length)));
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
        scope(|scope| complete(root.immediate_broadcast_into(scope, &mut length)));
        message.resize(length as usize, 0);
        for chunk in message.chunks_mut(CHUNK) {
            root.broadcast_into(chunk);
        }
        message
    }
}

/// Waits for a message. MPI itself would hold a core meanwhile, which another rank may need: that is most of the time of a rank that is ready first.
fn complete<'a, B: ?Sized, S: Scope<'a>>(mut request: Request<'a, B, S>) {
    let begun = Instant::now();
    while let Err(open) = request.test() {
        request = open;
        match begun.elapsed() < LOOK {
            true => std::thread::yield_now(),
            false => std::thread::sleep(NAP),
        }
    }
}

fn main() -> ExitCode {
    // The work of a rank goes from thread to thread.
    let universe = match mpi::initialize_with_threading(Threading::Serialized) {
        Some((universe, threading)) if threading >= Threading::Serialized => universe,
        _ => {
            let what = "error: MPI does not start with calls from more than one thread";
            let _ = writeln!(std::io::stderr(), "{what}");
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
