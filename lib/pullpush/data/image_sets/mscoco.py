"""MS COCO: photographs of everyday scenes with five captions each."""

from __future__ import annotations

from pathlib import Path

from pullpush.data.image_listing import CAPTIONS, ImageCard, PictureListing, captioned, karpathy, read_json
from pullpush.errors import PullPushError


def read(place: Path, split: str) -> PictureListing:
    """MS COCO of 2014 in the splits of Karpathy and Fei-Fei: dataset_coco.json, train2014/*.jpg and val2014/*.jpg."""
    return karpathy("MS COCO", place, "dataset_coco.json", (".",), split)


def read_official(place: Path, split: str) -> PictureListing:
    """MS COCO in its own splits of 2017: annotations/captions_val2017.json, val2017/*.jpg and so on; the captions of
    the test pictures are not public, and those of validation are tested on."""
    part = {"train": "train2017", "test": "val2017"}[split]
    table = place / "annotations" / f"captions_{part}.json"
    found = read_json(table)
    try:
        names = {row["id"]: row["file_name"] for row in found["images"]}
        captions: dict[int, list[str]] = {own: [] for own in names}
        for row in sorted(found["annotations"], key=lambda row: row["id"]):
            captions[row["image_id"]].append(row["caption"].strip())
    except (KeyError, TypeError) as error:
        raise PullPushError(f"{table} is no table of captions of MS COCO: {error} is missing") from error
    own = [number for number in names if captions[number]]
    return captioned(
        "MS COCO",
        place / part,
        [names[number] for number in own],
        [captions[number][:CAPTIONS] for number in own],
        table,
    )


ABOUT = {
    "source": "Chen et al. 2015, Microsoft COCO captions: data collection and evaluation server",
    "authors": "the COCO Consortium; the people of Flickr",
    "licence": "captions CC BY 4.0; each picture its own licence of Flickr's",
    "folder": "mscoco",
}
CARDS = (
    ImageCard(
        name="mscoco",
        make=read,
        title="MS COCO",
        about="123,287 photographs with five captions each; of Karpathy's splits, 5,000 validate and 5,000 test.",
        how="take train2014.zip and val2014.zip from cocodataset.org, and dataset_coco.json from Karpathy's "
        "caption_datasets.zip",
        **ABOUT,
    ),
    ImageCard(
        name="mscoco-2017",
        make=read_official,
        title="MS COCO 2017",
        about="118,287 photographs to learn from and 5,000 to test on, not those of Karpathy's split.",
        how="take train2017.zip, val2017.zip and annotations_trainval2017.zip from cocodataset.org",
        splits=("train", "test"),
        **ABOUT,
    ),
)
