"""What chapter 4 measures beside scores: the words of captions, text encoders before training, when a term pays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import special
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler
from torch import nn

from pullpush.cache import home
from pullpush.data.clips import World
from pullpush.data.language.vocabulary import word_frequencies
from pullpush.data.recordings.registry import listing
from pullpush.data.sets.folder import read_captions
from pullpush.encoders.dual import normalise
from pullpush.errors import PullPushError
from pullpush.lab.comparisons import Pair
from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.scores import Scores
from pullpush.metrics.geometry import uniformity
from pullpush.metrics.inference import CANNOT_TELL, Array, adjusted

# ---------------------------------------------------------------- words

PUBLISHED = ("audiocaps", "clotho", "wavcaps")
RANKS = 100  # of the commonest words, for the slope


def captions_of(world: World) -> list[str]:
    """All English captions that a world trains on, clip by clip."""
    return [caption for several in world.train.captions("eng") for caption in several]


def published_captions(*, split: str = "train") -> dict[str, list[str]]:
    """The captions of those published sets that are here, by name; of the others nothing.

    A set's captions are in the folder `captions` of the cache, as `clotho_train.csv` (see `folder.read_captions`), or
    with its recordings (see `registry.listing`).
    """
    found = {}
    for name in PUBLISHED:
        path = home() / "captions" / f"{name}_{split}.csv"
        try:
            groups = list(read_captions(path).values()) if path.is_file() else listing(name, split).captions
        except PullPushError:  # not here, or the library that reads it is not
            continue
        found[name] = [caption for captions in groups for caption in captions]
    return found


def statistics(captions: Sequence[str]) -> dict[str, float]:
    """The words of a caption set (the paper's Figure 3); mind that a larger set has more different words.

    Returns:
        captions, different captions, words, different words, words a caption; share of top 10, share of top 100: how
        much of all words the commonest make up; bits a word: the entropy of a word drawn from the captions; slope: of
        the logarithm of the frequency over that of the rank of the RANKS commonest, by least squares: −1 is Zipf's law.

    >>> found = statistics(["a frog croaks", "a bird calls"])
    >>> found["words"], found["different words"], round(found["bits a word"], 2)
    (6, 5, 2.25)
    """
    table = word_frequencies(captions, vocabulary=np.iinfo(np.int64).max)
    share, count = table["frequency"].to_numpy(), int(table["count"].sum())
    ranks, first = np.log(np.arange(1, len(share) + 1))[:RANKS], np.log(share[:RANKS])
    return {
        "captions": len(captions),
        "different captions": len(set(captions)),
        "words": count,
        "different words": len(table),
        "words a caption": count / max(1, len(captions)),
        "share of top 10": share[:10].sum(),
        "share of top 100": share[:100].sum(),
        "bits a word": float(-(share * np.log2(share)).sum()),
        "slope": float(np.polyfit(ranks, first, 1)[0]) if len(ranks) > 1 else float("nan"),
    }


def encoder_uniformity(model: nn.Module, texts: Sequence[str], *, batch_size: int = 256) -> float:
    """Uniformity loss of what the text encoder makes of English texts before the projection, in nats: of unit-length
    features. Equal texts count once, for what says the same lies in the same place in any space.
    """
    different, was = sorted(set(texts)), model.training
    model.eval()
    try:
        with torch.no_grad():
            blocks = [different[start : start + batch_size] for start in range(0, len(different), batch_size)]
            features = torch.cat([model.text(block, ["eng"] * len(block)).float().cpu() for block in blocks])
    finally:
        model.train(was)
    return uniformity(normalise(features)).item()


def world_facts(world: World, model: nn.Module, *, count: int = 1000) -> dict[str, float]:
    """What is known of a world before training: "log size" of its training clips; of their captions "vocabulary",
    "entropy" and the share of the "ten words" that are most frequent; "uniformity before" of a model's text encoder.

    model: before its first step; count: clips whose first captions it reads.
    """
    several, words = world.train.captions("eng"), statistics(captions_of(world))
    return {
        "log size": float(np.log10(len(several))),
        "vocabulary": float(words["different words"]),
        "entropy": words["bits a word"],
        "ten words": min(float(words["share of top 10"]), 1.0),
        "uniformity before": encoder_uniformity(model, [texts[0] for texts in several[:count]]),
    }


# ---------------------------------------------------------------- does a sentence term pay?

# A condition is a world with a text encoder, which is held out whole, with all its seeds. The test: rules are fitted on
# random halves of the conditions, and their squared error on the other halves is compared with that of the mean gain of
# the fitted half. Whether that is luck is asked of permutations, in which the gains are dealt out anew among the
# conditions and everything is done again. Rules fit many such columns of gains at once, for which
# `sklearn.model_selection.permutation_test_score` would fit one after the other.
FEWEST = 6  # conditions: with fewer, half of them are no sample
SHRINKAGE = (0.1, 0.3, 1.0, 3.0)  # of ridge regression: penalty on standardised facts, times the number of conditions
CONSTANT = 1e12  # the same of one that leaves nothing but the mean
SIDE = 2  # conditions that a split leaves on either side at least

Rows = NDArray[np.bool_]  # (n,): whether each condition is meant
Rule = Callable[[Array, Rows, Array], Array]


def conditions(
    scores: Scores, pair: Pair, points: Mapping[str, Where], facts: Mapping[str, Mapping[str, float]]
) -> pd.DataFrame:
    """What is known of each condition, and what a term added to R@1; of several experiments, to be concatenated.

    Args:
        pair: (with the term, without it).
        points: condition → where; those that were not trained are left out.
        facts: condition → name → number.

    Returns:
        A row a condition: condition, baseline, value, low, high (fractions), error (standard error), seeds, clips, and
        the facts.
    """
    rows = []
    for name, where in points.items():
        try:
            one = scores.contrast(*pair, "R@1", where)
        except ExperimentError:
            continue
        error = float(one.half_width / special.stdtrit(one.df, (1 + one.level) / 2))
        rows.append(
            {"condition": name, "baseline": pair[1], "value": one.value, "low": one.low, "high": one.high}
            | {"error": error, "seeds": one.seeds, "clips": one.clips, **facts[name]}
        )
    return pd.DataFrame(rows)


def line(x: Array, fit: Rows, y: Array) -> Array:
    """Ridge regression on all facts or the mean, whichever errs least on conditions left out one after the other.

    Args:
        x: facts, `(n, k)`.
        fit: `(n,)`, the conditions that are known.
        y: gains, `(n, B)`.

    Returns:
        Predictions of all conditions, `(n, B)`.
    """
    standard = StandardScaler().fit(x[fit]).transform(x)
    penalties = [shrinkage * fit.sum() for shrinkage in SHRINKAGE] + [CONSTANT]
    return RidgeCV(penalties, alpha_per_target=True).fit(standard[fit], y[fit]).predict(standard).reshape(y.shape)


def split(x: Array, fit: Rows, y: Array) -> Array:
    """One threshold of one fact with a gain on either side, or the mean: what a reader can remember; see `line`.

    scikit-learn's trees choose by the error of the fit, which always finds a split.
    """
    candidates, best = _splits(x, fit, y)
    predicted = np.empty_like(y)
    for number in np.unique(best):
        above, columns = candidates[number][2], best == number
        for side in (side for side in (above, ~above) if side.any()):
            predicted[np.ix_(side, columns)] = y[np.ix_(side & fit, columns)].mean(axis=0)
    return predicted


RULES: Mapping[str, Rule] = {"line": line, "split": split}


class Decision(NamedTuple):
    """What was learnt about when the term pays; no rows where there were too few conditions.

    outcomes: a row a rule, on conditions that it had not seen: skill, 1 − its squared error over that of the mean gain
    of what it was fitted on; p, the share of permutations with as much, adjusted for the rules that were tried; alone,
    p alone, the same with one condition left out at a time, p not adjusted; signs, the share of conditions whose sign
    it had right, yes and no, of always expecting a gain or a loss; slope and bias (points) of what was measured on what
    was predicted (1 and 0 are perfect; NaN where one gain was predicted for all); verdict, "predicts", or "cannot tell"
    where the test does not separate the rule from a constant gain.
    table: rule, condition, baseline, predicted, value, low, high, held out: predictions of rules fitted on all
    conditions, and the mean of those that had not seen the condition.
    threshold: of the split that is fitted on all: fact, its number, and the mean gains below and above it; without rows
    where no split is better than the mean.
    reliable: share of the gains' variance that is not noise of seeds and clips, the most that any rule could explain.
    """

    outcomes: pd.DataFrame
    table: pd.DataFrame
    threshold: pd.DataFrame
    reliable: float


def decide(
    table: pd.DataFrame, facts: Sequence[str], *, splits: int = 50, permutations: int = 1000, seed: int = 0
) -> Decision:
    """Fit and test all RULES.

    Args:
        table: see `conditions`; each stands there once.
        facts: columns that the rules may use.
        splits: random halves, each of which is fitted on and then tested on.
        permutations: with which p is computed.
        seed: of both.

    Raises:
        ValueError: a condition stands there twice.
    """
    if table["condition"].duplicated().any():
        raise ValueError(
            "a condition stands in the table twice, and would be fitted on and tested on: average it first"
        )
    count = len(table)
    if count < FEWEST:
        return Decision(pd.DataFrame(), pd.DataFrame(), pd.DataFrame(), float("nan"))
    x, gain = table[list(facts)].to_numpy(float), table["value"].to_numpy(float)
    drawn = np.random.default_rng(seed)
    chosen = [np.isin(np.arange(count), drawn.permutation(count)[: count // 2]) for _ in range(splits)]
    halves = [half for one in chosen for half in (one, ~one)]
    y = np.column_stack([gain, *(gain[drawn.permutation(count)] for _ in range(permutations))])
    singles, whole = ~np.eye(count, dtype=bool), np.ones(count, bool)
    outcomes, rows = [], []
    for name, rule in RULES.items():
        skill, predicted, signs = _tested(rule, x, y, halves)
        alone, *_ = _tested(rule, x, y, singles)
        slope = np.polyfit(predicted, gain, 1)[0] if np.ptp(predicted) > 1e-8 else np.nan
        outcomes.append(
            {"rule": name, "skill": skill[0], "p": _share(skill), "alone": alone[0], "p alone": _share(alone)}
            | {"signs": signs, "yes": (gain > 0).mean(), "no": (gain < 0).mean()}
            | {"slope": slope, "bias": 100 * (gain - predicted).mean()}
        )
        for held_out, values in ((False, rule(x, whole, y[:, :1])[:, 0]), (True, predicted)):
            rows.append(table.assign(rule=name, predicted=values, **{"held out": held_out}))
    found = pd.DataFrame(outcomes).assign(p=lambda one: adjusted(one["p"]))
    found["verdict"] = np.where((found["skill"] > 0) & (found["p"] < 0.05), "predicts", CANNOT_TELL)
    candidates, best = _splits(x, whole, gain[:, None])
    number, limit, above = candidates[best[0]]
    sides = [(facts[number], limit, gain[~above].mean(), gain[above].mean())] if above.any() else []
    threshold = pd.DataFrame(sides, columns=["fact", "threshold", "below", "above"])
    noise = float((table["error"] ** 2).mean() / gain.var(ddof=1)) if gain.var() > 0 else 1.0
    columns = ["rule", "condition", "baseline", "predicted", "value", "low", "high", "held out"]
    return Decision(found, pd.concat(rows, ignore_index=True)[columns], threshold, max(0.0, 1 - noise))


def _splits(x: Array, fit: Rows, y: Array) -> tuple[list[tuple[int, float, Rows]], NDArray[np.int_]]:
    """Every split as number of the fact, threshold and what lies above, with the mean of all in front, and for each
    column of gains the number of that which errs least on conditions left out one after the other.
    """
    candidates = [(0, np.inf, np.zeros(len(x), bool))]
    for number, fact in enumerate(x.T):
        known = np.unique(fact[fit])
        for threshold in (known[1:] + known[:-1]) / 2:
            above = fact >= threshold
            if SIDE <= (above & fit).sum() <= fit.sum() - SIDE:
                candidates.append((number, float(threshold), above))
    errors = np.stack([_left_out(above[fit], y[fit]) for *_, above in candidates])
    errors[0] *= 1 - 1e-9  # the mean, where no split is better
    return candidates, errors.argmin(axis=0)


def _left_out(above: Rows, y: Array) -> Array:
    """Squared errors `(B,)` of the means of both sides on conditions left out one after the other.

    >>> float(_left_out(np.zeros(3, bool), np.array([[1.0], [2.0], [6.0]]))[0])  # 3², 1.5² and 4.5²
    31.5
    """
    sides = [y[side] for side in (above, ~above) if side.any()]
    errors = [(side - side.mean(axis=0)) * len(side) / (len(side) - 1) for side in sides]
    return (np.concatenate(errors) ** 2).sum(axis=0)


def _tested(rule: Rule, x: Array, y: Array, parts: Iterable[Rows]) -> tuple[Array, Array, float]:
    """Of a rule fitted on each of the parts: its skill on the rest, `(B,)`; the mean prediction of each condition when
    held out, `(n,)`, and the share of right signs among those, of the gains as they are.
    """
    error, plain = np.zeros(y.shape[1]), np.zeros(y.shape[1])
    total, times, right = np.zeros(len(y)), np.zeros(len(y)), 0
    for fit in parts:
        rest = ~fit
        predicted = rule(x, fit, y)[rest]
        error += ((y[rest] - predicted) ** 2).sum(axis=0)
        plain += ((y[rest] - y[fit].mean(axis=0)) ** 2).sum(axis=0)
        total[rest] += predicted[:, 0]
        times[rest] += 1
        right += int((np.sign(predicted[:, 0]) == np.sign(y[rest, 0])).sum())
    skill = 1 - error / np.where(plain > 0, plain, 1)
    return skill, total / np.maximum(times, 1), right / times.sum()


def _share(skill: Array) -> float:
    """How often permutations, the gains as they are among them, have at least the skill of the first."""
    return float((skill >= skill[0] - 1e-12).mean())
