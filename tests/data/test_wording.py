"""Aligned captions are translations of each other, and worlds of them differ in what they say, and in nothing else."""

import pytest
import torch

from pullpush.data.banks.synthetic import synthetic_events
from pullpush.data.language.grammar import CASES, captions, create_form, is_long, load_grammar
from pullpush.data.language.vocabulary import load_events
from pullpush.data.language.wording import WordingConfig, _ways, aligned_captions, load_ways
from pullpush.data.languages import LANGUAGES
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import UnknownNameError

EVENTS = load_events()
SMALL = WorldConfig("synthetic", n_train=30, n_valid=8, n_test=12, n_single_per_event=1)
BELL = Scene((Sound(1, 0, onset=0.0),), "single", None, 2.0)


def scenes() -> list[Scene]:
    """One of every relation and number of sounds, near and far, once and often, with noise and without."""
    found = []
    for count, relation in (
        (1, "single"),
        (2, "sequence"),
        (3, "sequence"),
        (2, "overlap"),
        (3, "overlap"),
        (4, "overlap"),
    ):
        for far, repeats, snr in ((False, 1, None), (True, 1, 10.0), (False, 2, None), (True, 3, 5.0)):
            sounds = tuple(Sound(7 * k + 3, 0, float(k), far=far, repeats=repeats) for k in range(count))
            found.append(Scene(sounds, relation, snr, 4.0))
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_noise_is_told_where_english_tells_it(language):
    noise = load_grammar(language).noise[0].replace("{s}", "").replace("{te}", "")
    titles = load_grammar(language).noise_titles[0].replace("{s}", "")
    heard = set()
    for scene in scenes():
        english = aligned_captions(scene, EVENTS, language="eng", n=8)
        for text, original in zip(aligned_captions(scene, EVENTS, language=language, n=8), english, strict=True):
            assert (noise in text or titles in text) == ("with noise" in original), (original, text)
            assert "{" not in text
            heard.add("with noise" in original)
    assert heard == {True, False}


def test_distance_and_repetition_are_told_in_all_languages_or_in_none():
    words = {
        "eng": ("in the distance", "repeatedly"),
        "fra": ("au loin", "à plusieurs reprises"),
        "deu": ("in der Ferne", "wiederholt"),
        "spa": ("a lo lejos", "repetidamente"),
        "nld": ("in de verte", "herhaaldelijk"),
        "cat": ("al lluny", "repetidament"),
        "jpn": ("遠く", "繰り返し"),
        "zho": ("远处", "反复"),
    }
    heard = set()
    for scene in scenes():
        counts = [
            [
                tuple(map(text.count, words[language]))
                for text in aligned_captions(scene, EVENTS, language=language, n=8)
            ]
            for language in LANGUAGES
        ]
        assert all(other == counts[0] for other in counts), (counts, scene)
        heard |= set(counts[0])
    assert {(0, 0), (1, 0), (0, 1), (1, 1)} <= heard


def test_captions_differ_as_long_as_there_are_ways_and_never_depend_on_the_process():
    for scene in scenes():
        texts = aligned_captions(scene, EVENTS, language="deu", n=5)
        assert len(set(texts)) == 5
        assert texts == aligned_captions(scene, EVENTS, language="deu", n=5)
        assert aligned_captions(scene, EVENTS, language="deu", n=5, seed=1) != texts or len(scene.sounds) == 1


def test_sounds_of_a_sequence_are_named_in_their_order_in_every_language():
    scene = Scene((Sound(2, 0, 0.0), Sound(9, 0, 1.0), Sound(4, 0, 2.0)), "sequence", None, 4.0)
    events = synthetic_events()
    order = {language: [] for language in LANGUAGES}
    for language in LANGUAGES:
        for text in aligned_captions(scene, events, language=language, n=5):
            places = [
                min(text.lower().find(word.lower()) % 10**6 for word in (p.clauses[0].subject[-3:], p.nouns[0][-3:]))
                for p in (events[sound.event].phrases[language] for sound in scene.sounds)
            ]
            order[language].append(places == sorted(places))
    assert all(all(flags) for flags in order.values()), order


def parts(text: str) -> list[tuple[int, bool]]:
    """Which sounds a form tells, and whether by noun phrases; other slots agree with one ("se oye", "se oyen")."""
    pieces = create_form(text, 3 if is_long(text) else text.count("{"), title=False).pieces
    orders = {kind for code in LANGUAGES for kind in load_grammar(code).orders}
    slots = [piece for piece in pieces if not isinstance(piece, str)]
    return sorted((place, kind in CASES) for place, kind in slots if kind in CASES or kind in orders)


def test_ways_tell_the_same_sounds_by_the_same_kinds_of_phrases():
    table = load_ways()
    for way in (way for ways in table.values() for way in ways):
        assert all(parts(way[code]) == parts(way["eng"]) for code in LANGUAGES), way
    assert {relation: len(ways) for relation, ways in table.items()} == {"single": 5, "sequence": 10, "overlap": 10}
    for relation, count in (("single", 1), ("sequence", 2), ("sequence", 3), ("overlap", 2), ("overlap", 4)):
        assert len(_ways(relation, count)) == 5


def test_a_language_without_translated_ways_is_refused():
    with pytest.raises(UnknownNameError, match="language of aligned captions 'ita'"):
        aligned_captions(BELL, synthetic_events(), language="ita")


def test_a_worded_world_has_the_audio_of_its_scenes_and_other_captions(module_home):
    plain, aligned = SMALL.load(), WordingConfig(SMALL).load()
    assert torch.equal(plain.test.audio([0, 1])[0], aligned.test.audio([0, 1])[0])
    assert [clips.key for clips in plain.splits.values()] == [clips.key for clips in aligned.splits.values()]
    assert plain.words != aligned.words
    scene = plain.test.columns["scene"][0]
    assert aligned.test.captions("fra")[0] == aligned_captions(scene, plain.bank.events, language="fra", n=5)
    assert WordingConfig(SMALL, "retold").load().test.captions("fra") == plain.test.captions("fra")


def test_sentences_and_titles_share_no_caption():
    for language in LANGUAGES:
        sentences = set(captions(BELL, synthetic_events(), language=language, n=20, kinds=("sentences",)))
        titles = set(captions(BELL, synthetic_events(), language=language, n=20, kinds=("titles",)))
        both = set(captions(BELL, synthetic_events(), language=language, n=20))
        assert titles
        assert not sentences & titles
        assert both <= sentences | titles


def test_a_wording_that_there_is_not_is_refused():
    with pytest.raises(UnknownNameError, match="form of captions 'aligne'"):
        WordingConfig(SMALL, "aligne")
