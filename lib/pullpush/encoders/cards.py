"""Cards of encoders, by which `create` finds them.

The file of an encoder ends in its card, and needs no other line anywhere:

    CARD = AudioEncoderCard(name="cnn", make=CNN, title="CNN", about="…", source="…", licence="MIT")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pullpush.catalogue import Card, Catalogue
from pullpush.encoders.interface import SAMPLE_RATE
from pullpush.encoders.wheels import Wheel


@dataclass(frozen=True, kw_only=True)
class EncoderCard(Card):
    """What the cards of both kinds say; `make` takes options by keyword and gives a new encoder.

    licence: of the weights, or of the code where weights are drawn; weights: where published ones come from, empty
    where they are drawn; frozen: they never change; pretrained: published weights that training may change, so that
    `make` takes `pretrained` and `frozen`, and where they come from the hub `model` (a name there, a folder or a
    configuration); wheel: the package that they travel in, where they do (see wheels.py); probe: gives options of
    `make` for an encoder that is made and run in a moment, by which its golden file and tests know it.
    """

    licence: str
    weights: str = ""
    frozen: bool = False
    pretrained: bool = False
    wheel: Wheel | None = None
    probe: Callable[[], Mapping[str, Any]] = dict

    @property
    def small(self) -> dict[str, Any]:
        """What `probe` gives, with random weights where there is a choice.

        >>> AUDIO["sfx"].small
        {'pretrained': False, 'widths': (8, 8, 12, 16)}
        """
        drawn = {"pretrained": False} if "pretrained" in inspect.signature(self.make).parameters else {}
        return drawn | dict(self.probe())


@dataclass(frozen=True, kw_only=True)
class AudioEncoderCard(EncoderCard):
    """An audio encoder. sample_rate: in Hz, of the audio that it takes; None for what are no waveforms; split: it is a
    `SplitAudioEncoder`, whose `make` takes `trainable` ("all" or "upper").
    """

    sample_rate: int | None = SAMPLE_RATE
    split: bool = False


@dataclass(frozen=True, kw_only=True)
class TextEncoderCard(EncoderCard):
    """A text encoder. languages: those that it was made for, in words."""

    languages: str = "all"


AUDIO: Catalogue[AudioEncoderCard] = Catalogue("pullpush.encoders", AudioEncoderCard, "audio encoder")
TEXT: Catalogue[TextEncoderCard] = Catalogue("pullpush.encoders", TextEncoderCard, "text encoder")
