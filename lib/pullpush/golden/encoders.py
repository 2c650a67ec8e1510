"""Probes of encoders: each built small as its card says, in training and evaluation; what they share; whole models; the
store in which features of frozen ones are kept.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from pullpush.encoders import AUDIO, TEXT, DualEncoder, SplitAudioEncoder, create, create_audio
from pullpush.encoders.dual import Projection, normalise
from pullpush.encoders.interface import EncoderCard
from pullpush.encoders.pretrained import MODELS
from pullpush.encoders.use import USE_DIM, UseEncoder
from pullpush.golden.compare import Values
from pullpush.golden.probes import GoldenError, Probes

TOLERANCE = 1e-3  # float32 on other processors
PLAIN = (str, int, float, type(None), tuple, list, Mapping)
SAMPLES, VIEWS = 32, 4  # numbers that stand for a tensor: some of its own, and sums of all
STATES = {"frozen": True, "trainable": "upper"}  # options that say what is trained
SECONDS = (2.5, 0.7)  # longer than the windows of most, and shorter
ROW = 6912  # numbers in a row of what is no waveform: 3 · 48², a picture's
TEXTS = ["A frog croaks, then a bell rings.", "Une grenouille coasse.", "青蛙呱呱叫。", ""]
LANGUAGES = ["eng", "fra", "zho", "eng"]
SHORT = [TEXTS[0], TEXTS[1], TEXTS[3]]


def thinned(x: Tensor) -> Tensor:
    """A few numbers for a tensor: some that lie evenly in it, and sums of all, each weighed otherwise.

    >>> thinned(torch.arange(3.0))[:3]
    tensor([0., 1., 2.], dtype=torch.float64)
    """
    x = x.detach().double().flatten()
    places = torch.linspace(0, len(x) - 1, min(len(x), SAMPLES)).round().long()
    angle = torch.arange(len(x), dtype=torch.float64)
    sums = [(x * torch.cos((1 + view) * math.sqrt(2 + view) * angle)).sum() for view in range(VIEWS)]
    return torch.cat([x[places], torch.stack(sums) / math.sqrt(max(1, len(x)))])


def _models() -> dict[str, Any]:
    return {f"whole-{card.name}": card for card in MODELS.values() if card.probe}


AUDIO_PROBES = Probes(
    "audio", TOLERANCE, cards=lambda: {*AUDIO, *_models()}, of_card=lambda name: _of_audio(name), look=thinned
)
TEXT_PROBES = Probes("text", TOLERANCE, cards=lambda: TEXT, of_card=lambda name: _of_text(name), look=thinned)


class Dice(TorchDispatchMode):
    """Dropout that draws the same everywhere: torch's own masks differ between processors' libraries.

    >>> with Dice():
    ...     dropped = nn.functional.dropout(torch.ones(4), 0.5)
    >>> sorted({*dropped.tolist()} | {0.0, 2.0})
    [0.0, 2.0]
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; the exemption from it that torch would give imports the compiler, 4 s."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Bernoulli numbers by way of uniform ones; all else as it is."""
        if func is torch.ops.aten.bernoulli_.float:
            place, share = args[0], args[1] if len(args) > 1 else 0.5
            return place.copy_(torch.rand(place.shape) < share)
        return func(*args, **(kwargs or {}))


def noise(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers, float32."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def clips(rate: int, *seconds: float) -> tuple[Tensor, Tensor]:
    """Noise whose level swells, `(B, T)`, and `(B,)` samples in each clip; what lies beyond must not matter.

    >>> clips(10, 0.5, 0.3)[0].shape, clips(10, 0.5, 0.3)[1]
    (torch.Size([2, 5]), tensor([5, 3]))
    """
    lengths = torch.tensor([round(each * rate) for each in seconds])
    level = 0.05 + 0.1 * torch.sin(torch.linspace(0, 7, int(lengths.max()))).abs()
    return noise(len(seconds), int(lengths.max())) * level, lengths


def probed(card: EncoderCard, make: Callable[..., nn.Module], call: Callable[[Any], Tensor]) -> dict[str, Any]:
    """What an encoder gives, built small as its card says: in training, in evaluation, and where less is trained."""
    takes = inspect.signature(card.make).parameters
    try:
        with warnings.catch_warnings(action="ignore"):  # transformers' own, about what it calls itself
            encoder = make(card.name, **card.small)
            values = {"dim": encoder.dim, **_trained(encoder, lambda: call(encoder))}
            with torch.no_grad():
                values["features"] = call(encoder)
                for option in STATES.keys() & takes.keys():
                    partly = make(card.name, **{**card.small, option: STATES[option]}).eval()
                    values |= {f"{option}.features": call(partly), f"{option}.weights": _count(partly)}
    except Exception as error:  # of whatever kind a reader's encoder raises
        raise GoldenError(
            f"the encoder {card.name!r} cannot be probed ({type(error).__name__}: {error}): let `probe` on its card "
            "give options with which it is built and run in a moment, with random weights and without a network"
        ) from error
    if card.wheel is not None:
        values["published"] = card.wheel.tensors
    return values | {"usual": _usual(card.make, card.small)}


def _trained(module: nn.Module, call: Callable[[], Tensor]) -> dict[str, Any]:
    """What training sees: what comes out in training mode, how much is trained, and the size of each gradient."""
    module.train()
    torch.manual_seed(1)
    with Dice():
        out = call()
    values: dict[str, Any] = {"training": out.detach(), "weights": _count(module)}
    if out.requires_grad:
        (out * noise(*out.shape, seed=1)).sum().backward()
        gradients = [weight.grad for weight in module.parameters() if weight.grad is not None]
        values["gradients"] = [gradient.double().norm() for gradient in gradients]
        module.zero_grad()
    module.eval()
    return values


def _count(module: nn.Module) -> int:
    """Numbers that are trained."""
    return sum(weight.numel() for weight in module.parameters() if weight.requires_grad)


def _usual(make: Callable[..., Any], names: Collection[str]) -> list[list[str]]:
    """What options are where nobody says, of those that a probe sets otherwise: it would not show that they change."""
    takes = inspect.signature(make).parameters
    defaults = {name: takes[name].default for name in sorted(names) if name in takes}
    return [[name, repr(value) if isinstance(value, PLAIN) else ""] for name, value in defaults.items()]


# ---------------------------------------------------------------- of clips


def _of_audio(name: str) -> Values:
    """Of waveforms, of what else it takes (in float64 where it can: batch statistics), of models with both towers."""
    if name not in AUDIO:
        return _whole(_models()[name])
    card = AUDIO[name]
    if card.sample_rate is None:
        drawn = torch.rand(2, ROW, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        rows, sizes = 2 * drawn - 1, torch.tensor([ROW, ROW // 2])  # no waveforms
        try:
            return probed(card, lambda *a, **k: create_audio(*a, **k).double(), lambda encoder: encoder(rows, sizes))
        except GoldenError:
            return probed(card, create_audio, lambda encoder: encoder(rows.float(), sizes))
    audio = clips(card.sample_rate, *SECONDS)
    values = probed(card, create_audio, lambda encoder: encoder(*audio))
    encoder = create_audio(name, **card.small).eval()
    values["takes"] = [encoder.sample_rate, encoder.max_seconds or 0]
    if isinstance(encoder, SplitAudioEncoder):
        with torch.no_grad():
            activations, sizes = encoder.lower(*audio)
            values |= {"activations": activations, "sizes": sizes, "upper": encoder.upper(activations, sizes)}
    return values


def _whole(card: Any) -> Values:
    torch.manual_seed(6)
    options = card.probe()
    model = card.make(**options)
    return {
        "audio": model.encode_audio(*clips(model.sample_rate, 0.5, 0.2)),
        "text": model.encode_text(SHORT),
        "scale": [model.tau, model.bias],
        "usual": _usual(card.make, options),
    }


@AUDIO_PROBES("dual-encoder")
def dual() -> Values:
    """Both towers in training and evaluation, and the usual sizes of what stands on them."""
    options = {"audio_channels": (4, 4, 8), "text_width": 8, "text_layers": 1, "text_heads": 2}
    model = create("cnn", "transformer", dim=8, seed=2, **options)
    audio = clips(16_000, 0.6, 0.2, 0.4)
    values: dict[str, Any] = {}
    for side, encode in {"audio": lambda: model.encode_audio(*audio), "text": lambda: model.encode_text(SHORT)}.items():
        values |= {f"{side}.{key}": value for key, value in _trained(model, encode).items()}
        with torch.no_grad():
            values[side] = encode()
    wide = DualEncoder(AUDIO["features"].make(dim=2), TEXT["hashed"].make(features=2))
    return values | {"usual": [[*part.shape] for part in wide.state_dict().values()]}


@AUDIO_PROBES("projection")
def projection() -> Values:
    """The layers, and unit length of zero and of very small numbers."""
    torch.manual_seed(3)
    layers, features = Projection(6, 4), noise(3, 6)
    zero = torch.zeros(1, 4, requires_grad=True)
    (slope,) = torch.autograd.grad(normalise(zero).sum(), zero)
    small = normalise(torch.tensor([[3e-7, 4e-7], [3.0, 4.0]]))
    of_zero = {"zero": normalise(zero).tolist(), "zero.gradient": slope.tolist(), "small": small.tolist()}
    return _trained(layers, lambda: layers(features)) | of_zero


# ---------------------------------------------------------------- of texts


def _of_text(name: str) -> Values:
    def drawn(name: str, **options: Any) -> Any:
        torch.manual_seed(0)
        return TEXT[name].make(**options)

    return _use() if name == "use" else probed(TEXT[name], drawn, lambda encoder: encoder(TEXTS, LANGUAGES))


class Letters:
    """In the place of USE's tokenizer: the code of each letter, between those of begin and end."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text."""
        return [[1, *(3 + ord(letter) % 5000 for letter in text), 2] for text in texts]


class Sums:
    """In the place of USE's network: a sum over tokens that knows their places."""

    def encode(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """`(N, USE_DIM)`."""
        waves = np.arange(1, USE_DIM + 1) / USE_DIM
        return np.stack([np.cos(np.outer(waves, row) + np.arange(len(row))).mean(axis=1) for row in rows])


class Drawn(UseEncoder):
    """`UseEncoder` without the weights that travel in its package."""

    _tokenizer = Letters()
    _backend = Sums()


def _use() -> Values:
    texts = [*TEXTS, "frog " * 90, *TEXTS[::-1]]  # one that is too long for a batch
    features = torch.from_numpy(Drawn()(texts))
    rows = {f"features.{place}": row for place, row in enumerate(features[:5])}
    return rows | {"alike": torch.equal(features[:4], features[5:].flip(0)), "dim": USE_DIM}
