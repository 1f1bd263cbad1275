"""Writes tone.flac: 2 channels, 8 kHz, 16 bits, 192 samples round(8000 sin(0.2 n)) and their negatives; verbatim subframes. frames.flac is the same for
960 samples in 5 frames.

`tones.*` are a quarter of a second of 0.5 sin(2 pi 440 t) and 0.25 sin(2 pi 660 t) at 22050 Hz, in mp3 and ogg by libsndfile and in m4a and aac by
`ffmpeg -c:a aac -b:a 128k -aac_coder fast`.
"""
import hashlib, math, pathlib, struct

def crc(data, width, poly):
    value, top, mask = 0, 1 << (width - 1), (1 << width) - 1
    for byte in data:
        value ^= byte << (width - 8)
        for _ in range(8):
            value = ((value << 1) ^ poly if value & top else value << 1) & mask
    return value

block, rate = 192, 8000

def flac(frames):
    n = block * frames
    left = [round(8000 * math.sin(0.2 * i)) for i in range(n)]
    right = [-x for x in left]
    md5 = hashlib.md5(b"".join(struct.pack("<hh", a, b) for a, b in zip(left, right))).digest()
    info = struct.pack(">HH", block, block) + bytes(6)
    info += ((rate << 44) | (1 << 41) | (15 << 36) | n).to_bytes(8, "big") + md5
    out = b"fLaC" + bytes([0x80]) + len(info).to_bytes(3, "big") + info
    for number in range(frames):
        # Sync and fixed block size; 192 samples, 8 kHz; left and right, 16 bits; the number of the frame.
        header = bytes([0xFF, 0xF8, 0x14, 0x18, number])
        frame = header + bytes([crc(header, 8, 0x07)])
        for channel in (left, right):
            frame += bytes([0x02]) + b"".join(struct.pack(">h", x) for x in channel[number * block :][:block])
        out += frame + struct.pack(">H", crc(frame, 16, 0x8005))
    return out

folder = pathlib.Path(__file__).parent
(folder / "tone.flac").write_bytes(flac(1))
(folder / "frames.flac").write_bytes(flac(5))
