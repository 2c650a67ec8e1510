"""What the semantic radius does, taken apart: systems that switch its effects singly, and controls beside them.

A radius R does three things at once: the softmax is that of the support vector (*probabilities*), the gradient reaches
the anchor through Eq. 15, which shrinks what is across the way (*Jacobian*), and a part of it goes to the positive
(*partner*). On and off in all combinations that is a 2³ design, whose empty cell is InfoNCE twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.studies.svr.protocols import TITLES, Protocols
from pullpush.training.diagnostics import Diagnostics

Systems = Mapping[str, Mapping[str, System]]  # protocol → label → system
EFFECTS = ("probabilities", "jacobian", "partner")
LETTERS = dict(zip(EFFECTS, "PJA", strict=True))  # A: the sounds' own gradient, audio that pushes audio
RADIUS = 0.6  # fixed; early in training less than a pair's distance, late in it more than that of most
NEARER = 0.3  # that most pairs are further apart than until the end
CONTROLS = 5  # seeds of what stands beside the comparison
TWICE = "twice"


def factorial(radius: float = RADIUS) -> dict[str, System]:
    """InfoNCE + SVR of a fixed radius with every combination of its effects: "twice", "SVR:P", …, "SVR:PJA".

    >>> list(factorial())
    ['twice', 'SVR:A', 'SVR:J', 'SVR:JA', 'SVR:P', 'SVR:PA', 'SVR:PJ', 'SVR:PJA']
    """
    found: dict[str, System] = {}
    for switches in product((False, True), repeat=len(EFFECTS)):
        on = dict(zip(EFFECTS, switches, strict=True))
        letters = "".join(LETTERS[name] for name in EFFECTS if on[name])
        found[f"SVR:{letters}" if letters else TWICE] = ("infonce+svr-parts", {"radius": radius, **on})
    return found


# InfoNCE whose push is changed across the way, and in nothing else: the paper's reason in its purest form.
SCALED: Mapping[str, System] = {
    **{f"across ×{k:g}": ("scaled-push", {"perpendicular": k}) for k in (0.0, 0.25, 0.5, 1.5)},
    **{f"sideways ×{k:g}": ("scaled-push", {"perpendicular": k, "part": "sideways"}) for k in (0.0, 0.5)},
}
# Simpler losses that let go of pairs which fit, or pull harder.
SIMPLER: Mapping[str, System] = {
    "hard pairs": ("focal", {"gamma": 0.5, "detach": True}),
    "+ focal": ("infonce+focal", {"gamma": 1.0, "detach": False}),
    "+ margin": ("infonce+additive-margin", {"margin": -0.3}),
    "reweight": ("simple-reweight", {"weight": 0.5, "scalar_lr": 0.0}),
}
PLAIN: Mapping[str, System] = {"infonce": ("infonce", {}), "SVR, learnt R": ("infonce+bi-dynamic-svr", {})}
SYSTEMS: Mapping[str, System] = {**PLAIN, **factorial(), **SCALED, **SIMPLER}
# Where a run takes longer: without what lies between others.
FEWER: Mapping[str, System] = {
    name: system for name, system in SYSTEMS.items() if name not in ("across ×0.25", "sideways ×0.5", "+ focal")
}
SIMPLER_AND_SVR = ("SVR, learnt R", "SVR:PJA", "SVR:P", *SIMPLER)
FIXED = {name: SYSTEMS[name] for name in ("infonce", TWICE, "SVR:J", "SVR:PJA")}  # beside those of another radius
DECISIVE = ("infonce", TWICE, "SVR:P", "SVR:J", "SVR:A", "SVR:PJA")


# What the page trains by default: seeds of each protocol, the fewer the longer a run takes.
SEEDS: Mapping[str, int] = {"frozen/cnn": 10, "random/cnn": 5, "frozen/yamnet": 10, "tuned/yamnet": 5}
# Temperature, and rate as a multiple of the protocol's own: the same budget for every system.
POINTS = ((0.05, 1.0), (0.1, 1.0), (0.15, 1.0), (0.2, 1.0), (0.1, 0.5), (0.1, 2.0))
EVALUATIONS = ("recall-at-1",)  # of hundreds of runs nothing else is kept
SHORTER = 2  # how much shorter a run of the search is
APART = 1000  # from the first seed to that of the search, which no comparison uses
TRIED = {"frozen/cnn": (*DECISIVE, "SVR:PJ", "SVR:PA", "SVR:JA", "across ×0.5", "sideways ×0"), "random/cnn": DECISIVE}


def searched(ground: Protocols, *, seed: int, name: str = "search", systems: Systems | None = None) -> Experiment:
    """The search on validation: every system of a protocol at the same points, in runs half as long.

    systems: protocol → label → system; default: all of the page.
    """
    trials = []
    for protocol, named in (systems or _systems(ground)).items():
        epochs = max(1, ground.epochs(protocol) // SHORTER)
        for system, (recipe, overrides) in named.items():
            for tau, factor in POINTS[:2] if _tiny(ground) else POINTS:
                point = {"tau": tau, "lr": round(factor * ground.rate(protocol), 6)}
                options = {**overrides, "epochs": epochs, **point}
                trials.append(Trial(system, recipe, options, {"protocol": protocol, **point}, data=protocol))
    return Experiment(name, tuple(trials), (seed + APART,), evaluations=EVALUATIONS, long=True)


def compared(
    ground: Protocols,
    points: Mapping[tuple[str, str], Mapping[str, Any]],
    *,
    seed: int,
    name: str = "effects",
    systems: Systems | None = None,
) -> Experiment:
    """The comparison, every system at its own point: (protocol, system) → options, see `tuning.best_points`.

    Fine-tuning takes longest: there only the cells of the design that answer alone, and all effects together.

    systems: as in `searched`; of others than the page's, fewer seeds are trained.
    """
    trials = []
    for protocol, named in (systems or _systems(ground)).items():
        seeds = range(seed, seed + (2 if _tiny(ground) else CONTROLS if systems else SEEDS[protocol]))
        for system, (recipe, overrides) in named.items():
            if protocol.startswith("tuned") and system not in DECISIVE:
                continue
            options = {**overrides, **points.get((protocol, system), {})}
            trials.append(Trial(system, recipe, options, {"protocol": protocol}, data=protocol, seeds=tuple(seeds)))
    watch = Diagnostics(every=2 if _tiny(ground) else 40, tau=0.07)
    return Experiment(name, tuple(trials), trials[0].seeds, evaluations=EVALUATIONS, watch=watch, long=True)


def nearer(ground: Protocols) -> Systems:
    """SVR and its Jacobian alone at a radius that most pairs are further apart than, where encoders are frozen."""
    design = factorial(NEARER)
    named = {f"{name}, R = {NEARER:g}": design[name] for name in ("SVR:J", "SVR:PJA")}
    return dict.fromkeys(_frozen(ground), named)


def at_one_point(ground: Protocols, *, seed: int, tau: float = 0.15) -> Experiment:
    """The 2³ design on the frozen encoders, all of its systems at one temperature and rate: the search of `compared`
    chose by one seed, and may have favoured some.
    """
    design = factorial()
    points = {(name, each): {"tau": tau, "lr": ground.rate(name)} for name in _frozen(ground) for each in design}
    return compared(ground, points, seed=seed, name="one-point", systems=dict.fromkeys(_frozen(ground), design))


def _frozen(ground: Protocols) -> list[str]:
    return [name for name in _systems(ground) if name.startswith("frozen")]


def _systems(ground: Protocols) -> Systems:
    """Protocol → its systems; in a profile of few seeds only some."""
    if _tiny(ground):
        return {protocol: {name: SYSTEMS[name] for name in names} for protocol, names in TRIED.items()}
    return {name: SYSTEMS if name.startswith("frozen") else FEWER for name in TITLES}


def _tiny(ground: Protocols) -> bool:
    return ground.book.settings.seeds < 3
