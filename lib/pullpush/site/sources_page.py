"""The page *Sources*: what the book is made of that others made, whom to credit, and what of it is in published pages.

Rows come from cards: of banks and datasets (recordings), of encoders (weights). Which recordings an executed page holds
is read from the page: it has players, and beside them names their sources by links to this page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd

from pullpush.catalogue import Card
from pullpush.data.banks import BANKS
from pullpush.data.recordings.registry import SETS
from pullpush.encoders import AUDIO, TEXT
from pullpush.errors import PullPushError
from pullpush.site.contents_page import written
from pullpush.site.front_page import shown_html

RECORDINGS, WEIGHTS, PUBLISHED = "<!-- recordings -->", "<!-- weights -->", "<!-- published sounds -->"
SOUND = re.compile(r"<audio\b")
NAMED = re.compile(r"\[([^\]]+)\]\((?:\.\./)*sources\.(?:md|ipynb)\)")
OURS = ("ours", "the reader", "data/synthetic.py", "its authors")  # how sources begin of what has no credit to give


class SourceError(PullPushError, ValueError):
    """A published page holds sounds and does not say whose; the message says what to write."""


def complete(page: Path, notebooks: Sequence[Path]) -> None:
    """Put the tables into a copy of the page, where its marks stand.

    notebooks: the executions that the site shows.

    Raises:
        SourceError: a page with sounds names no source of them, or one that no card has.
    """
    text = page.read_text(encoding="utf-8")
    for mark, table in ((RECORDINGS, recordings()), (WEIGHTS, weights()), (PUBLISHED, published(notebooks))):
        text = text.replace(mark, written(table))
    page.write_text(text, encoding="utf-8")


def recordings() -> pd.DataFrame:
    """A row a bank or dataset that others recorded: recordings, by, licence, version, what it is."""
    return pd.DataFrame([_row(card, "recordings") for card in _of_others([*BANKS.values(), *SETS.values()])])


def weights() -> pd.DataFrame:
    """A row an encoder with weights that others trained: encoder, by, licence, version, where they come from."""
    cards = [card for card in [*AUDIO.values(), *TEXT.values()] if card.weights]
    rows = [_row(card, "encoder") | {"what it is": card.weights} for card in cards]
    return pd.DataFrame(rows).rename(columns={"what it is": "weights"})


def published(notebooks: Iterable[Path]) -> pd.DataFrame:
    """A row a page with sounds: page, sounds (how many players it holds), made from, under.

    Raises:
        SourceError: see `complete`.
    """
    rows = []
    for path in notebooks:
        if count := sounds(path):
            cards = sources_of(path)
            licences = dict.fromkeys(card.licence for card in cards)
            row = {"page": f"[{path.stem}]({path.stem}.md)", "sounds": str(count)}
            rows.append(row | {"made from": ", ".join(card.title for card in cards), "under": "; ".join(licences)})
    return pd.DataFrame(rows, columns=["page", "sounds", "made from", "under"])


def sounds(path: Path) -> int:
    """How many players an executed notebook holds."""
    return sum(len(SOUND.findall(html)) for html in shown_html(path))


def sources_of(path: Path) -> list[Card]:
    """The cards of the sources that a notebook names, each by its title in a link to this page.

    Raises:
        SourceError: see `complete`.
    """
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


def _of_others(cards: Iterable[Any]) -> list[Any]:
    return [card for card in cards if not card.source.startswith(OURS)]


def _row(card: Card, head: str) -> dict[str, str]:
    row = {head: f"**{card.title}** (`{card.name}`)", "by": card.authors or card.source, "licence": card.licence}
    return row | {"version": card.version, "what it is": card.about}
