"""A melody taken apart into its notes: python examples/sound.py FOLDER, FOLDER for the model and the parts."""

import sys
from pathlib import Path

import numpy as np
from scipy.io import wavfile
from scipy.signal import istft, stft

from plcakit import NMF
from plcakit.sound import separate

data = Path(__file__).parent / "data"
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
rate, sound = wavfile.read(data / "notes.wav")
frequencies, _, S = stft(sound / 32768, rate, nperseg=1024, noverlap=768)
model = NMF(3, n_init=5, random_state=1).fit(abs(S).T)
model.save(folder / "notes_of_frames.npz")                      # frames first; the command has frequencies first
for z, (spectrum, part) in enumerate(zip(model.components_, separate(S, model))):
    print(f"component {z}: strongest at {frequencies[spectrum.argmax()]:.0f} Hz")
    _, samples = istft(part, rate, nperseg=1024, noverlap=768)
    wavfile.write(folder / f"component_{z}.wav", rate, samples[: len(sound)].astype(np.float32))
