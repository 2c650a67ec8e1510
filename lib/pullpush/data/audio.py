"""Recordings as the book hears them: one channel, 16 kHz, float32 in [-1, 1].

What a recording says of itself is checked before its samples are used.
"""

import io
import math
import struct
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
import soundfile
import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d
from torchaudio.transforms import Resample

from pullpush.errors import AudioError

SAMPLE_RATE = 16_000
SILENCE_DB = -60.0  # below this level a recording counts as silent
FRAME = 0.01  # seconds; the grain in which silence is trimmed
LOUDEST = 4.0  # of full scale: floats of a mix may pass 1, integers that were written as floats pass this by far
LARGEST = 1 << 25  # numbers in a resampling filter, 128 MiB
ENDLESS = 1 << 62  # samples that libsndfile gives where a header counts none
UNKNOWN = 0x7FFFF000  # sizes from here on are what programs write that do not know them yet
FLOATS = ("FLOAT", "DOUBLE")  # of what writers may get the scale wrong; a lossy codec may pass full scale by itself
_resampler = lru_cache(Resample)  # its filter is two thirds of its time
SLACK = 64  # bytes that a header may promise in vain: some writers count a byte of padding
MARGIN = 0.1  # seconds that are read beyond a cut, so that resampling does not change its end


def load_audio(path: str | Path, *, sample_rate: int = SAMPLE_RATE, seconds: float | None = None) -> Tensor:
    """Read a recording of any format that libsndfile knows, mixed to one channel and resampled.

    seconds: read no more than these, so that an hour need not be decoded for its first ten seconds; None: all. What
    says nothing of its length, such as Ogg, is taken for whole wherever it ends.

    Returns:
        `(T,)` float32 at `sample_rate` Hz.

    Raises:
        AudioError: the file is missing, unreadable, cut off, empty, far beyond full scale, of a rate without a simple
            ratio to `sample_rate`, or holds values that are not finite.
    """
    path = Path(path)
    if not path.is_file():
        raise AudioError(f"no recording at {path}")
    return read_audio(path, str(path), sample_rate=sample_rate, seconds=seconds)


def read_audio(
    source: Path | bytes, name: str, *, sample_rate: int | None, seconds: float | None, full_scale: int = 1 << 15
) -> Tensor:
    """A recording from a file or from the bytes of one, which errors call by `name`; see `load_audio`.

    sample_rate: None leaves it as it is; full_scale: the number of 16 bits that becomes 1.
    """
    check_complete(source, name)
    try:
        with soundfile.SoundFile(io.BytesIO(source) if isinstance(source, bytes) else source) as file:
            rate, written, whole = file.samplerate, file.subtype, file.subtype == "PCM_16"
            if file.frames >= ENDLESS:
                raise AudioError(f"{name} does not say how long it is, as a stream: encode it again")
            most = file.frames if seconds is None else min(file.frames, math.ceil((seconds + MARGIN) * rate))
            samples = file.read(-1 if seconds is None else most, "int16" if whole else "float32", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise AudioError(f"cannot read {name}: {error}; is it a complete WAV, FLAC, OGG or MP3 file?") from error
    if len(samples) == 0:
        raise AudioError(f"{name} holds no samples: remove it, or record it again")
    if most - len(samples) > max(SLACK, most // 100) and is_counted(source):
        raise AudioError(
            f"{name} is cut off: {len(samples)} of the {most} samples that it promises are there; copy it again"
        )
    wave = torch.from_numpy(samples.astype(np.float32) / (full_scale if whole else 1)).mean(dim=1)
    if not torch.isfinite(wave).all():
        raise AudioError(f"{name} holds values that are not finite (NaN or infinity): convert it again from its source")
    if written in FLOATS:
        check_scale(name, wave)
    wanted = sample_rate or rate
    check_rate(name, rate, wanted)
    wave = wave if rate == wanted else _resampler(rate, wanted, dtype=torch.float32)(wave)
    return wave if seconds is None else wave[: round(seconds * wanted)]


def check_audible(wave: Tensor, name: str | Path) -> Tensor:
    """Return `wave` `(T,)` if any 10 ms of it are louder than -60 dB full scale; else `AudioError`, which names it."""
    if not is_audible(wave):
        raise AudioError(f"{name} is silent (below {SILENCE_DB:.0f} dB): remove it, or record it again")
    return wave


def is_audible(wave: Tensor) -> bool:
    """Whether any 10 ms of a waveform `(T,)` are louder than -60 dB full scale."""
    return bool(wave.numel()) and float(_frame_levels(wave).max()) >= SILENCE_DB


def trim_silence(wave: Tensor, *, floor_db: float = -40.0) -> Tensor:
    """Cut what is quieter than `floor_db` relative to the loudest 10 ms from both ends: `(T,)` → `(T',)`, T' ≥ 1.

    Silence as a whole is returned as it came.

    >>> trim_silence(torch.cat([torch.zeros(800), torch.ones(160), torch.zeros(800)])).shape
    torch.Size([160])
    """
    if not is_audible(wave):
        return wave
    levels = _frame_levels(wave)
    (loud,) = torch.where(levels >= levels.max() + floor_db)
    size = round(FRAME * SAMPLE_RATE)
    return wave[int(loud[0]) * size : (int(loud[-1]) + 1) * size]


def normalise_rms(wave: Tensor, *, level_db: float = -20.0, peak: float = 0.99) -> Tensor:
    """Scale `wave` `(T,)` to a root mean square of `level_db` dB full scale, or less where its peak would pass `peak`.

    Silence stays silence.

    >>> normalise_rms(torch.tensor([0.5, -0.5]))
    tensor([ 0.1000, -0.1000])
    """
    rms, highest = float(wave.double().square().mean().sqrt()), float(wave.abs().max())
    if rms == 0:
        return wave
    return wave * min(10 ** (level_db / 20) / rms, peak / highest)


def loudest(wave: Tensor, most: int) -> Tensor:
    """The `most` consecutive samples of `wave` `(T,)` with the most energy, the first of several; all of a shorter one.

    >>> loudest(torch.tensor([0.1, 0.1, 0.9, 0.0]), 2)
    tensor([0.1000, 0.9000])
    """
    energy = torch.nn.functional.pad(wave.double().square().cumsum(0), (1, 0))
    start = int((energy[most:] - energy[: len(energy) - most]).argmax()) if len(wave) > most else 0
    return wave[start : start + most]


def _frame_levels(wave: Tensor) -> Tensor:
    """Level of each 10 ms, dB full scale, `(ceil(T / 160),)`."""
    power = avg_pool1d(wave.double().square()[None], round(FRAME * SAMPLE_RATE), ceil_mode=True)[0]
    return 10 * torch.log10(power.clamp_min(1e-12))


def _opened(source: Path | bytes) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")


def check_complete(source: Path | bytes, name: str) -> None:
    """Refuse a WAV or AIFF file whose header promises more than is there; libsndfile would take the rest for all."""
    with _opened(source) as file:
        head, there = file.read(12), file.seek(0, io.SEEK_END) - 8
    order = {b"RIFF": "<I", b"FORM": ">I"}.get(head[:4])
    if order is None or len(head) < 12 or head[8:] not in (b"WAVE", b"AIFF", b"AIFC"):
        return
    promised = struct.unpack(order, head[4:8])[0]
    if promised < UNKNOWN and promised - there > max(SLACK, promised // 100):
        raise AudioError(
            f"{name} is cut off: {there} of the {promised} bytes that its header promises are there; copy it again "
            "from its source, or take its row out"
        )


def is_counted(source: Path | bytes) -> bool:
    """Whether an MP3 counts its frames in the first one; without, its length is guessed from its size."""
    with _opened(source) as file:
        head = file.read(10)
        covers = head[:3] == b"ID3"  # a picture, say, whose size has seven bits a byte
        file.seek(10 + sum((byte & 127) << 7 * place for place, byte in enumerate(head[:5:-1])) if covers else 0)
        first = file.read(512)
    return any(mark in first for mark in (b"Xing", b"Info", b"VBRI"))


def check_rate(name: str, rate: int, sample_rate: int) -> None:
    """Refuse a sample rate whose filter to another would not fit into memory, as that of 44,101 Hz."""
    common = math.gcd(rate, sample_rate)
    if (rate // common) * (sample_rate // common) > LARGEST:
        raise AudioError(
            f"{name} has {rate} Hz, which has no simple ratio to {sample_rate} Hz: was 44100 or 48000 meant? If not, "
            f"convert it, such as by `ffmpeg -i {Path(name).name} -ar {sample_rate} new.wav`"
        )


def check_scale(name: str, wave: Tensor) -> None:
    """Refuse samples `(T,)` far beyond full scale, such as 16-bit integers that were written as floats."""
    peak = float(wave.abs().max())
    if peak > LOUDEST:
        raise AudioError(
            f"{name} reaches {peak:.4g} where full scale is 1: integers that were written as floats? Divide them by "
            "32768 (16 bits), and write it again"
        )
