"""A simulated atlas of cells x genes, made shard by shard and fitted from files by one and by two ranks of MPI.

    python python/benches/atlas.py FOLDER [--cells 1000000] [--genes 30000] [--entries 2e8] [--shards 64] [--quick]

FOLDER takes the shards, 8 bytes an entry, in a folder of its own for every size, and keeps them for the next run. Every fit is a run of `mpirun`. It
prints seconds of an iteration, the peak of memory of each rank, and its bytes of an iteration beside those of K x genes numbers. Each line says whether
it was measured on this machine or derived from that for 16 ranks.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

#: Bytes of the model and of the statistics of K components: P(gene | topic) in double precision.
WORD = 8
#: Of the simulated counts.
SEED = 7


def write_shard(path, cells, genes, entries, number):
    """Counts of a few programmes of genes: genes of an entry are drawn from the programme of its cell, and few are hit twice."""
    draw = np.random.default_rng([SEED, number])
    # Genes of a programme: ranks by a power law, turned by the programme.
    ranks = (genes * draw.random(entries) ** 3).astype(np.int64)
    cell = np.sort(draw.integers(cells, size=entries))
    programme = (cell * 2654435761 >> 7) % 20
    gene = (ranks + programme * (genes // 20)) % genes
    key = np.unique(cell * genes + gene)
    cell, gene = np.divmod(key, genes)
    counts = (1 + draw.geometric(0.6, size=key.size)).astype(np.float32)
    rows = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=cells))])
    X = sparse.csr_matrix((counts, gene.astype(np.int32), rows), shape=(cells, genes))
    # Of another ending than shards have, until it is whole.
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        sparse.save_npz(file, X, compressed=False)
    part.rename(path)
    return X.nnz


def write(folder, cells, genes, entries, shards):
    """The folder of these sizes with the shards that were not there yet, and how many entries there are."""
    folder = folder / f"{cells}x{genes}-{int(entries)}-{shards}-{SEED}"
    facts = folder / "facts.json"
    folder.mkdir(parents=True, exist_ok=True)
    found = json.loads(facts.read_text()) if facts.exists() else []
    for number in range(len(found), shards):
        path = folder / f"cells-{number:05}.npz"
        found.append(write_shard(path, cells // shards, genes, int(entries) // shards, number))
        facts.write_text(json.dumps(found))
    return folder, sum(found)


def rank(folder, components, iterations):
    """What every rank does; the first prints what all of them found."""
    from mpi4py import MPI

    from plcakit import PLSA
    from plcakit.mpi import fit

    comm = MPI.COMM_WORLD

    # Between two looks at the objective, which costs about as much as an iteration. The first rank looks, and waits for all others in every iteration.
    seen = []
    model = PLSA(
        components,
        random_state=0,
        max_iter=iterations,
        tol=0,
        solver="em",
        n_jobs=1,
        check_every=4,
        callback=lambda iteration, _: seen.append((iteration, time.perf_counter())),
    )
    fit(model, [str(path) for path in sorted(Path(folder).glob("cells-*.npz"))], comm=comm)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = comm.gather((peak, model.traffic_))
    if comm.rank == 0:
        iteration, ends = np.transpose(seen)
        seconds = float(np.median(np.diff(ends) / np.diff(iteration)))
        print(json.dumps({"seconds": seconds, "ranks": found, "objective": float(model.objective_)}))


def run(ranks, arguments):
    """Starts the ranks, each a process of one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), sys.executable, __file__]
    out = subprocess.run([*command, *arguments], check=True, capture_output=True, text=True, env=environment).stdout
    return json.loads(out.splitlines()[-1])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--cells", type=int, default=1_000_000)
    options.add_argument("--genes", type=int, default=30_000)
    options.add_argument("--entries", type=float, default=2.2e8, help="drawn; what is hit twice is one entry")
    options.add_argument("--shards", type=int, default=64)
    options.add_argument("--components", type=int, default=20)
    options.add_argument("--iterations", type=int, default=9)
    options.add_argument("--quick", action="store_true", help="a small case, to see that everything runs")
    options.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.rank:
        rank(given.folder, given.components, given.iterations)
        return
    if given.quick:
        given.cells, given.genes, given.entries, given.shards = 4000, 500, 2e5, 8
    folder, entries = write(given.folder, given.cells, given.genes, given.entries, given.shards)
    print(f"{given.cells} cells x {given.genes} genes, {entries:.3g} entries in {given.shards} shards, K = {given.components}")
    formula = WORD * given.components * given.genes
    arguments = [str(folder), "--rank", f"--components={given.components}", f"--iterations={given.iterations}"]
    seconds, objectives = {}, set()
    for ranks in (1, 2):
        found = run(ranks, arguments)
        seconds[ranks] = found["seconds"]
        objectives.add(found["objective"])
        peaks = " and ".join(f"{peak / 2**30:.2f} GiB" for peak, _ in found["ranks"])
        each = 1e9 * seconds[ranks] / entries
        print(f"measured: {ranks} rank{'s' * (ranks > 1)}: {seconds[ranks]:.3f} s an iteration, {each:.1f} ns an entry, peak {peaks}")
        for _, traffic in found["ranks"]:
            up = traffic["up"]
            print(f"measured: bytes up of an iteration {up}, {up / formula:.4f} of the formula")
    print(f"measured: two ranks {seconds[1] / seconds[2]:.2f} times as fast as one; equal objectives: {len(objectives) == 1}")
    # Amdahl: t(p) = serial + shared / p. So t(1) = serial + shared and t(2) = serial + shared / 2, and serial = 2 t(2) - t(1). Noise may put it out of range.
    serial = min(max(0.0, 2 * seconds[2] - seconds[1]), seconds[1])
    work = serial + (seconds[1] - serial) / 16
    # The statistics go up and the sum goes down a tree of four levels at 10 GbE, 1.25e9 bytes a second.
    talk = 2 * 4 * formula / 1.25e9
    print(f"derived: serial part of an iteration {serial:.3f} s")
    print(f"derived: 16 ranks, one thread each, 10 GbE: {work:.3f} s of work and {talk:.3f} s of communication an iteration")


if __name__ == "__main__":
    main()
