"""Draw the book's finding on one picture, from the kept runs of chapter 2: python book/images/finding.py"""

from pathlib import Path

import numpy as np
import pandas as pd

from pullpush.lab import arrays
from pullpush.metrics import difference
from pullpush.show.layout import dodge, finish, mark_zero, name_places, panels
from pullpush.show.marks import band, dots
from pullpush.show.palette import BLACK, BLUE, ORANGE, PARTS, method_styles, use_style

HERE = Path(__file__).parent
RUNS = arrays.from_bytes((HERE.parent / "measured" / "02-svr-lab" / "end-to-end.nc").read_bytes())
SVR = "infonce+bi-dynamic-svr"
COMPARED = {  # system, its baseline → what the figure calls the difference
    ("infonce+bi-static-svr", "infonce"): "InfoNCE\n+ bi-StaticSVR",
    (SVR, "infonce"): "InfoNCE\n+ bi-DynamicSVR",
    ("twice", "infonce"): "InfoNCE\ncounted twice",
}


def gains() -> pd.DataFrame:
    """R@1 by which systems exceed their baselines: inference over seeds and clips, a row a comparison and direction."""
    found = {
        (system, direction): RUNS[f"{direction} R@1"].isel(run=RUNS["system"].values == system).values.T  # (S, N)
        for system in dict.fromkeys(RUNS["system"].values)
        for direction in ("T2A", "A2T")
    }
    rows = []
    for (system, baseline), name in COMPARED.items():
        for direction in ("T2A", "A2T"):
            gain = difference(found[system, direction], found[baseline, direction])
            rows.append((name, direction, gain.value, gain.low, gain.high))
    return pd.DataFrame(rows, columns=["name", "direction", "value", "low", "high"])


def steps_of_runs() -> pd.DataFrame:
    """What was measured while training: a row a run and stretch."""
    columns = RUNS["steps column"].values
    stretches = RUNS["steps"].transpose("run", "stretch", "steps column")
    runs = zip(RUNS["system"].values, RUNS["seed"].values, stretches.values, strict=True)
    return pd.concat(
        [pd.DataFrame(rows, columns=columns).assign(system=system, seed=seed) for system, seed, rows in runs],
        ignore_index=True,
    )


def draw() -> None:
    steps = steps_of_runs()
    fig, (left, middle, right) = panels(3, height=4, width=8)
    for part in ("pull", "perpendicular", "parallel"):
        rows = steps[steps["system"] == "infonce"]
        band(left, rows, "step", part, colour=PARTS[part][1])
    for part, place in {"pull": (115, 10), "perpendicular": (215, 6.2), "parallel": (140, 1.1)}.items():
        left.annotate(
            PARTS[part][0].replace("push, ", "push,\n"), place, color=PARTS[part][1], weight="bold", fontsize=9
        )
    left.set(xlabel="step", ylabel="mean force on a caption", ylim=(0, None))
    left.set_title("The push is nearly all\nperpendicular to the pull.")

    table = gains()
    for number, (direction, colour) in enumerate({"T2A": BLUE, "A2T": ORANGE}.items()):
        rows = table[table["direction"] == direction]
        places = np.arange(len(rows)) + dodge(number, 2, 0.36)
        dots(middle, rows, places, scale=100, colour=colour, marker="os"[number])
        middle.annotate(direction, (100 * rows["value"].iloc[0], places[0]), (0, 5 - 17 * number), color=colour,
                        textcoords="offset points", ha="center", weight="bold", fontsize=9)  # fmt: skip
    name_places(middle, list(COMPARED.values()))
    mark_zero(middle)
    middle.set(xlabel="R@1 over InfoNCE (points)", xlim=(-2, 9))
    middle.set_title("Support vectors turn it down:\nrecall rises, …")

    styles = method_styles(["infonce", SVR])
    for system, style in styles.items():
        band(right, steps[steps["system"] == system], "step", "update_drift_tangent", colour=style["colour"])
    right.axhline(1, color=BLACK, linestyle=":", linewidth=1)
    right.annotate("straight to its sound", (500, 0.97), ha="right", va="top", fontsize=9)
    right.annotate("InfoNCE", (480, 0.36), ha="right", color=styles["infonce"]["colour"], weight="bold")
    right.annotate("+ bi-DynamicSVR", (480, 0.29), ha="right", color=styles[SVR]["colour"], weight="bold")
    right.set(xlabel="step", ylabel="cosine of a caption's step\nand the way to its sound", ylim=(0, 1.05))
    right.set_title("… but the steps that\nare taken stay as oblique.")

    fig.suptitle("SVR raises recall, but captions go no straighter to their sounds", weight="bold")
    finish(
        fig, "InfoNCE end to end, 5 seeds: means, bands from the least to the most; 95 % intervals over seeds and clips"
    )
    fig.savefig(HERE / "finding.png", dpi=200)


if __name__ == "__main__":
    use_style()
    draw()
