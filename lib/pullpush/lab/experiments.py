"""Experiments as data: systems, what varies, seeds, data.

    radius = Experiment.of("radius", {"SVR": ("infonce+bi-static-svr", {"tau": 0.07})}, seeds=(0, 1, 2),
                           varies={"radius": {r: {"radius": r} for r in (0.0, 0.3, 0.6)}})
    scores = compute.run(ground, radius)

Runs are kept by the content of all that shapes them, so that experiments share them and a killed one goes on. A *long*
experiment takes more than a chapter's minutes: a chapter reads what `pullpush keep` kept of it (see kept.py).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pullpush.errors import PullPushError, check_all_known
from pullpush.metrics.cards import METRICS, Values
from pullpush.training.diagnostics import Diagnostics

System = tuple[str, Mapping[str, Any]]  # a recipe's name, and its overrides
Where = Mapping[str, Any]


class ExperimentError(PullPushError, ValueError):
    """An experiment that cannot be made as it was declared, or asked for something that is not in it."""


@dataclass(frozen=True)
class Trial:
    """One system at one point of what varies.

    Attributes:
        system: its label.
        recipe, overrides: see `recipes.recipe`.
        where: what else tells it from other trials, such as {"times": 8}; columns of the tables.
        data, test: names of views; "" for the experiment's own, and for the data that was trained on.
        seeds: () for the experiment's own.
    """

    system: str
    recipe: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    where: Where = field(default_factory=dict)
    data: str = ""
    test: str = ""
    seeds: tuple[int, ...] = ()

    def __hash__(self) -> int:
        return hash(str(self))  # its label; mappings have none

    def __str__(self) -> str:
        return " ".join([self.system, *(f"{name}={value}" for name, value in self.where.items())])


@dataclass(frozen=True)
class Experiment:
    """Trials crossed with seeds.

    Attributes:
        name: letters, digits and hyphens; unique in its chapter.
        trials: see Trial.
        seeds: of training.
        data: name of a view of the chapter's ground.
        languages: that are scored, one column of values each where there are several.
        evaluations: names in `metrics.METRICS`.
        watch: what is measured while training.
        long: whether it takes more than a chapter's minutes.

    Raises:
        ExperimentError: no trials or seeds, or two trials that nothing tells apart.
        UnknownNameError: an evaluation that is not registered.
    """

    name: str
    trials: tuple[Trial, ...]
    seeds: tuple[int, ...]
    data: str = "frozen"
    languages: tuple[str, ...] = ("eng",)
    evaluations: tuple[str, ...] = ("retrieval",)
    watch: Diagnostics | None = None
    long: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", tuple(self.seeds))
        object.__setattr__(self, "languages", tuple(self.languages))
        if not self.trials or not self.seeds:
            raise ExperimentError(f"experiment {self.name!r} needs at least one system and one seed")
        labels = [str(trial) for trial in self.trials]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise ExperimentError(f"experiment {self.name!r} holds {', '.join(twice)} twice: give it another label")
        check_all_known("evaluation", self.evaluations, METRICS)

    @classmethod
    def of(
        cls,
        name: str,
        systems: Mapping[str, System],
        *,
        seeds: Iterable[int],
        varies: Mapping[str, Mapping[Any, Mapping[str, Any]]] | None = None,
        settings: Mapping[str, Mapping[Any, Mapping[str, Any]]] | None = None,
        **options: Any,
    ) -> "Experiment":
        """Every system at every point of what varies.

        Args:
            systems: label → recipe and overrides.
            varies: column → value → further overrides; of several columns every combination.
            settings: the same for several settings that are tried one after the other, not crossed: their names and
                values become the columns "setting" and "value".
            options: other attributes.
        """
        points: list[tuple[Where, Mapping[str, Any]]] = [({}, {})] if varies or not settings else []
        for column, values in (varies or {}).items():
            points = [
                ({**where, column: value}, {**changes, **more})
                for where, changes in points
                for value, more in values.items()
            ]
        points += [
            ({"setting": key, "value": value}, changes)
            for key, values in (settings or {}).items()
            for value, changes in values.items()
        ]
        trials = tuple(
            Trial(system, recipe, {**overrides, **changes}, where)
            for where, changes in points
            for system, (recipe, overrides) in systems.items()
        )
        return cls(name, trials, tuple(seeds), **options)

    @property
    def cells(self) -> Iterator[tuple[Trial, int]]:
        """Every trial with every seed."""
        return ((trial, seed) for trial in self.trials for seed in trial.seeds or self.seeds)

    def once_more(self, name: str, seeds: Iterable[int], tested: str, **options: Any) -> Self:
        """The same trials under another name, with other seeds and tested on other clips.

        tested: what comes after the name of the view that each is tested on; options: other attributes.
        """
        trials = (replace(each, test=f"{each.test or each.data or self.data}{tested}") for each in self.trials)
        return replace(self, name=name, trials=tuple(trials), seeds=tuple(seeds), **options)

    def reduced(self, most: int = 2) -> Self:
        """The same with at most so many seeds, and numbers of each that varies, the first that are declared; of several
        settings that are tried one after the other (see `of`) so many of each. What has a name stays: pages ask for it.

        Example:
            >>> radius = Experiment.of("radius", {"SVR": ("svr", {})}, seeds=range(9),
            ...                        varies={"radius": {r: {"radius": r} for r in (0.0, 0.1, 0.2)}})
            >>> [str(trial) for trial in radius.reduced().trials]
            ['SVR radius=0.0', 'SVR radius=0.1']
        """
        first: dict[tuple[str, str], list[Any]] = {}
        for trial in self.trials:
            for key, value in _varied(trial):
                values = first.setdefault(key, [])
                if value not in values and (isinstance(value, str) or len(values) < most):
                    values.append(value)
        trials = [
            replace(trial, seeds=trial.seeds[:most])
            for trial in self.trials
            if all(value in first[key] for key, value in _varied(trial))
        ]
        return replace(self, trials=tuple(trials), seeds=self.seeds[:most])

    def __add__(self, other: "Experiment") -> "Experiment":
        """The trials of both, which differ in nothing else that the experiment says."""
        return replace(self, trials=self.trials + other.trials)


@dataclass(frozen=True)
class Derived(Experiment):
    """What trained models give that is no score of one of them, such as ensembles and topics; it trains none itself.

    Attributes:
        source: the experiment whose runs are trained before.
        make: ground and seed → system, or trial → values, as evaluations give them; `parts` name the components of it.
    """

    source: Experiment = field(kw_only=True)
    make: Callable[[Any, int], Mapping[str, Values]] = field(kw_only=True, compare=False)
    parts: tuple[str, ...] = ()

    def reduced(self, most: int = 2) -> Self:
        return replace(super().reduced(most), source=self.source.reduced(most))


def trained_of(experiment: Experiment) -> Experiment:
    """The experiment whose runs are trained: itself, or what it is derived from."""
    return experiment.source if isinstance(experiment, Derived) else experiment


def _varied(trial: Trial) -> list[tuple[tuple[str, str], Any]]:
    """What varies of a trial: (the setting that it belongs to, the name), and its value."""
    setting = str(trial.where.get("setting", ""))
    return [((setting, name), value) for name, value in trial.where.items() if name != "setting"]


def without_seeds(experiment: Experiment) -> Experiment:
    """The same declaration, whatever its seeds are.

    >>> ten = Experiment.of("radius", {"InfoNCE": ("infonce", {})}, seeds=range(10))
    >>> without_seeds(ten) == without_seeds(replace(ten, seeds=(3,)))
    True
    """
    return replace(experiment, seeds=(0,), trials=tuple(replace(trial, seeds=()) for trial in experiment.trials))


def summary(experiment: Experiment) -> dict[str, Any]:
    """A declaration to be read: systems with their recipes, what varies, data, languages, evaluations."""
    systems, varies = {str(trial.system): trial.recipe for trial in experiment.trials}, {}
    for name, value in (item for trial in experiment.trials for item in trial.where.items()):
        varies.setdefault(name, {})[str(value)] = None
    data = dict.fromkeys(trial.data or experiment.data for trial in experiment.trials)
    tested = dict.fromkeys(trial.test for trial in experiment.trials if trial.test)
    found = {"systems": systems, "varies": {name: list(values) for name, values in varies.items()}}
    found |= {"trained on": list(data), "tested on": list(tested)}
    found |= {"languages": list(experiment.languages), "evaluations": list(experiment.evaluations)}
    return {name: value for name, value in found.items() if value}
