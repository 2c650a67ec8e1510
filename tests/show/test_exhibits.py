"""What chapters show of a world can be seen, heard and read, by screen readers too."""

from __future__ import annotations

import base64
import html
import io
import re

import pandas as pd
import pytest
import torch
from PIL import Image

from pullpush.data.vocabulary import LANGUAGES
from pullpush.data.world import World
from pullpush.encoders import DualEncoder, create
from pullpush.show import exhibits


@pytest.fixture(scope="module")
def model(world: World) -> DualEncoder:
    return create("cnn", "hashed", dim=8, seed=0).eval()


@pytest.fixture(scope="module")
def audio(model: DualEncoder, world: World) -> torch.Tensor:
    with torch.no_grad():
        return model.encode_audio(*world.test.audio(slice(None)))


def test_a_card_shows_the_sound_and_its_caption_in_its_language(world):
    shown = exhibits.scenes(world.test, [0, 3, 5], language="deu").data
    captions = [html.escape(world.test.captions("deu")[i][0]) for i in (0, 3, 5)]
    assert re.findall(r'<div lang="de">([^<]*)</div>', shown) == captions
    assert shown.count("<audio ") == 3
    assert re.findall(r'alt="([^"]*)"', shown) == [f"Spectrogram of: {caption}" for caption in captions]


def test_every_picture_has_a_text_and_every_player_a_name(world):
    for shown in (exhibits.scenes(world.test, [0]).data, exhibits.translations(world.test, 0).data):
        assert all(re.search(r'alt="[^"]+"', tag) for tag in re.findall(r"<img [^>]*>", shown))
        assert all(re.search(r'aria-label="[^"]+"', tag) for tag in re.findall(r"<audio [^>]*>", shown))


def test_a_thumbnail_is_a_small_picture(world):
    data = re.search(r"data:image/png;base64,([^\"]+)", exhibits.scenes(world.test, [0]).data)[1]
    picture = Image.open(io.BytesIO(base64.b64decode(data)))
    assert picture.size[1] == 129
    assert len(data) < 60_000


def test_a_scene_is_told_in_eight_languages(world):
    shown = exhibits.translations(world.test, 1)
    cells = dict(re.findall(r'<td [^>]*lang="([^"]+)">([^<]+)</td>', shown.data))
    assert cells == {exhibits.HTML_CODES[c]: html.escape(world.test.captions(c)[1][0]) for c in LANGUAGES}
    assert [line.split(":")[0] for line in repr(shown).splitlines()] == list(LANGUAGES)


def test_every_language_has_a_name_and_a_code():
    assert tuple(exhibits.LANGUAGE_NAMES) == tuple(exhibits.HTML_CODES) == LANGUAGES


def test_a_published_search_ranks_clips_by_cosine(model, world, audio):
    queries = {"eng": "a <low> tone", "fra": "un son grave"}
    shown = exhibits.search(model, world.test, audio, queries, top=2).data
    assert '<span lang="en">a &lt;low&gt; tone</span>' in shown
    assert '<span lang="fr">un son grave</span>' in shown
    assert shown.count("<audio ") == 4
    with torch.no_grad():
        similarity = (model.encode_text(["a <low> tone"]) @ audio.T)[0]
    best = similarity.argsort(descending=True)[:2].tolist()
    lines = [f"{k}. {world.test.captions('eng')[i][0]} (cosine {similarity[i]:.2f})" for k, i in enumerate(best, 1)]
    assert re.findall(r'<div lang="en">([^<]*)</div>', shown)[:2] == [html.escape(line) for line in lines]


def test_a_search_in_a_small_set_shows_all_of_it(model, world, audio):
    shown = exhibits.search(model, world.test, audio, {"eng": "x"}, top=99).data
    assert shown.count("<audio ") == len(world.test)


def test_a_live_search_is_a_box_with_the_queries_as_examples(model, world, audio, capsys):
    box = exhibits.search(model, world.test, audio, {"eng": "a tone", "fra": "un son"}, live=True)
    field, examples, _ = box.children
    assert [button.description for button in examples.children] == ["a tone", "un son"]
    field.value = "some noise"
    assert "3 sounds" in capsys.readouterr().out


def test_sounds_have_names_and_lengths(world):
    scene = max(world.test.scenes, key=lambda scene: len(scene.sounds))
    names, seconds = exhibits.sound_names(world, scene), exhibits.sound_seconds(world, scene)
    assert len(names) == len(seconds) == len(scene.sounds)
    assert all(name and "_" not in name for name in names)
    assert all(0 < length < 30 for length in seconds)


def test_a_table_shows_percentages_and_gaps_and_no_index():
    frame = pd.DataFrame({"name": ["a", "b"], "share": [0.256, None], "error": [1e-13, 2e-13]}, index=[41, 42])
    shown = exhibits.table(frame, percent=["share"], formats={"error": "{:.0e}"}).to_html()
    assert "25.6%" in shown
    assert "–" in shown
    assert "1e-13" in shown
    assert ">41<" not in shown


def test_numbers_have_true_minus_signs_and_no_negative_zero():
    frame = pd.DataFrame({"x": [-0.00004, -0.5, 3.0], "text": ["-0.0 [-1.2, 0.8]", "mono-lingual -3", "1e-13"]})
    shown = exhibits.table(frame, formats={"x": "{:.1f}"}).to_html()
    for text in (">0.0<", ">−0.5<", ">0.0 [−1.2, 0.8]<", ">mono-lingual −3<", ">1e-13<"):
        assert text in shown


def test_gains_stand_side_by_side_in_points():
    frame = pd.DataFrame(
        {
            "system": ["a", "a", "b", "b"],
            "baseline": "base",
            "metric": ["T2A R@1", "A2T R@1"] * 2,
            "value": [0.012, -0.002, 0.05, 0.06],
            "low": [0.004, -0.018, 0.04, 0.05],
            "high": [0.02, 0.012, 0.06, 0.07],
            "wins": ["5/5", "1/5", "5/5", "5/5"],
        }
    )
    shown = exhibits.gains(frame)
    assert shown.columns.tolist() == ["system", "over", "T2A R@1", "A2T R@1"]
    assert shown.data["T2A R@1"].tolist() == ["1.2 [0.4, 2.0], 5/5", "5.0 [4.0, 6.0], 5/5"]
    assert ">−0.2 [−1.8, 1.2], 1/5<" in shown.to_html()
    whole = exhibits.gains(frame.assign(**{"half width": 0.008, "seeds": 5, "clips": 100})).data
    assert whole["T2A R@1"].tolist() == ["1.2 ± 0.8 [0.4, 2.0], 5/5", "5.0 ± 0.8 [4.0, 6.0], 5/5"]
    assert whole["seeds × clips"].tolist() == ["5 × 100"] * 2


def test_captions_of_real_sets_are_counted_beside_the_scenes(world, home):
    folder = home / "captions"
    folder.mkdir()
    (folder / "clotho_train.csv").write_text("file_name,caption_1,caption_2\na.wav,A dog barks,Dogs bark\n")
    (folder / "clotho_test.csv").write_text("file_name,caption_1,caption_2\nb.wav,A dog howls,A cat\n")
    (folder / "audiocaps_test.csv").write_text("file_name,caption\nc.wav,Rain falls\n")
    try:
        found = exhibits.caption_words(world)
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    assert set(found) == {"scenes", "clotho", "audiocaps"}
    counts = found["clotho"].set_index("word")["count"]
    assert (counts["a"], counts["dog"], counts["barks"], counts["howls"]) == (3, 2, 1, 1)
    assert list(exhibits.caption_words(world)) == ["scenes"]
