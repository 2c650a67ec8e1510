"""Every figure draws from a small table, says what its axes are, and keeps to colours that all can tell apart."""

from __future__ import annotations

import inspect
from itertools import combinations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from pullpush.data.scene import Scene, Sound
from pullpush.metrics import inference
from pullpush.show import plots

mpl.use("Agg")
OKABE_ITO = ["#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"]
STEPS = [1.0, 2.0, 3.0]


def over_steps(*columns: str) -> pd.DataFrame:
    """Two recipes and two seeds; one value is missing, as where a step was not watched."""
    rows = [
        {"recipe": recipe, "seed": seed, "step": step, **{c: 0.1 * step + 0.02 * seed + 0.01 for c in columns}}
        for recipe in ("infonce", "siglip")
        for seed in (0, 1)
        for step in STEPS
    ]
    table = pd.DataFrame(rows)
    table.loc[1, list(columns)] = np.nan
    return table


def scene() -> Scene:
    sounds = (Sound(0, 0, 0.0, semitones=-2), Sound(1, 0, 1.5, far=True, repeats=3))
    return Scene(sounds, "sequence", 12.0, 4.0)


def settings() -> pd.DataFrame:
    measures = ["perpendicular_share", "perpendicular_over_pull", "sideways_over_pull"]
    points = [("temperature", 0.05), ("temperature", 0.5), ("batch size", 8), ("batch size", 64)]
    return pd.DataFrame(
        [
            {"model": model, "seed": seed, "setting": setting, "value": value, **dict.fromkeys(measures, 0.5)}
            for model in ("trained", "untrained")
            for seed in (0, 1)
            for setting, value in points
        ]
    )


def local_global() -> pd.DataFrame:
    rows = [(8, 0.5, 2.0, 1.5, 0.3), (64, 0.5, 1.0, 0.5, 0.7)]
    return pd.DataFrame(rows, columns=["batch_size", "whole", "batch", "variance", "cosine"])


def history() -> pd.DataFrame:
    return pd.DataFrame({"epoch": [1, 2], "loss": [3.0, 2.0], "T2A R@1": [0.1, 0.2], "A2T R@1": [0.1, 0.3]})


def frequencies() -> dict[str, pd.DataFrame]:
    table = pd.DataFrame({"rank": [1, 2, 3], "frequency": [0.5, 0.3, 0.2]})
    return {"scenes": table, "clotho": table}


def negatives(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((5, 3))


def scores() -> pd.DataFrame:
    columns = {"language": ["eng", "fra"], "value": [0.5, 0.3], "low": [0.4, 0.2], "high": [0.6, 0.5]}
    return pd.DataFrame({**columns, "chance": [0.1, 0.1]})


def departures() -> pd.DataFrame:
    rows = [(s, r, 1.0, 1 - r, 1 - r, r / 10) for s in ("dot", "cosine") for r in (0.0, 0.5, 1.2)]
    return pd.DataFrame(rows, columns=["similarity", "radius", "parallel", "perpendicular", "predicted", "error"])


def epochs() -> pd.DataFrame:
    return pd.concat([history().assign(system=name, seed=seed) for name in ("infonce", "siglip") for seed in (0, 1)])


def radii(by: str) -> pd.DataFrame:
    table = over_steps("radius").rename(columns={"recipe": "panel"})
    return pd.concat([table.assign(**{by: name}) for name in ("infonce+bi-static-svr", "infonce+bi-dynamic-svr")])


def cosines() -> pd.DataFrame:
    values = np.random.default_rng(0).uniform(0, 1, 40)
    return pd.concat([pd.DataFrame({"system": name, "seed": 0, "cosine": values}) for name in ("infonce", "siglip")])


def gained() -> pd.DataFrame:
    rows = [(s, m, 0.01, -0.01, 0.03) for s in ("infonce+bi-static-svr", "siglip") for m in ("T2A R@1", "A2T R@1")]
    return pd.DataFrame(rows, columns=["system", "metric", "value", "low", "high"])


def swept() -> pd.DataFrame:
    rows = [
        (setting, value, system, seed, 0.1 * value)
        for setting in ("alpha", "batch", "tau", "beta")
        for value in (0.1, 1.0)
        for system in ("infonce", "infonce+bi-dynamic-svr")
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows, columns=["setting", "value", "system", "seed", "R@1"])


def directions() -> pd.DataFrame:
    columns = ("one", "pair", "one gradient", "pair gradient", "batch gradient")
    return over_steps(*columns).replace({"infonce": "ml-clap", "siglip": "kcl"})


def counted() -> pd.DataFrame:
    rows = [(s, 0, what, k, 10.0 * k) for s in ("ml-clap", "kcl") for what in ("one", "some") for k in (1, 2)]
    return pd.DataFrame(rows, columns=["system", "seed", "what", "count", "error"])


def bounds() -> pd.DataFrame:
    rows = [(s, 0, e, left * e, 9 * e, 8 * e, 99 * e) for s, left in (("random", 1), ("all", 0)) for e in (1, 2)]
    return pd.DataFrame(rows, columns=["sampling", "seed", "epoch", "left", "right", "stepwise", "expanded"])


def by_language() -> pd.DataFrame:
    rows = [(s, n, k, 0.1 + 0.1 * n, 0.01) for s in ("ml-clap", "kcl") for n in (0, 1) for k in ("eng", "fra")]
    return pd.DataFrame(rows, columns=["system", "seed", "language", "accuracy", "chance"])


def gained_by_language() -> pd.DataFrame:
    pairs = (("kcl", "ml-clap"), ("kcl", "cacl"))
    rows = [(*pair, k, "T2A R@1", 0.1, 0.0, 0.2) for pair in pairs for k in ("eng", "fra")]
    return pd.DataFrame(rows, columns=["system", "baseline", "language", "metric", "value", "low", "high"])


def by_count() -> pd.DataFrame:
    rows = [(k, n, g, 0.1 * k, 0.2) for k in (1, 2) for n in (0, 1) for g in ("English", "all eight")]
    return pd.DataFrame(rows, columns=["K", "seed", "group", "T2A R@1", "A2T R@1"])


def longer() -> pd.DataFrame:
    rows = [(s, n, k * t, t, 0.1 * t, 9.0 / t) for s, k in (("ml-clap", 1), ("kcl", 8)) for n in (0, 1) for t in (1, 2)]
    return pd.DataFrame(rows, columns=["system", "seed", "texts", "steps", "T2A R@1", "MRV"])


def spoken() -> pd.DataFrame:
    rows = [(s, "ru", text, 50) for s in ("length only", "sounds only", "kcl") for text in ("eng", "fra")]
    table = pd.DataFrame(rows, columns=["system", "spoken", "text", "items"])
    for metric in ("R@10", "ahead of like"):
        table[[metric, f"{metric} low", f"{metric} high"]] = [0.3, 0.2, 0.4]
    return table


def mapped() -> pd.DataFrame:
    rows = [(m, i, k, i + 0.1 * n, i) for m in ("one", "two") for i in range(12) for n, k in enumerate(SHOWN)]
    return pd.DataFrame(rows, columns=["method", "item", "language", "x", "y"])


def judged() -> pd.DataFrame:
    """Claims of two sources in points, of one in %, and one that was left."""
    columns = ["id", "paper", "claim", "source", "unit", "paper_value", "value", "low", "high", "verdict"]
    rows = [
        ("a", "supclap", "SVR raises text-to-audio R@1.", "Table 1, Figure 2", "points", 2.0, 1.0, 0.5, 1.5, "holds"),
        ("b", "supclap", "Free.", "Table 14", "%", np.nan, 3.0, -1.0, 7.0, "cannot tell"),
        ("c", "supclap", "Falls.", "Table 2", "points", 90.0, -1.0, -2.0, -0.5, "reversed"),
        ("d", "supclap", "It grows.", "Table 1", "points", 1.0, 0.1, -0.2, 0.4, "smaller than in the paper"),
        ("e", "supclap", "It is fast.", "Table 5", "points", 1.0, np.nan, np.nan, np.nan, "–"),
    ]
    return pd.DataFrame(rows, columns=columns)


SHOWN = ("audio", *plots.LANGUAGE_COLOURS)

DRAWN = {
    "spectrogram": lambda: plots.spectrogram(torch.sin(torch.arange(16_000) / 4)),
    "scene_timeline": lambda: plots.scene_timeline(scene(), ["dog", "cat"], [2.0, 1.0]),
    "grade_histogram": lambda: plots.grade_histogram(torch.tensor([0.0, 0.375, 0.75, 1.0])),
    "word_frequencies": lambda: plots.word_frequencies(frequencies()),
    "relevance_matrix": lambda: plots.relevance_matrix(torch.eye(4)),
    "learning_curve": lambda: plots.learning_curve(history()),
    "force_history": lambda: plots.force_history(over_steps(*plots.PART_COLOURS, "perpendicular_share")),
    "share_by_setting": lambda: plots.share_by_setting(settings()),
    "local_global_bars": lambda: plots.local_global_bars(local_global()),
    "drift_curves": lambda: plots.drift_curves(over_steps("a", "b"), {"a": "one", "b": "other"}),
    "distance_terms": lambda: plots.distance_terms(over_steps("ideal", "noise_penalty", "penalty_ratio")),
    "force_plane": lambda: plots.force_plane(
        [negatives(), negatives(1)], np.array([1.2, 0.0]), [np.array([-1.0, 0.5])] * 2, titles=["one", "two"]
    ),
    "claim_forest": lambda: plots.claim_forest(judged()),
    "departure_curves": lambda: plots.departure_curves(departures()),
    "convergence": lambda: plots.convergence(epochs()),
    "radius_history": lambda: plots.radius_history(radii("system"), {"infonce": "one", "siglip": "other"}),
    "similarity_density": lambda: plots.similarity_density(cosines()),
    "gain_intervals": lambda: plots.gain_intervals(gained()),
    "score_by_setting": lambda: plots.score_by_setting(swept(), {"alpha": "α", "batch": "B", "tau": "τ", "beta": "β"}),
    "direction_history": lambda: plots.direction_history(directions()),
    "error_by_count": lambda: plots.error_by_count(counted(), {"one": "K", "some": "m"}),
    "weight_bound": lambda: plots.weight_bound(bounds(), {"random": "ml-clap", "all": "kcl"}),
    "scores_by_language": lambda: plots.scores_by_language(by_language(), {"accuracy": "accuracy"}, chance=True),
    "gains_by_language": lambda: plots.gains_by_language(gained_by_language()),
    "score_by_count": lambda: plots.score_by_count(by_count()),
    "longer_curves": lambda: plots.longer_curves(longer()),
    "speech_recall": lambda: plots.speech_recall(spoken(), {"ru": "Russian"}),
    "language_map": lambda: plots.language_map(mapped(), "KCL"),
    "intervals": lambda: plots.intervals(scores(), "language", xlabel="accuracy", percent=True),
}


@pytest.fixture(autouse=True)
def style():
    """The book's look in every test, and the old one after it."""
    with mpl.rc_context():
        plots.use_style()
        yield
    plt.close("all")


def test_every_figure_of_the_book_is_tried_here():
    functions = inspect.getmembers(plots, inspect.isfunction)
    returning = [name for name, f in functions if f.__module__ == plots.__name__ and "Figure" in str(f.__annotations__)]
    assert {name for name in returning if plots.__dict__[name].__annotations__["return"] == "Figure"} == set(DRAWN)


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_draws_and_every_axis_is_named(name):
    figure = DRAWN[name]()
    assert isinstance(figure, Figure)
    figure.canvas.draw()
    axes = [ax for ax in figure.axes if ax.has_data()]
    assert axes
    for ax in axes:
        # An axis shared with a panel to the left, or one whose ticks are words, needs no label of its own.
        shared = ax.get_shared_y_axes().get_siblings(ax)
        words = [tick.get_text() for other in shared for tick in other.get_yticklabels()]
        assert ax.get_xlabel() or ax.get_label() == "<colorbar>", name
        assert any(other.get_ylabel() for other in shared) or any(w.isalpha() for w in words), name


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_leaves_its_data_as_it_was_and_can_be_drawn_twice(name):
    first, second = DRAWN[name](), DRAWN[name]()
    assert first is not second
    assert [ax.get_title() for ax in first.axes] == [ax.get_title() for ax in second.axes]


def test_colours_are_those_of_okabe_and_ito():
    names = ["BLACK", "ORANGE", "SKY", "GREEN", "YELLOW", "BLUE", "VERMILION", "PURPLE"]
    assert [getattr(plots, name) for name in names] == OKABE_ITO
    for table in (plots.METHOD_COLOURS, plots.PART_COLOURS, plots.SCHEME_COLOURS, plots.LANGUAGE_COLOURS):
        assert set(table.values()) <= set(OKABE_ITO)
        assert len(set(table.values())) == len(table), "one colour a thing"
    assert set(plots.PART_COLOURS) == set(plots.PART_NAMES)
    for recipe in plots.METHOD_COLOURS:
        assert all(part in plots.METHOD_NAMES for part in recipe.split("+")), "every coloured method has a name"


def test_methods_can_be_told_apart_without_red_or_green():
    """Under simulated red blindness and green blindness (Viénot, Brettel & Mollon 1999, linear RGB)."""
    protan = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])
    deutan = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])
    for matrix in (protan, deutan):
        seen = {name: matrix @ np.array(to_rgb(c)) ** 2.2 for name, c in plots.METHOD_COLOURS.items()}
        for one, other in combinations(seen, 2):
            assert np.linalg.norm(seen[one] - seen[other]) > 0.1, f"{one} and {other} look alike"


def test_a_method_without_a_name_keeps_its_own():
    assert plots.method_name("infonce") == "InfoNCE"
    assert plots.method_name("infonce+svr2") == "InfoNCE + svr2"


def test_the_names_of_sums_are_those_of_the_paper():
    assert plots.method_name("infonce+bi-dynamic-svr") == "InfoNCE + bi-DynamicSVR"
    assert plots.method_name("siglip+uni-static-svr") == "SigLIP + uni-StaticSVR"
    assert plots.method_name("infonce+bi-dynamic-svr-unconstrained") == "InfoNCE + bi-DynamicSVR, unconstrained"


def test_a_run_without_error_is_not_drawn_on_a_logarithmic_axis():
    figure = DRAWN["weight_bound"]()
    left, right = figure.axes
    assert [line.get_label() for line in left.lines] == ["ML-CLAP"]
    assert {text.get_text() for text in figure.legends[0].get_texts()} > {"ML-CLAP", "Eq. 21"}
    assert right.get_yscale() == "log"


def test_languages_stand_beside_dots_with_a_bar_over_seeds():
    ax = DRAWN["scores_by_language"]().axes[0]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["eng", "fra"]
    (bar, *_) = ax.collections[0].get_segments()
    assert bar[:, 0].tolist() == [10, 20]
    assert bar[0, 1] == bar[1, 1]


def test_a_band_is_the_mean_between_the_least_and_the_most():
    _, ax = plt.subplots()
    table = pd.DataFrame({"x": [1, 1, 2, 2], "y": [1.0, 3.0, 2.0, np.nan]})
    plots.band(ax, table, "x", "y", label="y", colour=plots.BLUE)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[1, 2], [2, 2]])
    corners = ax.collections[0].get_paths()[0].vertices
    assert {tuple(corner) for corner in corners.round(6)} >= {(1.0, 1.0), (1.0, 3.0), (2.0, 2.0)}


def test_a_spectrogram_shows_a_tone_at_its_frequency():
    tone = torch.sin(2 * torch.pi * 2000 * torch.arange(16_000) / 16_000)
    power = plots.log_power(tone)
    assert power.shape == (257, 101)
    assert power.max() == 0
    assert (power[:, 50].argmax() * 16_000 / 512).item() == pytest.approx(2000, abs=16)
    left, right, low, high = plots.spectrogram(tone).axes[0].images[0].get_extent()
    assert (left, right, low, high) == (0, 1, 0, 8)


def test_silence_has_a_spectrogram():
    assert torch.isfinite(plots.log_power(torch.zeros(8000))).all()


def test_a_timeline_ends_a_sound_where_the_next_begins():
    ax = plots.scene_timeline(scene(), ["dog", "cat"], [2.0, 1.0]).axes[0]
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [(0.0, 1.5), (1.5, 1.0)]
    assert [text.get_text() for text in ax.texts] == ["-2 semitones", "3 times, far"]
    assert "noise 12 dB below" in ax.get_title()


def test_bars_split_the_force_of_batches_in_two():
    left = plots.local_global_bars(local_global()).axes[0]
    heights = [bar.get_height() for bar in left.patches]
    assert heights == [0.5, 0.5, 1.5, 0.5]


def test_the_pull_of_the_plane_points_to_the_sound():
    ax = DRAWN["force_plane"]().axes[0]
    assert ax.get_aspect() == 1
    low, high = ax.get_xlim()
    assert low < 0 < 1.2 < high


def test_a_forest_groups_claims_by_source_and_shares_an_axis_in_points():
    points, share = DRAWN["claim_forest"]().axes
    labels = [tick.get_text() for tick in points.get_yticklabels()]
    assert labels == ["Table 1", "SVR raises T2A R@1", "It grows", "Table 2", "Falls"]
    assert [tick.get_text() for tick in share.get_yticklabels()] == ["Table 14", "Free"]
    assert (points.get_xlabel(), share.get_xlabel()) == ("points", "%")
    bars = [line for line in points.lines if len(line.get_xdata()) == 2 and line.get_xdata()[0] != line.get_xdata()[1]]
    assert [tuple(map(float, line.get_xdata())) for line in bars] == [(0.5, 1.5), (-0.2, 0.4), (-2.0, -0.5)]


def test_a_forest_tells_the_four_verdicts_by_marker_and_colour_and_the_paper_by_a_diamond():
    figure = DRAWN["claim_forest"]()
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == [f"ours: {verdict}" for verdict in plots.VERDICT_STYLES] + ["paper"]
    assert set(plots.VERDICT_STYLES) == set(inference.VERDICTS)
    assert len(set(plots.VERDICT_STYLES.values())) == 4
    diamonds = [line for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert [line.get_xdata()[0] for line in diamonds] == [2.0, 1.0], "a number that is far outside stands at the edge"
    assert [text.get_text() for text in figure.axes[0].texts] == ["+90"]
    assert figure.axes[0].get_xlim()[1] < 10


def test_a_forest_of_claims_that_were_left_says_so():
    figure = plots.claim_forest(judged().tail(1))
    assert figure.texts[0].get_text() == "nothing was measured of these claims"


def test_intervals_stand_in_order_with_chance():
    ax = plots.intervals(scores(), "language", xlabel="accuracy", percent=True).axes[0]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["eng", "fra"]
    assert ax.get_xlabel() == "accuracy (%)"
    assert ax.yaxis_inverted()
    plain = plots.intervals(scores().drop(columns="chance"), "language", xlabel="accuracy").axes[0]
    assert plain.get_legend() is None


def test_longer_training_is_drawn_over_texts_and_over_steps():
    left, right = plots.longer_curves(longer()).axes[:2]
    x = {line.get_label(): line.get_xdata().tolist() for line in left.lines}
    assert x == {"ML-CLAP": [1, 2], "KCL": [8, 16]}
    assert all(line.get_xdata().tolist() == [1, 2] for line in right.lines)


def test_spoken_queries_stand_beside_chance():
    above, below = plots.speech_recall(spoken(), {"ru": "Russian"}).axes
    levels = [line.get_ydata()[0] for ax in (above, below) for line in ax.lines if line.get_label() == "chance"]
    assert levels == [20, 50], "ten of fifty, and half"
    assert [tick.get_text() for tick in below.get_xticklabels()] == ["eng", "fra"]
