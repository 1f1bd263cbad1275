"""What an iteration of a sharded fit costs besides its passes over the data, by Dask and by MPI, on the cores of this machine.

    python python/benches/engines.py [--iterations 40] [--quick]

The data have one count for every sample, so that little is left but messages and scheduling. K = 20; a model of 16 kB (100 features) and one of 4.8 MB
(30000). Dask has 64 shards; of MPI every rank has one, as a pass over a shard fills statistics of the size of the model, whatever the data are. Every
number is that of an iteration, the difference of a long and of a short fit. What remains of the passes, the time of one process over the same shards
divided by the cores that the engine uses, is taken off in the last column.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
from scipy import sparse

SHARDS, COMPONENTS, RANGES = 64, 20, 8


def shards(features, count):
    draw = np.random.default_rng(0)
    samples = 10
    rows = np.arange(samples)
    one = np.ones(samples)
    return [sparse.csr_matrix((one, (rows, draw.integers(features, size=samples))), (samples, features)) for _ in range(count)]


def model(iterations):
    from plcakit import PLSA

    return PLSA(COMPONENTS, random_state=0, max_iter=iterations, tol=0, solver="em", n_jobs=1, check_every=10**6)


def clocked(fit, iterations, clock):
    """Seconds of an iteration."""
    fit(model(2))
    ends = []
    for count in (5, 5 + iterations):
        start = clock()
        fit(model(count))
        ends.append(clock() - start)
    return (ends[1] - ends[0]) / iterations


def rank(features, iterations):
    from mpi4py import MPI

    from plcakit.mpi import fit

    data = shards(features, MPI.COMM_WORLD.size)
    seconds = clocked(lambda estimator: fit(estimator, data), iterations, time.perf_counter)
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(seconds))


def by_mpi(ranks, features, iterations):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    # Dask sets this for its workers, and leaves it: every block of some megabytes is then mapped and unmapped.
    environment.pop("MALLOC_TRIM_THRESHOLD_", None)
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), sys.executable, __file__]
    arguments = ["--rank", f"--features={features}", f"--iterations={iterations}"]
    out = subprocess.run([*command, *arguments], check=True, capture_output=True, text=True, env=environment).stdout
    return json.loads(out.splitlines()[-1])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--iterations", type=int, default=40)
    options.add_argument("--quick", action="store_true", help="few iterations, to see that everything runs")
    options.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--features", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.rank:
        rank(given.features, given.iterations)
        return
    from distributed import Client, LocalCluster

    from plcakit import dask, shards as one_process

    iterations = 4 if given.quick else given.iterations
    cores = os.cpu_count() or 1
    print("| model | engine | ms an iteration | processor time of driver and scheduler, ms | without the passes, ms |\n|---|---|--:|--:|--:|")
    for features in (100, 30000):
        size = f"{8 * COMPONENTS * features / 1e3:.0f} kB"

        def by_one(count):
            data = shards(features, count)
            seconds = clocked(lambda estimator: one_process.fit(estimator, data), iterations, time.perf_counter)
            print(f"| {size} | one process, {count} shard{'s' * (count > 1)} | {1e3 * seconds:.1f} | | |", flush=True)
            return seconds

        for ranks in (1, 2, 4):
            alone, wall = by_one(ranks), by_mpi(ranks, features, iterations)
            rest = wall - alone / min(ranks, cores)
            print(f"| {size} | MPI, {ranks} rank{'s' * (ranks > 1)} | {1e3 * wall:.1f} | | {1e3 * rest:.1f} |", flush=True)
        alone, data = by_one(SHARDS), shards(features, SHARDS)
        # Last, as workers of a cluster that ends go on for a while. The scheduler is in this process, the workers are not.
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:

            def by_dask(estimator):
                dask.fit(estimator, data, client=client, ranges=RANGES, save_every=10**6)

            wall = clocked(by_dask, iterations, time.perf_counter)
            busy = clocked(by_dask, iterations, time.process_time)
        rest = wall - alone / min(2, cores)
        print(f"| {size} | Dask, 2 workers, {RANGES} ranges | {1e3 * wall:.1f} | {1e3 * busy:.1f} | {1e3 * rest:.1f} |", flush=True)


if __name__ == "__main__":
    main()
