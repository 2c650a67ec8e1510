"""Main effects and interactions of a factorial design, with intervals over seeds and clips.

The effect of a factor is the mean of the runs in which it is high less the mean of those in which it is low; that of
two factors together is half of what one adds to the other (Box, Hunter & Hunter, ch. 5). Either is a difference between
two halves of the runs, and every run has the same seeds and the same clips: so the halves are averaged by seed and
clip, and go to the book's one inference as ours and theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from pullpush.lab.experiments import Where
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference, difference, holm
from pullpush.studies.together.design import Design, Effect, saturated
from pullpush.studies.together.terms import label

ENGLISH = "English"
TIMES = " × "  # between the factors of an interaction
COLUMNS = ["effect", "factors", "value", "low", "high", "half width", "p", "seeds", "clips"]


def responses(scores: Scores, design: Design, metric: str, where: Where | None = None) -> np.ndarray:
    """What the runs of a design scored, `(runs, seeds, clips)`, in the design's order.

    metric: as experiments name it, a mean over languages; or "English", R@1 of that language.

    Raises:
        ExperimentError: a run, or the metric, is not there.
    """
    if metric == ENGLISH:
        metric, where = "R@1", {**(where or {}), "language": "eng"}
    return np.stack([scores.values(label(high), metric, where) for high in design.runs])


def effect(design: Design, values: np.ndarray, *factors: str) -> Difference:
    """One effect, of `responses`: the half of the runs in which the product of its factors is high over the others.

    >>> from pullpush.studies.together.design import full
    >>> both = np.array([0.0, 1.0, 2.0, 5.0])[:, None, None] + np.zeros((4, 2, 3))  # low, A, B, A and B
    >>> effect(full("AB"), both, "A").value, effect(full("AB"), both, "A", "B").value  # (1 + 3)/2 and (3 − 1)/2
    (2.0, 1.0)
    """
    high = design.contrast(*factors) > 0
    return difference(values[high].mean(axis=0), values[~high].mean(axis=0))


def effects(design: Design, values: np.ndarray, order: int = 2) -> pd.DataFrame:
    """All effects of up to so many factors, as one table within which p is adjusted by Holm.

    Returns:
        Columns effect ("SVR × cycles"), factors (how many), value, low, high, half width, p (Holm), seeds, clips; of
        fractions or whatever `values` are in.
    """
    named = {TIMES.join(one): one for one in design.effects(order)}
    found = holm({name: effect(design, values, *one) for name, one in named.items()})
    rows = [
        (name, len(named[name]), d.value, d.low, d.high, d.half_width, d.p_holm, d.seeds, d.clips)
        for name, d in found.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def several(design: Design, of: Callable[[str], np.ndarray], metrics: Iterable[str], order: int = 1) -> pd.DataFrame:
    """`effects` on several metrics, one below the other; each is adjusted within itself; column metric in front.

    of: metric → `responses`.
    """
    return pd.concat(
        [effects(design, of(metric), order).assign(metric=metric) for metric in metrics], ignore_index=True
    )[["metric", *COLUMNS]]


def interactions(table: pd.DataFrame, factors: Sequence[str]) -> np.ndarray:
    """`effects` as a symmetric matrix `(factors, factors)`: interactions beside the diagonal, main effects on it."""
    value = table.set_index("effect")["value"]
    found = np.zeros((len(factors), len(factors)))
    for i, one in enumerate(factors):
        found[i, i] = value[one]
        for j, other in enumerate(factors[:i]):
            name = TIMES.join((other, one))
            found[i, j] = found[j, i] = value[name]
    return found


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """`several` as a page shows it: a row an effect, a column a metric, "value ± half width", * for what stands.

    Recall is in points, other metrics as they are.
    """
    stands = set(standing(table).index)
    cells = []
    for row in table.itertuples():
        scale, form = (100, ".1f") if "R@1" in row.metric or row.metric == ENGLISH else (1, ".3f")
        half = (row.high - row.low) / 2
        star = " *" if row.Index in stands else ""
        cells.append(f"{scale * row.value:+{form}} ± {scale * half:{form}}{star}".replace("-", "−"))
    wide = table.assign(cell=cells).pivot_table(
        index="effect", columns="metric", values="cell", aggfunc="first", sort=False
    )
    return wide[list(dict.fromkeys(table["metric"]))].rename_axis(columns=None).reset_index()


def standing(table: pd.DataFrame, level: float = 0.05) -> pd.DataFrame:
    """The rows whose interval excludes zero and whose adjusted p is below the level."""
    return table[((table["low"] > 0) | (table["high"] < 0)) & (table["p"] < level)]


class Lenth(NamedTuple):
    """What effects of nothing would reach, by the effects themselves (Lenth 1989)."""

    error: float
    """Pseudo standard error."""
    margin: float
    """What one effect exceeds in 5 % of the cases if there is none."""
    simultaneous: float
    """What the largest of all exceeds in 5 % of the cases if there are none."""


def lenth(values: ArrayLike) -> Lenth:
    """Lenth's pseudo standard error of m effects, most of which should be none.

    PSE = 1.5 · median of those |effects| that are below 2.5 · (1.5 · median of all |effects|); its degrees of freedom
    are taken as m/3.

    Args:
        values: `(m,)` effects of one design, all of those that it can tell apart.

    Raises:
        ValueError: fewer than three.

    >>> round(lenth([10.0, 0.4, -0.2, 0.2, -0.4, 0.2, 0.4]).error, 2)  # the median of all but 10 times 1.5
    0.45
    """
    sizes = np.abs(np.asarray(values, dtype=np.float64))
    if sizes.ndim != 1 or len(sizes) < 3:
        raise ValueError(f"Lenth's error takes three effects at least, got {sizes.shape}")
    first = 1.5 * np.median(sizes)
    error = 1.5 * np.median(sizes[sizes < 2.5 * first]) if first else 0.0
    df = len(sizes) / 3
    every = (1 + 0.95 ** (1 / len(sizes))) / 2
    return Lenth(*(float(x) for x in (error, error * special.stdtrit(df, 0.975), error * special.stdtrit(df, every))))


def half_normal(design: Design, values: np.ndarray) -> pd.DataFrame:
    """All contrasts of a design beside what normal noise would give: for a half-normal plot (Daniel 1959).

    Returns:
        Columns effect, factors, value, size (|value|), quantile (of the half-normal at (i − ½)/m), smallest first.
    """
    means = values.mean(axis=(1, 2))
    named: list[Effect] = saturated(design)
    found = [float(means[(c := design.contrast(*one)) > 0].mean() - means[c < 0].mean()) for one in named]
    table = pd.DataFrame({"effect": [TIMES.join(one) for one in named], "factors": [len(one) for one in named]})
    table = table.assign(value=found, size=np.abs(found)).sort_values("size", ignore_index=True)
    share = (np.arange(len(table)) + 0.5) / len(table)
    return table.assign(quantile=special.ndtri((1 + share) / 2))
