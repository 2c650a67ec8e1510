"""The experiments of the lab of chapter 5, declared against the views of grounds.py.

    tests = tests_of(ground)
    scores = compute.run(ground, domains(best, of_ears, tests.retrieved, seeds=range(5)))  # best: see searches.py

A system is told by what it learnt from or by its ears, and by what it is tested on: the columns "ears" and "test". All
are tested in "mul", each clip in its own words; where several languages are compared, tests bear their codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.metrics.prompt_templates import GLAP
from pullpush.studies.glap.grounds import GROUPS, Grounds
from pullpush.studies.glap.losses import PUBLISHED_CODE, TOGETHER
from pullpush.studies.glap.searches import EVERY, LOSS, MAIN, Best, at_size, heard, start, trained, tuned

EARS = ("yamnet", "speech_embedding", "several")
FURTHER = ("sfx", "voice", "pitch", "random")  # whose features take an hour of two cores
OBJECTIVES = ("tagging", "transcription", "masked-prediction", "masked-reconstruction", "untrained")
UPPER = ("yamnet", "yamnet upper")  # the same network as it comes, and with its upper layers in training
MIXES = ("all", "silent", "speech")
SIZES = (16, 64, 256, 1024)  # of batches; beyond, an epoch is a handful of steps

SOUNDS = ("sound", "sound recordings")
MUSIC = ("music", "music recordings")
SPEECH = ("speech fra", "speech spa", "speech rus", "speech ron", "prompts eng", "prompts ita", "keywords fra")
RETRIEVED = (*SOUNDS, *MUSIC, *SPEECH)
BRIEF = ("sound", "music", "speech fra", "prompts eng")  # where many systems are compared
TRANSLATED = ("eng", "deu", "fra", "spa", "nld", "jpn", "zho")  # captions that the text encoder reads, too
# Languages that the text encoder reads, and in which no sound or music was told in training.
UNTRANSLATED = ("rus", "ita", "por", "pol", "tur", "kor", "ara", "tha")
READ = (*TRANSLATED, *UNTRANSLATED)
NAMED = ("sound", "sound recordings", "music")


class Tests(NamedTuple):
    """What systems are tested on; smaller in a profile without recordings.

    retrieved, brief: of retrieval; translated: of captions in other languages; named, keywords: of zero-shot
    classification, where sounds and where spoken words are named.
    """

    retrieved: Sequence[str] = RETRIEVED
    brief: Sequence[str] = BRIEF
    translated: Sequence[str] = tuple(f"{domain} {each}" for domain in ("sound", "music") for each in TRANSLATED)
    named: Sequence[str] = NAMED
    keywords: Sequence[str] = ()


def tests_of(ground: Grounds) -> Tests:
    """The tests that a ground has; those without recordings are three, and a bank of one's own has fewer."""
    if ground.has_recordings:
        words = (f"keywords {each}" for each in ground.keyword_languages)
        tests = Tests(keywords=(*words, "prompts eng"))
    else:
        few = ("sound", "music", "speech")
        tests = Tests(few, few, ("sound eng", "sound deu"), ("sound", "music"), ("speech",))
    return Tests(*(tuple(each for each in names if each in ground.tests) for names in tests))


def on_tests(
    label: str, system: System, ears: str, tests: Iterable[str], /, *, mix: str = "all", **where: Any
) -> list[Trial]:
    """One system on several tests: it is trained once a seed; where: what else tells it from others."""
    recipe, overrides = system
    return [
        Trial(label, recipe, overrides, {**where, "test": test}, trained(ears, mix), f"test/{ears}/{test}")
        for test in tests
    ]


# ---------------------------------------------------------------- what is compared


def domains(
    best: Best,
    of_ears: Best,
    tests: Sequence[str],
    *,
    ears: Sequence[str] = EARS,
    mixes: Sequence[str] = MIXES,
    seeds: Iterable[int],
) -> Experiment:
    """What is learnt from, crossed with ears: Tables 2 and 5; nine runs a seed."""
    trials = [
        trial
        for mix in mixes
        for each in ears
        for trial in on_tests(mix, heard(best, of_ears, each), each, tests, mix=mix, ears=each)
    ]
    return Experiment("domains", tuple(trials), tuple(seeds), **EVERY)


def encoders(
    name: str, ears: Sequence[str], best: Best, of_ears: Best, tests: Sequence[str], *, seeds: Iterable[int]
) -> Experiment:
    """One system a pair of ears, trained on all domains: Table 4; a run each a seed; three are those of `domains`."""
    trials = [trial for each in ears for trial in on_tests(each, heard(best, of_ears, each), each, tests)]
    return Experiment(name, tuple(trials), tuple(seeds), **EVERY)


def batches(
    losses: Mapping[str, System],
    best: Best,
    sizes: Sequence[int],
    tests: Sequence[str],
    *,
    epochs: int,
    seeds: Iterable[int],
) -> Experiment:
    """Losses over the size of the batch, each tuned there, after the same number of clips: that of the search; a run a
    loss, size and seed.
    """
    trials = [
        trial
        for label, (recipe, overrides) in losses.items()
        for size in sizes
        for trial in on_tests(
            label,
            (
                recipe,
                {**overrides, **start(best, label), **best.get(at_size(label, size), {})}
                | {"batch_size": size, "epochs": epochs},
            ),
            MAIN,
            tests,
            batch=size,
        )
    ]
    return Experiment("batches", tuple(trials), tuple(seeds), **EVERY)


def amounts(
    best: Best,
    tests: Sequence[str],
    *,
    mixes: Mapping[str, int],
    labels: Sequence[str] = ("InfoNCE", LOSS),
    epochs: int,
    seeds: Iterable[int],
) -> Experiment:
    """Two losses with little data and with much, after the same number of clips; mixes: name → how many fewer clips
    it has, hence how many times more epochs; two runs a mix and seed.
    """
    trials = []
    for mix, times in mixes.items():
        for label in labels:
            recipe, overrides = tuned(best, label)
            longer = {} if times == 1 else {"epochs": times * epochs}
            trials += on_tests(label, (recipe, {**overrides, **longer}), MAIN, tests, mix=mix, data=mix)
    return Experiment("amounts", tuple(trials), tuple(seeds), **EVERY)


def sampling(
    best: Best, tests: Sequence[str], *, groups: Sequence[str] = GROUPS, mix: str = "skewed", seeds: Iterable[int]
) -> Experiment:
    """Clips drawn in proportion to the groups, or equally from each, as many in an epoch; two runs a seed."""
    recipe, overrides = tuned(best)
    equally = {"balance": dict.fromkeys(groups, 1.0)}
    trials = on_tests("proportional", (recipe, overrides), MAIN, tests, mix=mix)
    trials += on_tests("balanced", (recipe, {**overrides, **equally}), MAIN, tests, mix=mix)
    return Experiment("sampling", tuple(trials), tuple(seeds), **EVERY)


TOLD: Mapping[str, str] = {"GLAP": "all", "English": "english", "no speech": "silent"}


def translations(best: Best, tests: Sequence[str], *, seeds: Iterable[int]) -> Experiment:
    """Captions of sound and music in eight languages or in English alone, beside the same speech, and eight without
    speech; three runs a seed, two of them those of `domains`.
    """
    trials = [trial for label, mix in TOLD.items() for trial in on_tests(label, tuned(best), MAIN, tests, mix=mix)]
    return Experiment("translations", tuple(trials), tuple(seeds), **EVERY)


PROMPTS = ("sound", "music", "speech")  # of Table 3: "The sound of …", "The music in the style of …", the bare label


def naming(kind: str, best: Best, of_ears: Best, tests: Sequence[str], *, seeds: Iterable[int]) -> Experiment:
    """Classes asked for by one prompt of Table 3, in all languages: Tables 3, 6, 7 and Figure 3; the runs of
    `translations` and `domains`. kind: one of PROMPTS; words in a language that has no such prompt are left out.
    """
    known = {f"keywords {language}" for language in GLAP[kind]}
    tests = [test for test in tests if not test.startswith("keywords") or test in known]
    systems = {label: (MAIN, mix) for label, mix in TOLD.items()} | {"tagger": ("yamnet", "all")}
    trials = [
        trial
        for label, (ears, mix) in systems.items()
        for trial in on_tests(label, heard(best, of_ears, ears), ears, tests, mix=mix)
    ]
    options: dict[str, Any] = {**EVERY, "evaluations": (f"{kind}-prompts",)}
    return Experiment(f"named-{kind}", tuple(trials), tuple(seeds), **options)


def code(best: Best, tests: Sequence[str], *, seeds: Iterable[int]) -> Experiment:
    """What the published code does otherwise than the paper says, one at a time and all together; 7 runs a seed."""
    recipe, overrides = tuned(best)
    every = {name: value for change in PUBLISHED_CODE.values() for name, value in change.items()}
    systems = {"paper": {}, **PUBLISHED_CODE, TOGETHER: every}
    trials = []
    for label, change in systems.items():
        further = dict(change)
        name = f"{recipe}{further.pop('plus', '')}"
        trials += on_tests(label, (name, {**overrides, **further}), MAIN, tests)
    return Experiment("code", tuple(trials), tuple(seeds), **EVERY)
