"""Where systems stand on tests and what they have over each other, beside the paper's tables.

The tests of this chapter stand where the paper's sets stand (MIRRORS): sounds for AudioCaps, telephone prompts for
LibriSpeech, words of a set that was never learnt from for AISHELL-2. Numbers of the two are not comparable; what the
systems have over each other is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from pullpush.lab import comparisons
from pullpush.lab.comparisons import Pair, differences
from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.paper import paper_table
from pullpush.lab.scores import Scores
from pullpush.metrics.cards import METRICS
from pullpush.metrics.inference import Array, difference
from pullpush.studies.glap.experiments import MAIN, PROMPTS, SOUNDS, TOLD
from pullpush.studies.measures import joined

LEVELS = ("test", "system", "metric", "value", "low", "high", "chance", "seeds", "clips")


def values(scores: Scores, system: str, metric: str, tests: Sequence[str], where: Where | None = None) -> Array:
    """A score by seed and clip over several tests, `(S, N)`, whose mean is the mean of the tests' means.

    Raises:
        ExperimentError: a system, test or metric that is not there.
    """
    return joined([scores.values(system, metric, {**(where or {}), "test": test}) for test in tests])


def over_tests(scores: Scores, pair: Pair, metric: str, tests: Sequence[str], where: Where | None = None) -> Array:
    """What a system has over a baseline, over several tests, `(S, N)`."""
    ours, theirs = (values(scores, system, metric, tests, where) for system in pair)
    return ours - theirs


def tests_of(scores: Scores) -> list[str]:
    """The tests of an experiment, in its order."""
    return list(dict.fromkeys(trial.where["test"] for trial in scores.experiment.trials))


def by_chance(metric: str, clips: int) -> float:
    """What a random order scores where one of so many clips, or classes, is right; NaN where unknown.

    >>> round(by_chance("T2A R@10", 50), 3), by_chance("accuracy deu", 4)
    (0.2, 0.25)
    """
    if metric == "R@1":  # the mean of both directions, one caption a clip
        return 1 / clips
    known = [score.chance for card in METRICS.values() for score in card.scores if score.name == metric]
    return float(known[0](1, clips)) if known and known[0] else float("nan")


def levels(
    scores: Scores, metric: str | Sequence[str], tests: Sequence[str] = (), wheres: Iterable[Where] = ({},)
) -> pd.DataFrame:
    """`lab.comparisons.levels` on tests that score it, with what chance gives: LEVELS, and what tells points apart.

    tests: default: all of the experiment.
    """
    points = [{**where, "test": test} for where in wheres for test in tests or tests_of(scores)]
    metrics = [metric] if isinstance(metric, str) else metric
    has = [at for at in points if any(_scored(scores, at, each) for each in metrics)]
    found = comparisons.levels(scores, metrics, has)
    chance = [by_chance(row["metric"], row["clips"]) for row in found.to_dict("records")]
    return found.assign(chance=chance).reindex(columns=list(dict.fromkeys([*LEVELS, *found])))


def _scored(scores: Scores, where: Where, metric: str) -> bool:
    """Whether a score is there: labels are not in every language."""
    cells = [str(trial) for trial in scores.experiment.trials if where.items() <= trial.where.items()]
    return any(name in cells and metric in found for (name, _), found in scores.clips.items())


def gains(
    scores: Scores,
    pairs: Iterable[Pair],
    metric: str,
    where: Where,
    pooled: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> pd.DataFrame:
    """What systems have over baselines on each test and in the mean of several, as `lab.comparisons.gains` has it.

    pooled: name → tests; left out where one of them is not there.
    """
    groups = {test: [test] for test in tests_of(scores)} | dict(pooled)
    found = []
    for pair in pairs:
        for name, tests in groups.items():
            with suppress(ExperimentError):
                head = {"test": name, "system": pair[0], "baseline": pair[1], "metric": metric}
                found.append((head, difference(over_tests(scores, pair, metric, tests, where))))
    return differences(found)


def by_language(sounds: Scores, music: Scores, languages: Sequence[str]) -> pd.DataFrame:
    """Accuracy of naming in every language, each test by the prompt of its domain: columns LEVELS and language.

    sounds, music: of the experiments that ask by the prompt for sounds and by that for music.
    """
    parts = [
        levels(scores, f"accuracy {each}", tests).assign(language=each)
        for scores, tests in ((sounds, SOUNDS), (music, ("music",)))
        for each in languages
    ]
    found = pd.concat(parts, ignore_index=True)
    return found[found["system"].isin(TOLD)].reset_index(drop=True)


def by_prompt(named: Mapping[str, Scores], tests: Sequence[str], system: str = "GLAP") -> pd.DataFrame:
    """Accuracy of one system by each prompt of Table 3, in English: columns LEVELS, the prompt in place of the system.

    named: of PROMPTS → scores.
    """
    parts = []
    for kind, title in zip(PROMPTS, ("sound prompt", "music prompt", "bare label"), strict=True):
        found = levels(named[kind], "accuracy eng", tests)
        parts.append(found[found["system"] == system].assign(system=title))
    return pd.concat(parts, ignore_index=True)


# ---------------------------------------------------------------- beside the paper


class Mirror(NamedTuple):
    """What of ours stands for what of a table; metrics: those that both have, with their direction."""

    table: int
    systems: Mapping[str, str]
    tests: Mapping[str, str]
    metrics: Sequence[str]


SPOKEN = {"prompts eng": "LibriSpeech test-other", "keywords fra": "AISHELL-2 test"}
LABELS = tuple(f"accuracy {language}" for language in ("eng", "deu", "zho", "jpn", "rus"))
NO_SPEECH = {"all": "GLAP", "silent": "L-CLAP"}
STANDS_FOR = {
    "yamnet": "CED-Base",
    "sfx": "Beats",
    "speech_embedding": "Whisper-Base",
    "voice": "WavLM",
    MAIN: "Dasheng",
}
MIRRORS: Mapping[str, Mirror] = {
    "2": Mirror(2, NO_SPEECH, SPOKEN, ("T2A R@1", "T2A R@10", "A2T R@1", "A2T R@10")),
    "2, music": Mirror(2, NO_SPEECH, {"music": "MusicCaps"}, ("T2A R@5", "T2A R@10", "A2T R@5", "A2T R@10")),
    "4": Mirror(
        4,
        STANDS_FOR,
        {"sound": "AudioCaps", "sound recordings": "Auto-ACD", "music": "MusicCaps", **SPOKEN},
        ("T2A mAP@10",),
    ),
    "5": Mirror(
        5,
        {"all": "GLAP", "silent": "MLCLAP"},
        {"sound": "AudioCaps", "sound recordings": "Clotho"},
        ("T2A R@1", "A2T R@1"),
    ),
    "7": Mirror(7, {"GLAP": "GLAP"}, {"sound": "ESC-50", "sound recordings": "US8K"}, LABELS),
    "7, music": Mirror(7, {"GLAP": "GLAP"}, {"music": "GTZAN"}, LABELS),
}
THEIRS = {"test": "paper's test", "system": "paper's system"}
NUMBERS = ("here", "low", "high", "chance")
BESIDE = ("test", "system", "metric", *NUMBERS, "paper's test", "paper's system", "paper")


def beside_paper(scores: Scores, name: str, where: Where | None = None) -> pd.DataFrame:
    """Our scores, in %, beside a table of the paper: columns BESIDE; NaN where it prints nothing.

    name: of MIRRORS; where: the point of our experiment.
    """
    mirror = MIRRORS[name]
    ours = levels(scores, mirror.metrics, [*mirror.tests], [where or {}])
    ours = ours[ours["system"].isin(mirror.systems)].rename(columns={"value": "here"})
    ours[[*NUMBERS]] *= 100
    ours["paper's test"] = ours["test"].map(mirror.tests)
    ours["paper's system"] = ours["system"].map(mirror.systems)
    ours["paper"] = [_printed(mirror.table, row) for row in ours.to_dict("records")]
    return ours[[*BESIDE]]


def _printed(number: int, row: Mapping[str, str]) -> float:
    """What a table of the paper has where a row of ours stands."""
    first, second = row["metric"].split(" ")  # "T2A R@1", "accuracy deu"
    cell = {"task": first, "metric": second}
    if first == "accuracy":
        cell = {"task": "zero-shot", "metric": first, "language": second}
    wanted = {"system": row["paper's system"], "dataset": row["paper's test"], **cell}
    table = paper_table("glap", number)
    found = np.logical_and.reduce([table[name] == value for name, value in wanted.items()])
    return float(table.loc[found, "value"].astype(float).mean())


def readable(table: pd.DataFrame, across: str = "metric") -> pd.DataFrame:
    """What `beside_paper` gives, to print: ours, and in brackets the paper's number, set and system.

    across: what stands in columns, "metric" or "test".
    """
    rows = table.to_dict("records")
    told = {side: [f"{row[side]} ({row[theirs]})" for row in rows] for side, theirs in THEIRS.items()}
    cells = [f"{row['here']:.1f} ({row['paper']:.1f})".replace("nan", "–") for row in rows]
    index = [name for name in ("test", "system") if name != across]
    named = table.assign(**told, cell=cells)
    wide = named.pivot_table(index=index, columns=across, values="cell", aggfunc="first", sort=False)
    return wide.reset_index().rename_axis(columns=None)
