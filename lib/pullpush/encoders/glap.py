"""GLAP as a whole (Dasheng and SONAR), by its publisher's code, where the reader asks for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pullpush.encoders.huggingface import by_length, split_rows
from pullpush.encoders.interface import SAMPLE_RATE
from pullpush.encoders.published import ModelCard, PublishedModel
from pullpush.encoders.remote_code import remote_model
from pullpush.encoders.sonar import flores_codes
from pullpush.errors import unknown

SCALE = 100  # of GLAP's scores


class GLAP(PublishedModel):
    """GLAP at 16 kHz on windows of 10 s, whose embeddings are averaged, with texts in the languages of SONAR.

    Its code has `encode_audio(audio)` and `encode_text(texts, device=…, source_lang=…)`.

    Args:
        model: a folder, or "mispeech/GLAP@COMMIT" with the commit whose code you have read.
        trust_remote_code: run that code.
    """

    def __init__(self, *, model: str = "mispeech/GLAP", trust_remote_code: bool = False) -> None:
        network = remote_model(model, trust_remote_code=trust_remote_code)
        super().__init__(network, tau=1 / SCALE, longest=10 * SAMPLE_RATE)
        self.codes = flores_codes()

    def _windows(self, audio: Tensor, lengths: Tensor) -> Tensor:
        clips = split_rows(audio, lengths)  # clips of one length at a time: its mean is over padding, too
        return by_length(lambda same: self.network.encode_audio(torch.stack(same)), clips)

    def _texts(self, texts: list[str], languages: Sequence[str] | None) -> Tensor:
        languages = ["eng"] * len(texts) if languages is None else list(languages)
        rows = []
        for text, language in zip(texts, languages, strict=True):
            if language not in self.codes:
                raise unknown("language", language, self.codes)
            rows.append(self.network.encode_text([text], device=self.device, source_lang=self.codes[language]))
        return torch.cat(rows)


CARD = ModelCard(
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
)
