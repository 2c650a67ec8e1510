"""Settings of the wrong type or out of range are refused at every door, by name, with what came."""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from pullpush.data.recordings.corpora import CorpusConfig
from pullpush.data.scenes.composer import SceneConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import PullPushError, SettingError
from pullpush.lab import profiles, session
from pullpush.settings import check_setting
from pullpush.site import chapters
from pullpush.site.sweep import read_grid as read
from pullpush.training.__main__ import parser as training_parser, recipe_of
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.recipes import Recipe, from_json, recipe
from pullpush.training.terms import Term


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1, float),
        (np.float64(0.5), float),
        (np.int64(3), int),
        (("eng", "fra"), tuple[str, ...]),
        (["eng"], tuple[str, ...]),
        (None, int | None),
        ({"speech": 2}, Mapping[str, float]),
        ("t2a", Literal["t2a", "a2t"]),
        ("fast", Enum("Mode", {"ONE": "fast"})),
        ("slow", Enum("Mode", {"ONE": "slow"})),  # another one of the same name
        (1, Annotated[int, ["of epochs"]]),  # has no hash
        (object(), int),  # no plain data: whoever uses it says what it lacks
    ],
)
def test_what_fits_its_type_passes(value, wanted):
    check_setting("x", value, wanted)


@pytest.mark.parametrize(
    ("value", "wanted", "message"),
    [
        ("1", int, "x must be a whole number, got '1'"),
        (1.5, int, r"x must be a whole number, got 1\.5"),
        (True, int, "x must be a whole number, got True"),
        (True, float, "x must be a number, got True"),
        (math.nan, float, "x must be a finite number, got nan"),
        (None, float, "x must be a number, got None"),
        (0, bool, "x must be true or false, got 0"),
        ("a", int | None, "x must be a whole number or null, got 'a'"),
        (["eng", 3], tuple[str, ...], r"x\[1\] must be a text, got 3"),
        ({"speech": "two"}, Mapping[str, float], r"x\['speech'\] must be a number, got 'two'"),
        ("bi", Literal["t2a", "both"], "x must be 't2a' or 'both', got 'bi'"),
        ("a" * 100, int, "got 'aaa.*…$"),
    ],
)
def test_what_does_not_is_named_with_what_came(value, wanted, message):
    with pytest.raises(SettingError, match=message):
        check_setting("x", value, wanted)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: recipe("infonce", lr="abc"), "recipe 'infonce': lr must be a number, got 'abc'"),
        (lambda: recipe("infonce", epochs=1.5), "epochs must be a whole number"),
        (lambda: recipe("infonce", batch_size="4"), "batch_size must be a whole number, got '4'"),
        (lambda: recipe("infonce", tau="hot"), "term 'infonce': tau must be a number, got 'hot'"),
        (lambda: recipe("infonce", encoder_options=5), "encoder_options must be a mapping, got 5"),
        (lambda: recipe("infonce", languages=5), "languages must be .*, got 5"),
        (lambda: recipe("infonce", balance={"a": "b"}), r"balance\['a'\] must be a number"),
        (lambda: recipe("infonce", lr=math.inf), "lr must be a finite number"),
        (lambda: recipe(5), "recipe must be a text, got 5"),
        (lambda: Term("infonce", math.nan), "weight must be a finite number"),
        (lambda: Term("infonce", 1.0, [1]), "options must be a mapping"),
        (lambda: WorldConfig(n_train="6"), "world: n_train must be a whole number, got '6'"),
        (lambda: WorldConfig(scene={"loudness": 1}), "unknown field of scene 'loudness'"),
        (lambda: WorldConfig(scene=[1]), "scene must be a mapping of settings"),
        (lambda: SceneConfig(duration="4"), "scene: duration must be a number"),
        (lambda: CorpusConfig("clotho", n_test=2.5), "corpus: n_test must be a whole number or null"),
        (lambda: CorpusConfig("clotho", seconds=math.nan), "seconds must be a finite number"),
        (lambda: session.start("01-forces", seed="0"), "seed must be a whole number, got '0'"),
        (lambda: Diagnostics(every=1.5), "diagnostics: every must be a whole number"),
        (lambda: from_json("{"), "a recipe is written as JSON, but this is none"),
        (lambda: from_json("[1]"), "recipe must be a mapping"),
        (lambda: from_json('{"name": "a"}'), "a recipe lacks terms"),
        (lambda: Recipe("a", ({"weight": 1.0},)), "a term lacks its name"),
        (lambda: Recipe("a", "infonce"), "terms of a recipe must be a sequence of terms"),
        (lambda: profiles.profile(5), "profile must be a text, got 5"),
    ],
)
def test_settings_in_python_are_checked(make, message):
    with pytest.raises(PullPushError, match=message):
        make()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds: 0", "a profile, mine.yaml: seeds must be at least 1, got 0"),
        ("batch_size: 1", "batch_size must be at least 2, got 1"),
        ("like: FILE", "is like itself"),
        ("like: OTHER", "is like itself"),
        ("like: [a]", "like must be a text"),
        ("world: {n_train: '6'}", "mine.yaml: world: n_train must be a whole number, got '6'"),
        ("world: {n_train: 0}", "n_train must be at least 1, got 0"),
        ("world: {scene: {loudness: 1}}", "unknown field of scene 'loudness'"),
        ("world: {sceen: {}}", "did you mean 'scene'"),
        ("clips: {seconds: long}", "seconds must be a number or null, got 'long'"),
        ("fine_tuning: {lr: low}", "fine_tuning: lr must be a number, got 'low'"),
        ("pretrained: {audio: 5}", "pretrained: audio must be a text, got 5"),
        ("zero_shot: [5]", r"zero_shot\[0\] must be a text, got 5"),
        ("epochs: 1\nworld: {}\nepochs: 2", "'epochs' stands twice in one mapping"),
        ("world: {n_train: 1, n_train: 2}", "'n_train' stands twice in one mapping"),
        ("seeds: 2020-01-01", "holds more than numbers, texts, lists and mappings: .* date"),
        ("world: &a {scene: *a}", "holds more than numbers, texts, lists and mappings"),
    ],
)
def test_a_profile_s_file_is_checked(tmp_path, text, message):
    file, other = tmp_path / "mine.yaml", tmp_path / "other.yaml"
    file.write_text(text.replace("FILE", str(file)).replace("OTHER", str(other)), encoding="utf-8")
    other.write_text(f"like: {file}", encoding="utf-8")
    with pytest.raises(PullPushError, match=message):
        profiles.profile(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chapter: [a]\ngrid: {tau: [1]}", "chapter must be a text"),
        ("chapter: 10-tiny\nprofile: [a]\ngrid: {tau: [1]}", "profile must be a text"),
        ("chapter: 10-tiny\nout: 5\ngrid: {tau: [1]}", "out must be a text, got 5"),
        ("chapter: 10-tiny\nfixed: [a]\ngrid: {tau: [1]}", "fixed must be a mapping"),
        ("chapter: 10-tiny\nout: FILE\ngrid: {tau: [1]}", "out must be a folder, but .* is a file"),
        ("chapter: 10-tiny\n5: a\ngrid: {tau: [1]}", "unknown field of .*plan.yaml '5'"),
        ("chapter: 10-tiny\ngrid: {tau: [.inf]}", "parameter 'tau' must be a number, got inf"),
        ("chapter: 10-tiny\ngrid: {name: [[a]]}", "parameter 'name' must be a text"),
    ],
)
def test_a_sweep_s_file_is_checked(tiny, tmp_path, text, message):
    file = tmp_path / "plan.yaml"
    file.write_text(text.replace("FILE", str(file)), encoding="utf-8")
    with pytest.raises(PullPushError, match=message):
        read(file, root=tiny)
    file.write_bytes(bytes(range(256)))
    with pytest.raises(PullPushError, match="is not YAML"):
        read(file, root=tiny)


@pytest.mark.parametrize("text", ["inf", "nan", "1e999"])
def test_a_parameter_is_a_finite_number(tiny, text):
    with pytest.raises(chapters.ParameterError, match=f"'tau' must be a number, got '{text}'"):
        chapters.check_parameters(chapters.find(tiny, "10-tiny"), {"tau": text})


def test_what_training_is_told_is_typed():
    chosen: Any = recipe_of(training_parser().parse_args(["--out", "x", "--set", "lr=1"]))
    assert chosen.lr == 1
