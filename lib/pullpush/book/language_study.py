"""The measurements of the chapter on languages: the error and its bound, scores by language, languages never heard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.data import tuxpaint
from pullpush.data.batches import Batch, PairDataset, collate
from pullpush.data.vocabulary import LANGUAGES, Event
from pullpush.data.world import Split, World
from pullpush.lab import common
from pullpush.lab.compare import METRICS, Runs, Scores, means, over_seeds, per_clip, probed, train_systems
from pullpush.lab.session import Session
from pullpush.losses import cacl, kcl, ml_clap
from pullpush.metrics import (
    angle,
    bootstrap_interval,
    direction_error,
    distance,
    gap,
    language_plan,
    language_ranks,
    log_probability,
    momentum_errors,
    pair_distribution,
    rank_variance,
    weight_errors,
    zero_shot_predictions,
)
from pullpush.parallel import in_threads, side_by_side
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.evaluate import embed_audio, embed_texts
from pullpush.training.frozen import on_features
from pullpush.training.objective import Objective
from pullpush.training.recipes import Recipe
from pullpush.training.runs import ready

SCHEMES = ("ml-clap", "cacl", "kcl")
SAMPLINGS = {"random": "ml-clap", "pair": "cacl", "all": "kcl"}  # of `language_plan`, by the scheme that takes so

# Languages of the stamps that no objective trains on: code → (name, whether the sentence encoder was trained on it).
UNHEARD = {
    "it": ("Italian", True),
    "pt": ("Portuguese", True),
    "pl": ("Polish", True),
    "ru": ("Russian", True),
    "tr": ("Turkish", True),
    "ko": ("Korean", True),
    "gl": ("Galician", False),
    "ro": ("Romanian", False),
    "bg": ("Bulgarian", False),
    "cs": ("Czech", False),
    "el": ("Greek", False),
    "sv": ("Swedish", False),
    "fi": ("Finnish", False),
    "hu": ("Hungarian", False),
    "vi": ("Vietnamese", False),
}


# ---------------------------------------------------------------- a space with many languages


class Space(NamedTuple):
    """Embeddings of a split: audio `(N, d)`; texts `(N, C, K, d)`, C captions in each of K languages."""

    audio: Tensor
    texts: Tensor


def space(model: nn.Module, split: Split, languages: Sequence[str] = LANGUAGES) -> Space:
    """Embed all clips and all their captions in all languages."""
    texts = []
    for language in languages:
        captions = split.captions(language)
        flat = embed_texts(model, [text for own in captions for text in own], language=language, batch_size=512)
        texts.append(flat.view(len(captions), -1, flat.shape[1]))
    return Space(embed_audio(model, split, batch_size=512), torch.stack(texts, dim=2))


def spaces(runs: Runs, split: Split, languages: Sequence[str] = LANGUAGES) -> dict[tuple[Any, int], Space]:
    """The `space` of each run."""
    for language in languages:
        split.captions(language)  # written once, for all threads
    return dict(
        zip(runs, in_threads([partial(space, run.model, split, languages) for run in runs.values()]), strict=True)
    )


def scores(embedded: Mapping[tuple[Any, int], Space], languages: Sequence[str] = LANGUAGES) -> Scores:
    """Score spaces by (system, seed) in every language."""
    clips, rows = {}, []
    for key, (audio, texts) in embedded.items():
        own = in_threads([partial(per_clip, audio, texts[:, :, k]) for k in range(len(languages))])
        clips[key] = {metric: torch.stack([one[metric] for one in own], dim=1) for metric in METRICS}
        for language, values in zip(languages, own, strict=True):
            rows.append({"system": key[0], "seed": key[1], "language": language, **means(values)})
    return Scores(pd.DataFrame(rows), clips)


def language_table(table: pd.DataFrame, metrics: Sequence[str], systems: Sequence[str]) -> pd.DataFrame:
    """Table 1: a row a language and their average, a column a (metric, system); means over seeds.

    Columns: language, then "<metric> <system>".
    """
    mean = table[table["system"].isin(systems)].groupby(["language", "system"], sort=False)[list(metrics)].mean()
    wide = mean.unstack("system")
    wide = wide[[(metric, system) for metric in metrics for system in systems]]
    wide.loc["avg"] = wide.mean()
    return wide


def consistency(spaces: Mapping[tuple[Any, int], Space], languages: Sequence[str] = LANGUAGES) -> pd.DataFrame:
    """Table 2: Gap and Dis of each language to English, and the same between two English captions of a clip.

    Columns: system, seed, language ("eng" is the second English caption), Gap, Dis, relative (Dis over the mean
    distance of two English captions of different clips).
    """
    rows = []
    for (system, seed), (_, texts) in spaces.items():
        english = texts[:, 0, 0]
        stranger = (english - english.roll(1, 0)).norm(dim=1).mean().item()
        others = {language: texts[:, 0, k] for k, language in enumerate(languages) if k}
        if texts.shape[1] > 1:
            others["eng"] = texts[:, 1, 0]
        for language, other in others.items():
            far = distance(english, other).item()
            rows.append((system, seed, language, gap(english, other).item(), far, far / stranger))
    return pd.DataFrame(rows, columns=["system", "seed", "language", "Gap", "Dis", "relative"])


def ranks(one: Space, *, direction: str = "t2a") -> Tensor:
    """Rank of every caption's clip (or of a clip's caption) in each language, from 1: `(N·C, K)`."""
    clips, captions = one.texts.shape[:2]
    clip = torch.arange(clips).repeat_interleave(captions)
    return language_ranks(one.audio, one.texts.flatten(0, 1), direction=direction, clip=clip)


def rank_variances(spaces: Mapping[tuple[Any, int], Space], *, direction: str = "t2a") -> pd.DataFrame:
    """Table 3: MRV with its interval over clips; median and logarithmic are readings that a few bad clips do not rule.

    Columns: system, seed, MRV, low, high, median (over captions), worst (share of MRV that the worst 5 % bring), log
    (MRV of the logarithm of the rank), mean rank.
    """
    rows = []
    for (system, seed), one in spaces.items():
        rank = ranks(one, direction=direction)
        variance = rank_variance(rank)
        groups = torch.arange(len(one.audio)).repeat_interleave(one.texts.shape[1]).numpy()
        interval = bootstrap_interval(variance.numpy(), groups=groups, resamples=1000)
        count = max(1, round(0.05 * len(variance)))
        worst = (variance.sort(descending=True).values[:count].sum() / variance.sum().clamp(min=1e-12)).item()
        log = rank_variance(rank.double().log()).mean().item()
        row = (system, seed, *interval, variance.median().item(), worst, log, rank.double().mean().item())
        rows.append(row)
    columns = ["system", "seed", "MRV", "low", "high", "median", "worst", "log", "mean rank"]
    return pd.DataFrame(rows, columns=columns)


# ---------------------------------------------------------------- the direction error


class DirectionProbe(Diagnostics):
    """Asks a model, while it trains, how far one random language is from all of them: on embeddings and on gradients.

    Columns, all mean angles in degrees: `one`, Figure 2's error if one random language is taken (ML-CLAP); `pair`, if
    English and another are (CACL); `one gradient` and `pair gradient`, between the gradients of `ml_clap` and `cacl`
    on a batch and that of `kcl` on the same batch, over all weights; `batch gradient`, between the gradients of `kcl`
    on two batches, the yardstick.
    """

    def __init__(self, split: Split, languages: Sequence[str], *, every: int, batch_size: int, draws: int = 4) -> None:
        super().__init__(every=every)
        self.batch_size, self.draws = min(batch_size, len(split) // 2), draws
        view = split.head(self.batch_size * (draws + 1))
        data = PairDataset(view, languages=languages, sampling="all")
        self.batch: Batch = collate([data[i] for i in range(len(data))])

    def before(self, objective: Objective, batch: Batch) -> Tensor:
        return torch.empty(0)

    def after(self, objective: Objective, batch: Batch, pair: Any, start: Tensor) -> dict[str, float]:
        generator = torch.Generator().manual_seed(0)
        with torch.enable_grad():
            audio, texts = self._encode(objective)
            clips, count = texts.shape[:2]
            taken = {name: take(clips, count, name, generator) for name in ("random", "pair")}
            errors = [direction_error(audio, texts, each).detach() for each in taken.values()]
            row = {name: float(error.nanmean()) for name, error in zip(("one", "pair"), errors, strict=True)}
            return row | self._gradients(objective, audio, texts, taken)

    def _encode(self, objective: Objective) -> tuple[Tensor, Tensor]:
        batch, model = self.batch, objective.model
        sides = zip((batch.texts, *batch.parallel), (batch.languages, *batch.parallel_languages), strict=True)
        texts = torch.stack([model.encode_text(text, languages) for text, languages in sides], dim=1)
        return model.encode_audio(batch.audio, batch.lengths), texts

    def _gradients(
        self, objective: Objective, audio: Tensor, texts: Tensor, taken: Mapping[str, Tensor]
    ) -> dict[str, float]:
        weights = [weight for weight in objective.model.parameters() if weight.requires_grad]

        def gradient(loss: Tensor) -> Tensor:
            parts = torch.autograd.grad(loss, weights, retain_graph=True)
            return torch.cat([part.flatten() for part in parts])

        rows, last = [], None
        for start in range(0, len(audio) - self.batch_size + 1, self.batch_size):
            at = slice(start, start + self.batch_size)
            whole = gradient(kcl(audio[at], texts[at]))
            one = gradient(ml_clap(audio[at], texts[at][taken["random"][at]]))
            other = texts[at][:, 1:][taken["pair"][at][:, 1:]]
            pair = gradient(cacl(audio[at], texts[at][:, 0], other))
            row = {"one gradient": angle(one, whole), "pair gradient": angle(pair, whole)}
            rows.append(row | ({"batch gradient": angle(last, whole)} if last is not None else {}))
            last = whole
        return {name: float(value) for name, value in pd.DataFrame(rows).astype(float).mean().items()}


def take(clips: int, languages: int, sampling: str, generator: torch.Generator) -> Tensor:
    """Which languages training takes of each clip, `(N, K)` boolean: "random" one, "pair" the first and one other."""
    first = int(sampling == "pair")
    chosen = torch.randint(first, languages, (clips,), generator=generator)
    taken = F.one_hot(chosen, languages).bool()
    taken[:, :first] = True
    return taken


def direction_history(
    book: Session, data: World, seeds: Iterable[int], *, points: int = 12, languages: Sequence[str] = LANGUAGES
) -> pd.DataFrame:
    """The probe's columns over training under each scheme: columns recipe, seed, step, …; the runs are not kept."""
    plans = [common.sized(book, name, **on_features(data), languages=tuple(languages)) for name in SCHEMES]
    ready(data, plans[-1], seed=0)  # texts are encoded once, before the processes start
    runs = [(plan, seed) for plan in plans for seed in seeds]
    steps = probed(data, runs, partial(_direction_probe, points))
    tables = [
        table[["step", *PROBED]].dropna().assign(recipe=plan.name, seed=seed)
        for (plan, seed), table in zip(runs, steps, strict=True)
    ]
    return pd.concat(tables, ignore_index=True)[["recipe", "seed", "step", *PROBED]]


def _direction_probe(points: int, data: World, plan: Recipe) -> DirectionProbe:
    steps = -(-len(data.train) // plan.batch_size) * plan.epochs
    size = min(plan.batch_size, len(data.valid) // 4)
    return DirectionProbe(data.valid, plan.languages, every=max(1, steps // points), batch_size=size)


PROBED = ("one", "pair", "one gradient", "pair gradient", "batch gradient")


def direction_by_count(spaces: Mapping[tuple[Any, int], Space]) -> pd.DataFrame:
    """Figure 2's error over the number of languages, in degrees: columns system, seed, what, count, error.

    what: "one of K", a random language against all of K random ones; "m of all", m random ones against all.
    """
    rows = []
    for (system, seed), (audio, texts) in spaces.items():
        texts = texts[:, 0]
        clips, most = texts.shape[:2]
        order = torch.rand(clips, most, generator=torch.Generator().manual_seed(seed)).argsort(1)
        mixed = texts.gather(1, order[:, :, None].expand_as(texts))
        for count in range(1, most + 1):
            first = torch.arange(most)[None].expand(clips, -1)
            one = direction_error(audio, mixed[:, :count], first[:, :count] < 1)
            some = direction_error(audio, mixed, first < count)
            for what, error in (("one of K", one), ("m of all", some)):
                rows.append((system, seed, what, count, error.nanmean().item()))
    return pd.DataFrame(rows, columns=["system", "seed", "what", "count", "error"])


# ---------------------------------------------------------------- the bound


class Tiny(NamedTuple):
    """A model small enough to know everything about: two linear maps on principal components of real features."""

    sounds: Tensor  # (N, F) float64
    words: Tensor  # (N, K, F)
    dim: int

    @property
    def weights(self) -> int:
        """How many it has."""
        return 2 * self.sounds.shape[1] * self.dim

    def __call__(self, weights: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """`metrics.weight_error.Embed`."""
        audio, text = weights.view(2, -1, self.dim)
        return F.normalize(self.sounds[items] @ audio, dim=-1), F.normalize(self.words[items] @ text, dim=-1)

    def start(self, seed: int) -> Tensor:
        """Random first weights."""
        return torch.randn(self.weights, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tiny(data: World, text_encoder: nn.Module, *, clips: int = 24, features: int = 8, dim: int = 4) -> Tiny:
    """The first clips of the training set with their captions in all languages.

    Args:
        data: an encoded world.
        text_encoder: frozen, texts → `(N, D)`.
    """
    view = data.train.head(clips)
    sounds = view.audio(slice(0, clips))[0].double()
    words = torch.stack([text_encoder([own[0] for own in view.captions(k)]).double() for k in LANGUAGES], dim=1)
    return Tiny(
        _components(sounds, features), _components(words.flatten(0, 1), features).view(clips, -1, features), dim
    )


def _components(values: Tensor, count: int) -> Tensor:
    """First principal components, `(N, D)` → `(N, count)`, mean squared length of a row 1."""
    centred = values - values.mean(0)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)
    parts = (u * s)[:, :count]
    return parts / parts.square().sum(1).mean().sqrt()


def bound_table(
    model: Tiny,
    seeds: Sequence[int],
    *,
    epochs: int = 15,
    batch_size: int = 12,
    rate: float = 0.1,
    tau: float = 0.3,
    own: bool = False,
    adam: bool = False,
) -> pd.DataFrame:
    """Both sides of the bound for each way to sample languages: columns sampling, seed and those of `weight_errors`.

    own, rate, tau: see there; adam: of `momentum_errors` instead, a row a step.
    """
    clips, languages = model.words.shape[:2]
    size = {"epochs": epochs, "batch_size": batch_size}
    runs = [(sampling, seed) for sampling in SAMPLINGS for seed in seeds]
    plans = [language_plan(clips, languages, sampling=sampling, seed=seed, **size) for sampling, seed in runs]
    measure = partial(momentum_errors if adam else weight_errors, model, rate=rate, tau=tau, own=own)
    calls = [partial(measure, model.start(seed), plan) for (_, seed), plan in zip(runs, plans, strict=True)]
    tables = [
        pd.DataFrame(rows).assign(sampling=sampling, seed=seed)
        for (sampling, seed), rows in zip(runs, side_by_side(calls), strict=True)
    ]
    return pd.concat(tables, ignore_index=True)


def printed_gradient(model: Tiny, seed: int, *, clips: int = 12, tau: float = 0.3) -> float:
    """Norm of Σ p ∇log p with p of Eq. 1 over all languages: zero, so that the run of Eq. 17 never moves."""
    weights = model.start(seed).requires_grad_()
    log_p = log_probability(*model(weights, torch.arange(clips)), tau, reading="printed")
    everything = torch.ones_like(log_p, dtype=torch.bool)
    p = pair_distribution(log_p.detach(), everything, reading="printed")
    (gradient,) = torch.autograd.grad((p * log_p).sum(), weights)
    return float(gradient.norm())


# ---------------------------------------------------------------- translations


def translation_check(encoder: nn.Module, split: Split, languages: Sequence[str] = LANGUAGES) -> pd.DataFrame:
    """Table 10 with the frozen encoder: mean cosine of a clip's first caption with its first English one, in percent.

    Columns: language, same (that caption), other (first English caption of another clip); the row "eng" compares the
    second English caption.
    """

    def features(language: str, number: int) -> Tensor:
        return F.normalize(encoder([own[number] for own in split.captions(language)]).float(), dim=1)

    english = features("eng", 0)
    rows = []
    for language in languages:
        other = features(language, 1 if language == "eng" else 0)
        same, stranger = ((english * against).sum(1).mean().item() for against in (other, other.roll(1, 0)))
        rows.append((language, 100 * same, 100 * stranger))
    return pd.DataFrame(rows, columns=["language", "same", "other"])


# ---------------------------------------------------------------- languages never heard


class StampTexts(NamedTuple):
    """Captions that the stamps of a bank's events have in one language.

    texts: event number → caption; missing: names of the events without one; substitute: how many are in the traditional
    script because the simplified one is missing.
    """

    texts: dict[int, str]
    missing: tuple[str, ...]
    substitute: int


def labels_as_stamps(events: Sequence[Event]) -> tuxpaint.Stamps:
    """Tables like those of the stamps for a bank without any: the events' own labels, one stamp an event."""
    rows = [
        (event.name, language, phrases.label, language)
        for event in events
        for language, phrases in event.phrases.items()
    ]
    empty = pd.DataFrame(columns=["stamp", "path"])
    return tuxpaint.Stamps(pd.DataFrame(rows, columns=["stamp", "language", "text", "code"]), empty, empty, empty)


def stamp_texts(stamps: tuxpaint.Stamps, events: Sequence[Event], language: str) -> StampTexts:
    """The caption of the first recording of each event that has one in this language."""
    own = stamps.captions[stamps.captions["language"] == language].drop_duplicates("stamp").set_index("stamp")
    texts, missing, substitute = {}, [], 0
    for number, event in enumerate(events):
        found = next((stamp for stamp in event.recordings or (event.name,) if stamp in own.index), None)
        if found is None:
            missing.append(event.name)
            continue
        texts[number] = own.loc[found, "text"]
        substitute += own.loc[found, "code"] == "zh_TW"
    return StampTexts(texts, tuple(missing), substitute)


def coverage(stamps: tuxpaint.Stamps, events: Sequence[Event], languages: Sequence[str]) -> pd.DataFrame:
    """What translations are missing: columns language, all stamps, of them, events, of events, substitutes."""
    total = stamps.captions["stamp"].nunique()
    rows = []
    for language in languages:
        own = stamps.captions[stamps.captions["language"] == language].drop_duplicates("stamp")
        of_events = stamp_texts(stamps, events, language)
        substitutes = int((own["code"] == "zh_TW").sum())
        rows.append((language, len(own), total - len(own), substitutes, len(of_events.texts), len(of_events.missing)))
    columns = ["language", "stamps", "without", "traditional instead", "our events", "without it"]
    return pd.DataFrame(rows, columns=columns)


def zero_shot_stamps(
    runs: Runs, data: World, stamps: tuxpaint.Stamps, languages: Sequence[str], *, split: Split | None = None
) -> pd.DataFrame:
    """Single-event clips classified by the stamps' captions: columns system, seed, language, accuracy, chance, events.

    Only events that have a caption in the language are candidates, and only their clips are asked.
    """
    clips = data.singles if split is None else split
    own = {language: stamp_texts(stamps, data.bank.events, language).texts for language in languages}
    told = in_threads([partial(_guessed, run.model, clips, own) for run in runs.values()])
    tables = [table.assign(system=system, seed=seed) for (system, seed), table in zip(runs, told, strict=True)]
    return pd.concat(tables, ignore_index=True)[["system", "seed", "language", "accuracy", "chance", "events"]]


def _guessed(model: nn.Module, clips: Split, texts: Mapping[str, Mapping[int, str]]) -> pd.DataFrame:
    """One run's accuracy in each language; texts: language → event number → caption."""
    audio, labels, rows = embed_audio(model, clips, batch_size=512), clips.labels, []
    for language, own in texts.items():
        numbers = torch.tensor(sorted(own))
        text = embed_texts(model, [own[int(number)] for number in numbers], language=language)
        asked = torch.isin(labels, numbers)
        guess = numbers[zero_shot_predictions(audio[asked], text)]
        accuracy = (guess == labels[asked]).double().mean().item()
        rows.append((language, accuracy, 1 / len(numbers), len(numbers)))
    return pd.DataFrame(rows, columns=["language", "accuracy", "chance", "events"])


# ---------------------------------------------------------------- how many languages


def language_order(seed: int) -> tuple[str, ...]:
    """English, then the other languages in an order of the seed's own: KCL with K languages takes the first K."""
    return ("eng", *map(str, np.random.default_rng(seed).permutation(LANGUAGES[1:])))


def by_count(scored: Scores, used: Mapping[tuple[int, int], Sequence[str]]) -> pd.DataFrame:
    """Scores apart for languages that were trained on and those that were not: columns K, seed, group and METRICS."""
    rows = []
    for (count, seed), own in used.items():
        table = scored.table.query("system == @count and seed == @seed").set_index("language")
        groups = {
            "English": ["eng"],
            "trained on": [k for k in own if k != "eng"],
            "never trained on": [k for k in LANGUAGES if k not in own],
            "all eight": list(LANGUAGES),
        }
        for group, names in groups.items():
            if names:
                means = table.loc[names, list(METRICS)].mean()
                rows.append({"K": count, "seed": seed, "group": group, **means})
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- longer


TEXTS_PER_CLIP = {"ml-clap": 1, "cacl": 2, "kcl": len(LANGUAGES)}  # that one step reads


def mean_scores(runs: Runs, split: Split) -> pd.DataFrame:
    """What runs score in all languages together: columns system, seed, METRICS (mean over languages), VARIANCES."""
    embedded = spaces(runs, split)
    scored = scores(embedded).table.groupby(["system", "seed"], sort=False)[list(METRICS)].mean().reset_index()
    return scored.merge(rank_variances(embedded)[["system", "seed", *VARIANCES]])


VARIANCES = ("MRV", "median", "log")  # as `rank_variances`


def longer(
    book: Session, data: World, seeds: Sequence[int], times: Sequence[int], *, systems: Sequence[str] = SCHEMES
) -> pd.DataFrame:
    """Schemes trained 1, 2, 4 … times as long as the profile says, each with a schedule of its own length.

    Columns: system, times, seed, steps, texts (read for each clip, in passes over the training set: epochs × languages
    a step takes), METRICS (mean over languages), MRV (median, log: as `rank_variances`).
    """
    rows = []
    for count in times:
        own = {"epochs": count * book.settings.epochs}
        runs = train_systems(book, data, {name: (name, own) for name in systems}, seeds)
        table = mean_scores(runs, data.test)
        steps = [len(runs[key].steps) for key in zip(table["system"], table["seed"], strict=True)]
        read = table["system"].map(TEXTS_PER_CLIP) * own["epochs"]
        for place, (name, values) in enumerate({"times": count, "steps": steps, "texts": read}.items(), start=1):
            table.insert(place, name, values)
        rows.append(table)
    return pd.concat(rows, ignore_index=True)[["system", "times", "seed", "steps", "texts", *METRICS, *VARIANCES]]


def seed_gains(curve: pd.DataFrame, pairs: Sequence[tuple[str, str]], metrics: Sequence[str]) -> pd.DataFrame:
    """What labels of a table of runs add to others, over the seeds that both have.

    Args:
        curve: columns label, seed and metrics.
        pairs: (label, label that it is compared with); of both, at least two seeds.

    Returns:
        Columns system, baseline, metric, value, low, high (95 %, Student, over seeds), wins.
    """
    own, rows = curve.set_index(["label", "seed"]).sort_index(), []
    for label, base in pairs:
        for metric in metrics:
            difference = (own.loc[label, metric] - own.loc[base, metric]).dropna()
            wins = f"{int((difference > 0).sum())}/{len(difference)}"
            rows.append((label, base, metric, *over_seeds(difference.to_list()), wins))
    return pd.DataFrame(rows, columns=["system", "baseline", "metric", "value", "low", "high", "wins"])


def told(curve: pd.DataFrame) -> str:
    """What `longer` shows, in words: the schemes at the most steps and at the most texts that all of them have."""
    own = {name: rows for name, rows in curve.groupby("system") if name in SCHEMES}
    order = [name for name in SCHEMES if name in own]
    parts = []
    for column, unit in (("steps", "steps"), ("texts", "texts a clip")):
        common = set.intersection(*(set(own[name][column]) for name in order))
        if common:
            at = max(common)
            means = {name: own[name].loc[own[name][column] == at, ["T2A R@1", "MRV"]].mean() for name in order}
            found = [f"{name.upper()} {mean['T2A R@1']:.1%} (MRV {mean['MRV']:,.0f})" for name, mean in means.items()]
            parts.append(f"After {at:,} {unit}: {', '.join(found)}.")
    return f"T2A R@1, means over seeds. {' '.join(parts)}" if parts else ""


# ---------------------------------------------------------------- maps and cases


def maps(
    embedded: Mapping[str, Space],
    items: Sequence[int],
    *,
    methods: Sequence[str] = ("t-SNE", "UMAP"),
    seed: int = 0,
) -> pd.DataFrame:
    """Two-dimensional maps of some clips and their first captions: columns system, method, item, language, x, y.

    language "audio" is the clip itself. The methods run side by side.
    """
    points = {name: _points(one, list(items)) for name, one in embedded.items()}
    placed = side_by_side([partial(_projected, list(points.values()), method, seed) for method in methods])
    languages = ("audio", *LANGUAGES[: next(iter(embedded.values())).texts.shape[2]])
    names = [(item, language) for item in range(len(items)) for language in languages]
    tables = [
        pd.DataFrame(names, columns=["item", "language"]).assign(system=system, method=method, x=at[:, 0], y=at[:, 1])
        for method, places in zip(methods, placed, strict=True)
        for system, at in zip(points, places, strict=True)
    ]
    return pd.concat(tables, ignore_index=True)[["system", "method", "item", "language", "x", "y"]]


def _points(one: Space, items: list[int]) -> np.ndarray:
    """Each clip, then its first captions, `(M · (1 + K), d)`."""
    return torch.cat([one.audio[items, None], one.texts[items, 0]], dim=1).flatten(0, 1).numpy()


def _projected(several: Sequence[np.ndarray], method: str, seed: int) -> list[np.ndarray]:
    """Maps of several sets of points by one method, `(P, 2)` each."""
    if method == "UMAP":
        import umap  # slow to import, and only maps need it

        return [
            umap.UMAP(n_neighbors=min(15, len(points) - 1), metric="cosine", random_state=seed, n_jobs=1).fit_transform(
                points
            )
            for points in several
        ]
    from sklearn.manifold import TSNE

    own = {"metric": "cosine", "init": "random", "random_state": seed}
    return [TSNE(perplexity=min(30, (len(points) - 1) // 3), **own).fit_transform(points) for points in several]


def tightness(table: pd.DataFrame) -> pd.DataFrame:
    """How tight the clusters of a map are: mean distance of a text to its item's centre over that to the map's centre.

    Columns: method, ratio. Small is tight.
    """
    rows = []
    for method, own in table[table["language"] != "audio"].groupby("method", sort=False):
        centre = own.groupby("item")[["x", "y"]].transform("mean")
        near = np.hypot(own["x"] - centre["x"], own["y"] - centre["y"]).mean()
        far = np.hypot(own["x"] - own["x"].mean(), own["y"] - own["y"].mean()).mean()
        rows.append((method, near / far))
    return pd.DataFrame(rows, columns=["method", "ratio"])


def worst_cases(spaces: Mapping[str, Space]) -> dict[str, int]:
    """For each system the clip whose first caption's rank varies most over the languages; no clip twice."""
    cases: dict[str, int] = {}
    for system, one in spaces.items():
        order = rank_variance(language_ranks(one.audio, one.texts[:, 0])).argsort(descending=True).tolist()
        cases[system] = next(clip for clip in order if clip not in cases.values())
    return cases


# ---------------------------------------------------------------- overhead


def scheme_batches(
    split: Split, batch_size: int, *, languages: Sequence[str] = LANGUAGES
) -> Iterator[tuple[str, Batch]]:
    """The first batch as each scheme draws it: pairs (scheme, batch)."""
    for sampling, scheme in SAMPLINGS.items():
        data = PairDataset(split, languages=languages, sampling=sampling)
        yield scheme, collate([data[i] for i in range(min(batch_size, len(data)))])
