"""People who speak, as a world: words and sentences to learn, with new words, new voices and new languages to test on.

    world = SpokenConfig(("keywords", "letters", "prompts"), new_languages=("glg",)).load()
    spotting(world.split("languages"), "glg")       # its clips with one label a word
    spotting(SpokenConfig(("letters", "prompts")).load().test, "fra", kind="number")   # "letter", "syllable" …

| split | words | voices | languages |
|---|---|---|---|
| train | learnt | heard | heard |
| valid, test | new in every language | heard | heard |
| voices | learnt in that language | new | heard |
| languages | all | new | new |

A word is new where neither its text nor that of a translation was learnt. Letters have several voices in English,
French, Italian and Spanish: `new_voices=("KLettres en_GB",)` keeps one for the test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from torch import Tensor

from pullpush.cache import content_key
from pullpush.checks import check_number
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import Clips, Columns, StoredClips, World, same
from pullpush.data.draws import share
from pullpush.data.recordings.registry import datasets_home, fetch, find
from pullpush.data.sets import spoken_words
from pullpush.data.speech import Utterance, decoded, normalised, split_clips, translations
from pullpush.data.speech.stamps import caption_groups
from pullpush.data.store import fingerprint
from pullpush.errors import DataNotFoundError, PullPushError, check_all_known, check_known, unknown
from pullpush.golden import versions

SOURCES = {"keywords": spoken_words.keywords, "letters": spoken_words.letters, "prompts": spoken_words.prompts}
PARTS = ("data/decoding", "data/spoken", "data/relevance")


@dataclass(frozen=True)
class SpokenConfig:
    """What is learnt from, and what is kept for the tests.

    sources: of "keywords", "letters" and "prompts"; languages (ISO 639-3), kinds (see `Utterance`): some of them; none,
    all. new_voices, new_languages: never learnt from. seed: of the splits; valid, test: shares of the words.
    translated: captions in every language that a word is known in; otherwise in the spoken one alone. longest: seconds
    of a recording, whose text stays whole; None: all of it; sample_rate: in Hz, that recordings are stored in.
    """

    sources: tuple[str, ...] = ("keywords",)
    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    new_voices: tuple[str, ...] = ()
    new_languages: tuple[str, ...] = ()
    seed: int = 0
    valid: float = 0.1
    test: float = 0.2
    translated: bool = False
    longest: float | None = 10.0
    sample_rate: int = SAMPLE_RATE

    def __post_init__(self) -> None:
        for name in ("sources", "languages", "kinds", "new_voices", "new_languages"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        check_all_known("source of speech", self.sources, SOURCES)
        if not self.sources or min(self.valid, self.test) <= 0 or self.valid + self.test >= 1:
            raise ValueError(f"need a source, and shares that leave words to learn, got {self}")
        check_number("longest", self.longest, above=0, or_none=True)

    def load(self) -> World:
        """Decode what people say, or read it from the cache, in the splits above; what is missing is fetched.

        Recordings are trimmed and of equal loudness. Relevance is 1 for one key, or one text in one language.

        Returns:
            Clips with the columns "key", "text", "language", "voice", "kind" and "group": words that share a text in
            some language. The splits "voices" and "languages" are there where the configuration names new ones.

        Raises:
            UnknownNameError: nobody speaks such a language, or has such a voice, or says such a kind.
            DataNotFoundError: recordings cannot be fetched, or a split would be empty.
            AudioError: a recording is damaged or silent; it is named.
        """
        table = utterances(self)
        texts = _texts(table) if "keywords" not in self.sources else _texts(table, spoken_words.texts())
        table["group"] = table["key"].map(caption_groups(texts))
        paths = table["path"].tolist()
        shaped = [[fingerprint(path) for path in paths], self.longest, self.sample_rate]
        voices = content_key([versions(*PARTS[:2]), *shaped])
        waveforms, content = decoded("spoken", voices, paths, self.longest, self.sample_rate)
        write = partial(translations, texts) if self.translated else partial(transcripts, tuple(sorted(texts)))
        stored = [content, self.sample_rate]
        splits = split_clips(table, membership(table, self), COLUMNS, waveforms, stored, write, same_meaning)
        return World(self, splits, content_key([texts, self.translated]), parts=PARTS)


COLUMNS = ("key", "text", "language", "voice", "kind", "group")


def membership(table: pd.DataFrame, config: SpokenConfig) -> dict[str, pd.Series]:
    """Which recordings each split holds, as masks; `table`: columns group, language, voice and text."""
    new_language = table["language"].isin(config.new_languages)
    new_voice = table["voice"].isin(config.new_voices) & ~new_language
    known = ~new_language & ~new_voice
    point = table["group"].map(lambda group: share(("spoken", config.seed, group)))
    test, valid = point < config.test, (point >= config.test) & (point < config.test + config.valid)
    splits = {"train": known & ~test & ~valid, "valid": known & valid, "test": known & test}
    words = pd.Series(_words(table), index=table.index)
    if config.new_voices:
        splits["voices"] = new_voice & words.isin(set(words[splits["train"]]))
    if config.new_languages:
        splits["languages"] = new_language
    return splits


def transcripts(languages: Sequence[str], columns: Columns, language: str) -> list[list[str]]:
    """What each clip says, where it is spoken in this language, none elsewhere; `UnknownNameError` if nobody does."""
    check_known("language of speech", language, languages)
    pairs = zip(columns["text"], columns["language"], strict=True)
    return [[text] if spoken == language else [] for text, spoken in pairs]


def same_meaning(columns: Columns, other: Columns) -> Tensor:
    """1 where two clips have one key, or one text in one language, else 0, `(N, M)` float32."""
    return (same(columns["key"], other["key"]) | same(_words(columns), _words(other))).float()


def _words(columns: Columns) -> list[str]:
    pairs = zip(columns["language"], columns["text"], strict=True)
    return [f"{language}:{normalised(text)}" for language, text in pairs]


def utterances(config: SpokenConfig) -> pd.DataFrame:
    """The utterances that a configuration asks for, as a table with their fields."""
    table = pd.DataFrame([each for source in config.sources for each in _read(source)])
    languages = (*config.languages, *config.new_languages) if config.languages else ()
    filters = [
        ("language", languages or config.new_languages, bool(languages)),
        ("kind", config.kinds, bool(config.kinds)),
        ("voice", config.new_voices, False),
    ]
    for column, wanted, restrict in filters:
        check_all_known(f"{column} of {', '.join(config.sources)}", wanted, set(table[column]))
        if restrict:
            table = table[table[column].isin(wanted)]
    return table.reset_index(drop=True)


def _read(source: str) -> list[Utterance]:
    place = find(source).where(datasets_home())
    try:
        return SOURCES[source](place)
    except DataNotFoundError:
        fetch(source)
        return SOURCES[source](place)


def _texts(table: pd.DataFrame, words: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, dict[str, str]]:
    """Language → key → text: what is spoken, and of keywords also their translations."""
    found: dict[str, dict[str, str]] = {}
    for each in table.itertuples():
        found.setdefault(each.language, {}).setdefault(each.key, each.text)
    for key in set(table["key"]):
        for language, text in (words or {}).get(key.removeprefix("keywords/"), {}).items():
            found.setdefault(language, {}).setdefault(key, text)
    return {language: dict(sorted(found[language].items())) for language in sorted(found)}


def spotting(clips: StoredClips, language: str, *, kind: str = "") -> StoredClips:
    """The clips in one language with one label a word; texts that differ in capitals or signs alone are one word.

    kind: of what is said, see `Utterance`: "word", "letter", "number" …; "": all.

    Returns:
        Clips with the column "label"; `prompts(language)` are the words themselves, in the order of the labels.

    Raises:
        UnknownNameError: no clip is in this language, or none of this kind.
        PullPushError: a clip has an empty text.
    """
    kinds = clips.columns.get("kind", [kind] * len(clips))
    if kind and kind not in kinds:
        raise unknown(f"kind of the clips {clips.name!r}", kind, set(kinds))
    of_kind = [(row, clips.columns["language"][row]) for row, each in enumerate(kinds) if kind in ("", each)]
    rows = [row for row, spoken in of_kind if spoken == language]
    if not rows:
        raise unknown(
            f"language of the {kind or 'word'}s of {clips.name!r}", language, {spoken for _, spoken in of_kind}
        )
    chosen = clips.select(rows, name=f"{clips.name} {language}")
    classes: dict[str, str] = {}
    for row, text in zip(rows, chosen.columns["text"], strict=True):
        if not text.strip():
            raise PullPushError(
                f"clip {row} of {clips.name!r} has an empty text: leave it out before words are spotted"
            )
        classes.setdefault(normalised(text), text)
    names = sorted(classes)
    labels = [names.index(normalised(text)) for text in chosen.columns["text"]]
    ask = partial(words_in, language, tuple(classes[name] for name in names))
    return replace(chosen, columns={**chosen.columns, "label": labels}, ask=ask)


def words_in(spoken: str, words: Sequence[str], language: str, template: str | None = None) -> list[str]:
    """The words, in a template if there is one; `UnknownNameError` for other languages than theirs."""
    check_known("language of these words", language, [spoken])
    return [(template or "{label}").format(label=word) for word in words]


def by_length(words: Clips) -> np.ndarray:
    """How often length alone names each word: the control of keyword spotting.

    Clips are ranked by their seconds and words by their characters, and each clip is given the word whose place among
    the words is nearest to the clip's among the clips; words of one place share the clip evenly. That knows more than a
    system can: all clips of the test at once. words: of `spotting`.

    Returns:
        The share of each word's clips that are named rightly, `(C,)` float64, in the order of the labels.
    """
    labels = words.labels.numpy()
    texts = words.prompts(words.columns["language"][0])
    return _named_by_place(words.lengths.numpy(), np.array([len(text) for text in texts]), labels)


def _named_by_place(seconds: np.ndarray, characters: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """seconds `(N,)`, characters `(C,)`, labels `(N,)` → `(C,)`.

    >>> _named_by_place(np.array([1.0, 2.0, 9.0]), np.array([3, 4, 4]), np.array([0, 1, 2])).tolist()
    [1.0, 0.5, 0.5]
    """
    by_seconds, by_characters = ((rankdata(values) - 0.5) / len(values) for values in (seconds, characters))
    apart = np.abs(by_seconds[:, None] - by_characters[None])  # (N, C)
    nearest = np.isclose(apart, apart.min(axis=1, keepdims=True))
    right = nearest[np.arange(len(labels)), labels] / nearest.sum(axis=1)
    return np.bincount(labels, right, len(characters)) / np.bincount(labels, minlength=len(characters))
