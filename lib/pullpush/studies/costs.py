"""What a step costs at the papers' sizes, read from the table that `benchmarks/paper_sizes.py` counts.

costs.origin()                                    # command, date, versions, what has changed since
costs.ratios("02-svr")                            # a row a system, a column a cost, over the chapter's first system
costs.extra("02-svr", "InfoNCE + bi-DynamicSVR", "bytes")  # ratio − 1 as a Difference, for a ledger
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from IPython.display import Markdown

from pullpush.errors import DataNotFoundError, unknown
from pullpush.golden import versions
from pullpush.lab.provenance import Stamp, stamp
from pullpush.lab.root import find_root
from pullpush.metrics.inference import Difference, Variance

COMMAND = "python benchmarks/paper_sizes.py --out book/measured/paper-sizes.csv"
COUNTED, MEASURED = "counted", "measured, CPU, one thread"
LOSSES = ("infonce", "svr", "ml-clap", "cacl", "kcl")
# What a step goes through that is counted: the losses, how it runs, and both encoders.
PARTS = (
    *(f"losses/{name}" for name in LOSSES),
    "audio/ast",
    "audio/projection",
    "text/sonar",
    "training/objective",
)
NAMED = 4  # changed components that a page names


def table(chapter: str, how: str = COUNTED, *, folder: Path | None = None) -> pd.DataFrame:
    """A chapter's rows: system, text_encoder ("trained", "frozen"), quantity ("FLOPs", "bytes", …), value, ratio.

    Args:
        chapter: as the table names it, such as "02-svr"; ratios are to its first system.
        how: "counted", or how seconds were measured.

    Raises:
        DataNotFoundError: no such file; the message says what makes it.
        UnknownNameError: nothing of this chapter, or nothing found so.
    """
    path = _path(folder)
    if not path.is_file():
        raise DataNotFoundError(f"no {path}: `{COMMAND}` makes it")
    rows = pd.read_csv(path)
    for column, wanted in (("chapter", chapter), ("how", how)):
        if wanted not in set(rows[column]):
            raise unknown(f"{column} in {path.name}", wanted, rows[column].unique())
        rows = rows[rows[column] == wanted]
    return rows.drop(columns=["chapter", "how"]).reset_index(drop=True)


def ratios(chapter: str, how: str = COUNTED, *, folder: Path | None = None) -> pd.DataFrame:
    """`table` as a row a system in its order, a column a cost such as "FLOPs, text trained"."""
    rows = table(chapter, how, folder=folder)
    wide = rows.assign(cost=rows["quantity"] + ", text " + rows["text_encoder"])
    wide = wide.pivot(index="system", columns="cost", values="ratio").rename_axis(columns=None)
    return wide.loc[rows["system"].unique()]


def extra(
    chapter: str, system: str, quantity: str, text_encoder: str = "trained", *, folder: Path | None = None
) -> Difference:
    """What a system costs more than the chapter's first one, as a fraction.

    Raises:
        UnknownNameError: no such system, quantity or text encoder.
    """
    rows = table(chapter, folder=folder)
    for column, wanted in (("text_encoder", text_encoder), ("quantity", quantity), ("system", system)):
        if wanted not in set(rows[column]):
            raise unknown(column, wanted, rows[column].unique())
        rows = rows[rows[column] == wanted]
    return exact(float(rows["ratio"].item()) - 1)


def exact(value: float) -> Difference:
    """A number that was counted, not sampled: neither seeds nor clips could have given another; its width is 0.

    Example:
        >>> exact(0.02).half_width
        0.0
    """
    none = Variance(0.0, 0.0, 0.0, {"seed": 0.0, "clip": 0.0, "interaction": 0.0})
    return Difference(value, value, value, 0.0, float(value == 0), float("inf"), 0.95, 1, 1, 1, none)


def made(how: str = COUNTED, *, folder: Path | None = None) -> Stamp:
    """Where the rows found in one way come from.

    Raises:
        DataNotFoundError: no stamp; the message says what makes it.
    """
    return read_stamp(how, COMMAND, path=_path(folder))


def stale(how: str = COUNTED, *, folder: Path | None = None) -> tuple[str, ...]:
    """Which components do something else since, such as "losses/svr"; empty if none does."""
    return changed(made(how, folder=folder).versions, PARTS)


def origin(how: str = COUNTED, *, folder: Path | None = None) -> Markdown:
    """When and by what the rows were made, and what has changed since."""
    return Markdown(sentence(how, made(how, folder=folder), stale(how, folder=folder)))


def changed(noted: Mapping[str, str], parts: Sequence[str]) -> tuple[str, ...]:
    """Those of some components that do something else than when their versions were noted, or were not noted at all.

    >>> changed(versions("losses/svr"), ["losses/svr", "losses/infonce"])
    ('losses/infonce',)
    """
    return tuple(name for name, version in versions(*parts).items() if noted.get(name) != version)


def since(names: Sequence[str]) -> str:
    """What a page says of components that do something else since rows were made; nothing of none.

    >>> since(["losses/svr"])
    " **Older than today's** losses/svr."
    """
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f" **Older than today's** {', '.join(names[:NAMED])}{more}." if names else ""


def sentence(how: str, source: Stamp, names: Sequence[str]) -> str:
    """When and by what rows were made, as Markdown; names: of components that do something else since."""
    return (
        f"> {how[0].upper()}{how[1:]} on {source.made} UTC in {source.seconds / 60:.0f} minutes (pullpush "
        f"{source.version}, torch {source.packages.get('torch', '–')}) by `{source.command}`.{since(names)}"
    )


def read_stamp(how: str, command: str, *, path: Path) -> Stamp:
    """The stamp of rows found in one way, beside the table at `path`.

    Raises:
        DataNotFoundError: there is none; the message says what makes it.
    """
    source = path.with_suffix(".json")
    stamps = json.loads(source.read_text(encoding="utf-8")) if source.is_file() else {}
    if how not in stamps:
        raise DataNotFoundError(f"no stamp of what was {how} in {source}: `{command}` makes it")
    return Stamp.from_dict(stamps[how])


def write_stamp(how: str, seconds: float, command: str, *, path: Path, parts: Sequence[str] = PARTS) -> None:
    """Say beside the table at `path` when and how rows were found, and by which versions of their parts; other ways'
    stamps stay.
    """
    target = path.with_suffix(".json")
    stamps: Mapping = json.loads(target.read_text(encoding="utf-8")) if target.is_file() else {}
    current = stamp(versions(*parts), seeds=(), seconds=seconds, command=command).to_dict()
    text = json.dumps({**stamps, how: current}, indent=1, ensure_ascii=False)
    target.write_text(text + "\n", encoding="utf-8")


def _path(folder: Path | None) -> Path:
    return (folder or find_root() / "book" / "measured") / "paper-sizes.csv"
