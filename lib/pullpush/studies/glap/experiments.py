"""The experiments of the lab of chapter 5, declared against the views of data.py.

    best = tuning.best_points(compute.run(ground, sought("search", {…}, {"lr": RATES}, seeds=(1000,))))
    runs = [Run(mix, suited(best, rates, each), each, mix, {"ears": each}) for mix in MIXES for each in ENCODERS]
    scores = page.run(on_tests("domains", runs, tests_of(ground).retrieved, seeds=range(5)))

All are tested in "mul", each clip in its own words; where several languages are compared, tests bear their codes.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import log
from types import MappingProxyType
from typing import Any, NamedTuple

from pullpush.lab.experiments import Experiment, System, Trial, Where
from pullpush.lab.tuning import grid
from pullpush.metrics.prompt_templates import GLAP
from pullpush.studies.glap.data import OBJECTIVES as OBJECTIVES, Grounds

Best = Mapping[str, Mapping[str, Any]]  # label → options of a recipe, see `tuning.best_points`
MAIN = "several"  # what stands for GLAP's general encoder
ENCODERS = ("yamnet", "speech_embedding", MAIN)
FURTHER = ("sfx", "voice", "pitch", "random")  # whose features take an hour of two cores
UPPER = ("yamnet", "yamnet upper")  # the same network as it comes, and with its upper layers in training
MIXES = ("all", "silent", "speech")
LEARNT_FROM: Mapping[str, str] = {"GLAP": "all", "English": "english", "no speech": "silent"}  # system → mix

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
BALANCED = "in balance"  # SigLIP, from a bias at which a batch of its size pulls as much as it pushes
AT_STEPS = ("InfoNCE", LOSS, BALANCED)  # compared after equal numbers of steps, at sizes from 64 on
RATES = (1e-3, 3e-3)

# What the published code does otherwise than the paper says: a term that it adds, and overrides of the recipe. Its
# temperature and bias have the rate of all weights, 1e-4, which is a tenth of ours: they are the second's control.
SLOW = {"scalar_lr": 0.1}
PUBLISHED_CODE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "paper": ("", {}),
    "loss on each device": ("", {"loss_parts": 8}),  # GPUs of the paper
    "slow temperature and bias": ("", SLOW),
    "temperature as it is": ("", {"raw_tau": True, **SLOW}),
    "regularised embeddings": ("+sparsity", {}),
    "short warm-up": ("", {"warmup": 0.005}),  # 1,000 steps of 200,000
    "all of it": ("+sparsity", {"loss_parts": 8, **SLOW, "raw_tau": True, "warmup": 0.005}),
}

SOUNDS = ("sound", "sound recordings")
MUSIC = ("music", "music recordings")
SPEECH = ("speech fra", "speech spa", "speech rus", "speech ron", "prompts eng", "prompts ita", "keywords fra")
CAPTIONS = ("eng", "deu", "fra", "spa", "nld", "jpn", "zho")  # languages of captions that the text encoder reads, too
# With languages that it reads, and in which no sound or music has a caption in training.
READ = (*CAPTIONS, "rus", "ita", "por", "pol", "tur", "kor", "ara", "tha")
PROMPTS = ("sound", "music", "speech")  # of Table 3: "The sound of …", "The music in the style of …", the bare label
# Seconds; decibels against the clip as it is; clip over noise in decibels.
ALTERED: Mapping[str, tuple[float, ...]] = {
    "first": (0.25, 0.5, 1.0, 2.0, 4.0),
    "loudest": (0.25, 0.5, 1.0, 2.0, 4.0),
    "gain": (-10.0, -20.0, -30.0, -40.0),
    "noise": (20.0, 10.0, 0.0, -10.0),
}


class Tests(NamedTuple):
    """What systems are tested on.

    retrieved, brief: of retrieval, the latter where many systems are compared; translated: of captions in other
    languages; named, keywords: of zero-shot classification, where sounds and where spoken words are named.
    """

    retrieved: Sequence[str] = (*SOUNDS, *MUSIC, *SPEECH)
    brief: Sequence[str] = ("sound", "music", "speech fra", "prompts eng")
    translated: Sequence[str] = tuple(f"{domain} {each}" for domain in ("sound", "music") for each in CAPTIONS)
    named: Sequence[str] = (*SOUNDS, "music")
    keywords: Sequence[str] = ()

    def asked(self, kind: str) -> list[str]:
        """The tests of classes by one of PROMPTS, without words in a language that has no such prompt."""
        known = {f"keywords {language}" for language in GLAP[kind]}
        return [test for test in (*self.named, *self.keywords) if not test.startswith("keywords") or test in known]


def tests_of(ground: Grounds) -> Tests:
    """The tests that a ground has; those without recordings are three, and a bank of one's own has fewer."""
    if ground.has_recordings:
        words = (each for each in ground.tests if each.startswith("keywords "))
        tests = Tests(keywords=(*words, "prompts eng"))
    else:
        few = ("sound", "music", "speech")
        tests = Tests(few, few, ("sound eng", "sound deu"), ("sound", "music"), ("speech",))
    return Tests(*(tuple(each for each in names if each in ground.tests) for names in tests))


class Run(NamedTuple):
    """What is trained once a seed: a system by its label, on an encoder and a mix; where: what else tells it apart."""

    label: str
    system: System
    encoder: str = MAIN
    mix: str = "all"
    where: Where = MappingProxyType({})


def on_tests(
    name: str,
    runs: Iterable[Run],
    tests: Iterable[str],
    *,
    seeds: Iterable[int],
    altered: Mapping[str, Sequence[float]] | None = None,
    **options: Any,
) -> Experiment:
    """Runs, each on several tests.

    altered: how test clips are altered besides → at which levels; options: of Experiment.
    """
    conditions = [] if altered is None else ["whole inf", *(f"{way} {at:g}" for way in altered for at in altered[way])]
    trials = [
        Trial(
            run.label,
            *run.system,
            {**run.where, "test": test} | ({"heard": condition} if condition else {}),
            f"{run.mix}/{run.encoder}",
            f"test/{run.encoder}/{test}" + (f"@{condition}" if condition and condition != conditions[0] else ""),
        )
        for run in runs
        for test in tests
        for condition in conditions or [""]
    ]
    # Of one run on altered clips the data stand at the experiment, too: so it was declared when it was stored.
    options |= {} if altered is None else {"data": trials[0].data}
    return Experiment(name, tuple(trials), tuple(seeds), long=True, languages=("mul",), **options)


def sought(
    name: str, of: Mapping[str, tuple[System, str]], options: Mapping[str, Sequence[Any]], *, seeds: Iterable[int]
) -> Experiment:
    """`tuning.grid` of systems, each with its encoder; validation decides, and the test of sounds is scored, too."""
    systems = {label: system for label, (system, _) in of.items()}
    views = {label: (f"all/{encoder}", f"test/{encoder}/sound") for label, (_, encoder) in of.items()}
    return grid(name, systems, options, seeds=seeds, views=views, long=True, languages=("mul",))


def tuned(best: Best, label: str = LOSS, **options: Any) -> System:
    """A loss with what its search chose; options: further ones."""
    recipe, overrides = LOSSES[label]
    return recipe, {**overrides, **best.get(label, {}), **options}


def balancing_bias(pairs: int) -> float:
    """The bias beside s/τ at which a batch with similarities of zero pulls as much as it pushes: −log(N − 1).

    >>> round(balancing_bias(128), 2)
    -4.84
    """
    return -log(pairs - 1)


def at_size(best: Best, label: str, size: int, epochs: int, **options: Any) -> System:
    """A loss of BY_BATCH, or BALANCED, at a size of the batch, with the rate that was best there, if one was searched.

    Its temperature starts where it was best at the main batch, for variants of SigLIP where it was for SigLIP.
    """
    recipe, overrides = (LOSSES[LOSS][0], {"bias": balancing_bias(size)}) if label == BALANCED else BY_BATCH[label]
    tau = best.get(label, best.get(LOSS, {})).get("tau")
    start = {"tau": tau} if tau else {}
    chosen = {**overrides, **start, **best.get(f"{label}, batch {size}", {})}
    return recipe, {**chosen, "batch_size": size, "epochs": epochs, **options}
