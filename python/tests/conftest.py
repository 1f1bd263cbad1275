"""What holds for all tests."""

import os
import shutil
import signal
import subprocess

import pytest


@pytest.fixture(scope="session")
def plca():
    """Calls the command and returns what it prints. `PLCA` names it, or it is on the path; without either, tests of it are skipped."""
    named = os.environ.get("PLCA")
    found = shutil.which(named or "plca")
    if found is None:
        assert named is None, f"PLCA is {named!r}, which is not a command"
        pytest.skip("no command `plca` on the path, nor named by PLCA")
    # Tests may call it from another folder.
    path = os.path.abspath(found)

    def call(*arguments, cwd=None):
        done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.fixture(autouse=True)
def _control_c_is_heard():
    """A shell that starts the tests in the background has them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
