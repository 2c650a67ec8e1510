"""Maps of clips and their captions."""

from __future__ import annotations

import numpy as np
import pytest

from pullpush.studies.consistency.maps import map_tightness, projected, tightness_table


def test_maps_hold_every_text_and_tight_clusters_are_tight(toy):
    table = projected({"kcl": toy(captions=1, noise=0.05)}, range(10), methods=("t-SNE",))
    assert len(table) == 10 * 4
    assert set(table["language"]) == {"audio", "eng", "fra", "deu"}
    assert map_tightness(table)["ratio"].item() < 0.5


def test_the_space_stands_below_the_maps(toy):
    table = projected({"kcl": toy(captions=1, noise=0.05)}, range(10), methods=("t-SNE",))
    rows = tightness_table({"kcl": table}, {"kcl": np.array([[0.2, 0.4]])})
    assert rows["where"].tolist() == ["t-SNE", "the space"]
    assert rows["kcl"].tolist() == pytest.approx([map_tightness(table)["ratio"].item(), 0.3])
