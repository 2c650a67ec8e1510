"""What is pretrained on: training clips of sound, music and speech as patches of their log-mel spectrograms.

Nothing of a test split is heard; held-out losses and scores are taken on the validation splits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pullpush.cache import content_key
from pullpush.data.clips import Clips, World, load_data
from pullpush.data.music.world import MusicConfig
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.data.speech import normalised
from pullpush.data.speech.spoken import SpokenConfig
from pullpush.data.speech.stamps import SpeechConfig
from pullpush.encoders.audio_transformer import AudioTransformer
from pullpush.encoders.windows import length_mask
from pullpush.training.frozen import blocks

SPEECH = "speech"  # all that a tagger is told of what people say, as in AudioSet
STRETCH = 1.5  # a padded batch holds clips whose lengths differ at most by this factor
STAMPS = ("fra", "ro", "ru", "cat", "bg", "spa", "be", "el", "da")
CORPORA = {
    # what chapter 5 learns from, so that no clip of its tests was ever heard
    "mixed": lambda: (
        HeldOutConfig(WorldConfig("tuxpaint", n_train=2000, captions_per_scene=1), "takes", 0.1),
        MusicConfig(captions_per_phrase=1),
        SpeechConfig(STAMPS),
        SpokenConfig(("prompts",), kinds=("word", "number", "sentence", "code word")),
    ),
    "synthetic": lambda: (WorldConfig("synthetic", n_train=48, n_valid=24, n_test=2, n_single_per_event=1),),
}


class Batch(NamedTuple):
    """Clips. patches: `(B, S, PATCH)`; mask: `(B, S)` bool, their own; rows: `(B,)` int64, which of a corpus."""

    patches: Tensor
    mask: Tensor
    rows: np.ndarray
    of: "Corpus"


@dataclass(frozen=True, eq=False)
class Corpus:
    """N clips. patches: of each `(S, PATCH)` float16; domains: "sound", "music" or "speech"; held: tags of each; texts:
    what is said, without capitals and signs, "" where nothing is; names: tags of training clips; key: names all this.
    """

    patches: list[Tensor]
    domains: list[str]
    held: list[set[str]]
    texts: list[str]
    names: list[str]
    key: str

    def __len__(self) -> int:
        return len(self.patches)

    @cached_property
    def tags(self) -> Tensor:
        """`(N, K)` float32, 1 where a clip holds what a name tells; what no training clip holds is left out."""
        return torch.tensor([[float(name in held) for name in self.names] for held in self.held])

    @cached_property
    def sizes(self) -> np.ndarray:
        """`(N,)` int64, patches of each clip."""
        return np.array([len(patches) for patches in self.patches])

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """Clips by their numbers."""
        patches = pad_sequence([self.patches[row].float() for row in rows], batch_first=True)
        mask = length_mask(torch.from_numpy(self.sizes[np.asarray(rows)]), patches.shape[1])
        return Batch(patches, mask, np.asarray(rows), self)

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


def load_corpus(name: str) -> tuple[Corpus, Corpus]:
    """The clips to learn from, those of training splits, and those that held-out losses are taken on, of validation."""
    worlds = [load_data(config) for config in CORPORA[name]()]
    names: list[str] = []
    corpora = []
    for split in ("train", "valid"):
        parts = [(told(world, world.split(split)), world.split(split)) for world in worlds]
        domains, held, texts = (list(chain(*column)) for column in zip(*(part for part, _ in parts), strict=True))
        names = names or sorted(set().union(*held))
        key = content_key([[clips.key for _, clips in parts], [sorted(tags) for tags in held], texts, names])
        patches = [clip for _, clips in parts for clip in patches_of(clips)]
        corpora.append(Corpus(patches, domains, held, texts, names, key))
    train, held_out = corpora
    return train, held_out


def patches_of(clips: Clips) -> Iterator[Tensor]:
    """Of each clip its log-mel spectrogram in patches, `(S, PATCH)` float16."""
    encoder = AudioTransformer(width=2, layers=0, heads=1)  # its front end alone is asked

    def hear(audio: Tensor, lengths: Tensor) -> list[Tensor]:
        patches, mask = (values.cpu() for values in encoder.patches(audio, lengths))
        return [row[own].half() for row, own in zip(patches, mask, strict=True)]

    for block in blocks(encoder, clips, hear):
        yield from block


def told(world: World, clips: Clips) -> tuple[list[str], list[set[str]], list[str]]:
    """The domain of each clip, what it holds, and what is said in it; by the columns that clips of a domain have."""
    columns, several = clips.columns, len(clips)
    if "scene" in columns:
        names = [event.name for event in world.bank.events]
        return ["sound"] * several, [{names[event] for event in s.events} for s in columns["scene"]], [""] * several
    if "phrase" in columns:
        return ["music"] * several, [{phrase.instrument} for phrase in columns["phrase"]], [""] * several
    if "text" in columns:
        said = columns["text"]
    else:  # the caption in the language that is spoken
        captions = {language: clips.captions(language) for language in dict.fromkeys(columns["spoken"])}
        said = [next(iter(captions[language][row]), "") for row, language in enumerate(columns["spoken"])]
    return [SPEECH] * several, [{SPEECH}] * several, [normalised(text) for text in said]
