"""What chapter 3 trains and tests on: a material's views, and stages of training on translated captions.

    ground = Grounds(material.of(book, "scenes"))
    ground.view("frozen")                 # the material's own: projections from random weights, captions that retell
    ground.view("aligned/nothing")        # captions that are translations of each other, from random weights
    ground.view("aligned/ml-clap")        # the same, on from a long run of ML-CLAP
    ground.view("aligned/ml-clap/words")  # a transformer over words that is trained, too, and was in the long run
    ground.view("aligned/valid")          # to test on: the validation clips, which a rate may be chosen by

ATRI starts all schemes from the weights of ML-CLAP and trains them on translated captions, with the text encoder. As
there, all runs of a stage go on from one long run, so that an interval over seeds is one over second stages. Captions
of real recordings in several languages are taken for translations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pullpush.data.clips import Clips, World, load_data
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.language.wording import WordingConfig
from pullpush.data.recordings import tuxpaint
from pullpush.data.recordings.registry import datasets_home, find
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import PullPushError, unknown
from pullpush.lab import common
from pullpush.lab.compute import View
from pullpush.lab.gaps import NotKeptError
from pullpush.lab.material import SCENES, Material
from pullpush.studies import own_data
from pullpush.studies.consistency.unheard import labels_as_stamps
from pullpush.training.frozen import Base, encoded, on_features
from pullpush.training.runs import Plan

ALIGNED = "aligned"
NOTHING, ML_CLAP, WORDS = "aligned/nothing", "aligned/ml-clap", "aligned/ml-clap/words"
FROM_WORDS, VALID = "aligned/nothing/words", "aligned/valid"
STAGES = (NOTHING, ML_CLAP, FROM_WORDS, WORDS, VALID)
LONG: Mapping[str, int] = {NOTHING: 16, FROM_WORDS: 8}  # passes of runs that others go on from, times the profile's
# Small, for KCL reads eight texts a clip; its texts in one piece, for they fit into memory.
TRAINED: Mapping[str, Any] = {"text": "words", "text_chunk": 0, "encoder_options": {"text_width": 64, "text_layers": 1}}
FIRST_SEED = 1000  # of the long run: no comparison uses it


class LanguagesError(PullPushError, ValueError):
    """Captions are in too few languages, or not alike in all, for what is asked of them."""


class Grounds:
    """The chapter's views by their names; see `compute.Ground` and the top of this module."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.book, self.name, self.compute_long = material.book, material.name, material.compute_long
        self._views: dict[str, View] = {}

    def stamps(self, *, voices: bool = False) -> tuxpaint.Stamps:
        """Tux Paint's stamps, which have captions in many more languages, and voices; of another bank its labels.

        voices: whether they must speak.

        Raises:
            NotKeptError: the clips are no scenes, or of a bank that does not speak.
        """
        if self.name == SCENES and self.book.settings.world["bank"] == "tuxpaint":
            return tuxpaint.index()
        if self.name != SCENES or voices:
            raise NotKeptError(f"{self.name} of this profile are not mixed of Tux Paint's stamps, which this is about")
        return labels_as_stamps(self.data().bank.events)

    @property
    def maps(self) -> tuple[str, ...]:
        """The methods of two-dimensional maps, without UMAP in smoke, for it compiles itself for half a minute."""
        return ("t-SNE",) if own_data.is_small(self.book.settings) else ("t-SNE", "UMAP")

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Those that clips are told in, English first: the book's eight, or those of them that real recordings have.

        Raises:
            LanguagesError: there is English alone, or no English.
        """
        return languages_of(self.material)

    @property
    def _in_languages(self) -> dict[str, Any]:
        """What recipes of all eight languages need where there are fewer."""
        return {} if self.languages == LANGUAGES else {"languages": self.languages}

    @property
    def parts(self) -> Sequence[str]:
        """See `compute.Ground`."""
        return *self.material.parts, *(["data/wording"] if self.name == SCENES else [])

    def data(self) -> World:
        """The clips as audio."""
        return self._data

    @cached_property
    def _data(self) -> World:
        return self.material.data()

    @cached_property
    def translated(self) -> World:
        """The clips as audio, with captions that are translations of each other."""
        config = self.data().config
        return load_data(WordingConfig(config, ALIGNED)) if isinstance(config, WorldConfig) else self.data()

    def trunk(self) -> Base:
        """The audio encoder that all systems share."""
        return self.material.trunk()

    def view(self, name: str) -> View:
        """Data by its name; see the top of this module.

        Raises:
            UnknownNameError: there is none of that name.
            LanguagesError: its captions are in one language alone, or not as many in each.
        """
        if name not in self._views:
            if name.startswith(ALIGNED) and name not in STAGES:
                raise unknown("stage", name, STAGES)
            self._views[name] = self._stage(name) if name in STAGES else self._of_material(name)
        return self._views[name]

    def first_run(self, name: str) -> Plan:
        """The long run of ML-CLAP from nothing that all runs of a stage go on from."""
        start = {ML_CLAP: NOTHING, WORDS: FROM_WORDS}[name]
        view = self.view(start)
        options = common.merged(on_features(view.data), view.overrides, {"epochs": LONG[start] * self._epochs})
        return Plan(view.data, common.sized(view.session, "ml-clap", **options), FIRST_SEED)

    @property
    def _epochs(self) -> int:
        return self.book.settings.epochs

    def _of_material(self, name: str) -> View:
        view = self.material.view(name)
        if self._in_languages:
            check_told(view.data.test, self.languages)
        return view._replace(overrides=common.merged(view.overrides, self._in_languages))

    def _stage(self, name: str) -> View:
        if name == VALID:
            data = self.view(NOTHING).data
            return View(self.book, replace(data, splits={**data.splits, "test": data.valid}))
        overrides = {"epochs": self._epochs, **self._in_languages, **(TRAINED if name.endswith("words") else {})}
        is_first = name in LONG
        return View(
            self.book,
            self._heard,
            overrides,
            base=None if is_first else lambda seed: self.first_run(name),
            before=None if is_first else lambda seed: [[self.first_run(name)]],
        )

    @cached_property
    def _heard(self) -> World:
        """`translated` as the trunk hears it; where that is the material as it is, its own view."""
        if self.translated is self.data():
            return self.view("frozen").data
        return encoded(self.translated, self.trunk())


# ---------------------------------------------------------------- languages


def languages_of(material: Material) -> tuple[str, ...]:
    """Those of the eight languages that a material's captions are in, English first; no recording is read for it.

    Raises:
        LanguagesError: there is English alone, or no English.
    """
    if material.name == SCENES:
        bank = material.book.settings.world["bank"]
        return several(f"scenes of {bank}", own_data.languages_of(bank))
    dataset = find(material.name)
    folder = dataset.where(datasets_home())
    if not folder.is_dir():
        return LANGUAGES  # whoever loads it says how to get it
    told = {dataset.language, *(path.name.split(".")[1] for path in folder.glob("captions.*.csv"))}
    return several(dataset.title, [code for code in LANGUAGES if code in told])


def several(what: str, languages: Sequence[str]) -> tuple[str, ...]:
    """The languages, if there is English and another.

    >>> several("Mine", ["eng", "fra"])
    ('eng', 'fra')

    Raises:
        LanguagesError: there is not.
    """
    if "eng" in languages and len(languages) > 1:
        return tuple(languages)
    others, told = ", ".join(LANGUAGES[1:]), " and ".join(languages) or "none of the eight languages"
    raise LanguagesError(
        f"{what}: captions are in {told} alone, and this page compares English with further languages. Put "
        "translations beside captions.csv of a dataset: captions.fra.csv with the columns file_name and caption, for "
        f"one or more of {others}"
    )


def check_told(split: Clips, languages: Sequence[str]) -> None:
    """Refuse clips that do not have the same number of captions in every language, as spaces of many languages need.

    Raises:
        LanguagesError: a language and a number are named.
    """
    counts = {code: {len(captions) for captions in split.captions(code)} for code in languages}
    if len(set.union(*counts.values())) > 1:
        told = ", ".join(f"{code} {'–'.join(map(str, sorted({min(n), max(n)})))}" for code, n in counts.items())
        raise LanguagesError(
            f"the clips of {split.name} differ in their number of captions ({told}): to compare languages on them give "
            "each clip as many captions in every language"
        )


def require(languages: Sequence[str], *wanted: str) -> None:
    """Refuse what is about certain languages where the data lack one.

    Raises:
        LanguagesError: it is named.
    """
    if missing := [code for code in wanted if code not in languages]:
        raise LanguagesError(
            f"this is about {', '.join(wanted)}, and the captions are in {', '.join(languages)} alone: it needs "
            f"{' and '.join(f'captions.{code}.csv' for code in missing)} beside captions.csv"
        )
