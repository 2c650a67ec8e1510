"""Audio trunks: the encoder of a finished run, or one as it is published, without a projection."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pullpush.cache import content_key, digest
from pullpush.encoders import AudioEncoder, DualEncoder, create, create_audio
from pullpush.encoders.audio_transformer import PRETRAINED
from pullpush.encoders.features import require_split
from pullpush.errors import DataNotFoundError, TrainingError, check_known
from pullpush.golden import versions
from pullpush.training import checkpoints
from pullpush.training.components import of_audio
from pullpush.training.loop import RECIPE
from pullpush.training.recipes import Recipe, from_json

LEVELS = ("features", "lower")


@dataclass(frozen=True)
class FinishedRun:
    """The audio encoder of a finished run with its best weights, without projection; folder: of the run.

    level: what is kept of clips, see `Published`.

    Raises:
        DataNotFoundError: (all but `at`) there is no finished run.
    """

    folder: Path
    level = "features"

    def at(self, level: str) -> "FinishedRun":
        """The same trunk with another level.

        Raises:
            TrainingError: there is no such level of it.
        """
        if level != self.level:
            raise TrainingError(
                f"a run ({self.folder}) is kept as features alone, not {level!r}: take a Published(NAME)"
            )
        return self

    @property
    def encoder(self) -> str:
        """Its name in `encoders.AUDIO`."""
        return self._recipe.audio

    @property
    def parts(self) -> tuple[str, ...]:
        """The components that clips go through in it, as `golden.versions` takes them."""
        return of_audio(self.encoder, {})

    @property
    def digest(self) -> str:
        """What tells it from others: a hash of the run's best weights."""
        return digest(self._best)

    def load(self) -> AudioEncoder:
        """The encoder with its weights, without projection, in eval mode.

        Raises:
            DataNotFoundError, TrainingError: see `frozen.encoded`.
        """
        return self.model().audio.eval()

    def model(self) -> DualEncoder:
        """The whole model with its best weights; errors as of `load`."""
        recipe = self._recipe
        model = create(recipe.audio, recipe.text, dim=recipe.dim, **recipe.encoder_options)
        return checkpoints.load_model(model, self.folder)

    @property
    def _recipe(self) -> Recipe:
        return from_json((self._best.parent / RECIPE).read_text(encoding="utf-8"))

    @property
    def _best(self) -> Path:
        if not (self.folder / RECIPE).is_file():
            raise DataNotFoundError(f"no finished run at {self.folder}: train it to its end first")
        return checkpoints.best_file(self.folder)


@dataclass(frozen=True)
class Published:
    """An audio encoder as it is published, as a trunk that needs no run.

    audio: its name in `encoders.AUDIO`; options: its keyword arguments, such as model="/path/to/weights"; seed: of
    weights that are not published, as with pretrained=False; level: what is kept of clips: "features",
    what the encoder gives; "lower", the activations of its lower part, of an encoder that is made in two.

    Raises:
        UnknownNameError: no such level; "lower" of an encoder that is not made in two parts.

    >>> Published("clap").digest == Published("clap", {"frozen": True}).digest
    False
    """

    audio: str
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    level: str = "features"

    def __post_init__(self) -> None:
        check_known("level", self.level, LEVELS)
        if self.level == "lower":
            require_split(self.audio)

    def at(self, level: str) -> "Published":
        return replace(self, level=level)

    def __hash__(self) -> int:
        return hash((self.audio, repr(sorted(self.options.items())), self.seed, self.level))

    @property
    def encoder(self) -> str:
        return self.audio

    @property
    def parts(self) -> tuple[str, ...]:
        return of_audio(self.audio, self.options)

    @property
    def digest(self) -> str:
        weights = local_weights(self.options)
        options = {name: str(value) for name, value in self.options.items() if name not in weights}
        level = [self.level] if self.level != "features" else []
        return content_key([versions(*self.parts), self.audio, options, self.seed, *weights.values(), *level])

    def load(self) -> AudioEncoder:
        return create_audio(self.audio, seed=self.seed, **self.options).eval()


Trunk = FinishedRun | Published  # an audio encoder that clips go through once


def parts_of(trunks: Iterable[Trunk]) -> list[str]:
    """The components of several trunks, each once.

    >>> parts_of([Published("yamnet"), Published("yamnet", seed=1)])
    ['audio/yamnet']
    """
    return sorted({part for trunk in trunks for part in trunk.parts})


def as_trunk(base: Trunk | str | os.PathLike[str]) -> Trunk:
    """A trunk itself, or that of a run: of its folder, or of the `Result` that it gave."""
    return base if isinstance(base, Trunk) else FinishedRun(Path(base))


def local_weights(options: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The options whose value is a folder of a model's files on this disk, or a file → file name → hash of the file;
    and of weights that lie in the repository."""
    travelling = {
        name: {value: PRETRAINED[value]}
        for name, value in options.items()
        if isinstance(value, str) and value in PRETRAINED
    }
    places = {name: Path(value) for name, value in options.items() if isinstance(value, str | Path) and value}
    found = {name: sorted(place.iterdir()) if place.is_dir() else [place] for name, place in places.items()}
    hashes = {
        name: {path.name: _file_digest(path, path.stat().st_mtime_ns) for path in paths if path.is_file()}
        for name, paths in found.items()
    }
    return {name: files for name, files in hashes.items() if files or places[name].is_dir()} | travelling


@lru_cache(maxsize=256)
def _file_digest(path: Path, changed: int) -> str:
    """A hash of a file, read again only where it has changed since."""
    return digest(path)
