"""Two-level factorial designs as data, their effects with intervals, and what a design predicts.

A run sets every factor low (−1) or high (+1). A *regular fraction* takes 2^(k−p) of the 2^k runs: p factors are set by
generators, products of the others (Box, Hunter & Hunter, *Statistics for Experimenters*, ch. 6). What a generator
equates can be told apart by no analysis: the products of generators, multiplied out, are the *defining words*, the
shortest of them has the length that is called the *resolution*, and an effect times a word is its *alias*.

    half = Design("ABCDEFG", {"G": "ABCDEF"})   # 64 runs of 128
    half.resolution                             # "VII": two-way interactions are aliased with five-way ones

The effect of a factor is the mean of the runs in which it is high less the mean of those in which it is low; that of
two factors together is half of what one adds to the other (ch. 5). Either is a difference between two halves of the
runs, and every run has the same seeds and the same clips: so the halves are averaged by seed and clip, and go to the
book's one inference as ours and theirs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr, stdtrit

from pullpush.lab.comparisons import differences
from pullpush.lab.experiments import Where
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference, adjusted, conditional_effect, difference
from pullpush.studies.together.experiments import STAND_INS, high_of, label

Row = tuple[dict[str, str], Difference]  # of `lab.comparisons.differences`
Effect = tuple[str, ...]  # of one factor, or the interaction of several; in the order of the design's factors
ROMAN = ("full", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
RANKS = "log rank variance"  # over languages; all other metrics are fractions
# What pages call a metric → the score and the point that it is; without a language a mean over languages.
METRICS: dict[str, tuple[str, Where]] = {
    "R@1": ("R@1", {}),
    "T2A R@1": ("T2A R@1", {}),
    "A2T R@1": ("A2T R@1", {}),
    "English": ("R@1", {"language": "eng"}),
    RANKS: (RANKS, {}),
}
TIMES = " × "  # between the factors of an interaction


@dataclass(frozen=True)
class Design:
    """Runs of a two-level design.

    factors: their names, a string is one a letter; generators: factor → the factors whose product it is, none in a full
    factorial.

    >>> Design(("loss", "SVR", "cycles"), {"cycles": ("loss", "SVR")}).signs
    array([[-1, -1,  1],
           [ 1, -1, -1],
           [-1,  1, -1],
           [ 1,  1,  1]])
    """

    factors: Sequence[str]
    generators: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def signs(self) -> np.ndarray:
        """`(runs, factors)` int64 of −1 and +1, in Yates' order: the first factor changes fastest."""
        basic = [name for name in self.factors if name not in self.generators]
        rows = np.array([levels[::-1] for levels in product((-1, 1), repeat=len(basic))], dtype=np.int64)
        column = {name: rows[:, place] for place, name in enumerate(basic)}
        for name, parts in self.generators.items():
            column[name] = np.prod([column[part] for part in parts], axis=0)
        return np.stack([column[name] for name in self.factors], axis=1)

    def __len__(self) -> int:
        return len(self.signs)

    @property
    def runs(self) -> list[frozenset[str]]:
        """The factors that are high in each run."""
        return [frozenset(name for name, sign in zip(self.factors, row, strict=True) if sign > 0) for row in self.signs]

    @cached_property
    def words(self) -> tuple[Effect, ...]:
        """The defining words: effects that are constant over all runs, shortest first; none of a full factorial."""
        found = []
        for count in range(1, len(self.generators) + 1):
            for chosen in combinations(self.generators.items(), count):
                word: set[str] = set()
                for name, parts in chosen:
                    word ^= {name, *parts}  # a factor times itself is 1
                found.append(self._effect(word))
        return tuple(sorted(found, key=self._order))

    @property
    def resolution(self) -> str:
        """Length of the shortest defining word, "VII"; "full" where nothing is aliased."""
        return ROMAN[len(self.words[0]) if self.words else 0]

    def aliases(self, *effect: str, up_to: int | None = None) -> list[Effect]:
        """The effects that no analysis tells apart from one, shortest first; up_to: of so many factors at most.

        >>> Design("ABCD", {"D": "ABC"}).aliases("A", "B")
        [('C', 'D')]
        """
        found = [self._effect(set(effect) ^ set(word)) for word in self.words]
        return sorted((other for other in found if up_to is None or len(other) <= up_to), key=self._order)

    def effects(self, order: int = 2) -> list[Effect]:
        """All effects of up to so many factors: main effects first, then interactions.

        >>> Design("AB").effects()
        [('A',), ('B',), ('A', 'B')]
        """
        return [effect for size in range(1, order + 1) for effect in combinations(self.factors, size)]

    def contrast(self, *effect: str) -> np.ndarray:
        """`(runs,)` of −1 and +1: the half of the runs that an effect is taken over, and the other half."""
        return np.prod(self.signs[:, [list(self.factors).index(name) for name in effect]], axis=1)

    def model(self) -> np.ndarray:
        """`(runs, 1 + effects)` of −1 and +1: an intercept and the contrast of each of `effects()`."""
        return np.stack([np.ones(len(self), np.int64), *(self.contrast(*one) for one in self.effects())], axis=1)

    def saturated(self) -> list[Effect]:
        """As many effects as there are runs, less one: every contrast that can be taken, each by its shortest name.

        They are orthogonal and use the design up. Of a fraction with clear main effects and interactions the others
        are what is hardly ever large, and show how large an effect is by chance.

        >>> Design("ABC", {"C": "AB"}).saturated()
        [('A',), ('B',), ('C',)]
        """
        basic = [name for name in self.factors if name not in self.generators]
        found = [effect for size in range(1, len(basic) + 1) for effect in combinations(basic, size)]
        return sorted((min([one, *self.aliases(*one)], key=self._order) for one in found), key=self._order)

    def _order(self, effect: Effect) -> tuple[int, list[int]]:
        """Shorter effects first, then by the order of the factors."""
        return len(effect), [list(self.factors).index(name) for name in effect]

    def _effect(self, names: Iterable[str]) -> Effect:
        """Factors in the design's order, each once."""
        wanted = set(names)
        return tuple(name for name in self.factors if name in wanted)


# ---------------------------------------------------------------- effects


def responses(scores: Scores, design: Design, metric: str) -> np.ndarray:
    """What the runs of a design scored in one of METRICS, `(runs, seeds, clips)`, in the design's order."""
    return np.stack([scores.values(label(high), *METRICS[metric]) for high in design.runs])


def effect(design: Design, values: np.ndarray, *factors: str) -> Difference:
    """One effect, of `responses`: the half of the runs in which the product of its factors is high over the others.

    >>> both = np.array([0.0, 1.0, 2.0, 5.0])[:, None, None] + np.zeros((4, 2, 3))  # low, A, B, A and B
    >>> effect(Design("AB"), both, "A").value, effect(Design("AB"), both, "A", "B").value  # (1 + 3)/2 and (3 − 1)/2
    (2.0, 1.0)
    """
    return difference(*halves(design, values, *factors))


def halves(design: Design, values: np.ndarray, *factors: str) -> tuple[np.ndarray, np.ndarray]:
    """Means of `responses`, `(seeds, clips)`, over the runs in which the product of some factors is high, and low."""
    high = design.contrast(*factors) > 0
    return values[high].mean(axis=0), values[~high].mean(axis=0)


def effects(design: Design, values: np.ndarray, order: int = 2) -> pd.DataFrame:
    """All effects of up to so many factors: columns effect ("SVR × cycles"), factors (how many), and those of
    `lab.scores.GAIN`, in the unit of the values; p is adjusted by Holm within the table.
    """
    return differences(
        ({"effect": TIMES.join(one), "factors": len(one)}, effect(design, values, *one))
        for one in design.effects(order)
    )


def apart(one: tuple[Design, np.ndarray], other: tuple[Design, np.ndarray]) -> pd.DataFrame:
    """What each factor adds in one design more than in another of the same seeds and clips: as `effects`.

    one, other: a design and its `responses`; factors: those of the first.

    >>> both = np.array([0.0, 1.0, 2.0, 5.0])[:, None, None] + np.zeros((4, 2, 3))  # low, A, B, A and B
    >>> apart((Design("AB"), both), (Design("AB"), both / 2))["value"].tolist()
    [1.0, 1.5]
    """
    gains = {name: [np.subtract(*halves(*each, name)) for each in (one, other)] for name in one[0].factors}
    return differences(({"effect": name, "factors": 1}, difference(*both)) for name, both in gains.items())


def contrasts(design: Design, values: np.ndarray) -> pd.DataFrame:
    """All that a design tells, the smallest first: columns effect, factors (how many), value, size, and the quantile of
    a half-normal that belongs to its place.
    """
    means = values.mean(axis=(1, 2))
    rows = [(TIMES.join(one), len(one), 2 * (design.contrast(*one) * means).mean()) for one in design.saturated()]
    table = pd.DataFrame(rows, columns=["effect", "factors", "value"])
    table = table.assign(size=table["value"].abs()).sort_values("size", ignore_index=True)
    return table.assign(quantile=ndtri((1 + (np.arange(len(table)) + 0.5) / len(table)) / 2))


def design_error(design: Design, values: np.ndarray) -> tuple[float, int]:
    """Standard error of an effect by the design itself: root mean square of its contrasts of three factors and more,
    which are taken for noise; and their number, the degrees of freedom.
    """
    noise = contrasts(design, values).query("factors > 2")["value"]
    return float(np.sqrt(noise.pow(2).mean())), len(noise)  # NaN where there is none


READINGS = ("seeds and clips", "the design's error")


def conditional(design: Design, values: np.ndarray, beside: str, absent: str) -> pd.DataFrame:
    """What each other factor adds where one is high and where it is low, by both READINGS of its error.

    Args:
        values: of `responses`.
        beside, absent: that factor, and what its low level is called.

    Returns:
        Columns effect, beside, reading and those of `lab.scores.GAIN`; p by Holm within a reading and company.

    >>> both = np.array([0.0, 1.0, 2.0, 5.0])[:, None, None] + np.zeros((4, 2, 3))  # low, A, B, A and B
    >>> of_a = conditional(Design("AB"), both, "B", "no B")
    >>> of_a.query("reading == 'seeds and clips'")["value"].tolist(), of_a["p"].isna().tolist()  # no noise to judge by
    ([1.0, 3.0], [False, True, False, True])
    """

    def rows(is_low: bool) -> Iterator[Row]:
        for factor in (each for each in design.factors if each != beside):
            pairs = [high & {factor, beside} for high in design.runs]
            cells = {cell: values[[each == cell for each in pairs]].mean(axis=0) for cell in dict.fromkeys(pairs)}
            yield {"effect": factor}, conditional_effect(cells, factor, beside=beside, without=is_low)

    return _by_company(design, values, {absent: rows(True), beside: rows(False)})


def over_stand_ins(
    design: Design,
    found: Scores,
    stand_ins: Mapping[str, Scores],
    beside: str,
    absent: str,
    terms: Iterable[str] = tuple(STAND_INS),
) -> pd.DataFrame:
    """What a stand-in adds over nothing in a term's place, and each next one over it, in R@1: as `conditional`.

    found: scores of the design's runs; stand_ins: those of `experiments.stand_ins` by what stands there, in order, and
    `found` itself for the term; terms: in whose places.
    """
    values = responses(found, design, "R@1")

    def rows(is_low: bool) -> Iterator[Row]:
        there = np.array([(beside in high) is not is_low for high in design.runs])
        for term in terms:
            has = np.array([term in high for high in design.runs])
            names = [label(high) for high, row in zip(design.runs, there & has, strict=True) if row]
            lower, below = "", values[there & ~has].mean(axis=0)
            for name, scores in stand_ins.items():
                where = {} if scores is found else {"replaced": term}
                here = np.mean([scores.values(each, "R@1", where) for each in names], axis=0)
                title = f"{term if scores is found else name}{f' over that {lower}' if lower else ''}"
                yield {"effect": title if scores is found else f"{title} for {term}"}, difference(here, below)
                lower, below = name, here

    return _by_company(design, values, {absent: rows(True), beside: rows(False)})


def _by_company(design: Design, values: np.ndarray, companies: Mapping[str, Iterable[Row]]) -> pd.DataFrame:
    """Effects over the half of a design's runs that each company is, by both READINGS of their error."""
    error, df = design_error(design, values)
    error *= np.sqrt(2)  # of half of the runs
    tables = []
    for company, rows in companies.items():
        table = differences(rows).assign(beside=company)
        own = table.assign(reading=READINGS[1], **{"half width": error * stdtrit(df, 0.975)})
        p = 2 * stdtr(df, -own["value"].abs() / error)
        own["p"] = p  # NaN where the design has no error of its own
        own.loc[p.notna(), "p"] = adjusted(p[p.notna()])
        own["low"], own["high"] = own["value"] - own["half width"], own["value"] + own["half width"]
        tables += [table.assign(reading=READINGS[0]), own]
    return pd.concat(tables, ignore_index=True)


def standing(table: pd.DataFrame) -> pd.DataFrame:
    """The rows whose interval excludes zero and whose adjusted p is below 5 %."""
    return table[((table["low"] > 0) | (table["high"] < 0)) & (table["p"] < 0.05)]


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """`effects` of several metrics, with a column metric, as a page shows them: a row an effect, a column a metric,
    "value ± half width", recall in points; * for what stands.
    """
    stands, cells = standing(table).index, []
    for row in table.to_dict("index").values():
        scale, form = (1, ".3f") if row["metric"] == RANKS else (100, ".1f")
        cells.append(f"{scale * row['value']:+{form}} ± {scale * row['half width']:{form}}".replace("-", "−"))
    table = table.assign(cell=pd.Series(cells, table.index) + np.where(table.index.isin(stands), " *", ""))
    wide = table.pivot_table(index="effect", columns="metric", values="cell", aggfunc="first", sort=False)
    return wide.rename_axis(columns=None).reset_index()


# ---------------------------------------------------------------- what was not run, and what is worth its price


def predicted(design: Design, values: ArrayLike) -> tuple[pd.DataFrame, float]:
    """What each of the 2^k combinations would score, by main effects and two-way interactions, fitted by least squares.

    Args:
        values: `(runs, blocks)`, one number a run and seed; a block's own level (its mean over all runs) is taken out.

    Returns:
        Columns system, terms (how many are high), value, error (of the prediction of its mean); and the standard
        deviation of what the model leaves of a run of one block.

    >>> table, _ = predicted(Design(("SVR", "cycles")), np.arange(4.0)[:, None].repeat(2, axis=1))
    >>> dict(zip(table["system"], table["value"].round(6).abs(), strict=True))["SVR + cycles"]
    3.0
    """
    scores, model = np.asarray(values, dtype=np.float64), design.model()
    if np.linalg.matrix_rank(model) < model.shape[1]:
        raise ValueError(f"a design of resolution {design.resolution} cannot tell two-way interactions apart")
    level = scores.mean(axis=0)
    centred = scores - level + level.mean()
    coefficients = np.linalg.lstsq(model, centred.mean(axis=1), rcond=None)[0]
    rest = centred - (model @ coefficients)[:, None]
    blocks = scores.shape[1]
    error = float(np.sqrt((rest**2).sum() / max(scores.size - model.shape[1] - (blocks - 1), 1)))
    every = Design(design.factors)
    rows = every.model()
    errors = error * np.sqrt(((rows @ np.linalg.inv(model.T @ model)) * rows).sum(axis=1) / blocks)
    named = [(label(high), len(high)) for high in every.runs]
    return pd.DataFrame(named, columns=["system", "terms"]).assign(value=rows @ coefficients, error=errors), error


def simplest(table: pd.DataFrame) -> str:
    """The combination of fewest terms whose prediction is within one standard error of the best one's.

    The one-standard-error rule of Breiman et al. (*Classification and Regression Trees*, 1984, §3.4.3): what the best
    has over such a one is less than what another draw of seeds would move it by. Of equally many terms the best wins.

    >>> simplest(pd.DataFrame({"system": list("abc"), "terms": [0, 1, 2], "value": [0.2, 0.49, 0.5], "error": 0.02}))
    'b'
    """
    best = table.loc[table["value"].idxmax()]
    near = table[table["value"] >= best["value"] - best["error"]]
    return str(near.sort_values(["terms", "value"], ascending=[True, False], kind="stable")["system"].iloc[0])


def chosen(scores: Scores, design: Design) -> frozenset[str]:
    """The factors that are high in the simplest combination near the best; none without scores.

    scores: of the design's runs, on validation: mean over directions, languages and clips.
    """
    if not scores:
        return frozenset()
    return high_of(simplest(predicted(design, responses(scores, design, "R@1").mean(axis=2))[0]))


def front(table: pd.DataFrame, cost: str = "cost") -> pd.Series:
    """Which rows are on the Pareto front: nothing else is both no dearer and no worse, and one of them better.

    >>> front(pd.DataFrame({"cost": [1.0, 2.0, 2.0, 3.0], "value": [0.2, 0.4, 0.3, 0.4]})).tolist()
    [True, True, False, False]
    """
    costs, values = (table[name].to_numpy(dtype=float) for name in (cost, "value"))
    cheaper, better = costs[:, None] <= costs[None], values[:, None] >= values[None]
    strictly = (costs[:, None] < costs[None]) | (values[:, None] > values[None])
    return pd.Series(~(cheaper & better & strictly).any(axis=0), index=table.index)


def priced(scores: Scores, design: Design, costs: pd.DataFrame) -> pd.DataFrame:
    """What the runs of a design scored in R@1 over what their steps cost, and which of them are on the front.

    costs: columns system and time; combinations that are no runs of the design are predicted from it.

    Returns:
        Columns system, time (ratio), value, low, high (± 2 standard errors over seeds on these clips, from what the
        model leaves of the runs; of a prediction its own), measured, front (of the runs).
    """
    values = responses(scores, design, "R@1").mean(axis=2)
    every, error = predicted(design, values)
    runs = pd.DataFrame({"system": [label(high) for high in design.runs], "value": values.mean(axis=1)})
    runs = runs.assign(error=error / np.sqrt(values.shape[1]), measured=True)
    others = every.drop(columns="terms").assign(measured=False)
    others = others[others["system"].isin(costs["system"]) & ~others["system"].isin(runs["system"])]
    times = costs.drop_duplicates("system")[["system", "time"]]
    table = pd.concat([runs, others], ignore_index=True).merge(times, on="system")
    table = table.assign(low=table["value"] - 2 * table["error"], high=table["value"] + 2 * table["error"])
    on = front(table[table["measured"]], "time").reindex(table.index, fill_value=False)
    return table.assign(front=on)[["system", "time", "value", "low", "high", "measured", "front"]]
