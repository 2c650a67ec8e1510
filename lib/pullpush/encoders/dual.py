"""The model of every chapter: an audio encoder and a text encoder that meet in one space."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pullpush.data.audio import LOUDEST
from pullpush.encoders.interface import AUDIO, TEXT, AudioEncoder, Model, TextEncoder
from pullpush.encoders.windows import check_audio, check_seconds, check_texts
from pullpush.errors import check_all_known, looked_up
from pullpush.parallel import drawing

FEATURE = 1e18  # the largest number of a clip that comes as features
SMALLEST_NORM = 1e-6  # below it a vector is divided by this instead, so that zero stays zero with finite gradient


def normalise(x: Tensor) -> Tensor:
    """L2-normalise the last axis of `(…, d)`; computed in at least float32; the zero vector stays zero.

    >>> normalise(torch.tensor([3.0, 4.0]))
    tensor([0.6000, 0.8000])
    """
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=SMALLEST_NORM)


class Projection(nn.Module):
    """Linear–ReLU–Linear, then L2 normalisation.

    Args:
        inputs: size of the encoder's features.
        outputs: d, dimensions of the joint space.
        hidden: size between the two layers; None means `outputs`.

    >>> Projection(4, 2)(torch.ones(3, 4)).norm(dim=1)
    tensor([1., 1., 1.], grad_fn=...)
    """

    def __init__(self, inputs: int, outputs: int = 256, hidden: int | None = None) -> None:
        super().__init__()
        hidden = outputs if hidden is None else hidden
        if min(inputs, outputs, hidden) < 1:
            raise ValueError(f"sizes must be at least 1, got inputs={inputs}, outputs={outputs}, hidden={hidden}")
        self.layers = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))

    def forward(self, features: Tensor) -> Tensor:
        """`(B, inputs)` → `(B, outputs)` of unit length."""
        return normalise(self.layers(features))


class DualEncoder(Model):
    """Two encoders, each followed by its projection into the joint space.

    Args:
        audio: waveforms to features, see interface.py.
        text: texts to features, see interface.py.
        dim: d, dimensions of the joint space.
        hidden: hidden size of both projections; None means `2 * dim`.

    >>> model = create("cnn", "hashed", dim=8)
    >>> model.encode_audio(torch.zeros(2, 16_000)).shape
    torch.Size([2, 8])
    """

    def __init__(self, audio: AudioEncoder, text: TextEncoder, *, dim: int = 256, hidden: int | None = None) -> None:
        super().__init__()
        hidden = 2 * dim if hidden is None else hidden
        self.dim = dim
        self.audio, self.text = audio, text
        self.audio_projection = Projection(audio.dim, dim, hidden)
        self.text_projection = Projection(text.dim, dim, hidden)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.text_projection.layers[0].weight.device

    @property
    def sample_rate(self) -> int | None:  # pyrefly: ignore[bad-override]
        """The audio encoder's, in Hz; None for features."""
        return self.audio.sample_rate

    def encode_audio(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Clips to embeddings.

        Args:
            audio: `(B, T)` floating point, at the model's rate, in [-1, 1]; on any device.
            lengths: `(B,)` samples in each clip; what lies beyond does not matter. None: all T.

        Returns:
            `(B, d)` float32, rows of unit length, on the model's device.

        Raises:
            AudioError: wrong shape or dtype, lengths outside 1 … T, clips longer than the encoder takes, or samples
                that are not finite or far beyond 1.
        """
        audio, lengths = self.checked(audio, lengths)
        return self.audio_projection(self.audio(audio.to(self.device), lengths.to(self.device)))

    def checked(self, audio: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Audio, zero beyond each length, and lengths, looked at as `encode_audio` does; on a GPU only shapes are."""
        audio, lengths = check_audio(audio, lengths, most=LOUDEST if self.sample_rate else FEATURE)
        check_seconds(lengths, self.audio)
        return audio, lengths

    def encode_text(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """Texts to embeddings.

        Args:
            texts: B strings in any language that the encoder knows.
            languages: their ISO 639-3 codes; only encoders that mark the language (`sonar`) look at them.

        Returns:
            `(B, d)` float32, rows of unit length, on the model's device.

        Raises:
            TypeError, ValueError: not a list of at least one string.
        """
        return self.text_projection(self.text(check_texts(texts, languages), languages))

    def precompute_text(self, texts: Sequence[str]) -> None:
        """Warm the cache of a frozen text encoder; nothing to do for one that is trained."""
        self.text.precompute(check_texts(texts))


def create(
    audio: str = "cnn", text: str = "use", *, dim: int = 256, hidden: int | None = None, seed: int = 0, **options: Any
) -> DualEncoder:
    """Build a model by the names of its encoders.

    The same arguments give the same weights; the global random state is left as it was.

    >>> model = create("cnn", "hashed", dim=8)
    >>> model.encode_text(["a frog croaks", "a bell rings"]).shape
    torch.Size([2, 8])

    Args:
        audio: a name in `AUDIO`.
        text: a name in `TEXT`.
        dim: d, dimensions of the joint space.
        hidden: hidden size of both projections; None means `2 * dim`.
        seed: of the initial weights.
        options: `audio_…` goes to the audio encoder and `text_…` to the text encoder, without the prefix:
            `create("cnn", audio_channels=(16, 32, 64, 128))`.

    Raises:
        UnknownNameError: no such encoder or option; the message gives the nearest names.
    """
    audio_options, text_options = options_of(options, audio=AUDIO[audio].make, text=TEXT[text].make)
    with drawing(seed):
        parts = AUDIO[audio].make(**audio_options), TEXT[text].make(**text_options)
        return DualEncoder(*parts, dim=dim, hidden=hidden)


def create_audio(name: str, *, seed: int = 0, **options: Any) -> AudioEncoder:
    """An audio encoder alone, without projection; `options` are its own, such as `model`.

    >>> create_audio("cnn", channels=(4, 8)).dim
    128

    Raises:
        UnknownNameError: no such encoder or option.
    """
    make = AUDIO[name].make
    check_all_known(f"option of {name}", options, inspect.signature(make).parameters)
    with drawing(seed):
        return make(**options)


def options_of(options: Mapping[str, Any], **makers: Callable[..., Any]) -> list[dict[str, Any]]:
    """Deal options out by prefix, one dictionary a maker; an option that no maker takes is an error."""
    dealt: dict[str, tuple[int, str]] = {}
    for place, (prefix, maker) in enumerate(makers.items()):
        dealt |= {f"{prefix}_{name}": (place, name) for name in inspect.signature(maker).parameters}
    out: list[dict[str, Any]] = [{} for _ in makers]
    for option, value in options.items():
        place, name = looked_up("option", option, dealt)
        out[place][name] = value
    return out
