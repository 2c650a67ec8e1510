"""Flickr30k: photographs of people and what they do, with five captions each.

Its captions are the premises of the inference corpus SNLI: what learnt from SNLI is not to be tested on them.
"""

from __future__ import annotations

from pathlib import Path

from pullpush.data.image_listing import ImageCard, PictureListing, captioned, first_folder, karpathy
from pullpush.errors import DataNotFoundError, PullPushError

FOLDERS = ("flickr30k-images", "flickr30k_images", "images")


def read(place: Path, split: str) -> PictureListing:
    """Flickr30k: its pictures in flickr30k-images, and dataset_flickr30k.json of Karpathy and Fei-Fei; or else
    results.csv (image_name| comment_number| comment) with lists of pictures' numbers, train.txt, val.txt and test.txt,
    such as those of Flickr30k Entities."""
    if (place / "dataset_flickr30k.json").is_file() or not (place / "results.csv").is_file():
        return karpathy("Flickr30k", place, "dataset_flickr30k.json", FOLDERS, split)
    numbers = place / f"{ {'valid': 'val'}.get(split, split) }.txt"
    if not numbers.is_file():
        raise DataNotFoundError(
            f"Flickr30k's results.csv knows no splits: put {numbers} or dataset_flickr30k.json there"
        )
    captions: dict[str, list[str]] = {f"{own}.jpg": [] for own in numbers.read_text(encoding="ascii").split()}
    table = place / "results.csv"
    for line in table.read_text(encoding="utf-8").splitlines()[1:]:
        # One row of the file that its authors give lacks a bar before the caption.
        name, _, rest = line.partition("|")
        if name.strip() in captions:
            captions[name.strip()].append(rest.strip().lstrip("0123456789").lstrip(" |").strip())
    if lacking := [name for name, texts in captions.items() if not texts]:
        raise PullPushError(f"{table} has no caption of {len(lacking)} pictures of {numbers}, such as {lacking[0]}")
    return captioned("Flickr30k", first_folder(place, FOLDERS), list(captions), list(captions.values()), table)


CARD = ImageCard(
    name="flickr30k",
    make=read,
    title="Flickr30k",
    about="31,014 photographs with five captions each; of Karpathy's splits, 1,014 validate and 1,000 test.",
    source="Young et al. 2014, From image descriptions to visual denotations",
    authors="Young, Lai, Hodosh and Hockenmaier; the people of Flickr",
    licence="for research and education, not for commercial use; the pictures are their owners'",
    folder="flickr30k",
    how="ask its authors at the University of Illinois for the pictures, and take dataset_flickr30k.json from "
    "Karpathy's caption_datasets.zip",
)
