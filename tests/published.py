"""What tests of encoders share: weights and recordings of the reader's own cache, a tune, noise."""

from collections.abc import Callable
from typing import TypeVar

import pytest
import torch
from torch import Tensor

from pullpush import cache
from pullpush.data.audio import load_audio
from pullpush.data.recordings import tuxpaint
from pullpush.errors import DataNotFoundError

HOME = cache.home()  # before any test points it elsewhere
T = TypeVar("T")


def fetched(make: Callable[[], T]) -> T:
    """What `make` makes of what it fetches; the test is skipped where that is not to be had."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_HOME", str(HOME))
        try:
            return make()
        except DataNotFoundError as error:
            pytest.skip(f"cannot be fetched here: {error}")


def stamp(name: str, *, sample_rate: int) -> Tensor:
    """The recording of one of Tux Paint's stamps, `(T,)`."""
    root = fetched(tuxpaint.fetch)
    return load_audio(tuxpaint.recording(root, name), sample_rate=sample_rate)


def tune(seconds: float, sample_rate: int) -> Tensor:
    """Three notes by turns, four a second, each with five partials, `(T,)`: the same on every machine."""
    time = torch.arange(round(seconds * sample_rate), dtype=torch.float64) / sample_rate
    hertz = 110.0 * (2 + torch.floor(4 * time) % 3)
    phase = 2 * torch.pi * hertz.cumsum(0) / sample_rate
    partials = sum(torch.sin(k * phase) / k for k in range(1, 6))
    return (partials * (0.1 + 0.05 * torch.sin(4 * torch.pi * time))).float()


def noise(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers of a tenth of full scale."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 0.1


def pixels(*shape: int, seed: int = 0) -> Tensor:
    """Numbers in [-1, 1]."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1
