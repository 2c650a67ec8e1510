"""One inference for every difference between two systems: scores per seed and per clip, paired in both.

Seeds and clips are both samples: d[s,c] = μ + A[s] + B[c] + E[s,c], a crossed random-effects design (Searle, Casella &
McCulloch 1992, *Variance Components*, ch. 4). With the mean squares MS of seeds, clips and the rest, S seeds, C clips,

    V = (MS_seed + max(MS_clip − MS_rest, 0)) / SC      estimates Var(mean) = σ²_seed/S + σ²_clip/C + σ²_rest/SC
    1/df = share_seed/(S − 1) + share_clip/(C − 1)      with the shares of the two terms in V
    mean ± t(df) √V

V is the squared error of a t-test over the seeds' means plus what that cannot see, other clips. One clip, or clips that
all say the same, leave that t-test; one seed, or equal seeds, the one over clips. Fewer clips than seeds change places.

Satterthwaite (1946) squares the shares in 1/df; components are usually raised to 0. That leaves 90 % of 95 for 3 seeds:
a small MS_seed lowers V and raises df at once. Lowest and highest coverage in percent over 100 and 500 clips, seeds to
clips 0.1, 1, 10, rest to clips 0, 1, 10 (contributions to Var(mean)); `benchmarks/interval_coverage.py` prints all:

    seeds                    2            3            5           10           20
    this rule      90.9 – 96.3  94.2 – 96.1  95.1 – 96.0  95.2 – 95.7  95.0 – 95.4
    Satterthwaite  85.0 – 96.6  89.8 – 96.5  92.6 – 96.4  93.4 – 96.1  94.0 – 95.9
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import special
from torch.nn import functional as F

from pullpush.checks import check_number, check_tensors
from pullpush.metrics._retrieval import KS, MAP_AT, by_clip
from pullpush.precision import single

Array = NDArray[np.float64]
HOLDS, SMALLER, NO_EFFECT = "holds", "holds, smaller", "no effect"
REVERSED, CANNOT_TELL = "reversed", "cannot tell"
VERDICTS = (HOLDS, SMALLER, NO_EFFECT, REVERSED, CANNOT_TELL)


@dataclass(frozen=True)
class Variance:
    """Variances of one score's parts (≥ 0, squared units) and their shares of the variance of the mean (sum 1)."""

    seed: float
    clip: float
    interaction: float  # seed × clip, and what is left
    shares: Mapping[str, float]  # all 0 where nothing varies


@dataclass(frozen=True)
class Difference:
    """A mean difference in the units of the scores; prints as `+1.23 ± 0.80 [0.43, 2.03]`, finer with `f"{d:.3f}"`."""

    value: float
    low: float
    high: float
    half_width: float
    p: float  # two-sided, for no difference: below 1 − level where the interval excludes 0
    df: float
    level: float
    seeds: int  # 1: seeds were not sampled, the interval speaks of clips alone
    clips: int  # 1: one number a seed, the interval speaks of seeds alone
    variance: Variance
    p_holm: float | None = None  # see `holm`

    @property
    def stands(self) -> bool:
        """Whether it differs from 0: the interval excludes 0 and, after `holm`, the adjusted p is below 1 − level."""
        return not self.low <= 0 <= self.high and (self.p_holm is None or self.p_holm < 1 - self.level)

    def __format__(self, spec: str = "") -> str:
        half, low, high = (format(x, "z" + (spec or ".2f")) for x in (self.half_width, self.low, self.high))
        return f"{format(self.value, '+z' + (spec or '.2f'))} ± {half} [{low}, {high}]".replace("-", "−")

    __str__ = __format__


def difference(ours: ArrayLike, theirs: ArrayLike | None = None, *, level: float = 0.95) -> Difference:
    """mean(ours − theirs) over seeds and clips, with the interval of this module; float64 throughout.

    `ours`: `(seeds, clips)`, one number a seed as `(seeds, 1)`. `theirs`: same seeds and clips in the same order, or a
    number.
    ValueError: shapes differ or hold no sample, a value is not finite, `level` lies outside (0, 1).

    >>> print(difference([[3.1, 2.0, 4.2, 3.4], [3.2, 2.9, 4.9, 3.5], [2.7, 2.2, 4.4, 3.0]], 1.0))
    +2.29 ± 1.56 [0.73, 3.86]
    """
    quantile, ours, theirs = _quantile(level), finite("ours", ours), finite("theirs", 0 if theirs is None else theirs)
    if ours.ndim != 2:
        shapes = "(seeds, clips): one number a seed is values[:, None], one seed values[None]"
        raise ValueError(f"ours has shape {ours.shape}, expected {shapes}")
    if theirs.shape not in ((), ours.shape):
        raise ValueError(f"both need the same seeds and clips: ours is {ours.shape}, theirs {theirs.shape}")
    if ours.size < 2:
        raise ValueError(f"ours of shape {ours.shape} has no interval: it takes two seeds or two clips at least")
    scores = ours - theirs
    row, column, rest = (ms / scores.size for ms in mean_squares(scores))
    error, df = standard_error(row - rest, column - rest, rest, *scores.shape)
    rounding = 8 * np.finfo(float).eps * max(np.abs(ours).max(), np.abs(theirs).max())  # is no difference
    value, error = (x if abs(x) > rounding else 0.0 for x in (float(scores.mean()), float(error)))
    half = float(special.stdtrit(df, quantile) * error)
    p = 2 * float(special.stdtr(df, -abs(value) / error)) if error else float(value == 0)
    numbers = (value, value - half, value + half, half, p, float(df), float(level))
    seeds, clips = scores.shape
    return Difference(*numbers, seeds, clips, _components(scores))


def scored(audio: Any, text: Any, *, ks: Sequence[int] = KS, map_at: Sequence[int] = MAP_AT) -> dict[str, Difference]:
    """What two arrays of embeddings score, in both directions, with 95 % intervals over the clips.

    >>> print(scored(np.eye(20), np.eye(20)[::-1].copy(), ks=(1,), map_at=())["T2A R@1"])
    +0.00 ± 0.00 [0.00, 0.00]

    Args:
        audio: `(N, d)`, a tensor or an array, brought to unit length here.
        text: `(N, d)`, or `(N, C, d)` of C captions a clip; row i is of clip i.
        ks, map_at: as for `by_clip`, whose protocol and names these are.

    Returns:
        "T2A R@1" … "A2T mAP@16" → a `Difference` from nothing: `value`, `low`, `high`, fractions. Intervals are
        symmetric, and may reach beyond 0 and 1.

    Raises:
        ValueError, TypeError: see `by_clip`; complex numbers.
    """
    both = {name: torch.as_tensor(x).detach().cpu() for name, x in (("audio", audio), ("text", text))}
    both = {name: x if x.is_complex() else x.double() for name, x in both.items()}
    check_tensors(**both)
    pair = [F.normalize(x, dim=-1) for x in both.values()]
    return {name: difference(x.numpy()[None]) for name, x in by_clip(*pair, ks=ks, map_at=map_at).items()}


def mean_squares(scores: Array) -> tuple[Array, Array, Array]:
    """Mean squares of rows, columns and the rest of `(..., rows, columns)`; 0 without degrees of freedom."""
    rows, columns = scores.shape[-2:]
    row, column = scores.mean(axis=-1, keepdims=True), scores.mean(axis=-2, keepdims=True)
    mean = row.mean(axis=-2, keepdims=True)
    rest = scores - row - column + mean if rows > 1 and columns > 1 else np.zeros_like(scores)
    return (
        columns * ((row - mean) ** 2).sum(axis=(-2, -1)) / max(rows - 1, 1),
        rows * ((column - mean) ** 2).sum(axis=(-2, -1)) / max(columns - 1, 1),
        (rest**2).sum(axis=(-2, -1)) / max((rows - 1) * (columns - 1), 1),
    )


def standard_error(row: ArrayLike, column: ArrayLike, rest: ArrayLike, rows: ArrayLike, columns: int):
    """√V and df from the contributions to Var(mean) of rows, columns and the rest; all broadcast.

    A mean square counts as no less than the 5 % point of what the rest alone makes of it: three seeds of 0/1 scores
    whose means agree are no certainty.
    """
    fewer = np.asarray(rows) <= columns
    few, many = np.where(fewer, rows, columns) - 1, np.where(fewer, columns, rows) - 1
    least = special.fdtri(np.maximum(few, 1), np.maximum(few * many, 1), 0.05) * rest
    small = np.maximum(np.where(fewer, row, column) + rest, least)
    total = small + np.maximum(np.where(fewer, column, row), 0)
    share = np.divide(small, total, out=np.ones_like(total), where=total > 0) * (few > 0)
    return np.sqrt(total), 1 / (share / np.maximum(few, 1) + (1 - share) / many)


def holm(differences: Sequence[Difference]) -> list[Difference]:
    """The differences of one table with `p_holm` (Holm 1979): ask each if it `stands`. Of p alone: `adjusted`.

    >>> [round(d.p_holm, 3) for d in holm([difference([[1.0], [2.0], [1.5]]), difference([[8.0], [9.0], [7.0]])])]
    [0.035, 0.01]
    """
    return [replace(d, p_holm=float(q)) for d, q in zip(differences, adjusted([d.p for d in differences]), strict=True)]


def adjusted(p: ArrayLike) -> Array:
    """p values `(n,)` of one table, adjusted by Holm (1979).

    >>> adjusted([0.03, 0.01]).tolist()
    [0.03, 0.02]
    """
    p = finite("p", p)
    if p.ndim != 1 or ((p < 0) | (p > 1)).any():
        raise ValueError(
            f"p must be (n,), numbers from 0 to 1, got {p.shape} from {p.min(initial=1):g} to {p.max(initial=0):g}"
        )
    order, result = np.argsort(p, kind="stable"), np.empty_like(p)
    result[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return result


def verdict(difference: Difference, effect: float | str, *, margin: float | None = None, exact: bool = False) -> str:
    """What an interval (after `holm`: and its adjusted p) says of a paper's effect, in the book's words.

    *holds*: differs from 0 to the paper's side; *holds, smaller*: so it does, and the interval stays below the paper's
    value; *reversed*: differs to the other side; *no effect*: does not differ, and the interval lies within ± `margin`;
    *cannot tell*: none of these. An interval of no width is no evidence, unless what it is of was counted (`exact`).

    >>> verdict(difference([[0.9, 1.1, 1.0]]), 3.0), verdict(difference([[0.9, 1.1, 1.0]]), "higher")
    ('holds, smaller', 'holds')
    >>> verdict(difference([[-0.2, 0.2, 0.1]]), 2.0, margin=0.8), verdict(difference([[-0.2, 0.2, 0.1]]), 2.0)
    ('no effect', 'cannot tell')

    `effect` is the paper's difference in the same units and order of systems; "higher" or "lower" where it gives no
    number; or "equal", which needs a margin, holds for an interval within it and is reversed by one wholly outside.
    Margins are declared before the runs.
    """
    low, high = difference.low, difference.high
    is_equal = effect == "equal"
    if (is_equal and margin is None) or (margin is not None and not margin > 0):
        raise ValueError(f"a margin is positive, and the effect 'equal' needs one: got {effect!r}, margin={margin}")
    number = np.inf if effect in ("higher", "equal") else -np.inf if effect == "lower" else effect
    if isinstance(number, str) or not abs(number) > 0:
        raise ValueError(f"effect must be 'higher', 'lower', 'equal' or a number other than 0, got {effect!r}")
    if difference.half_width == 0 and not exact:
        return CANNOT_TELL
    is_within = margin is not None and max(-low, high) <= margin
    if margin is not None and is_equal:
        return HOLDS if is_within else REVERSED if max(low, -high) > margin else CANNOT_TELL
    if difference.stands:
        is_below = np.isfinite(number) and (high < number if number > 0 else low > number)
        return REVERSED if difference.value * number < 0 else SMALLER if is_below else HOLDS
    return NO_EFFECT if is_within else CANNOT_TELL


def _components(scores: Array) -> Variance:
    """Variance components of `(seeds, clips)` by ANOVA, raised to 0."""
    seeds, clips = scores.shape
    row, column, rest = (float(ms) for ms in mean_squares(scores))
    parts = {"seed": (row - rest) / clips, "clip": (column - rest) / seeds, "interaction": rest}
    parts = {name: max(part, 0.0) for name, part in parts.items()}
    of_mean = {name: part / n for (name, part), n in zip(parts.items(), (seeds, clips, scores.size), strict=True)}
    total = sum(of_mean.values()) or 1.0
    return Variance(**parts, shares={name: part / total for name, part in of_mean.items()})


def _quantile(level: float) -> float:
    check_number("level", level)
    if not 0 < level < 1:
        raise ValueError(f"level is a fraction such as 0.95, got {level}")
    return (1 + level) / 2


# ---------------------------------------------------------------- several cells, one effect


def main_effect(cells: Mapping[frozenset[str], ArrayLike], factor: str) -> Difference:
    """What a factor adds in the mean over all companies: the cells in which it is, less those in which it is not.

    `cells`: the factors that are there → scores `(seeds, clips)`, of the same seeds and clips; each cell with the
    factor has its counterpart without. An effect "A × B" is half of what one adds to the other (Box, Hunter & Hunter,
    *Statistics for Experimenters*, ch. 5). ValueError: no such factor, or a cell without its counterpart.

    >>> low = np.array([[0.1, 0.2], [0.2, 0.3]])
    >>> cells = {frozenset(): low, frozenset("A"): low + 1, frozenset("B"): low + 2, frozenset("AB"): low + 5}
    >>> [round(main_effect(cells, name).value, 6) for name in ("A", "A × B")]  # (1 + 3)/2 and (3 − 1)/2
    [2.0, 1.0]
    """
    names = factor.split(" × ")
    for name in names:
        if not any(name in cell for cell in cells) or any(cell ^ {name} not in cells for cell in cells):
            raise ValueError(
                f"{name!r} must be in half of the cells, each with its counterpart without: got {[*cells]}"
            )
    is_high = {cell: (len(names) - len(cell & {*names})) % 2 == 0 for cell in cells}
    halves = [
        np.mean([finite("cells", cells[cell]) for cell in cells if is_high[cell] is high], 0) for high in (True, False)
    ]
    return difference(*halves)


def conditional_effect(
    cells: Mapping[frozenset[str], ArrayLike], factor: str, *, beside: str, without: bool = False
) -> Difference:
    """`main_effect` of a factor where another one is (`without`: where it is not), of the same cells.

    >>> low = np.array([[0.1, 0.2], [0.2, 0.3]])
    >>> cells = {frozenset(): low, frozenset("A"): low + 1, frozenset("B"): low + 2, frozenset("AB"): low + 5}
    >>> [round(conditional_effect(cells, "A", beside="B", without=is_alone).value, 6) for is_alone in (False, True)]
    [3.0, 1.0]
    """
    return main_effect({cell: scores for cell, scores in cells.items() if (beside in cell) is not without}, factor)


# ---------------------------------------------------------------- what is no mean over clips


def pseudo_values(statistic: Callable[[Array], float], values: ArrayLike) -> Array:
    """Jackknife pseudo-values N θ − (N − 1) θ₍₋ᵢ₎ `(N,)` of a statistic that is no mean over clips (Tukey 1958).

    `statistic` makes a number of `values` `(N, ...)`. Taken of each system and seed, they go through `difference` as
    scores do; their mean is θ less its bias of order 1/N. ValueError for N < 2. A median or quantile is not smooth
    enough: its pseudo-values have a wrong variance for any N (Efron 1982, § 3.4).

    >>> pseudo_values(np.mean, [1.0, 2.0, 6.0]).tolist()
    [1.0, 2.0, 6.0]
    """
    values = finite("values", values)
    if (n := len(np.atleast_1d(values))) < 2:
        raise ValueError(f"values must have at least two clips on their first axis, got shape {values.shape}")
    left_out = [statistic(np.delete(values, i, axis=0)) for i in range(n)]
    return finite("statistic", n * float(statistic(values)) - (n - 1) * np.asarray(left_out, np.float64))


def gap_pseudo_values(vectors: ArrayLike) -> Array:
    """`pseudo_values` `(N,)` of Gap, the norm of the mean of vectors `(N, d)`, in one pass.

    >>> gap_pseudo_values([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [5.0, 0.0]
    """
    vectors = finite("vectors", vectors)
    if vectors.ndim != 2 or len(vectors) < 2:
        raise ValueError(f"vectors must be (N, d) with at least two clips, got shape {vectors.shape}")
    total = vectors.sum(axis=0)
    return np.linalg.norm(total) - np.linalg.norm(total - vectors, axis=-1)


def finite(name: str, values: ArrayLike) -> Array:
    """The values as float64; ValueError for those that are not finite or not real, with their name and place."""
    values = single(values.detach()).cpu() if torch.is_tensor(values) else values
    if np.iscomplexobj(values):
        raise ValueError(f"{name} must be real numbers, got complex ones")
    cure = "leave out, everywhere, a clip that lacks a score in any seed or system"
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values: {cure}")
    values = np.asarray(values, np.float64)
    if len(bad := np.argwhere(~np.isfinite(values))):
        raise ValueError(f"{name} has {len(bad)} values that are not finite, the first at {bad[0].tolist()}: {cure}")
    return values
