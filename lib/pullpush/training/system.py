"""A system to train, as data: everything that makes one training run differ from another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pullpush.data.batches import CAPTIONS, SAMPLING
from pullpush.errors import SettingError, unknown
from pullpush.settings import check_fields, check_setting
from pullpush.training.terms import Term, check_one_learner, one_temperature

OPTIMISERS = ("adam", "adamw", "adam8bit")
SCHEDULES = ("cosine", "constant")
RANGES = {
    "terms": "one term or more", "dim": "1 or more", "lr": "above 0", "weight_decay": "0 or more",
    "epochs": "1 or more", "batch_size": "1 or more", "warmup": "0 to 1", "clip": "0 or more",
    "scalar_lr": "0 or more", "network_lr": "0 or more", "text_chunk": "0 or more, or None", "audio_chunk": "0 or more",
    "balance": "weights of 0 or more, not all 0", "loss_parts": "1 to batch_size", "floor": "0 to 1",
    "warmup_steps": "0 or more",
}  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """One system, complete.

    Attributes:
        name: what tables call it.
        terms: the summands of the objective. One temperature serves all that compare clips with texts: that of the
            first of them that has one. A later term keeps its own only where its options name a `tau` that differs.
        audio, text: names of the encoders; dim: dimensions of the joint space.
        encoder_options: further keyword arguments of `encoders.create`.
        languages, sampling, captions: which captions a clip brings, see `PairDataset`.
        balance: weight of each group of clips (their column "group") in every batch, whatever the groups' sizes; empty:
            clips as they come. See `PairDataset`.
        optimiser: "adam", "adamw", or "adam8bit", Adam with moments of eight bits (needs bitsandbytes and a GPU);
            lr: peak learning rate; weight_decay: on matrices and kernels only.
        scalar_lr: factor on `lr` for numbers that a loss learns: temperature, bias, radius, weight. Under Adam a number
            moves by at most about the sum of the learning rates, 0.2 in a short run, while weights of an encoder need
            far less; 30 lets a bias or a radius arrive where it would rest. network_lr: the same for networks that a
            loss learns (SVR's predictor), whose outputs move with all their weights at once.
        epochs: passes over the training clips; batch_size: clips in a step, over all processes together.
        schedule: "cosine" (to `floor`, a share of the peak) or "constant", after the warm-up, in which the rate grows
            linearly: `warmup` is the fraction of all steps that it takes, `warmup_steps`, unless 0, their number.
        clip: largest norm of the gradient; 0 leaves it alone.
        text_chunk: texts that a process encodes at once, with cached gradients (see chunked.py): the same training up
            to rounding, at the memory of a chunk. 0: the whole batch. None: as many as clips where sampling is "all"
            and the text encoder is trained, else the whole batch.
        audio_chunk: the same for clips; 0: the whole batch.
        loss_parts: 1 compares every clip with all texts of the batch. W gives the loss of W processes that each see
            their own part of the batch only, as published code does by default: the mean over the parts, which are
            consecutive. The numbers are the same in any number of processes, so that one machine can measure it.

    Raises:
        UnknownNameError: an unknown optimiser, schedule, sampling or caption choice.
        SettingError: a field of another type.
        ValueError: a number out of range; a term that is to learn a temperature which it does not have to itself.
    """

    name: str
    terms: tuple[Term, ...]
    audio: str = "cnn"
    text: str = "use"
    dim: int = 256
    encoder_options: Mapping[str, Any] = field(default_factory=dict)
    languages: tuple[str, ...] = ("eng",)
    sampling: str = "fixed"
    captions: str = "first"
    optimiser: str = "adam"
    lr: float = 1e-3
    weight_decay: float = 1e-4
    epochs: int = 5
    batch_size: int = 24
    warmup: float = 0.1
    schedule: str = "cosine"
    clip: float = 1.0
    scalar_lr: float = 30.0
    network_lr: float = 1.0
    text_chunk: int | None = None
    audio_chunk: int = 0
    balance: Mapping[str, float] = field(default_factory=dict)
    loss_parts: int = 1
    floor: float = 0.0
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        check_terms(self.terms)
        check_setting("languages", self.languages, str | tuple[str, ...], of=f"recipe {self.name!r}")
        terms = tuple(Term(**term) if isinstance(term, Mapping) else term for term in self.terms)
        languages = (self.languages,) if isinstance(self.languages, str) else tuple(self.languages)
        object.__setattr__(self, "terms", one_temperature(terms))
        object.__setattr__(self, "languages", languages)
        check_fields(self, of=f"recipe {self.name!r}")
        check_one_learner(self.terms)
        choices = {"optimiser": OPTIMISERS, "schedule": SCHEDULES, "sampling": SAMPLING, "captions": CAPTIONS}
        for name, values in choices.items():
            if getattr(self, name) not in values:
                raise unknown(name, getattr(self, name), values)
        valid = {
            "terms": len(terms) > 0,
            "dim": self.dim >= 1,
            "lr": self.lr > 0,
            "weight_decay": self.weight_decay >= 0,
            "epochs": self.epochs >= 1,
            "batch_size": self.batch_size >= 1,
            "warmup": 0 <= self.warmup <= 1,
            "clip": self.clip >= 0,
            "scalar_lr": self.scalar_lr >= 0,
            "network_lr": self.network_lr >= 0,
            "text_chunk": self.text_chunk is None or self.text_chunk >= 0,
            "audio_chunk": self.audio_chunk >= 0,
            "balance": not self.balance or (min(self.balance.values()) >= 0 and max(self.balance.values()) > 0),
            "loss_parts": 1 <= self.loss_parts <= self.batch_size,
            "floor": 0 <= self.floor <= 1,
            "warmup_steps": self.warmup_steps >= 0,
        }
        for name, good in valid.items():
            if not good:
                raise ValueError(
                    f"{name} = {getattr(self, name)!r} of recipe {self.name!r} is out of range: {RANGES[name]}"
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the clips that its terms need or use."""
        return tuple(dict.fromkeys(column for term in self.terms for column in term.columns))

    def to_json(self) -> str:
        """The recipe as JSON; `from_json` reads it back."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)


def check_terms(terms: Any) -> None:
    """Require summands, or mappings that make some."""
    if isinstance(terms, str) or not isinstance(terms, Sequence):
        raise SettingError(f"terms of a recipe must be a sequence of terms, got {terms!r}")
    for term in terms:
        if not isinstance(term, Term | Mapping):
            raise SettingError(f"terms of a recipe must be terms, got {term!r}")
        if isinstance(term, Mapping):
            check_fields(term, of="term", kind=Term)
            if "name" not in term:
                raise SettingError(f"a term lacks its name: {dict(term)!r}")
