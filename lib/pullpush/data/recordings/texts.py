"""What recordings are captioned with: their tables' captions as papers clean them, one of them or each as a pair.

Queries of their own have several right clips each, as DCASE 2025 annotated Clotho's evaluation clips anew: another
truth, not more of the old one. Of the clips that a caption was written for, fewer than half are right for it in the
second annotation, so scores on these queries and on the captions are not comparable.
"""

from __future__ import annotations

import ast
import re
import string
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from pullpush.cache import content_key
from pullpush.data.clips import Clips, Columns, NoLabelsError, StoredClips
from pullpush.data.language.vocabulary import load_labels
from pullpush.data.recordings.registry import official_table
from pullpush.data.sets.folder import read_captions
from pullpush.errors import PullPushError, few, unknown

CLEANINGS = ("none", "ml-clap", "dcase")
PROMPT = "This is a sound of {label}."  # SupCLAP §4.1
_SPACED = re.compile(r'[(),.!?;:|*"，。！？；：、]')
_REMOVED = str.maketrans("", "", string.punctuation)


def clean(text: str, cleaning: str) -> str:
    """A caption as a paper's code hands it to the text encoder.

    cleaning: "none", as it is written; "ml-clap", in lower case with punctuation turned into spaces, as ML-CLAP and
    WavCaps do (but for the spaces that theirs leaves at the end); "dcase", in lower case without punctuation, as the
    baseline of DCASE 2025 does. Apostrophes and hyphens stay with "ml-clap" and vanish with "dcase".

    Raises:
        UnknownNameError: another cleaning.

    >>> clean("A dog barks, then it's quiet.", "ml-clap"), clean("A dog barks, then it's quiet.", "dcase")
    ("a dog barks then it's quiet", 'a dog barks then its quiet')
    """
    if cleaning not in CLEANINGS:
        raise unknown("text cleaning", cleaning, CLEANINGS)
    if cleaning == "none":
        return text
    if cleaning == "dcase":
        return text.lower().translate(_REMOVED)
    return " ".join(_SPACED.sub(" ", text.lower()).split())


def recorded_captions(
    title: str, tables: Mapping[str, Path], cleaning: str, columns: Columns, language: str, *, own: str = "eng"
) -> list[list[str]]:
    """The captions of recordings: in the set's own language from their column, in others from tables; none for files
    that are not in a table.
    """
    if language in tables:
        table = read_captions(tables[language])
        found = [table.get(name, []) for name in columns["file"]]
    elif language == own and "captions" in columns:
        found = columns["captions"]
    else:
        offered = [*([own] if "captions" in columns else []), *tables]
        raise unknown(f"language of {title}'s captions", language, offered)
    return [[clean(text, cleaning) for text in captions] for captions in found]


def every_caption(clips: StoredClips, language: str = "eng") -> StoredClips:
    """Clips of which each comes once for each of its captions: what ML-CLAP, GLAP and DCASE call an epoch.

    A clip's twins may meet in a batch, where a loss takes each for the other's negative. Captions in a further language
    go with those in `language` by their number; a twin without one has none.

    Returns:
        One row a caption, clip by clip; the column "caption" has its number, from 0.
    """
    counts = [len(captions) for captions in clips.captions(language)]
    twins = clips.select([row for row, count in enumerate(counts) for _ in range(count)])
    numbers = [number for count in counts for number in range(count)]
    return replace(
        twins,
        key=content_key([twins.key, "every caption"]),
        columns={**twins.columns, "caption": numbers},
        write=partial(numbered_captions, clips.write),
    )


def numbered_captions(write, columns: Columns, language: str) -> list[list[str]]:
    """Of what `write` gives for each clip, the caption that the column "caption" numbers."""
    captions = write(columns, language)
    return [texts[number : number + 1] for texts, number in zip(captions, columns["caption"], strict=True)]


def shared_captions(captions: Sequence[Sequence[str]]) -> int:
    """How many captions another clip has, too, in the same words; a system cannot tell whose they are.

    Ties count against the system here, by the order of sorting elsewhere.

    >>> shared_captions([["a dog barks", "a dog"], ["a dog barks"], ["rain", "rain"]])
    2
    """
    owners: dict[str, set[int]] = {}
    for clip, texts in enumerate(captions):
        for text in texts:
            owners.setdefault(text, set()).add(clip)
    return sum(len(owners[text]) > 1 for texts in captions for text in texts)


def label_prompts(
    classes: Sequence[str],
    language: str = "eng",
    template: str | None = None,
    *,
    prompt: str = "",
    own: str = "eng",
) -> list[str]:
    """One sentence a class, by a template or else a prompt with "{label}" in it, or as SupCLAP asks for it.

    >>> label_prompts(["dog_bark"]), label_prompts(["dog_bark"], "jpn")
    (['This is a sound of dog bark.'], ['これは犬の吠え声の音です。'])
    """
    if not classes:
        raise NoLabelsError("these clips have captions, not labels: take a classification set such as esc50")
    if language != own:
        return load_labels().prompts(classes, language, template or prompt or None)
    return [(template or prompt or PROMPT).format(label=label.replace("_", " ")) for label in classes]


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
    wanted: dict[str, list[str]] = {}
    for query, value in zip(table["query"], table["audio_filenames" if listed else "file_name"], strict=True):
        wanted.setdefault(clean(query.strip(), cleaning), []).extend(_names(value, path) if listed else [value])
    place = {name: number for number, name in enumerate(clips.columns["file"])}
    right = {query: [place[name] for name in names if name in place] for query, names in wanted.items()}
    texts = [query for query, rows in right.items() if rows]
    if not texts:
        raise PullPushError(f"no file of {path} is among the {len(clips)} clips: is it the table of this dataset?")
    strange = sorted({name for names in wanted.values() for name in names} - place.keys())
    lost = [query for query, rows in right.items() if not rows]
    for what, names in {"files that are none of the clips": strange, "queries without a clip": lost}.items():
        if names:
            warnings.warn(f"{path.name}: {len(names)} {what} left out: {few(names)}", stacklevel=2)
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
