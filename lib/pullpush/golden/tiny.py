"""Clips, a model and losses so small that probes train in milliseconds: in float64, alone, on a CPU, on every machine.

What a loss computes is in its own probe alone. While training is probed, a stand-in has the doors of the loss whose
name it bears (what it needs and uses, its options, languages, temperature) and arithmetic of its own: a softmax over
similarities, a number and a network that it learns.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from inspect import Parameter, Signature, signature
from threading import get_ident
from types import ModuleType
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.data.batches import PairDataset
from pullpush.data.clips import Clips
from pullpush.encoders.interface import Model, SplitAudioEncoder
from pullpush.golden.probes import numbers
from pullpush.losses import TERMS, Loss, LossCard, Output, Temperature
from pullpush.training import distributed, loop, objective
from pullpush.training.loop import Result, train
from pullpush.training.recipes import Recipe
from pullpush.training.terms import Term

WORDS = ("bark", "ring", "hum", "tick", "drip", "roar")
LONG, LETTERS, WIDTH, DIM = 20, 16, 6, 4  # samples of a clip at most, counts of a text, features, dimensions
LANGUAGES = ("eng", "deu", "fra")
FLAT = 0.05  # weight of what is no embedding
KILLED_AFTER = 5  # steps


class Tones:
    """Clips that each sound like one of six tones, with noise; two captions in each language, no two of them the same.

    columns: what else is known of them; gaps: whether captions are missing, every fifth in German, one in English.

    >>> Tones(3).captions("deu")[2]
    ['deu: hum, 2', 'deu: a hum, 2']
    """

    name, key, graded = "tones", "", False

    def __init__(
        self, count: int = 14, *, seed: int = 0, columns: Mapping[str, Sequence[Any]] | None = None, gaps: bool = False
    ) -> None:
        self.columns, self.gaps = columns or {}, gaps
        self.labels = torch.arange(count) % len(WORDS)
        time = torch.arange(LONG, dtype=torch.float64) / LONG
        tones = torch.sin(2 * torch.pi * (self.labels[:, None] + 1) * time)
        self.lengths = LONG - torch.arange(count) % 4
        noisy = tones + 0.5 * numbers(count, LONG, seed=seed)
        self.waves = torch.where(torch.arange(LONG) < self.lengths[:, None], noisy, 0.0)

    def __len__(self) -> int:
        return len(self.waves)

    def audio(self, index: Any, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        rows = torch.arange(len(self))[index].reshape(-1)
        return self.waves[rows, : int(self.lengths[rows].max())], self.lengths[rows]

    def captions(self, language: str) -> list[list[str]]:
        """Two a clip, but where there are gaps."""
        texts = [
            [f"{language}: {WORDS[label]}, {at}", f"{language}: a {WORDS[label]}, {at}"]
            for at, label in enumerate(self.labels.tolist())
        ]
        lacks = {"deu": range(0, len(self), 5), "eng": (4,)}.get(language, ()) if self.gaps else ()
        return [[] if at in lacks else own for at, own in enumerate(texts)]

    def prompts(self, language: str = "eng", template: str | None = None) -> list[str]:
        """One a tone."""
        return [(template or f"{language}: {{label}}").format(label=word) for word in WORDS]

    def relevance(self, other: Clips | None = None) -> Tensor:
        """1 for clips of one tone."""
        labels = self.labels if other is None else other.labels
        return (self.labels[:, None] == labels).float()

    def select(self, rows: Sequence[int], *, name: str | None = None) -> "Tones":
        """As many clips; which they are nobody asks."""
        return type(self)(len(rows))

    def head(self, n: int) -> "Tones":
        return self.select(range(min(n, len(self))))


class Uneven(Tones):
    """Clips of which every third has one caption."""

    def captions(self, language: str) -> list[list[str]]:
        return [texts[: 1 + (at % 3 > 0)] for at, texts in enumerate(super().captions(language))]


class Coarse(Tones):
    """Clips in multiples of 1/8, float32, of which all sums are exact."""

    def audio(self, index: Any, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        waves, lengths = super().audio(index, sample_rate=sample_rate)
        return ((8 * waves).round() / 8).float(), lengths


class Letters(nn.Module):
    """Counts of pairs of letters, then a layer: what a text encoder gives before its projection."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(LETTERS, WIDTH)

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """B texts → `(B, WIDTH)`."""
        counts = torch.zeros(len(texts), LETTERS, dtype=self.layer.weight.dtype)
        for row, text in enumerate(texts):
            for at in range(len(text) - 1):
                counts[row, crc32(text[at : at + 2].encode()) % LETTERS] += 1
        return self.layer(counts)


class TinyModel(Model):
    """Two layers a tower; norm: batch normalisation of the clips; noise: a factor that texts meet while it trains."""

    sample_rate = None  # clips as they come

    def __init__(self, *, norm: bool = False, noise: bool = False) -> None:
        super().__init__()
        self.noise = noise
        self.audio = nn.Sequential(
            nn.Linear(LONG, WIDTH, bias=not norm), nn.BatchNorm1d(WIDTH) if norm else nn.Tanh(), nn.Linear(WIDTH, DIM)
        )
        self.text, self.projection = Letters(), nn.Linear(WIDTH, DIM)
        self.double()
        for at, parameter in enumerate(self.parameters()):
            with torch.no_grad():
                parameter.copy_(numbers(*parameter.shape, seed=at) / 2)

    def encode_audio(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Of clips of any length the first samples."""
        waves = F.pad(audio, (0, max(0, LONG - audio.shape[1])))[:, :LONG].double()
        return F.normalize(self.audio(waves), dim=1)

    def encode_text(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """With noise, from torch's random numbers."""
        features = torch.tanh(self.text(texts, languages) / 4)
        if self.noise and self.training:
            features = features * (0.5 + torch.rand(features.shape, dtype=features.dtype))
        return F.normalize(self.projection(features), dim=1)


class Halves(SplitAudioEncoder):
    """Every second sample, then two sums of them."""

    dim, sample_rate = 2, None

    def lower(self, audio: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        sizes = torch.full((len(audio),), audio.shape[1]) if lengths is None else lengths
        return audio[:, ::2] * 0.5, (sizes + 1) // 2

    def upper(self, activations: Tensor, sizes: Tensor) -> Tensor:
        return torch.stack([activations.sum(dim=1), activations[:, 1::2].sum(dim=1)], dim=1)


class Alone:
    """What `accelerate` does in a single process on a CPU."""

    is_main_process, device = True, torch.device("cpu")

    def prepare(self, *given: Any) -> tuple[Any, ...]:
        """As they are."""
        return given

    def backward(self, loss: Tensor) -> None:
        """Gradients of all that learns."""
        loss.backward()

    def wait_for_everyone(self) -> None:
        """There is nobody else."""


@contextmanager
def alone() -> Iterator[None]:
    """Let this thread train as the only process, on a CPU and in float64, in whatever group and on whatever machine."""

    def doubled(*given: Any) -> objective.Objective:
        return objective.Objective(*given).double()

    with ExitStack() as stack:
        for module in (distributed, loop, objective):
            stack.enter_context(replaced(module, "world", lambda: (0, 1)))
        stack.enter_context(replaced(distributed, "accelerator", Alone))
        stack.enter_context(replaced(loop, "Objective", doubled))
        stack.enter_context(replaced(torch.cuda, "is_available", lambda: False))
        stack.enter_context(replaced(torch.accelerator, "is_available", lambda: False))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of captions that are missing
        yield


@contextmanager
def replaced(module: ModuleType, name: str, other: Callable[..., Any]) -> Iterator[None]:
    """Let this thread find another function of a module; other threads find the usual one."""
    usual, here = getattr(module, name), get_ident()

    def chosen(*given: Any, **named: Any) -> Any:
        return (other if get_ident() == here else usual)(*given, **named)

    setattr(module, name, chosen)
    try:
        yield
    finally:
        setattr(module, name, usual)


@contextmanager
def standing_in() -> Iterator[None]:
    """Let every loss be stood in for, in this thread."""
    with TERMS.standing_in({name: _card(card) for name, card in TERMS.items()}):
        yield


def _card(card: LossCard) -> LossCard:
    real = card.make
    named = [(name, Parameter.empty) for name in real.needs] + [(name, None) for name in real.uses]

    def forward(self: Any, *given: Tensor, **others: Tensor | None) -> Output:
        return self.told(dict(zip(real.needs, given, strict=False)) | others)

    takes = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default) for name, default in named]
    itself = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    forward.__signature__ = Signature([itself, *takes])  # pyrefly: ignore[missing-attribute]
    doors = {name: getattr(real, name) for name in ("needs", "uses", "languages", "shares_temperature")}
    make = type(real.__name__, (StandIn,), {"forward": forward, "__signature__": signature(real), **doors})
    return LossCard(name=card.name, make=make, title=card.title, about=card.about, sampling=card.sampling)


class StandIn(Loss):
    """The arithmetic of all stand-ins; options: those of the loss, of which a temperature alone counts."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        given = {name: option.default for name, option in signature(type(self)).parameters.items()} | options
        if isinstance(given.get("tau"), float | int):
            self.temperature = Temperature(given["tau"], learnable=bool(given.get("learnable", False)))
        self.number = nn.Parameter(torch.tensor(0.5))
        self.network = nn.Linear(2, 1)

    def told(self, given: dict[str, Tensor | None]) -> Output:
        """A softmax over the similarities of the first embeddings and the last, with a little of everything else."""
        there = {name: x for name, x in given.items() if x is not None}
        over = 0 if self.languages == "groups" else 1  # (G, N, d) or (N, K, d)
        embeddings = [x for name, x in there.items() if x.is_floating_point() and name != "teacher_similarity"]
        rows = [x if x.ndim == 2 else x.mean(dim=over) for x in embeddings]
        first, last = rows[0], rows[-1]
        tau = 1.0 if self.temperature is None else self.temperature()
        similarity = first @ last.T / tau
        value = F.cross_entropy(similarity, torch.arange(len(first), device=first.device))
        rest = sum(x.to(first.dtype).mean() for name, x in there.items() if not x.is_floating_point())
        if (teachers := there.get("teacher_similarity")) is not None:
            rest = rest + (similarity - teachers).square().mean()
        learnt = self.network(torch.stack([first.std(), last.std()])).squeeze() * self.number
        return Output(value + FLAT * (rest + learnt), {"similarity": similarity.detach().mean()})

    @property
    def learnt(self) -> dict[str, Tensor]:
        """Its number."""
        return {"number": self.number.detach()}


# ---------------------------------------------------------------- runs


def tiny_recipe(terms: Iterable[Term], **options: Any) -> Recipe:
    """A recipe for the tiny model."""
    settings: dict[str, Any] = {"dim": DIM, "batch_size": 6, "epochs": 2, "lr": 0.02, **options}
    return Recipe("tiny", tuple(terms), **settings)


class Killed(Exception):
    """A run that stops in the middle."""


class Mortal(PairDataset):
    """Pairs of which a run sees only so many batches."""

    left = KILLED_AFTER

    def batch(self, rows: Any, **options: Any) -> Any:
        if not self.left:
            raise Killed
        self.left -= 1
        return super().batch(rows, **options)


def trained(recipe: Recipe, *, gaps: bool = False, pairs: type[PairDataset] = PairDataset, **options: Any) -> Result:
    """The tiny model, with batch normalisation and noise, after a run."""
    choices: dict[str, Any] = {name: getattr(recipe, name) for name in ("languages", "sampling", "captions")}
    data = pairs(Tones(gaps=gaps, columns={"group": list("aab" * 5)[:14]}), weights=recipe.balance, **choices)
    valid = Tones(10, seed=1, gaps=gaps)
    return train(TinyModel(norm=True, noise=True), recipe, data, valid, progress=False, **options)
