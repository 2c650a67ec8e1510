"""What a step costs at the papers' sizes, read from the table that `benchmarks/paper_sizes.py` counts.

costs.origin()                                    # command, date, versions, what has changed since
costs.ratios("02-svr")                            # a row a system, a column a cost, over the chapter's first system
costs.extra("02-svr", "InfoNCE + bi-DynamicSVR", "bytes")  # ratio − 1 as a Difference, for a ledger
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from IPython.display import Markdown

from pullpush.metrics.inference import Difference, Variance
from pullpush.studies import measured
from pullpush.studies.measured import COUNTED, MEASURED as MEASURED

TABLE = "paper-sizes"


def origin(how: str = COUNTED) -> Markdown:
    """When and by what the rows were made, and what has changed since."""
    return measured.origin(TABLE, how)


def table(chapter: str, how: str = COUNTED, *, folder: Path | None = None) -> pd.DataFrame:
    """A chapter's rows: system, text_encoder ("trained", "frozen"), quantity ("FLOPs", "bytes", …), value, ratio.

    Args:
        chapter: as the table names it, such as "02-svr"; ratios are to its first system.
        how: "counted", or how seconds were measured.

    Raises:
        DataNotFoundError, UnknownNameError: see `measured.read`.
    """
    return measured.read(TABLE, folder=folder, chapter=chapter, how=how)


def ratios(chapter: str) -> pd.DataFrame:
    """What was counted as a row a system in its order, a column a cost such as "FLOPs, text trained"."""
    rows = table(chapter)
    wide = rows.assign(cost=rows["quantity"] + ", text " + rows["text_encoder"])
    wide = wide.pivot(index="system", columns="cost", values="ratio").rename_axis(columns=None)
    return wide.loc[rows["system"].unique()]


def extra(chapter: str, system: str, quantity: str, text_encoder: str = "trained") -> Difference:
    """What a system costs more than the chapter's first one, as a fraction.

    Raises:
        UnknownNameError: no such chapter, system, quantity or text encoder.
    """
    chosen = {"text_encoder": text_encoder, "quantity": quantity, "system": system}
    rows = measured.read(TABLE, chapter=chapter, how=COUNTED, **chosen)
    return exact(float(rows["ratio"].item()) - 1)


def exact(value: float) -> Difference:
    """A number that was counted, not sampled: neither seeds nor clips could have given another; its width is 0.

    >>> exact(0.02).half_width
    0.0
    """
    none = Variance(0.0, 0.0, 0.0, {"seed": 0.0, "clip": 0.0, "interaction": 0.0})
    return Difference(value, value, value, 0.0, float(value == 0), float("inf"), 0.95, 1, 1, 1, none)
