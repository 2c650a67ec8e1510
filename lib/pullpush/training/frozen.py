"""Losses compared on a frozen audio trunk: every clip is encoded once, and a run then takes seconds.

    fast = encoded(world, base)                             # base: a run on that world, or on another one
    trained(fast, recipe("infonce", **on_features(fast)))   # new projections on the base's features
    trained(fast, …, base=base.path)                        # the base's own projections go on

What is trained is the two projections; the audio trunk stays as the base left it, texts as their frozen encoder gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from pullpush.cache import cached_dir, content_key
from pullpush.data.world import Split, World
from pullpush.encoders import create
from pullpush.encoders.checks import check_audio
from pullpush.errors import DataNotFoundError, TrainingError
from pullpush.training import checkpoints
from pullpush.training.loop import RECIPE, Result, hidden
from pullpush.training.recipes import Recipe, from_json

FORMAT = 1  # raise when the same trunk gives other features than before
KIND = "features"
BLOCK = 64  # clips encoded at once


@dataclass(frozen=True)
class Encoded(Split):
    """A split whose clips are features: waveforms are `(N, D)` float32, memory-mapped, and all lengths D.

    trunk: folder of the run whose audio encoder they come from.
    """

    trunk: Path = field(kw_only=True)

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


def encoded(world: World, base: Path | Result, *, progress: bool | None = None) -> World:
    """The same world heard through the audio trunk of a finished run (all but its projection), in eval mode.

    Features are computed once for each split and weights of the base, and kept under `home()/features`. Captions,
    relevance, scenes and labels are the world's own. As they are, the features have a range that the base's projection
    fits, so that a run may start from it.

    Args:
        world: with waveforms.
        base: the run, or its folder.
        progress: show a bar while clips are encoded; default: in a terminal.

    Raises:
        DataNotFoundError: no finished run there.
        TrainingError: the run was not kept on disk, or its weights are of another model.
        ValueError: the world is encoded already.
        CacheError: the cache cannot be written.
    """
    if trunk_of(world) is not None:
        raise ValueError(f"this world is encoded by {trunk_of(world)} already: encode the one that load_world gave")
    folder = base.path if isinstance(base, Result) else Path(base)
    if folder is None:
        raise TrainingError("the base run was kept in memory only: train it with a folder, or with `trained`")
    source = checkpoints.digest(_best(folder))
    trunk: list[nn.Module] = []  # read once, and only if a split is not there yet

    def encode(split: Split) -> Encoded:
        def build(place: Path) -> None:
            if not trunk:
                trunk.append(load_trunk(folder))
            np.save(place / "features.npy", trunk_features(trunk[0], split, progress=progress))

        key = content_key([FORMAT, split.key, source])
        features = np.load(cached_dir(KIND, key, build) / "features.npy", mmap_mode="r")
        own = {item.name: getattr(split, item.name) for item in fields(Split)}
        lengths = torch.full((len(split),), features.shape[1])
        return Encoded(**own | {"waveforms": np.asarray(features), "lengths": lengths, "key": key}, trunk=folder)

    return world._replace(**{name: encode(getattr(world, name)) for name in ("train", "valid", "test", "singles")})


def trunk_of(world: World) -> Path | None:
    """The run whose trunk encoded a world; None where it holds waveforms."""
    return getattr(world.train, "trunk", None)


def on_features(world: World) -> dict[str, Any]:
    """What a recipe needs to learn from an encoded world: `recipe("kcl", **on_features(world), epochs=3)`."""
    if trunk_of(world) is None:
        raise ValueError("this world holds waveforms: make features of it by `encoded`")
    return {"audio": "features", "encoder_options": {"audio_dim": world.train.dim}}


def load_trunk(folder: Path) -> nn.Module:
    """The audio encoder of a finished run with its best weights, without projection, in eval mode.

    Raises:
        DataNotFoundError, TrainingError: see `encoded`.
    """
    _best(folder)
    one: Recipe = from_json((folder / RECIPE).read_text(encoding="utf-8"))
    model = create(one.audio, one.text, dim=one.dim, **one.encoder_options)
    return checkpoints.load_model(model, folder).audio.eval()


@torch.no_grad()
def trunk_features(trunk: nn.Module, split: Split, *, progress: bool | None = None) -> np.ndarray:
    """Features of all clips of a split, `(N, D)` float32."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trunk, parts = trunk.to(device), []
    with tqdm(total=len(split), desc=f"encoding {split.name}", unit="clip", disable=hidden(progress)) as bar:
        for start in range(0, len(split), BLOCK):
            audio, lengths = check_audio(*split.audio(slice(start, start + BLOCK)))
            parts.append(trunk(audio.to(device), lengths.to(device)).float().cpu().numpy())
            bar.update(len(audio))
    return np.concatenate(parts)


def _best(folder: Path) -> Path:
    """The best weights of a finished run."""
    if not (folder / RECIPE).is_file():
        raise DataNotFoundError(f"no finished run at {folder}: train it to its end first")
    return checkpoints.best_file(folder)
