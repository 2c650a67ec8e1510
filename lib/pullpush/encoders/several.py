"""Frozen encoders side by side: a general one made of those that hear sounds, notes and words."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torchaudio.functional import resample

from pullpush.encoders.dual import create_audio
from pullpush.encoders.interface import AUDIO, AudioEncoder, AudioEncoderCard
from pullpush.encoders.pretrained import Pretrained
from pullpush.encoders.windows import zero_padding

QUIETEST = 1e-6  # features whose root mean square is below this are divided by it instead: zero stays zero


class Several(AudioEncoder):
    """The features of several frozen encoders, one after the other.

    Each member's features are divided by their root mean square over the clip's features, since the scales of members
    differ by a hundred times and the projection behind would hear the loudest alone. The encoder takes audio at the
    highest rate among its members'; those of a lower one hear it resampled.

    Args:
        members: names in `AUDIO` of encoders that take waveforms.
        pretrained: take the members' published weights; else random ones where a member has a choice.
        seed: of weights that are drawn.

    Raises:
        UnknownNameError: no such encoder.
        ValueError: no members, or one that takes no waveforms.

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
        return side_by_side([self._heard(member, audio.float(), lengths) for member in self.members])

    def _heard(self, member: Pretrained, audio: Tensor, lengths: Tensor) -> Tensor:
        """A member's features, `(B, its dim)` float32."""
        rate, own = self.sample_rate, member.model.sample_rate
        if own == rate:
            return member(audio, lengths).float()
        with torch.autocast(audio.device.type, enabled=False):
            heard = resample(audio, rate, own)
        return member(heard, -(-lengths * own // rate)).float()


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


CARD = AudioEncoderCard(
    name="several",
    make=Several,
    title="several encoders",
    about="Frozen encoders side by side, their features of equal size one after the other.",
    source="ours",
    licence="those of its members",
    weights="those of its members",
    frozen=True,
    probe=lambda: {"members": ("yamnet", "speech_embedding"), "pretrained": False},
)
