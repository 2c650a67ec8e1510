"""What stands in for an encoder: clips that were encoded before, whole or by a lower part; several encoders in one."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torchaudio.functional import resample

from pullpush.encoders.dual import create_audio
from pullpush.encoders.interface import AUDIO, AudioEncoder, AudioEncoderCard
from pullpush.encoders.pretrained import Pretrained
from pullpush.encoders.windows import zero_padding
from pullpush.errors import AudioError, unknown


class Features(AudioEncoder):
    """No encoder: clips that were encoded before, as `dim` numbers each, pass through."""

    sample_rate = None

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        if audio.shape[1] != self.dim:
            raise AudioError(f"expected clips as {self.dim} features each, got {audio.shape[1]} samples or features")
        return audio


class Upper(AudioEncoder):
    """The upper part of an encoder made in two parts, `of` with its options; clips come as activations of the lower
    one.

    `frozen.encoded(world, Published("yamnet", level="lower"))` makes them, `frozen.on_features` gives the options. It
    learns what the whole encoder with trainable="upper" does, but for the activations' rounding to float16.
    """

    sample_rate = None

    def __init__(self, *, of: str = "yamnet", options: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        require_split(of)
        self.encoder = AUDIO[of].make(**{**(options or {}), "trainable": "upper"})
        self.dim = self.encoder.dim

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, S)` activations of the lower part and `(B,)` how many are each clip's → `(B, dim)`."""
        if lengths is None:
            raise AudioError("activations need lengths (B,), how many of each row are the clip's")
        return self.encoder.upper(audio, lengths)


def require_split(name: str) -> None:
    """`UnknownNameError` unless an audio encoder is made in two parts, see `SplitAudioEncoder`; those that are are
    named.
    """
    if not AUDIO[name].split:
        raise unknown("audio encoder in two parts", name, (card.name for card in AUDIO.values() if card.split))


QUIETEST = 1e-6  # features whose root mean square is below this are divided by it instead: zero stays zero


class Several(AudioEncoder):
    """The features of several frozen encoders of waveforms, names in `AUDIO`, one after the other.

    Each member's features are divided by their root mean square over the clip's features, since the scales of members
    differ by a hundred times and the projection behind would hear the loudest alone. The encoder takes audio at the
    highest rate among its members'; those of a lower one hear it resampled. seed: of weights that are drawn.

    >>> both = Several(members=("yamnet", "speech_embedding"), pretrained=False)
    >>> both.dim, both.sample_rate, both(torch.zeros(2, 16_000)).shape
    (1216, 16000, torch.Size([2, 1216]))
    """

    def __init__(self, *, members: Sequence[str], pretrained: bool = True, seed: int = 0) -> None:
        super().__init__()
        if not members or any(AUDIO[name].sample_rate is None for name in members):
            raise ValueError(f"members must be encoders of waveforms, at least one, got {tuple(members)}")
        made = [_member(name, pretrained, seed) for name in members]
        self.members = nn.ModuleList(Pretrained(member, frozen=True) for member in made)
        self.dim = sum(member.dim for member in made)
        self.sample_rate = max(member.sample_rate or 0 for member in made)  # none is None, see above
        self.max_seconds = min((m.max_seconds for m in made if m.max_seconds is not None), default=None)

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` at `sample_rate`, `(B,)` samples → `(B, dim)`, without gradients."""
        audio, lengths = zero_padding(audio, lengths)
        return side_by_side([self._features(member, audio.float(), lengths) for member in self.members])

    def _features(self, member: Pretrained, audio: Tensor, lengths: Tensor) -> Tensor:
        """A member's features, `(B, its dim)` float32."""
        rate, its_rate = self.sample_rate, member.model.sample_rate
        if its_rate == rate:
            return member(audio, lengths).float()
        with torch.autocast(audio.device.type, enabled=False):
            resampled = resample(audio, rate, its_rate)
        return member(resampled, -(-lengths * its_rate // rate)).float()


def side_by_side(features: Sequence[Tensor]) -> Tensor:
    """Features of the same clips, `(B, D₁)`, `(B, D₂)`, …, of equal size one after the other, `(B, D₁ + D₂ + …)`.

    >>> side_by_side([torch.tensor([[3.0, 4.0]]), torch.tensor([[0.1]])]).square().mean().sqrt()
    tensor(1.)
    """
    sizes = [x.square().mean(dim=1, keepdim=True).sqrt() for x in features]
    return torch.cat([x / size.clamp(min=QUIETEST) for x, size in zip(features, sizes, strict=True)], dim=1)


def _member(name: str, pretrained: bool, seed: int) -> AudioEncoder:
    """An encoder by name, with the weights that are asked for."""
    choice = {"pretrained": pretrained} if "pretrained" in inspect.signature(AUDIO[name].make).parameters else {}
    return create_audio(name, seed=seed, **choice)


CARDS = (
    AudioEncoderCard(
        name="features",
        make=Features,
        title="features",
        about="Clips come as features of a frozen encoder and pass through unchanged.",
        source="ours",
        licence="MIT",
        frozen=True,
        sample_rate=None,
        probe=lambda: {"dim": 6912},
    ),
    AudioEncoderCard(
        name="upper",
        make=Upper,
        title="upper part",
        about="The upper part of an encoder on kept activations of its lower one.",
        source="ours",
        licence="that of the encoder",
        pretrained=True,
        sample_rate=None,
        probe=lambda: {"of": "sfx", "options": AUDIO["sfx"].small},
    ),
    AudioEncoderCard(
        name="several",
        make=Several,
        title="several encoders",
        about="Frozen encoders side by side, their features of equal size one after the other.",
        source="ours",
        licence="those of its members",
        weights="those of its members",
        frozen=True,
        probe=lambda: {"members": ("yamnet", "speech_embedding"), "pretrained": False},
    ),
)
