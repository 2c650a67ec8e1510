"""Probes of what is done with models: evaluation, features of clips; statistics of batches, recipes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from pullpush.data.recordings.texts import Queries
from pullpush.encoders.interface import SplitAudioEncoder
from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen
from pullpush.golden.tiny import WORDS, TinyModel, Tones, replaced
from pullpush.training import evaluate, recipes, statistics
from pullpush.training.features import Activated, Encoded
from pullpush.training.frozen import write_activations, write_features

NAMES = ("infonce", "siglip", "kcl", "cacl", "infonce+bi-dynamic-svr", "uni-static-svr-constrained", "infonce+cyclic")


class Uneven(Tones):
    """Clips of which every third has one caption."""

    def captions(self, language: str) -> list[list[str]]:
        """See `Tones`."""
        return [texts[: 1 + (at % 3 > 0)] for at, texts in enumerate(super().captions(language))]


class Coarse(Tones):
    """Clips in multiples of 1/8, float32, of which all sums are exact."""

    def audio(self, index: Any, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        """See `Tones`."""
        waves, lengths = super().audio(index, sample_rate=sample_rate)
        return ((8 * waves).round() / 8).float(), lengths


class Halves(SplitAudioEncoder):
    """Every second sample, then two sums of them."""

    dim, sample_rate = 2, None

    def lower(self, audio: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """See `SplitAudioEncoder`."""
        sizes = torch.full((len(audio),), audio.shape[1]) if lengths is None else lengths
        return audio[:, ::2] * 0.5, (sizes + 1) // 2

    def upper(self, activations: Tensor, sizes: Tensor) -> Tensor:
        """See `SplitAudioEncoder`."""
        return torch.stack([activations.sum(dim=1), activations[:, 1::2].sum(dim=1)], dim=1)


def evaluated() -> Values:
    """Embeddings, retrieval, queries of their own, zero-shot accuracy, and what an epoch is chosen by."""
    model, clips, gaps = TinyModel(norm=True, noise=True), Tones(), Tones(gaps=True)
    audio, text = evaluate.embed(model, clips, caption="all", batch_size=4)
    values: dict[str, Any] = {"audio": seen(audio), "text": seen(text), "in its mode": model.training}
    values["second captions"] = seen(evaluate.embed(model, clips, language="deu", caption=1)[1])
    values["recall"] = [*evaluate.recall_at_1(model, clips).values(), *evaluate.recall_at_1(model, gaps).values()]
    right = torch.arange(2)[:, None] == torch.arange(len(clips)) % 3
    names = [f"a {word}" for word in WORDS]
    tables = {
        "even": evaluate.retrieval_table(model, clips, ("eng", "fra")),
        "gaps": evaluate.retrieval_table(model, gaps, ("deu",)),
        "uneven": evaluate.retrieval_table(model, Uneven()),
        "queries": evaluate.query_table(model, clips, Queries(["a bark", "a hum and a tick"], right)),
        "classes": evaluate.zero_shot(model, Tones(12), names),
        "classes of several sizes": evaluate.zero_shot(model, clips, names),
    }
    return values | {f"{name}: {key}": table[key].tolist() for name, table in tables.items() for key in table}


def features() -> Values:
    """What is kept of clips and read again: features, and activations of the lower part of an encoder."""
    clips, encoder = Coarse(70), Halves().eval()
    with TemporaryDirectory() as folder:
        write_features(Path(folder), encoder, clips, jobs=1, progress=False)
        write_activations(Path(folder), encoder, clips, jobs=1, progress=False)
        whole, lower = Encoded.read(clips, Path(folder), ""), Activated.read(clips, Path(folder), "")
        values: dict[str, Any] = {"size": whole.dim}
        for name, heard in {"features": whole, "activations": lower}.items():
            some = heard.select([3, 66, 5])
            rows = {"all": heard.audio(slice(None)), "one": heard.audio(-1), "of some": some.head(2).audio([1, 0])}
            values |= {f"{name}, {key}": seen(row) for key, (row, _) in rows.items()}
            values |= {f"{name}, {key}: lengths": lengths for key, (_, lengths) in rows.items()}
            told = (
                heard.name,
                heard.graded,
                [*heard.columns],
                heard.captions("eng")[0],
                heard.prompts()[1],
                heard.key,
                len(heard),
            )
            values |= {f"{name}: of the clips": [*map(str, told)], f"{name}: labels": seen(heard.labels)}
            values |= {f"{name}: relevance": seen(heard.relevance())}
            values |= {f"{name}: lengths": seen(heard.lengths), f"{name}: dtype": str(rows["all"][0].dtype)}
    return values


def statistics_of_batches() -> Values:
    """Batch normalisation by sums over processes, of which there is one: value, gradients and what it remembers."""
    values: dict[str, Any] = {}
    with replaced(statistics, "all_reduce", lambda x, group: x):
        for momentum in (0.1, None):
            norm, x = nn.BatchNorm1d(4, momentum=momentum).double(), numbers(5, 4, 3, seed=1).requires_grad_()
            for again in range(2):
                found = statistics.normalised(norm, (again + 1) * x, None)  # pyrefly: ignore[bad-argument-type]
            (slope,) = torch.autograd.grad((found * numbers(5, 4, 3, seed=2)).sum(), x)
            values |= {f"momentum {momentum}": seen(found), f"momentum {momentum}: gradient": seen(slope)}
            values |= {f"momentum {momentum}: {name}": each for name, each in norm.state_dict().items()}
    return values


def by_name() -> Values:
    """Recipes that names stand for, changed or not; what tables write for them."""
    told = {name: recipes.recipe(name).to_json() for name in NAMES}
    told["changed"] = recipes.recipe("infonce+svr", epochs=2, tau=0.2, **{"svr.alpha": 0.5}).to_json()
    again = {name: recipes.from_json(text).to_json() == text for name, text in told.items()}
    titles = [[recipes.title(name), recipes.colour(name)] for name in (*NAMES, "something else")]
    chosen = [
        recipes.recipe("siglip").terms[0].settings,
        recipes.recipe("clusters+distillation", topics=3, dim=4).columns,
    ]
    return {**told, "read": [*again.values()], "titles": titles, "chosen": str(chosen)}


USES: Mapping[str, Callable[[], Values]] = {
    "evaluate": evaluated,
    "features": features,
    "recipes": by_name,
    "statistics": statistics_of_batches,
}
