"""Figures of chapter 3: the same clip in eight languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import ScalarFormatter

from pullpush.show.layout import (
    dodge,
    finish,
    mark_zero,
    name_places,
    panels,
    plain_logarithm,
    spread_note,
    whole_numbers,
)
from pullpush.show.marks import band, dots, scatter
from pullpush.show.palette import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    VERMILION,
    language_colour,
    language_name,
    method_name,
    method_styles,
)
from pullpush.studies.consistency.stage_figures import aim_history, gains_by_stage
from pullpush.studies.consistency.unheard import UNHEARD
from pullpush.studies.svr.figures import gain_intervals
from pullpush.training.recipes import RECIPES

__all__ = [
    "aim_history", "direction_history", "error_by_count", "gain_intervals", "gains_by_language", "gains_by_stage",
    "language_map", "longer_curves", "pull_plane", "score_by_count", "scores_by_language", "speech_recall",
    "weight_bound",
]  # fmt: skip
R1 = ("T2A R@1", "A2T R@1")


def direction_history(table: pd.DataFrame) -> Figure:
    """ATRI Figure 2 measured over training, a colour a scheme: left on embeddings, right on gradients.

    table: columns recipe, seed, step and those of `DirectionProbe`.
    """
    fig, (left, right) = panels(2, height=3.4, sharey=True)
    curves = {
        left: {"one": ("one random language", "-"), "pair": ("English and one other", "--")},
        right: {"one gradient": ("one random language", "-"), "batch gradient": ("other clips, all languages", ":")},
    }
    styles = method_styles(table["recipe"])
    for ax, columns in curves.items():
        for recipe, rows in table.groupby("recipe", sort=False):
            for column, (_, line) in columns.items():
                band(ax, rows, "step", column, style=line, colour=styles[recipe]["colour"])
    left.set(xlabel="step", ylabel="angle to all eight languages (°)", title="way of the clip", ylim=(0, 100))
    right.set(xlabel="step", title="gradient of the weights")
    handles = [_key(style["colour"], f"trained with {style['label']}") for style in styles.values()]
    lines = {name: line for columns in curves.values() for name, line in columns.values()}
    handles += [_key(BLACK, name, line) for name, line in lines.items()]  # pyrefly: ignore[bad-argument-type]
    return finish(fig, spread_note(table), handles=handles)


def pull_plane(table: pd.DataFrame) -> Figure:
    """ATRI Figure 2 measured: the pull of each of a clip's texts on it, and in black their mean.

    table: columns language ("all" for the mean), along, across; see `direction.pull_plane`.
    """
    styles: dict[str, dict[str, Any]] = {
        code: {"label": language_name(code), "color": language_colour(code)} for code in table["language"]
    }
    styles["all"] = {"label": "mean of all eight", "color": BLACK, "linestyle": "--", "linewidth": 2.5}
    fig, (ax,) = panels(1, height=3.2)
    for row in table.itertuples():
        ax.plot((0, row.along), (0, row.across), marker="o", markevery=[1], markersize=4, **styles[row.language])
    ax.set(xlabel="along the mean", ylabel="across it")
    ax.margins(0.1)
    ax.set_aspect("equal", adjustable="datalim")
    return finish(fig)


def error_by_count(table: pd.DataFrame, panels_of: Mapping[str, str]) -> Figure:
    """Direction error over the number of languages.

    table: columns system, seed, what, count, error; panels_of: what → name of the axis.
    """
    fig, axes = panels(len(panels_of), height=2.8, sharey=True)
    styles = method_styles(table["system"])
    for ax, (what, name) in zip(axes, panels_of.items(), strict=True):
        for system, rows in table[table["what"] == what].groupby("system", sort=False):
            band(ax, rows, "count", "error", style="o-", **styles[system])
        ax.set(xlabel=name, ylim=(0, None))
    axes[0].set_ylabel("direction error (°)")
    return finish(fig, spread_note(table))


def weight_bound(table: pd.DataFrame, samplings: Mapping[str, str]) -> Figure:
    """Both sides of ATRI's bound over epochs: solid the error, dashed and dotted its bounds.

    table: columns sampling, seed and those of `WeightError`; samplings: sampling → scheme.
    """
    bounds = {"stepwise": ("Eq. 18, each step", ":"), "right": ("Eq. 21", "--"), "expanded": ("Eq. 21, unrolled", "-.")}
    fig, (left, right) = panels(2, height=3)
    styles = method_styles(samplings.values())
    for sampling, scheme in samplings.items():
        rows = table[table["sampling"] == sampling]
        if rows["left"].max() <= 1e-9:  # nothing to see on a logarithmic axis
            continue
        band(left, rows, "epoch", "left", **styles[scheme])
        band(right, rows, "epoch", "left", **styles[scheme])
        for column, (_, line) in bounds.items():
            band(right, rows, "epoch", column, style=line, colour=styles[scheme]["colour"])
    for name, line in bounds.values():
        right.plot([], [], line, color=BLACK, label=name)
    left.set(xlabel="epoch", ylabel="‖w − w′‖", title="what happened", ylim=(0, None))
    right.set(xlabel="epoch", ylabel="‖w − w′‖ and its bounds", title="what the bound allows", yscale="log")
    plain_logarithm(right.yaxis)
    for ax in (left, right):
        whole_numbers(ax)
    return finish(fig, spread_note(table))


def scores_by_language(table: pd.DataFrame, metrics: Mapping[str, str], *, chance: bool = False) -> Figure:
    """A dot for each scheme and language, a panel a metric; bars from the least to the most of the seeds.

    table: columns system, seed, language, the metrics (fractions) and perhaps chance; metrics: column → axis.
    """
    languages, styles = list(dict.fromkeys(table["language"])), method_styles(table["system"])
    fig, axes = panels(len(metrics), height=1.1 + 0.32 * len(languages), sharey=True)
    for ax, (metric, name) in zip(axes, metrics.items(), strict=True):
        for number, system in enumerate(styles):
            rows = table[table["system"] == system]
            spread = rows.groupby("language")[metric].agg(["mean", "min", "max"]).loc[languages]
            places = np.arange(len(languages)) + dodge(number, len(styles))
            dots(ax, spread, places, value="mean", low="min", high="max", scale=100, **styles[system])
        if chance:
            level = 100 * table.groupby("language")["chance"].mean().loc[languages]
            ax.plot(level, range(len(languages)), "|", color=BLACK, markersize=10, label="chance")
        name_places(ax, [_name(code) for code in languages])
        ax.set(xlabel=f"{name} (%)", xlim=(0, None))
    return finish(fig, spread_note(table, "bar", within=("system",)))


def gains_by_language(table: pd.DataFrame) -> Figure:
    """What systems have over their baselines in each language, a panel a pair, with 95 % intervals.

    table: columns system, baseline, language, metric (one for all), value, low, high (fractions).
    """
    languages = list(dict.fromkeys(table["language"]))
    pairs = list(table.groupby(["system", "baseline"], sort=False))
    fig, axes = panels(len(pairs), height=1.1 + 0.27 * len(languages), sharex=True, sharey=True)
    for ax, ((system, baseline), rows) in zip(axes, pairs, strict=True):
        dots(ax, rows, np.arange(len(rows)), scale=100)
        mark_zero(ax)
        name_places(ax, [_name(code) for code in languages])
        ax.set_title(f"{method_name(system)} − {method_name(baseline)}")
        ax.set_xlabel(f"{rows['metric'].iloc[0]} (points)")
    return finish(fig)


def score_by_count(table: pd.DataFrame, metrics: Sequence[str] = R1) -> Figure:
    """A score over the number of languages trained on, a curve a group; columns K, seed, group, and the metrics."""
    colours = {"English": BLACK, "trained on": GREEN, "never trained on": VERMILION, "all eight": BLUE}
    fig, axes = panels(len(metrics), height=3, sharey=True)
    for ax, metric in zip(axes, metrics, strict=True):
        for group, rows in table.groupby("group", sort=False):
            band(ax, rows, "K", metric, style="o-", label=group, colour=colours.get(group, PURPLE), scale=100)
        ax.set(xlabel="languages trained on (K)", title=metric, xticks=sorted(table["K"].unique()))
    axes[0].set_ylabel("R@1 (%)")
    return finish(fig, spread_note(table))


def language_map(table: pd.DataFrame, title: str = "") -> Figure:
    """ATRI Figures 3 and 4: captions in the colour of their language and the shape of their item, a panel a map.

    table: columns method (of the map), item, language ("audio" is a cross), x, y. Lines join an item's captions to
    their centre; shapes repeat after ten items.
    """
    methods = list(dict.fromkeys(table["method"]))
    fig, axes = panels(len(methods), height=4)
    for ax, method in zip(axes, methods, strict=True):
        for item, rows in table[table["method"] == method].groupby("item"):
            _map_item(ax, rows[rows["language"] != "audio"], "osv^<>DphX"[item % 10])
            clip = rows[rows["language"] == "audio"]
            scatter(ax, clip["x"], clip["y"], sizes=36, colours=BLACK, marker="+")
        ax.set(xlabel=f"{method} 1", ylabel=f"{method} 2", xticks=[], yticks=[], title=f"{title}, {method}".strip(", "))
    codes = [code for code in dict.fromkeys(table["language"]) if code != "audio"]
    handles = [_key(language_colour(code), language_name(code), "", "o") for code in codes]
    return finish(fig, handles=[*handles, _key(BLACK, "clip", "", "+")])


def _map_item(ax: Axes, texts: pd.DataFrame, shape: str) -> None:
    for x, y in zip(texts["x"], texts["y"], strict=True):
        ax.plot([texts["x"].mean(), x], [texts["y"].mean(), y], color="#BBBBBB", linewidth=0.7, zorder=1)
    colours = [language_colour(language) for language in texts["language"]]
    scatter(ax, texts["x"], texts["y"], sizes=26, colours=colours, marker=shape)


def longer_curves(table: pd.DataFrame) -> Figure:
    """Recall and rank variance over texts read and over steps, a curve a scheme.

    table: columns system, seed, texts, steps, T2A R@1 and MRV; see `longer_table`.
    """
    fig, axes = panels(2, 2, height=2.5, sharey="row", sharex="col")
    styles = method_styles(table["system"])
    metrics = {"T2A R@1": ("T2A R@1 (%)", 100), "MRV": ("MRV", 1)}
    for number, ax in enumerate(axes):
        metric, x = list(metrics)[number // 2], ("texts", "steps")[number % 2]
        for system, rows in table.groupby("system", sort=False):
            band(ax, rows, x, metric, style="o-", scale=metrics[metric][1], **styles[system])
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(ScalarFormatter())
        if metric == "MRV":
            ax.set_yscale("log")
            plain_logarithm(ax.yaxis)
        ax.set_xlabel({"texts": "texts read for each clip", "steps": "steps"}[x] if number > 1 else "")
        ax.set_ylabel(metrics[metric][0] if number % 2 == 0 else "")
    return finish(fig, spread_note(table))


def speech_recall(table: pd.DataFrame, spoken: Mapping[str, str]) -> Figure:
    """Spoken queries by the language of the texts: R@10 above, wrong texts of like length ahead below; 95 % intervals.

    table: see `speech_table`, of one set of queries; spoken: code → title of its panel.
    """
    texts, styles = list(dict.fromkeys(table["text"])), method_styles(table["system"])
    controls = [system for system in styles if system not in RECIPES]
    for system, colour in zip(controls, (BLACK, GREY), strict=False):
        styles[system] |= {"colour": colour, "marker": "s"}
    measures = {
        "R@10": ("R@10 (%)", 1000 / table["items"].iloc[0]),
        "ahead of like": ("wrong texts of like length\nbefore the right one (%)", 50),
    }
    fig, axes = panels(len(spoken), 2, height=0.9 + 0.36 * len(texts), sharex="row", sharey=True)
    for number, ax in enumerate(axes):
        metric, (code, title) = list(measures)[number // len(spoken)], list(spoken.items())[number % len(spoken)]
        for place, system in enumerate(styles):
            rows = table[(table["system"] == system) & (table["spoken"] == code)].set_index("text").loc[texts]
            columns = {"value": metric, "low": f"{metric} low", "high": f"{metric} high"}
            shift = np.arange(len(texts)) + dodge(place, len(styles), 0.75)
            dots(ax, rows, shift, scale=100, **columns, **styles[system])
        ax.axvline(measures[metric][1], color=BLACK, linestyle=":", linewidth=1, label="chance")
        name_places(ax, [_name(code) for code in texts])
        ax.set(xlabel=measures[metric][0], title=f"spoken: {title}")
    for ax in (axes[0], axes[-1]):  # shares, of which an interval over few seeds may be wider
        low, high = ax.get_xlim()
        ax.set_xlim(max(low, 0), min(high, 100))
    axes[0].set_ylabel("language of the texts")
    return finish(fig, "95 % intervals over seeds and stamps")


def _name(code: str) -> str:
    """A language in English, those too that nobody trained on."""
    return UNHEARD[code][0] if code in UNHEARD else language_name(code)


def _key(colour: str, label: str, line: Any = "-", marker: str = "") -> Line2D:
    """An entry of a legend."""
    return Line2D([], [], color=colour, label=label, linestyle=line, marker=marker)
