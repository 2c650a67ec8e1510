"""Worlds in fewer words, or with few words dominant: what they say stays true, and nothing but the words differs."""

import re
from collections import Counter

import numpy as np
import pytest
import torch
from drawn_scenes import scenes

from pullpush.data.banks.synthetic import synthetic_events
from pullpush.data.language.grammar import captions
from pullpush.data.language.vocabulary import load_events, word_frequencies
from pullpush.data.language.wording import LexiconConfig, _ZipfDice, narrow_phrases, worded_captions
from pullpush.data.scenes.scene import Scene
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import UnknownNameError

EVENTS = load_events()
SMALL = WorldConfig("synthetic", n_train=12, n_valid=4, n_test=6, n_single_per_event=1)


@pytest.fixture(scope="module")
def corpora() -> dict[tuple[str, float], list[str]]:
    """The captions of the same scenes, by vocabulary and skew."""
    told = scenes(800, len(EVENTS))
    found = {("rich", 0.0): [text for scene in told for text in captions(scene, EVENTS, language="eng")]}
    for how in (("rich", 1.0), ("rich", 2.0), ("narrow", 0.0), ("narrow", 2.0)):
        found[how] = [text for scene in told for text in worded(scene, *how)]
    return found


def worded(scene: Scene, vocabulary: str, skew: float, n: int = 5) -> list[str]:
    return worded_captions(scene, EVENTS, language="eng", vocabulary=vocabulary, skew=skew, n=n)


def entropy(counts: np.ndarray) -> float:
    share = counts / counts.sum()
    return float(-(share * np.log2(share)).sum())


def word_entropy(texts: list[str]) -> float:
    return entropy(word_frequencies(texts)["count"].to_numpy())


def form_entropy(texts: list[str]) -> float:
    """Of what is left of captions without the phrases of events."""
    phrases = [
        phrase
        for event in EVENTS
        for words in (event.phrases["eng"], narrow_phrases(event.phrases["eng"], "eng"))
        for phrase in (*(f"{clause.subject} {clause.verb}" for clause in words.clauses), *words.nouns)
    ]
    pattern = re.compile(r"\b(" + "|".join(sorted(map(re.escape, phrases), key=len, reverse=True)) + r")\b", re.I)
    forms = Counter(pattern.sub("…", text.replace("the repeated", "the")) for text in texts[:1500])
    return entropy(np.array(list(forms.values())))


def test_rich_words_without_skew_are_the_grammar_s_to_the_letter(module_home):
    plain, wrapped = SMALL.load(), LexiconConfig(SMALL).load()
    for name, clips in wrapped.splits.items():
        for language in ("eng", "deu", "jpn"):
            assert clips.captions(language) == plain.split(name).captions(language)


def test_worlds_in_other_words_have_the_same_audio_and_other_names(module_home):
    plain = SMALL.load()
    worlds = [LexiconConfig(SMALL, *how).load() for how in (("rich", 1.0), ("narrow", 0.0), ("narrow", 1.0))]
    for world in worlds:
        assert torch.equal(plain.test.audio([0, 1])[0], world.test.audio([0, 1])[0])
        assert [clips.key for clips in world.splits.values()] == [clips.key for clips in plain.splits.values()]
        assert torch.equal(world.test.relevance(), plain.test.relevance())
        for name in ("train", "valid", "test"):
            assert world.split(name).captions("eng") != plain.split(name).captions("eng")
    assert len({world.words for world in (plain, *worlds)}) == 4
    scene = plain.valid.columns["scene"][0]
    how = {"language": "fra", "vocabulary": "narrow", "skew": 1.0}
    assert worlds[2].valid.captions("fra")[0] == worded_captions(scene, synthetic_events(), **how)


def test_a_narrow_vocabulary_has_at_most_half_the_words_and_far_fewer_forms(corpora):
    rich, narrow = (corpora[vocabulary, 0.0] for vocabulary in ("rich", "narrow"))
    assert 2 * len(word_frequencies(narrow)) <= len(word_frequencies(rich))
    assert word_entropy(narrow) < word_entropy(rich) - 1.2
    assert form_entropy(narrow) < form_entropy(rich) - 1.0


@pytest.mark.parametrize("vocabulary", ["rich", "narrow"])
def test_skew_keeps_the_words_and_lets_few_of_them_dominate(corpora, vocabulary):
    flat, skewed = corpora[vocabulary, 0.0], corpora[vocabulary, 2.0]
    words = [set(word_frequencies(texts)["word"]) for texts in (flat, skewed)]
    assert words[1] <= words[0]
    assert len(words[1]) > 0.97 * len(words[0])
    assert form_entropy(skewed) < form_entropy(flat) - 0.3
    assert word_entropy(skewed) < word_entropy(flat)


def test_narrow_names_tell_all_events_apart():
    for events in (EVENTS, synthetic_events()):
        names = [narrow_phrases(event.phrases["eng"], "eng").nouns[0] for event in events]
        assert len(set(names)) == len(events)
        for name, event in zip(names, events, strict=True):
            assert name.endswith(event.phrases["eng"].label)
    bare = {name for name in names if not name.startswith(("a ", "an "))}
    assert bare == {"rain", "steam"}


def test_narrow_captions_name_the_events_of_the_scene_in_its_order_and_claim_no_more():
    names = {narrow_phrases(event.phrases["eng"], "eng").nouns[0]: row for row, event in enumerate(EVENTS)}
    pattern = re.compile(r"\b(" + "|".join(sorted(names, key=len, reverse=True)) + r")\b")
    told = scenes(300, len(EVENTS))
    for scene in told:
        for text in worded(scene, "narrow", 1.0):
            found = [names[name] for name in pattern.findall(text[0].lower() + text[1:])]
            if scene.relation == "overlap":
                assert sorted(found) == sorted(scene.events), text
            else:
                assert found == list(scene.events), text
            assert text.count("in the distance") <= sum(sound.far for sound in scene.sounds)
            assert text.count("repeatedly") <= sum(sound.repeats > 1 for sound in scene.sounds)
            assert ("noise" in text) <= (scene.snr_db is not None)
    texts = [text for scene in told for text in worded(scene, "narrow", 0.0)]
    for mention in ("in the distance", "repeatedly", "with noise in the background"):
        assert any(mention in text for text in texts)


def test_choices_follow_zipf_s_law_from_the_longest_option():
    dice = _ZipfDice(0, skew=1.0)
    options = ["one two", "one", "one two three"]
    counts = Counter(dice.pick(options) for _ in range(11_000))
    for rank, option in enumerate(["one two three", "one two", "one"], start=1):
        assert counts[option] == pytest.approx(6000 / rank, rel=0.06)
    assert sum(dice.chance(0.5) for _ in range(9000)) == pytest.approx(3000, rel=0.06)  # 1/2 against 1
    assert dice.pick(["alone"]) == "alone"
    flat = _ZipfDice(0, skew=0.0)
    assert min(Counter(flat.pick(options) for _ in range(6000)).values()) > 1800


def test_words_that_there_are_not_are_refused():
    with pytest.raises(UnknownNameError, match="vocabulary 'narow'"):
        LexiconConfig(SMALL, "narow")
    for skew in (-0.5, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="skew must be"):
            LexiconConfig(SMALL, "rich", skew)
    with pytest.raises(ValueError, match="n must be at least 1"):
        worded(scenes(1, len(EVENTS))[0], "narrow", 0.0, n=0)
