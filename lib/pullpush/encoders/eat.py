"""EAT, the Efficient Audio Transformer, by its publisher's code, where the reader asks for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.compliance.kaldi import fbank

from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.huggingface import Backbone, split_rows
from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoder
from pullpush.encoders.remote_code import remote_model
from pullpush.encoders.windows import over_windows

BANDS, FRAMES, FRAME, HOP = 128, 1024, 400, 160
CENTRE, SPREAD = -4.268, 4.569  # of AudioSet, as published


class EAT(AudioEncoder):
    """EAT at 16 kHz: its utterance token on a window of 1,024 frames (10.24 s), filled up as in its training.

    Its code has `extract_features(spectrogram)`, `(B, 1, 1024, 128)` → `(B, places, 768)`, the token first. Of longer
    clips windows are averaged.

    Args:
        model: a folder, or "worstchan/EAT-base_epoch30_pretrain@COMMIT" with the commit whose code you have read; or
            the network itself.
        frozen: keep the weights.
        pretrained: must be true: the architecture is in the code that comes with the weights.
        trust_remote_code: run that code.
    """

    def __init__(
        self,
        *,
        model: str | nn.Module = "worstchan/EAT-base_epoch30_pretrain",
        frozen: bool = False,
        pretrained: bool = True,
        trust_remote_code: bool = False,
    ) -> None:
        if not pretrained:
            raise ValueError("EAT comes with its weights alone: pretrained=False is not offered")
        super().__init__()
        network = remote_model(model, trust_remote_code=trust_remote_code) if isinstance(model, str) else model
        self.backbone = Backbone(network, frozen=frozen)
        self.dim = 768

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)`."""
        return over_windows(self._encode, audio.to(self.backbone.device), lengths, FRAME + (FRAMES - 1) * HOP)

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        mel = torch.stack([_spectrogram(clip) for clip in split_rows(audio, lengths)])[:, None]
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.backbone.frozen):
            return self.backbone.model.extract_features(mel)[:, 0]


def _spectrogram(clip: Tensor) -> Tensor:
    """`(T,)` → `(FRAMES, BANDS)`, zeros beyond the clip before it is scaled."""
    wave = F.pad(clip.float() - clip.float().mean(), (0, max(0, FRAME - len(clip))))[None]
    settings = {"htk_compat": True, "window_type": "hanning", "num_mel_bins": BANDS, "sample_frequency": SAMPLE_RATE}
    mel = fbank(wave, frame_shift=10, **settings)
    return (F.pad(mel, (0, 0, 0, FRAMES - len(mel))) - CENTRE) / (2 * SPREAD)


class Drawn(nn.Module):
    """Random weights in the place of the publisher's network."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(BANDS, 768)

    def extract_features(self, mel: Tensor) -> Tensor:
        """`(B, 1, FRAMES, BANDS)` → `(B, 1, 768)`."""
        return self.layer(mel.mean(dim=2))


def tiny() -> dict[str, Any]:
    """Options of one that needs none of the publisher's code."""
    return {"model": Drawn(), "pretrained": True}


CARD = AudioEncoderCard(
    name="eat",
    make=EAT,
    title="EAT",
    about="A transformer that predicts masked patches of AudioSet, on windows of 10 s; its code is the publisher's.",
    source="Chen et al. 2024, EAT: self-supervised pre-training with efficient audio transformer",
    citation="eat",
    licence="MIT",
    weights="hub worstchan/EAT-base_epoch30_pretrain, with its code",
    pretrained=True,
    probe=tiny,
)
