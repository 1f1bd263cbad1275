"""The code of the pages runs as it stands, section by section."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"
PAGE = Path(__file__).parents[2] / "docs" / "FROM_OTHER_PACKAGES.md"
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL))


def test_every_package_has_a_section():
    assert list(SECTIONS) == ["From scikit-learn", "From torchnmf", "From enstop", "In librosa", "How many components"]


@pytest.mark.parametrize("title", SECTIONS)
def test_code_runs(title):
    blocks = re.findall(r"^```python\n(.*?)^```", SECTIONS[title], re.MULTILINE | re.DOTALL)
    assert blocks
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in blocks:
            exec(compile(block, f"{PAGE.name}: {title}", "exec"), names)


def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).poisson(3.0, (40, 12)).astype(float)
    gaps = X.copy()
    gaps[0, 0] = np.nan
    # What a reader has: texts, data with gaps, data, and two spectra that are known.
    given = [{"texts": ["salt bread oven", "wind sail ship"] * 10}, {"X": gaps}, {"X": X, "known": np.ones((2, 12)) + np.eye(2, 12)}]
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == len(given)
    for block, names in zip(blocks, given):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(block, README.name, "exec"), names)
    np.testing.assert_allclose(names["model"].components_[:2], names["known"])
    assert (tmp_path / "topics.npz").exists()


@pytest.mark.parametrize("name", ["PLCA", "NMF", "NMFD", "NMF2D", "SIPLCA", "SIPLCA2", "SIPLCA3"])
def test_every_class_of_torchnmf_has_a_row(name):
    assert re.search(rf"^\| [^|]*`(\w+ = )?{name}\b", SECTIONS["From torchnmf"], re.MULTILINE)


@pytest.mark.parametrize("name", ["PLSA", "BlockParallelPLSA", "StreamedPLSA", "EnsembleTopics"])
def test_every_class_of_enstop_has_a_row(name):
    assert re.search(rf"^\| `{name}\b", SECTIONS["From enstop"], re.MULTILINE)
