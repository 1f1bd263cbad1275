"""Types of all public names: a user's script passes the strict checks, and does run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("typed_user.py")


def call(folder, *command):
    # From another folder: beside the sources their package would hide the installed one.
    done = subprocess.run([sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr


def test_script_of_a_user_is_typed(tmp_path):
    pytest.importorskip("mypy")
    call(tmp_path, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", SCRIPT)


def test_the_package_is_typed(tmp_path):
    pytest.importorskip("mypy")
    # scikit-learn and SciPy have no types: what they give may be anything.
    lenient = ["--allow-subclassing-any", "--no-warn-return-any", "--ignore-missing-imports"]
    call(tmp_path, "-m", "mypy", "--strict", *lenient, "--cache-dir", tmp_path / "cache", "-p", "plcakit")


def test_names_that_are_not_there_are_refused(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "wrong.py").write_text("import plcakit\nplcakit.plot.topics\nplcakit.NFM\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "wrong.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout.splitlines()
    assert len(found) == 2 and found[0].startswith("wrong.py:3:") and "NFM" in found[0]


def test_script_of_a_user_runs(tmp_path):
    call(tmp_path, "-W", "ignore", SCRIPT)
