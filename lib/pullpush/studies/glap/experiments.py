"""The experiments of the lab of chapter 5, declared against the views of grounds.py.

    best = tuning.best_points(compute.run(ground, sought("search", {…}, {"lr": RATES}, seeds=(1000,))))
    runs = [Run(mix, heard(best, of_ears, ears), ears, mix, {"ears": ears}) for mix in MIXES for ears in EARS]
    scores = page.run(on_tests("domains", runs, tests_of(ground).retrieved, seeds=range(5)))

All are tested in "mul", each clip in its own words; where several languages are compared, tests bear their codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

from pullpush.lab.experiments import Experiment, System, Trial, Where
from pullpush.metrics.prompt_templates import GLAP
from pullpush.studies.glap.ears import OBJECTIVES as OBJECTIVES
from pullpush.studies.glap.grounds import Grounds

Best = Mapping[str, Mapping[str, Any]]  # label → options of a recipe, see `tuning.best_points`
MAIN = "several"  # the ears that stand for GLAP's general encoder
EARS = ("yamnet", "speech_embedding", MAIN)
FURTHER = ("sfx", "voice", "pitch", "random")  # whose features take an hour of two cores
UPPER = ("yamnet", "yamnet upper")  # the same network as it comes, and with its upper layers in training
MIXES = ("all", "silent", "speech")
TOLD: Mapping[str, str] = {"GLAP": "all", "English": "english", "no speech": "silent"}  # system → mix

# Eq. 2 as printed, (s + β)/τ, and SigLIP's own s/τ + β, which GLAP's code trains, express the same and differ in how
# fast their numbers move. Both start at logits near −10.
LOSS = "SigLIP"  # what all systems learn by, where losses are not compared
LOSSES: Mapping[str, System] = {
    "InfoNCE": ("infonce-learnable", {}),
    LOSS: ("siglip", {}),
    "Eq. 2": ("siglip", {"form": "glap"}),
}
START = -10.0  # SigLIP's bias before training
BY_BATCH: Mapping[str, System] = {
    **{label: LOSSES[label] for label in ("InfoNCE", LOSS)},
    "bias fixed": ("siglip", {"learn_bias": False}),  # the temperature is learnt all the same
    "no bias": ("siglip", {"bias": 0.0, "learn_bias": False}),
}
SIZES = (16, 64, 256, 1024)  # of batches; beyond, an epoch is a handful of steps
RATES = (1e-3, 3e-3)

# What the published code does otherwise than the paper says, as overrides of the recipe; "plus" adds a term to it. Its
# temperature and bias have the rate of all weights, 1e-4, which is a tenth of ours: they are the second's control.
SLOW = {"scalar_lr": 0.1}
PUBLISHED_CODE: Mapping[str, Mapping[str, Any]] = {
    "loss on each device": {"loss_parts": 8},  # GPUs of the paper
    "slow temperature and bias": SLOW,
    "temperature as it is": {"raw_tau": True, **SLOW},
    "regularised embeddings": {"plus": "+sparsity"},
    "short warm-up": {"warmup": 0.005},  # 1,000 steps of 200,000
}
TOGETHER = "all of it"

SOUNDS = ("sound", "sound recordings")
MUSIC = ("music", "music recordings")
SPEECH = ("speech fra", "speech spa", "speech rus", "speech ron", "prompts eng", "prompts ita", "keywords fra")
BRIEF = ("sound", "music", "speech fra", "prompts eng")  # where many systems are compared
NAMED = ("sound", "sound recordings", "music")
TRANSLATED = ("eng", "deu", "fra", "spa", "nld", "jpn", "zho")  # captions that the text encoder reads, too
# With languages that it reads, and in which no sound or music was told in training.
READ = (*TRANSLATED, "rus", "ita", "por", "pol", "tur", "kor", "ara", "tha")
PROMPTS = ("sound", "music", "speech")  # of Table 3: "The sound of …", "The music in the style of …", the bare label


class Tests(NamedTuple):
    """What systems are tested on.

    retrieved, brief: of retrieval; translated: of captions in other languages; named, keywords: of zero-shot
    classification, where sounds and where spoken words are named.
    """

    retrieved: Sequence[str] = (*SOUNDS, *MUSIC, *SPEECH)
    brief: Sequence[str] = BRIEF
    translated: Sequence[str] = tuple(f"{domain} {each}" for domain in ("sound", "music") for each in TRANSLATED)
    named: Sequence[str] = NAMED
    keywords: Sequence[str] = ()

    def asked(self, kind: str) -> list[str]:
        """The tests of classes by one of PROMPTS, without words in a language that has no such prompt."""
        known = {f"keywords {language}" for language in GLAP[kind]}
        return [test for test in (*self.named, *self.keywords) if not test.startswith("keywords") or test in known]


def tests_of(ground: Grounds) -> Tests:
    """The tests that a ground has; those without recordings are three, and a bank of one's own has fewer."""
    if ground.has_recordings:
        words = (f"keywords {each}" for each in ground.keyword_languages)
        tests = Tests(keywords=(*words, "prompts eng"))
    else:
        few = ("sound", "music", "speech")
        tests = Tests(few, few, ("sound eng", "sound deu"), ("sound", "music"), ("speech",))
    return Tests(*(tuple(each for each in names if each in ground.tests) for names in tests))


def at(tests: Iterable[str]) -> list[Where]:
    """Tests as points of an experiment."""
    return [{"test": test} for test in tests]


class Run(NamedTuple):
    """What is trained once a seed: a system by its label, through ears, on a mix; where: what else tells it apart."""

    label: str
    system: System
    ears: str = MAIN
    mix: str = "all"
    where: Where = MappingProxyType({})


def on_tests(
    name: str, runs: Iterable[Run], tests: Iterable[str], *, seeds: Iterable[int], **options: Any
) -> Experiment:
    """Runs, each on several tests; options: of Experiment."""
    trials = [
        Trial(run.label, *run.system, {**run.where, "test": test}, f"{run.mix}/{run.ears}", f"test/{run.ears}/{test}")
        for run in runs
        for test in tests
    ]
    return Experiment(name, tuple(trials), tuple(seeds), long=True, languages=("mul",), **options)


def sought(
    name: str, of: Mapping[str, tuple[System, str]], options: Mapping[str, Sequence[Any]], *, seeds: Iterable[int]
) -> Experiment:
    """Systems at every point of one grid; validation decides, and the test of sounds is scored, too.

    Args:
        of: label → system and ears.
        options: option of the recipe → values.
    """
    points = [dict(zip(options, values, strict=True)) for values in product(*options.values())]
    trials = [
        Trial(label, recipe, {**overrides, **point}, point, f"all/{ears}", f"test/{ears}/sound")
        for label, ((recipe, overrides), ears) in of.items()
        for point in points
    ]
    return Experiment(name, tuple(trials), tuple(seeds), long=True, languages=("mul",))


def tuned(best: Best, label: str = LOSS, **options: Any) -> System:
    """A loss with what its search chose; options: further ones."""
    recipe, overrides = LOSSES[label]
    return recipe, {**overrides, **best.get(label, {}), **options}


def heard(best: Best, of_ears: Best, ears: str) -> System:
    """The loss of all systems, with the rate that suits the ears."""
    return tuned(best, **of_ears.get(ears, {}))


def at_size(best: Best, label: str, size: int, epochs: int) -> System:
    """A loss of BY_BATCH at a size of the batch, with the rate that was best there, if one was searched.

    Its temperature starts where it was best at the main batch, for variants of SigLIP where it was for SigLIP.
    """
    recipe, overrides = BY_BATCH[label]
    tau = best.get(label, best.get(LOSS, {})).get("tau")
    start = {"tau": tau} if tau else {}
    chosen = {**overrides, **start, **best.get(name_at(label, size), {})}
    return recipe, {**chosen, "batch_size": size, "epochs": epochs}


def name_at(label: str, size: int) -> str:
    """What the search calls a loss at a size of the batch.

    >>> name_at("InfoNCE", 64)
    'InfoNCE, batch 64'
    """
    return f"{label}, batch {size}"


def published_code(best: Best) -> list[Run]:
    """What the published code does otherwise than the paper says, one at a time and all together."""
    recipe, overrides = tuned(best)
    every = {name: value for change in PUBLISHED_CODE.values() for name, value in change.items()}
    runs = []
    for label, change in {"paper": {}, **PUBLISHED_CODE, TOGETHER: every}.items():
        further = dict(change)
        plus = further.pop("plus", "")
        runs.append(Run(label, (f"{recipe}{plus}", {**overrides, **further})))
    return runs
