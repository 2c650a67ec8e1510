"""The upper part of an encoder whose lower part was heard before: what a laptop trains of a published encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from pullpush.encoders.cards import AUDIO, AudioEncoderCard
from pullpush.encoders.interface import AudioEncoder
from pullpush.errors import AudioError, unknown


class Upper(AudioEncoder):
    """The upper part of an encoder made in two parts; clips come as activations of the lower one.

    `frozen.encoded(world, Published("yamnet", level="lower"))` makes them, `frozen.on_features` gives the options. It
    learns what the whole encoder with trainable="upper" does, but for the activations' rounding to float16.

    Args:
        of: name of the encoder.
        options: its keyword arguments.

    Raises:
        UnknownNameError: no such encoder, or one that is not made in two parts.
    """

    sample_rate = None

    def __init__(self, *, of: str = "yamnet", options: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        require_split(of)
        self.encoder = AUDIO[of].make(**{**(options or {}), "trainable": "upper"})
        self.dim = self.encoder.dim

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, S)` activations of the lower part and `(B,)` how many are each clip's → `(B, dim)`.

        Raises:
            AudioError: no lengths: rows of activations are padded to the longest.
        """
        if lengths is None:
            raise AudioError("activations need lengths (B,), how many of each row are the clip's")
        return self.encoder.upper(audio, lengths)


def require_split(name: str) -> None:
    """Require an audio encoder that is made in two parts, see `SplitAudioEncoder`.

    Raises:
        UnknownNameError: no such encoder, or one in a single part; those in two are named.
    """
    if not AUDIO[name].split:
        raise unknown("audio encoder in two parts", name, (card.name for card in AUDIO.values() if card.split))


CARD = AudioEncoderCard(
    name="upper",
    make=Upper,
    title="upper part",
    about="The upper part of an encoder on kept activations of its lower one.",
    source="ours",
    licence="that of the encoder",
    pretrained=True,
    sample_rate=None,
    probe=lambda: {"of": "sfx", "options": AUDIO["sfx"].small},
)
