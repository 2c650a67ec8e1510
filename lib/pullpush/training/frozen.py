"""Losses compared on a frozen audio trunk: every clip is encoded once, and a run then takes seconds.

    fast = encoded(world, base)                             # base: a run on that world, or on another one
    Plan(fast, recipe("infonce", **on_features(fast))).train()  # new projections on the base's features
    Plan(fast, …, base=base.path).train()                       # the base's own projections go on
    encoded(world, Published("clap"))                       # or an encoder as it is published: no run needed
    encoded(world, Published("yamnet", level="lower"))      # or its lower part alone: its upper part is trained, too

What is trained is the two projections, and of "lower" the encoder's upper part; the rest of the audio trunk stays as
the base left it, texts as their frozen encoder gives.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from tqdm.auto import tqdm

from pullpush.cache import bytes_key, cached_dir, content_key
from pullpush.data.clips import Clips, Index, Splits, World
from pullpush.data.mixture import Mixed
from pullpush.data.store import padded, row_numbers
from pullpush.encoders import AUDIO, AudioEncoder
from pullpush.encoders.features import side_by_side
from pullpush.encoders.windows import check_audio, check_seconds
from pullpush.errors import AudioError, TrainingError
from pullpush.golden import versions
from pullpush.parallel import in_threads
from pullpush.progress import hidden
from pullpush.training.trunk import Published, Trunk, as_trunk

KIND = "features"
BLOCK = 64  # clips encoded at once
GROUP = 16  # blocks in memory before they are written
T = TypeVar("T")
Base = Trunk | str | os.PathLike[str]  # a trunk, or a run: its folder or its `Result`


def encoded(world: World, base: Base, *, level: str | None = None, progress: bool | None = None) -> World:
    """The same world heard through the audio trunk of a finished run (all but its projection), in eval mode.

    Features are computed once for each split, when it is first asked for, and weights of the base, and kept under
    `home()/features`. Captions, relevance, scenes and labels are the world's own. As they are, the features have a
    range that the base's projection fits, so that a run may start from it.

    Args:
        world: with waveforms.
        base: the run, or its folder; or a published encoder.
        level: "features", what the encoder gives; "lower", the activations of its lower part, in float16, of a
            published encoder that is made in two parts; default: the trunk's own, "features".
        progress: show a bar while clips are encoded; default: in a terminal.

    Raises:
        DataNotFoundError: no finished run there, or the published weights are not there.
        TrainingError: the run was not kept on disk, or its weights are of another model; "lower" of a run; activations
            that float16 does not hold.
        UnknownNameError: "lower" of an encoder that is not made in two parts.
        ValueError: the world is encoded already.
        CacheError: the cache cannot be written.
    """
    if world.trunk is not None:
        raise ValueError(f"this world is encoded by {world.trunk} already: encode the one that load_world gave")
    trunk = as_trunk(base)
    trunk = trunk.at(level or trunk.level)
    encode = splits_encoder(trunk, progress=progress)
    splits = Splits({name: lambda name=name: encode(world.split(name)) for name in world.splits})
    return replace(world, splits=splits, trunk=trunk)


def splits_encoder(base: Base, *, progress: bool | None = None) -> Callable[[Clips], Clips]:
    """A function that hears one split after the other through a trunk; see `encoded`.

    Every source of a mixture is encoded by itself, and by each member of `several` encoders, so that what is stored of
    them is shared.
    """
    trunk = as_trunk(base)
    if isinstance(trunk, Published) and "members" in trunk.options:
        options = {name: value for name, value in trunk.options.items() if name != "members"}
        members = [
            splits_encoder(Published(name, options, trunk.seed), progress=progress) for name in trunk.options["members"]
        ]
        return lambda clips: _together([encode(clips) for encode in members])
    card, write = AUDIO[trunk.encoder], WRITE[trunk.level]
    # Several blocks of a large model may not fit; what travels in a package or is trained here is small.
    jobs = 1 if card.pretrained and card.wheel is None else None
    loaded: list[AudioEncoder] = []  # read once, and only if a split is not there yet

    def encode(clips: Clips) -> Clips:
        if isinstance(clips, Mixed):
            return clips.each(encode)

        def build(place: Path) -> None:
            if not loaded:
                loaded.append(trunk.load())
            write(place, loaded[0], clips, jobs=jobs, progress=progress)

        key = content_key([versions("training/features", *trunk.parts), clips.key, trunk.digest])
        folder = cached_dir(KIND, key, build)
        return read(clips, folder, content_key([bytes_key(folder), clips.key]))

    return encode


def _together(members: Sequence[Any]) -> Any:
    """The same clips, with the features of several encoders side by side."""
    first = members[0]
    if isinstance(first, Mixed):
        sources = zip(*(clips.sources for clips in members), strict=True)
        return replace(first, sources=tuple(_together(source) for source in sources))
    features = side_by_side([torch.from_numpy(np.array(clips.features)) for clips in members]).numpy()
    return Encoded(first.clips, features, content_key([features.tobytes(), first.clips.key]))


def on_features(world: World) -> dict[str, Any]:
    """What a recipe needs to learn from an encoded world: `recipe("kcl", **on_features(world), epochs=3)`."""
    trunk = world.trunk
    if trunk is None:
        raise ValueError("this world holds waveforms: make features of it by `encoded`")
    if isinstance(trunk, Published) and trunk.level == "lower":
        return {"audio": "upper", "encoder_options": {"audio_of": trunk.audio, "audio_options": dict(trunk.options)}}
    return {"audio": "features", "encoder_options": {"audio_dim": world.train.audio(0)[0].shape[1]}}


# ---------------------------------------------------------------- clips whose audio is what an encoder made of it


def _of_clips(name: str) -> Any:
    """What encoded clips share with those that were encoded: data as they are, methods bound to them."""
    return property(lambda encoded: getattr(encoded.clips, name))


@dataclass(frozen=True, eq=False)
class Encoded:
    """Clips whose audio is what an encoder made of it; all else is the clips' own (see `data.clips.Clips`).

    clips: what was heard; features: `(N, D)` float32, memory-mapped; key: names the clips and features, both by their
    bytes; bounds: `(N, 2)` int64, where features are the activations of the encoder's lower part, as many a clip as it
    is long, all float16 in one row: where each clip's begin and end.

    >>> from pullpush.data.scenes.world import WorldConfig, load_world
    >>> world = load_world(WorldConfig("synthetic", n_train=2, n_valid=2, n_test=2, n_single_per_event=1))
    >>> Encoded(world.test, np.ones((2, 3), np.float32)).audio(0)
    (tensor([[1., 1., 1.]]), tensor([3]))
    >>> Encoded(world.test, np.ones(3, np.float16), bounds=np.array([[0, 2], [2, 3]])).audio([0, 1])
    (tensor([[1., 1.],
            [1., 0.]]), tensor([2, 1]))
    """

    clips: Clips
    features: np.ndarray = field(repr=False)
    key: str = ""
    bounds: np.ndarray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        of_clips, name = (self.features, "features") if self.bounds is None else (self.bounds, "bounds")
        if of_clips.ndim != 2 or len(of_clips) != len(self.clips):
            raise ValueError(f"{len(self.clips)} clips need {name} of as many rows, got {of_clips.shape}")

    name = _of_clips("name")
    graded = _of_clips("graded")
    columns = _of_clips("columns")
    labels = _of_clips("labels")
    captions = _of_clips("captions")
    prompts = _of_clips("prompts")
    relevance = _of_clips("relevance")

    def __len__(self) -> int:
        return len(self.clips)

    @property
    def dim(self) -> int:
        """D, the size of a clip's features."""
        return self.features.shape[1]

    @property
    def lengths(self) -> Tensor:
        """`(N,)` int64, numbers in each clip's row."""
        if self.bounds is None:
            return torch.full((len(self),), self.dim)
        return torch.from_numpy(self.bounds[:, 1] - self.bounds[:, 0])

    def audio(self, index: Index, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        """What replaces the audio of some clips, `(B, T)` float32, zero beyond each length, and the lengths `(B,)`.

        Raises:
            AudioError: a sample rate was asked for, which these have none of.
        """
        if sample_rate is not None:
            raise AudioError(
                f"features have no sample rate, got {sample_rate}: ask the clips that were encoded, or take an audio "
                "encoder for features (see on_features)"
            )
        rows = row_numbers(index, len(self))
        if self.bounds is None:
            return torch.from_numpy(self.features[rows]), torch.full((len(rows),), self.dim)  # not the cache: a copy
        parts = [torch.from_numpy(self.features[start:stop].astype(np.float32)) for start, stop in self.bounds[rows]]
        return padded(parts)

    def select(self, rows: Sequence[int], *, name: str | None = None) -> "Encoded":
        """Some of the clips with what replaces their audio."""
        part, chosen = self.clips.select(rows, name=name), row_numbers(rows, len(self))
        key = content_key([self.key, part.key])
        if self.bounds is None:
            return Encoded(part, self.features[chosen], key)
        return Encoded(part, self.features, key, self.bounds[chosen])

    def head(self, n: int) -> "Encoded":
        """The first `n` clips."""
        return self.select(range(min(n, len(self))))


def write_features(place: Path, trunk: AudioEncoder, clips: Clips, **options: Any) -> None:
    """Features of all clips, as a file of a folder; options: of `blocks`."""

    def encode_block(audio: Tensor, lengths: Tensor) -> np.ndarray:
        return trunk(audio, lengths).float().cpu().numpy()

    np.save(place / "features.npy", np.concatenate(list(blocks(trunk, clips, encode_block, **options))))


def write_activations(place: Path, trunk: AudioEncoder, clips: Clips, **options: Any) -> None:
    """Activations of the trunk's lower part, as files of a folder; options: of `blocks`.

    Raises:
        TrainingError: some are beyond float16.
    """

    def encode_block(audio: Tensor, lengths: Tensor) -> list[np.ndarray]:
        values, sizes = trunk.lower(audio, lengths)
        values = values.half().cpu()
        if not values.isfinite().all():
            raise TrainingError(
                f"activations of {type(trunk).__name__} for {clips.name} clips are not finite in half precision "
                "(NaN, or beyond 65504): train the encoder whole on the clips themselves"
            )
        return [row[:size].numpy() for row, size in zip(values, sizes.tolist(), strict=True)]

    stops = [0]
    with open(place / "values.f16", "wb") as file:  # plain writes: a full disk would kill a writable memory map
        for block in blocks(trunk, clips, encode_block, **options):
            for values in block:
                file.write(values.astype("<f2").tobytes())
                stops.append(stops[-1] + len(values))
    np.save(place / "stops.npy", np.array(stops, dtype=np.int64))


WRITE = {"features": write_features, "lower": write_activations}  # what is kept of clips, by level


def read(clips: Clips, folder: Path, key: str) -> Encoded:
    """What either of these wrote of the clips."""
    if (folder / "features.npy").exists():
        return Encoded(clips, np.asarray(np.load(folder / "features.npy", mmap_mode="r")), key)
    stops = np.load(folder / "stops.npy")
    values = np.memmap(folder / "values.f16", dtype="<f2", mode="r")
    return Encoded(clips, values, key, np.stack([stops[:-1], stops[1:]], axis=1))


def blocks(
    trunk: AudioEncoder,
    clips: Clips,
    encode_block: Callable[[Tensor, Tensor], T],
    *,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Iterator[T]:
    """What `encode_block` makes of `BLOCK` clips at a time, in their order.

    encode_block: audio `(B, T)` at the trunk's rate and lengths `(B,)`, on its device, without gradients; jobs: blocks
    at once on a CPU; default: one a core, each by one thread. With 1 a block has all threads.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trunk.to(device)

    @torch.no_grad()
    def block(start: int) -> T:
        audio, lengths = check_audio(*clips.audio(slice(start, start + BLOCK), sample_rate=trunk.sample_rate))
        check_seconds(lengths, trunk)
        found = encode_block(audio.to(device), lengths.to(device))
        bar.update(len(lengths))
        return found

    with tqdm(total=len(clips), desc=f"encoding {clips.name}", unit="clip", disable=hidden(progress)) as bar:
        starts = range(0, len(clips), BLOCK)
        for first in range(0, len(starts), GROUP):
            calls = [partial(block, start) for start in starts[first : first + GROUP]]
            yield from in_threads(calls, jobs=jobs if device.type == "cpu" else 1)
