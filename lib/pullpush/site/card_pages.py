"""Two pages that are written from cards, so that what a reader adds stands there, too.

*Contents of the library*: a row for each card of the library, and each language. *Sources*: what the book is made of
that others made, whom to credit, and what of it is in published pages. Which recordings an executed page holds is read
from the page: it has players, and beside them names their sources by links to *Sources*.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd

from pullpush.catalogue import Card, Catalogue
from pullpush.data.banks import BANKS
from pullpush.data.languages import language_files, load_languages
from pullpush.data.recordings.registry import SETS
from pullpush.encoders import AUDIO, TEXT
from pullpush.encoders.pretrained import MODELS
from pullpush.errors import PullPushError
from pullpush.losses import TERMS
from pullpush.metrics import METRICS
from pullpush.rewriting import REWRITERS
from pullpush.site.chapters import shown_html

CONTENTS = "<!-- contents of the library -->"
RECORDINGS, WEIGHTS, PUBLISHED = "<!-- recordings -->", "<!-- weights -->", "<!-- published sounds -->"
SOUND = re.compile(r"<audio\b")
NAMED = re.compile(r"\[([^\]]+)\]\((?:\.\./)*sources\.(?:md|ipynb)\)")
OURS = ("ours", "the reader", "its authors")  # how sources begin of what has no credit to give
YES, NO = "yes", "no"


class SourceError(PullPushError, ValueError):
    """A published page holds sounds and does not say whose; the message says what to write."""


def fill(page: Path, tables: Mapping[str, str]) -> None:
    """Put texts into a copy of a page, where their marks stand."""
    text = page.read_text(encoding="utf-8")
    for mark, table in tables.items():
        text = text.replace(mark, table)
    page.write_text(text, encoding="utf-8")


def written(rows: pd.DataFrame) -> str:
    """A table in Markdown, without columns that are empty."""
    rows = rows.loc[:, (rows != "").any()]
    lines = [rows.columns, ["---"] * len(rows.columns), *rows.to_numpy()]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


# ---------------------------------------------------------------- contents of the library


@dataclass(frozen=True)
class Kind:
    """A table of the page.

    heading: above it; reference: the page of the reference; cards: a row each; columns: what only this kind has;
    weights: whether to say below what it is where an encoder's weights come from.
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


def rate(card: Any) -> str:
    """The rate of the audio that an encoder or a model takes.

    >>> rate(AUDIO["clap"]), rate(AUDIO["features"])
    ('48 kHz', 'features')
    """
    return f"{card.sample_rate / 1000:g} kHz" if card.sample_rate else "features"


def _if(name: str) -> Callable[[Any], str]:
    return lambda card: YES if getattr(card, name) else NO


ENCODER = {"trained": trained, "licence": attrgetter("licence")}
LOSS = {"needs": lambda card: ", ".join(card.make.needs), "may use": lambda card: ", ".join(card.make.uses)}
SCORES = {"scores": lambda card: ", ".join(score.name for score in card.scores)}
DATASET = {"truth": lambda card: "labels" if card.labelled else "captions", "`pullpush fetch`": _if("fetch")}
WHOLE = {"licence": attrgetter("licence"), "languages": attrgetter("languages"), "audio at": rate}
KINDS = (
    Kind("Losses", "losses", TERMS, LOSS),
    Kind("Audio encoders", "encoders", AUDIO, {**ENCODER, "audio at": rate}, weights=True),
    Kind("Text encoders", "encoders", TEXT, {**ENCODER, "languages": attrgetter("languages")}, weights=True),
    Kind("Whole published models", "encoders", MODELS, WHOLE, weights=True),
    Kind("Metrics", "metrics", METRICS, {**SCORES, "needs": lambda card: ", ".join(card.needs)}),
    Kind("Datasets", "data", SETS, DATASET),
    Kind("Banks of sounds", "data", BANKS, {}),
    Kind("Rewriters", "rewriting", REWRITERS, {"merges two": _if("merges"), "needs": attrgetter("needs")}),
)


def contents(citations: Collection[str] = ()) -> str:
    """All tables, each under its heading; citations: keys of the bibliography, which are cited where a card has one."""
    parts = []
    for kind in KINDS:
        folder = kind.cards.package.replace(".", "/")
        head = f"## {kind.heading}\n\nFiles of `lib/{folder}`; [reference]({kind.reference}.md)."
        parts.append(f"{head}\n\n{written(table(kind, citations))}")
    head = "## Languages\n\nFiles of `lib/pullpush/data/languages`; [reference](data.md)."
    return "\n\n".join([*parts, f"{head}\n\n{written(languages())}"])


def cited(references: Path) -> set[str]:
    """The keys of a bibliography."""
    return set(re.findall(r"^@\w+\{([^,]+),", references.read_text(encoding="utf-8"), re.MULTILINE))


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
        paper = f" {{cite:p}}`{card.citation}`" if card.citation in citations else ""
        what = [f"**{card.title}.** {card.about}", f"{card.source}{paper}".strip()]
        what += [f"Weights: {card.weights}"] if kind.weights and card.weights else []
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


# ---------------------------------------------------------------- sources


def sources(notebooks: Sequence[Path]) -> dict[str, str]:
    """The tables of the page by their marks; notebooks: the executions that the site shows."""
    tables = {RECORDINGS: recordings(), WEIGHTS: weights(), PUBLISHED: published(notebooks)}
    return {mark: written(table) for mark, table in tables.items()}


def recordings() -> pd.DataFrame:
    """A row a bank or dataset that others recorded: recordings, by, licence, version, what it is."""
    cards: list[Any] = [*BANKS.values(), *SETS.values()]
    return pd.DataFrame([_row(card, "recordings") for card in cards if not card.source.startswith(OURS)])


def weights() -> pd.DataFrame:
    """A row an encoder with weights that others trained: encoder, by, licence, version, where they come from."""
    cards = [card for card in [*AUDIO.values(), *TEXT.values()] if card.weights]
    rows = [_row(card, "encoder") | {"what it is": card.weights} for card in cards]
    return pd.DataFrame(rows).rename(columns={"what it is": "weights"})


def published(notebooks: Iterable[Path]) -> pd.DataFrame:
    """A row a page with sounds: page, sounds (how many players it holds), made from, under."""
    rows = []
    for path in notebooks:
        if count := sum(len(SOUND.findall(html)) for html in shown_html(path)):
            cards = sources_of(path)
            licences = dict.fromkeys(card.licence for card in cards)
            row = {"page": f"[{path.stem}]({path.stem}.md)", "sounds": str(count)}
            rows.append(row | {"made from": ", ".join(card.title for card in cards), "under": "; ".join(licences)})
    return pd.DataFrame(rows, columns=["page", "sounds", "made from", "under"])


def sources_of(path: Path) -> list[Card]:
    """The cards of the sources that a notebook names, each by its title in a link to *Sources*."""
    cards: Mapping[str, Card] = {card.title: card for card in [*BANKS.values(), *SETS.values()]}
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")
    named = list(dict.fromkeys(NAMED.findall(text)))
    example = "[Tux Paint](sources.md)"
    if not named:
        raise SourceError(f"{path.stem} holds sounds and does not say whose: write {example} in the text beside them")
    if wrong := [title for title in named if title not in cards or not cards[title].licence]:
        raise SourceError(
            f"{path.stem} names {', '.join(wrong)} as a source of its sounds, but no bank or dataset with a licence "
            f"on its card has this title: write one that has, such as {example}"
        )
    return [cards[title] for title in named]


def _row(card: Card, head: str) -> dict[str, str]:
    row = {head: f"**{card.title}** (`{card.name}`)", "by": card.authors or card.source, "licence": card.licence}
    return row | {"version": card.version, "what it is": card.about}
