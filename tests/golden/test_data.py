"""Probes of clips, captions and batches: what they see, what moves keys, and what does not."""

import importlib

import numpy as np
import pytest

from pullpush import golden
from pullpush.data.language import grammar
from pullpush.data.scenes import augmented, composer, renderer, world as worlds
from pullpush.data.scenes.world import SCENES, WorldConfig, load_world

versions = importlib.import_module("pullpush.golden.versions")  # the package has a function of this name
SMALL = WorldConfig("synthetic", n_train=6, n_valid=3, n_test=3, n_single_per_event=1)


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    """A cache of one's own for what is rendered."""
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "kept"))
    monkeypatch.setenv("PULLPUSH_PROGRESS", "0")


def test_a_rendering_that_is_louder_by_a_thousandth_is_another(monkeypatch):
    before, rendered = making_key(monkeypatch), heard(SMALL)
    exact = renderer.layers
    monkeypatch.setattr(renderer, "layers", lambda *asked: tuple(np.float32(1.001) * part for part in exact(*asked)))
    assert changed(*SCENES, "data/mixing") == ["data/renderer"]
    after = making_key(monkeypatch)
    assert after != before
    assert heard(SMALL) != rendered


def test_a_clip_is_known_by_its_bytes_however_it_was_made(monkeypatch):
    """Early cutoff: what follows is not made again where another making comes to the same."""
    first = load_world(SMALL)
    monkeypatch.setattr(worlds, "versions", lambda *names: dict.fromkeys(names, "another"))
    made = []
    exact = worlds.render
    monkeypatch.setattr(worlds, "render", lambda *asked: made.append(asked) or exact(*asked))
    again = load_world(SMALL)
    assert len(made) == sum(map(len, first.splits.values())), "all was rendered anew"
    assert {name: clips.key for name, clips in again.splits.items()} == heard(SMALL)
    assert again.identity == first.identity


def test_one_sample_makes_other_clips(monkeypatch):
    first = load_world(SMALL)
    monkeypatch.setattr(worlds, "versions", lambda *names: dict.fromkeys(names, "another"))
    exact, odd = worlds._rendered, first.split("valid").columns["scene"][2]

    def nearly(bank, config, scene):
        wave = exact(bank, config, scene)
        wave[100] += scene == odd
        return wave

    monkeypatch.setattr(worlds, "_rendered", nearly)
    again = load_world(SMALL)
    same = {name for name, clips in again.splits.items() if clips.key == first.splits[name].key}
    assert same == {"train", "test", "singles"}
    assert again.identity != first.identity


MOVES = {
    "composer's gap": ((composer, "GAP", 0.15), {"data/scenes", "data/held_out"}),
    "fades": ((renderer, "FADE", 0.021), {"data/renderer"}),
    "fades of mixes": ((augmented, "FADE", 0.03), {"data/augmented"}),
    "shares of splits": (
        (worlds, "SHARES", {"train": 0.7, "valid": 0.1, "test": 0.2}),
        {"data/scenes", "data/held_out"},
    ),
    "mentions": ((grammar, "P_MENTION", 0.1), {"languages/eng", "languages/zho"}),
}


@pytest.mark.parametrize("what", MOVES)
def test_probes_see_what_a_constant_changes(what, monkeypatch):
    (module, name, value), moved = MOVES[what]
    monkeypatch.setattr(module, name, value)
    watched = {"data/scenes", "data/renderer", "data/pitch", "data/augmented", "data/held_out"}
    assert set(changed(*sorted(watched | {"languages/eng", "languages/zho", "data/pairing"}))) == moved


def changed(*names: str) -> list[str]:
    return [found.name for found in golden.check(names)]


def heard(config: WorldConfig) -> dict[str, str]:
    return {name: clips.key for name, clips in load_world(config).splits.items()}


def making_key(monkeypatch) -> str:
    """The name of the entry that the test split is kept under."""
    keys = []
    versions._known.clear()
    with monkeypatch.context() as patch:
        exact = worlds.cached_dir
        patch.setattr(worlds, "cached_dir", lambda kind, key, build: keys.append(key) or exact(kind, key, build))
        worlds._load_split("test", 2, worlds.create_bank("synthetic"), SMALL)
    return keys[0]
