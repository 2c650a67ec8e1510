"""Cards of encoders, by which `create` finds them.

The file of an encoder ends in its card, and needs no other line anywhere:

    CARD = AudioEncoderCard(name="cnn", make=CNN, title="CNN", about="…", source="…", licence="MIT")
"""

from __future__ import annotations

from dataclasses import dataclass

from pullpush.catalogue import Card, Catalogue
from pullpush.encoders.interface import SAMPLE_RATE


@dataclass(frozen=True, kw_only=True)
class EncoderCard(Card):
    """What the cards of both kinds say; `make` takes options by keyword and gives a new encoder.

    licence: of the weights, or of the code where weights are drawn; weights: where published ones come from, empty
    where they are drawn; frozen: they never change; pretrained: published weights that training may change, so that
    `make` takes `model` (a name on the hub, a folder or a configuration), `pretrained` and `frozen`.
    """

    licence: str
    weights: str = ""
    frozen: bool = False
    pretrained: bool = False


@dataclass(frozen=True, kw_only=True)
class AudioEncoderCard(EncoderCard):
    """An audio encoder. sample_rate: in Hz, of what its network hears; `make` gives one that takes 16 kHz."""

    sample_rate: int = SAMPLE_RATE


@dataclass(frozen=True, kw_only=True)
class TextEncoderCard(EncoderCard):
    """A text encoder. languages: those that it was made for, in words."""

    languages: str = "all"


AUDIO: Catalogue[AudioEncoderCard] = Catalogue("pullpush.encoders", AudioEncoderCard, "audio encoder")
TEXT: Catalogue[TextEncoderCard] = Catalogue("pullpush.encoders", TextEncoderCard, "text encoder")
