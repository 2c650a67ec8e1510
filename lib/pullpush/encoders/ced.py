"""CED, the audio encoder of ML-CLAP, SupCLAP and ATRI: a vision transformer distilled on AudioSet."""

from __future__ import annotations

from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.spectrogram_vit import SpectrogramEncoder
from pullpush.encoders.vit import Size

MODEL = "mispeech/ced-base@db3e14a8db4c21b56b165261c39649741a900e7f"
SIZES = {
    "mispeech/ced-tiny": Size(192, 12, 3),
    "mispeech/ced-mini": Size(256, 12, 4),
    "mispeech/ced-small": Size(384, 12, 6),
    "mispeech/ced-base": Size(768, 12, 12),
}
PATCH, COLUMNS = (16, 16), 63


class CED(SpectrogramEncoder):
    """CED on 64 mel bands at 16 kHz, averaged over the clip's patches; of longer clips windows of 10 s are averaged.

    Args:
        model: a name on the hub, a folder, a file of the authors', or a `Size` for random weights.
        frozen: keep the weights.
        pretrained: take the published weights; else random ones in the same architecture.

    >>> import torch
    >>> CED(model=Size(8, 1, 2))(torch.zeros(1, 16_000)).shape
    torch.Size([1, 8])
    """

    sizes, patch, columns = SIZES, PATCH, COLUMNS

    def __init__(self, *, model: str | Size = MODEL, frozen: bool = False, pretrained: bool = True) -> None:
        super().__init__(model=model, frozen=frozen, pretrained=pretrained)


CARD = AudioEncoderCard(
    name="ced",
    make=CED,
    title="CED",
    about="A vision transformer distilled on AudioSet, on windows of 10 s.",
    source="Dinkel et al. 2024, CED: consistent ensemble distillation for audio tagging",
    citation="ced",
    licence="Apache-2.0",
    weights=f"hub {MODEL}",
    pretrained=True,
    probe=lambda: {"model": Size(16, 2, 2)},
)
