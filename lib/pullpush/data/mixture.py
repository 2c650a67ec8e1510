"""Several worlds as one: sound, music and speech to learn from together, each clip told in whatever languages it has.

speech = Part(SpeechConfig(), "speech", own="spoken")          # what a clip says, in the language that it is said in
sound = Part(WorldConfig(), "sound", languages=("eng", "fra"))  # captions in two languages
world = load_data(MixtureConfig((sound, speech)))
world.train.captions("mul")                                    # "mul": ISO 639 for several languages
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from pullpush.cache import content_key
from pullpush.data.clips import SPLITS, Clips, Columns, Config, Index, NoLabelsError, StoredClips, World, load_data
from pullpush.data.store import row_numbers
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError, check_known

SEVERAL = "mul"  # ISO 639-3: several languages
Write = Callable[[Columns, str], list[list[str]]]


@dataclass(frozen=True)
class Part:
    """One world of a mixture.

    Attributes:
        config: of the world; its clips are `StoredClips`.
        domain: what it is, such as "speech"; a column of the mixture.
        languages: of the captions that "mul" stands for, one after the other; with `own`, none.
        own: column that says in which language each clip is spoken, where "mul" is what it says; "" where captions
            tell of clips.
        groups: value of `own` → the group that clips are drawn in (see `Recipe.balance`); others, and clips of parts
            without `own`, are in the group `group`, by default the domain.
        limit: so many clips of the training split at most, taken at equal distances; None: all.
    """

    config: Config
    domain: str
    languages: tuple[str, ...] = ("eng",)
    own: str = ""
    groups: Mapping[str, str] = field(default_factory=dict, hash=False)  # mappings have no hash
    group: str = ""
    limit: int | None = None

    @property
    def telling(self) -> list[Any]:
        """How its clips are told and grouped, for keys."""
        return [self.domain, self.languages, self.own, self.groups, self.group]

    def told(self, clips: Clips) -> StoredClips:
        """The clips with captions in "mul", too, and the columns "domain" and "group"."""
        if not isinstance(clips, StoredClips):
            raise TypeError(f"a part of a mixture is clips with waveforms, got {type(clips).__name__}")
        if self.own:
            check_known("column of the clips", self.own, clips.columns)
        spoken = clips.columns[self.own] if self.own else [""] * len(clips)
        groups = [self.groups.get(each, self.group or self.domain) for each in spoken]
        further = {"domain": [self.domain] * len(clips), "group": groups}
        write = partial(in_several, clips.write, self.languages, self.own)
        return replace(clips, columns={**clips.columns, **further}, write=write, _captions={})


def in_several(write: Write, languages: Sequence[str], own: str, columns: Columns, language: str) -> list[list[str]]:
    """Captions in one language as `write` gives them; in "mul" those of several, or of each clip's own."""
    if language != SEVERAL:
        return write(columns, language)
    if not own:
        captions = [write(columns, each) for each in languages]
        return [[text for texts in several for text in texts] for several in zip(*captions, strict=True)]
    spoken = {each: write(columns, each) for each in dict.fromkeys(columns[own])}
    return [spoken[each][row] for row, each in enumerate(columns[own])]


def asked_in(language: str, clips: StoredClips) -> StoredClips:
    """The clips with prompts in "mul", too: those in one language."""
    return replace(clips, ask=partial(_ask, clips.ask, language))


def _ask(ask: Callable[[str, str | None], list[str]], main: str, language: str, template: str | None) -> list[str]:
    return ask(main if language == SEVERAL else language, template)


@dataclass(frozen=True)
class MixtureConfig:
    """The worlds that are learnt from together, in this order."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise ValueError("a mixture needs at least one part")

    def load(self) -> World:
        """The clips of all parts, in the splits train, valid and test; clips without any caption are left out."""
        worlds = [(part, load_data(part.config)) for part in self.parts]
        splits = {name: Mixed.of(name, [_told(part, world, name) for part, world in worlds]) for name in SPLITS}
        splits["train"] = splits["train"].limited([part.limit for part in self.parts])
        words = content_key([[world.words, *part.telling] for part, world in worlds])
        parts = dict.fromkeys(name for _, world in worlds for name in world.parts)  # a set that keeps its order
        return World(self, splits, words, parts=(*parts, "data/mixture"))


def _told(part: Part, world: World, split: str) -> Clips:
    clips = captioned(part.told(world.split(split)))
    if not len(clips):
        raise DataNotFoundError(f"no clip of the {split} split of {part.domain} has a caption: leave this part out")
    return clips


def captioned(clips: StoredClips) -> StoredClips:
    rows = [row for row, texts in enumerate(clips.captions(SEVERAL)) if texts]
    return clips if len(rows) == len(clips) else clips.select(rows)


@dataclass(frozen=True, eq=False)
class Mixed:
    """Clips of several sources as one; see `Clips`. What sources have in common are their columns and captions.

    sources: the clips; part, row: `(N,)` int64, which source each clip is of, and its number there.
    """

    name: str
    sources: tuple[Clips, ...]
    part: np.ndarray
    row: np.ndarray
    graded = False

    @classmethod
    def of(cls, name: str, sources: Sequence[Clips], **further: Any) -> Self:
        """All clips of the sources, one source after the other."""
        part = np.repeat(np.arange(len(sources)), [len(clips) for clips in sources])
        row = np.concatenate([np.arange(len(clips)) for clips in sources])
        return cls(name, tuple(sources), part, row, **further)

    @cached_property
    def key(self) -> str:
        return content_key([[clips.key for clips in self.sources], self.part.tolist(), self.row.tolist()])

    def __len__(self) -> int:
        return len(self.part)

    @cached_property
    def columns(self) -> Columns:
        common = [name for name in self.sources[0].columns if all(name in clips.columns for clips in self.sources)]
        return {name: self._gathered([clips.columns[name] for clips in self.sources]) for name in common}

    @property
    def lengths(self) -> Tensor:
        return torch.tensor(self._gathered([clips.lengths.tolist() for clips in self.sources]), dtype=torch.int64)

    def audio(self, index: Index, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        rows = row_numbers(index, len(self))
        parts = self.part[rows]
        kept = (clips.waveforms.sample_rate for clips in self.sources if hasattr(clips, "waveforms"))
        if sample_rate is None and len(rates := {*kept}) > 1:
            raise PullPushError(f"parts are kept at {' and '.join(map(str, sorted(rates)))} Hz: give a sample_rate")
        found = {}
        for part in np.unique(parts):  # each source is asked once
            places = np.flatnonzero(parts == part)
            found[part] = places, *self.sources[part].audio(self.row[rows[places]].tolist(), sample_rate=sample_rate)
        longest = max((audio.shape[1] for _, audio, _ in found.values()), default=0)
        waves, lengths = torch.zeros(len(rows), longest), torch.zeros(len(rows), dtype=torch.int64)
        for places, audio, sizes in found.values():
            waves[places, : audio.shape[1]], lengths[places] = audio, sizes
        return waves, lengths

    def captions(self, language: str) -> list[list[str]]:
        found, missing = [], []
        for clips in self.sources:
            try:
                found.append(clips.captions(language))
            except UnknownNameError as error:
                found.append([[]] * len(clips))
                missing.append(error)
        if len(missing) == len(self.sources):
            raise missing[0]
        return self._gathered(found)

    @property
    def labels(self) -> Tensor:
        raise NoLabelsError("clips of several sources have no classes in common: ask one of them")

    def prompts(self, language: str = "eng", template: str | None = None) -> list[str]:
        raise NoLabelsError("clips of several sources have no classes in common: ask one of them")

    def relevance(self, other: Clips | None = None) -> Tensor:
        items = self if other is None else other
        if not isinstance(items, Mixed) or len(items.sources) != len(self.sources):
            raise ValueError("relevance of clips of several sources is known among clips of the same sources only")
        fits = torch.zeros(len(self), len(items))
        for number, (mine, theirs) in enumerate(zip(self.sources, items.sources, strict=True)):
            rows, columns = (np.flatnonzero(each.part == number) for each in (self, items))
            block = mine.relevance(theirs)[self.row[rows]][:, items.row[columns]]
            fits[torch.from_numpy(rows)[:, None], torch.from_numpy(columns)[None]] = block.float()
        return fits

    def select(self, rows: Sequence[int], *, name: str | None = None) -> "Mixed":
        chosen = row_numbers(rows, len(self))
        return replace(self, name=name or self.name, part=self.part[chosen], row=self.row[chosen])

    def head(self, n: int) -> "Mixed":
        return self.select(range(min(n, len(self))))

    def limited(self, limits: Sequence[int | None]) -> "Mixed":
        """So many clips of each source at most, taken at equal distances; None: all."""
        rows = []
        for number, limit in enumerate(limits):
            all_of_it = np.flatnonzero(self.part == number)
            few = limit is not None and limit < len(all_of_it)
            rows.append(all_of_it[np.linspace(0, len(all_of_it) - 1, limit).round().astype(int)] if few else all_of_it)
        return self.select(np.concatenate(rows).tolist())

    def each(self, hear: Callable[[Clips], Clips]) -> "Mixed":
        """The same clips with every source replaced by what `hear` makes of it."""
        return replace(self, sources=tuple(map(hear, self.sources)))

    def _gathered(self, values: Sequence[Sequence[Any]]) -> list[Any]:
        return [values[part][row] for part, row in zip(self.part, self.row, strict=True)]
