"""ImageNet's validation pictures, and five sets that test what was learnt by other pictures of the same classes.

Names of the classes are read from a file, see `image_listing.class_names`. Of ImageNet-O, whose pictures are by design
of none of ImageNet's 1,000 classes, a folder names the class that a network took its pictures for; that accuracy on it
is what CyCLIP and The Language Encoder report.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from pullpush.data.image_listing import ImageCard, PictureListing, class_folders, first_folder


def read(place: Path, split: str, *, title: str, count: int, whole: bool, folders: tuple[str, ...]) -> PictureListing:
    """Pictures in a folder for each class: n01440764/*.JPEG, or 0/*.jpeg; see `image_listing.class_folders`."""
    return class_folders(title, first_folder(place, folders), count, whole=whole)


def card(
    name: str, title: str, folder: str, pictures: int, *, count: int = 1000, inside: str = ".", **rest: Any
) -> ImageCard:
    """The card of a set whose pictures lie in `inside`, or else in its folder itself."""
    return ImageCard(
        name=name,
        make=partial(read, title=title, count=count, whole=count == 1000, folders=(inside, ".")),
        title=title,
        about=f"{pictures:,} pictures in {count:,} classes.",
        folder=folder,
        labelled=True,
        splits=("test",),
        **rest,
    )


MEASURED = "Hendrycks et al. 2021, Natural adversarial examples"
OWNERS = "their authors'; the pictures are their owners'"
CARDS = (
    card(
        "imagenet1k",
        "ImageNet",
        "imagenet",
        50_000,
        inside="val",
        source="Russakovsky et al. 2015, ImageNet large scale visual recognition challenge",
        authors="Russakovsky et al., Stanford and Princeton; the pictures' owners",
        licence="for research and education, not for commercial use",
        how="take ILSVRC2012_img_val.tar from image-net.org, and put each picture to val/<WordNet id of its class>",
    ),
    card(
        "imagenetv2",
        "ImageNetV2",
        "imagenetv2-matched-frequency-format-val",
        10_000,
        source="Recht et al. 2019, Do ImageNet classifiers generalize to ImageNet?",
        authors="Recht, Roelofs, Schmidt and Shankar; the people of Flickr",
        licence=f"MIT, {OWNERS}",
        how="unpack imagenetv2-matched-frequency.tar.gz of imagenetv2.org",
    ),
    card(
        "imagenet-sketch",
        "ImageNet-Sketch",
        "imagenet-sketch",
        50_889,
        inside="sketch",
        source="Wang et al. 2019, Learning robust global representations by penalizing local predictive power",
        authors="Wang, Ge, Lipton and Xing; the pictures' owners",
        licence=f"MIT, {OWNERS}",
        how="unpack the archive that github.com/HaohanWang/ImageNet-Sketch links to, whose folder is `sketch`",
    ),
    *(
        card(
            f"imagenet-{letter}",
            f"ImageNet-{letter.upper()}",
            f"imagenet-{letter}",
            pictures,
            count=200,
            source=source,
            authors="Hendrycks et al.; the pictures' owners",
            licence=f"MIT, {OWNERS}",
            how=f"unpack imagenet-{letter}.tar, to which {site} links",
        )
        for letter, pictures, source, site in (
            ("o", 2_000, MEASURED, "github.com/hendrycks/natural-adv-examples"),
            ("a", 7_500, MEASURED, "github.com/hendrycks/natural-adv-examples"),
            ("r", 30_000, "Hendrycks et al. 2021, The many faces of robustness", "github.com/hendrycks/imagenet-r"),
        )
    ),
)
