"""Audio trunks: the encoder of a finished run, or one as it is published, without a projection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pullpush.cache import content_key
from pullpush.encoders import AudioEncoder, create, create_audio
from pullpush.errors import DataNotFoundError
from pullpush.training import checkpoints
from pullpush.training.loop import RECIPE
from pullpush.training.recipes import Recipe, from_json


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


def trunk_digest(trunk: Trunk) -> str:
    """What tells a trunk's weights from others: a hash of a run's best weights; of an encoder's name, options and,
    where its model is a folder, of the files there.

    Raises:
        DataNotFoundError: no finished run there.
    """
    if not isinstance(trunk, Published):
        return checkpoints.digest(_best(trunk))
    weights = local_weights(trunk.options)
    options = {name: str(value) for name, value in trunk.options.items() if name not in weights}
    return content_key([trunk.audio, options, trunk.seed, *weights.values()])


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


def load_trunk(trunk: Trunk) -> AudioEncoder:
    """The audio encoder of a finished run with its best weights, or a published one: without projection, in eval mode.

    Raises:
        DataNotFoundError, TrainingError: see `encoded`.
        UnknownNameError: no such encoder or option.
    """
    if isinstance(trunk, Published):
        return create_audio(trunk.audio, seed=trunk.seed, **trunk.options).eval()
    recipe = _recipe(trunk)
    model = create(recipe.audio, recipe.text, dim=recipe.dim, **recipe.encoder_options)
    return checkpoints.load_model(model, trunk).audio.eval()


def _recipe(folder: Path) -> Recipe:
    """The recipe of a finished run."""
    _best(folder)
    return from_json((folder / RECIPE).read_text(encoding="utf-8"))


def _best(folder: Path) -> Path:
    """The best weights of a finished run."""
    if not (folder / RECIPE).is_file():
        raise DataNotFoundError(f"no finished run at {folder}: train it to its end first")
    return checkpoints.best_file(folder)
