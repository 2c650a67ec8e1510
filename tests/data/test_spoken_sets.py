"""The sets that GLAP is tested on, in their published layouts: miniature copies are read as the whole ones are."""

from __future__ import annotations

import pytest
import spoken_sets
import torch

from pullpush.data.recordings import registry
from pullpush.data.recordings.corpora import CorpusConfig, load_corpus, load_labelled, load_split
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError

# name → its file's function, what it asks for, in which language
LABELLED = {
    "speech_commands": ("speech_commands", ["left", "no", "yes"], "eng"),
    "speech_commands:v1": ("speech_commands", ["no", "yes"], "eng"),
    "mswc:fr": ("mswc", ["gauche", "non", "oui"], "fra"),
    "fluent_speech_commands": ("fluent_speech_commands", sorted(spoken_sets.COMMANDS), "eng"),
    "gtzan": ("gtzan", ["blues", "disco", "jazz"], "eng"),
    "beijing_opera": ("beijing_opera", ["bangu", "daluo", "naobo", "xiaoluo"], "eng"),
    "vocalsound": ("vocalsound", ["cough", "sniff", "throat clearing"], "eng"),
    "crema_d": ("crema_d", ["anger", "happiness", "sadness"], "eng"),
}
CAPTIONED = ("librispeech", "aishell", "aishell:2", "song_describer")


def heard(clips) -> list[int]:
    """The numbers of the tones that clips hold."""
    audio, lengths = clips.audio(slice(None))
    waves = [wave[:length] for wave, length in zip(audio, lengths, strict=True)]
    pitches = [int(torch.fft.rfft(wave).abs().argmax()) * 16_000 / len(wave) for wave in waves]
    return [round((pitch - 200) / 90) for pitch in pitches]


@pytest.mark.parametrize("name", LABELLED)
def test_every_clip_has_its_class_and_every_class_its_prompt(root, name):
    write, classes, language = LABELLED[name]
    getattr(spoken_sets, write)(root)
    clips = load_labelled(name)
    assert clips.prompts(language, "{label}") == classes
    assert sorted(clips.labels.tolist()) == list(range(len(classes)))
    tones = {"speech_commands": spoken_sets.WORDS, "mswc": ("oui", "non", "gauche")}
    order = tones.get(write, spoken_sets.COMMANDS if write == "fluent_speech_commands" else classes)
    assert [classes[label] for label in clips.labels] == [order[number] for number in heard(clips)]
    said = registry.find(name).prompt == "{label}"
    assert clips.prompts(language)[0] == (classes[0] if said else f"This is a sound of {classes[0]}.")


def test_a_sample_of_speech_commands_needs_no_lists(root):
    spoken_sets.speech_commands(root)
    folder = root / "SpeechCommands/speech_commands_v0.01"
    for name in ("testing_list.txt", "validation_list.txt"):
        (folder / name).unlink()
    with pytest.raises(DataNotFoundError, match="speech_commands:v1-sample takes the recordings that are there"):
        load_labelled("speech_commands:v1")
    clips = load_labelled("speech_commands:v1-sample")
    assert clips.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert clips.prompts() == ["no", "yes"]
    for path in folder.glob("*/*_nohash_*.wav"):
        path.unlink()
    with pytest.raises(DataNotFoundError, match="no recording such as"):
        load_labelled("speech_commands:v1-sample")


def test_nsynth_has_eleven_families_in_every_split(root):
    spoken_sets.nsynth(root)
    clips = load_labelled("nsynth")
    asked = clips.prompts("eng", "{label}")
    assert len(asked) == 11
    assert [asked[label] for label in clips.labels] == [spoken_sets.FAMILIES[number] for number in heard(clips)]
    (root / "nsynth/nsynth-test/examples.json").write_text('{"a": {"pitch": 3}}')
    with pytest.raises(PullPushError, match="no table of notes with instrument_family_str"):
        load_labelled("nsynth")


@pytest.mark.parametrize(("kind", "part"), [("librispeech", "TEST-OTHER"), ("librispeech:clean", "TEST-CLEAN")])
def test_librispeech_is_tested_on_what_is_said(root, kind, part):
    spoken_sets.librispeech(root)
    clips = load_split(CorpusConfig(kind), "test")
    assert clips.captions("eng") == [[f"SENTENCE {row} OF {part}"] for row in range(2)]
    assert heard(clips) == [0, 1]
    small = load_split(CorpusConfig(kind, text_cleaning="ml-clap"), "test")
    assert small.captions("eng")[0] == [f"sentence 0 of {part.lower()}"]


def test_librispeech_learns_from_the_training_sets_that_are_there(root):
    spoken_sets.librispeech(root)
    world = load_corpus(CorpusConfig("librispeech"))
    assert [len(clips) for clips in world.splits.values()] == [4, 2, 2]
    (root / "LibriSpeech/test-other/300/1307/300-1307.trans.txt").write_text("300-1307-0000 ONE\n")
    with pytest.raises(DataNotFoundError, match="300-1307-0001: unpack test-other"):
        load_split(CorpusConfig("librispeech"), "test")
    (root / "LibriSpeech/test-other/300/1307/300-1307.trans.txt").write_text("300-1307-0000\n300-1307-0001 TWO\n")
    with pytest.raises(DataNotFoundError, match="unpack test-other"):
        load_split(CorpusConfig("librispeech"), "test")


@pytest.mark.parametrize(("name", "said"), [("aishell", "而对楼市{}"), ("aishell:2", "中国{}")])
def test_aishell_has_chinese_captions_without_spaces(root, name, said):
    spoken_sets.aishell(root)
    world = load_corpus(CorpusConfig(name, every_caption=True))
    folders = ("train", "dev", "test") if name == "aishell" else ("data", "dev", "test")
    for clips, folder in zip(world.splits.values(), folders, strict=True):
        assert clips.captions("zho") == [[said.format(folder)]] * 2
        assert heard(clips) == [0, 1]
    with pytest.raises(UnknownNameError, match=r"language of AISHELL-.'s captions 'eng': known: zho"):
        world.test.captions("eng")


def test_song_describer_gathers_the_captions_of_a_track(root):
    spoken_sets.song_describer(root)
    clips = load_split(CorpusConfig("song_describer"), "test")
    assert clips.captions("eng") == [
        ["Music 1004400, told 0.", "Music 1004400, told 1."],
        ["Music 12301, told 0."],
    ]
    assert heard(clips) == [0, 2]
    checked = load_split(CorpusConfig("song_describer:valid"), "test")
    assert [len(texts) for texts in checked.captions("eng")] == [1, 1]
    with pytest.raises(DataNotFoundError, match="has a test split alone"):
        load_corpus(CorpusConfig("song_describer"))


def test_words_are_asked_in_the_language_that_they_are_in(root):
    spoken_sets.mswc(root)
    clips = load_labelled("mswc:fr")
    with pytest.raises(UnknownNameError, match="language of the label 'gauche' 'deu'"):
        clips.prompts("deu")
    assert registry.find("mswc:zh-CN").language == "zho"


def test_what_is_not_there_is_named(root):
    for write in (spoken_sets.mswc, spoken_sets.speech_commands, spoken_sets.gtzan, spoken_sets.beijing_opera):
        write(root)
    with pytest.raises(PullPushError, match="choose a language of Multilingual Spoken Words, such as mswc:fr"):
        load_labelled("mswc")
    with pytest.raises(UnknownNameError, match="language of Multilingual Spoken Words 'fra': did you mean"):
        load_labelled("mswc:fra")
    with pytest.raises(DataNotFoundError, match=r"de_splits\.csv"):
        load_labelled("mswc:de")
    splits = root / "mswc/fr/fr_splits.csv"
    whole = splits.read_text()
    splits.write_text(whole.replace(",oui,", ", ,"))
    with pytest.raises(PullPushError, match=r"common_voice_fr_2\.opus has an empty label: repair its row"):
        load_labelled("mswc:fr")
    splits.write_text(whole)
    splits.write_text(splits.read_text().replace("TEST,", "TRAIN,"))
    with pytest.raises(DataNotFoundError, match="no keyword of fr in the split TEST"):
        load_labelled("mswc:fr")
    with pytest.raises(UnknownNameError, match="version of Speech Commands 'v3'"):
        load_labelled("speech_commands:v3")
    (root / "SpeechCommands/speech_commands_v0.02/testing_list.txt").unlink()
    with pytest.raises(DataNotFoundError, match="pullpush fetch speech_commands:v2"):
        load_labelled("speech_commands")
    (root / "genres/jazz/jazz.00000.wav").unlink()
    assert load_labelled("gtzan").prompts("rus", "{label}") == ["блюз", "диско"]
    (root / "beijing_opera_percussion_instrument_1.0/noise.wav").touch()
    with pytest.raises(DataNotFoundError, match=r"a number, such as 1__ajaysm__bangu-1\.wav; got noise\.wav"):
        load_labelled("beijing_opera")


@pytest.mark.parametrize("name", [*LABELLED, *CAPTIONED, "nsynth"])
def test_a_missing_set_says_where_it_is_looked_for_and_how_to_get_it(root, name):
    card = registry.find(name)
    with pytest.raises(DataNotFoundError) as error:
        load_labelled(name) if card.labelled else load_split(CorpusConfig(name), "test")
    assert str(root / card.folder) in str(error.value)
    assert (f"pullpush fetch {name}" if card.fetch else card.how) in str(error.value)
    assert card.fetch or card.how
