"""Profiles are data that the library can act on."""

from dataclasses import FrozenInstanceError

import pytest

from pullpush.data.recordings.registry import find
from pullpush.data.scenes.world import WorldConfig
from pullpush.encoders import AUDIO, TEXT
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError
from pullpush.lab import common, session
from pullpush.lab.profiles import DEFAULT, PROFILES, profile


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_names_what_there_is(name):
    row = profile(name)
    assert row.name == name
    assert WorldConfig(**row.world).n_test >= 1
    assert row.audio in AUDIO
    assert row.text in TEXT
    assert min(row.dim, row.epochs, row.batch_size, row.seeds) >= 1
    assert "\n" not in row.about


def test_a_profile_cannot_be_changed_by_a_chapter():
    with pytest.raises(FrozenInstanceError):
        profile("smoke").epochs = 9
    with pytest.raises(TypeError):
        profile("smoke").world["n_train"] = 9
    with pytest.raises(TypeError):
        PROFILES["mine"] = profile("smoke")


def test_an_unknown_profile_gets_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'full'"):
        profile("ful")


def test_full_names_datasets_that_there_are():
    row = profile("full")
    assert not find(row.dataset).labelled
    assert not find(row.other).labelled
    assert all(find(name).labelled for name in row.zero_shot)
    assert profile("quick").dataset == ""


@pytest.fixture
def written(tmp_path):
    """A function that writes a profile."""

    def write(text, name="mine.yaml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_a_file_is_a_profile_that_changes_another(written):
    row = profile(written("like: full\ndim: 8\nworld: {n_train: 9}\nzero_shot: [esc50]\ndataset: ''\n"))
    assert (row.name, row.dim, row.dataset, row.zero_shot) == ("mine", 8, "", ("esc50",))
    assert row.world == {**PROFILES["full"].world, "n_train": 9}
    assert (row.audio, row.fine_tuning) == ("clap", {"lr": 5e-5})
    assert profile(written("epochs: 1\n", "other.yml")).batch_size == profile(DEFAULT).batch_size
    with pytest.raises(TypeError):
        row.encoder_options["audio_model"] = "x"


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("like: ful", UnknownNameError, "did you mean 'full'"),
        ("epoch: 3", UnknownNameError, "did you mean 'epochs'"),
        ("name: x", UnknownNameError, "field of a profile"),
        ("epochs: many", PullPushError, "epochs must be a whole number, got 'many'"),
        ("zero_shot: esc50", PullPushError, "zero_shot must be a list, got 'esc50'"),
        ("audio: cnnn", UnknownNameError, "did you mean 'cnn'"),
        ("encoder_options: {audio_chanels: 4}", UnknownNameError, "did you mean 'audio_channels'"),
        ("world: {bank: syntetic}", UnknownNameError, "did you mean 'synthetic'"),
        ("dataset: esc5", UnknownNameError, "did you mean 'esc50'"),
        ("seeds: 1000000000", PullPushError, "seeds must be at most 1000"),
        ("world: " + 3000 * "[", PullPushError, "not YAML"),
        ("- a", PullPushError, "mapping"),
        ("a: [", PullPushError, "not YAML"),
    ],
)
def test_mistakes_in_a_file_are_told(written, text, error, says):
    with pytest.raises(error, match=says):
        profile(written(text))


def test_a_file_must_be_there_and_have_a_name_of_its_own(written, tmp_path):
    with pytest.raises(DataNotFoundError, match="no profile at"):
        profile(tmp_path / "nothing.yaml")
    with pytest.raises(PullPushError, match="another name"):
        profile(written("epochs: 1", "quick.yaml"))
    for name in ("...yaml", "<b>.yaml"):
        with pytest.raises(PullPushError, match="name is letters"):
            profile(written("epochs: 1", name))


def test_a_recipe_gets_the_options_of_the_encoders_that_it_keeps(written, tmp_path):
    own = "encoder_options: {audio_model: /a, text_model: /t}"
    book = session.start("02-svr", profile=str(written(f"like: full\n{own}\n")), out=tmp_path)
    whole = common.sized(book, "infonce")
    assert whole.encoder_options == {"audio_model": "/a", "text_model": "/t"}
    assert whole.lr == 5e-5
    features = common.sized(book, "infonce", audio="features", encoder_options={"audio_dim": 4})
    assert features.encoder_options == {"text_model": "/t", "text_frozen": True, "audio_dim": 4}
    assert features.lr == 1e-3
    hashed = common.sized(book, "infonce", audio="features", text="hashed", encoder_options={"audio_dim": 4})
    assert hashed.encoder_options == {"audio_dim": 4}
