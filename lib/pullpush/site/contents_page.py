"""The page *Contents of the library*: a row for each card of the library, and each language.

Rows come from the cards and from the files of languages, so that what a reader adds stands there, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pullpush.catalogue import Card, Catalogue
from pullpush.data.banks import BANKS
from pullpush.data.languages import language_files, load_languages
from pullpush.data.recordings.registry import SETS
from pullpush.encoders import AUDIO, TEXT
from pullpush.encoders.published import MODELS
from pullpush.losses import TERMS
from pullpush.metrics import METRICS
from pullpush.rewriting import REWRITERS

MARK = "<!-- contents of the library -->"
YES, NO = "yes", "no"


@dataclass(frozen=True)
class Kind:
    """A table of the page.

    heading: above it; reference: the page of the reference; cards: a row each; columns: what only this kind has;
    weights: where an encoder's weights come from, told below what it is.
    """

    heading: str
    reference: str
    cards: Catalogue[Any]
    columns: Mapping[str, Callable[[Any], str]]
    weights: bool = False


def trained(card: Any) -> str:
    """Whether training changes an encoder's weights.

    >>> trained(AUDIO["cnn"]), trained(TEXT["use"])
    ('from scratch', 'never')
    """
    return "never" if card.frozen else "on, or frozen" if card.pretrained else "from scratch"


def hears(card: Any) -> str:
    """The rate of the audio that an encoder or a model takes.

    >>> hears(AUDIO["clap"]), hears(AUDIO["features"])
    ('48 kHz', 'features')
    """
    return f"{card.sample_rate / 1000:g} kHz" if card.sample_rate else "features"


ENCODER: Mapping[str, Callable[[Any], str]] = {"trained": trained, "licence": lambda card: card.licence}
KINDS = (
    Kind(
        "Losses",
        "losses",
        TERMS,
        {"needs": lambda card: ", ".join(card.make.needs), "may use": lambda card: ", ".join(card.make.uses)},
    ),
    Kind(
        "Audio encoders",
        "encoders",
        AUDIO,
        {**ENCODER, "hears": hears},
        weights=True,
    ),
    Kind("Text encoders", "encoders", TEXT, {**ENCODER, "languages": lambda card: card.languages}, weights=True),
    Kind(
        "Whole published models",
        "encoders",
        MODELS,
        {"licence": lambda card: card.licence, "languages": lambda card: card.languages, "hears": hears},
        weights=True,
    ),
    Kind(
        "Metrics",
        "metrics",
        METRICS,
        {
            "scores": lambda card: ", ".join(score.name for score in card.scores),
            "needs": lambda card: ", ".join(card.needs),
        },
    ),
    Kind(
        "Datasets",
        "data",
        SETS,
        {
            "truth": lambda card: "labels" if card.labelled else "captions",
            "`pullpush fetch`": lambda card: YES if card.fetch else NO,
        },
    ),
    Kind("Banks of sounds", "data", BANKS, {}),
    Kind(
        "Rewriters",
        "rewriting",
        REWRITERS,
        {"merges two": lambda card: YES if card.merges else NO, "needs": lambda card: card.needs},
    ),
)


def complete(page: Path, *, references: Path) -> None:
    """Put the tables into a copy of the page, where MARK stands; references: the book's bibliography."""
    keys = set(re.findall(r"^@\w+\{([^,]+),", references.read_text(encoding="utf-8"), re.MULTILINE))
    page.write_text(page.read_text(encoding="utf-8").replace(MARK, markdown(keys)), encoding="utf-8")


def markdown(citations: Collection[str] = ()) -> str:
    """All tables, each under its heading; citations: keys of the bibliography, which are cited where a card has one."""
    parts = []
    for kind in KINDS:
        folder = kind.cards.package.replace(".", "/")
        head = f"## {kind.heading}\n\nFiles of `lib/{folder}`; [reference]({kind.reference}.md)."
        parts.append(f"{head}\n\n{written(table(kind, citations))}")
    head = "## Languages\n\nFiles of `lib/pullpush/data/languages`; [reference](data.md)."
    return "\n\n".join([*parts, f"{head}\n\n{written(languages())}"])


def plain() -> str:
    """The same for a terminal: a line for each card and language.

    >>> print(plain())  # doctest: +ELLIPSIS
    Losses
      additive-margin   Additive margin. InfoNCE whose positive must win by a margin; ...
    """
    lines = []
    for kind in KINDS:
        lines += [kind.heading, *(f"  {name:17} {card.title}. {card.about}" for name, card in kind.cards.items())]
    return "\n".join([*lines, "Languages", *(f"  {code:17} {one.name}" for code, one in load_languages().items())])


def table(kind: Kind, citations: Collection[str] = ()) -> pd.DataFrame:
    """A row a card: name, what it is with its source, what only this kind has, file."""
    rows = []
    for name, card in kind.cards.items():
        what = [f"**{card.title}.** {card.about}", _source(card, citations)]
        if kind.weights and card.weights:
            what.append(f"Weights: {card.weights}")
        row = {"name": f"`{name}`", "what it is": "<br>".join(part for part in what if part)}
        row |= {column: value(card) for column, value in kind.columns.items()}
        rows.append(row | {"file": f"`{kind.cards.file_of(name).name}`"})
    return pd.DataFrame(rows)


def languages() -> pd.DataFrame:
    """A row a language: its code, its names, where it occurs, file."""
    files = {path.stem: path for path in language_files()}
    rows = [
        {
            "name": f"`{code}`",
            "what it is": f"**{language.name}.** {language.native}",
            "in ATRI": YES if language.book else NO,
            "SONAR's code": f"`{language.flores}`" if language.flores else "",
            "captions in Tux Paint": YES if language.tuxpaint else NO,
            "file": f"`{files[code].name}`",
        }
        for code, language in load_languages().items()
    ]
    return pd.DataFrame(rows)


def _source(card: Card, citations: Collection[str]) -> str:
    cited = f" {{cite:p}}`{card.citation}`" if card.citation in citations else ""
    return f"{card.source}{cited}".strip()


def written(rows: pd.DataFrame) -> str:
    """A table in Markdown, without columns that are empty."""
    rows = rows.loc[:, (rows != "").any()]
    lines = [rows.columns, ["---"] * len(rows.columns), *rows.to_numpy()]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
