"""The code of the pages runs as it stands, section by section."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.io import mmread

ROOT = Path(__file__).parents[2]
README = Path(__file__).parents[1] / "README.md"
PAGE = Path(__file__).parents[2] / "docs" / "FROM_OTHER_PACKAGES.md"
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL))


def test_every_package_has_a_section():
    assert list(SECTIONS) == ["From scikit-learn", "From gensim and topicmodels", "From torchnmf", "From enstop", "In librosa", "How many components", "What the table rests on"]


@pytest.mark.parametrize("title", [title for title, text in SECTIONS.items() if "```python" in text])
def test_code_runs(title):
    blocks = re.findall(r"^```python\n(.*?)^```", SECTIONS[title], re.MULTILINE | re.DOTALL)
    assert blocks
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in blocks:
            exec(compile(block, f"{PAGE.name}: {title}", "exec"), names)


def blocks(page):
    """The blocks of Python that do not say why they are not run."""
    return re.findall(r"^(?<!-->\n)```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


#: Pages with blocks of Python. Those of `PAGE` are run by their sections, above.
PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path != PAGE and blocks(path)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_run(page, plca, tmp_path, monkeypatch):
    """Block after block, with what the page has made before, or supposes."""
    monkeypatch.chdir(tmp_path)
    names = {}
    if page.stem == "README":
        names["counts"] = mmread(ROOT / "examples" / "data" / "corpus.mtx").T.tocsr()
    if page.stem == "SCALE":
        plca("shard", ROOT / "examples" / "data" / "corpus.mtx", "--shards", "8", "--output", "counts.shards")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in blocks(page):
            exec(compile(block, page.name, "exec"), names)


def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).poisson(3.0, (40, 12)).astype(float)
    gaps = X.copy()
    gaps[0, 0] = np.nan
    # What a reader has: texts, data with gaps, data, and two spectra that are known, nothing.
    given = [{"texts": ["salt bread oven", "wind sail ship"] * 10}, {"X": gaps}, {"X": X, "known": np.ones((2, 12)) + np.eye(2, 12)}, {}]
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == len(given)
    for block, names in zip(blocks, given):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(block, README.name, "exec"), names)
    np.testing.assert_allclose(given[2]["model"].components_[:2], given[2]["known"])
    assert (tmp_path / "topics.npz").exists()


@pytest.mark.parametrize("name", ["PLCA", "NMF", "NMFD", "NMF2D", "SIPLCA", "SIPLCA2", "SIPLCA3"])
def test_every_class_of_torchnmf_has_a_row(name):
    assert re.search(rf"^\| [^|]*`(\w+ = )?{name}\b", SECTIONS["From torchnmf"], re.MULTILINE)


@pytest.mark.parametrize("name", ["PLSA", "BlockParallelPLSA", "StreamedPLSA", "EnsembleTopics"])
def test_every_class_of_enstop_has_a_row(name):
    assert re.search(rf"^\| `{name}\b", SECTIONS["From enstop"], re.MULTILINE)
