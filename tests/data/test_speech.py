"""Recordings of spoken captions on a small folder of stamps: splits by stamp, the same every time, nothing hidden."""

import numpy as np
import pytest
import soundfile
import torch

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.speech.stamps import SpeechConfig, load_speech
from pullpush.errors import AudioError, DataNotFoundError

CODES = {"eng": "en", "fra": "fr", "deu": "de", "spa": "es", "nld": "nl", "cat": "ca", "jpn": "ja", "zho": "zh_CN"}
COUNT = 60


def write_stamp(root, name, number, *, text=None, without=()):
    """A stamp with captions in ten languages, spoken in three; all silent for the first 0.1 s."""
    text = text or f"thing {number}"
    folder = (root / name).parent
    folder.mkdir(parents=True, exist_ok=True)
    codes = [code for code in (*list(CODES.values())[1:], "ru", "bg") if code not in without]
    lines = [f"A {text}.", *(f"{code}.utf8={code} {text}." for code in codes)]
    (root / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    rate = 8000
    tone = 0.3 * np.sin(2 * np.pi * (200 + 10 * number) * np.arange(rate // 2) / rate)
    for code in ("fr", "ru", "bg"):
        wave = np.concatenate([np.zeros(rate // 10), tone])
        soundfile.write(root / f"{name}_desc_{code}.ogg", wave.astype(np.float32), rate)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("speech") / "stamps"
    for number in range(COUNT):
        text = f"thing {number // 2 if number < 6 else number}"  # three pairs of namesakes
        write_stamp(root, f"animals/{number:02d}", number, text=text, without=("zh_CN",) if number % 5 == 0 else ())
    write_stamp(root, "symbols/a", 99)
    return root


@pytest.fixture(scope="module")
def world(root, module_home):
    return load_speech(root=root)


def stamps(split):
    return set(split.columns["stamp"])


def test_no_stamp_and_no_caption_is_in_two_of_train_valid_and_test(world):
    parts = (world.train, world.valid, world.test)
    for i, one in enumerate(parts):
        for other in parts[i + 1 :]:
            assert not stamps(one) & stamps(other)
            for language in LANGUAGES:
                own = {text for texts in one.captions(language) for text in texts}
                assert not own & {text for texts in other.captions(language) for text in texts}


def test_crossed_recordings_are_of_known_stamps_in_a_voice_that_training_lacks(world):
    trained = set(zip(world.train.columns["stamp"], world.train.columns["spoken"], strict=True))
    crossed_clips = world.split("crossed")
    crossed = set(zip(crossed_clips.columns["stamp"], crossed_clips.columns["spoken"], strict=True))
    assert stamps(world.split("crossed")) <= stamps(world.train)
    assert crossed
    assert not crossed & trained


def test_one_text_is_right_in_valid_test_and_crossed(world):
    for split in (world.valid, world.test, world.split("crossed")):
        for spoken in set(split.columns["spoken"]):
            pairs = zip(split.columns["spoken"], split.captions("eng"), strict=True)
            texts = [texts[0] for voice, texts in pairs if voice == spoken]
            assert len(texts) == len(set(texts)), spoken
    assert len(stamps(world.valid)) == len(world.valid)


def test_the_same_configuration_gives_the_same_splits_and_samples(world, root):
    again = load_speech(root=root)
    assert again.identity == world.identity
    for one, other in zip(world.splits.values(), again.splits.values(), strict=True):
        assert one.key == other.key
        assert one.columns == other.columns
        assert torch.equal(one.audio([0])[0], other.audio([0])[0])


def test_recordings_are_trimmed_resampled_cut_and_in_range(world, root):
    audio, lengths = world.train.audio(slice(None))
    assert audio.dtype == torch.float32
    assert audio.shape == (len(world.train), int(lengths.max()))
    assert (lengths - 8000).abs().max() < 600  # half a second at 16 kHz; the silence before it is gone
    assert audio.abs().amax(1).min() > 0.05
    assert audio.abs().max() <= 1
    short = load_speech(SpeechConfig(longest=0.2), root=root)
    assert int(short.train.audio(slice(None))[1].max()) == 3200


def test_a_damaged_recording_is_named(tmp_path, home):
    for number in range(10):
        write_stamp(tmp_path / "stamps", f"animals/{number}", number)
    (tmp_path / "stamps" / "animals" / "3_desc_ru.ogg").write_bytes(b"OggS and then nothing")
    with pytest.raises(AudioError, match="3_desc_ru"):
        load_speech(root=tmp_path / "stamps")


def test_a_language_that_nobody_speaks_is_named(root, module_home):
    with pytest.raises(DataNotFoundError, match="'el'"):
        load_speech(SpeechConfig(spoken=("el",)), root=root)


def test_too_few_stamps_are_refused(tmp_path, home):
    write_stamp(tmp_path / "stamps", "animals/one", 1)
    with pytest.raises(DataNotFoundError, match="nothing is left for"):
        load_speech(root=tmp_path / "stamps")


@pytest.mark.parametrize("wrong", [{"spoken": ()}, {"test": 0.9, "valid": 0.2}, {"longest": 0}, {"crossed": 2}])
def test_a_configuration_without_training_data_is_refused(wrong):
    with pytest.raises(ValueError, match="need a spoken language"):
        SpeechConfig(**wrong)
