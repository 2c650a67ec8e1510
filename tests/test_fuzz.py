"""Whatever comes to the public entry points: a right result, or an error that names what came. Nothing else.

`PULLPUSH_FUZZ=2000 pytest tests/test_fuzz.py` tries so many of each, drawn anew.
"""

import json
import math
import os
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st
from tempered import TEMPERED

from pullpush import forces, losses, metrics
from pullpush.data.recordings.corpora import CorpusConfig
from pullpush.data.scenes.composer import SceneConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import PullPushError
from pullpush.lab import profiles
from pullpush.lab.profiles import Profile
from pullpush.losses import TERMS
from pullpush.site import chapters, sweep
from pullpush.training.__main__ import parser, recipe_of
from pullpush.training.recipes import RECIPES, Recipe, from_json, recipe

pytestmark = pytest.mark.deep

REFUSALS = (PullPushError, ValueError, TypeError)
TRIES = int(os.environ.get("PULLPUSH_FUZZ", "0"))
FUZZ = settings(
    max_examples=TRIES or 60,
    deadline=None,
    derandomize=not TRIES,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)

numbers = st.one_of(st.integers(-3, 99), st.floats(), st.sampled_from([0, -1, 10**30, math.inf, math.nan, 1e-300]))
plain = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=5), st.sampled_from(["1", "eng", "t2a", "both"]))
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.integers(0, 3), inner, max_size=3)
    ),
    max_leaves=4,
)
names = st.text(max_size=6)


def named(error: BaseException, *words: object) -> None:
    """An error says which argument or value it is about."""
    message = str(error)
    assert any(str(word) in message for word in words), f"{type(error).__name__} names none of {words}: {message}"


def fields_of(kind: type) -> Any:
    """A dataclass's fields, a few of them, with any value."""
    return st.dictionaries(st.sampled_from([item.name for item in fields(kind)]), values, min_size=1, max_size=2)


# Settings


@FUZZ
@given(st.sampled_from([*RECIPES, "infonce+svr", ""]), fields_of(Recipe))
def test_recipes(name, told):
    told.pop("terms", None)
    try:
        found = recipe(name, **told)
    except REFUSALS as error:
        named(error, *told, "recipe")
    else:
        assert all(math.isfinite(getattr(found, field)) for field in ("lr", "epochs", "clip", "warmup"))
        assert isinstance(found.batch_size, int)


@FUZZ
@given(st.one_of(values, fields_of(Recipe), st.fixed_dictionaries({"name": plain, "terms": values})), st.booleans())
def test_recipes_as_json(told, is_cut):
    text = json.dumps(told, default=str)[: 5 if is_cut else None]
    try:
        assert isinstance(from_json(text), Recipe)
    except REFUSALS as error:
        named(error, "recipe", "term")


@FUZZ
@given(st.sampled_from(sorted(TERMS)), st.data())
def test_options_of_losses(name, data):
    options = [option for option in TERMS[name].defaults if option not in ("topics", "dim")]
    told = data.draw(st.dictionaries(st.sampled_from([*options, "nonsense"]), values, min_size=1, max_size=2))
    try:
        made = recipe(name, **told).terms[0]
        if name != "clusters":
            made.create(batch_size=8)
    except REFUSALS as error:
        named(error, *told)


@FUZZ
@given(st.sampled_from([WorldConfig, SceneConfig, CorpusConfig]), st.data())
def test_worlds_scenes_and_corpora(kind, data):
    told = data.draw(fields_of(kind))
    try:
        kind(**({"dataset": "clotho"} if kind is CorpusConfig else {}) | told)
    except REFUSALS as error:
        named(error, *told, "scene", "text cleaning")


@FUZZ
@given(st.one_of(fields_of(Profile), st.dictionaries(names, values, max_size=2), values, st.binary(max_size=40)))
def test_profiles(tmp_path, told):
    file = tmp_path / "mine.yaml"
    file.write_bytes(told if isinstance(told, bytes) else yaml.safe_dump(told, allow_unicode=True).encode())
    try:
        found = profiles.profile(file)
    except PullPushError as error:
        named(error, "mine.yaml", "'mine'", "profile", *(told if isinstance(told, dict) else ()))
    else:
        assert min(found.seeds, found.epochs, found.dim, found.batch_size - 1) >= 1


KEYS = st.sampled_from([item.name for item in fields(sweep.Grid)])


@FUZZ
@given(st.one_of(st.dictionaries(KEYS | names, values, max_size=4), values, st.binary(max_size=40)), st.booleans())
def test_sweeps(tiny, tmp_path, told, is_sound):
    if isinstance(told, dict) and is_sound:  # as far as chapter and grid go
        told = {"grid": {"tau": [0.1]}} | told | {"chapter": "10-tiny"}
    file = tmp_path / "plan.yaml"
    file.write_bytes(told if isinstance(told, bytes) else yaml.safe_dump(told, allow_unicode=True).encode())
    try:
        cells, _ = sweep.read_grid(file, root=tiny)
    except PullPushError as error:
        named(error, "plan.yaml", "chapter", "profile", "parameter", "sweep file")
    else:
        assert cells


@FUZZ
@given(st.sampled_from(["seed", "tau", "name", "loud", "rates", "profile"]), values | st.text(max_size=8))
def test_parameters_of_chapters(tiny, name, value):
    chapter = chapters.find(tiny, "10-tiny")
    try:
        found = chapters.check_parameters(chapter, {name: value})[name]
    except PullPushError as error:
        named(error, f"parameter {name!r}")
    else:
        assert type(found) is type(chapters.parameters(chapter)[name])
        assert not isinstance(found, float) or math.isfinite(found)


@FUZZ
@given(st.text(max_size=12) | st.builds("{}={}".format, st.sampled_from([f.name for f in fields(Recipe)]), names))
def test_what_training_is_told(text):
    name = text.partition("=")[0]
    try:
        recipe_of(parser().parse_args(["--out", "x", f"--set={text}"]))
    except REFUSALS as error:
        named(error, name, repr(name)[1:-1], "--set")


# Arrays

SHAPES = st.sampled_from([(4, 3), (4, 3), (4, 3), (4, 4), (1, 3), (4,), (0, 3), (4, 0), (4, 2, 3), (), (5, 3)])
KINDS = st.sampled_from(["float32", "float32", "float32", "float64", "float16", "bfloat16", "int64", "bool", "numpy"])


@st.composite
def arrays(draw) -> Any:
    """Unit vectors more often than not; else other shapes, types, values, or no tensor at all."""
    if draw(st.integers(0, 19)) == 0:
        return draw(plain)
    shape, kind = draw(SHAPES), draw(KINDS)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    made = torch.nn.functional.normalize(torch.randn(shape, generator=generator), dim=-1 if shape else 0)
    if draw(st.integers(0, 9)) == 0 and made.numel():
        made.view(-1)[0] = draw(st.sampled_from([math.nan, math.inf]))
    return made.numpy() if kind == "numpy" else made.to(getattr(torch, kind))


taus = st.one_of(
    st.sampled_from([0.07, 0.5, 1.0]), plain, st.sampled_from([torch.tensor(0.1), torch.tensor(-1.0), np.full(4, 0.1)])
)
LOSSES = {
    **TEMPERED,
    "label_smoothing": losses.label_smoothing,
    "cross_cyclic": lambda audio, text, tau: losses.cross_cyclic(audio, text),
    "sparsity": lambda audio, text, tau: losses.sparsity(audio, text),
    "nli": lambda audio, text, tau: losses.nli(audio, text, text, tau),
    "kcl": lambda audio, text, tau: losses.kcl(audio, text, tau),
    "distillation": lambda audio, text, tau: losses.distillation(audio, audio, text, tau),
    "support_vector": lambda audio, text, tau: losses.support_vector(audio, text, tau).double().sum(),
    "radius": lambda audio, text, tau: losses.radius_constraint(tau, text),
    "smoothing": lambda audio, text, tau: losses.label_smoothing(audio, audio, 0.1, epsilon=(text, text)),
    "cacl": lambda audio, text, tau: losses.cacl(audio, text, text, tau),
}
WITHOUT_TAU = ("cross_cyclic", "sparsity")
ARGUMENTS = (
    "audio",
    "text",
    "tau",
    "view1",
    "view2",
    "english",
    "other",
    "anchor",
    "positive",
    "candidates",
    "loss",
    "entailment",
    "texts",
    "teacher_similarity",
    "radius",
    "distance",
)
ARGUMENTS += ("epsilon",)


def whole(found: Any) -> bool:
    """Whether all numbers of a result are numbers."""
    if isinstance(found, dict | tuple):
        return all(map(whole, found.values() if isinstance(found, dict) else found))
    return bool(torch.as_tensor(found).double().isfinite().all())


@FUZZ
@given(st.sampled_from(sorted(LOSSES)), arrays(), arrays(), taus)
def test_losses(name, audio, text, tau):
    try:
        found = LOSSES[name](audio, text, tau)
    except (ValueError, TypeError) as error:
        named(error, *ARGUMENTS)
        return
    assert found.shape == ()
    exact = LOSSES[name](*(x.double() if torch.is_tensor(x) else x for x in (audio, text)), tau)
    if (
        torch.is_tensor(audio)
        and torch.is_tensor(text)
        and whole((audio, text))
        and (name in WITHOUT_TAU or 0.05 <= tau <= 10)
    ):
        torch.testing.assert_close(found.double(), exact, rtol=2e-2, atol=2e-2)


METRICS = {
    "retrieval": lambda a, b, n: metrics.retrieval(a, b, ks=(n,), map_at=(n,)),
    "retrieval of pairs": lambda a, b, n: metrics.retrieval(a, torch.eye(4, dtype=torch.bool), ks=(n,), threshold=n),
    "by_clip": lambda a, b, n: metrics.by_clip(a, b, ks=(n,), map_at=()),
    "by_caption": lambda a, b, n: metrics.by_caption(a, b, torch.tensor([0, 1, 2, 3])),
    "zero_shot_predictions": lambda a, b, n: metrics.zero_shot_predictions(a, b),
    "alignment": lambda a, b, n: metrics.alignment(a, b, alpha=n),
    "uniformity": lambda a, b, n: metrics.uniformity(a, t=n),
    "gap": lambda a, b, n: metrics.gap(a, b),
    "language_ranks": lambda a, b, n: metrics.language_ranks(a, b),
    "difference": lambda a, b, n: metrics.difference([[1.0, 2.0], [2.0, 4.0]], level=n),
}
OF_METRICS = (
    *("similarity", "relevance", "audio", "text", "prompts", "labels", "embeddings", "english", "other", "clip"),
    *("ks", "level", "alpha", "t must be", "threshold", "queries"),
)


@FUZZ
@given(st.sampled_from(sorted(METRICS)), arrays(), arrays(), st.one_of(st.integers(1, 6), plain))
def test_metrics(name, a, b, n):
    try:
        found = METRICS[name](a, b, n)
    except (ValueError, TypeError) as error:
        named(error, *OF_METRICS)
        return
    if name == "difference":
        assert found.low <= found.value <= found.high
    elif name != "gap" or (a.isfinite().all() and b.isfinite().all()):
        assert whole(found)
    if name in ("retrieval of pairs", "by_clip", "by_caption"):
        assert all(0 <= value <= 1 for score in found.values() for value in torch.as_tensor(score).view(-1))


FORCES = {
    "decompose": lambda a, b, c, n: forces.decompose(a, b, n),
    "drift": lambda a, b, c, n: forces.drift(a, b),
    "tangent": lambda a, b, c, n: forces.tangent(a, b),
    "sideways": lambda a, b, c, n: forces.sideways(a, b, c),
    "distance_change": lambda a, b, c, n: forces.distance_change(a, b, c),
    "local_global": lambda a, b, c, n: forces.local_global(a, b, batch_size=n),
    "step_parts": lambda a, b, c, n: forces.step_parts(losses.info_nce, a, b, batch_size=n),
}
OF_FORCES = (*ARGUMENTS, "update", "pull", "vector", "at", "force", "batch_size", "candidates")


@FUZZ
@given(st.sampled_from(sorted(FORCES)), arrays(), arrays(), arrays(), taus | st.integers(1, 5))
def test_forces(name, a, b, c, n):
    try:
        found = FORCES[name](a, b, c, n)
    except (ValueError, TypeError) as error:
        named(error, *OF_FORCES)
        return
    parts = found if isinstance(found, tuple) else [found]
    assert name == "step_parts" or a.ndim != 2 or all(len(part) == len(a) for part in parts)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_the_fuzz_meets_right_results(name):
    others = {"kcl": torch.eye(4)[:, None], "radius": torch.ones(4), "smoothing": torch.full((4,), 0.1)}
    text = others.get(name, torch.eye(4).roll(1, 0))
    assert LOSSES[name](torch.eye(4), text, 0.5).isfinite()
