"""Small transformers over log-mel spectrograms: one trained from scratch, one that was pretrained in four ways.

What published encoders differ in is both how and on what they were pretrained: CED and BEATs name the sounds of
AudioSet, Whisper writes down 680,000 hours of speech, WavLM predicts masked units of 94,000 hours of it, Dasheng fills
in masked spectrograms of 272,000 hours of everything. The weights of `AudioTransformer` had the same audio, the same
number of clips, the same optimiser and the same initial weights, and differ in the objective alone.
`benchmarks/pretraining` makes them, `encoders/weights/*.json` says from what and how well.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.cache import digest
from pullpush.encoders.attention import EPSILON, Block, sinusoids, transformer_layers
from pullpush.encoders.frontend import LogMel
from pullpush.encoders.interface import AudioEncoder, AudioEncoderCard
from pullpush.encoders.pretrained import Pretrained
from pullpush.encoders.wheels import fill, read_tensors
from pullpush.encoders.windows import masked_mean
from pullpush.errors import WeightsError, unknown

MELS, FRAMES = 64, 4  # bands and frames of a patch: 40 ms, as in Dasheng
PATCH = MELS * FRAMES
WEIGHTS = Path(__file__).parent / "weights"
# Which weights lie in the repository, by their checksums, which name what is kept of clips that they heard.
PRETRAINED = {
    "tagging": "97ce9297774cd97d3abee14b3d8e4a76bbffb2b6889aa0fc76b83edc6c8b3647",
    "transcription": "73b6071082c62faa88b43ec842ca78a8638dc46aaff965371cddfa7165846d7e",
    "masked-prediction": "b23937b918cd0dc1ba607e507f200b85aee841ab995f12f62a07505efbdb42c0",
    "masked-reconstruction": "e730fca37ad5c06dcc3f9dbe9815757911c806abab3ce19d11555a4c85548ebc",
}


class SpectrogramTransformer(AudioEncoder):
    """A small audio spectrogram transformer: square patches of the log-mel spectrogram, self-attention, mean.

    width: of a patch's vector, and of the features; patch: bands and frames in a patch; spec_augment: blank parts of
    the spectrogram in training mode.
    """

    def __init__(
        self,
        *,
        width: int = 128,
        layers: int = 4,
        heads: int = 4,
        patch: int = 16,
        dropout: float = 0.0,
        spec_augment: bool = False,
    ) -> None:
        super().__init__()
        self.frontend = LogMel(spec_augment=spec_augment)
        self.patch, self.dim = patch, width
        self.embed = nn.Conv2d(1, width, patch, stride=patch)
        rows = -(-self.frontend.mels // patch)
        self.row = nn.Parameter(torch.randn(rows, width) * 0.02)  # where in frequency: learned
        self.layers = transformer_layers(width, layers, heads, dropout)

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        mel, mask = self.frontend(audio, lengths)
        mel = F.pad(mel, (0, -mel.shape[2] % self.patch, 0, -mel.shape[1] % self.patch))
        x = self.embed(mel[:, None])  # (B, width, rows, columns)
        rows, columns = x.shape[2:]
        x = x + self.row.T[:, :, None] + sinusoids(columns, self.dim, x.device).T[:, None]
        patches = mask[:, :: self.patch].repeat(1, rows)  # a patch is the clip's own if its first frame is
        x = self.layers(x.flatten(2).mT, src_key_padding_mask=~patches)
        return masked_mean(x.mT, patches)


class Network(nn.Module):
    """Patches of a log-mel spectrogram to tokens; where a patch lies is told by sinusoids, so that any length goes."""

    def __init__(self, width: int, layers: int, heads: int) -> None:
        super().__init__()
        if width % 2:
            raise ValueError(f"width must be even, got {width}")
        self.width = width
        self.embed = nn.Linear(PATCH, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, EPSILON)

    def forward(self, patches: Tensor, mask: Tensor) -> Tensor:
        """`(B, S, PATCH)`, `(B, S)` bool, the clip's own → `(B, S, width)`."""
        x = self.embed(patches)
        return self.encode(x + self.positions(x), mask)

    def positions(self, x: Tensor) -> Tensor:
        """What is added to `(B, S, width)` so that it tells where each token lies, `(S, width)`."""
        return sinusoids(x.shape[1], self.width, x.device)

    def encode(self, x: Tensor, mask: Tensor) -> Tensor:
        """Embedded patches with their positions, `(B, S, width)` → tokens `(B, S, width)`."""
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)


class AudioTransformer(AudioEncoder):
    """Self-attention over stretches of 40 ms of a log-mel spectrogram; the mean over the clip's tokens.

    Weights were pretrained on clips of at most 10 s; longer ones are heard, too. weights: "tagging", "transcription",
    "masked-prediction" or "masked-reconstruction"; or a file that `python benchmarks/pretraining` wrote; None: random
    ones. width: of a token, and of the features.

    Raises:
        UnknownNameError: there are no such weights.
        WeightsError: they are of another size, or damaged.
    """

    def __init__(
        self,
        *,
        weights: str | Path | None = None,
        width: int = 128,
        layers: int = 4,
        heads: int = 4,
        frozen: bool = False,
    ) -> None:
        super().__init__()
        self.dim = width
        self.frontend = LogMel(mels=MELS)
        network = Network(width, layers, heads)
        if weights is not None:
            fill(network, pretrained(weights), weights)
        self.network = Pretrained(network, frozen=frozen)

    def patches(self, audio: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, S, PATCH)` float32, band by band, and `(B, S)` bool, the clip's."""
        mel, mask = self.frontend(audio, lengths)
        mel = F.pad(mel, (0, -mel.shape[2] % FRAMES))
        patches = mel.unflatten(2, (-1, FRAMES)).transpose(1, 2).flatten(2)
        return patches, mask[:, ::FRAMES]  # a patch is the clip's own if its first frame is

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        patches, mask = self.patches(audio, lengths)
        return masked_mean(self.network(patches, mask).float().mT, mask)


def pretrained(weights: str | Path) -> dict[str, Tensor]:
    """The tensors of a network, float32, by the name of weights that lie in the repository or from a file.

    Raises:
        UnknownNameError: neither.
        WeightsError: the file is damaged, or is not the one that the library was made with.
    """
    path = Path(weights)
    if str(weights) in PRETRAINED:
        path = WEIGHTS / f"{weights}.safetensors"
        found = digest(path) if path.is_file() else "missing"
        if found != PRETRAINED[str(weights)]:
            raise WeightsError(
                f"{path} is {'not there' if found == 'missing' else 'damaged'}: these weights lie in the repository, "
                "not in its wheel; take the file from a clone, or install the clone by `pip install -e`"
            )
    elif not path.is_file():
        raise unknown("pretrained weights", str(weights), PRETRAINED)
    return {name: tensor.float() for name, tensor in read_tensors(path)[0].items()}


CARDS = (
    AudioEncoderCard(
        name="ast",
        make=SpectrogramTransformer,
        title="AST",
        about="Self-attention over square patches of a log-mel spectrogram, averaged.",
        source="after Gong, Chung & Glass 2021, AST; trained from scratch",
        licence="MIT",
        probe=lambda: {"width": 16, "layers": 2, "heads": 2, "dropout": 0.1, "spec_augment": True},
    ),
    AudioEncoderCard(
        name="audio_transformer",
        make=AudioTransformer,
        title="audio transformer",
        about="Self-attention over 40 ms of a log-mel spectrogram, random or pretrained in one of four ways; the mean.",
        source="ours, after Dinkel et al. 2024, Dasheng; its objectives after CED, Whisper, WavLM and Dasheng",
        licence="MIT",
        weights="in the repository, not in the wheel",
        probe=lambda: {"width": 16, "layers": 2, "heads": 2},
    ),
)
