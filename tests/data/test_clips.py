"""What all clips have in common, asked of every source: scenes, recordings, speech, a reader's own, and features."""

import numpy as np
import pytest
import torch
from clip_sources import LABELLED, LANGUAGES, SOURCES, scenes
from torchaudio.functional import resample

from pullpush.data import store
from pullpush.data.clips import NoLabelsError, StoredClips, World, load_data
from pullpush.data.recordings.corpora import CorpusConfig, load_labelled
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import UnknownNameError
from pullpush.training.frozen import Encoded


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Name → clips, made when first asked for."""
    root = tmp_path_factory.mktemp("sources")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_HOME", str(root / "home"))
        patch.setenv("PULLPUSH_DATA", str(root))
        patch.setenv("PULLPUSH_PROGRESS", "0")
        patch.setenv("PULLPUSH_EXTRA", str(root / "extra"))
        made = {}

        def source(name):
            if name not in made:
                made[name] = SOURCES[name](root)
            return made[name]

        yield source


@pytest.fixture(params=SOURCES)
def name(request):
    return request.param


@pytest.fixture
def clips(sources, name):
    return sources(name)


waveforms = pytest.mark.parametrize("name", [name for name in SOURCES if name != "features"])


def test_audio_is_float32_within_its_length_and_zero_beyond(clips):
    audio, lengths = clips.audio(slice(None))
    assert (audio.dtype, lengths.dtype) == (torch.float32, torch.int64)
    assert audio.shape == (len(clips), int(lengths.max()))
    assert torch.equal(lengths, clips.lengths)
    assert audio.abs().max() <= 1
    for wave, length in zip(audio, lengths, strict=True):
        assert wave[:length].any()
        assert not wave[length:].any()


def test_rows_are_chosen_by_number_by_numbers_and_by_slice(clips):
    audio, lengths = clips.audio(slice(None))
    last = len(clips) - 1
    for index, rows in ((2, [2]), (-1, [last]), ([3, 0], [3, 0]), (torch.tensor([1]), [1]), (slice(1, 3), [1, 2])):
        some, sizes = clips.audio(index)
        assert torch.equal(sizes, lengths[rows])
        assert torch.equal(some, audio[rows][:, : some.shape[1]])
    assert len(clips.audio([])[1]) == 0
    with pytest.raises(IndexError):
        clips.audio(len(clips))


def test_what_is_given_is_a_copy(clips):
    before = clips.audio(0)[0].clone()
    clips.audio(0)[0].zero_()
    assert torch.equal(clips.audio(0)[0], before)


@waveforms
def test_another_rate_is_that_of_torchaudio(clips):
    audio, lengths = clips.audio([0, 1], sample_rate=8000)
    for row in (0, 1):
        expected = resample(clips.audio(row)[0][0], 16_000, 8000)
        assert int(lengths[row]) == len(expected)
        assert torch.equal(audio[row, : len(expected)], expected)


def test_features_have_no_sample_rate(sources):
    with pytest.raises(ValueError, match="no sample rate, got 8000"):
        sources("features").audio(0, sample_rate=8000)


def test_every_clip_has_its_captions_in_each_language(clips, name):
    for language in LANGUAGES[name]:
        captions = clips.captions(language)
        assert len(captions) == len(clips)
        assert all(isinstance(text, str) and text.strip() for texts in captions for text in texts)
        assert any(captions)
    with pytest.raises(UnknownNameError, match="klingon"):
        clips.captions("klingon")


def test_a_selection_takes_all_that_is_known_along(clips, name):
    part = clips.select([3, 1], name="part")
    assert (len(part), part.name, part.graded) == (2, "part", clips.graded)
    assert part.key not in (clips.key, clips.select([1, 3]).key)
    assert clips.select([row in (1, 3) for row in range(len(clips))]).key == clips.select([1, 3]).key, "a mask"
    assert torch.equal(part.lengths, clips.lengths[[3, 1]])
    assert torch.equal(part.audio(slice(None))[0], clips.audio([3, 1])[0])
    for column, values in clips.columns.items():
        assert list(part.columns[column]) == [values[3], values[1]]
    for language in LANGUAGES[name]:
        captions = clips.captions(language)
        assert part.captions(language) == [captions[3], captions[1]]
    assert torch.equal(part.relevance(clips), clips.relevance()[[3, 1]])
    assert torch.equal(part.select([1]).audio(0)[0], clips.audio(1)[0])


def test_a_clip_is_relevant_for_itself_and_relevance_is_symmetric(clips):
    matrix = clips.relevance()
    assert matrix.shape == (len(clips), len(clips))
    assert matrix.dtype == torch.float32
    assert torch.equal(matrix.diagonal(), torch.ones(len(clips)))
    assert torch.equal(matrix, matrix.T)
    assert clips.graded == bool(((matrix > 0) & (matrix < 1)).any())


def test_labels_are_classes_with_a_prompt_each_or_an_error_that_says_what_to_take(clips, name):
    if name in LABELLED:
        labels, prompts = clips.labels, clips.prompts()
        assert (labels.dtype, labels.shape) == (torch.int64, (len(clips),))
        assert 0 <= int(labels.min()) <= int(labels.max()) < len(prompts)
        assert len(set(prompts)) == len(prompts)
    else:
        with pytest.raises(NoLabelsError, match=r"single event.* or a classification set such as esc50"):
            _ = clips.labels


def test_features_of_any_clips_keep_all_but_the_audio(sources, name):
    clips = sources(name)
    features = np.arange(len(clips) * 3, dtype=np.float32).reshape(-1, 3)
    heard = Encoded(clips, features, "key")
    audio, lengths = heard.audio([2, 0])
    assert torch.equal(audio, torch.from_numpy(features[[2, 0]]))
    assert lengths.tolist() == [3, 3] == heard.lengths[:2].tolist()
    assert (heard.name, heard.columns, heard.graded) == (clips.name, clips.columns, clips.graded)
    assert torch.equal(heard.relevance(), clips.relevance())
    assert torch.equal(heard.select([1]).audio(0)[0], torch.from_numpy(features[[1]]))
    with pytest.raises(ValueError, match=rf"{len(clips)} clips need features"):
        Encoded(clips, features[1:], "key")


# ---------------------------------------------------------------- stores and worlds


def test_a_store_gives_back_what_was_written(tmp_path):
    waves = [np.array([1, -2, 3], np.int16), np.array([7], np.int16), np.array([32767, -32767], np.int16)]
    store.write(tmp_path, waves)
    read = store.read(tmp_path)
    assert [read[row].tolist() for row in range(len(read))] == [wave.tolist() for wave in waves]
    assert read.lengths.tolist() == [3, 1, 2]
    assert torch.equal(read.audio([2])[0], torch.tensor([[1.0, -1.0]]))


def test_a_dataset_may_be_kept_at_its_own_rate(sources):
    clips = sources("labelled")
    fine = load_labelled("esc50", sample_rate=32_000)
    assert fine.waveforms.sample_rate == 32_000
    assert fine.key != clips.key
    assert fine.lengths.tolist() == (2 * clips.lengths).tolist()
    down = fine.audio(0, sample_rate=16_000)[0]
    torch.testing.assert_close(down, clips.audio(0)[0], rtol=0, atol=0.01)
    with pytest.raises(ValueError, match="corpus: sample_rate must be at least 1, got 0"):
        CorpusConfig("clotho", sample_rate=0)


def test_a_column_of_another_length_is_refused():
    waves = store.Waveforms(np.zeros(4, np.int16), np.array([2, 4]))
    with pytest.raises(ValueError, match=r"2 clips need as many values .* got \{'speaker': 1\}"):
        StoredClips("x", "key", waves, np.arange(2), {"speaker": ["a"]}, lambda columns, language: [])


def test_a_world_names_its_splits(sources):
    world = scenes()
    assert isinstance(world, World)
    assert list(world.splits) == ["train", "valid", "test", "singles"]
    assert world.split("valid") is world.valid
    with pytest.raises(UnknownNameError, match="did you mean 'singles'"):
        world.split("single")
    assert load_data(WorldConfig("synthetic", n_train=12, n_valid=4, n_test=4, n_single_per_event=1)).identity == (
        world.identity
    )
