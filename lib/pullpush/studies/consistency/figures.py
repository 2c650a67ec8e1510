"""Figures of chapter 3: the same clip in eight languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from pullpush.show.layout import PAGE_WIDTH
from pullpush.show.marks import band
from pullpush.show.palette import (
    BLACK,
    BLUE,
    GREEN,
    LANGUAGE_COLOURS,
    PURPLE,
    SCHEME_COLOURS,
    VERMILION,
    method_name,
    method_style,
)


def direction_history(table: pd.DataFrame) -> Figure:
    """ATRI Figure 2 measured over training, a colour a scheme: left on embeddings, right on gradients (band: seeds).

    table: columns recipe, seed, step and those of `language_study.DirectionProbe`.
    """
    fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), sharey=True)
    curves = {
        left: (("one", "one random language", "-"), ("pair", "English and one other", "--")),
        right: (("one gradient", "one random language", "-"), ("batch gradient", "other clips, all languages", ":")),
    }
    for ax, own in curves.items():
        for recipe, rows in table.groupby("recipe", sort=False):
            for column, _, style in own:
                band(ax, rows, "step", column, style=style, **{**method_style(recipe), "label": ""})
    left.set(xlabel="step", ylabel="angle to all eight languages (°)", title="way of the clip", ylim=(0, 100))
    right.set(xlabel="step", title="gradient of the weights")
    handles = [
        plt.Line2D([], [], color=method_style(r)["colour"], label=f"trained with {method_name(r)}")
        for r in table["recipe"].unique()
    ]
    styles = {label: style for own in curves.values() for _, label, style in own}
    handles += [plt.Line2D([], [], color=BLACK, linestyle=style, label=label) for label, style in styles.items()]
    fig.legend(handles=handles, loc="outside upper center", ncols=2, fontsize="small")
    return fig


def error_by_count(table: pd.DataFrame, panels: Mapping[str, str]) -> Figure:
    """Direction error over the number of languages; columns system, seed, what, count, error; panels: what → axis."""
    fig, axes = plt.subplots(1, len(panels), figsize=(4.5 * len(panels), 3.4), sharey=True, squeeze=False)
    for ax, (what, label) in zip(axes[0], panels.items(), strict=True):
        for system, rows in table[table["what"] == what].groupby("system", sort=False):
            band(ax, rows, "count", "error", style="o-", **method_style(system))
        ax.set(xlabel=label, ylim=(0, None))
    axes[0, 0].set_ylabel("direction error (°)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


def weight_bound(table: pd.DataFrame, samplings: Mapping[str, str]) -> Figure:
    """Both sides of ATRI's bound over epochs (band: seeds): solid the error, dashed and dotted its bounds.

    table: columns sampling, seed and those of `weight_error.WeightError`; samplings: sampling → scheme.
    """
    fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8))
    for sampling, scheme in samplings.items():
        rows = table[table["sampling"] == sampling]
        if rows["left"].max() <= 1e-9:  # nothing to see on a logarithmic axis
            continue
        style = method_style(scheme)
        band(left, rows, "epoch", "left", **style)
        band(right, rows, "epoch", "left", **style)
        for column, line in (("stepwise", ":"), ("right", "--"), ("expanded", "-.")):
            band(right, rows, "epoch", column, style=line, label="", colour=style["colour"])
    for label, line in (("Eq. 18, each step", ":"), ("Eq. 21", "--"), ("Eq. 21, unrolled", "-.")):
        right.plot([], [], line, color=BLACK, label=label)
    right.set_yscale("log")
    left.set(xlabel="epoch", ylabel="‖w − w′‖", title="what happened", ylim=(0, None))
    right.set(xlabel="epoch", ylabel="‖w − w′‖ and its bounds", title="what the bound allows")
    fig.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=5, fontsize="small")
    return fig


def scores_by_language(table: pd.DataFrame, metrics: Mapping[str, str], *, chance: bool = False) -> Figure:
    """A dot for each scheme and language, a panel a metric (bar: least to largest of the seeds).

    table: columns system, seed, language, the metrics (fractions) and perhaps chance; metrics: column → axis.
    """
    languages = list(dict.fromkeys(table["language"]))
    systems = list(dict.fromkeys(table["system"]))
    height = 1.1 + 0.36 * len(languages)
    fig, axes = plt.subplots(1, len(metrics), figsize=(4.7 * len(metrics), height), sharey=True, squeeze=False)
    for ax, (metric, label) in zip(axes[0], metrics.items(), strict=True):
        for number, system in enumerate(systems):
            own = 100 * table[table["system"] == system].groupby("language")[metric].agg(["mean", "min", "max"])
            own = own.loc[languages]
            place = np.arange(len(languages)) + 0.22 * (number - (len(systems) - 1) / 2)
            spread = np.abs(own[["min", "max"]].to_numpy().T - own["mean"].to_numpy())
            style = method_style(system)
            ax.errorbar(own["mean"], place, xerr=spread, fmt="o", ms=5, color=style["colour"], label=style["label"])
        if chance:
            level = 100 * table.groupby("language")["chance"].mean().loc[languages]
            ax.plot(level, range(len(languages)), "|", color=BLACK, markersize=10, label="chance")
        ax.set(xlabel=f"{label} (%)", xlim=(0, None))
    axes[0, 0].set_yticks(range(len(languages)), languages)
    axes[0, 0].invert_yaxis()
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize="small")
    return fig


def gains_by_language(table: pd.DataFrame) -> Figure:
    """What systems have over their baselines in each language, a panel a pair, with 95 % intervals.

    table: columns system, baseline, language, metric (one for all), value, low, high (fractions).
    """
    pairs = table[["system", "baseline"]].drop_duplicates().itertuples(index=False)
    panels = [(pair, table[(table["system"] == pair[0]) & (table["baseline"] == pair[1])]) for pair in pairs]
    height = 1.1 + 0.3 * table["language"].nunique()
    fig, axes = plt.subplots(1, len(panels), figsize=(PAGE_WIDTH, height), sharex=True, sharey=True, squeeze=False)
    for ax, ((system, baseline), rows) in zip(axes[0], panels, strict=True):
        value, place = 100 * rows["value"].to_numpy(), np.arange(len(rows))
        spread = np.abs(100 * rows[["low", "high"]].to_numpy().T - value)
        ax.errorbar(value, place, xerr=spread, fmt="o", color=BLUE, capsize=3)
        ax.axvline(0, color=BLACK, linewidth=0.8)
        ax.set_title(f"{method_name(system)} − {method_name(baseline)}", fontsize="medium")
        ax.set(xlabel=f"{rows['metric'].iloc[0]} (points)")
    axes[0, 0].set_yticks(place, rows["language"])
    axes[0, 0].invert_yaxis()
    return fig


def longer_curves(table: pd.DataFrame) -> Figure:
    """Recall and rank variance over texts read and over steps, a curve a scheme (band: seeds).

    table: columns system, seed, texts, steps, T2A R@1 and MRV; see `language_study.longer_table`.
    """
    fig, axes = plt.subplots(2, 2, figsize=(PAGE_WIDTH, 6), sharey="row", sharex="col")
    rows = table.assign(**{"T2A R@1": 100 * table["T2A R@1"]})
    labels = {"texts": "texts read for each clip", "steps": "steps"}
    for row, (metric, name) in zip(axes, {"T2A R@1": "T2A R@1 (%)", "MRV": "MRV"}.items(), strict=True):
        for ax, (x, label) in zip(row, labels.items(), strict=True):
            for system, own in rows.groupby("system", sort=False):
                band(ax, own, x, metric, style="o-", **method_style(system))
            ax.set_xscale("log", base=2)
            ax.xaxis.set_major_formatter(ScalarFormatter())
            ax.set(xlabel=label, yscale="log" if metric == "MRV" else "linear")
        row[0].set_ylabel(name)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


def language_map(table: pd.DataFrame, title: str = "") -> Figure:
    """ATRI Figures 3 and 4: captions in the colour of their language and the shape of their item, a panel a map.

    table: columns method (of the map), item, language ("audio" is a cross), x, y. Lines join an item's captions to
    their centre; shapes repeat after ten items.
    """
    shapes = "osv^<>DphX"
    methods = list(dict.fromkeys(table["method"]))
    fig, axes = plt.subplots(1, len(methods), figsize=(5.4 * len(methods), 5), squeeze=False)
    for ax, method in zip(axes[0], methods, strict=True):
        own = table[table["method"] == method]
        for item, rows in own.groupby("item"):
            texts = rows[rows["language"] != "audio"]
            x, y = texts["x"].mean(), texts["y"].mean()
            for row in texts.itertuples():
                ax.plot([x, row.x], [y, row.y], color="#BBBBBB", linewidth=0.6, zorder=1)
            colours = [LANGUAGE_COLOURS.get(language, BLACK) for language in texts["language"]]
            shape = shapes[item % len(shapes)]
            ax.scatter(texts["x"], texts["y"], s=16, c=colours, marker=shape, linewidth=0, zorder=2)
        audio = own[own["language"] == "audio"]
        ax.scatter(audio["x"], audio["y"], s=30, c=BLACK, marker="+", linewidth=1, zorder=3)
        ax.set(xlabel=f"{method} 1", ylabel=f"{method} 2", xticks=[], yticks=[])
        ax.grid(False)
    handles = [
        plt.Line2D([], [], color=LANGUAGE_COLOURS.get(language, BLACK), marker="o", linestyle="", label=language)
        for language in dict.fromkeys(table.loc[table["language"] != "audio", "language"])
    ]
    handles.append(plt.Line2D([], [], color=BLACK, marker="+", linestyle="", label="clip"))
    fig.legend(handles=handles, loc="outside upper center", ncols=9, fontsize="small", title=title)
    return fig


def score_by_count(table: pd.DataFrame, metrics: Sequence[str] = ("T2A R@1", "A2T R@1")) -> Figure:
    """A score over the number of languages trained on, a curve a group (band: seeds); columns K, seed, group, …"""
    fig, axes = plt.subplots(1, len(metrics), figsize=(4.7 * len(metrics), 3.7), sharey=True, squeeze=False)
    colours = {"English": BLACK, "trained on": GREEN, "never trained on": VERMILION, "all eight": BLUE}
    for ax, metric in zip(axes[0], metrics, strict=True):
        for group, rows in table.groupby("group", sort=False):
            rows = rows.assign(**{metric: 100 * rows[metric]})
            band(ax, rows, "K", metric, style="o-", label=group, colour=colours.get(group, PURPLE))
        ax.set(xlabel="languages trained on (K)", title=metric, xticks=sorted(table["K"].unique()))
    axes[0, 0].set_ylabel("R@1 (%)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize="small")
    return fig


def speech_recall(table: pd.DataFrame, spoken: Mapping[str, str]) -> Figure:
    """Spoken queries by the language of the texts: R@10 above, wrong texts of like length ahead below; 95 % intervals.

    table: see `speech_study.speech_table`, of one set of queries; spoken: code → title of its panel.
    """
    texts, systems = (list(dict.fromkeys(table[column])) for column in ("text", "system"))
    fig, axes = plt.subplots(2, len(spoken), figsize=(PAGE_WIDTH, 6.4), sharex=True, sharey="row", squeeze=False)
    greys = dict(zip([name for name in systems if name not in SCHEME_COLOURS], (BLACK, "#999999"), strict=False))
    chance = {"R@10": 1000 / table["items"].iloc[0], "ahead of like": 50}
    for row, (metric, level) in zip(axes, chance.items(), strict=True):
        for ax, (code, title) in zip(row, spoken.items(), strict=True):
            for number, system in enumerate(systems):
                own = table[(table["system"] == system) & (table["spoken"] == code)].set_index("text").loc[texts]
                place = np.arange(len(texts)) + 0.15 * (number - (len(systems) - 1) / 2)
                value = 100 * own[metric]
                spread = np.abs(100 * own[[f"{metric} low", f"{metric} high"]].to_numpy().T - value.to_numpy())
                style = {"color": SCHEME_COLOURS.get(system, greys.get(system)), "label": method_name(system)}
                shape = "o" if system in SCHEME_COLOURS else "s"
                ax.errorbar(place, value, yerr=spread, fmt=shape, ms=4, lw=1, **style)
            ax.axhline(level, color=BLACK, linestyle=":", linewidth=1, label="chance")
            ax.set_xticks(range(len(texts)), texts, rotation=60, fontsize="small")
            ax.set_xlabel("language of the texts", fontsize="small")
            if metric == "R@10":
                ax.set_title(title, fontsize="medium")
    for ax in axes[:, 0]:  # shares; an interval over few seeds may be wider
        low, high = ax.get_ylim()
        ax.set_ylim(max(low, 0), min(high, 100))
    axes[0, 0].set_ylabel("R@10 (%)")
    axes[1, 0].set_ylabel("wrong texts of like length\nbefore the right one (%)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, fontsize="small")
    return fig
