"""What the semantic radius does, taken apart: systems that switch its effects singly, and controls beside them.

A radius R does three things at once: the softmax is that of the support vector (*probabilities*), the gradient reaches
the anchor through Eq. 15, which shrinks what is across the way (*Jacobian*), and a part of it goes to the positive
(*partner*). On and off in all combinations that is a 2³ design, whose empty cell is InfoNCE twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.lab.scores import Scores

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


def by_protocol(
    name: str,
    systems: Mapping[str, Mapping[str, System]],
    seeds: Mapping[str, Sequence[int]],
    points: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    **more: Any,
) -> Experiment:
    """One experiment over protocols.

    Args:
        systems: protocol → its systems; seeds: protocol → seeds.
        points: (protocol, system) → options that were found for it.
        more: other attributes of the experiment.
    """
    trials = [
        Trial(
            system,
            recipe,
            {**overrides, **(points or {}).get((protocol, system), {})},
            {"protocol": protocol},
            data=protocol,
            seeds=tuple(seeds[protocol]),
        )
        for protocol, named in systems.items()
        for system, (recipe, overrides) in named.items()
    ]
    return Experiment(name, tuple(trials), tuple(seeds[next(iter(systems))]), long=True, **more)


def search(
    name: str,
    systems: Mapping[str, Mapping[str, System]],
    grids: Mapping[str, Sequence[Mapping[str, Any]]],
    epochs: Mapping[str, int],
    *,
    seed: int,
    **more: Any,
) -> Experiment:
    """The same points for every system of a protocol; the columns are those of the points.

    grids: protocol → points, each options of the recipe; epochs: protocol → passes, fewer than in what it is for.
    """
    trials = [
        Trial(
            system,
            recipe,
            {**overrides, "epochs": epochs[protocol], **point},
            {"protocol": protocol, **point},
            data=protocol,
        )
        for protocol, named in systems.items()
        for system, (recipe, overrides) in named.items()
        for point in grids[protocol]
    ]
    return Experiment(name, tuple(trials), (seed,), long=True, **more)


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
