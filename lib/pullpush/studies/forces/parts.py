"""What the push on a caption is made of, over temperature and batch size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from torch import Tensor

from pullpush.studies.means import by_clip, plain
from pullpush.studies.push_parts import PARTS, SHARES, forces_by_clip as forces_by_clip, forces_in_batches


def parts_by_setting(
    spaces: Mapping[str, tuple[Tensor, Tensor]],
    *,
    tau: float,
    batch_size: int,
    taus: Sequence[float] = (0.02, 0.05, 0.07, 0.1, 0.2, 0.5, 1.0),
    batch_sizes: Sequence[int] = (4, 8, 24, 64, 128, 256, 512),
) -> pd.DataFrame:
    """Means of `forces_in_batches` over temperatures (at `batch_size`) and over batch sizes (at `tau`).

    Args:
        spaces: name of the model → text and audio embeddings, `(N, d)` each.

    Returns:
        Columns model, setting ("temperature" or "batch size"), value, those of `forces_by_clip`, and the ratios of mean
        norms perpendicular_over_pull and sideways_over_pull.
    """
    rows = []
    for name, (text, audio) in spaces.items():
        points = [("temperature", value, value, batch_size) for value in taus]
        points += [("batch size", size, tau, size) for size in batch_sizes if size <= len(text)]
        for setting, value, temperature, size in points:
            mean = forces_in_batches(text, audio, temperature, size, passes=2).mean()
            over = {f"{part}_over_pull": mean[part] / mean["pull"] for part in SHARES}
            rows.append({"model": name, "setting": setting, "value": value, **mean, **over})
    return pd.DataFrame(rows)


def parts_table(found: Mapping[str, pd.DataFrame], dimensions: int) -> pd.DataFrame:
    """Means over clips ± half-widths of 95 % intervals, a column a model, and what the shares of a random push are.

    found: model → `forces_in_batches`; dimensions: d of the embeddings. A line takes one of them, a plane takes two.
    """
    chance = {"perpendicular_share": f"{1 - 1 / dimensions:.3f}", "sideways_share": f"{1 - 2 / dimensions:.3f}"}
    rows = [
        {
            "force": name.replace("_", " "),
            **{model: plain(by_clip(table[name])) for model, table in found.items()},
            "by chance": chance.get(name, "–"),
        }
        for name in (*PARTS, *SHARES.values())
    ]
    return pd.DataFrame(rows)
