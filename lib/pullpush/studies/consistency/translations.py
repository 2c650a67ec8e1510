"""How near captions in other languages lie to the English ones in a frozen sentence encoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.data.vocabulary import LANGUAGES
from pullpush.data.world import Split


def caption_cosines(
    encoder: nn.Module, split: Split, languages: Sequence[str] = LANGUAGES, *, stranger: bool = False
) -> dict[str, np.ndarray]:
    """Table 10 with the frozen encoder: cosines `(N,)` of a clip's first English caption with its first in a language.

    "eng" is the second English caption.

    stranger: with those of another clip instead.
    """

    def features(language: str, number: int) -> Tensor:
        return F.normalize(encoder([captions[number] for captions in split.captions(language)]).float(), dim=1)

    english, cosines = features("eng", 0), {}
    for language in languages:
        other = features(language, 1 if language == "eng" else 0)
        cosines[language] = (english * (other.roll(1, 0) if stranger else other)).sum(1).numpy()
    return cosines
