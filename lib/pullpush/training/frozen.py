"""Losses compared on a frozen audio trunk: every clip is encoded once, and a run then takes seconds.

    fast = encoded(world, base)                             # base: a run on that world, or on another one
    Plan(fast, recipe("infonce", **on_features(fast))).train()  # new projections on the base's features
    Plan(fast, …, base=base.path).train()                       # the base's own projections go on
    encoded(world, Published("clap"))                       # or an encoder as it is published: no run needed

What is trained is the two projections; the audio trunk stays as the base left it, texts as their frozen encoder gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from pullpush.cache import cached_dir, content_key
from pullpush.data.clips import Clips, Columns, Index, World
from pullpush.data.store import row_numbers
from pullpush.encoders import AUDIO, AudioEncoder
from pullpush.encoders.checks import check_audio, check_seconds
from pullpush.errors import AudioError, TrainingError
from pullpush.parallel import in_threads
from pullpush.progress import hidden
from pullpush.source import digest
from pullpush.training.loop import Result
from pullpush.training.trunk import Published, Trunk, load_trunk, trunk_digest, trunk_encoder

KIND = "features"
BLOCK = 64  # clips encoded at once


@dataclass(frozen=True, eq=False)
class Encoded:
    """Clips whose audio is replaced by features; all else is the clips' own (see `data.clips.Clips`).

    clips: what was encoded; features: `(N, D)` float32, memory-mapped; key: of both.

    >>> from pullpush.data.world import WorldConfig, load_world
    >>> world = load_world(WorldConfig("synthetic", n_train=2, n_valid=2, n_test=2, n_single_per_event=1))
    >>> Encoded(world.test, np.ones((2, 3), np.float32)).audio(0)
    (tensor([[1., 1., 1.]]), tensor([3]))
    """

    clips: Clips
    features: np.ndarray = field(repr=False)
    key: str = ""

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or len(self.features) != len(self.clips):
            raise ValueError(f"{len(self.clips)} clips need features ({len(self.clips)}, D), got {self.features.shape}")

    def __len__(self) -> int:
        return len(self.clips)

    @property
    def dim(self) -> int:
        """D, the size of a clip's features."""
        return self.features.shape[1]

    @property
    def lengths(self) -> Tensor:
        """`(N,)` int64, all D."""
        return torch.full((len(self),), self.dim)

    def audio(self, index: Index, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        """Features of some clips, `(B, D)` float32, and their lengths `(B,)` int64, all D; index as for `Clips`.

        Raises:
            AudioError: a sample rate was asked for, which features have none of.
        """
        if sample_rate is not None:
            raise AudioError(
                f"features have no sample rate, got {sample_rate}: ask the clips that were encoded, or take the audio "
                "encoder for features (on_features)"
            )
        features = self.features[row_numbers(index, len(self))]  # a copy: the cache cannot be written to
        return torch.from_numpy(features), torch.full((len(features),), self.dim)

    @property
    def name(self) -> str:
        """The clips' own."""
        return self.clips.name

    @property
    def graded(self) -> bool:
        """The clips' own."""
        return self.clips.graded

    @property
    def columns(self) -> Columns:
        """The clips' own."""
        return self.clips.columns

    @property
    def labels(self) -> Tensor:
        """The clips' own."""
        return self.clips.labels

    def captions(self, language: str) -> list[list[str]]:
        """The clips' own."""
        return self.clips.captions(language)

    def prompts(self, language: str = "eng") -> list[str]:
        """The clips' own."""
        return self.clips.prompts(language)

    def relevance(self, other: Clips | None = None) -> Tensor:
        """The clips' own."""
        return self.clips.relevance(other)

    def select(self, rows: Sequence[int], *, name: str | None = None) -> Encoded:
        """Some of the clips with their features."""
        part = self.clips.select(rows, name=name)
        return Encoded(part, self.features[row_numbers(rows, len(self))], content_key([self.key, part.key]))

    def head(self, n: int) -> Encoded:
        """The first `n` clips with their features."""
        return self.select(range(min(n, len(self))))

    @property
    def code(self) -> tuple[Any, ...]:
        """The code that answers go through, as roots of `source.digest`."""
        return Encoded, *self.clips.code


def encoded(world: World, base: Trunk | Result, *, progress: bool | None = None) -> World:
    """The same world heard through the audio trunk of a finished run (all but its projection), in eval mode.

    Features are computed once for each split and weights of the base, and kept under `home()/features`. Captions,
    relevance, scenes and labels are the world's own. As they are, the features have a range that the base's projection
    fits, so that a run may start from it.

    Args:
        world: with waveforms.
        base: the run, or its folder; or a published encoder.
        progress: show a bar while clips are encoded; default: in a terminal.

    Raises:
        DataNotFoundError: no finished run there, or the published weights are not there.
        TrainingError: the run was not kept on disk, or its weights are of another model.
        ValueError: the world is encoded already.
        CacheError: the cache cannot be written.
    """
    if trunk_of(world) is not None:
        raise ValueError(f"this world is encoded by {trunk_of(world)} already: encode the one that load_world gave")
    encode = splits_encoder(base, progress=progress)
    splits = {name: encode(clips) for name, clips in world.splits.items()}
    return replace(world, splits=splits, trunk=_source(base))


def splits_encoder(base: Trunk | Result, *, progress: bool | None = None) -> Callable[[Clips], Encoded]:
    """A function that hears one split after the other through a trunk; see `encoded`."""
    source = _source(base)
    weights = trunk_digest(source)
    code = digest(trunk_features, AUDIO[trunk_encoder(source)].make)
    trunk: list[AudioEncoder] = []  # read once, and only if a split is not there yet

    def encode(clips: Clips) -> Encoded:
        def build(place: Path) -> None:
            if not trunk:
                trunk.append(load_trunk(source))
            jobs = 1 if isinstance(source, Published) else None  # several blocks of a large model may not fit
            np.save(place / "features.npy", trunk_features(trunk[0], clips, jobs=jobs, progress=progress))

        key = content_key([code, clips.key, weights])
        features = np.load(cached_dir(KIND, key, build) / "features.npy", mmap_mode="r")
        return Encoded(clips, np.asarray(features), key)

    return encode


def _source(base: Trunk | Result) -> Trunk:
    """The folder of a run, or a published encoder."""
    source = base.path if isinstance(base, Result) else base if isinstance(base, Published) else Path(base)
    if source is None:
        raise TrainingError("the base run was kept in memory only: train it with a folder, or with `trained`")
    return source


def trunk_of(world: World) -> Trunk | None:
    """The run or the encoder whose trunk encoded a world; None where it holds waveforms."""
    return world.trunk


def on_features(world: World) -> dict[str, Any]:
    """What a recipe needs to learn from an encoded world: `recipe("kcl", **on_features(world), epochs=3)`."""
    if trunk_of(world) is None:
        raise ValueError("this world holds waveforms: make features of it by `encoded`")
    return {"audio": "features", "encoder_options": {"audio_dim": world.train.audio(0)[0].shape[1]}}


def trunk_features(
    trunk: AudioEncoder, clips: Clips, *, jobs: int | None = None, progress: bool | None = None
) -> np.ndarray:
    """Features of all clips, `(N, D)` float32.

    jobs: blocks of clips at once on a CPU; default: one a core, each by one thread. With 1 a block has all threads.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trunk = trunk.to(device)

    @torch.no_grad()
    def block(start: int) -> np.ndarray:
        audio, lengths = check_audio(*clips.audio(slice(start, start + BLOCK), sample_rate=trunk.sample_rate))
        check_seconds(lengths, trunk)
        features = trunk(audio.to(device), lengths.to(device)).float().cpu().numpy()
        bar.update(len(features))
        return features

    with tqdm(total=len(clips), desc=f"encoding {clips.name}", unit="clip", disable=hidden(progress)) as bar:
        starts = range(0, len(clips), BLOCK)
        parts = in_threads([partial(block, start) for start in starts], jobs=jobs if device.type == "cpu" else 1)
    return np.concatenate(parts)
