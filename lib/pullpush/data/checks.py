"""What a recording says of itself is true: looked at before its samples are used."""

from __future__ import annotations

import math
import struct
from pathlib import Path

from torch import Tensor

from pullpush.errors import AudioError

LOUDEST = 4.0  # of full scale: floats of a mix may pass 1, integers that were written as floats pass this by far
LARGEST = 1 << 25  # numbers in a resampling filter, 128 MiB
UNKNOWN = 0x7FFFF000  # sizes from here on are what programs write that do not know them yet
SLACK = 64  # bytes that a header may promise in vain: some writers count a byte of padding


def check_complete(path: Path) -> None:
    """Refuse a WAV or AIFF file whose header promises more than is there; libsndfile would take the rest for all.

    Raises:
        AudioError: it is cut off.
    """
    with open(path, "rb") as file:
        head = file.read(12)
    order = {b"RIFF": "<I", b"FORM": ">I"}.get(head[:4])
    if order is None or len(head) < 12 or head[8:] not in (b"WAVE", b"AIFF", b"AIFC"):
        return
    promised, there = struct.unpack(order, head[4:8])[0], path.stat().st_size - 8
    if promised < UNKNOWN and promised - there > max(SLACK, promised // 100):
        raise AudioError(
            f"{path} is cut off: {there} of the {promised} bytes that its header promises are there; copy it again "
            "from its source, or take its row out"
        )


def check_rate(path: Path, rate: int, sample_rate: int) -> None:
    """Refuse a sample rate whose filter to another would not fit into memory, as that of 44,101 Hz.

    Raises:
        AudioError: the two rates have no simple ratio.

    >>> check_rate(Path("a.wav"), 44_100, 16_000)
    """
    common = math.gcd(rate, sample_rate)
    if (rate // common) * (sample_rate // common) > LARGEST:
        raise AudioError(
            f"{path} has {rate} Hz, which has no simple ratio to {sample_rate} Hz: was 44100 or 48000 meant? If not, "
            f"convert it, such as by `ffmpeg -i {path.name} -ar {sample_rate} new.wav`"
        )


def check_scale(path: Path, wave: Tensor) -> None:
    """Refuse samples `(T,)` far beyond full scale, such as 16-bit integers that were written as floats.

    Raises:
        AudioError: they pass four times full scale.
    """
    peak = float(wave.abs().max())
    if peak > LOUDEST:
        raise AudioError(
            f"{path} reaches {peak:.4g} where full scale is 1: integers that were written as floats? Divide them by "
            "32768 (16 bits), and write it again"
        )
