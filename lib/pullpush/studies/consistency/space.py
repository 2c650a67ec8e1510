"""A joint space with many languages: its embeddings, ranks in it, how tight a clip's captions lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pullpush.data.clips import Clips
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab.scoring import embedded_captions
from pullpush.metrics import language_ranks, pseudo_values
from pullpush.parallel import in_threads
from pullpush.studies.consistency.schemes import Runs
from pullpush.training.evaluate import embed_audio


class Space(NamedTuple):
    """Embeddings of a split: audio `(N, d)`; texts `(N, C, K, d)`, C captions in each of K languages."""

    audio: Tensor
    texts: Tensor


def embed(model: nn.Module, split: Clips, languages: Sequence[str] = LANGUAGES) -> Space:
    """Embed all clips and all their captions in all languages."""
    texts = torch.stack([embedded_captions(model, split, language) for language in languages], dim=2)
    return Space(embed_audio(model, split, batch_size=512), texts)


def spaces(runs: Runs, split: Clips, languages: Sequence[str] = LANGUAGES) -> dict[tuple[str, int], Space]:
    """The space of each run; see `embed`."""
    for language in languages:
        split.captions(language)  # written once, for all threads
    embedded = in_threads([partial(embed, run.model, split, languages) for run in runs.values()])
    return dict(zip(runs, embedded, strict=True))


def ranks(space: Space) -> Tensor:
    """Rank of every caption's clip in each language, from 1: `(N·C, K)`."""
    clips, captions = space.texts.shape[:2]
    clip = torch.arange(clips).repeat_interleave(captions)
    return language_ranks(space.audio, space.texts.flatten(0, 1), direction="t2a", clip=clip)


def tightness(spaces: Mapping[tuple[str, int], Space], system: str) -> np.ndarray:
    """How tight a clip's first captions lie, `(seeds, clips)`: their mean distance to their centre over that to the
    centre of all clips' captions, as pseudo-values. Small is tight.
    """
    rows = []
    for texts in [space.texts[:, 0] for (name, _), space in spaces.items() if name == system]:  # (N, K, d)
        near = (texts - texts.mean(1, keepdim=True)).norm(dim=-1).mean(1)
        far = (texts - texts.mean((0, 1))).norm(dim=-1).mean(1)
        distances = torch.stack([near, far], dim=1).double().numpy()
        rows.append(pseudo_values(lambda pair: pair[:, 0].mean() / pair[:, 1].mean(), distances))
    return np.stack(rows)
