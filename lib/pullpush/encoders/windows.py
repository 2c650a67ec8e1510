"""Clips of several lengths: checked at the door, masked so that padding stays out of features, cut into windows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.audio import LOUDEST
from pullpush.encoders.interface import AudioEncoder
from pullpush.errors import AudioError


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """`(B,)` int64 lengths → `(B, size)` bool, true on the first `lengths[i]` places of row i.

    >>> length_mask(torch.tensor([1, 2]), 2)
    tensor([[ True, False],
            [ True,  True]])
    """
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def zero_padding(audio: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """Set `(B, T)` samples beyond their clip's length to zero; no lengths means that every clip fills its row: `(B, T)`
    audio and `(B,)` int64 lengths on the same device."""
    if lengths is None:
        return audio, torch.full((len(audio),), audio.shape[1], dtype=torch.int64, device=audio.device)
    lengths = lengths.to(audio.device, torch.int64)
    return torch.where(length_mask(lengths, audio.shape[1]), audio, 0.0), lengths


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over the true places: `(B, D, F)`, `(B, F)` → `(B, D)`.

    >>> masked_mean(torch.tensor([[[1.0, 3.0, 8.0]]]), torch.tensor([[True, True, False]]))
    tensor([[2.]])
    """
    weight = mask[:, None].to(x.dtype)
    return (x * weight).sum(-1) / weight.sum(-1).clamp(min=1)


def masked_max(x: Tensor, mask: Tensor) -> Tensor:
    """Maximum over the true places: `(B, D, F)`, `(B, F)` → `(B, D)`.

    >>> masked_max(torch.tensor([[[1.0, 3.0, 8.0]]]), torch.tensor([[True, True, False]]))
    tensor([[3.]])
    """
    return x.masked_fill(~mask[:, None], -torch.inf).amax(-1)


def placed(rows: Tensor, mask: Tensor) -> Tensor:
    """Rows `(N, …)`, one for each true place of `(B, P)`, → `(B, P, …)`, zero elsewhere.

    >>> placed(torch.tensor([[1.0], [2.0]]), torch.tensor([[True, False], [True, False]])).flatten().tolist()
    [1.0, 0.0, 2.0, 0.0]
    """
    places = mask.flatten().nonzero().flatten()
    return rows.new_zeros(mask.numel(), *rows.shape[1:]).index_copy(0, places, rows).unflatten(0, mask.shape)


def split_rows(audio: Tensor, lengths: Tensor | None) -> list[Tensor]:
    """`(B, T)`, `(B,)` → B clips `(lengths[i],)`.

    >>> split_rows(torch.ones(2, 3), torch.tensor([1, 2]))
    [tensor([1.]), tensor([1., 1.])]
    """
    audio, lengths = zero_padding(audio, lengths)
    return [row[:length] for row, length in zip(audio, lengths.tolist(), strict=True)]


def by_length(encode: Callable[[list[Tensor]], Tensor], clips: list[Tensor]) -> Tensor:
    """Features `(B, dim)` of clips `(T,)`, encoded together with those of their own length alone.

    For networks in which padding would leak: a clip's features are those that it has alone.

    >>> by_length(lambda same: torch.stack(same).sum(1, keepdim=True), [torch.ones(3), torch.ones(1), torch.ones(3)])
    tensor([[3.],
            [1.],
            [3.]])
    """
    sizes = [len(clip) for clip in clips]
    places = [[i for i, size in enumerate(sizes) if size == wanted] for wanted in dict.fromkeys(sizes)]
    features = torch.cat([encode([clips[i] for i in group]) for group in places])
    order = torch.tensor([i for group in places for i in group], device=features.device)
    return features[order.argsort()]


def stacked(spectrograms: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Spectrograms `(bands, frames)` of clips of several lengths → `(B, 1, bands, F)`, zero beyond each, and `(B,)`
    int64, the frames of each.

    >>> stacked([torch.ones(1, 2), torch.ones(1, 1)])[0].tolist()
    [[[[1.0, 1.0]]], [[[1.0, 0.0]]]]
    """
    frames = torch.tensor([spectrogram.shape[1] for spectrogram in spectrograms], device=spectrograms[0].device)
    most = int(frames.max())
    rows = [F.pad(spectrogram, (0, most - spectrogram.shape[1])) for spectrogram in spectrograms]
    return torch.stack(rows)[:, None], frames


class Windows(NamedTuple):
    """Stretches of clips. audio: `(M, W)`; lengths: `(M,)` int64 samples in each; clip: `(M,)` int64, whose it is."""

    audio: Tensor
    lengths: Tensor
    clip: Tensor


def windows(audio: Tensor, lengths: Tensor | None, longest: int) -> Windows:
    """Cut clips of more than `longest` samples into the fewest windows of that length which cover them.

    The windows of a clip lie evenly: two that overlap for a little more than one length, side by side for two. All are
    full, so that an encoder with a window of fixed length never hears a rest that is filled up with silence.

    >>> cut = windows(torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]]), torch.tensor([3, 1]), longest=2)
    >>> cut.audio.tolist(), cut.lengths.tolist(), cut.clip.tolist()
    ([[1.0, 2.0], [2.0, 3.0], [4.0, 0.0]], [2, 2, 1], [0, 0, 1])
    """
    if longest < 1:
        raise ValueError(f"a window needs at least one sample, got {longest}")
    audio, lengths = zero_padding(audio, lengths)
    width = min(longest, audio.shape[1])
    rows, starts = [], []
    for row, length in enumerate(lengths.tolist()):
        count = max(1, -(-length // longest))
        starts += torch.linspace(0, max(0, length - longest), count, dtype=torch.float64).round().long().tolist()
        rows += [row] * count
    clip = torch.tensor(rows, device=audio.device)
    cut = torch.stack([audio[row, start : start + width] for row, start in zip(rows, starts, strict=True)])
    return Windows(cut, lengths[clip].clamp(max=longest), clip)


def over_windows(
    encode: Callable[[Tensor, Tensor], Tensor], audio: Tensor, lengths: Tensor | None, longest: int
) -> Tensor:
    """Features of clips of any length by an encoder of windows: of each clip the mean over its windows.

    Args:
        encode: `(M, W)` windows and `(M,)` samples in each → `(M, dim)`.
        audio: `(B, T)`.
        lengths: `(B,)` samples in each clip; None for all T.
        longest: samples in a window.

    Returns:
        `(B, dim)`.

    >>> over_windows(lambda windows, lengths: windows.sum(1, keepdim=True), torch.ones(1, 6), None, longest=4)
    tensor([[4.]])
    """
    cut = windows(audio, lengths, longest)
    features = encode(cut.audio, cut.lengths)
    clip = cut.clip.to(features.device)
    total = features.new_zeros(len(audio), features.shape[1]).index_add(0, clip, features)
    return total / clip.bincount(minlength=len(audio))[:, None]


def check_audio(audio: Tensor, lengths: Tensor | None, *, most: float = LOUDEST) -> tuple[Tensor, Tensor]:
    """`(B, T)` audio with zeros beyond each length, and `(B,)` int64 lengths on its device; else `AudioError`.

    most: that a sample may be. Lengths and samples are looked at on the CPU alone, for a GPU would have to be waited
    for: look before they go there.
    """
    if not isinstance(audio, Tensor) or audio.ndim != 2 or 0 in audio.shape:
        found = tuple(audio.shape) if isinstance(audio, Tensor) else type(audio).__name__
        raise AudioError(f"audio must be a tensor (clips, samples) with at least one of each, got {found}")
    if not audio.is_floating_point():
        raise AudioError(f"audio must be floating point in [-1, 1], got {audio.dtype}; divide int16 by 32768")
    full = lengths is not None and check_lengths(lengths, audio) == audio.shape[1]
    audio, lengths = zero_padding(audio.float(), None if full else lengths)
    if audio.device.type != "cpu":
        return audio, lengths
    low, high = torch.aminmax(audio.detach())  # NaN where a sample is
    if not -most <= low <= high <= most:
        peaks = audio.detach().abs().amax(dim=1)
        rows = torch.nonzero(~(peaks <= most)).flatten().tolist()
        what = (
            f"samples up to {peaks.max():.4g}, where 1 is full scale,"
            if peaks.isfinite().all()
            else "NaN or infinite samples"
        )
        raise AudioError(
            f"audio has {what} in clips {rows[:10]} of the batch: mend or drop them; divide int16 by 32768"
        )
    return audio, lengths


def check_lengths(lengths: Tensor, audio: Tensor) -> int | None:
    """The least of the lengths, if they fit the audio, else `AudioError`; None on a GPU: it would be waited for."""
    clips, samples = audio.shape
    if not isinstance(lengths, Tensor):
        raise AudioError(f"lengths must be a tensor of {clips} whole numbers, got {type(lengths).__name__}")
    if lengths.shape != (clips,) or lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise AudioError(
            f"lengths must be ({clips},) whole numbers, one a clip, got {tuple(lengths.shape)} {lengths.dtype}"
        )
    if lengths.device.type != "cpu":
        return None
    low, high = int(lengths.min()), int(lengths.max())
    if low < 1 or high > samples:
        raise AudioError(f"lengths must lie in 1 … {samples} samples, got {low} … {high}")
    return low


def check_seconds(lengths: Tensor, encoder: AudioEncoder) -> None:
    """Require clips, `(B,)` samples each, to be no longer than an encoder takes; else `AudioError` names them."""
    if encoder.max_seconds is None or encoder.sample_rate is None or lengths.device.type != "cpu":
        return
    seconds = lengths.double() / encoder.sample_rate
    long = torch.nonzero(seconds > encoder.max_seconds).flatten().tolist()
    if long:
        raise AudioError(
            f"{type(encoder).__name__} takes at most {encoder.max_seconds:g} s, but clips {long[:10]} of the batch are "
            f"longer (up to {float(seconds.max()):.1f} s): load them with seconds={encoder.max_seconds:g}, or take an "
            "encoder that averages windows of a clip"
        )


def check_texts(texts: Sequence[str], languages: Sequence[str] | None = None) -> list[str]:
    """The texts as a list of at least one string, and one language for each, or None; else TypeError or ValueError."""
    if isinstance(texts, str):
        raise TypeError("texts must be a list of strings, got one string: wrap it in [ ]")
    texts = list(texts)
    if not texts:
        raise ValueError("texts must hold at least one string")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings, got {type(text).__name__} at place {place}")
    if languages is not None and (isinstance(languages, str) or len(languages) != len(texts)):
        raise ValueError(f"languages must be one code for each of {len(texts)} texts, got {languages!r:.80}")
    return texts
