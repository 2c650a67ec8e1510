"""Captions in other words and clips mixed, as lesson 6 shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.clips import Clips
from pullpush.data.scenes.augmented import mix, partners
from pullpush.show.galleries import waveform
from pullpush.studies.own_data import check_retold


def meaning_kept(embed: Callable[[list[str]], NDArray[np.float32]], texts: list[str], told_again: list[str]) -> NDArray:
    """How much nearer a caption is to itself in other words than to the caption of the next clip, `(N,)` of cosines.

    embed: texts → `(N, d)`, by an encoder that knows neither.

    >>> meaning_kept(lambda texts: np.float32([[len(text), 1] for text in texts]), ["a", "bbbb"], ["a", "b"]).round(2)
    array([0.14, 0.  ], dtype=float32)
    """
    here, again = (F.normalize(torch.from_numpy(embed(each)), dim=1) for each in (texts, told_again))
    return ((here * again).sum(dim=1) - (here * here.roll(-1, dims=0)).sum(dim=1)).numpy()


def ways_and_back(rewriter: Any, texts: Sequence[str]) -> pd.DataFrame:
    """Captions with their way through another language, a row each; rewriter: of the grammar, knowing the captions.

    Returns:
        Columns caption, language, there, and back.

    Raises:
        SettingError: its events are told in one language alone.
    """
    check_retold(rewriter.events)
    ways = [rewriter.retold(text) for text in texts]
    rows = [(text, way.language, way.pivot, way.back) for text, way in zip(texts, ways, strict=True)]
    return pd.DataFrame(rows, columns=["caption", "language", "there", "and back"])


def mixture(clips: Clips, merger: Any, *, seed: int) -> list[tuple[Tensor, str]]:
    """Two clips that can be mixed, and their sum at equal power, `(T,)` each at 16 kHz, with their captions.

    merger: knows the captions, see `rewriting`.
    """
    ((first, second),) = partners(clips.columns["scene"], 1, len(clips), seed=seed)
    waves = [waveform(clips, row) for row in (first, second)]
    both = torch.from_numpy(mix(*(wave.numpy() for wave in waves), longest=max(map(len, waves))))
    one, other = (clips.captions("eng")[row][0] for row in (first, second))
    return list(zip([*waves, both], [one, other, merger.merge([one], [other])[0]], strict=True))
