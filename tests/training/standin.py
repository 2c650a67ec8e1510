"""A source of clips and a model so small that training takes a fraction of a second."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

WORDS = ["bark", "ring", "hum", "tick", "drip", "roar"]


class TinyClips:
    """Clips that each sound like one of six tones, with noise; two captions in each language name the tone."""

    def __init__(self, count: int = 30, seed: int = 0, columns: Mapping[str, Sequence] | None = None) -> None:
        self.columns = columns or {}
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.arange(count) % len(WORDS)
        time = torch.arange(160) / 160
        tones = torch.sin(2 * torch.pi * (self.labels[:, None] + 1) * 5 * time)
        self.waves = tones + 0.3 * torch.randn(count, 160, generator=generator)
        self.lengths = torch.randint(100, 161, (count,), generator=generator)

    def __len__(self) -> int:
        return len(self.waves)

    def audio(self, index, *, sample_rate=None):
        rows = torch.atleast_1d(torch.as_tensor(index))
        lengths = self.lengths[rows]
        waves = self.waves[rows, : int(lengths.max())].clone()
        waves[torch.arange(waves.shape[1])[None] >= lengths[:, None]] = 0
        return waves, lengths

    def captions(self, language):
        return [[f"{language}: a {WORDS[label]}", f"{language}: {WORDS[label]} again"] for label in self.labels]


class TinyModel(nn.Module):
    """Two linear towers with dropout and batch normalisation, so that randomness and buffers matter."""

    sample_rate = None  # clips as they come

    def __init__(self, dim: int = 8, dropout: float = 0.1, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.audio = nn.Sequential(nn.Linear(160, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, dim))
            self.text = nn.Sequential(nn.Dropout(dropout), nn.Linear(64, dim))
        if not dropout:
            self.audio[1] = nn.Identity()

    def encode_audio(self, audio, lengths=None):
        return F.normalize(self.audio(F.pad(audio, (0, 160 - audio.shape[1])).to(self.audio[0].weight)), dim=1)

    def encode_text(self, texts, languages=None):
        counts = torch.stack([self.features(text) for text in texts])
        return F.normalize(self.text(counts.to(self.text[1].weight)), dim=1)

    @staticmethod
    def features(text):
        counts = torch.zeros(64)
        for first, second in pairwise(text):
            counts[(ord(first) * 31 + ord(second)) % 64] += 1
        return counts
