"""What is pretrained on: the training clips of sound, music and speech as patches of their log-mel spectrograms.

Nothing of a validation or test split is learnt from; losses that a report calls held out are taken on the validation
splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from pullpush.cache import bytes_key, cached_dir, content_key
from pullpush.data.clips import Clips, Config, World, load_data
from pullpush.data.held_out import HeldOutConfig
from pullpush.data.music import MusicConfig
from pullpush.data.speech import SpeechConfig
from pullpush.data.spoken import SpokenConfig
from pullpush.data.utterances import normalised
from pullpush.data.world import WorldConfig
from pullpush.encoders.audio_transformer import PATCH, AudioTransformer
from pullpush.encoders.interface import SplitAudioEncoder
from pullpush.errors import unknown
from pullpush.golden import versions
from pullpush.training.features import Activated
from pullpush.training.frozen import write_activations

KIND = "pretraining"
SPEECH = "speech"  # all that a tagger is told of what people say, as in AudioSet
STRETCH = 1.5  # a padded batch holds clips whose lengths differ at most by this factor
STAMPS = ("fra", "ro", "ru", "cat", "bg", "spa", "be", "el", "da")
PROMPTS = ("word", "number", "sentence", "code word")
CORPORA: Mapping[str, Callable[[], tuple[Config, ...]]] = {
    # what chapter 5 learns from, so that no clip of its tests was ever heard
    "mixed": lambda: (
        HeldOutConfig(WorldConfig("tuxpaint", n_train=2000, captions_per_scene=1), "takes", 0.1),
        MusicConfig(captions_per_phrase=1),
        SpeechConfig(STAMPS),
        SpokenConfig(("prompts",), kinds=PROMPTS),
    ),
    "synthetic": lambda: (WorldConfig("synthetic", n_train=48, n_valid=24, n_test=2, n_single_per_event=1),),
}


class Batch(NamedTuple):
    """Some clips. patches: `(B, S, PATCH)`; mask: `(B, S)` bool, their own; rows: `(B,)` int64, which they are."""

    patches: Tensor
    mask: Tensor
    rows: np.ndarray


class Part(NamedTuple):
    """Clips of one domain. tags: of each clip; texts: what is said in each, "" where nothing is."""

    clips: Activated
    domain: str
    tags: list[set[str]]
    texts: list[str]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Clips of several domains as patches, with what supervised objectives are told.

    parts: of one split, side by side; names: of the tags that training clips have, in the order of `tags`.
    """

    parts: tuple[Part, ...] = field(repr=False)
    names: tuple[str, ...]

    def __len__(self) -> int:
        return sum(len(part.clips) for part in self.parts)

    @property
    def key(self) -> str:
        """Names the clips and all that is told of them."""
        told = [[part.clips.key, [sorted(tags) for tags in part.tags], part.texts] for part in self.parts]
        return content_key([told, self.names])

    @cached_property
    def domains(self) -> list[str]:
        """Of each clip: "sound", "music" or "speech"."""
        return [part.domain for part in self.parts for _ in part.texts]

    @cached_property
    def texts(self) -> list[str]:
        """What is said in each clip, without capitals and signs; "" where nothing is."""
        return [text for part in self.parts for text in part.texts]

    @cached_property
    def tags(self) -> Tensor:
        """`(N, K)` float32, 1 where a clip holds what a name tells; what no training clip holds is left out."""
        place = {name: column for column, name in enumerate(self.names)}
        held = [tags for part in self.parts for tags in part.tags]
        table = torch.zeros(len(held), len(self.names))
        for row, tags in enumerate(held):
            table[row, [place[name] for name in tags if name in place]] = 1.0
        return table

    @cached_property
    def sizes(self) -> np.ndarray:
        """`(N,)` int64, patches of each clip."""
        return torch.cat([part.clips.lengths for part in self.parts]).numpy() // PATCH

    @cached_property
    def _bounds(self) -> np.ndarray:
        return np.cumsum([0, *(len(part.clips) for part in self.parts)])

    def patches(self, row: int) -> Tensor:
        """A clip, `(S, PATCH)` float32."""
        part = int(np.searchsorted(self._bounds, row, side="right")) - 1
        values, _ = self.parts[part].clips.audio(int(row - self._bounds[part]))
        return values.view(-1, PATCH)

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """Clips by their numbers."""
        sizes = torch.from_numpy(self.sizes[np.asarray(rows)])
        patches = torch.zeros(len(rows), int(sizes.max()), PATCH)
        for place, row in enumerate(rows):
            patches[place, : sizes[place]] = self.patches(row)
        return Batch(patches, torch.arange(patches.shape[1]) < sizes[:, None], np.asarray(rows))

    def batches(self, rows: Sequence[int] | np.ndarray, longest: int = 64) -> Iterator[Batch]:
        """Clips in padded batches of similar length, at most `longest` in each; the same for the same rows."""
        group: list[int] = []
        for row in sorted(rows, key=lambda row: (self.sizes[row], row)):
            if group and (len(group) == longest or self.sizes[row] > STRETCH * self.sizes[group[0]]):
                yield self.batch(group)
                group = []
            group.append(row)
        if group:
            yield self.batch(group)


def load_corpus(name: str = "mixed") -> tuple[Corpus, Corpus]:
    """The clips to learn from, and those that held-out losses are taken on.

    Raises:
        UnknownNameError: no such corpus.
        DataNotFoundError, CacheError: recordings cannot be fetched, or spectrograms not be kept.

    >>> train, held_out = load_corpus("synthetic")
    >>> len(train), len(held_out), train.patches(0).shape[1]
    (48, 24, 256)
    """
    if name not in CORPORA:
        raise unknown("corpus", name, CORPORA)
    worlds = [load_data(config) for config in CORPORA[name]()]
    train, valid = (tuple(_part(world, world.split(split)) for world in worlds) for split in ("train", "valid"))
    names = tuple(sorted({tag for part in train for tags in part.tags for tag in tags}))
    return Corpus(train, names), Corpus(valid, names)


def _part(world: World, clips: Clips) -> Part:
    """Clips with their spectrograms, which are computed once, and what is told of them."""
    domain, tags, texts = told(world, clips)
    key = content_key([versions("studies/patches", "training/features"), clips.key])
    folder = cached_dir(KIND, key, partial(_write, clips))
    return Part(Activated.read(clips, folder, content_key([bytes_key(folder), clips.key])), domain, tags, texts)


def _write(clips: Clips, folder: Path) -> None:
    write_activations(folder, Patched(), clips)


class Patched(SplitAudioEncoder):
    """The front end of the audio transformer as the lower part of an encoder, so that its output is kept of clips."""

    dim = PATCH

    def __init__(self) -> None:
        super().__init__()
        self.encoder = AudioTransformer(width=2, layers=0, heads=1)

    def lower(self, audio: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """See `SplitAudioEncoder`: patches one after the other."""
        patches, mask = self.encoder.patches(audio, lengths)
        return patches.masked_fill(~mask[..., None], 0.0).flatten(1), mask.sum(dim=1) * PATCH

    def upper(self, activations: Tensor, sizes: Tensor) -> Tensor:
        """See `SplitAudioEncoder`: the mean patch."""
        return activations.unflatten(1, (-1, PATCH)).sum(dim=1) / (sizes[:, None] // PATCH)


def told(world: World, clips: Clips) -> tuple[str, list[set[str]], list[str]]:
    """The domain of clips, what each holds, and what is said in it; by the columns that clips of a domain have."""
    columns: Mapping[str, Sequence[Any]] = clips.columns
    if "scene" in columns:
        names = [event.name for event in world.bank.events]
        return "sound", [{names[event] for event in scene.events} for scene in columns["scene"]], [""] * len(clips)
    if "phrase" in columns:
        return "music", [{phrase.instrument} for phrase in columns["phrase"]], [""] * len(clips)
    return SPEECH, [{SPEECH} for _ in range(len(clips))], [normalised(text) for text in said(clips)]


def said(clips: Clips) -> list[str]:
    """What is said in each clip of speech, in the language that it is said in."""
    if "text" in clips.columns:
        return list(clips.columns["text"])
    spoken = clips.columns["spoken"]
    captions = {language: clips.captions(language) for language in dict.fromkeys(spoken)}
    return [next(iter(captions[language][row]), "") for row, language in enumerate(spoken)]
