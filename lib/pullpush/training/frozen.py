"""Losses compared on a frozen audio trunk: every clip is encoded once, and a run then takes seconds.

    fast = encoded(world, base)                             # base: a run on that world, or on another one
    Plan(fast, recipe("infonce", **on_features(fast))).train()  # new projections on the base's features
    Plan(fast, …, base=base.path).train()                       # the base's own projections go on
    encoded(world, Published("clap"))                       # or an encoder as it is published: no run needed

What is trained is the two projections; the audio trunk stays as the base left it, texts as their frozen encoder gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from pullpush.cache import cached_dir, content_key
from pullpush.data.audio import numbers
from pullpush.data.corpora import Corpus, Recordings
from pullpush.data.speech import SpeechSplit, SpeechWorld
from pullpush.data.world import Split, World
from pullpush.encoders import AUDIO, create, create_audio
from pullpush.encoders.checks import check_audio
from pullpush.errors import DataNotFoundError, TrainingError
from pullpush.parallel import in_threads
from pullpush.progress import hidden
from pullpush.source import digest
from pullpush.training import checkpoints
from pullpush.training.loop import RECIPE, Result
from pullpush.training.recipes import Recipe, from_json

KIND = "features"
BLOCK = 64  # clips encoded at once


@dataclass(frozen=True)
class Published:
    """An audio encoder as it is published, as a trunk that needs no run.

    audio: its name in `encoders.AUDIO`; options: its keyword arguments, such as model="/path/to/weights"; seed: of
    weights that are not published, as with pretrained=False.
    """

    audio: str
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def __hash__(self) -> int:
        return hash((self.audio, repr(sorted(self.options.items())), self.seed))


Trunk = Path | Published


class _Features:
    """What an encoded split does otherwise."""

    @property
    def dim(self) -> int:
        """D, the size of a clip's features."""
        return self.waveforms.shape[1]

    def audio(self, index: Any) -> tuple[Tensor, Tensor]:
        """Features of some clips, `(B, D)` float32, and their lengths `(B,)` int64, all D; index as for `Split`."""
        if isinstance(index, int):
            row = range(len(self))[index]  # negative numbers count from the end; others raise IndexError
            index = slice(row, row + 1)  # much faster than a list
        elif not isinstance(index, slice):
            index = np.atleast_1d(np.asarray(index, dtype=int))
        features = np.array(self.waveforms[index])  # a copy: the cache cannot be written to
        return torch.from_numpy(features), self.lengths[: len(features)]


@dataclass(frozen=True)
class Encoded(_Features, Split):
    """A split whose clips are features: waveforms are `(N, D)` float32, memory-mapped, and all lengths D.

    trunk: what they come from: the folder of a run, or a published encoder.
    """

    trunk: Trunk = field(kw_only=True)


@dataclass(frozen=True)
class EncodedRecordings(_Features, Recordings):
    """The same for a split of a real dataset."""

    trunk: Trunk = field(kw_only=True)


@dataclass(frozen=True)
class EncodedSpeech(SpeechSplit):
    """Spoken captions as features: samples are `(N, D)` float32, a clip's start is its row and its length D."""

    trunk: Trunk = field(kw_only=True)

    @property
    def dim(self) -> int:
        """D, the size of a clip's features."""
        return self.samples.shape[1]

    def audio(self, index: Any) -> tuple[Tensor, Tensor]:
        """Features of some clips, `(B, D)` float32, and their lengths `(B,)` int64, all D; index as for `Split`."""
        rows = self.recordings["start"].to_numpy()[numbers(index, len(self))]
        return torch.from_numpy(self.samples[rows]), torch.full((len(rows),), self.dim)


KINDS: dict[type, type] = {Split: Encoded, Recordings: EncodedRecordings, SpeechSplit: EncodedSpeech}
AnySplit = Split | Recordings | SpeechSplit
AnyEncoded = Encoded | EncodedRecordings | EncodedSpeech
Data = World | Corpus | SpeechWorld


def encoded(world: Data, base: Trunk | Result, *, progress: bool | None = None) -> Data:
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
    splits = {name: encode(part) for name, part in world._asdict().items() if type(part) in KINDS}
    return world._replace(**splits)


def splits_encoder(base: Trunk | Result, *, progress: bool | None = None) -> Callable[[AnySplit], AnyEncoded]:
    """A function that hears one split after the other through a trunk; see `encoded`."""
    source = base.path if isinstance(base, Result) else base if isinstance(base, Published) else Path(base)
    if source is None:
        raise TrainingError("the base run was kept in memory only: train it with a folder, or by `Plan.train`")
    weights = trunk_digest(source)
    code = digest(trunk_features, AUDIO[trunk_encoder(source)].make)
    trunk: list[nn.Module] = []  # read once, and only if a split is not there yet

    def encode(split: AnySplit) -> AnyEncoded:
        def build(place: Path) -> None:
            if not trunk:
                trunk.append(load_trunk(source))
            jobs = 1 if isinstance(source, Published) else None  # several blocks of a large model may not fit
            np.save(place / "features.npy", trunk_features(trunk[0], split, jobs=jobs, progress=progress))

        key = content_key([code, split.key, weights])
        features = np.load(cached_dir(KIND, key, build) / "features.npy", mmap_mode="r")
        own = {item.name: getattr(split, item.name) for item in fields(type(split))}
        return KINDS[type(split)](**own | _heard(split, np.asarray(features)) | {"key": key}, trunk=source)

    return encode


def _heard(split: AnySplit, features: np.ndarray) -> dict[str, Any]:
    """The fields of a split that its features, `(N, D)`, take the place of."""
    count, dim = features.shape
    if isinstance(split, SpeechSplit):
        return {"samples": features, "recordings": split.recordings.assign(start=range(count), length=dim)}
    return {"waveforms": features, "lengths": torch.full((count,), dim)}


def trunk_of(world: Data) -> Trunk | None:
    """The run or the encoder whose trunk encoded a world; None where it holds waveforms."""
    return getattr(world.train, "trunk", None)


def trunk_digest(trunk: Trunk) -> str:
    """What tells a trunk's weights from others: a hash of a run's best weights; of an encoder's name, options and,
    where its model is a folder, of the files there.

    Raises:
        DataNotFoundError: no finished run there.
    """
    if not isinstance(trunk, Published):
        return checkpoints.digest(_best(trunk))
    weights = local_weights(trunk.options)
    told = {name: str(value) for name, value in trunk.options.items() if name not in weights}
    return content_key([trunk.audio, told, trunk.seed, *weights.values()])


def trunk_encoder(trunk: Trunk) -> str:
    """The name of a trunk's audio encoder in `encoders.AUDIO`.

    Raises:
        DataNotFoundError: no finished run there.
    """
    return trunk.audio if isinstance(trunk, Published) else _recipe(trunk).audio


def local_weights(options: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The options whose value is a folder of a model's files on this disk → file name → hash of the file."""
    folders = {name: Path(value) for name, value in options.items() if isinstance(value, str | Path) and value}
    return {
        name: {
            path.name: _file_digest(path, path.stat().st_mtime_ns)
            for path in sorted(folder.iterdir())
            if path.is_file()
        }
        for name, folder in folders.items()
        if folder.is_dir()
    }


@lru_cache(maxsize=256)
def _file_digest(path: Path, changed: int) -> str:
    """A hash of a file, read again only where it has changed since."""
    return checkpoints.digest(path)


def on_features(world: Data) -> dict[str, Any]:
    """What a recipe needs to learn from an encoded world: `recipe("kcl", **on_features(world), epochs=3)`."""
    if trunk_of(world) is None:
        raise ValueError("this world holds waveforms: make features of it by `encoded`")
    return {"audio": "features", "encoder_options": {"audio_dim": world.train.dim}}


def load_trunk(trunk: Trunk) -> nn.Module:
    """The audio encoder of a finished run with its best weights, or a published one: without projection, in eval mode.

    Raises:
        DataNotFoundError, TrainingError: see `encoded`.
        UnknownNameError: no such encoder or option.
    """
    if isinstance(trunk, Published):
        return create_audio(trunk.audio, seed=trunk.seed, **trunk.options).eval()
    one = _recipe(trunk)
    model = create(one.audio, one.text, dim=one.dim, **one.encoder_options)
    return checkpoints.load_model(model, trunk).audio.eval()


def trunk_features(
    trunk: nn.Module, split: AnySplit, *, jobs: int | None = None, progress: bool | None = None
) -> np.ndarray:
    """Features of all clips of a split, `(N, D)` float32.

    jobs: blocks of clips at once on a CPU; default: one a core, each by one thread. With 1 a block has all threads.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trunk = trunk.to(device)

    @torch.no_grad()
    def block(start: int) -> np.ndarray:
        audio, lengths = check_audio(*split.audio(slice(start, start + BLOCK)))
        features = trunk(audio.to(device), lengths.to(device)).float().cpu().numpy()
        bar.update(len(features))
        return features

    with tqdm(total=len(split), desc=f"encoding {split.name}", unit="clip", disable=hidden(progress)) as bar:
        starts = range(0, len(split), BLOCK)
        parts = in_threads([partial(block, start) for start in starts], jobs=jobs if device.type == "cpu" else 1)
    return np.concatenate(parts)


def _recipe(folder: Path) -> Recipe:
    """The recipe of a finished run."""
    _best(folder)
    return from_json((folder / RECIPE).read_text(encoding="utf-8"))


def _best(folder: Path) -> Path:
    """The best weights of a finished run."""
    if not (folder / RECIPE).is_file():
        raise DataNotFoundError(f"no finished run at {folder}: train it to its end first")
    return checkpoints.best_file(folder)
