"""Dasheng, the audio encoder of GLAP: a masked autoencoder of 272,000 hours of audio."""

from __future__ import annotations

from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.spectrogram_vit import SpectrogramEncoder
from pullpush.encoders.vit import Size

MODEL = "mispeech/dasheng-base@d29a721c75b996ffa49e2a1f985349d191a4ae5e"
SIZES = {
    "mispeech/dasheng-base": Size(768, 12, 12),
    "mispeech/dasheng-0.6B": Size(1280, 32, 16),
    "mispeech/dasheng-1.2B": Size(1536, 40, 24),
}
PATCH, COLUMNS = (64, 4), 252  # all bands by 40 ms


class Dasheng(SpectrogramEncoder):
    """Dasheng on 64 mel bands at 16 kHz, averaged over the clip; of longer clips windows of 10 s are averaged.

    Args:
        model: a name on the hub, a folder, a file of the authors', or a `Size` for random weights.
        frozen: keep the weights.
        pretrained: take the published weights; else random ones in the same architecture.

    >>> import torch
    >>> Dasheng(model=Size(8, 1, 2))(torch.zeros(1, 16_000)).shape
    torch.Size([1, 8])
    """

    sizes, patch, columns = SIZES, PATCH, COLUMNS

    def __init__(self, *, model: str | Size = MODEL, frozen: bool = False, pretrained: bool = True) -> None:
        super().__init__(model=model, frozen=frozen, pretrained=pretrained)


CARD = AudioEncoderCard(
    name="dasheng",
    make=Dasheng,
    title="Dasheng",
    about="A masked autoencoder of general audio, on windows of 10 s.",
    source="Dinkel et al. 2024, Scaling up masked audio encoder learning for general audio classification",
    citation="dasheng",
    licence="Apache-2.0",
    weights=f"hub {MODEL}",
    pretrained=True,
    probe=lambda: {"model": Size(16, 2, 2)},
)
