"""Separated notes: a melody of three notes, taken apart by their spectra."""

import sys

from plcakit import NMF
from plcakit.datasets import make_notes
from plcakit.sound import separate

notes = make_notes()                                      # with your own sound: abs(librosa.stft(y))
S = notes.spectrogram                                     # frequencies by frames; samples are frames
model = NMF(n_components=3, n_init=5, random_state=0).fit(S.T)

parts = separate(S, model)                                # they add up to S; a complex S keeps its phases
for spectrum, part in zip(model.components_, parts):
    print(f"{notes.frequencies[spectrum.argmax()]:4.0f} Hz: {part.sum() / S.sum():.0%} of the sound")

if len(sys.argv) > 1:                                     # a file for the picture
    from plcakit import plot

    plot.parts(S, model, frequencies=notes.frequencies, times=notes.times).savefig(sys.argv[1])
