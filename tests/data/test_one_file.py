"""One file adds a source, one a language: each is loaded, told, trained on and searched, and no list is edited."""

import miniature
import pytest
import torch

from pullpush.data.languages import LANGUAGES, VocabularyError, language, load_languages
from pullpush.data.recordings import registry
from pullpush.data.recordings.corpora import CorpusConfig, load_corpus
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.errors import UnknownNameError
from pullpush.training import recipe, retrieval_table
from pullpush.training.runs import Plan

SMALL = {"epochs": 1, "batch_size": 4, "dim": 8, "text": "hashed", "encoder_options": {"audio_channels": (4, 4, 8)}}


@pytest.fixture
def extra(home, tmp_path, monkeypatch):
    """A reader's own folder, with empty caches."""
    monkeypatch.setenv("PULLPUSH_EXTRA", str(tmp_path / "extra"))
    monkeypatch.setenv("PULLPUSH_DATA", str(tmp_path / "data"))
    return tmp_path / "extra"


def test_a_source_is_one_file(extra):
    miniature.toy_source(extra, "tones")
    assert registry.fetch("tones").name == "tones"
    corpus = load_corpus(CorpusConfig("tones"))
    assert [len(clips) for clips in corpus.splits.values()] == [12, 6, 6]
    assert corpus.test.captions("eng")[0] == ["A tone of 200 hertz."]
    audio, lengths = corpus.test.audio(0)
    loudest = int(torch.fft.rfft(audio[0]).abs().argmax()) * 16_000 / int(lengths)
    assert loudest == pytest.approx(200, abs=3)


def test_a_language_is_one_file(extra):
    miniature.toy_language(extra)
    assert list(load_languages()) == [*LANGUAGES, "qty"]
    assert (language("qty").name, language("qty").native, language("qty").html) == ("Toyish", "hsiyot", "x-toy")
    world = load_world(WorldConfig("synthetic", n_train=12, n_valid=4, n_test=6, n_single_per_event=1))
    english, toyish = world.test.captions("eng"), world.test.captions("qty")
    assert [len(texts) for texts in toyish] == [len(texts) for texts in english]
    assert toyish != english
    assert world.singles.prompts("qty")[0] == "This is a sound of kcolc mrala."
    result = Plan(world, recipe("cacl", languages=("eng", "qty"), **SMALL)).train()
    table = retrieval_table(result.model, world.test, ("eng", "qty"))
    assert set(table["language"]) == {"eng", "qty"}


def test_captions_in_another_language_make_another_world_for_runs(extra):
    config = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)
    before = load_world(config)
    file = miniature.toy_language(extra)
    after = load_world(config)
    assert after.identity != before.identity
    assert after.train.key == before.train.key, "nothing is rendered again"
    text = file.read_text(encoding="utf-8")
    file.write_text(f"# A comment.\n\n{text}", encoding="utf-8")
    assert load_world(config).identity == after.identity, "how a file is written is no content"
    file.write_text(text.replace("kcolc mrala", "kcolC mrala"), encoding="utf-8")
    assert load_world(config).identity != after.identity


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("native: hsiyot", "", r"qty\.yaml is no language: .*missing 1 required .*'native'"),
        ("native:", "tongue: forked\nnative:", r"qty\.yaml is no language: .*unexpected keyword argument 'tongue'"),
    ],
)
def test_a_language_with_other_keys_is_named(extra, old, new, complaint):
    file = miniature.toy_language(extra)
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(VocabularyError, match=complaint):
        load_languages()


def test_an_unknown_language_gets_the_nearest(extra):
    miniature.toy_language(extra)
    with pytest.raises(UnknownNameError, match="did you mean 'qty'"):
        language("qtz")
