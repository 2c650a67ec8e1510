"""Main effects and interactions of a factorial design, with intervals over seeds and clips.

The effect of a factor is the mean of the runs in which it is high less the mean of those in which it is low; that of
two factors together is half of what one adds to the other (Box, Hunter & Hunter, ch. 5). Either is a difference between
two halves of the runs, and every run has the same seeds and the same clips: so the halves are averaged by seed and
clip, and go to the book's one inference as ours and theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from pullpush.lab.comparisons import differences
from pullpush.lab.experiments import Where
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference, difference
from pullpush.studies.together.design import Design
from pullpush.studies.together.terms import label

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


def responses(scores: Scores, design: Design, metric: str) -> np.ndarray:
    """What the runs of a design scored in one of METRICS, `(runs, seeds, clips)`, in the design's order.

    Raises:
        ExperimentError: a run, or the metric, is not there.
    """
    return np.stack([scores.values(label(high), *METRICS[metric]) for high in design.runs])


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
    """All effects of up to so many factors: columns effect ("SVR × cycles"), factors (how many), and those of
    `lab.comparisons.GAIN`, in the unit of the values; p is adjusted by Holm within the table.
    """
    return differences(
        ({"effect": TIMES.join(one), "factors": len(one)}, effect(design, values, *one))
        for one in design.effects(order)
    )


def interactions(table: pd.DataFrame, factors: Sequence[str]) -> np.ndarray:
    """`effects` as a symmetric matrix `(factors, factors)`: interactions beside the diagonal, main effects on it."""
    value = table.set_index("effect")["value"]
    pairs = [[sorted({one, other}, key=list(factors).index) for other in factors] for one in factors]
    return np.array([[value[TIMES.join(pair)] for pair in row] for row in pairs])


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


def standing(table: pd.DataFrame, level: float = 0.05) -> pd.DataFrame:
    """The rows whose interval excludes zero and whose adjusted p is below the level."""
    return table[((table["low"] > 0) | (table["high"] < 0)) & (table["p"] < level)]


class Lenth(NamedTuple):
    """What effects of nothing would reach, by the effects themselves (Lenth 1989).

    error: pseudo standard error; margin: what one effect exceeds in 5 % of the cases if there is none; simultaneous:
    what the largest of all exceeds in 5 % of the cases if there are none.
    """

    error: float
    margin: float
    simultaneous: float


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
    contrasts = [(one, design.contrast(*one) > 0) for one in design.saturated()]
    rows = [(TIMES.join(one), len(one), means[high].mean() - means[~high].mean()) for one, high in contrasts]
    table = pd.DataFrame(rows, columns=["effect", "factors", "value"])
    table = table.assign(size=table["value"].abs()).sort_values("size", ignore_index=True)
    share = (np.arange(len(table)) + 0.5) / len(table)
    return table.assign(quantile=special.ndtri((1 + share) / 2))
