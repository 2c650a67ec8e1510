"""A search ranks clips by cosine, and shows what it found or what went wrong."""

import html
import re

import pytest
import torch

from pullpush.data.clips import World
from pullpush.encoders import DualEncoder, create
from pullpush.show.search import retrieve, search_box


@pytest.fixture(scope="module")
def model(world: World) -> DualEncoder:
    return create("cnn", "hashed", dim=8, seed=0).eval()


@pytest.fixture(scope="module")
def audio(model: DualEncoder, world: World) -> torch.Tensor:
    with torch.no_grad():
        return model.encode_audio(*world.test.audio(slice(None)))


def test_a_published_search_ranks_clips_by_cosine(model, world, audio):
    queries = {"eng": "a <low> tone", "fra": "un son grave"}
    shown = retrieve(model, world.test, audio, queries, top=2).data
    assert '<span lang="en">a &lt;low&gt; tone</span>' in shown
    assert '<span lang="fr">un son grave</span>' in shown
    assert shown.count("<audio ") == 4
    with torch.no_grad():
        similarity = (model.encode_text(["a <low> tone"]) @ audio.T)[0]
    best = similarity.argsort(descending=True)[:2].tolist()
    lines = [f"{k}. {world.test.captions('eng')[i][0]} (cosine {similarity[i]:.2f})" for k, i in enumerate(best, 1)]
    assert re.findall(r'<div lang="en">([^<]*)</div>', shown)[:2] == [html.escape(line) for line in lines]


def test_a_live_search_is_a_box_with_the_queries_as_examples(model, world, audio, capsys):
    box = retrieve(model, world.test, audio, {"eng": "a tone", "fra": "un son"}, live=True)
    field, examples, _ = box.children
    assert [button.description for button in examples.children] == ["a tone", "un son"]
    field.value = "some noise"
    assert "3 sounds" in capsys.readouterr().out


def test_a_search_box_answers_and_shows_what_went_wrong_in_place(capsys):
    asked = []

    def answer(query):
        asked.append(query)
        if query == "boom":
            raise RuntimeError("nothing found")
        return f"answer to {query}"

    box = search_box(answer, examples=["a dog", "boom"])
    field, examples, _ = box.children
    field.value = "  a cat "
    for button in examples.children:
        button.click()
    assert [button.description for button in examples.children] == ["a dog", "boom"]
    assert asked == ["a cat", "a dog", "boom"]
    shown = capsys.readouterr().out
    assert "answer to a cat" in shown
    assert "RuntimeError: nothing found" in shown
