"""Colours can be told apart by all, and no two methods of a figure share one."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from toys import DISTANCE, add  # noqa: F401 - a fixture

from pullpush.data.languages import LANGUAGES, load_languages
from pullpush.metrics import inference
from pullpush.show import palette
from pullpush.show.curves import curves
from pullpush.show.palette import language_colour, language_name, method_styles

FAMILIES = ["infonce", "infonce+bi-static-svr", "infonce+bi-dynamic-svr"]
SIX = [*FAMILIES, *(name.replace("infonce", "siglip") for name in FAMILIES)]
SCHEMES = ["ml-clap", "cacl", "kcl"]
# Viénot, Brettel & Mollon (1999), in linear RGB: red blindness and green blindness.
BLINDNESS = {
    "protan": np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
    "deutan": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
}


def test_parts_and_verdicts_have_a_look_each():
    assert len({colour for _, colour in palette.PARTS.values()}) == len(palette.PARTS)
    assert set(palette.VERDICTS) == set(inference.VERDICTS)
    assert len(set(palette.VERDICTS.values())) == len({marker + fill for marker, _, fill in palette.VERDICTS.values()})


@pytest.mark.parametrize("names", [SIX, [*SCHEMES, "infonce"], [*FAMILIES, "simple-reweight"]])
@pytest.mark.parametrize("blindness", BLINDNESS)
def test_methods_that_the_book_compares_can_be_told_apart_by_the_colour_blind(names, blindness):
    styles = method_styles(names)
    seen = {name: BLINDNESS[blindness] @ np.array(to_rgb(styles[name]["colour"])) ** 2.2 for name in names}
    for first, second in combinations(names, 2):
        assert np.linalg.norm(seen[first] - seen[second]) > 0.1, f"{first} and {second} look alike"


def test_no_two_methods_of_a_figure_share_a_colour():
    every = [*SIX, *SCHEMES, "one of my own", "another", "a third"][:12]
    for names in (every, every[::-1], ["kcl", "infonce+bi-static-svr"], ["a", "b", "c", "d", "e", "f"]):
        colours = [style["colour"] for style in method_styles(names).values()]
        assert len(set(colours)) == len(names)


def test_a_new_method_has_the_same_colour_wherever_it_is_free_and_is_never_black():
    alone = method_styles(["my-loss"])["my-loss"]
    assert alone["label"] == "my-loss"
    assert alone["colour"] != palette.BLACK
    assert method_styles(["infonce", "my-loss", "kcl"])["my-loss"] == alone == method_styles(["my-loss"])["my-loss"]


def test_more_methods_than_colours_are_refused():
    with pytest.raises(ValueError, match="40 methods in one figure, but only 12 colours: draw fewer"):
        method_styles(f"method {number}" for number in range(40))


def test_every_language_of_the_book_has_a_name_and_a_colour_of_its_own():
    assert {load_languages()[code].colour for code in LANGUAGES} <= set(palette.ROLES)
    assert len({language_colour(code) for code in LANGUAGES}) == len(LANGUAGES)
    assert language_name("jpn") == "Japanese"
    assert (language_name("xx"), language_colour("xx")) == ("xx", palette.BLACK)


def test_a_new_loss_has_the_title_and_the_colour_of_its_card(add):  # noqa: F811
    add("losses/distance.py", DISTANCE)
    styles = method_styles(["kcl", "distance"])
    assert styles["distance"] == {"label": "Distance", "colour": palette.ROLES["sky"]}
    table = pd.DataFrame({"system": ["kcl", "distance"] * 20, "seed": 0, "step": np.arange(40) // 2, "value": 0.5})
    lines = curves(table, "step").axes[0].lines
    drawn = {line.get_label(): to_hex(line.get_color()).upper() for line in lines}
    assert drawn == {"KCL": palette.GREEN, "Distance": palette.SKY}
