"""Docstrings say what every public name takes, gives and keeps; what they show is run as a doctest."""

import importlib
import inspect
import re

import numpy as np
import pytest

from plcakit import (
    NMF,
    PLCA,
    PLSA,
    PNTF,
    ConsensusNMF,
    ShiftInvariantPLCA,
    ShiftInvariantSkellam,
    SkellamCP,
    SkellamSNMF,
    TransformInvariantPLCA,
)

MODULES = ["plcakit", "plcakit.ad", "plcakit.dask", "plcakit.datasets", "plcakit.mpi", "plcakit.plot", "plcakit.priors", "plcakit.shards", "plcakit.sound"]
NAMES = {
    f"{module}.{name}": getattr(importlib.import_module(module), name)
    for module in MODULES
    for name in importlib.import_module(module).__all__
    if name != "__version__"
}
KERNELS = [ShiftInvariantPLCA, TransformInvariantPLCA, ShiftInvariantSkellam]
ESTIMATORS = [ConsensusNMF, NMF, PLSA, PLCA, PNTF, SkellamSNMF, SkellamCP, *KERNELS]


def section(text, title):
    """The lines of a section, without those of the next one."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def entries(text, title):
    """What a section describes: `a, b : type` are two."""
    lines = re.findall(r"^(\*{0,2}\w[^:\n]*?) *(?::[^\n]*)?$", section(text, title), re.MULTILINE)
    return [name.strip().lstrip("*") for line in lines for name in line.split(",")]


def check_parameters(function, text):
    parameters = [p for name, p in inspect.signature(function).parameters.items() if name != "self"]
    assert entries(text, "Parameters") == [p.name for p in parameters]
    for p in parameters:
        line = re.search(rf"^\**[\w, ]*\b{p.name}\b[^\n]*: (.*)$", section(text, "Parameters"), re.MULTILINE)
        if p.default is p.empty or p.name == "y" or p.kind is p.VAR_KEYWORD:
            continue
        # Defaults that are said are the real ones.
        said = re.search(r"default=(.*)$", line.group(1)) if line else None
        assert said or p.default is None, f"{p.name}: no default is said"
        if said and "," not in line.group(0).split(":")[0]:
            expected = said.group(1).strip().strip('"')
            number = type(p.default) in (int, float)
            same = float(expected) == p.default if number else expected == str(p.default)
            assert same, f"{p.name}: {expected} is said, {p.default} is meant"


def test_modules_are_described():
    for module in MODULES:
        assert importlib.import_module(module).__doc__


@pytest.mark.parametrize("name", NAMES)
def test_what_is_public_is_described(name):
    thing = NAMES[name]
    text = inspect.getdoc(thing)
    if inspect.isclass(thing):
        returned = getattr(thing, "_fields", None) or getattr(thing, "__dataclass_fields__", None)
        if returned:
            assert entries(text, "Attributes") == list(returned)
            return
        if thing.__init__ is not object.__init__:
            check_parameters(thing.__init__, text)
    else:
        check_parameters(thing, text)
        assert section(text, "Returns")
    assert ">>> " in section(text, "Examples")


@pytest.mark.parametrize("make", ESTIMATORS)
def test_methods_are_described(make):
    for name, method in inspect.getmembers(make, inspect.isfunction):
        if name.startswith("_") or not method.__module__.startswith("plcakit"):
            continue
        text = inspect.getdoc(method)
        check_parameters(method, text)
        assert section(text, "Returns") or name == "save"


@pytest.mark.parametrize("make", ESTIMATORS)
def test_attributes_are_described(make):
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).poisson(3.0, (8, 5)) + 0.5
    if make in KERNELS:
        model = make(2, kernel=(2, 2), random_state=0).fit(X)
    else:
        model = make(2, random_state=0).fit(pandas.DataFrame(X, columns=list("abcde")))
    text = inspect.getdoc(make)
    assert ".. math::" in text and section(text, "References")
    assert sorted(entries(text, "Attributes")) == sorted(name for name in vars(model) if re.fullmatch(r"[a-z]\w*_", name))
