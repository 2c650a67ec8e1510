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
from pullpush.lab.scores import Scores
from pullpush.studies.svr.protocols import TITLES, Protocols
from pullpush.training.diagnostics import Diagnostics

EFFECTS = ("probabilities", "jacobian", "partner")
LETTERS = dict(zip(EFFECTS, "PJA", strict=True))  # A: the sounds' own gradient, audio that pushes audio
RADIUS = 0.6  # fixed; about two thirds of the way in a trained model
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
DECISIVE = ("infonce", TWICE, "SVR:P", "SVR:J", "SVR:A", "SVR:PJA")


# What the page trains by default: seeds of each protocol, the fewer the longer a run takes.
SEEDS: Mapping[str, int] = {"frozen/cnn": 10, "random/cnn": 4, "frozen/yamnet": 10, "tuned/yamnet": 3}
# Temperature, and rate as a multiple of the protocol's own: the same budget for every system.
POINTS = ((0.05, 1.0), (0.1, 1.0), (0.15, 1.0), (0.2, 1.0), (0.1, 0.5), (0.1, 2.0))
EVALUATIONS = ("recall-at-1",)  # of hundreds of runs nothing else is kept
SHORTER = 2  # how much shorter a run of the search is
APART = 1000  # from the first seed to that of the search, which no comparison uses
TRIED = {"frozen/cnn": (*DECISIVE, "SVR:PJ", "SVR:PA", "SVR:JA", "across ×0.5", "sideways ×0"), "random/cnn": DECISIVE}


def searched(ground: Protocols, *, seed: int) -> Experiment:
    """The search on validation: every system of a protocol at the same points, in runs half as long."""
    trials = []
    for protocol, named in _systems(ground).items():
        epochs = max(1, ground.epochs(protocol) // SHORTER)
        for system, (recipe, overrides) in named.items():
            for tau, factor in POINTS[:2] if _tiny(ground) else POINTS:
                point = {"tau": tau, "lr": round(factor * ground.rate(protocol), 6)}
                options = {**overrides, "epochs": epochs, **point}
                trials.append(Trial(system, recipe, options, {"protocol": protocol, **point}, data=protocol))
    return Experiment("search", tuple(trials), (seed + APART,), evaluations=EVALUATIONS, long=True)


def compared(ground: Protocols, points: Mapping[tuple[str, str], Mapping[str, Any]], *, seed: int) -> Experiment:
    """The comparison, every system at its own point: (protocol, system) → options, see `best_points`.

    Fine-tuning takes longest: there only the cells of the design that answer alone, and all effects together.
    """
    trials = []
    for protocol, named in _systems(ground).items():
        seeds = range(seed, seed + (2 if _tiny(ground) else SEEDS[protocol]))
        for system, (recipe, overrides) in named.items():
            if protocol.startswith("tuned") and system not in DECISIVE:
                continue
            options = {**overrides, **points.get((protocol, system), {})}
            trials.append(Trial(system, recipe, options, {"protocol": protocol}, data=protocol, seeds=tuple(seeds)))
    watch = Diagnostics(every=2 if _tiny(ground) else 40, tau=0.07)
    return Experiment("effects", tuple(trials), trials[0].seeds, evaluations=EVALUATIONS, watch=watch, long=True)


def _systems(ground: Protocols) -> dict[str, Mapping[str, System]]:
    """Protocol → its systems; in a profile of few seeds only some."""
    if _tiny(ground):
        return {protocol: {name: SYSTEMS[name] for name in names} for protocol, names in TRIED.items()}
    return {name: SYSTEMS if name.startswith("frozen") else FEWER for name in TITLES}


def _tiny(ground: Protocols) -> bool:
    return ground.book.settings.seeds < 3


def best_points(scores: Scores) -> dict[tuple[str, str], dict[str, Any]]:
    """(protocol, system) → the options that did best on validation, by the best epoch's mean R@1; empty where nothing
    was searched. Of points that are equal the first is chosen.
    """
    if not scores:
        return {}
    columns = [name for name in scores.experiment.trials[0].where if name != "protocol"]
    best = scores.history.groupby(["protocol", "system", *columns], sort=False)["R@1"].max().reset_index()
    rows = best.loc[best.groupby(["protocol", "system"], sort=False)["R@1"].idxmax()]
    return {(row["protocol"], row["system"]): {name: row[name] for name in columns} for row in rows.to_dict("records")}
