"""The papers' encoders in their own architectures with random weights, on a device, and batches of random content."""

from dataclasses import replace

import numpy as np
import torch
from paper_models import Sizes, batch_of, text_encoder

from pullpush.data.batches import Batch
from pullpush.encoders.attention import Size
from pullpush.encoders.dual import DualEncoder
from pullpush.encoders.spectrogram_vit import CED
from pullpush.training.recipes import Recipe

QUICK = Sizes((8, 1, 2), (8, 1, 2, 16), 50, 8, 0.25, (3, 5, 6), ("eng", "fra"))


def sizes_of(is_quick: bool) -> Sizes:
    return QUICK if is_quick else Sizes()


def dual_encoder(sizes: Sizes, device: str) -> DualEncoder:
    """CED and SONAR's text encoder, both trained, with projections into the joint space."""
    with torch.device(device):  # a billion random numbers take a CPU long
        text = text_encoder(sizes, frozen=False)
    audio = CED(model=Size(*sizes.audio))  # its constants are made on the CPU
    return DualEncoder(audio, text, dim=sizes.dim).to(device).train()


def random_batch(sizes: Sizes, one: Recipe, rng: np.random.Generator) -> Batch:
    """Noise, and captions of random words in the lengths of the papers'."""
    batch = batch_of(sizes, one)

    def drawn(texts: list[str | None]) -> list[str | None]:
        numbers = (rng.integers(10**9, size=len(str(text).split())) for text in texts)
        return [" ".join(f"w{number}" for number in row) for row in numbers]

    audio = torch.from_numpy(0.1 * rng.standard_normal(batch.audio.shape, np.float32))
    return replace(batch, audio=audio, texts=drawn(batch.texts), parallel=tuple(map(drawn, batch.parallel)))
