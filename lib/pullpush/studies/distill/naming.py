"""What the page of the lab writes of its tables: systems of Table 1, comparisons, how ambiguous its worlds are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pullpush.lab.paper import paper_table
from pullpush.studies.distill.comparisons import NUMBERED, TABLE_2
from pullpush.studies.distill.grounds import Grounds
from pullpush.studies.distill.stages import AMBIGUITY, STANDS_FOR, SYSTEMS, Stage
from pullpush.studies.distill.truth import fits_by_caption

# What figures write of encoders and scores.
NAMES: Mapping[str, str] = {
    **{ears: f"{ears} (for {theirs})" for ears, theirs in STANDS_FOR.items()},
    **{metric: f"{metric.split(' ')[0]}, {metric.split(' ')[1]} annotation" for metric in TABLE_2},
}


def systems(paper: str) -> pd.DataFrame:
    """Table 1 with our stages: columns system, distillation, augmentation, clusters (as the paper has them), here.

    >>> systems("distill_cluster").iloc[4].tolist()
    ['5', 'yes', 'yes', 'BERTopic', 'refinetune, soft labels, augmentation, generic topics']
    """
    printed = paper_table(paper, 1)
    rows = []
    for name, stage in SYSTEMS.items():
        told = printed[printed["system"] == f"SID {name}"].set_index("metric")
        cells = {column: _switch(told, column) for column in ("distillation", "augmentation")}
        parts = (stage.kind, "soft labels" * bool(stage.teacher), "augmentation" * bool(stage.augment))
        here = ", ".join([*filter(None, parts), *([f"{stage.topics} topics"] if stage.topics else [])])
        rows.append({"system": name, **cells, "clusters": _source(told), "here": here})
    found = pd.DataFrame(rows)
    return pd.concat([found[found["system"].isin(NUMBERED)], found[~found["system"].isin(NUMBERED)]], ignore_index=True)


def _switch(told: pd.DataFrame, column: str) -> str:
    return "–" if column not in told.index else "yes" if float(told.loc[column, "value"]) else "no"


def _source(told: pd.DataFrame) -> str:
    rows = [name for name in told.index if "cluster" in name]
    if not rows:
        return "–"
    noted = dict(part.split("=", 1) for part in str(told.loc[rows[0], "note"]).split(";") if "=" in part)
    return {"X": "no"}.get(noted.get("printed", ""), noted.get("printed", "–"))


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """`lab.comparisons.gains` with the column comparison, "2 over 1"."""
    return table.assign(comparison=[f"{row['system']} over {row['baseline']}" for row in table.to_dict("records")])


def fits_of(ground: Grounds, worlds: Sequence[str]) -> pd.DataFrame:
    """How ambiguous worlds are: columns world, about, clips a caption fits in training, in test (means)."""
    rows = []
    for world in worlds:
        clips = ground.source(Stage("finetune"), world)
        means = [
            float((each["fits"] * each["share"]).sum()) for each in map(fits_by_caption, (clips.train, clips.test))
        ]
        rows.append((world, AMBIGUITY[world].about, *means))
    return pd.DataFrame(rows, columns=["world", "about", "fits in training", "fits in the test"])


def disagreement(places: pd.DataFrame) -> str:
    """In words: how many pairs of systems and encoders change their order between the annotations (mAP@10)."""
    many, one = (places[f"mAP@10 {kind}"].to_numpy() for kind in ("multiple", "single"))
    first, second = np.triu_indices(len(places), 1)
    changed = int((np.sign(many[first] - many[second]) * np.sign(one[first] - one[second]) < 0).sum())
    return (
        f"Of {len(first)} pairs of rows {changed} stand the other way round by mAP@10 under multiple annotation than "
        "under single annotation."
    )
