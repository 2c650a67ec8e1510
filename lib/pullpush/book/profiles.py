"""How big a run is: one row a profile, read by every chapter.

A profile is data. A chapter asks for `profile("quick")` and uses its fields; nothing else depends on the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pullpush.errors import unknown

DEFAULT = "quick"


@dataclass(frozen=True)
class Profile:
    """The size of a run.

    Attributes:
        name: what `--profile` takes.
        world: keyword arguments of `pullpush.data.world.WorldConfig`: the bank and how many scenes.
        audio, text: names of the encoders.
        dim: dimensions of the joint space.
        epochs: passes over the training scenes.
        batch_size: pairs in a batch.
        seeds: how many training runs a comparison averages over.
        about: one line for `pullpush list`.
    """

    name: str
    world: Mapping[str, Any]
    audio: str
    text: str
    dim: int
    epochs: int
    batch_size: int
    seeds: int
    about: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "world", MappingProxyType(dict(self.world)))


PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        row.name: row
        for row in (
            Profile(
                name="smoke",
                world={"bank": "synthetic", "n_train": 64, "n_valid": 24, "n_test": 24},
                audio="cnn",
                text="hashed",
                dim=32,
                epochs=2,
                batch_size=16,
                seeds=2,
                about="synthetic sounds, no network, tiny models: does it run?",
            ),
            Profile(
                name="quick",
                world={"bank": "tuxpaint", "n_train": 3000, "n_valid": 500, "n_test": 500},
                audio="cnn",
                text="use",
                dim=256,
                epochs=4,
                batch_size=24,  # as in SupCLAP
                seeds=3,
                about="real recordings on a laptop: minutes a chapter on two cores",
            ),
            Profile(
                name="full",
                world={"bank": "tuxpaint", "n_train": 40_000, "n_valid": 2000, "n_test": 2000},
                audio="clap",
                text="roberta",
                dim=1024,
                epochs=10,  # as in SupCLAP
                batch_size=24,
                seeds=5,
                about="pretrained encoders, ten times the scenes: needs a GPU and the Hugging Face hub",
            ),
        )
    }
)


def profile(name: str = DEFAULT) -> Profile:
    """The profile called `name`.

    Raises:
        UnknownNameError: no such profile; the message gives the nearest names.
    """
    if name not in PROFILES:
        raise unknown("profile", name, PROFILES)
    return PROFILES[name]
