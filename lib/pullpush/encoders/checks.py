"""What every encoder may rely on, checked once at the door of `DualEncoder`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pullpush.encoders.interface import AudioEncoder
from pullpush.encoders.windows import zero_padding
from pullpush.errors import AudioError


def check_audio(audio: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """`(B, T)` audio with zeros beyond each length, and `(B,)` int64 lengths on its device.

    >>> check_audio(torch.ones(1, 3), torch.tensor([2]))
    (tensor([[1., 1., 0.]]), tensor([2]))

    Raises:
        AudioError: wrong shape or dtype, lengths outside 1 … T, or samples that are not finite.
    """
    if not isinstance(audio, Tensor) or audio.ndim != 2 or 0 in audio.shape:
        found = tuple(audio.shape) if isinstance(audio, Tensor) else type(audio).__name__
        raise AudioError(f"audio must be a tensor (clips, samples) with at least one of each, got {found}")
    if not audio.is_floating_point():
        raise AudioError(f"audio must be floating point in [-1, 1], got {audio.dtype}; divide int16 by 32768")
    if lengths is not None:
        _check_lengths(lengths, audio)
    audio, lengths = zero_padding(audio.float(), lengths)
    finite = torch.isfinite(audio).all(dim=1)
    if not finite.all():
        rows = torch.nonzero(~finite).flatten().tolist()
        raise AudioError(f"audio has NaN or infinite samples in clips {rows[:10]} of the batch: drop or repair them")
    return audio, lengths


def _check_lengths(lengths: Tensor, audio: Tensor) -> None:
    clips, samples = audio.shape
    if lengths.shape != (clips,) or lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise AudioError(
            f"lengths must be ({clips},) whole numbers, one a clip, got {tuple(lengths.shape)} {lengths.dtype}"
        )
    low, high = int(lengths.min()), int(lengths.max())
    if low < 1 or high > samples:
        raise AudioError(f"lengths must lie in 1 … {samples} samples, got {low} … {high}")


def check_rate(sample_rate: int | None, encoder: AudioEncoder) -> None:
    """Require audio to be at an encoder's rate; None says nothing of it.

    Raises:
        AudioError: it is at another; or the encoder takes no waveforms.
    """
    wanted, name = encoder.sample_rate, type(encoder).__name__
    if sample_rate is None or sample_rate == wanted:
        return
    if wanted is None:
        raise AudioError(f"{name} takes features, not audio at {sample_rate} Hz: give it clips that are encoded")
    raise AudioError(
        f"{name} hears audio at {wanted} Hz, got {sample_rate} Hz: ask the clips for it by "
        f"clips.audio(index, sample_rate={wanted}), or resample it by torchaudio.functional.resample"
    )


def check_seconds(lengths: Tensor, encoder: AudioEncoder) -> None:
    """Require clips, `(B,)` samples each, to be no longer than an encoder takes.

    Raises:
        AudioError: some are; the message names them and the longest.
    """
    if encoder.max_seconds is None or encoder.sample_rate is None:
        return
    seconds = lengths.double() / encoder.sample_rate
    long = torch.nonzero(seconds > encoder.max_seconds).flatten().tolist()
    if long:
        raise AudioError(
            f"{type(encoder).__name__} takes at most {encoder.max_seconds:g} s, but clips {long[:10]} of the batch are "
            f"longer (up to {float(seconds.max()):.1f} s): load them with seconds={encoder.max_seconds:g}, or take an "
            "encoder that averages windows of a clip"
        )


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list.

    >>> check_texts(("a frog",))
    ['a frog']

    Raises:
        TypeError: one string instead of a list of them, or something in the list that is not a string.
        ValueError: no text at all.
    """
    if isinstance(texts, str):
        raise TypeError("texts must be a list of strings, got one string: wrap it in [ ]")
    texts = list(texts)
    if not texts:
        raise ValueError("texts must hold at least one string")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings, got {type(text).__name__} at place {place}")
    return texts
