"""What chapter 3 trains and tests on: a material's views, and stages of training on translated captions.

    ground = Grounds(material.of(book, "scenes"))
    ground.view("frozen")                 # the material's own: projections from random weights, captions that retell
    ground.view("aligned/nothing")        # captions that are translations of each other, from random weights
    ground.view("aligned/ml-clap")        # the same, on from a long run of ML-CLAP
    ground.view("aligned/ml-clap/words")  # a transformer over words that is trained, too, and was in the long run
    ground.view("aligned/valid")          # to test on: the validation clips, which a rate may be chosen by

ATRI starts all schemes from the weights of ML-CLAP and trains them on translated captions, with the text encoder. There
one long run is all that schemes go on from; here each seed has its own, so that an interval is over both stages.
Captions of real recordings in several languages are taken for translations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.clips import Clips, World, load_data
from pullpush.data.language.vocabulary import LANGUAGES, Event
from pullpush.data.language.wording import WordingConfig
from pullpush.data.recordings import tuxpaint
from pullpush.data.recordings.corpora import language_tables
from pullpush.data.recordings.registry import datasets_home, find
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import PullPushError, check_known
from pullpush.lab import common
from pullpush.lab.compute import WIDE, Ground, View
from pullpush.lab.gaps import NotKeptError
from pullpush.lab.material import SCENES, Material
from pullpush.studies import own_data
from pullpush.training.frozen import Base, encoded
from pullpush.training.loop import Result
from pullpush.training.runs import Plan

Runs = Mapping[tuple[str, int], Result]  # by (system, seed)
TEXTS = (*LANGUAGES, "ru", "bg")  # of the stamps; the last two are never trained on
SCHEMES = ("ml-clap", "cacl", "kcl")
SAMPLINGS = {"random": "ml-clap", "pair": "cacl", "all": "kcl"}  # of `language_plan`, by the scheme that takes so
FIRST_SEED = 1000  # of the long run that seed 0 goes on from; no other run draws as it does


class LanguagesError(PullPushError, ValueError):
    """Captions are in too few languages, or not alike in all, for what is asked of them."""


class Stage(NamedTuple):
    """A stage on translated captions. passes: of a run that others go on from, times the profile's; after: the stage
    whose long run of ML-CLAP it goes on from; overrides: of its recipes.
    """

    passes: int = 0
    after: str = ""
    overrides: Mapping[str, Any] = {}


# Small, for KCL reads eight texts a clip; its texts in one piece, for they fit into memory.
TRAINED: Mapping[str, Any] = {"text": "words", "text_chunk": 0, "encoder_options": {"text_width": 64, "text_layers": 1}}
NOTHING, ML_CLAP, WORDS, VALID = "aligned/nothing", "aligned/ml-clap", "aligned/ml-clap/words", "aligned/valid"
TESTED = f"{ML_CLAP}{WIDE}"  # the test clips of all stages
STAGES: Mapping[str, Stage] = {
    NOTHING: Stage(passes=16),
    ML_CLAP: Stage(after=NOTHING),
    "aligned/nothing/words": Stage(passes=8, overrides=TRAINED),
    WORDS: Stage(after="aligned/nothing/words", overrides=TRAINED),
    VALID: Stage(),
}


class Grounds(Ground):
    """The chapter's views by their names; see `compute.Ground` and the top of this module."""

    def __init__(self, material: Material) -> None:
        super().__init__(material.book, material.compute_long)
        self.material, self.name, self.galleries = material, material.name, material.galleries

    @property
    def parts(self) -> Sequence[str]:
        return *self.material.parts, *(["data/wording"] if self.name == SCENES else [])

    @property
    def maps(self) -> tuple[str, ...]:
        """The methods of two-dimensional maps, without UMAP in smoke, for it compiles itself for half a minute."""
        return ("t-SNE",) if own_data.is_small(self.book.settings) else ("t-SNE", "UMAP")

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Those of clips' captions, English first: the book's eight, or those of them that real recordings have;
        LanguagesError if there is English alone, or no English.
        """
        return languages_of(self.material)

    def stamps(self, *, voices: bool = False) -> tuxpaint.Stamps:
        """Tux Paint's stamps, which have captions in many more languages, and voices; of another bank its labels, one
        stamp an event. NotKeptError if the clips are no scenes, or of a bank that does not speak (voices: it must).
        """
        if self.name == SCENES and self.book.settings.world["bank"] == "tuxpaint":
            return tuxpaint.index()
        if self.name != SCENES or voices:
            raise NotKeptError(f"{self.name} of this profile are not mixed of Tux Paint's stamps, which this is about")
        return labels_as_stamps(self.data().bank.events)

    def data(self) -> World:
        """The clips as audio."""
        return self.material.view("scenes").data

    @cached_property
    def translated(self) -> World:
        """The clips as audio, with captions that are translations of each other."""
        config = self.data().config
        return load_data(WordingConfig(config, "aligned")) if isinstance(config, WorldConfig) else self.data()

    def trunk(self) -> Base:
        """The audio encoder that all systems share."""
        return self.material.trunk()

    def _view(self, name: str) -> View:
        """See the top of this module; LanguagesError if captions are in one language alone, or not as many in each."""
        if name.startswith("aligned"):
            check_known("stage", name, STAGES)
        return self._stage(name) if name in STAGES else self._of_material(name)

    def first_run(self, name: str, seed: int) -> Plan:
        """The long run of ML-CLAP from nothing that a stage's runs of a seed go on from."""
        start = STAGES[name].after
        view, epochs = self.view(start), STAGES[start].passes * self.book.settings.epochs
        return view.plan(view.recipe("ml-clap", {"epochs": epochs}), FIRST_SEED + seed)

    @property
    def _in_languages(self) -> dict[str, Any]:
        """What recipes of all eight languages need where there are fewer."""
        return {} if self.languages == LANGUAGES else {"languages": self.languages}

    def _of_material(self, name: str) -> View:
        view = self.material.view(name)
        if self._in_languages:
            check_captions(view.data.test, self.languages)
        return view._replace(overrides=common.merged(view.overrides, self._in_languages))

    def _stage(self, name: str) -> View:
        stage = STAGES[name]
        if name == VALID:
            data = self.view(NOTHING).data
            return View(self.book, replace(data, splits={**data.splits, "test": data.valid}))
        overrides = {"epochs": self.book.settings.epochs, **self._in_languages, **stage.overrides}
        if not stage.after:
            return View(self.book, self._encoded, overrides)
        first = cache(partial(self.first_run, name))
        return View(self.book, self._encoded, overrides, base=first, before=lambda seed: [[first(seed)]])

    @cached_property
    def _encoded(self) -> World:
        """`translated`, encoded by the trunk; where that is the material as it is, its own view."""
        if self.translated is self.data():
            return self.view("frozen").data
        return encoded(self.translated, self.trunk())


def languages_of(material: Material) -> tuple[str, ...]:
    """Those of the eight languages that a material's captions are in, English first; no recording is read for it."""
    if material.name == SCENES:
        bank = material.book.settings.world["bank"]
        return several(f"scenes of {bank}", own_data.languages_of(bank))
    dataset = find(material.name)
    folder = dataset.where(datasets_home())
    if not folder.is_dir():
        return LANGUAGES  # whoever loads it says how to get it
    found = {"eng", *language_tables(folder)}
    return several(dataset.title, [code for code in LANGUAGES if code in found])


def several(what: str, languages: Sequence[str]) -> tuple[str, ...]:
    """The languages, if there is English and another; else LanguagesError.

    >>> several("Mine", ["eng", "fra"])
    ('eng', 'fra')
    """
    if "eng" in languages and len(languages) > 1:
        return tuple(languages)
    others, found = ", ".join(LANGUAGES[1:]), " and ".join(languages) or "none of the eight languages"
    raise LanguagesError(
        f"{what}: captions are in {found} alone, and this page compares English with further languages. Put "
        "translations beside captions.csv of a dataset: captions.fra.csv with the columns file_name and caption, for "
        f"one or more of {others}"
    )


def complete(split: Clips, languages: Sequence[str] = TEXTS) -> Clips:
    """The clips with a caption in every language, so that ranks are among the same texts in all."""
    has = zip(*(split.captions(language) for language in languages), strict=True)
    return split.select([row for row, texts in enumerate(has) if all(texts)])


def check_captions(split: Clips, languages: Sequence[str]) -> None:
    """Refuse clips without the same number of captions in every language, as spaces of many languages need."""
    counts = {code: {len(captions) for captions in split.captions(code)} for code in languages}
    if len(set.union(*counts.values())) > 1:
        found = ", ".join(f"{code} {'–'.join(map(str, sorted({min(n), max(n)})))}" for code, n in counts.items())
        raise LanguagesError(
            f"the clips of {split.name} differ in their number of captions ({found}): to compare languages on them "
            "give each clip as many captions in every language"
        )


def labels_as_stamps(events: Sequence[Event]) -> tuxpaint.Stamps:
    """Tables like those of the stamps for a bank without any: the events' own labels."""
    rows = [(each.name, code, phrases.label, code) for each in events for code, phrases in each.phrases.items()]
    empty = pd.DataFrame(columns=["stamp", "path"])
    captions = pd.DataFrame(rows, columns=["stamp", "language", "text", "code"])
    return tuxpaint.Stamps(captions, empty, empty, empty)


# ---------------------------------------------------------------- what a scheme takes of a clip


class Step(NamedTuple):
    """One optimiser step: numbers of its clips `(B,)`, and the languages taken of each, `(B, K)` boolean."""

    items: Tensor
    taken: Tensor


def take(clips: int, languages: int, sampling: str, generator: torch.Generator) -> Tensor:
    """Which languages training takes of each clip, `(N, K)` boolean: "random" one, "pair" the first and one other.

    Example:
        >>> take(3, 8, "pair", torch.Generator().manual_seed(0)).sum(dim=1).tolist()
        [2, 2, 2]
    """
    always = int(sampling == "pair")  # so many of the first languages
    chosen = torch.randint(always, languages, (clips,), generator=generator)
    taken = F.one_hot(chosen, languages).bool()
    taken[:, :always] = True
    return taken


def language_plan(
    clips: int, languages: int, *, sampling: str, epochs: int, batch_size: int, seed: int = 0
) -> list[list[Step]]:
    """What each step of each epoch takes, as `PairDataset` samples: language 0 is the main one (English).

    Args:
        sampling: of SAMPLINGS: one language a clip, the main and one other, or all.
        epochs, batch_size: the last batch may be short.
        seed: of the order, the same for every sampling, and of the languages.
    """
    order, draw = (torch.Generator().manual_seed(2 * seed + offset) for offset in (0, 1))
    plan = []
    for _ in range(epochs):
        taken = torch.ones(clips, languages, dtype=torch.bool)
        if sampling != "all":
            taken = take(clips, languages, sampling, draw)
        batches = torch.randperm(clips, generator=order).split(batch_size)
        plan.append([Step(items, taken[items]) for items in batches])
    return plan
