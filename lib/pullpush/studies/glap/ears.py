"""The frozen encoders that chapter 5 hears through, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from pullpush.cache import content_key
from pullpush.data.clips import Clips, World
from pullpush.data.mixture import Mixed
from pullpush.encoders.features import side_by_side
from pullpush.training.frozen import Encoded, encoded
from pullpush.training.trunk import Published

SEVERAL_EARS = ("yamnet", "speech_embedding")
OBJECTIVES = ("tagging", "transcription", "masked-prediction", "masked-reconstruction", "untrained")
EARS: Mapping[str, Published] = {
    "yamnet": Published("yamnet"),
    "yamnet upper": Published("yamnet", level="lower"),
    "speech_embedding": Published("speech_embedding"),
    "sfx": Published("sfx"),
    "voice": Published("voice"),
    "pitch": Published("pitch"),
    "random": Published("yamnet", {"pretrained": False}, seed=1),
    "several": Published("several", {"members": SEVERAL_EARS}),
    **{name: Published("audio_transformer", {"weights": None if name == "untrained" else name}) for name in OBJECTIVES},
}


def heard(world: World, trunk: Published) -> World:
    """A world heard through a trunk; of `several`, what is kept of each member is put together and nothing heard twice.

    Raises:
        ValueError, DataNotFoundError, CacheError: see `encoded`.
    """
    options = dict(trunk.options)
    members = options.pop("members", ())
    if not members:
        return encoded(world, trunk)
    worlds = [encoded(world, Published(name, options)) for name in members]
    splits = {name: _together([each.splits[name] for each in worlds]) for name in world.splits}
    return replace(world, splits=splits, trunk=trunk)


def _together(heard: Sequence[Clips]) -> Clips:
    """Clips that several encoders heard, as clips with the features of all of them."""
    first = heard[0]
    if isinstance(first, Mixed):
        sources = zip(*(clips.sources for clips in heard), strict=True)  # pyrefly: ignore[missing-attribute]
        return replace(first, sources=tuple(_together(source) for source in sources))
    parts = [torch.from_numpy(np.array(clips.features)) for clips in heard]  # pyrefly: ignore[missing-attribute]
    features = side_by_side(parts).numpy()
    key = content_key([features.tobytes(), first.clips.key])  # pyrefly: ignore[missing-attribute]
    return Encoded(first.clips, features, key)  # pyrefly: ignore[missing-attribute]
