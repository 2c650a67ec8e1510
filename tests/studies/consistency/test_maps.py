"""Maps of clips and their captions."""

from __future__ import annotations

from pullpush.studies.consistency.maps import map_tightness, projected


def test_maps_hold_every_text_and_tight_clusters_are_tight(toy):
    table = projected({"kcl": toy(captions=1, noise=0.05)}, range(10), methods=("t-SNE",))
    assert len(table) == 10 * 4
    assert set(table["language"]) == {"audio", "eng", "fra", "deu"}
    assert map_tightness(table)["ratio"].item() < 0.5
