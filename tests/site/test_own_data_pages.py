"""The pages "Your own data" and "Protocols" are true: their code runs and prints what they show, options exist."""

import contextlib
import io
import re
import shlex

import miniature
import pytest

from pullpush.data.clips import load_data
from pullpush.data.recordings.corpora import CorpusConfig
from pullpush.data.shards import ShardsConfig
from pullpush.training.__main__ import config_of, parser, recipe_of

pytestmark = pytest.mark.deep

OWN = (miniature.ROOT / "book" / "your-own-data.md").read_text(encoding="utf-8")
PROTOCOLS = (miniature.ROOT / "book" / "protocols.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def options(command: str):
    """What `python -m pullpush.training` makes of a command of the page."""
    words = shlex.split(command)
    return parser().parse_args(words[words.index("pullpush.training") + 1 :])


@pytest.fixture
def mine(home, tmp_path):
    """A folder as the page describes it, with recordings of several formats."""
    rows = []
    for number in range(12):
        split = ("train", "train", "valid", "test")[number % 4]
        name = f"clip {number}.{('wav', 'flac')[number % 2]}"
        miniature.tone(tmp_path / "mine" / "audio" / name, number, seconds=1)
        rows += [(split, name, miniature.sentence(number, k)) for k in range(1 + number % 2)]
    miniature.table(tmp_path / "mine" / "captions.csv", rows, ["split", "file_name", "caption"])
    return tmp_path / "mine"


def test_the_twenty_lines_run(mine, capsys):
    *_, code = [text for language, text in BLOCK.findall(OWN) if language == "python"]
    assert len(code.splitlines()) <= 21
    small = code.replace("/data/mine", str(mine)).replace('audio="yamnet"', 'text="hashed", dim=8, batch_size=4')
    assert 'text="hashed"' in small
    exec(small, {})
    out = capsys.readouterr().out
    assert "A2T" in out
    assert len(re.findall(r"^clip \d+\.\w+ \[", out, flags=re.MULTILINE)) == 3


def test_the_lines_that_write_shards_run(mine, tmp_path):
    code, *_ = [text for language, text in BLOCK.findall(OWN) if language == "python"]
    exec(code.replace("/data/mine", str(mine)).replace("/data/shards", str(tmp_path / "shards")), {})
    world = load_data(ShardsConfig(str(tmp_path / "shards")))
    assert len(world.train.pairs()) == 6
    assert len(world.valid) == len(world.test) == 3


def test_the_commands_of_the_page_are_understood():
    blocks = [text.strip() for language, text in BLOCK.findall(OWN) if language == "bash"]
    mine, several, one, two = (options(line) for block in blocks for line in block.splitlines())
    assert config_of(mine, recipe_of(mine)) == CorpusConfig("folder:/data/mine")
    assert config_of(several, recipe_of(several)) == CorpusConfig("audiocaps", sample_rate=48_000)
    assert config_of(one, recipe_of(one)) == config_of(two, recipe_of(two)) == ShardsConfig("/data/shards")


@pytest.mark.parametrize("page", [OWN, PROTOCOLS], ids=["your-own-data", "protocols"])
def test_every_switch_that_a_page_names_exists(page):
    known = {name for action in parser()._actions for name in action.option_strings}
    known |= {"--standalone", "--nproc_per_node"}  # of torchrun
    known |= {"--all", "--profile"}  # of pullpush run
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z_-]+", page))
    assert named <= known
    assert len(named) >= 4


def test_the_tables_of_protocols_are_what_their_code_prints():
    blocks, names = BLOCK.findall(PROTOCOLS), {}
    printed = [text for language, text in blocks if language == "text"]
    codes = [text for language, text in blocks if language == "python"]
    assert len(printed) == len(codes) == 2
    for code, expected in zip(codes, printed, strict=True):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert out.getvalue() == expected


def test_the_orders_of_two_systems_cross_under_two_truths():
    scores = dict(re.findall(r"^([AB]): mAP@10 \(single\) ([\d.]+)", PROTOCOLS, flags=re.MULTILINE))
    several = dict(re.findall(r"^([AB]): .*DCASE 2025\) ([\d.]+)$", PROTOCOLS, flags=re.MULTILINE))
    assert float(scores["A"]) > float(scores["B"])
    assert float(several["A"]) < float(several["B"])


def test_the_number_of_twins_in_a_batch_is_what_shuffling_gives():
    import numpy as np

    clips, captions, batch = 3839, 5, 128
    rng, twins = np.random.default_rng(0), []
    for _ in range(300):
        drawn = rng.choice(clips * captions, batch, replace=False) // captions
        counts = np.bincount(drawn)
        twins.append((counts * (counts - 1) / 2).sum())
    expected = batch * (batch - 1) * (captions - 1) / (2 * (clips * captions - 1))
    assert np.mean(twins) == pytest.approx(expected, rel=0.15)
    assert f"{expected:.1f} for B = {batch} on Clotho" in PROTOCOLS
