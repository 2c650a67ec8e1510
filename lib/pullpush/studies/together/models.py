"""Models of chapter 7: what a step of each combination costs, and the forces of its terms at the end of training.

Seconds are measured, see `lab.overhead`; FLOPs and kept bytes are counted and are the same everywhere.
"""

from collections.abc import Collection, Iterable, Mapping

import pandas as pd

from pullpush.data.clips import Clips
from pullpush.lab.compute import View
from pullpush.lab.overhead import Step, step_times
from pullpush.parallel import drawing
from pullpush.studies.counting import cost
from pullpush.studies.term_forces import term_forces
from pullpush.studies.together.experiments import label, system
from pullpush.training.loop import Result
from pullpush.training.objective import Objective, bring_columns
from pullpush.training.optimiser import make_optimiser
from pullpush.training.recipes import recipe
from pullpush.training.runs import drawn, ready

# Of a recipe: what its terms and its model are.
FIELDS = ("terms", "languages", "sampling", "captions", "batch_size", "dim", "audio", "text", "encoder_options")


def steps_of(view: View, combinations: Iterable[Collection[str]]) -> dict[str, Step]:
    """The first step of each combination on a view's training clips, by its label; all have the same clips."""
    found = {}
    for high in combinations:
        one = view.recipe(*system(high, dim=view.session.settings.dim))
        model, dataset = ready(view.data, one, seed=0)
        bring_columns(dataset, one)
        batch = next(iter(dataset.batches(one.batch_size, seed=0, epoch=0)))
        with drawing(0):
            objective = Objective(model.train(), one)
        found[label(high)] = Step(objective, make_optimiser(objective, one), batch)
    return found


def step_costs(steps: Mapping[str, Step], *, rounds: int = 9) -> pd.DataFrame:
    """`step_times`, and FLOPs, kept (bytes for the backward pass), both also as "FLOPs ratio" and "memory ratio"."""
    counted = [cost(step.objective, lambda step=step: step.objective(step.batch).loss) for step in steps.values()]
    table = step_times(steps, rounds=rounds).assign(
        FLOPs=[one.both for one in counted], kept=[one.kept for one in counted]
    )
    ratios = table[["FLOPs", "kept"]] / table[["FLOPs", "kept"]].iloc[0]
    return table.assign(**{"FLOPs ratio": ratios["FLOPs"], "memory ratio": ratios["kept"]})


def forces_at_the_end(run: Result, clips: Clips, *, seed: int = 0) -> pd.DataFrame:
    """`term_forces` of a run on clips that it was trained on, at the temperature that it learnt.

    A caption in one of several languages is one of as many that pull at its clip.
    """
    learnt = run.steps.iloc[-1]
    options = {name: float(learnt[name]) for name in ("tau", "bias") if name in learnt}
    one = recipe(run.recipe.name, **{field: getattr(run.recipe, field) for field in FIELDS}, **options)
    return term_forces(run.model, one, drawn(clips, one, 4, seed=seed), seed=seed)
