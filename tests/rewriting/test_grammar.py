"""Back-translation through scene graphs: other words, the same events in the same relation."""

from dataclasses import replace

import pytest

from pullpush.data.language.grammar import captions
from pullpush.data.languages import LANGUAGES
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.errors import UnknownNameError
from pullpush.rewriting import RewritingError, create
from pullpush.rewriting.grammar import shared_scene

SIZES = {"n_train": 12, "n_valid": 2, "n_test": 2, "n_single_per_event": 1, "captions_per_scene": 3}


@pytest.fixture(scope="module")
def world():
    return load_world(WorldConfig("synthetic", **SIZES))


@pytest.fixture(scope="module")
def known(world):
    return create("grammar").of(world.train, "eng", world.bank.events)


def ways_to_tell(scene, events, language="eng"):
    """Every caption that the grammar can be brought to tell of a scene, by another path than the rewriter's."""
    return {text for seed in range(40) for text in captions(scene, events, language=language, n=40, seed=seed)}


def test_what_comes_back_tells_the_same_scene_in_other_words(world, known):
    for scene, texts in list(zip(world.train.columns["scene"], world.train.captions("eng"), strict=True))[:4]:
        for text, back in zip(texts, known.rewrite(texts), strict=True):
            assert back != text
            assert known.scenes[text].graph == scene.graph
            assert back in ways_to_tell(shared_scene([scene]), world.bank.events)


def test_the_way_leads_through_a_language_that_tells_the_scene(world, known):
    scene, (text, *_) = world.train.columns["scene"][0], world.train.captions("eng")[0]
    languages = set()
    for number in range(12):
        found = known.retold(text, number)
        languages.add(found.language)
        assert found.pivot in ways_to_tell(shared_scene([scene]), world.bank.events, found.language)
        assert found.back in ways_to_tell(shared_scene([scene]), world.bank.events)
    assert "eng" not in languages
    assert len(languages) > 3
    assert languages <= set(LANGUAGES)


def test_copies_differ_and_depend_on_caption_and_number_alone(world, known):
    texts = [text for several in world.train.captions("eng") for text in several]
    first, second = known.rewrite(texts), known.rewrite(texts, number=1)
    assert first != second
    assert known.rewrite(texts[::-1]) == first[::-1]
    assert known.rewrite(texts[3:4]) == first[3:4]
    assert replace(known, seed=1).rewrite(texts) != first
    fewer = create("grammar").of(world.train.head(6), "eng", world.bank.events)
    assert fewer.rewrite(texts[:9]) == first[:9]


def test_captions_in_other_languages_are_rewritten_too(world):
    rewriter = create("grammar", through=("eng", "fra")).of(world.train, "fra", world.bank.events)
    text = world.train.captions("fra")[0][0]
    found = rewriter.retold(text)
    assert found.language == "eng"
    assert found.back in ways_to_tell(shared_scene([world.train.columns["scene"][0]]), world.bank.events, "fra")


def test_two_captions_are_merged_to_one_of_both_scenes(world):
    singles, events = world.singles, world.bank.events
    rewriter = create("grammar").of(singles, "eng", events)
    texts = singles.captions("eng")
    (merged,) = rewriter.merge(texts[1][:1], texts[9][:1])
    union = Scene((Sound(1, 0, 0.0), Sound(9, 0, 0.0)), "overlap", None, 2.0)
    assert merged in ways_to_tell(union, events) | ways_to_tell(replace(union, snr_db=0.0), events)
    assert rewriter.merge(texts[1][:1], texts[9][:1], number=1) != [merged]


def test_what_several_scenes_with_one_caption_do_not_share_is_not_told():
    near = Scene((Sound(1, 0, 0.1, far=True, repeats=3), Sound(0, 1, 0.2, repeats=2)), "overlap", 9.0, 3.0)
    other = Scene((Sound(0, 0, 0.0, repeats=2), Sound(1, 0, 0.3, far=True)), "overlap", None, 4.0)
    told = shared_scene([near, other])
    assert told.graph == near.graph == other.graph
    assert [(sound.event, sound.far, sound.repeats) for sound in told.sounds] == [(0, False, 2), (1, True, 1)]
    assert told.snr_db is None
    turned = Scene((Sound(1, 0, 0.0), Sound(0, 0, 1.0)), "sequence", None, 3.0)
    assert shared_scene([turned]).events == (1, 0)
    with pytest.raises(RewritingError, match="one caption tells 2 graphs"):
        shared_scene([near, turned])


def test_what_cannot_be_rewritten_says_what_to_do(world, known):
    with pytest.raises(RewritingError, match="knows no scenes yet: make it for clips"):
        create("grammar").rewrite(["A bell rings."])
    with pytest.raises(RewritingError, match=r"no scene of the caption 'A whale sings\.'"):
        known.rewrite(["A whale sings."])
    with pytest.raises(RewritingError, match="captions of scenes, which have a column 'scene'"):
        create("grammar").of(world.train, "eng")
    text = world.singles.captions("eng")[1][0]
    singles = create("grammar").of(world.singles, "eng", world.bank.events)
    with pytest.raises(RewritingError, match="have no union"):
        singles.merge([text], [text])
    with pytest.raises(ValueError, match="in pairs, got 1 first and 0 second"):
        singles.merge([text], [])
    with pytest.raises(UnknownNameError, match="klingon"):
        create("grammar", through=("klingon",))
    with pytest.raises(UnknownNameError, match="did you mean 'narrow'"):
        create("grammar", vocabulary="narow")
    with pytest.raises(ValueError, match="a language other than 'eng'"):
        create("grammar", through=("eng",))
    with pytest.raises(UnknownNameError, match="did you mean 'grammar'"):
        create("gramar")
