"""No word of a test was learnt in any language, new voices and languages were never heard, one word is one class."""

from dataclasses import replace

import numpy as np
import pytest
import speakers

from pullpush.data.clips import load_data
from pullpush.data.speech import normalised
from pullpush.data.speech.spoken import SpokenConfig, _named_by_place, spotting
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError

BOTH = ("keywords", "letters")


@pytest.fixture(scope="module")
def root(module_home, tmp_path_factory):
    """Miniature packages, as if they had been fetched."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("data")
        patch.setenv("PULLPUSH_DATA", str(place))
        for source in (speakers.keywords, speakers.letters, speakers.prompts):
            source(place)
        yield place


@pytest.fixture(scope="module")
def world(root):
    return SpokenConfig(BOTH, new_languages=("srp",), new_voices=("KLettres en_GB",), test=0.3).load()


def words(clips) -> set[str]:
    pairs = zip(clips.columns["language"], clips.columns["text"], strict=True)
    return {f"{language} {normalised(text)}" for language, text in pairs}


def test_no_word_of_a_test_was_learnt_in_any_language(world):
    for first, second in (("train", "valid"), ("train", "test"), ("valid", "test")):
        one, other = world.split(first), world.split(second)
        assert not words(one) & words(other)
        assert not set(one.columns["key"]) & set(other.columns["key"])
    assert {"fra", "deu", "eng"} == set(world.train.columns["language"])


def test_new_voices_say_words_that_were_learnt_from_others(world):
    voices = world.split("voices")
    assert set(voices.columns["voice"]) == {"KLettres en_GB"}
    assert words(voices) <= words(world.train)
    for name in ("train", "valid", "test"):
        assert "KLettres en_GB" not in world.split(name).columns["voice"]
    assert len(voices) == sum(language == "eng" for language in world.train.columns["language"])


def test_new_languages_are_whole_and_nowhere_else(world):
    assert set(world.split("languages").columns["language"]) == {"srp"}
    assert len(world.split("languages")) == 4
    for name in ("train", "valid", "test", "voices"):
        assert "srp" not in world.split(name).columns["language"]


def test_captions_are_in_the_spoken_language_alone_unless_translations_are_wanted(root, world):
    clips = world.split("languages")
    assert clips.captions("srp")[clips.columns["key"].index("keywords/eye")] == ["oko"]
    assert not any(clips.captions("eng"))
    translated = SpokenConfig(new_languages=("srp",), translated=True).load().split("languages")
    assert translated.captions("eng")[translated.columns["key"].index("keywords/eye")] == ["eye"]
    with pytest.raises(UnknownNameError, match="'tlh'"):
        clips.captions("tlh")


def test_two_clips_mean_the_same_by_key_or_by_text(root):
    clips = SpokenConfig(("letters",), kinds=("letter",)).load().train
    relevance = clips.relevance()
    for row, mine in enumerate(clips.columns["text"]):
        for column, theirs in enumerate(clips.columns["text"]):
            assert bool(relevance[row, column]) == (mine == theirs)
    assert relevance.sum() > len(clips)


def test_spotting_has_one_class_a_word(world):
    clips = spotting(world.train, "eng")
    assert len(clips.prompts("eng")) == len(set(clips.columns["text"])) == int(clips.labels.max()) + 1
    asked = clips.prompts("eng")
    assert [asked[label] for label in clips.labels] == clips.columns["text"]
    with pytest.raises(UnknownNameError, match="'fin'"):
        spotting(world.train, "fin")
    with pytest.raises(UnknownNameError, match="language of these words"):
        clips.prompts("fra")


def test_the_same_configuration_gives_the_same_splits(root, world):
    again = load_data(world.config)
    assert again.identity == world.identity
    other = SpokenConfig(BOTH, new_languages=("srp",), seed=1).load()
    assert other.test.columns["key"] != world.test.columns["key"]


def test_recordings_are_cut_and_kept_at_another_rate_where_asked(root):
    clips = SpokenConfig(BOTH, longest=0.1, sample_rate=48_000).load().train
    assert set(clips.lengths.tolist()) == {4800}
    whole = SpokenConfig(BOTH, longest=None).load().train
    assert int(whole.lengths.max()) == 3200


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"new_languages": ("fin",)}, "language of keywords 'fin'"),
        ({"languages": ("klingon",)}, "language of keywords 'klingon'"),
        ({"new_voices": ("nobody",)}, "voice of keywords 'nobody'"),
        ({"kinds": ("song",)}, "kind of keywords 'song'"),
        ({"sources": ("songs",)}, "source of speech 'songs'"),
    ],
)
def test_what_nobody_speaks_is_refused(root, wrong, complaint):
    with pytest.raises(UnknownNameError, match=complaint):
        SpokenConfig(**wrong).load()


@pytest.mark.parametrize("wrong", [{"sources": ()}, {"test": 0.9, "valid": 0.2}, {"valid": 0}, {"longest": 0}])
def test_a_configuration_that_leaves_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match=r"need a source|longest must be"):
        SpokenConfig(**wrong)


def test_a_split_that_would_be_empty_is_named(root):
    with pytest.raises(DataNotFoundError, match="nothing is left for 'train'"):
        SpokenConfig(languages=("fra",), new_languages=("fra",)).load()


def test_letters_and_numbers_are_spotted_alone(root):
    spoken = SpokenConfig(("letters", "prompts"), test=0.5).load()
    letters = spotting(spoken.train, "eng", kind="letter")
    assert set(letters.columns["kind"]) == {"letter"}
    assert all(len(letter) == 1 for letter in letters.prompts("eng"))
    assert len(letters) < len(spotting(spoken.train, "eng"))
    with pytest.raises(UnknownNameError, match="language of the letters of 'train' 'spa'"):
        spotting(SpokenConfig(("letters",)).load().train, "spa", kind="letter")
    with pytest.raises(UnknownNameError, match="kind of the clips 'train' 'song': known: "):
        spotting(spoken.train, "eng", kind="song")


def test_a_clip_that_says_nothing_is_named(world):
    clips = world.split("languages")
    silent = replace(clips, columns={**clips.columns, "text": [*clips.columns["text"][:3], " "]})
    with pytest.raises(PullPushError, match="clip 3 of 'languages' has an empty text"):
        spotting(silent, "srp")


@pytest.mark.parametrize("seed", range(3))
def test_length_alone_names_what_it_can_and_shares_the_rest(seed):
    rng = np.random.default_rng(seed)
    characters = rng.permutation(np.arange(2, 12))
    labels = rng.permutation(np.repeat(np.arange(10), 3))
    spoken = characters[labels] + rng.uniform(0, 0.4, 30)
    assert _named_by_place(spoken, characters, labels).tolist() == [1.0] * 10, "longer words take longer"
    backwards = _named_by_place(-spoken, characters, labels)
    assert backwards.sum() == 0, "ten words have no middle"
    assert _named_by_place(spoken, np.full(10, 5), labels).tolist() == pytest.approx([0.1] * 10)
    guessed = [_named_by_place(rng.random(30), characters, labels).mean() for _ in range(300)]
    assert np.mean(guessed) == pytest.approx(0.1, abs=0.02)
    turned = rng.permutation(30)
    noisy = spoken + rng.normal(0, 2, 30)
    assert np.array_equal(
        _named_by_place(noisy[turned], characters, labels[turned]), _named_by_place(noisy, characters, labels)
    )
