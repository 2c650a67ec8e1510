"""Soundfonts are read as specified; phrases sound as their captions tell; splits hold out what they say."""

import itertools

import numpy as np
import pytest
import torch
from published import fetched

from pullpush.data.language.grammar import prompts
from pullpush.data.languages import LANGUAGES
from pullpush.data.music import instruments, phrases
from pullpush.data.music.phrases import RATE, Note, Phrase, kinds, notes, play
from pullpush.data.music.soundfont import DRUMS, SoundFont
from pullpush.data.music.world import MusicConfig, likeness, never_named
from pullpush.errors import DataNotFoundError, UnknownNameError
from pullpush.golden.recordings import write_soundfont

INSTRUMENTS = {item.name: item for item in instruments.load_instruments()}


@pytest.fixture(scope="module")
def font(tmp_path_factory):
    return SoundFont(write_soundfont(tmp_path_factory.mktemp("fonts") / "sine.sf2"))


@pytest.fixture(scope="module")
def world(module_home, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fonts")
    heard = write_soundfont(folder / "heard.sf2")
    new = write_soundfont(folder / "new.sf2", partials=(1.0, 0.5, 0.3))
    sizes = {"n_train": 100, "n_valid": 40, "n_test": 60, "n_single_per_instrument": 1}
    return MusicConfig((str(heard),), (str(new),), real=(), seconds=0.8, **sizes).load()


def pitch(wave: np.ndarray) -> float:
    """The strongest frequency in Hz."""
    spectrum = np.abs(np.fft.rfft(wave * np.hanning(len(wave)), 2**19))
    return float(spectrum.argmax() * RATE / 2**19)


# ---------------------------------------------------------------------------------------------------------- soundfonts


@pytest.mark.parametrize("key", [45, 60, 69, 76, 93])
def test_a_key_sounds_at_its_pitch(font, key):
    wave = play(font, [Note(0.0, 0.9, key)], 0.9)
    assert 1200 * np.log2(pitch(wave) / (440 * 2 ** ((key - 69) / 12))) == pytest.approx(0, abs=2)  # cents


def test_a_loop_sounds_as_long_as_the_key_is_held_and_ends_with_its_release(font):
    wave = play(font, [Note(0.2, 0.5, 69)], 1.5)  # the recording lasts 0.09 s
    loud = np.flatnonzero(np.abs(wave) > 1e-3 * np.abs(wave).max()) / RATE
    assert loud[0] == pytest.approx(0.2, abs=0.01)
    assert loud[-1] == pytest.approx(0.7 + 0.0625 * 60 / 100, abs=0.01)  # 62 ms for 100 dB
    steady = wave[round(0.25 * RATE) : round(0.65 * RATE)]
    assert np.abs(steady[: len(steady) // 2]).max() == pytest.approx(np.abs(steady[len(steady) // 2 :]).max(), rel=0.01)


def test_velocity_is_level_and_notes_add_up(font):
    soft, loud = (play(font, [Note(0.0, 0.3, 69, v)], 0.4) for v in (50, 100))
    np.testing.assert_allclose(loud, 4 * soft, rtol=1e-4, atol=1e-6)
    both = play(font, [Note(0.0, 0.3, 69, 100), Note(0.0, 0.3, 76, 50)], 0.4)
    np.testing.assert_allclose(both, loud + play(font, [Note(0.0, 0.3, 76, 50)], 0.4), atol=1e-6)


def test_a_program_that_the_font_lacks_and_a_file_that_is_none_are_named(tmp_path):
    few = SoundFont(write_soundfont(tmp_path / "few.sf2", programs=3))
    with pytest.raises(DataNotFoundError, match=r"no preset 40 in bank 0, only \[0, 1, 2\]"):
        play(few, [Note(0.0, 0.1, 60)], 0.2, program=40)
    assert play(few, [Note(0.0, 0.1, 60)], 0.2, drums=True).any()
    (tmp_path / "cut.sf2").write_bytes((tmp_path / "few.sf2").read_bytes()[:3000])
    for name in ("cut.sf2", "none.sf2"):
        with pytest.raises(DataNotFoundError, match="is no complete SoundFont"):
            SoundFont(tmp_path / name)
    with pytest.raises(UnknownNameError, match="soundfont 'fluit'"):
        instruments.font_path("fluit")


# ------------------------------------------------------------------------------------------------------------- phrases


@pytest.mark.parametrize("name", ["violin", "piano", "tuba", "glockenspiel", "timpani"])
def test_notes_are_what_the_phrase_says(name):
    item = INSTRUMENTS[name]
    centres = {register: [] for register in phrases.REGISTERS}
    for phrase in kinds(name, pitched=True, sustained=item.sustained):
        played = notes(phrase, 4.0, keys=item.keys)
        low, high = min(n.key for n in played), max(n.key for n in played)
        assert item.keys[0] <= low
        assert high <= item.keys[1]
        steps = [b.key - a.key for a, b in itertools.pairwise(played)][: 3 if phrase.tempo == "slow" else 7]
        if phrase.shape in ("rising", "falling"):
            assert all((step > 0) == (phrase.shape == "rising") for step in steps)
        gap = played[1].onset - played[0].onset
        assert gap == pytest.approx(phrases.TEMPI[phrase.tempo], rel=0.11)
        if phrase.articulation:
            assert (played[0].length < 0.5 * gap) == (phrase.articulation == "staccato")
        centres[phrase.register].append(low)
        if phrase.shape in ("arpeggio", "melody"):  # the tonic's triad is heard at once, and with it the mode
            assert {note.key - low for note in played[:3]} == {0, phrases.MODES[phrase.mode][2], 7}
    middle = [np.mean(centres[register]) for register in phrases.REGISTERS]
    assert middle == sorted(middle)


# ------------------------------------------------------------------------------------------------------------ captions


@pytest.mark.parametrize("language", LANGUAGES)
def test_captions_tell_nothing_but_the_truth(language):
    words = instruments.load_words()[language]
    for phrase in kinds("cello", pitched=True, sustained=True)[::7] + kinds("claves", pitched=False, sustained=False):
        texts = instruments.music_captions(phrase, language=language, n=5)
        assert len(set(texts)) == 5
        item = INSTRUMENTS[phrase.instrument]
        for text in texts:
            assert item.label(language).lower() in text.lower()
            assert words["shape"][phrase.shape].lower() in text.lower()
            for name in phrases.ATTRIBUTES:
                others = [part for value, part in words[name].items() if value != getattr(phrase, name)]
                assert not any(part in text for part in others), text
            assert text.endswith(words["end"])
            assert "{" not in text
            assert "|" not in text


def test_aligned_captions_tell_the_same_in_every_language():
    phrase = Phrase("oboe", "falling", "fast", "major", "low", "staccato", 3)
    told, words = [], instruments.load_words()
    for language in LANGUAGES:
        texts = instruments.music_captions(phrase, language=language, n=6, aligned=True)
        told.append(
            [[words[language][name][getattr(phrase, name)] in text for name in phrases.ATTRIBUTES] for text in texts]
        )
    assert all(other == told[0] for other in told)
    assert not all(all(flags) for flags in told[0])
    retold = [instruments.music_captions(phrase, language=language, n=6) for language in ("eng", "deu")]
    flags = [
        [[words[code][name][getattr(phrase, name)] in text for name in phrases.ATTRIBUTES] for text in texts]
        for code, texts in zip(("eng", "deu"), retold, strict=True)
    ]
    assert flags[0] != flags[1]


def test_instruments_have_names_families_and_words_in_every_language():
    assert len(INSTRUMENTS) == 47
    assert all(set(item.names) == set(LANGUAGES) for item in INSTRUMENTS.values())
    assert set(instruments.load_words()) == set(LANGUAGES)
    families = [each.family for each in instruments.load_instruments()]
    assert min(map(families.count, families)) >= 2
    for language in LANGUAGES:
        assert len(set(prompts([instruments.event_of(item) for item in INSTRUMENTS.values()], language))) == 47
        assert set(instruments.load_words()[language]["shape"]) == {*phrases.SHAPES, "rhythm", "music"}
        assert instruments.event_of(INSTRUMENTS["horn"]).phrases[language].label == INSTRUMENTS["horn"].label(language)
    with pytest.raises(UnknownNameError, match="language of music 'ita'"):
        instruments.music_captions(Phrase("horn", "music"), language="ita")


# --------------------------------------------------------------------------------------------------------------- world


def test_training_holds_neither_the_instruments_nor_the_kinds_of_the_tests(world):
    kinds_of = {name: {p.kind for p in split.columns["phrase"] if p.mode} for name, split in world.splits.items()}
    for one, other in itertools.combinations(("train", "valid", "test"), 2):
        assert kinds_of[one]
        assert not kinds_of[one] & kinds_of[other]
    names = {name: {p.instrument for p in split.columns["phrase"]} for name, split in world.splits.items()}
    never = {instruments.load_instruments()[row].name for row in never_named(world.config)}
    assert names["instruments"] == never
    assert not never & (names["train"] | names["valid"] | names["test"])
    assert len(never) >= 8
    assert names["singles"] == set(INSTRUMENTS)


def test_recordings_are_the_phrases_of_test_in_a_font_never_heard(world):
    test, recordings = world.test, world.split("recordings")
    assert test.columns["phrase"] == recordings.columns["phrase"]
    assert not set(test.columns["font"]) & set(recordings.columns["font"])
    assert test.captions("deu") == recordings.captions("deu")
    same = [torch.equal(test.audio([row])[0], recordings.audio([row])[0]) for row in range(10)]
    assert not any(same)


def test_relevance_grades_what_phrases_share():
    violin = Phrase("violin", "rising", "slow", "minor", "high", "legato")
    columns = {
        "phrase": [
            violin,
            Phrase("violin", "rising", "slow", "minor", "high", "legato", 9),
            Phrase("cello", "rising", "slow", "minor", "high", "legato"),
            Phrase("violin", "falling", "slow", "minor", "high", "legato"),
            Phrase("claves", "rhythm", "slow"),
            Phrase("tuba", "falling", "fast", "major", "low", "staccato"),
        ]
    }
    row = likeness({"phrase": [violin]}, columns)[0].tolist()
    by_hand = [1, 1, 0.75 * 6 / 7, 0.75 * 6 / 7, 0.75 * 1 / 7, 0]
    assert row == pytest.approx(by_hand)
    matrix = likeness(columns, columns)
    assert torch.equal(matrix, matrix.T)


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="cannot be heard in training and never heard"):
        MusicConfig(fonts=("fluid",), new_fonts=("fluid",))
    with pytest.raises(UnknownNameError, match="package of real recordings 'gcompri'"):
        MusicConfig(real=("gcompri",))
    with pytest.raises(ValueError, match="at least one soundfont"):
        MusicConfig(fonts=())


def test_a_real_soundfont_has_every_instrument():
    font = SoundFont(fetched(lambda: instruments.font_path("timgm")))
    for item in instruments.load_instruments():
        if item.drums:
            assert all(font.zones(DRUMS, 0, key, 100) for key in item.drums), item.name
        else:
            assert all(font.zones(0, item.program, key, 100) for key in item.keys), item.name
    flute = instruments.sound(
        Phrase("flute", "rising", "moderate", "major", "low"), INSTRUMENTS["flute"], font, seconds=2.0, sample_rate=RATE
    )
    first = notes(Phrase("flute", "rising", "moderate", "major", "low"), 2.0, keys=INSTRUMENTS["flute"].keys)[0]
    heard = pitch(flute[: round(0.35 * RATE)])
    assert 12 * np.log2(heard / 440) + 69 == pytest.approx(first.key, abs=0.3)
