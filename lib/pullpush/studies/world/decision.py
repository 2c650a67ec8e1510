"""Which audio encoder the coming chapters train with: the cheapest that cannot be told from the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
from IPython.display import Markdown

from pullpush.errors import PullPushError
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference

BRIDGE = "bridge, never trained"


class Choice(NamedTuple):
    """What was chosen.

    system: its label; best: that of the highest score; scores: system → mean; behind: system → what the best has over
    it, for those that were passed over and the chosen one.
    """

    system: str
    best: str
    scores: dict[str, float]
    behind: dict[str, Difference]


def cheapest_of_the_best(scores: Scores, by_cost: Sequence[str], *, test: str, metric: str = "R@1") -> Choice:
    """The first of the systems over which the best has nothing that could be told.

    by_cost: labels, the cheapest first; test: the clips that decide; an interval of the difference that holds zero
    tells nothing.
    """
    where = {"test": test}
    means = {system: float(scores.values(system, metric, where).mean()) for system in by_cost}
    best = max(by_cost, key=lambda system: means[system])
    behind: dict[str, Difference] = {}
    for system in by_cost:
        if system == best:
            return Choice(system, best, means, behind)
        behind[system] = scores.contrast(best, system, metric, where)
        if behind[system].low <= 0:
            return Choice(system, best, means, behind)
    raise AssertionError("the best is one of the systems")


def chosen(scores: Scores, by_cost: Sequence[str], *, test: str, metric: str = "R@1") -> Markdown:
    """The choice of `cheapest_of_the_best` and its reason, in words and numbers of the measurement."""
    return Markdown(sentence(cheapest_of_the_best(scores, by_cost, test=test, metric=metric), test=test, metric=metric))


def sentence(choice: Choice, *, test: str, metric: str = "R@1") -> str:
    """A choice and its reason."""
    means = {system: f"{100 * mean:.1f} %" for system, mean in choice.scores.items()}
    said = [f"**{choice.system}** ({metric} {means[choice.system]} on {test})."]
    for system, gain in choice.behind.items():
        points = f"{100 * gain.value:+.1f} points [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]".replace("-", "−")
        over = f"*{choice.best}* has {points} over *{system}*"
        said.append(f"{over}, which holds zero." if system == choice.system else f"{over}, which is cheaper.")
    if choice.system == choice.best:
        said.append("No other system scores higher.")
    return " ".join(said)


def floor(table: pd.DataFrame, *, test: str, metric: str) -> Markdown:
    """What trained systems score on a test, from the least to the most, beside the bridge and chance.

    table: rows as of `ears.standings`, the bridge's among them.
    """
    rows = table[(table["test"] == test) & (table["metric"] == metric)].set_index("system")
    if rows.empty:
        raise PullPushError(f"these data have no {test}: for them a bank needs two events or more")
    trained = rows.drop(index=BRIDGE)
    said = [f"On {test}, {metric} is {100 * rows.loc[BRIDGE, 'value']:.1f} % for the bridge"]
    if len(trained):
        span = f"{100 * trained['value'].min():.1f} to {100 * trained['value'].max():.1f} %"
        said.append(f"{span} for what was trained, the control among it")
    return Markdown(f"{', '.join(said)}, and {100 * rows['chance'].max():.1f} % by chance.")
