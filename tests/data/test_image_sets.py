"""Published pictures in their layouts, miniature copies of which are read as the whole sets are."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from pullpush.data import image_files
from pullpush.data.image_corpora import ImageCorpusConfig, PictureClips, load_pictures
from pullpush.data.image_files import Files, PictureError, pixels, square
from pullpush.data.image_sets import IMAGES
from pullpush.data.registry import SETS
from pullpush.errors import AudioError, DataNotFoundError, PullPushError, UnknownNameError
from pullpush.training import recipe, retrieval_table, zero_shot
from pullpush.training.runs import Plan

SMALL = 8  # pixels of a side
IDS = {"n01440764": "tench", "n01443537": "goldfish", "n02012849": "crane bird"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty place for datasets, and a cache."""
    monkeypatch.setenv("PULLPUSH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PULLPUSH_PROGRESS", "0")
    return tmp_path / "data"


def colour(number: int) -> tuple[int, int, int]:
    return (10 * number + 5, 200 - 3 * number, 30)


def picture(path: Path | io.BytesIO, number: int, size: tuple[int, int] = (20, 12), kind: str = "PNG") -> None:
    """A picture of one colour, by its number."""
    if isinstance(path, Path):
        path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour(number)).save(path, kind)


def shown(clips: PictureClips, row: int) -> tuple[int, ...]:
    """The colour in the middle of a clip's picture."""
    flat, lengths = clips.audio(row)
    assert lengths.tolist() == [flat.shape[1]] == [clips.lengths[row]]
    planes = ((flat[0] + 1) * 127.5).round().int().view(3, clips.size, clips.size)
    return tuple(planes[:, clips.size // 2, clips.size // 2].tolist())


def archive(path: Path, rows: dict[str, tuple[bytes, str | None]]) -> None:
    """A tar as img2dataset writes it: KEY.jpg, KEY.txt and KEY.json a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as held:
        for key, (image, caption) in rows.items():
            parts = {"jpg": image, "json": b"{}"} | ({} if caption is None else {"txt": caption.encode()})
            for ending, content in parts.items():
                member = tarfile.TarInfo(f"{key}.{ending}")
                member.size = len(content)
                held.addfile(member, io.BytesIO(content))


def packed(number: int) -> bytes:
    buffer = io.BytesIO()
    picture(buffer, number)
    return buffer.getvalue()


def cc3m(root: Path) -> None:
    """Tables, two archives of training pictures (one address died), and validation pictures as files."""
    captions = {"Train_GCC-training": 5, "Validation_GCC-1.1.0-Validation": 4}
    for name, count in captions.items():
        lines = [f"{name[:5].lower()} caption {row}\thttp://x/{row}.jpg" for row in range(count)]
        (root / "cc3m").mkdir(parents=True, exist_ok=True)
        (root / f"cc3m/{name}.tsv").write_text("\n".join(lines) + "\n")
    own = {f"{row:09d}": (packed(row), f"train caption {row}\n") for row in range(5)}
    archive(root / "cc3m/train/00000.tar", {key: own[key] for key in list(own)[:3]})
    archive(root / "cc3m/train/00001.tar", {key: own[key] for key in list(own)[4:]})
    for shard, count in (("00000", 3), ("00001", 2)):
        (root / f"cc3m/train/{shard}_stats.json").write_text(json.dumps({"count": count}))
    for row in (0, 2, 3):
        picture(root / f"cc3m/valid/00000/{row:09d}.jpg", row)


def karpathy(root: Path, folder: str, table: str, *, paths: bool) -> None:
    """Pictures: two to learn from and one of "restval", one to validate, two to test; the last has seven captions."""
    rows = []
    for number, split in enumerate(("train", "train", "restval", "val", "test", "test")):
        name = f"COCO_{number:012d}.jpg" if paths else f"{1000 + number}.jpg"
        home = ("train2014" if split == "train" else "val2014") if paths else "flickr30k-images"
        picture(root / folder / home / name, number)
        sentences = [{"raw": f"Picture {number}, sentence {k}. "} for k in range(7 if number == 5 else 5)]
        rows.append({"filename": name, "split": split, "sentences": sentences} | ({"filepath": home} if paths else {}))
    (root / folder / table).write_text(json.dumps({"images": rows, "dataset": "mini"}))


def folders(place: Path, names: list[str], each: int = 2, ending: str = "JPEG") -> None:
    """A folder a class, its pictures of a colour by the class's number."""
    for number, name in enumerate(names):
        for own in range(each):
            picture(place / name / f"{name}_{own}.{ending}", number)


def cifar(place: Path, file: str, names: str, classes: list[str], labels: list[list[int]]) -> None:
    place.mkdir(parents=True)
    (place / names).write_text("\n".join(classes) + "\n\n")
    planes = [np.repeat(np.array(colour(own[-1]), np.uint8), 1024) for own in labels]
    (place / file).write_bytes(
        b"".join(bytes(own) + plane.tobytes() for own, plane in zip(labels, planes, strict=True))
    )


def test_cc3m_is_read_from_archives_and_from_files(root):
    cc3m(root)
    with (
        pytest.warns(UserWarning, match="1 of 5 pictures for train"),
        pytest.warns(UserWarning, match="1 of 4 pictures for valid"),
    ):
        world = ImageCorpusConfig("cc3m", size=SMALL).load()
    assert list(world.splits) == ["train", "valid"]
    assert world.train.captions("eng") == [[f"train caption {row}"] for row in (0, 1, 2, 4)]
    assert world.valid.captions("eng") == [[f"valid caption {row}"] for row in (0, 2, 3)]
    assert [shown(world.train, row) for row in range(4)] == [colour(row) for row in (0, 1, 2, 4)]
    assert shown(world.valid, -1) == colour(3)
    assert torch.equal(world.train.relevance(), torch.eye(4))
    assert world.train.select([2, 0]).captions("eng") == [["train caption 2"], ["train caption 0"]]


@pytest.mark.filterwarnings("ignore:Conceptual Captions")
def test_archives_are_read_through_once(root, monkeypatch):
    cc3m(root)
    first = ImageCorpusConfig("cc3m", size=SMALL).load()
    monkeypatch.setattr(tarfile, "open", None)  # nobody may read them through again
    again = ImageCorpusConfig("cc3m", size=SMALL).load()
    assert again.identity == first.identity
    assert torch.equal(again.train.audio([1, 3])[0], first.train.audio([1, 3])[0])
    assert ImageCorpusConfig("cc3m", size=4).load().train.key != first.train.key


@pytest.mark.filterwarnings("ignore:Conceptual Captions")
def test_a_table_may_have_been_given_a_head(root):
    cc3m(root)
    table = root / "cc3m/Validation_GCC-1.1.0-Validation.tsv"
    before = ImageCorpusConfig("cc3m", size=SMALL).load().valid.captions("eng")
    table.write_text("caption\turl\n" + table.read_text())
    assert ImageCorpusConfig("cc3m", size=SMALL).load().valid.captions("eng") == before


def test_an_archive_that_was_cut_is_named(root):
    cc3m(root)
    (root / "cc3m/train/00001.tar").write_bytes(b"<html>" * 200)
    with pytest.raises(PictureError, match=r"00001\.tar is no whole tar"):
        ImageCorpusConfig("cc3m").load()


def test_one_set_is_learnt_from_and_another_tested_on(root):
    cc3m(root)
    karpathy(root, "mscoco", "dataset_coco.json", paths=True)
    with pytest.warns(UserWarning, match="left out"):
        world = ImageCorpusConfig("cc3m", size=SMALL, test="mscoco", n_train=2, n_test=1).load()
    assert (len(world.train), len(world.test)) == (2, 1)
    assert world.test.captions("eng")[0][1] == "Picture 4, sentence 1."


@pytest.mark.parametrize(("name", "paths"), [("mscoco", True), ("flickr30k", False)])
def test_karpathys_splits(root, name, paths):
    karpathy(root, name, "dataset_coco.json" if paths else "dataset_flickr30k.json", paths=paths)
    world = ImageCorpusConfig(name, size=SMALL).load()
    assert [len(clips) for clips in world.splits.values()] == [3, 1, 2]
    assert {len(texts) for texts in world.test.captions("eng")} == {5}, "papers test on five"
    assert shown(world.test, 1) == colour(5)
    assert world.test.relevance().tolist() == [[1, 0], [0, 1]]
    own = world.test.columns["file"][0]
    (root / name / "captions.deu.csv").write_text(f"file_name,caption\n{own},Ein Bild\n")
    assert ImageCorpusConfig(name, size=SMALL).load().test.captions("deu") == [["Ein Bild"], []]
    next((root / name).rglob(own)).unlink()
    with pytest.raises(DataNotFoundError, match=rf"lacks 1 of the 2 pictures.*{own}"):
        ImageCorpusConfig(name).load()
    (root / name / ("dataset_coco.json" if paths else "dataset_flickr30k.json")).write_text('{"images": [{}]}')
    with pytest.raises(PullPushError, match="'split' is missing"):
        ImageCorpusConfig(name).load()


def test_coco_in_its_own_splits(root):
    for part, numbers in (("train2017", (1, 2)), ("val2017", (7, 5))):
        for number in numbers:
            picture(root / f"mscoco/{part}/{number:012d}.jpg", number)
        images = [{"id": number, "file_name": f"{number:012d}.jpg"} for number in numbers]
        texts = [
            {"id": 10 * k, "image_id": number, "caption": f"{number}: {k}\n"} for k in range(6) for number in numbers
        ]
        place = root / f"mscoco/annotations/captions_{part}.json"
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps({"images": images, "annotations": texts[::-1]}))
    world = ImageCorpusConfig("mscoco-2017", size=SMALL).load()
    assert list(world.splits) == ["train", "test"]
    assert world.test.captions("eng")[0] == [f"7: {k}" for k in range(5)]
    assert shown(world.test, 1) == colour(5)


def test_flickr30k_by_its_authors_table_and_lists(root):
    place = root / "flickr30k"
    for number in range(4):
        picture(place / f"flickr30k_images/{number}.jpg", number)
    rows = [f"{number}.jpg| {k}| Sentence {k} of {number} ." for number in range(4) for k in range(5)]
    rows[-1] = "3.jpg| 4   Sentence 4 of 3 ."  # as the published file has it in one place
    (place / "results.csv").write_text("image_name| comment_number| comment\n" + "\n".join(rows))
    with pytest.raises(DataNotFoundError, match="knows no splits"):
        ImageCorpusConfig("flickr30k").load()
    for name, numbers in (("train", "0\n1"), ("val", "2"), ("test", "3")):
        (place / f"{name}.txt").write_text(numbers + "\n")
    world = ImageCorpusConfig("flickr30k", size=SMALL).load()
    assert world.test.captions("eng") == [[f"Sentence {k} of 3 ." for k in range(5)]]
    assert shown(world.train, 1) == colour(1)


def test_cifars_binary_version(root):
    cifar(root / "cifar-10-batches-bin", "test_batch.bin", "batches.meta.txt", ["cat", "dog"], [[1], [0], [1]])
    clips = load_pictures("cifar10", size=32)
    assert clips.labels.tolist() == [1, 0, 1]
    assert [shown(clips, row) for row in range(3)] == [colour(1), colour(0), colour(1)]
    assert clips.prompts() == ["a photo of a cat.", "a photo of a dog."]
    assert clips.prompts(template="A blurry {label}.") == ["A blurry cat.", "A blurry dog."]
    assert load_pictures("cifar10", n=2).labels.tolist() == [1, 1], "spread over the file"
    fine = ["apple", "aquarium_fish", "baby"]
    cifar(root / "cifar-100-binary", "test.bin", "fine_label_names.txt", fine, [[9, 2], [4, 1]])
    hundred = load_pictures("cifar100", size=32)
    assert hundred.labels.tolist() == [2, 1]
    assert hundred.prompts()[1] == "a photo of a aquarium fish."
    assert shown(hundred, 0) == colour(2)


def test_cifar_that_is_not_whole_or_is_pickled(root):
    place = root / "cifar-10-batches-bin"
    cifar(place, "test_batch.bin", "batches.meta.txt", ["cat"], [[0]])
    file = place / "test_batch.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(PullPushError, match="whole records of 3073"):
        load_pictures("cifar10")
    file.write_bytes(b"\x05" + whole[1:])
    with pytest.raises(PullPushError, match="a class 5"):
        load_pictures("cifar10")
    file.rename(place / "test_batch")
    with pytest.raises(DataNotFoundError, match="binary version"):
        load_pictures("cifar10")


@pytest.mark.filterwarnings("ignore:ImageNet.* classes")
def test_imagenet_and_what_tests_it_with_other_pictures(root):
    (root / "imagenet").mkdir(parents=True)
    names = root / "imagenet/classnames.txt"
    names.write_text("\n".join(f"{own} {name}" for own, name in IDS.items()))
    ids = list(IDS)
    folders(root / "imagenet/val", ids)
    folders(root / "imagenetv2-matched-frequency-format-val", ["0", "1", "2"], ending="jpeg")
    folders(root / "imagenet-sketch/sketch", ids[1:])
    folders(root / "imagenet-a", ids[1:])
    (root / "imagenet-a/README.txt").write_text("not a class")
    for name in ("imagenet1k", "imagenetv2"):
        clips = load_pictures(name, size=SMALL)
        assert clips.labels.tolist() == [0, 0, 1, 1, 2, 2]
        assert clips.prompts("eng", "{label}") == list(IDS.values())
        assert shown(clips, 4) == colour(2)
    assert load_pictures("imagenet-sketch", size=SMALL).labels.tolist() == [1, 1, 2, 2], "chosen among all"
    some = load_pictures("imagenet-a", size=SMALL)
    assert some.labels.tolist() == [0, 0, 1, 1], "chosen among its own"
    assert some.prompts(template="{label}") == ["goldfish", "crane bird"]
    with pytest.warns(UserWarning, match="ImageNet-A: 2 of its 200 classes"):
        load_pictures("imagenet-a")
    folders(root / "imagenet-a", ["n99999999"])
    with pytest.raises(PullPushError, match="n99999999 is no class"):
        load_pictures("imagenet-a")
    names.rename(names.with_name("LOC_synset_mapping.txt")).write_text("n01440764 tench, Tinca tinca\n")
    folders(root / "imagenet-r", ids[:1])
    assert load_pictures("imagenet-r").prompts() == ["a photo of a tench."]
    (root / "imagenet/LOC_synset_mapping.txt").unlink()
    with pytest.raises(DataNotFoundError, match=r"classnames\.txt"):
        load_pictures("imagenet1k")


def test_a_corrupt_picture_is_named_or_left_out(root):
    karpathy(root, "mscoco", "dataset_coco.json", paths=True)
    broken = root / "mscoco/train2014/COCO_000000000001.jpg"
    noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), np.uint8)
    Image.fromarray(noise).save(broken, "JPEG")
    broken.write_bytes(broken.read_bytes()[:900])
    world = ImageCorpusConfig("mscoco", size=SMALL).load()
    assert world.train.audio(0)[0].shape == (1, 3 * SMALL * SMALL)
    with pytest.raises(PictureError, match=r"COCO_000000000001\.jpg.*truncated.*verify=True"):
        world.train.audio([0, 1])
    with pytest.warns(UserWarning, match="MS COCO: 1 of 3 pictures for train are corrupt"):
        whole = ImageCorpusConfig("mscoco", size=SMALL, verify=True).load()
    assert whole.train.captions("eng") == [world.train.captions("eng")[row] for row in (0, 2)]
    assert whole.train.key != world.train.key
    broken.unlink()
    with pytest.raises(FileNotFoundError):
        world.train.audio(1)


def test_nothing_is_decoded_before_it_is_asked_for(root, monkeypatch):
    karpathy(root, "mscoco", "dataset_coco.json", paths=True)
    asked: list[str] = []
    opened = Files.picture
    monkeypatch.setattr(Files, "picture", lambda self, number: asked.append(self.names[number]) or opened(self, number))
    world = ImageCorpusConfig("mscoco", size=SMALL).load()
    world.train.captions("eng"), world.train.relevance(), world.train.lengths, world.identity
    assert not asked
    world.test.select([1]).audio(slice(None))
    assert asked == ["val2014/COCO_000000000005.jpg"]


@pytest.mark.parametrize(("width", "height"), [(30, 17), (17, 30), (8, 8), (6, 3)])
def test_the_middle_of_a_picture_is_kept_at_one_size(width, height):
    columns = np.linspace(0, 255, width).astype(np.uint8)
    image = Image.fromarray(np.broadcast_to(columns[None, :, None], (height, width, 3)).copy())
    found = square(image, SMALL)
    assert found.shape == (3, SMALL, SMALL)
    row = found[0, 3].astype(int)
    assert (np.diff(row) >= 0).all(), "left stays left"
    assert row[0] + row[-1] == pytest.approx(255, abs=8), "the middle"
    assert row[-1] - row[0] == pytest.approx(240 * min(1.0, height / width), abs=30), "neither squeezed nor padded"


def test_pictures_that_are_not_rgb(tmp_path):
    Image.new("L", (9, 9), 100).save(tmp_path / "grey.png")
    Image.new("CMYK", (9, 9), (0, 255, 255, 0)).save(tmp_path / "print.jpg")
    Image.new("P", (9, 9), 0).save(tmp_path / "palette.png")
    found = pixels(Files(tmp_path, ["grey.png", "print.jpg", "palette.png"]), range(3), 2)
    assert found.shape == (3, 12)
    assert found[0].tolist() == pytest.approx([100 / 127.5 - 1] * 12)
    assert found[1, :4].min() > 0.9 > -0.9 > found[1, 4:].max(), "red comes first"
    assert float(found.min()) >= -1
    assert float(found.max()) <= 1


def test_a_clip_says_what_it_has_not(root):
    karpathy(root, "mscoco", "dataset_coco.json", paths=True)
    world = ImageCorpusConfig("mscoco", size=SMALL).load()
    with pytest.raises(AudioError, match="no sample rate"):
        world.train.audio(0, sample_rate=16_000)
    with pytest.raises(PullPushError, match="no labels"):
        _ = world.train.labels
    with pytest.raises(PullPushError, match="captions, not labels"):
        world.train.prompts()


def test_a_model_learns_from_one_set_and_is_tested_on_others(root):
    karpathy(root, "mscoco", "dataset_coco.json", paths=True)
    cifar(root / "cifar-10-batches-bin", "test_batch.bin", "batches.meta.txt", ["cat", "dog"], [[1], [0], [1], [0]])
    world = ImageCorpusConfig("mscoco", size=16).load()
    small = {"epochs": 1, "batch_size": 3, "dim": 8, "text": "hashed", "audio": "picture-cnn"}
    model = Plan(world, recipe("infonce", encoder_options={"audio_channels": (4, 8)}, **small)).train().model
    table = retrieval_table(model, world.test)
    assert table["value"].between(0, 1).all()
    sights = load_pictures("cifar10", size=16)
    assert zero_shot(model, sights, sights.prompts())["value"].between(0, 1).all()


def test_wrong_names_and_sizes(root):
    with pytest.raises(UnknownNameError, match="did you mean 'mscoco'"):
        ImageCorpusConfig("mscocco").load()
    with pytest.raises(PullPushError, match="has labels"):
        ImageCorpusConfig("cifar10").load()
    with pytest.raises(PullPushError, match="has captions"):
        load_pictures("mscoco")
    with pytest.raises(ValueError, match="size"):
        ImageCorpusConfig("mscoco", size=0)
    with pytest.raises(UnknownNameError, match="cleaning"):
        ImageCorpusConfig("mscoco", text_cleaning="soap")


@pytest.mark.parametrize("name", IMAGES)
def test_a_set_says_what_it_is_and_where_it_comes_from(root, name):
    card = IMAGES[name]
    for said in (card.title, card.source, card.authors, card.licence, card.how):
        assert said
    assert card.about.endswith(".")
    assert name not in SETS, "what is heard and what is seen are two catalogues"
    with pytest.raises(DataNotFoundError) as error:
        load_pictures(name) if card.labelled else ImageCorpusConfig(name).load()
    for word in (str(root / card.folder), "$PULLPUSH_DATA", card.how):
        assert word in str(error.value)


def test_the_sets_of_the_paper_are_there():
    paper = {"cc3m", "mscoco", "flickr30k", "cifar10", "cifar100", "imagenet1k", "imagenetv2", "imagenet-sketch"}
    assert paper | {f"imagenet-{letter}" for letter in "oar"} <= set(IMAGES)
    assert image_files.ENDINGS[0] == ".jpg"
