"""Files of states, which others may have made: nothing in them is run, and what is wrong with them is said."""

import ast
import os
import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import plcakit
from plcakit import PLSA


class Planted:
    """What an unpickler would run."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


class One:
    """A communicator of one rank, without MPI."""

    rank, size = 0, 1

    def allgather(self, what):
        return [what]

    def bcast(self, what, root=0):
        return what

    def Ibcast(self, what, root):
        return SimpleNamespace(Test=lambda: True)

    def Bcast(self, what, root):
        pass

    Get_rank = staticmethod(lambda: 0)
    Get_size = staticmethod(lambda: 1)
    barrier = Barrier = staticmethod(lambda: None)


@pytest.fixture
def shards():
    X = np.random.default_rng(0).poisson(3.0, (20, 6)).astype(float)
    return [X[:10], X[10:]]


@pytest.mark.parametrize("content", ["pickle", "cut", "other numbers"])
def test_no_checkpoint_is_run(tmp_path, shards, content):
    from plcakit.mpi import fit

    folder, ran = tmp_path / "state", tmp_path / "ran"
    model = fit(PLSA(2, random_state=0, max_iter=6, tol=0), shards, comm=One(), checkpoint=folder, save_every=2)
    path = folder / "checkpoint"
    whole = path.read_bytes()
    path.write_bytes({"pickle": pickle.dumps(Planted(ran)), "cut": whole[:-3], "other numbers": bytes(len(whole))}[content])
    with pytest.raises((OSError, ValueError), match="checkpoint"):
        fit(PLSA(2, random_state=0, max_iter=9, tol=0), shards, comm=One(), checkpoint=folder)
    assert not ran.exists() and model.n_iter_ == 6


def test_no_state_of_dask_is_run(tmp_path):
    from plcakit.dask import _restored, _saved

    path, ran = str(tmp_path / "range"), tmp_path / "ran"
    assert _restored(_saved((b"", [b"a", b"bc"]), path)) == (b"", [b"a", b"bc"])
    Path(path).write_bytes(pickle.dumps(Planted(ran)))
    with pytest.raises(ValueError, match="is not what was saved"):
        _restored(path)
    assert not ran.exists()


#: Modules that run what a file says.
RUNS = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}


def unpickles(source):
    """Names by which a source could unpickle."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names} & RUNS
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module).partition(".")[0]} & RUNS
            found |= {alias.name for alias in node.names if str(node.module).startswith("joblib")} & {"load"}
        elif isinstance(node, ast.Attribute):
            named = ast.unparse(node)
            found |= {named} & {"joblib.load", "pandas.read_pickle", "pd.read_pickle"}
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found |= set() if ast.unparse(node.value) == "False" else {"allow_pickle"}
    return found


def test_nothing_unpickles():
    # What would be found.
    assert unpickles("import pickle") == {"pickle"} and unpickles("from joblib import load") == {"load"}
    assert unpickles("np.load(path, allow_pickle=True)") == {"allow_pickle"}
    sources = Path(plcakit.__file__).parent.rglob("*.py")
    assert [(path.name, found) for path in sources if (found := unpickles(path.read_text()))] == []
