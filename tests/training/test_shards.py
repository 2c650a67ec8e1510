"""The command trains from shards: in two processes as in one, whatever is damaged."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
import torch
from pandas.testing import assert_frame_equal
from safetensors.torch import load_file
from shard_clips import clips, rewrite

from pullpush.data.clips import load_data
from pullpush.data.shards import ShardsConfig, ShardSet, read_shards
from pullpush.data.shards.files import write_shards
from pullpush.errors import DataNotFoundError, PullPushError, SettingError, UnknownNameError
from pullpush.training.__main__ import config_of, main, parser, recipe_of

# Frozen layers, a trained projection, no dropout: the chapter's model with an encoder that needs no weights.
MODEL = ["--recipe", "siglip", "--audio", "yamnet", "--text", "hashed", "--dim", "8", "--batch-size", "8"]
MODEL += ["--set", 'encoder_options={"audio_pretrained": false, "audio_frozen": true}', "--epochs", "2"]


@pytest.fixture
def mine(tmp_path):
    """Shards of two groups to learn from, one sample of them damaged, and some to choose and to test by."""
    write_shards(clips(20), tmp_path / "mine" / "train" / "sound", per_shard=6)
    write_shards(clips(7, 1), tmp_path / "mine" / "train" / "speech", per_shard=4)
    write_shards(clips(8, 2), tmp_path / "mine" / "valid")
    write_shards(clips(9, 3), tmp_path / "mine" / "test")
    rewrite(
        tmp_path / "mine" / "train" / "sound" / "000001.tar", lambda name, held: held[:99] if "7.fl" in name else held
    )
    return tmp_path / "mine"


def command(mine, *arguments):
    return ["--dataset", f"shards:{mine}", *MODEL, "--balance", "sound=1", "speech=1", *arguments]


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore:.*damaged")
def test_two_processes_train_from_shards_as_one(mine, tmp_path, capsys):
    assert main(command(mine, "--out", str(tmp_path / "one"))) == 0
    assert "test: 9 clips, 18 captions" in capsys.readouterr().out
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    result = subprocess.run(
        [*launcher, "pullpush.training", *command(mine, "--out", str(tmp_path / "two"))],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert "damaged, replaced by others: 000000007 in" in result.stderr
    one, other = (load_file(tmp_path / name / "best.safetensors") for name in ("one", "two"))
    torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)
    steps = [pd.read_csv(tmp_path / name / "steps.csv") for name in ("one", "two")]
    assert steps[0]["clips"].tolist() == [8, 8, 8, 3] * 2
    assert_frame_equal(*steps, rtol=1e-3)


def test_a_world_of_shards(mine, tmp_path):
    world = load_data(ShardsConfig(str(mine), n_test=4))
    assert sorted(world.train.where) == ["sound", "speech"]
    held = clips(8, 2)
    assert torch.equal(world.valid.audio(slice(0, 8))[0], held.audio(slice(0, 8))[0])
    assert world.valid.captions("eng") == held.captions("eng")
    assert world.valid.columns["file"][1] == "valid/000000.tar/000000001"
    assert len(world.test) == 4
    assert torch.equal(world.test.relevance(), torch.eye(4))
    with pytest.raises(UnknownNameError, match="known: eng"):
        world.test.captions("fra")
    pattern = mine / "train" / "sound" / "{000000..000003}.tar"
    named = ShardsConfig(f"{pattern}?valid={mine / 'valid'}&test={mine / 'test'}")
    assert len(load_data(named).train.pairs()) == 20
    assert named.load().valid.key == world.valid.key
    assert ShardSet(str(pattern)).key != ShardSet(str(pattern), seconds=1).key != world.train.key


def test_no_shard_is_in_two_splits_or_beside_the_groups(mine):
    where = f"{mine / 'train'}?valid={mine / 'train' / 'speech'}&test={mine / 'test'}"
    with pytest.raises(PullPushError, match=r"2 shards are in valid and in train, such as .*speech/000000\.tar"):
        ShardsConfig(where).load()
    shutil.copy(mine / "test" / "000000.tar", mine / "train" / "loose.tar")
    with pytest.raises(PullPushError, match=r"loose\.tar lies beside folders with shards, which are groups"):
        ShardsConfig(str(mine)).load()


@pytest.mark.filterwarnings("ignore:.*damaged")
def test_clips_of_several_folders_have_names_of_their_own(mine):
    both = read_shards([mine / "train" / "sound", mine / "train" / "speech"])
    assert len({*both.columns["file"]}) == len(both) == 26
    write_shards(clips(8, 2), mine / "named", columns=("file",))
    assert read_shards(mine / "named").columns["file"] == clips(8, 2).columns["file"]


def test_captions_without_a_language_are_in_the_one_that_is_said(mine):
    write_shards(clips(4), mine / "plain")
    rewrite(mine / "plain" / "000000.tar", lambda name, held: b'{"text": "un son"}' if "json" in name else held)
    assert read_shards(mine / "plain").captions("eng") == [["un son"]] * 4
    french = read_shards(mine / "plain", unnamed="fra")
    assert french.captions("fra") == french.captions("mul") == [["un son"]] * 4
    for found, other in ((french, "eng"), (read_shards(mine / "plain"), "fra")):
        with pytest.raises(UnknownNameError, match=r"known: (eng|fra)"):
            found.captions(other)


def test_damaged_clips_of_a_split_are_left_out(mine):
    with pytest.warns(UserWarning, match="1 of 20 samples are damaged, left out: 000000007 in"):
        found = read_shards(mine / "train" / "sound")
    assert len(found) == 19
    assert found.captions("eng") == [texts for row, texts in enumerate(clips(20).captions("eng")) if row != 7]
    for path in (mine / "valid").glob("*.tar"):
        path.write_bytes(b"")
    with pytest.warns(UserWarning, match="8 of 8"), pytest.raises(PullPushError, match="none of the samples of"):
        read_shards(mine / "valid")


def test_what_is_missing_is_said(mine, tmp_path, capsys):
    with pytest.raises(DataNotFoundError, match="no shards for valid and test"):
        ShardsConfig(str(mine / "train" / "sound")).load()
    with pytest.raises(UnknownNameError, match="did you mean 'valid'"):
        ShardsConfig(f"{mine}?vald=/data").load()
    for name, wrong in (("seconds", 0.0), ("seconds", float("inf")), ("n_valid", 0)):
        with pytest.raises(SettingError, match=f"{name} must be"):
            ShardsConfig(str(mine), **{name: wrong})
    options = parser().parse_args(["--out", "run", "--dataset", "shards:/data/mine", "--seconds", "5", "--test", "9"])
    assert config_of(options, recipe_of(options)) == ShardsConfig("/data/mine", seconds=5, n_test=9)
    members = {"audio": "several", "encoder_options": {"audio_members": ["yamnet", "sfx"]}, "languages": ["fra", "eng"]}
    one = replace(recipe_of(options), **members)
    wanted = ShardsConfig("/data/mine", seconds=5, n_test=9, unnamed="fra", sample_rate=44_100)
    assert config_of(options, one) == wanted
    for given in (["--overlap"], ["--train", "9"], ["--captions", "every"]):
        assert main(command(mine, "--out", str(tmp_path / "run"), *given)) == 1
        assert f"{' '.join(given[:1])}" in capsys.readouterr().err
