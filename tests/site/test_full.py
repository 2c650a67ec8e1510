"""Chapter 2 as the full profile runs it, on miniature copies of its datasets and of its encoders."""

import miniature
import pandas as pd
import pytest
import torch
import yaml
from click.testing import CliRunner

from pullpush.cache import home
from pullpush.errors import DataNotFoundError
from pullpush.lab import common, material, session
from pullpush.site.cli import main
from pullpush.training.frozen import encoded, on_features
from pullpush.training.loop import is_finished
from pullpush.training.runs import Plan, train_all
from pullpush.training.trunk import Published

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def mini(tmp_path_factory):
    """A profile like full whose datasets and encoders are small, as a user would write it."""
    folder = tmp_path_factory.mktemp("full")
    miniature.everything(folder / "data")
    torch.manual_seed(7)  # not a session's seed, or random weights would be the published ones
    own = {
        "like": "full",
        "audio": "whisper",
        "text": "roberta",
        "encoder_options": miniature.published_models(folder),
        "dim": 16,
        "epochs": 1,
        "batch_size": 8,
        "seeds": 2,
        "points": 2,
    }
    (folder / "mini.yaml").write_text(yaml.safe_dump(own))
    with miniature.at_home(folder):
        yield folder / "mini.yaml"


@pytest.fixture(scope="module")
def tables(mini):
    """Name → table of the executed chapter, with all that is long."""
    out = mini.parent / "out"
    words = ["run", "02-svr-lab", "--profile", str(mini), "-p", "compute_long", "true", "--out", str(out)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return {path.name.split(".")[1]: pd.read_csv(path) for path in out.glob("*.csv")}


def test_every_table_is_written(tables):
    assert {f"table{n}" for n in (2, 3, 4, 5, 6, 7, 9, 14)} <= set(tables)
    assert {"end-to-end", "settings", "claims", "figure1", "figure7"} <= set(tables)


def test_zero_shot_is_on_the_three_labelled_sets(tables):
    sets = tables["table2"].groupby("set")["chance"].unique()
    assert sorted(sets.index) == ["ESC-50", "US8K", "VGGSound"]
    assert all(chance == pytest.approx(1 / 3, abs=1e-5) for chance in sets.explode())


def test_transfer_is_between_the_two_datasets(tables):
    assert set(tables["table6"]["route"]) == {"AudioCaps → Clotho", "Clotho → AudioCaps"}


def test_more_data_is_a_head_of_the_dataset(tables):
    assert set(tables["table5"]["clips"]) == {"quarter", "half", "all"}


def test_hard_negatives_need_no_scene_graph(tables):
    assert set(tables["figure7"]["kind"]) == {"similar"}


def test_everything_was_fine_tuned_end_to_end(tables):
    ends = tables["end-to-end"]
    assert set(ends["seed"]) == {0, 1}
    assert "twice" in set(ends["system"])
    assert len(ends) == 2 * ends["system"].nunique()


def test_every_claim_has_a_verdict_or_a_reason(tables):
    claims = tables["claims"]
    assert (claims["value"].notna() | claims["reason"].notna()).all()


def test_the_trunk_is_the_published_encoder_itself(mini):
    book = session.start("02-svr", profile=str(mini), out=mini.parent / "session")
    ground = material.of(book)
    assert ground.trunk() == Published("whisper", {"model": str(mini.parent / "whisper")})
    assert ground.book.settings.batch_size == 8
    data = ground.data()
    heard, noisy = encoded(data, ground.trunk()), encoded(data, ground.random_trunk())
    assert heard.train.dim == noisy.train.dim == 16
    assert not (heard.train.audio(0)[0] == noisy.train.audio(0)[0]).any()
    assert heard.test.captions("eng") == data.test.captions("eng")
    keys = {Plan(world, common.sized(book, "infonce")).key for world in (data, heard, noisy)}
    assert len(keys) == 3


def test_runs_in_other_processes_read_the_same_dataset(mini):
    book = session.start("02-svr", profile=str(mini), out=mini.parent / "session")
    ground = material.of(book)
    heard = encoded(ground.data(n_train=16), ground.trunk())
    one = common.sized(book, "infonce", tau=0.1, **on_features(heard))
    plans = [Plan(heard, one, seed) for seed in (0, 1)]
    train_all(plans, jobs=2)
    assert all(is_finished(home() / "runs" / plan.key) for plan in plans)


def test_other_weights_in_the_same_folder_make_another_trunk_and_run(mini, tmp_path):
    one = miniature.published_models(tmp_path)["audio_model"]
    book = session.start("02-svr", profile=str(mini), out=mini.parent / "session")
    plan = common.sized(book, "infonce", encoder_options={"audio_model": one})
    data = material.of(book).data()
    before = Published("whisper", {"model": one}).digest, Plan(data, plan).key
    torch.manual_seed(12345)
    miniature.published_models(tmp_path)
    after = Published("whisper", {"model": one}).digest, Plan(data, plan).key
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_scenes_can_be_asked_for_and_a_missing_dataset_is_told(mini, monkeypatch):
    book = session.start("02-svr", profile="full", out=mini.parent / "session")
    assert not isinstance(material.of(book, "scenes"), material.Real)
    monkeypatch.setenv("PULLPUSH_DATA", str(mini.parent / "nothing"))
    with pytest.raises(DataNotFoundError, match="pullpush fetch audiocaps"):
        material.of(book).data()
