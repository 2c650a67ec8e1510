"""What chapter 2's experiments found: tables in points, what runs did over time, and the 2³ design of the radius."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from pullpush.errors import PullPushError
from pullpush.lab import comparisons
from pullpush.lab.comparisons import differences, gains
from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.material import Labelled
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference, difference, main_effect
from pullpush.studies.means import by_seed
from pullpush.studies.svr.data import EFFECTS, SCALED, TITLES, TWICE, factorial
from pullpush.training.evaluate import zero_shot
from pullpush.training.loop import Result

NAMES = {
    TWICE: "InfoNCE twice (R = 0)",
    "siglip+infonce": "SigLIP + InfoNCE (R = 0)",
    "reweight": "Simple Reweight, gradient",
    "reweight-softmax": "Simple Reweight, softmax",
}
named, paired, standings = (
    partial(function, names=NAMES) for function in (comparisons.named, comparisons.paired, comparisons.standings)
)
NUMBERS = {"value": "difference", "low": "low", "high": "high", "half width": "half width", "p": "p (Holm)"}


def in_points(table: pd.DataFrame, heads: Sequence[str], *, scale: float = 100) -> pd.DataFrame:
    """`lab.comparisons.differences` as this chapter saves them: the `heads`, the difference in points, its p, n."""
    scaled = table.assign(**{name: scale * table[name] for name in list(NUMBERS)[:4]})
    return scaled[[*heads, *NUMBERS, "seeds", "clips"]].rename(columns=NUMBERS | {"clips": "items"})


def zero_shots(runs: Mapping[tuple[str, int], Result], sounds: Mapping[str, Labelled]) -> pd.DataFrame:
    """Zero-shot accuracy with the paper's English prompt: columns set, system, seed, accuracy, chance."""
    if not sounds:
        raise PullPushError(
            "these data have captions and no labels: for zero-shot classification name labelled datasets, such as "
            "esc50, as `zero_shot` in a profile"
        )
    rows = []
    for name, (split, prompts) in sounds.items():
        for (system, seed), run in runs.items():
            table = zero_shot(run.model, split, prompts).set_index("metric")
            rows.append((name, system, seed, table.loc["accuracy", "value"], table.loc["accuracy", "chance"]))
    return pd.DataFrame(rows, columns=["set", "system", "seed", "accuracy", "chance"])


# ---------------------------------------------------------------- runs over time, one number a seed


def over_training(scores: Scores, system: str, column: str) -> np.ndarray:
    """A measurement of a system by seed and stretch of training, `(S, T)`."""
    steps = scores.steps[scores.steps["system"] == system]
    return np.stack([rows.sort_values("step")[column].to_numpy(float) for _, rows in steps.groupby("seed")])


def late(scores: Scores, system: str, column: str) -> np.ndarray:
    """A system's mean measurement in the last quarter of those stretches of training that have it, `(S, 1)`."""
    values = over_training(scores, system, column)
    values = values[:, np.isfinite(values).all(axis=0)]
    return values[:, -max(1, values.shape[1] // 4) :].mean(axis=1, keepdims=True)


def fall(values: np.ndarray) -> np.ndarray:
    """First quarter minus last quarter of training, of measurements over it `(S, T)` → `(S, 1)`.

    >>> fall(np.array([[4.0, 3.0, 2.0, 1.0]]))
    array([[3.]])
    """
    quarter = max(1, values.shape[1] // 4)
    return (values[:, :quarter].mean(axis=1) - values[:, -quarter:].mean(axis=1))[:, None]


def drift_over(scores: Scores, system: str, baseline: str, reading: str) -> Difference:
    """What a system's drift, a cosine, has over a baseline's in the second half of training."""
    values = (over_training(scores, name, reading) for name in (system, baseline))
    return difference(*(np.nanmean(each[:, each.shape[1] // 2 :], axis=1, keepdims=True) for each in values))


def _leads(scores: Scores, systems: Sequence[str], baseline: str) -> Iterator[tuple[str, str, int, pd.Series]]:
    """Protocol, system, quarter and lead in validation R@1 by seed, where both stand at one temperature and rate."""
    for protocol, trained in protocols(scores).items():
        at = {name: scores.trial(name, {"protocol": protocol}).overrides for name in trained}
        points = {name: (at[name].get("tau"), at[name].get("lr")) for name in trained}
        runs = scores.history[scores.history["protocol"] == protocol]
        share = np.ceil(4 * runs["epoch"] / runs["epoch"].max()).astype(int)
        means = runs.groupby(["system", "seed", share.rename("quarter")])["R@1"].mean()
        for system in (name for name in systems if points.get(name) == points[baseline]):
            for quarter, ahead in (means[system] - means[baseline]).groupby("quarter"):
                yield protocol, system, quarter, ahead.droplevel("quarter")


def lead(scores: Scores, systems: Sequence[str], baseline: str) -> pd.DataFrame:
    """What systems have over a baseline in validation R@1 in each quarter of training, one number a seed; only where
    both stand at one temperature and rate, so that no search decides.

    Returns:
        Columns protocol, system, quarter (1 …), ahead ("9/10": of how many runs), and those of GAIN, p by Holm.
    """
    found = []
    for protocol, system, quarter, ahead in _leads(scores, systems, baseline):
        head = {"protocol": protocol, "system": system, "quarter": quarter}
        head["ahead"] = f"{(ahead > 0).sum()}/{len(ahead)}"
        found.append((head, by_seed(ahead)))
    return differences(found)


def head_start(scores: Scores, system: str, baseline: str) -> Difference:
    """The lead in the first quarter of training, mean over the protocols of `lead`, over the seeds that all have."""
    early = {protocol: ahead for protocol, _, quarter, ahead in _leads(scores, [system], baseline) if quarter == 1}
    if not early:
        raise ExperimentError(f"{system} and {baseline} stand at one temperature and rate in no protocol")
    return by_seed(pd.DataFrame(early).dropna().mean(axis=1))


def epochs_to_target(history: pd.DataFrame, systems: Sequence[str], *, baseline: str) -> pd.DataFrame:
    """How soon systems are where a baseline ends: within a point of the validation R@1 of its best epochs, mean over
    seeds; history: of `Scores`, of one protocol; systems without a run are left out.

    Returns:
        Columns system; runs; reached, how many come there; epoch, in which, mean over those; earlier, low, high: epochs
        before the baseline, of the seeds with which both come there, with 95 % interval (NaN of fewer than two).
    """
    target = history[history["system"] == baseline].groupby("seed")["R@1"].max().mean() - 0.01
    runs = history.groupby("system")["seed"].nunique()
    there = history[history["R@1"] >= target].groupby(["seed", "system"])["epoch"].min()
    first = there.unstack("system").reindex(columns=runs.index)  # NaN: never
    rows = []
    for system in filter(runs.index.__contains__, systems):
        both = first[[baseline, system]].dropna()
        row = {"system": system, "runs": runs[system], "reached": first[system].count(), "epoch": first[system].mean()}
        if system != baseline and len(both) > 1:
            sooner = difference(both[[baseline]], both[[system]])
            row |= {"earlier": sooner.value, "low": sooner.low, "high": sooner.high}
        rows.append(row)
    return pd.DataFrame(rows, columns=["system", "runs", "reached", "epoch", "earlier", "low", "high"])


# ---------------------------------------------------------------- the radius taken apart

DESIGN = {name.partition(":")[2]: name for name in factorial()}  # letters of what is on → system; "": InfoNCE twice
PRINTED = dict(zip(EFFECTS.values(), ("probabilities", "Jacobian", "partner"), strict=True))
DRIFTS: Mapping[str, str] = {
    "gradient_drift_pull": "gradient and pull, as printed",
    "gradient_drift_tangent": "gradient and geodesic direction, on the sphere",
    "update_drift": "realised update and straight way û",
}


def protocols(scores: Scores) -> dict[str, list[str]]:
    """The protocols of an experiment, in their order, and the systems that were trained in each."""
    found: dict[str, list[str]] = {}
    for trial in scores.experiment.trials:
        found.setdefault(trial.where["protocol"], []).append(trial.system)
    return found


def main_effects(
    scores: Scores, metric: str = "R@1", design: Mapping[str, str] = DESIGN, names: Mapping[str, str] = PRINTED
) -> pd.DataFrame:
    """What each effect of the radius adds, by protocol: the mean of the four systems in which it is on less that of the
    four in which it is off. Where not all eight were trained, what it adds alone to InfoNCE twice.

    design: see `cells`; names: letter → effect.

    Returns:
        Columns protocol, effect, kind ("main" or "alone"), and those of `lab.scores.GAIN`; p by Holm within all.
    """
    found = []
    for protocol, systems in protocols(scores).items():
        where, is_whole = {"protocol": protocol}, {*design.values()} <= {*systems}
        on = cells(scores, where, metric, design) if is_whole else {}
        for letter, name in names.items():
            head = {"protocol": protocol, "effect": name, "kind": "main" if is_whole else "alone"}
            if is_whole:
                found.append((head, main_effect(on, letter)))
            else:
                found.append((head, scores.contrast(design[letter], design[""], metric, where)))
    return differences(found)


def cells(
    scores: Scores, where: Where, metric: str = "R@1", design: Mapping[str, str] = DESIGN
) -> dict[frozenset[str], np.ndarray]:
    """The letters of the effects that are on → the scores `(seeds, clips)` of that system of the design."""
    return {frozenset(letters): scores.values(name, metric, where) for letters, name in design.items()}


def over(scores: Scores, baseline: str) -> pd.DataFrame:
    """What every system has over one, by protocol, p by Holm within it: columns protocol, system, and those of GAIN."""
    tables = []
    for protocol, systems in protocols(scores).items():
        pairs = [(system, baseline) for system in systems if system != baseline]
        tables.append(gains(scores, pairs, ["R@1"], [{"protocol": protocol}]))
    return pd.concat(tables, ignore_index=True).drop(columns=["baseline", "metric"])


def scaled(table: pd.DataFrame) -> pd.DataFrame:
    """What a scaled push has over InfoNCE, of a table as of `over`: its columns, with part ("perpendicular" or
    "sideways") and factor; InfoNCE itself has factor 1 and difference 0.
    """
    table = table[table["system"].isin(SCALED)].copy()
    options = [SCALED[name][1] for name in table["system"]]
    table["factor"] = [float(option["perpendicular"]) for option in options]
    table["part"] = [option.get("part", "perpendicular") for option in options]
    ones = table.drop_duplicates(["protocol", "part"]).assign(factor=1.0, system="infonce")
    ones[["value", "low", "high"]] = ones[["value", "low", "high"]].mask(lambda numbers: numbers.notna(), 0.0)
    return pd.concat([table, ones], ignore_index=True).sort_values(["protocol", "part", "factor"], ignore_index=True)


def told_apart(scores: Scores) -> pd.DataFrame:
    """What InfoNCE changes by without the sideways push of either kind of negatives, p by Holm within all: columns
    negatives, test, metric (nDCG@10 of both directions), and those of GAIN.
    """
    found, metrics = [], {"R@1": ["R@1"], "nDCG@10": ["T2A nDCG@10", "A2T nDCG@10"]}
    for trial, (metric, names) in product(scores.experiment.trials, metrics.items()):
        points = trial.where, {**trial.where, "related": 1.0, "unrelated": 1.0}
        if points[0] != points[1]:
            kind = "those that fit in part" if trial.where["unrelated"] else "those that do not fit"
            sides = [np.mean([scores.values(trial.system, name, at) for name in names], axis=0) for at in points]
            found.append(({"negatives": kind, "test": trial.where["test"], "metric": metric}, difference(*sides)))
    return differences(found)


def again(first: Scores, second: Scores, baseline: str = "infonce") -> pd.DataFrame:
    """What runs that two experiments declare alike, trained by both, found there and here, in points.

    Returns:
        Columns protocol, system, seeds (that both have), first, second (means), "one run" (the largest difference of
        two runs of one seed), and "over <baseline>, first" and "…, second", ± half width, over those seeds alone.
    """
    declared, rows, both = [replace(trial, seeds=()) for trial in first.experiment.trials], [], (first, second)
    for trial in second.experiment.trials:
        if replace(trial, seeds=()) not in declared:
            continue
        there = first.seeds(trial.system, trial.where)
        seeds = [seed for seed in second.seeds(trial.system, trial.where) if seed in there]
        if not seeds:
            continue
        sides = [scores.values(trial.system, "R@1", trial.where, seeds=seeds) for scores in both]
        one, two = (100 * side.mean(axis=1) for side in sides)
        row = {"protocol": TITLES[trial.where["protocol"]], "system": trial.system, "seeds": len(seeds)}
        row |= {"first": one.mean(), "second": two.mean(), "one run": np.abs(one - two).max()}
        for name, scores, side in zip(("first", "second"), both, sides, strict=True):
            gain = difference(side, scores.values(baseline, "R@1", trial.where, seeds=seeds))
            text = "" if trial.system == baseline else f"{100 * gain.value:+.1f} ± {100 * gain.half_width:.1f}"
            row[f"over {baseline}, {name}"] = text.replace("-", "−")
        rows.append(row)
    if not rows:
        raise ExperimentError(f"{first.experiment.name} and {second.experiment.name} declare no run alike")
    return pd.DataFrame(rows)


def drift_and_recall(scores: Scores) -> pd.DataFrame:
    """A row a run: protocol, system, seed, the three readings of drift (mean cosines over the second half of training;
    the higher, the less drift), and R@1.
    """
    rows = []
    for trial, seed in scores.experiment.cells:
        steps = scores.rows(scores.steps, trial, seed)
        late = steps[steps["step"] > steps["step"].max() / 2]
        value = scores.clips[str(trial), seed]["R@1"].mean()
        rows.append((trial.where["protocol"], trial.system, seed, *(late[name].mean() for name in DRIFTS), value))
    return pd.DataFrame(rows, columns=["protocol", "system", "seed", *DRIFTS, "R@1"])
