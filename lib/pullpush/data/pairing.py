"""Which caption in which language a clip brings in an epoch: a function of (seed, epoch, clip) alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pullpush.errors import check_known

SAMPLING = ("fixed", "random", "pair", "all")
CAPTIONS = ("first", "random", "all")


class Texts(NamedTuple):
    """What goes with a clip: its main text, further ones, and their languages; None where there is no caption."""

    text: str | None
    language: str
    parallel: tuple[str | None, ...]
    parallel_languages: tuple[str, ...]


@dataclass(frozen=True)
class Pairing:
    """How clips are paired with captions; what each of these means is in `PairDataset`."""

    languages: tuple[str, ...]
    sampling: str = "fixed"
    captions: str = "first"
    seed: int = 0
    most: int = 0  # captions that a clip brings where it brings all: missing ones are None

    def __post_init__(self) -> None:
        languages = (self.languages,) if isinstance(self.languages, str) else tuple(self.languages)
        object.__setattr__(self, "languages", languages)
        check_known("sampling", self.sampling, SAMPLING)
        check_known("caption choice", self.captions, CAPTIONS)
        if self.captions == "all" and self.sampling not in ("fixed", "random"):
            raise ValueError(
                f"captions 'all' brings every caption of one language, and sampling {self.sampling!r} takes several: "
                "choose sampling 'fixed' or 'random'"
            )
        if len(languages) < self.needed:
            raise ValueError(f"sampling {self.sampling!r} needs more languages than {languages}")

    @property
    def needed(self) -> int:
        """In how many languages a clip must have captions."""
        return 2 if self.sampling == "pair" else 1

    def texts(self, clip: int, epoch: int, captions: Mapping[str, Sequence[str]]) -> Texts:
        """A clip's texts in an epoch; captions: by language, none of them blank, in as many languages as are needed."""
        spoken = tuple(name for name in self.languages if self.sampling == "all" or captions[name])
        pick = draw = 0
        if self.draws:  # nothing is much faster
            rng = np.random.default_rng([self.seed, epoch, clip])
            pick, draw = int(rng.integers(2**31)), int(rng.integers(2**31))
        main, others = spoken[0], spoken[1:] if self.sampling == "all" else ()
        if self.sampling == "pair":
            others = (spoken[1 + pick % (len(spoken) - 1)],)
        elif self.sampling != "all":
            main = spoken[(clip if self.sampling == "fixed" else pick) % len(spoken)]
        if self.captions == "all":
            text, *further = captions[main]
            further += [None] * (self.most - 1 - len(further))
            return Texts(text, main, tuple(further), (main,) * len(further))
        at = draw if self.captions == "random" else 0
        several = (captions[name] for name in (main, *others))
        text, *parallel = (texts[at % len(texts)] if texts else None for texts in several)
        return Texts(text, main, tuple(parallel), others)

    @property
    def draws(self) -> bool:
        """Whether a clip's texts may be others in another epoch."""
        return self.captions == "random" or self.sampling in ("random", "pair")
