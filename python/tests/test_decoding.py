"""Sound files are read as libsndfile reads them, or refused by name."""

import itertools
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy

soundfile = pytest.importorskip("soundfile")

FRAME = 64
#: What packs samples is told by its name.
PACKED = {"IMA_ADPCM", "MS_ADPCM", "GSM610", "G721_32", "NMS_ADPCM_16", "NMS_ADPCM_24", "NMS_ADPCM_32"}
# Builds of libsndfile name MPEG, and few can write it.
FORMS = [(form, kind) for form in ("WAV", "WAVEX", "RF64", "FLAC") for kind in soundfile.available_subtypes(form) if kind != "MPEG_LAYER_III"]
SCIPY = sorted((Path(scipy.__file__).parent / "io/tests/data").glob("*.wav"))
#: Of SciPy's own, those that a reader should not read, and what is said of them.
REFUSED = {
    "test-44100Hz-2ch-32bit-float-be.wav": "RIFX",
    "test-44100Hz-be-1ch-4bytes.wav": "RIFX",
    "test-8000Hz-be-3ch-5S-24bit.wav": "RIFX",
    "test-44100Hz-le-1ch-4bytes-early-eof-no-data.wav": "no chunk `data`",
    "test-44100Hz-le-1ch-4bytes-early-eof.wav": "ends after",
    "test-44100Hz-le-1ch-4bytes-incomplete-chunk.wav": "no chunk `data`",
    "test-8000Hz-le-3ch-5S-24bit-inconsistent.wav": "says 4 bytes",
    "test-8000Hz-le-3ch-5S-36bit.wav": "integers of 36 bits",
    "test-8000Hz-le-3ch-5S-45bit.wav": "integers of 45 bits",
    "test-8000Hz-le-3ch-5S-53bit.wav": "integers of 53 bits",
    "test-8000Hz-le-3ch-5S-64bit.wav": "integers of 64 bits",
}


def decoded(plca, file, tmp_path):
    """The spectrogram of the mean of the channels, as the command reads a file."""
    plca("spectrogram", file, "--frame", FRAME, "--output", tmp_path / "s.npy")
    return np.load(tmp_path / "s.npy")


def same(plca, file, tmp_path):
    """Asserts that a file has the samples that libsndfile reads, to 1e-7 of full scale."""
    samples, rate = soundfile.read(file, dtype="float64")
    soundfile.write(tmp_path / "plain.wav", samples, rate, subtype="DOUBLE")
    found, expected = decoded(plca, file, tmp_path), decoded(plca, tmp_path / "plain.wav", tmp_path)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * FRAME)


def refused(file, name, tmp_path):
    line = [os.environ.get("PLCA", "plca"), "spectrogram", str(file), "--output", str(tmp_path / "s.npy")]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 1 and name in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize(("form", "kind"), FORMS)
def test_every_kind_of_samples(plca, tmp_path, form, kind):
    # What packs samples takes one channel, and some of it these rates alone.
    for channels, rate in [(1, 44100)] if kind in PACKED else itertools.product((1, 2), (8000, 44100)):
        draw = np.random.default_rng(channels)
        sound = np.clip(0.3 * draw.standard_normal((3000, channels)), -1, 1)
        file = tmp_path / f"x.{'flac' if form == 'FLAC' else 'wav'}"
        soundfile.write(file, sound, rate, format=form, subtype=kind)
        if kind in PACKED:
            refused(file, "holds samples", tmp_path)
        else:
            same(plca, file, tmp_path)


@pytest.mark.skipif(not SCIPY, reason="SciPy without its test data")
@pytest.mark.parametrize("file", SCIPY, ids=lambda file: file.name)
def test_files_of_other_readers(plca, tmp_path, file):
    if file.name in REFUSED:
        refused(file, REFUSED[file.name], tmp_path)
    else:
        same(plca, file, tmp_path)
