"""The measurements of the chapter on languages: the error and its bound, tables by language, languages never heard."""

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
from pullpush.lab.experiments import Scores
from pullpush.lab.probes import probed
from pullpush.lab.scoring import texts as embedded_captions
from pullpush.lab.session import Session
from pullpush.losses import cacl, kcl, ml_clap
from pullpush.metrics import (
    Difference,
    angle,
    difference,
    direction_error,
    holm,
    language_ranks,
    pseudo_values,
    rank_variance,
    zero_shot_predictions,
)
from pullpush.parallel import in_threads, side_by_side
from pullpush.show.palette import method_name
from pullpush.studies.consistency.weight_error import (
    language_plan,
    log_probability,
    momentum_errors,
    pair_distribution,
    weight_errors,
)
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.evaluate import embed_audio, embed_texts
from pullpush.training.frozen import on_features
from pullpush.training.loop import Result
from pullpush.training.objective import Objective
from pullpush.training.recipes import Recipe
from pullpush.training.runs import ready

Runs = Mapping[tuple[str, int], Result]  # by (system, seed)
SCHEMES = ("ml-clap", "cacl", "kcl")
SAMPLINGS = {"random": "ml-clap", "pair": "cacl", "all": "kcl"}  # of `language_plan`, by the scheme that takes so
TEXTS_PER_CLIP = {"ml-clap": 1, "cacl": 2, "kcl": len(LANGUAGES)}  # that one step reads

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


# ---------------------------------------------------------------- scores of many languages


def by_run(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `Scores` with a row a run: means over the languages."""
    keys = list(table.columns[: table.columns.get_loc("seed") + 1])  # system, what varies, seed
    means = table.groupby(keys, sort=False).mean(numeric_only=True).reset_index()
    return means.astype({"steps": int})


def language_table(table: pd.DataFrame, metrics: Sequence[str], systems: Sequence[str]) -> pd.DataFrame:
    """Table 1: a row a language and their average, a column a (metric, system); means over seeds."""
    mean = table[table["system"].isin(systems)].groupby(["language", "system"], sort=False)[list(metrics)].mean()
    wide = mean.unstack("system")
    wide = wide[[(metric, system) for metric in metrics for system in systems]]
    wide.loc["avg"] = wide.mean()
    return wide


def contrasts(plans: Iterable[tuple[Mapping[str, Any], Difference]]) -> pd.DataFrame:
    """Differences as one table, within which p is adjusted by Holm.

    Args:
        plans: what to say of each in front, such as its system and baseline, and the difference.

    Returns:
        The columns in front, then value, low, high, half width, p (Holm), seeds, clips.
    """
    heads, found = zip(*plans, strict=True)
    numbers = [
        {"value": one.value, "low": one.low, "high": one.high, "half width": one.half_width}
        | {"p": one.p_holm, "seeds": one.seeds, "clips": one.clips}
        for one in holm(found)
    ]
    return pd.DataFrame([{**head, **row} for head, row in zip(heads, numbers, strict=True)])


def gains_by_language(scores: Scores, pairs: Iterable[tuple[str, str]], metric: str) -> pd.DataFrame:
    """What systems have over their baselines in each language; see `contrasts`."""
    return contrasts(
        (
            {"system": system, "baseline": base, "language": language, "metric": metric},
            scores.contrast(system, base, metric, {"language": language}),
        )
        for system, base in pairs
        for language in scores.experiment.languages
    )


def points(table: pd.DataFrame) -> pd.DataFrame:
    """`contrasts` to print: what stands in front, then the difference in points, its p and what it was taken from."""
    numbers = ["value", "low", "high", "half width", "p", "seeds", "clips"]
    cells = [
        f"{100 * row['value']:+.1f} ± {100 * row['half width']:.1f} [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"
        for _, row in table.iterrows()
    ]
    size = [f"{seeds} × {clips}" for seeds, clips in zip(table["seeds"], table["clips"], strict=True)]
    shown = named(table.drop(columns=numbers)).rename(columns={"baseline": "over"})
    return shown.assign(**{"difference (points)": cells, "p (Holm)": table["p"].map("{:.3f}".format), "n": size})


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Its systems by the names that a page prints: "ml-clap ×8" is "ML-CLAP ×8"."""
    columns = [column for column in ("system", "baseline", "label") if column in table]
    return table.assign(**{column: table[column].map(_name) for column in columns})


def _name(system: str) -> str:
    scheme, *rest = system.split(" ")
    return " ".join([method_name(scheme), *rest])


def distance_table(table: pd.DataFrame, reference: str = "eng") -> pd.DataFrame:
    """Table 2: a row a language, then their average and the reference's own second caption; means over seeds.

    Columns: (metric, system), of Gap, Dis and the relative distance to the reference's first captions.
    """
    metrics = ["Gap", "Dis", "relative distance"]
    within = {f"{metric} within {reference}": metric for metric in metrics}
    mean = table.groupby(["language", "system"], sort=False)
    wide = mean[metrics].mean().unstack("system").rename(index={reference: "avg"})  # see `scoring.consistency`
    wide = wide.loc[[*(language for language in wide.index if language != "avg"), "avg"]]
    if set(within) <= set(table.columns):
        own = mean[list(within)].mean().rename(columns=within).unstack("system")
        wide.loc[f"{reference}, second caption"] = own.loc[reference]
    return wide


def rank_table(scores: Scores) -> pd.DataFrame:
    """Table 3, a row a run: system, seed, unconverged, MRV, median (over clips), worst (share of MRV that the worst 5 %
    of the clips bring), log rank variance, mean rank.
    """
    table, rows = by_run(scores.table).set_index(["system", "seed"]), []
    for (system, seed), row in table.iterrows():
        variance = np.sort(scores.clips[system, seed]["MRV"])[::-1]
        count = max(1, round(0.05 * len(variance)))
        worst = variance[:count].sum() / max(variance.sum(), 1e-12)
        own = {"MRV": row["MRV"], "median": np.median(variance), "worst": worst}
        own |= {name: row[name] for name in ("log rank variance", "mean rank")}
        rows.append({"system": system, "seed": seed, "unconverged": row["unconverged"], **own})
    return pd.DataFrame(rows)


def longer_table(scores: Scores, epochs: int) -> pd.DataFrame:
    """Runs of several lengths, a row each: what `by_run` gives, with `texts`, read of each clip, and `label`.

    epochs: of the shortest; see TEXTS_PER_CLIP.
    """
    table = by_run(scores.table)
    table["texts"] = epochs * table["times"] * table["system"].map(TEXTS_PER_CLIP)
    named = zip(table["system"], table["times"], strict=True)
    return table.assign(label=[name if times == 1 else f"{name} ×{times}" for name, times in named])


Length = tuple[str, int]  # a system, and how many times longer it trained


def longer_gains(scores: Scores, pairs: Iterable[tuple[Length, Length]], metrics: Sequence[str]) -> pd.DataFrame:
    """What systems of one length of training have over others of another; see `contrasts`."""

    def one(ours: Length, theirs: Length, metric: str) -> tuple[dict[str, Any], Difference]:
        (system, long), (base, other) = ours, theirs
        found = scores.contrast(system, base, metric, {"times": long}, baseline_where={"times": other})
        return {"system": f"{system} ×{long}", "baseline": f"{base} ×{other}", "metric": metric}, found

    pairs = list(pairs)
    return contrasts(one(*pair, metric) for metric in metrics for pair in pairs)


# ---------------------------------------------------------------- a space with many languages


class Space(NamedTuple):
    """Embeddings of a split: audio `(N, d)`; texts `(N, C, K, d)`, C captions in each of K languages."""

    audio: Tensor
    texts: Tensor


def space(model: nn.Module, split: Split, languages: Sequence[str] = LANGUAGES) -> Space:
    """Embed all clips and all their captions in all languages."""
    texts = torch.stack([embedded_captions(model, split, language) for language in languages], dim=2)
    return Space(embed_audio(model, split, batch_size=512), texts)


def spaces(runs: Runs, split: Split, languages: Sequence[str] = LANGUAGES) -> dict[tuple[str, int], Space]:
    """The `space` of each run."""
    for language in languages:
        split.captions(language)  # written once, for all threads
    return dict(
        zip(runs, in_threads([partial(space, run.model, split, languages) for run in runs.values()]), strict=True)
    )


def ranks(one: Space) -> Tensor:
    """Rank of every caption's clip in each language, from 1: `(N·C, K)`."""
    clips, captions = one.texts.shape[:2]
    clip = torch.arange(clips).repeat_interleave(captions)
    return language_ranks(one.audio, one.texts.flatten(0, 1), direction="t2a", clip=clip)


def tightness(spaces: Mapping[tuple[str, int], Space], system: str) -> np.ndarray:
    """How tight a clip's first captions lie, `(seeds, clips)`: their mean distance to their centre over that to the
    centre of all clips' captions, as pseudo-values. Small is tight.
    """
    rows = []
    for (name, _), one in spaces.items():
        if name != system:
            continue
        texts = one.texts[:, 0]  # (N, K, d)
        near = (texts - texts.mean(1, keepdim=True)).norm(dim=-1).mean(1)
        far = (texts - texts.mean((0, 1))).norm(dim=-1).mean(1)
        both = torch.stack([near, far], dim=1).double().numpy()
        rows.append(pseudo_values(lambda pair: pair[:, 0].mean() / pair[:, 1].mean(), both))
    return np.stack(rows)


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


def last_angles(history: pd.DataFrame, scheme: str, column: str = "one") -> np.ndarray:
    """A column of `direction_history` when training under a scheme ends, `(seeds, 1)`."""
    own = history[history["recipe"] == scheme].sort_values("step").groupby("seed")[column].last()
    return own.to_numpy()[:, None]


def direction_by_count(spaces: Mapping[tuple[str, int], Space]) -> pd.DataFrame:
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
        """`weight_error.Embed`."""
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


RATE = 0.1  # of the small model's runs


def bound_table(
    model: Tiny,
    seeds: Sequence[int],
    *,
    epochs: int = 15,
    batch_size: int = 12,
    rate: float = RATE,
    tau: float = 0.3,
    own: bool = False,
    adam: bool = False,
    lipschitz: float | str = "secant",
) -> pd.DataFrame:
    """Both sides of the bound for each way to sample languages: columns sampling, seed and those of `weight_errors`.

    own, rate, tau, lipschitz: see there; adam: of `momentum_errors` instead, a row a step.
    """
    clips, languages = model.words.shape[:2]
    size = {"epochs": epochs, "batch_size": batch_size}
    runs = [(sampling, seed) for sampling in SAMPLINGS for seed in seeds]
    plans = [language_plan(clips, languages, sampling=sampling, seed=seed, **size) for sampling, seed in runs]
    options = {"rate": rate, "tau": tau, "own": own, "lipschitz": lipschitz}
    measure = partial(momentum_errors if adam else weight_errors, model, **options)
    calls = [partial(measure, model.start(seed), plan) for (_, seed), plan in zip(runs, plans, strict=True)]
    tables = [
        pd.DataFrame(rows).assign(sampling=sampling, seed=seed)
        for (sampling, seed), rows in zip(runs, side_by_side(calls), strict=True)
    ]
    return pd.concat(tables, ignore_index=True)


def predicted_bound(model: Tiny, table: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """`bound_table` with a λ that was known before the run: the steepest that another seed's runs in `table` had.

    With λ read off the two runs themselves the bound is the triangle inequality, which cannot fail; this one can.

    options: epochs and batch_size of `table`.
    """
    slope = (table.groupby("seed")["growth"].max() - 1) / RATE  # Eq. 8
    seeds = list(slope.index)
    before = zip(seeds, [seeds[-1], *seeds], strict=False)
    tables = [bound_table(model, [seed], lipschitz=float(slope[other]), **options) for seed, other in before]
    return pd.concat(tables, ignore_index=True)


def violated(table: pd.DataFrame, side: str = "right") -> np.ndarray:
    """Share of the epochs or steps, of the samplings that err, in which the error exceeds a bound: `(seeds, 1)`."""
    table = table[table["sampling"] != "all"]
    over = table["left"] > table[side] * (1 + 1e-9)
    return over.groupby(table["seed"]).mean().to_numpy()[:, None]


def at_end(table: pd.DataFrame, sampling: str, column: str = "left") -> np.ndarray:
    """A column of `bound_table` after the last epoch, `(seeds, 1)`."""
    own = table[(table["sampling"] == sampling) & (table["epoch"] == table["epoch"].max())]
    return own.sort_values("seed")[column].to_numpy()[:, None]


def nearer(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Weight error of CACL's sampling less that of random sampling at the end of several tables of `bound_table`.

    Columns: after (its name), CACL, random, and those of `contrasts`.
    """
    plans = []
    for name, table in tables.items():
        pair, random = (at_end(table, sampling) for sampling in ("pair", "random"))
        plans.append(({"after": name, "CACL": pair.mean(), "random": random.mean()}, difference(pair, random)))
    return contrasts(plans)


def looseness(table: pd.DataFrame, predicted: pd.DataFrame) -> pd.DataFrame:
    """`bound_table` after its last epoch, of the samplings that err: columns system, distribution_error, left, and, as
    multiples of left, right, expanded, and before: right of `predicted_bound`.
    """
    keys = ["sampling", "seed", "epoch"]
    table = table.merge(predicted[[*keys, "right"]].rename(columns={"right": "before"}), on=keys)
    table = table[(table["epoch"] == table["epoch"].max()) & (table["sampling"] != "all")]
    bounds = table[["right", "expanded", "before"]].div(table["left"], axis=0)
    system = table["sampling"].map(SAMPLINGS).rename("system")
    return pd.concat([system, table[["distribution_error", "left"]], bounds], axis=1)


def printed_gradient(model: Tiny, seed: int, *, clips: int = 12, tau: float = 0.3) -> float:
    """Norm of Σ p ∇log p with p of Eq. 1 over all languages: zero, so that the run of Eq. 17 never moves."""
    weights = model.start(seed).requires_grad_()
    log_p = log_probability(*model(weights, torch.arange(clips)), tau, reading="printed")
    everything = torch.ones_like(log_p, dtype=torch.bool)
    p = pair_distribution(log_p.detach(), everything, reading="printed")
    (gradient,) = torch.autograd.grad((p * log_p).sum(), weights)
    return float(gradient.norm())


# ---------------------------------------------------------------- translations


def caption_cosines(
    encoder: nn.Module, split: Split, languages: Sequence[str] = LANGUAGES, *, stranger: bool = False
) -> dict[str, np.ndarray]:
    """Table 10 with the frozen encoder: cosines `(N,)` of a clip's first English caption with its first in a language.

    "eng" is the second English caption.

    stranger: with those of another clip instead.
    """

    def features(language: str, number: int) -> Tensor:
        return F.normalize(encoder([own[number] for own in split.captions(language)]).float(), dim=1)

    english, found = features("eng", 0), {}
    for language in languages:
        other = features(language, 1 if language == "eng" else 0)
        found[language] = (english * (other.roll(1, 0) if stranger else other)).sum(1).numpy()
    return found


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


def zero_shot_stamps(runs: Runs, data: World, stamps: tuxpaint.Stamps, languages: Sequence[str]) -> pd.DataFrame:
    """Single-event clips classified by the stamps' captions: columns system, seed, language, event, accuracy, chance.

    Only events that have a caption in the language are candidates, and only their clips are asked.
    """
    texts = {language: stamp_texts(stamps, data.bank.events, language).texts for language in languages}
    tables = in_threads([partial(_guessed, run.model, data.singles, texts) for run in runs.values()])
    named = zip(runs, tables, strict=True)
    tables = [table.assign(system=system, seed=seed) for (system, seed), table in named]
    return pd.concat(tables, ignore_index=True)[["system", "seed", "language", "event", "accuracy", "chance"]]


def _guessed(model: nn.Module, clips: Split, texts: Mapping[str, Mapping[int, str]]) -> pd.DataFrame:
    """One run's accuracy on each event in each language; texts: language → event number → caption."""
    audio, labels, tables = embed_audio(model, clips, batch_size=512), clips.labels, []
    for language, own in texts.items():
        numbers = torch.tensor(sorted(own))
        text = embed_texts(model, [own[int(number)] for number in numbers], language=language)
        asked = torch.isin(labels, numbers)
        right = numbers[zero_shot_predictions(audio[asked], text)] == labels[asked]
        table = pd.DataFrame({"event": labels[asked].numpy(), "accuracy": right.double().numpy()})
        table = table.groupby("event", as_index=False).mean()
        tables.append(table.assign(language=language, chance=1 / len(numbers)))
    return pd.concat(tables, ignore_index=True)


def by_language(table: pd.DataFrame) -> pd.DataFrame:
    """`zero_shot_stamps` as means over events: columns system, seed, language, accuracy, chance, events."""
    groups = table.groupby(["system", "seed", "language"], sort=False)
    return groups.agg(accuracy=("accuracy", "mean"), chance=("chance", "mean"), events=("event", "size")).reset_index()


def unheard_gains(table: pd.DataFrame, groups: Mapping[str, str], pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """What systems have over others in accuracy, over seeds and events; see `contrasts`.

    Args:
        table: of `zero_shot_stamps`.
        groups: language → its group, which is averaged over.
        pairs: system and baseline.
    """
    table = table.assign(group=table["language"].map(groups))

    def values(group: str, system: str) -> pd.DataFrame:
        own = table[(table["group"] == group) & (table["system"] == system)]
        return own.pivot_table(index="seed", columns="event", values="accuracy")

    plans = []
    for group in dict.fromkeys(groups[language] for language in table["language"].unique()):
        for system, base in pairs:
            ours, theirs = values(group, system), values(group, base)
            both = ours.index.intersection(theirs.index)
            one = difference(ours.loc[both].to_numpy(), theirs.loc[both].to_numpy())
            plans.append(({"languages": group, "system": system, "baseline": base, "metric": "accuracy"}, one))
    return contrasts(plans)


# ---------------------------------------------------------------- how many languages


def language_order(seed: int) -> tuple[str, ...]:
    """English, then the other languages in an order of the seed's own: KCL with K languages takes the first K."""
    return ("eng", *map(str, np.random.default_rng(seed).permutation(LANGUAGES[1:])))


def by_count(scores: Scores) -> pd.DataFrame:
    """Scores apart for languages that were trained on and those that were not: columns K, seed, group and the metrics.

    scores: of an experiment whose trials differ by K, train on `overrides["languages"]`, and have a seed each.
    """
    metrics = list(next(iter(scores.clips.values())))
    rows = []
    for trial in scores.experiment.trials:
        trained = trial.overrides["languages"]
        groups = {
            "English": ["eng"],
            "trained on": [name for name in trained if name != "eng"],
            "never trained on": [name for name in LANGUAGES if name not in trained],
            "all eight": list(LANGUAGES),
        }
        for group, names in groups.items():
            if names:
                means = {metric: _mean_of(scores, trial.where, metric, names) for metric in metrics}
                rows.append({"K": trial.where["K"], "seed": trial.where["order"], "group": group, **means})
    return pd.DataFrame(rows)


def _mean_of(scores: Scores, where: Mapping[str, Any], metric: str, languages: Sequence[str]) -> float:
    return float(np.mean([scores.values("kcl", metric, {**where, "language": name}).mean() for name in languages]))


def at_count(scores: Scores, count: int, metric: str, language: str | None = None) -> np.ndarray:
    """A metric after training on so many languages, by order and clip `(orders, N)`: of a language, or their mean."""
    orders = dict.fromkeys(trial.where["order"] for trial in scores.experiment.trials)
    own = {"language": language} if language else {}
    return np.concatenate([scores.values("kcl", metric, {"K": count, "order": one, **own}) for one in orders])


def count_gains(scores: Scores, pairs: Iterable[tuple[int, int]], metric: str = "T2A R@1") -> pd.DataFrame:
    """What training on K languages has over training on fewer, in English and in all eight; see `contrasts`."""
    return contrasts(
        (
            {"languages": title, "K": many, "over": few, "metric": metric},
            difference(at_count(scores, many, metric, language), at_count(scores, few, metric, language)),
        )
        for language, title in ((None, "all eight"), ("eng", "English"))
        for many, few in pairs
    )


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


def map_tightness(table: pd.DataFrame) -> pd.DataFrame:
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


def case_ranks(
    spaces: Mapping[tuple[str, int], Space], seed: int, systems: Sequence[str] = ("ml-clap", "kcl")
) -> pd.DataFrame:
    """Table 5: ranks of the `worst_cases` of a seed's runs, first captions: columns worst of, clip, system, language,
    rank.
    """
    cases = worst_cases({system: spaces[system, seed] for system in systems})
    rows = []
    for worst, clip in cases.items():
        for (system, other), one in spaces.items():
            if other == seed:
                places = ranks(one)[clip * one.texts.shape[1]].tolist()
                rows += [(worst, clip, system, *pair) for pair in zip(LANGUAGES, places, strict=False)]
    return pd.DataFrame(rows, columns=["worst of", "clip", "system", "language", "rank"])


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
