"""A CLAP of open_clip's, where the reader has that library in a release with audio towers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from pullpush.encoders.huggingface import fetch, split_rows
from pullpush.encoders.published import ModelCard, PublishedModel
from pullpush.errors import PullPushError


class OpenCLIP(PublishedModel):
    """A CLAP (HTSAT or Whisper) of open_clip's, on its own window, by its own front end.

    open_clip is installed by the reader: it is no dependency, since 3.3.0, the newest release, has no audio towers.

    Args:
        model: a name as `open_clip.create_model` takes it, such as "hf-hub:owner/name".
    """

    def __init__(self, *, model: str = "") -> None:
        if not model:
            raise PullPushError("open_clip has many models: name one, open_clip:hf-hub:owner/name")
        library, front = _library()
        network = fetch(lambda: library.create_model(model), model).eval()
        config = network.audio.cfg
        scale = float(network.logit_scale.detach().exp())
        super().__init__(
            network, tau=1 / scale, bias=_bias(network), sample_rate=config.sample_rate, longest=config.clip_samples
        )
        self.front = front.audio_transform_v2(config, is_train=False)
        self.tokenizer = library.get_tokenizer(model)

    def _windows(self, audio: Tensor, lengths: Tensor) -> Tensor:
        clips = [self.front((clip[None].cpu(), self.sample_rate)) for clip in split_rows(audio, lengths)]
        waves = torch.stack([clip["waveform"] for clip in clips]).to(self.device)
        longer = torch.tensor([clip["longer"] for clip in clips], device=self.device)
        return self.network.encode_audio({"waveform": waves, "longer": longer}, normalize=True)

    def _texts(self, texts: list[str], languages: Sequence[str] | None) -> Tensor:
        return self.network.encode_text(self.tokenizer(texts).to(self.device), normalize=True)


def _library() -> tuple[Any, Any]:
    try:
        return import_module("open_clip"), import_module("open_clip.audio.transform")
    except ImportError as error:
        raise PullPushError(
            f"this needs open_clip with audio towers ({error}): install its main branch, for releases have none yet"
        ) from error


def _bias(network: Any) -> float:
    return 0.0 if network.logit_bias is None else float(network.logit_bias.detach())


CARD = ModelCard(
    name="open_clip",
    make=OpenCLIP,
    title="open_clip",
    about="A CLAP of open_clip's, named by the reader.",
    source="Ilharco et al. 2021, OpenCLIP",
    licence="the model's own",
    weights="open_clip, by the reader's choice",
    sample_rate=48_000,
)
