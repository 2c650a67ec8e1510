"""What lesson 4 computes: two views that dropout alone tells apart, and distances that sum up to the two losses."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.encoders import create
from pullpush.metrics import alignment, uniformity
from pullpush.studies.language_encoder import figures, lesson, systems
from pullpush.training.evaluate import embed
from pullpush.training.recipes import recipe

TEXTS = ["a frog croaks", "a bell rings while a dog barks", "a frog croaks"]


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_HOME", str(tmp_path_factory.mktemp("home")))
        config = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=6, n_single_per_event=1)
        yield load_world(config).test


def test_the_weights_are_those_of_the_recipes():
    table = lesson.term_weights(systems.systems("CLAP", ("", "s", "n"))).set_index("system")
    assert set(table["InfoNCE"]) == {1.0}
    assert table.loc["CyCLAPs"].dropna().to_dict() == {
        "InfoNCE": 1.0,
        "SimCSE": 0.1,
        "cross-modal cyclic": 0.25,
        "in-modal cyclic": 0.25,
    }
    assert table.loc["CLAP"].drop("InfoNCE").isna().all()


def test_an_untrained_model_is_that_of_the_seed():
    one = recipe("infonce", audio="features", text="words", dim=8, encoder_options={"audio_dim": 4})
    model = lesson.untrained(one, seed=1)
    assert not model.training
    torch.testing.assert_close(model.encode_text(TEXTS), lesson.untrained(one, seed=1).encode_text(TEXTS))
    assert not torch.allclose(model.encode_text(TEXTS), lesson.untrained(one, seed=2).encode_text(TEXTS))


def test_two_views_differ_by_dropout_alone():
    model = create("cnn", "words", dim=8).eval()
    state = torch.random.get_rng_state()
    first, second = lesson.dropout_views(model, TEXTS, seed=3)
    assert not torch.allclose(first, second)
    assert not model.training
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(first, lesson.dropout_views(model, TEXTS, seed=3)[0])
    without = create("cnn", "words", dim=8, text_dropout=0.0).eval()
    torch.testing.assert_close(*lesson.dropout_views(without, TEXTS))


def test_distances_of_views_are_those_of_one_system_by_seed_and_text():
    model = create("cnn", "words", dim=8).eval()
    runs = {(name, seed): SimpleNamespace(model=model) for name in ("CLAP", "CLAPs") for seed in (0, 1)}
    found = lesson.view_distances(runs, "CLAP", TEXTS)
    assert found.shape == (2, 3)
    assert (found > 0).all()
    assert not np.allclose(found[0], found[1]), "each seed has its own dropout"


def test_squared_distances_sum_up_to_alignment_and_uniformity(clips):
    model = create("cnn", "words", dim=8).eval()
    table = lesson.squared_distances({"untrained": model}, clips)
    audio, text = embed(model, clips)
    pairs, texts = (table[table["between"] == between] for between in (lesson.PAIRS, lesson.TEXTS))
    assert (len(pairs), len(texts)) == (6, 15)
    assert pairs["squared"].mean() == pytest.approx(float(alignment(audio, text)), rel=1e-5)
    assert pairs["summary"].iloc[0] == pytest.approx(pairs["squared"].mean(), rel=1e-5)
    kernel = np.log(np.exp(-2 * texts["squared"]).mean())
    assert -2 * texts["summary"].iloc[0] == pytest.approx(float(uniformity(text)), rel=1e-5)
    assert -2 * texts["summary"].iloc[0] == pytest.approx(kernel, rel=1e-4)


def test_the_figure_has_a_dashed_line_for_each_model_at_what_sums_it_up(clips):
    models = {"before": create("cnn", "words", dim=8), "after": create("cnn", "words", dim=8, seed=1)}
    table = lesson.squared_distances(models, clips)
    figure = figures.distance_densities(table)
    figure.canvas.draw()
    for ax, between in zip(figure.axes, (lesson.PAIRS, lesson.TEXTS), strict=True):
        dashed = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"]
        expected = table[table["between"] == between].groupby("model", sort=False)["summary"].first()
        assert dashed == pytest.approx(expected.tolist())
        assert ax.get_xlabel()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["before", "after"]
    assert not figure.legends[0].get_window_extent().overlaps(figure.axes[0].get_window_extent())
