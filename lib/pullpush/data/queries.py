"""Queries of their own with several right clips each, as DCASE 2025 annotated Clotho's evaluation clips anew.

Another truth, not more of the old one: of the clips that a caption was written for, fewer than half are right for it in
the second annotation. Scores on these queries and on the captions are not comparable.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from pullpush.data.clips import Clips
from pullpush.data.registry import NAMED, official_table
from pullpush.data.texts import clean
from pullpush.errors import PullPushError


class Queries(NamedTuple):
    """Q texts, and which of N clips are right for each: `(Q, N)` boolean."""

    texts: list[str]
    relevance: Tensor


def read_queries(path: str | Path, clips: Clips, *, cleaning: str = "none") -> Queries:
    """Queries from a CSV: a column `query`, and `audio_filenames`, a list as Python writes it (DCASE's
    `metadata_eval.csv`), or `file_name`, one right clip a row.

    Rows of one query are gathered. Files that are none of the clips, and queries that lose all of theirs, are left out
    with a warning that counts and names them.

    cleaning: of the queries, as of the captions that the model was trained with; see `texts.clean`.

    Raises:
        DataNotFoundError: there is no such file.
        PullPushError: it is another table, or none of its files is among the clips.
    """
    path = Path(path)
    table = official_table(path, ["query"])
    if not {"audio_filenames", "file_name"} & set(table.columns):
        raise PullPushError(f"{path} needs a column audio_filenames or file_name, has {', '.join(table.columns)}")
    listed = "audio_filenames" in table.columns
    column = table["audio_filenames" if listed else "file_name"]
    wanted: dict[str, list[str]] = {}
    for query, value in zip(table["query"], column, strict=True):
        wanted.setdefault(clean(query.strip(), cleaning), []).extend(_names(value, path) if listed else [value])
    return _matched(wanted, clips, path)


def _matched(wanted: dict[str, list[str]], clips: Clips, path: Path) -> Queries:
    row = {name: number for number, name in enumerate(clips.columns["file"])}
    right = {query: [row[name] for name in names if name in row] for query, names in wanted.items()}
    texts = [query for query, rows in right.items() if rows]
    if not texts:
        raise PullPushError(f"no file of {path} is among the {len(clips)} clips: is it the table of this dataset?")
    _warn(
        "files that are none of the clips", sorted({n for names in wanted.values() for n in names} - row.keys()), path
    )
    _warn("queries without a clip", [query for query, rows in right.items() if not rows], path)
    relevance = torch.zeros(len(texts), len(clips), dtype=torch.bool)
    for number, query in enumerate(texts):
        relevance[number, right[query]] = True
    return Queries(texts, relevance)


def _names(value: str, path: Path) -> list[str]:
    """`"['a.wav', 'b.wav']"` as a list; nothing of it is run."""
    try:
        names = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise PullPushError(f"{path}: audio_filenames must be lists such as ['a.wav'], got {value[:80]!r}") from error
    return [str(name) for name in names]


def _warn(what: str, names: Sequence[str], path: Path) -> None:
    if names:
        some = f"{', '.join(names[:NAMED])}{' …' if names[NAMED:] else ''}"
        warnings.warn(f"{path.name}: {len(names)} {what} left out: {some}", stacklevel=4)
