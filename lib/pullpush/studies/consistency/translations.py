"""How near captions in other languages lie to the English ones in a frozen sentence encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.data.clips import Clips
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.metrics.inference import Difference, difference
from pullpush.studies.consistency.languages import named

WEST, EAST = ("spa", "fra", "deu", "nld", "cat"), ("jpn", "zho")


def caption_cosines(
    encoder: nn.Module, split: Clips, languages: Sequence[str] = LANGUAGES, *, stranger: bool = False
) -> dict[str, np.ndarray]:
    """Table 10 with the frozen encoder: cosines `(N,)` of a clip's first English caption with its first in a language.

    "eng" is the second English caption, if every clip has one.

    stranger: with those of another clip instead.
    """

    def features(language: str, number: int) -> Tensor:
        return F.normalize(encoder([captions[number] for captions in split.captions(language)]).float(), dim=1)

    english, cosines = features("eng", 0), {}
    several = all(len(captions) > 1 for captions in split.captions("eng"))
    for language in languages if several else [code for code in languages if code != "eng"]:
        other = features(language, 1 if language == "eng" else 0)
        cosines[language] = (english * (other.roll(1, 0) if stranger else other)).sum(1).numpy()
    return cosines


def caption_table(
    same: Mapping[str, np.ndarray], stranger: Mapping[str, np.ndarray], printed: Mapping[str, float]
) -> pd.DataFrame:
    """Table 10, in %: a row a language, the nearest first.

    same, stranger: `caption_cosines` with captions of the same clip, and of another; printed: the paper's numbers.
    """
    table = pd.DataFrame({"language": list(same)})
    table["ours, same clip"] = [100 * same[name].mean() for name in same]
    table["ours, another clip"] = [100 * stranger[name].mean() for name in same]
    table["paper, back-translated"] = table["language"].map(printed)
    return table.sort_values("ours, same clip", ascending=False)


def west_less_east(same: Mapping[str, np.ndarray]) -> Difference:
    """How much nearer captions in the European languages lie to the English ones than Japanese and Chinese ones do.

    same: `caption_cosines`.

    Raises:
        LanguagesError: there are none in one of the seven.
    """
    named(list(same), *WEST, *EAST)
    west, east = (np.mean([same[code] for code in side], axis=0) for side in (WEST, EAST))
    return difference((west - east)[None])
