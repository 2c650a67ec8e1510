"""Every figure of the book, in one look: one colour a method, colour-blind safe (Okabe & Ito), readable when small.

A function draws one kind of figure from a tidy table or from tensors and returns the matplotlib figure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.scene import Scene

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = [
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
]
# InfoNCE and its two SVR versions have the colours of SupCLAP's own Figure 4.
METHOD_COLOURS = {
    "infonce": BLUE,
    "infonce+bi-static-svr": GREEN,
    "infonce+bi-dynamic-svr": ORANGE,
    "siglip": VERMILION,
    "siglip+bi-static-svr": SKY,
    "siglip+bi-dynamic-svr": PURPLE,
    "simple-reweight": BLACK,
}
# By what each scheme takes of a clip's languages; beside InfoNCE at most.
SCHEME_COLOURS = {"ml-clap": PURPLE, "cacl": ORANGE, "kcl": GREEN}
# By ISO 639-3 code, for no font can be relied on to write all scripts.
LANGUAGE_COLOURS = {
    "eng": BLACK,
    "fra": BLUE,
    "deu": VERMILION,
    "spa": ORANGE,
    "nld": GREEN,
    "cat": YELLOW,
    "jpn": PURPLE,
    "zho": SKY,
}
METHOD_NAMES = {
    "ml-clap": "ML-CLAP",
    "cacl": "CACL",
    "kcl": "KCL",
    "infonce": "InfoNCE",
    "siglip": "SigLIP",
    "simple-reweight": "Simple Reweight",
    **{
        f"{way}-{modelling}-svr{suffix}": f"{way}-{modelling.title()}SVR{remark}"
        for way in ("uni", "bi")
        for modelling in ("static", "dynamic")
        for suffix, remark in (("", ""), ("-constrained", ", constrained"), ("-unconstrained", ", unconstrained"))
    },
}
# Verdict → marker, colour, fill; beside what papers print, which is an open diamond.
VERDICT_STYLES = {
    "holds": ("o", BLUE, BLUE),
    "smaller than in the paper": ("v", SKY, SKY),
    "cannot tell": ("o", BLACK, "white"),
    "reversed": ("s", VERMILION, VERMILION),
}
PAGE_WIDTH = 9.5  # inches; wider figures are shrunk by the page, letters and all
PART_COLOURS = {"pull": GREEN, "push": BLACK, "parallel": ORANGE, "perpendicular": PURPLE, "sideways": SKY}
PART_NAMES = {
    "pull": "pull",
    "push": "push",
    "parallel": "push, parallel",
    "perpendicular": "push, perpendicular",
    "sideways": "push, sideways",
}


def use_style() -> None:
    """Set the book's look for all figures that follow."""
    sns.set_theme(context="notebook", style="ticks", palette=[BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK])
    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#E6E6E6",
            "legend.frameon": False,
            "lines.linewidth": 2.0,
        }
    )


def panel_size(count: int) -> tuple[float, float]:
    """Inches of a row of panels that a page shows about as large as drawn, so that its letters stay readable."""
    return (min(4.6 * count, PAGE_WIDTH), 3.4)


def method_name(recipe: str) -> str:
    """The name that figures and tables print for a recipe, or for a sum of recipes."""
    parts = (part.strip() for part in recipe.split("+"))
    return " + ".join(METHOD_NAMES.get(part, part) for part in parts)


def band(ax: Axes, table: pd.DataFrame, x: str, y: str, *, label: str, colour: str, style: str = "-") -> None:
    """Draw the mean of `y` over the rows that share `x` (the seeds), with its minimum–maximum band."""
    by_x = table.dropna(subset=[y]).groupby(x)[y]
    mean = by_x.mean()
    ax.plot(mean.index, mean, style, color=colour, label=label)
    ax.fill_between(mean.index, by_x.min(), by_x.max(), color=colour, alpha=0.18, linewidth=0)


def log_power(wave: torch.Tensor) -> torch.Tensor:
    """Power spectrogram of a `(T,)` waveform in dB below its maximum, `(257, frames)`, 10 ms a frame."""
    window = torch.hann_window(512)
    power = torch.stft(wave, 512, 160, window=window, return_complex=True).abs().square().clamp(min=1e-10)
    return 10 * (power / power.max()).log10()


def spectrogram(wave: torch.Tensor, *, ax: Axes | None = None, title: str = "") -> Figure:
    """Log-power spectrogram of a `(T,)` waveform at 16 kHz, 80 dB deep."""
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 2.2))
    extent = (0, len(wave) / SAMPLE_RATE, 0, SAMPLE_RATE / 2000)
    ax.imshow(log_power(wave).numpy(), origin="lower", aspect="auto", extent=extent, vmin=-80, cmap="magma")
    ax.set(xlabel="time (s)", ylabel="kHz", title=title)
    ax.grid(False)
    return ax.figure


def scene_timeline(scene: Scene, names: Sequence[str], seconds: Sequence[float]) -> Figure:
    """The scene graph over time: a bar for each sound, with what the captions may mention.

    Args:
        scene: the truth.
        names: one for each sound.
        seconds: how long each sound lasts where nothing cuts it.
    """
    fig, ax = plt.subplots(figsize=(6.4, 0.9 + 0.5 * len(scene.sounds)))
    for row, (sound, length) in enumerate(zip(scene.sounds, seconds, strict=True)):
        notes = [f"{sound.semitones:+d} semitones"] if sound.semitones else []
        notes += [f"{sound.repeats} times"] if sound.repeats > 1 else []
        notes += ["far"] if sound.far else []
        ends = [other.onset for other in scene.sounds[row + 1 : row + 2] if scene.relation == "sequence"]
        end = min([sound.onset + length, scene.duration, *ends])
        ax.barh(row, end - sound.onset, left=sound.onset, height=0.55, color=SKY)
        ax.text(sound.onset + 0.04, row, ", ".join(notes), va="center", fontsize="small")
    ax.set_yticks(range(len(names)), names)
    noise = "no noise" if scene.snr_db is None else f"noise {scene.snr_db:.0f} dB below"
    ax.set(xlabel="time (s)", xlim=(0, scene.duration), title=f"{scene.relation}, {noise}")
    ax.invert_yaxis()
    return fig


def grade_histogram(grade: torch.Tensor) -> Figure:
    """How relevant the first retrieved clip is, `(Q,)` in [0, 1], from the scene graph."""
    fig, ax = plt.subplots(figsize=(6, 3))
    ax.hist(np.asarray(grade), bins=np.linspace(-0.025, 1.025, 22), color=BLUE)
    ax.set(xlabel="relevance of the first clip", ylabel="queries")
    return fig


def word_frequencies(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Figure 3 of the language-encoder paper: relative word frequency over rank, one curve a caption set."""
    fig, ax = plt.subplots(figsize=(6, 3.6))
    for (name, table), colour in zip(tables.items(), [BLUE, VERMILION, GREEN, PURPLE], strict=False):
        ax.loglog(table["rank"], table["frequency"], color=colour, label=f"{name} ({len(table):,} words)")
    ax.set(xlabel="word, from frequent to rare", ylabel="share of all words")
    ax.legend()
    return fig


def relevance_matrix(relevance: torch.Tensor | np.ndarray) -> Figure:
    """Graded relevance between scenes, `(Q, N)` in [0, 1]."""
    fig, ax = plt.subplots(figsize=(5, 4.2))
    image = ax.imshow(np.asarray(relevance), cmap="cividis", vmin=0, vmax=1, interpolation="nearest")
    ax.set(xlabel="clip", ylabel="caption of clip")
    ax.grid(False)
    fig.colorbar(image, label="relevance from the scene graph")
    return fig


def learning_curve(history: pd.DataFrame) -> Figure:
    """Training loss and validation recall over epochs; `history` has epoch, loss and R@1 columns of both directions."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    left.plot(history["epoch"], history["loss"], color=BLACK)
    left.set(xlabel="epoch", ylabel="training loss")
    for column, colour in (("T2A R@1", BLUE), ("A2T R@1", ORANGE)):
        right.plot(history["epoch"], 100 * history[column], color=colour, label=column)
    right.set(xlabel="epoch", ylabel="validation R@1 (%)", ylim=(0, None))
    right.legend()
    for ax in (left, right):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return fig


def force_history(table: pd.DataFrame, *, recipe: str = "infonce") -> Figure:
    """Norms of the forces, and the perpendicular share of the push, over training steps (band: seeds)."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    rows = table[table["recipe"] == recipe]
    for part in PART_COLOURS:
        band(left, rows, "step", part, label=PART_NAMES[part], colour=PART_COLOURS[part])
    left.set(xlabel="step", ylabel="mean norm of the force", ylim=(0, None))
    fig.legend(loc="outside upper center", ncols=5, fontsize="small")
    band(right, rows, "step", "perpendicular_share", label="share", colour=PART_COLOURS["perpendicular"])
    right.set(xlabel="step", ylabel="‖F⊥‖² / ‖F_push‖²", ylim=(0, 1.02))
    return fig


def share_by_setting(table: pd.DataFrame) -> Figure:
    """How much of the push is perpendicular, and how much of that is left, over temperature and over batch size.

    table: see `force_study.parts_by_setting`; models "untrained" and "trained".
    """
    fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), sharey=True)
    curves = {
        "perpendicular_share": ("‖F⊥‖² / ‖F_push‖²", PURPLE),
        "perpendicular_over_pull": ("‖F⊥‖ / ‖F_pull‖", GREEN),
        "sideways_over_pull": ("‖F_sideways‖ / ‖F_pull‖", SKY),
    }
    for ax, (setting, label) in zip(
        axes, (("temperature", "temperature τ"), ("batch size", "batch size")), strict=True
    ):
        rows = table[table["setting"] == setting]
        for column, (title, colour) in curves.items():
            for model, style in (("untrained", "--"), ("trained", "-")):
                part = rows[rows["model"] == model]
                band(ax, part, "value", column, label=f"{title}, {model}", colour=colour, style=style)
        ax.set_xscale("log")
        ticks = sorted(rows["value"].unique())
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], rotation=45)
        ax.set_xticks([], minor=True)
        ax.set(xlabel=label, ylim=(0, 1.05))
    axes[0].set_ylabel("ratio")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


def local_global_bars(table: pd.DataFrame) -> Figure:
    """Mini-batch against global perpendicular force, over batch size: repeated part, fluctuating part, cosine."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    x = np.arange(len(table))
    repeated = table["batch"] - table["variance"]
    left.bar(x, repeated, color=PURPLE, label="repeated by every batch")
    left.bar(x, table["variance"], bottom=repeated, color=SKY, label="fluctuates from batch to batch")
    left.axhline(table["whole"].iloc[0], color=BLACK, linestyle="--", label="all negatives (global)")
    left.set_xticks(x, table["batch_size"])
    left.set(xlabel="batch size", ylabel="mean ‖F⊥‖²")
    fig.legend(loc="outside upper center", ncols=3, fontsize="small")
    right.plot(x, table["cosine"], "o-", color=BLACK)
    right.set_xticks(x, table["batch_size"])
    right.set(xlabel="batch size", ylabel="cosine with the global F⊥", ylim=(0, 1.02))
    return fig


def drift_curves(table: pd.DataFrame, panels: Mapping[str, str]) -> Figure:
    """SupCLAP Figure 1: cosine of update and pull over training, one panel for each of the `panels` columns."""
    fig, axes = plt.subplots(1, len(panels), figsize=panel_size(len(panels)), sharey=True, squeeze=False)
    for ax, (column, title) in zip(axes[0], panels.items(), strict=True):
        for recipe, rows in table.groupby("recipe", sort=False):
            colour = METHOD_COLOURS.get(recipe, BLACK)
            band(ax, rows, "step", column, label=method_name(recipe), colour=colour)
        ax.set(xlabel="step", title=title)
    axes[0, 0].set_ylabel("cosine with the pull")
    if len(axes[0, 0].lines) > 3:  # too many for a corner of a panel
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    else:
        axes[0, 0].legend()
    return fig


def distance_terms(table: pd.DataFrame) -> Figure:
    """Eq. 12 on real steps: what each term did to the squared distance, over training."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    band(left, table, "step", "ideal", label="along the ideal direction", colour=GREEN)
    band(left, table, "step", "noise_penalty", label="noise penalty η²‖F⊥‖²", colour=PURPLE)
    left.axhline(0, color=BLACK, linewidth=0.8)
    left.set(xlabel="step", ylabel="change of ‖t⁺ − a⁺‖² in one step")
    left.legend(fontsize="small")
    band(right, table, "step", "penalty_ratio", label="", colour=PURPLE)
    right.set_yscale("log")
    right.set(xlabel="step", ylabel="penalty / |ideal term|")
    return fig


def force_plane(
    negatives: Sequence[np.ndarray],
    partner: np.ndarray,
    pushes: Sequence[np.ndarray],
    *,
    titles: Sequence[str],
    colours: Sequence[str] = (BLUE, VERMILION, GREEN),
) -> Figure:
    """SupCLAP Figure 2 from real embeddings: panels of an anchor at the origin and its pull along the x-axis.

    Args:
        negatives: per group `(M, 3)`: position of each negative along û and across it, and its probability P⁻.
        partner: `(2,)` position of the positive.
        pushes: per group `(2,)`, the resultant −F_push on the anchor in the same plane.
        titles: legend of each group.
        colours: one a group.
    """
    fig, ax = plt.subplots(figsize=(6.4, 4.6))
    reach = float(np.linalg.norm(partner))
    tips = [reach * push / max(np.linalg.norm(push), 1e-12) for push in pushes]
    for points, tip, title, colour in zip(negatives, tips, titles, colours, strict=False):
        size = 8 + 900 * points[:, 2] / max(points[:, 2].sum(), 1e-12)
        ax.scatter(points[:, 0], points[:, 1], s=size, color=colour, alpha=0.35, linewidth=0)
        ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2.5})
        ax.plot([], [], color=colour, label=title)
    ax.annotate("", partner, (0, 0), arrowprops={"arrowstyle": "-|>", "color": BLACK, "lw": 2.5})
    ax.plot(0, 0, "s", color=BLACK, markersize=9, label="caption")
    ax.plot(*partner, "*", color=ORANGE, markersize=16, label="its sound")
    shown = np.concatenate([np.zeros((1, 2)), partner[None], np.array(tips), *[points[:, :2] for points in negatives]])
    low, high = shown.min(0) - 0.12, shown.max(0) + 0.12
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.set(xlabel="along û, towards the sound", ylabel="across û")
    fig.legend(loc="outside upper center", ncols=3, fontsize="small")
    return fig


def intervals(table: pd.DataFrame, label: str, *, xlabel: str, percent: bool = False) -> Figure:
    """Values with their intervals, one row each in the table's order; a tick marks chance where the table has it.

    table: columns `label`, value, low, high and perhaps chance.
    """
    fig, ax = plt.subplots(figsize=(6, 0.9 + 0.33 * len(table)))
    scale = 100 if percent else 1
    value, rows = scale * table["value"], np.arange(len(table))
    spread = np.abs(scale * table[["low", "high"]].to_numpy().T - value.to_numpy())
    ax.errorbar(value, rows, xerr=spread, fmt="o", color=BLUE, capsize=3)
    if "chance" in table:
        ax.plot(scale * table["chance"], rows, "|", color=VERMILION, markersize=12, markeredgewidth=2, label="chance")
        ax.legend()
    ax.set_yticks(rows, table[label])
    ax.set(xlabel=f"{xlabel} (%)" if percent else xlabel, xlim=(0, None))
    ax.invert_yaxis()
    return fig


def claim_forest(table: pd.DataFrame, *, columns: int = 2) -> Figure:
    """What was measured of claims, with 95 % intervals, beside what the paper prints, by where the claims stand.

    Differences in points share their axis; other units have one a source. What lies far outside of all that was
    measured stands at the edge, with its number.

    Args:
        table: rows of `Ledger.table`; those without a value are left out.
        columns: of panels.
    """
    rows = table[np.isfinite(table["value"].astype(float))]
    panels = _forest_panels(rows, columns)
    heights = [[_forest_height(panel) for panel in column] for column in panels]
    height = max([sum(column) for column in heights if column], default=0.3) + FOREST["legend"]
    fig = plt.figure(figsize=(PAGE_WIDTH, height), layout="none")
    limits = {unit: _forest_limits(own) for unit, own in rows.groupby("unit")}
    for column, (own, tall) in enumerate(zip(panels, heights, strict=True)):
        width = PAGE_WIDTH / columns
        top = height - FOREST["legend"]
        for panel, size in zip(own, tall, strict=True):
            left, bottom = column * width + FOREST["label"], top - size + FOREST["axis"]
            box = (left, bottom, width - FOREST["label"] - FOREST["gap"], size - FOREST["axis"] - FOREST["title"])
            ax = fig.add_axes([box[0] / PAGE_WIDTH, box[1] / height, box[2] / PAGE_WIDTH, box[3] / height])
            unit = panel["unit"].iloc[0]
            _forest_panel(ax, panel, limits[unit] if unit == "points" else _forest_limits(panel))
            top -= size
    _forest_legend(fig, rows)
    return fig


# Inches, but for `linear`: points up to which an axis is linear.
FOREST = {"label": 2.5, "gap": 0.15, "legend": 0.45, "axis": 0.5, "title": 0.12, "line": 0.15, "row": 0.08, "linear": 3}
LABEL_WIDTH = 40  # characters


def _forest_labels(panel: pd.DataFrame) -> list[tuple[str, int | None]]:
    """Labels from top to bottom: sources (no row), and the claims under them with their rows."""
    labels: list[tuple[str, int | None]] = []
    for source, own in panel.groupby("group", sort=False):
        labels.append((source, None))
        for number, claim in own["claim"].items():
            short = claim.removesuffix(".").replace("text-to-audio", "T2A").replace("audio-to-text", "A2T")
            labels.append((textwrap.fill(short, LABEL_WIDTH, break_on_hyphens=False), number))
    return labels


def _forest_height(panel: pd.DataFrame) -> float:
    lines = [label.count("\n") + 1 for label, _ in _forest_labels(panel)]
    return sum(lines) * FOREST["line"] + len(lines) * FOREST["row"] + FOREST["axis"] + FOREST["title"]


def _forest_panels(rows: pd.DataFrame, columns: int) -> list[list[pd.DataFrame]]:
    """Panels of one unit each, column by column: in points of several sources, otherwise of one."""
    several = rows["paper"].nunique() > 1
    places = zip(rows["source"], rows["paper"], strict=True)
    rows = rows.assign(group=[f"{s.partition(', ')[0]}{f' of {paper}' if several else ''}" for s, paper in places])
    units = sorted(rows["unit"].unique(), key=lambda unit: unit != "points")  # the others keep their order
    blocks = [own for unit in units for _, own in rows[rows["unit"] == unit].groupby("group", sort=False)]
    height = max(map(_forest_height, blocks), default=0.0)
    while len(panels := _forest_columns(blocks, height)) > columns:
        height *= 1.02
    return panels


def _forest_columns(blocks: Sequence[pd.DataFrame], height: float) -> list[list[pd.DataFrame]]:
    """Blocks in their order, in columns of at most this height; neighbours in points become one panel."""
    panels: list[list[pd.DataFrame]] = [[]]
    for block in blocks:
        own = panels[-1]
        shared = bool(own) and own[-1]["unit"].iloc[0] == block["unit"].iloc[0] == "points"
        longer = [*own[:-1], pd.concat([own[-1], block])] if shared else [*own, block]
        if sum(map(_forest_height, longer)) > height and own:
            panels.append([block])
        else:
            panels[-1] = longer
    return panels


def _forest_limits(rows: pd.DataFrame) -> tuple[float, float]:
    """All intervals, zero, and what the paper prints, unless that is farther off than one and a half of their span."""
    low, high = min(0.0, rows["low"].min()), max(0.0, rows["high"].max())
    span = (high - low) or 1.0
    printed = rows["paper_value"].dropna().astype(float)
    printed = printed[(printed > low - 1.5 * span) & (printed < high + 1.5 * span)]
    low, high = min([low, *printed]), max([high, *printed])
    return low - 0.06 * (high - low or 1), high + 0.06 * (high - low or 1)


def _forest_panel(ax: Axes, panel: pd.DataFrame, limits: tuple[float, float]) -> None:
    labels = _forest_labels(panel)
    sizes = [(text.count("\n") + 1) * FOREST["line"] + FOREST["row"] for text, _ in labels]
    places = np.cumsum(sizes) - np.array(sizes) / 2
    ax.axvline(0, color=BLACK, linewidth=0.8)
    for place, (_, number) in zip(places, labels, strict=True):
        if number is None:
            continue
        row = panel.loc[number]
        marker, colour, face = VERDICT_STYLES[row["verdict"]]
        ax.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=1.6, solid_capstyle="butt")
        ax.plot(row["value"], place, marker, color=colour, mfc=face, markersize=6)
        if np.isfinite(row["paper_value"]):
            _forest_printed(ax, float(row["paper_value"]), place, limits)
    ax.set_yticks(places, [text for text, _ in labels], fontsize=8)
    for tick, (_, number) in zip(ax.get_yticklabels(), labels, strict=True):
        if number is None:
            tick.set_fontweight("bold")
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    ax.set(xlim=limits, ylim=(sum(sizes), 0))
    unit = panel["unit"].iloc[0]
    if unit == "points" and max(map(abs, limits)) > 4 * FOREST["linear"]:  # one large gain must not flatten the others
        ax.set_xscale("symlog", linthresh=FOREST["linear"], linscale=1)
        ticks = [sign * size for sign in (-1, 1) for size in (0, 1, 3, 10, 30) if limits[0] <= sign * size <= limits[1]]
        ax.set_xticks(sorted(set(ticks)), [f"{tick:g}".replace("-", "−") for tick in sorted(set(ticks))])
        ax.minorticks_off()
        unit += f", logarithmic beyond ±{FOREST['linear']}"
    else:
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
        ax.xaxis.get_offset_text().set_fontsize(8)
    ax.set_xlabel(unit, fontsize=8, labelpad=1)


def _forest_printed(ax: Axes, value: float, place: float, limits: tuple[float, float]) -> None:
    """The paper's number as an open diamond; beyond the limits at the edge, with an arrow and the number."""
    diamond = {"marker": "D", "mfc": "none", "mec": BLACK, "markersize": 4.5, "linestyle": "none", "zorder": 3}
    if limits[0] <= value <= limits[1]:
        ax.plot(value, place, **diamond)
        return
    left = bool(value < limits[0])
    edge = limits[0] if left else limits[1]
    ax.plot(edge, place, **diamond | {"marker": "<" if left else ">", "clip_on": False})
    text = f"{value:+.3g}".replace("-", "−")
    ax.annotate(
        text, (edge, place), (6 if left else -6, 0), textcoords="offset points",
        fontsize=7, va="center", ha="left" if left else "right",
    )  # fmt: skip


def _forest_legend(fig: Figure, rows: pd.DataFrame) -> None:
    """Above all panels: the verdicts that occur, and the paper's diamond."""
    handles = [
        Line2D([], [], marker=marker, color=colour, mfc=face, markersize=6, linewidth=1.6, label=f"ours: {verdict}")
        for verdict, (marker, colour, face) in VERDICT_STYLES.items()
        if (rows["verdict"] == verdict).any()
    ]
    if rows["paper_value"].notna().any():
        diamond = {"marker": "D", "mfc": "none", "mec": BLACK, "markersize": 4.5, "linestyle": "none"}
        handles.append(Line2D([], [], label="paper", **diamond))
    if handles:
        fig.legend(handles=handles, loc="upper center", ncols=len(handles), fontsize=8)
    else:
        fig.text(0.5, 0.5, "nothing was measured of these claims", ha="center")


def departure_curves(table: pd.DataFrame) -> Figure:
    """SVR's push, negative by negative, for both readings of the similarity, over R; see `svr_study.departure`."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    for similarity, style in (("dot", "-"), ("cosine", "--")):
        rows = table[table["similarity"] == similarity]
        for part in ("parallel", "perpendicular"):
            label = f"{part}, {similarity}"
            left.plot(rows["radius"], rows[part], style, color=PART_COLOURS[part], label=label)
        right.plot(rows["radius"], 100 * rows["error"], style, color=BLACK)
    rows = table[table["similarity"] == "dot"]
    left.plot(rows["radius"], rows["predicted"].abs(), ":", color=BLACK, label="|1 − R/‖a − t‖|")
    left.set(xlabel="radius R", ylabel="part of the push (1: at R = 0)", ylim=(0, None))
    right.set(xlabel="radius R", ylabel="departure from Eq. 16 (%)", ylim=(0, None))
    fig.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


def method_style(recipe: str) -> dict[str, str]:
    """Label and colour of a recipe in every figure."""
    colour = METHOD_COLOURS.get(recipe, SCHEME_COLOURS.get(recipe, BLACK))
    return {"label": method_name(recipe), "colour": colour}


def convergence(history: pd.DataFrame) -> Figure:
    """SupCLAP Figure 5: validation R@1 over epochs, a panel a direction; columns system, seed, epoch and both R@1."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.8))
    for ax, column in zip(axes, ("T2A R@1", "A2T R@1"), strict=True):
        for system, rows in history.groupby("system", sort=False):
            band(ax, rows.assign(**{column: 100 * rows[column]}), "epoch", column, **method_style(system))
        ax.set(xlabel="epoch", ylabel=f"validation {column} (%)")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


def radius_history(
    table: pd.DataFrame,
    panels: Mapping[str, str],
    *,
    by: str = "system",
    column: str = "radius",
    ylabel: str = "mean radius R",
) -> Figure:
    """SupCLAP Figures 3, 6 and 7: mean radius over training steps, a curve for each group of `by` (band: seeds).

    Args:
        table: columns panel, `by`, seed, step and `column`, the number that a loss learns.
        panels: value of the column panel → title.
    """
    width, height = panel_size(len(panels))
    fig, axes = plt.subplots(1, len(panels), figsize=(width, height + 0.5), squeeze=False, sharey=True)
    colours = [SKY, BLUE, GREEN, VERMILION, BLACK, PURPLE]
    for ax, (panel, title) in zip(axes[0], panels.items(), strict=True):
        groups = table[table["panel"] == panel].groupby(by, sort=False)
        for (group, rows), colour in zip(groups, colours, strict=False):
            style = method_style(group) if group in METHOD_COLOURS else {"label": str(group), "colour": colour}
            band(ax, rows, "step", column, **style)
        ax.axhline(0, color=BLACK, linewidth=0.8)
        ax.set(xlabel="step", title=title)
        ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(0, -0.2))  # below, clear of the curves
    axes[0, 0].set_ylabel(ylabel)
    return fig


def similarity_density(table: pd.DataFrame) -> Figure:
    """SupCLAP Figure 4: density of the cosine of matching pairs; columns system, seed, cosine."""
    fig, ax = plt.subplots(figsize=(6.4, 3.4))
    for system, rows in table.groupby("system", sort=False):
        style = method_style(system)
        sns.kdeplot(rows["cosine"], ax=ax, color=style["colour"], label=style["label"], clip=(-1, 1))
    ax.set(xlabel="cosine of a clip and its caption", ylabel="density")
    fig.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


def gain_intervals(table: pd.DataFrame, metrics: Sequence[str] = ("T2A R@1", "A2T R@1")) -> Figure:
    """What systems add to their baselines, with intervals; columns system, metric, value, low, high (fractions)."""
    systems = list(dict.fromkeys(table["system"]))
    fig, axes = plt.subplots(1, len(metrics), figsize=(9, 1.2 + 0.34 * len(systems)), sharey=True, squeeze=False)
    for ax, metric in zip(axes[0], metrics, strict=True):
        rows = table[table["metric"] == metric].set_index("system").loc[systems]
        value = 100 * rows["value"].to_numpy()
        spread = np.abs(100 * rows[["low", "high"]].to_numpy().T - value)
        ax.errorbar(value, range(len(systems)), xerr=spread, fmt="o", color=BLUE, capsize=3)
        ax.axvline(0, color=BLACK, linewidth=0.8)
        ax.set(title=metric, xlabel="gain (points)")
    axes[0, 0].set_yticks(range(len(systems)), [method_name(system) for system in systems])
    axes[0, 0].set_ylabel("objective")
    axes[0, 0].invert_yaxis()
    return fig


def score_by_setting(table: pd.DataFrame, panels: Mapping[str, str], *, metric: str = "R@1") -> Figure:
    """A score over settings, a panel each, a curve a system (band: seeds); values stand at equal distances.

    table: columns setting, value, system, seed and `metric` (a fraction); panels: setting → name of its axis.
    """
    count = min(3, len(panels))
    fig, axes = plt.subplots(
        -(-len(panels) // count), count, figsize=(PAGE_WIDTH, 3 * -(-len(panels) // count)), squeeze=False
    )
    for ax, (setting, title) in zip(axes.flat, panels.items(), strict=False):
        rows = table[table["setting"] == setting]
        values = sorted(rows["value"].unique())
        place = {value: number for number, value in enumerate(values)}
        for system, own in rows.groupby("system", sort=False):
            scaled = own.assign(place=own["value"].map(place), score=100 * own[metric])
            band(ax, scaled, "place", "score", style="o-", **method_style(system))
        ax.set_xticks(range(len(values)), [f"{value:g}".replace("-", "−") for value in values])
        ax.set(xlabel=title, ylabel=f"{metric} (%)")
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    handles = {label: line for ax in fig.axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    fig.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3, fontsize="small")
    return fig


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
