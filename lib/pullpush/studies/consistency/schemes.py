"""The schemes that a clip with texts in several languages is trained by, and the texts that each takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.batches import Batch, PairDataset, collate
from pullpush.data.clips import Clips
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.training.loop import Result

Runs = Mapping[tuple[str, int], Result]  # by (system, seed)
SCHEMES = ("ml-clap", "cacl", "kcl")
SAMPLINGS = {"random": "ml-clap", "pair": "cacl", "all": "kcl"}  # of `language_plan`, by the scheme that takes so


def take(clips: int, languages: int, sampling: str, generator: torch.Generator) -> Tensor:
    """Which languages training takes of each clip, `(N, K)` boolean: "random" one, "pair" the first and one other.

    Example:
        >>> take(3, 8, "pair", torch.Generator().manual_seed(0)).sum(dim=1).tolist()
        [2, 2, 2]
    """
    always = int(sampling == "pair")  # so many of the first languages
    chosen = torch.randint(always, languages, (clips,), generator=generator)
    taken = F.one_hot(chosen, languages).bool()
    taken[:, :always] = True
    return taken


def scheme_batches(
    split: Clips, batch_size: int, *, languages: Sequence[str] = LANGUAGES
) -> Iterator[tuple[str, Batch]]:
    """The first batch as each scheme draws it: pairs (scheme, batch)."""
    for sampling, scheme in SAMPLINGS.items():
        data = PairDataset(split, languages=languages, sampling=sampling)
        yield scheme, collate([data[i] for i in range(min(batch_size, len(data)))])
