"""From an experiment to its scores: plans, training of what is missing, scoring of what was not scored.

`run` is what chapters call: it computes, or reads what was kept of a long experiment.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor, nn

from pullpush.cache import cached_file, content_key
from pullpush.data.clips import World, load_data, said_of
from pullpush.golden import expected, versions
from pullpush.lab import common, kept
from pullpush.lab.experiments import Derived, Experiment, Trial, trained_of
from pullpush.lab.provenance import Stamp, stamp
from pullpush.lab.scores import Scores
from pullpush.lab.session import Session
from pullpush.metrics.cards import METRICS, Embeddings, Values
from pullpush.parallel import in_threads
from pullpush.training.components import of_recipe
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.evaluate import embed_audio, embed_captions, embed_texts
from pullpush.training.frozen import encoded, on_features
from pullpush.training.recipes import Recipe
from pullpush.training.runs import Plan, train_missing

# After the name of a view on features: with so many times the test clips, in galleries of as many as before.
WIDE, GALLERIES = "/galleries", 8
POINTS = 20  # stretches of a run that `Scores.steps` averages over
NO_ROWS = pd.DataFrame({"system": [], "seed": [], "epoch": [], "step": []})  # of the history of nothing


Cells = dict[tuple[Trial, int], Plan]  # the run of each trial and seed


class View(NamedTuple):
    """Data as an experiment sees it: the session that gives the sizes, the data, and what recipes need for it.

    Training in stages: base: seed → the run that one of this seed starts from; taught: seed → the data, where what is
    learnt from depends on runs of that seed (teachers, clusters), in place of `data`, which then gives their form
    alone; before: seed → the runs that must be there first, in rounds, those of one trained side by side. A base is
    the last of them.

    galleries: equal parts of the test clips, each of which is retrieved from by itself.
    """

    session: Session
    data: World
    overrides: Mapping[str, Any] = MappingProxyType({})
    base: Callable[[int], Plan] | None = None
    taught: Callable[[int], World] | None = None
    before: Callable[[int], Sequence[Sequence[Plan]]] | None = None
    galleries: int = 1

    @property
    def tests(self) -> list[World]:
        """The data; of several galleries the test clips of each, and no others."""
        if self.galleries == 1:
            return [self.data]
        parts = np.split(np.arange(len(self.data.test)), self.galleries)
        clips = [self.data.test.select(rows.tolist(), name=f"gallery {part}") for part, rows in enumerate(parts)]
        return [replace(self.data, splits={"test": each}) for each in clips]

    def recipe(self, name: str, overrides: Mapping[str, Any] = MappingProxyType({})) -> Recipe:
        """A recipe on this data, at the profile's size."""
        features = on_features(self.data) if self.data.trunk else {}
        return common.sized(self.session, name, **common.merged(features, self.overrides, overrides))

    def plan(self, recipe: Recipe, seed: int, watch: Diagnostics | None = None) -> Plan:
        """A recipe's run of a seed on this data."""
        data = self.taught(seed) if self.taught else self.data
        return Plan(data, recipe, seed, watch, self.base(seed).path if self.base else None)


class Ground:
    """What experiments stand on: `material.of(book)` gives one.

    book: the chapter's session; compute_long: whether to compute what is long and was not kept; name: of the data, such
    as "scenes"; parts: the components that make the data, as `golden.versions` takes them; galleries: of a view whose
    name ends in WIDE, which has so many times the test clips, or as many as the name says after it.
    """

    name: str
    galleries = GALLERIES

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        self.book, self.compute_long = book, compute_long
        self.galleries = min(self.galleries, book.settings.points or self.galleries)
        self._views: dict[str, View] = {}

    @property
    def parts(self) -> Sequence[str]:
        raise NotImplementedError

    def view(self, name: str) -> View:
        """Data by its name, such as "frozen"; each is made once. UnknownNameError for names that there are not."""
        if name not in self._views:
            plain, wide, count = name.partition(WIDE)
            galleries = int(count or self.galleries)
            galleries = min(galleries, self.book.settings.points or galleries)
            self._views[name] = self._wide(plain, galleries) if wide and self.galleries > 1 else self._view(plain)
        return self._views[name]

    def _wide(self, name: str, galleries: int) -> View:
        """A view on features, or on audio, with more test clips."""
        view = self.view(name)
        data = load_data(widened(view.data.config, galleries))
        return view._replace(data=encoded(data, view.data.trunk) if view.data.trunk else data, galleries=galleries)

    def _view(self, name: str) -> View:
        raise NotImplementedError


def widened(config: Any, galleries: int) -> Any:
    """What describes scenes or music, however told, with so many times the test clips."""
    inner = {name: widened(getattr(config, name), galleries) for name in ("scenes", "world") if hasattr(config, name)}
    return replace(config, **inner or {"n_test": galleries * config.n_test})


def run(ground: Ground, experiment: Experiment, chapter: str = "") -> Scores:
    """What an experiment finds: computed; of a long one what was kept, or nothing at all.

    A profile with `points` has experiments reduced to so many; smoke itself has all computed, which the tests of the
    book rest on. Otherwise a long one of which nothing was kept as it is declared (other parameters, other data) gives
    empty scores, whose truth value is False, but where `ground.compute_long` says that it is to be computed.

    chapter: where it was kept, if not in the ground's own.
    """
    book, settings = ground.book, ground.book.settings
    if settings.points is not None:
        experiment = experiment.reduced(settings.points)
    if not experiment.long or ground.compute_long or (settings.points is not None and settings.file is None):
        return compute(ground, experiment)
    chapter = chapter or book.chapter
    found = kept.read(experiment, chapter, content_of(ground, experiment))
    if found is None:
        book.missing.append(experiment.name)
        command = kept.command("sweep", chapter, experiment.name, profile=settings.source)
        made = Stamp("never", command, experiment.seeds, 0.0, {})
        return Scores(experiment, {}, NO_ROWS, NO_ROWS, made, stored=True)
    return replace(found, stale=kept.changed(found.stamp))


def compute(ground: Ground, experiment: Experiment, cells: Cells | None = None) -> Scores:
    """Train what is missing, by as many processes as there are cores, score what was not scored, and gather.

    cells: the run of each cell, where `plans_of` has given them already.
    """
    cells = plans_of(ground, experiment) if cells is None else cells
    for plans in rounds(ground, experiment, cells):
        train_missing(plans)
    seconds = sum(plan.seconds for plan in {plan.key: plan for plan in cells.values()}.values())
    made = stamp(versions(*parts_of(ground, experiment)), seeds={seed for _, seed in cells}, seconds=seconds)
    if isinstance(experiment, Derived):
        of_seed = {seed: experiment.make(ground, seed) for seed in dict.fromkeys(seed for _, seed in cells)}
        asked = ((trial, seed) for trial, seed in experiment.cells if seed in of_seed)
        named = {str(trial): trial.system for trial in experiment.trials}
        named |= {name: name for found in of_seed.values() for name in found}
        clips = {(str(trial), seed): of_seed[seed][named[str(trial)]] for trial, seed in asked}
        return Scores(experiment, clips, NO_ROWS, NO_ROWS, made)
    tests = {name: ground.view(name).tests for name in {trial.test for trial, _ in cells} if name}
    jobs = [partial(scored, experiment, plan, tests.get(trial.test, ())) for (trial, _), plan in cells.items()]
    values = in_threads(jobs)
    clips = {(str(trial), seed): found for (trial, seed), found in zip(cells, values, strict=True)}
    tables = [_tables(trial, seed, plan) for (trial, seed), plan in cells.items()]
    history, steps = (pd.concat(parts, ignore_index=True) for parts in zip(*tables, strict=True))
    plain = {(trial.system, seed): plan for (trial, seed), plan in cells.items() if not trial.where}
    return Scores(experiment, clips, history, steps, made, plans=plain)


def plans_of(ground: Ground, experiment: Experiment) -> Cells:
    """The run of each cell; of what is derived those of the experiment that it is derived from."""
    experiment = trained_of(experiment)
    return {(trial, seed): plan_of(ground, experiment, trial, seed) for trial, seed in experiment.cells}


def plan_of(ground: Ground, experiment: Experiment, trial: Trial, seed: int) -> Plan:
    """All that makes one run: data, recipe at the profile's size, seed, what is watched."""
    view = ground.view(trial.data or experiment.data)
    return view.plan(view.recipe(trial.recipe, trial.overrides), seed, experiment.watch)


def rounds(ground: Ground, experiment: Experiment, cells: Cells) -> list[list[Plan]]:
    """All runs of an experiment in the order in which they can be trained, each once: those that others start from or
    learn from, round by round, then the experiment's own, whose bases are then there.
    """
    experiment = trained_of(experiment)
    views = [(ground.view(trial.data or experiment.data), seed) for trial, seed in cells]
    first = merged(view.before(seed) for view, seed in views if view.before)
    earlier = {key for plans in first for key in plans}
    last = [plan for plan in cells.values() if plan.key not in earlier]
    return [*(list(plans.values()) for plans in first), last]


def merged(several: Iterable[Sequence[Iterable[Plan]]]) -> list[dict[str, Plan]]:
    """The rounds of several trainings as those of one: the runs of each round by key, each once."""
    rounds = zip_longest(*several, fillvalue=())
    return [{plan.key: plan for plans in each for plan in plans} for each in rounds]


def parts_of(ground: Ground, experiment: Experiment) -> tuple[str, ...]:
    """The components that an experiment goes through, from its data to its scores, as `golden.versions` takes them.

    Of the encoder that clips are heard through it is the profile's, so that no data need be there to ask.
    """
    if isinstance(experiment, Derived):
        return tuple(sorted({*parts_of(ground, experiment.source), *experiment.parts}))
    found = {*ground.parts, "training/features", *(f"metrics/{name}" for name in experiment.evaluations)}
    for trial in experiment.trials:
        found |= set(of_recipe(common.sized(ground.book, trial.recipe, **trial.overrides)))
    return tuple(sorted(found))


def content_of(ground: Ground, experiment: Experiment) -> str:
    """A name for what was declared: the experiment, and the profile's sizes."""
    return content_key([experiment, ground.book.settings.content, ground.name])


def scored(experiment: Experiment, plan: Plan, tests: Sequence[World] = ()) -> Values:
    """Values of one run on the test clips of some data, one after the other; default: those that it was trained on."""
    load = cache(lambda: plan.train().model)
    each = [_scored(experiment, plan, test, load) for test in tests or [plan.world]]
    return {name: np.concatenate([values[name] for values in each]) for name in each[0]}


def _scored(experiment: Experiment, plan: Plan, test: World, load: Callable[[], nn.Module]) -> Values:
    """Values of one run on some data, from the cache if it was scored before."""
    found: dict[str, np.ndarray] = {}
    embedded = Embedded(load, test, experiment.languages)
    for name in experiment.evaluations:
        does = versions(f"metrics/{name}", "training/evaluate", *test.parts)
        clips = test.singles if "singles" in METRICS[name].needs else test.test
        said = said_of(clips, experiment.languages)  # captions of a test may have been mended since
        key = content_key([plan.key, does, clips.key, test.words, experiment.languages, *said])

        def build(path: Any, score: Callable[[Embeddings], Values] = METRICS[name].make) -> None:
            # pyrefly: ignore[bad-argument-type]
            np.savez_compressed(path, **score(embedded))

        if expected(f"metrics/{name}") is None:  # of the reader's own: what it reads beyond the probe may be another
            found |= METRICS[name].make(embedded)
            continue
        with np.load(cached_file("scores", f"{key}.npz", build), allow_pickle=False) as file:
            found |= {name: file[name] for name in file.files}
    return found


def _tables(trial: Trial, seed: int, plan: Plan) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A run's history, and its steps averaged over stretches, with what tells it from others in front."""
    head = {"system": trial.system, **trial.where, "seed": seed}
    history, steps = (pd.read_csv(plan.path / f"{name}.csv") for name in ("history", "steps"))
    steps = stretches(steps)
    steps = steps.rename(columns={name: f"measured {name}" for name in head})  # SVR reports the radius that is varied
    for column, value in reversed(head.items()):
        for table in (history, steps):
            table.insert(0, column, [value] * len(table))
    return history, steps


def stretches(steps: pd.DataFrame, points: int = POINTS) -> pd.DataFrame:
    """The numbers of a run's steps, averaged over at most `points` stretches of equal length; those not watched (NaN)
    do not count. `step` is the middle of a stretch.
    """
    size = max(1, -(-len(steps) // points))
    return steps.select_dtypes("number").groupby((steps["step"] - 1) // size).mean().reset_index(drop=True)


# ---------------------------------------------------------------- what metrics score


class Embedded:
    """Embeddings of test data, each made when a metric first asks for it; see `metrics.Embeddings`.

    Args:
        load: gives the trained model; called when the first embeddings are made.
        data: has the clips `test`; for zero-shot classification also `singles`, with labels and prompts.
        languages: of the captions; the first is the reference.
    """

    def __init__(self, load: Callable[[], nn.Module], data: Any, languages: Sequence[str]) -> None:
        self.languages = tuple(languages)
        self._load, self._data = load, data
        self._texts: dict[str, Tensor] = {}

    @cached_property
    def audio(self) -> Tensor:
        """The test clips, `(N, d)`."""
        return embed_audio(self._model, self._data.test)

    def texts(self, language: str) -> Tensor:
        """All captions of each of them, `(N, C, d)`."""
        if language not in self._texts:
            self._texts[language] = embed_captions(self._model, self._data.test.captions(language), language=language)
        return self._texts[language]

    @property
    def relevance(self) -> Tensor:
        """How well the captions of each test clip fit each of them, `(N, N)` in [0, 1]."""
        return self._data.test.relevance()

    @cached_property
    def singles(self) -> Tensor:
        """Clips with one event each, `(M, d)`."""
        return embed_audio(self._model, self._data.singles)

    @property
    def labels(self) -> Tensor:
        """Their classes, `(M,)` int64."""
        return self._data.singles.labels

    def prompts(self, language: str, template: str | None = None) -> Tensor:
        """One prompt a class, `(classes, d)`; template: with "{label}" in it, default: the source's own."""
        return embed_texts(self._model, self._data.singles.prompts(language, template), language=language)

    @property
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """What else is known of the test clips, by name."""
        return self._data.test.columns

    @cached_property
    def _model(self) -> nn.Module:
        return self._load()
