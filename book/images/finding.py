"""Draw the book's finding on one picture, from the kept runs of chapter 2: python book/images/finding.py"""

from pathlib import Path

import numpy as np
import pandas as pd

from pullpush.lab import arrays
from pullpush.metrics import difference
from pullpush.show.layout import finish, mark_zero, panels
from pullpush.show.marks import dots
from pullpush.show.palette import use_style
from pullpush.studies.svr.data import SCALED, TITLES
from pullpush.studies.svr.figures import COLOURS, MARKERS

HERE = Path(__file__).parent
RUNS = arrays.from_bytes((HERE.parent / "measured" / "02-mechanism" / "effects.nc").read_bytes())
DOSES = {name: option["perpendicular"] for name, (_, option) in SCALED.items() if "part" not in option}
SVR, QUARTERS = "SVR:PJA", 4
# Where SVR and InfoNCE were found best at one temperature and rate; on the other network it learns its radius.
LEADING = dict.fromkeys(TITLES, SVR) | {"frozen/cnn": "SVR, learnt R"}


def of(protocol: str, system: str, name: str) -> np.ndarray:
    """A variable of a system's runs, those first."""
    chosen = (RUNS["protocol"].values == protocol) & (RUNS["system"].values == system)
    return RUNS[name].isel(run=chosen).transpose("run", ...).values


def recalls(protocol: str, system: str) -> np.ndarray:
    """R@1, the mean of both directions, `(S, N)`."""
    return (of(protocol, system, "T2A R@1") + of(protocol, system, "A2T R@1")) / 2


def doses() -> pd.DataFrame:
    """R@1 over InfoNCE's where the push across the way is multiplied by a factor, a row a protocol and factor."""
    rows = []
    for protocol in TITLES:
        for system, factor in {**DOSES, "infonce": 1.0}.items():
            if len(ours := recalls(protocol, system)):
                gain = difference(ours, recalls(protocol, "infonce"))
                rows.append((protocol, factor, gain.value, gain.low, gain.high))
    table = pd.DataFrame(rows, columns=["protocol", "factor", "value", "low", "high"])
    return table.groupby("protocol", sort=False).filter(lambda rows: len(rows) > 2).sort_values("factor")


def leads() -> pd.DataFrame:
    """Validation R@1 of SVR over InfoNCE's by quarter of training, a row a protocol and quarter."""
    epochs, rows = list(RUNS["history column"].values).index("R@1"), []
    for protocol, system in LEADING.items():
        ours, theirs = (of(protocol, name, "history")[:, epochs] for name in (system, "infonce"))
        ahead = (ours - theirs)[:, ~np.isnan(ours).all(axis=0)]  # (S, epochs)
        for quarter, part in enumerate(np.array_split(ahead, QUARTERS, axis=1), start=1):
            gain = difference(part.mean(axis=1, keepdims=True))
            rows.append((protocol, quarter, gain.value, gain.low, gain.high))
    return pd.DataFrame(rows, columns=["protocol", "quarter", "value", "low", "high"])


def draw() -> None:
    fig, (left, right) = panels(2, height=4, width=8)
    for number, protocol in enumerate(TITLES):
        for ax, table, x in ((left, doses(), "factor"), (right, leads(), "quarter")):
            rows = table[table["protocol"] == protocol]
            at = rows[x] + (0.06 * (number - 1.5) if x == "quarter" else 0)
            ax.plot(at, 100 * rows["value"], color=COLOURS[protocol], linewidth=1.2)
            look = {"colour": COLOURS[protocol], "marker": MARKERS[protocol]}
            dots(ax, rows, at, scale=100, upright=True, **look)
        left.annotate(TITLES[protocol], (0.97, 0.32 - 0.08 * number), color=COLOURS[protocol], weight="bold",
                      xycoords="axes fraction", ha="right", fontsize=9)  # fmt: skip
    for ax in (left, right):
        mark_zero(ax, "y")
    left.set(xlabel="factor of the push across the way", ylabel="R@1 over InfoNCE's (points)")
    left.set_title("Recall is highest at\nInfoNCE's own push.")
    right.set(xlabel="quarter of training", ylabel="lead of SVR in R@1 (points)", xticks=range(1, QUARTERS + 1))
    right.set_title("SVR, which turns it down, is ahead\nearly, and no longer at the end.")
    fig.suptitle("The push across the way is needed; SVR is a head start", weight="bold")
    finish(fig, "5 or 10 seeds; 95 % intervals, left over seeds and clips, right over seeds")
    fig.savefig(HERE / "finding.png", dpi=200)


if __name__ == "__main__":
    use_style()
    draw()
