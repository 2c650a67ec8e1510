"""Every figure of every study draws from a small table, names its axes, and keeps its legend off its data."""

import inspect
import pkgutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import later_figures
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text

from pullpush import studies
from pullpush.data.clips import World
from pullpush.data.languages import LANGUAGES
from pullpush.show import curves
from pullpush.show.layout import PAGE_WIDTH
from pullpush.show.palette import BLUE, ORANGE, language_colour
from pullpush.studies import measured, term_forces
from pullpush.studies.consistency import figures as consistency
from pullpush.studies.distill import plots as distill
from pullpush.studies.forces import figures as forces
from pullpush.studies.glap import figures as glap
from pullpush.studies.language_encoder import figures as language
from pullpush.studies.svr import figures as svr
from pullpush.studies.world import plots as world_plots


def local_global() -> pd.DataFrame:
    rows = [(8, 0.5, 2.0, 1.5, 0.3), (24, 0.5, 1.5, 1.0, 0.5), (64, 0.5, 1.0, 0.5, 0.7)]
    return pd.DataFrame(rows, columns=["batch_size", "whole", "batch", "variance", "cosine"])


def negatives(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((5, 3))


def swept() -> pd.DataFrame:
    rows = [
        (setting, value, system, seed, 0.1 * value)
        for setting in ("alpha", "batch", "tau", "beta")
        for value in (0.1, 1.0)
        for system in ("infonce", "infonce+bi-dynamic-svr")
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows, columns=["setting", "value", "system", "seed", "R@1"])


def scaled() -> pd.DataFrame:
    """A table for all figures of the radius taken apart: systems of two protocols by what they do."""
    rows = [
        {"protocol": protocol, "system": system, "part": part, "factor": factor, "R@1": 0.4 + at / 10}
        | dict.fromkeys([*svr.QUANTITIES, *svr.DRIFTS], at / 10)
        for protocol in ("frozen/cnn", "tuned/yamnet")
        for part in ("perpendicular", "sideways")
        for at, (system, factor) in enumerate({"infonce": 1.0, "a": 0.0, "b": 0.5}.items())
    ]
    return pd.DataFrame(rows).assign(value=lambda table: table["R@1"] - 0.4, low=-0.1, high=0.3)


def fan() -> pd.DataFrame:
    rows = [(w, r, 0.3, 1 - r) for w in ("held", "of t_sup") for r in (0.0, 0.5, 1.0)]
    return pd.DataFrame(rows, columns=["weights", "fraction", "parallel", "perpendicular"])


def bounds() -> pd.DataFrame:
    rows = [("random", 0, e, e, 9 * e, 8 * e, 99 * e) for e in (1, 2, 3)]
    return pd.DataFrame(rows, columns=["sampling", "seed", "epoch", "left", "right", "stepwise", "expanded"])


def mapped() -> pd.DataFrame:
    shown = ("audio", *LANGUAGES)
    rows = [(m, i, k, i + 0.1 * n, i) for m in ("one", "two") for i in range(12) for n, k in enumerate(shown)]
    return pd.DataFrame(rows, columns=["method", "item", "language", "x", "y"])


def pulls() -> torch.Tensor:
    return torch.tensor([[1.0, 0.4, 0.0], [0.8, -0.4, 0.0]])


def plane() -> pd.DataFrame:
    """Four systems at three values in two panels."""
    rows = []
    for system, right, up in (("CLAP", 0.0, 0.0), ("CLAPs", -0.5, 0.1), ("CyCLAP", 0.2, -0.1), ("CyCLAPn", -1, 0.3)):
        x, y = -2 + right, 0.6 + up
        spans = {"x low": x - 0.1, "x high": x + 0.1, "y low": y - 0.02, "y high": y + 0.02}
        rows.append({"system": system, "x": x, "y": y, **spans, "seeds": 3, "clips": 40})
    table = pd.DataFrame(rows)
    return pd.concat([table.assign(panel=panel) for panel in ("text", "clip")])


def traced() -> pd.DataFrame:
    """The same systems, each at three values."""
    shifts = [(value, step * 0.2) for step, value in enumerate(("0.0", "0.1", "1.0"))]
    sides = ["x", "x low", "x high"]
    return pd.concat([plane().assign(point=value, **(plane()[sides] - by)) for value, by in shifts])


def biases() -> pd.DataFrame:
    rows = [(s, n, k, -10.0 + k, 0.1) for s in ("SigLIP", "Eq. 2") for n in (16, 64, 256) for k in (0, 1)]
    return pd.DataFrame(rows, columns=["system", "batch", "seed", "bias", "tau"])


def spotted() -> pd.DataFrame:
    rows = [("fra", 70, 900, True, 0.2), ("slv", 60, 0, False, 0.1), ("eng", 90, 400, True, 0.3)]
    table = pd.DataFrame(rows, columns=["language", "words", "clips", "heard", "value"])
    return table.assign(low=0.05, high=0.4, chance=0.02, length=0.03, seeds=3)


def placed(n: int = 6) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Pairs of two models, of unit length; in the second a caption is its clip."""
    generator = torch.Generator().manual_seed(0)
    one, other = torch.nn.functional.normalize(torch.randn(2, n, 4, generator=generator).double(), dim=2)
    return {"CLAP": (one, other), "CyCLAP": (one, one)}


def by_size() -> pd.DataFrame:
    rows = [(s, n, draw, 0.5, n / 99) for s in ("InfoNCE", "SigLIP") for n in (4, 8, 16) for draw in (0, 1)]
    return pd.DataFrame(rows, columns=["system", "clips", "draw", "pull", "push"])


def of_groups() -> pd.DataFrame:
    rows = [(d, e, g, 0.3) for d in ("paper", "here") for e in (1.0, 0.5, 0.0) for g in ("sound", "music", "speech")]
    return pd.DataFrame(rows, columns=["data", "exponent", "group", "share"])


def leads() -> pd.DataFrame:
    rows = [
        (p, s, q, 0.04 - 0.01 * q) for p in ("frozen", "tuned/yamnet") for s in ("one", "two") for q in (1, 2, 3, 4)
    ]
    table = pd.DataFrame(rows, columns=["protocol", "system", "quarter", "value"])
    return table.assign(low=table["value"] - 0.02, high=table["value"] + 0.02)


def ranked() -> pd.DataFrame:
    rows = [(s, 4.0 * n, n * 4.0**1.7 * n) for s in ("ml-clap", "kcl") for n in (1, 2, 4, 8)]
    return pd.DataFrame(rows, columns=["system", "mean rank", "MRV"])


FREQUENCIES = pd.DataFrame({"rank": [1, 2, 3], "frequency": [0.5, 0.3, 0.2]})
DRAWN = {
    "word_frequencies": lambda: curves.word_frequencies(dict.fromkeys(("scenes", "clotho"), FREQUENCIES)),
    "local_global_bars": lambda: forces.local_global_bars(local_global()),
    "force_plane": lambda: forces.force_plane(
        [negatives(), negatives(1)], np.array([1.2, 0.0]), [np.array([-1.0, 0.5])] * 2, titles=["one", "two"]
    ),
    "score_by_setting": lambda: svr.score_by_setting(swept(), {"alpha": "α", "batch": "B", "tau": "τ", "beta": "β"}),
    "lead": lambda: svr.lead(leads(), {"one": ("One", BLUE), "two": ("Two", ORANGE)}),
    "rank_line": lambda: consistency.rank_line(ranked()),
    "push_fan": lambda: svr.push_fan(fan()),
    "scaled_push": lambda: svr.scaled_push(scaled()),
    "gains_by_quantity": lambda: svr.gains_by_quantity(scaled()),
    "drift_against_recall": lambda: svr.drift_against_recall(scaled()),
    "weight_bound": lambda: consistency.weight_bound(bounds()),
    "pull_plane": lambda: consistency.pull_plane(pulls(), ("eng", "fra")),
    "language_map": lambda: consistency.language_map(mapped(), "KCL"),
    "similarity_matrices": lambda: language.similarity_matrices(placed()),
    "distance_densities": lambda: language.distance_densities(placed()),
    "space_plane": lambda: language.space_plane(plane(), {"text": ("one", "x"), "clip": ("other", "x")}),
    "space_plane, traced": lambda: language.space_plane(
        traced(), {"text": ("one", "x"), "clip": ("other", "x")}, traced=True
    ),
    "learnt_biases": lambda: glap.learnt_biases(biases(), start=-10.0),
    "keyword_accuracies": lambda: glap.keyword_accuracies(spotted()),
    "cost_by_batch": lambda: glap.cost_by_batch(measured.read("scale").query("machine == 'H200'"), memory=80),
    "push_curves": lambda: glap.push_curves({"one": (0.1, -5.0)}, tau=0.1),
    "weight_by_batch": lambda: glap.weight_by_batch(by_size(), trained=8),
    "pair_matrices": lambda: glap.pair_matrices(
        {"InfoNCE": torch.rand(6, 6), "SigLIP": torch.rand(6, 6)}, ["sound"] * 3 + ["music"] * 2 + ["speech"]
    ),
    "batch_shares": lambda: glap.batch_shares(of_groups()),
    **later_figures.DRAWN,
}


def test_every_figure_of_every_study_is_tried_here():
    chapters = [found.name for found in pkgutil.iter_modules(studies.__path__) if found.ispkg]
    rooms = {chapter: Path(next(iter(studies.__path__)), chapter) for chapter in chapters}
    drawing = [
        (chapter, kind)
        for chapter in chapters
        for kind in ("figures", "plots")
        if (rooms[chapter] / f"{kind}.py").is_file()
    ]
    modules = [
        curves,
        term_forces,
        *(import_module(f"pullpush.studies.{chapter}.{kind}") for chapter, kind in drawing),
    ]
    functions = [f for module in modules for _, f in inspect.getmembers(module, inspect.isfunction)]
    figures = {
        f.__name__
        for f in functions
        if f.__module__ in {module.__name__ for module in modules} and f.__annotations__.get("return") is Figure
    }
    tried = {name.partition(",")[0] for name in DRAWN if not name.startswith("intervals")}  # which are of no study
    assert figures - {"curves", "scene_timeline", "stages"} == tried, "which have tests elsewhere"


def names(ticks: Sequence[Text]) -> bool:
    """Whether ticks are words, which need no label beside them."""
    return any(tick.get_text()[:1].isalpha() for tick in ticks)


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_fits_the_page_names_its_axes_and_keeps_legends_off_data(name):
    figure = DRAWN[name]()
    assert isinstance(figure, Figure)
    assert figure.get_figwidth() <= PAGE_WIDTH
    figure.canvas.draw()
    panels = [ax for ax in figure.axes if ax.has_data() and ax.get_label() != "<colorbar>"]
    assert panels
    below = max(ax.get_subplotspec().rowspan.stop for ax in panels)
    for ax in panels:
        # An axis shared with a panel beside or below it, or one whose ticks are words, needs no label of its own.
        words = [tick for other in ax.get_shared_y_axes().get_siblings(ax) for tick in other.get_yticklabels()]
        beside = [other.get_ylabel() for other in panels if other.get_position().y0 == ax.get_position().y0]
        assert ax.get_xlabel() or ax.get_subplotspec().rowspan.stop < below or names(ax.get_xticklabels()), name
        assert any(beside) or names(words), name
    legends = [*figure.legends, *(ax.get_legend() for ax in panels if ax.get_legend())]
    for legend in legends:
        assert not any(legend.get_window_extent().overlaps(ax.get_window_extent()) for ax in panels), name


@pytest.mark.parametrize("name", DRAWN)
def test_no_line_goes_through_two_points_only(name):
    dashes = {"-", "--", ":", "-."}
    lines = [line for ax in DRAWN[name]().axes for line in ax.lines if line.get_linestyle() in dashes]
    for line in (line for line in lines if len(line.get_xdata())):  # an empty one is an entry of a legend
        x, y = np.unique(line.get_xdata()), np.unique(line.get_ydata())
        is_reference = len(x) == 1 or len(y) == 1
        is_thread = line.get_linewidth() < 1  # from a caption of a map to the middle of its clip
        first, *_, last = line.get_xydata().tolist()
        is_ray = first == [0, 0]  # a vector, or what is in proportion
        is_frame = first == last
        assert is_reference or is_thread or is_ray or is_frame or len(x) >= 3, name


def test_settings_are_dots_at_equal_distances():
    ax = svr.score_by_setting(swept(), {"alpha": "α"}).axes[0]
    assert {line.get_linestyle() for line in ax.lines} == {"None"}
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.1", "1"]
    np.testing.assert_allclose([line.get_ydata() for line in ax.lines], [[1, 10], [1, 10]])


def test_what_the_bound_allows_is_drawn_on_a_logarithmic_axis():
    figure = DRAWN["weight_bound"]()
    left, right = figure.axes
    assert [line.get_label() for line in left.lines] == ["ML-CLAP"]
    assert {text.get_text() for text in figure.legends[0].get_texts()} > {"ML-CLAP", "Eq. 21"}
    assert right.get_yscale() == "log"


def test_bars_split_the_force_of_batches_in_two():
    left = forces.local_global_bars(local_global()).axes[0]
    assert [bar.get_height() for bar in left.patches] == [0.5, 0.5, 0.5, 1.5, 1.0, 0.5]


def test_two_epochs_and_two_batch_sizes_are_dots():
    """As in the profile smoke."""
    sizes = forces.local_global_bars(local_global().head(2))
    assert {line.get_linestyle() for line in sizes.axes[1].lines} == {"None"}


def test_the_pull_of_the_plane_points_to_the_sound():
    ax = DRAWN["force_plane"]().axes[0]
    assert ax.get_aspect() == 1
    low, high = ax.get_xlim()
    assert low < 0 < 1.2 < high


def test_pulls_are_vectors_in_the_colours_of_their_languages():
    lines = consistency.pull_plane(pulls(), ("eng", "fra")).axes[0].lines
    tips = {line.get_label(): (line.get_xdata()[1], line.get_ydata()[1], line.get_color()) for line in lines}
    assert tips["English"][:2] == pytest.approx((1.0, 0.4))
    assert tips["French"][:2] == pytest.approx((0.8, -0.4))
    assert tips["French"][2] == language_colour("fra")


def test_what_lacks_symmetry_is_drawn_below_the_matrix():
    axes = language.similarity_matrices(placed()).axes
    audio, text = placed()["CLAP"]
    cosines, off = text @ audio.T, ~torch.eye(len(text), dtype=torch.bool)
    drawn = np.asarray(axes[0].images[0].get_array())
    np.testing.assert_allclose(np.sort(drawn.ravel()), np.sort(cosines.numpy().ravel()))
    np.testing.assert_allclose(axes[2].images[0].get_array(), drawn - drawn.T)
    asymmetry = (cosines - cosines.T)[off].square().mean() / cosines[off].var(correction=0)
    titles = [ax.get_title() for ax in axes[:4]]
    assert titles == ["CLAP", "CyCLAP", f"asymmetry {asymmetry:.3f}", "asymmetry 0.000"]


def test_a_dashed_line_is_what_sums_distances_up():
    pairs, texts = language.distance_densities(placed()).axes
    audio, text = placed()["CLAP"]
    dashed = [next(line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--") for ax in (pairs, texts)]
    assert dashed[0] == pytest.approx(float((audio - text).square().sum(dim=1).mean()))
    kernel = (-2 * torch.pdist(text).square()).exp().mean().log()
    assert -2 * dashed[1] == pytest.approx(float(kernel))


def test_arrows_lead_from_a_system_to_what_has_one_term_more():
    ax = language.space_plane(plane(), {"text": ("one", "x")}).axes[0]
    ends = {note.xyann: note.xy for note in ax.texts}
    assert len(ax.texts) == 3
    assert ends[(-2.0, 0.6)] in {(-2.5, 0.7), (-1.8, 0.5)}, "from CLAP to CLAPs or to CyCLAP"
    assert ends[(-1.8, 0.5)] == (-3.0, 0.8999999999999999), "from CyCLAP to CyCLAPn"


def test_numbers_of_a_curve_cover_neither_each_other_nor_a_mark():
    figure = DRAWN["space_plane, traced"]()
    figure.canvas.draw()
    for ax in figure.axes:
        boxes = [text.get_window_extent() for text in ax.texts]
        assert len(boxes) == 12
        assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])
        marks = ax.transData.transform(traced().query("panel == 'text'")[["x", "y"]])
        assert not any(box.contains(*mark) for box in boxes for mark in marks)


def test_a_timeline_has_a_bar_for_each_sound_from_its_onset(world: World):
    scene = max(world.test.columns["scene"], key=lambda scene: len(scene.sounds))
    ax = world_plots.scene_timeline(world, scene).axes[0]
    assert [bar.get_x() for bar in ax.patches] == pytest.approx([sound.onset for sound in scene.sounds])
    assert all(bar.get_x() + bar.get_width() <= scene.duration + 1e-9 for bar in ax.patches)
    assert len(ax.get_yticklabels()) == len(scene.sounds)
    assert not any("_" in tick.get_text() for tick in ax.get_yticklabels())
    assert scene.relation in ax.get_title()


def test_a_scheme_writes_no_word_over_another():
    """Of the three stages of chapter 6, which have no axes."""
    figure = distill.stages()
    figure.canvas.draw()
    (ax,) = figure.axes
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == len(distill.BOXES) + len(distill.ARROWS)
    boxes = [box for box, text in zip(boxes, ax.texts, strict=True) if text.get_text()]
    assert len(boxes) == len(distill.BOXES)
    assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])
    assert all(figure.bbox.contains(*corner) for box in boxes for corner in box.corners())


def test_a_factor_that_stands_is_written_in_bold_and_named_on_the_plot_of_contrasts():
    cells = DRAWN["interaction_matrix"]().axes[0].texts
    assert [cell.get_fontweight() for cell in cells] == ["bold", *["normal"] * 8]
    assert [note.get_text() for note in DRAWN["half_normal_plot"]().axes[0].texts] == ["sigmoid"]


def test_a_recipe_that_was_not_run_is_called_predicted():
    ax = DRAWN["pareto_front"]().axes[0]
    assert [note.get_text() for note in ax.texts] == ["InfoNCE", "the recipe, as predicted"]
    (stair,) = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
    assert stair.get_xdata().tolist() == [1, 2, 3]


def test_captions_that_fit_very_many_clips_are_one_bar():
    left, right = DRAWN["fitting"]().axes
    assert [bar.get_height() for bar in left.patches[: distill.MOST + 1]] == [50, 25, *[0] * 10, 25]
    assert right.lines[0].get_ydata() == pytest.approx([10, 20, 30])
    assert len(distill.fitting({"test": [0, 1]}).axes) == 1


def test_only_topics_with_names_have_colours():
    ax = DRAWN["topic_map"]().axes[0]
    assert [dots.get_label() for dots in ax.collections][1:] == ["bell, ring", "frog, croak"]
    grey, *coloured = ax.collections
    assert [len(dots.get_offsets()) for dots in coloured] == [10, 10]
    assert len(grey.get_offsets()) == 10
