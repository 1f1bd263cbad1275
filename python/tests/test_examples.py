"""The gallery: every script runs as it is, says what it should, and draws where it offers to."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = Path(__file__).parents[2] / "examples"
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


#: Scripts of the examples of all three languages, and the model of each with the command that makes the same.
SAME = {
    "text": ("topics.npz", "fit plsa {data}/corpus.mtx --rank 4 --seed 1"),
    "spectra": ("spectra.npz", "fit pntf {data}/spectra.csv --rank 3 --seed 1"),
    "signed": ("signed.npz", "fit skellam {data}/signed.csv --rank 3 --missing nan --accelerate squarem --seed 1"),
}


@pytest.mark.parametrize("name", SAME)
def test_example_gives_what_the_command_gives(plca, tmp_path, name):
    file, line = SAME[name]
    run(tmp_path, EXAMPLES / f"{name}.py", tmp_path)
    plca(*line.format(data=EXAMPLES / "data").split(), "--quiet", "--output", tmp_path / "command.npz")
    ours, theirs = (np.load(tmp_path / made) for made in (file, "command.npz"))
    assert ours.files == theirs.files
    for block in set(ours.files) - {"model.json"}:
        np.testing.assert_allclose(ours[block], theirs[block], rtol=1e-5, atol=1e-7)


def test_example_of_a_sound(tmp_path):
    said = run(tmp_path, EXAMPLES / "sound.py", tmp_path)
    assert all(f"strongest at {pitch} Hz" in said for pitch in (266, 328, 391))
    sounds = [wavfile.read(tmp_path / f"component_{z}.wav")[1] for z in range(3)]
    _, whole = wavfile.read(EXAMPLES / "data" / "notes.wav")
    np.testing.assert_allclose(sum(sounds), whole / 32768, atol=1e-5)


def test_annotated_data_is_not_needed(tmp_path):
    hide = "import sys; sys.modules['anndata'] = None; "
    script = FOLDER / "as_in_scanpy.py"
    assert SAYS["as_in_scanpy.py"] in run(tmp_path, "-c", f"{hide}exec(open({str(script)!r}).read())")
