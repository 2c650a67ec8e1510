"""What a profile of one's own leaves of a chapter: whether encoders have weights, and which languages a bank speaks."""

from collections.abc import Sequence
from html import escape

from IPython.display import Markdown, display

from pullpush.data.banks import create_bank
from pullpush.data.language.vocabulary import LANGUAGES, Event
from pullpush.errors import PullPushError
from pullpush.lab import gaps
from pullpush.lab.profiles import Profile

BOOKS = ("tuxpaint", "synthetic")  # the book's own banks, told in all languages


def is_small(settings: Profile) -> bool:
    """Whether the published audio encoder is there as a network of random weights, as in smoke, which fetches nothing.

    >>> from pullpush.lab.profiles import PROFILES
    >>> is_small(PROFILES["smoke"]), is_small(PROFILES["quick"])
    (True, False)
    """
    return not settings.listening.encoder_options.get("audio_pretrained", True)


def is_own(bank: str) -> bool:
    """Whether a bank is the reader's, such as "folder:/path", and no part of one of the book's.

    >>> is_own("folder:/data/sounds"), is_own("tuxpaint:bird")
    (True, False)
    """
    return bank.partition(":")[0] not in BOOKS


def languages_of(bank: str) -> tuple[str, ...]:
    """Of the book's languages, those in which all events of a bank are told; a folder's are told in English.

    Raises:
        UnknownNameError, DataNotFoundError: there is no such bank.

    >>> languages_of("synthetic") == LANGUAGES
    True
    """
    if not is_own(bank):
        return LANGUAGES
    return told_in(create_bank(bank).events)


def tell_scenes(settings: Profile, further: str = "") -> None:
    """Say on a page that runs on data of one's own that it takes a bank, of which it makes scenes, and no dataset.

    further: a sentence about what else it is made of.
    """
    if gaps.allowed():
        unused = f"; the profile's dataset {settings.dataset!r} is not for this page" if settings.dataset else ""
        bank = escape(settings.world["bank"], quote=False)
        display(Markdown(f"This page is about scenes that are made of the bank {bank!r}{escape(unused)}. {further}"))


def told_in(events: Sequence[Event]) -> tuple[str, ...]:
    """Of the book's languages, those in which all of some events are told.

    >>> told_in([Event("gate", "gate", (), {"eng": None})])
    ('eng',)
    """
    return tuple(each for each in LANGUAGES if all(each in event.phrases for event in events))


def check_retold(events: Sequence[Event]) -> None:
    """Require a second language, as back-translation goes through one.

    Raises:
        PullPushError: these events are told in one language alone.

    >>> check_retold([Event("gate", "gate", (), {"eng": None})])
    Traceback (most recent call last):
        ...
    pullpush.errors.PullPushError: back-translation needs events that are told in two languages, these are in eng: ...
    """
    told = told_in(events)
    if len(told) < 2:
        raise PullPushError(
            "back-translation needs events that are told in two languages, these are in "
            f"{', '.join(told) or 'none'}: take a bank that names them in several, such as tuxpaint"
        )
