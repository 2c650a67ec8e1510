"""A soundfont of one looped sine, written byte by byte after the specification."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

RATE = 22_050
KEY = 69  # a' at 440 Hz


def write(path: Path, *, partials: tuple[float, ...] = (1.0,), programs: int = 128) -> Path:
    """Every program of General MIDI and the drum kit play a recording of 441 Hz with these partials, looped.

    It is 3.93 cents sharp of the key 69, which its header corrects.
    """
    time = np.arange(2000) / RATE
    wave = sum(level * np.sin(2 * np.pi * 441 * (k + 1) * time) for k, level in enumerate(partials))
    samples = np.round(20_000 * wave / np.abs(wave).max()).astype("<i2").tobytes() + bytes(92)
    presets = [(0, program) for program in range(programs)] + [(128, 0)]
    phdr = b"".join(
        struct.pack("<20s3H3I", b"p", program, bank, row, 0, 0, 0) for row, (bank, program) in enumerate(presets)
    )
    phdr += struct.pack("<20s3H3I", b"EOP", 0, 0, len(presets), 0, 0, 0)
    pbag = b"".join(struct.pack("<HH", row, 0) for row in range(len(presets) + 1))
    pgen = struct.pack("<HH", 41, 0) * len(presets) + bytes(4)
    inst = struct.pack("<20sH", b"sine", 0) + struct.pack("<20sH", b"EOI", 1)
    ibag = struct.pack("<4H", 0, 0, 3, 0)
    # release of 2 ** (-4800 / 1200) s = 62 ms, looped, the sample
    igen = struct.pack("<HhHHHH", 38, -4800, 54, 1, 53, 0) + bytes(4)
    # 50 samples are a period of 441 Hz
    shdr = struct.pack("<20s5IBbHH", b"sine", 0, 2000, 1000, 1500, RATE, KEY, -4, 0, 1) + struct.pack(
        "<20s5IBbHH", b"EOS", *[0] * 9
    )
    chunks = [
        _chunk(name, data)
        for name, data in zip(
            (b"phdr", b"pbag", b"pmod", b"pgen", b"inst", b"ibag", b"imod", b"igen", b"shdr"),
            (phdr, pbag, bytes(10), pgen, inst, ibag, bytes(10), igen, shdr),
            strict=True,
        )
    ]
    body = b"sfbk" + _chunk(b"LIST", b"sdta" + _chunk(b"smpl", samples)) + _chunk(b"LIST", b"pdta" + b"".join(chunks))
    path.write_bytes(_chunk(b"RIFF", body))
    return path


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)
