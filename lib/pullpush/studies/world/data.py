"""The experiment of the page *Ears*: systems with several audio encoders, on tests that hold out more and more.

context = Context(book)
search = rates(systems, (1e-3, 3e-4), seeds=(1000,), epochs=2)  # one budget for all, on validation
best = tuning.best_points(compute.run(context, search))
scores = compute.run(context, on_tests("ears", systems, best, seeds=range(3)))
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor

from pullpush.data.banks import BANKS
from pullpush.data.clips import Clips, World
from pullpush.data.scenes.held_out import HeldOutConfig, OwnHeldOutConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.lab.comparisons import levels
from pullpush.lab.compute import Ground, View
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.material import PARTS
from pullpush.lab.scores import Scores
from pullpush.lab.session import Session
from pullpush.lab.tuning import grid
from pullpush.metrics._retrieval import scores_by_chance
from pullpush.studies.own_data import is_small
from pullpush.training.frozen import encoded
from pullpush.training.trunk import Published

TESTS: Mapping[str, str] = {  # what pages call a test → the split of the world
    "new combinations": "test",
    "known recordings": "heard",
    "held-out recordings": "recordings",
    "held-out events": "events",
}
KNOWN = "yamnet"  # the encoder that was trained elsewhere
RANDOM, FROZEN, UPPER = "YAMNet, random, frozen", "YAMNet, frozen", "YAMNet, upper layers trained"
SCRATCH, WHOLE = "CNN, from scratch", "YAMNet, all trained"
BY_COST = (FROZEN, UPPER, SCRATCH, WHOLE)  # by the layers that a step passes through, forward and backward
SCORES = ("T2A R@1", "A2T R@1", "T2A R@10", "A2T R@10", "R@1", "T2A nDCG@10", "A2T nDCG@10")


class System(NamedTuple):
    """An encoder and how it is trained. view: that it learns from; overrides: what its recipe has of its own."""

    view: str
    overrides: Mapping[str, Any] = {}


def systems_of(book: Session) -> dict[str, System]:
    """The systems, the cheapest first; the first is a control, the same network with random weights.

    Where nothing is fetched small networks stand in for YAMNet.
    """
    small = {"audio": "cnn", "encoder_options": {"audio_channels": (4, 4, 8)}}
    return {
        RANDOM: System("random"),
        FROZEN: System("frozen"),
        UPPER: System("upper"),
        SCRATCH: System("sound", {"audio": "cnn"}),
        WHOLE: System("sound", small if is_small(book.settings) else {"audio": KNOWN}),
    }


class Context(Ground):
    """What the experiments stand on (see `compute.Ground`): one world with held-out recordings and events.

    A view is "sound", or what YAMNet made of it: "frozen", "random", "upper"; each is tested on new combinations, and
    with "/heard", "/recordings" or "/events" behind it on that split.
    """

    name = "ears"

    @property
    def parts(self) -> Sequence[str]:
        return *PARTS, "data/held_out", f"audio/{KNOWN}", "audio/upper"

    @property
    def tests(self) -> Mapping[str, str]:
        """Those of `TESTS` that the bank is large enough for: all, unless it is one's own."""
        if not isinstance(self.config, OwnHeldOutConfig):
            return TESTS
        splits = self.view("sound").data.splits
        return {test: split for test, split in TESTS.items() if split in splits}

    @property
    def config(self) -> HeldOutConfig:
        """A third of the profile's training scenes and half of its tests, for systems that take minutes; of a bank
        of one's own, the further takes are recordings of its own.
        """
        sizes: dict[str, Any] = {**self.book.settings.world}
        sizes |= {
            name: max(24, sizes[name] // part) for name, part in {"n_train": 3, "n_valid": 2, "n_test": 2}.items()
        }
        sizes |= {"n_single_per_event": 1} if is_small(self.book.settings) else {}
        world = WorldConfig(**sizes)
        if not BANKS[world.bank.partition(":")[0]].categories:
            return OwnHeldOutConfig(world)
        return HeldOutConfig(world, takes="" if world.bank == "synthetic" else "takes")

    def _view(self, name: str) -> View:
        way, _, test = name.partition("/")
        if test:
            data = self.view(way).data
            return View(self.book, replace(data, splits={**data.splits, "test": data.split(test)}))
        if way == "sound":
            return View(self.book, self.config.load())
        drawn = {"pretrained": False}
        options = drawn if is_small(self.book.settings) else {}
        trunks = {
            "random": Published("cnn" if options else KNOWN, {} if options else drawn, seed=1),
            "frozen": Published(KNOWN, options),
            "upper": Published(KNOWN, options, level="lower"),
        }
        return View(self.book, encoded(self.view("sound").data, trunks[way]))


def rates(systems: Mapping[str, System], values: Sequence[float], *, seeds: Iterable[int], epochs: int) -> Experiment:
    """The search for a learning rate: the same values and epochs for every system, on seeds of its own."""
    of = {name: ("infonce", {**system.overrides, "epochs": epochs}) for name, system in systems.items()}
    views = {name: (system.view, "") for name, system in systems.items()}
    return grid("rates", of, {"lr": values}, seeds=seeds, views=views, data="sound", long=True)


def on_tests(
    name: str,
    systems: Mapping[str, System],
    best: Mapping[str, Mapping[str, Any]],
    *,
    seeds: Iterable[int],
    tests: Mapping[str, str] = TESTS,
) -> Experiment:
    """Every system with its best learning rate, trained once a seed, on every test, or on some."""
    trials = [
        Trial(
            label,
            "infonce",
            {**system.overrides, **best.get(label, {})},
            {"test": test},
            data=system.view,
            test="" if split == "test" else f"{system.view}/{split}",
        )
        for label, system in systems.items()
        for test, split in tests.items()
    ]
    return Experiment(name, tuple(trials), tuple(seeds), data="sound", evaluations=("retrieval", "graded"), long=True)


def standings(scores: Scores, world: World) -> pd.DataFrame:
    """Every system on every test: test, system, metric, value, low, high (95 % over seeds and clips), chance, seeds,
    clips; fractions. The world says what chance gives.
    """
    return beside_chance(levels(scores, SCORES), world) if scores else pd.DataFrame()


def beside_chance(table: pd.DataFrame, world: World) -> pd.DataFrame:
    """Levels on tests, their intervals within 0 … 1, with what chance gives of each before the last two columns."""
    lucky = {test: by_chance(world.split(TESTS[test])) for test in table["test"].unique()}
    chance = [lucky[test][metric] for test, metric in zip(table["test"], table["metric"], strict=True)]
    table = table.assign(low=table["low"].clip(lower=0), high=table["high"].clip(upper=1))
    table.insert(len(table.columns) - 2, "chance", chance)
    return table


def by_chance(clips: Clips) -> dict[str, float]:
    """What a random order of some clips gives: metric → expectation; fractions."""
    relevance, captions = clips.relevance(), len(clips.captions("eng")[0])
    found = scores_by_chance([captions] * len(relevance))
    found["R@1"] = (found["T2A R@1"] + found["A2T R@1"]) / 2
    found["T2A nDCG@10"] = gain_by_chance(relevance, 10)
    found["A2T nDCG@10"] = gain_by_chance(relevance.T.repeat_interleave(captions, dim=1), 10)
    return found


def gain_by_chance(relevance: Tensor, k: int) -> float:
    """Expected nDCG@k of a random order, a query a row: `(Q, M)` graded relevance.

    >>> gain_by_chance(torch.tensor([[1.0, 1.0]]), 2), round(gain_by_chance(torch.tensor([[1.0, 0.0]]), 1), 3)
    (1.0, 0.5)
    """
    discount = torch.arange(2, min(k, relevance.shape[1]) + 2, dtype=torch.float64).log2().reciprocal()
    ideal = relevance.double().topk(len(discount), dim=1).values @ discount
    return float((relevance.double().mean(dim=1) * discount.sum() / ideal).mean())


def side_by_side(table: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """`standings`, and rows like them, as a page shows them: a row a system and test, a column a metric, in per cent,
    and last what chance gives.
    """
    part = table[table["metric"].isin(metrics)]
    lucky = part.drop_duplicates(["test", "metric"]).assign(system="by chance", value=lambda rows: rows["chance"])
    both = pd.concat([part, lucky.assign(seeds=0)])[["test", "system", "metric", "value", "seeds"]]
    both["seeds"] = [f"{count:.0f}" if count > 0 else "" for count in both["seeds"]]
    wide = both.assign(cell=both["value"].mul(100).map("{:.1f}".format)).pivot_table(
        index=["test", "system", "seeds"], columns="metric", values="cell", aggfunc="first", sort=False
    )
    wide = wide[list(metrics)].rename(columns="{} (%)".format).reset_index().rename_axis(columns=None)
    wide = wide[[name for name in wide if name != "seeds"] + ["seeds"]]
    return wide.sort_values("test", key=lambda tests: tests.map(list(TESTS).index), kind="stable")


def contents(world: World) -> pd.DataFrame:
    """What is learnt from and what each test holds: scenes of, scenes, events, recordings; 0 of a test that the bank
    is too small for.
    """
    rows = []
    for label, split in {"training": "train", "validation": "valid", **TESTS}.items():
        scenes = world.split(split).columns["scene"] if split in world.splits else []
        sounds = [sound for scene in scenes for sound in scene.sounds]
        recordings = {(sound.event, sound.clip) for sound in sounds}
        rows.append((label, len(scenes), len({event for event, _ in recordings}), len(recordings)))
    return pd.DataFrame(rows, columns=["scenes of", "scenes", "events", "recordings"])
