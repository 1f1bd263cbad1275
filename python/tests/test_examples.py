"""The gallery: every script runs as it is, says what it should, and draws where it offers to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
SAYS = {
    "as_in_librosa.py": "PLSA (513, 3) (3, 97) relative error 0.2",
    "as_in_scanpy.py": "ended as converged",
    "mixtures_on_the_simplex.py": "PNTF: mean error of the shares 0.00",
    "separated_notes.py": "391 Hz: 34% of the sound",
    "shifted_shapes.py": "    #...#\n    .#.#.\n    ..#..\n    .#.#.\n    #...#\n",
    "signed_matrix_with_gaps.py": "error there 0.025",
    "topics_of_a_corpus.py": "ship sail harbour",
    "what_many_fits_agree_on.py": "4 components: stability 1.000, error 8484 <- taken",
}


def run(folder, *command):
    # From another folder: beside the sources their package would hide the installed one.
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", *map(str, command)],
        cwd=folder, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "Agg"}, timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_script_is_here():
    assert sorted(path.name for path in FOLDER.glob("*.py")) == sorted(SAYS)
    for name in SAYS:
        assert len((FOLDER / name).read_text().splitlines()) < 40


@pytest.mark.parametrize("name", SAYS)
def test_script(tmp_path, name):
    script = FOLDER / name
    assert SAYS[name] in run(tmp_path, script)
    if "sys.argv" in script.read_text():
        pytest.importorskip("matplotlib")
        run(tmp_path, script, tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 5000


def test_annotated_data_is_not_needed(tmp_path):
    hide = "import sys; sys.modules['anndata'] = None; "
    script = FOLDER / "as_in_scanpy.py"
    assert SAYS["as_in_scanpy.py"] in run(tmp_path, "-c", f"{hide}exec(open({str(script)!r}).read())")
