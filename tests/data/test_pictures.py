"""Pictures are drawn as their files say, dealt out without near duplicates, and behave as clips do."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from pullpush import cache
from pullpush.data.languages import LANGUAGES, VocabularyError
from pullpush.data.recordings import pictures as picture_files, tuxpaint
from pullpush.data.recordings.pictures import PictureConfig, Pixels, category_of, dealt, groups, load_categories
from pullpush.errors import AudioError, DataNotFoundError, UnknownNameError
from pullpush.training.evaluate import retrieval_table, zero_shot
from pullpush.training.recipes import recipe
from pullpush.training.runs import Plan

HOME = cache.home()  # before any test points it elsewhere
KINDS = ["animals/birds", "animals/fish/cartoon", "clothes/hats", "food/fruit", "vehicles"]
NAMES = ["alpha", "beta", "gamma", "delta"]
SIZE = 32


def blots(seed: int) -> Image.Image:
    """A picture that is like no other: twelve rectangles on nothing."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGBA", (60, 40), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    for x, y, *colour in rng.integers(0, [40, 25, 256, 256, 256], size=(12, 5)).tolist():
        draw.rectangle((x, y, x + 20, y + 15), fill=(*colour, 255))
    return image


def put(root, stamp, image, caption, **translations):
    """One stamp as Tux Paint keeps it."""
    path = root / stamp
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(f"{path}.png")
    lines = [caption, *(f"{code}.utf8={text}" for code, text in translations.items())]
    path.with_name(f"{path.name}.txt").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def world(module_home, tmp_path_factory):
    root = tmp_path_factory.mktemp("copy") / "stamps"
    for number, kind in enumerate(KINDS):
        for place, name in enumerate(NAMES):
            put(root, f"{kind}/{name}", blots(10 * number + place), f"The {name} {number}.", de=f"{name} {number} da.")
    first = blots(0)  # animals/birds/alpha
    put(root, "animals/fish/looks_alike", first.transpose(Image.Transpose.FLIP_LEFT_RIGHT), "Seen in a mirror.")
    put(root, "clothes/told_alike", blots(90), "The alpha 0.")
    put(root, "animals/birds/alpha-2", blots(91), "Named alike.")
    put(root, "symbols/alphabets/a", blots(92), "The letter a.")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(tuxpaint.SOURCE, str(root))
        yield PictureConfig(size=SIZE, n_valid=4, n_test=8).load()


# ---------------------------------------------------------------------------------------------------------------- files


def test_a_picture_is_fitted_into_a_white_square():
    image = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    ImageDraw.Draw(image).rectangle((10, 15, 29, 24), fill="red")  # 20 × 10, with nothing around it
    found = np.asarray(picture_files.square(image, 8))
    assert (found[:2] == 255).all()
    assert (found[6:] == 255).all()
    assert (found[2:6] == (255, 0, 0)).all()


@pytest.mark.parametrize("unit", ["", "pt", "mm"])
def test_a_drawing_is_drawn_at_the_size_that_is_asked_for(tmp_path, unit):
    path = tmp_path / "a.svg"
    rect = '<rect width="50%" height="100%" fill="#00f"/>'
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="480{unit}" height="240{unit}">{rect}</svg>')
    image = picture_files.opened(str(path), 30)
    assert image.size == (60, 30)
    assert (image.getpixel((5, 5)), image.getpixel((50, 5))) == ((0, 0, 255, 255), (0, 0, 0, 0))


def test_what_is_no_picture_is_named(tmp_path):
    path = tmp_path / "broken.png"
    path.write_bytes(b"not a picture")
    with pytest.raises(DataNotFoundError, match=r"broken\.png cannot be read as a picture"):
        picture_files.opened(str(path), 8)


def test_pictures_have_no_sample_rate():
    with pytest.raises(AudioError, match="no sample rate, got 16000"):
        Pixels.of(np.zeros((1, 12), np.uint8)).audio([0], sample_rate=16_000)


def test_a_picture_is_like_its_mirror_image_and_its_likeness_in_grey(tmp_path):
    first, other = blots(1), blots(2)
    images = [first, first.transpose(Image.Transpose.FLIP_LEFT_RIGHT), first.convert("LA").convert("RGBA"), other]
    rows = np.stack([picture_files.flat(picture_files.square(image, SIZE)) for image in images])
    found = picture_files.likeness(Pixels.of(rows))
    assert found[0, 1] > 0.99
    assert found[0, 2] > 0.99
    assert found[0, 3] < 0.9
    np.testing.assert_allclose(found, found.T, atol=1e-6)


# --------------------------------------------------------------------------------------------------------------- groups


def test_groups_are_chained():
    stamps = ["a/x", "a/y", "b/x", "b/y-1", "b/y-2"]
    alike = np.eye(5)
    alike[0, 1] = alike[1, 0] = 0.95
    alike[2, 3] = 0.85  # too little
    alike[1, 4] = 0.99  # of another kind
    found = groups(stamps, ["One.", "two.", "Two.", "Three.", "Four."], alike)
    assert found.tolist() == [0, 0, 0, 1, 1]


def test_groups_are_dealt_whole_and_the_sizes_are_kept():
    numbers = np.random.default_rng(0).integers(0, 40, 100)
    names = [str(row) for row in range(100)]
    found = dealt(numbers, names, {"test": 20, "valid": 10}, 0)
    assert {split: len(rows) for split, rows in found.items()} == {"test": 20, "valid": 10, "train": 70}
    assert sorted(row for rows in found.values() for row in rows) == list(range(100))
    owners = [set(numbers[rows]) for rows in found.values()]
    assert sum(map(len, owners)) == len(set().union(*owners))
    assert dealt(numbers, names, {"test": 20, "valid": 10}, 1) != found


def test_categories_are_named_in_eight_languages_and_all_differ():
    categories = load_categories().values()
    for code in LANGUAGES:
        assert len({category["names"][code] for category in categories}) == len(categories), code
    folders = [folder for category in categories for folder in category["folders"]]
    assert len(set(folders)) == len(folders)


def test_the_longest_folder_decides_the_category():
    names = [list(load_categories())[category_of(stamp)] for stamp in ("clothes/hats/crown1", "clothes/hatstand")]
    assert names == ["hat", "piece of clothing"]
    with pytest.raises(VocabularyError, match="machines/loom"):
        category_of("machines/loom")


# ---------------------------------------------------------------------------------------------------------------- world


def test_near_duplicates_lie_in_one_split(world):
    alike = {"animals/birds/alpha", "animals/fish/looks_alike", "clothes/told_alike", "animals/birds/alpha-2"}
    assert sum(bool(alike & set(world.split(name).columns["stamp"])) for name in ("train", "valid", "test")) == 1


def test_every_picture_is_in_one_split_and_letters_in_none(world):
    stamps = [stamp for name in ("train", "valid", "test") for stamp in world.split(name).columns["stamp"]]
    assert len(stamps) == len(set(stamps)) == 23
    assert [len(world.split(name)) for name in ("train", "valid", "test", "singles")] == [11, 4, 8, 8]


def test_pixels_are_those_of_the_file(world):
    for name in ("train", "test"):
        clips = world.split(name)
        row = next(row for row, stamp in enumerate(clips.columns["stamp"]) if stamp.rpartition("/")[2] in NAMES)
        stamp = clips.columns["stamp"][row]
        number, place = KINDS.index(stamp.rpartition("/")[0]), NAMES.index(stamp.rpartition("/")[2])
        wanted = np.asarray(picture_files.square(blots(10 * number + place), SIZE))
        audio, lengths = clips.audio(row)
        assert lengths.tolist() == [audio.shape[1]]
        found = ((audio[0].reshape(3, SIZE, SIZE).permute(1, 2, 0) + 1) * 127.5).round().byte().numpy()
        np.testing.assert_array_equal(found, wanted)


def test_captions_are_the_translators_and_none_where_there_is_none(world):
    train = world.train
    english, german = train.captions("eng"), train.captions("deu")
    assert all(len(texts) == 1 for texts in english)
    for stamp, texts in zip(train.columns["stamp"], german, strict=True):
        assert bool(texts) == (stamp.rpartition("/")[2] in NAMES)
    with pytest.raises(UnknownNameError, match="unknown language of captions 'jpn'"):
        train.captions("jpn")


def test_relevance_counts_caption_folder_and_kind(world):
    test = world.test
    found = test.relevance(world.train)
    for i, j in np.ndindex(*found.shape):
        a, b = (
            {name: side.columns[name][row] for name in ("caption", "category")}
            for side, row in ((test, i), (world.train, j))
        )
        kinds = [side["category"].partition("/")[0] for side in (a, b)]
        wanted = 0.5 if a["category"] == b["category"] else 0.25 if kinds[0] == kinds[1] else 0
        assert found[i, j] == wanted  # no caption is in both
    assert (test.relevance().diagonal() == 1).all()
    assert test.graded


def test_the_size_changes_no_split(world):
    other = PictureConfig(size=16, n_valid=4, n_test=8).load()
    assert other.test.columns["stamp"] == world.test.columns["stamp"]
    assert other.test.lengths.tolist() == [3 * 16 * 16] * 8
    assert other.identity != world.identity


def test_sizes_that_leave_nothing_are_refused(world):
    with pytest.raises(ValueError, match="n_test must be at least 1, got 0"):
        PictureConfig(n_test=0)
    with pytest.raises(ValueError, match="leave none to learn from"):
        PictureConfig(size=SIZE, n_valid=100, n_test=100).load()


# ------------------------------------------------------------------------------------------------------------- training


def test_pictures_train_as_sounds_do(world):
    small = {"audio_pretrained": False, "audio_size": 32}
    tiny = recipe("infonce", audio="efficientnet-lite", text="hashed", dim=8, epochs=1, encoder_options=small, lr=1e-3)
    model = Plan(world, tiny).train().model
    table = retrieval_table(model, world.test)
    assert table["value"].between(0, 1).all()
    assert len(zero_shot(model, world.singles, world.singles.prompts()))


# ---------------------------------------------------------------------------------------------------------- real stamps


def test_real_stamps_have_categories_and_splits_without_near_duplicates(monkeypatch):
    if not (HOME / "tuxpaint" / "stamps").is_dir():
        pytest.skip("no Tux Paint stamps here: run `pullpush fetch`")
    monkeypatch.delenv(tuxpaint.SOURCE, raising=False)
    monkeypatch.setenv("PULLPUSH_HOME", str(HOME))
    world = PictureConfig().load()
    assert {name: len(world.split(name)) for name in ("valid", "test")} == {"valid": 100, "test": 200}
    assert len(world.train) > 450
    captions = {name: {text.casefold() for text in world.split(name).columns["caption"]} for name in ("train", "test")}
    assert not captions["train"] & captions["test"]
    counts = np.bincount(world.singles.labels.numpy(), minlength=len(load_categories()))
    assert (counts > 0).mean() > 0.9
    assert sum(bool(texts) for texts in world.test.captions("jpn")) == 200
