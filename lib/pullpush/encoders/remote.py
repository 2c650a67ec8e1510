"""Models by the code of their publishers, EAT's and GLAP's, where the reader asks for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.compliance.kaldi import fbank

from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoderCard
from pullpush.encoders.pretrained import ModelCard, Pretrained, PublishedModel, WindowedEncoder, from_hub
from pullpush.encoders.pretrained_text import flores_codes
from pullpush.encoders.wheels import pinned
from pullpush.encoders.windows import by_length, split_rows
from pullpush.errors import PullPushError, looked_up

EAT_DIM, EAT_BANDS, EAT_FRAMES, EAT_FRAME, EAT_HOP = 768, 128, 1024, 400, 160
EAT_CENTRE, EAT_SPREAD = -4.268, 4.569  # of AudioSet, as published
GLAP_SCALE = 100  # of GLAP's scores


def remote_model(model: str, *, trust_remote_code: bool) -> Any:
    """A model in a folder or on the hub, "owner/name@commit", by the code that lies beside its weights.

    Raises:
        PullPushError: the reader has not asked for it, or names no commit, without which the code could change.
    """
    import transformers

    name, commit = pinned(model)
    if not trust_remote_code:
        raise PullPushError(
            f"{name} comes with code of its publisher's, which would run on this machine: read it, and if you trust "
            "it, ask for it by trust_remote_code=True (--trust-remote-code on the command line)"
        )
    if not commit and not Path(model).exists():
        raise PullPushError(
            f"code of {name} is run at one commit alone: name the one that you have read, {name}@COMMIT"
        )
    return from_hub(transformers.AutoModel, model, trust_remote_code=True)


class EAT(WindowedEncoder):
    """EAT at 16 kHz: its utterance token on a window of 1,024 frames (10.24 s), filled up as in its training.

    Its code has `extract_features(spectrogram)`, `(B, 1, 1024, 128)` → `(B, places, 768)`, the token first. Of longer
    clips windows are averaged. model: a folder, or "worstchan/EAT-base_epoch30_pretrain@COMMIT" with the commit whose
    code you have read; or the network itself. The architecture is in the code that comes with the weights: there are no
    random ones.
    """

    dim, window = EAT_DIM, EAT_FRAME + (EAT_FRAMES - 1) * EAT_HOP

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
        self.network = Pretrained(network, frozen=frozen)

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        mel = torch.stack([_spectrogram(clip) for clip in split_rows(audio, lengths)])[:, None]
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.network.frozen):
            return self.network.model.extract_features(mel)[:, 0]


def _spectrogram(clip: Tensor) -> Tensor:
    """`(T,)` → `(EAT_FRAMES, EAT_BANDS)`, zeros beyond the clip before it is scaled."""
    wave = F.pad(clip.float() - clip.float().mean(), (0, max(0, EAT_FRAME - len(clip))))[None]
    settings = {"htk_compat": True, "window_type": "hanning", "sample_frequency": SAMPLE_RATE}
    mel = fbank(wave, frame_shift=10, num_mel_bins=EAT_BANDS, **settings)
    return (F.pad(mel, (0, 0, 0, EAT_FRAMES - len(mel))) - EAT_CENTRE) / (2 * EAT_SPREAD)


class Drawn(nn.Module):
    """Random weights in the place of EAT's network, for probes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(EAT_BANDS, EAT_DIM)

    def extract_features(self, mel: Tensor) -> Tensor:
        """`(B, 1, EAT_FRAMES, EAT_BANDS)` → `(B, 1, EAT_DIM)`."""
        return self.layer(mel.mean(dim=2))


class GLAP(PublishedModel):
    """GLAP (Dasheng and SONAR) at 16 kHz on windows of 10 s, whose embeddings are averaged; texts in SONAR's languages.

    Its code has `encode_audio(audio)` and `encode_text(texts, device=…, source_lang=…)`. model: a folder, or
    "mispeech/GLAP@COMMIT" with the commit whose code you have read.
    """

    def __init__(self, *, model: str = "mispeech/GLAP", trust_remote_code: bool = False) -> None:
        network = remote_model(model, trust_remote_code=trust_remote_code)
        super().__init__(network, tau=1 / GLAP_SCALE, longest=10 * SAMPLE_RATE)

    def _windows(self, audio: Tensor, lengths: Tensor) -> Tensor:
        clips = split_rows(audio, lengths)  # clips of one length at a time: its mean is over padding, too
        return by_length(lambda same: self.network.encode_audio(torch.stack(same)), clips)

    def _texts(self, texts: list[str], languages: Sequence[str] | None) -> Tensor:
        codes = [looked_up("language", each, flores_codes()) for each in languages or ["eng"] * len(texts)]
        encode, device = self.network.encode_text, self.device
        return torch.cat([encode([one], device=device, source_lang=c) for one, c in zip(texts, codes, strict=True)])


CARDS = (
    AudioEncoderCard(
        name="eat",
        make=EAT,
        title="EAT",
        about="A transformer that predicts masked patches of AudioSet, on windows of 10 s; its code is the "
        "publisher's.",
        source="Chen et al. 2024, EAT: self-supervised pre-training with efficient audio transformer",
        citation="eat",
        licence="MIT",
        weights="hub worstchan/EAT-base_epoch30_pretrain, with its code",
        pretrained=True,
        probe=lambda: {"model": Drawn(), "pretrained": True},
    ),
    ModelCard(
        name="glap",
        make=GLAP,
        title="GLAP",
        about="Dasheng and SONAR, trained on sound, music and speech in many languages.",
        source="Dinkel et al. 2025, GLAP: general contrastive audio–text pretraining across domains and languages",
        citation="glap",
        licence="Apache-2.0",
        weights="hub mispeech/GLAP, with its code",
        remote=True,
        languages="200",
    ),
)
