"""The language encoder's quality: correlations as scipy takes them, probes as scikit-learn fits them."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from pullpush.data.music.phrases import Phrase
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.metrics import METRICS
from pullpush.metrics._language import C, _fitted, attributes, extrinsic, intrinsic, probed, tasks

unit = torch.nn.functional.normalize


def captions(classes, each: int = 3, noise: float = 1.0, d: int = 6, seed: int = 0) -> torch.Tensor:
    """`each` captions of every clip, about the centre of its class."""
    g = torch.Generator().manual_seed(seed)
    classes = torch.as_tensor(classes)
    centres = torch.randn(int(classes.max()) + 1, d, generator=g)
    noisy = noise * torch.randn(len(classes), each, d, generator=g)
    return unit(centres[classes][:, None] + noisy, dim=-1)


def graded(n: int) -> torch.Tensor:
    """Symmetric, in few degrees, 1 for a clip with itself."""
    steps = torch.randint(0, 4, (n, n), generator=torch.Generator().manual_seed(1)) / 4
    return torch.maximum(steps, steps.T).fill_diagonal_(1)


# -------------------------------------------------------------------------------------------------------- intrinsic


def test_it_is_spearmans_correlation_with_every_second_caption():
    text, relevance = captions(np.arange(15) % 4), graded(15)
    cosine = (text[:, 0] @ text[:, 1].T).numpy()
    expected = [spearmanr(cosine[i], relevance[i].numpy()).statistic for i in range(15)]
    assert intrinsic(text, relevance).tolist() == pytest.approx(expected, abs=1e-5)


def test_of_one_caption_a_clip_it_leaves_the_clip_itself_out():
    text, relevance = captions(np.arange(15) % 4, each=1), graded(15)
    cosine = (text[:, 0] @ text[:, 0].T).numpy()
    others = [np.delete(np.arange(15), i) for i in range(15)]
    expected = [spearmanr(cosine[i, row], relevance[i].numpy()[row]).statistic for i, row in enumerate(others)]
    assert intrinsic(text, relevance).tolist() == pytest.approx(expected, abs=1e-5)


def test_of_real_captions_it_is_the_area_under_the_curve_on_another_scale():
    text, n = captions(np.arange(12), noise=0.8), 12
    cosine = (text[:, 0] @ text[:, 1].T).numpy()
    area = np.array([roc_auc_score(np.arange(n) == i, cosine[i]) for i in range(n)])
    assert area.std() > 0
    assert intrinsic(text, torch.eye(n)) == pytest.approx((2 * area - 1) * np.sqrt(3 / (n + 1)))


def test_turning_the_space_changes_neither_and_the_order_of_clips_not_the_first():
    classes = np.arange(40) % 3
    text, relevance = captions(classes, noise=2.0).double(), graded(40)
    turn = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64))[0]
    assert intrinsic(text @ turn, relevance) == pytest.approx(intrinsic(text, relevance))
    assert probed(text @ turn, classes).tolist() == probed(text, classes).tolist()
    order = torch.randperm(40, generator=torch.Generator().manual_seed(2))
    shuffled = intrinsic(text[order], relevance[order][:, order])
    assert shuffled == pytest.approx(intrinsic(text, relevance)[order.numpy()])


# -------------------------------------------------------------------------------------------------------- extrinsic


def test_the_probe_is_scikit_learns_and_starts_anywhere():
    classes = np.repeat(np.arange(60) % 3, 3)
    x = captions(np.arange(60) % 3, noise=2.0).double().flatten(0, 1).numpy()
    theirs = LogisticRegression(C=C, max_iter=5000, tol=1e-9).fit(x, classes)
    ours = _fitted(x, classes, 3, None)
    assert np.allclose(ours[:-1].T, theirs.coef_, atol=2e-3)
    elsewhere = _fitted(x, classes, 3, np.random.default_rng(0).normal(size=ours.shape))
    assert np.allclose(elsewhere[:-1], ours[:-1], atol=2e-3)


def test_folds_hold_whole_clips_and_their_share_of_each_class():
    classes = np.array([0] * 13 + [-1] * 2 + [1] * 7)
    text = captions(np.maximum(classes, 0), noise=2.0, each=4)
    known = np.flatnonzero(classes >= 0)
    x = text.double().numpy()[known]
    x = (x - x.mean(axis=(0, 1))) / (x - x.mean(axis=(0, 1))).std()
    fold, right = np.arange(20) % 5, np.full(22, np.nan)  # the clips lie in the order of their classes
    for left in range(5):
        train = fold != left
        probe = LogisticRegression(C=C, max_iter=5000, tol=1e-9)
        probe.fit(x[train].reshape(-1, 6), np.repeat(classes[known][train], 4))
        told = probe.predict(x[~train].reshape(-1, 6)).reshape(-1, 4)
        right[known[~train]] = (told == classes[known][~train, None]).mean(axis=1)
    assert probed(text, classes) == pytest.approx(right, nan_ok=True)


def test_a_probe_reads_what_is_there_and_guesses_what_is_not():
    classes = np.arange(100) % 4
    assert np.mean(probed(captions(classes, noise=0.2), classes)) > 0.95
    assert np.mean(probed(captions(np.zeros(100, int)), classes)) == pytest.approx(0.25, abs=0.12)
    flat = probed(captions(classes)[:1, :1].expand(100, 2, -1), classes)  # one caption for all: one class for all
    assert np.mean(flat) == pytest.approx(0.25, abs=0.05)


def test_its_mean_over_clips_is_the_mean_over_tasks_even_if_tasks_leave_clips_out():
    category = ["bird"] * 25 + ["cow"] * 20 + ["owl"] * 3 + [""] * 12
    scenes = [Scene((Sound(0, 0, onset=0.0),), "single", None, 1.0)] * 30
    scenes += [Scene((Sound(0, 0, onset=0.0), Sound(1, 0, onset=1.0)), "overlap", None, 2.0)] * 30
    text = captions([place % 5 for place in range(60)], noise=2.0)
    told = SimpleNamespace(columns={"category": category, "scene": scenes}, languages=("eng",), texts=lambda _: text)
    found = {name: np.nanmean(probed(text, classes)) for name, classes in tasks(told.columns).items()}
    assert found.keys() == {"relation", "events", "category"}
    values = extrinsic(told)
    assert values is not None
    assert values.shape == (60,)
    assert values.mean() == pytest.approx(np.mean(list(found.values())))
    right = probed(text, tasks(told.columns)["category"])
    assert found["category"] == pytest.approx(np.nanmean(right))
    assert not np.isnan(right[45:48]).any()
    assert np.isnan(right[48:]).all()


def test_attributes_are_what_captions_tell():
    phrases = [Phrase("violin", "rising", "slow", "minor", "low", "legato"), Phrase("claves", "rhythm", "fast")]
    found = attributes({"phrase": phrases, "font": ["fluid", "fluid"], "label": [3, 4]})
    assert found.keys() == {"family", "shape", "tempo", "mode", "register", "articulation"}
    assert found["family"][0] == "bowed"
    assert found["mode"] == ["minor", ""]
    assert attributes({"file": ["a.wav"], "english": [["A dog barks."]]}) == {}


def test_an_experiment_gets_both_where_something_is_known_and_the_first_elsewhere():
    text = captions(np.arange(30) % 3)
    given = {"languages": ("eng", "fra"), "texts": {"eng": text, "fra": text.flip(0)}.get, "relevance": graded(30)}
    known = METRICS["language"].make(SimpleNamespace(columns={"category": ["a", "b", "c"] * 10}, **given))
    assert known.keys() == {score.name for score in METRICS["language"].scores}
    assert all(values.shape == (30,) and np.isfinite(values).all() for values in known.values())
    unknown = METRICS["language"].make(SimpleNamespace(columns={"file": ["a.wav"] * 30}, **given))
    assert unknown.keys() == {"intrinsic"}
