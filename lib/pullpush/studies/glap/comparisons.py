"""Where systems stand on tests and what they have over each other, beside the paper's tables; what judges claims.

The tests of this chapter stand where the paper's sets stand (MIRRORS): sounds for AudioCaps, telephone prompts for
LibriSpeech, words of a set that was never learnt from for AISHELL-2. Numbers of the two are not comparable; what the
systems have over each other is.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from pullpush.lab import comparisons, paper
from pullpush.lab.comparisons import Pair, differences
from pullpush.lab.contrasts import Experiments, by_chance, common_seeds, gain, joined
from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.ledger import Measure
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Array, Difference, difference, pseudo_values
from pullpush.studies.glap.experiments import MAIN, PROMPTS, READ
from pullpush.studies.glap.length import ALONE
from pullpush.studies.means import by_seed

LEVELS = ("test", "system", "metric", "value", "low", "high", "chance", "seeds", "clips")
GENERAL: Where = {"ears": MAIN}
TABLE_4 = "T2A mAP@10"


def tests_of(scores: Scores) -> list[str]:
    """The tests of an experiment, in its order."""
    return list(dict.fromkeys(trial.where["test"] for trial in scores.experiment.trials))


def levels(
    scores: Scores, metric: str | Sequence[str], tests: Sequence[str] = (), wheres: Iterable[Where] = ({},)
) -> pd.DataFrame:
    """`lab.comparisons.levels` on tests that score it, with what chance gives: LEVELS, and what tells points apart.

    tests: default: all of the experiment.
    """
    points = [{**where, "test": test} for where in wheres for test in tests or tests_of(scores)]
    table = comparisons.levels(scores, [metric] if isinstance(metric, str) else metric, points)
    chance = [by_chance(row["metric"], row["clips"]) for row in table.to_dict("records")]
    return table.assign(chance=chance).reindex(columns=list(dict.fromkeys([*LEVELS, *table])))


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
    for (system, baseline), (name, tests) in ((pair, group) for pair in pairs for group in groups.items()):
        head = {"system": system, "baseline": baseline, "metric": metric}
        with suppress(ExperimentError):
            values = gain({"": scores}, {"experiment": "", **head, "where": {**where, "test": list(tests)}})
            found.append(({"test": name, **head}, difference(values)))
    return differences(found)


# ---------------------------------------------------------------- beside the paper


class Mirror(NamedTuple):
    """What of ours stands for what of a table; metrics: those that both have, with their direction."""

    table: int
    systems: Mapping[str, str]
    tests: Mapping[str, str]
    metrics: Sequence[str]


SPOKEN = {"prompts eng": "LibriSpeech test-other", "keywords fra": "AISHELL-2 test"}
LABELS = tuple(f"accuracy {language}" for language in ("eng", "deu", "zho", "jpn", "rus"))
STANDS_FOR = {
    "yamnet": "CED-Base",
    "sfx": "Beats",
    "speech_embedding": "Whisper-Base",
    "voice": "WavLM",
    MAIN: "Dasheng",
}
BOTH = {"sound": "AudioCaps", "sound recordings": "Auto-ACD", "music": "MusicCaps", **SPOKEN}
MIRRORS: Mapping[str, Mirror] = {
    "2": Mirror(2, {"all": "GLAP", "silent": "L-CLAP"}, SPOKEN, ("T2A R@1", "T2A R@10", "A2T R@1", "A2T R@10")),
    "2, music": Mirror(
        2, {"all": "GLAP", "silent": "L-CLAP"}, {"music": "MusicCaps"}, ("T2A R@5", "T2A R@10", "A2T R@5", "A2T R@10")
    ),
    "4": Mirror(4, STANDS_FOR, BOTH, (TABLE_4,)),
    "5": Mirror(
        5,
        {"all": "GLAP", "silent": "MLCLAP"},
        {"sound": "AudioCaps", "sound recordings": "Clotho"},
        ("T2A R@1", "A2T R@1"),
    ),
    "7": Mirror(7, {"GLAP": "GLAP"}, {"sound": "ESC-50", "sound recordings": "US8K"}, LABELS),
    "7, music": Mirror(7, {"GLAP": "GLAP"}, {"music": "GTZAN"}, LABELS),
}
THEIRS = "paper's "
BESIDE = ("test", "system", "metric", "here", "low", "high", "chance", "paper's test", "paper's system", "paper")


def beside_paper(scores: Scores, name: str, where: Where | None = None, *, alone: Scores | None = None) -> pd.DataFrame:
    """Our scores, in %, beside a table of the paper: columns BESIDE; NaN where it prints nothing.

    name: of MIRRORS; where: the point of our experiment; alone: of `length.over_length`, for a row of length alone.
    """
    mirror = MIRRORS[name]
    ours = levels(scores, mirror.metrics, [*mirror.tests], [where or {}])
    ours = ours[ours["system"].isin(mirror.systems)]
    if alone and (spoken := [test for test in mirror.tests if test in tests_of(alone)]):
        of_length = levels(alone, mirror.metrics, spoken)
        ours = pd.concat([ours, of_length[of_length["system"] == ALONE]], ignore_index=True)
    ours = ours.rename(columns={"value": "here"})
    ours[["here", "low", "high", "chance"]] *= 100
    ours["paper's test"] = ours["test"].map(mirror.tests)
    ours["paper's system"] = ours["system"].map({**mirror.systems, ALONE: "–"})
    theirs = []
    for row in ours.to_dict("records"):
        first, second = row["metric"].split(" ")  # "T2A R@1", "accuracy deu"
        cell = {"task": first, "metric": second}
        if first == "accuracy":
            cell = {"task": "zero-shot", "metric": first, "language": second}
        cell |= {"system": row["paper's system"], "dataset": row["paper's test"]}
        theirs.append(paper.printed("glap", mirror.table, cell)[0])
    return ours.assign(paper=theirs)[[*BESIDE]]


def readable(table: pd.DataFrame, across: str = "metric") -> pd.DataFrame:
    """What `beside_paper` gives, to print: ours, and in brackets the paper's number, set and system.

    across: what stands in columns, "metric" or "test".
    """
    rows = table.to_dict("records")
    names = {side: [f"{row[side]} ({row[THEIRS + side]})" for row in rows] for side in ("test", "system")}
    cells = [f"{row['here']:.1f} ({row['paper']:.1f})".replace("nan", "–") for row in rows]
    index = [name for name in names if name != across]
    wide = table.assign(**names, cell=cells).pivot_table("cell", index, across, aggfunc="first", sort=False)
    return wide.reset_index().rename_axis(columns=None)


# ---------------------------------------------------------------- what judges claims that are no contrast

LATE = 0.75  # from here on epochs are the last ones
KEYWORDS = "keywords "  # what the names of their tests begin with
LEARNT = ("eng", "fra", "spa", "ita", "rus")  # languages of speech in training that the text encoder reads
OWN = {"sound": "sound", "sound recordings": "sound", "music": "music"}  # test → the prompt of its domain


def best_before_end(found: Experiments) -> Difference:
    """How much of training comes after the best epoch, less the last part: by seed, as a share."""
    scores = found["domains"]
    trial = scores.trial("all", {**GENERAL, "test": tests_of(scores)[0]})
    shares = []
    for seed in scores.seeds("all", trial.where):
        history = scores.rows(scores.history, trial, seed).sort_values("epoch")
        shares.append(LATE - history["epoch"].iloc[int(history["R@1"].argmax())] / history["epoch"].max())
    return by_seed(shares)


def over_sound_encoders(found: Experiments) -> Difference:
    """The speech encoder over every encoder of sound events that there is, in the mean of these, over common seeds."""
    pairs = (("encoders", "yamnet"), ("sound-effects", "sfx"))
    of_all = {"system": "speech_embedding", "metric": TABLE_4, "where": {"test": "prompts eng"}}
    sides = [{"experiment": one, "baseline": each, **of_all} for one, each in pairs]
    seeds = common_seeds(found, *sides)
    return difference(np.mean([gain(found, side, seeds=seeds) for side in sides], axis=0))


def named(scores: Scores, test: str, language: str = "eng", system: str = "GLAP") -> Array:
    """Accuracy of a test with prompts of a language, by seed and class, `(S, N)`."""
    return scores.values(system, f"accuracy {language}", {"test": test})


def spotted(scores: Scores, system: str = "GLAP") -> dict[str, Array]:
    """Accuracy of single words by language, by seed and word."""
    tests = [test for test in tests_of(scores) if test.startswith(KEYWORDS)]
    return {(each := test.removeprefix(KEYWORDS)): named(scores, test, each, system) for test in tests}


def over_length(found: Experiments) -> dict[str, Array]:
    """What naming single words has over length alone, by language, by seed and word."""
    alone = found["over-length"]
    if not (accuracies := spotted(found["named-speech"])):
        raise ExperimentError("no test of keywords")
    return {
        each: accuracy - alone.values(ALONE, f"accuracy {each}", {"test": f"{KEYWORDS}{each}"})
        for each, accuracy in accuracies.items()
    }


def fewer_is_easier(found: Experiments) -> Difference:
    """Rank correlation of what accuracy has over length alone and the number of words to choose from, over languages:
    pseudo-values by language and seed.
    """
    parts = list(over_length(found).values())
    if len(parts) < 3:
        raise ExperimentError(f"{len(parts)} languages have no rank correlation")
    words = np.array([part.shape[1] for part in parts], float)
    accuracy = np.stack([part.mean(axis=1) for part in parts], axis=1)  # (S, languages)

    def correlation(pairs: Array) -> float:
        return float(spearmanr(pairs[:, 0], pairs[:, 1]).statistic)

    return difference([pseudo_values(correlation, np.stack([words, row], axis=1)) for row in accuracy])


def in_other_languages(found: Experiments) -> Difference:
    """Accuracy over chance with labels that are not English, over tests and languages."""
    languages = [each for each in READ if each != "eng"]
    parts = [[named(found[f"named-{OWN[test]}"], test, each) for test in OWN] for each in languages]
    over_chance = [joined([values - 1 / values.shape[1] for values in tests]) for tests in parts]
    return difference(np.mean(over_chance, axis=0))


def learnt_words(found: Experiments) -> Difference:
    """What speech among the clips adds to naming words of the languages of training, in the mean of these."""
    ours, theirs = (spotted(found["named-speech"], system) for system in ("GLAP", "no speech"))
    if missing := [each for each in LEARNT if each not in ours]:
        raise ExperimentError(f"no words in {', '.join(missing)}")
    return difference(joined([ours[each] - theirs[each] for each in LEARNT]))


def own_prompts(found: Experiments) -> Difference:
    """Each domain with its own prompt over the mean of the other prompts."""
    parts = []
    for test, own in (("sound", "sound"), ("music", "music"), ("keywords eng", "speech")):
        by_kind = {kind: named(found[f"named-{kind}"], test) for kind in PROMPTS}
        parts.append(by_kind.pop(own) - np.mean(list(by_kind.values()), axis=0))
    return difference(joined(parts))


MEASURES: Mapping[str, Measure] = {
    "best-before-end": Measure(("domains",), best_before_end),
    "over-sound-encoders": Measure(("encoders", "sound-effects"), over_sound_encoders),
    "own-prompts": Measure(tuple(f"named-{kind}" for kind in PROMPTS), own_prompts),
    "keywords-heard": Measure(("named-speech",), learnt_words),
    "keywords-many-languages": Measure(
        ("named-speech", "over-length"), lambda found: difference(joined(list(over_length(found).values())))
    ),
    "fewer-keywords-easier": Measure(("named-speech", "over-length"), fewer_is_easier),
    "named-in-other-languages": Measure(("named-sound", "named-music"), in_other_languages),
}
